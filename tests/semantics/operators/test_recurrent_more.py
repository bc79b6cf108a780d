from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tables import table

F, D = np.float32, np.float64
Run = Callable[..., Any]
VERSIONS = [7, 14, 22]
DIRECTIONS = ["forward", "reverse", "bidirectional"]
GATES = {"GRU": 3, "RNN": 1}


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _step(op: str, x: Any, h: Any, w: Any, r: Any, b: Any, functions: Any, reset: int) -> Any:
    """One step of one sequence, straight from the equations."""
    n = len(h)
    wb, rb = b[: len(b) // 2], b[len(b) // 2 :]
    if op == "RNN":
        return functions[0](x @ w.T + h @ r.T + wb + rb)
    z, g = (functions[0](x @ w[k].T + h @ r[k].T + wb[k] + rb[k]) for k in (slice(0, n), slice(n, 2 * n)))
    k = slice(2 * n, 3 * n)
    inner = g * (h @ r[k].T + rb[k]) if reset else (g * h) @ r[k].T + rb[k]
    return (1 - z) * functions[1](x @ w[k].T + inner + wb[k]) + z * h


def _layer(
    op: str, x: Any, p: dict[str, Any], direction: str, lengths: Any = None, h0: Any = None, functions: Any = None,
    clip: float | None = None, reset: int = 0
) -> tuple[Any, Any]:  # fmt: skip
    steps, batch, _ = x.shape
    directions, _, n = p["R"].shape
    y, last = np.zeros((steps, directions, batch, n)), np.zeros((directions, batch, n)) if h0 is None else h0.copy()
    bound = (lambda v: v) if clip is None else (lambda v: np.clip(v, -clip, clip))
    each = 2 if op == "GRU" else 1
    default = (_sigmoid, np.tanh) if op == "GRU" else (np.tanh,)
    for q in range(directions):
        chosen = functions[each * q : each * (q + 1)] if functions else default
        used = [lambda v, f=f: f(bound(v)) for f in chosen]
        for k in range(batch):
            times = range(steps if lengths is None else lengths[k])
            for t in reversed(times) if direction == "reverse" or q == 1 else times:
                last[q, k] = _step(op, x[t, k], last[q, k], p["W"][q], p["R"][q], p["B"][q], used, reset)
                y[t, q, k] = last[q, k]
    return y, last


def _case(op: str, direction: str, seed: int, steps: int = 4, batch: int = 3, n: int = 2, h: int = 5) -> Any:
    rng, g = np.random.default_rng(seed), GATES[op]
    d = 2 if direction == "bidirectional" else 1
    sizes = {"W": (d, g * h, n), "R": (d, g * h, h), "B": (d, 2 * g * h)}
    return rng.normal(size=(steps, batch, n)), {name: rng.normal(size=size) for name, size in sizes.items()}


def _run(
    run: Run, op: str, version: int, x: Any, p: dict[str, Any], direction: str, lengths: Any = None, h0: Any = None,
    **attributes: Any
) -> Any:  # fmt: skip
    lens = None if lengths is None else np.array(lengths, np.int32)
    return run(op, version, x, p["W"], p["R"], p["B"], lens, h0, count=2, direction=direction, **attributes)


def _check(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


pytestmark = pytest.mark.parametrize("op", ["GRU", "RNN"])


@table("version", VERSIONS)
@table("direction", DIRECTIONS)
def test_the_equations_hold_in_each_direction(op: str, version: int, direction: str, run: Run) -> None:
    x, p = _case(op, direction, 1)
    _check(_run(run, op, version, x, p, direction, hidden_size=5), _layer(op, x, p, direction))
    if op == "GRU":
        found = _run(run, op, version, x, p, direction, linear_before_reset=1)
        _check(found, _layer(op, x, p, direction, reset=1))


@table("version", VERSIONS)
@table("direction", DIRECTIONS)
def test_a_sequence_that_has_ended_keeps_its_state(op: str, version: int, direction: str, run: Run) -> None:
    x, p = _case(op, direction, 2)
    h0 = np.random.default_rng(4).normal(size=(len(p["W"]), 3, 5))
    for lengths in ([4, 2, 0], [1, 1, 1], [0, 0, 0]):
        found = _run(run, op, version, x, p, direction, lengths, h0)
        _check(found, _layer(op, x, p, direction, lengths, h0))
        assert all(not found[0][n:, :, k].any() for k, n in enumerate(lengths))


@table("version", VERSIONS)
@table("reset", [0, 1])
def test_biases_that_are_absent_are_0(op: str, version: int, reset: int, run: Run) -> None:
    x, p = _case(op, "forward", 3)
    named = {"linear_before_reset": reset} if op == "GRU" else {}
    found = run(op, version, x, p["W"], p["R"], count=2, **named)
    _check(found, _layer(op, x, p | {"B": np.zeros_like(p["B"])}, "forward", reset=reset))


@table("version", VERSIONS)
def test_activations_consume_alpha_and_beta_in_their_order(op: str, version: int, run: Run) -> None:
    x, p = _case(op, "bidirectional", 5)
    hard = lambda a, b: lambda v: np.clip(a * v + b, 0, 1)  # noqa: E731
    leaky = lambda a: lambda v: np.where(v >= 0, v, a * v)  # noqa: E731
    names, functions = ("HardSigmoid", "leakyrelu"), [hard(0.25, 0.5), leaky(0.125)]
    if op == "GRU":
        names, functions = (*names, "Softsign", "Affine"), [*functions, lambda v: v / (1 + abs(v)), lambda v: 2 * v + 3]
    found = _run(run, op, version, x, p, "bidirectional", activations=names, activation_alpha=(0.25, 0.125, 2.0),
                 activation_beta=(0.5, 3.0))  # fmt: skip
    _check(found, _layer(op, x, p, "bidirectional", functions=functions))


@pytest.mark.parametrize("version", VERSIONS)
def test_affine_without_parameters_has_those_of_the_former_operator(op: str, version: int, run: Run) -> None:
    x, p = _case(op, "forward", 6)
    names = ("Affine",) * (2 if op == "GRU" else 1)
    found = _run(run, op, version, x, p, "forward", activations=names)
    _check(found, _layer(op, x, p, "forward", functions=[lambda v: v] * 2))


@pytest.mark.parametrize("version", VERSIONS)
def test_clip_bounds_the_input_of_every_activation(op: str, version: int, run: Run) -> None:
    x, p = _case(op, "reverse", 7)
    found = _run(run, op, version, x, p, "reverse", clip=0.375)
    _check(found, _layer(op, x, p, "reverse", clip=0.375))


@table("version", VERSIONS[1:])
@table("direction", DIRECTIONS)
def test_layout_1_puts_the_batch_first(op: str, version: int, direction: str, run: Run) -> None:
    x, p = _case(op, direction, 9)
    h0 = np.random.default_rng(10).normal(size=(len(p["W"]), 3, 5))
    y, y_h = _layer(op, x, p, direction, [3, 4, 1], h0)
    swap = lambda v: np.ascontiguousarray(v.swapaxes(0, 1))  # noqa: E731
    found = _run(run, op, version, swap(x), p, direction, [3, 4, 1], swap(h0), layout=1)
    _check(found, (y.transpose(2, 0, 1, 3), swap(y_h)))


@table("version", VERSIONS)
def test_no_steps_leave_the_initial_state(op: str, version: int, run: Run) -> None:
    x, p = _case(op, "forward", 11, steps=0)
    found = _run(run, op, version, x, p, "forward")
    assert [v.shape for v in found] == [(0, 1, 3, 5), (1, 3, 5)]
    assert not found[1].any()


def test_a_nan_of_one_sequence_stays_in_it(op: str, run: Run) -> None:
    x, p = _case(op, "forward", 13)
    x[1, 2, 0] = np.nan
    y, y_h = _run(run, op, 14, x, p, "forward")
    assert np.isnan(y[1:, 0, 2]).all()
    assert np.isnan(y_h[0, 2]).all()
    assert not np.isnan(y[:, :, :2]).any()


@table("version", VERSIONS)
@table(
    ("attributes", "sentence"),
    [
        ({"direction": "both"}, "three words"),
        ({"hidden_size": 4}, "hidden_size"),
        ({"activations": ()}, "each direction"),
        ({"activations": ("Sigmoid", "Gelu")}, "ONNX lists"),
        ({"activations": ("ScaledTanh", "Tanh")}, "ScaledTanh"),
        ({"clip": -1.0}, "clip"),
    ],
)
def test_unfit_attributes_are_refused(op: str, version: int, attributes: Any, sentence: str, refused: Run) -> None:
    if op == "RNN" and "Gelu" in attributes.get("activations", ()):
        attributes = {"activations": ("Gelu",)}
    x, p = _case(op, "forward", 14)
    found = _run(refused, op, version, x, p, **({"direction": "forward"} | attributes))
    assert sentence in found


@table("version", VERSIONS)
def test_unfit_shapes_are_refused(op: str, version: int, refused: Run) -> None:
    x, p = _case(op, "forward", 15)
    assert "each direction" in _run(refused, op, version, x, p, "bidirectional")
    assert "two biases" in _run(refused, op, version, x, p | {"B": np.zeros((1, 7))}, "forward")
    assert "initial_h" in _run(refused, op, version, x, p, "forward", None, np.zeros((3, 1, 5)))
    assert "Lengths" in _run(refused, op, version, x, p, "forward", [5, 1, 1])
    assert "Lengths" in _run(refused, op, version, x, p, "forward", [-1, 1, 1])
    assert "a length for each" in _run(refused, op, version, x, p, "forward", [1, 1])
