"""Operators that hold graphs, before the model runs: their bodies with what is known of the tensors that come in.

A body of If is examined under its condition. What Loop and Scan carry from run to run is generalised until it holds for
every run: sizes that change become symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..graph import GraphId, NodeId, TensorId
from ..interpretations.symbolic_numbers import Int, at_most, less, opposite
from ..terms import Term
from .contents import Content
from .walk import Walk, free, graph, settle, unexamined, unknown

PASSES = 3
"""After so many generalisations of a body's inputs, the rank of what still changes is open."""


def _bodies(walk: Walk, n: NodeId) -> Mapping[str, GraphId]:
    return dict(walk.model.nodes[n].bodies)


def _input(walk: Walk, n: NodeId, position: int) -> Content | None:
    row = walk.model.nodes[n].inputs
    t = row[position] if position < len(row) else None
    return None if t is None else walk.found.contents.get(t)


def _outputs(walk: Walk, body: GraphId) -> list[Content]:
    return [walk.found.contents.get(t, _lost(t)) for t in walk.model.graphs[body].outputs]


def _lost(t: TensorId) -> Content:
    return Content(f"t{t}", "", None, reason="the body gives no value")


# ---- If ---------------------------------------------------------------------------------------


def _if(walk: Walk, n: NodeId) -> None:
    bodies = _bodies(walk, n)
    condition = _only(walk, n, "Bool")
    results: list[list[Content]] = []
    for name, truth in (("then_branch", True), ("else_branch", False)):
        if name not in bodies or (isinstance(condition, int) and bool(condition) is not truth):
            continue
        kept = walk.path
        if isinstance(condition, Term):
            walk.path = (*kept, condition if truth else opposite(condition))
        graph(walk, bodies[name])
        walk.path = kept
        results.append(_outputs(walk, bodies[name]))
    for position, t in enumerate(walk.model.nodes[n].outputs):
        if t is None:
            continue
        cases = [row[position] for row in results if position < len(row)]
        settle(walk, n, t, _either(walk, t, cases) if cases else _lost(t))


def _only(walk: Walk, n: NodeId, sort: str) -> Int | None:
    """The one element of a node's first input: a number, or the term that stands for it."""
    content = _input(walk, n, 0)
    if content is None or content.shape is None:
        return None
    if content.data is not None and content.data.size == 1:
        return int(content.data.reshape(-1)[0])
    if content.entries is not None and len(content.entries) == 1 and isinstance(content.entries[0], Term):
        return content.entries[0]
    name = f"{content.name}.{sort}"
    walk.found.symbols[name] = (len(content.shape), sort)
    return Term(name, (0,) * len(content.shape))


def _either(walk: Walk, t: TensorId, cases: Sequence[Content]) -> Content:
    """What is known of a tensor that is one or the other."""
    first = cases[0]
    if all(
        case.shape == first.shape
        and case.entries == first.entries
        and case.data is first.data
        and case.law == first.law
        for case in cases
    ):
        return first
    element = first.element if all(case.element == first.element for case in cases) else ""
    open_case = next((case for case in cases if case.shape is None), None)
    if open_case is not None:
        return Content("", element, None, reason=open_case.reason)
    shapes = [case.shape for case in cases if case.shape is not None]
    if len({len(shape) for shape in shapes}) > 1:
        return Content("", element, None, reason="the branches give tensors of different ranks")
    shape = tuple(
        sizes[0] if len(set(sizes)) == 1 else free(walk, f"t{t}.size.{axis}")
        for axis, sizes in enumerate(zip(*shapes, strict=True))
    )
    return Content("", element, shape)


# ---- Bodies that run again and again ----------------------------------------------------------


def _repeated(
    walk: Walk,
    body: GraphId,
    fixed: Mapping[TensorId, Content],
    carried: Mapping[TensorId, Content],
    back: Sequence[TensorId],
) -> None:
    """A body whose inputs `carried` get, after each run, what the outputs `back` of the body are."""
    known = dict(carried)
    walk.silent += 1
    try:
        for number in range(PASSES + 1):
            _enter(walk, body, {**fixed, **known})
            changed = False
            for (t, before), source in zip(list(known.items()), back, strict=False):
                after = walk.found.contents.get(source, _lost(source))
                joined = _general(walk, t, before, after, last=number == PASSES)
                if joined != before:
                    known[t], changed = joined, True
            if not changed:
                break
    finally:
        walk.silent -= 1
    _enter(walk, body, {**fixed, **known})


def _enter(walk: Walk, body: GraphId, given: Mapping[TensorId, Content]) -> None:
    for t, content in given.items():
        walk.found.contents[t] = replace(content, name=f"t{t}")
    graph(walk, body)


def _general(walk: Walk, t: TensorId, before: Content, after: Content, *, last: bool) -> Content:
    """What holds of a carried value before and after a run."""
    if before.shape is None or after.shape is None:
        return before if before.shape is None else Content(f"t{t}", before.element, None, reason=after.reason)
    if len(before.shape) != len(after.shape) or (last and before.shape != after.shape):
        return Content(f"t{t}", before.element, None, reason="the shape changes from run to run")
    shape = tuple(
        a if a == b else free(walk, f"t{t}.size.{axis}")
        for axis, (a, b) in enumerate(zip(before.shape, after.shape, strict=True))
    )
    return Content(f"t{t}", before.element or after.element, shape)


def _loop(walk: Walk, n: NodeId) -> None:
    node, body = walk.model.nodes[n], _bodies(walk, n).get("body")
    if body is None:
        return unknown(walk, n, "the node has no body")
    inner = walk.model.graphs[body]
    trips = _only(walk, n, "Int")
    trips = max(trips, 0) if isinstance(trips, int) else trips
    count = len(node.inputs) - 2
    initial = {}
    for position, t in enumerate(inner.inputs[2:]):
        content = _input(walk, n, position + 2)
        initial[t] = Content(f"t{t}", "", None, reason="the loop carries no value here") if content is None else content
    number = free(walk, f"n{n}.run")
    fixed = {}
    for t, entries in zip(inner.inputs[:2], ((number,), None), strict=False):
        fixed[t] = Content(f"t{t}", "bool" if entries is None else "int64", (), entries)
    varying = {t: replace(c, entries=None, data=None, law=None) for t, c in initial.items()}
    kept = walk.path
    if trips is not None:
        walk.path = (*kept, less(number, trips))
    _repeated(walk, body, fixed, varying, inner.outputs[1:])
    walk.path = kept
    results = _outputs(walk, body)[1:]
    for position, output in enumerate(node.outputs):
        if output is None:
            continue
        result = results[position] if position < len(results) else _lost(output)
        if position < count:
            before = walk.found.contents[inner.inputs[2 + position]] if 2 + position < len(inner.inputs) else result
            settle(walk, n, output, replace(before, entries=None, data=None, law=None))
        else:
            settle(walk, n, output, _stacked(walk, output, result, trips))
    return None


def _stacked(walk: Walk, t: TensorId, result: Content, trips: Int | None, axis: int = 0) -> Content:
    """What the runs give, one after the other; a condition may end them early."""
    if result.shape is None:
        return Content("", result.element, None, reason=result.reason)
    count = free(walk, f"t{t}.size.{axis}")
    if isinstance(trips, int):
        walk.found.facts[at_most(count, trips)] = None
    return Content("", result.element, (*result.shape[:axis], count, *result.shape[axis:]))


def _scan(walk: Walk, n: NodeId) -> None:
    node, body = walk.model.nodes[n], _bodies(walk, n).get("body")
    stated = walk.program.attributes(n)
    scanned = stated.get("num_scan_inputs")
    if body is None or not isinstance(scanned, int) or (node.version or 0) < 9:
        return _unfollowed(walk, n, "the shapes in this Scan are not followed")
    inner = walk.model.graphs[body]
    states = len(node.inputs) - scanned
    axes = _axes(stated.get("scan_input_axes"), scanned)
    lengths: list[Int] = []
    fixed, carried = {}, {}
    for position, t in enumerate(inner.inputs):
        content = _input(walk, n, position) or _lost(t)
        if position < states:
            carried[t] = replace(content, entries=None, data=None, law=None)
        else:
            fixed[t] = _element(content, axes[position - states] if position - states < len(axes) else 0, lengths)
    _repeated(walk, body, fixed, carried, inner.outputs)
    results = _outputs(walk, body)
    out_axes = _axes(stated.get("scan_output_axes"), len(results) - states)
    for position, output in enumerate(node.outputs):
        if output is None:
            continue
        result = results[position] if position < len(results) else _lost(output)
        if position < states:
            state = walk.found.contents[inner.inputs[position]]
            settle(walk, n, output, replace(state, entries=None, data=None, law=None))
        elif result.shape is None or not lengths:
            settle(walk, n, output, Content("", result.element, None, reason=result.reason or "the scan has no length"))
        else:
            axis = out_axes[position - states]
            axis += len(result.shape) + 1 if axis < 0 else 0
            shape = (*result.shape[:axis], lengths[0], *result.shape[axis:])
            settle(walk, n, output, Content("", result.element, shape))
    return None


def _axes(stated: object, count: int) -> Sequence[int]:
    axes = [int(axis) for axis in stated] if isinstance(stated, tuple) else []
    return axes if len(axes) == count else [0] * count


def _element(content: Content, axis: int, lengths: list[Int]) -> Content:
    """One element of a scan input; the number of elements is noted."""
    if content.shape is None or not -len(content.shape) <= axis < len(content.shape):
        return Content("", content.element, None, reason=content.reason or "a scan axis is out of range")
    axis %= len(content.shape)
    lengths.append(content.shape[axis])
    return Content("", content.element, content.shape[:axis] + content.shape[axis + 1 :])


def _sequence_map(walk: Walk, n: NodeId) -> None:
    _unfollowed(walk, n, "the shapes in sequences are not followed")


def _unfollowed(walk: Walk, n: NodeId, reason: str) -> None:
    """A node of whose bodies nothing is known."""
    for _, body in walk.model.nodes[n].bodies:
        unexamined(walk, body, reason)
    unknown(walk, n, reason)


BODIES: Mapping[str, Callable[[Walk, NodeId], None]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}
"""For each operator that holds graphs how its bodies are examined."""
