"""Integers as rows of binary digits, and elements of one type as those of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from drawn.drawing import Draw, Drawn, Known, Rng, integers, kind, kinds, numbers, shape
from onnx import TensorProto
from sonnx.semantics.model.elements import BITS


def _two_shapes(rng: Rng) -> Sequence[list[int]]:
    whole = shape(rng)
    parts = [[1 if rng.random() < 0.25 else size for size in whole] for _ in range(2)]
    return [own[rng.randint(0, len(own)) if rng.random() < 0.3 else 0 :] for own in parts]


def _both(rng: Rng, name: str, version: int) -> Drawn:
    element = kind(rng, name, version)
    return Drawn([numbers(rng, own, element, 0.7) for own in _two_shapes(rng)])


def _one(rng: Rng, name: str, version: int) -> Drawn:
    return Drawn([numbers(rng, shape(rng), kind(rng, name, version), 0.7)])


def _shift(rng: Rng, name: str, version: int) -> Drawn:
    element = kind(rng, name, version)
    a, b = _two_shapes(rng)
    x, y = numbers(rng, a, element, 0.7), numbers(rng, b, element, 0)
    least = 0 if element.startswith("u") or rng.random() < 0.7 else -2
    places = [rng.randint(least, BITS[element] + (1 if rng.random() < 0.2 else -1)) for _ in range(y.size)]
    return Drawn([x, integers(places, element).reshape(y.shape)], {"direction": rng.choice(["LEFT", "RIGHT"])})


def _cast(rng: Rng, name: str, version: int) -> Drawn:
    element = kind(rng, name, version, "T1")
    to = rng.choice([it for it in kinds(name, version, "T2") if BITS[it] == BITS[element]])
    x = numbers(rng, shape(rng), element, 0.5)
    if to == "bool":
        x = np.asarray(x.view("uint8") % 2).view(x.dtype)
    named = {"float": "FLOAT", "double": "DOUBLE", "bool": "BOOL"}.get(to, to.upper())
    return Drawn([x], {"to": TensorProto.DataType.Value(named)})


DRAWS: Mapping[tuple[str, int], Draw] = {
    ("BitCast", 26): _cast,
    ("BitShift", 11): _shift,
    ("BitShift", 28): _shift,
    ("BitwiseAnd", 18): _both,
    ("BitwiseOr", 18): _both,
    ("BitwiseXor", 18): _both,
    ("BitwiseNot", 18): _one,
}


KNOWN: tuple[Known, ...] = ()
