"""Facts about definitions of functions: what they list, what their nodes apply, and how they use names.

A definition is read as it is written, whether anything calls it or not; of several of one function the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import onnx

from .. import paths
from ..attributes import Kinds, kind, valued
from ..facts import Facts
from ..reader import Node, domain_of
from ..schema import is_guest, newest, schema
from ..values import Key, Value
from .graph import Makers, at, listed
from .nodes import absent, deprecated, left_empty, miscounted, miskinded, unlisted


@dataclass(slots=True)
class _Read:
    """A definition that was read: its nodes, and the places of what is wrong with names, by fact."""

    nodes: list[Node] = field(default_factory=list)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def note(self, fact: str, place: str) -> None:
        row = self.wrong.setdefault(fact, [])
        if place not in row:
            row.append(place)


def makers(f: Facts) -> Makers:
    """The tables of the section "Definitions of functions"."""
    protos = f.reading.proto.functions
    keys = list(dict.fromkeys(f.reading.functions))
    first = [protos[f.reading.functions.index(key)] for key in keys]
    count = len(first)
    by_key = dict(zip(keys, first, strict=True))
    own = {(domain, name) for domain, name, _ in keys}
    shared: dict[str, int] = {}
    for it in protos:
        for domain, version in _imported(it).items():
            shared.setdefault(domain, version)
    shared.update(f.reading.opsets)

    @cache
    def wrong(fact: str) -> Callable[[int], Value | None]:
        return lambda k: tuple(reading(k).wrong.get(fact, ()))

    def reading(k: int) -> _Read:
        return _read(f, first[k], own)

    @cache
    def applied(k: int) -> tuple[tuple[str, str], ...]:
        return tuple(sorted({(node.domain, node.op_type) for node in reading(k).nodes}))

    def versions(imported: Callable[[onnx.FunctionProto], Mapping[str, int]]) -> Mapping[Key, Value]:
        return {
            (k, paths.function(domain, name, "")): 0 if form is None else form.since_version
            for k, function in enumerate(first)
            for domain, name in applied(k)
            for form in (schema(domain, name, imported(function).get(domain)),)
        }

    def unknown(k: int) -> tuple[str, ...]:
        imported = _imported(first[k])
        foreign = [it for it in applied(k) if it not in own and newest(it[0])]
        absent = (it for it in foreign if is_guest(*it) or schema(*it, imported.get(it[0])) is None)
        return tuple(paths.function(*it, "") for it in absent)

    def repeated(k: int) -> tuple[str, ...]:
        it = first[k]
        rows = (it.input, it.output, [*it.attribute, *(default.name for default in it.attribute_proto)])
        return tuple(sorted({name for row in rows for name, count in Counter(row).items() if count > 1}))

    def those(test: Callable[[Node], bool]) -> Callable[[int], Value]:
        return lambda k: tuple(node.path for node in reading(k).nodes if test(node))

    def names(row: Callable[[Node], Iterable[str]]) -> Callable[[int], Value]:
        return lambda k: tuple(f"{name} of {node.path}" for node in reading(k).nodes for name in row(node))

    def misfits(node: Node) -> bool:
        called = by_key.get((node.domain, node.op_type, node.overload)) if node.imported else None
        return called is not None and (len(node.inputs) > len(called.input) or len(node.outputs) > len(called.output))

    def valueless(node: Node) -> Iterator[str]:
        for name, attribute in node.attributes.items():
            if not attribute.ref_attr_name and not valued(f, attribute):
                yield name

    rows: dict[str, Callable[[int], Value | None]] = {
        "applied": lambda k: tuple(paths.function(*it, "") for it in applied(k)),
        "unknown_operators": unknown,
        "repeated_formals": repeated,
        "idle_in": those(lambda node: not node.inputs and not node.outputs),
        "unimported_in": those(lambda node: not node.imported),
        "deprecated_in": those(deprecated),
        "miscounted_in": those(lambda node: miscounted(node) is not None),
        "misfitting_in": those(misfits),
        "left_empty_in": names(left_empty),
        "unlisted_attributes_in": names(unlisted),
        "miskinded_attributes_in": names(lambda node: miskinded(f, node)),
        "absent_attributes_in": names(absent),
        "repeated_attributes_in": names(lambda node: dict.fromkeys(node.repeated)),
        "valueless_attributes_in": names(valueless),
        **{fact: wrong(fact) for fact in ("respelled_in", "early_in", "reassigned_in", "never_written_in")},
    }
    return {
        **{fact: at(row, count) for fact, row in rows.items()},
        "version_in": listed(lambda: versions(_imported)),
        "version_outside": listed(lambda: versions(lambda function: shared)),
    }


def _imported(function: onnx.FunctionProto) -> dict[str, int]:
    return {domain_of(entry.domain): entry.version for entry in function.opset_import}


def _read(f: Facts, function: onnx.FunctionProto, own: set[tuple[str, str]]) -> _Read:
    """Follows the names of a definition from node to node, and reads the nodes."""
    reading, imported = _Read(), _imported(function)
    spelled = [entry.domain for entry in function.opset_import]
    if "ai.onnx" in spelled and "" not in spelled:
        reading.note("respelled_in", "opset_import")
    if function.domain == "ai.onnx":
        reading.note("respelled_in", "domain")

    def follow(protos: Sequence[onnx.NodeProto], prefix: str, given: frozenset[str], outer: frozenset[str]) -> set[str]:
        """The names of a list of nodes that have a value at its end, of which `given` have one at its start."""
        local = set(given)
        for index, proto in enumerate(protos):
            path = paths.node(prefix, index, domain_of(proto.domain), proto.op_type, proto.name)
            if proto.domain == "ai.onnx":
                reading.note("respelled_in", path)
            for name in proto.input:
                if name and name not in local and name not in outer:
                    reading.note("early_in", f"{name} at {path}")
            node = _node(proto, path, imported, own)
            reading.nodes.append(node)
            for name, attribute in node.attributes.items():
                for place, body in _held(f, attribute, path, name):
                    stored = [
                        *(it.name for it in body.initializer),
                        *(it.values.name for it in body.sparse_initializer),
                    ]
                    start = frozenset([*(it.name for it in body.input), *stored])
                    end = follow(body.node, place + "/", start, outer | local)
                    for output in body.output:
                        if output.name not in end:
                            reading.note("never_written_in", f"{output.name} of {place}")
            for name in proto.output:
                if name and (name in local or name in outer):
                    reading.note("reassigned_in", f"{name} at {path}")
                local.add(name)
        return local

    end = follow(function.node, "/", frozenset(function.input), frozenset())
    for name in function.output:
        if name not in end:
            reading.note("never_written_in", name)
    return reading


def _node(proto: onnx.NodeProto, path: str, imported: Mapping[str, int], own: set[tuple[str, str]]) -> Node:
    """A node of a definition. Its tensors have no numbers: 0 is one that is named."""
    domain = domain_of(proto.domain)
    attributes: dict[str, onnx.AttributeProto] = {}
    again = [it.name for it in proto.attribute if attributes.setdefault(it.name, it) is not it]
    known = not proto.overload and (domain, proto.op_type) not in own
    return Node(
        path,
        proto.name,
        0,
        domain,
        proto.op_type,
        proto.overload,
        imported.get(domain) if known else None,
        tuple(0 if name else None for name in proto.input),
        tuple(0 if name else None for name in proto.output),
        attributes,
        repeated=tuple(again),
        imported=domain in imported,
    )


def _held(f: Facts, attribute: onnx.AttributeProto, path: str, name: str) -> Iterator[tuple[str, onnx.GraphProto]]:
    """The graphs that an attribute holds, each with its path."""
    if attribute.ref_attr_name or not valued(f, attribute):
        return
    if kind(f, attribute) == Kinds.GRAPH:
        yield paths.body(path, name), attribute.g
    elif kind(f, attribute) == Kinds.GRAPHS:
        for index, body in enumerate(attribute.graphs):
            yield paths.body(path, name, index), body
