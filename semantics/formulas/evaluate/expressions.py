"""The direct interpretation, expressions: one fold from `Expr` to Python closures over the facts of a structure.

Truth is Kleene's: a connective is unknown only where its unknown parts matter. Every other operation is unknown as
soon as an argument is. The value of a fact at a key without a row is undefined, which is unknown with that reason.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sonnx.spec.language.syntax import BOOL, INT, TEXT, Arm, Expr, FunctionDeclaration, Sort

from ...errors import InternalError
from ...facts.structure import Key, Structure, Unknown, Value

Functions = Mapping[str, FunctionDeclaration]
Env = list[Value]
Code = Callable[[Env], Value]
Atoms = Callable[[str], Callable[[Key], Value]]
"""The truth of the instances of an inductive symbol."""


class Compiled(NamedTuple):
    """What an expression denotes, given the values of its variables, and the sort of that.

    sure: the value is never unknown. slot: where it lies in the environment, for a variable.
    """

    run: Code
    sort: Sort
    sure: bool = False
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """Where the value of a variable lies in the environment, its sort, and whether it is never unknown."""

    slot: int
    sort: Sort
    sure: bool


@dataclass(frozen=True, slots=True)
class Context:
    """What the fold carries: the variables in scope, the slots given out, the definitions being expanded."""

    functions: Functions
    structure: Structure
    atoms: Atoms
    slots: list[Sort]
    scope: Mapping[str, Variable]
    expanding: tuple[str, ...] = ()

    def bind(self, name: str, sort: Sort, *, sure: bool = True) -> tuple[int, Context]:
        """A fresh slot for `name`, and the context in which it is bound."""
        slot = len(self.slots)
        self.slots.append(sort)
        scope = {**self.scope, name: Variable(slot, sort, sure)}
        return slot, Context(self.functions, self.structure, self.atoms, self.slots, scope, self.expanding)


Rule = Callable[[Expr, Context], Compiled]
RULES: dict[str, Rule] = {}
"""The table of the fold: what each head means. `sets` adds quantifiers and comprehensions."""


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


def constant(value: Value, sort: Sort) -> Compiled:
    """A value that depends on nothing."""
    return Compiled(lambda _env: value, sort, not isinstance(value, Unknown))


def strict(parts: list[Code], function: Callable[..., Value], sort: Sort) -> Compiled:
    """A function of two arguments that is unknown where an argument is."""
    first, second = parts

    def code(env: Env) -> Value:
        left = first(env)
        if isinstance(left, Unknown):
            return left
        right = second(env)
        return right if isinstance(right, Unknown) else function(left, right)

    return Compiled(code, sort)


# ---- Leaves and connectives -------------------------------------------------------------------


@rule("true", "false")
def _truth(expr: Expr, _context: Context) -> Compiled:
    return constant(expr.head == "true", BOOL)


@rule("int", "text")
def _literal(expr: Expr, _context: Context) -> Compiled:
    (value,) = expr.args
    if not isinstance(value, (int, str)):
        raise InternalError(f"a literal holds {value!r}")
    return constant(value, INT if expr.head == "int" else TEXT)


@rule("var")
def _variable(expr: Expr, context: Context) -> Compiled:
    name = str(expr.args[0])
    if name not in context.scope:
        raise InternalError(f"the variable {name} is not bound")
    variable = context.scope[name]
    return Compiled(operator.itemgetter(variable.slot), variable.sort, variable.sure, variable.slot)


@rule("not")
def _not(expr: Expr, context: Context) -> Compiled:
    run = compiled(expr.args[0], context).run

    def code(env: Env) -> Value:
        value = run(env)
        return value if isinstance(value, Unknown) else not value

    return Compiled(code, BOOL)


def settled(parts: list[Code], settles: bool) -> Code:
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
    return Compiled(settled([compiled(part, context).run for part in expr.args], expr.head == "or"), BOOL)


@rule("implies")
def _implies(expr: Expr, context: Context) -> Compiled:
    left, right = expr.args
    return Compiled(settled([_not(Expr("not", (left,)), context).run, compiled(right, context).run], True), BOOL)


@rule("iff")
def _iff(expr: Expr, context: Context) -> Compiled:
    return strict([compiled(part, context).run for part in expr.args], operator.is_, BOOL)


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
