"""Benchmark of the fast path on the light models, side by side with onnx.reference and onnxruntime.

    SONNX_ONNXRUNTIME=/path/to/python python tests/benchmarks/fastpath.py [--nets resnet50,squeezenet] [--threads 2]
        [--any-core] [--ours numba]

Each engine runs in a process of its own, in turns with the others; a figure is the least time of all runs. The weights
are drawn by seed (`light_models`). `load` is the time until a model is ready, MB the peak memory of the process, and
`difference` the greatest one to onnxruntime with all its optimisations, over the greatest output.

OPENBLAS_CORETYPE, where it is set, holds NumPy's BLAS to the instructions of one kind of processor, while onnxruntime
takes those of the machine; the title says so, and with --any-core the variable is not handed on.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
NETS = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
        "zfnet512")  # fmt: skip
SECONDS = 2.0
"""How long an engine is measured in one turn, after two runs before."""


def numpy(model: Path) -> Callable[[Any], Any]:
    """The fast path."""
    from sonnx.semantics.runtimes.fastpath import Session

    session = Session(model)
    return lambda inputs: session.run(None, inputs)


def numba(model: Path) -> Callable[[Any], Any]:
    """The fast path with native code."""
    from sonnx.semantics.runtimes.fastpath import Session

    session = Session(model, ["NumbaExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


def reference(model: Path) -> Callable[[Any], Any]:
    """onnx.reference."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(str(model))
    return lambda inputs: evaluator.run(None, inputs)


def onnxruntime(model: Path) -> Callable[[Any], Any]:
    """onnxruntime with all its optimisations."""
    import onnxruntime as runtime  # type: ignore[import-not-found,unused-ignore]

    options = runtime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    session = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


ENGINES = {"numpy": numpy, "numba": numba, "reference": reference, "onnxruntime": onnxruntime}


def one(engine: str, model: Path, target: Path) -> None:
    """Measure here and print the figures."""
    inputs = dict(np.load(model.with_suffix(".npz")))
    start = time.perf_counter()
    run = ENGINES[engine](model)
    load = time.perf_counter() - start
    outputs = run(inputs)
    began, best = time.perf_counter(), math.inf
    if engine != "reference":
        outputs = run(inputs)
    while best == math.inf or time.perf_counter() - began < SECONDS:
        start = time.perf_counter()
        run(inputs)
        best = min(best, time.perf_counter() - start)
    np.savez(target, *outputs)
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))
    sys.stdout.write(f"{best} {load} {peak}\n")


def surroundings(threads: int) -> dict[str, str]:
    """The environment of an engine, which may use so many threads."""
    limits = dict.fromkeys(
        ("SONNX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)
    )
    return {**os.environ, **limits}


def measured(engine: str, model: Path, target: Path, threads: int) -> tuple[float, float, float]:
    """Seconds for a run, seconds for loading, and MB, from a process of its own."""
    python = os.environ.get("SONNX_ONNXRUNTIME", sys.executable) if engine == "onnxruntime" else sys.executable
    command = [python, __file__, "--one", engine, "--model", str(model), "--target", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=surroundings(threads))
    if done.returncode:
        raise SystemExit(f"{engine} on {model.stem}: {done.stderr[-2000:]}")
    best, load, peak = (float(word) for word in done.stdout.split())
    return best, load, peak


def main() -> None:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--engines", default="reference", help="ours and onnxruntime are always there")
    parser.add_argument("--ours", choices=("numpy", "numba"), default="numpy", help="what is compared")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--any-core", action="store_true", help="BLAS uses what the processor has")
    parser.add_argument("--one")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--target", type=Path)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one, arguments.model, arguments.target)
        return
    if arguments.any_core:
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            os.environ.pop(name, None)
    engines = [it for it in ENGINES if it in {arguments.ours, "onnxruntime", *arguments.engines.split(",")}]
    table(arguments.ours, engines, arguments.nets.split(","), arguments.threads, arguments.turns)


def table(engine: str, engines: list[str], nets: list[str], threads: int, turns: int) -> None:
    """One row for each net, the geometric means below."""
    import onnx
    from light_models import image, light_model
    from rich.console import Console
    from rich.table import Table

    core = os.environ.get("OPENBLAS_CORETYPE")
    held = f", OpenBLAS held to {core}" if core else ""
    shown = Table(title=f"the fast path on the light models, {threads} threads{held}")
    for column in ("net", f"{engine} ms", "load s", "MB", "onnxruntime ms", "MB", "ratio", "MB ratio", "reference ms",
                   "faster by", "difference"):  # fmt: skip
        shown.add_column(column, justify="right")
    ratios, gains = [], []
    with tempfile.TemporaryDirectory() as folder:
        for net in nets:
            model, proto = Path(folder, f"{net}.onnx"), light_model(net)
            onnx.save(proto, model)
            np.savez(model.with_suffix(".npz"), **image(proto))  # type: ignore[arg-type]
            files = {it: Path(folder, f"{net}-{it}.npz") for it in engines}
            rows = []
            for turn in range(turns):
                now = [it for it in engines if it != "reference" or turn == 0]
                rows.append({it: measured(it, model, files[it], threads) for it in now})
            best = {it: min(row[it] for row in rows if it in row) for it in engines}
            ours, theirs = best[engine], best["onnxruntime"]
            pairs = [list(np.load(files[it]).values()) for it in (engine, "onnxruntime")]
            worst = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(*pairs, strict=True))
            ratios.append(ours[0] / theirs[0])
            slow = best.get("reference", (math.nan,))[0]
            gains.append(slow / ours[0])
            shown.add_row(
                net, f"{ours[0] * 1e3:.1f}", f"{ours[1]:.2f}", f"{ours[2]:.0f}", f"{theirs[0] * 1e3:.1f}",
                f"{theirs[2]:.0f}", f"{ratios[-1]:.2f}", f"{ours[2] / theirs[2]:.2f}", f"{slow * 1e3:.0f}",
                f"{gains[-1]:.0f}", f"{worst:.1e}",
            )  # fmt: skip
            for file in Path(folder).iterdir():
                file.unlink()
    means = [math.exp(sum(map(math.log, it)) / len(it)) for it in (ratios, gains)]
    shown.add_row("geometric mean", *[""] * 5, f"{means[0]:.2f}", "", "", f"{means[1]:.0f}", "")
    Console(width=140).print(shown)


if __name__ == "__main__":
    main()
