"""The five phases of a transition as values: select, read, apply, write, advance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model.graph import GraphId, NodeId, TensorId
from ..model.values import Value
from ..operators.application import Application
from .regions import Region, Store
from .state import State

Mask = NDArray[np.bool_]

# ---- What becomes of the frames ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stay:
    """The graph that runs goes on."""


@dataclass(frozen=True, slots=True)
class Enter:
    """A body begins its run 0 in a new frame. runs: how many runs there will be, where that is known."""

    body: GraphId
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """The body begins its next run. kept: positions of its outputs whose values are kept until it is left."""

    kept: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """The frame is left; the graph below goes on."""


Change = Stay | Enter | Again | Leave

# ---- The phases -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Select:
    """The rule that applies, with all its tests passed, for which node. path: the node's, with the numbers of runs."""

    rule: str
    node: NodeId
    path: str
    change: Change


@dataclass(frozen=True, slots=True)
class Read:
    """What is read: the inputs of the node by position (None: absent), or the outputs of the body that ends."""

    tensors: tuple[TensorId | None, ...]
    values: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """What the rule computes: the tensors that get a value, W of the rule. application: for Step/fire.

    free: by position of `tensors`, the elements that the text leaves open; None where there are none.
    """

    application: Application | None
    tensors: tuple[TensorId, ...]
    values: tuple[Value, ...]
    free: tuple[Mask | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """Where the values lie in the new memory. written: the bytes of them."""

    tensors: tuple[TensorId, ...]
    places: tuple[Region, ...]
    store: Store
    written: int


@dataclass(frozen=True, slots=True)
class Advance:
    """The new state. released: what may be overwritten from now on."""

    state: State
    released: tuple[tuple[TensorId, Region], ...] = ()


Phase = Select | Read | Apply | Write | Advance
