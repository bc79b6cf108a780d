"""While the execution runs: pause, cancel, progress, restart, disconnect, and clients that go away."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dap_adapters import COMMAND, connected, spawned
from dap_client import Client, Json
from dap_listing import at, source


def run(client: Client, endless: Json) -> int:
    """Begins to run what does not end; the number of the request."""
    client.begin(endless)
    seq = client.send("continue", {"threadId": 1})
    assert client.answer(seq).success
    time.sleep(0.2)
    return seq


def test_a_pause_stands_still_soon_and_the_execution_goes_on(client: Client, endless: Json) -> None:
    run(client, endless)
    before = -1
    for _ in range(3):
        started = time.monotonic()
        client.request("pause", {"threadId": 1})
        assert client.stopped()["reason"] == "pause"
        assert time.monotonic() - started < 5
        step = int(client.evaluate("when")["result"].split()[1].strip(":,."))
        assert step > before
        before = step
        client.request("continue", {"threadId": 1})
    client.end()


def test_a_pause_of_what_stands_still_changes_nothing(client: Client, nested: Json) -> None:
    client.begin(nested)
    line = client.line()
    client.request("pause", {"threadId": 1})
    assert client.line() == line
    client.move("next")
    assert len(client.events("stopped")) == 2
    client.end()


def test_what_takes_long_shows_progress_and_can_be_cancelled(client: Client, endless: Json) -> None:
    seq = run(client, endless)
    start = client.event("progressStart")
    assert start["cancellable"] and start["requestId"] == seq and start["title"]
    assert client.event("progressUpdate")["progressId"] == start["progressId"]
    client.request("cancel", {"progressId": start["progressId"]})
    assert client.event("progressEnd")["progressId"] == start["progressId"]
    assert client.stopped()["reason"] == "pause"
    client.end()


def test_a_client_that_shows_no_progress_hears_of_none(client: Client, endless: Json) -> None:
    client.begin(endless, says={"supportsProgressReporting": False})
    client.request("continue", {"threadId": 1})
    time.sleep(1)
    client.request("pause", {"threadId": 1})
    client.stopped()
    assert not any("progress" in m.get("event", "") for _, m in client.log)
    client.end()


def test_a_request_can_be_cancelled_while_it_runs_and_before_it_begins(client: Client, endless: Json) -> None:
    client.begin(endless)
    first = client.send("continue", {"threadId": 1})
    second = client.send("evaluate", {"expression": "x", "context": "watch"})
    time.sleep(0.2)
    client.request("cancel", {"requestId": second})
    client.request("cancel", {"requestId": first})
    assert client.stopped()["reason"] == "pause"
    refused = client.answer(second)
    assert not refused.success and refused.message == "cancelled"
    assert client.ask("cancel", {"requestId": 99999}).success
    client.end()


@pytest.mark.parametrize("ending", ["cancel", "pause"])
def test_a_run_that_makes_room_is_cancelled_and_paused_all_the_same(client: Client, endless: Json, ending: str) -> None:
    """Whether the run goes on, stands still for another request, or is about to, when the end of it is asked for."""
    client.begin(endless)
    where = source(client)
    for before in range(8):
        seq = client.send("continue", {"threadId": 1})
        time.sleep(0.002 * before)
        packets = [client.packet("setBreakpoints", {"source": where, "breakpoints": []}) for _ in range(before)]
        given = {"threadId": 1} if ending == "pause" else {"requestId": seq}
        packets += [client.packet(ending, given), client.packet("threads")]
        client.write(b"".join(content for _, content in packets))
        assert client.stopped()["reason"] == "pause"
        assert all(client.answer(asked).success for asked, _ in packets)
    assert len(client.events("stopped")) == 9
    client.end()


def test_requests_wait_until_the_execution_stands_still(client: Client, endless: Json) -> None:
    """What is asked while it runs is answered about the state in which it stands still, not refused or mixed up."""
    run(client, endless)
    asked = client.send("stackTrace", {"threadId": 1})
    client.request("pause", {"threadId": 1})
    client.stopped()
    assert client.answer(asked).body["stackFrames"]
    client.end()


def test_a_breakpoint_that_is_set_while_it_runs_is_met(client: Client, endless: Json) -> None:
    client.begin(endless)
    where, line = source(client), at(client, "Neg(")
    client.request("continue", {"threadId": 1})
    time.sleep(0.2)
    answered = client.request("setBreakpoints", {"source": where, "breakpoints": [{"line": line}]})["breakpoints"]
    assert answered[0]["verified"]
    stopped = client.stopped()
    assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("breakpoint", [answered[0]["id"]])
    assert client.line() == line
    client.end()


def test_restart_while_it_runs_begins_anew(client: Client, endless: Json) -> None:
    run(client, endless)
    client.request("restart", {})
    while (stopped := client.stopped())["reason"] == "pause":
        pass
    assert stopped["reason"] == "entry"
    assert client.line() == client.frames()[-1]["line"]
    client.end()


@pytest.mark.parametrize("how", ["disconnect", "terminate"])
def test_the_session_ends_while_it_runs(client: Client, endless: Json, how: str) -> None:
    run(client, endless)
    started = time.monotonic()
    client.request(how, {})
    client.event("terminated")
    assert time.monotonic() - started < 5
    if how == "terminate":
        client.end()


# ---- Processes --------------------------------------------------------------------------------


def test_an_adapter_ends_with_code_0_when_its_client_disconnects(endless: Json) -> None:
    with spawned() as client:
        run(client, endless)
        client.end()


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _gone(group: int, seconds: float = 15) -> bool:
    until = time.monotonic() + seconds
    while _alive(group) and time.monotonic() < until:
        time.sleep(0.05)
    return not _alive(group)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are POSIX")
@pytest.mark.parametrize("running", [False, True])
def test_killing_the_client_leaves_no_process(endless: Json, running: bool) -> None:
    """The client is a process of its own that is killed; the adapter, in a group of its own, ends by itself."""
    program = f"""
import sys, time
sys.path[:0] = {sys.path!r}
import subprocess
import dap_client
from dap_adapters import spawned
real = subprocess.Popen
subprocess.Popen = lambda *a, **k: real(*a, start_new_session=True, **k)
client = spawned()
client.begin({endless!r})
if {running}:
    client.request("continue", {{"threadId": 1}})
print(client.process.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        try:
            line = parent.stdout.readline() if parent.stdout else b""
            group = int(line)
            assert _alive(group)
            parent.send_signal(signal.SIGKILL)
            parent.wait()
            assert _gone(group)
        finally:
            parent.kill()


def test_an_operator_that_cannot_be_interrupted_does_not_keep_the_process(endless: Json) -> None:
    program = """
import time
import sonnx.semantics.debugger.commands.table as table
real = table.execute
table.execute = lambda session, line: time.sleep(600) if line == "continue" else real(session, line)
from sonnx.spec.cli import main
main()
"""
    with spawned(command=(*COMMAND[:2], program, "dap")) as client:
        client.begin(endless)
        client.request("continue", {"threadId": 1})
        assert client.process is not None and client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(15) == 0


def test_a_client_that_hangs_up_makes_room_for_the_next_one(port: int, endless: Json) -> None:
    for _ in range(3):
        with connected(port) as client:
            run(client, endless)
    with connected(port) as client:
        client.begin(endless)
        client.end()


def test_a_port_listens_on_this_machine_alone(port: int) -> None:
    """The listening socket is bound to 127.0.0.1: read off the kernel's table, or tried from the other addresses."""
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("the table of sockets is Linux's")
    bound = {row.split()[1] for row in table.read_text().splitlines()[1:] if row.split()[3] == "0A"}
    assert [it for it in bound if it.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]
    six = Path("/proc/net/tcp6")
    listening = [row.split() for row in six.read_text().splitlines()[1:]] if six.exists() else []
    assert not [it for it in listening if it[3] == "0A" and it[1].endswith(f":{port:04X}")]


def test_a_web_page_cannot_speak_to_the_port(port: int) -> None:
    """A browser's request is no message; the connection ends before its body is read."""
    body = b'Content-Length: 60\r\n\r\n{"seq":1,"type":"request","command":"initialize","arguments":{}}'
    with socket.create_connection(("127.0.0.1", port), timeout=20) as link:
        link.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        got = b"".join(iter(lambda: link.recv(1 << 16), b""))
    assert b'"initialize"' not in got and b"supports" not in got


def test_a_port_in_use_is_refused_in_one_line(port: int) -> None:
    done = subprocess.run([*COMMAND, "--port", str(port)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr
