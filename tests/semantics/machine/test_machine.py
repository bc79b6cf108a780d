from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sonnx.semantics import Schedule, load_proto
from sonnx.semantics.machine.execution import Limits, evaluate, initial, next_node
from sonnx.semantics.machine.memory import read
from sonnx.semantics.machine.phases import Advance, Apply, Phase, Read, Select, Write
from sonnx.semantics.machine.state import State, has_value, value_of
from sonnx.semantics.machine.transitions import enabled, phases, step
from sonnx.semantics.operators.application import Stuck

X = np.array([-1, 2], np.float32)


@pytest.fixture
def start(models: ModuleType) -> State:
    model = load_proto(models.diamond())
    state = initial(model, {model.graphs[0].inputs[0]: X}, Schedule(), models.meaning)
    assert isinstance(state, State)
    return state


def test_at_the_start_inputs_and_initializers_have_values(start: State) -> None:
    names = [tensor.name for t, tensor in enumerate(start.program.model.tensors) if has_value(start, t)]
    assert sorted(names) == ["w", "x"]


def test_the_enabled_nodes_are_those_whose_inputs_have_values_and_whose_outputs_have_none(start: State) -> None:
    assert enabled(start) == (0,)
    second = step(start, 0)
    assert isinstance(second, State)
    assert enabled(second) == (1, 2)
    third = step(second, 2)
    assert isinstance(third, State)
    assert enabled(third) == (1,)


def test_a_step_changes_no_state_before_it(start: State) -> None:
    before = (dict_of(start), start.store.memory.size)
    after = step(start, 0)
    assert isinstance(after, State) and after.steps == 1
    assert (dict_of(start), start.store.memory.size) == before
    assert set(dict_of(after)) - set(dict_of(start)) == {"r"}


def dict_of(state: State) -> dict[str, Any]:
    model = state.program.model
    return {
        it.name: np.asarray(value_of(state, t)).tobytes() for t, it in enumerate(model.tensors) if has_value(state, t)
    }


def test_a_step_is_the_composition_of_its_five_phases(start: State) -> None:
    found = list(phases(start, 0))
    assert [type(phase) for phase in found] == [Select, Read, Apply, Write, Advance]
    select, seen, applied, written, advanced = found
    assert isinstance(select, Select) and (select.rule, select.path) == ("Step/fire", "/0:Relu")
    assert isinstance(seen, Read) and np.array_equal(np.asarray(seen.values[0]), X)
    assert isinstance(applied, Apply) and np.array_equal(np.asarray(applied.values[0]), [0, 2])
    assert isinstance(written, Write) and written.written == 8
    place = written.places[0]
    assert read(written.store.memory, place.offset, place.length) == np.array([0, 2], np.float32).tobytes()
    assert isinstance(advanced, Advance) and dict_of(advanced.state) == dict_of(step_of(start, 0))


def step_of(state: State, n: int) -> State:
    found = step(state, n)
    assert isinstance(found, State)
    return found


@pytest.mark.parametrize(("n", "words"), [(1, '/1:Add reads /"r", which has no value'), (99, "")])
def test_a_node_that_is_not_enabled_is_stuck_at_the_premise_that_fails(start: State, n: int, words: str) -> None:
    if n == 99:
        start, n, words = step_of(start, 0), 0, '/0:Relu has fired: its output /"r" has a value'
    found = step(start, n)
    assert isinstance(found, Stuck)
    assert (found.rule, found.premise, found.message) == ("Step/fire", "enabled(n, M)", words)
    assert found.span.file == "3-execution.sonnx"


def test_an_operator_that_is_stuck_ends_the_run_with_its_reason(models: ModuleType) -> None:
    nodes = [models.node("Relu", ["x"], ["r"]), models.node("Div", ["x", "r"], ["y"])]
    graph = models.graph(nodes, [models.value("x", shape=[2])], [models.value("y", shape=[2])])
    run = models.ran(models.proto(graph), {"x": X})
    assert run.stuck is not None and run.stuck.rule == "Div-14"
    assert run.outputs == {} and len(run.states) == 2


@pytest.mark.parametrize("at", range(4))
def test_a_run_can_be_continued_from_any_of_its_states(models: ModuleType, at: int) -> None:
    for schedule in models.SCHEDULES:
        whole = models.ran(models.diamond(), {"x": X}, schedule)
        rest = evaluate(whole.states[at])
        assert rest.choices == whole.choices[at:]
        assert dict_of(rest.states[-1]) == dict_of(whole.states[-1])


def test_all_schedules_end_in_the_same_values_and_fire_each_node_once(models: ModuleType) -> None:
    runs = [models.ran(models.diamond(), {"x": X}, Schedule("random", seed)) for seed in range(8)]
    runs += [models.ran(models.diamond(), {"x": X}, schedule) for schedule in models.SCHEDULES]
    assert {run.outputs["y"].tobytes() for run in runs} == {np.array([3, -3], np.float32).tobytes()}
    assert all(sorted(run.choices) == [0, 1, 2, 3] for run in runs)
    assert {run.choices for run in runs} == {(0, 1, 2, 3), (0, 2, 1, 3)}


def test_recorded_choices_give_the_same_states_again(models: ModuleType) -> None:
    for seed in range(4):
        first = models.ran(models.diamond(), {"x": X}, Schedule("random", seed))
        again = models.ran(models.diamond(), {"x": X}, first.recorded)
        assert again.choices == first.choices
        assert [dict_of(state) for state in again.states] == [dict_of(state) for state in first.states]


def test_demand_fires_only_what_the_outputs_need(models: ModuleType) -> None:
    model = models.diamond()
    model.graph.node.append(models.node("Neg", ["a"], ["dead"]))
    needed = models.ran(model, {"x": X}, Schedule("demand"))
    assert needed.stuck is None and 4 not in needed.choices
    assert 4 in models.ran(model, {"x": X}).choices


def test_the_schedule_names_an_enabled_node_in_every_state(models: ModuleType) -> None:
    for schedule in models.SCHEDULES:
        for state in models.ran(models.nested(), nested_inputs(), schedule).states[:-1]:
            chosen, _ = next_node(state)
            assert chosen in enabled(state)


def nested_inputs() -> dict[str, Any]:
    numbers = {"x": np.float32(1), "v0": np.float32(0), "m": np.int64(3), "m2": np.int64(2)}
    return {name: np.array(number) for name, number in numbers.items()}


def test_nodes_out_of_order_run_in_a_topological_order(models: ModuleType) -> None:
    model = models.diamond()
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    run = models.ran(model, {"x": X})
    assert run.stuck is None and run.choices == (3, 1, 2, 0)


@pytest.mark.parametrize("schedule", ["topological", "random:1", "demand"])
def test_a_long_chain_needs_no_recursion(models: ModuleType, schedule: str) -> None:
    from sonnx.semantics import parse_schedule

    nodes = [models.node("Neg", [f"t{i}"], [f"t{i + 1}"]) for i in range(3000)]
    graph = models.graph(nodes, [models.value("t0")], [models.value("t3000")])
    run = models.ran(models.proto(graph), {"t0": np.array(1, np.float32)}, parse_schedule(schedule))
    assert run.stuck is None and run.outputs["t3000"] == 1 and len(run.states) == 3001


# ---- What is refused before anything runs -----------------------------------------------------


def test_a_tensor_with_two_writers_is_refused_by_the_rule(models: ModuleType) -> None:
    model = models.diamond()
    model.graph.node.append(models.node("Neg", ["r"], ["a"]))
    run = models.ran(model, {"x": X})
    assert run.stuck is not None and run.stuck.rule == "SingleAssignment" and '/"a"' in run.stuck.message


def test_a_cycle_is_refused_by_the_rule(models: ModuleType) -> None:
    nodes = [models.node("Add", ["x", "b"], ["a"]), models.node("Neg", ["a"], ["b"])]
    graph = models.graph(nodes, [models.value("x", shape=[2])], [models.value("b", shape=[2])])
    run = models.ran(models.proto(graph), {"x": X})
    assert run.stuck is not None and run.stuck.rule == "Acyclic" and run.states == ()


def test_an_operator_of_another_domain_is_refused_by_its_name(models: ModuleType) -> None:
    from onnx import helper
    from sonnx.semantics import run
    from sonnx.semantics.errors import Unsupported

    model = models.diamond()
    model.graph.node[3].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(Unsupported, match=r"com\.example::Sub \(/3:com\.example::Sub\)"):
        run(load_proto(model), {"x": X})


# ---- Limits -----------------------------------------------------------------------------------


def test_the_limit_on_steps_ends_the_run_and_names_the_next_node(models: ModuleType) -> None:
    run = models.ran(models.diamond(), {"x": X}, limits=Limits(steps=2))
    assert run.stuck is not None and len(run.choices) == 2
    assert "2 steps are taken, which is the limit; next would come /2:Mul" in run.stuck.message
    assert "--max-steps" in run.stuck.suggestion


def test_the_limit_on_time_ends_an_endless_loop(models: ModuleType) -> None:
    inputs = {"x": np.array(0, np.float32), "v0": np.array(0, np.float32), "c0": np.array(True)}
    run = models.ran(models.loop(trips=False), inputs, limits=Limits(seconds=0.2), history=False)
    assert run.stuck is not None and "the time is over" in run.stuck.message


def test_the_limit_on_memory_is_checked_before_anything_is_written(models: ModuleType) -> None:
    full = models.ran(models.diamond(), {"x": X})
    run = models.ran(models.diamond(), {"x": X}, max_memory=full.peak - 1)
    assert run.stuck is not None and run.states[-1].store.memory.size <= full.peak - 1
    assert f"the memory would have {full.peak} bytes, the limit is {full.peak - 1}" in run.stuck.message
    assert models.ran(models.diamond(), {"x": X}, max_memory=full.peak).stuck is None


def test_inputs_that_do_not_fit_into_memory_are_refused(models: ModuleType) -> None:
    run = models.ran(models.diamond(), {"x": X}, max_memory=64)
    assert run.stuck is not None and 'the input "x"' in run.stuck.message and run.states == ()


def test_arena_uses_space_again_and_gives_the_same_values(models: ModuleType) -> None:
    simple, arena = (models.ran(models.diamond(), {"x": X}, allocation=kind) for kind in ("simple", "arena"))
    assert arena.peak < simple.peak
    assert arena.outputs["y"].tobytes() == simple.outputs["y"].tobytes()


def test_a_phase_is_told_to_the_observer_once_and_in_order(models: ModuleType) -> None:
    told: list[str] = []

    class Listener:
        def begun(self, state: State) -> None:
            told.append("begun")

        def passed(self, state: State, phase: Phase | Stuck) -> None:
            told.append(type(phase).__name__)

        def ended(self, state: State) -> None:
            told.append("ended")

    models.ran(models.diamond(), {"x": X}, observers=[Listener()])
    assert told == ["begun", *["Select", "Read", "Apply", "Write", "Advance"] * 4, "ended"]
