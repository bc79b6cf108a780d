"""Breakpoints, watches and catches as data, and the moments of a timeline at which they are met."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...machine.memory import Uninitialised, read
from ...machine.phases import Again, Enter, Leave
from ...machine.regions import load_value
from ...machine.report import content
from ...machine.state import State, region_of, tensor_path
from ...model.graph import Model, TensorId
from ...model.path import quote
from ...model.values import Array, Value, identical
from ...operators.application import Stuck
from ..display.answers import Hit
from ..display.texts import element_text, value_lines
from ..expressions.evaluating import Context, evaluate, holds
from ..expressions.parsing import Expression, parse
from ..timeline.history import History, Moment, Refused, base, is_end_of_body, levels, next_path
from ..timeline.names import Instance, Nodes, value_of_instance
from .faults import Fault, faults
from .reference import Reference, divergence

_COUNT: Final = re.compile(r"(==|=|>=|<=|>|<|%)?\s*([0-9]{1,15})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Count:
    """relation: ==, >=, <=, >, < or %: every so many times. Occurrences are counted from 1 on the timeline."""

    relation: str
    number: int

    def __str__(self) -> str:
        return f"{'' if self.relation == '==' else self.relation}{self.number}"

    def admits(self, count: int) -> bool:
        """True where that occurrence is one of them."""
        match self.relation:
            case ">=":
                return count >= self.number
            case "<=":
                return count <= self.number
            case ">":
                return count > self.number
            case "<":
                return count < self.number
            case "%":
                return count % self.number == 0
            case _:
                return count == self.number


def count_of(text: str) -> Count:
    """The count that a text says, such as 3, >=3 or %3. Raises Refused."""
    found = _COUNT.fullmatch(text.strip())
    if found is None or int(found[2]) < 1:
        raise Refused(f"{quote(text)} is no count of hits: say 3, >=3, >3, <=3, <3 or %3")
    relation = found[1] or "=="
    return Count("==" if relation == "=" else relation, int(found[2]))


# ---- Log points -----------------------------------------------------------------------------------


_ELEMENTS: Final = 16
_LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class Message:
    """text: as it was written. parts: texts and expressions in order."""

    text: str
    parts: tuple[str | Expression, ...]


def message_of(text: str) -> Message:
    """The message that a text is. Raises Refused for braces that do not match and what is no expression."""
    if len(text) > _LONGEST:
        raise Refused(f"the message of a log point has at most {_LONGEST} characters")
    parts: list[str | Expression] = []
    said, at = "", 0
    while at < len(text):
        if text[at : at + 2] in ("{{", "}}"):
            said, at = said + text[at], at + 2
        elif text[at] == "{":
            end = text.find("}", at)
            if end < 0:
                raise Refused("a brace is not closed: write {expression}, or {{ for a brace")
            parts += [said, parse(text[at + 1 : end])]
            said, at = "", end + 1
        elif text[at] == "}":
            raise Refused("a brace is not opened: write {expression}, or }} for a brace")
        else:
            said, at = said + text[at], at + 1
    return Message(text, tuple(part for part in (*parts, said) if part != ""))


def filled(message: Message, context: Context) -> str:
    """The message at a moment; an expression without a value says why in its place."""
    return "".join(part if isinstance(part, str) else _value(part, context) for part in message.parts)


def _value(expression: Expression, context: Context) -> str:
    try:
        value = evaluate(expression, context)
    except Refused as refused:
        return f"<{refused.message}>"
    return value if isinstance(value, str) else " ".join(value_lines(value, limit=_ELEMENTS))


# ---- Stops ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Stop before one of some nodes fires. hit: only at these occurrences on the timeline.

    log: what is said in place of standing still.
    """

    number: int
    text: str
    at: Nodes
    condition: Expression | None = None
    hit: Count | None = None
    once: bool = False
    enabled: bool = True
    log: Message | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Stop where a tensor or bytes are read, written or changed (`access`).

    tensor: which one, in any run of its graph where path is "". element: selected positions or slices. bytes: offset
    and length, in place of a tensor.
    """

    number: int
    text: str
    access: str
    tensor: TensorId | None = None
    path: str = ""
    element: tuple[int | slice, ...] | None = None
    bytes: tuple[int, int] | None = None
    condition: Expression | None = None
    hit: Count | None = None
    once: bool = False
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Catch:
    """Stop where something happens: nan, inf, overflow, subnormal, precondition, undefined, divergence.

    of: only at these nodes. reference: the recorded run, for divergence. condition: as it was before the node fired.
    """

    number: int
    text: str
    what: str
    of: Nodes | None = None
    reference: Reference | None = None
    condition: Expression | None = None
    once: bool = False
    enabled: bool = True


Stop = Breakpoint | Watch | Catch


def met(history: History, stops: Iterable[Stop], index: int, *, forward: bool) -> tuple[Hit, ...]:
    """The stops that are met on arriving at a moment, forward from the one before it or back from the one after it."""
    found: list[Hit] = []
    for stop in stops:
        if not stop.enabled:
            continue
        end = index if forward else index + 1
        try:
            if isinstance(stop, Breakpoint):
                hit = None if stop.log is not None else breakpoint_met(history, stop, index)
            else:
                hit = transition_met(history, stop, end) if end >= 1 else None
        except Refused as refused:
            message = f"the condition of stop {stop.number} cannot be decided at step {index}: {refused.message}"
            raise Refused(message, refused.candidates) from None
        found += [hit] if hit is not None else []
    return tuple(found)


def logged(history: History, stops: Iterable[Stop], index: int) -> tuple[str, ...]:
    """The messages of log points at a moment."""
    return tuple(
        filled(stop.log, Context(history, index))
        for stop in stops
        if isinstance(stop, Breakpoint) and stop.log is not None and stop.enabled
        if breakpoint_met(history, stop, index) is not None
    )


# ---- Breakpoints ------------------------------------------------------------------------------


def breakpoint_met(history: History, stop: Breakpoint, index: int) -> Hit | None:
    """The hit of a breakpoint at a moment; None where it is not met."""
    if not _reached(history, stop, index):
        return None
    if stop.hit is not None:
        count = history.occurrences((stop.at, stop.condition), lambda at: _reached(history, stop, at), index)
        if not stop.hit.admits(count):
            return None
    return Hit(stop.number, "breakpoint", stop.text)


def _reached(history: History, stop: Breakpoint, index: int) -> bool:
    moment = history.at(index)
    if moment.next is None or is_end_of_body(moment):
        return False
    if moment.next not in stop.at.nodes and not _called(history, stop, moment):
        return False
    if stop.at.path and not _of_run(moment, stop.at.path):
        return False
    return stop.condition is None or holds(stop.condition, Context(history, index))


def _called(history: History, stop: Breakpoint, moment: Moment) -> bool:
    """True where one of the calls begins here."""
    if not stop.at.calls:
        return False
    beginning = stop.at.calls.intersection(str(it) for it in levels(moment.state, moment.next))
    return bool(beginning.difference(str(it) for it in base(history, moment.index)))


def _of_run(moment: Moment, path: str) -> bool:
    return next_path(moment) == path


# ---- Watches and catches ----------------------------------------------------------------------


def transition_met(history: History, stop: Watch | Catch, end: int) -> Hit | None:
    """The hit of a watch or catch by the transition that leads to the moment `end`; None where it is not met."""
    moment = history.reach(end)
    if moment is None or moment.came is None:
        return None
    if isinstance(stop, Catch):
        return _caught(history, stop, moment)
    hit = _watched(history, stop, moment)
    if hit is None or stop.hit is None:
        return hit
    key = (stop.text, stop.access, stop.condition)
    count = history.occurrences(key, lambda at: _occurs(history, stop, at), end)
    return hit if stop.hit.admits(count) else None


def _occurs(history: History, stop: Watch, end: int) -> bool:
    return end > 0 and _watched(history, stop, history.at(end)) is not None


def _watched(history: History, stop: Watch, moment: Moment) -> Hit | None:
    if stop.bytes is not None:
        return _bytes_met(history, stop, moment, stop.bytes)
    hit = _written(history, stop, moment) if stop.access in ("write", "change", "access") else None
    if hit is None and stop.access in ("read", "access"):
        hit = _read(history, stop, moment)
    return hit


def _written(history: History, stop: Watch, moment: Moment) -> Hit | None:
    came, t = moment.came, stop.tensor
    if came is None or t is None or t not in came.tensors:
        return None
    path = tensor_path(moment.state, t)
    if stop.path and path != stop.path:
        return None
    new = value_of_instance(history, moment.index, Instance(t, path))
    old = _before(history, t, moment.index)
    if stop.element is not None and isinstance(new, np.ndarray):
        if not _selects(stop.element, new):
            return None
        new = np.asarray(new[stop.element], new.dtype)
        old = (
            np.asarray(old[stop.element], old.dtype)
            if isinstance(old, np.ndarray) and _selects(stop.element, old)
            else None
        )
    if stop.access == "change" and (new is None or identical(old, new)):
        return None
    if stop.condition is not None and not holds(stop.condition, Context(history, moment.index, old=old, new=new)):
        return None
    sentence = f"{came.path} writes {path}"
    return Hit(stop.number, "watch", sentence, path, old=_short(old), new=_short(new))


def _before(history: History, t: TensorId, index: int) -> Value | None:
    """The value that a tensor had before the write which led to a moment, in whatever run of its graph."""
    state = history.at(next(history.writes(t, index - 1), 0)).state
    where = region_of(state, t)
    return None if where is None else load_value(state.store, where)


def _selects(element: tuple[int | slice, ...], value: Array) -> bool:
    return len(element) == value.ndim and all(
        isinstance(it, slice) or it < size for it, size in zip(element, value.shape, strict=True)
    )


def _read(history: History, stop: Watch, moment: Moment) -> Hit | None:
    came, t = moment.came, stop.tensor
    if came is None or t is None or t not in tensors_read(history.at(moment.index - 1).state, moment):
        return None
    path = tensor_path(history.at(moment.index - 1).state, t)
    if stop.path and path != stop.path:
        return None
    value = value_of_instance(history, moment.index - 1, Instance(t, path))
    if stop.element is not None and isinstance(value, np.ndarray) and _selects(stop.element, value):
        value = np.asarray(value[stop.element], value.dtype)
    if stop.condition is not None and not holds(stop.condition, Context(history, moment.index, old=value, new=value)):
        return None
    return Hit(stop.number, "watch", f"{came.path} reads {path}", path, new=_short(value))


def tensors_read(before: State, moment: Moment) -> tuple[TensorId, ...]:
    """The tensors that the transition to a moment reads: inputs of the node, and outputs of the body that ends."""
    came = moment.came
    if came is None:
        return ()
    model = before.program.model
    inputs = tuple(t for t in model.nodes[came.node].inputs if t is not None)
    if isinstance(came.change, Again | Leave):
        return (*model.graphs[before.frame.graph].outputs, *inputs)
    return inputs if not isinstance(came.change, Enter) else before.program.reads[came.node]


def _bytes_met(history: History, stop: Watch, moment: Moment, wanted: tuple[int, int]) -> Hit | None:
    came, (offset, length) = moment.came, wanted
    if came is None:
        return None
    before = history.at(moment.index - 1).state
    what = ""
    if stop.access == "read":
        for t in tensors_read(before, moment):
            where = region_of(before, t)
            if where is not None and where.offset < offset + length and offset < where.offset + where.length:
                what = f"{came.path} reads {tensor_path(before, t)}"
    else:
        for t, where in zip(came.tensors, came.places, strict=True):
            if where.offset < offset + length and offset < where.offset + where.length:
                what = f"{came.path} writes {tensor_path(moment.state, t)}"
    if not what:
        return None
    old, new = bytes_text(before, offset, length), bytes_text(moment.state, offset, length)
    if stop.access == "change" and old == new:
        return None
    return Hit(stop.number, "watch", f"{what} at byte {offset}", old=old, new=new)


def bytes_text(state: State, offset: int, length: int) -> str:
    """Bytes in hexadecimal, ?? for those that were never written; at most 16 of them."""
    shown = []
    for at in range(offset, offset + min(length, 16)):
        data = read(state.store.memory, at, 1) if at < state.store.memory.size else Uninitialised(at)
        shown.append("??" if isinstance(data, Uninitialised) else bytes(data).hex())
    return " ".join(shown) + (" ..." if length > 16 else "")


def _caught(history: History, stop: Catch, moment: Moment) -> Hit | None:
    came = moment.came
    if came is None or (stop.of is not None and came.node not in stop.of.nodes):
        return None
    if stop.condition is not None and not holds(stop.condition, Context(history, moment.index - 1)):
        return None
    if stop.what == "divergence" and stop.reference is not None:
        return divergence(stop.reference, moment, stop.number)
    found = next(iter(faults(history, moment, stop.what)), None)
    return None if found is None else caught(stop.number, found, came.path)


def caught(number: int, fault: Fault, node: str) -> Hit:
    """The hit of a fault that a node gave rise to."""
    shown = "" if fault.value is None else element_text(fault.value)
    at = "" if fault.element is None else str(list(fault.element))
    what = f"{fault.count} of {fault.size} elements" if fault.count > 1 else "one element"
    text = f"{node} writes {fault.path}{at} = {shown}: {fault.what} ({what})"
    return Hit(number, "catch", text, fault.path, fault.element, new=shown)


def stuck_hit(stuck: Stuck, number: int) -> Hit:
    """The hit of a precondition that fails."""
    return Hit(number, "catch", f"{stuck.message} ({stuck.rule}: {stuck.premise})")


def _short(value: Value | None) -> str:
    return "" if value is None else content(value)


def describe(stop: Stop) -> tuple[str, str, str]:
    """Kind, what it is set on, and its condition, for the table of stops."""
    if isinstance(stop, Breakpoint):
        return "log" if stop.log is not None else "tbreak" if stop.once else "break", stop.text, _extra(stop)
    if isinstance(stop, Watch):
        return f"watch {stop.access}", stop.text, _extra(stop)
    return "catch", stop.what if stop.of is None else f"{stop.what} at {quote(stop.of.text)}", ""


def watched(model: Model, stop: Watch) -> str:
    """The target of a watch, said so that it means the same at every position."""
    if stop.tensor is None:
        return stop.text
    path = stop.path or model.tensors[stop.tensor].path
    element = "" if stop.element is None else f"[{', '.join(map(_subscript, stop.element))}]"
    return stop.text if "`" in path else f"`{path}`{element}"


def _subscript(it: int | slice) -> str:
    if isinstance(it, int):
        return str(it)
    step = "" if it.step is None else f":{it.step}"
    return f"{'' if it.start is None else it.start}:{'' if it.stop is None else it.stop}{step}"


def _extra(stop: Breakpoint | Watch) -> str:
    count = "" if stop.hit is None else f"hit {stop.hit}"
    if isinstance(stop, Breakpoint) and stop.log is not None:
        return f"{count} says {quote(stop.log.text)}".strip()
    return count
