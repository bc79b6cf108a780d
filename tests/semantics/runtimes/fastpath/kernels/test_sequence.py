"""Operators on sequences and optionals give the values of the definition, types included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastpath_cases import agrees, application, computed, stuck
from fastpath_values import provoking
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Optional, Sequence
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernel import KernelError
from sonnx.semantics.runtimes.fastpath.kernels import sequence
from tables import table

TABLE = sequence.KERNELS
FLOATS = ValueType("tensor", "float")
TYPES = ("float", "string", "bool", "int64", "complex64")


def items(element: str) -> tuple[Any, ...]:
    x = provoking(element, 12, 1)
    return x.reshape(3, 4), x[:0], x[:1].reshape(())


@pytest.mark.parametrize("element", TYPES)
def test_sequences_are_made_and_changed_at_each_position(element: str) -> None:
    held = items(element)
    for count in (1, 2, 3):
        agrees("SequenceConstruct", 11, *held[:count])
    whole, new = Sequence(ValueType("tensor", element), held), held[0][:1]
    agrees("SequenceLength", 11, whole)
    agrees("SequenceErase", 11, whole)
    agrees("SequenceInsert", 11, whole, new)
    for at in range(-3, 4):
        for position in (np.asarray(at, np.int64), np.array([at], np.int32)):
            agrees("SequenceInsert", 11, whole, new, position)
            if at < 3:
                agrees("SequenceAt", 11, whole, position)
                agrees("SequenceErase", 11, whole, position)


def test_empty_sequences_keep_the_type_that_is_stated() -> None:
    agrees("SequenceEmpty", 11)
    for code in (1, 7, 8, 9):
        agrees("SequenceEmpty", 11, dtype=code)
    shaped = ValueType("tensor", "float", (2, None))
    empty, x = Sequence(shaped, ()), np.ones(3, np.float32)
    agrees("SequenceLength", 11, empty)
    agrees("SequenceInsert", 11, empty, x)
    agrees("SequenceErase", 11, Sequence(shaped, (x,)))


@pytest.mark.parametrize("version", [15, 28])
def test_optionals_hold_a_value_or_nothing(version: int) -> None:
    x = np.ones(3, np.float32)
    for value in (x, Sequence(FLOATS, (x, x[:1])), Sequence(FLOATS, ())):
        agrees("Optional", version, value)
    for kind in (ValueType("tensor", "float", (2,)), ValueType("sequence", inner=FLOATS)):
        agrees("Optional", version, None, type=kind)
    whole, nothing = Optional(FLOATS, x), Optional(FLOATS, None)
    listed = Optional(ValueType("sequence", inner=FLOATS), Sequence(FLOATS, (x,)))
    for it in (whole, nothing, listed):
        agrees("OptionalHasElement", version, it)
    for it in (whole, listed):
        agrees("OptionalGetElement", version, it)
    if version >= 18:
        agrees("OptionalHasElement", version, None)
        agrees("OptionalHasElement", version, x)
        agrees("OptionalGetElement", version, x)
        agrees("OptionalGetElement", version, Sequence(FLOATS, ()))


def refusals() -> list[Application]:
    x = np.ones(3, np.float32)
    two, two_places = Sequence(FLOATS, (x, x)), np.zeros(2, np.int64)

    def at(place: int) -> Any:
        return np.asarray(place, np.int64)

    return [
        application("SequenceAt", 11, two, at(2)),
        application("SequenceAt", 11, two, at(-3)),
        application("SequenceAt", 11, two, two_places),
        application("SequenceErase", 11, two, at(2)),
        application("SequenceErase", 11, two, two_places),
        application("SequenceErase", 11, Sequence(FLOATS, ())),
        application("SequenceInsert", 11, two, x, at(3)),
        application("SequenceInsert", 11, two, x, at(-3)),
        application("SequenceInsert", 11, two, x, two_places),
        application("SequenceInsert", 11, two, x.astype(np.float64)),
        application("Optional", 15, None),
        application("OptionalGetElement", 15, Optional(FLOATS, None)),
        application("OptionalGetElement", 28, Optional(FLOATS, None)),
    ]


@table("given", [pytest.param(it, id=f"{it.op_type}-{k}") for k, it in enumerate(refusals())])
def test_what_the_definition_refuses_is_refused(given: Application) -> None:
    assert stuck(given)
    with pytest.raises(KernelError):
        computed(TABLE, given)
