"""Measures one engine on one model, in a process of its own; run by `benchmark`, under any Python for onnxruntime.

    python benchmark_worker.py REQUEST ANSWER

REQUEST is a pickled (engine, model path, inputs by name, warm-up runs, repetitions, threads, providers), ANSWER a
pickled tuple of seconds for loading, seconds for each repetition, the peak memory of the process in bytes, and the
memory of each provider of the fast path; or of one text, why nothing was measured. Imports nothing of the package but
for engines of the package.
"""

from __future__ import annotations

import os
import pickle
import resource
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules are not to be found by bare names

FAST = ("numpy", "numba")
LEVELS = {"onnxruntime": "ORT_ENABLE_ALL", "onnxruntime-disabled": "ORT_DISABLE_ALL"}


def prepared(engine: str, model: str, threads: int | None, providers: Sequence[str]) -> Callable[[Any], object]:
    """A function that runs the model on inputs by name."""
    if engine in LEVELS:
        runtime = import_module("onnxruntime")
        runtime.set_default_logger_severity(4)
        options = runtime.SessionOptions()
        options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, LEVELS[engine])
        options.intra_op_num_threads = threads or 0
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"], enable_fallback=0)
        return lambda inputs: session.run(None, inputs)
    if engine in FAST:
        session = import_module("sonnx.semantics.runtimes.fastpath").Session(model, providers)
        return lambda inputs: session.run(None, inputs)
    loaded = import_module("sonnx.semantics.model.loader").load(model)
    execution = import_module("sonnx.semantics.machine.execution")

    def run(inputs: Any) -> object:
        done = execution.run(loaded, inputs, history=False)
        if done.stuck is not None:
            raise RuntimeError(f"stuck: {done.stuck.message}")
        return done

    return run


def peak() -> int:
    """The peak memory of this process in bytes. The kernel counts for `ru_maxrss` what the parent had before too."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size if sys.platform == "darwin" else size * 1024


def measured(request: tuple[str, str, Any, int, int, int | None, Sequence[str]]) -> tuple[object, ...]:
    """Seconds for loading, seconds for each repetition, peak memory in bytes, the memory of each provider."""
    engine, model, inputs, warm, repeat, threads, wanted = request
    providers = [*wanted, *(["NumbaExecutionProvider"] if engine == "numba" else [])]
    started = time.perf_counter()
    run = prepared(engine, model, threads, providers)
    loading = time.perf_counter() - started
    for _ in range(warm):
        run(inputs)
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        run(inputs)
        seconds.append(time.perf_counter() - started)
    most = peak()
    memory: tuple[object, ...] = ()
    if engine in FAST:
        loaded = import_module("sonnx.semantics.model.loader").load(model)
        memory = import_module("sonnx.semantics.runtimes.fastpath.measuring").memory_of(loaded, providers, inputs)
    return loading, seconds, most, memory


def main() -> None:
    """Reads the request, writes the answer."""
    request = pickle.loads(Path(sys.argv[1]).read_bytes())
    try:
        answer: tuple[object, ...] = measured(request)
    except Exception as error:
        answer = (f"{type(error).__name__}: {' '.join(str(error).split())[:600]}",)
    Path(sys.argv[2]).write_bytes(pickle.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # a runtime that dies while it is torn down has still been measured


if __name__ == "__main__":
    main()
