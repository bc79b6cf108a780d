"""The five phases of a transition as values, who observes them, and where a refused one is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.language.syntax import Constraint, Span, Transition
from sonnx.spec.library import specification

from ..errors import InternalError
from ..model.graph import GraphId, NodeId, TensorId
from ..model.values import Value
from ..operators.application import Application, Stuck
from ..resources import quick
from .memory import Region, Store
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

# ---- Values from outside ----------------------------------------------------------------------

SUPPLIED: Final = "no rule"
"""In place of a rule: the outputs of the node got values that no definition gave. No transition of part 3."""


@dataclass(frozen=True, slots=True)
class Supply:
    """Values for the outputs of a node that come from outside. source: from where, such as `from y.npy`."""

    values: Mapping[TensorId, Value]
    source: str


# ---- The phases -------------------------------------------------------------------------------


@quick
@dataclass(frozen=True, slots=True)
class Select:
    """The rule that applies, with all its tests passed, for which node; SUPPLIED where values from outside take its
    place. path: the node's, with the numbers of runs."""

    rule: str
    node: NodeId
    path: str
    change: Change


@quick
@dataclass(frozen=True, slots=True)
class Read:
    """The values read: the inputs of the node by position (None: absent), or the outputs of the body that ends."""

    tensors: tuple[TensorId | None, ...]
    values: tuple[Value | None, ...]


@quick
@dataclass(frozen=True, slots=True)
class Apply:
    """The results of the rule: the tensors that get a value, W of the rule. application: for Step/fire.

    free: by position of `tensors`, the elements that the text leaves open; None where there are none.
    """

    application: Application | None
    tensors: tuple[TensorId, ...]
    values: tuple[Value, ...]
    free: tuple[Mask | None, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class Write:
    """The regions of the values in the new memory. written: the bytes of them."""

    tensors: tuple[TensorId, ...]
    places: tuple[Region, ...]
    store: Store
    written: int


@quick
@dataclass(frozen=True, slots=True)
class Advance:
    """The new state. released: what may be overwritten from now on."""

    state: State
    released: tuple[tuple[TensorId, Region], ...] = ()


Phase = Select | Read | Apply | Write | Advance


# ---- Observers ------------------------------------------------------------------------------------


class Observer(Protocol):
    """Whoever follows a run. Whatever it does, it changes nothing in the run."""

    def begun(self, state: State) -> None:
        """The run begins in this state."""

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """A phase of the transition from this state is over; Stuck when it could not be, or the run ends badly."""

    def ended(self, state: State) -> None:
        """The run ends in this state."""


# ---- Refused transitions --------------------------------------------------------------------------


def stuck_at(rule: str, name: str, message: str, suggestion: str = "") -> Stuck:
    """Stuck at the premise of a rule that has this name by its text (`premise_names`). Raises InternalError for a name
    that none has."""
    text, span = _premise(rule, name)
    return Stuck(rule, text, span, message, suggestion)


def over_budget(rule: str, message: str, option: str = "--max-memory") -> Stuck:
    """Stuck because the machine is not allowed to go on; no text demands it."""
    return Stuck(rule, "the budget of this run", _transition(rule).span, message, f"Raise {option}.")


def violated(constraint: Constraint, message: str, suggestion: str = "") -> Stuck:
    """Stuck because the graph breaks a constraint of part 2."""
    return Stuck(constraint.name, constraint.doc, constraint.span, message, suggestion)


def _transition(rule: str) -> Transition:
    return specification().transitions[rule]


@cache
def _premise(rule: str, name: str) -> tuple[str, Span]:
    from sonnx.spec.language.premises import premise_names
    from sonnx.spec.language.printer import print_expression

    transition = _transition(rule)
    position = premise_names(transition).get(name)
    if position is None:
        raise InternalError(f"{rule} has no premise of the name {name}")
    premise = transition.premises[position]
    text = print_expression(premise.expr)
    return (text if premise.name is None else f"{premise.name} = {text}"), premise.span
