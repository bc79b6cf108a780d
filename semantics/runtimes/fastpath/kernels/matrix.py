"""Products of matrices (MatMul, Gemm, MatMulInteger) and sums of products over named indices (Einsum)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from ..functions import INT32, DType, integer_range, is_integer, scalar, summing
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site, unprepared
from ..products import exact_product, product, widened
from ..reading import integer, number, optional, require, tensor, text
from ..windows import Sizes


@dataclass(frozen=True, slots=True)
class Equation:
    """terms: the labels of the axes of each operand. Those of the output are 0, 1, ... `kept` in its order, and those
    that are summed follow in alphabetical order. sizes: of each label.
    """

    terms: tuple[tuple[int, ...], ...]
    kept: int
    sizes: Sizes

    @property
    def is_product(self) -> bool:
        """True where two operands share every label that is summed, and a product of matrices is no detour."""
        if len(self.terms) != 2:
            return False
        left, right = map(set, self.terms)
        summed, kept = set(range(self.kept, len(self.sizes))), set(range(self.kept))
        return bool(summed) and summed <= left & right and kept <= left | right and bool(kept & (left ^ right))


def read(written: str, shapes: tuple[Sizes, ...]) -> Equation:
    """The equation for operands of these shapes. Raises KernelError where it does not fit them."""
    left, arrow, right = "".join(written.split()).partition("->")
    terms = left.split(",")
    require(len(terms) == len(shapes), "the equation has a term for each operand")
    spans = [len(shape) - len(term.replace("...", "")) for term, shape in zip(terms, shapes, strict=True)]
    dots = {span for term, span in zip(terms, spans, strict=True) if "..." in term}
    require(len(dots) <= 1, "dots stand for equally many axes in each term")
    dotted = max(dots, default=0)
    named = [_labels(term, span) for term, span in zip(terms, spans, strict=True)]
    every = {label for labels in named for label in labels}
    if arrow:
        require(right.count("...") <= 1, "the output has dots at most once")
        output = _labels(right, dotted if "..." in right else 0)
    else:
        counts = Counter(label for labels in named for label in labels)
        once = sorted(label for label, count in counts.items() if count == 1 and not label.startswith("."))
        output = [*(f".{k}" for k in range(dotted)), *once]
    require(len(set(output)) == len(output), "the output repeats no label")
    require(set(output) <= every | {f".{k}" for k in range(dotted)}, "the output has labels of the terms alone")
    order = [*output, *sorted(every - set(output))]
    numbers = {label: position for position, label in enumerate(order)}
    for labels, shape in zip(named, shapes, strict=True):
        require(len(set(zip(labels, shape, strict=True))) == len(set(labels)), "a label has one size in an operand")
    sizes = []
    for label in order:
        pairs = (zip(labels, shape, strict=True) for labels, shape in zip(named, shapes, strict=True))
        lengths = {n for pair in pairs for x, n in pair if x == label}
        require(len(lengths - {1}) <= 1, "axes with the same label have the same size, or the size 1")
        sizes.append(next(iter(lengths - {1}), 1))
    return Equation(tuple(tuple(numbers[x] for x in labels) for labels in named), len(output), tuple(sizes))


def _labels(term: str, span: int) -> list[str]:
    """The labels of a term, in which dots stand for `span` axes."""
    head, dots, tail = term.partition("...")
    require("." not in head + tail and all(c.isalpha() for c in head + tail), "the equation has letters and dots alone")
    require(span >= 0 if dots else span == 0, "the term has a label for each axis of its operand")
    return [*head, *(f".{k}" for k in range(span) if dots), *tail]


# ---- Products -------------------------------------------------------------------------------------

SUMMED_ELEMENTS: Final = 1 << 20
"""About how many products Einsum computes before it sums them."""


def require_matrices(a: Sizes, b: Sizes) -> None:
    """numpy.matmul is defined for operands of these shapes."""
    require(len(a) > 0 and len(b) > 0, "neither input is a scalar")
    require(a[-1] == (b[0] if len(b) == 1 else b[-2]), "the inner dimensions agree")
    pairs = zip(reversed(a[:-2]), reversed(b[:-2]), strict=False)
    require(all(x == y or 1 in (x, y) for x, y in pairs), "the axes before the matrices broadcast")


@unprepared
def _matmul(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    a, b = tensor(inputs, 0), tensor(inputs, 1)
    require_matrices(a.shape, b.shape)
    return (product(a, b, allocate),)


# ---- Gemm -------------------------------------------------------------------------------------


def _factor(value: float, dtype: DType) -> Array | None:
    """A factor as an element, None for 1."""
    if value == 1:
        return None
    if not is_integer(dtype):
        return scalar(value, dtype)
    require(float(value).is_integer(), "for integers alpha and beta are integers")
    low, high = integer_range(dtype)
    return np.asarray((int(value) - low) % (high - low + 1) + low, dtype)


def _gemm(site: Site) -> Compute:
    alpha, beta = number(site, "alpha", 1.0), number(site, "beta", 1.0)
    turned = integer(site, "transA") != 0, integer(site, "transB") != 0

    @lru_cache(maxsize=2)
    def factors(dtype: DType) -> tuple[Array | None, Array | None]:
        return _factor(alpha, dtype), _factor(beta, dtype)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        a, b, c = tensor(inputs, 0), tensor(inputs, 1), optional(inputs, 2)
        require(a.ndim == 2 and b.ndim == 2, "A and B are matrices")
        require(site.version >= 11 or c is not None, "C is given")
        a, b = a.T if turned[0] else a, b.T if turned[1] else b
        require(a.shape[1] == b.shape[0], "the inner dimensions agree")
        shape = (a.shape[0], b.shape[1])
        fits = c is None or (
            c.ndim <= 2 and all(n in (1, m) for n, m in zip(reversed(c.shape), reversed(shape), strict=False))
        )
        require(fits, "C broadcasts to the shape of the product")
        by, add = factors(a.dtype)
        out = product(a, b, allocate)
        if by is not None:
            np.multiply(by, out, out=out)
        term = np.zeros((), out.dtype) if c is None else c if add is None else np.multiply(add, c)
        np.add(out, term, out=out)
        return (out,)

    return compute


# ---- Einsum -----------------------------------------------------------------------------------


def _einsum(site: Site) -> Compute:
    written = text(site, "equation")

    @lru_cache(maxsize=8)
    def equation(shapes: tuple[Sizes, ...]) -> Equation:
        return read(written, shapes)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        operands = [tensor(inputs, position) for position in range(len(inputs))]
        how = equation(tuple(x.shape for x in operands))
        dtype = operands[0].dtype
        kind = dtype if is_integer(dtype) else summing(dtype)
        parts = [_diagonal(widened(x, kind), how, position) for position, x in enumerate(operands)]
        out = _paired(parts, how, allocate) if how.is_product else _summed(parts, how)
        return (widened(out, dtype),)

    return compute


def _diagonal(x: Array, how: Equation, position: int) -> Array:
    """The operand with one axis for each of its labels, ascending; axes of size 1 are repeated."""
    labels = how.terms[position]
    x = np.broadcast_to(x, tuple(how.sizes[label] for label in labels))
    strides = dict.fromkeys(sorted(set(labels)), 0)
    for label, stride in zip(labels, x.strides, strict=True):
        strides[label] += stride
    shape = tuple(how.sizes[label] for label in strides)
    if len(strides) == len(labels) and list(labels) == list(strides):
        return x
    return np.lib.stride_tricks.as_strided(x, shape, tuple(strides.values()), writeable=False)


def _paired(parts: list[Array], how: Equation, allocate: Allocate) -> Array:
    """Two operands as matrices: labels of both that the output has are those of a batch, the others are summed."""
    (left, right), (a, b) = parts, (sorted(set(term)) for term in how.terms)
    kept = range(how.kept)
    batch = [label for label in kept if label in a and label in b]
    rows = [label for label in kept if label in a and label not in b]
    columns = [label for label in kept if label in b and label not in a]
    inner = [label for label in a if label >= how.kept]
    sides = (
        left.transpose([a.index(label) for label in (*batch, *rows, *inner)]),
        right.transpose([b.index(label) for label in (*batch, *inner, *columns)]),
    )
    counts = [[how.sizes[label] for label in group] for group in (batch, rows, inner, columns)]
    head, high, deep, wide = (int(np.prod(group, dtype=np.int64)) for group in counts)
    products = product(sides[0].reshape(head, high, deep), sides[1].reshape(head, deep, wide), allocate)
    order = [*batch, *rows, *columns]
    return products.reshape((*counts[0], *counts[1], *counts[3])).transpose([order.index(label) for label in kept])


def _summed(parts: list[Array], how: Equation) -> Array:
    """Any number of operands: all products, summed, a block of the longest label at a time.

    numpy.einsum is no alternative: it multiplies sums where one operand lacks the labels that are summed.
    """
    kind, labels = parts[0].dtype, range(len(how.sizes))
    laid = []
    for operand, term in zip(parts, how.terms, strict=True):
        present = set(term)
        laid.append(operand.reshape([how.sizes[label] if label in present else 1 for label in labels]))
    axes = tuple(range(how.kept, len(how.sizes)))
    if not labels or 0 in how.sizes:
        return np.asarray(_multiplied(laid, kind)) if not labels else np.zeros(how.sizes[: how.kept], kind)
    start = 0 if is_integer(kind) else -0.0  # a sum starts with its first term
    out = np.full(how.sizes[: how.kept], start, kind)
    split = max(labels, key=lambda label: how.sizes[label])
    step = max(1, SUMMED_ELEMENTS * how.sizes[split] // math.prod(how.sizes))
    for first in range(0, how.sizes[split], step):
        index = (*(slice(None),) * split, slice(first, first + step))
        block = [x if x.shape[split] == 1 else x[index] for x in laid]
        sums = np.sum(_multiplied(block, kind), axis=axes, dtype=kind, initial=start)
        if split < how.kept:
            np.moveaxis(out, split, 0)[first : first + step] = np.moveaxis(sums, split, 0)
        else:
            np.add(out, sums, out=out)
    return out


def _multiplied(operands: list[Array], kind: DType) -> Array:
    """The products of the operands, from the first to the last."""
    result = operands[0]
    for operand in operands[1:]:
        result = np.asarray(np.multiply(result, operand))
    return widened(result, kind)


# ---- integers ---------------------------------------------------------------------------------


def less_zero(x: Array, zero: Array | None, row: bool) -> Array:
    """Bytes minus their zero points: one for all, or for each row (column), of all matrices alike or of each one."""
    wide = x.astype(np.int16)
    if zero is None:
        return wide
    difference: Array = np.subtract(wide, by_lines(zero.astype(np.int16), row))
    return difference


def by_lines(zero: Array, row: bool) -> Array:
    """Zero points or scales, shaped so that they broadcast with the matrices that they belong to."""
    if zero.size == 1 and zero.ndim <= 1:
        return zero.reshape(())
    return zero[:, None] if zero.ndim == 1 and row else zero


def lines_fit(zero: Sizes, x: Sizes, row: bool) -> bool:
    """Zero points of this shape suit matrices of the other."""
    if len(zero) <= 1 and all(n == 1 for n in zero):
        return True
    if len(x) < 2:
        return False
    if row:
        return zero in ((x[-2],), (*x[:-1], 1))
    return zero in ((x[-1],), (*x[:-2], 1, x[-1]))


@unprepared
def _matmul_integer(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    a, b = tensor(inputs, 0), tensor(inputs, 1)
    zero_a, zero_b = optional(inputs, 2), optional(inputs, 3)
    require_matrices(a.shape, b.shape)
    for zero, x, row in ((zero_a, a, True), (zero_b, b, False)):
        fits = zero is None or lines_fit(zero.shape, x.shape, row)
        require(fits, "a zero point is a scalar, or has an entry for each row of A, each column of B")
    sums = exact_product(less_zero(a, zero_a, True), less_zero(b, zero_b, False))
    out = allocate(sums.shape, INT32)
    np.copyto(out, sums.astype(np.int64), casting="unsafe")
    return (out,)


KERNELS: Mapping[str, tuple[Kernel, ...]] = {
    "MatMul": (Kernel(1, 13, _matmul),),
    "Gemm": (Kernel(7, 13, _gemm),),
    "Einsum": (Kernel(12, 28, _einsum),),
    "MatMulInteger": (Kernel(10, 10, _matmul_integer),),
}
