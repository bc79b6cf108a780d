"""States in which a tensor has another value, at a place of its own."""

from __future__ import annotations

from dataclasses import replace

from ...machine.placing import place
from ...machine.state import Frame, State, advanced_frame
from ...model.values import Value
from ...resources.budget import OutOfBudget
from ...resources.persistent import put
from .names import Instance, frame_of
from .refused import Refused


def with_value(state: State, instance: Instance, value: Value) -> State:
    """The state in which a tensor of a frame has another value. Raises Refused where there is no such frame."""
    target = frame_of(state, instance.tensor)
    placed = place(state.store, value, "an edit")
    if isinstance(placed, OutOfBudget):
        raise Refused(f"the memory would have {placed.needed} bytes, the limit is {placed.budget}")
    if target is None:
        raise Refused(f"{instance.path} is in no frame here")
    store, new = placed

    def rebuilt(frame: Frame) -> Frame:
        if frame is target:
            return advanced_frame(frame, put(frame.table, instance.tensor, new), frame.agenda)
        return frame if frame.below is None else replace(frame, below=rebuilt(frame.below))

    return State(state.program, store, rebuilt(state.frame), state.schedule, state.stored, state.steps)
