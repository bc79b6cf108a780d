"""BMP files of 24 bits a pixel, written byte by byte."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def image(height: int, width: int) -> Bytes:
    """Pixels that all differ while there are numbers for them."""
    return np.arange(height * width * 3, dtype=np.int64).reshape(height, width, 3).astype(np.uint8)


def bmp(pixels: Bytes, gap: int = 0, **fields: int) -> Bytes:
    """A file with these pixels, red first. gap: bytes before the rows. fields: numbers that are other ones."""
    height, width, _ = pixels.shape
    told = {"offset": 54 + gap, "size": 40, "width": width, "height": height, "planes": 1, "bits": 24, "method": 0}
    told |= fields
    rows = [row[:, ::-1].tobytes() + bytes(-3 * width % 4) for row in pixels[::-1]]
    names = ("size", "width", "height", "planes", "bits", "method")
    numbers = struct.pack("<IiiHHI", *(told[name] for name in names))
    head = b"BM" + struct.pack("<IHHI", 54 + gap + sum(map(len, rows)), 0, 0, told["offset"]) + numbers
    return np.frombuffer(head + bytes(20) + b"\xff" * gap + b"".join(rows), np.uint8)
