from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F, D = np.float32, np.float64
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
VERSIONS = [7, 14, 22]
DIRECTIONS = ["forward", "reverse", "bidirectional"]


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _functions(name: str, alpha: float, beta: float) -> Callable[[Any], Any]:
    return {
        "Sigmoid": _sigmoid,
        "Tanh": np.tanh,
        "Relu": lambda x: np.maximum(x, 0),
        "Affine": lambda x: alpha * x + beta,
        "LeakyRelu": lambda x: np.where(x >= 0, x, alpha * x),
        "ThresholdedRelu": lambda x: np.where(x >= alpha, x, 0),
        "ScaledTanh": lambda x: alpha * np.tanh(beta * x),
        "HardSigmoid": lambda x: np.clip(alpha * x + beta, 0, 1),
        "Elu": lambda x: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))),
        "Softsign": lambda x: x / (1 + abs(x)),
        "Softplus": lambda x: np.logaddexp(0, x),
    }[name]


def _parameters(rng: Any, directions: int, n: int, h: int) -> dict[str, Any]:
    sizes = {"W": (4 * h, n), "R": (4 * h, h), "B": (8 * h,), "P": (3 * h,)}
    return {name: rng.normal(size=(directions, *size)) for name, size in sizes.items()}


def _lstm(
    x: Any, parameters: dict[str, Any], direction: str, lengths: Any = None, h0: Any = None, c0: Any = None,
    functions: Any = None, clip: float | None = None, coupled: bool = False
) -> tuple[Any, Any, Any]:  # fmt: skip
    """One sequence and one direction after the other, straight from the equations; layout 0."""
    w, r, b, p = (parameters[name] for name in "WRBP")
    steps, batch, _ = x.shape
    directions, h = w.shape[0], r.shape[2]
    y = np.zeros((steps, directions, batch, h))
    last_h = np.zeros((directions, batch, h)) if h0 is None else h0.copy()
    last_c = np.zeros((directions, batch, h)) if c0 is None else c0.copy()
    bound = (lambda v: v) if clip is None else (lambda v: np.clip(v, -clip, clip))
    for q in range(directions):
        chosen = functions[3 * q : 3 * q + 3] if functions else (_sigmoid, np.tanh, np.tanh)
        f, g, o = ((lambda v, e=e: e(bound(v))) for e in chosen)
        wi, wo, wf, wc = np.split(w[q], 4)
        ri, ro, rf, rc = np.split(r[q], 4)
        bi, bo, bf, bc = np.split(sum(np.split(b[q], 2)), 4)
        pi, po, pf = np.split(p[q], 3)
        for k in range(batch):
            length = steps if lengths is None else lengths[k]
            backward = direction == "reverse" or q == 1
            for t in reversed(range(length)) if backward else range(length):
                now, state, cell = x[t, k], last_h[q, k], last_c[q, k]
                gate_in = f(now @ wi.T + state @ ri.T + pi * cell + bi)
                forget = 1 - gate_in if coupled else f(now @ wf.T + state @ rf.T + pf * cell + bf)
                cell = forget * cell + gate_in * g(now @ wc.T + state @ rc.T + bc)
                state = f(now @ wo.T + state @ ro.T + po * cell + bo) * o(cell)
                last_h[q, k], last_c[q, k], y[t, q, k] = state, cell, state
    return y, last_h, last_c


def _case(direction: str, seed: int = 1, steps: int = 4, batch: int = 3, n: int = 2, h: int = 5) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(steps, batch, n)), _parameters(rng, 2 if direction == "bidirectional" else 1, n, h)


def _check(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def _run(
    run: Run, version: int, x: Any, parameters: dict[str, Any], direction: str, lengths: Any = None, h0: Any = None,
    c0: Any = None, **attributes: Any
) -> Any:  # fmt: skip
    lens = None if lengths is None else np.array(lengths, np.int32)
    w, r, b, p = (parameters[name] for name in "WRBP")
    return run("LSTM", version, x, w, r, b, lens, h0, c0, p, count=3, direction=direction, **attributes)


@table("version", VERSIONS)
@table("direction", DIRECTIONS)
def test_the_equations_hold_in_each_direction(version: int, direction: str, run: Run) -> None:
    x, parameters = _case(direction)
    _check(_run(run, version, x, parameters, direction, hidden_size=5), _lstm(x, parameters, direction))


@table("version", VERSIONS)
@table("direction", DIRECTIONS)
def test_a_sequence_that_has_ended_keeps_its_state(version: int, direction: str, run: Run) -> None:
    x, parameters = _case(direction, 2)
    rng = np.random.default_rng(4)
    h0, c0 = (rng.normal(size=(len(parameters["W"]), 3, 5)) for _ in range(2))
    for lengths in ([4, 2, 0], [1, 1, 1], [0, 0, 0]):
        found = _run(run, version, x, parameters, direction, lengths, h0, c0)
        _check(found, _lstm(x, parameters, direction, lengths, h0, c0))
        assert all(not found[0][n:, :, k].any() for k, n in enumerate(lengths))


@pytest.mark.parametrize("version", VERSIONS)
def test_inputs_that_are_absent_are_0(version: int, run: Run) -> None:
    x, parameters = _case("forward", 3)
    zero = parameters | {"B": np.zeros((1, 40)), "P": np.zeros((1, 15))}
    found = run("LSTM", version, x, parameters["W"], parameters["R"], count=3)
    _check(found, _lstm(x, zero, "forward"))


@table("version", VERSIONS)
@table("direction", ["forward", "bidirectional"])
def test_activations_consume_alpha_and_beta_in_their_order(version: int, direction: str, run: Run) -> None:
    x, parameters = _case(direction, 5)
    names = ["HardSigmoid", "Affine", "Tanh", "Sigmoid", "ScaledTanh", "Elu"][: 6 if direction != "forward" else 3]
    alphas, betas = ([0.25, 0.5], [0.5, 0.125]) if direction == "forward" else ([0.25, 0.5, 0.75, 1.25],
                                                                                [0.5, 0.125, 1.5])  # fmt: skip
    values = [(0.25, 0.5), (0.5, 0.125), (0, 0), (0, 0), (0.75, 1.5), (1.25, 0)]
    functions = [_functions(name, *values[k]) for k, name in enumerate(names)]
    found = _run(run, version, x, parameters, direction, activations=tuple(names),
                 activation_alpha=tuple(alphas), activation_beta=tuple(betas))  # fmt: skip
    _check(found, _lstm(x, parameters, direction, functions=functions))


@table("version", VERSIONS)
@table(
    ("name", "alpha", "beta"),
    [("Relu", 0, 0), ("LeakyRelu", float(F(0.01)), 0), ("ThresholdedRelu", 1, 0), ("Elu", 1, 0), ("Softsign", 0, 0),
     ("HardSigmoid", float(F(0.2)), 0.5), ("Softplus", 0, 0), ("Tanh", 0, 0)],
)  # fmt: skip
def test_parameters_have_the_defaults_of_the_operators(
    version: int, name: str, alpha: float, beta: float, run: Run
) -> None:
    x, parameters = _case("reverse", 6)
    functions = [_functions(name, alpha, beta)] * 3
    found = _run(run, version, x, parameters, "reverse", activations=(name, name.lower(), name))
    _check(found, _lstm(x, parameters, "reverse", functions=functions))


@pytest.mark.parametrize("version", VERSIONS)
def test_clip_bounds_the_input_of_every_activation(version: int, run: Run) -> None:
    x, parameters = _case("bidirectional", 7)
    found = _run(run, version, x, parameters, "bidirectional", clip=0.375)
    _check(found, _lstm(x, parameters, "bidirectional", clip=0.375))


@pytest.mark.parametrize("version", VERSIONS)
def test_input_forget_couples_the_gates(version: int, run: Run) -> None:
    x, parameters = _case("forward", 8)
    found = _run(run, version, x, parameters, "forward", input_forget=1)
    _check(found, _lstm(x, parameters, "forward", coupled=True))


@table("version", VERSIONS[1:])
@table("direction", DIRECTIONS)
def test_layout_1_puts_the_batch_first(version: int, direction: str, run: Run) -> None:
    x, parameters = _case(direction, 9)
    rng = np.random.default_rng(10)
    h0, c0 = (rng.normal(size=(len(parameters["W"]), 3, 5)) for _ in range(2))
    y, y_h, y_c = _lstm(x, parameters, direction, [3, 4, 1], h0, c0)
    swap = lambda v: np.ascontiguousarray(v.swapaxes(0, 1))  # noqa: E731
    found = _run(run, version, swap(x), parameters, direction, [3, 4, 1], swap(h0), swap(c0), layout=1)
    _check(found, (y.transpose(2, 0, 1, 3), swap(y_h), swap(y_c)))


@pytest.mark.parametrize("version", VERSIONS)
def test_no_steps_leave_the_initial_state(version: int, run: Run) -> None:
    x, parameters = _case("forward", 11, steps=0)
    found = _run(run, version, x, parameters, "forward")
    assert [v.shape for v in found] == [(0, 1, 3, 5), (1, 3, 5), (1, 3, 5)]
    assert not found[1].any()
    assert not found[2].any()


def test_each_step_is_rounded_to_the_element_type(run: Run) -> None:
    x, parameters = _case("forward", 12)
    for dtype in (np.float16, F, ml_dtypes.bfloat16):
        cast = {name: value.astype(dtype) for name, value in parameters.items()}
        found = _run(run, 22, x.astype(dtype), cast, "forward")
        assert all(v.dtype == dtype for v in found)
        np.testing.assert_allclose(found[0].astype(D), _lstm(x, parameters, "forward")[0], atol=0.1)


def test_a_nan_of_one_sequence_stays_in_it(run: Run) -> None:
    x, parameters = _case("forward", 13)
    x[1, 2, 0] = np.nan
    y, y_h, _ = _run(run, 14, x, parameters, "forward")
    assert np.isnan(y[1:, 0, 2]).all()
    assert np.isnan(y_h[0, 2]).all()
    assert not np.isnan(y[:, :, :2]).any()


@table("version", VERSIONS)
@table(
    ("attributes", "sentence"),
    [
        ({"direction": "both"}, "three words"),
        ({"hidden_size": 4}, "hidden_size"),
        ({"activations": ("Sigmoid",)}, "three activation functions"),
        ({"activations": ("Sigmoid", "Tanh", "Gelu")}, "ONNX lists"),
        ({"activations": ("ScaledTanh", "Tanh", "Tanh")}, "ScaledTanh"),
        ({"clip": -1.0}, "clip"),
    ],
)
def test_unfit_attributes_are_refused(version: int, attributes: dict[str, Any], sentence: str, refused: Run) -> None:
    x, parameters = _case("forward", 14)
    found = _run(refused, version, x, parameters, **({"direction": "forward"} | attributes))
    assert sentence in found


@pytest.mark.parametrize("version", VERSIONS)
def test_unfit_shapes_are_refused(version: int, refused: Run) -> None:
    x, parameters = _case("forward", 15)
    assert "each direction" in _run(refused, version, x, parameters, "bidirectional")
    assert "two biases" in _run(refused, version, x, parameters | {"B": np.zeros((1, 20))}, "forward")
    assert "peepholes" in _run(refused, version, x, parameters | {"P": np.zeros((1, 20))}, "forward")
    assert "initial_h" in _run(refused, version, x, parameters, "forward", None, np.zeros((3, 1, 5)))
    assert "Lengths" in _run(refused, version, x, parameters, "forward", [5, 1, 1])
    assert "Lengths" in _run(refused, version, x, parameters, "forward", [-1, 1, 1])
    assert "a length for each" in _run(refused, version, x, parameters, "forward", [1, 1])
