"""How large a number over sizes can be: whether integers of 64 bits have it, or it is wrapped around.

No tensor has `MOST` elements, and the sizes that a model leaves open do not have a product of so much either. So a
product of different sizes is below that, their sum too, while a power of a size or a size beside a large constant need
not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from ....formulas.terms import Term
from ....model.elements import limits
from ..numbers import Int, polynomial

MOST = 1 << 48
"""Above every size, and every product of different sizes. No machine has a memory of so many bytes."""
MONOMIALS = 64
"""A bound with more summands than this is none."""
EXACT = 1 << 53
"""Floating-point numbers of 64 bits have every integer up to this."""

Bound = dict[tuple[str, ...], Fraction]
"""What the absolute value of a number is at most: a sum of products of sizes, with their factors."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """defined: what some symbols stand for. bounds, signs: what was found of those."""

    defined: Mapping[str, Term]
    bounds: dict[str, Bound | None] = field(default_factory=dict)
    signs: dict[str, bool] = field(default_factory=dict)


def fits(number: Int, kind: str, defined: Mapping[str, Term]) -> bool:
    """Whether an element type of 64 bits has the number whatever the sizes are. defined: what symbols stand for."""
    known = Bounds(defined)
    bound = _bound(number, known)
    if bound is None:
        return False
    most = sum((factor * _largest(symbols) for symbols, factor in bound.items()), Fraction(0))
    if kind == "double":
        return most <= EXACT
    low, high = limits(kind) or (Fraction(0), Fraction(0))
    return most <= high and (-most >= low or _no_negative(number, known))


def _largest(symbols: tuple[str, ...]) -> int:
    """Above a product of sizes, of which each is counted once, and of indices, each as large as a size may be."""
    indices = [name for name in symbols if _is_index(name)]
    powers = Counter(name for name in symbols if not _is_index(name))
    return int(MOST ** (max(powers.values(), default=0) + len(indices)))


def _is_index(name: str) -> bool:
    return ".size." not in name and not name.startswith("dim.")


def _bound(number: Int, known: Bounds) -> Bound | None:
    found: Bound = {}
    for atoms, factor in polynomial(number).items():
        product: Bound | None = {(): Fraction(abs(factor))}
        for atom in atoms:
            product = _times(product, _atom(atom, known))
        if product is None:
            return None
        for symbols, by in product.items():
            found[symbols] = found.get(symbols, Fraction(0)) + by
    return found if len(found) <= MONOMIALS else None


def _times(left: Bound | None, right: Bound | None) -> Bound | None:
    if left is None or right is None or len(left) * len(right) > MONOMIALS:
        return None
    found: Bound = {}
    for one, a in left.items():
        for other, b in right.items():
            symbols = tuple(sorted((*one, *other)))
            found[symbols] = found.get(symbols, Fraction(0)) + a * b
    return found


def _either(bounds: Iterable[Bound | None]) -> Bound | None:
    """Above each of the numbers."""
    found: Bound = {}
    for bound in bounds:
        if bound is None:
            return None
        for symbols, factor in bound.items():
            found[symbols] = max(found.get(symbols, Fraction(0)), factor)
    return found


def _parts(term: Term) -> tuple[Int, ...]:
    return tuple(Term(part) if isinstance(part, str) else part for part in term.args)


def _atom(term: Term, known: Bounds) -> Bound | None:
    match term.op, _parts(term):
        case "ite", (_, left, right):
            return _either((_bound(left, known), _bound(right, known)))
        case "div", (number, by):
            found = _bound(number, known)
            if found is None:
                return None
            scale = by if isinstance(by, int) else 1
            found = {symbols: factor / abs(scale) for symbols, factor in found.items()}
            return {**found, (): Fraction(ceil(found.get((), Fraction(0))) + 1)}  # rounded down
        case "mod", (_, by):
            return _bound(by, known)
        case (("flat" | "unflat" | "to_int"), _):
            return {(f"{term}",): Fraction(1)}
        case name, ():
            if name in known.defined:
                if name not in known.bounds:
                    known.bounds[name] = None  # of a symbol that is defined by itself nothing is known
                    known.bounds[name] = _bound(known.defined[name], known)
                return known.bounds[name]
            return {(name,): Fraction(1)} if _is_size(name) else None
        case _:
            return None


def _is_size(name: str) -> bool:
    """Whether a symbol stands for a size, or an index within one: not for an element of a tensor."""
    return name.rpartition(".")[2] not in ("Int", "Real", "Bool") and ".entry." not in name and "lifted" not in name


def _no_negative(number: Int, known: Bounds) -> bool:
    """Whether it is evident that a number is not below 0: a sum of products of sizes."""
    return all(
        factor >= 0 and all(_not_below(atom, known) for atom in atoms) for atoms, factor in polynomial(number).items()
    )


def _not_below(term: Term, known: Bounds) -> bool:
    match term.op, _parts(term):
        case "ite", (_, left, right):
            return _no_negative(left, known) and _no_negative(right, known)
        case "div", (number, by):
            return _no_negative(number, known) and _no_negative(by, known)
        case "mod", (_, by):
            return _no_negative(by, known)
        case name, ():
            if name in known.defined:
                if name not in known.signs:
                    known.signs[name] = False
                    known.signs[name] = _no_negative(known.defined[name], known)
                return known.signs[name]
            return _is_size(name)
        case _:
            return False
