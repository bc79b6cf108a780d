"""The compiled interpretations of expressions: a fold over the core. The value is static or a term.

What is common to all interpretations of operators is in `operators.reading`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Final

import numpy as np
from sonnx.spec.elaborate.core import Binding, Bound, Core, CoreStatement
from sonnx.spec.language.syntax import Span

from ...errors import InternalError
from ...model.elements import DTYPES
from .. import reading
from ..reading import Answers
from .code import Changed, Frame, read, strided
from .equations import OPERATIONS, Fold, no_term, tensor
from .primitives import PRIMITIVES, Unflattened, flat_tensor
from .terms import (
    BOOL,
    ELEMENT,
    INT,
    LIMIT,
    RATIONAL,
    TERMS,
    Affine,
    Axis,
    IndexFacts,
    Layout,
    NeedStatic,
    Node,
    Operand,
    Tensor,
    Value,
    add,
    axes_of,
    bounds,
    compare,
    conjunction,
    disjunction,
    element_type,
    is_element,
    is_free,
    kind_of,
    negation,
    numerators,
    stuck,
    table,
    tabulated,
)
from .values import (
    Scope,
    binary,
    element,
    entry_of,
    ite,
    listed,
    literal,
    negate,
    operand,
    relation,
    static_int,
    tensor_of,
)

# What the rules that all interpretations share ask.


def _text(value: Value, _scope: Scope) -> str:
    return str(value)


def _entries(value: Value, _core: Core, _scope: Scope) -> tuple[Value, ...]:
    return listed(value)


def _below(value: Value, _scope: Scope) -> range:
    return range(static_int(value))


def _where(guard: Core, scope: Scope) -> Scope | None:
    test = truth(guard, scope)
    if isinstance(test, TERMS):
        raise NeedStatic(axes_of(test))
    return scope if test else None


def _primitive(name: str, arguments: list[Value], span: Span, scope: Scope) -> Value:
    primitive = PRIMITIVES.get(name)
    if primitive is None:
        from .drawing import DRAWING  # few operators draw

        primitive = DRAWING.get(name)
    if primitive is None:
        raise InternalError(f"{span}: the primitive {name} has no meaning here")
    return primitive(arguments, scope, span)


def _apply(
    core: Core, inputs: Sequence[Value], attributes: Mapping[str, Value], scope: Scope, count: int
) -> tuple[Value, ...]:
    return scope.builder.apply(core, inputs, attributes, scope, count)


def _no_arm(core: Core, text: str, scope: Scope) -> Exception:
    return stuck(scope.builder.rule, "a case has an arm", core.span, f"No arm for {text!r}.")


def _uneven(statement: CoreStatement, scope: Scope) -> Exception:
    premise = f"{len(statement.binds)} entries"
    return stuck(scope.builder.rule, premise, statement.span, "The list has another number of entries.")


ANSWERS: Final[Answers[Scope, Value]] = Answers(
    bool, _text, _entries, _below, _where, _primitive, _apply, _no_arm, _uneven
)
MEANING: Final = reading.reading("the compiled interpretation", ANSWERS)
"""For each head of an expression what it denotes."""
evaluate: Final = MEANING.meaning


def truth(core: Core, scope: Scope) -> Operand:
    """The value of a condition."""
    return operand(evaluate(core, scope))


# What is peculiar to terms: names, connectives, numbers, reads.


@MEANING.rule("type")
def _type(core: Core, _scope: Scope) -> Value:
    return DTYPES[core.name]


@MEANING.rule("given")
def _given(core: Core, scope: Scope) -> Value:
    return scope.scope.get(core.variable) is not None


@MEANING.rule("and", "or", "implies")
def _connective(core: Core, scope: Scope) -> Value:
    """A later part counts where the earlier ones leave the matter open; those of a chain are read together."""
    if core.name == "chain":
        return _chain(core, scope)
    parts: list[Operand] = []
    until = core.head != "and"
    for position, part in enumerate(core.parts):
        value = truth(part, scope)
        if core.head == "implies" and position == 0:
            value = negation(value)
        parts.append(value)
        if not isinstance(value, TERMS) and bool(value) is until:
            return until
        scope = scope.assuming(value, holds=not until)
    return disjunction(parts) if until else conjunction(parts)


@MEANING.rule("compare")
def _chain(core: Core, scope: Scope) -> Value:
    if core.head == "compare":
        left, right = core.parts
        return relation(evaluate(left, scope), core.name, evaluate(right, scope), scope)
    links = reading.links(core)
    values = [evaluate(part, scope) for part in (links[0].parts[0], *(link.parts[1] for link in links))]
    return conjunction(relation(values[p], link.name, values[p + 1], scope) for p, link in enumerate(links))


@MEANING.rule("iff")
def _iff(core: Core, scope: Scope) -> Value:
    a, b = (truth(part, scope) for part in core.parts)
    return compare(a, "=", b, scope.known)


@MEANING.rule("not")
def _not(core: Core, scope: Scope) -> Value:
    return negation(truth(core.parts[0], scope))


@MEANING.rule("ite")
def _ite(core: Core, scope: Scope) -> Value:
    condition, then, other = core.parts
    test = truth(condition, scope)
    if not isinstance(test, TERMS):
        return evaluate(then if test else other, scope)
    return ite(test, evaluate(then, scope.assuming(test)), evaluate(other, scope.assuming(test, holds=False)), scope)


@MEANING.rule("arithmetic")
def _arithmetic(core: Core, scope: Scope) -> Value:
    left, right = core.parts
    return binary(core.name, evaluate(left, scope), evaluate(right, scope), scope, core.span)


@MEANING.rule("neg")
def _neg(core: Core, scope: Scope) -> Value:
    return negate(evaluate(core.parts[0], scope), scope)


@MEANING.rule("size")
def _size(core: Core, scope: Scope) -> Value:
    return len(listed(evaluate(core.parts[0], scope)))


@MEANING.rule("index")
def _index(core: Core, scope: Scope) -> Value:
    base, *indices = core.parts
    value = evaluate(base, scope)
    if isinstance(value, tuple):
        return _entry(value, evaluate(indices[0], scope), core.span, scope)
    name = base.name if base.head == "variable" else "the tensor"
    return read_at(tensor_of(value), [evaluate(i, scope) for i in indices], scope, name, core.span)


def read_at(tensor: Tensor, indices: list[Value], scope: Scope, name: str, span: Span) -> Node:
    """The element of a tensor at indices and index lists, one after the other."""
    flat: list[Operand] = []
    for index in indices:
        if (
            isinstance(index, Unflattened)
            and index.dims == tensor.shape[len(flat) : len(flat) + len(index)]
            and len(index) > 1
        ):
            tensor = flat_tensor(tensor, len(flat), len(index), scope)
            flat.append(index.form)
        elif isinstance(index, tuple):
            flat += [operand(x) for x in index]
        else:
            flat.append(operand(index))
    if len(flat) != len(tensor.shape):
        raise InternalError(f"{span}: {len(flat)} indices of {name}, which has {len(tensor.shape)} axes")
    return read(tensor, flat, scope.known, name, span, scope.builder.rule)


def _entry(items: tuple[Value, ...], index: Value, span: Span, scope: Scope) -> Value:
    if isinstance(index, int):
        if 0 <= index < len(items):
            return items[index]
        rule = scope.builder.rule
        raise stuck(rule, "list positions are in range", span, f"Position {index} of a list of {len(items)} entries.")
    position = operand(index)
    low, high = bounds(position, scope.known)
    if (
        (low is None or low < 0 or high is None or high >= len(items))
        and not scope.known.masks
        and not isinstance(position, Node)
    ):
        rule = scope.builder.rule
        raise stuck(rule, "list positions are in range", span, f"A position outside a list of {len(items)} entries.")
    if not items:
        return 0
    numbers = [x for x in items if isinstance(x, int) and not isinstance(x, bool)]
    if len(numbers) == len(items) and not isinstance(position, Node):
        axes = axes_of(position)
        at = np.clip(tabulated(position, axes), 0, len(items) - 1)
        wide = any(not -LIMIT < x < LIMIT for x in numbers)
        return table(np.asarray(numbers, dtype=object if wide else np.int64)[at], axes, INT)
    if all(isinstance(x, str) for x in items):
        return entry_of(items, position, np.dtype(object), scope, span)
    if all(isinstance(x, (int, Fraction, float)) and not isinstance(x, bool) for x in items):
        whole = len(numbers) == len(items)
        low, high = (min(numbers), max(numbers)) if whole else (None, None)
        kind = INT if whole else RATIONAL
        return Node("entry", (position,), axes_of(position), kind, None, low, high, is_free(position), (items, span))
    if any(isinstance(x, (Tensor, str, tuple, np.dtype)) for x in items):
        raise NeedStatic(axes_of(position))
    first = 0 if low is None else max(low, 0)
    last = len(items) - 1 if high is None else min(high, len(items) - 1)
    entry = items[last]
    for k in range(last - 1, first - 1, -1):
        entry = ite(compare(position, "=", k, scope.known), items[k], entry, scope)
    return entry


# Folds and ranges in expressions: index variables, folds over few or static terms, folds as terms.


UNROLLED: Final = 1 << 14
"""The most indices of a fold that are taken one by one when the body needs them static."""


def bind_ranges(
    ranges: Sequence[Bound], scope: Scope
) -> tuple[dict[Binding, Value], list[tuple[int, tuple[Axis, ...]]], bool]:
    """The index variables of ranges, the dimensions they make, and whether there is an index at all.

    An axis of size 1 is no axis: its index is 0.
    """
    names: dict[Binding, Value] = {}
    dimensions: list[tuple[int, tuple[Axis, ...]]] = []
    for item in ranges:
        first, *more = item.variables
        domain = evaluate(item.domain, scope)
        sizes = [static_int(size) for size in (domain if isinstance(domain, tuple) else (domain,))]
        made = [_axis(size, first.span, scope) for size in sizes]
        forms = tuple(form for form, _ in made)
        axes = [() if axis is None else (axis,) for _, axis in made]
        if more:  # one axis split
            names.update(zip(item.variables, forms, strict=True))
            dimensions.append((math.prod(sizes), tuple(axis for kept in axes for axis in kept)))
            continue
        names[first] = forms if isinstance(domain, tuple) else forms[0]
        dimensions += zip(sizes, axes, strict=True)
    return names, dimensions, all(size for size, _ in dimensions)


def _axis(size: int, span: Span, scope: Scope) -> tuple[Operand, Axis | None]:
    if size < 0:
        raise stuck(scope.builder.rule, "sizes are not negative", span, f"An index below {size}.")
    if size <= 1:
        return 0, None
    axis = Axis(size)
    return Affine(0, ((axis, 1),)), axis


EMPTY: Final[Mapping[str, Value]] = {"sum": 0, "prod": 1, "any": False, "all": True, "count": 0}


@MEANING.rule("fold")
def _fold(core: Core, scope: Scope) -> Value:
    if core.name == "filter":
        return _filtered(core, scope)
    body, guard, *start = core.parts
    first = evaluate(start[0], scope) if start else None
    if core.name in ("sum", "prod", "min", "max") and core.bound[0].domain.head == "size" and len(core.bound) == 1:
        # the entries of a list, each of which may be of another kind
        size, (variable,) = static_int(evaluate(core.bound[0].domain, scope)), core.bound[0].variables
        return _one_by_one(core, first, ({variable: k} for k in range(size)), scope)
    names, dimensions, some = bind_ranges(core.bound, scope)
    if not some:
        return _empty(core, first, scope)
    axes = tuple(axis for _, group in dimensions for axis in group)
    try:
        inner = scope.bind(names)
        test = truth(guard, inner)
        if not isinstance(test, TERMS) and not test:
            return _empty(core, first, scope)
        value = evaluate(body, inner.assuming(test))
        if isinstance(value, (tuple, Tensor)):
            raise NeedStatic(axes)
    except NeedStatic as need:
        if not set(need.axes).intersection(axes):
            raise
        return _unrolled(core, first, names, axes, scope)
    return _folded(core, axes, operand(value), test, first, scope)


def _empty(core: Core, first: Value, scope: Scope) -> Value:
    if first is not None:
        return first
    if core.name in EMPTY:
        return EMPTY[core.name]
    if scope.known.masks:
        return 0
    raise no_term(core.name, core.span, scope.builder.rule)


def _folded(core: Core, axes: tuple[Axis, ...], value: Operand, test: Operand, first: Value, scope: Scope) -> Value:
    name = core.name
    start = None if first is None else operand(first)
    if start is not None and is_element(value):
        start = literal(start, element_type(value), scope)
    elif is_element(start):
        value = literal(value, element_type(start), scope)
    if not axes:
        return _chained(core, start, [(test, value, 0)], scope)
    plain = _static_fold(name, axes, value, test, start, scope)
    if plain is not None:
        return plain
    kind = {"any": BOOL, "all": BOOL, "count": INT, "argmax": INT, "argmin": INT}.get(name, kind_of(value))
    steps = math.prod(axis.size for axis in axes)
    low, high = _fold_bounds(name, value, start, steps, scope.known)
    fold = Fold(name, axes, value, test, start, bool(scope.known.masks), core.span, scope.builder.rule)
    outer = tuple(axis for axis in axes_of(value, test, start) if axis not in axes)
    dtype = value.type if isinstance(value, Node) and kind == ELEMENT else None
    args = (value, test) if start is None else (value, test, start)
    return Node("fold", args, outer, kind, dtype, low, high, is_free(*args), fold)


def _fold_bounds(
    name: str, value: Operand, start: Operand | None, steps: int, known: IndexFacts
) -> tuple[int | None, int | None]:
    if name == "count":
        return 0, steps
    if name in ("argmax", "argmin"):
        return 0, steps - 1
    low, high = bounds(value, known) if kind_of(value) == INT else (None, None)
    if low is None or high is None:
        return None, None
    first = bounds(start, known) if start is not None else (0, 0)
    if first[0] is None or first[1] is None:
        return None, None
    if name == "sum":
        return first[0] + min(0, low * steps), first[1] + max(0, high * steps)
    if name in ("max", "min", "last"):
        return (low, high) if start is None else (min(low, first[0]), max(high, first[1]))
    return None, None


def _static_fold(
    name: str, axes: tuple[Axis, ...], value: Operand, test: Operand, start: Operand | None, scope: Scope
) -> Value:
    """The fold of what depends on no data, where it is small; None otherwise."""
    if isinstance(value, Node) or isinstance(test, Node) or isinstance(start, TERMS):
        return None
    if isinstance(value, float) or (name == "count" and value is False):
        return 0 if name == "count" else None
    outer = tuple(axis for axis in axes_of(value, test) if axis not in axes)
    every = (*axes, *outer)
    if math.prod(axis.size for axis in every) > 1 << 18 or name in ("argmax", "argmin", "last"):
        return None
    shape = tuple(axis.size for axis in every)
    (numbers, den), mask = numerators(value, every), tabulated(test, every)
    numbers, mask = np.broadcast_to(numbers, shape), np.broadcast_to(mask, shape)
    over = tuple(range(len(axes)))
    kind = kind_of(value)
    begin = start
    match name:
        case "any" | "all":
            joined = (numbers & mask).any(axis=over) if name == "any" else (numbers | ~mask).all(axis=over)
            return table(np.asarray(joined), outer, BOOL)
        case "count":
            return table(np.asarray((numbers & mask).sum(axis=over)), outer, INT)
        case "sum":
            summed = np.where(mask, numbers, 0).astype(object).sum(axis=over)
            values = np.asarray(summed)
            if kind == INT and values.size and max(abs(int(v)) for v in values.reshape(-1)) < LIMIT:
                values = values.astype(np.int64)
            folded = table(values, outer, kind if kind != BOOL else INT, den)
            return folded if begin is None else add(begin, folded, scope.known)
        case _:
            return None


def _unrolled(core: Core, first: Value, names: Mapping[Binding, Value], axes: tuple[Axis, ...], scope: Scope) -> Value:
    """A fold whose body needs its indices one by one."""
    if math.prod(axis.size for axis in axes) > UNROLLED:
        raise InternalError(f"{core.span}: a fold over {len(axes)} axes whose body differs from index to index")
    indices = (dict(zip(axes, index, strict=True)) for index in product(*(range(axis.size) for axis in axes)))
    every = ({variable: _fixed(value, index) for variable, value in names.items()} for index in indices)
    return _one_by_one(core, first, every, scope)


def _one_by_one(core: Core, first: Value, indices: Iterable[Mapping[Binding, Value]], scope: Scope) -> Value:
    """The fold of the terms at these indices."""
    body, guard, *_ = core.parts
    terms: list[tuple[Operand, Value, int]] = []
    for flat, names in enumerate(indices):
        inner = scope.bind(names)
        test = truth(guard, inner)
        if not isinstance(test, TERMS) and not test:
            continue
        terms.append((test, evaluate(body, inner.assuming(test)), flat))
    return _chained(core, first, terms, scope)


def _fixed(value: Value, fixed: Mapping[Axis, int]) -> Value:
    if isinstance(value, tuple):
        return tuple(_fixed(item, fixed) for item in value)
    if isinstance(value, Affine):
        return value.const + sum(factor * fixed[axis] for axis, factor in value.terms)
    return value


def _chained(core: Core, first: Value, terms: list[tuple[Operand, Value, int]], scope: Scope) -> Value:
    """The fold of terms one by one, each with its guard and its position."""
    if not terms:
        return _empty(core, first, scope)
    match core.name:
        case "any":
            return disjunction(conjunction((test, operand(value))) for test, value, _ in terms)
        case "all":
            return conjunction(disjunction((negation(test), operand(value))) for test, value, _ in terms)
        case "count":
            counted = [ite(conjunction((test, operand(value))), 1, 0, scope) for test, value, _ in terms]
            return reduce(lambda total, one: binary("add", total, one, scope), counted)
        case "last":
            result = first
            for test, value, _ in terms:
                result = value if result is None else ite(test, value, result, scope)
            return result
        case "argmax" | "argmin":
            return _best(core.name, terms, scope)
        case _:
            return _sum(core.name, first, terms, scope)


def _best(name: str, terms: list[tuple[Operand, Value, int]], scope: Scope) -> Value:
    (_, best, position), *rest = terms
    if rest and any(isinstance(test, TERMS) for test, *_ in terms):
        raise InternalError(f"{name} over indices that differ in kind, with a guard")
    place: Value = position
    for _, value, flat in rest:
        better = relation(value, ">" if name == "argmax" else "<", best, scope)
        if is_element(value):
            nan = element("is_nan", (operand(value),), scope, BOOL)
            good = negation(element("is_nan", (operand(best),), scope, BOOL))
            better = conjunction((disjunction((better, nan)), good))
        best, place = ite(better, value, best, scope), ite(better, flat, place, scope)
    return place


def _sum(name: str, first: Value, terms: list[tuple[Operand, Value, int]], scope: Scope) -> Value:
    op = OPERATIONS.get(name, name)
    result = first
    seen: Operand = first is not None
    for test, value, _ in terms:
        if result is None:
            result, seen = value, test
            continue
        joined = binary(op, result, value, scope)
        if test is not True:
            joined = ite(test, joined, result, scope)
        if seen is not True:
            joined = ite(seen, joined, value, scope)
            seen = disjunction((seen, test))
        result = joined
    if seen is not True and name in EMPTY:
        result = ite(seen, result, EMPTY[name], scope)
    return result


def _filtered(core: Core, scope: Scope) -> Value:
    """The index vectors where a condition holds, a tensor whose shape depends on data."""
    body, guard = core.parts
    names, dimensions, some = bind_ranges(core.bound, scope)
    rank, shape = len(dimensions), tuple(size for size, _ in dimensions)
    builder = scope.builder
    slot = builder.slot()
    if not some:

        def nothing(frame: Frame) -> None:
            frame[slot] = np.zeros((0, rank), np.int64)

        builder.emit(nothing)
        return Tensor(INT, None, (0, rank), lambda: Layout(slot, 0, 0, (rank, 1)))
    inner = scope.bind(names)
    condition = truth(body, inner)
    mask = tensor(builder, conjunction((truth(guard, inner), condition)), dimensions, BOOL, None)
    layout = mask.layout

    def find(frame: Frame) -> None:
        holds = strided(frame[layout.slot], shape, layout.offset, layout.strides)
        frame[slot] = (
            np.ascontiguousarray(np.argwhere(holds).reshape(-1, rank)) if rank else np.zeros((int(holds), 0), np.int64)
        )

    builder.emit(find)
    count = len(builder.frame[slot])
    builder.emit(_same_count(slot, count))
    high = max((size for size in shape), default=1) - 1
    return Tensor(INT, None, (count, rank), lambda: Layout(slot, count * rank, 0, (rank, 1)), 0, max(high, 0))


def _same_count(slot: int, count: int) -> Callable[[Frame], None]:
    def check(frame: Frame) -> None:
        if len(frame[slot]) != count:
            raise Changed

    return check
