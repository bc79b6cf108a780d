"""Pooling (MaxPool, AveragePool, GlobalAveragePool): a window of several axes is one window along each axis in turn.

Sums of floats of 16 bits are computed in float and rounded once, before they are divided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Final

import numpy as np

from ..functions import integer_range, is_integer, narrow, summing
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site, unprepared
from ..reading import asked, integer, require, tensor
from ..repeating import Call, Phase, Ready, Repeatable
from ..windows import Placed, Sizes, Window, part, place, window_of
from ..workers import byte_parts, cuts

INT64 = np.dtype(np.int64)
BLOCK_BYTES: Final = 1 << 20
"""About how many bytes of the data are combined at a time."""


def pool_at(window: Window, ceil_mode: int, version: int, x: Sizes) -> Placed:
    """The window over data of shape x. Raises KernelError for what ONNX or SONNX excludes.

    From version 22 on a window that starts in the padding at the end, or behind it, does not count; before, there may
    be none.
    """
    require(len(x) >= 2, "X has two axes before the spatial ones")
    require(window.kernel is not None, "kernel_shape is stated")
    require(ceil_mode in (0, 1), "ceil_mode is 0 or 1")
    placed = place(window, x[2:], window.kernel or ())
    up = tuple((p - e + s - 1) // s + 1 for p, e, s in zip(placed.padded, placed.extent, placed.strides, strict=True))
    if not ceil_mode or window.auto_pad.startswith("SAME"):
        return placed
    if window.auto_pad == "VALID":
        require(up == placed.count, "with VALID ceil_mode changes nothing")
        return placed
    limit = tuple((d + b + s - 1) // s for d, b, s in zip(placed.data, placed.before, placed.strides, strict=True))
    if version < 22:
        require(all(u <= m for u, m in zip(up, limit, strict=True)), "no window starts in the padding at the end")
    count = tuple(map(min, up, limit))
    fields = (placed.data, placed.kernel, placed.strides, placed.dilations, placed.before, placed.after)
    return Placed(*fields, placed.padded, placed.extent, count)


def _valid(placed: Placed, axis: int, tap: int, first: int, size: int) -> tuple[int, int]:
    """The positions y from which the tap reads an element: 0 <= y * stride + tap * dilation - first < size."""
    s, at = placed.strides[axis], tap * placed.dilations[axis] - first
    low = max(0, -(at // s))
    return low, max(low, min(placed.count[axis], (size - at + s - 1) // s))


def _require_data(placed: Placed) -> None:
    """Each window has an element of the data."""
    if 0 in placed.count:
        return
    for axis, count in enumerate(placed.count):
        met = np.zeros(count, bool)
        for tap in range(placed.kernel[axis]):
            low, high = _valid(placed, axis, tap, placed.before[axis], placed.data[axis])
            met[low:high] = True
        require(bool(met.all()), "each window meets the data")


def _along(x: Array, placed: Placed, axis: int, combine: Callable[..., Array], empty: float, out: Array) -> list[Call]:
    """Combine the elements of x under the window along one spatial axis; the others stay as they are."""
    before, size = (slice(None),) * (axis + 1), placed.data[axis]
    ranges = [_valid(placed, axis, tap, placed.before[axis], size) for tap in range(placed.kernel[axis])]
    whole = next((tap for tap, span in enumerate(ranges) if span == (0, placed.count[axis])), None)
    order = [tap for tap, (low, high) in enumerate(ranges) if tap != whole and low < high]
    order.sort(key=lambda tap: ranges[tap][0] - ranges[tap][1])
    calls: list[Call] = []
    if whole is None:
        calls.append(partial(out.fill, empty))
    elif not order:
        calls.append(partial(np.copyto, out, x[(*before, _source(placed, axis, whole, ranges[whole]))]))
    else:
        tap, *order = order
        low, high = ranges[tap]
        for start, stop in ((0, low), (high, placed.count[axis])):
            if start < stop:
                edge = x[(*before, _source(placed, axis, whole, (start, stop)))]
                calls.append(partial(np.copyto, out[(*before, slice(start, stop))], edge))
        operands = (x[(*before, _source(placed, axis, it, (low, high)))] for it in (whole, tap))
        calls.append(partial(combine, *operands, out=out[(*before, slice(low, high))]))
    for tap in order:
        low, high = ranges[tap]
        goal = out[(*before, slice(low, high))]
        calls.append(partial(combine, goal, x[(*before, _source(placed, axis, tap, (low, high)))], out=goal))
    return calls


def _source(placed: Placed, axis: int, tap: int, span: tuple[int, int]) -> slice:
    s = placed.strides[axis]
    start = span[0] * s + tap * placed.dilations[axis] - placed.before[axis]
    return slice(start, start + (span[1] - span[0] - 1) * s + 1, s)


@lru_cache(maxsize=64)
def inside(placed: Placed) -> tuple[int, int]:
    """The positions along the last axis at which the whole window lies in the data; one element of the window does so
    at every position. (0, 0) otherwise, and where those are few or the window is one element."""
    spans = [_valid(placed, -1, tap, placed.before[-1], placed.data[-1]) for tap in range(placed.kernel[-1])]
    low, high = max(it[0] for it in spans), min(it[1] for it in spans)
    usual = placed.kernel[-1] > 1 and (0, placed.count[-1]) in spans and 2 * (high - low) >= placed.count[-1]
    return (low, high) if usual else (0, 0)


def _along_rows(x: Array, placed: Placed, combine: Callable[..., Array], memory: Array, out: Array) -> list[Call]:
    """As `_along`, for the last axis: rows are short, so the data are combined as if they were one row.

    What is combined across the ends of rows is not used; the positions at either end are computed apart.
    """
    low, high = inside(placed)
    flat, dense = x.reshape(-1), memory.reshape(-1)
    length = flat.size - placed.extent[-1] + 1
    shifts = [tap * placed.dilations[-1] for tap in range(placed.kernel[-1])]
    goal = dense[:length]
    calls: list[Call] = [partial(combine, flat[:length], flat[shifts[1] : shifts[1] + length], out=goal)]
    calls += [partial(combine, goal, flat[shift : shift + length], out=goal) for shift in shifts[2:]]
    calls.append(partial(np.copyto, out[..., low:high], memory[..., _source(placed, -1, 0, (low, high))]))
    for at in (*range(low), *range(high, placed.count[-1])):
        first = at * placed.strides[-1] - placed.before[-1]
        columns = [x[..., first + shift] for shift in shifts if 0 <= first + shift < placed.data[-1]]
        edge = out[..., at]
        calls.append(partial(np.copyto, edge, columns[0]))
        calls += [partial(combine, edge, column, out=edge) for column in columns[1:]]
    return calls


def _windowed(
    x: Array, placed: Placed, combine: Callable[..., Array], empty: float, allocate: Allocate, out: Array
) -> Phase:
    """Combine the elements of x under each position of the window, axis by axis; the last axis gives `out`."""
    shape, targets = x.shape, []
    flat = inside(placed) != (0, 0) and x.size > 0
    last = len(placed.count) - 1
    memory = None
    for axis, count in enumerate(placed.count):
        if flat and axis == last:
            memory = allocate(shape, x.dtype)
        shape = (*shape[: axis + 2], count, *shape[axis + 3 :])
        targets.append(out if axis == last else allocate(shape, x.dtype))
    parts = byte_parts(x.nbytes, BLOCK_BYTES, 2 * len(targets))
    pieces = cuts(x.shape[1], min(x.shape[1], -(-parts // max(1, x.shape[0]))))

    def calls(number: int, _worker: int) -> list[Call]:
        image, piece = number // len(pieces), pieces[number % len(pieces)]
        data, made = x[image, piece], list[Call]()
        for axis, target in enumerate(targets):
            goal = target[image, piece]
            if memory is not None and axis == last:
                made += _along_rows(data, placed, combine, memory[image, piece], goal)
            else:
                made += _along(data, placed, axis, combine, empty, goal)
            data = goal
        return made

    return Phase(x.shape[0] * len(pieces), calls)


# ---- MaxPool ----------------------------------------------------------------------------------


def _has_negative_zero(x: Array) -> bool:
    """True where an element is -0.0, whose code is the least integer of its size."""
    if is_integer(x.dtype) or not x.size:
        return False
    code, least = _codes(x.itemsize)
    return bool(np.ascontiguousarray(x).view(code).min() == least)


@cache
def _codes(size: int) -> tuple[np.dtype[np.generic], int]:
    """The integers of so many bytes, and the least of them."""
    code = np.dtype(f"i{size}")
    return code, int(np.iinfo(code).min)


def _least(x: Array) -> float:
    return integer_range(x.dtype)[0] if is_integer(x.dtype) else -np.inf


def _max_pool(site: Site) -> Compute:
    window, ceil_mode = window_of(site), integer(site, "ceil_mode")
    order, indices = integer(site, "storage_order"), asked(site, 1)

    @lru_cache(maxsize=8)
    def fitted(x: Sizes) -> Placed:
        require(order in (0, 1), "storage_order is 0 or 1")
        placed = pool_at(window, ceil_mode, site.version, x)
        _require_data(placed)
        return placed

    def ready(inputs: Inputs, allocate: Allocate) -> Ready:
        x = tensor(inputs, 0)
        placed = fitted(x.shape)
        out = allocate((*x.shape[:2], *placed.count), x.dtype)
        where = allocate(out.shape, INT64) if indices else None
        usual = _windowed(x, placed, np.maximum, _least(x), allocate, out) if where is None else None

        def pool() -> None:
            if usual is None or _has_negative_zero(x):
                _greatest_first(x, placed, order, out, where)
            else:
                usual.run()

        values = None if not asked(site, 0) else out
        outputs = (values, where) if len(site.outputs) > 1 else (values,)
        return Ready(outputs, [Phase(1, lambda _part, _worker: [pool])], x.flags.c_contiguous)

    return Repeatable(ready)


def _greatest_first(x: Array, placed: Placed, order: int, out: Array, where: Array | None) -> None:
    """The first of the greatest elements under each position, in row-major order, and where it stands in x."""
    rank = len(placed.data)
    out[...] = _least(x)
    places = np.full(out.shape, -1, np.int64)
    strides = [math.prod(placed.data[k + 1 :] if order == 0 else placed.data[:k]) for k in range(rank)]
    for tap in np.ndindex(*placed.kernel):
        spans = [_valid(placed, k, tap[k], placed.before[k], placed.data[k]) for k in range(rank)]
        if any(low == high for low, high in spans):
            continue
        source = [_source(placed, k, tap[k], spans[k]) for k in range(rank)]
        goal = [slice(*span) for span in spans]
        seen, best, positions = part(x, source), part(out, goal), part(places, goal)
        better = (seen > best) | (positions < 0)
        if not is_integer(x.dtype):
            better |= np.isnan(seen) & ~np.isnan(best)
        at = sum(
            np.arange(s.start, s.stop, s.step).reshape(-1, *(1,) * (rank - 1 - k)) * strides[k]
            for k, s in enumerate(source)
        )
        np.copyto(best, seen, where=better)
        np.copyto(positions, at, where=better)
    if where is not None:
        images = np.arange(x.shape[0] * x.shape[1], dtype=np.int64).reshape(*x.shape[:2], *(1,) * rank)
        np.add(places, images * math.prod(placed.data), out=where)


# ---- AveragePool ------------------------------------------------------------------------------


NOTHING: Final = -0.0
"""A term that changes no sum; one of the padding, or beyond it, is 0.0, which makes a sum of -0.0 alone 0.0."""


def _average_pool(site: Site) -> Compute:
    window, ceil_mode = window_of(site), integer(site, "ceil_mode")
    padding_counts = integer(site, "count_include_pad") != 0

    @lru_cache(maxsize=8)
    def fitted(x: Sizes, dtype: np.dtype[np.generic]) -> tuple[Placed, Array, Array | None]:
        placed = pool_at(window, ceil_mode, site.version, x)
        if not padding_counts:
            _require_data(placed)
        padded = counts_at(placed, False) != math.prod(placed.kernel)
        zeros = np.where(padded, 0.0, NOTHING).astype(summing(dtype)) if padded.any() else None
        return placed, narrow(counts_at(placed, padding_counts), dtype), zeros

    def ready(inputs: Inputs, allocate: Allocate) -> Ready:
        x = tensor(inputs, 0)
        placed, counts, zeros = fitted(x.shape, x.dtype)
        out = allocate((*x.shape[:2], *placed.count), x.dtype)
        kind = summing(x.dtype)
        sums = out if kind == x.dtype else allocate(out.shape, kind)
        summed = _windowed(x.astype(kind) if kind != x.dtype else x, placed, np.add, NOTHING, allocate, sums)

        def rest(_part: int, _worker: int) -> list[Call]:
            calls: list[Call] = [] if zeros is None else [partial(np.add, sums, zeros, out=sums)]
            if sums is not out:
                calls.append(partial(np.copyto, out, sums, "unsafe"))
            return [*calls, partial(np.divide, out, counts, out=out)]

        return Ready((out,), [summed, Phase(1, rest)], kind == x.dtype and x.flags.c_contiguous)

    return Repeatable(ready)


def counts_at(placed: Placed, padding_counts: bool) -> Array:
    """The number of elements at each position of the window, as doubles."""
    counts = np.ones((), np.float64)
    for axis, count in enumerate(placed.count):
        number = np.zeros(count)
        first = 0 if padding_counts else placed.before[axis]
        size = placed.padded[axis] if padding_counts else placed.data[axis]
        for tap in range(placed.kernel[axis]):
            low, high = _valid(placed, axis, tap, first, size)
            number[low:high] += 1
        counts = counts[..., None] * number
    return counts


@unprepared
def _global_average_pool(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x = tensor(inputs, 0)
    require(x.ndim > 2, "X has at least one spatial axis")
    require(0 not in x.shape[2:], "no spatial axis is empty")
    out = allocate((*x.shape[:2], *(1,) * (x.ndim - 2)), x.dtype)
    sums = np.sum(x, axis=tuple(range(2, x.ndim)), dtype=summing(x.dtype), keepdims=True, initial=NOTHING)
    count = narrow(np.asarray(float(math.prod(x.shape[2:]))), x.dtype)
    np.divide(sums.astype(x.dtype), count, out=out)
    return (out,)


KERNELS: Mapping[str, tuple[Kernel, ...]] = {
    "MaxPool": (Kernel(1, 22, _max_pool),),
    "AveragePool": (Kernel(7, 22, _average_pool),),
    "GlobalAveragePool": (Kernel(1, 22, _global_average_pool),),
}
