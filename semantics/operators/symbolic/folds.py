"""The smt interpretation of operators, ranges and folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product as combinations
from typing import cast

from sonnx.spec.elaborate.core import Binding, Bound, Core
from sonnx.spec.language.syntax import INT, Span

from ...errors import InternalError
from ...formulas.terms import FALSE, TRUE, Argument, Term
from .numbers import (
    Int,
    add,
    at_most,
    both,
    choose,
    either,
    equal,
    floor_div,
    floor_mod,
    less,
    maximum,
    minimum,
    multiply,
    negate,
    opened_goal,
    opposite,
    order,
    polynomial,
    substitute_term,
    subtract,
    within,
)
from .rows import block, coded, cut, entry, flat, inside, joined, length_of, named, probing, relate, sum_of, unit
from .values import (
    Array,
    Bounded,
    Dead,
    Element,
    ElementType,
    Name,
    Row,
    Scope,
    Value,
    applied,
    arithmetic,
    axiom,
    demand,
    element,
    entries,
    fresh,
    merge,
    number,
    settle,
    substituted,
    whole,
)

# The smt interpretation of operators, ranges: index variables, the sizes that bound them, the axes that they make.


Evaluate = Callable[[Core, Scope], Value]


@dataclass(frozen=True, slots=True)
class Axis:
    """A range with its sizes: one, one for each component of an index vector, or the parts of a split axis.

    row: the sizes of a vector of open length, which are not in `sizes`.
    """

    variables: tuple[Binding, ...]
    sizes: tuple[Int, ...]
    row: Row | None = None

    @property
    def split(self) -> bool:
        """True if the sizes are the parts of one axis."""
        return len(self.variables) > 1

    @property
    def vector(self) -> bool:
        """True if one variable has an index for each size."""
        return self.variables[0].sort != INT

    @property
    def span(self) -> Span:
        """The place of the range."""
        return self.variables[0].span

    @property
    def words(self) -> str:
        """The names of the variables."""
        return " ".join(variable.name for variable in self.variables)

    def extents(self) -> tuple[Int, ...]:
        """The sizes of the tensor's axes."""
        return (reduce(multiply, self.sizes),) if self.split else self.sizes

    def env(self, indices: Sequence[Int]) -> dict[Name, Value]:
        """The variables with one index for each size."""
        if self.vector:
            return {self.variables[0]: tuple(indices)}
        return dict(zip(self.variables, indices, strict=True))


def axes(ranges: Sequence[Bound], scope: Scope, evaluate: Evaluate) -> tuple[Axis, ...]:
    """The sizes that bound the ranges."""
    made = []
    for item in ranges:
        bound = evaluate(item.domain, scope)
        axis = Axis(item.variables, ())
        if axis.vector and isinstance(bound, Row):
            made.append(replace(axis, row=bound))
            continue
        sizes = tuple(map(whole, entries(bound, scope))) if axis.vector or axis.split else (whole(bound),)
        if not axis.vector and len(sizes) != len(item.variables):
            demand(scope, "length", axis.span, FALSE)
            raise Dead
        made.append(Axis(item.variables, sizes))
    return tuple(made)


def demand_sizes(axes: Sequence[Axis], scope: Scope, dimensions: frozenset[Term]) -> tuple[Int, ...]:
    """The shape that ranges make: sizes are not negative, and parts of an axis together are the axis."""
    for axis in axes:
        for size in axis.sizes:
            _demand_size(axis, size, scope, dimensions)
        for part in () if axis.row is None else (p for p in axis.row.parts if not p.sizes):
            position = fresh(scope, "position")
            with suppress(Dead):
                here = scope.under(within(position, part.length))
                _demand_size(axis, whole(part.entry(position, here)), here, dimensions)
    return tuple(size for axis in axes for size in axis.extents())


def _demand_size(axis: Axis, size: Int, scope: Scope, dimensions: frozenset[Term]) -> None:
    demand(scope, "size", axis.span, at_most(0, size), axis.words)
    for here, part in _alternatives(size, scope):
        if part.op == "div" and (axis.split or _is_dimension(part.args[0], dimensions)):
            whole_axis, parts = (cast("Int", argument) for argument in part.args)
            demand(here, "split", axis.span, equal(floor_mod(whole_axis, parts), 0), axis.words)


def _is_dimension(size: Argument, dimensions: frozenset[Term]) -> bool:
    """The size of an input's axis."""
    match size:
        case Term("at", (Term(code), _)):
            return Term(code) in dimensions
        case _:
            return size in dimensions


def shape_of(axes: Sequence[Axis]) -> Row:
    """The sizes of the tensor's axes where some of them are of an open number."""
    return joined(*(axis.row or Row(tuple(map(unit, axis.extents()))) for axis in axes))


def _alternatives(size: Int, scope: Scope) -> Iterator[tuple[Scope, Term]]:
    """The alternatives of a size that is no number, each with the scope where it is that."""
    if not isinstance(size, Term):
        return
    if size.op != "ite":
        yield scope, size
        return
    condition, left, right = size.args
    if isinstance(condition, Term):
        for here, part in ((condition, left), (opposite(condition), right)):
            with suppress(Dead):
                yield from _alternatives(cast("Int", part), scope.under(here))


def anywhere(axes: Sequence[Axis], scope: Scope) -> tuple[Scope, tuple[Term, ...], Term]:
    """Symbols that stand for any index: the names bound to them, the symbols, and that they are in range."""
    env, symbols, facts = _anywhere(axes, scope, scope)
    return scope.bind(env), symbols, both(*facts)


def _anywhere(
    axes: Sequence[Axis], scope: Scope, outside: Scope
) -> tuple[dict[Name, Value], tuple[Term, ...], list[Term]]:
    """outside: the scope of the symbols, where no variable is bound if they are to be variables themselves."""
    env: dict[Name, Value] = {}
    symbols: list[Term] = []
    facts: list[Term] = []
    for axis in axes:
        if axis.row is not None:
            index = fresh(outside, axis.variables[0].name)
            inner = scope if scope is outside else replace(scope, bound=(*scope.bound, index.op))
            env[axis.variables[0]] = coded(index, length_of(axis.row))
            facts.append(inside(index, axis.row, inner))
            symbols.append(index)
            continue
        made = [fresh(outside, axis.variables[0 if axis.vector else k].name) for k in range(len(axis.sizes))]
        facts += [within(index, size) for index, size in zip(made, axis.sizes, strict=True)]
        env |= axis.env(made)
        symbols += made
    return env, tuple(symbols), facts


def at_row(axes: Sequence[Axis], index: Row, scope: Scope) -> dict[Name, Value]:
    """The variables at an index of a tensor of an open number of axes."""
    env: dict[Name, Value] = {}
    low: Int = 0
    for axis in axes:
        count: Int = len(axis.extents()) if axis.row is None else length_of(axis.row)
        if axis.row is not None:
            env[axis.variables[0]] = cut(index, low, add(low, count), scope)
        else:
            own = [whole(entry(index, add(low, k), scope)) for k in range(len(axis.extents()))]
            env |= at([axis], own)
        low = add(low, count)
    return env


def at(axes: Sequence[Axis], index: Sequence[Int]) -> dict[Name, Value]:
    """The variables at an index of the tensor; that of a split axis is taken apart."""
    env: dict[Name, Value] = {}
    rest = list(index)
    for axis in axes:
        if axis.split:
            position, parts = rest.pop(0), []
            for size in reversed(axis.sizes[1:]):
                parts.append(floor_mod(position, size))
                position = floor_div(position, size)
            env |= axis.env([position, *reversed(parts)])
        else:
            env |= axis.env(rest[: len(axis.sizes)])
            del rest[: len(axis.sizes)]
    return env


# The smt interpretation of operators, ranges and folds.
# A fold over numbers of steps that are known is unrolled. Over others its body is evaluated once, at symbols that stand
# for any step: `all` and `any` become quantifiers; a greatest or last term is the body at the step that wins, of which
# the range and the guard are known; a sum is a new symbol.


STEPS = 32
"""Folds with at most so many steps are unrolled."""


# ---- Folds ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One step that may take part: where the guard holds, its index, its position, and the scope it is evaluated in."""

    guard: Term
    index: tuple[int, ...]
    position: int
    scope: Scope


@dataclass(frozen=True, slots=True)
class Fold:
    """A fold in its scope."""

    name: str
    axes: tuple[Axis, ...]
    guard: Core
    start: Core | None
    body: Core
    span: Span
    scope: Scope
    evaluate: Evaluate

    @property
    def sizes(self) -> tuple[Int, ...]:
        """The number of steps along each index."""
        return tuple(size for axis in self.axes for size in axis.sizes)

    def holds(self, scope: Scope) -> Term:
        """The guard."""
        held = self.evaluate(self.guard, scope)
        if not isinstance(held, Term):
            raise InternalError(f"{self.guard.span}: no truth value")
        return held

    def first(self, scope: Scope | None = None) -> Value | None:
        """The value behind `from`."""
        return None if self.start is None else self.evaluate(self.start, scope or self.scope)


def opened(core: Core, scope: Scope, evaluate: Evaluate) -> Fold:
    """A fold in its scope, not yet evaluated."""
    body, guard, *start = core.parts
    first = start[0] if start else None
    return Fold(core.name, axes(core.bound, scope, evaluate), guard, first, body, core.span, scope, evaluate)


def fold(core: Core, scope: Scope, evaluate: Evaluate) -> Value:
    """The value of a fold."""
    begun = opened(core, scope, evaluate)
    if begun.name == "filter":
        return _listed(begun) if scope.run.whole else _filtered(begun)
    if scope.run.whole or is_short(begun):
        return _unrolled(begun)
    made = _as_term(begun)
    return _general(begun) if made is None else made


STEP = "$"
"""The beginning of the names of a fold's variables; the number behind it says how many folds are around."""


def _as_term(it: Fold) -> Value | None:
    """A fold of elements as a term, where there are such; its variables are named by their depth, so that equal folds
    are equal terms. None for a fold of numbers or truth values.
    """
    folded = it.scope.run.folded
    if folded is None or it.name in ("any", "all", "count", "last") or any(axis.row is not None for axis in it.axes):
        return None
    depth = sum(name.startswith(STEP) for name in it.scope.bound)
    names = tuple(f"{STEP}{depth + k}" for k in range(len(it.sizes)))
    it.scope.run.symbols |= dict.fromkeys(names, (0, "Int"))
    symbols, rest = tuple(map(Term, names)), list(map(Term, names))
    env: dict[Name, Value] = {}
    for axis in it.axes:
        env |= axis.env(rest[: len(axis.sizes)])
        del rest[: len(axis.sizes)]
    in_range = both(*(within(symbol, size) for symbol, size in zip(symbols, it.sizes, strict=True)))
    inner = replace(it.scope.bind(env), bound=(*it.scope.bound, *names))
    try:
        there = inner.under(in_range)
        guard = it.holds(there)
        value = it.evaluate(it.body, there.under(guard))
    except Dead:
        return None
    if not isinstance(value, Element):
        return None
    start = it.first()
    first = None if start is None else element(start, value.type, it.scope)
    return folded(it.name, symbols, it.sizes, guard, value, first, it.scope)


def is_short(it: Fold) -> bool:
    """True if a fold has a known number of steps, and few."""
    if any(axis.row is not None for axis in it.axes):
        return False
    steps = 1
    for size in it.sizes:
        steps = steps * size if isinstance(size, int) and steps >= 0 else -1
    return 0 <= steps <= STEPS


def steps(it: Fold) -> Iterator[Step]:
    """The steps of a fold whose number is known; not those that the guard rules out."""
    sizes = [range(settle(it.scope, size, ())) for size in it.sizes]
    for position, index in enumerate(combinations(*sizes)):
        env: dict[Name, Value] = {}
        rest: list[Int] = list(index)
        for axis in it.axes:
            env |= axis.env(rest[: len(axis.sizes)])
            del rest[: len(axis.sizes)]
        inner = it.scope.bind(env)
        guard = it.holds(inner)
        if guard != FALSE:
            try:
                yield Step(guard, index, position, inner.under(guard))
            except Dead:
                continue


def _unrolled(it: Fold) -> Value:
    if it.name in ("any", "all", "count"):
        return _counted(it)
    terms: list[tuple[Term, int, Value]] = []
    for step in steps(it):
        try:
            terms.append((step.guard, step.position, it.evaluate(it.body, step.scope)))
        except Dead:
            continue
    if it.name in ("sum", "prod"):
        return _accumulated(it, terms)
    start = it.first()
    if start is None:
        demand(it.scope, "window", it.span, either(*(guard for guard, _, _ in terms)))
    if it.name == "last":
        return _last(terms, start, it.scope)
    return _greatest(it, terms, start)


def _counted(it: Fold) -> Value:
    parts: list[Term] = []
    for step in steps(it):
        try:
            value = it.evaluate(it.body, step.scope)
        except Dead:
            continue
        if not isinstance(value, Term):
            raise InternalError(f"{it.span}: no truth value")
        parts.append(both(step.guard, value) if it.name != "all" else either(opposite(step.guard), value))
    if it.name == "count":
        return reduce(add, [choose(part, 1, 0) for part in parts], cast("Int", 0))
    return both(*parts) if it.name == "all" else either(*parts)


def _accumulated(it: Fold, terms: list[tuple[Term, int, Value]]) -> Value:
    operator = "add" if it.name == "sum" else "mul"
    result = it.first()
    if it.scope.run.folded is not None:
        return _accumulated_terms(it, terms, operator, result)
    for guard, _, value in terms:
        if result is None and guard == TRUE:
            result = value
            continue
        before: Value = result if result is not None else 0 if it.name == "sum" else 1
        after = arithmetic(operator, before, value, it.span, it.scope)
        if guard != TRUE:
            merged = merge(guard, after, before, it.scope)
            after = after if merged is None else merged
        result = after
    return result if result is not None else 0 if it.name == "sum" else 1


def _accumulated_terms(it: Fold, terms: list[tuple[Term, int, Value]], operator: str, start: Value | None) -> Value:
    """The same to the bit: the first term that takes part is where the sum begins."""
    result: Value = start if start is not None else 0 if it.name == "sum" else 1
    begun = FALSE if start is None else TRUE
    for guard, _, value in terms:
        further = value if begun == FALSE else arithmetic(operator, result, value, it.span, it.scope)
        first = merge(begun, further, value, it.scope)
        merged = None if first is None else merge(guard, first, result, it.scope)
        if merged is None:
            raise InternalError(f"{it.span}: the terms have no common form")
        result, begun = merged, either(begun, guard)
    return result


def _last(terms: list[tuple[Term, int, Value]], start: Value | None, scope: Scope) -> Value:
    result = start
    for guard, _, value in terms:
        if result is None or guard == TRUE:
            result = value
            continue
        merged = merge(guard, value, result, scope)
        if merged is None:
            raise InternalError("the terms of `last` have no common form")
        result = merged
    if result is None:
        raise Dead
    return result


def _greatest(it: Fold, terms: list[tuple[Term, int, Value]], start: Value | None) -> Value:
    """max, min, argmax, argmin of listed terms."""
    scope = it.scope
    if start is not None:
        terms = [(TRUE, -1, start), *terms]
    if not terms:
        raise Dead
    certain = all(guard == TRUE for guard, _, _ in terms)
    typed = next((value.type for _, _, value in terms if isinstance(value, Element)), None)
    if typed is not None:
        made = [(p, element(value, typed, scope)) for _, p, value in terms]
        if certain and (scope.run.whole or scope.run.folded is not None or it.name in ("max", "min")):
            return scope.run.algebra.fold(it.name, made, scope)
        if it.name in ("max", "min"):
            return scope.run.algebra.abstract(typed, scope)
    if certain and it.name in ("max", "min"):
        take = maximum if it.name == "max" else minimum
        if all(isinstance(value, int | Term) for _, _, value in terms):
            return reduce(take, [whole(value) for _, _, value in terms])
        result = number(terms[0][2])
        for _, _, value in terms[1:]:
            relation = ">=" if it.name == "max" else "<="
            merged = merge(order(relation, result, number(value)), result, value, scope)
            result = number(cast("Value", merged))
        return result
    if certain and typed is None and all(isinstance(value, int) for _, _, value in terms):
        values = [whole(value) for _, _, value in terms]
        best = max(cast("list[int]", values)) if it.name == "argmax" else min(cast("list[int]", values))
        return terms[values.index(best)][1]
    result = fresh(scope, it.name)
    if it.name in ("argmax", "argmin"):
        axiom(scope, either(*(both(guard, equal(result, p)) for guard, p, _ in terms)), assumed=True)
    else:
        attained = [both(guard, order("=", result, number(value))) for guard, _, value in terms]
        axiom(scope, either(*attained), assumed=True)
    return result


# ---- Folds over any number of steps -----------------------------------------------------------


def _general(it: Fold) -> Value:
    if it.name in ("any", "all"):
        return _quantified(it)
    inner, symbols, in_range = anywhere(it.axes, it.scope)
    try:
        within_range = inner.under(in_range)
        guard = it.holds(within_range)
        value = it.evaluate(it.body, within_range.under(guard))
    except Dead:
        guard, value = FALSE, 0
    if it.name == "count":
        result = fresh(it.scope, "count")
        axiom(it.scope, at_most(0, result))
        if all(axis.row is None for axis in it.axes):
            axiom(it.scope, at_most(result, reduce(multiply, it.sizes)))
        return result
    start = it.first()
    if it.name in ("sum", "prod"):
        if isinstance(value, Element):
            return it.scope.run.algebra.abstract(value.type, it.scope)
        plain = it.scope.run.every and guard == TRUE and start is None and isinstance(value, int | Term)
        if plain and it.name == "sum":
            (axis, *more), evaluate, body = it.axes, it.evaluate, it.body
            if not more and not axis.split and len(axis.sizes) == 1:
                env = it.scope.env
                return sum_of(
                    axis.sizes[0], lambda k, here: evaluate(body, here.among({**env, **axis.env([k])})), it.scope
                )
        return fresh(it.scope, it.name)
    if start is None:
        _demand_window(it, inner, symbols, in_range, guard)
    winner = _winner(it)
    if winner is not None:
        symbols, in_range, guard, value = (winner.place,), winner.in_range, winner.guard, winner.value
    if start is None:
        axiom(it.scope, both(in_range, guard), assumed=True)
        won: Term = TRUE
    elif winner is not None:
        won = winner.won
        axiom(replace(it.scope, facts=()), either(opposite(won), both(in_range, guard)))
    else:
        won = fresh(it.scope, "won", "Bool")
        axiom(it.scope.under(won), both(in_range, guard))
    if it.name in ("argmax", "argmin"):
        return place(it.axes, symbols, it.scope)
    if isinstance(value, Element):
        return it.scope.run.algebra.abstract(value.type, it.scope)
    merged = value if start is None else merge(won, value, start, it.scope)
    if merged is None:
        raise InternalError(f"{it.span}: the start has another form than the terms")
    if it.scope.run.every and it.name in ("max", "min") and isinstance(merged, int | Term):
        _tell_best(it, merged)
    return merged


@dataclass(frozen=True, slots=True)
class Winner:
    """The step that wins, named by what the range, the guard and, but for the last one, the terms say: the same step
    wherever these are the same, a function of the indices that they mention.

    won: there is a step. value: the term there.
    """

    place: Term
    won: Term
    in_range: Term
    guard: Term
    value: Value


def _winner(it: Fold) -> Winner | None:
    """The winner among the steps of one index; None where it depends on elements, or is no matter of one index."""
    axis, *others = it.axes
    if not it.scope.run.every or others or axis.vector or axis.split:
        return None
    (size,) = axis.sizes
    probe, around = probing(it.scope)
    run = it.scope.run
    run.quiet += 1
    try:
        here = around.bind(axis.env([probe])).under(within(probe, size))
        guard = it.holds(here)
        value = it.evaluate(it.body, here.under(guard))
        told: list[Argument] = [size, guard]
        if it.name != "last":
            if not isinstance(value, int | Term):
                return None
            told.append(value)
        name, leaves = named(Term(it.name, tuple(told)), probe, it.scope)
        place, won = Term(f"{it.name}.{name}", leaves), Term(f"won.{name}", leaves)
        run.symbols |= {place.op: (len(leaves), "Int"), won.op: (len(leaves), "Bool")}
        in_range, guard = within(place, size), substituted(guard, probe, place)
        value = it.evaluate(it.body, it.scope.bind(axis.env([place])).under(in_range, guard))
    except (Bounded, Dead):
        return None
    finally:
        run.quiet -= 1
    return Winner(place, won, in_range, guard, value)


def _tell_best(it: Fold, best: Int) -> None:
    """No step has a greater term than the greatest, or a smaller one than the smallest."""

    def no_better(here: Scope) -> Term:
        term = whole(it.evaluate(it.body, here))
        return at_most(term, best) if it.name == "max" else at_most(best, term)

    it.scope.run.quiet += 1
    try:
        axiom(it.scope, _over_steps(it, "all", no_better), assumed=True)
    finally:
        it.scope.run.quiet -= 1


def place(axes: Sequence[Axis], symbols: Sequence[Term], scope: Scope) -> Term:
    """The position of a step among all, from which the step's index is got back."""
    if all(axis.row is None for axis in axes):
        return Term("flat", (*symbols, *(size for axis in axes for size in axis.sizes)))
    if len(axes) > 1 or axes[0].row is None:
        raise Bounded("a position among the steps of several ranges")
    return flat(symbols[0], axes[0].row, scope)


def _quantified(it: Fold) -> Term:
    """`all` and `any`."""
    return _over_steps(it, it.name, lambda here: it.evaluate(it.body, here))


def _over_steps(it: Fold, name: str, read: Callable[[Scope], Value]) -> Term:
    """Something holds at all steps, or any. The symbols are free in the obligations of the body and bound in the
    formula: variables, no functions of those that are bound around it.
    """
    env, symbols, facts = _anywhere(it.axes, it.scope, replace(it.scope, bound=()))
    in_range = both(*facts)
    names = tuple(symbol.op for symbol in symbols)
    try:
        there = replace(it.scope.bind(env), bound=(*it.scope.bound, *names)).under(in_range)
        guard = it.holds(there)
        value = read(there.under(guard))
    except Dead:
        guard, value = FALSE, FALSE
    if not isinstance(value, Term):
        raise InternalError(f"{it.span}: no truth value")
    if name == "all":
        body = either(opposite(both(in_range, guard)), value)
        return body if body in (TRUE, FALSE) else Term("forall", (*names, body))
    body = both(in_range, guard, value)
    return body if body == FALSE else Term("exists", (*names, body))


def _demand_step(it: Fold, symbols: tuple[Term, ...], in_range: Term, guard: Term) -> None:
    """There is a step, of ranges of vectors of open length: one whose every entry is the least that the guard leaves
    there.
    """
    scope = it.scope
    env: dict[Name, Value] = {}
    fits: list[Term] = []
    for axis, symbol in zip(it.axes, symbols, strict=True):
        if axis.row is None:
            raise Bounded("a window over several ranges")
        least = _least_entries(symbol, guard, scope)
        chosen = Row((block(length_of(axis.row), least, scope),))
        env[axis.variables[0]] = chosen
        fits.append(relate("in", chosen, axis.row, scope))
    scope.run.quiet += 1
    try:
        there = both(*fits, it.holds(scope.bind(env)))
    except Dead:
        there = FALSE
    finally:
        scope.run.quiet -= 1
    names = tuple(symbol.op for symbol in symbols)
    goal: Int = both(in_range, guard)
    for symbol in symbols:
        goal = substitute_term(goal, symbol, Term(symbol.op))
    demand(scope, "window", it.span, Term("exists", (*names, goal)), stronger=opened_goal(there))


def _least_entries(symbol: Term, guard: Term, scope: Scope) -> Callable[[Int, Scope], Value]:
    """The least entry at a position that what the guard says of every position leaves."""
    told: list[tuple[str, Term]] = []
    for part in guard.args if guard.op == "and" else (guard,):
        match part:
            case Term("forall", (str() as position, Term("or", parts))):
                here = Term("at", (symbol, Term(position)))
                about = [p for p in parts if isinstance(p, Term) and mentions_term(p, here)]
                told += [(position, p) for p in about] if len(about) == 1 else []

    def least(k: Int, _scope: Scope) -> Value:
        result: Int = 0
        for position, part in told:
            here = Term("at", (symbol, Term(position)))
            lowest = _lowest(here, (here,), part, scope)
            result = maximum(result, substitute_term(lowest, Term(position), k))
        return result

    return least


def mentions_term(term: Term, inner: Term) -> bool:
    """True if a term is a part of another."""
    return term == inner or any(mentions_term(part, inner) for part in term.args if isinstance(part, Term))


def _demand_window(it: Fold, inner: Scope, symbols: tuple[Term, ...], in_range: Term, guard: Term) -> None:
    """There is a step. stronger: the same at the first index that each inequality of the guard lets through."""
    scope = it.scope
    nonempty = both(*(less(0, size) for size in it.sizes))
    positive = [
        relate("<", 0, axis.row, scope) for axis in it.axes if axis.row is not None
    ]  # fmt: skip
    if guard == TRUE:
        demand(scope, "window", it.span, both(nonempty, *positive))
        return
    if positive:
        _demand_step(it, symbols, in_range, guard)
        return
    witness = {symbol: _lowest(symbol, symbols, guard, scope) for symbol in symbols}
    if len(symbols) == 1 and (passed := _passed(symbols[0], it.sizes[0], guard)) is not None:
        witness = {symbols[0]: passed}
    env: dict[Name, Value] = {}
    rest = list(symbols)
    for axis in it.axes:
        env |= axis.env([witness[symbol] for symbol in rest[: len(axis.sizes)]])
        del rest[: len(axis.sizes)]
    scope.run.quiet += 1
    try:
        there = it.holds(scope.bind(env))
    except Dead:
        there = FALSE
    finally:
        scope.run.quiet -= 1
    placed = both(*(within(witness[s], size) for s, size in zip(symbols, it.sizes, strict=True)), there)
    goal: Int = both(in_range, guard)
    for symbol in symbols:
        goal = substitute_term(goal, symbol, Term(symbol.op))
    names = tuple(symbol.op for symbol in symbols)
    demand(scope, "window", it.span, Term("exists", (*names, goal)), stronger=placed)


def _passed(symbol: Term, size: Int, guard: Term) -> Term | None:
    """The position of the term with which a sum gets beyond a number, where the guard asks for a sum at most that."""
    for part in guard.args if guard.op == "and" else (guard,):
        match part:
            case Term("<=", (Term(total, (*leaves, position)), int() | Term() as number)) if (
                total.startswith("sum.") and position == symbol and not mentions_term(Term("", (number,)), symbol)
            ):
                return Term(f"step.{total.removeprefix('sum.')}", (*leaves, number, size))
            case _:
                pass
    return None


def _lowest(symbol: Term, symbols: tuple[Term, ...], guard: Term, scope: Scope) -> Int:
    """The least index that the inequalities of the guard which are linear in it leave."""
    result: Int = 0
    parts = [part for part in (guard.args if guard.op == "and" else (guard,)) if isinstance(part, Term)]
    for part in parts:
        if part.op != "<=":
            continue
        slope: dict[tuple[Term, ...], int] = {}
        rest: dict[tuple[Term, ...], int] = {}
        for monomial, factor in polynomial(subtract(cast("Int", part.args[1]), cast("Int", part.args[0]))).items():
            if symbol in monomial:
                others = list(monomial)
                others.remove(symbol)
                slope[tuple(others)] = factor
            elif any(other in monomial for other in symbols):
                slope = {}
                break
            else:
                rest[monomial] = factor
        if len(slope) != 1:
            continue
        ((atoms, factor),) = slope.items()
        step: Int = factor if not atoms else reduce(multiply, atoms, cast("Int", factor))
        if factor > 0:
            constant: Int = 0
            for monomial, scale in rest.items():
                constant = add(constant, reduce(multiply, monomial, cast("Int", scale)))
            result = maximum(result, negate(floor_div(constant, step)))
    return result


# ---- Filter -----------------------------------------------------------------------------------


def _listed(it: Fold) -> Array:
    """The index vectors where the condition holds, listed."""
    rows = []
    for step in steps(it):
        condition = it.evaluate(it.body, step.scope)
        if condition not in (TRUE, FALSE):
            raise InternalError(f"{it.span}: a condition that depends on symbols")
        if condition == TRUE:
            rows.append(step.index)
    return Array("filter", (len(rows), len(it.sizes)), lambda index, _scope: rows[cast("int", index[0])][
        cast("int", index[1])
    ], ElementType("int64"), "Int")  # fmt: skip


def _filtered(it: Fold) -> Array:
    """The index vectors where the condition holds: so many of them, each in range."""
    scope = it.scope
    if any(axis.row is not None for axis in it.axes):
        raise Bounded("the index vectors of open length at which something holds")
    inner, _, in_range = anywhere(it.axes, scope)
    try:
        within_range = inner.under(in_range)
        it.evaluate(it.body, within_range.under(it.holds(within_range)))
    except Dead:
        pass
    count = fresh(scope, "count")
    axiom(scope, both(at_most(0, count), at_most(count, reduce(multiply, it.sizes, cast("Int", 1)))))
    name = f"filter.{count.op}"

    def entry(index: tuple[Int, ...], here: Scope) -> Value:
        row, column = index
        around = tuple(Term(variable) for variable in scope.bound)
        values = [applied(here, f"{name}.{k}", (row, *around), "Int") for k in range(len(it.sizes))]
        known = both(*(within(value, size) for value, size in zip(values, it.sizes, strict=True)))
        axiom(here, either(opposite(within(row, count)), known))
        if not values:
            raise Dead
        result: Int = values[-1]
        for k in reversed(range(len(values) - 1)):
            result = choose(equal(column, k), values[k], result)
        return result

    return Array(name, (count, len(it.sizes)), entry, ElementType("int64"), "Int")
