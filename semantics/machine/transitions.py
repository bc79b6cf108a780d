"""The small-step machine: which transitions a state has, and one transition in its five phases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sonnx.spec.library import specification

from ..errors import InternalError, Unsupported
from ..model.graph import Node, NodeId, TensorId
from ..model.path import operator_text
from ..model.schemas import normal_domain, operator_name
from ..operators.application import Application, Draw, Meaning, Outputs, Stuck
from ..resources.persistent import PersistentMap, get, items, put
from ..resources.process import OutOfBudget
from .control import CONTROLS, Control
from .memory import UNLIMITED, Region, free, store_value
from .phases import (
    SUPPLIED,
    Advance,
    Again,
    Apply,
    Change,
    Enter,
    Leave,
    Phase,
    Read,
    Select,
    Stay,
    Supply,
    Write,
    over_budget,
    stuck_at,
)
from .schedule import after, agenda
from .state import (
    Frame,
    Kept,
    State,
    Table,
    advanced_frame,
    has_value,
    node_path,
    region_of,
    run_prefix,
    tensor_path,
    value_of,
)

Entries = tuple[tuple[TensorId, Region], ...]
Turned = tuple[Frame, Entries]
"""The frame on top, and the values whose space is free."""


def advanced(state: State, selected: Select, entries: Entries) -> Turned:
    """The frame on top after a transition that gave tensors their values at these places."""
    match selected.change:
        case Stay():
            return _fired(state, state.frame, selected.node, entries)
        case Enter() as change:
            return _entered(state, selected, change, entries), ()
        case Again() as change:
            return _repeated(state, selected, change, entries)
        case Leave():
            return _left(state, selected, entries)


def _fired(state: State, frame: Frame, n: NodeId, entries: Entries) -> Turned:
    """A node of the graph of a frame has got values for its outputs."""
    table = _with(frame.table, entries)
    progress = after(frame.agenda, state.program, n, [t for t, _ in entries])
    if not state.store.space.reuse:
        return advanced_frame(frame, table, progress), ()
    table, left, released = _read_out(state, frame, table, n, entries)
    return advanced_frame(frame, table, progress, left), released


def _entered(state: State, selected: Select, change: Enter, entries: Entries) -> Frame:
    below = replace(state.frame, agenda=after(state.frame.agenda, state.program, selected.node, ()))
    branch = selected.rule == "Step/if"
    return Frame(
        graph=change.body,
        table=_with(state.stored[change.body], entries),
        agenda=agenda(state.schedule, state.program, change.body),
        holder=selected.node,
        runs=change.runs,
        prefix=run_prefix(state, selected.node, change.body, None if branch else 0),
        below=below,
    )


def _repeated(state: State, selected: Select, change: Again, entries: Entries) -> Turned:
    frame = state.frame
    outputs = state.program.model.graphs[frame.graph].outputs
    kept = tuple(_own(state, frame, t) if i in change.kept else None for i, t in enumerate(outputs))
    lower = replace(state, frame=_below(frame))
    turned = replace(
        frame,
        table=_with(state.stored[frame.graph], entries),
        agenda=agenda(state.schedule, state.program, frame.graph),
        left=PersistentMap(),
        run=frame.run + 1,
        kept=Kept(kept, frame.kept),
        prefix=run_prefix(lower, selected.node, frame.graph, frame.run + 1),
    )
    return turned, _released(state, frame, (it for it in kept if it is not None))


def _left(state: State, selected: Select, entries: Entries) -> Turned:
    frame = state.frame
    below, released = _fired(state, _below(frame), selected.node, entries)
    if not state.store.space.reuse:
        return below, released
    collected: dict[int, tuple[TensorId, Region]] = {}
    outputs, kept = state.program.model.graphs[frame.graph].outputs, frame.kept
    while kept is not None:
        for t, where in zip(outputs, kept.places, strict=True):
            if where is not None and where.length and state.program.model.tensors[t].graph == frame.graph:
                collected[where.offset] = (t, where)
        kept = kept.before
    lasting = {where.offset for where in _places(state.stored[frame.graph])}
    again = tuple(entry for offset, entry in collected.items() if offset not in lasting)
    return below, (*released, *_released(state, frame, ()), *again)


# ---- Space ------------------------------------------------------------------------------------


def _read_out(
    state: State, frame: Frame, table: Table, n: NodeId, entries: Entries
) -> tuple[Table, PersistentMap[TensorId, int], Entries]:
    """The table after the last use of what a node has read, how many readers are left, and what is free."""
    program, left = state.program, frame.left
    counts, tensors, lasting = program.reader_counts, program.model.tensors, program.lasting[frame.graph]
    done = [t for t, _ in entries if not counts[t]]
    for t in program.reads[n]:
        if tensors[t].graph != frame.graph:
            continue  # the node that holds this body reads it
        position = get(left, t)
        remaining = (counts[t] if position is None else position) - 1
        left = put(left, t, remaining)
        if not remaining:
            done.append(t)
    released = []
    for t in done:
        where = get(table, t)
        if t not in lasting and where is not None and not where.freed:
            table = put(table, t, replace(where, freed=True))
            released.append((t, where))
    return table, left, tuple(released)


def _released(state: State, frame: Frame, kept: Iterable[Region]) -> Entries:
    """The values that a frame gives free when it ends: all but the initializers and what is kept."""
    if not state.store.space.reuse:
        return ()
    stays = {where.offset for where in (*_places(state.stored[frame.graph]), *kept) if where.length}
    return tuple((t, where) for t, where in items(frame.table) if not where.freed and where.offset not in stays)


def _places(table: Table) -> tuple[Region, ...]:
    return tuple(where for _, where in items(table))


def _own(state: State, frame: Frame, t: TensorId) -> Region:
    """The region of an output of the body; for a captured tensor in the frame that it belongs to."""
    holder: Frame | None = frame
    while holder is not None and holder.graph != state.program.model.tensors[t].graph:
        holder = holder.below
    where = None if holder is None else get(holder.table, t)
    if where is None:
        raise InternalError("an output of a body that ended has no value")
    return where


def _below(frame: Frame) -> Frame:
    if frame.below is None:
        raise InternalError("the main graph has no graph below it")
    return frame.below


def _with(table: Table, entries: Entries) -> Table:
    for t, where in entries:
        table = put(table, t, where)
    return table


# ---- Which transitions there are --------------------------------------------------------------


def enabled(state: State) -> tuple[NodeId, ...]:
    """The nodes that have a transition, by the text of the rules: enabled(n, M), or finished(G, M) for the holder."""
    frame, program = state.frame, state.program
    ready = tuple(n for n in program.model.graphs[frame.graph].nodes if is_enabled(state, n))
    return (*ready, frame.holder) if frame.holder is not None and finished(state) else ready


def is_enabled(state: State, n: NodeId) -> bool:
    """enabled(n, M) of spec/3-execution.sonnx."""
    for t in state.program.reads[n]:
        if region_of(state, t) is None:
            return False
    writes = state.program.writes[n]
    for t in writes:  # loops, since this is done for every step
        if region_of(state, t) is not None:
            return False
    return bool(writes)


def finished(state: State) -> bool:
    """finished(G, M) of spec/3-execution.sonnx, for the graph that runs."""
    return all(has_value(state, t) for t in state.program.model.graphs[state.frame.graph].outputs)


# ---- One transition ---------------------------------------------------------------------------


def step(state: State, n: NodeId) -> State | Stuck:
    """The state after the transition of a node, or why there is none."""
    *_, phase = phases(state, n)
    if isinstance(phase, Advance):
        return phase.state
    if isinstance(phase, Stuck):
        return phase
    raise InternalError("a transition has no end")


def phases(state: State, n: NodeId, supply: Supply | None = None) -> Iterator[Phase | Stuck]:
    """The phases of the transition of a node, in order. Stuck in place of one is the last.

    supply: values that the outputs get in place of those that a rule gives; that is no transition of part 3.
    """
    selected = select(state, n) if supply is None else _supplied(state, n)
    yield selected
    if isinstance(selected, Stuck):
        return
    seen = read(state, selected)
    yield seen
    if supply is None:
        applied = apply(state, selected, seen)
    else:
        applied = Apply(None, tuple(supply.values), tuple(supply.values.values()))
    yield applied
    if isinstance(applied, Stuck):
        return
    written = write(state, selected, applied)
    yield written
    if isinstance(written, Stuck):
        return
    yield advance(state, selected, written)


def select(state: State, n: NodeId) -> Select | Stuck:
    """The rule that applies to a node: its tests, in the order of the text."""
    frame, node = state.frame, state.program.model.nodes[n]
    if node.graph != frame.graph:
        return _ending(state, n)
    control = control_of(state, n)
    if node.bodies and control is None:
        return _without_rules(state, n)
    if not is_enabled(state, n):
        rule = control.first if control is not None and node.bodies else "Step/fire"
        return stuck_at(rule, "enabled", _not_enabled(state, n))
    if control is None:
        return Select("Step/fire", n, node_path(state, n), Stay())
    return _selected(state, n, control.begins(state, n))


def _supplied(state: State, n: NodeId) -> Select | Stuck:
    """A node of the graph that runs whose outputs get values from outside: it waits for what it reads all the same."""
    if state.program.model.nodes[n].graph != state.frame.graph or not is_enabled(state, n):
        return stuck_at("Step/fire", "enabled", _not_enabled(state, n))
    return Select(SUPPLIED, n, node_path(state, n), Stay())


def read(state: State, selected: Select) -> Read:
    """The values that the rule reads."""
    model = state.program.model
    if isinstance(selected.change, (Stay, Enter)):
        tensors = model.nodes[selected.node].inputs
    else:
        tensors = model.graphs[state.frame.graph].outputs
    return Read(tensors, tuple([None if t is None else value_of(state, t) for t in tensors]))


def apply(state: State, selected: Select, seen: Read) -> Apply | Stuck:
    """W of the rule: the values that the operator defines, or what the body or its holder get."""
    program = state.program
    node = program.model.nodes[selected.node]
    if selected.rule != "Step/fire":
        control = control_of(state, selected.node)
        made = _without_rules(state, selected.node) if control is None else control.computes(state, selected)
        return made if isinstance(made, Stuck) else Apply(None, made.tensors, made.values, made.free)
    application = Application(
        program.operators[selected.node],
        node.version or 0,
        seen.values,
        program.attributes(selected.node),
        program.asked[selected.node],
        None if state.store.space.budget == UNLIMITED else state.store.space.budget,
        Draw(program.draws, selected.path),
    )
    outputs = _applied(program.meaning, application, node, selected)
    if isinstance(outputs, Stuck):
        return outputs
    given, asked = len(outputs.values), len(node.outputs)
    if given != asked:
        message = f"{selected.path}: {node.op_type} gives {given} outputs, the node lists {asked}"
        return stuck_at("Step/fire", "gives", message, "List the outputs that the operator has.")
    return _by_tensor(application, node.outputs, outputs, selected)


def write(state: State, selected: Select, applied: Apply) -> Write | Stuck:
    """The values in the new memory. Refused, before anything is allocated, when the budget does not hold them."""
    store, places, written = state.store, [], 0
    for t, value in zip(applied.tensors, applied.values, strict=True):
        stored = store_value(store, value, "a value")
        if isinstance(stored, OutOfBudget):
            return _over_budget(state, selected, t, stored)
        store, where = stored
        places.append(where)
        written += where.length
    return Write(applied.tensors, tuple(places), store, written)


def advance(state: State, selected: Select, written: Write) -> Advance:
    """The new state: the tables, the frames and the agenda after the transition."""
    frame, released = advanced(state, selected, tuple(zip(written.tensors, written.places, strict=True)))
    store = free(written.store, (where for _, where in released)) if released else written.store
    after = State(state.program, store, frame, state.schedule, state.stored, state.steps + 1)
    return Advance(after, released)


# ---- Selecting --------------------------------------------------------------------------------


def _ending(state: State, n: NodeId) -> Select | Stuck:
    """The rule that ends a run of the body of a node."""
    frame, node = state.frame, state.program.model.nodes[n]
    if frame.holder != n:
        return stuck_at("Step/fire", "nodes", f"{node.path} is no node of the graph that runs")
    control = control_of(state, n)
    if control is None:
        return _without_rules(state, n)
    if not finished(state):
        missing = next(t for t in state.program.model.graphs[frame.graph].outputs if not has_value(state, t))
        return stuck_at(control.last, "finished", f"the output {tensor_path(state, missing)} of the body has no value")
    return _selected(state, n, control.ends(state, n))


def control_of(state: State, n: NodeId) -> Control | None:
    """The rules of a node that runs a body; None for any other node."""
    node = state.program.model.nodes[n]
    control = CONTROLS.get(node.op_type)
    return control if control is not None and not normal_domain(node.domain) else None


def _without_rules(state: State, n: NodeId) -> Stuck:
    node = state.program.model.nodes[n]
    name = operator_text(node.domain, node.op_type)
    message = f"{node_path(state, n)} holds a body, and no rule runs one for {name}"
    return stuck_at("Step/fire", "bodies", message, _WITHOUT)


def _selected(state: State, n: NodeId, chosen: tuple[str, Change] | Stuck) -> Select | Stuck:
    if isinstance(chosen, Stuck):
        return chosen
    return Select(chosen[0], n, node_path(state, n), chosen[1])


def _not_enabled(state: State, n: NodeId) -> str:
    path = node_path(state, n)
    for t in state.program.reads[n]:
        if not has_value(state, t):
            return f"{path} reads {tensor_path(state, t)}, which has no value"
    for t in state.program.writes[n]:
        if has_value(state, t):
            return f"{path} has fired: its output {tensor_path(state, t)} has a value"
    return f"{path} has no output"


# ---- Operators without a meaning --------------------------------------------------------------

_WITHOUT = (
    "Give the operator a text (--spec FILE), or go past it in `sonnx debug`: `supply` gives its outputs values,"
    " `through ENGINE` has an engine compute them."
)


def has_meaning(node: Node) -> bool:
    """True if a rule of the machine or a definition says what a node gives."""
    if node.version is None:
        return False
    if node.op_type in CONTROLS and not normal_domain(node.domain):
        return True
    return (
        not node.bodies
        and specification().meanings.at(operator_name(node.domain, node.op_type), node.version) is not None
    )


def without_meaning(node: Node) -> str:
    """Why nothing here executes a node that has no meaning."""
    name = operator_text(normal_domain(node.domain), node.op_type)
    if node.version is None:
        return f"the specification gives no meaning to {name}"
    if reason := specification().reason(operator_name(node.domain, node.op_type), node.version):
        return f"nothing here executes {name}-{node.version}. {reason}"
    graphs = " with a graph as attribute" if node.bodies else ""
    return f"the specification gives no meaning to {name}-{node.version}{graphs}"


# ---- Applying and writing ---------------------------------------------------------------------


def _applied(meaning: Meaning, application: Application, node: Node, selected: Select) -> Outputs | Stuck:
    try:
        return meaning(application)
    except Unsupported:
        if has_meaning(node):
            raise
        return stuck_at("Step/fire", "gives", f"{selected.path}: {without_meaning(node)}", _WITHOUT)
    except MemoryError as error:
        reason = f"{error}, the limit is {application.budget}" if application.budget is not None else str(error)
        message = f"{selected.path}: there is no memory for its outputs ({reason})"
        return stuck_at(
            "Step/fire", "gives", message, "Give smaller inputs, or raise --max-memory where there is more."
        )


def _by_tensor(
    application: Application, tensors: tuple[TensorId | None, ...], outputs: Outputs, selected: Select
) -> Apply:
    named = tuple([t for t in tensors if t is not None])
    values = tuple([it for t, it in zip(tensors, outputs.values, strict=True) if t is not None and it is not None])
    if len(values) != len(named):
        raise InternalError(f"{selected.path}: the interpretation gives no value to an output that is asked for")
    if not outputs.free:
        return Apply(application, named, values)
    free = tuple([mask for t, mask in zip(tensors, outputs.free, strict=True) if t is not None])
    return Apply(application, named, values, free)


def _over_budget(state: State, selected: Select, t: TensorId, lack: OutOfBudget) -> Stuck:
    message = (
        f"{selected.path}: with {tensor_path(state, t)} the memory would have {lack.needed} bytes, the limit is"
        f" {lack.budget}"
    )
    return over_budget("Step/fire" if selected.rule == SUPPLIED else selected.rule, message)
