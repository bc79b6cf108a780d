"""The difference that optimizers make to a model, node by node. A constant counts by its content, not by its name; an
attribute that says what its default says does not count."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper
from sonnx.semantics.model.schemas import operator_name, schema

LARGEST: Final = 4
"""Elements of a constant, and entries of an attribute, that are written out."""
WIDEST: Final = 60
"""Characters of an attribute that are written out."""


@dataclass(frozen=True, slots=True)
class Change:
    """removed, added: nodes as text, in the order of the model. tensors: what they give, first those removed.
    operators: of those removed, by the names of the specification."""

    removed: tuple[str, ...]
    added: tuple[str, ...]
    tensors: tuple[str, ...]
    operators: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Node:
    """A node with what tells it from others, its operator, its text and the tensors that it gives."""

    key: tuple[object, ...]
    operator: str
    text: str
    outputs: tuple[str, ...]


def change(before: bytes, after: bytes) -> Change:
    """The nodes of the main graph that one of two models has and the other does not."""
    old, new = _nodes(before), _nodes(after)
    removed, added = _beyond(old, new), _beyond(new, old)
    tensors = dict.fromkeys(name for node in (*removed, *added) for name in node.outputs)
    operators = frozenset(it.operator for it in removed)
    return Change(tuple(it.text for it in removed), tuple(it.text for it in added), tuple(tensors), operators)


def texts(content: bytes) -> tuple[str, ...]:
    """The nodes of the main graph of a model as text."""
    return tuple(it.text for it in _nodes(content))


def _beyond(nodes: Iterable[_Node], others: Iterable[_Node]) -> list[_Node]:
    """The nodes that the others do not have as often."""
    left = Counter(it.key for it in others)
    made = []
    for node in nodes:
        if left[node.key] > 0:
            left[node.key] -= 1
        else:
            made.append(node)
    return made


def _nodes(content: bytes) -> list[_Node]:
    model = onnx.ModelProto.FromString(content)
    opsets = {it.domain: it.version for it in model.opset_import}
    constants = {it.name: it for it in model.graph.initializer}
    digests = {name: _digest(it) for name, it in constants.items()}
    made = []
    for node in model.graph.node:
        attributes = _stated(node, opsets)
        key = (
            node.domain,
            node.op_type,
            tuple(digests.get(name, name) for name in node.input),
            tuple(node.output),
            tuple(it.SerializeToString(deterministic=True) for it in attributes),
        )
        operator, outputs = operator_name(node.domain, node.op_type), tuple(it for it in node.output if it)
        made.append(_Node(key, operator, _text(node, attributes, constants), outputs))
    return made


def _stated(node: onnx.NodeProto, opsets: Mapping[str, int]) -> list[onnx.AttributeProto]:
    """The attributes by name, without those that are what they are by default."""
    known = schema(node.domain, node.op_type, opsets.get(node.domain))
    defaults = {} if known is None else {name: it.default for name, it in known.attributes.items()}
    made = []
    for attribute in sorted(node.attribute, key=lambda it: it.name):
        value, default = helper.get_attribute_value(attribute), defaults.get(attribute.name)
        if default is None or (tuple(value) if isinstance(value, list) else value) != default.value:
            made.append(attribute)
    return made


def _digest(stored: onnx.TensorProto) -> str:
    """The same for constants that have the same elements."""
    if stored.data_location == onnx.TensorProto.EXTERNAL or stored.data_type == onnx.TensorProto.STRING:
        return f"constant {stored.name}"
    content = numpy_helper.to_array(stored).tobytes()
    return f"constant {stored.data_type} {list(stored.dims)} {hashlib.sha256(content).hexdigest()}"


def _text(
    node: onnx.NodeProto, attributes: Iterable[onnx.AttributeProto], constants: Mapping[str, onnx.TensorProto]
) -> str:
    domain = f"{node.domain}." if node.domain not in ("", "ai.onnx") else ""
    inputs = ", ".join(_constant(constants[name]) if name in constants else name or "-" for name in node.input)
    stated = ", ".join(f"{it.name} = {_value(it)}" for it in attributes)
    outputs = ", ".join(name or "-" for name in node.output)
    return f"{outputs} = {domain}{node.op_type}{f'<{stated}>' if stated else ''}({inputs})"


def _value(attribute: onnx.AttributeProto) -> str:
    if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
        return "{...}"
    if attribute.type == onnx.AttributeProto.TENSOR:
        return _constant(attribute.t)
    value = helper.get_attribute_value(attribute)
    if isinstance(value, float):
        return str(np.float32(value))
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}..."


def _constant(stored: onnx.TensorProto) -> str:
    """A constant by its elements where they are few, else by its name and shape."""
    size = int(np.prod(stored.dims)) if stored.dims else 1
    external = stored.data_location == onnx.TensorProto.EXTERNAL
    if size > LARGEST or external or stored.data_type == onnx.TensorProto.STRING:
        return f"{stored.name}{list(stored.dims)}"
    elements = ", ".join(str(it).lower() for it in numpy_helper.to_array(stored).reshape(-1))
    return f"[{elements}]" if stored.dims else elements
