"""Momentum, Adagrad and Adam of ai.onnx.preview.training: one step that moves tensors against their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from sampling import seeds
from sonnx.semantics.machine import judging
from sonnx.semantics.operators.application import Application
from tables import table

F = np.float32
Run = Callable[..., Any]
DOMAIN = "ai.onnx.preview.training"
GROUPS = {"Momentum": 3, "Adagrad": 3, "Adam": 4}
MOMENTUM = {"alpha": 0.5, "beta": 0.25, "norm_coefficient": 0.5, "mode": "standard"}
GOOD = judging.Standing.EXACT, judging.Standing.WITHIN
OWN = {"Momentum": MOMENTUM, "Adagrad": {}, "Adam": {}}


def named(op_type: str) -> str:
    return f"{DOMAIN}::{op_type}"


def one(content: Any, kind: Any = F) -> Any:
    return np.array(content, kind)


def test_momentum_moves_against_the_regularized_gradient(run: Run, same: Run) -> None:
    given = one(0.5), one(3, np.int64), one([2.0]), one([1.0]), one([4.0])
    for mode, x in (("standard", 0.75), ("nesterov", 0.375)):
        made = run(named("Momentum"), 1, *given, count=2, **{**MOMENTUM, "mode": mode})
        same(made[0], one([x]))
        same(made[1], one([2.5]))


def test_beta_counts_as_1_in_the_first_iteration(run: Run, same: Run) -> None:
    for t, v in ((0, 4.0), (1, 2.5)):
        _, made = run(
            named("Momentum"), 1, one(0.5), one(t, np.int64), one([2.0]), one([1.0]), one([4.0]), count=2, **MOMENTUM
        )
        same(made, one([v]))


def test_adagrad_divides_by_the_root_of_the_sum_of_squares(run: Run, same: Run) -> None:
    x, h = run(
        named("Adagrad"), 1, one(0.5), one(2, np.int64), one([2.0]), one([1.0]), one([5.0]),
        count=2, decay_factor=0.5, norm_coefficient=0.5, epsilon=1.0,
    )  # fmt: skip
    same(h, one([9.0]))
    same(x, one([1.875]))


def test_adam_corrects_the_rate_from_the_first_iteration_on(run: Run, same: Run) -> None:
    given = one([2.0]), one([4.0]), one([0.0]), one([0.0])
    own = {"alpha": 0.5, "beta": 0.75, "epsilon": 1.0, "norm_coefficient_post": 0.5}
    for t, x in ((0, 0.5 * (2 - 0.5 * 2 / 3)), (1, 0.5 * (2 - 0.5 * 2 / 3)), (2, 0)):
        made = run(named("Adam"), 1, one(0.5, np.float64), one(t, np.int64), *given, count=3, **own)
        same(made[1], one([2.0]))
        same(made[2], one([4.0]))
        if t < 2:  # sqrt(1 - 0.75) / (1 - 0.5) is 1
            assert made[0] == pytest.approx(x, rel=1e-6)
        else:
            assert made[0] == pytest.approx(0.5 * (2 - 0.5 * np.sqrt(1 - 0.75**2) / 0.75 * 2 / 3), rel=1e-6)


@table("op_type", list(GROUPS))
def test_tensors_in_one_node_are_moved_as_if_each_had_its_own(op_type: str, run: Run, same: Run) -> None:
    numbers = np.random.default_rng(7)
    shapes = [(2, 3), (), (0, 2)]
    groups = [[numbers.random(shape).astype(F) for shape in shapes] for _ in range(GROUPS[op_type])]
    rate = one(0.5), one(3, np.int64)
    joint = run(
        named(op_type), 1, *rate, *(x for group in groups for x in group), count=3 * (GROUPS[op_type] - 1),
        **OWN[op_type],
    )  # fmt: skip
    for k in range(len(shapes)):
        alone = run(named(op_type), 1, *rate, *(g[k] for g in groups), count=GROUPS[op_type] - 1, **OWN[op_type])
        for at, value in enumerate(alone):
            same(joint[3 * at + k], value)


@table("op_type", list(GROUPS))
def test_what_does_not_go_together_is_refused(op_type: str, refused: Run) -> None:
    count, own = GROUPS[op_type] - 1, OWN[op_type]
    rate, x = (one(0.5), one(1, np.int64)), [one([1.0, 2.0])] * GROUPS[op_type]
    assert "are as many" in refused(named(op_type), 1, *rate, *x[1:], count=count, **own)
    assert "are as many" in refused(named(op_type), 1, *rate, *x[1:], one([1.0]), count=count, **own)
    assert "inputs*: T3" in refused(named(op_type), 1, *rate, *x[1:], one([1.0, 2.0], float), count=count, **own)
    assert "There is an output" in refused(named(op_type), 1, *rate, *x, count=count + 1, **own)
    assert "R is one number" in refused(named(op_type), 1, one([1.0, 2.0]), rate[1], *x, count=count, **own)
    assert "T is one number" in refused(named(op_type), 1, rate[0], one([1, 2], np.int64), *x, count=count, **own)


def test_the_mode_of_momentum_is_one_of_two(refused: Run) -> None:
    given = one(0.5), one(1, np.int64), one([1.0]), one([1.0]), one([1.0])
    assert "mode is" in refused(named("Momentum"), 1, *given, count=2, **{**MOMENTUM, "mode": "Standard"})


# ---- Against ONNX's reference: in every type, the special values included -----------------------------------------


def drawn(op_type: str, seed: int) -> tuple[list[Any], dict[str, Any], int]:
    """Inputs, attributes and the number of outputs of a random application."""
    numbers = np.random.default_rng([seed, *op_type.encode()])
    kind = numbers.choice([F, np.float64])
    count = 1 if op_type == "Adam" and kind == np.float64 else int(numbers.integers(1, 4))  # deviations/optimizers.toml
    shapes = [tuple(numbers.integers(0, 4, numbers.integers(0, 4))) for _ in range(count)]
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3e38], kind)
    tensors = []
    for group in range(GROUPS[op_type]):
        for shape in shapes:
            made = np.asarray(numbers.normal(0, 2, shape), kind)
            if group == GROUPS[op_type] - 1 and op_type != "Momentum":
                made = np.asarray(np.abs(made))
            if numbers.random() < 0.2:
                made = np.where(numbers.random(shape) < 0.3, numbers.choice(odd, shape), made).astype(kind)
            tensors.append(made)
    t = np.array(numbers.choice([-1, 0, 1, 2, 7, 1000]), np.int64)
    rate = np.array(numbers.random(), numbers.choice([F, np.float64]) if seed % 3 == 0 else kind)
    own = {
        "Momentum": {"alpha": 0.75, "beta": 0.3, "norm_coefficient": 0.1, "mode": ("standard", "nesterov")[seed % 2]},
        "Adagrad": {"norm_coefficient": 0.1, "decay_factor": 0.1, "epsilon": 1e-3} if seed % 4 else {},
        "Adam": {"norm_coefficient": 0.1, "norm_coefficient_post": 0.25, "epsilon": 1e-3} if seed % 4 else {},
    }[op_type]
    own = {name: float(F(it)) if isinstance(it, float) else it for name, it in own.items()}
    return [rate, t, *tensors], own, count * (GROUPS[op_type] - 1)


def reference(op_type: str, given: Sequence[Any], own: dict[str, Any], count: int) -> list[Any]:
    """What onnx.reference gives."""
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    ins, outs = [f"x{k}" for k in range(len(given))], [f"y{k}" for k in range(count)]
    node = helper.make_node(op_type, ins, outs, domain=DOMAIN, **own)
    infos = [numpy_helper.from_array(np.asarray(x), n) for n, x in zip(ins, given, strict=True)]
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(i.name, i.data_type, list(i.dims)) for i in infos],
        [helper.make_tensor_value_info(n, 1, None) for n in outs],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)])
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, dict(zip(ins, given, strict=True)))


@pytest.mark.parametrize("numbers", seeds(250, 15))
@pytest.mark.parametrize("op_type", GROUPS)
def test_the_reference_is_inside_the_bound(op_type: str, numbers: range) -> None:
    outside = []
    for seed in numbers:
        given, own, count = drawn(op_type, seed)
        specified = judging.applied(Application(named(op_type), 1, tuple(given), own, (True,) * count))
        assert isinstance(specified, judging.Applied), specified
        with np.errstate(all="ignore"):
            results = tuple(np.asarray(x).astype(given[2].dtype) for x in reference(op_type, given, own, count))
        judged = judging.judge(specified, results)
        outside += [(seed, it) for it in judged if it is None or it.standing not in GOOD]
    assert not outside
