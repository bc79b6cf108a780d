"""Benchmark of the debugger: faults planted in large nets, found by one command each.

    python tests/benchmarks/debugger.py [--nets resnet50,layers10000] [--faults nan,overflow,divergence]

`command` is the time of `sonnx debug NET --input ... -e "find FAULT" --batch` from the start of the process to its end,
with loading and running (`of CPU`: without waiting for other processes); its answer is compared with what was planted,
node and element. `back` is the longest of twenty reverse steps from there. `kept` is the memory that a run to the end
keeps over the bytes that its steps wrote:
what Python and NumPy allocated since the session was opened (tracemalloc). `states` is what the maps and buffers of the
states take as `history_bytes` counts them, `pages` by how much the process grew, with what is made once for all runs
and what the allocator holds back. `bytes a step` is what is kept beside the bytes that are written: with tensors of a
few bytes it is more than they are.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
PROGRAM = "from sonnx.spec.cli import main; main()"
FAULTS = ("nan", "overflow", "divergence")
NETS = ("resnet50", "layers10000")
SECONDS, BACK, KEPT = 10.0, 50.0, 1.3
WIDTH = 8192


def made(name: str, what: str, folder: Path) -> tuple[str, str, tuple[int, ...]]:
    """Writes the net and its input; the command that finds the fault, and the node and element that it has to name."""
    from light_models import image, light_model
    from planted_faults import layers, planted, recorded_wrongly
    from sonnx.semantics.model.loader import load

    if name.startswith("layers"):
        proto, inputs = layers(int(name[len("layers") :]), WIDTH)
    else:
        proto = light_model(name)
        inputs = image(proto)
    np.savez(folder / "input.npz", **inputs)
    if what == "divergence":
        onnx.save(proto, folder / "net.onnx")
        node, element = recorded_wrongly(load(folder / "net.onnx"), inputs, folder / "run.trace")
        return f"find divergence {folder / 'run.trace'}", node, element
    found = planted(proto, inputs, what)
    onnx.save(found.proto, folder / "net.onnx")
    return f"find {what}", found.node, found.element


def resident(folder: Path) -> None:
    """Prints by how many bytes the process grows from the opened session to the end of the run."""
    from sonnx.semantics.debugger.session.opening import opened
    from sonnx.semantics.machine.schedule import Schedule

    session = opened(folder / "net.onnx", (str(folder / "input.npz"),), None, Schedule())
    gc.collect()
    before = _anonymous()
    session.history.finish()
    gc.collect()
    sys.stdout.write(str(_anonymous() - before))


def _anonymous() -> int:
    """The pages of the process that are no files, in bytes; 0 where the system does not say."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon")), 0)


def one(folder: Path, command: str) -> None:
    """Measures reverse steps and what is kept, and prints the figures."""
    from sonnx.semantics.debugger.commands.table import execute
    from sonnx.semantics.debugger.session.opening import opened
    from sonnx.semantics.machine.memory import history_bytes
    from sonnx.semantics.machine.schedule import Schedule

    tracemalloc.start()
    session = opened(folder / "net.onnx", (str(folder / "input.npz"),), None, Schedule())
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    session = execute(session, command).session
    slowest = 0.0
    here = session
    for _ in range(20):
        start = time.perf_counter()
        here = execute(here, "reverse-step").session
        slowest = max(slowest, time.perf_counter() - start)
    history = session.history
    history.finish()
    gc.collect()
    traced = tracemalloc.get_traced_memory()[0] - before
    moments = [history.at(i) for i in range(history.last + 1)]
    written = sum(it.came.written for it in moments if it.came is not None)
    memories = [it.state.store.memory for it in moments]
    counted = history_bytes(memories) - history_bytes(memories[:1])
    figures = {"back": slowest * 1000, "traced": traced, "counted": counted, "written": written, "steps": history.last}
    sys.stdout.write(json.dumps(figures))


def _children() -> float:
    """The processor time of the processes that have ended, in seconds."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def measured(name: str, what: str) -> list[str]:
    """The row of a net and a fault."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        command, node, element = made(name, what, folder)
        given = ["debug", str(folder / "net.onnx"), "--input", str(folder / "input.npz")]
        start, used = time.perf_counter(), _children()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *given, "-e", command, "--batch", "--json"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        seconds, used = time.perf_counter() - start, _children() - used
        if done.returncode != 1:
            raise SystemExit(f"{name}, {what}: {done.stdout[-500:]} {done.stderr[-2000:]}")
        hit = json.loads(done.stdout)["hits"][0]
        exact = hit["text"].startswith(f"{node} writes") or hit["text"].startswith(f"{node}(")
        exact = exact and tuple(hit["element"]) == element
        own = [sys.executable, __file__, "--one", place, "--command", command]
        worker = subprocess.run(own, capture_output=True, text=True, check=False)
        if worker.returncode:
            raise SystemExit(f"{name}, {what}: {worker.stderr[-2000:]}")
        found = json.loads(worker.stdout)
        grown = subprocess.run([*own[:2], "--resident", place], capture_output=True, text=True, check=True).stdout
    kept = found["traced"] / found["written"]
    good = exact and seconds <= SECONDS and found["back"] <= BACK and kept <= KEPT
    return [
        name,
        what,
        f"{node}{list(element)}" if exact else f"NOT {node}{list(element)}: {hit['text']}",
        f"{seconds:.1f}",
        f"{used:.1f}",
        f"{found['back']:.2f}",
        f"{found['written'] / 2**20:.0f}",
        f"{kept:.3f}",
        f"{found['counted'] / found['written']:.3f}",
        f"{int(grown) / found['written']:.3f}",
        f"{(found['traced'] - found['written']) / found['steps']:.0f}",
        "yes" if good else "NO",
    ]


def main() -> None:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--one", type=Path)
    parser.add_argument("--resident", type=Path)
    parser.add_argument("--command", default="")
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one, arguments.command)
        return
    if arguments.resident:
        resident(arguments.resident)
        return
    table = Table(title=f"one command, at most {SECONDS:.0f} s; one step back, {BACK:.0f} ms; kept, {KEPT} of written")
    for column in ("net", "fault", "found at"):
        table.add_column(column)
    for column in ("command s", "of CPU", "back ms", "written MB", "kept", "states", "pages", "bytes a step", "met"):
        table.add_column(column, justify="right")
    for name in arguments.nets.split(","):
        for what in arguments.faults.split(","):
            table.add_row(*measured(name, what))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
