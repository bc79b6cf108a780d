"""What becomes of frames, tables and agendas after a transition, and whose space is free then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..errors import InternalError
from ..model.graph import NodeId, TensorId
from ..resources.persistent import PersistentMap, get, items, put
from .phases import Again, Enter, Leave, Select
from .regions import Region
from .schedule import after, agenda
from .state import Frame, Kept, State, Table, advanced_frame, run_prefix

Entries = tuple[tuple[TensorId, Region], ...]
Turned = tuple[Frame, Entries]
"""The frame on top, and the values whose space is free."""


def advanced(state: State, selected: Select, entries: Entries) -> Turned:
    """The frame on top after a transition that gave tensors their values at these places."""
    match selected.change:
        case Enter() as change:
            return _entered(state, selected, change, entries), ()
        case Again() as change:
            return _repeated(state, selected, change, entries)
        case Leave():
            return _left(state, selected, entries)
        case _:
            return _fired(state, state.frame, selected.node, entries)


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
        found = get(left, t)
        remaining = (counts[t] if found is None else found) - 1
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
    """What a frame that ends gives free: all but the initializers and what is kept."""
    if not state.store.space.reuse:
        return ()
    stays = {where.offset for where in (*_places(state.stored[frame.graph]), *kept) if where.length}
    return tuple((t, where) for t, where in items(frame.table) if not where.freed and where.offset not in stays)


def _places(table: Table) -> tuple[Region, ...]:
    return tuple(where for _, where in items(table))


def _own(state: State, frame: Frame, t: TensorId) -> Region:
    """Where an output of the body lies; for a captured tensor in the frame that it belongs to."""
    found: Frame | None = frame
    while found is not None and found.graph != state.program.model.tensors[t].graph:
        found = found.below
    where = None if found is None else get(found.table, t)
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
