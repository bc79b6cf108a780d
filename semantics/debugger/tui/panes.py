"""The panes of lines: the listing, frames and timelines, tensors. Only lines in sight are made, so that a large model
scrolls like a small one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ...model.graph import TensorId
from ..commands.values import stops_on
from ..display.listing import Line
from .looks import FrameLook, Look, TensorLook, name_of, type_here

Piece = tuple[str, str]
"""A text and its style, as Rich names it."""
CURSOR: Final = Style(reverse=True)
DIM: Final = Style(dim=True)
CUT: Final = "\u2026"
"""The sign at the right edge of a line that goes on."""


class Lines(ScrollView, can_focus=True):
    """A pane of lines, one of which has the cursor. Lines are made by `line`, when they come into sight."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)"),
        Binding("down,j", "move(1)"),
        Binding("pageup,ctrl+b", "page(-1)"),
        Binding("pagedown,ctrl+f", "page(1)"),
        Binding("home,g", "end(-1)"),
        Binding("end,G", "end(1)"),
        Binding("left,h", "shift(-8)"),
        Binding("right,l", "shift(8)"),
    ]
    label = ""
    """The name of the pane, in its upper edge."""
    heading: str = ""
    """Above the lines, where there is one."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.cursor, self.shifted = 0, 0
        self.told = ""

    def count(self) -> int:
        """How many lines there are."""
        raise NotImplementedError

    def line(self, number: int, width: int) -> Sequence[Piece]:
        """A line in pieces. width: of the pane."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """The name of the pane stands in its edge."""
        self.say("")

    def watch_has_focus(self, focus: bool) -> None:
        """The edge shows where keys go, also where there are no colours."""
        super().watch_has_focus(focus)
        self.say(self.told)

    def say(self, text: str) -> None:
        """A text behind the name of the pane."""
        self.told = text
        mark = "[*] " if self.has_focus else ""
        self.border_title = Content(f"{mark}{self.label}{'  ' if text else ''}{text}")

    @property
    def above(self) -> int:
        """How many lines of the pane are none of its lines."""
        return 1 if self.heading else 0

    @property
    def in_sight(self) -> int:
        """How many lines are shown at once."""
        return max(self.scrollable_content_region.height - self.above, 1)

    def changed(self) -> None:
        """Other lines than before."""
        self.virtual_size = Size(self.scrollable_content_region.width, self.count() + self.above)
        self.cursor = max(min(self.cursor, self.count() - 1), 0)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """A line of the screen."""
        number, width = y - self.above + self.scroll_offset.y, self.scrollable_content_region.width
        if y < self.above:
            heading = Strip([Segment(self.heading, self.rich_style + DIM)])
            return heading.crop_extend(self.shifted, self.shifted + width, self.rich_style)
        if number >= self.count():
            return Strip.blank(width, self.rich_style)
        there = number == self.cursor and self.has_focus
        style = self.rich_style + CURSOR if there else self.rich_style
        row = Strip([Segment(text, style + Style.parse(how)) for text, how in self.line(number, width)])
        length = row.cell_length
        row = row.crop_extend(self.shifted, self.shifted + width, style)
        if length > self.shifted + width:
            row = Strip([*row.crop(0, width - 1), Segment(CUT, style)])
        return row.apply_style(style)

    def to(self, number: int, *, top: bool = False) -> None:
        """The cursor on a line, which comes into sight. top: it moves to the middle where it was out of sight."""
        self.cursor = max(min(number, self.count() - 1), 0)
        height, at = self.in_sight, self.scroll_offset.y
        if not at <= self.cursor < at + height:
            far = top or not at - 1 <= self.cursor <= at + height
            near = self.cursor if self.cursor < at else self.cursor - height + 1
            self.scroll_to(y=self.cursor - height // 2 if far else near, animate=False, force=True)
        self.refresh()

    def by_hand(self) -> None:
        """The cursor was moved by a person."""

    def action_move(self, lines: int) -> None:
        """The cursor by some lines."""
        self.to(self.cursor + lines)
        self.by_hand()

    def action_page(self, pages: int) -> None:
        """The cursor by a page."""
        self.action_move(pages * max(self.in_sight - 1, 1))

    def action_end(self, which: int) -> None:
        """The cursor to the first line or to the last."""
        self.action_move(which * self.count())

    def action_shift(self, columns: int) -> None:
        """Sideways."""
        self.shifted = max(self.shifted + columns, 0)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor."""
        offset = event.get_content_offset(self)
        if offset is not None and 0 <= (number := offset.y - self.above + self.scroll_offset.y) < self.count():
            self.to(number)
            self.by_hand()
            self.clicked(offset.x + self.shifted)

    def clicked(self, column: int) -> None:
        """The line with the cursor was clicked at a column."""

    def text_of(self, number: int) -> str:
        """The text of a line, in which is searched."""
        return "".join(text for text, _ in self.line(number, 200))

    def search(self, text: str) -> bool:
        """The cursor on the next line behind it that has a text, from the first one on again; False for none."""
        wanted, count = text.casefold(), self.count()
        for step in range(1, count + 1):
            number = (self.cursor + step) % count
            if wanted in self.text_of(number).casefold():
                self.to(number, top=True)
                self.by_hand()
                return True
        return False


class Ask(Message):
    """A pane gives a command line."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self.line = line


# ---- The listing ----------------------------------------------------------------------------------

_KINDS: Final = {"operator": "bold", "input": "", "output": "", "attribute": "dim", "name": ""}


class ListingPane(Lines):
    """The listing: B on lines with breakpoints, > where the execution stands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b,space", "breakpoint"),
        Binding("u,enter", "until"),
    ]
    label = "1 listing"

    def __init__(self, name: str, look: Look) -> None:
        super().__init__(name)
        self.look = look

    def count(self) -> int:
        """The lines of the listing."""
        return len(self.look.session.listing.lines)

    def show(self, look: Look) -> None:
        """Another position: the cursor is there."""
        moved = look.where.line != self.look.where.line
        self.look = look
        self.changed()
        if moved and look.where.line:
            self.to(look.where.line - 1)

    def line(self, number: int, width: int) -> Sequence[Piece]:
        """Marks, the number, the text with its operator in bold."""
        session, here = self.look.session, self.look.where.line
        line = session.listing.lines[number]
        stops = stops_on(session, line.number)
        digits = len(str(self.count()))
        current = line.number == here
        how = "bold green" if current else "dim" if line.kind == "note" else ""
        front = ("B" if stops else " ", "bold red"), (">" if current else " ", "bold green")
        return (*front, (f"{line.number:>{digits}}  ", "dim"), *_pieces(line, how))

    def action_breakpoint(self) -> None:
        """A breakpoint on the line of the cursor, or the first behind it that can have one; or none there any more."""
        session = self.look.session
        line = session.listing.stop_at(self.cursor + 1).number
        stops = stops_on(session, line)
        self.to(line - 1)
        self.post_message(Ask(f"delete {' '.join(map(str, stops))}" if stops else f"break {line}"))

    def action_until(self) -> None:
        """Run to the line of the cursor."""
        self.post_message(Ask(f"until {self.cursor + 1}"))

    def clicked(self, column: int) -> None:
        """A click on the marks or the number makes a breakpoint, or takes it away."""
        if column < 3 + len(str(self.count())):
            self.action_breakpoint()


def _pieces(line: Line, how: str) -> list[Piece]:
    """The text of a line, its spans styled."""
    pieces, at = [], 0
    for span in line.spans:
        start, end = span.start - 1, span.end - 1
        pieces += [(line.text[at:start], how), (line.text[start:end], how or _KINDS[span.kind])]
        at = end
    rest = line.text[at:]
    body, mark, comment = rest.partition("  # ") if line.kind == "node" else (rest, "", "")
    return [*pieces, (body, how), (mark + comment, "dim")]


# ---- Frames and timelines ---------------------------------------------------------------------------


class FramesPane(Lines):
    """The frames, the innermost first, with the runs of bodies, and the timelines below."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose")]
    label = "2 frames"

    def __init__(self, name: str, look: Look) -> None:
        super().__init__(name)
        self.look = look

    def count(self) -> int:
        """One line for each frame, and for each timeline."""
        return len(self.look.frames) + len(self.look.timelines)

    def show(self, look: Look) -> None:
        """Other frames, or another one is looked at."""
        self.look = look
        self.changed()
        self.to(look.session.frame)

    def line(self, number: int, width: int) -> Sequence[Piece]:
        """A frame or a timeline."""
        if number < len(self.look.frames):
            return _frame(self.look.frames[number])
        timeline = number - len(self.look.frames)
        mark = "*" if timeline == self.look.timeline else " "
        return ((f"{mark}timeline {timeline}: {self.look.timelines[timeline]}", "bold" if mark == "*" else ""),)

    def action_choose(self) -> None:
        """Look at a frame, or go to a timeline."""
        frame = self.cursor < len(self.look.frames)
        line = f"frame {self.cursor}" if frame else f"timeline {self.cursor - len(self.look.frames)}"
        self.post_message(Ask(line))


def _frame(frame: FrameLook) -> Sequence[Piece]:
    mark = "*" if frame.looked_at else " "
    line = f"line {frame.line}, " if frame.line else ""
    how = "bold" if frame.looked_at else ""
    return ((f"{mark}{frame.number} {frame.name}", how), (f"  {line}{frame.operator}", "dim"))


# ---- Tensors ----------------------------------------------------------------------------------------

_NUMBER: Final = 10
_MARKS: Final = 9
_LONGEST: Final = 28
"""Characters of a name, and of a type, at most."""


def _numbers(*texts: str) -> str:
    return "".join(f"{it:>{_NUMBER}}" for it in texts)


def _fit(text: str, room: int, *, end: bool = False) -> str:
    """A text in so many characters. end: of a longer one the end is kept, in which names differ."""
    if len(text) <= room:
        return f"{text:<{room}}"
    return f"{CUT}{text[1 - room :]}" if end else f"{text[: room - 1]}{CUT}"


class TensorsPane(Lines):
    """The tensors of the frame that is looked at. The cursor follows what is written until a person moves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "follow"),
        Binding("enter", "print"),
        Binding("w", "why"),
    ]
    label = "3 tensors"

    class Chosen(Message):
        """Another tensor has the cursor."""

    def __init__(self, name: str, look: Look, ask: Callable[[tuple[TensorId, ...]], None]) -> None:
        super().__init__(name)
        self.look, self.filter = look, ""
        self.held: TensorId | None = None
        """The tensor that a person chose; None while the cursor follows what is written."""
        self.rows: tuple[TensorId, ...] = ()
        self.looks: dict[TensorId, TensorLook] = {}
        self._ask, self._wanted = ask, set[TensorId]()

    @property
    def chosen(self) -> TensorId | None:
        """The tensor that a person chose, also where it is not among the rows, or the one of the cursor."""
        at_cursor = self.rows[self.cursor] if self.rows else None
        return at_cursor if self.held is None else self.held

    def count(self) -> int:
        """The tensors that the filter lets through, below the headings."""
        return len(self.rows)

    def show(self, look: Look) -> None:
        """Other tensors; the cursor stays on the same one, or goes to what was written."""
        chosen = self.chosen
        self.look, self.looks, self._wanted = look, {}, set()
        self._filtered()
        written = [t for t in look.written if t in self.rows]
        wanted = written[0] if self.held is None and written else chosen
        self.to(self.rows.index(wanted) if wanted in self.rows else self.cursor)
        self.post_message(self.Chosen())

    def _filtered(self) -> None:
        tensors, pattern = self.look.session.model.tensors, self.filter
        glob = pattern if any(sign in pattern for sign in "*?") else ""
        self.rows = tuple(
            t for t in self.look.tensors if (fnmatchcase(tensors[t].name, glob) if glob else pattern in tensors[t].name)
        )
        self.changed()
        self._tell()

    def _tell(self) -> None:
        more = f" of {len(self.look.tensors)}" if len(self.rows) != len(self.look.tensors) else ""
        named = f", named {self.filter}" if self.filter else ""
        self.say(f"{len(self.rows)}{more}{named}{', following' if self.held is None else ''}")

    def filtered(self, pattern: str) -> None:
        """Only tensors whose name has a text, or fits a glob."""
        chosen, tensors = self.chosen, self.look.session.model.tensors
        self.filter = pattern
        self._filtered()
        exact = next((i for i, t in enumerate(self.rows) if tensors[t].name == pattern), None)
        if exact is not None:
            self.to(exact)
            self.by_hand()
            return
        self.to(self.rows.index(chosen) if chosen in self.rows else 0)
        self.post_message(self.Chosen())

    def line(self, number: int, width: int) -> Sequence[Piece]:
        """Name, type, numbers, what is not finite."""
        t = self.rows[number]
        look = self.looks.get(t)
        if look is None and t not in self._wanted:
            self._wanted.add(t)
            self._ask((t,))
        new = t in self.look.written
        front = f"{'+' if new else ' '}{'>' if number == self.cursor else ' '}"
        names, types = self._rooms(width)
        how = "bold green" if new else ""
        name, kind = name_of(self.look.session, t), type_here(self.look, t)
        start = [(f"{front}{_fit(name, names, end=True)} ", how), (f"{_fit(kind, types)} ", "")]
        if look is None:
            return (*start, (CUT, "dim"))
        wild = _fit(_marks(look.nan, look.inf), _MARKS)
        numbers = look.note or _numbers(look.least, look.greatest, look.mean)
        return (*start, *([] if look.note else [(wild, "bold red")]), (numbers, ""))

    def _rooms(self, width: int) -> tuple[int, int]:
        """The widths of names and types; the headings are above them."""
        room = max(width - 4 - _MARKS - 3 * _NUMBER, 16)
        types = min(room * 4 // 7, _LONGEST)
        names = min(room - types, _LONGEST)
        self.heading = f"  {_fit('name', names)} {_fit('type', types)} {'':{_MARKS}}{_numbers('min', 'max', 'mean')}"
        return names, types

    def got(self, look: Look, looks: dict[TensorId, TensorLook]) -> None:
        """Looks that were asked for, where the position is still the same."""
        if look is self.look:
            self.looks |= looks
            self.refresh()

    def by_hand(self) -> None:
        """A person chose a tensor."""
        self.held = self.rows[self.cursor] if self.rows else None
        self._tell()
        self.post_message(self.Chosen())

    def action_follow(self) -> None:
        """The cursor follows what is written, or not."""
        self.held = self.rows[self.cursor] if self.held is None and self.rows else None
        self.show(self.look)

    def action_print(self) -> None:
        """Print the tensor."""
        self._about("print")

    def action_why(self) -> None:
        """Say which step wrote the tensor."""
        self._about("last-write")

    def _about(self, command: str) -> None:
        if self.chosen is not None:
            self.post_message(AskAbout(command, self.chosen))


def _marks(nan: int, inf: int) -> str:
    """How many elements are not finite, in few characters."""
    if nan and inf:
        return f"N {nan} I {inf}"
    return f"NaN {nan}" if nan else f"Inf {inf}" if inf else ""


class AskAbout(Message):
    """A pane asks a command about a tensor, or an element of it."""

    def __init__(self, command: str, tensor: TensorId, element: str = "") -> None:
        super().__init__()
        self.command, self.tensor, self.element = command, tensor, element
