"""Two engines on one model and the same inputs: each judged node by node, and both against each other end to end."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.machine.judging import Applied, Judged, Standing, Undefined, applied, compared, judge, within
from sonnx.semantics.machine.phases import Apply, Phase
from sonnx.semantics.machine.state import State
from sonnx.semantics.model.graph import Model, NodeId, TensorId
from sonnx.semantics.model.path import operator_text
from sonnx.semantics.model.schemas import draws, operator_name
from sonnx.semantics.model.stored import array_of
from sonnx.semantics.model.values import Value, identical
from sonnx.semantics.operators.application import Application, Outputs, Program, Stuck, initializers
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.resources.process import OutOfBudget
from sonnx.semantics.runtimes.engines import protocol
from sonnx.semantics.runtimes.engines.own import Machine, limited_run
from sonnx.semantics.runtimes.engines.sources import model_of
from sonnx.semantics.runtimes.engines.tapping import single, tapped
from sonnx.spec.library import specification

from .chaining import Chained, chained

# ---- The specification, asked once --------------------------------------------------------------


Place = tuple[str, int | None, tuple[str, ...]]
"""An application of the main graph: operator, version, the names of the tensors that it gives."""


@dataclass
class Specified:
    """The specification on a case. failure: why it gives no result. outputs: of the main graph, by name."""

    model: Model | None
    feeds: protocol.Values
    outputs: protocol.Values
    failure: protocol.Failure | None = None
    places: dict[Place, Applied] = field(default_factory=dict)

    @cached_property
    def chained(self) -> Chained | protocol.Failure:
        """The run with what each of its values may be."""
        if self.model is None:
            return self.failure or protocol.Failure(protocol.Kind.INVALID, "there is no model")
        return chained(self.model, self.feeds)

    def applied(self, application: Application, names: tuple[str, ...]) -> Applied | Undefined:
        """The specification on an application: the machine's own result where its inputs were the same."""
        known = self.places.get((application.op_type, application.version, names))
        return known if known is not None and _same(known.application, application) else applied(application)


def specified(source: protocol.Source, feeds: protocol.Values) -> Specified:
    """Runs the machine. Raises ModelError for a model that cannot be read."""
    try:
        model = model_of(source)
    except Unsupported as error:
        return Specified(None, feeds, {}, protocol.Failure(protocol.Kind.UNSUPPORTED, str(error)))
    except ModelError as error:
        return Specified(None, feeds, {}, protocol.Failure(protocol.Kind.INVALID, str(error)))
    keeper = _Keeper(model)
    done = limited_run(model, feeds, keeper)
    if isinstance(done, protocol.Failure):
        return Specified(model, feeds, {}, done)
    return Specified(model, feeds, done, None, keeper.places)


def _same(known: Application, application: Application) -> bool:
    if len(known.inputs) != len(application.inputs) or known.outputs != application.outputs:
        return False
    pairs = zip(known.inputs, application.inputs, strict=True)
    return all(a is b or identical(a, b) for a, b in pairs)


@dataclass
class _Keeper:
    """An observer that keeps the applications of the main graph."""

    model: Model
    places: dict[Place, Applied] = field(default_factory=dict)

    def begun(self, state: State) -> None:
        """Nothing to keep."""

    def ended(self, state: State) -> None:
        """All is kept."""

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """Keeps what a node of the main graph was applied to, and gave."""
        if not isinstance(phase, Apply) or phase.application is None:
            return
        tensors = [self.model.tensors[t] for t in phase.tensors]
        if not tensors or any(it.graph != 0 for it in tensors):
            return
        application, values, free = phase.application, iter(phase.values), iter(phase.free)
        done = Outputs(
            tuple(next(values) if asked else None for asked in application.outputs),
            tuple(next(free, None) if asked else None for asked in application.outputs),
        )
        place = (application.op_type, application.version, tuple(it.name for it in tensors))
        self.places[place] = Applied(application, done)


# ---- Node by node -------------------------------------------------------------------------------


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


def judged_nodes(content: bytes, values: protocol.Values, specified: Specified | None = None) -> Iterator[NodeJudged]:
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
    name = operator_name(node.domain, node.op_type)
    if node.version is None or specification().meanings.at(name, node.version) is None:
        return NodeJudged(node.path, operator, undecided="the specification does not define this operator")
    application = Application(
        name,
        node.version,
        tuple(None if t is None else known[t] for t in node.inputs),
        program.attributes(n),
        tuple(t is not None for t in node.outputs),
    )
    given = tuple(model.tensors[t].name for t in node.outputs if t is not None)
    meaning = applied(application) if specified is None else specified.applied(application, given)
    if isinstance(meaning, Undefined):
        return NodeJudged(node.path, operator, undecided=meaning.why, stuck=meaning.stuck)
    judgements = judge(meaning, tuple(None if t is None else known[t] for t in node.outputs))
    named = zip(node.outputs, judgements, strict=False)
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
    if isinstance(done, protocol.Failure):
        return NodeJudged(node.path, operator, undecided=str(done), stuck=done.kind is protocol.Kind.OUTSIDE)
    outputs = []
    for t in program.writes[n]:
        name = model.tensors[t].name
        if name in done.values:
            outputs.append((name, within(done.values[name], known[t], done.allowed(name))))
    return NodeJudged(node.path, operator, tuple(outputs))


def stored(model: Model) -> dict[TensorId, Value]:
    """The initializers of the main graph. Raises ModelError for one that cannot be read."""
    arrays: dict[TensorId, Value] = {}
    for t, constant in initializers(model.graphs[0]):
        array = array_of(constant, model, model.tensors[t].name)
        if not isinstance(array, OutOfBudget):
            arrays[t] = array
    return arrays


# ---- Two engines --------------------------------------------------------------------------------


Tell = Callable[[str], None]
"""Called with what is being done."""


class Verdict(StrEnum):
    """The outcome of a comparison."""

    AGREE = "agree"
    DIVERGE = "diverge"
    NOT_COMPARED = "not compared"


EXIT: Final = {Verdict.AGREE: 0, Verdict.DIVERGE: 1, Verdict.NOT_COMPARED: 3}


def worst(verdicts: Container[Verdict]) -> int:
    """The exit code for several cases."""
    ordered = (Verdict.DIVERGE, Verdict.NOT_COMPARED, Verdict.AGREE)
    return EXIT[next((it for it in ordered if it in verdicts), Verdict.AGREE)]


@dataclass(frozen=True, slots=True)
class Side:
    """One engine in a case. failure: why it gave no outputs. hidden: why it showed no intermediate values.

    values: what it showed, by name. nodes: judged, in order; none for the machine, which computes the definition.
    perturbed: outputs that showing the values changed, the model as it is against the model that shows them.
    whole: the outputs that are perturbed, judged by what any execution of the model may give. settled: the outputs are
    the definition's bit for bit, so that nothing else was looked at; whole are then all outputs.
    """

    engine: str
    outputs: protocol.Values
    failure: protocol.Failure | None = None
    hidden: protocol.Failure | None = None
    values: protocol.Values | None = None
    nodes: tuple[NodeJudged, ...] = ()
    by_definition: bool = False
    perturbed: tuple[tuple[str, Judged], ...] = ()
    whole: tuple[tuple[str, Judged], ...] = ()
    settled: bool = False

    def divergence(self) -> tuple[NodeJudged, str, Judged] | None:
        """The first node that gave what is not allowed, the tensor, and how it was judged."""
        return next(
            ((n, name, it) for n in self.nodes for name, it in n.outputs if it.standing is Standing.OUTSIDE), None
        )

    @property
    def decided(self) -> bool:
        """The results for the model as it is were judged: every node, and no tensor otherwise."""
        if self.by_definition or self.settled:
            return True
        if self.values is None or any(it.standing is Standing.UNDECIDED for _, it in self.whole):
            return False
        return all(
            not n.undecided and all(it.standing is not Standing.UNDECIDED for _, it in n.outputs) for n in self.nodes
        )


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """One set of inputs. outputs: the second engine's against the first's, end to end, as shipped.

    propagated: where the values that the engines showed differ, by node and tensor, in order.
    """

    label: str
    sides: tuple[Side, Side]
    outputs: tuple[tuple[str, Judged], ...]
    propagated: tuple[tuple[str, str, Judged], ...]
    verdict: Verdict
    reason: str


def compare(
    source: protocol.Source,
    engines: tuple[protocol.Engine, protocol.Engine],
    cases: Iterable[tuple[str, protocol.Values]],
    tell: Tell | None = None,
) -> tuple[CaseComparison, ...]:
    """The comparison of two engines, case by case. Raises ModelError for a model that cannot be read."""
    opened = [_Opened(engine, source) for engine in engines]
    try:
        return tuple(_case(opened[0], opened[1], label, feeds, tell) for label, feeds in cases)
    finally:
        for it in opened:
            it.close()


def examine(
    engine: protocol.Engine,
    source: protocol.Source,
    feeds: protocol.Values,
    specified: Specified,
    *,
    every_node: bool = False,
) -> Side:
    """One engine on one case: run as it is; where its outputs are not the definition's, or with every_node, judged node
    by node up to the first that is not allowed."""
    if isinstance(engine, Machine):
        return Side(engine.name, specified.outputs, failure=specified.failure, by_definition=True)
    opened = _Opened(engine, source)
    try:
        return _examined(opened, feeds, specified, every_node)
    finally:
        opened.close()


def _examined(opened: _Opened, feeds: protocol.Values, specified: Specified, every_node: bool) -> Side:
    if specified.failure is not None and specified.failure.kind is protocol.Kind.LIMIT:
        return Side(opened.engine.name, {}, failure=specified.failure)  # others could take all the memory there is
    done = opened.run(feeds)
    if isinstance(done, protocol.Failure):
        return Side(opened.engine.name, {}, failure=done)
    if specified.failure is not None:
        return Side(opened.engine.name, done)
    whole = against(specified.outputs, done)
    if not every_node and whole and all(it.standing is Standing.EXACT for _, it in whole):
        return Side(opened.engine.name, done, whole=whole, settled=True)
    return _shown(opened, feeds, done, None, specified)


class _Opened:
    """An engine with its sessions for a model: as it is, and showing its values; opened when they are first needed."""

    def __init__(self, engine: protocol.Engine, source: protocol.Source) -> None:
        self.engine, self.source = engine, source
        self._plain: protocol.EngineSession | protocol.Failure | None = None
        self._tapped: protocol.EngineSession | protocol.Failure | None = None
        self._content: bytes | None = None

    @property
    def content(self) -> bytes:
        """The model that shows its values. Raises ModelError."""
        if self._content is None:
            self._content = tapped(self.source)
        return self._content

    @property
    def shows_all(self) -> bool:
        """The model shows everything as it is, so that nothing has to be run again."""
        return isinstance(self.source, bytes) and self.content == self.source

    def run(self, feeds: protocol.Values) -> protocol.Values | protocol.Failure:
        if self._plain is None:
            self._plain = self.engine.open(self.source)
        return self._plain if isinstance(self._plain, protocol.Failure) else self._plain.run(feeds)

    def run_tapped(self, feeds: protocol.Values) -> protocol.Values | protocol.Failure:
        if self._tapped is None:
            try:
                self._tapped = self.engine.open(self.content)
            except ModelError as error:
                self._tapped = protocol.Failure(protocol.Kind.ERROR, str(error))
        session = self._tapped
        if isinstance(session, protocol.Failure):
            return session
        return session.run_tapped(feeds) if isinstance(session, protocol.TappedSession) else session.run(feeds)

    def close(self) -> None:
        for session in (self._plain, self._tapped):
            if session is not None and not isinstance(session, protocol.Failure):
                session.close()


def _case(a: _Opened, b: _Opened, label: str, feeds: protocol.Values, tell: Tell | None) -> CaseComparison:
    first, second = _side(a, feeds, tell), _side(b, feeds, tell)
    if first.failure is not None or second.failure is not None:
        return CaseComparison(label, (first, second), (), (), *_failed(first, second))
    outputs = against(first.outputs, second.outputs)
    if any(it.note for _, it in outputs) and draws_any(a.content):
        outputs = tuple((name, replace(it, note="")) for name, it in outputs)  # shapes may follow from a draw
    propagated = tuple(_propagated(first, second))
    return CaseComparison(label, (first, second), outputs, propagated, *_verdict(first, second, outputs))


def _side(opened: _Opened, feeds: protocol.Values, tell: Tell | None) -> Side:
    name = opened.engine.name
    _say(tell, f"{name} runs the model")
    done = opened.run(feeds)
    if isinstance(done, protocol.Failure):
        return Side(name, {}, failure=done)
    return _shown(opened, feeds, done, tell, None)


def _shown(
    opened: _Opened, feeds: protocol.Values, done: protocol.Values, tell: Tell | None, specified: Specified | None
) -> Side:
    """An engine that gave outputs, judged by the values that it shows. specified: the case in a suite, where the first
    divergence is enough."""
    name = opened.engine.name
    _say(tell, f"{name} shows its values")
    values = done if opened.shows_all else opened.run_tapped(feeds)
    if isinstance(values, protocol.Failure):
        return Side(name, done, hidden=values)
    known = {**values, **feeds}
    if isinstance(opened.engine, Machine):
        return Side(name, done, values=known, by_definition=True)
    _say(tell, f"the specification judges {name}")
    judged = judged_nodes(opened.content, known, specified)
    nodes = tuple(judged if specified is None else _up_to_divergence(judged))
    changed = tuple((output, it) for output, it in against(values, done) if it.standing is not Standing.EXACT)
    if changed:
        _say(tell, f"the specification bounds the outputs of {name}")
    return Side(
        name,
        done,
        values=known,
        nodes=nodes,
        perturbed=changed,
        whole=tuple(judged_outputs(opened.content, feeds, done, [output for output, _ in changed], specified))
        if changed
        else (),
    )


def _up_to_divergence(nodes: Iterable[NodeJudged]) -> Iterator[NodeJudged]:
    for node in nodes:
        yield node
        if any(it.standing is Standing.OUTSIDE for _, it in node.outputs):
            return


def judged_outputs(
    source: protocol.Source,
    feeds: protocol.Values,
    done: protocol.Values,
    names: Sequence[str],
    specified: Specified | None,
) -> Iterator[tuple[str, Judged]]:
    """Outputs judged by what any execution of the model may give on these inputs; none where that is not known."""
    expected = chained(model_of(source), feeds) if specified is None else specified.chained
    if isinstance(expected, protocol.Failure):
        return
    for name in names:
        if name in expected.values and name in done:
            allowed = expected.allowed(name)
            judged = within(expected.values[name], done[name], allowed)
            if judged.note and allowed is None and draws_any(source):
                judged = Judged(undecided=1)  # the shape may follow from a draw
            yield name, judged


def draws_any(source: protocol.Source) -> bool:
    """True if a node of the model may draw random numbers, so that two runs of it may differ."""
    return any(draws(operator_name(node.domain, node.op_type), node.version) for node in model_of(source).nodes)


def _say(tell: Tell | None, what: str) -> None:
    if tell is not None:
        tell(what)


def against(expected: protocol.Values, given: protocol.Values) -> tuple[tuple[str, Judged], ...]:
    """Each output against the one of the same name, bit by bit."""
    lacking = Judged(note="one of the two gives no value")
    names = [name for name in given if name in expected] + [name for name in given if name not in expected]
    return tuple((name, compared(expected[name], given[name]) if name in expected else lacking) for name in names)


def _propagated(first: Side, second: Side) -> Iterable[tuple[str, str, Judged]]:
    if first.values is None or second.values is None:
        return
    shown = first.nodes or second.nodes
    for node in shown:
        for name, _ in node.outputs:
            if name in first.values and name in second.values:
                it = compared(first.values[name], second.values[name])
                if it.standing is not Standing.EXACT:
                    yield node.path, name, it


def _failed(first: Side, second: Side) -> tuple[Verdict, str]:
    said = [f"{it.engine}: {it.failure}" for it in (first, second) if it.failure is not None]
    return Verdict.NOT_COMPARED, "; ".join(said)


def _verdict(first: Side, second: Side, outputs: tuple[tuple[str, Judged], ...]) -> tuple[Verdict, str]:
    for side in (first, second):
        divergence = side.divergence()
        if divergence is not None:
            node, tensor, judged = divergence
            why = judged.note or f"{judged.outside} of {judged.elements} elements are {Standing.OUTSIDE.value}"
            return Verdict.DIVERGE, f"{side.engine} at {node.path} ({node.operator}), tensor {tensor!r}: {why}"
    for side in (first, second):
        beyond = next(((name, it) for name, it in side.whole if it.standing is Standing.OUTSIDE), None)
        if beyond is not None:
            name, it = beyond
            why = it.note or f"{it.outside} of {it.elements} elements are what no execution of the model may give"
            return Verdict.DIVERGE, f"{side.engine}, output {name!r} of the model as it is: {why}"
    wrong = next(((name, it) for name, it in outputs if it.note), None)
    if wrong is not None:
        return Verdict.DIVERGE, f"output {wrong[0]!r}: {wrong[1].note}"
    identical = all(it.standing is Standing.EXACT for _, it in outputs)
    if first.decided and second.decided:
        how = "bit-identical" if identical else "every node within what the specification allows"
        return Verdict.AGREE, how
    if identical and (first.decided or second.decided):
        return Verdict.AGREE, "bit-identical end to end, and one of the two is judged node by node"
    return Verdict.NOT_COMPARED, "; ".join(filter(None, (_open(first), _open(second)))) or "nothing was compared"


def _open(side: Side) -> str:
    if side.decided:
        return ""
    if side.hidden is not None:
        return f"{side.engine} shows no intermediate values ({side.hidden})"
    open_ = [name for name, it in side.whole if it.standing is Standing.UNDECIDED]
    if open_:
        return f"showing values changes {side.engine}, and its output {open_[0]!r} has no bound as a whole"
    undecided = [n for n in side.nodes if n.undecided or any(it.undecided for _, it in n.outputs)]
    why = undecided[0].undecided or "elements differ, and no bound is known"
    return f"{side.engine}: {len(undecided)} of {len(side.nodes)} nodes undecided, the first {undecided[0].path}: {why}"
