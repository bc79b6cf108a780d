"""A random model in the making: its tensors with their types, its nodes and stored values."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

PRIMES = (2, 3, 5, 7, 11, 13)
LIMIT = 3_000
"""The elements that a tensor may have."""
SPECIAL = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-40, -1e-45, 3.4e38, 0.1, -7.5)
FLOATS = (np.float32, np.float64, np.float16)
NUMBERS = (*FLOATS, np.int64, np.int32)

Array = NDArray[np.generic]


@dataclass
class Draft:
    """A model in the making: tensors with dtype and shape, nodes and stored values in order."""

    choose: random.Random
    numbers: np.random.Generator
    tensors: dict[str, tuple[np.dtype[np.generic], tuple[int, ...]]] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    stored: dict[str, Array] = field(default_factory=dict)

    def pick(
        self, kinds: tuple[type, ...] = NUMBERS, least: int = 0, most: int = 9, smallest: int = 0
    ) -> tuple[str, np.dtype[np.generic], tuple[int, ...]]:
        """A tensor of one of the element types, with a rank in bounds and no axis below `smallest`."""
        fits = [
            (name, dtype, shape)
            for name, (dtype, shape) in self.tensors.items()
            if dtype.type in kinds and least <= len(shape) <= most and min(shape, default=smallest) >= smallest
        ]
        if not fits:
            raise Misfit
        return self.choose.choice(fits[-6:] if self.choose.random() < 0.7 else fits)

    def values(self, dtype: np.dtype[np.generic], shape: tuple[int, ...], *, tame: bool = False) -> Array:
        """Random elements, some of them special."""
        if dtype == np.bool_:
            return self.numbers.integers(0, 2, shape).astype(np.bool_)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            drawn = self.numbers.integers(-20, 20, shape) if dtype.kind == "i" else self.numbers.integers(0, 40, shape)
            wild = self.numbers.random(shape) < (0 if tame else 0.05)
            return np.where(wild, info.max, drawn).astype(dtype)
        drawn = self.numbers.standard_normal(shape)
        special = self.numbers.choice(SPECIAL, shape)
        wild = self.numbers.random(shape) < (0 if tame else 0.08)
        with np.errstate(over="ignore"):
            return np.asarray(np.where(wild, special, drawn)).astype(dtype)

    def store(self, value: Array) -> str:
        """A stored value."""
        name = f"w{len(self.stored)}"
        self.stored[name] = value
        return name

    def ints(self, *values: int) -> str:
        """A stored list of int64."""
        return self.store(np.array(values, np.int64))

    def add(
        self, op_type: str, inputs: list[str], dtype: object, *shapes: tuple[int, ...], **attributes: object
    ) -> list[str]:
        """A node with an output for each shape; all have the same element type."""
        for shape in shapes:
            if math.prod(shape) > LIMIT:
                raise Misfit
        outputs = [f"t{len(self.nodes)}_{i}" for i in range(len(shapes))]
        self.nodes.append(helper.make_node(op_type, inputs, outputs, f"n{len(self.nodes)}", **attributes))
        for name, shape in zip(outputs, shapes, strict=True):
            self.tensors[name] = (np.dtype(dtype), tuple(int(size) for size in shape))  # type: ignore[call-overload]
        return outputs


class Misfit(Exception):  # noqa: N818 - no error: this maker finds nothing to work on
    """No tensor fits, or the result would be too big."""
