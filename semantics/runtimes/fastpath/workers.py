"""Threads that share the work of one kernel: NumPy and BLAS let others run while they compute.

There are as many as SONNX_THREADS says, or else OMP_NUM_THREADS, or else processors. They share copies, elementwise
steps and products of matrices on much data.

BLAS has threads too, as many as its variables say (OPENBLAS_NUM_THREADS, MKL_NUM_THREADS, OMP_NUM_THREADS). They start
in a microsecond or two, Python's in thirty. But what is done before and after a product is not theirs, and they wait
for each other, and for the next product, without sleeping: beside other work on the machine a small product takes a
hundred times as long. So OpenBLAS is held to one thread while a session runs, for the whole process, and each of our
threads asks for a part of a great product; but for recurrent layers, which wait for thousands of products one after the
other. Where NumPy has another BLAS, that one's threads share products.
"""

from __future__ import annotations

import ctypes
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
_TERMS: Final = 4 << 20
"""Multiplications in products of matrices that are worth a thread."""
_WOKEN_BYTES: Final = 1 << 20
_WOKEN_TERMS: Final = 3 << 20
"""What is done of either until another thread is awake."""
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
        del self._work  # and the memory that it holds, which helpers that come too late would keep
        try:
            if self._errors:
                raise self._errors[0]
        finally:  # what was raised holds this frame: it would hold itself, and all memory of the run
            self._errors.clear()


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
                del job


_WORKERS: Final = _Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKERS.begin)


def shared(parts: int, work: Work, workers: int | None = None) -> None:
    """Does `parts` parts of some work, in any order, several at a time. Raises what one of them raises.

    workers: how many there are at most, if that is less than the threads.
    """
    helpers = min(THREADS if workers is None else workers, parts) - 1
    if helpers <= 0:
        alone(parts, work)
        return
    job = _Job(parts, work)
    _WORKERS.ask(job, helpers)
    job.help(0)
    job.wait()


# ---- Products of matrices ---------------------------------------------------------------------


class _Blas:
    """The threads of the OpenBLAS that NumPy brings, or was built with."""

    def __init__(self) -> None:
        self.functions = _openblas()
        self.begin()

    def begin(self) -> None:
        """Forgets all who hold it."""
        self.lock, self.before = Lock(), 0
        self.users: set[object] = set()

    def forked(self) -> None:
        """As before those held it that a forked process lacks."""
        if self.functions is not None and self.users:
            self.functions[1](self.before)
        self.begin()


def _openblas() -> tuple[Callable[[], int], Callable[[int], object]] | None:
    """The functions of OpenBLAS that give and set the number of its threads; None where NumPy has another BLAS."""
    try:  # the module that is linked to BLAS: a symbol is looked up in the libraries of a module too
        library = ctypes.PyDLL(np.linalg._umath_linalg.__file__)
    except (AttributeError, OSError):
        return None
    for name in ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads"):
        try:
            get, set_to = (getattr(library, name.format(verb)) for verb in ("get", "set"))
        except AttributeError:
            continue
        set_to.restype = None
        return get, set_to
    return None


_BLAS: Final = _Blas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BLAS.forked)


@contextmanager
def with_one_thread_of_blas() -> Iterator[None]:
    """OpenBLAS computes alone until all who want that have ended."""
    if _BLAS.functions is None:
        yield
        return
    (get, set_to), user = _BLAS.functions, object()
    try:
        with _BLAS.lock:
            first = not _BLAS.users
            if first:
                _BLAS.before = get()
            _BLAS.users.add(user)
            if first:
                set_to(1)
        yield
    finally:
        with _BLAS.lock:
            if user in _BLAS.users:  # not where it was interrupted before, nor in a process that was forked since
                _BLAS.users.remove(user)
                if not _BLAS.users:
                    set_to(_BLAS.before)


@contextmanager
def with_threads_of_blas() -> Iterator[None]:
    """OpenBLAS has its threads again, inside of `with_one_thread_of_blas`."""
    if _BLAS.functions is None or not _BLAS.users:
        yield
        return
    _, set_to = _BLAS.functions
    set_to(_BLAS.before)
    try:
        yield
    finally:
        with _BLAS.lock:
            if _BLAS.users:
                set_to(1)


def product_parts(terms: int) -> int:
    """Into how many parts work with so many multiplications in products of matrices is cut at least."""
    return min(THREADS, max(1, terms // _TERMS)) if _BLAS.functions is not None else 1


def product_lead(terms: int) -> float:
    """The `lead` of work with so many multiplications in products of matrices."""
    return min(1.0, _WOKEN_TERMS / max(1, terms))


def byte_lead(size: int, passes: int) -> float:
    """The `lead` of so many elementwise steps on so many bytes."""
    return min(1.0, _WOKEN_BYTES / max(1, size * passes))


def shared_products(parts: int, work: Work, workers: int | None) -> None:
    """As `shared`, for work that multiplies matrices."""
    if workers == 1:
        alone(parts, work)
        return
    if _BLAS.users:  # a session has it alone already
        shared(parts, work, workers)
        return
    with with_one_thread_of_blas():
        shared(parts, work, workers)


def alone(parts: int, work: Work) -> None:
    """Does the parts one after the other."""
    for part in range(parts):
        work(part, 0)


def byte_parts(size: int, most: int | None = None, passes: int = 1) -> int:
    """Into how many parts copies or elementwise steps on so many bytes are cut: as many for each thread, and so many
    that no part has many more than `most` bytes. passes: how many steps there are."""
    threads = min(THREADS, max(1, size * passes // _BYTES))
    return threads if most is None else -(-max(1, size // most) // threads) * threads


def cuts(count: int, parts: int, lead: float = 0) -> list[slice]:
    """`count` things as that many slices of about the same size, without empty ones.

    lead: the part of all work that is done while other threads are woken, by which the first slice is greater.
    """
    parts = max(parts, 1)
    share = (1 - lead) / parts
    bounds = [0, *(count - round(count * share * k) for k in range(parts - 1, -1, -1))]
    return [slice(a, b) for a, b in pairwise(bounds) if a < b]
