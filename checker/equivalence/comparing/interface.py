"""The interfaces of two models: which inputs and outputs stand for each other, and what is told of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sonnx.semantics.machine.inputs import type_text
from sonnx.semantics.model.graph import Model, TensorId, ValueType
from sonnx.semantics.model.path import quote
from sonnx.semantics.operators.application import initializers
from sonnx.semantics.operators.shapes.walk import OVERRIDABLE


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of the main graph. default: it has a stored value that a caller may replace."""

    tensor: TensorId
    name: str
    declared: ValueType | None
    default: bool = False


@dataclass(frozen=True, slots=True)
class Interface:
    """inputs, outputs: pairs that stand for each other. left, right: inputs that one model alone has. changes: in
    words.

    apart: why no input is one of both models, or an output is missing; empty where they can be compared.
    """

    inputs: tuple[tuple[Port, Port], ...]
    outputs: tuple[tuple[Port, Port], ...]
    left: tuple[Port, ...]
    right: tuple[Port, ...]
    changes: tuple[str, ...]
    apart: str = ""


def interface(a: Model, b: Model) -> Interface:
    """The interface of two models. Names count where both have them, else the order."""
    changes: list[str] = []
    inputs, left, right = _matched("input", inputs_of(a), inputs_of(b), changes)
    outputs, lost, added = _matched("output", outputs_of(a), outputs_of(b), changes)
    apart = ""
    for kind, pairs in (("input", inputs), ("output", outputs)):
        for one, other in pairs:
            change = _type_change(kind, one, other)
            if change:
                changes.append(change)
            if one.default != other.default:
                has, lacks = "AB" if one.default else "BA"
                changes.append(
                    f"the {kind} {quote(one.name)} has a stored value in {has} alone: {lacks} must be given it"
                )
            if kind == "input" and not _overlap(one.declared, other.declared):
                apart = apart or f"no value of {quote(one.name)} is one that both models accept: {change}"
    for side, ports in (("A", left), ("B", right)):
        changes += [f"the input {quote(it.name)} is one of {side} alone" for it in ports]
        needed = [it for it in ports if not it.default]
        if needed and lost:
            apart = apart or f"the input {quote(needed[0].name)} is one of {side} alone"
    for side, ports in (("A", lost), ("B", added)):
        if ports:
            apart = apart or f"the output {quote(ports[0].name)} is one of {side} alone"
            changes += [f"the output {quote(it.name)} is one of {side} alone" for it in ports]
    changes += [*_tied(inputs), *_kinds(a, b)]
    return Interface(tuple(inputs), tuple(outputs), tuple(left), tuple(right), tuple(changes), apart)


def inputs_of(model: Model) -> list[Port]:
    """The inputs that a caller gives or may give: a stored value is a constant before IR version 4."""
    main = model.graphs[0]
    stored = {t for t, _ in initializers(main)}
    types = main.input_types or (None,) * len(main.inputs)
    return [
        Port(t, model.tensors[t].name, stated or model.tensors[t].declared, t in stored)
        for t, stated in zip(main.inputs, types, strict=True)
        if t not in stored or model.ir_version >= OVERRIDABLE
    ]


def outputs_of(model: Model) -> list[Port]:
    """The outputs in order."""
    main = model.graphs[0]
    types = main.output_types or (None,) * len(main.outputs)
    return [
        Port(t, model.tensors[t].name, stated or model.tensors[t].declared)
        for t, stated in zip(main.outputs, types, strict=True)
    ]


def _matched(
    kind: str, a: Sequence[Port], b: Sequence[Port], changes: list[str]
) -> tuple[list[tuple[Port, Port]], list[Port], list[Port]]:
    """Pairs by name, then of the rest by order where as many are left; the ports that stay alone."""
    if any(n > 1 for ports in (a, b) for n in Counter(it.name for it in ports).values()):
        pairs = list(zip(a, b, strict=False))
        if [x.name for x, _ in pairs] != [y.name for _, y in pairs]:
            changes.append(f"{kind}s are taken in order, since a name stands twice among them")
        return pairs, list(a[len(pairs) :]), list(b[len(pairs) :])
    by_name = {it.name: it for it in b}
    pairs = [(it, by_name[it.name]) for it in a if it.name in by_name]
    names = {it.name for it, _ in pairs}
    left, right = [it for it in a if it.name not in names], [it for it in b if it.name not in names]
    if left and len([it for it in left if not it.default]) == len([it for it in right if not it.default]):
        renamed = list(zip([it for it in left if not it.default], [it for it in right if not it.default], strict=True))
        changes += [f"the {kind} {quote(x.name)} of A is called {quote(y.name)} in B" for x, y in renamed]
        pairs += renamed
        left, right = [it for it in left if it.default], [it for it in right if it.default]
    both = {it.name for it, _ in pairs}, {it.name for _, it in pairs}
    orders = [it.name for it in a if it.name in both[0]], [it.name for it in b if it.name in both[1]]
    partner = {x.name: y.name for x, y in pairs}
    if [partner[name] for name in orders[0]] != orders[1]:
        changes.append(f"the {kind}s stand in another order")
    return pairs, left, right


def _type_change(kind: str, one: Port, other: Port) -> str:
    if one.declared == other.declared or _same_sizes(one.declared, other.declared):
        return ""
    return f"the {kind} {quote(one.name)} is {type_text(one.declared)} in A and {type_text(other.declared)} in B"


def _same_sizes(one: ValueType | None, other: ValueType | None) -> bool:
    """True where types differ in the names of open sizes at most."""
    if one is None or other is None or one.kind != "tensor" or other.kind != "tensor":
        return one == other
    if one.element != other.element or (one.shape is None) != (other.shape is None):
        return False
    plain = [tuple(n if isinstance(n, int) else None for n in it.shape or ()) for it in (one, other)]
    return plain[0] == plain[1]


def _tied(pairs: Sequence[tuple[Port, Port]]) -> Iterator[str]:
    """Sizes that one model alone makes equal, by a name: it accepts fewer inputs."""
    tied: list[dict[frozenset[tuple[str, int]], str | int]] = []
    for k in (0, 1):
        places: dict[str | int, list[tuple[str, int]]] = {}
        for pair in pairs:
            shape = None if (it := pair[k].declared) is None else it.shape
            for axis, size in enumerate(shape or ()):
                if size not in ("", None):
                    places.setdefault(size, []).append((pair[0].name, axis))
        tied.append({frozenset(at): name for name, at in places.items() if len(at) > 1})
    for k, other in ((0, 1), (1, 0)):
        yield from (
            f"{'AB'[k]} asks that the sizes called {quote(name)} be equal, {'AB'[other]} does not ask it of all of them"
            for at, name in tied[k].items()
            if isinstance(name, str) and not any(at <= others for others in tied[other])
        )


def _overlap(one: ValueType | None, other: ValueType | None) -> bool:
    """True unless no value is of both types."""
    if one is None or other is None or "unset" in (one.kind, other.kind):
        return True
    if one.kind != other.kind or (one.element and other.element and one.element != other.element):
        return False
    if one.inner is not None and other.inner is not None and not _overlap(one.inner, other.inner):
        return False
    if one.shape is None or other.shape is None:
        return True
    sizes = zip(one.shape, other.shape, strict=False)
    return len(one.shape) == len(other.shape) and all(
        n == m for n, m in sizes if isinstance(n, int) and isinstance(m, int) and n >= 0 and m >= 0
    )


# ---- What kind of change it is ------------------------------------------------------------------

_QUANTIZED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinear", "Integer")


def _kinds(a: Model, b: Model) -> Iterator[str]:
    """Conversions that whole models go through, told as what they are."""
    halves = [Counter(it.element for graph in model.graphs for _, it in graph.initializers) for model in (a, b)]
    for one, other, to in ((0, 1, "B"), (1, 0, "A")):
        if halves[one]["float"] and not halves[one]["float16"] and halves[other]["float16"]:
            yield f"{to} stores {halves[other]['float16']} tensors as float16, the other none: a conversion to float16"
    counts = [_quantizing(model) for model in (a, b)]
    for one, other, to in ((0, 1, "B"), (1, 0, "A")):
        if counts[other] and not counts[one]:
            shown = ", ".join(f"{name} ({n})" for name, n in sorted(counts[other].items()))
            yield f"{to} computes on quantized numbers, the other model does not: {shown}"


def _quantizing(model: Model) -> Mapping[str, int]:
    return Counter(node.op_type for node in model.nodes if any(part in node.op_type for part in _QUANTIZED))
