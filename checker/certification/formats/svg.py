"""A neighbourhood as an SVG picture: layers from left to right, nodes as boxes, tensors as rounded boxes.

Layout: a box's layer is its distance behind the first box on acyclic steps; arrows against that order are drawn as
dashed arcs, so a cycle is seen as one. Colour is never the only signal: what the finding is about has a thick border.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

from sonnx.spec.pages.svg import arrow, arrow_head, drawing, rectangle, shape, text

from ..report import Box, Neighbourhood

CHARACTER, ROW, GAP, PAD = 7.2, 44, 46, 12


def to_svg(picture: Neighbourhood, title: str) -> str:
    """The picture as an `<svg>` element without scripts, styles or references."""
    columns = _layers(picture)
    widths = [max((_width(picture.boxes[i]) for i in column), default=0.0) for column in columns]
    height = max((len(column) for column in columns), default=1) * ROW + 2 * PAD
    place: dict[int, tuple[float, float, float]] = {}
    left = float(PAD)
    for column, width in zip(columns, widths, strict=True):
        top = (height - len(column) * ROW) / 2
        for row, index in enumerate(column):
            own = _width(picture.boxes[index])
            place[index] = (left + (width - own) / 2, top + row * ROW + 8, own)
        left += width + GAP
    total = left - GAP + PAD
    layer = {index: number for number, column in enumerate(columns) for index in column}
    parts = [_arrow(place[a], place[b], back=layer[b] <= layer[a], height=height) for a, b in picture.arrows]
    parts += [_box(picture.boxes[i], *place[i]) for i in sorted(place)]
    return drawing(total, height, arrow_head(), parts, title=title)


def _width(box: Box) -> float:
    return len(_label(box)) * CHARACTER + 2 * PAD


def _label(box: Box) -> str:
    return box.label if len(box.label) <= 28 else box.label[:27] + "\u2026"


def _layers(picture: Neighbourhood) -> list[list[int]]:
    """Boxes by layer. An arrow that would close a cycle counts for nothing."""
    after: dict[int, list[int]] = {}
    for a, b in picture.arrows:
        after.setdefault(a, []).append(b)
    forward = _without_back_arrows(len(picture.boxes), after)
    depth = dict.fromkeys(range(len(picture.boxes)), 0)
    for _ in picture.boxes:
        for a, b in forward:
            depth[b] = max(depth[b], depth[a] + 1)
    columns: dict[int, list[int]] = {}
    for index in range(len(picture.boxes)):
        columns.setdefault(depth[index], []).append(index)
    return [columns[number] for number in sorted(columns)]


def _without_back_arrows(count: int, after: dict[int, list[int]]) -> list[tuple[int, int]]:
    """The arrows that a depth-first walk does not find to lead back to a box which is still open."""
    state = dict.fromkeys(range(count), 0)
    kept: list[tuple[int, int]] = []

    def visit(box: int) -> None:
        state[box] = 1
        for target in after.get(box, ()):
            if state[target] != 1:
                kept.append((box, target))
            if state[target] == 0:
                visit(target)
        state[box] = 2

    for box in range(count):
        if state[box] == 0:
            visit(box)
    return kept


def _arrow(a: tuple[float, float, float], b: tuple[float, float, float], *, back: bool, height: float) -> Element:
    if back:
        x1, y1, x2, y2 = a[0] + a[2] / 2, a[1] + 28, b[0] + b[2] / 2, b[1] + 28
        low = min(height - 2, max(y1, y2) + 16)
        curve = f"M{x1:.1f},{y1:.1f} C{x1:.1f},{low:.1f} {x2:.1f},{low:.1f} {x2:.1f},{y2:.1f}"
        return arrow(curve, stroke_dasharray="4 3")
    x1, y1, x2, y2 = a[0] + a[2], a[1] + 14, b[0], b[1] + 14
    middle = (x1 + x2) / 2
    return arrow(f"M{x1:.1f},{y1:.1f} C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} {x2:.1f},{y2:.1f}")


def _box(box: Box, x: float, y: float, width: float) -> Element:
    border = rectangle(
        x,
        y,
        width,
        28,
        class_=f"{box.kind}{' focus' if box.focus else ''}",
        rx=14 if box.kind == "tensor" else 2,
        fill="none",
        stroke="currentColor",
        stroke_width=3 if box.focus else 1,
        stroke_dasharray="2 2" if box.kind == "more" else None,
    )
    label = text(
        x + width / 2,
        y + 18,
        _label(box),
        text_anchor="middle",
        font_size=12,
        font_family="monospace",
        fill="currentColor",
    )
    return shape("g", shape("title", box.path or box.label), border, label)
