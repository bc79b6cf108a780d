"""The results of one application, judged by the specification: is each element among the results that are allowed?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Entries
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..errors import Unsupported
from ..model.elements import BITS, element_of
from ..model.schemas import draws
from ..model.values import Array, Map, Optional, Sequence, Value
from ..operators.application import Application, Outputs, Stuck
from ..operators.compiled import bound, ieee
from ..operators.compiled.bound import Allowed, Bound
from ..operators.compiled.elements.bounds import verdict as bound_verdict
from ..operators.compiled.elements.bounds.spellings import allowed_texts
from .inputs import type_text
from .memory import type_of
from .report import why

# ---- Single elements ----------------------------------------------------------------------------


Mask = NDArray[np.bool_]

_CODES: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True, slots=True)
class Shown:
    """An element for people: the shortest decimal that stands for it, and its bits in hexadecimal."""

    decimal: str
    hex: str


def codes(array: Array) -> NDArray[np.unsignedinteger]:
    """The bits of each element as an unsigned integer; complex numbers have none."""
    return np.ascontiguousarray(array).reshape(array.shape).view(_CODES[array.dtype.itemsize])


def is_float(array: Array) -> bool:
    """The elements are floating-point numbers, complex ones excepted."""
    return array.dtype.kind == "f" or (array.dtype.kind == "V" and "float" in element_of(array.dtype))


def nans(array: Array) -> Mask:
    """Which elements are NaN."""
    if is_float(array) or array.dtype.kind == "c":
        with np.errstate(invalid="ignore"):
            return np.asarray(array != array, np.bool_)
    return np.zeros(array.shape, np.bool_)


def same(expected: Array, given: Array) -> Mask:
    """Which elements agree in every bit; any NaN is any other. Both have one dtype and one shape."""
    if expected.dtype == object:
        return np.asarray(np.equal(expected, given), np.bool_).reshape(expected.shape)
    if expected.dtype.kind == "c":
        part = np.dtype(f"f{expected.dtype.itemsize // 2}")
        pairs = [np.ascontiguousarray(x).view(part).reshape(*x.shape, 2) for x in (expected, given)]
        return np.asarray(same(pairs[0], pairs[1]).all(axis=-1), np.bool_)
    equal = codes(expected) == codes(given)
    return np.asarray(equal | (nans(expected) & nans(given)), np.bool_)


def ulps(expected: Array, given: Array) -> NDArray[np.uint64] | None:
    """The number of numbers of the type that lie between, plus one; the difference of integers. None for other types.

    Where one of the two is NaN and the other is not, the count says nothing.
    """
    if expected.dtype == object or expected.dtype.kind in "cb":
        return None
    a, b = _ordered(expected), _ordered(given)
    return np.asarray(np.where(a > b, a.view(np.uint64) - b.view(np.uint64), b.view(np.uint64) - a.view(np.uint64)))


def _ordered(array: Array) -> NDArray[np.int64]:
    """Integers in the order of the elements, consecutive where the elements are."""
    element = element_of(array.dtype)
    if not is_float(array):
        if element == "uint64":
            return np.asarray(array).view(np.int64) ^ np.int64(-(2**63))
        return array.astype(np.int64)
    bits = codes(array).astype(np.uint64)
    if element == "float8e8m0":  # no sign
        return bits.astype(np.int64)
    sign = np.uint64(1 << (BITS[element] - 1))
    magnitude = (bits & (sign - np.uint64(1))).astype(np.int64)
    return np.where(bits & sign != 0, -magnitude, magnitude)


def shown(array: Array, index: tuple[int, ...]) -> Shown:
    """An element for people."""
    if array.dtype == object:
        text = array[index]
        spelled = text if isinstance(text, bytes) else str(text).encode()
        return Shown(ascii(spelled.decode("utf-8", "backslashreplace"))[1:-1], spelled.hex())
    one = np.asarray(array[index])
    if one.dtype.kind == "c":
        return Shown(str(complex(one.item())), one.astype(one.dtype.newbyteorder(">")).tobytes().hex())
    digits = -(-BITS[element_of(one.dtype)] // 4)
    bits = int(codes(one).item())
    if not is_float(one):
        decimal = str(bool(one)).lower() if one.dtype.kind == "b" else str(int(one.astype(object).item()))
        return Shown(decimal, f"{bits & ((1 << 4 * digits) - 1):0{digits}x}")
    decimal = np.format_float_scientific(one.reshape(1)[0], trim="-") if one.dtype.kind == "f" else str(float(one))
    if one.dtype.kind == "f" and (float(one) == 0 or 1e-4 <= abs(float(one)) < 1e7):
        decimal = np.format_float_positional(one.reshape(1)[0], trim="-")
    return Shown(decimal, f"{bits:0{digits}x}")


# ---- Values -------------------------------------------------------------------------------------


class Standing(StrEnum):
    """The standing of a tensor, or a whole node, to the specification. The later, the worse."""

    EXACT = "exact"
    WITHIN = "within the bound"
    FREE = "allowed freedom"
    UNDECIDED = "undecided"
    OUTSIDE = "outside the bound"


@dataclass(frozen=True, slots=True)
class Difference:
    """One element that differs from what the written order of rounding gives.

    ulps: how many numbers of the type lie between, plus one; None where one is NaN or the type has no order. ratio: the
    distance by the bound; None where there is none. place: which item of a sequence, "" for a tensor.
    """

    index: tuple[int, ...]
    expected: Shown
    found: Shown
    ulps: int | None
    ratio: float | None
    place: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """The elements of one value, counted by their standing. worst: the one with the greatest ratio, or the first one
    outside; first: the first one outside, in row-major order. ulps, ratio: the greatest. note: what else is wrong.
    """

    elements: int = 0
    exact: int = 0
    within: int = 0
    free: int = 0
    undecided: int = 0
    outside: int = 0
    ulps: int | None = None
    ratio: float | None = None
    first: Difference | None = None
    worst: Difference | None = None
    note: str = ""

    @property
    def standing(self) -> Standing:
        """The worst that is true of an element."""
        if self.outside or self.note:
            return Standing.OUTSIDE
        if self.undecided:
            return Standing.UNDECIDED
        if self.free:
            return Standing.FREE
        return Standing.WITHIN if self.within else Standing.EXACT


@dataclass(frozen=True, slots=True)
class Undefined:
    """The specification gives no result: the operator is stuck on these inputs, or has no meaning here."""

    why: str
    stuck: bool


class Applied:
    """An application with its results in the written order, and what is allowed of them, found when first asked for."""

    def __init__(self, application: Application, done: Outputs) -> None:
        self.application, self.done = application, done
        self._bounds: tuple[Bound, ...] | None = None

    def allowed(self, position: int) -> Bound:
        """The values that are allowed for an output; None where it is not known."""
        if self._bounds is None:
            try:
                bounds = bound.apply(self.application)
                self._bounds = () if isinstance(bounds, Stuck) else bounds.values
            except (Unsupported, MemoryError):
                self._bounds = ()
        return self._bounds[position] if position < len(self._bounds) else None

    @cached_property
    def random(self) -> bool:
        """The operator has several results, one of which is drawn."""
        return draws(self.application.op_type, self.application.version)

    def possible(self, results: tuple[Value | None, ...]) -> tuple[bound.Bounds, ...]:
        """The sets of outputs for the draws that can be told from the results, or for each that there is; empty
        where that is not known."""
        shape = next((it.shape for it in self.done.values if isinstance(it, np.ndarray)), ())
        shown = next((it for it in results if isinstance(it, np.ndarray) and it.dtype.kind in "biu"), None)
        outcomes = [np.full(shape, k, np.int64) for k in (0, 1)] if shown is None else [shown.astype(np.int64)]
        ranges = []
        try:
            for it in outcomes:
                drawn = replace(self.application.draw, outcomes=it, probed=shown is None)
                bounds = bound.apply(replace(self.application, draw=drawn))
                if isinstance(bounds, bound.Bounds):
                    ranges.append(bounds)
        except (Unsupported, MemoryError):
            return ()
        return tuple(ranges)


def applied(application: Application) -> Applied | Undefined:
    """The results by the specification for an application."""
    try:
        done = ieee.apply(application)
    except Unsupported as error:
        return Undefined(str(error), stuck=False)
    except MemoryError as error:
        return Undefined(f"no memory: {error}", stuck=False)
    if isinstance(done, Stuck):
        return Undefined(why(done), stuck=True)
    return Applied(application, done)


def judge(specified: Applied, results: tuple[Value | None, ...]) -> tuple[Judged | None, ...]:
    """The outputs of an application, None for one that is not asked for.

    A bit-identical result is allowed by definition; the bound is asked only where elements differ. Where the operator
    draws, an element that differs is one of the results that are allowed, or outside: its bits are compared with none.
    """
    application, done = specified.application, specified.done
    possible = specified.possible(results) if specified.random and any(it is not None for it in done.free) else None
    judged: list[Judged | None] = []
    for position, (expected, value) in enumerate(zip(done.values, results, strict=False)):
        if expected is None or not application.outputs[position]:
            judged.append(None)
        elif value is None:
            judged.append(Judged(note="there is no value"))
        else:
            free = done.free[position] if position < len(done.free) else None
            if possible is not None and isinstance(expected, np.ndarray) and isinstance(value, np.ndarray):
                judged.append(_drawn(expected, value, free, [it.values[position] for it in possible]))
                continue
            judged.append(_value(expected, value, free, partial(specified.allowed, position)))
    return tuple(judged)


def compared(expected: Value, given: Value) -> Judged:
    """Two values, each element of the second against the one of the first: what is not the same is outside."""
    return _value(expected, given, None, None)


def within(expected: Value, given: Value, allowed: Bound) -> Judged:
    """A value against what is allowed. expected: what the written order of rounding gives."""
    return _value(expected, given, None, lambda: allowed)


Ask = Callable[[], Bound]
"""The bound of a value; None where it is not known."""


def _value(expected: Value, given: Value, free: Mask | None, ask: Ask | None) -> Judged:
    pairs = list(_tensors(expected, given, ""))
    single = len(pairs) == 1
    parts = []
    for pair in pairs:
        if isinstance(pair, str):
            parts.append(Judged(note=pair))
        else:
            a, b, path = pair
            entry = None if ask is None else partial(_entry, ask, path)
            parts.append(_tensor(a, b, free if single else None, entry, "".join(f"[{i}]" for i in path)))
    return merged(parts)


def _entry(ask: Ask, path: tuple[int, ...]) -> Bound:
    allowed = ask()
    for position in path:
        if not isinstance(allowed, tuple) or position >= len(allowed):
            return None
        allowed = allowed[position]
    return allowed


def merged(parts: list[Judged]) -> Judged:
    """The counts of several tensors as those of one value."""
    if len(parts) == 1:
        return parts[0]
    distances = [it.ulps for it in parts if it.ulps is not None]
    ratios = [it.ratio for it in parts if it.ratio is not None]
    return Judged(
        sum(it.elements for it in parts),
        sum(it.exact for it in parts),
        sum(it.within for it in parts),
        sum(it.free for it in parts),
        sum(it.undecided for it in parts),
        sum(it.outside for it in parts),
        max(distances, default=None),
        max(ratios, default=None),
        next((it.first for it in parts if it.first is not None), None),
        max((it.worst for it in parts if it.worst is not None), key=lambda it: it.ratio or 0.0, default=None),
        "; ".join(dict.fromkeys(it.note for it in parts if it.note)),
    )


def _tensors(
    expected: Value, given: Value, path: tuple[int, ...] | str
) -> Iterator[tuple[Array, Array, tuple[int, ...]] | str]:
    """The tensors of two values in pairs, with their places, or what makes them no pair."""
    at = path if isinstance(path, tuple) else ()
    match expected, given:
        case np.ndarray(), np.ndarray():
            if expected.dtype != given.dtype or expected.shape != given.shape:
                yield _other(expected, given, at)
            else:
                yield expected, given, at
        case (Sequence(items=a), Sequence(items=b)) if len(a) == len(b):
            for position, (x, y) in enumerate(zip(a, b, strict=True)):
                yield from _tensors(x, y, (*at, position))
        case Optional(item=None), Optional(item=None):
            return
        case (Optional(item=x), Optional(item=y)) if x is not None and y is not None:
            yield from _tensors(x, y, (*at, 0))
        case (Optional(item=x), _) if x is not None and not isinstance(given, Optional):
            yield from _tensors(x, given, (*at, 0))  # runtimes give the value itself
        case (Map(items=a), Map(items=b)) if [k for k, _ in a] == [k for k, _ in b]:
            for position, ((_, x), (_, y)) in enumerate(zip(a, b, strict=True)):
                yield from _tensors(x, y, (*at, position))
        case _:
            yield _other(expected, given, at)


def _other(expected: Value, given: Value, at: tuple[int, ...]) -> str:
    place = f"item {list(at)} " if at else "it "
    return f"{place}is {type_text(type_of(given))}, expected {type_text(type_of(expected))}"


def _tensor(expected: Array, given: Array, free: Mask | None, ask: Ask | None, place: str) -> Judged:
    equal = same(expected, given)
    exact = int(equal.sum())
    if exact == expected.size:
        return Judged(expected.size, exact, ulps=0 if ulps_known(expected) else None)
    open_ = ~equal & free if free is not None else np.zeros_like(equal)
    rest = ~equal & ~open_
    allowed = ask() if ask is not None and rest.any() else None
    ratios = None
    undecided = fits = np.zeros_like(equal)
    if isinstance(allowed, Allowed):
        verdict = bound_verdict.judge(allowed, given, expected)
        fits, ratios = rest & verdict.allowed, verdict.ratio
    elif isinstance(allowed, np.ndarray):
        fits = rest & allowed_texts(allowed, given)
    elif ask is not None:
        undecided = rest
    outside = rest & ~fits & ~undecided
    distance = ulps(expected, given)
    unlike = nans(expected) != nans(given)
    comparable = rest & ~unlike
    greatest = int(distance[comparable].max()) if distance is not None and comparable.any() else None

    def difference(index: tuple[int, ...] | None) -> Difference | None:
        if index is None:
            return None
        far = None if distance is None or unlike[index] else int(distance[index])
        ratio = None if ratios is None else float(ratios[index])
        return Difference(index, shown(expected, index), shown(given, index), far, ratio, place)

    first = difference(_first(outside))
    return Judged(
        expected.size,
        exact,
        int(fits.sum()),
        int(open_.sum()),
        int(undecided.sum()),
        int(outside.sum()),
        greatest,
        None if ratios is None else float(ratios[rest].max()),
        first,
        difference(_worst(rest, ratios)) or first,
    )


def _drawn(expected: Array, given: Array, free: Mask | None, bounds: Entries[Bound]) -> Judged:
    """A tensor of an operator that draws. free: where the definition leaves the element open."""
    if expected.dtype != given.dtype or expected.shape != given.shape:
        return Judged(note=_other(expected, given, ()))
    allowed = np.zeros(expected.shape, np.bool_)
    for it in bounds:
        if isinstance(it, Allowed):
            allowed |= bound_verdict.judge(it, given, expected).allowed
    if not bounds:
        return Judged(expected.size, undecided=expected.size)
    outside = ~allowed
    open_ = int((allowed & free).sum()) if free is not None else 0
    at = _first(outside)
    first = None if at is None else Difference(at, shown(expected, at), shown(given, at), None, None)
    wrong = int(outside.sum())
    fixed = expected.size - wrong - open_
    return Judged(expected.size, 0, fixed, open_, 0, wrong, first=first, worst=first)


def ulps_known(array: Array) -> bool:
    """Distances of elements can be counted."""
    return array.dtype != object and array.dtype.kind not in "cb"


def _first(mask: Mask) -> tuple[int, ...] | None:
    flat = mask.reshape(-1)
    return tuple(int(i) for i in np.unravel_index(int(flat.argmax()), mask.shape)) if flat.any() else None


def _worst(rest: Mask, ratios: NDArray[np.float64] | None) -> tuple[int, ...] | None:
    if ratios is None or not rest.any():
        return None
    at = int(np.where(rest, ratios, -1.0).argmax())
    return tuple(int(i) for i in np.unravel_index(at, rest.shape))
