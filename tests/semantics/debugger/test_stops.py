"""Breakpoints, watches and catches are met at the same places forward and back, whenever they were set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from debugger_models import GIVEN, NESTED, answer, nested, session, stopped, text
from onnx import TensorProto, helper
from sonnx.semantics.debugger.display.answers import Refusal
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.resources.persistent import items
from tables import table


def met(found: Session, *first: str, command: str = "continue", most: int = 12) -> list[int]:
    """Where a command stands still, one time after the other, until the end or the start."""
    for line in first:
        found, _ = answer(found, line)
    seen = []
    for _ in range(most):
        found, got = stopped(found, command)
        if got.reason in ("end", "start"):
            break
        seen.append(got.where.index)
    return seen


BREAKPOINTS = {
    "break 9": [0],
    "break 11": [1],
    "break 30": [11, 16, 21],
    "break op:If": [5],
    "break If": [5],
    "break op:Ad?": [0, 1, 3, 11, 12, 16, 17, 21, 22],
    "break function:local::Twice": [1, 3, 12, 17, 22],
    "break 10": [1],
    "break /4:Loop.body/1:Add": [11, 16, 21],
    "break /4:Loop.body@1/1:Add": [16],
    "break /4:Loop.body/1:Add hit 2": [16],
    "break /4:Loop.body/1:Add if $run == 2": [21],
    "break op:Add if s[0] > -7 and $depth == 1": [21, 22],
    "break 12 if any(t < 0)": [2],
    "break 19": [],
    "break 23": [8],
    "break 34": [14, 19, 24],
    "break 35": [25],
    "break return /": [25],
    "break return /4:Loop.body": [14, 19, 24],
    "break return /4:Loop.body@1": [19],
    "break return /4:Loop.body if $run == 2": [24],
    "break /4:Loop.body@1": [15, 16, 17, 18],
    "break /4:Loop.body@1/2:local::Twice": [17],
    'break /4:Loop.body@1/"s2"': [16],
}

CALLS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
calls (float[2] x, int64 n) => (float[2] y)
{
  [first] a = local.Outer (x)
  y = Loop (n, , a) <body = body (int64 i, bool go, float[2] s) => (bool go2, float[2] s2) {
    [kept] go2 = Identity (go)
    [within] s2 = local.Outer (s)
  }>
}
<domain: "local", opset_import: ["" : 18, "local" : 1]>
Outer (v) => (w)
{
  [inner] t = local.Inner (v)
  w = Identity (t)
}
<domain: "local", opset_import: ["" : 18]>
Inner (v) => (w)
{
  w = Neg (v)
}
"""
"""Calls with names: in the main graph, in a body, and in another call."""
NAMED = {
    "break first": [0],
    "break name:within": [4, 8],
    "break inner": [0, 4, 8],
    "break name:*": [0, 3, 4, 7, 8],
    "break local::Inner": [0, 4, 8],
    "break local::Outer": [0, 4, 8],
    "break function:local::*": [0, 4, 8],
    'break /1:Loop.body@1/1:local::Outer("within")': [8],
    'break /1:Loop.body@1/1:local::Outer("within")!0:local::Inner("inner")': [8],
}


@table("line", BREAKPOINTS)
def test_breakpoints_are_met_forward_and_back_at_the_same_places(line: str) -> None:
    expected = BREAKPOINTS[line]
    assert met(nested(), line) == [it for it in expected if it]
    back = [it for it in expected if it != 25]  # the end, where one stands
    assert met(nested(), "seek end", line, command="reverse-continue") == back[::-1]


@table("line", NAMED)
def test_calls_are_met_by_their_names_and_functions_in_bodies_and_in_calls(line: str) -> None:
    found = session(CALLS, {"x": GIVEN["x"], "n": np.array(2)})
    expected = NAMED[line]
    assert met(found, line) == [it for it in expected if it]
    assert met(found, "seek end", line, command="reverse-continue") == expected[::-1]


def test_a_breakpoint_for_what_comes_next_at_the_end_of_a_body_is_on_its_return() -> None:
    found = answer(nested(), "seek 14", "break")[0]
    assert text(found, "info breakpoints").splitlines()[-1].split()[2:] == ["return", "/4:Loop.body"]
    assert met(found) == [19, 24]


def test_what_can_never_be_met_is_refused() -> None:
    lines = {
        "break Twice": '"local::Twice"',
        "break /3:If.then_branch@0/0:Neg": "a branch has no runs",
        "break return op:Add": "a path begins with /",
        "break return /0:Add": "is no graph",
        "watch x": "is an input: no step writes it",
        "cwatch n": "is an input: no step writes it",
    }
    for line, said in lines.items():
        got = answer(nested(), line)[1]
        assert isinstance(got, Refusal) and said in f"{got.message} {got.candidates}", (line, got)


def test_a_fault_is_caught_in_a_call_and_in_a_run() -> None:
    found = session(CALLS, {"x": np.array([np.nan, 0], np.float32), "n": np.array(2)})
    assert met(found, "catch nan at local::Inner") == [1, 5, 9]
    assert met(found, "catch nan at /1:Loop.body@1") == [9, 10]


def test_a_hit_is_counted_on_the_timeline_not_by_driving_past() -> None:
    found = nested()
    for line in ("break 30 hit 3", "continue", "reverse-continue", "seek 12", "continue"):
        found, _ = answer(found, line)
    assert found.index == 21


def test_run_begins_again_and_a_temporary_breakpoint_is_met_once() -> None:
    assert met(nested(), "tbreak 30") == [11]
    _, got = stopped(nested(), "break 16", "seek 20", "run")
    assert got.where.index == 5


WATCHES = {
    "watch s": [10, 15, 20],
    'watch `/4:Loop.body@1/"s"`': [15],
    "watch s if $new[0] == -7": [15],
    "cwatch go": [10],
    "watch y": [25],
    "watch y[1]": [25],
    "cwatch go2": [11],
    "rwatch a": [2],
    "awatch b": [3, 4],
}


@table("line", WATCHES)
def test_a_watch_stops_after_the_access_forward_and_before_it_back(line: str) -> None:
    expected = WATCHES[line]
    assert met(nested(), line) == expected
    assert met(nested(), "seek end", line, command="reverse-continue") == [it - 1 for it in expected[::-1]]


def test_the_write_of_an_element_is_shown_with_its_value_before_and_after() -> None:
    _, got = stopped(nested(), "seek end", "cwatch s[0]", "reverse-continue")
    assert (got.where.index, got.hits[0].old, got.hits[0].new) == (19, "-7", "-6")


def test_bytes_can_be_watched() -> None:
    found, _ = answer(nested(), "seek end")
    place = next(iter(found.history.at(25).came.places))  # type: ignore[union-attr]
    line = f"watch @{place.offset + 5}:2"
    assert met(nested(), line) == [25]
    assert met(found, f"cwatch @0x{place.offset:x}", command="reverse-continue") == [24]
    assert met(nested(), f"watch @{place.offset + 8}") == []


def test_a_byte_is_watched_where_a_step_writes_it_and_nowhere_else() -> None:
    """Against M itself: the bytes of which a state holds another buffer than the state before."""
    found, _ = answer(nested(), "seek end")
    for first, length in ((0x40, 4), (0x100, 1), (0x11F, 2), (0x180, 256), (0, 4096)):
        written = [it for it in range(1, found.index + 1) if renewed(found, it, range(first, first + length))]
        back = met(found, f"watch @{first}:{length}", command="reverse-continue", most=30)
        assert met(nested(), f"watch @{first:#x}:{length}", most=30) == written == [it + 1 for it in back[::-1]]


def renewed(found: Session, index: int, addresses: range) -> bool:
    states = (found.history.at(it).state.store.memory for it in (index - 1, index))
    before, after = ({at + i: id(data) for at, data in items(it.segments) for i in range(len(data))} for it in states)
    return any(at in after and before.get(at) != after[at] for at in addresses)


def test_bytes_are_watched_where_they_are_read_and_under_a_condition() -> None:
    found, _ = answer(nested(), "seek end")
    (place,) = found.history.at(2).came.places  # type: ignore[union-attr]
    at = f"@0{place.offset}:8"  # a 0 in front is no octal number
    assert met(nested(), f"rwatch {at}") == [3]
    assert met(nested(), f"awatch {at}") == [2, 3]
    minus_eight = (np.float32(-8).tobytes())[-1]
    assert met(nested(), f"watch {at} if $new[7] == {minus_eight}") == [2]
    assert met(nested(), f"watch {at} if $new[7] == {minus_eight} - 1") == []


def test_a_range_counts_as_changed_where_any_byte_of_it_is_also_behind_those_that_are_shown() -> None:
    written = met(nested(), "watch @0:4096", most=30)
    assert met(nested(), "cwatch @0:4096", most=30) == written and written[-1] == 25
    found, got = stopped(nested(), "cwatch @0:4096", "continue")
    (place,) = found.history.at(1).came.places  # type: ignore[union-attr]
    assert got.hits[0].text == f'/0:Add writes /"a" at byte {place.offset}'
    assert (got.hits[0].old, got.hits[0].new) == ("?? ?? ?? ?? ?? ?? ?? ??", "00 00 00 40 00 00 80 c0")


STRANGE = """<ir_version: 10, opset_import: ["" : 18]>
strange (float[3] x) => (float[3] y) {
  big = Constant <value = float[1] {3e38}> ()
  tiny = Constant <value = float[1] {1e-39}> ()
  a = Mul (x, big)
  b = Mul (x, tiny)
  c = Sub (a, a)
  y = Relu (c)
}"""
"""A product that overflows in element 1, a difference of infinities, and subnormal numbers."""


def strange() -> Session:
    return session(STRANGE, {"x": np.array([1.0, 2.0, 3.0], np.float32)})


@pytest.mark.parametrize(
    ("what", "at", "element", "value"),
    [
        ("overflow", 3, (1,), "inf"),
        ("inf", 3, (1,), "inf"),
        ("subnormal", 2, (0,), "1e-39"),
        ("nan", 5, (1,), "nan"),
    ],
)
def test_a_planted_fault_is_found_at_its_node_and_element_by_one_command(
    what: str, at: int, element: tuple[int, ...], value: str
) -> None:
    for lines in ((f"find {what}",), (f"catch {what}", "continue")):
        found, got = stopped(strange(), *lines)
        assert (got.reason, found.index) == ("catch", at)
        assert (got.hits[0].element, got.hits[0].new) == (element, value)
    assert at - 1 in met(strange(), "seek end", f"catch {what}", command="reverse-continue")


def test_a_catch_can_be_confined_to_nodes() -> None:
    assert met(strange(), "catch nan at op:Relu") == [6]


def test_a_nan_is_caught_where_it_is_generated_or_everywhere() -> None:
    assert met(strange(), "catch nan") == [5] and met(strange(), "catch nan everywhere") == [5, 6]
    shown = text(strange(), "catch nan", "catch inf everywhere", "info breakpoints")
    assert "where generated" in shown and "everywhere" in shown


def test_a_failed_precondition_is_caught_where_the_run_is_stuck() -> None:
    proto = """<ir_version: 10, opset_import: ["" : 18]>
    g (float[2] x, int64[1] i) => (float[1] y) { a = Neg (x)  y = Gather (a, i) }"""
    found = session(proto, {"x": np.ones(2, np.float32), "i": np.array([5])})
    found, got = stopped(found, "catch precondition", "continue")
    assert (got.reason, found.index) == ("catch", 1)
    assert "Gather" in got.hits[0].text
    assert stopped(found, "reverse-step")[0].index == 0


def test_elements_that_the_text_leaves_open_are_caught() -> None:
    names = ["seq", "s", "n"]
    body = helper.make_graph(
        [helper.make_node("Identity", ["bi"], ["bo"]), helper.make_node("Identity", ["bi"], ["bx"])],
        "b",
        [helper.make_tensor_value_info("bs", 1, []), helper.make_tensor_value_info("bi", 1, [])],
        [helper.make_tensor_value_info("bo", 1, []), helper.make_tensor_value_info("bx", 1, [])],
    )
    node = helper.make_node("Scan", names, ["f", "y"], body=body, num_scan_inputs=1)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("seq", TensorProto.INT64, [1]),
            helper.make_tensor_value_info("s", 1, [1]),
            helper.make_tensor_value_info("n", 1, [1, 3]),
        ],
        [helper.make_tensor_value_info("y", 1, [1, 3])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=3)
    given = {"seq": np.array([2]), "s": np.zeros(1, np.float32), "n": np.ones((1, 3), np.float32)}
    _, got = stopped(session(proto, given), "catch undefined", "continue")
    assert got.hits[0].element == (0, 2)


def test_a_divergence_from_a_recorded_run_is_found_at_its_first_element(tmp_path: Path) -> None:
    record(tmp_path / "one", GIVEN)
    record(tmp_path / "two", {**GIVEN, "n": np.array(2)})
    other = session(NESTED, {**GIVEN, "x": np.array([1.0, -3.0], np.float32)})
    found, got = stopped(other, f"catch divergence {tmp_path / 'one'}", "continue")
    assert (found.index, got.hits[0].element, got.hits[0].new, got.hits[0].old) == (1, (1,), "-6.0", "-4.0")
    assert met(nested(), f"catch divergence {tmp_path / 'one'}") == []
    shown = text(nested(), f"first-diff {tmp_path / 'one'} {tmp_path / 'two'}")
    assert '/"y"[0]' in shown and "2097152" in shown  # -5 and -6, so many floats apart
    assert "no difference" in text(nested(), f"first-diff {tmp_path / 'one'}")
    (tmp_path / "bad").write_text("nothing")
    assert isinstance(answer(nested(), f"catch divergence {tmp_path / 'bad'}")[1], Refusal)


def record(path: Path, inputs: dict[str, object]) -> None:
    from debugger_models import model
    from sonnx.semantics import load_proto
    from sonnx.semantics.machine.execution import run
    from sonnx.semantics.machine.trace.writing import Tracer

    with path.open("w") as lines, path.with_name(path.name + ".values").open("wb") as values:
        run(load_proto(model(NESTED)), inputs, observers=[Tracer(lines, values)])  # type: ignore[arg-type]


def test_stops_are_listed_switched_off_and_deleted() -> None:
    found, _ = answer(nested(), "break 30", "watch s", "catch nan", "disable 1")
    shown = text(found, "info breakpoints").splitlines()
    assert [row.split()[0] for row in shown[2:]] == ["1", "2", "3"]
    assert shown[2].endswith("off")
    shown = text(found, "break 16 hit 2 if any(t > 0) and $run != 1", "info breakpoints").splitlines()
    assert shown[-1].endswith("hit 2 if any(t > 0) and ($run != 1)")
    assert met(found, "delete 2") == []
    assert met(found, "delete 2", "enable 1") == [11, 16, 21]
    assert met(found, "delete 2", "enable 1", "condition 1 $run == 1") == [16]
    assert isinstance(answer(found, "delete 7")[1], Refusal)


NOT_SET = ["break nothing", "break 400", "watch nothing", "catch", "catch x", "break op:Add if s[", "watch @-1"]


@table("line", [*NOT_SET, "watch @0x40:0", "watch @1.5:2", f"watch @{1 << 80}:4", "watch @:4"])
def test_what_cannot_be_set_is_refused_and_changes_nothing(line: str) -> None:
    before = nested()
    after, got = answer(before, line)
    assert isinstance(got, Refusal) and after is before


def test_a_name_that_means_several_things_is_refused_with_the_candidates() -> None:
    proto = """<ir_version: 10, opset_import: ["" : 18]>
    g (float[1] x) => (float[1] y) { [Neg] a = Abs (x)  y = Neg (a) }"""
    found = session(proto, {"x": np.ones(1, np.float32)})
    got = answer(found, "break Neg")[1]
    assert isinstance(got, Refusal) and got.candidates == ("name:Neg", "op:Neg")
