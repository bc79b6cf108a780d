"""A frame by scopes: inputs and outputs of its next node, tensors, what is captured, stored, still open.

A scope of a large model is made range by range; which tensors belong to a graph or call is found once for a model.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sonnx.spec.terminal import inert

from ...machine.memory import load_value
from ...machine.phases import Apply
from ...machine.report import sizes
from ...machine.schedule import Ordered, Ready
from ...machine.state import Frame, State, frames, node_path, tensor_path
from ...machine.trace.replay import digest_of
from ...model.graph import NodeId, TensorId
from ...model.path import operator_text, quote
from ...model.schemas import normal_domain
from ...model.values import Value
from ...operators.application import Program, initializers
from ...resources.persistent import get, items
from ..expressions import Context, Name, instance_of
from ..session.session import Session, where
from ..timeline.history import CallFrame, Level, Refused, call_frames, is_end_of_body, ready_from
from ..timeline.names import Instance
from .items import WIDTH, Item, Parts, View, here, many, node_item, said, tensor_item, value_item

SCOPES: Final = (
    "Node inputs", "Node outputs", "Tensors", "Captured", "Initializers", "Ready nodes", "Machine", "Uninitialised",
)  # fmt: skip
"""The scopes of a frame, in order."""
_LOOKED: Final = 2000  # tensors that are looked at for those that have a value
_PHASES: Final = ("none", "select", "read", "apply", "write")


@dataclass(frozen=True, slots=True)
class Members:
    """The tensors of a graph or call.

    own: those that get their value in a run. stored: initializers, also those that an input may take the place of.
    captured, given: those of graphs and calls around it that are read and that are written in it.
    """

    own: tuple[TensorId, ...] = ()
    stored: tuple[TensorId, ...] = ()
    captured: tuple[TensorId, ...] = ()
    given: tuple[TensorId, ...] = ()


def scope(session: Session, frame: int, name: str) -> Parts:
    """A scope of a frame, which is counted from the innermost. Raises Refused for a frame that is not there."""
    call_frame_of(session, frame)
    return Parts(lambda now, view: _MAKERS[name](now, call_frame_of(now, frame), frame, view))


def call_frame_of(session: Session, frame: int) -> CallFrame:
    """A frame counted from the innermost. Raises Refused."""
    stack = call_frames(session.state, session.moment.next)
    if not 0 <= frame < len(stack):
        raise Refused(f"there are the frames 0 to {len(stack) - 1}")
    return stack[-1 - frame]


def frame_line(session: Session, stack: tuple[CallFrame, ...], number: int) -> int:
    """The line of a frame of a stack, whose innermost one comes first: of its next node, of the holder or call that is
    under way, or the return; 0 for none."""
    place, listing = stack[number], session.listing
    if number:
        inner = stack[number - 1].level
        if isinstance(inner, str):
            return listing.of_call.get(inner, 0)
    model, node = session.model, place.node
    if node is None or (not number and isinstance(place.level, int) and model.nodes[node].graph != place.level):
        return listing.of_return.get(session.state.frame.graph, 0)
    return listing.of_node.get(node, 0)


def frame_name(session: Session, place: CallFrame) -> str:
    """The name of a frame: main graph, call, branch or body with the number of its run."""
    model = session.model
    if isinstance(place.level, str):
        return f"call {place.path}"
    graph = model.graphs[place.level]
    if graph.holder is None:
        return f"graph {quote(graph.name)}{' (edited)' if session.history.label else ''}"
    holder = model.nodes[graph.holder]
    attribute = next((name for name, body in holder.bodies if body == place.level), "body")
    kind = operator_text(normal_domain(holder.domain), holder.op_type)
    named = f" {quote(holder.name)}" if holder.name else ""
    run = "" if place.run is None else f" [run {place.run}]"
    return f"{kind}{named} {attribute}{run}"


def members(program: Program, level: Level) -> Members:
    """The tensors of a graph or call."""
    return program.remembered("debugger: tensors by level", lambda: _members(program)).get(level, Members())


def _members(program: Program) -> Mapping[Level, Members]:
    model = program.model
    owners = _owners(program)
    stored: dict[Level, list[TensorId]] = {}
    own: dict[Level, list[TensorId]] = {}
    fixed = [{t for t, _ in initializers(graph)} for graph in model.graphs]
    for t, level in enumerate(owners):
        rows = stored if t in fixed[model.tensors[t].graph] else own
        rows.setdefault(level, []).append(t)
    captured: dict[Level, dict[TensorId, None]] = {}
    given: dict[Level, dict[TensorId, None]] = {}
    for n in range(len(model.nodes)):
        chain = _chain(program, n)
        for row, levels in ((program.reads[n], captured), (program.writes[n], given)):
            for t in row:
                for level in chain[chain.index(owners[t]) + 1 :] if owners[t] in chain else chain:
                    levels.setdefault(level, {})[t] = None
    return {
        it: Members(
            tuple(own.get(it, ())), tuple(stored.get(it, ())), tuple(captured.get(it, ())), tuple(given.get(it, ()))
        )
        for it in {*stored, *own, *captured, *given}
    }


def _owners(program: Program) -> list[Level]:
    """For each tensor the graph or call that it belongs to."""
    model = program.model
    calls = {call for node in model.nodes for call in node.calls}
    if not calls:
        return [tensor.graph for tensor in model.tensors]
    owners: list[Level] = []
    for tensor in model.tensors:
        call = tensor.path[: -len(quote(tensor.name))].removesuffix("!")
        owners.append(call if call in calls else tensor.graph)
    return owners


def _chain(program: Program, n: NodeId) -> tuple[Level, ...]:
    """The graph of a node and the calls in it that the node was expanded from, outermost first."""
    node = program.model.nodes[n]
    holder = program.model.graphs[node.graph].holder
    around = () if holder is None else program.model.nodes[holder].calls
    return (node.graph, *node.calls[len(around) :])


# ---- Tensors ----------------------------------------------------------------------------------


def expression_for(session: Session, t: TensorId, frame: int) -> str:
    """Words for a tensor of a frame: its name where that means it there and in the innermost frame too, else
    by its path."""
    name, path = session.model.tensors[t].name, tensor_path(session.state, t)
    meant = Instance(t, path)
    try:
        meant_by = {instance_of(Name(name), Context(session.history, session.index, it)) for it in {0, frame}}
    except Refused:
        meant_by = set()
    return said(name) if meant_by == {meant} else f"`{path}`"


def _tensor(session: Session, t: TensorId, frame: int, view: View, name: str = "") -> Item:
    return tensor_item(session, here(session, t), expression_for(session, t, frame), view, name)


def _several(session: Session, row: Sequence[TensorId | None], frame: int, view: View) -> tuple[Item, ...]:
    """Tensors, each once, ranges of them where they are many."""
    distinct = tuple(dict.fromkeys(t for t in row if t is not None))
    return many(session, distinct, lambda now, t, how: _tensor(now, t, frame, how), _name, view)


def _name(session: Session, t: TensorId) -> str:
    return session.model.tensors[t].name


def _frame(session: Session, place: CallFrame) -> Frame:
    return frames(session.state)[place.depth]


def _inputs(session: Session, place: CallFrame, frame: int, view: View) -> tuple[Item, ...]:
    """The tensors that the next node or call of the frame reads; the outputs of the body where it ends."""
    model, call = session.model, _call(session, frame)
    if call is not None:
        return _several(session, call.captured, frame, view)
    if frame == 0 and is_end_of_body(session.moment):
        return _several(session, model.graphs[session.state.frame.graph].outputs, frame, view)
    return () if place.node is None else _several(session, model.nodes[place.node].inputs, frame, view)


def _outputs(session: Session, place: CallFrame, frame: int, view: View) -> tuple[Item, ...]:
    """The tensors that the last transition wrote and that the next one is to write; from its third phase on
    with the values that will be written."""
    came, call = session.moment.came, _call(session, frame)
    if call is not None:
        return _several(session, call.given, frame, view)
    coming = () if place.node is None else session.model.nodes[place.node].outputs
    if frame:
        return _several(session, coming, frame, view)
    coming = () if is_end_of_body(session.moment) else coming
    pending = _pending(session)
    row = [t for t in (*(() if came is None else came.tensors), *coming) if t not in pending]
    shown = tuple(_pending_item(t, frame, session, view) for t in pending)
    return (*_several(session, row, frame, view), *shown)


def _call(session: Session, frame: int) -> Members | None:
    """Tensors that the call needs and gives that a frame is in; None where its innermost is no call."""
    if not frame:
        return None
    inner = call_frame_of(session, frame - 1).level
    return members(session.state.program, inner) if isinstance(inner, str) else None


def _pending(session: Session) -> tuple[TensorId, ...]:
    applied = _applied(session)
    return () if applied is None else applied.tensors


def _applied(session: Session) -> Apply | None:
    """The results of the transition at hand, where it has come so far and not further than that."""
    if session.phase < 3:
        return None
    phases = session.history.phases(session.index)
    return next((it for it in phases[: session.phase] if isinstance(it, Apply)), None)


def _pending_item(t: TensorId, frame: int, session: Session, view: View) -> Item:
    def value(now: Session) -> Value | None:
        applied = _applied(now)
        return None if applied is None or t not in applied.tensors else applied.values[applied.tensors.index(t)]

    applied = _applied(session)
    if applied is None:
        return _tensor(session, t, frame, view)
    result = applied.values[applied.tensors.index(t)]
    name = f"{inert(_name(session, t))} (computed, not yet in M)"
    line = session.listing.of_name.get(t)
    item = value_item(name, result, value, "", view)
    return Item(item.name, item.value, item.type, line=line, inside=item.inside)


def _tensors(session: Session, place: CallFrame, frame: int, view: View) -> tuple[Item, ...]:
    """The tensors of the frame that have a value."""
    own = members(session.state.program, place.level).own

    def kept(now: Session, part: Sequence[TensorId]) -> bool:
        following = next(items(_frame(now, place).table, part[0]), None)
        return following is not None and following[0] <= part[-1]

    def made(now: Session, t: TensorId, how: View) -> Item | None:
        return None if get(_frame(now, place).table, t) is None else _tensor(now, t, frame, how)

    return many(session, _few(_frame(session, place), own), made, _name, view, kept)


def _few(frame: Frame, own: Sequence[TensorId]) -> Sequence[TensorId]:
    """Those of ascending tensors that have a value in a frame, where they are few and soon found; else all of them."""
    if len(own) <= WIDTH:
        return own
    few: list[TensorId] = []
    for looked, (t, _) in enumerate(items(frame.table, own[0])):
        at = bisect_left(own, t)
        few += [t] if at < len(own) and own[at] == t else []
        if looked >= _LOOKED or len(few) > WIDTH:
            return own
    return few


def _captured(session: Session, place: CallFrame, frame: int, view: View) -> tuple[Item, ...]:
    return _several(session, members(session.state.program, place.level).captured, frame, view)


def _initializers(session: Session, place: CallFrame, frame: int, view: View) -> tuple[Item, ...]:
    return _several(session, members(session.state.program, place.level).stored, frame, view)


def _uninitialised(session: Session, place: CallFrame, frame: int, view: View) -> tuple[Item, ...]:
    """The tensors of the frame that have no value yet."""

    def made(now: Session, t: TensorId, how: View) -> Item | None:
        return _tensor(now, t, frame, how) if get(_frame(now, place).table, t) is None else None

    return many(session, members(session.state.program, place.level).own, made, _name, view)


def valued(session: Session, frame: int) -> tuple[TensorId, ...]:
    """The tensors of a frame that have a value, those that a run writes first."""
    place = call_frame_of(session, frame)
    table, own = _frame(session, place).table, members(session.state.program, place.level)
    return (*(t for t in own.own if get(table, t) is not None), *own.stored)


# ---- The machine ------------------------------------------------------------------------------


def _ready(session: Session, place: CallFrame, frame: int, view: View) -> tuple[Item, ...]:
    """The nodes that may come next; those of the frame on top, since only they can."""
    state = session.state
    if is_end_of_body(session.moment) and state.frame.holder is not None:
        return (_ready_node(session, state.frame.holder),)
    agenda = state.frame.agenda
    if isinstance(agenda, Ready):
        numbers = range(len(agenda.nodes))
        return many(session, numbers, lambda now, i, _: _ready_node(now, _agenda_node(now, i)), _agenda_name, view)
    return _ready_from(session, agenda.position if isinstance(agenda, Ordered) else 0)


def _agenda_node(session: Session, i: int) -> NodeId:
    agenda = session.state.frame.agenda
    return agenda.nodes[i] if isinstance(agenda, Ready) else 0


def _agenda_name(session: Session, i: int) -> str:
    return node_path(session.state, _agenda_node(session, i))


def _ready_from(session: Session, position: int) -> tuple[Item, ...]:
    """Ready nodes from a position in the order of the graph on; what lies far behind is one item."""
    nodes, reached = ready_from(session.state, position, WIDTH)
    ready = [_ready_node(session, n) for n in nodes]
    left = len(session.state.program.order(session.state.frame.graph)) - reached
    if left:
        inside = Parts(lambda now, view: _ready_from(now, reached))
        ready.append(Item("more", f"among {left} later nodes", kind="virtual", inside=inside))
    return tuple(ready)


def _ready_node(session: Session, n: NodeId) -> Item:
    item = node_item(session, n, node_path(session.state, n))
    return replace(item, value=f"{item.value} (next)") if n == session.moment.next else item


def _machine(session: Session, place: CallFrame, frame: int, view: View) -> tuple[Item, ...]:
    """The position of the machine, its schedule and its memory."""
    state, history, now = session.state, session.history, where(session)
    stuck = history.stuck if history.ended and session.index == history.last else None
    rows = [
        Item("step", str(now.index), "int64[]", "$step", "virtual"),
        _fact("phase", f"{now.phase} ({_PHASES[now.phase]})"),
        *([_fact("rule", now.rule)] if now.rule else []),
        _next(session),
        *([] if session.moment.came is None else [_last(session)]),
        _fact("schedule", str(state.schedule)),
        _fact("timeline", history.label or "the model's execution"),
        *([] if stuck is None else [_fact("stuck", inert(stuck.message))]),
        Item("M", f"{sizes(state.store.memory.size)}, greatest so far {sizes(state.store.space.peak)}",
             kind="virtual", memory=True),
        Item("live", "bytes of the values of all frames", kind="virtual", lazy=True, inside=Parts(_live)),
        Item("digest", "sha256 of the values of all frames", kind="virtual", lazy=True, inside=Parts(_digest)),
        _fact("model", f"sha256 {session.listing.digest}"),
    ]  # fmt: skip
    return tuple(rows)


def _fact(name: str, value: str, expression: str = "") -> Item:
    return Item(name, value, expression=expression, kind="virtual")


def _next(session: Session) -> Item:
    n = session.moment.next
    if n is None:
        return Item("next node", "none: the run has ended", kind="virtual")
    return replace(node_item(session, n), name="next node", value=node_path(session.state, n))


def _last(session: Session) -> Item:
    came = session.moment.came
    if came is None:
        return _fact("last node", "none")
    item = node_item(session, came.node)
    return replace(
        item, name="last node", value=f"{came.path} {came.supplied or f'by {came.rule}'}, {sizes(came.written)} written"
    )


def _live(session: Session, _view: View) -> tuple[Item, ...]:
    live = sum(at.length for frame in frames(session.state) for _, at in items(frame.table) if not at.freed)
    return (_fact("live", f"{live} bytes"),)


def _digest(session: Session, _view: View) -> tuple[Item, ...]:
    return (_fact("digest", f"sha256 {state_digest(session.state)}"),)


def state_digest(state: State) -> str:
    """The SHA-256 of the values of all frames and of where the run stands: equal states have the same."""
    hashed = hashlib.sha256()
    for frame in frames(state):
        hashed.update(f"{frame.prefix} {frame.run}\n".encode())
        for t, at in items(frame.table):
            value = "freed" if at.freed else digest_of(load_value(state.store, at))
            hashed.update(f"{t} {at.type} {value}\n".encode())
    return hashed.hexdigest()


_MAKERS: Final[Mapping[str, Callable[[Session, CallFrame, int, View], tuple[Item, ...]]]] = dict(
    zip(
        SCOPES,
        (_inputs, _outputs, _tensors, _captured, _initializers, _ready, _machine, _uninitialised),
        strict=True,
    )
)
