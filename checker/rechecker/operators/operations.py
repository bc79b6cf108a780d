"""Operations of the text on values, wherever they come from: relations, arithmetic, choices, elements of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import cast

import numpy as np
from numpy.typing import NDArray

from . import elements as el
from . import formulas as fm
from .formulas import Every, Formula, Int, Poly, Unknown
from .proving import bounds, within
from .values import (
    Closure,
    Dead,
    Element,
    Kind,
    Listed,
    Number,
    Opaque,
    Open,
    Ratio,
    Run,
    Split,
    Tensor,
    Value,
    Withheld,
    shown,
)

LOOKED_AT = 4_096
"""A range of numbers with at most so many indices is gone through one by one."""
FEW = 16
"""A number that lies between so many is looked at case by case."""


# ---- Values as what they stand for --------------------------------------------------------------


def as_formula(value: Value) -> Formula:
    """A value that is a truth value."""
    if isinstance(value, Element):
        return el.as_truth(value)
    if isinstance(value, bool | Unknown | Every) or type(value).__name__ in ("Test", "Both", "Either"):
        return cast("Formula", value)
    raise Open(f"{shown(value)} is no truth value")


def _is_formula(value: Value) -> bool:
    return isinstance(value, bool) or not isinstance(
        value,
        int | Poly | Fraction | Ratio | str | Kind | Element | Opaque | Tensor | Listed | Closure | Withheld | tuple,
    )


def as_int(value: Value) -> Int:
    """A value that is an integer."""
    if isinstance(value, bool):
        raise Open("a truth value stands for a number")
    if isinstance(value, int | Poly):
        return value
    if isinstance(value, Element):
        return el.as_integer(value)
    raise Open(f"{shown(value)} is no integer")


def as_number(value: Value) -> Number:
    """A value that is an exact number."""
    if isinstance(value, int | Poly | Fraction | Ratio) and not isinstance(value, bool):
        return value
    raise Open(f"{shown(value)} is no number")


def settled(value: Value, run: Run, what: str) -> int:
    """An integer that is a plain number, or that the facts fix."""
    number = as_int(value)
    if isinstance(number, int):
        return number
    low, high = bounds(number)
    if low == high:
        return int(low)
    candidates = range(int(low), int(high) + 1) if high - low <= FEW else ()
    left = [k for k in candidates if not run.holds(fm.opposite(fm.equal(number, k)))]
    if len(left) == 1:
        return left[0]
    said = f"{what} depends on {fm.key_of(number)}"
    if left:
        raise Split(said, fm.equal(number, left[0]))
    raise Open(said, data=True)


def entries(value: Value) -> tuple[Value, ...]:
    """A value that is a list."""
    if isinstance(value, tuple):
        return value
    raise Open(f"{shown(value)} is no list")


# ---- Relations ----------------------------------------------------------------------------------


def related(sign: str, left: Value, right: Value) -> Formula:
    """A relation between two values; of lists it holds where it holds in every component."""
    if sign == "!=":
        return fm.opposite(related("=", left, right))
    if sign in ("in", "not in"):
        formula = _among(left, right)
        return formula if sign == "in" else fm.opposite(formula)
    if isinstance(left, tuple) or isinstance(right, tuple):
        if isinstance(left, tuple) and isinstance(right, tuple) and len(left) != len(right):
            if sign == "=":
                return False
            raise Dead
        return fm.both(*(related(sign, a, b) for a, b in pairs(left, right)))
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if isinstance(left, Kind) and isinstance(right, Kind):
        if not left.name or not right.name:
            raise Open("an element type is open")
        return left.name == right.name
    if isinstance(left, Element) or isinstance(right, Element):
        return el.less(sign, *_alike(left, right))
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        return Unknown(f"({shown(left)} {sign} {shown(right)})")
    if _is_formula(left) or _is_formula(right):
        a, b = as_formula(left), as_formula(right)
        return fm.either(fm.both(a, b), fm.both(fm.opposite(a), fm.opposite(b)))
    return el.relate(sign, as_number(left), as_number(right))


def _alike(left: Value, right: Value) -> tuple[Element, Element]:
    """Two elements of one type, the one that is a number adapted."""
    kind = next(v.kind for v in (left, right) if isinstance(v, Element))
    kind = next((v.kind for v in (left, right) if isinstance(v, Element) and v.kind), kind)
    a, b = (v if isinstance(v, Element) else el.as_element(kind, v) for v in (left, right))
    return a, b


def _among(left: Value, right: Value) -> Formula:
    if isinstance(right, tuple):
        if isinstance(left, tuple) and not (right and isinstance(right[0], tuple)):
            if len(left) != len(right):
                raise Dead
            return fm.both(*(_among(i, n) for i, n in zip(left, right, strict=True)))
        return fm.either(*(related("=", left, item) for item in right))
    return fm.both(*within(as_int(left), as_int(right)))


def pairs(left: Value, right: Value) -> Iterator[tuple[Value, Value]]:
    """The components of two lists; a number stands beside each."""
    size = len(left) if isinstance(left, tuple) else len(entries(right))
    a = left if isinstance(left, tuple) else (left,) * size
    b = right if isinstance(right, tuple) else (right,) * size
    if len(a) != len(b):
        raise Dead
    return iter(zip(a, b, strict=True))


# ---- Arithmetic ---------------------------------------------------------------------------------


def arithmetic(operator: str, left: Value, right: Value, run: Run) -> Value:
    """An operation on exact numbers, elements, or lists of them."""
    run.spend()
    if isinstance(left, tuple) or isinstance(right, tuple):
        return tuple(arithmetic(operator, a, b, run) for a, b in pairs(left, right))
    if isinstance(left, Element) or isinstance(right, Element):
        return el.calculate(operator, *_alike(left, right))
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        return Opaque(f"({shown(left)} {operator} {shown(right)})")
    a, b = as_number(left), as_number(right)
    if operator in ("div", "mod"):
        return _divided(operator, a, b, run)
    if operator == "quotient":
        return _over(a, b)
    if isinstance(a, int | Poly) and isinstance(b, int | Poly):
        return {"add": fm.add, "sub": fm.subtract, "mul": fm.multiply}[operator](a, b)
    (p, q), (r, s) = el.rational_parts(a), el.rational_parts(b)
    if operator == "mul":
        return el.rational_of(fm.multiply(p, r), q * s)
    x, y = fm.multiply(p, s), fm.multiply(r, q)
    return el.rational_of(fm.add(x, y) if operator == "add" else fm.subtract(x, y), q * s)


def _divided(operator: str, left: Number, right: Number, run: Run) -> Value:
    if not isinstance(left, int | Poly) or not isinstance(right, int | Poly):
        raise Open("a quotient of numbers that are no integers")
    if right == 0:
        raise Dead
    if isinstance(right, Poly) and bounds(right)[0] < 1 and not run.holds(fm.at_least(right, 1)):
        raise Open(f"the divisor {fm.key_of(right)} may not be positive", data=fm.on_data(fm.equal(right, 0)))
    return fm.floor_div(left, right) if operator == "div" else fm.floor_mod(left, right)


def _over(left: Number, right: Number) -> Value:
    (p, q), (r, s) = el.rational_parts(left), el.rational_parts(right)
    if isinstance(r, int):
        if r == 0:
            raise Dead
        sign = 1 if r > 0 else -1
        return el.rational_of(fm.multiply(p, s * sign), q * abs(r))
    raise Open(f"a quotient by {fm.key_of(r)}", data=fm.on_data(fm.equal(r, 0)))


def minus(value: Value) -> Value:
    """The value with the other sign."""
    if isinstance(value, tuple):
        return tuple(map(minus, value))
    if isinstance(value, Element):
        return el.negative(value)
    if isinstance(value, Opaque):
        return Opaque(f"-{value.name}")
    above, below = el.rational_parts(as_number(value))
    return el.rational_of(fm.negate(above), below)


def extreme(left: Value, right: Value, run: Run, *, least: bool) -> Value:
    """The smaller or greater of two values, componentwise for lists."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        return tuple(extreme(a, b, run, least=least) for a, b in pairs(left, right))
    if isinstance(left, Element) or isinstance(right, Element):
        return el.extreme(run, *_alike(left, right), least=least)
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        return Opaque(f"{'min' if least else 'max'}({shown(left)},{shown(right)})")
    a, b = as_number(left), as_number(right)
    order = run.decided(el.relate("<=", a, b))
    if order is not None:
        return left if order is least else right
    if isinstance(a, int | Poly) and isinstance(b, int | Poly):
        return fm.negate(fm.greater(fm.negate(a), fm.negate(b))) if least else fm.greater(a, b)
    raise Open("which of two numbers is greater depends on sizes")


# ---- Choices ------------------------------------------------------------------------------------


def merged(condition: Formula, left: Value, right: Value) -> Value:
    """The one or the other, in one value."""
    if isinstance(left, Element) or isinstance(right, Element):
        return el.merged(condition, *_alike(left, right))
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return tuple(merged(condition, a, b) for a, b in zip(left, right, strict=True))
    if _is_formula(left) and _is_formula(right):
        return fm.either(fm.both(condition, as_formula(left)), fm.both(fm.opposite(condition), as_formula(right)))
    if isinstance(left, int | Poly) and isinstance(right, int | Poly):
        return left if left == right else fm.chosen(condition, left, right)
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        return left if left == right else Opaque(f"if({shown(condition)},{shown(left)},{shown(right)})")
    if isinstance(left, str | Kind | Fraction | Ratio) and left == right:
        return left
    raise Split("a choice depends on what is not known", condition)


# ---- Elements of tensors ------------------------------------------------------------------------


def read(tensor: Tensor, index: tuple[Int, ...], run: Run) -> Value:
    """The element of a tensor at an index in its shape."""
    run.spend()
    if tensor.shape is not None and len(index) != len(tensor.shape):
        raise Dead
    if tensor.constant is not None and tensor.constant.data is not None and all(isinstance(i, int) for i in index):
        return stored(tensor, tensor.constant.data, cast("tuple[int, ...]", index))
    names = tuple(map(fm.key_of, index))
    if tensor.read is not None:
        key = run.path, names
        if key in tensor.memory:
            return tensor.memory[key]
        try:
            value = tensor.read(index)
        except Open as problem:
            if "too many steps" in problem.reason or not tensor.kind:
                raise
            value = _unread(tensor, names)
        if not run.trial:
            tensor.memory[key] = value
        return value
    return _unread(tensor, names)


def _unread(tensor: Tensor, names: Sequence[str]) -> Element:
    name = f"{tensor.name}[{', '.join(names)}]"
    if tensor.kind == "bool":
        return Element("bool", Unknown(name))
    low, high = (None, None) if tensor.constant is None else tensor.constant.extremes
    return Element(tensor.kind, Opaque(name, low, high, low is None))


def stored(tensor: Tensor, data: NDArray[np.generic], index: tuple[int, ...]) -> Element:
    """An element of a constant."""
    try:
        item = data[index]
    except IndexError:
        raise Dead from None
    kind = tensor.kind
    if kind in el.INTEGERS:
        return Element(kind, int(item))
    if kind == "bool":
        return Element(kind, bool(item))
    if kind in el.COMPUTED:
        return Element(kind, el.COMPUTED[kind](item))
    if kind == "string":
        return Element(kind, item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item))
    if kind in ("float16", "bfloat16"):
        exact = Fraction(float(item)) if abs(float(item)) < float("inf") else None
        return Element(kind, Opaque(f"{tensor.name}{index}", exact, exact, exact is None))
    return el.opaque(kind, f"{tensor.name}{index}")
