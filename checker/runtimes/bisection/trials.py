"""One run of an engine with some of its optimizers, and how its outputs stand to what decides."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sonnx.semantics.machine.judging import Judged, Standing, merged
from sonnx.semantics.runtimes.engines.protocol import Failure, Optimizing, Source, Switches, Values

from ..differential.comparison import Specified, against, judged_outputs, specified


class Answer(StrEnum):
    """What a run leads to."""

    ALLOWED = "allowed"
    OUTSIDE = "not allowed"
    FAILED = "no outputs"
    UNDECIDED = "undecided"


class Criterion(StrEnum):
    """What decides if outputs are right."""

    SPECIFICATION = "what the specification allows"
    BITS = "the outputs without optimizers, bit by bit"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run. failure: why there are no outputs. judged: the outputs by name."""

    answer: Answer
    failure: Failure | None = None
    outputs: Values = field(default_factory=dict)
    judged: tuple[tuple[str, Judged], ...] = ()

    @property
    def signature(self) -> tuple[str, str]:
        """The same for outcomes of one sort: outputs that are not allowed, a session that fails, a crash."""
        return self.answer.value, "" if self.failure is None else self.failure.kind.value

    @property
    def total(self) -> Judged:
        """The elements of all outputs together."""
        return merged([it for _, it in self.judged]) if self.judged else Judged()


@dataclass(frozen=True, slots=True)
class Question:
    """A model with inputs. criterion: what decides. plain: the outputs without optimizers, where they decide."""

    source: Source
    feeds: Values
    criterion: Criterion
    asked: Specified
    plain: Values | None = None

    def judge(self, done: Values | Failure) -> Outcome:
        """How outputs stand to what decides."""
        if isinstance(done, Failure):
            return Outcome(Answer.FAILED, done)
        if self.criterion is Criterion.BITS and self.plain is None:
            return Outcome(Answer.ALLOWED, None, done)  # they are what others are held against
        judged = tuple(self._judged(done))
        standings = {it.standing for _, it in judged}
        if Standing.OUTSIDE in standings:
            return Outcome(Answer.OUTSIDE, None, done, judged)
        open_ = Standing.UNDECIDED in standings or not judged
        return Outcome(Answer.UNDECIDED if open_ else Answer.ALLOWED, None, done, judged)

    def _judged(self, done: Values) -> list[tuple[str, Judged]]:
        if self.plain is not None:
            return list(against(self.plain, done))
        exact = against(self.asked.outputs, done)
        other = [name for name, it in exact if it.standing is not Standing.EXACT]
        known = dict(judged_outputs(self.source, self.feeds, done, other, self.asked)) if other else {}
        open_ = Judged(undecided=1)
        return [
            (name, it if it.standing is Standing.EXACT or name not in done else known.get(name, open_))
            for name, it in exact
        ]


def question(source: Source, feeds: Values, criterion: Criterion) -> Question | Failure:
    """The question whether an engine is right on a model with inputs; why the specification leaves it open.

    Raises ModelError for a model that cannot be read.
    """
    asked = specified(source, feeds)
    return Question(source, feeds, criterion, asked) if asked.failure is None else asked.failure


class OutOfTime(Exception):  # noqa: N818 - it ends a search, and is no error
    """The time for a search is over."""


@dataclass
class Bench:
    """Runs of one engine on one question, each set of optimizers once. until: the time at which no more is begun.

    apart: each run in a process that has done nothing before.
    """

    engine: Optimizing
    question: Question
    until: float
    tell: Callable[[str], None]
    apart: bool = True
    known: dict[Switches, Outcome] = field(default_factory=dict)

    def outcome(self, switches: Switches) -> Outcome:
        """The outcome with these optimizers. Raises OutOfTime."""
        if switches not in self.known:
            if time.monotonic() > self.until:
                raise OutOfTime
            self.tell(f"{len(self.known) + 1} runs")
            self.known[switches] = self.question.judge(self._run(switches))
        return self.known[switches]

    def held_against(self, plain: Outcome) -> Bench:
        """The same where the specification decides; where bits do, with the outputs that others are held against."""
        if self.question.criterion is not Criterion.BITS:
            return self
        return replace(self, question=replace(self.question, plain=plain.outputs), known={})

    def _run(self, switches: Switches) -> Values | Failure:
        session = self.engine.switched(self.question.source, switches, apart=self.apart)
        if isinstance(session, Failure):
            return session
        try:
            return session.run(self.question.feeds)
        finally:
            session.close()
