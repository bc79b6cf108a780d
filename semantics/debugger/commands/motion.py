"""Commands that move along the timeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..display.answers import Stop
from ..session import motion
from ..session.session import Command, Outcome, Session, line_meant, none, whole
from ..stops import comes_next
from ..timeline.history import Refused
from ..timeline.names import nodes_meant, one_node

Move = Callable[..., Outcome]


def _counted(move: Move, *, forward: bool) -> Callable[[Session, str], Outcome]:
    return lambda session, text: move(session, whole(text, 1, least=1), forward=forward)


def _plain(move: Move, *, forward: bool) -> Callable[[Session, str], Outcome]:
    def run(session: Session, text: str) -> Outcome:
        none(text)
        return move(session, forward=forward)

    return run


def _next(*, forward: bool) -> Callable[[Session, str], Outcome]:
    def run(session: Session, text: str) -> Outcome:
        outcome = motion.next_(session, forward=forward)
        for _ in range(whole(text, 1, least=1) - 1):
            if getattr(outcome.answer, "reason", "") != "step":
                break
            outcome = motion.next_(outcome.session, forward=forward)
        return outcome

    return run


def _until(*, forward: bool) -> Callable[[Session, str], Outcome]:
    def run(session: Session, text: str) -> Outcome:
        line = line_meant(session, text.strip()) if text.strip() else None
        return motion.until(session, line, forward=forward)

    return run


def _run(session: Session, text: str) -> Outcome:
    none(text)
    return motion.begin(session)


def _start(session: Session, text: str) -> Outcome:
    none(text)
    return motion.seek(session, 0)


def _seek(session: Session, text: str) -> Outcome:
    text = text.strip()
    if text in session.bookmarks:
        timeline, index = session.bookmarks[text]
        return motion.seek(replace(session, history=session.timelines[timeline]), index)
    if text in ("end", "$"):
        return motion.seek(session, 1 << 53)
    if text.endswith("%"):
        session.history.finish()
        return motion.seek(session, session.history.last * min(whole(text[:-1]), 100) // 100)
    if text.startswith(("+", "-")) and text[1:].isdecimal():
        return motion.seek(session, max(session.index + int(text), 0))
    if text.isdecimal():
        return motion.seek(session, whole(text))
    if not text:
        raise Refused("seek takes the number of a step, N%, +N, -N, end, a bookmark or a node")
    wanted = nodes_meant(session.model, text)
    return _nearest(session, lambda index: comes_next(session.history, wanted, index))


def _nearest(session: Session, accept: Callable[[int], bool]) -> Outcome:
    """The next moment that is accepted, or else the last one before."""
    for forward in (True, False):
        outcome = motion.search(session, accept, "seek", forward=forward, stops=False)
        if isinstance(outcome.answer, Stop) and outcome.answer.reason in ("seek", "pause"):
            return outcome
    if accept(session.index):
        return motion.seek(session, session.index)
    raise Refused("it comes nowhere on this timeline")


def _choose(session: Session, text: str) -> Outcome:
    from ...machine.transitions import enabled

    n, state = one_node(session.model, text.strip()), session.state
    possible = enabled(state)
    if n not in possible:
        shown = tuple(session.model.nodes[it].path for it in possible[:8])
        raise Refused(f"{session.model.nodes[n].path} is not enabled here: ask why-not-ready", shown)
    if n == session.moment.next:
        return motion.seek(session, session.index)
    history = session.history.choosing(session.index, n)
    changed = replace(session, history=history, timelines=(*session.timelines, history))
    return motion.seek(changed, session.index)


COMMANDS = (
    Command("run", _run, "Run from the start to the first stop.", examples=("run",), moves=True),
    Command("start", _start, "Go to the state before the first step.", aliases=("restart",), examples=("start",)),
    Command(
        "step", _counted(motion.step, forward=True), "Fire one node; begin a body, go into a call.", "[N]", ("s",),
        ("step", "step 3"), moves=True,
    ),
    Command("next", _next(forward=True), "Fire one node with its bodies, or a whole call.", "[N]", ("n",), ("next",),
            moves=True),
    Command("finish", _plain(motion.finish, forward=True), "Run to the end of this body, with all its runs, or call.",
            "", ("out", "return"), ("finish",), moves=True),
    Command("until", _until(forward=True), "Run to a later line, or to the one given: past the runs of a body.",
            "[LINE|NODE]", ("advance",), ("until", "until 12"), "node", moves=True),
    Command("continue", _plain(motion.continue_, forward=True), "Run to the next stop, or to the end.", "", ("c",),
            ("continue",), moves=True),
    Command("stepi", _counted(motion.stepi, forward=True),
            "Do one phase of the transition: select, read, apply, write, advance.", "[N]", ("si",), ("stepi",),
            moves=True),
    Command("reverse-step", _counted(motion.step, forward=False), "Undo one step.", "[N]", ("rs", "back"),
            ("reverse-step",), moves=True),
    Command("reverse-next", _next(forward=False), "Undo one node with its bodies, or a whole call.", "[N]", ("rn",),
            ("reverse-next",), moves=True),
    Command("reverse-finish", _plain(motion.finish, forward=False), "Go back to where this body or call began.", "",
            ("rf",), ("reverse-finish",), moves=True),
    Command("reverse-until", _until(forward=False), "Go back to an earlier line, or to the one given.", "[LINE|NODE]",
            ("ru",), ("reverse-until 4",), "node", moves=True),
    Command("reverse-continue", _plain(motion.continue_, forward=False), "Go back to the last stop, or to the start.",
            "", ("rc",), ("reverse-continue",), moves=True),
    Command("reverse-stepi", _counted(motion.stepi, forward=False), "Undo one phase.", "[N]", ("rsi",),
            ("reverse-stepi",), moves=True),
    Command("seek", _seek, "Go to a step, a part of the run, a bookmark, or to where a node comes next.",
            "N|N%|+N|-N|end|BOOKMARK|NODE", ("goto",), ("seek 12", "seek 50%", "seek end", "seek op:Conv"), "node"),
    Command("choose", _choose, "Let another enabled node come next: a timeline with another order.", "NODE", (),
            ("choose /2:Relu",), "node", keeps=True),
)  # fmt: skip
