"""Facts about the definitions of model-local functions, whether anything calls them or not.

Of several definitions of one function the first counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from ..model.graph import Definition, Model, NodeId
from ..model.path import operator_text
from ..model.schemas import newest_opset, since_version
from .schemas import Found, differences
from .structure import SetTable, Table, ValueTable

Operator = tuple[str, str]
"""Domain and name."""

MEMBERS = ("idle", "unimported", "deprecated")
"""Sets of nodes that are stated of the nodes of a definition too; the name of the fact there ends with `_in`."""

NAMES = ("left_empty", "unlisted_attributes", "miskinded_attributes", "absent_attributes", "repeated_attributes",
         "valueless_attributes")  # fmt: skip
"""Sets of names of a node that are stated of the nodes of a definition too."""


def providers(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Definitions of functions"."""
    first: dict[tuple[str, str, str], Definition] = {}
    for key, definition in zip(model.functions, model.definitions, strict=True):
        first.setdefault(key, definition)
    definitions = tuple(first.values())
    own = {(domain, name) for domain, name, _ in first}
    outside = dict(model.opsets)
    for definition in model.definitions:
        outside = {**definition.opsets, **outside}

    @cache
    def found() -> tuple[Found, ...]:
        return tuple(differences(definition.nodes, first, listing=False) for definition in definitions)

    @cache
    def applied() -> tuple[tuple[Operator, ...], ...]:
        return tuple(tuple(sorted({(it.domain, it.op_type) for it in row.nodes})) for row in definitions)

    def versions(opsets: Callable[[Definition], Mapping[str, int]]) -> Callable[[], Table]:
        return lambda: ValueTable(
            {
                (f, operator_text(*it)): since_version(*it, opsets(definitions[f]).get(it[0])) or 0
                for f, row in enumerate(applied())
                for it in row
            }
        )

    def unknown(f: int) -> Iterable[str]:
        opsets = definitions[f].opsets
        for it in applied()[f]:
            if it not in own and newest_opset(it[0]) and since_version(*it, opsets.get(it[0])) is None:
                yield operator_text(*it)

    def misfits(f: int, n: NodeId) -> bool:
        node = definitions[f].nodes[n]
        called = first[node.domain, node.op_type, node.overload]
        return len(node.inputs) > called.inputs or len(node.outputs) > called.outputs

    def rows(row: Callable[[int], Iterable[str]]) -> Callable[[], Table]:
        return lambda: SetTable({f: tuple(row(f)) for f in range(len(definitions))})

    def paths(nodes: Callable[[int], Iterable[NodeId]]) -> Callable[[], Table]:
        return rows(lambda f: (definitions[f].nodes[n].path for n in nodes(f)))

    def names(fact: str) -> Callable[[], Table]:
        return rows(
            lambda f: (
                f"{name} of {definitions[f].nodes[n].path}"
                for n, row in found()[f].sets.get(fact, {}).items()
                if isinstance(n, int)
                for name in row
            )
        )

    def members(fact: str) -> Callable[[], Table]:
        return paths(lambda f: found()[f].members.get(fact, ()))

    return {
        "applied": rows(lambda f: (operator_text(*it) for it in applied()[f])),
        "version_in": versions(lambda definition: definition.opsets),
        "version_outside": versions(lambda _: outside),
        "unknown_operators": rows(unknown),
        "repeated_formals": rows(lambda f: definitions[f].repeated),
        "respelled_in": rows(lambda f: definitions[f].respelled),
        "early_in": rows(lambda f: definitions[f].early),
        "reassigned_in": rows(lambda f: definitions[f].reassigned),
        "never_written_in": rows(lambda f: definitions[f].never_written),
        "miscounted_in": paths(lambda f: found()[f].limits),
        "misfitting_in": paths(lambda f: (n for n in found()[f].members.get("misfitting_calls", ()) if misfits(f, n))),
        **{f"{fact}_in": members(fact) for fact in MEMBERS},
        **{f"{fact}_in": names(fact) for fact in NAMES},
    }
