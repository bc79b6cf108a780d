"""Random numbers: the primitives whose value does not follow from what is read.

The bits come from PCG64, which NumPy keeps as it is from version to version, seeded by the seed of the run, the place
of the node and the number of the primitive in its text: a node draws the same wherever it is executed again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from sonnx.spec.language.syntax import Span

from ...errors import InternalError, Unsupported
from ..application import Draw
from .code import Builder, Frame, strided
from .terms import BOOL, ELEMENT, INT, Array, Layout, Tensor, Value, row_strides, stuck
from .values import Scope, integers, static_int, tensor_of

DOUBLE: Final = np.dtype(np.float64)
Fill = Callable[[Frame], Array]
_BITS: Final = 53  # of the significand of a double


def fractions(draw: Draw, number: int, count: int) -> Array:
    """Numbers of 0 <= u < 1, multiples of 2 ** -53. number: of the primitive in the text."""
    entropy = hashlib.sha256(f"{draw.seed} {number} {draw.place}".encode("utf-8", "surrogateescape")).digest()
    bits = np.random.PCG64(int.from_bytes(entropy, "little")).random_raw(count)
    return np.asarray((np.asarray(bits, np.uint64) >> np.uint64(64 - _BITS)) * 2.0**-_BITS, DOUBLE)


def _normal(draw: Draw, number: int, count: int) -> Array:
    """Numbers of the normal distribution, by the method of Box and Muller."""
    u = fractions(draw, number, 2 * count)
    return np.asarray(np.sqrt(-2 * np.log(1 - u[:count])) * np.cos(2 * np.pi * u[count:]), DOUBLE)


def _numbers(fill: Callable[[Draw, int, int], Array], least: float, most: float) -> Callable[..., Value]:
    """A primitive that gives doubles of an interval."""

    def primitive(args: list[Value], scope: Scope, _span: Span) -> Value:
        shape, builder = integers(args[0]), scope.builder
        count, number, algebra, place = math.prod(shape), builder.drawn, builder.algebra, builder.draw
        builder.drawn += 1

        def make() -> Layout:
            builder.claim(count * DOUBLE.itemsize)
            slot = builder.slot()

            def run(frame: Frame) -> None:
                if algebra.between is not None:
                    frame[slot] = algebra.between(shape, least, most)
                else:
                    frame[slot] = algebra.enter(fill(frame[place], number, count).reshape(shape))

            builder.emit(run)
            return Layout(slot, count, 0, row_strides(shape))

        return Tensor(
            ELEMENT, DOUBLE, shape, make, free=_open(shape, builder, lambda: lambda _frame: np.ones(shape, np.bool_))
        )

    return primitive


def _open(shape: tuple[int, ...], builder: Builder, where: Callable[[], Fill]) -> Callable[[], Tensor]:
    """Makes the tensor that says which elements are left open."""

    def make() -> Layout:
        fill, slot = where(), builder.slot()

        def run(frame: Frame) -> None:
            frame[slot] = fill(frame)

        builder.emit(run)
        return Layout(slot, math.prod(shape), 0, row_strides(shape))

    return lambda: Tensor(BOOL, None, shape, make)


def _outcomes(args: list[Value], scope: Scope, span: Span) -> Value:
    source, k, builder = tensor_of(args[0]), static_int(args[1]), scope.builder
    if not source.shape or k < 0:
        raise InternalError("outcomes of a scalar, or less than none")
    *rows, classes = source.shape
    shape, number, place, algebra = (*rows, k), builder.drawn, builder.draw, builder.algebra
    builder.drawn += 1

    def weights() -> Fill:
        layout = source.layout

        def read(frame: Frame) -> Array:
            given = strided(frame[layout.slot], source.shape, layout.offset, layout.strides)
            greatest = given["most"] if given.dtype.names else algebra.known(given)
            return np.asarray(greatest, DOUBLE).reshape(math.prod(rows), classes)

        return read

    def several() -> Fill:
        read = weights()
        return lambda frame: np.repeat(np.count_nonzero(read(frame) > -np.inf, axis=1) > 1, k).reshape(shape)

    def make() -> Layout:
        builder.claim(math.prod(shape) * 8)
        read, slot = weights(), builder.slot()

        def run(frame: Frame) -> None:
            draw: Draw = frame[place]
            table = read(frame)
            if not table.size or not k:
                frame[slot] = np.zeros(shape, np.int64)
            elif draw.outcomes is not None:
                frame[slot] = _allowed(table, draw, shape).reshape(shape)
            elif algebra.between is None and not _defined(table):
                why = "A list has no element above the negative infinity, or has a NaN or the infinity."
                raise stuck(builder.rule, "each list has an outcome", span, why)
            elif algebra.between is None or (np.count_nonzero(table > -np.inf, axis=1) == 1).all():
                u = fractions(draw, number, len(table) * k).reshape(len(table), k)
                frame[slot] = _chosen(table, u).reshape(shape)
            else:
                raise Unsupported("what follows from a random outcome has no bound")

        builder.emit(run)
        return Layout(slot, math.prod(shape), 0, row_strides(shape))

    return Tensor(INT, None, shape, make, 0, max(classes - 1, 0), _open(shape, builder, several))


def _defined(table: Array) -> bool:
    """True if each row has an outcome, and no element that is the logarithm of no probability."""
    return bool((table < np.inf).all() and (table > -np.inf).any(axis=1).all())


def _chosen(table: Array, u: Array) -> Array:
    """For each row and each number below 1 the position at which the weights up to it exceed that part of their sum."""
    sums = np.cumsum(np.exp(table - table.max(axis=1, keepdims=True)), axis=1)
    limits = u * sums[:, -1:]
    if u.shape[1] == 1:
        return np.asarray((sums <= limits).sum(axis=1, keepdims=True), np.int64)
    chosen = np.empty(u.shape, np.int64)
    for row in range(len(table)):
        chosen[row] = np.searchsorted(sums[row], limits[row], side="right")
    return chosen


def _allowed(table: Array, draw: Draw, shape: tuple[int, ...]) -> Array:
    """The outcomes that are given, each replaced by the likeliest one where it is none or has no probability."""
    if draw.probed and table.shape[1] > 2:
        raise Unsupported("there are more than two outcomes, and no output shows which of them it was")
    if draw.outcomes is None or draw.outcomes.size != math.prod(shape):
        raise Unsupported("no output shows the random outcomes")
    given = draw.outcomes.reshape(len(table), -1)
    inside = np.clip(given, 0, table.shape[1] - 1)
    possible = (inside == given) & (np.take_along_axis(table, inside, axis=1) > -np.inf)
    return np.where(possible, inside, table.argmax(axis=1)[:, None])


DRAWING: Final[Mapping[str, Callable[[list[Value], Scope, Span], Value]]] = {
    "uniform": _numbers(fractions, 0, 1),
    "normal": _numbers(_normal, -math.inf, math.inf),
    "outcomes": _outcomes,
}
"""For each primitive that draws what it gives."""
