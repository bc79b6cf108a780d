"""`sonnx certify`: certify models against rule sets."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from click.core import ParameterSource
from sonnx.semantics.commands.options import PATH, SECONDS, check_apart, check_writable, deliver
from sonnx.spec.cli import exit_code
from sonnx.spec.project import settings
from sonnx.spec.terminal import progress_bar

from ..certification.formats import FORMATS, render_all, render_one
from ..certification.report import EXIT, EXIT_ORDER, STANDARD_INPUT, Outcome

if TYPE_CHECKING:
    from sonnx.semantics.model.graph import Model
    from sonnx.semantics.picture.page import Drawn

    from ..certification.formats.html import Cover
    from ..certification.question import Sizes
    from ..certification.report import Report

FLAGS = (("--strict", "strict"), ("--others", "others"), ("--no-waivers", "plain"))


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, type=click.Path())
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
@click.option("--quiet", "-q", is_flag=True, help="One line: the verdict, or how many models have which.")
@click.option(
    "--output",
    type=PATH,
    help="Write the report to a file instead of standard output; HTML of several models to a folder.",
)
@click.option(
    "--certificate",
    type=PATH,
    help="Write a certificate that `sonnx recheck` replays; of several models into this folder.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Models judged side by side. [default: the number of processors]"
)
@click.option(
    "--timeout",
    type=SECONDS,
    default=60.0,
    show_default=True,
    help="Seconds for each solver query, and for the shape inference of every 200,000 nodes.",
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
@click.option("--no-waivers", "plain", is_flag=True, help="Judge as if the settings of the project had no waivers.")
@click.option("--title", default="", help="The title of an HTML report.")
@click.option("--project", default="", help="The project that an HTML report is for.")
@click.option(
    "--date",
    "day",
    default="",
    metavar="DAY|today",
    help="The date of an HTML report, which has none without it: the same model gives the same bytes.",
)
@click.option(
    "--explain", metavar="NAME", help="Print a rule (RULE or RULESET:RULE) or a rule set instead of certifying."
)
@click.pass_context
def certify(
    context: click.Context,
    models: tuple[str, ...],
    rules: tuple[str, ...],
    strict: bool,
    form: str,
    quiet: bool,
    output: Path | None,
    certificate: Path | None,
    jobs: int | None,
    timeout: float,
    dump: Path | None,
    sizes: tuple[str, ...],
    others: bool,
    plain: bool,
    title: str,
    project: str,
    day: str,
    explain: str | None,
) -> None:
    """Certify each MODEL against the SONNX profile.

    MODEL is a binary ONNX file, ONNX's textual syntax, the listing that onnx.helper.printable_graph prints, a folder
    (the files *.onnx below it), a pattern, or - for standard input. Of several models a table is printed; with --format
    one report for all is made: lines of JSON, one SARIF or JUnit document, or an index of HTML pages.
    Without --rules: the graph rules of SONNX with their completions, ONNX's own rules, and every operator inside its
    domain.
    Exit code: 1 VIOLATES; else 3 UNDECIDED, what the tool could not decide or an operator without meaning; else 0
    CONFORMS, for the sizes and with the obligations on data that the last line tells; 2 unreadable input or usage. Of
    several models the first of 4 (a defect of the tool), 2, 1, 3 that one of them has, else 0.
    What is not said here is taken from the table tool.sonnx of pyproject.toml, or from sonnx.toml.

    \b
    Examples:
      sonnx certify model.onnx --certificate model.json
      sonnx certify nets --format sarif --output report.sarif
    """
    if explain is not None:
        from ..certification.explain import explanation

        click.echo(explanation(explain), nl=False)
        return
    stated = settings()
    waivers = () if plain else stated.waivers
    if not models:
        raise click.UsageError("name the MODEL to certify: a file, a folder, a pattern, or - for standard input")
    from sonnx.semantics.model.graph import Model
    from sonnx.semantics.operators.shapes.walk import UnknownSizeError
    from sonnx.spec.library import specification

    from ..certification import rule_sets
    from ..certification.certifier import certify as judged
    from ..certification.certifier import read
    from ..certification.question import NoSizesError, question

    if waivers:
        from ..certification.waivers import check, concerning

        check(waivers, specification())
    asked = rules or rule_sets.DEFAULT
    limits = dict(map(_limits, sizes))
    everywhere = context.get_parameter_source("sizes") is ParameterSource.COMMANDLINE
    try:
        question(asked, specification(), timeout=timeout, strict=strict, others=others, sizes=limits)
    except NoSizesError:
        if everywhere:
            raise
        limits = {}  # those of the settings are for other calls too
    several, names, given = _named(models)
    _check(several, form, output, certificate, dump)
    targets = (None if several and form == "html" else output, None if several else certificate)
    check_apart(targets, *(Path(it) for it in names if it != STANDARD_INPUT))

    with progress_bar() as progress:

        def about(name: str, model: Model | Path, limits: Sizes) -> Report:
            report = judged(
                model,
                asked,
                timeout=timeout,
                strict=strict,
                others=others,
                witnesses=certificate is not None,
                dump=dump,
                sizes=limits,
                waivers=concerning(waivers, stated.beside(name)) if waivers else (),
                types=form == "html",
                progress=None if several else progress,
            )
            named = isinstance(model, Path) or name == STANDARD_INPUT
            return report if named else replace(report, model=replace(report.model, path=name))

        def judge(name: str) -> Outcome:
            model = given() if name == STANDARD_INPUT else Path(name)
            if form == "html":  # which shows the graph besides
                model = read(model)
            try:
                report = about(name, model, limits)
            except UnknownSizeError as error:  # among several models, or of all that a project has, not each has it
                if everywhere and not several:
                    raise
                report = about(name, model, {it: limits[it] for it in limits if it in error.known})
            sealed = b"" if certificate is None else _certificate(report)
            graph = _graph(report, model) if isinstance(model, Model) and form == "html" else None
            return Outcome(name, EXIT[report.verdict], replace(report, types={}), "", sealed, graph)

        if several:
            from ..certification.batch import outcomes as begin

            outcomes, ended = _gathered(begin(names, judge, jobs, progress))
        else:
            outcomes, ended = [judge(names[0])], 0
    for outcome in outcomes:
        if outcome.name != STANDARD_INPUT and outcome.report is not None:
            beside = Path(outcome.name).parent
            check_apart(targets, *(beside / name for name, _, _ in outcome.report.model.files))
    if certificate is not None:
        for outcome, target in _targets(outcomes, certificate) if several else [(outcomes[0], certificate)]:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(outcome.certificate)
    if form == "html":
        from ..certification.formats.html import Cover

        when = date.today().isoformat() if day == "today" else day
        covers = {it.name: Cover(title, project, when, _command(context, it.name)) for it in outcomes}
        _deliver_pages(outcomes, covers, output, several=several)
    else:
        _deliver(outcomes, form, output, several=several, quiet=quiet)
    if everywhere and not ended and all(outcome.report is not None for outcome in outcomes):
        _all_known(limits, outcomes)
    if ended:
        click.echo(f"interrupted: {len(outcomes)} of {len(names)} models were judged", err=True)
    codes = {outcome.code for outcome in outcomes}
    sys.exit(ended or next(code for code in EXIT_ORDER if code in codes))


def _named(models: Sequence[str]) -> tuple[bool, list[str], Callable[[], Model | Path]]:
    """True where a report on several models is asked for; the files; and what standard input holds."""
    if len(models) == 1 and Path(models[0]).is_file():
        return False, list(models), Path
    from ..certification import batch

    names = batch.expand(models)
    return batch.is_batch(models), names, batch.standard_input() if STANDARD_INPUT in names else Path


def _check(several: bool, form: str, output: Path | None, certificate: Path | None, dump: Path | None) -> None:
    """Refuses, before the work, options that do not fit and what cannot be written."""
    if form == "html":
        from sonnx.spec.pages import check_installed

        check_installed()
    if not several:
        check_writable(output, certificate)
        return
    if dump is not None:
        raise click.UsageError("--dump-smt is for one MODEL")
    if form == "html" and output is None:
        raise click.UsageError("HTML of several models is a folder of pages: name it with --output")
    for folder in (certificate, output if form == "html" else None):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise click.UsageError(f"cannot write into {str(folder)!r}: of several models it is a folder")
    check_writable(output if form != "html" else None)


def _gathered(outcomes: Iterator[Outcome]) -> tuple[list[Outcome], int]:
    """The outcomes, and 0; after an interrupt those that are there, and its exit code."""
    done: list[Outcome] = []
    try:
        done.extend(outcomes)  # keeps what it has when it is interrupted
    except KeyboardInterrupt as interrupt:
        return done, exit_code(interrupt)
    return done, 0


def _targets(outcomes: Sequence[Outcome], folder: Path) -> Iterator[tuple[Outcome, Path]]:
    """The place of each model's certificate in a folder: to its path from here, with `.json` behind it."""
    for outcome in outcomes:
        if outcome.certificate:
            name = "stdin" if outcome.name == STANDARD_INPUT else os.path.relpath(outcome.name)
            parts = ["up" if part == os.pardir else part for part in Path(name).parts]
            yield outcome, folder.joinpath(*parts[:-1], f"{parts[-1]}.json")


def _certificate(report: Report) -> bytes:
    from ..certification.certificate import certificate, seal

    return seal(certificate(report))


def _graph(report: Report, model: Model) -> Drawn:
    """The findings on the graph, as far as a page has room for them beside the report."""
    from sonnx.semantics.picture.page import drawn, undrawn

    from ..certification.drawing import annotated
    from ..certification.formats.html import to_html

    size = len(to_html(report).encode())
    return drawn(model, annotated(report, model), size) or undrawn(f"the report alone has {size} bytes")


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


def _all_known(limits: Sizes, outcomes: Sequence[Outcome]) -> None:
    """Refuses a size that no model has."""
    domains = [it.report.domain for it in outcomes if it.report is not None and it.report.domain is not None]
    known = {label for domain in domains for label, _, _ in domain.sizes}
    if domains and (surplus := sorted(limits.keys() - known)):
        raise click.BadParameter(f"no model has a symbolic size {surplus[0]!r}", param_hint="--size")


def _deliver(outcomes: Sequence[Outcome], form: str, output: Path | None, *, several: bool, quiet: bool) -> None:
    if form == "text":
        from ..certification.formats.text import say, summarize, write

        if several:
            deliver(partial(summarize, outcomes, quiet=quiet), output)
        elif (report := outcomes[0].report) is not None:
            deliver(partial(say if quiet else write, report), output)
    else:
        deliver((render_all if several else render_one)(outcomes, form), output)


def _deliver_pages(
    outcomes: Sequence[Outcome], covers: Mapping[str, Cover], output: Path | None, *, several: bool
) -> None:
    from ..certification.formats.html import to_html, write_pages

    if several and output is not None:
        write_pages(outcomes, output, covers)
    elif (report := outcomes[0].report) is not None:
        deliver(to_html(report, covers[outcomes[0].name], outcomes[0].graph), output)


def _command(context: click.Context, name: str) -> str:
    """A command that judges a model alike: the options that bear on verdicts, those of the settings among them."""
    said = [it for path in context.find_root().params["files"] for it in ("--spec", path)]
    said += ["certify", name]
    for option, key in (("--rules", "rules"), ("--size", "sizes")):
        said += [it for value in context.params[key] for it in (option, value)]
    said += [option for option, key in FLAGS if context.params[key]]
    if context.get_parameter_source("timeout") is not ParameterSource.DEFAULT:
        said += ["--timeout", f"{context.params['timeout']:g}"]
    return shlex.join(["sonnx", *said])
