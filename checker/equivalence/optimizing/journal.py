"""What was done to a model, step by step, so that a second party can do it again.

Nodes and tensors have the numbers of CERTIFICATE.md, new ones further numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from sonnx.semantics.model.graph import Attribute, Constant, NodeId, TensorId


@dataclass(frozen=True, slots=True)
class New:
    """A tensor and its name."""

    tensor: TensorId
    name: str


@dataclass(frozen=True, slots=True)
class Written:
    """A node that has been made. version: of its operator."""

    node: NodeId
    name: str
    domain: str
    op_type: str
    version: int
    inputs: tuple[TensorId | None, ...]
    outputs: tuple[New | None, ...]
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class Value:
    """A stored value, by its SHA-256. data: of raw data; of texts, of each its length in eight bytes, and itself."""

    tensor: TensorId
    element: str
    dims: tuple[int, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """A rewrite was applied (Replacement, Redirection). nodes: of its left side. swapped: those of them, by position,
    whose operands stand in the other order, with the rewrite that says that this is the same. instead: for a result
    that is a tensor of the graph, what was read, and what is read now. left: what the root writes from now on. held:
    the stored tensors that stand for applications without inputs.
    """

    rule: str
    nodes: tuple[NodeId, ...]
    swapped: tuple[tuple[int, str], ...]
    made: tuple[Written, ...]
    instead: tuple[tuple[TensorId, TensorId], ...]
    left: tuple[New | None, ...]
    held: tuple[TensorId, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """A dead node was taken out (Pruning), with the bodies that it holds."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class Folded:
    """A node was replaced by values (ConstantFolding), one for each output."""

    node: NodeId
    values: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """What reads a node reads another one that computes the same (CommonSubexpressions); the first one is gone."""

    node: NodeId
    other: NodeId


@dataclass(frozen=True, slots=True)
class Shared:
    """What reads a stored value reads another one that is the same (Redirection)."""

    tensor: TensorId
    other: TensorId


@dataclass(frozen=True, slots=True)
class Raised:
    """The model is of another operator set of ONNX from now on."""

    opset: int


Step = Replaced | Dropped | Folded | Merged | Shared | Raised


def written_value(tensor: TensorId, constant: Constant) -> Value:
    """A stored value that has been made."""
    content = constant.data
    if isinstance(content, tuple):
        texts = (bytes(it) for it in content if isinstance(it, bytes))
        content = b"".join(len(it).to_bytes(8, "little") + it for it in texts)
    data = bytes(content) if isinstance(content, bytes | bytearray | memoryview) else b""
    return Value(tensor, constant.element, constant.dims, hashlib.sha256(data).hexdigest())
