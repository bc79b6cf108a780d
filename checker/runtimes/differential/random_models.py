"""Random typed models: applications drawn one after the other, fed with what is there, some in If, Loop, a function.

Every application is evaluated when it is drawn, so types and shapes are known and nothing is stuck, unless it is on
purpose. The same seed gives the same model.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np
import onnx
from onnx import helper
from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.machine.memory import type_of
from sonnx.semantics.model.elements import element_of, encode
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.schemas import newest_opset, normal_domain, schema_of, since_version
from sonnx.semantics.model.type_protos import ELEMENT_CODES, to_proto
from sonnx.semantics.model.values import Array, Value
from sonnx.semantics.operators.application import Application, AttributeData, Outputs
from sonnx.semantics.operators.compiled import ieee
from sonnx.spec.elaborate.statements import is_rule
from sonnx.spec.library import specification

from .applications import Drawn, drawn
from .sizes import Finder

OLDEST: Final = 7
LARGEST: Final = 20_000
"""Elements of all outputs of a node at most."""
MOST: Final = 6
"""Nodes of a model at most."""


Added = tuple[tuple[str, str], ...]
"""The files that users add, by name and digest: what is kept is kept for one specification."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A model with inputs. violated: the requirement that it breaks on purpose, "" for none."""

    model: bytes
    feeds: Mapping[str, Value]
    opset: int
    operators: tuple[str, ...]
    violated: str = ""


@dataclass(slots=True)
class _Parts:
    """A model in the making."""

    opset: int
    choose: random.Random
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    functions: list[onnx.FunctionProto] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    applied: list[tuple[str, int]] = field(default_factory=list)


def defined_at(opset: int) -> tuple[tuple[str, int], ...]:
    """The operators that the specification defines by equations, with the versions in force in an operator set; of
    other domains than ONNX's own with the newest versions.
    """
    return _defined_at(opset, specification().added)


@cache
def _defined_at(opset: int, _added: Added) -> tuple[tuple[str, int], ...]:
    newest = ((name, versions_of(name, opset)[-1:]) for name in sorted(specification().operators))
    return tuple((name, version) for name, versions in newest for version in versions)


def versions_of(name: str, opset: int) -> tuple[int, ...]:
    """The versions of an operator that the specification defines by equations, oldest first: of ONNX's own domain the
    one in force in an operator set, of another domain all.
    """
    domain, op_type = named(name)
    last = max(it.last for it in specification().operators[name])
    versions = {since_version(domain, op_type, it) for it in (range(1, last + 1) if domain else (opset,))}
    return tuple(sorted(version for version in versions if version is not None and _by_equations(name, version)))


def named(name: str) -> tuple[str, str]:
    """The domain and the name that a node has of an operator: a guest of ONNX's own domain has that domain."""
    domain, _, op_type = name.rpartition("::")
    return normal_domain(domain), op_type


def _by_equations(name: str, version: int) -> bool:
    text, form = specification().operator(name, version), schema_of(name, version)
    return text is not None and not is_rule(text) and form is not None and not form.deprecated


def imports(opset: int, operators: Iterable[tuple[str, int]]) -> list[onnx.OperatorSetIdProto]:
    """The operator sets that a model with these operators and versions imports: `opset` of ONNX's own domain, of others
    the newest version that is asked for.
    """
    needed: dict[str, int] = {"": opset}
    for name, version in operators:
        domain = named(name)[0]
        needed[domain] = opset if not domain else max(version, needed.get(domain, 1))
    return [helper.make_opsetid(domain, needed[domain]) for domain in sorted(needed)]


def generated(
    seed: Sequence[int], finder: Finder, newest: int | None = None, only: frozenset[str] = frozenset()
) -> Generated | None:
    """The model of a seed, None where chance leads to none. newest: the newest operator set. only: these operators."""
    choose = random.Random(repr(tuple(seed)))
    top = min(newest or newest_opset(), newest_opset())
    opset = choose.choice((top, top, choose.randint(OLDEST, top), choose.randint(OLDEST, top)))
    table = [it for it in defined_at(opset) if not only or it[0] in only]
    if not table:
        return None
    parts = _Parts(opset, choose)
    outside = choose.random() < 0.1
    wanted = 1 if outside or choose.random() < 0.4 else choose.randint(2, MOST)
    violated = ""
    for _ in range(3 * wanted):
        if len(parts.nodes) >= wanted:
            break
        op_type, version = choose.choice(table)
        there = parts.values if parts.values and choose.random() < 0.8 else None
        try:
            sample = drawn(op_type, version, finder, choose, there=there, outside=outside)
            if sample is None:
                continue
            done = ieee.apply(sample.application)
        except (Unsupported, InternalError, MemoryError, ValueError, TypeError, OverflowError):
            continue
        if isinstance(done, Outputs):
            if sum(getattr(value, "size", 0) for value in done.values if value is not None) <= LARGEST:
                _add(parts, sample, done.values)
        elif outside:
            _add(parts, sample, ())
            violated = sample.violated or done.premise
            break
    if not parts.nodes:
        return None
    if not outside:
        _wrapped(parts)
    return Generated(_model(parts), _feeds(parts), opset, tuple(parts.operators), violated)


# ---- Nodes ------------------------------------------------------------------------------------


def _add(parts: _Parts, sample: Drawn, results: tuple[Value | None, ...]) -> None:
    application = sample.application
    number = len(parts.nodes)
    names = []
    for position, value in enumerate(application.inputs):
        if value is None:
            names.append("")
        elif position in sample.fed:
            names.append(sample.fed[position])
        else:
            name = f"x{number}_{position}"
            parts.values[name] = value
            small = isinstance(value, np.ndarray) and value.ndim <= 1 and value.dtype.kind in "iu"
            if isinstance(value, np.ndarray) and parts.choose.random() < (0.75 if small else 0.35):
                parts.stored.add(name)
            names.append(name)
    outputs = [f"y{number}_{position}" for position in range(len(application.outputs))]
    parts.nodes.append(node_proto(application, names, outputs, f"n{number}"))
    parts.operators.append(f"{application.op_type}-{application.version}")
    parts.applied.append((application.op_type, application.version))
    for name, value in zip(outputs, results, strict=False):
        if value is not None:
            parts.values[name] = value
            parts.made.add(name)


def node_proto(application: Application, inputs: Sequence[str], outputs: Sequence[str], name: str) -> onnx.NodeProto:
    """The node of an application."""
    domain, op_type = named(application.op_type)
    node = onnx.NodeProto(op_type=op_type, domain=domain, name=name, input=list(inputs), output=list(outputs))
    form = schema_of(application.op_type, application.version)
    for key, data in application.attributes.items():
        formal = None if form is None else form.attributes.get(key)
        if formal is not None:
            node.attribute.append(_attribute(key, formal.kind, data))
    return node


def _attribute(name: str, kind: str, data: AttributeData) -> onnx.AttributeProto:
    value: object = data
    match data:
        case np.ndarray():
            value = tensor_proto(data, name)
        case ValueType():
            value = onnx.TypeProto()
            to_proto(data, value)
        case str():
            value = data.encode("utf-8", "surrogateescape")
        case int() if kind == "FLOAT":
            value = float(data)
        case tuple() if kind == "STRINGS":
            value = [str(it).encode("utf-8", "surrogateescape") for it in data]
    return helper.make_attribute(name, value, attr_type=onnx.AttributeProto.AttributeType.Value(kind))


def tensor_proto(array: Array, name: str) -> onnx.TensorProto:
    """A tensor as a message, down to its bits."""
    element = element_of(array.dtype)
    made = onnx.TensorProto(name=name, data_type=ELEMENT_CODES[element], dims=list(array.shape))
    if element == "string":
        made.string_data.extend(array.reshape(-1).tolist())
    else:
        made.raw_data = bytes(encode(array))
    return made


# ---- Bodies and functions ---------------------------------------------------------------------


def _wrapped(parts: _Parts) -> None:
    """One of the nodes inside a branch, a loop or a function, now and then."""
    kind = parts.choose.choice(("If", "Loop", "function", "", "", "", "", ""))
    position = parts.choose.randrange(len(parts.nodes))
    node = parts.nodes[position]
    outputs = [name for name in node.output if name]
    if not kind or not all(isinstance(parts.values.get(name), np.ndarray) for name in outputs):
        return
    if kind == "If":
        parts.nodes[position] = _branching(parts, node, outputs)
    elif kind == "function":
        parts.nodes[position] = _called(parts, node)
    elif not any(name in outputs for other in parts.nodes for name in other.input) and parts.opset >= 11:
        parts.nodes[position] = _looped(parts, node, outputs)
    else:
        return
    parts.operators.append(kind)


def _inner(node: onnx.NodeProto, outputs: Sequence[str], label: str) -> tuple[onnx.NodeProto, list[str]]:
    """A copy of a node whose outputs have other names."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    renamed = [f"{label}_{name}" if name else "" for name in node.output]
    del copy.output[:]
    copy.output.extend(renamed)
    copy.name = f"{label}_{node.name}"
    return copy, [name for name in renamed if name]


def _branching(parts: _Parts, node: onnx.NodeProto, outputs: Sequence[str]) -> onnx.NodeProto:
    condition = f"c{len(parts.values)}"
    parts.values[condition] = np.array(parts.choose.random() < 0.5)
    if parts.choose.random() < 0.5:
        parts.stored.add(condition)
    made = helper.make_node("If", [condition], outputs, f"if_{node.name}")
    for branch in ("then_branch", "else_branch"):
        inner, names = _inner(node, outputs, branch[:4])
        last = [f"{name}_out" for name in names]
        copies = [helper.make_node("Identity", [a], [b], b) for a, b in zip(names, last, strict=True)]
        results = [_info(b, parts.values[o]) for b, o in zip(last, outputs, strict=True)]
        made.attribute.append(helper.make_attribute(branch, helper.make_graph([inner, *copies], branch, [], results)))
    return made


def _looped(parts: _Parts, node: onnx.NodeProto, outputs: Sequence[str]) -> onnx.NodeProto:
    count, condition = f"m{len(parts.values)}", f"k{len(parts.values)}"
    parts.values[count] = np.array(parts.choose.randint(0, 3), np.int64)
    parts.stored.add(count)
    inner, names = _inner(node, outputs, "body")
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [inner, helper.make_node("Identity", [f"{condition}_in"], [f"{condition}_out"], f"{condition}_id")],
        "body",
        [value(f"{condition}_i", onnx.TensorProto.INT64, []), value(f"{condition}_in", onnx.TensorProto.BOOL, [])],
        [
            value(f"{condition}_out", onnx.TensorProto.BOOL, []),
            *(_info(b, parts.values[o]) for b, o in zip(names, outputs, strict=True)),
        ],
    )
    for name in outputs:  # each value is the stack of those of all runs; how long it is, data decide
        parts.values.pop(name)
    return helper.make_node("Loop", [count, ""], outputs, f"loop_{node.name}", body=body)


def _called(parts: _Parts, node: onnx.NodeProto) -> onnx.NodeProto:
    name = f"F{len(parts.functions)}"
    inputs = list(dict.fromkeys(it for it in node.input if it))
    inner, names = _inner(node, list(node.output), "f")
    opsets = imports(parts.opset, parts.applied)
    parts.functions.append(helper.make_function("sonnx.fuzz", name, inputs, names, [inner], opsets))
    outputs = [it for it in node.output if it]
    return helper.make_node(name, inputs, outputs, f"call_{node.name}", domain="sonnx.fuzz")


# ---- The model --------------------------------------------------------------------------------


def _info(name: str, value: Value | None, sizes: Mapping[int, str] | None = None) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto(name=name)
    if value is None:
        return info
    stated = type_of(value)
    if sizes and stated.shape is not None:
        shape = tuple(sizes.get(size, size) if isinstance(size, int) else size for size in stated.shape)
        stated = ValueType(stated.kind, stated.element, shape, stated.inner)
    to_proto(stated, info.type)
    return info


def _model(parts: _Parts) -> bytes:
    read = {name for node in parts.nodes for name in reads_of(node)}
    sizes = {size: f"d{size}" for size in (2, 3, 5, 7)} if parts.choose.random() < 0.25 else {}
    results = [name for node in parts.nodes for name in node.output if name]
    sinks = [name for name in results if name not in read]
    shown = [name for name in results if name in sinks or parts.choose.random() < 0.2]
    given = [name for name in parts.values if name in read and name not in parts.made | parts.stored]
    graph = helper.make_graph(
        parts.nodes,
        "drawn",
        [_info(name, parts.values[name], sizes) for name in given],
        [_result(name, parts.values.get(name), bool(sizes)) for name in shown],
        [
            tensor_proto(value, name)
            for name, value in parts.values.items()
            if isinstance(value, np.ndarray) and name in parts.stored and name in read
        ],
    )
    opsets = imports(parts.opset, parts.applied)
    ir_version = max(10, int(helper.find_min_ir_version_for(opsets[:1])))
    if parts.functions:
        opsets.append(helper.make_opsetid("sonnx.fuzz", 1))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, functions=parts.functions)
    model.ClearField("producer_name")
    return model.SerializeToString(deterministic=True)


def _result(name: str, value: Value | None, open_sizes: bool) -> onnx.ValueInfoProto:
    if not isinstance(value, np.ndarray) or not open_sizes:
        return _info(name, value)
    return helper.make_tensor_value_info(name, ELEMENT_CODES[element_of(value.dtype)], [None] * value.ndim)


def reads_of(node: onnx.NodeProto) -> Iterator[str]:
    """The tensors that a node reads, those that its bodies read from outside included."""
    yield from node.input
    for attribute in node.attribute:
        for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            own = {it.name for it in body.input} | {it.name for it in body.initializer}
            own |= {name for it in body.node for name in it.output}
            for inner in body.node:
                yield from (name for name in reads_of(inner) if name not in own)
            yield from (it.name for it in body.output if it.name not in own)


def _feeds(parts: _Parts) -> dict[str, Value]:
    read = {name for node in parts.nodes for name in reads_of(node)}
    return {name: value for name, value in parts.values.items() if name in read - parts.made - parts.stored}
