"""Nodes of a model as a model of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import ModelError
from ...model.elements import element_of, encode
from ...model.graph import Constant, Graph, Model, Node, NodeId, Tensor, TensorId, ValueType
from ...model.path import quote
from ...model.schemas import since_version
from ...model.values import Array
from ...model.writing import model_proto

_ONLY_STORED = 4
"""The IR version from which a stored value need not be an input (onnx/docs/IR.md)."""


@dataclass(frozen=True, slots=True)
class Extract:
    """A model of some nodes. names: of the tensors of the whole model that are its inputs and outputs."""

    content: bytes
    names: Mapping[TensorId, str]


def outside_imports(model: Model, node: Node) -> str:
    """Why a node means something else in a model that imports what this one does, "" where it does not."""
    imported = dict(reversed(model.opsets)).get(node.domain, node.opset)
    if since_version(node.domain, node.op_type, imported) == node.version:
        return ""
    return "it stands in a function that imports another version of its operator"


def extracted(
    model: Model,
    nodes: Sequence[NodeId],
    inputs: Mapping[TensorId, ValueType],
    outputs: Sequence[TensorId],
    stored: Mapping[TensorId, Array],
    *,
    named: bool = True,
) -> Extract:
    """A model of nodes without bodies, in an order in which they can run. inputs: what they read from outside, with the
    types; stored: what of that is known. named: nodes are called by their paths, which messages then show.

    Raises ModelError where a stored value cannot be read, or all are more than a file holds.
    """
    old = list(dict.fromkeys((*inputs, *stored, *_touched(model, nodes), *outputs)))
    new = {t: at for at, t in enumerate(old)}

    def renumbered(row: Sequence[TensorId | None]) -> tuple[TensorId | None, ...]:
        return tuple(None if t is None else new[t] for t in row)

    made = []
    for n in nodes:
        node = model.nodes[n]
        if node.bodies:
            raise ModelError(f"{quote(node.path)} holds a body, which is not handed on with it")
        name = node.path if named else ""
        made.append(replace(node, name=name, inputs=renumbered(node.inputs), outputs=renumbered(node.outputs), graph=0))
    main = Graph(
        "part",
        "",
        tuple(range(len(made))),
        tuple(new[t] for t in inputs),
        tuple(new[t] for t in outputs),
        tuple((new[t], _constant(array)) for t, array in stored.items()),
        input_types=tuple(inputs.values()),
        output_types=(None,) * len(outputs),
    )
    tensors = tuple(Tensor(f"t{at}", model.tensors[t].path, 0) for at, t in enumerate(old))
    part = replace(
        model,
        graphs=(main,),
        nodes=tuple(made),
        tensors=tensors,
        ir_version=max(model.ir_version, _ONLY_STORED),
        metadata=(),
        functions=(),
        definitions=(),
    )
    return Extract(model_proto(part).SerializeToString(), {t: f"t{new[t]}" for t in (*inputs, *outputs)})


def _touched(model: Model, nodes: Sequence[NodeId]) -> list[TensorId]:
    return [t for n in nodes for t in (*model.nodes[n].inputs, *model.nodes[n].outputs) if t is not None]


def _constant(array: Array) -> Constant:
    element = element_of(array.dtype)
    if element == "string":
        texts = tuple(array.reshape(-1).tolist())
        return Constant(element, array.shape, "string_data", len(texts), texts)
    data = bytes(encode(np.asarray(array)))
    return Constant(element, array.shape, "raw_data", len(data), data)
