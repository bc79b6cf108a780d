"""Maps: what a text makes of them and reads of them, against onnxruntime and by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from sampling import seeds
from sonnx.semantics import run
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.values import Map, Sequence, Value, identical
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled import bound, ieee

DOMAIN = "ai.onnx.ml"
FLOAT = ValueType("tensor", "float")
CODES = {"float": TensorProto.FLOAT, "int64": TensorProto.INT64, "string": TensorProto.STRING}


def scalar(value: Any, element: str = "float") -> NDArray[Any]:
    made = np.empty((), {"float": np.float32, "int64": np.int64, "string": object}[element])
    made[()] = value
    return made


def mapped(content: Mapping[Any, Any], element: str = "float", key: str = "int64") -> Map:
    """A map of this content."""
    items = tuple((k, scalar(v, element)) for k, v in sorted(content.items()))
    return Map(key, ValueType("tensor", element), items)


def applied(op_type: str, given: Value, **attributes: Any) -> Any:
    """The output, or the requirement that fails."""
    done = ieee.apply(Application(f"{DOMAIN}::{op_type}", 1, (given,), attributes, (True,)))
    return done.values[0] if isinstance(done, Outputs) else done.premise


TABLE = np.array([[0.5, -0.0], [np.nan, 2.0]], np.float32)


def test_the_maps_of_rows_have_their_keys_in_ascending_order() -> None:
    made = applied("ZipMap", TABLE, classlabels_int64s=(5, -3))
    rows = tuple(mapped({5: a, -3: b}) for a, b in TABLE)
    assert identical(made, Sequence(ValueType("map", "int64", inner=FLOAT), rows))
    made = applied("ZipMap", TABLE[0], classlabels_strings=("b", "\u00e9"))
    assert [key for key, _ in made.items[0].items] == [b"b", "\u00e9".encode()]


def test_of_columns_with_one_label_the_last_one_counts() -> None:
    made = applied("ZipMap", np.array([[1, 2, 3]], np.float32), classlabels_int64s=(7, 1, 7))
    assert identical(made.items[0], mapped({1: 2, 7: 3}))


def test_no_rows_make_a_sequence_without_entries_and_no_labels_empty_maps() -> None:
    assert applied("ZipMap", TABLE[:0], classlabels_int64s=(1, 2)).items == ()
    assert [row.items for row in applied("ZipMap", TABLE[:, :0], classlabels_int64s=()).items] == [(), ()]


def test_the_bound_of_a_map_is_that_of_its_values_by_ascending_keys() -> None:
    asked = Application(f"{DOMAIN}::ZipMap", 1, (TABLE,), {"classlabels_strings": ("b", "a")}, (True,))
    limits = bound.apply(asked)
    assert isinstance(limits, bound.Bounds)
    (rows,) = limits.values
    assert isinstance(rows, tuple) and len(rows) == 2
    first = rows[0]
    assert isinstance(first, tuple) and [float(it.least) for it in first] == [-0.0, 0.5]  # type: ignore[union-attr]


def test_a_vocabulary_picks_values_and_has_every_key() -> None:
    words = mapped({b"a": 4, b"c": 8}, key="string")
    assert applied("DictVectorizer", words, string_vocabulary=("a", "c", "b", "a")).tolist() == [4, 8, 0, 4]
    assert "every key" in applied("DictVectorizer", words, string_vocabulary=("a", "b"))
    assert "type of the keys" in applied("DictVectorizer", words, int64_vocabulary=(1,))
    texts = mapped({3: b"x"}, "string")
    assert applied("DictVectorizer", texts, int64_vocabulary=(1, 3)).tolist() == [b"", b"x"]
    assert applied("DictVectorizer", mapped({}), int64_vocabulary=(1, 3)).tolist() == [0, 0]


def test_a_map_is_packed_densely_or_by_its_keys() -> None:
    numbers = mapped({7: -2.5, 0: 1.5})
    assert applied("CastMap", numbers, cast_to="TO_INT64").tolist() == [[1, -2]]
    sparse = {"map_form": "SPARSE", "max_map": 9}
    assert applied("CastMap", numbers, **sparse).tolist() == [[1.5, 0, 0, 0, 0, 0, 0, -2.5, 0]]
    assert "positions" in applied("CastMap", numbers, map_form="SPARSE", max_map=7)
    assert "positions" in applied("CastMap", mapped({-1: 1}), **sparse)
    assert "strings only" in applied("CastMap", numbers, cast_to="TO_STRING")
    texts = mapped({1: b"q"}, "string")
    found = applied("CastMap", texts, cast_to="TO_STRING", map_form="SPARSE", max_map=2)
    assert found.tolist() == [[b"0.f", b"q"]]
    assert applied("CastMap", mapped({})).shape == (1, 0)


def model(op_type: str, given: onnx.ValueInfoProto, **attributes: Any) -> onnx.ModelProto:
    """A model of one node whose output has the type that onnxruntime infers."""
    node = helper.make_node(op_type, ["x"], ["y"], domain=DOMAIN, **attributes)
    graph = helper.make_graph([node], "g", [given], [onnx.ValueInfoProto(name="y")])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def theirs(proto: onnx.ModelProto, given: Any) -> Any:
    """What onnxruntime gives, None where it refuses."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {"x": given})[0]
    except Exception:
        return None


def as_texts(value: Map) -> dict[Any, float]:
    """A map as onnxruntime takes and gives it."""
    return {key.decode() if isinstance(key, bytes) else key: float(item[()]) for key, item in value.items}  # type: ignore[index]


@pytest.mark.parametrize("chosen", seeds(200, 12))
def test_onnxruntime_makes_the_same_maps(chosen: range) -> None:
    for seed in chosen:
        rng = np.random.default_rng(seed)
        rows, columns = int(rng.integers(0, 4)), int(rng.integers(1, 5))
        table = rng.normal(size=(rows, columns)).astype(np.float32)
        keys = [int(k) for k in rng.integers(-3, 4, columns)]
        labels: dict[str, Any] = {"classlabels_int64s": keys}
        if rng.random() < 0.5:
            labels = {"classlabels_strings": [str(rng.choice(["a", "B", "\u00e9", "", "ab"])) + str(k) for k in keys]}
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, columns])
        found = theirs(model("ZipMap", given, **labels), table)
        ours = applied("ZipMap", table, **{name: tuple(it) for name, it in labels.items()})
        assert [as_texts(row) for row in ours.items] == found, seed
        assert [list(as_texts(row)) for row in ours.items] == [list(row) for row in found], seed


@pytest.mark.parametrize("chosen", seeds(200, 12))
def test_onnxruntime_reads_maps_as_the_text_does(chosen: range) -> None:
    """Of the kinds that its Python interface takes: values of type float."""
    compared = 0
    for seed in chosen:
        rng = np.random.default_rng(seed)
        key = str(rng.choice(["int64", "string"]))
        keys = [int(k) for k in rng.permutation(6)[: rng.integers(0, 6)]]
        names = [str(k).encode() for k in keys] if key == "string" else keys
        value = mapped(dict(zip(names, rng.normal(size=len(keys)).astype(np.float32), strict=True)), key=key)
        kind = helper.make_map_type_proto(CODES[key], helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        given = helper.make_value_info("x", kind)
        vocabulary = [int(k) for k in rng.permutation(8)[: rng.integers(1, 9)]]
        listed: Any = [str(k) for k in vocabulary] if key == "string" else vocabulary
        name = "string_vocabulary" if key == "string" else "int64_vocabulary"
        asked: list[tuple[str, dict[str, Any]]] = [("DictVectorizer", {name: listed})]
        if key == "int64":
            form = str(rng.choice(["DENSE", "SPARSE"]))
            asked.append(
                ("CastMap", {"map_form": form, "max_map": 7, "cast_to": str(rng.choice(["TO_FLOAT", "TO_INT64"]))})
            )
        for op_type, attributes in asked:
            tuples = {n: tuple(it) if isinstance(it, list) else it for n, it in attributes.items()}
            ours = applied(op_type, value, **tuples)
            if isinstance(ours, str) or not keys:  # its Python interface takes no empty dictionary
                continue
            found = theirs(model(op_type, given, **attributes), as_texts(value))
            row = ours[None] if op_type == "DictVectorizer" else ours  # the ledger has it: DictVectorizer-1/axes
            assert found.dtype == row.dtype and found.tolist() == row.tolist(), (seed, op_type)
            compared += 1
    assert compared


def test_a_map_given_by_a_caller_has_its_keys_in_order() -> None:
    kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    proto = model("CastMap", helper.make_value_info("x", kind))
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, None]))
    ended = run(load_proto(proto), {"x": mapped({2: 1, 1: 5})})
    assert ended.outputs["y"].tolist() == [[5, 1]]  # type: ignore[union-attr]
    for items in (((2, scalar(1)), (1, scalar(5))), ((1, scalar(1)), (1, scalar(5))), ((b"1", scalar(1)),)):
        with pytest.raises(Exception, match="ascending order"):
            run(load_proto(proto), {"x": Map("int64", FLOAT, items)})
