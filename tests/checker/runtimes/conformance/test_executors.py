"""Where a run is done changes nothing in what it gives: processes, anybody's executor, a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from sonnx.checker.runtimes.conformance import executors
from sonnx.checker.runtimes.conformance.reports import Conformance, to_json
from sonnx.checker.runtimes.conformance.running import Journal, Records, conform
from sonnx.checker.runtimes.conformance.suites import Reference, references
from sonnx.semantics.errors import ModelError
from stored_suites import small_suite


@pytest.fixture
def cases(tmp_path: Path) -> tuple[Reference, ...]:
    return references(small_suite(tmp_path / "suite"))


def text(records: Records) -> str:
    return to_json(Conformance((("machine", "1"),), ("suite",), records, {}))


def threads(jobs: int) -> Executor:
    return ThreadPoolExecutor(jobs)


def dying(fatal: str, *, all_at_once: bool) -> executors.MakeExecutor:
    """Executors that break when a case is given to them, and then take nothing more."""

    class Dying(ThreadPoolExecutor):
        broken = False

        def submit(self, call: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
            if self.broken:
                raise BrokenProcessPool("it died before")
            given = args[0] if isinstance(args[0], tuple) else (args[0],)
            if any(it.name.startswith(fatal) for it in given):
                self.broken = all_at_once
                broken: Future[Any] = Future()
                broken.set_exception(BrokenProcessPool("it died"))
                return broken
            return super().submit(call, *args, **named)

    return Dying


@pytest.mark.parametrize("all_at_once", [False, True])
def test_a_worker_that_dies_loses_one_case(cases: tuple[Reference, ...], all_at_once: bool) -> None:
    records = conform(cases, ["machine"], jobs=2, executor=dying("b/", all_at_once=all_at_once))
    assert [it.outcome for it in records] == ["pass", "harness error", "pass", "pass"]
    assert "died" in records[1].why


def test_an_interrupted_run_leaves_no_process_and_its_report_is_that_of_one_that_was_not(
    cases: tuple[Reference, ...], tmp_path: Path
) -> None:
    journal = Journal(tmp_path / "journal", {"machine": "1"})

    workers = []
    before = set(multiprocessing.active_children())  # those of other tests

    def interrupt(done: int, _: int) -> None:
        workers.extend(set(multiprocessing.active_children()) - before)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        conform(cases, ["machine"], jobs=2, journal=journal, progress=interrupt)
    deadline = time.monotonic() + 20
    while None in {process.exitcode for process in workers} and time.monotonic() < deadline:
        time.sleep(0.01)  # join is not enough: another thread may have waited for a process and not said so yet
    assert {process.exitcode for process in workers} == {-signal.SIGTERM}
    kept = journal.read()
    assert len(kept) == 1
    whole = conform(cases, ["machine"], journal=journal)
    assert text(whole) == text(conform(cases, ["machine"], jobs=2, executor=threads))
    assert next(iter(kept.values()))[0] in whole


def test_a_worker_computes_with_one_thread_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.delenv("SONNX_THREADS", raising=False)
    asked = "__import__('sonnx.semantics.runtimes.fastpath.workers', fromlist=['']).THREADS"
    with executors.opened(executors.processes, 1) as place:
        assert place.executor.submit(eval, asked).result(60) == 1
        assert place.executor.submit(os.getenv, "OPENBLAS_NUM_THREADS").result(60) == "1"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "2"
    assert "SONNX_THREADS" not in os.environ


def test_the_command_says_how_many_threads_there_are_before_numpy_is_loaded() -> None:
    loads = "import sys, sonnx.checker.commands.conform; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loads], timeout=60, check=False).returncode == 0


def test_an_executor_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("mine", f"{__name__}:threads", executors.GROUP)]
    monkeypatch.setattr(EntryPoint, "load", lambda _: threads)
    monkeypatch.setattr(executors, "entry_points", lambda group: points if group == executors.GROUP else [])
    assert executors.named("mine") is threads
    with pytest.raises(ModelError, match="there are mine"):
        executors.named("yours")


def test_a_dask_cluster_gives_what_one_process_gives(cases: tuple[Reference, ...]) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, executors.dask(cluster.scheduler_address) as make:
        assert text(conform(cases, ["machine"], jobs=2, executor=make)) == text(conform(cases, ["machine"]))


def test_a_dask_cluster_that_is_not_there_is_said() -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    with pytest.raises(ModelError, match="no Dask scheduler"), executors.dask("unknown://nowhere"):
        pass
