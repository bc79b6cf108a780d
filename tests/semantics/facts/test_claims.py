"""Claims of shape inference: exact places, no foreign names, no exception whatever the other process does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from onnx import parser
from sonnx.semantics.facts.inference import model as claims
from sonnx.semantics.facts.inference.model import WITHIN, Claims, build, completed, infer, located
from sonnx.semantics.model.graph import Model, ValueType
from sonnx.semantics.model.loader import load_proto
from tables import table

HEAD = '<ir_version: 8, opset_import: ["" : 18, "com.example" : 1]>'


def model(text: str) -> Model:
    return load_proto(parser.parse_model(f"{HEAD} {text}"))


def typed(it: Model, found: Claims) -> dict[str, ValueType]:
    return {tensor.name: found.types[t] for t, tensor in enumerate(it.tensors) if t in found.types}


def test_types_of_intermediate_tensors_are_inferred() -> None:
    it = model("g (float[2,3] X) => (float[3,2] Y) { T = Transpose(X)  Y = Relu(T) }")
    found = infer(it, 60)
    assert found.failure is None
    assert found.errors == ()
    assert typed(it, found)["T"] == ValueType("tensor", "float", (3, 2))


def test_a_wrong_declaration_of_an_output_does_not_reach_the_claim() -> None:
    it = model("g (float[2,3] X) => (int64[7] Y) { Y = Relu(X) }")
    assert typed(it, infer(it, 60))["Y"] == ValueType("tensor", "float", (2, 3))


def test_types_inside_a_body_are_inferred_with_the_captured_type() -> None:
    it = model(
        "g (bool C, float[4] X) => (float[4] Y) { Y = If (C) <"
        " then_branch = a () => (float[4] P) { Q = Relu(X) P = Neg(Q) },"
        " else_branch = b () => (float[4] R) { R = Abs(X) }> }"
    )
    assert typed(it, infer(it, 60))["Q"] == ValueType("tensor", "float", (4,))


def test_small_constants_reach_the_shapes_that_depend_on_them() -> None:
    it = model("g (float[2,3] X) => (float[n] Y) <int64[1] S = {6}> { Z = Reshape(X, S)  Y = Relu(Z) }")
    assert typed(it, infer(it, 60))["Z"].shape == (6,)


def test_an_error_names_its_node_and_the_other_types_are_still_claimed() -> None:
    it = model("g (float[2,3] X, float[4,5] W) => (float[a,b] Y) { T = Relu(X)  Z = MatMul(X, W)  Y = Relu(Z) }")
    found = infer(it, 60)
    node, message = found.errors[0]
    assert node == 1
    assert "Incompatible dimensions" in message
    assert typed(it, found)["T"].shape == (2, 3)


def test_an_error_in_a_body_names_the_inner_node() -> None:
    it = model(
        "g (bool C, float[2,3] X, float[4,5] W) => (float[a,b] Y) { Y = If (C) <"
        " then_branch = a () => (float[p,q] P) { P = MatMul(X, W) },"
        " else_branch = b () => (float[r,s] R) { R = Abs(X) }> }"
    )
    found = infer(it, 60)
    assert {it.nodes[node].op_type for node, _ in found.errors if node is not None} == {"MatMul"}


def test_nodes_out_of_order_are_sorted_before_inference() -> None:
    it = model("g (float[2,3] X) => (float[3,2] Y) { Y = Relu(T)  T = Transpose(X) }")
    found = infer(it, 60)
    assert found.errors == ()
    assert typed(it, found)["Y"].shape == (3, 2)


def test_a_cycle_ends_without_claims_about_it() -> None:
    it = model("g (float[2] X) => (float[2] Y) { A = Add(X, B)  B = Relu(A)  Y = Relu(X) }")
    found = infer(it, 60)
    assert found.failure is None
    assert typed(it, found)["Y"].shape == (2,)


def test_a_node_without_schema_is_left_out_and_its_declared_type_is_assumed() -> None:
    it = model("g (float[2] X) => (float[2] Y) <float[5] Z> { Z = com.example.Foo(X)  Y = Relu(Z) }")
    found = infer(it, 60)
    assert "no schema for Foo" in found.left_out[0]
    assert typed(it, found)["Y"].shape == (5,)


def test_a_declaration_completes_what_inference_leaves_open() -> None:
    it = model("g (float[2,3] X, int64[n] S) => (float[a,b] Y) <float[3,2] Z> { Z = Reshape(X, S)  Y = Transpose(Z) }")
    assert typed(it, infer(it, 60))["Y"].shape == (2, 3)


def test_no_name_of_the_file_reaches_inference() -> None:
    text = "g (float[2] hostile_in) => (float[2] hostile_out) { hostile_out = Relu(hostile_in) }"
    proto = parser.parse_model(f"{HEAD} {text}")
    proto.graph.node[0].name = "hostile_node"
    proto.graph.name = "hostile_graph"
    assert b"hostile" not in build(load_proto(proto), {}).proto.SerializeToString()


def test_a_large_constant_goes_in_as_a_type() -> None:
    proto = parser.parse_model(f"{HEAD} g (float[9000] X) => (float[9000] Y) {{ Y = Add(X, W) }}")
    proto.graph.initializer.add(name="W", data_type=1, dims=[9000], raw_data=b"\0" * 36000)
    built = build(load_proto(proto), {}).proto
    assert len(built.SerializeToString()) < 1000
    assert infer(load_proto(proto), 60).errors == ()


def test_a_timeout_is_a_failure() -> None:
    found = infer(model("g (float[2] X) => (float[2] Y) { Y = Relu(X) }"), 0.001)
    assert found.failure == "shape inference took more than 0.001 s"


def test_the_timeout_grows_with_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """From `NODES` on, and only as they do: a hostile model has an end."""
    text = "g (float[2] X) => (float[2] Y) { A = Relu(X) B = Relu(A) Y = Relu(B) }"
    for nodes, limit in ((3, "0.001"), (2, "0.0015"), (1, "0.003")):
        monkeypatch.setattr(claims, "NODES", nodes)
        assert infer(model(text), 0.001).failure == f"shape inference took more than {limit} s"


def test_lack_of_memory_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "MEMORY", 1 << 20)
    found = infer(model("g (float[2] X) => (float[2] Y) { Y = Relu(X) }"), 60)
    assert found.failure is not None
    assert found.types == {}


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ("kill -SEGV $$", "shape inference crashed (signal 11)"),
        ("cat >/dev/null; echo 'Boom: \x1b[31mred' >&2; exit 1", "shape inference failed: Boom:  [31mred"),
        ("cat >/dev/null; echo nonsense", "shape inference gave no readable answer"),
        ("exit 0", "shape inference gave no readable answer"),
    ],
)
def test_whatever_the_process_does_is_a_failure(
    script: str, failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert infer(model("g (float[2] X) => (float[2] Y) { Y = Relu(X) }"), 60).failure == failure


def test_a_missing_interpreter_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    found = infer(model("g (float[2] X) => (float[2] Y) { Y = Relu(X) }"), 60)
    assert found.failure is not None
    assert found.failure.startswith("shape inference cannot be started")


# ---- Error texts ------------------------------------------------------------------------------


@table(
    ("text", "expected"),
    [
        (
            "[ShapeInferenceError] Inference error(s): (op_type:Add, node name: n5): [ShapeInferenceError] Bad\n"
            "(op_type:Mul, node name: n6): [TypeInferenceError] Worse\n",
            [(5, "Bad"), (6, "Worse")],
        ),
        (
            "Inference error(s): (op_type:If, node name: n3): [ShapeInferenceError] Inference error(s): "
            "(op_type:ArgMin, node name: n7): [ShapeInferenceError] axis\n\n",
            [(7, "axis")],
        ),
        ("(op_type:F, node name: n2): (op_type:Constant): one and only one", [(2, WITHIN + "one and only one")]),
        ("[ShapeInferenceError] differ in rank: (3) vs (2)", [(None, "differ in rank: (3) vs (2)")]),
        ("(op_type:F, node name: n2): ", [(2, "no message")]),
        ("", []),
    ],
)
def test_errors_are_found_at_the_innermost_node(text: str, expected: list[tuple[int | None, str]]) -> None:
    assert list(located(text)) == expected


# ---- Completing -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "declared", "expected"),
    [
        (None, ValueType("tensor", "float", (1,)), ValueType("tensor", "float", (1,))),
        (ValueType("tensor", "float"), ValueType("tensor", "float", (1, "n")), ValueType("tensor", "float", (1, "n"))),
        (
            ValueType("tensor", "float", (None, 2)),
            ValueType("tensor", "float", (5, 3)),
            ValueType("tensor", "float", (5, 2)),
        ),
        (ValueType("tensor", "float"), ValueType("tensor", "int64", (1,)), ValueType("tensor", "float")),
        (
            ValueType("tensor", "float", (None,)),
            ValueType("tensor", "float", (5, 3)),
            ValueType("tensor", "float", (None,)),
        ),
    ],
)
def test_a_declaration_fills_gaps_and_overrides_nothing(
    claim: ValueType | None, declared: ValueType, expected: ValueType
) -> None:
    assert completed(claim, declared) == expected
