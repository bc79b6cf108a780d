"""`sonnx run`: run a model on the small-step machine, or on another engine."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from click.core import ParameterSource
from sonnx.spec.progress import progress_bar

if TYPE_CHECKING:
    from ..engines.protocol import Failure
    from ..execution import Run
    from ..graph import Model
    from ..placements import Placements
    from ..trace import Tracer
    from ..values import Value

PATH = click.Path(path_type=Path)
WIDTH = 110
"""The width of a pipe, so that its text is stable."""
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MACHINE = "machine"
OF_THE_MACHINE = {
    "schedule": "--schedule",
    "allocation": "--allocation",
    "trace": "--trace",
    "picture": "--picture",
    "max_memory": "--max-memory",
    "max_steps": "--max-steps",
    "max_time": "--max-time",
}
"""The options that only the machine has."""
SHARE, CONFINED = (3, 4), (7, 8)
"""The part of the memory that M may have where nothing is said, and that the process may have."""


def byte_count(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """A number of bytes: 1000, 64K, 2G."""
    if text is None:
        return None
    digits, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not digits.isdecimal() or unit not in UNITS or len(digits) > 18:
        raise click.BadParameter("give a number of bytes, or one with K, M, G or T behind it")
    return int(digits) * UNITS[unit]


@click.command()
@click.argument("model", type=PATH)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help=".npy, .npz or .pb; FILE.npz alone: all; repeatable.",
)
@click.option(
    "--random", "seed", type=click.IntRange(min=0), metavar="SEED", help="Draw the inputs that are not given."
)
@click.option(
    "--engine",
    metavar="ENGINE",
    default=MACHINE,
    show_default=True,
    help="machine, numpy (the fast path), onnxruntime (extra [ort]), or another one that is installed.",
)
@click.option("--schedule", default="topological", show_default=True, help="topological, random:SEED or demand.")
@click.option("--allocation", type=click.Choice(["simple", "arena"]), default="simple", show_default=True)
@click.option("--output", type=PATH, metavar="FILE.npz", help="Write the outputs.")
@click.option("--trace", type=PATH, help="Write the steps, chained by SHA-256, for `sonnx replay`.")
@click.option("--picture", type=PATH, metavar="FILE.svg", help="Draw what lay where in memory, and when.")
@click.option(
    "--max-memory",
    callback=byte_count,
    metavar="BYTES",
    help="Greatest size of M. [default: three quarters of all memory]",
)
@click.option("--max-steps", type=click.IntRange(min=0), help="Greatest number of steps.")
@click.option("--max-time", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Greatest time.")
@click.pass_context
def run(
    context: click.Context,
    model: Path,
    inputs: tuple[str, ...],
    seed: int | None,
    engine: str,
    schedule: str,
    allocation: str,
    output: Path | None,
    trace: Path | None,
    picture: Path | None,
    max_memory: int | None,
    max_steps: int | None,
    max_time: float | None,
) -> None:
    """Run MODEL step by step, every operator by its text in the specification, or fast, by another engine.

    Exit code: 0 done, 1 stuck, 2 unreadable input or usage, 3 an operator has no meaning here.
    """
    if engine != MACHINE:
        for key, text in OF_THE_MACHINE.items():
            if context.get_parameter_source(key) is not ParameterSource.DEFAULT:
                raise click.UsageError(f"{text} is an option of the machine, not of the engine {engine}")
        sys.exit(_by_engine(engine, model, inputs, seed, output))
    from ..evaluators import Limits
    from ..loader import load
    from ..schedule import parse_schedule

    chosen = parse_schedule(schedule)
    if chosen is None:
        raise click.BadParameter("give topological, random:SEED or demand", param_hint="--schedule")
    _check_writable(output, trace, picture)
    budget = memory_budget(max_memory)
    loaded = load(model)
    given, notes = _inputs(loaded, inputs, seed)
    from ..execution import run as run_model
    from ..placements import Placements

    placed = Placements()
    started = time.monotonic()
    with ExitStack() as stack:
        tracer = _tracer(trace, stack)
        bar = stack.enter_context(progress_bar(counted=True))
        done = run_model(
            loaded,
            given,
            chosen,
            allocation=allocation,
            max_memory=budget,
            limits=Limits(max_steps, max_time),
            observers=[placed] if tracer is None else [placed, tracer],
            history=False,
            progress=None if bar is None else partial(bar, "steps"),
        )
    seconds = time.monotonic() - started
    if done.states:
        placed.confirm()
    _report(done, placed, tracer, seconds, notes, engine)
    _files(done, placed, output, picture, model.name)
    sys.exit(0 if done.stuck is None else 1)


# ---- Another engine ---------------------------------------------------------------------------


def _by_engine(name: str, path: Path, inputs: tuple[str, ...], seed: int | None, output: Path | None) -> int:
    """Runs a model on an engine of that name and returns the exit code."""
    from ..engines.protocol import Failure
    from ..engines.registry import engine
    from ..engines.sources import source_of
    from ..loader import load

    _check_writable(output)
    chosen, loaded = engine(name), load(path)
    given, notes = _inputs(loaded, inputs, seed)
    from ..run_inputs import bound_inputs

    bound_inputs(loaded, given)
    session = chosen.open(source_of(loaded, path))
    if isinstance(session, Failure):
        return _failed(name, session)
    started = time.monotonic()
    found = session.run(given)
    seconds = time.monotonic() - started
    session.close()
    if isinstance(found, Failure):
        return _failed(name, found)
    from rich.console import Console

    from ..run_report import outputs_table, write

    terminal = sys.stdout.isatty()
    console = Console(highlight=False) if terminal else Console(width=WIDTH, highlight=False, no_color=True)
    write(console, tuple(notes))
    console.print(outputs_table(found))
    line = f"run by {name} {chosen.version}".rstrip()
    write(console, (f"{line}; {seconds:.2f} s" if terminal else line,))
    if output is not None:
        from ..value_files import write_npz

        write_npz(output, found)
    return 0


def _failed(name: str, failure: Failure) -> int:
    """Prints why an engine gives no outputs, and returns the exit code."""
    from rich.console import Console

    from ..engines.protocol import REFUSALS, Kind
    from ..run_report import write

    width = None if sys.stderr.isatty() else WIDTH
    write(Console(stderr=True, highlight=False, width=width), (f"{name}: {failure}",))
    return 2 if failure.kind is Kind.INVALID else 3 if failure.kind in REFUSALS else 1


# ---- Inputs -----------------------------------------------------------------------------------


def _inputs(model: Model, given: tuple[str, ...], seed: int | None) -> tuple[dict[str, Value], list[str]]:
    """The values of the inputs by name, and what should be said about them."""
    from ..input_files import named_inputs
    from ..run_inputs import random_inputs

    values = named_inputs(model, given)
    if seed is None:
        return values, []
    drawn, open_sizes = random_inputs(model, seed, values)
    notes = [f"inputs drawn from seed {seed}: {', '.join(drawn) or 'none'}"]
    if open_sizes:
        notes.append(f"sizes that the model leaves open, taken as 1: {', '.join(open_sizes)}")
    return {**values, **drawn}, notes


def _check_writable(*targets: Path | None) -> None:
    """Refuse a file that cannot be written before the work is done."""
    for target in targets:
        if target is not None and (target.is_dir() or not target.absolute().parent.is_dir()):
            raise click.UsageError(f"cannot write {str(target)!r}: name a file in an existing folder")


def memory_budget(stated: int | None) -> int | None:
    """The greatest size of M. What operators compute beside it is confined too, as far as the system can."""
    from ..machine_memory import available, confine

    there = available()
    if there is None:
        return stated
    confine(there * CONFINED[0] // CONFINED[1])
    return there * SHARE[0] // SHARE[1] if stated is None else stated


# ---- Results ----------------------------------------------------------------------------------


def _tracer(trace: Path | None, stack: ExitStack) -> Tracer | None:
    if trace is None:
        return None
    from ..trace import Tracer
    from ..trace_format import SUFFIX

    text = stack.enter_context(trace.open("w", encoding="ascii", newline="\n"))
    return Tracer(text, stack.enter_context(trace.with_name(trace.name + SUFFIX).open("wb")))


def _report(
    done: Run, placed: Placements, tracer: Tracer | None, seconds: float, notes: list[str], engine: str
) -> None:
    from rich.console import Console

    from ..run_report import outputs_table, sizes, stuck_lines, write

    terminal = sys.stdout.isatty()
    console = Console(highlight=False) if terminal else Console(width=WIDTH, highlight=False, no_color=True)
    write(console, tuple(notes))
    if done.outputs:
        console.print(outputs_table(done.outputs))
    if done.states:
        state = done.states[-1]
        kind = "arena" if state.store.space.reuse else "simple"
        line = (
            f"{state.steps} steps of the {engine}, schedule {state.schedule}; memory {sizes(done.peak)} ({kind}),"
            f" at least {sizes(placed.lower_bound())} are needed"
        )
        write(console, (f"{line}; {seconds:.2f} s" if terminal else line,))
    if tracer is not None and tracer.chain:
        write(console, (f"chain {tracer.chain}",))
    if done.stuck is not None:
        write(
            Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else WIDTH), stuck_lines(done.stuck)
        )


def _files(done: Run, placed: Placements, output: Path | None, picture: Path | None, name: str) -> None:
    if output is not None and done.stuck is None:
        from ..value_files import write_npz

        write_npz(output, done.outputs)
    if picture is not None and done.states:
        from ..allocation_picture import picture as drawn
        from ..placements import names

        picture.write_text(drawn(placed.plan(), names(done.states[-1]), name), encoding="utf-8")
