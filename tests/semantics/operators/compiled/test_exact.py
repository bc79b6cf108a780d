"""The exact and the ieee interpretation agree wherever nothing is rounded; the exact one is partial, not wrong."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from applications import applications, defined
from sampling import one_of_each
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.model.values import Sequence
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled import exact, ieee
from sonnx.semantics.operators.compiled.elements.exact import EXACT
from sonnx.semantics.operators.compiled.elements.ieee import Operation, constant
from sonnx.semantics.operators.compiled.ieee import interpreter
from sonnx.semantics.operators.reading import OF_STRINGS
from sonnx.spec.elaborate.coverage import local_functions
from sonnx.spec.language.syntax import Expr, Statement
from sonnx.spec.library import specification


def _representable(operation: Operation, dtype: Any) -> Operation:
    """The operation, Unsupported where a result is no value of the element type."""
    if dtype == np.dtype(bool):
        return operation

    def checked(*arrays: Any) -> Any:
        found = np.asarray(operation(*arrays))
        if found.dtype == object:
            for value in found.reshape(-1):
                if value in (np.inf, -np.inf):
                    continue
                nearest = constant(dtype, value)
                if Fraction(nearest.astype(np.float64).item() if dtype.kind not in "iu" else nearest.item()) != value:
                    raise Unsupported("a value that is rounded")
        return found

    return checked


STRICT = interpreter(
    replace(
        EXACT,
        operation=lambda name, dtype: _representable(EXACT.operation(name, dtype), dtype),
        cast=lambda source, target: _representable(EXACT.cast(source, target), target),
        integers_to=lambda target: _representable(EXACT.integers_to(target), target),
        rationals_to=lambda target: _representable(EXACT.rationals_to(target), target),
        quotients_to=lambda target: lambda values, den: _representable(EXACT.quotients_to(target), target)(values, den),
    )
)
"""The exact interpretation on exact data: partial where a value, also one in between, would be rounded."""


def agree(application: Application) -> int:
    """How many elements were compared; asserts that both interpretations give the same, where nothing is rounded."""
    found = ieee.apply(application)
    try:
        expected = STRICT(application)
    except (Unsupported, OverflowError):
        return 0
    if isinstance(found, Stuck) or isinstance(expected, Stuck):
        assert isinstance(found, Stuck)
        assert isinstance(expected, Stuck)
        assert (found.rule, found.premise) == (expected.rule, expected.premise)
        return 0
    compared = 0
    free = found.free or (None,) * len(found.values)
    for value, other, open_ in zip(found.values, expected.values, free, strict=True):
        compared += _equal(value, other, open_)
    return compared


def _equal(value: Any, other: Any, free: Any) -> int:
    if isinstance(value, Sequence):
        return sum(_equal(item, part, None) for item, part in zip(value.items, other.items, strict=True))
    assert isinstance(value, np.ndarray)
    assert isinstance(other, np.ndarray)
    assert value.shape == other.shape
    if value.dtype in (np.dtype(object), np.dtype(bool)):
        assert (value == other).all()
        return int(value.size)
    for index in np.ndindex(value.shape):
        if free is None or not free[index]:
            assert value[index] == constant(value.dtype, other[index])[()], (index, value[index], other[index])
    return int(value.size)


@pytest.mark.parametrize(("op_type", "version"), one_of_each(defined(), itemgetter(0), 50))
def test_ieee_is_exact_on_exact_data(op_type: str, version: int) -> None:
    drawn = list(applications(op_type, version))
    compared = sum(agree(application) for application in drawn)
    assert compared > 0 or rounds(op_type, version) or op_type in QUOTIENTS or not drawn


QUOTIENTS = frozenset({"AffineGrid", "NonMaxSuppression"})
"""Operators of which each value rests on a quotient, which few data make exact."""
ROUNDED = frozenset(
    {"exp", "log", "sqrt", "power", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf"} | OF_STRINGS.keys()
)
"""Functions whose value is rounded but at a few arguments; and those of strings, which are no exact numbers."""


def rounds(op_type: str, version: int) -> bool:
    """Whether the text of an operator, or of one that it applies, takes a function that is rounded."""
    (definition,) = (d for d in specification().operators[op_type] if d.first <= version <= d.last)
    local = frozenset(local_functions(definition))
    parts = (part for statement in definition.statements for part in (statement.expr, *_views(statement)))
    return any(_rounds(part, local) for part in parts)


def _views(statement: Statement) -> list[Expr]:
    return [inner.expr for inner in statement.body]


def _rounds(expr: Expr, local: frozenset[str] = frozenset()) -> bool:
    if expr.head == "apply" and rounds(str(expr.args[0]), int(str(expr.args[1]))):
        return True
    if expr.head == "call":
        name = str(expr.args[0])
        known = name in specification().functions and name not in local
        body = specification().functions[name].body if known else None
        if name in ROUNDED or (body is not None and _rounds(body)):
            return True
    return any(_rounds(child, local) for child in expr.children())


def test_the_exact_value_of_a_third_is_a_third() -> None:
    one, three = np.array(1, np.float32), np.array(3, np.float32)
    found = exact.apply(Application("Div", 14, (one, three), {}, (True,)))
    assert isinstance(found, Outputs)
    assert found.values[0] == Fraction(1, 3)


def test_what_has_no_exact_value_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="no exact value"):
        exact.apply(Application("Tanh", 13, (np.array(1, np.float32),), {}, (True,)))
    with pytest.raises(Unsupported, match="infinity"):
        exact.apply(Application("Relu", 14, (np.array(np.inf, np.float32),), {}, (True,)))


def test_attributes_enter_as_the_exact_value_of_their_float() -> None:
    a = np.ones((1, 1), np.float32)
    alpha = float(np.float32(0.1))
    found = exact.apply(Application("Gemm", 13, (a, a), {"alpha": alpha}, (True,)))
    assert isinstance(found, Outputs)
    assert found.values[0] == Fraction(alpha)
