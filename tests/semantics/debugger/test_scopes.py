"""What stands in a frame, by scope; that a scope of a large model is made range by range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from debugger_models import answer, nested, session
from onnx import TensorProto, helper
from sonnx.semantics.debugger.inspection import scopes
from sonnx.semantics.debugger.inspection.items import NONE, Item, View, distinct, expression_item
from sonnx.semantics.debugger.inspection.scopes import SCOPES, scope, state_digest
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.debugger.timeline.history import Refused
from sonnx.semantics.machine.schedule import Schedule


def shown(found: Session, name: str, frame: int = 0) -> dict[str, Item]:
    return {it.name: it for it in scope(found, frame, name).named(found, View())}


def chain(count: int, schedule: Schedule | None = None) -> Session:
    """`count` additions, each of an initializer of its own."""
    nodes = [helper.make_node("Add", [f"t{i}", f"w{i}"], [f"t{i + 1}"]) for i in range(count)]
    weights = [helper.make_tensor(f"w{i}", TensorProto.FLOAT, [1], [1.0]) for i in range(count)]
    info = helper.make_tensor_value_info
    ends = [info("t0", TensorProto.FLOAT, [1])], [info(f"t{count}", TensorProto.FLOAT, [1])]
    graph = helper.make_graph(nodes, "chain", *ends, weights)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return session(proto, {"t0": np.zeros(1, np.float32)}, schedule)


def test_before_a_node_its_inputs_have_values_and_its_outputs_have_none() -> None:
    found = nested()
    assert {name: it.value for name, it in shown(found, "Node inputs").items()} == {"x": "float[2] [1.0, -2.0]"}
    assert shown(found, "Node outputs")["a"].value.startswith(NONE)
    after, _ = answer(found, "next")
    assert shown(after, "Node outputs", 1)["b"].value.startswith(NONE)
    assert set(shown(after, "Node inputs", 1)) == {"a"}
    last = shown(after, "Node outputs")
    assert last["a"].value == "float[2] [2.0, -4.0]" and last["t"].value.startswith(NONE)


def test_a_value_is_seen_when_it_is_computed_and_not_yet_written() -> None:
    found, _ = answer(nested(), "stepi 3")
    (item,) = (it for name, it in shown(found, "Node outputs").items() if name.startswith("a "))
    assert item.value == "float[2] [2.0, -4.0]" and "not yet" in item.name and not item.bytes
    assert "a" not in shown(found, "Tensors")
    found, _ = answer(found, "stepi 2")
    assert shown(found, "Tensors", 1)["a"].value == "float[2] [2.0, -4.0]"


def test_the_tensors_of_a_frame_are_those_of_its_graph_or_call() -> None:
    found, _ = answer(nested(), "break /4:Loop.body@1/2:local::Twice!1:Identity", "continue")
    calls, body, main = (shown(found, "Tensors", frame) for frame in range(3))
    assert set(calls) == {"t"} and set(body) == {"i", "go", "s", "go2", "s2"}
    assert set(main) == {"x", "c", "n", "a", "b", "d", "e"}
    assert set(shown(found, "Uninitialised", 1)) == {"o"} and set(shown(found, "Uninitialised", 2)) == {"y", "h"}
    assert set(shown(found, "Captured")) == {"s2"} and set(shown(found, "Captured", 1)) == {"x"}


def test_each_run_of_a_body_shows_its_own_values() -> None:
    values = []
    for run in range(3):
        found, _ = answer(nested(), f"break /4:Loop.body@{run}/2:local::Twice!0:Add", "continue")
        values.append(shown(found, "Tensors", 1)["s2"].value)
    assert len(set(values)) == 3


def test_names_that_mean_another_tensor_are_asked_for_by_path() -> None:
    found, _ = answer(nested(), "break /4:Loop.body@1/2:local::Twice!1:Identity", "continue")
    for frame in range(3):
        for name in SCOPES[:5]:
            for item in shown(found, name, frame).values():
                for looking in (0, frame):
                    again = expression_item(replace(found, frame=looking), item.expression, View())
                    assert (again.tensor, again.value) == (item.tensor, item.value)


@pytest.mark.parametrize("schedule", [None, Schedule("random", 3), Schedule("demand")])
def test_the_ready_nodes_are_those_that_are_enabled(schedule: Schedule | None) -> None:
    from sonnx.semantics.machine.transitions import enabled

    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[1] x) => (float[1] y) {
      a = Neg (x)  b = Abs (x)  c = Add (a, b)  y = Neg (c) }"""
    found = session(text, {"x": np.ones(1, np.float32)}, schedule)
    while not found.history.ended or found.index < found.history.last:
        ready = {found.model.nodes[n].path for n in enabled(found.state)}
        assert set(shown(found, "Ready nodes")) == ready
        assert sum("(next)" in it.value for it in shown(found, "Ready nodes").values()) == 1
        found, _ = answer(found, "step")


def test_a_large_scope_is_made_range_by_range() -> None:
    found, _ = answer(chain(2500), "step 1234")
    ranges = shown(found, "Tensors")
    assert len(ranges) == 13 and ranges["[1200..1299]"].value == "t1200 .. t1299"
    inside = ranges["[1200..1299]"].inside
    assert inside is not None and [it.name for it in inside.named(found, View())][-1] == "t1234"
    assert len(shown(found, "Initializers")) == 25
    assert list(shown(found, "Ready nodes")) == ["/1234:Add"]
    early, _ = answer(found, "seek 3")
    assert list(shown(early, "Ready nodes")) == ["/3:Add", "more"]


def test_few_values_of_a_large_model_are_shown_without_ranges() -> None:
    found, _ = answer(chain(1000), "step 3")
    assert list(shown(found, "Tensors")) == ["t0", "t1", "t2", "t3"]


def test_no_page_of_a_large_model_looks_at_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = answer(chain(2500), "step 1234")
    for name in SCOPES:
        scope(found, 0, name).named(found, View())  # what is known once for a model is known now
    looked: list[int] = []
    really = scopes.tensor_item
    monkeypatch.setattr(scopes, "tensor_item", lambda *given: looked.append(1) or really(*given))
    for name in SCOPES:
        looked.clear()
        scope(found, 0, name).named(found, View())
        assert len(looked) <= 100


def test_the_machine_says_where_it_stands_and_what_is_next() -> None:
    found, _ = answer(nested(), "step 3", "stepi 2")
    machine = shown(found, "Machine")
    assert {name: machine[name].value for name in ("step", "phase", "rule", "timeline", "schedule")} == {
        "step": "3", "phase": "2 (read)", "rule": "Step/fire", "timeline": "the model's execution",
        "schedule": "topological",
    }  # fmt: skip
    n = found.moment.next
    assert n is not None and machine["next node"].line == found.listing.of_node[n]
    assert machine["next node"].operator == (found.model.nodes[n].op_type, found.model.nodes[n].version)
    edited, _ = answer(found, "set x[0] = 5")
    assert "set to 5.0" in shown(edited, "Machine")["timeline"].value


def test_equal_states_have_one_digest_and_others_have_another() -> None:
    found = nested()
    seen = {}
    while not found.history.ended or found.index < found.history.last:
        seen[found.index] = state_digest(found.state)
        found, _ = answer(found, "step")
    assert len(set(seen.values())) == len(seen)
    found, _ = answer(found, "seek 7")
    assert state_digest(found.state) == seen[7]
    edited, _ = answer(found, "set x[0] = 5")
    assert state_digest(edited.state) != seen[7]


def test_two_tensors_of_one_name_are_told_apart() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "l" : 1]> g (float[1] x, bool c) => (float[1] y) {
      t = Neg (x)
      y = l.F (t, c)
    }
    <domain: "l", opset_import: ["" : 18]> F (v, k) => (w) {
      t = Neg (v)
      w = If (k) <then_branch = a () => (float[1] p) { p = Add (t, v) },
                  else_branch = b () => (float[1] q) { q = Neg (v) }>
    }"""
    found = session(text, {"x": np.ones(1, np.float32), "c": np.array(True)})
    found, _ = answer(found, "break op:Add", "continue")
    captured = distinct(scope(found, 0, "Captured").named(found, View()))
    assert len(captured) == 2 and len({it.name for it in captured}) == 2
    assert {it.value for it in captured} == {"float[1] [-1.0]", "float[1] [1.0]"}


def test_a_frame_that_is_not_there_is_refused() -> None:
    with pytest.raises(Refused):
        scope(nested(), 1, "Tensors")


def test_scopes_of_the_end_show_the_outputs() -> None:
    found, _ = answer(nested(), "continue")
    assert not shown(found, "Node inputs") and not shown(found, "Uninitialised")
    assert {"y", "h"} <= set(shown(found, "Tensors"))
    assert set(shown(found, "Node outputs")) == {"y", "h"}


def test_a_sparse_model_without_nodes_has_scopes() -> None:
    graph = helper.make_graph(
        [], "g", [], [helper.make_tensor_value_info("w", TensorProto.FLOAT, [1])],
        [helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0])],
    )  # fmt: skip
    proto: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    found = session(proto, {})
    assert shown(found, "Initializers")["w"].value == "float[1] [2.0]"
    assert all(scope(found, 0, name).named(found, View()) is not None for name in SCOPES)
