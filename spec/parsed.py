"""The texts of this package: which they are, and what they parse to, as it was found when the package was built.

What they parse to lies in the file `parsed.json` beside them. Its first line says what it was made from, SHA-256 of
each text and of this layer's modules, and where each declaration and each core begins; the rest are these, as JSON.
What was made from another text or by other modules is not used: the text is parsed then, and cores are used where all
texts are the same. So the file saves time and decides nothing. `python -m sonnx.spec.parsed` makes it anew in a
checkout. It is made by `building`, and read nowhere but here; nothing is kept outside of the package.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from .elaborate import core
from .elaborate.core import Binding, CoreOperator, CoreRewrite
from .elaborate.formulas import Cores
from .language import syntax
from .language.syntax import Constraint, FunctionDeclaration, Operator, Rewrite, Sort, Source, Span, Written

ROOT = Path(__file__).parent
NAME = "parsed.json"
OPERATORS = "5-operators/"

Json = None | bool | int | str | list["Json"]

KNOWN = (it for module in (syntax, core) for it in vars(module).values())
CLASSES: tuple[type[Any], ...] = tuple(dict.fromkeys(it for it in KNOWN if isinstance(it, type) and is_dataclass(it)))
"""The classes of syntax and core. An object is a JSON list of its position here plus 1 and its fields but for the last
ones that are as usual; 0 is a tuple."""
SPAN, SORT, BINDING = (CLASSES.index(it) + 1 for it in (Span, Sort, Binding))
AGAIN, TABLE = -1, -2
"""A binding that occurred before, by its number; a mapping, its keys and values in turn."""


# ---- The texts --------------------------------------------------------------------------------


def file_names(root: Path = ROOT) -> tuple[str, ...]:
    """The specification files in document order: parts 1 to 4, the primitives, the rule sets, parts 5 and later."""

    def found(pattern: str) -> list[str]:
        names = (path.relative_to(root).as_posix() for path in root.glob(pattern))
        return sorted(names, key=lambda name: name.removesuffix(".sonnx"))

    return (
        *found("[1-4]*-*.sonnx"),
        *found("primitives.sonnx"),
        *found("profiles/*.sonnx"),
        *found(f"{OPERATORS}**/*.sonnx"),
        *found("6-properties/*.sonnx"),
        *found("7-transforms/*.sonnx"),
    )


def read_texts(root: Path = ROOT) -> dict[str, str]:
    """The text of every specification file, in document order."""
    return {name: (root / name).read_text(encoding="utf-8") for name in file_names(root)}


# ---- Syntax as JSON ---------------------------------------------------------------------------


def encode(value: Any, known: dict[Binding, int] | None = None) -> Json:
    """The JSON of a value of the syntax or the core, spans included. known: the bindings so far, with their numbers.

    The expression that a let names is left out: it serves elaboration alone.
    """
    known = {} if known is None else known
    match value:
        case None | bool() | int() | str():
            return value
        case tuple():
            return [0, *(encode(item, known) for item in value)]
        case Mapping():
            return [TABLE, *(encode(item, known) for pair in value.items() for item in pair)]
        case Sort():
            return [SORT, *_chain(value)]
        case Binding() if value in known:
            return [AGAIN, known[value]]
    own = fields(value)
    parts = [None if isinstance(value, Binding) and f.name == "meaning" else getattr(value, f.name) for f in own]
    while parts and _usual(own[len(parts) - 1].default, parts[-1]):
        parts.pop()
    made: Json = [CLASSES.index(type(value)) + 1, *(encode(part, known) for part in parts)]
    if isinstance(value, Binding):
        known[value] = len(known)
    return made


def _usual(default: object, value: object) -> bool:
    return type(default) is type(value) and default == value


def _chain(sort: Sort | None) -> list[str]:
    return [] if sort is None else [sort.name, *_chain(sort.element)]


def decode(data: Any, known: list[Binding] | None = None) -> Any:
    """The value that `data`, made by `encode`, stands for. known: the bindings so far."""
    if type(data) is not list:
        return data
    tag = data[0]
    if tag == SPAN:
        return Span(*data[1:])
    if tag == SORT:
        return _sort(*data[1:])
    known = [] if known is None else known
    if tag == AGAIN:
        return known[data[1]]
    values = [decode(item, known) if type(item) is list else item for item in data[1:]]
    if tag == TABLE:
        return dict(zip(values[::2], values[1::2], strict=True))
    made: Any = CLASSES[tag - 1](*values) if tag else tuple(values)
    if tag == BINDING:
        known.append(made)
    return made


@cache
def _sort(name: str, *element: str) -> Sort:
    return Sort(name, _sort(*element) if element else None)


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
    digest, made = ahead().units.get(name, ("", None))
    if made is not None and digest == sha256(text):
        return made
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


@dataclass(frozen=True, slots=True)
class Ahead:
    """The content of the file that was made ahead, by these modules. units: for each file the digest of its text then
    and what it holds. keys: of the cores, and for an operator those of its meanings; core: the core of a key."""

    units: Mapping[str, tuple[str, Unit]]
    keys: Collection[str] = ()
    core: Callable[[str], Any] = decode


@cache
def ahead() -> Ahead:
    """The content of the file made when the package was built; nothing where there is none or other modules made it."""
    try:
        with (ROOT / NAME).open("rb") as file:
            header = file.readline()
            modules, listed, cores = json.loads(header)
            if modules != modules_digest():
                return Ahead({})
            # What is asked for is read then: few declarations of the many are. The number stays open, so that it is
            # this file that is read whatever has its name later.
            number = os.dup(file.fileno()) if hasattr(os, "pread") else None
            payload = b"" if number is not None else file.read()
    except (OSError, ValueError):
        return Ahead({})

    def at(start: int, end: int) -> Any:
        if number is None:
            return decode(json.loads(payload[start:end]))
        return decode(json.loads(os.pread(number, end - start, len(header) + start)))

    def reading(places: Sequence[int]) -> Callable[[int], Written]:
        return cache(lambda position: cast("Written", at(places[position], places[position + 1])))

    units = {
        name: (digest, Unit(name, tuple((kind, own) for kind, own in declared), reading(places)))
        for name, digest, declared, places in listed
    }
    return Ahead(units, cores.keys(), cache(lambda key: at(*cores[key])))


def key_of(declared: FunctionDeclaration | Constraint | Operator | CoreOperator | Rewrite | CoreRewrite) -> str:
    """The key of a declaration's core: `define broadcast`, `Constraint C1`, `Conv 11 21`, `rewrite PadConv`."""
    match declared:
        case FunctionDeclaration():
            return f"{declared.kind} {declared.name}"
        case Rewrite() | CoreRewrite():
            return f"rewrite {declared.name}"
        case Constraint():
            return f"Constraint {declared.name}"
        case _:
            return f"{declared.name} {declared.first} {declared.last}"


def write(texts: Mapping[str, str], folder: Path) -> Path:
    """Parses and elaborates the texts and writes what they hold. Raises SpecError (the first one) on a mistake."""
    from .elaborate.declarations import elaborate
    from .language.parse import parse

    files = [parse(text, name) for name, text in texts.items()]
    made = elaborate(files)
    if made.errors:
        raise made.errors[0]
    payload = bytearray()

    def put(value: object) -> tuple[int, int]:
        start = len(payload)
        payload.extend(json.dumps(encode(value), separators=(",", ":")).encode())
        return start, len(payload)

    listed = []
    for file in files:
        places = [len(payload), *(put(declaration)[1] for declaration in file.declarations)]
        listed.append([file.name, sha256(texts[file.name]), entries(file.declarations), places])
    text = Cores(made.functions)
    cores: dict[str, Any] = {
        **{key_of(it): text.definition(it.name) for it in made.functions.values() if it.body is not None},
        **{key_of(it): text.formula(it.formula) for it in made.constraints.values() if it.phase == "static"},
        **{key_of(it): it for it in made.cores},
        **{key_of(it): it for it in made.rules},
    }
    located = {key: put(value) for key, value in cores.items()}
    header = json.dumps([modules_digest(), listed, located], separators=(",", ":")).encode()
    path = folder / NAME
    new = path.with_suffix(".new")  # a process that reads the old file goes on with it
    new.write_bytes(b"\n".join((header, bytes(payload))))
    return new.replace(path)


if __name__ == "__main__":
    write(read_texts(), ROOT)
