"""What a run tells an observer, step by step. The machine prints nothing."""

from __future__ import annotations

from typing import Protocol

from ..operators.application import Stuck
from .phases import Phase
from .state import State


class Observer(Protocol):
    """Whoever follows a run. Whatever it does, it changes nothing in the run."""

    def begun(self, state: State) -> None:
        """The run begins in this state."""

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """A phase of the transition from this state is over; Stuck when it could not be."""

    def ended(self, state: State) -> None:
        """The run ends in this state."""
