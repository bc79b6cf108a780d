"""The rechecker's own judgement of the constraints on operators: subset, attributes, declarations.

A restriction on one operator is judged where no node applies that operator, or where its attributes decide. What needs
types that the model does not declare is Unsupported: the replay infers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx
from sonnx.semantics.errors import Unsupported

from .facts import Facts
from .places import Instance, Judge, node_place, tensor_place, text_place
from .reader import Node
from .schema import (
    actuals,
    determinism,
    kind_of,
    operator,
    prescribed,
    schema_of,
    unwritten,
    value_in_force,
)
from .types import KNOWN, tensor_type

SUBSET = frozenset([
    "Abs", "Add", "Cast", "Clip", "Concat", "Constant", "ConstantOfShape", "Conv", "ConvTranspose", "Div", "Equal",
    "Erf", "Exp", "Expand", "Flatten", "GRU", "Gather", "Gemm", "GlobalAveragePool", "HardSwish", "Identity", "LSTM",
    "LeakyRelu", "Less", "Log", "MatMul", "Max", "MaxPool", "Min", "Mod", "Mul", "Neg", "Not", "Pad", "Pow", "Range",
    "ReduceMean", "ReduceSum", "Relu", "Reshape", "Resize", "ScatterND", "Shape", "Sigmoid", "Slice", "Softplus",
    "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Tanh", "Transpose", "Unsqueeze", "Where",
    "ArgMax", "BatchNormalization", "ConvInteger", "QuantizeLinear", "DequantizeLinear", "Acos", "Asin", "Atan", "Sin",
])  # fmt: skip
CONTROL_FLOW = frozenset(["If", "Loop", "Scan", "SequenceMap"])
TRAINING = frozenset([
    "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
    "ai.onnx.preview.training::Adagrad", "ai.onnx.preview.training::Adam",
    "ai.onnx.preview.training::Gradient", "ai.onnx.preview.training::Momentum",
])  # fmt: skip


# ---- Operators and their schemas ----------------------------------------------------------------


def _by_operator(fails: Callable[[str], bool]) -> Judge:
    def judge(f: Facts) -> Iterator[Instance]:
        return (node_place(n) for n, node in enumerate(f.reading.nodes) if fails(operator(node)))

    return judge


def known_operator(f: Facts) -> Iterator[Instance]:
    """A node whose operator ONNX does not know."""
    return (node_place(n) for n, node in enumerate(f.reading.nodes) if schema_of(node) is None)


def _by_names(names: Callable[[Node, onnx.defs.OpSchema], Iterator[str]]) -> Judge:
    """A node and an attribute that is wrong with it, where ONNX knows the operator."""

    def judge(f: Facts) -> Iterator[Instance]:
        for n, node in enumerate(f.reading.nodes):
            schema = schema_of(node)
            if schema is not None and not schema.deprecated:
                yield from (text_place(n, name) for name in dict.fromkeys(names(node, schema)))

    return judge


def _foreign(node: Node, schema: onnx.defs.OpSchema) -> Iterator[str]:
    return (name for name in node.attributes if name not in schema.attributes and not name.startswith("__"))


def _mistyped(node: Node, schema: onnx.defs.OpSchema) -> Iterator[str]:
    for name, attribute in node.attributes.items():
        if name in schema.attributes and prescribed(schema.attributes[name]) != kind_of(attribute):
            yield name


def _absent_attributes(node: Node, schema: onnx.defs.OpSchema) -> Iterator[str]:
    formals = schema.attributes
    return (name for name in sorted(formals) if formals[name].required and name not in node.attributes)


def no_sparse_constant(f: Facts) -> Iterator[Instance]:
    """A Constant with a sparse value."""
    nodes = enumerate(f.reading.nodes)
    return (node_place(n) for n, node in nodes if operator(node) == "Constant" and "sparse_value" in node.attributes)


# ---- Declarations of the main graph -------------------------------------------------------------


def _boundary(f: Facts) -> Mapping[int, onnx.TypeProto | None]:
    """The inputs and outputs of the main graph, each with what its own entry declares; an input's entry comes first."""
    main = f.reading.graphs[0]
    entries = {
        t: value.type if value.HasField("type") else None
        for tensors, values in ((main.outputs, main.proto.output), (main.inputs, main.proto.input))
        for t, value in zip(tensors, values, strict=True)
    }
    return {t: entries[t] for t in (*main.inputs, *main.outputs)}


def types_declared(f: Facts) -> Iterator[Instance]:
    """An input or output of the main graph without an element type."""
    for t, declared in _boundary(f).items():
        tensor = tensor_type(declared)
        if tensor is None or tensor.elem_type not in KNOWN:
            yield tensor_place(t)


def shapes_declared(f: Facts) -> Iterator[Instance]:
    """An input or output of the main graph without a shape of numbers."""
    for t, declared in _boundary(f).items():
        tensor = tensor_type(declared)
        stated = tensor is not None and tensor.HasField("shape")
        dims = tensor.shape.dim if tensor is not None and stated else ()
        if not stated or not all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
            yield tensor_place(t)


def no_default_graph_input(f: Facts) -> Iterator[Instance]:
    """An input of the main graph with a stored value."""
    main = f.reading.graphs[0]
    return (tensor_place(t) for t in dict.fromkeys(main.inputs) if t in main.initializers)


# ---- Determinism --------------------------------------------------------------------------------

DETERMINISTIC = frozenset([
    "If", "Loop", "Scan", "SequenceMap", "AffineGrid", "CausalConvWithState", "LinearAttention",
    "DepthToSpace", "SpaceToDepth",
])  # fmt: skip


def deterministic(f: Facts) -> Iterator[Instance]:
    """A node whose operator is not deterministic, or not known to be."""
    for n, node in enumerate(f.reading.nodes):
        answer = _deterministic(f, node)
        if answer is not True:
            yield node_place(n, fails=answer is False)


def _deterministic(f: Facts, node: Node) -> bool | None:
    name = operator(node)
    if name in DETERMINISTIC:
        return True
    if name in ("Dropout", "BatchNormalization"):
        training = _training(f, node, name)
        return None if training is None else not training
    return None if schema_of(node) is None else determinism(node) == "deterministic"


def _training(f: Facts, node: Node, name: str) -> bool | None:
    """Whether a Dropout or BatchNormalization asks for training mode, None when the model leaves it open."""
    found = schema_of(node)
    if found is None:
        return None
    if found.since_version < 7:
        return value_in_force(node, "is_test", "INT") == 0
    if name == "BatchNormalization":
        if found.since_version < 14:
            return "mean" in actuals(node, output=True)
        return value_in_force(node, "training_mode", "INT") != 0
    if found.since_version < 12 or "training_mode" not in actuals(node):
        return False
    value = _flag(f, actuals(node)["training_mode"][0])
    return None if value is None else value != 0


def _flag(f: Facts, t: int) -> int | None:
    """The first element of a small constant of booleans or integers, None when the model does not fix it."""
    if len(f.ports[t]) + len(f.reading.tensors[t].stored) != 1 or t in f.inputs:
        return None
    stored = f.reading.tensors[t].stored
    if not stored:
        producer = f.reading.nodes[f.ports[t][0][0]]
        if operator(producer) != "Constant" or "value" not in producer.attributes:
            raise Unsupported("the training mode is no plain constant")
        stored = [producer.attributes["value"].t]
    if not (stored[0].raw_data or stored[0].int32_data or stored[0].int64_data):
        return None
    values = onnx.numpy_helper.to_array(stored[0]).reshape(-1)
    return int(values[0]) if values.size else None


def batch_normalization_inference(f: Facts) -> Iterator[Instance]:
    """A BatchNormalization in training mode."""
    for n, node in enumerate(f.reading.nodes):
        if operator(node) == "BatchNormalization" and (answer := _training(f, node, "BatchNormalization")) is not False:
            yield node_place(n, fails=answer is True)


# ---- Restrictions on one operator ---------------------------------------------------------------


def _absent(name: str) -> Judge:
    """Holds where no node applies the operator; elsewhere it is not judged here."""

    def judge(f: Facts) -> Iterator[Instance]:
        if any(operator(node) == name for node in f.reading.nodes):
            raise Unsupported(f"the replay of this restriction on {name} needs types or values")
        return iter(())

    return judge


def _each(name: str, fails: Callable[[Node], bool]) -> Judge:
    def judge(f: Facts) -> Iterator[Instance]:
        return (node_place(n) for n, node in enumerate(f.reading.nodes) if operator(node) == name and fails(node))

    return judge


def _unset(name: str, attribute: str) -> tuple[str, Judge]:
    """The attribute must be written where the version has it."""
    suffix = "".join(part.capitalize() for part in attribute.split("_"))
    return f"{name}{suffix}Written", _each(name, lambda node: attribute in unwritten(node))


def _is(name: str, attribute: str, kind: str, wanted: int | bytes) -> Judge:
    """The attribute has that value where the version has it."""
    return _each(name, lambda node: value_in_force(node, attribute, kind) not in (None, wanted))


def _negative(name: str) -> Judge:
    """The axis must not be negative; without a default it may be absent."""
    return _each(name, lambda node: isinstance(found := value_in_force(node, "axis", "INT"), int) and found < 0)


RESTRICTED: Mapping[str, Sequence[str]] = {
    "ArgMax": ("NonEmpty",),
    "Constant": ("OneType",),
    "Conv": ("TwoSpatialAxes", "Groups"),
    "ConvInteger": ("TwoSpatialAxes", "Groups"),
    "DequantizeLinear": ("PerTensor", "Types"),
    "Gemm": ("TwoAxes", "NeutralAttributes", "NoBroadcast"),
    "LSTM": ("FixedInputs", "BatchSize", "UnusedAttributes", "Activations"),
    "MatMul": ("TwoAxes",),
    "MaxPool": ("Padding", "DilatedPadding", "TwoSpatialAxes", "AllWritten"),
    "Neg": ("DefinedShape", "Dense", "Numeric", "NoBroadcast"),
    "QuantizeLinear": ("PerTensor", "OutputType", "NoFloat8", "Types"),
    "Slice": (
        "AxesGiven", "AllAxes", "StepsGiven", "Dense", "Shapes", "TypesKnown", "Forward", "Backward", "StartInside",
        "SameType", "IndexType",
    ),
}  # fmt: skip
"""Restrictions that are replayed only where no node applies the operator: the operator, the ends of their names."""

PADDED = ("Conv", "ConvInteger", "MaxPool")

JUDGES: Mapping[str, Judge] = {
    "InSubset": _by_operator(lambda name: name not in SUBSET),
    "NoControlFlow": _by_operator(lambda name: name in CONTROL_FLOW),
    "InferenceOnly": _by_operator(lambda name: name in TRAINING),
    "KnownOperator": known_operator,
    "AttributesListed": _by_names(_foreign),
    "AttributeKinds": _by_names(_mistyped),
    "AttributesPresent": _by_names(_absent_attributes),
    "NoSparseConstant": no_sparse_constant,
    "TypesDeclared": types_declared,
    "ShapesDeclared": shapes_declared,
    "NoDefaultGraphInput": no_default_graph_input,
    "Deterministic": deterministic,
    "BatchNormalizationInference": batch_normalization_inference,
    **{f"{name}{end}": _absent(name) for name, ends in RESTRICTED.items() for end in ends},
    "ConcatAxisNonNegative": _negative("Concat"),
    "ConstantValue": _each("Constant", lambda node: "value" not in node.attributes),
    **{f"{name}ExplicitPadding": _is(name, "auto_pad", "STRING", b"NOTSET") for name in PADDED},
    **dict(_unset("ArgMax", attribute) for attribute in ("axis", "keepdims", "select_last_index")),
    **dict([_unset("LeakyRelu", "alpha")]),
    "ArgMaxAxisNonNegative": _negative("ArgMax"),
    "SoftmaxAxisNonNegative": _negative("Softmax"),
    "GemmHasC": _each("Gemm", lambda node: "C" not in actuals(node)),
    "MaxPoolStorageOrder": _is("MaxPool", "storage_order", "INT", 0),
    "MaxPoolFloor": _is("MaxPool", "ceil_mode", "INT", 0),
    "MaxPoolNoIndices": _each("MaxPool", lambda node: "Indices" in actuals(node, output=True)),
    **{f"{name}Axis": _is(name, "axis", "INT", 1) for name in ("QuantizeLinear", "DequantizeLinear")},
    **{f"{name}BlockSize": _is(name, "block_size", "INT", 0) for name in ("QuantizeLinear", "DequantizeLinear")},
    "DequantizeLinearOutputType": _is("DequantizeLinear", "output_dtype", "INT", 0),
    "QuantizeLinearPrecision": _is("QuantizeLinear", "precision", "INT", 0),
}
