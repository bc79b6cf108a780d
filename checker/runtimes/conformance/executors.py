"""Places for the work of a run: processes of this machine, an executor that an entry point names, a Dask cluster.

All are `concurrent.futures.Executor`. A third party names a factory, called with the number of jobs, by an entry point
of the group `sonnx.executors`. Workers need this package and the engines; cases cross as their names.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from multiprocessing import active_children, get_context
from typing import Final

from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.path import quote

from .suites import packed, unpack
from .threads import one_thread

GROUP: Final = "sonnx.executors"
MakeExecutor = Callable[[int], Executor]
"""An executor for a number of jobs."""


def processes(jobs: int) -> Executor:
    """An executor of processes that start afresh, with the tests of the wheel that this one has made."""
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(packed(),))


def _begin(tests: bytes) -> None:
    """A worker that is interrupted ends, without a word; the process that started it says what is to be said."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    unpack(tests)


def named(name: str) -> MakeExecutor:
    """The factory that an entry point names. Raises ModelError, which says what there is."""
    executors = {it.name: it for it in entry_points(group=GROUP)}
    if name not in executors:
        there = f"there are {', '.join(sorted(executors))}" if executors else "no package that is installed brings one"
        raise ModelError(f"no executor {quote(name)}: {there} (entry points of the group {GROUP})")
    try:
        made: MakeExecutor = executors[name].load()
    except (ImportError, AttributeError) as error:
        raise ModelError(f"the executor {quote(name)} cannot be loaded ({error}): install what it needs") from None
    return made


@contextmanager
def dask(address: str) -> Iterator[MakeExecutor]:
    """Executors on the Dask cluster whose scheduler is at an address. Raises ModelError where none is reached."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise ModelError("Dask is not installed: install sonnx[dask]") from None
    try:
        client = distributed.Client(address, timeout="20s")
    except (OSError, ValueError) as error:
        raise ModelError(f"no Dask scheduler at {quote(address)}: {error}") from None

    def make(_: int) -> Executor:
        made: Executor = client.get_executor(pure=False)
        return made

    try:
        yield make
    finally:
        client.close()


@dataclass(frozen=True, slots=True)
class Place:
    """An executor that is open. window: how many pieces of work are given to it ahead."""

    executor: Executor
    window: int


@contextmanager
def opened(make: MakeExecutor, jobs: int) -> Iterator[Place]:
    """An executor for a while. When that ends by an exception, work that waits is dropped and processes are stopped."""
    before = set(active_children())
    with one_thread():  # until the end: processes are started when there is work for them
        executor = make(jobs)
        try:
            yield Place(executor, 2 * jobs if isinstance(executor, ProcessPoolExecutor) else max(64, 4 * jobs))
        except BaseException:
            for process in active_children():
                if process not in before:
                    process.terminate()
            executor.shutdown(wait=False, cancel_futures=True)
            raise
    executor.shutdown()
