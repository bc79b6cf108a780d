"""Integers over sizes: Python's numbers, and polynomials over symbols with integer coefficients.

A symbol stands for a size that the model leaves open, for a number that data decide, or for a term that is no
polynomial (a quotient rounded down, the greater of two numbers, a choice), which it then names by its parts. Two terms
with the same normal form are the same number; nothing follows from two normal forms being different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .formulas import Formula


@dataclass(frozen=True, slots=True)
class Symbol:
    """key: its one spelling. kind: size, data, index (of a range), or div, max, if: a term made of `parts`.

    least, most: bounds that it always keeps.
    """

    key: str
    kind: str = field(compare=False)
    parts: tuple[Int, ...] = field(default=(), compare=False)
    least: int | None = field(default=None, compare=False)
    most: int | None = field(default=None, compare=False)
    condition: Formula | None = field(default=None, compare=False)


Product = tuple[Symbol, ...]
"""The symbols of a monomial, sorted by key."""


@dataclass(frozen=True, slots=True)
class Poly:
    """A sum of monomials with their coefficients, none of them 0, sorted; never a plain number."""

    terms: tuple[tuple[Product, int], ...]

    @property
    def key(self) -> str:
        """Its one spelling."""
        return "+".join(f"{c}*{'*'.join(s.key for s in product)}" if product else str(c) for product, c in self.terms)


Int = int | Poly


def poly(symbol: Symbol) -> Poly:
    """The symbol as a number."""
    return Poly((((symbol,), 1),))


def key_of(number: Int) -> str:
    """The one spelling of a number."""
    return number.key if isinstance(number, Poly) else str(number)


def terms(number: Int) -> tuple[tuple[Product, int], ...]:
    """The monomials of a number."""
    if isinstance(number, Poly):
        return number.terms
    return (((), number),) if number else ()


def _made(found: Mapping[Product, int]) -> Int:
    kept = {product: c for product, c in found.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Poly(tuple(sorted(kept.items(), key=lambda item: [s.key for s in item[0]])))


def add(left: Int, right: Int) -> Int:
    """The sum."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    found = dict(terms(left))
    for product, c in terms(right):
        found[product] = found.get(product, 0) + c
    return _made(found)


def multiply(left: Int, right: Int) -> Int:
    """The product."""
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    found: dict[Product, int] = {}
    for one, c in terms(left):
        for other, e in terms(right):
            product = tuple(sorted((*one, *other), key=lambda s: s.key))
            found[product] = found.get(product, 0) + c * e
    return _made(found)


def negate(number: Int) -> Int:
    """The number with the other sign."""
    return multiply(-1, number)


def subtract(left: Int, right: Int) -> Int:
    """The difference."""
    return add(left, negate(right))


def divided(number: Int, by: Int) -> Int | None:
    """The quotient where the division leaves nothing, whatever the symbols stand for (by is not 0); else None."""
    if isinstance(by, int):
        if any(c % by for _, c in terms(number)):
            return None
        return _made({product: c // by for product, c in terms(number)})
    if len(by.terms) != 1:
        return 1 if number == by else None
    ((divisor, factor),) = by.terms
    found: dict[Product, int] = {}
    for product, c in terms(number):
        rest = list(product)
        for symbol in divisor:
            if symbol not in rest:
                return None
            rest.remove(symbol)
        if c % factor:
            return None
        found[tuple(rest)] = c // factor
    return _made(found)


def floor_div(number: Int, by: Int) -> Int:
    """The quotient rounded down; `by` is known to be positive where it is no number."""
    if isinstance(by, int):
        if isinstance(number, int):
            return number // by
        if by < 0:
            return floor_div(negate(number), -by)
        # (b * q + r) div b = q + r div b
        whole = _made({product: c // by for product, c in number.terms})
        rest = _made({product: c % by for product, c in number.terms})
        if isinstance(rest, int):
            return add(whole, rest // by)
        common = gcd(by, *(c for product, c in rest.terms))
        if common > 1:
            return add(whole, floor_div(_made({p: c // common for p, c in rest.terms}), by // common))
        return add(whole, _quotient(rest, by))
    exact = divided(number, by)
    return exact if exact is not None else _quotient(number, by)


def _quotient(number: Int, by: Int) -> Int:
    if isinstance(by, int) and isinstance(number, Poly) and len(number.terms) == 1:  # (n div a) div b = n div (a b)
        ((product, factor),) = number.terms
        if factor == 1 and len(product) == 1 and product[0].kind == "div" and isinstance(product[0].parts[1], int):
            return floor_div(product[0].parts[0], product[0].parts[1] * by)
    return poly(Symbol(f"({key_of(number)} div {key_of(by)})", "div", (number, by)))


def floor_mod(number: Int, by: Int) -> Int:
    """What the division rounded down leaves."""
    return subtract(number, multiply(by, floor_div(number, by)))


def greater(left: Int, right: Int) -> Int:
    """The greater of two numbers of which that is not known."""
    a, b = sorted((left, right), key=key_of)
    return poly(Symbol(f"max({key_of(a)},{key_of(b)})", "max", (a, b)))


def chosen(condition: Formula, left: Int, right: Int) -> Int:
    """left where the condition holds, else right."""
    from .formulas import spelled

    name = f"if({spelled(condition)},{key_of(left)},{key_of(right)})"
    return poly(Symbol(name, "if", (left, right), condition=condition))


def symbols(number: Int) -> Iterator[Symbol]:
    """The symbols of a number, those inside terms left out."""
    for product, _ in terms(number):
        yield from product


def base_symbols(number: Int) -> set[Symbol]:
    """The symbols of a number that are no terms, those inside terms included."""
    from .formulas import formula_symbols

    found: set[Symbol] = set()
    for symbol in symbols(number):
        if symbol.kind in ("size", "data", "index"):
            found.add(symbol)
        for part in symbol.parts:
            found |= base_symbols(part)
        if symbol.condition is not None:
            found |= formula_symbols(symbol.condition)
    return found


def value_at(number: Int, at: Mapping[str, int]) -> int:
    """The number for values of the symbols by key. Raises KeyError where one is missing."""
    if isinstance(number, int):
        return number
    total = 0
    for product, c in number.terms:
        for symbol in product:
            c *= _symbol_at(symbol, at)
        total += c
    return total


def _symbol_at(symbol: Symbol, at: Mapping[str, int]) -> int:
    from .formulas import truth_at

    match symbol.kind:
        case "div":
            return value_at(symbol.parts[0], at) // value_at(symbol.parts[1], at)
        case "max":
            return max(value_at(part, at) for part in symbol.parts)
        case "if" if symbol.condition is not None:
            return value_at(symbol.parts[0 if truth_at(symbol.condition, at) else 1], at)
        case _:
            return at[symbol.key]
