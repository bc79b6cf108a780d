"""Execution providers judged part by part: each part alone, on the values that the definition has at its boundary.

A model is cut for the providers as a session cuts it, and run with the machine's meaning of every node. Where a part is
due, the provider's function of it is called twice on the values that are there, and what it gives is held against what
the specification allows for the nodes of the part on these values; the run goes on with the definition's. So a part
that is wrong is found whatever comes before it. A second run, with what the providers give handed on, tells how far
each part is apart there, and how much of that it inherits: what the definition makes of the difference
between the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.machine.judging import Judged, Standing, compared, merged, within
from sonnx.semantics.machine.memory import type_of
from sonnx.semantics.model.graph import Model, NodeId, TensorId
from sonnx.semantics.model.schemas import draws, operator_name
from sonnx.semantics.model.values import Value, identical, tensors_in
from sonnx.semantics.runtimes.engines.protocol import Failure, Values
from sonnx.semantics.runtimes.engines.sources import model_of
from sonnx.semantics.runtimes.fastpath import KernelError, NumpyExecutionProvider, RunError, Session
from sonnx.semantics.runtimes.fastpath import provider as protocol
from sonnx.semantics.runtimes.fastpath.compiled import root
from sonnx.semantics.runtimes.fastpath.kernel import Allocate, Compute, Inputs, Outputs
from sonnx.semantics.runtimes.fastpath.partition import ends_of, kernel_name
from sonnx.semantics.runtimes.fastpath.provider import ExecutionProvider, FusedNodeAndGraph, GraphViewer
from sonnx.semantics.runtimes.fastpath.providers import chosen_providers
from sonnx.semantics.runtimes.fastpath.sites import by_element, site_of
from sonnx.semantics.runtimes.providers.extraction import extracted
from sonnx.semantics.runtimes.providers.machine import MachineExecutionProvider, Texts

from .chaining import Chained, chained
from .comparison import Verdict

_FOLLOWED: Final = 8
"""Applications of one part, in a body, of which it is told what they inherit."""
_KERNEL: Final = "sonnx.kernel"
"""The domain of a MetaDef that stands for one node which its provider runs by a kernel."""


# ---- Results ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes that a provider runs together. runs: its name for them. outputs: paths of tensors."""

    provider: str
    runs: str
    nodes: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def ends(self) -> str:
        """Its first and last node."""
        return " to ".join(dict.fromkeys((self.nodes[0], self.nodes[-1])))


@dataclass(frozen=True, slots=True)
class PartJudged:
    """One application of a part. own: by output, what it gives on the definition's values. failure: why it gives
    nothing. inherited, together: in the run by the providers, how far the definition on the part's inputs, and the
    part, are from the definition's run; None where there was no such application.
    """

    part: Part
    own: tuple[tuple[str, Judged], ...] = ()
    failure: str = ""
    inherited: Judged | None = None
    together: Judged | None = None

    @property
    def outside(self) -> tuple[str, Judged] | None:
        """The first output that is not allowed."""
        return next((it for it in self.own if it[1].standing is Standing.OUTSIDE), None)


@dataclass(frozen=True, slots=True)
class PartsComparison:
    """One set of inputs. parts: in the order in which they ran. stopped: why the run by the providers ended early."""

    label: str
    parts: tuple[PartJudged, ...]
    verdict: Verdict
    reason: str
    stopped: str = ""

    @property
    def first(self) -> PartJudged | None:
        """The first part that gives what is not allowed."""
        return next((it for it in self.parts if it.outside is not None), None)


# ---- Parts of a session -------------------------------------------------------------------------


Whole = FusedNodeAndGraph
Watch = Callable[[str, Whole, Compute, Inputs], Outputs]
"""What stands for a part in a run: its provider, the part, its function, the values that it gets."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A provider whose parts are handed to somebody; nodes that it runs by kernels are parts of one node."""

    inner: ExecutionProvider
    watch: Watch

    @property
    def name(self) -> str:
        """That of the provider."""
        return self.inner.name

    def get_kernel_registry(self) -> None:
        """Its kernels are behind functions of parts."""

    def get_capability(
        self, graph: GraphViewer, kernel_lookup: protocol.KernelRegistry | None
    ) -> Sequence[protocol.ComputeCapability]:
        """Its offers."""
        registry = self.inner.get_kernel_registry()
        offers = []
        for it in self.inner.get_capability(graph, registry):
            nodes = it.sub_graph.nodes
            if it.sub_graph.meta_def is not None or it.grows or len(nodes) != 1 or nodes[0] not in graph.nodes:
                offers.append(it)
            elif registry is not None and registry.look_up_kernel(graph.node(nodes[0])) is not None:
                ends = ends_of(graph, nodes, kernel_name(graph.program, nodes[0]))
                meta = protocol.MetaDef(ends.name, ends.inputs, ends.outputs, _KERNEL)
                offers.append(protocol.ComputeCapability(protocol.IndexedSubGraph(nodes, meta), it.why))
        return offers

    def compile(self, fused: Sequence[Whole]) -> Sequence[protocol.NodeComputeInfo | protocol.Declined]:
        """Its functions, each behind the watch."""
        own = iter(self.inner.compile([it for it in fused if it.meta_def.domain != _KERNEL]))
        return [self._seen(it, self._kernel(it) if it.meta_def.domain == _KERNEL else next(own)) for it in fused]

    def create_allocator(self, info: protocol.MemoryInfo) -> Allocate | None:
        """Whoever watches has memory."""
        return None

    def on_run_start(self, options: protocol.RunOptions) -> None:
        """It is told."""
        self.inner.on_run_start(options)

    def on_run_end(self, options: protocol.RunOptions) -> None:
        """It is told."""
        self.inner.on_run_end(options)

    def _seen(
        self, whole: Whole, made: protocol.NodeComputeInfo | protocol.Declined
    ) -> protocol.NodeComputeInfo | protocol.Declined:
        if isinstance(made, protocol.Declined):
            return made
        memory = self.inner.create_allocator(protocol.MemoryInfo()) or np.empty

        def own(inputs: Inputs, _allocate: Allocate) -> Outputs:
            return tuple(made.compute(inputs, memory))

        return protocol.NodeComputeInfo(lambda inputs, _allocate: self.watch(self.name, whole, own, inputs))

    def _kernel(self, whole: Whole) -> protocol.NodeComputeInfo:
        graph, meta = whole.filtered_graph, whole.meta_def
        (n,) = graph.nodes
        node, registry = graph.node(n), self.inner.get_kernel_registry()
        if registry is None:
            raise ModelError(f"{self.name} has no kernels any more")
        site = site_of(graph.program, n, graph.constants)
        compute = by_element(registry, node, site, lambda reason: KernelError(f"no kernel on {reason}"))

        def run(inputs: Inputs, allocate: Allocate) -> Outputs:
            values = dict(zip(meta.inputs, inputs, strict=True))
            results = compute([None if t is None else values[t] for t in node.inputs], allocate)
            made = {t: value for t, value in zip(node.outputs, results, strict=False) if t is not None}
            return tuple(made.get(t) for t in meta.outputs)

        return protocol.NodeComputeInfo(run)


# ---- Judging ------------------------------------------------------------------------------------


Key = tuple[str, tuple[NodeId, ...]]


@dataclass
class _Exact:
    """The run with the definition's values. done: each application of a part, with what the definition gives."""

    done: list[tuple[Key, PartJudged, Whole, Inputs, Outputs]] = field(default_factory=list)

    def watch(self, provider: str, whole: Whole, own: Compute, inputs: Inputs) -> Outputs:
        """The definition's values; what the part gives is judged."""
        meta, graph = whole.meta_def, whole.filtered_graph
        model = graph.program.model
        defined, names = _defined(whole, inputs)
        if isinstance(defined, Failure):
            raise KernelError(f"the specification gives no values here: {defined.message}")
        expected = tuple(defined.values[names[t]] for t in meta.outputs)
        paths = tuple(model.nodes[n].path for n in graph.nodes)
        part = Part(provider, meta.name, paths, tuple(model.tensors[t].path for t in meta.outputs))

        def judged(given: Outputs) -> PartJudged:
            return PartJudged(
                part,
                tuple(
                    (place, _judged(model, graph.nodes, value, given[at] if at < len(given) else None, defined, name))
                    for at, (place, value, name) in enumerate(
                        zip(part.outputs, expected, (names[t] for t in meta.outputs), strict=True)
                    )
                ),
            )

        try:
            first = _given(whole, own, inputs)
            row = judged(first)
            if row.outside is None:  # what a part does once it need not do again
                second = _given(whole, own, inputs)
                if not all(map(_identical, first, second)):
                    row = judged(second)
                elif _held(first, second, inputs):
                    row = PartJudged(part, failure="the provider gives the memory again that it gave before")
        except (KernelError, ModelError, Unsupported, MemoryError) as error:
            row = PartJudged(part, failure=" ".join(str(error).split()))
        self.done.append(((provider, graph.nodes), row, whole, inputs, expected))
        return expected


def _given(whole: Whole, own: Compute, inputs: Inputs) -> Outputs:
    """What a part gives. Raises KernelError where it fails, writes to what it is given, or gives too much."""
    meta, graph = whole.meta_def, whole.filtered_graph
    copied = tuple(  # nobody writes what is known when the model is loaded
        value.copy() if isinstance(value, np.ndarray) and graph.constant(t) is None else value
        for t, value in zip(meta.inputs, inputs, strict=True)
    )
    try:
        given = own(copied, np.empty)
    except (KernelError, ModelError, Unsupported, MemoryError):
        raise
    except Exception as error:
        raise KernelError(f"the provider failed with {type(error).__name__}: {error}") from error
    if not all(_identical(a, b) for a, b in zip(inputs, copied, strict=True)):
        raise KernelError("the provider writes to its inputs, which others read")
    if len(given) > len(meta.outputs):
        raise KernelError(f"the provider gives {len(given)} values for {len(meta.outputs)} outputs")
    return given


def _held(first: Outputs, second: Outputs, inputs: Inputs) -> bool:
    """True where two calls give the same memory, so that the second changes what the first gave. What nobody may write
    the session copies for its caller."""
    before = {id(root(it)) for value in first for it in tensors_in(value) if it.flags.writeable}
    before -= {id(root(it)) for value in inputs for it in tensors_in(value)}
    return any(id(root(it)) in before for value in second for it in tensors_in(value) if it.nbytes)


def _judged(
    model: Model, nodes: Sequence[NodeId], expected: Value, given: Value | None, defined: Chained, name: str
) -> Judged:
    if given is None:
        return Judged(note="there is no value")
    judged = within(expected, given, defined.allowed(name))
    of = (model.nodes[n] for n in nodes)
    drawn = any(draws(operator_name(node.domain, node.op_type), node.version) for node in of)
    return Judged(undecided=1) if drawn and judged.standing is Standing.OUTSIDE else judged


def _defined(whole: Whole, inputs: Inputs) -> tuple[Chained | Failure, dict[TensorId, str]]:
    """What the definition gives and allows for the nodes of a part on these values, and the names of tensors there."""
    meta, graph = whole.meta_def, whole.filtered_graph
    given = {t: value for t, value in zip(meta.inputs, inputs, strict=True) if value is not None}
    types = {t: type_of(value) for t, value in given.items()}
    # A MetaDef need not list what is known when the model is loaded.
    read = (t for n in graph.nodes for t in graph.program.reads[n] if t not in given)
    stored = {t: value for t in read if isinstance(value := graph.constant(t), np.ndarray)}
    extract = extracted(graph.program.model, graph.nodes, types, meta.outputs, stored)
    names = dict(extract.names)
    return chained(model_of(extract.content), {names[t]: value for t, value in given.items()}), names


@dataclass
class _Real:
    """The run by the providers. done: of each part its applications: what it got, and gave."""

    done: dict[Key, list[tuple[Inputs, Outputs]]] = field(default_factory=dict)

    def watch(self, provider: str, whole: Whole, own: Compute, inputs: Inputs) -> Outputs:
        """What the part gives."""
        given = own(inputs, np.empty)
        kept = self.done.setdefault((provider, whole.filtered_graph.nodes), [])
        if len(kept) < _FOLLOWED:
            kept.append((tuple(inputs), given))
        return given


def compare_parts(
    model: Model, wanted: Sequence[str | ExecutionProvider], cases: Iterable[tuple[str, Values]]
) -> tuple[PartsComparison, ...]:
    """The parts of these providers, case by case; what they leave runs as the machine does, and is not judged.

    Raises ModelError for a model that cannot be read and a provider that breaks the protocol, Unsupported where a node
    has no meaning.
    """
    named = chosen_providers(wanted)[: len(wanted)]
    return tuple(_case(model, named, label, feeds) for label, feeds in cases)


def _case(model: Model, named: Sequence[ExecutionProvider], label: str, feeds: Values) -> PartsComparison:
    exact, real = _Exact(), _Real()
    machine = (MachineExecutionProvider(), NumpyExecutionProvider(Texts()))
    try:
        Session(model, [*(Watched(it, exact.watch) for it in named), *machine]).run(None, feeds)
    except RunError as error:
        found = tuple(it[1] for it in exact.done)
        verdict, reason = _verdict(found)
        if verdict is not Verdict.DIVERGE:  # what is wrong stays so where the run ends later
            verdict, reason = Verdict.NOT_COMPARED, str(error)
        return PartsComparison(label, found, verdict, reason)
    stopped = ""
    try:
        Session(model, [*(Watched(it, real.watch) for it in named), NumpyExecutionProvider()]).run(None, feeds)
    except (RunError, Unsupported) as error:
        stopped = str(error)
    counts: dict[Key, int] = {}
    rows = []
    for key, row, whole, inputs, expected in exact.done:
        at = counts.get(key, 0)
        counts[key] = at + 1
        followed = real.done.get(key, [])
        rows.append(_followed(row, whole, inputs, expected, *followed[at]) if at < len(followed) else row)
    verdict, reason = _verdict(rows)
    if stopped and verdict is Verdict.AGREE:
        verdict, reason = Verdict.NOT_COMPARED, "each part is right, and the run by the providers ends early"
    return PartsComparison(label, tuple(rows), verdict, reason, stopped)


def _followed(
    row: PartJudged, whole: Whole, inputs: Inputs, expected: Outputs, got: Inputs, gave: Outputs
) -> PartJudged:
    """With what a part inherits in the run by the providers, and how far it is apart there."""
    same = all(_identical(a, b) for a, b in zip(inputs, got, strict=True))
    inherited: Judged | None = Judged() if same else None
    if not same:
        defined, names = _defined(whole, got)
        if not isinstance(defined, Failure):
            inherited = _against(expected, [defined.values.get(names[t]) for t in whole.meta_def.outputs])
    return PartJudged(row.part, row.own, row.failure, inherited, _against(expected, gave))


def _identical(a: Value | None, b: Value | None) -> bool:
    return a is b or (a is not None and b is not None and identical(a, b))


def _against(expected: Sequence[Value | None], given: Sequence[Value | None]) -> Judged:
    pairs = zip(expected, given, strict=False)
    return merged([compared(a, b) for a, b in pairs if a is not None and b is not None])


def _verdict(rows: Sequence[PartJudged]) -> tuple[Verdict, str]:
    wrong = next((it for it in rows if it.outside is not None), None)
    if wrong is not None and wrong.outside is not None:
        tensor, judged = wrong.outside
        why = judged.note or f"{judged.outside} of {judged.elements} elements are {Standing.OUTSIDE.value}"
        return Verdict.DIVERGE, f"{name_of(wrong.part)}, tensor {tensor}: {why}"
    failed = next((it for it in rows if it.failure), None)
    if failed is not None:
        return Verdict.NOT_COMPARED, f"{name_of(failed.part)} gives nothing: {failed.failure}"
    open_ = next((it for it in rows if any(j.standing is Standing.UNDECIDED for _, j in it.own)), None)
    if open_ is not None:
        return Verdict.NOT_COMPARED, f"{name_of(open_.part)}: elements differ, and no bound is known"
    if not rows:
        return Verdict.NOT_COMPARED, "no part of these providers ran"
    exact = all(j.standing is Standing.EXACT for it in rows for _, j in it.own)
    return Verdict.AGREE, "every part is bit-identical" if exact else "every part within what the specification allows"


def name_of(part: Part) -> str:
    """A part in words: its provider, what it calls it, its first and last node."""
    return f"{part.provider}, {part.runs} ({part.ends})"
