"""Conversion between element types: Cast and CastLike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import ml_dtypes
import numpy as np

from ....model import schemas
from ....model.elements import DTYPES
from ..by_text import run_text
from ..functions import DOUBLE, SINGLE, DType, finite_range, integer_range, is_float, narrow
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, KernelError, Outputs, Site
from ..reading import integer, require, tensor, text
from .shape import shown

Conversion = Callable[[Array, Array], None]
"""Converts the elements of the first array into the second one, of the same shape."""

OBJECT: Final = np.dtype(np.object_)
BOOL: Final = np.dtype(np.bool_)
POWERS: Final[DType] = np.dtype(ml_dtypes.float8_e8m0fnu)
SIGNED_FLOAT8: Final = frozenset(DTYPES[name] for name in DTYPES if name.startswith(("float8e4", "float8e5")))
LIMITED: Final = frozenset(DTYPES[name] for name in DTYPES if name.startswith(("float4", "float6")))
"""The floating-point types without infinity and NaN."""


def _is_native(dtype: DType) -> bool:
    """True where NumPy itself has the type."""
    return dtype.kind in "biuf"


def _to_float(x: Array) -> Array:
    """Floats as elements of a type that NumPy has, exactly."""
    return x if _is_native(x.dtype) else x.astype(np.float32)


def _to_integer(x: Array) -> Array:
    return x if _is_native(x.dtype) else x.astype(np.int8)


def _to_double(x: Array) -> Array:
    """Numbers as doubles: exactly, or so that rounding to a type of fewer than 50 bits is correct."""
    if is_float(x.dtype):
        return _to_float(x).astype(np.float64)
    whole = _to_integer(x)
    if whole.dtype.itemsize < 8:
        return whole.astype(np.float64)
    large = np.abs(whole.astype(np.float64)) >= 2.0**53
    rest = (whole & whole.dtype.type(2047)) != 0
    return np.where(large, ((whole >> 11) | rest) << 11, whole).astype(np.float64)


def _wrapped(x: Array, dtype: DType) -> Array:
    """Integers modulo the size of a type of integers below a byte."""
    low, high = integer_range(dtype)
    size = high - low + 1
    rest = x.astype(np.int64) & (size - 1)
    return (rest - size * (rest > high)).astype(np.int8).astype(dtype)


@cache
def conversion(source: DType, target: DType) -> Conversion:
    """The conversion that rounds to nearest, truncates to integers and wraps them around."""
    if _is_native(source) and _is_native(target) and target != BOOL:
        return lambda x, out: np.copyto(out, x, casting="unsafe")
    if target == BOOL:
        return lambda x, out: np.copyto(out, (_to_float if is_float(source) else _to_integer)(x) != 0)
    if is_float(target):
        if is_float(source) and source != DOUBLE:
            return lambda x, out: np.copyto(out, _to_float(x).astype(target))
        return lambda x, out: np.copyto(out, narrow(_to_double(x), target))
    if _is_native(target):
        into = _to_float if is_float(source) else _to_integer
        return lambda x, out: np.copyto(out, into(x), casting="unsafe")
    into = _to_float if is_float(source) else _to_integer
    return lambda x, out: np.copyto(out, _wrapped(into(x), target))


def _limited(target: DType, infinite: bool) -> Conversion:
    """The conversion that limits to the finite numbers; an infinity is one of them unless it is to become NaN."""
    low, high = finite_range(target)
    missing = np.asarray(np.nan, np.float32).astype(target)

    def convert(x: Array, out: Array) -> None:
        wide = _to_float(x) if is_float(x.dtype) else _to_double(x)
        limited = np.clip(wide, low, high)
        np.copyto(
            out, limited.astype(target) if limited.dtype == SINGLE else narrow(limited.astype(np.float64), target)
        )
        if infinite:
            np.copyto(out, missing, where=np.isinf(wide))

    return convert


def _powers(word: str, limit: bool) -> Conversion:
    """The conversion to powers of 2, rounded as the word says."""
    low, high = finite_range(POWERS)

    def convert(x: Array, out: Array) -> None:
        wide = x.astype(np.float64) if _is_native(x.dtype) else x.astype(np.float32).astype(np.float64)
        inside = np.clip(wide, low, high)
        fraction, exponent = np.frexp(inside)
        if word == "up":
            exponent += fraction > 0.5
        elif word == "nearest":
            exponent += fraction >= 0.75
        codes = (np.where(np.isnan(wide), 0, exponent) + 126).astype(np.uint8)
        invalid = np.isnan(wide) if limit else np.logical_not((wide >= low) & (wide <= high))
        codes[invalid] = 255
        np.copyto(out, codes.view(POWERS))

    return convert


def _chosen(site: Site, source: DType, target: DType) -> Conversion | None:
    """The conversion between two types, None where the elements stay as they are."""
    saturate = site.version >= 19 and integer(site, "saturate", 1) != 0
    if target == POWERS and site.version >= 24:
        return _powers(text(site, "round_mode", "up"), saturate)
    if source != BOOL and site.version >= 19 and (target in LIMITED or (target in SIGNED_FLOAT8 and saturate)):
        infinite = site.version < 24 and target.name.endswith("fnuz")
        return _limited(target, infinite)
    return None if source == target else conversion(source, target)


def _converted(site: Site, ready: dict[tuple[DType, DType], Conversion | None]) -> Callable[..., Array]:
    if site.version >= 24:
        word = text(site, "round_mode", "up")
        require(word in ("up", "down", "nearest"), "round_mode is one of the three words")

    def convert(x: Array, target: DType, allocate: Allocate) -> Array:
        key = (x.dtype, target)
        if key not in ready:
            ready[key] = _chosen(site, *key)
        step = ready[key]
        if step is None:
            return shown(x.view())
        out = allocate(x.shape, target)
        if x.ndim:
            step(x, out)
        else:
            step(x.reshape(1), out.reshape(1))
        return out

    return convert


def _spells(source: DType, target: DType) -> bool:
    """Strings become numbers, or numbers strings: by the text, no kernel is quicker."""
    return (source == OBJECT) != (target == OBJECT)


def _cast(site: Site) -> Compute:
    target = DTYPES.get(schemas.element_types().get(integer(site, "to"), ""))
    if target is None:
        raise KernelError("to is the number of an element type")
    convert = _converted(site, {})

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        return run_text(site, inputs, allocate) if _spells(x.dtype, target) else (convert(x, target, allocate),)

    return compute


def _cast_like(site: Site) -> Compute:
    convert = _converted(site, {})

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, target = tensor(inputs, 0), tensor(inputs, 1).dtype
        return run_text(site, inputs, allocate) if _spells(x.dtype, target) else (convert(x, target, allocate),)

    return compute


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "Cast": (Kernel(6, 28, _cast),),
    "CastLike": (Kernel(15, 25, _cast_like),),
}
