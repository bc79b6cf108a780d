"""`sonnx fuzz`: random models on an engine, judged by the specification; what is found is made small and stored."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from sonnx.semantics.commands.options import PATH, SECONDS
from sonnx.spec.terminal import inert, progress_bar

if TYPE_CHECKING:
    from ..runtimes.differential.fuzzing import Campaign, Finding


@click.command()
@click.option("--engine", "name", required=True, metavar="NAME", help="The engine to examine, as for `sonnx compare`.")
@click.option("--seconds", type=SECONDS, help="For how long. [default: 60]")
@click.option("--cases", type=click.IntRange(min=1), help="How many models at most.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed, the same models."
)
@click.option("--operator", "operators", multiple=True, metavar="OP", help="Only these operators; repeatable.")
@click.option("--refusals", is_flag=True, help="Also keep models that the engine declines before it begins.")
@click.option(
    "--output", type=PATH, default=Path("findings"), show_default=True, help="Where the reproducers are stored."
)
def fuzz(
    name: str,
    seconds: float | None,
    cases: int | None,
    seed: int,
    operators: tuple[str, ...],
    refusals: bool,
    output: Path,
) -> None:
    """Search for models on which an engine does what the specification does not allow.

    Models are drawn from the definitions: sizes and attributes at and around the edge of every requirement, elements
    that provoke, every version of every operator. Each finding is reduced to the fewest nodes and the smallest shapes
    and stored as a folder that `sonnx compare` replays.

    Exit code: 0 nothing found, 1 something found, 2 usage, 3 nothing could be compared.

    \b
    Examples:
      sonnx fuzz --engine onnxruntime --seconds 60
      sonnx fuzz --engine numpy --cases 500 --seed 7
    """
    from sonnx.semantics.runtimes.engines.registry import started
    from sonnx.spec.library import specification

    from ..runtimes.differential.fuzzing import Campaign, store
    from ..runtimes.differential.fuzzing import fuzz as campaign

    unknown = sorted(set(operators) - set(specification().operators))
    if unknown:
        raise click.UsageError(f"the specification does not define {inert(unknown[0])}")
    chosen = started(name)
    duration = 60.0 if seconds is None and cases is None else seconds
    done: Campaign | None = None
    with progress_bar() as bar:
        for it in campaign(
            chosen,
            seed,
            seconds=duration,
            cases=cases,
            only=frozenset(operators),
            refusals=refusals,
            tell=lambda what: bar(what, 0, 0),
        ):
            if isinstance(it, Campaign):
                done = it
            else:
                _finding(it, store(it, chosen.name, chosen.version, output))
    if done is not None:
        _summary(done)
        compared = sum(done.outcomes[it] for it in ("pass", "allowed freedom", "mismatch"))
        sys.exit(1 if done.findings else 0 if compared else 3)


def _finding(finding: Finding, folder: Path) -> None:
    result = finding.result
    what = result.operator or result.kind or "the model"
    nodes = f"{finding.reduced.nodes} node{'s' * (finding.reduced.nodes != 1)}"
    click.echo(inert(f"{result.outcome.value}: {what}: {result.why[:200]}"))
    click.echo(inert(f"  {folder} ({nodes}, case {finding.number} of seed {finding.seed})"))


def _summary(done: Campaign) -> None:
    version = f" {done.version}" if done.version else ""
    click.echo(inert(f"{done.cases} models on {done.engine}{version}, seed {done.seed}: {len(done.findings)} findings"))
    for outcome, count in done.outcomes.most_common():
        kinds = [
            f"{number} {kind.partition(': ')[2]}"
            for kind, number in done.kinds.most_common()
            if kind.startswith(f"{outcome}: ")
        ]
        said = f" ({', '.join(kinds)})" if kinds else ""
        click.echo(f"  {count:6d} {outcome}{said}")
    click.echo(f"  {len(done.operators)} operators and versions took part in what was compared")
