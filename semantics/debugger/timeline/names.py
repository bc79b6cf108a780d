"""Names that people type, the values of tensors in a run of their graph, and changed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

from ...machine.memory import Region, Store, load_value, store_value
from ...machine.state import Frame, Kept, State, advanced_frame, region_of, run_prefix, tensor_path
from ...model.graph import GraphId, Model, NodeId, TensorId
from ...model.path import (
    Body,
    CallPlace,
    GraphPlace,
    NodePlace,
    Path,
    Step,
    TensorPlace,
    operator_text,
    parse_path,
    print_path,
    quote,
    resolve,
)
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
    """Nodes, calls, or ends of graphs that a text means. text: how to say it again. path: where it names runs of
    bodies, how the paths of what is meant begin."""

    text: str
    nodes: frozenset[NodeId]
    calls: frozenset[str] = frozenset()
    returns: frozenset[GraphId] = frozenset()
    path: str = ""


def nodes_meant(model: Model, text: str) -> Nodes:
    """The nodes that a text means: a path, op:PATTERN, name:PATTERN, function:NAME, or one of these patterns alone.

    A name is of a node or a call. A pattern may have the signs * and ?. `return` with the path of a graph means its
    end. Raises Refused for a text that means none, or more than one of these.
    """
    if text.startswith("return "):
        return returns_meant(model, text.removeprefix("return ").strip())
    if text.startswith("/"):
        try:
            return _of_path(model, text)
        except Refused:
            if not any(text in (node.name, *map(name_of_call, node.calls)) for node in model.nodes):
                raise
    kinds = ("name", "op", "function")
    head, _, rest = text.partition(":")
    wanted = {head: rest} if head in kinds and rest and not rest.startswith(":") else dict.fromkeys(kinds, text)
    sets = [it for kind, pattern in wanted.items() if (it := _of_kind(model, kind, pattern)) is not None]
    if len(sets) == 1:
        return sets[0]
    if sets:
        raise Refused(f"{quote(text)} can mean several things: say which", tuple(it.text for it in sets))
    calls = _calls(model)
    operators = {*(_operator(model, n) for n in range(len(model.nodes))), *map(function_called, calls)}
    known = {*(node.name for node in model.nodes), *map(name_of_call, calls), *operators}
    same = tuple(quote(it) for it in sorted(operators) if it.endswith(f"::{text}"))
    raise Refused(f"no node, operator, call or function is called {quote(text)}", same or _close(text, known))


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
    path = parse_path(text)
    around = print_path(replace(path, tensor=None)) if _names_a_run(path) else ""
    match target:
        case NodePlace(node=node):
            return Nodes(text, frozenset((node,)), path=around)
        case CallPlace():
            return Nodes(text, frozenset(), frozenset((print_path(_of_any_run(path)),)), path=around)
        case TensorPlace(tensor=t):
            writers = frozenset(n for n, node in enumerate(model.nodes) if t in node.outputs)
            if writers:
                return Nodes(text, writers, path=around)
        case GraphPlace(graph=graph):
            return Nodes(text, frozenset(model.graphs[graph].nodes), path=around)
        case None:
            pass
    raise Refused(f"{quote(text)} is no node of the model")


def returns_meant(model: Model, text: str) -> Nodes:
    """The end of the graph that a path names. Raises Refused."""
    try:
        target = resolve(model, text)
    except ValueError as error:
        raise Refused(str(error)) from None
    if not isinstance(target, GraphPlace):
        raise Refused(f"{quote(text)} is no graph of the model: / is the main one, a body is /3:Loop.body")
    around = text if _names_a_run(parse_path(text)) else ""
    return Nodes(f"return {text}", frozenset(), returns=frozenset((target.graph,)), path=around)


# ---- Runs of bodies -----------------------------------------------------------------------------


def _names_a_run(path: Path) -> bool:
    """True where a path says which run of a body is meant. Raises Refused for a run of a branch, which there is not."""
    bodies = [(step, step.into) for step in path.steps if isinstance(step.into, Body)]
    if any(step.operator == "If" and body.iteration is not None for step, body in bodies):
        raise Refused("a branch has no runs: leave the number out")
    return any(body.iteration is not None for _, body in bodies)


def _of_any_run(path: Path) -> Path:
    return replace(path, steps=tuple(map(_plain, path.steps)))


def _plain(step: Step) -> Step:
    return replace(step, into=replace(step.into, iteration=None)) if isinstance(step.into, Body) else step


def lies_in(text: str, around: str) -> bool:
    """True where the path of a node in a run is, or lies in, what another path means; a run that this one does not
    name may be any."""
    inner, outer = parse_path(text).steps, parse_path(around).steps
    return len(inner) >= len(outer) and all(map(_agrees, inner, outer))


def _agrees(inner: Step, outer: Step) -> bool:
    if outer.into is None:
        return (inner.index, inner.operator, inner.name) == (outer.index, outer.operator, outer.name)
    any_run = isinstance(outer.into, Body) and outer.into.iteration is None
    return (_plain(inner) if any_run else inner) == outer


# ---- Patterns -----------------------------------------------------------------------------------


def _of_kind(model: Model, kind: str, pattern: str) -> Nodes | None:
    if kind == "function":
        functions = frozenset(call for call in _calls(model) if _matches(function_called(call), pattern))
        return Nodes(f"function:{pattern}", frozenset(), functions) if functions else None
    if kind == "op":
        nodes = frozenset(n for n in range(len(model.nodes)) if _matches(_operator(model, n), pattern))
    else:
        nodes = frozenset(n for n, node in enumerate(model.nodes) if node.name and _matches(node.name, pattern))
        calls = frozenset(c for c in _calls(model) if (name := name_of_call(c)) and _matches(name, pattern))
        return Nodes(f"name:{pattern}", nodes, calls) if nodes or calls else None
    return Nodes(f"{kind}:{pattern}", nodes) if nodes else None


def _calls(model: Model) -> frozenset[str]:
    return frozenset(call for node in model.nodes for call in node.calls)


def _operator(model: Model, n: NodeId) -> str:
    node = model.nodes[n]
    return operator_text(normal_domain(node.domain), node.op_type)


def function_called(call: str) -> str:
    """The function that a call of this path calls: domain::name."""
    return parse_path(call).steps[-1].operator


def name_of_call(call: str) -> str:
    """The name of the node that a call of this path was; "" where it had none."""
    return parse_path(call).steps[-1].name


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


def with_kept(state: State, before: State, replaced: Callable[[Instance, Value], Value]) -> State:
    """The state with other values in place of those that the runs of the body on top gave before. before: the state
    that these lie in. replaced: the new value of an output of the body in a run, by the one that it has."""
    frame = before.frame
    outputs = before.program.model.graphs[frame.graph].outputs
    rows: list[tuple[Kept, int]] = []
    kept, number = frame.kept, frame.run
    while kept is not None:
        number -= 1
        rows.append((kept, number))
        kept = kept.before
    chain: Kept | None = None
    store = state.store
    for row, number in reversed(rows):
        places: list[Region | None] = []
        for t, where in zip(outputs, row.places, strict=True):
            if where is None:
                places.append(None)
                continue
            made = replaced(Instance(t, _path_in_run(before, t, number)), load_value(before.store, where))
            placed = store_value(store, made, "a question")
            if isinstance(placed, OutOfBudget):
                places.append(where)
                continue
            store, new = placed
            places.append(new)
        chain = Kept(tuple(places), chain)
    top = replace(state.frame, kept=chain)
    return State(state.program, store, top, state.schedule, state.stored, state.steps)


def _path_in_run(before: State, t: TensorId, number: int) -> str:
    """The path of an output of the body in another run."""
    frame = before.frame
    if before.program.model.tensors[t].graph != frame.graph or frame.below is None or frame.holder is None:
        return tensor_path(before, t)
    lower = replace(before, frame=frame.below)
    prefix = run_prefix(lower, frame.holder, frame.graph, number)
    return tensor_path(replace(before, frame=replace(frame, prefix=prefix)), t)
