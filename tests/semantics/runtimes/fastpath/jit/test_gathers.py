"""Native code that moves elements: those that indices name, and parts of tensors; what an index does not name is said
as NumPy's kernels say it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from sonnx.semantics.runtimes.fastpath import RunError, Session
from tables import table

pytest.importorskip("numba", reason="native code needs the extra [jit]")
from native_runs import NAME, bits, guarded_run

Arrays = dict[str, Any]
TYPES = (np.float32, np.uint8, np.int8, np.int32)


def _shape(choose: random.Random, least: int = 1) -> tuple[int, ...]:
    return tuple(choose.choice((1, 2, 3, 5, 16, 33)) for _ in range(choose.randint(least, 3)))


def _indices(choose: random.Random, sizes: list[int], shape: tuple[int, ...]) -> Any:
    """Tuples of indices into these sizes, counted from either end."""
    rng = np.random.default_rng(choose.getrandbits(32))
    made = np.stack([rng.integers(-n, n, shape) for n in sizes], axis=-1)
    return made.astype(choose.choice((np.int32, np.int64)))


def _case(choose: random.Random, operator: str) -> tuple[Arrays, Arrays, int]:
    """The inputs, the attributes, and how many indices there are to an element along the axis that they name."""
    x = _data(choose, _shape(choose))
    axis = choose.randrange(-x.ndim, x.ndim)
    if operator == "Gather":
        given = choose.choice(((), (3,), (2, 5), (40,)))
        return {"x": x, "i": _indices(choose, [x.shape[axis]], given)[..., 0]}, {"axis": axis}, x.shape[axis]
    if operator == "GatherElements":
        given = tuple(
            choose.choice((1, 4, 9)) if k == axis % x.ndim else choose.randint(1, n) for k, n in enumerate(x.shape)
        )
        return {"x": x, "i": _indices(choose, [x.shape[axis]], given)[..., 0]}, {"axis": axis}, x.shape[axis]
    batch = choose.randrange(x.ndim)
    width = choose.randint(1, x.ndim - batch)
    indices = _indices(choose, list(x.shape[batch : batch + width]), (*x.shape[:batch], *_shape(choose, 0)))
    return {"x": x, "i": indices.astype(np.int64)}, {"batch_dims": batch}, x.shape[batch]


def _data(choose: random.Random, shape: tuple[int, ...]) -> Any:
    values = np.random.default_rng(choose.getrandbits(32)).integers(-100, 100, shape)
    return values.astype(choose.choice(TYPES))


def _model(operator: str, inputs: Arrays, known: Arrays, names: list[str], outputs: int = 1, **stated: Any) -> Any:
    goals = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(operator, names, goals, **stated)
    of = {k: helper.np_dtype_to_tensor_dtype(v.dtype) for k, v in (inputs | known).items()}
    ends = [helper.make_tensor_value_info(k, of[k], v.shape) for k, v in inputs.items()]
    made = [helper.make_tensor_value_info(k, of["x"], None) for k in goals]
    stored = [numpy_helper.from_array(v, k) for k, v in known.items()]
    graph = helper.make_graph([node], "g", ends, made, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


GATHERS = ("Gather", "GatherElements", "GatherND")


@table("seed", range(300), few=20)
def test_what_indices_name_is_moved_as_it_is(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(seed)
    operator = choose.choice(GATHERS)
    inputs, stated, _ = _case(choose, operator)
    moved = choose.choice(("", "", "x", "i"))
    known = {moved: inputs.pop(moved)} if moved else {}
    model = _model(operator, inputs, known, ["x", "i"], **stated)
    said = f"{model.graph.node[0]} {[(k, v.shape, v.dtype) for k, v in (inputs | known).items()]}"
    (expected,) = Session(model).run(None, inputs)
    (found,) = guarded_run(model, monkeypatch, **inputs)
    assert bits(found) == bits(expected), said


@table("operator", GATHERS)
def test_an_index_that_names_nothing_is_said_and_nothing_is_read(operator: str) -> None:
    choose = random.Random(1)
    for _ in range(2):
        inputs, stated, count = _case(choose, operator)
        model = _model(operator, inputs, {}, ["x", "i"], **stated)
        session = Session(model, [NAME])
        expected = session.run(None, inputs)
        for beyond in (count, -count - 1, 2**31 - 1, -(2**31)):
            wrong = inputs["i"].copy()
            wrong[(0,) * wrong.ndim] = beyond
            messages = []
            for it in (session, Session(model)):
                with pytest.raises(RunError, match="the indices are positions along the axis") as caught:
                    it.run(None, {"x": inputs["x"], "i": wrong})
                messages.append(str(caught.value).rpartition(": ")[2])
            assert messages[0] == messages[1]
        assert [bits(it) for it in session.run(None, inputs)] == [bits(it) for it in expected]


UNREAD = (
    "d = Gather(x, i)",
    "r = Relu(x) d = Gather(r, i) e = Relu(d)",
    "d = GatherElements(x, j)",
    "d = GatherND(x, k)",
)


@table("nodes", UNREAD)
def test_an_index_that_names_nothing_is_said_where_nothing_reads_the_result(nodes: str) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> g'
    ends = "(float[4, 2] x, int64[2] i, int64[2, 2] j, int64[2, 1] k) => (float[4, 2] y)"
    model = onnx.parser.parse_model(f"{head} {ends} {{ {nodes} y = Relu(x) }}")
    session = Session(model, [NAME])
    for index in (1, -4, 9, 9, -5, 1):
        given = {"i": np.array([0, index]), "j": np.array([[0, 1], [2, index]]), "k": np.array([[0], [index]])}
        inputs = {"x": np.ones((4, 2), np.float32), **given}
        for it in (session, Session(model)):
            if -4 <= index < 4:
                assert np.all(it.run(None, inputs)[0] == 1)
            else:
                with pytest.raises(RunError, match="the indices are positions along the axis"):
                    it.run(None, inputs)


PARTS = (
    ("Slice", {"b": [1, -3], "e": [9, -1], "a": [0, 2]}, {}, 1),
    ("Slice", {"b": [-1], "e": [-99], "a": [1], "t": [-2]}, {}, 1),
    ("Slice", {"b": [4], "e": [4], "a": [1]}, {}, 1),
    ("Slice", {"b": [1], "e": [3], "a": [0]}, {}, 1),
    ("Split", {"s": [1, 4, 0, 1]}, {"axis": 1}, 4),
    ("Split", {}, {"axis": -1}, 5),
    ("Split", {"s": [2, 1]}, {"axis": 0}, 2),
    ("Transpose", {}, {"perm": [2, 0, 1]}, 1),
    ("Reshape", {"s": [5, -1]}, {}, 1),
)


@table("operator, lists, stated, outputs", PARTS)
def test_parts_of_tensors_are_moved_as_they_are(
    operator: str, lists: dict[str, list[int]], stated: Arrays, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for of in (np.float32, np.uint8):
        x = np.arange(90).reshape(3, 6, 5).astype(of)
        known = {k: np.array(v, np.int64) for k, v in lists.items()}
        model = _model(operator, {"x": x}, known, ["x", *known], outputs, **stated)
        expected = Session(model).run(None, {"x": x})
        found = guarded_run(model, monkeypatch, x=x)
        assert [bits(it) for it in found] == [bits(it) for it in expected]


BETWEEN = """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 6, 5] x, int64[3] i) => (float y, float z) {
    a, b, c = Split<axis = 0>(x, s)
    d = Relu(b)
    e = Concat<axis = 0>(d, a, c)
    f = Gather<axis = 1>(e, i)
    y = Relu(f)
    z = Add(b, d)
}"""


def test_parts_in_the_memory_of_the_whole_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.parser.parse_model(BETWEEN)
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, 2, 1]), "s"))
    for it in model.graph.output:
        it.type.tensor_type.ClearField("shape")
    inputs = {"x": np.random.default_rng(2).standard_normal((4, 6, 5)).astype(np.float32), "i": np.array([5, -6, 2])}
    expected = Session(model).run(None, inputs)
    found = guarded_run(model, monkeypatch, **inputs)
    assert [bits(it) for it in found] == [bits(it) for it in expected]
