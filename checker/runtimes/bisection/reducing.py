"""The smallest case at which guilty optimizers still lead to what is not allowed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sonnx.semantics.machine.files.numpy_files import write_npz
from sonnx.semantics.runtimes.engines.protocol import Failure, Switches

from ..differential.outcomes import Case
from ..differential.reduction import Same, in_memory, kept, nodes_of, reduce, values_of
from .changes import texts
from .trials import Answer, Bench, Outcome, OutOfTime, question

if TYPE_CHECKING:
    from onnx import NodeProto

LEAST: Final = 2.0
"""Seconds that making a case small is given at least."""


@dataclass(frozen=True, slots=True)
class Smallest:
    """The case made small. nodes: of it, as text. default: what the engine makes of it by itself, in a process of its
    own. tried: how many cases were run."""

    case: Case
    nodes: tuple[str, ...]
    default: Outcome
    tried: int


def smallest(
    bench: Bench, only: Switches, none: Switches, wrong: tuple[str, str], touched: Sequence[str], until: float
) -> Smallest | None:
    """The case made small, where the optimizers `only` and those that the engine uses by itself still lead to what is
    wrong, and `none` to what is allowed.

    touched: the tensors of the nodes that they change, around which is looked first. None where the whole case does
    not behave so.
    """
    whole = Case("the whole", in_memory(bench.question.source), bench.question.feeds)

    def outcome(case: Case, switches: Switches, apart: bool = False) -> Outcome | None:
        asked = question(case.source, case.feeds, bench.question.criterion)
        if isinstance(asked, Failure):
            return None
        run = replace(bench, question=asked, known={}, until=until + LEAST, tell=lambda _: None, apart=apart)
        plain = run.outcome(none)
        return run.held_against(plain).outcome(switches) if plain.answer is Answer.ALLOWED else None

    def same(case: Case) -> bool:
        try:
            return all((it := outcome(case, some)) is not None and it.signature == wrong for some in (only, Switches()))
        except OutOfTime:
            return False

    bench.tell("the case is made small")
    near = _near(whole, touched, same)
    if near is None and not same(whole):
        return None
    reduced = reduce(near or whole, same, max(LEAST, until - time.monotonic()))
    try:
        default = outcome(reduced.case, Switches(), apart=True)
    except OutOfTime:
        return None
    if default is None:
        return None
    return Smallest(reduced.case, texts(in_memory(reduced.case.source)), default, reduced.tried)


def _near(case: Case, touched: Sequence[str], same: Same) -> Case | None:
    """The nodes of the model that give the tensors, as a case of their own, where the same happens with it."""
    names = set(touched)
    positions = tuple(at for at, node in enumerate(nodes_of(case)) if names & set(node.output))
    values = values_of(case) if positions else None
    near = None if values is None else kept(case, positions, values)
    return near if near is not None and same(near) else None


def changed_parts(case: Case, touched: Sequence[Sequence[str]]) -> list[Case]:
    """Parts of the model that hang together, each as a case of its own on the values of the machine, small ones first;
    the whole model is none. touched: for each optimizer the tensors that the nodes of its parts give.

    The name of a case tells its nodes.
    """
    values, nodes = values_of(case), nodes_of(case)
    if values is None:
        return []
    groups = {group for names in touched for group in _connected(nodes, frozenset(names))}
    made = []
    for group in sorted(groups, key=lambda it: (len(it), it)):
        one = kept(case, group, values) if len(group) < len(nodes) else None
        if one is not None:
            made.append(replace(one, name=", ".join(f"/{at}:{nodes[at].op_type}" for at in group)))
    return made


def _connected(nodes: Sequence[NodeProto], names: frozenset[str]) -> Iterator[tuple[int, ...]]:
    """The positions of the nodes that give some of these tensors, together where they read each other's."""
    open_ = [at for at, node in enumerate(nodes) if names & set(node.output)]
    while open_:
        group, edge = {open_[0]}, [open_[0]]
        while edge:
            node = nodes[edge.pop()]
            tensors = {*node.input, *node.output} & names
            near = [at for at in open_ if at not in group and tensors & {*nodes[at].input, *nodes[at].output}]
            group |= set(near)
            edge += near
        open_ = [at for at in open_ if at not in group]
        yield tuple(sorted(group))


def store(case: Case, model: Path, inputs: Path) -> None:
    """Writes a case: the model, and its inputs where it has some."""
    model.write_bytes(in_memory(case.source))
    if case.feeds:
        write_npz(inputs, case.feeds)
