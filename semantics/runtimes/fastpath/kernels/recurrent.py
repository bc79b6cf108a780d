"""Recurrent layers (LSTM, GRU, RNN): one product for the inputs of all steps, then the steps one after another.

Sums of products of floats of 16 bits are computed in float and rounded once; every other operation is rounded in the
operator's own type. The two biases of a gate are added to each other and to the products of the inputs first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ....model.values import Value
from ..activations import Activation
from ..kernel import Allocate, Array, Compute, Kernel, Site
from ..reading import integer, optional, require
from ..recurrence import (
    Layer,
    Ran,
    Sequences,
    Step,
    biases,
    functions,
    initial,
    layer,
    matrix_product,
    outputs,
    run,
    sequences,
)

Begin = Callable[[Sequences, int, list[Activation]], tuple[Array | None, Step]]
"""From the inputs, a direction and its activation functions to the bias of the inputs' products, and the step."""

# ---- LSTM -------------------------------------------------------------------------------------


def _lstm(site: Site) -> Compute:
    how = layer(site, 4, ("sigmoid", "tanh", "tanh"))
    coupled = integer(site, "input_forget") != 0

    def compute(inputs: Sequence[Value | None], _allocate: Allocate) -> tuple[Value | None, ...]:
        given = sequences(how, inputs)
        _, directions, _, hidden = given.sizes
        h, c = initial(how, given, optional(inputs, 5)), initial(how, given, optional(inputs, 6))
        peepholes = optional(inputs, 7)
        require(peepholes is None or peepholes.shape == (directions, 3 * hidden), "P holds three peepholes")
        acts = functions(how, directions, given.dtype)
        ran: list[Ran] = []
        with np.errstate(all="ignore"):
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
    def compute(inputs: Sequence[Value | None], _allocate: Allocate) -> tuple[Value | None, ...]:
        given = sequences(how, inputs)
        directions = given.sizes[1]
        h = initial(how, given, optional(inputs, 5))
        acts = functions(how, directions, given.dtype)
        ran: list[Ran] = []
        with np.errstate(all="ignore"):
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
    "LSTM": (Kernel(7, 22, _lstm),),
    "GRU": (Kernel(7, 22, _gru),),
    "RNN": (Kernel(7, 22, _rnn),),
}
