from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from sonnx.semantics import Run, Schedule
from sonnx.semantics.machine.state import frames, node_path
from sonnx.semantics.model.values import Sequence, identical

Inputs = Mapping[str, Any]


def floats(content: Any) -> Any:
    return np.array(content, np.float32)


def whole(content: Any) -> Any:
    return np.array(content, np.int64)


def every_way(models: ModuleType, model: onnx.ModelProto, inputs: Inputs) -> Run:
    """The run under each schedule and allocation; all of them agree in every bit."""
    runs = [
        models.ran(model, inputs, schedule, allocation=allocation)
        for schedule in models.SCHEDULES
        for allocation in ("simple", "arena")
    ]
    for run in runs:
        assert run.stuck is None, run.stuck
        assert run.outputs.keys() == runs[0].outputs.keys()
        assert all(identical(run.outputs[name], runs[0].outputs[name]) for name in run.outputs)
        assert len(frames(run.states[-1])) == 1
    found: Run = runs[0]
    return found


def reference(model: onnx.ModelProto, inputs: Inputs) -> list[Any]:
    found: list[Any] = ReferenceEvaluator(model).run(None, dict(inputs))
    return found


def looped(x: float, start: float, trips: int, limit: float = 100.0, goes: bool = True) -> tuple[float, list[float]]:
    """What `models.loop` means, in Python."""
    squares = []
    for _ in range(trips):
        if not goes:
            break
        start += x
        squares.append(start * start)
        goes = start < limit
    return start, squares


# ---- If ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("chosen", [True, False])
def test_an_if_runs_the_branch_that_its_condition_selects(models: ModuleType, chosen: bool) -> None:
    inputs = {"x": floats([-1, 2]), "c": np.array(chosen)}
    run = every_way(models, models.choice(), inputs)
    assert np.array_equal(np.asarray(run.outputs["y"]), reference(models.choice(), inputs)[0])
    inner = {run.states[0].program.model.nodes[n].op_type for n in run.choices}
    assert inner == {"If", "Add" if chosen else "Neg"}


def test_a_condition_of_several_elements_is_stuck_at_its_premise(models: ModuleType) -> None:
    model = models.choice()
    model.graph.input[1].type.tensor_type.shape.dim.add().dim_value = 2
    run = models.ran(model, {"x": floats([1, 2]), "c": np.array([True, False])})
    assert run.stuck is not None and run.stuck.rule == "Step/if"
    assert run.stuck.premise == 'has_input(n, "cond") and is_flag(input(n, "cond"), M)'
    assert "bool[2], not a tensor of one bool" in run.stuck.message


# ---- Loop -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trips", "goes"), [(10, True), (3, True), (1, True), (0, True), (-5, True), (4, False)], ids=str
)
def test_a_loop_ends_by_trip_count_or_condition(models: ModuleType, trips: int, goes: bool) -> None:
    inputs = {"x": floats(30), "v0": floats(0), "m": whole(trips), "c0": np.array(goes)}
    run = every_way(models, models.loop(), inputs)
    last, squares = looped(30, 0, max(trips, 0), goes=goes)
    assert run.outputs["last"] == last
    assert np.array_equal(np.asarray(run.outputs["all"]), floats(squares))
    assert np.asarray(run.outputs["all"]).shape == (len(squares),)


def test_a_loop_without_trip_count_ends_by_its_condition(models: ModuleType) -> None:
    inputs = {"x": floats(30), "v0": floats(0), "c0": np.array(True)}
    run = every_way(models, models.loop(trips=False), inputs)
    assert run.outputs["last"] == reference(models.loop(trips=False), inputs)[0] == 120


def test_a_loop_without_condition_ignores_that_of_its_body(models: ModuleType) -> None:
    run = every_way(models, models.loop(cond=False), {"x": floats(30), "v0": floats(0), "m": whole(6)})
    assert run.outputs["last"] == 180 and np.asarray(run.outputs["all"]).shape == (6,)


def test_an_output_of_a_loop_that_is_left_out_gets_no_value(models: ModuleType) -> None:
    inputs = {"x": floats(30), "v0": floats(0), "m": whole(2), "c0": np.array(True)}
    run = every_way(models, models.loop(outputs=("", "all")), inputs)
    assert set(run.outputs) == {"all"}


def test_nested_bodies_run_in_frames_of_their_own_and_read_outer_names(models: ModuleType) -> None:
    inputs = {"x": floats(1), "v0": floats(0), "m": whole(3), "m2": whole(2)}
    run = every_way(models, models.nested(), inputs)
    assert run.outputs["last"] == 9
    assert np.array_equal(np.asarray(run.outputs["all"]), [[1, 1], [1, 2], [2, 2]])
    assert max(len(frames(state)) for state in run.states) == 4
    paths = {node_path(state, n) for state, n in zip(run.states, run.choices, strict=False)}
    assert "/0:Loop.body@2/0:Loop.body@1/1:If.else_branch/0:Add" in paths


def test_every_path_of_a_run_names_its_node(models: ModuleType) -> None:
    from sonnx.semantics.model.path import NodePlace, resolve

    inputs = {"x": floats(1), "v0": floats(0), "m": whole(2), "m2": whole(2)}
    run = models.ran(models.nested(), inputs)
    for state, n in zip(run.states, run.choices, strict=False):
        place = resolve(run.model, node_path(state, n))
        assert isinstance(place, NodePlace) and place.node == n


def test_scan_outputs_of_different_shapes_are_stuck_and_named(models: ModuleType) -> None:
    body = models.graph(
        [models.node("Identity", ["c"], ["c2"]), models.node("Split", ["v"], ["v2", "rest"])],
        [models.value("i", models.INT64), models.value("c", models.BOOL), models.value("v", shape=None)],
        [models.value("c2", models.BOOL), models.value("v2", shape=None), models.value("rest", shape=None)],
    )
    holder = models.node("Loop", ["m", "", "v0"], ["last", "all"], body=body)
    inputs = [models.value("m", models.INT64), models.value("v0", shape=[4])]
    outputs = [models.value("last", shape=None), models.value("all", shape=None)]
    run = models.ran(models.proto(models.graph([holder], inputs, outputs)), {"m": whole(2), "v0": floats([1, 2, 3, 4])})
    assert run.stuck is not None and run.stuck.rule == "Step/loop-leave"
    assert run.stuck.premise.startswith("W in loop_output(")
    assert "run 0 gives float[2], run 1 float[1]" in run.stuck.message


def test_without_runs_and_without_a_declared_shape_a_scan_output_is_undefined(models: ModuleType) -> None:
    model = models.loop()
    body = model.graph.node[0].attribute[0].g
    body.output[2].type.tensor_type.ClearField("shape")
    inputs = {"x": floats(1), "v0": floats(0), "m": whole(0), "c0": np.array(True)}
    run = models.ran(model, inputs)
    assert run.stuck is not None and run.stuck.rule == "Step/loop-none"
    assert "the body declares no shape of its output" in run.stuck.message


def test_carried_values_may_be_sequences(models: ModuleType) -> None:
    from onnx import helper
    from sonnx.semantics.model.graph import ValueType

    sequence = helper.make_tensor_sequence_value_info
    body = models.graph(
        [models.node("Identity", ["c"], ["c2"]), models.node("Identity", ["s"], ["s2"])],
        [models.value("i", models.INT64), models.value("c", models.BOOL), sequence("s", models.FLOAT, None)],
        [models.value("c2", models.BOOL), sequence("s2", models.FLOAT, None)],
    )
    holder = models.node("Loop", ["m", "", "s0"], ["last"], body=body)
    graph = models.graph(
        [holder],
        [models.value("m", models.INT64), sequence("s0", models.FLOAT, None)],
        [sequence("last", models.FLOAT, None)],
    )
    given = Sequence(ValueType("tensor", "float"), (floats([1, 2]), floats([[3]])))
    for trips in (0, 3):
        run = every_way(models, models.proto(graph), {"m": whole(trips), "s0": given})
        assert identical(run.outputs["last"], given)


# ---- Scan -------------------------------------------------------------------------------------

XS = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_a_scan_gives_the_final_state_and_what_every_run_gave(models: ModuleType) -> None:
    inputs = {"s0": floats([10, 20]), "xs": XS}
    run = every_way(models, models.scan(), inputs)
    for name, expected in zip(("last", "ps", "qs"), reference(models.scan(), inputs), strict=True):
        assert np.array_equal(np.asarray(run.outputs[name]), expected)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scan_axes_and_directions(models: ModuleType, axis: int, reverse: int) -> None:
    options = {
        "scan_input_axes": [axis],
        "scan_input_directions": [reverse],
        "scan_output_axes": [axis, 0],
        "scan_output_directions": [0, reverse],
    }
    xs = np.moveaxis(XS, 0, axis)
    run = every_way(models, models.scan(**options), {"s0": floats([10, 20]), "xs": xs})
    sums = np.cumsum(np.concatenate([[[10, 20]], XS[::-1] if reverse else XS]), axis=0)[1:].astype(np.float32)
    assert np.array_equal(np.asarray(run.outputs["last"]), sums[-1])
    assert np.array_equal(np.asarray(run.outputs["ps"]), np.stack(list(sums), axis))
    assert np.array_equal(np.asarray(run.outputs["qs"]), 2 * (sums[::-1] if reverse else sums))


def test_negative_axes_are_out_of_range_before_version_11(models: ModuleType) -> None:
    inputs = {"s0": floats([10, 20]), "xs": XS.T.copy()}
    assert models.ran(models.scan(11, scan_input_axes=[-1]), inputs).stuck is None
    stuck = models.ran(models.scan(10, scan_input_axes=[-1]), inputs).stuck
    assert stuck is not None and stuck.rule == "Step/scan" and "along axis -1" in stuck.message


def test_a_scan_over_nothing_gives_the_initial_state_and_empty_outputs(models: ModuleType) -> None:
    run = every_way(models, models.scan(), {"s0": floats([10, 20]), "xs": XS[:0]})
    assert np.array_equal(np.asarray(run.outputs["last"]), [10, 20])
    assert np.asarray(run.outputs["ps"]).shape == (0, 2)


def test_scan_8_runs_each_sequence_of_the_batch_from_its_own_state(models: ModuleType) -> None:
    xs = np.arange(18, dtype=np.float32).reshape(3, 3, 2)
    inputs = {"n": whole([3, 2, 0]), "s0": np.ones((3, 2), np.float32), "xs": xs}
    run = every_way(models, models.scan(8), inputs)
    sums = np.cumsum(xs, axis=1) + 1
    expected = np.stack([sums[0, 2], sums[1, 1], np.ones(2, np.float32)])
    assert np.array_equal(np.asarray(run.outputs["last"]), expected)
    ps = np.asarray(run.outputs["ps"])
    assert ps.shape == (3, 3, 2)
    assert np.array_equal(ps[0], sums[0]) and np.array_equal(ps[1, :2], sums[1, :2])


def test_what_scan_8_fills_up_is_told_to_be_free(models: ModuleType) -> None:
    from sonnx.semantics.machine.phases import Apply

    found: list[Any] = []

    class Listener:
        def begun(self, state: Any) -> None: ...

        def passed(self, state: Any, phase: Any) -> None:
            if isinstance(phase, Apply):
                found.append(phase.free)

        def ended(self, state: Any) -> None: ...

    inputs = {"n": whole([3, 1]), "s0": np.ones((2, 2), np.float32), "xs": np.ones((2, 3, 2), np.float32)}
    models.ran(models.scan(8), inputs, observers=[Listener()])
    state, first, second = found[-1]
    assert state is None and not first[0].any() and not first[1, :1].any() and first[1, 1:].all()
    assert np.array_equal(first, second)


def test_scan_8_in_reverse_of_a_shorter_sequence_is_undefined(models: ModuleType) -> None:
    inputs = {"n": whole([3, 1]), "s0": np.ones((2, 2), np.float32), "xs": np.ones((2, 3, 2), np.float32)}
    stuck = models.ran(models.scan(8, directions=[1]), inputs).stuck
    assert stuck is not None and "ONNX does not say" in stuck.suggestion


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scan_input_axes": [0, 0]}, "scan_input_axes has 2 entries, not 1"),
        ({"scan_input_directions": [2]}, "a direction is 0 or 1"),
        ({"scan_input_axes": [5]}, "is scanned along axis 5"),
        ({"scan_output_axes": [0, 3]}, "has the axis 3, the output has 2 axes"),
    ],
    ids=str,
)
def test_wrong_attributes_of_a_scan_are_stuck(models: ModuleType, options: dict[str, Any], words: str) -> None:
    stuck = models.ran(models.scan(**options), {"s0": floats([10, 20]), "xs": XS}).stuck
    assert stuck is not None and words in stuck.message


# ---- SequenceMap ------------------------------------------------------------------------------


def test_a_sequence_map_runs_its_body_for_each_item(models: ModuleType) -> None:
    inputs = {"p": floats([1, 2]), "q": floats([3]), "x": floats(10)}
    run = every_way(models, models.sequence_map(), inputs)
    out = run.outputs["out"]
    assert isinstance(out, Sequence)
    assert [np.asarray(item).tolist() for item in out.items] == [[11, 12], [13]]


def test_sequences_of_different_lengths_are_stuck(models: ModuleType) -> None:
    model = models.sequence_map()
    model.graph.node.insert(1, models.node("SequenceConstruct", ["p"], ["short"]))
    model.graph.node[2].input[1] = "short"
    run = models.ran(model, {"p": floats([1, 2]), "q": floats([3]), "x": floats(10)}, Schedule())
    assert run.stuck is not None and run.stuck.rule == "Step/sequence-map"
    assert "sequence of 1, the first one sequence of 2" in run.stuck.message
