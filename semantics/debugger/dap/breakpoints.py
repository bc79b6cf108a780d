"""Breakpoints of the client: on lines of the listing, on names, on exceptions, on data.

Each request replaces its whole group: the group before is removed, each new breakpoint is a command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from sonnx.spec.terminal import one_line

from ...machine.trace.format import Json
from ...model.elements import BITS
from ...model.path import quote
from ..commands.table import execute
from ..display.answers import Refusal
from ..display.listing import STOPS
from ..expressions import element_meant, tensor_and_subscripts
from ..session.session import Session, context, expression
from ..stops import KINDS, SENTENCES, Breakpoint, Watch, watched
from ..timeline.history import Refused
from ..timeline.names import region_of_instance
from .adapter import DATA, EXCEPTION, FUNCTION, SOURCE, TYPED, Adapter, Body, Handler
from .messages import Arguments
from .variables import Container


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


def all_failed(adapter: Adapter, group: str, count: int, message: str, asked: Arguments, source: str) -> Body:
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
    """The place of a breakpoint in the listing; nothing where it stands at several nodes."""
    listing, nodes = adapter.session.listing, stop.at
    lines = [
        *(listing.of_node[n] for n in nodes.nodes),
        *(listing.of_call.get(call, 0) for call in nodes.calls),
        *(listing.of_return[graph] for graph in nodes.returns),
    ]
    if len(lines) != 1 or adapter.file is None:
        return {}
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


_ACCESS: Final = {"write": "watch", "read": "rwatch", "readWrite": "awatch"}
_SENTENCES: Final = {
    **SENTENCES,
    "precondition": "a requirement of an operator fails",
    "divergence": "another value than the reference has",
}
_ADDRESS: Final = re.compile(r"0[xX]([0-9a-fA-F]{1,13})|([0-9]{1,15})")
_ADDRESSES: Final = 1 << 53
"""The first number that is no address: JSON's clients keep smaller ones exactly."""
_LOCATIONS: Final = 10_000
"""So many places for breakpoints are given at once."""


# ---- Lines ------------------------------------------------------------------------------------


def _on_lines(adapter: Adapter, given: Arguments) -> Body:
    lines = [(it.whole("line"), it) for it in given.parts("breakpoints")]
    if not given.has("breakpoints"):
        lines = [(n, Arguments({})) for n in _lines(given)]
    path = given.part("source").text("path", "")
    wrong = _wrong_source(adapter, given.part("source"))
    if wrong and adapter.current is not None:
        return all_failed(adapter, SOURCE, len(lines), wrong, given, path)
    return replaced(adapter, SOURCE, tuple(_on_line(adapter.client.own_line(n), it) for n, it in lines), given, path)


def _lines(given: Arguments) -> list[int]:
    """The deprecated form of the request, with numbers alone."""
    numbers = given.fields.get("lines")
    return [it for it in numbers if isinstance(it, int) and it >= 0] if isinstance(numbers, list) else []


def _on_line(line: int, given: Arguments) -> Wanted:
    try:
        tail, message = _tail(given), given.text("logMessage", "")
    except Refused as error:
        return Wanted("", error.message)
    return Wanted(f"log {line} says {quote(message)}{tail}" if message else f"break {line}{tail}")


def _tail(given: Arguments) -> str:
    """The count and the condition, as they stand behind a command."""
    hit, condition = given.text("hitCondition", ""), given.text("condition", "").strip()
    count = f" hit {''.join(_printable(hit).split())}" if hit.strip() else ""
    return count + (f" if {_printable(condition)}" if condition else "")


def _printable(text: str) -> str:
    if not text.isprintable():
        raise Refused(f"{quote(text)} has characters that cannot be printed: write it on one line")
    return text


def _wrong_source(adapter: Adapter, source: Arguments) -> str:
    """Why breakpoints cannot stand in a source; "" where they can."""
    file = adapter.file
    if file is None:
        return "nothing is debugged yet"
    path = source.text("path", "")
    if not path or not file.is_at(path):
        return f"breakpoints stand in the listing {quote(str(file.path))}"
    for it in source.parts("checksums"):
        if it.text("algorithm", "") == "SHA256" and it.text("checksum", "").lower() != file.sha256:
            return "this is not the listing of the model that is debugged: open it again"
    return ""


def _locations(adapter: Adapter, given: Arguments) -> Body:
    """The lines of a range at which an execution can stand still: nodes, calls and returns."""
    wrong = _wrong_source(adapter, given.part("source"))
    if wrong:
        raise Refused(wrong)
    listing, client = adapter.session.listing, adapter.client
    first = client.own_line(given.whole("line"))
    last = client.own_line(given.whole("endLine", client.line(first)))
    numbers = range(max(first, 1), min(last, len(listing.lines), first + _LOCATIONS) + 1)
    return {
        "breakpoints": [span_of_line(adapter, number) for number in numbers if listing.lines[number - 1].kind in STOPS]
    }


# ---- Names ------------------------------------------------------------------------------------


def _on_functions(adapter: Adapter, given: Arguments) -> Body:
    return replaced(adapter, FUNCTION, tuple(_on_name(it) for it in given.parts("breakpoints")), given)


def _on_name(given: Arguments) -> Wanted:
    try:
        return Wanted(f"break {_name(given.text('name'))}{_tail(given)}")
    except Refused as error:
        return Wanted("", error.message)


def _name(text: str) -> str:
    """A name as a command takes it; digits alone would mean a line."""
    text = _printable(text.strip())
    if not text:
        raise Refused("give an operator, a node, a glob or a function")
    return f"name:{text}" if text.isdecimal() else text


# ---- Exceptions -------------------------------------------------------------------------------


def _on_exceptions(adapter: Adapter, given: Arguments) -> Body:
    wanted = [_caught(adapter, name, "") for name in given.texts("filters")]
    for it in given.parts("filterOptions"):
        wanted.append(_caught(adapter, it.text("filterId"), it.text("condition", "").strip()))
    return replaced(adapter, EXCEPTION, tuple(wanted), given)


def _caught(adapter: Adapter, name: str, condition: str) -> Wanted:
    if name not in KINDS:
        return Wanted("", f"there is no filter {quote(name)}: there are {', '.join(KINDS)}")
    if not condition.isprintable():
        return Wanted("", f"{quote(condition)} has characters that cannot be printed: write it on one line")
    tail = f" if {condition}" if condition else ""
    if name != "divergence":
        return Wanted(f"catch {name}{tail}")
    launch = adapter.launch
    reference = None if launch is None else launch.reference or launch.trace
    if reference is None and adapter.current is not None and adapter.session.against is not None:
        return Wanted(f"catch divergence{tail}")
    if reference is None:
        why = 'set "reference" in the launch configuration to a trace of sonnx run, or say against among its "commands"'
        return Wanted("", why)
    mark = "'" if "'" not in str(reference) else '"'
    return Wanted(f"catch divergence {mark}{reference}{mark}{tail}")


def _filters() -> Json:
    return [
        {
            "filter": kind,
            "label": f"{kind}: {_SENTENCES[kind]}",
            "description": f"Stand still where a node writes a value with this fault: {_SENTENCES[kind]}.",
            "default": kind == "precondition",
            "supportsCondition": True,
            "conditionDescription": "An expression on the state before the node fires, such as $op == 'Div'.",
        }
        for kind in KINDS
    ]


# ---- Data -------------------------------------------------------------------------------------


def _data_info(adapter: Adapter, given: Arguments) -> Body:
    name, reference = given.text("name"), given.maybe_whole("variablesReference")
    count = given.whole("bytes", least=1, most=_ADDRESSES) if given.has("bytes") else None
    if given.flag("asAddress"):
        return _bytes_from(adapter, _address(name), count or 1)
    if reference:
        container = adapter.references.get(reference, Container, "variable")
        expression = container.expression_of(name)
        if expression is None:
            return _no_data(f"{quote(name)} is no tensor, element or slice")
        name = expression
    if not name.isprintable():
        return _no_data(f"{quote(name)} has characters that cannot be printed")
    session = adapter.looking(given.maybe_whole("frameId"))
    if count is not None:
        try:
            return _bytes_from(adapter, _first_byte(session, name), count)
        except Refused as refused:
            return _no_data(refused.message)
    accesses: list[Json] = [*_ACCESS]
    outcome = execute(session, f"watch {name}")
    if isinstance(outcome.answer, Refusal):  # it may be one that no step writes
        outcome, accesses = execute(session, f"rwatch {name}"), ["read"]
    if isinstance(outcome.answer, Refusal):
        return _no_data(outcome.answer.message)
    stop = outcome.session.stops[-1]
    data = watched(outcome.session.model, stop) if isinstance(stop, Watch) else stop.text
    return {"dataId": data, "description": one_line(data), "accessTypes": accesses, "canPersist": True}


def _address(text: str) -> int:
    """The address that a client gives, with 0x in front of a hexadecimal one. Raises Refused."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        why = "must be an address below 2^53, decimal, or hexadecimal behind 0x"
        raise Refused(f'arguments: "name" {why}, and is {quote(text[:40])}')
    return int(match[1], 16) if match[1] else int(match[2])


def _first_byte(session: Session, text: str) -> int:
    """The address of a tensor, or of an element of it, where the session stands. Raises Refused."""
    said, where = expression(session, text), context(session)
    instance, subscripts = tensor_and_subscripts(said, where)
    placed = region_of_instance(session.history, session.index, instance)
    if placed is None or placed[0] is not session.state.store:
        raise Refused(f"{instance.path} has no bytes in M here")
    if not subscripts:
        return placed[1].offset
    _, index, value = element_meant(said, where)
    bits = BITS.get(placed[1].type.element)
    if bits is None:
        raise Refused(f"the elements of {instance.path} have no bytes of one size: watch the tensor")
    return placed[1].offset + int(np.ravel_multi_index(index, value.shape) if index else 0) * bits // 8


def _bytes_from(adapter: Adapter, first: int, count: int) -> Body:
    """So many bytes of M from an address on, also where M does not reach them yet: it grows with what steps place.
    A client may ask before there is a session, to set again what it has kept."""
    last, more, most = first + count - 1, "", _ADDRESSES
    if adapter.current is not None:
        store = adapter.current.state.store
        size, most = store.memory.size, min(store.space.budget, _ADDRESSES)
        more = f", which has {size:#x} bytes here and grows" if last >= size else ""
    if last >= most:
        return _no_data(f"byte {last:#x} lies outside M, which never has more than {most:#x} bytes: no step writes it")
    said = f"bytes {first:#x} to {last:#x} of M" if count > 1 else f"byte {first:#x} of M"
    accesses: list[Json] = [*_ACCESS]
    return {"dataId": f"@{first:#x}:{count}", "description": said + more, "accessTypes": accesses, "canPersist": False}


def _no_data(why: str) -> Body:
    return {"dataId": None, "description": one_line(why)}


def _on_data(adapter: Adapter, given: Arguments) -> Body:
    return replaced(adapter, DATA, tuple(_on_datum(it) for it in given.parts("breakpoints")), given)


def _on_datum(given: Arguments) -> Wanted:
    try:
        access, data = given.text("accessType", "write"), _printable(given.text("dataId"))
        if access not in _ACCESS:
            raise Refused(f"accessType must be one of {', '.join(_ACCESS)}")
        return Wanted(f"{_ACCESS[access]} {data}{_tail(given)}")
    except Refused as error:
        return Wanted("", error.message)


# ---- Again ------------------------------------------------------------------------------------


def set_again(adapter: Adapter) -> None:
    """Sets everything that the client has asked for in a session that has just begun, and tells how it went."""
    for stop in adapter.ids.of_group(TYPED):
        gone: Json = {"id": adapter.ids.numbers[stop], "verified": False}
        adapter.event("breakpoint", {"reason": "removed", "breakpoint": gone})
    adapter.ids.untie(adapter.ids.of_group(TYPED))
    for (group, source), given in tuple(adapter.ids.asked.items()):
        mine = adapter.ids.of_group(group)
        adapter.ids.pending.setdefault((group, source), tuple(adapter.ids.numbers[stop] for stop in mine))
        adapter.ids.untie(mine)
        answered = _REQUESTS[group](adapter, given).get("breakpoints")
        for it in answered if isinstance(answered, list) else []:
            adapter.event("breakpoint", {"reason": "changed", "breakpoint": it})


_REQUESTS: Final = {SOURCE: _on_lines, FUNCTION: _on_functions, EXCEPTION: _on_exceptions, DATA: _on_data}

HANDLERS: Final = (
    Handler(
        "setBreakpoints",
        _on_lines,
        {
            "supportsConditionalBreakpoints": True,
            "supportsHitConditionalBreakpoints": True,
            "supportsLogPoints": True,
        },
        early=True,
    ),
    Handler("breakpointLocations", _locations, {"supportsBreakpointLocationsRequest": True}),
    Handler("setFunctionBreakpoints", _on_functions, {"supportsFunctionBreakpoints": True}, early=True),
    Handler(
        "setExceptionBreakpoints",
        _on_exceptions,
        {"exceptionBreakpointFilters": _filters(), "supportsExceptionFilterOptions": True},
        early=True,
    ),
    Handler("dataBreakpointInfo", _data_info, early=True),
    Handler(
        "setDataBreakpoints",
        _on_data,
        {"supportsDataBreakpoints": True, "supportsDataBreakpointBytes": True},
        early=True,
    ),
)
