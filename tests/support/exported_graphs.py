"""Graphs as exporters write them, made with onnx.helper at small sizes, with inputs: a decoder block with a cache, a
BERT layer, two detection heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


@dataclass
class Parts:
    """A graph in the making: weights are drawn from the seed of its name."""

    draw: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    stored: list[onnx.TensorProto] = field(default_factory=list)

    def node(self, op_type: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        """The names of the results of a node, one alone for a single result."""
        number = len(self.nodes)
        names = [f"{op_type.lower()}_{number}" + (f"_{k}" if count > 1 else "") for k in range(count)]
        self.nodes.append(helper.make_node(op_type, inputs, names, f"n{number}", **attributes))
        return names[0] if count == 1 else names

    def weight(self, *shape: int) -> str:
        """A drawn matrix or vector of small numbers."""
        return self.constant(self.draw.standard_normal(shape).astype(np.float32) / 2)

    def constant(self, value: Any) -> str:
        """A stored tensor."""
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def linear(self, x: str, rows: int, columns: int, bias: bool = True) -> str:
        """MatMul, and Add of a bias."""
        product = self.node("MatMul", x, self.weight(rows, columns))
        return self.node("Add", self.weight(columns), product) if bias else product


@dataclass(frozen=True)
class Graph:
    """model: serialized. feeds: inputs. runs: onnxruntime 1.32 has all its operators."""

    model: bytes
    feeds: Mapping[str, Array]
    runs: bool = True


def _graph(
    parts: Parts,
    opset: int,
    inputs: Mapping[str, tuple[Array, Sequence[int | str]]],
    outputs: Mapping[str, tuple[str, int, Sequence[int | str | None]]],
) -> Graph:
    """inputs: values with declared shapes. outputs: by their names what they are, with element types and shapes."""
    ends = [helper.make_node("Identity", [of], [name], name) for name, (of, _, _) in outputs.items()]
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)
        for name, (value, shape) in inputs.items()
    ]
    results = [helper.make_tensor_value_info(name, kind, shape) for name, (_, kind, shape) in outputs.items()]
    graph = helper.make_graph([*parts.nodes, *ends], "exported", given, results, parts.stored)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11 if opset > 23 else 8)
    return Graph(made.SerializeToString(deterministic=True), {name: value for name, (value, _) in inputs.items()})


def _numbers(draw: np.random.Generator, *shape: int) -> Array:
    return draw.standard_normal(shape).astype(np.float32)


def decoder_block() -> Graph:
    """Two tokens of two sequences behind caches of different lengths: RotaryEmbedding, TensorScatter, Attention with
    grouped heads, and a gated feed-forward part. TensorScatter came with operator set 24."""
    hidden, heads, shared, size, slots = 16, 4, 2, 4, 6
    draw = np.random.default_rng(1)
    p = Parts(draw)
    angles = np.outer(np.arange(slots), [1.0, 0.1]).astype(np.float32)
    turns = (p.constant(np.cos(angles)), p.constant(np.sin(angles)), "position_ids")

    def split(x: str, count: int) -> str:
        shaped = p.node("Reshape", x, p.constant(np.array([0, 0, count, size])))
        return p.node("Transpose", shaped, perm=[0, 2, 1, 3])

    normal = p.node("RMSNormalization", "x", p.weight(hidden), axis=-1, epsilon=1e-6)
    q = p.node("RotaryEmbedding", split(p.linear(normal, hidden, heads * size, bias=False), heads), *turns)
    k = p.node("RotaryEmbedding", split(p.linear(normal, hidden, shared * size, bias=False), shared), *turns)
    v = split(p.linear(normal, hidden, shared * size, bias=False), shared)
    keys = p.node("TensorScatter", "past_key", k, "write_indices", axis=2)
    values = p.node("TensorScatter", "past_value", v, "write_indices", axis=2)
    attended = p.node("Attention", q, keys, values, "mask")
    joined = p.node("Transpose", attended, perm=[0, 2, 1, 3])
    flat = p.node("Reshape", joined, p.constant(np.array([0, 0, heads * size])))
    first = p.node("Add", "x", p.linear(flat, heads * size, hidden, bias=False))
    normal = p.node("RMSNormalization", first, p.weight(hidden), axis=-1, epsilon=1e-6)
    gate = p.node("Swish", p.linear(normal, hidden, 2 * hidden, bias=False))
    gated = p.node("Mul", gate, p.linear(normal, hidden, 2 * hidden, bias=False))
    last = p.node("Add", first, p.linear(gated, 2 * hidden, hidden, bias=False))
    written, tokens = np.array([1, 3]), 2
    places = written[:, None] + np.arange(tokens)
    mask = np.arange(slots)[None, None, None, :] <= places[:, None, :, None]
    cache = ("batch", shared, slots, size)
    return _graph(
        p,
        24,
        {
            "x": (_numbers(draw, 2, tokens, hidden), ("batch", "tokens", hidden)),
            "position_ids": (places, ("batch", "tokens")),
            "write_indices": (written, ("batch",)),
            "past_key": (_numbers(draw, 2, shared, slots, size), cache),
            "past_value": (_numbers(draw, 2, shared, slots, size), cache),
            "mask": (mask, ("batch", 1, "tokens", slots)),
        },
        {
            "y": (last, FLOAT, ("batch", "tokens", hidden)),
            "key": (keys, FLOAT, cache),
            "value": (values, FLOAT, cache),
        },
    )


def bert_layer() -> Graph:
    """Operator set 17, with the sizes of reshapes computed from the input, as PyTorch's exporter writes it."""
    hidden, heads = 12, 3
    size = hidden // heads
    draw = np.random.default_rng(2)
    p = Parts(draw)

    def size_of(x: str, axis: int) -> str:
        one = p.node("Gather", p.node("Shape", x), p.constant(np.array(axis)), axis=0)
        return p.node("Unsqueeze", one, p.constant(np.array([0])))

    def split(x: str) -> str:
        shape = (size_of(x, 0), size_of(x, 1), p.constant(np.array([heads])), p.constant(np.array([size])))
        return p.node("Reshape", x, p.node("Concat", *shape, axis=0))

    open_mask = p.node("Cast", p.node("Unsqueeze", "attention_mask", p.constant(np.array([1, 2]))), to=FLOAT)
    least = p.constant(np.finfo(np.float32).min)
    mask = p.node("Mul", p.node("Sub", p.constant(np.float32(1)), open_mask), least)
    q = p.node("Transpose", split(p.linear("x", hidden, hidden)), perm=[0, 2, 1, 3])
    k = p.node("Transpose", split(p.linear("x", hidden, hidden)), perm=[0, 2, 3, 1])
    v = p.node("Transpose", split(p.linear("x", hidden, hidden)), perm=[0, 2, 1, 3])
    scores = p.node("Div", p.node("MatMul", q, k), p.constant(np.float32(np.sqrt(size))))
    weights = p.node("Softmax", p.node("Add", scores, mask), axis=-1)
    context = p.node("Transpose", p.node("MatMul", weights, v), perm=[0, 2, 1, 3])
    shape = p.node("Concat", size_of(context, 0), size_of(context, 1), p.constant(np.array([hidden])), axis=0)
    flat = p.node("Reshape", context, shape)
    first = p.node("Add", p.linear(flat, hidden, hidden), "x")
    normal = p.node("LayerNormalization", first, p.weight(hidden), p.weight(hidden), axis=-1, epsilon=1e-12)
    inner = p.linear(normal, hidden, 4 * hidden)
    erf = p.node("Erf", p.node("Div", inner, p.constant(np.float32(np.sqrt(2)))))
    gelu = p.node("Mul", inner, p.node("Add", erf, p.constant(np.float32(1))))
    second = p.linear(p.node("Mul", gelu, p.constant(np.float32(0.5))), 4 * hidden, hidden)
    summed = p.node("Add", second, normal)
    last = p.node("LayerNormalization", summed, p.weight(hidden), p.weight(hidden), axis=-1, epsilon=1e-12)
    kept = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])
    return _graph(
        p,
        17,
        {
            "x": (_numbers(draw, 2, 5, hidden), ("batch", "tokens", hidden)),
            "attention_mask": (kept, ("batch", "tokens")),
        },
        {"y": (last, FLOAT, ("batch", "tokens", hidden))},
    )


def yolo_head() -> Graph:
    """One scale of a detector: boxes from a grid and anchors, scores of classes, NonMaxSuppression, the boxes kept."""
    grid, anchors, classes, stride = 3, 2, 2, 8.0
    draw = np.random.default_rng(3)
    p = Parts(draw)
    channels = anchors * (5 + classes)
    maps = p.node("Conv", "features", p.weight(channels, 4, 1, 1), p.weight(channels), kernel_shape=[1, 1])
    shaped = p.node("Reshape", maps, p.constant(np.array([1, anchors, 5 + classes, grid, grid])))
    found = p.node("Sigmoid", p.node("Transpose", shaped, perm=[0, 1, 3, 4, 2]))
    sizes = p.constant(np.array([2, 2, 1, classes]))
    centres, extents, certain, likely = p.node("Split", found, sizes, axis=-1, count=4)
    across = np.stack(np.meshgrid(np.arange(grid), np.arange(grid)), -1).astype(np.float32)[None, None] - 0.5
    moved = p.node("Add", p.node("Mul", centres, p.constant(np.float32(2))), p.constant(across))
    middle = p.node("Mul", moved, p.constant(np.float32(stride)))
    squared = p.node("Pow", p.node("Mul", extents, p.constant(np.float32(2))), p.constant(np.float32(2)))
    bases = np.array([[10, 13], [16, 30]], np.float32).reshape(1, anchors, 1, 1, 2)
    extent = p.node("Mul", squared, p.constant(bases))
    boxes = p.node("Reshape", p.node("Concat", middle, extent, axis=-1), p.constant(np.array([1, -1, 4])))
    scores = p.node("Reshape", p.node("Mul", certain, likely), p.constant(np.array([1, -1, classes])))
    by_class = p.node("Transpose", scores, perm=[0, 2, 1])
    limits = (
        p.constant(np.array([3])),
        p.constant(np.array([0.45], np.float32)),
        p.constant(np.array([0.2], np.float32)),
    )
    chosen = p.node("NonMaxSuppression", boxes, by_class, *limits, center_point_box=1)
    places = p.node("Gather", chosen, p.constant(np.array([0, 2])), axis=1)
    kept = p.node("GatherND", boxes, places)
    rated = p.node("GatherND", by_class, chosen)
    return _graph(
        p,
        17,
        {"features": (_numbers(draw, 1, 4, grid, grid), (1, 4, grid, grid))},
        {
            "selected": (chosen, INT64, (None, 3)),
            "boxes": (kept, FLOAT, (None, 4)),
            "scores": (rated, FLOAT, (None,)),
        },
    )


def region_head() -> Graph:
    """The second stage of a detector: features of regions by RoiAlign, then classes and boxes."""
    draw = np.random.default_rng(4)
    p = Parts(draw)
    maps = p.node("Relu", p.node("Conv", "image", p.weight(4, 3, 3, 3), p.weight(4), pads=[1, 1, 1, 1]))
    how = {"output_height": 2, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.5}
    taken = p.node("RoiAlign", maps, "regions", "of_image", **how)
    flat = p.node("Flatten", taken, axis=1)
    inner = p.node("Relu", p.node("Gemm", flat, p.weight(8, 16), p.weight(8), transB=1))
    classes = p.node("Softmax", p.node("Gemm", inner, p.weight(3, 8), p.weight(3), transB=1), axis=-1)
    deltas = p.node("Gemm", inner, p.weight(12, 8), p.weight(12), transB=1)
    regions = np.array([[0, 0, 9, 7], [2.5, 1, 6, 12], [4, 4, 4, 4]], np.float32)
    return _graph(
        p,
        16,
        {
            "image": (_numbers(draw, 2, 3, 8, 8), ("batch", 3, 8, 8)),
            "regions": (regions, ("regions", 4)),
            "of_image": (np.array([0, 1, 0]), ("regions",)),
        },
        {"classes": (classes, FLOAT, ("regions", 3)), "deltas": (deltas, FLOAT, ("regions", 12))},
    )


GRAPHS = {it.__name__: it for it in (decoder_block, bert_layer, yolo_head, region_head)}
