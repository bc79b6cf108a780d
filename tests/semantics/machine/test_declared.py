"""AsDeclared: a run gives no outputs that contradict what the model declares for them."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from sonnx.semantics import load_proto, run
from sonnx.semantics.errors import ModelError
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.formulas.evaluate import judge
from sonnx.semantics.machine import execution
from sonnx.semantics.machine.execution import Run, check_well_formed
from sonnx.semantics.model.values import Value
from sonnx.semantics.runtimes.fastpath import Session
from sonnx.spec.library import specification
from tables import table

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
X23 = np.arange(6, dtype=np.float32).reshape(2, 3)


def graph(declared: str, nodes: str, inputs: str = "float[2,3] x") -> ModelProto:
    return parser.parse_model(f"{HEADER} g ({inputs}) => ({declared}) {{ {nodes} }}")


def ended(model: ModelProto, given: Mapping[str, Value], **options: Any) -> Run:
    return run(load_proto(model), given, **options)


REFUSED: list[tuple[str, str, str, dict[str, Any], str]] = [
    ("float[3,2] y", "y = Relu(x)", "float[2,3] x", {"x": X23}, "size 2 along axis 0, expected 3: float[3, 2]"),
    ("float[6] y", "y = Relu(x)", "float[2,3] x", {"x": X23}, "2 dimensions [2, 3], expected 1: float[6]"),
    ("float[2,3,1] y", "y = Relu(x)", "float[2,3] x", {"x": X23}, "2 dimensions [2, 3], expected 3"),
    ("int64[2,3] y", "y = Relu(x)", "float[2,3] x", {"x": X23}, "is float[2, 3], expected int64[2, 3]"),
    (
        "float[N,3] y",
        "y = Concat<axis = 0>(x, z)",
        "float[N,3] x, float[N,3] z",
        {"x": X23, "z": X23},
        'size 4 along axis 0, which is called "N", and the input "x" made that 2: float[N, 3], computed [4, 3]',
    ),
    (
        "float[N,M] y",
        "y = Transpose(x)",
        "float[N,M] x",
        {"x": X23},
        'size 3 along axis 0, which is called "N", and the input "x" made that 2',
    ),
    (
        "float[K,3] y, float[K,2] z",
        "y = Relu(x) z = Transpose(x)",
        "float[2,3] x",
        {"x": X23},
        'size 3 along axis 0, which is called "K", and the output "y" made that 2',
    ),
    (
        "float[L,L] y",
        "y = Relu(x)",
        "float[2,3] x",
        {"x": X23},
        'size 3 along axis 1, which is called "L", and the output "y" made that 2',
    ),
    (
        "seq(int64) y",
        "y = SequenceConstruct(x)",
        "float[2,3] x",
        {"x": X23},
        "is sequence(float), expected sequence(int64",
    ),
    ("seq(float) y", "y = Relu(x)", "float[2,3] x", {"x": X23}, "is float[2, 3], expected sequence(float"),
]


@table("allocation", ["simple", "arena"])
@table(("declared", "nodes", "inputs", "given", "words"), REFUSED)
def test_outputs_that_contradict_their_declaration_are_refused(
    declared: str, nodes: str, inputs: str, given: dict[str, Any], words: str, allocation: str
) -> None:
    done = ended(graph(declared, nodes, inputs), given, allocation=allocation)
    assert done.stuck is not None
    assert done.stuck.rule == "AsDeclared"
    assert words in done.stuck.message
    assert not done.outputs
    assert len(done.choices) == nodes.count("=") - nodes.count("axis =")


@table(
    ("declared", "nodes", "inputs", "given"),
    [
        ("float[2,3] y", "y = Relu(x)", "float[2,3] x", {"x": X23}),
        ("float[N,M] y", "y = Relu(x)", "float[N,M] x", {"x": X23}),
        ("float[M,N] y", "y = Transpose(x)", "float[N,M] x", {"x": X23}),
        ("float[N,N] y", "y = MatMul(x, z)", "float[N,M] x, float[M,N] z", {"x": X23, "z": X23.T.copy()}),
        ("float[a,b] y", "y = Concat<axis = 0>(x, z)", "float[N,3] x, float[N,3] z", {"x": X23, "z": X23}),
        ("float[?,3] y", "y = Relu(x)", "float[2,3] x", {"x": X23}),
        ("float y", "y = ReduceSum<keepdims = 0>(x)", "float[2,3] x", {"x": X23}),
        ("seq(float[7]) y", "y = SequenceConstruct(x)", "float[2,3] x", {"x": X23}),
    ],
)
def test_outputs_that_fit_or_are_left_open_are_given(
    declared: str, nodes: str, inputs: str, given: dict[str, Any]
) -> None:
    """Of sequences the shapes are not compared: tests of ONNX itself declare wrong ones."""
    done = ended(graph(declared, nodes, inputs), given)
    assert done.stuck is None and list(done.outputs) == ["y"]


def test_a_declaration_without_a_shape_admits_any() -> None:
    model = graph("float[9] y", "y = Relu(x)")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert ended(model, {"x": X23}).stuck is None
    model.graph.output[0].ClearField("type")
    assert ended(model, {"x": X23}).stuck is None


def test_a_size_that_is_declared_as_a_negative_number_is_open() -> None:
    model = graph("float[9,3] y", "y = Relu(x)")
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert ended(model, {"x": X23}).stuck is None


def test_declarations_of_other_tensors_have_no_effect_on_a_run() -> None:
    model = graph("float[2,3] y", "a = Relu(x) y = Neg(a)")
    claim = model.graph.value_info.add(name="a")
    claim.type.CopyFrom(model.graph.output[0].type)
    claim.type.tensor_type.shape.dim[0].dim_value = 7
    assert ended(model, {"x": X23}).stuck is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"x": X23, "z": X23[:1]},
            'the input "z" has size 1 along axis 0, which is called "N", and the input "x" made',
        ),
        ({"x": X23, "z": X23.astype(np.int64)}, 'the input "z" is int64[2, 3], expected float[N, 3]'),
        ({"x": X23, "z": X23[0]}, 'the input "z" has 1 dimensions [3], expected 2'),
    ],
)
def test_inputs_that_contradict_their_declaration_are_refused(given: dict[str, Any], words: str) -> None:
    model = graph("float[N,3] y", "y = Add(x, z)", "float[N,3] x, float[N,3] z")
    with pytest.raises(ModelError) as caught:
        ended(model, given)
    assert words in str(caught.value)


DEFAULTS: list[tuple[str, dict[str, Any], str]] = [
    ("float[2] w", {}, 'the input "w" has size 3 along axis 0, expected 2: float[2], stored'),
    ("float[?,3] w", {}, 'the input "w" has 1 dimensions [3], expected 2: float[?, 3]'),
    ("int64[3] w", {}, 'the input "w" is float[3], expected int64[3]'),
    ("float[N] x, float[N] w", {"x": X23[0, :1]}, 'called "N", and the input "x" made that 1'),
    ("float[N] w, float[N] x", {"x": X23[0, :1]}, 'called "N", and the input "w" made that 3'),
]


@table(("inputs", "given", "words"), DEFAULTS)
def test_a_stored_value_that_contradicts_the_input_that_it_is_for_is_refused_unless_replaced(
    inputs: str, given: dict[str, Any], words: str
) -> None:
    text = f"{HEADER} g ({inputs}) => (float[M] y) <float[3] w = {{1, 2, 3}}> {{ a = Cast<to = 1>(w) y = Relu(a) }}"
    model = parser.parse_model(text)
    done = ended(model, given)
    assert done.stuck is not None and done.stuck.rule == "AsDeclared" and not done.outputs
    assert words in done.stuck.message
    with pytest.raises(ModelError) as caught:
        Session(load_proto(model)).run(None, given)
    assert words in str(caught.value)
    size = 1 if given else 2 if "2" in inputs else 3
    if "?" not in inputs:  # of y one dimension is declared
        replaced = np.ones(size, np.int64 if "int" in inputs else np.float32)
        assert ended(model, {**given, "w": replaced}).stuck is None


def test_a_node_that_lists_more_outputs_than_its_operator_has_is_stuck() -> None:
    model = graph("float[2,3] a, float[2,3] b", "a, b = Identity(x)")
    done = ended(model, {"x": X23})
    assert done.stuck is not None and done.stuck.rule == "PortsCounted" and "/0:Identity" in done.stuck.message
    assert done.outputs == {}


INNER = [
    ("<int32[2,3] z> { z = Relu(x) y = Cast<to = 1>(z) }", True),
    ("<float[2,3] z> { z = Cast<to = 10>(x) y = Cast<to = 1>(z) }", True),
    ("<seq(float[2,3]) z> { z = Relu(x) y = Identity(z) }", True),
    ("<float[7] z> { z = Relu(x) y = Identity(z) }", False),
]


@pytest.mark.parametrize(("body", "refused"), INNER)
def test_a_value_inside_has_the_type_that_is_declared_but_any_shape(body: str, refused: bool) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 13]> g (float[2,3] x) => (float[2,3] y) {body}'
    done = ended(parser.parse_model(text), {"x": X23})
    assert (done.stuck is not None and done.stuck.rule == "TypesAsDeclared") == refused


@pytest.mark.parametrize(
    ("declared", "verdict"), [("", "holds"), ("<float[3] a>", "holds"), ("<int64[3] c>", "violated")]
)
def test_a_value_of_unknown_type_has_the_type_that_nothing_declares(declared: str, verdict: str) -> None:
    text = '<ir_version: 8, opset_import: ["" : 13, "elsewhere" : 1]> g (float[3] x) => (float[3] y)'
    model = load_proto(parser.parse_model(f"{text} {declared} {{ a = elsewhere.Foo(x) c = Neg(x) y = Add(a, c) }}"))
    rule = specification().constraints["TypesAsDeclared"]
    assert judge(rule, specification().functions, structure(model)).verdict == verdict


def test_a_graph_of_which_a_constraint_is_not_known_is_refused_with_the_reason() -> None:
    model = load_proto(
        parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 13, "elsewhere" : 1]> g (float[3] x) => (float[3] y) '
            "{ a = elsewhere.Foo(x) y = Neg(a) }"
        )
    )
    refused = check_well_formed(model, ["Deterministic"])
    assert refused is not None
    assert refused.message.startswith("it is not known of /0:elsewhere::Foo (one of 1 places): ONNX does not define")


def test_a_model_is_judged_once_and_another_in_its_place_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"y = Relu(x)": True, "z = Relu(y) y = Relu(z)": False}
    asked: list[object] = []
    monkeypatch.setattr(execution, "judge", lambda *given, **more: asked.append(given) or judge(*given, **more))
    for text, right in list(texts.items()) * 5:
        model = load_proto(graph("float[2,3] y", text))
        assert (check_well_formed(model) is None) == right
        count = len(asked)
        assert (check_well_formed(model) is None) == right and len(asked) == count
        del model
    gc.collect()
    assert not [it for it, _, _ in execution._answers.values() if it() is None]
