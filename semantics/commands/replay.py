"""`sonnx replay`: execute steps of a trace again, each alone, or check all of it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import rich_click as click

from .options import PATH


@click.command()
@click.argument("trace", type=PATH)
@click.argument("model", type=PATH)
@click.option(
    "--step", "number", type=click.IntRange(min=1), metavar="K", help="The step, counted from 1. [default: all]"
)
@click.option("--check", is_flag=True, help="Check the whole run: rules, bytes, regions of memory, hashes and the end.")
def replay(trace: Path, model: Path, number: int | None, check: bool) -> None:
    """Execute step K of TRACE again, alone, on MODEL, and say whether it holds.

    The step reads the values that the trace has of it; the chain of all lines is checked too. With --check the run is
    followed from its beginning to its end, in a memory of N bytes, by rules that are written apart from the machine:
    the first step that is not what they give is named with its premise. Model and operators are read as a run does.
    Exit code: 0 it holds, 1 it does not, or the run was not complete, 2 unreadable input or usage, or another model.

    \b
    Examples:
      sonnx replay run.jsonl model.onnx --step 3
      sonnx replay run.jsonl model.onnx --check
    """
    if check and number is not None:
        raise click.UsageError("--check is of all steps: leave out --step")
    sys.exit(_checked(trace, model) if check else _replayed(trace, model, number))


def _replayed(trace: Path, model: Path, number: int | None) -> int:
    """Executes a step, or each, alone; the exit code."""
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
    return 1 if failed or recorded.broken else 0


def _checked(trace: Path, model: Path) -> int:
    """Checks a whole trace; the exit code."""
    from sonnx.spec.terminal import inert, progress_bar

    from ..machine.execution import check_supported
    from ..machine.validation.validating import Refutation, validate
    from ..model.loader import load
    from ..operators.compiled.ieee import apply
    from ..resources.process import memory_budget

    budget, loaded = memory_budget(None), load(model)
    check_supported(loaded)
    with progress_bar(counted=True) as bar:
        verdict = validate(trace, loaded, apply, partial(bar, "steps"), budget)
    if isinstance(verdict, Refutation):
        place = ", ".join(filter(None, (verdict.rule, verdict.node)))
        says = f", the trace says {verdict.says}" if verdict.says else ""
        click.echo(inert(f"REFUTED at step {verdict.step} ({place}): {verdict.premise}: {verdict.holds}{says}"))
        return 1
    kind = "VALID" if verdict.complete else "VALID, NOT COMPLETE"
    click.echo(f"{kind}: {verdict.steps} steps, {verdict.written} bytes written, memory {verdict.memory} bytes")
    click.echo(inert(f"it ended since {verdict.ended}"))
    click.echo(
        "checked: rules and premises, the order of steps, every byte by the operators' texts, regions (bounded,"
        " aligned, disjoint, covered), hashes, the end"
    )
    click.echo("not checked, since the run had them too: the texts of the operators, and what reads the model")
    for name, digest in loaded.added:
        click.echo(inert(f"operators too by the text {Path(name).name}, SHA-256 {digest}, which was added"))
    if verdict.open:
        click.echo(f"taken as recorded: {verdict.open} elements that part 3 leaves open")
    click.echo(f"chain {verdict.chain}")
    return 0 if verdict.complete else 1
