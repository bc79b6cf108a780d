"""The signature of an operator that ONNX has no schema of: its text declares types and attributes."""

from __future__ import annotations

from collections.abc import Sequence

from ..language.syntax import AttributeDeclaration, Expr, Operator, Port, Sort
from .schema import ATTRIBUTE_SORTS, FormalAttribute, FormalPort, Plain, Signature, signatures, stored_default
from .scope import Ledger, hint
from .sorts import ELEMENT_TYPES

KINDS = ("int", "float", "string", "tensor", "type_proto", "ints", "floats", "strings")
"""The kinds of attributes that a text can declare."""


def signatures_of(meanings: Sequence[Operator]) -> tuple[Signature, ...]:
    """The signatures of an operator with these meanings, oldest first: ONNX's, else those that its texts state."""
    return signatures().get(meanings[0].name) or tuple(declared(it, Ledger({}, ())) for it in meanings)


def declared(operator: Operator, ledger: Ledger) -> Signature:
    """The signature that the text of an operator without a schema states; mistakes in it are reported."""
    types = {it.name: it for it in operator.types}
    if operator.first != operator.last:
        ledger.report("declared/versions", operator.span, operator=operator.name)
    always = {it.type for it in operator.inputs if not it.mark}
    for port in (*operator.inputs, *operator.outputs):
        for kind in port.types:
            if kind not in types and kind not in ELEMENT_TYPES:
                ledger.report("declared/type", port.span, name=kind)
        if port.others and (port.mark != "*" or port not in operator.inputs):
            ledger.report("declared/group", port.span, name=port.name)
        for kind in {*port.others} & types.keys() - always - {port.type}:
            ledger.report("declared/group-type", port.span, name=port.name, type=kind)
    for it in operator.types:
        for kind in it.allowed:
            if kind not in ELEMENT_TYPES and "(" not in kind:
                ledger.report("declared/element-type", it.span, name=kind, hint=hint(kind, ELEMENT_TYPES))

    def ports(written: tuple[Port, ...]) -> tuple[FormalPort, ...]:
        return tuple(
            FormalPort(
                it.name,
                it.mark,
                it.type,
                frozenset(types[it.type].allowed if it.type in types else {it.type}),
                len(it.types) if it.mark == "*" else 0,
                it.others,
            )
            for it in written
        )

    attributes = {it.name: _declared(it, ledger) for it in operator.attributes}
    return Signature(operator.name, operator.first, ports(operator.inputs), ports(operator.outputs), attributes)


def _declared(it: AttributeDeclaration, ledger: Ledger) -> FormalAttribute:
    if it.kind not in KINDS:
        ledger.report("declared/kind", it.span, name=it.name, stated=it.kind, allowed=", ".join(KINDS))
    if it.mark and it.default is not None:
        ledger.report("declared/mark", it.span, name=it.name)
    sort = ATTRIBUTE_SORTS.get(it.kind.upper(), Sort(it.kind))
    if it.default is None:
        return FormalAttribute(it.name, sort, it.mark == "?", "")
    value = constant_of(it.default, it.kind)
    if value is None:
        ledger.report("declared/default", it.default.span, name=it.name, stated=it.kind)
        return FormalAttribute(it.name, sort, False, "?")
    several = value if isinstance(value, list) else [value]
    if any(isinstance(one, int) and not -(2**63) <= one < 2**63 for one in several):
        ledger.report("declared/range", it.default.span, name=it.name)
        return FormalAttribute(it.name, sort, False, "?")
    return FormalAttribute(it.name, sort, False, stored_default(it.name, value))


def constant_of(expr: Expr, kind: str) -> Plain | list[Plain] | None:
    """The value of a default of an attribute of this kind; None where it is no number, text or list of that kind."""
    if kind.endswith("s"):
        parts = [constant_of(part, kind[:-1]) for part in expr.parts()] if expr.head == "vector" else [None]
        plain = [part for part in parts if isinstance(part, Plain)]
        return plain if plain and len(plain) == len(parts) else None
    match kind, expr:
        case _, Expr(head="neg", args=(Expr(head="int" | "float") as inner,)):
            value = constant_of(inner, kind)
            return -value if isinstance(value, int | float) else None
        case ("int", Expr(head="int", args=(int() as value,))) | ("string", Expr(head="text", args=(str() as value,))):
            return value
        case "float", Expr(head="int" | "float", args=(value,)):
            return float(str(value))
        case _:
            return None
