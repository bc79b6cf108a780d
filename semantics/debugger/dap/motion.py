"""Threads and stack frames, where the execution stands, and the requests that move it, in both directions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from sonnx.spec.terminal import one_line

from ...machine.trace.format import Json
from ..commands.table import execute
from ..display.answers import Hit, Refusal, Stop
from ..display.rendering import lines
from ..inspection.scopes import frame_line, frame_name
from ..session.motion import entry
from ..session.session import Outcome, Session, choices
from ..timeline.history import CallFrame, Refused
from .adapter import Adapter, Body, FrameOf, Handler
from .breakpoints import span_of_line
from .messages import Arguments
from .stopping import THREAD, go, move, sentence

_FRAMES: Final = 1000
"""Frames that are given at once where the client does not say how many."""


def _threads(_adapter: Adapter, _given: Arguments) -> Body:
    return {"threads": [{"id": THREAD, "name": "machine"}]}


def check_thread(given: Arguments) -> None:
    """Raises Refused for a thread that there is not."""
    number = given.whole("threadId", THREAD)
    if number != THREAD:
        raise Refused(f"there is no thread {number}: the machine is thread {THREAD}")


# ---- Stack frames -----------------------------------------------------------------------------


def _stack(adapter: Adapter, given: Arguments) -> Body:
    check_thread(given)
    frames = adapter.frames()
    start = given.whole("startFrame", 0)
    count = given.whole("levels", 0) or _FRAMES
    shown: list[Json] = [_frame(adapter, frames, number) for number in range(start, min(start + count, len(frames)))]
    return {"stackFrames": shown, "totalFrames": len(frames)}


def _frame(adapter: Adapter, frames: tuple[CallFrame, ...], number: int) -> dict[str, Json]:
    """A stack frame; the line is that of the next node, of the holder or call that is under way, or the return."""
    session = adapter.session
    line = frame_line(session, frames, number)
    shown: dict[str, Json] = {
        "id": adapter.references.to(FrameOf(number)),
        "name": one_line(frame_name(session, frames[number])),
        "presentationHint": "normal",
        "canRestart": True,
        **({"line": 0, "column": 0} if not line else span_of_line(adapter, line)),
    }
    return shown if adapter.file is None else {**shown, "source": adapter.file.source}


# ---- Exceptions -------------------------------------------------------------------------------


def _exception(adapter: Adapter, given: Arguments) -> Body:
    """The fault that was caught: its rule and node, the first element, and the formula of that with its operands."""
    check_thread(given)
    last = adapter.last
    if last is None or last.reason not in ("catch", "stuck"):
        raise Refused("the execution does not stand still because of an exception")
    hit = last.hits[0] if last.hits else None
    kind = _kind(adapter, hit)
    text = one_line(hit.text) if hit is not None else sentence(last.notes)
    details: dict[str, Json] = {
        "message": text,
        "typeName": kind,
        "fullTypeName": f"sonnx.{kind}",
        "stackTrace": "\n".join(one_line(it) for it in _story(adapter, last, hit)),
    }
    if hit is not None and hit.tensor:
        details["evaluateName"] = _element(hit)
    return {"exceptionId": kind, "description": text, "breakMode": "always", "details": details}


def _kind(adapter: Adapter, hit: Hit | None) -> str:
    if hit is None:
        return "stuck"
    stop = next((it for it in adapter.session.stops if it.number == hit.number), None)
    return getattr(stop, "what", "exception")


def _element(hit: Hit) -> str:
    return f"`{hit.tensor}`{list(hit.element) if hit.element is not None else ''}"


def _story(adapter: Adapter, last: Stop, hit: Hit | None) -> tuple[str, ...]:
    """The rule and the node that fired, then how the element was computed."""
    session, moment = adapter.session, adapter.session.moment
    story: list[str] = []
    if last.reason == "stuck" or hit is None or not hit.tensor:
        return (*last.notes, f"next: {last.where.node}")
    if moment.came is not None:
        story.append(f"{moment.came.path} {moment.came.supplied or f'by {moment.came.rule}'}")
    story += lines(execute(replace(session, frame=0), f"explain {_element(hit)}").answer)
    return tuple(story)


# ---- Modules ----------------------------------------------------------------------------------


def _modules(adapter: Adapter, given: Arguments) -> Body:
    """The operator sets that the model imports, and its functions."""
    model = adapter.session.model
    rows = [(f"opset {domain or 'ai.onnx'}", str(version)) for domain, version in model.opsets]
    rows += [(f"function {'::'.join(it for it in function if it)}", "") for function in model.functions]
    start, count = given.whole("startModule", 0), given.whole("moduleCount", 0) or len(rows)
    shown: list[Json] = [
        {"id": number, "name": one_line(name), **({"version": version} if version else {})}
        for number, (name, version) in enumerate(rows, 1)
    ]
    return {"modules": shown[start : start + count], "totalModules": len(rows)}


# ---- Requests that move the execution -------------------------------------------------------------

_TARGETS: Final = 50
"""So many nodes are offered as the next one."""


@dataclass(frozen=True, slots=True)
class Target:
    """A choice of the client: a command line. first: one that is said before it."""

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
    if not 1 <= line <= len(listing.lines):
        return {"targets": []}
    at, model = listing.stop_at(line), adapter.session.model
    place, happens = at.call, "begins"
    if at.node is not None:
        place, happens = model.nodes[at.node].path, "comes next"
    elif not at.call:
        place, happens = f"return {model.graphs[at.graph or 0].path}", "comes"
    return {
        "targets": [
            {
                "id": adapter.references.to(Target(f"seek {place}")),
                "label": one_line(f"seek in time to where {place} {happens}; no step is skipped"),
                **span_of_line(adapter, at.number),
            }
        ]
    }


def _goto(adapter: Adapter, given: Arguments) -> None:
    check_thread(given)
    target = adapter.references.get(given.whole("targetId"), Target, "goto target")
    move(adapter, target.command, "Seeking", "goto")


HANDLERS = (
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
    Handler("threads", _threads, early=True),
    Handler("stackTrace", _stack, {"supportsDelayedStackTraceLoading": True}),
    Handler("exceptionInfo", _exception, {"supportsExceptionInfoRequest": True}),
    Handler("modules", _modules, {"supportsModulesRequest": True}),
)
