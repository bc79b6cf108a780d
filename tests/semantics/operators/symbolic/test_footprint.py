"""What is outside of an element's footprint has no influence on it; what is inside is what the text reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from applications import applications, defined
from microsoft_cases import CASES, cases, name_of
from sampling import one_of_each
from sonnx.semantics.model.values import identical
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.operators.symbolic.footprint import Footprint, Index, footprint, footprints

LARGEST = 60
"""Applications with more elements in an input are left out."""
PLACES = 3
"""So many elements of each output are looked at."""


def drawn(op_type: str, version: int, count: int) -> Iterator[Application]:
    """Applications: of what onnxruntime adds those that are drawn for it."""
    own = op_type.rpartition("::")[2]
    if own not in CASES or name_of(own) != op_type:
        yield from applications(op_type, version, count)
        return
    for inputs, attributes, outputs in cases(own, 4 * count):
        yield Application(op_type, version, inputs, attributes, (True,) * outputs)


def small(op_type: str, version: int, count: int) -> Iterator[tuple[Application, Outputs]]:
    """Applications that are defined, with their outputs."""
    for application in drawn(op_type, version, count):
        if all(value is None or np.size(value) <= LARGEST for value in application.inputs):  # type: ignore[arg-type]
            found = ieee.apply(application)
            if isinstance(found, Outputs):
                yield application, found


def perturbed(application: Application, position: int, index: Index) -> Application:
    """The application with another value at one place of an input."""
    data: Any = np.array(application.inputs[position])
    item = data[index]
    if data.dtype == object:
        data[index] = item + b"'"
    elif data.dtype == np.bool_:
        data[index] = not item
    else:
        data[index] = (item.astype(np.float64) + 1).astype(data.dtype)
    inputs = (*application.inputs[:position], data, *application.inputs[position + 1 :])
    return replace(application, inputs=inputs)


def outside(application: Application, found: Footprint) -> Iterator[tuple[int, Index]]:
    for position, value in enumerate(application.inputs):
        if isinstance(value, np.ndarray):
            read = found.data.get(position, frozenset()) | found.control.get(position, frozenset())
            yield from ((position, index) for index in np.ndindex(*value.shape) if index not in read)


def places(shape: tuple[int, ...]) -> list[Index]:
    every = list(np.ndindex(*shape))
    return every if len(every) <= PLACES else [every[0], every[len(every) // 2], every[-1]]


def check(application: Application, outputs: Outputs) -> int:
    """How many perturbations were tried."""
    look = footprints(application)
    tried = 0
    for output, value in enumerate(outputs.values):
        if not isinstance(value, np.ndarray):
            continue
        for index in places(value.shape):
            for position, place in outside(application, look(output, index)):
                other = ieee.apply(perturbed(application, position, place))
                if not isinstance(other, Outputs):
                    continue
                after: Any = other.values[output]
                assert after.shape == value.shape, (application, position, place)
                same = identical(np.asarray(value[index]), np.asarray(after[index]))
                assert same, (application, output, index, position, place, value[index], after[index])
                tried += 1
    return tried


@pytest.mark.parametrize(("op_type", "version"), one_of_each(defined(), itemgetter(0), 50))
def test_nothing_outside_the_footprint_has_an_influence(op_type: str, version: int) -> None:
    for application, outputs in islice(small(op_type, version, 2), 3):
        check(application, outputs)


@pytest.mark.campaign
@pytest.mark.parametrize(("op_type", "version"), defined())
def test_nothing_outside_the_footprint_has_an_influence_in_many_settings(op_type: str, version: int) -> None:
    for application, outputs in small(op_type, version, 12):
        check(application, outputs)


def array(*shape: int) -> Any:
    return np.arange(1, 1 + int(np.prod(shape, dtype=int)), dtype=np.float32).reshape(shape)


def test_an_element_of_a_product_reads_a_row_and_a_column() -> None:
    found = footprint(Application("MatMul", 13, (array(2, 3), array(3, 5)), {}, (True,)), 0, (1, 4))
    assert found.data == {0: {(1, 0), (1, 1), (1, 2)}, 1: {(0, 4), (1, 4), (2, 4)}}
    assert not found.control


def test_a_convolution_reads_the_weights_that_meet_padding_and_no_data_there() -> None:
    application = Application("Conv", 11, (array(1, 1, 3, 3), array(1, 1, 2, 2)), {"pads": (1, 1, 0, 0)}, (True,))
    found = footprint(application, 0, (0, 0, 0, 0))
    assert found.data == {0: {(0, 0, 0, 0)}, 1: {(0, 0, i, j) for i in range(2) for j in range(2)}}


def test_the_losers_of_a_maximum_are_control() -> None:
    found = footprint(
        Application("MaxPool", 12, (array(1, 1, 4),), {"kernel_shape": (3,)}, (True, False)), 0, (0, 0, 1)
    )
    assert found.data == {0: {(0, 0, 3)}}
    assert found.control == {0: {(0, 0, 1), (0, 0, 2), (0, 0, 3)}}


def test_an_index_is_control_and_what_it_points_at_data() -> None:
    application = Application("Gather", 13, (array(3, 2), np.array([2, -3])), {}, (True,))
    found = footprint(application, 0, (1, 0))
    assert found.data == {0: {(0, 0)}}
    assert found.control == {1: {(1,)}}


def test_a_shape_is_control() -> None:
    application = Application("Reshape", 13, (array(2, 3), np.array([3, 2])), {}, (True,))
    found = footprint(application, 0, (2, 1))
    assert found.data == {0: {(1, 2)}}
    assert found.control == {1: {(0,), (1,)}}


def test_a_condition_is_control() -> None:
    found = footprint(Application("Relu", 14, (np.array([-1.0, 2.0], np.float32),), {}, (True,)), 0, (0,))
    assert found.data == {}
    assert found.control == {0: {(0,)}}
