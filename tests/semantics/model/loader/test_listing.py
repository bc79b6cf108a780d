"""The listing of printable_graph: what it shows is read, what it elides is unknown."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from onnx import GraphProto, TensorProto, helper, parser
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Attribute, Constant, Model, ValueType
from sonnx.semantics.model.loader import load
from sonnx.semantics.model.schemas import newest_opset

PROFILE_BODY = """\
inputs I1, I2
%O1 = Add(%I1, %I2)
%op2_out = Constant[value = <Tensor>]()
%O2 = Mul(%O1, %op2_out)
%op4_out = Sub(%I1, %I2)
return %O1, %O2
"""


def read(folder: Path, text: str) -> Model:
    path = folder / "listing.txt"
    path.write_text(text, encoding="utf-8")
    return load(path)


def printed(graph: GraphProto) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return helper.printable_graph(graph)


def names(model: Model, ids: tuple[int | None, ...]) -> list[str | None]:
    return [None if t is None else model.tensors[t].name for t in ids]


def profile_graph() -> GraphProto:
    """The profile's example as a graph."""
    info, value = helper.make_tensor_value_info, helper.make_tensor("v", TensorProto.FLOAT, [2], [1.0, 2.0])
    return helper.make_graph(
        [
            helper.make_node("Add", ["I1", "I2"], ["O1"]),
            helper.make_node("Constant", [], ["op2_out"], value=value),
            helper.make_node("Mul", ["O1", "op2_out"], ["O2"]),
            helper.make_node("Sub", ["I1", "I2"], ["op4_out"]),
        ],
        "example",
        [info("I1", 1, [2]), info("I2", 1, [2])],
        [info("O1", 1, [2]), info("O2", 1, [2])],
    )


@pytest.mark.parametrize("text", [PROFILE_BODY, printed(profile_graph()), PROFILE_BODY.partition("\n")[2]])
def test_the_example_of_the_profile_loads_as_written(tmp_path: Path, text: str) -> None:
    model = read(tmp_path, text)
    main = model.graphs[0]
    assert model.source == "listing"
    assert names(model, main.inputs) == ["I1", "I2"]
    assert names(model, main.outputs) == ["O1", "O2"]
    assert [node.path for node in model.nodes] == ["/0:Add", "/1:Constant", "/2:Mul", "/3:Sub"]
    assert names(model, model.nodes[2].inputs) == ["O1", "op2_out"]
    assert model.nodes[1].attributes == {"value": Attribute("TENSOR", None)}
    assert not model.runnable


def test_a_listing_is_read_by_the_newest_operator_set(tmp_path: Path) -> None:
    model = read(tmp_path, PROFILE_BODY)
    assert model.opsets == (("", newest_opset()),)
    assert all(node.version is not None for node in model.nodes)


def test_inputs_initializers_and_their_types_are_read(tmp_path: Path) -> None:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Foo", ["a", "", "w", "v"], ["o", ""])],
        "name with (brackets) {and} more",
        [info("a", 1, ["N", 3, None]), info("b", 9, []), info("w", 7, [4]), info("c", 1, None)],
        [info("o", 1, [1])],
        initializer=[helper.make_tensor("w", 7, [4], [1, 2, 3, 4]), helper.make_tensor("v", 11, [2, 2], [0.0] * 4)],
    )
    graph.input.add(name="untyped")
    graph.input.add(name="s").type.sequence_type.SetInParent()
    model = read(tmp_path, printed(graph))
    main = model.graphs[0]
    assert main.name == graph.name
    declared = {model.tensors[t].name: type_ for t, type_ in zip(main.inputs, main.input_types, strict=True)}
    assert declared == {
        "a": ValueType("tensor", "float", ("N", 3, None)),
        "b": ValueType("tensor", "bool", ()),
        "w": ValueType("tensor", "int64", (4,)),
        "c": ValueType("tensor", "float"),
        "untyped": None,
        "s": ValueType("sequence", inner=ValueType("unset")),
    }
    stored = {model.tensors[t].name: constant for t, constant in main.initializers}
    assert stored == {"w": Constant("int64", (4,)), "v": Constant("double", (2, 2))}
    assert names(model, model.nodes[0].inputs) == ["a", None, "w", "v"]
    assert names(model, model.nodes[0].outputs) == ["o", None]


@pytest.mark.parametrize(
    ("shown", "shape"),
    [
        ("1x3x224x224", (1, 3, 224, 224)),
        ("Nx3x?x224", ("N", 3, None, 224)),
        ("batch_size", ("batch_size",)),
        ("NxM", None),
        ("maxx3", None),
        ("-1x3", (-1, 3)),
    ],
)
def test_a_shape_that_can_be_read_in_two_ways_is_no_shape(
    tmp_path: Path, shown: str, shape: tuple[int | str | None, ...] | None
) -> None:
    model = read(tmp_path, f"graph g (\n  %x[FLOAT, {shown}]\n) {{\n  %y = Relu(%x)\n  return %y\n}}")
    assert model.graphs[0].input_types == (ValueType("tensor", "float", shape),)


def test_attributes_have_the_kind_that_the_schema_says_else_that_of_their_look(tmp_path: Path) -> None:
    node = helper.make_node(
        "Gemm", ["a", "b"], ["y"], alpha=1.0, transA=1, own_i=2, own_f=2.5, own_s="it's \"q\"\n", own_ss=["a", "]"],
        own_is=[1, 2], own_fs=[1.0, 2.5], long="z" * 80, inf=float("inf"),
    )  # fmt: skip
    node.attribute.append(helper.make_attribute("tensor", helper.make_tensor("", 1, [], [1.0])))
    node.attribute.append(helper.make_attribute("tensors", [helper.make_tensor("", 1, [1], [1.0])] * 2))
    node.attribute.append(helper.make_attribute("tp", helper.make_tensor_type_proto(1, [2, "N"])))
    node.attribute.add(name="nothing")
    infos = [helper.make_empty_tensor_value_info(name) for name in "aby"]
    model = read(tmp_path, printed(helper.make_graph([node], "g", infos[:2], infos[2:])))
    assert model.nodes[0].attributes == {
        "alpha": Attribute("FLOAT", 1.0),
        "transA": Attribute("INT", 1),
        "own_i": Attribute("INT", 2),
        "own_f": Attribute("FLOAT", 2.5),
        "own_s": Attribute("STRING", b'it\'s "q"\n'),
        "own_ss": Attribute("STRINGS", (b"a", b"]")),
        "own_is": Attribute("INTS", (1, 2)),
        "own_fs": Attribute("FLOATS", (1.0, 2.5)),
        "long": Attribute("STRING", None),
        "inf": Attribute("FLOAT", float("inf")),
        "tensor": Attribute("TENSOR", None),
        "tensors": Attribute("TENSORS", None),
        "tp": Attribute("TYPE_PROTO", ValueType("tensor", "float", (2, "N"))),
        "nothing": Attribute("UNDEFINED", None),
    }


def nested(then: str = "then", other: str = "else", initializer: bool = False) -> GraphProto:
    graph = parser.parse_graph(f"""
        g (float[2] x, bool c) => (float[2] y) {{
            h = Relu (x)
            m = If (c) <then_branch = {then} () => (float[2] u) {{
                            u = If (c) <then_branch = {then} () => (float[2] p) {{ p = Neg (h) }},
                                        else_branch = inner () => (float[2] q) {{ q = Abs (x) }}> }},
                        else_branch = {other} () => (float[2] v) {{ v = Add (x, h) }}>
            y = If (c) <then_branch = {then} () => (float[2] w) {{ w = Sin (m) }},
                        else_branch = last () => (float[2] z) {{ z = Cos (m) }}>
        }}""")
    if initializer:
        graph.node[2].attribute[0].g.node[0].input[0] = "hidden"
        graph.node[2].attribute[0].g.initializer.append(helper.make_tensor("hidden", 1, [1], [0.0]))
    return graph


def test_nested_graphs_come_back_to_their_attributes(tmp_path: Path) -> None:
    model = read(tmp_path, printed(nested()))
    branches = {
        node.path: [n.op_type for n in model.nodes if n.path.startswith(node.path + ".")] for node in model.nodes
    }
    assert branches["/1:If"] == ["Add", "If", "Abs", "Neg"]
    assert branches["/2:If"] == ["Cos", "Sin"]
    first = next(node for node in model.nodes if node.path == "/1:If")
    assert sorted(name or "" for name in names(model, first.captures)) == ["c", "h", "x"]
    assert "/1:If.then_branch/0:If.else_branch/0:Abs" in branches


def test_two_graphs_of_one_node_with_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match='both named "same"'):
        read(tmp_path, printed(nested("same", "same")))


def test_initializers_that_the_listing_omits_are_not_taken_for_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match='"%hidden" has no source, and a listing omits the initializers'):
        read(tmp_path, printed(nested(initializer=True)))


def test_a_name_without_source_is_represented_where_initializers_are_shown(tmp_path: Path) -> None:
    model = read(tmp_path, "graph g (\n  %x[FLOAT, 1]\n) {\n  %y = Add(%x, %ghost)\n  return %y\n}")
    assert names(model, model.nodes[0].inputs) == ["x", "ghost"]
    assert names(model, model.graphs[0].inputs) == ["x"]


def test_declared_inputs_of_a_body_may_have_types(tmp_path: Path) -> None:
    model = read(tmp_path, "inputs %a[FLOAT, 2x2], b\n%c = Add(%a, %b) # a comment\nreturn %c\n")
    assert model.graphs[0].input_types == (ValueType("tensor", "float", (2, 2)), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph g {\n  %y = Relu(\n  return %y\n}", "line 3, column 3"),
        ("graph g {\n  %y = Constant[value = <Tensor>]()\n  return %y\n", "ends too early"),
        ("graph g {\n  return\n}\ngraph h {\n  return\n}", 'no attribute names the graph "h"'),
        ("%y = If[then_branch = <graph t>](%c)\nreturn %y", 'graph "t" is not in the listing'),
        ("graph g (\n  %x[FLOOT, 1]\n) {\n  return %x\n}", '"FLOOT" is no element type'),
        ("graph g (\n  %x[FLOAT, 99999999999999999999]\n) {\n  return %x\n}", "cannot be read"),
        ("%y = A[i = 99999999999999999999]()\nreturn %y", "cannot be read"),
        ("%y = A[s = '\\xzz']()\nreturn %y", "cannot be read"),
        ("%y = A[t = <Type Proto nonsense {>]()\nreturn %y", "cannot be read"),
    ],
)
def test_an_unreadable_listing_is_one_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as error:
        read(tmp_path, text)
    assert "\n" not in str(error.value)


def test_graphs_nested_without_measure_are_refused(tmp_path: Path) -> None:
    chain = "".join(f"graph g{i} {{\n  %y = A[b = <graph g{i + 1}>]()\n  return %y\n}}\n" for i in range(3000))
    with pytest.raises(ModelError, match="deep inside each other"):
        read(tmp_path, chain)
