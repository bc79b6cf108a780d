"""The extension for VS Code: files of the package, written out with the command that starts this installation, and
what its picker asks about a model.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from sonnx.spec.language.diagnose import DECLARATIONS

from ..errors import ModelError
from ..machine.inputs import declared_inputs, type_text
from ..machine.trace.format import Json
from ..model.graph import ValueType
from ..model.loader import load
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
            target.write_bytes(_CHANGED.get(source.name, bytes)(content))
            written.append(target)
    return tuple(written)


def started_here(manifest: bytes) -> bytes:
    """The manifest with this Python in place of the command `sonnx`, which an editor may not find."""
    stated = json.loads(manifest)
    for debugger in stated["contributes"]["debuggers"]:
        debugger["runtime"], debugger["args"] = sys.executable, list(_STARTS)
    return json.dumps(stated, indent=2, ensure_ascii=True).encode("ascii") + b"\n"


# ---- Words of the specification language --------------------------------------------------------

_CONSTANTS: Final = ("true", "false")


def coloured(patterns: bytes) -> bytes:
    """The patterns of the specification language with the words of its grammar in place of @declarations@ and such."""
    text = patterns.decode("ascii")
    for name, words in keywords().items():
        text = text.replace(f"@{name}@", "|".join(sorted(words)))
    return text.encode("ascii")


def keywords() -> Mapping[str, frozenset[str]]:
    """The words of the language of `spec/`, by what they are."""
    lines = files("sonnx.spec.language").joinpath("language.lark").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
    declarations = frozenset(it.lower() for it in DECLARATIONS)
    expressions = _alternatives(r"^NAME: /\(\?!\(\?:", text)
    others = frozenset(re.findall(r'"([A-Za-z]+)"', text)) - declarations - expressions
    constants = frozenset(_CONSTANTS)
    return {
        "declarations": declarations,
        "constants": constants,
        "expressions": expressions - constants,
        "folds": _alternatives(r"^FOLD\.3: /\(", text),
        "words": others,
    }


def _alternatives(front: str, text: str) -> frozenset[str]:
    """The words that a terminal of the grammar lists behind this beginning of it."""
    (row,) = re.findall(rf"{front}([a-z|]+)\)", text, re.MULTILINE)
    return frozenset(row.split("|"))


_CHANGED: Final = {MANIFEST: started_here, "specification.tmLanguage.json": coloured}
"""The files that are written otherwise than they stand here."""


# ---- Inputs of a model --------------------------------------------------------------------------


def inputs_of(model: Path) -> list[Json]:
    """The inputs of a model in order: name, type in words, whether a value must be given, and the names of sizes that
    the model leaves open. Raises ModelError, Unsupported or OSError for what is no model."""
    return [
        {"name": name, "type": type_text(stated), "needed": needed, "sizes": [*_open_sizes(stated)]}
        for name, (_, stated, needed) in declared_inputs(load(model)).items()
    ]


def _open_sizes(stated: ValueType | None) -> list[str]:
    if stated is None:
        return []
    own = [size for size in stated.shape or () if isinstance(size, str) and size]
    return list(dict.fromkeys([*own, *_open_sizes(stated.inner)]))


def _name(manifest: bytes) -> Json:
    try:
        stated = json.loads(manifest)
    except ValueError:
        return None
    return stated.get("name") if isinstance(stated, dict) else None
