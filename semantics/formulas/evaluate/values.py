"""The direct interpretation, values: arithmetic, comparison, membership, lists."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from sonnx.spec.language.syntax import BOOL, INT, Expr, Sort

from ...errors import InternalError
from ...facts.structure import Element, SetTable, Unknown, Value
from .expressions import Code, Compiled, Context, Env, compiled, constant, rule, settled, strict
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


@rule(*ARITHMETIC)
def _arithmetic(expr: Expr, context: Context) -> Compiled:
    return strict([compiled(part, context).run for part in expr.args], ARITHMETIC[expr.head], INT)


@rule("neg")
def _neg(expr: Expr, context: Context) -> Compiled:
    run = compiled(expr.args[0], context).run
    return strict([lambda _env: 0, run], operator.sub, INT)


ORDER: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@rule("compare")
def _compare(expr: Expr, context: Context) -> Compiled:
    links = [
        _link(expr.args[i], str(expr.args[i + 1]), expr.args[i + 2], context) for i in range(0, len(expr.args) - 2, 2)
    ]
    return Compiled(links[0] if len(links) == 1 else settled(links, False), BOOL)


def _link(left: object, relation: str, right: object, context: Context) -> Code:
    if relation in ("in", "not in"):
        found = membership(right, context)
        element = compiled(left, context).run

        def contained(env: Env) -> Value:
            value = element(env)
            return value if isinstance(value, Unknown) else found(env, value)

        return contained if relation == "in" else _negated(contained)
    one, other = compiled(left, context), compiled(right, context)
    if relation in ("=", "!="):
        equal = _equal_sets if "set" in (one.sort.name, other.sort.name) else _equal
        same = strict([one.run, other.run], equal, BOOL).run
        return same if relation == "=" else _negated(same)
    if one.sort != INT or other.sort != INT:
        raise InternalError(f"'{relation}' compares integers, not {one.sort} and {other.sort}")
    return strict([one.run, other.run], ORDER[relation], BOOL).run


def _negated(run: Code) -> Code:
    def code(env: Env) -> Value:
        value = run(env)
        return value if isinstance(value, Unknown) else not value

    return code


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


def membership(domain: object, context: Context) -> Callable[[Env, Value], Value]:
    """Whether an element is in what `domain` denotes."""
    members = compiled(domain, context)
    if isinstance(domain, Expr) and domain.head == "call" and str(domain.args[0]) in context.functions:
        declaration = context.functions[str(domain.args[0])]
        table = context.structure.table(declaration.name) if declaration.kind == "fact" else None
        if isinstance(table, SetTable):
            return _in_row(key_of(domain.args[1:], context), table)

    def scanned(env: Env, element: Value) -> Value:
        found = members.run(env)
        if not isinstance(found, tuple):
            return found
        if element in found:
            return True
        return next((item for item in found if isinstance(item, Unknown)), False)

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
def _vector(expr: Expr, context: Context) -> Compiled:
    parts = [compiled(part, context) for part in expr.args]

    def code(env: Env) -> Value:
        values = tuple(part.run(env) for part in parts)
        unknown = next((value for value in values if isinstance(value, Unknown)), None)
        return values if unknown is None else unknown  # type: ignore[return-value]

    if all(isinstance(part, Expr) and part.head in ("int", "text") for part in expr.args):
        return constant(code([]), Sort("list", parts[0].sort if parts else INT))
    return Compiled(code, Sort("list", parts[0].sort))


@rule("index")
def _index(expr: Expr, context: Context) -> Compiled:
    if len(expr.args) != 2:
        raise InternalError("a list takes one index")
    items, position = compiled(expr.args[0], context), compiled(expr.args[1], context)

    def at(values: tuple[Element, ...], place: int) -> Value:
        return values[place] if 0 <= place < len(values) else Unknown(f"no element {place} in a list of {len(values)}")

    return strict([items.run, position.run], at, items.sort.element or INT)
