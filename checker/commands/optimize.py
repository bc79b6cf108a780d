"""`sonnx optimize`: a model with fewer nodes that means the same, by rules that are proved."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from sonnx.semantics.commands.options import PATH, check_apart, check_writable, write_whole
from sonnx.spec.terminal import inert, progress_bar

if TYPE_CHECKING:
    from ..equivalence.optimizing.optimizer import Optimized


@click.command()
@click.argument("model", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, metavar="OUT.onnx", help="Where the new model is written.")
@click.option(
    "--strength",
    type=click.Choice(("exact", "allowed", "reals")),
    default="exact",
    show_default=True,
    help="Use rewrites that claim at least this, and are proved.",
)
@click.option(
    "--rules",
    metavar="NAME,...",
    help="Use these rewrites, in this order, wherever they stand; one that is not on record, such as one of your own"
    " (sonnx --spec), is proved first, or refused. Without it: all of that strength, where they leave fewer nodes to"
    " run.",
)
@click.option(
    "--fix-initializers",
    "fixed",
    is_flag=True,
    help="Stored values that are inputs too, so that a caller may override them, become fixed, and no inputs.",
)
@click.option(
    "--opset",
    type=click.IntRange(min=1),
    metavar="N",
    help="Raise the model to this operator set of ONNX first, by rewrites too; most rewrites are about newer ones.",
)
@click.option("--report", type=PATH, metavar="FILE.json", help="Write what was done: rule, place, tensors.")
@click.option("--certificate", type=PATH, metavar="FILE.json", help="Write the steps, for `sonnx recheck`.")
def optimize(
    model: Path,
    output: Path,
    strength: str,
    rules: str | None,
    fixed: bool,
    opset: int | None,
    report: Path | None,
    certificate: Path | None,
) -> None:
    """Write a model that means the same as MODEL, with fewer nodes.

    Rewrites of part 7 of the specification are applied, local changes that `sonnx prove --transforms` has proved, and
    theorems of part 6 on the whole model: values that stored ones decide are computed by the texts, equal nodes are
    merged, nodes of which nothing is read go. Transposes move towards the outputs where they meet others and fewer are
    left. Strength exact: each run of MODEL that comes to its end gives the same
    bits, but that a NaN may be another NaN. allowed: a result that the definition allows. reals: equal over the real
    numbers only. Functions are expanded.

    Exit code: 0 written, 2 unreadable input or usage, 3 the rewrites come to no end (the model so far is written).

    \b
    Examples:
      sonnx optimize model.onnx -o small.onnx
      sonnx optimize model.onnx -o small.onnx --strength reals --certificate done.json
    """
    from sonnx.semantics.model.loader import load
    from sonnx.semantics.model.writing import model_proto

    from ..equivalence.optimizing.optimizer import optimize as run
    from ..equivalence.optimizing.optimizer import overridable

    check_writable(output, report, certificate)
    loaded = load(model)
    check_apart((output, report, certificate), loaded)
    names = None if rules is None else [it.strip() for it in rules.split(",") if it.strip()]
    with progress_bar() as bar:
        done = run(loaded, strength=strength, rules=names, fixed=fixed, opset=opset, progress=bar)
    write_whole(output, model_proto(done.model).SerializeToString(deterministic=True))
    if report is not None:
        write_whole(report, (json.dumps(_data(model, output, done, strength), indent=2) + "\n").encode())
    if certificate is not None:
        from ..equivalence.optimizing.certificate import of_optimized

        write_whole(certificate, of_optimized(loaded, output, done, fixed=fixed))
    for rule, times in done.counts().items():
        claim = next(it.claim for it in done.log if it.rule == rule)
        click.echo(inert(f"{times:6} {rule} ({claim})"))
    click.echo(f"{done.before} nodes before, {done.after} now; strength {done.strength}")
    for sentence in dict.fromkeys(said for it in done.log for said in it.assumed):
        click.echo(inert(f"assumed of values: {sentence}"))
    left = 0 if fixed else len(overridable(loaded))
    if left:
        click.echo(
            f"stored values that a caller can override: {left}; nothing was computed from them,"
            " --fix-initializers makes them fixed"
        )
    if not done.finished:
        click.echo("the rewrites come to no end: name fewer with --rules", err=True)
        sys.exit(3)


def _data(model: Path, output: Path, done: Optimized, strength: str) -> dict[str, object]:
    return {
        "model": model.name,
        "output": output.name,
        "asked": strength,
        "strength": done.strength,
        "nodes": {"before": done.before, "after": done.after},
        "finished": done.finished,
        "firings": [
            {
                "rule": it.rule,
                "claim": it.claim,
                "place": it.place,
                "tensors": dict(it.tensors),
                "assumed": list(it.assumed),
                "nodes": it.into,
            }
            for it in done.log
        ],
    }
