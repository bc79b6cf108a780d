"""Random small models with If, Loop, Scan, SequenceMap, functions, sequences and optionals: right ones, and wrong ones.

`model(seed)` is right by construction, or was spoilt by one to three of `MISTAKES` (numbers of inputs and outputs,
types, shapes, names, attributes, versions). Nothing here says what the verdict is: the campaign compares judges.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@dataclass(frozen=True)
class Tensor:
    """A type of tensor; a size is a number, or the name of one that is open."""

    element: int
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class SequenceOf:
    """A type of sequence."""

    item: Tensor


@dataclass(frozen=True)
class OptionalOf:
    """A type of optional."""

    item: Tensor


Type = Tensor | SequenceOf | OptionalOf
SCALAR, ONE, COND = Tensor(INT, ()), Tensor(INT, (1,)), Tensor(BOOL, ())
ROW, TABLE, OPEN = Tensor(FLOAT, (3,)), Tensor(FLOAT, (2, 3)), Tensor(FLOAT, ("N", 3))
KINDS: tuple[Type, ...] = (ROW, TABLE, OPEN, TABLE, SCALAR, COND, Tensor(FLOAT, ()), SequenceOf(TABLE))


def proto(kind: Type) -> onnx.TypeProto:
    """The type as ONNX writes it."""
    match kind:
        case Tensor():
            return helper.make_tensor_type_proto(kind.element, list(kind.shape))
        case SequenceOf():
            return helper.make_sequence_type_proto(proto(kind.item))
        case OptionalOf():
            return helper.make_optional_type_proto(proto(kind.item))


@dataclass
class Draft:
    """A graph in the making, and what it sees of the graphs around it."""

    choose: random.Random
    names: Iterator[str]
    functions: list[onnx.FunctionProto]
    depth: int = 0
    outer: list[tuple[str, Type]] = field(default_factory=list)
    own: list[tuple[str, Type]] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    stored: list[TensorProto] = field(default_factory=list)

    def some(self, test: Callable[[Type], bool]) -> tuple[str, Type] | None:
        """A value of such a type, an own one rather than a captured one."""
        for place in (self.own, self.outer):
            found = [it for it in place if test(it[1])]
            if found and (place is self.outer or self.choose.random() < 0.8):
                return self.choose.choice(found)
        return None

    def any(self) -> tuple[str, Type]:
        """A value."""
        return self.some(lambda _: True) or self.constant(np.float32([1, 2, 3]))

    def of(self, kind: Type) -> str:
        """A value of the type; made where there is none."""
        found = self.some(lambda it: it == kind)
        if found is not None:
            return found[0]
        match kind:
            case SequenceOf(item):
                return self.node("SequenceConstruct", [self.of(item)], [kind])[0]
            case OptionalOf(item):
                return self.node("Optional", [self.of(item)], [kind])[0]
            case Tensor(element, shape):
                if any(isinstance(size, str) for size in shape):
                    return self.of(TABLE)
                dtype = helper.tensor_dtype_to_np_dtype(element)
                return self.constant(np.ones([int(size) for size in shape], dtype))[0]

    def constant(self, value: np.ndarray) -> tuple[str, Type]:
        """A stored value: an initializer, or the output of a Constant."""
        kind = Tensor(helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        name = next(self.names)
        if self.choose.random() < 0.5:
            self.stored.append(numpy_helper.from_array(value, name))
            self.own.append((name, kind))
            return name, kind
        self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value)))
        self.own.append((name, kind))
        return name, kind

    def node(
        self, op: str, inputs: Sequence[str], kinds: Sequence[Type], domain: str = "", **attributes: object
    ) -> list[str]:
        """A node; the names of its outputs."""
        outputs = [next(self.names) for _ in kinds]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, domain=domain, **attributes))
        self.own += zip(outputs, kinds, strict=True)
        return outputs

    def inner(
        self, inputs: Sequence[Type], wanted: Sequence[Type | None], plain: bool = False
    ) -> tuple[GraphProto, list[Type]]:
        """A body with such inputs and outputs (None: of any type)."""
        seen = [] if plain else [*self.outer, *self.own]
        body = Draft(self.choose, self.names, self.functions, self.depth + 1, seen)
        formal = [(next(self.names), kind) for kind in inputs]
        body.own += formal
        grow(body, self.choose.randint(0, 5))
        results, kinds = [], []
        for kind in wanted:
            name, found = (
                (body.of(kind), kind)
                if kind is not None
                else body.some(lambda it: isinstance(it, Tensor)) or body.constant(np.float32(1))
            )
            (name,) = body.node("Identity", [name], [found])
            results.append((name, found))
            kinds.append(found)
        nodes = _needed(body.nodes, {name for name, _ in results})
        read = _read(nodes)
        graph = helper.make_graph(
            nodes,
            next(self.names),
            [helper.make_value_info(name, proto(kind)) for name, kind in formal],
            [helper.make_value_info(name, proto(kind)) for name, kind in results],
            [it for it in body.stored if it.name in read],
        )
        return graph, kinds


# ---- Nodes ------------------------------------------------------------------------------------


def _elementwise(draft: Draft) -> None:
    found = draft.some(lambda it: isinstance(it, Tensor) and it.element == FLOAT)
    if found:
        name, kind = found
        if draft.choose.random() < 0.5:
            draft.node(draft.choose.choice(("Relu", "Neg", "Sigmoid", "Identity", "Abs")), [name], [kind])
        else:
            draft.node(draft.choose.choice(("Add", "Mul", "Max")), [name, draft.of(kind)], [kind])


def _shaping(draft: Draft) -> None:
    found = draft.some(lambda it: isinstance(it, Tensor) and it.element == FLOAT and len(it.shape) == 2)
    if not found:
        return
    name, kind = found
    rows, columns = kind.shape  # type: ignore[union-attr]
    match draft.choose.randrange(7):
        case 0:
            draft.node("Transpose", [name], [Tensor(FLOAT, (columns, rows))], perm=[1, 0])
        case 1:
            draft.node("Concat", [name, draft.of(ROW)] if draft.choose.random() < 0.1 else [name, name],
                       [Tensor(FLOAT, (2 * rows if isinstance(rows, int) else "K", columns))], axis=0)  # fmt: skip
        case 2:
            draft.node("MatMul", [name, draft.constant(np.ones((3, 2), np.float32))[0]], [Tensor(FLOAT, (rows, 2))])
        case 3:
            index = (
                draft.of(SCALAR)
                if draft.choose.random() < 0.5
                else draft.constant(np.int64(draft.choose.choice((0, 1, -1, 5))))[0]
            )
            draft.node("Gather", [name, index], [Tensor(FLOAT, (columns,))], axis=0)
        case 4:
            shape = draft.constant(np.int64(draft.choose.choice(([3, 2], [-1], [6], [0, -1], [7]))))[0]
            draft.node("Reshape", [name, shape], [Tensor(FLOAT, ("R",))])
        case 5:
            draft.node("Shape", [name], [Tensor(INT, (2,))])
        case 6:
            draft.node("ReduceSum", [name], [Tensor(FLOAT, ())], keepdims=0)


def _comparing(draft: Draft) -> None:
    found = draft.some(lambda it: it == SCALAR)
    if found:
        draft.node("Less", [found[0], draft.constant(np.int64(3))[0]], [COND])
        draft.node("Add", [found[0], draft.constant(np.int64(1))[0]], [SCALAR])


def _sizes(draft: Draft) -> None:
    match draft.choose.randrange(3):
        case 0:
            draft.node("NonZero", [draft.of(TABLE)], [Tensor(INT, (2, "Z"))])
        case 1:
            start, step = draft.constant(np.int64(0))[0], draft.constant(np.int64(1))[0]
            draft.node("Range", [start, draft.of(SCALAR), step], [Tensor(INT, ("R",))])
        case 2:
            draft.node("Expand", [draft.of(ROW), draft.constant(np.int64([2, 3]))[0]], [TABLE])


def _dropout(draft: Draft) -> None:
    inputs = [draft.of(TABLE)]
    if draft.choose.random() < 0.6:
        inputs.append(draft.constant(np.float32(draft.choose.choice((0, 0.5))))[0])
        if draft.choose.random() < 0.6:
            inputs.append(draft.constant(np.array(draft.choose.random() < 0.4))[0])
    draft.node("Dropout", inputs, [TABLE])


def _sequences(draft: Draft) -> None:
    kind = SequenceOf(TABLE)
    match draft.choose.randrange(6):
        case 0:
            draft.node("SequenceConstruct", [draft.of(TABLE)] * draft.choose.randint(1, 3), [kind])
        case 1:
            index = (
                draft.constant(np.int64(draft.choose.choice((0, -1, 4))))[0]
                if draft.choose.random() < 0.5
                else draft.of(SCALAR)
            )
            draft.node("SequenceAt", [draft.of(kind), index], [TABLE])
        case 2:
            draft.node("SequenceInsert", [draft.of(kind), draft.of(TABLE)], [kind])
        case 3:
            draft.node("SequenceLength", [draft.of(kind)], [SCALAR])
        case 4:
            draft.node("Optional", [draft.of(TABLE)], [OptionalOf(TABLE)])
        case 5:
            found = draft.some(lambda it: isinstance(it, OptionalOf))
            if found:
                draft.node("OptionalGetElement", [found[0]], [TABLE])
                draft.node("OptionalHasElement", [found[0]], [COND])


def _if(draft: Draft) -> None:
    wanted = [draft.choose.choice(KINDS) for _ in range(draft.choose.randint(1, 2))]
    branches = {name: draft.inner([], wanted)[0] for name in ("then_branch", "else_branch")}
    draft.node("If", [draft.of(COND)], wanted, **branches)


def _loop(draft: Draft) -> None:
    states = [draft.choose.choice(KINDS) for _ in range(draft.choose.randint(0, 2))]
    body, kinds = draft.inner([SCALAR, COND, *states], [COND, *states, *[None] * draft.choose.randint(0, 1)])
    scanned = [Tensor(it.element, ("T", *it.shape)) for it in kinds[1 + len(states) :] if isinstance(it, Tensor)]
    trips = (
        ""
        if draft.choose.random() < 0.1
        else draft.constant(np.int64(draft.choose.choice((0, 1, 2))))[0]
        if draft.choose.random() < 0.8
        else draft.of(SCALAR)
    )
    cond = draft.of(COND) if draft.choose.random() < 0.5 or not trips else ""
    if kinds := [*states, *scanned]:
        draft.node("Loop", [trips, cond, *map(draft.of, states)], kinds, body=body)


def _scan(draft: Draft) -> None:
    states = [draft.choose.choice((ROW, Tensor(FLOAT, ()))) for _ in range(draft.choose.randint(0, 2))]
    body, kinds = draft.inner([*states, ROW], [*states, *[None] * draft.choose.randint(0 if states else 1, 1)])
    scanned = [Tensor(it.element, (2, *it.shape)) for it in kinds[len(states) :] if isinstance(it, Tensor)]
    draft.node("Scan", [*map(draft.of, states), draft.of(TABLE)], [*states, *scanned], body=body, num_scan_inputs=1)


def _map(draft: Draft) -> None:
    extra = [draft.choose.choice((ROW, SCALAR)) for _ in range(draft.choose.randint(0, 1))]
    body, kinds = draft.inner([TABLE, *extra], [draft.choose.choice((TABLE, ROW))])
    draft.node(
        "SequenceMap",
        [draft.of(SequenceOf(TABLE)), *map(draft.of, extra)],
        [SequenceOf(it) for it in kinds if isinstance(it, Tensor)],
        body=body,
    )


def _call(draft: Draft) -> None:
    inputs = [draft.choose.choice(KINDS) for _ in range(draft.choose.randint(0, 2))]
    body, kinds = draft.inner(inputs, [draft.choose.choice(KINDS)], plain=True)
    name = next(draft.names)
    nodes = [helper.make_node("Constant", [], [it.name], value=it) for it in body.initializer] + list(body.node)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    draft.functions.append(
        helper.make_function(
            "local", name, [it.name for it in body.input], [it.name for it in body.output], nodes, imports
        )
    )
    draft.node(name, list(map(draft.of, inputs)), kinds, domain="local")


PLAIN = (_elementwise, _elementwise, _shaping, _shaping, _comparing, _sizes, _dropout, _sequences, _sequences)
HOLDING = (_if, _if, _loop, _loop, _scan, _map, _call)


def grow(draft: Draft, count: int) -> None:
    """Adds so many nodes, a third of them with bodies, as long as bodies do not nest too deep."""
    for _ in range(count):
        holding = draft.depth < 2 and draft.choose.random() < 0.4
        draft.choose.choice(HOLDING if holding else PLAIN)(draft)


# ---- Mistakes ---------------------------------------------------------------------------------


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _places(made: onnx.ModelProto, choose: random.Random) -> tuple[GraphProto, NodeProto | None]:
    """A graph, a body rather than the main one, and a node of it."""
    graphs = list(_graphs(made.graph))
    graph = choose.choice(graphs[1:] or graphs) if choose.random() < 0.7 else choose.choice(graphs)
    holders = [it for it in graph.node if any(a.type == AttributeProto.GRAPH for a in it.attribute)]
    pool = holders if holders and choose.random() < 0.5 else list(graph.node)
    return graph, choose.choice(pool) if pool else None


def _drop(items: object, choose: random.Random) -> None:
    if len(items):  # type: ignore[arg-type]
        del items[choose.randrange(len(items))]  # type: ignore[arg-type,index,attr-defined]


def _value(graph: GraphProto, choose: random.Random) -> onnx.ValueInfoProto | None:
    pool = [*graph.input, *graph.output]
    return choose.choice(pool) if pool else None


def _other_type(graph: GraphProto, choose: random.Random) -> None:
    if (value := _value(graph, choose)) is not None:
        value.type.CopyFrom(proto(choose.choice((*KINDS, OptionalOf(TABLE)))))


def _other_size(graph: GraphProto, choose: random.Random) -> None:
    value = _value(graph, choose)
    if value is not None and len(value.type.tensor_type.shape.dim):
        dim = choose.choice(value.type.tensor_type.shape.dim)
        if choose.random() < 0.5:
            dim.dim_value = choose.randint(1, 7)
        else:
            dim.dim_param = choose.choice("NMR")


def _rename(items: object, index: int, name: str) -> None:
    items[index] = name  # type: ignore[index]


def _spoil(made: onnx.ModelProto, choose: random.Random) -> str:
    """Makes one mistake, if there is room for it; its name."""
    graph, node = _places(made, choose)
    names = [*(it.name for it in graph.input), *(name for it in graph.node for name in it.output), "nowhere", ""]
    kind = choose.choice(MISTAKES)
    match kind:
        case "a body output less":
            _drop(graph.output, choose)
        case "a body output more":
            if graph.output:
                graph.output.append(choose.choice(graph.output))
        case "a body input less":
            _drop(graph.input, choose)
        case "a body input more":
            graph.input.append(helper.make_value_info(f"more{choose.randrange(9)}", proto(choose.choice(KINDS))))
        case "another declared type":
            _other_type(graph, choose)
        case "another declared size":
            _other_size(graph, choose)
        case "no declared type":
            if (value := _value(graph, choose)) is not None:
                value.ClearField("type")
        case "an output renamed":
            if graph.output:
                choose.choice(graph.output).name = choose.choice(names)
        case "a node less":
            _drop(graph.node, choose)
        case "a stored value less":
            _drop(graph.initializer, choose)
        case "another version":
            made.opset_import[0].version = choose.choice((9, 12, 13, 15, 18, 22, 24))
        case "a function's output less" if made.functions:
            _drop(choose.choice(made.functions).output, choose)
        case "a function's input less" if made.functions:
            _drop(choose.choice(made.functions).input, choose)
        case _ if node is None:
            pass
        case "a node output more":
            node.output.append(f"extra{choose.randrange(9)}")
        case "a node output less":
            _drop(node.output, choose)
        case "a node input more":
            node.input.append(choose.choice(names))
        case "a node input less":
            _drop(node.input, choose)
        case "another input" if node.input:
            _rename(node.input, choose.randrange(len(node.input)), choose.choice(names))
        case "another output name" if node.output:
            _rename(node.output, choose.randrange(len(node.output)), choose.choice(names))
        case "an attribute less":
            _drop(node.attribute, choose)
        case "an attribute more":
            node.attribute.append(helper.make_attribute("colour", 3))
        case "another attribute" if node.attribute:
            found = choose.choice(node.attribute)
            if found.type == AttributeProto.INT:
                found.i = choose.choice((-7, -1, 0, 1, 2, 9))
            elif found.type == AttributeProto.INTS:
                found.ints.append(choose.randint(-1, 2))
        case "another operator":
            node.op_type = choose.choice(("Relu", "Add", "Not", "Identity", "SequenceAt", "If", "Loop", "Nothing"))
        case "branches swapped with a body":
            for attribute in node.attribute:
                attribute.name = {"then_branch": "else_branch", "body": "then_branch"}.get(
                    attribute.name, attribute.name
                )
        case _:
            pass
    return kind


MISTAKES = (
    "a body output less", "a body output more", "a body input less", "a body input more", "another declared type",
    "another declared size", "no declared type", "an output renamed", "a node less", "a stored value less",
    "another version", "a function's output less", "a function's input less", "a node output more",
    "a node output less", "a node input more", "a node input less", "another input", "another output name",
    "an attribute less", "an attribute more", "another attribute", "another operator", "branches swapped with a body",
)  # fmt: skip


# ---- Models -----------------------------------------------------------------------------------


def model(seed: int) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """The model of a seed and the mistakes that were made in it."""
    choose = random.Random(seed)
    names = (f"v{number}" for number in iter(range(10**6)))
    draft = Draft(choose, names, [])
    given = [(next(names), choose.choice(KINDS)) for _ in range(choose.randint(1, 3))]
    draft.own += given
    grow(draft, choose.randint(1, 4))
    if not any(attribute.type == AttributeProto.GRAPH for node in draft.nodes for attribute in node.attribute):
        choose.choice(HOLDING)(draft)
    read = _read(draft.nodes)
    made = {name for node in draft.nodes for name in node.output}
    constants = {node.output[0] for node in draft.nodes if node.op_type == "Constant"}
    sinks = [it for it in draft.own if it[0] in made - read - constants] or draft.own[-1:]
    for name, kind in given:
        if name not in read:
            sinks.append((draft.node("Identity", [name], [kind])[0], kind))
    loose = choose.random() < 0.5
    shared = seed % 2 == 0
    outputs = [(name, _loosened(kind, 0 if shared else k) if loose else kind) for k, (name, kind) in enumerate(sinks)]
    graph = helper.make_graph(
        _needed(draft.nodes, {name for name, _ in sinks}),
        "random",
        [helper.make_value_info(name, proto(kind)) for name, kind in given],
        [helper.make_value_info(name, proto(kind)) for name, kind in outputs],
        [it for it in draft.stored if it.name in read or it.name in dict(sinks)],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    result = helper.make_model(graph, opset_imports=imports, functions=draft.functions, ir_version=10)
    mistakes = tuple(_spoil(result, choose) for _ in range(choose.choice((0, 0, 1, 1, 1, 2, 3))))
    return result, mistakes


def _needed(nodes: Sequence[NodeProto], wanted: set[str]) -> list[NodeProto]:
    """The nodes without which the values wanted are not computed: no dead ones."""
    kept: list[NodeProto] = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted = wanted | _read([node])
    return kept[::-1]


def _read(nodes: Sequence[NodeProto]) -> set[str]:
    return {name for node in nodes for name in node.input} | _captured(nodes)


def _captured(nodes: Sequence[NodeProto]) -> set[str]:
    bodies = [a.g for node in nodes for a in node.attribute if a.type == AttributeProto.GRAPH]
    inner = [graph for body in bodies for graph in _graphs(body)]
    return {name for it in inner for node in it.node for name in node.input} | {
        o.name for it in inner for o in it.output
    }


def _loosened(kind: Type, number: int) -> Type:
    """The type with all sizes open, named after the size, the axis and a number."""
    match kind:
        case Tensor(element, shape):
            return Tensor(element, tuple(f"{size}_{axis}_{number}" for axis, size in enumerate(shape)))
        case _:
            return kind
