"""The smt interpretation, finite sets: bounded quantifiers are expanded over their members.

`exists` and `unique` carry for each member the atom which says that it is one; `forall` does not, since the world is
closed: a member that a fact does not list is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sonnx.semantics.structure import Element, SetTable
from sonnx.semantics.terms import FALSE, TRUE, Argument, Term, conjunction, disjunction, negation
from sonnx.spec.syntax import BOOL, Binder, Expr

from . import plan
from .ground_values import Context, Env, Family, Meaning, Truth, family, rule, scalar, truth

Guarded = Iterable[tuple[Element, Argument]]
Domain = Callable[[Env], Guarded | None]
"""The members to run through, each with the formula that it belongs to the domain; None when they are not known."""

FEW = 6
"""Up to this many alternatives, "exactly one" is written with pairs; beyond, by counting."""


def _domain(quantifier: str, binder: Binder, body: Expr, whole: Family, context: Context) -> Domain:
    """The members that matter. A universal quantifier asks for the condition of a member only where there is one."""
    plain = quantifier == "forall" and not whole.conditional

    def every(env: Env) -> Guarded | None:
        if not plain:
            return whole.guarded(env)
        members = whole.members(env)
        return None if members is None else [(x, TRUE) for x in members]

    found = plan.index(quantifier, binder.name, body, context.scope, context.functions)
    table = context.structure.table(found.relation) if found else None
    if found is None or not isinstance(table, SetTable):
        return every
    inverse, at = table.inverse, scalar(found.element, context)

    def indexed(env: Env) -> Guarded | None:
        element = at.value(env)
        if element is None or not at.rigid or whole.members(env) is None:
            return every(env)
        keys = [key for key in inverse.get(element, ()) if not isinstance(key, tuple) and whole.has(env, key)]
        return [(key, TRUE if plain else whole.contains(env, key)) for key in keys]

    return indexed


@rule("forall", "exists")
def _quantified(expr: Expr, context: Context) -> Meaning:
    (first, *rest), body = plan.binders(expr)
    remaining = Expr(expr.head, (*rest, body), expr.span) if rest else body
    whole = family(first.domain, context)
    domain = _domain(expr.head, first, remaining, whole, context)
    slot, inner = context.bind(first.name, whole.element)
    run, symbols = truth(remaining, inner), context.symbols
    universal = expr.head == "forall"
    unit, zero, join = (TRUE, FALSE, "and") if universal else (FALSE, TRUE, "or")

    def term(env: Env) -> Argument:
        members = domain(env)
        if members is None:
            return symbols.unknown(BOOL)
        found: list[Argument] = []
        for member, guard in members:
            env[slot] = member
            one = run(env)
            if guard is not TRUE:
                one = _if_member(guard, one, universal=universal)
            if one is zero:
                return zero
            if one is not unit:
                found.append(one)
        return unit if not found else found[0] if len(found) == 1 else Term(join, tuple(found))

    return Truth(term)


def _if_member(guard: Argument, body: Argument, *, universal: bool) -> Argument:
    if universal:
        return TRUE if body is TRUE else negation(guard) if body is FALSE else Term("=>", (guard, body))
    return FALSE if body is FALSE else guard if body is TRUE else Term("and", (guard, body))


@rule("unique")
def _unique(expr: Expr, context: Context) -> Meaning:
    binders, body = plan.binders(expr)
    loops, inner = _loops("unique", binders, body, context.inner())
    run, symbols = truth(body, inner), context.symbols

    def term(env: Env) -> Argument:
        alternatives: list[Argument] = []
        for guards in _each(loops, env):
            if guards is None:
                return symbols.unknown(BOOL)
            one = conjunction([*guards, run(env)])
            if one is not FALSE:
                alternatives.append(one)
        return exactly_one(alternatives)

    return Truth(term)


def exactly_one(terms: list[Argument]) -> Argument:
    """One of the formulas holds and no other."""
    if len(terms) > FEW:
        return Term("=", (1, Term("+", tuple(Term("ite", (term, 1, 0)) for term in terms))))
    pairs = [negation(conjunction([a, b])) for i, a in enumerate(terms) for b in terms[i + 1 :]]
    return conjunction([disjunction(terms), *pairs])


Loop = tuple[int, Domain]


def _loops(
    quantifier: str, binders: Sequence[Binder], body: Expr, context: Context
) -> tuple[list[Loop], Context]:
    loops: list[Loop] = []
    for position, binder in enumerate(binders):
        whole = family(binder.domain, context)
        last = position == len(binders) - 1
        domain = _domain(quantifier, binder, body if last else Expr("true"), whole, context)
        slot, context = context.bind(binder.name, whole.element)
        loops.append((slot, domain))
    return loops, context


def _each(loops: Sequence[Loop], env: Env, guards: tuple[Argument, ...] = ()) -> Iterator[tuple[Argument, ...] | None]:
    """Set the variables to each assignment in turn: the formulas that it is one, None where a domain is not known."""
    if not loops:
        yield guards
        return
    (slot, domain), *rest = loops
    members = domain(env)
    if members is None:
        yield None
        return
    for member, guard in members:
        env[slot] = member
        yield from _each(rest, env, guards if guard is TRUE else (*guards, guard))


@rule("set_comprehension")
def _set_comprehension(expr: Expr, context: Context) -> Meaning:
    """For each element the disjunction of the conditions under which it is an image."""
    element, *bound, guard = expr.args
    condition = guard if isinstance(guard, Expr) else Expr("true")
    loops, inner = _loops("exists", [b for b in bound if isinstance(b, Binder)], condition, context.inner())
    test, image, symbols = truth(condition, inner), scalar(element, inner), context.symbols

    def conditions(env: Env) -> dict[Element, Argument] | None:
        found: dict[Element, list[Argument]] = {}
        for guards in _each(loops, env):
            value = None if guards is None else image.value(env)
            if guards is None or value is None:
                return None
            found.setdefault(value, []).append(conjunction([*guards, test(env)]))
        joined = {value: disjunction(parts) for value, parts in found.items()}
        return {value: term for value, term in joined.items() if term is not FALSE}

    def guarded(env: Env) -> Guarded | None:
        found = conditions(env)
        return None if found is None else found.items()

    def contains(env: Env, value: Element) -> Argument:
        found = conditions(env)
        return symbols.unknown(BOOL) if found is None else found.get(value, FALSE)

    return Family(
        image.sort, conditions, guarded, lambda env, x: x in (conditions(env) or {}), contains, conditional=True
    )
