"""`sonnx compare`: two engines on one model, node by node and end to end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from sonnx.semantics.commands.options import PATH, check_sizes, check_writable, deliver, size_option
from sonnx.spec.terminal import progress_bar

if TYPE_CHECKING:
    from sonnx.semantics.model.graph import Model
    from sonnx.semantics.runtimes.engines.protocol import Values


@click.command()
@click.argument("model", type=PATH)
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help="machine, numpy, onnxruntime, onnxruntime-disabled, reference, backend:MODULE, or numpy:FILE.py with"
    " kernels of your own; twice. The machine is the first where one is named.",
)
@click.option(
    "--inputs",
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help=".npy, .npz or .pb; FILE.npz alone: all; repeatable.",
)
@click.option(
    "--random",
    "seed",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="Draw the inputs that are not given; every second case has special values.",
)
@size_option
@click.option("--cases", type=click.IntRange(min=1), default=1, show_default=True, help="How often to draw.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output", type=PATH, metavar="FILE", help="Write the report to a file instead of standard output.")
def compare(
    model: Path,
    engines: tuple[str, ...],
    inputs: tuple[str, ...],
    seed: int | None,
    sizes: dict[str, int],
    cases: int,
    form: str,
    output: Path | None,
) -> None:
    """Compare two engines on MODEL: is what each computes allowed by the specification, and how far are they apart?

    Every node of an engine is judged on the values that the engine itself fed to it, against the bound that follows
    from the operator's definition. MODEL may be a folder that `sonnx fuzz` stored.

    Exit code: 0 agree, 1 diverge, 2 unreadable input or usage, 3 could not compare.

    \b
    Examples:
      sonnx compare model.onnx --engine numpy --engine onnxruntime --random 1 --size N=3
      sonnx compare finding --engine numpy --engine machine
    """
    from sonnx.semantics.model.loader import load
    from sonnx.semantics.runtimes.engines.registry import engine
    from sonnx.semantics.runtimes.engines.sources import source_of

    from ..runtimes.differential.comparison import EXIT, Verdict
    from ..runtimes.differential.comparison import compare as judge
    from ..runtimes.differential.json_report import to_json
    from ..runtimes.differential.rendering import write

    chosen = ("machine", *engines) if len(engines) == 1 else engines
    if len(chosen) != 2:
        raise click.UsageError("name one or two engines with --engine")
    if cases > 1 and seed is None:
        raise click.UsageError("--cases needs --random SEED")
    check_sizes(sizes, seed)
    check_writable(output)
    model, inputs = _stored(model, inputs, seed)
    first, second = engine(chosen[0]), engine(chosen[1])
    loaded = load(model)
    source = source_of(loaded, model)
    drawn = list(_cases(loaded, inputs, seed, sizes, cases))
    with progress_bar() as bar:
        comparisons = judge(source, (first, second), drawn, lambda what: bar(what, 0, 0))
    named = [(it.name, it.version) for it in (first, second)]
    if form == "json":
        deliver(to_json(model.name, named, comparisons), output)
    else:
        deliver(lambda console: write(console, model.name, loaded, named, comparisons), output)
    verdicts = {case.verdict for case in comparisons}
    worst = next((v for v in (Verdict.DIVERGE, Verdict.NOT_COMPARED, Verdict.AGREE) if v in verdicts), Verdict.AGREE)
    sys.exit(EXIT[worst])


def _stored(model: Path, inputs: tuple[str, ...], seed: int | None) -> tuple[Path, tuple[str, ...]]:
    """The model and the inputs of a reproducer, where a folder is named."""
    if not model.is_dir():
        return model, inputs
    given = model / "inputs.npz"
    return model / "model.onnx", (str(given),) if given.exists() and not inputs and seed is None else inputs


def _cases(
    model: Model, inputs: tuple[str, ...], seed: int | None, sizes: dict[str, int], count: int
) -> Iterator[tuple[str, Values]]:
    """Names and inputs of the cases. Raises ModelError for inputs that do not fit the model, or each other."""
    from sonnx.semantics.machine.files.numpy_files import named_inputs
    from sonnx.semantics.machine.inputs import bound_inputs, declared_inputs, random_inputs
    from sonnx.semantics.model.path import quote

    from ..runtimes.differential.special_values import with_special_values

    given = named_inputs(model, inputs)
    if seed is None:
        missing = [name for name, (_, _, needed) in declared_inputs(model).items() if needed and name not in given]
        if missing:
            said = f"no value is given for {quote(missing[0])}"
            raise click.UsageError(f"{said}: name a file with --input, or --random SEED")
        yield "the given inputs" if given else "no inputs", given
        return
    for number in range(count):
        drawn, open_sizes = random_inputs(model, seed + number, given, sizes)
        bound_inputs(model, {**given, **drawn})
        ones = f", with size 1 for {', '.join(open_sizes)}" if open_sizes else ""
        label = f"seed {seed + number}{ones}"
        if number % 2:
            yield f"{label}, special values", {**given, **with_special_values(drawn, seed + number)}
        else:
            yield label, {**given, **drawn}
