"""The expressions of operators' texts, evaluated before a run: one branch for each head of the grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product as all_of
from math import prod
from typing import cast

from lark import Token, Tree

from . import elements as el
from . import formulas as fm
from . import operations as ops
from .formulas import Every, Formula, Int, Poly, Symbol, Unknown
from .lists import one_of
from .operations import FEW, LOOKED_AT
from .primitives import PRIMITIVES
from .proving import within
from .text import Node, Part, trees, unquoted
from .values import (
    Closure,
    Dead,
    Element,
    Env,
    Kind,
    Listed,
    Opaque,
    Open,
    Run,
    Split,
    Tensor,
    Value,
    Withheld,
)

SUMMED = 256
"""Of elements at most so many are summed one by one."""


def evaluate(tree: Part, env: Env, run: Run) -> Value:
    """The value of an expression. Raises Open and Dead."""
    run.spend()
    if not isinstance(tree, Tree):
        raise Open(f"no expression: {tree!r}")
    return _HEADS[str(tree.data)](tree.children, env, run)


def truth(tree: Part, env: Env, run: Run) -> Formula:
    """The value of an expression that is a formula."""
    return ops.as_formula(evaluate(tree, env, run))


# ---- Atoms and connectives ----------------------------------------------------------------------

Kids = Sequence[Part]


def _var(kids: Kids, env: Env, run: Run) -> Value:
    name = str(kids[0])
    if name in env:
        value = env[name]
        if isinstance(value, Withheld):
            raise Open(value.reason)
        return value
    if name in el.TYPES:
        return Kind(name)
    raise Open(f"nothing is known of {name}")


def _or(kids: Kids, env: Env, run: Run) -> Value:
    parts: list[Formula] = []
    for kid in kids:
        with run.under(fm.both(*map(fm.opposite, parts))):
            part = truth(kid, env, run)
        if part is True:
            return True
        if part is not False:
            parts.append(part)
    return fm.either(*parts)


def _and(kids: Kids, env: Env, run: Run) -> Value:
    parts: list[Formula] = []
    for kid in kids:
        with run.under(fm.both(*parts)):
            part = truth(kid, env, run)
        if part is False:
            return False
        if part is not True:
            parts.append(part)
    return fm.both(*parts)


def _implies(kids: Kids, env: Env, run: Run) -> Value:
    premise = truth(kids[0], env, run)
    if premise is False:
        return True
    with run.under(premise):
        return fm.either(fm.opposite(premise), truth(kids[1], env, run))


def _iff(kids: Kids, env: Env, run: Run) -> Value:
    left, right = truth(kids[0], env, run), truth(kids[1], env, run)
    return fm.either(fm.both(left, right), fm.both(fm.opposite(left), fm.opposite(right)))


# ---- Comparison ---------------------------------------------------------------------------------


def _compare(kids: Kids, env: Env, run: Run) -> Value:
    values = [evaluate(kid, env, run) for kid in kids[::2]]
    signs = [" ".join(str(kid).split()) for kid in kids[1::2]]
    return fm.both(*(ops.related(s, a, b) for s, a, b in zip(signs, values[:-1], values[1:], strict=True)))


# ---- Arithmetic ---------------------------------------------------------------------------------


def _binary(operator: str) -> Callable[[Kids, Env, Run], Value]:
    return lambda kids, env, run: ops.arithmetic(
        operator, evaluate(kids[0], env, run), evaluate(kids[1], env, run), run
    )


def _neg(kids: Kids, env: Env, run: Run) -> Value:
    return ops.minus(evaluate(kids[0], env, run))


def _concat(kids: Kids, env: Env, run: Run) -> Value:
    return (*ops.entries(evaluate(kids[0], env, run)), *ops.entries(evaluate(kids[1], env, run)))


# ---- Choices ------------------------------------------------------------------------------------


def _ite(kids: Kids, env: Env, run: Run) -> Value:
    condition = truth(kids[0], env, run)
    known = run.decided(condition)
    if known is not None:
        return evaluate(kids[1 if known else 2], env, run)
    with run.under(condition):
        left = evaluate(kids[1], env, run)
    with run.under(fm.opposite(condition)):
        right = evaluate(kids[2], env, run)
    return ops.merged(condition, left, right)


def _case(kids: Kids, env: Env, run: Run) -> Value:
    subject = evaluate(kids[0], env, run)
    if not isinstance(subject, str):
        raise Open("a case is no text")
    for arm in kids[1:]:
        *labels, body = cast("Node", arm).children
        texts = [unquoted(label) for label in labels if label is not None]
        if not texts or subject in texts:
            return evaluate(body, env, run)
    raise Dead


# ---- Lists --------------------------------------------------------------------------------------


def _vector(kids: Kids, env: Env, run: Run) -> Value:
    return tuple(evaluate(kid, env, run) for kid in kids if kid is not None)


def _comprehension(kids: Kids, env: Env, run: Run) -> Value:
    body, name, bound, guard = kids
    count = ops.settled(evaluate(bound, env, run), run, "the length of a list")
    if count > LOOKED_AT:
        raise Open("a list is too long")
    return _listed(body, str(name), tuple(range(count)), guard, env, run)


def _collect(kids: Kids, env: Env, run: Run) -> Value:
    body, binder, guard = kids
    name, source = cast("Node", binder).children
    return _listed(body, str(name), ops.entries(evaluate(source, env, run)), guard, env, run)


def _listed(body: Part, name: str, items: Sequence[Value], guard: Part, env: Env, run: Run) -> Value:
    entries: list[Value] = []
    for item in items:
        inner = {**env, name: item}
        if guard is not None:
            kept = truth(guard, inner, run)
            known = run.decided(kept)
            if known is None:
                raise Split("which entries a list has depends on what is not known", kept)
            if not known:
                continue
        entries.append(evaluate(body, inner, run))
    return tuple(entries)


def _index(kids: Kids, env: Env, run: Run) -> Value:
    base = evaluate(kids[0], env, run)
    at: list[Value] = []
    for kid in kids[1:]:
        if kid is not None:
            value = evaluate(kid, env, run)
            at += value if isinstance(value, tuple) else [value]
    if isinstance(base, Tensor):
        return ops.read(base, tuple(map(ops.as_int, at)), run)
    if isinstance(base, Listed):
        return one_of(base.forms, run)
    items = ops.entries(base)
    if len(at) != 1:
        raise Dead
    place = ops.as_int(at[0])
    if isinstance(place, Poly):
        try:
            place = ops.settled(place, run, "an entry of a list")
        except Open:
            if not items:
                raise Dead from None
            if isinstance(items[0], Tensor | Listed | tuple) and not isinstance(items[0], Element):
                return one_of(items, run)
            choice = items[-1]
            for k in reversed(range(len(items) - 1)):
                choice = ops.merged(fm.equal(place, k), items[k], choice)
            return choice
    if not 0 <= place < len(items):
        raise Dead
    return items[place]


# ---- Folds --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """Indices that run together: names, whether one name stands for a list, and their bounds."""

    names: tuple[str, ...]
    dots: bool
    sizes: tuple[Int, ...]

    @property
    def shape(self) -> tuple[Int, ...]:
        """The sizes of the axes of a tensor: indices that split an axis make one."""
        if self.dots or len(self.names) == 1:
            return self.sizes
        whole: Int = 1
        for size in self.sizes:
            whole = fm.multiply(whole, size)
        return (whole,)


def axes(tree: Part, env: Env, run: Run) -> tuple[Axis, ...]:
    """The ranges of a fold, a view or an equation."""
    ranges = []
    for item in trees(tree) if isinstance(tree, Tree) else ():
        *names, bound = item.children
        value = evaluate(bound, env, run)
        if item.data == "split_range":
            ranges.append(Axis(tuple(map(str, names)), False, tuple(map(ops.as_int, ops.entries(value)))))
        elif names[1] is not None:
            ranges.append(Axis((str(names[0]),), True, tuple(map(ops.as_int, ops.entries(value)))))
        else:
            ranges.append(Axis((str(names[0]),), False, (ops.as_int(value),)))
    return tuple(ranges)


def bound_to(ranges: Sequence[Axis], index: Sequence[Int]) -> dict[str, Value]:
    """The names of the ranges at an index, one number for each size."""
    names: dict[str, Value] = {}
    rest = list(index)
    for axis in ranges:
        own, rest = rest[: len(axis.sizes)], rest[len(axis.sizes) :]
        if axis.dots:
            names[axis.names[0]] = tuple(own)
        else:
            names |= dict(zip(axis.names, own, strict=True))
    return names


def _count(ranges: Sequence[Axis]) -> int | None:
    sizes = [n for axis in ranges for n in axis.sizes]
    if not all(isinstance(n, int) for n in sizes):
        return 0 if 0 in sizes else None
    return prod(max(cast("int", n), 0) for n in sizes)


def _fold(kids: Kids, env: Env, run: Run) -> Value:
    name, ranges, guard, start, body = kids
    indices = axes(ranges, env, run)
    if str(name) in ("all", "any"):
        return _quantified(str(name) == "all", indices, guard, body, env, run)
    if str(name) == "filter":
        return _filtered(indices, body, env, run)
    if str(name) in ("argmax", "argmin"):
        total = _count(indices)
        most: Int = total if total is not None else _product(n for axis in indices for n in axis.sizes)
        symbol = run.symbol("data", str(name), 0, total - 1 if total else None)
        run.assume(fm.either(fm.at_least(0, most), fm.both(*within(symbol, most))))
        return symbol
    return _accumulated(str(name), indices, guard, start, body, env, run)


def _product(sizes: Iterator[Int]) -> Int:
    result: Int = 1
    for size in sizes:
        result = fm.multiply(result, size)
    return result


def _quantified(every: bool, ranges: Sequence[Axis], guard: Part, body: Part, env: Env, run: Run) -> Formula:
    def claim(index: Sequence[Int]) -> Formula:
        inner = {**env, **bound_to(ranges, index)}
        condition = True if guard is None else truth(guard, inner, run)
        if condition is False:
            return every
        with run.under(condition):
            own = truth(body, inner, run)
        return fm.either(fm.opposite(condition), own) if every else fm.both(condition, own)

    count = _count(ranges)
    if count is None or count > FEW:
        try:
            whole = _at_any(every, ranges, claim, run)
        except (Open, Dead):
            if count is None or count > LOOKED_AT:
                raise
        else:
            if count is None or count > LOOKED_AT or isinstance(whole, bool):
                return whole
    parts: list[Formula] = []
    for index in all_of(*(range(cast("int", n)) for axis in ranges for n in axis.sizes)):
        part = claim(index)
        if part is (not every):
            return not every
        if part is not every:
            parts.append(part)
    return fm.both(*parts) if every else fm.either(*parts)


def _at_any(every: bool, spans: Sequence[Axis], claim: Callable[[Sequence[Int]], Formula], run: Run) -> Formula:
    """A claim about all indices, or about some of them, as one about an index that stands for any."""
    indices, limits, ranges = _any_index(spans, run)
    with run.under(ranges):
        part = claim([fm.poly(i) for i in indices])
        known = run.decided(part)
    if known is every:
        return every
    filled = fm.both(*(fm.at_least(n, 1) for n in limits))
    if known is (not every) and run.holds(filled):
        return not every
    return Every(tuple(indices), tuple(limits), part if known is None else known, not every)


def _any_index(spans: Sequence[Axis], run: Run) -> tuple[list[Symbol], list[Int], Formula]:
    """An index that stands for all, and its range."""
    limits = [n for axis in spans for n in axis.sizes]
    indices = []
    for n in limits:
        made = run.symbol("index", "i", 0, n - 1 if isinstance(n, int) and n > 0 else None)
        indices.append(made.terms[0][0][0])
    ranges = fm.both(*(part for i, n in zip(indices, limits, strict=True) for part in within(fm.poly(i), n)))
    return indices, limits, ranges


def _filtered(ranges: Sequence[Axis], body: Part, env: Env, run: Run) -> Tensor:
    """The indices at which the body holds, as a tensor: how many, data decide, where no element is known."""
    sizes = [n for axis in ranges for n in axis.sizes]
    kept = _kept(ranges, body, env, run)
    count = _count(ranges)
    size: Int = len(kept) if kept is not None else run.symbol("data", "count", 0, count)
    if kept is None:
        run.facts.add(fm.at_least(_product(iter(sizes)), size))

    def place(at: tuple[Int, ...]) -> Value:
        row, column = at if len(at) == 2 else (at[0], 0)
        if kept is not None and isinstance(row, int) and isinstance(column, int):
            if not (0 <= row < len(kept) and 0 <= column < len(sizes)):
                raise Dead
            return kept[row][column]
        symbol = run.symbol("data", "place", 0)
        if isinstance(column, int):
            run.assume(fm.either(fm.at_least(0, sizes[column]), fm.both(*within(symbol, sizes[column]))))
        return symbol

    return Tensor(run.name("L"), "", (size, len(sizes)), place)


def _kept(ranges: Sequence[Axis], body: Part, env: Env, run: Run) -> list[tuple[int, ...]] | None:
    """The indices at which the body holds, None where that is not known."""
    count = _count(ranges)
    if count is None or count > LOOKED_AT:
        return None
    kept = []
    for index in all_of(*(range(cast("int", n)) for axis in ranges for n in axis.sizes)):
        known = run.decided(truth(body, {**env, **bound_to(ranges, index)}, run))
        if known is None:
            return None
        if known:
            kept.append(index)
    return kept


def _accumulated(name: str, ranges: Sequence[Axis], guard: Part, start: Part, body: Part, env: Env, run: Run) -> Value:
    count = _count(ranges)
    if count is None or count > LOOKED_AT:
        return _any_sum(name, ranges, guard, body, env, run)
    total: Value | None = None if start is None else evaluate(start, env, run)
    if name == "count":
        total = 0
    for number, index in enumerate(all_of(*(range(cast("int", n)) for axis in ranges for n in axis.sizes))):
        inner = {**env, **bound_to(ranges, index)}
        condition: Formula = True if guard is None else truth(guard, inner, run)
        known = run.decided(condition)
        if known is False:
            continue
        if name == "count":
            own = truth(body, inner, run)
            total = fm.add(
                ops.as_int(cast("Value", total)), int(own) if isinstance(own, bool) else fm.chosen(own, 1, 0)
            )
            continue
        with run.under(condition):
            item = evaluate(body, inner, run)
        if name == "last":
            if known is None and total is None:
                raise Split("which term is the last depends on what is not known", condition)
            total = item if known or total is None else ops.merged(condition, item, total)
            continue
        if isinstance(item, Element) and (isinstance(item.value, Opaque) or number > SUMMED or known is None):
            made = run.name(name)
            return Element("bool", Unknown(made)) if item.kind == "bool" else el.opaque(item.kind, made)
        if known is None:
            raise Split(f"which terms a {name} has depends on what is not known", condition)
        total = item if total is None else _step(name, total, item, run)
    if total is None:
        if name in ("max", "min", "last"):
            raise Dead
        return 0 if name == "sum" else 1
    return total


def _step(name: str, total: Value, item: Value, run: Run) -> Value:
    if name in ("sum", "prod"):
        return ops.arithmetic("add" if name == "sum" else "mul", total, item, run)
    return ops.extreme(total, item, run, least=name == "min")


def _any_sum(name: str, spans: Sequence[Axis], guard: Part, body: Part, env: Env, run: Run) -> Value:
    """A fold over a range that is not gone through: an element of which nothing is known but its type."""
    indices, _, ranges = _any_index(spans, run)
    with run.under(ranges):
        inner = {**env, **bound_to(spans, [fm.poly(i) for i in indices])}
        condition = True if guard is None else truth(guard, inner, run)
        with run.under(condition):
            item = evaluate(body, inner, run)
    if isinstance(item, Element) and item.kind:
        return el.opaque(item.kind, run.name(name))
    if name == "count":
        symbol = run.symbol("data", "count", 0)
        run.facts.add(fm.at_least(_product(n for axis in spans for n in axis.sizes), symbol))
        return symbol
    raise Open(f"a {name} over a range of open size")


# ---- Functions ----------------------------------------------------------------------------------


def _given(kids: Kids, env: Env, run: Run) -> Value:
    return env.get(f"given {kids[0]}", False)


def _call(kids: Kids, env: Env, run: Run) -> Value:
    name, *rest = kids
    arguments = [evaluate(kid, env, run) for kid in rest if kid is not None]
    own = env.get(str(name))
    if isinstance(own, Closure):
        return evaluate(own.body, {**own.env, **dict(zip(own.parameters, arguments, strict=True))}, run)
    defined = run.library.function(str(name))
    if defined is not None:
        return evaluate(defined.body, dict(zip(defined.parameters, arguments, strict=True)), run)
    if str(name) not in PRIMITIVES:
        raise Open(f"no function {name}")
    return PRIMITIVES[str(name)](arguments, run)


def _apply(kids: Kids, env: Env, run: Run) -> Value:
    return applied(kids, env, run)[0]


def _is_absent(tree: Part, env: Env) -> bool:
    """An expression is the name of an attribute or of a port that is not there."""
    return isinstance(tree, Tree) and tree.data == "var" and env.get(f"given {tree.children[0]}") is False


def applied(kids: Kids, env: Env, run: Run) -> tuple[Value, ...]:
    """The outputs of an operator that the text applies. An attribute or a port that is not there is left out."""
    name, version, *rest = kids
    inputs: list[Value | None] = []
    attributes: dict[str, Value] = {}
    for kid in rest:
        if isinstance(kid, Tree) and kid.data == "keyword":
            if _is_absent(kid.children[1], env):
                continue
            attributes[str(kid.children[0])] = evaluate(kid.children[1], env, run)
        elif isinstance(kid, Tree):
            left_out = (kid.data == "var" and str(kid.children[0]) == "_") or _is_absent(kid, env)
            inputs.append(None if left_out else evaluate(kid, env, run))
    return run.compose(str(name), int(str(version)), inputs, attributes, run)


def _text(kids: Kids, env: Env, run: Run) -> Value:
    return unquoted(cast("Token", kids[0]))


_HEADS: Mapping[str, Callable[[Kids, Env, Run], Value]] = {
    "var": _var,
    "int": lambda kids, _env, _run: int(str(kids[0])),
    "float": lambda kids, _env, _run: Fraction(str(kids[0])),
    "text": _text,
    "true": lambda _kids, _env, _run: True,
    "false": lambda _kids, _env, _run: False,
    "or": _or,
    "and": _and,
    "not": lambda kids, env, run: fm.opposite(truth(kids[0], env, run)),
    "implies": _implies,
    "iff": _iff,
    "compare": _compare,
    **{name: _binary(name) for name in ("add", "sub", "mul", "quotient", "div", "mod")},
    "neg": _neg,
    "concat": _concat,
    "ite": _ite,
    "case": _case,
    "fold": _fold,
    "index": _index,
    "vector": _vector,
    "comprehension": _comprehension,
    "collect": _collect,
    "given": _given,
    "call": _call,
    "apply": _apply,
}
"""For each head of an expression how it is evaluated."""
