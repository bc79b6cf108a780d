"""Which stop of the session belongs to which breakpoint of the client, in the groups that the client replaces whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from .arguments import Arguments

SOURCE, FUNCTION, EXCEPTION, DATA, TYPED = "source", "function", "exception", "data", "typed"
"""What the groups are set by; `typed`: commands of the debug console."""
GROUPS: Final = (SOURCE, FUNCTION, EXCEPTION, DATA, TYPED)


@dataclass(slots=True)
class BreakpointIds:
    """numbers: the client's number of a stop by the session's. group: of each stop of the session.

    asked: the last request of each group, of lines for each source. pending: the numbers that were given for it before
    there was a session.
    """

    numbers: dict[int, int] = field(default_factory=dict)
    group: dict[int, str] = field(default_factory=dict)
    asked: dict[tuple[str, str], Arguments] = field(default_factory=dict)
    pending: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    last: int = 0

    def new(self) -> int:
        """A number that was not given before."""
        self.last += 1
        return self.last

    def tie(self, stop: int, group: str, number: int | None = None) -> int:
        """Ties a stop of the session to a number of the client, a new one where none is given."""
        given = self.new() if number is None else number
        self.numbers[stop], self.group[stop] = given, group
        return given

    def untie(self, stops: Iterable[int]) -> None:
        """Forgets stops."""
        for stop in stops:
            self.numbers.pop(stop, None)
            self.group.pop(stop, None)

    def of_group(self, group: str) -> tuple[int, ...]:
        """The stops of a group."""
        return tuple(stop for stop, found in self.group.items() if found == group)
