"""The smt interpretation, arithmetic and lists."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

from sonnx.spec.elaborate.core import Core
from sonnx.spec.language.syntax import INT, Sort

from ...errors import InternalError
from ...facts.structure import Element
from ..terms import FALSE, TRUE, Argument, Term
from .meanings import Context, Env, Item, Listing, Meaning, Scalar, bind, meaning, rule, scalar, truth
from .symbols import Symbols

# ---- Arithmetic -------------------------------------------------------------------------------

ARITHMETIC: Mapping[str, tuple[str, Callable[[int, int], int]]] = {
    "add": ("+", operator.add),
    "sub": ("-", operator.sub),
    "mul": ("*", operator.mul),
    "div": ("div", operator.floordiv),
    "mod": ("mod", operator.mod),
}


@rule("arithmetic")
def _arithmetic(core: Core, context: Context) -> Meaning:
    symbol, compute = ARITHMETIC[core.name]
    left, right = (scalar(part, context) for part in core.parts)
    symbols, divides = context.work.symbols, core.name in ("div", "mod")
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

    return Scalar(value, term, rigid=rigid)


@rule("neg")
def _neg(core: Core, context: Context) -> Meaning:
    zero = Core("literal", INT, span=core.span, value=0)
    return _arithmetic(Core("arithmetic", INT, (zero, *core.parts), core.span, "sub"), context)


# ---- Lists ------------------------------------------------------------------------------------


@rule("vector")
def _vector(core: Core, context: Context) -> Meaning:
    parts = [scalar(part, context) for part in core.parts]
    sort, symbols = core.sort and core.sort.element, context.work.symbols

    def items(env: Env) -> tuple[Item, ...]:
        return tuple(Item(part.value(env), part.term(env)) for part in parts)

    if all(part.head == "literal" for part in core.parts):
        fixed = items([])
        literals = frozenset(item.value for item in fixed if item.value is not None)
        return replace(listed(sort, lambda _env: fixed, symbols), literals=literals)
    return listed(sort, items, symbols)


def listed(sort: Sort | None, items: Callable[[Env], tuple[Item, ...] | None], symbols: Symbols) -> Listing:
    """A list of which all is known as soon as its items are."""

    def length(env: Env) -> Argument:
        found = items(env)
        return symbols.unknown(INT) if found is None else len(found)

    def at(env: Env, position: int) -> Item:
        found = items(env)
        inside = found is not None and 0 <= position < len(found)
        return found[position] if found is not None and inside else Item(None, symbols.unknown(sort))

    return Listing(items, length, at)


@rule("index")
def _index(core: Core, context: Context) -> Meaning:
    base, index = core.parts
    listing, position, symbols = meaning(base, context.inner()), scalar(index, context), context.work.symbols
    if not isinstance(listing, Listing):
        raise InternalError("only lists are indexed")
    at = listing.at

    def item(env: Env) -> Item:
        place = position.value(env)
        return at(env, place) if isinstance(place, int) else Item(None, symbols.unknown(core.sort))

    return Scalar(lambda env: item(env).value, lambda env: item(env).term)


@rule("list")
def _list(core: Core, context: Context) -> Meaning:
    (bound,), (element, guard) = core.bound, core.parts
    limit = scalar(bound.domain, context)
    slot, inner = bind(bound.variable, context.inner())
    image, test = scalar(element, inner), truth(guard, inner)

    def items(env: Env) -> tuple[Item, ...] | None:
        end = limit.value(env)
        if not isinstance(end, int):
            return None
        out = []
        for position in range(end):
            env[slot] = position
            kept = test(env)
            if kept is TRUE:
                out.append(Item(image.value(env), image.term(env)))
            elif kept is not FALSE:
                return None
        return tuple(out)

    return listed(core.sort and core.sort.element, items, context.work.symbols)
