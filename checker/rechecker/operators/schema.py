"""Attributes of a node as the text reads them: what is written, else the default of ONNX's schema, else of the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from math import isfinite

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from sonnx.semantics.errors import Unsupported

from .lists import NAMES, kind_of
from .text import Attribute, Library, Node, Operator, node, trees, unquoted
from .values import Constant, Kind, Open, Tensor, Value, Withheld, shown

_KIND = onnx.AttributeProto.AttributeType


@cache
def schema_of(name: str, version: int) -> onnx.defs.OpSchema | None:
    """ONNX's schema of an operator in an operator set; None without one."""
    domain, _, operator = name.rpartition("::")
    try:
        return onnx.defs.get_schema(operator, version, domain)
    except onnx.defs.SchemaError:
        return None


@cache
def known(domain: str) -> bool:
    """ONNX has schemas of the domain."""
    return any(it.domain == domain for it in onnx.defs.get_all_schemas_with_history())


def guest(library: Library, domain: str, op_type: str) -> str:
    """The name in the texts of an operator of ONNX's own domain that ONNX lacks and a text declares; "" of others."""
    name = f"ai.onnx::{op_type}"
    return name if not domain and library.in_force(name, _NEWEST) is not None else ""


_NEWEST = 2**31 - 1


def in_force(library: Library, name: str, opset: int) -> tuple[Operator, int] | None:
    """The text of an operator in an operator set, and its version; None where there is none. Raises TextError."""
    if known(name.rpartition("::")[0]):
        form = schema_of(name, opset)
        own = None if form is None else library.operator(name, form.since_version)
        return None if form is None or own is None else (own, form.since_version)
    declared = library.in_force(name, opset)
    return None if declared is None else (declared, declared.first)


def defaults(text: Operator, version: int) -> dict[str, Value | None]:
    """The attributes that the text of an operator may speak of, with their defaults in a version."""
    if not known(text.name.rpartition("::")[0]):
        stated = {it.name: default_of(it) for it in text.attributes}
        return {name: None if default is None else attribute_value(default) for name, default in stated.items()}
    names: set[str] = set()
    for number in range(text.first, text.last + 1):
        schema = schema_of(text.name, number)
        if schema is not None and text.first <= schema.since_version <= text.last:
            names |= set(schema.attributes)
    own = schema_of(text.name, version)
    formals = {} if own is None else own.attributes
    values: dict[str, Value | None] = {}
    for attribute in names:
        default = formals[attribute].default_value if attribute in formals else None
        values[attribute] = attribute_value(default) if default is not None and default.name else None
    return values


def default_of(it: Attribute) -> onnx.AttributeProto | None:
    """The default that the text states of an attribute that it declares; None where it states none."""
    if it.default is None:
        return None
    if it.kind.endswith("s"):
        return onnx.helper.make_attribute(it.name, [_stated(part, it.kind[:-1]) for part in trees(it.default)])
    try:
        return onnx.helper.make_attribute(it.name, _stated(it.default, it.kind))
    except ValueError as error:
        raise Unsupported(f"the default of the attribute {it.name} cannot be stored: {error}") from None


def _stated(tree: Node, kind: str) -> int | float | str:
    """The number or the text that a default of this kind is."""
    match tree.data, tree.children:
        case "neg", [inner]:
            value = _stated(node(inner), kind)
            return value if isinstance(value, str) else -value
        case "int" | "float", [number]:
            return int(str(number)) if kind == "int" else float(str(number))
        case "text", [text]:
            return unquoted(text)
    raise Open("a default is no number and no text")


def written(attributes: Mapping[str, onnx.AttributeProto], node: str) -> dict[str, Value | None]:
    """The attributes that a node writes, without those that hold graphs. node: what names of tensors begin with."""
    return {name: _written(item, node) for name, item in attributes.items() if not _holds_graphs(item)}


def _written(item: onnx.AttributeProto, node: str) -> Value:
    try:
        return attribute_value(item, node)
    except Open as problem:
        return Withheld(problem.reason)


def _holds_graphs(item: onnx.AttributeProto) -> bool:
    return item.type in (_KIND.GRAPH, _KIND.GRAPHS) or item.HasField("g") or bool(item.graphs)


def attribute_value(item: onnx.AttributeProto, node: str = "") -> Value:
    """The value of an attribute. Raises Open."""
    if item.ref_attr_name:
        raise Open(f"the attribute {item.name} refers to one of a call")
    kind = item.type or _guessed(item)
    match kind:
        case _KIND.INT:
            return int(item.i)
        case _KIND.FLOAT:
            return _number(item.f, item.name)
        case _KIND.STRING:
            return item.s.decode("utf-8", "replace")
        case _KIND.INTS:
            return tuple(int(n) for n in item.ints)
        case _KIND.FLOATS:
            return tuple(_number(f, item.name) for f in item.floats)
        case _KIND.STRINGS:
            return tuple(s.decode("utf-8", "replace") for s in item.strings)
        case _KIND.TYPE_PROTO if kind_of(item.tp):
            return Kind(kind_of(item.tp))
        case _KIND.TENSOR:
            return tensor(item.t, f"{node}.{shown(item.name)}")
        case _:
            raise Open(f"the attribute {item.name} is of a kind that is not followed")


def _guessed(item: onnx.AttributeProto) -> int:
    """The kind of an attribute of a model before IR version 2."""
    kinds = {"f": _KIND.FLOAT, "i": _KIND.INT, "s": _KIND.STRING, "t": _KIND.TENSOR, "floats": _KIND.FLOATS,
             "ints": _KIND.INTS, "strings": _KIND.STRINGS}  # fmt: skip
    fields = [kinds[field.name] for field, _ in item.ListFields() if field.name in kinds]
    return int(fields[0]) if len(fields) == 1 else 0


def _number(value: float, name: str) -> Value:
    if not isfinite(value):
        raise Open(f"the attribute {name} is no number")
    return Fraction(value)


def tensor(proto: onnx.TensorProto, name: str, load: Callable[[], NDArray[np.generic] | None] | None = None) -> Tensor:
    """A stored tensor. load: reads elements that are stored elsewhere."""

    def own() -> NDArray[np.generic] | None:
        try:
            return numpy_helper.to_array(proto)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    external = proto.data_location == onnx.TensorProto.EXTERNAL
    return Tensor(
        name,
        NAMES.get(proto.data_type, ""),
        tuple(int(n) for n in proto.dims),
        constant=Constant((load or (lambda: None)) if external else own),
    )
