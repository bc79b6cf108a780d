"""Distances between elements, and how elements are shown, in every type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from sonnx.checker.runtimes.differential.special_values import special
from sonnx.semantics.machine.judging import same, shown, ulps
from sonnx.semantics.model.elements import DTYPES
from tables import table

FLOATS = [it for it in DTYPES if "float" in it or it == "double"]


@table("element", [it for it in FLOATS if it != "float8e8m0"])
def test_neighbours_are_one_apart_and_both_zeros_are_the_same_number(element: str) -> None:
    dtype = DTYPES[element]
    low, high = np.array([1.0]).astype(dtype), np.array([1.0]).astype(dtype)
    high.view(f"u{dtype.itemsize}")[0] += 1
    found = ulps(low, high)
    assert found is not None
    assert found.tolist() == [1]
    if element.endswith("fnuz"):
        return  # there is no other zero
    zeros = np.array([0.0, -0.0]).astype(dtype)
    between = ulps(zeros[:1], zeros[1:])
    assert between is not None
    assert between.tolist() == [0]


def test_the_distance_of_the_ends_of_a_type_does_not_overflow() -> None:
    ends = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])
    found = ulps(*ends)
    assert found is not None
    assert int(found[0]) == 2**64 - 1
    unsigned = ulps(np.array([0], np.uint64), np.array([2**64 - 1], np.uint64))
    assert unsigned is not None
    assert int(unsigned[0]) == 2**64 - 1
    doubles = ulps(np.array([-np.inf]), np.array([np.inf]))
    assert doubles is not None
    assert int(doubles[0]) == 2 * 0x7FF0000000000000


def test_any_nan_is_any_other_and_zeros_differ() -> None:
    quiet = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    assert same(quiet[:1], quiet[1:]).all()
    assert not same(np.array([0.0]), np.array([-0.0])).any()


@table(
    ("value", "decimal", "bits"),
    [
        (np.float32(0.1), "0.1", "3dcccccd"),
        (np.float64(-0.0), "-0", "8000000000000000"),
        (np.int8(-1), "-1", "ff"),
        (ml_dtypes.bfloat16(1.5), "1.5", "3fc0"),
        (ml_dtypes.int4(-3), "-3", "d"),
        (np.bool_(True), "true", "01"),
        (np.float32("nan"), "nan", "7fc00000"),
    ],
)
def test_an_element_is_shown_in_decimal_and_in_bits(value: object, decimal: str, bits: str) -> None:
    found = shown(np.array([value]), (0,))
    assert (found.decimal, found.hex) == (decimal, bits)


@table("element", sorted(DTYPES))
def test_every_type_has_special_values_among_them_its_limits(element: str) -> None:
    table = special(element)
    assert table.dtype == DTYPES[element]
    assert len(table) > 1
    if element in ("float", "double", "float16", "bfloat16"):
        wide = table.astype(np.float64)
        assert np.isnan(wide).any()
        assert np.isposinf(wide).any()
        assert np.isneginf(wide).any()
        assert (np.signbit(wide) & (wide == 0)).any()
