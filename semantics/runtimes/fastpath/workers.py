"""Threads that share the work of one kernel: NumPy and BLAS let others run while they compute.

There are as many as SONNX_THREADS says, or else OMP_NUM_THREADS, or else processors. They share copies and elementwise
steps on much data; products of matrices are shared by the threads that BLAS has of its own, as many as its variables
say (OPENBLAS_NUM_THREADS, MKL_NUM_THREADS, OMP_NUM_THREADS): those start in a microsecond or two, Python's in thirty.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count, pairwise
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Final

import numpy as np

_BUFFER: Final = 1024
_BYTES: Final = 2 << 20
"""Bytes of elementwise work that are worth a thread."""
Work = Callable[[int, int], None]
"""Does one part of some work: its number, and which of the workers does it (for memory of its own)."""


def threads_of(environment: Mapping[str, str], processors: int) -> int:
    """The number of threads that work."""
    stated = (environment.get(name, "") for name in ("SONNX_THREADS", "OMP_NUM_THREADS"))
    return next((int(it) for it in stated if it.isdecimal() and int(it)), processors)


_PROCESSORS: Final = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
THREADS: Final = threads_of(os.environ, _PROCESSORS)


@contextmanager
def for_rows() -> Iterator[None]:
    """NumPy without warnings, and with small buffers.

    It copies an operand that is repeated along rows when they are shorter than half a buffer, and reads it in place
    beside longer ones, at twice the speed.
    """
    with np.errstate(all="ignore"):
        before = np.setbufsize(_BUFFER)
        try:
            yield
        finally:
            np.setbufsize(before)


class _Job:
    """Parts of work that are taken one by one until none is left."""

    __slots__ = ("_done", "_errors", "_finished", "_next", "_parts", "_work")

    def __init__(self, parts: int, work: Work) -> None:
        self._parts, self._work = parts, work
        self._next, self._finished = count(), count(1)  # whose steps no thread interrupts
        self._errors: list[BaseException] = []
        self._done = Lock()
        self._done.acquire()

    def help(self, worker: int) -> None:
        """Does parts while there are any."""
        while (part := next(self._next)) < self._parts:
            try:
                self._work(part, worker)
            except BaseException as error:  # raised where the work was asked for
                self._errors.append(error)
            if next(self._finished) == self._parts:
                self._done.release()

    def wait(self) -> None:
        """Returns when all parts are done. Raises what one of them raised."""
        self._done.acquire()
        if self._errors:
            raise self._errors[0]


class _Workers:
    """Threads that are started when they are first needed, once more in a process that was forked."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forgets all threads."""
        self._lock = Lock()
        self._queue: SimpleQueue[tuple[_Job, int]] = SimpleQueue()
        self._started = 0

    def ask(self, job: _Job, helpers: int) -> None:
        """Has the job done by so many threads more; those that come too late find nothing left."""
        if self._started < helpers:
            with self._lock:
                while self._started < helpers:
                    Thread(target=self._serve, daemon=True, name="sonnx").start()
                    self._started += 1
        for worker in range(1, helpers + 1):
            self._queue.put((job, worker))

    def _serve(self) -> None:
        with for_rows():
            while True:
                job, worker = self._queue.get()
                job.help(worker)


_WORKERS: Final = _Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKERS.begin)


def shared(parts: int, work: Work) -> None:
    """Does `parts` parts of some work, in any order, several at a time. Raises what one of them raises."""
    helpers = min(THREADS, parts) - 1
    if helpers <= 0:
        alone(parts, work)
        return
    job = _Job(parts, work)
    _WORKERS.ask(job, helpers)
    job.help(0)
    job.wait()


def alone(parts: int, work: Work) -> None:
    """Does the parts one after the other."""
    for part in range(parts):
        work(part, 0)


def byte_parts(size: int, most: int | None = None) -> int:
    """Into how many parts copies or elementwise steps on so many bytes are cut: as many for each thread, and so many
    that no part has many more than `most` bytes."""
    threads = min(THREADS, max(1, size // _BYTES))
    return threads if most is None else -(-max(1, size // most) // threads) * threads


def cuts(count: int, parts: int) -> list[slice]:
    """`count` things as that many slices of about the same size, without empty ones."""
    bounds = [count * k // max(parts, 1) for k in range(max(parts, 1) + 1)]
    return [slice(a, b) for a, b in pairwise(bounds) if a < b]
