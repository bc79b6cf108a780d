"""The smt interpretation, arithmetic and lists."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

from sonnx.spec.language.syntax import INT, Expr, Sort

from ...errors import InternalError
from ...facts.structure import Element
from ..terms import FALSE, TRUE, Argument, Term
from .meanings import Context, Env, Item, Listing, Meaning, Scalar, meaning, rule, scalar, truth
from .symbols import Symbols

# ---- Arithmetic -------------------------------------------------------------------------------

ARITHMETIC: Mapping[str, tuple[str, Callable[[int, int], int]]] = {
    "add": ("+", operator.add),
    "sub": ("-", operator.sub),
    "mul": ("*", operator.mul),
    "div": ("div", operator.floordiv),
    "mod": ("mod", operator.mod),
}


@rule(*ARITHMETIC)
def _arithmetic(expr: Expr, context: Context) -> Meaning:
    symbol, compute = ARITHMETIC[expr.head]
    left, right = (scalar(part, context) for part in expr.args)
    symbols, divides = context.symbols, expr.head in ("div", "mod")
    rigid = left.rigid and right.rigid and not divides

    def value(env: Env) -> Element | None:
        one, two = left.value(env), right.value(env)
        if not isinstance(one, int) or not isinstance(two, int) or (divides and two == 0):
            return None
        return compute(one, two)

    def term(env: Env) -> Argument:
        """Products and quotients stay linear: of two symbols one is replaced by its known value. It is asked for its
        term all the same, so that the query knows the facts behind it."""
        one, two = left.value(env), right.value(env)
        if rigid and isinstance(one, int) and isinstance(two, int):
            return compute(one, two)
        if divides:
            if not isinstance(two, int) or two == 0:
                return symbols.unknown(INT)
            right.term(env)
            return Term(symbol, (left.term(env), two))
        first, second = left.term(env), right.term(env)
        if symbol == "*" and isinstance(two, int):
            return Term("*", (two, first))
        if symbol == "*" and isinstance(one, int):
            return Term("*", (one, second))
        return symbols.unknown(INT) if symbol == "*" else Term(symbol, (first, second))

    return Scalar(INT, value, term, rigid=rigid)


@rule("neg")
def _neg(expr: Expr, context: Context) -> Meaning:
    return _arithmetic(Expr("sub", (Expr("int", (0,)), *expr.args), expr.span), context)


# ---- Lists ------------------------------------------------------------------------------------


@rule("vector")
def _vector(expr: Expr, context: Context) -> Meaning:
    parts = [scalar(part, context) for part in expr.args]
    sort = parts[0].sort if parts else INT

    def items(env: Env) -> tuple[Item, ...]:
        return tuple(Item(part.value(env), part.term(env)) for part in parts)

    if all(isinstance(part, Expr) and part.head in ("int", "text") for part in expr.args):
        fixed = items([])
        literals = frozenset(item.value for item in fixed if item.value is not None)
        return replace(listed(sort, lambda _env: fixed, context.symbols), literals=literals)
    return listed(sort, items, context.symbols)


def listed(sort: Sort, items: Callable[[Env], tuple[Item, ...] | None], symbols: Symbols) -> Listing:
    """A list of which all is known as soon as its items are."""

    def length(env: Env) -> Argument:
        found = items(env)
        return symbols.unknown(INT) if found is None else len(found)

    def at(env: Env, position: int) -> Item:
        found = items(env)
        inside = found is not None and 0 <= position < len(found)
        return found[position] if found is not None and inside else Item(None, symbols.unknown(sort))

    return Listing(sort, items, length, at)


@rule("index")
def _index(expr: Expr, context: Context) -> Meaning:
    if len(expr.args) != 2:
        raise InternalError("a list takes one index")
    listing, position, symbols = meaning(expr.args[0], context.inner()), scalar(expr.args[1], context), context.symbols
    if not isinstance(listing, Listing):
        raise InternalError("only lists are indexed")
    found = listing

    def item(env: Env) -> Item:
        place = position.value(env)
        return found.at(env, place) if isinstance(place, int) else Item(None, symbols.unknown(found.element))

    return Scalar(found.element, lambda env: item(env).value, lambda env: item(env).term)


@rule("comprehension")
def _comprehension(expr: Expr, context: Context) -> Meaning:
    body, name, bound, guard = expr.args
    limit = scalar(bound, context)
    slot, inner = context.inner().bind(str(name), INT)
    image = scalar(body, inner)
    test = truth(guard, inner) if guard is not None else None

    def items(env: Env) -> tuple[Item, ...] | None:
        end = limit.value(env)
        if not isinstance(end, int):
            return None
        out = []
        for position in range(end):
            env[slot] = position
            held = TRUE if test is None else test(env)
            if held is TRUE:
                out.append(Item(image.value(env), image.term(env)))
            elif held is not FALSE:
                return None
        return tuple(out)

    return listed(image.sort, items, context.symbols)
