"""Facts about nodes beside the schemas of their operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from ..attributes import kind, valued
from ..facts import Facts
from ..reader import Node
from ..schema import SINGLE, UNBOUNDED, Attribute, Schema, is_guest, newest, prescribed, schema_of
from ..values import UNKNOWN, Find, Value
from .graph import Makers, at


def makers(f: Facts) -> Makers:
    """The tables of the section "Nodes and schemas"."""
    nodes = f.reading.nodes
    functions = set(f.reading.functions)

    def misfit(node: Node) -> bool:
        return node.imported and (node.domain, node.op_type, node.overload) in functions

    def unknown(node: Node) -> bool:
        return node.imported and not misfit(node) and schema_of(node) is None

    def those(test: Callable[[Node], bool]) -> Callable[[], Find]:
        @cache
        def row() -> tuple[int, ...]:
            return tuple(n for n, node in enumerate(nodes) if test(node))

        return lambda: lambda key: row()

    def of_node(row: Callable[[Node], Value | None]) -> Callable[[], Find]:
        return at(lambda n: row(nodes[n]), len(nodes))

    def limit(row: Callable[[Node, Schema], Value]) -> Callable[[], Find]:
        def of(node: Node) -> Value | None:
            schema = miscounted(node)
            return None if schema is None else row(node, schema)

        return of_node(of)

    def valueless(node: Node) -> Value:
        if f.source == "listing":
            return ()
        return tuple(name for name in node.attributes if not valued(f, node.attributes[name]))

    return {
        "unimported": those(lambda node: not node.imported),
        "without_schema": those(unknown),
        "exists_in_domain": of_node(
            lambda node: (False if newest(node.domain) else UNKNOWN) if unknown(node) else None
        ),
        "guests": those(lambda node: node.imported and not misfit(node) and is_guest(node.domain, node.op_type)),
        "misfitting_calls": those(misfit),
        "deprecated": those(deprecated),
        "idle": those(lambda node: not node.inputs and not node.outputs),
        "miscounted": those(lambda node: miscounted(node) is not None),
        "least_operands": limit(lambda _, schema: schema.min_input),
        "most_operands": limit(lambda node, schema: _bound(schema.max_input, len(node.inputs))),
        "least_results": limit(lambda _, schema: schema.min_output),
        "most_results": limit(lambda node, schema: _bound(schema.max_output, len(node.outputs))),
        "left_empty": of_node(left_empty),
        "unlisted_attributes": of_node(unlisted),
        "miskinded_attributes": of_node(lambda node: miskinded(f, node)),
        "absent_attributes": of_node(absent),
        "repeated_attributes": of_node(lambda node: tuple(dict.fromkeys(node.repeated))),
        "valueless_attributes": of_node(valueless),
    }


def deprecated(node: Node) -> bool:
    """The schema calls the operator deprecated."""
    schema = schema_of(node)
    return schema is not None and bool(schema.deprecated)


def _bound(most: int, otherwise: int) -> int:
    return otherwise if most >= UNBOUNDED else most


def miscounted(node: Node) -> Schema | None:
    """The schema that the numbers of the node's inputs and outputs do not fit."""
    schema = schema_of(node)
    if schema is None or schema.deprecated:
        return None
    inputs = schema.min_input <= len(node.inputs) <= schema.max_input
    fits = inputs and schema.min_output <= len(node.outputs) <= schema.max_output
    return None if fits else schema


def left_empty(node: Node) -> tuple[str, ...]:
    """The inputs and outputs without a name that the schema requires."""
    if None not in node.inputs and None not in node.outputs:
        return ()
    schema = schema_of(node)
    if schema is None or schema.deprecated:
        return ()
    sides = ((schema.inputs, node.inputs), (schema.outputs, node.outputs))
    names: list[str] = []
    for formals, given in sides:
        names += (it.name for it, t in zip(formals, given, strict=False) if t is None and it.option == SINGLE)
        if formals and formals[-1].group and None in given[len(formals) - 1 :]:  # a group has all its entries
            names.append(formals[-1].name)
    return tuple(names)


def unlisted(node: Node) -> tuple[str, ...]:
    """The attributes that the schema does not list."""
    return _attributes(node, lambda formals, a: a not in formals and not a.startswith("__"))


def miskinded(f: Facts, node: Node) -> tuple[str, ...]:
    """The attributes of another kind than the schema prescribes."""
    return _attributes(node, lambda formals, a: a in formals and prescribed(formals[a]) != kind(f, node.attributes[a]))


def _attributes(node: Node, test: Callable[[Mapping[str, Attribute], str], bool]) -> tuple[str, ...]:
    schema = schema_of(node)
    if schema is None or schema.deprecated:
        return ()
    formals = schema.attributes
    return tuple(name for name in node.attributes if test(formals, name))


def absent(node: Node) -> tuple[str, ...]:
    """The attributes that the schema requires and the node lacks."""
    schema = schema_of(node)
    if schema is None or schema.deprecated:
        return ()
    formals = schema.attributes
    return tuple(name for name in sorted(formals) if formals[name].required and name not in node.attributes)
