"""Single elements of two tensors of one type: which agree, how far the others lie apart, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sonnx.semantics.model.elements import BITS, element_of
from sonnx.semantics.model.values import Array

Mask = NDArray[np.bool_]

_CODES: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True, slots=True)
class Shown:
    """An element for people: the shortest decimal that stands for it, and its bits in hexadecimal."""

    decimal: str
    hex: str


def codes(array: Array) -> NDArray[np.unsignedinteger]:
    """The bits of each element as an unsigned integer; complex numbers have none."""
    return np.ascontiguousarray(array).reshape(array.shape).view(_CODES[array.dtype.itemsize])


def is_float(array: Array) -> bool:
    """Whether the elements are floating-point numbers, complex ones excepted."""
    return array.dtype.kind == "f" or (array.dtype.kind == "V" and "float" in element_of(array.dtype))


def nans(array: Array) -> Mask:
    """Which elements are NaN."""
    if is_float(array) or array.dtype.kind == "c":
        with np.errstate(invalid="ignore"):
            return np.asarray(array != array, np.bool_)
    return np.zeros(array.shape, np.bool_)


def same(expected: Array, found: Array) -> Mask:
    """Which elements agree in every bit; any NaN is any other. Both have one dtype and one shape."""
    if expected.dtype == object:
        return np.asarray(np.equal(expected, found), np.bool_).reshape(expected.shape)
    if expected.dtype.kind == "c":
        part = np.dtype(f"f{expected.dtype.itemsize // 2}")
        pairs = [np.ascontiguousarray(x).view(part).reshape(*x.shape, 2) for x in (expected, found)]
        return np.asarray(same(pairs[0], pairs[1]).all(axis=-1), np.bool_)
    equal = codes(expected) == codes(found)
    return np.asarray(equal | (nans(expected) & nans(found)), np.bool_)


def ulps(expected: Array, found: Array) -> NDArray[np.uint64] | None:
    """How many numbers of the type lie between, plus one; the difference of integers. None for other types.

    Where one of the two is NaN and the other is not, the count says nothing.
    """
    if expected.dtype == object or expected.dtype.kind in "cb":
        return None
    a, b = _ordered(expected), _ordered(found)
    return np.asarray(np.where(a > b, a.view(np.uint64) - b.view(np.uint64), b.view(np.uint64) - a.view(np.uint64)))


def _ordered(array: Array) -> NDArray[np.int64]:
    """Integers in the order of the elements, consecutive where the elements are."""
    element = element_of(array.dtype)
    if not is_float(array):
        if element == "uint64":
            return np.asarray(array).view(np.int64) ^ np.int64(-(2**63))
        return array.astype(np.int64)
    found = codes(array).astype(np.uint64)
    if element == "float8e8m0":  # no sign
        return found.astype(np.int64)
    sign = np.uint64(1 << (BITS[element] - 1))
    magnitude = (found & (sign - np.uint64(1))).astype(np.int64)
    return np.where(found & sign != 0, -magnitude, magnitude)


def shown(array: Array, index: tuple[int, ...]) -> Shown:
    """An element for people."""
    one = np.asarray(array[index])
    if one.dtype == object:
        text = one.item()
        spelled = text if isinstance(text, bytes) else str(text).encode()
        return Shown(ascii(spelled.decode("utf-8", "backslashreplace"))[1:-1], spelled.hex())
    if one.dtype.kind == "c":
        return Shown(str(complex(one.item())), one.astype(one.dtype.newbyteorder(">")).tobytes().hex())
    digits = -(-BITS[element_of(one.dtype)] // 4)
    bits = int(codes(one).item())
    if not is_float(one):
        decimal = str(bool(one)).lower() if one.dtype.kind == "b" else str(int(one.astype(object).item()))
        return Shown(decimal, f"{bits & ((1 << 4 * digits) - 1):0{digits}x}")
    decimal = np.format_float_scientific(one.reshape(1)[0], trim="-") if one.dtype.kind == "f" else str(float(one))
    if one.dtype.kind == "f" and (float(one) == 0 or 1e-4 <= abs(float(one)) < 1e7):
        decimal = np.format_float_positional(one.reshape(1)[0], trim="-")
    return Shown(decimal, f"{bits:0{digits}x}")
