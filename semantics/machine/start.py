"""Where an execution begins: what must hold before anything runs, and the state before the first step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonnx.spec.language.syntax import Operator
from sonnx.spec.library import specification

from ..errors import ModelError, Unsupported
from ..facts.gathering import structure
from ..formulas.evaluate.constraints import judge
from ..model.graph import Model, Node, TensorId
from ..model.path import operator_text, quote
from ..model.schemas import normal_domain
from ..model.stored import array_of
from ..model.values import Value
from ..operators.application import Meaning, Program, Stuck, initializers
from ..resources.persistent import persistent_map, put
from ..resources.process import OutOfBudget
from .control.flow import CONTROLS
from .regions import empty_store, store_value
from .rules import violated
from .schedule import Schedule, agenda
from .state import Frame, State, Table

WELL_FORMED = ("NoWriteToInput", "NoWriteToInitializer", "SingleAssignment", "OutputPositions", "Sourced", "Acyclic")
"""The constraints of part 2 without which the values at the end would depend on the schedule, or be missing."""
_SHOWN = 5


def check_supported(model: Model) -> None:
    """Raises Unsupported, with their names, for operators to which the specification gives no meaning, and ModelError
    for a model whose source leaves out what is needed to run it."""
    if not model.runnable:
        raise ModelError("the source leaves out values of the model, so it cannot run: give the .onnx file")
    missing: dict[str, str] = {}
    for node in model.nodes:
        if _meaning(node) is None:
            version = "" if node.version is None else f"-{node.version}"
            missing.setdefault(operator_text(normal_domain(node.domain), node.op_type) + version, node.path)
    if missing:
        shown = ", ".join(f"{name} ({path})" for name, path in list(missing.items())[:_SHOWN])
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise Unsupported(
            f"the specification gives no meaning to {shown}{more}: `sonnx spec check` lists the operators it defines"
        )


def _meaning(node: Node) -> Operator | str | None:
    """The definition in force for a node, or the name of its rules; None when there is none."""
    if normal_domain(node.domain) or node.version is None:
        return None
    if node.op_type in CONTROLS:
        return node.op_type
    if node.bodies:
        return None
    versions = specification().operators.get(node.op_type, ())
    return next((it for it in versions if it.first <= node.version <= it.last), None)


def check_well_formed(model: Model, constraints: Sequence[str] = WELL_FORMED) -> Stuck | None:
    """Why the graph cannot be run: the first of the constraints that it breaks."""
    found = specification()
    facts = structure(model)
    for name in constraints:
        constraint = found.constraints[name]
        judgement = judge(constraint, found.functions, facts, limit=1)
        if judgement.verdict != "holds":
            at = judgement.failures or judgement.unknowns
            places = ", ".join(facts.place(sort, value) for _, sort, value in at[0].bindings)
            message = f"{places} breaks it (one of {judgement.failed} places)"
            return violated(constraint, message, "`sonnx certify` shows what to do.")
    return None


def initial(
    model: Model,
    inputs: Mapping[TensorId, Value],
    schedule: Schedule,
    meaning: Meaning,
    *,
    reuse: bool = False,
    budget: int | None = None,
) -> State | Stuck:
    """The state before the first step, for inputs that were checked.

    Inputs and initializers have their values, which are mapped from their files. reuse: space is used again (arena).
    Raises ModelError and Unsupported for what is stored in a way that cannot be read.
    """
    program = Program(model, meaning)
    store = empty_store(reuse, budget)
    tables: list[Table] = []
    for number, graph in enumerate(model.graphs):
        table: Table = persistent_map()
        for t, constant in initializers(graph):
            if number == 0 and t in inputs:
                continue
            name = model.tensors[t].name
            array, purpose = array_of(constant, model, name, budget), f"the initializer {quote(name)}"
            stored = array if isinstance(array, OutOfBudget) else store_value(store, array, purpose)
            if isinstance(stored, OutOfBudget):
                return _refused(stored)
            store, region = stored
            table = put(table, t, region)
        tables.append(table)
    main = tables[0]
    for t, value in inputs.items():
        given = store_value(store, value, f"the input {quote(model.tensors[t].name)}")
        if isinstance(given, OutOfBudget):
            return _refused(given)
        store, where = given
        main = put(main, t, where)
    frame = Frame(0, main, agenda(schedule, program, 0))
    return State(program, store, frame, schedule, tuple(tables))


def _refused(found: OutOfBudget) -> Stuck:
    sort = specification().sorts["Memory"]
    message = f"with {found.purpose} the memory would have {found.needed} bytes, the limit is {found.budget}"
    return Stuck("Memory", "the budget of this run", sort.span, message, "Raise --max-memory.")
