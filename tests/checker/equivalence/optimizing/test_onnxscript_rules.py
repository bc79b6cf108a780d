"""Proved rewrites as rules of onnxscript's rewriter."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import onnx
import pytest
from onnx import parser, shape_inference
from sonnx.checker.equivalence.optimizing import onnxscript_rules
from sonnx.checker.equivalence.optimizing.admitting import UnknownRule
from sonnx.checker.equivalence.optimizing.onnxscript_rules import ExtraMissingError, onnxscript_rule
from sonnx.semantics.machine.execution import run
from sonnx.semantics.model.loader import load_proto

needs_onnxscript = pytest.mark.skipif(find_spec("onnxscript") is None, reason="onnxscript is not installed")

CASES = {
    # rules, nodes, operators afterwards
    "a new node": (
        ["TransposeTranspose"],
        "float[2, 3, N] x",
        "a = Transpose<perm = [1, 0, 2]>(x) y = Transpose<perm = [0, 2, 1]>(a)",
        ["Transpose"],
    ),
    "a port": (
        ["TransposeNothing"],
        "float[2, 3, N] x",
        "a = Transpose<perm = [0, 1, 2]>(x) y = Relu(a)",
        ["Identity", "Relu"],
    ),
    "a port that is an output": (
        ["TransposeNothing"],
        "float[N] x",
        "a = Relu(x) y = Transpose<perm = [0]>(a)",
        ["Relu", "Identity"],
    ),
    "an Identity": (["IdentityGone"], "float[2] x", "a = Relu(x) y = Identity(a)", ["Relu", "Identity"]),
    "one after the other": (
        ["TransposeTranspose", "TransposeNothing", "ReluRelu"],
        "float[2, 3, N] x",
        "a = Transpose<perm = [1, 0, 2]>(x) b = Transpose<perm = [1, 0, 2]>(a) c = Relu(b) y = Relu(c)",
        ["Identity", "Relu"],
    ),
    "a stored bound": (
        ["ReluClip"],
        "float[N] x",
        "lo = Constant<value = float {1.0}>() a = Relu(x) y = Clip(a, lo)",
        ["Constant", "Clip"],
    ),
    "a stored bound that the condition forbids": (
        ["ReluClip"],
        "float[N] x",
        "lo = Constant<value = float {-1.0}>() a = Relu(x) y = Clip(a, lo)",
        ["Constant", "Relu", "Clip"],
    ),
    "a value that others read": (
        ["ReluRelu"],
        "float[N] x",
        "a = Relu(x) b = Relu(a) y = Add(a, b)",
        ["Relu", "Relu", "Add"],
    ),
    "an element type that is not the rule's": (
        ["DivMul"],
        "int32[N] x",
        "one = Constant<value = int32 {1}>() a = Div(one, x) y = Mul(a, x)",
        ["Constant", "Div", "Mul"],
    ),
}


def _model(inputs: str, nodes: str) -> onnx.ModelProto:
    kind = inputs.partition("[")[0]
    text = f'<ir_version: 10, opset_import: ["": 23]> g ({inputs}) => ({kind}[P, Q, R] y) {{ {nodes} }}'
    model = parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return shape_inference.infer_shapes(model)


def _applied(model: onnx.ModelProto, rules: list[str]) -> onnx.ModelProto:
    ir, rewriter = import_module("onnx_ir"), import_module("onnxscript.rewriter")
    opened = ir.from_proto(model)
    rewriter.RewriteRuleSet([onnxscript_rule(name, strength="reals") for name in rules]).apply_to_model(opened)
    closed: onnx.ModelProto = ir.to_proto(opened)
    return closed


@needs_onnxscript
@pytest.mark.parametrize("case", CASES)
def test_a_rule_is_applied_where_it_stands_and_nowhere_else(case: str) -> None:
    rules, inputs, nodes, expected = CASES[case]
    before = _model(inputs, nodes)
    after = _applied(before, rules)
    assert [node.op_type for node in after.graph.node] == expected
    shape = [2 if not it.dim_value else it.dim_value for it in before.graph.input[0].type.tensor_type.shape.dim]
    kind = np.int32 if inputs.startswith("int32") else np.float32
    given = {"x": np.resize(np.array([-2, 3, -1, 1, 5, -4], kind), shape)}
    left, right = (run(load_proto(it), given).outputs["y"] for it in (before, after))
    np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


@needs_onnxscript
def test_a_value_without_a_type_is_left_alone() -> None:
    model = _model("float[2, 3, N] x", "a = Relu(x) b = Relu(a) y = Relu(b)")
    del model.graph.value_info[:]
    untyped = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 23, "d": 1]> g (float[2] x) => (float[2] y)'
        "{ u = d.Unknown(x) a = Transpose<perm = [0]>(u) y = Relu(a) }"
    )
    assert [it.op_type for it in _applied(untyped, ["TransposeNothing"]).graph.node] == ["Unknown", "Transpose", "Relu"]


@needs_onnxscript
def test_a_stored_value_that_a_caller_may_override_is_no_constant() -> None:
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 22]> g (float[2] x, float z = {1.0}) => (float[2] y) { y = Mul(x, z) }'
    )
    assert [it.op_type for it in _applied(model, ["MulOne"]).graph.node] == ["Mul"]
    del model.graph.input[1]
    assert [it.op_type for it in _applied(model, ["MulOne"]).graph.node] == ["Identity"]


@needs_onnxscript
def test_a_rule_that_is_refuted_is_none() -> None:
    with pytest.raises(UnknownRule, match="ReluClipAnyBound claims never"):
        onnxscript_rule("ReluClipAnyBound")


def test_without_onnxscript_a_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxscript_rules, "find_spec", lambda _: None)
    with pytest.raises(ExtraMissingError, match=r"pip install 'sonnx\[onnxscript\]'"):
        onnxscript_rule("ReluRelu")
