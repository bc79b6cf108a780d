"""From a model to compiled graphs: what is known at load is computed, the rest is given to providers and linked.

The bodies of control flow are compiled like the main graph; what they capture is known in them where it is known
outside. A node on constants is computed when the model is loaded, unless the operator is random or refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from sonnx.spec.terminal import one_line

from ...errors import InternalError, ModelError, Unsupported
from ...machine.control import CONTROLS
from ...machine.inputs import contradiction
from ...model import schemas
from ...model.elements import element_of
from ...model.graph import GraphId, NodeId, TensorId
from ...model.schemas import normal_domain
from ...model.stored import array_of, forget_pages
from ...model.values import Array, Map, Optional, Value
from ...model.values import Sequence as Items
from ...operators.application import Program, initializers
from ...resources.process import OutOfBudget
from .compiled import Compiled, Piece, linked, rebuilt
from .control import Body, computing
from .execution import TOLD, failure
from .kernel import Allocate, Compute, Inputs, KernelError, Outputs
from .partition import Assignment, Partitioning, Refusal, Unit, asked, kernel_name, partitioned
from .provider import ExecutionProvider, GraphViewer, MemoryInfo
from .sites import admitting, by_element, check_types, prepared, refusing, site_of

_FOLDING: Final = "NumpyExecutionProvider"
_FIT: Final = 64
"""Tensors that are remembered as fitting what is declared."""


@dataclass
class Preparation:
    """The work of compiling one model; `constants` and what is said about nodes grow while it goes on."""

    program: Program
    providers: Sequence[ExecutionProvider]
    constants: dict[TensorId, Value]
    assignments: list[Assignment] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    viewers: list[GraphViewer] = field(default_factory=list)


def compiled_main(
    program: Program,
    providers: Sequence[ExecutionProvider],
    overridden: frozenset[TensorId],
    viewers: list[GraphViewer] | None = None,
) -> tuple[Compiled, Partitioning]:
    """The main graph, and who runs what. overridden: the initializers that a caller gives values for. viewers: where
    the graphs are noted as providers saw them, bodies first.

    The inputs of what is compiled are those of the graph without a stored value, then `overridden`, ascending.
    The model is well formed. Raises ModelError for what is stored in a way that cannot be read, and Unsupported.
    """
    work = Preparation(program, providers, {}, viewers=[] if viewers is None else viewers)
    graph = program.model.graphs[0]
    stored = {t for t, _ in initializers(graph)}
    inputs = [t for t in dict.fromkeys(graph.inputs) if t not in stored] + sorted(overridden)
    made = _compiled(work, 0, inputs, inputs)
    return made, Partitioning(tuple(work.assignments), tuple(work.refusals))


def _compiled(work: Preparation, g: GraphId, inputs: Sequence[TensorId], given: Sequence[TensorId]) -> Compiled:
    """A graph with these inputs, of which `given` are its own."""
    program = work.program
    graph = program.model.graphs[g]
    for t, constant in initializers(graph):
        if t not in given:
            # A file may hold a tensor at any byte; BLAS takes only what lies at a multiple of the size of its elements.
            array = array_of(constant, program.model, program.model.tensors[t].name)
            if isinstance(array, OutOfBudget):
                raise InternalError("an array without a limit was refused")
            work.constants[t] = array if array.flags.aligned else _locked(array.copy())
            if not array.flags.aligned:
                forget_pages(array)
    left = [n for n in program.order(g) if not _folded(work, n)]
    flow = {n: _control(work, n) for n in left if _is_control(program, n)}
    viewer = GraphViewer(program, g, tuple(n for n in left if n not in flow), work.constants)
    work.viewers.append(viewer)
    units, refusals = partitioned(viewer, work.providers)
    work.refusals += refusals
    work.assignments += [unit.assignment for unit in units]
    pieces = dict(flow)
    for unit in units:
        piece = _piece(work, unit)
        pieces.update(dict.fromkeys(unit.nodes, piece))
    return linked(_in_order(left, pieces), inputs, graph.outputs, work.constants)


def _in_order(left: Sequence[NodeId], pieces: Mapping[NodeId, Piece]) -> list[Piece]:
    """Each piece once, after those that it reads from: nodes that are fused may stand apart in the order."""
    whole = list({id(pieces[n]): pieces[n] for n in left}.values())
    writer = {t: number for number, it in enumerate(whole) for t in it.writes if t is not None}
    ordered: list[Piece] = []
    state = [0] * len(whole)  # 0: not seen, 1: waits for what it reads, 2: placed
    for number in range(len(whole)):
        stack = [number]
        while stack:
            at = stack[-1]
            if state[at]:
                stack.pop()
                if state[at] == 1:
                    state[at] = 2
                    ordered.append(whole[at])
                continue
            state[at] = 1
            before = (writer[t] for t in whole[at].reads if t in writer)
            stack += [it for it in dict.fromkeys(before) if not state[it]]
    return ordered


# ---- What is known at load --------------------------------------------------------------------


def _folded(work: Preparation, n: NodeId) -> bool:
    """True where the outputs of a node are known now."""
    node = work.program.model.nodes[n]
    if _is_control(work.program, n) or any(t is not None and t not in work.constants for t in node.inputs):
        return False
    schema = schemas.schema_at(node)
    registry = next((it.get_kernel_registry() for it in work.providers if it.name == _FOLDING), None)
    if registry is None or schema is None or schema.determinism == "non-deterministic":
        return False
    inputs = [None if t is None else work.constants[t] for t in node.inputs]
    try:
        site = site_of(work.program, n, work.constants)
        first = next((it.dtype for it in inputs[:1] if isinstance(it, np.ndarray)), None)
        kernel = registry.look_up_kernel(node, None if first is None else element_of(first))
        if kernel is None:
            return False
        check_types(schema, inputs)
        with np.errstate(all="ignore"):
            results = admitting(schema, kernel.prepare(site))(inputs, np.empty)
    except (KernelError, MemoryError):
        return False  # the run says so, if it gets there
    except TOLD:
        raise
    except Exception as error:
        raise failure(_where(work.program, n), error) from error
    for t, value in zip(node.outputs, results, strict=False):
        if t is not None and value is not None:
            work.constants[t] = rebuilt(value, _locked)
    said = "its inputs are known when the model is loaded"
    work.assignments.append(Assignment(node.graph, (n,), "", kernel_name(work.program, n), said))
    return True


def _locked(array: Array) -> Array:
    """The array, which nobody writes any more."""
    shown = array.view()
    shown.flags.writeable = False
    return shown


# ---- Pieces -----------------------------------------------------------------------------------


def _piece(work: Preparation, unit: Unit) -> Piece:
    program, provider = work.program, unit.provider
    ours = provider.name == _FOLDING
    memory = asked(provider, "create_allocator", lambda: provider.create_allocator(MemoryInfo()))
    if unit.compiled is not None:
        ends = dict.fromkeys(program.model.nodes[n].path for n in (unit.nodes[0], unit.nodes[-1]))
        where = f"{' to '.join(ends)} ({unit.provider.name}, {unit.assignment.kernel})"
        info = unit.compiled
        compute = _promised(program, unit, info.compute)
        return Piece(compute, unit.inputs, unit.outputs, where, info.in_place, memory, beside=ours)
    (n,) = unit.nodes
    node, where = program.model.nodes[n], _where(program, n, unit.provider)
    registry = unit.provider.get_kernel_registry()
    kernel = None if registry is None else registry.look_up_kernel(node)
    if kernel is None or registry is None:
        raise InternalError(f"{where}: a kernel that was there is gone")
    schema = schemas.schema_at(node)
    site = site_of(program, n, work.constants)
    if kernel.types is None:
        try:
            compute = prepared(kernel, site)
        except TOLD:
            raise
        except Exception as error:
            raise failure(where, error) from error
    else:

        def uncovered(reason: str) -> Exception:
            name = kernel_name(program, n)
            return Unsupported(f"no execution provider has a kernel for {name} on {reason or 'this'} ({node.path})")

        compute = by_element(registry, node, site, uncovered)
    compute = admitting(schema, _promised(program, unit, compute))
    return Piece(compute, node.inputs, node.outputs, where, kernel.in_place, memory, schema, ours and not kernel.alone)


def _promised(program: Program, unit: Unit, compute: Compute) -> Compute:
    """The computation of a unit, which raises KernelError where a provider of others gives what its outputs are not."""
    if unit.provider.name == _FOLDING:
        return compute
    goals = [None if t is None else program.model.tensors[t] for t in unit.outputs]
    ends = dict(zip(program.model.graphs[0].outputs, program.model.graphs[0].output_types, strict=False))
    # What a run is refused for, by part 3: AsDeclared at the ends, TypesAsDeclared elsewhere; shapes there are claims.
    declared = [
        None if t is None or goal is None else ends.get(t) or (goal.declared and replace(goal.declared, shape=None))
        for t, goal in zip(unit.outputs, goals, strict=True)
    ]

    fit: set[object] = set()  # positions, shapes and types of tensors that were found to be as declared

    def checked(inputs: Inputs, allocate: Allocate) -> Outputs:
        try:
            results = tuple(compute(inputs, allocate))
        except (KernelError, ModelError, Unsupported, MemoryError):
            raise
        except Exception as error:
            raise KernelError(one_line(f"the provider failed with {type(error).__name__}: {error}")) from error
        if len(results) < len(goals) or (len(results) > len(goals) and unit.compiled is not None):
            raise KernelError(f"the provider gives {len(results)} values for {len(goals)} outputs")
        # A kernel may go on for outputs that are not asked for.
        for position, (goal, stated, value) in enumerate(zip(goals, declared, results, strict=False)):
            form = (position, value.shape, value.dtype) if isinstance(value, np.ndarray) else None
            if goal is None or form in fit:
                continue
            if not isinstance(value, (np.ndarray, Items, Optional, Map)):
                raise KernelError(f"the provider gives {type(value).__name__} for {goal.path}, which is no value")
            wrong = stated and contradiction("output", goal.name, value, stated, {})
            if wrong:
                raise KernelError(f"the provider gives what the model does not declare: {wrong}")
            if form is not None and len(fit) < _FIT:
                fit.add(form)
        return results

    return checked


def _where(program: Program, n: NodeId, provider: ExecutionProvider | None = None) -> str:
    """The name of a node in messages, with the provider that runs it where that is not our own."""
    by = "" if provider is None or provider.name == _FOLDING else f"{provider.name}, "
    return f"{program.model.nodes[n].path} ({by}{kernel_name(program, n)})"


def _is_control(program: Program, n: NodeId) -> bool:
    node = program.model.nodes[n]
    return not normal_domain(node.domain) and node.version is not None and node.op_type in CONTROLS


def _control(work: Preparation, n: NodeId) -> Piece:
    program = work.program
    node = program.model.nodes[n]
    captured = tuple(t for t in node.captures if t not in work.constants)
    bodies = {}
    for name, g in node.bodies:
        graph = program.model.graphs[g]
        compiled = _compiled(work, g, (*graph.inputs, *captured), graph.inputs)
        types = graph.output_types or (None,) * len(graph.outputs)
        declared = tuple(
            stated or program.model.tensors[t].declared for t, stated in zip(graph.outputs, types, strict=True)
        )
        bodies[name] = Body(compiled, len(graph.inputs), declared)
    said = Assignment(node.graph, (n,), "", kernel_name(program, n), "control flow is the session's own")
    work.assignments.append(said)
    reads = (*node.inputs, *captured)
    try:
        compute = computing(node, bodies, program.attributes(n))
    except KernelError as error:
        compute = refusing(str(error))
    return Piece(compute, reads, node.outputs, _where(program, n))
