"""The table of commands: every one has help and examples, short forms are clear or refused, answers are data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import sonnx.semantics.debugger
from debugger_models import answer, nested, session, stopped, text
from onnx import helper
from sonnx.semantics.debugger.commands.table import COMMANDS, FAMILIES, completions, execute, lookup
from sonnx.semantics.debugger.display.answers import Note, Refusal
from sonnx.semantics.debugger.display.rendering import lines, prompt, to_json
from sonnx.semantics.debugger.session.session import where
from sonnx.semantics.debugger.timeline.history import Refused
from tables import table


@table(
    ("short", "name"),
    [("s", "step"), ("n", "next"), ("c", "continue"), ("rc", "reverse-continue"), ("b 3", "break"), ("p x", "print"),
     ("fini", "finish"), ("i b", "info breakpoints"), ("info ten", "info tensors"), ("expl", "explain"),
     ("ori", "origin"),
     ("reverse-c", "reverse-continue"), ("why-not", "why-not-ready"), ("bt", "where"), ("si", "stepi")],
)  # fmt: skip
def test_a_name_may_be_cut_short_as_long_as_it_is_clear(short: str, name: str) -> None:
    assert lookup(short)[0].name == name


@table(
    ("short", "some"),
    [("r", "run"), ("re", "reverse-step"), ("wh", "whatis"), ("why", "why-nan"), ("e", "enable"),
     ("info", "info memory"), ("st", "start")],
)  # fmt: skip
def test_an_unclear_name_is_refused_with_the_candidates(short: str, some: str) -> None:
    before = nested()
    after, got = answer(before, short)
    assert isinstance(got, Refusal) and some in got.candidates and after is before


def test_an_unknown_command_is_refused_with_what_is_close() -> None:
    got = answer(nested(), "stpe")[1]
    assert isinstance(got, Refusal) and "step" in got.candidates


def test_names_and_aliases_are_unique() -> None:
    names = [name for it in COMMANDS for name in (it.name, *it.aliases)]
    assert len(names) == len(set(names))


@table("command", [it for it in COMMANDS if it.name not in FAMILIES], ids=lambda it: it.name)
def test_every_command_has_help_with_examples_that_are_read_as_that_command(command: object) -> None:
    found = next(it for it in COMMANDS if it is command)
    assert found.summary.endswith(".") and found.examples
    for example in found.examples:
        assert lookup(example)[0] is found
    shown = text(nested(), f"help {found.name}")
    assert found.summary in shown and all(f"example: {it}" in shown for it in found.examples)
    assert found.name in text(nested(), "help")


def test_every_answer_is_frozen_data_and_one_line_of_json() -> None:
    found = nested()
    for line in (
        "step",
        "where",
        "list",
        "print a",
        "info ready",
        "help",
        "nothing",
        "seek end",
        "origin y[0]",
        "quit",
    ):
        outcome = execute(found, line)
        found = outcome.session
        assert outcome.answer.__dataclass_params__.frozen  # type: ignore[union-attr]
        made = to_json(outcome.answer)
        assert "\n" not in made and json.loads(made)["kind"]


def test_a_refused_command_leaves_the_session_as_it_was() -> None:
    before = nested()
    for line in (
        "step x",
        "step 0",
        "seek -9x",
        "up",
        "x 99999999",
        "set x = ",
        "bookmark a b",
        "timeline 7",
        "origin",
        "list 99",
    ):
        assert isinstance(answer(before, line)[1], Refusal), line
        assert answer(before, line)[0] is before


def test_completion_offers_commands_then_tensors_and_nodes() -> None:
    found = nested()
    assert completions(found, "reverse-s") == ("reverse-step", "reverse-stepi")
    assert completions(found, "print t") == ("t", "te")
    assert "Loop" in completions(found, "break L")
    assert completions(found, "info m") == ("memory",)


# ---- Edits ------------------------------------------------------------------------------------


def test_an_edit_forks_a_timeline_that_says_so_in_every_prompt_and_keeps_the_first_one() -> None:
    found, _ = stopped(nested(), "seek 1")
    edited, got = answer(found, "set a[0] = 100")
    assert isinstance(got, Note) and "cannot be certified" in got.lines[0]
    for line in ("step", "seek end", "seek 3", "reverse-step"):
        edited, stop = stopped(edited, line)
        assert "EDITED" in prompt(stop.where) and stop.where.edited.startswith('/"a"[0] set to 100.0')
    assert text(edited, "seek end", "print y") == '/"y": float[2] = -397.0 -22.0'
    assert text(edited, "timeline 0", "seek end", "print y") == '/"y": float[2] = -5.0 -22.0'
    assert "EDITED" not in prompt(where(answer(edited, "timeline 0")[0]))
    assert text(edited, "seek 1", "print a") == '/"a": float[2] = 100.0 -4.0'
    assert found.history.at(1) == nested_at(1)


def nested_at(index: int) -> object:
    found = nested()
    found.history.reach(index)
    made = found.history.at(index)
    return made if made == answer(nested(), f"seek {index}")[0].moment else None


@pytest.mark.parametrize(
    ("value", "message"), [("1.5", "is no int64"), ("1e30", "is no int64"), ("x", "has the shape [2]")]
)
def test_a_number_that_the_type_does_not_have_is_refused(value: str, message: str) -> None:
    got = answer(nested(), f"set n = {value}")[1]
    assert isinstance(got, Refusal) and message in got.message


def test_an_edit_in_a_body_goes_on_from_there() -> None:
    found, _ = answer(nested(), "seek 15", "set s[0] = 0", "seek end")
    assert text(found, "print y[0]") == "y[0]: float[] = 2.0"


# ---- Names of unknown origin ------------------------------------------------------------------


def test_no_name_of_a_model_reaches_the_terminal_as_it_is() -> None:
    bad = "\x1b[31mred\n(sonnx 3) quit\r\u202e"
    nodes = [
        helper.make_node("Neg", [bad], [bad + "1"], bad),
        helper.make_node("Div", [bad + "1", bad], [bad + "2"], bad + "b"),
    ]
    infos = [helper.make_tensor_value_info(name, 1, [1]) for name in (bad, bad + "2")]
    graph = helper.make_graph(nodes, bad, infos[:1], infos[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    given = {bad: np.zeros(1, np.float32)}
    found = session(proto, given)
    quoted = json.dumps(bad + "2")
    script = ["list", "info tensors", "info ready", "break op:Div", "catch nan", "continue", "continue", "where",
              "info breakpoints", f"print {quoted}", f"origin {quoted}[0]", f"why-nan {quoted}[0]",
              f"explain {quoted}[0]", f"last-write {quoted}", f"who-reads {json.dumps(bad)}", "why-not-ready op:Neg",
              f"set {quoted}[0] = 1", "timeline", "info schedule",
              f"print {bad}", f"break {bad}", bad, "memory", "info inputs", "print nothing" + bad]  # fmt: skip
    for line in script:
        outcome = execute(found, line)
        found = outcome.session
        for shown in (*lines(outcome.answer), to_json(outcome.answer), prompt(where(found))):
            assert shown.isascii() and shown.isprintable(), (line, shown)
    for line in script[:8]:
        assert not isinstance(answer(session(proto, given), *script[:4], line)[1], Refusal), line


def test_tensor_names_are_no_commands_and_no_python() -> None:
    with pytest.raises(Refused):
        lookup("__class__")
    for path in Path(str(sonnx.semantics.debugger.__file__)).parent.rglob("*.py"):
        found = set(re.findall(r"(?<!re\.)\b(eval|exec|compile)\(", path.read_text(encoding="utf-8")))
        assert found == ({"eval", "compile"} if path.name == "python.py" else set()), path  # the command `py`
