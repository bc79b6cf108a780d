"""Steps of a fused chain: an elementwise operator applied to a block of an image's channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..graph import TensorId
from .kernel import Array, Compute, Site
from .reading import number
from .rounding import DType, scalar
from .windows import Sizes

Apply = Callable[[Array, Array], None]
"""Computes the second block from the first; they may be the same memory. Both have channels and positions."""


@dataclass(frozen=True, slots=True)
class Link:
    """One operator of a chain. operands: by position a tensor that is there when it runs, or a known value; None for
    the data that flow along the chain. compute: of an operator that may work in place; None for BatchNormalization,
    whose operands are mean, root, scale and bias beside the data.
    """

    operands: tuple[TensorId | Array | None, ...]
    compute: Compute | None

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
    return Link((None, mean, root, scale, bias), None)


def fits(link: Link, shape: Sizes, dtype: DType, given: Mapping[TensorId, Array]) -> bool:
    """Whether the link leaves data of this shape and type as large as they are, channel by channel."""
    for known in link.known:
        if known.dtype != dtype:
            return False
        if link.compute is None:
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
    compute = link.compute
    if compute is None:
        _, mean, root, scale, bias = operands

        def normalize(source: Array, target: Array) -> None:
            np.subtract(source, mean, out=target)
            np.divide(target, root, out=target)
            np.multiply(target, scale, out=target)
            np.add(target, bias, out=target)

        return normalize
    at = operands.index(None)
    found = compute

    def apply(source: Array, target: Array) -> None:
        found([*operands[:at], source, *operands[at + 1 :]], lambda _shape, _dtype: target)

    return apply


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
