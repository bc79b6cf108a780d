"""What a condition keeps, parts of a tensor, values that occur once, and boxes that are kept."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from drawn.drawing import Draw, Drawn, Known, Rng, integers, kind, maybe, numbers, shape
from sonnx.checker.runtimes.differential.outcomes import Class, Result


def _compress(rng: Rng, name: str, version: int) -> Drawn:
    whole = shape(rng, 1)
    least = 0 if version == 9 else -len(whole)
    attributes = maybe(rng, axis=rng.randint(least, len(whole) - 1))
    size = whole[attributes["axis"]] if attributes else int(np.prod(whole))
    condition = numbers(rng, [rng.choice([size, rng.randint(0, size)])], "bool")
    return Drawn([numbers(rng, whole, kind(rng, name, version)), condition], attributes)


def _sizes(rng: Rng, size: int) -> list[int]:
    cuts = sorted(rng.randint(0, size) for _ in range(rng.randint(0, 3)))
    return [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]


def _split(rng: Rng, name: str, version: int) -> Drawn:
    element, whole, how = kind(rng, name, version), shape(rng, 1, 4, (1, 2, 3, 4, 6)), rng.randint(0, 2)
    axis = rng.randrange(len(whole))
    parts = _sizes(rng, whole[axis])
    if how == 0:
        parts = [1] * rng.choice([k for k in range(1, 7) if whole[axis] % k == 0])
    x = numbers(rng, whole, element)
    named = np.array(parts).astype(x.dtype) if how == 1 else None
    return Drawn([x, named], {"axis": axis} | ({"split": parts} if how == 2 else {}), len(parts))


def _to_sequence(rng: Rng, name: str, version: int) -> Drawn:
    whole, how = shape(rng, 1), rng.randint(0, 2)
    axis = rng.randint(-len(whole), len(whole) - 1)
    x, attributes = numbers(rng, whole, kind(rng, name, version)), {"axis": axis} if axis else maybe(rng, axis=0)
    if how == 0:
        return Drawn([x], attributes | maybe(rng, keepdims=rng.randint(0, 1)))
    split = rng.randint(1, 3) if how == 1 else _sizes(rng, whole[axis])
    return Drawn([x, integers(split, kind(rng, name, version, "I"))], attributes)


def _unique(rng: Rng, name: str, version: int) -> Drawn:
    whole = shape(rng, 1, 3)
    element = kind(rng, name, version, "T", ["complex64", "complex128"])
    count = int(np.prod(whole))
    few = numbers(rng, [3], element, 0)
    x = few[[rng.randrange(3) for _ in range(count)]].reshape(whole)
    if few.dtype.kind == "f" and rng.random() < 0.3:
        x = np.where(x > 0, x, rng.choice([0.0, -0.0])).astype(x.dtype) * np.sign(few[0])
    return Drawn([x], maybe(rng, sorted=rng.randint(0, 1), axis=rng.randint(-len(whole), len(whole) - 1)), 4)


def _suppression(rng: Rng, name: str, version: int) -> Drawn:
    n, k, c = rng.randint(1, 2), rng.randint(0, 6), rng.randint(1, 3)
    center = rng.randint(0, 1)
    low = np.array([rng.choice([0, 1, 2, rng.uniform(0, 3)]) for _ in range(n * k * 2)]).reshape(n, k, 2)
    size = np.array([rng.choice([0.5, 1, 2, rng.uniform(0, 2)]) for _ in range(n * k * 2)]).reshape(n, k, 2)
    boxes = np.concatenate([low, size if center else low + size], 2).astype(np.float32)
    if not center and rng.random() < 0.3:
        boxes = boxes[..., [2, 3, 0, 1]]
    scores = np.array([rng.choice([0.5, rng.uniform(-1, 1), rng.uniform(0, 1)]) for _ in range(n * c * k)], np.float32)
    most = (
        integers([rng.choice([0, 1, 2, 2, 3, 9])]).reshape(rng.choice([[], [1], [1]])) if rng.random() < 0.9 else None
    )
    overlap, least = rng.choice([0, 0.25, 0.5, 1, rng.uniform(0, 1)]), rng.choice([0, 0.5, rng.uniform(-1, 1)])
    few = rng.choice([[], [1], [1]])
    limits = [np.full(few, it, np.float32) if rng.random() < 0.8 else None for it in (overlap, least)]
    attributes = {"center_point_box": 1} if center else maybe(rng, center_point_box=0)
    return Drawn([boxes, scores.reshape(n, c, k), most, *limits], attributes)


DRAWS: Mapping[tuple[str, int], Draw] = {
    ("Compress", 9): _compress,
    ("Compress", 11): _compress,
    ("Compress", 28): _compress,
    ("Split", 1): _split,
    ("SplitToSequence", 24): _to_sequence,
    ("Unique", 28): _unique,
    ("NonMaxSuppression", 10): _suppression,
    ("NonMaxSuppression", 11): _suppression,
}


def _meets_threshold(it: Drawn, result: Result) -> bool:
    return result.outcome is Class.MISMATCH and it.inputs[4] is not None and bool((it.inputs[1] == it.inputs[4]).any())


def _is_unsorted_alone(it: Drawn, result: Result) -> bool:
    return it.attributes.get("sorted") == 0 and "axis" not in it.attributes


def _lacks_inputs(it: Drawn) -> bool:
    return any(x is None for x in it.inputs)


KNOWN = (
    Known("onnxruntime", "NonMaxSuppression", "NonMaxSuppression-11/score-at-threshold", _meets_threshold),
    Known("reference", "NonMaxSuppression", "NonMaxSuppression-11/score-at-threshold", _meets_threshold),
    Known(
        "reference",
        "NonMaxSuppression",
        "NonMaxSuppression-11/scalar",
        lambda it, result: "0-dimensional" in result.why,
    ),
    Known("reference", "NonMaxSuppression", "NonMaxSuppression-11/no-thresholds", lambda it, result: _lacks_inputs(it)),
    Known("reference", "Split", "Split-1/implementation"),
    Known("onnxruntime", "Split", "Split-1/implementation", lambda it, result: it.inputs[0].dtype == np.float16),
    Known("onnxruntime", "Unique", "Unique-11/slices-without-elements", lambda it, result: it.inputs[0].size == 0),
    Known("reference", "Unique", "Unique-11/first-occurrence-of-elements", _is_unsorted_alone),
    Known("reference", "Unique", "Unique-11/order-of-slices", lambda it, result: "axis" in it.attributes),
)
