"""Certificates that someone would like to have, each sealed again with all around it made to fit: none passes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import pytest
from aggregated import aggregate
from onnx import TensorProto, helper
from sampling import sampled
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.certification.certifier import certify
from sonnx.checker.rechecker import Outcome, Recheck
from sonnx.checker.rechecker.form import read
from sonnx.checker.rechecker.replay import Subject, compared
from sonnx.semantics.errors import ModelError

FLOAT = TensorProto.FLOAT


def sparse_branch() -> onnx.ModelProto:
    """An If whose branches give a tensor and a sparse tensor."""
    dense = helper.make_tensor_value_info("p", FLOAT, [2])
    sparse = helper.make_sparse_tensor_value_info("q", FLOAT, [2])
    then = helper.make_graph([helper.make_node("Identity", ["x"], ["p"])], "then", [], [dense])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["q"])], "else", [], [sparse])
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    inputs = [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("x", FLOAT, [2])]
    return model([node], inputs, [helper.make_tensor_value_info("y", FLOAT, [2])])


def broken() -> onnx.ModelProto:
    """A cycle, a dead node, a double output, a random operator, an idle input, an output without value."""
    nodes = [
        helper.make_node("Mul", ["b", "x"], ["a"]),
        helper.make_node("Mul", ["a", "x"], ["b"]),
        helper.make_node("Relu", ["x"], ["t"]),
        helper.make_node("Neg", ["x"], ["t"]),
        helper.make_node("RandomNormal", [], ["dead"], shape=[2]),
    ]
    values = [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("x", "idle", "t", "a")]
    return model(nodes, values[:2], values[2:])


def conditional() -> onnx.ModelProto:
    """A convolution that needs H >= 3, and a gathering whose index is an input."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Gather", ["c", "i"], ["y"])]
    stored = [helper.make_tensor("w", FLOAT, [1, 1, 3, 3], [1.0] * 9)]
    inputs = [
        helper.make_tensor_value_info("x", FLOAT, ["N", 1, "H", 5]),
        helper.make_tensor_value_info("i", TensorProto.INT64, [2]),
    ]
    return model(nodes, inputs, [helper.make_tensor_value_info("y", FLOAT, [2, 1, "A", "B"])], stored)


def fine() -> onnx.ModelProto:
    """Conforms."""
    nodes = [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    values = [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("x", "y")]
    return model(nodes, values[:1], values[1:])


def fine_too() -> onnx.ModelProto:
    """Conforms, with the same counts."""
    return onnx.ModelProto.FromString(fine().SerializeToString().replace(b"Relu", b"Sqrt"))


def model(nodes: Any, inputs: Any, outputs: Any, stored: Any = ()) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


BUILT = {make.__name__: make for make in (sparse_branch, broken, conditional, fine, fine_too)}
RULES = ("sonnx", "sonnx-2025-10")


@pytest.fixture(scope="module")
def issue(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Any, Path]]:
    """A genuine certificate of a built model, and the model."""
    folder = tmp_path_factory.mktemp("forged")

    def make(name: str, rules: tuple[str, ...] = RULES, *, strict: bool = False) -> tuple[Any, Path]:
        path = folder / f"{name}.onnx"
        if not path.exists():
            onnx.save(BUILT[name](), path)
        return json.loads(issued(path, rules, strict)), path

    @cache
    def issued(path: Path, rules: tuple[str, ...], strict: bool) -> bytes:
        return seal(certificate(certify(path, rules, others=False, witnesses=True, strict=strict)))

    return make


def fitted(statement: Any) -> bytes:
    """Sealed again, the verdicts, obligations and witnesses around the rules made to follow from them."""
    aggregate(statement)
    predicate = statement["predicate"]
    holding = {r["constraint"] for r in predicate["rules"] if r["verdict"] == "holds"}
    kept = {name: witness for name, witness in predicate["witnesses"].items() if name in holding}
    predicate["witnesses"] = {**{name: {"kind": "places"} for name in holding}, **kept}
    return seal(statement)


@cache
def subject(path: Path) -> Subject:
    return Subject(path)


def recheck(data: bytes, path: Path) -> Recheck:
    """What `sonnx.checker.recheck` says; a model is read once."""
    return compared(read(data), subject(path))


def refuted(statement: Any, path: Path) -> bool:
    try:
        return recheck(fitted(statement), path).outcome is Outcome.REFUTED
    except ModelError:
        return True


def rules_of(statement: Any, constraint: str) -> list[Any]:
    return [rule for rule in statement["predicate"]["rules"] if rule["constraint"] == constraint]


def whitewash(statement: Any, constraint: str, witness: Any) -> None:
    """Lets the rules with that constraint hold."""
    for rule in rules_of(statement, constraint):
        rule.update(verdict="holds", findings=[], total=0, besides={}, obligations=0)
    statement["predicate"]["witnesses"][constraint] = witness


# ---- A verdict, with every kind of witness ------------------------------------------------------


def test_branches_of_different_kinds_are_not_whitewashed_by_a_witness_that_says_nothing(issue: Any) -> None:
    statement, path = issue("sparse_branch")
    assert rules_of(statement, "BranchesAgree")[0]["verdict"] == "violated"
    assert recheck(seal(statement), path).outcome is Outcome.CONFIRMED
    whitewash(statement, "BranchesAgree", {"kind": "places"})
    assert refuted(statement, path)


WITNESSES = {
    "places": {"kind": "places"},
    "producers": {"kind": "producers", "tensors": [-1, -1, 0, 1, 2, 4]},
    "consumers": {"kind": "consumers", "tensors": [0, 0, 0, 0, 0, 0]},
    "order": {"kind": "order", "nodes": [2, 3, 4, 0, 1]},
    "derivation": {"kind": "derivation", "nodes": [2, 3, 4, 0, 1]},
    "paths": {"kind": "paths", "next": [-1, -1, -1, -1, -1], "previous": [-1, -1, -1, -1, -1]},
    "table": {"kind": "table", "operators": [["Mul", 14, "deterministic", 5]]},
    "nodes": {"kind": "nodes"},
    "none": {},
}


@pytest.mark.parametrize("kind", WITNESSES)
def test_no_violated_rule_is_made_to_hold_by_any_kind_of_witness(kind: str, issue: Any) -> None:
    honest, path = issue("broken")
    violated = {rule["constraint"] for rule in honest["predicate"]["rules"] if rule["verdict"] == "violated"}
    assert {"Acyclic", "Completeness", "SingleAssignment", "Deterministic", "InputUsage", "NodeConnected"} <= violated
    for constraint in violated:
        statement = json.loads(json.dumps(honest))
        whitewash(statement, constraint, WITNESSES[kind])
        assert refuted(statement, path), constraint


def test_a_rule_that_holds_is_not_made_to_fail(issue: Any) -> None:
    statement, path = issue("fine")
    for rule in rules_of(statement, "Acyclic"):
        rule.update(verdict="violated", total=1, findings=[{"where": "/0:Relu", "witness": {"n": "/0:Relu"}}])
    assert refuted(statement, path)


# ---- Findings, rules, rule sets -----------------------------------------------------------------


def test_no_finding_is_dropped_added_exchanged_or_doubled(issue: Any) -> None:
    honest, path = issue("broken")
    changes: list[Callable[[Any], Any]] = [
        lambda rule: rule.update(findings=rule["findings"][:-1]),
        lambda rule: rule.update(findings=rule["findings"][:-1], total=rule["total"] - 1),
        lambda rule: rule.update(findings=rule["findings"] * 2, total=rule["total"] * 2),
        lambda rule: rule.update(findings=rule["findings"][::-1]),
        lambda rule: rule.update(total=rule["total"] + 1),
        lambda rule: rule["findings"][0].update(where="/"),
        lambda rule: rule["findings"][0]["witness"].update(extra=1),
    ]
    for index, rule in enumerate(honest["predicate"]["rules"]):
        for change in changes if rule["constraint"] in ("Acyclic", "Deterministic", "NodeConnected") else ():
            statement = json.loads(json.dumps(honest))
            change(statement["predicate"]["rules"][index])
            if statement != honest:
                assert refuted(statement, path), (rule["id"], changes.index(change))


def test_a_cycle_is_named_by_its_own_nodes(issue: Any) -> None:
    statement, path = issue("broken")
    (finding, *_) = rules_of(statement, "Acyclic")[0]["findings"]
    assert finding["witness"]["cycle"] == ["/0:Mul", "/1:Mul"]
    finding["witness"]["cycle"] = ["/1:Mul", "/0:Mul"]
    assert refuted(statement, path)


@pytest.mark.parametrize("name", ["onnx", "domain"])
def test_no_included_rule_set_is_left_out(name: str, issue: Any) -> None:
    statement, path = issue("fine")
    predicate = statement["predicate"]
    predicate["rule_sets"] = [entry for entry in predicate["rule_sets"] if entry["name"] != name]
    predicate["rules"] = [rule for rule in predicate["rules"] if rule["rule_set"] != name]
    predicate["conditions"].pop(name, None)
    assert refuted(statement, path)
    for entry in predicate["rule_sets"]:
        entry["includes"] = [other for other in entry["includes"] if other != name]
    assert refuted(statement, path)


def test_no_rule_is_left_out_doubled_moved_or_renamed(issue: Any) -> None:
    honest, path = issue("fine")
    for index in range(0, len(honest["predicate"]["rules"]), 7):
        for change in (
            lambda rules, k: rules.pop(k),
            lambda rules, k: rules.insert(k, rules[k]),
            lambda rules, k: rules.append(rules.pop(0)),
            lambda rules, k: rules[k].update(id="other"),
            lambda rules, k: rules[k].update(constraint="Acyclic", statement="0" * 64),
            lambda rules, k: rules[k].update(status="advisory", counted=False),
            lambda rules, k: rules[k].update(counted=False),
            lambda rules, k: rules[k].update(statement="0" * 64),
            lambda rules, k: rules[k].update(obligations=1),
            lambda rules, k: rules[k].update(besides={"obligation": [{"where": "/", "witness": {}}]}),
        ):
            statement = json.loads(json.dumps(honest))
            change(statement["predicate"]["rules"], index)  # type: ignore[no-untyped-call]
            assert statement == honest or refuted(statement, path), index


def test_no_rule_set_of_another_digest_or_name_passes(issue: Any) -> None:
    statement, path = issue("broken")
    for change in ({"digest": "0" * 64}, {"name": "sonnx-2025-04"}, {"variant": "wg-2026-08"}, {"strict": True}):
        changed = json.loads(json.dumps(statement))
        changed["predicate"]["rule_sets"][-1].update(change)
        assert recheck(fitted(changed), path).outcome is not Outcome.CONFIRMED, change


# ---- Obligations and conditions -----------------------------------------------------------------


def test_obligations_and_conditions_are_counted_and_not_weakened(issue: Any) -> None:
    honest, path = issue("conditional", ("sonnx",))
    predicate = honest["predicate"]
    assert recheck(seal(honest), path).outcome is Outcome.CONFIRMED
    assert (predicate["verdict"], predicate["obligations"]) == ("CONFORMS", 1)
    assert predicate["conditions"] == {"domain": [["<=", 3, "H"]]}
    wider = ["or", ["<=", 3, "H"], ["=", 1, "N"]]
    twice = [["<=", 3, "H"], ["<=", 3, "H"]]
    for terms in ([], [["<=", 2, "H"]], [["<=", 4, "H"]], [True], [wider], [["<=", 3, "N"]], twice):
        statement = json.loads(json.dumps(honest))
        statement["predicate"]["conditions"]["domain"] = terms
        assert refuted(statement, path), terms
    for verdict in ("conditional", "obligation"):
        for index, rule in enumerate(predicate["rules"]):
            if rule["verdict"] == verdict:
                statement = json.loads(json.dumps(honest))
                statement["predicate"]["rules"][index].update(verdict="holds", findings=[], total=0, obligations=0)
                statement["predicate"]["witnesses"][rule["constraint"]] = {"kind": "nodes"}
                assert recheck(fitted(statement), path).outcome is not Outcome.CONFIRMED, rule["id"]
                assert verdict != "conditional" or refuted(statement, path)


def test_counts_of_obligations_follow_from_the_rules(issue: Any) -> None:
    honest, path = issue("conditional", ("sonnx",))
    for place in (("obligations",), ("rule_sets", 0, "obligations"), ("rule_sets", -1, "obligations")):
        statement = json.loads(json.dumps(honest))
        inner = statement["predicate"]
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = 0
        assert recheck(seal(statement), path).outcome is Outcome.REFUTED, place


def test_what_is_strict_is_strict_throughout(issue: Any) -> None:
    lenient, path = issue("conditional", ("sonnx",))
    strict, _ = issue("conditional", ("sonnx",), strict=True)
    assert (lenient["predicate"]["verdict"], strict["predicate"]["verdict"]) == ("CONFORMS", "VIOLATES")
    assert recheck(seal(strict), path).outcome is Outcome.CONFIRMED
    for entry in strict["predicate"]["rule_sets"]:
        entry["strict"] = entry["name"] == "sonnx"
    assert refuted(strict, path)


# ---- Another model ------------------------------------------------------------------------------


def test_the_certificate_of_a_model_with_the_same_counts_does_not_pass_for_another(issue: Any) -> None:
    statement, _ = issue("fine")
    other, path = issue("fine_too")
    assert statement["predicate"]["model"] == other["predicate"]["model"]
    assert refuted(statement, path)
    statement["subject"] = other["subject"]
    assert refuted(statement, path), "the table of operators and the rules of Relu are those of the other model"


# ---- Types of values ----------------------------------------------------------------------------


@pytest.mark.parametrize("value", sampled([True, False, 1, 0, -1, "1", None, [], {}, [1], 2**53 - 1], 3))
def test_no_value_in_a_witness_is_taken_for_another(value: Any, issue: Any) -> None:
    honest, path = issue("fine")
    witnesses = {w["kind"]: name for name, w in honest["predicate"]["witnesses"].items()}
    assert {"order", "derivation", "producers", "consumers", "table", "places", "nodes"} <= set(witnesses)
    for kind, name in witnesses.items():
        for key in honest["predicate"]["witnesses"][name]:
            for position in (None, 0, 1):
                statement = json.loads(json.dumps(honest))
                witness = statement["predicate"]["witnesses"][name]
                if position is None:
                    witness[key] = value
                elif isinstance(witness[key], list) and len(witness[key]) > position:
                    witness[key][position] = value
                if json.dumps(statement) != json.dumps(honest):
                    assert refuted(statement, path), (kind, key, position)
