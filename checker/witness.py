"""Evidence for rules that hold: what a second party needs to see it again in linear time, without a solver.

`CERTIFICATE.md` states each kind and the numbering. Nodes and tensors are numbered in document order, so that a list of
numbers is the whole witness; every witness is the least one of its kind, so that there is exactly one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import cast

from sonnx.semantics.errors import InternalError
from sonnx.semantics.graph import GraphId, Model, NodeId, TensorId
from sonnx.semantics.structure import SetTable, Structure, Unknown, ValueTable

from .report import Json

NONE = -1
"""In place of a number: no such node; in `next`, the node itself writes an output; in `previous`, it reads an input."""
UNREACHED = -2
"""In `next` and `previous`: the node lies on no such path."""

Sets = Mapping[int, tuple[int, ...]]


def evidence(kind: str, model: Model, structure: Structure) -> dict[str, Json]:
    """The witness of the given kind (the word behind `evidence` in the constraint's text)."""
    make = _KINDS.get(kind)
    if make is None:
        raise InternalError(f"the text asks for evidence of the kind {kind}, which is not defined")
    return {"kind": kind, **make(model, structure)}


# ---- Numbering ----------------------------------------------------------------------------------


def node_order(model: Model) -> list[NodeId]:
    """The nodes in document order: each before the nodes of its bodies, which come before the next node."""
    return list(_nodes(model, 0))


def _nodes(model: Model, graph: GraphId) -> Iterator[NodeId]:
    for n in model.graphs[graph].nodes:
        yield n
        for _, body in model.nodes[n].bodies:
            yield from _nodes(model, body)


def tensor_order(model: Model) -> list[TensorId]:
    """The tensors in document order of their first mention."""
    return list(dict.fromkeys(_mentions(model, 0)))


def _mentions(model: Model, graph: GraphId) -> Iterator[TensorId]:
    g = model.graphs[graph]
    yield from g.inputs
    yield from (t for t, _ in g.initializers)
    yield from (t for t, _ in g.sparse_initializers)
    for n in g.nodes:
        node = model.nodes[n]
        yield from (t for t in node.inputs if t is not None)
        yield from (t for t in node.outputs if t is not None)
        for _, body in node.bodies:
            yield from _mentions(model, body)
    yield from g.outputs
    yield from (t for t, _ in g.value_infos)


def _positions(order: list[int]) -> dict[int, int]:
    return {element: position for position, element in enumerate(order)}


# ---- Kinds --------------------------------------------------------------------------------------


def _sets(structure: Structure, fact: str) -> Sets:
    table = structure.table(fact)
    if not isinstance(table, SetTable):
        raise InternalError(f"the fact {fact} is not a set")
    return cast("Sets", table.rows)


def _places(_model: Model, _structure: Structure) -> dict[str, Json]:
    """Nothing: the rule is evaluated again at every place."""
    return {}


def _least(fact: str) -> Callable[[Model, Structure], dict[str, Json]]:
    """For each tensor the least number of the nodes that the fact gives for it."""

    def make(model: Model, structure: Structure) -> dict[str, Json]:
        number = _positions(node_order(model))
        rows = _sets(structure, fact)
        return {"tensors": [min((number[n] for n in rows.get(t, ())), default=NONE) for t in tensor_order(model)]}

    return make


def _order(model: Model, structure: Structure) -> dict[str, Json]:
    """The nodes in the order in which they are founded, always the least one that can be next."""
    nodes = node_order(model)
    ins, producers, consumers = (_sets(structure, fact) for fact in ("ins", "producers", "consumers"))
    waiting = [{m for t in ins.get(n, ()) for m in producers.get(t, ())} for n in nodes]
    outs = _sets(structure, "outs")
    followers = [{m for t in outs.get(n, ()) for m in consumers.get(t, ())} for n in nodes]
    return {"nodes": cast("list[Json]", _least_first(nodes, waiting, followers))}


def _least_first(nodes: list[NodeId], waiting: list[set[NodeId]], followers: list[set[NodeId]]) -> list[int]:
    """Numbers in the order of least first; `waiting` says what must come before, `followers` what may come after."""
    number = _positions(nodes)
    left = [len(before) for before in waiting]
    ready = [k for k, count in enumerate(left) if count == 0]
    heapify(ready)
    done = []
    while ready:
        k = heappop(ready)
        done.append(k)
        for m in followers[k]:
            follower = number[m]
            left[follower] -= 1
            if left[follower] == 0:
                heappush(ready, follower)
    return done


def _derivation(model: Model, structure: Structure) -> dict[str, Json]:
    """The nodes that can be executed, in the order in which this is derived, always the least one that can be next."""
    nodes = node_order(model)
    number = _positions(nodes)
    facts = ("ins", "outs", "consumers", "bodies", "outputs", "inputs", "initializers", "unset_at_zero")
    ins, outs, consumers, bodies, outputs, inputs, initializers, unset = (_sets(structure, fact) for fact in facts)
    needs = [set(ins.get(n, ())).union(*(outputs.get(b, ()) for b in bodies.get(n, ()))) for n in nodes]
    holders: dict[TensorId, list[NodeId]] = {}
    for k, needed in enumerate(needs):
        if bodies.get(nodes[k]):
            for t in needed:
                holders.setdefault(t, []).append(nodes[k])
    valued = {t for rows in (inputs, initializers) for row in rows.values() for t in row}
    left = [len(needed - valued) for needed in needs]
    ready = [k for k, count in enumerate(left) if count == 0]
    heapify(ready)
    done: list[Json] = []
    while ready:
        k = heappop(ready)
        done.append(k)
        for t in dict.fromkeys(outs.get(nodes[k], ())):
            if t in valued or t in unset.get(nodes[k], ()):
                continue
            valued.add(t)
            for follower in {number[m] for m in (*consumers.get(t, ()), *holders.get(t, ()))}:
                left[follower] -= 1
                if left[follower] == 0:
                    heappush(ready, follower)
    return {"nodes": done}


def _paths(model: Model, structure: Structure) -> dict[str, Json]:
    """For each node the next one on a shortest path to an output, the one before on a shortest path from an input."""
    nodes = node_order(model)
    outputs, inputs, initializers = (_sets(structure, fact) for fact in ("outputs", "inputs", "initializers"))
    ends = {t for g, row in outputs.items() for t in row if model.tensors[t].graph == g}
    stored = {t for row in initializers.values() for t in row}
    starts = {t for row in inputs.values() for t in row} - stored
    ins, outs, producers, consumers = (_sets(structure, f) for f in ("ins", "outs", "producers", "consumers"))
    return {
        "next": _nearest(nodes, outs, consumers, ins, producers, ends),
        "previous": _nearest(nodes, ins, producers, outs, consumers, starts),
    }


def _nearest(
    nodes: list[NodeId], ahead: Sets, neighbours: Sets, behind: Sets, back: Sets, goal: set[TensorId]
) -> list[Json]:
    """For each node NONE when a tensor `ahead` of it is a goal, else its least neighbour among those nearest to one."""
    number = _positions(nodes)
    distance = [0 if not goal.isdisjoint(ahead.get(n, ())) else UNREACHED for n in nodes]
    queue = deque(k for k, d in enumerate(distance) if d == 0)
    while queue:
        k = queue.popleft()
        for t in behind.get(nodes[k], ()):
            for m in back.get(t, ()):
                before = number[m]
                if distance[before] == UNREACHED:
                    distance[before] = distance[k] + 1
                    queue.append(before)
    return [_step(k, nodes, number, distance, ahead, neighbours) for k in range(len(nodes))]


def _step(
    k: int, nodes: list[NodeId], number: dict[int, int], distance: list[int], ahead: Sets, neighbours: Sets
) -> int:
    if distance[k] <= 0:
        return NONE if distance[k] == 0 else UNREACHED
    around: Iterable[int] = (number[m] for t in ahead[nodes[k]] for m in neighbours.get(t, ()))
    return min(m for m in around if distance[m] == distance[k] - 1)


def _table(model: Model, structure: Structure) -> dict[str, Json]:
    """Every operator that occurs: its name, since_version (NONE: unknown), determinism in its schema, and how often."""
    operators, determinism = structure.table("operator"), structure.table("schema_determinism")
    if not isinstance(operators, ValueTable) or not isinstance(determinism, ValueTable):
        raise InternalError("the facts operator and schema_determinism must be single-valued")
    names, marks = operators.rows, determinism.rows
    found: Counter[tuple[str, int, str]] = Counter()
    for n, node in enumerate(model.nodes):
        mark = marks.get(n)
        known = node.version is not None and mark is not None and not isinstance(mark, Unknown)
        version = NONE if node.version is None else node.version
        found[(str(names[n]), version, str(mark) if known else "unknown")] += 1
    return {"operators": [[*key, found[key]] for key in sorted(found)]}


_KINDS: Mapping[str, Callable[[Model, Structure], dict[str, Json]]] = {
    "places": _places,
    "producers": _least("producers"),
    "consumers": _least("consumers"),
    "order": _order,
    "derivation": _derivation,
    "paths": _paths,
    "table": _table,
}
