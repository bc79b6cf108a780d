from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from applications import Case
from fastpath_cases import computed, disagreements, every, unbroken, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernels.quantized import KERNELS
from tables import table

F = np.float32
QUANTIZE = [10, 13, 19, 21, 23, 24, 25, 28]
TARGETS = ["uint8", "int8", "uint16", "int16", "uint4", "int4", "uint2", "int2", "float8e4m3fn", "float8e4m3fnuz",
           "float8e5m2", "float8e5m2fnuz", "float4e2m1"]  # fmt: skip
SCALES = ["float", "float16", "bfloat16", "int32", "float8e8m0"]
VALUES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 3.4, 1e-45, 7.0, -7.5, 447.0, 480.0, -480.0,
          1000.0, 57345.0, -60000.0, 65000.0, 3e38, -3e38]  # fmt: skip


def _dtype(name: str) -> Any:
    return DTYPES[name]


@table("version", QUANTIZE)
@table("target", TARGETS)
def test_special_values_are_quantized_as_the_definition_says(version: int, target: str) -> None:
    cases: list[Case] = []
    with np.errstate(all="ignore"):
        for kind in SCALES[:3]:
            x = np.array(VALUES).astype(_dtype(kind))
            for scale in (1.0, 0.25, -3.0):
                for zero in (0, 1):
                    given_zero = np.array(zero).astype(_dtype(target))
                    saturates = {"saturate": 0} if zero and version >= 19 else {}
                    cases.append(((x, np.array(scale, F).astype(_dtype(kind)), given_zero), saturates, 1))
        integers = np.array([2**31 - 1, -(2**31), 0, 1, 5, -5, 3], np.int32)
        zero_point = np.array(1).astype(_dtype(target))
        cases.append(((integers, np.array(2, np.int32 if version >= 19 else F), zero_point), {}, 1))
    assert not disagreements(KERNELS, "QuantizeLinear", version, cases)


@table("version", QUANTIZE)
@table("source", [*TARGETS, "int32"])
def test_each_code_is_dequantized_as_the_definition_says(version: int, source: str) -> None:
    bits = {"uint4": 16, "int4": 16, "uint2": 4, "int2": 4, "float4e2m1": 16}.get(source, 256)
    dtype = _dtype(source)
    codes = np.arange(bits, dtype=np.uint8)
    x = codes.view(dtype) if dtype.itemsize == 1 else whole(source, (50,), dtype, *_range(source))
    if source in ("int4", "int2", "uint4", "uint2"):
        x = np.arange(*_range(source)).astype(np.int8).astype(dtype)
    cases: list[Case] = []
    for scale in SCALES:
        by = np.array(0.3, F).astype(_dtype(scale))
        for zero in (None, np.array(0 if source == "int32" else 1).astype(dtype)):
            more = [{"output_dtype": code} for code in (1, 10, 16)] if version >= 23 else []
            given = more if scale == "float8e8m0" else [{}, *more]  # no output has its type
            cases += [((x, by, zero), attributes, 1) for attributes in given]
    assert not disagreements(KERNELS, "DequantizeLinear", version, cases)


def _range(name: str) -> tuple[int, int]:
    info = ml_dtypes.iinfo(_dtype(name))
    return int(info.min), int(info.max)


LAYOUTS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 4), (), {}), ((2, 3, 4), (1,), {}), ((2, 3, 4), (3,), {}), ((2, 3, 4), (4,), {"axis": -1}),
    ((2, 3, 4), (2,), {"axis": 0}), ((), (), {}), ((0, 3), (3,), {}), ((5, 7), (5, 3), {"block_size": 3}),
    ((5, 7), (2, 7), {"block_size": 3, "axis": -2}), ((2, 4), (2, 1), {"block_size": 8}),
    ((2, 3), (2,), {}), ((2, 3), (3,), {"axis": 2}), ((2, 3), (1, 1), {}), ((2, 3), (2, 2), {"block_size": -1}),
    ((2, 4), (2, 2), {"block_size": 3, "axis": 1}), ((2, 4), (2, 2), {"block_size": 1, "axis": 1}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op_type", "version"), [(op, v) for op, v in every(KERNELS) if op.endswith("tizeLinear")][:16]
)
def test_scales_of_each_shape_agree_with_the_definition_or_both_refuse(op_type: str, version: int) -> None:
    cases: list[Case] = []
    for shape, scale, attributes in LAYOUTS:
        x = whole("x", shape) if op_type == "QuantizeLinear" else whole("x", shape, np.uint8, 0, 255)
        by = np.asarray(np.abs(whole("s", scale)) + F(1))
        cases += [((x, by), attributes, 1), ((x, by, whole("z", scale, np.uint8, 0, 9)), attributes, 1)]
        cases += [((x, by, np.zeros((), np.uint8)), attributes, 1), ((x, by, np.zeros(2, np.uint8)), attributes, 1)]
    assert not disagreements(KERNELS, op_type, version, cases)


@pytest.mark.parametrize("version", [23, 24, 25, 28])
def test_the_stated_precision_is_that_of_the_division(version: int) -> None:
    x = np.linspace(-3, 300, 40, dtype=F)
    cases = [
        ((x.astype(t), np.array(0.3, F).astype(s)), {"precision": p}, 1)
        for t in (F, np.float16, np.int32)
        for s in (F, np.float16, ml_dtypes.bfloat16)
        for p in (0, 1, 10, 16, 11, 6)
    ]
    assert not disagreements(KERNELS, "QuantizeLinear", version, cases)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.floats(width=32), max_size=9), st.floats(width=32, allow_nan=False), st.integers(-128, 127))
def test_any_float_is_quantized_as_the_definition_says(values: list[float], scale: float, zero: int) -> None:
    case = ((np.array(values, F), np.array(scale, F), np.array(zero, np.int8)), {}, 1)
    assert not disagreements(KERNELS, "QuantizeLinear", 21, [case])


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.floats(width=32), max_size=9))
def test_any_float_is_quantized_by_its_own_range_as_the_definition_says(values: list[float]) -> None:
    assert not disagreements(KERNELS, "DynamicQuantizeLinear", 11, [((np.array(values, F),), {}, 3)])


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 2, 5, 5), (3, 2, 3, 3), {"pads": (1, 1, 1, 1)}), ((1, 4, 6), (4, 2, 1), {"group": 2}),
    ((1, 3, 7), (3, 1, 3), {"group": 3, "strides": (2,), "pads": (1, 1)}), ((0, 2, 5), (3, 2, 2), {}),
    ((1, 2, 5), (3, 2, 2), {"auto_pad": "SAME_UPPER", "dilations": (2,)}),
]  # fmt: skip


def _conv(x: tuple[int, ...], w: tuple[int, ...], w_scale: int = 0, bias: bool = False, **attributes: Any) -> Case:
    per = (w_scale,) if w_scale else ()
    data = whole("x", x, np.uint8, 0, 255), np.array(0.03, F), np.array(120, np.uint8)
    kernels = (
        whole("w", w, np.int8, -128, 127),
        np.asarray(np.abs(whole("s", per)) * F(0.01) + F(0.02)),
        whole("z", per, np.int8, -3, 3),
    )
    result = np.array(0.7, F), np.array(30, np.uint8)
    return (*data, *kernels, *result, *([whole("b", w[:1], np.int32, -999, 999)] if bias else [])), attributes, 1


def test_quantized_convolutions_agree_with_the_definition() -> None:
    cases = [_conv(x, w, s, b, **a) for x, w, a in CONVOLUTIONS for s in (0, 1, w[0]) for b in (False, True)]
    assert not disagreements(KERNELS, "QLinearConv", 10, cases)


def test_a_bias_that_leaves_32_bits_wraps_around() -> None:
    inputs = list(_conv((1, 1, 3), (1, 1, 1), bias=True)[0])
    for bias in (2**31 - 1, -(2**31)):
        inputs[8] = np.array([bias], np.int32)
        assert not disagreements(KERNELS, "QLinearConv", 10, [(tuple(inputs), {}, 1)])


def _matmul(
    a: tuple[int, ...], b: tuple[int, ...], *parts: tuple[int, ...], scale: Any = F, kind: Any = np.uint8
) -> Case:
    """parts: the shapes of the scale and zero point of a and of b."""
    first, second = (parts + ((),) * 4)[:2], (parts + ((),) * 4)[2:4]
    low, high = (0, 255) if kind == np.uint8 else (-3, 3)
    inputs: list[Any] = []
    for name, shape, (s, z) in (("a", a, first), ("b", b, second)):
        inputs.append(whole(name, shape, kind, low, high))
        inputs += [np.asarray(np.abs(whole("s", s)) * F(0.25) + F(0.5)).astype(scale), whole("z", z, kind, 0, 3)]
    return (*inputs, np.array(64, F).astype(scale), np.array(3, np.uint8).astype(kind)), {}, 1


MATRICES = [
    _matmul((2, 3), (3, 4)),
    _matmul((3,), (3,)),
    _matmul((3,), (3, 4)),
    _matmul((2, 3), (3,)),
    _matmul((5, 2, 3), (3, 4)),
    _matmul((2, 3), (3, 4), (1,), (), (), (1,)),
    _matmul((2, 3), (3, 4), (2,), (2,), (4,), (4,)),
    _matmul((2, 3), (3, 4), (2, 1), (2, 1), (1, 4), (1, 4)),
    _matmul((5, 2, 3), (3, 4), (5, 2, 1), (5, 2, 1)),
    _matmul((5, 2, 3), (3,), (5, 2, 1), (5, 2, 1)),
    _matmul((3,), (5, 3, 4), (), (), (5, 1, 4), (5, 1, 4)),
    _matmul((2, 0), (0, 3)),
    _matmul((0, 2), (2, 3)),
    _matmul((2, 3), (3,), (2,), (2,)),
    _matmul((3,), (3, 4), (), (), (4,), (4,)),
]


@pytest.mark.parametrize("version", [10, 21])
def test_quantized_matrices_agree_with_the_definition(version: int) -> None:
    cases = MATRICES + [
        _matmul((2, 3), (3, 4), (2,), (2,), (4,), (4,), scale=scale, kind=kind)
        for scale in (F, np.float16, ml_dtypes.bfloat16)
        for kind in (np.uint8, np.int8, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
    ]
    assert not disagreements(KERNELS, "QLinearMatMul", version, cases)


def _quantize(x: Any, scale: Any, zero: Any = None, **attributes: Any) -> Case:
    return (x, scale, *([] if zero is None else [zero])), attributes, 1


X, ONE, BYTES = np.ones((2, 3), F), np.ones((), F), np.zeros((2, 3), np.uint8)
CONVS = [
    ((1, 2), (3, 2), {}),
    ((1, 2, 5), (3, 2, 2, 2), {}),
    ((1, 2, 5), (3, 2, 2), {"group": 0}),
    ((1, 2, 5), (3, 1, 2), {}),
    ((1, 2, 5), (3, 1, 2), {"group": 2}),
    ((1, 2, 5), (3, 2, 2), {"kernel_shape": (3,)}),
    ((1, 2, 5), (3, 2, 2), {"strides": (1, 1)}),
    ((1, 2, 5), (3, 2, 2), {"dilations": (1, 1)}),
    ((1, 2, 5), (3, 2, 2), {"pads": (1,)}),
    ((1, 2, 5), (3, 2, 2), {"pads": (-1, 0)}),
    ((1, 2, 5), (3, 2, 2), {"pads": (0, 0), "auto_pad": "VALID"}),
    ((1, 2, 5), (3, 2, 2), {"auto_pad": "SAME"}),
    ((1, 2, 5), (3, 2, 2), {"strides": (0,)}),
    ((1, 2, 5), (3, 2, 2), {"dilations": (0,)}),
    ((1, 2, 5), (3, 2, 0), {}),
    ((1, 2, 5), (3, 2, 6), {}),
]


def _with(case: Case, position: int, shape: tuple[int, ...]) -> Case:
    inputs = list(case[0])
    inputs[position] = np.broadcast_to(inputs[position].reshape(-1)[:1], shape).copy()
    return tuple(inputs), case[1], 1


BROKEN: dict[str, list[Case]] = {
    "QuantizeLinear": [
        _quantize(X, np.ones(2, F)),
        _quantize(X, ONE, np.zeros(2, np.uint8)),
        _quantize(X, np.zeros((), F)),
        _quantize(X, ONE, block_size=-1),
        _quantize(X, ONE, np.zeros((), np.int8), output_dtype=2),
        _quantize(X, ONE, precision=2),
        _quantize(X, np.ones((), np.int32)),
        _quantize(X, ONE, output_dtype=99),
        _quantize(X, np.ones((1, 1), F)),
        _quantize(X, np.array([1, 0, 1], F)),
    ],
    "DequantizeLinear": [
        _quantize(BYTES, np.ones(2, F)),
        _quantize(BYTES, ONE, np.zeros(2, np.uint8)),
        _quantize(BYTES, ONE, block_size=-1),
        _quantize(BYTES.astype(np.int32), ONE, np.ones((), np.int32)),
    ],
    "DynamicQuantizeLinear": [((np.zeros((0, 2), F),), {}, 3)],
    "QLinearConv": [
        *(_conv(x, w, **a) for x, w, a in CONVS),
        *(_with(_conv((1, 2, 5), (3, 2, 2)), k, (2,)) for k in (1, 2, 4, 5, 6, 7)),
    ],
    "QLinearMatMul": [
        _matmul((), (3,)),
        _matmul((2, 3), (4, 2)),
        _matmul((2, 2, 3), (3, 3, 2)),
        _matmul((2, 3), (3, 4), (3,), (3,)),
        _matmul((2, 3), (3, 4), (), (), (3,), (3,)),
        _matmul((2, 3), (3, 4), (1,), (2,)),
        *(_with(MATRICES[0], k, (2,)) for k in (6, 7)),
        (
            (*MATRICES[0][0][:3], *_matmul((2, 3), (3, 4), kind=ml_dtypes.float8_e5m2)[0][3:6], *MATRICES[0][0][6:]),
            {},
            1,
        ),
    ],
}


@table(("op_type", "version"), every(KERNELS))
def test_each_requirement_is_demanded(op_type: str, version: int) -> None:
    assert not unbroken(op_type, version, BROKEN[op_type])
    assert not disagreements(KERNELS, op_type, version, BROKEN[op_type])


def test_a_scalar_between_two_integers_is_rounded_to_the_even_one() -> None:
    cases = [((np.array(x, F), np.array(1, F)), {}, 1) for x in (0.5, 1.5, 2.5, 3.5)]
    assert not disagreements(KERNELS, "QuantizeLinear", 13, cases)


def test_a_great_tensor_is_quantized_like_its_elements() -> None:
    x = np.linspace(-300, 300, 100_003, dtype=F)
    scale, zero = np.array(1.7, F), np.array(100, np.uint8)
    (found,) = computed(KERNELS, Application("QuantizeLinear", 13, (x, scale, zero), {}, (True,)))
    assert np.array_equal(found, np.clip(np.rint(x / scale).astype(np.float64) + 100, 0, 255).astype(np.uint8))
