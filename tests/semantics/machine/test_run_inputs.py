from __future__ import annotations

import re
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
from onnx import TensorProto, helper
from sonnx.semantics import load_proto
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.inputs import bound_inputs, random_inputs
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.model.graph import Model, ValueType
from sonnx.semantics.model.values import Map, Sequence, identical


@pytest.fixture
def model(models: ModuleType) -> Model:
    inputs = [models.value("x", shape=["N", 2]), models.value("y", models.INT64, ["N"]), models.value("z", shape=None)]
    graph = models.graph(
        [models.node("Identity", ["x"], ["o"])], [*inputs, models.value("w", shape=[1])], [models.value("o")],
        [models.stored("w", [1])],
    )  # fmt: skip
    return load_proto(models.proto(graph))


def good() -> dict[str, Any]:
    return {"x": np.zeros((3, 2), np.float32), "y": np.zeros(3, np.int64), "z": np.zeros((1, 1), np.float32)}


def test_good_inputs_are_bound_and_an_initializer_is_optional(model: Model) -> None:
    assert [model.tensors[t].name for t in bound_inputs(model, good())] == ["x", "y", "z"]
    assert len(bound_inputs(model, good() | {"w": np.ones(1, np.float32)})) == 4


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([np.zeros(2, np.float32)], "as an object of the Python type list: give a NumPy array, or a Sequence"),
        (None, "as an object of the Python type NoneType: give a NumPy array, or a Sequence"),
        (np.float32(1), "as an object of the Python type float32: give a NumPy array"),
        (Sequence(ValueType("tensor"), cast("Any", (1,))), "as an object of the Python type int: give a NumPy array"),
        (np.array(["a"], object), "holds an entry of the Python type str: write texts as bytes in UTF-8"),
        (np.array([None], object), "holds an entry of the Python type NoneType: write texts as bytes in UTF-8"),
        (np.array(["a"]), "has the NumPy type <U1, which ONNX has not: give texts as an array of dtype object"),
        (np.zeros(1, "datetime64[s]"), "has the NumPy type datetime64[s], which ONNX has not"),
    ],
)
def test_an_object_that_is_no_value_is_refused(model: Model, value: Any, words: str) -> None:
    with pytest.raises(ModelError, match=f'the input "z", float, .*{re.escape(words)}'):
        bound_inputs(model, good() | {"z": value})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": None}, 'no value is given for the input "x": float[N, 2]: give one by name among the inputs, or a seed'),
        ({"xx": np.zeros(1)}, 'the model has no input "xx": did you mean "x"?'),
        ({"unlike": np.zeros(1)}, 'it has "x": float[N, 2], "y": int64[N], "z": float, "w": float[1]'),
        ({"x": np.zeros((3, 2))}, 'the input "x" is double[3, 2], expected float[N, 2]'),
        ({"x": np.zeros(3, np.float32)}, 'the input "x" has 1 dimensions [3], expected 2: float[N, 2]'),
        ({"x": np.zeros((3, 4), np.float32)}, 'the input "x" has size 4 along axis 1, expected 2: float[N, 2]'),
        ({"y": np.zeros(4, np.int64)}, 'size 4 along axis 0, which is called "N", and the input "x" made that 3'),
        ({"x": Sequence(ValueType("tensor", "float"), ())}, 'the input "x" is sequence(float), expected float[N, 2]'),
    ],
    ids=["missing", "close", "extra", "dtype", "rank", "size", "symbol", "kind"],
)
def test_a_wrong_input_is_refused_with_what_was_expected(model: Model, change: dict[str, Any], words: str) -> None:
    given = {name: value for name, value in (good() | change).items() if value is not None}
    with pytest.raises(ModelError) as error:
        bound_inputs(model, given)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_caller_replaces_an_initializer_that_is_an_input(models: ModuleType) -> None:
    graph = models.graph(
        [models.node("Add", ["x", "w"], ["o"])], [models.value("x"), models.value("w")], [models.value("o")],
        [models.stored("w", 5)],
    )  # fmt: skip
    x = np.array(1, np.float32)
    assert models.ran(models.proto(graph), {"x": x}).outputs["o"] == 6
    for allocation in ("simple", "arena"):
        replaced = models.ran(models.proto(graph), {"x": x, "w": np.array(7, np.float32)}, allocation=allocation)
        assert replaced.outputs["o"] == 8


def test_the_same_seed_draws_the_same_inputs_and_open_sizes_are_1_and_said(models: ModuleType) -> None:
    graph = models.graph(
        [models.node("Identity", ["x"], ["o"])],
        [models.value("x", shape=["N", 2, None]), models.value("y", models.INT64, ["N"])], [models.value("o")],
    )  # fmt: skip
    model = load_proto(models.proto(graph))
    first, said = random_inputs(model, 7)
    assert all(identical(value, random_inputs(model, 7)[0][name]) for name, value in first.items())
    assert not identical(first["x"], random_inputs(model, 8)[0]["x"])
    assert np.asarray(first["x"]).shape == (1, 2, 1) and said == ('"N"', 'axis 2 of "x"')
    assert set(random_inputs(model, 7, ["x"])[0]) == {"y"}
    bound_inputs(model, first)


@pytest.mark.parametrize("element", sorted(DTYPES))
def test_every_element_type_can_be_drawn(models: ModuleType, element: str) -> None:
    code = TensorProto.DataType.Value(element.upper())
    graph = models.graph(
        [models.node("Identity", ["x"], ["o"])], [models.value("x", code, [3, 5])], [models.value("o", code, [3, 5])]
    )
    model = load_proto(models.proto(graph))
    drawn, _ = random_inputs(model, 1)
    bound_inputs(model, drawn)
    assert np.asarray(drawn["x"]).dtype == DTYPES[element]


def test_inputs_that_say_too_little_or_are_absurd_are_not_drawn(models: ModuleType) -> None:
    for shape in (None, [1 << 40]):
        graph = models.graph([models.node("Identity", ["x"], ["o"])], [models.value("x", shape=shape)],
                             [models.value("o")])  # fmt: skip
        with pytest.raises(ModelError, match="give it"):
            random_inputs(load_proto(models.proto(graph)), 1)


def test_a_sequence_input_is_drawn_with_one_item(models: ModuleType) -> None:
    sequence = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2])
    graph = models.graph([models.node("Identity", ["x"], ["o"])], [sequence], [models.value("o")])
    model = load_proto(models.proto(graph))
    drawn, _ = random_inputs(model, 1)
    bound_inputs(model, drawn)
    assert isinstance(drawn["x"], Sequence) and len(drawn["x"].items) == 1


FLOAT = ValueType("tensor", "float")


def taking(kind: Any) -> Model:
    """A model whose input has this type; no run of it is meant."""
    node = helper.make_node("Identity", ["x"], ["y"])
    outputs = [helper.make_value_info("y", kind)]
    graph = helper.make_graph([node], "g", [helper.make_value_info("x", kind)], outputs)
    return load_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def test_entries_have_the_declared_sizes_which_the_certifier_takes_for_granted() -> None:
    asked = taking(helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2, "N"])))
    for shapes, words in (([(2, 3), (2, 5)], ""), ([(2, 3), (3, 3)], r"float\[3, 3\]"), ([(2,)], r"float\[2\]")):
        value = Sequence(FLOAT, tuple(np.zeros(shape, np.float32) for shape in shapes))
        if not words:
            assert bound_inputs(asked, {"x": value})
            continue
        with pytest.raises(ModelError, match=rf"holds {words}, expected float\[2, N\]"):
            bound_inputs(asked, {"x": value})


def test_keys_are_of_their_type_and_values_single_elements() -> None:
    held = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    asked = taking(helper.make_map_type_proto(TensorProto.INT64, held))
    one = np.zeros((), np.float32)
    assert bound_inputs(asked, {"x": Map("int64", FLOAT, ((-(2**63), one), (2**63 - 1, one)))})
    for key, value, words in (
        (2**63, one, "keys"),
        (True, one, "keys"),
        (1, np.zeros(2, np.float32), "single elements"),
    ):
        with pytest.raises(ModelError, match=words):
            bound_inputs(asked, {"x": Map("int64", FLOAT, ((key, value),))})
