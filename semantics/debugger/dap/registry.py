"""What a handler is, and the capabilities that a set of handlers has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ...machine.trace.format import Json
from .adapter import Adapter
from .arguments import Arguments

Body = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Handler:
    """request: the `command` that it answers. run: gives the body of the response, None for no body, or raises Refused.

    capabilities: what `initialize` says because of this handler. early: whether it answers before a model is launched.
    """

    request: str
    run: Callable[[Adapter, Arguments], Body | None]
    capabilities: Mapping[str, Json] = field(default_factory=dict)
    early: bool = False


def capabilities(handlers: Iterable[Handler]) -> dict[str, Json]:
    """The capabilities of an adapter that has these handlers."""
    return {name: value for handler in handlers for name, value in handler.capabilities.items()}
