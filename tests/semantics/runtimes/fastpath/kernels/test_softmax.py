from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from applications import Case, applications
from fastpath_cases import agreement, disagreements, every, unbroken, whole
from sonnx.semantics.runtimes.fastpath.kernels.softmax import KERNELS
from tables import table

ALONG_AXES = {name: KERNELS[name] for name in ("Softmax", "LogSoftmax")}
SPECIAL = [
    [np.nan, 1, 2], [np.inf, 1, 2], [-np.inf, 1, 2], [-np.inf, -np.inf, -np.inf], [np.inf, np.inf, 1],
    [-np.inf, np.nan, np.inf], [0.0, -0.0, 0.0], [1e30, -1e30, 0],
]  # fmt: skip
TERMS = 12
"""The most terms of a sum in these tests."""


def _bound(dtype: Any, op_type: str) -> float:
    """Two sums of n positive terms differ by at most 2 (n - 1) units of rounding of their value, their quotients by one
    more; a logarithm turns the relative difference into an absolute one, beside results that are at least 0.1 here.
    """
    unit = float(ml_dtypes.finfo(dtype).eps) / 2
    return (2 * TERMS + 1) * unit * (10 if op_type == "LogSoftmax" else 1)


@table("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@table(("op_type", "version"), every(ALONG_AXES))
def test_sums_of_two_terms_agree_with_the_definition(op_type: str, version: int, dtype: Any) -> None:
    shapes: list[tuple[tuple[int, ...], dict[str, Any]]] = [
        ((3, 2), {"axis": 1}), ((2, 3), {"axis": 0} if version == 13 else {"axis": -1}), ((4, 2, 1), {"axis": 1}),
        ((2,), {"axis": 0}), ((3, 0), {"axis": 1}), ((0, 2), {"axis": 1}), ((2, 1, 1), {}),
    ]  # fmt: skip
    cases: list[Case] = [((whole("x", x, dtype),), a, 1) for x, a in shapes if version == 13 or x != (2, 3)]
    assert not disagreements(KERNELS, op_type, version, cases)


@table(("op_type", "version"), every(ALONG_AXES))
def test_longer_sums_differ_by_their_roundings_alone(op_type: str, version: int) -> None:
    for dtype in (np.float32, np.float64):
        cases: list[Case] = [
            ((whole("x", x, dtype),), {"axis": a}, 1)
            for x, a in (((5, 7), 1), ((2, 12), -1), ((3, 3, 4), 1), ((3, 2, 3, 2), 2))
        ]
        bound = _bound(dtype, op_type)
        assert not disagreements(KERNELS, op_type, version, cases, within=bound)


@table(("op_type", "version"), every(ALONG_AXES))
def test_special_values_agree_with_the_definition(op_type: str, version: int) -> None:
    bound = _bound(np.float32, op_type)
    assert not disagreements(
        KERNELS, op_type, version, [((np.array(SPECIAL, np.float32),), {"axis": 1}, 1)], within=bound
    )


@table(("op_type", "version"), every(ALONG_AXES))
def test_an_axis_that_the_input_lacks_is_refused(op_type: str, version: int) -> None:
    cases: list[Case] = [((np.ones((2, 3), np.float32),), {"axis": axis}, 1) for axis in (2, -3)]
    cases.append(((np.ones((), np.float32),), {}, 1))
    assert not unbroken(op_type, version, cases)
    assert not disagreements(KERNELS, op_type, version, cases)


@table(("op_type", "version"), every(ALONG_AXES))
def test_applications_of_the_wheel_differ_by_their_roundings_alone(op_type: str, version: int) -> None:
    bound = 120 * float(np.finfo(np.float32).eps) * (10 if op_type == "LogSoftmax" else 1)
    assert not [r for a in applications(op_type, version, 0) if (r := agreement(KERNELS, a, within=bound))]
