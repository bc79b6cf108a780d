"""Models written in ONNX's textual syntax, for tests that change or compare graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from onnx import ModelProto, helper, numpy_helper, parser
from sonnx.semantics.machine.execution import Run, run
from sonnx.semantics.machine.inputs import declared_inputs
from sonnx.semantics.model.elements import dtype_of
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.values import Value, identical

SPECIAL = (0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 3e38, -3e38, float("inf"), float("-inf"), float("nan"), 0.5, -2.0)
"""Numbers on which rewrites that are nearly right go wrong."""


def model_of(graph: str, opset: int = 22, stored: Mapping[str, np.ndarray] | None = None) -> Model:
    """The model of a graph in ONNX's textual syntax, `g (float[2] X) => (float[2] Y) { Y = Relu(X) }`."""
    return load_proto(proto_of(graph, opset, stored))


def proto_of(graph: str, opset: int = 22, stored: Mapping[str, np.ndarray] | None = None) -> ModelProto:
    """The same as ONNX's message. stored: more stored values by name."""
    made = helper.make_model(parser.parse_graph(graph), opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 10
    made.graph.initializer.extend(numpy_helper.from_array(data, name) for name, data in (stored or {}).items())
    return made


def special_inputs(model: Model, seed: int, size: int = 2) -> dict[str, Value]:
    """A value for each input: special numbers in any order; open sizes are `size`."""
    draw = np.random.default_rng(seed)
    values: dict[str, Value] = {}
    for name, (_, stated, needed) in declared_inputs(model).items():
        if not needed or stated is None or stated.shape is None:
            continue
        shape = tuple(n if isinstance(n, int) else size for n in stated.shape)
        kind = dtype_of(stated.element)
        if kind.kind == "f":
            with np.errstate(over="ignore"):
                values[name] = draw.choice(np.array(SPECIAL), shape).astype(kind)
        elif kind.kind == "b":
            values[name] = draw.integers(0, 2, shape).astype(kind)
        else:
            values[name] = draw.integers(-2 if kind.kind == "i" else 0, 4, shape).astype(kind)
    return values


def same_outputs(one: Run, other: Run) -> bool:
    """The runs give the same bits, or the first one comes to no end."""
    if one.stuck is not None:
        return True
    return one.outputs.keys() == other.outputs.keys() and all(
        identical(value, other.outputs[name]) for name, value in one.outputs.items()
    )


def means_the_same(one: Model, other: Model, seeds: Iterable[int] = range(20), sizes: Iterable[int] = (2,)) -> bool:
    """On special inputs the second model gives what the first one gives, bit by bit."""
    return all(
        same_outputs(run(one, given), run(other, given))
        for size in sizes
        for seed in seeds
        if (given := special_inputs(one, seed, size)) is not None
    )
