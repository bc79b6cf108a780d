"""Generated models are typed and defined, cover the definitions, and a planted fault is found and made small."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from planted_engines import Planted, one_bit
from sampling import seeds
from sonnx.checker.runtimes.differential.applications import drawn
from sonnx.checker.runtimes.differential.fuzzing import Campaign, Finding, fuzz, store
from sonnx.checker.runtimes.differential.outcomes import Case, Class, judge_case
from sonnx.checker.runtimes.differential.random_models import defined_at, generated
from sonnx.checker.runtimes.differential.sizes import Finder
from sonnx.semantics.model.values import identical
from sonnx.semantics.operators.application import Outputs, Stuck
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.runtimes.engines.own import MACHINE, limited_run
from sonnx.semantics.runtimes.engines.protocol import Failure, Kind
from sonnx.semantics.runtimes.engines.sources import model_of
from sonnx.spec.library import specification

FINDER = Finder()


@pytest.mark.parametrize("op_type", ["Conv", "Reshape", "Gather", "Pad", "Einsum", "Concat", "Gemm", "TopK", "Slice"])
def test_sizes_and_attributes_of_a_solution_are_in_the_domain(op_type: str) -> None:
    version = specification().operators[op_type][-1].first
    found = [drawn(op_type, version, FINDER, random.Random(seed)) for seed in range(4)]
    made = [it.application for it in found if it is not None]
    texts = [any(getattr(x, "dtype", np.dtype(int)).hasobject for x in it.inputs) for it in made]
    done = [ieee.apply(it) for it, text in zip(made, texts, strict=True) if not text]
    assert done
    assert all(isinstance(it, Outputs) for it in done)


def test_what_breaks_a_requirement_on_purpose_is_outside_the_domain() -> None:
    stuck = 0
    for seed in range(8):
        found = drawn("Reshape", 14, FINDER, random.Random(seed), outside=True)
        if found is not None:
            assert found.violated
            stuck += isinstance(ieee.apply(found.application), Stuck)
    assert stuck >= 4


def test_both_sides_of_a_boundary_are_drawn() -> None:
    """Gather with an index that is the last one, and with one that is just too great."""
    edges = Counter[str]()
    for seed in range(60):
        found = drawn("Gather", 13, FINDER, random.Random(seed), outside=bool(seed % 2))
        if found is None:
            continue
        data, indices = found.application.inputs[:2]
        assert isinstance(data, np.ndarray)
        assert isinstance(indices, np.ndarray)
        axis = found.application.attributes.get("axis", 0)
        if not isinstance(axis, int) or not -data.ndim <= axis < data.ndim or not indices.size:
            continue
        size = data.shape[axis]
        flat = set(indices.reshape(-1).tolist())
        edges["just inside"] += size - 1 in flat or -size in flat
        edges["just outside"] += size in flat or -size - 1 in flat
        if edges["just inside"] and edges["just outside"]:
            break
    assert edges["just inside"]
    assert edges["just outside"]


@pytest.mark.parametrize("numbers", seeds(6, 2))
def test_a_seed_gives_one_model_and_the_machine_runs_it(numbers: range) -> None:
    kinds = Counter[str]()
    for number in numbers:
        made, again = (generated((3, number), FINDER) for _ in range(2))
        assert (made is None) == (again is None)
        if made is None or again is None:
            continue
        assert made.model == again.model
        assert all(identical(made.feeds[name], again.feeds[name]) for name in made.feeds)
        done = limited_run(model_of(made.model), made.feeds)
        kinds["outside" if made.violated else "inside"] += 1
        assert isinstance(done, Failure) == bool(made.violated), (made.operators, done)
    assert kinds["inside"] > len(numbers) // 2


def test_every_operator_set_from_7_on_has_operators_to_draw() -> None:
    assert all(len(defined_at(opset)) > 60 for opset in range(7, 22))
    assert ("Softmax", 11) in defined_at(11)
    assert ("Softmax", 13) in defined_at(13)


def test_a_planted_fault_is_found_located_made_small_and_can_be_replayed(tmp_path: Path) -> None:
    engine = Planted({"Neg": one_bit})
    found = list(fuzz(engine, 1, cases=12, only=frozenset({"Neg", "Abs", "Add", "Relu"})))
    campaign = found[-1]
    assert isinstance(campaign, Campaign)
    assert sum(campaign.outcomes.values()) == campaign.cases == 12
    mismatches = [it for it in found if isinstance(it, Finding) and it.result.outcome is Class.MISMATCH]
    assert len({it.result.operator.partition("-")[0] for it in mismatches} - {"If", "Loop"}) == 1
    first = mismatches[0]
    assert first.reduced.nodes == 1
    target = store(first, engine.name, engine.version, tmp_path)
    stored = onnx.load(target / "model.onnx")
    assert len(stored.graph.node) == 1
    sizes = [d.dim_value for it in stored.graph.input for d in it.type.tensor_type.shape.dim]
    assert all(size <= 1 for size in sizes)
    again = judge_case(engine, Case("again", target / "model.onnx", first.reduced.case.feeds))
    assert again.outcome is Class.MISMATCH


def test_a_campaign_on_what_computes_the_definition_finds_nothing() -> None:
    *found, campaign = fuzz(Planted({}), 4, cases=8)
    assert not found
    assert isinstance(campaign, Campaign)
    assert campaign.outcomes["mismatch"] == 0


def test_classes_tell_refusals_crashes_and_the_domain_apart() -> None:
    class Says:
        name, version = "says", ""

        def __init__(self, kind: Kind) -> None:
            self.kind = kind

        def open(self, source: object) -> Failure:
            return Failure(self.kind, "because")

    made = next(it for n in range(50) if (it := generated((9, n), FINDER)) is not None and not it.violated)
    broken = next(it for n in range(90) if (it := generated((9, n), FINDER)) is not None and it.violated)
    inside, outside = Case("in", made.model, made.feeds), Case("out", broken.model, broken.feeds)
    assert judge_case(Says(Kind.SKEW), inside).outcome is Class.REFUSED
    assert judge_case(Says(Kind.CRASH), inside).outcome is Class.CRASH
    assert judge_case(Says(Kind.CRASH), outside).outcome is Class.CRASH
    assert judge_case(Says(Kind.ERROR), outside).outcome is Class.OUTSIDE
    assert judge_case(MACHINE, outside).outcome is Class.OUTSIDE
    assert judge_case(MACHINE, inside).outcome is Class.PASS
