"""Running a model: `run(model, inputs)` from values by name to a Run with its states and outputs.

What must hold before anything runs, the state before the first step, and evaluators: from a state to the end, each
step chosen by the schedule that is part of the state.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final
from weakref import ref

from sonnx.spec.language.syntax import Constraint
from sonnx.spec.library import Specification, specification
from sonnx.spec.terminal import few

from ..errors import InternalError, ModelError, Unsupported
from ..facts.gathering import structure
from ..facts.structure import Structure
from ..formulas.evaluate import judge
from ..model.graph import Model, NodeId, TensorId
from ..model.loader.source import check_texts
from ..model.path import operator_text, quote
from ..model.schemas import normal_domain, operator_name
from ..model.stored import array_of
from ..model.values import Value
from ..operators.application import Meaning, Program, Stuck, initializers
from ..resources.persistent import persistent_map, put
from ..resources.process import OutOfBudget, paused
from .inputs import bound_inputs, contradicted
from .memory import empty_store, store_value
from .phases import Advance, Observer, Phase, Write, over_budget, violated
from .schedule import Schedule, agenda, choose
from .state import Frame, State, Table, advanced_frame, has_value, node_path, region_of, tensor_path, value_of
from .transitions import finished, has_meaning, phases, without_meaning

WELL_FORMED = (
    "NoWriteToInput", "NoWriteToInitializer", "SingleAssignment", "OutputPositions", "Sourced", "Acyclic",
    "PortsCounted", "RequiredPortsPresent", "AttributesListed", "AttributesPresent", "AttributeKinds",
    "TypesAsDeclared",
)  # fmt: skip
"""The constraints without which the values at the end would depend on the schedule, or be missing, or be those of an
application other than the one that a node writes."""
_SHOWN = 5


def check_supported(model: Model) -> None:
    """Raises Unsupported, with their names, for operators to which the specification gives no meaning, and ModelError
    for a model whose source leaves out what is needed to run it."""
    check_complete(model)
    missing: dict[str, str] = {}
    for node in model.nodes:
        if not has_meaning(node):
            if specification().reason(operator_name(node.domain, node.op_type), node.version):
                raise Unsupported(f"{node.path}: {without_meaning(node)} {_PAST}")
            version = "" if node.version is None else f"-{node.version}"
            graphs = " with a graph as attribute" if node.bodies else ""
            missing.setdefault(operator_text(normal_domain(node.domain), node.op_type) + version + graphs, node.path)
    if missing:
        shown = few([f"{name} ({path})" for name, path in missing.items()], _SHOWN)
        raise Unsupported(
            f"the specification gives no meaning to {shown}: `sonnx spec check` lists the operators it defines. {_PAST}"
        )


_PAST = "`sonnx debug` goes up to such a node, and past it with values that are supplied."


def check_complete(model: Model) -> None:
    """Raises ModelError for a model whose source leaves out what is needed to run it, and for one that was loaded under
    a text that is not in force any more."""
    check_texts(model)
    if not model.runnable:
        raise ModelError("the source leaves out values of the model, so it cannot run: give the .onnx file")


def check_well_formed(model: Model, constraints: Sequence[str] = WELL_FORMED) -> Stuck | None:
    """Why the graph cannot be run: the first of the constraints that it breaks. What was found out is kept as long as
    the model is: engines that are compared ask the same, one after the other."""
    text = specification()
    known, facts = _known(model, text), cache(lambda: structure(model))
    for name in constraints:
        if name not in known:
            known[name] = _broken(text.constraints[name], text, facts())
        if (wrong := known[name]) is not None:
            return wrong
    return None


Answers = dict[str, Stuck | None]
_answers: dict[int, tuple[ref[Model], Specification, Answers]] = {}
"""What is known of models, by their places in memory: a comparison of models goes through all of them."""


def _known(model: Model, text: Specification) -> Answers:
    place = id(model)
    kept = _answers.get(place)
    if kept is None or kept[0]() is not model or kept[1] is not text:
        kept = _answers[place] = (ref(model, lambda _: _answers.pop(place, None)), text, {})
    return kept[2]


def _broken(constraint: Constraint, text: Specification, facts: Structure) -> Stuck | None:
    """Why the graph breaks a constraint; None where it holds."""
    judgement = judge(constraint, text.functions, facts, limit=1)
    if judgement.verdict == "holds":
        return None
    at = judgement.failures or judgement.unknowns
    places = ", ".join(facts.place(sort, value) for _, sort, value in at[0].bindings)
    message = f"{places} breaks it (one of {judgement.failed} places)"
    if not judgement.failures:
        message = f"it is not known of {places} (one of {judgement.undecided} places): {at[0].reason}"
    return violated(constraint, message, "`sonnx certify` shows what to do.")


def initial(
    model: Model,
    inputs: Mapping[TensorId, Value],
    schedule: Schedule,
    meaning: Meaning,
    *,
    reuse: bool = False,
    budget: int | None = None,
    draws: int = 0,
) -> State | Stuck:
    """The state before the first step, for inputs that were checked.

    Inputs and initializers have their values, which are mapped from their files. reuse: space is used again (arena).
    draws: the seed of random numbers.
    Raises ModelError and Unsupported for what is stored in a way that cannot be read.
    """
    program = Program(model, meaning, draws)
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


def _refused(lack: OutOfBudget) -> Stuck:
    sort = specification().sorts["Memory"]
    message = f"with {lack.purpose} the memory would have {lack.needed} bytes, the limit is {lack.budget}"
    return Stuck("Memory", "the budget of this run", sort.span, message, "Raise --max-memory.")


# ---- Evaluators -----------------------------------------------------------------------------------

_YOUNG_STEPS: Final = 1000  # after so many steps, or so many bytes written, garbage among new objects is looked for
_YOUNG_BYTES: Final = 1 << 26

AS_DECLARED: Final = "AsDeclared"
"""The constraint of part 3 on the values at the end."""
Progress = Callable[[int, int], None]
"""Called with the number of steps taken and that of the nodes of the main graph."""


@dataclass(frozen=True, slots=True)
class Limits:
    """steps: how many transitions a run may take. seconds: for how long. None: any."""

    steps: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run: its states, the first and the last one only when no history is kept, and why it got stuck.

    choices: the node of each transition, a schedule to replay.
    """

    states: tuple[State, ...]
    choices: tuple[NodeId, ...]
    stuck: Stuck | None = None


def next_node(state: State) -> tuple[NodeId | None, State]:
    """The node that comes next by the schedule, None when there is none, and the state with its agenda brought up to
    date."""
    frame = state.frame
    n, agenda = choose(state.schedule, frame.agenda, state.program, frame.graph, partial(has_value, state), state.steps)
    if agenda is not frame.agenda:
        frame = advanced_frame(frame, frame.table, agenda)
        state = State(state.program, state.store, frame, state.schedule, state.stored, state.steps)
    return (frame.holder if n is None and state.schedule.kind != "recorded" else n), state


def evaluate(
    state: State,
    limits: Limits = Limits(),
    observers: Iterable[Observer] = (),
    *,
    history: bool = True,
    progress: Progress | None = None,
) -> Ending:
    """The run from a state until its schedule has no more, it gets stuck, or a limit is reached (Stuck too).

    history: whether all states are kept. At the end every output of the main graph has a value, or the run is stuck.
    """
    with paused():
        return _evaluated(state, limits, tuple(observers), history, progress)


def _evaluated(
    state: State, limits: Limits, observers: tuple[Observer, ...], history: bool, progress: Progress | None
) -> Ending:
    states = [state]
    choices: list[NodeId] = []
    deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
    endless = limits.steps is None and deadline is None
    total = len(state.program.model.graphs[0].nodes)
    young = _Young()
    for observer in observers:
        observer.begun(state)
    while True:
        n, ready = next_node(state)
        stuck = at_end(ready) if n is None else None if endless else _limited(ready, n, limits, deadline)
        if n is None or stuck is not None:
            for observer in observers:
                if stuck is not None:
                    observer.passed(ready, stuck)
            break
        result = _step(ready, n, observers, young)
        if isinstance(result, Stuck):
            stuck = result
            break
        state = result
        choices.append(n)
        if history:
            states.append(state)
        if progress is not None:
            progress(len(choices), total)
    if not history and choices:
        states.append(state)
    for observer in observers:
        observer.ended(state)
    return Ending(tuple(states), tuple(choices), stuck)


@dataclass(slots=True)
class _Young:
    """The steps taken, and the bytes written since garbage among new objects was looked for."""

    steps: int = 0
    written: int = 0

    def look(self) -> None:
        """Look for garbage before the next step where there may be much."""
        self.steps += 1
        if self.written > _YOUNG_BYTES or not self.steps % _YOUNG_STEPS:
            gc.collect(1)  # not among the states that are kept: they grow, and are no garbage
            self.written = 0


def _step(state: State, n: NodeId, observers: tuple[Observer, ...], young: _Young) -> State | Stuck:
    """The state after the transition of a node."""
    young.look()
    phase: Phase | Stuck | None = None
    for phase in phases(state, n):
        if isinstance(phase, Write):
            young.written += phase.written
        elif isinstance(phase, Stuck):
            phase = replace(phase, at=node_path(state, n))
        for observer in observers:
            observer.passed(state, phase)
    if isinstance(phase, Advance):
        return phase.state
    if isinstance(phase, Stuck):
        return phase
    raise InternalError(f"the transition of {node_path(state, n)} has no end")


def outputs(state: State) -> tuple[tuple[str, Value | None], ...]:
    """The outputs of the main graph by name, in order, once the run has ended."""
    model = state.program.model
    return tuple((model.tensors[t].name, value_of(state, t)) for t in model.graphs[0].outputs)


def _limited(state: State, n: NodeId, limits: Limits, deadline: float | None) -> Stuck | None:
    """Stuck when the limits do not allow the next step."""
    if limits.steps is not None and state.steps >= limits.steps:
        message = f"{state.steps} steps are taken, which is the limit; next would come {node_path(state, n)}"
        return over_budget("Step/fire", message, "--max-steps")
    if deadline is not None and time.monotonic() > deadline:
        message = f"the time is over after {state.steps} steps; next would come {node_path(state, n)}"
        return over_budget("Step/fire", message, "--max-time")
    return None


def at_end(state: State) -> Stuck | None:
    """Stuck when a run that has no more steps has ended too early, or with outputs unlike their declarations."""
    return incomplete(state) or undeclared(state)


def undeclared(state: State) -> Stuck | None:
    """Stuck when an output of the main graph has not the type and shape that the model declares: AsDeclared."""
    model = state.program.model
    main = model.graphs[0]
    given = {t: where.type for t in main.inputs if (where := region_of(state, t)) is not None}
    wrong = contradicted(model, given, {t: value_of(state, t) for t in main.outputs})
    if wrong is None:
        return None
    constraint = specification().constraints[AS_DECLARED]
    return violated(constraint, wrong, "Correct the declaration, or the node that computes the output.")


def incomplete(state: State) -> Stuck | None:
    """Stuck when the run has ended too early: in a body, or with an output that has no value."""
    graph = state.program.model.graphs[state.frame.graph]
    if state.frame.holder is None and finished(state):
        return None
    missing = next((t for t in graph.outputs if not has_value(state, t)), None)
    where = "the run ends in a body" if missing is None else f"{tensor_path(state, missing)} got no value"
    return violated(specification().constraints["Completeness"], where, "`sonnx certify` shows what it lacks.")


# ---- Runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a model. states: all of them, or the first and the last; none when it could not begin.

    stuck: why it did not end well; outputs: those that have a value, none where one contradicts its declaration.
    choices: the node of each step.
    """

    model: Model
    states: tuple[State, ...]
    choices: tuple[NodeId, ...]
    outputs: Mapping[str, Value]
    stuck: Stuck | None = None

    @property
    def peak(self) -> int:
        """The greatest N that the run needed, in bytes."""
        return self.states[-1].store.space.peak if self.states else 0

    @property
    def recorded(self) -> Schedule:
        """The schedule that takes the same steps again."""
        return Schedule("recorded", choices=self.choices)


def run(
    model: Model,
    inputs: Mapping[str, Value],
    schedule: Schedule = Schedule(),  # noqa: B008 - it is immutable
    *,
    meaning: Meaning | None = None,
    allocation: str = "simple",
    max_memory: int | None = None,
    limits: Limits = Limits(),
    observers: Iterable[Observer] = (),
    history: bool = True,
    progress: Progress | None = None,
    draws: int = 0,
) -> Run:
    """The run of a model on inputs by name.

    meaning: what operators compute, the ieee interpretation where nothing is said. allocation: simple or arena (space
    is used again). max_memory: the greatest N in bytes. history: whether the run keeps all its states. draws: the seed
    of the random numbers, of which each node draws its own.
    Raises ModelError for inputs that do not fit and stored values that cannot be read, Unsupported for operators
    without meaning, both before anything runs. A run that gets stuck is a Run.
    """
    if allocation not in ("simple", "arena"):
        raise ValueError(f"there is no allocation {allocation!r}: simple or arena")
    if meaning is None:
        from ..operators.compiled import ieee

        check_supported(model)
        meaning = ieee.apply
    wrong = check_well_formed(model)
    if wrong is not None:
        return Run(model, (), (), {}, wrong)
    given = bound_inputs(model, inputs)
    state = initial(model, given, schedule, meaning, reuse=allocation == "arena", budget=max_memory, draws=draws)
    if isinstance(state, Stuck):
        return Run(model, (), (), {}, state)
    ending = evaluate(state, limits, observers, history=history, progress=progress)
    refused = ending.stuck is not None and ending.stuck.rule == AS_DECLARED
    return Run(model, ending.states, ending.choices, {} if refused else _outputs(ending), ending.stuck)


def _outputs(ending: Ending) -> Mapping[str, Value]:
    return {name: value for name, value in outputs(ending.states[-1]) if value is not None}
