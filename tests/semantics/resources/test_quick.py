"""A quick dataclass is one in all but the time that making it takes."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest
from sonnx.semantics.resources import quick


@quick
@dataclass(frozen=True, slots=True)
class Point:
    """Of one class with a default of each kind."""

    x: int
    y: int = 2
    name: str = field(default="origin", compare=False)


def test_it_is_made_compared_copied_and_kept_from_change_as_any_other() -> None:
    point = Point(1)
    assert (point, repr(point)) == (Point(x=1, y=2, name="other"), "Point(x=1, y=2, name='origin')")
    assert replace(point, y=5) == Point(1, 5) != point
    assert pickle.loads(pickle.dumps(point)) == copy.copy(point) == point
    assert hash(point) == hash(Point(1, 2))
    with pytest.raises(FrozenInstanceError):
        setattr(point, point.__slots__[0], 3)


def test_what_is_missing_or_too_much_is_refused() -> None:
    for wrong in ((), (1, 2, "a", 4)):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            Point(*wrong)
