"""The examples of the specification, executed: each meaning has one that gives a result."""

from __future__ import annotations

from sonnx.semantics.machine.example_runs import execute
from sonnx.spec.elaborate.declared import signatures_of
from sonnx.spec.elaborate.schema import Signature, signatures
from sonnx.spec.library import specification
from sonnx.spec.render.site import executed
from sonnx.spec.render.site.examples import Executed, parse_examples, read_examples
from tables import table

OPERATORS = specification().operators
EXAMPLES = read_examples()


def signature(name: str, version: int) -> Signature:
    return next(s for s in signatures()[name] if s.version == version)


def outcome(name: str, version: int, text: str) -> Executed:
    (example,) = parse_examples(f"[[{name}]]\nsays = 's'\n{text}")
    return execute(example, signature(name, version))


@table("name", list(OPERATORS))
def test_every_meaning_has_an_example_with_a_result(name: str) -> None:
    meanings = OPERATORS[name]
    examples = [example for example in EXAMPLES if example.operator == name]
    found = executed(meanings, signatures_of(meanings), examples, execute)
    assert [m.first for m in meanings if not any(done.outputs for _, _, done in found.get(m.first, ()))] == []


def test_values_are_written_with_as_few_digits_as_they_need() -> None:
    done = outcome("Relu", 14, "X = {float = [0.1, -0.0, nan, 1e30, 2]}")
    assert [(v.name, v.type, v.text) for v in done.outputs] == [("Y", "float[5]", "[0.1, -0.0, nan, 1e+30, 2]")]


def test_a_tensor_too_wide_for_a_line_has_a_line_for_each_row() -> None:
    (found,) = outcome("Identity", 14, 'input = {int32 = "count", shape = [2, 2, 5]}').given
    assert found.text.split("\n") == [
        "[[[ 1,  2,  3,  4,  5],",
        "  [ 6,  7,  8,  9, 10]],",
        " [[11, 12, 13, 14, 15],",
        "  [16, 17, 18, 19, 20]]]",
    ]


def test_what_the_text_leaves_open_is_any() -> None:
    done = outcome("Cast", 13, "input = {float = [nan, 2.5]}\nto = 6")
    assert done.outputs[0].text == "[any, 2]"


def test_without_a_result_the_example_says_which_requirement_does_not_hold() -> None:
    done = outcome("Gather", 13, "data = {float = [1]}\nindices = {int64 = [3]}")
    assert not done.outputs and "positions along the axis" in done.stuck


def test_an_attribute_is_the_float32_that_a_model_would_hold() -> None:
    done = outcome("LeakyRelu", 16, "X = {double = [-1.0]}\nalpha = 0.1")
    assert done.given[1].text == "0.1"
    assert done.outputs[0].text == "[-0.10000000149011612]"


def test_a_graph_runs_at_the_version_of_its_operator() -> None:
    text = 'model = "g (float[N] x) => (float[N] y) { y = Identity (x) }"\nx = {float = [1]}'
    done = outcome("If", 11, text)
    assert [v.name for v in done.given] == ["graph", "x"]
    assert done.outputs[0].text == "[1]"


def test_sequences_and_optionals_are_shown_with_their_tensors() -> None:
    done = outcome("SequenceConstruct", 11, "inputs = [{float = [1, 2]}, {float = [3]}]")
    assert (done.outputs[0].type, done.outputs[0].text) == ("sequence of 2", "float[2]  [1, 2]\nfloat[1]  [3]")
    assert outcome("OptionalGetElement", 18, "input = {optional = {string = ['a']}}").outputs[0].text == '["a"]'
