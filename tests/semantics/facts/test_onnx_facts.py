"""The facts of ONNX's own rules are observations: complete, exact, and empty where a model is ordinary."""

from __future__ import annotations

import struct

from onnx import ModelProto, TensorProto, helper, parser
from sonnx.semantics.facts import gathering as onnx_facts
from sonnx.semantics.facts.gathering import indices_sound
from sonnx.semantics.facts.inference.model import Claims
from sonnx.semantics.facts.structure import SetTable, Unknown, ValueTable
from sonnx.semantics.model.elements import elements, field, required
from sonnx.semantics.model.graph import Constant, ValueType
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.type_protos import ELEMENT_CODES, UNSET, from_proto, spelled, to_proto
from sonnx.spec.library import specification
from tables import table

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'


def tables(proto: ModelProto | str, claims: Claims | None = None) -> dict[str, dict[object, object]]:
    """The rows of every fact."""
    parsed = parser.parse_model(f"{HEAD} {proto}") if isinstance(proto, str) else proto
    built = {name: build() for name, build in onnx_facts.onnx_tables(load_proto(parsed), claims or Claims()).items()}
    return {name: dict(table.rows) for name, table in built.items()}


def test_every_declared_fact_has_a_provider_and_no_other() -> None:
    declared = {
        name
        for name, it in specification().functions.items()
        if it.kind == "fact" and it.span.file == "1-syntax-onnx.sonnx"
    }
    assert declared == set(tables("g (float[1] X) => (float[1] Y) { Y = Relu(X) }"))


def test_a_fact_is_a_set_where_it_is_declared_as_one() -> None:
    built = onnx_facts.onnx_tables(load_proto(parser.parse_model(f"{HEAD} g () => () {{}}")), None)
    for name, build in built.items():
        expected = SetTable if specification().functions[name].result.name == "set" else ValueTable
        assert isinstance(build(), expected), name


def test_an_ordinary_model_has_no_peculiarities() -> None:
    found = tables("g (float[1] X) => (float[1] Y) <float[1] W = {1.0}> { A = Add(X, W)  Y = Relu(A) }")
    sets = {name for name, rows in found.items() if any(isinstance(row, tuple) and row for row in rows.values())}
    assert sets == {"imports", "initial", "open_types"}


def test_the_producers_behind_a_node_and_the_node_itself_are_late() -> None:
    found = tables("g (float[1] X) => (float[1] Y) { A = Relu(B)  B = Relu(X)  Y = Add(Y, A) }")
    assert found["late"] == {0: (1,), 2: (2,)}
    assert found["position"] == {0: 0, 1: 1, 2: 2}


def test_a_capture_that_is_written_later_is_late_at_the_holder() -> None:
    found = tables(
        "g (bool C, float[1] X) => (float[1] Y) { Y = If (C) <"
        " then_branch = a () => (float[1] P) { P = Relu(Z) }, else_branch = b () => (float[1] Q) { Q = Relu(X) }>"
        " Z = Relu(X) }"
    )
    assert len(found["late"]) == 1


def test_versions_of_a_domain_that_onnx_does_not_define_are_not_judged() -> None:
    proto = parser.parse_model(f"{HEAD} g (float[1] X) => (float[1] Y) {{ Y = Relu(X) }}")
    proto.opset_import.add(domain="com.example", version=777)
    assert tables(proto)["newest_version"][1] == 777


def test_an_operator_outside_onnx_is_unknown_and_one_inside_is_false() -> None:
    proto = parser.parse_model(f"{HEAD} g (float[1] X) => (float[1] Y) {{ Y = Relu(X) }}")
    proto.opset_import.add(domain="com.example", version=1)
    for domain in ("", "com.example"):
        proto.graph.node.append(helper.make_node("Foo", ["X"], [domain + "Z"], domain=domain))
    first, second = tables(proto)["exists_in_domain"].values()
    assert first is False
    assert isinstance(second, Unknown)


# ---- Types ------------------------------------------------------------------------------------


@table(
    ("claim", "points"),
    [
        (ValueType("tensor", "float", (2, 3)), 0),
        (ValueType("tensor", "float", (2, "n")), 0),
        (ValueType("tensor", "float"), 0),
        (ValueType("tensor", "", (2, 3)), 0),
        (ValueType("tensor", "int64", (2, 3)), 1),
        (ValueType("tensor", "float", (2,)), 1),
        (ValueType("tensor", "float", (5, 7)), 2),
        (ValueType("sequence", inner=ValueType("tensor", "float")), 1),
    ],
)
def test_only_different_values_contradict(claim: ValueType, points: int) -> None:
    text = "g (float[1] X) => (float[2,3] Y) { Y = Foo(X) }"
    model = load_proto(parser.parse_model(f"{HEAD} {text}"))
    output = model.graphs[0].outputs[0]
    assert len(tables(text, Claims({output: claim}))["contradictions"].get(output, ())) == points


def test_a_message_of_inference_names_places_and_is_printable() -> None:
    text = "g (float[1] X) => (float[1] Y) { Y = Relu(X) }"
    found = tables(text, Claims(errors=((0, "t0 is bad in n0, t99 \x1b[31m" + "x" * 400),)))
    message = str(found["objection"][0])
    assert message.startswith('/"X" is bad in /0:Relu, t99 ?[31m')
    assert len(message) < 320


def test_types_survive_the_protobuf_form() -> None:
    tensor = ValueType("tensor", "float", (1, "n", None))
    for type_ in (
        tensor,
        ValueType("tensor", "int4"),
        ValueType("sparse_tensor", "float", ()),
        ValueType("sequence", inner=tensor),
        ValueType("optional", inner=ValueType("sequence", inner=tensor)),
        ValueType("map", "int64", inner=tensor),
        ValueType("opaque", "name"),
        UNSET,
    ):
        proto = helper.make_tensor_value_info("x", TensorProto.FLOAT, None).type
        proto.Clear()
        to_proto(type_, proto)
        assert from_proto(proto) == type_


@table(
    ("type_", "text"),
    [
        (ValueType("tensor", "float16", (1,)), "tensor(float16)"),
        (ValueType("sequence", inner=ValueType("tensor", "int64")), "seq(tensor(int64))"),
        (ValueType("optional", inner=ValueType("tensor", "bool")), "optional(tensor(bool))"),
        (ValueType("map", "string", inner=ValueType("tensor", "float")), "map(string,tensor(float))"),
        (ValueType("tensor"), None),
        (ValueType("sequence", inner=ValueType("tensor")), None),
        (UNSET, None),
        (None, None),
    ],
)
def test_types_are_spelled_as_schemas_do(type_: ValueType | None, text: str | None) -> None:
    assert spelled(type_) == text


# ---- Stored tensors ---------------------------------------------------------------------------

FIELDS = ("float_data", "int32_data", "int64_data", "uint64_data", "double_data")
WIDE = sorted(set(ELEMENT_CODES) - {"string", "float6e2m3", "float6e3m2"})


@table("element", WIDE)
def test_the_typed_field_and_its_entries_are_those_that_onnx_writes(element: str) -> None:
    values = [1] * 19
    tensor = helper.make_tensor("t", ELEMENT_CODES[element], [19], values)
    used = [name for name in FIELDS if getattr(tensor, name)]
    assert used == [field(element)]
    assert required(element, used[0], 19) == len(getattr(tensor, used[0]))


def test_packed_elements_share_entries() -> None:
    assert [required("int4", "int32_data", n) for n in (0, 1, 8, 9)] == [0, 1, 4, 5]
    assert [required("uint2", "int32_data", n) for n in (16, 17)] == [4, 5]
    assert [required("int4", "raw_data", n) for n in (1, 2, 3)] == [1, 1, 2]
    assert [required("float6e2m3", "raw_data", n) for n in (1, 4, 5)] == [1, 3, 4]
    assert required("float6e2m3", "int32_data", 5) == 5
    assert required("complex64", "float_data", 3) == 6
    assert required("complex64", "raw_data", 3) == 24


def test_a_scalar_has_one_element_and_absurd_dimensions_have_their_product() -> None:
    assert elements(()) == 1
    assert elements((0, 5)) == 0
    assert elements((2**62, 2**62)) == 2**124
    assert elements((-1, 5)) == 0


def coo(numbers: list[int], shape: tuple[int, ...], dims: tuple[int, ...], count: int) -> Constant:
    data = struct.pack(f"<{len(numbers)}q", *numbers)
    values = Constant("float", (count,), "raw_data", 4 * count, bytes(4 * count))
    return Constant("float", dims, "sparse_tensor", 0, sparse=True, parts=(values, Constant("int64", shape, data=data)))


@table(
    ("constant", "sound"),
    [
        (coo([0, 3], (2,), (4,), 2), True),
        (coo([0, 1, 1, 0], (2, 2), (2, 2), 2), True),
        (coo([], (0,), (4,), 0), True),
        (coo([3, 0], (2,), (4,), 2), False),
        (coo([1, 1], (2,), (4,), 2), False),
        (coo([0, 4], (2,), (4,), 2), False),
        (coo([-1, 0], (2,), (4,), 2), False),
        (coo([0, 2, 1, 0], (2, 2), (2, 2), 2), False),
        (coo([0, 1], (2,), (4,), 3), False),
        (coo([0, 1], (1, 2), (4,), 1), False),
    ],
)
def test_indices_are_one_for_each_value_in_range_and_ascending(constant: Constant, sound: bool) -> None:
    assert indices_sound(constant) is sound


def test_indices_in_another_file_are_unknown() -> None:
    values, indices = Constant("float", (1,), "raw_data", 4, bytes(4)), Constant("int64", (1,), "external", 8)
    unread = Constant("float", (4,), "sparse_tensor", sparse=True, parts=(values, indices))
    assert indices_sound(unread) is not True
