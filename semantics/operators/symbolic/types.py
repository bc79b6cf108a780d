"""The smt interpretation of operators, element types: what is known of one by its name, symbols where it is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from sonnx.spec.language.syntax import Span

from ...errors import InternalError
from ...formulas.terms import FALSE, TRUE, Term
from ...model.payload import BITS
from .cases import settle, whole
from .numbers import Real, at_most, both, either, equal, order
from .values import Dead, ElementType, Scope, Value, axiom, demand

FLOATS: Mapping[str, tuple[int, int]] = {
    "double": (53, 1024), "float": (24, 128), "float16": (11, 16), "bfloat16": (8, 128),
}  # fmt: skip
"""Digits of the significand and exclusive bound of the exponent: the greatest number is (2 - 2^(1-p)) 2^(e-1)."""
HIGHEST: Mapping[str, Fraction] = {
    "float8e4m3fn": Fraction(448), "float8e4m3fnuz": Fraction(240), "float8e5m2": Fraction(57344),
    "float8e5m2fnuz": Fraction(57344), "float4e2m1": Fraction(6), "float8e8m0": Fraction(2) ** 127,
}  # fmt: skip
CODES: Mapping[int, str] = dict(enumerate((
    "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "double", "uint32",
    "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2",
), start=1))  # fmt: skip
"""TensorProto.DataType (onnx.proto)."""


def is_float(name: str) -> bool:
    """Whether a known type is a floating-point type."""
    return name in FLOATS or name in HIGHEST


def is_integer(name: str) -> bool:
    """Whether a known type is an integer type."""
    return "int" in name


def limits(name: str) -> tuple[Fraction, Fraction] | None:
    """The smallest and the greatest finite number of a known type; None for a type without."""
    if is_integer(name):
        size = BITS[name]
        if name.startswith("u"):
            return Fraction(0), Fraction(2**size - 1)
        return Fraction(-(2 ** (size - 1))), Fraction(2 ** (size - 1) - 1)
    if name in FLOATS:
        digits, exponent = FLOATS[name]
        top = (2 - Fraction(1, 2 ** (digits - 1))) * Fraction(2) ** (exponent - 1)
        return -top, top
    if name == "float8e8m0":
        return Fraction(1, 2**127), HIGHEST[name]
    return (-HIGHEST[name], HIGHEST[name]) if name in HIGHEST else None


def is_signed(name: str) -> bool:
    """Whether a known type has numbers below 0."""
    return (limits(name) or (Fraction(0),))[0] < 0


# ---- The primitives ---------------------------------------------------------------------------

Primitive = Callable[[Sequence[Value], Span, Scope], Value]


def _kind(arguments: Sequence[Value]) -> str:
    (kind,) = arguments
    if not isinstance(kind, ElementType):
        raise InternalError(f"{kind!r} is no element type")
    return kind.name


def _known(name: str) -> bool:
    return name in BITS or name == "string"


def _symbol(scope: Scope, base: str, name: str, sort: str) -> Term:
    """The symbol of a property of an open type."""
    symbol = f"{base}.{name}"
    scope.run.symbols[symbol] = (0, sort)
    return Term(symbol)


def _property(base: str, holds: Callable[[str], bool]) -> Primitive:
    def found(arguments: Sequence[Value], _span: Span, scope: Scope) -> Value:
        name = _kind(arguments)
        if _known(name):
            return TRUE if holds(name) else FALSE
        return _symbol(scope, base, name, "Bool")

    return found


def _bits(arguments: Sequence[Value], _span: Span, scope: Scope) -> Value:
    name = _kind(arguments)
    if _known(name):
        return BITS.get(name, 0)
    symbol = _symbol(scope, "bits", name, "Int")
    axiom(scope, both(at_most(1, symbol), at_most(symbol, 128)))
    return symbol


def _limit(side: int) -> Primitive:
    def found(arguments: Sequence[Value], span: Span, scope: Scope) -> Value:
        name = _kind(arguments)
        if _known(name):
            known = limits(name)
            if known is None:
                demand(scope, "contract", span, FALSE, "lowest, highest")
                raise Dead
            return known[side]
        low, high = (Real(_symbol(scope, base, name, "Real")) for base in ("lowest", "highest"))
        axiom(scope, both(order("<=", low, 1), order("<=", 1, high)))
        return (low, high)[side]

    return found


def _data_type(arguments: Sequence[Value], span: Span, scope: Scope) -> Value:
    code = whole(arguments[0])
    demand(scope, "contract", span, either(*(equal(code, known) for known in CODES)), "data_type")
    if not isinstance(code, int):
        return (
            ElementType(f"data_type.{code.op}") if not scope.run.whole else ElementType(CODES[settle(scope, code, ())])
        )
    return ElementType(CODES[code])


TYPES: Mapping[str, Primitive] = {
    "is_float": _property("is_float", is_float),
    "is_integer": _property("is_integer", is_integer),
    "is_signed": _property("is_signed", is_signed),
    "bits": _bits,
    "lowest": _limit(0),
    "highest": _limit(1),
    "data_type": _data_type,
}
"""The primitives about element types."""
