"""One table for two models: every value once, whichever model computes it.

Values are numbered. Two values with one number are equal in every run in which both come about: an input is itself;
stored tensors are one if type, shape and bytes are; results of an operator are one if the definition, the attributes
(defaults included, whether they are spelled or not), the arguments, the outputs that are named and the bodies are. The
inputs of a body are named by how deep it lies, so that bodies that differ in names are one. What an operator leaves
open or draws is never one with anything: such an application stands `alone`.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np
from sonnx.semantics.model.graph import Node, ValueType
from sonnx.semantics.model.schemas import operator_name, reached
from sonnx.semantics.model.values import Array
from sonnx.semantics.operators.application import AttributeData
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.library import specification

from ..matching.searching import usual_attributes

ValueId = int
ApplicationId = int


@dataclass(frozen=True, slots=True)
class Given:
    """An input. depth: 0 of the models, else of a body that lies so deep among those that have inputs."""

    depth: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A stored tensor."""

    array: Array


@dataclass(frozen=True, slots=True)
class Result:
    """An output of an application."""

    application: ApplicationId
    position: int


Declared = tuple[str, str, tuple[int, ...] | None] | None
"""What counts of the declared type of an output of a body: kind, element type, sizes, where an open one is 0."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body. attribute: that holds it. inputs: how many it has. declared: of its outputs, what they are where it does
    not run. demands: the applications in it that may get stuck."""

    attribute: str
    inputs: int
    outputs: tuple[ValueId, ...]
    declared: tuple[Declared, ...]
    demands: frozenset[ApplicationId]


@dataclass(frozen=True, slots=True)
class Applied:
    """An application. operator: None where the specification has no meaning for it. name, version: of the operator as
    the specification calls it, and a version that its definition covers. attributes: with the defaults. outputs: by
    position, whether one is asked for. alone: 0, or a number that no other application has.
    untyped: 0, or the version that may not admit the types here, where it then gets stuck."""

    operator: CoreOperator | None
    name: str
    version: int
    attributes: Mapping[str, AttributeData]
    inputs: tuple[ValueId | None, ...]
    outputs: tuple[bool, ...]
    bodies: tuple[Body, ...] = ()
    alone: int = 0
    untyped: int = 0


@dataclass
class Table:
    """The values and applications so far. They are added, and never changed."""

    values: list[Given | Stored | Result] = field(default_factory=list)
    applications: list[Applied] = field(default_factory=list)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _stored: dict[Hashable, list[ValueId]] = field(default_factory=dict)
    _apart: int = 0

    def given(self, depth: int, name: str) -> ValueId:
        """The number of an input."""
        return self._value(Given(depth, name))

    def stored(self, array: Array) -> ValueId:
        """The number of a stored tensor; it is kept, and not copied where it is contiguous."""
        array = array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)
        alike = self._stored.setdefault(_print(array), [])
        for number in alike:
            other = self.values[number]
            if isinstance(other, Stored) and _same_bytes(array, other.array):
                return number
        self.values.append(Stored(array))
        alike.append(len(self.values) - 1)
        return len(self.values) - 1

    def apart(self) -> int:
        """A number that no application has yet."""
        self._apart += 1
        return self._apart

    def apply(self, application: Applied) -> ApplicationId:
        """The number of an application."""
        key = (
            application.name if application.operator is None else (application.name, application.operator.first),
            _control_version(application),
            self.attributes_key(application.attributes),
            application.inputs,
            application.outputs,
            application.bodies,
            application.alone,
            application.untyped,
        )
        if key not in self._numbers:
            self.applications.append(application)
            self._numbers[key] = len(self.applications) - 1
        return self._numbers[key]

    def result(self, application: ApplicationId, position: int) -> ValueId:
        """The number of an output of an application."""
        return self._value(Result(application, position))

    def results(self, application: ApplicationId) -> tuple[ValueId | None, ...]:
        """Those of its outputs that are asked for, by position."""
        asked = self.applications[application].outputs
        return tuple(self.result(application, k) if named else None for k, named in enumerate(asked))

    def array(self, value: ValueId | None) -> Array | None:
        """The elements of a stored tensor; None for another value."""
        node = None if value is None else self.values[value]
        return node.array if isinstance(node, Stored) else None

    def producer(self, value: ValueId) -> ApplicationId | None:
        """The application that gives a value."""
        node = self.values[value]
        return node.application if isinstance(node, Result) else None

    def _value(self, node: Given | Result) -> ValueId:
        if node not in self._numbers:
            self.values.append(node)
            self._numbers[node] = len(self.values) - 1
        return self._numbers[node]

    def attributes_key(self, attributes: Mapping[str, AttributeData]) -> Hashable:
        """Attributes as a key: equal where they are the same, bit for bit."""
        return tuple((name, self._datum_key(attributes[name])) for name in sorted(attributes))

    def _datum_key(self, item: object) -> Hashable:
        """Told apart by type too, and floats by their bits."""
        match item:
            case np.ndarray():
                return "tensor", self.stored(item)
            case float():
                return "float", struct.pack("<d", item)
            case tuple():
                return "list", tuple(self._datum_key(part) for part in item)
            case int() | str() | ValueType():
                return type(item).__name__, item
            case _:
                return "apart", self.apart()


# ---- Stored tensors ------------------------------------------------------------------------------

_ENDS: Final = 64  # so many bytes at each end of a tensor tell most tensors apart
_BLOCK: Final = 1 << 20


def _print(array: Array) -> Hashable:
    if array.dtype.hasobject:
        return array.dtype.str, array.shape, tuple(array.reshape(-1)[:4].tolist())
    flat = array.reshape(-1)
    count = max(1, _ENDS // array.dtype.itemsize)
    return array.dtype.name, array.shape, flat[:count].tobytes(), flat[-count:].tobytes()


def _same_bytes(one: Array, other: Array) -> bool:
    """True if two contiguous tensors of one type and shape have the same bytes."""
    if one.dtype.hasobject:
        return one.reshape(-1).tolist() == other.reshape(-1).tolist()
    word = np.uint64 if one.nbytes % 8 == 0 else np.uint8
    a, b = (it.reshape(-1).view(np.uint8).view(word) for it in (one, other))
    return all(np.array_equal(a[k : k + _BLOCK], b[k : k + _BLOCK]) for k in range(0, a.size, _BLOCK))


# ---- Nodes ---------------------------------------------------------------------------------------


def meaning_of(node: Node) -> CoreOperator | None:
    """The definition of a node's operator, None where the specification has none."""
    if node.version is None:
        return None
    return specification().meanings.at(operator_name(node.domain, node.op_type), node.version)


def full_attributes(name: str, version: int, stated: Mapping[str, AttributeData]) -> dict[str, AttributeData]:
    """The attributes with the defaults that the schema in force gives them."""
    return {**usual_attributes(name, version), **stated}


_OPEN: Final = frozenset({"arbitrary", "oneof"})


@cache
def leaves_open(operator: CoreOperator, asked: tuple[bool, ...]) -> bool:
    """True if the text of an operator comes, in whatever case, to what it leaves open, for an output asked for."""
    unasked = {
        port.name for port, named in zip(operator.outputs, asked, strict=False) if not named and port.mark != "*"
    }
    unasked |= {port.name for port in operator.outputs[len(asked) :]}
    needed = [it for it in operator.statements if it.name not in unasked]
    mentioned = {node.variable.name for it in needed for node in it.nodes() if node.variable is not None}
    needed = [it for it in operator.statements if it.name not in unasked - mentioned]
    return any(it.head == "fun" and it.name in _OPEN for it in reached(needed))


@cache
def indifferent(operator: CoreOperator) -> tuple[bool, ...]:
    """For each output whether the rest of the text is the same whether it is asked for or not: nothing says `given` of
    it, and the number of outputs counts nowhere."""
    asks = {
        node.variable.name
        for statement in operator.statements
        for node in statement.nodes()
        if node.head == "given" and node.variable is not None
    }
    listed = bool(operator.rule) or any(port.mark == "*" for port in operator.outputs)
    return tuple(not listed and port.name not in asks for port in operator.outputs)


def _control_version(application: Applied) -> int:
    """The version where the rules of part 3 look at it: Scan of 9 admits no negative axis, Scan of 11 does."""
    return application.version if application.name == "Scan" else 0
