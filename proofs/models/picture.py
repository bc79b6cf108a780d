"""A finite model as a person reads it: the nodes, what they read and write, and which memory gives which values.

Elements get short names: n1 a node, t1 a tensor, G1 a graph, v1 a value. A memory is called by the names that the
theorem has for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from sonnx.spec.pages.svg import arrow, arrow_head, rectangle, shape, text
from sonnx.spec.pages.svg import drawing as frame

from ..kernel.formulas import Argument
from .search import Model

LETTERS = {"Node": "n", "Tensor": "t", "Graph": "G", "Value": "v", "Memory": "M", "Port": "p", "Frames": "K",
           "Plan": "P", "Bytes": "B", "Byte": "b"}  # fmt: skip
"""The names of the elements of a sort."""
DRAWN = frozenset({"ins", "outs", "dom", "lookup", "nodes", "consumers", "producers", "scope", "graph_of", "all_nodes",
                   "all_tensors", "writes", "writer"})  # fmt: skip
"""The relations that the picture itself shows; other relations are listed below it."""
STEP, ROW = 150, 70
"""Pixels between two columns and two rows of the drawing."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the elements of a model."""

    model: Model

    def of(self, element: Argument) -> str:
        """The name of an element, a number or a truth value; a memory or graph by the constants that denote it."""
        sort, dot, number = str(element).partition(".")
        if not dot or sort not in self.model.universes:
            return str(element)
        called = [name.replace(".next", "'") for name, rows in self.model.tables.items() if rows.get(()) == element]
        if sort == "Text":
            return next((f'"{name.removeprefix("text!")}"' for name in called), f"text {number}")
        own = f"{LETTERS.get(sort, sort.lower())}{number}"
        if sort in ("Memory", "Graph", "Frames", "Plan", "Bytes") and called:
            return " = ".join(called)
        return own


def listing(model: Model) -> tuple[str, ...]:
    """The model as text: a line for each node, for each memory, and for what else holds."""
    names, made = Names(model), []
    for node in model.universes.get("Node", ()):
        reads = _list(names, (t for t in _tensors(model) if model.holds("ins", node, t)))
        writes = _list(names, (t for t in _tensors(model) if model.holds("outs", node, t)))
        made.append(
            f"node {names.of(node)}: reads {reads or 'nothing'}, writes {writes or 'nothing'}{_marks(model, node)}"
        )
    for memory in model.universes.get("Memory", ()):
        values = _list(names, _stored(model, names, memory))
        made.append(f"memory {names.of(memory)}: {values or 'empty'}")
    return (*made, *_others(model, names))


def _tensors(model: Model) -> tuple[str, ...]:
    return model.universes.get("Tensor", ())


def _list(names: Names, elements: Iterable[str]) -> str:
    return ", ".join(names.of(element) for element in elements)


def _stored(model: Model, names: Names, memory: str) -> Iterator[str]:
    """The content of a memory: the tensor, and its value where the model speaks of values."""
    for tensor in _tensors(model):
        if model.holds("dom", memory, tensor):
            value = model.tables.get("lookup", {}).get((memory, tensor))
            yield f"{names.of(tensor)} = {names.of(value)}" if value is not None else names.of(tensor)


def _marks(model: Model, node: str) -> str:
    graphs = [g for g in model.universes.get("Graph", ()) if model.holds("nodes", g, node)]
    names = Names(model)
    where = f", of {_list(names, graphs)}" if len(model.universes.get("Graph", ())) > 1 else ""
    return where if graphs or "nodes" not in model.tables else ", of no graph"


def _others(model: Model, names: Names) -> Iterator[str]:
    """The constants of the theorem, and the relations that the picture does not show."""
    constants = [(name, rows[()]) for name, rows in model.tables.items() if () in rows and "!" not in name]
    shown = [f"{name.replace('.next', chr(39))} = {names.of(value)}" for name, value in constants
             if str(value).partition(".")[0] not in ("Memory", "Graph", "Frames", "Plan", "Bytes")]  # fmt: skip
    if shown:
        yield f"where {', '.join(shown)}"
    for symbol, rows in sorted(model.tables.items()):
        if symbol in DRAWN or () in rows or symbol.startswith("rank!"):
            continue
        facts = [_fact(symbol, key, value, names) for key, value in rows.items()
                 if value != "false" and all(_inside(part, model) for part in (*key, value))]  # fmt: skip
        if facts:
            yield ", ".join(facts)


def _inside(part: Argument, model: Model) -> bool:
    if not isinstance(part, int):
        return True
    low, high = model.numbers or (part, part)
    return low <= part <= high


def _fact(symbol: str, key: tuple[Argument, ...], value: Argument, names: Names) -> str:
    applied = f"{symbol.removesuffix('.word')}({', '.join(names.of(part) for part in key)})"
    return applied if value == "true" else f"{applied} = {names.of(value)}"


# ---- Drawing ----------------------------------------------------------------------------------


def drawing(model: Model, title: str) -> str:
    """The model as SVG: tensors are circles, nodes boxes, arrows say what is read and written; the text below."""
    names, nodes, tensors = Names(model), model.universes.get("Node", ()), _tensors(model)
    places: dict[str, tuple[int, int]] = {}
    for column, elements in enumerate((tensors, nodes)):
        places |= {element: (60 + column * STEP, 60 + row * ROW) for row, element in enumerate(elements)}
    lines = listing(model)
    below = 60 + max(len(nodes), len(tensors), 1) * ROW
    height, width = below + 18 * len(lines) + 10, max(420, 7 * max(map(len, (*lines, title)), default=0) + 20)
    shapes = (
        arrow_head(),
        text(10, 22, title, font_size=14, font_weight="bold"),
        *_arrows(model, places),
        *(_circle(names.of(t), *places[t]) for t in tensors),
        *(_box(names.of(n), *places[n]) for n in nodes),
        *(text(10, below + 18 * row, line, font_size=12) for row, line in enumerate(lines)),
    )
    return f"{frame(width, height, shapes, font_family='sans-serif')}\n"


def _arrows(model: Model, places: dict[str, tuple[int, int]]) -> Iterator[Element]:
    """Reads go straight, writes go back in a bow, so that both are seen."""
    for node in model.universes.get("Node", ()):
        (nx, ny) = places[node]
        for tensor in _tensors(model):
            (tx, ty) = places[tensor]
            if model.holds("ins", node, tensor):
                yield arrow(f"M{tx + 18} {ty - 5} L{nx - 24} {ny - 5}")
            if model.holds("outs", node, tensor):
                yield arrow(f"M{nx - 24} {ny + 8} Q{(nx + tx) // 2} {(ny + ty) // 2 + 30} {tx + 18} {ty + 8}")


def _circle(name: str, x: int, y: int) -> Element:
    return shape("g", shape("circle", cx=x, cy=y, r=18, fill="#eef"), text(x, y + 5, name, text_anchor="middle"))


def _box(name: str, x: int, y: int) -> Element:
    border = rectangle(x - 24, y - 16, 48, 32, fill="#efe", stroke="black")
    return shape("g", border, text(x, y + 5, name, text_anchor="middle"))
