"""Steps of a fused chain: an elementwise operator applied to a block of an image's channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ...model.graph import TensorId
from .functions import at_least
from .kernel import Array, Site
from .reading import number
from .rounding import DOUBLE, SINGLE, DType, scalar
from .windows import Sizes

_ZEROS: Final = {kind: np.zeros((), kind) for kind in (SINGLE, DOUBLE)}
Operand = TensorId | Array | None
"""A tensor that is there when a chain runs, a known value, or the data that flow along the chain."""


FUNCTIONS: Final[Mapping[str, np.ufunc]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Sum": np.add,
}
"""Operators on two operands, with the function that they are for floats."""


@dataclass(frozen=True, slots=True)
class Link:
    """One operator of a chain. operands: by position a tensor that is there when it runs, or a known value; None for
    the data that flow along the chain. Those of BatchNormalization are the data, mean, root, scale and bias.
    """

    op_type: str
    operands: tuple[Operand, ...]

    @property
    def known(self) -> tuple[Array, ...]:
        """The operands that are known."""
        return tuple(it for it in self.operands if isinstance(it, np.ndarray))

    @property
    def read(self) -> tuple[TensorId, ...]:
        """The operands that are there when it runs."""
        return tuple(it for it in self.operands if isinstance(it, int))


class Operation(NamedTuple):
    """A function of two operands that writes its third argument."""

    function: Callable[[Array, Array, Array], object]
    left: Operand
    right: Operand


def normalization(site: Site) -> Link:
    """BatchNormalization in inference mode with known parameters of one type."""
    scale, bias, mean, variance = (it for it in site.constants[1:5] if isinstance(it, np.ndarray))
    with np.errstate(all="ignore"):
        root = np.asarray(np.sqrt(variance + scalar(number(site, "epsilon", 1e-5), variance.dtype)))
    return Link(site.op_type, (None, mean, root, scale, bias))


def fits(link: Link, shape: Sizes, dtype: DType, given: Mapping[TensorId, Array]) -> bool:
    """Whether the link leaves data of this shape and type as large as they are, channel by channel."""
    for known in link.known:
        if known.dtype != dtype:
            return False
        if link.op_type == "BatchNormalization":
            if known.shape != shape[1:2]:
                return False
        elif known.ndim > len(shape) or (known.size != 1 and _beside(known, len(shape)) != shape[1]):
            return False
    return all(given[t].shape == shape and given[t].dtype == dtype for t in link.read)


def _beside(known: Array, rank: int) -> int:
    """How many channels an operand has where it is one element for each, else -1."""
    shape = (1,) * (rank - known.ndim) + known.shape
    return shape[1] if all(n == 1 for k, n in enumerate(shape) if k != 1) else -1


def operations(links: Sequence[Link]) -> tuple[Operation, ...]:
    """What the links compute, one function after the other."""
    found: list[Operation] = []
    for link in links:
        if link.op_type == "Relu":
            found.append(Operation(_rectify, None, None))
        elif link.op_type == "BatchNormalization":
            operands = (_column(it) for it in link.operands[1:])
            functions = (np.subtract, np.divide, np.multiply, np.add)
            found += [Operation(function, None, it) for function, it in zip(functions, operands, strict=True)]
        else:
            first, second = (_column(it) for it in link.operands)
            found.append(Operation(FUNCTIONS[link.op_type], first, second))
    return tuple(found)


def _rectify(source: Array, _same: Array, out: Array) -> None:
    at_least(source, _ZEROS[source.dtype], out)


def _column(operand: Operand) -> Operand:
    """A known operand as it stands beside channels and positions."""
    if isinstance(operand, np.ndarray):
        return operand.reshape(()) if operand.size == 1 else operand.reshape(-1, 1)
    return operand


def apply(
    steps: Sequence[Operation], given: Mapping[TensorId, Array], at: tuple[int, slice, slice], data: Array, goal: Array
) -> None:
    """Computes the second block from the first; they may be the same memory.

    given: the tensors that are there, with the axes images, channels, positions. at: where the block lies in them.
    """
    for function, left, right in steps:
        function(
            data if left is None else _part(left, given, at), data if right is None else _part(right, given, at), goal
        )
        data = goal


def _part(operand: TensorId | Array, given: Mapping[TensorId, Array], at: tuple[int, slice, slice]) -> Array:
    if isinstance(operand, int):
        return given[operand][at]
    return operand[at[1]] if operand.ndim else operand


def blocks(channels: slice, row_bytes: int, limit: int) -> Sequence[slice]:
    """The channels as slices whose rows take about so many bytes."""
    step = max(1, limit // max(1, row_bytes))
    return [slice(first, min(first + step, channels.stop)) for first in range(channels.start, channels.stop, step)]
