"""The search for the left side of a rule, and the decision of its conditions: only what is certain fires a rule."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import copysign, isfinite
from typing import Final

import numpy as np
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.formulas.terms import TRUE
from sonnx.semantics.model.elements import ELEMENT_TYPES
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.schemas import Schema, schema_of
from sonnx.semantics.model.values import Array
from sonnx.semantics.operators.application import Application, AttributeData, Outputs, data_of
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.operators.shapes.contents import HEADER, Content, Demand, Site
from sonnx.semantics.operators.shapes.node import demanded, examine, follow
from sonnx.semantics.operators.symbolic.expressions import evaluate
from sonnx.semantics.operators.symbolic.statements import compose, constant
from sonnx.semantics.operators.symbolic.values import Element, Scope, Value
from sonnx.spec.elaborate.core import Core, CoreOperator

from .patterns import Applied, Operand, Pattern, attribute_of
from .views import Node, Tensor, View

MOST_DATA = 1 << 16
"""Of a stored tensor with more elements no condition sees the values."""
LEAST = 1 << 10
"""So many bytes may a value take that is compared with a stored one, and as many as that one."""


@dataclass(frozen=True, slots=True)
class Held:
    """A stored tensor in the place of an application without inputs that would give just this value."""

    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Match:
    """A place where the left side of a rule stands, and its conditions hold.

    nodes: of each application; Held where a stored tensor stands for it, which is no node. ports: the tensors that the
    ports are, None for one that is left out. attributes: the values that are bound, None where there is none. swapped:
    the applications whose operands stand in the other order. assumed: what the rule assumes of values, in its words,
    which nobody has looked at. types: of the type variables.
    """

    pattern: Pattern
    nodes: tuple[Node | Held, ...]
    ports: Mapping[str, Tensor | None]
    attributes: Mapping[str, AttributeData | None]
    types: Mapping[str, str]
    swapped: frozenset[int] = frozenset()
    assumed: tuple[str, ...] = ()

    def results(self, view: View) -> tuple[Tensor | None, ...]:
        """The tensors that the results of the rule are."""
        return tuple(view.outputs(self.nodes[k])[output] for k, output in self.pattern.results)


@dataclass(slots=True)
class _Bindings:
    nodes: dict[int, Node | Held] = field(default_factory=dict)
    ports: dict[str, Tensor | None] = field(default_factory=dict)
    attributes: dict[str, AttributeData | None] = field(default_factory=dict)
    closed: list[tuple[Core, AttributeData | None]] = field(default_factory=list)
    swapped: frozenset[int] = frozenset()

    def copy(self) -> _Bindings:
        return _Bindings(
            dict(self.nodes), dict(self.ports), dict(self.attributes), list(self.closed), self.swapped
        )  # fmt: skip


def find(view: View, pattern: Pattern, root: Node, commuting: Collection[CoreOperator] = ()) -> Match | None:
    """The match of a pattern whose first result is one of a node, None without one. commuting: the operators whose
    operands may change places."""
    for bindings in _application(view, pattern, pattern.root, root, _Bindings(), commuting):
        if len(bindings.nodes) < len(pattern.applications):
            continue  # a result that hangs together with the first one by ports alone
        match = _decided(view, pattern, bindings)
        if match is not None:
            return match
    return None


def _application(
    view: View, pattern: Pattern, number: int, node: Node, bindings: _Bindings, commuting: Collection[CoreOperator]
) -> Iterator[_Bindings]:
    if number in bindings.nodes:
        if bindings.nodes[number] == node:
            yield bindings
        return
    wanted = pattern.applications[number]
    if view.operator(node) is not wanted.operator:
        return
    inner = bindings.copy()
    inner.nodes[number] = node
    if not _attributes(view, pattern, number, node, inner):
        return
    given = tuple(view.inputs(node))
    yield from _inputs(view, pattern, wanted.inputs, given, inner, commuting)
    if wanted.operator in commuting and len(given) == 2 and len(wanted.inputs) == 2:
        other = inner.copy()
        other.swapped |= {number}
        yield from _inputs(view, pattern, wanted.inputs, given[::-1], other, commuting)


def _inputs(
    view: View,
    pattern: Pattern,
    wanted: tuple[Operand | None, ...],
    given: tuple[Tensor | None, ...],
    bindings: _Bindings,
    commuting: Collection[CoreOperator],
) -> Iterator[_Bindings]:
    length = max(len(wanted), len(given))
    if not wanted and not given:
        yield bindings
        return
    first = wanted[0] if wanted else None
    tensor = given[0] if given else None
    rest = wanted[1:], given[1:]
    if length and first is None:
        if tensor is None:
            yield from _inputs(view, pattern, *rest, bindings, commuting)
        return
    if first is None:
        return
    if first.port:
        if tensor is None and not first.optional:
            return
        inner = bindings.copy()
        if inner.ports.setdefault(first.port, tensor) == tensor:
            yield from _inputs(view, pattern, *rest, inner, commuting)
        return
    if tensor is not None and view.stored(tensor):
        holding = _held(view, pattern, first, tensor, bindings)
        if holding is not None:
            yield from _inputs(view, pattern, *rest, holding, commuting)
        return
    made = None if tensor is None else view.producer(tensor)
    if made is None or made[1] != first.output:
        return
    for found in _application(view, pattern, first.application, made[0], bindings, commuting):
        yield from _inputs(view, pattern, *rest, found, commuting)


def _held(view: View, pattern: Pattern, operand: Operand, tensor: Tensor, bindings: _Bindings) -> _Bindings | None:
    """A stored tensor in the place of an application without inputs. A variable attribute is what the tensor says;
    whether the application gives this tensor is asked when all variables are known."""
    number, held = operand.application, Held(tensor)
    wanted = pattern.applications[number]
    if number in bindings.nodes:
        return bindings if bindings.nodes[number] == held else None
    data = view.content(tensor).data
    if wanted.inputs or operand.output or number in (k for k, _ in pattern.results):
        return None
    if data is None or data.size > MOST_DATA:
        return None
    inner = bindings.copy()
    inner.nodes[number] = held
    schema = schema_of(wanted.operator.name, wanted.operator.last)
    for name, core in wanted.attributes.items():
        own = attribute_of(core)
        if own is None:
            continue
        kind = "" if schema is None or name not in schema.attributes else schema.attributes[name].kind
        value = _as_attribute(kind, data)
        if value is None or not same(inner.attributes.setdefault(own.name, value), value):
            return None
    return inner


def _as_attribute(kind: str, data: Array) -> AttributeData | None:
    """The attribute of a kind that says the elements of a tensor; None where none does, or no exact numbers are in
    it: of a NaN, an infinity and -0.0 a rule with a variable does not speak here."""
    items = data.reshape(-1).tolist() if data.dtype.kind in "iuf" else []
    if len(items) < data.size or (not kind.endswith("S") and len(items) != 1):
        return None
    if kind in ("FLOAT", "FLOATS"):
        exact = [float(it) for it in items]
        if not all(isfinite(it) and (it != 0 or copysign(1, it) > 0) for it in exact):
            return None
        return exact[0] if kind == "FLOAT" else tuple(exact)
    if kind in ("INT", "INTS") and data.dtype.kind in "iu":
        return int(items[0]) if kind == "INT" else tuple(map(int, items))
    return None


def _gives(wanted: Applied, scope: Scope, data: Array) -> bool:
    """True if the text of an operator without inputs gives this tensor: type, shape and bytes."""
    try:
        attributes = {name: written(evaluate(core, scope)) for name, core in wanted.attributes.items()}
        version = wanted.operator.last
        done = ieee.apply(Application(wanted.operator.name, version, (), attributes, (True,), data.nbytes + LEAST))
    except (Unfit, Unsupported, MemoryError):
        return False
    if not isinstance(done, Outputs) or any(mask is not None and mask.any() for mask in done.free):
        return False
    value = done.values[0]
    return isinstance(value, np.ndarray) and same(value, data)


def _attributes(view: View, pattern: Pattern, number: int, node: Node, bindings: _Bindings) -> bool:
    """The attributes of a node are those that the pattern wants: bound, of a value that is to be compared, or usual."""
    wanted = pattern.applications[number]
    stated = view.attributes(node)
    usual = usual_attributes(wanted.operator.name, view.since(node))
    if any(value is None for value in stated.values()):
        return False
    for name, core in wanted.attributes.items():
        value = stated.get(name, usual.get(name))
        own = attribute_of(core)
        if own is None:
            bindings.closed.append((core, value))
        elif value is None and not pattern.bound[own.name]:
            return False
        elif own.name in bindings.attributes:
            if not same(bindings.attributes[own.name], value):
                return False
        else:
            bindings.attributes[own.name] = value
    others = ((name, value) for name, value in stated.items() if name not in wanted.attributes)
    return all(same(value, usual.get(name)) for name, value in others)


def usual_attributes(operator: str, version: int) -> Mapping[str, AttributeData]:
    """The defaults of the attributes of an operator at a version."""
    return _usual(schema_of(operator, version))


@cache
def _usual(schema: Schema | None) -> Mapping[str, AttributeData]:
    stated = () if schema is None else schema.attributes.values()
    known = ((it.name, data_of(it.default, _NO_MODEL)) for it in stated if it.default is not None)
    return {name: data for name, data in known if data is not None}


_NO_MODEL: Final = Model((), (), (), 0, (), "", ())
"""Defaults of a schema hold no stored tensor."""


def same(left: object, right: object) -> bool:
    """True if two values of attributes are the same, bit for bit."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
            return False
        return left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes()
    if isinstance(left, float) and isinstance(right, float):
        return np.float32(left).tobytes() == np.float32(right).tobytes()
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return type(left) is type(right) and left == right


# ---- Conditions -----------------------------------------------------------------------------------


def _decided(view: View, pattern: Pattern, bindings: _Bindings) -> Match | None:
    """The match, where it is certain that the conditions hold."""
    rule = pattern.rule
    if any(bindings.ports.get(name) is not None and not view.stored(bindings.ports[name]) for name in rule.stored):
        return None
    attributes = {name: bindings.attributes.get(name) for name in pattern.bound}
    types = types_of(view, rule.left, bindings.ports)
    if types is None:
        return None
    site = site_of(view, rule.left, bindings.ports, attributes)
    held = [(k, it) for k, it in bindings.nodes.items() if isinstance(it, Held)]
    asks = bindings.closed or held
    _, reason, scope = follow(site, view.facts, view.symbols, _perhaps, compose) if asks else (None, "", None)
    if reason:
        return None
    for core, value in bindings.closed:
        if scope is None or value is None or not _is(evaluate(core, scope), value):
            return None
    for number, stored in held:
        data = view.content(stored.tensor).data
        if scope is None or data is None or not _gives(pattern.applications[number], scope, data):
            return None
    assumed = []
    seen = set()
    for demand in _demands(view, site, bindings):
        seen.add(demand.position)
        statement = None if demand.position == HEADER else rule.left.statements[demand.position]
        if statement is not None and statement.id.startswith("where") and demand.goal is not None:
            if demand.goal.op == "false":
                return None
            assumed += [] if demand.goal == TRUE else [statement.doc]
        elif demand.goal is None or not (demand.goal == TRUE or view.certain(demand.goal)):
            return None
    if {HEADER, *(k for k, it in enumerate(rule.left.statements) if it.kind == "require")} - seen:
        return None  # it was not asked, since something before it is open
    nodes = tuple(bindings.nodes[k] for k in range(len(pattern.applications)))
    return Match(pattern, nodes, bindings.ports, attributes, types, bindings.swapped, tuple(assumed))


def _demands(view: View, site: Site, bindings: _Bindings) -> tuple[Demand, ...]:
    """The conditions of a left side. Where all sizes are numbers and its nodes run, nothing else is to be looked at."""
    shapes = (content.shape for content in site.inputs if content is not None)
    fixed = all(shape is not None and all(isinstance(n, int) for n in shape) for shape in shapes)
    if fixed and all(isinstance(node, Held) or view.runs(node) for node in bindings.nodes.values()):
        return demanded(site, view.facts, view.symbols, _perhaps)
    return examine(site, view.facts, view.symbols, _perhaps).demands


def _perhaps(_facts: object, _symbols: object) -> bool:
    """Nothing is excluded by facts here: what is not true by itself is asked as a whole."""
    return True


def _is(found: Value, value: AttributeData) -> bool:
    """True if a value that the text computes is the one that a node states."""
    wanted = constant(value)
    if isinstance(value, np.ndarray) or wanted is None:
        return False
    return found == wanted


def types_of(view: View, operator: CoreOperator, ports: Mapping[str, Tensor | None]) -> Mapping[str, str] | None:
    """The element types that the type variables stand for; None where the rule is not for these."""
    allowed = {it.name: it.allowed for it in operator.types}
    types: dict[str, str] = {}
    for port in operator.inputs:
        tensor = ports.get(port.name)
        if tensor is None:
            continue
        element = view.content(tensor).element
        if port.type in ELEMENT_TYPES:
            if element != port.type:
                return None
        elif element not in allowed.get(port.type, ()) or types.setdefault(port.type, element) != element:
            return None
    return types


def site_of(
    view: View,
    operator: CoreOperator,
    ports: Mapping[str, Tensor | None],
    attributes: Mapping[str, AttributeData | None],
) -> Site:
    """A side of a rule at a place. What is no stored value is known by its shape, and by what follows from shapes."""
    inputs: list[Content | None] = []
    for port in operator.inputs:
        tensor = ports.get(port.name)
        content = None if tensor is None else view.content(tensor)
        if content is not None and content.data is not None and content.data.size > MOST_DATA:
            content = Content(content.name, content.element, content.shape)
        inputs.append(content)
    stated = {name: value for name, value in attributes.items() if value is not None}
    return Site(operator, 1, tuple(inputs), stated, (True,) * len(operator.outputs))


# ---- Values of attributes -------------------------------------------------------------------------


class Unfit(Exception):  # noqa: N818 - no error: the rule has no right side here
    """Why a right side cannot be written down at a place."""


def written(value: Value) -> AttributeData:
    """A value of an attribute as a node states it. Raises Unfit for one that is not known."""
    match value:
        case bool():
            raise Unfit("an attribute is a truth value")
        case int() | str():
            return value
        case Fraction():
            number = float(np.float32(float(value)))
            if Fraction(number) != value:
                raise Unfit(f"the number {value}, about {float(value):.7g}, is no float and would be rounded")
            return number
        case Element(value=float() as number):
            return number
        case tuple():
            return _listed(tuple(written(item) for item in value))
        case _:
            raise Unfit("an attribute depends on more than is known there")


def _listed(items: tuple[AttributeData, ...]) -> AttributeData:
    numbers = tuple(it for it in items if isinstance(it, int))
    floats = tuple(float(it) for it in items if isinstance(it, int | float))
    texts = tuple(it for it in items if isinstance(it, str))
    for made in (numbers, floats, texts):
        if len(made) == len(items):
            return made
    raise Unfit("an attribute is a list of lists")
