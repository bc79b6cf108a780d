"""The passes: each changes an open model by rewrites of the text or by a theorem of part 6, and says what it did.

Local passes apply rewrites. Global ones are theorems applied to the whole model: `fold` (ConstantFolding), `dedupe`
(CommonSubexpressions) and `prune` (DeadNodes); one more, `layout`, has a file of its own. None of them looks at how a
model is partitioned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from struct import pack

import numpy as np
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.model.graph import Attribute, NodeId, TensorId
from sonnx.semantics.model.schemas import draws
from sonnx.semantics.model.stored import array_of
from sonnx.semantics.operators.application import Application, AttributeData, Outputs, data_of
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.operators.shapes.contents import Content
from sonnx.semantics.resources.process import OutOfBudget
from sonnx.spec.elaborate.core import CoreOperator

from ..matching.patterns import Pattern
from ..matching.replacing import Made, Replacement, replacement
from ..matching.searching import Held, Match, Unfit, find
from ..record import Proof
from .graphs import GraphView, OpenModel
from .journal import Dropped, Folded, Merged, New, Replaced, Shared, Written, written_value

BUDGET = 1 << 28
"""The bytes that a value may take which is computed from stored ones."""
GROWTH = 1 << 20
"""So many bytes more than it reads may a folded node give."""


@dataclass(frozen=True, slots=True)
class Firing:
    """One change. rule: a rewrite of the text, or a theorem of part 6. place: the path of the node concerned. tensors:
    what the ports of a rewrite are, by name. assumed: what the rule assumes of values. into: of how many nodes the
    place consists now.
    """

    rule: str
    claim: str
    place: str
    tensors: Mapping[str, str]
    assumed: tuple[str, ...] = ()
    into: int = 0


Log = Callable[[Firing], None]


# ---- Local: rewrites ------------------------------------------------------------------------------


def rewrite(
    open_: OpenModel,
    patterns: Mapping[CoreOperator, Sequence[Pattern]],
    commuting: Mapping[CoreOperator, str],
    proofs: Mapping[str, Proof],
    log: Log,
    most: int,
    *,
    smaller: bool = True,
) -> int:
    """Applies rewrites wherever they stand, first come first served, and again to what comes of it. smaller: only where
    fewer nodes are left to run. most: so many times at most. What BitCast rests on stays as it is. Returns how many
    times.
    """
    open_.forget()
    waiting, shown = deque(open_.live()), open_.shown()
    queued, fired = set(waiting), 0
    while waiting and fired < most:
        n = waiting.popleft()
        queued.discard(n)
        if n not in open_.nodes:
            continue
        operator = open_.definition(n)
        if all(open_.decided(t) for t in open_.nodes[n].inputs if t is not None):
            continue  # folding computes it
        for pattern in patterns.get(operator, ()) if operator is not None else ():
            proof = proofs.get(pattern.rule.name)
            touched = None if proof is None else fire(open_, n, pattern, commuting, proof, shown, log, smaller=smaller)
            if touched is not None:
                fired += 1
                fresh = [m for m in touched if m not in queued]
                waiting.extend(fresh)
                queued.update(fresh)
                break
    return fired


def fire(
    open_: OpenModel,
    n: NodeId,
    pattern: Pattern,
    commuting: Mapping[CoreOperator, str],
    proof: Proof,
    shown: Collection[TensorId],
    log: Log,
    *,
    smaller: bool,
) -> list[NodeId] | None:
    """Applies a rewrite at a node, if it stands there and is proved for it; the nodes that have something new to read,
    None where nothing was changed. shown, smaller: as in `rewrite`."""
    view = GraphView(open_, open_.nodes[n].graph)
    match = find(view, pattern, n, commuting)
    if match is None or not proof.covers(view, match):
        return None
    if any(t in shown for t in match.results(view)):
        return None  # a NaN of other digits would be seen
    try:
        right = replacement(view, match)
    except Unfit:
        return None
    if smaller and not _is_smaller(open_, match, right) and not _is_spelled_out(open_, match, right):
        return None
    return _replace(open_, n, match, right, commuting, log)


def _is_smaller(open_: OpenModel, match: Match, right: Replacement) -> bool:
    """Fewer nodes run than before: those of the left side that nothing else reads go, those of the right side come, but
    for what stored values alone decide, which is computed now."""
    roots = {match.nodes[k] for k, _ in match.pattern.results}
    results = {t for t in match.results(GraphView(open_, 0)) if t is not None}
    gone = set(roots)
    for n in (m for m in match.nodes if isinstance(m, int)):
        written = {t for t in open_.nodes[n].outputs if t is not None} - results
        readers = {m for t in written for m in open_.readers.get(t, ())}
        if written & open_.kept or not readers <= {it for it in match.nodes if isinstance(it, int)}:
            gone.discard(n)
            if n in roots:
                return False  # a root that something else needs
        else:
            gone.add(n)
    made: list[bool] = []
    for node in right.nodes:
        stored = all(
            made[it.node] if isinstance(it, Made) else it is None or (isinstance(it, int) and open_.decided(it))
            for it in node.inputs
        )
        made.append(stored)
    return made.count(False) < len(gone)


def _is_spelled_out(open_: OpenModel, match: Match, right: Replacement) -> bool:
    """The same operator on the same tensors, which states more attributes: each can be stated once."""
    (n, *others), made = match.nodes, right.nodes
    if others or len(made) != 1 or not isinstance(n, int):
        return False
    node = open_.nodes[n]
    same = open_.definition(n) is match.pattern.applications[0].operator and made[0].version == node.version
    name = made[0].operator == match.pattern.applications[0].operator.name
    read = made[0].inputs == GraphView(open_, node.graph).inputs(n)
    return same and name and read and made[0].attributes.keys() > node.attributes.keys()


def _replace(
    open_: OpenModel, n: NodeId, match: Match, right: Replacement, commuting: Mapping[CoreOperator, str], log: Log
) -> list[NodeId] | None:
    """Puts the right side where the left one stands; the nodes that have something new to read. None where a result is
    handed on that has to keep its name."""
    view = GraphView(open_, open_.nodes[n].graph)
    results = [t for t in match.results(view) if isinstance(t, int)]
    if len(results) < len(right.results) or len(set(results)) < len(results):
        return None
    taken: dict[Made, TensorId] = {}
    for t, reference in zip(results, right.results, strict=True):
        if isinstance(reference, Made):
            if reference in taken:
                return None
            taken[reference] = t
        elif not isinstance(reference, int) or t in open_.kept:
            return None
    place, before = open_.nodes[n].path, _contents(open_, results)
    tensors = {name: open_.tensors[t].name for name, t in match.ports.items() if isinstance(t, int)}
    for k, _ in match.pattern.results:
        root = match.nodes[k]
        if isinstance(root, int):
            _let_go(open_, root, results)
    made: dict[Made, TensorId] = {}
    written: list[Written] = []
    touched: list[NodeId] = []
    for number, node in enumerate(right.nodes):
        inputs = [made[it] if isinstance(it, Made) else it if isinstance(it, int) else None for it in node.inputs]
        outputs = []
        for k in range(node.outputs):
            at = Made(number, k)
            known = node.contents[k] if node.contents else None
            outputs.append(taken[at] if at in taken else open_.tensor(results[0], known))
            made[at] = outputs[-1]
        touched.append(open_.node(n, node, inputs, outputs))
        written.append(_written(open_, touched[-1]))
    for t, reference in zip(results, right.results, strict=True):
        if isinstance(reference, int):
            touched += open_.readers.get(t, ())
            open_.read_instead(t, reference)
        else:
            touched += open_.readers.get(t, ())
            open_.contents.update({t: before[t]} if t in before else {})
    nodes = tuple(m for m in match.nodes if isinstance(m, int))
    instead = tuple((t, it) for t, it in zip(results, right.results, strict=True) if isinstance(it, int))
    left = tuple(_new(open_, t) for t in open_.nodes[n].outputs)
    swapped = tuple((k, commuting[match.pattern.applications[k].operator]) for k in sorted(match.swapped))
    held = tuple(m.tensor for m in match.nodes if isinstance(m, Held) and isinstance(m.tensor, int))
    open_.journal.append(Replaced(match.pattern.rule.name, nodes, swapped, tuple(written), instead, left, held))
    for m in reversed(nodes):
        if m in open_.nodes and not _is_read(open_, m):
            open_.remove(m)
            open_.journal.append(Dropped(m))
    rule = match.pattern.rule
    log(Firing(rule.name, rule.claim, place, tensors, match.assumed, len(right.nodes)))
    return [m for m in dict.fromkeys(touched) if m in open_.nodes]


def _contents(open_: OpenModel, tensors: Sequence[TensorId]) -> Mapping[TensorId, Content]:
    return {t: open_.contents[t] for t in tensors if t in open_.contents}


def _new(open_: OpenModel, t: TensorId | None) -> New | None:
    return None if t is None else New(t, open_.tensors[t].name)


def _written(open_: OpenModel, n: NodeId) -> Written:
    """What a node that has been made is, for a second party."""
    node = open_.nodes[n]
    outputs = tuple(_new(open_, t) for t in node.outputs)
    return Written(n, node.name, node.domain, node.op_type, node.version or 0, node.inputs, outputs, node.attributes)


def _let_go(open_: OpenModel, root: NodeId, results: Sequence[TensorId]) -> None:
    """Takes results away from the node that has given them."""
    node = open_.nodes[root]
    outputs = tuple(
        open_.tensor(t, open_.contents.get(t)) if t is not None and t in results else t for t in node.outputs
    )
    open_.change(root, replace(node, outputs=outputs))


def _is_read(open_: OpenModel, n: NodeId) -> bool:
    written = [t for t in open_.nodes[n].outputs if t is not None]
    return any(open_.readers.get(t) or t in open_.kept for t in written)


def raised(
    open_: OpenModel,
    patterns: Mapping[CoreOperator, Sequence[Pattern]],
    proofs: Mapping[str, Proof],
    log: Log,
    opset: int,
) -> NodeId | None:
    """Raises the model to an operator set of ONNX by rewrites; a node that none of them raises, None without one.

    A node whose operator has the same definition there stays as it is.
    """
    open_.opsets[""], open_.raising = opset, True
    open_.forget()
    waiting, shown = deque(open_.live()), open_.shown()
    try:
        while waiting:
            n = waiting.popleft()
            if n not in open_.nodes or open_.is_in_force(n):
                continue
            operator = open_.definition(n)
            for pattern in patterns.get(operator, ()) if operator is not None else ():
                proof = proofs.get(pattern.rule.name)
                fired = None
                if proof is not None and len(pattern.applications) == 1:
                    fired = fire(open_, n, pattern, {}, proof, shown, log, smaller=False)
                if fired is not None:
                    waiting.extend(open_.live())
                    break
            else:
                return n
    finally:
        open_.raising = False
    return None


# ---- Global: theorems of part 6 -------------------------------------------------------------------


def prune(open_: OpenModel, log: Log) -> int:
    """Takes out the nodes of which nothing is read. What is left gives the same, and is stuck in fewer cases
    (DeadNodeRemoval, DeadNodesComputeNothing). A node that holds bodies goes with them.
    """
    waiting, removed = list(open_.live()), 0
    while waiting:
        n = waiting.pop()
        if n not in open_.nodes or _is_read(open_, n):
            continue
        node = open_.nodes[n]
        sources = [open_.producers[t][0] for t in (*node.inputs, *node.captures) if t in open_.producers]
        for body in (graph for _, graph in node.bodies):
            _without(open_, body)
        open_.remove(n)
        open_.journal.append(Dropped(n))
        log(Firing("DeadNodeRemoval", "exact", node.path, {}))
        removed += 1
        waiting += sources
    return removed


def _without(open_: OpenModel, graph: int) -> None:
    for n in list(open_.members[graph]):
        for _, inner in open_.nodes[n].bodies:
            _without(open_, inner)
        open_.remove(n)


def fold(open_: OpenModel, log: Log) -> int:
    """Computes what stored values alone decide, by the texts (ConstantFolding). A node that would be stuck stays, and
    so does one that gives far more than it reads.
    """
    waiting, folded = deque(_in_order(open_)), 0
    while waiting:
        n = waiting.popleft()
        if n not in open_.nodes or not _fold_one(open_, n):
            continue
        node = open_.nodes[n]
        values = (None if t is None else written_value(t, open_.constants[t]) for t in node.outputs)
        open_.journal.append(Folded(n, tuple(values)))
        log(Firing("ConstantFolding", "exact", node.path, {}))
        readers = [m for t in node.outputs if t is not None for m in open_.readers.get(t, ())]
        open_.remove(n)
        waiting.extend(m for m in dict.fromkeys(readers) if m in open_.nodes)
        folded += 1
    return folded


def _in_order(open_: OpenModel) -> list[NodeId]:
    return [n for graph in open_.closed().graphs for n in graph.nodes]


def _fold_one(open_: OpenModel, n: NodeId) -> bool:
    node = open_.nodes[n]
    operator = open_.definition(n)
    read = [t for t in node.inputs if t is not None]
    if operator is None or operator.rule or node.version is None or not all(map(open_.stored, read)):
        return False
    if draws(operator.name, node.version) or any(t in open_.kept for t in node.outputs):
        return False
    try:
        values = [None if t is None else _value(open_, t) for t in node.inputs]
        given = {name: data_of(it, open_.model) for name, it in node.attributes.items()}
        attributes: dict[str, AttributeData] = {name: it for name, it in given.items() if it is not None}
        if len(attributes) < len(given):
            return False
        wanted = tuple(t is not None for t in node.outputs)
        budget = min(BUDGET, GROWTH + sum(it.nbytes for it in values if it is not None))
        name = operator.name
        done = ieee.apply(Application(name, node.version, tuple(values), attributes, wanted, budget))
    except (Unsupported, MemoryError):
        return False
    if not isinstance(done, Outputs):
        return False
    arrays = [it for it in done.values if isinstance(it, np.ndarray)]
    if len(arrays) < sum(wanted) or sum(it.nbytes for it in arrays) > budget:
        return False
    for t, value in zip(node.outputs, done.values, strict=False):
        if t is not None and isinstance(value, np.ndarray):
            open_.store(node.graph, t, value)
    return True


def _value(open_: OpenModel, t: TensorId) -> np.ndarray:
    found = array_of(open_.constants[t], open_.model, open_.tensors[t].name)
    if isinstance(found, OutOfBudget):
        raise MemoryError
    return found


def bits_of(attribute: Attribute) -> Hashable:
    """The value of an attribute, told apart bit by bit: 0.0 and -0.0 are two values, and so are two NaNs."""
    return attribute.kind, repr(attribute.value), _floats(attribute.value)


def _floats(value: object) -> Hashable:
    items = value if isinstance(value, tuple) else (value,)
    return tuple(pack("<d", it) for it in items if isinstance(it, float))


def dedupe(open_: OpenModel, log: Log) -> int:
    """Of nodes that compute the same of the same, lets the others' readers read the first one (CommonSubexpressions).

    A node that draws, one that holds bodies and one whose result is an output of a graph are left alone.
    """
    removed = _same_values(open_, log)
    seen: dict[Hashable, NodeId] = {}
    for n in _in_order(open_):
        node, operator = open_.nodes[n], open_.definition(n)
        if operator is None or operator.rule or node.version is None or draws(operator.name, node.version):
            continue
        if any(t in open_.kept for t in node.outputs):
            continue
        attributes = frozenset((name, bits_of(it)) for name, it in node.attributes.items())
        asked = tuple(t is None for t in node.outputs)
        first = seen.setdefault((node.graph, operator, node.version, node.inputs, attributes, asked), n)
        if first == n:
            continue
        for t, other in zip(node.outputs, open_.nodes[first].outputs, strict=True):
            if t is not None and other is not None:
                open_.read_instead(t, other)
        open_.remove(n)
        open_.journal.append(Merged(n, first))
        log(Firing("CommonSubexpressions", "exact", node.path, {}))
        removed += 1
    return removed


def _same_values(open_: OpenModel, log: Log) -> int:
    """Of stored values of a graph that are the same, bit for bit, one is read. A caller overrides none of them."""
    first: dict[Hashable, TensorId] = {}
    shared = 0
    for graph, held in enumerate(open_.held):
        for t in held:
            if open_.stored(t) and open_.readers.get(t) and t not in open_.kept:
                other = first.setdefault((graph, open_.constants[t]), t)
                if other != t:
                    open_.read_instead(t, other)
                    open_.journal.append(Shared(t, other))
                    log(Firing("SameStoredValues", "exact", open_.tensors[t].path, {}))
                    shared += 1
    return shared
