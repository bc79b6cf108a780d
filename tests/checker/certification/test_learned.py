"""Models as exporters of scikit-learn write them: types that inference leaves open follow from the texts."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
from sonnx.checker import certify, recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.rechecker import Outcome

PIPELINE = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>
g (float[N, 2] X) => (int64[N] Y, float[N, 2] Z) {
    scaled = ai.onnx.ml.Scaler <offset = [0.0, 0.0], scale = [1.0, 2.0]> (X)
    Y, scores = ai.onnx.ml.SVMClassifier <vectors_per_class = [1, 1], support_vectors = [1.0, -1.0, 0.5, 0.5],
        coefficients = [1.0, -1.0], rho = [0.0], kernel_type = "RBF", kernel_params = [0.5, 0.0, 0.0],
        prob_a = [-2.0], prob_b = [0.0], classlabels_ints = [10, 20]> (scaled)
    Z = ai.onnx.ml.Normalizer <norm = "L1"> (scores)
}"""


def test_a_pipeline_of_which_inference_knows_no_types_conforms(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.onnx"
    onnx.save(onnx.parser.parse_model(PIPELINE), path)
    report = certify(path, witnesses=True)
    assert report.verdict == "CONFORMS"
    assert recheck(seal(certificate(report)), path).outcome is Outcome.CONFIRMED


def test_a_declared_type_that_is_not_that_of_the_operator_violates(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.onnx"
    onnx.save(onnx.parser.parse_model(PIPELINE.replace("int64[N] Y", "float[N] Y")), path)
    report = certify(path, witnesses=True)
    assert report.verdict == "VIOLATES"
    assert recheck(seal(certificate(report)), path).outcome is Outcome.CONFIRMED
