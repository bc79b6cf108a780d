"""`sonnx equiv`: do two models mean the same?"""

from __future__ import annotations

import sys
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from sonnx.semantics.commands.options import (
    PATH,
    SECONDS,
    check_apart,
    check_writable,
    deliver,
    input_option,
    size_option,
)
from sonnx.semantics.errors import ModelError
from sonnx.spec.pages import check_installed
from sonnx.spec.terminal import inert, progress_bar

if TYPE_CHECKING:
    from sonnx.semantics.model.graph import Model


def _intervals(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, _, interval = text.rpartition("=")
        try:
            least, most = map(float, interval.split(":"))
        except ValueError:
            raise click.BadParameter(f"{text!r}: write NAME=LEAST:MOST") from None
        if not name or not isfinite(least) or not isfinite(most) or least > most:
            raise click.BadParameter(f"{text!r}: write NAME=LEAST:MOST, two numbers, the first not above the second")
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice")
        found[name] = least, most
    return found


@click.command()
@click.argument("a", type=PATH)
@click.argument("b", type=PATH)
@click.option(
    "--strength",
    type=click.Choice(["exact", "allowed", "reals"]),
    default="exact",
    show_default=True,
    help="How strongly they are to be equal: the same bits, results that the definition allows, equal over the reals.",
)
@input_option
@size_option
@click.option(
    "--box",
    multiple=True,
    callback=_intervals,
    metavar="NAME=LEAST:MOST",
    help="All elements of an input of A lie in this interval: bounds for all such inputs, where they are equal over the"
    " reals; repeatable.",
)
@click.option(
    "--max-time", "seconds", type=SECONDS, default=10.0, show_default=True, help="Seconds of search for an input."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output", type=PATH, metavar="FILE", help="Write the report to a file instead of standard output.")
@click.option(
    "--certificate",
    type=PATH,
    metavar="FILE",
    help="Write steps that bring both to the same, where there are such; `sonnx recheck` does them again.",
)
@click.option("--html", type=PATH, metavar="FILE", help="Draw both models side by side.")
def equiv(
    a: Path,
    b: Path,
    strength: str,
    inputs: tuple[str, ...],
    sizes: dict[str, int],
    box: dict[str, tuple[float, float]],
    seconds: float,
    form: str,
    output: Path | None,
    certificate: Path | None,
    html: Path | None,
) -> None:
    """Compare what models A and B mean: are they equal for all inputs, how strongly, and if not, on which input?

    Both are brought into normal form by proved rules. What is left is searched for an input on which they differ when
    the machine runs both. An input is one that both accept; changes of the interface are told apart from changes of
    values.

    Exit code: 0 equal at the strength that is demanded, 1 they differ, 3 not known, 2 unreadable input or usage.

    \b
    Examples:
      sonnx equiv model.onnx optimized.onnx --strength reals
      sonnx equiv model.onnx optimized.onnx --input image=image.npy --certificate same.json
    """
    from sonnx.semantics.model.loader import load_all

    check_writable(output, certificate, html)
    if html is not None:
        check_installed()
    first, second = load_all((a, b), lambda: import_module("sonnx.checker.equivalence.comparing.comparison"))

    from sonnx.semantics.machine.files.numpy_files import input_files, named_inputs

    from ..equivalence.comparing.comparison import compare
    from ..equivalence.comparing.normalizing import Strength
    from ..equivalence.comparing.report import to_json, write

    check_apart((output, certificate, html), first, second, *input_files(first, inputs))
    given = named_inputs(first, inputs)
    with progress_bar() as bar:
        comparison = compare(
            first, second, strength=Strength[strength.upper()], inputs=given, sizes=sizes, box=box, seconds=seconds,
            progress=bar,
        )  # fmt: skip
    deliver(to_json(comparison) if form == "json" else lambda console: write(console, comparison), output)
    if certificate is not None:
        reason = "they differ"
        if comparison.code != 1:
            reason = _certified(certificate, (a, b), (first, second), strength)
        if reason:
            click.echo(inert(f"no certificate is written: {reason}"), err=True)
    if html is not None:
        from sonnx.semantics.picture.page import to_html

        from ..equivalence.comparing.drawing import side_by_side

        html.write_text(to_html(*side_by_side(comparison)), encoding="utf-8")
    sys.exit(comparison.code)


def _certified(certificate: Path, paths: tuple[Path, Path], models: tuple[Model, Model], strength: str) -> str:
    """Writes the certificate that rewrites bring both models to the same; in words why there is none."""
    from ..equivalence.optimizing.certificate import of_both
    from ..rechecker import Outcome, recheck

    try:
        data = of_both(models, strength)
    except ModelError as error:
        return str(error)
    replayed = recheck(data, *paths)
    if replayed.outcome is not Outcome.CONFIRMED and not replayed.shown:
        return next(iter(replayed.reasons), "it cannot be replayed")
    certificate.write_bytes(data)
    return ""
