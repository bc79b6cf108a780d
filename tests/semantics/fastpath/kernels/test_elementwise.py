"""Elementwise kernels give the bits of the definition, whatever the values, the element type and the version."""

from __future__ import annotations

from typing import Any

import pytest
from applications import applications
from fastpath_cases import agreement, uncovered, wheel_failures
from fastpath_values import admitted, others, provoking, widest
from sonnx.semantics.application import Application
from sonnx.semantics.fastpath.kernels import activation, comparison, elementwise

TABLE = {**elementwise.KERNELS, **activation.KERNELS, **comparison.KERNELS}
SEVERAL = ("Max", "Min", "Sum", "Mean")
UNARY = sorted(
    name
    for name in TABLE
    if name not in SEVERAL
    and name in {*elementwise.KERNELS, *activation.KERNELS, "Not"}
    and name not in ("Add", "Sub", "Mul", "Div", "Mod", "Pow", "PRelu", "Clip")
)
BINARY = ("Add", "Sub", "Mul", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor")
ATTRIBUTES: dict[str, tuple[dict[str, Any], ...]] = {
    "LeakyRelu": ({"alpha": 0.1}, {"alpha": 1.0}, {"alpha": 0.0}, {"alpha": -2.0}, {"alpha": 3.0}),
    "Elu": ({"alpha": 0.3}, {"alpha": -1.0}),
    "Selu": ({"alpha": 0.3, "gamma": -1.5},),
    "ThresholdedRelu": ({"alpha": 0.1}, {"alpha": -2.0}),
    "HardSigmoid": ({"alpha": 0.3, "beta": -0.1}, {"alpha": -1.0, "beta": 0.0}),
    "Gelu": ({"approximate": "tanh"}, {"approximate": "none"}),
}


def application(op_type: str, version: int, *inputs: Any, **attributes: Any) -> Application:
    return Application(op_type, version, inputs, attributes, (True,))


def agrees(*given: Any, **attributes: Any) -> None:
    assert not (reason := agreement(TABLE, application(*given, **attributes))), reason


def test_every_version_has_a_kernel() -> None:
    assert not uncovered(TABLE)


@pytest.mark.parametrize("op_type", UNARY)
def test_functions_of_one_tensor_agree_on_provoking_values_of_each_type(op_type: str) -> None:
    for version in widest(op_type):
        for element in admitted(op_type, version, 0):
            x = provoking(element, 300, version)
            for attributes in ({}, *ATTRIBUTES.get(op_type, ())):
                agrees(op_type, version, x, **attributes)
            agrees(op_type, version, x[:6].reshape(2, 3, 1).transpose())
            agrees(op_type, version, x[:0].reshape(0, 3))
            agrees(op_type, version, x[:1].reshape(()))


@pytest.mark.parametrize("op_type", BINARY)
def test_functions_of_two_tensors_agree_on_provoking_values_of_each_type(op_type: str) -> None:
    for version in widest(op_type):
        for element in admitted(op_type, version, 0):
            a, b = provoking(element, 60, 1), provoking(element, 60, 2)
            agrees(op_type, version, a.reshape(60, 1), b)
            agrees(op_type, version, a, b[:1].reshape(()))
            agrees(op_type, version, a[:6].reshape(2, 3).T, b[:6].reshape(3, 1, 2))
            agrees(op_type, version, a[:0].reshape(0, 1), b)


@pytest.mark.parametrize("op_type", sorted(TABLE))
def test_kernels_agree_on_exact_data_in_every_version(op_type: str) -> None:
    for version in (*widest(op_type), *others(op_type)):
        for given in applications(op_type, version, 6):
            assert not (reason := agreement(TABLE, given)), (given, reason)


@pytest.mark.parametrize("op_type", sorted(TABLE))
def test_kernels_pass_the_tests_of_the_wheel(op_type: str) -> None:
    assert not list(wheel_failures(TABLE, op_type))
