"""The direct interpretation, values: arithmetic, comparison, membership, lists."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from sonnx.spec.elaborate.core import Core

from ...facts.structure import Element, SetTable, Unknown, Value
from .expressions import Compiled, Context, Env, compiled, constant, negated, rule, runs, strict
from .facts import KeyCode, key_of

SMALL = 8
"""Rows up to this length are scanned, longer ones are looked up in a hashed set."""

# ---- Arithmetic and comparison ----------------------------------------------------------------


def _floor_division(function: Callable[[int, int], int]) -> Callable[[int, int], Value]:
    return lambda left, right: function(left, right) if right else Unknown("division by zero")


ARITHMETIC: Mapping[str, Callable[[int, int], Value]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _floor_division(operator.floordiv),
    "mod": _floor_division(operator.mod),
}


@rule("arithmetic")
def _arithmetic(core: Core, context: Context) -> Compiled:
    return strict(runs(core, context), ARITHMETIC[core.name])


@rule("neg")
def _neg(core: Core, context: Context) -> Compiled:
    return strict([lambda _env: 0, *runs(core, context)], operator.sub)


ORDER: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@rule("compare")
def _compare(core: Core, context: Context) -> Compiled:
    left, right = core.parts
    match core.name:
        case "in" | "not in":
            contains, element = membership(right, context), compiled(left, context).run

            def contained(env: Env) -> Value:
                value = element(env)
                return value if isinstance(value, Unknown) else contains(env, value)

            result = Compiled(contained)
        case "=" | "!=":
            sets = any(part.sort is not None and part.sort.name == "set" for part in core.parts)
            result = strict(runs(core, context), _equal_sets if sets else _equal)
        case _:
            return strict(runs(core, context), ORDER[core.name])
    return Compiled(negated(result.run)) if core.name in ("!=", "not in") else result


def _equal(left: Value, right: Value) -> Value:
    if isinstance(left, tuple) and isinstance(right, tuple):
        if len(left) != len(right):
            return False
        unknown = next((item for item in (*left, *right) if isinstance(item, Unknown)), None)
        known = [(a, b) for a, b in zip(left, right, strict=True) if not isinstance(a, Unknown)]
        if any(a != b for a, b in known if not isinstance(b, Unknown)):
            return False
        return True if unknown is None else unknown
    return left == right


def _equal_sets(left: tuple[Element, ...], right: tuple[Element, ...]) -> Value:
    return frozenset(left) == frozenset(right)


def membership(domain: Core, context: Context) -> Callable[[Env, Value], Value]:
    """The test of an element for what `domain` denotes."""
    table = context.work.structure.table(domain.name) if domain.head == "fact" else None
    if isinstance(table, SetTable):
        return _in_row(key_of(domain, context), table)
    run = compiled(domain, context).run

    def scanned(env: Env, element: Value) -> Value:
        members = run(env)
        if not isinstance(members, tuple):
            return members
        if element in members:
            return True
        return next((item for item in members if isinstance(item, Unknown)), False)

    return scanned


def _in_row(key: KeyCode, table: SetTable) -> Callable[[Env, Value], Value]:
    run, find = key.run, table.rows.get

    def looked_up(env: Env, element: Value) -> Value:
        place = run(env)
        if isinstance(place, Unknown):
            return place
        row = find(place, ())
        return element in (row if len(row) <= SMALL else table.sets[place])

    return looked_up


# ---- Lists ------------------------------------------------------------------------------------


@rule("vector")
def _vector(core: Core, context: Context) -> Compiled:
    parts = runs(core, context)

    def code(env: Env) -> Value:
        values = tuple(part(env) for part in parts)
        unknown = next((value for value in values if isinstance(value, Unknown)), None)
        return values if unknown is None else unknown  # type: ignore[return-value]

    return constant(code([])) if all(part.head == "literal" for part in core.parts) else Compiled(code)


@rule("index")
def _index(core: Core, context: Context) -> Compiled:
    def at(values: tuple[Element, ...], place: int) -> Value:
        return values[place] if 0 <= place < len(values) else Unknown(f"no element {place} in a list of {len(values)}")

    return strict(runs(core, context), at)
