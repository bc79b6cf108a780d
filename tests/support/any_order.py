"""Sums of products as implementations compute them: any order and tree, fused or not, in the type or a wider one.

Numbers are exact (Fraction); each rounding is to nearest, ties to even, in a stated type.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
from sonnx.semantics.operators.compiled.elements.ieee import constant

HALF, FLOAT, DOUBLE = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
BFLOAT = np.dtype(ml_dtypes.bfloat16)
TYPES = (HALF, BFLOAT, FLOAT, DOUBLE)
Number = Fraction | float
"""A Fraction, or an infinity or a NaN."""


def exact(x: Any) -> Number:
    """An element as an exact number."""
    value = float(x)
    return Fraction(value) if np.isfinite(value) else value


def rounded(x: Number, dtype: Any) -> Number:
    """The nearest number of a type; None as the type: no rounding."""
    if dtype is None or isinstance(x, float):
        return x
    with np.errstate(over="ignore"):
        return exact(constant(dtype, x))


def plus(a: Number, b: Number) -> Number:
    """a + b."""
    return a + b if isinstance(a, Fraction) and isinstance(b, Fraction) else float(a) + float(b)


def times(a: Number, b: Number) -> Number:
    """a * b."""
    return a * b if isinstance(a, Fraction) and isinstance(b, Fraction) else float(a) * float(b)


def chain(products: Sequence[Number], dtype: Any, *, fused: bool = False) -> Number:
    """One after the other; fused: a product is rounded together with the sum."""
    total = rounded(products[0], dtype)
    for term in products[1:]:
        total = rounded(plus(total, term if fused else rounded(term, dtype)), dtype)
    return total


def tree(products: Sequence[Number], dtype: Any, rng: random.Random) -> Number:
    """A random tree."""
    pending = [rounded(p, dtype) for p in products]
    while len(pending) > 1:
        first = pending.pop(rng.randrange(len(pending)))
        second = pending.pop(rng.randrange(len(pending)))
        pending.append(rounded(plus(first, second), dtype))
    return pending[0]


def shuffled(products: Sequence[Number], rng: random.Random) -> list[Number]:
    """The terms in another order."""
    return rng.sample(list(products), len(products))


def results(products: Sequence[Number], dtype: Any, rng: random.Random) -> Iterator[tuple[str, Number]]:
    """What implementations make of the sum of these products, with the name of the way."""
    ways: list[tuple[str, Callable[[], Number]]] = [
        ("forward", lambda: chain(products, dtype)),
        ("backward", lambda: chain(products[::-1], dtype)),
        ("fused", lambda: chain(products, dtype, fused=True)),
        ("ascending", lambda: chain(sorted(products, key=abs), dtype)),
        ("descending", lambda: chain(sorted(products, key=abs, reverse=True), dtype)),
        ("exact", lambda: sum(products, Fraction(0))),
        *[("permuted", lambda: chain(shuffled(products, rng), dtype)) for _ in range(2)],
        *[("permuted and fused", lambda: chain(shuffled(products, rng), dtype, fused=True)) for _ in range(2)],
        *[("tree", lambda: tree(products, dtype, rng)) for _ in range(3)],
    ]
    if dtype in (HALF, BFLOAT):
        ways += [
            ("in float", lambda: tree(products, FLOAT, rng)),
            ("fused in float", lambda: chain(products, FLOAT, fused=True)),
        ]
    if dtype != DOUBLE:
        ways.append(("in double", lambda: chain(products, DOUBLE)))
    for name, way in ways:
        yield name, rounded(way(), dtype)


# ---- data -------------------------------------------------------------------------------------


def data(kind: str, count: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Two vectors whose products are hard to add up."""
    info = ml_dtypes.finfo(dtype)
    a, b = rng.standard_normal(count), rng.standard_normal(count)
    largest, tiny = int(info.maxexp), int(info.minexp)
    match kind:
        case "cancelling":
            half = count // 2
            a[half : 2 * half], b[half : 2 * half] = -a[:half], b[:half]
            a[: half // 2] *= 1 + float(info.eps)
        case "mixed magnitudes":
            a *= 2.0 ** rng.integers(-largest // 3, largest // 3, count)
        case "subnormal":
            a, b = a * 2.0 ** (tiny // 2), b * 2.0 ** (tiny - tiny // 2 - int(info.nmant) // 2)
        case "near overflow":
            a, b = np.abs(a) * 2.0 ** (largest // 2), b * 2.0 ** (largest - largest // 2 - 2)
        case "exact":
            a, b = np.rint(3 * a), np.rint(3 * b)
    return a.astype(dtype), b.astype(dtype)


KINDS = ("random", "cancelling", "mixed magnitudes", "subnormal", "near overflow", "exact")
