"""`sonnx replay`: execute steps of a trace again, each alone."""

from __future__ import annotations

import sys
from pathlib import Path

import rich_click as click

from .options import PATH


@click.command()
@click.argument("trace", type=PATH)
@click.argument("model", type=PATH)
@click.option(
    "--step", "number", type=click.IntRange(min=1), metavar="K", help="The step, counted from 1. [default: all]"
)
def replay(trace: Path, model: Path, number: int | None) -> None:
    """Execute step K of TRACE again, alone, on MODEL, and say whether it holds.

    The step reads the values that the trace has of it; the chain of all lines is checked too.
    Exit code: 0 it holds, 1 it does not, 2 unreadable input or usage, or another model.

    \b
    Examples:
      sonnx replay run.jsonl model.onnx --step 3
      sonnx replay run.jsonl model.onnx --step 1
    """
    from sonnx.spec.terminal import inert

    from ..machine.trace.replay import read_trace
    from ..machine.trace.replay import replay as replayed
    from ..model.loader import load
    from ..operators.compiled.ieee import apply

    recorded = read_trace(trace)
    steps = range(1, len(recorded.steps) + 1) if number is None else (number,)
    if recorded.broken:
        click.echo(inert(f"the chain is broken: {recorded.broken}"))
    held = 0
    failed = 0
    for verdict in replayed(recorded, load(model), steps, apply):
        held += verdict.holds
        failed += not verdict.holds
        if number is not None or not verdict.holds:
            what = "holds" if verdict.holds else f"does not hold: {verdict.reason}"
            click.echo(inert(f"step {verdict.step} ({verdict.rule}, {verdict.node}) {what}"))
    if number is None:
        click.echo(f"{held} of {len(steps)} steps hold")
        equations = None if recorded.end is None else recorded.end.get("consistent")
        if isinstance(equations, int):
            click.echo(f"the run was judged consistent when it ended: {equations} equations (its own word)")
    sys.exit(1 if failed or recorded.broken else 0)
