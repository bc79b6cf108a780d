"""16 threads run one session with two providers: no bit differs from run to run, and no memory is left behind."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine_models import node, stored, value
from sampling import CAMPAIGN
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.runtimes.fastpath import Session
from toy_providers import net

THREADS = 16
RUNS = 10_000
TEXTS = 64 << 10
"""Bytes of Python's objects that a run may leave behind in caches, all runs together."""
PAGES = 1 << 20
"""Bytes of the process: what allocators of threads keep, whose number does not grow with that of the runs."""


def mixed(rows: int) -> Any:
    """Products, chains of elementwise steps and a Softmax, on so many rows of 8 numbers or any other number."""
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["b"]), node("Softmax", ["b"], ["c"], axis=-1)]
    nodes += [node("Mul", ["c", "x"], ["d"]), node("MatMul", ["d", "w"], ["e"]), node("Neg", ["e"], ["y"])]
    weights = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    made = net(*nodes, weights=[stored("w", weights)])
    made.graph.input[0].CopyFrom(value("x", shape=["N", 8]))
    return load_proto(made)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def hammered(session: Session, runs: int) -> None:
    """Runs a session so often in threads, on inputs of three shapes. Fails where a bit differs."""
    draw = np.random.default_rng(1)
    given = [draw.standard_normal((rows, 8)).astype(np.float32) for rows in (1, 5, 16) for _ in range(3)]
    expected = [session.run(None, {"x": x})[0] for x in given]

    def repeated(thread: int) -> int:
        for number in range(thread, runs, THREADS):
            at = number % len(given)
            (y,) = session.run(None, {"x": given[at]})
            if y.tobytes() != expected[at].tobytes():  # type: ignore[union-attr]
                return number
        return -1

    with ThreadPoolExecutor(THREADS) as threads:
        assert set(threads.map(repeated, range(THREADS))) == {-1}


def test_a_sample_of_runs_in_threads_gives_the_same_bits_and_leaves_no_objects() -> None:
    session = Session(mixed(5), ["machine:only=Relu"])
    assert {it.provider for it in session.partitioning.assignments} == {
        "MachineExecutionProvider",
        "NumpyExecutionProvider",
    }
    tracemalloc.start()
    try:
        hammered(session, 80)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        hammered(session, 120)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < TEXTS
    finally:
        tracemalloc.stop()


ORT = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="needs the extra [ort]")


@CAMPAIGN
@pytest.mark.parametrize(
    "wanted",
    [
        ("machine:only=Softmax",),
        pytest.param(("onnxruntime:process=own,only=MatMul,only=Relu",), marks=ORT),
        pytest.param(("onnxruntime:only=MatMul,only=Relu",), marks=ORT),
        pytest.param(("machine:only=Neg", "onnxruntime:only=Softmax"), marks=ORT),
    ],
)
def test_ten_thousand_runs_in_threads_give_the_same_bits_and_the_process_does_not_grow(wanted: tuple[str, ...]) -> None:
    session = Session(mixed(5), wanted)
    counts = {it.provider for it in session.partitioning.assignments}
    assert len(counts) == len(wanted) + 1
    hammered(session, RUNS // 5)
    gc.collect()
    before = resident()
    hammered(session, RUNS)
    gc.collect()
    grown = resident() - before
    sys.stdout.write(f"{RUNS} runs by {', '.join(sorted(counts))}: {grown} bytes more\n")
    assert grown < PAGES
