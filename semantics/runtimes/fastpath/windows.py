"""Windows that move over the spatial axes of their data: where they stand, and what pads the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import EllipsisType
from typing import SupportsIndex

from .kernel import Array, Site
from .reading import integers, require, text

Sizes = tuple[int, ...]
Index = tuple[SupportsIndex | slice | EllipsisType, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """The window that a node states; None where it states none."""

    kernel: Sizes | None
    strides: Sizes | None
    dilations: Sizes | None
    pads: Sizes | None
    auto_pad: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A window over data of known sizes. Every entry has a number for each spatial axis.

    before, after: the padding. padded: the sizes with it. extent: of the dilated kernel. count: of the positions.
    """

    data: Sizes
    kernel: Sizes
    strides: Sizes
    dilations: Sizes
    before: Sizes
    after: Sizes
    padded: Sizes
    extent: Sizes
    count: Sizes

    @property
    def is_same(self) -> bool:
        """True where the window is one element that visits all data and nothing else."""
        return self.kernel == self.strides == (1,) * len(self.data) and self.padded == self.data


def window_of(site: Site) -> Window:
    """The window that the attributes of a node describe."""
    return Window(
        integers(site, "kernel_shape"),
        integers(site, "strides"),
        integers(site, "dilations"),
        integers(site, "pads"),
        text(site, "auto_pad", "NOTSET"),
    )


def same_padding(data: Sizes, extent: Sizes, strides: Sizes) -> Sizes:
    """The padding on both sides together with which a window takes ceil(data / stride) positions."""
    return tuple(max(((d + s - 1) // s - 1) * s + e - d, 0) for d, e, s in zip(data, extent, strides, strict=True))


def place(window: Window, data: Sizes, kernel: Sizes) -> Placed:
    """The window over data with these spatial sizes. Raises KernelError for what ONNX or SONNX excludes."""
    r = len(data)
    strides, dilations, pads = checked(window, data, kernel)
    same = window.auto_pad.startswith("SAME")
    extent = tuple((k - 1) * t + 1 for k, t in zip(kernel, dilations, strict=True))
    before, after = pads[:r], pads[r:]
    if same:
        total = same_padding(data, extent, strides)
        less, more = tuple(p // 2 for p in total), tuple(p - p // 2 for p in total)
        before, after = (less, more) if window.auto_pad == "SAME_UPPER" else (more, less)
    padded = tuple(map(sum, zip(data, before, after, strict=True)))
    require(all(e <= p for e, p in zip(extent, padded, strict=True)), "the kernel, dilated, fits into the padded data")
    count = tuple((p - e) // s + 1 for p, e, s in zip(padded, extent, strides, strict=True))
    return Placed(data, kernel, strides, dilations, before, after, padded, extent, count)


def checked(window: Window, data: Sizes, kernel: Sizes) -> tuple[Sizes, Sizes, Sizes]:
    """Strides, dilations and paddings, with what holds where they are absent, after all have been checked."""
    r, auto = len(data), window.auto_pad
    require(r > 0, "the data have a spatial axis")
    require(len(kernel) == r, "the kernel has a size for each spatial axis")
    require(window.kernel in (None, kernel), "kernel_shape is the shape of the kernels")
    require(auto in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), "auto_pad is one of the four words")
    require(window.pads is None or auto == "NOTSET", "pads is written only where auto_pad is NOTSET")
    strides = (1,) * r if window.strides is None else window.strides
    dilations = (1,) * r if window.dilations is None else window.dilations
    pads = (0,) * (2 * r) if window.pads is None else window.pads
    require(len(strides) == r, "there is one stride for each spatial axis")
    require(len(dilations) == r, "there is one dilation for each spatial axis")
    require(len(pads) == 2 * r, "there are two paddings for each spatial axis")
    require(min(pads) >= 0, "paddings are not negative")
    require(min(strides) > 0, "strides are positive")
    require(min(dilations) > 0, "dilations are positive")
    require(min(kernel) > 0, "kernels are not empty")
    return strides, dilations, pads


def part(x: Array, last: Iterable[SupportsIndex | slice]) -> Array:
    """A view of the array: what these indices choose of its last axes."""
    index: Index = (..., *last)
    shown: Array = x[index]
    return shown
