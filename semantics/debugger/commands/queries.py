"""Commands that ask where values come from, and why something happens."""

from __future__ import annotations

import time
from typing import Final

from ...model.path import quote
from ...operators.symbolic.statements import definition
from ..display.answers import Answer, Note, Rows
from ..display.texts import element_text
from ..expressions.evaluating import element_meant
from ..queries.explaining import Leaf, Numeral
from ..queries.formulas import Part as Taken
from ..queries.formulas import Row, left_out, parts, tree_text
from ..queries.origin import Origin, Part, origin, through_copies
from ..queries.sources import Element, Source, Sources
from ..queries.strange import chain, strangeness, text_of
from ..session.command import Command, answered, context, expression, option, whole
from ..session.session import Session
from ..timeline.refused import Refused

_FEW: Final = 8
_SECONDS: Final = 10  # that a search takes where nothing is said
_TERMS: Final = 12
_MANY: Final = 40


def _element(session: Session, text: str) -> tuple[Sources, Element]:
    said = expression(session, text)
    instance, index, _ = element_meant(said, context(session))
    return Sources(session.history, session.index), Element(instance, index)


# ---- Where a value comes from -----------------------------------------------------------------


def _origin(session: Session, text: str) -> Answer:
    text, depth = option(text, "-d")
    text, seconds = option(text, "-t")
    end = time.monotonic() + (_SECONDS if seconds is None else whole(seconds, least=1))
    sources, element = _element(session, text)

    def over() -> bool:
        return session.interrupted() or time.monotonic() > end

    found = origin(sources, element, None if depth is None else whole(depth, least=1), over)
    rows = [*_parts("data", found.data), *_parts("control", found.control)]
    headings = ("read as", "tensor", "kind", "elements", "which")
    return Rows(f"{text_of(element)} was computed from", headings, tuple(rows), _remarks(found))


def _remarks(found: Origin) -> tuple[str, ...]:
    notes = []
    if len(found.steps) == 1:
        notes.append(f"one step took part, {found.steps[0]}")
    elif found.steps:
        notes.append(f"{len(found.steps)} steps took part, {found.steps[0]} to {found.steps[-1]}")
    if found.cut:
        notes.append("the search was cut off: what is called computed was not followed; -t SECONDS gives it time")
    notes += [f"not exact, all inputs are taken: {it}" for it in found.inexact[:_FEW]]
    return tuple(notes)


def _parts(read: str, parts: tuple[Part, ...]) -> list[tuple[str, ...]]:
    return [(read, part.instance.path, part.kind, _count(part), _which(part)) for part in parts]


def _count(part: Part) -> str:
    return "all" if part.whole else str(len(part.elements))


def _which(part: Part) -> str:
    if part.whole and (part.shape is None or len(part.elements) > _FEW or not part.elements):
        return "" if part.shape is None else f"shape {list(part.shape)}"
    if len(part.elements) <= _FEW:
        return " ".join(str(list(it)) for it in part.elements)
    inside = ", ".join(str(low) if low == high else f"{low}:{high + 1}" for low, high in part.box)
    return f"in [{inside}]"


def _why(session: Session, text: str) -> Answer:
    sources, element = _element(session, text)
    end = time.monotonic() + _SECONDS
    found = chain(sources, element, lambda: session.interrupted() or time.monotonic() > end)
    if not found:
        return Note((f"{text_of(element)} is a number, and so is all that it was computed of",))
    many = found if len(found) <= _MANY else (*found[: _MANY // 2], *found[-_MANY // 2 :])
    rows = tuple(
        (it.kind, text_of(it.element), it.value, "" if it.at is None else str(it.at), it.node, it.why) for it in many
    )
    notes = () if len(many) == len(found) else (f"{len(found) - len(many)} more in the middle",)
    headings = ("what", "element", "value", "step", "node", "why")
    return Rows(f"why {text_of(element)} is {_kind(sources, element)}", headings, rows, notes)


def _kind(sources: Sources, element: Element) -> str:
    import numpy as np

    value = sources.value(element.instance)
    if not isinstance(value, np.ndarray) or element.index is None:
        return "what it is"
    return {"nan": "not a number", "inf": "infinite", "": "a number"}[
        strangeness(np.asarray(value[element.index], value.dtype))
    ]


def _explain(session: Session, text: str) -> Answer:
    text, limit = option(text, "-n")
    sources, element = _element(session, text)
    at, found = through_copies(sources, element)
    if found.at is None or found.node is None:
        return Note((f"{text_of(at)} was there from the start: it is {'an input' if at == element else 'copied'}",))
    if found.tree is None:
        return Note((f"{text_of(at)}: {found.whole or f'{found.rule} gives it'}",))
    return _explained(sources, at, found, _TERMS if limit is None else whole(limit, least=1))


def _explained(sources: Sources, element: Element, found: Source, limit: int) -> Answer:
    if found.at is None or found.node is None or found.tree is None:
        raise Refused("there is nothing to explain")
    before = sources.history.at(found.at - 1).state
    node = before.program.model.nodes[found.node]
    names = {i: quote(before.program.model.tensors[t].name) for i, t in enumerate(node.inputs) if t is not None}
    operator = definition(node.op_type, node.version or 0)
    taken = parts(found.tree, limit)
    called = {id(part.tree): part.name for part in taken if part.name}
    rows = [_term(part, row, names, called) for part in taken for row in part.rows]
    notes = [
        f"value {element_text(found.tree.value)}, by {node.op_type}-{node.version} at step {found.at}, {operator.span}"
    ]
    notes.append(operator.doc.partition(". ")[0].rstrip(".") + ".")
    if found.control:
        some = " ".join(text_of(it) for it in found.control[:_FEW])
        rest = f" and {len(found.control) - _FEW} more" if len(found.control) > _FEW else ""
        notes.append(f"decided by {some}{rest}")
    notes += [text for part in taken if (text := left_out(part))]
    if len(rows) >= limit:
        notes.append(f"explain -n {4 * limit} shows more terms")
    headings = ("term", "of", "with the numbers", "sum so far")
    return Rows(f"{text_of(element)} = {node.op_type}", headings, tuple(rows), tuple(notes))


def _term(part: Taken, row: Row, names: dict[int, str], called: dict[int, str]) -> tuple[str, ...]:
    number = "" if row.number is None else str(row.number)
    value, whole = element_text(row.tree.value), row.tree is part.tree
    numbers = value
    if not isinstance(row.tree, Leaf | Numeral):
        calculated = tree_text(row.tree, names, called, whole=whole, numbers=True)
        numbers = value if calculated == value else f"{calculated} = {value}"
    so_far = "" if row.so_far is None else element_text(row.so_far)
    label = ".".join(it for it in (part.name, number) if it) or "0"
    return label, tree_text(row.tree, names, called, whole=whole), numbers, so_far


COMMANDS = (
    Command("origin", answered(_origin), "Which elements one was computed from, copies passed over; -d N: N nodes.",
            "T[i] [-d N] [-t SECONDS]", (), ("origin y[0, 1]", "origin y[0, 1] -d 1"), "tensor"),
    Command("why-nan", answered(_why), "Where a NaN or an infinity was generated, and its way; or what killed one.",
            "T[i]", ("why-inf",), ("why-nan y[0, 3]",), "tensor"),
    Command("explain", answered(_explain), "The arithmetic that gave an element, term by term.", "T[i] [-n N]", (),
            ("explain y[0, 1]", "explain y[0, 1] -n 100"), "tensor"),
)  # fmt: skip
