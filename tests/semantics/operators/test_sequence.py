from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Optional, Sequence, identical
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled.ieee import apply

F, I64 = np.float32, np.int64
Run = Callable[..., Any]
TENSOR = ValueType("tensor", "float")
PARTS = (np.ones((2, 3), F), np.zeros((0,), F), np.array(5, F))


def _sequence(*items: Any) -> Sequence:
    return Sequence(TENSOR, items)


def _at(k: int, dtype: Any = I64) -> Any:
    return np.array(k, dtype)


def test_a_sequence_holds_the_inputs_in_their_order(run: Run) -> None:
    assert identical(run("SequenceConstruct", 11, *PARTS), _sequence(*PARTS))


def test_the_tensors_of_a_sequence_have_one_type(refused: Run) -> None:
    assert "T" in refused("SequenceConstruct", 11, np.ones(1, F), np.ones(1, np.float64))
    assert "has the type" in refused("SequenceInsert", 11, _sequence(*PARTS), np.ones(1, np.float64))
    assert "has the type" in refused("SequenceInsert", 11, _sequence(), np.ones(1, np.float64))


def test_an_empty_sequence_knows_its_type(run: Run) -> None:
    assert identical(run("SequenceEmpty", 11), _sequence())
    assert identical(run("SequenceEmpty", 11, dtype=7), Sequence(ValueType("tensor", "int64"), ()))


@pytest.mark.parametrize("dtype", [I64, np.int32])
def test_positions_count_from_both_ends(dtype: Any, run: Run, refused: Run) -> None:
    for k in range(-3, 3):
        assert identical(run("SequenceAt", 11, _sequence(*PARTS), _at(k, dtype)), PARTS[k])
        rest = list(PARTS)
        del rest[k]
        assert identical(run("SequenceErase", 11, _sequence(*PARTS), _at(k, dtype)), _sequence(*rest))
    for k in (-4, 3):
        assert "position" in refused("SequenceAt", 11, _sequence(*PARTS), _at(k, dtype))
        assert "position" in refused("SequenceErase", 11, _sequence(*PARTS), _at(k, dtype))


def test_a_tensor_is_inserted_before_a_position(run: Run, refused: Run) -> None:
    new = np.full(2, 7, F)
    for k in range(-3, 4):
        items = list(PARTS)
        items.insert(k, new)
        assert identical(run("SequenceInsert", 11, _sequence(*PARTS), new, _at(k)), _sequence(*items))
    assert identical(run("SequenceInsert", 11, _sequence(), new), _sequence(new))
    assert identical(run("SequenceInsert", 11, _sequence(*PARTS), new), _sequence(*PARTS, new))
    for k in (-4, 4):
        assert "position" in refused("SequenceInsert", 11, _sequence(*PARTS), new, _at(k))


def test_the_last_tensor_is_erased_where_no_position_is_given(run: Run, refused: Run) -> None:
    assert identical(run("SequenceErase", 11, _sequence(*PARTS)), _sequence(*PARTS[:2]))
    assert "position" in refused("SequenceErase", 11, _sequence())


def test_a_position_is_one_number(run: Run, refused: Run) -> None:
    assert identical(run("SequenceAt", 11, _sequence(*PARTS), np.array([1])), PARTS[1])
    assert "scalar" in refused("SequenceAt", 11, _sequence(*PARTS), np.array([1, 1]))


def test_the_length_is_the_number_of_tensors(run: Run) -> None:
    assert identical(run("SequenceLength", 11, _sequence(*PARTS)), np.array(3, I64))
    assert identical(run("SequenceLength", 11, _sequence()), np.array(0, I64))


def test_one_plan_serves_positions_and_data_that_differ(run: Run) -> None:
    for seed in range(3):
        items = [np.random.default_rng(seed).normal(size=2).astype(F) for _ in range(3)]
        for k in range(3):
            assert identical(run("SequenceAt", 11, _sequence(*items), _at(k)), items[k])


@pytest.mark.parametrize("version", [11, 24])
def test_a_tensor_is_split_into_a_sequence(version: int, run: Run, refused: Run) -> None:
    x = np.arange(12, dtype=F).reshape(3, 4)
    for axis in (-2, -1, 0, 1):
        pieces = np.split(x, x.shape[axis], axis)
        assert identical(run("SplitToSequence", version, x, axis=axis), _sequence(*pieces))
        narrow = [np.squeeze(piece, axis) for piece in pieces]
        assert identical(run("SplitToSequence", version, x, axis=axis, keepdims=0), _sequence(*narrow))
    three = _sequence(x[:, :3], x[:, 3:])
    for keepdims in (0, 1):  # ignored beside split
        assert identical(run("SplitToSequence", version, x, _at(3), axis=1, keepdims=keepdims), three)
    parts = run("SplitToSequence", version, x, np.array([1, 0, 3], np.int32), axis=-1)
    assert identical(parts, _sequence(x[:, :1], x[:, 1:1], x[:, 1:]))
    assert identical(run("SplitToSequence", version, x[:0]), _sequence())
    assert identical(run("SplitToSequence", version, x[:0], _at(2)), _sequence())
    words = np.array([b"a", b"b"], dtype=object)
    assert [item.tolist() for item in run("SplitToSequence", version, words).items] == [[b"a"], [b"b"]]
    assert "is positive" in refused("SplitToSequence", version, x, _at(0))
    assert "not negative" in refused("SplitToSequence", version, x, _at([4, -1]))
    assert "add up" in refused("SplitToSequence", version, x, _at([1, 1]))
    assert "add up" in refused("SplitToSequence", version, x, np.zeros(0, I64))
    assert "scalar or a vector" in refused("SplitToSequence", version, x, _at([[3]]))
    assert "no scalar" in refused("SplitToSequence", version, np.array(1, F))


def test_a_sequence_is_put_together(run: Run, refused: Run) -> None:
    x = np.arange(12, dtype=F).reshape(3, 4)
    for axis in (-2, -1, 0, 1):
        items = (x, x.take([0, 1], axis), x.take([], axis))
        assert identical(run("ConcatFromSequence", 11, _sequence(*items), axis=axis), np.concatenate(items, axis))
    for axis in range(-3, 3):
        found = run("ConcatFromSequence", 11, _sequence(x, x + 1), axis=axis, new_axis=1)
        assert identical(found, np.stack([x, x + 1], axis))
    scalars = _sequence(np.array(1, F), np.array(2, F))
    assert identical(run("ConcatFromSequence", 11, scalars, axis=0, new_axis=1), np.array([1, 2], F))
    assert "scalars" in refused("ConcatFromSequence", 11, scalars, axis=0)
    assert "axis of the result" in refused("ConcatFromSequence", 11, _sequence(x), axis=2)
    assert "has an entry" in refused("ConcatFromSequence", 11, _sequence(), axis=0)
    assert "same number of axes" in refused("ConcatFromSequence", 11, _sequence(x, x[0]), axis=0)
    assert "same sizes" in refused("ConcatFromSequence", 11, _sequence(x, x[:1]), axis=1)
    assert "same sizes" in refused("ConcatFromSequence", 11, _sequence(x, x[:1]), axis=0, new_axis=1)
    assert "0 or 1" in refused("ConcatFromSequence", 11, _sequence(x), axis=0, new_axis=2)


# ---- optionals ----------------------------------------------------------------------------------


def test_an_optional_holds_its_input(run: Run) -> None:
    tensor, sequence = np.ones(2, F), _sequence(np.ones(2, F))
    assert identical(run("Optional", 15, tensor), Optional(TENSOR, tensor))
    assert identical(run("Optional", 15, sequence), Optional(ValueType("sequence", inner=TENSOR), sequence))


def test_an_empty_optional_has_the_type_of_the_attribute(run: Run, refused: Run) -> None:
    stated = ValueType("sequence", inner=ValueType("tensor", "int64", (2,)))
    plain = ValueType("sequence", inner=ValueType("tensor", "int64"))
    assert identical(run("Optional", 15, type=stated), Optional(plain, None))
    assert "states its type" in refused("Optional", 15)
    assert identical(run("Optional", 15, np.ones(1, F), type=stated), Optional(TENSOR, np.ones(1, F)))


@pytest.mark.parametrize("version", [15, 18, 28])
def test_an_optional_has_an_element_or_not(version: int, run: Run, refused: Run) -> None:
    full, empty = Optional(TENSOR, np.ones(2, F)), Optional(TENSOR, None)
    assert identical(run("OptionalHasElement", version, full), np.array(True))
    assert identical(run("OptionalHasElement", version, empty), np.array(False))
    assert identical(run("OptionalGetElement", version, full), np.ones(2, F))
    assert "holds a value" in refused("OptionalGetElement", version, empty)


@pytest.mark.parametrize("version", [18, 28])
def test_version_18_takes_tensors_and_sequences_too(version: int, run: Run, refused: Run) -> None:
    for value in (np.ones(2, F), _sequence(), _sequence(*PARTS)):
        assert identical(run("OptionalHasElement", version, value), np.array(True))
        assert identical(run("OptionalGetElement", version, value), value)
    assert identical(run("OptionalHasElement", version), np.array(False))
    assert "input" in refused("OptionalHasElement", 15)
    assert "input" in refused("OptionalHasElement", 15, np.ones(2, F))


def test_an_optional_sequence_is_taken_out_whole(run: Run) -> None:
    sequence = _sequence(*PARTS)
    held = Optional(ValueType("sequence", inner=TENSOR), sequence)
    assert identical(run("OptionalGetElement", 18, held), sequence)
    assert identical(run("Identity", 16, held), held)


def test_a_sequence_where_a_tensor_belongs_is_refused(refused: Run) -> None:
    assert "X" in refused("Relu", 14, _sequence(*PARTS))
    assert "input_sequence" in refused("SequenceLength", 11, np.ones(2, F))


def test_the_tensors_of_a_result_are_read_only() -> None:
    found = apply(Application("SequenceConstruct", 11, PARTS, {}, (True,)))
    assert isinstance(found, Outputs)
    (value,) = found.values
    assert isinstance(value, Sequence)
    assert all(isinstance(item, np.ndarray) and not item.flags.writeable for item in value.items)
