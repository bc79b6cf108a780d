"""The bound interpretation: which values an application of an operator may give, whatever the order of its sums.

One evaluator, another table of element arithmetic (`elements.bound`): an element is the set of values that the text
allows. Allowed is what an implementation gets that does the operations of the text, each rounded to nearest in the
element type or, where it is not the last one, in any wider type; with a multiplication and an addition fused or not;
with the terms of a sum, and what is added to it, in any order or tree; with functions off by their stated accuracy.

It is rigorous in double: ends of intervals are rounded outwards, known to be exact by error-free transformations where
they are not moved, and sums count the error of their own evaluation (`elements.bounds.moments`). A result of one
operation on given numbers is thereby its one correctly rounded value. Where a value that is not known decides what is
computed, such as which element a maximum is taken from, the interpretation is partial: Unsupported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...errors import InternalError
from ...model import values
from ...model.elements import DType, is_float
from ..application import Application, Stuck
from .elements.bound import BOUND
from .elements.bounds.storage import FLOAT_SET, carrier_of, is_set, lift, opened, packed, storage
from .ieee import interpreter
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
    sets_or_refusal = _apply(application, sets)
    if isinstance(sets_or_refusal, Stuck):
        return sets_or_refusal
    return Bounds(
        tuple(_bound(value, dtype) for value, dtype in zip(sets_or_refusal.values, sets_or_refusal.types, strict=True))
    )


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
