"""Facts about operators, types and constants, read off models that are built here by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from sonnx.semantics.facts.gathering import operator_tables
from sonnx.semantics.facts.inference.model import Claims
from sonnx.semantics.facts.structure import Key, SetTable, Unknown, ValueTable
from sonnx.semantics.facts.types import MOST_AXES
from sonnx.semantics.model.graph import Attribute, Constant, Graph, Model, Node, Storage, Tensor, ValueType
from sonnx.semantics.model.schemas import since_version
from tables import table

OPSET = 18
INT64 = "int64"


def node(op: str, inputs: tuple[int | None, ...], outputs: tuple[int | None, ...], **attributes: Attribute) -> Node:
    version = since_version("", op, OPSET)
    return Node("", f"/0:{op}", 0, "", op, "", OPSET, version, inputs, outputs, attributes)


def model(
    *nodes: Node,
    types: Mapping[int, ValueType] | None = None,
    inputs: tuple[int, ...] = (),
    outputs: tuple[int, ...] = (),
    initializers: tuple[tuple[int, Constant], ...] = (),
) -> Model:
    mentioned = [t for n in nodes for t in (*n.inputs, *n.outputs) if t is not None]
    count = max([*mentioned, *inputs, *outputs, *(t for t, _ in initializers)], default=-1) + 1
    tensors = tuple(Tensor(f"t{t}", f'/"t{t}"', 0, (types or {}).get(t)) for t in range(count))
    graph = Graph("g", "/", tuple(range(len(nodes))), inputs, outputs, initializers)
    return Model((graph,), nodes, tensors, 10, (("", OPSET),), "protobuf", ())


def rows(m: Model, fact: str, claims: Claims | None = None) -> Mapping[Key, object]:
    table = operator_tables(m, claims)[fact]()
    assert isinstance(table, (SetTable, ValueTable))
    return table.rows


def integer(value: int) -> Attribute:
    return Attribute("INT", value)


def tensor(element: str, *shape: int | str | None) -> ValueType:
    return ValueType("tensor", element, shape)


def int64s(*values: int) -> Constant:
    return Constant(
        INT64,
        (len(values),),
        "raw_data",
        8 * len(values),
        b"".join(v.to_bytes(8, "little", signed=True) for v in values),
    )


# ---- Operators and attributes -----------------------------------------------------------------


def test_an_operator_of_another_domain_has_the_domain_in_front() -> None:
    plain, foreign = node("Relu", (0,), (1,)), replace(node("Relu", (1,), (2,)), domain="com.example", version=None)
    other = replace(plain, domain="ai.onnx")
    m = model(plain, foreign, other)
    assert rows(m, "operator") == {0: "Relu", 1: "com.example::Relu", 2: "Relu"}
    assert rows(m, "applications") == {"Relu": (0, 2), "com.example::Relu": (1,)}


def test_what_onnx_does_not_define_is_not_known_and_has_no_schema() -> None:
    m = model(replace(node("Nonsense", (0,), (1,)), version=None))
    assert rows(m, "known") == {0: False}
    assert isinstance(rows(m, "version")[0], Unknown)
    assert isinstance(rows(m, "schema_determinism")[0], Unknown)
    assert rows(m, "attributes") == rows(m, "unwritten") == rows(m, "given_inputs") == {}


def test_an_attribute_is_written_or_unwritten_and_has_a_default_or_not() -> None:
    m = model(node("Conv", (0, 1), (2,), strides=Attribute("INTS", (1, 1)), group=integer(1)))
    assert rows(m, "written")[0] == ("strides", "group")
    assert rows(m, "unwritten")[0] == ("auto_pad", "dilations", "kernel_shape", "pads")
    assert rows(m, "defaulted")[0] == ("auto_pad",)


def test_the_value_in_force_is_the_written_one_else_the_schemas_default() -> None:
    m = model(node("Conv", (0, 1), (2,), group=integer(2)), node("Conv", (2, 1), (3,)), node("Gemm", (0, 1), (2,)))
    assert rows(m, "int_attribute")[0, "group"] == 2
    assert rows(m, "int_attribute")[1, "group"] == 1
    assert rows(m, "text_attribute")[1, "auto_pad"] == "NOTSET"
    assert rows(m, "float_attribute")[2, "alpha"] == "1.0"


@pytest.mark.parametrize(
    ("value", "text"), [(0.009999999776482582, "0.01"), (float("nan"), "nan"), (float("-inf"), "-inf"), (-0.0, "-0.0")]
)
def test_a_float_is_the_shortest_decimal_that_denotes_it(value: float, text: str) -> None:
    m = model(node("LeakyRelu", (0,), (1,), alpha=Attribute("FLOAT", value)))
    assert rows(m, "float_attribute")[0, "alpha"] == text


def test_an_attribute_without_a_value_and_a_default_has_no_row() -> None:
    m = model(node("MaxPool", (0,), (1,)))
    assert (0, "pads") not in rows(m, "ints_attribute")
    assert (0, "pads") not in rows(m, "positions")


def test_an_attribute_of_the_wrong_kind_gives_no_value() -> None:
    m = model(node("Concat", (0, 1), (2,), axis=Attribute("FLOAT", 1.0)))
    assert (0, "axis") not in rows(m, "int_attribute")


def test_an_elided_attribute_is_unknown() -> None:
    m = model(node("Concat", (0, 1), (2,), axis=Attribute("INT", None)))
    assert isinstance(rows(m, "int_attribute")[0, "axis"], Unknown)


def test_lists_have_positions() -> None:
    names = Attribute("STRINGS", (b"Sigmoid", b"Tanh"))
    m = model(
        node("LSTM", (0, 1, 2), (3,), activations=names),
        node("MaxPool", (3,), (4,), pads=Attribute("INTS", (0, 1, 2, 3))),
    )
    assert rows(m, "texts_attribute")[0, "activations"] == ("Sigmoid", "Tanh")
    assert rows(m, "positions") == {(0, "activations"): (0, 1), (1, "pads"): (0, 1, 2, 3)}


# ---- Inputs and outputs -----------------------------------------------------------------------


def test_optional_inputs_are_given_or_absent() -> None:
    m = model(node("Clip", (0, None, 1), (2,)))
    assert rows(m, "given_inputs") == {0: ("input", "max")}
    assert rows(m, "absent_inputs") == {0: ("min",)}
    assert rows(m, "input") == {(0, "input"): 0, (0, "max"): 1}
    assert rows(m, "given_outputs") == {0: ("output",)}


def test_a_variadic_input_is_given_by_its_first_tensor() -> None:
    m = model(node("Concat", (None, 4, 5), (6,), axis=integer(0)))
    assert rows(m, "input") == {(0, "inputs"): 4}


def test_inputs_and_outputs_share_a_type_variable() -> None:
    m = model(node("Where", (0, 1, 2), (3,)), node("Abs", (3,), (3,)), node("ArgMax", (3,), (4,)))
    assert rows(m, "type_variables") == {0: ("T",)}
    assert rows(m, "typed") == {(0, "T"): (1, 2, 3)}
    assert rows(m, "first_typed") == {(0, "T"): 1}


def test_heterogeneous_variadic_inputs_share_no_type() -> None:
    m = model(node("Loop", (0, 1, 2, 3), (4, 5)))
    assert rows(m, "type_variables") == {}


# ---- Types and shapes -------------------------------------------------------------------------


def test_a_declared_type_is_a_fact() -> None:
    m = model(node("Relu", (0,), (1,)), types={0: tensor("float", 2, 3)})
    assert rows(m, "kind")[0] == "tensor"
    assert rows(m, "element_type")[0] == "float"
    assert rows(m, "rank")[0] == 2
    assert (rows(m, "dim")[0, 0], rows(m, "dim")[0, 1]) == (2, 3)
    assert rows(m, "axes")[0] == (0, 1)


def test_what_neither_model_nor_inference_says_is_unknown_with_the_reason() -> None:
    m = model(node("Relu", (0,), (1,)), types={0: tensor("float", 2)})
    for claims, reason in (
        (None, "did not run"),
        (Claims(), "does not give it"),
        (Claims(failure="shape inference crashed"), "crashed"),
    ):
        for fact in ("element_type", "rank"):
            found = rows(m, fact, claims)[1]
            assert isinstance(found, Unknown)
            assert reason in found.reason
            assert '/"t1"' in found.reason
        assert [rows(m, "dim", claims)[1, i] for i in range(MOST_AXES)] == [rows(m, "rank", claims)[1]] * MOST_AXES
        assert rows(m, "axes", claims)[1] == ()


def test_a_symbolic_dimension_is_unknown_and_named() -> None:
    m = model(types={0: tensor("float", "batch\x1b", None, 0)}, inputs=(0,))
    dims = rows(m, "dim")
    symbol, nothing = dims[0, 0], dims[0, 1]
    assert isinstance(symbol, Unknown)
    assert symbol.reason == "dimension 0 of /\"t0\" is the symbol 'batch\\x1b'"
    assert isinstance(nothing, Unknown)
    assert dims[0, 2] == 0
    assert rows(m, "rank")[0] == 3


def test_a_claim_completes_a_declaration_and_never_overrides_it() -> None:
    m = model(types={0: tensor("float", "N", 3)}, inputs=(0,))
    claims = Claims({0: tensor("double", 2, 5)})
    assert rows(m, "element_type", claims)[0] == "float"
    assert [rows(m, "dim", claims)[0, i] for i in (0, 1)] == [2, 3]


def test_claims_of_another_rank_do_not_complete_a_shape() -> None:
    m = model(types={0: tensor("float", "N", 3)}, inputs=(0,))
    assert isinstance(rows(m, "dim", Claims({0: tensor("float", 2)}))[0, 0], Unknown)


def test_claims_may_come_from_a_function_that_is_called_for_types_only() -> None:
    asked = []

    def late() -> Claims:
        asked.append(True)
        return Claims({0: tensor("float")})

    tables = operator_tables(model(node("Relu", (0,), (1,))), late)
    tables["operator"]()
    assert not asked
    rank = tables["rank"]()
    tables["dim"]()
    assert isinstance(rank, ValueTable)
    assert rank.rows[0] == 0
    assert asked == [True]


def test_the_schema_tells_that_an_output_is_a_tensor() -> None:
    m = model(node("Relu", (0,), (1,)), node("SequenceAt", (2, 1), (3,)), node("If", (1,), (4,)))
    kinds = rows(m, "kind")
    assert kinds[1] == kinds[3] == "tensor"
    assert isinstance(kinds[0], Unknown)
    assert isinstance(kinds[4], Unknown)


def test_a_sequence_has_neither_element_type_nor_rank() -> None:
    m = model(types={0: ValueType("sequence", inner=tensor("float", 2))}, inputs=(0,))
    assert rows(m, "kind") == {0: "sequence"}
    assert rows(m, "element_type") == rows(m, "rank") == rows(m, "dim") == {}


def test_a_stored_tensor_has_the_type_that_is_stored() -> None:
    value = Attribute("TENSOR", int64s(4, 5, 6))
    m = model(node("Constant", (), (1,), value=value), initializers=((0, int64s(1, 2)),))
    assert (rows(m, "element_type")[0], rows(m, "dim")[0, 0]) == (INT64, 2)
    assert (rows(m, "element_type")[1], rows(m, "dim")[1, 0]) == (INT64, 3)


def test_a_sparse_initializer_is_a_sparse_tensor() -> None:
    m = model(initializers=((0, replace(int64s(1), sparse=True)),), types={0: tensor(INT64, 1)})
    assert rows(m, "kind") == {0: "sparse_tensor"}
    assert isinstance(rows(m, "constant")[0], Unknown)


def test_declarations_of_the_boundary_are_those_of_its_own_entries() -> None:
    m = model(types={0: tensor("float", "N", 0, None), 1: tensor("float", 2)}, inputs=(0,), outputs=(1, 0))
    assert rows(m, "boundary") == {(): (0, 1)}
    assert rows(m, "declared_shape") == {0: "[N, 0, ?]", 1: "[2]"}
    assert rows(m, "declared_static") == {0: False, 1: True}
    assert rows(model(types={0: tensor("float", -1)}, inputs=(0,)), "declared_static") == {0: False}
    silent = replace(m, graphs=(replace(m.graphs[0], output_types=(None, tensor("float")), input_types=(None,)),))
    assert rows(silent, "declared_element") == {0: "", 1: ""}
    assert rows(silent, "declared_shape") == {0: "none", 1: "none"}


# ---- Constants --------------------------------------------------------------------------------


def test_small_integer_constants_have_values() -> None:
    boolean = Constant("bool", (), "raw_data", 1, b"\x01")
    m = model(
        node("Constant", (), (2,), value=Attribute("TENSOR", int64s(-1))),
        node("Constant", (), (3,), value_int=integer(7)),
        node("Constant", (), (4,), value_ints=Attribute("INTS", (8, 9))),
        initializers=((0, int64s(1, -2)), (1, boolean)),
    )
    assert rows(m, "constant") == {0: (1, -2), 1: (1,), 2: (-1,), 3: (7,), 4: (8, 9)}
    assert rows(m, "indices")[0] == (0, 1)
    assert rows(m, "fixed") == dict.fromkeys(range(5), True)


@table(
    ("constant", "reason"),
    [
        (Constant("float", (1,), "raw_data", 4, bytes(4)), "no dense tensor of integers"),
        (Constant(INT64, (1,), "external", 8, storage=Storage("w.bin", 0, 8)), "not read"),
        (Constant(INT64, (1,)), "left out"),
        (Constant(INT64, (2,), "raw_data", 8, bytes(8)), "do not fit"),
        (Constant(INT64, (10**9,), "raw_data", 8, bytes(8)), "too many"),
        (Constant(INT64, (-1,), "raw_data", 8, bytes(8)), "too many"),
    ],
)
def test_other_constants_are_unknown_with_the_reason(constant: Constant, reason: str) -> None:
    found = rows(model(initializers=((0, constant),)), "constant")[0]
    assert isinstance(found, Unknown)
    assert reason in found.reason


def test_an_initializer_that_is_an_input_is_no_constant() -> None:
    m = model(inputs=(0,), initializers=((0, int64s(1)),))
    assert isinstance(rows(m, "constant")[0], Unknown)
    assert rows(m, "fixed") == {0: False}


def test_a_tensor_with_two_sources_has_no_constant_value() -> None:
    m = model(node("Constant", (), (0,), value_int=integer(7)), initializers=((0, int64s(1)),))
    assert isinstance(rows(m, "constant")[0], Unknown)


def test_a_computed_value_is_no_constant() -> None:
    m = model(node("Relu", (0,), (1,)), inputs=(0,))
    assert all(isinstance(value, Unknown) for value in rows(m, "constant").values())
    assert rows(m, "fixed") == {0: False, 1: False}
