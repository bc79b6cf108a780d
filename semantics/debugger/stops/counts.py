"""At which occurrence a stop is met: the third, from the third on, every third."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ...model.path import quote
from ..timeline.refused import Refused

_COUNT: Final = re.compile(r"(==|=|>=|<=|>|<|%)?\s*([0-9]{1,15})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Count:
    """relation: ==, >=, <=, >, < or %: every so many times. Occurrences are counted from 1 on the timeline."""

    relation: str
    number: int

    def __str__(self) -> str:
        return f"{'' if self.relation == '==' else self.relation}{self.number}"

    def admits(self, count: int) -> bool:
        """Whether that occurrence is one of them."""
        match self.relation:
            case ">=":
                return count >= self.number
            case "<=":
                return count <= self.number
            case ">":
                return count > self.number
            case "<":
                return count < self.number
            case "%":
                return count % self.number == 0
            case _:
                return count == self.number


def count_of(text: str) -> Count:
    """The count that a text says, such as 3, >=3 or %3. Raises Refused."""
    found = _COUNT.fullmatch(text.strip())
    if found is None or int(found[2]) < 1:
        raise Refused(f"{quote(text)} is no count of hits: say 3, >=3, >3, <=3, <3 or %3")
    relation = found[1] or "=="
    return Count("==" if relation == "=" else relation, int(found[2]))
