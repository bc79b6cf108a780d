"""Values of formulas, and the facts of a model as the evaluator asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final


class Open(Enum):
    """The value that the model does not determine."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Open.UNKNOWN

Element = int | str | bool
Value = Element | tuple[Element, ...] | Open
Key = Element | tuple[Element, ...]
"""The argument of a fact with one, the arguments of a fact with several, () of one without."""
Find = Callable[[Key], Value | None]
"""The value of a fact at a key; None where it says nothing: the empty set for a set, undefined for a value."""


def number(key: Key) -> int:
    """A key that is a number; -1, at which nothing stands, for any other."""
    return key if isinstance(key, int) else -1


SMALL: Final = 8
"""Sets up to this size are scanned."""


@dataclass(frozen=True)
class Tables:
    """The facts of one model by name; a table is made when it is first asked for."""

    makers: Mapping[str, Callable[[], Find]]
    _made: dict[str, Find] = field(default_factory=dict)
    _sets: dict[str, dict[Key, frozenset[Element]]] = field(default_factory=dict)

    def find(self, fact: str) -> Find | None:
        """The table of a fact; None when there is none of that name."""
        if fact not in self._made:
            if fact not in self.makers:
                return None
            self._made[fact] = self.makers[fact]()
        return self._made[fact]

    def holds(self, fact: str, find: Find) -> Callable[[Key, Key], bool | Open]:
        """An element is in the set that a fact gives at a key."""
        sets = self._sets.setdefault(fact, {})

        def member(key: Key, element: Key) -> bool | Open:
            row = find(key)
            if row is None:
                return False
            if not isinstance(row, tuple):
                return UNKNOWN
            if len(row) <= SMALL:
                return element in row
            made = sets.get(key)
            if made is None:
                made = sets[key] = frozenset(row)
            return element in made

        return member
