"""A model in the table: each of its tensors as a value in normal form, each of its nodes as an application."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.elements import ELEMENT_TYPES
from sonnx.semantics.model.graph import GraphId, Model, Node, NodeId, TensorId, ValueType
from sonnx.semantics.model.path import quote
from sonnx.semantics.model.schemas import Formal, formal_at, may_draw, operator_name, schema_of
from sonnx.semantics.model.stored import array_of
from sonnx.semantics.model.values import Array, declared_sizes
from sonnx.semantics.operators.application import Program, initializers
from sonnx.semantics.operators.shapes.contents import Content
from sonnx.spec.elaborate.core import CoreOperator

from .facts import Facts
from .normalizing import BRANCH, EVALUATED, Normalizer
from .table import (
    ApplicationId,
    Applied,
    Body,
    Declared,
    ValueId,
    full_attributes,
    indifferent,
    leaves_open,
    meaning_of,
)


@dataclass(frozen=True, slots=True)
class Entered:
    """A model that was entered. values: by tensor. applications: by node, before its own root is rewritten. executed:
    those that every run executes, but for what was evaluated; of a branch that is taken for sure those that may get
    stuck.

    settled: the applications of which an element may be left open.
    """

    model: Model
    values: Mapping[TensorId, ValueId]
    applications: Mapping[NodeId, ApplicationId]
    executed: frozenset[ApplicationId]
    settled: frozenset[ApplicationId]

    def output(self, t: TensorId) -> ValueId:
        """The value of an output. Raises ModelError for one that nothing gives."""
        if t not in self.values:
            name = quote(self.model.tensors[t].name)
            raise ModelError(f"the output {name} is written by no node, so that there is nothing to compare")
        return self.values[t]


def stored_array(model: Model, t: TensorId) -> Array | None:
    """The stored value of a tensor of the main graph."""
    for other, constant in initializers(model.graphs[0]):
        if other == t:
            array = array_of(constant, model, model.tensors[t].name)
            return array if isinstance(array, np.ndarray) else None
    return None


def enter(normal: Normalizer, model: Model, given: Mapping[TensorId, ValueId]) -> Entered:
    """Enters a well-formed model. given: the values of the inputs of its main graph; stored ones that are among them
    are not looked at."""
    work = _Entering(normal, model, Program(model), dict(given))
    executed = _graph(work, 0, 0)
    return Entered(model, work.values, work.applications, frozenset(executed), frozenset(work.settled))


@dataclass
class _Entering:
    """The work on one model. occurrences: how often an application that may leave elements open was entered."""

    normal: Normalizer
    model: Model
    program: Program
    values: dict[TensorId, ValueId]
    applications: dict[NodeId, ApplicationId] = field(default_factory=dict)
    settled: set[ApplicationId] = field(default_factory=set)
    occurrences: Counter[ApplicationId] = field(default_factory=Counter)


def _graph(work: _Entering, g: GraphId, depth: int) -> set[ApplicationId]:
    """Enters the nodes of a graph whose inputs have values; the applications that a run of it executes."""
    table = work.normal.table
    for t, constant in initializers(work.model.graphs[g]):
        if t in work.values:
            continue
        array = array_of(constant, work.model, work.model.tensors[t].name)
        if not isinstance(array, np.ndarray):
            raise ModelError(f"the stored tensor {quote(work.model.tensors[t].name)} cannot be read")
        work.values[t] = table.stored(array)
    executed: set[ApplicationId] = set()
    for n in work.program.order(g):
        node = work.model.nodes[n]
        if not work.program.writes[n]:
            continue
        application = _node(work, n, node, depth)
        work.applications[n] = application
        values = work.normal.normal(application)
        for written, value in zip(node.outputs, values, strict=False):
            if written is not None and value is not None:
                work.values[written] = value
        executed |= _executed(work, application)
    return executed


def _executed(work: _Entering, application: ApplicationId) -> set[ApplicationId]:
    """What may get stuck where an application is executed."""
    fired = work.normal.firings.get(application)
    if fired is not None and fired.rule == EVALUATED:
        return set()
    if fired is not None and fired.rule == BRANCH:
        it = work.normal.table.applications[application]
        return set().union(*(body.demands for body in it.bodies if _is_taken(work, application, body)))
    return {application}


def _is_taken(work: _Entering, application: ApplicationId, body: Body) -> bool:
    flag = work.normal.table.array(work.normal.table.applications[application].inputs[0])
    return flag is not None and body.attribute == ("then_branch" if bool(flag.reshape(-1)[0]) else "else_branch")


def _node(work: _Entering, n: NodeId, node: Node, depth: int) -> ApplicationId:
    table, operator = work.normal.table, meaning_of(node)
    name, version = operator_name(node.domain, node.op_type), node.version or 0
    stated = work.program.attributes(n)
    inputs = tuple(None if t is None else work.values[t] for t in node.inputs)
    asked = tuple(t is not None for t in node.outputs)
    if operator is not None:
        asked = _asked(work, node, operator)
    bodies = tuple(_body(work, attribute, g, node, depth) for attribute, g in sorted(node.bodies))
    if operator is None or (node.bodies and not operator.rule):
        return table.apply(Applied(None, name, version, stated, inputs, asked, bodies, table.apart()))
    it = Applied(operator, name, version, full_attributes(name, version, stated), inputs, asked, bodies)
    if not _is_typed(work.normal.facts, table.apply(it), name, version):
        it = replace(it, untyped=version)
    if may_draw(operator) or _draws_within(operator.rule, version, name):
        return table.apply(replace(it, alone=table.apart()))
    number = table.apply(it)
    if not leaves_open(operator, asked):
        return number
    seen = work.occurrences[number]
    work.occurrences[number] += 1
    if seen:
        number = table.apply(replace(it, alone=-seen))
    work.settled.add(number)
    return number


def _is_typed(facts: Facts, number: ApplicationId, name: str, version: int) -> bool:
    """True if the types of an application are known, and ONNX admits them at a version.

    A definition covers versions that admit other types, and the machine gets stuck on what one does not admit.
    """
    it, schema = facts.table.applications[number], schema_of(name, version)
    if schema is None or it.operator is None or it.operator.rule:
        return True
    bound: dict[str, str] = {}
    for position, v in enumerate(it.inputs):
        if v is None:
            continue
        first = min(position, len(it.operator.inputs) - 1)
        port, element = it.operator.inputs[first], facts.content(v).element
        name = port.types[(position - first) % len(port.types)]
        wanted = name if name in ELEMENT_TYPES else bound.setdefault(name, element)
        if wanted != element or not _admits(formal_at(schema.inputs, position), facts.content(v)):
            return False
    made = enumerate(facts.table.results(number))
    return all(v is None or _admits(formal_at(schema.outputs, position), facts.content(v)) for position, v in made)


def _admits(formal: Formal | None, content: Content) -> bool:
    """True if what is known of a value is that it is a tensor of a type that is admitted."""
    return formal is None or (content.items is None and f"tensor({content.element})" in formal.types)


def _asked(work: _Entering, node: Node, operator: CoreOperator) -> tuple[bool, ...]:
    """The outputs that count: one that nothing reads does not, where the text is the same without it; nor do those
    behind the last one that counts."""
    free, lasting = indifferent(operator), work.program.lasting[node.graph]
    asked = [
        t is not None and not (k and k < len(free) and free[k] and t not in work.program.readers and t not in lasting)
        for k, t in enumerate(node.outputs)
    ]
    last = max((k for k, named in enumerate(asked) if named), default=0)
    return tuple(asked[: last + 1])


def _draws_within(rule: str, version: int, name: str) -> bool:
    """True for Scan of version 8, which leaves open what lies behind the end of a sequence."""
    return bool(rule) and name == "Scan" and version < 9


def _body(work: _Entering, attribute: str, g: GraphId, node: Node, depth: int) -> Body:
    graph = work.model.graphs[g]
    inner = depth + bool(graph.inputs)
    for k, t in enumerate(graph.inputs):
        work.values[t] = work.normal.table.given(inner, str(k))
    demands = {it for it in _graph(work, g, inner) if work.normal.facts.may_fail(it)}
    types = graph.output_types or (None,) * len(graph.outputs)
    stated = tuple(it or work.model.tensors[t].declared for t, it in zip(graph.outputs, types, strict=True))
    outputs = tuple(work.values[t] for t in graph.outputs)
    kept = tuple(None if node.op_type == "If" else _declared(it) for it in stated)
    return Body(attribute, len(graph.inputs), outputs, kept, frozenset(demands))


def _declared(stated: ValueType | None) -> Declared:
    sizes = declared_sizes(stated)
    return None if stated is None else (stated.kind, stated.element, None if sizes is None else sizes[1])
