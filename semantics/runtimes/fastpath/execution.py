"""Running a compiled graph: with new memory, recorded, or in an arena."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Final

import numpy as np
from sonnx.spec.terminal import one_line

from ...errors import InternalError, ModelError, Unsupported
from ...model.values import Map, Optional, Value
from ...model.values import Sequence as Items
from .arena import Arena, Recorder
from .branches import Branch, Section
from .compiled import UNUSED, Compiled, Step
from .kernel import KernelError
from .repeating import Repeatable, run
from .sites import check_types
from .workers import shared


class RunError(KernelError):
    """A run cannot go on: `where` names the node and its operator, `requirement` says what is not met."""

    def __init__(self, where: str, requirement: str) -> None:
        super().__init__(f"{where}: {requirement}")
        self.where = where
        self.requirement = requirement


TOLD: Final = (RunError, Unsupported, ModelError, InternalError)
"""Errors that are raised as they are: raised from themselves they would hold all that the run has in memory."""
Slots = list[Value | None]


def run_plainly(compiled: Compiled, slots: Slots) -> None:
    """Runs the steps on these slots, every output in new memory. Raises RunError, Unsupported, InternalError."""
    empty = np.empty
    for step in compiled.steps:
        try:
            results = step.compute([slots[it] for it in step.reads], step.memory or empty)
        except TOLD:
            raise
        except Exception as error:
            raise failure(step.where, error) from error
        for slot, value in zip(step.writes, results, strict=False):
            slots[slot] = value
        for slot in step.dying:
            slots[slot] = None


def run_recorded(compiled: Compiled, slots: Slots) -> Recorder:
    """As `run_plainly`, with what the steps ask for noted; the types of all inputs are checked."""
    recorder = Recorder(compiled)
    for step in compiled.steps:
        recorder.begin()
        given = [slots[it] for it in step.reads]
        try:
            check_types(step.schema, given)
            results = step.compute(given, step.memory or recorder.allocate)
        except TOLD:
            raise
        except Exception as error:
            raise failure(step.where, error) from error
        _check_outputs(step, results)
        written = tuple(zip(step.writes, results, strict=False))
        recorder.end(zip(step.reads, given, strict=True), written)
        for slot, value in written:
            slots[slot] = value
        for slot in step.dying:
            slots[slot] = None
    return recorder


def run_planned(compiled: Compiled, slots: Slots, arena: Arena) -> None:
    """As `run_plainly`, in the memory of an arena; branches at the same time."""
    for section in arena.plan.sections:
        if len(section) == 1:
            _run_branch(compiled, slots, arena, section[0], True)
        else:
            _run_branches(compiled, slots, arena, section)


def _run_branches(compiled: Compiled, slots: Slots, arena: Arena, section: Section) -> None:
    failed: dict[int, Exception] = {}

    def work(branch: int, _worker: int) -> None:
        for number in section[branch]:
            try:
                _run_branch(compiled, slots, arena, (number,), False)
            except Exception as error:  # the one that a run without branches meets is raised below
                failed[number] = error
                return

    shared(len(section), work)
    try:
        for number in sorted(failed):
            raise failed[number]
    finally:  # as the error holds this frame
        failed.clear()
    for branch in section:
        for number in branch:
            for slot in compiled.steps[number].dying:
                slots[slot] = None


def _run_branch(compiled: Compiled, slots: Slots, arena: Arena, numbers: Branch, dropping: bool) -> None:
    """Runs steps one after the other. dropping: slots that nobody reads any more are emptied."""
    for number in numbers:
        step, given = compiled.steps[number], arena.given[number]
        inputs = [slots[it] for it in step.reads]
        try:
            if given.ready is not None and all(map(is_, inputs, given.inputs)):
                run(given.ready)
                writes = given.writes
            else:
                writes = _first(compiled, step, inputs, arena, number)
        except TOLD:
            raise
        except Exception as error:
            raise failure(step.where, error) from error
        for slot, value in writes:
            slots[slot] = value
        if dropping:
            for slot in step.dying:
                slots[slot] = None


def _first(
    compiled: Compiled, step: Step, inputs: list[Value | None], arena: Arena, number: int
) -> Sequence[tuple[int, Value | None]]:
    """The slots and values that a step writes. What it does is kept, and repeated, where all that it reads and writes
    is in the arena or known: then it lies there in each run.
    """
    given = arena.given[number]
    given.next, given.ready = 0, None
    ready = None
    if step.memory is None and isinstance(step.compute, Repeatable):
        ready = step.compute.ready(inputs, given)
        run(ready)
        results = ready.outputs
    else:
        results = step.compute(inputs, step.memory or given)
    rows = zip(step.writes, results, arena.expected[number], arena.plan.allowed[number], strict=False)
    writes = [(slot, value if value is whole else arena.settled(value, may)) for slot, value, whole, may in rows]
    fixed = given.next == len(given.views) and all(arena.lasts(view) for _, _, view in given.views)
    if ready is not None and ready.again and fixed:
        known = zip(inputs, step.reads, strict=True)
        stays = all(value is it for (_, value), it in zip(writes, results, strict=False))
        if stays and all(it is compiled.start[slot] or arena.lasts(it) for it, slot in known):
            given.ready, given.inputs, given.writes = ready, inputs, writes
    return writes


def _check_outputs(step: Step, results: Sequence[Value | None]) -> None:
    for position, slot in enumerate(step.writes):
        value = results[position] if position < len(results) else None
        if slot > UNUSED and not isinstance(value, (np.ndarray, Items, Optional, Map)):
            raise InternalError(f"{step.where}: the kernel gives no output {position}, but {type(value).__name__}")


def failure(where: str, error: Exception) -> Exception:
    """The error for an exception of a kernel that is none of `TOLD`; where: what messages call its node."""
    match error:
        case KernelError():
            return RunError(where, one_line(str(error)))
        case MemoryError():
            return RunError(where, "it needs more memory than there is")
        case _:
            return InternalError(f"{where}: the kernel failed with {type(error).__name__}: {error}")
