"""References that a client gets for things that last until the execution moves: frames, scopes, containers, memory.

A number is given once: one from before the last move is refused, and never means something else.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from ..timeline.refused import Refused
from .arguments import LARGEST

Kind = TypeVar("Kind")


class References:
    """Numbers from 1 to 2**31 - 1 for what is referred to at this position."""

    def __init__(self) -> None:
        self._last = 0
        self._known: dict[int, Hashable] = {}
        self._numbers: dict[Hashable, int] = {}

    def to(self, thing: Hashable) -> int:
        """The number of a thing; equal things have the same one until the execution moves."""
        number = self._numbers.get(thing)
        if number is None:
            if self._last >= LARGEST:
                raise Refused("all references are used up: restart the session")
            self._last = number = self._last + 1
            self._known[number], self._numbers[thing] = thing, number
        return number

    def get(self, number: int, kind: type[Kind], what: str) -> Kind:
        """What a number refers to. Raises Refused when it is none of that kind, or from before the last move."""
        found = self._known.get(number)
        if not isinstance(found, kind):
            late = number <= self._last and number not in self._known
            raise Refused(f"there is no {what} {number}{': the execution has moved since, ask again' if late else ''}")
        return found

    def forget(self) -> None:
        """Ends the life of all references given so far."""
        self._known.clear()
        self._numbers.clear()
