"""The heat map: two axes of a tensor in colours, or in signs where a terminal has few; NaN and infinities marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from ...model.graph import TensorId
from .grid import INF, MINUS_INF, NAN, NOTHING, NUMBER, WAYS, Grid, Slice, cell_text, element, elements
from .looks import Look, name_of, type_here
from .panes import AskAbout

_RAMP: Final = " .:-=+*#%@"
_GLYPHS: Final = {NAN: "NN", INF: "+I", MINUS_INF: "-I", NOTHING: "  "}
_WILD: Final = {
    NAN: Style.parse("bold white on #c000c0"),
    INF: Style.parse("bold black on #ffffff"),
    MINUS_INF: Style.parse("bold white on #000000"),
    NOTHING: Style(),
}
_COLD: Final = ((70, 140, 255), (70, 70, 70), (255, 90, 50))
"""From the most negative number by zero to the greatest."""
_WARM: Final = ((35, 30, 90), (30, 150, 130), (250, 230, 70))
"""From the least number to the greatest, where all have one sign."""
_ROOMY: Final = 76
"""Columns from which on the legend has five numbers, in place of three."""
_AROUND: Final = 4
"""Lines beside the picture: two captions, the legend, the cell of the cursor."""


class HeatMap(Widget, can_focus=True):
    """A picture of the tensor that is chosen. ask: to have a picture made of a slice, in so many cells."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1,0)"),
        Binding("down,j", "move(1,0)"),
        Binding("left,h", "move(0,-1)"),
        Binding("right,l", "move(0,1)"),
        Binding("w", "why"),
        Binding("e", "about('explain')"),
        Binding("o", "about('origin')"),
        Binding("left_square_bracket", "axis(-1)"),
        Binding("right_square_bracket", "axis(1)"),
        Binding("minus", "index(-1)"),
        Binding("plus,equals_sign", "index(1)"),
        Binding("x", "turn('across')"),
        Binding("y", "turn('down')"),
        Binding("m", "way"),
        Binding("enter", "about('print')"),
    ]

    def __init__(self, name: str, look: Look, ask: Callable[[TensorId, Slice | None, int, int], None]) -> None:
        super().__init__(id=name)
        self.look, self._ask = look, ask
        self.tensor: TensorId | None = None
        self.grid: Grid | str = ""
        self._slices: dict[TensorId, Slice] = {}
        self._axis = 0
        self._cell = (0, 0)
        self._waiting = False
        """True where the picture is of an earlier position, until the new one is made."""

    # ---- What is shown ----------------------------------------------------------------------------

    def on_mount(self) -> None:
        """The name of the pane stands in its edge."""
        self._title()

    def watch_has_focus(self, focus: bool) -> None:
        """The edge shows where keys go."""
        super().watch_has_focus(focus)
        self._title()

    def _title(self) -> None:
        mark = "[*] " if self.has_focus else ""
        shown = "" if self.tensor is None else f"  {name_of(self.look.session, self.tensor)}"
        self.border_title = Content(f"{mark}4 heat map{shown}{'  (drawing)' if self._waiting else ''}")

    def show(self, look: Look, tensor: TensorId | None) -> None:
        """Another position, or another tensor."""
        if tensor != self.tensor:
            self.grid, self._cell, self._axis = "", (0, 0), 0
        self.look, self.tensor = look, tensor
        self._again()

    def _again(self) -> None:
        height, width = self.content_size.height - _AROUND, self.content_size.width // 2
        if self.tensor is not None and height > 0 and width > 0:
            self._waiting = True
            self._ask(self.tensor, self._slices.get(self.tensor), height, width)
        self._title()
        self.refresh()

    def on_resize(self) -> None:
        """The picture fits the pane."""
        self._again()

    def got(self, look: Look, tensor: TensorId, made: Grid | str) -> None:
        """A picture that was asked for, where it is still wanted; or why there is none."""
        if look is self.look and tensor == self.tensor:
            self.grid, self._waiting = made, False
            self._title()
            if isinstance(made, Grid):
                self._slices[tensor] = made.slice
                rows, columns = made.cells.shape
                self._cell = min(self._cell[0], rows - 1), min(self._cell[1], columns - 1)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """A line of the pane."""
        width = self.content_size.width
        row = Strip([Segment(text, self.rich_style + how) for text, how in self._line(y)])
        return row.crop_extend(0, width, self.rich_style)

    def _line(self, y: int) -> list[tuple[str, Style]]:
        made = self.grid
        if self.tensor is None:
            return [("choose a tensor among the tensors", Style())] if y == 0 else []
        if isinstance(made, str):
            return [(made, Style())] if y == 0 else []
        rows = made.cells.shape[0]
        if y == 0:
            return self._slice(made)
        if y == 1:
            return [(self._caption(made), Style(dim=True))]
        if y - 2 < rows:
            return [self._shown(made, y - 2, column) for column in range(made.cells.shape[1])]
        if y == rows + 2:
            return self._legend(made)
        return [(self._under(made), Style(bold=True))] if y == rows + 3 else []

    def _slice(self, made: Grid) -> list[tuple[str, Style]]:
        """Name and type are in the edge; here which axes are shown, and at which positions of the others."""
        shown = [(f"{type_here(self.look, self.tensor or 0)}  ", Style())]
        if made.folded and made.plane.shape[0] > 1:
            return [*shown, (f"folded into rows of {made.folded}", Style())]
        parts: list[tuple[str, Style]] = []
        wanted, free = made.slice, self._fixed(made)
        for axis, at in enumerate(wanted.index):
            parts.append((", " if axis else "[", Style()))
            if axis in free:
                parts.append((str(at), Style(reverse=free[self._axis % len(free)] == axis)))
            else:
                parts.append(("across" if axis == wanted.across else "down", Style()))
        return [*shown, *parts, ("]", Style())]

    def _fixed(self, made: Grid) -> list[int]:
        return [i for i in range(len(made.slice.index)) if i not in (made.slice.down, made.slice.across)]

    def _caption(self, made: Grid) -> str:
        down, across = made.block
        of = f"the {made.slice.way} of {down} x {across} elements" if made.block != (1, 1) else "one element"
        ends = "" if made.least is None else f"; min {made.least:.4g} max {made.greatest:.4g}"
        return f"a cell is {of}{ends}"

    def _colours(self) -> bool:
        return not self.app.no_color and self.app.console.color_system in ("256", "truecolor")

    def _shown(self, made: Grid, row: int, column: int) -> tuple[str, Style]:
        kind = int(made.kinds[row, column])
        value = float(made.cells[row, column])
        text, style = (_GLYPHS[kind], _WILD[kind]) if kind != NUMBER else self._number(made, value)
        if (row, column) == self._cell and self.has_focus:
            return f"{'[' if text[0] == ' ' else text[0]}]", style + Style(bold=True, underline=True)
        return text, style

    def _number(self, made: Grid, value: float) -> tuple[str, Style]:
        part, both = _part(made, value)
        if self._colours():
            colour = _mixed(_COLD if both else _WARM, part)
            bright = sum(colour) > 3 * 128
            return "  ", Style(bgcolor=Color.from_rgb(*colour), color="black" if bright else "white")
        size = abs(2 * part - 1) if both else part
        sign = "-" if both and value < 0 else " "
        return f"{_RAMP[round(size * (len(_RAMP) - 1))]}{sign}", Style()

    def _legend(self, made: Grid) -> list[tuple[str, Style]]:
        """How many elements are not finite, and numbers along the scale."""
        parts: list[tuple[str, Style]] = []
        for kind, name, count in zip((NAN, INF, MINUS_INF), ("NaN", "inf", "-inf"), made.counts, strict=True):
            parts += [(_GLYPHS[kind], _WILD[kind]), (f" {name} {count}  ", Style())] if count else []
        if made.least is not None and made.greatest is not None:
            size = max(-made.least, made.greatest)
            low, high = (-size, size) if made.least < 0 < made.greatest else (made.least, made.greatest)
            steps = 4 if self.content_size.width >= _ROOMY else 2
            for step in range(steps + 1 if low < high else 1):
                value = low + (high - low) * step / steps
                parts += [self._number(made, value), (f" {value:.3g} ", Style())]
        return parts

    def _under(self, made: Grid) -> str:
        row, column = self._cell
        if made.kinds[row, column] == NOTHING:
            return ""
        return f"{self._element(made)} = {cell_text(made, row, column)}"

    def _element(self, made: Grid) -> str:
        name = "" if self.tensor is None else name_of(self.look.session, self.tensor)
        return f"{name}{_subscript(elements(made, *self._cell))}"

    # ---- What keys do -------------------------------------------------------------------------------

    def action_move(self, down: int, across: int) -> None:
        """The cursor by some cells."""
        if isinstance(self.grid, Grid):
            rows, columns = self.grid.cells.shape
            row, column = self._cell
            self._cell = max(min(row + down, rows - 1), 0), max(min(column + across, columns - 1), 0)
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor."""
        offset = event.get_content_offset(self)
        if offset is not None and isinstance(self.grid, Grid):
            rows, columns = self.grid.cells.shape
            if 0 <= offset.y - 2 < rows and offset.x // 2 < columns:
                self._cell = offset.y - 2, offset.x // 2
                self.refresh()

    def action_axis(self, by: int) -> None:
        """Another one of the axes that are not shown."""
        self._axis += by
        self.refresh()

    def action_index(self, by: int) -> None:
        """Another position on the axis that is marked."""
        if isinstance(self.grid, Grid) and (free := self._fixed(self.grid)):
            axis, index = free[self._axis % len(free)], list(self.grid.slice.index)
            index[axis] = max(min(index[axis] + by, self.grid.shape[axis] - 1), 0)
            self._sliced(Slice(self.grid.slice.down, self.grid.slice.across, tuple(index), self.grid.slice.way))

    def action_turn(self, which: str) -> None:
        """Another axis goes down, or across."""
        if not isinstance(self.grid, Grid) or len(self.grid.slice.index) < 2:
            return
        old, rank = self.grid.slice, len(self.grid.slice.index)
        if which == "across":
            across = next(a for i in range(1, rank + 1) if (a := (old.across + i) % rank) != old.down or rank == 2)
            down = old.across if across == old.down else old.down
        else:
            down = next(a for i in range(1, rank + 1) if (a := (old.down + i) % rank) != old.across or rank == 2)
            across = old.down if down == old.across else old.across
        self._sliced(Slice(down, across, old.index, old.way))

    def action_way(self) -> None:
        """The largest magnitude, or the mean, of the elements of a cell."""
        if isinstance(self.grid, Grid):
            old = self.grid.slice
            way = WAYS[(WAYS.index(old.way) + 1) % len(WAYS)]
            self._sliced(Slice(old.down, old.across, old.index, way))

    def _sliced(self, wanted: Slice) -> None:
        if self.tensor is not None:
            self._slices[self.tensor] = wanted
            self._again()

    def action_why(self) -> None:
        """Why the element is NaN or infinite; where it is neither, where it comes from."""
        if isinstance(self.grid, Grid):
            self.action_about({NAN: "why-nan", INF: "why-inf", MINUS_INF: "why-inf"}.get(
                int(self.grid.kinds[self._cell]), "origin"))  # fmt: skip

    def action_about(self, command: str) -> None:
        """Ask about the element under the cursor."""
        if isinstance(self.grid, Grid) and self.tensor is not None and self.grid.kinds[self._cell] != NOTHING:
            whole = elements(self.grid, *self._cell)
            ranges = whole if command == "print" else tuple((i, i + 1) for i in element(self.grid, *self._cell))
            self.post_message(AskAbout(command, self.tensor, _subscript(ranges)))


def _subscript(ranges: tuple[tuple[int, int], ...]) -> str:
    """Positions as commands have them; of a scalar none."""
    return f"[{', '.join(str(a) if b == a + 1 else f'{a}:{b}' for a, b in ranges)}]" if ranges else ""


def _part(made: Grid, value: float) -> tuple[float, bool]:
    """Where a number lies on the scale, 0 to 1, and whether the scale has both signs, so that its middle is zero."""
    least, greatest = made.least or 0.0, made.greatest or 0.0
    both = least < 0 < greatest
    low, high = (-max(-least, greatest), max(-least, greatest)) if both else (least, greatest)
    return (min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5), both


def _mixed(colours: tuple[tuple[int, int, int], ...], part: float) -> tuple[int, int, int]:
    """A colour between those of a scale of three."""
    at, rest = (0, 2 * part) if part < 0.5 else (1, 2 * part - 1)
    red, green, blue = (round(a + (b - a) * rest) for a, b in zip(colours[at], colours[at + 1], strict=True))
    return red, green, blue
