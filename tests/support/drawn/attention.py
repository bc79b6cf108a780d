"""Attention and what large language models have around it: rotations, caches, gates, states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from drawn.drawing import Draw, Drawn, Known, Rng, integers, kind, maybe, numbers, shape
from sonnx.checker.runtimes.differential.outcomes import Class, Result

PRECISIONS = (1, 10, 11)
"""The numbers of float, float16 and double."""


def _attention(rng: Rng, name: str, version: int) -> Drawn:
    element = kind(rng, name, version, "T1")
    n, g, s, e, f = (rng.randint(1, most) for most in (2, 2, 4, 4, 4))
    h, past = g * rng.choice([1, 1, 2]), rng.randint(1, 3) if rng.random() < 0.35 else 0
    keys = rng.choice([s, rng.randint(1, 5)])
    whole, packed = past + keys, rng.random() < 0.4
    attributes: dict[str, Any] = {"q_num_heads": h, "kv_num_heads": g} if packed else {}
    attributes |= {"is_causal": 1} if rng.random() < 0.3 else {}
    for key, values in (
        ("scale", [0.5, 1.0, 0.2]), ("softcap", [1.0, 5.0]), ("qk_matmul_output_mode", [0, 1, 2, 3]),
        ("softmax_precision", PRECISIONS),
    ):  # fmt: skip
        if rng.random() < 0.25:
            attributes[key] = rng.choice(values)
    if version == 25 and rng.random() < 0.4:
        attributes |= maybe(rng, left_window_size=rng.randint(-1, 3), right_window_size=rng.randint(-1, 3))
    mask = None
    if rng.random() < 0.6:
        form = [rng.choice([1, n]), rng.choice([1, h]), s, whole][rng.choice([0, 1, 2]) :]
        mask = numbers(rng, form, rng.choice(["bool", element]), 0)
    lengths = None
    if version > 23 and not past and rng.random() < 0.3:
        lengths = integers([rng.randint(0, whole) for _ in range(n)])
    queries, given, values = [n, h, s, e], [n, g, keys, e], [n, g, keys, f]
    if packed:
        queries, given, values = ([it[0], it[2], it[1] * it[3]] for it in (queries, given, values))
    tensors = [numbers(rng, it, element, 0) for it in (queries, given, values)]
    before = [numbers(rng, [n, g, past, it], element, 0) if past else None for it in (e, f)]
    outputs = 1 if lengths is not None or rng.random() < 0.3 else 4 if "qk_matmul_output_mode" in attributes else 3
    return Drawn([*tensors, mask, *before, lengths], attributes, outputs)


def _rotary(rng: Rng, name: str, version: int) -> Drawn:
    element = kind(rng, name, version)
    n, steps, heads, size = rng.randint(1, 2), rng.randint(1, 4), rng.randint(1, 3), 2 * rng.randint(1, 4)
    part = 2 * rng.randint(1, size // 2)
    attributes = maybe(rng, interleaved=rng.randint(0, 1), rotary_embedding_dim=rng.choice([0, part]))
    pairs = (attributes.get("rotary_embedding_dim") or size) // 2
    packed, rows = rng.random() < 0.5, rng.randint(1, 6)
    if packed:
        attributes["num_heads"] = heads
    x = numbers(rng, [n, steps, heads * size] if packed else [n, heads, steps, size], element, 0.05)
    named = rng.random() < 0.6
    caches = [numbers(rng, [rows, pairs] if named else [n, steps, pairs], element, 0) for _ in range(2)]
    positions = integers([[rng.randrange(rows) for _ in range(steps)] for _ in range(n)]) if named else None
    return Drawn([x, *caches, positions], attributes)


def _swish(rng: Rng, name: str, version: int) -> Drawn:
    element, whole = kind(rng, name, version), shape(rng)
    inputs = [numbers(rng, whole, element) for _ in range(1 if name == "Swish" else 2)]
    return Drawn(inputs, maybe(rng, alpha=rng.choice([1.0, 0.5, -1.0, 1.702, 0.0])))


def _scatter(rng: Rng, name: str, version: int) -> Drawn:
    element, whole = kind(rng, name, version), shape(rng, 2, 4, (1, 2, 3, 5))
    axis = rng.randint(1, len(whole) - 1)
    attributes: dict[str, Any] = maybe(rng, mode=rng.choice(["linear", "circular"]))
    if axis != len(whole) - 2 or rng.random() < 0.5:
        attributes["axis"] = axis - rng.choice([0, len(whole)])
    count = rng.randint(1, whole[axis])
    last = whole[axis] - (1 if attributes.get("mode") == "circular" else count)
    places = integers([rng.randint(0, last) for _ in range(whole[0])]) if rng.random() < 0.7 else None
    update = [*whole[:axis], count, *whole[axis + 1 :]]
    return Drawn([numbers(rng, whole, element), numbers(rng, update, element), places], attributes)


def _linear(rng: Rng, name: str, version: int) -> Drawn:
    element, rule = kind(rng, name, version), rng.choice(["linear", "gated", "delta", "gated_delta"])
    n, steps, g, size, width = (rng.randint(1, most) for most in (2, 4, 2, 3, 3))
    h = g * rng.choice([1, 1, 2])
    attributes: dict[str, Any] = {"q_num_heads": h, "kv_num_heads": g, "update_rule": rule}
    attributes |= maybe(rng, scale=rng.choice([0.0, 0.5, 1.0]), chunk_size=rng.choice([1, 2, 64]))
    decay = numbers(rng, [n, steps, rng.choice([g, g * size])], element, 0) if "gated" in rule else None
    return Drawn(
        [
            *(numbers(rng, [n, steps, k], element, 0) for k in (h * size, g * size, g * width)),
            numbers(rng, [n, g, size, width], kind(rng, name, version, "S"), 0) if rng.random() < 0.5 else None,
            None if decay is None else (-np.abs(decay)).astype(decay.dtype),
            numbers(rng, [n, steps, rng.choice([1, g])], element, 0) if "delta" in rule else None,
        ],
        attributes,
        2,
    )


def _causal(rng: Rng, name: str, version: int) -> Drawn:
    element = kind(rng, name, version)
    n, c, length, k = (rng.randint(1, most) for most in (2, 4, 6, 4))
    return Drawn(
        [
            numbers(rng, [n, c, length], element, 0.03),
            numbers(rng, [c, 1, k], element, 0.03),
            numbers(rng, [c], element, 0) if rng.random() < 0.6 else None,
            numbers(rng, [n, c, k - 1], element, 0) if rng.random() < 0.6 else None,
        ],
        maybe(rng, activation=rng.choice(["none", "silu", "swish"])),
        2,
    )


DRAWS: Mapping[tuple[str, int], Draw] = {
    ("Attention", 23): _attention,
    ("Attention", 24): _attention,
    ("Attention", 25): _attention,
    ("RotaryEmbedding", 23): _rotary,
    ("Swish", 24): _swish,
    ("SwiGLU", 28): _swish,
    ("TensorScatter", 24): _scatter,
    ("LinearAttention", 27): _linear,
    ("CausalConvWithState", 27): _causal,
}


def _has_past(it: Drawn) -> bool:
    return it.inputs[4] is not None


def _shows(it: Drawn, mode: int) -> bool:
    """The scores are an output, in a mode, bounded or masked."""
    bent = it.attributes.get("softcap") if mode == 0 else it.inputs[3] is not None or it.attributes.get("is_causal")
    return it.outputs == 4 and it.attributes.get("qk_matmul_output_mode", 0) == mode and bool(bent)


def _is_causal(it: Drawn, result: Result) -> bool:
    return result.outcome is Class.MISMATCH and bool(it.attributes.get("is_causal")) and _has_past(it)


def _is_of_doubles(it: Drawn, result: Result) -> bool:
    return result.outcome is Class.MISMATCH and it.inputs[0].dtype == np.float64 and "scale" not in it.attributes


def _has_sigmoid(it: Drawn, result: Result) -> bool:
    return result.outcome is Class.MISMATCH and it.attributes.get("activation", "none") != "none"


KNOWN = (
    Known("onnxruntime", "Attention", "Attention-23/past-alone", lambda it, result: _has_past(it) and it.outputs == 1),
    Known("onnxruntime", "Attention", "Attention-23/bias-of-a-mask", lambda it, result: _shows(it, 2)),
    Known("onnxruntime", "Attention", "Attention-23/causal-with-past", _is_causal),
    Known("reference", "Attention", "Attention-23/scores-before-softcap", lambda it, result: _shows(it, 0)),
    Known("reference", "Attention", "Attention-23/root-of-the-scale", _is_of_doubles),
    Known("onnxruntime", "CausalConvWithState", "CausalConvWithState-27/sigmoid", _has_sigmoid),
    Known(
        "onnxruntime",
        "RotaryEmbedding",
        "RotaryEmbedding-23/rows-used-again",
        lambda it, result: "cos_cache" in result.why,
    ),
)
