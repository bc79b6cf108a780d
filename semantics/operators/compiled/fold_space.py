"""What a fold is, and the spaces in which its terms are evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from sonnx.spec.language.syntax import Span

from .lower import Code, Space, lower
from .terms import BOOL, ELEMENT, INT, Array, Axis, Node, Operand, stuck

CHUNK: Final = 1 << 17
"""How many elements of the terms of a fold exist at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A fold of a body over axes, where a guard holds; the size of each axis is greater than 1."""

    name: str
    axes: tuple[Axis, ...]
    body: Operand
    guard: Operand
    start: Operand | None
    masked: bool
    span: Span
    rule: str

    @property
    def steps(self) -> int:
        """The number of indices."""
        return math.prod(axis.size for axis in self.axes)


def fold_space(axes: tuple[Axis, ...], space: Space, box: Mapping[Axis, tuple[int, int]] | None = None) -> Space:
    """The space with the axes of a fold in front, all of them or a box."""
    whole = {axis: (0, axis.size) for axis in axes}
    return Space(space.builder, (*axes, *space.order), {**space.box, **whole, **(box or {})})


def chunks(axes: tuple[Axis, ...], limit: int) -> Iterator[dict[Axis, tuple[int, int]]]:
    """Boxes of at most about `limit` indices that cover the axes in row-major order."""
    inner, split = 1, len(axes)
    while split > 0 and inner * axes[split - 1].size <= limit:
        split -= 1
        inner *= axes[split].size
    if split == 0:
        yield {axis: (0, axis.size) for axis in axes}
        return
    cut = axes[split - 1]
    width = max(1, limit // inner)
    for outer in product(*(range(axis.size) for axis in axes[: split - 1])):
        fixed = {axis: (v, v + 1) for axis, v in zip(axes, outer, strict=False)}
        for lo in range(0, cut.size, width):
            rest = {axis: (0, axis.size) for axis in axes[split:]}
            yield {**fixed, cut: (lo, min(lo + width, cut.size)), **rest}


def outputs(space: Space, axes: tuple[Axis, ...]) -> int:
    """How many outputs these axes make in the box."""
    return math.prod(space.box[axis][1] - space.box[axis][0] for axis in axes if axis in space.box)


def fold_terms(fold: Fold, term: Operand, space: Space, box: Mapping[Axis, tuple[int, int]]) -> Code:
    """The code of a body or guard over a box of steps and all outputs."""
    return lower(term, fold_space(fold.axes, space, box))


def no_term(fold: Fold) -> Exception:
    """The signal that a fold has no value."""
    return stuck(
        fold.rule, f"{fold.name} has a term", fold.span, f"{fold.name} has no term here: its guard holds for no index."
    )


def fold_function(fold: Fold, node: Node, space: Space) -> Callable[..., Array]:
    """The operation that takes a further term into account."""
    name = {"sum": "add", "prod": "mul"}.get(fold.name, fold.name)
    return space.builder.algebra.operation(name, node.type)  # type: ignore[arg-type]


def without(x: Array, count: int) -> Array:
    """The array without leading dimensions, all of size 1."""
    """The array without leading dimensions, all of size 1."""
    x = np.asarray(x)
    return x.reshape(x.shape[count:]) if x.ndim >= count else x


def storage_of(node: Node, space: Space) -> np.dtype[np.generic]:
    """The dtype of arrays that hold the values of a term."""
    if node.kind == ELEMENT and node.type is not None:
        return space.builder.algebra.storage(node.type)
    return np.dtype({BOOL: np.bool_, INT: np.int64}.get(node.kind, np.object_))


def identity(fold: Fold, node: Node, space: Space) -> Array:
    """What changes no term: -0.0 (0 where there is none), 1, the infinities or the limits of the type."""
    algebra = space.builder.algebra
    if node.kind != ELEMENT or node.type is None:
        return np.asarray(0)
    match fold.name:
        case "sum":
            zero = algebra.constant(node.type, 0)
            minus = np.asarray(algebra.operation("neg", node.type)(zero))
            return minus if bool(minus == zero) and minus.dtype.kind not in "iu" else zero
        case "prod":
            return algebra.constant(node.type, 1)
        case _:
            return np.zeros((), storage_of(node, space))
