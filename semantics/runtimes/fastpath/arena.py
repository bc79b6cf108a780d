"""Memory that runs use again: planned from what one run asked for, valid for inputs of the same shapes.

A run that is recorded notes for each step what memory it asked for, and for each slot in whose memory its value lies
(views included). From that follows when each buffer is in use; buffers whose times do not meet share bytes. An output
of a kernel that may work in place gets the bytes of an input of which nothing is needed any more. What becomes an
output of the graph is in nobody's arena: it belongs to the caller. A great one gets the memory of an earlier run's when
the caller has let that go, since the system takes longer to give new memory than to copy as much.

The plan is trusted for values of the recorded shapes, not for where values lie: a value that turns out to lie in
another buffer than planned is copied (`settled`), and memory that is asked for beyond the plan is new memory.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from mmap import ACCESS_COPY, mmap
from sys import getrefcount
from time import perf_counter
from typing import Any, Final

import numpy as np

from ...errors import InternalError
from ...machine.allocation.plan import AllocationPlan, Lifetime
from ...machine.allocation.plan import arena as placed
from ...model.values import Array, Value
from .branches import Branch, Section, sections
from .compiled import Compiled, rebuilt, root, roots
from .repeating import Ready

Shape = tuple[int, ...]
DType = np.dtype[Any]

NEW, LEAVING = -1, -2
"""The buffers of memory that is not planned, and of memory that a caller gets."""
RECYCLED_BYTES: Final = 128 << 10
"""From so many bytes on the memory that a caller gets is given once more; the system is not asked for less."""


@dataclass(frozen=True, slots=True)
class Request:
    """Memory that a step asked for. buffer: where it is to be found, NEW or LEAVING for memory of its own."""

    shape: Shape
    dtype: DType
    buffer: int

    @property
    def bytes(self) -> int:
        """The size."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """For each step what it will ask for; which request each output is, None for another; and the buffers in which each
    output may lie. offsets: of the buffers in an arena of `total` bytes. sections: the order of the steps."""

    requests: tuple[tuple[Request, ...], ...]
    whole: tuple[tuple[int | None, ...], ...]
    allowed: tuple[tuple[frozenset[int], ...], ...]
    offsets: tuple[int, ...]
    total: int
    sections: tuple[Section, ...]


# ---- Recording --------------------------------------------------------------------------------


class Recorder:
    """The requests of a run, where its values lie, and how many seconds the steps take; filled step by step."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.requests: list[list[Request]] = []
        self.whole: list[tuple[int | None, ...]] = []
        self.owners: dict[int, frozenset[int]] = {}
        self.sizes: list[int] = []
        self.born: list[int] = []
        self.seconds: list[float] = []
        self._arrays: list[Array] = []
        self._began = 0.0

    def begin(self) -> None:
        """A step begins."""
        self.requests.append([])
        self._arrays = []
        self._began = perf_counter()

    def allocate(self, shape: Shape, dtype: DType) -> Array:
        """New memory, noted."""
        made: Array = np.empty(shape, dtype)
        planned = made.nbytes > 0 and not made.dtype.hasobject
        self.requests[-1].append(Request(made.shape, made.dtype, len(self.sizes) if planned else NEW))
        self._arrays.append(made)
        if planned:
            self.sizes.append(made.nbytes)
            self.born.append(len(self.requests) - 1)
        return made

    def end(self, reads: Iterable[tuple[int, Value | None]], writes: Iterable[tuple[int, Value | None]]) -> None:
        """A step has ended with these slots and values."""
        self.seconds.append(perf_counter() - self._began)
        asked, step = self._arrays, self.requests[-1]
        known = {id(array): frozenset({request.buffer}) for array, request in zip(asked, step, strict=True)}
        for slot, value in reads:
            owned = self.owners.get(slot, frozenset())
            for it in roots(value) if owned else ():
                known[id(it)] = known.get(id(it), frozenset()) | owned
        whole: list[int | None] = []
        for slot, value in writes:
            whole.append(next((k for k, array in enumerate(asked) if array is value), None))
            self.owners[slot] = frozenset[int]().union(*(known.get(id(it), ()) for it in roots(value))) - {NEW}
        self.whole.append(tuple(whole))
        self._arrays = []


# ---- Planning ---------------------------------------------------------------------------------


def planned(record: Recorder) -> ArenaPlan:
    """The plan for runs like the recorded one."""
    compiled = record.compiled
    count, end = len(record.sizes), len(compiled.steps)
    last = list(record.born)
    for slot, owned in record.owners.items():
        for buffer in owned:
            last[buffer] = max(last[buffer], compiled.last_reads[slot])
    same = list(range(count))
    order = sections(compiled, record.seconds)
    branch_of = {number: branch for it in order if len(it) > 1 for branch in it for number in branch}
    _share(record, last, same, branch_of)
    escaping = frozenset(b for b in range(count) if last[same[b]] >= end)
    alive = [
        Lifetime(b, record.sizes[b], record.born[b], last[b])
        for b in range(count)
        if same[b] == b and b not in escaping
    ]
    where, total = _placed(alive, order, branch_of)
    home = {b: LEAVING if b in escaping else same[b] for b in range(count)}
    requests = tuple(
        tuple(Request(it.shape, it.dtype, home.get(it.buffer, NEW)) for it in row) for row in record.requests
    )
    allowed = tuple(
        tuple(frozenset(same[b] for b in record.owners.get(slot, ())) for slot in step.writes)
        for step in compiled.steps
    )
    offsets = tuple(where.get(b, 0) for b in range(count))
    return ArenaPlan(requests, tuple(record.whole), allowed, offsets, total, order)


def _placed(
    alive: Sequence[Lifetime], order: Sequence[Section], branch_of: Mapping[int, Branch]
) -> tuple[dict[int, int], int]:
    """The offsets of buffers, and the bytes in all. Branches of a section have no bytes in common: what lives within
    one lies together, for as long as the section lasts, as does what one of them gives to others.
    """
    inner: dict[Branch, list[Lifetime]] = {branch: [] for it in order if len(it) > 1 for branch in it}
    whole = {branch: (min(map(min, it)), max(map(max, it))) for it in order for branch in it}
    outer: list[Lifetime] = []
    for it in alive:
        first, last = branch_of.get(it.first), branch_of.get(it.last)
        if first is not None and first is last:
            inner[first].append(it)
            continue
        begin = it.first if first is None else whole[first][0]
        outer.append(Lifetime(it.tensor, it.size, begin, it.last if last is None else whole[last][1]))
    plans = {branch: _plan(lives) for branch, lives in inner.items() if lives}
    names = {branch: -1 - k for k, branch in enumerate(plans)}
    outer += [Lifetime(names[branch], plan.total, *whole[branch]) for branch, plan in plans.items()]
    plan = _plan(outer)
    where = {it.tensor: it.offset for it in plan.allocations}
    for branch, within in plans.items():
        where |= {it.tensor: where[names[branch]] + it.offset for it in within.allocations}
    return where, plan.total


def _plan(alive: Sequence[Lifetime]) -> AllocationPlan:
    plan = placed(alive)
    if not isinstance(plan, AllocationPlan):
        raise InternalError("an arena without a limit was refused")
    return plan


def _share(record: Recorder, last: list[int], same: list[int], branch_of: Mapping[int, Branch]) -> None:
    """Lets outputs of kernels that work in place have the buffer of an input that ends there, and is read by no branch
    beside."""
    steps, end = record.compiled.steps, len(record.compiled.steps)
    exact: dict[int, Request] = {}
    for number, step in enumerate(steps):
        asked = record.requests[number]
        if step.in_place:
            taken: set[int] = set()
            for request in (asked[k] for k in record.whole[number] if k is not None):
                if request.buffer == NEW or last[request.buffer] >= end:
                    continue
                for slot in step.reads:
                    there = exact.get(slot)
                    if there is None or (there.shape, there.dtype) != (request.shape, request.dtype):
                        continue
                    buffer = same[there.buffer]
                    others = (s for s in step.reads if s != slot)
                    beside = any(same[b] == buffer for s in others for b in record.owners.get(s, ()))
                    near = branch_of.get(record.born[buffer]) is branch_of.get(number) or number not in branch_of
                    if last[buffer] == number and buffer not in taken and not beside and near:
                        same[request.buffer] = buffer
                        last[buffer] = last[request.buffer]
                        taken.add(buffer)
                        break
        for slot, k in zip(step.writes, record.whole[number], strict=True):
            if k is not None and asked[k].buffer != NEW:
                exact[slot] = asked[k]


# ---- Running ----------------------------------------------------------------------------------


Views = tuple[tuple[Shape, DType, Array | None], ...]


class Given:
    """Gives a step the memory that was planned for it. ready: what it does for these inputs, and writes, once that is
    known."""

    __slots__ = ("inputs", "next", "ready", "views", "writes")

    def __init__(self, views: Views) -> None:
        self.views = views
        self.next = 0
        self.inputs: Sequence[Value | None] = ()
        self.ready: Ready | None = None
        self.writes: Sequence[tuple[int, Value | None]] = ()

    def __call__(self, shape: Shape, dtype: DType) -> Array:
        """The next memory of the step; new memory for what was not planned."""
        number = self.next
        self.next = number + 1
        if number < len(self.views):
            wanted, of, view = self.views[number]
            if view is not None and shape == wanted and dtype == of:
                return view
        return np.empty(shape, dtype)


@dataclass(slots=True)
class Leaving:
    """Memory that a caller gets: what a step asks for by its request of this number. It is given once more when nobody
    has it any longer. memories: the last two, since a caller may have one result until there is the next."""

    step: int
    number: int
    request: Request
    memories: list[Array]

    def free(self) -> Array:
        """Memory that nobody has; new where all is in use."""
        known = self.memories
        at = next((k for k in range(len(known)) if _references(known, k) <= _references(_UNSHARED, 0)), None)
        if at is None:
            at, self.memories = 0, [np.empty(self.request.bytes, np.uint8), *known[:1]]
        return self.memories[at]


def _references(memories: list[Array], at: int) -> int:
    """How often memory is referred to; each array that shows it does so, or refers to one that does."""
    return getrefcount(memories[at])


_UNSHARED: Final[list[Array]] = [np.empty(0, np.uint8)]
"""Memory that no caller has; how often it is referred to is counted each time: an interpreter may change its way."""


class Arena:
    """The bytes of a plan, for one run at a time. given: what each step gets; expected: the arrays that its outputs
    should be."""

    __slots__ = ("_buffers", "_leaving", "expected", "given", "plan")

    def __init__(self, plan: ArenaPlan) -> None:
        self.plan = plan
        memory = mmap(-1, plan.total, access=ACCESS_COPY) if plan.total else None  # not shared with forks
        self._buffers: dict[int, int] = {}
        self.given = [Given(tuple(self._view(request, memory) for request in row)) for row in plan.requests]
        self.expected = [
            tuple(None if k is None else it.views[k][2] for k in whole)
            for it, whole in zip(self.given, plan.whole, strict=True)
        ]
        self._leaving = [
            Leaving(step, number, request, [])
            for step, row in enumerate(plan.requests)
            for number, request in enumerate(row)
            if request.buffer == LEAVING and request.bytes >= RECYCLED_BYTES
        ]

    def begin(self) -> None:
        """A run begins: there is memory for what the caller gets."""
        for it in self._leaving:
            self._show(it, np.ndarray(it.request.shape, it.request.dtype, it.free()))

    def end(self) -> None:
        """A run has ended: what the caller gets is his alone."""
        for it in self._leaving:
            self._show(it, None)

    def _show(self, it: Leaving, view: Array | None) -> None:
        given = self.given[it.step]
        row = list(given.views)
        row[it.number] = (it.request.shape, it.request.dtype, view)
        given.views = tuple(row)
        self.expected[it.step] = tuple(None if k is None else row[k][2] for k in self.plan.whole[it.step])

    def _view(self, request: Request, memory: mmap | None) -> tuple[Shape, DType, Array | None]:
        if request.buffer in (NEW, LEAVING) or memory is None:
            return request.shape, request.dtype, None
        # Its base is no array, so that views of it have it as their base and not the whole arena.
        view: Array = np.ndarray(request.shape, request.dtype, memory, self.plan.offsets[request.buffer])
        self._buffers[id(view)] = request.buffer
        return request.shape, request.dtype, view

    def lasts(self, value: Value | None) -> bool:
        """True where a value lies in the arena."""
        return isinstance(value, np.ndarray) and id(root(value)) in self._buffers

    def settled(self, value: Value | None, allowed: frozenset[int]) -> Value | None:
        """The value, copied where it lies in a buffer that is planned for others."""
        if type(value) is np.ndarray:
            base = value.base
            if base is None:
                return value
            buffer = self._buffers.get(id(root(value)))
            return value if buffer is None or buffer in allowed else value.copy()
        if value is None or all(self._buffers.get(id(it), NEW) in (NEW, *allowed) for it in roots(value)):
            return value
        return rebuilt(value, np.copy)


class Pool:
    """The arenas of a plan: as many as there were runs at one time."""

    __slots__ = ("free", "plan")

    def __init__(self, plan: ArenaPlan) -> None:
        self.plan = plan
        self.free: deque[Arena] = deque()

    def taken(self) -> Arena:
        """An arena for one run; whoever took it puts it back into `free`."""
        try:
            return self.free.pop()
        except IndexError:
            return Arena(self.plan)
