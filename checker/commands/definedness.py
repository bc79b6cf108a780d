"""`sonnx definedness`: proves that operator definitions are defined for arbitrary shapes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from sonnx.semantics.commands.options import PATH, SECONDS
from sonnx.spec.terminal import progress_bar

if TYPE_CHECKING:
    from sonnx.spec.elaborate.core import CoreOperator

    from ..definedness.proving import Judgement

EXIT = {"proved": 0, "refuted": 1, "not proved": 3}
FILE = click.Path(path_type=Path, exists=True, dir_okay=False, writable=True)


@click.command()
@click.argument("operators", metavar="[OP]...", nargs=-1)
@click.option("--version", type=click.IntRange(min=1), help="Only the definition in force at this version.")
@click.option(
    "--timeout",
    type=SECONDS,
    default=60.0,
    show_default=True,
    help="Seconds for each question, which ends before after a number of steps that is the same on every machine.",
)
@click.option("--dump-smt", "dump", type=PATH, help="Write every question as SMT-LIB 2 into this folder.")
@click.option(
    "--record",
    "table",
    type=FILE,
    help="Write the rows of these definitions into this table: checker/definedness/definedness.tsv.",
)
def definedness(
    operators: tuple[str, ...], version: int | None, timeout: float, dump: Path | None, table: Path | None
) -> None:
    """Prove that operator definitions are defined for arbitrary sizes, wherever their requirements hold.

    Every index lies in bounds, no divisor is zero, no size is negative, no window is empty. Sizes and attributes are
    open, and, where the line says "every rank", so are the numbers of axes and the lengths of lists. Elsewhere
    numbers of axes are instantiated from 0 to 4, lists have at most 3 entries unless a requirement asks for more, and
    nothing is shown beyond. Without OP all definitions of the specification are judged, which takes minutes.

    What is proved is recorded in the package's `definedness.tsv`, which `sonnx spec check` counts; its head says what
    the verdicts mean: proved, listed (but for what is left to a primitive), tested (few axes only, and small concrete
    shapes). `--record` writes a row after each definition, none for what is refuted or not proved.

    Exit code: 0 all proved, 1 one is refuted (with sizes and attributes that show it), 3 one is not proved, 2 usage.

    \b
    Examples:
      sonnx definedness Conv
      sonnx definedness Softmax --version 13
    """
    chosen = _chosen(operators, version)
    from ..definedness.proving import EFFORT, judge_all
    from ..definedness.record import record, rows_of, write_records
    from ..smt.prover import Prover

    rows = {} if table is None else rows_of(table.read_text("utf-8"))
    worst = 0
    with progress_bar() as progress:
        for operator, judgement in judge_all(chosen, Prover(timeout, effort=EFFORT, dump=dump), progress):
            for line in _lines(judgement):
                click.echo(line)
            if table is not None:
                rows.pop((operator.name, operator.first), None)
                if row := record(operator, judgement):
                    rows[operator.name, operator.first] = row
                table.write_text(write_records(rows.values()), encoding="utf-8", newline="\n")
            code = EXIT[judgement.verdict]
            worst = code if worst == 0 or code == 1 else worst
    sys.exit(worst)


def _chosen(names: tuple[str, ...], version: int | None) -> list[CoreOperator]:
    from sonnx.spec.elaborate.scope import hint
    from sonnx.spec.library import specification

    known: dict[str, list[CoreOperator]] = {}
    for meaning in specification().meanings:
        known.setdefault(meaning.name, []).append(meaning)
    for name in names:
        if name not in known:
            same = [it for it in known if it.rpartition("::")[2] == name]
            near = f"; did you mean {same[0]}?" if same else hint(name, known)
            raise click.UsageError(f"the specification does not define {name}{near}")
    chosen = [o for name in (names or known) for o in known[name] if version is None or o.first <= version <= o.last]
    if not chosen:
        raise click.UsageError(f"no definition is in force at version {version}")
    return chosen


def _lines(judgement: Judgement) -> Iterator[str]:
    """One line for the definition, then one for each obligation that is not proved, with the values that refute it."""
    last = "" if judgement.first == judgement.last else f"..{judgement.last}"
    title = f"{judgement.operator}-{judgement.first}{last}"
    scope = "for every rank" if judgement.bound == "" else f"{judgement.paths} instances"
    if judgement.bound == "" and judgement.met:
        scope += f" (met at {', '.join(judgement.met)} only)"
    yield f"{title:<32} {judgement.verdict:<10} {judgement.proved:>6} proved, {scope}"
    if judgement.bound:
        yield f"  0 to 4 axes and short lists only; for every rank not proved: {judgement.bound}"
    if judgement.most is not None and judgement.bound:
        yield f"  only axes <= {judgement.most}: more take the solver too long"
    if judgement.cut and judgement.bound:
        yield f"  only the shortest lists: {', '.join(judgement.cut)}"
    if judgement.reason:
        yield f"  {judgement.reason}"
    for finding in judgement.findings:
        yield f"  {finding.span}: {finding.kind} {finding.about}: {finding.status} ({finding.instance})"
        if finding.cases:
            yield f"    where {'; '.join(finding.cases)}"
        if finding.values:
            yield f"    {', '.join(f'{name} = {value}' for name, value in finding.values.items())}"
        if finding.reason:
            yield f"    {finding.reason}"
