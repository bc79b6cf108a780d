"""The smt interpretation of operators, positions in row-major order: an index below a shape as one below another.

A position below a product of sizes has digits, one for each size. Where the products of the last sizes of two shapes
agree, so do the positions below them and those above, so that each group of sizes is converted for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import cast

from ...formulas.terms import Term
from .numbers import Int, add, floor_div, floor_mod, multiply, polynomial

Same = Callable[[Int, Int], bool]
"""Whether two numbers are known to be equal."""


def product(sizes: Sequence[Int]) -> Int:
    """The number of indices below a shape."""
    return reduce(multiply, sizes, cast("Int", 1))


def converted(index: Sequence[Int], source: Sequence[Int], target: Sequence[Int], same: Same) -> tuple[Int, ...]:
    """The index below `target` at the position of an index below `source`, shapes with equally many indices, of which
    none is empty.
    """
    result: list[Int] = []
    i, j = len(source), len(target)
    while i or j:
        sections = _sections(i, j)
        few = [(a, b) for a, b in sections if i - a == 1 or j - b == 1]  # of the others nobody is asked
        evident = (pair for pair in sections if product(source[pair[0] : i]) == product(target[pair[1] : j]))
        known = (
            pair for pair in few if pair != (0, 0) and same(product(source[pair[0] : i]), product(target[pair[1] : j]))
        )
        first, second = next(evident, None) or next(known, (0, 0))
        result = [*_digits(index[first:i], source[first:i], target[second:j]), *result]
        i, j = first, second
    return tuple(result)


def _sections(i: int, j: int) -> list[tuple[int, int]]:
    """Where a group that ends at i and at j may begin, the shortest groups first."""
    pairs = [(a, b) for a in range(i + 1) for b in range(j + 1) if (a, b) != (i, j)]
    return sorted(pairs, key=lambda pair: (i - pair[0] + j - pair[1], -pair[0]))


def _digits(index: Sequence[Int], source: Sequence[Int], target: Sequence[Int]) -> list[Int]:
    """The digits of a group."""
    if not target:
        return []
    if len(target) == len(source) == 1:
        return list(index)
    position: Int = 0
    for digit, size in zip(index, source, strict=True):
        position = joined(add(multiply(position, size), digit))
    digits: list[Int] = []
    for size in reversed(target[1:]):
        digits.insert(0, floor_mod(position, size))
        position = floor_div(position, size)
    return [position, *digits]


def joined(number: Int) -> Int:
    """The number with x where it has x mod n plus n times x div n."""
    parts = polynomial(number)
    for monomial, factor in parts.items():
        match monomial:
            case (Term("mod", (x, n)),) if not isinstance(x, str) and not isinstance(n, str):
                quotient = polynomial(multiply(factor, multiply(Term("div", (x, n)), n)))
                if all(parts.get(key) == by for key, by in quotient.items()):
                    rest = add(number, multiply(-factor, add(Term("mod", (x, n)), multiply(Term("div", (x, n)), n))))
                    return joined(add(rest, multiply(factor, x)))
            case _:
                pass
    return number


def flattened(index: Sequence[Int], shape: Sequence[Int]) -> Int | None:
    """The position of which an index is made of, component by component; None where it is not."""
    match index[0] if index else None:
        case Term("unflat", (0, position, *sizes)) if not isinstance(position, str) and tuple(sizes) == tuple(shape):
            parts = tuple(Term("unflat", (k, position, *sizes)) for k in range(len(shape)))
            return position if tuple(index) == parts else None
        case _:
            return None
