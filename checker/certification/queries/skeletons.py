"""A requirement of an operator's text as a formula over what the text reads: sizes, numbers of axes, attributes, texts.

The connectives, relations and sums of the text stay; what they are applied to (`len(strides)`, `given pads`) becomes a
symbol of that name, and its value at the node a fact beside it. Functions of the text and short folds are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.formulas.terms import FALSE, TRUE, Term
from sonnx.semantics.operators.reading import Function, links
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
    Scope,
    Split,
    TextSymbol,
    Undefined,
    Value,
    settle_text,
)
from sonnx.spec.elaborate.core import Core
from sonnx.spec.elaborate.written import text_of
from sonnx.spec.language.syntax import TEXT

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


def skeleton(core: Core, walk: Examining) -> tuple[Term, tuple[Term, ...], dict[str, tuple[int, str]]]:
    """The formula, its facts and its symbols. Raises NoFormulaError."""
    run = walk.run
    own = replace(run, symbols=dict(run.symbols), axioms=list(run.axioms), assumed=[], obligations=[], journal=set())
    made = Skeleton()
    try:
        goal = _formula(core, Place(Scope(walk.env, own)), made)
    except (Split, Dead, Undefined, Unsupported, InternalError) as problem:
        raise NoFormulaError(str(problem)) from problem
    if not made.relations or goal in (TRUE, FALSE):
        raise NoFormulaError("no numbers or texts are compared")
    facts = (*walk.facts, *own.axioms, *made.facts, *(equal(Term(name), n) for name, n in made.texts.items()))
    return goal, facts, {**own.symbols, **made.symbols, **dict.fromkeys(made.texts, (0, "Int"))}


def _formula(core: Core, place: Place, skeleton: Skeleton) -> Term:
    parts = core.parts
    match core.head:
        case "literal" if isinstance(core.value, bool):
            return TRUE if core.value else FALSE
        case "and" if core.name == "chain":
            return _guarded(core, place, skeleton, _comparison)
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
            return _leaf(core, place, skeleton)
        case "compare":
            return _guarded(core, place, skeleton, _comparison)
        case "fold" if core.name in ("all", "any"):
            return _guarded(core, place, skeleton, _fold)
        case "fun" | "size" | "define" | "local":
            return _guarded(core, place, skeleton, _call)
    return _leaf(core, place, skeleton)


def _part(core: Core, place: Place, skeleton: Skeleton) -> Term:
    """A part that may have no value, where what it is about is absent: then a symbol of which nothing is known."""
    try:
        return _formula(core, place, skeleton)
    except Dead:
        return _symbol(text_of(core), place, "Bool", skeleton)


class _OpaqueError(Exception):
    """An expression that stays as it is."""


def _guarded(core: Core, place: Place, skeleton: Skeleton, read: Callable[[Core, Place, Skeleton], Term]) -> Term:
    kept = len(skeleton.facts), dict(skeleton.symbols), dict(skeleton.texts), skeleton.relations
    try:
        return read(core, place, skeleton)
    except _OpaqueError:
        del skeleton.facts[kept[0] :]
        skeleton.symbols, skeleton.texts, skeleton.relations = kept[1:]
        return _leaf(core, place, skeleton)


def _leaf(core: Core, place: Place, skeleton: Skeleton) -> Term:
    """A truth value by its name, with what it is."""
    value = truth(core, place.scope)
    symbol = _symbol(text_of(core), place, "Bool", skeleton)
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


def _comparison(core: Core, place: Place, skeleton: Skeleton) -> Term:
    first, *others = links(core)
    values = [_operand(part, place, skeleton) for part in (*first.parts, *(link.parts[1] for link in others))]
    parts = [_related(link.name, values[k], values[k + 1]) for k, link in enumerate((first, *others))]
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


def _operand(core: Core, place: Place, skeleton: Skeleton) -> Operand:
    if core.head == "literal" and isinstance(core.value, int) and not isinstance(core.value, bool):
        return core.value
    if core.head == "arithmetic" and core.name in ARITHMETIC:
        left, right = numbers = [_operand(part, place, skeleton) for part in core.parts]
        if all(isinstance(n, int | Term) for n in numbers):
            return ARITHMETIC[core.name](_number(left), _number(right))
    if core.head == "neg":
        number = _operand(core.parts[0], place, skeleton)
        if isinstance(number, int | Term):
            return negate(number)
    value = evaluate(core, place.scope)
    text = text_of(core)
    if isinstance(value, str | TextSymbol | ElementType):
        named = value.name if isinstance(value, ElementType) else settle_text(place.scope, value)
        constant = _text(named, skeleton)
        if (core.head == "literal" and core.sort == TEXT) or (isinstance(value, ElementType) and text == named):
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


def _fold(core: Core, place: Place, skeleton: Skeleton) -> Term:
    fold = opened(core, place.scope, evaluate)
    if not is_short(fold):
        raise _OpaqueError
    parts = list(_steps(core, place, skeleton))
    if not parts:
        raise _OpaqueError
    return Term("and" if core.name == "all" else "or", tuple(parts)) if len(parts) > 1 else parts[0]


def _steps(core: Core, place: Place, skeleton: Skeleton) -> Iterator[Term]:
    fold = opened(core, place.scope, evaluate)
    for step in steps(fold):
        at = f"{place.at} at {', '.join(map(str, step.index))}"
        part = _part(fold.body, Place(step.scope, at, place.depth), skeleton)
        if step.guard == TRUE:
            yield part
        else:
            yield Term("=>" if fold.name == "all" else "and", (step.guard, part))


def _call(core: Core, place: Place, skeleton: Skeleton) -> Term:
    scope = place.scope
    if core.head not in ("define", "local") or place.depth >= DEPTH:
        raise _OpaqueError
    if core.head == "define":
        defined = scope.cores.definition(core.name)
        function = Function(defined.parameters, defined.body, {})
    else:
        function = scope.scope[core.variable]
    values = [evaluate(part, scope) for part in core.parts]
    inner = scope.among({**function.names, **dict(zip(function.parameters, values, strict=True))})
    at = f" in {text_of(core)}{place.at}"
    return _formula(function.body, Place(inner, at, place.depth + 1), skeleton)
