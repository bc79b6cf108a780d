"""The specification as a library: every file under `spec/`, parsed when first needed, by name.

`specification()` is cheap: texts are read and digested, what they declare was parsed when the package was built
(`parsed`), and a declaration is decoded when its name is asked for. A text other than the one that the package was
built with is parsed, and then all of them are elaborated, so a mistake is an error. Everything here is expanded: an
operator whose text states a difference has its full meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar, cast

from . import project
from .elaborate.core import CoreOperator, CoreRewrite, Definition
from .elaborate.formulas import Cores, cores
from .language.errors import SpecError
from .language.syntax import (
    Constraint,
    Contract,
    Declaration,
    Difference,
    File,
    FunctionDeclaration,
    Operator,
    Profile,
    Property,
    Rewrite,
    SortDeclaration,
    Transition,
    Written,
)
from .parsed import Unit, ahead, key_of, read_texts, sha256, unit

T = TypeVar("T")
P = TypeVar("P")
Place = tuple[str, int]
"""A file and a position among its declarations."""
D = TypeVar(
    "D", SortDeclaration, FunctionDeclaration, Constraint, Transition, Property, Profile, Contract, Rewrite
)


class Declared(Mapping[str, T]):
    """Things by name; what it takes to make one is read when it is asked for, and once."""

    def __init__(self, places: Mapping[str, P], make: Callable[[P], T]) -> None:
        """`places`: where it is said what a name stands for; `make` reads it there."""
        self._places: Mapping[str, Any]
        self._make: Callable[[Any], T]
        self._places, self._make = places, make
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            self._made[name] = self._make(self._places[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Functions(Declared[FunctionDeclaration]):
    """The functions of a text with their cores, which stand here for `cores` to find them."""

    cores: Cores


class Meanings:
    """The cores of operators, by name and version."""

    def __init__(self, cores: Mapping[str, CoreOperator]) -> None:
        """`cores`: by `parsed.key_of`."""
        self.cores = cores
        self._ranges: dict[str, list[tuple[int, int, str]]] = {}
        self._keys: dict[tuple[str, int], str | None] = {}
        for key in cores:
            name, first, last = key.split(" ")
            self._ranges.setdefault(name, []).append((int(first), int(last), key))

    def at(self, name: str, version: int) -> CoreOperator | None:
        """The meaning of an operator at a version of its domain's operators; None without one."""
        asked = (name, version)
        if asked not in self._keys:
            ranges = self._ranges.get(name, ())
            self._keys[asked] = next((key for first, last, key in ranges if first <= version <= last), None)
        key = self._keys[asked]
        return None if key is None else self.cores[key]

    def names(self, prefix: str) -> Iterator[str]:
        """The names of operators that begin so."""
        return (name for name in self._ranges if name.startswith(prefix))

    def of(self, name: str) -> tuple[CoreOperator, ...]:
        """All meanings of an operator, oldest first."""
        return tuple(self.cores[key] for _, _, key in sorted(self._ranges.get(name, ())))

    def __contains__(self, name: str) -> bool:
        return name in self._ranges

    def __iter__(self) -> Iterator[CoreOperator]:
        return (self.cores[key] for ranges in self._ranges.values() for _, _, key in sorted(ranges))


@dataclass(frozen=True, slots=True)
class Specification:
    """The declarations by name, in document order. `files` and `digests` (SHA-256 of the text) are by file name,
    relative to `spec/`. operators: the meanings of an operator, one for each range of versions, oldest first; meanings:
    the cores of these, each made when it is asked for. cores: those of all else.
    added: the files that users add, by name and digest. contracts: of the operators that nothing here executes. rules:
    the cores of rewrites, by name.
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
    meanings: Meanings
    added: tuple[tuple[str, str], ...] = ()
    contracts: Mapping[str, Contract] = field(default_factory=dict)
    rewrites: Mapping[str, Rewrite] = field(default_factory=dict)
    rules: Mapping[str, CoreRewrite] = field(default_factory=dict)

    def reason(self, name: str, version: int | None) -> str:
        """Why nothing here executes an operator that has a contract at this version; empty without one."""
        contract = self.contracts.get(name)
        return contract.reason if contract is not None and version is not None and contract.version <= version else ""

    def written(self, meaning: CoreOperator) -> Operator:
        """The text of a meaning."""
        return next(it for it in self.operators[meaning.name] if it.first == meaning.first)

    @property
    def cores(self) -> Cores:
        """The cores of functions and formulas."""
        return cores(self.functions)

    def operator(self, name: str, version: int | None) -> Operator | None:
        """The meaning of an operator in a version; None where there is none."""
        meanings = () if version is None else self.operators.get(name, ())
        return next((it for it in meanings if it.first <= (version or 0) <= it.last), None)


def build(texts: Mapping[str, str]) -> Specification:
    """The specification that the texts make up. Raises SpecError (the first one) when they contain a mistake."""
    digests = {name: sha256(text) for name, text in texts.items()}
    units = {name: unit(text, name) for name, text in texts.items()}

    same = digests == {name: digest for name, (digest, _) in ahead().units.items()}
    made: Mapping[str, CoreOperator]
    rules: Mapping[str, CoreRewrite]
    if same:
        made = Declared({key: key for key in ahead().keys if key.count(" ") == 2}, ahead().core)
        named_rules = {key.removeprefix("rewrite "): key for key in ahead().keys if key.startswith("rewrite ")}
        rules = Declared(named_rules, ahead().core)
    else:
        from .elaborate.declarations import elaborate

        elaborated = elaborate([it.source() for it in units.values()])
        if elaborated.errors:
            raise elaborated.errors[0]
        made = {key_of(core): core for core in elaborated.cores}
        rules = {core.name: core for core in elaborated.rules}

    def named(kind: type[D]) -> Mapping[str, D]:
        return Declared(_places(units, kind), lambda places: cast("D", _at(units, places[-1])))

    homes = _places(units, Operator, Difference)

    def full(declared: Written) -> Declaration:
        if not isinstance(declared, Difference):
            return declared
        from .elaborate.versions import expand

        return expand(declared, lambda name: [_at(units, place) for place in homes.get(name, ())])

    def operators(places: tuple[Place, ...]) -> tuple[Operator, ...]:
        every = (cast("Operator", full(_at(units, place))) for place in places)
        return tuple(sorted(every, key=lambda it: it.first))

    def file(places: tuple[Place, ...]) -> File:
        written = units[places[0][0]].source()
        return File(written.name, tuple(map(full, written.declarations)))

    functions = Functions(
        _places(units, FunctionDeclaration), lambda places: cast("FunctionDeclaration", _at(units, places[-1]))
    )
    constraints = named(Constraint)

    def stored(declared: FunctionDeclaration | Constraint) -> Definition | None:
        own: Mapping[str, object] = functions if isinstance(declared, FunctionDeclaration) else constraints
        key = key_of(declared)
        if not same or key not in ahead().keys or own.get(declared.name) is not declared:
            return None
        return cast("Definition", ahead().core(key))

    functions.cores = Cores(functions, stored)
    return Specification(
        Declared({name: ((name, 0),) for name in texts}, file),
        digests,
        named(SortDeclaration),
        functions,
        constraints,
        named(Transition),
        named(Property),
        named(Profile),
        Declared(homes, operators),
        Meanings(made),
        contracts=named(Contract),
        rewrites=named(Rewrite),
        rules=rules,
    )


def _at(units: Mapping[str, Unit], place: Place) -> Written:
    name, position = place
    return units[name].declaration(position)


def _places(units: Mapping[str, Unit], *kinds: type[object]) -> dict[str, tuple[Place, ...]]:
    """For each declared name of the kinds the places that declare it."""
    places: dict[str, tuple[Place, ...]] = {}
    for item in units.values():
        for position, (what, name) in enumerate(item.entries):
            if what in {kind.__name__ for kind in kinds}:
                places[name] = (*places.get(name, ()), (item.name, position))
    return places


class AddedTextError(SpecError):
    """A mistake in a file that a user adds. others: how many more there are."""

    def __init__(self, error: SpecError, others: int = 0) -> None:
        super().__init__(error.span, error.kind, error.message, error.related)
        self.others = others

    def __str__(self) -> str:
        other = "" if self.related is None else f"; the other place: {self.related}"
        return super().__str__() + other + (f" (and {self.others} more: see sonnx spec check)" if self.others else "")


def extended(base: Specification, texts: Mapping[str, str]) -> Specification:
    """The specification with more files, each under the name by which errors call it. Raises AddedTextError (the first
    one) when they contain a mistake or define what there is already.
    """
    from .elaborate.declarations import elaborate
    from .elaborate.versions import Joined, expand_files
    from .language.parse import parse

    try:
        sources = [parse(text, name) for name, text in texts.items()]
    except SpecError as error:
        raise AddedTextError(error) from None
    added = elaborate(sources, base)
    if added.errors:
        raise AddedTextError(added.errors[0], len(added.errors) - 1)
    functions = Functions(Joined(added.functions, base.functions), lambda declared: declared)

    def known(declared: FunctionDeclaration | Constraint) -> Definition | None:
        own: Mapping[str, object] = base.functions if isinstance(declared, FunctionDeclaration) else base.constraints
        if own.get(declared.name) is not declared:
            return None
        cores = base.cores
        return (
            cores.definition(declared.name) if isinstance(declared, FunctionDeclaration) else cores.constraint(declared)
        )

    functions.cores = Cores(functions, known)
    return Specification(
        Joined({file.name: file for file in expand_files(sources, base.operators)[0]}, base.files),
        {**base.digests, **{name: sha256(text) for name, text in texts.items()}},
        base.sorts,
        functions,
        Joined(added.constraints, base.constraints),
        base.transitions,
        base.properties,
        Joined(added.profiles, base.profiles),
        Joined({name: (*base.operators.get(name, ()), *it) for name, it in added.operators.items()}, base.operators),
        Meanings(Joined({key_of(core): core for core in added.cores}, base.meanings.cores)),
        tuple((name, sha256(text)) for name, text in texts.items()),
        base.contracts,
        Joined(added.rewrites, base.rewrites),
        Joined({core.name: core for core in added.rules}, base.rules),
    )


@cache
def own_specification() -> Specification:
    """The specification of this package alone. Raises SpecError when its text contains a mistake."""
    return build(read_texts())


def specification() -> Specification:
    """The specification of this package, with what users add (`project`). Raises SpecError for a mistake in the
    package's text, AdditionError for a file that cannot be read, AddedTextError for a mistake in one.
    """
    texts = project.texts()
    return _with(tuple(texts.items())) if texts else own_specification()


@cache
def _with(texts: tuple[tuple[str, str], ...]) -> Specification:
    return extended(own_specification(), dict(texts))
