"""The direct interpretation, expressions: one fold from `Expr` to Python closures over the facts of a structure.

Truth is Kleene's: a connective is unknown only where its unknown parts matter. Every other operation is unknown as
soon as an argument is. The value of a fact at a key without a row is undefined, which is unknown with that reason.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from sonnx.semantics.errors import InternalError
from sonnx.semantics.structure import Element, Key, SetTable, Structure, Unknown, Value, ValueTable
from sonnx.spec.syntax import BOOL, INT, TEXT, Arm, Expr, FunctionDeclaration, Sort

Functions = Mapping[str, FunctionDeclaration]
Env = list[Value]
Code = Callable[[Env], Value]
Atoms = Callable[[str], Callable[[Key], Value]]
"""The truth of the instances of an inductive symbol."""

SMALL = 8
"""Rows up to this length are scanned, longer ones are looked up in a hashed set."""


class Compiled(NamedTuple):
    """What an expression denotes, given the values of its variables, and the sort of that."""

    run: Code
    sort: Sort


@dataclass(frozen=True, slots=True)
class Variable:
    """Where the value of a variable lies in the environment, and its sort."""

    slot: int
    sort: Sort


@dataclass(frozen=True, slots=True)
class Context:
    """What the fold carries: the variables in scope, the slots given out, the definitions being expanded."""

    functions: Functions
    structure: Structure
    atoms: Atoms
    slots: list[Sort]
    scope: Mapping[str, Variable]
    expanding: tuple[str, ...] = ()

    def bind(self, name: str, sort: Sort) -> tuple[int, Context]:
        """A fresh slot for `name`, and the context in which it is bound."""
        slot = len(self.slots)
        self.slots.append(sort)
        return slot, replace(self, scope={**self.scope, name: Variable(slot, sort)})


Rule = Callable[[Expr, Context], Compiled]
RULES: dict[str, Rule] = {}
"""The table of the fold: what each head means. `direct_sets` adds quantifiers and comprehensions."""


def rule(*heads: str) -> Callable[[Rule], Rule]:
    """Enter a function in the table."""

    def enter(function: Rule) -> Rule:
        for head in heads:
            RULES[head] = function
        return function

    return enter


def compiled(expr: object, context: Context) -> Compiled:
    """The closure of an expression. Raises InternalError for one that constraints may not contain."""
    if not isinstance(expr, Expr) or expr.head not in RULES:
        found = expr.head if isinstance(expr, Expr) else type(expr).__name__
        raise InternalError(f"the direct evaluator gives no meaning to '{found}'")
    return RULES[expr.head](expr, context)


def _constant(value: Value, sort: Sort) -> Compiled:
    return Compiled(lambda _env: value, sort)


# ---- Leaves and connectives -------------------------------------------------------------------


@rule("true", "false")
def _truth(expr: Expr, _context: Context) -> Compiled:
    return _constant(expr.head == "true", BOOL)


@rule("int", "text")
def _literal(expr: Expr, _context: Context) -> Compiled:
    (value,) = expr.args
    if not isinstance(value, (int, str)):
        raise InternalError(f"a literal holds {value!r}")
    return _constant(value, INT if expr.head == "int" else TEXT)


@rule("var")
def _variable(expr: Expr, context: Context) -> Compiled:
    name = str(expr.args[0])
    if name not in context.scope:
        raise InternalError(f"the variable {name} is not bound")
    variable = context.scope[name]
    return Compiled(operator.itemgetter(variable.slot), variable.sort)


@rule("not")
def _not(expr: Expr, context: Context) -> Compiled:
    run = compiled(expr.args[0], context).run

    def code(env: Env) -> Value:
        value = run(env)
        return value if isinstance(value, Unknown) else not value

    return Compiled(code, BOOL)


def _settled(parts: list[Code], settles: bool) -> Code:
    """Kleene's `or` (settled by true) or `and` (settled by false)."""
    if len(parts) == 2:
        first, second = parts

        def pair(env: Env) -> Value:
            left = first(env)
            if left is settles:
                return settles
            right = second(env)
            return left if isinstance(left, Unknown) and right is not settles else right

        return pair

    def code(env: Env) -> Value:
        result: Value = not settles
        for part in parts:
            value = part(env)
            if value is settles:
                return settles
            if isinstance(value, Unknown) and not isinstance(result, Unknown):
                result = value
        return result

    return code


@rule("and", "or")
def _junction(expr: Expr, context: Context) -> Compiled:
    return Compiled(_settled([compiled(part, context).run for part in expr.args], expr.head == "or"), BOOL)


@rule("implies")
def _implies(expr: Expr, context: Context) -> Compiled:
    left, right = expr.args
    return Compiled(_settled([_not(Expr("not", (left,)), context).run, compiled(right, context).run], True), BOOL)


@rule("iff")
def _iff(expr: Expr, context: Context) -> Compiled:
    return _strict([compiled(part, context).run for part in expr.args], operator.is_, BOOL)


@rule("ite")
def _ite(expr: Expr, context: Context) -> Compiled:
    condition, then, other = (compiled(part, context) for part in expr.args)

    def code(env: Env) -> Value:
        value = condition.run(env)
        if isinstance(value, Unknown):
            return value
        return then.run(env) if value else other.run(env)

    return Compiled(code, then.sort)


@rule("case")
def _case(expr: Expr, context: Context) -> Compiled:
    subject = compiled(expr.args[0], context).run
    arms: dict[str, Compiled] = {}
    default: Compiled | None = None
    for arm in expr.args[1:]:
        if isinstance(arm, Arm):
            body = compiled(arm.body, context)
            if not arm.labels and default is None:
                default = body
            for label in arm.labels:
                arms.setdefault(label, body)
    bodies = [*arms.values(), *([default] if default else [])]

    def code(env: Env) -> Value:
        value = subject(env)
        if isinstance(value, Unknown):
            return value
        body = arms.get(value, default) if isinstance(value, str) else default
        return body.run(env) if body else Unknown(f"no case for {value}")

    return Compiled(code, bodies[0].sort)


# ---- Arithmetic and comparison ----------------------------------------------------------------


def _strict(parts: list[Code], function: Callable[..., Value], sort: Sort) -> Compiled:
    """A function of two arguments that is unknown where an argument is."""
    first, second = parts

    def code(env: Env) -> Value:
        left = first(env)
        if isinstance(left, Unknown):
            return left
        right = second(env)
        return right if isinstance(right, Unknown) else function(left, right)

    return Compiled(code, sort)


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
    return _strict([compiled(part, context).run for part in expr.args], ARITHMETIC[expr.head], INT)


@rule("neg")
def _neg(expr: Expr, context: Context) -> Compiled:
    run = compiled(expr.args[0], context).run
    return _strict([lambda _env: 0, run], operator.sub, INT)


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
    return Compiled(links[0] if len(links) == 1 else _settled(links, False), BOOL)


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
        same = _strict([one.run, other.run], equal, BOOL).run
        return same if relation == "=" else _negated(same)
    if one.sort != INT or other.sort != INT:
        raise InternalError(f"'{relation}' compares integers, not {one.sort} and {other.sort}")
    return _strict([one.run, other.run], ORDER[relation], BOOL).run


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
            key, rows, relation = key_of(domain.args[1:], context), table.rows, table

            def looked_up(env: Env, element: Value) -> Value:
                place = key(env)
                if isinstance(place, Unknown):
                    return place
                row = rows.get(place, ())
                return element in (row if len(row) <= SMALL else relation.sets[place])

            return looked_up

    def scanned(env: Env, element: Value) -> Value:
        found = members.run(env)
        if not isinstance(found, tuple):
            return found
        if element in found:
            return True
        return next((item for item in found if isinstance(item, Unknown)), False)

    return scanned


# ---- Lists ------------------------------------------------------------------------------------


@rule("vector")
def _vector(expr: Expr, context: Context) -> Compiled:
    parts = [compiled(part, context) for part in expr.args]

    def code(env: Env) -> Value:
        values = tuple(part.run(env) for part in parts)
        unknown = next((value for value in values if isinstance(value, Unknown)), None)
        return values if unknown is None else unknown  # type: ignore[return-value]

    if all(isinstance(part, Expr) and part.head in ("int", "text") for part in expr.args):
        return _constant(code([]), Sort("list", parts[0].sort if parts else INT))
    return Compiled(code, Sort("list", parts[0].sort))


@rule("index")
def _index(expr: Expr, context: Context) -> Compiled:
    if len(expr.args) != 2:
        raise InternalError("a list takes one index")
    items, position = compiled(expr.args[0], context), compiled(expr.args[1], context)

    def at(values: tuple[Element, ...], place: int) -> Value:
        return values[place] if 0 <= place < len(values) else Unknown(f"no element {place} in a list of {len(values)}")

    return _strict([items.run, position.run], at, items.sort.element or INT)


# ---- Applications -----------------------------------------------------------------------------


def key_of(arguments: tuple[object, ...], context: Context) -> Callable[[Env], Key | Unknown]:
    """The key of a table for these arguments."""
    parts = [compiled(argument, context).run for argument in arguments]
    if not parts:
        return lambda _env: ()
    if len(parts) == 1:
        return parts[0]  # type: ignore[return-value]

    def code(env: Env) -> Key | Unknown:
        values = tuple(part(env) for part in parts)
        return next((value for value in values if isinstance(value, Unknown)), values)  # type: ignore[return-value]

    return code


@rule("call")
def _call(expr: Expr, context: Context) -> Compiled:
    name, *arguments = expr.args
    if name == "len":
        run = compiled(arguments[0], context).run

        def length(env: Env) -> Value:
            value = run(env)
            return len(value) if isinstance(value, tuple) else value

        return Compiled(length, INT)
    declaration = context.functions.get(str(name))
    if declaration is None or declaration.kind == "fun":
        raise InternalError(f"the direct evaluator does not know the function {name}")
    if declaration.kind == "define":
        return _expanded(declaration, arguments, context)
    key = key_of(tuple(arguments), context)
    if declaration.kind == "inductive":
        truth = context.atoms(declaration.name)
        return Compiled(lambda env: place if isinstance(place := key(env), Unknown) else truth(place), BOOL)
    return Compiled(_fact(declaration, key, context.structure), declaration.result)


def _fact(declaration: FunctionDeclaration, key: Callable[[Env], Key | Unknown], structure: Structure) -> Code:
    name, table = declaration.name, structure.table(declaration.name)
    if isinstance(table, SetTable):
        members = table.rows

        def row(env: Env) -> Value:
            place = key(env)
            return place if isinstance(place, Unknown) else members.get(place, ())

        return row
    rows = table.rows

    def value(env: Env) -> Value:
        place = key(env)
        if isinstance(place, Unknown):
            return place
        found = rows.get(place)
        return _undefined(declaration, place, structure) if found is None else found

    if not isinstance(table, ValueTable):
        raise InternalError(f"the table of {name} is a {type(table).__name__}")
    return value


def _undefined(declaration: FunctionDeclaration, key: Key, structure: Structure) -> Unknown:
    parts = key if isinstance(key, tuple) else (key,)
    shown = [
        repr(part) if parameter.sort in (BOOL, INT, TEXT) else structure.place(parameter.sort, part)
        for part, parameter in zip(parts, declaration.parameters, strict=True)
    ]
    return Unknown(f"{declaration.name}({', '.join(shown)}) is undefined")


def _expanded(declaration: FunctionDeclaration, arguments: list[object] | list[str], context: Context) -> Compiled:
    """The body of a definition, its parameters bound to the arguments; a variable as argument is not copied."""
    if declaration.name in context.expanding:
        raise InternalError(f"the definition of {declaration.name} is recursive")
    inner = replace(context, scope={}, expanding=(*context.expanding, declaration.name))
    copies: list[tuple[int, Code]] = []
    for parameter, argument in zip(declaration.parameters, arguments, strict=True):
        if isinstance(argument, Expr) and argument.head == "var":
            variable = context.scope[str(argument.args[0])]
            inner = replace(inner, scope={**inner.scope, parameter.name: variable})
        else:
            slot, inner = inner.bind(parameter.name, parameter.sort)
            copies.append((slot, compiled(argument, context).run))
    body = compiled(declaration.body, inner).run
    if not copies:
        return Compiled(body, declaration.result)

    def code(env: Env) -> Value:
        for slot, run in copies:
            env[slot] = run(env)
        return body(env)

    return Compiled(code, declaration.result)
