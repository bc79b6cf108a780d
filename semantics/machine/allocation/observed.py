"""The regions that a run uses, and for how long: the plan that it followed, to be checked and drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import InternalError
from ...model.graph import TensorId
from ...operators.application import Stuck
from ...resources.persistent import items
from ..memory import Region
from ..phases import Advance, Again, Leave, Phase, Read, Select, Write
from ..state import Kept, State, region_of
from .plan import ALIGNMENT, BEFORE, Allocation, AllocationPlan, Lifetime, Problem, check, lower_bound


@dataclass(slots=True)
class _Live:
    tensor: TensorId
    place: Region
    first: int
    last: int


class AllocationObserver:
    """The observer that notes every value that is placed: its bytes, the step that wrote it, the last one to read it.

    A value that stays to the end is live to the end: initializers and outputs of the main graph.
    """

    def __init__(self) -> None:
        self._all: list[_Live] = []
        self._at: dict[int, _Live] = {}
        self._select: Select | None = None
        self._stays: set[int] = set()
        self._peak = 0

    # ---- Events -------------------------------------------------------------------------------

    def begun(self, state: State) -> None:
        """Inputs and initializers are there."""
        self._stays = {where.offset for table in state.stored for _, where in items(table)}
        for table in (state.frame.table, *state.stored[1:]):
            for t, where in items(table):
                self._note(t, where, BEFORE)

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """Reads make values live longer, writes bring new ones, an advance may free some."""
        match phase:
            case Select():
                self._select = phase
                if isinstance(phase.change, (Again, Leave)):
                    self._use_kept(state, state.frame.kept)
            case Read(tensors=tensors):
                reads = () if self._select is None else state.program.reads[self._select.node]
                for t in (*tensors, *reads):
                    where = None if t is None else region_of(state, t)
                    if where is not None:
                        self._use(where, state.steps)
            case Write(tensors=tensors, places=places):
                for t, where in zip(tensors, places, strict=True):
                    self._note(t, where, state.steps)
            case Advance(released=released):
                for _, where in released:
                    self._at.pop(where.offset, None)
            case _:
                pass

    def ended(self, state: State) -> None:
        """The outputs of the main graph stay."""
        self._peak = state.store.space.peak
        for t in state.program.model.graphs[0].outputs:
            where = region_of(state, t) if state.frame.holder is None else None
            if where is not None:
                self._use(where, state.steps)
        for offset in self._stays:
            if offset in self._at:
                self._at[offset].last = state.steps

    def _note(self, t: TensorId, where: Region, step: int) -> None:
        if where.length:
            live = _Live(t, where, step, step)
            self._all.append(live)
            self._at[where.offset] = live

    def _use(self, where: Region, step: int) -> None:
        user = self._at.get(where.offset)
        if user is not None and not where.freed:
            user.last = max(user.last, step)

    def _use_kept(self, state: State, kept: Kept | None) -> None:
        if self._select is None or not isinstance(self._select.change, Leave):
            return
        while kept is not None:
            for where in kept.places:
                if where is not None:
                    self._use(where, state.steps)
            kept = kept.before

    # ---- What was observed --------------------------------------------------------------------

    def plan(self) -> AllocationPlan:
        """The plan that the run followed."""
        placed = tuple(Allocation(it.tensor, it.place.offset, it.place.length, it.first, it.last) for it in self._all)
        return AllocationPlan(placed, self._peak, ALIGNMENT)

    def lower_bound(self) -> int:
        """The largest sum of the bytes that were live at one step: no plan can do with less."""
        return lower_bound(Lifetime(it.tensor, it.place.length, it.first, it.last) for it in self._all)

    def problems(self) -> tuple[Problem, ...]:
        """The faults of the plan; the machine has a defect when there is one."""
        return check(self.plan())

    def confirm(self) -> None:
        """Raises InternalError when two live values had a byte in common, or one lay outside of M."""
        problems = self.problems()
        if problems:
            raise InternalError(f"the machine placed values wrongly: {problems[0].rule}: {problems[0].message}")


def names(state: State) -> Mapping[TensorId, str]:
    """The names of all tensors."""
    return dict(enumerate(tensor.name for tensor in state.program.model.tensors))
