"""Several commands on a line, other names for them, those that follow a stop, and what is shown at each stop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from debugger_models import answer, nested, session, text
from sonnx.semantics.debugger.commands.scripting import separate
from sonnx.semantics.debugger.commands.table import completed, completions
from sonnx.semantics.debugger.display.answers import Refusal, Stop
from sonnx.semantics.debugger.repl import batch, settings


def run(*script: str) -> tuple[list[str], int]:
    said: list[str] = []
    _, code, _ = batch(nested(), script, said.append, echo=False)
    return "".join(said).splitlines(), code


# ---- Lines ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("step; step", ("step", "step")),
        (" ; step ;; ", ("step",)),
        ('print "a;b"; print `/"a;b"`', ('print "a;b"', 'print `/"a;b"`')),
        ('log 9 says "a \\" ; b"', ('log 9 says "a \\" ; b"',)),
        ("print $op == 'a;b'", ("print $op == 'a;b'",)),
        ('print "open; step', ('print "open', "step")),
        ("", ()),
    ],
)
def test_commands_stand_between_semicolons_outside_of_quotes(line: str, parts: tuple[str, ...]) -> None:
    assert separate(nested(), line) == parts


def test_what_follows_a_refused_command_on_its_line_is_not_run() -> None:
    rows, code = run("step; nonsense; step")
    assert code == 2 and sum(it.startswith("step ") for it in rows) == 1


def test_an_alias_stands_for_commands_and_takes_their_arguments() -> None:
    found = answer(nested(), "alias two = step 2", 'alias see = "step; print"', "alias d = two")[0]
    assert separate(found, "two; see x") == ("step 2", "step", "print x")
    assert separate(found, "d") == ("two",)  # an alias of an alias is not looked up again
    assert separate(answer(found, "alias two =")[0], "two") == ("two",)
    assert "see  " in text(found, "alias")
    assert isinstance(answer(found, "alias 3 = step")[1], Refusal)


# ---- After stops --------------------------------------------------------------------------------


def test_commands_follow_a_stop_and_may_go_on() -> None:
    rows, code = run("break 30", 'commands 1 "print s[0]; continue"', "continue")
    assert [it for it in rows if "s" in it and "float" in it] == [f"s[0]: float[] = -{it}.0" for it in (8, 7, 6)]
    assert code == 0 and "the end" in rows
    assert isinstance(answer(nested(), "commands 7 step")[1], Refusal)
    rows, _ = run("break 30", 'commands 1 "print s[0]"', "commands 1", "continue")
    assert not any("float[]" in it for it in rows)


def test_expressions_are_shown_at_each_stop_with_what_keeps_them_from_a_value() -> None:
    found, shown = answer(nested(), "display b[0]", "display $step", "step")
    assert isinstance(shown, Stop) and [it.name for it in shown.displayed] == ["1: b[0]", "2: $step"]
    assert "no value" in shown.displayed[0].lines[0] and shown.displayed[1].elements == (1,)
    assert "1: b[0]: float[] = 4.0" in text(found, "seek 3")
    assert "b[0]" not in text(found, "undisplay 1", "seek 3") and "$step" not in text(found, "undisplay", "seek 3")
    assert isinstance(answer(found, "undisplay 3")[1], Refusal)
    assert isinstance(answer(found, "display 3 +")[1], Refusal)


def test_all_of_it_is_saved(tmp_path: Path) -> None:
    found = answer(nested(), "break 30", "display b", 'commands 1 "print s; continue"', "alias two = step 2")[0]
    again = answer(answer(found, f"save {tmp_path}/s")[0], f"load {tmp_path}/s")[0]
    assert (again.displays, again.follows, again.aliases) == (found.displays, found.follows, found.aliases)


# ---- Settings -----------------------------------------------------------------------------------


def test_a_file_of_settings_is_followed_and_what_is_wrong_in_it_is_told(tmp_path: Path) -> None:
    file, said = tmp_path / "rc", list[str]()
    assert settings(nested(), file, said.append).aliases == {} and not said
    file.write_text("# mine\n\nalias two = step 2\nnonsense\nbreak 30\n")
    found = settings(nested(), file, said.append)
    assert found.aliases == {"two": "step 2"} and len(found.stops) == 1
    assert len(said) == 1 and "line 4: there is no command" in said[0]
    file.write_bytes(b"\xff")
    settings(nested(), file, said.append)
    assert "no text in UTF-8" in said[-1]


# ---- Completion ---------------------------------------------------------------------------------

CALLS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
calls (float[2] x) => (float[2] y) { [first] a = local.Twice (x)  [last] y = Neg (a) }
<domain: "local", opset_import: ["" : 18]>
Twice (v) => (w) { [inner] w = Add (v, v) }
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("catch n", ("nan",)),
        ("find ", ("divergence", "inf", "nan", "overflow", "precondition", "subnormal", "undefined")),
        ("catch nan at l", ("last", "local::Twice")),
        ("catch nan ", ()),
        ("break l", ("last", "local::Twice")),
        ("b f", ("first",)),
        ("break 9 if y", ("y",)),
        ("break 9 if is", ("isinf", "isnan")),
        ("watch y if $s", ("$step",)),
        ("print y", ("y",)),
        ("disable ", ("1",)),
    ],
)
def test_completion_fits_the_command(line: str, words: tuple[str, ...]) -> None:
    found = answer(session(CALLS, {"x": np.ones(2, np.float32)}), "break last")[0]
    assert completions(found, line) == words
    assert tuple(it for it, _ in completed(found, line)[1]) == words


def test_after_if_every_tensor_is_offered() -> None:
    offered = completions(nested(), "break 9 if ")
    assert {"x", "y", "any", "$op"} <= set(offered)
