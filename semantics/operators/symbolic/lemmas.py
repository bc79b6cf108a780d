"""What is known of lists of any length beside what stands at a position: lemmas, proved by induction on the length.

`product(c, s, t)` is the product of the entries of the list with the code c at the positions from s on and before t.
`checker/definedness/induction` puts base and step of each to the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...formulas.terms import Term
from .numbers import Int, add, at_most, both, either, equal, less, multiply, opposite, within

POSITION = "k"


def at(code: Term, position: Int) -> Term:
    """The entry of a list at a position."""
    return Term("at", (code, position))


def product(code: Term, start: Int, stop: Int) -> Term:
    """The product of a stretch of a list."""
    return Term("product", (code, start, stop))


def somewhere(start: Int, stop: Int, holds: Callable[[Term], Term]) -> Term:
    """Something holds at a position of a stretch."""
    k = Term(POSITION)
    return Term("exists", (POSITION, both(at_most(start, k), less(k, stop), holds(k))))


def named(name: str, code: Term, start: Int, stop: Int, holds: Callable[[Term], Term]) -> Term:
    """Something holds of the entry of a stretch at the position that the name stands for, which is one in it."""
    k = Term(name, (code, start, stop))
    return both(at_most(start, k), less(k, stop), holds(at(code, k)))


Statement = Callable[[Term, Int, Int], Term]

PRODUCTS: Mapping[str, Statement] = {
    "the product of no entries is 1": lambda c, s, t: either(less(s, t), equal(product(c, s, t), 1)),
    "the product of one entry is the entry": lambda c, s, t: either(
        opposite(equal(t, add(s, 1))), equal(product(c, s, t), at(c, s))
    ),
    "the product of two entries is that of the one and the other": lambda c, s, t: either(
        opposite(equal(t, add(s, 2))), equal(product(c, s, t), multiply(at(c, s), at(c, add(s, 1))))
    ),
    "a product of entries none of which is negative is not negative": lambda c, s, t: either(
        named("negative", c, s, t, lambda it: less(it, 0)), at_most(0, product(c, s, t))
    ),
    "a product of positive entries is positive": lambda c, s, t: either(
        named("none", c, s, t, lambda it: at_most(it, 0)), less(0, product(c, s, t))
    ),
    "a product with an entry 0 is 0": lambda c, s, t: Term(
        "forall",
        (
            POSITION,
            either(
                less(Term(POSITION), s),
                at_most(t, Term(POSITION)),
                opposite(equal(at(c, Term(POSITION)), 0)),
                equal(product(c, s, t), 0),
            ),
        ),
    ),
    "a product is that of its front and that of its back": lambda c, s, t: either(
        less(s, 0), less(t, s), equal(product(c, 0, t), multiply(product(c, 0, s), product(c, s, t)))
    ),
}
"""What holds of every list c and all positions s and t, by the sentence that says it. negative, none: the position of
an exception, of an entry that is negative or not positive, wherever there is one.
"""
EXCEPTIONS: Mapping[str, Callable[[Term], Term]] = {
    "negative": lambda it: less(it, 0),
    "none": lambda it: at_most(it, 0),
}
"""The names of exceptions, and what holds of the entry there."""


def of_product(code: Term, start: Int, stop: Int) -> list[Term]:
    """What is known of a stretch of a list, of its front and of both together."""
    known = [statement(code, start, stop) for statement in PRODUCTS.values()]
    if start != 0:
        known += [statement(code, 0, end) for statement in PRODUCTS.values() for end in (start, stop)]
    return known


# ---- Sums ---------------------------------------------------------------------------------------


def of_sum(
    total: Callable[[Int], Term], term: Callable[[Int], Int], length: Int, loss: Callable[[Int], Term], step: Term
) -> list[Term]:
    """The sums of the first terms, of none, one, two and so on; of none where the number of terms is negative.

    loss: a position below a number at which the term is negative, if there is one. step: of a number x below the sum of
    `length` terms, the position of the term with which the sum gets beyond x.
    """
    k, q, x = Term("position!k"), Term("position!q"), Term("position!x")
    return [
        forall((k.op,), either(less(0, k), equal(total(k), 0))),
        forall((k.op,), either(less(k, 0), equal(total(add(k, 1)), add(total(k), term(k))))),
        forall(
            (q.op, k.op),
            either(
                both(within(loss(k), k), less(term(loss(k)), 0)), less(q, 0), less(k, q), at_most(total(q), total(k))
            ),
        ),
        either(both(within(loss(length), length), less(term(loss(length)), 0)), at_most(0, total(length))),
        forall(
            (k.op,),
            either(
                both(within(loss(length), length), less(term(loss(length)), 0)),
                opposite(within(k, length)),
                both(at_most(0, total(k)), at_most(add(total(k), term(k)), total(length))),
            ),
        ),
        forall(
            (x.op,),
            either(
                opposite(within(x, total(length))),
                both(within(step, length), at_most(total(step), x), less(x, add(total(step), term(step)))),
            ),
        ),
    ]


# ---- Positions that are chosen ------------------------------------------------------------------


def forall(names: tuple[str, ...], body: Term) -> Term:
    """It holds of all numbers."""
    return Term("forall", (*names, body))


def of_selection(
    code: Term, length: Int, rank: Callable[[Int], Int], holds: Callable[[Int], Term]
) -> list[Term]:
    """The positions at which something holds, in ascending order, as far as they are below a length. rank: before how
    many positions it holds, so that `rank(length)` is their number.
    """
    q, r, p = Term("position!q"), Term("position!r"), Term("position!p")
    found, count = at(code, q), rank(length)
    return [
        both(at_most(0, count), at_most(count, length)),
        forall(
            (q.op,),
            either(opposite(within(q, count)), both(within(found, length), holds(found), equal(rank(found), q))),
        ),
        forall((q.op, r.op), either(less(q, 0), at_most(r, q), at_most(count, r), less(found, at(code, r)))),
        forall(
            (p.op,),
            either(
                opposite(within(p, length)),
                opposite(holds(p)),
                both(within(rank(p), count), equal(at(code, rank(p)), p)),
            ),
        ),
    ]


def of_members(code: Term, length: Int) -> list[Term]:
    """A list has what stands at one of its positions."""
    q, x = Term("position!q"), Term("position!x")
    where = Term("where", (x, code))
    return [
        forall((q.op,), either(opposite(within(q, length)), Term("member", (at(code, q), code)))),
        forall(
            (x.op,),
            either(opposite(Term("member", (x, code))), both(within(where, length), equal(at(code, where), x))),
        ),
    ]


def of_sorted(code: Term, length: Int) -> list[Term]:
    """What the contract of `sorted` says of a list: the entries are in ascending order, and each one stands in the one
    list where in the other; `unsorted` and `placed` lead from the positions to each other.
    """
    q, r = Term("position!q"), Term("position!r")
    ascending = Term("sorted", (code,))
    before, behind = Term("unsorted", (code, q)), Term("placed", (code, q))
    beyond, in_order = opposite(within(q, length)), at_most(at(ascending, q), at(ascending, r))
    return [
        forall((q.op, r.op), either(less(q, 0), less(r, q), at_most(length, r), in_order)),
        forall((q.op,), either(beyond, both(within(before, length), equal(at(ascending, q), at(code, before))))),
        forall((q.op,), either(beyond, both(within(behind, length), equal(at(code, q), at(ascending, behind))))),
    ]


def of_distinct(code: Term, length: Int, many: Int, below: Int) -> Term:
    """A list of positions has as many entries as it lists positions, unless two are the same or one is none.

    many: of the positions below `below`, how many the list has. The exceptions are named: where the first and the
    second of two stand, and where one that is no position does.
    """
    first, second, astray = (Term(name, (code, below)) for name in ("first", "second", "astray"))
    twice = both(at_most(0, first), less(first, second), less(second, length), equal(at(code, first), at(code, second)))
    beyond = both(within(astray, length), opposite(within(at(code, astray), below)))
    return either(equal(many, length), twice, beyond)
