"""Operators that show the same elements in another shape or order, as views where NumPy can make them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import EllipsisType
from typing import Final

import numpy as np

from ....model.values import Value
from ..by_text import run_text
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site, unprepared
from ..reading import asked, integer, integers, optional, require, tensor, text
from ..repeating import Phase, Ready, Repeatable

Shape = tuple[int, ...]
INT64: Final = np.dtype(np.int64)


def shown(view: Array) -> Array:
    """The view, which nobody writes."""
    view.flags.writeable = False
    return view


def part(x: Array, slices: Sequence[slice]) -> Array:
    """The part of a tensor that these slices of its first axes show."""
    index: tuple[slice | EllipsisType, ...] = (*slices, ...)
    return x[index]


def reshaping(x: Array, shape: Shape, allocate: Allocate) -> tuple[Array, list[Phase]]:
    """As `reshaped`, with what copies."""
    if x.flags.c_contiguous:
        return shown(x.reshape(shape)), []
    out = allocate(shape, x.dtype)
    return out, [Phase(1, lambda _part, _worker: [partial(np.copyto, out.reshape(x.shape), x)])]


def reshaped(x: Array, shape: Shape, allocate: Allocate) -> Array:
    """The elements in another shape: a view, or a copy where they do not lie in row-major order."""
    out, phases = reshaping(x, shape, allocate)
    for phase in phases:
        phase.run()
    return out


def listed(site: Site, position: int, most: int = 1) -> Callable[[Sequence[Value | None]], Shape | None]:
    """The reader of the integers of an input, a vector (with most 1: or a scalar), None where it is absent; those of a
    constant are read now.
    """
    known = site.constants[position] if position < len(site.constants) else None
    if known is not None:
        fixed = _entries((known,), 0, most)
        return lambda _inputs: fixed
    return lambda inputs: _entries(inputs, position, most)


def vector(site: Site, position: int) -> Callable[[Sequence[Value | None]], Shape | None]:
    """As `listed`, for vectors alone."""
    return listed(site, position, 0)


def _entries(inputs: Inputs, position: int, most: int) -> Shape | None:
    x = optional(inputs, position)
    if x is None:
        return None
    require(x.ndim == 1 or (most > 0 and x.ndim == 0), f"input {position} is a vector")
    return tuple(int(v) for v in x.reshape(-1).tolist())


def axis_of(stated: int, rank: int, name: str = "axis") -> int:
    """An axis of a tensor, counted from either end."""
    require(-rank <= stated < rank, f"{name} is an axis of the input, counted from either end")
    return stated % rank


def axes_of(stated: Shape, rank: int) -> Shape:
    """Distinct axes of a tensor, counted from either end."""
    axes = tuple(axis_of(it, rank, "each of axes") for it in stated)
    require(len(set(axes)) == len(axes), "no axis is listed twice")
    return axes


# ---- the same elements ------------------------------------------------------------------------


@unprepared
def _identity(_site: Site, inputs: Inputs, _allocate: Allocate) -> Outputs:
    (x,) = inputs
    return (shown(x.view()) if isinstance(x, np.ndarray) else x,)


@unprepared
def _dropout(site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x, ratio, training = tensor(inputs, 0), optional(inputs, 1), optional(inputs, 2)
    require(training is None or training.ndim == 0, "training_mode is a scalar")
    require(ratio is None or ratio.ndim == 0, "ratio is a scalar")
    still = training is None or not training or (ratio is not None and bool(ratio == 0))
    if not still:
        return run_text(site, inputs, allocate)
    if not asked(site, 1):
        return shown(x.view()), None
    mask = allocate(x.shape, x.dtype if site.version < 10 else np.dtype(np.bool_))
    mask[...] = 1
    return shown(x.view()), mask


def _reshape(site: Site) -> Compute:
    shape_of, literal = vector(site, 1), integer(site, "allowzero", 0)
    require(literal in (0, 1), "allowzero is 0 or 1")
    known = site.constants[1] is not None

    @lru_cache(maxsize=8)
    def resolved(s: Shape, d: Shape) -> Shape:
        require(all(n >= -1 for n in s), "no entry of shape is less than -1")
        require(s.count(-1) <= 1, "at most one entry of shape is -1")
        if literal:
            require(not (0 in s and -1 in s), "where allowzero is 1, shape does not contain both 0 and -1")
            kept = s
        else:
            require(all(n or k < len(d) for k, n in enumerate(s)), "an entry 0 of shape stands where data has an axis")
            kept = tuple(n if n else d[k] for k, n in enumerate(s))
        known, size = math.prod(n for n in kept if n != -1), math.prod(d)
        if -1 in s:
            require(known != 0, "where an entry is -1, the other sizes determine it: none of them is 0")
        sizes = tuple(size // known if n == -1 else n for n in kept)
        require(math.prod(sizes) == size, "the shapes have the same number of elements")
        return sizes

    def ready(inputs: Inputs, allocate: Allocate) -> Ready:
        x, s = tensor(inputs, 0), shape_of(inputs)
        out, phases = reshaping(x, resolved(s or (), x.shape), allocate)
        return Ready((out,), phases, known)

    return Repeatable(ready)


def _flatten(site: Site) -> Compute:
    axis = integer(site, "axis", 1)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        least = -x.ndim if site.version >= 11 else 0
        require(least <= axis <= x.ndim, "axis is in the range that is stated for the number of axes")
        at = axis + x.ndim if axis < 0 else axis
        return (reshaped(x, (math.prod(x.shape[:at]), math.prod(x.shape[at:])), allocate),)

    return compute


def _squeeze(site: Site) -> Compute:
    attribute, given = integers(site, "axes"), vector(site, 1)

    @lru_cache(maxsize=8)
    def left(axes: Shape | None, d: Shape) -> Shape:
        if axes is None:
            return tuple(n for n in d if n != 1)
        require(site.version >= 11 or all(a >= 0 for a in axes), "axes lists axes of the input, from 0")
        gone = axes_of(axes, len(d))
        require(all(d[a] == 1 for a in gone), "the axes that are removed have the size 1")
        return tuple(n for k, n in enumerate(d) if k not in gone)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        axes = attribute if site.version < 13 else given(inputs)
        return (reshaped(x, left(axes, x.shape), allocate),)

    return compute


def _unsqueeze(site: Site) -> Compute:
    attribute, given = integers(site, "axes"), listed(site, 1)

    @lru_cache(maxsize=8)
    def grown(axes: Shape, d: Shape) -> Shape:
        rank = len(d) + len(axes)
        require(site.version >= 11 or all(a >= 0 for a in axes), "axes lists axes of the result, from 0")
        new = axes_of(axes, rank)
        rest = iter(d)
        return tuple(1 if k in new else next(rest) for k in range(rank))

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        axes = attribute if site.version < 13 else given(inputs)
        return (reshaped(x, grown(axes or (), x.shape), allocate),)

    return compute


def _transpose(site: Site) -> Compute:
    perm = integers(site, "perm")

    def ready(inputs: Inputs, _allocate: Allocate) -> Ready:
        x = tensor(inputs, 0)
        require(perm is None or sorted(perm) == list(range(x.ndim)), "perm lists each axis once")
        return Ready((shown(x.transpose(perm)),), ())

    return Repeatable(ready)


# ---- parts of the elements --------------------------------------------------------------------


def along(start: int, end: int, step: int, size: int) -> slice:
    """The part of an axis of this size, start and end counted from the end where negative, then limited to the axis."""
    b, e = (v + size if v < 0 else v for v in (start, end))
    top = size if step > 0 else size - 1
    b = min(max(b, 0), top)
    e = min(max(e, 0 if step > 0 else -1), top)
    count = max(-((b - e) // step), 0)
    stop = b + count * step
    return slice(b, None if stop < 0 else stop, step) if count else slice(0, 0)


def _slice(site: Site) -> Compute:
    fixed = (*(integers(site, name) for name in ("starts", "ends", "axes")), None) if site.version < 10 else None
    read = tuple(vector(site, position) for position in (1, 2, 3, 4))

    @lru_cache(maxsize=8)
    def parts(d: Shape, starts: Shape, ends: Shape, axes: Shape | None, steps: Shape | None) -> tuple[slice, ...]:
        require(len(ends) == len(starts), "there are as many ends as starts")
        require(axes is None or len(axes) == len(starts), "there are as many axes as starts")
        require(steps is None or len(steps) == len(starts), "there are as many steps as starts")
        require(steps is None or 0 not in steps, "no step is 0")
        places = axes_of(tuple(range(len(starts))) if axes is None else axes, len(d))
        slices = [slice(None)] * len(d)
        for k, a in enumerate(places):
            slices[a] = along(starts[k], ends[k], 1 if steps is None else steps[k], d[a])
        return tuple(slices)

    def compute(inputs: Inputs, _allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        starts, ends, axes, steps = fixed or tuple(it(inputs) for it in read)
        return (shown(part(x, parts(x.shape, starts or (), ends or (), axes, steps))),)

    return compute


def _split(site: Site) -> Compute:
    stated, attribute, given = integer(site, "axis", 0), integers(site, "split"), vector(site, 1)
    count = len(site.outputs)
    number = integer(site, "num_outputs", count) if site.version >= 18 else count

    @lru_cache(maxsize=8)
    def parts(sizes: Shape | None, d: Shape) -> tuple[tuple[slice, ...], ...]:
        axis = axis_of(stated, len(d))
        n = d[axis]
        if sizes is None:
            require(number == count, "num_outputs is the number of outputs")
            if site.version < 18:
                require(n % count == 0, "the parts are equal where split is absent")
            part = -(-n // count)
            require((count - 1) * part <= n, "the parts before the last one fit into the axis")
            sizes = (*(part,) * (count - 1), n - (count - 1) * part)
        require(len(sizes) == count, "split has a size for each output")
        require(all(it >= 0 for it in sizes), "the sizes in split are not negative")
        require(sum(sizes) == n, "the sizes in split add up to that of the axis")
        ends = [sum(sizes[: k + 1]) for k in range(count)]
        before = (slice(None),) * axis
        return tuple((*before, slice(e - it, e)) for it, e in zip(sizes, ends, strict=True))

    def compute(inputs: Inputs, _allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        sizes = attribute if site.version < 13 else given(inputs)
        if site.version >= 18:
            one = (sizes is None) == ("num_outputs" in site.attributes)
            require(one, "either split or num_outputs is given, not both")
        return tuple(
            shown(x[it]) if named else None for it, named in zip(parts(sizes, x.shape), site.outputs, strict=True)
        )

    return compute


# ---- sizes ------------------------------------------------------------------------------------


def _shape(site: Site) -> Compute:
    start = integer(site, "start", 0)
    end = integer(site, "end") if "end" in site.attributes else None

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        d = tensor(inputs, 0).shape
        r = len(d)
        first, stop = (min(max(v + r if v < 0 else v, 0), r) for v in (start, r if end is None else end))
        sizes = d[first : max(stop, first)]
        out = allocate((len(sizes),), INT64)
        out[...] = sizes
        return (out,)

    return compute


@unprepared
def _size(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    out = allocate((), INT64)
    out[...] = tensor(inputs, 0).size
    return (out,)


# ---- DepthToSpace and SpaceToDepth ----------------------------------------------------------------


def _checked(site: Site, inputs: Inputs) -> tuple[Array, int, bool]:
    """The input, the size of blocks, and whether the place in a block is the first part of a channel."""
    x, size, mode = tensor(inputs, 0), integer(site, "blocksize"), text(site, "mode", "DCR")
    require(x.ndim == 4, "the input has four axes")
    require(size > 0, "blocks are not empty")
    require(mode in ("DCR", "CRD"), "mode is one of the two words")
    return x, size, mode == "DCR"


@unprepared
def _depth_to_space(site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x, s, first = _checked(site, inputs)
    b, c, h, w = x.shape
    require(c % (s * s) == 0, "the channels are divided into those of the places of a block")
    n = c // (s * s)
    parts = x.reshape(b, s, s, n, h, w) if first else x.reshape(b, n, s, s, h, w)
    out = allocate((b, n, h * s, w * s), x.dtype)
    np.copyto(out.reshape(b, n, h, s, w, s), parts.transpose((0, 3, 4, 1, 5, 2) if first else (0, 1, 4, 2, 5, 3)))
    return (out,)


@unprepared
def _space_to_depth(site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x, s, first = _checked(site, inputs)
    b, c, h, w = x.shape
    require(h % s == 0 and w % s == 0, "height and width are divided into blocks")
    parts = x.reshape(b, c, h // s, s, w // s, s)
    out = allocate((b, c * s * s, h // s, w // s), x.dtype)
    if first:
        np.copyto(out.reshape(b, s, s, c, h // s, w // s), parts.transpose(0, 3, 5, 1, 2, 4))
    else:
        np.copyto(out.reshape(b, c, s, s, h // s, w // s), parts.transpose(0, 1, 3, 5, 2, 4))
    return (out,)


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "Identity": (Kernel(1, 25, _identity),),
    "Dropout": (Kernel(7, 22, _dropout),),
    "Reshape": (Kernel(5, 25, _reshape),),
    "Flatten": (Kernel(1, 25, _flatten),),
    "Squeeze": (Kernel(1, 25, _squeeze),),
    "Unsqueeze": (Kernel(1, 25, _unsqueeze),),
    "Transpose": (Kernel(1, 25, _transpose),),
    "Slice": (Kernel(1, 13, _slice),),
    "Split": (Kernel(2, 18, _split),),
    "Shape": (Kernel(1, 25, _shape),),
    "Size": (Kernel(1, 25, _size),),
    "DepthToSpace": (Kernel(1, 28, _depth_to_space),),
    "SpaceToDepth": (Kernel(1, 28, _space_to_depth),),
}
