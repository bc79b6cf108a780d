"""Rewrites of runtimes and of other tools that are wrong, each as the smallest model that shows it, with an input.

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


# ---- Rewrites of other tools, and those that onnxruntime has repaired ---------------------------


def product_with_a_transposition_that_does_nothing() -> Miscompilation:
    """A transposition with perm = [0, 1] is taken for one that exchanges the axes (ORT #32228, #32417, #32418)."""
    text = """g (float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 5}, float[2] b = {0, 1}>
        { t = Transpose<perm = [0, 1]>(x)  m = MatMul(t, w)  y = Add(m, b) }"""
    return _made("1", "perm is [1, 0]", "", text, {"x": _floats(1, 2, 3, 4, shape=(2, 2))})


def normalization_whose_quotient_is_its_scale() -> Miscompilation:
    """The quotient times itself: the one factor is taken for the scale of the other (ORT #31147)."""
    text = """g (float[3] x) => (float[3] y)
        <float[1] p = {2}, float[1] e = {0.00001}, float[3] b = {0, 0, 0}, int64[1] last = {-1}>
        { mean = ReduceMean(x, last)  d = Sub(x, mean)  q = Pow(d, p)  variance = ReduceMean(q, last)
          v = Add(variance, e)  s = Sqrt(v)  n = Div(d, s)  m = Mul(n, n)  y = Add(m, b) }"""
    return _made("5", "the operand is not inside the match", "", text, {"x": _floats(1, 2, 4)})


def truth_of_an_integer_part() -> Miscompilation:
    """0.5 is true, and its integer part is not (ORT #28089, #11994, #4039)."""
    text = "g (float[3] x) => (bool[3] y) { i = Cast<to = 6>(x)  y = Cast<to = 9>(i) }"
    return _made("8", "truncation", "", text, {"x": _floats(0.5, -0.5, 1.5)})


def double_through_float() -> Miscompilation:
    """A conversion to float and back is dropped (ORT #17565)."""
    text = "g (double[2] x) => (double[2] y) { f = Cast<to = 1>(x)  y = Cast<to = 11>(f) }"
    return _made("9", "the type in the middle holds all values", "", text, {"x": np.array([0.1, 1e300])})


def zero_before_a_mean() -> Miscompilation:
    """A zero that is added counts in the mean (ORT #22177)."""
    text = """g (float[1, 1, 3] x) => (float[1, 1, 3] y) <int64[6] p = {0, 0, 1, 0, 0, 0}>
        { a = Pad(x, p)  y = AveragePool<kernel_shape = [2]>(a) }"""
    return _made("12", "count_include_pad", "", text, {"x": _floats(1, 2, 3, shape=(1, 1, 3))})


def zero_before_the_greatest() -> Miscompilation:
    """A zero that is added is greater than a negative number (onnx/optimizer #269)."""
    text = """g (float[1, 1, 3] x) => (float[1, 1, 3] y) <int64[6] p = {0, 0, 1, 0, 0, 0}>
        { a = Pad(x, p)  y = MaxPool<kernel_shape = [2]>(a) }"""
    return _made("13", "the padding is the negative infinity", "", text, {"x": _floats(-1, -2, -3, shape=(1, 1, 3))})


def elements_taken_away_before_a_convolution() -> Miscompilation:
    """Padding below zero takes elements away, which a convolution cannot (onnxscript #2838)."""
    text = """g (float[1, 1, 4] x) => (float[1, 1, 3] y) <int64[6] p = {0, 0, -1, 0, 0, 0}, float[1, 1, 1] w = {2}>
        { a = Pad(x, p)  y = Conv(a, w) }"""
    return _made("14", "pads are not negative", "", text, {"x": _floats(1, 2, 3, 4, shape=(1, 1, 4))})


def grouped_convolution_with_a_constant_of_its_shape() -> Miscompilation:
    """The constant has an element for each position, not one for each channel (ORT #12498)."""
    text = """g (float[1, 2, 2] x) => (float[1, 2, 2] y) <float[2, 1, 1] w = {1, 2}, float[1, 2, 2] k = {1, 2, 3, 4}>
        { c = Conv<group = 2>(x, w)  y = Add(c, k) }"""
    return _made("15", "one summand for each channel", "", text, {"x": _floats(1, 2, 3, 4, shape=(1, 2, 2))})


def greatest_integers_with_a_negative_scale() -> Miscompilation:
    """The greatest number belongs to the least integer where the scale is negative (ORT #21176)."""
    text = """g (uint8[1, 1, 3] x) => (uint8[1, 1, 2] y) <float s = {-1}, uint8 z = {100}>
        { d = DequantizeLinear(x, s, z)  m = MaxPool<kernel_shape = [2]>(d)  y = QuantizeLinear(m, s, z) }"""
    return _made("21", "the scale is positive", "", text, {"x": np.array([[[1, 2, 3]]], np.uint8)})


def place_of_the_greatest_power() -> Miscompilation:
    """Great numbers have the same power, the infinity (onnx/optimizer #281)."""
    text = "g (float[2] x) => (int64[1] y) { e = Exp(x)  y = ArgMax<axis = 0>(e) }"
    return _made("22", "the function is injective", "", text, {"x": _floats(100, 200)})


def place_of_the_greatest_logarithm() -> Miscompilation:
    """A negative number has no logarithm, and NaN counts as the greatest (onnx/optimizer #281)."""
    text = "g (float[2] x) => (int64[1] y) { e = Log(x)  y = ArgMax<axis = 0>(e) }"
    return _made("22", "no NaN", "", text, {"x": _floats(-1, 2)})


def two_great_factors() -> Miscompilation:
    """x * c overflows where x * (c * d) does not."""
    text = """g (float[1] x) => (float[1] y) <float[1] c = {1e30}, float[1] d = {1e-30}>
        { a = Mul(x, c)  y = Mul(a, d) }"""
    return _made("23", "nothing overflows", "", text, {"x": _floats(1e10)})


def reshaping_that_copies_a_size() -> Miscompilation:
    """The 0 copies a size of the tensor in the middle (onnx/optimizer #259)."""
    text = """g (float[2, 3] x) => (float[3, 2] y) <int64[2] s = {3, 2}, int64[2] t = {0, -1}>
        { a = Reshape(x, s)  y = Reshape(a, t) }"""
    return _made("24", "no 0 copies", "", text, {"x": _floats(1, 2, 3, 4, 5, 6, shape=(2, 3))})


def last_axis_removed_twice() -> Miscompilation:
    """The last axis of the second step is the last but one of the first (onnx/optimizer #253)."""
    text = """g (float[2, 1, 1] x) => (float[2] y) <int64[1] a = {-1}>
        { b = Squeeze(x, a)  y = Squeeze(b, a) }"""
    return _made("25", "axes are relative to their own tensor", "", text, {"x": _floats(1, 2, shape=(2, 1, 1))})


def convolution_times_a_row() -> Miscompilation:
    """A factor with one axis belongs to the last axis, not to the channels."""
    text = """g (float[1, 1, 3] x) => (float[1, 3, 3] y) <float[3, 1, 1] w = {1, 2, 3}, float[3] k = {1, 10, 100}>
        { c = Conv(x, w)  y = Mul(c, k) }"""
    return _made("26", "the factor belongs to the channel", "", text, {"x": _floats(1, 2, 3, shape=(1, 1, 3))})


def two_rotations_of_the_axes() -> Miscompilation:
    """Of two transpositions the second one moves the axes as the first one has left them (onnx #2446)."""
    text = """g (float[2, 3, 1] x) => (float[1, 2, 3] y)
        { a = Transpose<perm = [1, 0, 2]>(x)  b = Transpose<perm = [2, 0, 1]>(a)
          y = Transpose<perm = [0, 2, 1]>(b) }"""
    return _made("27", "the order of the composition", "", text, {"x": _floats(1, 2, 3, 4, 5, 6, shape=(2, 3, 1))})


def negative_factor_behind_relu() -> Miscompilation:
    """A negative factor does not move before Relu (TVM #16211, PR #2299)."""
    given = "float[1, 1, 1] w = {1}, float k = {-2}"
    x = _floats(-1, 0.5, 2, shape=(1, 1, 3))
    return _made("28", "k is positive", "", _convolution("r = Relu(c)  y = Mul(r, k)", given), {"x": x})


def zeros_of_both_signs() -> Miscompilation:
    """Constants that are equal as numbers, or as bytes, and are not the same (onnxsim #265)."""
    text = """g (float[2] x) => (float[2] y, int32[2] z)
        <float[2] p = {0, 0}, float[2] n = {-0.0, -0.0}, int32[2] i = {0, 0}>
        { a = Div(x, p)  b = Div(x, n)  y = Max(a, b)  c = Cast<to = 6>(x)  z = Add(c, i) }"""
    return _made("29", "bytes, type and shape are equal", "", text, {"x": _floats(1, -1)})


def folded_inverse_root_of_zero() -> Miscompilation:
    """A constant 1 / sqrt(-0.0) is the negative infinity, however it is computed (ORT #31140, #31163)."""
    text = """g (float[1] x) => (float[1] y) <float[1] o = {-0.0}, float[1] one = {1}>
        { s = Sqrt(o)  i = Div(one, s)  y = Add(x, i) }"""
    return _made("30", "the same meaning", "", text, {"x": _floats(1)})


OTHERS: tuple[Build, ...] = (
    product_with_a_transposition_that_does_nothing,
    normalization_whose_quotient_is_its_scale,
    truth_of_an_integer_part,
    double_through_float,
    zero_before_a_mean,
    zero_before_the_greatest,
    elements_taken_away_before_a_convolution,
    grouped_convolution_with_a_constant_of_its_shape,
    greatest_integers_with_a_negative_scale,
    place_of_the_greatest_power,
    place_of_the_greatest_logarithm,
    two_great_factors,
    reshaping_that_copies_a_size,
    last_axis_removed_twice,
    convolution_times_a_row,
    two_rotations_of_the_axes,
    negative_factor_behind_relu,
    zeros_of_both_signs,
    folded_inverse_root_of_zero,
)
"""Rows that onnxruntime has repaired, or that are wrong in other tools."""


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
