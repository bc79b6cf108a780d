"""From messages to G: names, scopes, captures, attributes, stored tensors; ill-formed models are represented."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, parser
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Attribute, Constant, Model, Storage, ValueType
from sonnx.semantics.model.loader import load, load_proto
from tables import table

HEADER = '<ir_version: 10, opset_import: ["": 18]>\n'


def read(text: str) -> Model:
    return load_proto(parser.parse_model(HEADER + text))


def names(model: Model, ids: tuple[int | None, ...]) -> list[str | None]:
    return [None if t is None else model.tensors[t].path for t in ids]


def stored(tensor: TensorProto) -> Constant:
    graph = helper.make_graph([], "g", [], [], initializer=[tensor])
    return load_proto(helper.make_model(graph)).graphs[0].initializers[0][1]


# ---- Names and scopes -------------------------------------------------------------------------


def test_paths_carry_position_operator_and_name() -> None:
    proto = parser.parse_model(HEADER + "g (float[2] x) => (float[2] y) { h = Relu (x) y = Neg (h) }")
    proto.graph.node[0].name = "first"
    model = load_proto(proto)
    assert [node.path for node in model.nodes] == ['/0:Relu("first")', "/1:Neg"]
    assert [tensor.path for tensor in model.tensors] == ['/"x"', '/"h"', '/"y"']


def test_a_body_reads_outer_names_and_its_node_captures_them_in_order_of_first_use() -> None:
    model = read("""g (float[2] x, float[2] z, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] u) { p = Neg (z) u = Add (p, x) },
                    else_branch = e () => (float[2] v) { v = Relu (x) }> }""")
    node = model.nodes[0]
    assert names(model, node.captures) == ['/"z"', '/"x"']
    assert [name for name, _ in node.bodies] == ["then_branch", "else_branch"]
    assert model.graphs[node.bodies[0][1]].path == "/0:If.then_branch"


def test_captures_reach_through_several_bodies() -> None:
    model = read("""g (float[2] x, float[2] z, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] u) {
                        l = Neg (c)
                        u = If (c) <then_branch = t2 () => (float[2] w) { w = Add (z, l) },
                                    else_branch = e2 () => (float[2] w2) { w2 = Relu (l) }> },
                    else_branch = e () => (float[2] v) { v = Relu (x) }> }""")
    outer, inner = (node for node in model.nodes if node.op_type == "If")
    assert names(model, outer.captures) == ['/"c"', '/"z"', '/"x"']
    assert names(model, inner.captures) == ['/"z"', '/0:If.then_branch/"l"']


def test_a_name_that_a_body_defines_is_its_own_even_where_it_is_read_before() -> None:
    model = read("""g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] u) { u = Relu (x) x = Neg (u) },
                    else_branch = e () => (float[2] v) { v = Relu (x) }> }""")
    assert names(model, model.nodes[1].inputs) == ['/0:If.then_branch/"x"']
    assert names(model, model.nodes[0].captures) == ['/"x"']


def test_an_outer_tensor_that_is_a_body_output_is_captured() -> None:
    model = read("""g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] x) { q = Neg (c) },
                    else_branch = e () => (float[2] v) { v = Relu (c) }> }""")
    assert names(model, model.graphs[1].outputs) == ['/"x"']
    assert names(model, model.nodes[0].captures) == ['/"x"', '/"c"']


def test_a_dangling_name_of_the_outer_graph_is_one_tensor_for_its_bodies_too() -> None:
    model = read("""g (bool c) => (float[2] y) {
        a = If (c) <then_branch = t () => (float[2] u) { u = Relu (ghost) },
                    else_branch = e () => (float[2] v) { v = Relu (ghost) }>
        y = Add (a, ghost) }""")
    ghosts = [tensor.path for tensor in model.tensors if tensor.name == "ghost"]
    assert ghosts == ['/"ghost"']


def test_absent_inputs_and_outputs_keep_their_positions() -> None:
    model = read('g (float[2] x) => (float[2] y) { y, "" , m = Foo (x, "", x) }')
    assert names(model, model.nodes[0].inputs) == ['/"x"', None, '/"x"']
    assert names(model, model.nodes[0].outputs) == ['/"y"', None, '/"m"']


def test_ill_formed_graphs_are_represented_as_they_are() -> None:
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["b"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("Neg", ["x"], ["a"]),
            helper.make_node("", [], []),
        ],
        "g",
        [helper.make_tensor_value_info("x", 1, [1])] * 2,
        [onnx.ValueInfoProto(name="nowhere"), onnx.ValueInfoProto(name="")],
        initializer=[helper.make_tensor("x", 1, [1], [0.0])] * 2,
    )
    proto = ModelProto(graph=graph)
    proto.graph.node[3].domain = "no.such"
    model = load_proto(proto)
    main = model.graphs[0]
    assert (model.ir_version, model.opsets) == (0, ())
    assert names(model, main.inputs) == ['/"x"', '/"x"']
    assert [t for t, _ in main.initializers] == list(main.inputs)
    assert names(model, main.outputs) == ['/"nowhere"', '/""']
    assert model.nodes[0].outputs == model.nodes[2].outputs
    assert (model.nodes[3].op_type, model.nodes[3].opset, model.nodes[3].version) == ("", None, None)
    assert model.nodes[3].path == '/3:"no.such::"'


# ---- Versions ---------------------------------------------------------------------------------


@table(
    ("domain", "opset", "version"),
    [("", 18, 14), ("ai.onnx", 13, 13), ("", 5, 1), ("", 0, None), ("", 10**9, None), ("other", 1, None)],
)
def test_the_version_in_force_is_the_last_change_at_or_before_the_import(
    domain: str, opset: int, version: int | None
) -> None:
    proto = parser.parse_model(HEADER + "g (float[2] x) => (float[2] y) { y = Relu (x) }")
    proto.opset_import[0].domain, proto.opset_import[0].version = domain, opset
    node = load_proto(proto).nodes[0]
    assert node.version == version
    assert node.opset == (None if domain == "other" else opset)


def test_onnx_has_one_domain_with_two_names() -> None:
    proto = parser.parse_model(HEADER + "g (float[2] x) => (float[2] y) { y = Relu (x) }")
    proto.graph.node[0].domain = "ai.onnx"
    model = load_proto(proto)
    assert (model.nodes[0].domain, model.nodes[0].path, model.nodes[0].version) == ("", "/0:Relu", 14)


def test_before_ir_version_3_the_first_operator_set_is_meant() -> None:
    proto = parser.parse_model(HEADER + "g (float[2] x) => (float[2] y) { y = Relu (x) }")
    proto.ir_version = 2
    del proto.opset_import[:]
    model = load_proto(proto)
    assert (model.nodes[0].opset, model.nodes[0].version, model.opsets) == (1, 1, ())


# ---- Types and attributes ---------------------------------------------------------------------


def test_declared_types_come_from_inputs_outputs_and_value_infos() -> None:
    model = read("g (float[2,N] x) => (seq(int64[3]) y) <bool h, optional(float) o> { h = A (x) y, o = B (h) }")
    declared = {tensor.name: tensor.declared for tensor in model.tensors}
    assert declared["x"] == ValueType("tensor", "float", (2, "N"))
    assert declared["h"] == ValueType("tensor", "bool", ())
    assert declared["y"] == ValueType("sequence", inner=ValueType("tensor", "int64", (3,)))
    assert declared["o"] is not None
    assert declared["o"].kind == "optional"
    assert len(model.graphs[0].value_infos) == 2


def attributes(*protos: AttributeProto, ir_version: int = 10) -> Model:
    node = onnx.NodeProto(op_type="Foo", attribute=protos)
    return load_proto(helper.make_model(helper.make_graph([node], "g", [], []), ir_version=ir_version))


def test_attributes_of_every_kind_are_read() -> None:
    model = attributes(
        helper.make_attribute("i", -3),
        helper.make_attribute("f", 0.5),
        helper.make_attribute("s", "é"),
        helper.make_attribute("is", [1, 2]),
        helper.make_attribute("fs", [1.5]),
        helper.make_attribute("ss", ["a", "b"]),
        helper.make_attribute("t", helper.make_tensor("", 7, [1], [9])),
        helper.make_attribute("tp", helper.make_tensor_type_proto(1, [2])),
        AttributeProto(name="empty", type=AttributeProto.INTS),
        AttributeProto(name="zero", type=AttributeProto.INT),
    )
    found = model.nodes[0].attributes
    assert found["i"] == Attribute("INT", -3)
    assert found["f"] == Attribute("FLOAT", 0.5)
    assert found["s"] == Attribute("STRING", "é".encode())
    assert found["is"] == Attribute("INTS", (1, 2))
    assert found["fs"] == Attribute("FLOATS", (1.5,))
    assert found["ss"] == Attribute("STRINGS", (b"a", b"b"))
    assert found["t"] == Attribute("TENSOR", Constant("int64", (1,), "int64_data", 1, struct.pack("<q", 9)))
    assert found["tp"] == Attribute("TYPE_PROTO", ValueType("tensor", "float", (2,)))
    assert found["empty"] == Attribute("INTS", ())
    assert found["zero"] == Attribute("INT", 0)
    assert model.runnable


def test_lists_of_graphs_are_bodies_with_their_position() -> None:
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "b", [], [])
    model = attributes(helper.make_attribute("gs", [body, body]))
    assert model.nodes[0].bodies == (("gs[0]", 1), ("gs[1]", 2))
    assert model.nodes[0].attributes["gs"] == Attribute("GRAPHS", (1, 2))
    assert [graph.path for graph in model.graphs] == ["/", "/0:Foo.gs[0]", "/0:Foo.gs[1]"]


def test_an_attribute_whose_field_contradicts_its_kind_has_no_value() -> None:
    model = attributes(AttributeProto(name="a", type=AttributeProto.INT, f=1.0))
    assert model.nodes[0].attributes["a"] == Attribute("INT", None)
    assert not model.runnable


def test_the_kind_of_an_attribute_is_inferred_only_before_ir_version_2() -> None:
    assert attributes(AttributeProto(name="a", i=4), ir_version=1).nodes[0].attributes["a"] == Attribute("INT", 4)
    assert attributes(AttributeProto(name="a", i=4)).nodes[0].attributes["a"] == Attribute("UNDEFINED", None)


def test_of_attributes_with_one_name_the_first_counts_and_the_others_are_named() -> None:
    node = attributes(helper.make_attribute("a", 1), helper.make_attribute("a", 2)).nodes[0]
    assert node.attributes == {"a": Attribute("INT", 1)}
    assert node.duplicate_attributes == ("a",)


# ---- Stored tensors ---------------------------------------------------------------------------


@table(
    ("code", "values", "element", "data"),
    [
        (TensorProto.FLOAT, [1.0, -2.0], "float", struct.pack("<2f", 1, -2)),
        (TensorProto.DOUBLE, [1.0], "double", struct.pack("<d", 1)),
        (TensorProto.INT64, [-1], "int64", b"\xff" * 8),
        (TensorProto.INT32, [-1], "int32", b"\xff" * 4),
        (TensorProto.INT8, [-2], "int8", b"\xfe"),
        (TensorProto.UINT8, [254], "uint8", b"\xfe"),
        (TensorProto.BOOL, [True, False], "bool", b"\x01\x00"),
        (TensorProto.UINT32, [2**32 - 1], "uint32", b"\xff" * 4),
        (TensorProto.FLOAT16, [1.0], "float16", b"\x00\x3c"),
        (TensorProto.BFLOAT16, [1.0], "bfloat16", b"\x80\x3f"),
        (TensorProto.COMPLEX64, [1 + 2j], "complex64", struct.pack("<2f", 1, 2)),
        (TensorProto.INT4, [1, -1, 2], "int4", b"\xf1\x02"),
    ],
)
def test_typed_fields_become_little_endian_raw_bytes(
    code: int, values: list[complex], element: str, data: bytes
) -> None:
    constant = stored(helper.make_tensor("w", code, [len(values)], values))
    assert (constant.element, constant.dims, constant.data) == (element, (len(values),), data)
    raw = onnx.numpy_helper.to_array(helper.make_tensor("w", code, [len(values)], values))
    if element != "int4":
        assert raw.tobytes() == data


def test_strings_stay_separate() -> None:
    constant = stored(helper.make_tensor("w", TensorProto.STRING, [2], [b"a", b""]))
    assert (constant.form, constant.stored, constant.data) == ("string_data", 2, (b"a", b""))


def test_an_element_that_does_not_fit_its_type_is_no_data() -> None:
    constant = stored(TensorProto(name="w", dims=[1], data_type=TensorProto.INT8, int32_data=[300]))
    assert (constant.form, constant.stored, constant.data) == ("int32_data", 1, None)


def test_elements_in_the_field_of_another_type_are_no_data() -> None:
    constant = stored(TensorProto(name="w", dims=[1], data_type=TensorProto.FLOAT, int64_data=[300]))
    assert (constant.form, constant.stored, constant.data) == ("int64_data", 1, None)


def test_what_is_stored_is_counted_as_found_and_not_as_the_shape_says() -> None:
    constant = stored(TensorProto(name="w", dims=[10**15], data_type=TensorProto.FLOAT, raw_data=b"abc"))
    assert (constant.stored, constant.data) == (3, b"abc")
    empty = stored(TensorProto(name="w", dims=[3], data_type=TensorProto.FLOAT))
    assert (empty.form, empty.stored, empty.data) == ("float_data", 0, b"")


def test_a_large_tensor_is_a_byte_range_of_the_file(tmp_path: Path) -> None:
    weights = bytes(range(256)) * 64
    tensor = helper.make_tensor("w", TensorProto.UINT8, [len(weights)], weights, raw=True)
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(helper.make_graph([], "g", [], [], [tensor])).SerializeToString())
    constant = load(path).graphs[0].initializers[0][1]
    assert constant.data is None
    assert constant.storage is not None
    assert path.read_bytes()[constant.storage.offset :][: constant.storage.length] == weights
    assert (constant.form, constant.stored, constant.dims) == ("raw_data", len(weights), (len(weights),))


def test_a_model_in_memory_keeps_the_bytes_that_its_ranges_mean() -> None:
    weights = bytes(range(256)) * 64
    tensor = helper.make_tensor("w", TensorProto.UINT8, [len(weights)], weights, raw=True)
    model = load_proto(helper.make_model(helper.make_graph([], "g", [], [], [tensor])))
    storage = model.graphs[0].initializers[0][1].storage
    assert storage is not None
    assert model.content[storage.offset :][: storage.length] == weights
    assert model.files == ()


def test_sparse_initializers_hold_values_and_indices() -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [5.0])
    indices = helper.make_tensor("", TensorProto.INT64, [1], [3])
    graph = helper.make_graph([], "g", [], [], sparse_initializer=[helper.make_sparse_tensor(values, indices, [7])])
    model = load_proto(helper.make_model(graph))
    ((tensor, constant),) = model.graphs[0].sparse_initializers
    assert model.tensors[tensor].name == "s"
    assert (constant.element, constant.dims, constant.sparse) == ("float", (7,), True)
    assert constant.parts is not None
    assert [part.dims for part in constant.parts] == [(1,), (1,)]


# ---- Files ------------------------------------------------------------------------------------


def external(folder: Path, count: int) -> Path:
    tensors = []
    for i in range(count):
        tensor = TensorProto(name=f"w{i}", dims=[4], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "w.bin"), ("offset", str(16 * i)), ("length", "16")):
            tensor.external_data.add(key=key, value=value)
        tensors.append(tensor)
    path = folder / "m.onnx"
    path.write_bytes(helper.make_model(helper.make_graph([], "g", [], [], tensors)).SerializeToString())
    return path


def test_external_files_are_digested_once_and_not_held(tmp_path: Path) -> None:
    path = external(tmp_path, 2)
    (tmp_path / "w.bin").write_bytes(b"\x01" * 32)
    told: list[tuple[int, int]] = []
    model = load(path, progress=lambda done, total: told.append((done, total)))
    assert [(file.name, file.size) for file in model.files] == [("m.onnx", path.stat().st_size), ("w.bin", 32)]
    assert model.files[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert model.files[1].sha256 == hashlib.sha256(b"\x01" * 32).hexdigest()
    second = model.graphs[0].initializers[1][1]
    assert (second.form, second.storage, second.stored) == ("external", Storage("w.bin", 16, 16), 16)
    assert told[-1] == (32, 32)


def test_external_data_of_a_model_in_memory_are_refused(tmp_path: Path) -> None:
    proto = onnx.load(str(external(tmp_path, 1)), load_external_data=False)
    with pytest.raises(ModelError, match="has external data"):
        load_proto(proto)


def test_an_error_names_the_file_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad\n.onnx"
    path.write_bytes(b"\x08\x0a\xff\xff")
    with pytest.raises(ModelError) as error:
        load(path)
    assert str(error.value).startswith('"')
    assert "\n" not in str(error.value)


def test_a_file_without_a_graph_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(ModelProto(ir_version=8).SerializeToString())
    with pytest.raises(ModelError, match="no graph"):
        load(path)
