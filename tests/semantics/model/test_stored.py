"""The arrays of stored tensors are what onnx reads, whatever field holds them, mapped where that is possible."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, SparseTensorProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.memory import Memory, history_bytes, write
from sonnx.semantics.model.elements import BITS, DTYPES, ELEMENT_TYPES, dtype_of, encode
from sonnx.semantics.model.graph import Constant, Model
from sonnx.semantics.model.loader import load, load_proto
from sonnx.semantics.model.stored import array_of, forget_pages, raw_bytes
from sonnx.semantics.model.values import Array
from sonnx.semantics.resources.process import OutOfBudget
from tables import table

CODES = {name.lower(): code for name, code in TensorProto.DataType.items() if code}
FIXED = sorted(set(DTYPES) - {"string"})
COUNTS = (0, 1, 5, 9001)  # the last one is left in the file


def sample(element: str, count: int) -> Array:
    rng = np.random.default_rng(count)
    dtype = dtype_of(element)
    limit = 2 if element == "bool" else 2 ** min(BITS[element], 8)
    return rng.integers(0, limit, count * dtype.itemsize, np.uint8).view(dtype)


def quiet(element: str, count: int) -> Array:
    """A sample without NaN: Python's floats, through which the fields of a message are set, change their bits."""
    found = sample(element, count)
    if element in ("float", "complex64"):
        parts = found.view(np.float32)
        parts[np.isnan(parts)] = -0.0
    return found


def typed(array: Array, element: str) -> TensorProto:
    """The tensor with its elements in the typed field, by the rules of onnx.proto."""
    proto = TensorProto(name="w", data_type=CODES[element], dims=array.shape)
    field = ELEMENT_TYPES[element].field
    bits = BITS[element]
    entries: Array
    if bits in (2, 4):
        entries = np.frombuffer(encode(array), np.uint8)
    elif bits == 6:
        entries = array.view(np.uint8)
    elif element.startswith("complex"):
        entries = array.view(np.float32 if element == "complex64" else np.float64)
    elif field == "int32_data" and not element.startswith("int"):
        entries = array.view(f"u{array.itemsize}")
    else:
        entries = array
    getattr(proto, field).extend(entries.tolist())
    return proto


def model_proto(tensor: TensorProto | None = None, sparse: SparseTensorProto | None = None) -> ModelProto:
    graph = helper.make_graph([], "g", [], [])
    if tensor is not None:
        graph.initializer.append(tensor)
    if sparse is not None:
        graph.sparse_initializer.append(sparse)
    return helper.make_model(graph, ir_version=10)


def in_file(proto: ModelProto, folder: Path) -> Model:
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return load(folder / "m.onnx")


def constant_of(model: Model) -> Constant:
    graph = model.graphs[0]
    return (*graph.initializers, *graph.sparse_initializers)[0][1]


def array(model: Model) -> Array:
    found = array_of(constant_of(model), model, "w")
    assert not isinstance(found, OutOfBudget)
    assert not found.flags.writeable
    return found


def same(a: NDArray[np.generic], b: NDArray[np.generic]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def unpacked(array: Array, element: str) -> bytes:
    """A model file whose tensor has its elements in the typed field, each behind its tag."""
    proto = typed(array, element)
    field = ELEMENT_TYPES[element].field
    parts = []
    for entry in getattr(proto, field):
        one = TensorProto()
        getattr(one, field).append(entry)
        data = one.SerializeToString()  # tag of a packed field, length, entry
        parts.append(bytes([data[0] & 0xF8 | {"float_data": 5, "double_data": 1}.get(field, 0)]) + data[2:])
    head = TensorProto(name="w", data_type=CODES[element], dims=array.shape).SerializeToString()
    model = model_proto()
    graph = model.graph.SerializeToString() + delimited(5, head + b"".join(parts))
    model.ClearField("graph")
    return model.SerializeToString() + delimited(7, graph)


def delimited(number: int, body: bytes) -> bytes:
    size, length = bytearray(), len(body)
    while length > 127:
        size.append(length & 127 | 128)
        length >>= 7
    size.append(length)
    return bytes([number << 3 | 2]) + bytes(size) + body


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("element", FIXED)
def test_raw_data_are_read_as_onnx_reads_them(element: str, count: int, tmp_path: Path) -> None:
    proto = numpy_helper.from_array(sample(element, count), "w")
    wanted = numpy_helper.to_array(proto)
    assert same(array(in_file(model_proto(proto), tmp_path)), wanted)
    assert same(array(load_proto(model_proto(proto))), wanted)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("element", FIXED)
def test_typed_fields_are_read_as_onnx_reads_them(element: str, count: int, tmp_path: Path) -> None:
    proto = typed(quiet(element, count), element)
    model = in_file(model_proto(proto), tmp_path)
    assert constant_of(model).form == ELEMENT_TYPES[element].field
    assert (constant_of(model).storage is not None) == (count == 9001 and BITS[element] > 2)
    assert same(array(model), quiet(element, count))
    assert same(array(model), numpy_helper.to_array(proto))


@pytest.mark.parametrize("count", [5, 9001])
@pytest.mark.parametrize("element", FIXED)
def test_fields_that_are_not_packed_are_read_alike(element: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(unpacked(quiet(element, count), element))
    model = load(tmp_path / "m.onnx")
    storage = constant_of(model).storage
    assert storage is None if count == 5 else storage is not None and not storage.packed
    assert same(array(model), quiet(element, count))


@pytest.mark.parametrize("form", ["packed", "loose"])
def test_numbers_of_every_length_are_decoded_over_several_blocks(form: str, tmp_path: Path) -> None:
    edges = [value for bits in range(64) for value in ((1 << bits) - 1, -(1 << bits))]
    count = (1 << 20) + 7 if form == "packed" else 9000
    wanted = np.resize(np.array(edges, np.int64), count)
    data = model_proto(typed(wanted, "int64")).SerializeToString() if form == "packed" else unpacked(wanted, "int64")
    (tmp_path / "m.onnx").write_bytes(data)
    assert same(array(load(tmp_path / "m.onnx")), wanted)


@pytest.mark.parametrize("element", FIXED)
def test_external_data_are_read_as_onnx_reads_them(element: str, tmp_path: Path) -> None:
    proto = numpy_helper.from_array(sample(element, 77), "w")
    (tmp_path / "w.bin").write_bytes(b"xyz" + proto.raw_data + b"!")
    external = TensorProto(name="w", data_type=proto.data_type, dims=proto.dims, raw_data=b"x")
    set_external_data(external, "w.bin", offset=3, length=len(proto.raw_data))
    external.ClearField("raw_data")
    assert same(array(in_file(model_proto(external), tmp_path)), numpy_helper.to_array(proto))


@pytest.mark.parametrize("count", COUNTS)
def test_strings_are_bytes_objects(count: int, tmp_path: Path) -> None:
    texts = [bytes([i % 251]) * (i % 300) for i in range(count)]
    proto = TensorProto(name="w", data_type=TensorProto.STRING, dims=[count], string_data=texts)
    for model in (in_file(model_proto(proto), tmp_path), load_proto(model_proto(proto))):
        assert array(model).tolist() == texts


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_weights_stay_in_the_mapping_of_their_file(tmp_path: Path) -> None:
    weights = np.arange(1 << 20, dtype=np.float32)
    model = in_file(model_proto(numpy_helper.from_array(weights, "w")), tmp_path)
    found = array(model)
    assert same(found, weights)
    assert np.shares_memory(found.view(np.uint8), array(model).view(np.uint8)), "one mapping for all arrays"
    M = write(Memory(1 << 30), 0, encode(found))
    assert history_bytes([M]) < 2000
    raw = raw_bytes(constant_of(model), model, "w")
    assert np.shares_memory(np.frombuffer(raw, np.uint8), found.view(np.uint8))


def resident(path: Path) -> int:
    """The bytes of a mapped file that are in memory."""
    parts = Path("/proc/self/smaps").read_text(encoding="utf-8").split(str(path))[1:]
    return sum(1024 * int(part.split("Rss:")[1].split()[0]) for part in parts)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the pages of a mapping are counted on Linux alone")
def test_pages_that_are_forgotten_are_read_again(tmp_path: Path) -> None:
    weights = np.arange(1 << 20, dtype=np.float32)
    model = in_file(model_proto(numpy_helper.from_array(weights, "w")), tmp_path)
    found = array(model)
    assert same(found, weights)
    path = tmp_path / "m.onnx"
    assert resident(path) >= weights.nbytes
    forget_pages(found[5:-5])
    assert resident(path) < weights.nbytes // 8
    assert same(found, weights)
    forget_pages(weights)  # it is mapped from no file


def test_reading_weights_takes_no_descriptor_each(tmp_path: Path) -> None:
    model = in_file(model_proto(numpy_helper.from_array(np.zeros(5000, np.float32), "w")), tmp_path)
    before = descriptors()
    arrays = [array(model) for _ in range(50)]
    assert descriptors() <= before + 1
    del arrays
    assert descriptors() == before


@table("linear", [True, False], ids=["linear", "by-axis"])
@table("element", ["float", "int64", "bool", "float16", "int4", "string"])
def test_sparse_tensors_are_made_dense(element: str, linear: bool) -> None:
    positions = [1, 2, 14]
    indices = np.array(positions, np.int64) if linear else np.array([divmod(p, 5) for p in positions], np.int64)
    values: Array
    if element == "string":
        values = np.array([b"a", b"", b"c"], object)
        stored = TensorProto(name="w", data_type=TensorProto.STRING, dims=[3], string_data=values.tolist())
    else:
        values = np.array([1, 0, 1]).astype(dtype_of(element))
        stored = numpy_helper.from_array(values, "w")
    sparse = SparseTensorProto(values=stored, indices=numpy_helper.from_array(indices, "i"), dims=[3, 5])
    found = array(load_proto(model_proto(sparse=sparse)))
    wanted = np.full(15, b"" if element == "string" else 0).astype(values.dtype)
    wanted[positions] = values
    assert found.dtype == values.dtype
    assert found.tolist() == wanted.reshape(3, 5).tolist()


def refused(proto: ModelProto, message: str) -> None:
    model = load_proto(proto)
    with pytest.raises(ModelError, match=message) as caught:
        array_of(constant_of(model), model, "w\n<b>")
    assert "\n" not in str(caught.value)


@table(
    ("indices", "message"),
    [
        (np.array([0, 15]), "an index outside its shape"),
        (np.array([-1, 2]), "an index outside its shape"),
        (np.array([[0, 0], [0, 5]]), "an index outside its shape"),
        (np.array([2, 1]), "do not ascend"),
        (np.array([2, 2]), "do not ascend"),
        (np.array([[1, 0], [0, 4]]), "do not ascend"),
        (np.array([1, 2, 3]), "indices of int64 and shape"),
        (np.array([[1], [2]]), "indices of int64 and shape"),
        (np.array([1, 2], np.int32), "indices of int32"),
    ],
)
def test_indices_of_a_sparse_tensor_that_name_no_place_are_refused(indices: Array, message: str) -> None:
    values = numpy_helper.from_array(np.ones(2, np.float32), "w")
    sparse = SparseTensorProto(values=values, indices=numpy_helper.from_array(indices, "i"), dims=[3, 5])
    refused(model_proto(sparse=sparse), message)


def test_a_huge_dense_form_is_refused_before_it_is_made() -> None:
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    indices = numpy_helper.from_array(np.array([5]), "i")
    model = load_proto(model_proto(sparse=SparseTensorProto(values=values, indices=indices, dims=[1 << 40, 1 << 20])))
    found = array_of(constant_of(model), model, "w", budget=1 << 20)
    assert isinstance(found, OutOfBudget)
    assert (found.needed, found.budget) == (1 << 62, 1 << 20)


def test_only_what_is_decoded_counts_against_the_budget(tmp_path: Path) -> None:
    weights = np.ones(9001, np.int64)
    mapped = in_file(model_proto(numpy_helper.from_array(weights, "w")), tmp_path)
    assert not isinstance(array_of(constant_of(mapped), mapped, budget=0), OutOfBudget)
    decoded = in_file(model_proto(typed(weights, "int64")), tmp_path)
    assert isinstance(array_of(constant_of(decoded), decoded, budget=9001 * 8 - 1), OutOfBudget)
    assert not isinstance(array_of(constant_of(decoded), decoded, budget=9001 * 8), OutOfBudget)


@table(
    ("tensor", "message"),
    [
        (TensorProto(data_type=1, dims=[3], raw_data=bytes(11)), "has 11 bytes in raw_data, .* need 12"),
        (TensorProto(data_type=1, dims=[3], float_data=[1, 2]), "has 2 entries in float_data, .* need 3"),
        (TensorProto(data_type=1, dims=[3]), "has 0 entries in float_data, .* need 3"),
        (TensorProto(data_type=1, dims=[2], int32_data=[1, 2]), "of float has its elements in int32_data"),
        (TensorProto(data_type=8, dims=[1], raw_data=b"a"), "of string has its elements in raw_data"),
        (TensorProto(data_type=3, dims=[1], int32_data=[200]), "no elements that can be read"),
        (TensorProto(data_type=9, dims=[2], raw_data=b"\0\2"), "neither 0 nor 1"),
        (TensorProto(data_type=1, dims=[-2], raw_data=b""), "negative dimension"),
        (TensorProto(dims=[1], raw_data=b"a"), "of unset type"),
    ],
)
def test_elements_that_do_not_suit_their_type_and_shape_are_refused(tensor: TensorProto, message: str) -> None:
    tensor.name = "w"
    refused(model_proto(tensor), message)


def test_an_entry_out_of_range_is_refused_in_a_file_too(tmp_path: Path) -> None:
    proto = TensorProto(name="w", data_type=TensorProto.INT8, dims=[9000], int32_data=[0] * 8999 + [128])
    model = in_file(model_proto(proto), tmp_path)
    with pytest.raises(ModelError, match="out of range"):
        array_of(constant_of(model), model)


def test_an_elided_tensor_has_no_array() -> None:
    model = load_proto(model_proto(numpy_helper.from_array(np.ones(1, np.float32), "w")))
    elided = replace(constant_of(model), form="", stored=0, data=None)
    with pytest.raises(ModelError, match="the source leaves them out"):
        array_of(elided, model)


def test_a_file_that_changed_or_went_is_noticed(tmp_path: Path) -> None:
    model = in_file(model_proto(numpy_helper.from_array(np.ones(9000, np.float32), "w")), tmp_path)
    path = tmp_path / "m.onnx"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ModelError, match="changed since the model was loaded"):
        array_of(constant_of(model), model)
    path.unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        array_of(constant_of(model), model)
