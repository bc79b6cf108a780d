"""How long each kind of work takes in one run of a net on the fast path by NumPy.

    python tests/benchmarks/kinds.py [--nets resnet50,squeezenet] [--threads 2] [--seconds 2]

A row for each net, in milliseconds by the clock of the thread that runs the net, so that the kinds add up to `sum`:

    products     matrices multiplied
    gathers      elements copied to where a product reads them, and from where it writes, in convolutions
    chains       elementwise functions: chains, and sums of the products of a convolution
    pooling      MaxPool and AveragePool
    copies       Concat, and Reshape of what is transposed
    others       all other kernels
    kernels      Python between the calls of NumPy that a kernel consists of, and the hand-over to other threads
    loop         Python of the run itself
    waiting      for another thread

`beside` is what other threads work meanwhile, which is no part of the sum; `plain` is the least time of a run without
clocks. A clock takes half a microsecond for each call, and a run with clocks is given as the median of many.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from threading import get_ident, local
from typing import Any

import fastpath
import numpy as np

KINDS = ("products", "gathers", "chains", "pooling", "copies", "others", "kernels", "loop", "waiting")
NOW = time.perf_counter


class Clock:
    """Seconds of each kind since they were last asked for, on the thread that made the clock, and on others."""

    def __init__(self) -> None:
        self.home = get_ident()
        self.seconds: Counter[str] = Counter()
        self.beside = 0.0
        self._open = local()

    def timed(self, kind: str, function: Any, *arguments: Any) -> Any:
        """What the function gives; its time counts as this kind, without what it calls of other kinds."""
        stack = self._open.__dict__.setdefault("stack", [])
        stack.append(0.0)
        start = NOW()
        try:
            return function(*arguments)
        finally:
            took = NOW() - start
            inner = stack.pop()
            if stack:
                stack[-1] += took
            if get_ident() == self.home:
                self.seconds[kind] += took - inner
            elif not stack:
                self.beside += took

    def taken(self) -> dict[str, float]:
        """The seconds of all kinds, which begin anew."""
        given = {kind: self.seconds[kind] for kind in KINDS} | {"beside": self.beside}
        self.seconds.clear()
        self.beside = 0.0
        return given


def kind_of(call: Any, of_step: str) -> str:
    """The kind of a call that a step consists of."""
    function = getattr(call, "func", call)
    if of_step != "gathers":
        return of_step
    return "products" if function is np.matmul else "chains" if isinstance(function, np.ufunc) else "gathers"


def kind_of_step(where: str) -> str:
    """The kind of what a step does, `gathers` where it is one for each call."""
    operators = {it.partition("-")[0] for it in where[where.rindex("(") + 1 : -1].split(" ")}
    if operators & {"MaxPool", "AveragePool"}:
        return "pooling"
    return "copies" if operators & {"Concat", "Reshape", "Transpose"} else "gathers"


def clocked(session: Any, clock: Clock) -> None:
    """Has the steps of a session timed."""
    from sonnx.semantics.runtimes.fastpath import repeating, workers

    kinds: dict[int, str] = {}
    do, wait = repeating.Phase.run, workers._Job.wait

    def work(phase: Any, part: int, worker: int) -> None:
        key, kind = (part, worker), kinds.get(id(phase), "gathers")
        if key not in phase._known:
            phase._known[key] = phase._calls(part, worker)
        for call in phase._known[key]:
            clock.timed(kind_of(call, kind), call)

    repeating.Phase.run = lambda phase: clock.timed("kernels", do, phase)  # type: ignore[method-assign]
    repeating.Phase._work = (  # type: ignore[method-assign]
        lambda phase, part, worker: clock.timed("kernels", work, phase, part, worker)
    )
    workers._Job.wait = lambda job: clock.timed("waiting", wait, job)  # type: ignore[method-assign]

    def step_of(step: Any) -> Any:
        if isinstance(step.compute, repeating.Repeatable):
            make, kind = step.compute.ready, kind_of_step(step.where)

            def ready(inputs: Any, allocate: Any) -> Any:
                made = clock.timed("kernels", make, inputs, allocate)
                kinds.update((id(phase), kind) for phase in made.phases)
                return made

            return replace(step, compute=repeating.Repeatable(ready))
        return replace(step, compute=lambda *arguments: clock.timed("others", step.compute, *arguments))

    variant = session._variant(frozenset())
    steps = tuple(map(step_of, variant.compiled.steps))
    session._variants[frozenset()] = replace(variant, compiled=replace(variant.compiled, steps=steps))


def profile(net: str, seconds: float) -> dict[str, float]:
    """Seconds of a run by kind."""
    import onnx
    from layer_models import LAYERS
    from light_models import image, light_model
    from sonnx.semantics.runtimes.fastpath import Session

    proto = LAYERS[net]() if net in LAYERS else light_model(net)
    inputs: Mapping[str, Any] = image(proto)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(proto, Path(folder, "net.onnx"))
        plain = min(took(Session(Path(folder, "net.onnx")), inputs, seconds))
        session = Session(Path(folder, "net.onnx"))
        clock = Clock()
        clocked(session, clock)
        rows: list[dict[str, float]] = []

        class Clocked:
            def run(self, names: None, feed: Mapping[str, Any]) -> None:
                clock.timed("loop", session.run, names, feed)
                rows.append(clock.taken())

        took(Clocked(), inputs, seconds)
    usual = {kind: median(row[kind] for row in rows[len(rows) // 4 :]) for kind in (*KINDS, "beside")}
    return {"plain": plain, "sum": sum(usual[kind] for kind in KINDS), **usual}


def took(session: Any, inputs: Mapping[str, Any], seconds: float) -> list[float]:
    """The seconds of runs, one after the other."""
    until, made = NOW() + seconds, list[float]()
    while len(made) < 8 or NOW() < until:
        start = NOW()
        session.run(None, inputs)
        made.append(NOW() - start)
    return made


def main() -> None:
    """Print the table, each net measured in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join((*fastpath.NETS, *fastpath.LAYERS)))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--one")
    arguments = parser.parse_args()
    if arguments.one:
        figures = profile(arguments.one, arguments.seconds).values()
        sys.stdout.write(f"{arguments.one:14}" + "".join(f"{it * 1e3:9.2f}" for it in figures) + "\n")
        return
    sys.stdout.write(f"{'net':14}" + "".join(f"{it:>9}" for it in ("plain", "sum", *KINDS, "beside")) + "\n")
    environment = fastpath.surroundings(arguments.threads)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(name, None)
    for net in arguments.nets.split(","):
        sys.stdout.flush()
        command = [sys.executable, __file__, "--one", net, "--seconds", str(arguments.seconds)]
        subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    main()
