"""If, Loop, Scan and SequenceMap in a session give what the machine gives, with the same plain operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import machine_models as models
import numpy as np
import onnx
import pytest
from machine_models import BOOL, INT64, graph, node, proto, stored, value
from sonnx.semantics.model.values import Sequence, identical
from sonnx.semantics.runtimes.fastpath import RunError, Session
from tables import table
from toy_kernels import provider


def floats(content: Any) -> Any:
    return np.array(content, np.float32)


def whole(content: Any) -> Any:
    return np.array(content, np.int64)


def agree(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs by name; three runs of one session, and the machine, give the same bits."""
    made = Session(model, [provider()])
    expected = models.ran(model, inputs)
    assert expected.stuck is None
    for _ in range(3):
        found = made.run(None, inputs)
        for name, a in zip([it.name for it in made.get_outputs()], found, strict=True):
            assert identical(a, expected.outputs[name]), name
    return dict(expected.outputs)


def refused(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> str:
    """Why a session refuses a run that the machine refuses too."""
    assert models.ran(model, inputs).stuck is not None
    with pytest.raises(RunError) as error:
        Session(model, [provider()]).run(None, inputs)
    return str(error.value)


# ---- If ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [True, False])
def test_an_if_runs_the_branch_that_its_condition_chooses(c: bool) -> None:
    agree(models.choice(), {"x": floats([1, -2]), "c": np.array(c)})


def test_one_session_may_take_one_branch_and_then_the_other() -> None:
    made = Session(models.choice(), [provider()])
    for c in (True, False, True):
        (y,) = made.run(None, {"x": floats([1, -2]), "c": np.array(c)})
        assert y.tolist() == ([4.0, 3.0] if c else [-1.0, 2.0])  # type: ignore[union-attr]


def test_a_branch_may_give_what_it_captures() -> None:
    then = graph([node("Identity", ["x"], ["t"])], [], [value("t", shape=None)], (), "then")
    other = graph([], [], [value("x", shape=None)], (), "else")
    nodes = [node("Neg", ["v"], ["x"]), node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    nodes += [node("Neg", ["x"], ["z"]), node("Add", ["y", "z"], ["s"])]
    made = proto(graph(nodes, [value("v", shape=[2]), value("c", BOOL)], [value(n, shape=[2]) for n in "yxs"]))
    for c in (True, False):
        agree(made, {"v": floats([1, -2]), "c": np.array(c)})


def test_a_condition_of_several_elements_is_refused() -> None:
    made = models.choice()
    made.graph.input[1].type.tensor_type.ClearField("shape")
    message = refused(made, {"x": floats([1, 2]), "c": np.array([True, False])})
    assert message == "/0:If (If-16): the condition is bool[2], not a tensor of one bool"


# ---- Loop -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("trips", "cond"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("limit", [0.5, 4.0])
def test_a_loop_runs_as_often_as_trip_count_and_condition_say(trips: bool, cond: bool, limit: float) -> None:
    inputs = {"x": floats(1), "v0": floats(0.25)}
    inputs |= {"m": whole(6)} if trips else {}
    inputs |= {"c0": np.array(True)} if cond else {}
    agree(models.loop(trips=trips, cond=cond, limit=limit), inputs)


@pytest.mark.parametrize("outputs", [("", "all"), ("last", ""), ("last",)])
def test_a_loop_may_leave_outputs_unnamed(outputs: tuple[str, ...]) -> None:
    agree(models.loop(outputs=outputs), {"x": floats(1), "v0": floats(0), "m": whole(3), "c0": np.array(True)})


@pytest.mark.parametrize("m", [0, -1])
def test_a_loop_that_does_not_run_gives_its_initial_values_and_nothing_collected(m: int) -> None:
    found = agree(models.loop(), {"x": floats(1), "v0": floats(7), "m": whole(m), "c0": np.array(True)})
    assert (found["last"].tolist(), found["all"].shape) == (7.0, (0,))
    agree(models.loop(), {"x": floats(1), "v0": floats(7), "m": whole(3), "c0": np.array(False)})


def test_bodies_in_bodies_see_what_lies_around_them() -> None:
    agree(models.nested(), {"x": floats(1), "v0": floats(0), "m": whole(3), "m2": whole(2)})


def test_what_a_body_computes_from_constants_is_computed_at_load() -> None:
    made = Session(models.loop(), [provider()])
    folded = [it.kernel for it in made.partitioning.assignments if "when the model is loaded" in it.why]
    assert folded == ["Constant-13"]


def test_a_requirement_that_fails_in_a_body_names_the_node_in_it() -> None:
    body = graph(
        [node("Div", ["v", "z"], ["v2"]), node("Identity", ["c"], ["go"])],
        [value("i", INT64), value("c", BOOL), value("v")],
        [value("go", BOOL), value("v2")],
        [stored("z", 0)],
        "body",
    )
    made = proto(
        graph([node("Loop", ["m", "", "v0"], ["y"], body=body)], [value("m", INT64), value("v0")], [value("y")])
    )
    message = refused(made, {"m": whole(1), "v0": floats(1)})
    assert message == "/0:Loop.body/0:Div (Div-14): the divisor is not 0"


# ---- Scan -------------------------------------------------------------------------------------


@table("length", [0, 1, 4])
@table(
    "attributes",
    [
        {},
        {"scan_input_axes": [1], "scan_output_axes": [1, -1]},
        {"scan_input_axes": [-1], "scan_input_directions": [1], "scan_output_directions": [0, 1]},
    ],
)
def test_a_scan_runs_over_axes_and_in_directions(length: int, attributes: dict[str, Any]) -> None:
    xs = floats(np.arange(2 * length).reshape((2, length) if "scan_input_axes" in attributes else (length, 2)))
    agree(models.scan(**attributes), {"s0": floats([1, 2]), "xs": xs})


@pytest.mark.parametrize(("lengths", "directions"), [(None, [1]), ([2, 0], [0]), ([3, 3], [1]), ([0, 0], [0])])
def test_a_scan_of_version_8_runs_for_each_sequence_of_the_batch(lengths: Any, directions: list[int]) -> None:
    made = models.scan(8, directions=directions)
    inputs = {"s0": floats([[1, 2], [3, 4]]), "xs": floats(np.arange(12).reshape(2, 3, 2))}
    if lengths is None:
        made.graph.node[0].input[0] = ""
        del made.graph.input[0]
    else:
        inputs["n"] = whole(lengths)
    agree(made, inputs)


def test_a_scan_that_cannot_run_says_why() -> None:
    s0, xs = floats([1, 2]), floats(np.zeros((3, 2)))
    assert "there is no axis 2 in 2 axes" in refused(models.scan(scan_input_axes=[2]), {"s0": s0, "xs": xs})
    assert "scan_output_axes has 1 entries, not 2" in refused(models.scan(scan_output_axes=[0]), {"s0": s0, "xs": xs})
    batch = {"s0": floats([s0, s0]), "xs": floats([xs, xs])}
    message = refused(models.scan(8), {**batch, "n": whole([4, 1])})
    assert "a sequence length is not between 0 and 3: (4, 1)" in message
    message = refused(models.scan(8, directions=[1]), {**batch, "n": whole([2, 3])})
    assert "in reverse" in message


# ---- SequenceMap ------------------------------------------------------------------------------


def test_a_sequence_map_runs_its_body_on_each_item() -> None:
    found = agree(models.sequence_map(), {"p": floats([1, 2]), "q": floats([[3]]), "x": floats(1)})
    assert isinstance(found["out"], Sequence) and len(found["out"].items) == 2


def test_a_sequence_that_a_session_gives_shares_no_memory_with_what_it_was_given() -> None:
    nodes = [node("SequenceConstruct", ["x", "x"], ["s"])]
    sequence = onnx.helper.make_tensor_sequence_value_info("s", 1, None)
    made = Session(proto(graph(nodes, [value("x", shape=[2])], [sequence])), [provider()])
    x = floats([1, 2])
    for _ in range(2):
        (s,) = made.run(None, {"x": x})
        assert isinstance(s, Sequence)
        first, second = s.items
        assert not np.shares_memory(first, x) and not np.shares_memory(first, second)  # type: ignore[arg-type]
