"""Models that are built here for tests of the machine, and a plain meaning for their operators.

The machine takes any meaning, so its tests depend on no operator's text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sonnx.semantics import Run, Schedule, load_proto, run
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Sequence as SequenceValue
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.spec.language.syntax import NOWHERE

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
SCHEDULES = (Schedule(), Schedule("random", 1), Schedule("random", 20), Schedule("demand"))

OPERATORS: Mapping[str, Callable[..., Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Relu": lambda a: np.maximum(a, 0),
    "Neg": lambda a: -a,
    "Identity": lambda a: a,
    "Less": lambda a, b: a < b,
    "Not": lambda a: ~a,
    "SequenceConstruct": lambda *items: items,
}


def meaning(application: Application) -> Outputs | Stuck:
    """What the operators of these models compute; Div by zero has no meaning."""
    inputs: list[Any] = [value for value in application.inputs if value is not None]
    if application.op_type == "Constant":
        return Outputs((np.asarray(application.attributes["value"]),))
    if application.op_type == "Split":
        return Outputs(tuple(np.split(inputs[0], len(application.outputs))))
    if application.op_type == "Div":
        if not np.all(inputs[1]):
            return Stuck("Div-14", "nonzero", NOWHERE, "division by zero")
        return Outputs((inputs[0] / inputs[1],))
    found = OPERATORS[application.op_type](*inputs)
    if isinstance(found, SequenceValue):
        return Outputs((found,))
    if isinstance(found, tuple):
        return Outputs((SequenceValue(ValueType("tensor", "float"), found),))
    return Outputs((np.asarray(found),))


# ---- Builders ---------------------------------------------------------------------------------

node = helper.make_node


def value(name: str, element: int = FLOAT, shape: Sequence[int | str | None] | None = ()) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def stored(name: str, content: object, dtype: Any = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(content, dtype), name)


def constant(name: str, content: object, dtype: Any = np.float32) -> onnx.NodeProto:
    return node("Constant", [], [name], value=stored(name, content, dtype))


def graph(nodes: Any, inputs: Any, outputs: Any, initializers: Any = (), name: str = "g") -> onnx.GraphProto:
    return helper.make_graph(list(nodes), name, list(inputs), list(outputs), list(initializers))


def proto(main: onnx.GraphProto, opset: int = 18) -> onnx.ModelProto:
    return helper.make_model(main, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def ran(model: onnx.ModelProto, inputs: Mapping[str, Any], schedule: Schedule = SCHEDULES[0], **options: Any) -> Run:
    """The run of a model with the plain meaning."""
    return run(load_proto(model), inputs, schedule, meaning=meaning, **options)


# ---- Models -----------------------------------------------------------------------------------


def diamond() -> onnx.ModelProto:
    """Four nodes, two of them in any order: r = relu(x); a = r + w; b = r * w; y = a - b."""
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Add", ["r", "w"], ["a"]),
        node("Mul", ["r", "w"], ["b"]),
        node("Sub", ["a", "b"], ["y"]),
    ]
    return proto(graph(nodes, [value("x", shape=[2])], [value("y", shape=[2])], [stored("w", [3, 5])]))


def choice() -> onnx.ModelProto:
    """y = x + w if c, else -x; both branches capture x."""
    then = graph([node("Add", ["x", "w"], ["t"])], [], [value("t", shape=[2])], [stored("w", [3, 5])], "then")
    other = graph([node("Neg", ["x"], ["e"])], [], [value("e", shape=[2])], (), "else")
    holder = node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    return proto(graph([holder], [value("x", shape=[2]), value("c", BOOL)], [value("y", shape=[2])]))


def loop(
    *, trips: bool = True, cond: bool = True, limit: float = 100.0, outputs: Sequence[str] = ("last", "all")
) -> onnx.ModelProto:
    """v = v + x until it is no longer below the limit; the squares of v are collected."""
    body = graph(
        [
            node("Add", ["v", "x"], ["v2"]),
            node("Mul", ["v2", "v2"], ["s"]),
            constant("k", limit),
            node("Less", ["v2", "k"], ["go"]),
        ],
        [value("i", INT64), value("c", BOOL), value("v")],
        [value("go", BOOL), value("v2"), value("s")],
        (),
        "body",
    )
    holder = node("Loop", ["m" if trips else "", "c0" if cond else "", "v0"], list(outputs), body=body)
    inputs = [value("x"), value("v0"), *([value("m", INT64)] if trips else []), *([value("c0", BOOL)] if cond else [])]
    shapes = {"last": (), "all": [None]}
    return proto(graph([holder], inputs, [value(name, shape=shapes[name]) for name in outputs if name]))


def nested() -> onnx.ModelProto:
    """A Loop in the body of a Loop, in which an If chooses by the outer value: w = w + (x if w < 3 else 2 x)."""
    then = graph([node("Identity", ["x"], ["t"])], [], [value("t")], (), "then")
    other = graph([node("Add", ["x", "x"], ["e"])], [], [value("e")], (), "else")
    inner = graph(
        [
            node("Less", ["w", "three"], ["small"]),
            node("If", ["small"], ["d"], then_branch=then, else_branch=other),
            node("Add", ["w", "d"], ["w2"]),
            node("Identity", ["ci"], ["co"]),
        ],
        [value("j", INT64), value("ci", BOOL), value("w")],
        [value("co", BOOL), value("w2"), value("d")],
        [stored("three", 3.0)],
        "inner",
    )
    outer = graph(
        [
            node("Loop", ["m2", "", "v"], ["v2", "ds"], body=inner),
            node("Identity", ["c"], ["c2"]),
        ],
        [value("i", INT64), value("c", BOOL), value("v")],
        [value("c2", BOOL), value("v2"), value("ds", shape=[2])],
        (),
        "outer",
    )
    holder = node("Loop", ["m", "", "v0"], ["last", "all"], body=outer)
    inputs = [value("x"), value("v0"), value("m", INT64), value("m2", INT64)]
    return proto(graph([holder], inputs, [value("last"), value("all", shape=[None, 2])]))


def scan(opset: int = 18, **attributes: Any) -> onnx.ModelProto:
    """Running sums: s = s + e, collected as they are and doubled."""
    body = graph(
        [node("Add", ["s", "e"], ["s2"]), node("Identity", ["s2"], ["p"]), node("Add", ["s2", "s2"], ["q"])],
        [value("s", shape=[2]), value("e", shape=[2])],
        [value("s2", shape=[2]), value("p", shape=[2]), value("q", shape=[2])],
        (),
        "body",
    )
    batched = opset == 8
    names = ["n", "s0", "xs"] if batched else ["s0", "xs"]
    holder = node("Scan", names, ["last", "ps", "qs"], body=body, num_scan_inputs=1, **attributes)
    inputs = [value(name, INT64 if name == "n" else FLOAT, None) for name in names]
    outputs = [value(name, shape=None) for name in ("last", "ps", "qs")]
    return proto(graph([holder], inputs, outputs), opset)


def sequence_map() -> onnx.ModelProto:
    """Each item plus x."""
    body = graph([node("Add", ["a", "b"], ["c"])], [value("a", shape=None), value("b", shape=None)],
                 [value("c", shape=None)], (), "body")  # fmt: skip
    nodes = [
        node("SequenceConstruct", ["p", "q"], ["items"]),
        node("SequenceMap", ["items", "x"], ["out"], body=body),
    ]
    sequence = helper.make_tensor_sequence_value_info("out", FLOAT, None)
    return proto(graph(nodes, [value(name, shape=None) for name in ("p", "q", "x")], [sequence]))


# ---- Runs to try things on ---------------------------------------------------------------------


def _number(x: float, dtype: Any = np.float32) -> Any:
    return np.array(x, dtype)


CASES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "diamond": ("diamond", (), {"x": np.array([-1, 2], np.float32)}),
    "if": ("choice", (), {"x": np.ones(2, np.float32), "c": np.array(True)}),
    "loop": ("loop", (), {"x": _number(30), "v0": _number(0), "m": np.array(9), "c0": np.array(True)}),
    "no run": ("loop", (), {"x": _number(30), "v0": _number(0), "m": np.array(0), "c0": np.array(True)}),
    "nested": ("nested", (), {"x": _number(1), "v0": _number(0), "m": np.array(3), "m2": np.array(2)}),
    "scan": ("scan", (), {"s0": np.ones(2, np.float32), "xs": np.ones((3, 2), np.float32)}),
    "batch": ("scan", (8,), {"n": np.array([2, 0]), "s0": np.ones((2, 2), np.float32),
                             "xs": np.ones((2, 2, 2), np.float32)}),
    "map": ("sequence_map", (), {"p": np.ones(2, np.float32), "q": np.ones(1, np.float32), "x": _number(2)}),
}  # fmt: skip
"""By name the function of this module that makes a model, its arguments, and inputs."""
