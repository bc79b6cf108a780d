"""The derivations of a model so far, and what a walk over its nodes notes.

Here are the notes; `walk` goes through the nodes, `control` through those that hold graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

import onnx

from ..facts import Facts as GraphFacts
from ..paths import operator as spelled
from ..reader import Node
from .deciding import Judged, decide
from .formulas import Formula, Int, Poly, Symbol, both, equal
from .lists import NAMES
from .node import HEADER, Goal
from .proving import MOST
from .schema import guest, in_force
from .text import Operator
from .values import Entries, Listed, Open, Run, Tensor

SHAPES, TYPES, SIZES = "shapes", "types", "sizes"
"""The rules that outputs have the shapes, and the element types, which the model declares, and that sizes are small."""
SAID = {
    SHAPES: "Outputs have the shapes that the model declares.",
    TYPES: "Outputs have the element types that the model declares.",
    SIZES: "No tensor has 2^48 elements, and no size of one is so large.",
}

Content = Tensor | Entries | Listed | Open
Limits = Mapping[str, tuple[int, int | None]]


@dataclass(slots=True)
class Derivation:
    """The derivations of a model. contents: by tensor. judged: by rule, in the order of the nodes.

    sizes: the symbolic sizes of the inputs, by what the model calls them. undefined: nodes whose operator no text
    defines. skipped: nodes that never run. sentences: what the rules say. starts: how many names there were before the
    bodies of a node. dimensions: what the dimension variables of the model stand for, each with the call within which
    it is known. stated: the types that the model states of tensors. follow: goes through a graph, as
    `walk.examine_graph` does; a node that holds graphs asks for that.
    """

    graph: GraphFacts
    run: Run
    limits: Limits
    follow: Callable[[Derivation, int], None]
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


def text_of(walk: Derivation, n: int) -> tuple[Operator, int] | None:
    """The text of a node's operator, and the operator's version."""
    node = walk.node(n)
    library = walk.run.library
    name = guest(library, node.domain, node.op_type) or spelled(node.domain, node.op_type)
    return None if node.opset is None else in_force(library, name, node.opset)


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
    """The content of a tensor from now on; of an open shape what the model declares."""
    if isinstance(content, Entries | Listed):
        compared(walk, n, t, content)
        walk.contents[t] = content
        return
    shape = content.shape if isinstance(content, Tensor) else None
    sized(walk, n, content)
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
        if not isinstance(content, Open):
            _typed(walk, n, content.kind, NAMES.get(own.elem_type, "") if own.elem_type else "")
        if isinstance(content, Tensor):
            if own.HasField("shape") and content.shape is not None:
                _compare(walk, n, content.shape, own.shape, around)
            elif own.HasField("shape") and not content.on_data and text_of(walk, n) is not None:
                put(walk, n, SHAPES, SAID[SHAPES], "require", Open(content.reason))


def _typed(walk: Derivation, n: int, kind: str, stated: str) -> None:
    if kind and stated and text_of(walk, n) is not None:
        put(walk, n, TYPES, SAID[TYPES], "require", kind == stated)


def sized(walk: Derivation, n: int, content: Content | None) -> None:
    """Notes a tensor that node n gives, or that a caller gives to it, and that is larger than what is derived here."""
    shape = content.shape if isinstance(content, Tensor) else None
    fixed = [size for size in shape or () if isinstance(size, int)]
    whole = shape is not None and len(fixed) == len(shape)
    if text_of(walk, n) is not None and (any(size >= MOST for size in fixed) or (whole and prod(fixed) >= MOST)):
        put(walk, n, SIZES, SAID[SIZES], "require", False)


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
        text = text_of(walk, n)
        if text is not None and not walk.silent:
            operator, _ = text
            for position in (
                HEADER,
                *(k for k, s in enumerate(operator.statements) if s.kind in ("require", "restrict")),
            ):
                note(walk, n, operator, position, reason)
        for body in walk.node(n).bodies:
            unexamined(walk, body, reason)
