"""The machine on the model of a finding.

The machine refuses such a model where a constraint without which values depend on the schedule does not hold. What it
would do without that check is seen by beginning it behind the check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.structure import Element
from sonnx.semantics.machine.execution import evaluate, initial, run
from sonnx.semantics.machine.schedule import Schedule
from sonnx.semantics.machine.state import State, has_value
from sonnx.semantics.machine.transitions import step
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.values import Value
from sonnx.semantics.operators.application import Stuck
from sonnx.semantics.operators.compiled.ieee import apply

Asked = tuple[str, bool]
"""A question as a statement, and whether it is so."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """refusal: the constraint for which the machine refuses the model, "" when it does not. fired: the nodes that fire
    when it is begun all the same; start, last: the states of that run. node: the one of the finding."""

    model: Model
    refusal: str
    fired: tuple[int, ...]
    start: State
    last: State
    node: int | None


def executed(finding: str, model: Model, bindings: Mapping[str, Element]) -> list[Asked]:
    """The statements of a finding about executions, asked of the machine; nothing for a finding of which nothing is
    known here."""
    if finding not in ASKED:
        return []
    values: dict[int, Value] = {t: np.array([1.0, -2.0], np.float32) for t in model.graphs[0].inputs}
    start = initial(model, values, Schedule("random", 1), apply)
    if isinstance(start, Stuck):
        raise InternalError("there is a budget where none was set")
    ending = evaluate(start)
    refused = run(model, {model.tensors[t].name: value for t, value in values.items()}).stuck
    node = int(bindings["n"]) if "n" in bindings else None
    seen = _Seen(model, "" if refused is None else refused.rule, ending.choices, start, ending.states[-1], node)
    return ASKED[finding](seen)


def _never_runs(seen: _Seen) -> list[Asked]:
    return [
        ("begun all the same, the machine ends with a value for every output", _complete(seen)),
        ("and the node has not fired", seen.node not in seen.fired),
        (f"the machine refuses the model: {seen.refusal}", seen.refusal == "Acyclic"),
    ]


def _runs(seen: _Seen) -> list[Asked]:
    return [("begun all the same, the machine fires the node", seen.node in seen.fired)]


def _ready_again(seen: _Seen) -> list[Asked]:
    return [
        (
            "the machine runs the model, and the node fires once",
            not seen.refusal and seen.fired.count(_node(seen)) == 1,
        ),
        ("then all that the node reads has a value still", _ready(seen, seen.last)),
        ("it fires no more, by the premise that no output has a value", _refuses(seen, seen.last, "has fired")),
    ]


def _never_ends(seen: _Seen) -> list[Asked]:
    return [
        ("all that the node reads has a value, at the beginning and at the end",
         _ready(seen, seen.start) and _ready(seen, seen.last)),
        ("none of its outputs has one at the end: it has none", not seen.last.program.writes[_node(seen)]),
        ("the machine does not fire it, by the premise that it has an output",
         seen.node not in seen.fired and _refuses(seen, seen.start, "has no output")),
    ]  # fmt: skip


def _refused(seen: _Seen) -> list[Asked]:
    return [(f"the machine refuses the model: {seen.refusal}", seen.refusal == "NoWriteToInput")]


def _starves(seen: _Seen) -> list[Asked]:
    return [
        ("begun all the same, the machine does not fire the node", seen.node not in seen.fired),
        ("and an output of the model has no value at the end", not _complete(seen)),
        *_refused(seen),
    ]


def _twice(seen: _Seen) -> list[Asked]:
    rule = seen.refusal
    return [(f"the machine refuses the model: {rule}", rule in ("SingleAssignment", "OutputPositions"))]


ASKED: Mapping[str, Callable[[_Seen], list[Asked]]] = {
    "NodesThatNeverRun": _never_runs,
    "DeadNodes": _runs,
    "FiresAgain": _ready_again,
    "FiresForEver": _never_ends,
    "WrittenInputs": _refused,
    "StarvedWriter": _starves,
    "CountedByNodes": _twice,
}
"""For each finding about executions what is asked of the machine."""


def _node(seen: _Seen) -> int:
    if seen.node is None:
        raise InternalError("the finding is about no node")
    return seen.node


def _ready(seen: _Seen, state: State) -> bool:
    return all(has_value(state, t) for t in state.program.reads[_node(seen)])


def _complete(seen: _Seen) -> bool:
    return all(has_value(seen.last, t) for t in seen.model.graphs[0].outputs)


def _refuses(seen: _Seen, state: State, why: str) -> bool:
    outcome = step(state, _node(seen))
    return isinstance(outcome, Stuck) and outcome.premise.startswith("enabled(") and why in outcome.message
