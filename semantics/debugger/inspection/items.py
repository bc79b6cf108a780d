"""Values and tensors as trees: an item says what it is in one line, its parts are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from sonnx.spec.terminal import inert, one_line

from ...machine.inputs import type_text
from ...machine.memory import Memory, Uninitialised, read, type_of
from ...machine.state import region_of, tensor_path
from ...machine.trace.replay import digest_of
from ...model.elements import is_float
from ...model.graph import NodeId, TensorId
from ...model.path import quote
from ...model.schemas import operator_name
from ...model.values import Array, Map, Optional, Value
from ...model.values import Sequence as Items
from ...resources.persistent import items
from ..display.texts import element_text, statistics, type_of_value, value_lines
from ..expressions import Context, Name, PathName, Sliced, evaluate, instance_of
from ..session.session import Session, context, expression
from ..timeline.history import NoValue
from ..timeline.names import Instance, region_of_instance, value_of_instance, written_at


@dataclass(frozen=True, slots=True)
class Bytes:
    """A range of M. address: of its first byte. size: how many bytes it has."""

    memory: Memory
    address: int
    size: int

    def read(self, offset: int, count: int) -> tuple[bytes, int]:
        """The bytes from an offset on as far as they can be read, and how many behind them cannot."""
        if offset < 0:
            return b"", min(count, -offset)
        wanted = max(min(count, self.size - offset), 0)
        data = read(self.memory, self.address + offset, wanted) if wanted else b""
        if not isinstance(data, Uninitialised):
            return bytes(data), count - wanted
        good = data.address - self.address - offset
        data_before = read(self.memory, self.address + offset, good) if good else b""
        gap = _gap(self.memory, data.address, self.address + offset + count)
        return b"" if isinstance(data_before, Uninitialised) else bytes(data_before), gap


def bytes_of_memory(session: Session) -> Bytes:
    """M where the session stands."""
    memory = session.state.store.memory
    return Bytes(memory, 0, memory.size)


def bytes_of_instance(session: Session, instance: Instance) -> Bytes:
    """The bytes of a tensor in a run of its graph. Raises NoValue."""
    region = region_of_instance(session.history, session.index, instance)
    if region is None:
        raise NoValue(f"{instance.path} has no value yet")
    store, where = region
    return Bytes(store.memory, where.offset, where.length)


def _gap(memory: Memory, start: int, end: int) -> int:
    """The number of bytes from a start on that were never written, up to an end."""
    following = next((at for at, _ in items(memory.segments, start)), end)
    return min(following, end) - start


# ---- Items ----------------------------------------------------------------------------------------

WIDTH: Final = 100
"""So many parts are shown side by side; more are put into ranges."""
EFFORT: Final = 1 << 21
"""So many elements are looked at for the items of one page."""
NONE: Final = "\u22a5"
"""The sign for no value."""
SMALL: Final = 8
"""So many elements, or names, are shown one by one."""
_NAME: Final = 200
_DIGITS: Final = 20
_RESERVED: Final = frozenset(("nan", "inf", "true", "false", "and", "or", "not"))


@dataclass(frozen=True, slots=True)
class View:
    """The form of items. hexadecimal: whole numbers as bits, floats as hexadecimal floats. effort: how many elements
    one item may look at."""

    hexadecimal: bool = False
    effort: int = EFFORT


@dataclass(frozen=True, slots=True)
class Item:
    """name, value, type: texts. expression: which asks for the same, "" where none does. kind: data for what the model
    has, virtual for what is told about it. tensor: the tensor that it is. line: of the listing, where it gets its value
    or stands. about: of the listing, what its value points to. operator: name and version, where it is one.
    bytes: it is a tensor that has a value. memory: it is M. lazy: the value was not made: it is the one part.
    editable: `set` can change it. inside: its parts.
    """

    name: str
    value: str
    type: str = ""
    expression: str = ""
    kind: str = "data"
    tensor: Instance | None = None
    line: int | None = None
    about: int | None = None
    operator: tuple[str, int] | None = None
    bytes: bool = False
    memory: bool = False
    lazy: bool = False
    editable: bool = False
    inside: Parts | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """named: the parts that have names, few. count: how many numbered ones there are. numbered: some of those, from a
    position on."""

    named: Callable[[Session, View], tuple[Item, ...]]
    count: int = 0
    numbered: Callable[[Session, View, int, int], tuple[Item, ...]] = lambda *_: ()


def page(session: Session, parts: Parts, view: View, start: int, count: int) -> tuple[Item, ...]:
    """Numbered parts from a position on, not more than there are; what they may cost is shared among them."""
    start, count = max(start, 0), max(min(count, parts.count - start), 0)
    shared = View(view.hexadecimal, max(view.effort // max(count, 1), SMALL))
    return parts.numbered(session, shared, start, count) if count else ()


def grouped(session: Session, parts: Parts, view: View) -> tuple[Item, ...]:
    """All numbered parts for who asks for all: themselves, or ranges of them."""
    return _ranges(session, parts, view, 0, parts.count)


def ranges(first: int, count: int) -> tuple[tuple[int, int], ...]:
    """At most 100 ranges (first, count) of as many as 100 to some power, that make up a range of more than 100."""
    size = WIDTH
    while size * WIDTH < count:
        size *= WIDTH
    return tuple((at, min(size, first + count - at)) for at in range(first, first + count, size))


def _ranges(session: Session, parts: Parts, view: View, first: int, count: int) -> tuple[Item, ...]:
    if count <= WIDTH:
        return page(session, parts, view, first, count)
    return tuple(
        Item(f"[{at}..{at + size - 1}]", "", kind="virtual", inside=_within(parts, at, size))
        for at, size in ranges(first, count)
    )


def _within(parts: Parts, first: int, count: int) -> Parts:
    return Parts(lambda session, view: _ranges(session, parts, view, first, count))


def many(
    session: Session,
    numbers: Sequence[int],
    make: Callable[[Session, int, View], Item | None],
    label: Callable[[Session, int], str],
    view: View,
    kept: Callable[[Session, Sequence[int]], bool] = lambda *_: True,
    first: int = 0,
) -> tuple[Item, ...]:
    """An item for each number that has one, or ranges of them. kept: whether a range has anything to show."""
    if len(numbers) <= WIDTH:
        shared = View(view.hexadecimal, max(view.effort // max(len(numbers), 1), SMALL))
        return tuple(item for it in numbers if (item := make(session, it, shared)) is not None)

    def within(part: Sequence[int], at: int) -> Parts:
        return Parts(lambda now, how: many(now, part, make, label, how, kept, at))

    shown = []
    for at, size in ranges(first, len(numbers)):
        part = numbers[at - first : at - first + size]
        if kept(session, part):
            text = f"{shown_name(label(session, part[0]))} .. {shown_name(label(session, part[-1]))}"
            shown.append(Item(f"[{at}..{at + size - 1}]", text, kind="virtual", inside=within(part, at)))
    return tuple(shown)


# ---- Names ------------------------------------------------------------------------------------


def shown_name(name: str) -> str:
    """A name of a model on one line, harmless and not too long."""
    text = one_line(name)
    return text if len(text) <= _NAME else f"{text[:_NAME]}... {len(text) - _NAME} more"


def said(name: str) -> str:
    """The name of a tensor in the language of expressions."""
    plain = name.isascii() and name.isidentifier() and name not in _RESERVED
    return name if plain else quote(name)


def distinct(items: Iterable[Item]) -> tuple[Item, ...]:
    """The items, those with a name that was there before under another one."""
    seen: set[str] = set()
    renamed = []
    for item in items:
        name, number = item.name, 1
        if name in seen and item.tensor is not None:
            name = f"{item.name} ({item.tensor.path})"
        while name in seen:
            number += 1
            name = f"{item.name} ({number})"
        seen.add(name)
        renamed.append(item if name == item.name else replace(item, name=name))
    return tuple(renamed)


def part_named(session: Session, parts: Parts, name: str) -> Item | None:
    """The part of that name, of those that are shown side by side with it."""
    for item in distinct(parts.named(session, View(effort=SMALL))):
        if item.name == name:
            return item
    if name[:1] == "[" and name[-1:] == "]" and name[1:-1].isdecimal() and len(name) < _DIGITS:
        page_of_one = page(session, parts, View(), int(name[1:-1]), 1)
        return next((item for item in page_of_one if item.name == name), None)
    return None


# ---- Values ---------------------------------------------------------------------------------------

Find = Callable[[Session], Value | None]
"""Finds a value. Raises nothing; None where there is none."""


def element(array: Array, view: View) -> str:
    """One element: the shortest decimal that reads back, or on request its bits, a float as a hexadecimal float."""
    if not view.hexadecimal or array.dtype == object or array.dtype == np.bool_ or array.dtype.kind == "c":
        return element_text(array)
    if not is_float(array.dtype):
        return element_text(array, "x")
    text = element_text(array, "a")
    return f"nan (bits {element_text(array, 'x')})" if text == "nan" else text


def summary(value: Value, view: View) -> str:
    """A value in one line: its type; the elements where they are few, else least and greatest, how many are NaN or
    infinite, and how its SHA-256 begins. The type alone where it has more elements than may be looked at."""
    if not isinstance(value, np.ndarray):
        return f"{type_text(type_of(value))} {_holds(value)}"
    if value.ndim == 0:
        return element(value, view)
    if value.size <= SMALL:
        return f"{type_of_value(value)} {_nested(value, view)}"
    if value.size > view.effort:
        return type_of_value(value)
    return f"{type_of_value(value)} {_facts(value, view)} #{digest_of(value)[:8]}"


def _holds(value: Items | Optional | Map) -> str:
    if isinstance(value, Optional):
        return "nothing" if value.item is None else "one value"
    return f"{len(value.items)} items"


def _nested(value: Array, view: View) -> str:
    if value.ndim == 0:
        return element(value, view)
    return f"[{', '.join(_nested(np.asarray(part, value.dtype), view) for part in value)}]"


def _facts(value: Array, view: View) -> str:
    if value.dtype == object or value.dtype.kind == "c":
        return f"first {element(value.reshape(-1)[:1], view)}"
    if value.dtype == np.bool_:
        return f"{int(np.count_nonzero(value))} of {value.size} true"
    ends = extremes(value)
    shown = "" if ends is None else f"min={element(ends[0], view)} max={element(ends[1], view)} "
    if not is_float(value.dtype):
        return shown.rstrip()
    wide = value.astype(np.float64)
    return f"{shown}nan={int(np.isnan(wide).sum())} inf={int(np.isinf(wide).sum())}"


def extremes(value: Array) -> tuple[Array, Array] | None:
    """The least and the greatest finite element; None where there is none, or elements have no order."""
    if value.dtype == object or value.dtype.kind in "bc" or not value.size:
        return None
    if is_float(value.dtype):
        wide = value.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        ends = (finite.min(), finite.max()) if finite.size else None
    else:
        ends = value.min(), value.max()
    return None if ends is None else (_one(ends[0], value), _one(ends[1], value))


def _one(number: object, of: Array) -> Array:
    return np.asarray(number).astype(of.dtype)


# ---- Values -----------------------------------------------------------------------------------


def value_item(name: str, value: Value, find: Find, expression: str, view: View) -> Item:
    """A value. find: where it is found later. expression: which asks for it, "" where none does."""
    kind = type_of_value(value)
    if isinstance(value, np.ndarray):
        single = value.ndim == 0
        parts = None if single else Parts(lambda *_: (), value.shape[0], _elements(find, expression, ()))
        return Item(name, summary(value, view), kind, expression, inside=parts, editable=_editable(value))
    if isinstance(value, Optional):
        inside = Parts(lambda now, how: _item_of_optional(find, now, how)) if value.item is not None else None
        return Item(name, summary(value, view), kind, expression, inside=inside)
    count = len(value.items)
    parts = Parts(lambda *_: (), count, _members(find, expression))
    return Item(name, summary(value, view), kind, expression, inside=parts)


def _editable(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.size == 1 and value.dtype != object


def _elements(
    find: Find, expression: str, index: tuple[int, ...]
) -> Callable[[Session, View, int, int], tuple[Item, ...]]:
    """The elements, or slices, of a tensor at an index, one axis further in."""

    def made(session: Session, view: View, start: int, count: int) -> tuple[Item, ...]:
        value = find(session)
        if not isinstance(value, np.ndarray) or value.ndim <= len(index):
            return ()
        axis = value[index]
        return tuple(_element(value, axis, (*index, i), view) for i in range(start, min(start + count, len(axis))))

    def _element(value: Array, axis: Array, at: tuple[int, ...], view: View) -> Item:
        part = np.asarray(axis[at[-1]], value.dtype)
        text = f"{expression}[{', '.join(map(str, at))}]" if expression else ""
        inside = None if part.ndim == 0 else Parts(lambda *_: (), part.shape[0], _elements(find, expression, at))
        return Item(
            f"[{at[-1]}]", summary(part, view), type_of_value(part), text, inside=inside, editable=_editable(part)
        )

    return made


def _members(find: Find, expression: str) -> Callable[[Session, View, int, int], tuple[Item, ...]]:
    """The items of a sequence, or the entries of a map."""

    def one(session: Session, i: int) -> Value | None:
        value = find(session)
        if isinstance(value, Map):
            return value.items[i][1] if i < len(value.items) else None
        return value.items[i] if isinstance(value, Items) and i < len(value.items) else None

    def made(session: Session, view: View, start: int, count: int) -> tuple[Item, ...]:
        value = find(session)
        members = []
        for i in range(start, start + count):
            item = one(session, i)
            if item is None:
                break
            name = f"[{_key(value.items[i][0])}]" if isinstance(value, Map) else f"[{i}]"
            text = f"{expression}[{i}]" if expression else ""
            members.append(value_item(name, item, _member(one, i), text, view))
        return tuple(members)

    return made


def _member(one: Callable[[Session, int], Value | None], i: int) -> Find:
    return lambda session: one(session, i)


def _key(key: int | bytes) -> str:
    return quote(key.decode("utf-8", "backslashreplace")) if isinstance(key, bytes) else str(key)


def _item_of_optional(find: Find, session: Session, view: View) -> tuple[Item, ...]:
    def item(now: Session) -> Value | None:
        value = find(now)
        return value.item if isinstance(value, Optional) else None

    content = item(session)
    return () if content is None else (value_item("item", content, item, "", view),)


# ---- Tensors of a model ---------------------------------------------------------------------------

_COPIED: Final = 1 << 16
_COUNTED: Final = (1 << 31) - 1


def tensor_item(session: Session, instance: Instance, expression: str, view: View, name: str = "") -> Item:
    """A tensor in a run of its graph. name: where it is shown by another name than its own."""
    tensor = session.model.tensors[instance.tensor]
    value = value_of_instance(session.history, session.index, instance)
    line = session.listing.of_name.get(instance.tensor)
    shown = shown_name(name or tensor.name)
    if value is None:
        stated = "" if tensor.declared is None else inert(type_text(tensor.declared))
        told = Parts(lambda now, how: _producing(now, instance))
        return Item(shown, f"{NONE} (no value yet)", stated, expression, tensor=instance, line=line, inside=told)
    item = value_item(shown, value, lambda now: value_of_instance(now.history, now.index, instance), expression, view)
    own = item.inside or Parts(lambda *_: ())
    told = Parts(
        lambda now, how: (*_told(now, instance, how), *own.named(now, how)), min(own.count, _COUNTED), own.numbered
    )
    return replace(item, tensor=instance, line=line, inside=told, bytes=True)


def here(session: Session, t: TensorId) -> Instance:
    """A tensor in the run of its graph that goes on."""
    return Instance(t, tensor_path(session.state, t))


def _told(session: Session, instance: Instance, view: View) -> tuple[Item, ...]:
    """Facts about a tensor: shape, statistics, who writes and reads it, where it lies, its digest."""
    value = value_of_instance(session.history, session.index, instance)
    facts: list[Item] = []
    if isinstance(value, np.ndarray):
        facts.append(Item("shape", str(list(value.shape)), kind="virtual"))
        facts.append(_statistics(instance, value, view))
    facts += _producing(session, instance)
    at = region_of(session.state, instance.tensor)
    if at is not None and not at.freed and tensor_path(session.state, instance.tensor) == instance.path:
        facts.append(Item("address", f"0x{at.offset:x}, {at.length} bytes", kind="virtual"))
    if value is not None:
        facts.append(_digest(instance, value, view))
    return tuple(facts)


def _statistics(instance: Instance, value: Array, view: View) -> Item:
    def rows(session: Session, how: View) -> tuple[Item, ...]:
        value = value_of_instance(session.history, session.index, instance)
        numbers = _numbers(value, how) if isinstance(value, np.ndarray) else ()
        return tuple(Item(name, text, kind="virtual") for name, text in numbers)

    if value.size > view.effort:
        return Item("statistics", f"of {value.size} elements", kind="virtual", inside=Parts(rows))
    text = " ".join(f"{name}={number}" for name, number in _numbers(value, view) if name != "elements")
    return Item("statistics", text or f"{value.size} elements", kind="virtual", inside=Parts(rows))


def _numbers(value: Array, view: View) -> tuple[tuple[str, str], ...]:
    """The statistics of a tensor, the least and the greatest element to the last bit."""
    ends = extremes(value)
    exact = {} if ends is None else dict(zip(("min", "max"), (element(it, view) for it in ends), strict=True))
    return tuple((name, exact.get(name, text)) for name, text in statistics(value))


def _digest(instance: Instance, value: Value, view: View) -> Item:
    def made(session: Session, _view: View) -> tuple[Item, ...]:
        value = value_of_instance(session.history, session.index, instance)
        return (Item("digest", "" if value is None else f"sha256 {digest_of(value)}", kind="virtual"),)

    if isinstance(value, np.ndarray) and value.size > view.effort:
        return Item("digest", "sha256 of the bytes", kind="virtual", lazy=True, inside=Parts(made))
    return Item("digest", f"sha256 {digest_of(value)}", kind="virtual")


def _producing(session: Session, instance: Instance) -> tuple[Item, ...]:
    program, listing = session.state.program, session.listing
    n = program.producers.get(instance.tensor)
    written = written_at(session.history, session.index, instance)
    if n is None:
        graph = program.model.graphs[program.model.tensors[instance.tensor].graph]
        what = "input" if instance.tensor in graph.inputs else "initializer"
        producer = Item("producer", f"none: {what} of {inert(graph.path)}", kind="virtual",
                        line=listing.of_name.get(instance.tensor))  # fmt: skip
    else:
        came = None if written is None else session.history.at(written).came
        path = program.model.nodes[n].path if came is None else came.path
        when = "" if written is None else f", step {written}"
        when += f", {came.supplied}: by no definition" if came is not None and came.supplied else ""
        line = listing.of_node.get(n if came is None else came.node)
        producer = Item("producer", f"{path}{when}", kind="virtual", line=line)
    readers = program.readers.get(instance.tensor, ())
    inside = Parts(lambda now, view: node_items(now, readers)) if readers else None
    return producer, Item("consumers", _reading(session, instance.tensor, readers), kind="virtual", inside=inside)


def _reading(session: Session, t: TensorId, readers: Sequence[NodeId]) -> str:
    """Who reads a tensor: how many nodes, of which operators, and whoever gets the outputs of its graph."""
    model = session.model
    names = ", ".join(model.nodes[it].op_type for it in readers[:SMALL])
    reading = [f"{len(readers)}: {inert(names)}{', ...' if len(readers) > SMALL else ''}"] if readers else []
    graph = model.graphs[model.tensors[t].graph]
    reading += [f"output of {graph.path}"] if t in graph.outputs else []
    return "; ".join(reading) or "none"


# ---- Nodes ------------------------------------------------------------------------------------


def node_items(session: Session, nodes: Sequence[NodeId]) -> tuple[Item, ...]:
    """Nodes with their lines, or ranges of them."""
    return many(session, nodes, lambda now, n, _: node_item(now, n), lambda now, n: now.model.nodes[n].op_type, View())


def node_item(session: Session, n: NodeId, name: str = "") -> Item:
    """A node."""
    node = session.model.nodes[n]
    line = session.listing.of_node.get(n)
    text = "" if line is None else session.listing.lines[line - 1].text.strip()
    operator = None if node.version is None else (operator_name(node.domain, node.op_type), node.version)
    return Item(name or node.path, text, kind="virtual", line=line, about=line, operator=operator)


# ---- Expressions ------------------------------------------------------------------------------


def expression_item(session: Session, text: str, view: View) -> Item:
    """The value of an expression, in the frame that the session looks at; a tensor without a value too. Raises
    Refused."""
    asked, frame = expression(session, text), session.frame
    if isinstance(asked, Name | PathName):
        instance = instance_of(asked, context(session))
        item = tensor_item(session, instance, text.strip(), view)
        if instance.path == tensor_path(session.state, instance.tensor):
            return item
        return replace(item, value=f"{item.value} (of {instance.path})", editable=False)
    value = evaluate(asked, context(session))
    if isinstance(value, str):
        return Item(shown_name(text), quote(value), "text", text.strip())
    sliced = isinstance(asked, Sliced)

    def find(now: Session) -> Value | None:
        again = evaluate(asked, Context(now.history, now.index, frame)) if sliced else value
        return None if isinstance(again, str) else again

    item = value_item(shown_name(text), value, find, text.strip() if sliced else "", view)
    return replace(item, editable=item.editable and sliced)


def full_text(session: Session, text: str, view: View) -> str:
    """All of what an expression gives, row by row, up to 65,536 elements. Raises Refused."""
    value = evaluate(expression(session, text), context(session))
    if isinstance(value, str):
        return value
    hexadecimal = "a" if isinstance(value, np.ndarray) and is_float(value.dtype) else "x"
    return "\n".join(value_lines(value, hexadecimal if view.hexadecimal else "d", _COPIED))
