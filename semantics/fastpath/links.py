"""Steps of a fused chain: an elementwise operator applied to a block of an image's channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..graph import TensorId
from .functions import at_least
from .kernel import Array, Site
from .reading import number
from .rounding import DOUBLE, SINGLE, DType, scalar
from .windows import Sizes

_ZEROS: Final = {kind: np.zeros((), kind) for kind in (SINGLE, DOUBLE)}
Apply = Callable[[Array, Array], None]
"""Computes the second block from the first; they may be the same memory. Both have channels and positions."""


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
    operands: tuple[TensorId | Array | None, ...]

    @property
    def known(self) -> tuple[Array, ...]:
        """The operands that are known."""
        return tuple(it for it in self.operands if isinstance(it, np.ndarray))

    @property
    def read(self) -> tuple[TensorId, ...]:
        """The operands that are there when it runs."""
        return tuple(it for it in self.operands if isinstance(it, int))


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


def applied(link: Link, given: Mapping[TensorId, Array], image: int, channels: slice, places: slice) -> Apply:
    """The link for a block. given: the tensors that are there, with the axes images, channels, positions."""
    operands = [_part(it, given, image, channels, places) for it in link.operands]
    if link.op_type == "Relu":
        return _rectify
    if link.op_type == "BatchNormalization":
        mean, root, scale, bias = (it for it in operands if it is not None)

        def normalize(source: Array, target: Array) -> None:
            np.subtract(source, mean, out=target)
            np.divide(target, root, out=target)
            np.multiply(target, scale, out=target)
            np.add(target, bias, out=target)

        return normalize
    function, (first, second) = FUNCTIONS[link.op_type], operands

    def apply(source: Array, target: Array) -> None:
        function(source if first is None else first, source if second is None else second, out=target)

    return apply


def _rectify(source: Array, target: Array) -> None:
    at_least(source, _ZEROS[source.dtype], target)


def _part(
    operand: TensorId | Array | None, given: Mapping[TensorId, Array], image: int, channels: slice, places: slice
) -> Array | None:
    if operand is None:
        return None
    if isinstance(operand, np.ndarray):
        return operand.reshape(()) if operand.size == 1 else operand.reshape(-1, 1)[channels]
    return given[operand][image, channels, places]


def blocks(channels: slice, row_bytes: int, limit: int) -> Sequence[slice]:
    """The channels as slices whose rows take about so many bytes."""
    step = max(1, limit // max(1, row_bytes))
    return [slice(first, min(first + step, channels.stop)) for first in range(channels.start, channels.stop, step)]
