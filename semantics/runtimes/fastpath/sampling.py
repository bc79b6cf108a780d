"""Where the elements of a resized axis are sampled: exact coordinates, and from them positions and weights.

Every coordinate is an affine function of the position, with rational coefficients: it is evaluated in integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .rounding import to_odd

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Line:
    """One axis: d positions become o ones. scale: the factor. start, end: of the region of interest."""

    d: int
    o: int
    scale: Fraction
    start: Fraction = Fraction(0)
    end: Fraction = Fraction(1)

    @property
    def still(self) -> bool:
        """Whether the axis stays as it is."""
        return self.scale == 1 and self.start == 0 and self.end == 1


@dataclass(frozen=True, slots=True)
class Taps:
    """For each tap and position: the place that is read, within the data; its weight, as a double that rounds as the
    exact weight does; whether the exact weight is other than 0. All have the shape taps, positions.
    """

    places: NDArray[np.int64]
    weights: NDArray[np.float64]
    counts: NDArray[np.bool_]


def coordinate(how: str, line: Line) -> Callable[[int], Fraction]:
    """The coordinate in the data for which a position of the resized axis stands."""
    d, o, scale, start, end = line.d, line.o, line.scale, line.start, line.end
    match how:
        case "half_pixel":
            return lambda x: (x + HALF) / scale - HALF
        case "half_pixel_symmetric":
            shift = (d - o / scale) / 2
            return lambda x: shift + (x + HALF) / scale - HALF
        case "pytorch_half_pixel":
            return lambda x: (x + HALF) / scale - HALF if o > 1 else Fraction(0)
        case "align_corners":
            return lambda x: Fraction(x * (d - 1), o - 1) if o > 1 else Fraction(0)
        case "tf_half_pixel_for_nn":
            return lambda x: (x + HALF) / scale
        case "tf_crop_and_resize":
            if o > 1:
                return lambda x: start * (d - 1) + x * (end - start) * (d - 1) / (o - 1)
            return lambda x: HALF * (start + end) * (d - 1)
        case _:
            return lambda x: x / scale


def affine(how: str, line: Line) -> tuple[list[int], int]:
    """The coordinates of all positions as numerators over one denominator."""
    at = coordinate(how, line)
    first = at(0)
    slope = at(1) - first
    below = math.lcm(first.denominator, slope.denominator)
    base, step = int(first * below), int(slope * below)
    return [base + step * x for x in range(line.o)], below


def nearest(how: str, nearest_mode: str, line: Line) -> NDArray[np.int64]:
    """The place that is nearest to each coordinate, within the data."""
    above, below = affine(how, line)
    match nearest_mode:
        case "round_prefer_floor":
            found = [-((below - 2 * a) // (2 * below)) for a in above]
        case "round_prefer_ceil":
            found = [(2 * a + below) // (2 * below) for a in above]
        case "floor":
            found = [a // below for a in above]
        case _:
            found = [-(-a // below) for a in above]
    return np.array([min(max(place, 0), line.d - 1) for place in found], np.int64)


def inside(how: str, line: Line) -> NDArray[np.bool_]:
    """Whether each coordinate lies within the data."""
    above, below = affine(how, line)
    return np.array([0 <= a <= (line.d - 1) * below for a in above], bool)


def falloff(mode: str, a: Fraction, u: Fraction) -> Fraction:
    """The weight at a distance; for cubic the kernel of Keys, IEEE ASSP 29 (1981), equation (4), with coefficient a."""
    u = abs(u)
    if mode == "linear":
        return max(1 - u, Fraction(0))
    if u <= 1:
        return ((a + 2) * u - (a + 3)) * u * u + 1
    return ((u - 5) * u + 8) * u * a - 4 * a if u < 2 else Fraction(0)


def taps(
    how: str, line: Line, mode: str, a: Fraction, *, exclude_outside: bool, antialias: bool, in_double: bool
) -> Taps:
    """What is read for each position, and its weights. in_double: they are used as doubles, and not rounded again."""
    above, below = affine(how, line)
    stretch = min(line.scale, Fraction(1)) if antialias else Fraction(1)
    reach = (2 if mode == "cubic" else 1) / stretch
    count = math.ceil(2 * reach)
    share = exclude_outside or stretch != 1
    places, weights = [], []
    for numerator in above:
        at = Fraction(numerator, below)
        first = math.floor(at - reach) + 1
        around = range(first, first + count)
        parts = [
            Fraction(0) if exclude_outside and not 0 <= place < line.d else falloff(mode, a, stretch * (place - at))
            for place in around
        ]
        whole = sum(parts) if share else 0
        near = min(max(first, -count), line.d)  # what lies further out is held at the same end
        places.append(range(near, near + count))
        weights.append([part / whole for part in parts] if whole else parts)
    rounded = float if in_double else to_odd
    held = np.array(places, np.int64).reshape(len(above), count)
    return Taps(
        np.clip(held, 0, max(line.d - 1, 0)).T,
        np.array([[rounded(w) for w in row] for row in weights], np.float64).reshape(len(above), count).T,
        np.array([[w != 0 for w in row] for row in weights], bool).reshape(len(above), count).T,
    )
