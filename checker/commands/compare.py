"""`sonnx compare`: two engines on one model, node by node and end to end; or execution providers, part by part."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from sonnx.semantics.commands.options import (
    PATH,
    check_apart,
    check_sizes,
    check_writable,
    deliver,
    provider_option,
    size_option,
)
from sonnx.spec.pages import check_installed
from sonnx.spec.terminal import progress_bar

from .cases import drawn_cases, drawn_option, inputs_option, stored

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
    help="machine, numpy, onnxruntime, onnxruntime-disabled, reference, backend:MODULE, provider:NAME, or"
    " numpy:FILE.py with kernels of your own; twice. The machine is the first where one is named.",
)
@provider_option
@inputs_option
@drawn_option
@size_option
@click.option("--cases", type=click.IntRange(min=1), default=1, show_default=True, help="How often to draw.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output", type=PATH, metavar="FILE", help="Write the report to a file instead of standard output.")
@click.option("--graph", type=PATH, metavar="FILE.html", help="Draw the model with the standing of every node.")
def compare(
    model: Path,
    engines: tuple[str, ...],
    providers: tuple[str, ...],
    inputs: tuple[str, ...],
    seed: int | None,
    sizes: dict[str, int],
    cases: int,
    form: str,
    output: Path | None,
    graph: Path | None,
) -> None:
    """Compare two engines on MODEL: is what each computes allowed by the specification, and how far are they apart?

    Every node of an engine is judged on the values that the engine itself fed to it, against the bound that follows
    from the operator's definition. MODEL may be a folder that `sonnx fuzz` stored.

    With --provider in place of --engine the parts that execution providers are given are judged, one at a time: each
    alone on the values that the machine has at its boundary; and how far it is apart in a run by the providers, and how
    much of that it inherits, in ULP.

    Exit code: 0 agree, 1 diverge, 2 unreadable input or usage, 3 could not compare.

    \b
    Examples:
      sonnx compare model.onnx --engine numpy --random 1 --size N=3 --graph nodes.html
      sonnx compare model.onnx --provider onnxruntime --random 1
    """
    from sonnx.semantics.machine.files.numpy_files import input_files
    from sonnx.semantics.model.loader import load
    from sonnx.semantics.runtimes.engines.registry import engine
    from sonnx.semantics.runtimes.engines.sources import source_of

    from ..runtimes.differential.comparison import compare as judge
    from ..runtimes.differential.comparison import worst
    from ..runtimes.differential.json_report import to_json
    from ..runtimes.differential.rendering import write

    chosen = ("machine", *engines) if len(engines) == 1 else engines
    if providers and (engines or graph is not None):
        raise click.UsageError("--provider stands alone: leave --engine and --graph out")
    if len(chosen) != 2 and not providers:
        raise click.UsageError("name one or two engines with --engine, or providers with --provider")
    if cases > 1 and seed is None:
        raise click.UsageError("--cases needs --random SEED")
    check_sizes(sizes, seed)
    check_writable(output, graph)
    if graph is not None:
        check_installed()
    model, inputs = stored(model, inputs, seed)
    loaded = load(model)
    check_apart((output, graph), loaded, *input_files(loaded, inputs))
    if providers:
        values = list(drawn_cases(loaded, inputs, seed, sizes, cases))
        sys.exit(_by_parts(loaded, model.name, providers, values, form, output))
    first, second = engine(chosen[0]), engine(chosen[1])
    source = source_of(loaded, model)
    drawn = list(drawn_cases(loaded, inputs, seed, sizes, cases))
    with progress_bar() as bar:
        comparisons = judge(source, (first, second), drawn, lambda what: bar(what, 0, 0))
    named = [(it.name, it.version) for it in (first, second)]
    if form == "json":
        deliver(to_json(model.name, named, comparisons), output)
    else:
        deliver(lambda console: write(console, model.name, loaded, named, comparisons), output)
    if graph is not None:
        from sonnx.semantics.picture.page import to_html

        from ..runtimes.differential.drawing import annotated

        graph.write_text(to_html(loaded, annotated(model.name, loaded, named, comparisons)), encoding="utf-8")
    sys.exit(worst({case.verdict for case in comparisons}))


def _by_parts(
    model: Model,
    name: str,
    providers: tuple[str, ...],
    cases: list[tuple[str, Values]],
    form: str,
    output: Path | None,
) -> int:
    """Judges parts, and returns the exit code."""
    from ..runtimes.differential.comparison import worst
    from ..runtimes.differential.json_report import parts_to_json
    from ..runtimes.differential.parts import compare_parts
    from ..runtimes.differential.rendering import write_parts

    comparisons = compare_parts(model, providers, cases)
    if form == "json":
        deliver(parts_to_json(name, providers, comparisons), output)
    else:
        deliver(lambda console: write_parts(console, name, model, providers, comparisons), output)
    return worst({case.verdict for case in comparisons})
