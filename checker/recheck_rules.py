"""The rechecker's own judgement of each constraint: a small function over the facts of a model, keyed by its name.

A function yields an `Instance` for every place where the constraint fails or where the model leaves it open; none
means that it holds. The order is that of the constraint's quantifiers, nodes and tensors in document order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import onnx

from .recheck_facts import Facts, actual, determinism, operator, schema_of
from .recheck_reader import Node
from .recheck_walks import executable, founded, reaching, valued


@dataclass(frozen=True, slots=True)
class Instance:
    """One place: the variables of the constraint with their sort (Node, Tensor, Graph, Function, Text) and element."""

    bindings: tuple[tuple[str, str, int | str], ...]
    fails: bool = True


Judge = Callable[[Facts], Iterable[Instance]]


def _tensor(t: int) -> Instance:
    return Instance((("t", "Tensor", t),))


def _node(n: int) -> Instance:
    return Instance((("n", "Node", n),))


def _pair(n: int, t: int) -> Instance:
    return Instance((("n", "Node", n), ("t", "Tensor", t)))


# ---- Single assignment and its completions ------------------------------------------------------


def single_assignment(f: Facts) -> Iterator[Instance]:
    """Neither input nor stored, and not written by exactly one position."""
    return (_tensor(t) for t in f.order if t not in f.inputs and t not in f.stored and len(f.ports[t]) != 1)


def no_write_to_input(f: Facts) -> Iterator[Instance]:
    """An input that is written."""
    return (_tensor(t) for t in f.order if t in f.inputs and f.ports[t])


def no_write_to_initializer(f: Facts) -> Iterator[Instance]:
    """A stored tensor that is written."""
    return (_tensor(t) for t in f.order if t in f.stored and f.ports[t])


def output_positions(f: Facts) -> Iterator[Instance]:
    """A tensor at two positions of one node."""
    for n, node in enumerate(f.reading.nodes):
        if len(f.writes[n]) != sum(t is not None for t in node.outputs):
            yield from (_pair(n, t) for t in f.writes[n] if node.outputs.count(t) > 1)


def unique_names(f: Facts) -> Iterator[Instance]:
    """Listed twice, or the name of a tensor of a graph around."""
    graphs = f.reading.graphs
    inputs = Counter(t for graph in graphs for t in graph.inputs)
    stored = Counter(t for graph in graphs for t in graph.initializers)
    for t in f.order:
        if inputs[t] > 1 or stored[t] > 1 or _shadows(f, t):
            yield _tensor(t)


def _shadows(f: Facts, t: int) -> bool:
    tensor = f.reading.tensors[t]
    around = f.reading.graphs[tensor.graph].parent
    while around is not None:
        if tensor.name in f.reading.graphs[around].names:
            return True
        around = f.reading.graphs[around].parent
    return False


# ---- Inputs and outputs -------------------------------------------------------------------------


def input_usage(f: Facts) -> Iterator[Instance]:
    """An input of the main graph that nothing reads."""
    return (_tensor(t) for t in _each(f.reading.graphs[0].inputs) if not f.readers[t])


def sourced(f: Facts) -> Iterator[Instance]:
    """A read tensor that has no source."""
    for n, reads in enumerate(f.reads):
        for t in reads:
            if not f.ports[t] and t not in f.inputs and t not in f.stored:
                yield _pair(n, t)


def graph_has_output(f: Facts) -> Iterator[Instance]:
    """The main graph without outputs."""
    if not f.reading.graphs[0].outputs:
        yield Instance(())


def node_has_output(f: Facts) -> Iterator[Instance]:
    """A node without outputs."""
    return (_node(n) for n, writes in enumerate(f.writes) if not writes)


def graph_output_is_node_output(f: Facts) -> Iterator[Instance]:
    """An output of the main graph that no node writes."""
    return (_tensor(t) for t in _each(f.reading.graphs[0].outputs) if not f.ports[t])


def output_usage(f: Facts) -> Iterator[Instance]:
    """An output of a node that goes nowhere."""
    for n, writes in enumerate(f.writes):
        for t in writes:
            if not f.readers[t] and t not in f.outputs:
                yield _pair(n, t)


def node_connected(f: Facts) -> Iterator[Instance]:
    """A node all of whose outputs go nowhere."""
    return (_node(n) for n, writes in enumerate(f.writes) if not any(f.readers[t] or t in f.outputs for t in writes))


def tensor_usage(f: Facts) -> Iterator[Instance]:
    """A tensor that goes nowhere, inputs of bodies excepted."""
    for t in f.order:
        formal = t in f.inputs and f.reading.tensors[t].graph != 0
        if not f.readers[t] and t not in f.outputs and not formal:
            yield _tensor(t)


def _each(listed: Iterable[int]) -> Iterable[int]:
    return dict.fromkeys(listed)


# ---- Order and completeness ---------------------------------------------------------------------


def acyclic(f: Facts) -> Iterator[Instance]:
    """A node that no topological order reaches."""
    done = set(founded(f))
    return (_node(n) for n in range(len(f.reads)) if n not in done)


def completeness(f: Facts) -> Iterator[Instance]:
    """An output of the main graph that gets no value."""
    has = valued(f, executable(f))
    return (_tensor(t) for t in _each(f.reading.graphs[0].outputs) if t not in has)


def contributes(f: Facts) -> Iterator[Instance]:
    """A node from which no path leads to an output."""
    return (_node(n) for n, d in enumerate(reaching(f, forward=True)) if d is None)


def on_input_path(f: Facts) -> Iterator[Instance]:
    """A node that no path from an input to an output passes."""
    after, before = reaching(f, forward=True), reaching(f, forward=False)
    return (_node(n) for n in range(len(f.reads)) if after[n] is None or before[n] is None)


# ---- Operators, functions, branches -------------------------------------------------------------

DETERMINISTIC = frozenset(
    ["If", "Loop", "Scan", "SequenceMap", "AffineGrid", "CausalConvWithState", "LinearAttention"]
    + ["DepthToSpace", "SpaceToDepth"]
)


def deterministic(f: Facts) -> Iterator[Instance]:
    """A node whose operator is not deterministic, or not known to be."""
    for n, node in enumerate(f.reading.nodes):
        answer = _deterministic(f, node)
        if answer is not True:
            yield Instance((("n", "Node", n),), fails=answer is False)


def _deterministic(f: Facts, node: Node) -> bool | None:
    name = operator(node)
    if name in DETERMINISTIC:
        return True
    if name in ("Dropout", "BatchNormalization"):
        training = _training(f, node, name)
        return None if training is None else not training
    return None if schema_of(node) is None else determinism(node) == "deterministic"


def _training(f: Facts, node: Node, name: str) -> bool | None:
    found = schema_of(node)
    if found is None:
        return None
    if found.since_version < 7:
        return _integer(node, "is_test", 0) == 0
    if name == "BatchNormalization":
        if found.since_version < 14:
            return actual(node, "mean", output=True) is not None
        return _integer(node, "training_mode", 0) != 0
    if found.since_version < 12:
        return False
    mode = actual(node, "training_mode")
    if mode is None:
        return False
    value = _flag(f, mode)
    return None if value is None else value != 0


def _integer(node: Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.i


def _flag(f: Facts, t: int) -> int | None:
    """The first element of a small constant of booleans or integers, None when the model does not fix it."""
    stored = f.reading.tensors[t].stored
    if stored is None and len(f.ports[t]) == 1:
        producer = f.reading.nodes[f.ports[t][0][0]]
        if operator(producer) == "Constant" and "value" in producer.attributes:
            stored = producer.attributes["value"].t
    if stored is None or (t in f.inputs and t in f.stored):
        return None
    if not (stored.raw_data or stored.int32_data or stored.int64_data):
        return None
    values = onnx.numpy_helper.to_array(stored).reshape(-1)
    return int(values[0]) if values.size else None


def function_resolution(f: Facts) -> Iterator[Instance]:
    """A node of a domain with functions that is none of them and that ONNX does not know."""
    domains = {domain for domain, _, _ in f.reading.functions}
    for n, node in enumerate(f.reading.nodes):
        if node.domain in domains and schema_of(node) is None:
            yield _node(n)


def unique_functions(f: Facts) -> Iterator[Instance]:
    """A function that is defined twice."""
    found = Counter(f.reading.functions)
    return (Instance((("f", "Function", k),)) for k, key in enumerate(found) if found[key] > 1)


SUBSET = frozenset([
    "Abs", "Add", "Cast", "Clip", "Concat", "Constant", "ConstantOfShape", "Conv", "ConvTranspose", "Div", "Equal",
    "Erf", "Exp", "Expand", "Flatten", "GRU", "Gather", "Gemm", "GlobalAveragePool", "HardSwish", "Identity", "LSTM",
    "LeakyRelu", "Less", "Log", "MatMul", "Max", "MaxPool", "Min", "Mod", "Mul", "Neg", "Not", "Pad", "Pow", "Range",
    "ReduceMean", "ReduceSum", "Relu", "Reshape", "Resize", "ScatterND", "Shape", "Sigmoid", "Slice", "Softplus",
    "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Tanh", "Transpose", "Unsqueeze", "Where", "ArgMax",
    "BatchNormalization", "ConvInteger", "QuantizeLinear", "DequantizeLinear", "Acos", "Asin", "Atan", "Sin",
])
CONTROL_FLOW = frozenset(["If", "Loop", "Scan", "SequenceMap"])
TRAINING = frozenset(
    ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]
    + [f"ai.onnx.preview.training::{name}" for name in ("Adagrad", "Adam", "Gradient", "Momentum")]
)


def _by_operator(fails: Callable[[str], bool]) -> Judge:
    def judge(f: Facts) -> Iterator[Instance]:
        return (_node(n) for n, node in enumerate(f.reading.nodes) if fails(operator(node)))

    return judge


def known_operator(f: Facts) -> Iterator[Instance]:
    """A node whose operator ONNX does not know."""
    return (_node(n) for n, node in enumerate(f.reading.nodes) if schema_of(node) is None)


JUDGES: Mapping[str, Judge] = {
    "SingleAssignment": single_assignment,
    "NoWriteToInput": no_write_to_input,
    "NoWriteToInitializer": no_write_to_initializer,
    "OutputPositions": output_positions,
    "UniqueNames": unique_names,
    "InputUsage": input_usage,
    "Sourced": sourced,
    "GraphHasOutput": graph_has_output,
    "NodeHasOutput": node_has_output,
    "GraphOutputIsNodeOutput": graph_output_is_node_output,
    "OutputUsage": output_usage,
    "NodeConnected": node_connected,
    "TensorUsage": tensor_usage,
    "Acyclic": acyclic,
    "Completeness": completeness,
    "Contributes": contributes,
    "OnInputPath": on_input_path,
    "Deterministic": deterministic,
    "FunctionResolution": function_resolution,
    "UniqueFunctions": unique_functions,
    "InSubset": _by_operator(lambda name: name not in SUBSET),
    "NoControlFlow": _by_operator(lambda name: name in CONTROL_FLOW),
    "InferenceOnly": _by_operator(lambda name: name in TRAINING),
    "KnownOperator": known_operator,
}
