"""Activation functions, element by element. Each operation is rounded in the element type; a NaN stays one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np

from ..functions import (
    BLOCK,
    DOUBLE,
    DType,
    Step,
    at_least,
    at_most,
    erf,
    finite_range,
    is_integer,
    narrow,
    scalar,
    select,
    through_double,
)
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site, unprepared
from ..reading import number, optional, require, tensor, text
from .elementwise import unary

SQRT_2_OVER_PI: Final = Fraction("0.7978845608028653558798921198687637369517")


def _attribute(site: Site, name: str, dtype: DType) -> Array:
    return scalar(number(site, name), dtype)


def _relu(dtype: DType) -> Step:
    zero = np.zeros((), dtype)

    def step(x: Array, out: Array) -> None:
        at_least(x, zero, out)

    return step


def sigmoid(dtype: DType) -> Step:
    """The step of Sigmoid."""
    one, exp = scalar(1, dtype), through_double(np.exp)(dtype)

    def step(x: Array, out: Array) -> None:
        np.negative(x, out=out)
        exp(out, out)
        np.add(out, one, out=out)
        np.divide(one, out, out=out)

    return step


def softplus(dtype: DType) -> Step:
    """The step of Softplus."""
    one, zero = scalar(1, dtype), scalar(0, dtype)
    exp, log = through_double(np.exp)(dtype), through_double(np.log)(dtype)

    def step(x: Array, out: Array) -> None:
        """log(exp(-|x|) + 1), plus x where it is positive."""
        above = np.maximum(x, zero)
        np.negative(np.absolute(x), out=out)
        exp(out, out)
        np.add(out, one, out=out)
        log(out, out)
        np.add(above, out, out=out)

    return step


def softsign(dtype: DType) -> Step:
    """The step of Softsign."""
    one = scalar(1, dtype)

    def step(x: Array, out: Array) -> None:
        np.divide(x, np.add(np.absolute(x), one), out=out)

    return step


# ---- with attributes --------------------------------------------------------------------------


def _leaky_relu(site: Site, dtype: DType) -> Step:
    alpha, zero = _attribute(site, "alpha", dtype), scalar(0, dtype)

    def step(x: Array, out: Array) -> None:
        scaled = np.multiply(x, alpha)
        if 0 < alpha <= 1:
            np.maximum(x, scaled, out=out)
        else:
            select(np.less(x, zero), scaled, x, out)

    return step


def _elu(site: Site, dtype: DType) -> Step:
    alpha, one, zero = _attribute(site, "alpha", dtype), scalar(1, dtype), scalar(0, dtype)
    exp = through_double(np.exp)(dtype)

    def step(x: Array, out: Array) -> None:
        below = np.less(x, zero)
        values = np.empty_like(x)
        exp(x, values)
        np.subtract(values, one, out=values)
        np.multiply(alpha, values, out=values)
        select(below, values, x, out)

    return step


def _selu(site: Site, dtype: DType) -> Step:
    alpha, gamma, zero = _attribute(site, "alpha", dtype), _attribute(site, "gamma", dtype), scalar(0, dtype)
    exp = through_double(np.exp)(dtype)

    def step(x: Array, out: Array) -> None:
        below = np.less(x, zero)
        values = np.empty_like(x)
        exp(x, values)
        np.multiply(alpha, values, out=values)
        np.subtract(values, alpha, out=values)
        select(below, values, x, out)
        np.multiply(gamma, out, out=out)

    return step


def _thresholded(site: Site, dtype: DType) -> Step:
    alpha, zero = _attribute(site, "alpha", dtype), scalar(0, dtype)

    def step(x: Array, out: Array) -> None:
        select(np.greater(x, alpha), x, zero, out)

    return step


def _hard_sigmoid_step(alpha: Array, beta: Array) -> Step:
    zero, one = scalar(0, alpha.dtype), scalar(1, alpha.dtype)

    def step(x: Array, out: Array) -> None:
        np.multiply(alpha, x, out=out)
        np.add(out, beta, out=out)
        at_least(out, zero, out)
        at_most(out, one, out)

    return step


def _hard_sigmoid(site: Site, dtype: DType) -> Step:
    return _hard_sigmoid_step(_attribute(site, "alpha", dtype), _attribute(site, "beta", dtype))


def _hard_swish(dtype: DType) -> Step:
    inner = _hard_sigmoid_step(scalar(Fraction(1, 6), dtype), scalar(0.5, dtype))

    def step(x: Array, out: Array) -> None:
        factor = np.empty_like(x)
        inner(x, factor)
        np.multiply(x, factor, out=out)

    return step


def _cube(x: Array) -> Array:
    if x.dtype == DOUBLE:
        return np.asarray(np.power(x, 3.0))
    wide = x.astype(np.float64)
    return narrow(wide * wide * wide, x.dtype)


def _gelu(site: Site, dtype: DType) -> Step:
    approximate = text(site, "approximate", "none")
    require(approximate in ("none", "tanh"), "approximate is none or tanh")
    half, one, root = scalar(0.5, dtype), scalar(1, dtype), scalar(math.sqrt(2), dtype)
    cubic, slope = scalar(Fraction("0.044715"), dtype), scalar(SQRT_2_OVER_PI, dtype)
    outer = erf(dtype) if approximate == "none" else through_double(np.tanh)(dtype)

    def step(x: Array, out: Array) -> None:
        if approximate == "none":
            values = np.divide(x, root)
        else:
            values = np.multiply(cubic, _cube(x))
            np.add(x, values, out=values)
            np.multiply(slope, values, out=values)
        outer(values, values)
        np.add(one, values, out=values)
        np.multiply(np.multiply(half, x), values, out=out)

    return step


# ---- with further inputs ----------------------------------------------------------------------


def _chunks(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Parts of a tensor, along its first axis that has more than one index, that stay in the cache."""
    axis = next((k for k, n in enumerate(shape) if n > 1), 0)
    each = max(BLOCK // max(math.prod(shape[axis + 1 :]), 1), 1)
    for start in range(0, shape[axis], each):
        yield (*(slice(None),) * axis, slice(start, start + each))


@unprepared
def _prelu(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x, slope = tensor(inputs, 0), tensor(inputs, 1)
    fits = slope.ndim <= x.ndim and all(s in (1, d) for s, d in zip(slope.shape[::-1], x.shape[::-1], strict=False))
    require(fits, "slope broadcasts to the shape of X")
    out = allocate(x.shape, x.dtype)
    into = out
    if not x.ndim:
        x, slope, into = x.reshape(1), slope.reshape(1), out.reshape(1)
    whole, zero = np.broadcast_to(slope, x.shape), np.zeros((1,) * x.ndim, x.dtype)
    for at in _chunks(x.shape):
        part = x[at]
        select(np.less(part, zero), np.multiply(whole[at], part), part, into[at])
    return (out,)


def _clipped(x: Array, low: Array, high: Array, allocate: Allocate) -> tuple[Array]:
    out = allocate(x.shape, x.dtype)
    at_least(x, low, out)
    at_most(out, high, out)
    return (out,)


def _inside(value: float, low: float, high: float) -> float:
    return min(max(value + 0.0, low), high) if value == value else value


def _clip_by_attributes(site: Site) -> Compute:
    @cache
    def bounds(dtype: DType) -> tuple[Array, Array]:
        low, high = finite_range(dtype)
        least, most = number(site, "min", low), number(site, "max", high)
        return scalar(_inside(least, low, high), dtype), scalar(_inside(most, low, high), dtype)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        return _clipped(x, *bounds(x.dtype), allocate)

    return compute


@cache
def _ends(dtype: DType) -> tuple[Array, Array]:
    low, high = finite_range(dtype)
    if is_integer(dtype):
        return np.asarray(low, dtype), np.asarray(high, dtype)
    return scalar(low, dtype), scalar(high, dtype)


@unprepared
def _clip(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x, low, high = tensor(inputs, 0), optional(inputs, 1), optional(inputs, 2)
    require(low is None or low.ndim == 0, "min is a scalar")
    require(high is None or high.ndim == 0, "max is a scalar")
    least, most = _ends(x.dtype)
    return _clipped(x, least if low is None else low, most if high is None else high, allocate)


def _plain(first: int, last: int, make: Callable[[DType], Step], blocks: bool = True) -> tuple[Kernel]:
    return (Kernel(first, last, unary(make, blocks), in_place=True),)


def _with(first: int, last: int, make: Callable[[Site, DType], Step]) -> tuple[Kernel]:
    def prepare(site: Site) -> Compute:
        return unary(lambda dtype: make(site, dtype), blocks=True)(site)

    return (Kernel(first, last, prepare, in_place=True),)


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "Relu": _plain(1, 14, _relu, blocks=False),
    "Sigmoid": _plain(1, 13, sigmoid),
    "Tanh": _plain(1, 13, through_double(np.tanh), blocks=False),
    "Softplus": _plain(1, 22, softplus),
    "Softsign": _plain(1, 22, softsign),
    "HardSwish": _plain(14, 22, _hard_swish),
    "LeakyRelu": _with(1, 16, _leaky_relu),
    "Elu": _with(1, 22, _elu),
    "Selu": _with(1, 22, _selu),
    "ThresholdedRelu": _with(10, 22, _thresholded),
    "HardSigmoid": _with(1, 22, _hard_sigmoid),
    "Gelu": _with(20, 20, _gelu),
    "PRelu": (Kernel(7, 16, _prelu, in_place=True),),
    "Clip": (
        Kernel(6, 6, _clip_by_attributes, in_place=True),
        Kernel(11, 13, _clip, in_place=True),
    ),
}
