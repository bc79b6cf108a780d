"""Moving along a timeline, in both directions: one step, over bodies and calls, out of them, to what is to be met."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from ...machine.report import stuck_lines
from ...model.path import quote
from ...operators.application import Stuck
from ...resources.process import paused
from ..display.answers import Hit, Logged, Stop
from ..stops import Breakpoint, Catch, logged, met, stuck_hit
from ..stops import Stop as Set
from ..timeline.history import base, call_frames, inside, is_end_of_body
from .session import Outcome, Session, moved, where

Accept = Callable[[int], bool]
"""True where the execution may stand still at a moment."""
_LOGGED: Final = 10_000
"""Lines of log points that one move gives."""
_SHOWN: Final = 4


def step(session: Session, count: int, *, forward: bool) -> Outcome:
    """So many transitions, bodies and calls entered; a phase that was reached is left."""
    if not forward and session.phase:
        session, count = replace(session, phase=0), count - 1
        if not count:
            return _stopped(session, "step")
    target = session.index + count if forward else session.index - count
    return search(session, lambda index: index == target, "step", forward=forward, stops=count > 1)


def next_(session: Session, *, forward: bool) -> Outcome:
    """To the next moment that lies not inside of a body or call that begins here."""
    if not forward and session.phase:
        return _stopped(replace(session, phase=0), "step")
    outer = base(session.history, session.index)
    return search(
        session, lambda index: not inside(base(session.history, index), outer), "step", forward=forward, stops=True
    )


def finish(session: Session, *, forward: bool) -> Outcome:
    """Out of the body, with all its runs, or call that the execution is in; at the top to the end or the start."""
    outer = base(session.history, session.index)
    return search(
        session,
        lambda index: base(session.history, index)[: len(outer)] != outer,
        "step",
        forward=forward,
        stops=True,
    )


def until(session: Session, line: int | None, *, forward: bool) -> Outcome:
    """To a line of the listing; where none is given, to a later one (forward) or an earlier one in this graph or around
    it, so that the runs of a body are done with."""
    here, outer = where(session).line, base(session.history, session.index)

    def accept(index: int) -> bool:
        line_there = where(replace(session, index=index, phase=0)).line
        if line is not None:
            return line_there == line
        if inside(base(session.history, index), outer):
            return False
        left = base(session.history, index)[: len(outer)] != outer
        return left or (line_there > here if forward else line_there < here)

    return search(session, accept, "step", forward=forward, stops=True)


def continue_(session: Session, *, forward: bool) -> Outcome:
    """To what is to be met next, or to the end (the start)."""
    return search(session, lambda _: False, "step", forward=forward, stops=True)


def begin(session: Session) -> Outcome:
    """From the first state to the first stop, which may be there."""
    session = moved(session, 0)
    said = _said(session, session.stops, 0)
    hits = met(session.history, session.stops, 0, forward=True)
    met_here = _stopped(_spent(session, hits), hits[0].kind, hits) if hits else None
    outcome = met_here or continue_(session, forward=True)
    if said and isinstance(outcome.answer, Stop):
        return replace(outcome, answer=replace(outcome.answer, logged=(*said, *outcome.answer.logged)))
    return outcome


def entry(session: Session, frame: int) -> Outcome:
    """Back to the first moment of a frame, counted from the innermost: of this run of a body, of this call."""
    moment = session.moment
    here = call_frames(moment.state, moment.next)
    kept = [(it.level, it.path) for it in here[: len(here) - frame]]

    def begun(index: int) -> bool:
        before = session.history.at(index - 1)
        around = [(it.level, it.path) for it in call_frames(before.state, before.next)]
        return around[: len(kept)] != kept

    if not session.index or begun(session.index):
        return _stopped(moved(session, session.index), "step")
    return search(session, lambda index: not index or begun(index), "step", forward=False, stops=False)


def seek(session: Session, index: int) -> Outcome:
    """To the moment at an index. The last one when the timeline ends before it."""
    with paused():
        while session.history.last < index and not session.history.ended:
            if session.interrupted():
                return _stopped(moved(session, session.history.last), "pause")
            session.history.reach(session.history.last + 1)
    end = min(index, session.history.last)
    return _stopped(moved(session, end), "seek" if end == index else "end")


def stepi(session: Session, count: int, *, forward: bool) -> Outcome:
    """So many phases of transitions."""
    for _ in range(count):
        outcome = _phase(session, forward=forward)
        if outcome.session == session or not isinstance(outcome.answer, Stop) or outcome.answer.reason != "phase":
            return outcome
        session = outcome.session
    return _stopped(session, "phase")


def _phase(session: Session, *, forward: bool) -> Outcome:
    if not forward:
        if session.phase:
            return _stopped(replace(session, phase=session.phase - 1), "phase")
        if session.index == 0:
            return _stopped(session, "start")
        return _stopped(moved(session, session.index - 1, 4), "phase")
    phases = session.history.phases(session.index)
    if not phases:
        return _stopped(session, "end")
    if session.phase < len(phases) - 1:
        return _stopped(replace(session, phase=session.phase + 1), "phase")
    if isinstance(phases[-1], Stuck):
        session.history.finish()
        return _stopped(session, "stuck")
    session.history.reach(session.index + 1)
    return _stopped(moved(session, session.index + 1), "phase")


def search(session: Session, accept: Accept, reason: str, *, forward: bool, stops: bool) -> Outcome:
    """To the nearest moment that is accepted, or where a stop is met (if `stops`), or to the end or the start."""
    with paused():
        if not forward:
            return _back(session, accept, reason, stops)
        said: list[Logged] = []
        outcome = _forward(session, accept, reason, stops, said)
        if said and isinstance(outcome.answer, Stop):
            rest = len(said) - _LOGGED
            more = [Logged(f"... {rest} more lines of log points")] if rest > 0 else []
            return replace(outcome, answer=replace(outcome.answer, logged=(*said[:_LOGGED], *more)))
        return outcome


def _forward(session: Session, accept: Accept, reason: str, stops: bool, said: list[Logged]) -> Outcome:
    history, index = session.history, session.index
    logs = tuple(it for it in session.stops if isinstance(it, Breakpoint) and it.log is not None)
    while True:
        moment = history.reach(index + 1)
        if moment is None:
            hits = _catches_stuck(session) if stops else ()
            moved_on = session if index == session.index else moved(session, index)
            return _stopped(moved_on, "catch" if hits else "stuck" if history.stuck is not None else "end", hits)
        index += 1
        said += _said(session, logs, index) if logs else ()
        hits = met(history, session.stops, index, forward=True) if stops else ()
        if (stopped := _at(session, index, hits, accept, reason)) is not None:
            return stopped


def _said(session: Session, stops: Iterable[Set], index: int) -> tuple[Logged, ...]:
    texts = logged(session.history, stops, index)
    line = where(moved(session, index)).line if texts else 0
    return tuple(Logged(text, index, line) for text in texts)


def _back(session: Session, accept: Accept, reason: str, stops: bool) -> Outcome:
    history, index = session.history, session.index
    if session.phase and index == 0:
        return _stopped(replace(session, phase=0), "start")
    while index:
        index -= 1
        hits = met(history, session.stops, index, forward=False) if stops else ()
        if (stopped := _at(session, index, hits, accept, reason)) is not None:
            return stopped
    return _stopped(moved(session, 0), "start")


def _at(session: Session, index: int, hits: tuple[Hit, ...], accept: Accept, reason: str) -> Outcome | None:
    """The stop at a state on the way, None where it goes on."""
    if hits:
        return _stopped(_spent(moved(session, index), hits), hits[0].kind, hits)
    if accept(index):
        return _stopped(moved(session, index), reason)
    return _stopped(moved(session, index), "pause") if session.interrupted() else None


def _spent(session: Session, hits: tuple[Hit, ...]) -> Session:
    """Without the temporary stops that were met."""
    numbers = {hit.number for hit in hits}
    return replace(session, stops=tuple(it for it in session.stops if not (it.once and it.number in numbers)))


def _catches_stuck(session: Session) -> tuple[Hit, ...]:
    stuck = session.history.stuck
    if stuck is None:
        return ()
    return tuple(
        stuck_hit(stuck, stop.number)
        for stop in session.stops
        if isinstance(stop, Catch) and stop.what == "precondition" and stop.enabled
    )


def _stopped(session: Session, reason: str, hits: tuple[Hit, ...] = ()) -> Outcome:
    moment, stuck = session.moment, session.history.stuck
    notes: tuple[str, ...] = ()
    if stuck is not None and session.index == session.history.last:
        notes = stuck_lines(stuck)
    elif reason == "end":
        outputs = session.model.graphs[0].outputs
        names = ", ".join(quote(session.model.tensors[t].name) for t in outputs[:8])
        notes = (f"the run is complete; outputs: {names}", *_supplied(session))
    if is_end_of_body(moment):
        notes = ("the body has all its outputs: its holder goes on", *notes)
    return Outcome(session, Stop(reason, where(session), hits, notes))


def _supplied(session: Session) -> tuple[str, ...]:
    """At which steps values came from outside, so that what follows is no run of the model."""
    steps = list(session.history.supplied(session.index))
    if not steps:
        return ()
    came = [(at, it) for at in steps[:_SHOWN] if (it := session.history.at(at).came) is not None]
    told = ", ".join(f"{it.path} at step {at} {it.supplied}" for at, it in came)
    more = f" and {len(steps) - _SHOWN} more" if len(steps) > _SHOWN else ""
    return (f"no execution of the model: values came from outside for {told}{more}",)
