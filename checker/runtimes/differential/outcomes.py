"""The outcome of one case in one engine, as a class and the evidence for it. Counts of classes add up to the cases.

A case is a model with inputs; what is allowed follows from the specification. A case that compared nothing is no pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sonnx.semantics.errors import InternalError, ModelError, Unsupported
from sonnx.semantics.machine.judging import Judged, Standing, merged
from sonnx.semantics.runtimes.engines.protocol import REFUSALS, Engine, Failure, Kind, Source, Values

from .comparison import NodeJudged, Side, Specified, examine, specified


class Class(StrEnum):
    """The classes of outcomes (DESIGN 7)."""

    PASS = "pass"
    MISMATCH = "mismatch"
    REFUSED = "refused"
    OUTSIDE = "outside the domain"
    FREEDOM = "allowed freedom"
    HARNESS = "harness error"
    CRASH = "crash"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True, slots=True)
class Case:
    """A model with inputs. name: unique among the cases of a run. tags: what is known of it, such as its operator.

    expected: stored outputs that come with it, None where it is judged by the specification alone.
    """

    name: str
    source: Source
    feeds: Values
    tags: Mapping[str, str] = field(default_factory=dict)
    expected: Values | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a case. kind: of what the engine said, "" where it gave values. why: one line.

    where, operator: the node that the class is about, "" for the model as a whole. tensor, judged: the value that
    decides the class, or all values together where none does.
    """

    case: str
    engine: str
    outcome: Class
    kind: str = ""
    why: str = ""
    where: str = ""
    operator: str = ""
    tensor: str = ""
    judged: Judged | None = None

    @property
    def signature(self) -> tuple[str, ...]:
        """The same for results that seem to have one cause."""
        said = "" if self.judged is not None else " ".join(self.why.split()[:12])
        return (self.outcome.value, self.kind, self.operator, said)


def judge_case(engine: Engine, case: Case) -> Result:
    """The outcome of a case. A defect of this package is an outcome too."""
    return judge_engines([engine], case)[0]


def judge_engines(engines: Sequence[Engine], case: Case, *, every_node: bool = False) -> tuple[Result, ...]:
    """The outcomes of a case in several engines; the specification is asked once.

    every_node: nodes are judged also where the outputs are the definition's bit for bit.
    """
    try:
        asked = specified(case.source, case.feeds)
    except DEFECTS as error:
        said = f"{type(error).__name__}: {error}"
        return tuple(Result(case.name, engine.name, Class.HARNESS, why=said) for engine in engines)
    return tuple(_judged(engine, case, asked, every_node) for engine in engines)


def _judged(engine: Engine, case: Case, asked: Specified, every_node: bool) -> Result:
    try:
        side = examine(engine, case.source, case.feeds, asked, every_node=every_node)
        return classified(case.name, side, asked.failure)
    except DEFECTS as error:
        return Result(case.name, engine.name, Class.HARNESS, why=f"{type(error).__name__}: {error}")


DEFECTS: Final = (
    InternalError, ModelError, Unsupported, MemoryError, ValueError, TypeError, KeyError, IndexError, AttributeError,
    ArithmeticError, RecursionError, OSError,
)  # fmt: skip
"""The exceptions of a defect in the harness; one case is lost, not the run."""


def classified(name: str, side: Side, specified: Failure | None) -> Result:
    """The class of what an engine did. specified: why the specification gives no result, None where it gives one."""
    failure = side.failure
    if failure is not None and failure.kind in (Kind.CRASH, Kind.TIMEOUT):
        return Result(name, side.engine, Class.CRASH, failure.kind.value, failure.message)
    if specified is not None and specified.kind is Kind.OUTSIDE:
        kind = "" if failure is None else failure.kind.value
        return Result(name, side.engine, Class.OUTSIDE, kind, specified.message)
    if specified is not None and specified.kind is Kind.LIMIT:
        return Result(name, side.engine, Class.NOT_COMPARED, specified.kind.value, specified.message)
    if failure is not None:
        declined = failure.kind in REFUSALS or failure.kind in (Kind.ERROR, Kind.OUTSIDE, Kind.LIMIT)
        outcome = Class.REFUSED if declined else Class.HARNESS
        return Result(name, side.engine, outcome, failure.kind.value, failure.message)
    if specified is not None:
        return Result(name, side.engine, Class.NOT_COMPARED, "", specified.message)
    return _by_values(name, side)


def _by_values(name: str, side: Side) -> Result:
    divergence = side.divergence()
    if divergence is not None:
        node, tensor, judged = divergence
        return _result(name, side, Class.MISMATCH, node, tensor, judged)
    for tensor, judged in side.whole:
        if judged.standing is Standing.OUTSIDE:
            maker = next((n for n in side.nodes if any(output == tensor for output, _ in n.outputs)), None)
            return _result(name, side, Class.MISMATCH, maker, tensor, judged)
    parts = [it for node in side.nodes for _, it in node.outputs] + [it for _, it in side.whole]
    everything = merged(parts) if parts else None
    if side.by_definition:
        return Result(name, side.engine, Class.PASS, why="the definition itself")
    if not side.decided:
        standings = ((n, [it.standing for _, it in n.outputs]) for n in side.nodes)
        open_ = next((n for n, own in standings if n.undecided or Standing.UNDECIDED in own), None)
        why = open_.undecided if open_ is not None and open_.undecided else "elements differ, and no bound is known"
        if side.hidden is not None:
            why = f"it shows no intermediate values: {side.hidden}"
        where, operator = ("", "") if open_ is None else (open_.path, open_.operator)
        return Result(name, side.engine, Class.NOT_COMPARED, "", why, where, operator, judged=everything)
    if everything is None:
        return Result(name, side.engine, Class.NOT_COMPARED, "", "there was nothing to compare")
    free = any(it.standing is Standing.FREE for it in parts)
    return Result(name, side.engine, Class.FREEDOM if free else Class.PASS, judged=everything)


def _result(name: str, side: Side, outcome: Class, node: NodeJudged | None, tensor: str, judged: Judged) -> Result:
    why = judged.note or f"{judged.outside} of {judged.elements} elements are {Standing.OUTSIDE.value}"
    where, operator = ("", "") if node is None else (node.path, node.operator)
    return Result(name, side.engine, outcome, "", why, where, operator, tensor, judged)


FINDINGS: Final = frozenset((Class.MISMATCH, Class.CRASH, Class.HARNESS))
"""The classes that a campaign stops at, whatever the engine."""


def is_finding(result: Result, *, refusals: bool = False) -> bool:
    """A campaign keeps the case. refusals: also where the engine declined what the specification defines."""
    if result.outcome in FINDINGS:
        return True
    if result.outcome is Class.REFUSED and result.kind in (Kind.ERROR.value, Kind.OUTSIDE.value):
        return True
    return refusals and result.outcome is Class.REFUSED
