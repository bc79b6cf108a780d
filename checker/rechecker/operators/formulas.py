"""Formulas over sizes: what a requirement comes to where sizes or data decide it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product as all_of

from .numbers import Int, Poly, Symbol, base_symbols, key_of, negate, subtract, terms, value_at

LARGEST = 20_000
"""A range of more indices is not gone through when sizes are tried."""


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
    """What data decide, and no number says how. positive: or its opposite."""

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
    from math import gcd

    common = gcd(*(c for product, c in number.terms if product))
    if common <= 1:
        return number
    found = {product: c // common for product, c in number.terms}  # the constant rounded down
    return Poly(tuple((product, c) for product, c in found.items() if c))


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
    found: set[Symbol] = set()
    for number in numbers(formula):
        found |= base_symbols(number)
    return {symbol for symbol in found if symbol.kind != "index"}


def on_data(formula: Formula) -> bool:
    """Whether data occur in a formula."""
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
