"""Facts: what the structure of a model says about its graphs."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.facts.structure import Element, SetTable, Structure, ValueTable
from sonnx.semantics.model.loader import load_proto
from sonnx.spec.language.syntax import Sort
from sonnx.spec.library import specification

FLOAT = TensorProto.FLOAT


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, [1])


def facts(graph: onnx.GraphProto, functions: list[onnx.FunctionProto] | None = None, opset: int = 17) -> Structure:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return structure(load_proto(helper.make_model(graph, opset_imports=imports, functions=functions or [])))


def members(found: Structure, fact: str, key: Element | tuple[Element, ...], sort: str) -> list[str]:
    table = found.table(fact)
    assert isinstance(table, SetTable)
    return [found.place(Sort(sort), member) for member in table.rows.get(key, ())]


def single(found: Structure, fact: str) -> dict[object, object]:
    table = found.table(fact)
    assert isinstance(table, ValueTable)
    return dict(table.rows)


def chain() -> Structure:
    """x, w -> Sum(x, x, w) = a, a; Relu(a) = y; y is listed once, x twice as an input."""
    nodes = [helper.make_node("Sum", ["x", "x", "", "w"], ["a", "a"], "s"), helper.make_node("Relu", ["a"], ["y"])]
    weight = helper.make_tensor("w", FLOAT, [1], [1.0])
    return facts(helper.make_graph(nodes, "g", [value("x"), value("x")], [value("y")], [weight, weight]))


def test_every_declared_fact_has_a_provider_and_no_other() -> None:
    declared = {name for name, f in specification().functions.items() if f.kind == "fact"}
    assert set(chain().facts()) == declared


def test_every_table_has_the_kind_that_its_declaration_says() -> None:
    found = chain()
    kinds = {
        name: isinstance(found.table(name), SetTable)
        for name, f in specification().functions.items()
        if f.kind == "fact"
    }
    assert kinds == {name: specification().functions[name].result.name == "set" for name in kinds}


def test_sets_hold_a_tensor_once_and_writes_keeps_the_positions() -> None:
    found = chain()
    assert members(found, "ins", 0, "Tensor") == ['/"x"', '/"w"']
    assert members(found, "outs", 0, "Tensor") == ['/"a"']
    a = single(found, "scope")
    tensor = next(t for t in a if found.place(Sort("Tensor"), int(str(t))) == '/"a"')
    assert members(found, "writes", int(str(tensor)), "Port") == ['/0:Sum("s")>0', '/0:Sum("s")>1']
    assert members(found, "producers", int(str(tensor)), "Node") == ['/0:Sum("s")']
    assert members(found, "consumers", int(str(tensor)), "Node") == ["/1:Relu"]
    assert [single(found, "writer")[p] for p in (0, 1, 2)] == [0, 0, 1]


def test_lists_are_counted_behind_the_sets() -> None:
    found = chain()
    assert members(found, "inputs", 0, "Tensor") == ['/"x"']
    assert members(found, "initializers", 0, "Tensor") == ['/"w"']
    counts = {
        found.place(Sort("Tensor"), int(str(t))): (n, single(found, "initializer_entries")[t])
        for t, n in single(found, "input_entries").items()
    }
    assert counts == {'/"x"': (2, 0), '/"w"': (0, 2), '/"a"': (0, 0), '/"y"': (0, 0)}


def test_every_input_or_output_that_is_left_out_is_counted() -> None:
    dropout = helper.make_node("Dropout", ["x"], ["y"])
    whole = helper.make_node("Dropout", ["x", "r", "t"], ["y", "m"])
    for node, omitted in ((dropout, 3), (whole, 0)):
        graph = helper.make_graph([node], "g", [value(i) for i in node.input], [value("y")])
        assert single(facts(graph), "omitted") == {0: omitted}


def loop(initial: list[str], op: str = "Loop", opset: int = 17, **attributes: int) -> Structure:
    if op == "Loop":
        formal = [value("i"), value("c"), value("p"), value("q")]
        results = [value("c2"), value("p2"), value("q2"), value("s")]
        nodes = [helper.make_node("Identity", [a], [b]) for a, b in (("c", "c2"), ("p", "p2"), ("q", "q2"), ("p", "s"))]
    else:
        formal, results = [value("p"), value("q"), value("e")], [value("p2"), value("q2"), value("s")]
        nodes = [helper.make_node("Identity", [a], [b]) for a, b in (("p", "p2"), ("q", "q2"), ("e", "s"))]
    body = helper.make_graph([*nodes, helper.make_node("Add", ["p", "outer"], ["unused"])], "b", formal, results)
    node = helper.make_node(op, initial, ["P", "Q", "S"], body=body, **attributes)
    names = dict.fromkeys(name for name in [*initial, "outer"] if name)
    return facts(helper.make_graph([node], "g", [value(n) for n in names], [value("P")]), opset=opset)


@pytest.mark.parametrize(
    ("initial", "options", "carrying"),
    [
        (["m", "c", "a", "b"], {}, [0, 1, 2, 3]),
        (["m", "c", "a", ""], {}, [0, 1, 2]),
        (["", "", "", "b"], {}, [3]),
        (["", "a", "", "x"], {"op": "Scan", "num_scan_inputs": 1, "opset": 8}, [1, 3]),
    ],
)
def test_positions_with_an_empty_name_carry_none(
    initial: list[str], options: dict[str, object], carrying: list[int]
) -> None:
    found = loop(initial, **options)  # type: ignore[arg-type]
    assert found.table("operand_positions").rows[0] == tuple(carrying)  # type: ignore[union-attr]
    assert single(found, "operands")[0] == len(initial)
    tensors = {i: found.place(Sort("Tensor"), int(str(single(found, "operand_at")[0, i]))) for i in carrying}
    assert tensors == {i: f'/"{initial[i]}"' for i in carrying}


def test_ports_have_positions_that_count_empty_names() -> None:
    graph = helper.make_graph(
        [helper.make_node("Split", ["x"], ["a", "", "b"], num_outputs=3)], "g", [value("x")], [value("a"), value("b")]
    )
    found = facts(graph, opset=18)
    assert members(found, "ports", 0, "Port") == ["/0:Split>0", "/0:Split>2"]
    assert dict(single(found, "output_position")) == {0: 0, 1: 2}
    assert single(found, "results")[0] == 3


def test_bodies_have_the_names_of_their_attributes_and_inputs_by_position() -> None:
    found = loop(["m", "c", "a", "b"])
    assert found.table("body_names").rows == {0: ("body",)}  # type: ignore[union-attr]
    assert single(found, "body_inputs")[1] == 4
    paths = [found.place(Sort("Tensor"), int(str(single(found, "input_at")[1, i]))) for i in range(4)]
    assert paths == [f'/0:Loop.body/"{name}"' for name in ("i", "c", "p", "q")]


def test_a_captured_name_is_read_by_the_node_that_holds_the_body() -> None:
    found = loop(["m", "c", "a", "b"])
    assert '/"outer"' in members(found, "ins", 0, "Tensor")
    assert members(found, "bodies", 0, "Graph") == ["/0:Loop.body"]
    assert members(found, "nodes", 0, "Node") == ["/0:Loop"]
    assert len(members(found, "all_nodes", (), "Node")) == 6


def hiding(inner: str, caller: bool = False, formal: bool = False) -> list[tuple[str, list[str]]]:
    """Tensors of branches that bear the name of a visible outer one, with those. x and e are there before the If, y is
    its output, l is written behind it; formal: the branch has an input of that name instead."""
    if formal:
        body = helper.make_graph([helper.make_node("Neg", [inner], ["own"])], "b", [value(inner)], [value("own")])
    else:
        body = helper.make_graph([helper.make_node("Identity", ["x"], [inner])], "b", [], [value(inner)])
    before, after = helper.make_node("Neg", ["x"], ["e"]), helper.make_node("Neg", ["y"], ["l"])
    choose = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    nodes = [before, choose, after]
    if caller:
        calls = [helper.make_node("f", ["c", "x"], ["l"], domain="local"), helper.make_node("Relu", ["l"], ["t"])]
        function = helper.make_function("local", "f", ["c", "x"], ["l"], nodes, [helper.make_opsetid("", 17)])
        found = facts(helper.make_graph(calls, "g", [value("c"), value("x")], [value("t")]), [function])
    else:
        found = facts(helper.make_graph(nodes, "g", [value("c"), value("x")], [value("l")]))
    table = found.table("hidden")
    assert isinstance(table, SetTable)
    sort = Sort("Tensor")
    rows = {int(str(t)): others for t, others in table.rows.items()}
    return sorted((found.place(sort, t), [found.place(sort, u) for u in others]) for t, others in rows.items())


@pytest.mark.parametrize("name", ["c", "e"])
def test_a_node_in_a_body_hides_the_visible_names_around_it(name: str) -> None:
    found = hiding(name)
    assert [path for path, _ in found] == [f'/1:If.{b}_branch/"{name}"' for b in ("else", "then")]
    assert [others for _, others in found] == [[f'/"{name}"']] * 2


@pytest.mark.parametrize("name", ["z", "y", "l"])
def test_outputs_of_the_node_that_holds_the_body_and_of_later_nodes_are_not_visible_there(name: str) -> None:
    assert hiding(name) == []


@pytest.mark.parametrize("name", ["c", "e", "y"])
def test_inputs_of_bodies_hide_nothing(name: str) -> None:
    assert hiding(name, formal=True) == []


def test_a_function_sees_no_name_of_its_caller_and_its_bodies_see_its_own() -> None:
    """`t` is a name of the main graph, which no body inside of the function can see; `e` is one of the function."""
    assert hiding("t", caller=True) == []
    assert [others for _, others in hiding("e", caller=True)] == [['/0:local::f!"e"']] * 2


def test_a_call_that_names_no_function_is_unresolved() -> None:
    function = helper.make_function(
        "local", "f", ["x"], ["y"], [helper.make_node("Relu", ["x"], ["y"])], [helper.make_opsetid("", 17)]
    )
    nodes = [
        helper.make_node("f", ["x"], ["a"], domain="local"),
        helper.make_node("g", ["a"], ["y"], domain="local"),
        helper.make_node("Nonsense", ["y"], ["z"]),
    ]
    found = facts(helper.make_graph(nodes, "g", [value("x")], [value("z")]), [function])
    unresolved = [found.place(Sort("Node"), int(str(n))) for n, is_so in single(found, "unresolved").items() if is_so]
    assert unresolved == ["/1:local::g"]
    assert members(found, "functions", (), "Function") == ["local::f"]
    assert single(found, "definitions") == {0: 1}


def test_an_element_is_shown_as_inert_text() -> None:
    found = chain()
    assert found.place(Sort("Text"), "a<b\x1b") == '"a\\u003cb\\u001b"'
    assert found.place(Sort("Int"), 3) == "3"
    assert found.place(Sort("Bool"), True) == "true"
