"""Running suites on engines: distributed over an executor, resumed from a journal, and every case counted once.

A worker that dies loses the case it was at, which is run again alone; if it dies again, that case is a harness error.
"""

from __future__ import annotations

import gc
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from sonnx.semantics.resources.process import settled
from sonnx.semantics.runtimes.engines.protocol import Engine
from sonnx.semantics.runtimes.engines.registry import engine

from ..differential.outcomes import DEFECTS, Case, Class, judge_engines
from .executors import MakeExecutor, Place, opened, processes
from .known import with_entry
from .records import Record, record, record_from
from .suites import Reference, is_large, loaded

CHUNK: Final = 8
"""Cases that a worker gets at a time."""
Progress = Callable[[int, int], None]
Records = tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """The work on each case. engines: their names."""

    engines: tuple[str, ...]
    every_node: bool = False


@dataclass(frozen=True, slots=True)
class Journal:
    """The records of an interrupted run, one JSON object a line. The last line may be cut off.

    versions: of the engines by name; what another version of one gave is not read.
    """

    path: Path
    versions: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> dict[tuple[str, str], Records]:
        """The records by suite and name of the reference."""
        done: dict[tuple[str, str], Records] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    key = (str(entry["suite"]), str(entry["reference"]))
                    versions, records = entry["versions"], [record_from(it) for it in entry["records"]]
                except (ValueError, KeyError, TypeError):
                    continue
                now = tuple(it for it in records if versions.get(it.engine) == self.versions.get(it.engine))
                done[key] = (*(it for it in done.get(key, ()) if it.engine not in {n.engine for n in now}), *now)
        return done

    def add(self, reference: Reference, records: Records) -> None:
        """Appends what came of a reference."""
        entry = {
            "suite": reference.suite,
            "reference": reference.name,
            "versions": {it.engine: self.versions.get(it.engine) for it in records},
            "records": [it.data() for it in records],
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, sort_keys=True, allow_nan=False) + "\n")


class Stopped(KeyboardInterrupt):
    """The run was interrupted. records: of the references that are done; missing: how many are not."""

    def __init__(self, records: Records, missing: int) -> None:
        super().__init__()
        self.records, self.missing = records, missing


def conform(
    references: Sequence[Reference],
    engines: Sequence[str],
    *,
    jobs: int = 1,
    journal: Journal | None = None,
    progress: Progress | None = None,
    executor: MakeExecutor = processes,
    every_node: bool = False,
) -> Records:
    """The records of all cases in all engines, in the order of the references, then of the engines.

    every_node: nodes are judged also where the outputs are the definition's bit for bit. Raises Stopped from an
    interrupt.
    """
    done = {} if journal is None else journal.read()
    names = tuple(engines)
    waiting = [it for it in references if _key(it) not in done or not _complete(done[_key(it)], names)]
    count = len(references) - len(waiting)
    try:
        for reference, records in _results(waiting, Task(names, every_node), jobs, executor):
            done[_key(reference)] = records
            if journal is not None:
                journal.add(reference, records)
            count += 1
            if progress is not None:
                progress(count, len(references))
    except KeyboardInterrupt as stop:
        ended = [it for it in references if _complete(done.get(_key(it), ()), names)]
        raise Stopped(_in_order(ended, done, names), len(references) - len(ended)) from stop
    return _in_order(references, done, names)


def _in_order(
    references: Sequence[Reference], done: Mapping[tuple[str, str], Records], names: Sequence[str]
) -> Records:
    place = {name: at for at, name in enumerate(names)}
    return tuple(
        record
        for it in references
        for record in _by_case([one for one in done[_key(it)] if one.engine in place], place)
    )


def _by_case(records: Sequence[Record], place: Mapping[str, int]) -> list[Record]:
    cases = {case: at for at, case in enumerate(dict.fromkeys(it.case for it in records))}
    return sorted(records, key=lambda it: (cases[it.case], place[it.engine]))


def _key(reference: Reference) -> tuple[str, str]:
    return (reference.suite, reference.name)


def _complete(records: Records, engines: tuple[str, ...]) -> bool:
    return set(engines) <= {it.engine for it in records}


def _results(
    waiting: Sequence[Reference], task: Task, jobs: int, make: MakeExecutor
) -> Iterator[tuple[Reference, Records]]:
    if jobs <= 1 and make is processes:
        for reference in waiting:
            yield reference, run_reference(reference, task)
        return
    chunks = _chunks(waiting)
    while chunks:
        lost: list[Reference] = []
        with opened(make, jobs) as place:
            yield from _in_turn(chunks, task, place, lost)
        for reference in lost:
            yield reference, _alone(reference, task, make)


def _chunks(waiting: Sequence[Reference]) -> deque[tuple[Reference, ...]]:
    """Pieces of work; whole models first, one in each piece, so that none is left over for the end."""
    large = [it for it in waiting if is_large(it)]
    small = [it for it in waiting if not is_large(it)]
    pieces = [tuple(small[at : at + CHUNK]) for at in range(0, len(small), CHUNK)]
    return deque([*((it,) for it in large), *pieces])


def _in_turn(
    chunks: deque[tuple[Reference, ...]], task: Task, place: Place, lost: list[Reference]
) -> Iterator[tuple[Reference, Records]]:
    """Gives out the chunks, a few ahead. A worker that dies takes those few with it into `lost`; what was not given out
    yet stays in `chunks`."""
    running: dict[Future[list[Records]], tuple[Reference, ...]] = {}
    whole = True
    while running or (chunks and whole):
        while chunks and whole and len(running) < place.window:
            try:
                running[place.executor.submit(run_chunk, chunks[0], task)] = chunks[0]
            except BrokenExecutor:
                whole = False
            else:
                chunks.popleft()
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            references = running.pop(future)
            try:
                records = future.result()
            except Exception as error:  # what becomes of a worker, an executor says in its own way
                whole = whole and not isinstance(error, BrokenExecutor)
                lost += references
            else:
                yield from zip(references, records, strict=True)


def _alone(reference: Reference, task: Task, make: MakeExecutor) -> Records:
    try:
        with opened(make, 1) as place:
            return place.executor.submit(run_reference, reference, task).result()
    except Exception as error:
        return _harness(reference, task.engines, f"the worker died: {type(error).__name__}: {error}")


def run_chunk(references: Sequence[Reference], task: Task) -> list[Records]:
    """The records of several references, in a worker."""
    done = [run_reference(it, task) for it in references]
    _settle()
    return done


@cache
def _settle() -> None:
    """Once: what a worker has read for its first cases it needs for all others, and need not look for garbage in it."""
    gc.collect()
    settled()


def run_reference(reference: Reference, task: Task) -> Records:
    """The records of the cases behind a reference in each engine."""
    try:
        cases = loaded(reference)
    except DEFECTS as error:
        return _harness(reference, task.engines, f"{type(error).__name__}: {error}")
    engines = [_engine(name) for name in task.engines]
    return tuple(
        with_entry(record(reference.suite, case, result), case, result, engine)
        for case in cases
        for engine, result in zip(engines, judge_engines(engines, case, every_node=task.every_node), strict=True)
    )


@cache
def _engine(name: str) -> Engine:
    """One of each in a process: a remote one keeps its worker."""
    return engine(name)


def _harness(reference: Reference, engines: tuple[str, ...], why: str) -> Records:
    case = Case(reference.name, b"", {})
    return tuple(
        Record(reference.suite, case.name, name, Class.HARNESS.value, why=why[:300], digest="") for name in engines
    )
