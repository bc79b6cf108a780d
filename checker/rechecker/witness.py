"""The witnesses of rules that hold: of each kind there is exactly one for a model; it is derived or replayed here."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence

from lark import Tree
from sonnx.semantics.errors import Unsupported

from .facts import Facts
from .fixpoints import follows
from .form import spelled
from .schema import determinism, operator, schema_of
from .text import Declaration, Node, Text
from .values import Tables

NOWHERE = -1
UNREACHED = -2


def fits(witness: Mapping[str, object], declared: Declaration, text: Text, f: Facts, tables: Tables) -> bool:
    """A witness is the one of a constraint that holds, to the type of every value in it."""
    kind = declared.clauses.get("evidence", "places")
    if kind in ("order", "derivation"):
        nodes = witness.get("nodes")
        if spelled(witness.get("kind")) != spelled(kind) or set(witness) != {"kind", "nodes"}:
            return False
        if not isinstance(nodes, list) or not all(type(n) is int for n in nodes):
            return False
        return follows(over_nodes(declared, text), nodes, text, tables, range(len(f.reading.nodes)))
    made = _MADE.get(kind)
    if made is None:
        raise Unsupported(f"the text asks for evidence of the kind {kind}, which this rechecker does not know")
    return spelled(witness) == spelled({"kind": kind, **made(f)})


def over_nodes(declared: Declaration, text: Text) -> str:
    """The one inductive predicate over nodes that a constraint comes to."""
    nodes: dict[str, None] = {}
    seen: set[str] = set()
    waiting: list[Node] = [] if declared.body is None else [declared.body]
    while waiting:
        tree = waiting.pop()
        waiting += [child for child in tree.children if isinstance(child, Tree)]
        name = str(tree.children[0]) if tree.data == "call" else ""
        called = None if name in seen else text.declaration(name)
        if called is not None:
            seen.add(name)
            if called.kind == "inductive" and [sort for _, sort in called.parameters] == ["Node"]:
                nodes[name] = None
            waiting += [] if called.body is None else [called.body]
    if len(nodes) != 1:
        raise Unsupported(f"{declared.name} has no single inductive predicate over nodes to replay")
    return next(iter(nodes))


# ---- Kinds without a fixpoint -------------------------------------------------------------------


def _least(nodes: Sequence[Sequence[int]]) -> list[int]:
    return [min(row, default=NOWHERE) for row in nodes]


def _operators(f: Facts) -> list[list[object]]:
    """Name, since_version, determinism and number of every operator that occurs."""
    counts: Counter[tuple[str, int, str]] = Counter()
    for node in f.reading.nodes:
        schema = schema_of(node)
        counts[(operator(node), schema.since_version if schema else NOWHERE, determinism(node))] += 1
    return [[*key, counts[key]] for key in sorted(counts)]


def _nearest(f: Facts, *, forward: bool) -> list[int]:
    """For each node its least neighbour on a shortest way to one that writes an output of its graph (backward: reads an
    input without a stored value); NOWHERE at its end, UNREACHED without a way."""
    ahead, behind = (f.writes, f.reads) if forward else (f.reads, f.writes)
    neighbours, back = (f.readers, f.writers) if forward else (f.writers, f.readers)
    goal = f.outputs if forward else f.inputs - f.stored
    steps: list[int | None] = [0 if any(t in goal for t in tensors) else None for tensors in ahead]
    queue = deque(n for n, step in enumerate(steps) if step == 0)
    while queue:
        n = queue.popleft()
        for m in (m for t in behind[n] for m in back[t]):
            if steps[m] is None:
                steps[m] = (steps[n] or 0) + 1
                queue.append(m)

    def next_of(n: int, step: int | None) -> int:
        if not step:
            return UNREACHED if step is None else NOWHERE
        return min(m for t in ahead[n] for m in neighbours[t] if steps[m] == step - 1)

    return [next_of(n, step) for n, step in enumerate(steps)]


_MADE: Mapping[str, Callable[[Facts], dict[str, object]]] = {
    "places": lambda f: {},
    "producers": lambda f: {"tensors": _least(f.writers)},
    "consumers": lambda f: {"tensors": _least(f.readers)},
    "paths": lambda f: {"next": _nearest(f, forward=True), "previous": _nearest(f, forward=False)},
    "table": lambda f: {"operators": _operators(f)},
}


# ---- Cycles -------------------------------------------------------------------------------------


def rings(f: Facts, places: Sequence[int], founded: Callable[[int], bool]) -> list[list[int]]:
    """For each unfounded node the cycle behind it, in the direction of the data, least node first.

    Behind a node stands the least unfounded node that writes what it reads. A node whose way back joins that of an
    earlier one gets an empty list.
    """
    seen: set[int] = set()
    result = []
    for place in places:
        way: list[int] = []
        here = place
        while here not in seen:
            seen.add(here)
            way.append(here)
            behind = [m for t in f.reads[here] for m in f.writers[t] if not founded(m)]
            if not behind:
                raise Unsupported("a node that is not founded reads from founded nodes only")
            here = min(behind)
        ring = way[way.index(here) :] if here in way else []
        ring.reverse()
        first = ring.index(min(ring)) if ring else 0
        result.append(ring[first:] + ring[:first])
    return result
