"""Consequences of facts about sizes: by bounds, and by linear arithmetic over the monomials (Fourier and Motzkin).

Sound and small: a `True` is a proof, a `False` says that none was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from math import ceil, gcd, inf

from . import formulas as fm
from .formulas import Both, Either, Every, Formula, Int, Poly, Product, Symbol, Test

# ---- Bounds -------------------------------------------------------------------------------------


MOST = 1 << 48
"""Above every size, and every product of different sizes. No machine has a memory of so many bytes."""
MONOMIALS = 64
"""A bound with more summands than this is none."""

Bound = dict[tuple[tuple[str, bool], ...], Fraction]
"""The bound of an absolute value: products of sizes, by key and whether it is an index, with their factors."""


def fits(number: Int, low: int, high: int) -> bool:
    """A number over sizes is from low to high whatever they are."""
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
    total: Bound = {}
    for product, factor in fm.terms(number):
        made: Bound | None = {(): Fraction(abs(factor))}
        for symbol in product:
            made = _interval_product(made, _symbol(symbol))
        if made is None:
            return None
        for names, by in made.items():
            total[names] = total.get(names, Fraction(0)) + by
    return total if len(total) <= MONOMIALS else None


def _interval_product(left: Bound | None, right: Bound | None) -> Bound | None:
    if left is None or right is None or len(left) * len(right) > MONOMIALS:
        return None
    product: Bound = {}
    for one, a in left.items():
        for other, b in right.items():
            names = tuple(sorted((*one, *other)))
            product[names] = product.get(names, Fraction(0)) + a * b
    return product


def _either(bounds: Iterable[Bound | None]) -> Bound | None:
    """Above each of the numbers."""
    united: Bound = {}
    for bound in bounds:
        if bound is None:
            return None
        for names, factor in bound.items():
            united[names] = max(united.get(names, Fraction(0)), factor)
    return united


def _symbol(symbol: Symbol) -> Bound | None:
    match symbol.kind:
        case "div":
            number, by = symbol.parts
            bound = _bound(number)
            if bound is None:
                return None
            bound = {names: factor / abs(by if isinstance(by, int) else 1) for names, factor in bound.items()}
            return {**bound, (): Fraction(ceil(bound.get((), Fraction(0))) + 1)}  # rounded down
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
    """It is evident that a number is not below 0: a sum of products of sizes."""
    return all(factor >= 0 and all(map(_not_below, product)) for product, factor in fm.terms(number))


def _not_below(symbol: Symbol) -> bool:
    match symbol.kind:
        case "max":
            return any(map(_no_negative, symbol.parts))
        case "div" | "if":
            return all(map(_no_negative, symbol.parts))
        case _:
            return symbol.least is not None and symbol.least >= 0


# ---- Entailment ---------------------------------------------------------------------------------


CASES = 256
"""So many cases of a question are looked at."""
INEQUALITIES = 600
"""So many inequalities are kept while one variable after the other is eliminated."""

Row = tuple[tuple[tuple[str, int], ...], int]
"""The sum of coefficient * variable, plus a constant, is >= 0."""


def entails(facts: Sequence[Formula], goal: Formula) -> bool:
    """The facts imply the goal, as far as a proof is found here."""
    if goal is True:
        return True
    known = set(facts)
    return all(part is True or part in known or _refuted(facts, fm.opposite(part)) for part in fm.conjuncts(goal))


def _refuted(facts: Sequence[Formula], claim: Formula) -> bool:
    """Facts and claim cannot hold together."""
    if claim is False:
        return True
    if isinstance(claim, Test) and _outside(claim):
        return True
    return _closed([*facts, claim], [], {}, [CASES])


def _outside(claim: Test) -> bool:
    """Bounds alone refute the claim."""
    low, high = bounds(claim.number)
    return high < 0 or (claim.equal and low > 0)


def deep_keys(formula: Formula) -> set[str]:
    """The keys of the symbols of a formula, those inside terms included; of what data decide its name."""
    match formula:
        case Test(number):
            return {key for symbol in _deep(number) for key in _own(symbol)}
        case Both(parts) | Either(parts):
            return set().union(*map(deep_keys, parts))
        case Every(_, limits, body):
            return set().union(deep_keys(body), *({s.key for s in _deep(n)} for n in limits))
        case _:
            return {fm.spelled(formula).removeprefix("not ")}


def _own(symbol: Symbol) -> set[str]:
    return {symbol.key} if symbol.condition is None else {symbol.key, *deep_keys(symbol.condition)}


def _deep(number: Int) -> Iterator[Symbol]:
    for product, _ in fm.terms(number):
        for symbol in product:
            yield symbol
            for part in symbol.parts:
                yield from _deep(part)


# ---- Bounds -------------------------------------------------------------------------------------


def bounds(number: Int) -> tuple[float, float]:
    """The least and the greatest value by the bounds of the symbols alone."""
    if isinstance(number, int):
        return number, number
    low: float = 0
    high: float = 0
    for product, c in number.terms:
        a: float = 1
        b: float = 1
        for symbol in product:
            x, y = _symbol_bounds(symbol)
            ends = [_times(p, q) for p in (a, b) for q in (x, y)]
            a, b = min(ends), max(ends)
        ends = [_times(c, a), _times(c, b)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


def _symbol_bounds(symbol: Symbol) -> tuple[float, float]:
    low: float = -inf if symbol.least is None else symbol.least
    high: float = inf if symbol.most is None else symbol.most
    match symbol.kind:
        case "div":
            a, b = bounds(symbol.parts[0])
            by = symbol.parts[1]
            if isinstance(by, int) and by > 0:
                return (a if a == -inf else a // by), (b if b == inf else b // by)
            return (0 if a >= 0 else -inf), (b if 0 <= b < inf else inf if b >= 0 else -1)
        case "max":
            ends = [bounds(part) for part in symbol.parts]
            return max(a for a, _ in ends), max(b for _, b in ends)
        case "if":
            ends = [bounds(part) for part in symbol.parts]
            return min(a for a, _ in ends), max(b for _, b in ends)
        case _:
            return low, high


# ---- Cases --------------------------------------------------------------------------------------


def _closed(todo: list[Formula], rows: list[Poly], defined: Mapping[str, Symbol], left: list[int]) -> bool:
    """The formulas cannot all hold: each case ends in a contradiction. left: how many cases may be opened."""
    rows, todo = list(rows), list(todo)
    choices: list[tuple[Formula, ...]] = []
    known: set[str] = set()
    while todo:
        formula = todo.pop()
        if formula is True:
            continue
        if formula is False:
            return True
        name = fm.spelled(formula)
        if name in known:
            continue
        known.add(name)
        match formula:
            case Test(number, same):
                rows.append(number)
                if same:
                    rows.append(_minus(number))
                fresh = {s.key: s for s in _deep(number) if s.key not in defined}
                defined = {**defined, **fresh}
                for symbol in fresh.values():
                    for meaning in _meaning(symbol):
                        if isinstance(meaning, Either):
                            choices.append(meaning.parts)
                        else:
                            todo.append(meaning)
            case Both(parts):
                todo += parts
            case Either(parts):
                choices.append(parts)
            case Every(indices, limits, body, True):
                todo += [part for i, n in zip(indices, limits, strict=True) for part in within(fm.poly(i), n)]
                todo += [body]
            case _:
                if fm.spelled(fm.opposite(formula)) in known:
                    return True
    if _contradiction(rows):
        return True
    if not choices or left[0] < len(choices[0]):
        return False
    left[0] -= len(choices[0])
    others = [Either(other) for other in choices[1:]]
    return all(_closed([case, *others], rows, defined, left) for case in choices[0])


def _minus(number: Poly) -> Poly:
    return Poly(tuple((product, -c) for product, c in number.terms))


def within(index: Int, size: Int) -> tuple[Formula, Formula]:
    """0 <= index < size."""
    return fm.at_least(index, 0), fm.at_least(size, fm.add(index, 1))


def _meaning(symbol: Symbol) -> list[Formula]:
    """The meaning of the symbol, as formulas."""
    own = fm.poly(symbol)
    facts: list[Formula] = []
    if symbol.least is not None:
        facts.append(fm.at_least(own, symbol.least))
    if symbol.most is not None:
        facts.append(fm.at_least(symbol.most, own))
    match symbol.kind:
        case "div":
            number, by = symbol.parts
            rest = fm.subtract(number, fm.multiply(by, own))
            if isinstance(by, int) or bounds(by)[0] >= 1:
                facts += [fm.at_least(rest, 0), fm.at_least(fm.subtract(by, 1), rest)]
            if bounds(number)[0] >= 0 and bounds(by)[0] >= 1:
                facts.append(fm.at_least(own, 0))
        case "max":
            left, right = symbol.parts
            facts += [fm.at_least(own, left), fm.at_least(own, right)]
            facts.append(Either((fm.equal(own, left), fm.equal(own, right))))
        case "if" if symbol.condition is not None:
            left, right = symbol.parts
            facts.append(
                Either(
                    (
                        fm.both(symbol.condition, fm.equal(own, left)),
                        fm.both(fm.opposite(symbol.condition), fm.equal(own, right)),
                    )
                )
            )
    return facts


# ---- Linear arithmetic --------------------------------------------------------------------------


def _contradiction(rows: Sequence[Poly]) -> bool:
    """The inequalities `row >= 0` have no solution; each product of symbols counts as one variable."""
    products: dict[str, Product] = {}
    system: set[Row] = set()
    for number in rows:
        system.add(_row(number, products))
    for _ in range(2):  # what is known of products: they are no smaller than their factors, which are at least 1
        for product in list(products.values()):
            if len(product) > 1 and all(_symbol_bounds(s)[0] >= 1 for s in product):
                for k in range(len(product)):
                    rest = product[:k] + product[k + 1 :]
                    system.add(_row(Poly(tuple(sorted([(product, 1), (rest, -1)], key=_order))), products))
            elif len(product) > 1 and all(_symbol_bounds(s)[0] >= 0 for s in product):
                system.add(_row(Poly(((product, 1),)), products))
    return _empty(system)


def _order(item: tuple[Product, int]) -> list[str]:
    return [s.key for s in item[0]]


def _row(number: Poly, products: dict[str, Product]) -> Row:
    constant, terms = 0, []
    for product, c in number.terms:
        if product:
            name = "*".join(s.key for s in product)
            products[name] = product
            terms.append((name, c))
        else:
            constant = c
    return _normal(dict(terms), constant)


def _normal(coefficients: Mapping[str, int], constant: int) -> Row:
    kept = {name: c for name, c in coefficients.items() if c}
    common = gcd(*kept.values()) if kept else 1
    if common > 1:
        return tuple(sorted((name, c // common) for name, c in kept.items())), constant // common
    return tuple(sorted(kept.items())), constant


def _empty(system: set[Row]) -> bool:
    system = _best(system)
    for _ in count():
        if any(not row and constant < 0 for row, constant in system):
            return True
        system = {item for item in system if item[0]}
        if not system:
            return False
        uses: dict[str, list[int]] = {}
        for row, _constant in system:
            for name, c in row:
                uses.setdefault(name, [0, 0])[c > 0] += 1
        name = min(uses, key=lambda v: (uses[v][0] * uses[v][1], v))
        with_it = [item for item in system if any(v == name for v, _ in item[0])]
        rest = {item for item in system if item not in with_it}
        above = [(dict(row), c) for row, c in with_it if dict(row)[name] > 0]
        below = [(dict(row), c) for row, c in with_it if dict(row)[name] < 0]
        for up, a in above:
            for down, b in below:
                x, y = -down[name], up[name]
                merged = {v: up.get(v, 0) * x + down.get(v, 0) * y for v in {*up, *down}}
                rest.add(_normal(merged, a * x + b * y))
        system = _best(rest)
        if len(system) > INEQUALITIES:
            return False
    return False


def _best(system: set[Row]) -> set[Row]:
    """Of inequalities that differ in the constant alone the strongest."""
    best: dict[tuple[tuple[str, int], ...], int] = {}
    for row, constant in system:
        best[row] = min(best.get(row, constant), constant)
    return set(best.items())
