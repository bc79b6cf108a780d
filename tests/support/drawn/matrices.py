"""Matrices, diagonals, products along an axis, and reversed parts."""

from __future__ import annotations

from collections.abc import Mapping

from drawn.drawing import Draw, Drawn, Known, Rng, integers, kind, maybe, numbers, shape
from sonnx.checker.runtimes.differential.outcomes import Class

TYPES = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16)
"""The numbers of the types of numbers, and of bool."""


def _det(rng: Rng, name: str, version: int) -> Drawn:
    m = rng.randint(0, 4)
    return Drawn([numbers(rng, [*shape(rng, 0, 2, (0, 1, 2, 3)), m, m], kind(rng, name, version), 0.05)])


def _trilu(rng: Rng, name: str, version: int) -> Drawn:
    x = numbers(rng, shape(rng, 2, 4), kind(rng, name, version))
    k = integers(rng.choice([rng.randint(-4, 4), [rng.randint(-4, 4)]])) if rng.random() < 0.7 else None
    return Drawn([x, k], maybe(rng, upper=rng.randint(0, 1)))


def _eye(rng: Rng, name: str, version: int) -> Drawn:
    x = numbers(rng, shape(rng, 2, 2), kind(rng, name, version, "T1"))
    types = [it for it in TYPES if it != 16 or version > 9]
    return Drawn([x], maybe(rng, k=rng.randint(-4, 4), dtype=rng.choice(types)))


def _cumulative(rng: Rng, name: str, version: int) -> Drawn:
    x = numbers(rng, shape(rng, 1), kind(rng, name, version))
    axis = integers(rng.randint(-x.ndim, x.ndim - 1), kind(rng, name, version, "T2"))
    return Drawn([x, axis], maybe(rng, exclusive=rng.randint(0, 1), reverse=rng.randint(0, 1)))


def _reverse(rng: Rng, name: str, version: int) -> Drawn:
    whole, batch = shape(rng, 2), rng.randint(0, 1)
    lengths = integers([rng.randint(0, whole[1 - batch]) for _ in range(whole[batch])])
    attributes = {} if batch and rng.random() < 0.5 else {"batch_axis": batch, "time_axis": 1 - batch}
    return Drawn([numbers(rng, whole, kind(rng, name, version)), lengths], attributes)


DRAWS: Mapping[tuple[str, int], Draw] = {
    ("Det", 11): _det,
    ("Det", 22): _det,
    ("Trilu", 14): _trilu,
    ("EyeLike", 9): _eye,
    ("EyeLike", 22): _eye,
    ("CumProd", 26): _cumulative,
    ("ReverseSequence", 10): _reverse,
    ("ReverseSequence", 28): _reverse,
}


DETERMINANT = (
    "numpy.linalg.det takes the exponential of a sum of logarithms, of which the bound of the text says nothing"
)


KNOWN = (
    Known("reference", "Det", "Det-11/float16", lambda it, result: it.inputs[0].dtype.itemsize == 2),
    Known("reference", "Det", DETERMINANT, lambda it, result: result.outcome in (Class.MISMATCH, Class.NOT_COMPARED)),
)
