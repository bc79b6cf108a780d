"""Requests that move the execution, in both directions, and what a client needs to ask for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sonnx.spec.terminal.inert import one_line

from ..commands.table import execute
from ..display.answers import Refusal
from ..session.choices import choices
from ..session.motion import entry
from ..session.session import Outcome, Session
from ..timeline.refused import Refused
from .adapter import Adapter, FrameOf
from .arguments import Arguments
from .breakpoint_setting import span_of_line
from .registry import Body, Handler
from .stack import check_thread
from .stopping import go, move

_TARGETS: Final = 50
"""So many nodes are offered as the next one."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a client chose: a command line. first: one that is said before it."""

    command: str
    first: str = ""


def _moving(adapter: Adapter, given: Arguments, statement: str, phase: str, title: str) -> None:
    """Moves by one node or, with the granularity `instruction`, by one phase of a transition."""
    check_thread(given)
    granularity = given.text("granularity", "statement")
    if granularity not in ("statement", "line", "instruction"):
        raise Refused("granularity must be statement, line or instruction")
    move(adapter, phase if granularity == "instruction" else statement, title)


# ---- Forward ----------------------------------------------------------------------------------


def _continue(adapter: Adapter, given: Arguments) -> Body:
    check_thread(given)
    move(adapter, "continue", "Running", again=True)
    return {"allThreadsContinued": True}


def _next(adapter: Adapter, given: Arguments) -> None:
    _moving(adapter, given, "next", "stepi", "Stepping over")


def _step_in(adapter: Adapter, given: Arguments) -> None:
    number = given.maybe_whole("targetId")
    if number is None:
        _moving(adapter, given, "step", "stepi", "Stepping in")
        return
    check_thread(given)
    target = adapter.references.get(number, Target, "step-in target")
    go(adapter, lambda session: _both(session, target), "Stepping in")


def _both(session: Session, target: Target) -> Outcome:
    first = execute(session, target.first) if target.first else None
    if first is not None and isinstance(first.answer, Refusal):
        return first
    return execute(session if first is None else first.session, target.command)


def _step_out(adapter: Adapter, given: Arguments) -> None:
    check_thread(given)
    move(adapter, "finish", "Stepping out")


def _pause(_adapter: Adapter, _given: Arguments) -> None:
    """The reader has answered already."""


# ---- Back -------------------------------------------------------------------------------------


def _step_back(adapter: Adapter, given: Arguments) -> None:
    """Undoes `next`: one node with its bodies, or a whole call."""
    _moving(adapter, given, "reverse-next", "reverse-stepi", "Stepping back")


def _reverse(adapter: Adapter, given: Arguments) -> None:
    check_thread(given)
    move(adapter, "reverse-continue", "Running back", again=True)


def _restart_frame(adapter: Adapter, given: Arguments) -> None:
    frame = adapter.references.get(given.whole("frameId"), FrameOf, "stack frame").number
    go(adapter, lambda session: entry(session, frame), "Going back to the beginning of the frame", "restart")


# ---- Targets ----------------------------------------------------------------------------------


def _step_in_targets(adapter: Adapter, given: Arguments) -> Body:
    """The body or call that the next step goes into, then the other nodes that may come next."""
    if adapter.references.get(given.whole("frameId"), FrameOf, "stack frame").number:
        return {"targets": []}
    of_node = adapter.session.listing.of_node
    return {
        "targets": [
            {
                "id": adapter.references.to(Target("step", it.command)),
                "label": one_line(it.label),
                **(span_of_line(adapter, of_node[it.node]) if it.node in of_node else {}),
            }
            for it in choices(adapter.session, _TARGETS)
        ]
    }


def _goto_targets(adapter: Adapter, given: Arguments) -> Body:
    file, listing = adapter.file, adapter.session.listing
    path = given.part("source").text("path", "")
    if file is None or not file.is_at(path):
        return {"targets": []}
    line = adapter.client.own_line(given.whole("line"))
    n = listing.node_at(line) if 1 <= line <= len(listing.lines) else None
    if n is None:
        return {"targets": []}
    node, at = adapter.session.model.nodes[n], listing.of_node[n]
    return {
        "targets": [
            {
                "id": adapter.references.to(Target(f"seek {node.path}")),
                "label": one_line(f"seek in time to where {node.path} comes next; no step is skipped"),
                **span_of_line(adapter, at),
            }
        ]
    }


def _goto(adapter: Adapter, given: Arguments) -> None:
    check_thread(given)
    target = adapter.references.get(given.whole("targetId"), Target, "goto target")
    move(adapter, target.command, "Seeking", "goto")


HANDLERS: Final = (
    Handler("continue", _continue),
    Handler("next", _next, {"supportsSteppingGranularity": True}),
    Handler("stepIn", _step_in),
    Handler("stepOut", _step_out),
    Handler("pause", _pause),
    Handler("cancel", _pause, {"supportsCancelRequest": True}, early=True),
    Handler("stepBack", _step_back, {"supportsStepBack": True}),
    Handler("reverseContinue", _reverse),
    Handler("restartFrame", _restart_frame, {"supportsRestartFrame": True}),
    Handler("stepInTargets", _step_in_targets, {"supportsStepInTargetsRequest": True}),
    Handler("gotoTargets", _goto_targets, {"supportsGotoTargetsRequest": True}),
    Handler("goto", _goto),
)
