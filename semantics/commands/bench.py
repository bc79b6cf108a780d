"""`sonnx bench`: how long engines take for a model, side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from .options import PATH, counted, input_option, provider_option, size_option

if TYPE_CHECKING:
    from ..runtimes.benchmark import Measured

ENGINES = ("machine", "numpy", "numba", "onnxruntime", "onnxruntime-disabled")


@click.command()
@click.argument("model", type=PATH)
@click.option(
    "--engine",
    "engines",
    type=click.Choice(ENGINES),
    multiple=True,
    help="Repeatable; the first one is what the others are compared with. [default: numpy]",
)
@provider_option
@input_option
@click.option(
    "--random",
    "seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="SEED",
    help="Draw the inputs that are not given.",
)
@size_option
@click.option("--repeat", type=click.IntRange(min=1), default=10, show_default=True, help="Timed runs.")
@click.option("--warm", type=click.IntRange(min=0), default=2, show_default=True, help="Runs before those.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of linear algebra. [default: all cores]")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def bench(
    model: Path,
    engines: tuple[str, ...],
    providers: tuple[str, ...],
    inputs: tuple[str, ...],
    seed: int,
    sizes: dict[str, int],
    repeat: int,
    warm: int,
    threads: int | None,
    form: str,
) -> None:
    """Measure how long engines take to run MODEL: median and least time, peak memory, ratio to the first engine.

    Each engine runs in a process of its own. With --provider the fast path with these providers is one row more. Under
    a row of the fast path stands what each provider runs, and how many bytes of tensors it had at one time.

    Exit code: 0 done, 1 an engine failed, 2 unreadable input or usage.

    \b
    Examples:
      sonnx bench model.onnx --engine numpy --engine onnxruntime
      sonnx bench model.onnx --engine numpy --provider onnxruntime
    """
    from sonnx.spec.terminal import progress_bar

    from ..machine.files.numpy_files import named_inputs
    from ..machine.inputs import bound_inputs, random_inputs
    from ..model.loader import load
    from ..runtimes.benchmark import measured
    from ..runtimes.fastpath.providers import chosen_providers

    loaded = load(model)
    given = named_inputs(loaded, inputs)
    given = {**given, **random_inputs(loaded, seed, given, sizes)[0]}
    bound_inputs(loaded, given)
    chosen_providers(providers)  # a name that there is not is said before anything is measured
    asked: list[tuple[str, tuple[str, ...]]]
    asked = [(engine, ()) for engine in dict.fromkeys(engines or (() if providers else ("numpy",)))]
    asked += [("numpy", providers)] if providers else []
    rows = []
    with progress_bar(counted=True) as bar:
        for number, (engine, named) in enumerate(asked):
            rows.append(measured(engine, model, given, providers=named, repeat=repeat, warm=warm, threads=threads))
            bar("engines", number + 1, len(asked))
    if form == "json":
        click.echo(_json(rows, model, threads))
    else:
        _table(rows)
    sys.exit(1 if any(row.failure for row in rows) else 0)


def _ratio(row: Measured, first: Measured) -> float | None:
    return row.median / first.median if row.runs and first.runs else None


def _table(rows: list[Measured]) -> None:
    from rich.table import Table
    from sonnx.spec.terminal import error_console, inert, output_console, print_line

    from ..machine.report import sizes

    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("engine")
    for heading in ("median", "min", "loading", "peak memory", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        ratio = _ratio(row, rows[0])
        if row.runs:
            times = [_time(seconds) for seconds in (row.median, min(row.runs), row.loading)]
            table.add_row(row.engine, *times, sizes(row.peak), "" if ratio is None else f"{ratio:.2f}")
        else:
            table.add_row(row.engine, *["-"] * 5)
    output_console().print(table)
    for row in rows:
        for it in row.providers:
            own = f"; its process {sizes(it.process)}" if it.process else ""
            said = f"{row.engine}: {it.provider}, {counted(it.nodes, it.parts)}, tensors {sizes(it.tensors)}{own}"
            print_line(output_console(), inert(said))
        if row.failure:
            print_line(error_console(), inert(f"{row.engine}: {row.failure}"))


def _time(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1e3:.3f} ms"


def _json(rows: list[Measured], model: Path, threads: int | None) -> str:
    import json

    entries = [
        {
            "engine": row.engine,
            "failure": row.failure or None,
            "median_seconds": row.median if row.runs else None,
            "min_seconds": min(row.runs, default=None),
            "seconds": list(row.runs),
            "loading_seconds": row.loading,
            "peak_bytes": row.peak,
            "ratio": _ratio(row, rows[0]),
            "providers": [
                {
                    "provider": it.provider,
                    "nodes": it.nodes,
                    "parts": it.parts,
                    "tensor_bytes": it.tensors,
                    "process_bytes": it.process,
                }
                for it in row.providers
            ],
        }
        for row in rows
    ]
    return json.dumps({"model": model.name, "threads": threads, "engines": entries}, indent=2)
