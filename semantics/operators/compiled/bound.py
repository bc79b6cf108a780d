"""The bound interpretation: which values an application of an operator may give, whatever the order of its sums.

One evaluator, another table of element arithmetic (`elements.bound`): an element is the set of values that the text
allows. Allowed is what an implementation gets that does the operations of the text, each rounded to nearest in the
element type or, where it is not the last one, in any wider type; with a multiplication and an addition fused or not;
with the terms of a sum, and what is added to it, in any order or tree; with functions off by their stated accuracy.

It is rigorous in double: ends of intervals are rounded outwards, known to be exact by error-free transformations where
they are not moved, and sums count the error of their own evaluation (`elements.bounds.moments`). A result of one
operation on given numbers is thereby its one correctly rounded value. Where a value that is not known decides what is
computed, the interpretation is partial: Unsupported. But where the position of an extreme is all that decides, and each
element of a result asks for one position, all elements that may be at it are taken together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...errors import InternalError, Unsupported
from ...model import values
from ...model.elements import DType, is_float
from ..application import Application, Outputs, Stuck
from .elements.bound import BOUND
from .elements.bounds.codes import Undecided, favouring
from .elements.bounds.storage import FLOAT_SET, carrier_of, hull, is_set, lift, opened, packed, storage
from .extremes import chosen, sought
from .ieee import Interpretation, interpreter
from .statements import definition
from .terms import Array

_apply: Final = interpreter(BOUND)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values that the elements of a tensor may have. type: the element type.

    least, most: the ends of what they may be as numbers, infinities included: doubles for a floating-point type, where
    a zero has its sign, and the type's own numbers otherwise. maybe_nan, nan: where an element may be, must be a NaN;
    where it must be, least and most say nothing.
    low, high: the ends of what an implementation may hold before it rounds to the element type.
    """

    type: DType
    least: Array
    most: Array
    maybe_nan: NDArray[np.bool_]
    nan: NDArray[np.bool_]
    low: Array
    high: Array

    @property
    def exact(self) -> NDArray[np.bool_]:
        """The elements for which only one value is allowed."""
        signs = self.least.dtype.kind != "f" or np.signbit(self.least) == np.signbit(self.most)
        return np.asarray(self.nan | (~self.maybe_nan & (self.least == self.most) & signs))


Bound = Allowed | Array | tuple["Bound", ...] | None
"""The values allowed for a value: of strings an array of them or of what says which (`Spelled`), of a sequence or an
optional those of its entries, of a map those of its values by ascending keys."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The results that an application may give, by position of the output; None for an output that is not asked for."""

    values: tuple[Bound, ...]


def apply(application: Application, given: Sequence[Allowed | None] = ()) -> Bounds | Stuck:
    """The outputs that are allowed, or why there are none.

    given: by position of the input, what is known of a tensor that is not exact; without it the input is what it is.
    The values of such an input are not looked at. Raises Unsupported for an operator without definition, and where a
    value that is not known decides what is computed.
    """
    sets = [None if item is None else _as_sets(item) for item in given]
    try:
        sets_or_refusal = _apply(application, sets)
    except Undecided as undecided:
        operator = definition(application.op_type, application.version)
        view = sought(operator)
        if undecided.steps > MOST_STEPS or view is None:
            raise
        far = {port.name: view.body.name for port in operator.outputs if port.name in chosen(operator)}
        ends = tuple(far.get(port.name, "") for port in operator.outputs)
        sets_or_refusal = _in_each_position(application, sets, undecided.steps, ends)
    if isinstance(sets_or_refusal, Stuck):
        return sets_or_refusal
    return Bounds(
        tuple(_bound(value, dtype) for value, dtype in zip(sets_or_refusal.values, sets_or_refusal.types, strict=True))
    )


# ---- Positions of extremes ------------------------------------------------------------------------

MOST_STEPS: Final = 64
"""Of so many elements at most the position of an extreme is left open."""


@cache
def _favouring(step: int) -> Interpretation:
    return interpreter(replace(BOUND, name=f"bound, step {step}", codes=favouring(step)))


def _in_each_position(
    application: Application, sets: Sequence[Array | None], steps: int, ends: Sequence[str]
) -> Outputs | Stuck:
    """What the outputs may be together where each extreme is at one step, as far as it may be, and then at the next.
    ends: by position argmax or argmin where an output is the extreme itself."""
    every = [_favouring(step)(application, sets) for step in range(-1, steps)]
    given = [it for it in every if isinstance(it, Outputs)]
    if len(given) < len(every):
        return next(it for it in every if isinstance(it, Stuck))
    first = given[0]  # where none is favoured, it is at the one that is the farthest out even so
    made: list[values.Value | None] = []
    for position, (value, dtype) in enumerate(zip(first.values, first.types, strict=True)):
        arrays = [it for other in given if isinstance(it := other.values[position], np.ndarray)]
        if value is None or dtype is None:
            made.append(None)
        elif len(arrays) < len(given):
            raise Unsupported("a value that is not known decides what is computed")
        else:
            all_of = [lift(dtype)(it) for it in arrays]
            together = reduce(hull, all_of[1:])
            made.append(_at_least(together, all_of[0], ends[position]))
    return replace(first, values=tuple(made))


def _at_least(x: Array, end: Array, name: str) -> Array:
    """The sets without what is less far out than each of some others must be, one end of which is an end of these."""
    if not name or x.dtype != FLOAT_SET:
        return x
    out = np.array(x)
    if name == "argmax":
        limit = np.where(np.isnan(end["low"]), -np.inf, np.fmin(end["low"], end["least"]))
        limit = np.where(limit == 0, -0.0, limit)
        for field in ("low", "least"):
            out[field] = np.where(x[field] < limit, limit, x[field])
    else:
        limit = np.where(np.isnan(end["low"]), np.inf, np.fmax(end["high"], end["most"]))
        limit = np.where(limit == 0, 0.0, limit)
        for field in ("high", "most"):
            out[field] = np.where(x[field] > limit, limit, x[field])
    return out


def exactly(x: Array) -> Allowed:
    """A tensor as one whose elements are known."""
    result = allowed(lift(x.dtype)(x), x.dtype)
    if not isinstance(result, Allowed):
        raise InternalError("texts have no bounds")
    return result


def _as_sets(given: Allowed) -> Array:
    if not is_float(given.type):
        out: Array = np.empty(given.least.shape, storage(given.type))
        out["low"], out["high"] = given.least, given.most
        return out
    return packed(given.low, given.high, given.least, given.most, np.asarray(given.maybe_nan), np.asarray(given.nan))


def _bound(value: values.Value | None, dtype: DType | None) -> Bound:
    match value:
        case None:
            return None
        case values.Sequence(items=items):
            return tuple(_bound(item, dtype) for item in items)
        case values.Optional(item=item):
            return () if item is None else (_bound(item, dtype),)
        case np.ndarray():
            return allowed(value, dtype)
        case values.Map(items=items):
            return tuple(_bound(item, dtype) for _, item in items)


def allowed(sets: Array, dtype: DType | None) -> Allowed | Array:
    """The sets in an array of the bound arithmetic as what is allowed of a tensor; texts as they are."""
    if dtype is None:
        raise InternalError("an output without an element type")
    if dtype == np.dtype(object):
        return sets
    if is_float(dtype) and not is_set(sets):
        value = sets.astype(np.float64, copy=False)
        nan = np.isnan(value)
        return Allowed(dtype, value, value, nan, nan, value, value)
    sets = lift(dtype)(sets)
    never = np.zeros(sets.shape, bool)
    if sets.dtype != FLOAT_SET:
        first, last = (np.array(sets[name]).astype(carrier_of(dtype)) for name in ("low", "high"))
        return Allowed(dtype, first, last, never, never, first, last)
    a = opened(sets)
    low, high = np.broadcast_to(a.low, sets.shape), np.broadcast_to(a.high, sets.shape)
    maybe, sure = a.maybe if a.maybe is not None else never, a.sure if a.sure is not None else never
    return Allowed(dtype, np.array(sets["least"]), np.array(sets["most"]), maybe, sure, low, high)
