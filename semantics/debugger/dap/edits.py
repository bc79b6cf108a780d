"""Changed values: a command that forks a timeline, where the launch allows it, and what the client is told of it."""

from __future__ import annotations

from dataclasses import replace

from sonnx.spec.terminal.inert import one_line

from ...machine.trace.format import Json
from ..commands.table import execute
from ..display.answers import Refusal
from ..display.rendering import lines
from ..inspection.bytes_of import bytes_of_instance
from ..timeline.names import Instance
from ..timeline.refused import Refused
from .adapter import Adapter
from .memory_references import reference_to


def edits_allowed(adapter: Adapter) -> bool:
    """Whether the launch allows changed values."""
    return adapter.launch is not None and adapter.launch.allow_edits


def check_edits(adapter: Adapter) -> None:
    """Refuses changes where the launch does not allow them."""
    if not edits_allowed(adapter):
        raise Refused('values cannot be changed: set "allowEdits" to true in the launch configuration')


def edited(
    adapter: Adapter, line: str, tensor: Instance, first: int = 0, count: int | None = None, frame: int = 0
) -> None:
    """Runs a command line that changes a tensor: `count` of its bytes from `first` on, all of them where None is given.

    frame: the one in which the line names things. References go on to live, since the position is the same and they
    look their values up. Raises Refused.
    """
    check_edits(adapter)
    phase = adapter.session.phase
    outcome = execute(replace(adapter.session, frame=frame), line)
    if isinstance(outcome.answer, Refusal):
        raise Refused(outcome.answer.message, outcome.answer.candidates)
    if phase == outcome.session.phase:
        adapter.current = outcome.session
    else:
        adapter.become(outcome.session)
    if adapter.client.memory_event:
        size = bytes_of_instance(adapter.session, tensor).size if count is None else count
        reference = reference_to(adapter.session, tensor)
        adapter.later("memory", {"memoryReference": reference, "offset": first, "count": size})
    announce_edit(adapter, lines(outcome.answer))


def announce_edit(adapter: Adapter, said: tuple[str, ...]) -> None:
    """Tells the client, after the response, that the execution is another one now."""
    for text in said:
        adapter.later("output", {"category": "important", "output": f"{one_line(text)}\n"})
    if adapter.client.invalidated:
        areas: list[Json] = ["stacks", "variables"]
        adapter.later("invalidated", {"areas": areas})
