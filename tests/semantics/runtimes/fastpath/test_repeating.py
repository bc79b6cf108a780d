"""What a run of the same shapes repeats: right for all data, wherever they lie, and nothing of a caller's is kept."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import onnx
import pytest
from machine_models import node, stored
from onnx import TensorProto
from sonnx.semantics.runtimes.fastpath import Session, arena, branches
from tables import table
from toy_sessions import net

GENERATOR = np.random.default_rng(5)


def _weights(**shapes: Any) -> list[onnx.TensorProto]:
    return [stored(name, GENERATOR.uniform(0.5, 1.5, shape), np.float32) for name, shape in shapes.items()]


def _normalized(read: str, written: str) -> onnx.NodeProto:
    return node("BatchNormalization", [read, *"pqrs"], [written])


CHANNELS = _weights(p=(4,), q=(4,), r=(4,), s=(4,))
NETS = {
    "chains, branches, pooling": net(
        [
            node("Conv", ["x", "w"], ["a"], kernel_shape=[1, 1]),
            _normalized("a", "b"),
            node("Relu", ["b"], ["c"]),
            node("Conv", ["c", "w"], ["d"], kernel_shape=[1, 1]),
            node("Conv", ["c", "v", "u"], ["e"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("MaxPool", ["c"], ["f"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("Concat", ["d", "e", "f"], ["g"], axis=1),
            node("AveragePool", ["g"], ["h"], kernel_shape=[2, 2], strides=[2, 2]),
            node("Add", ["h", "h"], ["y"]),
        ],
        weights=[*_weights(w=(4, 4, 1, 1), v=(4, 4, 3, 3), u=(4,)), *CHANNELS],
    ),
    "groups, shuffled": net(
        [
            node("Conv", ["x", "w"], ["a"], kernel_shape=[1, 1], group=2),
            node("Reshape", ["a", "apart"], ["b"]),
            node("Transpose", ["b"], ["c"], perm=[0, 2, 1, 3, 4]),
            node("Reshape", ["c", "together"], ["d"]),
            node("Conv", ["d", "v"], ["e"], kernel_shape=[3, 3], group=4, pads=[1, 1, 1, 1], strides=[2, 2]),
            _normalized("e", "f"),
            node("Conv", ["f", "v"], ["g"], kernel_shape=[3, 3], group=4, pads=[1, 1, 1, 1]),
            node("Relu", ["g"], ["y"]),
        ],
        weights=[
            *_weights(w=(4, 2, 1, 1), v=(4, 1, 3, 3)),
            *CHANNELS,
            stored("apart", [1, 2, 2, 8, 6], np.int64),
            stored("together", [1, 4, 8, 6], np.int64),
        ],
    ),
}


def _data(number: int) -> Any:
    x = np.random.default_rng(number).standard_normal((1, 4, 8, 6)).astype(np.float32)
    x[0, number % 4] = (-0.0, np.nan, np.inf, -1)[number % 4]
    return x


@table("name, worth", [(name, worth) for name in NETS for worth in (-1.0, np.inf)])
def test_runs_give_what_a_run_of_a_new_session_gives(name: str, worth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "WORTH", worth)
    monkeypatch.setattr(arena, "RECYCLED_BYTES", 1)
    made = Session(NETS[name])
    kept = [made.run(None, {"x": _data(number)})[0] for number in range(6)]
    for number, y in enumerate(kept):
        (expected,) = Session(NETS[name]).run(None, {"x": _data(number)})
        assert isinstance(y, np.ndarray) and isinstance(expected, np.ndarray)
        assert y.tobytes() == expected.tobytes()
    (pool,) = made._variant(frozenset()).pools.values()
    repeated = [it.ready is not None for it in pool.free[0].given]
    assert not repeated[0] and not repeated[-1] and all(repeated[1:-1])  # these read and write what is the caller's


def test_a_step_whose_input_lies_elsewhere_is_not_repeated() -> None:
    nodes = [
        node("Neg", ["x"], ["a"]),
        node("Abs", ["x"], ["b"]),
        node("SequenceConstruct", ["a", "b"], ["s"]),
        node("SequenceAt", ["s", "i"], ["d"]),
        node("Conv", ["d", "w"], ["e"], kernel_shape=[1, 1]),
        node("Relu", ["e"], ["f"]),
        node("Add", ["f", "a"], ["g"]),
        node("Add", ["g", "b"], ["h"]),
        node("Neg", ["h"], ["y"]),
    ]
    model = net(nodes, ("x", "i"), weights=_weights(w=(4, 4, 1, 1)))
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    made = Session(model)
    for number, i in enumerate((0, 1, 0, 0, 1, 1)):
        feed = {"x": _data(4 * number + 3), "i": np.array(i)}
        assert np.array_equal(made.run(None, feed)[0], Session(model).run(None, feed)[0])  # type: ignore[arg-type]


def test_nothing_of_a_caller_is_kept() -> None:
    made = Session(NETS["chains, branches, pooling"])
    for number in range(3):
        x = _data(number)
        gone = weakref.ref(x)
        made.run(None, {"x": x})
        del x
        assert gone() is None
