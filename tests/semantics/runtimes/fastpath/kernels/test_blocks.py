from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from applications import Case
from fastpath_cases import disagreements, every, unbroken, whole
from sonnx.semantics.runtimes.fastpath.kernels.shape import KERNELS
from tables import table

BLOCKS = {name: KERNELS[name] for name in ("DepthToSpace", "SpaceToDepth")}


def _case(x: tuple[int, ...], dtype: Any = np.float32, **attributes: Any) -> Case:
    return (whole("x", x, dtype, 0, 100),), attributes, 1


SHAPES = [
    ((2, 8, 2, 3), 2),
    ((1, 9, 1, 2), 3),
    ((2, 3, 4, 6), 2),
    ((1, 2, 3, 3), 3),
    ((1, 2, 5, 7), 1),
    ((0, 4, 2, 2), 2),
]
BROKEN = [
    _case((1, 4, 2, 2), blocksize=0),
    _case((1, 3, 3, 2), blocksize=2),
    _case((1, 4, 2, 2), blocksize=2, mode="RDC"),
    _case((4, 2, 2), blocksize=2),
    _case((1, 4, 2, 3), blocksize=2),
]


@pytest.mark.parametrize(("op_type", "version"), every(BLOCKS))
def test_each_block_agrees_with_the_definition_or_both_refuse(op_type: str, version: int) -> None:
    modes: list[dict[str, Any]] = [{}, {"mode": "DCR"}, {"mode": "CRD"}]
    types = [np.float32, np.float16, np.int8, np.uint64, bool]
    cases = [_case(x, dtype, blocksize=s, **m) for x, s in SHAPES for m in modes for dtype in types]
    cases.append(((np.array([[[[b"a"]], [[b"b"]], [[b"c"]], [[b"d"]]]], object),), {"blocksize": 2}, 1))
    assert not disagreements(KERNELS, op_type, version, cases)


@table(("op_type", "version"), every(BLOCKS))
def test_each_requirement_is_demanded(op_type: str, version: int) -> None:
    assert not unbroken(op_type, version, BROKEN)
    assert not disagreements(KERNELS, op_type, version, BROKEN)
