"""`sonnx prove`: the theorems of part 6, proved for all graphs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import rich_click as click
from sonnx.spec.pages import check_installed
from sonnx.spec.terminal import progress_bar

if TYPE_CHECKING:
    from ..gates.judging import Judged
    from ..kernel.theory import Theory

PATH = click.Path(path_type=Path)


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--table", "as_table", is_flag=True, help="Print which theorem needs which rule of a rule set.")
@click.option("--markdown", is_flag=True, help="Print that table as Markdown.")
@click.option("--rule-set", default="sonnx-2025-05", show_default=True, help="The rule set of the table.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--dump", type=PATH, help="Write every question as SMT-LIB 2, and with the gates cvc5's proofs, here.")
@click.option("--pictures", type=PATH, help="Write every model and countermodel as SVG into this folder.")
@click.option("--html", type=PATH, help="Write all pictures into this file.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Added to the seeds of z3.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; one for each core unless told otherwise.")
@click.option("--no-gates", is_flag=True, help="Prove only, without the gates.")
@click.option("--transforms", is_flag=True, help="Prove the rewrites of part 7 instead, or those with these names.")
@click.option("--record", is_flag=True, help="With --transforms: write what is shown into the package's proved.tsv.")
def prove(
    names: tuple[str, ...], as_table: bool, markdown: bool, rule_set: str, as_json: bool, dump: Path | None,
    pictures: Path | None, html: Path | None, seed: int, jobs: int | None, no_gates: bool, transforms: bool,
    record: bool,
) -> None:  # fmt: skip
    """Prove the theorems about the specification, for all graphs.

    Each theorem and each lemma says what it rests on, and passes six gates: z3 proves it on five seeds; cvc5 proves it
    again, and its proof is checked (SKIPPED where cvc5 is not installed: pip install 'sonnx[cvc5]'); its hypotheses
    have a finite model; it is tight: without any of them there is a countermodel; itself it has no small countermodel;
    the situations of part 6 are possible under all laws. Where a proof checker is on PATH (ethos, with the environment
    variable SONNX_CPC, or carcara), it checks cvc5's proofs outside this process: a gate of its own, SKIPPED otherwise.
    Without NAME everything is proved; theorems are listed first, then the lemmas that serve them. Decodes, the law that
    decoding gives back what was encoded, is shown for each width of elements from the definitions of part 3b.

    With --transforms the rewrites of part 7 are judged: each is proved from the operators' texts, at all sizes and for
    every number of axes or for 0 to 4 of them, or refuted by an input on which its sides differ, or open. Without NAME
    a proof for every number of axes is not looked for where the record has one for 0 to 4. What a rule claims holds
    where the proof is as strong (exact: the same bits; allowed: one of the results that the left side may have; reals:
    equal over the reals); a rule that claims never has to be refuted.

    Exit code: 0 all proved and no gate failed, every rewrite is what it claims; 1 otherwise, 2 usage.

    \b
    Examples:
      sonnx prove OutputsHaveValues
      sonnx prove --transforms TransposeTranspose
    """
    from sonnx.spec.library import specification

    if record and not transforms:
        raise click.UsageError("--record writes what is shown of rewrites: give --transforms too")
    if transforms:
        _judge_rewrites(names, as_json=as_json, seed=seed, jobs=jobs, record=record)

    from ..encoding import widths
    from ..findings import findings
    from ..gates import judging, suite
    from ..kernel.theory import DESCRIBED, Theory
    from ..report import report

    theory = Theory(specification())
    _check(theory, names, rule_set)
    if no_gates and (as_table or markdown or pictures or html):
        raise click.UsageError("tables and pictures come from the gates: leave out --no-gates")
    if html is not None:
        check_installed()
    if dump is not None:
        dump.mkdir(parents=True, exist_ok=True)
    proofs = dump.resolve() if dump is not None and not no_gates else None
    options = judging.Options(not no_gates, pictures is not None or html is not None, seed, jobs, proofs)
    listed = not (as_table or markdown or as_json)
    judgements = []
    if listed:
        click.echo(report.head())
    with progress_bar(counted=True) as progress:
        others = {*findings.stated(theory), widths.LAW}
        theorems = [name for name in names if name not in others] if names else None
        for judged in judging.judge(theory, theorems, options, progress):
            judgements.append(judged)
            if listed and not judged.result.lemma:
                click.echo("\n".join(report.lines(theory, judged)))
    lemmas = [judged for judged in judgements if judged.result.lemma]
    if listed and lemmas:
        click.echo("lemmas, which serve the theorems")
        click.echo("\n".join(line for judged in lemmas for line in report.lines(theory, judged)))
    shown = findings.findings(theory, names or None)
    decoded = tuple(widths.shown(theory.text)) if listed and (not names or widths.LAW in names) else ()
    unmatched = suite.unmatched(theory)
    if dump is not None:
        for judged in judgements:
            report.dump(theory, judged, dump)
    if pictures is not None:
        report.write_pictures(judgements, pictures)
    if html is not None:
        html.write_text(report.page(judgements), encoding="utf-8", newline="\n")
    if as_json:
        theorems_as_data = [report.as_json(theory, judged) for judged in judgements]
        click.echo(json.dumps([*theorems_as_data, *map(findings.as_json, shown)], indent=2))
    elif not listed:
        _print_table(theory, judgements, rule_set, markdown)
    else:
        described = f"taken as any function that keeps the laws: {', '.join(sorted(theory.opaque & DESCRIBED))}"
        opaque = f"{described}\ntaken as any predicate: {', '.join(sorted(theory.opaque - DESCRIBED))}"
        click.echo("\n".join((*report.situations(judgements), *report.proofs(judgements), *unmatched, opaque)))
        click.echo("".join(f"{line}\n" for line in widths.lines(decoded)), nl=False)
        click.echo("".join(f"{line}\n" for it in shown for line in (*findings.lines(it), "")), nl=False)
        tail = f"; {sum(it.holds for it in shown)} of {len(shown)} findings shown" if shown else ""
        click.echo(f"{report.last_line(judgements, unmatched)}{tail}")
    proved = not unmatched and all(it.result.theorem is not None and it.passed for it in judgements)
    sys.exit(0 if proved and all(it.holds for it in shown) and all(it.how for it in decoded) else 1)


def _judge_rewrites(names: Sequence[str], *, as_json: bool, seed: int, jobs: int | None, record: bool) -> NoReturn:
    """Judges rewrites, prints what is found of each, and ends the command."""
    from sonnx.checker.equivalence import record as records
    from sonnx.checker.equivalence.proving import suite
    from sonnx.checker.equivalence.proving.rules import LISTED
    from sonnx.checker.runtimes.deviations.standing import rewriters
    from sonnx.spec.elaborate.scope import hint
    from sonnx.spec.library import specification

    try:
        chosen = suite.rules(names)
    except KeyError as problem:
        (name,) = problem.args
        raise click.UsageError(f"part 7 has no rewrite {name}{hint(name, specification().rules)}") from None
    verdicts = []
    if not as_json:
        click.echo(suite.head())
    with progress_bar(counted=True) as progress:
        few = frozenset() if names else records.for_few_axes()
        costs = records.seconds()
        for verdict in suite.judge_all(chosen, jobs=jobs, seed=seed, progress=progress, costs=costs, few=few):
            verdicts.append(verdict)
            if not as_json:
                known = [f"    in the ledger: {it}" for it in rewriters(verdict.rule)]
                click.echo("\n".join((*suite.lines(verdict), *known)))
    if record:
        records.write(verdicts, LISTED)
    if as_json:
        made = [{**suite.as_json(verdict), "ledger": list(rewriters(verdict.rule))} for verdict in verdicts]
        click.echo(json.dumps(made, indent=2))
    else:
        laws = suite.axioms_used(verdicts)
        click.echo("\n".join((*(("the proofs use", *laws) if laws else ()), suite.last_line(verdicts))))
    sys.exit(0 if all(verdict.holds for verdict in verdicts) else 1)


def _check(theory: Theory, names: Sequence[str], rule_set: str) -> None:
    """The names of theorems and of the rule set are known."""
    from sonnx.spec.elaborate.scope import hint

    from ..encoding.widths import LAW
    from ..findings.findings import stated
    from ..gates.suite import theorems

    known = {*theorems(theory), *stated(theory), LAW}
    for name in names:
        if name not in known:
            raise click.UsageError(f"part 6 has no theorem and no finding {name}{hint(name, known)}")
    if rule_set not in theory.text.profiles:
        raise click.UsageError(f"there is no rule set {rule_set}{hint(rule_set, theory.text.profiles)}")


def _print_table(theory: Theory, judged: Sequence[Judged], rule_set: str, markdown: bool) -> None:
    from ..report import table

    write = table.as_markdown if markdown else table.as_text
    for line in write(theory, judged, theory.text.profiles[rule_set]):
        click.echo(line)
