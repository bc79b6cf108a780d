"""Operators that hold graphs: their bodies with what is known of the tensors that come in.

Rules Step/if, Step/loop, Step/scan of the specification, before a run: a body of If is looked at under its condition;
what Loop and Scan carry from run to run is made weaker until it holds for every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import onnx

from . import elements as el
from .formulas import Formula, at_least, opposite
from .numbers import Int, Poly
from .values import Element, Open, Sequence_, Tensor

if TYPE_CHECKING:
    from .walk import Content, Derivation

PASSES = 3
"""After so many passes, the rank of what still changes is open."""


def _bodies(walk: Derivation, n: int) -> dict[str, int]:
    """The bodies of a node by attribute."""
    node = walk.node(n)
    graphs = walk.graph.reading.graphs
    return {graphs[b].path.rpartition(".")[2]: b for b in node.bodies}


def _input(walk: Derivation, n: int, position: int) -> Content | None:
    row = walk.node(n).inputs
    t = row[position] if position < len(row) else None
    return None if t is None else walk.contents.get(t)


def _outputs(walk: Derivation, body: int) -> list[Content]:
    return [walk.contents.get(t, Open("the body gives no value")) for t in walk.graph.reading.graphs[body].outputs]


def _attribute(walk: Derivation, n: int, name: str) -> onnx.AttributeProto | None:
    return walk.node(n).attributes.get(name)


def _free(content: Content) -> Content:
    """Type and shape alone."""
    if isinstance(content, Tensor):
        return Tensor(content.name, content.kind, content.shape, reason=content.reason, on_data=content.on_data)
    return content if isinstance(content, Open) else Open("a sequence is carried from run to run", data=True)


# ---- If -----------------------------------------------------------------------------------------


def _if(walk: Derivation, n: int) -> None:
    from .walk import element_of, examine_graph, settle

    bodies = _bodies(walk, n)
    row = walk.node(n).inputs
    value = element_of(walk, row[0] if row else None)
    condition: Formula | None = None
    if isinstance(value, Element):
        condition = el.as_truth(value)
        known = walk.run.decided(condition)
        condition = condition if known is None else known
    results: list[list[Content]] = []
    for name, truth in (("then_branch", True), ("else_branch", False)):
        if name not in bodies or (isinstance(condition, bool) and condition is not truth):
            continue
        kept, walk.run.inside = walk.run.path, walk.run.inside + 1
        if condition is not None and not isinstance(condition, bool):
            walk.run.path = (*kept, condition if truth else opposite(condition))
        elif condition is None:
            from .values import unknown

            walk.run.path = (*kept, unknown(f"n{n}.{name}"))
        examine_graph(walk, bodies[name])
        walk.run.path, walk.run.inside = kept, walk.run.inside - 1
        results.append(_outputs(walk, bodies[name]))
    for position, t in enumerate(walk.node(n).outputs):
        if t is not None:
            cases = [r[position] for r in results if position < len(r)]
            settle(walk, n, t, _either(walk, t, cases) if cases else Open("no branch gives a value"))


def _either(walk: Derivation, t: int, cases: Sequence[Content]) -> Content:
    """What is known of a tensor that is one or the other."""
    from .walk import free

    first = cases[0]
    if len(cases) == 1 or all(case is first for case in cases):
        return first
    tensors = [case for case in cases if isinstance(case, Tensor)]
    if len(tensors) < len(cases):
        return Open(next((c.reason for c in cases if isinstance(c, Open)), "a branch gives a sequence"), data=True)
    kind = tensors[0].kind if len({c.kind for c in tensors}) == 1 else ""
    shapes = [c.shape for c in tensors]
    if any(s is None for s in shapes):
        return Tensor("", kind, None, reason=next(c.reason for c in tensors if c.shape is None))
    if len({len(s) for s in shapes if s is not None}) > 1:
        return Tensor("", kind, None, reason="the branches give tensors of different ranks")
    columns = zip(*(s for s in shapes if s is not None), strict=True)
    return Tensor(
        "", kind, tuple(c[0] if len(set(c)) == 1 else free(walk, f"t{t}.size.{k}") for k, c in enumerate(columns))
    )


# ---- Bodies that run again and again ------------------------------------------------------------


def _enter(walk: Derivation, body: int, given: Mapping[int, Content]) -> None:
    from .walk import examine_graph

    walk.contents.update(given)
    examine_graph(walk, body)


def _repeated(
    walk: Derivation, body: int, fixed: Mapping[int, Content], carried: Mapping[int, Content], back: Sequence[int]
) -> None:
    """A body whose inputs `carried` get, after each run, what its outputs `back` are."""
    known = dict(carried)
    kept = walk.run.path
    walk.silent += 1
    for number in range(PASSES + 1):
        _enter(walk, body, {**fixed, **known})
        walk.run.path = kept
        changed = False
        for (t, before), source in zip(list(known.items()), back, strict=False):
            after = walk.contents.get(source, Open("the body gives no value"))
            joined = _general(walk, t, before, after, last=number == PASSES)
            if joined is not before:
                known[t], changed = joined, True
        if not changed:
            break
    walk.silent -= 1
    _enter(walk, body, {**fixed, **known})
    walk.run.path = kept


def _general(walk: Derivation, t: int, before: Content, after: Content, *, last: bool) -> Content:
    """What holds of a carried value before and after a run; `before` itself where that is it."""
    from .walk import free

    if not isinstance(before, Tensor):
        return before
    if not isinstance(after, Tensor):
        return Open(after.reason if isinstance(after, Open) else "a sequence is carried", data=True)
    kind = before.kind or after.kind
    if before.shape is None or after.shape is None:
        return before if before.shape is None else Tensor(before.name, kind, None, reason=after.reason)
    if before.shape == after.shape:
        return before if kind == before.kind else replace(before, kind=kind)
    if len(before.shape) != len(after.shape) or last:
        return Tensor(before.name, kind, None, reason="the shape changes from run to run")
    shape = tuple(
        a if a == b or _is_free(a) else free(walk, f"t{t}.size.{axis}")
        for axis, (a, b) in enumerate(zip(before.shape, after.shape, strict=True))
    )
    return before if shape == before.shape else Tensor(before.name, kind, shape)


def _is_free(size: Int) -> bool:
    return isinstance(size, Poly) and len(size.terms) == 1 and ".size." in size.key and size.terms[0][0][0].kind == "data"


def _loop(walk: Derivation, n: int) -> None:
    from .walk import element_of, free, nothing, settle

    node, body = walk.node(n), _bodies(walk, n).get("body")
    if body is None:
        return nothing(walk, n, Open("the node has no body"))
    inner = walk.graph.reading.graphs[body]
    value = element_of(walk, node.inputs[0] if node.inputs else None)
    trips: Int | None = el.as_integer(value) if isinstance(value, Element) and value.kind in el.INTEGERS else None
    number = free(walk, f"n{n}.run")
    fixed: dict[int, Content] = {}
    if inner.inputs:
        fixed[inner.inputs[0]] = Tensor(f"t{inner.inputs[0]}", "int64", (), lambda index: Element("int64", number))
    if len(inner.inputs) > 1:
        fixed[inner.inputs[1]] = Tensor(f"t{inner.inputs[1]}", "bool", ())
    carried = {
        t: _free(_input(walk, n, k + 2) or Open("the loop carries no value here")) for k, t in enumerate(inner.inputs[2:])
    }
    kept, walk.run.inside = walk.run.path, walk.run.inside + 1
    below = at_least(trips, number) if trips is not None else True
    if trips is not None:
        from .numbers import add

        below = at_least(trips, add(number, 1))
    walk.run.path = (*kept, below) if below is not True else kept
    _repeated(walk, body, fixed, carried, inner.outputs[1:])
    walk.run.path, walk.run.inside = kept, walk.run.inside - 1
    results = _outputs(walk, body)[1:]
    count = len(node.inputs) - 2
    for position, t in enumerate(node.outputs):
        if t is None:
            continue
        result = results[position] if position < len(results) else Open("the body gives no value")
        if position < count:
            has = 2 + position < len(inner.inputs)
            settle(walk, n, t, _free(walk.contents[inner.inputs[2 + position]] if has else result))
        elif not isinstance(result, Tensor) or result.shape is None:
            settle(walk, n, t, result)
        else:
            size = free(walk, f"t{t}.size.0")
            if isinstance(trips, int):
                walk.run.facts.add(at_least(max(trips, 0), size))
            settle(walk, n, t, Tensor("", result.kind, (size, *result.shape)))
    return None


def _scan(walk: Derivation, n: int) -> None:
    from .walk import nothing, settle, unexamined

    node, body = walk.node(n), _bodies(walk, n).get("body")
    stated = _attribute(walk, n, "num_scan_inputs")
    if body is None or stated is None or (node.opset or 0) < 9:
        reason = Open("the shapes in this Scan are not followed")
        for b in node.bodies:
            unexamined(walk, b, reason)
        return nothing(walk, n, reason)
    inner = walk.graph.reading.graphs[body]
    scanned = int(stated.i)
    states = len(node.inputs) - scanned
    axes = _axes(_attribute(walk, n, "scan_input_axes"), scanned)
    lengths: list[Int] = []
    fixed: dict[int, Content] = {}
    carried: dict[int, Content] = {}
    for position, t in enumerate(inner.inputs):
        content = _input(walk, n, position) or Open("the body gets no value")
        if position < states:
            carried[t] = _free(content)
        else:
            fixed[t] = _element(content, axes[position - states] if position - states < len(axes) else 0, lengths)
    kept, walk.run.inside = walk.run.path, walk.run.inside + 1
    _repeated(walk, body, fixed, carried, inner.outputs)
    walk.run.path, walk.run.inside = kept, walk.run.inside - 1
    results = _outputs(walk, body)
    out_axes = _axes(_attribute(walk, n, "scan_output_axes"), len(results) - states)
    for position, t in enumerate(node.outputs):
        if t is None:
            continue
        result = results[position] if position < len(results) else Open("the body gives no value")
        if position < states:
            settle(walk, n, t, _free(walk.contents[inner.inputs[position]]))
        elif not isinstance(result, Tensor) or result.shape is None or not lengths:
            settle(walk, n, t, result if isinstance(result, Open) else Open("the scan has no length"))
        else:
            axis = out_axes[position - states]
            axis += len(result.shape) + 1 if axis < 0 else 0
            settle(walk, n, t, Tensor("", result.kind, (*result.shape[:axis], lengths[0], *result.shape[axis:])))
    return None


def _axes(stated: onnx.AttributeProto | None, count: int) -> list[int]:
    axes = [] if stated is None else [int(axis) for axis in stated.ints]
    return axes if len(axes) == count else [0] * count


def _element(content: Content, axis: int, lengths: list[Int]) -> Content:
    """One element of a scan input; the number of elements is noted."""
    if not isinstance(content, Tensor) or content.shape is None or not -len(content.shape) <= axis < len(content.shape):
        return content if isinstance(content, Open) else Open("a scan axis is out of range")
    axis %= len(content.shape)
    lengths.append(content.shape[axis])
    return Tensor("", content.kind, content.shape[:axis] + content.shape[axis + 1 :])


def _map(walk: Derivation, n: int) -> None:
    from .walk import nothing, unexamined

    reason = Open("the shapes in sequences are not followed", data=True)
    for body in walk.node(n).bodies:
        unexamined(walk, body, reason)
    nothing(walk, n, reason)


BODIES: Mapping[str, Callable[[Derivation, int], None]] = {"If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _map}
"""For each operator that holds graphs how its bodies are looked at."""
