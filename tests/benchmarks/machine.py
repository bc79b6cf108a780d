"""Benchmark of the machine on long chains: steps per second with full history, and whether a step stays as cheap.

    python tests/benchmarks/machine.py [--nodes 100000] [--schedules topological,random:1,demand]

A chain of scalar nodes is run with all states kept, each schedule in a process of its own. `last/first` is the time of
the last thousand steps over that of the second thousand, when all is warm. Memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

COLUMNS = ("nodes", "schedule", "steps/s", "last/first", "states", "preparation s", "MB")
SPAN = 1000


def measure(nodes: int, schedule: str) -> dict[str, object]:
    """One chain under one schedule, in this process."""
    import numpy as np
    from onnx import TensorProto, helper
    from sonnx.semantics import load_proto, parse_schedule
    from sonnx.semantics.machine.execution import check_supported, check_well_formed, evaluate, initial
    from sonnx.semantics.operators.application import Stuck
    from sonnx.semantics.operators.compiled.ieee import apply

    steps = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(nodes)]
    ends = [helper.make_tensor_value_info(f"t{i}", TensorProto.FLOAT, []) for i in (0, nodes)]
    opsets = [helper.make_opsetid("", 18)]
    model = load_proto(helper.make_model(helper.make_graph(steps, "chain", ends[:1], ends[1:]), opset_imports=opsets))
    chosen = parse_schedule(schedule)
    if chosen is None:
        raise SystemExit(f"there is no schedule {schedule}")
    started = time.perf_counter()
    check_supported(model)
    wrong = check_well_formed(model)
    state = initial(model, {model.graphs[0].inputs[0]: np.array(2.5, np.float32)}, chosen, apply)
    if wrong is not None or isinstance(state, Stuck):
        raise SystemExit(f"the chain cannot be run: {wrong or state}")
    times = [time.perf_counter()]
    ending = evaluate(state, progress=lambda _done, _all: times.append(time.perf_counter()))
    if ending.stuck is not None or len(ending.choices) != nodes:
        raise SystemExit(f"the chain got stuck: {ending.stuck}")
    first = times[min(2 * SPAN, nodes)] - times[min(SPAN, nodes - 1)]
    return {
        "nodes": nodes,
        "schedule": schedule,
        "steps/s": round(nodes / (times[-1] - times[0])),
        "last/first": round((times[-1] - times[-1 - SPAN]) / first, 2),
        "states": len(ending.states),
        "preparation s": round(times[0] - started, 1),
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--schedules", default="topological,random:1,demand")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        sys.stdout.write(json.dumps(measure(options.nodes, options.schedules)))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*COLUMNS)
    for schedule in options.schedules.split(","):
        command = [sys.executable, __file__, "--alone", "--nodes", str(options.nodes), "--schedules", schedule]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        row = json.loads(done.stdout)
        table.add_row(*(str(row[column]) for column in COLUMNS))
    Console().print(table)


if __name__ == "__main__":
    main()
