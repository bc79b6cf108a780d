"""Random models with bodies, captures and functions, cut by three random providers: the run is the whole run, bit by
bit; parts are disjoint, cover the nodes and make no cycle."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import onnx
import pytest
import random_bodies
from random_models import random_model
from random_providers import RandomExecutionProvider
from sampling import seeds
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.machine.execution import Limits, run
from sonnx.semantics.machine.inputs import random_inputs
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.values import tensors_in
from sonnx.semantics.operators.application import Program
from sonnx.semantics.runtimes.fastpath import RunError, Session
from sonnx.semantics.runtimes.fastpath.growing import Cut
from sonnx.semantics.runtimes.fastpath.partition import Partitioning

STEPS = 500


def drawn(seed: int) -> tuple[Model, Mapping[str, Any]] | None:
    """A model with values for its inputs; None for one that was spoilt or cannot run here."""
    made: onnx.ModelProto
    if seed % 2:
        made, given = random_model(seed)
        return load_proto(made), given
    made, mistakes = random_bodies.model(seed)
    if mistakes:
        return None
    model = load_proto(made)
    given = random_inputs(model, seed, {}, {})[0]
    ended = run(model, given, limits=Limits(STEPS), history=False)  # a Loop may run for ever
    stuck = ended.stuck
    return None if stuck is not None and (len(ended.choices) >= STEPS or stuck.rule == "AsDeclared") else (model, given)


def outcome(session: Session, given: Mapping[str, Any]) -> Any:
    """The bytes of the outputs, or that a requirement fails."""
    try:
        results = [session.run(None, given) for _ in range(2)]
    except RunError:
        return "fails"
    rows = [[(it.dtype, it.shape, it.tobytes()) for value in row for it in tensors_in(value)] for row in results]
    assert rows[0] == rows[1]  # recorded, then planned
    return rows[0]


def check_cut(model: Model, made: Partitioning) -> None:
    listed = Counter(n for it in made.assignments for n in it.nodes)
    assert set(listed) == set(range(len(model.nodes))) and set(listed.values()) <= {1}
    program = Program(model)
    for g in range(len(model.graphs)):
        claimed = {n: it.nodes for it in made.assignments if it.graph == g for n in it.nodes}
        assert all(model.nodes[n].graph == g for n in claimed)
        cut = Cut(program, g, claimed)
        assert len(cut.rank) == len(cut.members)  # all parts have a place in an order


@pytest.mark.parametrize("numbers", seeds(20_000, 60))
def test_a_run_by_parts_is_the_whole_run(numbers: range) -> None:
    parts = refused = compared = declined = 0
    for seed in numbers:
        case = drawn(seed)
        if case is None:
            continue
        model, given = case
        try:
            whole = Session(model)
        except (Unsupported, ModelError):
            continue
        providers = [RandomExecutionProvider(3 * seed + at, f"{it}ExecutionProvider") for at, it in enumerate("ABC")]
        cut = Session(model, providers)
        check_cut(model, cut.partitioning)
        assert outcome(cut, given) == outcome(whole, given), seed
        parts += sum(it.parts for it in providers)
        declined += sum(it.declined for it in providers)
        refused += len(cut.partitioning.refusals)
        compared += 1
    assert compared > len(numbers) // 2 and parts > compared // 2 and refused and declined
    counts = f"{parts} parts that were compiled, {declined} declined, {refused} offers refused"
    sys.stdout.write(f"{compared} models, {counts}\n")
