"""G: the computation graph of a model as immutable data.

Graphs, nodes and tensors are numbered over the whole model; every reference is such a number, so G is cheap to hold
for 100,000 nodes and trivially hashable. G also represents ill-formed models (double names, cycles, missing
producers): the rules of `spec/` judge it, loading does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

GraphId = int
NodeId = int
TensorId = int


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a value as the model states it (ONNX IR, "Types").

    kind: tensor, sparse_tensor, sequence, optional, map, opaque or unset. element: the element type of a tensor in
    ONNX's spelling ("" when unset), the key type of a map. shape: None when absent; a dimension is an int, a name, or
    None when nothing is said. inner: the element of a sequence or optional, the value of a map.
    """

    kind: str
    element: str = ""
    shape: tuple[int | str | None, ...] | None = None
    inner: ValueType | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """The place of the bytes of a constant: `file` relative to the model's folder; "" for the model file itself, or for
    `Model.content` where there is one.

    packed: the elements follow each other; otherwise each carries its protobuf tag, and a string its length too.
    """

    file: str
    offset: int
    length: int
    packed: bool = True


@dataclass(frozen=True, slots=True)
class Constant:
    """A stored tensor. Exactly one of the three: `data` (little-endian raw bytes of a small one, or the strings),
    `storage` (a byte range, mapped on demand), or neither (the source elides it: certifiable, not runnable).

    form: the protobuf field that holds the elements (raw_data, float_data, ..., external), "" when elided.
    stored: the number of elements (bytes for raw_data and external) which that field holds. `data` is absent too when
    the field does not suit the element type, or an element does not fit it.
    element, dims: "" and () for an elided tensor of which the source says nothing.
    parts: values and indices of a sparse tensor, whose own form is sparse_tensor; dims are those of the dense tensor.
    """

    element: str
    dims: tuple[int, ...]
    form: str = ""
    stored: int = 0
    data: bytes | tuple[bytes, ...] | None = None
    storage: Storage | None = None
    sparse: bool = False
    parts: tuple[Constant, Constant] | None = None


AttributeValue = (
    int
    | float
    | bytes
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[bytes, ...]
    | Constant
    | tuple[Constant, ...]
    | ValueType
    | tuple[ValueType, ...]
    | GraphId
    | None
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """kind: ONNX's spelling of AttributeProto.AttributeType (INT, FLOATS, TENSOR, GRAPH ...).

    value: for GRAPH the number of the body, for GRAPHS the numbers; None where the source elides it, where the fields
    written contradict the kind, and for a reference to a function's attribute outside of a function.
    """

    kind: str
    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named value. `declared` is what the model states about its type, `path` its place in the path grammar."""

    name: str
    path: str
    graph: GraphId
    declared: ValueType | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One application of an operator.

    inputs, outputs: tensors by position, None for an empty name. captures: tensors of outer graphs that the bodies
    read, in order of first use. bodies: (attribute name, graph). version: the since_version in force, None when ONNX
    does not know the operator in the imported version (`opset`; None when the domain is not imported).
    calls: paths of the function calls that this node was expanded from, outermost first.
    """

    name: str
    path: str
    graph: GraphId
    domain: str
    op_type: str
    overload: str
    opset: int | None
    version: int | None
    inputs: tuple[TensorId | None, ...]
    outputs: tuple[TensorId | None, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    bodies: tuple[tuple[str, GraphId], ...] = ()
    captures: tuple[TensorId, ...] = ()
    calls: tuple[str, ...] = ()
    duplicate_attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph: the main graph, or a body with the node that holds it. Lists are as written, repetitions included.

    nodes: the expansion of a call stands in its place. value_infos: those that name a tensor of this graph.
    """

    name: str
    path: str
    nodes: tuple[NodeId, ...]
    inputs: tuple[TensorId, ...]
    outputs: tuple[TensorId, ...]
    initializers: tuple[tuple[TensorId, Constant], ...]
    value_infos: tuple[tuple[TensorId, ValueType | None], ...] = ()
    input_types: tuple[ValueType | None, ...] = ()
    output_types: tuple[ValueType | None, ...] = ()
    holder: NodeId | None = None
    sparse_initializers: tuple[tuple[TensorId, Constant], ...] = ()


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a model-local function as it is written, whether anything calls it or not.

    opsets: version by domain, its own imports. inputs, outputs: how many it lists. nodes: its nodes, each before those
    of its bodies; calls are not expanded, names are numbered instead of tensors, the graph is always 0, and of a value
    of an attribute only that there is one is kept (as 0). repeated: names that it lists twice among its inputs, its
    outputs or its attributes. early: names that are read before anything gives them a value, and never_written:
    outputs that nothing gives one, both with the place. reassigned: names that are given a value while they have one.
    respelled: where ONNX's own domain is written ai.onnx.
    """

    opsets: Mapping[str, int]
    inputs: int
    outputs: int
    nodes: tuple[Node, ...]
    repeated: tuple[str, ...]
    early: tuple[str, ...]
    reassigned: tuple[str, ...]
    never_written: tuple[str, ...]
    respelled: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that the model consists of: its name relative to the model's folder, size and SHA-256 of its bytes."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Model:
    """G with what a model file says about itself. graphs[0] is the main graph.

    source: "protobuf", "text" (ONNX's textual syntax) or "listing" (printable_graph). opsets: (domain, version) as
    written, "" for ONNX's own domain; a listing states none and is read by the newest. runnable: False when a constant
    or an attribute is elided. files[0] is the model file; files is empty for a model given in memory. content: the
    serialised model where it is not the bytes of files[0]. functions: (domain, name, overload) of each definition.
    definitions: of each function too, in the same order. added: the texts that users had added to the specification
    when it was loaded, by name and digest.
    """

    graphs: tuple[Graph, ...]
    nodes: tuple[Node, ...]
    tensors: tuple[Tensor, ...]
    ir_version: int
    opsets: tuple[tuple[str, int], ...]
    source: str
    files: tuple[ModelFile, ...]
    folder: Path | None = None
    producer: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    functions: tuple[tuple[str, str, str], ...] = ()
    definitions: tuple[Definition, ...] = ()
    runnable: bool = True
    content: bytes = field(default=b"", repr=False)
    added: tuple[tuple[str, str], ...] = ()
