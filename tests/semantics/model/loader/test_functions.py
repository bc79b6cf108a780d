"""Model-local functions: expansion in place, attributes, scopes, recursion and the limits of expansion."""

from __future__ import annotations

import re
import time

import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, helper, parser
from sonnx.checker.rechecker import reader
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Attribute, Model
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.schemas import newest_opset
from tables import table

HEADER = '<ir_version: 10, opset_import: ["": 18, "local": 1]>\n'
LOCAL = '<opset_import: ["": 18, "local": 1], domain: "local">'


def read(main: str, *functions: str) -> Model:
    return load_proto(proto(main, *functions))


def proto(main: str, *functions: str) -> ModelProto:
    return parser.parse_model(HEADER + main + "\n" + "\n".join(LOCAL + function for function in functions))


def shown(model: Model) -> list[tuple[str, list[str | None], list[str | None]]]:
    """Each node: path, paths of inputs, paths of outputs."""

    def path(t: int | None) -> str | None:
        return None if t is None else model.tensors[t].path

    return [(n.path, [path(t) for t in n.inputs], [path(t) for t in n.outputs]) for n in model.nodes]


def test_formal_inputs_and_outputs_are_the_tensors_of_the_caller() -> None:
    model = read("g (float x) => (float y) { y = local.f (x) }", "f (a) => (b) { h = Relu (a) b = Neg (h) }")
    assert shown(model) == [
        ("/0:local::f!0:Relu", ['/"x"'], ['/0:local::f!"h"']),
        ("/0:local::f!1:Neg", ['/0:local::f!"h"'], ['/"y"']),
    ]
    assert [node.calls for node in model.nodes] == [("/0:local::f",)] * 2
    assert model.graphs[0].nodes == (0, 1)
    assert model.functions == (("local", "f", ""),)


def test_two_calls_do_not_share_inner_tensors() -> None:
    model = read(
        "g (float x) => (float y) { m = local.f (x) y = local.f (m) }", "f (a) => (b) { h = Relu (a) b = Neg (h) }"
    )
    assert sum(tensor.name == "h" for tensor in model.tensors) == 2


def test_functions_call_functions_and_the_chain_is_kept() -> None:
    model = read(
        "g (float x) => (float y) { y = local.f (x) }",
        "f (a) => (b) { b = local.h (a) }",
        "h (a) => (b) { b = Relu (a) }",
    )
    assert shown(model) == [("/0:local::f!0:local::h!0:Relu", ['/"x"'], ['/"y"'])]
    assert model.nodes[0].calls == ("/0:local::f", "/0:local::f!0:local::h")


def test_each_function_resolves_operators_by_its_own_imports() -> None:
    text = proto("g (float x) => (float y) { m = Relu (x) y = local.f (m) }", "f (a) => (b) { b = Relu (a) }")
    text.functions[0].opset_import[0].version = 6
    model = load_proto(text)
    assert [(node.opset, node.version) for node in model.nodes] == [(18, 14), (6, 6)]


def test_overloads_are_different_functions() -> None:
    text = proto(
        "g (float x) => (float y) { m = local.f (x) y = local.f (m) }",
        "f (a) => (b) { b = Relu (a) }",
        "f (a) => (b) { b = Neg (a) }",
    )
    text.functions[1].overload = "second"
    text.graph.node[1].overload = "second"
    assert [node.op_type for node in load_proto(text).nodes] == ["Relu", "Neg"]


def test_of_two_definitions_of_one_function_the_first_counts_and_both_are_listed() -> None:
    model = read(
        "g (float x) => (float y) { y = local.f (x) }", "f (a) => (b) { b = Relu (a) }", "f (a) => (b) { b = Neg (a) }"
    )
    assert [node.op_type for node in model.nodes] == ["Relu"]
    assert model.functions == (("local", "f", ""),) * 2


def test_a_function_takes_precedence_over_an_operator() -> None:
    text = proto("g (float x) => (float y) { y = Relu (x) }", "Relu (a) => (b) { b = Neg (a) }")
    text.functions[0].domain = ""
    assert [node.op_type for node in load_proto(text).nodes] == ["Neg"]


def test_names_of_the_caller_are_not_visible_inside() -> None:
    model = read("g (float x, float h) => (float y) { y = local.f (x) }", "f (a) => (b) { b = Add (a, h) }")
    assert shown(model) == [("/0:local::f!0:Add", ['/"x"', '/0:local::f!"h"'], ['/"y"'])]


def test_an_input_left_out_is_absent_inside_also_in_bodies() -> None:
    model = read(
        'g (float x, bool c) => (float y) { y = local.f (x, "", c) }',
        """f (a, s, c, t) => (b) {
            m = Clip (a, s, t)
            b = If (c) <then_branch = p () => (float u) { u = Clip (m, s, t) },
                        else_branch = q () => (float v) { v = Relu (m) }> }""",
    )
    clips = [node for node in model.nodes if node.op_type == "Clip"]
    assert [[t is None for t in node.inputs] for node in clips] == [[False, True, True]] * 2


def test_an_output_that_the_call_leaves_out_stays_inside() -> None:
    model = read("g (float x) => (float y) { y = local.f (x) }", "f (a) => (b, c) { b = Relu (a) c = Neg (a) }")
    assert shown(model)[1] == ("/0:local::f!1:Neg", ['/"x"'], ['/0:local::f!"c"'])


def test_bodies_inside_a_function_capture_what_the_function_sees() -> None:
    model = read(
        "g (float x, bool c) => (float y) { y = local.f (x, c) }",
        """f (a, c) => (b) { h = Relu (a)
            b = If (c) <then_branch = p () => (float u) { u = Add (h, a) },
                        else_branch = q () => (float v) { v = Relu (h) }> }""",
    )
    node = next(node for node in model.nodes if node.op_type == "If")
    assert [model.tensors[t].path for t in node.captures] == ['/0:local::f!"h"', '/"x"']
    assert model.nodes[2].path == "/0:local::f!1:If.then_branch/0:Add"
    assert model.nodes[2].calls == ("/0:local::f",)


def test_a_call_inside_a_body_reads_outer_tensors_only_where_its_nodes_do() -> None:
    model = read(
        """g (float x, float z, bool c) => (float y) {
            y = If (c) <then_branch = p () => (float u) { u = local.f (x, z) },
                        else_branch = q () => (float v) { v = Relu (x) }> }""",
        "f (a, unused) => (b) { b = Relu (a) }",
    )
    assert [model.tensors[t].path for t in model.nodes[0].captures] == ['/"x"']


# ---- Attributes -------------------------------------------------------------------------------


def referring(*attributes: AttributeProto, default: AttributeProto | None = None) -> Model:
    """A call of f with these attributes; f passes its attribute `p` as `axis` to Softmax."""
    text = proto(
        "g (float x) => (float y) { y = local.f (x) }", "f <p> (a) => (b) { b = Softmax <axis: int = @p> (a) }"
    )
    if default is not None:
        del text.functions[0].attribute[:]
        text.functions[0].attribute_proto.append(default)
    text.graph.node[0].attribute.extend(attributes)
    return load_proto(text)


def test_a_reference_takes_the_value_of_the_call() -> None:
    assert referring(helper.make_attribute("p", 2)).nodes[0].attributes == {"axis": Attribute("INT", 2)}


def test_a_reference_to_nothing_is_no_attribute() -> None:
    assert referring().nodes[0].attributes == {}


def test_a_default_stands_in_for_what_the_call_leaves_out() -> None:
    default = helper.make_attribute("p", 1)
    assert referring(default=default).nodes[0].attributes == {"axis": Attribute("INT", 1)}
    assert referring(helper.make_attribute("p", 0), default=default).nodes[0].attributes["axis"].value == 0


def test_references_pass_through_several_calls() -> None:
    model = read(
        "g (float x) => (float y) { y = local.f <p = 3> (x) }",
        "f <p> (a) => (b) { b = local.h <q: int = @p> (a) }",
        "h <q> (a) => (b) { b = Softmax <axis: int = @q> (a) }",
    )
    assert model.nodes[0].attributes == {"axis": Attribute("INT", 3)}


def test_a_reference_outside_of_a_function_has_no_value() -> None:
    text = proto("g (float x) => (float y) { y = Softmax (x) }")
    text.graph.node[0].attribute.append(AttributeProto(name="axis", type=AttributeProto.INT, ref_attr_name="p"))
    model = load_proto(text)
    assert model.nodes[0].attributes == {"axis": Attribute("INT", None)}
    assert not model.runnable


def test_a_graph_handed_to_a_function_reads_the_names_of_the_caller() -> None:
    text = proto(
        "g (float x, float h, bool c) => (float y) { y = local.f (x, c) }",
        """f (a, c) => (b) { h = Relu (a)
            b = If (c) <then_branch = p () => (float u) { u = Neg (h) },
                        else_branch = q () => (float v) { v = Relu (h) }> }""",
    )
    body = helper.make_graph(
        [helper.make_node("Abs", ["h"], ["u"])], "given", [], [helper.make_empty_tensor_value_info("u")]
    )
    text.graph.node[0].attribute.append(helper.make_attribute("branch", body))
    text.functions[0].attribute.append("branch")
    branch = text.functions[0].node[1].attribute[0]
    branch.ClearField("g")
    branch.ref_attr_name = "branch"
    model = load_proto(text)
    path, inputs, _ = next(it for it in shown(model) if "Abs" in it[0])
    assert (path, inputs) == ("/0:local::f!1:If.then_branch/0:Abs", ['/"h"'])


# ---- Odd functions ----------------------------------------------------------------------------


def test_an_output_that_is_an_input_gets_an_identity() -> None:
    model = read("g (float x) => (float y, float z) { y, z = local.f (x) }", "f (a) => (a, b) { b = Relu (a) }")
    assert shown(model) == [
        ("/0:local::f!0:Relu", ['/"x"'], ['/"z"']),
        ("/0:local::f!1:Identity", ['/"x"'], ['/"y"']),
    ]
    assert (model.nodes[1].opset, model.nodes[1].version) == (18, 16)


def test_an_output_listed_twice_gets_an_identity() -> None:
    model = read("g (float x) => (float y, float z) { y, z = local.f (x) }", "f (a) => (b, b) { b = Relu (a) }")
    assert shown(model) == [
        ("/0:local::f!0:Relu", ['/"x"'], ['/"y"']),
        ("/0:local::f!1:Identity", ['/"y"'], ['/"z"']),
    ]


def test_the_identity_reads_its_input_also_inside_a_body() -> None:
    model = read(
        """g (float x, bool c) => (float y) {
            y = If (c) <then_branch = p () => (float u) { u = local.f (x) },
                        else_branch = q () => (float v) { v = Relu (c) }> }""",
        "f (a) => (a) { }",
    )
    assert [model.tensors[t].path for t in model.nodes[0].captures] == ['/"x"', '/"c"']


def test_the_identity_is_of_the_newest_operator_set_where_the_function_imports_none() -> None:
    text = proto("g (float x) => (float y) { y = local.f (x) }", "f (a) => (a) { }")
    del text.functions[0].opset_import[:]
    assert load_proto(text).nodes[0].opset == newest_opset()


def test_an_output_that_the_function_never_writes_has_no_producer() -> None:
    model = read("g (float x) => (float y) { y = local.f (x) }", "f (a) => (b) { c = Relu (a) }")
    assert shown(model) == [("/0:local::f!0:Relu", ['/"x"'], ['/0:local::f!"c"'])]


@pytest.mark.parametrize("call", ["y = local.f (x, x)", "y, z = local.f (x)"])
def test_a_call_with_more_than_the_function_declares_stays_an_unknown_operator(call: str) -> None:
    model = read(f"g (float x) => (float y) {{ {call} }}", "f (a) => (b) { b = Relu (a) }")
    assert [(node.domain, node.op_type, node.version) for node in model.nodes] == [("local", "f", None)]


def test_a_call_of_a_domain_that_is_not_imported_stays_an_unknown_operator() -> None:
    text = proto("g (float x) => (float y) { y = local.f (x) }", "f (a) => (b) { b = Relu (a) }")
    del text.opset_import[1]
    node = load_proto(text).nodes[0]
    assert (node.path, node.opset, node.version) == ("/0:local::f", None, None)


def test_a_call_of_nothing_stays_an_unknown_operator() -> None:
    node = read("g (float x) => (float y) { y = local.missing (x) }").nodes[0]
    assert (node.domain, node.op_type, node.opset, node.version) == ("local", "missing", 1, None)


# ---- Recursion and limits ---------------------------------------------------------------------


def test_recursion_is_refused_and_its_cycle_named() -> None:
    with pytest.raises(ModelError, match=r"local::f calls local::h calls local::f: "):
        read(
            "g (float x) => (float y) { y = Relu (x) }",
            "f (a) => (b) { b = local.h (a) }",
            "h (a) => (b) { b = local.f (a) }",
        )


def test_recursion_through_a_body_is_refused() -> None:
    with pytest.raises(ModelError, match=r"local::f calls local::f: "):
        read(
            "g (float x) => (float y) { y = Relu (x) }",
            """f (a, c) => (b) { b = If (c) <then_branch = p () => (float u) { u = local.f (a, c) },
                                             else_branch = q () => (float v) { v = Relu (a) }> }""",
        )


def chain(length: int, calls: int) -> ModelProto:
    """f0 is a Relu; each other function calls the one before it several times."""
    text = proto(f"g (float x) => (float y) {{ y = local.f{length - 1} (x) }}")
    for i in range(length):
        function = FunctionProto(name=f"f{i}", domain="local", input=["a"], output=["b"])
        function.opset_import.extend(text.opset_import)
        if i == 0:
            function.node.append(helper.make_node("Relu", ["a"], ["b"]))
        names = ["a", *(f"t{k}" for k in range(calls - 1)), "b"]
        for k in range(calls if i else 0):
            function.node.append(helper.make_node(f"f{i - 1}", [names[k]], [names[k + 1]], domain="local"))
        text.functions.append(function)
    return text


def test_expansion_without_measure_is_refused_at_once() -> None:
    start = time.process_time()
    with pytest.raises(ModelError, match="expand to more than 1000000 nodes"):
        load_proto(chain(60, 2))
    assert time.process_time() - start < 2


def test_calls_nested_without_measure_are_refused() -> None:
    with pytest.raises(ModelError, match="more than 100 deep"):
        load_proto(chain(5000, 1))


def test_calls_nested_up_to_the_limit_load() -> None:
    model = load_proto(chain(100, 1))
    assert len(model.nodes) == 1
    assert len(model.nodes[0].calls) == 100


def test_names_too_long_to_repeat_are_refused() -> None:
    text = chain(14, 2)
    text.functions[13].node[0].name = "n" * 1_000_000
    with pytest.raises(ModelError, match="too long"):
        load_proto(text)


CALLED = (
    "ignoring (a) => (b) { b = Constant<value_float = 1.0>() }",
    "reading (a) => (b) { b = Abs(a) }",
    "passing (a) => (b) { b = local.ignoring(a) }",
    "within (a) => (b) { t = local.ignoring(u) u = Abs(t) b = Add(u, a) }",
)
"""Functions; a call of the first, or through the third, does not read what it is given."""
ELSE = "else_branch = e () => (q) { q = Neg(x) }"


@table(
    "nodes, place",
    [
        ("v = local.ignoring(v) y = Add(x, v)", "/"),
        ("v = local.ignoring(w) w = Abs(v) y = Add(x, w)", "/"),
        ("v = local.passing(w) w = Abs(v) y = Add(x, w)", "/"),
        ("y = local.within(x)", "/0:local::within!"),
        (f"w = If(c) <then_branch = t () => (p) {{ p = Abs(v) }}, {ELSE}> v = local.ignoring(w) y = Add(x, w)", "/"),
        (
            f"y = If(c) <then_branch = t () => (p) {{ r = local.ignoring(s) s = Abs(r) p = Add(s, x) }}, {ELSE}>",
            "/0:If.then_branch/",
        ),
        ("v = local.reading(w) w = Abs(v) y = Add(x, w)", ""),
        ("v = local.ignoring(w) w = Abs(v) r = Abs(s) s = Abs(r) y = Add(x, w)", ""),
        ("v = Abs(w) w = Abs(v) u = local.ignoring(x) y = Add(v, u)", ""),
        ("y = Add(x, w) w = Abs(v) v = local.ignoring(x)", ""),
    ],
)
def test_a_cycle_is_refused_where_a_call_in_it_does_not_read_what_it_is_given(nodes: str, place: str) -> None:
    """Expanded it is none; the others are for a rule. The rechecker reads the same."""
    made = proto(f"g (float[2] x, bool c) => (float[2] y) {{ {nodes} }}", *CALLED)
    if not place:
        assert load_proto(made).nodes and reader.read(made).nodes
        return
    with pytest.raises(ModelError, match=f"the nodes of {re.escape(place)} need each other's outputs"):
        load_proto(made)
    with pytest.raises(ModelError, match="need each other's outputs"):
        reader.read(made)
