"""Operators with a contract: a run refuses them and says what to do, and a verdict is undecided."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from command_calls import called
from onnx import TensorProto, helper
from sonnx.checker import certify, recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.semantics import load, run
from sonnx.semantics.machine.execution import Unsupported
from sonnx.spec.library import specification

GRADIENT = "ai.onnx.preview.training::Gradient"


def _training() -> onnx.ModelProto:
    """The square of x, and its derivative."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["y"]),
        helper.make_node("Gradient", ["x"], ["d"], domain="ai.onnx.preview.training", xs=["x"], y="y"),
    ]
    value = helper.make_tensor_value_info
    outputs = [value(name, TensorProto.FLOAT, [1]) for name in ("y", "d")]
    graph = helper.make_graph(nodes, "training", [value("x", TensorProto.FLOAT, [1])], outputs)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.preview.training", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "training.onnx"
    path.write_bytes(_training().SerializeToString())
    return path


def test_the_operators_that_nothing_here_executes_have_a_contract() -> None:
    library = specification()
    assert set(library.contracts) == {GRADIENT}
    assert GRADIENT not in library.operators
    assert library.reason(GRADIENT, 1) and not library.reason("ai.onnx.ml::Scaler", 1)
    assert not library.reason(GRADIENT, None)


def test_a_run_refuses_the_node_and_says_what_to_do(model: Path) -> None:
    with pytest.raises(Unsupported, match=rf"nothing here executes {GRADIENT}-1\. .*Differentiate before export"):
        run(load(model), {"x": np.zeros(1, np.float32)})


def test_the_verdict_is_undecided_and_names_the_reason(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "certify", model)
    assert code == 3
    assert out.splitlines()[-1].endswith(
        "the specification gives no executable meaning to ai.onnx.preview.training::Gradient-1."
    )
    assert "nothing here executes ai.onnx.preview.training::Gradient-1. The result depends on the nodes" in out


def test_a_forged_certificate_is_not_confirmed(model: Path) -> None:
    statement = json.loads(json.dumps(certificate(certify(model, witnesses=True))))
    assert recheck(seal(statement), model).outcome in ("CONFIRMED", "NOT-CHECKED")
    predicate = statement["predicate"]
    predicate["verdict"] = "CONFORMS"
    for entry in predicate["rule_sets"]:
        entry["verdict"] = "CONFORMS"
    for rule in predicate["rules"]:
        if rule["verdict"] == "unknown":
            rule |= {"verdict": "holds", "findings": [], "total": 0}
            predicate["witnesses"].setdefault(rule["constraint"], {"kind": "nodes"})
    assert recheck(seal(statement), model).outcome != "CONFIRMED"


def test_the_text_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "spec", "show", GRADIENT)
    assert code == 0 and f"\ncontract {GRADIENT} @ 1\n" in out
