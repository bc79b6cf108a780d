"""A whole model before a run: types and shapes of its tensors, and what each node requires, from the operators' texts.

Every node in an order in which it could run, bodies with what is known of the tensors that come in. Sizes that the
declarations of the inputs leave open are symbols, one for each name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import external_data_helper, numpy_helper

from ..facts import Facts as GraphFacts
from ..facts import order
from ..paths import quoted
from .control import BODIES
from .formulas import Int, Symbol, poly
from .knowledge import Content, Derivation, Limits, note, nothing, settle, sized, text_of
from .lists import NAMES, VARIES, kind_of
from .node import Goal, Site, compose, examine
from .schema import defaults, tensor, written
from .text import Library, TextError
from .values import Entries, Listed, Open, Run, Tensor, Value

OVERRIDABLE = 4
"""From this IR version on an initializer that is also an input is a default, which a caller may replace."""


def derive(graph: GraphFacts, texts: Library, limits: Limits | None = None, folder: Path | None = None) -> Derivation:
    """Walks a model. limits: the least and the greatest value of sizes by name. folder: where external data lie."""
    walk = unwalked(graph, texts, folder, limits)
    _inputs(walk)
    examine_graph(walk, 0)
    return walk


def unwalked(graph: GraphFacts, texts: Library, folder: Path | None = None, limits: Limits | None = None) -> Derivation:
    """A model of which nothing is derived yet."""
    return Derivation(graph, Run(texts, compose), limits or {}, examine_graph, folder, stated=_stated(graph))


def _call_around(path: str) -> str:
    """The call whose function a path lies in, "" outside of functions."""
    return path[: path.rfind("!") + 1]


def _stated(graph: GraphFacts) -> Mapping[int, Sequence[tuple[str, onnx.TypeProto]]]:
    """The types of tensors as the model states them, with the call within which its dimension variables are known."""
    reading = graph.reading
    stated: dict[int, dict[tuple[str, bytes], tuple[str, onnx.TypeProto]]] = {}
    for number, g in enumerate(reading.graphs):
        pairs = list(graph.annotations(number))
        pairs += zip((*g.inputs, *g.outputs), (*g.proto.input, *g.proto.output), strict=True)
        for t, value in pairs:
            if t is not None and value.HasField("type"):
                key = _call_around(g.path), value.type.SerializeToString(deterministic=True)
                stated.setdefault(t, {}).setdefault(key, (key[0], value.type))
    for t, item in enumerate(reading.tensors):
        if t not in stated and item.declared is not None and graph.writers[t]:
            stated[t] = {("", b""): (_call_around(item.path), item.declared)}
    return {t: tuple(types.values()) for t, types in stated.items()}


# ---- Before a graph runs ------------------------------------------------------------------------


def _inputs(walk: Derivation) -> None:
    main = walk.graph.reading.graphs[0]
    stored = set(main.initializers)
    for t in dict.fromkeys(main.inputs):
        if t in stored and walk.graph.reading.proto.ir_version < OVERRIDABLE:
            continue
        walk.contents[t] = declared_content(walk, t)


def declared_content(walk: Derivation, t: int) -> Content:
    """An input by its declaration."""
    item = walk.graph.reading.tensors[t]
    kind = None if item.declared is None else item.declared.WhichOneof("value")
    if item.declared is not None and kind in ("sequence_type", "optional_type") and kind_of(item.declared):
        return _list_of(walk, t, item.declared, "length")
    if item.declared is not None and kind == "map_type" and kind_of(item.declared):
        return _columns(walk, t, item.declared, "length")
    if item.declared is None or kind not in ("tensor_type", "sparse_tensor_type"):
        return Open(f"the input {item.name} is declared as {kind or 'nothing'}, no tensor")
    own = item.declared.tensor_type if kind == "tensor_type" else item.declared.sparse_tensor_type
    element = NAMES.get(own.elem_type, "") if own.elem_type else ""
    if not own.HasField("shape"):
        return Tensor(f"t{t}", element, None, reason=f"the input {item.name} is declared without a shape")
    shape = tuple(_dimension(walk, dim, f"{item.name}[{axis}]") for axis, dim in enumerate(own.shape.dim))
    return Tensor(f"t{t}", element, shape)


def _list_of(walk: Derivation, t: int, declared: onnx.TypeProto, name: str) -> Listed:
    """A sequence or an optional by its declaration: a size that is no number differs from entry to entry, also where it
    has a name, as in ONNX's own tests (onnx 1.23.2, onnx/backend/test/case/node/sequence_map.py)."""
    optional = declared.WhichOneof("value") == "optional_type"
    inner = declared.optional_type.elem_type if optional else declared.sequence_type.elem_type
    length = walk.run.symbol("data", f"t{t}.{name}", 0, 1 if optional else None)
    form: Value
    if inner.WhichOneof("value") in ("sequence_type", "optional_type"):
        form = _list_of(walk, t, inner, f"inner.{name}")
    elif inner.WhichOneof("value") == "map_type":
        columns = _columns(walk, t, inner, f"inner.{name}")
        form = Tensor("", "", None, reason=columns.reason) if isinstance(columns, Open) else columns
    elif not inner.tensor_type.HasField("shape"):
        form = Tensor("", kind_of(inner), None, reason="the entries are declared without a shape")
    else:
        dims = inner.tensor_type.shape.dim
        known = [dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims]
        sizes = tuple(int(dim.dim_value) if k else VARIES for k, dim in zip(known, dims, strict=True))
        form = Tensor("", kind_of(inner), sizes)
    return Listed(kind_of(declared), length, (form,))


def _columns(walk: Derivation, t: int, declared: onnx.TypeProto, name: str) -> Entries | Open:
    """A map by its declaration: its keys, and the values at them."""
    values = declared.map_type.value_type
    if not values.HasField("tensor_type") or any(
        not dim.HasField("dim_value") or dim.dim_value != 1 for dim in values.tensor_type.shape.dim
    ):
        return Open("a map is declared whose values are no single elements")
    length = walk.run.symbol("data", f"t{t}.{name}", 0)
    kinds = NAMES.get(declared.map_type.key_type, ""), kind_of(declared.map_type.value_type)
    return Entries.of(kind_of(declared), tuple(Tensor("", kind, (length,)) for kind in kinds))


def _dimension(walk: Derivation, dim: onnx.TensorShapeProto.Dimension, place: str) -> Int:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    if dim.dim_param and ("", dim.dim_param) in walk.dimensions:
        return walk.dimensions["", dim.dim_param]
    label = dim.dim_param or place
    while label in walk.sizes:  # a dimension variable may bear the name of a size without one
        label += "'"
    least, most = walk.limits.get(label, (1, None))
    symbol = walk.sizes[label] = Symbol(quoted(label), "size", least=least, most=most)
    if dim.dim_param:
        walk.dimensions["", dim.dim_param] = poly(symbol)
    return poly(symbol)


def _stored(walk: Derivation, g: int) -> None:
    """The initializers of a graph."""
    graph = walk.graph.reading.graphs[g]
    protos = graph.proto.initializer
    for position, t in enumerate(graph.initializers):
        if t in walk.contents:
            continue
        if position < len(protos):
            walk.contents[t] = tensor(protos[position], f"t{t}", _external(walk, protos[position]))
        else:
            sparse = graph.proto.sparse_initializer[position - len(protos)]
            kind = NAMES.get(sparse.values.data_type, "")
            walk.contents[t] = Tensor(f"t{t}", kind, tuple(int(n) for n in sparse.dims))


def _external(walk: Derivation, proto: onnx.TensorProto) -> Callable[[], NDArray[np.generic] | None]:
    def load() -> NDArray[np.generic] | None:
        if walk.folder is None:
            return None
        copy = onnx.TensorProto()
        copy.CopyFrom(proto)
        try:
            external_data_helper.load_external_data_for_tensor(copy, str(walk.folder))
            return numpy_helper.to_array(copy)
        except (OSError, ValueError, TypeError, onnx.checker.ValidationError):
            return None

    return load


# ---- Nodes --------------------------------------------------------------------------------------


def examine_graph(walk: Derivation, g: int) -> None:
    """All nodes of a graph, in an order in which they could run."""
    _stored(walk, g)
    reached = order(walk.graph, g)
    for n in reached:
        node = walk.node(n)
        if node.bodies and node.domain == "" and node.op_type in BODIES:
            BODIES[node.op_type](walk, n)
        else:
            _node(walk, n)
    if not walk.silent:
        ran = set(reached)
        walk.skipped += [n for n in walk.graph.reading.graphs[g].nodes if n not in ran]


def _node(walk: Derivation, n: int) -> None:
    node = walk.node(n)
    try:
        text = text_of(walk, n)
    except TextError as problem:
        text = None
        reason = str(problem)
    else:
        reason = f"the specification does not define {node.op_type} of {node.domain or 'ai.onnx'}"
    if text is None or any(s.kind == "meaning" for s in text[0].statements):
        if not walk.silent:
            walk.undefined.append(n)
        return nothing(walk, n, Open(reason))
    operator, version = text
    inputs = tuple(None if t is None else _value(walk.contents.get(t), t) for t in node.inputs)
    attributes = {**defaults(operator, version), **written(node.attributes, f"n{n}")}
    present = tuple(t is not None for t in node.outputs)
    site = Site(f"{operator.name}-{version}", operator, version, inputs, attributes, present)

    def judge(position: int, goal: Goal) -> None:
        note(walk, n, operator, position, goal)

    outputs = examine(site, walk.run, judge)
    given = walk.graph.reading.graphs[0].inputs
    for read in dict.fromkeys(t for t in node.inputs if t is not None and t in given):
        sized(walk, n, walk.contents.get(read))
    for t, value in zip(node.outputs, outputs, strict=True):
        if t is not None:
            settle(walk, n, t, value if isinstance(value, Tensor | Entries | Listed | Open) else Open("no tensor"))
    return None


def _value(content: Content | None, t: int) -> Value:
    match content:
        case Tensor() | Entries() | Listed():
            return content
        case Open():
            return Tensor(f"t{t}", "", None, reason=content.reason, on_data=content.data)
        case _:
            return Tensor(f"t{t}", "", None, reason="an input has no value", on_data=False)
