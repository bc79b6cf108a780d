"""DepthToSpace and SpaceToDepth: axes split, exchanged and joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ....model.values import Value
from ..kernel import Allocate, Array, Compute, Kernel, Site
from ..reading import integer, require, tensor, text


def _checked(site: Site, inputs: Sequence[Value | None]) -> tuple[Array, int, bool]:
    """The input, the size of blocks, and whether the place in a block is the first part of a channel."""
    x, size, mode = tensor(inputs, 0), integer(site, "blocksize"), text(site, "mode", "DCR")
    require(x.ndim == 4, "the input has four axes")
    require(size > 0, "blocks are not empty")
    require(mode in ("DCR", "CRD"), "mode is one of the two words")
    return x, size, mode == "DCR"


def _depth_to_space(site: Site) -> Compute:
    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> tuple[Value | None, ...]:
        x, s, first = _checked(site, inputs)
        b, c, h, w = x.shape
        require(c % (s * s) == 0, "the channels are divided into those of the places of a block")
        n = c // (s * s)
        parts = x.reshape(b, s, s, n, h, w) if first else x.reshape(b, n, s, s, h, w)
        out = allocate((b, n, h * s, w * s), x.dtype)
        np.copyto(out.reshape(b, n, h, s, w, s), parts.transpose((0, 3, 4, 1, 5, 2) if first else (0, 1, 4, 2, 5, 3)))
        return (out,)

    return compute


def _space_to_depth(site: Site) -> Compute:
    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> tuple[Value | None, ...]:
        x, s, first = _checked(site, inputs)
        b, c, h, w = x.shape
        require(h % s == 0 and w % s == 0, "height and width are divided into blocks")
        parts = x.reshape(b, c, h // s, s, w // s, s)
        out = allocate((b, c * s * s, h // s, w // s), x.dtype)
        if first:
            np.copyto(out.reshape(b, s, s, c, h // s, w // s), parts.transpose(0, 3, 5, 1, 2, 4))
        else:
            np.copyto(out.reshape(b, c, s, s, h // s, w // s), parts.transpose(0, 1, 3, 5, 2, 4))
        return (out,)

    return compute


KERNELS: Mapping[str, tuple[Kernel, ...]] = {
    "DepthToSpace": (Kernel(1, 28, _depth_to_space),),
    "SpaceToDepth": (Kernel(1, 28, _space_to_depth),),
}
