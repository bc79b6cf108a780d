"""The smt interpretation, expressions: literals, connectives and choices."""

from __future__ import annotations

from collections.abc import Callable

from sonnx.spec.language.syntax import BOOL, INT, TEXT, Arm, Expr, Sort

from ...errors import InternalError
from ...facts.structure import Element
from ..terms import FALSE, TRUE, Argument, Term, disjunction, equivalence, implication, negation
from .meanings import Context, Env, Meaning, Scalar, Truth, literal, meaning, rule, scalar, truth
from .symbols import Symbols

# ---- Leaves and connectives -------------------------------------------------------------------


@rule("true", "false")
def _truth_value(expr: Expr, _context: Context) -> Meaning:
    value = TRUE if expr.head == "true" else FALSE
    return Truth(lambda _env: value)


@rule("int", "text")
def _literal(expr: Expr, context: Context) -> Meaning:
    (value,) = expr.args
    if not isinstance(value, (int, str)):
        raise InternalError(f"a literal holds {value!r}")
    return literal(value, INT if expr.head == "int" else TEXT, context.symbols)


@rule("var")
def _variable(expr: Expr, context: Context) -> Meaning:
    name = str(expr.args[0])
    if name not in context.scope:
        raise InternalError(f"the variable {name} is not bound")
    return context.scope[name]


@rule("not")
def _not(expr: Expr, context: Context) -> Meaning:
    part = truth(expr.args[0], context.with_polarity(-context.polarity))
    return Truth(lambda env: negation(part(env)))


@rule("and", "or")
def _junction(expr: Expr, context: Context) -> Meaning:
    parts = [truth(part, context) for part in expr.args]
    unit, zero, join = (TRUE, FALSE, "and") if expr.head == "and" else (FALSE, TRUE, "or")

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
def _implies(expr: Expr, context: Context) -> Meaning:
    left = truth(expr.args[0], context.with_polarity(-context.polarity))
    right = truth(expr.args[1], context)

    def term(env: Env) -> Argument:
        condition = left(env)
        return TRUE if condition is FALSE else implication(condition, right(env))

    return Truth(term)


@rule("iff")
def _iff(expr: Expr, context: Context) -> Meaning:
    left, right = (truth(part, context.inner()) for part in expr.args)
    return Truth(lambda env: equivalence(left(env), right(env)))


# ---- Choices ----------------------------------------------------------------------------------


@rule("ite")
def _ite(expr: Expr, context: Context) -> Meaning:
    condition = truth(expr.args[0], context.inner())
    return _choice(condition, *(meaning(part, context) for part in expr.args[1:]))


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

        return Scalar(one.sort, value, lambda env: _select(condition(env), one.term, two.term, env))
    raise InternalError("a choice is between formulas, or between numbers, texts or elements")


def _select(test: Argument, then: Callable[[Env], Argument], other: Callable[[Env], Argument], env: Env) -> Argument:
    if test is TRUE:
        return then(env)
    if test is FALSE:
        return other(env)
    yes, no = then(env), other(env)
    return yes if yes == no else Term("ite", (test, yes, no))


@rule("case")
def _case(expr: Expr, context: Context) -> Meaning:
    """A subject whose value is known selects its arm under the guard that it has this value; else a chain of tests."""
    subject, symbols = scalar(expr.args[0], context), context.symbols
    arms: dict[str, Meaning] = {}
    tests: list[tuple[tuple[str, ...], Meaning]] = []
    default: Meaning | None = None
    for arm in expr.args[1:]:
        if isinstance(arm, Arm):
            body = meaning(arm.body, context)
            if arm.labels:
                tests.append((arm.labels, body))
                for label in arm.labels:
                    arms.setdefault(label, body)
            elif default is None:
                default = body
    sample = next(iter(arms.values()), default)
    if not isinstance(sample, (Truth, Scalar)):
        raise InternalError("a case has formulas, or numbers, texts or elements")
    sort = BOOL if isinstance(sample, Truth) else sample.sort

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

    return Truth(term) if sort == BOOL else Scalar(sort, known, term)


def _term(found: Meaning, env: Env) -> Argument:
    if not isinstance(found, (Truth, Scalar)):
        raise InternalError("a formula, a number, a text or an element was expected")
    return found.term(env)


def guarded(subject: Argument, value: Element, result: Argument, sort: Sort, symbols: Symbols) -> Argument:
    """`result` where the subject has the value which the facts give it; elsewhere anything."""
    test = Term("=", (subject, symbols.number(value)))
    if result is TRUE:
        return Term("or", (test, symbols.irrelevant(sort)))
    if result is FALSE:
        return Term("and", (Term("not", (test,)), symbols.irrelevant(sort)))
    return Term("ite", (test, result, symbols.irrelevant(sort)))
