"""Commands that ask where values come from, who writes and reads them, why something happens, where runs differ."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

import numpy as np

from ...errors import Unsupported
from ...machine.report import content, sizes, stuck_lines
from ...machine.state import has_value, node_path, region_of, tensor_path, value_of
from ...machine.trace.format import Json
from ...machine.transitions import is_enabled
from ...model.graph import NodeId
from ...model.path import quote
from ...model.schemas import operator_name
from ...operators.symbolic.statements import definition
from ...operators.symbolic.values import Undefined
from ...resources.persistent import items
from ...resources.process import paused
from ..display.answers import Answer, Cell, Note, Rows, Stop, count
from ..display.texts import element_text, element_value
from ..expressions import element_meant, tensor_and_subscripts
from ..queries.explaining import Leaf, Numeral, Row, explanations, left_out, parts, tree_text
from ..queries.explaining import Part as Taken
from ..queries.sources import (
    Element,
    Origin,
    Part,
    Source,
    Sources,
    application_of,
    chain,
    nonfinite_kind,
    origin,
    text_of,
    through_copies,
)
from ..session.session import (
    Command,
    Outcome,
    Session,
    answered,
    context,
    expression,
    moved,
    none,
    option,
    where,
    whole,
)
from ..stops import stuck_hit, tensors_read, transition_met
from ..timeline.history import Refused, edit_text, supplied_text
from ..timeline.names import one_node, stored_region, value_of_instance
from .stops import catch_meant

_FEW: Final = 8
_SECONDS: Final = 8  # that a search takes where nothing is said
_TERMS: Final = 12
_MANY: Final = 40
_BAR: Final = 24


def _element(session: Session, text: str) -> tuple[Sources, Element]:
    said = expression(session, text)
    instance, index, _ = element_meant(said, context(session))
    sources = Sources(session.history, session.index)
    return sources, sources.element(instance, index, session.index)


# ---- Where a value comes from -----------------------------------------------------------------


def _origin(session: Session, text: str) -> Answer:
    text, depth = option(text, "-d")
    text, seconds = option(text, "-t")
    end = time.monotonic() + (_SECONDS if seconds is None else whole(seconds, least=1))
    sources, element = _element(session, text)

    def over(more: float = 0) -> bool:
        return session.interrupted() or time.monotonic() > end + more

    computed_from = origin(sources, element, None if depth is None else whole(depth, least=1), over, lambda: over(1.5))
    rows = [*_parts("data", computed_from.data), *_parts("control", computed_from.control)]
    headings = ("read as", "tensor", "kind", "elements", "which")
    return Rows(f"{text_of(element)} was computed from", headings, tuple(rows), _remarks(computed_from))


def _remarks(computed_from: Origin) -> tuple[str, ...]:
    notes = []
    if len(computed_from.steps) == 1:
        notes.append(f"one step took part, {computed_from.steps[0]}")
    elif computed_from.steps:
        notes.append(
            f"{len(computed_from.steps)} steps took part, {computed_from.steps[0]} to {computed_from.steps[-1]}"
        )
    if computed_from.cut:
        more_time = "-t SECONDS gives it more time, " if computed_from.cut == "time" else ""
        notes.append(
            f"cut off after {computed_from.followed} elements, {computed_from.left} more are known; those called"
            f" computed were not followed: {more_time}-d N goes through N nodes only"
        )
        some = [f"{it.instance.path} ({it.kind})" for it in (computed_from.beyond or ())]
        more = f" and {len(some) - _FEW} more" if len(some) > _FEW else ""
        if some:
            notes.append(f"tensor by tensor, that comes from no more than {', '.join(some[:_FEW])}{more}")
    if any(it.kind == "sizes" for it in (*computed_from.data, *computed_from.control)):
        notes.append("sizes: made of the sizes of tensors, which are not followed, and of no element")
    edited = [it for it in (*computed_from.data, *computed_from.control) if it.edited is not None]
    notes += dict.fromkeys(f"{it.instance.path}: {edit_text(it.edited)}" for it in edited if it.edited is not None)
    supplied = [it for it in (*computed_from.data, *computed_from.control) if it.supplied]
    notes += dict.fromkeys(f"{it.instance.path}: {it.supplied}" for it in supplied)
    notes += [f"not exact, all inputs are taken: {it}" for it in computed_from.inexact[:_FEW]]
    return tuple(notes)


def _parts(read: str, parts: tuple[Part, ...]) -> list[tuple[str | Cell, ...]]:
    return [(read, part.instance.path, part.kind, _count(part), Cell(_which(part), _indices(part))) for part in parts]


def _count(part: Part) -> Cell:
    return Cell("all", "all") if part.whole else count(len(part.elements))


def _indices(part: Part) -> Json:
    return [list(it) for it in part.elements]


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
    links = chain(sources, element, lambda: session.interrupted() or time.monotonic() > end)
    if not links:
        return Note((f"{text_of(element)} is a number, and so is all that it was computed of",))
    many = links if len(links) <= _MANY else (*links[: _MANY // 2], *links[-_MANY // 2 :])
    rows = tuple(
        (it.kind, text_of(it.element), _element_cell(sources, it.element), count(it.at), it.node, it.why) for it in many
    )
    notes = () if len(many) == len(links) else (f"{len(links) - len(many)} more in the middle",)
    headings = ("what", "element", "value", "step", "node", "why")
    return Rows(f"why {text_of(element)} is {_kind(sources, element)}", headings, rows, notes)


def _kind(sources: Sources, element: Element) -> str:
    value = sources.value(element)
    if not isinstance(value, np.ndarray) or element.index is None:
        return "what it is"
    return {"nan": "not a number", "inf": "infinite", "": "a number"}[
        nonfinite_kind(np.asarray(value[element.index], value.dtype))
    ]


def _explain(session: Session, text: str) -> Answer:
    text, limit = option(text, "-n")
    sources, element = _element(session, text)
    at, source = through_copies(sources, element)
    if source.edited is not None:
        copied = "" if at == element else f"{text_of(element)} is a copy of it"
        return Note((f"{text_of(at)} was {edit_text(source.edited)}", *((copied,) if copied else ())))
    if source.supplied:
        copied = "" if at == element else f"{text_of(element)} is a copy of it"
        return Note((f"{text_of(at)} was {source.supplied}", *((copied,) if copied else ())))
    if source.at is None or source.node is None:
        return Note((f"{text_of(at)} was there from the start: it is {'an input' if at == element else 'copied'}",))
    if source.tree is None:
        return Note((f"{text_of(at)}: {source.whole or f'{source.rule} gives it'}",))
    return _explained(sources, at, source, _TERMS if limit is None else whole(limit, least=1))


def _explained(sources: Sources, element: Element, source: Source, limit: int) -> Answer:
    if source.at is None or source.node is None or source.tree is None:
        raise Refused("there is nothing to explain")
    before = sources.history.at(source.at - 1).state
    node = before.program.model.nodes[source.node]
    names = {i: quote(before.program.model.tensors[t].name) for i, t in enumerate(node.inputs) if t is not None}
    operator = definition(operator_name(node.domain, node.op_type), node.version or 0)
    taken = parts(source.tree, limit)
    called = {id(part.tree): part.name for part in taken if part.name}
    rows = [_term(part, row, names, called) for part in taken for row in part.rows]
    notes = [
        f"value {element_text(source.tree.value)}, by {operator.name}-{node.version} at step {source.at},"
        f" {operator.span}"
    ]
    notes.append(operator.doc.partition(". ")[0].rstrip(".") + ".")
    if source.control:
        some = " ".join(_valued(sources, it) for it in source.control[:_FEW])
        rest = f" and {len(source.control) - _FEW} more" if len(source.control) > _FEW else ""
        notes.append(f"decided by {some}{rest}")
    notes += [text for part in taken if (text := left_out(part))]
    if len(rows) >= limit:
        notes.append(f"explain -n {4 * limit} shows more terms")
    headings = ("term", "of", "with the numbers", "sum so far")
    return Rows(f"{text_of(element)} = {node.op_type}", headings, tuple(rows), tuple(notes))


def _element_cell(sources: Sources, element: Element) -> str | Cell:
    value = sources.value(element)
    if element.index is None or not isinstance(value, np.ndarray):
        return ""
    one = np.asarray(value[element.index], value.dtype)
    return Cell(element_text(one), element_value(one))


def _valued(sources: Sources, element: Element) -> str:
    value = sources.value(element)
    if element.index is None or not isinstance(value, np.ndarray):
        return text_of(element)
    return f"{text_of(element)} = {element_text(np.asarray(value[element.index], value.dtype))}"


def _term(part: Taken, row: Row, names: dict[int, str], called: dict[int, str]) -> tuple[str | Cell, ...]:
    number = "" if row.number is None else str(row.number)
    value, whole = element_text(row.tree.value), row.tree is part.tree
    numbers = value
    if not isinstance(row.tree, Leaf | Numeral):
        calculated = tree_text(row.tree, names, called, whole=whole, numbers=True)
        numbers = value if calculated == value else f"{calculated} = {value}"
    so_far = "" if row.so_far is None else Cell(element_text(row.so_far), element_value(row.so_far))
    label = ".".join(it for it in (part.name, number) if it) or "0"
    term = Cell(numbers, element_value(row.tree.value))
    return label, tree_text(row.tree, names, called, whole=whole), term, so_far


# ---- Writers, readers and memory ---------------------------------------------------------------


def _last_write(session: Session, text: str) -> Answer:
    text = text.strip()
    if text[:1].isdecimal():
        return _write_of_byte(session, whole(text))
    said = expression(session, text)
    instance, subscripts = tensor_and_subscripts(said, context(session))
    sources = Sources(session.history, session.index)
    index = element_meant(said, context(session))[1] if subscripts else None
    edited = sources.edited(sources.element(instance, index, session.index))
    name = text_of(Element(instance, index))
    notes = () if edited is None else (f"{name} was {edit_text(edited)}: seek {edited.first} is right after",)
    at = sources.written(instance)
    if at is None:
        there = value_of_instance(session.history, session.index, instance) is not None
        return Note((*notes, f"{instance.path} {'has been there from the start' if there else 'has no value yet'}"))
    came = session.history.at(at).came
    line = "" if came is None else f" by {came.path} (line {session.listing.of_node.get(came.node, 0)})"
    if came is not None and came.supplied:
        line += f", {supplied_text(at, came.supplied)}"
    return Note((*notes, f"{instance.path} was written{line}: seek {at} is right after, seek {at - 1} right before"))


def _write_of_byte(session: Session, address: int) -> Answer:
    history = session.history
    if address >= session.state.store.memory.size:
        raise Refused(f"the memory has {session.state.store.memory.size} bytes")
    for index in range(session.index, -1, -1):
        moment = history.at(index)
        for timeline in reversed(history.edits):
            place = (
                None
                if timeline.first != index or timeline.edit is None
                else region_of(moment.state, timeline.edit.tensor)
            )
            if (
                timeline.edit is not None
                and place is not None
                and place.offset <= address < place.offset + place.length
            ):
                inside = f"byte {address - place.offset} of {place.length} of {timeline.edit.path}"
                return Note((f"byte {address} is {inside}, {edit_text(timeline)}",))
        if moment.came is None:
            continue
        for t, place in zip(moment.came.tensors, moment.came.places, strict=True):
            if place.offset <= address < place.offset + place.length:
                path = tensor_path(moment.state, t)
                inside = f"byte {address - place.offset} of {place.length} of {path}"
                came = moment.came
                how = f", {supplied_text(index, came.supplied)}" if came.supplied else ""
                return Note((f"byte {address} is {inside}, written by {came.path}{how}: seek {index} is right after",))
    first = history.at(0).state
    for table in (first.frame.table, *first.stored):
        for t, place in items(table):
            if place.offset <= address < place.offset + place.length:
                return Note((f"byte {address} is of {tensor_path(first, t)}, there from the start",))
    return Note((f"byte {address} was never written",))


def _who_reads(session: Session, text: str) -> Answer:
    said = expression(session, text)
    instance, subscripts = tensor_and_subscripts(said, context(session))
    program, history = session.state.program, session.history
    anywhere = stored_region(history.at(0).state, instance.tensor) is not None  # the same in all runs of its graph
    fired: dict[NodeId, list[int]] = {}
    for index in range(1, history.last + 1):
        moment = history.at(index)
        before = history.at(index - 1).state
        if moment.came is None or instance.tensor not in tensors_read(before, moment):
            continue
        if anywhere or tensor_path(before, instance.tensor) == instance.path:
            fired.setdefault(moment.came.node, []).append(index)
    element = element_meant(said, context(session))[1] if subscripts else None
    rows, outside = [], set(history.supplied(history.last))
    for n in program.readers.get(instance.tensor, ()):
        node = program.model.nodes[n]
        steps = fired.get(n, [])
        line = count(session.listing.of_node.get(n, 0))
        used = "" if element is None or not steps else "not known"
        if element is not None and steps and steps[-1] not in outside:
            used = _used(session, steps[-1], n, instance.tensor, element)
        rows.append((node.path, line, Cell(_steps(steps), list[Json](steps)), used))
    return Rows(f"who reads {instance.path}", ("node", "line", "fired", "output elements that read it"), tuple(rows))


def _steps(steps: list[int]) -> str:
    if not steps:
        return "not yet"
    some = ", ".join(map(str, steps[:_FEW]))
    return f"step {some}" + (f" and {len(steps) - _FEW} more" if len(steps) > _FEW else "")


def _used(session: Session, at: int, n: NodeId, t: int, element: tuple[int, ...]) -> str:
    before = session.history.at(at - 1).state
    node = before.program.model.nodes[n]
    try:
        explain = explanations(application_of(before, n))
    except (Unsupported, Undefined):
        return "not known"
    readers: list[str] = []
    readers_count = 0
    for position, out in enumerate(node.outputs):
        value = None if out is None else value_of(session.history.at(at).state, out)
        if not isinstance(value, np.ndarray) or value.size > 512:
            return "too many elements to tell"
        for index in np.ndindex(value.shape):
            reads = explain(position, index).footprint.data
            if any(element in reads.get(i, ()) for i, it in enumerate(node.inputs) if it == t):
                readers_count += 1
                readers.append(f"{list(index)}" if position == 0 else f"{position}:{list(index)}")
    return " ".join(readers[:_FEW]) + (f" and {readers_count - _FEW} more" if readers_count > _FEW else "") or "none"


def _memory(session: Session, text: str) -> Answer:
    none(text)
    history = session.history
    known = history.last + 1
    chosen = sorted({round(i * (known - 1) / max(min(known, _MANY) - 1, 1)) for i in range(min(known, _MANY))})
    in_use = {i: sum(len(it) for _, it in items(history.at(i).state.store.memory.segments)) for i in chosen}
    peak = max(in_use.values(), default=0) or 1
    rows = []
    for index, used in in_use.items():
        moment = history.at(index)
        written = 0 if moment.came is None else moment.came.written
        node = "" if moment.came is None else moment.came.path
        rows.append(
            (
                count(index),
                count(used, sizes(used)),
                count(written, sizes(written)),
                "#" * round(_BAR * used / peak),
                node,
            )
        )
    return Rows("memory in use over time", ("step", "in use", "written", "", "by"), tuple(rows))


# ---- Why and why not --------------------------------------------------------------------------


def _why_not_ready(session: Session, text: str) -> Answer:
    n, state = one_node(session.model, text.strip()), session.state
    program = state.program
    node = program.model.nodes[n]
    if node.graph != state.frame.graph:
        graph = program.model.graphs[node.graph].path
        return Note((f"{node.path} belongs to {graph}, which does not run here: see where",))
    if is_enabled(state, n):
        return Note((f"{node_path(state, n)} is enabled: it may come next",))
    done = [t for t in program.writes[n] if has_value(state, t)]
    if done:
        return Note((f"{node_path(state, n)} has fired: {tensor_path(state, done[0])} has a value",))
    rows: list[tuple[str, ...]] = []
    seen, work = {n}, [n]
    while work and len(rows) < _MANY:
        for t in program.reads[work.pop(0)]:
            if has_value(state, t):
                continue
            producer = program.producers.get(t)
            why = "nothing gives it a value"
            if producer is not None:
                why = "is enabled" if is_enabled(state, producer) else "waits too"
                if producer == state.frame.holder:
                    why = "runs its body"
                if producer not in seen:
                    seen.add(producer)
                    work.append(producer)
            rows.append((tensor_path(state, t), "" if producer is None else program.model.nodes[producer].path, why))
    return Rows(f"{node_path(state, n)} waits for", ("tensor", "given by", "which"), tuple(rows))


def _why_branch(session: Session, text: str) -> Answer:
    history = session.history
    n = one_node(session.model, text.strip()) if text.strip() else session.state.frame.holder
    if n is None:
        raise Refused("this is no body: give a node that has one")
    node = session.model.nodes[n]
    for index in range(session.index, 0, -1):
        moment = history.at(index)
        came = moment.came
        if came is not None and came.node == n and came.rule not in ("Step/fire", "Step/if-leave"):
            before = history.at(index - 1).state
            rows = []
            wanted = [(f"input {i}", t) for i, t in enumerate(node.inputs[: 1 if node.op_type == "If" else 2])]
            if before.frame.holder == n:
                wanted += [("condition of the body", session.model.graphs[before.frame.graph].outputs[0])]
            for what, t in wanted:
                value = None if t is None else value_of(before, t)
                if t is not None and value is not None:
                    rows.append((what, tensor_path(before, t), content(value)))
            frame, notes = moment.state.frame, [f"step {index}: {came.rule}"]
            if frame.holder == n:
                notes.append(f"{frame.prefix.rstrip('/')} runs, of {frame.runs or 'unknown many'} runs")
            return Rows(f"why {node.path} went on so", ("what", "tensor", "value"), tuple(rows), tuple(notes))
    return Note((f"{node.path} has not begun here",))


# ---- Finding ----------------------------------------------------------------------------------


def _find(session: Session, text: str) -> Outcome:
    """The first fault of a kind on the whole timeline, whatever was set and wherever the session stands."""
    stop = replace(catch_meant(session, text, "find"), number=0)
    history, index = session.history, 0
    with paused():
        while history.reach(index + 1) is not None:
            index += 1
            hit = transition_met(history, stop, index)
            if hit is not None:
                there = moved(session, index)
                return Outcome(there, Stop("catch", where(there), (hit,)))
            if session.interrupted():
                there = moved(session, index)
                return Outcome(there, Stop("pause", where(there)))
    stuck = history.stuck
    if stuck is None or stop.what != "precondition":
        tail = "" if stuck is None else ": the run is stuck there, find precondition shows why"
        return Outcome(session, Note((f"no {stop.what} in {index} steps{tail}",)))
    there = moved(session, index)
    return Outcome(there, Stop("catch", where(there), (stuck_hit(stuck, 0),), stuck_lines(stuck)))


COMMANDS = (
    Command("origin", answered(_origin), "Which elements one was computed from, copies passed over; -d N: N nodes.",
            "T[i] [-d N] [-t SECONDS]", (), ("origin y[0, 1]", "origin y[0, 1] -d 1"), "tensor"),
    Command("why-nan", answered(_why), "Where a NaN or an infinity was generated, and its way; or what killed one.",
            "T[i]", ("why-inf",), ("why-nan y[0, 3]",), "tensor"),
    Command("explain", answered(_explain), "The arithmetic that gave an element, term by term.", "T[i] [-n N]", (),
            ("explain y[0, 1]", "explain y[0, 1] -n 100"), "tensor"),
    Command("last-write", answered(_last_write), "Which step wrote a tensor, or a byte of the memory.", "T|ADDRESS", (),
            ("last-write y", "last-write 0x40"), "tensor"),
    Command("who-reads", answered(_who_reads), "Which nodes read a tensor, or an element of it.", "T[i]", (),
            ("who-reads x", "who-reads x[0]"), "tensor"),
    Command("why-not-ready", answered(_why_not_ready), "What a node waits for.", "NODE", (), ("why-not-ready op:Add",),
            "node"),
    Command("why-branch", answered(_why_branch), "What decided about a branch, or another run of a body.", "[NODE]",
            (), ("why-branch", "why-branch op:If"), "node"),
    Command("find", _find, "Go to the first fault of the whole run: what catch knows.", "WHAT [FILE] [at NODE]",
            (), ("find nan", "find overflow at op:Exp", "find divergence run.trace"), "fault"),
    Command("memory", answered(_memory), "How much of the memory is in use over time.", "", ("mem",), ("memory",)),
)  # fmt: skip
