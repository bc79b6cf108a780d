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
from ...formulas.terms import FALSE, TRUE, Term
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
    opposite,
    order,
    polynomial,
    substitute_term,
    subtract,
    within,
)
from .values import (
    Array,
    Dead,
    Element,
    ElementType,
    Name,
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
    whole,
)

# The smt interpretation of operators, ranges: index variables, the sizes that bound them, the axes that they make.


Evaluate = Callable[[Core, Scope], Value]


@dataclass(frozen=True, slots=True)
class Axis:
    """A range with its sizes: one, one for each component of an index vector, or the parts of a split axis."""

    variables: tuple[Binding, ...]
    sizes: tuple[Int, ...]

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
        sizes = tuple(map(whole, entries(bound, scope))) if axis.vector or axis.split else (whole(bound),)
        if not axis.vector and len(sizes) != len(item.variables):
            demand(scope, "length", axis.span, FALSE)
            raise Dead
        made.append(Axis(item.variables, sizes))
    return tuple(made)


def demand_sizes(found: Sequence[Axis], scope: Scope, dimensions: frozenset[Term]) -> tuple[Int, ...]:
    """The shape that ranges make: sizes are not negative, and parts of an axis together are the axis."""
    for axis in found:
        for size in axis.sizes:
            demand(scope, "size", axis.span, at_most(0, size), axis.words)
            for here, part in _alternatives(size, scope):
                if part.op == "div" and (axis.split or part.args[0] in dimensions):
                    whole_axis, parts = (cast("Int", argument) for argument in part.args)
                    goal = equal(floor_mod(whole_axis, parts), 0)
                    demand(here, "split", axis.span, goal, axis.words)
    return tuple(size for axis in found for size in axis.extents())


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


def anywhere(found: Sequence[Axis], scope: Scope) -> tuple[Scope, tuple[Term, ...], Term]:
    """Symbols that stand for any index: the names bound to them, the symbols, and that they are in range."""
    env: dict[Name, Value] = {}
    symbols: list[Term] = []
    facts: list[Term] = []
    for axis in found:
        made = [fresh(scope, axis.variables[0 if axis.vector else k].name) for k in range(len(axis.sizes))]
        facts += [within(index, size) for index, size in zip(made, axis.sizes, strict=True)]
        env |= axis.env(made)
        symbols += made
    return scope.bind(env), tuple(symbols), both(*facts)


def at(found: Sequence[Axis], index: Sequence[Int]) -> dict[Name, Value]:
    """The variables at an index of the tensor; that of a split axis is taken apart."""
    env: dict[Name, Value] = {}
    rest = list(index)
    for axis in found:
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
        found = self.evaluate(self.guard, scope)
        if not isinstance(found, Term):
            raise InternalError(f"{self.guard.span}: no truth value")
        return found

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
    found = opened(core, scope, evaluate)
    if found.name == "filter":
        return _listed(found) if scope.run.whole else _filtered(found)
    if scope.run.whole or is_short(found):
        return _unrolled(found)
    return _general(found)


def is_short(found: Fold) -> bool:
    """True if a fold has a known number of steps, and few."""
    steps = 1
    for size in found.sizes:
        steps = steps * size if isinstance(size, int) and steps >= 0 else -1
    return 0 <= steps <= STEPS


def steps(found: Fold) -> Iterator[Step]:
    """The steps of a fold whose number is known; not those that the guard rules out."""
    sizes = [range(settle(found.scope, size, ())) for size in found.sizes]
    for position, index in enumerate(combinations(*sizes)):
        env: dict[Name, Value] = {}
        rest: list[Int] = list(index)
        for axis in found.axes:
            env |= axis.env(rest[: len(axis.sizes)])
            del rest[: len(axis.sizes)]
        inner = found.scope.bind(env)
        guard = found.holds(inner)
        if guard != FALSE:
            try:
                yield Step(guard, index, position, inner.under(guard))
            except Dead:
                continue


def _unrolled(found: Fold) -> Value:
    if found.name in ("any", "all", "count"):
        return _counted(found)
    terms: list[tuple[Term, int, Value]] = []
    for step in steps(found):
        try:
            terms.append((step.guard, step.position, found.evaluate(found.body, step.scope)))
        except Dead:
            continue
    if found.name in ("sum", "prod"):
        return _accumulated(found, terms)
    start = found.first()
    if start is None:
        demand(found.scope, "window", found.span, either(*(guard for guard, _, _ in terms)))
    if found.name == "last":
        return _last(terms, start, found.scope)
    return _greatest(found, terms, start)


def _counted(found: Fold) -> Value:
    parts: list[Term] = []
    for step in steps(found):
        try:
            value = found.evaluate(found.body, step.scope)
        except Dead:
            continue
        if not isinstance(value, Term):
            raise InternalError(f"{found.span}: no truth value")
        parts.append(both(step.guard, value) if found.name != "all" else either(opposite(step.guard), value))
    if found.name == "count":
        return reduce(add, [choose(part, 1, 0) for part in parts], cast("Int", 0))
    return both(*parts) if found.name == "all" else either(*parts)


def _accumulated(found: Fold, terms: list[tuple[Term, int, Value]]) -> Value:
    operator = "add" if found.name == "sum" else "mul"
    result = found.first()
    for guard, _, value in terms:
        if result is None and guard == TRUE:
            result = value
            continue
        before: Value = result if result is not None else 0 if found.name == "sum" else 1
        after = arithmetic(operator, before, value, found.span, found.scope)
        if guard != TRUE:
            merged = merge(guard, after, before, found.scope)
            after = after if merged is None else merged
        result = after
    return result if result is not None else 0 if found.name == "sum" else 1


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


def _greatest(found: Fold, terms: list[tuple[Term, int, Value]], start: Value | None) -> Value:
    """max, min, argmax, argmin of listed terms."""
    scope = found.scope
    if start is not None:
        terms = [(TRUE, -1, start), *terms]
    if not terms:
        raise Dead
    certain = all(guard == TRUE for guard, _, _ in terms)
    typed = next((value.type for _, _, value in terms if isinstance(value, Element)), None)
    if typed is not None:
        made = [(p, element(value, typed, scope)) for _, p, value in terms]
        if certain and (scope.run.whole or found.name in ("max", "min")):
            return scope.run.algebra.fold(found.name, made, scope)
        if found.name in ("max", "min"):
            return scope.run.algebra.abstract(typed, scope)
    if certain and found.name in ("max", "min"):
        take = maximum if found.name == "max" else minimum
        if all(isinstance(value, int | Term) for _, _, value in terms):
            return reduce(take, [whole(value) for _, _, value in terms])
        result = number(terms[0][2])
        for _, _, value in terms[1:]:
            relation = ">=" if found.name == "max" else "<="
            merged = merge(order(relation, result, number(value)), result, value, scope)
            result = number(cast("Value", merged))
        return result
    if certain and typed is None and all(isinstance(value, int) for _, _, value in terms):
        values = [whole(value) for _, _, value in terms]
        best = max(cast("list[int]", values)) if found.name == "argmax" else min(cast("list[int]", values))
        return terms[values.index(best)][1]
    result = fresh(scope, found.name)
    if found.name in ("argmax", "argmin"):
        axiom(scope, either(*(both(guard, equal(result, p)) for guard, p, _ in terms)), assumed=True)
    else:
        attained = [both(guard, order("=", result, number(value))) for guard, _, value in terms]
        axiom(scope, either(*attained), assumed=True)
    return result


# ---- Folds over any number of steps -----------------------------------------------------------


def _general(found: Fold) -> Value:
    if found.name in ("any", "all"):
        return _quantified(found)
    inner, symbols, in_range = anywhere(found.axes, found.scope)
    try:
        within_range = inner.under(in_range)
        guard = found.holds(within_range)
        value = found.evaluate(found.body, within_range.under(guard))
    except Dead:
        guard, value = FALSE, 0
    if found.name == "count":
        result = fresh(found.scope, "count")
        axiom(found.scope, both(at_most(0, result), at_most(result, reduce(multiply, found.sizes))))
        return result
    start = found.first()
    if found.name in ("sum", "prod"):
        if isinstance(value, Element):
            return found.scope.run.algebra.abstract(value.type, found.scope)
        return fresh(found.scope, found.name)
    if start is None:
        _demand_window(found, inner, symbols, in_range, guard)
        axiom(found.scope, both(in_range, guard), assumed=True)
        won: Term = TRUE
    else:
        won = fresh(found.scope, "won", "Bool")
        axiom(found.scope.under(won), both(in_range, guard))
    if found.name in ("argmax", "argmin"):
        return Term("flat", (*symbols, *found.sizes))
    if isinstance(value, Element):
        return found.scope.run.algebra.abstract(value.type, found.scope)
    merged = value if start is None else merge(won, value, start, found.scope)
    if merged is None:
        raise InternalError(f"{found.span}: the start has another form than the terms")
    return merged


def _quantified(found: Fold) -> Term:
    """`all` and `any`. The symbols are free in the obligations of the body and bound in the formula: variables, no
    functions of those that are bound around it.
    """
    inner, symbols, in_range = anywhere(found.axes, replace(found.scope, bound=()))
    names = tuple(symbol.op for symbol in symbols)
    try:
        inside = replace(inner, bound=(*found.scope.bound, *names)).under(in_range)
        guard = found.holds(inside)
        value = found.evaluate(found.body, inside.under(guard))
    except Dead:
        guard, value = FALSE, FALSE
    if not isinstance(value, Term):
        raise InternalError(f"{found.span}: no truth value")
    if found.name == "all":
        body = either(opposite(both(in_range, guard)), value)
        return body if body in (TRUE, FALSE) else Term("forall", (*names, body))
    body = both(in_range, guard, value)
    return body if body == FALSE else Term("exists", (*names, body))


def _demand_window(found: Fold, inner: Scope, symbols: tuple[Term, ...], in_range: Term, guard: Term) -> None:
    """There is a step. stronger: the same at the first index that each inequality of the guard lets through."""
    scope = found.scope
    nonempty = both(*(less(0, size) for size in found.sizes))
    if guard == TRUE:
        demand(scope, "window", found.span, nonempty)
        return
    witness = {symbol: _lowest(symbol, symbols, guard, scope) for symbol in symbols}
    env: dict[Name, Value] = {}
    rest = list(symbols)
    for axis in found.axes:
        env |= axis.env([witness[symbol] for symbol in rest[: len(axis.sizes)]])
        del rest[: len(axis.sizes)]
    scope.run.quiet += 1
    try:
        there = found.holds(scope.bind(env))
    except Dead:
        there = FALSE
    finally:
        scope.run.quiet -= 1
    placed = both(*(within(witness[s], size) for s, size in zip(symbols, found.sizes, strict=True)), there)
    goal: Int = both(in_range, guard)
    for symbol in symbols:
        goal = substitute_term(goal, symbol, Term(symbol.op))
    names = tuple(symbol.op for symbol in symbols)
    demand(scope, "window", found.span, Term("exists", (*names, goal)), stronger=placed)


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


def _listed(found: Fold) -> Array:
    """The index vectors where the condition holds, listed."""
    rows = []
    for step in steps(found):
        condition = found.evaluate(found.body, step.scope)
        if condition not in (TRUE, FALSE):
            raise InternalError(f"{found.span}: a condition that depends on symbols")
        if condition == TRUE:
            rows.append(step.index)
    return Array("filter", (len(rows), len(found.sizes)), lambda index, _scope: rows[cast("int", index[0])][
        cast("int", index[1])
    ], ElementType("int64"), "Int")  # fmt: skip


def _filtered(found: Fold) -> Array:
    """The index vectors where the condition holds: so many of them, each in range."""
    scope = found.scope
    inner, _, in_range = anywhere(found.axes, scope)
    try:
        within_range = inner.under(in_range)
        found.evaluate(found.body, within_range.under(found.holds(within_range)))
    except Dead:
        pass
    count = fresh(scope, "count")
    axiom(scope, both(at_most(0, count), at_most(count, reduce(multiply, found.sizes, cast("Int", 1)))))
    name = f"filter.{count.op}"

    def entry(index: tuple[Int, ...], here: Scope) -> Value:
        row, column = index
        around = tuple(Term(variable) for variable in scope.bound)
        values = [applied(here, f"{name}.{k}", (row, *around), "Int") for k in range(len(found.sizes))]
        known = both(*(within(value, size) for value, size in zip(values, found.sizes, strict=True)))
        axiom(here, either(opposite(within(row, count)), known))
        if not values:
            raise Dead
        result: Int = values[-1]
        for k in reversed(range(len(values) - 1)):
            result = choose(equal(column, k), values[k], result)
        return result

    return Array(name, (count, len(found.sizes)), entry, ElementType("int64"), "Int")
