"""The model and the inputs of a command that runs engines: given, stored by a campaign, or drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

if TYPE_CHECKING:
    from sonnx.semantics.model.graph import Model
    from sonnx.semantics.runtimes.engines.protocol import Values

inputs_option = click.option(
    "--inputs",
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help=".npy, .npz or .pb; FILE.npz alone: all; repeatable.",
)
drawn_option = click.option(
    "--random",
    "seed",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="Draw the inputs that are not given; every second case has special values.",
)


def stored(model: Path, inputs: tuple[str, ...], seed: int | None) -> tuple[Path, tuple[str, ...]]:
    """The model and the inputs of a reproducer, where a folder is named."""
    if not model.is_dir():
        return model, inputs
    given = model / "inputs.npz"
    return model / "model.onnx", (str(given),) if given.exists() and not inputs and seed is None else inputs


def drawn_cases(
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
