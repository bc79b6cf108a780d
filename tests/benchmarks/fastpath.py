"""Benchmark of the fast path, by NumPy and by native code, side by side with onnxruntime in one run.

    SONNX_ONNXRUNTIME=/path/to/python python tests/benchmarks/fastpath.py [--nets resnet50,bert] [--threads 2]
        [--engines numpy,numba,onnxruntime,reference] [--turns 3] [--held-core]

The nets are the light models (`light_models`), layers of language models and quantized nets (`layer_models`), with
weights drawn by seed. In each turn every engine has a process of its own; they run the net in short rounds, one engine
after the other, so that what else the machine does falls on all of them. Bytecode of Python is kept for the time of the
benchmark, as that of installed packages is. Figures are the least of all rounds and turns:

    ms      wall-clock time of a run; the number behind it is the ratio to onnxruntime with all its optimisations
    cpu     processor time of a run, of all threads, the mean of a round
    load    processor time in which the session is made, after the engine was imported
    first   processor time in which a fresh process imports the engine, makes the session and runs the net once
    MB      peak memory of the process, inputs and outputs included

and `difference` is the greatest one to onnxruntime, over its greatest output. The progress is on stderr. Without a file
of the cache (`sonnx.semantics.runtimes.fastpath.jit.loading`) numba compiles at its first run: that is done, and said,
before anything is measured.

OPENBLAS_CORETYPE, where it is set, holds NumPy's BLAS to the instructions of one kind of processor, while onnxruntime
takes those of the machine: products took twice as long on a processor with AVX-512 that was held to Haswell. So the
variable is not handed on, unless --held-core says so; then the title says it too.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
NETS = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
        "zfnet512")  # fmt: skip
LAYERS = ("bert", "decoder", "lstm")
QUANTIZED = ("qconv", "qdense")
SECONDS = 0.3
"""How long an engine is measured in one round."""
ROUNDS = 4
BYTECODE = tempfile.TemporaryDirectory()
Run = Callable[[Any], Any]


def numpy(model: Path) -> Run:
    """The fast path."""
    from sonnx.semantics.runtimes.fastpath import Session

    session = Session(model)
    return lambda inputs: session.run(None, inputs)


def numba(model: Path) -> Run:
    """The fast path with native code."""
    from sonnx.semantics.runtimes.fastpath import Session

    session = Session(model, ["NumbaExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


def reference(model: Path) -> Run:
    """onnx.reference."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(str(model))
    return lambda inputs: evaluator.run(None, inputs)


def onnxruntime(model: Path) -> Run:
    """onnxruntime with all its optimisations."""
    import onnxruntime as runtime  # type: ignore[import-not-found,unused-ignore]

    options = runtime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    session = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


ENGINES: Mapping[str, tuple[str, Callable[[Path], Run]]] = {
    "numpy": ("sonnx.semantics.runtimes.fastpath.session", numpy),
    "numba": ("sonnx.semantics.runtimes.fastpath.session", numba),
    "onnxruntime": ("onnxruntime", onnxruntime),
    "reference": ("onnx.reference", reference),
}
"""The module that an engine is imported by, and how it makes a net ready."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of a run by the clock and of the processor, of loading, until the first result; MB."""

    wall: float
    processor: float
    load: float
    first: float
    peak: float


# ---- The process of an engine -----------------------------------------------------------------


def one(engine: str, model: Path, target: Path) -> None:
    """Make the net ready and run it once, then a round for each line that comes; print figures after each."""
    inputs = dict(np.load(model.with_suffix(".npz")))
    module, make = ENGINES[engine]
    start = time.process_time()
    __import__(module)
    imported = time.process_time()
    run = make(model)
    load = time.process_time() - imported
    outputs = run(inputs)
    first = time.process_time() - start
    np.savez(target, *outputs)
    tell(load, first)
    for _ in sys.stdin:
        tell(*best_of(run, inputs))
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    tell(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:")))


def best_of(run: Run, inputs: Any) -> tuple[float, float]:
    """The least wall-clock time of a run, and the processor time of one, that of all divided by their number: the
    system accounts for what other threads use late, so the difference over one run may lack it."""
    began, used, wall, count = time.perf_counter(), time.process_time(), math.inf, 0
    while not count or time.perf_counter() - began < SECONDS:
        start = time.perf_counter()
        run(inputs)
        wall, count = min(wall, time.perf_counter() - start), count + 1
    return wall, (time.process_time() - used) / count


def tell(*figures: float) -> None:
    """Print figures on a line."""
    sys.stdout.write(" ".join(map(str, figures)) + "\n")
    sys.stdout.flush()


# ---- Measuring --------------------------------------------------------------------------------


def surroundings(threads: int) -> dict[str, str]:
    """The environment of an engine, which may use so many threads."""
    limits = dict.fromkeys(
        ("SONNX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)
    )
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **limits, "PYTHONPYCACHEPREFIX": BYTECODE.name}


def said(text: str) -> None:
    """Progress."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


class Engine:
    """An engine in a process of its own."""

    def __init__(self, name: str, model: Path, target: Path, threads: int) -> None:
        self.name, self.model = name, model
        python = os.environ.get("SONNX_ONNXRUNTIME", sys.executable) if name == "onnxruntime" else sys.executable
        command = [python, __file__, "--one", name, "--model", str(model), "--target", str(target)]
        self._errors = target.with_suffix(".stderr").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            env=surroundings(threads),
        )  # fmt: skip

    def read(self) -> list[float]:
        """The figures on the next line."""
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise SystemExit(f"{self.name} on {self.model.stem}: {self._errors.read()[-2000:]}")
        return [float(word) for word in line.split()]

    def round(self) -> list[float]:
        """The figures of a round."""
        if self._process.stdin:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        return self.read()

    def end(self) -> float:
        """The peak memory."""
        if self._process.stdin:
            self._process.stdin.close()
        (peak,) = self.read()
        self._process.wait()
        self._errors.close()
        return peak


def turn(engines: Iterable[str], model: Path, threads: int) -> dict[str, Figures]:
    """The figures of one process of each engine."""
    running: dict[str, Engine] = {}
    starts: dict[str, list[float]] = {}
    for name in engines:  # one by one, so that none disturbs how another one loads
        running[name] = Engine(name, model, output_of(model, name), threads)
        starts[name] = running[name].read()
    rounds: dict[str, list[list[float]]] = {name: [] for name in running}
    for _ in range(ROUNDS):
        for name, engine in running.items():
            rounds[name].append(engine.round())
    return {
        name: Figures(*map(min, zip(*rounds[name], strict=True)), *starts[name], engine.end())
        for name, engine in running.items()
    }


def output_of(model: Path, engine: str) -> Path:
    """Where an engine writes the outputs of a net."""
    return model.with_name(f"{model.stem}-{engine}.npz")


def measured(net: str, engines: Sequence[str], threads: int, turns: int) -> tuple[dict[str, Figures], dict[str, float]]:
    """The least figures of each engine, and its difference to onnxruntime."""
    import onnx
    from layer_models import LAYERS as MADE
    from light_models import image, light_model

    with tempfile.TemporaryDirectory() as folder:
        proto = MADE[net]() if net in MADE else light_model(net)
        model = Path(folder, f"{net}.onnx")
        onnx.save(proto, model)
        np.savez(model.with_suffix(".npz"), **image(proto))  # type: ignore[arg-type]
        del proto
        figures: dict[str, list[Figures]] = {name: [] for name in engines}
        for number in range(turns):
            said(f"{net}: turn {number + 1} of {turns}")
            now = [it for it in engines if it != "reference" or number == 0]
            for name, it in turn(now, model, threads).items():
                figures[name].append(it)
        outputs = {name: list(np.load(output_of(model, name)).values()) for name in engines}
    theirs = outputs["onnxruntime"]
    differences = {
        name: max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(ours, theirs, strict=True))
        for name, ours in outputs.items()
    }
    least = {name: Figures(*map(min, zip(*map(astuple, rows), strict=True))) for name, rows in figures.items()}
    return least, differences


def warm() -> None:
    """Have the native code compiled where it is not kept."""
    from sonnx.semantics.runtimes.fastpath.jit import loading

    if loading.kept(loading.cache_folder() / f"{loading.digest()}.o") is None:
        said("numba: no code is kept, it is compiled first")
        start = time.perf_counter()
        loading.execute()
        said(f"numba: compiled in {time.perf_counter() - start:.0f} s")


# ---- The table --------------------------------------------------------------------------------


def mean(numbers: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def ratios(ours: Figures, theirs: Figures) -> tuple[float, ...]:
    """Each figure over that of another engine."""
    return tuple(a / b for a, b in zip(astuple(ours), astuple(theirs), strict=True))


HEAD = f"{'net':14}{'engine':13}" + "".join(f"{it:>8}{'':6}" for it in ("ms", "cpu", "load", "first"))
HEAD += f"{'MB':>7}{'':6}{'difference':>13}"


def main() -> None:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join((*NETS, *LAYERS, *QUANTIZED)))
    parser.add_argument("--engines", default="numpy,numba", help="onnxruntime is always there")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--held-core", action="store_true", help="BLAS uses what OPENBLAS_CORETYPE says")
    parser.add_argument("--one")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--target", type=Path)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one, arguments.model, arguments.target)
        return
    if not arguments.held_core:
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            os.environ.pop(name, None)
    wanted = {"onnxruntime", *arguments.engines.split(",")}
    table([it for it in ENGINES if it in wanted], arguments.nets.split(","), arguments.threads, arguments.turns)


def table(engines: Sequence[str], nets: Sequence[str], threads: int, turns: int) -> None:
    """A row for each net and engine, printed when it is known, the geometric means below."""
    if "numba" in engines:
        warm()
    core = os.environ.get("OPENBLAS_CORETYPE")
    sys.stdout.write(f"{threads} threads{f', OpenBLAS held to {core}' if core else ''}\n{HEAD}\n")
    gathered: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for net in nets:
        figures, differences = measured(net, engines, threads, turns)
        for engine in engines:
            ours = figures[engine]
            beside = ratios(ours, figures["onnxruntime"])
            group = "layers" if net in LAYERS else "quantized" if net in QUANTIZED else "light nets"
            gathered.setdefault((engine, group), []).append(beside)
            row(net, engine, ours, beside, f"{differences[engine]:.1e}")
    for (engine, group), rows in gathered.items():
        if engine != "onnxruntime" and len(rows) > 1:
            row(f"mean, {group}"[:14], engine, None, tuple(map(mean, zip(*rows, strict=True))), "")


def row(net: str, engine: str, figures: Figures | None, beside: tuple[float, ...], last: str) -> None:
    """Print a row."""
    line = f"{net:14}{engine:13}"
    for k, (ratio, width) in enumerate(zip(beside, (8, 8, 8, 8, 7), strict=True)):
        value = "" if figures is None else f"{astuple(figures)[k] * (1 if k == 4 else 1e3):.{0 if k > 2 else 1}f}"
        line += f"{value:>{width}}{'' if engine == 'onnxruntime' else f'{ratio:.2f}':>6}"
    sys.stdout.write(f"{line}{last:>13}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
