"""The smt interpretation of operators, ranges: index variables, the sizes that bound them, the axes that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import cast

from sonnx.spec.language.syntax import Expr, Range

from ...formulas.terms import FALSE, Term
from .cases import entries, whole
from .numbers import Int, at_most, both, equal, floor_div, floor_mod, multiply, opposite, within
from .values import Dead, Scope, Value, demand, fresh

Evaluate = Callable[[Expr, Scope], Value]


@dataclass(frozen=True, slots=True)
class Axis:
    """A range with its sizes: one, one for each component of an index vector, or the parts of a split axis."""

    range: Range
    sizes: tuple[Int, ...]

    @property
    def split(self) -> bool:
        """Whether the sizes are the parts of one axis."""
        return not self.range.dots and len(self.range.names) > 1

    def extents(self) -> tuple[Int, ...]:
        """The sizes of the tensor's axes."""
        return (reduce(multiply, self.sizes),) if self.split else self.sizes

    def env(self, indices: Sequence[Int]) -> dict[str, Value]:
        """The names with one index for each size."""
        if self.range.dots:
            return {self.range.names[0]: tuple(indices)}
        return dict(zip(self.range.names, indices, strict=True))


def axes(ranges: Sequence[Range], scope: Scope, evaluate: Evaluate) -> tuple[Axis, ...]:
    """The sizes that bound the ranges."""
    found = []
    for item in ranges:
        bound = evaluate(item.bound, scope)
        listed = item.dots or len(item.names) > 1
        sizes = tuple(map(whole, entries(bound, scope))) if listed else (whole(bound),)
        if not item.dots and len(sizes) != len(item.names):
            demand(scope, "length", item.span, FALSE)
            raise Dead
        found.append(Axis(item, sizes))
    return tuple(found)


def demand_sizes(found: Sequence[Axis], scope: Scope, dimensions: frozenset[Term]) -> tuple[Int, ...]:
    """The shape that ranges make: sizes are not negative, and parts of an axis together are the axis."""
    for axis in found:
        for size in axis.sizes:
            demand(scope, "size", axis.range.span, at_most(0, size), " ".join(axis.range.names))
            for here, part in _alternatives(size, scope):
                if part.op == "div" and (axis.split or part.args[0] in dimensions):
                    whole_axis, parts = (cast("Int", argument) for argument in part.args)
                    goal = equal(floor_mod(whole_axis, parts), 0)
                    demand(here, "split", axis.range.span, goal, " ".join(axis.range.names))
    return tuple(size for axis in found for size in axis.extents())


def _alternatives(size: Int, scope: Scope) -> Iterator[tuple[Scope, Term]]:
    """What a size that is no number may be, each alternative with the scope where it is that."""
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
    env: dict[str, Value] = {}
    symbols: list[Term] = []
    facts: list[Term] = []
    for axis in found:
        made = [fresh(scope, axis.range.names[0 if axis.range.dots else k]) for k in range(len(axis.sizes))]
        facts += [within(index, size) for index, size in zip(made, axis.sizes, strict=True)]
        env |= axis.env(made)
        symbols += made
    return scope.bind(env), tuple(symbols), both(*facts)


def at(found: Sequence[Axis], index: Sequence[Int]) -> dict[str, Value]:
    """The names at an index of the tensor; that of a split axis is taken apart."""
    env: dict[str, Value] = {}
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
