"""Products and quotients of three factors or more: in any order, too.

Whatever their order, n factors are rounded n - 1 times, and once more for each divisor whose inverse is taken first;
the result is off by that many u, relatively. Where some order may overflow or leave the normal numbers on its way, the
written order is the one that counts.
"""

from __future__ import annotations

import numpy as np

from .....model.elements import DOUBLE, DType, finfo
from ...code import Code, Space, combine, lower
from ...terms import ELEMENT, Array, Node, Operand
from .arithmetic import divide, multiply
from .rounding import limits, settled
from .storage import FLOAT_SET, hull, opened


def factors(node: Node, space: Space) -> Code | None:
    """The code of such a product; None for two factors."""
    upper, under = _split(node)
    if len(upper) + len(under) < 3 or node.type is None:
        return None
    dtype, count = node.type, len(upper)
    operate = space.builder.algebra.operation(str(node.data), dtype)
    written = combine(operate, [lower(argument, space) for argument in node.args])
    every = [lower(term, space) for term in (*upper, *under)]
    return combine(lambda product, *terms: reordered(product, terms[:count], terms[count:], dtype), [written, *every])


def _split(term: Operand) -> tuple[list[Operand], list[Operand]]:
    """The factors and the divisors of a product."""
    if (
        not isinstance(term, Node)
        or term.op != "element"
        or term.kind != ELEMENT
        or term.data not in ("mul", "quotient")
    ):
        return [term], []
    (a, b), (c, d) = _split(term.args[0]), _split(term.args[1])
    return (a + c, b + d) if term.data == "mul" else (a + d, b + c)


def reordered(product: Array, upper: tuple[Array, ...], under: tuple[Array, ...], dtype: DType) -> Array:
    """The result in the written order, or in any other."""
    times, over = multiply(DOUBLE), divide(DOUBLE)
    exact = upper[0]
    for term in upper[1:]:
        exact = times(exact, term)
    for term in under:
        exact = over(exact, term)
    greatest, least = np.zeros(()), np.zeros(())
    for term, sign in (*((t, 1.0) for t in upper), *((t, -1.0) for t in under)):
        a = opened(term)
        low, high = _logarithms(a.low, a.high)
        top, bottom = (high, low) if sign > 0 else (-low, -high)
        greatest, least = greatest + np.maximum(top, 0), least + np.minimum(bottom, 0)
    info = finfo(dtype)
    safe = (greatest < float(info.maxexp) - 1) & (least > float(info.minexp) + 1)
    e = opened(exact)
    off = (len(upper) + 2 * len(under)) * limits(dtype)[0]
    off = off / (1 - off)
    low = np.nextafter(e.low - np.abs(e.low) * off, -np.inf)
    high = np.nextafter(e.high + np.abs(e.high) * off, np.inf)
    safe = safe & np.isfinite(low) & np.isfinite(high) & ((e.low != 0) | (e.high != 0))
    if e.maybe is not None:
        safe = safe & ~e.maybe
    other = settled(low, low, high, high, dtype)
    if product.dtype != FLOAT_SET:
        return product
    return np.where(np.broadcast_to(safe, product.shape), hull(product, np.broadcast_to(other, product.shape)), product)


def _logarithms(low: Array, high: Array) -> tuple[Array, Array]:
    """Powers of two between which the magnitudes in an interval lie."""
    big = np.maximum(np.abs(low), np.abs(high))
    small = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    with np.errstate(all="ignore"):
        return np.floor(np.log2(small)) - 1, np.ceil(np.log2(big)) + 1
