"""The writes of a step, held against the reference: by the definition on what the reference itself had, or directly."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...machine.control import CONTROLS
from ...machine.judging import Judged, Standing, Undefined, applied, is_float, judge, nans, same, ulps
from ...machine.memory import load_value
from ...machine.phases import Enter, Leave, Stay
from ...machine.state import State, tensor_path, value_of
from ...machine.transitions import select
from ...model.graph import NodeId, TensorId
from ...model.path import quote
from ...model.schemas import normal_domain, operator_name
from ...model.values import Array, Value, identical
from ...operators.application import Application, Stuck
from ..display.texts import element_text, type_of_value
from ..timeline.history import History, Moment, Refused, Transition
from ..timeline.names import Instance, stored_region, with_kept, with_value
from .reference import Against

# ---- Tolerances -----------------------------------------------------------------------------------

_TOLERANCE: Final = re.compile(r"([0-9]{1,9})\s*ulps?|([0-9.]+(?:[eE][+-]?[0-9]{1,3})?)(%?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A distance that a person allows. unit: "ulp"; "" for a number; "%" of the greatest finite magnitude in the
    tensor of the reference."""

    number: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.number:g}{self.unit}"


def tolerance_of(text: str) -> Tolerance:
    """The tolerance that a text says. Raises Refused."""
    match = _TOLERANCE.fullmatch(text.strip())
    try:
        if match is not None:
            return Tolerance(float(match[1]), "ulp") if match[1] else Tolerance(float(match[2]), match[3])
    except ValueError:
        pass
    raise Refused(f"{quote(text)} is no tolerance: say 1e-3, 0.5% (of the tensor's greatest magnitude) or 4ulp")


# ---- Verdicts -------------------------------------------------------------------------------------


class Verdict(StrEnum):
    """The standing of a tensor of the reference to this run."""

    SAME = "same"
    """The same bits, where any NaN is any other."""
    DEFINED = "as defined"
    """Other bits than here, and just what the definition gives for the values that the reference had."""
    WITHIN = "within the bound"
    FREE = "left open"
    TOLERATED = "within the tolerance"
    UNDECIDED = "undecided"
    DIFFERS = "differs"
    """Other bits, and neither a bound nor a tolerance is there to judge them by."""
    BEYOND = "outside the tolerance"
    OUTSIDE = "outside the bound"
    UNLIKE = "another type or shape"


FAULTS: Final = frozenset((Verdict.DIFFERS, Verdict.BEYOND, Verdict.OUTSIDE, Verdict.UNLIKE))
"""What a person looks for: `first-diff` and the catch stop there."""
_OF: Final = {
    Standing.EXACT: Verdict.DEFINED,
    Standing.WITHIN: Verdict.WITHIN,
    Standing.FREE: Verdict.FREE,
    Standing.UNDECIDED: Verdict.UNDECIDED,
    Standing.OUTSIDE: Verdict.OUTSIDE,
}


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor that a step wrote, held against the reference.

    element: the worst one, None where there is none. here, there: its values. ulps: how far they are apart, None where
    that cannot be counted. ratio: of the bound, or of the tolerance. count: of how many elements other bits, of `size`.
    note: why the verdict is no better.
    """

    step: int
    node: str
    tensor: str
    verdict: Verdict
    element: tuple[int, ...] | None = None
    here: str = ""
    there: str = ""
    ulps: int | None = None
    ratio: float | None = None
    count: int = 0
    size: int = 0
    note: str = ""

    @property
    def sentence(self) -> str:
        """What was found, for a person."""
        at = "" if self.element is None else str(list(self.element))
        if not self.here:
            return f"{self.node} writes {self.tensor}: {self.verdict}{f': {self.note}' if self.note else ''}"
        apart = "" if self.ulps is None else f", {self.ulps} ULP apart"
        ratio = "" if self.ratio is None else f", {self.ratio:.3g} times what is allowed"
        ratio = ", where one value alone is allowed" if self.ratio == math.inf else ratio
        return (
            f"{self.node} writes {self.tensor}{at} = {self.here}, the reference has {self.there}{apart}{ratio}:"
            f" {self.verdict}, {self.count} of {self.size} elements differ{f' ({self.note})' if self.note else ''}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """A reference, and the distance that is tolerated in place of what the definition allows."""

    reference: Against
    tolerance: Tolerance | None = None


def held(history: History, comparison: Comparison, moment: Moment) -> tuple[Held, ...]:
    """The tensors that the transition to a moment wrote and the reference has. Raises Refused for values of the
    reference that cannot be read."""
    came, against, tolerance = moment.came, comparison.reference, comparison.tolerance
    if came is None:
        return ()
    before = history.at(moment.index - 1).state
    pairs: list[tuple[TensorId, str, Value, Value]] = []
    for t, where in zip(came.tensors, came.places, strict=True):
        path = tensor_path(moment.state, t)
        theirs = against.value(path)
        if theirs is not None:
            pairs.append((t, path, load_value(moment.state.store, where), theirs))
    if not pairs:
        return ()
    known = {t: theirs for t, _, _, theirs in pairs}
    by = {} if tolerance is not None else _by_definition(before, against, came, known, {t: x for t, _, x, _ in pairs})
    return tuple(
        _held(Held(moment.index, came.path, path, Verdict.SAME), ours, theirs, tolerance, by.get(t))
        for t, path, ours, theirs in pairs
    )


@dataclass(frozen=True, slots=True)
class _Open:
    """The definition says nothing of a tensor whose bits differ: the verdict then, and why."""

    verdict: Verdict
    why: str


def _by_definition(
    before: State, against: Against, came: Transition, known: Mapping[TensorId, Value], ours: Mapping[TensorId, Value]
) -> dict[TensorId, Judged | _Open]:
    """What the definition says of the reference's outputs, given the inputs that the reference had. Stored values are
    those of this model; an input of the model that the reference lacks is taken to be the same."""
    program = before.program
    node = program.model.nodes[came.node]
    if came.supplied:
        return dict.fromkeys(known, _Open(Verdict.UNDECIDED, f"the value here came {came.supplied}, by no definition"))
    if not isinstance(came.change, Stay) or node.bodies or node.version is None:
        by_rule = _by_rule(before, against, came, known)
        return dict.fromkeys(known, _of_holder(against, came)) if by_rule is None else by_rule
    inputs: list[Value | None] = []
    unlike = False
    for t in node.inputs:
        here = None if t is None else value_of(before, t)
        there = here
        if t is not None and stored_region(before, t) is None:
            path = tensor_path(before, t)
            there = against.value(path)
            if there is None and t in program.model.graphs[0].inputs:
                there = here
            if there is None:
                why = f"no bound is known, since the reference has no {path}: --tolerance says what is allowed"
                return dict.fromkeys(known, _Open(Verdict.DIFFERS, why))
        unlike = unlike or not identical(here, there)
        inputs.append(there)
    if not unlike and all(identical(ours[t], known[t]) for t in known):
        return {}
    application = Application(
        operator_name(node.domain, node.op_type),
        node.version,
        tuple(inputs),
        program.attributes(came.node),
        tuple(t is not None for t in node.outputs),
    )
    specified = applied(application)
    if isinstance(specified, Undefined):
        return dict.fromkeys(known, _Open(Verdict.UNDECIDED, specified.why))
    results = judge(specified, tuple(None if t is None else known.get(t) for t in node.outputs))
    named = zip(node.outputs, results, strict=False)
    return {t: it for t, it in named if t is not None and t in known and it is not None}


def _by_rule(
    before: State, against: Against, came: Transition, known: Mapping[TensorId, Value]
) -> dict[TensorId, Judged | _Open] | None:
    """What the rule of a node with a body makes of the values that the reference had: it moves them, and computes
    nothing. None where the reference lacks one, or its values lead to another rule or number of runs."""
    node = before.program.model.nodes[came.node]
    if node.op_type not in CONTROLS or normal_domain(node.domain):
        return None
    wanted = [t for t in node.inputs if t is not None]
    if before.frame.holder == came.node:
        wanted += before.program.model.graphs[before.frame.graph].outputs
    state = before
    try:
        for t in dict.fromkeys(wanted):
            if stored_region(before, t) is None:
                path = tensor_path(before, t)
                theirs = against.value(path)
                if theirs is None and t not in before.program.model.graphs[0].inputs:
                    return None
                state = state if theirs is None else with_value(state, Instance(t, path), theirs)
        if isinstance(came.change, Leave):
            state = with_kept(state, before, lambda instance, _: _there(against, instance))
    except Refused:
        return None
    if before.frame.holder == came.node and not _begins_alike(state, came.node):
        return None
    selected = select(state, came.node)
    if isinstance(selected, Stuck) or (selected.rule, selected.change) != (came.rule, came.change):
        return None
    made = CONTROLS[node.op_type].computes(state, selected)
    if isinstance(made, Stuck):
        return None
    why = f"the rule {came.rule} gives another value for the reference's own"
    given = dict(zip(made.tensors, made.values, strict=True))
    return {
        t: _Open(Verdict.DEFINED, "") if _alike(given[t], theirs) else _Open(Verdict.OUTSIDE, why)
        for t, theirs in known.items()
    }


def _begins_alike(state: State, holder: NodeId) -> bool:
    """True where the values of the reference begin the same body, for as many runs."""
    frame = state.frame
    if frame.below is None:
        return False
    begun = CONTROLS[state.program.model.nodes[holder].op_type].begins(replace(state, frame=frame.below), holder)
    change = None if isinstance(begun, Stuck) else begun[1]
    return isinstance(change, Enter) and (change.body, change.runs) == (frame.graph, frame.runs)


def _there(against: Against, instance: Instance) -> Value:
    theirs = against.value(instance.path)
    if theirs is None:
        raise Refused(f"the reference has no {instance.path}")
    return theirs


def _alike(one: Value, other: Value) -> bool:
    """The same bits, where any NaN is any other."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool(same(one, other).all())
    return identical(one, other)


def _of_holder(against: Against, came: Transition) -> _Open:
    """A node that passes values to a body and from it, or one without a version."""
    if any(path.startswith(f"{came.path}.") for path in against.values):
        return _Open(Verdict.UNDECIDED, "a node with a body passes values on: the steps in the body are judged")
    why = "no bound is known of a node with a body that the reference does not show: --tolerance says what is allowed"
    return _Open(Verdict.DIFFERS, why)


def _held(row: Held, ours: Value, theirs: Value, tolerance: Tolerance | None, by: Judged | _Open | None) -> Held:
    if type_of_value(ours) != type_of_value(theirs):
        note = f"{type_of_value(ours)} here, {type_of_value(theirs)} in the reference"
        return replace(row, verdict=Verdict.UNLIKE, note=note)
    if not isinstance(ours, np.ndarray) or not isinstance(theirs, np.ndarray):
        return _said(row, by, alike=identical(ours, theirs))
    equal = same(ours, theirs)
    row = replace(row, count=int((~equal).sum()), size=ours.size)
    worst = _far(ours, theirs, equal)
    if tolerance is not None:
        ratios = _ratios(ours, theirs, tolerance, equal)
        worst = _greatest(ratios, worst)
        ratio = None if worst is None else float(ratios[worst])
        if ratio is not None:
            row = replace(row, ratio=ratio, verdict=Verdict.BEYOND if ratio > 1 else Verdict.TOLERATED)
    elif by is not None:
        row = _said(row, by, alike=bool(equal.all()))
        seen = (by.first or by.worst) if isinstance(by, Judged) else None
        worst = worst if seen is None else seen.index
    if worst is None:
        return row
    distance = ulps(ours, theirs)
    apart = None if distance is None or (nans(ours) != nans(theirs))[worst] else int(distance[worst])
    here, there = (element_text(np.asarray(it[worst], it.dtype)) for it in (ours, theirs))
    return replace(row, element=worst, here=here, there=there, ulps=apart)


def _said(row: Held, by: Judged | _Open | None, *, alike: bool = False) -> Held:
    """The verdict by the definition; without one, that of values whose bits differ."""
    match by:
        case Judged():
            verdict = _OF[by.standing]
            if alike and verdict is Verdict.DEFINED:
                return row
            seen = by.first or by.worst
            own = "" if seen is None else f"the definition gives {seen.expected.decimal} for the reference's own inputs"
            if verdict is Verdict.UNDECIDED:
                own = f"no bound is known here; {own}" if own else "no bound is known here"
            return replace(row, verdict=verdict, ratio=by.ratio, note=by.note or own)
        case _Open():
            return row if alike and by.verdict is not Verdict.OUTSIDE else replace(row, verdict=by.verdict, note=by.why)
        case None:
            return row if alike else replace(row, verdict=Verdict.DIFFERS)


# ---- Elements -------------------------------------------------------------------------------------


def _ratios(ours: Array, theirs: Array, tolerance: Tolerance, equal: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The distance of each element by the tolerance: infinite where there is no distance and the bits differ."""
    distance, allowed = ulps(ours, theirs), tolerance.number
    if distance is None and ours.dtype.kind != "c":
        return np.where(equal, 0.0, np.inf)
    with np.errstate(all="ignore"):
        if tolerance.unit == "ulp" or (distance is not None and not is_float(ours)):
            apart = np.full(ours.shape, np.inf) if distance is None else distance.astype(np.float64)
        elif ours.dtype.kind == "c":
            apart = np.abs(ours.astype(np.complex128) - theirs.astype(np.complex128))
        else:
            apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        if tolerance.unit == "%":
            size = np.abs(theirs.astype(np.complex128 if theirs.dtype.kind == "c" else np.float64))
            allowed = allowed / 100 * float(np.max(size, where=np.isfinite(size), initial=0.0))
        ratios = apart / allowed if allowed else np.where(apart > 0, np.inf, 0.0)
    strange = np.isnan(ratios) | (nans(ours) != nans(theirs))
    return np.where(equal, 0.0, np.where(strange, np.inf, ratios))


def _far(ours: Array, theirs: Array, equal: NDArray[np.bool_]) -> tuple[int, ...] | None:
    """The element whose two values are the farthest apart; None where all are the same."""
    distance = ulps(ours, theirs)
    apart = np.ones(ours.shape) if distance is None else distance.astype(np.float64)
    return _greatest(np.where(equal, 0.0, np.where(nans(ours) != nans(theirs), np.inf, np.maximum(apart, 1.0))), None)


def _greatest(distances: NDArray[np.float64], otherwise: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The first element of the greatest distance that is not 0."""
    if not distances.size or not distances.any():
        return otherwise
    return tuple(int(i) for i in np.unravel_index(int(distances.argmax()), distances.shape))
