"""The debug console, completions, changed expressions."""

from __future__ import annotations

from pathlib import Path

import pytest
from dap_client import Client, Json
from sonnx.semantics.debugger.commands.table import COMMANDS


def test_each_command_can_be_typed(client: Client, nested: Json) -> None:
    client.begin({**nested, "allowEdits": True})
    for command in COMMANDS:
        if command.name in ("quit", "info"):
            continue
        found = client.evaluate(f"help {command.name}")
        assert found["result"].startswith(command.name)
    client.end()


def test_a_command_that_moves_is_answered_before_the_execution_is_said_to_stand_still(
    client: Client, nested: Json
) -> None:
    client.begin(nested)
    stops = len(client.events("stopped"))
    for text, reason in (("step 3", "step"), ("reverse-step", "step"), ("seek 2", "goto"), ("continue", "end")):
        found = client.ask("evaluate", {"expression": text, "context": "repl"})
        assert found.success and f"step {client.evaluate('$step', 'watch')['result']} " in found.body["result"] + " "
        assert client.stopped()["reason"] == reason
        places = [at for at, (_, it) in enumerate(client.log) if it.get("event") == "stopped"]
        stops += 1
        assert len(places) == stops and places[-1] > found.at
    client.end()


def test_a_command_that_only_shows_moves_nothing_and_keeps_references(client: Client, nested: Json) -> None:
    client.begin(nested)
    reference = client.scopes()["Tensors"]["variablesReference"]
    for text in ("info tensors", "where", "list", "print x", "when", "x", "1 + 1", "bookmark here", "break 12"):
        assert client.evaluate(text)["result"]
    assert client.variables(reference)
    assert len(client.events("stopped")) == 1
    client.end()


def test_a_tensor_with_the_name_of_a_command_is_shown(client: Client, nested: Json) -> None:
    client.begin(nested)
    shown = client.evaluate("x")
    assert shown["result"] == "float[2] [1.0, -2.0]" and shown["variablesReference"]
    client.end()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "no tensor"),
        ("py 1 + 1", "editors and saved sessions have none of it"),
        ("nonsense here", "no command"),
        ("re", "can mean"),
        ("print", "give an expression"),
        ("x[7]", "no position 7"),
        ("x +", "whole number"),
        ("y +", "not complete"),
        ("\x1b[2J", "cannot be read"),
        ("set x[0] = 1", "allowEdits"),
        ("poke x 0 00", "allowEdits"),
        ("x[", "not complete"),
        ("(" * 5000, "at most"),
    ],
)
def test_what_cannot_be_followed_says_why_in_one_line(client: Client, nested: Json, text: str, why: str) -> None:
    client.begin(nested)
    message = client.refused("evaluate", {"expression": text, "context": "repl", "frameId": client.frames()[0]["id"]})
    assert why in message and message.isprintable()
    client.end()


def test_lines_are_carried_out_one_after_the_other_until_one_is_refused(client: Client, nested: Json) -> None:
    client.begin(nested)
    found = client.evaluate("bookmark a\n\n  step\nprint a\n")
    assert found["result"].splitlines()[0] == "bookmark a: step 0" and "-4.0" in found["result"].splitlines()[-1]
    assert client.stopped()["reason"] == "step"
    assert client.refused("evaluate", {"expression": "step\nnonsense\nstep", "context": "repl"})
    assert client.evaluate("$step", "watch")["result"] == "2"
    client.end()


def test_an_expression_is_evaluated_in_its_frame(client: Client, nested: Json) -> None:
    client.begin(nested)
    client.evaluate("break /4:Loop.body@1/2:local::Twice!1:Identity")
    client.move("continue")
    inner, _, outer = (it["id"] for it in client.frames())
    assert client.evaluate("t", "watch", frameId=inner)["result"].startswith("float[2]")
    request = {"expression": "t", "context": "watch", "frameId": outer}
    assert "give a path" in client.refused("evaluate", request)
    client.move("next")
    assert "has moved" in client.refused("evaluate", request)
    assert client.evaluate("$step", "repl", frameId=outer)["result"]
    client.end()


@pytest.mark.parametrize(
    ("text", "column", "label", "start", "length"),
    [
        ("rev", 4, "reverse-next", 1, 3),
        ("info ", 6, "tensors", 6, 0),
        ("print max(", 11, None, 0, 0),
        ("print max(a", 12, "a", 11, 1),
        ("ab", 3, "abs", 1, 2),
        ("print $st", 10, "$step", 7, 3),
        ("break Ad", 9, "Add", 7, 2),
        ("print a + s", 12, "s2", 11, 1),
        ("𝄞𝄞 s", 7, "s2", 6, 1),
        ("rev and more", 4, "reverse-next", 1, 3),
    ],
)
def test_completions_say_what_they_stand_in_place_of(
    client: Client, nested: Json, text: str, column: int, label: str | None, start: int, length: int
) -> None:
    client.begin(nested)
    targets = client.request("completions", {"text": text, "column": column})["targets"]
    found = {it["label"]: (it["start"], it["length"]) for it in targets}
    assert label is None or found[label] == (start, length), found
    client.end()


def test_completions_are_of_the_line_that_is_typed(client: Client, nested: Json) -> None:
    client.begin(nested)
    found = client.request("completions", {"text": "step\nrev", "line": 2, "column": 4})["targets"]
    assert "reverse-next" in [it["label"] for it in found]
    client.end()


def test_a_changed_expression_runs_on(client: Client, nested: Json) -> None:
    client.begin({**nested, "allowEdits": True})
    frame = client.frames()[0]["id"]
    found = client.request("setExpression", {"expression": "x[1]", "value": "3", "frameId": frame})
    assert found["value"] == "3.0"
    assert client.event("memory", count=8)["memoryReference"] == client.evaluate("x", "watch")["memoryReference"]
    assert client.event("invalidated")["areas"] == ["stacks", "variables"]
    for expression, value in (("x", "d"), ("x[1]", "what"), ("abs(x)", "1"), ("x[1] + 1", "1"), ("c", "2")):
        arguments = {"expression": expression, "value": value, "frameId": frame}
        assert client.refused("setExpression", arguments)
    assert client.evaluate("set x[0] = 4")["result"].startswith("timeline 2")
    assert client.evaluate("x", "hover")["result"] == "float[2] [4.0, 3.0]"
    assert client.event("invalidated")
    client.move("next")
    assert client.evaluate("a", "hover")["result"] == "float[2] [8.0, 6.0]"
    client.end()


def test_quit_ends_the_session_of_the_editor(client: Client, nested: Json) -> None:
    client.begin(nested)
    client.evaluate("quit")
    assert client.event("terminated") == {}
    client.end()


def test_a_loaded_session_with_edits_is_refused_unless_edits_are_allowed(
    client: Client, nested: Json, tmp_path: Path
) -> None:
    client.begin({**nested, "allowEdits": True})
    for text in ("set x[0] = 4", f"save {tmp_path / 'edited.session'}"):
        client.evaluate(text)
    client.evaluate(f"load {tmp_path / 'edited.session'}")
    assert client.evaluate("x", "watch")["result"] == "float[2] [4.0, -2.0]"
    assert client.ask("restart", {"arguments": nested}, check=False).success  # the schema knows no options of adapters
    client.stopped()
    request = {"expression": f"load {tmp_path / 'edited.session'}", "context": "repl"}
    assert "allowEdits" in client.refused("evaluate", request)
    assert client.evaluate("x", "watch")["result"] == "float[2] [1.0, -2.0]"
    client.end()


def test_what_is_displayed_is_said_at_each_stop_and_several_commands_stand_on_a_line(
    client: Client, nested: Json
) -> None:
    client.begin(nested)
    assert client.evaluate("display a[0]; when")["result"].splitlines()[-1].startswith("step 0")
    client.move("next")
    assert "1: a[0]: float[] = 2.0\n" in [it["output"] for it in client.events("output")]
    assert "log point" in client.refused("evaluate", {"expression": 'commands 1 "step"', "context": "repl"})
    client.end()


def test_a_picture_of_the_graph_can_be_asked_for(client: Client, nested: Json, tmp_path: Path) -> None:
    client.begin(nested)
    path = tmp_path / "step.html"
    assert "for a browser" in client.evaluate(f"graph {path}")["result"]
    assert path.read_text().startswith("<!doctype html>")
    client.end()
