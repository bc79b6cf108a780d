"""The activation functions of recurrent networks, with the parameters that a node states for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from .functions import through_double
from .kernel import Array
from .reading import require
from .rounding import DType, scalar

Activation = Callable[[Array], Array]

TAKES_ALPHA: Final = frozenset({"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"})
TAKES_BETA: Final = frozenset({"affine", "scaledtanh", "hardsigmoid"})
STATED: Final = frozenset({"affine", "scaledtanh"})
"""Those whose parameters have no default."""
NAMES: Final = TAKES_ALPHA | {"relu", "tanh", "sigmoid", "softsign", "softplus"}
ALPHAS: Final = {"leakyrelu": float(np.float32(0.01)), "hardsigmoid": float(np.float32(0.2))}
BETAS: Final = {"hardsigmoid": 0.5}


def activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float], clip: float | None, dtype: DType
) -> list[Activation]:
    """The functions by name; those that take a parameter consume the values in order, then the default holds.

    clip: the threshold for the argument, None without one; a NaN is not bounded.
    """
    found: list[Activation] = []
    first, second = list(alphas), list(betas)
    for written in names:
        name = written.lower()
        require(name in NAMES, "activation functions are those that ONNX lists")
        enough = name not in STATED or (bool(first) and bool(second))
        require(enough, "Affine and ScaledTanh state their parameters")
        alpha = first.pop(0) if name in TAKES_ALPHA and first else ALPHAS.get(name, 1.0)
        beta = second.pop(0) if name in TAKES_BETA and second else BETAS.get(name, 0.0)
        found.append(_function(name, scalar(alpha, dtype), scalar(beta, dtype), dtype))
    if clip is None:
        return found
    low, high = scalar(-clip, dtype), scalar(clip, dtype)
    return [_clipped(function, low, high) for function in found]


def _clipped(function: Activation, low: Array, high: Array) -> Activation:
    def bounded(x: Array) -> Array:
        return function(np.asarray(np.minimum(np.maximum(x, low), high)))

    return bounded


def _function(name: str, alpha: Array, beta: Array, dtype: DType) -> Activation:
    zero, one = np.zeros((), dtype), np.ones((), dtype)

    def exp(x: Array) -> Array:
        into_exp(x, x)
        return x

    def log(x: Array) -> Array:
        into_log(x, x)
        return x

    def tanh(x: Array) -> Array:
        found = np.empty(x.shape, dtype)
        into_tanh(x, found)
        return found

    into_exp, into_log, into_tanh = (through_double(f)(dtype) for f in (np.exp, np.log, np.tanh))

    def sigmoid(x: Array) -> Array:
        found: Array = np.negative(x)
        exp(found)
        np.add(one, found, out=found)
        np.divide(one, found, out=found)
        return found

    def softplus(x: Array) -> Array:
        return np.asarray(np.maximum(x, zero) + log(np.asarray(one + exp(np.asarray(-np.abs(x))))))

    functions: dict[str, Activation] = {
        "relu": lambda x: np.where(x < zero, zero, x),
        "tanh": tanh,
        "sigmoid": sigmoid,
        "affine": lambda x: np.asarray(alpha * x + beta),
        "leakyrelu": lambda x: np.where(x < zero, alpha * x, x),
        "thresholdedrelu": lambda x: np.where(x >= alpha, x, zero),
        "scaledtanh": lambda x: np.asarray(alpha * tanh(np.asarray(beta * x))),
        "hardsigmoid": lambda x: np.asarray(np.minimum(np.maximum(alpha * x + beta, zero), one)),
        "elu": lambda x: np.where(x < zero, alpha * (exp(x.copy()) - one), x),
        "softsign": lambda x: np.asarray(x / (one + np.abs(x))),
        "softplus": softplus,
    }
    return functions[name]
