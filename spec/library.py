"""The specification as a library: every file under `spec/`, parsed when first needed, by name.

`specification()` is cheap: texts are read and digested, parsed syntax comes from the cache (`cache`), and a file of
operators waits until a name that it declares is asked for. Text that was never elaborated with success is elaborated
first, so a mistake in it is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from . import cache as store
from .syntax import (
    Constraint,
    File,
    FunctionDeclaration,
    Operator,
    Profile,
    Property,
    SortDeclaration,
    Transition,
)

ROOT = Path(__file__).parent
OPERATORS = "5-operators/"

T = TypeVar("T")
Contents = Mapping[str, tuple[tuple[str, str], ...]]
"""For each file what it declares, in order: the class of the declaration and its name."""
D = TypeVar("D", SortDeclaration, FunctionDeclaration, Constraint, Transition, Property, Profile)


class Declared(Mapping[str, T]):
    """Things by name; what it takes to make one is read when it is asked for, and once."""

    def __init__(self, places: Mapping[str, tuple[str, ...]], make: Callable[[str, tuple[str, ...]], T]) -> None:
        """`places`: the names of the files that say what a name stands for; `make` reads them."""
        self._places, self._make = places, make
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            self._made[name] = self._make(name, self._places[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


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
    properties: Mapping[str, Property]
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
        *found("6-properties/*.sonnx"),
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

    @cache
    def file(name: str) -> File:
        return parse_file(texts[name], name)

    for name in texts:
        if not name.startswith(OPERATORS):
            file(name)
    contents = _contents(texts, digests, file)

    def named(kind: type[D]) -> Mapping[str, D]:
        @cache
        def within(place: str) -> dict[str, D]:
            return {d.name: d for d in file(place).declarations if isinstance(d, kind)}

        return Declared(_places(contents, kind), lambda name, places: within(places[-1])[name])

    def meanings(name: str, places: tuple[str, ...]) -> tuple[Operator, ...]:
        every = (d for place in places for d in file(place).declarations)
        return tuple(sorted((d for d in every if isinstance(d, Operator) and d.name == name), key=lambda o: o.first))

    return Specification(
        Declared({name: (name,) for name in texts}, lambda name, _: file(name)),
        digests,
        named(SortDeclaration),
        named(FunctionDeclaration),
        named(Constraint),
        named(Transition),
        named(Property),
        named(Profile),
        Declared(_places(contents, Operator), meanings),
    )


def _contents(texts: Mapping[str, str], digests: Mapping[str, str], file: Callable[[str], File]) -> Contents:
    """What the files declare: from the cache, which has it of texts that were elaborated without a mistake."""
    key = store.key_of("elaborated", _elaborator_digest(), *digests.values())
    found = store.load(key)
    if isinstance(found, tuple) and len(found) == len(texts):
        return dict(zip(texts, cast("tuple[tuple[tuple[str, str], ...], ...]", found), strict=True))
    from .elaborate import elaborate

    files = [file(name) for name in texts]
    elaboration = elaborate(files)
    if elaboration.errors:
        raise elaboration.errors[0]
    contents = {item.name: tuple((type(d).__name__, d.name) for d in item.declarations) for item in files}
    store.store(key, tuple(contents.values()))
    return contents


def _places(contents: Contents, kind: type[object]) -> dict[str, tuple[str, ...]]:
    """For each declared name of the kind the files that declare it."""
    found: dict[str, tuple[str, ...]] = {}
    for place, declared in contents.items():
        for what, name in declared:
            if what == kind.__name__ and place not in found.get(name, ()):
                found[name] = (*found.get(name, ()), place)
    return found


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
