"""Evaluators: from a state to the end, each step chosen by the schedule that is part of the state."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from sonnx.spec.library import specification

from ..model.graph import NodeId
from ..model.values import Value
from ..operators.application import Stuck
from ..resources.process import paused
from .inputs import contradicted
from .observer import Observer
from .phases import Advance, Write
from .rules import over_budget, violated
from .schedule import choose
from .state import State, advanced_frame, has_value, node_path, region_of, tensor_path, value_of
from .transitions import finished, phases

_YOUNG_STEPS: Final = 1000  # after so many steps, or so many bytes written, garbage among new objects is looked for
_YOUNG_BYTES: Final = 1 << 26

AS_DECLARED: Final = "AsDeclared"
"""The constraint of part 3 on the values at the end."""
Progress = Callable[[int, int], None]
"""Called with the number of steps taken and that of the nodes of the main graph."""


@dataclass(frozen=True, slots=True)
class Limits:
    """steps: how many transitions a run may take. seconds: for how long. None: any."""

    steps: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: its states, the first and the last one only when no history is kept, and why it got stuck.

    choices: the node of each transition, a schedule to replay.
    """

    states: tuple[State, ...]
    choices: tuple[NodeId, ...]
    stuck: Stuck | None = None


def next_node(state: State) -> tuple[NodeId | None, State]:
    """The node that comes next by the schedule, None when there is none, and the state with its agenda brought up to
    date."""
    frame = state.frame
    n, agenda = choose(
        state.schedule, frame.agenda, state.program, frame.graph, lambda t: has_value(state, t), state.steps
    )
    if agenda is not frame.agenda:
        frame = advanced_frame(frame, frame.table, agenda)
        state = State(state.program, state.store, frame, state.schedule, state.stored, state.steps)
    return (frame.holder if n is None and state.schedule.kind != "recorded" else n), state


def evaluate(
    state: State,
    limits: Limits = Limits(),
    observers: Iterable[Observer] = (),
    *,
    history: bool = True,
    progress: Progress | None = None,
) -> Ending:
    """The run from a state until its schedule has no more, it gets stuck, or a limit is reached (Stuck too).

    history: whether all states are kept. At the end every output of the main graph has a value, or the run is stuck.
    """
    with paused():
        return _evaluated(state, limits, tuple(observers), history, progress)


def _evaluated(
    state: State, limits: Limits, observers: tuple[Observer, ...], history: bool, progress: Progress | None
) -> Ending:
    states = [state]
    choices: list[NodeId] = []
    deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
    total = len(state.program.model.graphs[0].nodes)
    for observer in observers:
        observer.begun(state)
    stuck: Stuck | None = None
    fresh = 0
    while True:
        n, ready = next_node(state)
        if n is None:
            stuck = at_end(ready)
            break
        stuck = _limited(ready, n, limits, deadline)
        if stuck is not None:
            break
        found: State | Stuck | None = None
        if fresh > _YOUNG_BYTES or not (len(choices) + 1) % _YOUNG_STEPS:
            gc.collect(1)  # not among the states that are kept: they grow, and are no garbage
            fresh = 0
        for phase in phases(ready, n):
            for observer in observers:
                observer.passed(ready, phase)
            if isinstance(phase, Stuck):
                found = phase
            elif isinstance(phase, Advance):
                found = phase.state
            elif isinstance(phase, Write):
                fresh += phase.written
        if not isinstance(found, State):
            stuck = None if found is None else replace(found, at=node_path(ready, n))
            break
        state = found
        choices.append(n)
        if history:
            states.append(state)
        if progress is not None:
            progress(len(choices), total)
    if not history and choices:
        states.append(state)
    for observer in observers:
        observer.ended(state)
    return Ending(tuple(states), tuple(choices), stuck)


def outputs(state: State) -> tuple[tuple[str, Value | None], ...]:
    """The outputs of the main graph by name, in order, once the run has ended."""
    model = state.program.model
    return tuple((model.tensors[t].name, value_of(state, t)) for t in model.graphs[0].outputs)


def _limited(state: State, n: NodeId, limits: Limits, deadline: float | None) -> Stuck | None:
    """Stuck when the limits do not allow the next step."""
    if limits.steps is not None and state.steps >= limits.steps:
        message = f"{state.steps} steps are taken, which is the limit; next would come {node_path(state, n)}"
        return over_budget("Step/fire", message, "--max-steps")
    if deadline is not None and time.monotonic() > deadline:
        message = f"the time is over after {state.steps} steps; next would come {node_path(state, n)}"
        return over_budget("Step/fire", message, "--max-time")
    return None


def at_end(state: State) -> Stuck | None:
    """Stuck when a run that has no more steps has ended too early, or with outputs unlike their declarations."""
    return incomplete(state) or undeclared(state)


def undeclared(state: State) -> Stuck | None:
    """Stuck when an output of the main graph has not the type and shape that the model declares: AsDeclared."""
    model = state.program.model
    main = model.graphs[0]
    given = {t: where.type for t in main.inputs if (where := region_of(state, t)) is not None}
    wrong = contradicted(model, given, {t: value_of(state, t) for t in main.outputs})
    if wrong is None:
        return None
    constraint = specification().constraints[AS_DECLARED]
    return violated(constraint, wrong, "Correct the declaration, or the node that computes the output.")


def incomplete(state: State) -> Stuck | None:
    """Stuck when the run has ended too early: in a body, or with an output that has no value."""
    graph = state.program.model.graphs[state.frame.graph]
    if state.frame.holder is None and finished(state):
        return None
    missing = next((t for t in graph.outputs if not has_value(state, t)), None)
    where = "the run ends in a body" if missing is None else f"{tensor_path(state, missing)} got no value"
    return violated(specification().constraints["Completeness"], where, "`sonnx certify` shows what it lacks.")
