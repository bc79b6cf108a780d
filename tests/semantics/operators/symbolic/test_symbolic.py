"""On small concrete shapes the smt interpretation gives what ieee computes, and is undefined where ieee is stuck."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, product
from operator import itemgetter
from typing import Any

import ml_cases
import numpy as np
import onnx
import pytest
from applications import applications, defined
from ml_cases import stated
from sampling import left, one_of_each
from sonnx.semantics.formulas.terms import TRUE, Term
from sonnx.semantics.model import schemas
from sonnx.semantics.model.elements import element_of
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.operators.compiled.elements.ieee import constant
from sonnx.semantics.operators.symbolic.elements.exact import Exact, Inexact
from sonnx.semantics.operators.symbolic.numbers import Real
from sonnx.semantics.operators.symbolic.statements import Applied, apply, definition, element_at, evaluate_term, tensors
from sonnx.semantics.operators.symbolic.values import Array, Element, Undefined, Value

ELEMENTS = 8
"""So many elements of each output are compared."""
MOST = 24
"""So many applications of each version are tried."""
LARGEST = 2_000
"""Applications with more input or output elements than this are left to the other interpretations."""


def small(op_type: str, version: int) -> Iterator[Application]:
    for application in islice(applications(op_type, version, count=6), MOST):
        if all(value is None or np.size(value) <= LARGEST for value in application.inputs) and typed(application):
            yield application


def typed(application: Application) -> bool:
    """Whether the schema admits the element types of the inputs: those that it does not ieee refuses or not."""
    schema = schemas.schema("", application.op_type, application.version)
    assert schema is not None
    last = len(schema.inputs) - 1
    return all(
        value is None or f"tensor({element_of(value.dtype)})" in schema.inputs[min(position, last)].types  # type: ignore[union-attr]
        for position, value in enumerate(application.inputs)
    )


def exactly(value: Value) -> int | Fraction:
    """The number that an element or exact value is."""
    found = value.value if isinstance(value, Element) else value
    if isinstance(found, Term):
        return int(found == TRUE)
    if isinstance(found, float):
        raise Inexact("an infinity")
    assert isinstance(found, int | Fraction)
    return found


def indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Elements spread over a shape."""
    every = list(np.ndindex(*shape))
    return every if len(every) <= ELEMENTS else every[:: len(every) // ELEMENTS]


def applied(application: Application) -> Applied:
    return apply(application, Exact(tensors(application, definition(application.op_type, application.version))))


def agree(application: Application) -> int:
    """How many elements were compared."""
    found = ieee.apply(application)
    try:
        expected = applied(application)
    except Undefined:
        assert isinstance(found, Stuck), found
        return 1
    except Inexact:
        return 0
    if isinstance(found, Stuck):
        if found.premise not in {it.doc for it in definition(application.op_type, application.version).statements}:
            return 0  # the schema does not admit a type; the text over open sizes does not speak of it
        with pytest.raises((Undefined, Inexact)):
            everything(expected)
        return 1
    return sum(compared(expected, found, position) for position in range(len(found.values)))


def everything(found: Applied) -> None:
    for position, output in enumerate(found.outputs):
        for index in np.ndindex(*sizes(output)):
            element_at(found, position, index)


def sizes(output: Array | None) -> tuple[int, ...]:
    assert output is not None
    assert all(isinstance(size, int) for size in output.shape)
    return output.shape  # type: ignore[return-value]


def compared(expected: Applied, found: Outputs, position: int) -> int:
    value: Any = found.values[position]
    if not isinstance(value, np.ndarray) or value.dtype == object or value.dtype.kind == "c":
        return 0
    assert value.shape == sizes(expected.outputs[position])
    free = found.free[position] if found.free else None
    count = 0
    for index in indices(value.shape):
        if free is not None and free[index]:
            continue
        try:
            number = exactly(element_at(expected, position, index))
        except Inexact:
            continue
        nearest: Any = constant(value.dtype, number)
        exact = nearest[()] if value.dtype.kind in "biu" else Fraction(float(nearest.astype(np.float64)))
        if exact == number:
            assert value[index] == nearest[()], (application_text(found), index, value[index], number)
            count += 1
    return count


def application_text(found: Outputs) -> str:
    return str([None if v is None else np.shape(v) for v in found.values])  # type: ignore[arg-type]


LONG = frozenset({"TfIdfVectorizer"})
"""Operators that take seconds for each case: left to the campaign."""


def tried() -> list[Any]:
    """A version of each of some operators, the others for the campaign."""
    quick = one_of_each((it for it in defined() if it[0] not in LONG), itemgetter(0), 50)
    return [*quick, *(left(it) for it in defined() if it[0] in LONG)]


@pytest.mark.parametrize(("op_type", "version"), tried())
def test_the_smt_interpretation_is_ieee_on_exact_data(op_type: str, version: int) -> None:
    count = sum(agree(application) for application in small(op_type, version))
    assert count > 0 or op_type in INEXACT or not any(True for _ in small(op_type, version))


INEXACT = frozenset({
    "AffineGrid", "Attention", "BatchNormalization", "BitCast", "BlackmanWindow", "GroupNormalization",
    "HammingWindow", "HannWindow", "InstanceNormalization", "LRN", "LSTM", "LinearAttention", "LogSoftmax",
    "LpPool", "MeanVarianceNormalization", "RMSNormalization", "ReduceLogSumExp", "RegexFullMatch", "Sigmoid",
    "Softmax", "SoftmaxCrossEntropyLoss", "Softplus", "SplitToSequence", "StringConcat",
    "StringNormalizer", "StringSplit", "Tanh",
})  # fmt: skip
"""Operators that take exponentials, logarithms or roots of whatever they are given, or divide it by a size; and those
on strings, which are no numbers, on the bits of a number, or with a sequence as result, which is not compared here."""


def test_elements_may_be_symbols() -> None:
    a, b = np.array([[1, 2], [3, 4]]), np.array([[5], [-6]])
    application = Application("MatMul", 13, (a, b), {}, (True,))
    found = element_at(apply(application, Exact({})), 0, (1, 0))
    assert isinstance(found, Element)
    assert isinstance(found.value, Term)
    symbols = {f"A.{i}.{j}": int(a[i, j]) for i in range(2) for j in range(2)} | {"B.0.0": 5, "B.1.0": -6}
    assert evaluate_term(found.value, symbols) == (a @ b)[1, 0]


@pytest.mark.parametrize("number", [-3, 0, 4])
def test_a_condition_on_a_symbol_becomes_an_alternative(number: int) -> None:
    application = Application("Relu", 14, (np.array([number]),), {}, (True,))
    found = element_at(apply(application, Exact({})), 0, (0,))
    assert isinstance(found, Element)
    assert isinstance(found.value, Term | Real)
    term = found.value.term if isinstance(found.value, Real) else found.value
    assert evaluate_term(term, {"X.0": number}) == max(number, 0)


# ---- Definitions whose definedness is not proved for all shapes ---------------------------------

MODES = ("nearest", "linear", "cubic")
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")
SCALES = (0.5, 1.0, 1.5, 2.0)
SIZES = ((), (1,), (2,), (3,), (1, 2), (2, 3))


def resizes(version: int) -> Iterator[Application]:
    """Every mode at every small shape, by scales and by sizes."""
    for shape, mode, coordinates in product(SIZES, MODES, COORDINATES):
        x = np.ones(shape, np.float32)
        roi = np.array([0.25] * len(shape) + [1.0] * len(shape), np.float32)
        attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
        for scale in SCALES:
            scales = np.array([scale] * len(shape), np.float32)
            yield Application("Resize", version, (x, roi, scales), attributes, (True,))
            wanted = np.array([max(1, int(scale * size)) for size in shape], np.int64)
            yield Application("Resize", version, (x, roi, np.zeros(0, np.float32), wanted), attributes, (True,))


def is_defined(application: Application) -> bool:
    """Whether the requirements hold; asserts that then every element has a value."""
    try:
        everything(applied(application))
    except Undefined as problem:
        assert problem.kind == "require", (application, str(problem))
        return False
    except Inexact:
        pass
    return True


@pytest.mark.campaign
@pytest.mark.parametrize("version", [11, 13, 18, 19])
def test_resize_is_defined_at_every_small_shape(version: int) -> None:
    assert sum(is_defined(application) for application in resizes(version)) > 100


@pytest.mark.parametrize("version", [11, 13, 18, 19])
def test_resize_is_defined_at_some_small_shapes(version: int) -> None:
    assert sum(is_defined(application) for application in islice(resizes(version), 3, None, 37)) > 5


MODELS = {**ml_cases.TREES, ("SVMClassifier", 1): ml_cases.support_classifier}
"""Definitions of ai.onnx.ml of which the prover shows nothing."""


def models(name: str, version: int, seeds: range) -> Iterator[Application]:
    """Models of every kind, with few rows."""
    outputs = (True,) * len(onnx.defs.get_schema(name, version, "ai.onnx.ml").outputs)
    for seed in seeds:
        inputs, attributes = MODELS[name, version](np.random.default_rng(seed))
        yield Application(f"ai.onnx.ml::{name}", version, tuple(inputs), stated(attributes), outputs)


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "version"), sorted(MODELS))
def test_models_are_defined_at_every_small_shape(name: str, version: int) -> None:
    assert all(is_defined(application) for application in models(name, version, range(200)))


@pytest.mark.parametrize(("name", "version"), sorted(MODELS))
def test_models_are_defined_at_some_small_shapes(name: str, version: int) -> None:
    assert all(is_defined(application) for application in models(name, version, range(8)))
