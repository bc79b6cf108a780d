"""Applications of the operators that draw random numbers, drawn themselves."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper
from sonnx.checker.runtimes.differential.outcomes import Case

VERSIONS = [
    *(
        (name, version)
        for name in ("RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike")
        for version in (1, 22)
    ),
    *((name, version) for name in ("Multinomial",) for version in (7, 22)),
    *((name, version) for name in ("Bernoulli",) for version in (15, 22)),
    *(("Dropout", version) for version in (12, 13, 22)),
]
FLOATS = {T.FLOAT: np.float32, T.DOUBLE: np.float64, T.FLOAT16: np.float16}
INTEGERS = {T.INT64: np.int64, T.INT8: np.int8, T.UINT16: np.uint16, T.BOOL: np.bool_}
SHAPES = ([], [1], [7], [0], [2, 3], [3, 0, 2], [1, 2, 1, 3], [2, 2, 1, 1, 2])


def case(name: str, version: int, number: int) -> Case:
    """An application of the operator at that version; the same one for the same number."""
    draw = random.Random(f"{name} {version} {number}")
    rng = np.random.default_rng(draw.randrange(1 << 30))
    shape = draw.choice(SHAPES)
    kind = draw.choice(list(FLOATS))
    attributes: dict[str, Any] = {}
    inputs: list[tuple[str, int, Any]] = []
    if draw.random() < 0.5:
        attributes["seed"] = draw.randrange(100) if name == "Dropout" else float(draw.randrange(100))
    outputs, types = ["y"], [kind]
    if name.startswith("Random"):
        if name.endswith("Like"):
            own = draw.choice([kind, *INTEGERS])
            data = rng.integers(0, 2, shape).astype({**FLOATS, **INTEGERS}[own])
            inputs.append(("x", own, data))
        else:
            attributes["shape"] = shape
        if own_type(name, inputs) != kind or draw.random() < 0.5:
            attributes["dtype"] = kind
        low, high = sorted(draw.choice([-1e30, -3.5, -1.0, -0.0, 0.1, 0.3, 2.0, 1e5, 7e30]) for _ in range(2))
        names = ("low", "high") if "Uniform" in name else ("mean", "scale")
        given = (low, high) if "Uniform" in name else (low, abs(high) * draw.choice([0, 1, 1, 1]))
        if draw.random() < 0.8:
            attributes |= dict(zip(names, given, strict=True))
    elif name == "Multinomial":
        rows, classes = draw.choice([1, 2, 4]), draw.choice([1, 2, 3, 9])
        logits = rng.normal(0, 3, (rows, classes)).astype(FLOATS[kind])
        holes = rng.random((rows, classes)) < 0.3
        holes[np.arange(rows), rng.integers(0, classes, rows)] = False
        if draw.random() < 0.7:
            logits[holes] = -np.inf
        inputs.append(("x", kind, logits))
        attributes["sample_size"] = draw.choice([1, 2, 5, 40])
        types = [draw.choice([T.INT32, T.INT64])]
        if types != [T.INT32] or draw.random() < 0.5:
            attributes["dtype"] = types[0]
    elif name == "Bernoulli":
        p = rng.choice([0, 1, 0.5, 0.1, 0.9, 1e-7], shape).astype(FLOATS[kind])
        inputs.append(("x", kind, p))
        types = [draw.choice([kind, *FLOATS, *INTEGERS])]
        if types != [kind] or draw.random() < 0.5:
            attributes["dtype"] = types[0]
    else:
        values = rng.choice([0.0, -0.0, 1.5, -2.25, np.nan, np.inf, 3e4], shape).astype(FLOATS[kind])
        inputs.append(("x", kind, values))
        ratio = draw.choice([None, 0, 0.25, 0.5, 0.1, 0.999])
        precision = draw.choice(list(FLOATS))
        inputs.append(("", 0, None) if ratio is None else ("ratio", precision, np.array(ratio, FLOATS[precision])))
        inputs.append(("training", T.BOOL, np.array(draw.random() < 0.8)))
        if draw.random() < 0.7:
            outputs, types = ["y", "mask"], [kind, T.BOOL]
    rank = 2 if name == "Multinomial" else len(shape)
    node = helper.make_node(name, [key for key, _, _ in inputs], outputs)
    kinds = {"shape": onnx.AttributeProto.INTS}
    node.attribute.extend(helper.make_attribute(key, it, attr_type=kinds.get(key)) for key, it in attributes.items())
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(key, own, list(data.shape)) for key, own, data in inputs if key],
        [helper.make_tensor_value_info(key, own, [None] * rank) for key, own in zip(outputs, types, strict=True)],
    )
    opset = {1: 7, 7: 21, 12: 12, 13: 21, 15: 21, 22: 22}[version]
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(model)
    feeds = {key: data for key, _, data in inputs if key}
    return Case(f"{name}-{version}/{number}", model.SerializeToString(), feeds, {"operator": name})


def own_type(name: str, inputs: list[tuple[str, int, Any]]) -> int:
    """The element type of the result where the attribute dtype is absent."""
    return inputs[0][1] if name.endswith("Like") else T.FLOAT
