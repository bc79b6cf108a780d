"""Models for every rule of the rule set sonnx-operators: one that violates it, where, and one that obeys it.

`test_operator_rules.py` loads this file by its path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import ModelProto, TensorProto, helper, parser

Source = str | Callable[[], ModelProto]


@dataclass(frozen=True)
class Case:
    """bad: a model at which the constraint fails (is undecided: `unknown`) at the places `where`. good: it holds."""

    bad: Source
    where: tuple[str, ...]
    good: Source
    verdict: str = "violated"


def text(signature: str, *body: str, opset: int = 18) -> str:
    """ONNX's textual syntax: `signature` is the graph's `(inputs) => (outputs)` with its initializers."""
    nodes = " ".join(body).replace(" <>", "")
    return f'<ir_version: 9, opset_import: ["" : {opset}, "com.example" : 1]> g {signature} {{ {nodes} }}'


def unary(call: str, x: str = "float[2]", y: str = "float[2]", opset: int = 18) -> str:
    """A model of the one node that computes Y from X, of the types x and y."""
    return text(f"({x} X) => ({y} Y)", f"Y = {call}", opset=opset)


def binary(call: str, x: str, z: str, y: str) -> str:
    """A model of the one node that computes Y from X and Z, of the types x, z and y."""
    return text(f"({x} X, {z} Z) => ({y} Y)", f"Y = {call}")


# ---- Models that the textual syntax cannot say ------------------------------------------------


def untyped(element: int = TensorProto.FLOAT, *, sizes: list[int] | None = None) -> ModelProto:
    x, y = (helper.make_tensor_value_info(name, element, sizes) for name in ("X", "Y"))
    graph = helper.make_graph([helper.make_node("Relu", ["X"], ["Y"])], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def sparse_input() -> ModelProto:
    x = helper.make_sparse_tensor_value_info("X", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Neg", ["X"], ["Y"])], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def sparse_slice() -> ModelProto:
    proto = parser.parse_model(SLICE)
    proto.graph.input[0].CopyFrom(helper.make_sparse_tensor_value_info("X", TensorProto.FLOAT, [4, 5]))
    return proto


def sparse_constant() -> ModelProto:
    values = helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [0])
    node = helper.make_node("Constant", [], ["Y"], sparse_value=helper.make_sparse_tensor(values, indices, [3]))
    y = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [3])
    graph = helper.make_graph([node], "g", [], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def undefined_constant() -> ModelProto:
    proto = parser.parse_model(CONSTANT)
    proto.graph.node[0].attribute[0].t.data_type = TensorProto.UNDEFINED
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.UNDEFINED
    return proto


# ---- Cases ------------------------------------------------------------------------------------

RELU = unary("Relu(X)")
IF = text(
    "(bool c) => (float[1] Y)",
    "Y = If (c) <then_branch = t () => (float[1] a) { a = Constant <value = float[1] {1.0}> () },",
    "else_branch = e () => (float[1] b) { b = Constant <value = float[1] {2.0}> () }>",
)
UNKNOWN_TYPES = text("(float[2] X) => (float[2] Y)", "h = com.example.Foo(X)", "Y = Relu(h)")
CONSTANT = text("() => (float[1] Y)", "Y = Constant <value = float[1] {1.0}> ()")
CONSTANT_FLOAT = text("() => (float Y)", "Y = Constant <value_float = 1.0> ()")


def argmax(attributes: str, x: str = "float[2,3]", opset: int = 18) -> str:
    return text(f"({x} X) => (int64[2,1] Y)", f"Y = ArgMax <{attributes}> (X)", opset=opset)


ARGMAX = argmax("axis = 1, keepdims = 1, select_last_index = 0")


def conv(attributes: str, *, op: str = "Conv", x: str = "float[1,4,5,5]", w: str = "float[4,1,3,3]") -> str:
    y = "int32" if op == "ConvInteger" else "float"
    return text(f"({x} X, {w} W) => ({y}[1,4,H,K] Y)", f"Y = {op} <{attributes}> (X, W)")


ALL_OF_CONV = (
    'auto_pad = "NOTSET", dilations = [1,1], group = 4, kernel_shape = [3,3], pads = [0,0,0,0], strides = [1,1]'
)
CONV = conv(ALL_OF_CONV)
INTEGER = {"op": "ConvInteger", "x": "uint8[1,4,5,5]", "w": "uint8[4,1,3,3]"}
CONV_INTEGER = conv(ALL_OF_CONV, **INTEGER)


def quantize(attributes: str = "", *, x: str = "float", y: str = "uint8", scale: str = "float") -> str:
    zero = f", {y} z" if y else ""
    call = f"Y = QuantizeLinear <{attributes}> (X, s{', z' if y else ''})"
    return text(f"({x}[2] X, {scale} s{zero}) => ({y or 'uint8'}[2] Y)", call, opset=23)


def dequantize(attributes: str = "", *, x: str = "int32", scale: str = "float") -> str:
    return text(f"({x}[2] X, {scale} s) => (float[2] Y)", f"Y = DequantizeLinear <{attributes}> (X, s)", opset=23)


QUANTIZE = quantize("axis = 1, block_size = 0, output_dtype = 0, precision = 0, saturate = 1")
DEQUANTIZE = dequantize("axis = 1, block_size = 0, output_dtype = 0")


def gemm(attributes: str = "", *, c: str | None = "float[2,4]", a: str = "float[2,3]") -> str:
    given = f", {c} C" if c else ""
    return text(
        f"({a} A, float[3,4] B{given}) => (float[2,4] Y)", f"Y = Gemm <{attributes}> (A, B{', C' if c else ''})"
    )


def lstm(attributes: str = "", *, x: str = "float[5,1,3]", store: bool = True) -> str:
    weights = {"float[1,8,2] R": 16} | ({"float[1,8,3] W": 24} if store else {})
    stored = ", ".join(f"{name} = {{{', '.join(['0.0'] * count)}}}" for name, count in weights.items())
    inputs = f"{x} X" + ("" if store else ", float[1,8,3] W")
    written = ", ".join(filter(None, ("hidden_size = 2", attributes)))
    return text(f"({inputs}) => (float[5,1,1,2] Y) <{stored}>", f"Y = LSTM <{written}> (X, W, R)")


def maxpool(attributes: str, *, x: str = "float[1,1,6,6]", outputs: str = "Y", opset: int = 18) -> str:
    indices = ", int64[1,1,H,K] I" if "I" in outputs else ""
    return text(f"({x} X) => (float[1,1,H,K] Y{indices})", f"{outputs} = MaxPool <{attributes}> (X)", opset=opset)


ALL_OF_MAXPOOL = (
    'auto_pad = "NOTSET", ceil_mode = 0, dilations = [1,1], kernel_shape = [2,2], pads = [1,1,1,1], storage_order = 0, '
    "strides = [1,1]"
)
MAXPOOL = maxpool(ALL_OF_MAXPOOL)


def slice_(
    starts: str = "0,1", ends: str = "4,5", axes: str = "0,1", steps: str | None = "1,2", data: str = "float[4,5]"
) -> str:
    lists = {"s": starts, "e": ends, "a": axes} | ({} if steps is None else {"k": steps})
    stored = ", ".join(f"int64[{len(v.split(','))}] {name} = {{{v}}}" for name, v in lists.items())
    return text(f"({data} X) => (float[H,K] Y) <{stored}>", f"Y = Slice({', '.join(('X', *lists))})")


SLICE = slice_()
SLICE_1 = text("(float[4,5] X) => (float[2,5] Y)", "Y = Slice <starts = [0], ends = [2]> (X)", opset=9)
UNKNOWN_STARTS = text(
    "(float[4,5] X, int64[2] s) => (float[H,K] Y) <int64[2] e = {4,5}, int64[2] a = {0,1}, int64[2] k = {1,1}>",
    "Y = Slice(X, s, e, a, k)",
)

CASES: dict[str, Case] = {
    "InSubset": Case(unary("Selu(X)"), ("/0:Selu",), RELU),
    "NoControlFlow": Case(IF, ("/0:If",), RELU),
    "Deterministic": Case(unary("RandomUniformLike <seed = 1.0> (X)"), ("/0:RandomUniformLike",), RELU),
    "InferenceOnly": Case(
        text("(float[2,3] X, int64[2] t) => (float Y)", "Y = NegativeLogLikelihoodLoss(X, t)"),
        ("/0:NegativeLogLikelihoodLoss",),
        RELU,
    ),
    "KnownOperator": Case(unary("Gelu(X)"), ("/0:Gelu",), unary("Gelu(X)", opset=20)),
    "AttributesListed": Case(unary("Relu <bogus = 1> (X)"), ("/0:Relu",), RELU),
    "AttributeKinds": Case(unary("Softmax <axis = 1.0> (X)"), ("/0:Softmax",), unary("Softmax <axis = 0> (X)")),
    "AttributesPresent": Case(unary("Concat(X)"), ("/0:Concat",), unary("Concat <axis = 0> (X)")),
    "RequiredPortsPresent": Case(
        binary("Add(, Z)", "float[2]", "float[2]", "float[2]"), ("/0:Add",), unary("Add(X, X)")
    ),
    "PortsCounted": Case(unary("Relu(X, X)"), ("/0:Relu",), RELU),
    "NoSparseTensor": Case(sparse_input, ('/"X"',), RELU),
    "NoSparseConstant": Case(sparse_constant, ("/0:Constant",), CONSTANT),
    "TypesDeclared": Case(lambda: untyped(TensorProto.UNDEFINED), ('/"X"', '/"Y"'), RELU),
    "ElementTypesKnown": Case(UNKNOWN_TYPES, ('/"h"',), RELU, "unknown"),
    "NoConversion": Case(binary("Add(X, Z)", "float[2]", "double[2]", "float[2]"), ("/0:Add",), unary("Add(X, X)")),
    "PowTypes": Case(binary("Pow(X, Z)", "float[2]", "int64[2]", "float[2]"), ("/0:Pow",), unary("Pow(X, X)")),
    "NoDefaultAttribute": Case(conv("dilations = [1,1], group = 1, kernel_shape = [3,3]"), ("/0:Conv",) * 3, CONV),
    "NoDefaultAttributeButBound": Case(unary("Softmax(X)"), ("/0:Softmax",), quantize()),
    "NoDefaultInput": Case(
        unary("Clip(X)"), ("/0:Clip",) * 2, text("(float[2] X, float l, float h) => (float[2] Y)", "Y = Clip(X, l, h)")
    ),
    "NoDefaultGraphInput": Case(
        text("(float[1] X = {1.0}) => (float[1] Y)", "Y = Relu(X)"),
        ('/"X"',),
        text("() => (float[1] Y) <float[1] X = {1.0}>", "Y = Relu(X)"),
    ),
    "ProfileTypes": Case(unary("Relu(X)", "bfloat16[2]", "bfloat16[2]"), ('/"X"', '/"Y"'), RELU),
    "ShapesDeclared": Case(unary("Relu(X)", "float[N]", "float[N]"), ('/"X"', '/"Y"'), RELU),
    "ShapesKnown": Case(UNKNOWN_TYPES, ('/"h"',), RELU, "unknown"),
    "Broadcastable": Case(
        binary("Add(X, Z)", "float[2]", "float[3]", "float[3]"),
        ("/0:Add",),
        binary("Add(X, Z)", "float[2,3]", "float[1]", "float[2,3]"),
    ),
    "EqualShapes": Case(
        binary("Add(X, Z)", "float[2,3]", "float[3]", "float[2,3]"),
        ("/0:Add",),
        text("(bool[2] c, float[2] X, float[2] Z) => (float[2] Y)", "Y = Where(c, X, Z)"),
    ),
    "ArgMaxAxisWritten": Case(argmax("keepdims = 1"), ("/0:ArgMax",), ARGMAX),
    "ArgMaxKeepdimsWritten": Case(argmax("axis = 1"), ("/0:ArgMax",), ARGMAX),
    "ArgMaxSelectLastIndexWritten": Case(argmax("axis = 1"), ("/0:ArgMax",), argmax("axis = 1", opset=11)),
    "ArgMaxAxisNonNegative": Case(argmax("axis = -1"), ("/0:ArgMax",), ARGMAX),
    "ArgMaxNonEmpty": Case(argmax("axis = -1", "float[2,0]"), ("/0:ArgMax",), ARGMAX),
    "BatchNormalizationInference": Case(
        text(
            "(float[1,2] X, float[2] S) => (float[1,2] Y, float[2] m, float[2] v)",
            "Y, m, v = BatchNormalization <training_mode = 1> (X, S, S, S, S)",
        ),
        ("/0:BatchNormalization",),
        text("(float[1,2] X, float[2] S) => (float[1,2] Y)", "Y = BatchNormalization(X, S, S, S, S)"),
    ),
    "ConcatAxisNonNegative": Case(unary("Concat <axis = -1> (X)"), ("/0:Concat",), unary("Concat <axis = 0> (X)")),
    "ConstantValue": Case(CONSTANT_FLOAT, ("/0:Constant",), CONSTANT),
    "ConstantOneType": Case(undefined_constant, ("/0:Constant",), CONSTANT, "unknown"),
    "ConvTwoSpatialAxes": Case(conv("group = 4", x="float[1,4,5]", w="float[4,1,3]"), ("/0:Conv",), CONV),
    "ConvExplicitPadding": Case(conv('group = 4, auto_pad = "VALID"'), ("/0:Conv",), CONV),
    "ConvGroups": Case(conv("group = 2", w="float[4,2,3,3]"), ("/0:Conv",), conv("", w="float[4,4,3,3]")),
    "ConvIntegerTwoSpatialAxes": Case(
        conv("group = 4", op="ConvInteger", x="uint8[1,4,5]", w="uint8[4,1,3]"), ("/0:ConvInteger",), CONV_INTEGER
    ),
    "ConvIntegerExplicitPadding": Case(conv('auto_pad = "SAME_UPPER"', **INTEGER), ("/0:ConvInteger",), CONV_INTEGER),
    "ConvIntegerGroups": Case(conv("group = 2", **INTEGER), ("/0:ConvInteger",), CONV_INTEGER),
    "DequantizeLinearAxis": Case(dequantize("axis = 0"), ("/0:DequantizeLinear",), DEQUANTIZE),
    "DequantizeLinearPerTensor": Case(dequantize(scale="float[2]"), ("/0:DequantizeLinear",), DEQUANTIZE),
    "DequantizeLinearBlockSize": Case(dequantize("block_size = 2"), ("/0:DequantizeLinear",), DEQUANTIZE),
    "DequantizeLinearOutputType": Case(dequantize("output_dtype = 1"), ("/0:DequantizeLinear",), DEQUANTIZE),
    "DequantizeLinearTypes": Case(dequantize(x="uint8"), ("/0:DequantizeLinear",), DEQUANTIZE),
    "QuantizeLinearAxis": Case(quantize("axis = 0"), ("/0:QuantizeLinear",), QUANTIZE),
    "QuantizeLinearPerTensor": Case(quantize(scale="float[2]"), ("/0:QuantizeLinear",), QUANTIZE),
    "QuantizeLinearBlockSize": Case(quantize("block_size = 2"), ("/0:QuantizeLinear",), QUANTIZE),
    "QuantizeLinearOutputType": Case(quantize(y="int8"), ("/0:QuantizeLinear",), QUANTIZE),
    "QuantizeLinearPrecision": Case(quantize("precision = 1"), ("/0:QuantizeLinear",), QUANTIZE),
    "QuantizeLinearNoFloat8": Case(quantize(y="float8e5m2"), ("/0:QuantizeLinear",), QUANTIZE),
    "QuantizeLinearTypes": Case(quantize(x="float16", scale="float16"), ("/0:QuantizeLinear",), QUANTIZE),
    "GemmTwoAxes": Case(gemm(a="float[2,3,1]"), ("/0:Gemm",), gemm()),
    "GemmNeutralAttributes": Case(gemm("alpha = 0.5"), ("/0:Gemm",), gemm("alpha = 1.0")),
    "GemmNoBroadcast": Case(gemm(c="float[4]"), ("/0:Gemm",), gemm()),
    "GemmHasC": Case(gemm(c=None), ("/0:Gemm",), gemm()),
    "LeakyReluAlphaWritten": Case(unary("LeakyRelu(X)"), ("/0:LeakyRelu",), unary("LeakyRelu <alpha = 0.01> (X)")),
    "LSTMFixedInputs": Case(lstm(store=False), ("/0:LSTM",), lstm()),
    "LSTMBatchSize": Case(lstm(x="float[5,2,3]"), ("/0:LSTM",), lstm("layout = 1", x="float[1,5,3]")),
    "LSTMUnusedAttributes": Case(lstm("layout = 0"), ("/0:LSTM",), lstm("layout = 0, input_forget = 0")),
    "LSTMActivations": Case(
        lstm('activations = ["Sigmoid","Tanh","Softsign"]'),
        ("/0:LSTM",),
        lstm('activations = ["Relu","Tanh","Tanh","Sigmoid","Tanh","Tanh"]'),
    ),
    "MatMulTwoAxes": Case(
        text("(float[2,2,3] A, float[3,2] B) => (float[2,2,2] Y)", "Y = MatMul(A, B)"),
        ("/0:MatMul",),
        text("(float[2,3] A, float[3,2] B) => (float[2,2] Y)", "Y = MatMul(A, B)"),
    ),
    "MaxPoolExplicitPadding": Case(maxpool('kernel_shape = [2,2], auto_pad = "VALID"'), ("/0:MaxPool",), MAXPOOL),
    "MaxPoolStorageOrder": Case(
        maxpool("kernel_shape = [2,2], storage_order = 1"), ("/0:MaxPool",), maxpool("kernel_shape = [2,2]", opset=7)
    ),
    "MaxPoolFloor": Case(
        maxpool("kernel_shape = [2,2], ceil_mode = 1"), ("/0:MaxPool",), maxpool("kernel_shape = [2,2]", opset=8)
    ),
    "MaxPoolPadding": Case(
        maxpool("kernel_shape = [2,3], pads = [1,1,3,3]"),
        ("/0:MaxPool",),
        maxpool("kernel_shape = [2,3], pads = [2,3,2,3]"),
    ),
    "MaxPoolDilatedPadding": Case(
        maxpool("kernel_shape = [2,3], pads = [0,0,2,2]"),
        ("/0:MaxPool",),
        maxpool("kernel_shape = [2,3], dilations = [2,1], pads = [2,2,2,2]"),
    ),
    "MaxPoolNoIndices": Case(maxpool("kernel_shape = [2,2]", outputs="Y, I"), ("/0:MaxPool",), MAXPOOL),
    "MaxPoolTwoSpatialAxes": Case(maxpool("kernel_shape = [2]", x="float[1,1,6]"), ("/0:MaxPool",), MAXPOOL),
    "MaxPoolAllWritten": Case(
        maxpool('auto_pad = "NOTSET", ceil_mode = 0, kernel_shape = [2,2], pads = [0,0,0,0], storage_order = 0'),
        ("/0:MaxPool",) * 2,
        MAXPOOL,
    ),
    "NegDefinedShape": Case(unary("Neg(X)", "float[N]", "float[N]"), ("/0:Neg",), unary("Neg(X)"), "unknown"),
    "NegDense": Case(sparse_input, ("/0:Neg",), unary("Neg(X)")),
    "NegNumeric": Case(unary("Neg(X)", "bfloat16[2]", "bfloat16[2]"), ("/0:Neg",), unary("Neg(X)")),
    "NegNoBroadcast": Case(unary("Neg(X)", "float[1]", "float[2]"), ("/0:Neg",), unary("Neg(X)")),
    "SliceAxesGiven": Case(SLICE_1, ("/0:Slice",), SLICE),
    "SliceAllAxes": Case(slice_("0", "4", "0", "1"), ("/0:Slice",), SLICE),
    "SliceStepsGiven": Case(slice_(steps=None), ("/0:Slice",), SLICE),
    "SliceDense": Case(sparse_slice, ("/0:Slice",), SLICE),
    "SliceShapes": Case(slice_(data="float[N,5]"), ("/0:Slice",), SLICE, "unknown"),
    "SliceTypesKnown": Case(
        text("(float[2] X) => (float[H] Y) <int64[1] s = {0}>", "h = com.example.Foo(X)", "Y = Slice(h, s, s)"),
        ("/1:Slice",),
        SLICE,
        "unknown",
    ),
    "SliceForward": Case(slice_("3,1", "-2,5"), ("/0:Slice",), slice_("2,-3", "-2,9223372036854775807")),
    "SliceBackward": Case(slice_("0,1", "4,3", steps="1,-1"), ("/0:Slice",), slice_("3,-1", "0,0", "-1,0", "-1,-2")),
    "SliceStartInside": Case(slice_("0,5", "4,5"), ("/0:Slice",), slice_("-1,4", "4,5")),
    "SliceSameType": Case(
        text("(float[2] X) => (double[H] Y) <int64[1] s = {0}>", "Y = Slice(X, s, s)"), ("/0:Slice",), SLICE
    ),
    "SliceIndexType": Case(
        text("(float[2] X) => (float[H] Y) <int64[1] s = {0}, int32[1] e = {1}>", "Y = Slice(X, s, e)"),
        ("/0:Slice",),
        SLICE,
    ),
    "SoftmaxAxisNonNegative": Case(unary("Softmax(X)"), ("/0:Softmax",), unary("Softmax <axis = 0> (X)")),
}
"""The cases, by constraint."""

SEQUENCE = text("(seq(float[2]) X, int64 i) => (float[2] Y)", "Y = SequenceAt(X, i)")
MORE: list[tuple[str, Source, str]] = [
    ("ElementTypesKnown", SEQUENCE, "holds"),
    ("ShapesKnown", SEQUENCE, "holds"),
    ("ProfileTypes", SEQUENCE, "violated"),
    ("ShapesKnown", lambda: untyped(sizes=[-1]), "violated"),
    ("ShapesDeclared", lambda: untyped(sizes=[-1]), "violated"),
    ("ShapesDeclared", lambda: untyped(sizes=None), "violated"),
    ("ArgMaxNonEmpty", argmax("axis = 2"), "violated"),
    ("ConcatAxisNonNegative", unary("Concat(X)"), "holds"),
    ("GemmNeutralAttributes", gemm("transA = 1", a="float[3,2]"), "violated"),
    ("GemmNeutralAttributes", gemm("transB = 1"), "violated"),
    ("LSTMBatchSize", lstm("layout = 0"), "holds"),
    ("SliceAllAxes", slice_(), "holds"),
    ("SliceForward", slice_("0,4", "4,0", steps="1,-1"), "holds"),
    ("SliceBackward", slice_("0,4", "4,0", steps="1,-1"), "holds"),
    ("SliceForward", slice_("0,3", "4,-2", steps="1,1"), "holds"),
    ("SliceBackward", slice_("3,-2", "0,3", steps="-1,-1"), "holds"),
    ("SliceForward", UNKNOWN_STARTS, "unknown"),
    ("SliceBackward", UNKNOWN_STARTS, "unknown"),
    ("SliceStartInside", UNKNOWN_STARTS, "unknown"),
]
"""Constraint, model, verdict: where the line lies between them."""
