"""Evidence for rules that hold: what a second party needs to see it again in linear time, without a solver.

`CERTIFICATE.md` states each kind. Nodes and tensors stand for themselves by number, so a list of numbers is the whole
witness; every witness is the least one of its kind, so that there is exactly one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import cast

from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.structure import SetTable, Structure, ValueTable
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.model.graph import Model
from sonnx.spec.library import specification

from .report import Json

NONE = -1
"""In place of a number: no such node; in `next`, the node itself writes an output; in `previous`, it reads an input."""
UNREACHED = -2
"""In `next` and `previous`: the node lies on no such path."""

Sets = Mapping[int, tuple[int, ...]]
Kind = Callable[[Model, Structure], Mapping[str, Sequence[object]]]


def witness_of(kind: str, model: Model, structure: Structure) -> dict[str, Json]:
    """The witness of the given kind (the word behind `evidence` in the constraint's text)."""
    make = _KINDS.get(kind)
    if make is None:
        raise InternalError(f"the text asks for evidence of the kind {kind}, which is not defined")
    return {"kind": kind, **cast("dict[str, Json]", make(model, structure))}


def _sets(structure: Structure, fact: str) -> Sets:
    table = structure.table(fact)
    if not isinstance(table, SetTable):
        raise InternalError(f"the fact {fact} is not a set")
    return cast("Sets", table.rows)


def _places(_model: Model, _structure: Structure) -> dict[str, list[int]]:
    """Nothing: the rule is evaluated again at every place."""
    return {}


def _least(fact: str) -> Kind:
    """For each tensor the least of the nodes that the fact gives for it."""

    def make(model: Model, structure: Structure) -> dict[str, list[int]]:
        rows = _sets(structure, fact)
        return {"tensors": [min(rows.get(t, ()), default=NONE) for t in range(len(model.tensors))]}

    return make


def _order(model: Model, structure: Structure) -> dict[str, list[int]]:
    """The nodes in the order in which they are founded, always the least one that can be next."""
    ins, producers, outs, consumers = (_sets(structure, f) for f in ("ins", "producers", "outs", "consumers"))
    left = [len({m for t in ins.get(n, ()) for m in producers.get(t, ())}) for n in range(len(model.nodes))]
    ready = [n for n, count in enumerate(left) if count == 0]
    heapify(ready)
    done = []
    while ready:
        n = heappop(ready)
        done.append(n)
        for m in {m for t in outs.get(n, ()) for m in consumers.get(t, ())}:
            left[m] -= 1
            if left[m] == 0:
                heappush(ready, m)
    return {"nodes": done}


def cycles(places: Sequence[int], model: Model, structure: Structure) -> tuple[tuple[int, ...], ...]:
    """For each of the nodes, none of them founded, the cycle that keeps it so; empty where an earlier one has the same.

    From a node the walk goes to the least unfounded node that writes what it reads, again and again, until it meets
    itself. A cycle is given in the direction of the data, its least node first.
    """
    ins, producers = _sets(structure, "ins"), _sets(structure, "producers")
    founded = set(_order(model, structure)["nodes"])
    met: set[int] = set()
    rings = []
    for place in places:
        walk: dict[int, None] = {}
        n = place
        while n not in walk and n not in met:
            walk[n] = None
            n = min(m for t in ins[n] for m in producers.get(t, ()) if m not in founded)
        ring = [] if n in met else list(walk)[list(walk).index(n) :][::-1]
        least = ring.index(min(ring)) if ring else 0
        rings.append((*ring[least:], *ring[:least]))
        met.update(walk)
    return tuple(rings)


def _derivation(model: Model, structure: Structure) -> dict[str, list[int]]:
    """The nodes that can be executed, in the order in which this is derived, always the least one that can be next."""
    executable = direct.fixpoint("executable", specification().functions, structure, range(len(model.nodes)))
    facts = ("ins", "outs", "consumers", "bodies", "outputs", "inputs", "initializers")
    ins, outs, consumers, bodies, outputs, inputs, initializers = (_sets(structure, fact) for fact in facts)
    valued = {t for rows in (inputs, initializers) for row in rows.values() for t in row}
    needs: list[set[int]] = [set(ins.get(n, ())) for n in range(len(model.nodes))]
    holders: dict[int, list[int]] = {}
    for n, graphs in bodies.items():
        given = {t for b in graphs for t in outputs.get(b, ())} - needs[n]
        needs[n] |= given
        for t in given:
            holders.setdefault(t, []).append(n)
    left = [len(needed - valued) for needed in needs]
    ready = [n for n, count in enumerate(left) if count == 0 and n in executable]
    heapify(ready)
    done = []
    while ready:
        n = heappop(ready)
        done.append(n)
        for t in outs.get(n, ()):
            if t in valued:
                continue
            valued.add(t)
            for m in (*consumers.get(t, ()), *holders.get(t, ())):
                left[m] -= 1
                if left[m] == 0 and m in executable:
                    heappush(ready, m)
    return {"nodes": done}


def _paths(model: Model, structure: Structure) -> dict[str, list[int]]:
    """For each node the next one on a shortest path to an output, the one before on a shortest path from an input."""
    outputs, inputs, initializers = (_sets(structure, fact) for fact in ("outputs", "inputs", "initializers"))
    ins, outs, producers, consumers = (_sets(structure, f) for f in ("ins", "outs", "producers", "consumers"))
    ends = {t for g, row in outputs.items() for t in row if model.tensors[t].graph == g}
    stored = {t for row in initializers.values() for t in row}
    starts = {t for row in inputs.values() for t in row} - stored
    count = len(model.nodes)
    return {
        "next": _nearest(count, outs, consumers, ins, producers, ends),
        "previous": _nearest(count, ins, producers, outs, consumers, starts),
    }


def _nearest(count: int, ahead: Sets, neighbours: Sets, behind: Sets, back: Sets, goal: set[int]) -> list[int]:
    """For each node NONE when a tensor `ahead` of it is a goal, else its least neighbour among those nearest to one."""
    distance = [0 if not goal.isdisjoint(ahead.get(n, ())) else UNREACHED for n in range(count)]
    queue = deque(n for n, d in enumerate(distance) if d == 0)
    while queue:
        n = queue.popleft()
        for t in behind.get(n, ()):
            for m in back.get(t, ()):
                if distance[m] == UNREACHED:
                    distance[m] = distance[n] + 1
                    queue.append(m)

    def step(n: int) -> int:
        if distance[n] <= 0:
            return NONE if distance[n] == 0 else UNREACHED
        return min(m for t in ahead[n] for m in neighbours.get(t, ()) if distance[m] == distance[n] - 1)

    return [step(n) for n in range(count)]


def _table(model: Model, structure: Structure) -> dict[str, list[list[object]]]:
    """Every operator that occurs: its name, since_version (NONE: unknown), determinism in its schema, and how often."""
    operators, determinism = structure.table("operator"), structure.table("schema_determinism")
    if not isinstance(operators, ValueTable) or not isinstance(determinism, ValueTable):
        raise InternalError("the facts operator and schema_determinism must be single-valued")
    names, marks = operators.rows, determinism.rows
    counts: Counter[tuple[str, int, str]] = Counter()
    for n, node in enumerate(model.nodes):
        mark = marks.get(n)
        version = NONE if node.version is None else node.version
        counts[str(names[n]), version, mark if isinstance(mark, str) else "unknown"] += 1
    return {"operators": [[*key, counts[key]] for key in sorted(counts)]}


_KINDS: Mapping[str, Kind] = {
    "places": _places,
    "producers": _least("producers"),
    "consumers": _least("consumers"),
    "order": _order,
    "derivation": _derivation,
    "paths": _paths,
    "table": _table,
}
