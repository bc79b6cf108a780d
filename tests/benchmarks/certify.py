"""Benchmark of certification: generated graphs of growing size, side by side with onnx's own checker.

    python tests/benchmarks/certify.py [--sizes 1000,10000,100000] [--keep FOLDER]

Each measurement is a process of its own, its start included; memory is the peak of what that process and the workers
that it starts hold together, shared pages counted once (Linux: PSS, sampled 20 times a second). The graph rule sets
are asked for alone (`--no-others`), then the default command as a person types it, which judges every rule set.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx
from onnx import TensorProto, helper
from rich.console import Console
from rich.table import Table

GRAPH_RULES = ["--rules", "sonnx-2025-05", "--rules", "sonnx-2025-10", "--no-others", "--format", "json"]
CHECKER = "import onnx, sys; onnx.checker.check_model(sys.argv[1], full_check=True)"
COLUMNS = [
    *("model", "bytes", "graph rule sets s", "MB", "exit", "default command s", "MB", "exit"),
    *("onnx.checker s", "MB", "ratio"),
]


def graph(nodes: int, seed: int = 1) -> onnx.ModelProto:
    """A conforming model of `nodes` nodes: a chain with skips and fan-out, each fiftieth step an If with two bodies."""
    choose = random.Random(seed)
    steps: list[onnx.NodeProto] = []
    made = ["x"]
    count = 0
    while count < nodes:
        name, last = f"t{count}", made[-1]
        if count % 50 == 49 and count + 5 <= nodes:
            branches = {
                key: helper.make_graph(
                    [
                        helper.make_node(op, [last], [f"{key}{count}a"], f"{key}{count}"),
                        helper.make_node("Add", [f"{key}{count}a", choose.choice(made[-40:])], [f"{key}{count}"]),
                    ],
                    f"{key}{count}",
                    [],
                    [helper.make_tensor_value_info(f"{key}{count}", TensorProto.FLOAT, [4])],
                )
                for key, op in (("then_branch", "Relu"), ("else_branch", "Neg"))
            }
            steps.append(helper.make_node("If", ["c"], [name], f"n{count}", **branches))
            count += 5
        elif count % 3 == 0:
            steps.append(helper.make_node("Relu", [last], [name], f"n{count}"))
            count += 1
        else:
            skip = made[-1 - min(len(made) - 1, choose.randint(1, 60))]
            steps.append(helper.make_node(choose.choice(["Add", "Mul", "Sub"]), [last, skip], [name], f"n{count}"))
            count += 1
        made.append(name)
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, [4]), value("c", TensorProto.BOOL, [])]
    whole = helper.make_graph(steps, "benchmark", inputs, [value(made[-1], TensorProto.FLOAT, [4])])
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def measure(command: list[str]) -> tuple[float, float, int]:
    """Wall time in seconds, peak memory in MB, exit code."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(resident, family(process.pid))))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    elapsed = time.perf_counter() - start
    if process.returncode not in (0, 1, 3) and process.stderr is not None:
        sys.stderr.write(process.stderr.read().decode(errors="replace"))
    return elapsed, peak / 1024, process.returncode


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(member for child in children for member in family(int(child)))]


def resident(pid: int) -> int:
    """The memory of a process in kB, each shared page divided among those that share it; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> None:
    """Generate, measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--keep", type=Path, help="keep the generated models in this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        models = {}
        for size in map(int, arguments.sizes.split(",")):
            models[f"{size:,} nodes"] = target = folder / f"graph-{size}.onnx"
            target.write_bytes(graph(size).SerializeToString())
        light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
        if light.exists():
            models["light ResNet-50"] = light
        Console(width=130).print(compare(models))


def compare(models: dict[str, Path]) -> Table:
    """One row for each model: time and memory of the graph rule sets, of the default command, of onnx's checker."""
    table = Table(title="sonnx certify and onnx.checker.check_model(full_check=True), process start included")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    sonnx = [sys.executable, "-c", "from sonnx.spec.cli import main; main()", "certify"]
    subprocess.run([*sonnx, "--explain", "C1"], stdout=subprocess.DEVNULL, check=True)
    for name, path in models.items():
        rules = measure([*sonnx, str(path), *GRAPH_RULES])
        default = measure([*sonnx, str(path)])
        checker = measure([sys.executable, "-c", CHECKER, str(path)])
        cells = [f"{v[0]:.2f} {v[1]:.0f}".split() for v in (rules, default, checker)]
        ours = [*cells[0], str(rules[2]), *cells[1], str(default[2])]
        table.add_row(name, f"{path.stat().st_size:,}", *ours, *cells[2], f"{rules[0] / checker[0]:.1f}")
    return table


if __name__ == "__main__":
    main()
