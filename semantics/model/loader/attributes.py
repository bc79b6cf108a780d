"""Attributes of nodes, other than their graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onnx import AttributeProto

from ..graph import Attribute, AttributeValue
from ..type_protos import from_proto
from .values import Payloads, dense, sparse

KINDS: Final[Mapping[int, str]] = {code: name for name, code in AttributeProto.AttributeType.items()}

# Kind to the field that holds its value, and whether that is a list.
_FIELDS: Final = {
    "FLOAT": ("f", False),
    "INT": ("i", False),
    "STRING": ("s", False),
    "TENSOR": ("t", False),
    "GRAPH": ("g", False),
    "SPARSE_TENSOR": ("sparse_tensor", False),
    "TYPE_PROTO": ("tp", False),
    "FLOATS": ("floats", True),
    "INTS": ("ints", True),
    "STRINGS": ("strings", True),
    "TENSORS": ("tensors", True),
    "GRAPHS": ("graphs", True),
    "SPARSE_TENSORS": ("sparse_tensors", True),
    "TYPE_PROTOS": ("type_protos", True),
}
_BESIDE: Final = frozenset({"name", "type", "doc_string", "ref_attr_name"})
_NUMBERS: Final = frozenset({"FLOAT", "INT", "STRING"})
_NUMBER_LISTS: Final = frozenset({"FLOATS", "INTS", "STRINGS"})

SIMPLE: Final = frozenset(code for code, kind in KINDS.items() if kind in _NUMBERS | _NUMBER_LISTS)
"""The kinds, by number, whose values are numbers and texts: equal ones may be one object."""


def kind_of(proto: AttributeProto, typed: bool) -> str:
    """The kind of an attribute. typed: the model's IR version has types of attributes (2 and later); before, and in
    files that leave it out, the kind is that of the field which is set."""
    if proto.type or typed:
        return KINDS[proto.type]
    found = [kind for kind, (name, _) in _FIELDS.items() if any(it.name == name for it, _ in proto.ListFields())]
    return found[0] if len(found) == 1 else "UNDEFINED"


def consistent(proto: AttributeProto, kind: str) -> bool:
    """Whether the attribute has no value but one of its kind."""
    field = _FIELDS.get(kind, ("", False))[0]
    return all(it.name == field or it.name in _BESIDE for it, _ in proto.ListFields())


def has_value(proto: AttributeProto, kind: str, *, elides: bool) -> bool:
    """Whether the attribute has a value, of its kind alone. One that is not written is the zero of its kind (proto3
    writers leave it out), except where the source elides values."""
    name, many = _FIELDS.get(kind, ("", False))
    if not consistent(proto, kind) or kind == "UNDEFINED":
        return False
    written = len(getattr(proto, name)) > 0 if many else proto.HasField(name)
    return written or (not elides and (many or kind in _NUMBERS))


def attribute(proto: AttributeProto, kind: str, payloads: Payloads) -> Attribute:
    """An attribute without graphs."""
    if not has_value(proto, kind, elides=payloads.elides):
        return Attribute(kind, None)
    value = getattr(proto, _FIELDS[kind][0])
    if kind in _NUMBERS:
        return Attribute(kind, value)
    if kind in _NUMBER_LISTS:
        return Attribute(kind, tuple(value))
    return Attribute(kind, _composite(kind, value, payloads))


def _composite(kind: str, value: object, payloads: Payloads) -> AttributeValue:
    match kind:
        case "TENSOR":
            return dense(value, payloads)  # type: ignore[arg-type]
        case "TENSORS":
            return tuple(dense(it, payloads) for it in value)  # type: ignore[attr-defined]
        case "SPARSE_TENSOR":
            return sparse(value, payloads)  # type: ignore[arg-type]
        case "SPARSE_TENSORS":
            return tuple(sparse(it, payloads) for it in value)  # type: ignore[attr-defined]
        case "TYPE_PROTO":
            return from_proto(value)  # type: ignore[arg-type]
        case "TYPE_PROTOS":
            return tuple(from_proto(it) for it in value)  # type: ignore[attr-defined]
        case _:
            return None
