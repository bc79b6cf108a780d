"""Node by node: what an engine gave for each node, judged on the values which the engine itself fed that node.

So each node's own error is seen, not what the nodes before it did wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sonnx.semantics.model.graph import Model, NodeId, TensorId
from sonnx.semantics.model.path import operator_text
from sonnx.semantics.model.schemas import normal_domain
from sonnx.semantics.model.stored import array_of
from sonnx.semantics.model.values import Value
from sonnx.semantics.operators.application import Application, Program, initializers
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.resources.process import OutOfBudget
from sonnx.semantics.runtimes.engines.protocol import Failure, Kind, Values
from sonnx.semantics.runtimes.engines.sources import model_of
from sonnx.semantics.runtimes.engines.tapping import single

from .chaining import chained
from .judging import Judged, Undefined, applied, judge, within
from .specified import Specified


@dataclass(frozen=True, slots=True)
class NodeJudged:
    """One node of the main graph in one engine. outputs: by the names of tensors.

    undecided: why nothing was judged, "" where something was. stuck: the specification is not defined on these inputs.
    application: what was judged, where it is one. inputs: the names of what it reads, by position. positions: of the
    outputs by name.
    """

    path: str
    operator: str
    outputs: tuple[tuple[str, Judged], ...] = ()
    undecided: str = ""
    stuck: bool = False
    application: Application | None = None
    inputs: tuple[str, ...] = ()
    positions: Mapping[str, int] = field(default_factory=dict)


def judged_nodes(content: bytes, values: Values, specified: Specified | None = None) -> Iterator[NodeJudged]:
    """The nodes of the main graph in an order of execution. content: the model whose tensors the engine showed, its
    calls expanded. values: all that are known, by name; a node that lacks one is undecided. specified: what is known
    of the same case already."""
    model = model_of(content)
    program = Program(model, ieee.apply)
    constants = stored(model)
    known: dict[TensorId, Value] = {}
    for t, tensor in enumerate(model.tensors):
        if tensor.graph == 0 and tensor.name in values:
            known[t] = values[tensor.name]
        elif t in constants:
            known[t] = constants[t]
    for n in program.order(0):
        yield _judged(program, content, n, known, specified)


def _judged(
    program: Program, content: bytes, n: NodeId, known: Mapping[TensorId, Value], specified: Specified | None
) -> NodeJudged:
    model = program.model
    node = model.nodes[n]
    operator = f"{operator_text(node.domain, node.op_type)}-{node.version}"
    lacking = [t for t in (*program.reads[n], *program.writes[n]) if t not in known]
    if lacking:
        name = model.tensors[lacking[0]].name
        return NodeJudged(node.path, operator, undecided=f"the engine shows no value of {name!r}")
    if node.bodies:
        return _with_body(program, content, n, known, operator)
    if normal_domain(node.domain) or node.version is None:
        return NodeJudged(node.path, operator, undecided="the specification does not define this operator")
    application = Application(
        node.op_type,
        node.version,
        tuple(None if t is None else known[t] for t in node.inputs),
        program.attributes(n),
        tuple(t is not None for t in node.outputs),
    )
    given = tuple(model.tensors[t].name for t in node.outputs if t is not None)
    meaning = applied(application) if specified is None else specified.applied(application, given)
    if isinstance(meaning, Undefined):
        return NodeJudged(node.path, operator, undecided=meaning.why, stuck=meaning.stuck)
    found = judge(meaning, tuple(None if t is None else known[t] for t in node.outputs))
    named = zip(node.outputs, found, strict=False)
    outputs = tuple((model.tensors[t].name, it) for t, it in named if t is not None and it is not None)
    names = tuple("" if t is None else model.tensors[t].name for t in node.inputs)
    positions = {model.tensors[t].name: at for at, t in enumerate(node.outputs) if t is not None}
    return NodeJudged(node.path, operator, outputs, application=application, inputs=names, positions=positions)


def _with_body(
    program: Program, content: bytes, n: NodeId, known: Mapping[TensorId, Value], operator: str
) -> NodeJudged:
    """A node with bodies is run alone on the machine, the bound of each step in a body fed to the next."""
    model = program.model
    node = model.nodes[n]
    feeds = {model.tensors[t].name: known[t] for t in program.reads[n]}
    position = model.graphs[0].nodes.index(n)
    done = chained(model_of(single(content, position, feeds)), feeds)
    if isinstance(done, Failure):
        return NodeJudged(node.path, operator, undecided=str(done), stuck=done.kind is Kind.OUTSIDE)
    outputs = []
    for t in program.writes[n]:
        name = model.tensors[t].name
        if name in done.values:
            outputs.append((name, within(done.values[name], known[t], done.allowed(name))))
    return NodeJudged(node.path, operator, tuple(outputs))


def stored(model: Model) -> dict[TensorId, Value]:
    """The initializers of the main graph. Raises ModelError for one that cannot be read."""
    found: dict[TensorId, Value] = {}
    for t, constant in initializers(model.graphs[0]):
        array = array_of(constant, model, model.tensors[t].name)
        if not isinstance(array, OutOfBudget):
            found[t] = array
    return found
