"""Facts about nodes beside their ONNX schemas: what is unknown to ONNX, and in what a node differs from its schema."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from ..model.graph import Model, Node, NodeId
from ..model.schemas import Formal, newest_opset, normal_domain, schema
from .structure import Element, Key, SetTable, Table, Unknown, Value, ValueTable

INTERNAL = "__"
"""The beginning of attribute names that tools use for themselves."""


@dataclass(slots=True)
class Found:
    """What one pass over the nodes finds, by fact."""

    sets: dict[str, dict[Key, tuple[Element, ...]]] = field(default_factory=dict)
    members: dict[str, list[NodeId]] = field(default_factory=dict)
    limits: dict[NodeId, tuple[int, int, int, int]] = field(default_factory=dict)


def providers(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Nodes and schemas"."""
    found = cache(
        lambda: differences(
            model.nodes,
            {(normal_domain(domain), name, overload) for domain, name, overload in model.functions},
            listing=model.source == "listing",
        )
    )

    def members(name: str) -> Callable[[], Table]:
        return lambda: SetTable({(): tuple(found().members.get(name, ()))})

    def rows(name: str) -> Callable[[], Table]:
        return lambda: SetTable(found().sets.get(name, {}))

    def limit(index: int) -> Callable[[], Table]:
        return lambda: ValueTable({n: limits[index] for n, limits in found().limits.items()})

    sets = ("left_empty", "unlisted_attributes", "miskinded_attributes", "absent_attributes")
    return {
        **{name: rows(name) for name in (*sets, "repeated_attributes", "valueless_attributes")},
        **{name: members(name) for name in ("unimported", "without_schema", "misfitting_calls", "deprecated", "idle")},
        "miscounted": lambda: SetTable({(): tuple(found().limits)}),
        "exists_in_domain": lambda: ValueTable(
            {n: _existence(model.nodes[n]) for n in found().members.get("without_schema", ())}
        ),
        **{
            name: limit(index)
            for index, name in enumerate(("least_operands", "most_operands", "least_results", "most_results"))
        },
    }


def _existence(node: Node) -> Value:
    if newest_opset(node.domain):
        return False
    return Unknown(f"ONNX does not define the operators of the domain of {node.path}; their rules are not known here")


def differences(nodes: Sequence[Node], functions: Container[tuple[str, str, str]], *, listing: bool) -> Found:
    """In what these nodes differ from their schemas. functions: those of the model, by domain, name and overload."""
    found = Found()
    for n, node in enumerate(nodes):
        if not node.inputs and not node.outputs:
            found.members.setdefault("idle", []).append(n)
        if node.duplicate_attributes:
            _note(found, "repeated_attributes", n, dict.fromkeys(node.duplicate_attributes))
        if node.attributes and not listing:
            _note(found, "valueless_attributes", n, (a for a, it in node.attributes.items() if it.value is None))
        if node.opset is None:
            found.members.setdefault("unimported", []).append(n)
        elif (node.domain, node.op_type, node.overload) in functions:
            found.members.setdefault("misfitting_calls", []).append(n)
        elif node.version is None:
            found.members.setdefault("without_schema", []).append(n)
        else:
            _against_schema(found, n, node)
    return found


def _note(found: Found, fact: str, n: NodeId, members: Iterable[str]) -> None:
    row: tuple[Element, ...] = tuple(members)
    if row:
        found.sets.setdefault(fact, {})[n] = row


def _against_schema(found: Found, n: NodeId, node: Node) -> None:
    deprecated, limits = _counted(node.domain, node.op_type, node.version, len(node.inputs), len(node.outputs))
    if deprecated:
        found.members.setdefault("deprecated", []).append(n)
        return
    if limits is not None:
        found.limits[n] = limits
    if None in node.inputs or None in node.outputs:
        _note(found, "left_empty", n, _empty(node))
    written = tuple((name, it.kind) for name, it in node.attributes.items())
    for fact, row in _attributes(node.domain, node.op_type, node.version, written):
        _note(found, fact, n, row)


@cache
def _counted(
    domain: str, op_type: str, version: int | None, inputs: int, outputs: int
) -> tuple[bool, tuple[int, int, int, int] | None]:
    """Whether the operator is deprecated, and the limits of its counts when these are outside of them."""
    it = schema(domain, op_type, version)
    if it is None:
        return False, None
    most_in = inputs if it.max_inputs is None else it.max_inputs
    most_out = outputs if it.max_outputs is None else it.max_outputs
    fits = it.min_inputs <= inputs <= most_in and it.min_outputs <= outputs <= most_out
    return it.deprecated, None if fits else (it.min_inputs, most_in, it.min_outputs, most_out)


def _empty(node: Node) -> Iterator[str]:
    it = schema(node.domain, node.op_type, node.version)
    if it is not None:
        for formals, actuals in ((it.inputs, node.inputs), (it.outputs, node.outputs)):
            for position, tensor in enumerate(actuals[: len(formals)]):
                if tensor is None and formals[position].option == "single":
                    yield formals[position].name


@cache
def _attributes(
    domain: str, op_type: str, version: int | None, written: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The facts about attributes of nodes which write these names with these kinds."""
    it = schema(domain, op_type, version)
    if it is None:
        return ()
    names = {name for name, _ in written}
    formals = it.attributes
    return (
        ("unlisted_attributes", tuple(a for a, _ in written if a not in formals and not a.startswith(INTERNAL))),
        ("miskinded_attributes", tuple(a for a, kind in written if a in formals and formals[a].kind != kind)),
        ("absent_attributes", tuple(a for a, formal in formals.items() if formal.required and a not in names)),
    )


def formal_at(formals: Sequence[Formal], position: int) -> Formal | None:
    """The formal input or output that the actual one at a position stands for; None beyond the last."""
    if position < len(formals):
        return formals[position]
    return formals[-1] if formals and formals[-1].option == "variadic" else None
