"""Setting a group of breakpoints in the session: the one before is removed, each new one is a command.

What is set before a model is launched is kept, answered as pending, and set when the model is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from sonnx.spec.terminal.inert import one_line

from ...machine.trace.format import Json
from ..commands.table import execute
from ..display.answers import Refusal
from ..stops.stops import Breakpoint
from .adapter import Adapter
from .arguments import Arguments
from .registry import Body


@dataclass(frozen=True, slots=True)
class Wanted:
    """One breakpoint of a request: the command that sets it, or why there is none."""

    command: str
    refusal: str = ""


def replaced(adapter: Adapter, group: str, wanted: tuple[Wanted, ...], asked: Arguments, source: str = "") -> Body:
    """Replaces a group, or what was asked for of one source, and gives the body of the response, in the same order."""
    key = (group, source)
    adapter.ids.asked[key] = asked
    if adapter.current is None:
        numbers = tuple(adapter.ids.new() for _ in wanted)
        adapter.ids.pending[key] = numbers
        waiting: list[Json] = [
            {"id": number, "verified": False, "message": "the model is not loaded yet", "reason": "pending"}
            for number in numbers
        ]
        return {"breakpoints": waiting}
    _clear(adapter, group)
    promised = adapter.ids.pending.pop(key, ())
    numbers_ = promised if len(promised) == len(wanted) else (None,) * len(wanted)
    return {"breakpoints": [_made(adapter, group, it, number) for it, number in zip(wanted, numbers_, strict=True)]}


def refused(adapter: Adapter, group: str, count: int, message: str, asked: Arguments, source: str) -> Body:
    """The body of the response where none of a source can be set."""
    key = (group, source)
    adapter.ids.asked[key] = asked
    numbers = adapter.ids.pending.pop(key, ())
    promised = numbers if len(numbers) == count else (None,) * count
    return {"breakpoints": [failed(adapter, message, number) for number in promised]}


def failed(adapter: Adapter, message: str, number: int | None = None) -> dict[str, Json]:
    """A breakpoint that is not set."""
    given = adapter.ids.new() if number is None else number
    return {"id": given, "verified": False, "message": one_line(message), "reason": "failed"}


def _clear(adapter: Adapter, group: str) -> None:
    mine = adapter.ids.of_group(group)
    there = {stop.number for stop in adapter.session.stops}
    gone = [number for number in mine if number in there]
    adapter.ids.untie(mine)
    if gone:
        adapter.become(execute(adapter.session, f"delete {' '.join(map(str, gone))}").session)


def _made(adapter: Adapter, group: str, wanted: Wanted, number: int | None) -> dict[str, Json]:
    if wanted.refusal:
        return failed(adapter, wanted.refusal, number)
    outcome = execute(adapter.session, wanted.command)
    if isinstance(outcome.answer, Refusal):
        more = f": {', '.join(outcome.answer.candidates)}" if outcome.answer.candidates else ""
        return failed(adapter, outcome.answer.message + more, number)
    adapter.become(outcome.session)
    stop = outcome.session.stops[-1]
    made: dict[str, Json] = {
        "id": adapter.ids.tie(stop.number, group, number),
        "verified": True,
        "message": one_line(stop.text),
    }
    return {**made, **place_of_stop(adapter, stop)} if isinstance(stop, Breakpoint) else made


def place_of_stop(adapter: Adapter, stop: Breakpoint) -> dict[str, Json]:
    """Where in the listing a breakpoint stands; nothing where it stands at several nodes."""
    listing, found = adapter.session.listing, stop.at
    if len(found.nodes) + len(found.calls) != 1 or adapter.file is None:
        return {}
    lines = [listing.of_node[n] for n in found.nodes] + [listing.of_call.get(call, 0) for call in found.calls]
    return {"source": adapter.file.source, **span_of_line(adapter, lines[0])} if lines[0] else {}


def span_of_line(adapter: Adapter, number: int) -> dict[str, Json]:
    """The text of a line of the listing, as the client counts."""
    text, client = adapter.session.listing.lines[number - 1].text, adapter.client
    return {
        "line": client.line(number),
        "column": client.column(len(text) - len(text.lstrip()) + 1),
        "endLine": client.line(number),
        "endColumn": client.column(len(text) + 1),
    }
