"""What is known of lists of any length beside what stands at a position: lemmas, each proved by induction on the length.

`product(c, s, t)` is the product of the entries of the list with the code c at the positions from s on and before t.
`checker/definedness/induction` puts base and step of each to the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...formulas.terms import Term
from .numbers import Int, add, at_most, both, either, equal, less, multiply, opposite

POSITION = "k"


def at(code: Term, position: Int) -> Term:
    """The entry of a list at a position."""
    return Term("at", (code, position))


def product(code: Term, start: Int, stop: Int) -> Term:
    """The product of a stretch of a list."""
    return Term("product", (code, start, stop))


def some(code: Term, start: Int, stop: Int, holds: Callable[[Term], Term]) -> Term:
    """Something holds of an entry of the stretch."""
    k = Term(POSITION)
    return Term("exists", (POSITION, both(at_most(start, k), less(k, stop), holds(at(code, k)))))


Statement = Callable[[Term, Int, Int], Term]

PRODUCTS: Mapping[str, Statement] = {
    "the product of no entries is 1": lambda c, s, t: either(less(s, t), equal(product(c, s, t), 1)),
    "the product of one entry is the entry": lambda c, s, t: either(
        opposite(equal(t, add(s, 1))), equal(product(c, s, t), at(c, s))
    ),
    "a product of entries none of which is negative is not negative": lambda c, s, t: either(
        some(c, s, t, lambda it: less(it, 0)), at_most(0, product(c, s, t))
    ),
    "a product of positive entries is positive": lambda c, s, t: either(
        some(c, s, t, lambda it: at_most(it, 0)), less(0, product(c, s, t))
    ),
    "a product is that of its front and that of its back": lambda c, s, t: either(
        less(s, 0), less(t, s), equal(product(c, 0, t), multiply(product(c, 0, s), product(c, s, t)))
    ),
}
"""What holds of every list c and all positions s and t, by the sentence that says it."""


def of_product(code: Term, start: Int, stop: Int) -> list[Term]:
    """What is known of a stretch of a list, of its front and of both together."""
    known = [statement(code, start, stop) for statement in PRODUCTS.values()]
    if start != 0:
        known += [statement(code, 0, end) for statement in PRODUCTS.values() for end in (start, stop)]
    return known
