"""The rechecker's own walks over a graph: topological order, what can be executed, distances to outputs and inputs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import onnx

from . import paths
from .facts import Facts
from .reader import Node
from .schema import kind_of, operator, schema_of

NOWHERE = -1
UNREACHED = -2


def founded(f: Facts) -> list[int]:
    """The nodes that a topological order reaches, always the least one that can be next."""
    before = [{m for t in reads for m in f.writers[t]} for reads in f.reads]
    left = [len(nodes) for nodes in before]
    ready = [n for n, count in enumerate(left) if count == 0]
    heapify(ready)
    order = []
    while ready:
        n = heappop(ready)
        order.append(n)
        for m in {m for t in f.writes[n] for m in f.readers[t]}:
            left[m] -= 1
            if left[m] == 0:
                heappush(ready, m)
    return order


def rings(f: Facts, places: Sequence[int]) -> list[list[int]]:
    """For each unfounded node the cycle behind it, in the direction of the data, least node first.

    Behind a node stands the least unfounded node that writes what it reads. A node whose way back joins that of an
    earlier one gets an empty list.
    """
    done = set(founded(f))
    seen: set[int] = set()
    result = []
    for place in places:
        way: list[int] = []
        here = place
        while here not in seen:
            seen.add(here)
            way.append(here)
            here = min({m for t in f.reads[here] for m in f.writers[t]} - done)
        ring = way[way.index(here) :] if here in way else []
        ring.reverse()
        first = ring.index(min(ring)) if ring else 0
        result.append(ring[first:] + ring[:first])
    return result


def executable(f: Facts) -> list[int]:
    """The nodes that can be executed, always the least one that can be next.

    A node needs what it reads, and what its bodies give out: either branch of an If may run, a body any times.
    """
    graphs = f.reading.graphs
    needs = [set(reads) for reads in f.reads]
    for n, node in enumerate(f.reading.nodes):
        for body in node.bodies:
            needs[n].update(graphs[body].outputs)
    waiting: list[list[int]] = [[] for _ in f.reading.tensors]
    for n, needed in enumerate(needs):
        for t in needed:
            waiting[t].append(n)
    has = set(f.inputs | f.stored)
    left = [len(needed - has) for needed in needs]
    ready = [n for n, count in enumerate(left) if count == 0]
    heapify(ready)
    order = []
    while ready:
        n = heappop(ready)
        order.append(n)
        for t in given(f, n):
            if t not in has:
                has.add(t)
                for m in waiting[t]:
                    left[m] -= 1
                    if left[m] == 0:
                        heappush(ready, m)
    return order


def valued(f: Facts, order: Sequence[int]) -> set[int]:
    """The tensors that have values once the nodes of `order` have been executed."""
    return {t for n in order for t in given(f, n)} | f.inputs | f.stored


def given(f: Facts, n: int) -> tuple[int, ...]:
    """The outputs of a node that surely get a value: not a loop-carried one whose initial value is left out."""
    node = f.reading.nodes[n]
    if operator(node) not in ("Loop", "Scan"):
        return f.writes[n]
    unset = _unset(f, node)
    return tuple(t for t in f.writes[n] if t not in unset)


def _unset(f: Facts, node: Node) -> set[int | None]:
    """The loop-carried outputs without an initial value. They come first among the outputs.

    The inputs of Loop are M, cond, initial values; those of Scan are initial values, then num_scan_inputs sequences;
    Scan 8 has sequence_lens in front. The inputs of the body tell how many values are carried.
    """
    held = [f.reading.graphs[body] for body in node.bodies]
    inputs = next((len(body.inputs) for body in held if body.path == paths.body(node.path, "body")), None)
    schema = schema_of(node)
    if operator(node) == "Loop":
        first, scanned = 2, 2
    else:
        first = 1 if schema is not None and schema.since_version == 8 else 0
        count = node.attributes.get("num_scan_inputs")
        scanned = count.i if count is not None and kind_of(count) == onnx.AttributeProto.INT else 0
    listed = len(node.inputs) - (first if operator(node) == "Scan" else 0)
    carried = max((listed if inputs is None else inputs) - scanned, 0)
    initial = [*node.inputs[first:], *[None] * carried]
    return {t for t, value in zip(node.outputs[:carried], initial, strict=False) if value is None}


def reaching(f: Facts, *, forward: bool) -> list[int | None]:
    """For each node how many steps it is from writing an output of its graph (from reading an input, backward).

    None: there is no such path. An input with a stored value is a constant here.
    """
    ahead, behind = (f.writes, f.reads) if forward else (f.reads, f.writes)
    back = f.writers if forward else f.readers
    goal = f.outputs if forward else f.inputs - f.stored
    steps: list[int | None] = [0 if any(t in goal for t in tensors) else None for tensors in ahead]
    queue = deque(n for n, step in enumerate(steps) if step == 0)
    while queue:
        n = queue.popleft()
        here = steps[n] or 0
        for t in behind[n]:
            for m in back[t]:
                if steps[m] is None:
                    steps[m] = here + 1
                    queue.append(m)
    return steps


def nearest(f: Facts, *, forward: bool) -> list[int]:
    """For each node its least neighbour on a shortest such path; NOWHERE at its end, UNREACHED without a path."""
    steps = reaching(f, forward=forward)
    ahead, neighbours = (f.writes, f.readers) if forward else (f.reads, f.writers)
    found = []
    for n, step in enumerate(steps):
        if step is None:
            found.append(UNREACHED)
        elif step == 0:
            found.append(NOWHERE)
        else:
            found.append(min(m for t in ahead[n] for m in neighbours[t] if steps[m] == step - 1))
    return found
