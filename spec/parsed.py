"""The texts of this package: which they are, and what they parse to, as it was found when the package was built.

What they parse to lies in the file `parsed.json` beside them. Its first line says what it was made from, SHA-256 of
each text and of this layer's modules, and where each declaration begins; the rest are the declarations as JSON. What
was made from another text or by other modules is not used: the text is parsed then. So the file saves time and decides
nothing. `python -m sonnx.spec.parsed` makes it anew in a checkout. It is made by `building`, and read nowhere but here;
nothing is kept outside of the package.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .language import syntax
from .language.syntax import Source, Span, Written

ROOT = Path(__file__).parent
NAME = "parsed.json"
OPERATORS = "5-operators/"

Json = None | bool | int | str | list["Json"]

CLASSES: tuple[type[Any], ...] = tuple(it for it in vars(syntax).values() if isinstance(it, type) and is_dataclass(it))
"""The classes of the syntax. An object is a JSON list of its position here plus 1 and its fields; 0 is a tuple."""
SPAN = CLASSES.index(Span) + 1


# ---- The texts --------------------------------------------------------------------------------


def file_names(root: Path = ROOT) -> tuple[str, ...]:
    """The specification files in document order: parts 1 to 4, the primitives, the rule sets, parts 5 and later."""

    def found(pattern: str) -> list[str]:
        names = (path.relative_to(root).as_posix() for path in root.glob(pattern))
        return sorted(names, key=lambda name: name.removesuffix(".sonnx"))

    return (
        *found("[1-4]-*.sonnx"),
        *found("primitives.sonnx"),
        *found("profiles/*.sonnx"),
        *found(f"{OPERATORS}*.sonnx"),
        *found("6-properties/*.sonnx"),
    )


def read_texts(root: Path = ROOT) -> dict[str, str]:
    """The text of every specification file, in document order."""
    return {name: (root / name).read_text(encoding="utf-8") for name in file_names(root)}


# ---- Syntax as JSON ---------------------------------------------------------------------------


def encode(value: object) -> Json:
    """The JSON of a value of the syntax, spans included."""
    match value:
        case None | bool() | int() | str():
            return value
        case tuple():
            return [0, *(encode(item) for item in value)]
        case _:
            return [CLASSES.index(type(value)) + 1, *(encode(getattr(value, f.name)) for f in fields(value))]  # type: ignore[arg-type]


def decode(data: Any) -> Any:
    """The value that `data`, made by `encode`, stands for."""
    if type(data) is not list:
        return data
    tag = data[0]
    if tag == SPAN:
        return Span(*data[1:])
    values = [decode(item) if type(item) is list else item for item in data[1:]]
    return CLASSES[tag - 1](*values) if tag else tuple(values)


# ---- What was parsed --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unit:
    """A file of the specification: its name, relative to `spec/`, the class and name of each declaration, in order, and
    the declaration at a position.
    """

    name: str
    entries: tuple[tuple[str, str], ...]
    declaration: Callable[[int], Written]

    def source(self) -> Source:
        """All of it, as it is written."""
        return Source(self.name, tuple(map(self.declaration, range(len(self.entries)))))


def unit(text: str, name: str) -> Unit:
    """A file of the specification: parsed ahead where its text is the one that the package was built with, else parsed
    now. Raises SpecError for a syntax error.
    """
    digest, found = ahead().get(name, ("", None))
    if found is not None and digest == sha256(text):
        return found
    from .language.parse import parse

    declarations = parse(text, name).declarations
    return Unit(name, entries(declarations), declarations.__getitem__)


def entries(declarations: Sequence[Written]) -> tuple[tuple[str, str], ...]:
    """The classes and names of declarations."""
    return tuple((type(it).__name__, it.name) for it in declarations)


def sha256(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def modules_digest() -> str:
    """The digest of what decides how a text is read: the grammar and the modules of this layer."""
    hashed = hashlib.sha256()
    for path in sorted((*ROOT.rglob("*.py"), ROOT / "language" / "language.lark")):
        hashed.update(hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()


@cache
def ahead() -> Mapping[str, tuple[str, Unit]]:
    """For each file that was parsed ahead, by these modules, the digest of its text then and what it holds."""
    try:
        header, payload = (ROOT / NAME).read_bytes().split(b"\n", 1)
        modules, listed = json.loads(header)
    except (OSError, ValueError):
        return {}
    if modules != modules_digest():
        return {}

    def reading(places: Sequence[int]) -> Callable[[int], Written]:
        return cache(lambda position: decode(json.loads(payload[places[position] : places[position + 1]])))

    return {
        name: (digest, Unit(name, tuple((kind, own) for kind, own in declared), reading(places)))
        for name, digest, declared, places in listed
    }


def write(texts: Mapping[str, str], folder: Path) -> Path:
    """Parses and elaborates the texts and writes what they hold. Raises SpecError (the first one) on a mistake."""
    from .elaborate.declarations import elaborate
    from .language.parse import parse

    files = [parse(text, name) for name, text in texts.items()]
    errors = elaborate(files).errors
    if errors:
        raise errors[0]
    listed, parts, length = [], [], 0
    for file in files:
        places = [length]
        for declaration in file.declarations:
            parts.append(json.dumps(encode(declaration), separators=(",", ":")).encode())
            length += len(parts[-1])
            places.append(length)
        listed.append([file.name, sha256(texts[file.name]), entries(file.declarations), places])
    header = json.dumps([modules_digest(), listed], separators=(",", ":")).encode()
    path = folder / NAME
    path.write_bytes(b"\n".join((header, b"".join(parts))))
    return path


if __name__ == "__main__":
    write(read_texts(), ROOT)
