"""The lifetimes of tensors, read off a model and a schedule, which those that a run shows are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonnx.semantics.machine.allocation.plan import BEFORE, Lifetime
from sonnx.semantics.model.graph import Model, NodeId, TensorId


def lifetimes(model: Model, schedule: Sequence[NodeId], sizes: Mapping[TensorId, int]) -> tuple[Lifetime, ...]:
    """When the tensors of `sizes` are live under a schedule, in the order in which they are written.

    Inputs and initializers are there before the first step. Initializers, which the next run needs again, and the
    outputs of the main graph stay to the end. A tensor that no step writes has no lifetime.
    """
    first: dict[TensorId, int] = {}
    last: dict[TensorId, int] = {}
    main = model.graphs[0]
    stored = [tensor for tensor, _ in (*main.initializers, *main.sparse_initializers)]
    for tensor in (*main.inputs, *stored):
        first.setdefault(tensor, BEFORE)
    for step, number in enumerate(schedule):
        node = model.nodes[number]
        for read in (*node.inputs, *node.captures):
            if read is not None:
                last[read] = step
        for written in node.outputs:
            if written is not None:
                first.setdefault(written, step)
    last.update(dict.fromkeys((*stored, *main.outputs), len(schedule)))
    return tuple(
        Lifetime(tensor, sizes[tensor], step, max(step, last.get(tensor, step)))
        for tensor, step in first.items()
        if tensor in sizes
    )
