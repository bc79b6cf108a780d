"""Random applications of the operators of com.microsoft, and what onnxruntime, their authority, gives for them."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from ledger_runtimes import WORKER
from onnx import helper
from sonnx.semantics.machine.judging import Judged, Undefined, applied, judge
from sonnx.semantics.operators.application import Application

Attributes = Mapping[str, Any]
Case = tuple[tuple[Any, ...], Attributes, int]
"""Inputs, attributes, number of outputs."""
DOMAIN = "com.microsoft"
GUESTS = ("SimplifiedLayerNormalization",)
"""The operators that onnxruntime registers in ONNX's own domain."""


# ---- Draws --------------------------------------------------------------------------------------


def scale(rng: random.Random, vector: bool = True) -> Any:
    """A scale: a power of two, so that there are ties, or any other number. vector: with an axis of size 1 as well."""
    value = 2.0 ** rng.randint(-6, 1) if rng.random() < 0.4 else 10 ** rng.uniform(-3, 0.5)
    return np.array(value, np.float32).reshape(rng.choice([(), (1,)]) if vector else ())


def zero(rng: random.Random, kind: Any, absent: float = 0.2, vector: bool = True) -> Any:
    """A zero point, or none."""
    if rng.random() < absent:
        return None
    info = np.iinfo(kind)
    value = rng.choice([info.min, 0, info.max, rng.randint(info.min, info.max)])
    return np.array(value, kind).reshape(rng.choice([(), (1,)]) if vector else ())


def quantized(rng: random.Random, shape: Sequence[int], kind: Any) -> Any:
    """Elements of a type of 8 bits, from its whole range or from a part of it."""
    info = np.iinfo(kind)
    low, high = (info.min, info.max) if rng.random() < 0.7 else (info.max - 20, info.max)
    size = int(np.prod(shape, dtype=np.int64))
    return np.array([rng.randint(low, high) for _ in range(size)], kind).reshape(shape)


def shape(rng: random.Random, least: int = 0, most: int = 4, sizes: Sequence[int] = (0, 1, 2, 3, 5, 7)) -> list[int]:
    """A shape, its sizes mostly not 0."""
    return [rng.choice(sizes) or rng.choice(sizes) for _ in range(rng.randint(least, most))]


def broadcasting(rng: random.Random) -> tuple[list[int], list[int]]:
    """Two shapes that broadcast."""
    whole = shape(rng)
    parts = []
    for _ in range(2):
        own = [1 if rng.random() < 0.25 else size for size in whole]
        parts.append(own[rng.randint(0, len(own)) if rng.random() < 0.3 else 0 :])
    return parts[0], parts[1]


def byte(rng: random.Random) -> Any:
    """A type of 8 bits."""
    return rng.choice([np.uint8, np.int8])


# ---- Operators ----------------------------------------------------------------------------------


def _binary(rng: random.Random) -> Case:
    kind = byte(rng)
    a, b = broadcasting(rng)
    scales = [scale(rng, False) for _ in range(3)]
    zeros = [zero(rng, kind, 0, False) for _ in range(3)]
    operands = [(quantized(rng, own, kind), scales[k], zeros[k]) for k, own in enumerate((a, b))]
    return (*operands[0], *operands[1], scales[2], *(zeros[2:] if rng.random() < 0.8 else ())), {}, 1


def _unary(rng: random.Random) -> Case:
    kind = byte(rng)
    return (quantized(rng, shape(rng), kind), scale(rng), zero(rng, kind), scale(rng), zero(rng, kind)), {}, 1


def _leaky(rng: random.Random) -> Case:
    inputs, _, outputs = _unary(rng)
    return inputs, rng.choice([{}, {"alpha": rng.choice([0.5, -1.0, 0.1, 0.0])}]), outputs


def _average(rng: random.Random) -> Case:
    kind = byte(rng)
    axes = rng.randint(1, 3)
    kernel = [rng.randint(1, 3) for _ in range(axes)]
    attributes: dict[str, Any] = {"kernel_shape": kernel}
    if rng.random() < 0.5:
        attributes["strides"] = [rng.randint(1, 3) for _ in range(axes)]
    if rng.random() < 0.5:
        attributes["pads"] = [rng.randint(0, k - 1) for k in kernel * 2]
    elif rng.random() < 0.2:
        attributes["auto_pad"] = "VALID"
    if rng.random() < 0.4:
        attributes["count_include_pad"] = 1
    data = kernel if rng.random() < 0.2 else [k + rng.randint(0, 4) for k in kernel]
    whole = [rng.randint(1, 2), rng.randint(1, 3), *data]
    if rng.random() < 0.3:
        attributes["channels_last"] = 1
        whole = [whole[0], *data, whole[1]]
    x, y = ((scale(rng, False), zero(rng, kind, 0, False)) for _ in range(2))
    return (quantized(rng, whole, kind), *x, *(y if rng.random() < 0.8 else y[:1])), _tuples(attributes), 1


def _tuples(attributes: Attributes) -> Attributes:
    return {name: tuple(it) if isinstance(it, list) else it for name, it in attributes.items()}


def _global(rng: random.Random) -> Case:
    kind = byte(rng)
    whole = [rng.randint(1, 2), rng.randint(1, 9), *shape(rng, 1, 3, (1, 2, 3, 5))]
    return (
        (quantized(rng, whole, kind), scale(rng), zero(rng, kind, 0), scale(rng), zero(rng, kind, 0)),
        rng.choice([{}, {"channels_last": rng.randint(0, 1)}]),
        1,
    )


def _softmax(rng: random.Random) -> Case:
    kind = byte(rng)
    whole = shape(rng, 1, 4)
    attributes = {"opset": rng.choice([11, 12, 13, 15])}
    if rng.random() < 0.7:
        attributes["axis"] = rng.randint(-len(whole), len(whole) - 1)
    y = np.array(rng.choice([1 / 256, 1 / 255, 0.01, 0.1, 1 / 128, 10 ** rng.uniform(-3, 0)]), np.float32)
    return (quantized(rng, whole, kind), scale(rng), zero(rng, kind), y, zero(rng, kind, 0)), attributes, 1


def _concat(rng: random.Random) -> Case:
    kind = byte(rng)
    whole = shape(rng, 1, 4)
    axis = rng.randrange(len(whole))
    y = (scale(rng), zero(rng, kind, 0))
    groups: list[Any] = []
    for _ in range(rng.randint(1, 4)):
        own = [*whole[:axis], rng.choice([0, 1, 2, 3, 5]) or 1, *whole[axis + 1 :]]
        alike = rng.random() < 0.2
        groups += [quantized(rng, own, kind), *(y if alike else (scale(rng), zero(rng, kind, 0)))]
    return (*y, *groups), {"axis": rng.choice([axis, axis - len(whole)])}, 1


def _where(rng: random.Random) -> Case:
    kind, (a, b) = byte(rng), broadcasting(rng)
    whole = list(np.broadcast_shapes(a, b))
    c = [1 if rng.random() < 0.25 else size for size in whole][rng.randint(0, len(whole)) :]
    condition = np.array([rng.random() < 0.5 for _ in range(int(np.prod(c, dtype=np.int64)))], bool).reshape(c)
    z = (scale(rng), zero(rng, kind, 0))
    x, y = (z if rng.random() < 0.3 else (scale(rng), zero(rng, kind, 0)) for _ in range(2))
    return (condition, quantized(rng, a, kind), *x, quantized(rng, b, kind), *y, *z), {}, 1


def _scaled(rng: random.Random, kinds: Sequence[Any]) -> tuple[list[int], Any, Any, Any, Attributes]:
    """A shape, the type of quantized elements, scales and zero points for it, one for all or along an axis."""
    whole, kind = shape(rng, 1, 4), rng.choice(kinds)
    axis = rng.randrange(len(whole))
    along = rng.random() < 0.5
    scales = np.array([scale(rng).item() for _ in range(whole[axis] if along else 1)], np.float32)
    info = np.iinfo(kind)
    zeros = np.array([rng.randint(info.min, info.max) for _ in scales], kind)
    if not along:
        scales, zeros = (it.reshape(rng.choice([(), (1,)])) for it in (scales, zeros))
    attributes = {"axis": rng.choice([axis, axis - len(whole)])} if along else {}
    return whole, kind, scales, zeros if rng.random() < 0.8 else None, attributes


WORDS = (np.uint8, np.int8, np.uint16, np.int16)
"""The types of quantized elements that NumPy has."""


def _quantize(rng: random.Random) -> Case:
    whole, _, scales, zeros, attributes = _scaled(rng, WORDS)
    return (floats(rng, whole) * np.float32(rng.choice([1, 40, 3000])), scales, zeros), attributes, 1


def _dequantize(rng: random.Random) -> Case:
    whole, kind, scales, zeros, attributes = _scaled(rng, (*WORDS, np.int32))
    return (quantized(rng, whole, kind), scales, None if kind == np.int32 else zeros), attributes, 1


def _gemm(rng: random.Random) -> Case:
    a, b = rng.choice([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    m, k, n = (rng.choice([1, 2, 3, 5, 8, 17]) for _ in range(3))
    attributes: dict[str, Any] = {}
    for name in ("transA", "transB"):
        if rng.random() < 0.5:
            attributes[name] = rng.randint(0, 1)
    if rng.random() < 0.5:
        attributes["alpha"] = rng.choice([0.5, 2.0, -1.5, 0.3])
    columns: list[int] = rng.choice([[], [1], [n]])
    c = rng.choice([None, [], [1], [n], [1, n], [m, 1], [m, n]])
    y = rng.random() < 0.7
    inputs = (
        *(quantized(rng, [k, m] if attributes.get("transA") else [m, k], a), scale(rng), zero(rng, a, 0)),
        quantized(rng, [n, k] if attributes.get("transB") else [k, n], b),
        np.full(columns, 1, np.float32) * scale(rng).reshape(()) * np.float32(rng.choice([1, 0.5])),
        quantized(rng, columns, b),
        None if c is None else quantized(rng, c, np.int8).astype(np.int32) * 50,
        *((scale(rng) * np.float32(100), zero(rng, a, 0)) if y else ()),
    )
    return tuple(np.asarray(it) if it is not None else None for it in inputs), attributes, 1


def _matrices(rng: random.Random) -> tuple[list[int], list[int]]:
    m, k, n = (rng.choice([0, 1, 2, 3, 5, 8, 17]) or 1 for _ in range(3))
    p, q = broadcasting(rng)
    return [*p, m, k], [*q, k, n] if rng.random() < 0.5 else [k, n]


def _integer_to_float(rng: random.Random) -> Case:
    a, b = _matrices(rng)
    one, two = rng.choice([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    n = b[-1]
    columns: list[int] = rng.choice([[], [1], [n] if len(b) == 2 else [1]])
    inputs = (
        *(quantized(rng, a, one), quantized(rng, b, two), scale(rng)),
        (np.array([10 ** rng.uniform(-3, 0) for _ in range(int(np.prod(columns)))], np.float32)).reshape(columns),
        *(zero(rng, one), quantized(rng, columns, two) if rng.random() < 0.6 else None),
        np.array([rng.uniform(-3, 3) for _ in range(n)], np.float32) if rng.random() < 0.5 else None,
    )
    return inputs, {}, 1


def _dynamic(rng: random.Random) -> Case:
    (_, b, _, b_scale, _, b_zero, bias), _, _ = _integer_to_float(rng)
    rows = shape(rng, 1, 1) if b.ndim == 2 else [*b.shape[:-2], rng.choice([1, 2, 5])]
    size = int(np.prod([*rows, b.shape[-2]]))
    values = rng.choice([lambda: rng.uniform(-3, 3), lambda: rng.uniform(0, 9), lambda: float(rng.randint(-4, 4))])
    a = np.array([values() for _ in range(size)], np.float32).reshape([*rows, b.shape[-2]])
    return (a * np.float32(rng.random() > 0.1), b, b_scale, b_zero, bias), {}, 1


def floats(rng: random.Random, shape: Sequence[int], kind: Any = np.float32) -> Any:
    """Numbers of ordinary size, rarely NaN or an infinity or -0.0 among them."""
    size = int(np.prod(shape, dtype=np.int64))
    values = [rng.uniform(-3, 3) for _ in range(size)]
    if size and rng.random() < 0.1:
        values[rng.randrange(size)] = rng.choice([float("nan"), float("inf"), -0.0])
    return np.array(values, kind).reshape(shape)


def _half(rng: random.Random) -> Any:
    return rng.choice([np.float32, np.float32, np.float16])


def _gelu(rng: random.Random) -> Case:
    return (floats(rng, shape(rng), _half(rng)),), {}, 1


def _quick(rng: random.Random) -> Case:
    return (floats(rng, shape(rng), _half(rng)),), rng.choice([{}, {"alpha": rng.choice([1.0, 0.5, -1.0])}]), 1


def _biased(rng: random.Random) -> Case:
    kind, whole = _half(rng), shape(rng, 1)
    return (floats(rng, whole, kind), floats(rng, whole[-1:], kind)), {}, 1


def _fast(rng: random.Random) -> Case:
    inputs, _, _ = _biased(rng)
    return inputs[: rng.randint(1, 2)], {}, 1


def _skip(rng: random.Random, simplified: bool = False) -> Case:
    kind, whole = _half(rng), shape(rng, 2, 3, (1, 2, 3, 5, 8))
    skips = [whole] if len(whole) == 2 else [whole, [1, *whole[1:]], whole[1:]]
    h = whole[-1:]
    inputs = [floats(rng, whole, kind), floats(rng, rng.choice(skips), kind), floats(rng, h, kind)]
    inputs += [floats(rng, h, kind) if rng.random() < 0.6 else None for _ in range(1 if simplified else 2)]
    return tuple(inputs), rng.choice([{}, {"epsilon": 0.001}]), 1


def _root(rng: random.Random) -> Case:
    kind, whole = _half(rng), shape(rng, 1, 4, (1, 2, 3, 5, 8))
    axis = rng.randrange(len(whole))
    attributes = rng.choice([{}, {"epsilon": 0.001}, {"stash_type": 1, "epsilon": 0.000001}])
    if axis < len(whole) - 1 or rng.random() < 0.5:
        attributes = {**attributes, "axis": rng.choice([axis, axis - len(whole)])}
    return (floats(rng, whole, kind), floats(rng, whole[axis:], kind)), attributes, rng.randint(1, 2)


def _embed(rng: random.Random) -> Case:
    n, steps, h = rng.randint(1, 3), rng.randint(1, 5), rng.choice([1, 2, 4, 7])
    rows = [rng.randint(1, 6), rng.randint(steps, 8), rng.randint(1, 3)]
    words, segments = (
        np.array([[rng.randrange(k) for _ in range(steps)] for _ in range(n)], np.int32) for k in rows[::2]
    )
    two = rng.random() < 0.6
    line = rng.choice([1, n])
    return (
        (
            words,
            segments if two else None,
            floats(rng, [rows[0], h]),
            floats(rng, [rows[1], h]),
            floats(rng, [rows[2], h]) if two else None,
            *(floats(rng, [h]) for _ in range(2)),
            np.array([[rng.randint(0, 1) for _ in range(steps)] for _ in range(n)], np.int32)
            if rng.random() < 0.6
            else None,
            np.array([[rng.randrange(rows[1]) for _ in range(steps)] for _ in range(line)], np.int32)
            if rng.random() < 0.4
            else None,
        ),
        rng.choice([{}, {"epsilon": 0.001}]),
        2,
    )


def _attention(rng: random.Random) -> Case:
    n, steps, heads, size, e = (rng.randint(1, k) for k in (2, 5, 3, 4, 6))
    values = rng.randint(1, 4)
    attributes: dict[str, Any] = {"num_heads": heads}
    widths = [heads * size] * 3
    if rng.random() < 0.3:
        widths[2] = heads * values
        attributes["qkv_hidden_sizes"] = tuple(widths)
    if rng.random() < 0.4:
        attributes["unidirectional"] = 1
    if rng.random() < 0.3:
        attributes["scale"] = rng.choice([0.5, 1.0, 0.2])
    if rng.random() < 0.3:
        attributes["mask_filter_value"] = rng.choice([-5.0, -1e30])
    mask = rng.choice([None, [n], [n, steps], [n, steps, steps]])
    pairs = [rng.choice([1, n]), rng.choice([1, heads]), steps, steps]
    finite = lambda shape: np.nan_to_num(floats(rng, shape), posinf=1)  # noqa: E731
    lengths = mask is not None and len(mask) == 1
    return (
        (
            finite([n, steps, e]),
            finite([e, sum(widths)]),
            finite([sum(widths)]),
            None
            if mask is None
            else np.array(
                [rng.randint(0, steps if lengths else 1) for _ in range(int(np.prod(mask)))], np.int32
            ).reshape(mask),
            None,
            finite(pairs) if rng.random() < 0.3 else None,
        ),
        attributes,
        1,
    )


def _heads(rng: random.Random) -> Case:
    n, steps, heads, size = (rng.randint(1, k) for k in (2, 5, 3, 4))
    causal = rng.random() < 0.4
    keys, values = steps if causal else rng.randint(1, 6), rng.choice([size, rng.randint(1, 4)])
    attributes: dict[str, Any] = {"num_heads": heads}
    if causal:
        attributes["unidirectional"] = 1
    if rng.random() < 0.3:
        attributes["scale"] = rng.choice([0.5, 1.0])
    finite = lambda shape: np.nan_to_num(floats(rng, shape), posinf=1)  # noqa: E731
    shown = [rng.randint(0, 1) for _ in range(n * keys)]
    return (
        (
            finite([n, steps, heads * size]),
            finite([n, keys, heads * size]),
            finite([n, keys, heads * values]),
            finite([heads * (2 * size + values)]) if rng.random() < 0.5 else None,
            np.array(shown, np.int32).reshape(n, keys) if rng.random() < 0.5 else None,
            finite([rng.choice([1, n]), rng.choice([1, heads]), steps, keys]) if rng.random() < 0.3 else None,
        ),
        attributes,
        1,
    )


def _grouped(rng: random.Random) -> Case:
    """Prompts of several members, and tokens behind a past, for which there is room in its tensors or in new ones."""
    groups, size, steps = rng.randint(1, 2), rng.choice([8, 16, 16, 32]), rng.choice([1, 1, 2, 3, 5])
    heads = groups * rng.randint(1, 3)
    n, total = rng.randint(1, 3), steps
    if rng.random() < 0.7:
        total += rng.randint(1, 6)
        n = n if steps == 1 else 1
    lengths = [total if b == 0 else rng.randint(steps, total) for b in range(n)]
    room = rng.choice([total - steps, total - steps, total, total + 3])
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": groups}
    for name, value in {
        "scale": rng.choice([0.5, 0.0]),
        "softcap": 2.0,
        "local_window_size": rng.randint(1, 4),
    }.items():
        if rng.random() < 0.25:
            attributes[name] = value
    finite = lambda shape: np.nan_to_num(floats(rng, shape), posinf=1)  # noqa: E731
    if rng.random() < 0.3:
        query = [finite([n, steps, (heads + 2 * groups) * size]), None, None]
    else:
        query = [finite([n, steps, heads * size]), *(finite([n, steps, groups * size]) for _ in range(2))]
    past = [finite([n, groups, room, size]) for _ in range(2)] if room else [None, None]
    caches: list[Any] = [None, None]
    if rng.random() < 0.5 and size % 16 == 0:
        attributes |= {"do_rotary": 1, **rng.choice([{}, {"rotary_interleaved": 1}])}
        caches = [finite([total + rng.randint(0, 3), rng.choice([8, size // 2])])]
        caches += [finite(caches[0].shape)]
    sink = rng.choice([None, None, None, finite([heads])])
    if sink is None and rng.random() < 0.2:
        attributes["smooth_softmax"] = 1
    bias = finite([rng.choice([1, n]), rng.choice([1, heads]), steps, total]) if rng.random() < 0.25 else None
    return (
        (
            *query,
            *past,
            np.array([it - 1 for it in lengths], np.int32),
            np.array(total, np.int32).reshape(rng.choice([(), (1,)])),
            *caches,
            None,
            bias,
            sink,
        ),
        attributes,
        3,
    )


def _fused_matmul(rng: random.Random) -> Case:
    a, b = _matrices(rng)
    attributes = {name: rng.randint(0, 1) for name in ("transA", "transB") if rng.random() < 0.6}
    if rng.random() < 0.5:
        attributes["alpha"] = rng.choice([0.5, -2.0, 0.3])
    if attributes.get("transA"):
        a[-2:] = a[:-3:-1]
    if attributes.get("transB"):
        b[-2:] = b[:-3:-1]
    return (floats(rng, a), floats(rng, b)), attributes, 1


def _triangle(rng: random.Random) -> Case:
    x = floats(rng, shape(rng, 2, 4), rng.choice([np.float32, np.float64]))
    if rng.random() < 0.3:
        x = np.nan_to_num(x, posinf=9).astype(np.int64)
    k = np.array(rng.randint(-4, 4), np.int64).reshape(rng.choice([(), (1,)]))
    return (x, *([k] if rng.random() < 0.7 else [])), rng.choice([{}, {"upper": rng.randint(0, 1)}]), 1


def _fused_conv(rng: random.Random) -> Case:
    axes, group = rng.randint(1, 3), rng.choice([1, 1, 2])
    n, c, m = rng.randint(1, 2), group * rng.randint(1, 2), group * rng.randint(1, 3)
    kernel = [rng.randint(1, 3) for _ in range(axes)]
    attributes: dict[str, Any] = {"group": group}
    for name in ("strides", "dilations"):
        if rng.random() < 0.4:
            attributes[name] = [rng.randint(1, 2) for _ in range(axes)]
    if rng.random() < 0.4:
        attributes["pads"] = [rng.randint(0, 2) for _ in range(2 * axes)]
    activation = rng.choice([None, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"])
    if activation is not None:
        attributes["activation"] = activation
    parameters = {"LeakyRelu": [rng.choice([0.1, -0.5])], "Clip": [-0.5, 0.75], "HardSigmoid": [0.3, 0.4]}
    if activation in parameters:
        attributes["activation_params"] = parameters[activation]
    strides, dilations = (attributes.get(name, [1] * axes) for name in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * (2 * axes))
    extent = [(k - 1) * t + 1 for k, t in zip(kernel, dilations, strict=True)]
    data = [e + rng.randint(0, 4) for e in extent]
    padded = [d + pads[j] + pads[axes + j] for j, d in enumerate(data)]
    whole = [(d - e) // s + 1 for d, e, s in zip(padded, extent, strides, strict=True)]
    plain = lambda shape: np.asarray(np.nan_to_num(floats(rng, shape), posinf=1))  # noqa: E731
    return (
        (
            plain([n, c, *data]),
            plain([m, c // group, *kernel]),
            plain([m]) if rng.random() < 0.6 else None,
            *([plain([n, m, *whole])] if rng.random() < 0.4 else []),
        ),
        _tuples(attributes),
        1,
    )


def _fused_gemm(rng: random.Random) -> Case:
    m, k, n = (rng.choice([1, 2, 3, 5, 8]) for _ in range(3))
    attributes: dict[str, Any] = {"activation": rng.choice(["Relu", "Tanh", "LeakyRelu"])}
    if attributes["activation"] == "LeakyRelu":
        attributes["activation_alpha"] = rng.choice([0.1, 0.5])
    attributes |= {name: rng.randint(0, 1) for name in ("transA", "transB") if rng.random() < 0.6}
    attributes |= {name: rng.choice([0.5, 1.0, 2.0]) for name in ("alpha", "beta") if rng.random() < 0.5}
    c = rng.choice([None, [], [1], [n], [1, n], [m, 1], [m, n]])
    plain = lambda whole: np.asarray(np.nan_to_num(floats(rng, whole), posinf=1))  # noqa: E731
    a, b = [k, m] if attributes.get("transA") else [m, k], [n, k] if attributes.get("transB") else [k, n]
    return (plain(a), plain(b), None if c is None else plain(c)), attributes, 1


def _bits(rng: random.Random) -> Case:
    bits, block, n = rng.choice([4, 8]), rng.choice([16, 32, 64]), rng.randint(1, 9)
    k = rng.choice([block, block * 2, block * 2 + 16, 48])
    blocks = -(-k // block)
    width = -(-blocks * bits // 8)
    inputs = (
        np.nan_to_num(floats(rng, [*shape(rng, 1, 2, (1, 2, 3)), k]), posinf=1),
        quantized(rng, [n, blocks, block * bits // 8], np.uint8),
        np.array([10 ** rng.uniform(-3, 0) for _ in range(n * blocks)], np.float32).reshape(
            rng.choice([(n, blocks), (n * blocks,)])
        ),
        quantized(rng, rng.choice([[n, width], [n * width]]), np.uint8) if rng.random() < 0.6 else None,
        None,
        np.nan_to_num(floats(rng, [n]), posinf=1) if rng.random() < 0.4 else None,
    )
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
    return inputs, attributes | rng.choice([{}, {"accuracy_level": 1}]), 1


def _rotary(rng: random.Random) -> Case:
    n, steps, heads, pairs = (rng.randint(1, k) for k in (2, 4, 3, 4))
    rows, size = rng.randint(steps, 9), 2 * pairs
    attributes: dict[str, Any] = {"interleaved": rng.randint(0, 1)}
    if rng.random() < 0.4:
        attributes |= {"num_heads": heads, "rotary_embedding_dim": 2 * pairs}
        size += 2 * rng.randint(0, 2)
    one = rng.random() < 0.5
    positions = [[rng.randrange(rows) for _ in range(steps)] for _ in range(n)]
    return (
        (
            floats(rng, [n, steps, heads * size]),
            np.array([rng.randint(0, rows - steps)] if one else positions, np.int64),
            floats(rng, [rows, pairs]),
            floats(rng, [rows, pairs]),
        ),
        attributes,
        1,
    )


CASES: Mapping[str, Callable[[random.Random], Case]] = {
    "QLinearAdd": _binary,
    "QLinearMul": _binary,
    "QLinearLeakyRelu": _leaky,
    "QLinearSigmoid": _unary,
    "QLinearAveragePool": _average,
    "QLinearGlobalAveragePool": _global,
    "QLinearSoftmax": _softmax,
    "QLinearConcat": _concat,
    "QLinearWhere": _where,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "QGemm": _gemm,
    "MatMulIntegerToFloat": _integer_to_float,
    "DynamicQuantizeMatMul": _dynamic,
    "Gelu": _gelu,
    "BiasGelu": _biased,
    "FastGelu": _fast,
    "QuickGelu": _quick,
    "SkipLayerNormalization": _skip,
    "SkipSimplifiedLayerNormalization": partial(_skip, simplified=True),
    "SimplifiedLayerNormalization": _root,
    "EmbedLayerNormalization": _embed,
    "Attention": _attention,
    "MultiHeadAttention": _heads,
    "GroupQueryAttention": _grouped,
    "Trilu": _triangle,
    "FusedMatMul": _fused_matmul,
    "FusedGemm": _fused_gemm,
    "FusedConv": _fused_conv,
    "MatMulNBits": _bits,
    "RotaryEmbedding": _rotary,
}


def name_of(operator: str) -> str:
    """The name of an operator in the specification."""
    return f"ai.onnx::{operator}" if operator in GUESTS else f"{DOMAIN}::{operator}"


def cases(operator: str, count: int) -> list[Case]:
    """Random applications of an operator, the same ones each time."""
    rng = random.Random(f"com.microsoft {operator}")
    return [CASES[operator](rng) for _ in range(count)]


# ---- onnxruntime --------------------------------------------------------------------------------


def model(operator: str, case: Case) -> tuple[bytes, dict[str, Any]]:
    """A model of the one node, and its inputs by name."""
    inputs, attributes, outputs = case
    names = ["" if x is None else f"x{k}" for k, x in enumerate(inputs)]
    fed = {name: x for name, x in zip(names, inputs, strict=True) if name}
    domain = "" if operator in GUESTS else DOMAIN
    node = helper.make_node(operator, names, [f"y{k}" for k in range(outputs)], domain=domain, **attributes)
    declared = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in fed.items()
    ]
    graph = helper.make_graph([node], "g", declared, [onnx.ValueInfoProto(name=f"y{k}") for k in range(outputs)])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString(), fed


def given(every: Sequence[tuple[str, Case]]) -> list[dict[str, Any] | str]:
    """What onnxruntime gives for each case of an operator: the outputs by name, or why there are none."""
    return outcomes_of([model(*one) for one in every])


def outcomes_of(models: Sequence[tuple[bytes, dict[str, Any]]]) -> list[dict[str, Any] | str]:
    """What onnxruntime gives for each model and its inputs: the outputs by name, or why there are none."""
    results: list[dict[str, Any] | str] = []
    while len(results) < len(models):
        with tempfile.TemporaryDirectory() as folder:
            sent, back = Path(folder, "cases"), Path(folder, "outcomes")
            sent.write_bytes(pickle.dumps(models[len(results) :]))
            subprocess.run([sys.executable, "-c", WORKER, sent, back], capture_output=True, check=False)
            done = list(_outcomes(back))[1:]
        results += done
        if len(results) < len(models):
            results.append("crash")
    return results


def _outcomes(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return


def verdict(operator: str, case: Case, outcome: Mapping[str, Any] | str) -> str | list[Judged]:
    """How onnxruntime's outputs stand to the text; a word where one of the two refuses."""
    inputs, attributes, outputs = case
    meant = applied(Application(name_of(operator), 1, inputs, attributes, (True,) * outputs))
    if isinstance(outcome, str):
        return "both refuse" if isinstance(meant, Undefined) and meant.stuck else f"onnxruntime: {outcome}"
    if isinstance(meant, Undefined):
        return f"text: {meant.why}"
    return [it for it in judge(meant, tuple(outcome[f"y{k}"] for k in range(outputs))) if it is not None]
