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

CONTRACTS = {"ai.onnx.ml::CastMap", "ai.onnx.ml::DictVectorizer", "ai.onnx.ml::ZipMap"} | {
    "ai.onnx.preview.training::Gradient"
}


def _classifier(zipped: bool) -> onnx.ModelProto:
    """A linear classifier of two classes as exporters of scikit-learn write it."""
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "scores"],
            domain="ai.onnx.ml",
            coefficients=[1.0, -1.0, -1.0, 1.0],
            intercepts=[0.0, 0.5],
            classlabels_ints=[0, 1],
            post_transform="SOFTMAX",
        )
    ]
    value = helper.make_tensor_value_info
    outputs = [value("label", TensorProto.INT64, ["N"]), value("scores", TensorProto.FLOAT, ["N", 2])]
    if zipped:
        nodes.append(helper.make_node("ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]))
        kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        outputs[1] = helper.make_value_info("maps", helper.make_sequence_type_proto(kind))
    graph = helper.make_graph(nodes, "classifier", [value("x", TensorProto.FLOAT, ["N", 2])], outputs)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "zipped.onnx"
    path.write_bytes(_classifier(zipped=True).SerializeToString())
    return path


def test_the_operators_that_nothing_here_executes_have_a_contract() -> None:
    library = specification()
    assert set(library.contracts) == CONTRACTS
    assert not CONTRACTS & set(library.operators)
    assert library.reason("ai.onnx.ml::ZipMap", 1) and not library.reason("ai.onnx.ml::Scaler", 1)
    assert not library.reason("ai.onnx.ml::ZipMap", None)


def test_a_run_refuses_the_node_and_says_what_to_do(model: Path) -> None:
    with pytest.raises(Unsupported, match=r"ZipMap: nothing here executes ai.onnx.ml::ZipMap-1\. .*zipmap=False"):
        run(load(model), {"x": np.zeros((1, 2), np.float32)})


def test_the_verdict_is_undecided_and_names_the_reason(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "certify", model)
    assert code == 3
    assert out.splitlines()[-1].endswith("the specification gives no executable meaning to ai.onnx.ml::ZipMap-1.")
    assert "nothing here executes ai.onnx.ml::ZipMap-1. Values of map types have no bytes" in out


def test_what_the_advice_leads_to_conforms_and_runs() -> None:
    plain = _classifier(zipped=False)
    assert certify(plain).verdict == "CONFORMS"


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
    code, out, _ = called(capsys, "spec", "show", "ai.onnx.ml::ZipMap")
    assert code == 0 and "\ncontract ai.onnx.ml::ZipMap @ 1\n" in out
