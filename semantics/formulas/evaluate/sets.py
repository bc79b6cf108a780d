"""The direct interpretation, finite sets: quantifiers and comprehensions as loops over members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sonnx.spec.language.syntax import BOOL, INT, Binder, Expr, Sort

from ...errors import InternalError
from ...facts.structure import Element, Key, SetTable, Unknown, Value
from . import indexed
from .expressions import Compiled, Context, Env, compiled, rule
from .values import membership

Members = Callable[[Env], Iterable[Element] | Unknown]
"""The members of a domain, each once, in order."""


def distinct(found: Compiled) -> Members:
    """The members of a set, or of a list without its repetitions."""
    run, sort = found.run, found.sort
    if found.sure and sort.name == "set":
        return run  # type: ignore[return-value]

    def members(env: Env) -> Iterable[Element] | Unknown:
        value = run(env)
        if isinstance(value, tuple):
            return value if sort.name == "set" else dict.fromkeys(value)
        if isinstance(value, Unknown):
            return value
        raise InternalError(f"a quantifier ranges over {value!r}")

    return members


def domain(quantifier: str, binder: Binder, body: Expr, context: Context) -> tuple[Members, Sort]:
    """The members of a binder's domain that matter, through an index where the body gives one, and their sort."""
    whole = compiled(binder.domain, context)
    members, sort = distinct(whole), whole.sort.element or INT
    found = indexed.index(quantifier, binder.name, body, context.scope, context.functions)
    table = context.structure.table(found.relation) if found else None
    if found is None or not isinstance(table, SetTable):
        return members, sort
    inverse, at = table.inverse, compiled(found.element, context).run
    inside = membership(binder.domain, context)

    def looked_up(env: Env) -> Iterable[Element] | Unknown:
        element = at(env)
        if isinstance(element, (Unknown, tuple)):
            return members(env)
        chosen: list[Element] = []
        for key in inverse.get(element, ()):
            belongs = inside(env, key)
            if isinstance(belongs, Unknown):
                return belongs
            if belongs:
                chosen.append(_single(key))
        return chosen

    return looked_up, sort


def _single(key: Key) -> Element:
    if isinstance(key, tuple):
        raise InternalError("an index is over relations with one argument")
    return key


@rule("forall", "exists")
def _quantified(expr: Expr, context: Context) -> Compiled:
    binders, body = indexed.binders(expr)
    first, *rest = binders
    remaining = Expr(expr.head, (*rest, body), expr.span) if rest else body
    members, sort = domain(expr.head, first, remaining, context)
    slot, inner = context.bind(first.name, sort)
    run, settles = compiled(remaining, inner).run, expr.head == "exists"

    def code(env: Env) -> Value:
        values = members(env)
        if isinstance(values, Unknown):
            return values
        result: Value = not settles
        for member in values:
            env[slot] = member
            value = run(env)
            if value is settles:
                return settles
            if isinstance(value, Unknown) and not isinstance(result, Unknown):
                result = value
        return result

    return Compiled(code, BOOL)


@rule("unique")
def _unique(expr: Expr, context: Context) -> Compiled:
    """Exactly one assignment of members satisfies the body."""
    binders, body = indexed.binders(expr)
    loops, inner = _loops("unique", binders, body, context)
    run = compiled(body, inner).run

    def code(env: Env) -> Value:
        unknown: Unknown | None = None
        found = 0
        for outcome in _each(loops, env):
            value = outcome if isinstance(outcome, Unknown) else run(env)
            if isinstance(value, Unknown):
                unknown = unknown or value
            elif value:
                found += 1
                if found > 1:
                    return False
        return unknown if unknown is not None else found == 1

    return Compiled(code, BOOL)


Loop = tuple[int, Members]
"""The slot of a variable and the members that it runs through."""


def _loops(quantifier: str, binders: Sequence[Binder], body: Expr, context: Context) -> tuple[list[Loop], Context]:
    """Nested loops over binders, and the context inside of them."""
    loops: list[Loop] = []
    for position, binder in enumerate(binders):
        last = position == len(binders) - 1
        members, sort = domain(quantifier, binder, body if last else Expr("true"), context)
        slot, context = context.bind(binder.name, sort)
        loops.append((slot, members))
    return loops, context


def _each(loops: list[Loop], env: Env, depth: int = 0) -> Iterator[Unknown | None]:
    """Set the variables to each assignment in turn; an item is Unknown where a domain is."""
    if depth == len(loops):
        yield None
        return
    slot, members = loops[depth]
    values = members(env)
    if isinstance(values, Unknown):
        yield values
        return
    for member in values:
        env[slot] = member
        yield from _each(loops, env, depth + 1)


@rule("set_comprehension")
def _set_comprehension(expr: Expr, context: Context) -> Compiled:
    element, *bound, guard = expr.args
    condition = guard if isinstance(guard, Expr) else Expr("true")
    loops, inner = _loops("exists", [item for item in bound if isinstance(item, Binder)], condition, context)
    test, image = compiled(condition, inner).run, compiled(element, inner)

    def code(env: Env) -> Value:
        found: dict[Element, None] = {}
        for outcome in _each(loops, env):
            held = outcome if isinstance(outcome, Unknown) else test(env)
            value = image.run(env) if held is True else held
            if isinstance(value, (Unknown, tuple)):
                return value
            if held:
                found[value] = None
        return tuple(found)

    return Compiled(code, Sort("set", image.sort))


@rule("comprehension")
def _comprehension(expr: Expr, context: Context) -> Compiled:
    body, name, bound, guard = expr.args
    limit = compiled(bound, context).run
    slot, inner = context.bind(str(name), INT)
    image = compiled(body, inner)
    test = compiled(guard, inner).run if guard is not None else None

    def code(env: Env) -> Value:
        end = limit(env)
        if not isinstance(end, int):
            return end
        out: list[Value] = []
        for position in range(end):
            env[slot] = position
            held = test(env) if test else True
            value = image.run(env) if held is True else held
            if isinstance(value, Unknown):
                return value
            if held:
                out.append(value)
        return tuple(out)  # type: ignore[arg-type]

    return Compiled(code, Sort("list", image.sort))
