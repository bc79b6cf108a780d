"""A neighbourhood as an SVG picture: layers from left to right, nodes as boxes, tensors as rounded boxes.

Layout: a box's layer is its distance behind the first box on acyclic steps; arrows against that order are drawn as
dashed arcs, so a cycle is seen as one. Colour is never the only signal: what the finding is about has a thick border.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

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
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label={quoteattr(title)} '
        f'viewBox="0 0 {total:.0f} {height:.0f}" width="{total:.0f}" height="{height:.0f}">'
        f"<title>{escape(title)}</title>{_HEAD}{''.join(parts)}</svg>"
    )


_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="currentColor"/></marker></defs>'
)


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


def _arrow(a: tuple[float, float, float], b: tuple[float, float, float], *, back: bool, height: float) -> str:
    style = 'fill="none" stroke="currentColor" marker-end="url(#head)"'
    if back:
        x1, y1, x2, y2 = a[0] + a[2] / 2, a[1] + 28, b[0] + b[2] / 2, b[1] + 28
        low = min(height - 2, max(y1, y2) + 16)
        curve = f"M{x1:.1f},{y1:.1f} C{x1:.1f},{low:.1f} {x2:.1f},{low:.1f} {x2:.1f},{y2:.1f}"
        return f'<path d="{curve}" {style} stroke-dasharray="4 3"/>'
    x1, y1, x2, y2 = a[0] + a[2], a[1] + 14, b[0], b[1] + 14
    middle = (x1 + x2) / 2
    curve = f"M{x1:.1f},{y1:.1f} C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    return f'<path d="{curve}" {style}/>'


def _box(box: Box, x: float, y: float, width: float) -> str:
    radius = {"node": 2, "tensor": 14}.get(box.kind, 2)
    stroke = 3 if box.focus else 1
    dash = ' stroke-dasharray="2 2"' if box.kind == "more" else ""
    return (
        f"<g><title>{escape(box.path or box.label)}</title>"
        f'<rect class="{box.kind}{" focus" if box.focus else ""}" '
        f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="28" rx="{radius}" '
        f'fill="none" stroke="currentColor" stroke-width="{stroke}"{dash}/>'
        f'<text x="{x + width / 2:.1f}" y="{y + 18:.1f}" text-anchor="middle" font-size="12" '
        f'font-family="monospace" fill="currentColor">{escape(_label(box))}</text></g>'
    )
