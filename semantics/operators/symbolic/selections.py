"""The smt interpretation of operators, entries of lists of any length that are chosen by what holds of them.

The positions below a length at which something holds, in ascending order, have a code; so do the others, of which there
are as many as the length leaves. What is known of them is a matter of `lemmas`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sonnx.spec.language.syntax import Span

from ...formulas.terms import FALSE, TRUE, Term
from . import lemmas, rows, values
from .numbers import Int, add, either, equal, opposite, subtract, within
from .values import ENTERED, Dead, OfRows, Part, Row, Scope, Value, axiom, branch, decide, demand, steady, whole


@dataclass(frozen=True, slots=True)
class Selection:
    """The positions at which something holds. rank: how many of them are before one of them."""

    positions: Row
    rank: Callable[[Int], Int]


def selection(length: Int, holds: Callable[[Int, Scope], Term], scope: Scope) -> Selection:
    """The positions below a length, which is not negative, at which something holds."""
    probe, probing = rows.probing(scope)
    try:
        told = holds(probe, probing.under(within(probe, length)))
    except Dead:
        told = FALSE
    if told == TRUE:
        return Selection(Row((rows.block(length, lambda k, _scope: k, scope),)), lambda k: k)
    if told == FALSE:
        return Selection(Row(()), lambda _k: 0)
    sides = sorted((rows.named(side, probe, scope), side) for side in (told, opposite(told)))
    (first, leaves), counted = sides[0]
    (name, _), _ = sides[0 if counted == told else 1]
    before: Callable[[Int], Int] = lambda k: Term(f"rank.{first}", (*leaves, k))  # noqa: E731
    rank = before if counted == told else lambda k: subtract(k, before(k))
    code, size = Term(f"chosen.{name}", leaves), rank(length)
    scope.run.symbols |= {code.op: (len(leaves), "Int"), f"rank.{first}": (len(leaves) + 1, "Int"), "at": (2, "Int")}
    if Term("chosen", (code, length)) not in scope.run.told:
        scope.run.told.add(Term("chosen", (code, length)))
        inner = replace(scope, facts=())
        for fact in lemmas.of_selection(code, length, rank, lambda k: values.substituted(told, probe, k)):
            axiom(inner, fact)
        for side, many in ((counted, before(length)), (opposite(counted), subtract(length, before(length)))):
            match side:
                case Term("member", (at, Term() as listed)) if at == probe and not values.mentions(listed, (at.op,)):
                    scope.run.symbols |= dict.fromkeys(("first", "second", "astray"), (2, "Int"))
                    axiom(inner, lemmas.of_distinct(listed, scope.run.lengths[listed], many, length))
                case _:
                    pass
    every = rows.coded(code, size).parts[0]
    return Selection(Row((replace(every, whole=False),)), rank)  # the code is that of the positions below any length


def chosen(length: Int, holds: Callable[[Int, Scope], Term], entry: rows.Entry, scope: Scope) -> Row:
    """The entries at the positions at which something holds."""
    if (spared := _spared(length, holds, scope)) is not None:
        behind = rows.generic(
            subtract(length, add(spared, 1)), lambda k, here: entry(add(k, add(spared, 1)), here), scope
        )
        return rows.joined(rows.generic(spared, entry, scope), behind)
    (part,) = selection(length, holds, scope).positions.parts or (rows.unit(0),)
    if part.value is not None:
        return Row(())
    return rows.generic(part.length, lambda k, here: _entry(whole(part.entry(k, here)), holds, entry, here), scope)


def _spared(length: Int, holds: Callable[[Int, Scope], Term], scope: Scope) -> Int | None:
    """The only position below a length at which something does not hold, where it is told to be one, or can be."""
    probe, probing = rows.probing(scope)
    try:
        told = holds(probe, probing.under(within(probe, length)))
    except Dead:
        return None
    match told:
        case Term("not", (Term("=", (left, right)),)) if probe in (left, right) and left != right:
            spared = right if left == probe else left
        case _:
            return None
    if not isinstance(spared, int | Term) or (isinstance(spared, Term) and values.mentions(spared, (probe.op,))):
        return None
    there = within(spared, length)
    if rows.known(scope, there):
        return spared
    if steady(scope, spared) and not values.mentions(there, scope.bound) and decide(scope, there):
        return spared
    return None


def _entry(position: Int, holds: Callable[[Int, Scope], Term], entry: rows.Entry, here: Scope) -> Value:
    return entry(position, here.under(holds(position, here)))


def member(left: Value, right: Value, scope: Scope) -> Term:
    """`in`: an index vector in a shape, a value in a list."""
    if not values.compound(left, left):
        return either(*(among(left, part, scope) for part in rows.row_of(right, scope).parts))

    def below(a: rows.Entry, b: rows.Entry) -> Callable[[Int, Scope], Term]:
        return lambda k, here: within(whole(a(k, here)), whole(b(k, here)))

    return rows.compared(below, left, right, scope)


def among(item: Value, part: Part, scope: Scope) -> Term:
    """A part of a list has an entry."""
    if part.value is not None:
        return values.relate("=", item, part.value, scope)
    if part.ordered is not None:
        return values.member(item, part.ordered, scope)
    probe, probing = rows.probing(scope)
    read = part.entry(probe, probing)
    if read == probe and isinstance(item, int | Term):
        return within(item, part.length)
    if not (isinstance(item, int | Term) and isinstance(read, int | Term)):
        return rows.somewhere(
            part.length, lambda k, here: values.relate("=", item, part.entry(k, here), here), scope
        )
    return listed_in(item, Row((part,)), scope)[0]


def listed_in(item: Int, row: Row, scope: Scope) -> tuple[Term, Term]:
    """That a list has an entry, and a position at which it has it then."""
    code = rows.linked(row, scope)
    scope.run.symbols |= {"member": (2, "Bool"), "where": (2, "Int"), "at": (2, "Int")}
    if Term("member", (code,)) not in scope.run.told:
        scope.run.told.add(Term("member", (code,)))
        scope.run.lengths[code] = rows.length_of(row)
        for fact in lemmas.of_members(code, rows.length_of(row)):
            axiom(replace(scope, facts=()), fact)
    return Term("member", (item, code)), Term("where", (item, code))


def ordered(row: Row, scope: Scope) -> Row:
    """The entries in ascending order."""
    listed = rows.linked(row, scope)
    code = Term("sorted", (listed,))
    scope.run.symbols |= {"sorted": (1, "Int"), "unsorted": (2, "Int"), "placed": (2, "Int"), "at": (2, "Int")}
    length = rows.length_of(row)
    if code not in scope.run.told:
        scope.run.told.add(code)
        for fact in lemmas.of_sorted(listed, length):
            axiom(replace(scope, facts=()), fact)
    read = lambda k, _scope: Term("at", (code, k))  # noqa: E731
    return Row((Part(length, read, None, code, 0, True, ordered=row),))


def _single(row: Row) -> Value | None:
    """The entry of a list that has one alone."""
    return row.parts[0].value if len(row.parts) == 1 else None


def merge(places: Row, inner: Row, outer: Row, span: Span, scope: Scope) -> Row:
    """The entries of one list at some positions, those of another, in their order, at the other positions."""
    length = add(rows.length_of(inner), rows.length_of(outer))
    place = _single(places)
    if place is not None and _single(inner) is not None:
        there, size = within(whole(place), length), rows.length_of(outer)
        demand(scope, "contract", span, there, "merge")
        here = scope.under(there)
        return rows.joined(rows.cut(outer, 0, whole(place), here), inner, rows.cut(outer, whole(place), size, here))
    in_order = len(places.parts) == 1 and places.parts[0].ordered is not None
    listed = places.parts[0].ordered or places if in_order else places
    count = rows.length_of(listed)
    at: Callable[[Int, Scope], Int] = lambda k, here: whole(rows.entry(listed, k, here))  # noqa: E731
    apart = rows.everywhere(
        count, lambda k, here: rows.everywhere(k, lambda j, h: opposite(equal(at(j, h), at(k, h))), here), scope
    )
    demand(scope, "contract", span, apart, "merge")
    demand(scope, "contract", span, rows.everywhere(count, lambda k, h: within(at(k, h), length), scope), "merge")
    holds: Callable[[Int, Scope], Term] = lambda k, here: values.member(k, listed, here)  # noqa: E731
    named = selection(length, holds, scope)
    others = selection(length, lambda k, here: opposite(holds(k, here)), scope)
    demand(scope, "contract", span, equal(count, rows.length_of(inner)), "merge")
    demand(scope, "contract", span, equal(rows.length_of(others.positions), rows.length_of(outer)), "merge")

    def entry(k: Int, here: Scope) -> Value:
        return branch(
            holds(k, here),
            lambda s: rows.entry(inner, named.rank(k) if in_order else listed_in(k, listed, s)[1], s),
            lambda s: rows.entry(outer, others.rank(k), s),
            here,
        )

    return Row((rows.block(length, entry, scope),))


ENTERED.append(OfRows(rows.relate, member, rows.merge, rows.componentwise, rows.each))
