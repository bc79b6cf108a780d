"""Commands that hold the run against a reference: naming it, the first difference, the table of all steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ...machine.memory import load_value
from ...machine.state import State, region_of, tensor_path
from ...model.differences import unequal
from ...model.path import Body, parse_path, print_path, quote
from ...model.path import Path as Path_
from ...model.values import Value, identical
from ...resources.process import paused
from ..against.judging import FAULTS, Comparison, Held, Verdict, held, tolerance_of
from ..against.reference import Against, mapping_of, opened, plain
from ..display.answers import Answer, Cell, Note, Rows, Stop, count
from ..display.texts import type_of_value
from ..session.session import Command, Outcome, Session, answered, moved, unquoted, where, words
from ..stops import Difference, divergence, first_difference, hit_of, open_reference
from ..timeline.history import Refused
from ..timeline.names import stored_region

_SHOWN: Final = 5


def _against(session: Session, text: str) -> Outcome:
    parts = words(text)
    maps: dict[str, str] = {}
    tolerance = None
    named: list[str] = []
    while parts:
        word = parts.pop(0)
        if named and word in ("map", "tolerance"):
            if not parts:
                raise Refused(f"{word} needs a value behind it")
            said = parts.pop(0)
            if word == "map":
                maps |= mapping_of(unquoted(said))
            else:
                tolerance = tolerance_of(unquoted(said))
        else:
            named.append(unquoted(word))
    if len(named) != 1:
        raise Refused("against what? One engine, or one file: an .npz, a trace of sonnx run, a model")
    state = session.timelines[0].at(0).state
    inputs = {
        session.model.tensors[t].name: load_value(state.store, region)
        for t in session.model.graphs[0].inputs
        if (region := region_of(state, t)) is not None and region != stored_region(state, t)
    }
    with paused():
        reference = opened(named[0], session.model, session.source, inputs, maps)
    comparison = Comparison(reference, tolerance)
    return Outcome(replace(session, against=comparison), Note(_introduced(session, comparison, state)))


def _introduced(session: Session, comparison: Comparison, state: State) -> tuple[str, ...]:
    model, reference = session.model, comparison.reference
    written = {model.tensors[t].path for node in model.nodes for t in node.outputs if t is not None}
    there = {plain(path) for path in reference.values}
    by = "by the definition on the reference's own values" if comparison.tolerance is None else (
        f"by the tolerance {comparison.tolerance}"
    )  # fmt: skip
    return (
        f"{quote(reference.text)} has {len(written & there)} of the {len(written)} tensors that nodes write",
        f"judged {by}",
        *_unmatched(reference),
        *_given(session, reference, state),
        *reference.notes,
    )


def _unmatched(reference: Against) -> Iterator[str]:
    if reference.unmatched:
        shown = ", ".join(reference.unmatched[:_SHOWN])
        more = len(reference.unmatched) - _SHOWN
        tail = f" and {more} more" if more > 0 else ""
        yield f"{len(reference.unmatched)} of its tensors match none here: {shown}{tail}"


def _given(session: Session, reference: Against, state: State) -> Iterator[str]:
    """The inputs and stored tensors that the reference lacks, or has others of."""
    lacking, unlike = [], []
    inputs = set(session.model.graphs[0].inputs)
    for t, tensor in enumerate(session.model.tensors):
        stored = stored_region(state, t)
        if t not in inputs and stored is None:
            continue
        if tensor.path not in reference.values:
            lacking += [tensor.path] if stored is None else []
            continue
        region = stored if t not in inputs else region_of(state, t)
        here, there = None if region is None else load_value(state.store, region), reference.value(tensor.path)
        if not identical(here, there):
            what = f"the {'stored' if stored is not None else 'input'} {tensor.path}"
            unlike.append(f"{what} is another one in the reference{_extent(here, there)}")
    yield from unlike[:_SHOWN]
    if len(unlike) > _SHOWN:
        yield f"{len(unlike) - _SHOWN} more inputs and stored tensors are others in the reference"
    if lacking:
        names = ", ".join(lacking[:_SHOWN]) + (" ..." if len(lacking) > _SHOWN else "")
        yield f"not in the reference, and taken to be the same: the input {names}"


def _extent(here: Value | None, there: Value | None) -> str:
    if not isinstance(here, np.ndarray) or not isinstance(there, np.ndarray):
        return ""
    if here.dtype != there.dtype or here.shape != there.shape:
        return f": {type_of_value(here)} here, {type_of_value(there)} there"
    return f": {int(unequal(here, there).sum())} of {here.size} elements"


def _compared(session: Session) -> Comparison:
    if session.against is None:
        raise Refused("against what? Say against FILE, against ENGINE or against MODEL first")
    return session.against


# ---- The first difference -------------------------------------------------------------------------


def _first_diff(session: Session, text: str) -> Outcome:
    files = [unquoted(it) for it in words(text)]
    if len(files) > 2:
        raise Refused("first-diff takes one recorded run, or two, or none after against")
    if not files:
        return _first_against(session, _compared(session))
    return Outcome(session, _first_recorded(session, files))


def _first_against(session: Session, comparison: Comparison) -> Outcome:
    rows: list[Held] = []
    for row in _rows(session, comparison):
        if row.verdict in FAULTS:
            there = moved(session, row.step)
            return Outcome(there, Stop("catch", where(there), (hit_of(row, 0),)))
        rows.append(row)
    first = "no step is outside of what is allowed" if rows else "nothing was compared"
    return Outcome(session, Note((first, *_summary(session, comparison, rows))))


def _rows(session: Session, comparison: Comparison) -> Iterator[Held]:
    """All that the run writes and the reference has, in order. Raises Refused where it is interrupted."""
    history, index = session.history, 0
    with paused():
        while history.reach(index + 1) is not None:
            index += 1
            yield from held(history, comparison, history.at(index))
            if session.interrupted():
                raise Refused(f"interrupted after {index} steps")


def _first_recorded(session: Session, files: list[str]) -> Answer:
    one = open_reference(Path(files[0]), session.model)
    if len(files) == 2:
        difference = first_difference(one, open_reference(Path(files[1]), session.model))
        return _difference(difference, files[0], files[1])
    history, index = session.history, 0
    with paused():
        while history.reach(index + 1) is not None:
            index += 1
            hit = divergence(one, history.at(index), 0)
            if hit is not None:
                return Note((hit.text, f"seek {index} is right after, seek {index - 1} right before"))
            if session.interrupted():
                return Note((f"interrupted: no difference in the first {index} steps",))
    return Note((f"no difference in {index} steps",))


def _difference(difference: Difference | None, one: str, other: str) -> Answer:
    if difference is None:
        return Note(("no difference in what both have written",))
    at = "" if difference.element is None else str(list(difference.element))
    rows = (
        (
            f"{difference.tensor}{at}",
            difference.node,
            difference.one,
            difference.other,
            difference.ulp,
            f"{difference.count} of {difference.size}",
        ),
    )
    headings = ("first difference", "node", quote(one), quote(other), "ulp apart", "elements that differ")
    return Rows("first-diff", headings, rows)


# ---- The table ------------------------------------------------------------------------------------


def _diff(session: Session, text: str) -> Answer:
    if text.strip() not in ("", "all"):
        raise Refused("diff takes nothing, or all: those that are the same too")
    comparison = _compared(session)
    rows = list(_rows(session, comparison))
    shown = rows if text.strip() else [it for it in rows if it.verdict is not Verdict.SAME]
    headings = ("step", "node", "tensor", "worst", "here", "reference", "ulp", _of(comparison), "verdict", "why")
    return Rows("diff", headings, tuple(map(_row, shown)), _summary(session, comparison, rows))


def _of(comparison: Comparison) -> str:
    return "of the bound" if comparison.tolerance is None else "of the tolerance"


def _row(it: Held) -> tuple[str | Cell, ...]:
    element = Cell(
        "" if it.element is None else str(list(it.element)), None if it.element is None else list(it.element)
    )
    number = it.ratio if it.ratio is None or math.isfinite(it.ratio) else str(it.ratio)
    ratio = Cell("" if it.ratio is None else f"{it.ratio:.3g}", number)
    step = count(it.step)
    return step, it.node, it.tensor, element, it.here, it.there, count(it.ulps), ratio, str(it.verdict), it.note


def _summary(session: Session, comparison: Comparison, rows: list[Held]) -> tuple[str, ...]:
    """How many tensors there are of each verdict, and what was not compared."""
    verdicts = Counter(it.verdict for it in rows)
    counts = ", ".join(f"{verdicts[it]} {it}" for it in Verdict if verdicts[it]) or "nothing"
    history = session.history
    met = {it.tensor for it in rows}
    written = tuple(_written(session))
    lacking = [path for path in written if path not in met]
    lines = [f"compared in {history.last} steps: {counts}"]
    if verdicts[Verdict.DEFINED]:
        lines.append(f"{Verdict.DEFINED}: another value than here, and the one that the reference's own inputs give")
    if lacking:
        lines.append(f"{len(lacking)} that the run writes are not in the reference, the first {lacking[0]}")
    undecided = next((it for it in rows if it.verdict is Verdict.UNDECIDED), None)
    if undecided is not None:
        lines.append(
            f"undecided at step {undecided.step}, {undecided.tensor}: {undecided.note}; --tolerance decides it"
        )
    here, there = _runs(written), _runs(comparison.reference.values)
    lines += [
        f"{body} ran {here[body]} times here, {there[body]} times in the reference"
        for body in here
        if body in there and here[body] != there[body]
    ]
    if history.stuck is not None:
        lines.append(f"the run is stuck after {history.last} steps: {history.stuck.message}")
    return (*lines, *_unmatched(comparison.reference))


def _written(session: Session) -> Iterator[str]:
    """The tensors that the run has written so far, by path."""
    for index in range(1, session.history.last + 1):
        moment = session.history.at(index)
        for t in () if moment.came is None else moment.came.tensors:
            yield tensor_path(moment.state, t)


def _runs(paths: Iterable[str]) -> dict[str, int]:
    """How many runs of each body these tensors are of."""
    runs: dict[str, int] = {}
    for path in paths:
        if "@" not in path:
            continue
        steps = parse_path(path).steps
        last = steps[-1].into if steps else None
        if isinstance(last, Body) and last.iteration is not None:
            body = print_path(Path_((*steps[:-1], replace(steps[-1], into=replace(last, iteration=None)))))
            runs[body] = max(runs.get(body, 0), last.iteration + 1)
    return runs


COMMANDS = (
    Command("against", _against, "Name what the run is compared with: values in an .npz file by the names or paths of"
            " tensors, a trace with values, an engine, or another model, which the machine runs on the same inputs.",
            "FILE.npz|TRACE|ENGINE|MODEL [map THEIRS=OURS|FILE] [tolerance 1e-3|0.5%|4ulp]", (),
            ("against healthy.onnx", "against onnxruntime", "against board.npz map out_7=y tolerance 0.5%"), "file",
            keeps=True),
    Command("first-diff", _first_diff, "Go to the first step whose output is not allowed beside what `against` names;"
            " or say where this run, or a second recorded one, first has other bits than a recorded one.",
            "[TRACE [TRACE]]", (), ("first-diff", "first-diff run.trace"), "file"),
    Command("diff", answered(_diff), "Each tensor that the run writes beside the reference: the worst element, the"
            " distance in ULP, the part of the bound or tolerance, the verdict; `all`: those that are the same too.",
            "[all]", (), ("diff", "diff all")),
)  # fmt: skip
