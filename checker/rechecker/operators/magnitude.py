"""How large a number over sizes can be: whether an integer type has it, or it is wrapped around.

No tensor has `MOST` elements, and the sizes that a model leaves open do not have a product of so much either. So a
product of different sizes is below that, while a power of a size or a size beside a large constant need not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from .formulas import Int, Symbol, terms

MOST = 1 << 48
"""Above every size, and every product of different sizes. No machine has a memory of so many bytes."""
MONOMIALS = 64
"""A bound with more summands than this is none."""

Bound = dict[tuple[tuple[str, bool], ...], Fraction]
"""What an absolute value is at most: products of sizes, by key and whether it is an index, with their factors."""


def fits(number: Int, low: int, high: int) -> bool:
    """Whether a number over sizes is from low to high whatever they are."""
    bound = _bound(number)
    if bound is None:
        return False
    most = sum((factor * _largest(names) for names, factor in bound.items()), Fraction(0))
    return most <= high and (-most >= low or _no_negative(number))


def _largest(names: tuple[tuple[str, bool], ...]) -> int:
    """Above a product of sizes, of which each is counted once, and of indices, each as large as a size may be."""
    powers = Counter(name for name, is_index in names if not is_index)
    return int(MOST ** (max(powers.values(), default=0) + sum(is_index for _, is_index in names)))


def _bound(number: Int) -> Bound | None:
    found: Bound = {}
    for product, factor in terms(number):
        made: Bound | None = {(): Fraction(abs(factor))}
        for symbol in product:
            made = _times(made, _symbol(symbol))
        if made is None:
            return None
        for names, by in made.items():
            found[names] = found.get(names, Fraction(0)) + by
    return found if len(found) <= MONOMIALS else None


def _times(left: Bound | None, right: Bound | None) -> Bound | None:
    if left is None or right is None or len(left) * len(right) > MONOMIALS:
        return None
    found: Bound = {}
    for one, a in left.items():
        for other, b in right.items():
            names = tuple(sorted((*one, *other)))
            found[names] = found.get(names, Fraction(0)) + a * b
    return found


def _either(bounds: Iterable[Bound | None]) -> Bound | None:
    """Above each of the numbers."""
    found: Bound = {}
    for bound in bounds:
        if bound is None:
            return None
        for names, factor in bound.items():
            found[names] = max(found.get(names, Fraction(0)), factor)
    return found


def _symbol(symbol: Symbol) -> Bound | None:
    match symbol.kind:
        case "div":
            number, by = symbol.parts
            found = _bound(number)
            if found is None:
                return None
            found = {names: factor / abs(by if isinstance(by, int) else 1) for names, factor in found.items()}
            return {**found, (): Fraction(ceil(found.get((), Fraction(0))) + 1)}  # rounded down
        case "max" | "if":
            return _either(map(_bound, symbol.parts))
        case _ if symbol.least is None:
            return None
        case _ if symbol.most is not None:
            return {(): Fraction(max(abs(symbol.least), abs(symbol.most)))}
        case _:
            is_size = symbol.kind == "size" or any(word in symbol.key for word in ("size", "count", "length"))
            return {((symbol.key, not is_size),): Fraction(1)}


def _no_negative(number: Int) -> bool:
    """Whether it is evident that a number is not below 0: a sum of products of sizes."""
    return all(factor >= 0 and all(map(_not_below, product)) for product, factor in terms(number))


def _not_below(symbol: Symbol) -> bool:
    match symbol.kind:
        case "max":
            return any(map(_no_negative, symbol.parts))
        case "div" | "if":
            return all(map(_no_negative, symbol.parts))
        case _:
            return symbol.least is not None and symbol.least >= 0
