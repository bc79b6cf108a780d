"""Arithmetic, element by element, of one tensor or two that broadcast, each operation in the element type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import numpy as np

from ....operators.compiled.elements.ieee import powers
from ..functions import (
    DOUBLE,
    NATIVE,
    DType,
    Step,
    direct,
    erf,
    in_blocks,
    integer_range,
    is_integer,
    narrow,
    scalar,
    through_double,
)
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, KernelError, Outputs, Site, unprepared
from ..reading import integer, require, tensor

Binary = Callable[[Array, Array, Array], None]
"""Computes the third array from two that broadcast to its shape; it may be the memory of one of them."""


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which shapes broadcast. Raises KernelError where they do not."""
    together = shapes[0]
    for shape in shapes[1:]:
        if shape != together:
            rank = max(len(together), len(shape))
            a, b = (1,) * (rank - len(together)) + together, (1,) * (rank - len(shape)) + shape
            if any(p != q and p != 1 and q != 1 for p, q in zip(a, b, strict=True)):
                raise KernelError(f"the shapes broadcast: {', '.join(str(list(s)) for s in shapes)}")
            together = tuple(q if p == 1 else p for p, q in zip(a, b, strict=True))
    return together


def unary(make: Callable[[DType], Step], blocks: bool = False) -> Callable[[Site], Compute]:
    """A kernel that applies the step which is made for the element type; in blocks where it takes several passes."""
    step_for = cache(make)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        out = allocate(x.shape, x.dtype)
        step = step_for(x.dtype)
        into = out
        if not x.ndim:
            x, into = x.reshape(1), out.reshape(1)
        if blocks:
            in_blocks(step, x, into)
        else:
            step(x, into)
        return (out,)

    return lambda _site: compute


def binary(make: Callable[[DType], Binary]) -> Callable[[Site], Compute]:
    """A kernel that applies an operation to two tensors of one type."""
    operation_for = cache(make)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        a, b = tensor(inputs, 0), tensor(inputs, 1)
        out = allocate(a.shape if a.shape == b.shape else broadcast(a.shape, b.shape), a.dtype)
        operation_for(a.dtype)(a, b, out)
        return (out,)

    return lambda _site: compute


def _ufunc(function: np.ufunc) -> Callable[[DType], Binary]:
    def operation(a: Array, b: Array, out: Array) -> None:
        function(a, b, out=out)

    return lambda _dtype: operation


# ---- quotients and remainders -----------------------------------------------------------------


def _check_divisor(a: Array, b: Array, quotient: bool) -> None:
    require(bool(np.all(b)), "no integer is divided by 0")
    if quotient and (low := integer_range(a.dtype)[0]):
        ends = (a == low) & (b == -1)
        require(not np.any(ends), "the least integer of a signed type is not divided by -1")


def _divide(dtype: DType) -> Binary:
    if not is_integer(dtype):
        return _ufunc(np.divide)(dtype)
    signed = bool(integer_range(dtype)[0])

    def operation(a: Array, b: Array, out: Array) -> None:
        _check_divisor(a, b, True)
        if not signed:
            np.floor_divide(a, b, out=out)
            return
        rest = np.fmod(a, b)
        np.floor_divide(np.subtract(a, rest), b, out=out)

    return operation


def _mod(site: Site) -> Compute:
    truncating = integer(site, "fmod", 0)
    require(truncating in (0, 1), "fmod is 0 or 1")
    function = np.fmod if truncating else np.remainder
    floats = bool(truncating) or site.version >= 28

    def make(dtype: DType) -> Binary:
        if is_integer(dtype):

            def whole(a: Array, b: Array, out: Array) -> None:
                _check_divisor(a, b, False)
                function(a, b, out=out)

            return whole
        require(floats, "fmod is 1 for floating-point numbers")
        if dtype in NATIVE:
            return _ufunc(function)(dtype)

        def wide(a: Array, b: Array, out: Array) -> None:
            np.copyto(out, function(a.astype(np.float32), b.astype(np.float32)), casting="unsafe")

        return wide

    return binary(make)(site)


# ---- powers -----------------------------------------------------------------------------------


def _power_of_float(x: Array, y: Array, out: Array) -> None:
    dtype = out.dtype
    if y.size == 1 and dtype != DOUBLE and y.reshape(-1)[0] == 2:
        np.multiply(x, x, out=out)  # the exact square is a double, so both ways round it once
    elif dtype in NATIVE and y.dtype == dtype and not np.any(y == 0.5):
        np.power(x, y, out=out, dtype=DOUBLE)
    else:
        np.copyto(out, narrow(powers(x.astype(np.float64), y.astype(np.float64)), dtype))


def _power_of_integer(x: Array, y: Array, out: Array) -> None:
    if is_integer(y.dtype):
        require(not np.any(y < 0), "the power of an integer is not negative")
        if x.dtype == y.dtype:
            np.power(x, y, out=out)
        else:
            np.copyto(out, np.power(x.astype(np.int64).view(np.uint64), y.astype(np.uint64)), casting="unsafe")
        return
    np.copyto(out, powers(x.astype(np.float64), y.astype(np.float64)), casting="unsafe")


@unprepared
def _pow(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x, y = tensor(inputs, 0), tensor(inputs, 1)
    out = allocate(broadcast(x.shape, y.shape), x.dtype)
    (_power_of_integer if is_integer(x.dtype) else _power_of_float)(x, y, out)
    return (out,)


# ---- functions of one tensor ------------------------------------------------------------------


def _reciprocal(dtype: DType) -> Step:
    one = scalar(1, dtype)

    def step(x: Array, out: Array) -> None:
        np.divide(one, x, out=out)

    return step


def _sign(dtype: DType) -> Step:
    return direct(np.sign)(dtype) if dtype.kind in "fiu" else _sign_in_float


def _sign_in_float(x: Array, out: Array) -> None:
    np.copyto(out, np.sign(x.astype(np.float32)), casting="unsafe")


def _erf(dtype: DType) -> Step:
    if not is_integer(dtype):
        return erf(dtype)

    def step(_x: Array, out: Array) -> None:
        out[...] = 0  # version 9 alone; 1 and -1 are allowed too, of 0 it is 0

    return step


def _each(first: int, last: int, function: np.ufunc, way: Callable[[np.ufunc], Callable[[DType], Step]]) -> Kernel:
    return Kernel(first, last, unary(way(function)), in_place=True)


def _both(first: int, last: int, function: np.ufunc) -> Kernel:
    return Kernel(first, last, binary(_ufunc(function)), in_place=True)


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "Add": (_both(7, 14, np.add),),
    "Sub": (_both(7, 14, np.subtract),),
    "Mul": (_both(7, 14, np.multiply),),
    "Div": (Kernel(7, 14, binary(_divide), in_place=True),),
    "Mod": (Kernel(10, 28, _mod, in_place=True),),
    "Pow": (Kernel(7, 15, _pow, in_place=True),),
    "Abs": (_each(1, 13, np.absolute, direct),),
    "Neg": (_each(1, 13, np.negative, direct),),
    "Sqrt": (_each(1, 13, np.sqrt, direct),),
    "Ceil": (_each(1, 13, np.ceil, direct),),
    "Floor": (_each(1, 13, np.floor, direct),),
    "Round": (_each(11, 22, np.rint, direct),),
    "Sign": (Kernel(9, 13, unary(_sign), in_place=True),),
    "Reciprocal": (Kernel(1, 13, unary(_reciprocal), in_place=True),),
    "Exp": (_each(1, 13, np.exp, through_double),),
    "Log": (_each(1, 13, np.log, through_double),),
    "Sin": (_each(7, 22, np.sin, through_double),),
    "Cos": (_each(7, 22, np.cos, through_double),),
    "Tan": (_each(7, 22, np.tan, through_double),),
    "Asin": (_each(7, 22, np.arcsin, through_double),),
    "Acos": (_each(7, 22, np.arccos, through_double),),
    "Atan": (_each(7, 22, np.arctan, through_double),),
    "Erf": (Kernel(9, 13, unary(_erf, blocks=True), in_place=True),),
}
