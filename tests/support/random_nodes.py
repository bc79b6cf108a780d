"""Makers of random nodes: each adds one node that fits the tensors of a draft, or gives up with Misfit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from onnx import TensorProto, helper
from random_draft import FLOATS, LIMIT, NUMBERS, PRIMES, Draft

Maker = Callable[[Draft], object]


def _unary(op_type: str, kinds: tuple[type, ...] = FLOATS, least: int = 0, **attributes: object) -> Maker:
    def make(d: Draft) -> None:
        x, dtype, shape = d.pick(kinds, least)
        d.add(op_type, [x], dtype, shape, **attributes)

    return make


def _binary(op_type: str) -> Maker:
    def make(d: Draft) -> None:
        kinds = FLOATS if op_type == "Div" else NUMBERS
        x, dtype, shape = d.pick(kinds)
        same = [name for name, entry in d.tensors.items() if entry == (dtype, shape)]
        if d.choose.random() < 0.5:
            other, other_shape = d.choose.choice(same), shape
        else:
            kept = d.choose.randint(0, len(shape))
            other_shape = tuple(size if d.choose.random() < 0.6 else 1 for size in shape[kept:])
            other = d.store(d.values(dtype, other_shape))
        pair = [x, other] if d.choose.random() < 0.5 else [other, x]
        d.add(op_type, pair, dtype, np.broadcast_shapes(shape, other_shape))

    return make


def _sum(d: Draft) -> None:
    x, dtype, shape = d.pick(FLOATS)
    d.add("Sum", [x, *(d.store(d.values(dtype, shape)) for _ in range(d.choose.randint(0, 3)))], dtype, shape)


def _clip(d: Draft) -> None:
    x, dtype, shape = d.pick(FLOATS)
    bounds = [d.store(np.array(v, dtype)) if d.choose.random() < 0.8 else "" for v in (-0.5, 0.75)]
    d.add("Clip", [x, *bounds], dtype, shape)


def _cast(d: Draft) -> None:
    x, _, shape = d.pick((np.float32, np.float16, np.int32, np.bool_))
    to = d.choose.choice((np.float32, np.float64, np.float16))
    d.add("Cast", [x], to, shape, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def _transpose(d: Draft) -> None:
    x, dtype, shape = d.pick(least=1)
    perm = d.choose.sample(range(len(shape)), len(shape))
    d.add("Transpose", [x], dtype, tuple(shape[i] for i in perm), perm=perm)


def _reshape(d: Draft) -> None:
    x, dtype, shape = d.pick(smallest=1)
    cut = d.choose.randint(0, len(shape))
    target = (math.prod(shape[:cut]), math.prod(shape[cut:]))
    d.add("Reshape", [x, d.ints(-1, target[1])], dtype, target)


def _flatten(d: Draft) -> None:
    x, dtype, shape = d.pick()
    axis = d.choose.randint(0, len(shape))
    d.add("Flatten", [x], dtype, (math.prod(shape[:axis]), math.prod(shape[axis:])), axis=axis)


def _unsqueeze(d: Draft) -> None:
    x, dtype, shape = d.pick(most=3)
    axis = d.choose.randint(0, len(shape))
    d.add("Unsqueeze", [x, d.ints(axis)], dtype, (*shape[:axis], 1, *shape[axis:]))


def _squeeze(d: Draft) -> None:
    x, dtype, shape = d.pick(least=1)
    d.add("Squeeze", [x], dtype, tuple(size for size in shape if size != 1))


def _concat(d: Draft) -> None:
    x, dtype, shape = d.pick(least=1)
    axis = d.choose.randrange(len(shape))
    count = d.choose.randint(1, 3)
    size = shape[axis] * count
    d.add("Concat", [x] * count, dtype, (*shape[:axis], size, *shape[axis + 1 :]), axis=axis - len(shape))


def _slice(d: Draft) -> None:
    x, dtype, shape = d.pick(least=1, smallest=1)
    axis = d.choose.randrange(len(shape))
    step = d.choose.choice((-2, -1, 1, 2, 3))
    start, end = d.choose.randint(-shape[axis], shape[axis]), d.choose.randint(-shape[axis] - 1, 2 * shape[axis])
    kept = len(range(shape[axis])[start:end:step])
    inputs = [x, d.ints(start), d.ints(end), d.ints(axis), d.ints(step)]
    d.add("Slice", inputs, dtype, (*shape[:axis], kept, *shape[axis + 1 :]))


def _gather(d: Draft) -> None:
    x, dtype, shape = d.pick(least=1, smallest=1)
    axis = d.choose.randrange(len(shape))
    picked = [d.choose.randint(-shape[axis], shape[axis] - 1) for _ in range(d.choose.choice((1, 2, 3)))]
    d.add("Gather", [x, d.ints(*picked)], dtype, (*shape[:axis], len(picked), *shape[axis + 1 :]), axis=axis)


def _pad(d: Draft) -> None:
    x, dtype, shape = d.pick(FLOATS, least=1, most=3, smallest=2)
    mode = d.choose.choice(("constant", "edge", "reflect"))
    before, after = ([d.choose.randint(0, 1) for _ in shape] for _ in range(2))
    result = tuple(size + a + b for size, a, b in zip(shape, before, after, strict=True))
    d.add("Pad", [x, d.ints(*before, *after)], dtype, result, mode=mode)


def _matmul(d: Draft) -> None:
    x, dtype, shape = d.pick(FLOATS, least=2)
    columns = d.choose.choice(PRIMES)
    d.add("MatMul", [x, d.store(d.values(dtype, (shape[-1], columns)))], dtype, (*shape[:-1], columns))


def _gemm(d: Draft) -> None:
    x, dtype, (rows, inner) = d.pick(FLOATS, 2, 2)  # type: ignore[misc]
    columns = d.choose.choice(PRIMES)
    turned = d.choose.random() < 0.5
    weight = d.store(d.values(dtype, (columns, inner) if turned else (inner, columns)))
    inputs = [x, weight] + ([d.store(d.values(dtype, (columns,)))] if d.choose.random() < 0.5 else [])
    d.add("Gemm", inputs, dtype, (rows, columns), transB=int(turned), alpha=0.5, beta=2.0)


def _images(d: Draft) -> tuple[str, np.dtype[np.generic], tuple[int, ...]]:
    return d.pick(FLOATS, 3, 4, smallest=1)


def _conv(d: Draft) -> None:
    x, dtype, (n, c, *space) = _images(d)
    kernel = [d.choose.randint(1, min(3, size)) for size in space]
    strides = [d.choose.randint(1, 2) for _ in space]
    pads = [d.choose.randint(0, 1) for _ in space]
    maps = d.choose.choice(PRIMES[:3])
    group = c if d.choose.random() < 0.3 else 1
    weight = d.store(d.values(dtype, (maps * group, c // group, *kernel)))
    sizes = [(s + 2 * p - k) // t + 1 for s, p, k, t in zip(space, pads, kernel, strides, strict=True)]
    d.add("Conv", [x, weight], dtype, (n, maps * group, *sizes), strides=strides, pads=pads * 2, group=group)


def _pool(op_type: str) -> Maker:
    def make(d: Draft) -> None:
        x, dtype, (n, c, *space) = _images(d)
        kernel = [d.choose.randint(1, min(3, size)) for size in space]
        strides = [d.choose.randint(1, 2) for _ in space]
        sizes = [(s - k) // t + 1 for s, k, t in zip(space, kernel, strides, strict=True)]
        d.add(op_type, [x], dtype, (n, c, *sizes), kernel_shape=kernel, strides=strides)

    return make


def _global_pool(d: Draft) -> None:
    x, dtype, (n, c, *space) = _images(d)
    d.add("GlobalAveragePool", [x], dtype, (n, c, *(1 for _ in space)))


def _normalize(d: Draft) -> None:
    x, dtype, shape = _images(d)
    per_channel = [d.store(d.values(dtype, (shape[1],))) for _ in range(3)]
    variance = d.store(np.abs(d.values(dtype, (shape[1],), tame=True)))
    d.add("BatchNormalization", [x, *per_channel, variance], dtype, shape)


def _lrn(d: Draft) -> None:
    x, dtype, shape = _images(d)
    d.add("LRN", [x], dtype, shape, size=3)


def _reduce(op_type: str) -> Maker:
    def make(d: Draft) -> None:
        x, dtype, shape = d.pick(FLOATS, least=1, smallest=1)
        axis, keep = d.choose.randrange(len(shape)), d.choose.random() < 0.5
        kept = (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])
        d.add(op_type, [x, d.ints(axis)], dtype, kept, keepdims=int(keep))

    return make


def _topk(d: Draft) -> None:
    x, dtype, shape = d.pick(FLOATS, least=1, smallest=1)
    k = d.choose.randint(1, shape[-1])
    values, places = d.add("TopK", [x, d.ints(k)], dtype, *[(*shape[:-1], k)] * 2, largest=d.choose.randint(0, 1))
    d.tensors[places] = (np.dtype(np.int64), d.tensors[values][1])


def _quantize(d: Draft) -> None:
    x, _, shape = d.pick((np.float32,))
    scale, zero = d.store(np.array(0.25, np.float32)), d.store(np.array(3, np.int8))
    (quantized,) = d.add("QuantizeLinear", [x, scale, zero], np.int8, shape)
    d.add("DequantizeLinear", [quantized, scale, zero], np.float32, shape)


def _einsum(d: Draft) -> None:
    x, dtype, (rows, _) = d.pick(FLOATS, 2, 2)  # type: ignore[misc]
    d.add("Einsum", [x, x], dtype, (rows, rows), equation="ij,kj->ik")


def _scatter(d: Draft) -> None:
    x, dtype, shape = d.pick(FLOATS, least=1, smallest=1)
    places = d.choose.sample(range(shape[0]), d.choose.randint(1, min(3, shape[0])))
    indices = d.store(np.array([[place] for place in places], np.int64))
    d.add("ScatterND", [x, indices, d.store(d.values(dtype, (len(places), *shape[1:])))], dtype, shape)


def _resize(d: Draft) -> None:
    x, dtype, (n, c, *space) = d.pick(FLOATS, 4, 4, smallest=1)
    factor = d.choose.choice((1, 2))
    mode = d.choose.choice(("nearest", "linear"))
    scales = d.store(np.array([1, 1, *(factor for _ in space)], np.float32))
    d.add("Resize", [x, "", scales], dtype, (n, c, *(size * factor for size in space)), mode=mode)


def _shape_and_back(d: Draft) -> None:
    x, _, shape = d.pick()
    (sizes,) = d.add("Shape", [x], np.int64, (len(shape),))
    if math.prod(shape) <= LIMIT:
        d.add("ConstantOfShape", [sizes], np.float32, shape)


def _nonzero(d: Draft) -> None:
    """Positions of what is not zero, counted: the shape of the first depends on data, that of the second does not."""
    x, *_ = d.pick(least=1)
    name = f"t{len(d.nodes)}_z"
    d.nodes.append(helper.make_node("NonZero", [x], [name], f"n{len(d.nodes)}"))
    d.add("Shape", [name], np.int64, (2,))


def _if(d: Draft) -> None:
    x, dtype, shape = d.pick(FLOATS)
    condition = d.store(np.array(d.choose.random() < 0.5))
    label = len(d.nodes)
    type_ = helper.np_dtype_to_tensor_dtype(dtype)
    bodies = {
        key: helper.make_graph(
            [
                helper.make_node(op_type, [x], [f"{key}{label}a"], f"{key}{label}a"),
                helper.make_node("Add", [f"{key}{label}a", x], [f"{key}{label}"], f"{key}{label}"),
            ],
            key,
            [],
            [helper.make_tensor_value_info(f"{key}{label}", type_, shape)],
        )
        for key, op_type in (("then_branch", "Relu"), ("else_branch", "Tanh"))
    }
    d.add("If", [condition], dtype, shape, **bodies)


def _loop(d: Draft) -> None:
    x, dtype, shape = d.pick(FLOATS)
    count, label = d.choose.randint(0, 3), len(d.nodes)
    type_ = helper.np_dtype_to_tensor_dtype(dtype)
    value = helper.make_tensor_value_info
    names = {role: f"loop{label}{role}" for role in ("i", "c", "v", "w", "s", "k")}
    body = helper.make_graph(
        [
            helper.make_node("Add", [names["v"], x], [names["w"]], names["w"]),
            helper.make_node("Tanh", [names["w"]], [names["s"]], names["s"]),
            helper.make_node("Identity", [names["c"]], [names["k"]], names["k"]),
        ],
        "body",
        [
            value(names["i"], TensorProto.INT64, []),
            value(names["c"], TensorProto.BOOL, []),
            value(names["v"], type_, shape),
        ],
        [value(names["k"], TensorProto.BOOL, []), value(names["w"], type_, shape), value(names["s"], type_, shape)],
    )
    inputs = [d.store(np.array(count, np.int64)), "", x]
    d.add("Loop", inputs, dtype, shape, (count, *shape), body=body)


MAKERS: Mapping[str, Maker] = {
    **{op: _binary(op) for op in ("Add", "Sub", "Mul", "Div")},
    **{op: _unary(op) for op in ("Relu", "Sigmoid", "Tanh")},
    "Identity": _unary("Identity", NUMBERS),
    "Dropout": _unary("Dropout"),
    "Softmax": _unary("Softmax", least=1, axis=-1),
    "LogSoftmax": _unary("LogSoftmax", least=1, axis=0),
    "Sum": _sum,
    "Clip": _clip,
    "Cast": _cast,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Concat": _concat,
    "Slice": _slice,
    "Gather": _gather,
    "Pad": _pad,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "MaxPool": _pool("MaxPool"),
    "AveragePool": _pool("AveragePool"),
    "GlobalAveragePool": _global_pool,
    "BatchNormalization": _normalize,
    "LRN": _lrn,
    **{op: _reduce(op) for op in ("ReduceSum", "ReduceMean", "ReduceMax")},
    "TopK": _topk,
    "QuantizeLinear": _quantize,
    "Einsum": _einsum,
    "ScatterND": _scatter,
    "Resize": _resize,
    "ConstantOfShape": _shape_and_back,
    "NonZero": _nonzero,
    "If": _if,
    "Loop": _loop,
}
