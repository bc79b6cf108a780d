"""Elementwise kernels give the bits of the definition, whatever the values, the element type and the version."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from fastpath_cases import agreement, chosen, computed, defaults, same, stuck
from fastpath_values import admitted, provoking, widest
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.operators.application import Application
from sonnx.semantics.operators.compiled.ieee import apply
from sonnx.semantics.runtimes.fastpath import functions
from sonnx.semantics.runtimes.fastpath.kernel import KernelError, Site
from sonnx.semantics.runtimes.fastpath.kernels import activation, comparison, elementwise
from tables import table

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


@table("op_type", UNARY)
def test_functions_of_one_tensor_agree_on_provoking_values_of_each_type(op_type: str) -> None:
    for version in widest(op_type):
        for element in admitted(op_type, version, 0):
            x = provoking(element, 300, version)
            for attributes in ({}, *ATTRIBUTES.get(op_type, ())):
                agrees(op_type, version, x, **attributes)
            agrees(op_type, version, x[:6].reshape(2, 3, 1).transpose())
            agrees(op_type, version, x[:0].reshape(0, 3))
            agrees(op_type, version, x[:1].reshape(()))


@table("op_type", BINARY)
def test_functions_of_two_tensors_agree_on_provoking_values_of_each_type(op_type: str) -> None:
    for version in widest(op_type):
        for element in admitted(op_type, version, 0):
            a, b = provoking(element, 60, 1), provoking(element, 60, 2)
            agrees(op_type, version, a.reshape(60, 1), b)
            agrees(op_type, version, a, b[:1].reshape(()))
            agrees(op_type, version, a[:6].reshape(2, 3).T, b[:6].reshape(3, 1, 2))
            agrees(op_type, version, a[:0].reshape(0, 1), b)


@pytest.mark.parametrize("op_type", ["Div", "Mod", "Pow"])
def test_quotients_remainders_and_powers_agree_on_provoking_values_of_each_type(op_type: str) -> None:
    for version in widest(op_type):
        for element in admitted(op_type, version, 0):
            a, b = provoking(element, 80, 3).reshape(80, 1), provoking(element, 40, 4)
            if element.startswith(("int", "uint")):
                b = b[b >= 2] if op_type == "Pow" else b[(b != 0) & (b != np.asarray(-1).astype(b.dtype))]
            if op_type != "Mod":
                agrees(op_type, version, a, b)
                agrees(op_type, version, b, b[:1].reshape(()))
                continue
            for fmod in (0, 1):
                agrees(op_type, version, a, b, fmod=fmod)


def test_powers_agree_for_each_pair_of_types() -> None:
    for base in admitted("Pow", 15, 0):
        for exponent in admitted("Pow", 15, 1):
            y = provoking(exponent, 30, 5)
            y = y[y >= 0] if exponent.startswith(("int", "uint")) else y
            agrees("Pow", 15, provoking(base, 30, 6).reshape(30, 1), y)
            agrees("Pow", 15, provoking(base, 300, 6), np.asarray(2).astype(DTYPES[exponent]))


@pytest.mark.parametrize("op_type", SEVERAL)
def test_folds_over_several_tensors_agree_on_provoking_values_of_each_type(op_type: str) -> None:
    for version in widest(op_type):
        for element in admitted(op_type, version, 0):
            parts = [provoking(element, 60, seed) for seed in range(4)]
            agrees(op_type, version, *parts)
            agrees(op_type, version, parts[0])
            if version >= 8:
                agrees(op_type, version, parts[0].reshape(60, 1), parts[1], parts[2][:1], parts[3][:1].reshape(()))


def test_where_takes_elements_of_each_type_as_they_are() -> None:
    for element in admitted("Where", 16, 1):
        x, y = provoking(element, 24, 1).reshape(4, 6), provoking(element, 6, 2)
        agrees("Where", 16, provoking("bool", 4, 3).reshape(4, 1), x, y)
        agrees("Where", 16, provoking("bool", 24, 4).reshape(1, 4, 6), y[:1].reshape(()), x)


def test_clip_and_prelu_agree_on_provoking_values_of_each_type() -> None:
    for element in admitted("Clip", 13, 0):
        x = provoking(element, 300, 7)
        bounds = [None, *(v.reshape(()) for v in np.split(provoking(element, 8, 8), 8)), np.zeros((), x.dtype)]
        for low, high in zip(bounds, reversed(bounds), strict=True):
            agrees("Clip", 13, x, low, high)
        agrees("Clip", 13, x)
    for element in admitted("Clip", 6, 0):
        x = provoking(element, 300, 7)
        for ends in (
            {},
            {"min": 0.0, "max": 6.0},
            {"min": -0.0},
            {"max": -3.3},
            {"min": math.nan, "max": math.inf},
            {"min": 1e30, "max": -1e30},
        ):
            agrees("Clip", 6, x, **ends)
    for element in admitted("PRelu", 16, 0):
        x = provoking(element, 60, 9).reshape(3, 4, 5)
        usual = np.array([[1.0], [0.25], [0.1], [1e-3]]).astype(x.dtype)
        for slope in (provoking(element, 60, 1).reshape(3, 4, 5), provoking(element, 4, 2).reshape(4, 1), usual):
            agrees("PRelu", 16, x, slope)


# ---- memory -----------------------------------------------------------------------------------


def in_place(given: Application, position: int, together: bool = False) -> Any:
    """What the kernel gives in the memory of the input at a position; together: all inputs are that memory."""
    memory = np.array(given.inputs[position])
    inputs = [memory if k == position or together else x for k, x in enumerate(given.inputs)]
    stated = {**defaults(given.op_type, given.version), **given.attributes}
    present = tuple(x is not None for x in inputs)
    site = Site(given.op_type, given.version, stated, (None,) * len(inputs), present, given.outputs)
    asked = []

    def allocate(shape: tuple[int, ...], dtype: Any) -> Any:
        assert (shape, dtype) == (memory.shape, memory.dtype)
        asked.append(shape)
        return memory

    with np.errstate(all="ignore"):
        (found,) = chosen(TABLE, given).prepare(site)(inputs, allocate)
    assert found is memory
    assert len(asked) == 1, "memory is asked for the output alone"
    return found


@table("op_type", sorted(name for name in TABLE if TABLE[name][0].in_place))
def test_the_output_may_be_the_memory_of_each_input(op_type: str) -> None:
    """Also across blocks, and where all inputs are one tensor."""
    version = widest(op_type)[-1]
    logical = "float" not in admitted(op_type, version, 0)
    element = "bool" if logical or op_type == "Equal" else "float"
    if op_type in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        return  # the output has another type than the inputs
    count = 3 if op_type in SEVERAL else 2 if op_type in (*BINARY, "Div", "Mod", "Pow", "PRelu") else 1
    size = 2 * functions.BLOCK + 5
    x = [provoking(element, size, seed) for seed in range(count)]
    attributes = {"fmod": 1} if op_type == "Mod" else {}
    given = application(op_type, version, *x, **attributes)
    for position in range(count):
        expected = apply(given)
        found = in_place(given, position)
        assert same(found, expected.values[0], expected.free[0] if expected.free else None)  # type: ignore[union-attr]
        once = application(op_type, version, *(x[position],) * count, **attributes)
        expected = apply(once)
        found = in_place(once, position, together=True)
        assert same(found, expected.values[0], expected.free[0] if expected.free else None)  # type: ignore[union-attr]


def test_in_the_middle_of_a_matrix_and_backwards_functions_are_the_same() -> None:
    """Views with other strides than a contiguous tensor, longer than a block."""
    x = provoking("float", 400 * 120, 3).reshape(400, 120)
    for op_type in ("Relu", "Sigmoid", "HardSwish", "Gelu", "Erf", "Exp", "Clip"):
        version = widest(op_type)[-1]
        for view in (x.T, x[::-1, ::2], x[:, 3:4]):
            agrees(op_type, version, view)


# ---- limits and erf ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", [-1, 0, 1])
def test_limits_keep_the_sign_of_zeros_whatever_the_processor_does(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the order does not fit the processor, it is given up; -1 never relies on it."""
    if order != -1:
        order = functions._order(np.maximum, np.dtype(np.float32))
    monkeypatch.setattr(functions, "_order", lambda *_: order)
    x = np.array([0.0, -0.0, np.nan, -1.0, 1.0] * 20, np.float32)
    for bound in (0.0, -0.0):
        out = np.empty_like(x)
        functions.at_least(x, np.asarray(bound, np.float32), out)
        assert same(out, np.where(x < 0, np.float32(bound), x))
        functions.at_most(x, np.asarray(bound, np.float32), out)
        assert same(out, np.where(x > 0, np.float32(bound), x))


@table("size", [1, 511, 512, functions.BLOCK, functions.BLOCK + 1, 3 * functions.BLOCK - 7])
def test_limits_are_the_same_at_each_length(size: int) -> None:
    for element in ("float", "double", "float16", "bfloat16", "int32", "uint8"):
        x = provoking(element, size, 1)
        agrees("Clip", 13, x, np.asarray(1).astype(x.dtype), np.asarray(100).astype(x.dtype))
        if not element.startswith("uint"):
            agrees("Relu", 14, x)
            agrees("Relu", 14, x[::-1])


def test_a_choice_takes_each_bit_as_it_is() -> None:
    for element in DTYPES:
        a, b, mask = provoking(element, 50, 1), provoking(element, 50, 2), provoking("bool", 50, 3)
        expected = np.where(mask, a, b)
        for out in (np.empty_like(a), a.copy(), b.copy()):
            functions.select(mask, out if same(out, a) else a, out if same(out, b) else b, out)
            assert same(out, expected), element


def test_erf_of_doubles_is_within_three_units_of_the_last_place_of_the_library() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-7, 7, 20000), rng.normal(size=20000) * 0.01, 10.0 ** rng.uniform(-300, 1, 5000)])
    expected = np.array([math.erf(v) for v in x.tolist()])
    assert np.max(np.abs(functions._erf_of(x) - expected) / np.spacing(np.abs(expected))) <= 3


# ---- refusals ---------------------------------------------------------------------------------


def refusals() -> dict[str, Application]:
    f, i = np.ones(3, np.float32), np.array([1, 2, 3], np.int32)
    two, low = np.ones(2, np.float32), np.array([-(2**31), 1, 1], np.int32)
    return {
        **{f"{name} shapes": application(name, widest(name)[-1], f, two) for name in ("Add", "Sub", "Mul", "Div")},
        **{f"{name} shapes": application(name, widest(name)[-1], f, two) for name in ("Equal", "Less", "Pow", "PRelu")},
        **{f"{name} shapes": application(name, 13, f, two) for name in SEVERAL},
        **{f"{name} one shape": application(name, 6, f, f[:1]) for name in SEVERAL},
        "And shapes": application("And", 7, f > 0, two > 0),
        "Where shapes": application("Where", 16, two > 0, f, f),
        "Div by 0": application("Div", 14, i, i * 0),
        "Div of the least": application("Div", 14, low, i * 0 - 1),
        "Mod by 0": application("Mod", 13, i, i * 0),
        "Mod shapes": application("Mod", 13, i, i[:2]),
        "Mod of floats": application("Mod", 13, f, f, fmod=0),
        "fmod 2": application("Mod", 13, i, i, fmod=2),
        "Pow of integers": application("Pow", 15, i, -i),
        "Clip min": application("Clip", 13, f, two),
        "Clip max": application("Clip", 13, f, None, two),
        "PRelu rank": application("PRelu", 16, f, np.ones((1, 3), np.float32)),
        "Gelu": application("Gelu", 20, f, approximate="some"),
    }


@table("name", sorted(refusals()))
def test_what_the_definition_refuses_is_refused(name: str) -> None:
    given = refusals()[name]
    assert stuck(given)
    with pytest.raises(KernelError):
        computed(TABLE, given)


# ---- exact data, and the wheel ----------------------------------------------------------------
