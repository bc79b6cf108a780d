"""The smt interpretation of operators, relations, branches and arithmetic: component by component where lists meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import cast

from sonnx.spec.language.syntax import Span

from ...errors import InternalError
from ...formulas.terms import FALSE, TRUE, Term
from ...model.payload import BITS
from .cases import decide, entries, fixed_value, is_list, number, settle_softly, settle_text, whole
from .numbers import (
    Int,
    Real,
    add,
    both,
    choose,
    either,
    equal,
    floor_div,
    floor_mod,
    multiply,
    opposite,
    order,
    rational,
    real,
    subtract,
    within,
)
from .values import Dead, Element, ElementType, Open, Scope, TextSymbol, Value, demand

# ---- Relations --------------------------------------------------------------------------------


def same_truth(left: Term, right: Term) -> Term:
    """Whether two Bools are the same."""
    for one, other in ((left, right), (right, left)):
        if one in (TRUE, FALSE):
            return other if one == TRUE else opposite(other)
    return TRUE if left == right else Term("iff", (left, right))


def relate(relation: str, left: Value, right: Value, scope: Scope) -> Term:
    """Whether a relation holds between two values; between lists when it holds in every component."""
    if relation == "!=":
        return opposite(relate("=", left, right, scope)) if compound(left, right) else _scalar("!=", left, right, scope)
    if relation == "not in":
        return opposite(member(left, right, scope))
    if relation == "in":
        return member(left, right, scope)
    if compound(left, right):
        if relation == "=":
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Open) and is_list(other):
                    return _same_list(one, entries(other, scope), scope)
        pairs = pairs_of(left, right, scope)
        return FALSE if pairs is None else both(*(relate(relation, a, b, scope) for a, b in pairs))
    return _scalar(relation, left, right, scope)


def _same_list(left: Open, right: tuple[Value, ...], scope: Scope) -> Term:
    """Whether a list of open length is a list."""
    same = [relate("=", left.entry(k), item, scope) for k, item in enumerate(right)]
    return both(equal(left.length, len(right)), *same)


def compound(left: Value, right: Value) -> bool:
    """Whether one of the two is a list."""
    return any(is_list(value) or isinstance(value, Open) for value in (left, right))


def pairs_of(left: Value, right: Value, scope: Scope) -> list[tuple[Value, Value]] | None:
    """The components of two lists, a number beside a list going with each; None when the lengths differ."""
    a = entries(left, scope) if compound(left, left) else None
    b = entries(right, scope) if compound(right, right) else None
    if a is None:
        return [(left, y) for y in b or ()]
    if b is None:
        return [(x, right) for x in a]
    return None if len(a) != len(b) else list(zip(a, b, strict=True))


def _scalar(relation: str, left: Value, right: Value, scope: Scope) -> Term:
    if isinstance(left, Element) or isinstance(right, Element):
        one, other = elements(left, right, scope)
        return scope.run.algebra.compare(relation, one, other, scope)
    if isinstance(left, str | TextSymbol):
        found = TRUE if settle_text(scope, left) == settle_text(scope, right) else FALSE
        return found if relation == "=" else opposite(found)
    if isinstance(left, ElementType) and isinstance(right, ElementType):
        found = same_type(left, right, scope)
        return found if relation == "=" else opposite(found)
    if isinstance(left, Term) and isinstance(right, Term) and is_truth(left, scope) and is_truth(right, scope):
        found = same_truth(left, right)
        return found if relation == "=" else opposite(found)
    return order(relation, number(left), number(right))


BOOLS = frozenset({"true", "false", "and", "or", "not", "iff", "=", "<=", "=>", "r<", "r<=", "r=", "forall", "exists"})


def is_truth(term: Term, scope: Scope) -> bool:
    """Whether a term is a Bool."""
    return term.op in BOOLS or scope.run.symbols.get(term.op, (0, ""))[1] == "Bool"


def elements(left: Value, right: Value, scope: Scope) -> tuple[Element, Element]:
    """Two operands of which one is an element; a numeral takes its type."""
    return element(left, _type(right), scope), element(right, _type(left), scope)


def _type(value: Value) -> ElementType:
    return value.type if isinstance(value, Element) else ElementType("")


def element(value: Value, kind: ElementType, scope: Scope) -> Element:
    """The value as an element of a type: a numeral is adapted, an exact value cast."""
    if isinstance(value, Element):
        return value
    if isinstance(value, int | Fraction):
        return scope.run.algebra.literal(value, kind, scope)
    if isinstance(value, Term | Real):
        return scope.run.algebra.apply("cast", kind, (value,), scope)
    raise InternalError(f"{value!r} is no element")


def member(left: Value, right: Value, scope: Scope) -> Term:
    """`in`: an index below a size, an index vector in a shape, a value in a list."""
    if not compound(right, right):
        return within(whole(left), whole(right))
    if compound(left, left):
        pairs = pairs_of(left, right, scope)
        return FALSE if pairs is None else both(*(within(whole(a), whole(b)) for a, b in pairs))
    return either(*(relate("=", left, softly(item, scope), scope) for item in entries(right, scope)))


def softly(value: Value, scope: Scope) -> Value:
    """An integer of which the text asks where a list has it, settled where it can be one of a few numbers only."""
    return settle_softly(scope, value) if isinstance(value, Term) and not is_truth(value, scope) else value


# ---- Branches ---------------------------------------------------------------------------------


def branch(asked: Term, then: Callable[[Scope], Value], other: Callable[[Scope], Value], scope: Scope) -> Value:
    """One value or the other; where the two have no common form, the condition is decided."""
    if asked in (TRUE, FALSE):
        return then(scope) if asked == TRUE else other(scope)
    if scope.knows(asked):
        return then(scope)
    if scope.knows(opposite(asked)):
        return other(scope)
    if scope.run.decided.get(asked) is not None:
        return then(scope.under(asked)) if decide(scope, asked) else other(scope.under(opposite(asked)))
    try:
        left = then(scope.under(asked))
    except Dead:
        return other(scope.under(opposite(asked)))
    try:
        right = other(scope.under(opposite(asked)))
    except Dead:
        return left
    merged = merge(asked, left, right, scope)
    if merged is None:
        return left if decide(scope, asked) else right
    return merged


def merge(asked: Term, left: Value, right: Value, scope: Scope) -> Value | None:
    """The value that depends on a condition; None when the two have no common form."""
    if left == right or asked in (TRUE, FALSE):
        return right if asked == FALSE else left
    if isinstance(left, Element) or isinstance(right, Element):
        one, other = elements(left, right, scope)
        return scope.run.algebra.choose(asked, one, other, scope)
    left, right = listed(left, scope.under(asked)), listed(right, scope.under(opposite(asked)))
    if isinstance(left, Open) or isinstance(right, Open):
        return _open(asked, left, right, scope)
    if is_list(left) and is_list(right):
        pairs = pairs_of(left, right, scope)
        if pairs is None:
            return None
        parts = [merge(asked, a, b, scope) for a, b in pairs]
        return None if None in parts else tuple(part for part in parts if part is not None)
    if isinstance(left, Fraction | Real) or isinstance(right, Fraction | Real):
        return Real(Term("rite", (asked, real(number(left)), real(number(right)))))
    if isinstance(left, int | Term) and isinstance(right, int | Term):
        if any(isinstance(side, Term) and is_truth(side, scope) for side in (left, right)):
            return either(both(asked, cast("Term", left)), both(opposite(asked), cast("Term", right)))
        return choose(asked, left, right)
    return None


def listed(value: Value, scope: Scope) -> Value:
    """A list of open length whose length the facts fix as the list that it is; any other value as it is."""
    if isinstance(value, Open) and isinstance(value.length, Term):
        fixed = fixed_value(scope, value.length)
        return value if fixed is None else tuple(value.entry(k) for k in range(fixed))
    return entries(value, scope) if isinstance(value, Open) else value


def _open(asked: Term, left: Value, right: Value, scope: Scope) -> Value:
    """One list or the other as a list of open length."""
    sizes = [value.length if isinstance(value, Open) else len(entries(value, scope)) for value in (left, right)]

    def entry(position: int) -> Value:
        found = []
        for value in (left, right):
            items = () if isinstance(value, Open) else entries(value, scope)
            if isinstance(value, Open) or position < len(items):
                found.append(value.entry(position) if isinstance(value, Open) else items[position])
        merged = merge(asked, found[0], found[1], scope) if len(found) == 2 else found[0]
        if merged is None:
            raise InternalError("entries of lists that have no common form")
        return merged

    return Open(choose(asked, *sizes), entry)


# ---- Arithmetic -------------------------------------------------------------------------------

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "quotient": "/"}
INTEGERS: Mapping[str, Callable[[Int, Int], Int]] = {
    "add": add, "sub": subtract, "mul": multiply, "div": floor_div, "mod": floor_mod,
}  # fmt: skip


def arithmetic(operator: str, left: Value, right: Value, span: Span, scope: Scope) -> Value:
    """`add sub mul quotient div mod`, component by component where a list is involved."""
    if compound(left, right):
        pairs = pairs_of(left, right, scope)
        if pairs is None:
            demand(scope, "length", span, FALSE)
            raise Dead
        return tuple(arithmetic(operator, a, b, span, scope) for a, b in pairs)
    if isinstance(left, Element) or isinstance(right, Element):
        one, other = elements(left, right, scope)
        return scope.run.algebra.arithmetic(OPERATORS[operator], one, other, scope)
    a, b = number(left), number(right)
    if operator in ("div", "mod", "quotient"):
        demand(scope, "divisor", span, order("!=", b, 0))
    if operator == "quotient" or isinstance(a, Fraction | Real) or isinstance(b, Fraction | Real):
        return rational(OPERATORS[operator], a, b)
    return INTEGERS[operator](a, b)


def negative(value: Value, scope: Scope) -> Value:
    """The value with the other sign; an element's is its own primitive, since 0 - x is not -x."""
    if compound(value, value):
        return tuple(negative(item, scope) for item in entries(value, scope))
    if isinstance(value, Element):
        return scope.run.algebra.apply("negative", value.type, (value,), scope)
    found = number(value)
    return rational("*", -1, found) if isinstance(found, Fraction | Real) else multiply(-1, found)


# ---- Element types ----------------------------------------------------------------------------


ELEMENT_TYPES = frozenset({*BITS, "string"})


def same_type(left: ElementType, right: ElementType, scope: Scope) -> Term:
    """Whether two element types are one; a symbol where one of them is open."""
    if left == right:
        return TRUE
    if left.name in ELEMENT_TYPES and right.name in ELEMENT_TYPES:
        return FALSE
    name = "same.{}.{}".format(*sorted((left.name, right.name)))
    scope.run.symbols[name] = (0, "Bool")
    return Term(name)
