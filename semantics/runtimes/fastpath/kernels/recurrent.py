"""Recurrent layers (LSTM, GRU, RNN): one product for the inputs of all steps, then the steps one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from ....model.values import Value
from ..functions import DType, scalar, summing, through_double
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site
from ..products import widened
from ..reading import asked, integer, number, numbers, optional, require, tensor, text, texts
from ..workers import with_threads_of_blas
from .activation import sigmoid, softplus, softsign

Activation = Callable[[Array], Array]

TAKES_ALPHA: Final = frozenset({"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"})
TAKES_BETA: Final = frozenset({"affine", "scaledtanh", "hardsigmoid"})
NAMES: Final = TAKES_ALPHA | {"relu", "tanh", "sigmoid", "softsign", "softplus"}
ALPHAS: Final = {"leakyrelu": float(np.float32(0.01)), "hardsigmoid": float(np.float32(0.2))}
BETAS: Final = {"hardsigmoid": 0.5}


def activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float], clip: float | None, dtype: DType
) -> list[Activation]:
    """The functions by name; those that take a parameter consume the values in order, then the default holds.

    clip: the threshold for the argument, None without one; a NaN is not bounded.
    """
    made: list[Activation] = []
    first, second = list(alphas), list(betas)
    for written in names:
        name = written.lower()
        require(name in NAMES, "activation functions are those that ONNX lists")
        require(name != "scaledtanh" or (bool(first) and bool(second)), "ScaledTanh states its parameters")
        alpha = first.pop(0) if name in TAKES_ALPHA and first else ALPHAS.get(name, 1.0)
        beta = second.pop(0) if name in TAKES_BETA and second else BETAS.get(name, 0.0)
        made.append(_function(name, scalar(alpha, dtype), scalar(beta, dtype), dtype))
    if clip is None:
        return made
    low, high = scalar(-clip, dtype), scalar(clip, dtype)
    return [_clipped(function, low, high) for function in made]


def _clipped(function: Activation, low: Array, high: Array) -> Activation:
    def bounded(x: Array) -> Array:
        return function(np.asarray(np.minimum(np.maximum(x, low), high)))

    return bounded


def _into_new(step: Callable[[Array, Array], None]) -> Activation:
    """A step that writes what it is given as a function of one array."""

    def function(x: Array) -> Array:
        made = np.empty(x.shape, x.dtype)
        step(x, made)
        return made

    return function


def _function(name: str, alpha: Array, beta: Array, dtype: DType) -> Activation:
    zero, one = np.zeros((), dtype), np.ones((), dtype)

    exp, tanh = (_into_new(through_double(function)(dtype)) for function in (np.exp, np.tanh))
    functions: dict[str, Activation] = {
        "relu": lambda x: np.where(x < zero, zero, x),
        "tanh": tanh,
        "sigmoid": _into_new(sigmoid(dtype)),
        "affine": lambda x: np.asarray(alpha * x + beta),
        "leakyrelu": lambda x: np.where(x < zero, alpha * x, x),
        "thresholdedrelu": lambda x: np.where(x >= alpha, x, zero),
        "scaledtanh": lambda x: np.asarray(alpha * tanh(np.asarray(beta * x))),
        "hardsigmoid": lambda x: np.asarray(np.minimum(np.maximum(alpha * x + beta, zero), one)),
        "elu": lambda x: np.where(x < zero, alpha * (exp(x) - one), x),
        "softsign": _into_new(softsign(dtype)),
        "softplus": _into_new(softplus(dtype)),
    }
    return functions[name]


# ---- Steps, directions and outputs ----------------------------------------------------------------

Step = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]
"""From the products of one step's input with its weights, and the states, to the new states; the first one is H."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The facts of a node. gates: how many there are. functions: the names of the default activation functions."""

    gates: int
    functions: tuple[str, ...]
    direction: str
    layout: int
    hidden: int | None
    clip: float | None
    names: tuple[str, ...] | None
    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    exact_count: bool


def layer(site: Site, gates: int, functions: tuple[str, ...], exact_count: bool = True) -> Layer:
    """The attributes. exact_count: a stated list of activation functions has no more entries than are needed."""
    return Layer(
        gates,
        functions,
        text(site, "direction", "forward"),
        integer(site, "layout"),
        integer(site, "hidden_size") if "hidden_size" in site.attributes else None,
        number(site, "clip") if "clip" in site.attributes else None,
        texts(site, "activations"),
        numbers(site, "activation_alpha") or (),
        numbers(site, "activation_beta") or (),
        exact_count,
    )


@dataclass(frozen=True, slots=True)
class Sequences:
    """The inputs; x, w and r in the type of the sums, all else in the operator's own.

    x: steps, batch, inputs. w, r: directions, gates * hidden, inputs or hidden. b: None or directions, 2 * gates *
    hidden. lengths: None where all sequences run to the end.
    """

    dtype: DType
    x: Array
    w: Array
    r: Array
    b: Array | None
    lengths: Array | None

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Steps, directions, batch, hidden units."""
        return self.x.shape[0], self.w.shape[0], self.x.shape[1], self.r.shape[2]


def sequences(how: Layer, inputs: Inputs) -> Sequences:
    """The inputs that all recurrent operators have. Raises KernelError where they do not fit each other."""
    x, w, r, b = tensor(inputs, 0), tensor(inputs, 1), tensor(inputs, 2), optional(inputs, 3)
    lengths = optional(inputs, 4)
    require(how.layout in (0, 1), "layout is 0 or 1")
    require(how.direction in ("forward", "reverse", "bidirectional"), "direction is one of the three words")
    require(x.ndim == w.ndim == r.ndim == 3, "X, W and R have three axes")
    directions = 2 if how.direction == "bidirectional" else 1
    hidden = r.shape[2]
    require(w.shape[0] == r.shape[0] == directions, "W and R have an entry for each direction")
    require(w.shape[2] == x.shape[2], "W has a weight for each input")
    require(w.shape[1] == r.shape[1] == how.gates * hidden, "W and R have a row for each gate and hidden unit")
    require(how.hidden in (None, hidden), "hidden_size is that of R")
    require(b is None or b.shape == (directions, 2 * how.gates * hidden), "B holds two biases for each gate")
    require(how.clip is None or how.clip >= 0, "the threshold of clip is not negative")
    kind = summing(x.dtype)
    x = x if how.layout == 0 else x.swapaxes(0, 1)
    steps, batch = x.shape[:2]
    if lengths is not None:
        require(lengths.shape == (batch,), "there is a length for each sequence")
        lengths = lengths.astype(np.int64)
        fits = bool(((lengths >= 0) & (lengths <= steps)).all())
        require(fits, "lengths lie between 0 and that of the longest sequence")
        if bool((lengths == steps).all()):
            lengths = None
    return Sequences(tensor(inputs, 0).dtype, widened(x, kind), widened(w, kind), widened(r, kind), b, lengths)


def initial(how: Layer, given: Sequences, state: Array | None) -> Array:
    """The first state: directions, batch, hidden units."""
    _, directions, batch, hidden = given.sizes
    if state is None:
        return np.zeros((directions, batch, hidden), given.dtype)
    state = state if how.layout == 0 or state.ndim != 3 else state.swapaxes(0, 1)
    require(state.shape == (directions, batch, hidden), "an initial state is given for each direction and sequence")
    return state


def functions(how: Layer, directions: int, dtype: DType) -> list[list[Activation]]:
    """The activation functions of each direction."""
    each = len(how.functions)
    names = how.names
    if names is None:
        names = how.functions * directions
    count = each * directions
    require(len(names) == count if how.exact_count else len(names) >= count, "each direction has its functions")
    every = activations(names[:count], how.alphas, how.betas, how.clip, dtype)
    return [every[q * each : (q + 1) * each] for q in range(directions)]


def biases(given: Sequences, q: int, apart: int | None = None) -> tuple[Array | None, Array | None]:
    """The biases of a direction, of input and state together; those of the state from row `apart` on by themselves."""
    if given.b is None:
        return None, None
    size = given.w.shape[1]
    of_input, of_state = given.b[q, :size], given.b[q, size:]
    if apart is None:
        return np.asarray(of_input + of_state), None
    head: Array = np.add(of_input[:apart], of_state[:apart])
    return np.concatenate([head, of_input[apart:]]), of_state[apart:]


@dataclass(frozen=True, slots=True)
class Ran:
    """The results of a direction. states: H after each step, in the order of the input. last: the states at the end."""

    states: Array
    last: tuple[Array, ...]


def run(how: Layer, given: Sequences, q: int, bias: Array | None, states: tuple[Array, ...], step: Step) -> Ran:
    """One direction, step by step. bias: what is added to the products of the inputs; states: before the first step."""
    steps, _, batch, hidden = given.sizes
    weights = given.w[q]
    reverse = how.direction == "reverse" or q == 1
    order = _order(given, reverse)
    x = given.x if order is None else given.x[order]
    flat = np.ascontiguousarray(x).reshape(steps * batch, x.shape[2])
    products = widened(np.matmul(flat, weights.T), given.dtype).reshape(steps, batch, weights.shape[0])
    if bias is not None:
        np.add(products, bias, out=products)
    hidden_states = np.empty((steps, batch, hidden), given.dtype)
    with with_threads_of_blas():
        for t in range(steps):
            new = step(products[t], states)
            if given.lengths is not None:
                runs = (t < given.lengths)[:, None]
                new = tuple(np.where(runs, a, b) for a, b in zip(new, states, strict=True))
            states = new
            hidden_states[t] = states[0]
    if order is not None:
        hidden_states = hidden_states[order]
    if given.lengths is not None:
        hidden_states[np.arange(steps)[:, None] >= given.lengths] = 0
    return Ran(hidden_states, states)


def _order(given: Sequences, reverse: bool) -> tuple[Array, Array] | slice | None:
    """Which step of the input each step reads; the same permutation puts the results back."""
    if not reverse:
        return None
    if given.lengths is None:
        return slice(None, None, -1)
    steps, _, batch, _ = given.sizes
    back = np.maximum(given.lengths - 1 - np.arange(steps)[:, None], 0)
    return back, np.arange(batch)


def outputs(site: Site, how: Layer, ran: list[Ran]) -> Outputs:
    """Y and the last states, in the layout of the node, where they are asked for."""
    results: list[Value | None] = []
    for position in range(max(1, len(site.outputs))):
        if not asked(site, position):
            results.append(None)
        elif position == 0:
            y = np.stack([each.states for each in ran], axis=1)
            results.append(np.ascontiguousarray(y if how.layout == 0 else y.transpose(2, 0, 1, 3)))
        else:
            last = np.stack([each.last[position - 1] for each in ran])
            results.append(np.ascontiguousarray(last if how.layout == 0 else last.swapaxes(0, 1)))
    return tuple(results)


def matrix_product(state: Array, weights: Array) -> Array:
    """state times the transposed weights, summed in the type of the weights, rounded to that of the state."""
    return widened(np.asarray(np.matmul(widened(state, weights.dtype), weights.T)), state.dtype)


# ---- Layers ---------------------------------------------------------------------------------------

Begin = Callable[[Sequences, int, list[Activation]], tuple[Array | None, Step]]
"""From the inputs, a direction and its activation functions to the bias of the inputs' products, and the step."""

# ---- LSTM -------------------------------------------------------------------------------------


def _lstm(site: Site) -> Compute:
    how = layer(site, 4, ("sigmoid", "tanh", "tanh"))
    coupled = integer(site, "input_forget") != 0

    def compute(inputs: Inputs, _allocate: Allocate) -> Outputs:
        given = sequences(how, inputs)
        _, directions, _, hidden = given.sizes
        h, c = initial(how, given, optional(inputs, 5)), initial(how, given, optional(inputs, 6))
        peepholes = optional(inputs, 7)
        require(peepholes is None or peepholes.shape == (directions, 3 * hidden), "P holds three peepholes")
        acts = functions(how, directions, given.dtype)
        ran: list[Ran] = []
        for q in range(directions):
            peep = None if peepholes is None else peepholes[q]
            step = _lstm_step(acts[q], given.r[q], peep, coupled)
            ran.append(run(how, given, q, biases(given, q)[0], (h[q], c[q]), step))
        return outputs(site, how, ran)

    return compute


def _lstm_step(acts: list[Activation], r: Array, peep: Array | None, coupled: bool) -> Step:
    n = r.shape[1]
    gate, cell, shown = acts

    def plain(products: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        h, c = states
        a = _sum(matrix_product(h, r), products)
        gates = gate(a[:, : (2 if coupled else 3) * n])
        i, o = gates[:, :n], gates[:, n : 2 * n]
        f = np.subtract(gates.dtype.type(1), i) if coupled else gates[:, 2 * n :]
        c = np.asarray(f * c + i * cell(a[:, 3 * n :]))
        return np.asarray(o * shown(c)), c

    def peeping(weights: Array, products: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        h, c = states
        a = _sum(matrix_product(h, r), products)
        i = gate(np.asarray(a[:, :n] + weights[:n] * c))
        if coupled:
            f = np.asarray(np.subtract(i.dtype.type(1), i))
        else:
            f = gate(np.asarray(a[:, 2 * n : 3 * n] + weights[2 * n :] * c))
        c = np.asarray(f * c + i * cell(a[:, 3 * n :]))
        o = gate(np.asarray(a[:, n : 2 * n] + weights[n : 2 * n] * c))
        return np.asarray(o * shown(c)), c

    return plain if peep is None else partial(peeping, peep)


def _sum(x: Array, y: Array) -> Array:
    """The sum, in the memory of the first."""
    np.add(x, y, out=x)
    return x


# ---- Layers whose only state is H -------------------------------------------------------------


def _of_one_state(site: Site, how: Layer, begin: Begin) -> Compute:
    def compute(inputs: Inputs, _allocate: Allocate) -> Outputs:
        given = sequences(how, inputs)
        directions = given.sizes[1]
        h = initial(how, given, optional(inputs, 5))
        acts = functions(how, directions, given.dtype)
        ran: list[Ran] = []
        for q in range(directions):
            bias, step = begin(given, q, acts[q])
            ran.append(run(how, given, q, bias, (h[q],), step))
        return outputs(site, how, ran)

    return compute


# ---- GRU --------------------------------------------------------------------------------------


def _gru(site: Site) -> Compute:
    how = layer(site, 3, ("sigmoid", "tanh"))
    late = integer(site, "linear_before_reset") != 0

    def begin(given: Sequences, q: int, acts: list[Activation]) -> tuple[Array | None, Step]:
        bias, of_state = biases(given, q, 2 * given.sizes[3] if late else None)
        return bias, _gru_step(acts, given.r[q], of_state, late)

    return _of_one_state(site, how, begin)


def _gru_step(acts: list[Activation], r: Array, bias: Array | None, late: bool) -> Step:
    n = r.shape[1]
    gate, shown = acts
    gates, state = r[: 2 * n], r[2 * n :]

    def step(products: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        (h,) = states
        zr = gate(_sum(matrix_product(h, gates), products[:, : 2 * n]))
        z, reset = zr[:, :n], zr[:, n:]
        if late:
            a = matrix_product(h, state)
            a = np.asarray(reset * (a if bias is None else _sum(a, bias)))
        else:
            a = matrix_product(np.asarray(reset * h), state)
        new = shown(_sum(a, products[:, 2 * n :]))
        return (np.asarray((z.dtype.type(1) - z) * new + z * h),)

    return step


# ---- RNN --------------------------------------------------------------------------------------


def _rnn(site: Site) -> Compute:
    how = layer(site, 1, ("tanh",), exact_count=False)

    def begin(given: Sequences, q: int, acts: list[Activation]) -> tuple[Array | None, Step]:
        return biases(given, q)[0], _rnn_step(acts[0], given.r[q])

    return _of_one_state(site, how, begin)


def _rnn_step(act: Activation, r: Array) -> Step:
    def step(products: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        return (act(_sum(matrix_product(states[0], r), products)),)

    return step


KERNELS: Mapping[str, tuple[Kernel, ...]] = {
    "LSTM": (Kernel(7, 22, _lstm, alone=True),),
    "GRU": (Kernel(7, 22, _gru, alone=True),),
    "RNN": (Kernel(7, 22, _rnn, alone=True),),
}
