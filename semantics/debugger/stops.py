"""Breakpoints, watches and catches as data: conditions, counts, faults, log points, and references to compare with.

It decides whether a moment is one to stop at, and moves nothing.
"""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..machine.memory import Region, Uninitialised, load_value, read
from ..machine.phases import Again, Apply, Enter, Leave
from ..machine.report import content
from ..machine.state import State, region_of, tensor_path, value_of
from ..machine.trace.format import Json, model_digest, reference_from_json
from ..machine.trace.format import Reference as Written
from ..machine.trace.replay import Values, read_trace
from ..model.differences import first_of, unequal
from ..model.elements import is_float
from ..model.graph import Model, TensorId
from ..model.path import quote
from ..model.values import Array, Value, identical
from ..operators.application import Stuck
from .against.judging import FAULTS, Comparison, Held, held
from .display.answers import Hit
from .display.texts import element_text, subnormal, type_of_value, value_lines
from .expressions import FUNCTIONS, Context, Expression, evaluate, holds, parse
from .timeline.history import History, Moment, Refused, Transition, base, is_end_of_body, levels, next_path
from .timeline.names import Instance, Nodes, lies_in, value_of_instance

KINDS: Final = ("nan", "inf", "overflow", "subnormal", "precondition", "undefined", "divergence")
"""Faults to catch. overflow: an infinity of finite inputs. precondition: a requirement fails, so the run is stuck.
undefined: the text leaves an element open. divergence: another value than a recorded run has."""
SENTENCES: Final = {
    "nan": "not a number",
    "inf": "an infinity",
    "overflow": "an infinity of finite inputs",
    "subnormal": "a subnormal number",
    "undefined": "the text leaves it open",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """path, element, value: where it is met first, in row-major order. count: of how many elements, of `size`."""

    what: str
    path: str
    element: tuple[int, ...] | None
    value: Array | None
    count: int
    size: int


def faults(history: History, moment: Moment, what: str) -> Iterator[Fault]:
    """The faults of a kind that the transition to a moment gave rise to, one for each tensor that it wrote."""
    came = moment.came
    if came is None or what in ("precondition", "divergence"):
        return
    if what == "undefined":
        yield from _open(history, moment)
        return
    finite: bool | None = None
    for t, where in zip(came.tensors, came.places, strict=True):
        if where.type.kind != "tensor" or not where.length:
            continue
        value = load_value(moment.state.store, where)
        if not isinstance(value, np.ndarray) or value.dtype == object:
            continue
        mask = mask_of(value, what)
        if mask is None or not mask.any():
            continue
        if what == "overflow":
            finite = _finite_inputs(history, moment) if finite is None else finite
            if not finite:
                return
        yield _fault(what, tensor_path(moment.state, t), value, mask)


def mask_of(value: Array, what: str) -> NDArray[np.bool_] | None:
    """Which elements have a fault that can be seen in the value; None where the type has none of them."""
    if value.dtype.kind == "c":
        return np.isnan(value) if what == "nan" else np.isinf(value) if what in ("inf", "overflow") else None
    if not is_float(value.dtype):
        return None
    match what:
        case "nan":
            return np.asarray(np.isnan(value), np.bool_)
        case "inf" | "overflow":
            return np.asarray(np.isinf(value), np.bool_)
        case _:
            return subnormal(value)


def _fault(what: str, path: str, value: Array, mask: NDArray[np.bool_]) -> Fault:
    element = first_of(mask)
    return Fault(SENTENCES[what], path, element, np.asarray(value[element], value.dtype), int(mask.sum()), mask.size)


def _finite_inputs(history: History, moment: Moment) -> bool:
    if moment.came is None:
        return False
    before = history.at(moment.index - 1).state
    for t in before.program.reads[moment.came.node]:
        value = value_of(before, t)
        if isinstance(value, np.ndarray) and is_float(value.dtype) and not np.isfinite(value).all():
            return False
    return True


def _reads(history: History, moment: Moment, what: str) -> bool:
    """True where the transition to a moment has read a value with the fault."""
    before = history.at(moment.index - 1).state
    values = (value_of(before, t) for t in tensors_read(before, moment))
    masks = (mask_of(it, what) for it in values if isinstance(it, np.ndarray) and it.dtype != object)
    return any(mask is not None and bool(mask.any()) for mask in masks)


def _open(history: History, moment: Moment) -> Iterator[Fault]:
    if moment.came is None or not moment.came.open:
        return
    for phase in history.phases(moment.index - 1):
        if isinstance(phase, Apply):
            for t, value, mask in zip(phase.tensors, phase.values, phase.free, strict=False):
                if mask is not None and mask.any() and isinstance(value, np.ndarray):
                    whole = np.broadcast_to(mask, value.shape)
                    yield _fault("undefined", tensor_path(moment.state, t), value, np.asarray(whole))


# ---- References -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reference:
    """A recorded run: what it wrote, by the path of the tensor, in order; and the file of the bytes."""

    text: str
    written: Mapping[str, Written]
    nodes: Mapping[str, str]
    values: Path


@dataclass(frozen=True, slots=True)
class Difference:
    """Two values of a tensor that are not the same bits. element: the first one in row-major order."""

    tensor: str
    node: str
    element: tuple[int, ...] | None
    one: str
    other: str
    count: int
    size: int
    ulp: str = ""


def open_reference(path: Path, model: Model | None) -> Reference:
    """The run that a trace has. Raises Refused for what is none, and for one of another model where one is given."""
    try:
        trace = read_trace(path)
        if model is not None and model_digest(model) != trace.head.get("model"):
            raise Refused(f"{quote(str(path))} is the trace of another model")
        written: dict[str, Written] = {}
        nodes: dict[str, str] = {}
        for line in trace.steps:
            for tensor, reference in _entries(line.get("writes")):
                written[tensor] = reference
                nodes[tensor] = str(line.get("node"))
    except (ModelError, OSError) as error:
        raise Refused(str(error)) from None
    if trace.broken:
        raise Refused(f"{quote(str(path))}: the chain is broken: {trace.broken}")
    return Reference(path.name, written, nodes, trace.values)


def divergence(reference: Reference, moment: Moment, number: int) -> Hit | None:
    """The first write of the transition to a moment that is not what the recorded run has."""
    came = moment.came
    if came is None:
        return None
    for t, where in zip(came.tensors, came.places, strict=True):
        path = tensor_path(moment.state, t)
        recorded = reference.written.get(path)
        if recorded is None or (recorded.sha256 == _digest(moment, where) and recorded.type == where.type):
            continue
        difference = differing(path, came.path, load_value(moment.state.store, where), _load(reference, recorded))
        text = (
            f"{came.path} writes {path}{_at(difference.element)} = {difference.one}, the recorded run has"
            f" {difference.other} ({difference.count} of {difference.size} elements differ)"
        )
        return Hit(number, "catch", text, path, difference.element, difference.other, difference.one)
    return None


def fault_against(history: History, comparison: Comparison, moment: Moment, number: int) -> Hit | None:
    """The first write of the transition to a moment that the comparison does not allow."""
    wrong = next((it for it in held(history, comparison, moment) if it.verdict in FAULTS), None)
    return None if wrong is None else hit_of(wrong, number)


def hit_of(wrong: Held, number: int) -> Hit:
    """The hit of a tensor that a comparison does not allow."""
    return Hit(number, "catch", wrong.sentence, wrong.tensor, wrong.element, wrong.there, wrong.here)


def first_difference(one: Reference, other: Reference) -> Difference | None:
    """The first write of a recorded run, in its order, of which another one has other bits."""
    for path, recorded in one.written.items():
        there = other.written.get(path)
        if there is not None and (there.sha256, there.type) != (recorded.sha256, recorded.type):
            return differing(path, one.nodes[path], _load(one, recorded), _load(other, there))
    return None


def differing(path: str, node: str, one: Value, other: Value) -> Difference:
    """The difference of two values that are not the same bits."""
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return Difference(path, node, None, type_of_value(one), type_of_value(other), 1, 1)
    if one.dtype != other.dtype or one.shape != other.shape:
        return Difference(path, node, None, type_of_value(one), type_of_value(other), 1, 1)
    mask = unequal(one, other)
    element = first_of(mask)
    a, b = (np.asarray(it[element], it.dtype) for it in (one, other))
    apart = FUNCTIONS["ulp"]((a, b)) if is_float(one.dtype) and one.dtype.itemsize in (1, 2, 4, 8) else ""
    ulp = element_text(apart) if isinstance(apart, np.ndarray) else ""
    return Difference(path, node, element, element_text(a), element_text(b), int(mask.sum()), mask.size, ulp)


def _at(element: tuple[int, ...] | None) -> str:
    return "" if element is None else str(list(element))


def _digest(moment: Moment, where: Region) -> str:
    data = read(moment.state.store.memory, where.offset, where.length)
    return "" if isinstance(data, Uninitialised) else hashlib.sha256(data).hexdigest()


def _load(reference: Reference, recorded: Written) -> Value:
    try:
        with Values(reference.values) as values:
            return values.value(recorded)
    except (ModelError, OSError) as error:
        raise Refused(str(error)) from None


def _entries(entries: Json) -> list[tuple[str, Written]]:
    references = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            references.append((str(entry.get("tensor")), reference_from_json(entry)))
    return references


# ---- Counts ---------------------------------------------------------------------------------------

_COUNT: Final = re.compile(r"(==|=|>=|<=|>|<|%)?\s*([0-9]{1,15})", re.ASCII)
_RELATIONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": operator.eq, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
    "%": lambda count, number: count % number == 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Count:
    """relation: ==, >=, <=, >, < or %: every so many times. Occurrences are counted from 1 on the timeline."""

    relation: str
    number: int

    def __str__(self) -> str:
        return f"{'' if self.relation == '==' else self.relation}{self.number}"

    def admits(self, count: int) -> bool:
        """True where that occurrence is one of them."""
        return _RELATIONS[self.relation](count, self.number)


def count_of(text: str) -> Count:
    """The count that a text says, such as 3, >=3 or %3. Raises Refused."""
    match = _COUNT.fullmatch(text.strip())
    if match is None or int(match[2]) < 1:
        raise Refused(f"{quote(text)} is no count of hits: say 3, >=3, >3, <=3, <3 or %3")
    relation = match[1] or "=="
    return Count("==" if relation == "=" else relation, int(match[2]))


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

    of: only at these nodes. everywhere: a nan or inf also where the node has read one. reference: the recorded run, or
    what the session is compared with, for divergence. condition: as it was before the node fired.
    """

    number: int
    text: str
    what: str
    of: Nodes | None = None
    reference: Reference | Comparison | None = None
    everywhere: bool = False
    condition: Expression | None = None
    once: bool = False
    enabled: bool = True


Stop = Breakpoint | Watch | Catch


def met(history: History, stops: Iterable[Stop], index: int, *, forward: bool) -> tuple[Hit, ...]:
    """The stops that are met on arriving at a moment, forward from the one before it or back from the one after it."""
    hits: list[Hit] = []
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
        hits += [hit] if hit is not None else []
    return tuple(hits)


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
    if not comes_next(history, stop.at, index):
        return False
    return stop.condition is None or holds(stop.condition, Context(history, index))


def comes_next(history: History, wanted: Nodes, index: int) -> bool:
    """True where one of the nodes comes next at a moment, one of the calls begins, or one of the graphs has come to its
    end."""
    moment = history.at(index)
    if moment.next is None or is_end_of_body(moment):
        frame = moment.state.frame
        here = frame.graph in wanted.returns and not (history.stuck is not None and index == history.last)
        return here and (not wanted.path or lies_in(frame.prefix.rstrip("/"), wanted.path))
    if moment.next not in wanted.nodes and not _called(history, wanted, moment):
        return False
    return not wanted.path or lies_in(next_path(moment), wanted.path)


def _called(history: History, wanted: Nodes, moment: Moment) -> bool:
    """True where one of the calls begins here."""
    if not wanted.calls:
        return False
    beginning = wanted.calls.intersection(str(it) for it in levels(moment.state, moment.next))
    return bool(beginning.difference(str(it) for it in base(history, moment.index)))


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
    count = history.occurrences(key, lambda at: at > 0 and _watched(history, stop, history.at(at)) is not None, end)
    return hit if stop.hit.admits(count) else None


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
    came = moment.came
    if came is None:
        return None
    before, after = history.at(moment.index - 1).state, moment.state
    shared, sentence = None, ""
    if stop.access != "read":
        for t, where in zip(came.tensors, came.places, strict=True):
            shared = _shared(where, wanted)
            if shared and (stop.access != "change" or _bytes_in(before, *shared) != _bytes_in(after, *shared)):
                sentence = f"{came.path} writes {tensor_path(after, t)}"
                break
    if not sentence and stop.access in ("read", "access"):
        for t in tensors_read(before, moment):
            at = region_of(before, t)
            shared = None if at is None else _shared(at, wanted)
            if shared:
                sentence, after = f"{came.path} reads {tensor_path(before, t)}", before
                break
    if not sentence or shared is None:
        return None
    if stop.condition is not None:
        old, new = _as_numbers(before, wanted), _as_numbers(after, wanted)
        if not holds(stop.condition, Context(history, moment.index, old=old, new=new)):
            return None
    shown, now = bytes_text(before, *shared), bytes_text(after, *shared)
    return Hit(stop.number, "watch", f"{sentence} at byte {shared[0]}", old=shown, new=now)


def _shared(where: Region, wanted: tuple[int, int]) -> tuple[int, int] | None:
    """The bytes that a region shares with a range, both given by offset and length; None where there are none."""
    first, end = max(where.offset, wanted[0]), min(where.offset + where.length, sum(wanted))
    return (first, end - first) if first < end else None


def _bytes_in(state: State, offset: int, length: int) -> bytes | None:
    """The bytes of a range of M; None where one of them has no value, or lies beyond M."""
    memory = state.store.memory
    data = read(memory, offset, length) if offset + length <= memory.size else Uninitialised(offset)
    return None if isinstance(data, Uninitialised) else bytes(data)


def _as_numbers(state: State, wanted: tuple[int, int]) -> Array | None:
    """A range of M as numbers of type uint8; None where a byte of it has no value."""
    data = _bytes_in(state, *wanted)
    return None if data is None else np.frombuffer(data, np.uint8)


def bytes_text(state: State, offset: int, length: int) -> str:
    """Bytes in hexadecimal, ?? for those that were never written; at most 16 of them."""
    shown = []
    for at in range(offset, offset + min(length, 16)):
        data = read(state.store.memory, at, 1) if at < state.store.memory.size else Uninitialised(at)
        shown.append("??" if isinstance(data, Uninitialised) else bytes(data).hex())
    return " ".join(shown) + (" ..." if length > 16 else "")


def _caught(history: History, stop: Catch, moment: Moment) -> Hit | None:
    came = moment.came
    if came is None or (stop.of is not None and not _of_these(history.model, stop.of, came)):
        return None
    if stop.condition is not None and not holds(stop.condition, Context(history, moment.index - 1)):
        return None
    if isinstance(stop.reference, Comparison):
        return fault_against(history, stop.reference, moment, stop.number)
    if stop.reference is not None:
        return divergence(stop.reference, moment, stop.number)
    fault = next(iter(faults(history, moment, stop.what)), None)
    if fault is not None and stop.what in ("nan", "inf") and not stop.everywhere and _reads(history, moment, stop.what):
        return None
    return None if fault is None else caught(stop.number, fault, came.path)


def _of_these(model: Model, wanted: Nodes, came: Transition) -> bool:
    """True where the node that fired is one of some nodes, or in one of some calls."""
    if came.node not in wanted.nodes and wanted.calls.isdisjoint(model.nodes[came.node].calls):
        return False
    return not wanted.path or lies_in(came.path, wanted.path)


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
    where = f" at {quote(stop.of.text)}" if stop.of is not None else ""
    plain = stop.what not in ("nan", "inf") or stop.of is not None
    return "catch", f"{stop.what}{where}", "" if plain else "everywhere" if stop.everywhere else "where generated"


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
