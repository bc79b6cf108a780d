"""Benchmarks of engines on a model: each measured in a process of its own, one after the other."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np

from ..model.values import Optional, Sequence, Value

if TYPE_CHECKING:
    from .fastpath.measuring import Memory

WORKER: Final = Path(__file__).with_name("benchmark_worker.py")
_THREADS: Final = tuple(f"{of}_THREADS" for of in ("SONNX", "OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM"))


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of one engine. loading, runs: seconds; peak: bytes of its process. failure: why there are no figures.

    providers: of the fast path the figures of each (`fastpath.measuring`).
    """

    engine: str
    loading: float = 0.0
    runs: tuple[float, ...] = ()
    peak: int = 0
    failure: str = ""
    providers: tuple[Memory, ...] = ()

    @property
    def median(self) -> float:
        """The median of the runs in seconds."""
        return median(self.runs)


def measured(
    engine: str,
    model: Path,
    inputs: Mapping[str, Value],
    *,
    providers: tuple[str, ...] = (),
    repeat: int = 10,
    warm: int = 2,
    threads: int | None = None,
    interpreter: Callable[[str], str] | None = None,
) -> Measured:
    """The figures of one engine. threads: for linear algebra, None for as many as there are cores.

    providers: those that the engine `numpy` asks first, with options; the row bears their names. interpreter: the
    Python that has an engine; `python_of` where nothing is said.
    """
    python = (interpreter or python_of)(engine)
    name = " + ".join((*providers, engine))
    if not python:
        return Measured(name, failure="onnxruntime is not installed: install sonnx[ort]")
    limits = {} if threads is None else dict.fromkeys(_THREADS, str(threads))
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder, "request"), Path(folder, "answer")
        sent = (engine, str(model.absolute()), _sent(engine, inputs), warm, repeat, threads, providers)
        request.write_bytes(pickle.dumps(sent))
        done = subprocess.run(
            [python, str(WORKER), str(request), str(answer)],
            cwd=folder,
            env={**os.environ, **limits},
            capture_output=True,
            check=False,
        )
        if not answer.exists():
            said = " ".join(done.stderr.decode("utf-8", "replace").split())[-300:]
            return Measured(name, failure=f"its process died with code {done.returncode}: {said}")
        told = pickle.loads(answer.read_bytes())
    if len(told) == 1:
        return Measured(name, failure=told[0])
    loading, runs, peak, memory = told
    return Measured(name, loading, tuple(runs), peak, providers=memory)


def _sent(engine: str, inputs: Mapping[str, Value]) -> Mapping[str, object]:
    """The inputs as an engine takes them; a Python that has onnxruntime need not have this package."""
    return {name: _plain(value) for name, value in inputs.items()} if engine.startswith("onnxruntime") else inputs


def _plain(value: Value | None) -> object:
    match value:
        case Sequence(items=items):
            return [_plain(item) for item in items]
        case Optional(item=item):
            return _plain(item)
        case np.ndarray() if value.dtype == object:
            texts = np.empty(value.shape, object)
            texts.reshape(-1)[:] = [it.decode("utf-8", "surrogateescape") for it in value.reshape(-1).tolist()]
            return texts
        case _:
            return value


def python_of(engine: str) -> str:
    """The Python that has an engine, "" when there is none. SONNX_ONNXRUNTIME names the one that has onnxruntime."""
    if not engine.startswith("onnxruntime"):
        return sys.executable
    named = os.environ.get("SONNX_ONNXRUNTIME", "")
    return named or (sys.executable if find_spec("onnxruntime") is not None else "")
