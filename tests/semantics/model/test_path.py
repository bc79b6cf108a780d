"""The path grammar: print and parse are inverse, paths are inert, and every element of a model is found by its path."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import parser
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.path import (
    Body,
    Call,
    CallPlace,
    GraphPlace,
    NodePlace,
    Path,
    Port,
    Step,
    TensorPlace,
    node_path,
    operator_text,
    parse_path,
    print_path,
    quote,
    resolve,
)
from tables import table

HOSTILE = '/1:If("x").b@3!<>&"\\\n\x1b[31m\u202e\U0001f600'

names = st.text(
    st.characters(exclude_categories=("Cs",)) | st.sampled_from('/:.@!<>&"\\()[]\n\x1b\x7f\x00é\U0001f600'), max_size=9
)
plain = st.text(string.ascii_letters + "_", min_size=1, max_size=5)
indices = st.integers(0, 10**9)
bodies = st.builds(Body, (plain | names.filter(bool)), st.none() | indices, st.none() | indices)
inner = st.builds(Step, indices, plain | names, names, bodies | st.builds(Call))
last = st.builds(Step, indices, plain | names, names)
paths = st.one_of(
    st.builds(lambda steps, name: Path(tuple(steps), name), st.lists(inner, max_size=4), names),
    st.builds(
        lambda steps, end, port: Path((*steps, end), port=port),
        st.lists(inner, max_size=4),
        last,
        st.none() | st.builds(Port, st.booleans(), indices),
    ),
    st.builds(
        lambda steps, end: Path((*steps, end)),
        st.lists(inner, max_size=4),
        st.builds(Step, indices, plain | names, names, bodies),
    ),
    st.just(Path()),
)


@given(paths)
@settings(max_examples=300, deadline=None)
def test_parse_is_the_inverse_of_print(path: Path) -> None:
    text = print_path(path)
    assert parse_path(text) == path
    assert print_path(parse_path(text)) == text


@given(paths)
@settings(max_examples=200, deadline=None)
def test_a_path_is_printable_ascii_without_markup(path: Path) -> None:
    text = print_path(path)
    assert all(" " <= char <= "~" for char in text)
    if path.port is not None:
        text = text.rpartition(">" if path.port.output else "<")[0]
    assert not set(text) & set("<>&")


@given(st.text(alphabet='/0123:If."()@![]<>a\\u', max_size=24))
@settings(max_examples=300, deadline=None)
def test_what_parses_is_printed_as_it_was_written(text: str) -> None:
    try:
        path = parse_path(text)
    except ValueError:
        return
    assert print_path(path) == text


@given(names)
def test_names_are_escaped_as_json(name: str) -> None:
    import json

    assert json.loads(quote(name)) == name


@table(
    ("text", "path"),
    [
        ("/", Path()),
        ('/3:Conv("conv1")', Path((Step(3, "Conv", "conv1"),))),
        (
            '/7:If("sel").then_branch/2:Add',
            Path((Step(7, "If", "sel", Body("then_branch")), Step(2, "Add"))),
        ),
        ('/7:Loop.body@4/"y"', Path((Step(7, "Loop", "", Body("body", None, 4)),), "y")),
        (
            '/4:local::foo("f")!0:Relu("r")>1',
            Path((Step(4, "local::foo", "f", Call()), Step(0, "Relu", "r")), port=Port(True, 1)),
        ),
        ("/0:X.gs[2]", Path((Step(0, "X", "", Body("gs", 2)),))),
        ('/0:"a b"<0', Path((Step(0, "a b"),), port=Port(False, 0))),
    ],
)
def test_the_examples_of_the_grammar_read_as_written(text: str, path: Path) -> None:
    assert parse_path(text) == path
    assert print_path(path) == text


@table(
    ("text", "column"),
    [
        ("", 1),
        ("x", 1),
        ("/01:A", 3),
        ("/1", 3),
        ("/1:", 4),
        ('/1:"A"', 4),
        ('/1:A("")', 8),
        ('/1:A("b"', 9),
        ("/1:A!", 6),
        ("/1:A.b/", 8),
        ("/1:A.b@", 8),
        ('/"a"x', 5),
        ('/"a\\n"', 2),
        ('/"\\ud800"', 2),
        ("/1:A>1x", 7),
        ('/1:A."b"', 6),
        ("/99999999999999999999:A", 2),
    ],
)
def test_what_is_no_path_is_refused_at_its_column(text: str, column: int) -> None:
    with pytest.raises(ValueError, match=f"column {column}: ") as error:
        parse_path(text)
    assert "\n" not in str(error.value)


def test_operators_of_other_domains_carry_the_domain() -> None:
    assert operator_text("", "Relu") == "Relu"
    assert operator_text("com.example", "Foo") == "com.example::Foo"
    assert operator_text("com.example", "Foo bar") == '"com.example::Foo bar"'
    assert node_path("/", 3, "Relu", "") == "/3:Relu"


def nested() -> Model:
    """A model with a body, a call and hostile names."""
    proto = parser.parse_model("""
        <ir_version: 10, opset_import: ["": 18, "local": 1]>
        g (float[2] x, bool c) => (float[2] y) {
            h = local.f (x)
            y = If (c) <then_branch = t () => (float[2] u) { u = local.f (h) },
                        else_branch = e () => (float[2] v) { v = Relu (h) }>
        }
        <opset_import: ["": 18], domain: "local"> f (a) => (b) { m = Relu (a) b = Neg (m) }
    """)
    proto.graph.node[0].name = HOSTILE
    return load_proto(proto)


def test_every_element_is_found_by_its_own_path() -> None:
    model = nested()
    for n, node in enumerate(model.nodes):
        assert resolve(model, node.path) == NodePlace(n, None, (None,) * node.path.count("_branch"))
    for t, tensor in enumerate(model.tensors):
        found = resolve(model, tensor.path)
        assert isinstance(found, TensorPlace)
        assert found.tensor == t
    for g, graph in enumerate(model.graphs):
        found = resolve(model, graph.path)
        assert isinstance(found, GraphPlace)
        assert found.graph == g


def test_a_call_names_the_nodes_that_it_was_expanded_to() -> None:
    model = nested()
    call = node_path("/", 0, "local::f", HOSTILE)
    assert resolve(model, call) == CallPlace((0, 1))
    assert model.nodes[0].calls == (call,)


def test_ports_are_found_where_the_node_has_them() -> None:
    model = nested()
    path = model.nodes[0].path
    assert resolve(model, path + ">0") == NodePlace(0, Port(True, 0))
    assert resolve(model, path + "<0") == NodePlace(0, Port(False, 0))
    assert resolve(model, path + ">1") is None


def test_an_iteration_is_kept_and_does_not_change_the_element() -> None:
    model = nested()
    path = next(node.path for node in model.nodes if "else_branch" in node.path)
    found = resolve(model, path.replace("else_branch", "else_branch@7"))
    assert isinstance(found, NodePlace)
    assert found.iterations == (7,)
    assert model.nodes[found.node].path == path


def test_a_path_of_nothing_resolves_to_nothing() -> None:
    model = nested()
    assert resolve(model, "/9:Relu") is None
    assert resolve(model, '/"nobody"') is None
    assert resolve(model, "/1:If.other") is None
