"""ImageDecoder: BMP files of 24 bits a pixel, pixel by pixel; every other stream is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from images import bmp, image

Run = Callable[..., Any]
SIZES = [(1, 1), (2, 1), (1, 2), (3, 2), (2, 3), (5, 4), (3, 5), (7, 31)]
"""Heights and widths; a row of each remainder by four bytes."""


@pytest.mark.parametrize(("height", "width"), SIZES)
@pytest.mark.parametrize("gap", [0, 3])
def test_the_pixels_of_a_bmp_file_are_decoded(run: Run, height: int, width: int, gap: int) -> None:
    pixels = image(height, width)
    for given, expected in (({}, pixels), ({"pixel_format": "BGR"}, pixels[:, :, ::-1])):
        found = run("ImageDecoder", 20, bmp(pixels, gap), **given)
        assert found.dtype == np.uint8
        assert np.array_equal(found, expected)


def test_bytes_behind_the_rows_have_no_influence(run: Run) -> None:
    stream = np.concatenate([bmp(image(2, 3)), np.full(5, 9, np.uint8)])
    assert np.array_equal(run("ImageDecoder", 20, stream), image(2, 3))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"offset": 53}, "rows stand behind"),
        ({"offset": 55}, "all are there"),
        ({"size": 41}, "24 bits a pixel"),
        ({"planes": 2}, "24 bits a pixel"),
        ({"bits": 32}, "24 bits a pixel"),
        ({"method": 1}, "24 bits a pixel"),
        ({"width": 0}, "are positive"),
        ({"width": 3}, "all are there"),
        ({"height": 0}, "are positive"),
        ({"height": -2}, "are positive"),
        ({"height": 2**31 - 1}, "all are there"),
    ],
)
def test_a_header_that_says_something_else_is_refused(refused: Run, fields: dict[str, int], sentence: str) -> None:
    assert sentence in refused("ImageDecoder", 20, bmp(image(2, 2), **fields))


@pytest.mark.parametrize("start", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"RIFF", b"II*\x00", b"P6\n2 2\n255\n"])
def test_other_formats_are_refused(refused: Run, start: bytes) -> None:
    assert "BMP file" in refused("ImageDecoder", 20, np.frombuffer(start.ljust(80, b"\0"), np.uint8))


def test_a_stream_that_is_cut_is_refused(refused: Run) -> None:
    whole = bmp(image(2, 2))
    assert "54 bytes" in refused("ImageDecoder", 20, whole[:53])
    assert "54 bytes" in refused("ImageDecoder", 20, whole[:0])
    assert "all are there" in refused("ImageDecoder", 20, whole[:-1])


@pytest.mark.parametrize("order", ["Grayscale", "rgb", ""])
def test_an_order_without_a_stated_result_is_refused(refused: Run, order: str) -> None:
    assert "RGB or BGR" in refused("ImageDecoder", 20, bmp(image(2, 2)), pixel_format=order)
