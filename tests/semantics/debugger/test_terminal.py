"""The terminal: answers keep to its width, lines are completed, Ctrl-C and Ctrl-D do what people expect."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from pathlib import Path

import onnx
import onnx.parser
import pytest
from debugger_models import NESTED, answer, nested
from sonnx.semantics.debugger.commands.table import completions, execute
from sonnx.semantics.debugger.display.answers import Note, Rows, cell_text
from sonnx.semantics.debugger.display.rendering import lines

PROGRAM = "from sonnx.spec.cli import main; main()"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_of_an_answer_is_wider_than_the_terminal_and_nothing_is_lost(width: int) -> None:
    found, _ = answer(nested(), "break op:Add if s[0] > -7 and $depth == 1", "seek 16")
    for line in ("help", "where", "origin s2[0]", "explain s2[0]", "info tensors", "info breakpoints", "why-branch",
                 "memory", "wh", "finish"):  # fmt: skip
        made = execute(found, line).answer
        folded = lines(made, width)
        assert max(map(len, folded)) <= width, line
        for plain in lines(made):
            for word in plain.split():
                assert word in "".join(folded).replace(" ", "") or len(word) > 10, (line, word)


def test_cells_go_on_below_themselves() -> None:
    made = Rows("a", ("b", "c"), (("one", "two three four five six seven"), ("x", "y")))
    assert lines(made, 24) == (
        "a:", "b    c", "one  two three four five", "      six seven", "x    y",
    )  # fmt: skip
    assert lines(Note(("one two three four",)), 12) == ("one two", "    three", "    four")
    assert lines(Note(("a\nb \x1b[31m",)), 80) == lines(Note(("a\nb \x1b[31m",)))


@pytest.mark.parametrize("width", [60, 120])
def test_no_path_is_torn_where_the_terminal_has_room_for_it(width: int) -> None:
    found, _ = answer(nested(), "break /4:Loop.body/2:local::Twice!0:Add", "seek 18")
    for line in ("where", "info tensors", "info breakpoints", "origin s2[0]", "why-branch", "memory", "who-reads s2"):
        got = execute(found, line).answer
        assert isinstance(got, Rows)
        shown = lines(got, width)
        assert max(map(len, shown)) <= width, line
        for row in got.rows:
            for cell in map(cell_text, row):
                assert not cell.startswith("/") or any(cell in it for it in shown), (line, cell)


def test_files_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    for name in ("bug.session", "inner/one.trace", "in\x1bx", "in y"):
        (tmp_path / name).write_text("")
    assert completions(nested(), "load b") == ("bug.session",)
    assert completions(nested(), "first-diff in") == ("inner/",)
    assert completions(nested(), "first-diff inner/") == ("inner/one.trace",)
    assert completions(nested(), "load nowhere/") == ()


class Terminal:
    """A process at a terminal of 80 columns."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        import pty

        self.pid, self.end = pty.fork()
        if not self.pid:  # pragma: no cover - another process
            os.chdir(folder)
            os.environ.update(HOME=str(folder), TERM="dumb", COLUMNS="80", LINES="24", NO_COLOR="1")
            os.execv(sys.executable, [sys.executable, "-c", PROGRAM, "debug", *arguments])
        self.shown = ""

    def until(self, text: str, seconds: float = 60) -> str:
        """What is shown from here to a text."""
        begun, end = len(self.shown), time.monotonic() + seconds
        while text not in self.shown[begun:]:
            ready, _, _ = select.select([self.end], [], [], max(end - time.monotonic(), 0))
            if not ready:
                raise AssertionError(f"{text!r} is not shown: {self.shown[begun:]!r}")
            try:
                self.shown += os.read(self.end, 65536).decode()
            except OSError:  # the process has ended
                break
        return self.shown[begun:]

    def interrupt(self, text: str) -> None:
        """Ctrl-C, again while nothing comes of it: Python notices none that comes between two keys of a line."""
        for _ in range(20):
            time.sleep(0.2)
            self.type("\x03")
            try:
                self.until(text, 3)
                return
            except AssertionError:
                continue
        raise AssertionError(f"{text!r} is not shown after Ctrl-C: {self.shown[-200:]!r}")

    def type(self, keys: str) -> None:
        os.write(self.end, keys.encode())


def test_a_session_at_a_terminal(tmp_path: Path) -> None:
    pytest.importorskip("pty")
    pytest.importorskip("readline")
    onnx.save(onnx.parser.parse_model(NESTED), tmp_path / "nested.onnx")
    terminal = Terminal(tmp_path, "nested.onnx", "--random", "3")
    terminal.until("(sonnx 0) ")
    terminal.type("reverse-con\t\n")
    assert "the start" in terminal.until("(sonnx 0) ")
    terminal.type("seek 18\n")
    terminal.until("(sonnx 18) ")
    terminal.type("step\n")
    terminal.until("(sonnx 19) ")
    terminal.interrupt("(sonnx 19) ")  # nothing is typed: the step is not repeated
    terminal.type("\n")
    terminal.until("(sonnx 19) ")
    terminal.type("seek 18\n")
    terminal.until("(sonnx 18) ")
    terminal.type("half a line")
    terminal.until("half a line")  # the line is being read
    terminal.interrupt("(sonnx 18) ")
    terminal.type("help\n")
    shown = terminal.until("(sonnx 18) ")
    assert max(len(line) for line in shown.splitlines()) <= 80 and "reverse-continue" in shown
    terminal.type("\x1b[A\x1b[A\n")  # the line before the last one: seek 18
    assert "step 18" in terminal.until("(sonnx 18) ")
    terminal.type("\x04")
    terminal.until("never", 60)
    assert os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]) == 0
    assert not re.search(r"\x1b\[[0-9;]*m", terminal.shown)
    assert (tmp_path / ".sonnx_history").read_text().split("\n")[:2] == ["reverse-continue", "seek 18"]
