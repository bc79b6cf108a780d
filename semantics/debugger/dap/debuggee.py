"""From a launch to a session: a model with inputs, a recorded run, or a session that was saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...resources.process_memory import memory_budget
from ..commands.table import execute
from ..display.answers import Refusal
from ..display.rendering import lines
from ..session.opening import opened, recorded
from ..session.session import Session
from ..timeline.refused import Refused
from .launch import Launch


@dataclass(frozen=True, slots=True)
class Debuggee:
    """notes: what should be said about it."""

    session: Session
    notes: tuple[str, ...] = ()


def opened_for(launch: Launch, interrupted: Callable[[], bool]) -> Debuggee:
    """The session that a launch means. Raises Refused, ModelError, Unsupported or OSError."""
    session = replace(_opened(launch, memory_budget(launch.max_memory)), interrupted=interrupted)
    if launch.session is not None:
        session = _done(session, f"load '{launch.session}'")[0]
    notes: list[str] = []
    for line in launch.commands:
        session, said = _done(session, line)
        notes += said
    if not launch.allow_edits and any(timeline.label for timeline in session.timelines):
        raise Refused('a value was changed, by a command or in the saved session: set "allowEdits" to true for that')
    return Debuggee(session, tuple(notes))


def _opened(launch: Launch, budget: int | None) -> Session:
    limit, kept = launch.max_steps, launch.history_limit
    if launch.trace is not None:
        return recorded(launch.model, launch.trace, budget=budget, limit=limit, kept=kept)
    return opened(
        launch.model, launch.inputs, launch.random, launch.schedule, reuse=launch.reuse,
        budget=budget, limit=limit, kept=kept,
    )  # fmt: skip


def _done(session: Session, line: str) -> tuple[Session, tuple[str, ...]]:
    outcome = execute(session, line)
    if isinstance(outcome.answer, Refusal):
        raise Refused(f"{line}: {outcome.answer.message}", outcome.answer.candidates)
    return outcome.session, lines(outcome.answer)
