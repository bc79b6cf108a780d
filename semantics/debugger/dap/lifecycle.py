"""The beginning and the end of a session: launch, attach, configurationDone, restart, terminate."""

from __future__ import annotations

from dataclasses import replace

from sonnx.spec.terminal import one_line

from ...machine.report import stuck_lines
from ..commands.table import execute
from ..display.answers import Stop
from ..display.rendering import lines
from ..timeline.history import Refused
from .adapter import Adapter, Body, Handler
from .breakpoints import set_again
from .launch import ATTACH, LAUNCH, Debuggee, Launch, launch_of, made_listing, opened_for
from .messages import Arguments
from .stopping import command, go, move, progress, stopped

_EDITING = ("supportsSetVariable", "supportsSetExpression", "supportsWriteMemoryRequest")


# ---- Launch and attach ------------------------------------------------------------------------


def _launch(adapter: Adapter, given: Arguments) -> Body | None:
    return _opened(adapter, launch_of(LAUNCH, given))


def _attach(adapter: Adapter, given: Arguments) -> Body | None:
    return _opened(adapter, launch_of(ATTACH, given))


def _opened(adapter: Adapter, launch: Launch) -> Body | None:
    """Loads what is to be debugged; the response waits until the client's configuration is done."""
    if adapter.current is not None:
        raise Refused("a model is debugged already: send restart, or disconnect first")
    _load(adapter, launch)
    if not adapter.configured:
        adapter.hold = True
        return None
    adapter.after(lambda: _begin(adapter))
    return None


def _load(adapter: Adapter, launch: Launch) -> None:
    debuggee: Debuggee = opened_for(launch, adapter.interruption.asked)
    adapter.file = made_listing(debuggee.session.listing, launch.model, launch.listing)
    adapter.launch = launch
    adapter.become(debuggee.session)
    notes = (*debuggee.notes, *((adapter.file.note,) if adapter.file.note else ()))
    for note in notes:
        adapter.event("output", {"category": "important", "output": f"{one_line(note)}\n"})
    set_again(adapter)
    if not launch.allow_edits:
        adapter.event("capabilities", {"capabilities": dict.fromkeys(_EDITING, False)})


def _configuration_done(adapter: Adapter, _given: Arguments) -> Body | None:
    if adapter.configured:
        raise Refused("the configuration was done already: configurationDone is sent once")
    adapter.configured = True
    launched = adapter.waiting
    if launched is not None:
        adapter.waiting = None

        def answered() -> None:
            adapter.outbox.response(launched, None)
            _begin(adapter)

        adapter.after(answered)
    return None


def _begin(adapter: Adapter) -> None:
    """The execution begins, or a recorded one is shown from where it was."""
    launch = adapter.launch
    if launch is None:
        return
    adapter.started = True
    name = one_line(launch.model.name)
    how = "launch" if launch.trace is None and launch.session is None else "attach"
    adapter.event("process", {"name": name, "isLocalProcess": True, "startMethod": how, "pointerSize": 64})
    if launch.no_debug:
        adapter.after(lambda: _to_the_end(adapter, f"Running {name}"))
    elif launch.stop_on_entry or launch.session is not None or adapter.session.index:
        move(adapter, f"seek {adapter.session.index}", "Beginning", "entry")
    elif launch.trace is not None:
        move(adapter, "seek end", "Following the trace")
    else:
        go(adapter, command("run"), f"Running {name}", again=command("continue"))


def _to_the_end(adapter: Adapter, title: str) -> None:
    """Runs without a stop, then the session is over."""
    with progress(adapter, title):
        outcome = execute(replace(adapter.session, stops=()), "run")
    outcome = replace(outcome, session=replace(outcome.session, stops=adapter.session.stops))
    if isinstance(outcome.answer, Stop) and outcome.answer.reason == "pause":
        stopped(adapter, outcome)
        return
    adapter.become(outcome.session)
    for text in lines(outcome.answer):
        adapter.event("output", {"category": "console", "output": f"{text}\n"})
    terminated(adapter)


# ---- The end ----------------------------------------------------------------------------------


def terminated(adapter: Adapter) -> None:
    """The debugger's session is over; nothing is sent twice."""
    if adapter.over:
        return
    adapter.over, adapter.resume = True, None
    if adapter.current is not None:
        stuck = adapter.current.history.stuck
        if stuck is not None:
            text = "; ".join(stuck_lines(stuck))
            adapter.event("output", {"category": "important", "output": f"{one_line(text)}\n"})
        adapter.event("exited", {"exitCode": 0 if stuck is None else 1})
    adapter.event("terminated")


def _terminate(adapter: Adapter, _given: Arguments) -> Body | None:
    adapter.after(lambda: terminated(adapter))
    return None


def _disconnect(adapter: Adapter, _given: Arguments) -> Body | None:
    if adapter.waiting is not None:
        adapter.outbox.refusal(adapter.waiting, 1, "the session was ended before it began")
        adapter.waiting = None
    terminated(adapter)
    adapter.done = True
    return None


def _restart(adapter: Adapter, given: Arguments) -> Body | None:
    """From the first state again: another launch where the arguments are others, else a seek."""
    before = adapter.launch
    if before is None or not adapter.started:
        raise Refused("the execution has not begun: send configurationDone first")
    request = LAUNCH if before.trace is None and before.session is None else ATTACH
    arguments = given.part("arguments")
    wanted = launch_of(request, arguments) if arguments.has("model") else before
    if wanted == before:
        session = adapter.session
        adapter.become(replace(session, history=session.timelines[0], index=0, phase=0, frame=0))
    else:
        _load(adapter, wanted)
    adapter.over = False
    adapter.after(lambda: _begin(adapter))
    return None


HANDLERS: tuple[Handler, ...] = (
    Handler("launch", _launch, early=True),
    Handler("attach", _attach, early=True),
    Handler("configurationDone", _configuration_done, {"supportsConfigurationDoneRequest": True}, early=True),
    Handler("restart", _restart, {"supportsRestartRequest": True}),
    Handler("terminate", _terminate, {"supportsTerminateRequest": True}, early=True),
    Handler("disconnect", _disconnect, early=True),
)
