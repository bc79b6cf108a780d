"""A finite structure: the facts of one graph, as tables for the fact symbols that `spec/1-syntax.sonnx` declares.

A table is built when it is first asked for. Elements are ints (graphs, nodes, tensors, ports), texts and booleans.
A key is the argument itself for one argument, () for none, a tuple for several.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from sonnx.spec.language.syntax import Sort

Element = int | str | bool
Key = Element | tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that the model does not determine, with the reason."""

    reason: str


Value = Element | tuple[Element, ...] | Unknown


@dataclass(frozen=True)
class SetTable:
    """A set-valued fact: the members for each key, in order. A key without a row has the empty set."""

    rows: Mapping[Key, tuple[Element, ...]]

    @cached_property
    def sets(self) -> Mapping[Key, frozenset[Element]]:
        """The same rows for membership tests."""
        return {key: frozenset(row) for key, row in self.rows.items()}

    @cached_property
    def inverse(self) -> Mapping[Element, tuple[Key, ...]]:
        """For each member the keys whose sets hold it, in order: the relation's index."""
        index: dict[Element, list[Key]] = {}
        for key, row in self.rows.items():
            for member in row:
                index.setdefault(member, []).append(key)
        return {member: tuple(keys) for member, keys in index.items()}


@dataclass(frozen=True, slots=True)
class ValueTable:
    """A single-valued fact. A key without a row is undefined (an absent attribute, say), unlike an Unknown value."""

    rows: Mapping[Key, Value]


Table = SetTable | ValueTable


@dataclass(frozen=True)
class Structure:
    """The facts of one graph. `providers` gives a table for each fact symbol, `place` the path of an element."""

    providers: Mapping[str, Callable[[], Table]]
    place: Callable[[Sort, Element], str]

    @cached_property
    def _tables(self) -> dict[str, Table]:
        return {}

    @cached_property
    def derived(self) -> dict[str, object]:
        """The results that interpretations computed from these facts and keep for the next constraint; it changes no
        result."""
        return {}

    def table(self, fact: str) -> Table:
        """The table of a fact symbol. Raises KeyError for a symbol that this structure does not provide."""
        known = self._tables.get(fact)
        if known is None:
            known = self._tables[fact] = self.providers[fact]()
        return known

    def forget(self, kept: Container[str]) -> None:
        """Give back the memory of all but these tables and derived results; what is asked for again is made anew."""
        for made in (self._tables, self.derived):
            for name in [name for name in made if name not in kept]:
                del made[name]

    def facts(self) -> Iterable[str]:
        """The fact symbols provided."""
        return self.providers.keys()
