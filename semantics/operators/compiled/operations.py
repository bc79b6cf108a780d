"""The code of operations on numbers, truth values and elements."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

from .arithmetic import FUNCTIONS, LIMIT, fractions
from .conditions import COMPARISONS
from .elements.ieee import takes_out
from .lower import LOWER, WRITE, Code, Space, Write, at_clock, combine, lower, run_of
from .plan import Frame
from .terms import RATIONAL, Array, DType, Node, Table, kind_of, limits_of, tabulated
from .types import is_integer


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
