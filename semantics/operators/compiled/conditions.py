"""Truth values of operator texts: comparison of exact numbers, connectives, and what a condition tells of indices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from .arithmetic import add, interval, numerators, scaled
from .terms import (
    BOOL,
    INT,
    Affine,
    Array,
    Known,
    Node,
    Operand,
    Table,
    Term,
    axes_of,
    bounds,
    fits_table,
    is_free,
    is_static,
    kind_of,
    limits_of,
    table,
)


def compare(a: Operand, relation: str, b: Operand, known: Known) -> Operand:
    """Whether a stands in the relation to b, for integers, rationals and truth values."""
    if not isinstance(a, Term) and not isinstance(b, Term):
        return COMPARISONS_PLAIN[relation](a, b)
    if INT == kind_of(a) == kind_of(b):
        if relation == "!=":
            return negation(compare(a, "=", b, known))
        static = isinstance(a, (int, Affine)) and isinstance(b, (int, Affine))
        difference = add(a, b, known, -1) if static else None
        if difference is not None:
            return within(difference, *WITHIN[relation], known)
        low, high = interval("sub", bounds(a, known), bounds(b, known))
        decided = decide(low, high, *WITHIN[relation])
        if decided is not None:
            return decided
    axes = axes_of(a, b)
    if is_static(a, b) and fits_table(axes):
        (p, d), (q, e) = numerators(a, axes), numerators(b, axes)
        p, q = scaled(p, e), scaled(q, d)
        full = tuple(axis.size for axis in axes)
        return table(np.broadcast_to(COMPARISONS[relation](p, q).astype(bool), full), axes, BOOL)
    return Node(relation, (a, b), axes, BOOL, free=is_free(a, b))


def decide(low: int | None, high: int | None, first: int | None, last: int | None) -> bool | None:
    """Whether a number in low .. high is in first .. last, None when that is open."""
    if (first is None or (low is not None and low >= first)) and (last is None or (high is not None and high <= last)):
        return True
    if (first is not None and high is not None and high < first) or (
        last is not None and low is not None and low > last
    ):
        return False
    return None


def within(form: Operand, first: int | None, last: int | None, known: Known) -> Operand:
    """Whether an integer lies in first .. last (None: no limit)."""
    decided = decide(*bounds(form, known), first, last)
    if decided is not None:
        return decided
    if isinstance(form, Affine):
        return Node("within", (form,), form.axes, BOOL, data=(first, last))
    conditions = []
    if first is not None:
        conditions.append(compare(form, ">=", first, known))
    if last is not None:
        conditions.append(compare(form, "<=", last, known))
    return conjunction(conditions)


WITHIN: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "=": (0, 0),
    "<": (None, -1),
    "<=": (None, 0),
    ">": (1, None),
    ">=": (0, None),
}
"""For a relation between integers, where their difference lies."""


COMPARISONS: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


COMPARISONS_PLAIN: Final[Mapping[str, Callable[[object, object], bool]]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}


def conjunction(parts: Iterable[Operand]) -> Operand:
    """All of them."""
    return _connective("and", parts, True)


def disjunction(parts: Iterable[Operand]) -> Operand:
    """One of them at least."""
    return _connective("or", parts, False)


def _connective(op: str, parts: Iterable[Operand], neutral: bool) -> Operand:
    kept: list[Operand] = []
    for part in parts:
        if isinstance(part, Node) and part.op == op:
            kept += part.args
        elif not isinstance(part, Term):
            if bool(part) is not neutral:
                return not neutral
        else:
            kept.append(part)
    if len(kept) <= 1:
        return kept[0] if kept else neutral
    return Node(op, tuple(kept), axes_of(*kept), BOOL, free=is_free(*kept))


def negation(a: Operand) -> Operand:
    """Not a."""
    if isinstance(a, Table):
        return Table(~a.values, a.axes, BOOL)
    if isinstance(a, Node):
        return a.args[0] if a.op == "not" else Node("not", (a,), a.axes, BOOL, free=a.free)
    return not a


def conjuncts(condition: Term) -> tuple[Operand, ...]:
    """The conditions of which a condition is the conjunction."""
    return condition.args if isinstance(condition, Node) and condition.op == "and" else (condition,)


def assume(known: Known, condition: Operand, *, holds: bool = True) -> Known:
    """What is known where the condition holds (or does not)."""
    if not isinstance(condition, Term):
        return known
    masked = replace(known, masks=(*known.masks, condition if holds else negation(condition)))  # type: ignore[arg-type]
    parts = conjuncts(condition) if holds else ((condition,) if len(conjuncts(condition)) == 1 else ())
    for part in parts:
        if isinstance(part, Node) and part.op == "not":
            (part,), truth = part.args, not holds
        else:
            truth = holds
        if isinstance(part, Node) and part.op == "within":
            masked = _narrow(masked, part, truth)
    return masked


def _narrow(known: Known, part: Node, holds: bool) -> Known:
    (form,) = part.args
    first, last = limits_of(part)
    if not isinstance(form, Affine):
        return known
    if not holds:
        low, high = bounds(form, known)
        if last is not None and (first is None or (low is not None and low >= first)):
            first, last = last + 1, None
        elif first is not None and (last is None or (high is not None and high <= last)):
            last, first = first - 1, None
        else:
            return known
    first = None if first is None else first - form.const
    last = None if last is None else last - form.const
    if len(form.terms) == 1:
        axis, factor = form.terms[0]
        low, high = known.ranges.get(axis, (0, axis.size - 1))
        if factor < 0:
            first, last = (None if last is None else -last), (None if first is None else -first)
        size = abs(factor)
        low = low if first is None else max(low, -(-first // size))
        high = high if last is None else min(high, last // size)
        return replace(known, ranges={**known.ranges, axis: (low, max(high, low))})
    old = known.facts.get(form.terms, (None, None))
    first = old[0] if first is None else first if old[0] is None else max(first, old[0])
    last = old[1] if last is None else last if old[1] is None else min(last, old[1])
    return replace(known, facts={**known.facts, form.terms: (first, last)})
