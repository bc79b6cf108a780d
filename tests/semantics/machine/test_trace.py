from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from machine_models import CASES
from sonnx.semantics import Schedule, load_proto
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.execution import Limits
from sonnx.semantics.machine.trace.format import SUFFIX
from sonnx.semantics.machine.trace.replay import Trace, Verdict, read_trace, replay
from sonnx.semantics.machine.trace.writing import Tracer

Lines = list[dict[str, Any]]


def traced(models: ModuleType, model: onnx.ModelProto, inputs: Mapping[str, Any], path: Path, **options: Any) -> Tracer:
    with path.open("w", encoding="ascii") as text, path.with_name(path.name + SUFFIX).open("wb") as values:
        tracer = Tracer(text, values)
        models.ran(model, inputs, observers=[tracer], **options)
    return tracer


def verdicts(models: ModuleType, trace: Trace, model: onnx.ModelProto) -> list[Verdict]:
    return list(replay(trace, load_proto(model), range(1, len(trace.steps) + 1), models.meaning))


@pytest.mark.parametrize("allocation", ["simple", "arena"])
@pytest.mark.parametrize("case", CASES)
def test_every_step_of_a_trace_holds_when_it_is_executed_alone(
    models: ModuleType, tmp_path: Path, case: str, allocation: str
) -> None:
    maker, arguments, inputs = CASES[case]
    model = getattr(models, maker)(*arguments)
    tracer = traced(models, model, inputs, tmp_path / "t", allocation=allocation)
    trace = read_trace(tmp_path / "t")
    assert trace.broken == "" and trace.end is not None and trace.steps
    found = verdicts(models, trace, model)
    assert [verdict for verdict in found if not verdict.holds] == []
    assert tracer.chain == json.loads((tmp_path / "t").read_text().splitlines()[-1])["chain"]


def test_the_chain_depends_on_the_inputs_and_the_order_and_on_nothing_else(models: ModuleType, tmp_path: Path) -> None:
    def chain(x: list[float], seed: int) -> str:
        inputs = {"x": np.array(x, np.float32)}
        return traced(models, models.diamond(), inputs, tmp_path / "t", schedule=Schedule("random", seed)).chain

    assert chain([1, 2], 3) == chain([1, 2], 3) != chain([1, 3], 3)
    assert len({chain([1, 2], seed) for seed in range(6)}) > 1


@pytest.fixture
def loop_trace(models: ModuleType, tmp_path: Path) -> Path:
    traced(models, models.loop(), CASES["loop"][2], tmp_path / "t")
    return tmp_path / "t"


def changed(path: Path, change: Callable[[Lines], None], *, rechain: bool = False) -> Trace:
    """The trace after a change of its lines, with the hashes made right when asked for."""
    from sonnx.semantics.machine.trace.format import canonical, chained

    lines: Lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    chain = ""
    for line in lines if rechain else []:
        line.pop("chain")
        chain = line["chain"] = chained(chain, line)
    path.write_text("".join(canonical(line) + "\n" for line in lines))
    return read_trace(path)


def test_a_changed_line_breaks_the_chain(loop_trace: Path) -> None:
    def change(lines: Lines) -> None:
        lines[3]["rule"] = "Step/if"

    assert changed(loop_trace, change).broken == "line 4 does not have the hash that its chain says"


def test_a_line_that_is_missing_breaks_the_chain(loop_trace: Path) -> None:
    assert "line 4" in changed(loop_trace, lambda lines: lines.pop(3) and None).broken


def test_a_step_that_reads_what_was_not_written_is_found_when_the_hashes_are_right(loop_trace: Path) -> None:
    def change(lines: Lines) -> None:
        lines[3]["reads"][0] |= {key: lines[1]["reads"][0][key] for key in ("sha256", "offset", "length", "type")}

    assert "reads another value" in changed(loop_trace, change, rechain=True).broken


def test_a_step_that_says_another_result_does_not_hold(models: ModuleType, loop_trace: Path) -> None:
    def change(lines: Lines) -> None:
        lines[2]["writes"][0]["sha256"] = lines[3]["writes"][0]["sha256"]

    trace = changed(loop_trace, change, rechain=True)
    (verdict,) = replay(trace, load_proto(models.loop()), [2], models.meaning)
    assert not verdict.holds and "it gives another value to" in verdict.reason


def test_a_step_that_says_another_rule_does_not_hold(models: ModuleType, loop_trace: Path) -> None:
    def change(lines: Lines) -> None:
        lines[6] |= {"rule": "Step/loop-leave"}

    trace = changed(loop_trace, change, rechain=True)
    assert trace.steps[5]["rule"] == "Step/loop-leave"
    (verdict,) = replay(trace, load_proto(models.loop()), [6], models.meaning)
    assert verdict.reason == "the rule Step/loop-next applies"


def test_another_model_is_refused(models: ModuleType, loop_trace: Path) -> None:
    with pytest.raises(ModelError, match="another model"):
        list(replay(read_trace(loop_trace), load_proto(models.loop(limit=99)), [1], models.meaning))


def test_changed_bytes_of_a_value_are_found(models: ModuleType, loop_trace: Path) -> None:
    values = loop_trace.with_name(loop_trace.name + SUFFIX)
    values.write_bytes(b"\x01" * len(values.read_bytes()))
    with pytest.raises(ModelError, match="keep the two"):
        list(replay(read_trace(loop_trace), load_proto(models.loop()), [2], models.meaning))


@pytest.mark.parametrize("text", ["", "{}\n", "[]\n", "not json\n", '{"sonnx":"trace","version":99}\n', "\xff\n"])
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t").write_bytes(text.encode("latin-1"))
    with pytest.raises(ModelError):
        read_trace(tmp_path / "t")


def test_hostile_lines_are_refused_with_one_line(models: ModuleType, loop_trace: Path) -> None:
    original = loop_trace.read_text()
    for key in ("reads", "writes", "node", "rule", "run", "runs", "kept"):
        for value in (None, 7, "x", [], [None], [{}], {}, [[{}]], "/0:Loop.body@99999999/"):
            loop_trace.write_text(original)

            def change(lines: Lines, key: str = key, value: Any = value) -> None:
                lines[6][key] = value

            trace = changed(loop_trace, change, rechain=True)
            try:
                list(replay(trace, load_proto(models.loop()), [6], models.meaning))
            except ModelError as error:
                assert "\n" not in str(error)


def test_a_stuck_run_ends_its_trace_with_the_reason(models: ModuleType, tmp_path: Path) -> None:
    traced(models, models.diamond(), CASES["diamond"][2], tmp_path / "t", limits=Limits(steps=2))
    trace = read_trace(tmp_path / "t")
    assert trace.end is not None and len(trace.steps) == 2 and trace.end["outputs"] == []
