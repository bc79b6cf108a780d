"""All handlers, by the name of the request."""

from __future__ import annotations

from typing import Final

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
from .registry import Handler

HANDLERS: Final[tuple[Handler, ...]] = (
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
