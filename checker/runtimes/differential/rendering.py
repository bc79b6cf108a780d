"""A comparison as text for a terminal or a pipe. What comes from a model is shown inert."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text
from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.machine.judging import Difference, Judged, Standing
from sonnx.semantics.model.graph import Model
from sonnx.semantics.operators.application import Application
from sonnx.semantics.operators.symbolic.footprint import Index, footprint
from sonnx.semantics.operators.symbolic.values import Undefined
from sonnx.spec.terminal import inert, print_line

from .comparison import CaseComparison, NodeJudged, Side, Verdict
from .parts import PartJudged, PartsComparison, name_of

# ---- Origins of an element ----------------------------------------------------------------------


LARGEST: Final = 1 << 16
"""Elements of all inputs together; of a larger application no footprint is taken."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The reads of an element in one input. control: the reads decide, they are no part of the value.

    low, high: the least and the greatest index along each axis.
    """

    input: int
    control: bool
    count: int
    low: Index
    high: Index


def origins(application: Application, output: int, index: Index) -> tuple[Origin, ...]:
    """The footprint of an element by input; nothing where the interpretation does not tell it or it takes too long."""
    sizes = [getattr(value, "size", LARGEST + 1) for value in application.inputs if value is not None]
    if sum(sizes) > LARGEST:
        return ()
    try:
        read_from = footprint(application, output, index)
    except (Undefined, Unsupported, InternalError, RecursionError, ValueError, TypeError, KeyError):
        return ()
    made = [_origin(at, False, reads) for at, reads in read_from.data.items()]
    return (*made, *(_origin(at, True, reads) for at, reads in read_from.control.items()))


def _origin(at: int, control: bool, reads: Iterable[Index]) -> Origin:
    indices = tuple(reads)
    axes = tuple(zip(*indices, strict=True))
    return Origin(at, control, len(indices), tuple(map(min, axes)), tuple(map(max, axes)))


# ---- Text ---------------------------------------------------------------------------------------


SHOWN: Final = 8
"""The most outputs, and nodes with other values, that are listed for each case."""
STYLES: Final = {
    Verdict.AGREE: "bold green",
    Verdict.DIVERGE: "bold red",
    Verdict.NOT_COMPARED: "bold yellow",
}


def write(
    console: Console, name: str, model: Model, engines: Sequence[tuple[str, str]], cases: Iterable[CaseComparison]
) -> None:
    """Prints the comparison. engines: names and versions."""
    spelled = " and ".join(f"{engine} {version}".strip() for engine, version in engines)
    print_line(console, f"model    {inert(name)} ({len(model.graphs[0].nodes)} nodes)")
    print_line(console, f"engines  {spelled}")
    for case in cases:
        console.print()
        _case(console, model, case)


def element_text(difference: Difference, ratio: bool = True) -> str:
    """One element: its place, both values in decimal and hexadecimal, the distance."""
    index = f"[{', '.join(map(str, difference.index))}]"
    far = [] if difference.ulps is None else [f"{difference.ulps} ULP"]
    if ratio and difference.ratio is not None:
        far.append(f"{difference.ratio:.3g} times the bound")
    expected, given = difference.expected, difference.found
    return (
        f"element {difference.place}{index}: expected {expected.decimal} ({expected.hex}),"
        f" found {given.decimal} ({given.hex}){', ' if far else ''}{', '.join(far)}"
    )


def origin_text(origin: Origin, names: Sequence[str]) -> str:
    """The reads of an element in an input: how many elements, between which indices."""
    box = ", ".join(str(a) if a == b else f"{a}..{b}" for a, b in zip(origin.low, origin.high, strict=True))
    name = names[origin.input] if origin.input < len(names) else f"input {origin.input}"
    count = f"{origin.count} element{'s' * (origin.count != 1)}"
    return f"{'decided' if origin.control else 'computed'} by {count} of {name} [{box}]"


def _case(console: Console, model: Model, case: CaseComparison) -> None:
    print_line(console, Text.assemble((f"{inert(case.label)}: ", "bold"), (case.verdict.value, STYLES[case.verdict])))
    print_line(console, f"  {case.reason}")
    console.print(_table(case.sides))
    for side in case.sides:
        _side(console, model, side)
    _outputs(console, case)


def _table(sides: Iterable[Side]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("  engine", no_wrap=True)
    for heading in ("nodes", "exact", "within", "freedom", "undecided", "outside", "ULP", "of the bound"):
        table.add_column(heading, justify="right")
    for side in sides:
        if side.by_definition:
            table.add_row(f"  {inert(side.engine)}", "the definition")
            continue
        judged = [it for node in side.nodes for _, it in node.outputs]
        greatest = max((it.ulps for it in judged if it.ulps is not None), default=None)
        ratio = max((it.ratio for it in judged if it.ratio is not None), default=None)
        counts = [sum(getattr(it, name) for it in judged) for name in ("exact", "within", "free", "undecided")]
        table.add_row(
            f"  {inert(side.engine)}",
            f"{sum(not node.undecided for node in side.nodes)}/{len(side.nodes)}",
            *map(str, counts),
            str(sum(it.outside for it in judged)),
            "" if greatest is None else str(greatest),
            "" if ratio is None else f"{ratio:.3g}",
        )
    return table


def _side(console: Console, model: Model, side: Side) -> None:
    engine = inert(side.engine)
    if side.failure is not None:
        print_line(console, f"  {engine}: {inert(str(side.failure))}")
    elif side.hidden is not None:
        print_line(console, f"  {engine} shows no intermediate values: {inert(str(side.hidden))}")
    for name, judged in side.perturbed[:SHOWN]:
        print_line(console, f"  showing the values of {engine} changes its output {inert(repr(name))}: {_far(judged)}")
    divergence = side.divergence()
    if divergence is None:
        return
    node, tensor, judged = divergence
    print_line(
        console, f"  first divergence: {engine} at {inert(node.path)} ({node.operator}), tensor {inert(repr(tensor))}"
    )
    if judged.note:
        print_line(console, f"    {inert(judged.note)}")
    if judged.first is not None:
        print_line(console, f"    {inert(element_text(judged.first))}")
        for text in _origins(model, node, tensor, judged.first):
            print_line(console, f"    {inert(text)}")
    if judged.worst is not None and judged.worst != judged.first:
        print_line(console, f"    worst {inert(element_text(judged.worst))}")
    counted = sum(any(it.standing is Standing.OUTSIDE for _, it in n.outputs) for n in side.nodes)
    if counted > 1:
        print_line(console, f"    {counted} nodes diverge")


def _origins(model: Model, node: NodeJudged, tensor: str, difference: Difference) -> list[str]:
    names = node.inputs
    position = node.positions.get(tensor)
    if node.application is None or position is None or difference.place:
        return []
    return [origin_text(it, names) for it in origins(node.application, position, difference.index)]


def _outputs(console: Console, case: CaseComparison) -> None:
    for name, judged in case.outputs[:SHOWN]:
        if judged.standing is not Standing.EXACT:
            print_line(console, f"  end to end, output {inert(repr(name))}: {_far(judged)}")
    if len(case.propagated) > 0:
        path, name, judged = case.propagated[0]
        more = len(case.propagated) - 1
        print_line(
            console,
            f"  values differ from {inert(path)}, tensor {inert(repr(name))}, on: {_far(judged)}"
            + (f"; in {more} more tensor{'s' * (more > 1)}" if more else ""),
        )


def _far(judged: Judged) -> str:
    if judged.note:
        return inert(judged.note)
    differ = judged.elements - judged.exact
    by = "" if judged.ulps is None else f", by up to {judged.ulps} ULP"
    first = "" if judged.first is None else f"; first {element_text(judged.first, ratio=False)}"
    return f"{differ} of {judged.elements} elements differ{by}{inert(first)}"


# ---- Parts --------------------------------------------------------------------------------------


LISTED: Final = 40
"""The most parts that are listed for each case."""


def write_parts(
    console: Console, name: str, model: Model, providers: Sequence[str], cases: Iterable[PartsComparison]
) -> None:
    """Prints a comparison of parts. providers: their names, in the order of preference."""
    print_line(console, f"model      {inert(name)} ({len(model.nodes)} nodes)")
    print_line(console, f"providers  {inert(', '.join(providers))}")
    for case in cases:
        console.print()
        verdict = (case.verdict.value, STYLES[case.verdict])
        print_line(console, Text.assemble((f"{inert(case.label)}: ", "bold"), verdict))
        print_line(console, f"  {inert(case.reason)}")
        if case.parts:
            console.print(_parts_table(case.parts[:LISTED]))
        if len(case.parts) > LISTED:
            print_line(console, f"  and {len(case.parts) - LISTED} more; --format json has all")
        if case.first is not None:
            _first_part(console, case.parts, case.first)
        if case.stopped:
            print_line(console, f"  the run by the providers ends early: {inert(case.stopped)}")


def _parts_table(parts: Iterable[PartJudged]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("  part", overflow="fold")
    for heading in ("nodes", "exact", "within", "freedom", "undecided", "outside", "ULP", "inherited", "together"):
        table.add_column(heading, justify="right")
    for it in parts:
        own = [judged for _, judged in it.own]
        names = ("exact", "within", "free", "undecided", "outside")
        counts = ["-"] * 5 if it.failure else [str(sum(getattr(judged, name) for judged in own)) for name in names]
        table.add_row(
            f"  {inert(it.part.provider.removesuffix('ExecutionProvider'))} {inert(it.part.ends)}",
            str(len(it.part.nodes)),
            *counts,
            _distance(own),
            *(_distance([] if judged is None else [judged]) for judged in (it.inherited, it.together)),
        )
    return table


def _distance(judged: Iterable[Judged]) -> str:
    """The greatest distance in ULP, or what else is to be said of it."""
    rows = list(judged)
    if any(it.note for it in rows):
        return "other"
    differ = any(it.exact < it.elements for it in rows)
    far = max((it.ulps for it in rows if it.ulps), default=None)
    return "" if not rows else str(far) if far is not None else "differ" if differ else "0"


def _first_part(console: Console, parts: Sequence[PartJudged], first: PartJudged) -> None:
    if first.outside is None:
        return
    tensor, judged = first.outside
    print_line(console, f"  first wrong part: {inert(name_of(first.part))}, tensor {inert(tensor)}")
    if judged.note:
        print_line(console, f"    {inert(judged.note)}")
    if judged.first is not None:
        print_line(console, f"    {inert(element_text(judged.first))}")
    if judged.worst is not None and judged.worst != judged.first:
        print_line(console, f"    worst {inert(element_text(judged.worst))}")
    counted = sum(it.outside is not None for it in parts)
    if counted > 1:
        print_line(console, f"    {counted} parts are wrong")
