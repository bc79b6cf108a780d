"""A long question as many short ones, of which the solver holds one at a time.

A formula that is a conjunction follows where each part of it does. Horn clauses are lemmas: those of a part derive its
heads from heads of the parts in front, which are then taken for granted. Each part is decided by the solver; here the
order alone is found. Any order is sound in which a part rests on what has been derived before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sonnx.semantics.formulas.ground import Query
from sonnx.semantics.formulas.terms import TRUE, Argument, Term, conjunction


def parts(query: Query, size: int) -> Iterator[Query]:
    """Questions that together say what the query does: it follows where each of them follows.

    None where its values have symbols, or where clauses wait for each other. size: the number of clauses, or of
    conjuncts, of a part.
    """
    if query.facts:
        return
    bodies = dict(query.clauses)
    order = _founded(bodies)
    if len(order) < len(bodies):
        return
    heads = list(order)
    for start in range(0, len(heads), size):
        own = heads[start : start + size]
        yield _part(query, bodies, own, [order[head] for head in own], own)
    whole = query.formula
    conjuncts = whole.args if isinstance(whole, Term) and whole.op == "and" else (whole,)
    goals = [goal for goal in conjuncts if not (type(goal) is str and goal in order)]
    for start in range(0, len(goals), size):
        some = goals[start : start + size]
        yield _part(query, bodies, (), [_mentioned(goal) for goal in some], some)


def _part(
    query: Query,
    bodies: Mapping[str, Argument],
    own: Sequence[str],
    mentioned: Iterable[Iterable[str]],
    goals: Sequence[Argument],
) -> Query:
    """The question for some goals with the clauses of own heads; other heads that they mention are given."""
    names = dict.fromkeys(name for row in mentioned for name in row)
    given = {name: TRUE for name in names if name in bodies}
    return replace(
        query,
        free={name: query.free[name] for name in names if name in query.free},
        immaterial={name: query.immaterial[name] for name in names if name in query.immaterial},
        clauses=tuple({**given, **{head: bodies[head] for head in own}}.items()),
        formula=conjunction(list(goals)),
    )


def _founded(bodies: Mapping[str, Argument]) -> Mapping[str, Sequence[str]]:
    """For each head the symbols that its body mentions, behind the heads among them; for fewer where some wait for each
    other."""
    order: dict[str, Sequence[str]] = {}
    begun: dict[str, Sequence[str]] = {}
    for first in bodies:
        stack = [first]
        while stack:
            head = stack[-1]
            if head in begun:
                order.setdefault(stack.pop(), begun[head])
                continue
            begun[head] = _mentioned(bodies[head])
            for name in begun[head]:
                if name in bodies and name not in order:
                    if name in begun:
                        return {}
                    stack.append(name)
    return order


def _mentioned(term: Argument) -> Sequence[str]:
    """The symbols of a term."""
    if type(term) is str:
        return (term,)
    if not isinstance(term, Term):
        return ()
    names: list[str] = []
    for part in term.args:
        if type(part) is str:
            names.append(part)
        elif isinstance(part, Term):
            names += _mentioned(part)
    return names
