from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper, numpy_helper
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.files.numpy_files import entry_name, read_npy, read_npz, write_npz
from sonnx.semantics.machine.files.protobuf_files import value_from_proto
from sonnx.semantics.machine.inputs import random_tensor
from sonnx.semantics.machine.memory import type_of
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Map, Optional, Sequence, Value, identical

FLOAT = ValueType("tensor", "float")
NAMES = [
    "x",
    "/conv1/Conv_output_0",
    "a b",
    "file",
    "ü",
    "a.npy",
    "..",
    "../x",
    "",
    "\0",
    "a\\b",
    "%41",
    "\udc80",
    "x\n",
]


def back(path: Path, values: dict[str, Value]) -> dict[str, Value]:
    write_npz(path, values)
    return read_npz(path, {name: type_of(value) for name, value in values.items()})


@pytest.mark.parametrize("element", sorted(DTYPES))
@pytest.mark.parametrize("shape", [(), (3, 5), (0, 2)], ids=str)
def test_a_tensor_of_every_element_type_comes_back(tmp_path: Path, element: str, shape: tuple[int, ...]) -> None:
    value = random_tensor(element, shape, np.random.default_rng(1))
    assert identical(back(tmp_path / "f.npz", {"x": value})["x"], value)


def test_every_name_comes_back_and_no_entry_leaves_the_folder(tmp_path: Path) -> None:
    values: dict[str, Value] = {name: np.array(i, np.int64) for i, name in enumerate(NAMES)}
    found = back(tmp_path / "f.npz", values)
    assert [int(np.asarray(found[name])) for name in NAMES] == list(range(len(NAMES)))
    with zipfile.ZipFile(tmp_path / "f.npz") as archive:
        for info in archive.infolist():
            assert ".." not in info.filename.split("/") and info.filename.isprintable()
            assert "\\" not in info.filename


def test_numpy_reads_plain_names_as_they_are(tmp_path: Path) -> None:
    write_npz(tmp_path / "f.npz", {"/a/b": np.ones(2, np.float32), "t": np.array([b"x", b"caf\xc3\xa9"], object)})
    with np.load(tmp_path / "f.npz") as found:
        assert np.array_equal(found["/a/b"], [1, 1])
        assert found["t"].tolist() == ["x", "café"]


def test_what_numpy_has_no_type_for_is_stored_as_integers_of_its_bits(tmp_path: Path) -> None:
    values: dict[str, Value] = {"b": np.array([1, -2], ml_dtypes.bfloat16), "q": np.array([3, -4], ml_dtypes.int4)}
    write_npz(tmp_path / "f.npz", values)
    with np.load(tmp_path / "f.npz") as found:
        assert (found["b"].tolist(), str(found["b.dtype"])) == ([0x3F80, 0xC000], "bfloat16")
        assert found["q"].dtype == np.uint8 and str(found["q.dtype"]) == "int4"


def test_sequences_optionals_and_maps_come_back_as_indexed_entries(tmp_path: Path) -> None:
    one, two = np.array([1, 2], np.float32), np.array([[3]], np.float32)
    values: dict[str, Value] = {
        "s": Sequence(FLOAT, (one, two)),
        "empty": Sequence(FLOAT, ()),
        "none": Optional(FLOAT, None),
        "some": Optional(FLOAT, one),
        "deep": Sequence(ValueType("sequence", inner=FLOAT), (Sequence(FLOAT, (one,)), Sequence(FLOAT, ()))),
        "map": Map("string", FLOAT, ((b"a", one), (b"b", two))),
        "numbers": Map("int64", FLOAT, ((-1, one), (5, two))),
    }
    found = back(tmp_path / "f.npz", values)
    assert [name for name in values if not identical(found[name], values[name])] == []
    with np.load(tmp_path / "f.npz") as raw:
        assert int(raw["s.length"]) == 2 and np.array_equal(raw["s[1]"], two)


def test_the_same_values_give_the_same_bytes(tmp_path: Path) -> None:
    values: dict[str, Value] = {"x": np.arange(5), "y": np.array([b"t"], object)}
    write_npz(tmp_path / "a.npz", values)
    write_npz(tmp_path / "b.npz", values)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_clashing_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="rename an output"):
        write_npz(tmp_path / "f.npz", {"x": np.array([1], ml_dtypes.bfloat16), "x.dtype": np.array([1])})


def test_an_npy_file_with_objects_is_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ModelError, match=r"no \.npy file"):
        read_npy(tmp_path / "f.npy", None)


def test_an_npy_file_gives_its_tensor_in_native_order_and_as_bits_of_the_declared_type(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.array([1, 2], ">f4"))
    assert identical(read_npy(tmp_path / "f.npy", None), np.array([1, 2], np.float32))
    half = np.array([1, -2], ml_dtypes.bfloat16)
    np.save(tmp_path / "f.npy", half)
    assert identical(read_npy(tmp_path / "f.npy", ValueType("tensor", "bfloat16")), half)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"text"], ids=str)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_what_is_no_file_of_values_is_refused(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"f{suffix}"
    path.write_bytes(content)
    with pytest.raises(ModelError):
        read_npy(path, None) if suffix == ".npy" else read_npz(path, {"x": None})


def test_entry_names_are_told_apart() -> None:
    assert len({entry_name(name) for name in NAMES}) == len(NAMES)


# ---- Protobuf ---------------------------------------------------------------------------------


def test_tensors_sequences_optionals_and_maps_are_read_from_protobuf() -> None:
    one = np.array([1, 2], np.float32)
    tensor = numpy_helper.from_array(one, "x")
    assert identical(value_from_proto(tensor.SerializeToString(), None), one)
    sequence = numpy_helper.from_list([one, one])
    declared = ValueType("sequence", inner=FLOAT)
    assert identical(value_from_proto(sequence.SerializeToString(), declared), Sequence(FLOAT, (one, one)))
    optional = numpy_helper.from_optional(one)
    assert identical(
        value_from_proto(optional.SerializeToString(), ValueType("optional", inner=FLOAT)), Optional(FLOAT, one)
    )
    mapped = helper.make_map("m", 7, [5, -1], numpy_helper.from_list([one, -one]))
    found = value_from_proto(mapped.SerializeToString(), ValueType("map", "int64", inner=FLOAT))
    assert identical(found, Map("int64", FLOAT, ((-1, -one), (5, one))))


def hostile() -> list[Any]:
    external = numpy_helper.from_array(np.ones(2, np.float32), "x")
    external.ClearField("raw_data")
    external.data_location = 1
    external.external_data.add(key="location", value="/etc/passwd")
    marked = numpy_helper.from_array(np.ones(2, np.float32), "x")
    marked.raw_data = b"abc"
    return [external, marked]


@pytest.mark.parametrize("proto", hostile(), ids=["external", "short"])
def test_a_hostile_tensor_is_refused(proto: Any) -> None:
    with pytest.raises(ModelError):
        value_from_proto(proto.SerializeToString(), None)


@pytest.mark.parametrize("content", [b"", b"\xff\xff", b"no protobuf"], ids=str)
def test_what_is_no_message_is_refused(content: bytes) -> None:
    with pytest.raises(ModelError):
        value_from_proto(content, None)
