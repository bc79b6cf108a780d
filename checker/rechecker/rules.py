"""The rechecker's own judgement of each constraint: a small function over the facts of a model, keyed by its name.

A function yields an `Instance` for every place where the constraint fails or where the model leaves it open; none
means that it holds. The order is that of the constraint's quantifiers, nodes and tensors in document order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx

from . import defaults, judged_onnx, judged_operators, types
from .facts import Facts, scope_of
from .places import Instance, Judge, node_place, port_place, tensor_place, text_place
from .schema import SINGLE, VARIADIC, operator, schema_of
from .types import element_type
from .walks import executable, founded, reaching, valued

# ---- Single assignment and its completions ------------------------------------------------------


def single_assignment(f: Facts) -> Iterator[Instance]:
    """Neither input nor stored, and not written by exactly one position."""
    exempt = f.inputs | f.stored
    return (tensor_place(t) for t, ports in enumerate(f.ports) if len(ports) != 1 and t not in exempt)


def no_write_to_input(f: Facts) -> Iterator[Instance]:
    """An input that is written."""
    return (tensor_place(t) for t in range(len(f.ports)) if t in f.inputs and f.ports[t])


def no_write_to_initializer(f: Facts) -> Iterator[Instance]:
    """A stored tensor that is written."""
    return (tensor_place(t) for t in range(len(f.ports)) if t in f.stored and f.ports[t])


def output_positions(f: Facts) -> Iterator[Instance]:
    """A tensor at two positions of one node."""
    for n, node in enumerate(f.reading.nodes):
        if len(f.writes[n]) != sum(t is not None for t in node.outputs):
            yield from (port_place(n, t) for t in f.writes[n] if node.outputs.count(t) > 1)


def unique_names(f: Facts) -> Iterator[Instance]:
    """Listed twice, or the name of a tensor of a graph around."""
    graphs = f.reading.graphs
    inputs = Counter(t for graph in graphs for t in graph.inputs)
    stored = Counter(t for graph in graphs for t in graph.initializers)
    for t in range(len(f.ports)):
        if inputs[t] > 1 or stored[t] > 1 or _shadows(f, t):
            yield tensor_place(t)


def _shadows(f: Facts, t: int) -> bool:
    tensor = f.reading.tensors[t]
    scope = f.outer.get(scope_of(tensor)) if f.outer else None
    while scope is not None and (scope, tensor.name) not in f.names:
        scope = f.outer.get(scope)
    return scope is not None


# ---- Inputs and outputs -------------------------------------------------------------------------


def input_usage(f: Facts) -> Iterator[Instance]:
    """An input of the main graph that nothing reads."""
    return (tensor_place(t) for t in _each(f.reading.graphs[0].inputs) if not f.readers[t])


def sourced(f: Facts) -> Iterator[Instance]:
    """A read tensor that has no source."""
    for n, reads in enumerate(f.reads):
        for t in reads:
            if not f.ports[t] and t not in f.inputs and t not in f.stored:
                yield port_place(n, t)


def graph_has_output(f: Facts) -> Iterator[Instance]:
    """The main graph without outputs."""
    if not f.reading.graphs[0].outputs:
        yield Instance()


def node_has_output(f: Facts) -> Iterator[Instance]:
    """A node without outputs."""
    return (node_place(n) for n, writes in enumerate(f.writes) if not writes)


def graph_output_is_node_output(f: Facts) -> Iterator[Instance]:
    """An output of the main graph that no node writes."""
    return (tensor_place(t) for t in _each(f.reading.graphs[0].outputs) if not f.ports[t])


def output_usage(f: Facts) -> Iterator[Instance]:
    """An output of a node that goes nowhere."""
    for n, writes in enumerate(f.writes):
        for t in writes:
            if not f.readers[t] and t not in f.outputs:
                yield port_place(n, t)


def node_connected(f: Facts) -> Iterator[Instance]:
    """A node all of whose outputs go nowhere."""
    goes = [bool(readers) or t in f.outputs for t, readers in enumerate(f.readers)]
    return (node_place(n) for n, writes in enumerate(f.writes) if not any(goes[t] for t in writes))


def tensor_usage(f: Facts) -> Iterator[Instance]:
    """A tensor that goes nowhere, inputs of bodies excepted."""
    for t in range(len(f.ports)):
        formal = t in f.inputs and f.reading.tensors[t].graph != 0
        if not f.readers[t] and t not in f.outputs and not formal:
            yield tensor_place(t)


def _each(listed: Iterable[int]) -> Iterable[int]:
    return dict.fromkeys(listed)


# ---- Order and completeness ---------------------------------------------------------------------


def acyclic(f: Facts) -> Iterator[Instance]:
    """A node that no topological order reaches."""
    done = set(founded(f))
    return (node_place(n) for n in range(len(f.reads)) if n not in done)


def completeness(f: Facts) -> Iterator[Instance]:
    """An output of the main graph that gets no value."""
    has = valued(f, executable(f))
    return (tensor_place(t) for t in _each(f.reading.graphs[0].outputs) if t not in has)


def contributes(f: Facts) -> Iterator[Instance]:
    """A node from which no path leads to an output."""
    return (node_place(n) for n, d in enumerate(reaching(f, forward=True)) if d is None)


def on_input_path(f: Facts) -> Iterator[Instance]:
    """A node that no path from an input to an output passes."""
    after, before = reaching(f, forward=True), reaching(f, forward=False)
    return (node_place(n) for n in range(len(f.reads)) if after[n] is None or before[n] is None)


# ---- Operators, functions, branches -------------------------------------------------------------


def function_resolution(f: Facts) -> Iterator[Instance]:
    """A node of a domain with functions that is none of them and that ONNX does not know."""
    known = set(f.reading.functions)
    domains = {domain for domain, _, _ in known}
    for n, node in enumerate(f.reading.nodes):
        called = (node.domain, node.op_type, node.overload) in known
        if node.domain in domains and not called and schema_of(node) is None:
            yield node_place(n)


def no_omitted_port(f: Facts) -> Iterator[Instance]:
    """A node that leaves out an input or output which its operator has, a variadic one aside."""
    for n, node in enumerate(f.reading.nodes):
        schema = schema_of(node)
        if schema is None:
            yield node_place(n, fails=False)
        elif _omits(schema.inputs, node.inputs) or _omits(schema.outputs, node.outputs):
            yield node_place(n)


def _omits(formals: Sequence[onnx.defs.OpSchema.FormalParameter], listed: Sequence[int | None]) -> bool:
    given = [*listed, *[None] * len(formals)]
    return any(t is None and formal.option != VARIADIC for formal, t in zip(formals, given, strict=False))


def branches_agree(f: Facts) -> Iterator[Instance]:
    """An If whose branches differ in the number or element types of their outputs."""
    for n, node in enumerate(f.reading.nodes):
        if operator(node) == "If":
            branches = [f.reading.graphs[body].outputs for body in node.bodies]
            if len({len(outputs) for outputs in branches}) > 1 or any(
                len({element_type(f, t) for t in position}) > 1 for position in zip(*branches, strict=True)
            ):
                yield node_place(n)


def ports_counted(f: Facts) -> Iterator[Instance]:
    """A node with more or fewer inputs or outputs than its schema admits."""
    for n, node in enumerate(f.reading.nodes):
        schema = schema_of(node)
        if schema is not None and not schema.deprecated:
            inputs = schema.min_input <= len(node.inputs) <= schema.max_input
            if not inputs or not schema.min_output <= len(node.outputs) <= schema.max_output:
                yield node_place(n)


def required_ports_present(f: Facts) -> Iterator[Instance]:
    """A required input or output that is listed with an empty name."""
    for n, node in enumerate(f.reading.nodes):
        schema = schema_of(node) if None in node.inputs or None in node.outputs else None
        if schema is not None and not schema.deprecated:
            for formals, listed in ((schema.inputs, node.inputs), (schema.outputs, node.outputs)):
                for formal, t in zip(formals, listed, strict=False):
                    if t is None and formal.option == SINGLE:
                        yield text_place(n, formal.name)


def unique_functions(f: Facts) -> Iterator[Instance]:
    """A function that is defined twice."""
    found = Counter(f.reading.functions)
    return (Instance((("Function", k),)) for k, key in enumerate(found) if found[key] > 1)


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
    "FunctionResolution": function_resolution,
    "UniqueFunctions": unique_functions,
    "BranchesAgree": branches_agree,
    "NoOmittedPort": no_omitted_port,
    "PortsCounted": ports_counted,
    "RequiredPortsPresent": required_ports_present,
    **judged_operators.JUDGES,
    **defaults.JUDGES,
    **types.JUDGES,
    **judged_onnx.JUDGES,
}
