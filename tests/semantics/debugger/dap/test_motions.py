"""Steps, continues, their reverse, seeks, and commands of the console that move."""

from __future__ import annotations

from dap_client import Client, Json
from dap_listing import at, breaks, line_of, listed, source


def test_steps_go_over_into_and_out_of_bodies_and_calls(client: Client, nested: Json) -> None:
    client.begin(nested)
    lines = []
    for _ in range(4):
        client.move("next")
        lines.append(line_of(client))
    assert [it.split(" =")[0] for it in lines[2:]] == ['"e"', '"y", "h"']
    client.move("stepIn")
    assert line_of(client).startswith('"go2" = Identity') and len(client.frames()) == 2
    client.move("stepOut")
    assert len(client.frames()) == 1 and line_of(client).startswith("return")
    client.end()


def test_continue_ends_at_the_return_line_and_one_can_go_back(client: Client, nested: Json) -> None:
    client.begin(nested)
    client.request("continue", {"threadId": 1})
    client.stopped()
    assert line_of(client).startswith("return") and not client.events("terminated")
    client.request("next", {"threadId": 1})
    client.stopped()
    assert line_of(client).startswith("return")
    client.move("stepBack")
    assert "= Loop(" in line_of(client)
    client.end()


def test_reverse_steps_and_continues(client: Client, nested: Json) -> None:
    client.begin(nested)
    start = client.line()
    assert client.capabilities["supportsStepBack"]
    client.move("stepBack")
    assert client.line() == start
    client.move("continue")
    breaks(client, at(client, "= If("))
    assert client.move("reverseContinue")["reason"] == "breakpoint"
    assert "= If(" in line_of(client)
    client.move("reverseContinue")
    assert client.line() == start
    client.end()


def test_an_instruction_is_one_phase_of_a_transition(client: Client, nested: Json) -> None:
    client.begin(nested)
    line, texts = client.line(), []
    for _ in range(3):
        client.move("next", granularity="instruction")
        texts.append(client.evaluate("when")["result"])
        assert client.line() == line
    assert len(set(texts)) == 3
    client.move("stepBack", granularity="instruction")
    assert client.evaluate("when")["result"] == texts[1]
    client.move("next", granularity="statement")
    assert client.line() != line
    client.end()


def test_goto_is_a_seek_in_time(client: Client, nested: Json) -> None:
    client.begin(nested)
    client.move("continue")
    line = at(client, "= If(")
    targets = client.request("gotoTargets", {"source": source(client), "line": line})["targets"]
    assert targets and all(it["label"] and it["line"] == line for it in targets)
    client.request("goto", {"threadId": 1, "targetId": targets[0]["id"]})
    assert client.stopped()["reason"] == "goto"
    assert client.line() == line
    (first,) = client.request("gotoTargets", {"source": source(client), "line": 1})["targets"]
    assert first["line"] == at(client, '"a" = Add')
    end = {"source": source(client), "line": len(listed(client))}
    (last,) = client.request("gotoTargets", end)["targets"]
    client.request("goto", {"threadId": 1, "targetId": last["id"]})
    client.stopped()
    assert client.line() == last["line"] == len(listed(client))
    client.end()


def test_one_may_choose_what_to_step_into(client: Client, nested: Json) -> None:
    client.begin(nested)
    client.move("next")
    targets = client.request("stepInTargets", {"frameId": client.frames()[0]["id"]})["targets"]
    assert targets and all(it["label"] for it in targets)
    client.request("stepIn", {"threadId": 1, "targetId": targets[0]["id"]})
    client.stopped()
    assert client.frames()
    client.end()


def test_a_command_of_the_console_that_moves_is_followed_by_stopped(client: Client, nested: Json) -> None:
    client.begin(nested)
    seq = client.send("evaluate", {"expression": "next", "context": "repl"})
    assert client.answer(seq).success
    client.stopped()
    assert line_of(client).startswith('"')
    client.evaluate("break op:If")
    assert client.event("breakpoint")["reason"] == "new"
    client.evaluate("continue")
    assert client.stopped()["reason"] == "breakpoint"
    client.evaluate("delete")
    assert client.event("breakpoint", reason="removed")
    client.evaluate("reverse-finish")
    client.stopped()
    for unsafe in ("__import__('os')", "1 .__class__", "print (lambda: 1)()"):
        assert client.refused("evaluate", {"expression": unsafe, "context": "repl"})
    client.end()
