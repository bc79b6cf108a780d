from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from applications import Case
from fastpath_cases import disagreements, unbroken, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from sonnx.semantics.runtimes.fastpath.kernels.convolution import KERNELS

VERSIONS = [1, 11, 22]


def _case(x: tuple[int, ...], w: tuple[int, ...], bias: int = 0, dtype: Any = np.float32, **attributes: Any) -> Case:
    inputs = [whole("x", x, dtype), whole("w", w, dtype), *([whole("b", (bias,), dtype)] if bias else [])]
    return tuple(inputs), attributes, 1


SHAPES = [
    _case((1, 2, 3, 5), (2, 3, 2, 3), 3),
    _case((2, 2, 3, 4), (2, 3, 3, 2), 3, strides=(2, 3), pads=(1, 0, 1, 2), dilations=(2, 1)),
    _case((1, 4, 3), (4, 3, 3), 6, group=2, strides=(2,), output_padding=(1,)),
    _case((1, 3, 5, 4), (3, 1, 3, 3), 3, group=3, strides=(2, 2), pads=(1, 1, 1, 1)),
    _case((1, 2, 3), (2, 1, 2), strides=(3,), output_shape=(9,)),
    _case((1, 2, 3), (2, 1, 2), 1, strides=(3,), output_shape=(13,)),
    _case((1, 2, 3), (2, 1, 4), 1, output_shape=(3,), auto_pad="SAME_UPPER"),
    _case((1, 2, 3), (2, 1, 4), 1, output_shape=(3,), auto_pad="SAME_LOWER"),
    *(_case((1, 2, 4, 3), (2, 2, k, 3), 2, strides=(s, 1), auto_pad=word)
      for k in (2, 3) for s in (1, 2) for word in ("SAME_UPPER", "SAME_LOWER", "VALID")),
    _case((1, 1, 2, 3, 2), (1, 2, 2, 1, 3), 2, strides=(1, 2, 2)),
    _case((0, 2, 3), (2, 1, 2)), _case((1, 0, 3), (0, 2, 2), 2), _case((1, 2, 3), (2, 0, 2)),
    _case((1, 2, 0), (2, 1, 3), strides=(1,)),
]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_exact_sums_agree_with_the_definition(version: int) -> None:
    assert not disagreements(KERNELS, "ConvTranspose", version, SHAPES, signs=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_each_element_type_agrees_with_the_definition(dtype: Any) -> None:
    cases = [(tuple(x.astype(dtype) for x in inputs), a, n) for inputs, a, n in SHAPES[:5]]
    assert not disagreements(KERNELS, "ConvTranspose", 22, cases, signs=False)


def test_an_infinity_stays_where_its_kernel_reaches() -> None:
    x, w = np.array([[[1, np.inf, 2]]], np.float32), np.array([[[1, 0, np.nan]]], np.float32)
    assert not disagreements(KERNELS, "ConvTranspose", 11, [((x, w), {"strides": (4,)}, 1)], signs=False)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.data())
def test_small_cases_agree_with_the_definition_or_both_refuse(data: st.DataObject) -> None:
    axes = data.draw(st.integers(1, 2))
    numbers = lambda low, high, n=axes: tuple(data.draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))  # noqa: E731
    group = data.draw(st.integers(1, 2))
    attributes: dict[str, Any] = {"group": group, "strides": numbers(1, 3), "dilations": numbers(1, 2)}
    if data.draw(st.booleans()):
        attributes["output_padding"] = numbers(0, 1)
    if data.draw(st.booleans()):
        attributes["output_shape"] = numbers(1, 9)
    if data.draw(st.booleans()):
        attributes["pads"] = numbers(0, 2, 2 * axes)
    else:
        attributes["auto_pad"] = data.draw(st.sampled_from(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    case = _case((1, 2 * group, *numbers(1, 4)), (2 * group, 2, *numbers(1, 3)), 2 * group, **attributes)
    assert not disagreements(KERNELS, "ConvTranspose", data.draw(st.sampled_from(VERSIONS)), [case], signs=False)


BROKEN = [
    _case((1, 2), (2, 1)),
    _case((1, 2, 5), (2, 1, 2, 2)),
    _case((1, 2, 5), (2, 1, 2), group=0),
    _case((1, 3, 5), (3, 1, 2), group=2),
    _case((1, 2, 5), (3, 1, 2)),
    _case((1, 2, 5), (2, 1, 2), 3),
    _case((1, 2, 5), (2, 1, 2), kernel_shape=(3,)),
    _case((1, 2, 5), (2, 1, 2), strides=(1, 1)),
    _case((1, 2, 5), (2, 1, 2), dilations=(1, 1)),
    _case((1, 2, 5), (2, 1, 2), pads=(1,)),
    _case((1, 2, 5), (2, 1, 2), pads=(-1, 0)),
    _case((1, 2, 5), (2, 1, 2), pads=(0, 0), auto_pad="VALID"),
    _case((1, 2, 5), (2, 1, 2), auto_pad="SAME"),
    _case((1, 2, 5), (2, 1, 2), output_padding=(0, 0)),
    _case((1, 2, 5), (2, 1, 2), output_shape=(5, 5)),
    _case((1, 2, 5), (2, 1, 2), strides=(0,)),
    _case((1, 2, 5), (2, 1, 2), dilations=(0,)),
    _case((1, 2, 5), (2, 1, 0)),
    _case((1, 2, 5), (2, 1, 2), output_padding=(1,)),
    _case((1, 2, 5), (2, 1, 2), output_padding=(-1,)),
    _case((1, 2, 5), (2, 1, 2), pads=(4, 4)),
    _case((1, 2, 5), (2, 1, 3), strides=(2,), auto_pad="SAME_UPPER"),
    _case((1, 2, 5), (2, 1, 2), output_shape=(9,)),
    _case((1, 2, 5), (2, 1, 2), auto_pad="SAME_UPPER"),
]


@pytest.mark.parametrize(("op_type", "version"), [("ConvTranspose", version) for version in VERSIONS])
def test_each_requirement_is_demanded(op_type: str, version: int) -> None:
    assert not unbroken(op_type, version, BROKEN)
    assert not disagreements(KERNELS, op_type, version, BROKEN, signs=False)
