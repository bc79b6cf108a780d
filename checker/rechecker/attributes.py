"""Attributes of nodes: the kind of their values, and the values."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from .facts import Facts
from .reader import Node
from .schema import schema_of

Kinds = onnx.AttributeProto
Payload = int | float | bytes | tuple[int, ...] | tuple[float, ...] | tuple[bytes, ...] | None

FIELDS: Mapping[int, str] = {
    Kinds.FLOAT: "f",
    Kinds.INT: "i",
    Kinds.STRING: "s",
    Kinds.TENSOR: "t",
    Kinds.GRAPH: "g",
    Kinds.SPARSE_TENSOR: "sparse_tensor",
    Kinds.TYPE_PROTO: "tp",
    Kinds.FLOATS: "floats",
    Kinds.INTS: "ints",
    Kinds.STRINGS: "strings",
    Kinds.TENSORS: "tensors",
    Kinds.GRAPHS: "graphs",
    Kinds.SPARSE_TENSORS: "sparse_tensors",
    Kinds.TYPE_PROTOS: "type_protos",
}
PLAIN = frozenset([Kinds.FLOAT, Kinds.INT, Kinds.STRING])
LISTS = frozenset(kind for kind, field in FIELDS.items() if field.endswith("s") and field != "s")
BESIDE = frozenset(["name", "type", "doc_string", "ref_attr_name"])


def kind(f: Facts, attribute: onnx.AttributeProto) -> int:
    """The kind of an attribute; before IR version 2, where none is stated, by the field that is set."""
    if attribute.type or f.reading.proto.ir_version >= 2:
        return attribute.type
    written = {field.name for field, _ in attribute.ListFields()}
    kinds = [kind for kind, field in FIELDS.items() if field in written]
    return kinds[0] if len(kinds) == 1 else 0


def valued(f: Facts, attribute: onnx.AttributeProto) -> bool:
    """The attribute has a value: of its kind and no other. A zero or an empty list need not be written,
    except in a listing, which leaves out what has no value there."""
    kind_ = kind(f, attribute)
    field = FIELDS.get(kind_)
    if field is None or attribute.ref_attr_name:
        return False
    if any(it.name not in BESIDE and it.name != field for it, _ in attribute.ListFields()):
        return False
    if kind_ in LISTS:
        written = len(getattr(attribute, field)) > 0 or kind_ == Kinds.GRAPHS
    else:
        written = attribute.HasField(field)
    return written or (f.source != "listing" and (kind_ in PLAIN or kind_ in LISTS))


def payload(f: Facts, attribute: onnx.AttributeProto) -> Payload:
    """A number, a text or a list of them; None where there is none."""
    kind_ = kind(f, attribute)
    if not valued(f, attribute) or not (kind_ in PLAIN or kind_ in (Kinds.FLOATS, Kinds.INTS, Kinds.STRINGS)):
        return None
    value = getattr(attribute, FIELDS[kind_])
    return tuple(value) if kind_ in LISTS else value


def default(node: Node, name: str) -> onnx.AttributeProto | None:
    """The value that the schema states for an attribute which a node does not write."""
    schema = schema_of(node)
    formal = None if schema is None or name in node.attributes else schema.attributes.get(name)
    return formal.default_value if formal is not None and formal.default_value.name else None
