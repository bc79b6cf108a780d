"""Events that tell the client that the execution moves and stands still, and of stops that commands set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from sonnx.spec.terminal import one_line

from ...machine.trace.format import Json
from ...resources.process import settled
from ..commands.table import execute
from ..display.answers import Hit, Logged, Note, Refusal, Stop
from ..display.rendering import lines
from ..session.session import Outcome, Session
from ..stops import Breakpoint
from ..stops import Stop as SetStop
from ..timeline.history import Refused
from .adapter import FUNCTION, TYPED, Adapter
from .breakpoints import place_of_stop

_AFTER: Final = 0.5
"""Seconds after which it is shown."""
_EVERY: Final = 0.25
"""Seconds between two updates."""


@contextmanager
def progress(adapter: Adapter, title: str) -> Iterator[None]:
    """Shows how far an execution is that lasts longer than a moment. Its number is that of the request's arrival."""
    request = adapter.request
    if not adapter.client.progress or request is None or adapter.current is None:
        yield
        return
    number, session = str(request.arrival), adapter.current
    begun, shown = time.monotonic(), 0.0

    def tick() -> None:
        nonlocal shown
        now = time.monotonic()
        if now - begun < _AFTER or now - shown < _EVERY:
            return
        first, shown = not shown, now
        message = f"step {session.history.last}"
        body: dict[str, Json] = {"progressId": number, "message": message}
        if first:
            body |= {"title": title, "requestId": request.seq, "cancellable": True}
        adapter.event("progressStart" if first else "progressUpdate", body)

    adapter.interruption.tick = tick
    try:
        yield
    finally:
        adapter.interruption.tick = None
        if shown:
            adapter.event("progressEnd", {"progressId": number})


THREAD: Final = 1
"""The one thread: the machine."""
_REASONS: Final = {
    "phase": "step",
    "watch": "data breakpoint",
    "catch": "exception",
    "stuck": "exception",
    "seek": "goto",
}
_WORDS: Final = {
    "step": "after a step",
    "breakpoint": "at a breakpoint",
    "function breakpoint": "at a function breakpoint",
    "data breakpoint": "at a data breakpoint",
    "goto": "after a seek",
    "pause": "paused",
    "end": "at the end of the execution",
    "start": "at the start of the execution",
    "entry": "at the beginning of the session",
}


Move = Callable[[Session], Outcome]


def command(line: str) -> Move:
    """The move that a command line makes."""
    return lambda session: execute(session, line)


def move(adapter: Adapter, line: str, title: str, reason: str = "", *, again: bool = False) -> None:
    """Runs a command that moves once the response is sent; `stopped` follows. reason: in place of the engine's own,
    where nothing else was met. again: whether the same command goes on where it stood still to make room."""
    go(adapter, command(line), title, reason, again=command(line) if again else None)


def go(adapter: Adapter, run: Move, title: str, reason: str = "", *, again: Move | None = None) -> None:
    """The same for a function of the engine. again: what goes on where it stood still to make room."""
    if not adapter.started:
        raise Refused("the execution has not begun: send configurationDone first")
    adapter.after(lambda: _moving(adapter, run, title, reason, again))


def _moving(adapter: Adapter, run: Move, title: str, reason: str, again: Move | None) -> None:
    interruption = adapter.interruption
    interruption.resumable = again is not None
    try:
        with progress(adapter, title):
            outcome = run(adapter.session)
    finally:
        interruption.resumable = False
    answer = outcome.answer
    paused = isinstance(answer, Stop) and answer.reason == "pause"
    if again is None or not isinstance(answer, Stop) or not paused or interruption.is_over():
        stopped(adapter, outcome, reason)
        return
    adapter.become(outcome.session)
    _log(adapter, answer.logged)
    going_on = again
    adapter.resume = (adapter.request, lambda: _moving(adapter, going_on, title, reason, going_on))


def stopped(adapter: Adapter, outcome: Outcome, reason: str = "", *, told: bool = False) -> None:
    """Takes over the outcome of a command that moves, and tells where the execution stands and why.

    told: what log points said, and notes, have gone to the client already.
    """
    adapter.resume = None
    adapter.become(outcome.session)
    settled()
    answer = outcome.answer
    if isinstance(answer, Refusal | Note):
        ended(adapter, "\n".join(lines(answer)))
        return
    if not isinstance(answer, Stop):
        return
    adapter.references.forget()
    adapter.last = answer
    if not told:
        _log(adapter, answer.logged)
        for text in (*answer.notes, *(line for it in answer.displayed for line in lines(it))):
            adapter.event("output", {"category": "console", "output": f"{one_line(text)}\n"})
    why = reason_of(adapter, answer, reason)
    body: dict[str, Json] = {
        "reason": why,
        "description": description(answer, why),
        "threadId": THREAD,
        "allThreadsStopped": True,
        "preserveFocusHint": False,
    }
    if answer.hits:
        body["text"] = "; ".join(one_line(hit.text) for hit in answer.hits)
        body["hitBreakpointIds"] = [
            adapter.ids.numbers[hit.number] for hit in answer.hits if hit.number in adapter.ids.numbers
        ]
    elif why == "exception" and answer.notes:
        body["text"] = sentence(answer.notes)
    adapter.event("stopped", body)


def _log(adapter: Adapter, said: tuple[Logged, ...]) -> None:
    """What log points said, each with its line, to which a client can go."""
    for it in said:
        body: dict[str, Json] = {"category": "console", "output": f"{one_line(it.text)}\n"}
        if it.line and adapter.file is not None:
            body |= {"source": adapter.file.source, "line": adapter.client.line(it.line)}
        adapter.event("output", body)


def sentence(notes: tuple[str, ...]) -> str:
    """Notes on one line."""
    return " ".join(one_line(note.strip()) for note in notes)


def reason_of(adapter: Adapter, answer: Stop, wanted: str = "") -> str:
    """The protocol's reason of a stop."""
    if answer.reason == "breakpoint":
        groups = {adapter.ids.group.get(hit.number) for hit in answer.hits}
        return "function breakpoint" if groups == {FUNCTION} else "breakpoint"
    plain = answer.reason in ("step", "phase", "seek")
    return wanted if wanted and plain else _REASONS.get(answer.reason, answer.reason)


def description(answer: Stop, reason: str) -> str:
    """The reason in words, as a client shows it."""
    if reason == "exception":
        return "the execution is stuck" if answer.reason == "stuck" else f"caught: {_first(answer.hits)}"
    return _WORDS.get(reason, reason)


def _first(hits: tuple[Hit, ...]) -> str:
    return one_line(hits[0].text) if hits else ""


def ended(adapter: Adapter, text: str) -> None:
    """Says that what a request set off could not be done, and that the execution stands where it was."""
    adapter.resume = None
    adapter.event("output", {"category": "important", "output": f"{text}\n"})
    if adapter.current is not None and adapter.started:
        body: dict[str, Json] = {"reason": "pause", "description": text, "threadId": THREAD, "allThreadsStopped": True}
        adapter.event("stopped", body)


# ---- Stops that commands set ------------------------------------------------------------------


def announce_stops(adapter: Adapter, before: tuple[SetStop, ...]) -> None:
    """Tells the client of stops that are there now and that it has not set itself, and of those that are gone."""
    now = () if adapter.current is None else adapter.current.stops
    if now == before:
        return
    there = {stop.number for stop in now}
    for number in [it for it in adapter.ids.numbers if it not in there]:
        gone: Json = {"id": adapter.ids.numbers[number], "verified": False}
        adapter.event("breakpoint", {"reason": "removed", "breakpoint": gone})
        adapter.ids.untie((number,))
    for stop in now:
        if stop.number not in adapter.ids.numbers:
            number = adapter.ids.tie(stop.number, TYPED)
            made: dict[str, Json] = {"id": number, "verified": True, "message": one_line(stop.text)}
            place = place_of_stop(adapter, stop) if isinstance(stop, Breakpoint) else {}
            adapter.event("breakpoint", {"reason": "new", "breakpoint": {**made, **place}})
