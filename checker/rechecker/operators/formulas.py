"""Integers over sizes, and formulas over them: what a requirement comes to where sizes or data decide it.

An integer is one of Python's, or a polynomial over symbols with integer coefficients. A symbol stands for a size that
the model leaves open, for a number that data decide, or for a term that is no polynomial (a quotient rounded down, the
greater of two numbers, a choice by a formula), which it then names by its parts. Two terms with the same normal form
are the same number; nothing follows from two normal forms being different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product as all_of
from math import gcd

LARGEST = 20_000
"""A range of more indices is not gone through when sizes are tried."""

# ---- Integers -----------------------------------------------------------------------------------


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


def _made(coefficients: Mapping[Product, int]) -> Int:
    kept = {product: c for product, c in coefficients.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Poly(tuple(sorted(kept.items(), key=lambda item: [s.key for s in item[0]])))


def add(left: Int, right: Int) -> Int:
    """The sum."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    coefficients = dict(terms(left))
    for product, c in terms(right):
        coefficients[product] = coefficients.get(product, 0) + c
    return _made(coefficients)


def multiply(left: Int, right: Int) -> Int:
    """The product."""
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    coefficients: dict[Product, int] = {}
    for one, c in terms(left):
        for other, e in terms(right):
            product = tuple(sorted((*one, *other), key=lambda s: s.key))
            coefficients[product] = coefficients.get(product, 0) + c * e
    return _made(coefficients)


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
    coefficients: dict[Product, int] = {}
    for product, c in terms(number):
        rest = list(product)
        for symbol in divisor:
            if symbol not in rest:
                return None
            rest.remove(symbol)
        if c % factor:
            return None
        coefficients[tuple(rest)] = c // factor
    return _made(coefficients)


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
    """The remainder of the division rounded down."""
    return subtract(number, multiply(by, floor_div(number, by)))


def greater(left: Int, right: Int) -> Int:
    """The greater of two numbers of which that is not known."""
    a, b = sorted((left, right), key=key_of)
    return poly(Symbol(f"max({key_of(a)},{key_of(b)})", "max", (a, b)))


def chosen(condition: Formula, left: Int, right: Int) -> Int:
    """left where the condition holds, else right."""
    name = f"if({spelled(condition)},{key_of(left)},{key_of(right)})"
    return poly(Symbol(name, "if", (left, right), condition=condition))


def symbols(number: Int) -> Iterator[Symbol]:
    """The symbols of a number, those inside terms left out."""
    for product, _ in terms(number):
        yield from product


def base_symbols(number: Int) -> set[Symbol]:
    """The symbols of a number that are no terms, those inside terms included."""
    bases: set[Symbol] = set()
    for symbol in symbols(number):
        if symbol.kind in ("size", "data", "index"):
            bases.add(symbol)
        for part in symbol.parts:
            bases |= base_symbols(part)
        if symbol.condition is not None:
            bases |= formula_symbols(symbol.condition)
    return bases


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
    match symbol.kind:
        case "div":
            return value_at(symbol.parts[0], at) // value_at(symbol.parts[1], at)
        case "max":
            return max(value_at(part, at) for part in symbol.parts)
        case "if" if symbol.condition is not None:
            return value_at(symbol.parts[0 if truth_at(symbol.condition, at) else 1], at)
        case _:
            return at[symbol.key]


# ---- Formulas -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Test:
    """number >= 0, or number = 0."""

    number: Poly
    equal: bool = False


@dataclass(frozen=True, slots=True)
class Both:
    """All of the parts hold."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of the parts holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A formula that data decide, and no number says how. positive: or its opposite."""

    name: str
    positive: bool = True


@dataclass(frozen=True, slots=True)
class Every:
    """The body holds for every value of the indices, each below its bound; or, `some`, for one of them."""

    indices: tuple[Symbol, ...]
    bounds: tuple[Int, ...]
    body: Formula
    some: bool = False
    facts: tuple[Formula, ...] = field(default=(), compare=False)


Formula = bool | Test | Both | Either | Unknown | Every


def at_least(left: Int, right: Int) -> Formula:
    """left >= right."""
    number = subtract(left, right)
    return number >= 0 if isinstance(number, int) else Test(_tight(number))


def _tight(number: Poly) -> Poly:
    """The same inequality between integers, its coefficients without a common factor."""
    common = gcd(*(c for product, c in number.terms if product))
    if common <= 1:
        return number
    coefficients = {product: c // common for product, c in number.terms}  # the constant rounded down
    return Poly(tuple((product, c) for product, c in coefficients.items() if c))


def equal(left: Int, right: Int) -> Formula:
    """left = right."""
    number = subtract(left, right)
    if isinstance(number, int):
        return number == 0
    first = next(c for product, c in number.terms if product)
    return Test(number if first > 0 else _poly(negate(number)), True)


def _poly(number: Int) -> Poly:
    if isinstance(number, Poly):
        return number
    raise TypeError(number)


def both(*parts: Formula) -> Formula:
    """The conjunction."""
    kept: list[Formula] = []
    for part in parts:
        if part is False:
            return False
        if isinstance(part, Both):
            kept += part.parts
        elif part is not True:
            kept.append(part)
    kept = list(dict.fromkeys(kept))
    return True if not kept else kept[0] if len(kept) == 1 else Both(tuple(kept))


def either(*parts: Formula) -> Formula:
    """The disjunction."""
    kept: list[Formula] = []
    for part in parts:
        if part is True:
            return True
        if isinstance(part, Either):
            kept += part.parts
        elif part is not False:
            kept.append(part)
    kept = list(dict.fromkeys(kept))
    if any(opposite(part) in kept for part in kept if isinstance(part, Unknown)):
        return True
    kept.sort(key=spelled)
    return False if not kept else kept[0] if len(kept) == 1 else Either(tuple(kept))


def opposite(formula: Formula) -> Formula:
    """The negation."""
    match formula:
        case bool():
            return not formula
        case Test(number, same):
            less = at_least(negate(number), 1)
            return either(at_least(number, 1), less) if same else less
        case Both(parts):
            return either(*map(opposite, parts))
        case Either(parts):
            return both(*map(opposite, parts))
        case Unknown(name, positive):
            return Unknown(name, not positive)
        case Every(indices, bounds, body, some, facts):
            return Every(indices, bounds, opposite(body), not some, facts)


def conjuncts(formula: Formula) -> tuple[Formula, ...]:
    """The parts that all hold."""
    return formula.parts if isinstance(formula, Both) else (formula,)


def spelled(formula: Formula) -> str:
    """The one spelling of a formula."""
    match formula:
        case bool():
            return str(formula)
        case Test(number, same):
            return f"{key_of(number)}{'=' if same else '>='}0"
        case Both(parts):
            return f"({' and '.join(map(spelled, parts))})"
        case Either(parts):
            return f"({' or '.join(map(spelled, parts))})"
        case Unknown(name, positive):
            return name if positive else f"not {name}"
        case Every(indices, bounds, body, some):
            ranges = ",".join(f"{i.key}<{key_of(n)}" for i, n in zip(indices, bounds, strict=True))
            return f"{'some' if some else 'every'} {ranges}: {spelled(body)}"


def numbers(formula: Formula) -> Iterator[Int]:
    """The numbers that a formula compares."""
    match formula:
        case Test(number):
            yield number
        case Both(parts) | Either(parts):
            for part in parts:
                yield from numbers(part)
        case Every(_, bounds, body):
            yield from bounds
            yield from numbers(body)


def formula_symbols(formula: Formula) -> set[Symbol]:
    """The symbols of a formula that are no terms; bound ones are none of it."""
    bases: set[Symbol] = set()
    for number in numbers(formula):
        bases |= base_symbols(number)
    return {symbol for symbol in bases if symbol.kind != "index"}


def on_data(formula: Formula) -> bool:
    """Data occur in a formula."""
    if any(symbol.kind == "data" for symbol in formula_symbols(formula)):
        return True
    match formula:
        case Unknown():
            return True
        case Both(parts) | Either(parts):
            return any(map(on_data, parts))
        case Every(body=body):
            return on_data(body)
        case _:
            return any(
                s.condition is not None and on_data(s.condition)
                for n in numbers(formula)
                for p, _ in terms(n)
                for s in p
            )


def truth_at(formula: Formula, at: Mapping[str, int]) -> bool:
    """The truth for values of the symbols by key. Raises KeyError where one is missing, or data decide it."""
    match formula:
        case bool():
            return formula
        case Test(number, same):
            value = value_at(number, at)
            return value == 0 if same else value >= 0
        case Both(parts):
            return all(truth_at(part, at) for part in parts)
        case Either(parts):
            return any(truth_at(part, at) for part in parts)
        case Unknown(name):
            raise KeyError(name)
        case Every(indices, bounds, body, some):
            sizes = [value_at(bound, at) for bound in bounds]
            count = 1
            for size in sizes:
                count *= max(size, 0)
            if count > LARGEST:
                raise KeyError("a range too long to go through")
            cases = all_of(*(range(size) for size in sizes))
            names = [index.key for index in indices]
            results = (truth_at(body, {**at, **dict(zip(names, case, strict=True))}) for case in cases)
            return any(results) if some else all(results)
