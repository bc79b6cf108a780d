"""The smt interpretation, finite sets: bounded quantifiers are expanded over their members.

The world is closed: what a row does not list is no member. So an expansion counts only where the row is assumed:
`exists` and `unique` rest on the row itself, `forall` on the table as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from sonnx.spec.elaborate.core import TRUE as ALWAYS
from sonnx.spec.elaborate.core import Bound, Core
from sonnx.spec.language.syntax import BOOL

from ...facts.structure import Element, SetTable
from ..evaluate import indexed
from ..terms import FALSE, TRUE, Argument, Term, conjunction, disjunction, implication, negation
from .meanings import Context, Env, Family, Meaning, Truth, bind, family, rule, scalar, truth, under


class Domain(NamedTuple):
    """members: those to run through, None when they are not known. tables and row: what says that no others matter.

    condition: the formula that a member belongs to the domain, None where every one does.
    """

    members: Callable[[Env], Iterable[Element] | None]
    tables: tuple[Argument, ...]
    row: Callable[[Env], Argument] | None
    condition: Callable[[Env, Element], Argument] | None


FEW = 6
"""Up to this many alternatives, "exactly one" is written with pairs; beyond, by counting."""


def _domain(quantifier: str, bound: Bound, body: Core, context: Context) -> Domain:
    """The members that matter, through an index where the body gives one."""
    whole, symbols = family(bound.domain, context), context.work.symbols
    tables: tuple[Argument, ...] = () if whole.whole is None or quantifier != "forall" else (whole.whole,)
    direct = Domain(whole.members, tables, None if quantifier == "forall" else whole.row, whole.condition)
    index = indexed.index(quantifier, bound.variable, body, context.scope)
    table = context.work.structure.table(index.relation) if index else None
    if index is None or not isinstance(table, SetTable):
        return direct
    inverse, at, complete = table.inverse, scalar(index.element, context), symbols.assume(index.relation)
    if not at.rigid:
        return direct

    def looked_up(env: Env) -> Iterable[Element] | None:
        element = at.value(env)
        if element is None or whole.members(env) is None:
            return whole.members(env)
        return [key for key in inverse.get(element, ()) if not isinstance(key, tuple) and whole.has(env, key)]

    if context.work.clause:
        symbols.tables[index.relation] = complete
        return direct._replace(members=looked_up)
    return direct._replace(members=looked_up, tables=(*tables, complete))


@rule("forall", "exists")
def _quantified(core: Core, context: Context) -> Meaning:
    first, *rest = core.bound
    remaining = replace(core, bound=tuple(rest)) if rest else core.parts[0]
    members_of, tables, row, condition = _domain(core.head, first, remaining, context)
    slot, inner = bind(first.variable, context)
    run, symbols, polarity = truth(remaining, inner), context.work.symbols, context.polarity
    universal = core.head == "forall"
    unit, zero, join = (TRUE, FALSE, "and") if universal else (FALSE, TRUE, "or")

    def expanded(env: Env, members: Iterable[Element]) -> Argument:
        found: list[Argument] = []
        for member in members:
            env[slot] = member
            one = run(env)
            if condition is not None:
                belongs = condition(env, member)
                one = implication(belongs, one) if universal else conjunction([belongs, one])
            if one is zero:
                return zero
            if one is not unit:
                found.append(one)
        return unit if not found else found[0] if len(found) == 1 else Term(join, tuple(found))

    def term(env: Env) -> Argument:
        members = members_of(env)
        if members is None:
            return symbols.unknown(BOOL)
        result = expanded(env, members) if members else unit
        if row is not None:
            result = under(row(env), result, polarity, symbols)
        for symbol in tables:
            result = under(symbol, result, polarity, symbols)
        return result

    return Truth(term)


@rule("unique")
def _unique(core: Core, context: Context) -> Meaning:
    (body,) = core.parts
    loops, inner = _loops("unique", core.bound, body, context.inner())
    run, symbols, polarity = truth(body, inner), context.work.symbols, context.polarity

    def term(env: Env) -> Argument:
        alternatives: list[Argument] = []
        rows: dict[Argument, None] = {}
        for conditions in _each(loops, env, rows):
            if conditions is None:
                return symbols.unknown(BOOL)
            one = conjunction([*conditions, run(env)])
            if one is not FALSE:
                alternatives.append(one)
        result = exactly_one(alternatives)
        for row in rows:
            result = under(row, result, polarity, symbols)
        return result

    return Truth(term)


def exactly_one(terms: list[Argument]) -> Argument:
    """One of the formulas holds and no other."""
    if len(terms) > FEW:
        return Term("=", (1, Term("+", tuple(Term("ite", (term, 1, 0)) for term in terms))))
    pairs = [negation(conjunction([a, b])) for i, a in enumerate(terms) for b in terms[i + 1 :]]
    return conjunction([disjunction(terms), *pairs])


Loop = tuple[int, Domain]


def _loops(quantifier: str, bound: Sequence[Bound], body: Core, context: Context) -> tuple[list[Loop], Context]:
    loops: list[Loop] = []
    for position, item in enumerate(bound):
        last = position == len(bound) - 1
        domain = _domain(quantifier, item, body if last else ALWAYS, context)
        slot, context = bind(item.variable, context)
        loops.append((slot, domain))
    return loops, context


def _each(
    loops: Sequence[Loop], env: Env, rows: dict[Argument, None], conditions: tuple[Argument, ...] = ()
) -> Iterator[tuple[Argument, ...] | None]:
    """Set the variables to each assignment in turn: the formulas that it is one, None where a domain is not known.

    rows collects the symbols of the rows that were read.
    """
    if not loops:
        yield conditions
        return
    (slot, domain), *rest = loops
    members = domain.members(env)
    if members is None:
        yield None
        return
    rows.update(dict.fromkeys(domain.tables))
    if domain.row is not None:
        rows[domain.row(env)] = None
    for member in members:
        env[slot] = member
        belongs = domain.condition(env, member) if domain.condition else TRUE
        yield from _each(rest, env, rows, conditions if belongs is TRUE else (*conditions, belongs))


@rule("set")
def _set(core: Core, context: Context) -> Meaning:
    """For each element the disjunction of the conditions under which it is an image."""
    element, guard = core.parts
    loops, inner = _loops("exists", core.bound, guard, context.inner())
    test, image, symbols = truth(guard, inner), scalar(element, inner), context.work.symbols

    def conditions(env: Env) -> dict[Element, Argument] | None:
        found: dict[Element, list[Argument]] = {}
        rows: dict[Argument, None] = {}
        for guards in _each(loops, env, rows):
            held = TRUE if guards is None else test(env)
            if held is FALSE:
                continue
            value = None if guards is None else image.value(env)
            if guards is None or value is None:
                return None
            found.setdefault(value, []).append(conjunction([*guards, held]))
        joined = {value: disjunction(parts) for value, parts in found.items()}
        return {value: _under_all(rows, term) for value, term in joined.items() if term is not FALSE}

    def _under_all(rows: Iterable[Argument], term: Argument) -> Argument:
        for row in rows:
            term = under(row, term, 0, symbols)
        return term

    def condition(env: Env, value: Element) -> Argument:
        found = conditions(env)
        return symbols.unknown(BOOL) if found is None else found.get(value, FALSE)

    def contains(env: Env, value: Element, _polarity: int) -> Argument:
        return condition(env, value)

    def has(env: Env, value: Element) -> bool:
        return value in (conditions(env) or {})

    return Family(conditions, None, None, has, contains, condition)
