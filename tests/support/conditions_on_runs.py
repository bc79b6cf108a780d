"""What conditions and obligations say of one run: lists of a report, evaluated on the sizes and values of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
from sonnx.semantics.machine.state import State, has_value, value_of
from sonnx.semantics.model.graph import Model, NodeId
from sonnx.semantics.model.values import Value

Json = object


class Unsettled(Exception):  # noqa: N818 - no error: a symbol that a run does not tell
    """The condition mentions what the values of a run do not tell."""


def holds(term: Json, sizes: Mapping[str, int], values: Mapping[str, Value]) -> object:
    """The value of a term. sizes: of inputs by name. values: by tensor."""
    if isinstance(term, (bool, int)):
        return term
    if isinstance(term, str):
        return sizes[term]
    assert isinstance(term, list)
    op, *args = term
    match op:
        case "size":
            return np.shape(_tensor(values, args[0]))[args[1]]
        case "length":
            return len(values[args[0]].items)  # type: ignore[union-attr]
        case "entry":
            return _tensor(values, args[0]).reshape(-1)[args[1]].item()
        case "element":
            index = tuple(int(holds(part, sizes, values)) for part in args[1:])  # type: ignore[call-overload]
            return _tensor(values, args[0])[index].item()
        case "symbol":
            if args[0] in sizes:
                return sizes[args[0]]
            raise Unsettled(args[0])
        case "forall" | "exists":
            return _quantified(op, args[0], args[1], sizes, values)
        case "and":
            return all(holds(part, sizes, values) for part in args)
        case "or":
            return any(holds(part, sizes, values) for part in args)
        case "=>":
            return not holds(args[0], sizes, values) or holds(args[1], sizes, values)
        case "ite":
            return holds(args[1] if holds(args[0], sizes, values) else args[2], sizes, values)
    return OPERATIONS[op](*(holds(part, sizes, values) for part in args))


OPERATIONS: Mapping[str, Callable[..., object]] = {
    "not": lambda a: not a,
    "=": lambda a, b: a == b,
    "iff": lambda a, b: bool(a) == bool(b),
    "<=": lambda a, b: a <= b,
    "+": lambda *a: sum(a),
    "*": lambda *a: int(np.prod(a)),
    "div": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}
MOST = 6
"""Bound variables go from 0 up to this: no axis of a test is longer."""


def _quantified(
    op: str, names: Sequence[str], body: Json, sizes: Mapping[str, int], values: Mapping[str, Value]
) -> bool:
    found = []
    for row in product(range(MOST), repeat=len(names)):
        try:
            found.append(bool(holds(body, {**sizes, **dict(zip(names, row, strict=True))}, values)))
        except IndexError:  # outside of the tensor: not in the range that the body states
            continue
    return all(found) if op == "forall" else any(found)


def _tensor(values: Mapping[str, Value], name: str) -> np.ndarray:
    found = values.get(name)
    if not isinstance(found, np.ndarray):
        raise Unsettled(name)
    return found


def values_at(model: Model, state: State) -> Mapping[str, Value]:
    """The values of the tensors of the main graph, by name."""
    found = {}
    for t, tensor in enumerate(model.tensors):
        if tensor.graph == 0 and (value := value_of(state, t)) is not None:
            found[tensor.name] = value
    return found


def stuck_at(model: Model, state: State) -> NodeId | None:
    """The node at which a run in the order of the file is stuck."""
    graph = model.graphs[state.frame.graph]
    for n in graph.nodes:
        if any(t is not None and not has_value(state, t) for t in model.nodes[n].outputs):
            return n
    return graph.holder
