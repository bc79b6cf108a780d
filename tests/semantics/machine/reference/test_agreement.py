"""The fast machine and the reference interpreter agree: on every state of a run, on what each node may do there, and on
the rule and the premise at which a node is stuck."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import machine_models as models
import numpy as np
import onnx
import pytest
from random_bodies import model as random_bodies
from random_scans import scan_model
from reference_runs import agree
from sampling import sampled, seeds
from sonnx.semantics import Schedule, load_proto
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.machine.execution import Limits, run
from sonnx.semantics.machine.inputs import bound_inputs, random_inputs
from sonnx.semantics.machine.reference import rules
from sonnx.semantics.model.loader import load
from sonnx.semantics.model.values import identical
from sonnx.semantics.operators.compiled import ieee
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import FunctionDeclaration
from sonnx.spec.library import Specification, specification

SHARED = Path(__file__).parents[4] / ".." / "shared" / "models"
EVALUATORS = (Schedule(), Schedule("random", seed=1), Schedule("demand"))
MOST = 300
"""The most steps of a run that is compared."""
FEW = 60
"""Up to so many steps every node is asked for in every state."""


def differences(model: Any, given: Mapping[str, Any], schedule: Schedule, meaning: Any = ieee.apply) -> list[str]:
    plain = None if meaning is ieee.apply else meaning
    done = run(model, given, schedule, limits=Limits(steps=MOST), meaning=plain)
    return list(agree(done, meaning, every=len(done.choices) <= FEW))


# ---- Models by hand ---------------------------------------------------------------------------


def number(x: float) -> Any:
    return np.array(x, np.float32)


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


BY_HAND: Mapping[str, tuple[onnx.ModelProto, Mapping[str, Any]]] = {
    "diamond": (models.diamond(), {"x": ones(2)}),
    "then": (models.choice(), {"x": ones(2), "c": np.array(True)}),
    "else": (models.choice(), {"x": ones(2), "c": np.array(False)}),
    "loop": (models.loop(), {"x": number(30), "v0": number(0), "m": np.array(4), "c0": np.array(True)}),
    "no trip": (models.loop(), {"x": number(1), "v0": number(0), "m": np.array(0), "c0": np.array(True)}),
    "while": (models.loop(trips=False), {"x": number(60), "v0": number(0), "c0": np.array(True)}),
    "for": (models.loop(cond=False), {"x": number(99), "v0": number(2), "m": np.array(3)}),
    "nested": (models.nested(), {"x": number(1), "v0": number(0), "m": np.array(2), "m2": np.array(2)}),
    "scan": (models.scan(), {"s0": ones(2), "xs": ones(3, 2)}),
    "no scan": (models.scan(), {"s0": ones(2), "xs": ones(0, 2)}),
    "batch": (models.scan(8), {"n": np.array([2, 0, 1]), "s0": ones(3, 2), "xs": ones(3, 2, 2)}),
    "map": (models.sequence_map(), {"p": ones(2), "q": ones(1), "x": number(2)}),
}


@pytest.mark.parametrize("schedule", EVALUATORS, ids=str)
@pytest.mark.parametrize("name", BY_HAND)
def test_models_by_hand(name: str, schedule: Schedule) -> None:
    proto, given = BY_HAND[name]
    assert differences(load_proto(proto), given, schedule, models.meaning) == []


@pytest.mark.parametrize("name", BY_HAND)
def test_the_reference_gets_to_the_outputs_by_itself(name: str) -> None:
    proto, given = BY_HAND[name]
    model = load_proto(proto)
    machine = rules.Machine(model, models.meaning)
    ended = rules.run(machine, rules.begin(machine, bound_inputs(model, given)))
    expected = run(model, given, meaning=models.meaning)
    assert ended.refusal is None
    memory = ended.states[-1].memory
    assert all(identical(memory[t], expected.outputs[model.tensors[t].name]) for t in model.graphs[0].outputs)


def test_random_results_are_drawn_alike_in_every_run_of_a_body() -> None:
    body = models.graph(
        [models.node("Identity", ["c"], ["d"]), models.node("RandomNormal", [], ["r"], shape=[2])],
        [models.value("i", onnx.TensorProto.INT64), models.value("c", onnx.TensorProto.BOOL)],
        [models.value("d", onnx.TensorProto.BOOL), models.value("r", shape=[2])],
        (),
        "body",
    )
    holder = models.node("Loop", ["m", ""], ["rs"], body=body)
    main = models.graph([holder], [models.value("m", onnx.TensorProto.INT64)], [models.value("rs", shape=[None, 2])])
    model = load_proto(models.proto(main))
    done = run(model, {"m": np.array(3)}, draws=7)
    drawn = np.asarray(done.outputs["rs"])
    assert len({row.tobytes() for row in drawn}) == 3
    assert list(agree(done, ieee.apply, draws=7)) == []


# ---- Random models, right and wrong -----------------------------------------------------------


def run_of_seed(seed: int) -> list[str]:
    """The differences on a random model with bodies and functions."""
    try:
        model = load_proto(random_bodies(seed)[0])
        given, _ = random_inputs(model, seed)
        return differences(model, given, EVALUATORS[seed % 3])
    except (ModelError, Unsupported):
        return []


@pytest.mark.parametrize("numbers", seeds(10_000, 60))
def test_random_models_with_bodies_and_functions(numbers: range) -> None:
    assert {seed: found for seed in numbers if (found := run_of_seed(seed))} == {}


@pytest.mark.parametrize("numbers", seeds(5_000, 24))
def test_random_scans_of_every_version(numbers: range) -> None:
    def compared(seed: int) -> list[str]:
        proto, given = scan_model(seed)
        return differences(load_proto(proto), given, EVALUATORS[seed % 3])

    assert {seed: found for seed in numbers if (found := compared(seed))} == {}


# ---- The wheel and the shared models ------------------------------------------------------------


def holds_a_body(proto: onnx.ModelProto) -> bool:
    nodes = [*proto.graph.node, *(node for function in proto.functions for node in function.node)]
    return any(attribute.type == onnx.AttributeProto.GRAPH for node in nodes for attribute in node.attribute)


@cache
def wheel() -> Mapping[str, onnx.ModelProto]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    return {case.name: case.model for case in cases if holds_a_body(case.model)}


@pytest.mark.campaign
def test_the_node_tests_of_the_wheel_that_hold_bodies() -> None:
    found = {}
    for name, proto in wheel().items():
        model = load_proto(proto)
        for schedule in EVALUATORS:
            try:
                found[name, str(schedule)] = differences(model, random_inputs(model, 1)[0], schedule)
            except Unsupported:
                continue
    assert {place: it for place, it in found.items() if it} == {}
    assert len(found) > 100


def shared() -> list[Path]:
    return sorted(SHARED.glob("control-flow/**/*.onnx")) if SHARED.is_dir() else []


@pytest.mark.parametrize("path", sampled(shared(), 2), ids=lambda path: path.parent.name)
@pytest.mark.filterwarnings("ignore")
def test_the_shared_models_that_hold_bodies(path: Path) -> None:
    model = load(path)
    given, _ = random_inputs(model, 1)
    try:
        found = {str(it): differences(model, given, it) for it in EVALUATORS}
    except Unsupported as refused:
        pytest.skip(str(refused))
    assert not any(found.values()), found


# ---- Both follow the text -----------------------------------------------------------------------


def with_definition(text: str) -> Specification:
    """The specification with another definition of a function."""
    whole = specification()
    (declared,) = parse(text, "changed").declarations
    assert isinstance(declared, FunctionDeclaration)
    return replace(whole, functions={**whole.functions, declared.name: declared})


CHANGED: Mapping[str, tuple[str, str]] = {
    "loop_goes_on": (
        'define loop_goes_on(n: Node, G: Graph, M: Memory, K: Frames): Bool "Once more." ='
        ' run(K) < number(input(n, "M"), M)',
        "for",
    ),
    "push": (
        'define push(K: Frames, G: Graph, n: Node): Frames "A run too many." = frame(G, n, [stored(G)], K)',
        "scan",
    ),
    "without": ('define without(M: Memory, G: Graph): Memory "All." = {t |-> lookup(M, t) for t in dom(M)}', "loop"),
    "positioned": (
        'define positioned(n: Node, G: Graph, M: Memory): set Memory "None." = {W for W in [stored(G)] if false}',
        "then",
    ),
}  # fmt: skip
"""Another definition of a function of part 3, and a model on which it shows."""


@pytest.mark.parametrize("name", CHANGED)
def test_another_definition_is_executed_and_disagrees_with_the_fast_machine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, where = CHANGED[name]
    proto, given = BY_HAND[where]
    done = run(load_proto(proto), given, meaning=models.meaning)
    assert list(agree(done, models.meaning)) == []
    monkeypatch.setattr("reference_runs.specification", lambda: with_definition(text))
    assert list(agree(done, models.meaning)) != []


def test_what_is_stuck_names_the_first_premise_that_fails_in_the_rule_that_got_furthest() -> None:
    model = load_proto(models.loop())
    given = {"x": number(1), "v0": number(0), "m": np.array([1, 2]), "c0": np.array(True)}
    machine = rules.Machine(model, models.meaning)
    state = rules.begin(machine, {t: given[model.tensors[t].name] for t in model.graphs[0].inputs})
    (loop,) = (n for n, node in enumerate(model.nodes) if node.op_type == "Loop")
    found = rules.step(machine, state, loop)
    assert isinstance(found, rules.Refusal)
    assert (found.rule, found.position, found.why) == ("Step/loop", 3, "")
    add = next(n for n, node in enumerate(model.nodes) if node.graph != 0)
    elsewhere = rules.step(machine, state, add)
    assert isinstance(elsewhere, rules.Refusal) and (elsewhere.rule, elsewhere.position) == ("Step/fire", 0)
