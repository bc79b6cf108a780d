"""The direct interpretation, expressions: one fold from the core to Python closures over the facts of a structure.

Truth is Kleene's: a connective is unknown only where its unknown parts matter. Every other operation is unknown as
soon as an argument is. The value of a fact at a key without a row is undefined, which is unknown with that reason.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sonnx.spec.elaborate.core import Binding, Core

from ...facts.structure import Key, Structure, Unknown, Value
from .. import reading

Env = list[Value]
Code = Callable[[Env], Value]
Atoms = Callable[[str], Callable[[Key], Value]]
"""The truth of the instances of an inductive symbol."""


class Compiled(NamedTuple):
    """What an expression denotes, given the values of its variables.

    sure: the value is never unknown. slot: where it lies in the environment, for a variable.
    """

    run: Code
    sure: bool = False
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What the fold reads, and the variables that slots were given to."""

    structure: Structure
    atoms: Atoms
    slots: list[Binding] = field(default_factory=list)


Context = reading.Context[Work, Compiled]
DIRECT = reading.Reading[Context, Compiled]("the direct evaluator")
"""The table of the fold, filled in this module and in `values`, `facts` and `sets`."""
rule, compiled = DIRECT.rule, DIRECT.meaning


def bind(variable: Binding, context: Context, *, sure: bool = True) -> tuple[int, Context]:
    """A fresh slot for a variable, and the context in which it is bound."""
    slot = len(context.work.slots)
    context.work.slots.append(variable)
    return slot, context.bind(variable, Compiled(operator.itemgetter(slot), sure, slot))


def runs(core: Core, context: Context) -> list[Code]:
    """What the parts of an expression denote."""
    return [compiled(part, context).run for part in core.parts]


def constant(value: Value) -> Compiled:
    """A value that depends on nothing."""
    return Compiled(lambda _env: value, not isinstance(value, Unknown))


def strict(parts: list[Code], function: Callable[..., Value]) -> Compiled:
    """A function of two arguments that is unknown where an argument is."""
    first, second = parts

    def code(env: Env) -> Value:
        left = first(env)
        if isinstance(left, Unknown):
            return left
        right = second(env)
        return right if isinstance(right, Unknown) else function(left, right)

    return Compiled(code)


# ---- Leaves and connectives -------------------------------------------------------------------


@rule("literal")
def _literal(core: Core, _context: Context) -> Compiled:
    return constant(core.value)


def negated(run: Code) -> Code:
    """Kleene's `not`."""

    def code(env: Env) -> Value:
        value = run(env)
        return value if isinstance(value, Unknown) else not value

    return code


@rule("not")
def _not(core: Core, context: Context) -> Compiled:
    return Compiled(negated(compiled(core.parts[0], context).run))


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
def _junction(core: Core, context: Context) -> Compiled:
    return Compiled(settled(runs(core, context), core.head == "or"))


@rule("implies")
def _implies(core: Core, context: Context) -> Compiled:
    left, right = runs(core, context)
    return Compiled(settled([negated(left), right], True))


@rule("iff")
def _iff(core: Core, context: Context) -> Compiled:
    return strict(runs(core, context), operator.is_)


@rule("ite")
def _ite(core: Core, context: Context) -> Compiled:
    condition, then, other = runs(core, context)

    def code(env: Env) -> Value:
        value = condition(env)
        if isinstance(value, Unknown):
            return value
        return then(env) if value else other(env)

    return Compiled(code)


@rule("case")
def _case(core: Core, context: Context) -> Compiled:
    subject, *bodies = runs(core, context)
    arms = {label: body for labels, body in zip(core.labels, bodies, strict=True) for label in labels}
    default = bodies[-1] if not core.labels[-1] else None

    def code(env: Env) -> Value:
        value = subject(env)
        if isinstance(value, Unknown):
            return value
        body = arms.get(value, default) if isinstance(value, str) else default
        return body(env) if body else Unknown(f"no case for {value}")

    return Compiled(code)
