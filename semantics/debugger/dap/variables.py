"""Scopes, variables and memory: the debugger's items as the protocol has them, read and changed."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field, replace
from typing import Final

from sonnx.spec.terminal import one_line

from ...machine.trace.format import Json
from ...model.graph import TensorId
from ..commands.table import execute
from ..display.answers import Refusal
from ..display.rendering import lines
from ..expressions import tensor_and_subscripts
from ..inspection import scopes
from ..inspection.items import (
    Item,
    Parts,
    View,
    bytes_of_instance,
    bytes_of_memory,
    distinct,
    expression_item,
    grouped,
    page,
    part_named,
)
from ..session.session import Session, context, expression
from ..timeline.history import Refused
from ..timeline.names import Instance, instance_of_path
from .adapter import Adapter, Body, Handler
from .messages import LARGEST, Arguments

_M: Final = "M"
_DIGITS: Final = 16


def reference_to(session: Session, tensor: Instance) -> str:
    """The memory reference of a tensor at the step of a session."""
    return f"{session.index}:{tensor.path}"


def everything(session: Session) -> str:
    """The memory reference of M at the step of a session."""
    return f"{session.index}:{_M}"


def referred(session: Session, reference: str) -> tuple[Session, Instance | None]:
    """The session at the step of a reference, on the timeline at hand, and the tensor; None for M. Raises Refused for
    what is no reference."""
    index, _, path = reference.partition(":")
    if not (index.isdecimal() and index.isascii() and len(index) < _DIGITS and path):
        raise Refused("this is no memory reference: take one from a variable")
    if int(index) > session.history.last:
        raise Refused("the memory reference is of a step that this timeline does not have: take one from a variable")
    there = replace(session, index=int(index), phase=0, frame=0)
    return there, None if path == _M else instance_of_path(there.state, path)


# ---- Changed values -------------------------------------------------------------------------------


def edits_allowed(adapter: Adapter) -> bool:
    """True where the launch allows changed values."""
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


# ---- Items as variables ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Container:
    """A container of `variables`. key: how one gets there from a frame, so that the same container has the
    same number. session: where it was made. shown: the children that the client was told of, by name."""

    key: tuple[int | str, ...]
    parts: Parts = field(compare=False)
    session: Session = field(compare=False)
    shown: dict[str, Item] = field(default_factory=dict, compare=False)

    def expression_of(self, name: str) -> str | None:
        """The words of the debugger's expressions for the child of that name; None where they do not."""
        item = item_of(self.session, self, name)
        return None if item is None or not item.expression or item.kind == "virtual" else item.expression


@dataclass(frozen=True, slots=True)
class Location:
    """The meaning of a `locationReference`: a line of the listing, or the tensor's name in it, or the definition of an
    operator, by name and version."""

    line: int | None = None
    tensor: TensorId | None = None
    operator: tuple[str, int] | None = None


def variable(adapter: Adapter, item: Item, key: tuple[int | str, ...]) -> dict[str, Json]:
    """An item as a Variable. key: of the item, as a container."""
    made: dict[str, Json] = {
        "name": item.name,
        "value": item.value,
        "presentationHint": _hint(adapter, item),
        **_shared(adapter, item, key),
    }
    if item.expression:
        made["evaluateName"] = item.expression
    if item.line is not None:
        made["declarationLocationReference"] = adapter.references.to(_declared(item))
    return made


def result(adapter: Adapter, item: Item, key: tuple[int | str, ...]) -> dict[str, Json]:
    """An item as the body of the response to evaluate. Its value points to the line that makes it."""
    hint = _hint(adapter, item)
    made: dict[str, Json] = {"result": item.value, "presentationHint": hint, **_shared(adapter, item, key)}
    if item.line is not None and item.operator is None:
        made["valueLocationReference"] = adapter.references.to(_declared(item))
    return made


def changed(adapter: Adapter, item: Item, key: tuple[int | str, ...]) -> dict[str, Json]:
    """An item as the body of the response to setVariable and setExpression."""
    return {"value": item.value, **_shared(adapter, item, key)}


def _shared(adapter: Adapter, item: Item, key: tuple[int | str, ...]) -> dict[str, Json]:
    made: dict[str, Json] = {"variablesReference": 0}
    if item.type and adapter.client.types:
        made["type"] = item.type
    if item.inside is not None:
        made["variablesReference"] = adapter.references.to(Container(key, item.inside, adapter.session))
        if item.inside.count:
            made["indexedVariables"] = item.inside.count
    if adapter.client.memory_references:
        made |= _memory(adapter.session, item)
    if item.operator is not None:
        made["valueLocationReference"] = adapter.references.to(Location(operator=item.operator))
    elif item.about is not None:
        made["valueLocationReference"] = adapter.references.to(Location(item.about))
    return made


def _declared(item: Item) -> Location:
    return Location(item.line, None if item.tensor is None else item.tensor.tensor)


def _hint(adapter: Adapter, item: Item) -> dict[str, Json]:
    attributes: list[Json] = [] if item.editable and edits_allowed(adapter) else ["readOnly"]
    lazy: dict[str, Json] = {"lazy": True} if item.lazy else {}
    return {"kind": item.kind, "attributes": attributes, **lazy}


def _memory(session: Session, item: Item) -> dict[str, Json]:
    if item.memory:
        return {"memoryReference": everything(session)}
    return {"memoryReference": reference_to(session, item.tensor)} if item.bytes and item.tensor is not None else {}


def item_of(session: Session, container: Container, name: str) -> Item | None:
    """The child of a container that has a name."""
    item = container.shown.get(name)
    return part_named(session, container.parts, name) if item is None else item


# ---- Requests: scopes, variables, memory ----------------------------------------------------------

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


_MOST: Final = 1000
"""So many numbered variables are given at once, whatever is asked for."""


def view_of(given: Arguments) -> View:
    """The form in which values are to be shown."""
    return View(hexadecimal=given.part("format").flag("hex"))


def _variables(adapter: Adapter, given: Arguments) -> Body:
    container = adapter.references.get(given.whole("variablesReference"), Container, "variable")
    wanted, start = given.text("filter", ""), given.whole("start", 0)
    if wanted not in ("", "named", "indexed"):
        raise Refused('"filter" must be named or indexed')
    count = given.whole("count", 0)
    session, view, parts = adapter.session, view_of(given), container.parts
    children: list[tuple[tuple[int | str, ...], Item]] = []
    paged = bool(count) or (wanted == "indexed" and parts.count - start <= _MOST)
    if wanted == "named" or (not wanted and not (paged and start)):
        named = distinct(parts.named(session, view))
        named = named[start : start + count if count else None] if wanted else named
        children += [((*container.key, item.name), item) for item in named]
    if wanted != "named" and paged:
        items = page(session, parts, view, start, min(count or _MOST, _MOST))
        children += [((*container.key, start + i), item) for i, item in enumerate(items)]
    elif wanted != "named" and parts.count:
        items = grouped(session, parts, view)
        ranged = items[0].kind == "virtual"
        children += [((*container.key, item.name if ranged else i), item) for i, item in enumerate(items)]
    container.shown.update((item.name, item) for _, item in children)
    return {"variables": [variable(adapter, item, key) for key, item in children]}


def _set_variable(adapter: Adapter, given: Arguments) -> Body:
    check_edits(adapter)
    container = adapter.references.get(given.whole("variablesReference"), Container, "variable")
    name, value = given.text("name"), given.text("value")
    item = item_of(adapter.session, container, name)
    if item is None:
        raise Refused("there is no such variable: ask for the variables again")
    if not item.editable or not item.expression:
        raise Refused("only single numbers can be changed: open the tensor and change an element")
    instance, _ = tensor_and_subscripts(expression(adapter.session, item.expression), context(adapter.session))
    edited(adapter, f"set {item.expression} = {value}", instance)
    after = expression_item(adapter.session, item.expression, view_of(given))
    return changed(adapter, after, (*container.key, f"set {name}"))


_MOST_BYTES: Final = 1 << 26


def _read(adapter: Adapter, given: Arguments) -> Body:
    there, tensor = referred(adapter.session, given.text("memoryReference"))
    offset = given.whole("offset", 0, least=-LARGEST)
    count = given.whole("count")
    if count > _MOST_BYTES:
        raise Refused(f"at most {_MOST_BYTES} bytes are read at once")
    memory = bytes_of_memory(there) if tensor is None else bytes_of_instance(there, tensor)
    data, missing = memory.read(offset, count)
    body = {"address": f"0x{max(memory.address + offset, 0):x}"}
    if data:
        body["data"] = base64.b64encode(data).decode("ascii")
    return {**body, "unreadableBytes": missing} if missing else body


def _write(adapter: Adapter, given: Arguments) -> Body:
    check_edits(adapter)
    session = adapter.session
    there, tensor = referred(session, given.text("memoryReference"))
    if tensor is None:
        raise Refused("bytes are changed in a tensor: take the memory reference of a tensor")
    if there.index != session.index:
        raise Refused(f"this is the memory at step {there.index}: go there (seek {there.index}) to change it")
    offset, partial = given.whole("offset", 0, least=-LARGEST), given.flag("allowPartial")
    try:
        data = base64.b64decode(given.text("data"), validate=True)
    except (binascii.Error, ValueError):
        raise Refused('"data" must be bytes in base64') from None
    size = bytes_of_instance(session, tensor).size
    first, end = max(offset, 0), min(offset + len(data), size)
    if (first, end) != (offset, offset + len(data)) and not partial:
        raise Refused(f"the tensor has {size} bytes: bytes {offset} to {offset + len(data)} are not all in it")
    written = max(end - first, 0)
    if written:
        part = data[first - offset : end - offset]
        edited(adapter, f"poke `{tensor.path}` {first} {part.hex()}", tensor, first, written)
    return {"offset": first, "bytesWritten": written} if partial else {"bytesWritten": written}


HANDLERS = (
    Handler("scopes", _scopes),
    Handler("variables", _variables, {"supportsValueFormattingOptions": True}),
    Handler("setVariable", _set_variable, {"supportsSetVariable": True}),
    Handler("readMemory", _read, {"supportsReadMemoryRequest": True}),
    Handler("writeMemory", _write, {"supportsWriteMemoryRequest": True}),
)
