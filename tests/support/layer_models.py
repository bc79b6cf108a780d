"""Layers of language models and quantized nets, with weights drawn by seed: a transformer layer, a step of a decoder,
an LSTM; convolutions and products of bytes.

They are written as exporters write them: products with the bias added behind, Gelu by its Erf; a Relu behind quantized
sums is the zero point 0, and products whose scales are found when they run are MatMulInteger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

HIDDEN: Final = 768
HEADS: Final = 12
"""Sizes of BERT base."""
Tensors = dict[str, NDArray[Any]]


class _Graph:
    """Nodes and weights while a graph is written."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: Tensors = {}
        self.random = np.random.default_rng(0)

    def add(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """A node; the name of its first output."""
        name = f"{op_type}_{len(self.nodes)}"
        outs = [name, *(f"{name}_{k}" for k in range(1, outputs))]
        self.nodes.append(helper.make_node(op_type, list(inputs), outs, name=name, **attributes))
        return name

    def weight(self, *shape: int, scale: float | None = None, about: float = 0.0) -> str:
        """A drawn weight, by default such that products with it keep the size of what they are given."""
        scale = 1 / math.sqrt(shape[-2]) if scale is None else scale
        return self.stored((self.random.standard_normal(shape) * scale + about).astype(np.float32))

    def stored(self, value: Any) -> str:
        """A stored tensor."""
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(value)
        return name

    def number(self, value: float) -> str:
        """A stored scalar."""
        return self.stored(np.float32(value))

    def linear(self, x: str, before: int, after: int) -> str:
        """A product with a bias."""
        return self.add("Add", self.add("MatMul", x, self.weight(before, after)), self.weight(after, scale=0.1))

    def heads(self, x: str, length: int) -> str:
        """The heads of a tensor [1, length, HIDDEN] before its places."""
        parts = self.add("Reshape", x, self.stored(np.array([1, length, HEADS, HIDDEN // HEADS])))
        return self.add("Transpose", parts, perm=[0, 2, 1, 3])

    def attention(self, q: str, k: str, v: str, mask: str, length: int) -> str:
        """Softmax(q k' / root + mask) v, the heads joined."""
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.add("Div", scores, self.number(math.sqrt(HIDDEN // HEADS)))
        if mask:
            scores = self.add("Add", scores, mask)
        joined = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        joined = self.add("Transpose", joined, perm=[0, 2, 1, 3])
        return self.add("Reshape", joined, self.stored(np.array([1, length, HIDDEN])))

    def normal(self, x: str) -> str:
        """Layer normalization."""
        scale, bias = self.weight(HIDDEN, scale=0.1, about=1.0), self.weight(HIDDEN, scale=0.1)
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)

    def feed_forward(self, x: str) -> str:
        """Two products with Gelu between them."""
        h = self.linear(x, HIDDEN, 4 * HIDDEN)
        erf = self.add("Erf", self.add("Div", h, self.number(math.sqrt(2))))
        half = self.add("Mul", h, self.add("Add", erf, self.number(1)))
        return self.linear(self.add("Mul", half, self.number(0.5)), 4 * HIDDEN, HIDDEN)

    def scaled(self, scale: float, zero: int = 128) -> tuple[str, str]:
        """A scale and a zero point of bytes."""
        return self.number(scale), self.stored(np.uint8(zero))

    def bytes(self, *shape: int) -> str:
        """A drawn weight of int8."""
        return self.stored(self.random.integers(-127, 128, shape).astype(np.int8))

    def quantized_conv(
        self, x: str, before: tuple[str, str], channels: tuple[int, int], kernel: int, stride: int = 1, groups: int = 1
    ) -> tuple[str, tuple[str, str]]:
        """A convolution of bytes with a scale for each kernel, and a Relu; the scale and zero point of the result."""
        inputs, outputs = channels
        terms = inputs // groups * kernel**2
        scales = self.stored((self.random.uniform(0.5, 1, outputs) / (70 * math.sqrt(terms))).astype(np.float32))
        after = self.scaled(0.02, 0)
        weights = self.bytes(outputs, inputs // groups, kernel, kernel), scales, self.stored(np.zeros(outputs, np.int8))
        bias = self.stored(self.random.integers(-2000, 2000, outputs).astype(np.int32))
        pads = [kernel // 2] * 4
        stated = {"pads": pads, "strides": [stride] * 2, "group": groups, "kernel_shape": [kernel] * 2}
        return self.add("QLinearConv", x, *before, *weights, *after, bias, **stated), after

    def dynamic_linear(self, x: str, before: int, after: int) -> str:
        """A product with a bias of bytes whose scale is found when it runs."""
        q = self.add("DynamicQuantizeLinear", x, outputs=3)
        sums = self.add("MatMulInteger", q, self.bytes(before, after), f"{q}_2")
        scale = self.add("Mul", f"{q}_1", self.number(1 / (70 * math.sqrt(before))))
        real = self.add("Mul", self.add("Cast", sums, to=TensorProto.FLOAT), scale)
        return self.add("Add", real, self.weight(after, scale=0.1))

    def model(
        self, name: str, inputs: Mapping[str, tuple[int, ...]], outputs: Mapping[str, tuple[int, ...]]
    ) -> onnx.ModelProto:
        """The model with inputs and outputs of these shapes."""
        ends = [
            [helper.make_tensor_value_info(t, TensorProto.FLOAT, s) for t, s in it.items()] for it in (inputs, outputs)
        ]
        stored = [numpy_helper.from_array(value, t) for t, value in self.weights.items()]
        graph = helper.make_graph(self.nodes, name, *ends, stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def bert() -> onnx.ModelProto:
    """A layer of an encoder on 128 places."""
    g, length = _Graph(), 128
    q, k, v = (g.heads(g.linear("x", HIDDEN, HIDDEN), length) for _ in range(3))
    joined = g.linear(g.attention(q, k, v, "mask", length), HIDDEN, HIDDEN)
    middle = g.normal(g.add("Add", joined, "x"))
    out = g.normal(g.add("Add", g.feed_forward(middle), middle))
    return g.model("bert", {"x": (1, length, HIDDEN), "mask": (1, 1, 1, length)}, {out: (1, length, HIDDEN)})


def decoder() -> onnx.ModelProto:
    """A step of a layer of a decoder with a cache of 512 places."""
    g, kept, size = _Graph(), 512, HIDDEN // HEADS
    x = g.normal("x")
    q, k, v = (g.heads(g.linear(x, HIDDEN, HIDDEN), 1) for _ in range(3))
    keys, values = g.add("Concat", "keys", k, axis=2), g.add("Concat", "values", v, axis=2)
    middle = g.add("Add", g.linear(g.attention(q, keys, values, "", 1), HIDDEN, HIDDEN), "x")
    out = g.add("Add", g.feed_forward(g.normal(middle)), middle)
    before, after = (1, HEADS, kept, size), (1, HEADS, kept + 1, size)
    ends = {"x": (1, 1, HIDDEN), "keys": before, "values": before}
    return g.model("decoder", ends, {out: (1, 1, HIDDEN), keys: after, values: after})


def lstm() -> onnx.ModelProto:
    """An LSTM of 512 units over 100 steps."""
    g, units, steps = _Graph(), 512, 100
    scale = 1 / math.sqrt(units)
    weights = [g.weight(1, 4 * units, units, scale=scale), g.weight(1, 4 * units, units, scale=scale)]
    y = g.add("LSTM", "x", *weights, g.weight(1, 8 * units, scale=0.1), outputs=3, hidden_size=units)
    out = g.add("Squeeze", y, g.stored(np.array([1])))
    return g.model("lstm", {"x": (steps, 1, units)}, {out: (steps, 1, units), f"{y}_1": (1, 1, units)})


def qconv() -> onnx.ModelProto:
    """Convolutions of bytes: dense ones, by channels, pointwise; a product at the end."""
    g = _Graph()
    ends = g.scaled(0.03)
    x = g.add("QuantizeLinear", "x", *ends)
    width = 32
    x, ends = g.quantized_conv(x, ends, (3, width), 3, stride=2)
    for stride in (1, 2, 2):
        x, ends = g.quantized_conv(x, ends, (width, width), 3, stride=stride, groups=width)
        x, ends = g.quantized_conv(x, ends, (width, 2 * width), 1)
        width *= 2
        x, ends = g.quantized_conv(x, ends, (width, width // 2), 1)
        x, ends = g.quantized_conv(x, ends, (width // 2, width), 3)
    x = g.add("Flatten", g.add("GlobalAveragePool", g.add("DequantizeLinear", x, *ends)))
    x = g.add("QuantizeLinear", x, *ends)
    weights = g.bytes(width, 1000), g.number(0.001), g.stored(np.int8(0))
    ends, before = g.scaled(0.05), ends
    out = g.add("DequantizeLinear", g.add("QLinearMatMul", x, *before, *weights, *ends), *ends)
    return g.model("qconv", {"x": (1, 3, 224, 224)}, {out: (1, 1000)})


def qdense() -> onnx.ModelProto:
    """The products of a layer of an encoder on 128 places: of bytes with stored scales, then with those of the data."""
    g, length = _Graph(), 128
    ends = g.scaled(0.03)
    x = g.add("QuantizeLinear", "x", *ends)
    for _ in range(4):
        weights, before = (g.bytes(HIDDEN, HIDDEN), g.number(1 / (70 * math.sqrt(HIDDEN))), g.stored(np.int8(0))), ends
        ends = g.scaled(0.03, 120)
        x = g.add("QLinearMatMul", x, *before, *weights, *ends)
    x = g.add("DequantizeLinear", x, *ends)
    h = g.add("Relu", g.dynamic_linear(x, HIDDEN, 4 * HIDDEN))
    out = g.add("Add", g.dynamic_linear(h, 4 * HIDDEN, HIDDEN), x)
    return g.model("qdense", {"x": (1, length, HIDDEN)}, {out: (1, length, HIDDEN)})


LAYERS: Final[Mapping[str, Callable[[], onnx.ModelProto]]] = {
    "bert": bert, "decoder": decoder, "lstm": lstm, "qconv": qconv, "qdense": qdense
}  # fmt: skip
