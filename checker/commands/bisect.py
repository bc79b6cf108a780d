"""`sonnx bisect`: the optimizer of a runtime without which its result would be one that the specification allows."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from sonnx.semantics.commands.options import (
    PATH,
    SECONDS,
    check_apart,
    check_sizes,
    check_writable,
    deliver,
    size_option,
)
from sonnx.spec.cli import exit_code
from sonnx.spec.terminal import Progress, inert, progress_bar

from .cases import drawn_cases, drawn_option, inputs_option, stored

if TYPE_CHECKING:
    from sonnx.semantics.runtimes.engines.protocol import Optimizing, Source, Values

    from ..runtimes.bisection.searching import Bisection


@click.command()
@click.argument("model", type=PATH)
@click.option("--engine", "name", required=True, metavar="NAME", help="An engine with optimizers: onnxruntime.")
@inputs_option
@drawn_option
@size_option
@click.option(
    "--cases",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="How often to draw until something is wrong.",
)
@click.option(
    "--bits",
    is_flag=True,
    help="Ask which optimizer changes a bit of the outputs, allowed or not: the outputs without optimizers decide.",
)
@click.option(
    "--timeout", type=SECONDS, default=60.0, show_default=True, help="Seconds for each case, making it small included."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--report", type=PATH, metavar="FILE", help="Write the report to a file instead of standard output.")
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE.onnx",
    help="Write the smallest model that shows it, and its inputs as FILE.npz beside it.",
)
def bisect(
    model: Path,
    name: str,
    inputs: tuple[str, ...],
    seed: int | None,
    sizes: dict[str, int],
    cases: int,
    bits: bool,
    timeout: float,
    as_json: bool,
    report: Path | None,
    output: Path | None,
) -> None:
    """Name the optimizer, or the set of optimizers, with which an engine gives what the specification does not allow.

    MODEL is run with all optimizers and with none, judged by what any execution of the model may give, and run again
    with optimizers switched off by halves, each run in a process of its own; a session that fails, a crash and a
    time-out are results like others. Where the whole model shows nothing, the parts that optimizers change are asked
    alone. MODEL may be a folder that `sonnx fuzz` stored.

    Exit code: 0 nothing wrong, 1 something wrong (with the optimizers that are guilty, or without optimizers too),
    2 unreadable input or usage, 3 undecided.

    \b
    Examples:
      sonnx bisect model.onnx --engine onnxruntime --random 1
      sonnx bisect model.onnx --engine onnxruntime --input x=x.npy -o smallest.onnx
    """
    from sonnx.semantics.machine.files.numpy_files import input_files
    from sonnx.semantics.model.loader import load
    from sonnx.semantics.runtimes.engines.protocol import Optimizing
    from sonnx.semantics.runtimes.engines.registry import started
    from sonnx.semantics.runtimes.engines.sources import source_of

    from ..runtimes.bisection.json_report import to_json
    from ..runtimes.bisection.rendering import write
    from ..runtimes.bisection.searching import EXIT

    check_sizes(sizes, seed)
    small = None if output is None else output.with_suffix(".npz")
    check_writable(report, output, small)
    if output is not None and output.suffix != ".onnx":
        raise click.UsageError("-o names a file that ends in .onnx")
    engine = started(name)
    if not isinstance(engine, Optimizing):
        raise click.UsageError(f"the engine {inert(name)!r} has no optimizers that can be switched off")
    model, inputs = stored(model, inputs, seed)
    loaded = load(model)
    check_apart((report, output, small), loaded, *input_files(loaded, inputs))
    drawn = drawn_cases(loaded, inputs, seed, sizes, cases if seed is not None else 1)
    done = _first_wrong(engine, source_of(loaded, model), list(drawn), bits, timeout)
    if as_json:
        deliver(to_json(model.name, engine, done), report)
    else:
        deliver(lambda console: write(console, model.name, engine, done), report)
    last = done[-1]
    if output is not None and last.smallest is not None:
        from ..runtimes.bisection.reducing import store

        store(last.smallest.case, output, output.with_suffix(".npz"))
    if last.stopped is not None:
        click.echo("interrupted: what is known so far is shown", err=True)
        sys.exit(exit_code(last.stopped))
    codes = {EXIT[it.verdict] for it in done}
    sys.exit(next((it for it in (1, 3) if it in codes), 0))


def _first_wrong(
    engine: Optimizing, source: Source, drawn: list[tuple[str, Values]], bits: bool, seconds: float
) -> list[Bisection]:
    """The cases up to the first that is wrong."""
    from ..runtimes.bisection.searching import Verdict
    from ..runtimes.bisection.searching import bisect as search
    from ..runtimes.bisection.trials import Criterion

    criterion = Criterion.BITS if bits else Criterion.SPECIFICATION
    done: list[Bisection] = []
    with progress_bar() as bar:
        for label, feeds in drawn:
            tell = partial(_tell, bar, label)
            done.append(search(engine, source, label, feeds, criterion=criterion, seconds=seconds, tell=tell))
            if done[-1].verdict in (Verdict.GUILTY, Verdict.PLAIN) or done[-1].stopped is not None:
                break
    return done


def _tell(bar: Progress, label: str, what: str) -> None:
    bar(f"{label}: {what}", 0, 0)
