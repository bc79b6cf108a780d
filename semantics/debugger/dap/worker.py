"""All handlers by request, and the loop that answers.

A reader takes messages in, the worker carries out requests one after the other. The reader itself answers `pause` and
`cancel`, and marks what `disconnect` ends, so that they work while the worker is busy. A response is sent before what
its request set off is done.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final

from sonnx.spec.terminal import inert, one_line

from ...errors import ModelError, Unsupported
from ...machine.trace.format import Json
from ..timeline.history import Refused
from . import breakpoints, evaluate, lifecycle, motion, sources, variables
from .adapter import Adapter, Body, Client, Handler, Interruption, capabilities
from .messages import CANCELLED, DEFECT, REFUSED, UNKNOWN, Arguments, Malformed, Outbox, Read, Request, Send, messages
from .stopping import announce_stops, ended


def _initialize(adapter: Adapter, given: Arguments) -> Body:
    if adapter.initialized:
        raise Refused("initialize was answered already: it is sent once")
    adapter.client = Client(
        lines_start_at=int(given.flag("linesStartAt1", default=True)),
        columns_start_at=int(given.flag("columnsStartAt1", default=True)),
        types=given.flag("supportsVariableType"),
        memory_references=given.flag("supportsMemoryReferences"),
        progress=given.flag("supportsProgressReporting"),
        invalidated=given.flag("supportsInvalidatedEvent"),
        memory_event=given.flag("supportsMemoryEvent"),
    )
    if given.text("pathFormat", "path") != "path":
        raise Refused('pathFormat must be "path": URIs are not read here')
    adapter.initialized = True
    adapter.later("initialized")
    return capabilities(HANDLERS)


HANDLERS: Final[tuple[Handler, ...]] = (
    Handler("initialize", _initialize, early=True),
    *lifecycle.HANDLERS,
    *breakpoints.HANDLERS,
    *motion.HANDLERS,
    *variables.HANDLERS,
    *evaluate.HANDLERS,
    *sources.HANDLERS,
)
"""All that is answered. The reader answers `pause` and `cancel` itself; they stand here for their capabilities."""

BY_REQUEST: Final = {handler.request: handler for handler in HANDLERS}


_GRACE: Final = 2.0
"""Seconds for the worker to come to its end once the stream has ended."""
_ENDING: Final = ("disconnect", "terminate", "restart")
_AHEAD: Final = ("pause", "cancel")
_MADE_ROOM_FOR: Final = (
    "setBreakpoints",
    "setFunctionBreakpoints",
    "setExceptionBreakpoints",
    "setDataBreakpoints",
    "breakpointLocations",
    "threads",
)
"""Requests that a client makes while the execution runs, and that are answered before it goes on."""


@dataclass(frozen=True, slots=True)
class _Queue:
    """Messages that the reader hands to the worker; None: the stream has ended."""

    items: SimpleQueue[Request | Malformed | None]
    over: Event


def serve(read: Read, send: Send, *, stuck: Callable[[], None] | None = None) -> bool:
    """Serves one client until it disconnects or goes away. False where the stream ended with what is no message.

    stuck: called from the reader's thread when the stream has ended and the worker does not come to its end soon: an
    operator on large tensors cannot be interrupted.
    """
    adapter = Adapter(Outbox(send), Interruption())
    queue = _Queue(SimpleQueue(), Event())
    Thread(target=_reading, args=(read, adapter, queue, stuck), name="sonnx dap reader", daemon=True).start()
    try:
        while not adapter.done and not adapter.outbox.gone:
            item = _next(adapter, queue)
            if item is None:
                break
            if isinstance(item, Malformed):
                _complained(adapter, item)
                if item.last:
                    return False
            else:
                _answered(adapter, item)
        return True
    finally:
        adapter.interruption.closing = True
        queue.over.set()


# ---- The reader -------------------------------------------------------------------------------


def _reading(read: Read, adapter: Adapter, queue: _Queue, stuck: Callable[[], None] | None) -> None:
    arrivals: dict[int, int] = {}
    try:
        for arrival, message in enumerate(messages(read), 1):
            item = message if isinstance(message, Malformed) else _request(arrival, message)
            if isinstance(item, Request):
                arrivals[item.seq] = arrival
                if item.command in _AHEAD:
                    _ahead(adapter, item, arrivals)
                    continue
                if item.command in _ENDING:
                    adapter.interruption.pause(arrival)
                elif item.command in _MADE_ROOM_FOR:
                    adapter.interruption.make_room(arrival)
            queue.items.put(item)
            if queue.over.is_set():
                return
    except OSError:
        pass
    adapter.interruption.closing = True
    queue.items.put(None)
    if not queue.over.wait(_GRACE) and stuck is not None:
        stuck()


def _request(arrival: int, message: dict[str, Json]) -> Request | Malformed:
    """The request that a message is."""
    seq, command, arguments = message.get("seq"), message.get("command"), message.get("arguments")
    if message.get("type") != "request" or not isinstance(command, str):
        return Malformed("a message is no request")
    if not isinstance(seq, int) or isinstance(seq, bool) or not 0 <= seq < 1 << 53:
        return Malformed("a request has no number: give seq")
    if arguments is not None and not isinstance(arguments, dict):
        return Request(arrival, seq, command, {"": "no object"})
    return Request(arrival, seq, command, arguments or {})


def _ahead(adapter: Adapter, request: Request, arrivals: dict[int, int]) -> None:
    """Answers a request that is about others that may be running."""
    given, interruption = request.arguments, adapter.interruption
    adapter.outbox.response(request, None)
    if request.command == "pause":
        interruption.pause(request.arrival)
        return
    number, progress = given.get("requestId"), given.get("progressId")
    if isinstance(number, int) and number in arrivals:
        interruption.cancel(arrivals[number])
    if isinstance(progress, str) and progress.isdecimal() and len(progress) < 16:
        interruption.cancel(int(progress))


# ---- The worker -------------------------------------------------------------------------------


def _next(adapter: Adapter, queue: _Queue) -> Request | Malformed | None:
    """The next message; while there is none, the move that made room goes on."""
    while adapter.resume is not None and queue.items.empty():
        (request, action), last = adapter.resume, adapter.request
        adapter.resume, adapter.request = None, request
        adapter.interruption.has_room(0 if last is None else last.arrival)
        adapter.interruption.begin(0 if request is None else request.arrival)
        before = () if adapter.current is None else adapter.current.stops
        _guarded(adapter, action, "" if request is None else request.command)
        announce_stops(adapter, before)
        adapter.request = last
    return queue.items.get()


def _complained(adapter: Adapter, message: Malformed) -> None:
    """Says that something could not be read; there is no request to answer."""
    adapter.event("output", {"category": "stderr", "output": f"sonnx: {one_line(message.reason)}\n"})


def _answered(adapter: Adapter, request: Request) -> None:
    adapter.request = request
    adapter.interruption.begin(request.arrival)
    if adapter.interruption.is_cancelled(request.arrival) and request.command != "disconnect":
        adapter.outbox.refusal(request, CANCELLED, "cancelled")
        return
    before = () if adapter.current is None else adapter.current.stops
    try:
        _carried_out(adapter, request)
    except Exception as error:
        _failed(adapter, request, error)
        return
    _followed(adapter, request)
    announce_stops(adapter, before)


def _carried_out(adapter: Adapter, request: Request) -> None:
    """The response; the launch is answered later, when the configuration is done."""
    handler = BY_REQUEST.get(request.command)
    if handler is None:
        adapter.outbox.refusal(request, UNKNOWN, f"there is no request {one_line(request.command)} here")
        return
    if "" in request.arguments:
        raise Refused("the arguments must be an object")
    if not adapter.initialized and request.command not in ("initialize", *_ENDING):
        raise Refused("the session has not begun: send initialize first")
    if not handler.early and adapter.current is None:
        raise Refused("nothing is debugged yet: send launch or attach first")
    body = handler.run(adapter, Arguments(request.arguments, request.command))
    if adapter.hold:
        adapter.hold, adapter.waiting = False, request
        return
    adapter.outbox.response(request, body)


def _followed(adapter: Adapter, request: Request) -> None:
    """Does what a request set off, once its response is sent."""
    while actions := adapter.take_after():
        for action in actions:
            _guarded(adapter, action, request.command)


def _guarded(adapter: Adapter, action: Callable[[], None], command: str) -> None:
    """Does what a request set off; what goes wrong is said, and the execution stands still."""
    try:
        action()
    except Exception as error:
        _told(adapter, error)
        ended(adapter, f"{command}: {_sentence(error)}")


def _failed(adapter: Adapter, request: Request, error: Exception) -> None:
    _told(adapter, error)
    adapter.take_after()
    adapter.hold = False
    show = request.command in ("launch", "attach", "restart")
    adapter.outbox.refusal(request, _number(error), _sentence(error), show=show)


def _told(adapter: Adapter, error: Exception) -> None:
    """The traceback of a defect, so that it can be reported."""
    if _number(error) == DEFECT:
        trace = inert("".join(traceback.format_exception(error)))
        adapter.event("output", {"category": "stderr", "output": trace})


def _number(error: Exception) -> int:
    expected = isinstance(error, Refused | ModelError | Unsupported | OSError | MemoryError | RecursionError)
    return REFUSED if expected else DEFECT


def _sentence(error: Exception) -> str:
    match error:
        case Refused(message=message, candidates=candidates):
            return f"{message}: {', '.join(candidates)}" if candidates else message
        case ModelError() | Unsupported():
            return str(error)
        case OSError(filename=str() as name):
            return f"{name}: {error.strerror}"
        case MemoryError():
            return "there is no memory for this: ask about fewer elements, or a smaller part"
        case RecursionError():
            return "this lies too deep"
        case _:
            return f"internal error: {type(error).__name__}: {error} (a defect of sonnx)"
