"""The request `scopes`: what a frame has to show, in the debugger's order; nothing of it is made yet."""

from __future__ import annotations

from typing import Final

from ...machine.trace.format import Json
from ..inspection import scopes
from .adapter import Adapter
from .arguments import Arguments
from .containers import Container
from .registry import Body, Handler

_HINTS: Final = {
    "Node inputs": "arguments", "Node outputs": "returnValue", "Tensors": "locals", "Machine": "registers",
}  # fmt: skip
_EXPENSIVE: Final = frozenset(("Initializers", "Uninitialised"))


def _scopes(adapter: Adapter, given: Arguments) -> Body:
    number = given.whole("frameId")
    frame = adapter.looking(number).frame
    return {"scopes": [_scope(adapter, frame, name) for name in scopes.SCOPES]}


def _scope(adapter: Adapter, frame: int, name: str) -> dict[str, Json]:
    container = Container((frame, name), scopes.scope(adapter.session, frame, name), adapter.session)
    hint: dict[str, Json] = {"presentationHint": _HINTS[name]} if name in _HINTS else {}
    reference = adapter.references.to(container)
    return {"name": name, **hint, "variablesReference": reference, "expensive": name in _EXPENSIVE}


HANDLERS = (Handler("scopes", _scopes),)
"""The handlers of this file."""
