"""Names that people type, the values of tensors in a run of their graph, and changed values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

from ...machine.memory import Region, Store, load_value, store_value
from ...machine.state import Frame, State, advanced_frame, region_of, tensor_path
from ...model.graph import Model, NodeId, TensorId
from ...model.path import CallPlace, GraphPlace, NodePlace, TensorPlace, operator_text, quote, resolve
from ...model.schemas import normal_domain
from ...model.values import Value
from ...operators.application import Program
from ...resources.persistent import get, put
from ...resources.process import OutOfBudget
from .history import History, Refused, call_frames

_CLOSE: Final = 5


@dataclass(frozen=True, slots=True)
class Instance:
    """A tensor in one run of its graph, by its path with the numbers of the runs."""

    tensor: TensorId
    path: str


# ---- Tensors ----------------------------------------------------------------------------------


def tensors_by_name(program: Program) -> dict[str, tuple[TensorId, ...]]:
    """All tensors of a name, in whatever graph or call."""

    def made() -> dict[str, tuple[TensorId, ...]]:
        by_name: dict[str, list[TensorId]] = {}
        for t, tensor in enumerate(program.model.tensors):
            by_name.setdefault(tensor.name, []).append(t)
        return {name: tuple(row) for name, row in by_name.items()}

    return program.remembered("debugger: tensors by name", made)


def tensor_named(state: State, n: NodeId | None, name: str, frame: int = 0) -> TensorId:
    """The tensor that a name means where the node n comes next: in the frame that is looked at (0: the innermost), or
    the nearest one around it; else the only one of that name in the model. Raises Refused."""
    program = state.program
    tensors = program.model.tensors
    known = tensors_by_name(program).get(name, ())
    seen = call_frames(state, n)
    seen = seen[: len(seen) - frame] if frame else seen
    for place in reversed(seen):
        if isinstance(place.level, int):
            plain = program.model.graphs[place.level].path
            prefix = plain if plain.endswith("/") else plain + "/"
        else:
            prefix = place.level + "!"
        here = [t for t in known if tensors[t].path == prefix + quote(name)]
        if here:
            return here[0]
    if len(known) == 1:
        return known[0]
    if known:
        raise Refused(
            f"there are {len(known)} tensors {quote(name)}: give a path in backquotes",
            tuple(f"`{tensors[t].path}`" for t in known[:_CLOSE]),
        )
    close = get_close_matches(name, tensors_by_name(program), _CLOSE)
    raise Refused(f"there is no tensor {quote(name)}", tuple(quote(it) for it in close))


def instance_of_path(state: State, text: str) -> Instance:
    """The tensor that a path names, in the run that it names, or else in the one at hand. Raises Refused."""
    try:
        target = resolve(state.program.model, text)
    except ValueError as error:
        raise Refused(str(error)) from None
    if not isinstance(target, TensorPlace):
        raise Refused(f"{quote(text)} is no tensor of the model: a tensor's path ends with its name in quotes")
    named = any(it is not None for it in target.iterations)
    return Instance(target.tensor, text if named else tensor_path(state, target.tensor))


def value_of_instance(history: History, index: int, instance: Instance) -> Value | None:
    """The value that a tensor has, or had, in a run of its graph by a moment; None when it had none yet."""
    region = region_of_instance(history, index, instance)
    return None if region is None else load_value(*region)


def region_of_instance(history: History, index: int, instance: Instance) -> tuple[Store, Region] | None:
    """The region of that value, or its last one when it was there last."""
    moment = history.at(index)
    where = region_of(moment.state, instance.tensor)
    if tensor_path(moment.state, instance.tensor) == instance.path and frame_of(moment.state, instance.tensor):
        if where is None:
            return None
        if not where.freed:
            return moment.state.store, where
    events = [it.first for it in edits_of(history, index, instance)[-1:]]
    written = written_at(history, index, instance)
    state = history.at(max(events, default=0 if written is None else written)).state
    where = region_of(state, instance.tensor) or stored_region(state, instance.tensor)
    return None if where is None else (state.store, where)


def stored_region(state: State, t: TensorId) -> Region | None:
    """The region of a stored value, the same in all runs of its graph; None for other tensors."""
    return get(state.stored[state.program.model.tensors[t].graph], t)


def written_at(history: History, index: int, instance: Instance) -> int | None:
    """The moment, at most `index`, to which the write of a tensor in a run of its graph led; edits are none."""
    for at in history.writes(instance.tensor, index):
        moment = history.at(at)
        if moment.came is None or instance.tensor not in moment.came.tensors:
            continue
        if tensor_path(moment.state, instance.tensor) == instance.path:
            return at
    return None


def edits_of(history: History, index: int, instance: Instance) -> tuple[History, ...]:
    """The timelines whose edits changed a tensor, in a run of its graph, by a moment; the first edit first."""
    return tuple(
        it
        for it in history.edits
        if it.first <= index
        if it.edit is not None and (it.edit.tensor, it.edit.path) == (instance.tensor, instance.path)
    )


def frame_of(state: State, t: TensorId) -> Frame | None:
    """The frame that a tensor belongs to."""
    frame: Frame | None = state.frame
    while frame is not None and frame.graph != state.program.model.tensors[t].graph:
        frame = frame.below
    return frame


# ---- Nodes ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes that a text means, or calls. text: how to say it again. prefix: of the path of a run that it names."""

    text: str
    nodes: frozenset[NodeId]
    calls: frozenset[str] = frozenset()
    path: str = ""


def nodes_meant(model: Model, text: str) -> Nodes:
    """The nodes that a text means: a path, op:PATTERN, name:PATTERN, function:NAME, or one of these patterns alone.

    A pattern may have the signs * and ?. Raises Refused for a text that means none, or more than one of these.
    """
    if text.startswith("/"):
        try:
            return _of_path(model, text)
        except Refused:
            if not any(node.name == text for node in model.nodes):
                raise
    kinds = ("name", "op", "function")
    head, _, rest = text.partition(":")
    wanted = {head: rest} if head in kinds and rest and not rest.startswith(":") else dict.fromkeys(kinds, text)
    sets = [it for kind, pattern in wanted.items() if (it := _of_kind(model, kind, pattern)) is not None]
    if len(sets) == 1:
        return sets[0]
    if sets:
        raise Refused(f"{quote(text)} can mean several things: say which", tuple(it.text for it in sets))
    known = {*(node.name for node in model.nodes), *(_operator(model, n) for n in range(len(model.nodes)))}
    raise Refused(f"no node, operator or function is called {quote(text)}", _close(text, known))


def one_node(model: Model, text: str) -> NodeId:
    """The node that a text means. Raises Refused where there are several."""
    nodes = nodes_meant(model, text)
    if len(nodes.nodes) != 1:
        shown = tuple(model.nodes[n].path for n in sorted(nodes.nodes)[:_CLOSE])
        raise Refused(f"{quote(text)} means {len(nodes.nodes)} nodes: give one", shown)
    return next(iter(nodes.nodes))


def _of_path(model: Model, text: str) -> Nodes:
    try:
        target = resolve(model, text)
    except ValueError as error:
        raise Refused(str(error)) from None
    match target:
        case NodePlace(node=node, iterations=iterations):
            return Nodes(text, frozenset((node,)), path=text if any(it is not None for it in iterations) else "")
        case CallPlace():
            return Nodes(text, frozenset(), frozenset((text,)))
        case TensorPlace(tensor=t):
            writers = frozenset(n for n, node in enumerate(model.nodes) if t in node.outputs)
            if writers:
                return Nodes(text, writers)
        case GraphPlace(graph=graph):
            return Nodes(text, frozenset(model.graphs[graph].nodes))
        case None:
            pass
    raise Refused(f"{quote(text)} is no node of the model")


def _of_kind(model: Model, kind: str, pattern: str) -> Nodes | None:
    if kind == "function":
        calls = {call for node in model.nodes for call in node.calls if _matches(function_called(call), pattern)}
        return Nodes(f"function:{pattern}", frozenset(), frozenset(calls)) if calls else None
    if kind == "op":
        nodes = frozenset(n for n in range(len(model.nodes)) if _matches(_operator(model, n), pattern))
    else:
        nodes = frozenset(n for n, node in enumerate(model.nodes) if node.name and _matches(node.name, pattern))
    return Nodes(f"{kind}:{pattern}", nodes) if nodes else None


def _operator(model: Model, n: NodeId) -> str:
    node = model.nodes[n]
    return operator_text(normal_domain(node.domain), node.op_type)


def function_called(call: str) -> str:
    """The function that a call of this path calls: domain::name."""
    tail = call.rsplit("!", 1)[-1].rsplit("/", 1)[-1] if not call.endswith(")") else call
    return tail.partition(":")[2].partition("(")[0]


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or (("*" in pattern or "?" in pattern) and fnmatchcase(name, pattern.replace("[", "[[]")))


def _close(text: str, known: Iterable[str]) -> tuple[str, ...]:
    return tuple(quote(it) for it in get_close_matches(text, [it for it in known if it], _CLOSE))


# ---- Changed values -------------------------------------------------------------------------------


def with_value(state: State, instance: Instance, value: Value) -> State:
    """The state in which a tensor of a frame has another value. Raises Refused where there is no such frame."""
    target = frame_of(state, instance.tensor)
    placed = store_value(state.store, value, "an edit")
    if isinstance(placed, OutOfBudget):
        raise Refused(f"the memory would have {placed.needed} bytes, the limit is {placed.budget}")
    if target is None:
        raise Refused(f"{instance.path} is in no frame here")
    store, new = placed

    def rebuilt(frame: Frame) -> Frame:
        if frame is target:
            return advanced_frame(frame, put(frame.table, instance.tensor, new), frame.agenda)
        return frame if frame.below is None else replace(frame, below=rebuilt(frame.below))

    return State(state.program, store, rebuilt(state.frame), state.schedule, state.stored, state.steps)
