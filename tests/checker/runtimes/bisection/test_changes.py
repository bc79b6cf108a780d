"""What optimizers change in a model: nodes that one has and the other does not, by what they mean."""

from __future__ import annotations

from onnx import parser
from sonnx.checker.runtimes.bisection.changes import change


def model(body: str, constants: str = "") -> bytes:
    held = f"<{constants}>" if constants else ""
    imports = '<ir_version: 9, opset_import: ["" : 18, "com.microsoft" : 1]>'
    text = f"{imports} g (float[2] x) => (float[2] y) {held} {{ {body} }}"
    return parser.parse_model(text).SerializeToString()


def test_a_fused_node_takes_the_place_of_those_that_it_is_made_of() -> None:
    before = model("r = Div(one, x)  a = Abs(x)  z = Mul(r, a)  y = Neg(z)", "float one = {1}")
    after = model("a = Abs(x)  z = Div(a, x)  y = Neg(z)")
    found = change(before, after)
    assert found.removed == ("r = Div(1.0, x)", "z = Mul(r, a)")
    assert found.added == ("z = Div(a, x)",)
    assert found.tensors == ("r", "z")


def test_other_names_of_constants_and_attributes_by_default_are_no_change() -> None:
    before = model("s = Sum(x, c)  y = Softmax(s)", "float[2] c = {1, 2}")
    after = model("s = Sum(x, shared)  y = Softmax<axis = -1>(s)", "float[2] shared = {1, 2}")
    assert change(before, after).removed == change(before, after).added == ()


def test_another_element_type_or_attribute_and_a_node_more_are_changes() -> None:
    before = model("s = Sum(x, c)  y = Softmax(s)", "float[2] c = {1, 2}")
    found = change(before, model("s = Sum(x, c)  y = Softmax<axis = 0>(s)", "float[2] c = {1, 2.5}"))
    assert found.removed == ("s = Sum(x, [1.0, 2.0])", "y = Softmax(s)")
    assert found.added == ("s = Sum(x, [1.0, 2.5])", "y = Softmax<axis = 0>(s)")
    twice = change(model("a = Abs(x)  y = Neg(a)"), model("a = Abs(x)  y = Neg(a)  b = Neg(a)"))
    assert twice.added == ("b = Neg(a)",)


def test_long_constants_and_other_domains_are_named() -> None:
    body = "s = Reshape(x, wide)  y = com.microsoft.Gelu(s)"
    found = change(model(body, "int64[5] wide = {2, 1, 1, 1, 1}"), model("y = Abs(x)"))
    assert found.removed == ("s = Reshape(x, wide[5])", "y = com.microsoft.Gelu(s)")
