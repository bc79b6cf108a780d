"""`sonnx recheck`: replay a certificate on its model."""

from __future__ import annotations

import sys
from pathlib import Path

import rich_click as click

EXIT = {"CONFIRMED": 0, "REFUTED": 1, "NOT-CHECKED": 3}


@click.command()
@click.argument("certificate", type=click.Path(path_type=Path))
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("other", type=click.Path(path_type=Path), required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def recheck(certificate: Path, model: Path, other: Path | None, form: str) -> None:
    """Replay CERTIFICATE on MODEL, without the certifier and without a solver.

    One that `sonnx optimize` or `sonnx equiv` wrote is about two models: its steps are done again, and what is shown by
    them is said, with what it rests on.

    Exit code: 0 CONFIRMED, 1 REFUTED, 3 NOT-CHECKED (something could not be replayed), 2 unreadable input or usage.

    \b
    Examples:
      sonnx recheck model.json model.onnx
      sonnx recheck done.json model.onnx small.onnx
    """
    from sonnx.spec.project import files, use

    from ..rechecker import recheck as replay

    use(files())  # the rechecker reads no settings
    replayed = replay(certificate, model, other)
    if form == "json":
        click.echo(replayed.to_json())
    else:
        click.echo(replayed.outcome.value)
        for line in (*replayed.reasons, *replayed.waivers, *replayed.shown):
            click.echo(f"  {line}")
    sys.exit(EXIT[replayed.outcome.value])
