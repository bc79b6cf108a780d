"""Random models give bit-identical outputs whatever the evaluator, the allocation and the order of the nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from random_draft import Array
from random_models import permuted, random_model
from random_nodes import MAKERS
from sonnx.semantics.machine.execution import run
from sonnx.semantics.machine.schedule import Schedule
from sonnx.semantics.model.elements import encode
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.values import Value
from sonnx.semantics.operators.application import Stuck

SCHEDULES = (Schedule(), Schedule("random", seed=1), Schedule("random", seed=2), Schedule("demand"))


def bits(outputs: Mapping[str, Value]) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """The outputs down to their bytes."""
    found = {}
    for name, value in outputs.items():
        assert isinstance(value, np.ndarray)
        found[name] = (str(value.dtype), value.shape, bytes(encode(value)))
    return found


def ended(model: object, inputs: Mapping[str, Array], schedule: Schedule, allocation: str) -> object:
    """The bits of the outputs, or what the run is stuck at."""
    loaded = load_proto(model)  # type: ignore[arg-type]
    found = run(loaded, inputs, schedule, allocation=allocation, history=False)
    return found.stuck.premise if isinstance(found.stuck, Stuck) else bits(found.outputs)


def agree(seed: int) -> None:
    model, inputs = random_model(seed)
    expected = ended(model, inputs, Schedule(), "simple")
    assert isinstance(expected, dict), expected
    for number, schedule in enumerate(SCHEDULES):
        order = permuted(model, 10 * seed + number)
        for allocation in ("simple", "arena"):
            assert ended(order, inputs, schedule, allocation) == expected, (seed, schedule, allocation)


@pytest.mark.parametrize("seed", range(20))
def test_evaluators_allocations_and_orders_give_the_same_bits(seed: int) -> None:
    agree(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("hundred", range(20))
def test_many_random_models_give_the_same_bits(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        agree(seed)


def test_the_models_use_every_operator_that_they_know() -> None:
    used = {node.op_type for seed in range(60) for node in random_model(seed)[0].graph.node}
    assert set(MAKERS) <= used
