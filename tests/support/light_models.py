"""The light models of the onnx wheel with weights that mean something.

As shipped, each weight is a constant and the nets give the same whatever the input. Here each ConstantOfShape becomes a
stored tensor drawn by seed, scaled by the number of terms it is summed over, so that activations stay finite. The
last layer is divided by a power of two, so that the scores differ by a few units: Softmax of thousands is 0 and 1, and
hides what came before.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

_HALVINGS = {"bvlc_alexnet": 2, "densenet121": 4, "inception_v1": 2, "inception_v2": 6, "resnet50": 15,
             "shufflenet": 19, "vgg19": 2}  # fmt: skip
FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def light_model(name: str, seed: int = 0) -> onnx.ModelProto:
    """`light_NAME.onnx` with drawn weights."""
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    graph = model.graph
    rng = np.random.default_rng(seed)
    shapes = {i.name: numpy_helper.to_array(i).tolist() for i in graph.initializer if i.data_type == TensorProto.INT64}
    uses: dict[str, tuple[str, int]] = {}
    for node in graph.node:
        for position, read in enumerate(node.input):
            uses.setdefault(read, (node.op_type, position))
    made = {}
    kept = []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            made[node.output[0]] = shapes[node.input[0]]
        else:
            kept.append(node)
    read = {r for node in kept for r in node.input}
    del graph.node[:]
    graph.node.extend(kept)
    stored = [i for i in graph.initializer if i.name in read]
    last = set(next(node for node in reversed(kept) if node.op_type in ("Conv", "Gemm")).input[1:])
    last |= {node.input[0] for node in kept if node.output[0] in last}
    for n, s in made.items():
        if n in read:
            drawn = _weight(s, uses.get(n), rng)
            scale = 2.0 ** -_HALVINGS.get(name, 0) if n in last else 1.0
            stored.append(numpy_helper.from_array(np.multiply(drawn, np.float32(scale)), n))
    inputs = [i for i in graph.input if i.name in read]
    for field, values in ((graph.initializer, stored), (graph.input, inputs)):
        del field[:]  # type: ignore[attr-defined]
        field.extend(values)  # type: ignore[attr-defined]
    return model


def _weight(shape: list[int], use: tuple[str, int] | None, rng: np.random.Generator) -> NDArray[np.float32]:
    """Weights of a layer have variance 2 / terms; variances and scales lie about 1, the rest is small."""
    if use in {("Conv", 1), ("Gemm", 1), ("MatMul", 1)}:
        terms = math.prod(shape[1:])
        return (rng.standard_normal(shape) * math.sqrt(2 / terms)).astype(np.float32)
    if use in {("BatchNormalization", 1), ("BatchNormalization", 4)} or (use and use[0] in ("Mul", "Unsqueeze")):
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    return (rng.standard_normal(shape) * 0.05).astype(np.float32)


def image(model: onnx.ModelProto, seed: int = 1) -> dict[str, NDArray[np.float32]]:
    """Random values for the inputs that have no stored value."""
    rng = np.random.default_rng(seed)
    stored = {i.name for i in model.graph.initializer}
    shapes = {
        i.name: [d.dim_value or 1 for d in i.type.tensor_type.shape.dim]
        for i in model.graph.input
        if i.name not in stored
    }
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
