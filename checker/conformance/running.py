"""Running suites on engines: distributed over an executor, resumed from a journal, and every case counted once.

A worker that dies loses the case it was at, which is run again alone; if it dies again, that case is a harness error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from sonnx.semantics.engines.protocol import Engine
from sonnx.semantics.engines.registry import engine

from ..differential.outcomes import DEFECTS, Case, Class, judge_engines
from .records import Record, record, record_from
from .suites import Reference, loaded

CHUNK: Final = 8
"""Cases that a worker gets at a time."""
Progress = Callable[[int, int], None]
MakeExecutor = Callable[[int], Executor]


@dataclass(frozen=True, slots=True)
class Journal:
    """The records of an interrupted run, one JSON object a line. The last line may be cut off."""

    path: Path

    def read(self) -> dict[tuple[str, str], tuple[Record, ...]]:
        """The records by suite and name of the reference."""
        found: dict[tuple[str, str], list[Record]] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                key = (str(entry["suite"]), str(entry["reference"]))
                found[key] = [record_from(it) for it in entry["records"]]
        return {key: tuple(records) for key, records in found.items()}

    def add(self, reference: Reference, records: Sequence[Record]) -> None:
        """Appends what came of a reference."""
        entry = {"suite": reference.suite, "reference": reference.name, "records": [it.data() for it in records]}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, sort_keys=True, allow_nan=False) + "\n")


def processes(jobs: int) -> Executor:
    """An executor of processes that start afresh."""
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def conform(
    references: Sequence[Reference],
    engines: Sequence[str],
    *,
    jobs: int = 1,
    journal: Journal | None = None,
    progress: Progress | None = None,
    executor: MakeExecutor = processes,
) -> tuple[Record, ...]:
    """The records of all cases in all engines, in the order of the references, then of the engines."""
    done = {} if journal is None else journal.read()
    names = tuple(engines)
    waiting = [it for it in references if _key(it) not in done or not _complete(done[_key(it)], names)]
    count = len(references) - len(waiting)
    for reference, records in _results(waiting, names, jobs, executor):
        done[_key(reference)] = records
        if journal is not None:
            journal.add(reference, records)
        count += 1
        if progress is not None:
            progress(count, len(references))
    return tuple(record for it in references for record in done[_key(it)] if record.engine in names)


def _key(reference: Reference) -> tuple[str, str]:
    return (reference.suite, reference.name)


def _complete(records: tuple[Record, ...], engines: tuple[str, ...]) -> bool:
    return set(engines) <= {it.engine for it in records}


def _results(
    waiting: Sequence[Reference], engines: tuple[str, ...], jobs: int, make: MakeExecutor
) -> Iterator[tuple[Reference, tuple[Record, ...]]]:
    if jobs <= 1 and make is processes:
        for reference in waiting:
            yield reference, run_reference(reference, engines)
        return
    chunks = [tuple(waiting[at : at + CHUNK]) for at in range(0, len(waiting), CHUNK)]
    lost: list[Reference] = []
    with make(jobs) as pool:
        futures: dict[Future[list[tuple[Record, ...]]], tuple[Reference, ...]] = {}
        for chunk in chunks:
            futures[pool.submit(run_chunk, chunk, engines)] = chunk
        for future in as_completed(futures):
            try:
                yield from zip(futures[future], future.result(), strict=True)
            except (BrokenProcessPool, OSError):
                lost += futures[future]
    for reference in lost:
        yield reference, _alone(reference, engines, make)


def _alone(reference: Reference, engines: tuple[str, ...], make: MakeExecutor) -> tuple[Record, ...]:
    try:
        with make(1) as pool:
            return pool.submit(run_reference, reference, engines).result()
    except (BrokenProcessPool, OSError) as error:
        return _harness(reference, engines, f"the worker died: {error}")


def run_chunk(references: Sequence[Reference], engines: tuple[str, ...]) -> list[tuple[Record, ...]]:
    """What came of several references, in a worker."""
    return [run_reference(it, engines) for it in references]


def run_reference(reference: Reference, engines: tuple[str, ...]) -> tuple[Record, ...]:
    """What came of the cases behind a reference in each engine."""
    try:
        cases = loaded(reference)
    except DEFECTS as error:
        return _harness(reference, engines, f"{type(error).__name__}: {error}")
    opened = [_engine(name) for name in engines]
    return tuple(record(reference.suite, case, it) for case in cases for it in judge_engines(opened, case))


@cache
def _engine(name: str) -> Engine:
    """One of each in a process: a remote one keeps its worker."""
    return engine(name)


def _harness(reference: Reference, engines: tuple[str, ...], why: str) -> tuple[Record, ...]:
    case = Case(reference.name, b"", {})
    return tuple(
        Record(reference.suite, case.name, name, Class.HARNESS.value, why=why[:300], digest="") for name in engines
    )
