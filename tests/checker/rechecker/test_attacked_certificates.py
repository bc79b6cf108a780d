"""Attacks on certificates by someone who did not write the rechecker: places moved, doubled, hidden behind a full list;
and hostile files, which end with a reason and not in a traceback."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.certification.certifier import certify
from sonnx.checker.rechecker import Outcome
from sonnx.checker.rechecker.form import read
from sonnx.checker.rechecker.replay import Subject, compared
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.model.loader import load

from .test_forged_certificates import fitted, model

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
declare, node = helper.make_tensor_value_info, helper.make_node
CONV, GATHER, MATMUL = "Conv-11/kernel_fits", "Gather-1/indices_in_range", "MatMul-1/inner_dimensions"


def gatherings() -> onnx.ModelProto:
    """Three gatherings whose indices are inputs."""
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Gather", ["r", "i"], ["g"]),
        node("Gather", ["g", "i"], ["h"]),
        node("Gather", ["h", "j"], ["y"]),
    ]
    inputs = [declare("x", FLOAT, [4, 4]), declare("i", INT64, [2]), declare("j", INT64, [2])]
    return model(nodes, inputs, [declare("y", FLOAT, [2, 4])])


def made() -> onnx.ModelProto:
    """A size that data decide, which a node behind needs to be 5."""
    nodes = [node("NonZero", ["x"], ["z"]), node("Neg", ["x"], ["n"]), node("MatMul", ["z", "w"], ["y"])]
    inputs = [declare("x", FLOAT, [3, 4]), declare("w", INT64, [5, 2])]
    return model(nodes, inputs, [declare("y", INT64, [2, 2]), declare("n", FLOAT, [3, 4])])


def misfit() -> onnx.ModelProto:
    """A product of matrices that do not fit."""
    nodes = [node("Relu", ["x"], ["r"]), node("MatMul", ["r", "w"], ["y"])]
    inputs = [declare("x", FLOAT, ["A", 3]), declare("w", FLOAT, [4, 5])]
    return model(nodes, inputs, [declare("y", FLOAT, ["A", 5])])


def windows() -> onnx.ModelProto:
    """A convolution that needs H >= 3 and W >= 3."""
    stored = [helper.make_tensor("w", FLOAT, [1, 1, 3, 3], [1.0] * 9)]
    outputs = [declare("y", FLOAT, ["N", 1, "P", "Q"])]
    return model([node("Conv", ["x", "w"], ["y"])], [declare("x", FLOAT, ["N", 1, "H", "W"])], outputs, stored)


def crowd() -> onnx.ModelProto:
    """More products that do not fit than a certificate lists."""
    nodes = [node("MatMul", ["x", "w"], [f"y{i}"]) for i in range(130)]
    inputs = [declare("x", FLOAT, [2, 3]), declare("w", FLOAT, [4, 5])]
    return model(nodes, inputs, [declare(f"y{i}", FLOAT, [2, 5]) for i in range(130)])


def halves() -> onnx.ModelProto:
    """Both outputs of one node are declared wrongly."""
    outputs = [declare("a", FLOAT, [3, 4]), declare("b", FLOAT, [3, 4])]
    return model([node("Split", ["x"], ["a", "b"], num_outputs=2)], [declare("x", FLOAT, [4, 4])], outputs)


def excluding() -> onnx.ModelProto:
    """Two declarations that no sizes satisfy together."""
    outputs = [declare("a", FLOAT, [3, 4]), declare("b", FLOAT, [3, 5])]
    return model([node("Split", ["x"], ["a", "b"], num_outputs=2)], [declare("x", FLOAT, ["H", "W"])], outputs)


def narrowed() -> onnx.ModelProto:
    """A slice that begins outside, which is defined and which SONNX does not allow; and a product that does not fit."""
    stored = [helper.make_tensor(name, INT64, [1], [value]) for name, value in (("b", 5), ("e", 6))]
    nodes = [node("Slice", ["x", "b", "e"], ["s"]), node("MatMul", ["s", "w"], ["y"])]
    inputs = [declare("x", FLOAT, [2, 3]), declare("w", FLOAT, [4, 5])]
    return model(nodes, inputs, [declare("y", FLOAT, ["A", "B"])], stored)


def declared(kind: int, shape: list[int]) -> onnx.ModelProto:
    """A wrong declaration; and a product that does not fit."""
    nodes = [node("Relu", ["x"], ["r"]), node("MatMul", ["r", "w"], ["y"])]
    inputs = [declare("x", FLOAT, [2, 3]), declare("w", FLOAT, [4, 5])]
    made = model(nodes, inputs, [declare("y", FLOAT, ["A", "B"])])
    made.graph.value_info.append(declare("r", kind, shape))
    return made


def misshaped() -> onnx.ModelProto:
    """The shape is declared wrongly."""
    return declared(FLOAT, [3, 2])


def mistyped() -> onnx.ModelProto:
    """The element type is declared wrongly."""
    return declared(TensorProto.DOUBLE, [2, 3])


def branching() -> onnx.ModelProto:
    """A product that does not fit, in a branch that is taken for N >= 3."""
    then = helper.make_graph([node("MatMul", ["x", "w"], ["p"])], "then", [], [declare("p", FLOAT, ["A", "B"])])
    other = helper.make_graph([node("Neg", ["x"], ["q"])], "else", [], [declare("q", FLOAT, ["C", "D"])])
    nodes = [
        node("Shape", ["z"], ["s"]),
        node("GreaterOrEqual", ["s", "three"], ["c"]),
        node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    inputs = [declare("x", FLOAT, [2, 3]), declare("w", FLOAT, [4, 5]), declare("z", FLOAT, ["N"])]
    return model(nodes, inputs, [declare("y", FLOAT, ["E", "F"])], [helper.make_tensor("three", INT64, [1], [3])])


def behind_a_branch() -> onnx.ModelProto:
    """A product that does not fit, of what an If gives whose one branch has no result."""
    then = helper.make_graph([node("MatMul", ["x", "w"], ["p"])], "then", [], [declare("p", FLOAT, ["A", "B"])])
    other = helper.make_graph([node("Neg", ["x"], ["q"])], "else", [], [declare("q", FLOAT, ["C", "D"])])
    nodes = [node("If", ["c"], ["m"], then_branch=then, else_branch=other), node("MatMul", ["m", "w"], ["y"])]
    inputs = [declare("x", FLOAT, [2, 3]), declare("w", FLOAT, [4, 5]), declare("c", TensorProto.BOOL, [])]
    return model(nodes, inputs, [declare("y", FLOAT, ["E", "F"])])


@pytest.fixture(scope="module")
def issue(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[], onnx.ModelProto]], tuple[Any, Subject]]:
    """The genuine certificate of a model, and the model."""
    folder = tmp_path_factory.mktemp("attacked")

    def make(build: Callable[[], onnx.ModelProto]) -> tuple[Any, Subject]:
        path = folder / f"{build.__name__}.onnx"
        if path not in known:
            onnx.save(build(), path)
            known[path] = json.loads(seal(certificate(certify(path, ("sonnx",), witnesses=True)))), Subject(path)
        statement, subject = known[path]
        return copy.deepcopy(statement), subject

    known: dict[Path, tuple[Any, Subject]] = {}
    return make


def rule(statement: Any, id_: str) -> Any:
    (found,) = (r for r in statement["predicate"]["rules"] if r["id"] == id_ and r["rule_set"] == "domain")
    return found


def passes(statement: Any, subject: Subject) -> bool:
    try:
        return compared(read(fitted(statement)), subject).outcome is Outcome.CONFIRMED
    except ModelError:
        return False


def at(path: str, **more: Any) -> Any:
    return {"where": path, "witness": {"n": path, **more}}


@pytest.mark.parametrize("build", [gatherings, made, misfit, windows, crowd, halves, branching])
def test_the_genuine_certificates_pass(build: Any, issue: Any) -> None:
    assert passes(*issue(build))


def test_a_genuine_certificate_is_not_refuted_where_conditions_exclude_each_other(issue: Any) -> None:
    statement, subject = issue(excluding)
    assert statement["predicate"]["verdict"] == "VIOLATES"
    assert compared(statement, subject).outcome is Outcome.NOT_CHECKED


def test_a_genuine_certificate_is_not_refuted_where_it_knows_more(issue: Any) -> None:
    """It was refuted: here the product behind the If is left to data, and all that it requires is asked."""
    statement, subject = issue(behind_a_branch)
    assert rule(statement, MATMUL)["verdict"] == "violated"
    assert compared(statement, subject).outcome is Outcome.NOT_CHECKED


# ---- Obligations --------------------------------------------------------------------------------


def test_obligations_on_elements_are_not_gathered_at_a_node_in_front(issue: Any) -> None:
    statement, subject = issue(gatherings)
    owed = rule(statement, GATHER)
    assert statement["predicate"]["obligations"] == owed["obligations"] == 3
    behind = [place["where"] for place in owed["findings"]]
    owed.update(findings=[], total=0, obligations=0)
    found = [at("/0:Relu", needed_by=behind)]
    rule(statement, "data-shapes").update(verdict="obligation", findings=found, total=1, obligations=1)
    assert not passes(statement, subject)


@pytest.mark.parametrize("maker", ["/1:Neg", "/2:MatMul", "/7:Nowhere"])
def test_an_obligation_on_a_size_is_not_moved_to_a_node_that_does_not_make_it(maker: str, issue: Any) -> None:
    statement, subject = issue(made)
    shapes = rule(statement, "data-shapes")
    assert shapes["findings"] == [at("/0:NonZero", needed_by=["/2:MatMul"])]
    shapes["findings"] = [at(maker, needed_by=["/2:MatMul"])]
    assert not passes(statement, subject)


def two_makers() -> onnx.ModelProto:
    """Two sizes that data decide; a node behind both needs one of them to be 5."""
    nodes = [
        node("NonZero", ["x"], ["a"]),
        node("NonZero", ["z"], ["b"]),
        node("ReduceSum", ["b"], ["s"], keepdims=0),
        node("Add", ["w", "s"], ["v"]),
        node("MatMul", ["a", "v"], ["y"]),
    ]
    inputs = [declare("x", FLOAT, [3, 4]), declare("z", FLOAT, [3, 4]), declare("w", INT64, [5, 2])]
    return model(nodes, inputs, [declare("y", INT64, [2, 2])])


def test_an_obligation_on_a_size_is_not_moved_to_a_node_that_makes_another(issue: Any) -> None:
    """It was confirmed: the other node is in front too, and makes a size that data decide."""
    statement, subject = issue(two_makers)
    assert passes(copy.deepcopy(statement), subject)
    shapes = rule(statement, "data-shapes")
    assert shapes["findings"] == [at("/0:NonZero", needed_by=["/4:MatMul"])]
    shapes["findings"] = [at("/1:NonZero", needed_by=["/4:MatMul"])]
    assert not passes(statement, subject)


BEHIND = [5, True, None, "/2:MatMul", {"/2:MatMul": 1}, ["/2:MatMul"] * 2, [["/2:MatMul"]], [5], []]


@pytest.mark.parametrize("behind", BEHIND, ids=repr)
def test_who_needs_a_size_is_a_list_of_nodes(behind: Any, issue: Any) -> None:
    statement, subject = issue(made)
    rule(statement, "data-shapes")["findings"] = [at("/0:NonZero", needed_by=behind)]
    assert not passes(statement, subject)


def test_places_stay_in_their_order(issue: Any) -> None:
    statement, subject = issue(gatherings)
    rule(statement, GATHER)["findings"].reverse()
    assert not passes(statement, subject)


# ---- What is violated, and what sizes decide ----------------------------------------------------


@pytest.mark.parametrize(
    "besides", [{"obligation": [at("/1:MatMul")]}, {"conditional": [at("/1:MatMul")]}, {"obligation": []}]
)
def test_nothing_milder_is_invented_beside_a_violation(besides: Any, issue: Any) -> None:
    statement, subject = issue(misfit)
    violated = rule(statement, MATMUL)
    assert violated["verdict"] == "violated"
    violated.update(besides=besides, obligations=len(besides.get("obligation", ())))
    assert not passes(statement, subject)


def test_a_conditional_place_is_not_counted_twice_with_other_sizes(issue: Any) -> None:
    statement, subject = issue(windows)
    found = rule(statement, CONV)
    (place,) = found["findings"]
    second = copy.deepcopy(place)
    second["witness"]["sizes"]["H"] = 2
    found.update(findings=[place, second], total=2)
    assert not passes(statement, subject)


@pytest.mark.parametrize("build", [narrowed, misshaped, mistyped])
def test_behind_what_stops_no_run_nothing_is_left_out(build: Any, issue: Any) -> None:
    """It was confirmed: a restriction or a declaration that is not met was taken for the end of every run."""
    statement, subject = issue(build)
    assert passes(copy.deepcopy(statement), subject)
    found = rule(statement, MATMUL)
    assert found["verdict"] == "violated"
    found.update(verdict="holds", findings=[], total=0)
    statement["predicate"]["witnesses"][MATMUL] = {"kind": "nodes"}
    assert not passes(statement, subject)


def test_a_rule_set_without_violation_has_sizes_that_conform(issue: Any) -> None:
    statement, subject = issue(windows)
    assert statement["predicate"]["conditions"]["domain"] == [["<=", 3, "H"], ["<=", 3, "W"]]
    statement["predicate"]["conditions"]["domain"] = [False]
    reasons = compared(read(fitted(statement)), subject).reasons
    assert any("no rule is violated" in reason for reason in reasons)


def test_what_fails_in_a_branch_that_some_sizes_take_is_not_violated(issue: Any) -> None:
    """The genuine certificate was refuted, and this one was not."""
    statement, subject = issue(branching)
    found = rule(statement, MATMUL)
    assert found["verdict"] == "conditional"
    found.update(verdict="violated", findings=[at("/2:If.then_branch/0:MatMul")])
    statement["predicate"]["conditions"]["domain"] = [False]
    assert compared(read(fitted(statement)), subject).outcome is Outcome.REFUTED


# ---- More places than are listed ----------------------------------------------------------------


@pytest.mark.parametrize("total", [100, 101, 129, 131, 9999])
def test_how_many_places_there_are_is_not_changed(total: int, issue: Any) -> None:
    statement, subject = issue(crowd)
    found = rule(statement, MATMUL)
    assert (found["total"], len(found["findings"])) == (130, 100)
    found["total"] = total
    assert not passes(statement, subject)


def test_the_places_that_are_listed_are_the_first(issue: Any) -> None:
    statement, subject = issue(crowd)
    rule(statement, MATMUL)["findings"] = [at(f"/{i}:MatMul") for i in range(30, 130)]
    assert not passes(statement, subject)


# ---- Hostile files ------------------------------------------------------------------------------


def test_a_certificate_that_nests_deeply_is_refused(issue: Any) -> None:
    statement, _ = issue(windows)
    statement["predicate"]["conditions"]["domain"] = ["DEEP"]
    data = seal(statement)
    for depth in (500, 5000, 100_000):
        with pytest.raises(ModelError):
            read(data.replace(b'"DEEP"', b'["not",' * depth + b'["<=",3,"H"]' + b"]" * depth))


def test_a_formula_as_deep_as_is_read_ends_without_a_traceback(issue: Any) -> None:
    statement, subject = issue(windows)
    term: Any = ["<=", 3, "H"]
    for _ in range(390):
        term = ["not", ["<=", 3, "H"]] if term is None else ["or", term, ["<=", 3, "W"]]
    statement["predicate"]["conditions"]["domain"] = [term]
    assert compared(statement, subject).outcome is not Outcome.CONFIRMED


def listing(value: str) -> str:
    return f"graph g (\n  %x[FLOAT, 2]\n) {{\n  %y = Relu[a={value}](%x)\n  return %y\n}}\n"


DEEP = "".join(f"graph g{i} (\n) {{\n  %y = If[a=<graph g{i + 1}>](%c)\n  return %y\n}}\n" for i in range(1500))
TEXTS = {
    "comment": "# graph main {\n",
    "escape": listing("'\\x'"),
    "quote": listing("'abc"),
    "digits": listing("9" * 5000),
    "range": listing("9" * 30),
    "surrogate": listing("'\\ud800'"),
    "name": listing("'\\N{x}'"),
    "code": listing("'q' if 1 else 'z'"),
    "deep": DEEP + "graph g1500 {\n  return %z\n}\n",
    "version": "<ir_version: 99999999999999999999>m",
    "dimension": "m (float[99999999999999999999999] x) => (float[2] y) { y = Relu(x) }",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_hostile_text_ends_with_a_reason(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(TEXTS[name], encoding="utf-8")
    with pytest.raises(ModelError):
        load(path)
    with pytest.raises((ModelError, Unsupported)):
        Subject(path).facts()


@pytest.mark.parametrize(
    "entries",
    [{"location": "w", "length": "9" * 5000}, {"location": "w", "offset": "9" * 5000}, {"location": "a" * 5000}],
    ids=["length", "offset", "location"],
)
def test_hostile_external_data_end_with_a_reason(entries: dict[str, str], issue: Any, tmp_path: Path) -> None:
    stored = TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        stored.external_data.add(key=key, value=value)
    values = [declare("x", FLOAT, [2]), declare("y", FLOAT, [2])]
    path = tmp_path / "m.onnx"
    (tmp_path / "w").write_bytes(bytes(8))
    onnx.save(model([node("Add", ["x", "w"], ["y"])], values[:1], values[1:], [stored]), path)
    with pytest.raises(ModelError):
        load(path)
    statement, _ = issue(misfit)
    subject = Subject(path)
    statement["subject"][0]["digest"]["sha256"] = hashlib.sha256(subject.data).hexdigest()
    try:
        assert compared(statement, subject).outcome is Outcome.REFUTED
    except ModelError as error:
        assert "external data" in str(error)
