"""The numbers of axes at which operator definitions are instantiated: those that the requirements leave possible.

What a requirement says of numbers of axes alone (a scale is a scalar, the kernel has as many axes as the data) is found
by evaluating it at each of them; sizes and attributes are open there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from math import prod

from sonnx.spec.elaborate.coverage import expressions_of, inside
from sonnx.spec.language.syntax import Operator, Port, Statement

from ...formulas.terms import FALSE, Term
from .definedness import Path, explore
from .instances import OUTPUTS, RANKS, SEQUENCES, VARIADIC, Instance, is_list
from .numbers import equal, opposite
from .values import Split

ALL = 125
"""So many combinations are all tried, whatever the requirements say."""
MOST = 1_000
"""A requirement that concerns more combinations than this excludes none."""
CASES = 100
"""A requirement that needs more cases than this at one combination does not exclude it."""

Lists = Mapping[str, tuple[int, ...]]
Ranks = tuple[int, ...]


def instances(operator: Operator) -> Iterator[Instance]:
    """The definition at all combinations of ranks; where these are more than `ALL`, at combinations that the
    requirements admit, so many of them that any three names have all the ranks there that they can have together.
    """
    limits, lists = _limits(operator)
    first = {name: choices[0] for name, choices in lists.items()}
    if prod(limits.values()) <= ALL:
        every = list(product(*map(range, limits.values())))
    else:
        every = _covering(_admitted(operator, limits, first))
    for ranks in every:
        for chosen in product(*lists.values()):
            yield _instance(operator, dict(zip(limits, ranks, strict=True)), dict(zip(lists, chosen, strict=True)))


def _limits(operator: Operator) -> tuple[dict[str, int], dict[str, tuple[tuple[int, ...], ...]]]:
    """How many ranks are tried: of each name with dots and of inputs without a shape, and of the entries of lists."""
    limits: dict[str, int] = {}
    lists: dict[str, tuple[tuple[int, ...], ...]] = {}
    for port in operator.inputs:
        for name in _dotted(port):
            alone = len(port.shape or ()) == 1
            limits[name] = min(limits.get(name, len(RANKS)), len(RANKS) - (0 if alone else 1))
        if port.mark == "*":
            lists[port.name] = VARIADIC
        elif is_list(operator, port):
            lists[port.name] = SEQUENCES
        elif port.shape is None:
            limits[port.name] = 3
    return limits, lists | {port.name: OUTPUTS for port in operator.outputs if port.mark == "*"}


def _dotted(port: Port) -> list[str]:
    return [item[0] for item in port.shape or () if not isinstance(item, int) and item[1]]


def _instance(operator: Operator, known: Mapping[str, int], lists: Lists) -> Instance:
    ranks: dict[str, tuple[int, ...]] = {port.name: lists[port.name] for port in operator.outputs if port.mark == "*"}
    for port in operator.inputs:
        if port.name in lists:
            ranks[port.name] = lists[port.name]
        elif port.shape is None:
            ranks[port.name] = (known.get(port.name, 0),)
        else:
            sizes = [1 if isinstance(item, int) or not item[1] else known[item[0]] for item in port.shape]
            ranks[port.name] = (sum(sizes),)
    return Instance(operator, ranks)


# ---- What the requirements admit --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """The ranks of some names, by position, that a requirement admits together."""

    names: tuple[int, ...]
    admitted: frozenset[Ranks]


def _admitted(operator: Operator, limits: Mapping[str, int], lists: Lists) -> list[Ranks]:
    """The combinations of ranks that no requirement excludes."""
    tables = list(_tables(operator, limits, lists))
    found: list[Ranks] = [()]
    for position, limit in enumerate(limits.values()):
        complete = [table for table in tables if table.names[-1] == position]
        longer = ((*ranks, rank) for ranks in found for rank in range(limit))
        found = [r for r in longer if all(tuple(r[k] for k in table.names) in table.admitted for table in complete)]
    return found


def _tables(operator: Operator, limits: Mapping[str, int], lists: Lists) -> Iterator[Table]:
    names = list(limits)
    for position, statement in enumerate(operator.statements):
        if statement.kind != "require":
            continue
        kept, read = _needed(operator, position)
        of = tuple(k for k, name in enumerate(names) if name in read)
        ranges = [range(limits[names[k]]) for k in of]
        if not of or prod(map(len, ranges)) > MOST or any(s.kind in ("view", "along") for s in kept):
            continue
        part = replace(operator, statements=(*kept, statement))
        others = dict.fromkeys(names, 0)
        possible = (
            ranks
            for ranks in product(*ranges)
            if _possible(_instance(part, others | {names[k]: r for k, r in zip(of, ranks, strict=True)}, lists))
        )
        yield Table(of, frozenset(possible))


def _needed(operator: Operator, position: int) -> tuple[list[Statement], set[str]]:
    """The statements that a statement rests on, in their order, and the names that all of them mention; an input stands
    for the names in its shape.
    """
    kept: list[Statement] = []
    read = _mentioned(operator.statements[position])
    for statement in reversed(operator.statements[:position]):
        if statement.kind != "require" and read.intersection(statement.names):
            kept.insert(0, statement)
            read |= _mentioned(statement)
    for port in operator.inputs:
        if port.name in read:
            read.update(_dotted(port))
    return kept, read


def _mentioned(statement: Statement) -> set[str]:
    every = (part for expr in expressions_of(statement) for part in inside(expr))
    return {str(part.args[0]) for part in every if part.head in ("var", "call", "given")}


def _possible(instance: Instance) -> bool:
    """Whether some path gets to the end or is undefined, which is to be found out; true where that takes many cases."""
    last = len(instance.operator.statements)
    batches = 0
    for batch in islice(explore(instance, _cases), CASES):
        refused = batch.dead and batch.path.position == last - 1 and all(o.goal != FALSE for o in batch.obligations)
        if batch.path.position == last or (batch.dead and not refused):
            return True
        batches += 1
    return batches == CASES


def _cases(path: Path, split: Split) -> Sequence[tuple[int | str | bool | None, str]]:
    """Every case of a split: no solver is asked."""
    if split.soft:
        return [("open", "")]
    possible = [c for c in split.candidates if isinstance(c, str) or _fact(split.term, c) != FALSE]
    return [(candidate, "") for candidate in possible]


def _fact(term: Term, candidate: int | bool) -> Term:
    if isinstance(candidate, bool):
        return term if candidate else opposite(term)
    return equal(term, candidate)


# ---- Some instead of all ----------------------------------------------------------------------


def _covering(every: Sequence[Ranks]) -> list[Ranks]:
    """Combinations, taken greedily, in which any three positions have every triple of ranks that they have at all."""
    seen: set[tuple[tuple[int, int], ...]] = set()
    found = []
    for ranks in every:
        triples = set(combinations(enumerate(ranks), 3))
        if not triples <= seen:
            seen |= triples
            found.append(ranks)
    return found
