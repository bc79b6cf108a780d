"""Normalization: BatchNormalization, LayerNormalization, RMSNormalization, GroupNormalization, InstanceNormalization,
LpNormalization and LRN.

Sums of floats of 16 bits are computed in float and rounded once; every other operation is rounded in its own type.
Elementwise steps are made block by block, so that the data stay near the processor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final

import numpy as np

from ....model.values import Value
from ..functions import BFLOAT16, DOUBLE, HALF, SINGLE, DType, converted, narrow, scalar, summing
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site
from ..products import widened
from ..reading import asked, integer, number, optional, require, tensor
from ..windows import Sizes
from ..workers import shared

BLOCK_BYTES: Final = 256 << 10
"""About how many bytes of an output are computed at a time."""
STASHES: Final[Mapping[int, DType]] = {1: SINGLE, 10: HALF, 11: DOUBLE, 16: BFLOAT16}
"""The types that stash_type names, by ONNX's numbers."""


def blocks(count: int, row_bytes: int) -> Iterator[slice]:
    """Slices of `count` rows, each of about BLOCK_BYTES."""
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    for first in range(0, count, step):
        yield slice(first, first + step)


def sum_of(x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
    """The sums along axes, which stay with size 1, rounded to a type."""
    return widened(np.asarray(np.sum(x, axis=axes, dtype=summing(dtype), keepdims=True)), dtype)


def sum_of_squares(x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
    """The sums of the squares along axes, which stay with size 1, rounded to a type."""
    return sum_of(np.multiply(x, x), axes, dtype)


# ---- BatchNormalization -----------------------------------------------------------------------


def _working(x: DType, others: tuple[DType, ...]) -> DType:
    """The type of the arithmetic: that of all inputs, or else double if one of them is double, else float."""
    if all(other == x for other in others):
        return x
    return DOUBLE if DOUBLE in (x, *others) else SINGLE


def _batch(site: Site) -> Compute:
    training, epsilon = integer(site, "training_mode") != 0, number(site, "epsilon", 1e-5)
    momentum, spatial = number(site, "momentum", 0.9), integer(site, "spatial", 1) != 0

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, scale, bias, mean, variance = (tensor(inputs, k) for k in range(5))
        parameters = (scale, bias, mean, variance)
        shape = _parameter_shape(site.version, spatial, x.shape)
        fits = all(p.shape == shape for p in parameters)
        require(fits, "scale, B, mean and variance have an element for each channel")
        alone = not any(asked(site, k) for k in range(1, len(site.outputs)))
        require(alone or (training and site.version >= 14), "Y is the only output")
        require(not training or 0 not in (*x.shape[:1], *x.shape[2:]), "in training mode each channel has an element")
        kind = _working(x.dtype, tuple(p.dtype for p in parameters))
        m, v = mean, variance
        if training:
            # From version 15 on the statistics of floats of 16 bits are those of float.
            inner = SINGLE if site.version >= 15 and kind.itemsize == 2 else kind
            m, v = _statistics(converted(x, inner), shape[0], inner)
        outputs: list[Value | None] = [None] * max(1, len(site.outputs))
        root = np.sqrt(converted(v, kind) + scalar(epsilon, kind))
        given = (converted(m, kind), root, converted(scale, kind), converted(bias, kind))
        outputs[0] = _normalized(x, kind, given, allocate)
        for position, old, new in ((1, mean, m), (2, variance, v)):
            if asked(site, position):
                outputs[position] = _running(old, new, momentum, kind)
        return tuple(outputs)

    return compute


def _parameter_shape(version: int, spatial: bool, x: Sizes) -> Sizes:
    if version >= 9:
        require(len(x) > 0, "X has a batch axis")
        return (1 if len(x) == 1 else x[1],)
    require(len(x) > 1, "X has a batch axis and a channel axis")
    return (x[1],) if spatial else x[1:]


def _statistics(x: Array, channels: int, kind: DType) -> tuple[Array, Array]:
    """Mean and variance of each channel."""
    axes = (0, *range(2, x.ndim))
    count = scalar(math.prod(n for k, n in enumerate(x.shape) if k in axes), kind)
    mean = np.asarray(sum_of(x, axes, kind) / count)
    variance = np.asarray(sum_of_squares(np.subtract(x, mean), axes, kind) / count)
    return mean.reshape(channels), variance.reshape(channels)


def _running(old: Array, new: Array, momentum: float, kind: DType) -> Array:
    kept, added = scalar(momentum, kind), scalar(1 - Fraction(momentum), kind)
    return converted(np.asarray(converted(old, kind) * kept + converted(new, kind) * added), old.dtype)


def _normalized(x: Array, kind: DType, given: tuple[Array, Array, Array, Array], allocate: Allocate) -> Array:
    """(x - mean) / root * scale + bias, each rounded; the parameters stand from axis 1 on."""
    out = allocate(x.shape, kind)
    beside = [p.reshape(p.shape + (1,) * (x.ndim - 1 - p.ndim)) if x.ndim > 1 else p for p in given]
    images = x.shape[0] if x.ndim > 1 else 1
    source, target = (x, out) if x.ndim > 1 else (x[None], out[None])
    channels = source.shape[1] if source.ndim > 1 else 1
    row = source[0:1].nbytes // max(1, channels)
    for image in range(images):
        for part in blocks(channels, row):
            mean, root, scale, bias = (p[part] if p.shape[0] == channels else p for p in beside)
            goal = target[image, part]
            np.subtract(converted(source[image, part], kind), mean, out=goal)
            np.divide(goal, root, out=goal)
            np.multiply(goal, scale, out=goal)
            np.add(goal, bias, out=goal)
    return converted(out, x.dtype)


# ---- layers, groups, instances ----------------------------------------------------------------


def _reaches(part: Sizes, whole: Sizes) -> bool:
    """True where a shape broadcasts to another, which stays as it is."""
    return len(part) <= len(whole) and all(n in (1, m) for n, m in zip(reversed(part), reversed(whole), strict=False))


def _inner_axes(site: Site, rank: int) -> tuple[int, ...]:
    axis = integer(site, "axis", -1)
    require(-rank <= axis < rank, "axis is an axis of X, counted from either end; X is no scalar")
    return tuple(range(axis % rank, rank))


def _layer(site: Site) -> Compute:
    epsilon, stash = number(site, "epsilon", 1e-5), integer(site, "stash_type", 1)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, scale, bias = tensor(inputs, 0), tensor(inputs, 1), optional(inputs, 2)
        axes = _inner_axes(site, x.ndim)
        require(stash in (1, 16), "stash_type is float or bfloat16")
        require(_reaches(scale.shape, x.shape), "Scale broadcasts to X")
        require(bias is None or _reaches(bias.shape, x.shape), "B broadcasts to X")
        kind = STASHES[stash]
        count = scalar(math.prod(x.shape[k] for k in axes), kind)
        data = converted(x, kind)
        mean = np.asarray(sum_of(data, axes, kind) / count)
        centred = allocate(x.shape, kind)
        np.subtract(data, mean, out=centred)
        squares = sum_of_squares(centred, axes, kind) / count + scalar(epsilon, kind)
        inverse = np.asarray(kind.type(1) / np.sqrt(squares))
        np.multiply(centred, inverse, out=centred)
        out = allocate(x.shape, x.dtype)
        np.multiply(converted(centred, x.dtype), scale, out=out)
        if bias is not None:
            np.add(out, bias, out=out)
        values = (out, mean, inverse)
        return tuple(v if asked(site, k) else None for k, v in enumerate(values))[: max(1, len(site.outputs))]

    return compute


def _root_mean_square(site: Site) -> Compute:
    epsilon, stash = number(site, "epsilon", 1e-5), integer(site, "stash_type", 1)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, scale = tensor(inputs, 0), tensor(inputs, 1)
        axes = _inner_axes(site, x.ndim)
        require(stash in STASHES, "stash_type is the number of float, float16, double or bfloat16")
        require(_reaches(scale.shape, x.shape), "scale broadcasts to X")
        kind = STASHES[stash]
        count = scalar(math.prod(x.shape[k] for k in axes), kind)
        data = converted(x, kind)
        root = np.sqrt(sum_of_squares(data, axes, kind) / count + scalar(epsilon, kind))
        quotient = allocate(x.shape, kind)
        np.divide(data, root, out=quotient)
        out = allocate(x.shape, scale.dtype)
        np.multiply(converted(converted(quotient, x.dtype), scale.dtype), scale, out=out)
        return (out,)

    return compute


def _group(site: Site) -> Compute:
    epsilon, stash = number(site, "epsilon", 1e-5), integer(site, "stash_type", 1)
    groups = integer(site, "num_groups")

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, scale, bias = tensor(inputs, 0), tensor(inputs, 1), tensor(inputs, 2)
        require(x.ndim >= 2, "X has a batch axis and a channel axis")
        require(groups > 0 and x.shape[1] % groups == 0, "the groups divide the channels")
        require(stash in STASHES, "stash_type is the number of float, float16, double or bfloat16")
        kind = STASHES[stash] if site.version >= 21 else x.dtype
        size = x.shape[1] if site.version >= 21 else groups
        require(scale.shape == bias.shape == (size,), "scale and bias have an element for each channel or group")
        if site.version < 21:
            scale, bias = (np.repeat(p, x.shape[1] // groups) for p in (scale, bias))
        data = converted(x, kind).reshape(x.shape[0], groups, math.prod(x.shape[1:]) // groups)
        centred, root = _centred(data, kind, epsilon, allocate)
        np.divide(centred, root, out=centred)
        out = allocate(x.shape, x.dtype)
        beside = (-1, *(1,) * (x.ndim - 2))
        np.multiply(scale.reshape(beside), converted(centred.reshape(x.shape), x.dtype), out=out)
        np.add(out, bias.reshape(beside), out=out)
        return (out,)

    return compute


def _centred(data: Array, kind: DType, epsilon: float, allocate: Allocate) -> tuple[Array, Array]:
    """The data minus the mean of their last axis, and the root of the mean of the squares of that plus epsilon."""
    count = scalar(data.shape[-1], kind)
    mean = sum_of(data, (data.ndim - 1,), kind) / count
    centred = allocate(data.shape, kind)
    np.subtract(data, mean, out=centred)
    squares = sum_of_squares(centred, (data.ndim - 1,), kind) / count
    return centred, np.asarray(np.sqrt(squares + scalar(epsilon, kind)))


def _instance(site: Site) -> Compute:
    epsilon = number(site, "epsilon", 1e-5)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, scale, bias = tensor(inputs, 0), tensor(inputs, 1), tensor(inputs, 2)
        require(x.ndim >= 2, "input has a batch axis and a channel axis")
        require(scale.shape == bias.shape == x.shape[1:2], "scale and B have an element for each channel")
        data = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
        out, root = _centred(data, x.dtype, epsilon, allocate)
        np.multiply(scale[:, None], out, out=out)
        np.divide(out, root, out=out)
        np.add(out, bias[:, None], out=out)
        return (out.reshape(x.shape),)

    return compute


# ---- lines ------------------------------------------------------------------------------------


def _lp(site: Site) -> Compute:
    stated, p = integer(site, "axis", -1), integer(site, "p", 2)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        require(-x.ndim <= stated < x.ndim, "axis is an axis of the input, counted from either end; it is no scalar")
        require(p in (1, 2), "p is 1 or 2")
        axes = (stated % x.ndim,)
        norm = sum_of(np.abs(x), axes, x.dtype) if p == 1 else np.sqrt(sum_of_squares(x, axes, x.dtype))
        out = allocate(x.shape, x.dtype)
        np.divide(x, norm, out=out)
        none = norm == np.zeros((), x.dtype)
        if none.any():
            np.copyto(out, np.zeros((), x.dtype), where=none)
        return (out,)

    return compute


def _lrn(site: Site) -> Compute:
    size = integer(site, "size")
    alpha, beta, bias = number(site, "alpha", 1e-4), number(site, "beta", 0.75), number(site, "bias", 1.0)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        require(x.ndim >= 2, "X has a batch axis and a channel axis")
        require(size > 0, "the window is not empty")
        kind, channels, before = summing(x.dtype), x.shape[1], (size - 1) // 2
        factor = scalar(Fraction(alpha) / size, x.dtype)
        squares = allocate(x.shape, x.dtype)
        np.multiply(x, x, out=squares)
        wide = widened(squares, kind)
        sums = allocate(x.shape, kind)
        sums[...] = 0
        for tap in range(size):
            shift = tap - before
            low, high = max(0, -shift), min(channels, channels - shift)
            if low < high:
                np.add(sums[:, low:high], wide[:, low + shift : high + shift], out=sums[:, low:high])
        totals = widened(sums, x.dtype)
        out = allocate(x.shape, x.dtype)
        addend, exponent = scalar(bias, x.dtype), scalar(beta, x.dtype)
        pieces = list(blocks(channels, x[:, :1].nbytes))

        def work(number: int, _worker: int) -> None:
            part = totals[:, pieces[number]]
            np.multiply(factor, part, out=part)
            np.add(addend, part, out=part)
            np.divide(x[:, pieces[number]], _power(part, exponent), out=out[:, pieces[number]])

        shared(len(pieces), work)
        return (out,)

    return compute


def _power(x: Array, exponent: Array) -> Array:
    """The power, computed in double and rounded once."""
    if x.dtype in (SINGLE, DOUBLE):
        np.power(x, exponent, out=x, dtype=DOUBLE)
        return x
    return narrow(np.power(x.astype(np.float64), exponent.astype(np.float64)), x.dtype)


KERNELS: Mapping[str, tuple[Kernel, ...]] = {
    "BatchNormalization": (Kernel(7, 15, _batch),),
    "LayerNormalization": (Kernel(17, 17, _layer),),
    "RMSNormalization": (Kernel(23, 23, _root_mean_square),),
    "GroupNormalization": (Kernel(18, 21, _group),),
    "InstanceNormalization": (Kernel(6, 22, _instance),),
    "LpNormalization": (Kernel(1, 22, _lp),),
    "LRN": (Kernel(1, 13, _lrn),),
}
