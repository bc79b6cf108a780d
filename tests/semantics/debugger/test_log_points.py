"""Log points, counts of hits, conditions that are looked at when they are set, and frames that are begun again."""

from __future__ import annotations

from pathlib import Path

import pytest
from debugger_models import GIVEN, NESTED, answer, model, nested, stopped, text
from hypothesis import given
from hypothesis import strategies as st
from sonnx.semantics import Schedule
from sonnx.semantics.debugger.commands.table import execute
from sonnx.semantics.debugger.display.answers import Logged, Refusal
from sonnx.semantics.debugger.session.motion import entry
from sonnx.semantics.debugger.session.opening import opened, recorded
from sonnx.semantics.debugger.stops import count_of, message_of
from sonnx.semantics.debugger.timeline.history import Refused, call_frames
from tables import table

S2 = "/4:Loop.body/1:Add"


def test_a_log_point_speaks_at_each_run_and_does_not_stop() -> None:
    found, end = stopped(nested(), f'log {S2} says "run {{$run}}: {{s[0]}} {{{{x}}}}"', "continue")
    assert end.reason == "end" and not end.hits
    said = [(it.text, it.line, it.step) for it in end.logged]
    assert said == [("run 0: -8.0 {x}", 30, 11), ("run 1: -7.0 {x}", 30, 16), ("run 2: -6.0 {x}", 30, 21)]
    assert not stopped(found, "reverse-continue")[1].logged
    assert "line 30: run 1: -7.0 {x}" in text(nested(), f'log {S2} says "run {{$run}}: {{s[0]}} {{{{x}}}}"', "run")


def test_a_log_point_at_the_first_node_speaks_when_the_run_begins() -> None:
    assert stopped(nested(), 'log 9 says "begun"', "run")[1].logged == (Logged("begun", 0, 9),)


def test_a_breakpoint_at_the_first_node_is_met_when_the_run_begins() -> None:
    found, first = stopped(nested(), "break 9", "run")
    assert (first.reason, found.index) == ("breakpoint", 0)


def test_what_has_no_value_yet_is_said_in_place_of_it() -> None:
    (line,) = stopped(nested(), 'log 9 says "h: {h}"', "run")[1].logged
    assert line.text.startswith("h: <") and "no value yet" in line.text


def test_log_points_have_counts_conditions_and_a_row_in_the_table() -> None:
    found, end = stopped(nested(), f'log {S2} says "{{$run}}" hit >=2 if s[0] > -7.5', "run")
    assert [it.text for it in end.logged] == ["2"]
    assert "hit >=2 says" in text(found, "info breakpoints")


@pytest.mark.parametrize("message", ["{", "a } b", "{x", "{x +}", "x" * 3000])
def test_a_message_that_cannot_be_read_is_refused_when_it_is_set(message: str) -> None:
    with pytest.raises(Refused):
        message_of(message)


# ---- Counts -----------------------------------------------------------------------------------


@table(
    ("text_", "admitted"),
    [
        ("2", [2]), ("==2", [2]), ("= 2", [2]), (">2", [3, 4]), (">=2", [2, 3, 4]), ("<2", [1]), ("<= 2", [1, 2]),
        ("%2", [2, 4]),
    ],
)  # fmt: skip
def test_a_count_admits_what_it_says(text_: str, admitted: list[int]) -> None:
    assert [n for n in range(1, 5) if count_of(text_).admits(n)] == admitted


@given(st.text(max_size=6))
def test_a_count_is_read_back_as_it_is_written_or_refused(text_: str) -> None:
    try:
        found = count_of(text_)
    except Refused:
        return
    assert count_of(str(found)) == found


def runs_stopped_at(line: str) -> list[int]:
    """The runs of the body in which a stop is met, going forward."""
    found, runs = answer(nested(), line)[0], []
    while (outcome := execute(found, "continue")).session.moment.next is not None:
        found = outcome.session
        runs.append(found.state.frame.run)
    return runs


@pytest.mark.parametrize(("count", "runs"), [("hit 2", [1]), ("hit >=2", [1, 2]), ("hit %2", [1]), ("", [0, 1, 2])])
def test_counts_count_the_runs_of_a_body_for_breakpoints_and_watches(count: str, runs: list[int]) -> None:
    assert runs_stopped_at(f"break {S2} {count}".strip()) == runs
    assert runs_stopped_at(f'watch `/4:Loop.body/"s2"` {count}'.strip()) == runs


def test_a_count_is_a_function_of_the_position() -> None:
    found, _ = stopped(nested(), f"break {S2} hit 2", "run")
    at = found.index
    assert stopped(found, "seek end", "reverse-continue")[0].index == at
    assert stopped(found, "seek 0", "continue")[0].index == at


# ---- Conditions -------------------------------------------------------------------------------


@table(
    ("line", "why"),
    [
        ("break 9 if nonsense > 1", "no tensor"),
        ("break 9 if a[nonsense] > 1", "no tensor"),
        ("watch a if $nothing", "no $nothing"),
        ("catch nan if Add", "no tensor"),
        ("break 9 if total(a) > 1", "no function"),
        ("break 9 if 'text'", "one number"),
    ],
)
def test_a_condition_with_a_name_that_nothing_has_is_refused_when_it_is_set(line: str, why: str) -> None:
    found, got = answer(nested(), line)
    assert isinstance(got, Refusal) and why in got.message
    assert not found.stops


def test_a_condition_that_cannot_be_decided_names_its_stop() -> None:
    _, got = answer(nested(), "break 9", "break 16 if a", "continue")
    assert isinstance(got, Refusal) and "the condition of stop 2" in got.message


def test_a_catch_can_have_a_condition_on_the_node() -> None:
    source = '<ir_version: 10, opset_import: ["" : 18]> g (float[1] x) => (float[1] y) { a = Log(x) y = Sqrt(x) }'
    import numpy as np
    from debugger_models import session

    begun = session(source, {"x": np.array([-1], np.float32)})
    assert stopped(begun, "catch nan if $op == 'Sqrt'", "run")[0].index == 2
    assert stopped(begun, "catch nan", "run")[0].index == 1


# ---- Frames and recorded runs -----------------------------------------------------------------


def test_going_to_the_entry_of_a_frame_is_the_first_moment_of_that_run() -> None:
    found, _ = stopped(nested(), "break /4:Loop.body@1/2:local::Twice!1:Identity", "run")
    innermost = len(call_frames(found.state, found.moment.next))
    for frame in range(innermost):
        there = entry(found, frame).session
        here = call_frames(there.state, there.moment.next)
        assert [it.path for it in here[: innermost - frame]] == [
            it.path for it in call_frames(found.state, found.moment.next)[: innermost - frame]
        ]
        assert entry(there, len(here) - (innermost - frame)).session.index == there.index
    assert entry(found, innermost - 1).session.index == 0


def test_a_recorded_run_is_followed_with_its_inputs_and_order(tmp_path: Path) -> None:
    import numpy as np
    import onnx
    from sonnx.spec.cli import run

    file, inputs, trace = tmp_path / "n.onnx", tmp_path / "n.npz", tmp_path / "n.trace"
    onnx.save(model(NESTED), file)
    np.savez(inputs, **GIVEN)
    assert run(["run", str(file), "--input", str(inputs), "--schedule", "random:5", "--trace", str(trace)]) == 0
    one, other = recorded(file, trace), opened(file, (str(inputs),), None, Schedule("random", 5))
    one.history.finish()
    other.history.finish()
    assert one.history.last == other.history.last
    assert [one.history.at(i).next for i in range(one.history.last)] == [
        other.history.at(i).next for i in range(one.history.last)
    ]
    assert stopped(one, f"catch divergence '{trace}'", "run")[1].reason == "end"
