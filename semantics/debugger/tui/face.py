"""The face: panes around one session, keys that give command lines, and the thread that carries them out."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from sonnx.spec.terminal import one_line
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input, Static
from textual.worker import Worker, WorkerState

from ...errors import InternalError
from ...model.graph import TensorId
from ..commands.table import completions
from ..display.answers import Answer, Quit, Refusal, Stop
from ..display.rendering import lines, prompt
from ..repl import GOOD, NARROWEST, REFUSED, code_of, outcomes, repeats, settings, typed_before
from ..session.session import Session
from .console import Console, Prompt
from .grid import Grid, Slice, grid
from .heatmap import HeatMap
from .looks import Look, TensorLook, TensorLooks, look, value_here, words_for
from .panes import Ask, AskAbout, FramesPane, Lines, ListingPane, TensorsPane
from .thread import Aborted, WorkThread

_WIDE: Final = (116, 30)
"""The size from which on all panes are shown at once; below it one of them above the console."""
_CONSOLE: Final = 12
"""Lines of the console, with its edge and the line that is typed."""
_FRAMES: Final = 9
"""Lines of frames and timelines at most, beside other panes."""
_BATCH: Final = 8
"""Tensors that are looked at together, before a command has its turn."""
_PHASES: Final = ("", ", selected", ", read", ", applied", ", written")

HELP: Final = """\
Moves      n next   s step   c continue   i one phase   F finish
           N        S        C or r       I             backwards
Panes      1 listing   2 frames   3 tensors   4 heat map   5 command line
           Tab, Shift-Tab: the next one, the one before   z one alone, or all
           arrows, hjkl, PageUp, PageDown, Home, End, or the mouse
Search     / a text, / Enter the next; for tensors a part of a name, or a glob
Commands   : or 5 to type one; `help` lists them
           Tab completes, Up an earlier line, Enter without one: the last move
           PageUp what was said before, Escape back to the pane
Listing    b, Space or a click on the number: a breakpoint
           u or Enter: run to the line
Frames     Enter: look at the frame, or go to the timeline
Tensors    Enter print, w who wrote it, f follow what is written
           + the last step wrote it, N and I: so many NaN and infinities
Heat map   arrows: the cell; Enter print, e explain, o origin
           w why it is NaN or infinite
           x y other axes across and down, m mean or largest magnitude
           [ ] another one of the other axes, - + the position on it
           NN there is a NaN in the cell, +I infinity, -I minus infinity
Running    Escape or Ctrl-C: stop after the step; once more: end at once
q quits. In most terminals Shift and drag selects text."""


@dataclass(slots=True)
class _Doing:
    """A command line that is done: the session so far, what was said with its style, the exit code."""

    session: Session
    said: list[tuple[Sequence[str], str]] = field(default_factory=list)
    code: int = GOOD
    over: bool = False


class Help(ModalScreen[None]):
    """The keys. Any key closes it."""

    def compose(self) -> ComposeResult:
        """Its text."""
        with VerticalScroll(id="help"):
            yield Static(HELP, markup=False)

    def on_key(self, event: events.Key) -> None:
        """Close, unless the text is scrolled."""
        if event.key not in ("up", "down", "pageup", "pagedown", "home", "end"):
            event.stop()
            self.dismiss()

    def on_click(self) -> None:
        """Close."""
        self.dismiss()


class Panes(Screen[None]):
    """The screen, on which Tab goes from pane to pane, also to those that are not shown."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "app.turn(1)"), Binding("shift+tab", "app.turn(-1)")]


class Face(App[int]):
    """The whole screen. Its answer is the exit code."""

    CSS = """
    Screen { layout: vertical; }
    #body { height: 1fr; }
    #listing { width: 5fr; }
    #right { width: 7fr; }
    .narrow #listing, .narrow #right { width: 1fr; }
    Lines, HeatMap { width: 1fr; height: 1fr; border-top: solid ansi_bright_black; overflow-x: hidden;
                     scrollbar-size-vertical: 1; background: ansi_default; color: ansi_default; }
    Lines:focus, HeatMap:focus { border-top: heavy ansi_green; border-title-style: bold; }
    #heat { height: 3fr; }
    #tensors { height: 2fr; }
    .narrow #tensors, .narrow #heat { height: 1fr; }
    #entry { height: 1; }
    #lead { width: auto; text-style: bold; }
    #prompt { width: 1fr; }
    #find { display: none; }
    #status { height: 1; text-style: reverse; text-wrap: nowrap; text-overflow: ellipsis; }
    #keys { height: 1; text-wrap: nowrap; text-overflow: ellipsis; color: ansi_bright_black; }
    Help { align: center middle; }
    #help { width: 80; max-width: 100%; height: auto; max-height: 100%; border: solid ansi_green; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "line('next')"),
        Binding("N", "line('reverse-next')"),
        Binding("s", "line('step')"),
        Binding("S", "line('reverse-step')"),
        Binding("c", "line('continue')"),
        Binding("C,r", "line('reverse-continue')"),
        Binding("F", "line('finish')"),
        Binding("i", "line('stepi')"),
        Binding("I", "line('reverse-stepi')"),
        Binding("slash", "find"),
        Binding("colon,5", "pane(4)"),
        *(Binding(str(i + 1), f"pane({i})") for i in range(4)),
        Binding("z", "zoom"),
        Binding("question_mark", "keys"),
        Binding("q", "quit"),
        Binding("escape", "interrupt"),
        Binding("ctrl+c", "interrupt", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
    ]

    def __init__(self, session: Session, typed: list[str], script: Sequence[tuple[str, bool]], rc: Path | None) -> None:
        super().__init__(ansi_color=True)  # before NO_COLOR is minded, which would else make all black
        self.theme = "ansi-dark"
        self.stopping = False
        """True where what runs is asked to stand still."""
        self.work = WorkThread()
        self.looked = look(replace(session, interrupted=lambda: self.stopping))
        self.failure: Exception | None = None
        self._script, self._rc = script, rc
        self._code = GOOD
        self._last = ""
        self._doing, self._begun = "", 0.0
        self._zoomed, self._room = False, Size(*_WIDE)
        self._tensor_looks = TensorLooks()
        self._wanted: list[TensorId] = []
        self._pictured: tuple[TensorId, Slice | None, int, int] | None = None
        self._working = {"script"}
        self.listing = ListingPane("listing", self.looked)
        self.frames = FramesPane("frames", self.looked)
        self.tensors = TensorsPane("tensors", self.looked, self._want)
        self.heat = HeatMap("heat", self.looked, self._picture)
        self.console_pane = Console(typed)
        self.finder = Input(id="find", compact=True, select_on_focus=False)
        self._panes: tuple[Widget, ...] = (
            self.listing, self.frames, self.tensors, self.heat, self.console_pane.line,
        )  # fmt: skip
        self._shown: Widget = self.listing
        self._main = Panes()
        self._right = Vertical(self.frames, self.tensors, self.heat, id="right")
        self._status = Static("", id="status", markup=False)
        self._keys = Static("", id="keys", markup=False)

    @property
    def at_rest(self) -> bool:
        """True where no command is being done, and no pane waits for anything."""
        return not (self._doing or self._working or self.workers)

    # ---- What is on the screen ----------------------------------------------------------------------

    def get_default_screen(self) -> Screen[None]:
        """The screen of the panes."""
        return self._main

    def compose(self) -> ComposeResult:
        """The panes."""
        with Horizontal(id="body"):
            yield self.listing
            yield self._right
        yield self.console_pane
        yield self.finder
        yield self._status
        yield self._keys

    def on_mount(self) -> None:
        """The first position, settings and script."""
        self.set_interval(0.2, self._tick)
        self.listing.focus()
        self._show(self.looked)
        self.listing.to(self.looked.where.line - 1)
        self.call_after_refresh(lambda: self._go(self._begin()))

    def on_resize(self, event: events.Resize) -> None:
        """All panes, or one of them where there is little room."""
        self._room = event.size
        self._arrange()

    def _arrange(self) -> None:
        width, height = self._room
        narrow = self._zoomed or width < _WIDE[0] or height < _WIDE[1]
        self._main.set_class(narrow, "narrow")
        for pane in self._panes[:-1]:
            pane.display = not narrow or pane is self._shown
        self._right.display = not narrow or self._shown is not self.listing
        self.console_pane.styles.height = _CONSOLE if not narrow else max(min(height * 2 // 5, _CONSOLE - 3), 3)
        self.frames.styles.height = "1fr" if narrow else min(self.frames.count() + 1, _FRAMES)

    def _show(self, looked: Look) -> None:
        """A position in all panes."""
        self.looked = looked
        self._wanted.clear()
        self.listing.show(looked)
        self.frames.show(looked)
        self.tensors.show(looked)
        self._arrange()
        self.console_pane.lead.update(prompt(looked.where))
        self._tick()

    def _tick(self) -> None:
        if self._doing:
            ending = "stopping, Escape again ends the command" if self.stopping else "Escape stops it"
            seconds = time.monotonic() - self._begun
            known = self.looked.session.history.last
            self._status.update(f" running {self._doing}: step {known}, {seconds:.0f} s; {ending}")
            return
        at = self.looked
        more = "" if at.complete else "+"
        file = at.session.source.name if at.session.source is not None else ""
        edited = " EDITED" if at.where.edited else ""
        parts = (
            f"step {at.where.index} of {at.known}{more}",
            f"phase {at.where.phase} of 5{_PHASES[at.where.phase]}",
            f"timeline {at.timeline} of {len(at.timelines)}{edited}",
            one_line(file),
        )
        self._status.update(" " + "  |  ".join(it for it in parts if it))

    def on_descendant_focus(self) -> None:
        """Which keys there are, and which pane Escape goes back to."""
        pane = self.focused
        if pane in self._panes[:-1] and pane is not None:
            self._shown = pane
        own = {
            self.listing: "b break  u until",
            self.frames: "Enter look at it",
            self.tensors: "Enter print  w wrote  f follow",
            self.heat: "w why  e explain  xy[]-+ axes",
            self.console_pane.line: "Tab completes  Enter runs  PageUp earlier output  Esc leaves",
        }.get(pane, "") if pane is not None else ""  # fmt: skip
        common = "" if pane is self.console_pane.line else "  n s c N S C  / find  : line  Tab  ? help  q quit"
        self._keys.update(f" {own}{common}")

    # ---- Keys -----------------------------------------------------------------------------------------

    def action_line(self, line: str) -> None:
        """A command."""
        self._say(line)

    def action_pane(self, number: int) -> None:
        """Keys go to a pane."""
        pane = self._panes[number]
        if pane is not self.console_pane.line:
            self._shown = pane
            self._arrange()
        pane.focus()

    def action_turn(self, by: int) -> None:
        """To the next pane."""
        now = self._panes.index(self.focused) if self.focused in self._panes else 0
        self.action_pane((now + by) % len(self._panes))

    def action_zoom(self) -> None:
        """One pane alone, or all."""
        self._zoomed = not self._zoomed
        self._arrange()

    def action_keys(self) -> None:
        """The keys."""
        self.push_screen(Help())

    async def action_quit(self) -> None:
        """The end of the session."""
        self.stopping = True
        self.exit(self._code)

    def action_interrupt(self) -> None:
        """What runs stands still; asked again, it is ended. Where nothing runs, a line that is typed is dropped."""
        if self.finder.display:
            self._found()
        elif not self._doing:
            self.console_pane.line.value = ""
            self._last = ""
        elif not self.stopping:
            self.stopping = True
        else:
            self.work.abort()
        self._tick()

    # ---- Search -----------------------------------------------------------------------------------------

    def action_find(self) -> None:
        """A text to search for in the pane, or the filter of the tensors."""
        pane = self.focused if isinstance(self.focused, Lines) else self._shown
        self._target = pane if isinstance(pane, Lines) else self.tensors
        self.finder.placeholder = f"/ {'filter' if self._target is self.tensors else 'search'} {self._target.label[2:]}"
        if self._target is self.tensors:
            self.finder.value = self.tensors.filter
        self.finder.display = True
        self.finder.focus()
        self.finder.select_all()

    def on_input_changed(self, event: Input.Changed) -> None:
        """A filter holds while it is typed."""
        if event.input is self.finder and self._target is self.tensors and self.finder.display:
            self.tensors.filtered(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search for a text."""
        if event.input is self.finder:
            target, text = self._target, event.value
            self._found()
            if target is not self.tensors and text and not target.search(text):
                self.console_pane.output.write([f"no line has {one_line(text)!r}"], "red")

    def _found(self) -> None:
        self.finder.display = False
        self._target.focus()

    # ---- Commands ----------------------------------------------------------------------------------------

    def on_ask(self, message: Ask) -> None:
        """A pane gives a command line."""
        self._say(message.line)

    def on_ask_about(self, message: AskAbout) -> None:
        """A pane asks about a tensor or an element."""
        session = self.looked.session

        async def ask() -> None:
            words = await self.work.do(lambda: words_for(session, message.tensor))
            self._say(f"{message.command} {words}{message.element}")

        if not self._doing:
            self._go(ask())

    def on_prompt_said(self, message: Prompt.Said) -> None:
        """A line was typed; an empty one repeats the last move."""
        text = message.line.strip() or self._last
        if self._doing:
            return
        self.console_pane.line.taken()
        if text and not text.startswith("#"):
            self._last = text if repeats(self.looked.session, text) else ""
            self._say(text)

    def on_prompt_wanted(self, message: Prompt.Wanted) -> None:
        """What a word may become; the words are shown where they do not agree."""
        session, front = self.looked.session, message.front

        async def complete() -> None:
            words = await self.work.do(lambda: completions(session, front))
            if not self.console_pane.line.completed(front, words):
                self.console_pane.offer(words)

        if not self._doing:
            self._go(complete())

    def on_prompt_left(self, message: Prompt.Left) -> None:
        """To the next pane, or back to the one before."""
        if message.onward:
            self.action_turn(1)
        elif self._doing:
            self.action_interrupt()
        else:
            self._shown.focus()

    def _say(self, line: str) -> None:
        """Does a command line, unless one is being done."""
        if not self._doing:
            self._start(line)
            self._go(self._do(line, typed=True))

    def _start(self, what: str) -> None:
        self._doing, self._begun = what, time.monotonic()
        self.stopping = False

    def _go(self, work: Coroutine[None, None, object]) -> None:
        self.run_worker(work, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A defect ends the face, and is told where the command line tells it."""
        if event.state is WorkerState.ERROR and isinstance(event.worker.error, Exception):
            self.failure = event.worker.error
            self.exit()

    async def _begin(self) -> None:
        """The settings, then the script."""
        if self._rc is not None and self._rc.is_file():
            doing, file = _Doing(self.looked.session), self._rc
            self._start("settings")
            await self._carried_out(doing, lambda: _settings(doing, file))
        for line, typed in self._script:
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            self._start(text)
            doing = await self._do(text, typed=typed)
            self._code = max(self._code, doing.code)
            if doing.over or doing.code == REFUSED or self.stopping:
                break
        self._working.discard("script")

    async def _do(self, text: str, *, typed: bool) -> _Doing:
        """A command line, from its echo to the new position. typed: by a person, who may say `py`."""
        self.console_pane.output.write([f"{prompt(self.looked.where)}{text}"], "bold")
        doing = _Doing(self.looked.session)
        width = max(self.console_pane.output.scrollable_content_region.width, NARROWEST)
        await self._carried_out(doing, lambda: _command(doing, text, width, typed=typed))
        return doing

    async def _carried_out(self, doing: _Doing, job: Callable[[], None]) -> None:
        before = doing.session
        try:
            await self.work.do(job, abortable=True)
        except Aborted:
            unchanged = ": the position is unchanged" if doing.session is before else ""
            doing.said.append(([f"interrupted{unchanged}"], "bold"))
        for said, how in doing.said:
            self.console_pane.output.write(said, how)
        looked = await self.work.do(lambda: look(doing.session))
        self._doing = ""
        self._show(looked)
        if doing.over:
            self.exit(self._code)

    # ---- What panes ask for -----------------------------------------------------------------------------

    def _want(self, tensors: tuple[TensorId, ...]) -> None:
        self._wanted += tensors
        if "looks" not in self._working:
            self._working.add("looks")
            self.call_later(lambda: self._go(self._fill()))

    def _looks(self, session: Session, tensors: Sequence[TensorId]) -> dict[TensorId, TensorLook]:
        return {t: self._tensor_looks.of(session, t) for t in tensors}

    async def _fill(self) -> None:
        """Looks of tensors, few at once: a command need not wait for long."""
        try:
            while self._wanted:
                part, self._wanted = self._wanted[:_BATCH], self._wanted[_BATCH:]
                looked = self.looked
                made = await self.work.do(partial(self._looks, looked.session, part))
                self.tensors.got(looked, made)
        finally:
            self._working.discard("looks")

    def on_tensors_pane_chosen(self) -> None:
        """The heat map shows the tensor that has the cursor."""
        self.heat.show(self.looked, self.tensors.chosen)

    def _picture(self, tensor: TensorId, wanted: Slice | None, rows: int, columns: int) -> None:
        self._pictured = tensor, wanted, rows, columns
        if "picture" not in self._working:
            self._working.add("picture")
            self.call_later(lambda: self._go(self._draw()))

    async def _draw(self) -> None:
        """The picture that was asked for last."""
        try:
            while self._pictured is not None:
                (tensor, wanted, rows, columns), self._pictured = self._pictured, None
                looked = self.looked
                made = await self.work.do(partial(_pictured, looked.session, tensor, wanted, rows, columns))
                self.heat.got(looked, tensor, made)
        finally:
            self._working.discard("picture")


# ---- On the thread --------------------------------------------------------------------------------------


def _command(doing: _Doing, text: str, width: int, *, typed: bool) -> None:
    for outcome in outcomes(doing.session, text, typed=typed):
        doing.session = outcome.session
        doing.said.append((lines(outcome.answer, width), _style(outcome.answer)))
        doing.code = max(doing.code, code_of(outcome.answer))
        doing.over = isinstance(outcome.answer, Quit)


def _style(answer: Answer) -> str:
    if isinstance(answer, Refusal):
        return "bold red"
    return "yellow" if isinstance(answer, Stop) and answer.reason in ("catch", "stuck") else ""


def _settings(doing: _Doing, file: Path) -> None:
    said: list[str] = []
    doing.session = settings(doing.session, file, said.append)
    doing.said.append(([line.rstrip("\n") for line in said], "red"))


def _pictured(session: Session, t: TensorId, wanted: Slice | None, rows: int, columns: int) -> Grid | str:
    value = value_here(session, t)
    if value is None:
        return "no value here"
    try:
        return grid(value, wanted, rows, columns)
    except MemoryError:
        return "there is no memory for this picture"


def run_face(session: Session, script: Sequence[tuple[str, bool]], rc: Path | None) -> int:
    """Shows a session until it is left: the exit code, that of the script: lines, and whether a person has typed
    each. rc: a file of settings.
    """
    with typed_before() as typed:
        face = Face(session, typed, script, rc)
        code = face.run()
    if face.failure is not None:
        raise face.failure
    if face.return_code:
        raise InternalError("the full-screen face has ended early")
    return GOOD if code is None else code
