"""`sonnx prove`: the theorems of part 6, proved for all graphs."""

from __future__ import annotations

import sys

import rich_click as click


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
def prove(names: tuple[str, ...]) -> None:
    """Prove the theorems about the specification, for all graphs."""
    from sonnx.spec.library import specification

    from . import suite
    from .theory import Theory

    theory = Theory(specification())
    results = suite.prove(theory, names or None)
    bad = False
    for name, result in results.items():
        verdict = "proved" if result.theorem else "REFUSED" if result.refused else "MISSING"
        why = f"{result.refused.obligation.name}: {result.refused.status}" if result.refused else result.missing
        bad |= result.theorem is None
        click.echo(f"{name:<28} {verdict:<8} {result.seconds:.2f} s  {result.rule}  {why}")
    for message in suite.unmatched(theory):
        bad = True
        click.echo(message)
    sys.exit(1 if bad else 0)
