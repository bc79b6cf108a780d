"""The validator says VALID of what the machine has done, and finds the first step of a forgery that does not hold."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from forging import Forged, forged, leaves, put, said
from machine_models import CASES, SCHEDULES
from node_values import value_of
from random_bodies import model as random_body
from sampling import sampled, seeds
from sonnx.semantics import Schedule, load_proto
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.machine.execution import WELL_FORMED, Limits
from sonnx.semantics.machine.execution import run as run_model
from sonnx.semantics.machine.inputs import random_inputs
from sonnx.semantics.machine.trace.format import SUFFIX, chained
from sonnx.semantics.machine.trace.writing import Tracer
from sonnx.semantics.machine.validation.validating import _RULES, Refutation, Valid, validate
from sonnx.semantics.machine.validation.wellformed import CONSTRAINTS
from sonnx.semantics.model.graph import Model, ValueType
from sonnx.semantics.model.values import Optional, Sequence
from sonnx.semantics.operators.compiled.ieee import apply
from sonnx.spec.language.printer import print_expression
from sonnx.spec.library import specification

ALLOCATIONS = ("simple", "arena")


def traced(model: Model, inputs: Mapping[str, Any], path: Path, **options: Any) -> Path:
    with path.open("w", encoding="ascii") as text, path.with_name(path.name + SUFFIX).open("wb") as values:
        run_model(model, inputs, observers=[Tracer(text, values)], **options)
    return path


class Case:
    """A model of `machine_models` with its trace."""

    def __init__(self, models: ModuleType, path: Path, name: str, **options: Any) -> None:
        maker, arguments, self.inputs = CASES[name]
        self.model, self.meaning = load_proto(getattr(models, maker)(*arguments)), models.meaning
        self.path = traced(self.model, self.inputs, path / "t", meaning=models.meaning, **options)

    def verdict(self) -> Valid | Refutation:
        return validate(self.path, self.model, self.meaning)

    def refused(self, change: Callable[[Forged], object], *, chain: bool = True) -> Refutation:
        found = forged(self.path, change, chain=chain) and self.verdict()
        assert isinstance(found, Refutation), found
        return found


@pytest.fixture
def made(models: ModuleType, tmp_path: Path) -> Callable[..., Case]:
    return lambda name, **options: Case(models, tmp_path, name, **options)


# ---- Runs of the machine ----------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("allocation", ALLOCATIONS)
@pytest.mark.parametrize("case", CASES)
def test_what_the_machine_has_done_is_valid(
    made: Callable[..., Case], case: str, allocation: str, schedule: Schedule
) -> None:
    it = made(case, schedule=schedule, allocation=allocation)
    found = it.verdict()
    assert isinstance(found, Valid) and found.complete and found.steps > 0, found


@pytest.mark.parametrize(
    "attributes",
    [
        {"scan_input_directions": [1], "scan_output_directions": [1, 0], "scan_output_axes": [1, -1]},
        {"scan_input_axes": [-1], "scan_output_axes": [-2, 1]},
    ],
)
def test_scans_in_reverse_and_along_other_axes_are_valid(
    models: ModuleType, tmp_path: Path, attributes: dict[str, Any]
) -> None:
    model = load_proto(models.scan(18, **attributes))
    inputs = {"s0": np.ones(2, np.float32), "xs": np.array([[1, 2], [3, 5]], np.float32)}
    path = traced(model, inputs, tmp_path / "t", meaning=models.meaning)
    found = validate(path, model, models.meaning)
    assert isinstance(found, Valid) and found.complete and found.steps == 9, found


def holds_of(model: Model, path: Path, **options: Any) -> Valid | None:
    """The verdict on a run with drawn inputs; None where there is none."""
    try:
        inputs, _ = random_inputs(model, 1)
        traced(model, inputs, path, meaning=apply, limits=Limits(5000), **options)
    except (ModelError, Unsupported):
        return None
    if not path.stat().st_size:
        return None  # ill-formed
    found = validate(path, model, apply)
    assert isinstance(found, Valid), found
    return found


@pytest.mark.parametrize("some", seeds(1000, 16))
def test_random_bodies_functions_and_mistakes_are_valid_or_stuck_where_the_machine_is(
    tmp_path: Path, some: range
) -> None:
    found = []
    for seed in some:
        model = load_proto(random_body(seed)[0])
        options = [(Schedule("random", seed), "arena"), (Schedule(), "simple")]
        found += [holds_of(model, tmp_path / "t", schedule=s, allocation=a) for s, a in options]
    kinds = {it.complete for it in found if it is not None}
    assert kinds == {True, False}


def test_a_run_that_ends_at_an_operator_without_a_meaning_is_valid(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[2] x) => (float[2] z)
        { y = Neg(x)  z = local.Nothing(y) }"""
    found = holds_of(load_proto(onnx.parser.parse_model(text)), tmp_path / "t")
    assert found is not None and not found.complete and "no definition" in found.ended


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore")
def test_the_node_tests_of_the_wheel_are_valid(tmp_path: Path) -> None:
    from onnx.backend.test.case.node import collect_testcases

    with np.errstate(all="ignore"):
        cases = collect_testcases(None)
    complete, frames = 0, set[str]()
    for case in cases:
        types = {it.name: it.type for it in case.model.graph.input}
        names = [it.name for it in case.model.graph.input]
        try:
            model = load_proto(case.model)
            inputs = {name: value_of(x, types[name]) for name, x in zip(names, case.data_sets[0][0], strict=True)}
            inputs = {name: value for name, value in inputs.items() if value is not None}
            path = traced(model, inputs, tmp_path / "t", allocation="arena", draws=3)
        except (ModelError, Unsupported):
            continue
        if path.stat().st_size:
            found = validate(path, model, apply)
            assert isinstance(found, Valid), (case.name, found)
            complete += found.complete
            frames |= {str(line.get("rule")) for line in Forged(path).lines if "leave" in str(line.get("rule"))}
    assert complete > 1000 and frames >= {"Step/if-leave", "Step/loop-leave", "Step/scan-leave"}


# ---- Forgeries --------------------------------------------------------------------------------


def _write(forgery: Forged, position: int) -> dict[str, Any]:
    found: dict[str, Any] = forgery.lines[position]["writes"][0]
    return found


def _set(position: int, **entries: object) -> Callable[[Forged], object]:
    return lambda it: it.lines[position].update(entries)


def _moved(position: int, at: Callable[[Forged], int]) -> Callable[[Forged], object]:
    return lambda it: _write(it, position).update(at=at(it))


def _rule(rule: str, other: str, number: int = 0) -> Callable[[Forged], object]:
    return lambda it: it.lines[it.step(rule, number)].update(rule=other)


def _kept_changed(forgery: Forged) -> None:
    forgery.lines[forgery.step("Step/loop-leave")]["kept"][0][2]["at"] += 64


def _kept_bytes(forgery: Forged) -> None:
    forgery.flip(forgery.lines[forgery.step("Step/loop-leave")]["kept"][0][2])


def _other_input(forgery: Forged) -> None:
    forgery.give(forgery.lines[0]["inputs"][0], np.array([4, 4], np.float32).tobytes())


def _stuck(node: str, rule: str = "Step/fire") -> Callable[[Forged], object]:
    def change(forgery: Forged) -> None:
        forgery.drop(4)
        claim = {"rule": rule, "premise": "enabled(n, M)", "message": "", "node": node, "budget": None}
        forgery.lines[-1] |= {"stuck": claim, "outputs": []}

    return change


def _early(forgery: Forged) -> None:
    forgery.drop(4)
    forgery.lines[-1]["outputs"] = []


def _twice(forgery: Forged) -> None:
    forgery.lines.insert(2, {**forgery.lines[1], "step": 2})


def _output(forgery: Forged) -> None:
    forgery.lines[-1]["outputs"][0]["sha256"] = "0" * 64


def _stored_at(forgery: Forged) -> int:
    return int(forgery.lines[0]["stored"][0]["at"])


def _freed(position: int, key: str) -> Callable[[Forged], object]:
    return lambda it: it.lines[position]["freed"].append(it.lines[0][key][0]["at"])


def _small_budget(forgery: Forged) -> None:
    _stuck("/3:Sub")(forgery)
    forgery.lines[-1]["stuck"]["budget"] = 1


FORGERIES: dict[str, tuple[str, str, Callable[[Forged], object], int, str]] = {
    "another result": ("diamond", "simple", lambda it: it.flip(_write(it, 2)), 2, "W in gives(n, M)"),
    "another input of a body": ("loop", "simple", lambda it: it.flip(_write(it, 1)), 1, "W of the rule"),
    "another input": ("diamond", "simple", _other_input, 1, "W in gives(n, M)"),
    "a step less": ("diamond", "simple", lambda it: it.drop(2), 2, "the schedule"),
    "the first step less": ("loop", "arena", lambda it: it.drop(1), 1, "n in nodes(G)"),
    "a run less": ("loop", "simple", lambda it: it.drop(it.step("Step/loop-next")), 6, "n in nodes(G)"),
    "steps exchanged": ("diamond", "simple", lambda it: it.exchange(1, 2), 1, "enabled(n, M)"),
    "a step twice": ("diamond", "simple", _twice, 2, "enabled(n, M)"),
    "another node": ("diamond", "simple", _set(2, node="/2:Mul"), 2, "the schedule"),
    "no schedule": ("diamond", "simple", _set(0, schedule="random:-1"), 0, "the schedule"),
    "a node that there is not": ("diamond", "simple", _set(2, node="/9:Mul"), 2, "n in nodes(G)"),
    "a node of a body": ("if", "simple", _set(1, node="/0:If.then_branch/0:Add"), 1, "n in nodes(G)"),
    "the other branch": ("if", "simple", _set(2, node="/0:If.else_branch/0:Neg"), 2, "n in nodes(G)"),
    "another number of a run": ("loop", "simple", _set(2, node="/0:Loop.body@1/0:Add"), 2, "n in nodes(G)"),
    "another rule": ("diamond", "simple", _set(2, rule="Step/if"), 2, "the rule of the step"),
    "a body not begun": ("loop", "simple", _rule("Step/loop", "Step/loop-none"), 1, "not loop_starts(n, M)"),
    "left early": ("loop", "arena", _rule("Step/loop-next", "Step/loop-leave"), 6, "not loop_goes_on(n, G, M, K)"),
    "run too often": ("loop", "arena", _rule("Step/loop-leave", "Step/loop-next"), 21, "loop_goes_on(n, G, M, K)"),
    "scanned too often": ("scan", "simple", _rule("Step/scan-leave", "Step/scan-next"), 13,
                          "run(K) + 1 < scan_runs(n, M)"),
    "mapped too little": ("map", "simple", _rule("Step/sequence-map-next", "Step/sequence-map-leave"), 4,
                          "run(K) + 1 = map_runs(n, M)"),
    "over a live region": ("diamond", "simple", _moved(2, lambda it: int(_write(it, 1)["at"])), 2, "disjoint(P)"),
    "over an initializer": ("diamond", "simple", _moved(2, _stored_at), 2, "disjoint(P)"),
    "out of bounds": ("diamond", "simple", _moved(2, lambda it: int(it.lines[-1]["memory"])), 2, "bounded(P)"),
    "in a smaller memory": ("diamond", "simple", _set(-1, memory=136), 2, "bounded(P)"),
    "no aligned address": ("diamond", "simple", _moved(4, lambda it: int(_write(it, 4)["at"]) + 8), 4, "aligned(P)"),
    "freed and read": ("diamond", "arena", lambda it: it.lines[1]["freed"].append(_write(it, 1)["at"]), 2,
                       "covered(P)"),
    "an initializer freed": ("if", "arena", _freed(1, "stored"), 1, "covered(P)"),
    "freed twice": ("diamond", "arena", lambda it: it.lines[1]["freed"].extend([_write(it, 1)["at"]] * 2), 1,
                    "what is freed was in use"),
    "freed where nothing is": ("diamond", "simple", _freed(2, "inputs"), 2, "the allocation is simple"),
    "an output freed": ("diamond", "arena", lambda it: it.lines[4]["freed"].append(_write(it, 4)["at"]), 5,
                        "covered(P)"),
    "kept elsewhere": ("loop", "simple", _kept_changed, 21, "the values that the runs before gave"),
    "kept with other bytes": ("loop", "simple", _kept_bytes, 3, "W in gives(n, M)"),
    "another output": ("diamond", "simple", _output, 5, "the outputs are what M has"),
    "ended early": ("diamond", "simple", _early, 4, "Completeness"),
    "stuck where a step is possible": ("diamond", "simple", _stuck("/3:Sub"), 4, "no rule applies"),
    "stuck at a node that has fired": ("diamond", "simple", _stuck("/0:Relu"), 4, "no rule applies"),
    "stuck at no node": ("diamond", "simple", _stuck("/9:Relu"), 4, "no rule applies"),
    "a budget less than M": ("diamond", "simple", _small_budget, 4, "the budget of this run"),
    "stuck without a value": ("diamond", "simple", _stuck("", "Completeness"), 4, "no rule applies"),
    "stuck at a declaration": ("diamond", "simple", _stuck("", "AsDeclared"), 4, "no rule applies"),
    "more steps claimed": ("diamond", "simple", _set(-1, end=10**9), 5, "the number of steps"),
    "more bytes": ("diamond", "simple", lambda it: it.values.append(0), 5, "the bytes that are written"),
    "an input less": ("diamond", "simple", _set(0, inputs=[]), 0, "the inputs have values"),
    "an initializer less": ("diamond", "simple", _set(0, stored=[]), 0, "the tensors that have values"),
    "other runs": ("loop", "simple", lambda it: it.lines[it.step("Step/loop-next")].update(runs=3), 6, "how often"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forger_who_makes_all_hashes_right_is_found_at_the_step(made: Callable[..., Case], name: str) -> None:
    case, allocation, change, step, premise = FORGERIES[name]
    found = made(case, allocation=allocation).refused(change)
    assert (found.step, found.premise[: len(premise)]) == (step, premise), found


NAIVE: dict[str, tuple[Callable[[Forged], object], int, str]] = {
    "a byte of a value": (lambda it: it.values.__setitem__(20, it.values[20] ^ 1), 2, "the bytes that are written"),
    "a rule": (_set(3, rule="Step/if"), 3, "the chain of hashes"),
    "a step less": (lambda it: it.lines.pop(3), 3, "the chain of hashes"),
    "steps exchanged": (lambda it: it.lines.insert(2, it.lines.pop(3)), 2, "the chain of hashes"),
    "the head": (_set(0, schedule="demand"), 0, "the chain of hashes"),
    "the end": (_set(-1, memory=10**6), 5, "the chain of hashes"),
}


@pytest.mark.parametrize("name", NAIVE)
def test_a_change_that_leaves_the_hashes_is_found(made: Callable[..., Case], name: str) -> None:
    change, step, premise = NAIVE[name]
    found = made("diamond").refused(change, chain=False)
    assert (found.step, found.premise) == (step, premise), found


def test_a_run_that_ends_while_a_node_is_enabled_is_refused_unless_its_schedule_leaves_nodes(
    models: ModuleType, tmp_path: Path
) -> None:
    nodes = [models.node("Relu", ["x"], ["y"]), models.node("Neg", ["x"], ["z"])]
    main = models.graph(nodes, [models.value("x", shape=[2])], [models.value("y", shape=[2])])
    model, inputs = load_proto(models.proto(main)), {"x": np.ones(2, np.float32)}
    path = traced(model, inputs, tmp_path / "t", meaning=models.meaning)
    found = validate(forged(path, lambda it: it.drop(2)), model, models.meaning)
    assert isinstance(found, Refutation) and found.premise == "no rule applies" and "/1:Neg" in found.holds
    traced(model, inputs, path, meaning=models.meaning, schedule=Schedule("demand"))
    found = validate(path, model, models.meaning)
    assert isinstance(found, Valid) and found.steps == 1 and "demand" in found.ended


def test_demand_ends_without_a_value_only_where_none_of_the_nodes_that_it_needs_is_enabled(
    models: ModuleType, tmp_path: Path
) -> None:
    nodes = [models.node("Relu", ["x"], ["y"]), models.node("Neg", ["y"], ["z"]), models.node("Neg", ["x"], ["w"])]
    inner = models.graph(nodes, [], [models.value("missing", shape=[2])])
    branches = {"then_branch": inner, "else_branch": inner}
    model = load_proto(
        models.proto(
            models.graph(
                [models.node("If", ["c"], ["out"], **branches)],
                [models.value("c", onnx.TensorProto.BOOL), models.value("x", shape=[2])],
                [models.value("out", shape=[2])],
            )
        )
    )
    inputs = {"c": np.array(True), "x": np.ones(2, np.float32)}
    path = traced(model, inputs, tmp_path / "t", meaning=models.meaning, schedule=Schedule("demand"))
    found = validate(path, model, models.meaning)
    assert isinstance(found, Valid) and not found.complete and found.steps == 1, found
    plain = models.graph(nodes[:2], [models.value("x", shape=[2])], [models.value("z", shape=[2])])
    model, inputs = load_proto(models.proto(plain)), {"x": np.ones(2, np.float32)}
    traced(model, inputs, path, meaning=models.meaning, schedule=Schedule("demand"))
    claim = {"node": "", "rule": "Completeness", "premise": "", "message": "", "budget": None}

    def early(forgery: Forged) -> None:
        forgery.drop(2)
        forgery.lines[-1] |= {"stuck": claim, "outputs": []}

    found = validate(forged(path, early), model, models.meaning)
    assert isinstance(found, Refutation) and found.holds == "/1:Neg is enabled", found


@pytest.mark.parametrize("case", ["diamond", "nested"])
def test_the_order_of_steps_is_that_of_the_schedule(made: Callable[..., Case], case: str) -> None:
    schedules = [Schedule(), Schedule("demand"), *(Schedule("random", seed) for seed in range(6))]
    it = made(case, schedule=Schedule("random", 1))
    orders = {s: run_model(it.model, it.inputs, s, meaning=it.meaning).choices for s in schedules}
    for schedule, order in orders.items():
        forged(it.path, _set(0, schedule=str(schedule)))
        found, same = it.verdict(), order == orders[Schedule("random", 1)]
        assert isinstance(found, Valid) == same, (schedule, found)
        assert same or (isinstance(found, Refutation) and found.premise == "the schedule")
    assert len(set(orders.values())) > 1
    forged(it.path, _set(0, schedule="recorded"))
    assert isinstance(it.verdict(), Valid)


def test_a_model_that_is_not_well_formed_has_no_valid_trace(made: Callable[..., Case], models: ModuleType) -> None:
    it = made("diamond")
    proto = models.diamond()
    proto.graph.node.append(models.node("Relu", ["x"], ["a"]))
    with pytest.raises(ModelError, match="the model has no run: SingleAssignment is broken"):
        validate(it.path, load_proto(proto), it.meaning)
    assert CONSTRAINTS == WELL_FORMED


@pytest.mark.parametrize("inputs", ["float[2] w", "float[N] w, float[N] x", "float[N] x, float[N] w"])
def test_a_stored_value_that_contradicts_its_input_is_valid_and_not_complete(tmp_path: Path, inputs: str) -> None:
    header = '<ir_version: 8, opset_import: ["" : 17]>'
    text = f"{header} g ({inputs}) => (float[M] y) <float[3] w = {{1, 2, 3}}> {{ y = Relu(w) }}"
    model = load_proto(onnx.parser.parse_model(text))
    path = traced(model, {"x": np.ones(1, np.float32)} if "x" in inputs else {}, tmp_path / "t")
    found = validate(path, model, apply)
    assert isinstance(found, Valid) and not found.complete and "contradicts a declaration" in found.ended
    assert isinstance(validate(forged(path, _set(-1, stuck=None)), model, apply), Refutation)


SPOKEN: list[tuple[str, Any, list[Any]]] = [
    (kind, maker(ValueType("tensor", "float"), held), [kind, "", None, inner])
    for kind, maker, held in (("seq", Sequence, ()), ("optional", Optional, None))
    for inner in (["tensor", "int64", None, None], ["tensor", "zzz", None, None], ["zzz", "", None, None], None)
]


@pytest.mark.parametrize(("kind", "empty", "type_"), SPOKEN)
def test_what_is_empty_has_the_type_that_is_declared_for_it(
    tmp_path: Path, kind: str, empty: Any, type_: list[Any]
) -> None:
    header = '<ir_version: 8, opset_import: ["" : 18]>'
    node = "y = SequenceLength(x)" if kind == "seq" else "y = OptionalHasElement(x)"
    text = f"{header} g ({kind}(float[N]) x) => ({'int64' if kind == 'seq' else 'bool'} y) {{ {node} }}"
    model = load_proto(onnx.parser.parse_model(text))
    path = traced(model, {"x": empty}, tmp_path / "t")
    assert isinstance(validate(path, model, apply), Valid)
    spoken = ["sequence" if kind == "seq" else kind, *type_[1:]]

    def change(forgery: Forged) -> None:
        for reference in (forgery.lines[0]["inputs"][0], forgery.lines[1]["reads"][0]):
            reference["type"] = spoken

    found = validate(forged(path, change), model, apply)
    assert isinstance(found, Refutation) and found.step == 0, found
    if type_[3] == ["tensor", "int64", None, None]:
        other = type(empty)(ValueType("tensor", "int64"), *([()] if kind == "seq" else [None]))
        with pytest.raises(ModelError, match="int64"):
            run_model(model, {"x": other})


def test_a_run_that_breaks_off_is_valid_and_not_complete(made: Callable[..., Case]) -> None:
    found = made("diamond", limits=Limits(steps=2)).verdict()
    assert isinstance(found, Valid) and not found.complete and "budget" in found.ended


def test_elements_that_part_3_leaves_open_may_be_any_and_others_not(made: Callable[..., Case]) -> None:
    """In version 8 a scan output is filled up behind the end of a sequence: here the second one is empty."""
    it = made("batch")
    leave = Forged(it.path).step("Step/scan-leave")

    def filled(item: int) -> Callable[[Forged], object]:
        def change(forgery: Forged) -> None:
            reference = forgery.lines[leave]["writes"][1]
            begin, size = reference["offset"], reference["length"]
            data = np.frombuffer(bytes(forgery.values[begin : begin + size]), np.float32).copy()
            data[item] = 7
            forgery.give(reference, data.tobytes())

        return change

    forged(it.path, filled(-1))
    found = it.verdict()
    assert isinstance(found, Valid) and found.open > 0
    assert it.refused(filled(0)).premise == "W of the rule"


def test_random_results_are_those_of_the_seed(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Bernoulli", ["x"], ["y"])
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [8]) for name in "xy"]
    made = onnx.helper.make_model(onnx.helper.make_graph([node], "g", ends[:1], ends[1:]))
    made.opset_import[0].version = 15
    model, inputs = load_proto(made), {"x": np.full(8, 0.5, np.float32)}
    path = traced(model, inputs, tmp_path / "t", draws=5)
    assert isinstance(validate(path, model, apply), Valid)
    found = validate(forged(path, _set(0, draws=6)), model, apply)
    assert isinstance(found, Refutation) and found.premise == "W in gives(n, M)"


def test_the_premise_of_each_pair_of_rules_stands_in_the_text() -> None:
    for (named, _), premise in _RULES.items():
        texts = {print_expression(it.expr) for it in specification().transitions[named].premises}
        assert premise in texts, (named, premise)


# ---- Any change of any field ------------------------------------------------------------------

HOSTILE: tuple[object, ...] = (
    None, True, 7, -1, 10**30, 2**62, "x", "", [], [None], [{}], {}, [[{}]], "/0:Loop.body@99999999/", "\ud800",
    "a" * 1000,
)  # fmt: skip


def judged(path: Path, model: Model, meaning: Any, honest: list[Any]) -> None:
    """A verdict, or one line; and VALID only of what the honest run did."""
    try:
        found = validate(path, model, meaning)
    except ModelError as error:
        assert "\n" not in str(error) and len(str(error)) < 1000
        return
    assert isinstance(found, Refutation) or said(path) == honest, found


@pytest.mark.parametrize("case", sampled(["nested", "diamond", "if", "loop", "scan", "batch", "map", "no run"], 1))
def test_whatever_stands_in_a_field_the_verdict_is_none_that_is_wrong(made: Callable[..., Case], case: str) -> None:
    it = made(case, allocation="arena")
    honest, original, draw = said(it.path), it.path.read_text(), random.Random(1)
    lines = Forged(it.path).lines
    keys: dict[tuple[Any, ...], list[tuple[int, tuple[Any, ...]]]] = {}
    for position, line in enumerate(lines):
        for place in leaves(line):
            kind = (position in (0, len(lines) - 1), line.get("rule"), *(key for key in place if isinstance(key, str)))
            keys.setdefault(kind, []).append((position, place))
    for places in keys.values():
        position, place = draw.choice(places)
        for item in draw.sample(HOSTILE, 2) if place[0] != "chain" else ():
            it.path.write_text(original)
            forged(it.path, lambda f, p=position, a=place, i=item: put(f.lines[p], a, i))  # type: ignore[misc]
            judged(it.path, it.model, it.meaning, honest)


@pytest.mark.parametrize("some", seeds(10_000, 90))
def test_no_mixture_of_what_a_trace_says_is_valid_unless_it_is_the_run(made: Callable[..., Case], some: range) -> None:
    """A place of a line takes what stands at the same place of another line, or a number near its own."""
    cases = [made(name, allocation=allocation) for name, allocation in (("loop", "arena"),)]
    originals = [(it, said(it.path), it.path.read_text(), Forged(it.path).lines) for it in cases]
    for seed in some:
        draw = random.Random(seed)
        it, honest, original, lines = draw.choice(originals)
        position, other = draw.randrange(len(lines)), draw.randrange(len(lines))
        place = draw.choice([at for at in leaves(lines[position]) if at[0] != "chain"])
        try:
            item = lines[other]
            for key in place:
                item = item[key]
        except (KeyError, IndexError, TypeError):
            item = draw.choice((0, 1, 64, 128))
        it.path.write_text(original)
        forged(it.path, lambda f, p=position, a=place, i=item: put(f.lines[p], a, i))  # type: ignore[misc]
        judged(it.path, it.model, it.meaning, honest)


# ---- What is no trace -------------------------------------------------------------------------


def test_a_trace_that_was_cut_off_gets_one_line(made: Callable[..., Case]) -> None:
    it = made("diamond")
    text, values = it.path.read_bytes(), it.path.with_name("t" + SUFFIX)
    for size in range(0, len(text), 97):
        it.path.write_bytes(text[:size])
        with pytest.raises(ModelError):
            it.verdict()
    it.path.write_bytes(text)
    values.write_bytes(values.read_bytes()[:-1])
    with pytest.raises(ModelError, match="cut off"):
        it.verdict()
    values.unlink()
    with pytest.raises(ModelError, match="not there"):
        it.verdict()


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", "7", "not json", '{"chain":"","sonnx":"trace","version":1}', '{"sonnx":"trace","version":NaN}',
     "[" * 10**5,
     '{"a":1,"a":1,"chain":""}', '{"chain":"","end":1.5}', '{"chain":"","end":1e400}', "\xff", "1" * 10**5],
)  # fmt: skip
def test_what_is_no_trace_gets_one_line(made: Callable[..., Case], text: str) -> None:
    it = made("diamond")
    last = it.path.read_text().splitlines()[-1]
    for content in (text, f"{text}\n", f"{text}\n{last}\n", f"{it.path.read_text()}{text}\n"):
        it.path.write_bytes(content.encode("latin-1"))
        with pytest.raises(ModelError) as error:
            it.verdict()
        assert "\n" not in str(error.value)


def test_a_pipe_in_place_of_a_file_gets_one_line(made: Callable[..., Case]) -> None:
    it = made("diamond")
    for path in (it.path, it.path.with_name("t" + SUFFIX)):
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(ModelError):
            it.verdict()
        path.unlink()
        path.touch()


def test_a_line_in_another_spelling_gets_one_line(made: Callable[..., Case]) -> None:
    """A reader who takes the first of two equal keys would see another trace."""
    it = made("diamond")
    text = it.path.read_text()
    for other in (text.replace('{"chain"', '{ "chain"', 1), text.replace('"node":', '"node":"/9:Relu","node":', 1)):
        assert other != text
        it.path.write_text(other)
        with pytest.raises(ModelError, match="no line of a trace"):
            it.verdict()


def test_another_model_and_a_memory_that_is_too_large_get_one_line(
    made: Callable[..., Case], models: ModuleType
) -> None:
    it = made("loop")
    with pytest.raises(ModelError, match="another model"):
        validate(it.path, load_proto(models.loop(limit=99)), it.meaning)
    with pytest.raises(ModelError, match="are allowed here"):
        validate(it.path, it.model, it.meaning, budget=100)
    forged(it.path, _set(-1, memory=2**62))
    with pytest.raises(ModelError, match="no room"):
        it.verdict()


@pytest.mark.parametrize("part", ["[],", "{},", "0,"])
def test_a_line_of_parts_without_number_is_refused_before_it_takes_memory(
    made: Callable[..., Case], part: str
) -> None:
    it = made("diamond")
    first, rest = it.path.read_text().split("\n", 1)
    many = part * (9 * 2**20 if part == "0," else 2**21 + 1)
    it.path.write_text(f'{first[:-1]},"x":[{many}0]}}\n{rest}')
    with pytest.raises(ModelError, match="line 1 has too many parts"):
        it.verdict()


def test_the_chain_is_the_one_that_the_machine_writes(made: Callable[..., Case]) -> None:
    it = made("diamond")
    found, chain = it.verdict(), ""
    for line in Forged(it.path).lines:
        stated = line.pop("chain")
        chain = chained(chain, line)
        assert chain == stated
    assert isinstance(found, Valid) and found.chain == chain
