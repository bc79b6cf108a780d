"""Models that are built here, and their certificates, each made once in a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from warm_fixtures import servers, shape_inference_is_warm

__all__ = ["servers", "shape_inference_is_warm"]
"""Fixtures of these folders."""

FLOAT, BOOL = TensorProto.FLOAT, TensorProto.BOOL
GRAPH_RULES = ("sonnx-2025-05", "sonnx-2025-04", "sonnx-2025-10")


def value(name: str, element: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, [2])


def model_of(graph: onnx.GraphProto, functions: Any = (), domains: tuple[str, ...] = ("",)) -> onnx.ModelProto:
    opsets = [helper.make_opsetid(domain, 18 if not domain else 1) for domain in domains]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def chain() -> onnx.ModelProto:
    """Conforms to the graph rule sets."""
    nodes = [helper.make_node("Add", ["x", "w"], ["y"], name="first"), helper.make_node("Relu", ["y"], ["z"])]
    weight = numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    return model_of(helper.make_graph(nodes, "g", [value("x")], [value("z")], [weight]))


def broken() -> onnx.ModelProto:
    """Violates most rules of the graph rule sets."""
    nodes = [
        helper.make_node("Add", ["x", "nowhere"], ["y"]),
        helper.make_node("Mul", ["b", "x"], ["a"]),
        helper.make_node("Mul", ["a", "x"], ["b"]),
        helper.make_node("Sub", ["x", "x"], ["y"], name="s\u00fcb<"),
        helper.make_node("Split", ["x"], ["p", "p"], num_outputs=2),
        helper.make_node("RandomNormal", [], ["unused"], shape=[2]),
        helper.make_node("Relu", ["y"], ["x"]),
        helper.make_node("Neg", ["y"], ["w"]),
    ]
    stored = [helper.make_tensor("w", FLOAT, [2], [1.0, 2.0])] * 2
    return model_of(helper.make_graph(nodes, "g", [value("x"), value("idle")], [value("y"), value("x")], stored))


def branches(outputs: int = 1) -> onnx.ModelProto:
    """An If whose branches capture, one of them what stands behind it in the file."""
    then = helper.make_graph([helper.make_node("Add", ["x", "x"], ["r"])], "then", [], [value("r")])
    other = helper.make_graph([helper.make_node("Mul", ["x", "late"], ["q"])], "else", [], [value("q")] * outputs)
    nodes = [
        helper.make_node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other),
        helper.make_node("Neg", ["x"], ["late"]),
    ]
    inputs = [value("x"), helper.make_tensor_value_info("c", BOOL, [])]
    return model_of(helper.make_graph(nodes, "g", inputs, [value("y")]))


def calls() -> onnx.ModelProto:
    """A call of a function that gives one of its inputs back."""
    inner = [helper.make_node("Relu", ["a"], ["h"]), helper.make_node("Add", ["h", "a"], ["r"])]
    function = helper.make_function("own", "f", ["a"], ["r", "a"], inner, [helper.make_opsetid("", 18)])
    nodes = [helper.make_node("f", ["x"], ["y", "z"], domain="own", name="call")]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y"), value("z")])
    return model_of(graph, [function], ("", "own"))


def training() -> onnx.ModelProto:
    """A Dropout in training mode, and an operator that ONNX does not know."""
    mode = helper.make_tensor("mode", BOOL, [], [True])
    nodes = [helper.make_node("Dropout", ["x", "", "mode"], ["y"]), helper.make_node("Odd", ["x"], ["z"], domain="d")]
    return model_of(helper.make_graph(nodes, "g", [value("x")], [value("y"), value("z")], [mode]), domains=("", "d"))


BUILT: dict[str, Callable[[], onnx.ModelProto]] = {
    "chain": chain,
    "broken": broken,
    "branches": branches,
    "unequal branches": lambda: branches(2),
    "calls": calls,
    "training": training,
}


def issue(path: Path, rules: tuple[str, ...] = GRAPH_RULES, *, strict: bool = False) -> bytes:
    """The certificate of a file."""
    from sonnx.checker.certification.certificate import certificate, seal
    from sonnx.checker.certification.certifier import certify

    return seal(certificate(certify(path, rules, others=False, witnesses=True, strict=strict)))


@pytest.fixture(scope="session")
def build() -> Callable[[str], onnx.ModelProto]:
    """A built model by name."""
    return lambda name: BUILT[name]()


@pytest.fixture(scope="session")
def issued() -> Callable[..., bytes]:
    """The certificate of a file, by the graph rule sets unless told otherwise."""
    return issue


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[bytes, Path]]:
    """The certificate of a built model, by name, and the model file."""

    @cache
    def path_of(name: str) -> Path:
        path = tmp_path_factory.mktemp("built") / "model.onnx"
        onnx.save(BUILT[name](), path)
        return path

    @cache
    def make(name: str, rules: tuple[str, ...] = GRAPH_RULES, strict: bool = False) -> tuple[bytes, Path]:
        return issue(path_of(name), rules, strict=strict), path_of(name)

    return make
