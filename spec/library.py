"""The specification as a library: every file under `spec/`, parsed when first needed, by name.

`specification()` is cheap: texts are read and digested, parsed syntax comes from the cache (`cache`), operators wait
until one is asked for. Text that was never elaborated with success is elaborated first, so a mistake in it is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from . import cache as store
from .syntax import (
    Constraint,
    File,
    FunctionDeclaration,
    Operator,
    Profile,
    SortDeclaration,
    Transition,
)

ROOT = Path(__file__).parent
OPERATORS = "5-operators/"

T = TypeVar("T")
D = TypeVar("D", SortDeclaration, FunctionDeclaration, Constraint, Transition, Profile)


class Lazy(Mapping[str, T]):
    """A mapping that is made when it is looked at. What is `known` beforehand is part of it and found without that."""

    def __init__(self, make: Callable[[], Mapping[str, T]], known: Mapping[str, T] | None = None) -> None:
        self._make = cache(make)
        self._known = known or {}

    def __getitem__(self, name: str) -> T:
        return self._known[name] if name in self._known else self._make()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make())

    def __len__(self) -> int:
        return len(self._make())


@dataclass(frozen=True, slots=True)
class Specification:
    """The declarations by name, in document order. `files` and `digests` (SHA-256 of the text) are by file name,
    relative to `spec/`. operators: the meanings of an operator, one for each range of versions, oldest first.
    """

    files: Mapping[str, File]
    digests: Mapping[str, str]
    sorts: Mapping[str, SortDeclaration]
    functions: Mapping[str, FunctionDeclaration]
    constraints: Mapping[str, Constraint]
    transitions: Mapping[str, Transition]
    profiles: Mapping[str, Profile]
    operators: Mapping[str, tuple[Operator, ...]]


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
        *found("[5-9]-*.sonnx"),
    )


def read_texts(root: Path = ROOT) -> dict[str, str]:
    """The text of every specification file, in document order."""
    return {name: (root / name).read_text(encoding="utf-8") for name in file_names(root)}


def parse_file(text: str, name: str) -> File:
    """The parsed file, from the cache or else parsed and cached. Raises SpecError for a syntax error."""
    key = store.key_of(name, text)
    found = store.load_file(key, name)
    if found is None:
        from .parse import parse

        found = parse(text, name)
        store.store(key, found)
    return found


def build(texts: Mapping[str, str]) -> Specification:
    """The specification that the texts make up. Raises SpecError (the first one) when they contain a mistake."""
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}

    def operator_files() -> dict[str, File]:
        return {name: parse_file(text, name) for name, text in texts.items() if name.startswith(OPERATORS)}

    later = cache(operator_files)
    early = {name: parse_file(text, name) for name, text in texts.items() if not name.startswith(OPERATORS)}

    def files() -> dict[str, File]:
        return {name: early.get(name) or later()[name] for name in texts}

    def operators() -> dict[str, tuple[Operator, ...]]:
        found: dict[str, tuple[Operator, ...]] = {}
        for file in later().values():
            for declaration in file.declarations:
                if isinstance(declaration, Operator):
                    found[declaration.name] = (*found.get(declaration.name, ()), declaration)
        return {name: tuple(sorted(versions, key=lambda o: o.first)) for name, versions in found.items()}

    def named(kind: type[D]) -> Mapping[str, D]:
        return Lazy(lambda: _named(files(), kind), _named(early, kind))

    checked = store.key_of("elaborated", _elaborator_digest(), *digests.values())
    if store.load(checked) is not True:
        from .elaborate import elaborate

        elaboration = elaborate(files().values())
        if elaboration.errors:
            raise elaboration.errors[0]
        store.store(checked, True)
    return Specification(
        Lazy(files),
        digests,
        named(SortDeclaration),
        named(FunctionDeclaration),
        named(Constraint),
        named(Transition),
        named(Profile),
        Lazy(operators),
    )


def _named(files: Mapping[str, File], kind: type[D]) -> dict[str, D]:
    return {d.name: d for file in files.values() for d in file.declarations if isinstance(d, kind)}


def _elaborator_digest() -> str:
    """The digest of this layer's modules: whichever of them changes, the text is elaborated again."""
    hashed = hashlib.sha256()
    for path in sorted(ROOT.glob("*.py")):
        hashed.update(hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()


@cache
def specification() -> Specification:
    """The specification of this package. Raises SpecError when its text contains a mistake."""
    return build(read_texts())
