"""Attributes of a node as the text reads them: what is written, else the default of ONNX's schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from math import isfinite

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from .lists import NAMES, kind_of
from .values import Constant, Kind, Open, Tensor, Value, Withheld, shown

_KIND = onnx.AttributeProto.AttributeType


@cache
def _schema(name: str, version: int) -> onnx.defs.OpSchema | None:
    domain, _, op_type = name.rpartition("::")
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def since(name: str, opset: int) -> int | None:
    """The version of an operator, named with its domain, in an operator set; None where ONNX has no schema of it."""
    form = _schema(name, opset)
    return None if form is None else form.since_version


def defaults(name: str, first: int, last: int, version: int) -> dict[str, Value | None]:
    """The attributes that a text for versions first..last may speak of, with their defaults in that version."""
    names: set[str] = set()
    for number in range(first, last + 1):
        schema = _schema(name, number)
        if schema is not None and first <= schema.since_version <= last:
            names |= set(schema.attributes)
    own = _schema(name, version)
    formals = {} if own is None else own.attributes
    values: dict[str, Value | None] = {}
    for attribute in names:
        default = formals[attribute].default_value if attribute in formals else None
        values[attribute] = attribute_value(default) if default is not None and default.name else None
    return values


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
