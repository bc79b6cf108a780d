"""Sums of sets for every order: folds, and additions around them as further terms of the same sum.

`bias + sum(k < n) a * b` is one sum of n + 1 terms, since where the first term is put is part of the order; so are
three terms added one by one. A factor or divisor of a sum that is a term of another, as in `(x - mean) / s * scale +
bias`, is allowed to be applied to the terms, which is how implementations fold constants. A sum of products of tensors
is three matrix products: of the centres, of the magnitudes, and, where inputs are no known numbers, of the radii.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .....errors import InternalError
from .....model.elements import DOUBLE, DType, is_float
from ...code import Code, Frame, Job, Space, lower, over, run_of
from ...equations import CHUNK, Fold, blocks, fold_terms
from ...terms import ELEMENT, Array, Node, Operand
from ..ieee import wrap
from .arithmetic import divide
from .factors import factors
from .integers import operation as integer_operation
from .moments import Moments, finished, negated, of_terms, scaled, together
from .products import products
from .storage import known, lift

Sum = Callable[[Frame], Moments]


def element(node: Node, space: Space) -> Code | None:
    """The code of an addition or a multiplication that is part of a longer one; None for another operation."""
    if node.type is None or not is_float(node.type):
        return None
    if node.data in ("mul", "quotient"):
        return factors(node, space)
    if node.data not in ("add", "sub"):
        return None
    terms = list(_terms(node))
    if len(terms) < 3 and not any(_is_sum(term) for term, _ in terms):
        return None
    return _code(_added(node, space), node.type)


def fold_sum(node: Node, space: Space) -> Code:
    """The code of a fold that adds elements up."""
    if node.type is None or not is_float(node.type):
        return _integers(node, space)
    return _code(_folded(node, space), node.type)


def _code(moments: Sum, dtype: DType) -> Code:
    return lambda frame: finished(moments(frame), dtype)


def _terms(term: Operand, sign: int = 1) -> list[tuple[Operand, int]]:
    """The terms of a sum that is written with + and -, with their signs."""
    if isinstance(term, Node) and term.op == "element" and term.kind == ELEMENT and term.data in ("add", "sub"):
        first, second = term.args
        return _terms(first, sign) + _terms(second, sign if term.data == "add" else -sign)
    return [(term, sign)]


def _is_sum(term: Operand) -> bool:
    """True if a term is a sum or one with a factor or a divisor."""
    if not isinstance(term, Node) or term.kind != ELEMENT:
        return False
    if term.op == "fold":
        fold: Fold = term.data
        return fold.name == "sum"
    if term.op != "element":
        return False
    if term.data in ("mul", "neg"):
        return any(_is_sum(argument) for argument in term.args)
    return term.data in ("add", "sub") or (term.data == "quotient" and _is_sum(term.args[0]))


def _added(node: Operand, space: Space) -> Sum:
    parts = [_signed(_moments(term, space), sign) for term, sign in _terms(node)]

    def run(frame: Frame) -> Moments:
        total = parts[0](frame)
        for part in parts[1:]:
            total = together(total, part(frame))
        return total

    return run


def _signed(moments: Sum, sign: int) -> Sum:
    return moments if sign > 0 else lambda frame: negated(moments(frame))


def _moments(term: Operand, space: Space) -> Sum:
    """A term of a sum as one, be it a sum itself."""
    if isinstance(term, Node) and term.type is not None and _is_sum(term):
        if term.op == "fold":
            return _folded(term, space)
        if term.data in ("add", "sub"):
            return _added(term, space)
        if term.data == "neg":
            return _signed(_moments(term.args[0], space), -1)
        left, right = term.args
        inner, factor = (left, right) if _is_sum(left) else (right, left)
        moments, code, dtype = _moments(inner, space), run_of(lower(factor, space)), term.type
        if term.data == "quotient":
            return lambda frame: scaled(moments(frame), _inverse(np.asarray(1.0), code(frame)), dtype, 2)
        return lambda frame: scaled(moments(frame), code(frame), dtype)
    code = run_of(lower(term, space))
    return lambda frame: of_terms(np.asarray(code(frame)), 0)


_inverse = divide(DOUBLE)


def _folded(node: Node, space: Space) -> Sum:
    fold: Fold = node.data
    moments = products(fold, node, space) or _by_terms(fold, node, space)
    if fold.start is None:
        return moments
    start = run_of(lower(fold.start, space))
    return lambda frame: together(moments(frame), of_terms(np.asarray(start(frame)), 0))


def _parts(
    fold: Fold, node: Node, space: Space
) -> tuple[list[tuple[Job, Job | None, tuple[int, ...]]], tuple[int, ...]]:
    """The terms and the guard by chunks of steps, each with the number of steps along each axis."""
    shape = over(space, node.axes)
    parts: list[tuple[Job, Job | None, tuple[int, ...]]] = []
    for box in blocks(fold.axes, max(1, CHUNK // max(1, math.prod(shape)))):
        steps = tuple(hi - lo for lo, hi in (box[axis] for axis in fold.axes))
        guard = None if fold.guard is True else run_of(fold_terms(fold, fold.guard, space, box))
        parts.append((run_of(fold_terms(fold, fold.body, space, box)), guard, steps))
    return parts, shape


def _by_terms(fold: Fold, node: Node, space: Space) -> Sum:
    """The terms one beside the other."""
    count = len(fold.axes)
    parts, shape = _parts(fold, node, space)

    def run(frame: Frame) -> Moments:
        total: Moments | None = None
        number: Array = np.zeros(())
        for body, guard, steps in parts:
            terms = np.broadcast_to(body(frame), (*steps, *shape))
            mask = None if guard is None else np.broadcast_to(np.asarray(guard(frame)), terms.shape)
            part = of_terms(terms, count, mask)
            number = number + (part.terms if mask is None else mask.sum(axis=tuple(range(count))))
            total = part if total is None else together(total, part)
        if total is None:
            raise InternalError("a fold without a step")
        return replace(total, terms=np.maximum(number, 1.0))

    return run


def _integers(node: Node, space: Space) -> Code:
    """A sum of integers: wrapped around, the same in every order."""
    fold: Fold = node.data
    dtype = node.type
    if dtype is None:
        raise InternalError("a sum of elements without a type")
    parts, shape = _parts(fold, node, space)
    raised, add = lift(dtype), integer_operation("add", dtype)
    start = None if fold.start is None else run_of(lower(fold.start, space))
    whole = np.uint64 if dtype.kind == "u" else np.int64

    def run(frame: Frame) -> Array:
        total = np.zeros(shape, whole)
        for body, guard, steps in parts:
            terms = known(np.asarray(body(frame))).astype(whole)
            if guard is not None:
                terms = np.where(np.asarray(guard(frame)), terms, 0)
            full = np.broadcast_to(terms, (*steps, *shape))
            total = total + full.sum(axis=tuple(range(len(steps))), dtype=whole)
        result = raised(wrap(total, dtype))
        return result if start is None else add(result, start(frame))

    return run
