"""A model in the making: the growing lists of G, and the scopes in which names are looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from onnx import AttributeProto

from ...errors import ModelError
from ..graph import Graph, GraphId, Node, NodeId, Tensor, TensorId, ValueType
from ..path import quote
from .values import Payloads

MAX_DEPTH: Final = 100
"""How deep bodies and calls may lie inside each other."""

MAX_EXPANDED: Final = 1_000_000
"""How many nodes the calls of a model may expand to."""

MAX_CHARACTERS: Final = 200_000_000
"""How long the paths of expanded nodes may be in all: each repeats the paths of its calls."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A name scope: a graph, or one expansion of a function.

    names: tensors by name, None for an input that the call leaves out. graph: the graph that new tensors and nodes
    belong to. prefix: what their paths begin with. outer: the scope around it; a function has none. opsets: imported
    operator set versions. given: the attributes of the call, None outside of functions. calls: the calls around it.
    """

    names: dict[str, TensorId | None]
    graph: GraphId
    prefix: str
    outer: Scope | None
    opsets: Mapping[str, int]
    given: Mapping[str, Given] | None = None
    calls: tuple[str, ...] = ()
    depth: int = 0


class Given(NamedTuple):
    """An attribute that a call hands to a function, with the scope in which its graphs read names."""

    proto: AttributeProto
    scope: Scope


@dataclass(slots=True)
class Lists:
    """The lists of G while they grow; None stands for what is not finished yet. reads: for each graph the tensors of
    outer graphs that it reads, in order of first use. complete: nothing is elided."""

    payloads: Payloads
    typed: bool
    graphs: list[Graph | None] = field(default_factory=list)
    nodes: list[Node | None] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    reads: list[dict[TensorId, None]] = field(default_factory=list)
    members: list[list[NodeId]] = field(default_factory=list)
    expanded: int = 0
    characters: int = 0
    complete: bool = True


def define(lists: Lists, scope: Scope, name: str, types: Mapping[str, ValueType]) -> TensorId:
    """A new tensor of the scope."""
    number = len(lists.tensors)
    lists.tensors.append(Tensor(name, scope.prefix + quote(name), scope.graph, types.get(name)))
    scope.names[name] = number
    return number


def define_once(lists: Lists, scope: Scope, name: str, types: Mapping[str, ValueType]) -> TensorId:
    """The tensor that bears the name in this very scope, a new one when there is none."""
    found = scope.names.get(name)
    return define(lists, scope, name, types) if found is None else found


def look_up(scope: Scope, name: str) -> tuple[bool, TensorId | None]:
    """Looks a name up, here and further out: bound or not, and the tensor, None for an input that a call leaves out."""
    at: Scope | None = scope
    while at is not None:
        if name in at.names:
            return True, at.names[name]
        at = at.outer
    return False, None


def spend(lists: Lists, scope: Scope, nodes: int, ahead: int = 0) -> None:
    """Account for nodes that are about to be built by expanding calls; `ahead` are those that will follow.

    Raises ModelError when it is too much.
    """
    if scope.depth > MAX_DEPTH:
        raise ModelError(f"bodies and function calls lie more than {MAX_DEPTH} deep inside each other: flatten them")
    if scope.calls:
        lists.expanded += nodes
        lists.characters += 2 * nodes * len(scope.prefix)
        if lists.expanded + ahead > MAX_EXPANDED:
            raise ModelError(f"the function calls expand to more than {MAX_EXPANDED} nodes: export without functions")
        if lists.characters > MAX_CHARACTERS:
            raise ModelError("the names along nested function calls are too long to be shown: shorten them")
