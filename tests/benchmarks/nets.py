"""Benchmark of the machine on real nets, side by side with onnx.reference on the same models and inputs.

    python tests/benchmarks/nets.py [--nets resnet50,squeezenet] [--engines machine,reference]

Each measurement is a process of its own; the time is that of the run without loading, memory the peak of the process.
`history` is what keeping all states cost, in bytes, over the bytes that the steps wrote. `difference` is the greatest
one to the outputs of onnx.reference 1.23, which computes BatchNormalization-9 with the statistics of the batch and
Softmax-1 along the last axis alone, so that four of the nets differ by more than rounding.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
NETS = ("resnet50", "densenet121", "squeezenet", "inception_v1", "shufflenet")


def machine(name: str, target: Path) -> dict[str, float]:
    """One run with full history."""
    from light_models import image, light_model
    from sonnx.semantics.machine.execution import run
    from sonnx.semantics.machine.memory import history_bytes
    from sonnx.semantics.model.loader import load_proto
    from sonnx.semantics.resources.persistent import items

    proto = light_model(name)
    model, inputs = load_proto(proto), image(proto)
    start = time.perf_counter()
    ended = run(model, inputs)
    seconds = time.perf_counter() - start
    if ended.stuck is not None:
        raise SystemExit(str(ended.stuck))
    np.savez(target, *[np.asarray(value) for value in ended.outputs.values()])
    memories = [state.store.memory for state in ended.states]
    first, last = ended.states[0].frame.table, ended.states[-1].frame.table
    written = sum(place.length for t, place in items(last) if t not in first)
    kept = history_bytes(memories) - history_bytes(memories[:1])
    return {"seconds": seconds, "history": kept / written}


def reference(name: str, target: Path) -> dict[str, float]:
    """One run of onnx.reference."""
    from light_models import image, light_model
    from onnx.reference import ReferenceEvaluator

    proto = light_model(name)
    evaluator, inputs = ReferenceEvaluator(proto), image(proto)
    start = time.perf_counter()
    outputs = evaluator.run(None, inputs)
    seconds = time.perf_counter() - start
    np.savez(target, *outputs)
    return {"seconds": seconds}


ENGINES = {"machine": machine, "reference": reference}


def one(engine: str, name: str, target: Path) -> None:
    """Measure here and print the figures."""
    found = ENGINES[engine](name, target)
    found["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(" ".join(f"{key}={value}" for key, value in found.items()) + "\n")


def measured(engine: str, name: str, target: Path) -> dict[str, float]:
    """The figures from a process of its own."""
    command = [sys.executable, __file__, "--one", engine, "--nets", name, "--target", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{engine} on {name}: {done.stderr[-2000:]}")
    return {key: float(value) for key, value in (word.split("=") for word in done.stdout.split())}


def main() -> None:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--one")
    parser.add_argument("--target", type=Path)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one, arguments.nets, arguments.target)
        return
    table = Table(title="the ieee machine with full history, and onnx.reference")
    for column in ("net", "machine s", "MB", "history", "reference s", "MB", "ratio", "difference"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.nets.split(","):
            files = [Path(folder) / f"{name}-{engine}.npz" for engine in ENGINES]
            ours, theirs = (measured(engine, name, file) for engine, file in zip(ENGINES, files, strict=True))
            pair = [list(np.load(file).values()) for file in files]
            worst = max(float(np.max(np.abs(a - b))) for a, b in zip(*pair, strict=True))
            table.add_row(
                name,
                f"{ours['seconds']:.2f}",
                f"{ours['MB']:.0f}",
                f"{ours['history']:.3f}",
                f"{theirs['seconds']:.2f}",
                f"{theirs['MB']:.0f}",
                f"{ours['seconds'] / theirs['seconds']:.2f}",
                f"{worst:.1e}",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
