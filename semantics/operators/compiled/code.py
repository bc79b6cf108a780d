"""Plans and the code in them: from terms to what computes them over a box of their index space, by NumPy."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, Final, TypeGuard

import numpy as np
from sonnx.spec.language.syntax import Span

from ...model.elements import DType, is_integer
from .elements.ieee import ElementTable, takes_out
from .terms import (
    COMPARISONS,
    ELEMENT,
    FUNCTIONS,
    LIMIT,
    RATIONAL,
    Affine,
    Array,
    Axis,
    IndexFacts,
    Layout,
    Node,
    Operand,
    Table,
    Tensor,
    Term,
    Value,
    affine,
    axes_of,
    bounds,
    conjuncts,
    decide,
    element_type,
    fits_int64,
    fractions,
    is_static,
    kind_of,
    limits_of,
    safe,
    stuck,
    tabulated,
)

# Plans: the instructions that an application of a definition compiles to, and their execution.
# A frame is a list of arrays, the inputs first. While a plan is built its instructions run on the first application, so
# that shapes that depend on data are known; a later application replays them and gives up (`Changed`) when such data
# differ. Blocks of an equation run on threads: which thread computes an element is invisible in its bits.


Frame = list[Any]
"""Arrays, each at its slot; None before it is computed; of a clock the index as an int."""
Instruction = Callable[[Frame], None]
Task = Callable[[Frame], None]

_HEAVY: Final = 1 << 18
"""Operations on elements from which threads pay."""
ADDRESSABLE: Final = 1 << 47
"""The bytes of an address space: with 64 bits, 47 are those of a process."""


class Changed(Exception):  # noqa: N818 - a signal
    """Data on which the plan depends are not those for which it was made."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The index of a recurrence while its body is lowered: the axis, the slot of the frame that holds its value."""

    axis: Axis
    slot: int
    low: int
    high: int


@dataclass(slots=True)
class Builder:
    """A plan in the making. rule: the operator and version in messages. apply: the first outputs of an operator that a
    definition applies. clock: in the body of a recurrence.

    budget: the bytes that a tensor may take, None for any number. largest: the bytes that the largest one takes.
    draw: the slot that says where random numbers come from. drawn: how many tensors of them there are.
    """

    algebra: ElementTable
    rule: str
    frame: Frame
    apply: Callable[..., tuple[Value, ...]]
    instructions: list[Instruction] = field(default_factory=list)
    clock: Clock | None = None
    budget: int | None = None
    largest: int = 0
    draw: int = -1
    drawn: int = 0

    def claim(self, size: int) -> None:
        """Notes the bytes of a tensor that is computed. Raises MemoryError when they are more than the budget."""
        within_budget(size, self.budget)
        self.largest = max(self.largest, size)

    def slot(self) -> int:
        """A new slot of the frame."""
        self.frame.append(None)
        return len(self.frame) - 1

    def emit(self, instruction: Instruction) -> None:
        """Appends an instruction, and runs it on the data of this application."""
        instruction(self.frame)
        self.instructions.append(instruction)

    def data(self, tensor: Tensor) -> Array:
        """The elements of a tensor; the plan holds only for applications in which they are the same."""
        layout = tensor.layout
        known = self.algebra.known
        found = known(strided(self.frame[layout.slot], tensor.shape, layout.offset, layout.strides).copy())

        def same(frame: Frame) -> None:
            now = known(strided(frame[layout.slot], found.shape, layout.offset, layout.strides))
            if not _same_bits(now, found):
                raise Changed

        self.emit(same)
        return found


def _same_bits(a: Array, b: Array) -> bool:
    """True if two arrays of one type and shape hold the same data: a NaN is itself, and 0.0 is not -0.0."""
    return np.array_equal(a, b) if a.dtype.hasobject else a.tobytes() == b.tobytes()


def within_budget(size: int, budget: int | None) -> None:
    """Raises MemoryError when a tensor of `size` bytes is more than the budget, or than any machine can address."""
    if size >= ADDRESSABLE or (budget is not None and size > budget):
        raise MemoryError(f"a tensor of {size} bytes")


def strided(base: Array, shape: tuple[int, ...], offset: int, strides: Sequence[int]) -> Array:
    """A read-only view of a contiguous array; offset and strides count elements. Raises MemoryError for one that no
    machine can address, though it shows few elements again and again."""
    dtype = base.dtype
    size = dtype.itemsize
    within_budget(math.prod(shape) * size, None)
    if dtype.hasobject:
        flat = base.reshape(-1)[offset:] if base.size else base.reshape(-1)
        return np.lib.stride_tricks.as_strided(flat, shape, [s * size for s in strides], writeable=False)
    buffer = base.reshape(-1).view(np.uint8) if dtype.kind == "V" or dtype.num > 23 else base
    return np.ndarray(shape, dtype, buffer, offset * size, [s * size for s in strides])


@cache
def threads() -> int:
    """The number of threads that compute."""
    return max(1, min(len(os.sched_getaffinity(0)), 16))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, threads() - 1), thread_name_prefix="sonnx-ieee")


def run_tasks(tasks: Sequence[Task], frame: Frame, work: int) -> None:
    """Runs tasks that write to different places, on threads when that pays. The first error is raised."""
    if len(tasks) == 1 or work < _HEAVY or threads() == 1:
        for task in tasks:
            task(frame)
        return
    queue = _Queue(tasks)
    futures: list[Future[None]] = [_pool().submit(queue.drain, frame) for _ in range(threads() - 1)]
    try:
        queue.drain(frame)
    finally:
        for future in futures:
            future.result()


class _Queue:
    """Tasks that several threads take from, in order."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._left = list(reversed(tasks))

    def drain(self, frame: Frame) -> None:
        """Takes and runs tasks until none is left; an error drops the rest."""
        with np.errstate(all="ignore"):
            while True:
                try:
                    task = self._left.pop()
                except IndexError:
                    return
                try:
                    task(frame)
                except BaseException:
                    self._left.clear()
                    raise


# From terms to code: what computes a term over a box of its index space, as one NumPy expression for each operation.
# `lower` gives an array where nothing depends on data, else a function of the frame. The arrays have one dimension for
# each axis of the space, of size 1 where the value does not depend on it. Each operation has an entry in LOWER, made by
# the module that knows it: `operations`, `alternatives`, `reads`, `folds`, `freedom`.


Job = Callable[[Frame], Array]


Code = Array | Job


Write = Callable[[Frame, Array], None]


@dataclass(slots=True)
class Space:
    """The box where terms are evaluated: the axes, in the order of dimensions, and for each the half-open range of the
    box.

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
    """True if a term depends on the index of the recurrence that is being lowered."""
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


def _kept(code: Job, space: Space) -> Job:
    slot = space.builder.slot()
    space.slots.append(slot)

    def run(frame: Frame) -> Array:
        value: Array | None = frame[slot]
        if value is None:
            value = frame[slot] = code(frame)
        return value

    return run


def combine(function: Callable[..., Array], codes: list[Code]) -> Code:
    """The function of the values of codes; computed at once when all are known."""
    if all(isinstance(code, np.ndarray) for code in codes):
        with np.errstate(all="ignore"):
            return np.asarray(function(*codes))
    runs = [run_of(code) for code in codes]
    if len(codes) == 1:
        single = runs[0]
        return lambda frame: function(single(frame))
    if len(codes) == 2:
        (left, right), (one, other) = runs, codes
        if isinstance(one, np.ndarray):
            first: Array = one
            return lambda frame: function(first, right(frame))
        if isinstance(other, np.ndarray):
            second: Array = other
            return lambda frame: function(left(frame), second)
        return lambda frame: function(left(frame), right(frame))
    if len(codes) == 3:
        left, middle, right = runs
        return lambda frame: function(left(frame), middle(frame), right(frame))
    return lambda frame: function(*(run(frame) for run in runs))


def run_of(code: Code) -> Job:
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
    if node.op in ("div", "mod"):
        return combine(lambda a, b: _numbers(function(*safe(node.op, a, np.where(b == 0, 1, b)))), codes)
    if not fits_int64(node.low, node.high):
        return combine(lambda a, b: _numbers(function(*safe(node.op, a, b))), codes)
    return combine(lambda *arrays: _numbers(function(*arrays)), codes)


def _numbers(found: Array) -> Array:
    """The result of arithmetic; of objects without axes NumPy gives a number, which it would read as uint64 again."""
    return np.asarray(found, object) if isinstance(found, int) else found


def objects(x: Array) -> Array:
    """The array with Python's numbers as elements."""
    return x if x.dtype == object else x.astype(object)


def _fraction_quotient(node: Node, space: Space) -> Code:
    function = np.frompyfunc(lambda a, b: Fraction(a) / Fraction(b) if b else Fraction(0), 2, 1)
    return combine(lambda a, b: np.asarray(function(objects(a), objects(b))), [lower(a, space) for a in node.args])


def _rounded(node: Node, space: Space) -> Code:
    """floor of rationals."""
    function = np.frompyfunc(lambda a: a // 1, 1, 1)
    return combine(lambda a: small_integers(np.asarray(function(objects(a)))), [lower(node.args[0], space)])


def small_integers(x: Array) -> Array:
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
    function = space.builder.algebra.operation(str(node.data), element_type(node.args[0]))
    return combine(function, [lower(argument, space) for argument in node.args])


def _write_element(node: Node, space: Space) -> Write:
    function = space.builder.algebra.operation(str(node.data), element_type(node.args[0]))
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
    if x.dtype.itemsize == 8 and x.size and not fits_int64(int(x.min()), int(x.max())):
        return x.astype(object)
    return x.astype(np.int64)


_exact_value: Final = np.frompyfunc(Fraction, 1, 1)


def _rational(node: Node, space: Space) -> Code:
    source = element_type(node.args[0])
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
            return combine(algebra.cast(element_type(operand), target), [lower(operand, space)])
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
            return combine(algebra.saturate(element_type(operand), target), [lower(operand, space)])
        case "Rational" if isinstance(operand, Table) and not at_clock(operand, space):
            limited = fractions(tabulated(operand, space.order, space.box), operand.den)
            return combine(algebra.saturate(None, target), [limited])
        case _:
            return combine(algebra.saturate(None, target), [lower(operand, space)])


def _entry(node: Node, space: Space) -> Code:
    """The entry of a list of exact numbers at a position."""
    items, _ = node.data
    values = np.empty(len(items), object)
    values[:] = items
    if node.kind != RATIONAL:
        values = small_integers(values)
    return combine(
        lambda at: np.asarray(values[np.clip(at, 0, len(values) - 1).astype(np.int64)]), [lower(node.args[0], space)]
    )


def _reinterpret(node: Node, space: Space) -> Code:
    (operand,) = node.args
    if node.type is None:
        raise TypeError("digits without a type")
    convert = space.builder.algebra.reinterpret(element_type(operand), node.type)
    return combine(convert, [lower(operand, space)])


def _power(node: Node, space: Space) -> Code:
    base, exponent = node.args
    function = space.builder.algebra.power(element_type(base), element_type(exponent))
    return combine(function, [lower(base, space), lower(exponent, space)])


def _oneof(node: Node, space: Space) -> Code:
    return lower(node.args[0], space)


LOWER.update(
    {
        **dict.fromkeys(FUNCTIONS, _exact),
        "quotient": _fraction_quotient,
        "floor": _rounded,
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
        "entry": _entry,
        "reinterpret": _reinterpret,
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
    """The place of a smaller box in arrays over the box of the space (`shape`: 1 along what they do not depend on)."""
    out = []
    for position, axis in enumerate(space.order):
        lo, hi = box[axis]
        start = space.box[axis][0]
        full = space.box[axis][1] - start
        whole = shape is not None and shape[position] == 1 and full > 1
        out.append(slice(None) if whole else slice(lo - start, hi - start))
    return tuple(out)


def empty(box: Mapping[Axis, tuple[int, int]]) -> bool:
    """True if a box has no index."""
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


# Reads of tensors: a strided view where the indices are affine and in bounds, else a gather of linear positions.


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The object of a read: the tensor, for each dimension whether the index was shown to be in bounds, the conditions
    under which it is read, and where that is written.
    """

    tensor: Tensor
    proven: tuple[bool, ...]
    masks: tuple[Term, ...]
    name: str
    span: Span
    rule: str


def read(tensor: Tensor, indices: Sequence[Operand], known: IndexFacts, name: str, span: Span, rule: str) -> Node:
    """The element of a tensor at indices. Raises StuckError when an index is out of bounds whatever the data."""
    proven = []
    for position, (index, size) in enumerate(zip(indices, tensor.shape, strict=True)):
        inside = decide(*bounds(index, known), 0, size - 1)
        if inside is None and not known.masks and is_static(index) and not isinstance(index, Affine):
            low, high = bounds(index, known)
            raise outside(rule, name, position, size, low, high, span)
        if inside is False and not known.masks:
            low, high = bounds(index, known)
            raise outside(rule, name, position, size, low, high, span)
        proven.append(inside is True)
    source = Source(tensor, tuple(proven), known.masks, name, span, rule)
    return Node(
        "read", tuple(indices), axes_of(*indices), tensor.kind, tensor.type, tensor.low, tensor.high,
        free=tensor.free is not None, data=source,
    )  # fmt: skip


def outside(rule: str, name: str, position: int, size: int, low: int | None, high: int | None, span: Span) -> Exception:
    """The signal that an index is out of bounds."""
    found = f"{low}" if low == high else f"{low} .. {high}"
    return stuck(
        rule,
        f"the indices of {name} are in bounds",
        span,
        f"The index {found} along dimension {position} of {name} is outside 0 .. {size - 1}.",
    )


def view_of(
    layout: Layout, shape: tuple[int, ...], indices: Sequence[Operand], space: Space
) -> tuple[Layout, int] | None:
    """The layout over the box of a read with affine indices in bounds, and how far it moves with the clock; None when
    it is no such read.
    """
    clock, moving = space.builder.clock, 0
    offset = layout.offset
    strides = dict.fromkeys(space.order, 0)
    for index, stride, size in zip(indices, layout.strides, shape, strict=True):
        if isinstance(index, int):
            if not 0 <= index < size:
                return None
            offset += index * stride
            continue
        if not isinstance(index, Affine):
            return None
        low = high = first = index.const
        for axis, factor in index.terms:
            if clock is not None and axis is clock.axis:
                lo, hi = clock.low, clock.high + 1
                moving += factor * stride
            else:
                lo, hi = space.box[axis]
                first += factor * lo
                strides[axis] += factor * stride
            low += factor * (lo if factor > 0 else hi - 1)
            high += factor * (hi - 1 if factor > 0 else lo)
        if low < 0 or high >= size:
            return None
        offset += first * stride
    return Layout(layout.slot, layout.count, offset, tuple(strides[axis] for axis in space.order)), moving


def _read(node: Node, space: Space) -> Code:
    source: Source = node.data
    tensor = source.tensor
    layout = tensor.layout
    found = view_of(layout, tensor.shape, node.args, space)
    if found is None:
        return _gather(node, source, layout, space)
    view, moving = found
    shape = tuple(
        space.box[axis][1] - space.box[axis][0] if stride else 1
        for axis, stride in zip(space.order, view.strides, strict=True)
    )
    slot, offset, strides = view.slot, view.offset, view.strides
    if moving and space.builder.clock is not None:
        clock = space.builder.clock.slot
        return lambda frame: strided(frame[slot], shape, offset + moving * frame[clock], strides)
    base = space.builder.frame[slot]
    if offset == 0 and base is not None and base.shape == shape and strides == _strides(shape):
        return lambda frame: frame[slot]
    return lambda frame: strided(frame[slot], shape, offset, strides)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, 0 along dimensions of size 1."""
    out, step = [], 1
    for size in reversed(shape):
        out.append(step if size > 1 else 0)
        step *= size
    return tuple(reversed(out))


@dataclass(frozen=True, slots=True)
class _Index:
    """The index of one dimension of a tensor, with the stride and the size there. proven: it is in bounds."""

    term: Operand
    stride: int
    size: int
    dimension: int
    proven: bool


def _gather(node: Node, source: Source, layout: Layout, space: Space) -> Code:
    """Positions in the base from the indices that are not affine, a view along the axes that these do not use."""
    if not layout.count:
        return np.zeros((1,) * len(space.order), space.builder.frame[layout.slot].dtype)
    plain: list[tuple[Affine | int, int]] = []
    hard: list[_Index] = []
    for dimension, (term, stride, size) in enumerate(zip(node.args, layout.strides, source.tensor.shape, strict=True)):
        if _is_plain(term, size, space):
            plain.append((term, stride))
        else:
            hard.append(_Index(term, stride, size, dimension, source.proven[dimension]))
    used = set(axes_of(*(index.term for index in hard)))
    affine_axes = [set(term.axes) for term, _ in plain if isinstance(term, Affine)]
    while joined := [own for own in affine_axes if not own.isdisjoint(used) and not own <= used]:
        used.update(*joined)  # an affine index that shares an axis with a position becomes part of it
    const, strides = layout.offset, dict.fromkeys(space.order, 0)
    moving: list[Array] = []
    for term, stride in plain:
        if isinstance(term, int):
            const += term * stride
        elif used.intersection(term.axes):
            moving.append(tabulated(term, space.order, space.box) * stride)
        else:
            const += term.const * stride
            for axis, factor in term.terms:
                strides[axis] += factor * stride
                const += factor * stride * space.box[axis][0]
    fixed = sum(moving, np.asarray(const, np.int64))
    axes = tuple(axis for axis in space.order if axis in used)
    return _taken(_positions(fixed, hard, source, axes, space), layout, axes, strides, space)


def _is_plain(term: Operand, size: int, space: Space) -> TypeGuard[Affine | int]:
    """True if an index is affine, and in bounds all over the box."""
    if isinstance(term, int):
        return 0 <= term < size
    return (
        isinstance(term, Affine) and not at_clock(term, space) and decide(*_over_box(term, space), 0, size - 1) is True
    )


def _positions(fixed: Array, hard: Sequence[_Index], source: Source, axes: tuple[Axis, ...], space: Space) -> Job:
    """The linear positions along these axes: the fixed part, and what the indices add that are looked up."""
    codes = [run_of(lower(index.term, space)) for index in hard]
    proven = all(index.proven for index in hard)
    masks = () if proven else tuple(run_of(lower(mask, space)) for mask in source.masks)
    box_shape = over(space, axes)
    shape = tuple(space.box[axis][1] - space.box[axis][0] for axis in axes)

    def positions(frame: Frame) -> Array:
        total = fixed
        for code, index in zip(codes, hard, strict=True):
            values = code(frame)
            if index.proven:
                values = np.clip(values, 0, index.size - 1)
            else:
                values = _checked(values, index.size, [mask(frame) for mask in masks], source, index.dimension)
            total = total + values * index.stride
        if total.dtype == object:
            total = total.astype(np.int64)
        return np.broadcast_to(total, box_shape).reshape(shape)

    static = all(is_static(index.term) and not at_clock(index.term, space) for index in hard)
    return run_of(positions([])) if static and (proven or is_static(*source.masks)) else positions


def _taken(positions: Job, layout: Layout, axes: tuple[Axis, ...], strides: Mapping[Axis, int], space: Space) -> Code:
    """What lies at positions along some axes, and from there on by strides along the others."""
    slot = layout.slot
    rest = tuple(axis for axis in space.order if strides[axis])
    result_shape = over(space, (*axes, *rest))
    if not rest:

        def take(frame: Frame) -> Array:
            at, flat = positions(frame), frame[slot].reshape(-1)
            return np.asarray(flat[at] if at.ndim == 0 else flat.take(at)).reshape(result_shape)

        return take
    rest_shape = tuple(space.box[axis][1] - space.box[axis][0] for axis in rest)
    rest_strides = tuple(strides[axis] for axis in rest)
    reach = [stride * (size - 1) for stride, size in zip(rest_strides, rest_shape, strict=True)]
    lowest = sum(min(0, far) for far in reach)
    window = (layout.count - sum(max(0, far) for far in reach) + lowest, *rest_shape)
    order = _permutation(space.order, axes, rest)

    def view(frame: Frame) -> Array:
        at = positions(frame)
        windows = strided(frame[slot], window, -lowest, (1, *rest_strides))
        found = windows[at + lowest] if lowest else windows[at]
        return found.transpose(order).reshape(result_shape)

    return view


def _permutation(order: tuple[Axis, ...], kept: tuple[Axis, ...], rest: tuple[Axis, ...]) -> list[int]:
    """From the dimensions (kept, rest) to the order of the space."""
    dims = (*kept, *rest)
    return [dims.index(axis) for axis in order if axis in dims]


def _over_box(index: Affine, space: Space) -> tuple[int, int]:
    low = high = index.const
    for axis, factor in index.terms:
        lo, hi = space.box[axis]
        low += factor * (lo if factor > 0 else hi - 1)
        high += factor * (hi - 1 if factor > 0 else lo)
    return low, high


def _checked(index: Array, size: int, masks: list[Array], source: Source, position: int) -> Array:
    """The index, clipped; StuckError when it is out of bounds where the read counts."""
    index = np.asarray(index)
    if not index.size:
        return index
    low, high = index.min(), index.max()
    if low >= 0 and high < size:
        return index
    bad = (index < 0) | (index >= size)
    for mask in masks:
        bad = bad & mask
    if bad.any():
        wrong = np.broadcast_to(index, bad.shape)[bad]
        raise outside(source.rule, source.name, position, size, int(wrong.min()), int(wrong.max()), source.span)
    return np.clip(index, 0, size - 1)


LOWER["read"] = _read
