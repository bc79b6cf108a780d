"""The outcome of a requirement at a node: it holds, fails, or sizes or data decide it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product

from . import formulas as fm
from .formulas import Formula, Int, Symbol
from .node import Goal
from .values import Open, Run

# ---- Conditions as a certificate carries them ---------------------------------------------------


NONE: Int = 0
ONE: Int = 1


def formula(term: object, sizes: Mapping[str, Symbol]) -> Formula:
    """A condition. Raises Open for what is none over these sizes."""
    match term:
        case bool():
            return term
        case ["=", left, right]:
            return fm.equal(_number(left, sizes), _number(right, sizes))
        case ["<=", left, right]:
            return fm.at_least(_number(right, sizes), _number(left, sizes))
        case ["and", *parts]:
            return fm.both(*(formula(part, sizes) for part in parts))
        case ["or", *parts]:
            return fm.either(*(formula(part, sizes) for part in parts))
        case ["not", part]:
            return fm.opposite(formula(part, sizes))
        case ["=>", left, right]:
            return fm.either(fm.opposite(formula(left, sizes)), formula(right, sizes))
        case ["iff", left, right]:
            a, b = formula(left, sizes), formula(right, sizes)
            return fm.either(fm.both(a, b), fm.both(fm.opposite(a), fm.opposite(b)))
        case _:
            raise Open(f"{str(term)[:100]} is no condition over sizes")


def _number(term: object, sizes: Mapping[str, Symbol]) -> Int:
    match term:
        case bool():
            raise Open("a truth value stands for a number")
        case int():
            return term
        case str() if term in sizes:
            return fm.poly(sizes[term])
        case ["+", *parts]:
            return reduce(fm.add, (_number(part, sizes) for part in parts), NONE)
        case ["*", *parts]:
            return reduce(fm.multiply, (_number(part, sizes) for part in parts), ONE)
        case ["div", left, int() as by] if by > 0:
            return fm.floor_div(_number(left, sizes), by)
        case ["mod", left, int() as by] if by > 0:
            return fm.floor_mod(_number(left, sizes), by)
        case ["ite", condition, left, right]:
            return fm.chosen(formula(condition, sizes), _number(left, sizes), _number(right, sizes))
        case _:
            raise Open(f"{str(term)[:100]} is no number over sizes")


# ---- Decisions ----------------------------------------------------------------------------------


TRIED = 4_000
"""So many combinations of sizes are tried."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A requirement at a node. verdict: holds, violated, conditional (sizes), obligation (data), open.

    goal: the formula, where there is one; of sizes, also that it is asked only where the node runs. facts: those about
    sizes that hold before; of an obligation what holds where the node runs. fails: sizes.
    """

    node: int
    verdict: str
    goal: Formula | None = None
    facts: tuple[Formula, ...] = ()
    fails: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""


def decide(node: int, goal: Goal, run: Run) -> list[Judged]:
    """The verdicts on a requirement, from the facts known by now: one where it holds or fails, else one for each of its
    parts that does not simply hold."""
    if isinstance(goal, Open):
        return [Judged(node, "obligation" if goal.data else "open", reason=goal.reason)]
    if goal is True or run.holds(goal):
        return [Judged(node, "holds", goal)]
    parts = [part for part in (_part(node, part, run) for part in fm.conjuncts(goal)) if part.verdict != "holds"]
    return parts or [Judged(node, "holds", goal)]


def _part(node: int, goal: Formula, run: Run) -> Judged:
    if run.holds(goal):
        return Judged(node, "holds", goal)
    in_doubt = any(map(fm.on_data, run.path))
    if goal is False or run.holds(fm.opposite(goal)):
        if in_doubt:
            return Judged(node, "obligation", goal, run.path, reason="data decide whether the node runs")
        if not run.entered:
            return Judged(node, "violated", goal)
        goal = False  # the node runs for some sizes only
    if fm.on_data(goal) or in_doubt:
        return Judged(node, "obligation", goal, run.path, reason="data decide it")
    goal = fm.either(*map(fm.opposite, run.entered), goal)
    passed = (fact for fact in run.path if fact not in run.entered)
    facts = tuple(f for f in (*run.facts.about(goal), *passed) if not fm.on_data(f))
    fails, holds = _tried(goal, facts)
    if fails is None:
        return Judged(node, "open", goal, facts, reason="neither proved nor refuted by sizes that were tried")
    if holds is None:
        return Judged(node, "open", goal, facts, fails, reason="no sizes were found for which it holds")
    return Judged(node, "conditional", goal, facts, fails)


def _tried(goal: Formula, facts: Sequence[Formula]) -> tuple[Mapping[str, int] | None, Mapping[str, int] | None]:
    """Sizes that keep the facts for which the goal fails, and for which it holds."""
    fails: Mapping[str, int] | None = None
    holds: Mapping[str, int] | None = None
    for at in _sizes(fm.both(goal, *facts) if goal is not False else fm.both(*facts)):
        try:
            if not all(fm.truth_at(fact, at) for fact in facts):
                continue
            if fm.truth_at(goal, at):
                holds = holds or at
            else:
                fails = fails or at
        except (KeyError, ZeroDivisionError):
            return None, None
        if fails is not None and holds is not None:
            break
    return fails, holds


def at_which(formula: Formula, wanted: Callable[[Mapping[str, int]], bool]) -> Mapping[str, int] | None:
    """Sizes of the formula's symbols that are as wanted; None where none were found."""
    for at in _sizes(formula):
        try:
            if wanted(at):
                return at
        except (KeyError, ZeroDivisionError):
            return None
    return None


def _sizes(formula: Formula) -> Iterator[Mapping[str, int]]:
    """Sizes to try, small ones first."""
    symbols = sorted((s for s in fm.formula_symbols(formula) if s.kind == "size"), key=lambda s: s.key)
    if not symbols:
        return
    each = max(int(TRIED ** (1 / len(symbols))), 2)
    ranges = []
    for symbol in symbols:
        low = 1 if symbol.least is None else symbol.least
        high = low + each - 1 if symbol.most is None else min(symbol.most, low + each - 1)
        ranges.append(range(low, high + 1))
    for values in product(*ranges):
        yield {s.key: v for s, v in zip(symbols, values, strict=True)}
    for step in range(1, 400):  # and larger ones, all alike
        yield {s.key: min((s.least or 1) + 8 * step, s.most or 1 << 40) for s in symbols}
