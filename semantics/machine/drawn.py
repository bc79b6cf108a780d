"""The nodes of a run that have drawn their results, so that another run may give others."""

from __future__ import annotations

from typing import Final

from sonnx.spec.terminal import few

from ..model.schemas import draws
from ..operators.application import Stuck
from .phases import Apply, Phase, Select
from .state import State

_SHOWN: Final = 5


class DrawnObserver:
    """The observer that notes them. drawn: operators with the paths of nodes, in the order of the run."""

    def __init__(self) -> None:
        self.drawn: dict[str, str] = {}
        self._path = ""

    def begun(self, state: State) -> None:
        """Nothing is to be noted yet."""

    def ended(self, state: State) -> None:
        """All is noted."""

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """Notes a node whose operator draws, and left an element open."""
        if isinstance(phase, Select):
            self._path = phase.path
        elif isinstance(phase, Apply) and phase.application is not None:
            name = phase.application.op_type
            if any(mask is not None and mask.any() for mask in phase.free) and draws(name, phase.application.version):
                self.drawn.setdefault(self._path, name)

    def lines(self, seed: int) -> list[str]:
        """The lines that a reader of the results has to know, if any."""
        if not self.drawn:
            return []
        shown = few([f"{name} ({path})" for path, name in self.drawn.items()], _SHOWN)
        return [
            f"random results drawn from seed {seed}: {shown}; ONNX allows others, whatever the attribute seed says"
            " (--draws draws others)"
        ]
