"""A requirement of an operator's text as a formula over what the text reads: sizes, numbers of axes, attributes, texts.

The connectives, relations and sums of the text stay; what they are applied to (`len(strides)`, `given pads`) becomes a
symbol of that name, and its value at the node a fact beside it. Functions of the text and short folds are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.formulas.terms import FALSE, TRUE, Term
from sonnx.semantics.operators.shapes.contents import Examining
from sonnx.semantics.operators.symbolic.expressions import evaluate, truth
from sonnx.semantics.operators.symbolic.folds import is_short, opened, steps
from sonnx.semantics.operators.symbolic.numbers import (
    Int,
    add,
    at_most,
    both,
    either,
    equal,
    floor_div,
    floor_mod,
    less,
    multiply,
    negate,
    opposite,
    subtract,
)
from sonnx.semantics.operators.symbolic.values import (
    Dead,
    ElementType,
    Function,
    Scope,
    Split,
    TextSymbol,
    Undefined,
    Value,
    settle_text,
)
from sonnx.spec.language.printer import print_expression
from sonnx.spec.language.syntax import Expr

from .formulas import plain, text_name

DEPTH = 3
"""Functions of the text are written out to this depth."""


class NoFormulaError(Exception):
    """A requirement in which nothing is about numbers, texts or presence."""


@dataclass(slots=True)
class Skeleton:
    """A formula under way. facts: the values of the symbols. leaves: symbols of what stays a truth value.

    relations: how many relations between numbers or texts the formula has.
    """

    facts: list[Term] = field(default_factory=list)
    symbols: dict[str, tuple[int, str]] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    relations: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an expression. at: what its symbols' names say beside the text, of steps and of functions."""

    scope: Scope
    at: str = ""
    depth: int = 0


def skeleton(expr: Expr, walk: Examining) -> tuple[Term, tuple[Term, ...], dict[str, tuple[int, str]]]:
    """The formula, its facts and its symbols. Raises NoFormulaError."""
    run = walk.run
    own = replace(run, symbols=dict(run.symbols), axioms=list(run.axioms), assumed=[], obligations=[], journal=set())
    made = Skeleton()
    try:
        goal = _formula(expr, Place(Scope(walk.env, own)), made)
    except (Split, Dead, Undefined, Unsupported, InternalError) as problem:
        raise NoFormulaError(str(problem)) from problem
    if not made.relations or goal in (TRUE, FALSE):
        raise NoFormulaError("no numbers or texts are compared")
    facts = (*walk.facts, *own.axioms, *made.facts, *(equal(Term(name), n) for name, n in made.texts.items()))
    return goal, facts, {**own.symbols, **made.symbols, **dict.fromkeys(made.texts, (0, "Int"))}


def _formula(expr: Expr, place: Place, skeleton: Skeleton) -> Term:
    parts = [part for part in expr.args if isinstance(part, Expr)]
    match expr.head:
        case "true" | "false":
            return TRUE if expr.head == "true" else FALSE
        case "and":
            return Term("and", tuple(_part(part, place, skeleton) for part in parts))
        case "or":
            return Term("or", tuple(_part(part, place, skeleton) for part in parts))
        case "not":
            return Term("not", (_formula(parts[0], place, skeleton),))
        case "implies":
            return Term("=>", (_formula(parts[0], place, skeleton), _part(parts[1], place, skeleton)))
        case "iff":
            return Term("=", tuple(_formula(part, place, skeleton) for part in parts))
        case "ite":
            condition = _formula(parts[0], place, skeleton)
            then, other = (_part(part, place, skeleton) for part in parts[1:])
            return both(either(opposite(condition), then), either(condition, other))
        case "given":
            skeleton.relations += 1
            return _leaf(expr, place, skeleton)
        case "compare":
            return _guarded(expr, place, skeleton, _comparison)
        case "fold" if expr.args[0] in ("all", "any"):
            return _guarded(expr, place, skeleton, _fold)
        case "call":
            return _guarded(expr, place, skeleton, _call)
    return _leaf(expr, place, skeleton)


def _part(expr: Expr, place: Place, skeleton: Skeleton) -> Term:
    """A part that may have no value, where what it is about is absent: then a symbol of which nothing is known."""
    try:
        return _formula(expr, place, skeleton)
    except Dead:
        return _symbol(print_expression(expr), place, "Bool", skeleton)


class _OpaqueError(Exception):
    """An expression that stays as it is."""


def _guarded(expr: Expr, place: Place, skeleton: Skeleton, read: Callable[[Expr, Place, Skeleton], Term]) -> Term:
    kept = len(skeleton.facts), dict(skeleton.symbols), dict(skeleton.texts), skeleton.relations
    try:
        return read(expr, place, skeleton)
    except _OpaqueError:
        del skeleton.facts[kept[0] :]
        skeleton.symbols, skeleton.texts, skeleton.relations = kept[1:]
        return _leaf(expr, place, skeleton)


def _leaf(expr: Expr, place: Place, skeleton: Skeleton) -> Term:
    """A truth value by its name, with what it is."""
    value = truth(expr, place.scope)
    symbol = _symbol(print_expression(expr), place, "Bool", skeleton)
    fact = symbol if value == TRUE else opposite(symbol) if value == FALSE else Term("=", (symbol, value))
    return _told(symbol, fact, skeleton)


def _symbol(text: str, place: Place, sort: str, skeleton: Skeleton) -> Term:
    name = plain(f"{text}{place.at}").replace("|", "!").replace("\\", "/")
    skeleton.symbols[f"|{name}|"] = (0, sort)
    return Term(f"|{name}|")


def _told(symbol: Term, fact: Term, skeleton: Skeleton) -> Term:
    if fact not in skeleton.facts:
        skeleton.facts.append(fact)
    return symbol


# ---- Relations --------------------------------------------------------------------------------

RELATIONS: dict[str, Callable[[Int, Int], Term]] = {
    "=": equal,
    "!=": lambda a, b: opposite(equal(a, b)),
    "<": less,
    "<=": at_most,
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: at_most(b, a),
}


def _comparison(expr: Expr, place: Place, skeleton: Skeleton) -> Term:
    operands = [part for part in expr.args[::2] if isinstance(part, Expr)]
    values = [_operand(part, place, skeleton) for part in operands]
    parts = [_related(str(relation), values[k], values[k + 1]) for k, relation in enumerate(expr.args[1::2])]
    skeleton.relations += 1
    return parts[0] if len(parts) == 1 else Term("and", tuple(parts))


Operand = Int | tuple[Int, tuple[Int, ...]]
"""A number or a text; of a list its length and its entries."""


def _related(relation: str, left: Operand, right: Operand) -> Term:
    if relation not in RELATIONS:
        raise _OpaqueError
    if not isinstance(left, tuple) or isinstance(left, Term):
        if not isinstance(right, tuple) or isinstance(right, Term):
            return RELATIONS[relation](left, right)
        return both(*(RELATIONS[relation](left, entry) for entry in right[1]))
    if not isinstance(right, tuple) or isinstance(right, Term):
        return both(*(RELATIONS[relation](entry, right) for entry in left[1]))
    if relation == "!=":
        return opposite(_related("=", left, right))
    pairs = zip(left[1], right[1], strict=False)
    return both(equal(left[0], right[0]), *(RELATIONS[relation](a, b) for a, b in pairs))


def _operand(expr: Expr, place: Place, skeleton: Skeleton) -> Operand:
    parts = [part for part in expr.args if isinstance(part, Expr)]
    if expr.head == "int":
        return int(str(expr.args[0]))
    if expr.head in ARITHMETIC:
        numbers = [_operand(part, place, skeleton) for part in parts]
        left, right = (n for n in numbers)
        if all(isinstance(n, int | Term) for n in numbers):
            return ARITHMETIC[expr.head](_number(left), _number(right))
    if expr.head == "neg":
        number = _operand(parts[0], place, skeleton)
        if isinstance(number, int | Term):
            return negate(number)
    value = evaluate(expr, place.scope)
    text = print_expression(expr)
    if isinstance(value, str | TextSymbol | ElementType):
        named = value.name if isinstance(value, ElementType) else settle_text(place.scope, value)
        constant = _text(named, skeleton)
        if expr.head == "text" or (isinstance(value, ElementType) and text == named):
            return constant
        symbol = _symbol(text, place, "Int", skeleton)
        return _told(symbol, equal(symbol, constant), skeleton)
    if isinstance(value, int | Term) and not isinstance(value, bool):
        return _known(text, value, place, skeleton)
    if type(value) is tuple:
        entries = tuple(_known(f"{text}[{k}]", entry, place, skeleton) for k, entry in enumerate(value))
        return _known(f"len({text})", len(value), place, skeleton), entries
    raise _OpaqueError


def _known(text: str, value: Value, place: Place, skeleton: Skeleton) -> Term:
    if not isinstance(value, int | Term) or isinstance(value, bool):
        raise _OpaqueError
    symbol = _symbol(text, place, "Int", skeleton)
    return _told(symbol, equal(symbol, value), skeleton)


def _number(operand: Operand) -> Int:
    if isinstance(operand, int | Term):
        return operand
    raise _OpaqueError


ARITHMETIC: dict[str, Callable[[Int, Int], Int]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "div": floor_div,
    "mod": floor_mod,
}


def _text(text: str, skeleton: Skeleton) -> Term:
    """The constant of a text: a number, another one for each text."""
    symbol = text_name(text)
    skeleton.texts.setdefault(symbol, len(skeleton.texts))
    return Term(symbol)


# ---- Folds and functions ----------------------------------------------------------------------


def _fold(expr: Expr, place: Place, skeleton: Skeleton) -> Term:
    fold = opened(expr, place.scope, evaluate)
    if not is_short(fold):
        raise _OpaqueError
    parts = list(_steps(expr, place, skeleton))
    if not parts:
        raise _OpaqueError
    return Term("and" if expr.args[0] == "all" else "or", tuple(parts)) if len(parts) > 1 else parts[0]


def _steps(expr: Expr, place: Place, skeleton: Skeleton) -> Iterator[Term]:
    fold = opened(expr, place.scope, evaluate)
    for step in steps(fold):
        at = f"{place.at} at {', '.join(map(str, step.index))}"
        part = _part(fold.body, Place(step.scope, at, place.depth), skeleton)
        if step.guard == TRUE:
            yield part
        else:
            yield Term("=>" if fold.name == "all" else "and", (step.guard, part))


def _call(expr: Expr, place: Place, skeleton: Skeleton) -> Term:
    name, *arguments = expr.args
    scope, function = place.scope, place.scope.env.get(str(name))
    declared = scope.run.functions.get(str(name))
    if not isinstance(function, Function):
        if declared is None or declared.body is None:
            raise _OpaqueError
        function = Function(str(name), declared.parameters, declared.body, {})
    if place.depth >= DEPTH or not isinstance(function.body, Expr):
        raise _OpaqueError
    values = [evaluate(part, scope) for part in arguments if isinstance(part, Expr)]
    names = {parameter.name: value for parameter, value in zip(function.parameters, values, strict=True)}
    inner = replace(scope, env={**function.env, **names})
    at = f" in {print_expression(expr)}{place.at}"
    return _formula(function.body, Place(inner, at, place.depth + 1), skeleton)
