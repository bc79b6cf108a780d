"""All handlers, by the name of the request, and `initialize`, which tells the client what they can do."""

from __future__ import annotations

from typing import Final

from ..timeline.refused import Refused
from . import (
    breakpoint_requests,
    evaluate,
    lifecycle,
    memory,
    motion_requests,
    scopes,
    sources,
    stack,
    variables,
)
from .adapter import Adapter, Client
from .arguments import Arguments
from .registry import Body, Handler, capabilities


def _initialize(adapter: Adapter, given: Arguments) -> Body:
    adapter.client = Client(
        lines_start_at=int(given.flag("linesStartAt1", default=True)),
        columns_start_at=int(given.flag("columnsStartAt1", default=True)),
        paging=given.flag("supportsVariablePaging"),
        types=given.flag("supportsVariableType"),
        memory_references=given.flag("supportsMemoryReferences"),
        progress=given.flag("supportsProgressReporting"),
        invalidated=given.flag("supportsInvalidatedEvent"),
        memory_event=given.flag("supportsMemoryEvent"),
    )
    if given.text("pathFormat", "path") != "path":
        raise Refused('pathFormat must be "path": URIs are not read here')
    adapter.later("initialized")
    return capabilities(HANDLERS)


HANDLERS: Final[tuple[Handler, ...]] = (
    Handler("initialize", _initialize, early=True),
    *lifecycle.HANDLERS,
    *breakpoint_requests.HANDLERS,
    *motion_requests.HANDLERS,
    *stack.HANDLERS,
    *scopes.HANDLERS,
    *variables.HANDLERS,
    *memory.HANDLERS,
    *evaluate.HANDLERS,
    *sources.HANDLERS,
)
"""What is answered. The reader answers `pause` and `cancel` itself; they stand here for their capabilities."""

BY_REQUEST: Final = {handler.request: handler for handler in HANDLERS}
