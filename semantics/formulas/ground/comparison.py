"""The smt interpretation, comparison: equality, order, membership."""

from __future__ import annotations

import operator
from collections.abc import Callable

from sonnx.spec.elaborate.core import Core
from sonnx.spec.language.syntax import BOOL

from ...errors import InternalError
from ..terms import FALSE, TRUE, Argument, Term, conjunction, disjunction, equivalence, negation
from .expressions import guarded
from .meanings import Context, Env, Family, Listing, Meaning, Scalar, Truth, meaning, rule, under
from .symbols import Symbols

SHORT = 4
"""Up to this length, membership in a list is written out as a disjunction of equalities."""


@rule("compare")
def _compare(core: Core, context: Context) -> Meaning:
    one, other = (meaning(part, context.inner()) for part in core.parts)
    relation, symbols = core.name, context.work.symbols
    match relation:
        case "in" | "not in":
            if not isinstance(one, Scalar):
                raise InternalError("members of sets are numbers, texts and elements")
            term = _contains(one, other, context.polarity if relation == "in" else -context.polarity, symbols)
        case "=" | "!=":
            term = _equal(one, other, symbols)
        case _:
            if not (isinstance(one, Scalar) and isinstance(other, Scalar)):
                raise InternalError(f"'{relation}' compares numbers")
            low, high = (other, one) if relation[0] == ">" else (one, other)
            return Truth(_ordered(relation.replace(">", "<"), low, high))
    return Truth((lambda env: negation(term(env))) if relation in ("!=", "not in") else term)


def _ordered(relation: str, low: Scalar, high: Scalar) -> Callable[[Env], Argument]:
    decide: Callable[[int, int], bool] = operator.lt if relation == "<" else operator.le

    def term(env: Env) -> Argument:
        if low.rigid and high.rigid:
            left, right = low.value(env), high.value(env)
            if isinstance(left, int) and isinstance(right, int):
                return TRUE if decide(left, right) else FALSE
        return Term(relation, (low.term(env), high.term(env)))

    return term


def _equal(one: Meaning, other: Meaning, symbols: Symbols) -> Callable[[Env], Argument]:
    match one, other:
        case Truth(left), Truth(right):
            return lambda env: equivalence(left(env), right(env))
        case Scalar(), Scalar():
            first, second = one, other
            if first.rigid and second.rigid:
                return lambda env: TRUE if first.value(env) == second.value(env) else FALSE
            return lambda env: Term("=", (first.term(env), second.term(env)))
        case Listing(), Listing():
            lists = one, other
            return lambda env: _equal_lists(*lists, env, symbols)
        case Family(), Family():
            sets = one, other
            return lambda env: _equal_sets(*sets, env, symbols)
        case _:
            raise InternalError("'=' compares values of one kind")


def _equal_lists(one: Listing, other: Listing, env: Env, symbols: Symbols) -> Argument:
    known = [items for items in (one.items(env), other.items(env)) if items is not None]
    if not known:
        return symbols.unknown(BOOL)
    lengths = Term("=", (one.length(env), other.length(env)))
    if len(known) == 2 and len(known[0]) != len(known[1]):
        return lengths
    pairs = ((one.at(env, i).term, other.at(env, i).term) for i in range(len(known[0])))
    return conjunction([lengths, *(Term("=", pair) for pair in pairs)])


def _equal_sets(one: Family, other: Family, env: Env, symbols: Symbols) -> Argument:
    left, right = one.members(env), other.members(env)
    if left is None or right is None:
        return symbols.unknown(BOOL)
    both = dict.fromkeys([*left, *right])
    return conjunction([equivalence(one.contains(env, x, 0), other.contains(env, x, 0)) for x in both])


def _contains(element: Scalar, domain: Meaning, polarity: int, symbols: Symbols) -> Callable[[Env], Argument]:
    if isinstance(domain, Listing):
        return _in_list(element, domain, symbols)
    if not isinstance(domain, Family):
        raise InternalError("'in' needs a set or a list")
    found, value_of, contains = domain, element.value, domain.contains

    def rigid(env: Env) -> Argument:
        value = value_of(env)
        return symbols.unknown(BOOL) if value is None else contains(env, value, polarity)

    def term(env: Env) -> Argument:
        members, name = found.members(env), element.term(env)
        if members is None:
            return symbols.unknown(BOOL)
        same: list[Argument] = []
        for x in members:
            equal = Term("=", (name, symbols.number(x)))
            same.append(conjunction([found.condition(env, x), equal]) if found.condition else equal)
        result = disjunction(same)
        return under(found.row(env), result, polarity, symbols) if found.row else result

    return rigid if element.rigid else term


def _in_list(element: Scalar, listing: Listing, symbols: Symbols) -> Callable[[Env], Argument]:
    texts = listing.literals

    def term(env: Env) -> Argument:
        value = element.value(env)
        if texts is not None and value is not None:
            found = TRUE if value in texts else FALSE
            if element.rigid:
                return found
            if len(texts) > SHORT:
                return guarded(element.term(env), value, found, BOOL, symbols)
        items = listing.items(env)
        if items is None:
            return symbols.unknown(BOOL)
        name = element.term(env)
        return disjunction([Term("=", (name, item.term)) for item in items])

    return term
