"""The extension for VS Code: data of the package, written out with the command that starts this installation."""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

from ..errors import ModelError
from ..machine.trace.format import Json
from ..model.path import quote

FOLDER: Final = "vscode"
MANIFEST: Final = "package.json"
_STARTS: Final = ("-c", "from sonnx.spec.cli import main; main()", "dap")


def write_extension(folder: Path) -> tuple[Path, ...]:
    """Writes the extension into a folder, made where it is not there; the files. An older one is written over.

    Raises ModelError where the folder holds another extension, OSError where it cannot be written.
    """
    manifest = folder / MANIFEST
    if manifest.exists() and _name(manifest.read_bytes()) != "sonnx":
        raise ModelError(f"{quote(str(folder))} holds something else: name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for source in sorted(files(__package__).joinpath(FOLDER).iterdir(), key=lambda it: it.name):
        if source.is_file():
            content = source.read_bytes()
            target = folder / source.name
            target.write_bytes(started_here(content) if source.name == MANIFEST else content)
            written.append(target)
    return tuple(written)


def started_here(manifest: bytes) -> bytes:
    """The manifest with this Python in place of the command `sonnx`, which an editor may not find."""
    stated = json.loads(manifest)
    for debugger in stated["contributes"]["debuggers"]:
        debugger["runtime"], debugger["args"] = sys.executable, list(_STARTS)
    return json.dumps(stated, indent=2, ensure_ascii=True).encode("ascii") + b"\n"


def _name(manifest: bytes) -> Json:
    try:
        stated = json.loads(manifest)
    except ValueError:
        return None
    return stated.get("name") if isinstance(stated, dict) else None
