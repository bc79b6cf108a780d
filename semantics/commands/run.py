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
from sonnx.spec.terminal import progress_bar

from . import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sonnx.spec.terminal import Progress

    from ..machine.allocation.observed import AllocationObserver
    from ..machine.consistency import Consistent
    from ..machine.execution import Run
    from ..machine.schedule import Schedule
    from ..machine.trace.writing import Tracer
    from ..model.graph import Model
    from ..model.values import Value
    from ..runtimes.engines.protocol import Failure

MACHINE = "machine"
OF_THE_MACHINE = {
    "schedule": "--schedule",
    "allocation": "--allocation",
    "trace": "--trace",
    "picture": "--picture",
    "max_memory": "--max-memory",
    "max_steps": "--max-steps",
    "max_time": "--max-time",
    "check_consistency": "--check-consistency",
    "reference": "--reference",
    "draws": "--draws",
}
"""The options that only the machine has."""
OF_THE_REFERENCE = frozenset({"reference", "draws", "max_steps"})
"""Those that the reference interpreter has too."""


@click.command()
@click.argument("model", type=options.PATH)
@options.input_option
@options.random_option
@options.size_option
@click.option(
    "--engine",
    metavar="ENGINE",
    default=MACHINE,
    show_default=True,
    help="machine, numpy (the fast path), numba (extra [jit]), onnxruntime (extra [ort]), or another installed one.",
)
@options.provider_option
@options.schedule_option
@options.allocation_option
@click.option("--output", type=options.PATH, metavar="FILE.npz", help="Write the outputs.")
@click.option("--trace", type=options.PATH, help="Write the steps, chained by SHA-256, for `sonnx replay`.")
@click.option("--picture", type=options.PATH, metavar="FILE.svg", help="Draw what lay where in memory, and when.")
@click.option(
    "--check-consistency",
    is_flag=True,
    help="Apply every node once more to the values of the run, bit by bit. Takes about as long as the run.",
)
@click.option(
    "--reference",
    is_flag=True,
    help="Execute the rules of part 3 word by word, without the fast machine. Slow.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="SEED",
    help="Draw the results of random operators from this seed.",
)
@options.max_memory_option
@options.max_steps_option
@click.option("--max-time", type=options.SECONDS, metavar="SECONDS", help="Greatest time.")
@click.pass_context
def run(
    context: click.Context,
    model: Path,
    inputs: tuple[str, ...],
    seed: int | None,
    sizes: dict[str, int],
    engine: str,
    providers: tuple[str, ...],
    schedule: Schedule,
    allocation: str,
    output: Path | None,
    trace: Path | None,
    picture: Path | None,
    check_consistency: bool,
    reference: bool,
    draws: int,
    max_memory: int | None,
    max_steps: int | None,
    max_time: float | None,
) -> None:
    """Run MODEL step by step, every operator by its text in the specification, or fast, by another engine.

    Exit code: 0 done, 1 stuck or not consistent, 2 unreadable input or usage, 3 an operator has no meaning here.

    \b
    Examples:
      sonnx run model.onnx --random 1 --trace run.jsonl
      sonnx run model.onnx --input image=image.npy --provider machine:only=Softmax --provider onnxruntime
    """
    options.check_sizes(sizes, seed)
    if providers:
        if context.get_parameter_source("engine") is not ParameterSource.DEFAULT:
            raise click.UsageError("--provider is of the fast path: leave --engine out")
        engine = "numpy"
    if engine != MACHINE:
        for key, text in OF_THE_MACHINE.items():
            if context.get_parameter_source(key) is not ParameterSource.DEFAULT:
                raise click.UsageError(_not_of(engine, text))
        sys.exit(_by_engine(engine, providers, model, inputs, seed, sizes, output))
    if reference:
        for key, text in OF_THE_MACHINE.items():
            if key not in OF_THE_REFERENCE and context.get_parameter_source(key) is not ParameterSource.DEFAULT:
                raise click.UsageError(f"{text} is an option of the fast machine, not of --reference")
        sys.exit(_by_reference(model, inputs, seed, sizes, output, draws, max_steps))
    from ..machine.execution import Limits
    from ..model.loader import load
    from ..resources.process import memory_budget

    options.check_writable(output, trace, picture)
    budget = memory_budget(max_memory)
    loaded = load(model)
    _check_apart((output, trace, picture), loaded, inputs)
    given, notes = _inputs(loaded, inputs, seed, sizes)
    from ..machine.allocation.observed import AllocationObserver
    from ..machine.drawn import DrawnObserver
    from ..machine.execution import run as run_model

    placed = AllocationObserver()
    started = time.monotonic()
    with ExitStack() as stack:
        bar = stack.enter_context(progress_bar(counted=True))
        judged = _judge(loaded, given, bar) if check_consistency else None
        tracer, drawn = _tracer(trace, stack, judged), DrawnObserver()
        done = run_model(
            loaded,
            given,
            schedule,
            allocation=allocation,
            max_memory=budget,
            limits=Limits(max_steps, max_time),
            observers=[it for it in (placed, drawn, judged, tracer) if it is not None],
            history=False,
            progress=partial(bar, "steps"),
            draws=draws,
        )
    seconds = time.monotonic() - started - (0.0 if judged is None else judged.seconds)
    if done.states:
        placed.confirm()
    notes += drawn.lines(draws)
    _report(done, placed, tracer, seconds, notes, engine)
    consistent = _consistency_report(judged)
    _files(done, placed, output, picture, model.name)
    sys.exit(0 if done.stuck is None and consistent else 1)


def _not_of(engine: str, option: str) -> str:
    """Why an option is refused."""
    why = f"{option} is an option of the machine, not of the engine {engine}"
    if option != OF_THE_MACHINE["check_consistency"]:
        return why
    return f"{why}, which may sum in another order: `sonnx compare --engine {engine}` judges its nodes within bounds"


# ---- The reference ----------------------------------------------------------------------------


def _by_reference(
    path: Path,
    inputs: tuple[str, ...],
    seed: int | None,
    sizes: dict[str, int],
    output: Path | None,
    draws: int,
    steps: int | None,
) -> int:
    """Runs a model by the reference interpreter and returns the exit code."""
    from sonnx.spec.terminal import error_console, output_console

    from ..machine.files.numpy_files import write_npz
    from ..machine.reference.running import run_model
    from ..machine.report import outputs_table, stuck_lines, write
    from ..model.loader import load

    options.check_writable(output)
    loaded = load(path)
    _check_apart((output,), loaded, inputs)
    given, notes = _inputs(loaded, inputs, seed, sizes)
    started = time.monotonic()
    done = run_model(loaded, given, draws=draws, steps=steps)
    console = output_console()
    write(console, tuple(notes))
    if done.outputs:
        console.print(outputs_table(done.outputs))
    line = f"{done.steps} steps by the rules of part 3, the first node that may take one taking it"
    write(console, (_timed(line, time.monotonic() - started),))
    if done.stuck is not None:
        write(error_console(), stuck_lines(done.stuck))
        return 1
    if output is not None:
        write_npz(output, done.outputs)
    return 0


# ---- Another engine ---------------------------------------------------------------------------


def _by_engine(
    name: str,
    providers: tuple[str, ...],
    path: Path,
    inputs: tuple[str, ...],
    seed: int | None,
    sizes: dict[str, int],
    output: Path | None,
) -> int:
    """Runs a model on an engine of that name, or by providers, and returns the exit code."""
    from ..model.loader import load
    from ..runtimes.engines.own import NumpySession
    from ..runtimes.engines.protocol import Failure, Kind
    from ..runtimes.engines.registry import engine, with_providers
    from ..runtimes.engines.sources import source_of

    options.check_writable(output)
    chosen, loaded = with_providers(providers) if providers else engine(name), load(path)
    _check_apart((output,), loaded, inputs)
    given, notes = _inputs(loaded, inputs, seed, sizes)
    from ..machine.inputs import bound_inputs

    bound_inputs(loaded, given)
    session = chosen.open(source_of(loaded, path))
    if isinstance(session, Failure):
        return _failed(chosen.name, session)
    started = time.monotonic()
    done = session.run(given)
    seconds = time.monotonic() - started
    session.close()
    if isinstance(done, Failure):
        return _failed(chosen.name, done)
    from ..machine.inputs import contradicted
    from ..machine.memory import type_of

    main, tensors = loaded.graphs[0], loaded.tensors
    types = {t: type_of(given[tensors[t].name]) for t in main.inputs if tensors[t].name in given}
    wrong = contradicted(loaded, types, {t: done.get(tensors[t].name) for t in main.outputs})
    if wrong is not None:
        return _failed(chosen.name, Failure(Kind.OUTSIDE, wrong))
    from sonnx.spec.terminal import output_console

    from ..machine.report import outputs_table, write

    console = output_console()
    write(console, tuple(notes))
    console.print(outputs_table(done))
    write(console, (_timed(f"run by {chosen.name} {chosen.version}".rstrip(), seconds),))
    if providers and isinstance(session, NumpySession):
        write(console, tuple(f"{by}: {options.counted(*it)}" for by, it in session.counts().items()))
    if output is not None:
        from ..machine.files.numpy_files import write_npz

        write_npz(output, done)
    return 0


def _failed(name: str, failure: Failure) -> int:
    """Prints why an engine gives no outputs, and returns the exit code."""
    from sonnx.spec.terminal import error_console

    from ..machine.report import write
    from ..runtimes.engines.protocol import REFUSALS, Kind

    write(error_console(), (f"{name}: {failure}",))
    return 2 if failure.kind is Kind.INVALID else 3 if failure.kind in REFUSALS else 1


# ---- Inputs -----------------------------------------------------------------------------------


def _check_apart(targets: Sequence[Path | None], model: Model, inputs: tuple[str, ...]) -> None:
    """Refuse to write over the model or the values that are given."""
    files: Sequence[Path] = ()
    if inputs:
        from ..machine.files.numpy_files import input_files

        files = input_files(model, inputs)
    options.check_apart(targets, model, *files)


def _inputs(
    model: Model, given: tuple[str, ...], seed: int | None, sizes: dict[str, int]
) -> tuple[dict[str, Value], list[str]]:
    """The values of the inputs by name, and what should be said about them."""
    from ..machine.inputs import random_inputs

    values: dict[str, Value] = {}
    if given:
        from ..machine.files.numpy_files import named_inputs

        values = named_inputs(model, given)
    if seed is None:
        return values, []
    drawn, open_sizes = random_inputs(model, seed, values, sizes)
    notes = [f"inputs drawn from seed {seed}: {', '.join(drawn) or 'none'}"]
    if open_sizes:
        notes.append(f"sizes that the model leaves open, taken as 1: {', '.join(open_sizes)}")
    return {**values, **drawn}, notes


# ---- Results ----------------------------------------------------------------------------------


def _judge(model: Model, given: dict[str, Value], bar: Progress) -> Consistent:
    from ..machine.consistency import Consistent
    from ..machine.inputs import bound_inputs

    return Consistent(bound_inputs(model, given), partial(bar, "equations"))


def _consistency_report(judged: Consistent | None) -> bool:
    """Says what was found, and returns whether the run may go as it is."""
    from sonnx.spec.terminal import error_console, output_console

    from ..machine.report import consistency_lines, write

    if judged is None or judged.judgement is None:
        return True
    lines = consistency_lines(judged.judgement)
    if judged.judgement.failures:
        write(error_console(), lines)
        return False
    write(output_console(), tuple(_timed(line, judged.seconds) for line in lines))
    return True


def _tracer(trace: Path | None, stack: ExitStack, judged: Consistent | None) -> Tracer | None:
    if trace is None:
        return None

    def equations() -> int | None:
        consistency = None if judged is None else judged.judgement
        return None if consistency is None or consistency.failures else consistency.equations

    from ..machine.trace.format import SUFFIX
    from ..machine.trace.writing import Tracer

    text = stack.enter_context(trace.open("w", encoding="ascii", newline="\n"))
    return Tracer(text, stack.enter_context(trace.with_name(trace.name + SUFFIX).open("wb")), equations)


def _report(
    done: Run, placed: AllocationObserver, tracer: Tracer | None, seconds: float, notes: list[str], engine: str
) -> None:
    from sonnx.spec.terminal import error_console, output_console

    from ..machine.report import outputs_table, sizes, stuck_lines, write

    console = output_console()
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
        write(console, (_timed(line, seconds),))
    if tracer is not None and tracer.chain:
        write(console, (f"chain {tracer.chain}",))
    if done.stuck is not None:
        write(error_console(), stuck_lines(done.stuck))


def _timed(line: str, seconds: float) -> str:
    """The line with the time that it took, which is told to people, not to programs."""
    return f"{line}; {seconds:.2f} s" if sys.stdout.isatty() else line


def _files(done: Run, placed: AllocationObserver, output: Path | None, picture: Path | None, name: str) -> None:
    if output is not None and done.stuck is None:
        from ..machine.files.numpy_files import write_npz

        write_npz(output, done.outputs)
    if picture is not None and done.states:
        from ..machine.allocation.observed import names
        from ..machine.allocation.picture import picture as drawn

        picture.write_text(drawn(placed.plan(), names(done.states[-1]), name), encoding="utf-8")
