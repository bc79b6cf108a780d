"""Definitions of model-local functions are judged as they are written, whether anything calls them or not.

onnx.checker is asked beside the verdict; where the two differ, the case says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper
from sampling import sampled
from second_solvers import SOLVERS
from sonnx.checker import Verdict, certify, recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.certification.queries.scripts import About, scripts
from sonnx.checker.certification.report import RuleVerdict
from sonnx.semantics import load_proto
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.formulas import evaluate as direct
from sonnx.spec.library import specification

Case = Callable[[], ModelProto]


def model(
    nodes: Sequence[NodeProto],
    *,
    outputs: Sequence[str] = ("b",),
    attributes: Sequence[str] = (),
    imports: Sequence[tuple[str, int]] = (("", 18),),
    called: bool = False,
    others: Sequence[onnx.FunctionProto] = (),
) -> ModelProto:
    """A model with the function l::F of input a. Nothing calls it unless the case says so."""
    opsets = [helper.make_opsetid(domain, version) for domain, version in imports]
    function = helper.make_function("l", "F", ["a"], list(outputs), list(nodes), opsets, list(attributes))
    node = helper.make_node("F", ["x"], ["y"], domain="l") if called else helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "g", [value("x")], [value("y")])
    both = [helper.make_opsetid("", 18), helper.make_opsetid("l", 1)]
    return helper.make_model(graph, opset_imports=both, functions=[function, *others], ir_version=9)


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])


def relu(x: str, y: str, domain: str = "") -> NodeProto:
    return helper.make_node("Relu", [x], [y], domain=domain)


def branch(x: str, y: str, out: str = "", more: str = "") -> GraphProto:
    inputs = [x, more] if more else [x]
    return helper.make_graph([helper.make_node("Relu", inputs, [y])], "body", [], [value(out or y)])


def both(then: GraphProto, *rest: NodeProto) -> list[NodeProto]:
    branches = {"then_branch": then, "else_branch": branch("a", "d")}
    return [helper.make_node("If", ["a"], ["b"], **branches), *rest]


def referring(op_type: str, name: str, kind: int, to: str) -> NodeProto:
    node = helper.make_node(op_type, ["a"], ["b"])
    node.attribute.append(AttributeProto(name=name, type=kind, ref_attr_name=to))  # type: ignore[arg-type]
    return node


def twice_given() -> ModelProto:
    node = helper.make_node("LeakyRelu", ["a"], ["b"], alpha=0.5)
    node.attribute.append(node.attribute[0])
    return model([node])


def without_value() -> ModelProto:
    node = helper.make_node("Constant", [], ["b"])
    node.attribute.append(AttributeProto(name="value", type=AttributeProto.TENSOR))
    return model([node])


SECOND = helper.make_function("l", "G", ["p"], ["q"], [relu("p", "q")], [helper.make_opsetid("", 18)])
CAST = AttributeProto.INT

REFUSED: dict[str, tuple[Case, str, str]] = {
    "too many inputs": (lambda: model([helper.make_node("Relu", ["a", "a"], ["b"])]), "counts", "/0:Relu"),
    "an unknown attribute": (
        lambda: model([helper.make_node("Relu", ["a"], ["b"], foo=1)]), "attribute/known", "foo of /0:Relu"),
    "an attribute of another kind": (
        lambda: model([helper.make_node("LeakyRelu", ["a"], ["b"], alpha=1)]), "attribute/kind", "alpha of"),
    "a reference of another kind": (
        lambda: model([referring("Cast", "to", AttributeProto.FLOAT, "t")], attributes=["t"]),
        "attribute/kind", "to of /0:Cast"),
    "a missing attribute": (lambda: model([helper.make_node("Cast", ["a"], ["b"])]), "attribute/required", "to of"),
    "an attribute twice": (twice_given, "attribute/unique", "alpha of /0:LeakyRelu"),
    "an attribute without a value": (without_value, "attribute/value", "value of /0:Constant"),
    "nodes out of order": (lambda: model([relu("c", "b"), relu("a", "c")]), "sorted", "c at /0:Relu"),
    "a name of nothing": (lambda: model([relu("c", "b")]), "sorted", "c at /0:Relu"),
    "a name written twice": (lambda: model([relu("a", "b"), relu("a", "b")]), "ssa", "b at /1:Relu"),
    "an input written": (lambda: model([relu("a", "a"), relu("a", "b")]), "ssa", "a at /0:Relu"),
    "a required input left empty": (lambda: model([relu("", "b")]), "required", "X of /0:Relu"),
    "a node of nothing": (lambda: model([relu("a", "b"), helper.make_node("Relu", [], [])]), "ports", "/1:Relu"),
    "a deprecated operator": (
        lambda: model([helper.make_node("Upsample", ["a", "a"], ["b"])]), "deprecated", "/0:Upsample"),
    "a domain that is not imported": (lambda: model([relu("a", "b", "q")]), "domain", "/0:q::Relu"),
    "a body with too many inputs": (
        lambda: model(both(branch("a", "c", more="a"))), "counts", "/0:If.then_branch/0:Relu"),
    "a body that reads nothing": (lambda: model(both(branch("z", "c"))), "sorted", "z at /0:If.then_branch/0:Relu"),
    "a body that reads what comes later": (
        lambda: model(both(branch("e", "c"), relu("a", "e"))), "sorted", "e at /0:If.then_branch/0:Relu"),
    "a body that hides a name": (lambda: model(both(branch("a", "a"))), "ssa", "a at /0:If.then_branch/0:Relu"),
    "a body with an output of nothing": (
        lambda: model(both(branch("a", "c", "zz"))), "outputs", "zz of /0:If.then_branch"),
    "ONNX's domain imported as ai.onnx": (
        lambda: model([relu("a", "b")], imports=[("ai.onnx", 18)]), "spelling", "opset_import"),
    "a node of the domain ai.onnx": (lambda: model([relu("a", "b", "ai.onnx")]), "spelling", "/0:Relu"),
    "a node and an import of ai.onnx": (
        lambda: model([relu("a", "b", "ai.onnx")], imports=[("ai.onnx", 18)]), "spelling", "/0:Relu"),
}  # fmt: skip
"""What onnx.checker refuses too: the model, the rule behind function/, and the place."""

BEYOND: dict[str, tuple[Case, str, str]] = {
    "an output of nothing": (lambda: model([relu("a", "c")]), "outputs", "output b in"),
    "a call with too many inputs": (
        lambda: model([helper.make_node("G", ["a", "a"], ["b"], domain="l")], imports=[("l", 1)], others=[SECOND]),
        "calls", "/0:l::G"),
}  # fmt: skip
"""What onnx.checker accepts: onnxruntime refuses the first, the second has no meaning wherever it is called."""

ACCEPTED: dict[str, Case] = {
    "a plain function": lambda: model([relu("a", "b")]),
    "a reference to an attribute": lambda: model([referring("Cast", "to", CAST, "t")], attributes=["t"]),
    "a body that writes its node's output": lambda: model(both(branch("a", "b"))),
    "a name of a body that is used again behind it": lambda: model(both(branch("a", "c"), relu("a", "c"))),
    "a name that tools use": lambda: model([helper.make_node("Relu", ["a"], ["b"], __internal=1)]),
    "a call of another function": lambda: model(
        [helper.make_node("G", ["a"], ["b"], domain="l")], imports=[("l", 1), ("", 18)], others=[SECOND]
    ),
    "both spellings imported": lambda: model([relu("a", "b")], imports=[("", 18), ("ai.onnx", 18)]),
    "an input given out": lambda: model([relu("a", "c")], outputs=["a"]),
}


def judged(given: ModelProto, folder: Path) -> dict[str, list[str]]:
    """The messages of each rule that is violated by default; the certificate is confirmed."""
    file = folder / "m.onnx"
    onnx.save(given, file)
    report = certify(file, witnesses=True)
    rechecked = recheck(seal(certificate(report)), file)
    assert rechecked.outcome == "CONFIRMED", rechecked
    found = {
        rule.id: [finding.message for finding in rule.findings]
        for rule in report.rules
        if rule.counted and rule.verdict is RuleVerdict.VIOLATED
    }
    assert (report.verdict is Verdict.VIOLATES) == bool(found)
    return found


def accepted(given: ModelProto) -> bool:
    """Whether onnx.checker takes a model, its shape inference included."""
    try:
        onnx.checker.check_model(given, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


@pytest.mark.parametrize("name", sampled(REFUSED, 7))
def test_a_definition_that_the_checker_refuses_is_a_violation(name: str, tmp_path: Path) -> None:
    make, rule, place = REFUSED[name]
    assert not accepted(make())
    messages = judged(make(), tmp_path)
    assert place in "".join(messages[f"function/{rule}"])


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_a_function_of_the_domain_ai_onnx_is_not_found_by_its_calls(domain: str, tmp_path: Path) -> None:
    """onnx.checker and onnxruntime refuse the call under either spelling."""
    given = model([relu("a", "b")], called=True)
    given.functions[0].domain, given.graph.node[0].domain = "ai.onnx", domain
    assert not accepted(given)
    messages = judged(given, tmp_path)
    assert messages["function/spelling"] == ['the definition of F writes ONNX\'s own domain as "ai.onnx" at domain']


@pytest.mark.parametrize("name", BEYOND)
def test_a_definition_that_cannot_be_called_is_a_violation(name: str, tmp_path: Path) -> None:
    make, rule, place = BEYOND[name]
    assert accepted(make())
    messages = judged(make(), tmp_path)
    assert set(messages) == {f"function/{rule}"}
    assert place in "".join(messages[f"function/{rule}"])


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_definition_in_order_is_accepted(name: str, tmp_path: Path) -> None:
    assert accepted(ACCEPTED[name]())
    assert judged(ACCEPTED[name](), tmp_path) == {}


def test_a_definition_is_judged_beside_its_calls(tmp_path: Path) -> None:
    messages = judged(model([helper.make_node("Relu", ["a"], ["b"], foo=1)], called=True), tmp_path)
    assert {"attribute/known", "function/attribute/known"} <= set(messages)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["too many inputs", "a body that reads what comes later", "a plain function"])
def test_the_query_over_the_tables_says_the_same(name: str, solver: str) -> None:
    """The scripts of --dump-smt state the definitions as facts; both solvers decide them as the rules are judged."""
    given = load_proto((REFUSED[name][0] if name in REFUSED else ACCEPTED[name])())
    facts, text = structure(given), specification()
    rules = [rule for rule in text.profiles["onnx"].rules if rule.id.startswith("function/")]
    wrong = []
    for rule in rules:
        constraint = text.constraints[rule.constraint]
        verdict = direct.judge(constraint, text.functions, facts).verdict
        wrong += [rule.id] if verdict == "violated" else []
        for script in scripts(constraint, text.functions, facts, About("a model", "00")):
            answer = SOLVERS[solver](script.text, 60.0)
            assert (answer == ["unsat"]) == (script.shows == verdict), rule.id
    assert wrong == ([f"function/{REFUSED[name][1]}"] if name in REFUSED else [])
