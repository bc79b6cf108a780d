"""Values of type map: a model that declares them as ONNX's schemas have them breaks no rule of ONNX."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper
from sonnx.checker import certify, recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.rechecker import Outcome


def zipped(folder: Path, kind: int) -> Path:
    """A ZipMap whose output is declared as maps from int64 to tensors of an element type."""
    node = helper.make_node("ZipMap", ["X"], ["Z"], domain="ai.onnx.ml", classlabels_int64s=[1, 2])
    row = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(kind, []))
    made = helper.make_value_info("Z", helper.make_sequence_type_proto(row))
    given = helper.make_tensor_value_info("X", TensorProto.FLOAT, [2, 2])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    path = folder / "zip.onnx"
    graph = helper.make_graph([node], "g", [given], [made])
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), path)
    return path


def test_a_map_is_admitted_where_its_types_are_those_of_the_schema(tmp_path: Path) -> None:
    for kind, verdict in ((TensorProto.FLOAT, "CONFORMS"), (TensorProto.INT64, "VIOLATES")):
        path = zipped(tmp_path, kind)
        report = certify(path, rules=("onnx",), witnesses=True)
        assert report.verdict == verdict
        found = recheck(seal(certificate(report)), path)
        assert found.outcome is Outcome.CONFIRMED, found.reasons
