"""A picture as data that a page holds, and the page. Equal pictures of equal models give equal bytes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final

from sonnx.spec.pages.templates import NONE, Parts, page
from sonnx.spec.terminal import inert, one_line

from ..errors import Unsupported
from ..machine.spelling import attribute_name, attribute_text, constant_text, stated_type
from ..model.graph import Model, NodeId, TensorId
from ..model.path import quote
from ..operators.application import initializers
from .boxes import Box, Kind, boxes, reading_order, with_holders
from .layering import layered
from .notes import LOUD, Content, Picture

NODES: Final = 12_000
"""The most nodes that are drawn, those about the focus."""
BYTES: Final = 2_000_000
"""The most bytes of a page. Where names, attributes and findings are long, fewer nodes are drawn."""
_FEW: Final = 60  # nodes in a body or call that is open at the start
_MANY: Final = 2_000  # nodes of a picture in which all others are closed at the start
_FRAME: Final = 8_000  # bytes of the frame of a page, its controls, and the sentence on what is left out
_CHARACTER: Final = 7.3
_NARROWEST, _WIDEST = 92, 232
MARGIN: Final = 14
"""Pixels between the border of a box and what is in it."""
_LINE: Final = 600  # characters of a sentence about a node
_LINES: Final = 20

Data = None | bool | int | float | str | list["Data"] | dict[str, "Data"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a page needs to show a picture: `canvas.html` of this package, which a template includes, with this as
    `graph`, and as `alone` whether the page has nothing else. data: JSON that is inert in HTML. parts: the style and
    the script. limits: sentences on what is left out; where nothing is drawn, data is "".
    """

    title: str
    facts: tuple[str, ...]
    data: str
    parts: Parts
    limits: tuple[str, ...] = ()


def to_html(model: Model, picture: Picture) -> str:
    """The picture as a page of its own, of at most `BYTES`. Raises MissingExtraError, and Unsupported where the texts
    about a single node are longer than that."""
    graph = drawn(model, picture)
    if graph is None:
        raise Unsupported(f"the texts about one node take more than the {BYTES // 1_000_000} MB of a page")
    return page(__package__, "graph.html", parts=graph.parts, graph=graph, alone=True)


def drawn(model: Model, picture: Picture, taken: int = 0) -> Drawn | None:
    """The picture as data: whole, or as many nodes about the focus as a page holds; None where it does not hold one.
    taken: the bytes of the page that hold other things."""
    order = list(reading_order(model))
    parts = _parts()
    facts = tuple(inert(it) for it in picture.facts)
    room = BYTES - taken - _FRAME - sum(len(it.encode()) for it in (parts.style, parts.script, *facts))
    most = min(NODES, len(order))
    while True:
        chosen = _window(order, picture.focus, most)
        shown = with_holders(model, chosen)
        limits = () if len(shown) == len(order) else (_left_out(model, picture, order, chosen, shown),)
        data = _inert(_data(model, picture, boxes(model, shown)))
        if len(data) <= room:
            return Drawn(inert(picture.title), facts, data, parts, limits)
        if most <= 1:
            return None
        most = max(min(most * 9 // 10, most * room // len(data)), 1)


def undrawn(why: str) -> Drawn:
    """No picture, and why a page has no room for one."""
    return Drawn("", (), "", NONE, (f"The graph is not drawn: {why}, and a page at most {BYTES}.",))


def _window(order: Sequence[NodeId], focus: NodeId | None, most: int) -> Sequence[NodeId]:
    middle = order.index(focus) if focus in order else 0
    first = max(min(middle - most // 2, len(order) - most), 0)
    return order[first : first + most]


def _left_out(
    model: Model, picture: Picture, order: Sequence[NodeId], chosen: Sequence[NodeId], shown: Set[NodeId]
) -> str:
    first, last = (_cut(model.nodes[chosen[at]].path) for at in (0, -1))
    marked = Counter(it for n in order if n not in shown for it in picture.marked.get(n, ()))
    missed = [
        f"{marked[it.name]} of the mark {it.words!r}" for it in picture.marks if it.tone in LOUD and marked[it.name]
    ]
    return (
        f"Drawn are {len(shown)} of the {len(order)} nodes, from {first} to {last}, in the order of the listing: a"
        f" page has at most {NODES} nodes and {BYTES // 1_000_000} MB. Edges to other nodes are left out."
        + (f" Not drawn: {', '.join(missed)}." if missed else "")
    )


def _cut(text: str) -> str:
    return inert(text if len(text) <= _LINE else f"{text[:_LINE]}...")


def _parts() -> Parts:
    here = files(__package__)
    return Parts(*(here.joinpath(name).read_text(encoding="utf-8") for name in ("graph.css", "graph.js")))


def _inert(data: Data) -> str:
    """The data as JSON in which no text can end a script or begin markup."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


# ---- Places -----------------------------------------------------------------------------------------


def _opened(picture: Picture, made: Sequence[Box]) -> set[int]:
    """The boxes whose insides are shown at the start: small ones, those around the focus, and calls where there is
    nothing else."""
    inside = [0] * len(made)
    for at in range(len(made) - 1, 0, -1):
        inside[made[at].parent] += inside[at] + (made[at].kind is Kind.NODE)
    few = inside[0] <= _MANY if made else False
    opened = {at for at, box in enumerate(made) if box.kind is Kind.BODY or (box.inner and few and inside[at] <= _FEW)}
    top = {at for at, box in enumerate(made) if at and box.parent == 0 and box.kind in (Kind.NODE, Kind.CALL)}
    if few and all(made[at].kind is Kind.CALL for at in top):
        opened |= top
    at = next((at for at, box in enumerate(made) if box.node is not None and box.node == picture.focus), 0)
    while at:
        at = made[at].parent
        opened.add(at)
    return opened


def _placed(
    made: Sequence[Box], own: Sequence[int], opened: Set[int]
) -> tuple[list[int], list[int], list[tuple[int, int, tuple[int, ...]]]]:
    """Row and middle of each box within the one that it lies in, and all edges with their bends. own: the width of each
    box that is closed."""
    rows, middles, widths = [0] * len(made), [0] * len(made), list(own)
    edges: list[tuple[int, int, tuple[int, ...]]] = []
    for at in range(len(made) - 1, -1, -1):
        box = made[at]
        if not box.inner:
            continue
        local = {inner: number for number, inner in enumerate(box.inner)}
        links = list(box.edges)
        layout = layered([widths[it] for it in box.inner], [(local[a], local[b]) for a, b in links])
        for inner, number in local.items():
            rows[inner], middles[inner] = layout.row[number], layout.middle[number]
        edges += [(a, b, bends) for (a, b), bends in zip(links, layout.bends, strict=True)]
        right = max(middles[it] + widths[it] // 2 for it in box.inner)
        if at in opened:
            widths[at] = max(own[at], right + 2 * MARGIN)
    return rows, middles, edges


# ---- Data -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Texts:
    """Texts in the order in which they are first said, each once; the first is the empty one."""

    numbers: dict[str, int] = field(default_factory=lambda: {"": 0})

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def data(self) -> Data:
        """Each text as what it shares with the one before, and the rest: names of a model begin alike."""
        before = ""
        shared: list[Data] = []
        rests: list[Data] = []
        for text in self.numbers:
            same = 0
            while same < min(len(text), len(before), 255) and text[same] == before[same]:
                same += 1
            shared.append(same)
            rests.append(text[same:])
            before = text
        return {"shared": shared, "rest": rests}


def _steps(numbers: Iterable[int]) -> list[Data]:
    """Numbers as differences from the one before, which are short."""
    before, steps = 0, []
    for number in numbers:
        steps.append(number - before)
        before = number
    return list[Data](steps)


def _data(model: Model, picture: Picture, made: Sequence[Box]) -> Data:
    titles, names, types, values, attributes, lines = (_Texts() for _ in range(6))
    stored = {t: constant_text(it) for graph in model.graphs for t, it in initializers(graph)}
    numbers: dict[TensorId, int] = {}
    bases = {box.base: number for number, box in enumerate(made) if box.base}

    def tensor(t: TensorId | None) -> int:
        return -1 if t is None else numbers.setdefault(t, len(numbers))

    ports = [(_inputs(model, it), _outputs(model, it)) for it in made]
    listed = [([tensor(t) for t in reads], [tensor(t) for t in writes]) for reads, writes in ports]
    stated = [_type(model, picture.values.get(t), stored.get(t), t) for t in numbers]
    shown = [stated[listed[at][1][0]] if listed[at][1] and listed[at][1][0] >= 0 else "" for at in range(len(made))]
    signs = {mark.name: len(mark.sign) + 1 for mark in picture.marks if mark.sign}
    marks = [() if box.node is None else picture.marked.get(box.node, ()) for box in made]
    own = [_width(box, it, sum(signs.get(m, 0) for m in on)) for box, it, on in zip(made, shown, marks, strict=True)]
    opened = _opened(picture, made)
    rows, middles, edges = _placed(made, own, opened)
    known = {mark.name: 1 << at for at, mark in enumerate(picture.marks)}
    marked = [sum(known[it] for it in on) for on in marks]
    said: dict[str, Data] = {}
    for number, box in enumerate(made):
        sentences = picture.said.get(box.node, ()) if box.node is not None else ()
        if sentences:
            said[str(number)] = list[Data](lines.number(it) for it in _few(sentences))
    spelled = [_attributes(model, box) for box in made]
    odd: dict[str, Data] = {
        str(at): box.path for at, box in enumerate(made) if box.path and box.path != _usual(made, box)
    }
    result: dict[str, Data] = {
        "title": inert(picture.title),
        "general": list[Data](_few(picture.general)),
        "marks": [[it.name, it.sign, it.words, it.tone] for it in picture.marks],
        "focus": next((at for at, box in enumerate(made) if box.node == picture.focus and box.node is not None), 0),
        "open": [at for at in range(len(made)) if at in opened],
        "parent": _steps(box.parent for box in made),
        "kind": "".join(str(box.kind.value) for box in made),
        "index": _steps(_index(made, box) for box in made),
        "title_of": _steps(titles.number(box.title) for box in made),
        "name_of": _steps(names.number(box.name) for box in made),
        "attributes_of": _steps(attributes.number(it) for it in spelled),
        "path": odd,
        "marked": _steps(marked),
        "said": said,
        "row": _steps(rows),
        "middle": _steps(middles),
        "width": _steps(own),
        "inputs": _lists([reads for reads, _ in listed]),
        "outputs": _lists([writes for _, writes in listed]),
        "from": _steps(a for a, _, _ in edges),
        "to": _steps(b - a for a, b, _ in edges),
        "bends": _lists([bends for _, _, bends in edges]),
    }
    tensors = list(numbers)
    homes = [_home(model, t, bases) for t in tensors]
    names_of_tensors = _Texts()
    result |= {
        "tensor": _steps(names_of_tensors.number(quote(model.tensors[t].name)[1:-1]) for t in tensors),
        "home": _steps(homes),
        "tensor_path": {str(at): model.tensors[t].path for at, t in enumerate(tensors) if homes[at] < 0},
        "type": _steps(types.number(it) for it in stated),
        "value": _steps(values.number(_value(picture.values.get(t))) for t in tensors),
        "stored": [at for at, t in enumerate(tensors) if t in stored],
        "texts": {
            "title": titles.data(), "name": names.data(), "attributes": attributes.data(), "line": lines.data(),
            "tensor": names_of_tensors.data(), "type": types.data(), "value": values.data(),
        },
    }  # fmt: skip
    return result


def _width(box: Box, stated: str, signs: int) -> int:
    """The width of a box for its three lines: what it is with its signs, its name, the type of what it gives."""
    longest = max(len(box.title) + max(signs, 2) + 1, len(box.name), len(stated))
    return min(max(round(longest * _CHARACTER) + 2 * MARGIN, _NARROWEST), _WIDEST)


def _lists(rows: Sequence[Sequence[int]]) -> Data:
    return {"count": list[Data](len(it) for it in rows), "flat": _steps(x for it in rows for x in it)}


def _few(sentences: Sequence[str]) -> list[str]:
    kept = [_cut(it) for it in sentences[:_LINES]]
    return kept if len(sentences) <= _LINES else [*kept, f"and {len(sentences) - _LINES} more"]


def _index(made: Sequence[Box], box: Box) -> int:
    """The position of a node in its list, as its path has it."""
    front = box.path.removeprefix(made[box.parent].base).partition(":")[0]
    return int(front) if box.kind is Kind.NODE and front.isdecimal() else 0


def _usual(made: Sequence[Box], box: Box) -> str:
    """The path of a node as a page makes it again of what surrounds it, its position, operator and name."""
    if box.kind is not Kind.NODE:
        return ""
    return f"{made[box.parent].base}{_index(made, box)}:{box.title}" + (f'("{box.name}")' if box.name else "")


def _home(model: Model, t: TensorId, bases: Mapping[str, int]) -> int:
    """The box in which a tensor lies, -1 where that is not drawn."""
    tensor = model.tensors[t]
    return bases.get(tensor.path.removesuffix(quote(tensor.name)), -1)


def _inputs(model: Model, box: Box) -> Sequence[TensorId | None]:
    return () if box.node is None else model.nodes[box.node].inputs


def _outputs(model: Model, box: Box) -> Sequence[TensorId | None]:
    return (box.tensor,) if box.tensor is not None else () if box.node is None else model.nodes[box.node].outputs


def _attributes(model: Model, box: Box) -> str:
    if box.node is None:
        return ""
    given = model.nodes[box.node].attributes.items()
    plain = (it for it in given if it[1].kind not in ("GRAPH", "GRAPHS"))
    return "\n".join(f"{attribute_name(name)}={attribute_text(value)}" for name, value in plain)


def _type(model: Model, value: Content | None, stored: str | None, t: TensorId) -> str:
    if value is not None:
        return inert(value.type)
    declared = model.tensors[t].declared
    return stored or ("" if declared is None else stated_type(declared))


def _value(value: Content | None) -> str:
    if value is None:
        return ""
    rows = [*(f"{name} {number}" for name, number in value.rows), *([value.first] if value.first else ())]
    return "\n".join(map(one_line, rows))
