"""Recorded runs as references: where a run, or another recorded one, first gives another value."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import ModelError
from ...machine.memory import Uninitialised, read
from ...machine.regions import Region, load_value
from ...machine.state import tensor_path
from ...machine.trace.format import Json, model_digest, reference_from_json
from ...machine.trace.format import Reference as Written
from ...machine.trace.replay import Values, read_trace
from ...model.differences import first_of, unequal
from ...model.elements import is_float
from ...model.graph import Model
from ...model.path import quote
from ...model.values import Value
from ..display.answers import Hit
from ..display.texts import element_text, type_of_value
from ..expressions.evaluating import FUNCTIONS
from ..timeline.history import Moment, Refused


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
            for tensor, found in _entries(line.get("writes")):
                written[tensor] = found
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
        found = reference.written.get(path)
        if found is None or (found.sha256 == _digest(moment, where) and found.type == where.type):
            continue
        difference = differing(path, came.path, load_value(moment.state.store, where), _load(reference, found))
        text = (
            f"{came.path} writes {path}{_at(difference.element)} = {difference.one}, the recorded run has"
            f" {difference.other} ({difference.count} of {difference.size} elements differ)"
        )
        return Hit(number, "catch", text, path, difference.element, difference.other, difference.one)
    return None


def first_difference(one: Reference, other: Reference) -> Difference | None:
    """The first write of a recorded run, in its order, of which another one has other bits."""
    for path, found in one.written.items():
        there = other.written.get(path)
        if there is not None and (there.sha256, there.type) != (found.sha256, found.type):
            return differing(path, one.nodes[path], _load(one, found), _load(other, there))
    return None


def differing(path: str, node: str, one: Value, other: Value) -> Difference:
    """How two values differ that are not the same bits."""
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


def _load(reference: Reference, found: Written) -> Value:
    try:
        with Values(reference.values) as values:
            return values.value(found)
    except (ModelError, OSError) as error:
        raise Refused(str(error)) from None


def _entries(entries: Json) -> list[tuple[str, Written]]:
    found = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            found.append((str(entry.get("tensor")), reference_from_json(entry)))
    return found
