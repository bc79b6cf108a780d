"""Rewrites of onnxruntime that are wrong, each as the smallest model that shows it and an input on which it shows.

The numbers are the rows of the table in issue 18's background: pattern, the condition that the rewrite misses, and who
reported it. `passes` are the optimizers of onnxruntime without which the result is right, by the names under which it
switches them off; several where the error needs all of them. A row that a version of onnxruntime has repaired stays
here: who asks for the live ones finds out by running them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser
from sonnx.semantics.model.values import Array


@dataclass(frozen=True, slots=True)
class Miscompilation:
    """A model with inputs. row: of the table. forgets: the condition that the rewrite does not check."""

    row: str
    forgets: str
    passes: frozenset[str]
    source: bytes
    feeds: dict[str, Array]


def _made(row: str, forgets: str, passes: str, text: str, feeds: dict[str, Array]) -> Miscompilation:
    source = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {text}').SerializeToString()
    return Miscompilation(row, forgets, frozenset(passes.split()), source, feeds)


def _floats(*values: float, shape: tuple[int, ...] = (-1,)) -> Array:
    return np.array(values, np.float32).reshape(shape)


def _normalization(keepdims: int, exponent: float, shape: str, width: int) -> str:
    ones, zeros = ", ".join(["1"] * width), ", ".join(["0"] * width)
    return f"""g (float[{shape}] x) => (float[a, b] y)
        <float[1] p = {{{exponent}}}, float[1] e = {{0.00001}}, float[{width}] scale = {{{ones}}},
         float[{width}] bias = {{{zeros}}}, int64[1] last = {{-1}}>
        {{ mean = ReduceMean<keepdims = {keepdims}>(x, last)  d = Sub(x, mean)  q = Pow(d, p)
           variance = ReduceMean<keepdims = {keepdims}>(q, last)  v = Add(variance, e)  s = Sqrt(v)  n = Div(d, s)
           m = Mul(n, scale)  y = Add(m, bias) }}"""


def layer_normalization_without_kept_axis() -> Miscompilation:
    """ReduceMean with keepdims = 0 in a layer normalization subtracts the means along the other axis (ORT #30513)."""
    x = _floats(1, 2, 4, 8, 16, 33, 64, 128, 256, shape=(3, 3))
    return _made("2", "keepdims = 1", "LayerNormFusionL1", _normalization(0, 2, "3, 3", 3), {"x": x})


def layer_normalization_with_fourth_powers() -> Miscompilation:
    """A layer normalization with the exponent 4 is none."""
    x = _floats(1, 2, 4, 8, 16, 33, 64, 128, shape=(2, 4))
    return _made("3", "the exponent is 2", "LayerNormFusionL1", _normalization(1, 4, "2, 4", 4), {"x": x})


def layer_normalization_with_wider_scale() -> Miscompilation:
    """The scale broadcasts X instead of being broadcast to it (ORT #31980, #25855)."""
    x = _floats(1, 2, shape=(2, 1))
    return _made("4", "the scale broadcasts to X", "LayerNormFusionL1", _normalization(1, 2, "2, 1", 3), {"x": x})


def product_with_an_integer_reciprocal() -> Miscompilation:
    """(1 / x) * y of integers is 0 for x > 1, y / x is not."""
    text = "g (int32[n] x, int32[n] y) => (int32[n] z) <int32 one = {1}> { r = Div(one, x)  z = Mul(r, y) }"
    feeds = {"x": np.array([2], np.int32), "y": np.array([6], np.int32)}
    return _made("6", "the elements are floating-point numbers", "DivMulFusion", text, feeds)


def product_with_an_infinite_reciprocal() -> Miscompilation:
    """(1 / x) * y with 1 / x beyond the greatest number."""
    text = "g (float[n] x, float[n] y) => (float[n] z) <float one = {1}> { r = Div(one, x)  z = Mul(r, y) }"
    return _made("7", "1 / x is finite", "DivMulFusion", text, {"x": _floats(1e-40), "y": _floats(1e-40)})


def cast_beside_a_quotient() -> Miscompilation:
    """The one rule moves an input by its name, the other takes the node away that gives it (ORT #32416)."""
    text = """g (float[n] x) => (float[n] y) <float one = {1}, float two = {2}>
        { same = Cast<to = 1>(x)  half = Div(one, two)  y = Mul(same, half) }"""
    return _made("10", "names keep their makers", "CastElimination DivMulFusion", text, {"x": _floats(1, 2)})


def clip_of_doubles_after_relu() -> Miscompilation:
    """The rule has no code for doubles, and does not look (ORT #10936, #11836, #23116)."""
    text = "g (double[n] x) => (double[n] y) <double l = {0.5}, double h = {1}> { r = Relu(x)  y = Clip(r, l, h) }"
    return _made("11", "the element type is one of its own", "FuseReluClip", text, {"x": np.array([-1.0, 0.75, 2.0])})


def _convolution(rest: str, given: str) -> str:
    return f"g (float[1, 1, 3] x) => (float[1, 1, 3] y) <{given}> {{ c = Conv(x, w)  {rest} }}"


def convolution_times_a_great_number() -> Miscompilation:
    """The factor times the weight overflows, the factor times the sum, which is 0, does not."""
    given = "float[1, 1, 1] w = {1e30}, float k = {1e30}"
    x = _floats(0, 1e-30, 1e-38, shape=(1, 1, 3))
    return _made("16", "factor times weight is finite", "ConvMulFusion", _convolution("y = Mul(c, k)", given), {"x": x})


def convolution_before_batch_normalization() -> Miscompilation:
    """Scale by deviation times the weight overflows."""
    given = """float[1, 1, 1] w = {1e30}, float[1] s = {1e20}, float[1] b = {0}, float[1] mean = {0},
        float[1] v = {1e-20}"""
    text = _convolution("y = BatchNormalization(c, s, b, mean, v)", given)
    x = _floats(0, 1e-30, 1e-38, shape=(1, 1, 3))
    return _made("17", "scale times weight is finite", "ConvBNFusion", text, {"x": x})


def convolution_with_two_biases() -> Miscompilation:
    """b + k overflows where (sum + b) + k does not."""
    text = """g (float[1, 1, 3] x) => (float[1, 1, 3] y)
        <float[1, 1, 1] w = {1}, float[1] b = {3e38}, float[1, 1, 1] k = {3e38}>
        { c = Conv(x, w, b)  y = Add(c, k) }"""
    x = _floats(-3e38, -3.2e38, -3.4e38, shape=(1, 1, 3))
    return _made("18", "the sum of the constants is finite", "ConvAddFusion", text, {"x": x})


def scaled_factor_of_a_product() -> Miscompilation:
    """c * (x @ W) in place of (c * x) @ W, where x @ W overflows."""
    text = """g (float[1, 1] x) => (float[1, 1] y) <float c = {1e-30}, float[1, 1] w = {2e10}>
        { s = Mul(x, c)  y = MatMul(s, w) }"""
    return _made("19", "the product is finite", "MatMulScaleFusion", text, {"x": _floats(1e30, shape=(1, 1))})


def two_quantizations() -> Miscompilation:
    """Quantized to steps of 1 and again to steps of 0.7: the rewrite leaves the finer steps out (ORT #25259)."""
    text = """g (float[5] x) => (float[5] y)
        <float a = {1}, float b = {0.7}, uint8 z = {0}>
        { q = QuantizeLinear(x, a, z)  d = DequantizeLinear(q, a, z)
          r = QuantizeLinear(d, b, z)  y = DequantizeLinear(r, b, z) }"""
    return _made("20", "the scales are equal", "DoubleQDQPairsRemover", text, {"x": _floats(0.6, 1.2, 2.4, 3.6, 5.3)})


def gelu_with_a_short_root() -> Miscompilation:
    """x / 1.4142 is not x / sqrt(2): the constants of a Gelu are matched with a tolerance."""
    text = """g (float[4] x) => (float[4] y) <float root = {1.4142}, float one = {1}, float half = {0.5}>
        { d = Div(x, root)  e = Erf(d)  a = Add(e, one)  m = Mul(x, a)  y = Mul(m, half) }"""
    x = _floats(-2, -0.75, 0.5, 1.25)
    return _made("31", "the constants are those of Gelu", "GeluFusionL2", text, {"x": x})


Build = Callable[[], Miscompilation]
ROWS: tuple[Build, ...] = (
    layer_normalization_without_kept_axis,
    layer_normalization_with_fourth_powers,
    layer_normalization_with_wider_scale,
    product_with_an_integer_reciprocal,
    product_with_an_infinite_reciprocal,
    cast_beside_a_quotient,
    clip_of_doubles_after_relu,
    convolution_times_a_great_number,
    convolution_before_batch_normalization,
    convolution_with_two_biases,
    scaled_factor_of_a_product,
    two_quantizations,
    gelu_with_a_short_root,
)


def deep_model(nodes: int = 50) -> Miscompilation:
    """The short root of a Gelu deep inside a network of convolutions, whose outputs have bounds too wide to show it."""
    draw = np.random.default_rng(0)
    made: list[onnx.NodeProto] = []
    stored: list[onnx.TensorProto] = []

    def constant(name: str, value: object) -> str:
        stored.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def node(operator: str, *inputs: str, **attributes: object) -> str:
        made.append(helper.make_node(operator, inputs, [f"t{len(made)}"], **attributes))
        return f"t{len(made) - 1}"

    last, block = "x", 0
    while len(made) < nodes - 3:
        last = node("Conv", last, constant(f"w{block}", draw.standard_normal((4, 4, 3, 3)) / 6), pads=[1, 1, 1, 1])
        statistics = (draw.random(4) + 0.5, draw.standard_normal(4), draw.standard_normal(4), draw.random(4) + 0.5)
        last = node("BatchNormalization", last, *(constant(f"s{block}.{k}", it) for k, it in enumerate(statistics)))
        if block == 6:
            given = last
            last = node("Erf", node("Div", last, constant("root", 1.4142)))
            last = node("Mul", given, node("Add", last, constant("one", 1)))
            last = node("Mul", last, constant("half", 0.5))
        else:
            last = node("Relu", last)
        block += 1
    while len(made) < nodes:
        last = node("Neg", last)
    shape = [1, 4, 8, 8]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, shape)],
        stored,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    x = draw.standard_normal(shape).astype(np.float32)
    return Miscompilation(
        "31", "the constants are those of Gelu", frozenset({"GeluFusionL2"}), model.SerializeToString(), {"x": x}
    )
