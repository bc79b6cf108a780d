"""A whole model before a run: types and shapes of its tensors, and what each node requires, from the operators' texts.

Every node in an order in which it could run, bodies with what is known of the tensors that come in. Sizes that the
declarations of the inputs leave open are symbols, one for each name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import external_data_helper, numpy_helper

from ..facts import Facts as GraphFacts
from ..facts import order
from ..paths import quoted
from ..reader import Node
from . import control
from .deciding import Judged, decide
from .formulas import Formula, both, equal
from .lists import VARIES, kind_of
from .node import HEADER, Goal, Site, examine
from .numbers import Int, Poly, Symbol, poly
from .schema import defaults, since, tensor, written
from .stored_types import NAMES
from .text import Library, Operator, TextError
from .values import Entries, Listed, Open, Run, Tensor, Value

OVERRIDABLE = 4
"""From this IR version on an initializer that is also an input is a default, which a caller may replace."""
SHAPES, TYPES = "shapes", "types"
"""The rules that outputs have the shapes, and the element types, which the model declares."""
SAID = {
    SHAPES: "Outputs have the shapes that the model declares.",
    TYPES: "Outputs have the element types that the model declares.",
}

Content = Tensor | Entries | Listed | Open
Limits = Mapping[str, tuple[int, int | None]]


@dataclass(slots=True)
class Derivation:
    """What is derived of a model. contents: by tensor. judged: by rule, in the order of the nodes.

    sizes: the symbolic sizes of the inputs, by what the model calls them. undefined: nodes whose operator no text
    defines. skipped: nodes that never run. sentences: what the rules say. starts: how many names there were before the
    bodies of a node. dimensions: what the dimension variables of the model stand for, each with the call within which
    it is known. stated: the types that the model states of tensors.
    """

    graph: GraphFacts
    run: Run
    limits: Limits
    folder: Path | None = None
    contents: dict[int, Content] = field(default_factory=dict)
    judged: dict[str, list[Judged]] = field(default_factory=dict)
    sizes: dict[str, Symbol] = field(default_factory=dict)
    undefined: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    sentences: dict[str, tuple[str, str]] = field(default_factory=dict)
    silent: int = 0
    starts: dict[int, int] = field(default_factory=dict)
    dimensions: dict[tuple[str, str], Int] = field(default_factory=dict)
    stated: Mapping[int, Sequence[tuple[str, onnx.TypeProto]]] = field(default_factory=dict)

    def node(self, n: int) -> Node:
        """A node by number."""
        return self.graph.reading.nodes[n]


def derive(graph: GraphFacts, texts: Library, limits: Limits | None = None, folder: Path | None = None) -> Derivation:
    """Walks a model. limits: the least and the greatest value of sizes by name. folder: where external data lie."""
    walk = Derivation(graph, Run(texts), limits or {}, folder, stated=_stated(graph))
    _inputs(walk)
    examine_graph(walk, 0)
    return walk


def _call_around(path: str) -> str:
    """The call whose function a path lies in, "" outside of functions."""
    return path[: path.rfind("!") + 1]


def _stated(graph: GraphFacts) -> Mapping[int, Sequence[tuple[str, onnx.TypeProto]]]:
    """What the model states of the types of tensors, with the call within which its dimension variables are known."""
    reading = graph.reading
    found: dict[int, dict[tuple[str, bytes], tuple[str, onnx.TypeProto]]] = {}
    for number, g in enumerate(reading.graphs):
        pairs = list(graph.annotations(number))
        pairs += zip((*g.inputs, *g.outputs), (*g.proto.input, *g.proto.output), strict=True)
        for t, value in pairs:
            if t is not None and value.HasField("type"):
                key = _call_around(g.path), value.type.SerializeToString(deterministic=True)
                found.setdefault(t, {}).setdefault(key, (key[0], value.type))
    for t, item in enumerate(reading.tensors):
        if t not in found and item.declared is not None and graph.writers[t]:
            found[t] = {("", b""): (_call_around(item.path), item.declared)}
    return {t: tuple(types.values()) for t, types in found.items()}


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
    if item.declared is None or kind not in ("tensor_type", "sparse_tensor_type"):
        return Open(f"the input {item.name} is declared as {kind or 'nothing'}, no tensor")
    own = item.declared.tensor_type if kind == "tensor_type" else item.declared.sparse_tensor_type
    element = NAMES.get(own.elem_type, "") if own.elem_type else ""
    if not own.HasField("shape"):
        return Tensor(f"t{t}", element, None, reason=f"the input {item.name} is declared without a shape")
    shape = tuple(_dimension(walk, dim, f"{item.name}[{axis}]") for axis, dim in enumerate(own.shape.dim))
    return Tensor(f"t{t}", element, shape)


def _list_of(walk: Derivation, t: int, declared: onnx.TypeProto, name: str) -> Listed:
    """A sequence or an optional by its declaration: a dimension variable is one size for all entries, a size without a
    name differs from entry to entry (ONNX 1.23.2, IR.md, Static tensor shapes)."""
    optional = declared.WhichOneof("value") == "optional_type"
    inner = declared.optional_type.elem_type if optional else declared.sequence_type.elem_type
    length = walk.run.symbol("data", f"t{t}.{name}", 0, 1 if optional else None)
    form: Value
    if inner.WhichOneof("value") in ("sequence_type", "optional_type"):
        form = _list_of(walk, t, inner, f"inner.{name}")
    elif not inner.tensor_type.HasField("shape"):
        form = Tensor("", kind_of(inner), None, reason="the entries are declared without a shape")
    else:
        dims = inner.tensor_type.shape.dim
        open_ = [not dim.dim_param and not (dim.HasField("dim_value") and dim.dim_value >= 0) for dim in dims]
        sizes = tuple(VARIES if o else _dimension(walk, dim, "") for o, dim in zip(open_, dims, strict=True))
        form = Tensor("", kind_of(inner), sizes)
    return Listed(kind_of(declared), length, (form,))


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
        if node.bodies and node.domain == "" and node.op_type in control.BODIES:
            control.BODIES[node.op_type](walk, n)
        else:
            _node(walk, n)
    if not walk.silent:
        ran = set(reached)
        walk.skipped += [n for n in walk.graph.reading.graphs[g].nodes if n not in ran]


def text_of(walk: Derivation, n: int) -> tuple[Operator, int] | None:
    """The text of a node's operator, and the operator's version."""
    node = walk.node(n)
    if node.domain != "" or node.opset is None:
        return None
    version = since(node.op_type, node.opset)
    if version is None:
        return None
    operator = walk.run.library.operator(node.op_type, version)
    return None if operator is None else (operator, version)


def _node(walk: Derivation, n: int) -> None:
    node = walk.node(n)
    try:
        found = text_of(walk, n)
    except TextError as problem:
        found = None
        reason = str(problem)
    else:
        reason = f"the specification does not define {node.op_type} of {node.domain or 'ai.onnx'}"
    if found is None or any(s.kind == "meaning" for s in found[0].statements):
        if not walk.silent:
            walk.undefined.append(n)
        return nothing(walk, n, Open(reason))
    operator, version = found
    inputs = tuple(None if t is None else _value(walk.contents.get(t), t) for t in node.inputs)
    attributes = {**defaults(node.op_type, operator.first, operator.last, version), **written(node.attributes, f"n{n}")}
    present = tuple(t is not None for t in node.outputs)
    site = Site(f"{node.op_type}-{version}", operator, version, inputs, attributes, present)

    def judge(position: int, goal: Goal) -> None:
        note(walk, n, operator, position, goal)

    for t, value in zip(node.outputs, examine(site, walk.run, judge), strict=True):
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


def note(walk: Derivation, n: int, operator: Operator, position: int, goal: Goal) -> None:
    """Notes what a statement of an operator comes to at a node."""
    kind = "require" if position == HEADER else operator.statements[position].kind
    put(walk, n, operator.rule(position), operator.sentence(position), kind, goal)


def put(walk: Derivation, n: int, rule: str, sentence: str, kind: str, goal: Goal) -> None:
    """Notes what a requirement at a node comes to, from what is known by now. A declaration that is never right is
    wrong whether or not the node runs."""
    if not walk.silent and goal is False and rule in SAID:
        walk.sentences.setdefault(rule, (kind, sentence))
        walk.judged.setdefault(rule, []).append(Judged(n, "violated", False))
    elif not walk.silent:
        walk.sentences.setdefault(rule, (kind, sentence))
        walk.judged.setdefault(rule, []).extend(decide(n, goal, walk.run))


def settle(walk: Derivation, n: int, t: int, content: Content) -> None:
    """What is known of a tensor from now on; of an open shape what the model declares."""
    if isinstance(content, Entries | Listed):
        walk.contents[t] = content
        return
    shape = content.shape if isinstance(content, Tensor) else None
    kind = content.kind if isinstance(content, Tensor) else ""
    reason = content if isinstance(content, Open) else Open(content.reason, content.on_data)
    for around, declared in walk.stated.get(t, ()):
        if declared.WhichOneof("value") != "tensor_type":
            continue
        own = declared.tensor_type
        stated = NAMES.get(own.elem_type, "") if own.elem_type else ""
        _typed(walk, n, kind, stated)
        if not own.HasField("shape"):
            continue
        if shape is not None:
            _compare(walk, n, shape, own.shape, around)
            continue
        if reason.data and text_of(walk, n) is not None:
            put(walk, n, SHAPES, SAID[SHAPES], "require", reason)
        shape = tuple(_declared_size(walk, t, axis, dim, around) for axis, dim in enumerate(own.shape.dim))
        kind = kind or stated
    item = walk.graph.reading.tensors[t]
    own_type = None if item.declared is None else item.declared.WhichOneof("value")
    if not kind and item.declared is not None and own_type == "tensor_type" and item.declared.tensor_type.elem_type:
        kind = NAMES.get(item.declared.tensor_type.elem_type, "")
    if isinstance(content, Tensor) and content.shape is not None:
        walk.run.fresh += 1
        walk.contents[t] = replace(content, name=f"t{t}#{walk.run.fresh}", kind=kind, memory={})
    elif shape is not None or kind or isinstance(content, Tensor):
        walk.run.fresh += 1
        walk.contents[t] = Tensor(f"t{t}#{walk.run.fresh}", kind, shape, reason=reason.reason, on_data=reason.data)
    else:
        walk.contents[t] = content


def compared(walk: Derivation, n: int, t: int, content: Content) -> None:
    """Notes whether a tensor that node n gives a value to has the shape and the type that the model declares."""
    for around, declared in walk.stated.get(t, ()):
        if declared.WhichOneof("value") != "tensor_type":
            continue
        own = declared.tensor_type
        if isinstance(content, Open) and not content.data and own.HasField("shape") and text_of(walk, n) is not None:
            put(walk, n, SHAPES, SAID[SHAPES], "require", content)
        if isinstance(content, Tensor):
            _typed(walk, n, content.kind, NAMES.get(own.elem_type, "") if own.elem_type else "")
            if own.HasField("shape") and content.shape is not None:
                _compare(walk, n, content.shape, own.shape, around)
            elif own.HasField("shape") and not content.on_data and text_of(walk, n) is not None:
                put(walk, n, SHAPES, SAID[SHAPES], "require", Open(content.reason))


def _typed(walk: Derivation, n: int, kind: str, stated: str) -> None:
    if kind and stated and text_of(walk, n) is not None:
        put(walk, n, TYPES, SAID[TYPES], "require", kind == stated)


def _declared_size(walk: Derivation, t: int, axis: int, dim: onnx.TensorShapeProto.Dimension, around: str) -> Int:
    """The size that a declaration states."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    known = walk.dimensions.get((around, dim.dim_param)) if dim.dim_param else None
    if known is None:
        known = free(walk, f"t{t}.size.{axis}")
        if dim.dim_param:
            walk.dimensions[around, dim.dim_param] = known
    return known


def _compare(walk: Derivation, n: int, shape: Sequence[Int], declared: onnx.TensorShapeProto, around: str) -> None:
    """Notes whether an output can have the shape that the model declares; a dimension variable is one size."""
    if walk.silent or text_of(walk, n) is None:
        return
    parts: list[Formula] = [len(shape) == len(declared.dim)]
    for size, dim in zip(shape, declared.dim, strict=False):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            parts.append(equal(size, int(dim.dim_value)))
        elif dim.dim_param:
            parts.append(equal(size, walk.dimensions.setdefault((around, dim.dim_param), size)))
    put(walk, n, SHAPES, SAID[SHAPES], "require", both(*parts))


def free(walk: Derivation, name: str) -> Poly:
    """A size that data decide."""
    return walk.run.symbol("data", name, 0)


def nothing(walk: Derivation, n: int, reason: Open) -> None:
    """Nothing is known of the outputs of a node but what the model declares."""
    for t in walk.node(n).outputs:
        if t is not None:
            settle(walk, n, t, reason)


def unexamined(walk: Derivation, g: int, reason: Open) -> None:
    """Notes the requirements of the nodes of a graph, and of the bodies in it, as open."""
    for n in walk.graph.reading.graphs[g].nodes:
        found = text_of(walk, n)
        if found is not None and not walk.silent:
            operator, _ = found
            for position in (
                HEADER,
                *(k for k, s in enumerate(operator.statements) if s.kind in ("require", "restrict")),
            ):
                note(walk, n, operator, position, reason)
        for body in walk.node(n).bodies:
            unexamined(walk, body, reason)
