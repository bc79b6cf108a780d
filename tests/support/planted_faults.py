"""Faults planted in large nets: where a debugger has to find them is known beforehand, to the element.

A fault is planted behind a Relu, whose elements are not negative: nodes are put in that give all elements as they are
(nan: their roots) but one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from sonnx.semantics.debugger.session.opening import opened_model
from sonnx.semantics.machine.execution import run
from sonnx.semantics.machine.state import value_of
from sonnx.semantics.machine.trace.writing import Tracer
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled import ieee

Inputs = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Planted:
    """A net with a fault. node: the path of the one that gives rise to it; element: of its output."""

    proto: onnx.ModelProto
    node: str
    tensor: str
    element: tuple[int, ...]


def layers(nodes: int, width: int) -> tuple[onnx.ModelProto, Inputs]:
    """A net of so many nodes: Add and Relu in turn, each pair with a bias of its own and a sum over a skip."""
    rng = np.random.default_rng(0)
    made, stored = [], []
    before, skipped = "x", "x"
    for i in range(nodes // 4):
        bias = numpy_helper.from_array(rng.standard_normal(width).astype(np.float32), f"b{i}")
        stored.append(bias)
        made += [
            helper.make_node("Add", [before, f"b{i}"], [f"a{i}"]),
            helper.make_node("Relu", [f"a{i}"], [f"r{i}"]),
            helper.make_node("Sub", [f"r{i}", skipped], [f"d{i}"]),
            helper.make_node("Neg", [f"d{i}"], [f"n{i}"]),
        ]
        before, skipped = f"n{i}", f"r{i}"
    ends = [helper.make_tensor_value_info(name, 1, [1, width]) for name in ("x", before)]
    graph = helper.make_graph(made, "layers", ends[:1], ends[1:], stored)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return proto, {"x": rng.standard_normal((1, width)).astype(np.float32)}


def planted(proto: onnx.ModelProto, inputs: Inputs, what: str, part: float = 0.75) -> Planted:
    """The net with a fault, nan or overflow, behind the Relu at this part of it; proto is left as it is."""
    model = onnx.ModelProto.FromString(proto.SerializeToString())
    graph = model.graph
    relus = [i for i, node in enumerate(graph.node) if node.op_type == "Relu"]
    at = relus[int(part * len(relus))]
    before = graph.node[at].output[0]
    shape = _shape(proto, inputs, before)
    element = tuple(int(i) for i in np.unravel_index(2 * math.prod(shape) // 3, shape))
    first, second = ("Sub", "Sqrt") if what == "nan" else ("Add", "Mul")
    for node in list(graph.node)[at + 1 :]:
        node.input[:] = ["planted" if name == before else name for name in node.input]
    aside = _only(shape, element, 1e30 if what == "nan" else 3e38, 0.0)
    nodes = [helper.make_node(first, [before, "aside"], ["shifted"])]
    graph.initializer.append(numpy_helper.from_array(aside, "aside"))
    factors = []
    if what != "nan":
        graph.initializer.append(numpy_helper.from_array(_only(shape, element, 4.0, 1.0), "factors"))
        factors = ["factors"]
    nodes.append(helper.make_node(second, ["shifted", *factors], ["planted"]))
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*rest[: at + 1], *nodes, *rest[at + 1 :]])
    return Planted(model, f"/{at + 2}:{second}", '/"planted"', element)


def recorded_wrongly(model: Model, inputs: Inputs, target: Path) -> tuple[str, tuple[int, ...]]:
    """A recorded run in which one element of one Relu is the next greater number: the node's path, and the element."""
    relus = [n for n, node in enumerate(model.nodes) if node.op_type == "Relu"]
    wrong, calls = relus[3 * len(relus) // 4], -1
    element: tuple[int, ...] = ()

    def meaning(application: Application) -> Outputs | Stuck:
        nonlocal calls, element
        made = ieee.apply(application)
        calls += 1
        if calls != wrong or isinstance(made, Stuck):
            return made
        value = np.array(made.values[0])
        element = tuple(int(i) for i in np.unravel_index(2 * value.size // 3, value.shape))
        value[element] = np.nextafter(value[element], np.float32(np.inf))
        value.flags.writeable = False
        return Outputs((value,))

    with target.open("w") as lines, target.with_name(target.name + ".values").open("wb") as values_:
        run(model, inputs, meaning=meaning, observers=[Tracer(lines, values_)], history=False)
    return model.nodes[wrong].path, element


def _only(shape: tuple[int, ...], element: tuple[int, ...], there: float, else_: float) -> NDArray[np.float32]:
    found = np.full(shape, else_, np.float32)
    found[element] = there
    return found


def _shape(proto: onnx.ModelProto, inputs: Inputs, name: str) -> tuple[int, ...]:
    """The shape that a tensor of the main graph has in a run."""
    history = opened_model(load_proto(proto), inputs).history
    t = next(t for t, tensor in enumerate(history.model.tensors) if tensor.name == name)
    while next(history.writes(t, history.last), None) is None and history.reach(history.last + 1) is not None:
        pass
    return np.shape(value_of(history.at(history.last).state, t))
