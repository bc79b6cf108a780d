"""Plans: the instructions that an application of a definition compiles to, and their execution.

A frame is a list of arrays, the inputs first. While a plan is built its instructions run on the first application, so
that shapes that depend on data are known; a later application replays them and gives up (`Changed`) when such data
differ. Blocks of an equation run on threads: which thread computes an element is invisible in its bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np

from .elements.ieee import Algebra
from .terms import Array, Axis, Tensor

Frame = list[Array]
Instruction = Callable[[Frame], None]
Task = Callable[[Frame], None]

_HEAVY: Final = 1 << 18
"""Operations on elements from which threads pay."""
ADDRESSABLE: Final = 1 << 47
"""The bytes of an address space: with 64 bits, 47 are those of a process."""


class Changed(Exception):  # noqa: N818 - a signal
    """Data on which the plan depends are not those for which it was made."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The index of a recurrence while its body is lowered: the axis, the slot of the frame that holds its value."""

    axis: Axis
    slot: int
    low: int
    high: int


@dataclass(slots=True)
class Builder:
    """A plan in the making. rule: the operator and version in messages. clock: in the body of a recurrence.

    budget: the bytes that a tensor may take, None for any number. largest: the bytes that the largest one takes.
    """

    algebra: Algebra
    rule: str
    frame: Frame
    instructions: list[Instruction] = field(default_factory=list)
    clock: Clock | None = None
    budget: int | None = None
    largest: int = 0

    def claim(self, size: int) -> None:
        """Notes the bytes of a tensor that is computed. Raises MemoryError when they are more than the budget."""
        within_budget(size, self.budget)
        self.largest = max(self.largest, size)

    def slot(self) -> int:
        """A new slot of the frame."""
        self.frame.append(None)  # type: ignore[arg-type]
        return len(self.frame) - 1

    def emit(self, instruction: Instruction) -> None:
        """Appends an instruction, and runs it on the data of this application."""
        instruction(self.frame)
        self.instructions.append(instruction)

    def data(self, tensor: Tensor) -> Array:
        """The elements of a tensor; the plan holds only for applications in which they are the same."""
        layout = tensor.layout
        known = self.algebra.known
        found = known(strided(self.frame[layout.slot], tensor.shape, layout.offset, layout.strides).copy())

        def same(frame: Frame) -> None:
            now = known(strided(frame[layout.slot], found.shape, layout.offset, layout.strides))
            if not _same_bits(now, found):
                raise Changed

        self.emit(same)
        return found


def _same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays of one type and shape hold the same data: a NaN is itself, and 0.0 is not -0.0."""
    return np.array_equal(a, b) if a.dtype.hasobject else a.tobytes() == b.tobytes()


def within_budget(size: int, budget: int | None) -> None:
    """Raises MemoryError when a tensor of `size` bytes is more than the budget, or than any machine can address."""
    if size >= ADDRESSABLE or (budget is not None and size > budget):
        raise MemoryError(f"a tensor of {size} bytes")


def strided(base: Array, shape: tuple[int, ...], offset: int, strides: Sequence[int]) -> Array:
    """A read-only view of a contiguous array; offset and strides count elements."""
    dtype = base.dtype
    size = dtype.itemsize
    if dtype.hasobject:
        flat = base.reshape(-1)[offset:] if base.size else base.reshape(-1)
        return np.lib.stride_tricks.as_strided(flat, shape, [s * size for s in strides], writeable=False)
    buffer = base.reshape(-1).view(np.uint8) if dtype.kind == "V" or dtype.num > 23 else base
    return np.ndarray(shape, dtype, buffer, offset * size, [s * size for s in strides])


@cache
def threads() -> int:
    """How many threads compute."""
    return max(1, min(len(os.sched_getaffinity(0)), 16))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, threads() - 1), thread_name_prefix="sonnx-ieee")


def run_tasks(tasks: Sequence[Task], frame: Frame, work: int) -> None:
    """Runs tasks that write to different places, on threads when that pays. The first error is raised."""
    if len(tasks) == 1 or work < _HEAVY or threads() == 1:
        for task in tasks:
            task(frame)
        return
    queue = _Queue(tasks)
    futures: list[Future[None]] = [_pool().submit(queue.drain, frame) for _ in range(threads() - 1)]
    try:
        queue.drain(frame)
    finally:
        for future in futures:
            future.result()


class _Queue:
    """Tasks that several threads take from, in order."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._left = list(reversed(tasks))

    def drain(self, frame: Frame) -> None:
        """Takes and runs tasks until none is left; an error drops the rest."""
        with np.errstate(all="ignore"):
            while True:
                try:
                    task = self._left.pop()
                except IndexError:
                    return
                try:
                    task(frame)
                except BaseException:
                    self._left.clear()
                    raise
