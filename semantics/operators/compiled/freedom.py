"""Which elements of a result the text leaves open: the condition, as a term, that goes with a term."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .conditions import conjunction, disjunction
from .conversions import to_double
from .fold_space import Fold
from .lower import LOWER, Code, Space, combine, lower
from .reads import Source
from .terms import BOOL, ELEMENT, TERMS, Array, Node, Operand, axes_of
from .types import integer_range, is_float, is_integer


def free_of(term: Operand) -> Operand:
    """Whether the value of a term is left open: by itself, or because what it is made of is."""
    if not isinstance(term, Node) or not term.free:
        return False
    inner = [free_of(argument) for argument in term.args]
    match term.op:
        case "const":
            return True
        case "oneof":
            return disjunction([Node("differs", term.args, term.axes, BOOL), *inner])
        case "cast" | "saturate":
            return disjunction([_outside(term), *inner])
        case "ite":
            condition, then, other = inner
            chosen = term.args[0]
            if not isinstance(then, TERMS) and not isinstance(other, TERMS) and then == other:
                return disjunction([condition, then])
            return disjunction([condition, Node("ite", (chosen, then, other), axes_of(chosen, then, other), BOOL)])
        case "read":
            source: Source = term.data
            if source.tensor.free is None:
                return disjunction(inner)
            mask = source.tensor.free()
            return Node("read", term.args, term.axes, BOOL, data=replace(source, tensor=mask))
        case "fold":
            fold: Fold = term.data
            body = disjunction([free_of(fold.body), free_of(fold.guard)])
            first = free_of(fold.start) if fold.start is not None else False
            return disjunction([first, _any(fold, body)])
        case _:
            return disjunction(inner)


def _any(fold: Fold, body: Operand) -> Operand:
    outer = tuple(axis for axis in axes_of(body, fold.guard) if axis not in fold.axes)
    condition = conjunction([fold.guard, body])
    if not isinstance(condition, TERMS):
        return condition
    data = Fold("any", fold.axes, body, fold.guard, None, fold.masked, fold.span, fold.rule)
    return Node("fold", (body, fold.guard), outer, BOOL, data=data)


def _outside(term: Node) -> Operand:
    """A conversion of a float that is NaN or outside the range of the integer type, or has no value in the type."""
    (operand,) = term.args
    if not isinstance(operand, Node) or operand.kind != ELEMENT or operand.type is None or not is_float(operand.type):
        return False
    if term.op == "cast" and (term.type is None or not is_integer(term.type)):
        return False
    return Node("outside", (operand,), operand.axes, BOOL, data=(term.op, term.type))


def _lower_outside(node: Node, space: Space) -> Code:
    op, target = node.data
    (operand,) = node.args
    if op == "saturate" or not is_integer(target):
        return combine(lambda x: np.isnan(to_double(np.asarray(x))), [lower(operand, space)])
    low, high = integer_range(target)

    def outside(x: Array) -> Array:
        whole = np.trunc(to_double(np.asarray(x)))
        return np.asarray(~((whole >= low) & (whole < high + 1)))

    return combine(outside, [lower(operand, space)])


def _lower_differs(node: Node, space: Space) -> Code:
    def differs(a: Array, b: Array) -> Array:
        same = np.asarray(a == b).astype(bool)
        if is_float(np.asarray(a).dtype):
            same = (same & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b))
        return np.asarray(~same)

    return combine(differs, [lower(argument, space) for argument in node.args])


LOWER["outside"] = _lower_outside
LOWER["differs"] = _lower_differs
