"""Running a model: `run(model, inputs)` from values by name to a Run with its states and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..model.graph import Model, NodeId
from ..model.values import Value
from ..operators.application import Meaning, Stuck
from .evaluators import AS_DECLARED, Ending, Limits, Progress, evaluate, outputs
from .inputs import bound_inputs
from .observer import Observer
from .schedule import Schedule
from .start import check_supported, check_well_formed, initial
from .state import State


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a model. states: all of them, or the first and the last; none when it could not begin.

    stuck: why it did not end well; outputs: those that have a value, none where one contradicts its declaration.
    choices: the node of each step.
    """

    model: Model
    states: tuple[State, ...]
    choices: tuple[NodeId, ...]
    outputs: Mapping[str, Value]
    stuck: Stuck | None = None

    @property
    def peak(self) -> int:
        """The greatest N that the run needed, in bytes."""
        return self.states[-1].store.space.peak if self.states else 0

    @property
    def recorded(self) -> Schedule:
        """The schedule that takes the same steps again."""
        return Schedule("recorded", choices=self.choices)


def run(
    model: Model,
    inputs: Mapping[str, Value],
    schedule: Schedule = Schedule(),  # noqa: B008 - it is immutable
    *,
    meaning: Meaning | None = None,
    allocation: str = "simple",
    max_memory: int | None = None,
    limits: Limits = Limits(),  # noqa: B008
    observers: Iterable[Observer] = (),
    history: bool = True,
    progress: Progress | None = None,
) -> Run:
    """The run of a model on inputs by name.

    meaning: what operators compute, the ieee interpretation where nothing is said. allocation: simple or arena (space
    is used again). max_memory: the greatest N in bytes. history: whether the run keeps all its states.
    Raises ModelError for inputs that do not fit and stored values that cannot be read, Unsupported for operators
    without meaning, both before anything runs. A run that gets stuck is a Run.
    """
    if allocation not in ("simple", "arena"):
        raise ValueError(f"there is no allocation {allocation!r}: simple or arena")
    if meaning is None:
        from ..operators.compiled import ieee

        check_supported(model)
        meaning = ieee.apply
    wrong = check_well_formed(model)
    if wrong is not None:
        return Run(model, (), (), {}, wrong)
    given = bound_inputs(model, inputs)
    state = initial(model, given, schedule, meaning, reuse=allocation == "arena", budget=max_memory)
    if isinstance(state, Stuck):
        return Run(model, (), (), {}, state)
    ending = evaluate(state, limits, observers, history=history, progress=progress)
    refused = ending.stuck is not None and ending.stuck.rule == AS_DECLARED
    return Run(model, ending.states, ending.choices, {} if refused else _outputs(ending), ending.stuck)


def _outputs(ending: Ending) -> Mapping[str, Value]:
    return {name: value for name, value in outputs(ending.states[-1]) if value is not None}
