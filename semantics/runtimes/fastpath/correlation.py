"""Cross-correlation of data with kernels, as products of matrices: what Conv and its relatives for integers share.

There are five ways, and sizes decide between them. A kernel of one element that visits all data is one product;
kernels that read one channel each take the shifted data of the channel; few kernels that read many channels are
multiplied with all data for each position of the kernel, and the products are shifted and added; where kernels step by
one, the elements under a row of the kernel are gathered, and the products with each of its rows added; all others
gather the elements under each position of the kernel as columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import numpy as np

from .kernel import Allocate, Array
from .repeating import Call, Phase
from .windows import Placed, Sizes, part
from .workers import byte_parts, cuts, product_lead, product_parts


def phased(placed: Placed, split: Sizes) -> Sizes:
    """The shape of one channel of `fill`: split..., ceil(padded / split)..."""
    return (*split, *(-(-p // s) for p, s in zip(placed.padded, split, strict=True)))


def fill(columns: Array, x: Array, placed: Placed, split: Sizes) -> list[Call]:
    """Write the padded data, each spatial axis split by position modulo `split`; what lies beyond them is 0.

    The shapes: channels..., then those of the data, and of `phased`.
    """
    r = len(split)
    exact = all(p == d and p % s == 0 for p, d, s in zip(placed.padded, placed.data, split, strict=True))
    calls: list[Call] = [] if exact else [partial(columns.fill, 0)]
    for phase in np.ndindex(*split):
        source: list[slice] = []
        target: list[slice] = []
        for k in range(r):
            first = (phase[k] - placed.before[k]) % split[k]
            start = (first + placed.before[k]) // split[k]
            count = max(0, -(-(placed.data[k] - first) // split[k]))
            source.append(slice(first, None, split[k]))
            target.append(slice(start, start + count))
        calls.append(partial(np.copyto, part(columns, (*phase, *target)), part(x, source)))
    return calls


Way = Literal["directly", "channels", "taps", "rows", "columns"]
Finish = Callable[[int, slice, slice], list[Call]]
"""What is done with a part of the result when it has been written: an image, kernels, positions in row-major order."""
Correlate = Callable[[Array, Array, Array, Allocate, Finish], list[Phase]]
"""Write the correlation of data with kernels (`laid`) to the third array. All have one type, float or double, and are
contiguous. The last argument: asked once for each part of the result."""


def nothing_more(_image: int, _kernels: slice, _places: slice) -> list[Call]:
    """A `Finish` for a result that is left as it is."""
    return []


TAPS_ELEMENTS: Final = 4 << 20
"""Products of all positions of the kernel are kept up to so many elements."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """Sizes. images, channels: of the data. group: the channels of a group are channels / group. kernels: in all."""

    images: int
    channels: int
    group: int
    kernels: int
    placed: Placed

    @property
    def shape(self) -> Sizes:
        """The shape of the result."""
        return (self.images, self.kernels, *self.placed.count)

    @property
    def each(self) -> int:
        """The number of kernels in a group."""
        return self.kernels // self.group

    @property
    def read(self) -> int:
        """The number of channels that a kernel reads."""
        return self.channels // self.group

    @property
    def taps(self) -> int:
        """The number of positions of a kernel."""
        return math.prod(self.placed.kernel)

    @property
    def positions(self) -> int:
        """The number of positions that a kernel visits in an image."""
        return math.prod(self.placed.count)


def way_of(how: Correlation) -> Way:
    """The way that moves the fewest elements."""
    placed = how.placed
    if placed.is_same:
        return "directly"
    if how.channels == how.group and how.group > 1:
        return "channels"
    steps_by_one = placed.strides == (1,) * len(placed.strides)
    few = how.group == 1 and how.taps > 1 and 3 * how.kernels <= 2 * how.channels
    if steps_by_one and few and how.taps * how.kernels * math.prod(placed.padded) <= TAPS_ELEMENTS:
        return "taps"
    if steps_by_one and how.group == 1 and placed.kernel[0] > 1 and how.channels * _inner(how) >= ROW_TERMS:
        return "rows"
    return "columns"


def _inner(how: Correlation) -> int:
    """The number of positions in a row of a kernel."""
    return math.prod(how.placed.kernel[1:])


def laid(kernels: Array, how: Correlation) -> Array:
    """The kernels as `Correlate` takes them: contiguous, for some ways in an order of their own."""
    if way_of(how) == "taps":
        rows = kernels.reshape(how.kernels, how.channels, how.taps).transpose(2, 0, 1)
        return np.ascontiguousarray(rows).reshape(how.taps * how.kernels, how.channels)
    if way_of(how) == "rows":
        high, inner = how.placed.kernel[0], _inner(how)
        each = kernels.reshape(how.kernels, how.channels, high, inner).transpose(2, 0, 3, 1)
        return np.ascontiguousarray(each).reshape(high, how.kernels, inner * how.channels)
    return np.ascontiguousarray(kernels)


# ---- Parts of the result ----------------------------------------------------------------------


def _tiles(how: Correlation, most: int, kernels: bool) -> tuple[int, list[tuple[slice, slice]], int]:
    """The parts in which an image is computed: kernels, and output rows on the first axis, `most` at a time.

    Before them the number of workers, behind them the greatest number of rows. kernels: these may be parted, which is
    done where there are more of them than positions: the greater factor of a product is read once.
    """
    height = how.placed.count[0]
    terms = how.kernels * how.read * how.taps * how.positions
    workers = product_parts(terms)
    each = [slice(0, how.kernels)]
    blocks = -(-height // min(height, most))
    if kernels and how.group == 1 and how.kernels > how.positions:
        each = cuts(how.kernels, workers, product_lead(terms) if how.images * blocks == 1 else 0)
    elif workers > 1:
        blocks = min(height, -(-blocks // workers) * workers)
    rows = cuts(height, blocks, product_lead(terms) if 1 < how.images * blocks == workers else 0)
    tiles = [(some, row) for row in rows for some in each]
    return min(workers, how.images * len(tiles)), tiles, max(row.stop - row.start for row in rows)


def _places(how: Correlation, rows: slice) -> slice:
    """The positions of output rows."""
    rest = math.prod(how.placed.count[1:])
    return slice(rows.start * rest, rows.stop * rest)


def _lay(goal: Array, x: Array, placed: Placed, starts: Sizes) -> list[Call]:
    """Write a part of the padded data: channels, then spatial axes that begin at these positions."""
    source: list[slice] = []
    target: list[slice] = []
    calls: list[Call] = []
    for axis, (start, before, size) in enumerate(zip(starts, placed.before, placed.data, strict=True)):
        at, count = start - before, goal.shape[axis + 1]
        low = min(max(0, -at), count)
        high = max(low, min(count, size - at))
        if low:
            calls.append(partial(goal[(slice(None), *target, slice(0, low))].fill, 0))
        if high < count:
            calls.append(partial(goal[(slice(None), *target, slice(high, None))].fill, 0))
        target.append(slice(low, high))
        source.append(slice(low + at, high + at))
    return [*calls, partial(np.copyto, part(goal, target), part(x, source))]


# ---- Kernels that read one channel each: shifts of the flat padded data ---------------------------

CHANNEL_BYTES: Final = 4 << 20
"""About how many bytes of shifted channels are gathered at a time."""
_CHANNEL_PASSES: Final = 3
"""What is done with them takes about as long as so many elementwise steps."""


def _by_channels(how: Correlation, itemsize: int) -> Correlate:
    """As `prepared`, for as many groups as channels."""
    placed, each, taps = how.placed, how.each, how.taps
    s = placed.strides
    shape = phased(placed, s)
    sizes = shape[len(s) :]
    pitch = [math.prod(sizes[k + 1 :]) for k in range(len(s))]
    length = sum((o - 1) * p for o, p in zip(placed.count, pitch, strict=True)) + 1
    whole = placed.count[0] * pitch[0]
    row = (taps + each) * whole * itemsize
    parts = byte_parts(how.channels * row, passes=_CHANNEL_PASSES)
    wanted = max(parts, -(-how.channels * row // CHANNEL_BYTES))
    block = -(-how.channels // min(how.channels, -(-wanted // parts) * parts))
    shown = tuple(slice(0, o) for o in placed.count)
    steps = tuple(t * p * itemsize for t, p in zip(placed.dilations, pitch, strict=True))
    places = [_shift(offset, placed, s, pitch) for offset in np.ndindex(*placed.kernel)]
    blocks = -(-how.channels // block)
    split, everything = math.prod(s), slice(0, how.positions)

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish) -> list[Phase]:
        padded = allocate((parts, block, math.prod(shape)), x.dtype)
        columns = allocate((parts, block, taps, length), x.dtype)
        sums = allocate((parts, block, each, whole), x.dtype)
        weights = kernels.reshape(how.channels, each, taps)
        target = out.reshape(how.images, how.channels, each, *placed.count)

        def calls(number: int, worker: int) -> list[Call]:
            image, first = number // blocks, number % blocks * block
            count = min(block, how.channels - first)
            source = padded[worker, :count]
            made = fill(source.reshape(count, *shape), x[image, first : first + count], placed, s)
            data = source.reshape(count, split, -1)
            gathered, summed = columns[worker, :count], sums[worker, :count]
            if split == 1:
                strides = (source.strides[0], *steps, itemsize)
                under: Array = np.ndarray((count, *placed.kernel, length), x.dtype, source, 0, strides)
                made.append(partial(np.copyto, gathered.reshape(count, *placed.kernel, length), under))
            else:
                for tap, (phase, shift) in enumerate(places):
                    made.append(partial(np.copyto, gathered[:, tap], data[:, phase, shift : shift + length]))
            result = part(summed.reshape(count, each, placed.count[0], *sizes[1:]), shown)
            return [
                *made,
                partial(np.matmul, weights[first : first + count], gathered, out=summed[:, :, :length]),
                partial(np.copyto, target[image, first : first + count], result),
                *finish(image, slice(first * each, (first + count) * each), everything),
            ]

        return [Phase(how.images * blocks, calls, parts)]

    return correlate


def _shift(offset: Sizes, placed: Placed, s: Sizes, pitch: list[int]) -> tuple[int, int]:
    """For a position of the kernel the phase it reads and where, both in flat positions."""
    at = [k * t for k, t in zip(offset, placed.dilations, strict=True)]
    phase = 0
    for a, step in zip(at, s, strict=True):
        phase = phase * step + a % step
    return phase, sum(a // step * p for a, step, p in zip(at, s, pitch, strict=True))


# ---- Products for each position of the kernel, shifted and added ----------------------------------

TAP_BYTES: Final = 4 << 20
"""About how many bytes of such products are computed at a time."""


def _by_taps(how: Correlation, itemsize: int) -> Correlate:
    """As `prepared`, for strides of 1 and one group."""
    placed = how.placed
    rest, reach = math.prod(placed.padded[1:]), placed.extent[0] - 1
    pitch = [math.prod(placed.padded[k + 1 :]) for k in range(len(placed.data))]
    first, second, *others = (
        sum(k * t * p for k, t, p in zip(tap, placed.dilations, pitch, strict=True))
        for tap in np.ndindex(*placed.kernel)
    )
    most = max(_LEAST_ROWS, TAP_BYTES // (how.taps * how.kernels * rest * itemsize) - reach)
    workers, tiles, rows = _tiles(how, most, False)
    shown = tuple(slice(0, o) for o in placed.count[1:])
    short = sum((o - 1) * p for o, p in zip(placed.count[1:], pitch[1:], strict=True)) + 1
    corner = (0,) * (len(placed.data) - 1)

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish) -> list[Phase]:
        source = allocate((workers, how.channels, (rows + reach) * rest), x.dtype)
        products = allocate((workers, how.taps, how.kernels, (rows + reach) * rest), x.dtype)
        sums = allocate((workers, how.kernels, rows * rest), x.dtype)

        def calls(number: int, worker: int) -> list[Call]:
            image, (_, tile) = number // len(tiles), tiles[number % len(tiles)]
            count = tile.stop - tile.start
            size, length = (count + reach) * rest, (count - 1) * rest + short
            data, terms, total = source[worker, :, :size], products[worker, :, :, :size], sums[worker, :, :length]
            padded = data.reshape(how.channels, count + reach, *placed.padded[1:])
            left, right = terms[0, :, first : first + length], terms[1, :, second : second + length]
            shifted = (terms[tap, :, offset : offset + length] for tap, offset in enumerate(others, 2))
            summed = sums[worker, :, : count * rest].reshape(how.kernels, count, *placed.padded[1:])
            return [
                *_lay(padded, x[image], placed, (tile.start, *corner)),
                partial(np.matmul, kernels, data, out=terms.reshape(-1, size)),
                partial(np.add, left, right, out=total),
                *(partial(np.add, total, it, out=total) for it in shifted),
                partial(np.copyto, out[image, :, tile], part(summed, shown)),
                *finish(image, slice(0, how.kernels), _places(how, tile)),
            ]

        return [Phase(how.images * len(tiles), calls, workers, True)]

    return correlate


# ---- Columns of the elements under a row of the kernel --------------------------------------------

ROW_BYTES: Final = 4 << 20
"""About how many bytes of columns are gathered at a time."""
ROW_TERMS: Final = 96
"""The terms of a row that are worth a product of their own."""
_LEAST_ROWS: Final = 8


def _by_rows_of_kernels(how: Correlation, itemsize: int) -> Correlate:
    """As `prepared`, for strides of 1 and one group: row k of a kernel reads the columns of row 0, some rows below."""
    placed = how.placed
    rest, step = math.prod(placed.count[1:]), placed.dilations[0]
    reach = (placed.kernel[0] - 1) * step
    terms = how.channels * _inner(how)
    most = max(_LEAST_ROWS, ROW_BYTES // (terms * rest * itemsize) - reach)
    workers, tiles, rows = _tiles(how, most, True)
    inner = placed.dilations[1:]
    starts = [tuple(k * t for k, t in zip(tap, inner, strict=True)) for tap in np.ndindex(*placed.kernel[1:])]

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish) -> list[Phase]:
        columns = allocate((workers, terms, (rows + reach) * rest), x.dtype)
        memory = allocate((workers, how.kernels, rows * rest), x.dtype)
        target = out.reshape(how.images, how.kernels, how.positions)

        def calls(number: int, worker: int) -> list[Call]:
            image, (some, tile) = number // len(tiles), tiles[number % len(tiles)]
            count, at = tile.stop - tile.start, _places(how, tile)
            flat = columns[worker]
            gathered = flat.reshape(len(starts), how.channels, rows + reach, *placed.count[1:])[:, :, : count + reach]
            made: list[Call] = []
            for goal, start in zip(gathered, starts, strict=True):
                made += _lay(goal, x[image], placed, (tile.start, *start))
            goal, more = target[image, some, at], memory[worker, some, : count * rest]
            for k, matrix in enumerate(kernels[:, some]):
                shift = k * step * rest
                data = flat[:, shift : shift + count * rest]
                made.append(partial(np.matmul, matrix, data, out=more if k else goal))
                if k:
                    made.append(partial(np.add, goal, more, out=goal))
            return [*made, *finish(image, some, at)]

        return [Phase(how.images * len(tiles), calls, workers, True)]

    return correlate


# ---- Columns of the elements under each position --------------------------------------------------

COLUMN_BYTES: Final = 2 << 20
"""About how many bytes of columns are gathered at a time; `_MORE` times as many where products would be narrow."""
_MORE, _NARROW = 3, 256


def _by_columns(how: Correlation, itemsize: int) -> Correlate:
    """As `prepared`."""
    placed, r = how.placed, len(how.placed.data)
    split = (1,) * (r - 1) + (placed.strides[-1] if placed.kernel[-1] > 1 else 1,)
    copies = placed.padded != placed.data or split[-1] > 1
    shape = phased(placed, split)
    pieces = cuts(how.channels, byte_parts(how.channels * math.prod(placed.data) * itemsize))
    rest = math.prod(placed.count[1:])
    depth = how.channels * how.taps * rest
    workers, tiles, rows = _tiles(how, _rows(how, itemsize), True)
    whole = how.channels, *placed.kernel

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish) -> list[Phase]:
        phases: list[Phase] = []
        if copies:
            source = allocate((*x.shape[:2], *shape), x.dtype)
            phases.append(Phase(len(pieces), lambda k, _: fill(source[:, pieces[k]], x[:, pieces[k]], placed, split)))
        else:
            source = x.reshape(*x.shape[:2], *split, *x.shape[2:])
        matrices = kernels.reshape(how.group, how.each, how.read * how.taps)
        memory = allocate((workers, rows * depth), x.dtype)
        target = out.reshape(how.images, how.group, how.each, how.positions)

        def calls(number: int, worker: int) -> list[Call]:
            image, (some, tile) = number // len(tiles), tiles[number % len(tiles)]
            count, at = tile.stop - tile.start, _places(how, tile)
            columns = memory[worker, : count * depth].reshape(*whole, count, *placed.count[1:])
            data = columns.reshape(how.group, how.read * how.taps, -1)
            return [
                *_gather(columns, source[image], how, split[-1], tile.start),
                _multiply(matrices, some, data, target[image], at),
                *finish(image, some, at),
            ]

        return [*phases, Phase(how.images * len(tiles), calls, workers, True)]

    return correlate


def _multiply(matrices: Array, some: slice, data: Array, target: Array, at: slice) -> Call:
    """Write the products of all groups, or of some kernels of the only one, to these positions."""
    if len(matrices) == 1:
        return partial(np.matmul, matrices[0, some], data[0], out=target[0, some, at])
    return partial(np.matmul, matrices, data, out=target[:, :, at])


def _rows(how: Correlation, itemsize: int) -> int:
    """The output rows that are computed at a time: few enough that their columns stay near the processor, enough that
    products are not narrow."""
    rest = math.prod(how.placed.count[1:])
    row = how.channels * how.taps * rest * itemsize
    wide = min(_MORE * COLUMN_BYTES // row, -(-_NARROW // rest))
    return max(1, COLUMN_BYTES // row, wide)


def _gather(columns: Array, source: Array, how: Correlation, split: int, first: int) -> list[Call]:
    """Copy the elements of an image under the kernel, at output rows from the first on."""
    r = len(how.placed.data)
    if split == 1:
        return [partial(np.copyto, columns, _under(source, how.placed, split, None, first, columns.shape))]
    under = (_under(source, how.placed, split, k, first, columns.shape) for k in range(how.placed.kernel[-1]))
    return [partial(np.copyto, part(columns, (k, *(slice(None),) * r)), it) for k, it in enumerate(under)]


def _under(source: Array, placed: Placed, split: int, last: int | None, first: int, shape: Sizes) -> Array:
    """The elements under the positions of the kernel with this last index, from an output row on.

    Shape: channels, kernel without its last axis, rows, other output axes. Without a last index: the whole kernel.
    """
    r = len(placed.data)
    s, t = placed.strides, placed.dilations
    at = 0 if last is None else last * t[-1]
    inner = r if last is None else r - 1
    strides = source.strides
    axes = strides[-r:]
    steps = [step * axis for step, axis in zip(s, axes, strict=True)]
    if split > 1:
        steps[-1] = axes[-1]
    offset = first * steps[0] + (at % split) * strides[r] + (at // split) * axes[-1]
    taps = [t[k] * axes[k] for k in range(inner)]
    return np.ndarray(
        (shape[0], *placed.kernel[:inner], *shape[1 + r :]),
        source.dtype,
        buffer=source,
        offset=offset,
        strides=(strides[0], *taps, *steps),
    )


# ---- The choice -----------------------------------------------------------------------------------


def prepared(how: Correlation, itemsize: int) -> Correlate:
    """The function that correlates data of these sizes, with elements of so many bytes."""
    ways = {
        "directly": directly,
        "channels": _by_channels,
        "taps": _by_taps,
        "rows": _by_rows_of_kernels,
        "columns": _by_columns,
    }
    nothing = 0 in how.shape or 0 in (how.read, how.taps)
    return _zeros(how) if nothing else ways[way_of(how)](how, itemsize)


def _zeros(how: Correlation) -> Correlate:
    def correlate(_x: Array, _kernels: Array, out: Array, _allocate: Allocate, finish: Finish) -> list[Phase]:
        def calls(_number: int, _worker: int) -> list[Call]:
            images = range(how.images if out.size else 0)
            more = (finish(image, slice(0, how.kernels), slice(0, how.positions)) for image in images)
            return [partial(out.fill, 0), *(call for it in more for call in it)]

        return [Phase(1, calls)]

    return correlate


DIRECT_BYTES: Final = 4 << 20
"""About how many bytes of the result are computed at a time where something is done with them."""


def directly(how: Correlation, itemsize: int) -> Correlate:
    """One product for each group and image, or a few."""
    rest = math.prod(how.placed.count[1:])
    workers, tiles, _ = _tiles(how, max(1, DIRECT_BYTES // (how.kernels * rest * itemsize), -(-_NARROW // rest)), True)

    def correlate(x: Array, kernels: Array, out: Array, _allocate: Allocate, finish: Finish) -> list[Phase]:
        matrices = kernels.reshape(how.group, how.each, how.read)
        data = x.reshape(how.images, how.group, how.read, how.positions)
        target = out.reshape(how.images, how.group, how.each, how.positions)

        def calls(number: int, _worker: int) -> list[Call]:
            image, (some, tile) = number // len(tiles), tiles[number % len(tiles)]
            at = _places(how, tile)
            return [_multiply(matrices, some, data[image, :, :, at], target[image], at), *finish(image, some, at)]

        return [Phase(how.images * len(tiles), calls, workers, True)]

    return correlate
