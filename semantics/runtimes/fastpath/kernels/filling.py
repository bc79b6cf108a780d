"""Operators that write elements of tensors, or numbers that they are told, to places in a new tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from ..functions import BFLOAT16, DOUBLE, HALF, SINGLE, DType, is_float, is_integer, narrow, scalar
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, KernelError, Outputs, Site
from ..reading import integer, integers, number, numbers, optional, require, tensor, text, texts
from ..repeating import Phase, Ready, Repeatable
from .elementwise import broadcast
from .shape import Shape, axes_of, axis_of, part, shown, vector

OBJECT: Final = np.dtype(np.object_)


def _concat(site: Site) -> Compute:
    stated = integer(site, "axis")

    def ready(inputs: Inputs, allocate: Allocate) -> Ready:
        parts = [tensor(inputs, position) for position in range(len(inputs))]
        require(bool(parts), "there is an input")
        first = parts[0].shape
        axis = axis_of(stated, len(first))
        before, behind = first[:axis], first[axis + 1 :]
        for x in parts:
            require(x.ndim == len(first), "all inputs have the same number of axes")
            same = x.shape[:axis] == before and x.shape[axis + 1 :] == behind
            require(same, "the inputs have the same size along each other axis")
        out = allocate((*before, sum(x.shape[axis] for x in parts), *behind), parts[0].dtype)
        return Ready((out,), [Phase(1, lambda _part, _worker: [partial(np.concatenate, parts, axis, out=out)])])

    return Repeatable(ready)


# ---- constants --------------------------------------------------------------------------------


def _text_array(values: Sequence[str], shape: Shape) -> Array:
    made = np.empty(len(values), OBJECT)
    made[:] = [value.encode("utf-8", "surrogateescape") for value in values]
    return made.reshape(shape)


def _stated(site: Site) -> Array:
    """The tensor that the attributes of a Constant state."""
    names = ("value", "sparse_value", "value_float", "value_floats", "value_int", "value_ints", "value_string")
    given = [name for name in (*names, "value_strings") if name in site.attributes]
    require(len(given) == 1, "exactly one of the attributes is given")
    match given[0]:
        case "value" | "sparse_value":
            value = site.attributes[given[0]]
            if isinstance(value, np.ndarray):
                return value
        case "value_float":
            return np.asarray(number(site, "value_float"), np.float32)
        case "value_floats":
            return np.asarray(numbers(site, "value_floats") or (), np.float32)
        case "value_int":
            return np.asarray(integer(site, "value_int"), np.int64)
        case "value_ints":
            return np.asarray(integers(site, "value_ints") or (), np.int64)
        case "value_string":
            return _text_array((text(site, "value_string"),), ())
        case "value_strings":
            values = texts(site, "value_strings") or ()
            return _text_array(values, (len(values),))
    raise KernelError("the attribute has no value")


def _constant(site: Site) -> Compute:
    value = shown(_stated(site).view())
    return lambda _inputs, _allocate: (value,)


def _constant_of_shape(site: Site) -> Compute:
    value = site.attributes.get("value", np.zeros(1, np.float32))
    if not isinstance(value, np.ndarray):
        raise KernelError("the attribute value is no tensor")
    require(value.size == 1, "value has one element")
    sizes = vector(site, 0)
    element: Array = value.reshape(())

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        shape = sizes(inputs) or ()
        require(all(n >= 0 for n in shape), "no size is negative")
        out = allocate(shape, element.dtype)
        np.copyto(out, element)
        return (out,)

    return compute


_STASH: Final = {1: SINGLE, 10: HALF, 11: DOUBLE, 16: BFLOAT16}


def _as(x: Array, dtype: DType) -> Array:
    """Numbers as elements: integers, or floats of no more digits than those of `dtype`, or of 16 bits."""
    if not is_float(dtype):
        return x.astype(dtype)
    return x.astype(np.float32).astype(dtype) if x.dtype == SINGLE else narrow(x.astype(np.float64), dtype)


def _range(site: Site) -> Compute:
    stash = integer(site, "stash_type", 1)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        given = [tensor(inputs, position) for position in range(3)]
        require(all(x.shape in ((), (1,)) for x in given), "start, limit and delta are scalars")
        dtype = given[0].dtype
        start, limit, delta = (x.reshape(()) for x in given)
        if is_float(dtype):
            finite = all(math.isfinite(float(x)) for x in (start, limit, delta))
            require(finite, "start, limit and delta are numbers, no infinities and no NaN")
        first, last, step = (Fraction(x.item() if is_integer(dtype) else float(x)) for x in (start, limit, delta))
        require(step != 0, "delta is not 0")
        require(site.version < 27 or stash in _STASH, "stash_type is the number of float, float16, double or bfloat16")
        count = max(math.ceil((last - first) / step), 0)
        out = allocate((count,), dtype)
        inner = _STASH[stash] if site.version >= 27 and dtype in (HALF, BFLOAT16) else dtype
        terms = np.multiply(_as(np.arange(count), inner), _as(delta.reshape(1), inner))
        np.copyto(out, _as(np.add(_as(start.reshape(1), inner), terms), dtype))
        return (out,)

    return compute


# ---- repetition -------------------------------------------------------------------------------


def _expand(site: Site) -> Compute:
    sizes = vector(site, 1)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, shape = tensor(inputs, 0), sizes(inputs) or ()
        require(all(n >= 0 for n in shape), "no size is negative")
        together = broadcast(x.shape, shape)
        if together == x.shape:
            return (shown(x.view()),)
        out = allocate(together, x.dtype)
        np.copyto(out, x)
        return (out,)

    return compute


def _tile(site: Site) -> Compute:
    repeats = vector(site, 1)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, times = tensor(inputs, 0), repeats(inputs) or ()
        require(len(times) == x.ndim, "repeats has a number for each axis")
        require(all(n >= 0 for n in times), "the numbers are not negative")
        out = allocate(tuple(n * t for n, t in zip(x.shape, times, strict=True)), x.dtype)
        split = tuple(n for pair in zip(times, x.shape, strict=True) for n in pair)
        np.copyto(out.reshape(split), x.reshape(tuple(n for size in x.shape for n in (1, size))))
        return (out,)

    return compute


# ---- padding ----------------------------------------------------------------------------------


def _blank(dtype: DType) -> Array:
    if dtype == OBJECT:
        return _text_array(("",), ())
    return np.zeros((), dtype)


def _pads(pads: Shape, axes: Shape | None, rank: int) -> tuple[Shape, Shape]:
    """The pads at the beginnings and at the ends of all axes."""
    places = tuple(range(rank)) if axes is None else axes_of(axes, rank)
    require(len(pads) == 2 * len(places), "there are two pads for each listed axis")
    before, after = [0] * rank, [0] * rank
    for k, axis in enumerate(places):
        before[axis], after[axis] = pads[k], pads[len(places) + k]
    return tuple(before), tuple(after)


def _pad(site: Site) -> Compute:
    mode = text(site, "mode", "constant")
    words = ("constant", "reflect", "edge", *(("wrap",) if site.version >= 19 else ()))
    require(mode in words, f"mode is one of {', '.join(words)}")
    attribute, given, listed_axes = integers(site, "pads"), vector(site, 1), vector(site, 3)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        if site.version < 11:
            pads, axes, value = attribute, None, scalar(number(site, "value", 0.0), x.dtype)
        else:
            pads, axes, stated = given(inputs), listed_axes(inputs), optional(inputs, 2)
            require(stated is None or stated.size == 1, "constant_value holds one element")
            value = _blank(x.dtype) if stated is None else stated.reshape(())
        before, after = _pads(pads or (), axes, x.ndim)
        kept = tuple(n + min(b, 0) + min(a, 0) for n, b, a in zip(x.shape, before, after, strict=True))
        require(all(n >= 0 for n in kept), "no axis loses more elements than it has")
        left, right = tuple(max(b, 0) for b in before), tuple(max(a, 0) for a in after)
        inner = part(x, [slice(max(-b, 0), max(-b, 0) + n) for b, n in zip(before, kept, strict=True)])
        out = allocate(tuple(map(sum, zip(left, kept, right, strict=True))), x.dtype)
        if mode == "constant":
            _surrounded(inner, value, left, out)
        else:
            _continued(inner, mode, left, right, out)
        return (out,)

    return compute


def _surrounded(x: Array, value: Array, left: Shape, out: Array) -> None:
    """x at a place in `out`, the value around it; each element is written once."""
    region = [slice(None)] * x.ndim
    for axis, (b, n) in enumerate(zip(left, x.shape, strict=True)):
        for beside in (slice(0, b), slice(b + n, None)):
            region[axis] = beside
            np.copyto(part(out, region), value)
        region[axis] = slice(b, b + n)
    np.copyto(part(out, region), x)


def _continued(x: Array, mode: str, left: Shape, right: Shape, out: Array) -> None:
    """x, its axes continued one after the other."""
    for axis, (b, n, a) in enumerate(zip(left, x.shape, right, strict=True)):
        if b == a == 0:
            continue
        require(n > 0, "an axis gets elements of its own only if it keeps one")
        places = np.arange(-b, n + a)
        if mode == "reflect":
            require(b < n and a < n, "reflect adds fewer elements than the axis keeps")
            places = n - 1 - np.abs(n - 1 - np.abs(places))
        else:
            places = np.clip(places, 0, n - 1) if mode == "edge" else places % n
        x = np.take(x, places, axis)
    np.copyto(out, x)


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "Concat": (Kernel(4, 13, _concat),),
    "Constant": (Kernel(1, 25, _constant),),
    "ConstantOfShape": (Kernel(9, 25, _constant_of_shape),),
    "Range": (Kernel(11, 27, _range),),
    "Expand": (Kernel(8, 13, _expand),),
    "Tile": (Kernel(6, 13, _tile),),
    "Pad": (Kernel(2, 25, _pad),),
}
