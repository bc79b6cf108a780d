"""The definitions of lists of numbers, evaluated: one fold for numbers, for arrays of them, and for bit-vectors.

An array stands for many evaluations at once, one for each entry. A bit-vector is a natural number of which it is known
at which positions it may have a digit 1. So a sum of numbers that share no position is one without carries, and what
might reach the width of the vectors is refused: no operation here wraps around.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas import reading
from sonnx.spec.elaborate.core import Core
from sonnx.spec.library import Specification


@dataclass(frozen=True, slots=True)
class Bits:
    """A natural number as a term of SMT-LIB, a bit-vector of `size` digits. ones: the number with a digit 1 wherever it
    may have one.
    """

    term: str
    ones: int
    size: int


Many = NDArray[np.int64]
Number = int | Many | Bits
Meaning = bool | Number | tuple["Meaning", ...]
Context = reading.Context[None, Meaning]
FOLDING = reading.Reading[Context, Meaning]("the evaluation of encodings")
rule, meaning = FOLDING.rule, FOLDING.meaning


def evaluated(text: Specification, name: str, *arguments: Meaning) -> Meaning:
    """The value of a definition. Raises InternalError for one that says more than lists of numbers."""
    context: Context = reading.Context(text.cores, None)
    return FOLDING.applied(name, arguments, context)


def number(core: Core, context: Context) -> Number:
    """The value of an expression that is a number."""
    value = meaning(core, context)
    if isinstance(value, (bool, tuple)):
        raise InternalError(f"{core.span}: no number")
    return value


def known(core: Core, context: Context) -> int:
    """The value of an expression that is a number, the same in each evaluation."""
    value = number(core, context)
    if not isinstance(value, int):
        raise InternalError(f"{core.span}: a number that the elements decide")
    return value


def entries(core: Core, context: Context) -> tuple[Meaning, ...]:
    """The value of an expression that is a list."""
    value = meaning(core, context)
    if not isinstance(value, tuple):
        raise InternalError(f"{core.span}: no list")
    return value


@rule("literal")
def _literal(core: Core, _context: Context) -> Meaning:
    if isinstance(core.value, str):
        raise InternalError(f"{core.span}: a text")
    return core.value


@rule("neg")
def _neg(core: Core, context: Context) -> Meaning:
    return -known(core.parts[0], context)


@rule("arithmetic")
def _arithmetic(core: Core, context: Context) -> Meaning:
    left, right = (number(part, context) for part in core.parts)
    return combined(core.name, left, right)


def combined(name: str, left: Number, right: Number) -> Number:
    """The sum, difference, product, quotient or remainder; of bit-vectors those that shift and cut."""
    if isinstance(left, int) and isinstance(right, Bits):
        left, right = (right, left) if name in ("add", "mul") else (left, right)
    if isinstance(left, Bits):
        return _vectors(name, left, right)
    if isinstance(right, Bits):
        raise InternalError(f"{name} of a number and a bit-vector")
    match name:
        case "add":
            return left + right
        case "sub":
            return left - right
        case "mul":
            return left * right
        case "div":
            return left // right
        case "mod":
            return left % right
        case _:
            raise InternalError(f"{name} has no meaning for encodings")


def _vectors(name: str, left: Bits, right: Number) -> Bits:
    if name == "add" and isinstance(right, int) and right >= 0:
        right = Bits(constant(right, left.size), right, left.size)
    if name == "add" and isinstance(right, Bits):
        if left.ones & right.ones:
            raise InternalError("two numbers that are added may have a digit 1 at one position")
        return _within(f"(bvor {left.term} {right.term})", left.ones | right.ones, left.size)
    if not isinstance(right, int) or right <= 0 or right & (right - 1):
        raise InternalError(f"{name} of a bit-vector and what is no power of two")
    shift = constant(right.bit_length() - 1, left.size)
    match name:
        case "mul":
            return _within(f"(bvshl {left.term} {shift})", left.ones * right, left.size)
        case "div":
            return _within(f"(bvlshr {left.term} {shift})", left.ones // right, left.size)
        case "mod":
            return _within(f"(bvand {left.term} {constant(right - 1, left.size)})", left.ones & (right - 1), left.size)
        case _:
            raise InternalError(f"{name} has no meaning for bit-vectors")


def _within(term: str, ones: int, size: int) -> Bits:
    if ones >> size:
        raise InternalError("a number may be too large for its bit-vector")
    return Bits(term, ones, size)


def constant(value: int, size: int) -> str:
    """A number as a bit-vector."""
    return f"(_ bv{value} {size})"


@rule("compare")
def _compare(core: Core, context: Context) -> Meaning:
    left, right = (known(part, context) for part in core.parts)
    match core.name:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "=":
            return left == right
        case _:
            raise InternalError(f"{core.span}: {core.name} has no meaning for encodings")


@rule("ite")
def _ite(core: Core, context: Context) -> Meaning:
    condition, then, other = core.parts
    return meaning(then if meaning(condition, context) is True else other, context)


@rule("vector")
def _vector(core: Core, context: Context) -> Meaning:
    return tuple(meaning(part, context) for part in core.parts)


@rule("concat")
def _concat(core: Core, context: Context) -> Meaning:
    left, right = (entries(part, context) for part in core.parts)
    return (*left, *right)


@rule("size")
def _size(core: Core, context: Context) -> Meaning:
    return len(entries(core.parts[0], context))


@rule("fun")
def _primitive(core: Core, context: Context) -> Meaning:
    if core.name != "repeat":
        raise InternalError(f"{core.span}: {core.name} has no meaning for encodings")
    return (meaning(core.parts[0], context),) * known(core.parts[1], context)


@rule("index")
def _index(core: Core, context: Context) -> Meaning:
    base, at = entries(core.parts[0], context), known(core.parts[1], context)
    if not 0 <= at < len(base):
        raise InternalError(f"{core.span}: {at} is no position of a list of {len(base)}")
    return base[at]


def _steps(core: Core, context: Context) -> Iterator[Context]:
    """The contexts in which the guard holds, in order."""
    counts = [known(item.domain, context) for item in core.bound]
    for values in product(*map(range, counts)):
        inner = context
        for item, value in zip(core.bound, values, strict=True):
            inner = inner.bind(item.variable, value)
        if meaning(core.parts[1], inner) is True:
            yield inner


@rule("list")
def _list(core: Core, context: Context) -> Meaning:
    return tuple(meaning(core.parts[0], inner) for inner in _steps(core, context))


@rule("fold")
def _fold(core: Core, context: Context) -> Meaning:
    values = [number(core.parts[0], inner) for inner in _steps(core, context)]
    if core.name in ("sum", "prod"):
        total: Number = 0 if core.name == "sum" else 1
        for value in values:
            total = combined("add" if core.name == "sum" else "mul", total, value)
        return total
    if core.name == "min" and values:
        return min(value for value in values if isinstance(value, int))
    raise InternalError(f"{core.span}: {core.name} has no meaning for encodings")
