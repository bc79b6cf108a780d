"""From terms to code: what computes a term over a box of its index space, as one NumPy expression for each operation.

`lower` gives an array where nothing depends on data, else a function of the frame. The arrays have one dimension for
each axis of the space, of size 1 where the value does not depend on it. Each operation has an entry in LOWER, made by
the module that knows it: `operations`, `alternatives`, `reads`, `folds`, `freedom`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from .arithmetic import LIMIT, fractions
from .plan import Builder, Clock, Frame
from .terms import RATIONAL, Affine, Array, Axis, Node, Operand, Table, affine, tabulated

Run = Callable[[Frame], Array]


Code = Array | Run


Write = Callable[[Frame, Array], None]


@dataclass(slots=True)
class Space:
    """Where terms are evaluated: the axes, in the order of dimensions, and for each the half-open range of the box.

    shared: terms that occur more than once; their values are kept in `slots` of the frame while a block runs.
    """

    builder: Builder
    order: tuple[Axis, ...]
    box: Mapping[Axis, tuple[int, int]]
    shared: frozenset[int] = frozenset()
    memo: dict[int, Code] = field(default_factory=dict)
    slots: list[int] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of the box along each axis."""
        return tuple(self.box[axis][1] - self.box[axis][0] for axis in self.order)

    def inside(self, box: Mapping[Axis, tuple[int, int]]) -> Space:
        """The space with another box."""
        return Space(self.builder, self.order, box, self.shared, {}, self.slots)


def over(space: Space, axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """The shape of the box with size 1 along all but `axes`."""
    return tuple(space.box[a][1] - space.box[a][0] if a in axes else 1 for a in space.order)


def lower(term: Operand, space: Space) -> Code:
    """The code that gives the values of a term over the box."""
    if isinstance(term, Node):
        found = space.memo.get(id(term))
        if found is None:
            found = (space.builder.algebra.codes.get(term.op) or LOWER[term.op])(term, space)
            if id(term) in space.shared and not isinstance(found, np.ndarray) and term.op != "read":
                found = _kept(found, space)
            space.memo[id(term)] = found
        return found
    clock = space.builder.clock
    if clock is not None and isinstance(term, (Affine, Table)) and clock.axis in term.axes:
        return _at_clock(term, clock, space)
    if isinstance(term, Affine) or (isinstance(term, Table) and term.kind != RATIONAL):
        return tabulated(term, space.order, space.box)
    if isinstance(term, Table):
        return fractions(tabulated(term, space.order, space.box), term.den)
    return number(term)


def at_clock(term: Operand, space: Space) -> bool:
    """Whether a term depends on the index of the recurrence that is being lowered."""
    clock = space.builder.clock
    return clock is not None and isinstance(term, (Affine, Table, Node)) and clock.axis in term.axes


def _at_clock(term: Affine | Table, clock: Clock, space: Space) -> Code:
    """A static term at the index that the recurrence has reached."""
    slot = clock.slot
    if isinstance(term, Affine):
        rest = {axis: factor for axis, factor in term.terms if axis is not clock.axis}
        fixed, factor = tabulated(affine(term.const, rest), space.order, space.box), dict(term.terms)[clock.axis]
        return lambda frame: np.add(fixed, factor * frame[slot])
    order = (clock.axis, *space.order)
    values = tabulated(term, order, space.box)
    if term.kind == RATIONAL:
        values = fractions(values, term.den)
    return lambda frame: values[frame[slot]]


def number(value: int | Fraction | float) -> Array:
    """An exact number as an array without dimensions."""
    if isinstance(value, bool):
        return np.asarray(value)
    if isinstance(value, int) and -LIMIT < value < LIMIT:
        return np.asarray(value, np.int64)
    out = np.empty((), object)
    out[()] = value
    return out


def _kept(code: Run, space: Space) -> Run:
    slot = space.builder.slot()
    space.slots.append(slot)

    def run(frame: Frame) -> Array:
        value = frame[slot]
        if value is None:
            value = frame[slot] = code(frame)
        return value

    return run


def combine(function: Callable[..., Array], codes: list[Code]) -> Code:
    """The function of the values of codes; computed at once when all are known."""
    if all(isinstance(code, np.ndarray) for code in codes):
        with np.errstate(all="ignore"):
            return np.asarray(function(*codes))
    if len(codes) == 1:
        (single,) = codes
        return lambda frame: function(single(frame))  # type: ignore[operator]
    if len(codes) == 2:
        left, right = codes
        if isinstance(left, np.ndarray):
            return lambda frame: function(left, right(frame))  # type: ignore[operator]
        if isinstance(right, np.ndarray):
            return lambda frame: function(left(frame), right)
        return lambda frame: function(left(frame), right(frame))
    runs = [run_of(code) for code in codes]
    return lambda frame: function(*(run(frame) for run in runs))


def run_of(code: Code) -> Run:
    """The code as a function of the frame."""
    if isinstance(code, np.ndarray):
        value = code
        return lambda _frame: value
    return code


def write(term: Operand, space: Space) -> Write:
    """The code that writes the values of a term over the box into an array of the shape of the box."""
    if isinstance(term, Node):
        special = WRITE.get(term.op)
        if special is not None and id(term) not in space.shared and term.op not in space.builder.algebra.codes:
            return special(term, space)
    code = lower(term, space)
    if isinstance(code, np.ndarray):
        value = code

        def fill(_frame: Frame, out: Array) -> None:
            out[...] = value

        return fill

    def assign(frame: Frame, out: Array) -> None:
        out[...] = code(frame)

    return assign


LOWER: Final[dict[str, Callable[[Node, Space], Code]]] = {}
"""For each operation what computes it."""
WRITE: Final[dict[str, Callable[[Node, Space], Write]]] = {}
"""Those that can write their result where it belongs."""
