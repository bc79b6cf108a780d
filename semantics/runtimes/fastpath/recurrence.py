"""What the recurrent operators share: their sizes, the order of steps in each direction, and their outputs.

The products of all steps with the weights of the input are one product of matrices; only the products with the state
run step by step. In a reverse direction step t of a sequence is its element at length - 1 - t.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...model.values import Value
from .activations import Activation, activations
from .kernel import Array, Site
from .products import widened
from .reading import asked, integer, number, numbers, optional, require, tensor, text, texts
from .rounding import DType, summing

Step = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]
"""From the products of one step's input with its weights, and the states, to the new states; the first one is H."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What a node states. gates: how many there are. functions: the names of the default activation functions."""

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


def sequences(how: Layer, inputs: Sequence[Value | None]) -> Sequences:
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
    found = activations(names[:count], how.alphas, how.betas, how.clip, dtype)
    return [found[q * each : (q + 1) * each] for q in range(directions)]


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
    """What a direction gave. states: H after each step, in the order of the input. last: the states at the end."""

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
    found = np.empty((steps, batch, hidden), given.dtype)
    for t in range(steps):
        new = step(products[t], states)
        if given.lengths is not None:
            runs = (t < given.lengths)[:, None]
            new = tuple(np.where(runs, a, b) for a, b in zip(new, states, strict=True))
        states = new
        found[t] = states[0]
    if order is not None:
        found = found[order]
    if given.lengths is not None:
        found[np.arange(steps)[:, None] >= given.lengths] = 0
    return Ran(found, states)


def _order(given: Sequences, reverse: bool) -> tuple[Array, Array] | slice | None:
    """Which step of the input each step reads; the same permutation puts the results back."""
    if not reverse:
        return None
    if given.lengths is None:
        return slice(None, None, -1)
    steps, _, batch, _ = given.sizes
    back = np.maximum(given.lengths - 1 - np.arange(steps)[:, None], 0)
    return back, np.arange(batch)


def outputs(site: Site, how: Layer, ran: list[Ran]) -> tuple[Value | None, ...]:
    """Y and the last states, in the layout of the node, where they are asked for."""
    found: list[Value | None] = []
    for position in range(max(1, len(site.outputs))):
        if not asked(site, position):
            found.append(None)
        elif position == 0:
            y = np.stack([each.states for each in ran], axis=1)
            found.append(np.ascontiguousarray(y if how.layout == 0 else y.transpose(2, 0, 1, 3)))
        else:
            last = np.stack([each.last[position - 1] for each in ran])
            found.append(np.ascontiguousarray(last if how.layout == 0 else last.swapaxes(0, 1)))
    return tuple(found)


def matrix_product(state: Array, weights: Array) -> Array:
    """state times the transposed weights, summed in the type of the weights, rounded to that of the state."""
    return widened(np.asarray(np.matmul(widened(state, weights.dtype), weights.T)), state.dtype)
