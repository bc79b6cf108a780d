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


def classifier(folder: Path, keys: int) -> Path:
    """A classifier as exporters of scikit-learn write it, with a map of the scores for each row. keys: as declared."""
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
        ),
        helper.make_node("ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]),
    ]
    value = helper.make_tensor_value_info
    row = helper.make_map_type_proto(keys, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    maps = helper.make_value_info("maps", helper.make_sequence_type_proto(row))
    outputs = [value("label", TensorProto.INT64, ["N"]), maps]
    graph = helper.make_graph(nodes, "classifier", [value("x", TensorProto.FLOAT, ["N", 2])], outputs)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)]
    path = folder / "classifier.onnx"
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)
    return path


def test_a_classifier_that_ends_with_maps_conforms_for_all_sizes(tmp_path: Path) -> None:
    for keys, verdict in ((TensorProto.INT64, "CONFORMS"), (TensorProto.STRING, "VIOLATES")):
        path = classifier(tmp_path, keys)
        report = certify(path, witnesses=True)
        assert report.verdict == verdict
        found = recheck(seal(certificate(report)), path)
        assert found.outcome is Outcome.CONFIRMED, found.reasons


def reader(folder: Path, op_type: str, key: int, **attributes: object) -> Path:
    """A model whose input is a map to floats."""
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    node = helper.make_node(op_type, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    shape = [2] if op_type == "DictVectorizer" else [1, 3]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph([node], "g", [helper.make_value_info("x", kind)], [y])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 1)]
    path = folder / "reader.onnx"
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)
    return path


TEXT, NUMBER = TensorProto.STRING, TensorProto.INT64


def test_models_that_read_maps_are_judged_by_what_their_texts_require(tmp_path: Path) -> None:
    """The keys are the caller's: an obligation. What attributes decide holds, or is violated; both are re-checked."""
    sparse = {"map_form": "SPARSE", "max_map": 3}
    cases = (
        ("DictVectorizer", TEXT, {"string_vocabulary": ["a", "b"]}, "CONFORMS", ["keys_in_vocabulary"]),
        ("DictVectorizer", NUMBER, {"string_vocabulary": ["a", "b"]}, "VIOLATES", []),
        ("CastMap", NUMBER, sparse, "CONFORMS", ["keys_in_length"]),
        ("CastMap", NUMBER, {**sparse, "max_map": 2}, "VIOLATES", None),
        ("CastMap", NUMBER, {**sparse, "cast_to": "TO_STRING"}, "VIOLATES", None),
    )
    for op_type, key, attributes, verdict, obligations in cases:
        path = reader(tmp_path, op_type, key, **attributes)
        report = certify(path, witnesses=True)
        assert report.verdict == verdict, (op_type, attributes)
        if obligations is not None and verdict == "CONFORMS":
            assert [rule.id.rpartition("/")[2] for rule in report.rules if rule.verdict == "obligation"] == obligations
        found = recheck(seal(certificate(report)), path)
        assert found.outcome is Outcome.CONFIRMED, (op_type, attributes, found.reasons)


def test_a_map_to_tensors_of_several_elements_is_no_map_of_the_operators(tmp_path: Path) -> None:
    """Their text reads one element at each key: with others a run is refused, so nothing is said to conform."""
    for shape, verdict in (([], "CONFORMS"), ([1], "CONFORMS"), ([2], "UNDECIDED"), (["N"], "UNDECIDED")):
        path = reader(tmp_path, "DictVectorizer", NUMBER, int64_vocabulary=[1, 2])
        proto = onnx.load(path)
        held = helper.make_tensor_type_proto(TensorProto.FLOAT, shape)
        proto.graph.input[0].type.CopyFrom(helper.make_map_type_proto(NUMBER, held))
        onnx.save(proto, path)
        report = certify(path, witnesses=True)
        assert report.verdict == verdict, shape
        assert recheck(seal(certificate(report)), path).outcome is not Outcome.REFUTED


def test_a_list_that_is_declared_as_a_tensor_is_seen_by_both(tmp_path: Path) -> None:
    path = classifier(tmp_path, TensorProto.INT64)
    proto = onnx.load(path)
    proto.graph.output[1].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    onnx.save(proto, path)
    report = certify(path, witnesses=True)
    assert "types" in [rule.id for rule in report.rules if rule.verdict == "violated"]
    found = recheck(seal(certificate(report)), path)
    assert found.outcome is Outcome.CONFIRMED, found.reasons
