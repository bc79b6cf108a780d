"""The full-screen face, driven by keys; what is on the screen is written down, SONNX_UPDATE=1 writes it anew."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event

import numpy as np
import onnx
import pytest
from debugger_models import nested, session
from sampling import CAMPAIGN
from sonnx.semantics import Schedule
from sonnx.semantics.debugger import tui
from sonnx.semantics.debugger.display.answers import Note
from sonnx.semantics.debugger.session.opening import opened
from sonnx.semantics.debugger.session.session import Outcome, Session
from sonnx.spec import cli

pytest.importorskip("textual", reason="the extra [tui] is not installed")

from sonnx.semantics.debugger.tui import face as face_module
from sonnx.semantics.debugger.tui.face import Face
from textual.events import Key
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widget import Widget

GOLDEN = Path(__file__).with_name("golden")
SMALL, LARGE = (80, 24), (140, 45)
CALM = 8
"""So many rounds of messages without anything new are rest."""


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same screen whatever the terminal of the tests is."""
    monkeypatch.setenv("NO_COLOR", "1")


def screen(face: Face) -> str:
    """What is on the screen, without the scroll bars."""
    width, height = face.size
    rows = [[" "] * width for _ in range(height)]
    for widget in face.screen.walk_children():
        region = widget.region
        if not widget.children and widget.display and region:
            lines = widget.render_lines(Region(0, 0, region.width, region.height))
            for y, line in enumerate(lines[: height - region.y], region.y):
                rows[y][region.x : region.right] = line.text.ljust(region.width)[: region.width]
    return "".join(f"{''.join(row).rstrip()}\n" for row in rows)


class Person:
    """Presses keys, waits for what comes of it, and writes down what is seen."""

    def __init__(self, face: Face, pilot: Pilot[int]) -> None:
        self.face, self.seen = face, ""
        self._pilot = pilot

    async def rest(self) -> None:
        """Until nothing comes any more of what was pressed: a key gives a message, this a command, this a view."""
        calm = 0
        async with asyncio.timeout(60):
            while calm < CALM:
                await self._pilot.pause(0)
                calm = calm + 1 if self.face.at_rest else 0

    async def press(self, *keys: str) -> None:
        for key in keys:
            self._post(key)
            await self.rest()

    async def begin(self, *keys: str) -> None:
        """Presses keys of which one begins what lasts, or that are pressed while something does."""
        for key in keys:
            self._post(key)
            for _ in range(CALM):
                await self._pilot.pause(0)

    def _post(self, key: str) -> None:
        self.face.post_message(Key(key, key if len(key) == 1 else None))

    async def resize(self, width: int, height: int) -> None:
        await self._pilot.resize_terminal(width, height)
        await self.rest()

    async def click(self, widget: Widget, x: int, y: int) -> None:
        await self._pilot.click(widget, (x, y))
        await self.rest()

    async def type(self, text: str) -> None:
        await self.press("5")
        self.face.console_pane.line.value = text
        await self.press("enter", "escape")

    async def until(self, text: str) -> None:
        async with asyncio.timeout(60):
            while text not in screen(self.face):
                await self._pilot.pause(0.05)

    def look(self, title: str) -> None:
        self.seen += f"== {title}\n{screen(self.face)}"


def shown(found: Session, size: tuple[int, int], story: Callable[[Person], Awaitable[None]], *script: str) -> Person:
    """A person at a terminal of a size, at the end of a story."""

    async def run() -> Person:
        face = Face(found, ["seek 1", "step"], [(it, True) for it in script], None)
        async with face.run_test(size=size) as pilot:
            person = Person(face, pilot)
            await person.rest()
            await story(person)
            return person

    return asyncio.run(run())


def check(name: str, seen: str) -> None:
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("SONNX_UPDATE"):
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(seen, encoding="utf-8", newline="\n")
    assert seen == golden.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    assert cli.run(["examples", str(made)]) == 0
    x = np.linspace(0, 1, 64, dtype="f4")
    x[28] = np.inf
    np.save(made / "image.npy", x.reshape(1, 1, 8, 8))
    return made


def classifier(folder: Path) -> Session:
    return opened(folder / "conforming.onnx", (f"image={folder / 'image.npy'}",), None, Schedule())


@pytest.mark.parametrize("size", [pytest.param(SMALL, id="small"), pytest.param(LARGE, id="large", marks=CAMPAIGN)])
def test_the_story_of_the_readme(folder: Path, size: tuple[int, int]) -> None:
    async def story(person: Person) -> None:
        person.look("opened")
        await person.press("n", "b", "s")
        person.look("n b s: a step, a breakpoint on the line of the cursor, another step")
        await person.type("seek end")
        await person.press("3", "slash", "r", "enter")
        person.look("seek end, then the tensors whose name has r")
        await person.press("4", *["right"] * 4, *["down"] * 2, "w")
        person.look("the heat map: w asks about the cell of the cursor")
        await person.press("y", "right_square_bracket", "plus", "m")
        person.look("another axis goes down, another position, the mean")
        await person.type("prnt r")
        person.look("a command that there is not")
        await person.press("C", "i")
        person.look("C: back to the breakpoint, i: one phase of the step")
        await person.press("question_mark")
        person.look("? the keys")
        await person.press("x")

    check(f"readme-{size[0]}x{size[1]}", shown(classifier(folder), size, story).seen)


def test_frames_runs_and_timelines() -> None:
    async def story(person: Person) -> None:
        person.look("in the second run of a body, in a call")
        await person.press("2", "down", "enter")
        person.look("the frame around it")
        await person.press("up", "enter")
        await person.type("set s = 0")
        await person.press("2")
        person.look("edited: another timeline")

    check("frames", shown(nested(), SMALL, story, "break op:Loop", "seek 16").seen)


def said(person: Person) -> list[str]:
    output = person.face.console_pane.output
    return [output.text_of(i) for i in range(output.count())]


def test_what_runs_stands_still_on_request_and_the_panes_move_meanwhile() -> None:
    endless = """<ir_version: 10, opset_import: ["" : 18]>
    endless (float[1] x) => (float[1] y) {
      y = Loop (, , x) <body = b (int64 i, bool go, float[1] v) => (bool g2, float[1] v2) {
        g2 = Identity (go)
        v2 = Add (v, x)
      }>
    }"""

    async def story(person: Person) -> None:
        face = person.face
        for stop in ("escape", "ctrl+c"):
            await person.begin("c")
            assert not face.at_rest
            await person.begin("n", "j")
            await person.until("running continue: step")
            assert face.listing.cursor == face.listing.look.where.line
            await person.press(stop)
            assert said(person).count("paused") == ("escape", "ctrl+c").index(stop) + 1
        before = face.looked.where
        await person.press("S")
        assert face.looked.where.index == before.index - 1
        await person.begin("c", "q")
        assert face.stopping  # what runs ends too

    person = shown(session(endless, {"x": np.ones(1, np.float32)}), SMALL, story)
    assert not [line for line in said(person) if line.endswith(") next")]


def test_a_command_that_does_not_look_up_is_ended_at_the_second_request(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Event()

    def never(found: Session, _line: str, **_: bool) -> Iterator[Outcome]:
        begun.set()
        while True:
            time.sleep(0.001)
        yield Outcome(found, Note(()))

    monkeypatch.setattr(face_module, "outcomes", never)

    async def story(person: Person) -> None:
        await person.begin("s")
        assert begun.wait(60)
        await person.begin("escape")
        await person.until("Escape again ends the command")
        await person.press("escape")
        assert said(person)[-1] == "interrupted: the position is unchanged"

    shown(nested(), SMALL, story)


def test_a_line_is_completed_and_earlier_ones_come_back() -> None:
    async def story(person: Person) -> None:
        line = person.face.console_pane.line
        await person.press("5", *"reverse-con", "tab")
        assert line.value == "reverse-continue "
        await person.press("escape", "escape", "5", *"inf", "tab", *"t", "tab")
        assert line.value == "info tensors "
        line.value = "reverse-"
        await person.press("end", "tab")
        assert line.value == "reverse-" and "reverse-step" in screen(person.face)
        line.value = ""
        await person.press("up")
        assert line.value == "step"
        await person.press("up", "up")
        assert line.value == "seek 1"
        await person.press("enter", "enter", *"step", "enter", "enter")
        assert person.face.looked.where.index == 3  # an empty line repeats a move, and no seek
        assert line.typed == ["seek 1", "step", "seek 1", "step"]
        await person.press("tab")
        assert person.face.focused is person.face.listing

    shown(nested(), SMALL, story)


def test_tab_goes_round_all_panes_also_those_that_are_not_shown() -> None:
    async def story(person: Person) -> None:
        face = person.face
        panes = [face.listing, face.frames, face.tensors, face.heat, face.console_pane.line]
        for back, key in ((False, "tab"), (True, "shift+tab")):
            seen = []
            for _ in panes:
                seen.append(face.focused)
                assert face.focused is not None and face.focused.region
                await person.press(key)
            assert seen == [panes[0], *(reversed(panes[1:]) if back else panes[1:])]

    shown(nested(), SMALL, story)


def test_the_panes_fit_terminals_of_all_sizes() -> None:
    async def story(person: Person) -> None:
        face = person.face
        for size, panes in (((140, 45), 4), ((109, 45), 1), ((80, 24), 1), ((40, 10), 1), ((20, 6), 1), ((200, 50), 4)):
            await person.resize(*size)
            shown = [it for it in (face.listing, face.frames, face.tensors, face.heat) if it.region]
            assert len(shown) == panes and face.console_pane.line.region.bottom <= size[1], size
            assert all(len(line) <= size[0] for line in screen(face).splitlines())
        await person.press("z")
        assert face.listing.region.width == 200 and not face.heat.region
        await person.press("z")
        assert face.heat.region

    shown(nested(), SMALL, story)


def test_a_defect_ends_the_face_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    keys = {"outcomes": "n", "grid": "4", "words_for": "4e", "completions": ("5", "x", "tab")}
    for name, (*before, last) in keys.items():

        async def story(person: Person, before: Sequence[str] = before, last: str = last) -> None:
            await person.press(*before)
            await person.begin(last)
            async with asyncio.timeout(60):
                while person.face.failure is None:
                    await asyncio.sleep(0.01)

        with monkeypatch.context() as planted:
            planted.setattr(face_module, name, wrong)
            assert isinstance(shown(nested(), SMALL, story).face.failure, ZeroDivisionError), name


def test_the_keys_may_be_shown_for_long_and_while_a_terminal_changes() -> None:
    async def story(person: Person) -> None:
        await person.press("question_mark")
        await asyncio.sleep(0.3)  # longer than the time between two looks at what runs
        await person.resize(*LARGE)
        await person.press("x")
        assert person.face.heat.region and "step 0 of 0+" in screen(person.face)

    shown(nested(), SMALL, story)


def test_lines_are_found_clicked_and_run_to() -> None:
    async def story(person: Person) -> None:
        face = person.face
        await person.press("slash", *"loop(", "enter")
        assert "= Loop(" in face.listing.text_of(face.listing.cursor)
        await person.press("u")
        assert face.looked.where.line == face.listing.cursor + 1
        await person.click(face.listing, 1, 3)
        await person.press("slash", *"nothing", "enter")
        assert said(person)[-1] == "no line has 'nothing'"
        (stop,) = face.looked.session.stops
        assert stop.text == face.looked.session.model.nodes[0].path
        await person.click(face.listing, 1, 3)
        assert not face.looked.session.stops

    shown(nested(), LARGE, story)


def test_a_refused_line_ends_the_script_and_settings_come_before_it(tmp_path: Path) -> None:
    rc = tmp_path / "rc"
    rc.write_text("alias go = seek 3\nnothing\n")

    async def run() -> tuple[list[str], int | None]:
        face = Face(nested(), [], [(it, True) for it in ("go", "# a comment", "prnt a", "seek 5")], rc)
        async with face.run_test(size=SMALL) as pilot:
            person = Person(face, pilot)
            await person.rest()
            text = said(person)
            await person.press("q")
        return text, face.return_value

    text, code = asyncio.run(run())
    assert "line 2: there is no command" in text[0]
    assert text[1] == "(sonnx 0) go" and text[-1].startswith("refused: there is no command") and code == 2


@pytest.mark.parametrize("option", ["--batch", "--json", None])
def test_a_full_screen_needs_a_terminal_and_a_person(option: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["debug", "missing.onnx", "--tui", *([option] if option else [])]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and (option or "--tui needs a terminal") in error


def test_without_textual_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tui, "find_spec", lambda _: None)
    assert cli.run(["debug", "missing.onnx", "--tui"]) == 2
    assert capsys.readouterr().err == (
        "error: the full-screen face is made with Textual, which is not installed: install sonnx[tui]\n"
    )


def test_only_lines_in_sight_are_made_of_a_large_model() -> None:
    nodes = [onnx.helper.make_node("Neg", [f"t{i}"], [f"t{i + 1}"]) for i in range(2_000)]
    ends = [onnx.helper.make_tensor_value_info(name, 1, [1]) for name in ("t0", "t2000")]
    graph = onnx.helper.make_graph(nodes, "big", ends[:1], ends[1:])
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)

    async def story(person: Person) -> None:
        pane, asked = person.face.listing, []
        line = pane.line
        pane.line = lambda number, width: asked.append(number) or line(number, width)
        await person.press("G", "pageup", "g", "pagedown")
        assert "return" in pane.text_of(pane.count() - 1)
        assert set(asked) and len(set(asked)) < 10 * SMALL[1]

    shown(session(proto, {"t0": np.ones(1, np.float32)}), SMALL, story)


def test_without_colours_a_terminal_is_sent_none_and_gets_its_screen_back(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    path = tmp_path / "nested.onnx"
    path.write_bytes(nested().model.content)
    pid, end = pty.fork()
    if not pid:  # pragma: no cover - another process
        os.environ.update(HOME=str(tmp_path), TERM="xterm-256color", NO_COLOR="1")
        program = "from sonnx.spec.cli import main; main()"
        arguments = ["debug", str(path), "--random", "3", "--tui", "-e", "step", "-e", "quit"]
        os.execv(sys.executable, [sys.executable, "-c", program, *arguments])
    sent = b""
    with suppress(OSError):  # how the system says that the process has ended
        while part := os.read(end, 1 << 16):
            sent += part
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"1 listing" in sent and sent.rindex(b"\x1b[?1049l") > sent.rindex(b"1 listing")
    colours = {int(it) for styles in re.findall(rb"\x1b\[([0-9;]*)m", sent) for it in styles.split(b";") if it}
    assert not colours & {*range(30, 39), *range(40, 49), *range(90, 108)}
    assert (tmp_path / ".sonnx_history").exists()
