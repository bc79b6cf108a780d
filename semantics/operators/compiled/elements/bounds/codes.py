"""The code of what depends on the values of elements: conditions and choices, exact numbers, positions of extremes.

A condition on sets is true, false or open. A choice between two elements allows both where it is open; everywhere else
an open condition is Unsupported, since what is computed depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from .....errors import Unsupported
from .....model.elements import DType
from ...code import LOWER, Code, Frame, Source, Space, combine, exact_integer, exact_rational, lower, over, run_of
from ...equations import Fold, fold_terms
from ...terms import BOOL, COMPARISONS, ELEMENT, Affine, Array, Axis, Node, Operand, axes_of, element_type, kind_of
from .storage import FLOAT_SET, everything, hull, is_set, known, opened, storage
from .sums import element, fold_sum

FALSE, TRUE, OPEN = 0, 1, 2
TURNED: Final = np.asarray([TRUE, FALSE, OPEN], np.int8)
"""The opposite of each condition."""


# ---- conditions -------------------------------------------------------------------------------


def _verdict(true: Array, false: Array) -> Array:
    """TRUE where it holds for all values, FALSE where for none."""
    return np.where(true, TRUE, np.where(false, FALSE, OPEN)).astype(np.int8)


def compared(name: str, a: Array, b: Array) -> Array:
    """True if elements stand in a relation."""
    if not is_set(a) or not is_set(b):
        return np.asarray(COMPARISONS[name](a, b)).astype(np.int8)
    if name in (">", ">="):
        return compared({">": "<", ">=": "<="}[name], b, a)
    if name == "!=":
        return np.asarray(TURNED[compared("=", a, b)])
    if a.dtype == FLOAT_SET:
        p, q = opened(a), opened(b)
        strange = [m for m in (p.maybe, q.maybe) if m is not None]
        always = [m for m in (p.sure, q.sure) if m is not None]
        ends = p.low, p.high, q.low, q.high
    else:
        strange, always = [], []
        ends = a["low"], a["high"], b["low"], b["high"]
    low_a, high_a, low_b, high_b = ends
    if name == "<":
        true, false = high_a < low_b, low_a >= high_b
    elif name == "<=":
        true, false = high_a <= low_b, low_a > high_b
    else:
        true = (low_a == high_b) & (high_a == low_b)
        false = (high_a < low_b) | (low_a > high_b)
    for mask in strange:
        true = true & ~mask
    for mask in always:
        false = false | mask
    return _verdict(true, false)


def _tested(name: str, x: Array) -> Array:
    """is_nan and is_infinite."""
    if not is_set(x) or x.dtype != FLOAT_SET:
        return np.zeros(x.shape, np.int8)
    a = opened(x)
    never = np.zeros(a.low.shape, bool)
    maybe = a.maybe if a.maybe is not None else never
    sure = a.sure if a.sure is not None else never
    if name == "is_nan":
        return _verdict(sure, ~maybe)
    always = np.isinf(a.low) & (a.low == a.high) & ~maybe
    return _verdict(always, sure | (np.isfinite(a.low) & np.isfinite(a.high)))


def decided(verdict: Array) -> Array:
    """The condition as a truth value. Raises Unsupported where it is open."""
    if (verdict == OPEN).any():
        raise Unsupported("a condition on values that are not known decides what is computed")
    return np.asarray(verdict == TRUE)


def _on_elements(term: Operand) -> bool:
    """True if a condition is one on elements or is made of such."""
    if not isinstance(term, Node) or term.kind != BOOL:
        return False
    if term.op in ("and", "or", "not"):
        return any(_on_elements(argument) for argument in term.args)
    return term.op in ("element", "truth") or (term.op in COMPARISONS and ELEMENT in map(kind_of, term.args))


def _condition(term: Operand, space: Space) -> Code:
    """The code of a condition as TRUE, FALSE or OPEN."""
    if not isinstance(term, Node) or not _on_elements(term):
        return combine(lambda x: np.asarray(x).astype(np.int8), [lower(term, space)])
    codes = [lower(a, space) for a in term.args] if term.op not in ("and", "or", "not") else []
    match term.op:
        case "not":
            return combine(lambda x: np.asarray(TURNED[x]), [_condition(term.args[0], space)])
        case "and" | "or":
            result = _condition(term.args[0], space)
            join = _and if term.op == "and" else _or
            for argument in term.args[1:]:
                result = combine(join, [result, _condition(argument, space)])
            return result
        case "truth":
            return combine(lambda x: _verdict(x["low"] & x["high"], ~(x["low"] | x["high"])), codes)
        case "element":
            return combine(lambda x: _tested(str(term.data), x), codes)
        case _:
            return combine(lambda a, b: compared(term.op, a, b), codes)


def _and(a: Array, b: Array) -> Array:
    return _verdict((a == TRUE) & (b == TRUE), (a == FALSE) | (b == FALSE))


def _or(a: Array, b: Array) -> Array:
    return _verdict((a == TRUE) | (b == TRUE), (a == FALSE) & (b == FALSE))


def _relation(node: Node, space: Space) -> Code:
    return combine(decided, [_condition(node, space)]) if _on_elements(node) else LOWER[node.op](node, space)


def _choice(node: Node, space: Space) -> Code:
    condition, then, other = node.args
    if node.kind != ELEMENT or not isinstance(condition, Node) or not _on_elements(condition):
        return LOWER["ite"](node, space)

    chosen, rest = (_narrowing(branch, condition, holds=holds) for branch, holds in ((then, True), (other, False)))
    limits = [lower(term, space) for term in condition.args] if chosen or rest else []

    def choose(verdict: Array, a: Array, b: Array, *sides: Array) -> Array:
        result = np.where(verdict == TRUE, a, b)
        undecided = np.broadcast_to(verdict == OPEN, result.shape)
        if not undecided.any():
            return result
        p, q = (_narrowed(x, how, sides) for x, how in ((a, chosen), (b, rest)))
        return np.where(undecided, hull(p, q), result)

    return combine(choose, [_condition(condition, space), lower(then, space), lower(other, space), *limits])


def _narrowing(branch: Operand, condition: Operand, *, holds: bool) -> tuple[int, bool] | None:
    """The hint of a condition about a branch that it compares: with which side, and whether it is at most that."""
    if not isinstance(condition, Node) or condition.op not in ("<", "<=", ">", ">="):
        return None
    less = condition.op in ("<", "<=")
    for side in (0, 1):
        if _same(branch, condition.args[side]):
            return 1 - side, (less == (side == 0)) == holds
    return None


def _same(a: Operand, b: Operand) -> bool:
    """True if two terms are the same element."""
    if isinstance(a, Affine) and isinstance(b, Affine):
        return a.const == b.const and a.terms == b.terms
    if not isinstance(a, Node) or not isinstance(b, Node):
        return isinstance(a, int) and isinstance(b, int) and a == b
    if a is b:
        return True
    same = isinstance(a.data, Source) and isinstance(b.data, Source) and a.data.tensor is b.data.tensor
    return same and all(_same(x, y) for x, y in zip(a.args, b.args, strict=True))


def _narrowed(x: Array, how: tuple[int, bool] | None, sides: tuple[Array, ...]) -> Array:
    """A set without what the condition excludes; it takes zeros of both signs for one."""
    if how is None or x.dtype != FLOAT_SET:
        return x
    side, at_most = how
    limit = sides[side]
    out = np.empty(np.broadcast_shapes(x.shape, limit.shape), FLOAT_SET)
    end = np.fmax(limit["high"], limit["most"]) if at_most else np.fmin(limit["low"], limit["least"])
    end = np.where(np.isnan(limit["low"]), np.inf if at_most else -np.inf, end)
    end = np.where(end == 0, 0.0 if at_most else -0.0, end)
    for name in FLOAT_SET.names or ():
        beyond = x[name] > end if at_most else x[name] < end
        out[name] = np.where(beyond, end, x[name])
    return out


# ---- elements ---------------------------------------------------------------------------------


def _read(node: Node, space: Space) -> Code:
    """Reads give sets, whatever lies in the frame."""
    code = LOWER["read"](node, space)
    if node.kind != ELEMENT or node.type is None:
        return code
    return combine(space.builder.algebra.lift(node.type), [code])


def _const(node: Node, space: Space) -> Code:
    if node.free and node.type is not None and node.type != np.dtype(object):
        return everything((), node.type)
    return LOWER["const"](node, space)


def _element(node: Node, space: Space) -> Code:
    if node.kind == BOOL:
        return combine(decided, [_condition(node, space)])
    code = element(node, space)
    return LOWER["element"](node, space) if code is None else code


def _oneof(node: Node, space: Space) -> Code:
    return combine(hull, [lower(argument, space) for argument in node.args])


def _cast(node: Node, space: Space) -> Code:
    (operand,), target = node.args, node.type
    if target is None or not _on_elements(operand):
        return LOWER["cast"](node, space)
    convert = space.builder.algebra.cast(np.dtype(np.bool_), target)

    def element_of(verdict: Array) -> Array:
        out: Array = np.empty(verdict.shape, storage(np.dtype(np.bool_)))
        out["low"], out["high"] = verdict == TRUE, verdict != FALSE
        return convert(out)

    return combine(element_of, [_condition(operand, space)])


def _exact(function: Callable[[Array, DType], Array]) -> Callable[[Node, Space], Code]:
    """Elements as exact numbers: they have to be known."""

    def make(node: Node, space: Space) -> Code:
        source = element_type(node.args[0])
        return combine(lambda x: function(known(x), source), [lower(node.args[0], space)])

    return make


def _fold(node: Node, space: Space) -> Code:
    fold: Fold = node.data
    if fold.name in ("argmax", "argmin") and kind_of(fold.body) == ELEMENT:
        return _position(fold, node, space)
    if fold.name == "sum" and node.kind == ELEMENT and node.type is not None:
        return fold_sum(node, space)
    return LOWER["fold"](node, space)


class Undecided(Unsupported):
    """Which of some elements is the extreme one is not known. steps: how many there are."""

    def __init__(self, steps: int) -> None:
        """`steps`: see above."""
        super().__init__("a value that is not known decides what is computed")
        self.steps = steps


def _position(fold: Fold, node: Node, space: Space) -> Code:
    """The position of an extreme among elements that are known, or so far apart that they do not decide it. Raises
    Undecided where they do."""
    body = fold.body
    if fold.guard is True:
        terms, steps = run_of(fold_terms(fold, body, space, {})), tuple(axis.size for axis in fold.axes)
        shape = over(space, node.axes)

        def find(frame: Frame) -> Array:
            every = np.broadcast_to(terms(frame), (*steps, *shape)).reshape(fold.steps, *shape)
            return extreme_position(every, largest=fold.name == "argmax")

        return find
    plain = Node("known", (body,), axes_of(body), ELEMENT)
    made = replace(node, args=(plain, *node.args[1:]), data=replace(fold, body=plain))
    try:
        code = LOWER["fold"](made, space)
    except Unsupported:
        raise Undecided(fold.steps) from None
    if isinstance(code, np.ndarray):
        return code

    def run(frame: Frame, _kept: Node = made) -> Array:  # terms are told apart by identity
        try:
            return code(frame)
        except Unsupported:
            raise Undecided(fold.steps) from None

    return run


def favouring(step: int) -> Mapping[str, Callable[[Node, Space], Code]]:
    """What computes operations where of the elements among which an extreme is sought the one at a step is as far out
    as it may be, and the others as little: its position is found wherever it may be that of the extreme."""

    def fold_of(node: Node, space: Space) -> Code:
        fold: Fold = node.data
        if fold.name not in ("argmax", "argmin") or kind_of(fold.body) != ELEMENT:
            return _fold(node, space)
        flat, stride = list[tuple[Axis, int]](), 1
        for axis in reversed(fold.axes):
            flat.append((axis, stride))
            stride *= axis.size
        place = Affine(0, tuple(sorted(flat, key=lambda it: it[0].id)))
        data = step, fold.name == "argmax"
        end = Node("favoured", (fold.body, place), axes_of(fold.body, place), ELEMENT, data=data)
        return LOWER["fold"](replace(node, args=(end, *node.args[1:]), data=replace(fold, body=end)), space)

    return {**CODES, "fold": fold_of}


def _favoured(node: Node, space: Space) -> Code:
    body, place = node.args
    step, largest = node.data

    def ends(x: Array, at: Array) -> Array:
        if not is_set(x) or x.dtype != FLOAT_SET:
            return known(x).astype(np.float64)
        low, high = np.fmin(x["low"], x["least"]), np.fmax(x["high"], x["most"])
        a, unbounded = opened(x), np.isnan(x["low"])
        low, high = np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high)
        end = np.where((at == step) == largest, high, low)
        for mask, where in ((a.maybe, at == step), (a.sure, True)):  # a NaN lies farther out than all numbers
            end = end if mask is None else np.where(mask & where, np.nan, end)
        return np.asarray(end)

    return combine(ends, [lower(body, space), lower(place, space)])


def extreme_position(x: Array, *, largest: bool) -> Array:
    """Along axis 0 the first position of the extreme, a NaN before all numbers.

    Raises Unsupported where the values that the elements may have leave it open.
    """
    a = opened(x) if is_set(x) and x.dtype == FLOAT_SET else None
    if a is None or a.maybe is not None or np.array_equal(a.low, a.high):
        try:
            exact = known(x)
        except Unsupported:
            raise Undecided(len(x)) from None
        exact = exact if exact.dtype.num <= 23 else exact.astype(np.float64)
        return np.asarray(np.argmax(exact, axis=0) if largest else np.argmin(exact, axis=0)).astype(np.int64)
    low, high = (a.low, a.high) if largest else (-a.high, -a.low)
    low, high = np.broadcast_to(low, x.shape), np.broadcast_to(high, x.shape)
    best = np.argmax(low, axis=0)
    least = np.take_along_axis(low, best[None], 0)
    place = np.arange(len(x)).reshape(-1, *(1 for _ in best.shape))
    behind = (high < least) | ((high == least) & (place > best)) | (place == best)
    if not behind.all():
        raise Undecided(len(x))
    return np.asarray(best).astype(np.int64)


def _known(node: Node, space: Space) -> Code:
    return combine(known, [lower(node.args[0], space)])


CODES: Final[Mapping[str, Callable[[Node, Space], Code]]] = {
    **dict.fromkeys((*COMPARISONS, "truth"), _relation),
    "ite": _choice,
    "read": _read,
    "const": _const,
    "element": _element,
    "oneof": _oneof,
    "cast": _cast,
    "integer": _exact(lambda x, _: exact_integer(x)),
    "rational": _exact(exact_rational),
    "fold": _fold,
    "known": _known,
    "favoured": _favoured,
}
"""For each operation on terms that does not leave the values of elements alone, what computes it."""
