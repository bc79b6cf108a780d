"""From nodes at known shapes to a list of operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np

from ....model.graph import Node, TensorId
from ..functions import ERF_TABLES, INT32, SINGLE, narrow, scalar
from ..fusion import FUNCTIONS, Chain, Link, Operand, fits
from ..fusion import operations as functions_of
from ..kernel import Array, KernelError, Site
from ..kernels.convolution import correlation
from ..kernels.pooling import counts_at, pool_at
from ..kernels.shape import axis_of
from ..products import widened
from ..reading import integer, integers, number, text
from ..registry import numpy_kernels
from ..windows import Placed, window_of
from ..workers import THREADS
from . import operations
from .listing import BYTES, At, Listing, Shape, Step, address
from .operations import (
    ADD,
    AT_LEAST,
    CHANNEL,
    DIVIDE,
    DIVIDE_BY,
    FLOAT,
    FLOATS,
    MULTIPLY,
    ROW,
    SCALAR,
    SLACK,
    SUBTRACT,
    SUBTRACT_FROM,
    TENSOR,
)  # fmt: skip
from .processor import LANES, ROWS

_FUNCTIONS: Final[Mapping[object, tuple[int, int]]] = {
    np.add: (ADD, ADD),
    np.subtract: (SUBTRACT, SUBTRACT_FROM),
    np.multiply: (MULTIPLY, MULTIPLY),
    np.divide: (DIVIDE, DIVIDE_BY),
}
"""Functions of two operands: with the data at the left, at the right."""
INT64: Final = np.dtype(np.int64)
_ZERO: Final = np.zeros((), SINGLE)
_LANES: Final = 64
"""The greatest elements of a row that are found side by side."""
_PART: Final = 64 << 10
"""About how many elements of elementwise work are a part of an operation."""


class UnfitError(Exception):
    """There is no operation for a node at these shapes."""


def each_of(count: int, elements: int) -> tuple[int, int]:
    """Into how many parts `count` things of so many elements are cut, and how many there are in each."""
    each = max(1, min(-(-count // THREADS) if count * elements > _PART else count, -(-_PART // max(1, elements))))
    return -(-count // each), each


# ---- Chains -----------------------------------------------------------------------------------


def steps_of(listing: Listing, links: Sequence[Link], shape: Shape) -> list[Step]:
    """The steps of links on data of this shape, the operands by channels. Raises UnfitError."""
    beside = {t: np.broadcast_to(_ZERO, listing.shapes[t]) for link in links for t in link.read}
    if not all(fits(link, shape, SINGLE, beside) for link in links):
        raise UnfitError
    made: list[Step] = []
    for function, left, right in functions_of(links):
        if function not in _FUNCTIONS:
            made.append((AT_LEAST, SCALAR, At(_ZERO)))
            continue
        operand = left if right is None else right
        code = _FUNCTIONS[function][0 if left is None else 1]
        made.append((code, _kind(operand), _operand(listing, operand)))
    return made


def _kind(operand: Operand) -> int:
    return TENSOR if isinstance(operand, int) else CHANNEL if operand is not None and operand.ndim else SCALAR


def _operand(listing: Listing, operand: Operand) -> At:
    if operand is None:
        raise UnfitError
    return listing.at(operand) if isinstance(operand, int) else At(np.ascontiguousarray(operand))


def _by_rows(listing: Listing, links: Sequence[Link], shape: Shape) -> list[Step]:
    """The steps of links on data of this shape, the operands by rows of the last axis. Raises UnfitError."""
    made: list[Step] = []
    for link in links:
        if link.op_type == "Relu":
            made.append((AT_LEAST, SCALAR, At(_ZERO)))
            continue
        if link.op_type not in FUNCTIONS:
            raise UnfitError
        left, right = link.operands
        operand = left if right is None else right
        code = _FUNCTIONS[FUNCTIONS[link.op_type]][0 if left is None else 1]
        if operand is None or (isinstance(operand, np.ndarray) and operand.dtype != SINGLE):
            raise UnfitError
        given = listing.shapes[operand] if isinstance(operand, int) else operand.shape
        sizes = given if given == shape else tuple(given[k] for k in range(len(given)) if math.prod(given[: k + 1]) > 1)
        if len(given) > len(shape) or sizes not in (shape, shape[-1:], ()):
            raise UnfitError
        kind = SCALAR if sizes == () else TENSOR if sizes == shape and len(shape) > 1 else ROW
        made.append((code, kind, _operand(listing, operand)))
    return made


def elementwise(listing: Listing, chain: Chain) -> None:
    """A chain without a convolution."""
    for source, links, goal in _pieces(listing, chain):
        _linked(listing, source, links, goal)


def _pieces(listing: Listing, chain: Chain) -> Iterator[tuple[TensorId, Sequence[Link], TensorId]]:
    """What flows into links that leave its shape as it is, the links, what they write. Where a result is larger than
    the data, the operand that is as large goes on instead of them."""
    (source,) = chain.first
    if source is None:
        raise UnfitError
    flow, links = source, list[Link]()
    for link, single in zip(chain.links, chain.singles, strict=True):
        goal, shape = single.writes, listing.shapes[single.writes]
        if listing.shapes[flow] != shape:
            others = [t for t in link.read if listing.shapes[t] == shape]
            if len(others) != 1:
                raise UnfitError
            if links:
                yield source, links, flow
            operands = (flow if it is None else None if it is others[0] else it for it in link.operands)
            (source,), link, links = others, Link(link.op_type, tuple(operands)), []
        links.append(link)
        flow = goal
    yield source, links, flow


def _linked(listing: Listing, source: TensorId, links: Sequence[Link], goal: TensorId) -> None:
    shape = listing.shapes[source]
    if listing.shapes[goal] != shape or listing.types[source] != SINGLE:
        raise UnfitError
    try:
        steps = steps_of(listing, links, shape)
    except UnfitError:
        steps = _by_rows(listing, links, shape)
    if any(kind == ROW for _, kind, _ in steps):
        channels, rows = 0, math.prod(shape[:-1])
    elif any(kind == CHANNEL for _, kind, _ in steps) or len(shape) > 2:
        channels, rows = shape[1], math.prod(shape[:2])
    else:
        channels, rows = 1, 1
    by_rows(listing, steps, source, At(goal), (rows, channels, math.prod(shape) // max(1, rows)))


def by_rows(
    listing: Listing, steps: Sequence[Step], source: TensorId, goal: At, sizes: tuple[int, int, int],
    takes: int = FLOAT, gives: int = FLOAT,
) -> None:  # fmt: skip
    """Adds steps on rows. sizes: the rows, their channels, 0 where operands are rows, and the elements of each."""
    rows, channels, places = sizes
    if channels == 1 and rows == 1:  # no operand tells where a row begins
        rows = next(it for it in range(_FEW if places > _PART else 1, 0, -1) if places % it == 0)
        places //= rows
    parts, each = each_of(rows, places * (1 + len(steps)))
    listing.scratch = max(listing.scratch, BYTES * operations.BLOCK)
    listing.add(
        operations.CHAIN, parts, steps, source=listing.at(source), goal=goal, takes=takes, gives=gives, rows=rows,
        channels=channels, places=places, rows_each=each, count=len(steps),
    )  # fmt: skip


# ---- Convolutions -----------------------------------------------------------------------------


def depth_of(terms: int) -> int:
    """The terms that are summed before the next rows are taken."""
    return -(-terms // -(-terms // _DEPTH))


def packed(kernels: Array, groups: int, rows: int) -> Array:
    """Kernels in the order in which products read them: by groups, by the terms that are summed at a time, by blocks of
    rows, by terms, the rows of a block side by side."""
    each = kernels.shape[0] // groups
    terms = math.prod(kernels.shape[1:])
    padded = np.zeros((groups, -(-each // rows) * rows, terms), SINGLE)
    padded[:, :each] = kernels.reshape(groups, each, terms)
    blocks = padded.reshape(groups, -1, rows, terms).swapaxes(2, 3)
    depth = depth_of(terms)
    pieces = [blocks[:, :, first : first + depth].reshape(groups, -1) for first in range(0, terms, depth)]
    return np.ascontiguousarray(np.concatenate(pieces, axis=1))


def convolved(listing: Listing, chain: Chain, site: Site, goal: TensorId) -> None:
    """A convolution and the chain behind it."""
    source, _, *rest = chain.first
    known, bias = chain.known[1], chain.known[2] if len(chain.known) > 2 else None
    if source is None or not isinstance(known, np.ndarray) or known.dtype != SINGLE:
        raise UnfitError
    if (rest and rest[0] is not None) and not (isinstance(bias, np.ndarray) and bias.dtype == SINGLE):
        raise UnfitError
    shape, groups = listing.shapes[source], integer(site, "group", 1)
    how = correlation(window_of(site), groups, shape, known.shape, None)
    if len(shape) not in (3, 4) or 0 in how.shape or 0 in shape:
        raise UnfitError
    steps = steps_of(listing, chain.links, how.shape)
    if isinstance(bias, np.ndarray):
        steps.insert(0, (ADD, CHANNEL, At(np.ascontiguousarray(bias))))
    placed = flat(how.placed)
    data, offsets, image, wide, width, places = _data(listing, source, placed, groups, how.read)
    family = 1 if how.each == 1 else min(range(ROWS, ROWS - 3, -1), key=lambda rows: -how.each % rows)
    multiply(
        listing, steps, source=data, goal=At(goal), kernels=At(packed(known, groups, family)),
        offsets=At(np.asarray(offsets, np.int64).reshape(-1)), images=shape[0], groups=groups, each=how.each,
        terms=how.read * how.taps, places=places, image_bytes=image, group_bytes=image // groups, wide=wide,
        width=width, positions=how.positions, family=family, by_rows=0,
    )  # fmt: skip


def flat(placed: Placed) -> Placed:
    """The window with two axes."""
    if len(placed.data) == 2:
        return placed
    return Placed(
        (1, *placed.data), (1, *placed.kernel), (1, *placed.strides), (1, *placed.dilations), (0, *placed.before),
        (0, *placed.after), (1, *placed.padded), (1, *placed.extent), (1, *placed.count),
    )  # fmt: skip


def _data(
    listing: Listing, source: TensorId, placed: Placed, groups: int, read: int
) -> tuple[At, Array, int, int, int, int]:
    """Data as products read them: where they are, the offset of each term, the bytes of an image, the elements of a
    row, how many of them are positions, and the number of columns."""
    images, channels = listing.shapes[source][:2]
    (height, width), (s, t) = placed.data, placed.strides
    if placed.kernel == (1, 1) and placed.padded == placed.data:
        high, wide = placed.count
        plane = high * wide
        at = listing.at(source)
        if (s, t) != (1, 1) or not listing.can_be_passed(source):
            memory = listing.temporary_memory(BYTES * images * channels * plane + SLACK)
            copy(
                listing, at, At(memory), (images * channels, high, wide), (height * width, s * width, t),
                (plane, wide, 1),
            )  # fmt: skip
            at = At(memory)
        return at, BYTES * plane * np.arange(read), BYTES * channels * plane, plane, plane, plane
    high, wide = -(-placed.padded[0] // s), -(-placed.padded[1] // t)
    # A row keeps a column for each of its positions.
    beside = min(placed.before[1], placed.after[1], placed.extent[1] - 1)
    if t == 1 and beside <= operations.ENDED:
        wide -= beside  # the zeros at the left of a row are those at the right of the one before
    plane = s * t * high * wide
    memory = listing.temporary_memory(BYTES * images * channels * plane + SLACK)
    parts, each = each_of(images * channels, 4 * plane)
    listing.add(
        operations.PAD, parts, source=listing.at(source), goal=At(memory), planes=images * channels, height=height,
        width=width, top=placed.before[0], left=placed.before[1], split_high=s, split_wide=t, high=high, wide=wide,
        planes_each=each,
    )  # fmt: skip
    offsets = plane * np.arange(read)[:, None, None] + _taps(placed, high, wide)
    count = placed.count
    return At(memory), BYTES * offsets, BYTES * channels * plane, wide, count[1], (count[0] - 1) * wide + count[1]


def _taps(placed: Placed, high: int, wide: int) -> Array:
    """Where the positions of a window lie in a plane that is split by its strides into planes of this size."""
    s, t = placed.strides
    down, across = (np.arange(k) * far for k, far in zip(placed.kernel, placed.dilations, strict=True))
    offsets: Array = ((down % s * t * high + down // s) * wide)[:, None] + across % t * high * wide + across // t
    return offsets


_SUMS: Final = 96 << 10
"""About how many sums a part of a product has at most."""
_DEPTH: Final = 288
"""Terms that are summed before the next rows are taken: their columns stay in the first cache."""
_TALL: Final = 512
_WHOLE: Final = 7
"""Vectors of columns that are not cut."""
_AGAIN: Final = 0.5
"""The columns, in vectors, that are multiplied while the kernels are read once more."""
_STEPS: Final = 4096
"""Steps of a recurrent layer that are listed one by one."""
_FEW: Final = 3 * THREADS
"""Parts that are enough to keep all threads busy."""


_PLAIN: Final[Mapping[str, int | At]] = {
    "order": FLOATS, "form": FLOAT, "added": At(_ZERO), "totals": At(_ZERO), "zero": At(_ZERO), "zeros": 0,
    "factor": At(_ZERO), "shift": At(_ZERO),
}  # fmt: skip
"""What only products of bytes have."""


def multiply(listing: Listing, steps: Sequence[Step], /, **parameters: int | At) -> None:
    """Adds a product, cut into parts."""
    each, terms, places, images, groups, family = (
        _integer(parameters, it) for it in ("each", "terms", "places", "images", "groups", "family")
    )
    parameters = {**_PLAIN, **parameters}
    groups_each = 1
    if groups > 1:
        groups_each = max(1, min(-(-groups // _FEW), _PART * 4 // max(1, each * terms * places)))
    others = images * -(-groups // groups_each)
    large = others * each * terms * places > _PART
    band, block = _cut(each, family, places, others, THREADS if large else 1)
    bands, blocks = -(-each // band), -(-places // block)
    listing.scratch = max(listing.scratch, BYTES * (band + family) * (block + 5 * LANES))
    listing.add(
        operations.CONVOLUTION, others * bands * blocks, steps, **parameters, blocks=blocks, block=block, bands=bands,
        band=band, depth=depth_of(terms), groups_each=groups_each, count=len(steps),
    )  # fmt: skip


@cache
def _cut(each: int, family: int, places: int, others: int, threads: int) -> tuple[int, int]:
    """Rows and columns of the parts of a product, such that threads end at about the same time.

    A part has not more sums than are read again from near, and columns of few vectors are not cut, since each cut of
    them has all kernels read once more.
    """
    columns = 3 * LANES
    panels, units = -(-places // columns), -(-each // family)
    vectors = -(-places // LANES)
    best = (math.inf, 0, 0)
    least = -(-units * family // _TALL)
    for bands in sorted({least, *(it for it in (2, threads, 2 * threads) if least < it <= units)}):
        band = -(-units // bands)
        heights = [min(band, units - k) for k in range(0, units, band)] * min(others, threads)
        most = max(1, min(panels, _SUMS // (band * family * columns), 10))
        for size in [most] if vectors <= _WHOLE else range(1, most + 1):
            widths = [min(3 * size, vectors - k) + _AGAIN for k in range(0, vectors, 3 * size)]
            end = _last([height * width for height in heights for width in widths], threads)
            best = min(best, (end, -band * family, -size * columns))
    return -best[1], -best[2]


def _last(parts: Sequence[float], threads: int) -> float:
    """When all of these parts are done by threads that take one after the other, about that where there are many."""
    if len(parts) > 8 * threads:
        return (sum(parts) + max(parts)) / threads
    ends = [0.0] * threads
    for part in parts:
        ends[ends.index(min(ends))] += part
    return max(ends)


def _integer(parameters: Mapping[str, int | At], name: str) -> int:
    value = parameters[name]
    if isinstance(value, int):
        return value
    raise UnfitError


def copy(listing: Listing, source: At, goal: At, dims: Shape, reads: Shape, writes: Shape, size: int = BYTES) -> None:
    """Copies elements of so many bytes that lie at these distances along the axes."""
    axes = [list(it) for it in zip(dims, reads, writes, strict=True) if it[0] != 1]
    merged: list[list[int]] = []
    for axis in axes:
        if merged and merged[-1][1:] == [axis[0] * axis[1], axis[0] * axis[2]]:
            merged[-1] = [merged[-1][0] * axis[0], axis[1], axis[2]]
        else:
            merged.append(axis)
    if len(merged) > 5 or (merged and merged[-1][1:] != [1, 1] and len(merged) > 4):
        raise UnfitError
    if not merged or (len(merged) == 1 and merged[0][1:] == [1, 1]):
        whole = merged[0][0] if merged else 1
        parts = next(it for it in range(_FEW if whole > _PART else 1, 0, -1) if whole % it == 0)
        merged = [[parts, whole // parts, whole // parts], [whole // parts, 1, 1]]
    outer, *others = merged
    inner = [[1, 0, 0]] * (4 - len(others)) + others
    if not others:
        inner = [[1, 0, 0]] * 3 + [[1, 1, 1]]
    names: dict[str, int] = {}
    for name, (count, read, write) in zip(("outer", *"abcd"), (outer, *inner), strict=True):
        names |= {name: count, f"from_{name}": read, f"to_{name}": write}
    listing.add(operations.COPY, outer[0], source=source, goal=goal, size=size, **names)


# ---- Other nodes ------------------------------------------------------------------------------

Lower = Callable[[Listing, Node, Site], None]


def ends_of(node: Node, count: int = 1) -> tuple[list[TensorId], TensorId]:
    """The first inputs and the first output of a node."""
    inputs = [t for t in node.inputs[:count] if t is not None]
    (goal,) = (t for t in node.outputs[:1] if t is not None)
    if len(inputs) < count:
        raise UnfitError
    return inputs, goal


def _shown(listing: Listing, node: Node, _site: Site) -> None:
    """The same elements in another shape."""
    (source,), goal = ends_of(node)
    if goal in listing.outputs or source in listing.constants:
        count = math.prod(listing.shapes[goal])
        copy(listing, listing.at(source), At(goal), (count,), (1,), (1,), listing.types[goal].itemsize)
    else:
        listing.inside[goal] = (source, 0)


def _concat(listing: Listing, node: Node, site: Site) -> None:
    sources, goal = ends_of(node, len(node.inputs))
    shape = listing.shapes[goal]
    axis = integer(site, "axis") % len(shape)
    outer = math.prod(shape[:axis])
    row = math.prod(shape[axis:])
    written = {t for it in listing.operations for t in it.writes} - set(listing.outputs)
    written -= listing.passed  # behind which memory must go on
    at, each = 0, listing.types[goal].itemsize
    for source in sources:
        size = math.prod(listing.shapes[source][axis:])
        if outer == 1 and source in written and source not in listing.inside:
            listing.inside[source] = (goal, each * at)
        elif size and outer:
            copy(listing, listing.at(source), At(goal, each * at), (outer, size), (size, 1), (row, 1), each)
        at += size


def _transpose(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    shape = listing.shapes[source]
    perm = integers(site, "perm") or tuple(reversed(range(len(shape))))
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    dims = tuple(shape[k] for k in perm)
    writes = tuple(math.prod(dims[k + 1 :]) for k in range(len(dims)))
    if 0 in shape:
        raise UnfitError
    if perm == (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2) and source not in listing.constants:
        listing.turned[goal] = source
    reads = tuple(strides[k] for k in perm)
    copy(listing, listing.at(source), At(goal), dims, reads, writes, listing.types[goal].itemsize)


def _view(listing: Listing, node: Node, site: Site) -> None:
    """Parts of a tensor that NumPy's kernel shows without a copy."""
    (source,), _ = ends_of(node)
    shape, dtype = listing.shapes[source], listing.types[source]
    kernel = numpy_kernels().look_up_kernel(node)
    if kernel is None or 0 in shape:
        raise UnfitError
    memory = np.empty(shape, dtype)  # which is not read
    shown = kernel.prepare(site)([memory, *site.constants[1:]], np.empty)
    for goal, part in zip(node.outputs, shown, strict=False):
        if goal is None:
            continue
        if not isinstance(part, np.ndarray) or (part.size and not np.may_share_memory(part, memory)):
            raise UnfitError
        offset = address(part) - address(memory) if part.size else 0
        if part.flags.c_contiguous and goal not in listing.outputs and source not in listing.constants:
            listing.inside[goal] = (source, offset)
        elif part.size:
            at = listing.at(source)
            reads = tuple(it // dtype.itemsize for it in part.strides)
            writes = tuple(math.prod(part.shape[k + 1 :]) for k in range(part.ndim))
            copy(listing, At(at.tensor, at.offset + offset), At(goal), part.shape, reads, writes, dtype.itemsize)


def _gather(listing: Listing, node: Node, site: Site) -> None:
    """Rows behind an axis, along which indices name them."""
    (source, indices), goal = ends_of(node, 2)
    shape, given = listing.shapes[source], listing.shapes[indices]
    axis = axis_of(integer(site, "axis"), len(shape))
    outer, along, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    count = math.prod(given)
    _picked(listing, source, indices, goal, inner, along * np.arange(outer), count, [(along, 1)], count)


def _gather_nd(listing: Listing, node: Node, site: Site) -> None:
    """Rows behind axes, along which tuples of indices name them, for each position of the batch axes."""
    (source, indices), goal = ends_of(node, 2)
    shape, given, batch = listing.shapes[source], listing.shapes[indices], integer(site, "batch_dims")
    if not 0 <= batch < min(len(shape), len(given)) or given[:batch] != shape[:batch]:
        raise UnfitError
    width = given[-1]
    if not 1 <= width <= len(shape) - batch:
        raise UnfitError
    named, inner = shape[batch : batch + width], math.prod(shape[batch + width :])
    along = [(n, math.prod(named[k + 1 :])) for k, n in enumerate(named)]
    begins = math.prod(named) * np.arange(math.prod(shape[:batch]))
    tuples = math.prod(given[:-1])
    _picked(listing, source, indices, goal, inner, begins, math.prod(given[batch:-1]), along, tuples)


def _gather_elements(listing: Listing, node: Node, site: Site) -> None:
    """Elements beside those of the indices, which name them along an axis."""
    (source, indices), goal = ends_of(node, 2)
    shape, given = listing.shapes[source], listing.shapes[indices]
    axis = axis_of(integer(site, "axis"), len(shape))
    if len(shape) != len(given) or any(k != axis and n > shape[k] for k, n in enumerate(given)):
        raise UnfitError
    begins = np.zeros((), np.int64)
    for k, n in enumerate(given):
        begins = begins[..., None] + np.arange(1 if k == axis else n) * math.prod(shape[k + 1 :])
    along = [(shape[axis], math.prod(shape[axis + 1 :]))]
    _picked(listing, source, indices, goal, 1, np.broadcast_to(begins, given), 1, along, math.prod(given))


def _picked(
    listing: Listing, source: TensorId, indices: TensorId, goal: TensorId, inner: int, begins: Array, repeat: int,
    along: Sequence[tuple[int, int]], tuples: int,
) -> None:  # fmt: skip
    """Rows of `inner` elements. begins: the row before each `repeat` of them, to which the indices are added. along:
    for each index of a tuple how many rows it names, and how far apart they are."""
    if 0 in (*listing.shapes[source], *listing.shapes[goal]) or listing.types[indices] not in (INT32, INT64):
        raise UnfitError
    rows = math.prod(listing.shapes[goal]) // inner
    parts, each = each_of(rows, inner + 16)
    listing.add(
        operations.PICK, parts, source=listing.at(source), goal=At(goal), indices=listing.at(indices),
        wide=int(listing.types[indices] == INT64), begins=At(np.ascontiguousarray(begins, np.int64).reshape(-1)),
        repeat=repeat, along=At(np.array(along, np.int64)), tuples=tuples, width=len(along),
        size=inner * listing.types[source].itemsize, rows=rows, rows_each=each,
    )  # fmt: skip


def _pool(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    shape, mean = listing.shapes[source], node.op_type == "AveragePool"
    window, whole = window_of(site), integer(site, "count_include_pad") != 0
    if len(shape) not in (3, 4) or 0 in shape or 0 in listing.shapes[goal]:
        raise UnfitError
    original = pool_at(window, integer(site, "ceil_mode"), site.version, shape)
    counts = narrow(counts_at(original, whole), SINGLE) if mean else _ZERO
    placed = flat(original)
    planes = math.prod(shape[:2])
    parts, each = each_of(planes, math.prod(placed.count) * math.prod(placed.kernel))
    (s, t), (rows, columns) = placed.strides, placed.count
    split, pace = (1, t) if t <= 2 else (t, 1)
    high, wide = (
        max(size, padded, (count - 1) * step + extent)
        for size, padded, count, step, extent in zip(
            placed.data, placed.padded, placed.count, placed.strides, placed.extent, strict=True
        )
    )
    wide = -(-wide // split)
    down, across = (np.arange(k) * far for k, far in zip(placed.kernel, placed.dilations, strict=True))
    taps = (down * wide)[:, None] + across % split * high * wide + across // split
    listing.scratch = max(listing.scratch, BYTES * (split * high * wide + 4 * LANES) + SLACK)
    listing.add(
        operations.POOL, parts, source=listing.at(source), goal=At(goal), counts=At(np.ascontiguousarray(counts)),
        offsets=At(np.ascontiguousarray(BYTES * taps, np.int64)), planes=planes, height=placed.data[0],
        width=placed.data[1], top=placed.before[0], left=placed.before[1], split_wide=split, high=high,
        wide=wide, down=s, pace=pace, rows=rows, columns=columns, taps=taps.size, mean=int(mean),
        planes_each=each,
    )  # fmt: skip


def _mean(listing: Listing, node: Node, _site: Site) -> None:
    (source,), goal = ends_of(node)
    shape = listing.shapes[source]
    planes, places = math.prod(shape[:2]), math.prod(shape[2:])
    parts, each = each_of(planes, places)
    listing.add(
        operations.MEAN, parts, source=listing.at(source), goal=At(goal), planes=planes, places=places,
        divisor=At(scalar(places, SINGLE)), planes_each=each,
    )  # fmt: skip


def _lrn(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    shape, size = listing.shapes[source], integer(site, "size")
    alpha, beta, bias = number(site, "alpha", 1e-4), number(site, "beta", 0.75), number(site, "bias", 1.0)
    images, channels, places = *shape[:2], math.prod(shape[2:])
    block = max(64, min(1024, -(-places // _FEW)))
    listing.scratch = max(listing.scratch, BYTES * block)
    factor, addend, exponent = (At(scalar(it, SINGLE)) for it in (Fraction(alpha) / size, bias, beta))
    listing.add(
        operations.LRN, images * -(-places // block), source=listing.at(source), goal=At(goal), images=images,
        channels=channels, places=places, size=size, before=(size - 1) // 2, factor=factor, addend=addend,
        exponent=exponent, places_each=block,
    )  # fmt: skip


def _gemm(listing: Listing, node: Node, site: Site) -> None:
    (source, _), goal = ends_of(node, 2)
    matrix, shape = site.constants[1], listing.shapes[source]
    bias = site.constants[2] if len(site.constants) > 2 else None
    if integer(site, "transA") or number(site, "alpha", 1.0) != 1 or number(site, "beta", 1.0) != 1:
        raise UnfitError
    if not isinstance(matrix, np.ndarray):
        raise UnfitError
    matrix = matrix if integer(site, "transB") else matrix.T
    steps: list[Step] = []
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        if not isinstance(bias, np.ndarray) or (shape[0] > 1 and bias.size != math.prod(bias.shape[-1:])):
            raise UnfitError
        whole = np.broadcast_to(widened(bias, SINGLE).reshape(-1), (len(matrix),))
        steps.append((ADD, ROW, At(np.ascontiguousarray(whole))))
    _product(listing, source, goal, matrix, shape[0], steps)


def _matmul(listing: Listing, node: Node, site: Site) -> None:
    (source, other), goal = ends_of(node, 2)
    matrix, shape = site.constants[1], listing.shapes[source]
    if not isinstance(matrix, np.ndarray):
        _products(listing, source, other, goal)
        return
    if matrix.ndim != 2 or len(shape) < 2:
        raise UnfitError
    _product(listing, source, goal, matrix.T, math.prod(shape[:-1]), [])


def _products(listing: Listing, left: TensorId, right: TensorId, goal: TensorId) -> None:
    """The products of matrices that are both computed, one for each of the other axes."""
    (*batch, rows, terms), (*others, _, columns) = listing.shapes[left], listing.shapes[right]
    if batch != others or 0 in listing.shapes[goal] or terms == 0:
        raise UnfitError
    groups = math.prod(batch)
    if rows == 1 and right in listing.turned:
        matrices = At(listing.turned[right])
        _dots(listing, listing.at(left), matrices, (columns, terms), At(goal), [], groups)
        return
    family = 1 if rows == 1 else min(range(ROWS, ROWS - 3, -1), key=lambda it: -rows % it)
    kernels, data = listing.at(left), listing.at(right)
    if family > 1:
        kernels = At(listing.temporary_memory(BYTES * groups * -(-rows // family) * family * terms))
        pack(listing, listing.at(left), kernels, groups, rows, terms, family)
    # Whole vectors are read, beyond the end too where it is not that of one; such a row is cut into 3 and 1 of them.
    ends = columns == 4 * LANES if family == 1 else columns % LANES == 0
    if not ends and not listing.can_be_passed(right):
        data = At(listing.temporary_memory(BYTES * groups * terms * columns + SLACK))
        copy(listing, listing.at(right), data, (groups * terms * columns,), (1,), (1,))
    multiply(
        listing, [], source=data, goal=At(goal), kernels=kernels, offsets=At(BYTES * columns * np.arange(terms)),
        images=1, groups=groups, each=rows, terms=terms, places=columns, image_bytes=0,
        group_bytes=BYTES * terms * columns, wide=columns, width=columns, positions=columns, family=family, by_rows=0,
    )  # fmt: skip


def pack(listing: Listing, source: At, goal: At, groups: int, rows: int, terms: int, family: int) -> None:
    """Matrices in the order in which products read kernels (`packed`)."""
    padded, depth = -(-rows // family) * family, depth_of(terms)
    for first in range(0, terms, depth):
        size = min(depth, terms - first)
        for begin, height in ((0, rows // family * family), (rows // family * family, rows % family)):
            if height:
                step = min(family, height)
                copy(
                    listing, At(source.tensor, source.offset + BYTES * (begin * terms + first)),
                    At(goal.tensor, goal.offset + BYTES * (padded * first + begin * size)),
                    (groups, -(-height // family), size, step), (rows * terms, family * terms, 1, terms),
                    (padded * terms, family * size, family, 1),
                )  # fmt: skip


def _dots(
    listing: Listing, source: At, matrix: At, shape: Shape, goal: At, steps: Sequence[Step], groups: int = 1
) -> None:
    """The products of one row with the rows of a matrix of this shape, for each of some groups."""
    rows, terms = shape
    pieces, each = each_of(rows, terms)
    listing.add(
        operations.DOTS, groups * pieces, steps, source=source, kernels=matrix, goal=goal, groups=groups,
        source_bytes=BYTES * terms, kernel_bytes=BYTES * rows * terms, terms=terms, rows=rows, rows_each=each,
        count=len(steps),
    )  # fmt: skip


def _product(
    listing: Listing, source: TensorId, goal: TensorId, matrix: Array, count: int, steps: Sequence[Step]
) -> None:
    """The product of `count` rows with the rows of a matrix."""
    rows, terms = matrix.shape
    if 0 in (count, rows, terms):
        raise UnfitError
    if count == 1:
        _dots(listing, listing.at(source), At(np.ascontiguousarray(matrix)), matrix.shape, At(goal), steps)
        return
    family = min(range(ROWS, ROWS - 3, -1), key=lambda it: -count % it)
    memory = listing.temporary_memory(BYTES * -(-count // family) * family * terms)
    pack(listing, listing.at(source), At(memory), 1, count, terms, family)
    # Rows a power of two apart would share places in the cache.
    apart = rows + LANES
    laid = np.zeros(terms * apart + SLACK // BYTES, SINGLE)
    laid[: terms * apart].reshape(terms, apart)[:, :rows] = matrix.T
    multiply(
        listing, steps, source=At(laid), goal=At(goal), kernels=At(memory),
        offsets=At(BYTES * apart * np.arange(terms)), images=1, groups=1, each=count, terms=terms, places=rows,
        image_bytes=0, group_bytes=0, wide=rows, width=rows, positions=rows, family=family, by_rows=1,
    )  # fmt: skip


def _softmax(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    shape = listing.shapes[source]
    axis = integer(site, "axis", -1 if site.version >= 13 else 1) % len(shape)
    if 0 in shape or (site.version >= 13 and axis != len(shape) - 1):
        raise UnfitError
    rows, length = math.prod(shape[:axis]), math.prod(shape[axis:])
    parts, each = each_of(rows, 16 * length)
    listing.scratch = max(listing.scratch, BYTES * _LANES)
    listing.add(
        operations.SOFTMAX, parts, source=listing.at(source), goal=At(goal), rows=rows, length=length, rows_each=each
    )


def _layer(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    shape = listing.shapes[source]
    axis = integer(site, "axis", -1) % len(shape)
    rows, length = math.prod(shape[:axis]), math.prod(shape[axis:])
    known = [it for it in site.constants[1:] if isinstance(it, np.ndarray)]
    if 0 in shape or integer(site, "stash_type", 1) != 1 or any(it.size not in (1, length) for it in known):
        raise UnfitError
    functions = (MULTIPLY, ADD)[: len(known)]
    steps = [
        (function, SCALAR if it.size == 1 else TENSOR, At(np.ascontiguousarray(it)))
        for function, it in zip(functions, known, strict=True)
    ]
    parts, each = each_of(rows, 8 * length)
    listing.scratch = max(listing.scratch, BYTES * length)
    listing.add(
        operations.LAYER, parts, steps, source=listing.at(source), goal=At(goal), count=At(scalar(length, SINGLE)),
        epsilon=At(scalar(number(site, "epsilon", 1e-5), SINGLE)), rows=rows, length=length, rows_each=each,
        added=len(steps),
    )  # fmt: skip


def _applied(function: int, tables: Array = _ZERO) -> Lower:
    def add(listing: Listing, node: Node, _site: Site) -> None:
        (source,), goal = ends_of(node)
        size = math.prod(listing.shapes[goal])
        parts, each = each_of(-(-size // LANES), 32 * LANES)
        listing.add(
            operations.APPLY, parts, source=listing.at(source), goal=At(goal), function=function, tables=At(tables),
            size=size, size_each=each * LANES,
        )  # fmt: skip

    return add


def _lstm(listing: Listing, node: Node, site: Site) -> None:
    """For each direction one product for the inputs of all steps, then a row of products and the new states of each
    step, in the order in which they are computed alone."""
    source, w, r, b = node.inputs[0], *(site.constants[k] if k < len(site.constants) else None for k in (1, 2, 3))
    if source is None or not isinstance(w, np.ndarray) or not isinstance(r, np.ndarray):
        raise UnfitError
    steps, batch, inputs = listing.shapes[source]
    directions, rows, units = r.shape
    if batch != 1 or not 0 < steps <= _STEPS or 0 in (inputs, units):
        raise UnfitError
    named = [node.outputs[k] if k < len(node.outputs) else None for k in range(3)]
    y = listing.temporary_memory(BYTES * steps * directions * units) if named[0] is None else named[0]
    products = listing.temporary_memory(BYTES * steps * rows)
    sums = listing.temporary_memory(BYTES * rows)
    cells = [listing.temporary_memory(BYTES * units) for _ in range(2)]
    listing.scratch = max(listing.scratch, 3 * BYTES * operations.UNITS)
    parts, each = each_of(units, 160)
    for q in range(directions):
        added: list[Step] = []
        if isinstance(b, np.ndarray):
            added.append((ADD, ROW, At(np.add(b[q, :rows], b[q, rows:], dtype=SINGLE))))
        _product(listing, source, products, w[q], steps, added)
        h, c = (
            At(np.zeros(units, SINGLE)) if t is None else At(listing.at(t).tensor, BYTES * q * units)
            for t in (node.inputs[k] if k < len(node.inputs) else None for k in (5, 6))
        )
        weights = At(np.ascontiguousarray(r[q]))
        reverse = q == 1 or text(site, "direction", "forward") == "reverse"
        for count, t in enumerate(reversed(range(steps)) if reverse else range(steps)):
            _dots(listing, h, weights, (rows, units), At(sums), [(ADD, TENSOR, At(products, BYTES * t * rows))])
            h, before, c = At(y, BYTES * units * (t * directions + q)), c, At(cells[count % 2])
            listing.add(
                operations.CELL, parts, source=At(sums), goal=h, before=before, cell=c, size=units, size_each=each
            )
        for goal, state in ((named[1], h), (named[2], c)):
            if goal is not None:
                copy(listing, state, At(goal, BYTES * q * units), (units,), (1,), (1,))


LOWER: Final[Mapping[str, Lower]] = {
    "Reshape": _shown,
    "Flatten": _shown,
    "Squeeze": _shown,
    "Unsqueeze": _shown,
    "Identity": _shown,
    "Dropout": _shown,
    "Concat": _concat,
    "Transpose": _transpose,
    "MaxPool": _pool,
    "AveragePool": _pool,
    "GlobalAveragePool": _mean,
    "LRN": _lrn,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Softmax": _softmax,
    "LayerNormalization": _layer,
    "Erf": _applied(operations.ERF, ERF_TABLES),
    "Sigmoid": _applied(operations.SIGMOID),
    "Tanh": _applied(operations.TANH),
    "Exp": _applied(operations.EXP),
    "LSTM": _lstm,
    "Slice": _view,
    "Split": _view,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "GatherElements": _gather_elements,
}
"""How nodes that are no chain are lowered, by their operators."""


GATHERS: Final = frozenset({"Gather", "GatherND", "GatherElements"})
MOVED: Final = GATHERS | frozenset(
    ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Concat", "Transpose", "Slice", "Split")
)
"""Operators that move elements, of any type that fits one of `TYPES`; the others of `LOWER` are for floats."""
TYPES: Final[Mapping[str, np.dtype[Any]]] = {
    "float": SINGLE, "uint8": np.dtype(np.uint8), "int8": np.dtype(np.int8), "int32": np.dtype(np.int32)
}  # fmt: skip
"""The types of elements that there are operations for."""


def lower(listing: Listing, node: Node, site: Site, table: Mapping[str, Lower]) -> None:
    """Adds the operations of a node, as the table says. Raises UnfitError."""
    first = node.inputs[0]
    if node.op_type in LOWER and node.op_type not in MOVED and (first is None or listing.types[first] != SINGLE):
        raise UnfitError
    try:
        table[node.op_type](listing, node, site)
    except (KeyError, KernelError, ValueError):
        raise UnfitError from None
