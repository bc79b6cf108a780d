"""Memory of a session: used again where that is right, never where somebody still reads it."""

from __future__ import annotations

import os
import random
import weakref
from typing import Any

import numpy as np
import onnx
import pytest
from machine_models import FLOAT, graph, node, stored
from onnx import TensorProto
from sonnx.semantics.runtimes.fastpath import Session, arena, branches
from sonnx.semantics.runtimes.fastpath.kernel import Kernel
from tables import table
from toy_kernels import elementwise, provider
from toy_sessions import chain, floats, net, session


def test_what_a_caller_gets_or_gives_is_never_written_again() -> None:
    nodes = [
        node("Identity", ["x"], ["a"]),
        node("Identity", ["w"], ["b"]),
        node("Neg", ["x"], ["c"]),
        node("Transpose", ["c"], ["d"]),
        node("Identity", ["c"], ["e"]),
        node("Neg", ["c"], ["f"]),
        node("Identity", ["f"], ["g"]),
        node("Neg", ["g"], ["h"]),
    ]
    made = session(net(nodes, outputs="abcdeh", weights=[stored("w", [[3, 5]])]))
    inputs = [np.full((2, 3), float(i), np.float32) for i in range(1, 5)]
    copies = [x.copy() for x in inputs]
    outputs = []
    for x in inputs:
        found = made.run(None, {"x": x})
        for y in found:
            assert isinstance(y, np.ndarray)
            assert y.flags.writeable and not any(np.shares_memory(y, it) for it in (*inputs, *outputs))
            outputs.append(y)
    for i, x in enumerate(copies):
        a, b, c, d, e, h = outputs[6 * i : 6 * i + 6]
        assert np.array_equal(a, x) and b.tolist() == [[3.0, 5.0]] and np.array_equal(c, -x)
        assert np.array_equal(d, -x.T) and np.array_equal(e, -x) and np.array_equal(h, -x)
    for y in outputs:
        y[...] = 7
    assert all(map(np.array_equal, inputs, copies))
    assert made.run(["b"], {"x": inputs[0]})[0].tolist() == [[3.0, 5.0]]  # type: ignore[union-attr]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system forks no processes")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_writes_in_memory_of_its_own() -> None:
    request = arena.Request((4,), np.dtype(np.float32), 0)
    made = arena.Arena(arena.ArenaPlan(((request,),), ((0,),), ((frozenset({0}),),), (0,), 16, ()))
    ((view,),) = made.expected
    assert view is not None
    view[...] = 1
    child = os.fork()
    if not child:
        view[...] = 2
        os._exit(0)
    os.waitpid(child, 0)
    assert view.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("native", [False, True])
def test_memory_that_a_caller_has_let_go_is_given_once_more_and_no_other(
    native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena, "RECYCLED_BYTES", 1)
    if native:
        pytest.importorskip("numba", reason="native code needs the extra [jit]")
    negated = node("Mul", ["x", "w"], ["y"]), node("Mul", ["y", "w"], ["z"])
    model = net(negated, outputs="yz", weights=[stored("w", -1)])
    made = Session(model, ["numba"] if native else [])
    assert {it.provider for it in made.partitioning.assignments} <= (
        {"", "NumbaExecutionProvider"} if native else {"", "NumpyExecutionProvider"}
    )
    x = floats(*range(1000))
    kept: list[Any] = []
    places = []
    for keep in ("", "", "", "array", "view", "bytes", "", ""):
        y, z = made.run(None, {"x": x})
        assert np.array_equal(y, -x) and np.array_equal(z, x)  # type: ignore[arg-type]
        assert isinstance(y, np.ndarray) and not any(np.shares_memory(np.asarray(it), y) for it in (*kept, z))
        places.append(y.ctypes.data)
        y[...] = 7
        if keep:
            kept.append({"array": y, "view": y.reshape(2, 500)[1:], "bytes": memoryview(y)}[keep])
        del y, z
    assert places[1] == places[2] == places[3] and len(set(places[3:7])) == 4 and places[6] == places[7]
    assert all(np.all(np.asarray(it) == 7) for it in kept)


def test_memory_is_given_by_turns_to_a_caller_who_has_the_results_of_the_run_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arena, "RECYCLED_BYTES", 1)
    made, x = session(chain(2)), floats(*range(1000))
    made.run(None, {"x": x})
    memories: list[weakref.ref[Any]] = []
    for number in range(8):
        (y,) = made.run(None, {"x": x})
        assert np.array_equal(y, x)  # type: ignore[arg-type]
        if number == 1:
            (pool,) = made._variant(frozenset()).pools.values()
            memories = [weakref.ref(memory) for it in pool.free[0]._leaving for memory in it.memories]
    assert len(memories) == 2 and all(it() is not None for it in memories)


def test_a_chain_works_in_one_buffer() -> None:
    places: list[int] = []

    def negated(x: Any, out: Any) -> Any:
        places.append(out.ctypes.data)
        return np.negative(x, out=out)

    made = Session(chain(20), [provider(Neg=elementwise(negated))])
    x = floats(*range(1000))
    made.run(None, {"x": x})
    for _ in range(2):
        places.clear()
        (y,) = made.run(None, {"x": x})
        assert np.array_equal(y, x)  # type: ignore[arg-type]
        assert len(set(places[:-1])) == 1 and places[-1] == y.ctypes.data != places[0]  # type: ignore[union-attr]
    (pool,) = made._variant(frozenset()).pools.values()
    assert pool.plan.total == 4032  # one tensor of 4000 bytes; the output is the caller's


def test_memory_is_used_again_after_the_last_use() -> None:
    made = Session(chain(20), [provider(Neg=Kernel(1, 99, elementwise(np.negative).prepare))])  # not in place
    made.run(None, {"x": floats(*range(1024))})
    (pool,) = made._variant(frozenset()).pools.values()
    assert pool.plan.total == 2 * 4096


def test_an_input_that_is_needed_later_is_not_overwritten() -> None:
    nodes = [node("Neg", ["x"], ["a"]), node("Neg", ["a"], ["b"]), node("Add", ["a", "b"], ["y"])]
    made = session(net(nodes))
    for _ in range(3):
        (y,) = made.run(None, {"x": floats(1, 2)})
        assert y.tolist() == [0.0, 0.0]  # type: ignore[union-attr]


def test_an_input_of_which_another_input_is_a_view_is_not_overwritten() -> None:
    def subtracted(a: Any, b: Any, out: Any) -> Any:
        out[...] = a
        for i in range(3):
            out[i] -= b[i]
        return out

    nodes = [node("Neg", ["x"], ["a"]), node("Transpose", ["a"], ["b"]), node("Sub", ["a", "b"], ["y"])]
    made = net([*nodes, node("Neg", ["y"], ["z"])], outputs=("z",))
    found = Session(made, [provider(Sub=elementwise(subtracted))])
    x = floats(*range(9)).reshape(3, 3)
    for _ in range(3):
        assert np.array_equal(found.run(None, {"x": x})[0], x - x.T)  # type: ignore[arg-type]


def test_two_outputs_do_not_get_the_memory_of_one_input() -> None:
    def both(_site: Any) -> Any:
        def compute(inputs: Any, allocate: Any) -> Any:
            (x,) = inputs
            kept = x.copy()
            first = np.add(x, 1, out=allocate(x.shape, x.dtype))
            return first, np.add(kept, first, out=allocate(x.shape, x.dtype))

        return compute

    nodes = [node("Neg", ["x"], ["a"]), node("Split", ["a"], ["p", "q"], num_outputs=2), node("Neg", ["q"], ["y"])]
    found = Session(net(nodes), [provider(Split=Kernel(1, 99, both, in_place=True))])
    for _ in range(3):
        found.run(None, {"x": floats(1, 2)})
    (pool,) = found._variant(frozenset()).pools.values()
    first, second = (request.buffer for request in pool.plan.requests[1])
    assert first != second


def test_memory_of_a_size_that_the_data_decide_is_new_when_the_size_is() -> None:
    found = session(net([node("NonZero", ["x"], ["a"]), node("Add", ["a", "a"], ["y"])]))
    for x in (floats(1, 0, 2), floats(0, 0, 2), floats(1, 1, 1), floats(1, 0, 2)):
        (y,) = found.run(None, {"x": x})
        assert y.tolist() == [(2 * np.flatnonzero(x)).tolist()]  # type: ignore[union-attr]


def test_a_sequence_whose_items_lie_elsewhere_than_recorded_is_still_right() -> None:
    def branch(name: str) -> onnx.GraphProto:
        sequence = onnx.helper.make_tensor_sequence_value_info(f"s{name}", FLOAT, None)
        return graph([node("SequenceConstruct", [name], [f"s{name}"])], [], [sequence], (), name)

    nodes = [
        node("Neg", ["x"], ["a"]),
        node("Relu", ["x"], ["b"]),
        node("If", ["c"], ["s"], then_branch=branch("a"), else_branch=branch("b")),
        node("Mul", ["x", "x"], ["p"]),
        node("Add", ["p", "x"], ["q"]),
        node("SequenceAt", ["s", "zero"], ["w"]),
        node("Add", ["q", "w"], ["y"]),
    ]
    made = net(nodes, ("x", "c"), weights=[stored("zero", 0, np.int64)])
    made.graph.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    found = session(made)
    x = floats(1, -2)
    for c in (True, False, True, False):
        (y,) = found.run(None, {"x": x, "c": np.array(c)})
        assert np.array_equal(y, x * x + x + (-x if c else np.maximum(x, 0)))  # type: ignore[arg-type]


def test_a_value_that_lies_elsewhere_than_in_the_recorded_run_is_still_right() -> None:
    """Where gives its second or its third input as it is, by the data: what the plan takes to be free may be in use."""
    nodes = [
        node("Neg", ["x"], ["a"]),
        node("Relu", ["x"], ["b"]),
        node("Where", ["c", "a", "b"], ["w"]),
        node("Mul", ["x", "x"], ["p"]),
        node("Add", ["p", "x"], ["q"]),
        node("Add", ["q", "w"], ["y"]),
    ]
    made = net(nodes, ("x", "c"))
    made.graph.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    found = session(made)
    x = floats(1, -2)
    for c in (True, False, True, False):
        (y,) = found.run(None, {"x": x, "c": np.array([c, c])})
        assert np.array_equal(y, x * x + x + (-x if c else np.maximum(x, 0)))  # type: ignore[arg-type]


def test_each_shape_has_its_own_plan_and_few_are_kept() -> None:
    made = session(chain(3))
    for _ in range(2):
        for size in range(1, 20):
            (y,) = made.run(None, {"x": np.ones(size, np.float32)})
            assert y.tolist() == [-1.0] * size  # type: ignore[union-attr]
    assert len(made._variant(frozenset()).pools) == 8


OPERATORS = (("Add", 2), ("Mul", 2), ("Neg", 1), ("Relu", 1), ("Identity", 1), ("Transpose", 1), ("Where", 3),
             ("Split", 1), ("Softmax", 1), ("SequenceConstruct", 2))  # fmt: skip


def random_net(choose: random.Random) -> onnx.ModelProto:
    """Operators whose outputs are new, in place, views, parts, or one input or the other by the data."""
    names = ["x", "u"]
    nodes = []
    for number in range(choose.randint(5, 40)):
        op_type, count = choose.choice(OPERATORS)
        inputs = [choose.choice(names[-6:]) for _ in range(count)]
        made = f"t{number}"
        if op_type == "Where":
            nodes.append(node("Less", [choose.choice(["x", "u"]), "limit"], [f"c{number}"]))
            inputs[0] = f"c{number}"
        if op_type == "SequenceConstruct":
            nodes.append(node("SequenceConstruct", inputs, [f"s{number}"]))
            nodes.append(node("SequenceAt", [f"s{number}", choose.choice(["zero", "one"])], [made]))
        elif op_type == "Split":
            nodes.append(node("Split", inputs, [f"p{number}", f"q{number}"], num_outputs=2))
            nodes.append(node("Mul", [f"p{number}", f"q{number}"], [f"m{number}"]))
            nodes.append(node("Add", [inputs[0], f"m{number}"], [made]))
        else:
            nodes.append(node(op_type, inputs, [made]))
        names.append(made)
    outputs = sorted({*choose.sample(names[2:], min(3, len(names) - 2)), names[-1]})
    weights = [stored("limit", 0), stored("zero", 0, np.int64), stored("one", 1, np.int64)]
    return net(nodes, ("x", "u"), outputs, weights)


@table("seed", range(40))
def test_the_plan_changes_no_result_whatever_the_data(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(branches, "WORTH", -1)
    choose = random.Random(seed)
    made = random_net(choose)
    found, fresh, generator = session(made), session(made), np.random.default_rng(seed)
    for _ in range(4):
        feed = {name: generator.standard_normal((2, 2)).astype(np.float32) for name in ("x", "u")}
        for name in feed:
            feed[name] = np.abs(feed[name]) * choose.choice((1, -1)) if choose.random() < 0.8 else feed[name]
        expected = fresh.run(None, feed)
        fresh._variant(frozenset()).pools.clear()  # a run without a plan uses no memory again
        for a, b in zip(found.run(None, feed), expected, strict=True):
            assert np.array_equal(a, b, equal_nan=True)  # type: ignore[arg-type]
