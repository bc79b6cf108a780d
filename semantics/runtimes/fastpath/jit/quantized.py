"""From nodes on quantized tensors, at known shapes, to operations: products of bytes with sums of int32, and what lies
between bytes and floats.

Each product is of a byte without a sign, that of the data, and one with a sign, that of the weights minus their zero
points. Bytes of data that have a sign are raised by 128, as their zero point is; a difference of weights that is no
byte is the sum of some. Then sum((x - z) * w) = sum(x * w) - z * sum(w), and all sums wrap around in 32 bits, as those
of the kernels of NumPy do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ....model.graph import Node, TensorId
from ..functions import BYTE, INT32, SINGLE
from ..kernel import Array, Site
from ..kernels.convolution import correlation
from ..reading import integer
from ..scales import beside, is_one, require_fit
from ..windows import Placed, window_of
from . import operations
from .listing import BYTES, At, Listing, Shape, Step
from .lowering import Lower, UnfitError, by_rows, copy, each_of, ends_of, flat, multiply, pack, packed
from .operations import (
    ADD,
    CHANNEL,
    DIVIDE,
    FLOAT,
    INT8,
    MULTIPLY,
    NEAREST,
    ROW,
    SCALAR,
    SIGNED_COLUMNS,
    SIGNED_ROWS,
    SLACK,
    SUBTRACT,
    TENSOR,
    UINT8,
)  # fmt: skip
from .processor import LANES, ROWS

Sizes = tuple[int, int, int]
_SIGNED: Final = np.dtype(np.int8)
_FORMS: Final = {SINGLE: FLOAT, INT32: operations.INT32, BYTE: UINT8, _SIGNED: INT8}
_FOUR: Final = 4
"""Bytes whose products are added at once."""
_ZERO: Final = np.zeros((), SINGLE)


def _known(site: Site, position: int) -> Array:
    """The value of an input."""
    value = site.constants[position] if position < len(site.constants) else None
    if not isinstance(value, np.ndarray):
        raise UnfitError
    return value


def _optional(site: Site, position: int) -> Array | None:
    return _known(site, position) if position < len(site.inputs) and site.inputs[position] else None


def _form(listing: Listing, tensor: TensorId) -> int:
    if listing.types[tensor] not in _FORMS:
        raise UnfitError
    return _FORMS[listing.types[tensor]]


# ---- Between bytes and floats -----------------------------------------------------------------


def _stepped(shape: Shape, axis: int, block: int, steps: Sequence[tuple[int, Array]]) -> tuple[list[Step], Sizes]:
    """Steps whose operands are scales or zero points, and the rows, channels and elements that they are applied to."""
    single = all(is_one(it.shape) for _, it in steps)
    kind = SCALAR if single else TENSOR if block else ROW if axis == len(shape) - 1 else CHANNEL
    made: list[Step] = []
    for function, value in steps:
        operand = np.asarray(value, SINGLE)
        if is_one(value.shape):
            made.append((function, SCALAR, At(operand.reshape(1))))
        else:
            if block:
                operand = np.broadcast_to(beside(operand, shape, axis, block), shape)
            made.append((function, kind, At(np.ascontiguousarray(operand))))
    if kind == SCALAR:
        return made, (1, 1, math.prod(shape))
    if kind == CHANNEL:
        return made, (math.prod(shape[: axis + 1]), shape[axis], math.prod(shape[axis + 1 :]))
    rows = math.prod(shape[:-1])
    return made, (rows, 0 if kind == ROW else 1, shape[-1])


def _fitted(listing: Listing, site: Site, source: TensorId) -> tuple[Array, Array | None, int, int]:
    """The scale, the zero point, the axis and the size of blocks, which fit the data."""
    scale, zero, shape = _known(site, 1), _optional(site, 2), listing.shapes[source]
    axis, block = integer(site, "axis", 1), integer(site, "block_size")
    axis += len(shape) if axis < 0 else 0
    fits = is_one(scale.shape) and (zero is None or is_one(zero.shape))
    if scale.dtype != SINGLE or 0 in shape or block < 0 or (site.version < 13 and not fits):
        raise UnfitError
    require_fit(scale.shape, None if zero is None else zero.shape, shape, axis, block)
    return scale, zero, axis, block


def _quantize(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    scale, zero, axis, block = _fitted(listing, site, source)
    target = listing.types[goal]
    stated = integer(site, "precision")
    if listing.types[source] != SINGLE or not np.all(scale) or stated not in (0, 1):
        raise UnfitError
    if target not in (BYTE, _SIGNED) or (zero is not None and zero.dtype != target):
        raise UnfitError
    functions = [(DIVIDE, scale), (NEAREST, _ZERO), *(() if zero is None else ((ADD, zero),))]
    steps, sizes = _stepped(listing.shapes[source], axis, block, functions)
    by_rows(listing, steps, source, At(goal), sizes, gives=_form(listing, goal))


def _dequantize(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    scale, zero, axis, block = _fitted(listing, site, source)
    if listing.types[goal] != SINGLE or listing.types[source] == SINGLE:
        raise UnfitError
    if zero is not None and (zero.dtype != listing.types[source] or (zero.dtype == INT32 and np.any(zero))):
        raise UnfitError
    shifted = zero is not None and zero.dtype != INT32
    functions = [*(((SUBTRACT, zero),) if shifted and zero is not None else ()), (MULTIPLY, scale)]
    steps, sizes = _stepped(listing.shapes[source], axis, block, functions)
    by_rows(listing, steps, source, At(goal), sizes, takes=_form(listing, source))


def _cast(listing: Listing, node: Node, _site: Site) -> None:
    (source,), goal = ends_of(node)
    if listing.types[goal] != SINGLE or listing.types[source] == SINGLE:
        raise UnfitError
    by_rows(listing, [], source, At(goal), (1, 1, math.prod(listing.shapes[goal])), takes=_form(listing, source))


def _dynamic_quantize(listing: Listing, node: Node, _site: Site) -> None:
    """The range of the data, in parts, then the scale and zero point, then the bytes."""
    (source,), goal = ends_of(node)
    size = math.prod(listing.shapes[source])
    if listing.types[source] != SINGLE or size == 0:
        raise UnfitError
    scale, zero = (t for t in node.outputs[1:] if t is not None)
    parts, each = each_of(-(-size // _WIDE), _WIDE)
    bounds, shift = listing.temporary_memory(2 * BYTES * parts), listing.temporary_memory(BYTES)
    listing.scratch = max(listing.scratch, BYTES * operations.BLOCK)
    listing.add(operations.RANGE, parts, source=listing.at(source), goal=At(bounds), size=size, size_each=each * _WIDE)
    listing.add(operations.SCALE, 1, source=At(bounds), goal=At(scale), cell=At(zero), beside=At(shift), parts=parts)
    steps = [(DIVIDE, SCALAR, At(scale)), (NEAREST, SCALAR, At(_ZERO)), (ADD, SCALAR, At(shift))]
    by_rows(listing, steps, source, At(goal), (1, 1, size), gives=UINT8)


_WIDE: Final = 1 << 12
"""Elements whose range is found together."""


# ---- Products ---------------------------------------------------------------------------------


def _parts(w: Array, zero: Array | None) -> list[Array]:
    """Weights minus their zero points, one or for each entry of the first axis, as bytes with a sign: up to three,
    whose sum it is."""
    rest = w.astype(np.int16)
    if zero is not None:
        rest = rest - zero.astype(np.int16).reshape(-1, *(1,) * (w.ndim - 1))
    made: list[Array] = []
    while not made or np.any(rest):
        made.append(np.clip(rest, -128, 127).astype(np.int8))
        rest = rest - made[-1]
    return made


def _words(rows: Array) -> Array:
    """The bytes of the last axis, four in each element of a float: these are only moved."""
    return np.ascontiguousarray(rows).view(SINGLE)


def _filled(rows: Array, axis: int) -> Array:
    """With zeros behind, up to a multiple of four along an axis."""
    beyond = [(0, 0)] * rows.ndim
    beyond[axis] = (0, -rows.shape[axis] % _FOUR)
    return np.pad(rows, beyond)


def _of_data(listing: Listing, source: TensorId, node: Node, position: int, site: Site) -> tuple[At, Array | None]:
    """Where the zero point of the data lies, and its value where it is known."""
    t = node.inputs[position] if position < len(node.inputs) else None
    if t is None:
        zero = np.zeros(1, listing.types[source])
        return At(zero), zero
    known = site.constants[position]
    if known is None:
        if t not in listing.shapes or not is_one(listing.shapes[t]) or listing.types[t] != listing.types[source]:
            raise UnfitError
        return listing.at(t), None
    if not isinstance(known, np.ndarray) or not is_one(known.shape) or known.dtype != listing.types[source]:
        raise UnfitError
    value = np.ascontiguousarray(known.reshape(1))
    return At(value), value


def _ending(
    listing: Listing, source: TensorId, zero: tuple[At, Array | None], totals: Array, bias: Array | None
) -> dict[str, int | At]:
    """What is added to sums, beside the zero point of the data: that, where it is known, too. totals: the sums of the
    weights that each of them has."""
    form = _form(listing, source)
    added = np.zeros(totals.shape, np.int64) if bias is None else bias.astype(np.int64)
    at, known = zero
    if known is not None:
        raised = int(known[0]) + (128 if form == INT8 else 0)
        added, totals = added - raised * totals, np.zeros_like(totals)
    return {
        "added": At(np.ascontiguousarray(added.astype(np.int32))),
        "totals": At(np.ascontiguousarray(totals.astype(np.int32))),
        "zero": at,
        "zeros": form,
    }


def _scaling(listing: Listing, goal: TensorId, factor: Array, zero: Array, count: int) -> dict[str, int | At]:
    """How sums become bytes: by a factor for all, or for each of `count`."""
    if zero.dtype != listing.types[goal] or factor.dtype != SINGLE:
        raise UnfitError
    whole = np.ascontiguousarray(np.broadcast_to(factor.reshape(-1), (count,)))
    shift = np.asarray(zero.reshape(1), SINGLE)
    return {"form": _form(listing, goal), "factor": At(whole), "shift": At(shift)}


def _require_scalars(*values: Array) -> None:
    if not all(is_one(it.shape) for it in values):
        raise UnfitError


def _qlinear_conv(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    x_scale, w, w_scale, w_zero, y_scale, y_zero = (_known(site, k) for k in (1, 3, 4, 5, 6, 7))
    _require_scalars(x_scale, y_scale, y_zero)
    if not all(is_one(it.shape) or it.shape == w.shape[:1] for it in (w_scale, w_zero)):
        raise UnfitError
    factor = x_scale.reshape(()) * w_scale.reshape(-1) / y_scale.reshape(())
    ending = _scaling(listing, goal, np.asarray(factor), y_zero, w.shape[0])
    _convolve(listing, source, goal, site, (w, w_zero), _of_data(listing, source, node, 2, site), ending)


def _conv_integer(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    w, w_zero = _known(site, 1), _optional(site, 3)
    if w_zero is not None and not is_one(w_zero.shape) and w_zero.shape != w.shape[:1]:
        raise UnfitError
    ending: dict[str, int | At] = {"form": operations.INT32}
    _convolve(listing, source, goal, site, (w, w_zero), _of_data(listing, source, node, 2, site), ending)


def _convolve(
    listing: Listing, source: TensorId, goal: TensorId, site: Site, weights: tuple[Array, Array | None],
    zero: tuple[At, Array | None], ending: Mapping[str, int | At],
) -> None:  # fmt: skip
    """A convolution of bytes: planes of words of four channels, multiplied as those of floats are."""
    shape, groups, w = listing.shapes[source], integer(site, "group", 1), weights[0]
    bias = _optional(site, 8)
    how = correlation(window_of(site), groups, shape, w.shape, None if bias is None else bias.shape)
    if len(shape) not in (3, 4) or 0 in how.shape or 0 in shape or _form(listing, source) not in (UINT8, INT8):
        raise UnfitError
    parts = _parts(*weights)
    quads, taps = -(-how.read // _FOUR), math.prod(w.shape[2:])
    rows = [
        _filled(it.reshape(len(w), how.read, taps), 1).reshape(len(w), quads, _FOUR, taps).swapaxes(2, 3)
        for it in parts
    ]
    kernels = _words(np.concatenate([it.reshape(len(w), -1) for it in rows], axis=1))
    placed = flat(how.placed)
    data, offsets, plane, wide, width, places = _woven(listing, source, placed, groups, how.read, zero[0])
    image, family = BYTES * plane * quads * groups, 1 if how.each == 1 else ROWS
    totals = sum(it.reshape(len(w), -1).sum(axis=1, dtype=np.int64) for it in parts)
    multiply(
        listing, [], source=data, goal=At(goal), kernels=At(packed(kernels, groups, family)),
        offsets=At(np.tile(BYTES * offsets, len(parts))), images=shape[0], groups=groups, each=how.each,
        terms=kernels.shape[1], places=places, image_bytes=image, group_bytes=image // groups, wide=wide, width=width,
        positions=how.positions, family=family, by_rows=0, order=SIGNED_ROWS, **ending,
        **_ending(listing, source, zero, np.asarray(totals), bias),
    )  # fmt: skip


def _woven(
    listing: Listing, source: TensorId, placed: Placed, groups: int, read: int, zero: At
) -> tuple[At, Array, int, int, int, int]:
    """Data as products read them: where they are, the offset of each term, the elements of a plane and of a row, how
    many of these are positions, and the number of columns."""
    images, channels = listing.shapes[source][:2]
    (height, width), (s, t), count = placed.data, placed.strides, placed.count
    if placed.is_same:
        height, width = 1, height * width
        high, wide, count = 1, width, (1, width)
    else:
        high, wide = -(-placed.padded[0] // s), -(-placed.padded[1] // t)
        beside_rows = min(placed.before[1], placed.after[1], placed.extent[1] - 1)
        if t == 1 and beside_rows <= operations.ENDED:
            wide -= beside_rows  # what is at the left of a row is at the right of the one before
    down, across = (np.arange(k) * far for k, far in zip(placed.kernel, placed.dilations, strict=True))
    phases = int((down % s).max()) + 1, int((across % t).max()) + 1
    plane = phases[0] * phases[1] * high * wide
    quads = -(-read // _FOUR)
    planes = images * groups * quads
    memory = listing.temporary_memory(BYTES * planes * plane + SLACK)
    parts, each = each_of(planes, 4 * plane)
    listing.add(
        operations.WEAVE, parts, source=listing.at(source), goal=At(memory), zero=zero, kind=_form(listing, source),
        planes=planes, quads=quads, channels=channels // groups, height=height, width=width, top=placed.before[0],
        left=placed.before[1], split_high=s, split_wide=t, phases_high=phases[0], phases_wide=phases[1], high=high,
        wide=wide, planes_each=each,
    )  # fmt: skip
    taps = ((down % s * phases[1] * high + down // s) * wide)[:, None]
    taps = taps + across % t * high * wide + across // t
    offsets = (plane * np.arange(quads)[:, None] + taps.reshape(-1)).reshape(-1)
    return At(memory), offsets, plane, wide, count[1], (count[0] - 1) * wide + count[1]


def _qlinear_matmul(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    a_scale, w, b_scale, b_zero, y_scale, y_zero = (_known(site, k) for k in (1, 3, 4, 5, 6, 7))
    _require_scalars(a_scale, y_scale, y_zero)
    columns = w.shape[-1]
    if not all(is_one(it.shape) or it.shape == (columns,) for it in (b_scale, b_zero)):
        raise UnfitError
    if b_scale.shape != b_zero.shape and not (is_one(b_scale.shape) and is_one(b_zero.shape)):
        raise UnfitError
    factor = a_scale.reshape(()) * b_scale.reshape(-1) / y_scale.reshape(())
    ending = _scaling(listing, goal, np.asarray(factor), y_zero, columns)
    _multiply(listing, source, goal, (w, b_zero), _of_data(listing, source, node, 2, site), ending)


def _matmul_integer(listing: Listing, node: Node, site: Site) -> None:
    (source,), goal = ends_of(node)
    w, w_zero = _known(site, 1), _optional(site, 3)
    if w_zero is not None and not is_one(w_zero.shape) and w_zero.shape != w.shape[-1:]:
        raise UnfitError
    ending: dict[str, int | At] = {"form": operations.INT32}
    _multiply(listing, source, goal, (w, w_zero), _of_data(listing, source, node, 2, site), ending)


def _multiply(
    listing: Listing, source: TensorId, goal: TensorId, weights: tuple[Array, Array | None],
    zero: tuple[At, Array | None], ending: Mapping[str, int | At],
) -> None:  # fmt: skip
    """The product of rows of bytes with a matrix."""
    shape, (w, w_zero) = listing.shapes[source], weights
    form, itemsize = _form(listing, source), w.dtype.itemsize
    if w.ndim != 2 or len(shape) < 2 or 0 in (*shape, *w.shape) or form not in (UINT8, INT8) or itemsize != 1:
        raise UnfitError
    count, (terms, columns) = math.prod(shape[:-1]), w.shape
    parts = _parts(w.T, w_zero)
    wide, times = -(-terms // _FOUR), len(parts)
    data = listing.at(source)
    if form == INT8 or terms % _FOUR:
        memory = listing.temporary_memory(count * _FOUR * wide)
        pieces, each = each_of(count, terms)
        listing.add(
            operations.LINES, pieces, source=data, goal=At(memory), rows=count, length=terms, pitch=_FOUR * wide,
            mask=128 if form == INT8 else 0, rows_each=each,
        )  # fmt: skip
        data = At(memory)
    family = 1 if count == 1 else ROWS
    if times > 1:  # the data stand beside themselves
        memory = listing.temporary_memory(BYTES * count * times * wide)
        copy(listing, data, At(memory), (count, times, wide), (wide, 0, 1), (times * wide, wide, 1))
        data = At(memory)
    terms = times * wide
    if family > 1:
        memory = listing.temporary_memory(BYTES * -(-count // family) * family * terms)
        pack(listing, data, At(memory), 1, count, terms, family)
        data = At(memory)
    # Rows a power of two apart would share places in the cache.
    apart = columns + LANES
    laid = np.zeros(terms * apart + SLACK // BYTES, SINGLE)
    rows = np.concatenate([_words(_filled(it, 1)) for it in parts], axis=1)
    laid[: terms * apart].reshape(terms, apart)[:, :columns] = rows.T
    totals = sum(it.sum(axis=1, dtype=np.int64) for it in parts)
    multiply(
        listing, [], source=At(laid), goal=At(goal), kernels=data, offsets=At(BYTES * apart * np.arange(terms)),
        images=1, groups=1, each=count, terms=terms, places=columns, image_bytes=0, group_bytes=0, wide=columns,
        width=columns, positions=columns, family=family, by_rows=1, order=SIGNED_COLUMNS, **ending,
        **_ending(listing, source, zero, np.asarray(totals), None),
    )  # fmt: skip


QUANTIZED: Final[Mapping[str, Lower]] = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "Cast": _cast,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "ConvInteger": _conv_integer,
    "MatMulInteger": _matmul_integer,
}
"""How nodes on quantized tensors are lowered, by their operators."""
