"""One layer of an encoder as exporters write it: attention, LayerNormalization and Gelu in small operators."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import helper, numpy_helper

HIDDEN, HEADS, INNER = 32, 4, 64


class _Layer:
    """Nodes and stored tensors that are being put together."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(seed)

    def apply(self, operator: str, *inputs: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=f"{operator}_{name}", **attributes))
        return name

    def keep(self, array: np.ndarray) -> str:
        name = f"w{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(array, name))
        return name

    def number(self, value: float) -> str:
        return self.keep(np.array(value, np.float32))

    def dense(self, x: str, before: int, after: int) -> str:
        weights = self.rng.standard_normal((before, after)) / math.sqrt(before)
        product = self.apply("MatMul", x, self.keep(weights.astype(np.float32)))
        bias = self.keep((self.rng.standard_normal(after) / 8).astype(np.float32))
        return self.apply("Add", bias, product)

    def normalized(self, x: str) -> str:
        centred = self.apply("Sub", x, self.apply("ReduceMean", x, axes=[-1]))
        squared = self.apply("Pow", centred, self.number(2))
        variance = self.apply("Add", self.apply("ReduceMean", squared, axes=[-1]), self.number(1e-5))
        scaled = self.apply("Div", centred, self.apply("Sqrt", variance))
        scale = self.keep(self.rng.uniform(0.5, 1.5, HIDDEN).astype(np.float32))
        bias = self.keep((self.rng.standard_normal(HIDDEN) / 8).astype(np.float32))
        return self.apply("Add", self.apply("Mul", scaled, scale), bias)

    def gelu(self, x: str) -> str:
        inner = self.apply("Erf", self.apply("Div", x, self.number(math.sqrt(2))))
        return self.apply("Mul", self.apply("Mul", x, self.apply("Add", inner, self.number(1))), self.number(0.5))

    def split(self, x: str, perm: list[int]) -> str:
        shape = self.keep(np.array([0, 0, HEADS, HIDDEN // HEADS], np.int64))
        return self.apply("Transpose", self.apply("Reshape", x, shape), perm=perm)

    def attention(self, x: str, mask: str) -> str:
        query = self.split(self.dense(x, HIDDEN, HIDDEN), [0, 2, 1, 3])
        key = self.split(self.dense(x, HIDDEN, HIDDEN), [0, 2, 3, 1])
        value = self.split(self.dense(x, HIDDEN, HIDDEN), [0, 2, 1, 3])
        scores = self.apply("Div", self.apply("MatMul", query, key), self.number(math.sqrt(HIDDEN // HEADS)))
        weights = self.apply("Softmax", self.apply("Add", scores, mask), axis=-1)
        joined = self.apply("Transpose", self.apply("MatMul", weights, value), perm=[0, 2, 1, 3])
        shape = self.keep(np.array([0, 0, HIDDEN], np.int64))
        return self.dense(self.apply("Reshape", joined, shape), HIDDEN, HIDDEN)


def transformer_layer(batch: int | str = 1, length: int | str = 8, seed: int = 0) -> onnx.ModelProto:
    """The layer, of opset 17. batch, length: sizes, or names of open ones."""
    it = _Layer(seed)
    attended = it.normalized(it.apply("Add", it.attention("x", "mask"), "x"))
    inner = it.gelu(it.dense(attended, HIDDEN, INNER))
    result = it.normalized(it.apply("Add", it.dense(inner, INNER, HIDDEN), attended))
    it.nodes[-1].output[0] = result = "y"
    float_ = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        it.nodes,
        "layer",
        [
            helper.make_tensor_value_info("x", float_, [batch, length, HIDDEN]),
            helper.make_tensor_value_info("mask", float_, [batch, 1, 1, length]),
        ],
        [helper.make_tensor_value_info(result, float_, [batch, length, HIDDEN])],
        it.stored,
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
