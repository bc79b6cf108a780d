"""`sonnx certify`: certify a model against rule sets."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from sonnx.semantics.commands.options import PATH, check_writable, deliver
from sonnx.spec.terminal import progress_bar

from ..certification.formats import FORMATS, render

if TYPE_CHECKING:
    from ..certification.report import Report

EXIT = {"CONFORMS": 0, "VIOLATES": 1, "UNDECIDED": 3}


@click.command()
@click.argument("model", required=False, type=PATH)
@click.option(
    "--rules",
    "rules",
    multiple=True,
    metavar="NAME",
    help="Rule set, NAME or NAME@VARIANT or all; repeatable; with those that it includes. "
    "[default: sonnx, which includes onnx and domain]",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Judge for all sizes and all data: a condition on sizes violates, an obligation on data is undecided; and "
    "count rules with status TBC, defective, open or reported too.",
)
@click.option("--format", "form", type=click.Choice(("text", *FORMATS)), default="text", show_default=True)
@click.option("--output", type=PATH, help="Write the report to a file instead of standard output.")
@click.option("--certificate", type=PATH, help="Write a certificate that `sonnx recheck` replays.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds for each solver query.",
)
@click.option("--dump-smt", "dump", type=PATH, help="Write every query as SMT-LIB 2 into this folder.")
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="NAME=N|LOW..HIGH",
    help="Values that a symbolic size of the inputs may have; repeatable. [default: 1 and more]",
)
@click.option(
    "--others/--no-others",
    default=False,
    show_default=True,
    help="Judge the remaining rule sets as well; they do not enter the verdict.",
)
@click.option(
    "--explain", metavar="NAME", help="Print a rule (RULE or RULESET:RULE) or a rule set instead of certifying."
)
def certify(
    model: Path | None,
    rules: tuple[str, ...],
    strict: bool,
    form: str,
    output: Path | None,
    certificate: Path | None,
    timeout: float,
    dump: Path | None,
    sizes: tuple[str, ...],
    others: bool,
    explain: str | None,
) -> None:
    """Certify MODEL against the SONNX profile.

    MODEL is a binary ONNX file, ONNX's textual syntax, or the listing that onnx.helper.printable_graph prints.
    Without --rules: the graph rules of SONNX with their completions, ONNX's own rules, and every operator inside its
    domain.
    Exit code: 1 VIOLATES; else 3 UNDECIDED, what the tool could not decide or an operator without meaning; else 0
    CONFORMS, for the sizes and with the obligations on data that the last line tells; 2 unreadable input or usage.
    """
    if explain is not None:
        from ..certification.explain import explanation

        click.echo(explanation(explain), nl=False)
        return
    if model is None:
        raise click.UsageError("name the MODEL to certify")
    from ..certification.certifier import certify as judge
    from ..certification.rule_sets import DEFAULT

    limits = dict(map(_limits, sizes))
    check_writable(output, certificate)
    if form == "html":
        from sonnx.spec.pages import check_installed

        check_installed()
    with progress_bar() as progress:
        report = judge(
            model,
            rules or DEFAULT,
            timeout=timeout,
            strict=strict,
            others=others,
            witnesses=certificate is not None,
            dump=dump,
            sizes=limits,
            progress=progress,
        )
    if certificate is not None:
        from ..certification.certificate import certificate as issue
        from ..certification.certificate import seal

        certificate.write_bytes(seal(issue(report)))
    _deliver(report, form, output)
    sys.exit(EXIT[report.verdict.value])


def _limits(text: str) -> tuple[str, tuple[int, int | None]]:
    """`NAME=8`, `NAME=1..16` or `NAME=4..` as the least and the greatest value."""
    name, _, values = text.rpartition("=")
    low, dots, high = values.partition("..")
    if not name or not low.isdecimal() or not (high.isdecimal() or high == ""):
        raise click.BadParameter(f"{text!r}: write NAME=N, NAME=LOW..HIGH or NAME=LOW..", param_hint="--size")
    least = int(low)
    most = int(high) if high else None if dots else least
    if most is not None and most < least:
        raise click.BadParameter(f"{text!r}: the greatest value is below the least", param_hint="--size")
    return name, (least, most)


def _deliver(report: Report, form: str, output: Path | None) -> None:
    if form == "text":
        from ..certification.formats.text import write

        deliver(partial(write, report), output)
    else:
        deliver(render(report, form), output)
