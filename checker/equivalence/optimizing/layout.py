"""The pass `layout`: Transposes are moved behind the operators that read them, to where they meet others.

All of it are rewrites of the text that are proved. They go one way, from inputs to outputs, and a place is changed only
where fewer Transposes are left and no more nodes have to run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sonnx.semantics.model.graph import NodeId, TensorId
from sonnx.spec.elaborate.core import CoreOperator

from ..matching.patterns import Applied, Pattern
from ..record import Proof
from .graphs import GraphView, OpenModel, Trial
from .passes import Firing, Log, fire

TRANSPOSE = "Transpose"
AGAIN = 4
"""For each node of a model rewrites are tried so many times at most."""

Patterns = Mapping[CoreOperator, Sequence[Pattern]]


@dataclass(slots=True)
class _Rules:
    """The rewrites that the pass uses, by their roots. moving: Transposes before an operator become one behind it.
    meeting: fewer Transposes come of those that an operator reads. ending: one that moves nothing goes. commuting,
    proofs: as in `layout`.
    """

    commuting: Mapping[CoreOperator, str]
    proofs: Mapping[str, Proof]
    moving: dict[CoreOperator, list[Pattern]] = field(default_factory=dict)
    meeting: dict[CoreOperator, list[Pattern]] = field(default_factory=dict)
    ending: dict[CoreOperator, list[Pattern]] = field(default_factory=dict)


def layout(
    open_: OpenModel,
    patterns: Patterns,
    commuting: Mapping[CoreOperator, str],
    proofs: Mapping[str, Proof],
    log: Log,
) -> int:
    """Moves Transposes to where rewrites leave fewer of them. Returns how many such places there were.

    A place is an operator at which Transposes can meet, with the operators between it and these. It stays as it was
    where not fewer Transposes are left, or more nodes would have to run: each change leaves fewer Transposes, so there
    is an end. Nothing is moved into or out of a body, and what BitCast rests on stays as it is. Where Transposes meet
    at once nothing is moved yet: other passes may find more to do then.
    """
    if not any(_is_transpose(open_, n) for n in open_.nodes):
        return 0
    rules, shown = _rules(patterns, commuting, proofs), open_.shown()
    order = [n for graph in open_.closed().graphs for n in graph.nodes]
    behind = _behind(open_, rules, order)
    places, left, waiting = 0, AGAIN * len(order), []
    for n in _by_depth(open_, order):
        between = _between(open_, rules, n, behind)
        if len(between) == 1:
            places += _tried(open_, rules, between, shown, log)
        elif between:
            waiting.append(n)
    for n in waiting if not places else ():
        between = _between(open_, rules, n, behind)
        if not between or left < len(between):
            continue
        left -= len(between)
        places += _tried(open_, rules, between, shown, log)
    return places


def _by_depth(open_: OpenModel, order: Sequence[NodeId]) -> list[NodeId]:
    """The nodes behind those that they read, in an order that does not depend on how they stand in their graphs."""
    depth: dict[NodeId, int] = {}
    for n in order:
        node = open_.nodes[n]
        read = [open_.producers[t][0] for t in (*node.inputs, *node.captures) if t in open_.producers]
        depth[n] = 1 + max((depth[m] for m in read if m in depth), default=0)

    def place(n: NodeId) -> tuple[int, int, list[str]]:
        node = open_.nodes[n]
        return node.graph, depth[n], [open_.tensors[t].name for t in node.outputs if t is not None]

    return sorted(order, key=place)


def _tried(
    open_: OpenModel,
    rules: _Rules,
    between: Sequence[NodeId],
    shown: Collection[TensorId],
    log: Log,
) -> bool:
    """Changes a place, and takes that back where it is no gain."""
    done: list[Firing] = []
    trial = open_.on_trial()
    keep = _moved(open_, rules, between, shown, done.append) and _is_less(open_, trial)
    open_.settle(trial, keep=keep)
    for firing in done if keep else ():
        log(firing)
    return keep


def _rules(patterns: Patterns, commuting: Mapping[CoreOperator, str], proofs: Mapping[str, Proof]) -> _Rules:
    found = _Rules(commuting, proofs)
    for operator, listed in patterns.items():
        for it in listed:
            before, after = _transposes(it.rule.left), _transposes(it.rule.right)
            if len(it.results) != 1 or not before:
                continue
            if operator.name != TRANSPOSE and _gives_transpose(it.rule.right):
                found.moving.setdefault(operator, []).append(it)
            if after < before:
                ends = len(it.applications) == 1 and not it.rule.right.applications
                kind = found.ending if ends else found.meeting
                kind.setdefault(operator, []).append(it)
    return found


def _transposes(side: CoreOperator) -> int:
    return sum(core.name == TRANSPOSE for core in side.applications)


def _gives_transpose(side: CoreOperator) -> bool:
    lets = {own: it.body for it in side.statements if it.kind == "let" for own in it.binds}
    body = next(it.body for it in side.statements if it.kind == "result")
    while body.head == "variable" and body.variable in lets:
        body = lets[body.variable]
    return body.head == "apply" and body.name == TRANSPOSE


def _is_transpose(open_: OpenModel, n: NodeId) -> bool:
    operator = open_.definition(n)
    return operator is not None and operator.name == TRANSPOSE


def _needs(open_: OpenModel, rules: _Rules, patterns: Patterns, n: NodeId) -> Iterator[tuple[TensorId, ...]]:
    """For each rewrite whose root a node may be, what has to be a Transpose of those tensors that the node reads."""
    operator = open_.definition(n)
    given = GraphView(open_, open_.nodes[n].graph).inputs(n)
    for it in patterns.get(operator, ()) if operator is not None else ():
        wanted = [_applied_to(it, k) for k in range(len(it.applications[it.root].inputs))]
        for order in (given, given[::-1])[: 1 + (operator in rules.commuting)]:
            needed = [(t, due) for t, due in zip(order, wanted, strict=False) if due is not None]
            tensors = tuple(t for t, _ in needed if t is not None)
            if tensors and len(tensors) == len(needed) and all(due.operator.name == TRANSPOSE for _, due in needed):
                yield tensors


def _applied_to(pattern: Pattern, place: int) -> Applied | None:
    """The application that the root of a pattern reads there; None for a port."""
    operand = pattern.applications[pattern.root].inputs[place]
    return None if operand is None or operand.port else pattern.applications[operand.application]


def _behind(open_: OpenModel, rules: _Rules, order: Sequence[NodeId]) -> set[TensorId]:
    """The tensors that are results of Transposes, or would be if these were moved as far as rewrites may go."""
    found: set[TensorId] = set()
    for n in order:
        node = open_.nodes[n]
        t = node.outputs[0] if node.outputs else None
        if t is None or all(open_.decided(it) for it in node.inputs if it is not None):
            continue
        if _is_transpose(open_, n) or any(map(found.issuperset, _needs(open_, rules, rules.moving, n))):
            found.add(t)
    return found


def _between(open_: OpenModel, rules: _Rules, end: NodeId, behind: set[TensorId]) -> list[NodeId]:
    """The nodes behind which Transposes have to move for them to meet at a node, and that node, in order; none where
    they do not meet there, or where this many of them would be left in any case."""
    if end not in open_.nodes:
        return []
    for needed in _needs(open_, rules, rules.meeting, end):
        if not behind.issuperset(needed):
            continue
        found: dict[NodeId, None] = {}
        sources: dict[NodeId, None] = {}
        waiting = [(open_.producers[t][0], False) for t in needed]
        while waiting:
            n, ready = waiting.pop()
            if n in found or n in sources:
                continue
            if ready:
                found[n] = None
            elif _is_transpose(open_, n):
                sources[n] = None
            else:
                read = _needs(open_, rules, rules.moving, n)
                first = next(filter(behind.issuperset, read), None)
                if first is None:
                    break
                waiting += [(n, True), *((open_.producers[t][0], False) for t in first)]
        else:
            inside = {*found, end}
            stay = sum(_is_read_outside(open_, n, inside) for n in found)
            go = sum(not _is_read_outside(open_, n, inside) for n in sources) + _is_transpose(open_, end)
            if stay < go:
                return [*found, end]
    return []


def _is_read_outside(open_: OpenModel, n: NodeId, inside: Collection[NodeId]) -> bool:
    written = [t for t in open_.nodes[n].outputs if t is not None]
    return any(t in open_.kept or any(m not in inside for m in open_.readers.get(t, ())) for t in written)


def _moved(
    open_: OpenModel,
    rules: _Rules,
    nodes: Sequence[NodeId],
    shown: Collection[TensorId],
    log: Log,
) -> bool:
    """Moves Transposes behind nodes, and lets them meet at the last one; False where they cannot be moved so."""

    def fired(n: NodeId, patterns: Patterns) -> bool:
        operator = open_.definition(n)
        return any(
            it.rule.name in rules.proofs
            and fire(open_, n, it, rules.commuting, rules.proofs[it.rule.name], shown, log, smaller=False) is not None
            for it in (patterns.get(operator, ()) if operator is not None else ())
        )

    *between, end = nodes
    result = open_.nodes[end].outputs[0]
    if not all(n in open_.nodes and fired(n, rules.moving) for n in between):
        return False
    if result is None or end not in open_.nodes or not fired(end, rules.meeting):
        return False
    if result in open_.producers and _is_transpose(open_, open_.producers[result][0]):
        fired(open_.producers[result][0], rules.ending)
    return True


def _is_less(open_: OpenModel, trial: Trial) -> bool:
    """Fewer Transposes are left than before the trial, and no more nodes have to run; folding computes what stored
    values alone decide."""
    made = [open_.nodes[n] for n in trial.made]
    running = [it for it in made if not all(open_.decided(t) for t in it.inputs if t is not None)]
    before, after = (sum(not it.domain and it.op_type == TRANSPOSE for it in side) for side in (trial.gone, made))
    return after < before and len(running) <= len(trial.gone)
