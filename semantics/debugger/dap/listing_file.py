"""The listing as a file that the client opens: the source of all lines and breakpoints."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sonnx.spec.terminal import one_line

from ...errors import ModelError
from ...machine.trace.format import Json
from ...model.path import quote
from ..display.listing import SUFFIX, Listing, check_listing, write_listing

_HEAD: Final = "# sonnx listing "


@dataclass(frozen=True, slots=True)
class ListingFile:
    """path: absolute. sha256: of its bytes. note: what the person should know about how it came to be."""

    path: Path
    sha256: str
    note: str = ""

    @property
    def source(self) -> dict[str, Json]:
        """The protocol's Source of it."""
        return {
            "name": one_line(self.path.name),
            "path": str(self.path),
            "origin": "listing of the model, made by sonnx",
            "checksums": [{"algorithm": "SHA256", "checksum": self.sha256}],
        }

    def is_at(self, path: str) -> bool:
        """True where a path that a client gives is this file."""
        try:
            return os.path.normcase(path) == os.path.normcase(self.path) or self.path.samefile(path)
        except (OSError, ValueError):
            return False


def made_listing(found: Listing, model: Path, wanted: Path | None) -> ListingFile:
    """The listing in its file: beside the model where nothing else is wanted, or in a temporary folder where that
    cannot be written. One of an older model is written anew. Raises ModelError for a file that is no listing."""
    path = (model.with_name(model.name + SUFFIX) if wanted is None else wanted).absolute()
    sha256 = hashlib.sha256(found.text.encode("ascii")).hexdigest()
    try:
        return ListingFile(path, sha256, _written(found, path))
    except OSError as error:
        if wanted is not None:
            raise ModelError(f"the listing cannot be written to {quote(str(path))}: {error.strerror}") from None
        there = Path(tempfile.mkdtemp(prefix="sonnx-")) / path.name
        write_listing(found, there)
        note = f"{quote(str(path))} cannot be written ({error.strerror}): the listing is {quote(str(there))}"
        return ListingFile(there, sha256, note)


def _written(found: Listing, path: Path) -> str:
    """Writes it unless it is there; gives the note."""
    if not path.exists():
        write_listing(found, path)
        return ""
    try:
        check_listing(found, path)
        return ""
    except ModelError:
        with path.open("rb") as file:
            ours = file.read(len(_HEAD)) == _HEAD.encode("ascii")
        if not ours:
            raise ModelError(f'{quote(str(path))} is no listing: set "listing" to another path') from None
    write_listing(found, path)
    return f"{quote(str(path))} was the listing of another model and is written anew: look at your breakpoints again"
