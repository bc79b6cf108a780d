"""The smt interpretation of operators, lists of any length: an entry is a value with its position in it.

A list of numbers has a symbol, its code, by which elements of tensors are read and lists are quantified over: `at` has
the entry of a code at a position, and `inside` says that one code is an index below another. Two lists that are built
alike of the same symbols have the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from hashlib import sha256
from typing import cast

from sonnx.spec.language.syntax import Span

from ...formulas.terms import FALSE, TRUE, Argument, Term
from . import lemmas, values
from .numbers import (
    Int,
    add,
    at_most,
    both,
    choose,
    either,
    equal,
    less,
    multiply,
    opposite,
    substitute_term,
    subtract,
    within,
)
from .values import (
    Bounded,
    Dead,
    Part,
    Row,
    Scope,
    Value,
    axiom,
    branch,
    conjuncts,
    decide,
    demand,
    entries,
    fresh,
    steady,
    whole,
)

Entry = Callable[[Int, Scope], Value]

# ---- Making lists -----------------------------------------------------------------------------


def unit(value: Value) -> Part:
    """One entry."""
    return Part(1, lambda _position, _scope: value, value)


def block(length: Int, entry: Entry, scope: Scope, *, sizes: bool = False) -> Part:
    """Entries that are evaluated where they are read, under what holds here. Their obligations are those of any."""
    facts = scope.facts

    def read(position: Int, here: Scope) -> Value:
        here.run.quiet += 1
        try:
            return entry(position, here.under(*facts, within(position, length)))
        finally:
            here.run.quiet -= 1

    return Part(length, read, sizes=sizes)


def coded(code: Term, length: Int, *, sizes: bool = False) -> Row:
    """The list of integers with this code."""
    return Row((Part(length, lambda position, _scope: Term("at", (code, position)), None, code, 0, True, sizes),))


def row_of(value: Value, scope: Scope) -> Row:
    """A list as a list of any length."""
    return value if isinstance(value, Row) else Row(tuple(map(unit, entries(value, scope))))


def length_of(row: Row) -> Int:
    """The number of entries."""
    return reduce(add, (part.length for part in row.parts), cast("Int", 0))


def joined(*rows: Row) -> Row:
    """One behind the other."""
    return Row(tuple(part for row in rows for part in row.parts))


def generic(length: Int, entry: Entry, scope: Scope) -> Row:
    """A list by its entries, the obligations of which are demanded here, at any position."""
    if isinstance(length, int):
        return Row(tuple(unit(entry(k, scope)) for k in range(length)))
    if scope.run.quiet == 0:
        position = fresh(scope, "position")
        with suppress(Dead):
            entry(position, scope.under(within(position, length)))
    return Row((block(length, entry, scope),))


# ---- Reading lists ----------------------------------------------------------------------------


def known(scope: Scope, fact: Term) -> bool:
    """A fact that is told word for word, or each part of it."""
    return all(scope.knows(part) for part in conjuncts(fact)) if fact != FALSE else False


def entry(row: Row, position: Int, scope: Scope) -> Value:
    """The entry at a position of the list. Raises Dead where the list is empty."""
    low: Int = 0
    for part in row.parts:
        high = add(low, part.length)
        if known(scope, both(at_most(low, position), less(position, high))):
            return part.entry(subtract(position, low), scope)
        low = high
    return _from(row.parts, 0, position, scope)


def _from(parts: Sequence[Part], low: Int, position: Int, scope: Scope) -> Value:
    """The entry at a position that is none of the entries before these."""
    if not parts:
        raise Dead
    first, *others = parts
    high = add(low, first.length)
    if not others:
        return first.entry(subtract(position, low), scope)
    return branch(
        less(position, high),
        lambda here: first.entry(subtract(position, low), here),
        lambda here: _from(others, high, position, here),
        scope,
    )


def cut(row: Row, low: Int, high: Int, scope: Scope) -> Row:
    """The entries at the positions from `low` on and before `high`, which are positions of the list."""
    bounds: list[Int] = [0]
    for part in row.parts:
        bounds.append(add(bounds[-1], part.length))
    if low in bounds and high in bounds and bounds.index(low) <= len(bounds) - 1 - bounds[::-1].index(high):
        return Row(row.parts[bounds.index(low) : len(bounds) - 1 - bounds[::-1].index(high)])
    for k, part in enumerate(row.parts):
        if part.value is None and known(scope, both(at_most(bounds[k], low), at_most(high, bounds[k + 1]))):
            return Row((_slice(part, subtract(low, bounds[k]), subtract(high, low)),))
    return Row((block(subtract(high, low), lambda position, here: entry(row, add(low, position), here), scope),))


def _slice(part: Part, low: Int, length: Int) -> Part:
    """Some entries of a part."""
    if low == 0 and length == part.length:
        return part
    read = part.entry
    start = add(part.start, low)
    return Part(length, lambda k, here: read(add(low, k), here), None, part.code, start, sizes=part.sizes)


def not_negative(number: Int, scope: Scope) -> Int:
    """The number, 0 for a negative one; by cases, where they can be drawn."""
    there = at_most(0, number)
    if known(scope, there):
        return number
    if known(scope, opposite(there)):
        return 0
    if steady(scope, number) and not values.mentions(there, scope.bound):
        return number if decide(scope, there) else 0
    return choose(there, number, 0)


# ---- Statements about all entries ---------------------------------------------------------------


def everywhere(length: Int, holds: Callable[[Int, Scope], Term], scope: Scope) -> Term:
    """True if something holds at every position below a length."""
    if isinstance(length, int):
        return both(*(holds(k, scope) for k in range(length)))
    generic = _generic(length, holds, scope)
    if generic is None:
        return TRUE
    position, there, found = generic
    body = either(opposite(there), found)
    return body if body in (TRUE, FALSE) else Term("forall", (position.op, body))


def somewhere(length: Int, holds: Callable[[Int, Scope], Term], scope: Scope) -> Term:
    """True if something holds at a position below a length."""
    if isinstance(length, int):
        return either(*(holds(k, scope) for k in range(length)))
    generic = _generic(length, holds, scope)
    if generic is None:
        return FALSE
    position, there, found = generic
    body = both(there, found)
    return body if body == FALSE else Term("exists", (position.op, body))


def _generic(length: Int, holds: Callable[[Int, Scope], Term], scope: Scope) -> tuple[Term, Term, Term] | None:
    """A position of which nothing is known, that it lies below a length, and what holds there; None where no position
    does.
    """
    position = fresh(replace(scope, bound=()), "position")
    there = within(position, length)
    try:
        return position, there, holds(position, replace(scope, bound=(*scope.bound, position.op)).under(there))
    except Dead:
        return None


Pair = tuple[Int, Entry, Entry]


def pairs(left: Row, right: Row) -> list[Pair]:
    """Lists of the same length side by side: stretches of as many entries each, with the entries of both."""
    made: list[Pair] = []
    one, other = list(left.parts), list(right.parts)
    while one and other:
        if one[0].length != other[0].length:
            if one[-1].length == other[-1].length:
                break
            return [*made, _rest(one, other)]
        made.append((one[0].length, one.pop(0).entry, other.pop(0).entry))
    if not one and not other:
        return made
    behind: list[Pair] = []
    while one and other and one[-1].length == other[-1].length:
        behind.insert(0, (one[-1].length, one.pop().entry, other.pop().entry))
    return [*made, _rest(one, other), *behind] if one or other else [*made, *behind]


def _rest(one: Sequence[Part], other: Sequence[Part]) -> Pair:
    left, right = Row(tuple(one)), Row(tuple(other))
    longer = left if len(one) >= len(other) else right
    return (
        length_of(longer),
        lambda position, here: entry(left, position, here),
        lambda position, here: entry(right, position, here),
    )


def relate(relation: str, left: Value, right: Value, scope: Scope) -> Term:
    """True if a relation holds in every component; lists of different lengths are in none."""

    def holds(a: Entry, b: Entry) -> Callable[[Int, Scope], Term]:
        return lambda k, here: values.relate(relation, a(k, here), b(k, here), here)

    return compared(holds, left, right, scope)


def compared(
    holds: Callable[[Entry, Entry], Callable[[Int, Scope], Term]], left: Value, right: Value, scope: Scope
) -> Term:
    """True if something holds of every two entries, of lists of the same length; a value goes with each entry."""
    sides = _sides(left, right, scope)
    if sides is None:
        first = not values.compound(left, left)
        single, row = (left, row_of(right, scope)) if first else (right, row_of(left, scope))
        alone: Entry = lambda _position, _scope: single  # noqa: E731
        return both(
            *(
                everywhere(p.length, holds(alone, p.entry) if first else holds(p.entry, alone), scope)
                for p in row.parts
            )
        )
    one, other = sides
    same = equal(length_of(one), length_of(other))
    if same == FALSE:
        return FALSE
    inner = scope.under(same)
    return both(same, *(everywhere(length, holds(a, b), inner) for length, a, b in pairs(one, other)))


def _sides(left: Value, right: Value, scope: Scope) -> tuple[Row, Row] | None:
    """Two lists; None where one of the two is none."""
    if values.compound(left, left) and values.compound(right, right):
        return row_of(left, scope), row_of(right, scope)
    return None


# ---- Values made of values ----------------------------------------------------------------------


def each(function: Callable[[Value, Scope], Value], value: Row, scope: Scope) -> Row:
    """A function of each entry."""

    def part_of(part: Part) -> Row:
        return generic(part.length, lambda k, here: function(part.entry(k, here), here), scope)

    return joined(*(part_of(part) for part in value.parts))


def componentwise(
    function: Callable[[Value, Value, Scope], Value], left: Value, right: Value, span: Span, scope: Scope
) -> Row:
    """A function of each two entries, of lists that must have the same length; a number goes with each."""
    sides = _sides(left, right, scope)
    if sides is None:
        if values.compound(left, left):
            return each(lambda a, here: function(a, right, here), row_of(left, scope), scope)
        return each(lambda b, here: function(left, b, here), row_of(right, scope), scope)
    one, other = sides
    same = equal(length_of(one), length_of(other))
    demand(scope, "length", span, same)
    inner = scope.under(same)

    def of_both(a: Entry, b: Entry) -> Entry:
        return lambda k, here: function(a(k, here), b(k, here), here)

    return joined(*(generic(length, of_both(a, b), inner) for length, a, b in pairs(one, other)))


def merge(asked: Term, left: Value, right: Value, scope: Scope) -> Row | None:
    """One list or the other; None where their lengths differ and the condition can be decided instead."""
    if not (values.compound(left, left) and values.compound(right, right)):
        return None
    one, other = row_of(left, scope), row_of(right, scope)
    sizes = length_of(one), length_of(other)
    if sizes[0] != sizes[1] and steady(scope, asked) and not values.mentions(asked, scope.bound):
        return None

    def either_of(a: Entry, b: Entry) -> Entry:
        return lambda k, here: branch(asked, lambda s: a(k, s), lambda s: b(k, s), here)

    if sizes[0] == sizes[1]:
        return joined(*(_merged(length, either_of(a, b), scope) for length, a, b in pairs(one, other)))
    length = choose(asked, *sizes)
    return _merged(length, either_of(lambda k, s: entry(one, k, s), lambda k, s: entry(other, k, s)), scope)


def _merged(length: Int, read: Entry, scope: Scope) -> Row:
    if length == 1:
        return Row((unit(read(0, scope)),))
    return Row((block(length, read, scope),))


# ---- Codes --------------------------------------------------------------------------------------

PROBE = Term("probe")
"""The position at which an entry is written down for the code of its list."""


def probing(scope: Scope) -> tuple[Term, Scope]:
    """The probe, and the scope in which it stands for any position: within an entry that is written down itself another
    one, so that the two positions are told apart.
    """
    probe, number = PROBE, 0
    while probe.op in scope.bound:
        number += 1
        probe = Term(f"{PROBE.op}!{number}")
    scope.run.symbols[probe.op] = (0, "Int")
    return probe, replace(scope, bound=(*scope.bound, probe.op))


def code_of(row: Row, scope: Scope) -> Term:
    """The code of a list of integers: a function of the indices that its entries mention, and of the entries that are
    told one by one.
    """
    if len(row.parts) == 1 and row.parts[0].whole and row.parts[0].code is not None:
        return row.parts[0].code
    probe, there = probing(scope)
    written: list[Argument] = []
    single: dict[Term, None] = {}
    for part in row.parts:
        at = part.value if part.value is not None else part.entry(probe, there)
        if not isinstance(at, int | Term):
            raise Bounded("a list of what is no integer, by which an element is read")
        if part.value is not None and isinstance(at, Term) and named(at, probe, scope)[1]:
            single.setdefault(at)
            at = Term(f"_single{list(single).index(at)}")
        written += [part.length, at]
    name, leaves = named(Term("row", tuple(written)), probe, scope)
    leaves += tuple(single)
    scope.run.symbols[f"row.{name}"] = (len(leaves), "Int")
    return Term(f"row.{name}", leaves)


def named(term: Term, probe: Term, scope: Scope) -> tuple[str, tuple[Term, ...]]:
    """A name for what a term says at the probe, and the symbols that stand for indices in it."""
    leaves: dict[Term, None] = {}
    key = repr(_abstracted(term, leaves, {probe.op: PROBE.op}, scope))
    return sha256(key.encode()).hexdigest()[:24], tuple(leaves)


def linked(row: Row, scope: Scope) -> Term:
    """The code of a list, of which it is known what stands at each position."""
    code = code_of(row, scope)
    if (len(row.parts) == 1 and row.parts[0].code == code) or code in scope.run.told:
        return code
    scope.run.told.add(code)
    scope.run.symbols["at"] = (2, "Int")
    low: Int = 0
    for part in row.parts:
        offset = low

        def same(k: Int, here: Scope, part: Part = part, offset: Int = offset) -> Term:
            return equal(Term("at", (code, add(offset, k))), whole(part.entry(k, here)))

        axiom(replace(scope, facts=()), _named(everywhere(part.length, same, scope)))  # what the code stands for
        low = add(low, part.length)
    return code


def _named(known: Term) -> Term:
    """The same with a name for the variable that does not depend on where it is said."""
    match known:
        case Term("forall", (str() as position, Term() as body)):
            named = substitute_term(body, Term(position), EVERY)
            return Term("forall", (EVERY.op, named)) if isinstance(named, Term) else known
        case _:
            return known


EVERY = Term("position!every")


def _abstracted(term: Argument, leaves: dict[Term, None], names: dict[str, str], scope: Scope) -> Argument:
    """The term with places for the symbols that stand for indices; bound variables by their depth."""
    if not isinstance(term, Term):
        return names.get(term, term) if isinstance(term, str) else term
    if term.op in ("forall", "exists"):
        *bound, body = term.args
        inner = {**names, **{str(name): f"_{len(names) + k}" for k, name in enumerate(bound)}}
        return Term(term.op, (*(inner[str(name)] for name in bound), _abstracted(body, leaves, inner, scope)))
    if not term.args:
        if term.op in names:
            return Term(names[term.op])
        if term.op in scope.bound or ("!" in term.op and _is_number(term, scope)):
            leaves.setdefault(term)
            return Term(f"_place{list(leaves).index(term)}")
    return Term(term.op, tuple(_abstracted(part, leaves, names, scope) for part in term.args))


def _is_number(term: Term, scope: Scope) -> bool:
    return scope.run.symbols.get(term.op, (0, ""))[1] == "Int"


# ---- Indices ------------------------------------------------------------------------------------


def inside(symbol: Term, shape: Row, scope: Scope) -> Term:
    """The index with a code is below the shape. What that says of its entries is known from here on."""
    scope.run.symbols["inside"] = (2, "Bool")
    scope.run.symbols["at"] = (2, "Int")
    there = Term("inside", (symbol, code_of(shape, scope)))
    if there in scope.run.told:
        return there
    scope.run.told.add(there)
    around = replace(scope, facts=())
    low: Int = 0
    for part in shape.parts:
        offset = low

        def below(k: Int, here: Scope, part: Part = part, offset: Int = offset) -> Term:
            return within(Term("at", (symbol, add(offset, k))), whole(part.entry(k, here)))

        match _named(everywhere(part.length, below, scope)):
            case Term("forall", (str() as position, Term() as body)):
                axiom(replace(around, bound=(*scope.bound, position)), either(opposite(there), body))
            case found:
                axiom(around, either(opposite(there), found))
        low = add(low, part.length)
    return there


def demand_inside(index: Row, shape: Row, kind: str, span: Span, scope: Scope, about: str) -> None:
    """The index is below the shape: as many entries, each one at any position."""
    same = equal(length_of(index), length_of(shape))
    demand(scope, "length" if kind == "index" else kind, span, same, about)
    inner = scope.under(same)
    for length, a, b in pairs(index, shape):
        if isinstance(length, int):
            for k in range(length):
                demand(inner, kind, span, within(whole(a(k, inner)), whole(b(k, inner))), about)
            continue
        position = fresh(inner, "position")
        try:
            here = inner.under(within(position, length))
            demand(here, kind, span, within(whole(a(position, here)), whole(b(position, here))), about)
        except Dead:
            continue


# ---- Numbers of elements ------------------------------------------------------------------------


def product_of(row: Row, scope: Scope) -> Int:
    """The product of the entries, integers: that of each part, for an open one a symbol."""
    result: Int = 1
    for part in row.parts:
        if part.value is not None:
            result = multiply(result, whole(part.value))
        elif isinstance(part.length, int):
            for k in range(part.length):
                result = multiply(result, whole(part.entry(k, scope)))
        else:
            result = multiply(result, _stretch(part, scope))
    return result


def _stretch(part: Part, scope: Scope) -> Int:
    """The product of the entries of a part, as one of those of a stretch of the list that it is of."""
    code, start, length = part.code, part.start, part.length
    if code is None:
        code, start = linked(Row((part,)), scope), 0
    stop = add(start, length)
    scope.run.symbols |= dict.fromkeys(("product", *lemmas.EXCEPTIONS), (3, "Int"))
    made = Term("product", (code, start, stop))
    if made in scope.run.told:
        return made
    scope.run.told.add(made)
    for axiom_ in lemmas.of_product(code, start, stop):
        axiom(replace(scope, facts=()), axiom_)
    return made


def sum_of(length: Int, read: Entry, scope: Scope) -> Int:
    """The sum of terms that are integers, at the positions below a length; of equal terms so many times one of them."""
    probe, there = probing(scope)
    told = whole(read(probe, there.under(within(probe, length))))
    if not (isinstance(told, Term) and values.mentions(told, (probe.op,))):
        return multiply(told, not_negative(length, scope))
    name, leaves = named(Term("sum", (told,)), probe, scope)
    signs = {f"sum.{name}": 1, f"loss.{name}": 1, f"step.{name}": 2}
    scope.run.symbols |= {sign: (len(leaves) + more, "Int") for sign, more in signs.items()}
    total: Callable[[Int], Term] = lambda k: Term(f"sum.{name}", (*leaves, k))  # noqa: E731
    loss: Callable[[Int], Term] = lambda k: Term(f"loss.{name}", (*leaves, k))  # noqa: E731
    if (made := total(length)) not in scope.run.told:
        scope.run.told.add(made)
        step = Term(f"step.{name}", (*leaves, Term("position!x"), length))
        for fact in lemmas.of_sum(total, lambda k: substitute_term(told, probe, k), length, loss, step):
            axiom(replace(scope, facts=()), fact)
    return made


def flat(code: Term, shape: Row, scope: Scope) -> Term:
    """The position of an index below a shape among all, row-major."""
    scope.run.symbols["place"] = (2, "Int")
    own, size = code_of(shape, scope), product_of(shape, scope)
    made = Term("place", (code, own))
    scope.run.products[own] = size
    axiom(scope, within(made, size), assumed=True)
    return made


def unflat(position: Int, shape: Row, scope: Scope) -> Term:
    """The index at a position among all below a shape."""
    scope.run.symbols["index"] = (2, "Int")
    made = Term("index", (position, code_of(shape, scope)))
    axiom(scope, inside(made, shape, scope), assumed=True)
    return made


def reverse(row: Row, scope: Scope) -> Row:
    """From the last entry to the first."""

    def turned(part: Part) -> Part:
        if part.value is not None:
            return part
        last = add(part.length, -1)
        return block(part.length, lambda k, here: part.entry(subtract(last, k), here), scope, sizes=part.sizes)

    return Row(tuple(map(turned, reversed(row.parts))))
