"""`sonnx run --check-consistency`: the values of a run are judged by the definition consistent of part 6."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from command_calls import called
from machine_models import CASES
from sonnx.semantics import Run, Schedule, load_proto, run
from sonnx.semantics.machine.consistency import Consistency, Consistent, consistency
from sonnx.semantics.machine.inputs import bound_inputs
from sonnx.semantics.machine.report import consistency_lines
from sonnx.semantics.machine.state import State
from sonnx.semantics.model.values import Sequence, Value
from sonnx.semantics.operators.application import Application, Outputs, Program, Stuck


def judged(models: ModuleType, case: str, **options: Any) -> tuple[Consistency, dict[int, Value], Run]:
    """What is found of a run, with the table of its values."""
    maker, arguments, inputs = CASES[case]
    proto = getattr(models, maker)(*arguments)
    observer = Consistent(bound_inputs(load_proto(proto), inputs))
    done = models.ran(proto, inputs, observers=[observer], **options)
    assert observer.judgement is not None
    return observer.judgement, observer.table(done.states[-1]), done


@pytest.mark.parametrize("allocation", ["simple", "arena"])
@pytest.mark.parametrize("schedule", [Schedule(), Schedule("random", 3), Schedule("demand")])
@pytest.mark.parametrize("case", CASES)
def test_what_the_machine_computes_is_consistent(
    models: ModuleType, case: str, schedule: Schedule, allocation: str
) -> None:
    found, table, done = judged(models, case, schedule=schedule, allocation=allocation)
    assert found.failures == () and found.equations >= 1
    assert found.equations + found.given == len(table)
    assert set(done.model.graphs[0].outputs) <= table.keys()


def other(value: Value) -> Value:
    """Another value of the same type, the last element of it changed."""
    if isinstance(value, np.ndarray):
        changed = value.copy()
        changed.reshape(-1)[-1] = not changed.reshape(-1)[-1] if value.dtype == bool else changed.reshape(-1)[-1] + 1
        return changed
    if not isinstance(value, Sequence):
        raise TypeError("a tensor or a sequence is changed")
    return Sequence(value.inner, (*value.items[:-1], other(value.items[-1])))


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_value_anywhere_in_the_table_is_found(models: ModuleType, case: str) -> None:
    _, table, done = judged(models, case)
    program = Program(done.model, models.meaning)
    inputs = bound_inputs(done.model, CASES[case][2])
    for t, value in table.items():
        if isinstance(value, np.ndarray) and not value.size:
            continue
        found = consistency(program, inputs, {**table, t: other(value)})
        tensors = [failure.tensor for failure in found.failures]
        assert done.model.tensors[t].path in tensors, "the value itself, and perhaps what is computed from it"
        if isinstance(value, np.ndarray):
            own = next(it for it in found.failures if it.tensor == done.model.tensors[t].path)
            assert own.element == tuple(size - 1 for size in value.shape)


def test_a_value_that_nothing_gives_is_found(models: ModuleType) -> None:
    _, table, done = judged(models, "diamond")
    program = Program(done.model, models.meaning)
    inputs = bound_inputs(done.model, CASES["diamond"][2])
    (x,) = inputs
    first = min(t for t in table if t not in inputs)
    found = consistency(program, inputs, {t: value for t, value in table.items() if t != first})
    assert any("has no value" in failure.reason for failure in found.failures)
    unread = consistency(program, inputs, {x: table[x]})
    assert unread == Consistency(0, 1), "a memory that is begun is consistent"


def test_a_difference_of_one_bit_is_shown_with_its_place_and_bits(models: ModuleType) -> None:
    _, table, done = judged(models, "diamond")
    t = done.model.graphs[0].outputs[0]
    value = table[t]
    assert isinstance(value, np.ndarray)
    wrong = value.copy()
    wrong.reshape(-1)[0] = np.nextafter(wrong.reshape(-1)[0], np.float32(np.inf))
    inputs = bound_inputs(done.model, CASES["diamond"][2])
    found = consistency(Program(done.model, models.meaning), inputs, {**table, t: wrong})
    lines = consistency_lines(found)
    assert lines[0].startswith("not consistent: 1 of ") and "at element [0]" in lines[1]
    assert lines[2].split("(0x")[1] != lines[3].split("(0x")[1]


def test_an_operator_that_gives_something_else_the_second_time_is_found(models: ModuleType) -> None:
    times = [0]

    def drifting(application: Application) -> Outputs | Stuck:
        times[0] += 1
        found = models.meaning(application)
        return Outputs((found.values[0] + times[0],)) if application.op_type == "Relu" else found

    x = np.array([1, 2], np.float32)
    made = models.proto(models.graph([models.node("Relu", ["x"], ["y"])], [models.value("x", shape=[2])],
                                     [models.value("y", shape=[2])]))  # fmt: skip
    observer = Consistent(bound_inputs(load_proto(made), {"x": x}))
    run(load_proto(made), {"x": x}, observers=[observer], meaning=drifting)
    assert observer.judgement is not None and [it.node for it in observer.judgement.failures] == ["/0:Relu"]


def test_a_node_that_is_not_deterministic_leaves_the_theorem_without_its_premise(models: ModuleType) -> None:
    made = models.proto(models.graph([models.node("RandomNormalLike", ["x"], ["y"])], [models.value("x", shape=[2])],
                                     [models.value("y", shape=[2])]))  # fmt: skip
    model = load_proto(made)
    found = consistency(Program(model, models.meaning), {0: np.ones(2, np.float32)}, {0: np.ones(2, np.float32)})
    assert found.unmet == ("Deterministic",) and "says nothing of this run" in consistency_lines(found)[0]


# ---- The command ------------------------------------------------------------------------------


def test_the_command_says_what_holds_and_the_trace_carries_it(
    models: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(models.diamond(), tmp_path / "m.onnx")
    x = np.array([1, -2], np.float32)
    np.save(tmp_path / "x.npy", x)
    given = ("--input", f"x={tmp_path / 'x.npy'}", "--check-consistency", "--trace", tmp_path / "t")
    code, out, err = called(capsys, "run", tmp_path / "m.onnx", *given)
    end = json.loads((tmp_path / "t").read_text().splitlines()[-1])
    assert code == 0 and f"consistent: {end['consistent']} equations and 2 given values hold" in out, err
    code, out, err = called(capsys, "replay", tmp_path / "t", tmp_path / "m.onnx")
    assert code == 0 and f"{end['consistent']} equations" in out, err


def test_a_run_that_is_not_consistent_ends_with_1_and_its_trace_does_not_claim_it(
    models: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(models.diamond(), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([1, -2], np.float32))
    right = Consistent.table

    def wrong(self: Consistent, state: State) -> dict[int, Value]:
        table = right(self, state)
        return {**table, max(table): other(table[max(table)])}

    monkeypatch.setattr(Consistent, "table", wrong)
    given = ("--input", f"x={tmp_path / 'x.npy'}", "--check-consistency", "--trace", tmp_path / "t")
    code, _, err = called(capsys, "run", tmp_path / "m.onnx", *given)
    assert code == 1 and "not consistent: 1 of" in err and "the equation has" in err
    assert "consistent" not in json.loads((tmp_path / "t").read_text().splitlines()[-1])


def test_other_engines_are_sent_to_the_comparison_within_bounds(
    models: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(models.diamond(), tmp_path / "m.onnx")
    code, _, err = called(capsys, "run", tmp_path / "m.onnx", "--check-consistency", "--engine", "numpy")
    assert code == 2 and "sonnx compare --engine numpy" in err.replace("\n", " ")
