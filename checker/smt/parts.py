"""A long question as many short ones, of which the solver holds one at a time.

A formula that is a conjunction follows where each part of it does. Horn clauses are lemmas: those of a part derive its
heads from heads of the parts in front, which are then taken for granted. Each part is decided by the solver; what stands
here is the order alone. It is sound for any order: what a part rests on has been derived before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sonnx.semantics.formulas.ground import Query
from sonnx.semantics.formulas.terms import TRUE, Argument, Term, conjunction

SIZE = 2_000
"""The number of clauses, or of conjuncts, of a part."""


def parts(query: Query) -> Iterator[Query]:
    """Questions that together say what the query does: it follows where each of them follows.

    None where the query is short, where its values have symbols, or where clauses wait for each other.
    """
    conjuncts = query.formula.args if isinstance(query.formula, Term) and query.formula.op == "and" else ()
    if query.facts or max(len(query.clauses), len(conjuncts)) <= SIZE:
        return
    bodies = dict(query.clauses)
    order = _founded(bodies)
    if len(order) < len(bodies):
        return
    for start in range(0, len(order), SIZE):
        heads = order[start : start + SIZE]
        yield _part(query, bodies, dict.fromkeys(heads), heads)
    goals = conjuncts or (query.formula,)
    for start in range(0, len(goals), SIZE):
        yield _part(query, bodies, {}, goals[start : start + SIZE])


def _part(query: Query, bodies: Mapping[str, Argument], own: Mapping[str, None], goals: Sequence[Argument]) -> Query:
    """The question for some goals, with these clauses; other heads that it mentions are given."""
    mentioned: dict[str, None] = {}
    for term in (*goals, *(bodies[head] for head in own)):
        _mention(term, mentioned)
    given = [(name, TRUE) for name in mentioned if name in bodies and name not in own]
    return replace(
        query,
        free={name: query.free[name] for name in mentioned if name in query.free},
        immaterial={name: query.immaterial[name] for name in mentioned if name in query.immaterial},
        clauses=(*given, *((head, bodies[head]) for head in own)),
        formula=conjunction(list(goals)),
    )


def _founded(bodies: Mapping[str, Argument]) -> list[str]:
    """The heads, each behind those that its body mentions; fewer where some wait for each other."""
    order: dict[str, None] = {}
    begun: set[str] = set()
    for first in bodies:
        stack = [first]
        while stack:
            head = stack[-1]
            if head in begun:
                order.setdefault(stack.pop())
                continue
            begun.add(head)
            mentioned: dict[str, None] = {}
            _mention(bodies[head], mentioned)
            for name in mentioned:
                if name in bodies and name not in order:
                    if name in begun:
                        return []
                    stack.append(name)
    return list(order)


def _mention(term: Argument, mentioned: dict[str, None]) -> None:
    """Collect the symbols of a term."""
    if type(term) is str:
        mentioned[term] = None
    elif isinstance(term, Term):
        for part in term.args:
            _mention(part, mentioned)
