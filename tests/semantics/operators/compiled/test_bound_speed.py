"""The fast route of the bound interpretation: matrix products, sums finished in pieces, known elements as they are.

It gives up no rigour: the sets are compared with exact sums, which data of few bits have in double.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from any_order import BFLOAT, DOUBLE, FLOAT, HALF
from sonnx.semantics.operators.application import Application
from sonnx.semantics.operators.compiled import bound
from sonnx.semantics.operators.compiled.bound import Allowed, Bounds, exactly
from sonnx.semantics.operators.compiled.elements.bounds.moments import PIECE, finished, of_terms
from sonnx.semantics.operators.compiled.elements.bounds.rounding import above, below, limits
from sonnx.semantics.operators.compiled.elements.bounds.storage import FLOAT_SET, compact, known_numbers

BITS = {FLOAT: 22, HALF: 10, BFLOAT: 8}


def bounds(op_type: str, version: int, *inputs: Any, given: Any = (), **attributes: Any) -> Allowed:
    found = bound.apply(Application(op_type, version, inputs, attributes, (True,)), given)
    assert isinstance(found, Bounds), found
    (allowed,) = found.values
    assert isinstance(allowed, Allowed)
    return allowed


def whole_numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    """Integers of as many bits as the type has, times 2 ** -8 where it is short: their sums are exact in double."""
    top = 1 << BITS[dtype]
    scale = 1.0 if dtype == FLOAT else 2.0**-8
    return (np.random.default_rng(seed).integers(-top, top, shape) * scale).astype(dtype)


def assert_allows_what_any_order_gives(allowed: Allowed, total: Any, size: Any, terms: Any) -> None:
    """The set is total -+ terms * u * size, and hardly more."""
    u = limits(allowed.type)[0]
    off = terms * u * size
    assert (allowed.low <= total - off * (1 - 2.0**-40)).all()
    assert (allowed.high >= total + off * (1 - 2.0**-40)).all()
    slack = 2.0**-36 * size + 2 * u * (np.abs(total) + off)
    assert (allowed.low >= total - off - slack).all()
    assert (allowed.high <= total + off + slack).all()


@pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT], ids=str)
def test_a_product_of_matrices_encloses_the_exact_sums_with_their_error(dtype: Any) -> None:
    a, b = whole_numbers((150, 37), dtype, 1), whole_numbers((37, 131), dtype, 2)
    x, y = a.astype(np.float64), b.astype(np.float64)
    assert PIECE < 150 * 131
    assert_allows_what_any_order_gives(bounds("MatMul", 13, a, b), x @ y, np.abs(x) @ np.abs(y), 37)


@pytest.mark.parametrize("group", [1, 2, 6], ids=["dense", "grouped", "depthwise"])
def test_a_convolution_encloses_the_exact_sums_with_their_error(group: int) -> None:
    x, w = whole_numbers((1, 6, 31, 37), FLOAT, 3), whole_numbers((24, 6 // group, 3, 3), FLOAT, 4)
    allowed = bounds("Conv", 11, x, w, pads=(1, 1, 1, 1), group=group)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded[0], (3, 3), axis=(1, 2))
    per, wide = 6 // group, 24 // group
    parts = [
        [np.einsum("chwij,mcij->mhw", f(windows[g * per :][:per]), f(w[g * wide :][:wide].astype(np.float64)))
         for g in range(group)]
        for f in (np.asarray, np.abs)
    ]  # fmt: skip
    total, size = (np.concatenate(part)[None] for part in parts)
    counts = math.prod((per, 3, 3))
    u = limits(FLOAT)[0]
    assert math.prod(total.shape) > PIECE
    assert (allowed.low <= total - (counts - 1) * u * size).all(), "padding is one term less where it is not added"
    assert (allowed.high >= total + (counts - 1) * u * size).all()
    assert (allowed.high - allowed.low <= 2 * (counts + 2) * u * size + 2.0**-30 * size).all()


def test_pieces_do_not_show() -> None:
    terms = np.random.default_rng(5).standard_normal((3, 2 * PIECE + 7)).astype(np.float32)
    terms[:, PIECE] = (np.inf, 1, -np.inf)
    terms[:, PIECE + 1] = 0
    terms[:, 5] = np.float32(3e38)
    with np.errstate(all="ignore"):
        at_once = finished(of_terms(terms, 1), FLOAT)
        parts = np.array_split(np.arange(terms.shape[1]), 5)
        apart = [finished(of_terms(terms[:, part], 1), FLOAT) for part in parts]
    assert at_once.tobytes() == np.concatenate(apart).tobytes()


def test_the_neighbours_of_doubles_are_enclosed_and_near() -> None:
    rng = np.random.default_rng(6)
    random = np.ldexp(rng.uniform(-1, 1, 20_000), rng.integers(-1074, 1024, 20_000))
    info = np.finfo(np.float64)
    edges = [0.0, -0.0, 1.0, info.max, info.tiny, info.smallest_subnormal, *(2.0**k for k in range(-1074, 1024))]
    with np.errstate(all="ignore"):
        for x in (random, np.asarray(edges), -np.asarray(edges)):
            up, far = np.nextafter(x, np.inf), np.nextafter(np.nextafter(x, np.inf), np.inf)
            assert ((above(x) >= up) & (above(x) <= far)).all()
            assert ((below(-x) <= -up) & (below(-x) >= -far)).all()
        ends = np.asarray([np.inf, -np.inf])
        assert above(ends).tolist() == [np.inf, -info.max]
        assert below(ends).tolist() == [info.max, -np.inf]


def test_tensors_of_known_elements_are_kept_as_plain_ones() -> None:
    sets = np.empty((3, 5), FLOAT_SET)
    for special in (0.0, -0.0, np.inf, np.nan):
        sets[...] = np.arange(15.0).reshape(3, 5)
        sets[1, 2] = special
        kept = compact(sets)
        assert kept.dtype == np.float64
        assert kept.tobytes() == np.array(sets["low"]).tobytes()
    sets["high"][2, 4] = 20
    assert compact(sets).dtype == FLOAT_SET
    sets[...] = 0.0
    sets["low"][0, 0] = -0.0
    assert compact(sets).dtype == FLOAT_SET, "either zero is no known element"


def test_what_only_moves_elements_has_one_array_of_values() -> None:
    x = np.asarray([[1.5, -0.0, np.nan, np.inf]], np.float32)
    allowed = bounds("Pad", 13, x, np.asarray([0, 1, 0, 1]))
    assert allowed.exact.all()
    assert allowed.low is allowed.most
    assert np.array_equal(allowed.nan, [[False, False, False, True, False, False]])


def test_unknown_elements_are_seen_in_windows_that_overlap() -> None:
    x, w = (
        np.random.default_rng(k).standard_normal(s).astype(np.float32)
        for k, s in ((7, (1, 2, 6, 9)), (8, (3, 2, 3, 3)))
    )
    known = exactly(x)
    low, high = np.array(known.low), np.array(known.high)
    low[0, 1, 2, 3] -= 0.25
    high[0, 1, 2, 3] += 0.25
    loose = Allowed(x.dtype, low, high, known.maybe_nan, known.nan, low, high)
    sharp, wide = bounds("Conv", 11, x, w), bounds("Conv", 11, x, w, given=(loose, None))
    touched = np.zeros(wide.least.shape, bool)
    touched[:, :, 0:3, 1:4] = True
    assert np.array_equal(wide.least[~touched], sharp.least[~touched])
    assert (wide.least[touched] < sharp.least[touched]).all()
    assert (wide.most[touched] > sharp.most[touched]).all()


def test_a_view_that_repeats_known_numbers_is_known() -> None:
    sets = np.empty(6, FLOAT_SET)
    sets[...] = np.arange(6.0)
    windows = np.lib.stride_tricks.sliding_window_view(sets, 3)
    assert known_numbers(windows)
    sets["high"][4] = 5
    assert not known_numbers(windows)
    sets[4] = np.nan
    assert not known_numbers(windows)


@pytest.mark.parametrize("dtype", [FLOAT, DOUBLE], ids=str)
def test_an_infinity_or_a_nan_among_the_factors_is_seen(dtype: Any) -> None:
    a, b = np.ones((2, 3), dtype), np.ones((3, 2), dtype)
    a[0, 1], b[2, 1] = np.inf, np.nan
    allowed = bounds("MatMul", 13, a, b)
    assert allowed.nan.tolist() == [[False, True], [False, True]]
    assert allowed.least[:, 0].tolist() == [np.inf, 3.0]
