"""The wire scanner: what it leaves out, where that lies, and every encoding that it refuses."""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.loader.wire import ENUMS, MARK, MAX_DEPTH, MESSAGES, Payload, scan
from tables import table

MODELS = Path(__file__).parents[4] / ".." / "shared" / "models"
WHEEL = Path(onnx.__file__).parent / "backend" / "test" / "data"


def varint(value: int, length: int = 0) -> bytes:
    """`length` pads the number with bytes that it does not need."""
    out = bytearray()
    while value > 127 or len(out) + 1 < length:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value % 2**64)


def block(field: int, *body: bytes) -> bytes:
    content = b"".join(body)
    return varint(field << 3 | 2) + varint(len(content)) + content


def graph(*body: bytes) -> bytes:
    return block(7, *body)


def node(*body: bytes) -> bytes:
    return graph(block(1, *body))


def tensor(*body: bytes) -> bytes:
    return graph(block(5, *body))


def tensors(message: Message) -> Iterator[TensorProto]:
    for _, value in message.ListFields():
        parts = [value] if isinstance(value, Message) else value
        for part in parts if isinstance(parts, Iterable) else ():
            if isinstance(part, TensorProto):
                yield part
            if isinstance(part, Message):
                yield from tensors(part)


def decode(buffer: bytes, place: Payload) -> list[object]:
    """The elements at a payload's place, read by protobuf from a tensor that holds nothing else."""
    body = buffer[place.offset : place.offset + place.length]
    spec = next(spec for spec in MESSAGES["TensorProto"] if spec.name == place.field)
    read = TensorProto.FromString(block(spec.number, body) if place.packed else body)
    found = getattr(read, place.field)
    return [found] if isinstance(found, bytes) else list(found)


def assert_stripped(buffer: bytes, keep: int) -> None:
    """The stripped model differs from the whole one in the payloads alone, and those are where the scan says."""
    scanned = scan(buffer, keep=keep)
    whole, stripped = onnx.ModelProto.FromString(buffer), onnx.ModelProto.FromString(scanned.stripped)
    places = []
    for full, cut in zip(tensors(whole), tensors(stripped), strict=True):
        place = scanned.payload(cut)
        if place is None:
            continue
        places.append(place)
        found = getattr(full, place.field)
        elements = decode(buffer, place)
        assert struct_equal(elements, [found] if isinstance(found, bytes) else list(found))
        assert place.count == (len(found) if not isinstance(found, bytes) else len(elements[0]))  # type: ignore[arg-type]
        assert place.length > keep
        full.ClearField(place.field)
        assert cut.metadata_props.pop().key == MARK
    assert sorted(places, key=lambda place: place.offset) == list(scanned.payloads)
    assert whole.SerializeToString(deterministic=True) == stripped.SerializeToString(deterministic=True)


def struct_equal(left: list[object], right: list[object]) -> bool:
    """Equality that tells NaN from NaN by its bits."""
    if left and isinstance(left[0], float):
        return struct.pack(f"{len(left)}d", *left) == struct.pack(f"{len(right)}d", *right)
    return left == right


def model_with(*stored: TensorProto, constant: TensorProto | None = None) -> onnx.ModelProto:
    nodes = [] if constant is None else [helper.make_node("Constant", [], ["c"], value=constant)]
    return helper.make_model(helper.make_graph(nodes, "g", [], [], list(stored)))


# ---- the table of messages


def descriptors(start: Descriptor) -> dict[str, Descriptor]:
    found: dict[str, Descriptor] = {}
    waiting = [start]
    while waiting:
        message = waiting.pop()
        if message.full_name not in found:
            found[message.full_name] = message
            waiting += [spec.message_type for spec in message.fields if spec.message_type]
    return {name.removeprefix("onnx."): message for name, message in found.items()}


def described(spec: FieldDescriptor) -> tuple[int, str, str, bool, str]:
    if spec.message_type:
        kind = spec.message_type.full_name.removeprefix("onnx.")
    elif spec.enum_type:
        kind = spec.enum_type.name
    else:
        names = ["int64", "int32", "uint64", "float", "double", "string", "bytes"]
        kind = next(name for name in names if getattr(FieldDescriptor, f"TYPE_{name.upper()}") == spec.type)
    oneof = spec.containing_oneof.name if spec.containing_oneof else ""
    return spec.number, spec.name, kind, spec.is_repeated, oneof


@table("name", descriptors(onnx.ModelProto.DESCRIPTOR))
def test_the_table_has_every_field_of_the_installed_onnx(name: str) -> None:
    ours = {(spec.number, spec.name, spec.type, spec.repeated, spec.group) for spec in MESSAGES[name]}
    assert {described(spec) for spec in descriptors(onnx.ModelProto.DESCRIPTOR)[name].fields} <= ours


def test_the_table_has_every_enumeration_value_of_the_installed_onnx() -> None:
    assert max(onnx.AttributeProto.AttributeType.values()) == ENUMS["AttributeType"]
    assert max(TensorProto.DataLocation.values()) == ENUMS["DataLocation"]


# ---- what is left out


@pytest.mark.parametrize("keep", [0, 100, 4096])
def test_only_payloads_above_the_limit_leave_and_their_places_are_exact(keep: int) -> None:
    rng = np.random.default_rng(1)
    raw = numpy_helper.from_array(rng.standard_normal((7, 11)).astype(np.float32), "raw")
    typed = [
        helper.make_tensor("f", TensorProto.FLOAT, [1500], rng.standard_normal(1500).tolist()),
        helper.make_tensor("d", TensorProto.DOUBLE, [33], rng.standard_normal(33).tolist()),
        helper.make_tensor("i32", TensorProto.INT32, [3], [-1, 2**31 - 1, -(2**31)]),
        helper.make_tensor("i64", TensorProto.INT64, [6], [0, -1, 2**63 - 1, -(2**63), 127, 128]),
        helper.make_tensor("u64", TensorProto.UINT64, [2], [2**64 - 1, 300]),
        helper.make_tensor("s", TensorProto.STRING, [4], [b"", b"\xff\xfe", b"x" * 200, "ä".encode()]),
        helper.make_tensor("empty", TensorProto.FLOAT, [0], []),
    ]
    inner = helper.make_graph([], "body", [], [], [raw])
    held = helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)
    model = model_with(raw, *typed, constant=raw)
    model.graph.node.append(held)
    model.graph.sparse_initializer.add().values.CopyFrom(raw)
    assert_stripped(model.SerializeToString(), keep)


def test_unpacked_elements_leave_too() -> None:
    floats = b"".join(b"\x25" + struct.pack("<f", value) for value in (1.5, -0.0, float("inf"), 2.0, 3.0))
    ints = b"".join(number(7, value) for value in (1, -1, 300))
    buffer = graph(block(5, number(1, 5), floats, number(2, 1)), block(5, number(1, 3), ints, number(2, 7)))
    assert [place.packed for place in scan(buffer, keep=0).payloads] == [False, False]
    assert [place.count for place in scan(buffer, keep=0).payloads] == [5, 3]
    assert_stripped(buffer, 0)


def test_a_model_without_large_payloads_comes_back_as_it_is() -> None:
    buffer = model_with(helper.make_tensor("f", TensorProto.FLOAT, [2], [1, 2])).SerializeToString()
    assert scan(buffer).stripped is buffer
    assert scan(buffer).payloads == ()


def test_a_mapped_file_gives_the_same_scan_as_its_bytes(tmp_path: Path) -> None:
    large = numpy_helper.from_array(np.arange(40_000, dtype=np.float32), "large")
    model = model_with(large, *(helper.make_tensor(f"n{i}", TensorProto.INT64, [1], [i]) for i in range(9)))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for keep in (0, 4096):
            assert scan(mapped, keep=keep) == scan(path.read_bytes(), keep=keep)


def test_equal_small_tensors_each_have_their_own_place() -> None:
    constant = block(1, block(5, block(5, block(9, b"abc"))))
    scanned = scan(graph(constant, constant), keep=0)
    assert [place.offset for place in scanned.payloads] == [10, 21]
    assert_stripped(graph(constant, constant), 0)


def test_strings_end_where_their_tensor_ends() -> None:
    buffer = node(block(5, block(5, block(6, b"a"), block(6, b"bc")), block(6)))
    assert [(place.length, place.count) for place in scan(buffer, keep=0).payloads] == [(7, 2)]
    assert_stripped(buffer, 0)


def test_the_order_of_fields_is_free() -> None:
    first, second = block(5, number(1, 9), block(9, b"a" * 9)), block(5, block(9, b"b" * 8), number(1, 8))
    buffer = graph(first, block(1, block(4, b"Relu")), second, block(2, b"g"), block(1, block(4, b"Abs")))
    assert [place.length for place in scan(buffer, keep=0).payloads] == [9, 8]
    assert_stripped(buffer, 0)


def valid_models() -> list[Path]:
    shared = [path for path in MODELS.rglob("*.onnx") if "invalid" not in path.parts]
    return sorted(path for path in [*shared, *WHEEL.rglob("*.onnx")] if path.stat().st_size < 2**21)


@pytest.mark.parametrize("folder", [MODELS, WHEEL], ids=["shared", "wheel"])
def test_every_real_model_is_read_and_stripped_exactly(folder: Path) -> None:
    paths = [path for path in valid_models() if path.is_relative_to(folder)]
    if not paths:
        pytest.skip(f"no models in {folder}")
    for path in paths:
        assert_stripped(path.read_bytes(), 256)


# ---- what is refused

NAMED = block(3, b"n")
FLOAT = b"\x25" + struct.pack("<f", 1.0)
SEQUENCE = block(4, b"")
REFUSED = {
    "cut off in a tag": (graph(b"\xaa"), "byte 2: GraphProto is cut off"),
    "cut off in a length": (b"\x3a", "byte 0: ModelProto is cut off"),
    "cut off in a number": (b"\x08\xff", "byte 0: ModelProto is cut off"),
    "longer than the file": (b"\x3a\x05\x12\x01", "byte 0: ModelProto.graph is longer than the message around it"),
    "longer than its message": (graph(b"\x12\x05ab") + b"xxxx", "byte 2: GraphProto.name is longer"),
    "number past its message": (node(block(5, b"\x18")) + number(1, 7), "AttributeProto is cut off"),
    "float past its message": (node(block(5, b"\x15\x00\x00")) + bytes(9), "AttributeProto.f is longer"),
    "overlong number": (b"\x08\x87\x00", "ModelProto.ir_version has a number written with more bytes than it needs"),
    "overlong length": (b"\x12\x81\x00x", "ModelProto.producer_name has a number written with more bytes"),
    "overlong tag": (b"\x88\x00\x07", "ModelProto has a number written with more bytes than it needs"),
    "number of 11 bytes": (b"\x08" + b"\xff" * 10 + b"\x01", "ModelProto.ir_version has a number of more than 10 byt"),
    "number above 64 bits": (b"\x08" + b"\xff" * 9 + b"\x02", "ModelProto.ir_version has a number of more than 64 b"),
    "int32 above 32 bits": (tensor(number(2, 2**31)), "TensorProto.data_type does not fit 32 bits"),
    "int32 below 32 bits": (tensor(number(2, -(2**31) - 1)), "TensorProto.data_type does not fit 32 bits"),
    "wrong wire type": (b"\x0a\x00", "byte 0: ModelProto has the field ir_version with the wrong wire type 2"),
    "text as number": (graph(number(2, 1)), "byte 2: GraphProto has the field name with the wrong wire type 0"),
    "group": (b"\x3b\x3c", "ModelProto has the field graph as a group"),
    "unknown field": (number(31, 1), "byte 0: ModelProto has no field 31"),
    "unknown field of large number": (number(4000, 1), "byte 0: ModelProto has no field 4000"),
    "unknown field with the first byte of a known one": (b"\xa2\x02\x00", "byte 0: ModelProto has no field 36"),
    "unknown inner field": (tensor(number(15, 1)), "byte 4: TensorProto has no field 15"),
    "field number 0": (b"\x00\x01", "ModelProto has no field 0"),
    "unknown attribute type": (node(block(5, number(20, 15))), "AttributeProto.type has the value 15"),
    "unknown data location": (tensor(number(14, 2)), "TensorProto.data_location has the value 2"),
    "two graphs": (graph() + graph(), "byte 2: ModelProto.graph occurs twice"),
    "two names": (node(NAMED, NAMED), "byte 7: NodeProto.name occurs twice"),
    "two numbers": (number(1, 7) + number(1, 8), "ModelProto.ir_version occurs twice"),
    "two bodies of an attribute": (node(block(5, block(6) * 2)), "AttributeProto.g occurs twice"),
    "two dimension values": (
        graph(block(11, block(2, block(1, block(2, block(1, number(1, 3), block(2, b"N"))))))),
        "TensorShapeProto.Dimension.dim_param is set where another value of the same message is set",
    ),
    "two types": (graph(block(11, block(2, SEQUENCE, SEQUENCE))), "TypeProto.sequence_type is set where another value"),
    "name that is not UTF-8": (node(block(3, b"ab\xff")), "byte 8: NodeProto.name is not UTF-8"),
    "surrogate in a name": (node(block(3, b"\xed\xa0\x80")), "NodeProto.name is not UTF-8"),
    "key that is not UTF-8": (block(14, block(1, b"\xc0\x80")), "StringStringEntryProto.key is not UTF-8"),
    "raw and typed elements": (
        tensor(block(4, bytes(4)), block(9, bytes(4))),
        "TensorProto.raw_data comes after other elements of the same tensor",
    ),
    "elements in two fields": (tensor(block(4), block(7)), "TensorProto.int64_data comes after other elements"),
    "elements packed and not": (tensor(block(4, bytes(4)), FLOAT), "TensorProto.float_data comes after other elements"),
    "elements not packed and packed": (tensor(FLOAT, block(4)), "TensorProto.float_data comes after other elements"),
    "elements in two places": (tensor(FLOAT, number(2, 1), FLOAT), "TensorProto.float_data comes after other elements"),
    "raw data twice": (tensor(block(9) * 2), "TensorProto.raw_data comes after other elements"),
    "packed float of 3 bytes": (tensor(block(4, b"abc")), "TensorProto.float_data has 3 bytes, no multiple of 4"),
    "packed double of 4 bytes": (tensor(block(10, b"abcd")), "TensorProto.double_data has 4 bytes, no multiple of 8"),
    "packed number cut off": (
        tensor(block(7, b"\x01\xff")),
        "byte 7: TensorProto.int64_data has an element that is cut",
    ),
    "packed number overlong": (tensor(block(7, b"\x01\x81\x00")), "TensorProto.int64_data has an element that is cut"),
    "packed int32 above 32 bits": (tensor(block(5, varint(2**31))), "TensorProto.int32_data has an element"),
    "packed block too long": (tensor(b"\x3a\x05\x01"), "TensorProto.int64_data is longer than the message around it"),
    "raw data too long": (tensor(b"\x4a\x05\x01"), "TensorProto.raw_data is longer than the message around it"),
    "strings too long": (tensor(b"\x32\x00\x32\x05\x01") + bytes(9), "TensorProto.string_data is longer than the mess"),
    "unpacked number overlong": (tensor(b"\x38\x81\x00"), "TensorProto.int64_data has an element that is cut off"),
    "list packed twice": (node(block(5, block(8, b"\x01") * 2)), "AttributeProto.ints is packed more than once, or"),
    "list packed and not": (node(block(5, block(8), number(8, 1))), "AttributeProto.ints is packed more than once, or"),
    "list not packed and packed": (
        node(block(5, number(8, 1), block(8))),
        "AttributeProto.ints is packed more than on",
    ),
    "elements here and outside": (
        tensor(number(14, 1), block(9, b"abcd")),
        "byte 4: TensorProto has elements here and in an external file",
    ),
    "the reserved key": (
        tensor(block(16, block(1, MARK.encode()))),
        "StringStringEntryProto.key is sonnx.payload, a key that sonnx reserves",
    ),
}


@table("name", REFUSED)
def test_an_encoding_with_two_readings_is_refused_in_one_line(name: str) -> None:
    buffer, message = REFUSED[name]
    with pytest.raises(ModelError, match=re.escape(message)) as caught:
        scan(buffer, keep=0)
    text = str(caught.value)
    assert text.isprintable()
    assert re.match(r"byte \d+: [A-Z]", text)
    assert len(text.split(": ")) >= 3, "says where, what, and what to do"


def nested(levels: int) -> bytes:
    """A model whose deepest message lies `levels` messages deep: 3 each for graph, node and attribute, then types."""
    graphs, types = divmod(levels - 1, 3)
    content = b""
    for field in (2, 11)[:types][::-1]:
        content = block(field, content)
    for _ in range(graphs):
        content = block(1, block(5, block(6, content)))
    return graph(content)


@pytest.mark.parametrize("levels", [1, 2, 3, 50, MAX_DEPTH])
def test_nesting_up_to_the_limit_is_read_by_both_readers(levels: int) -> None:
    assert onnx.ModelProto.FromString(scan(nested(levels)).stripped).HasField("graph")


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 10_000])
def test_deeper_nesting_is_refused_without_a_crash(levels: int) -> None:
    with pytest.raises(ModelError, match="nested deeper than 99 messages"):
        scan(nested(levels))


def test_a_message_that_was_read_before_is_too_deep_all_the_same() -> None:
    types = block(14, block(4, block(1, block(4, block(1)))))
    deep = block(5, types)
    for _ in range(32):
        deep = block(5, block(6, block(1, deep)))
    with pytest.raises(ModelError, match="nested deeper"):
        scan(graph(block(1, block(5, types)), block(1, deep)))


def test_a_stripped_tensor_at_the_limit_of_nesting_is_read_by_protobuf() -> None:
    content = block(15, block(1, block(9, b"abc")))
    for _ in range((MAX_DEPTH - 3) // 3):
        content = block(1, block(5, block(6, content)))
    deep = scan(graph(content), keep=0)
    with pytest.raises(ModelError, match="nested deeper"):
        scan(graph(block(1, block(5, block(6, content)))))
    assert [deep.payload(part) for part in tensors(onnx.ModelProto.FromString(deep.stripped))] == [*deep.payloads]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 12))
def test_a_number_has_one_encoding(value: int, length: int) -> None:
    shortest = varint(value % 2**64)
    forms = {varint(value % 2**64, length), shortest}
    places = [
        (lambda form: b"\x08" + form),
        (lambda form: tensor(block(7, form))),
        (lambda form: tensor(b"\x38" + form)),
    ]
    for place in places:
        for form in forms:
            if form == shortest:
                scan(place(form), keep=0)
            else:
                with pytest.raises(ModelError):
                    scan(place(form), keep=0)


@given(st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=4))
def test_int32_elements_are_read_when_they_fit(values: list[int]) -> None:
    body = b"".join(varint(value % 2**64) for value in values)
    fits = all(value % 2**64 < 2**31 or value % 2**64 >= 2**64 - 2**31 for value in values)
    for buffer in (tensor(block(5, body)), tensor(b"".join(number(5, value) for value in values))):
        if fits:
            assert scan(buffer, keep=0).payloads[0].count == len(values)
        else:
            with pytest.raises(ModelError):
                scan(buffer, keep=0)
