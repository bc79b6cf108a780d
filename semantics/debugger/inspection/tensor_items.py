"""Tensors of a model as items: the value, what is told about it, its elements; expressions; nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from sonnx.spec.terminal.inert import inert

from ...machine.inputs import type_text
from ...machine.state import place_of, tensor_path
from ...machine.trace.replay import digest_of
from ...model.elements import is_float
from ...model.graph import NodeId, TensorId
from ...model.path import quote
from ...model.values import Array, Value
from ..display.texts import statistics, value_lines
from ..expressions.evaluating import Context, evaluate, instance_of
from ..expressions.parsing import Name, PathName, Sliced
from ..session.command import context, expression
from ..session.session import Session
from ..timeline.names import Instance, value_of_instance, written_at
from .items import NONE, SMALL, Item, Parts, View, many, shown_name
from .value_items import element, extremes, value_item

_COPIED: Final = 1 << 16
_COUNTED: Final = (1 << 31) - 1


# ---- Tensors ----------------------------------------------------------------------------------


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
    found = value_item(shown, value, lambda now: value_of_instance(now.history, now.index, instance), expression, view)
    own = found.inside or Parts(lambda *_: ())
    told = Parts(
        lambda now, how: (*_told(now, instance, how), *own.named(now, how)), min(own.count, _COUNTED), own.numbered
    )
    return replace(found, tensor=instance, line=line, inside=told, bytes=True)


def here(session: Session, t: TensorId) -> Instance:
    """A tensor in the run of its graph that goes on."""
    return Instance(t, tensor_path(session.state, t))


def _told(session: Session, instance: Instance, view: View) -> tuple[Item, ...]:
    """What is told about a tensor: shape, statistics, who writes and reads it, where it lies, its digest."""
    value = value_of_instance(session.history, session.index, instance)
    found: list[Item] = []
    if isinstance(value, np.ndarray):
        found.append(Item("shape", str(list(value.shape)), kind="virtual"))
        found.append(_statistics(instance, value, view))
    found += _producing(session, instance)
    at = place_of(session.state, instance.tensor)
    if at is not None and not at.freed and tensor_path(session.state, instance.tensor) == instance.path:
        found.append(Item("address", f"0x{at.offset:x}, {at.length} bytes", kind="virtual"))
    if value is not None:
        found.append(_digest(instance, value, view))
    return tuple(found)


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
        line = listing.of_node.get(n if came is None else came.node)
        producer = Item("producer", f"{path}{when}", kind="virtual", line=line)
    readers = program.readers.get(instance.tensor, ())
    inside = Parts(lambda now, view: node_items(now, readers)) if readers else None
    return producer, Item("consumers", _reading(session, instance.tensor, readers), kind="virtual", inside=inside)


def _reading(session: Session, t: TensorId, readers: Sequence[NodeId]) -> str:
    """Who reads a tensor: how many nodes, of which operators, and whoever gets the outputs of its graph."""
    model = session.model
    names = ", ".join(model.nodes[it].op_type for it in readers[:SMALL])
    found = [f"{len(readers)}: {inert(names)}{', ...' if len(readers) > SMALL else ''}"] if readers else []
    graph = model.graphs[model.tensors[t].graph]
    found += [f"output of {graph.path}"] if t in graph.outputs else []
    return "; ".join(found) or "none"


# ---- Nodes ------------------------------------------------------------------------------------


def node_items(session: Session, nodes: Sequence[NodeId]) -> tuple[Item, ...]:
    """Nodes with their lines, or ranges of them."""
    return many(session, nodes, lambda now, n, _: node_item(now, n), lambda now, n: now.model.nodes[n].op_type, View())


def node_item(session: Session, n: NodeId, name: str = "") -> Item:
    """A node."""
    node = session.model.nodes[n]
    line = session.listing.of_node.get(n)
    text = "" if line is None else session.listing.lines[line - 1].text.strip()
    operator = None if node.version is None or node.domain not in ("", "ai.onnx") else (node.op_type, node.version)
    return Item(name or node.path, text, kind="virtual", line=line, about=line, operator=operator)


# ---- Expressions ------------------------------------------------------------------------------


def expression_item(session: Session, text: str, view: View) -> Item:
    """What an expression gives, in the frame that the session looks at; a tensor without a value too. Raises
    Refused."""
    found, frame = expression(session, text), session.frame
    if isinstance(found, Name | PathName):
        instance = instance_of(found, context(session))
        item = tensor_item(session, instance, text.strip(), view)
        if instance.path == tensor_path(session.state, instance.tensor):
            return item
        return replace(item, value=f"{item.value} (of {instance.path})", editable=False)
    value = evaluate(found, context(session))
    if isinstance(value, str):
        return Item(shown_name(text), quote(value), "text", text.strip())
    sliced = isinstance(found, Sliced)

    def find(now: Session) -> Value | None:
        again = evaluate(found, Context(now.history, now.index, frame)) if sliced else value
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
