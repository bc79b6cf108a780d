"""Products of matrices: floats by BLAS, integers exactly, by BLAS where the sums are small enough to be exact there."""

from __future__ import annotations

from typing import Final

import numpy as np

from .functions import DOUBLE, SINGLE, DType, is_integer, summing
from .kernel import Allocate, Array
from .workers import cuts, product_parts, shared_products


def for_blas(x: Array) -> Array:
    """The array, copied unless its last two axes are a matrix as BLAS takes one."""
    if x.ndim < 2 or 0 in x.shape:
        return x
    size, (rows, columns) = x.itemsize, x.strides[-2:]
    if (columns == size and rows >= x.shape[-1] * size) or (rows == size and columns >= x.shape[-2] * size):
        return x
    return np.ascontiguousarray(x)


def widened(x: Array, dtype: DType) -> Array:
    """The array in a type, itself where it has it."""
    return x if x.dtype == dtype else x.astype(dtype)


def product(a: Array, b: Array, allocate: Allocate) -> Array:
    """numpy.matmul of two tensors of one type, which fit; the result has this type.

    Floats of 16 bits are multiplied and summed in float, and the sums rounded once. Integers wrap around.
    """
    dtype = a.dtype
    if is_integer(dtype):
        exact = exact_product(a, b)
        return exact if exact.dtype == dtype else exact.astype(np.int64).astype(dtype)
    kind = summing(dtype)
    a, b = for_blas(widened(a, kind)), for_blas(widened(b, kind))
    out = allocate(product_shape(a.shape, b.shape), kind)
    if b.ndim == 2 and a.ndim >= 2 and (a.ndim == 2 or a.flags.c_contiguous) and 0 not in out.shape and a.shape[-1]:
        rows = a.reshape(-1, a.shape[-1])  # one product instead of one for each matrix of a
        _multiply(rows, b, out.reshape(rows.shape[0], b.shape[1]))
    else:
        np.matmul(a, b, out=out)
    if a.shape[-1]:
        _sign_zeros(out, a, b)
    return widened(out, dtype)


READ_TERMS: Final = 4
"""The multiplications for which there is time while an element is read from memory."""


def _multiply(a: Array, b: Array, out: Array) -> None:
    """The product of two matrices, whose greater factor is cut into parts for several threads."""
    workers = product_parts(a.size * b.shape[1] + READ_TERMS * (a.size + b.size))
    of_rows = a.shape[0] > b.shape[1]
    pieces = cuts(a.shape[0] if of_rows else b.shape[1], workers)

    def work(number: int, _worker: int) -> None:
        piece = pieces[number]
        if of_rows:
            np.matmul(a[piece], b, out=out[piece])
        else:
            np.matmul(a, b[:, piece], out=out[:, piece])

    shared_products(len(pieces), work, workers)


FIRST_TERMS: Final = 8
"""The terms whose signs are looked at one by one: they tell most zeros that are 0.0."""


def _sign_zeros(out: Array, a: Array, b: Array) -> None:
    """Makes zeros -0.0 whose terms are all negative: a sum starts with its first term, that of BLAS with 0.0."""
    zero = out == 0
    if not zero.any():
        return
    left = np.signbit(a if a.ndim > 1 else a[None])
    right = np.signbit(b if b.ndim > 1 else b[:, None])
    zero = zero.reshape(product_shape(left.shape, right.shape))
    for k in range(min(FIRST_TERMS, left.shape[-1])):
        zero &= left[..., :, k, None] != right[..., None, k, :]
        if not zero.any():
            return
    rows, columns = left.sum(-1)[..., :, None], right.sum(-2)[..., None, :]
    both = np.matmul(left.astype(SINGLE), right.astype(SINGLE))
    zero &= left.shape[-1] - rows - columns + 2 * both == 0  # the number of terms whose factors have the same sign
    out[zero.reshape(out.shape)] = -0.0


def product_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of numpy.matmul."""
    head = np.broadcast_shapes(a[:-2], b[:-2])
    return (*head, *(a[-2:-1] if len(a) > 1 else ()), *(b[-1:] if len(b) > 1 else ()))


def exact_product(a: Array, b: Array) -> Array:
    """numpy.matmul of two tensors of integers, exactly where that fits, in a type that holds it.

    The type is float or double where no sum can leave its exact integers, else the type of the operands, in which sums
    wrap around.
    """
    terms = a.shape[-1]
    bound = terms * largest(a) * largest(b)
    for kind, limit in ((SINGLE, 2**24), (DOUBLE, 2**53)):
        if bound < limit:
            exact: Array = np.matmul(for_blas(a.astype(kind)), for_blas(b.astype(kind)))
            return np.asarray(exact)
    wrapped: Array = np.matmul(a, b)
    return np.asarray(wrapped)


def largest(x: Array) -> int:
    """The greatest absolute value, 0 without elements."""
    return max(abs(int(np.max(x))), abs(int(np.min(x)))) if x.size else 0
