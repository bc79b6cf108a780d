"""`sonnx conform`: how far engines' results on suites of cases are what the specification allows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from sonnx.semantics.commands.options import PATH, check_writable
from sonnx.spec.cli import exit_code
from sonnx.spec.pages import check_installed
from sonnx.spec.terminal import inert, progress_bar

from ..runtimes.conformance.threads import one_thread

if TYPE_CHECKING:
    from ..runtimes.conformance.records import Record
    from ..runtimes.conformance.reports import Conformance


@click.command()
@click.option("--engine", "engines", multiple=True, required=True, metavar="NAME", help="As for compare; repeatable.")
@click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="onnx|vectors|ledger|random:SEED:COUNT|DIR|MODEL",
    help="onnx: the backend tests of the onnx wheel; vectors: those that the definitions give; ledger: the"
    " cases of the ledger of known deviations; random:SEED:COUNT:"
    " as many models that are drawn, on drawn and on special values; a folder with models"
    " and stored data; a model. Repeatable. [default: onnx]",
)
@click.option("--filter", "pattern", metavar="GLOB", help="Only cases whose name fits, such as 'node/test_conv*'.")
@click.option(
    "--every-node",
    is_flag=True,
    help="Also judge each node of a model whose outputs are the definition's bit for bit.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option("--executor", "place", metavar="NAME", help="Where to work instead: an entry point of sonnx.executors.")
@click.option(
    "--dask",
    "address",
    metavar="ADDRESS",
    help="Work on the Dask cluster with this scheduler, whose workers have sonnx and the engines. Needs sonnx[dask].",
)
@click.option("--json", "json_file", type=PATH, metavar="F", help="The whole run.")
@click.option("--html", "html_file", type=PATH, metavar="F", help="A page for people.")
@click.option("--junit", "junit_file", type=PATH, metavar="F", help="For continuous integration.")
@click.option("--markdown", "markdown_file", type=PATH, metavar="F", help="For a pull request.")
@click.option("--resume", type=PATH, metavar="F", help="Keep what is done in this file, and go on from it.")
@one_thread()
def conform(
    engines: tuple[str, ...],
    suites: tuple[str, ...],
    pattern: str | None,
    every_node: bool,
    jobs: int,
    place: str | None,
    address: str | None,
    json_file: Path | None,
    html_file: Path | None,
    junit_file: Path | None,
    markdown_file: Path | None,
    resume: Path | None,
) -> None:
    """Report how far engines conform to the specification on suites of cases.

    A case passes where every output is the definition's bit for bit, or where every node is within what the
    specification allows on the values that the engine itself fed to it. A case that compared nothing is no pass.

    A deviation that the ledger knows is named so, with its entry and source; one that it does not know stands out, and
    so does an entry of the suite `ledger` that no longer shows.

    Interrupted, a run reports what is done, and with --resume F it goes on from F when it is started again.

    Exit code: 0 no mismatch and no crash, 1 some, 2 usage or unreadable suite, 3 nothing could be compared.

    \b
    Examples:
      sonnx conform --engine onnxruntime --html report.html
      sonnx conform --engine reference --suite vectors --filter 'Softmax-*' --jobs 2
    """
    from sonnx.semantics.runtimes.engines.registry import started

    from ..runtimes.conformance import executors
    from ..runtimes.conformance.page import to_html
    from ..runtimes.conformance.reports import (
        WORST,
        Conformance,
        again,
        environment,
        ledger_lines,
        to_json,
        to_junit,
        to_markdown,
    )
    from ..runtimes.conformance.running import Journal, Stopped
    from ..runtimes.conformance.running import conform as run
    from ..runtimes.conformance.suites import references

    check_writable(json_file, html_file, junit_file, markdown_file, resume)
    if html_file is not None:
        check_installed()
    if place is not None and address is not None:
        raise click.UsageError("name one place to work: --executor or --dask")
    named = tuple(dict.fromkeys(engines))
    versions = tuple((it.name, it.version) for it in map(started, named))
    chosen = suites or ("onnx",)
    cases = [it for suite in chosen for it in references(suite) if pattern is None or fnmatch(it.name, pattern)]
    if not cases:
        raise click.UsageError("no case fits: look at --suite and --filter")
    with ExitStack() as stack:
        if address is not None:
            make = stack.enter_context(executors.dask(address))
        else:
            make = executors.processes if place is None else executors.named(place)
        bar = stack.enter_context(progress_bar(counted=True))
        records: tuple[Record, ...] = ()
        missing = ended = 0
        try:
            records = run(
                cases,
                named,
                jobs=jobs,
                journal=None if resume is None else Journal(resume, dict(versions)),
                progress=partial(bar, "cases"),
                executor=make,
                every_node=every_node,
            )
        except Stopped as stop:
            records, missing = stop.records, stop.missing
            ended = exit_code(stop.__cause__ or stop)
    done = Conformance(versions, chosen, records, environment(), every_node, missing)
    _write(json_file, to_json, done)
    _write(html_file, to_html, done)
    _write(junit_file, to_junit, done)
    _write(markdown_file, to_markdown, done)
    compared = bad = 0
    for it in done.summaries:
        click.echo(inert(f"{it.engine} {dict(versions)[it.engine]}".rstrip()) + f": {it.cases} cases")
        for outcome, count in it.classes.items():
            if count:
                kinds = [f"{n} {kind}" for (name, kind), n in sorted(it.kinds.items()) if name == outcome]
                click.echo(f"  {count:6d} {outcome}{' (' if kinds else ''}{', '.join(kinds)}{')' if kinds else ''}")
        for line in ledger_lines(it):
            click.echo(f"  {inert(line)}")
        for record in it.worst[:WORST]:
            click.echo(f"  {inert(record.outcome)}, again: {inert(again(record, every_node=every_node))}")
        if len(it.worst) > WORST:
            click.echo(f"  and {len(it.worst) - WORST} more, which --json and --html list")
        compared += it.classes["pass"] + it.classes["allowed freedom"] + it.classes["mismatch"]
        bad += it.classes["mismatch"] + it.classes["crash"] + it.classes["harness error"]
    if ended:
        click.echo(f"interrupted: {missing} of {len(cases)} cases are missing", err=True)
        if resume is not None:
            click.echo(f"what is done is in {str(resume)!r}, from which the same command goes on", err=True)
        sys.exit(ended)
    sys.exit(1 if bad else 0 if compared else 3)


def _write(target: Path | None, render: Callable[[Conformance], str], run: Conformance) -> None:
    if target is not None:
        target.write_text(render(run), encoding="utf-8")
