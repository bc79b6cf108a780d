"""Rules, steps and runs: the premises of a rule in written order, over states (G, M, K).

An instance of a rule belongs to the node that its first variable of sort Node is, chosen by `in` or bound by `let`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sonnx.spec.elaborate.core import Binding, Definition
from sonnx.spec.language.syntax import Expr, Premise, Sort, Transition
from sonnx.spec.library import Specification, specification

from ...errors import InternalError
from ...facts.gathering import structure
from ...facts.structure import Structure
from ...formulas import reading
from ...model.graph import GraphId, Model, NodeId
from ...model.stored import array_of
from ...model.values import Value
from ...operators.application import Application, Draw, Meaning, Program, Stuck, initializers
from ...resources.process import OutOfBudget
from .evaluation import Context, Denotation, Made, Undefined, Work, meaning
from .primitives import Memory, representation

Frames = Made | None
"""The frames K: None where there is none."""
Scope = Mapping[str, Denotation]
"""The values of the variables of a rule."""
SORTS = ("Graph", "Memory", "Frames")
"""The sorts of the components of a state."""


@dataclass(frozen=True, slots=True)
class State:
    """(G, M, K)."""

    graph: GraphId
    memory: Memory
    frames: Frames = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why no rule applies to a node: the first premise that does not hold, in the rule in which most
    premises hold before it; of several such rules the first one of the text. A rule whose instances belong to other
    nodes counts as one of which no premise holds.

    node: the one that it is about. why: what is undefined, empty where something is false. operator: of an operator
    that gives no result, what it asks.
    """

    rule: str
    node: NodeId
    premise: Premise
    position: int
    why: str = ""
    operator: Stuck | None = None


# ---- A rule as it is executed -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """A premise: `let` binds a variable, `in` chooses it, otherwise it is a test. formula: over the variables before
    it, for a choice the set."""

    premise: Premise
    kind: str
    name: str
    formula: Definition

    @property
    def sort(self) -> Sort | None:
        """The sort of the variable."""
        sort = self.formula.body.sort
        return sort if self.kind == "let" or sort is None else sort.element


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with the cores of its premises and of the state to which it leads. names: of the components before; node:
    the variable that says to which node an instance belongs."""

    name: str
    names: tuple[str, ...]
    steps: tuple[Step, ...]
    target: tuple[Definition, ...]
    node: str


def executable(transition: Transition, text: Specification) -> Rule:
    """A rule of the text with its cores."""
    names = tuple(str(part.args[0]) for part in transition.source)
    variables = list(zip(names, map(Sort, SORTS), strict=True))
    steps = []
    for premise in transition.premises:
        kind, name, expr = _read(premise, {known for known, _ in variables})
        step = Step(premise, kind, name, text.cores.formula(expr, tuple(variables)))
        if name:
            variables.append((name, step.sort or Sort("Any")))
        steps.append(step)
    target = tuple(text.cores.formula(part, tuple(variables)) for part in transition.target)
    node = next(it.name for it in steps if it.name and it.sort == Sort("Node"))
    return Rule(transition.name, names, tuple(steps), target, node)


def _read(premise: Premise, known: set[str]) -> tuple[str, str, Expr]:
    if premise.name is not None:
        return "let", premise.name, premise.expr
    match premise.expr:
        case Expr(head="compare", args=(Expr(head="var", args=(str() as name,)), "in", Expr() as domain)):
            if name not in known:
                return "in", name, domain
    return "if", "", premise.expr


# ---- One model --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """A model with the text that is executed. meaning: of the operators without bodies; draws: the seed of random
    numbers."""

    model: Model
    meaning: Meaning
    draws: int = 0
    text: Specification = field(default_factory=specification)

    @cached_property
    def program(self) -> Program:
        """The attributes of nodes as the texts of operators see them."""
        return Program(self.model, self.meaning, self.draws)

    @cached_property
    def structure(self) -> Structure:
        """The facts of the model."""
        return structure(self.model)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in the order of the text."""
        return tuple(executable(it, self.text) for it in self.text.transitions.values())

    @cached_property
    def stored(self) -> Mapping[GraphId, Memory]:
        """For each graph the stored values of its initializers."""
        return {g: _stored(self.model, g) for g in range(len(self.model.graphs))}


def _stored(model: Model, g: GraphId) -> Memory:
    found: dict[int, Value] = {}
    for t, constant in initializers(model.graphs[g]):
        array = array_of(constant, model, model.tensors[t].name)
        if isinstance(array, OutOfBudget):
            raise InternalError("a stored value is over a budget that there is not")
        found[t] = array
    return found


def begin(machine: Machine, inputs: Memory) -> State:
    """The first state: the main graph, stored values that a caller may replace, the values of the inputs."""
    return State(0, {**machine.stored[0], **inputs})


# ---- Steps ------------------------------------------------------------------------------------


def step(machine: Machine, state: State, n: NodeId) -> State | Refusal:
    """The state after a rule whose instance belongs to a node, or why there is none."""
    furthest: Refusal | None = None
    for rule in machine.rules:
        found = applied(machine, rule, state, n)
        if isinstance(found, State):
            return found
        if furthest is None or found.position > furthest.position:
            furthest = found
    if furthest is None:
        raise InternalError("the text has no rules")
    return furthest


def nodes_of(machine: Machine, state: State) -> tuple[NodeId, ...]:
    """The nodes that an instance can belong to: those of the graph that runs, and the one that waits for it."""
    holder = () if state.frames is None else (state.frames.fields["holder"],)
    return (*machine.model.graphs[state.graph].nodes, *holder)


def applied(machine: Machine, rule: Rule, state: State, n: NodeId) -> State | Refusal:
    """The state to which the instance of a rule that belongs to a node leads, or the first premise that does not
    hold."""
    attempt = _Attempt(machine, rule, state, n)
    scope: Scope = dict(zip(rule.names, (state.graph, state.memory, state.frames), strict=True))
    return attempt.from_premise(0, scope)


@dataclass(slots=True)
class _Attempt:
    """An attempt at a rule. said: what the operator that was asked last has said."""

    machine: Machine
    rule: Rule
    state: State
    node: NodeId
    said: Stuck | None = None
    work: Work = field(init=False)

    def __post_init__(self) -> None:
        values = representation(self._gives, self.machine.stored.__getitem__)
        self.work = Work(self.machine.structure, values)

    def from_premise(self, at: int, scope: Scope) -> State | Refusal:
        """The outcome from a premise on."""
        if at == len(self.rule.steps):
            graph, memory, frames = (self._value(it, scope) for it in self.rule.target)
            return State(graph, memory, frames)
        here = self.rule.steps[at]
        try:
            value = self._value(here.formula, scope)
        except Undefined as reason:
            return self._refusal(at, str(reason))
        if here.kind == "if":
            return self.from_premise(at + 1, scope) if value is True else self._refusal(at)
        own = here.name == self.rule.node
        members = (value,) if here.kind == "let" else tuple(value)
        refusals = [Refusal(self.rule.name, self.node, here.premise, 0 if own else at, operator=self.said)]
        for member in members:
            if own and member != self.node:
                continue
            found = self.from_premise(at + 1, {**scope, here.name: member})
            if isinstance(found, State):
                return found
            refusals.append(found)
        return max(refusals, key=lambda it: it.position)

    def _refusal(self, at: int, why: str = "") -> Refusal:
        return Refusal(self.rule.name, self.node, self.rule.steps[at].premise, at, why, self.said)

    def _value(self, formula: Definition, scope: Scope) -> Denotation:
        values: dict[Binding | None, Denotation] = {it: scope[it.name] for it in formula.parameters}
        context: Context = reading.Context(self.machine.text.cores, self.work, values)
        return meaning(formula.body, context)

    def _gives(self, n: NodeId, memory: Memory) -> tuple[Memory, ...]:
        """gives(n, M): the results that the text of the operator defines, one of them where it draws."""
        program, node = self.machine.program, self.machine.model.nodes[n]
        application = Application(
            program.operators[n],
            node.version or 0,
            tuple(None if t is None else memory.get(t) for t in node.inputs),
            program.attributes(n),
            tuple(t is not None for t in node.outputs),
            draw=Draw(self.machine.draws, path(self.machine.model, self.state, n)),
        )
        try:
            outputs = self.machine.meaning(application)
        except MemoryError as error:
            raise Undefined(f"there is no memory for the outputs: {error}") from error
        if isinstance(outputs, Stuck):
            self.said = outputs
            return ()
        if len(outputs.values) != len(node.outputs):
            return ()
        pairs = zip(node.outputs, outputs.values, strict=True)
        return ({t: value for t, value in pairs if t is not None and value is not None},)


# ---- Paths with the numbers of runs -------------------------------------------------------------


def path(model: Model, state: State, n: NodeId) -> str:
    """The path of a node of the graph that runs, or of the one that waits, with the numbers of the runs it is in."""
    graph, frames = state.graph, state.frames
    if frames is not None and n == frames.fields["holder"]:
        graph, frames = frames.fields["waiting"], frames.fields["pop"]
    return _prefix(model, graph, frames) + _below(model, graph, model.nodes[n].path)


def _prefix(model: Model, g: GraphId, frames: Frames) -> str:
    if frames is None:
        return "/"
    waiting, holder = frames.fields["waiting"], model.nodes[frames.fields["holder"]]
    around = _prefix(model, waiting, frames.fields["pop"]) + _below(model, waiting, holder.path)
    number = f"@{len(frames.fields['former'])}" if len(holder.bodies) == 1 else ""  # a branch of several runs once
    return f"{around}{model.graphs[g].path[len(holder.path) :]}{number}/"


def _below(model: Model, g: GraphId, place: str) -> str:
    graph = model.graphs[g].path
    return place[len(graph if graph.endswith("/") else graph + "/") :]


# ---- Runs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ended:
    """A run: its states, the node of each step, and why it went no further before the outputs had values."""

    states: tuple[State, ...]
    choices: tuple[NodeId, ...]
    refusal: Refusal | None = None


def run(machine: Machine, state: State, steps: int | None = None) -> Ended:
    """The run that takes the first node which has a transition, in the order of the file, the one that waits last.

    steps: at most so many. The refusal is that of the node in whose rule most premises hold.
    """
    states, choices = [state], list[NodeId]()
    while steps is None or len(choices) < steps:
        furthest: Refusal | None = None
        for n in nodes_of(machine, state):
            found = step(machine, state, n)
            if isinstance(found, State):
                state = found
                states.append(state)
                choices.append(n)
                break
            if furthest is None or found.position > furthest.position:
                furthest = found
        else:
            done = state.frames is None and all(t in state.memory for t in machine.model.graphs[0].outputs)
            return Ended(tuple(states), tuple(choices), None if done else furthest)
    return Ended(tuple(states), tuple(choices))
