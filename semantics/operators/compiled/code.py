"""From terms to code: what computes a term over a box of its index space, as one NumPy expression for each operation.

`lower` gives an array where nothing depends on data, else a function of the frame. The arrays have one dimension for
each axis of the space, of size 1 where the value does not depend on it. Each operation has an entry in LOWER, made by
the module that knows it: `operations`, `alternatives`, `reads`, `folds`, `freedom`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from ...model.elements import is_integer
from .arithmetic import COMPARISONS, FUNCTIONS, LIMIT, conjuncts, fractions
from .elements.ieee import takes_out
from .plan import Builder, Clock, Frame
from .terms import (
    ELEMENT,
    RATIONAL,
    Affine,
    Array,
    Axis,
    DType,
    Node,
    Operand,
    Table,
    affine,
    kind_of,
    limits_of,
    tabulated,
)

Run = Callable[[Frame], Array]


Code = Array | Run


Write = Callable[[Frame, Array], None]


@dataclass(slots=True)
class Space:
    """Where terms are evaluated: the axes, in the order of dimensions, and for each the half-open range of the box.

    shared: terms that occur more than once; their values are kept in `slots` of the frame while a block runs.
    """

    builder: Builder
    order: tuple[Axis, ...]
    box: Mapping[Axis, tuple[int, int]]
    shared: frozenset[int] = frozenset()
    memo: dict[int, Code] = field(default_factory=dict)
    slots: list[int] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of the box along each axis."""
        return tuple(self.box[axis][1] - self.box[axis][0] for axis in self.order)

    def inside(self, box: Mapping[Axis, tuple[int, int]]) -> Space:
        """The space with another box."""
        return Space(self.builder, self.order, box, self.shared, {}, self.slots)


def over(space: Space, axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """The shape of the box with size 1 along all but `axes`."""
    return tuple(space.box[a][1] - space.box[a][0] if a in axes else 1 for a in space.order)


def lower(term: Operand, space: Space) -> Code:
    """The code that gives the values of a term over the box."""
    if isinstance(term, Node):
        found = space.memo.get(id(term))
        if found is None:
            found = (space.builder.algebra.codes.get(term.op) or LOWER[term.op])(term, space)
            if id(term) in space.shared and not isinstance(found, np.ndarray) and term.op != "read":
                found = _kept(found, space)
            space.memo[id(term)] = found
        return found
    clock = space.builder.clock
    if clock is not None and isinstance(term, (Affine, Table)) and clock.axis in term.axes:
        return _at_clock(term, clock, space)
    if isinstance(term, Affine) or (isinstance(term, Table) and term.kind != RATIONAL):
        return tabulated(term, space.order, space.box)
    if isinstance(term, Table):
        return fractions(tabulated(term, space.order, space.box), term.den)
    return number(term)


def at_clock(term: Operand, space: Space) -> bool:
    """Whether a term depends on the index of the recurrence that is being lowered."""
    clock = space.builder.clock
    return clock is not None and isinstance(term, (Affine, Table, Node)) and clock.axis in term.axes


def _at_clock(term: Affine | Table, clock: Clock, space: Space) -> Code:
    """A static term at the index that the recurrence has reached."""
    slot = clock.slot
    if isinstance(term, Affine):
        rest = {axis: factor for axis, factor in term.terms if axis is not clock.axis}
        fixed, factor = tabulated(affine(term.const, rest), space.order, space.box), dict(term.terms)[clock.axis]
        return lambda frame: np.add(fixed, factor * frame[slot])
    order = (clock.axis, *space.order)
    values = tabulated(term, order, space.box)
    if term.kind == RATIONAL:
        values = fractions(values, term.den)
    return lambda frame: values[frame[slot]]


def number(value: int | Fraction | float) -> Array:
    """An exact number as an array without dimensions."""
    if isinstance(value, bool):
        return np.asarray(value)
    if isinstance(value, int) and -LIMIT < value < LIMIT:
        return np.asarray(value, np.int64)
    out = np.empty((), object)
    out[()] = value
    return out


def _kept(code: Run, space: Space) -> Run:
    slot = space.builder.slot()
    space.slots.append(slot)

    def run(frame: Frame) -> Array:
        value = frame[slot]
        if value is None:
            value = frame[slot] = code(frame)
        return value

    return run


def combine(function: Callable[..., Array], codes: list[Code]) -> Code:
    """The function of the values of codes; computed at once when all are known."""
    if all(isinstance(code, np.ndarray) for code in codes):
        with np.errstate(all="ignore"):
            return np.asarray(function(*codes))
    if len(codes) == 1:
        (single,) = codes
        return lambda frame: function(single(frame))  # type: ignore[operator]
    if len(codes) == 2:
        left, right = codes
        if isinstance(left, np.ndarray):
            return lambda frame: function(left, right(frame))  # type: ignore[operator]
        if isinstance(right, np.ndarray):
            return lambda frame: function(left(frame), right)
        return lambda frame: function(left(frame), right(frame))
    runs = [run_of(code) for code in codes]
    return lambda frame: function(*(run(frame) for run in runs))


def run_of(code: Code) -> Run:
    """The code as a function of the frame."""
    if isinstance(code, np.ndarray):
        value = code
        return lambda _frame: value
    return code


def write(term: Operand, space: Space) -> Write:
    """The code that writes the values of a term over the box into an array of the shape of the box."""
    if isinstance(term, Node):
        special = WRITE.get(term.op)
        if special is not None and id(term) not in space.shared and term.op not in space.builder.algebra.codes:
            return special(term, space)
    code = lower(term, space)
    if isinstance(code, np.ndarray):
        value = code

        def fill(_frame: Frame, out: Array) -> None:
            out[...] = value

        return fill

    def assign(frame: Frame, out: Array) -> None:
        out[...] = code(frame)

    return assign


LOWER: Final[dict[str, Callable[[Node, Space], Code]]] = {}
"""For each operation what computes it."""
WRITE: Final[dict[str, Callable[[Node, Space], Write]]] = {}
"""Those that can write their result where it belongs."""


# The code of operations on numbers, truth values and elements.


def _exact(node: Node, space: Space) -> Code:
    """Exact integer and rational operations."""
    function = FUNCTIONS[node.op]
    codes = [lower(argument, space) for argument in node.args]
    if node.kind == RATIONAL:
        return combine(lambda a, b: function(objects(a), objects(b)), codes)
    low, high = node.low, node.high
    if low is None or high is None or low <= -LIMIT or high >= LIMIT:
        return combine(lambda a, b: function(a.astype(object), b.astype(object)), codes)
    if node.op in ("div", "mod"):
        return combine(lambda a, b: function(a, np.where(b == 0, 1, b)), codes)
    return combine(function, codes)


def objects(x: Array) -> Array:
    """The array with Python's numbers as elements."""
    return x if x.dtype == object else x.astype(object)


def _fraction_quotient(node: Node, space: Space) -> Code:
    function = np.frompyfunc(lambda a, b: Fraction(a) / Fraction(b) if b else Fraction(0), 2, 1)
    return combine(lambda a, b: np.asarray(function(objects(a), objects(b))), [lower(a, space) for a in node.args])


def _rounded(node: Node, space: Space) -> Code:
    """floor and ceiling of rationals."""
    up = node.op == "ceiling"
    function = np.frompyfunc(lambda a: -(-a // 1) if up else a // 1, 1, 1)
    return combine(lambda a: small_integers(np.asarray(function(objects(a)))), [lower(node.args[0], space)])


def small_integers(x: Array) -> Array:
    """Python integers as int64 where they fit."""
    """Python integers as int64 where they fit."""
    small = all(-LIMIT < v < LIMIT for v in x.reshape(-1))
    return x.astype(np.int64) if small else x


def _relation(node: Node, space: Space) -> Code:
    function = COMPARISONS[node.op]
    codes = [lower(argument, space) for argument in node.args]
    if RATIONAL in map(kind_of, node.args):
        return combine(lambda a, b: np.asarray(function(objects(a), objects(b))).astype(bool), codes)
    return combine(_truth(function), codes)


def _truth(function: Callable[..., Array]) -> Callable[..., Array]:
    def relation(a: Array, b: Array) -> Array:
        found = np.asarray(function(a, b))
        return found if found.dtype == np.bool_ else found.astype(bool)

    return relation


def _within(node: Node, space: Space) -> Code:
    first, last = limits_of(node)
    form = lower(node.args[0], space)

    def inside(x: Array) -> Array:
        if first is None:
            return np.asarray(x <= last)
        return np.asarray(x >= first) if last is None else np.asarray((x >= first) & (x <= last))

    return combine(inside, [form])


def _and(node: Node, space: Space) -> Code:
    codes = [lower(argument, space) for argument in node.args]
    function = np.logical_and if node.op == "and" else np.logical_or
    result = codes[0]
    for code in codes[1:]:
        result = combine(function, [result, code])
    return result


def _not(node: Node, space: Space) -> Code:
    return combine(np.logical_not, [lower(node.args[0], space)])


def _const(node: Node, space: Space) -> Code:
    value: Array = node.data
    return value


def _element(node: Node, space: Space) -> Code:
    """An operation on elements of one type; `data` is its name."""
    operand = node.args[0]
    function = space.builder.algebra.operation(str(node.data), operand.type)  # type: ignore[union-attr, arg-type]
    return combine(function, [lower(argument, space) for argument in node.args])


def _write_element(node: Node, space: Space) -> Write:
    operand = node.args[0]
    function = space.builder.algebra.operation(str(node.data), operand.type)  # type: ignore[union-attr, arg-type]
    codes = [lower(argument, space) for argument in node.args]
    if not takes_out(function) or all(isinstance(code, np.ndarray) for code in codes):
        code = run_of(combine(function, codes))

        def assign(frame: Frame, out: Array) -> None:
            out[...] = code(frame)

        return assign
    if len(codes) == 1:
        single = run_of(codes[0])

        def unary(frame: Frame, out: Array) -> None:
            function(single(frame), out=out)

        return unary
    left, right = run_of(codes[0]), run_of(codes[1])

    def binary(frame: Frame, out: Array) -> None:
        function(left(frame), right(frame), out=out)

    return binary


def _integer(node: Node, space: Space) -> Code:
    return combine(exact_integer, [lower(node.args[0], space)])


def exact_integer(x: Array) -> Array:
    """Integer elements as exact integers: int64, of Python's integers where one is large."""
    x = np.asarray(x)
    if x.dtype == object:
        return small_integers(x)
    if x.dtype.itemsize == 8 and x.size and (int(x.max()) >= 1 << 40 or int(x.min()) <= -(1 << 40)):
        return x.astype(object)
    return x.astype(np.int64)


_exact_value: Final = np.frompyfunc(Fraction, 1, 1)


def _rational(node: Node, space: Space) -> Code:
    source: DType = node.args[0].type  # type: ignore[union-attr, assignment]
    return combine(lambda x: exact_rational(x, source), [lower(node.args[0], space)])


def exact_rational(x: Array, source: DType) -> Array:
    """Elements of a type as exact rationals."""
    x = np.asarray(x)
    if x.dtype == object:
        return objects(np.asarray(_exact_value(x), dtype=object))
    wide = x.astype(object) if x.dtype.kind in "iu" else x.astype(np.int64 if is_integer(source) else np.float64)
    return np.asarray(_exact_value(np.where(np.isfinite(wide), wide, 0) if wide.dtype.kind == "f" else wide), object)


def _to_truth(node: Node, space: Space) -> Code:
    return combine(lambda x: np.asarray(x).astype(bool), [lower(node.args[0], space)])


def _cast(node: Node, space: Space) -> Code:
    """Anything as elements of a type."""
    (operand,), algebra = node.args, space.builder.algebra
    target = node.type
    if target is None:
        raise TypeError("a cast without a type")
    match kind_of(operand):
        case "Element":
            return combine(algebra.cast(operand.type, target), [lower(operand, space)])  # type: ignore[union-attr, arg-type]
        case "Int":
            return combine(algebra.integers_to(target), [lower(operand, space)])
        case "Rational":
            if isinstance(operand, Table) and not at_clock(operand, space):
                return algebra.quotients_to(target)(tabulated(operand, space.order, space.box), operand.den)
            return combine(algebra.rationals_to(target), [lower(operand, space)])
        case _:
            convert = algebra.integers_to(target)
            return combine(lambda x: convert(np.asarray(x).astype(np.int64)), [lower(operand, space)])


def _saturate(node: Node, space: Space) -> Code:
    (operand,), algebra, target = node.args, space.builder.algebra, node.type
    if target is None:
        raise TypeError("a conversion without a type")
    match kind_of(operand):
        case "Element":
            return combine(algebra.saturate(operand.type, target), [lower(operand, space)])  # type: ignore[union-attr]
        case "Rational" if isinstance(operand, Table) and not at_clock(operand, space):
            limited = fractions(tabulated(operand, space.order, space.box), operand.den)
            return combine(algebra.saturate(None, target), [limited])
        case _:
            return combine(algebra.saturate(None, target), [lower(operand, space)])


def _power(node: Node, space: Space) -> Code:
    base, exponent = node.args
    function = space.builder.algebra.power(base.type, exponent.type)  # type: ignore[union-attr, arg-type]
    return combine(function, [lower(base, space), lower(exponent, space)])


def _oneof(node: Node, space: Space) -> Code:
    return lower(node.args[0], space)


LOWER.update(
    {
        **dict.fromkeys(FUNCTIONS, _exact),
        "quotient": _fraction_quotient,
        **dict.fromkeys(("floor", "ceiling"), _rounded),
        **dict.fromkeys(COMPARISONS, _relation),
        "within": _within,
        **dict.fromkeys(("and", "or"), _and),
        "not": _not,
        "const": _const,
        "element": _element,
        "integer": _integer,
        "rational": _rational,
        "truth": _to_truth,
        "cast": _cast,
        "saturate": _saturate,
        "power": _power,
        "oneof": _oneof,
    }
)
WRITE["element"] = _write_element


# The code of alternatives: two boxes where the condition holds in a box, else both branches and a mask.


def box_where(condition: Operand, space: Space) -> dict[Axis, tuple[int, int]] | None:
    """The part of the box in which a condition holds when that part is a box, else None. It may be empty."""
    if not isinstance(condition, (Affine, Table, Node)):
        return dict(space.box) if condition else {axis: (lo, lo) for axis, (lo, _) in space.box.items()}
    box = dict(space.box)
    for part in conjuncts(condition):
        if not isinstance(part, Node) or part.op != "within" or not isinstance(part.args[0], Affine):
            return None
        form = part.args[0]
        if at_clock(form, space):
            return None
        first, last = limits_of(part)
        const, free = form.const, []
        for axis, factor in form.terms:
            lo, hi = box[axis]
            if hi - lo == 1:
                const += factor * lo
            else:
                free.append((axis, factor))
        if len(free) > 1:
            return None
        if not free:
            if (first is not None and const < first) or (last is not None and const > last):
                return {axis: (lo, lo) for axis, (lo, _) in space.box.items()}
            continue
        ((axis, factor),) = free
        low = None if first is None else first - const
        high = None if last is None else last - const
        if factor < 0:
            low, high = (None if high is None else -high), (None if low is None else -low)
        lo, hi = box[axis]
        lo = lo if low is None else max(lo, -(-low // abs(factor)))
        hi = hi if high is None else min(hi, high // abs(factor) + 1)
        box[axis] = (lo, max(lo, hi))
    return box


def slices(
    space: Space, box: Mapping[Axis, tuple[int, int]], shape: tuple[int, ...] | None = None
) -> tuple[slice, ...]:
    """Where a smaller box lies in arrays over the box of the space (of `shape`: 1 along what they do not depend on)."""
    out = []
    for position, axis in enumerate(space.order):
        lo, hi = box[axis]
        start = space.box[axis][0]
        full = space.box[axis][1] - start
        whole = shape is not None and shape[position] == 1 and full > 1
        out.append(slice(None) if whole else slice(lo - start, hi - start))
    return tuple(out)


def empty(box: Mapping[Axis, tuple[int, int]]) -> bool:
    """Whether a box has no index."""
    return any(lo >= hi for lo, hi in box.values())


def _branches(node: Node, space: Space) -> tuple[dict[Axis, tuple[int, int]], Operand, Operand] | None:
    """An alternative of which one branch is for a box: the box, the term in it, the term elsewhere."""
    condition, then, other = node.args
    box = box_where(condition, space)
    if box is not None:
        return box, then, other
    if isinstance(condition, Node) and condition.op == "not":
        box = box_where(condition.args[0], space)
        if box is not None:
            return box, other, then
    return None


def _ite(node: Node, space: Space) -> Code:
    found = _branches(node, space)
    if found is None:
        return combine(_choose(node, space), [lower(argument, space) for argument in node.args])
    box, inner, outer = found
    if empty(box):
        return lower(outer, space)
    if box == dict(space.box):
        return lower(inner, space)
    around = lower(outer, space)
    within = lower(inner, space.inside(box))
    shape = over(space, node.axes)
    where = slices(space, box, shape)
    storage = space.builder.algebra.storage(node.type) if node.kind == ELEMENT and node.type is not None else None

    def patch(a: Array, b: Array) -> Array:
        out = np.empty(shape, storage or np.result_type(a, b))
        out[...] = a
        out[where] = b
        return out

    return combine(patch, [around, within])


def _write_ite(node: Node, space: Space) -> Write:
    found = _branches(node, space)
    if found is None:
        code = run_of(_ite(node, space))

        def assign(frame: Frame, out: Array) -> None:
            out[...] = code(frame)

        return assign
    box, inner, outer = found
    if empty(box):
        return write(outer, space)
    if box == dict(space.box):
        return write(inner, space)
    around, within, where = write(outer, space), write(inner, space.inside(box)), slices(space, box)

    def patch(frame: Frame, out: Array) -> None:
        around(frame, out)
        within(frame, out[where])

    return patch


def _choose(node: Node, space: Space) -> Callable[..., Array]:
    if node.kind == ELEMENT and node.type is not None:
        dtype = space.builder.algebra.storage(node.type)

        def choose(condition: Array, a: Array, b: Array) -> Array:
            found = np.where(condition, a, b)
            return found if found.dtype == dtype else found.astype(dtype)

        return choose
    return np.where


LOWER["ite"] = _ite
WRITE["ite"] = _write_ite
