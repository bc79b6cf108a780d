"""The direct interpretation, finite sets: quantifiers and comprehensions as loops over members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from sonnx.spec.elaborate.core import TRUE, Bound, Core

from ...errors import InternalError
from ...facts.structure import Element, Key, SetTable, Unknown, Value
from . import indexed
from .expressions import Compiled, Context, Env, bind, compiled, rule
from .values import membership

Members = Callable[[Env], Iterable[Element] | Unknown]
"""The members of a domain, each once, in order."""


def distinct(domain: Core, context: Context) -> Members:
    """The members of a set, or of a list without its repetitions."""
    whole = compiled(domain, context)
    run, is_set = whole.run, domain.sort is not None and domain.sort.name == "set"
    if whole.sure and is_set:
        return run  # type: ignore[return-value]

    def members(env: Env) -> Iterable[Element] | Unknown:
        value = run(env)
        if isinstance(value, tuple):
            return value if is_set else dict.fromkeys(value)
        if isinstance(value, Unknown):
            return value
        raise InternalError(f"a quantifier ranges over {value!r}")

    return members


def domain(quantifier: str, bound: Bound, body: Core, context: Context) -> Members:
    """The members of a domain that matter, through an index where the body gives one."""
    members = distinct(bound.domain, context)
    index = indexed.index(quantifier, bound.variable, body, context.scope)
    table = context.work.structure.table(index.relation) if index else None
    if index is None or not isinstance(table, SetTable):
        return members
    inverse, at = table.inverse, compiled(index.element, context).run
    inside = membership(bound.domain, context)

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

    return looked_up


def _single(key: Key) -> Element:
    if isinstance(key, tuple):
        raise InternalError("an index is over relations with one argument")
    return key


@rule("forall", "exists")
def _quantified(core: Core, context: Context) -> Compiled:
    members, slot, remaining, inner = outermost(core, context)
    run, settles = compiled(remaining, inner).run, core.head == "exists"

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

    return Compiled(code)


def outermost(core: Core, context: Context) -> tuple[Members, int, Core, Context]:
    """The first variable of a quantifier: what it runs through, its slot, and what is left with its context."""
    first, *rest = core.bound
    remaining = replace(core, bound=tuple(rest)) if rest else core.parts[0]
    members = domain(core.head, first, remaining, context)
    slot, inner = bind(first.variable, context)
    return members, slot, remaining, inner


@rule("unique")
def _unique(core: Core, context: Context) -> Compiled:
    """Exactly one assignment of members satisfies the body."""
    (body,) = core.parts
    loops, inner = _loops("unique", core.bound, body, context)
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

    return Compiled(code)


Loop = tuple[int, Members]
"""The slot of a variable and the members that it runs through."""


def _loops(quantifier: str, bound: Sequence[Bound], body: Core, context: Context) -> tuple[list[Loop], Context]:
    """Nested loops over variables, and the context inside of them."""
    loops: list[Loop] = []
    for position, item in enumerate(bound):
        last = position == len(bound) - 1
        members = domain(quantifier, item, body if last else TRUE, context)
        slot, context = bind(item.variable, context)
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


@rule("set")
def _set(core: Core, context: Context) -> Compiled:
    element, guard = core.parts
    loops, inner = _loops("exists", core.bound, guard, context)
    test, image = compiled(guard, inner).run, compiled(element, inner).run

    def code(env: Env) -> Value:
        members: dict[Element, None] = {}
        for outcome in _each(loops, env):
            kept = outcome if isinstance(outcome, Unknown) else test(env)
            value = image(env) if kept is True else kept
            if isinstance(value, (Unknown, tuple)):
                return value
            if kept:
                members[value] = None
        return tuple(members)

    return Compiled(code)


@rule("list")
def _list(core: Core, context: Context) -> Compiled:
    (bound,) = core.bound
    limit = compiled(bound.domain, context).run
    slot, inner = bind(bound.variable, context)
    image, test = (compiled(part, inner).run for part in core.parts)

    def code(env: Env) -> Value:
        end = limit(env)
        if not isinstance(end, int):
            return end
        out: list[Value] = []
        for position in range(end):
            env[slot] = position
            kept = test(env)
            value = image(env) if kept is True else kept
            if isinstance(value, Unknown):
                return value
            if kept:
                out.append(value)
        return tuple(out)  # type: ignore[arg-type]

    return Compiled(code)
