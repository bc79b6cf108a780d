"""The smt interpretation, expressions: literals, connectives and choices."""

from __future__ import annotations

from collections.abc import Callable

from sonnx.spec.elaborate.core import Core
from sonnx.spec.language.syntax import BOOL, Sort

from ...errors import InternalError
from ...facts.structure import Element
from ..terms import FALSE, TRUE, Argument, Term, disjunction, equivalence, implication, negation
from .meanings import Context, Env, Meaning, Scalar, Truth, meaning, rule, scalar, truth
from .symbols import Symbols

# ---- Leaves and connectives -------------------------------------------------------------------


@rule("literal")
def _literal(core: Core, context: Context) -> Meaning:
    value, number = core.value, context.work.symbols.number
    if isinstance(value, bool):
        constant = TRUE if value else FALSE
        return Truth(lambda _env: constant)
    return Scalar(lambda _env: value, lambda _env: number(value), rigid=True)


@rule("not")
def _not(core: Core, context: Context) -> Meaning:
    part = truth(core.parts[0], context.with_polarity(-context.polarity))
    return Truth(lambda env: negation(part(env)))


@rule("and", "or")
def _junction(core: Core, context: Context) -> Meaning:
    parts = [truth(part, context) for part in core.parts]
    unit, zero, join = (TRUE, FALSE, "and") if core.head == "and" else (FALSE, TRUE, "or")

    def term(env: Env) -> Argument:
        found: list[Argument] = []
        for part in parts:
            one = part(env)
            if one is zero:
                return zero
            if one is not unit:
                found.append(one)
        return unit if not found else found[0] if len(found) == 1 else Term(join, tuple(found))

    return Truth(term)


@rule("implies")
def _implies(core: Core, context: Context) -> Meaning:
    left = truth(core.parts[0], context.with_polarity(-context.polarity))
    right = truth(core.parts[1], context)

    def term(env: Env) -> Argument:
        condition = left(env)
        return TRUE if condition is FALSE else implication(condition, right(env))

    return Truth(term)


@rule("iff")
def _iff(core: Core, context: Context) -> Meaning:
    left, right = (truth(part, context.inner()) for part in core.parts)
    return Truth(lambda env: equivalence(left(env), right(env)))


# ---- Choices ----------------------------------------------------------------------------------


@rule("ite")
def _ite(core: Core, context: Context) -> Meaning:
    condition = truth(core.parts[0], context.inner())
    return _choice(condition, *(meaning(part, context) for part in core.parts[1:]))


def _choice(condition: Callable[[Env], Argument], then: Meaning, other: Meaning) -> Meaning:
    if isinstance(then, Truth) and isinstance(other, Truth):
        yes, no = then.term, other.term
        return Truth(lambda env: _select(condition(env), yes, no, env))
    if isinstance(then, Scalar) and isinstance(other, Scalar):
        one, two = then, other

        def value(env: Env) -> Element | None:
            test = condition(env)
            left, right = one.value(env), two.value(env)
            return left if test is TRUE or left == right else right if test is FALSE else None

        return Scalar(value, lambda env: _select(condition(env), one.term, two.term, env))
    raise InternalError("a choice is between formulas, or between numbers, texts or elements")


def _select(test: Argument, then: Callable[[Env], Argument], other: Callable[[Env], Argument], env: Env) -> Argument:
    if test is TRUE:
        return then(env)
    if test is FALSE:
        return other(env)
    yes, no = then(env), other(env)
    return yes if yes == no else Term("ite", (test, yes, no))


@rule("case")
def _case(core: Core, context: Context) -> Meaning:
    """A subject whose value is known selects its arm under the guard that it has this value; else a chain of tests."""
    subject, symbols, sort = scalar(core.parts[0], context), context.work.symbols, core.sort
    bodies = [meaning(body, context) for body in core.parts[1:]]
    tests = [(labels, body) for labels, body in zip(core.labels, bodies, strict=True) if labels]
    arms = {label: body for labels, body in tests for label in labels}
    default = None if core.labels[-1] else bodies[-1]

    def term(env: Env) -> Argument:
        value = subject.value(env)
        if value is not None:
            chosen = arms.get(str(value), default)
            result = symbols.unknown(sort) if chosen is None else _term(chosen, env)
            return result if subject.rigid else guarded(subject.term(env), value, result, sort, symbols)
        result = symbols.unknown(sort) if default is None else _term(default, env)
        for labels, body in reversed(tests):
            same: list[Argument] = [Term("=", (subject.term(env), symbols.number(label))) for label in labels]
            result = Term("ite", (disjunction(same), _term(body, env), result))
        return result

    def known(env: Env) -> Element | None:
        value = subject.value(env)
        chosen = None if value is None else arms.get(str(value), default)
        return chosen.value(env) if isinstance(chosen, Scalar) else None

    return Truth(term) if sort == BOOL else Scalar(known, term)


def _term(found: Meaning, env: Env) -> Argument:
    if not isinstance(found, (Truth, Scalar)):
        raise InternalError("a formula, a number, a text or an element was expected")
    return found.term(env)


def guarded(subject: Argument, value: Element, result: Argument, sort: Sort | None, symbols: Symbols) -> Argument:
    """`result` where the subject has the value which the facts give it; elsewhere anything."""
    test = Term("=", (subject, symbols.number(value)))
    if result is TRUE:
        return Term("or", (test, symbols.irrelevant(sort)))
    if result is FALSE:
        return Term("and", (Term("not", (test,)), symbols.irrelevant(sort)))
    return Term("ite", (test, result, symbols.irrelevant(sort)))
