"""`sonnx partition`: which execution provider runs which nodes of a model, and why."""

from __future__ import annotations

import sys
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Final

import rich_click as click

from .options import PATH, check_apart, check_writable, counted, deliver, provider_option

if TYPE_CHECKING:
    from rich.console import Console

    from ..picture.notes import Picture
    from ..runtimes.fastpath.explanation import Explained

SCHEMA: Final = "sonnx-partition/1"
_SHOWN: Final = 40  # parts and refusals that the text has
_FEW: Final = 6  # nodes of one of them
_TONES: Final = ("done", "next", "open", "warn", "plain")


@click.command()
@click.argument("model", type=PATH)
@provider_option
@click.option("--format", "form", type=click.Choice(["text", "json", "html"]), default="text", show_default=True)
@click.option("--output", type=PATH, metavar="FILE", help="Write the report to a file instead of standard output.")
def partition(model: Path, providers: tuple[str, ...], form: str, output: Path | None) -> None:
    """Show which execution provider runs which nodes of MODEL, and why; and who else would have, and why not.

    Providers are asked in their order, each about what those before it have left. An offer that overlaps with a part
    that is taken, or with which a cycle would lead through parts, is refused, with the nodes or the path; part 6 of the
    specification, 8c-partition, has the rule, and the theorem that a run by parts gives what a run gives. HTML draws
    the graph coloured by providers. Installed providers are entry points of the group sonnx.execution_providers.

    Exit code: 0 done, 1 an offer was refused, 2 unreadable input or usage, 3 a node that no provider runs.

    \b
    Examples:
      sonnx partition model.onnx --provider machine:only=Softmax --provider onnxruntime
      sonnx partition model.onnx --format html --output partition.html
    """
    from sonnx.spec.pages import check_installed

    from ..model.loader import load
    from ..runtimes.fastpath.explanation import explained
    from ..runtimes.fastpath.session import checked_model

    check_writable(output)
    if form == "html":
        check_installed()
    loaded = load(model)
    check_apart((output,), loaded)
    found = explained(checked_model(loaded), providers)
    if form == "html":
        from ..picture.page import to_html

        deliver(to_html(found.model, picture(model.name, found)), output)
    elif form == "json":
        deliver(to_json(model.name, found), output)
    else:
        deliver(lambda console: _write(console, model.name, found), output)
    sys.exit(1 if found.partitioning.refusals else 0)


def to_json(name: str, found: Explained) -> str:
    """The partition as JSON."""
    import json

    from ..runtimes.fastpath.explanation import SESSION

    nodes, graphs = found.model.nodes, found.model.graphs
    parts = [
        {
            "provider": it.provider or SESSION,
            "graph": graphs[it.graph].path or "/",
            "runs": it.kernel,
            "why": it.why,
            "nodes": [
                {
                    "node": nodes[n].path,
                    "others": [{"provider": other.provider, "why": other.why} for other in found.others.get(n, ())],
                }
                for n in it.nodes
            ],
        }
        for it in found.partitioning.assignments
    ]
    refused = [
        {
            "provider": it.provider,
            "graph": graphs[it.graph].path or "/",
            "nodes": [nodes[n].path if 0 <= n < len(nodes) else str(n) for n in it.nodes],
            "why": it.why,
        }
        for it in found.partitioning.refusals
    ]
    data = {"schema": SCHEMA, "model": name, "providers": list(found.providers), "parts": parts, "refused": refused}
    return json.dumps(data, indent=2) + "\n"


def picture(name: str, found: Explained) -> Picture:
    """The partition on the graph of its model: each provider a colour, its parts and reasons in words."""
    from ..picture.notes import Mark, Picture
    from ..runtimes.fastpath.explanation import SESSION

    counts = found.counts
    tones = cycle(_TONES)
    marks = tuple(
        Mark(it, "" if it == SESSION else chr(ord("A") + at % 26), f"{it}: {counted(*counts[it])}", tone)
        for at, (it, tone) in enumerate((it, "faint" if it == SESSION else next(tones)) for it in counts)
    )
    marked: dict[int, tuple[str, ...]] = {}
    said: dict[int, tuple[str, ...]] = {}
    for it in found.partitioning.assignments:
        whole = f"{it.provider or SESSION} runs {it.kernel}, {counted(len(it.nodes), 1)}: {it.why}"
        for n in it.nodes:
            marked[n] = (it.provider or SESSION,)
            said[n] = (whole, *(f"{other.provider}: {other.why}" for other in found.others.get(n, ())))
    facts = ("Each node has the colour of the execution provider that runs it.",)
    general = tuple(
        f"{it.provider} is refused {_names(found, it.nodes)}: {it.why}" for it in found.partitioning.refusals
    )
    return Picture(name, facts, marks, marked, said, general=general)


def _write(console: Console, name: str, found: Explained) -> None:
    from rich.table import Table
    from sonnx.spec.terminal import inert, print_line

    from ..runtimes.fastpath.explanation import SESSION

    parts = found.partitioning.assignments
    print_line(console, inert(f"{name}: {counted(sum(len(it.nodes) for it in parts), len(parts))}"))
    for at, (provider, numbers) in enumerate(found.counts.items(), 1):
        if numbers[1] or provider != SESSION:
            print_line(console, inert(f"{at}  {provider}: {counted(*numbers)}"))
    print_line(console, "")
    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("provider", "runs", "nodes", "why"):
        table.add_column(heading, overflow="fold")
    for it in parts[:_SHOWN]:
        table.add_row(*map(inert, (it.provider or SESSION, it.kernel, _names(found, it.nodes), it.why)))
    console.print(table)
    if len(parts) > _SHOWN:
        print_line(console, f"and {len(parts) - _SHOWN} more; --format json has all")
    others: dict[tuple[str, str], list[int]] = {}
    for n, standings in found.others.items():
        for standing in standings:
            others.setdefault((standing.provider, standing.why), []).append(n)
    if others:
        print_line(console, "\nwho does not run them, and why not")
    ordered = sorted(others.items(), key=lambda it: (found.providers.index(it[0][0]), it[1][0]))
    for (provider, why), nodes in ordered[:_SHOWN]:
        print_line(console, inert(f"{provider}: {_names(found, nodes)}: {why}"))
    if len(ordered) > _SHOWN:
        print_line(console, f"and {len(ordered) - _SHOWN} more reasons; --format json has all")
    refused = found.partitioning.refusals
    if refused:
        print_line(console, "\nrefused")
    for refusal in refused[:_SHOWN]:
        print_line(console, inert(f"{refusal.provider}: {_names(found, refusal.nodes)}: {refusal.why}"))
    if len(refused) > _SHOWN:
        print_line(console, f"and {len(refused) - _SHOWN} more; --format json has all")


def _names(found: Explained, nodes: list[int] | tuple[int, ...]) -> str:
    from sonnx.spec.terminal import few

    known = found.model.nodes
    return few([known[n].path if 0 <= n < len(known) else f"no node {n}" for n in nodes], _FEW)
