"""The laws about functions that part 3 defines hold of these definitions.

A theorem takes such a function as any that keeps the laws. Here the laws are evaluated, by the reference interpreter,
on memories and frames of runs, and on others that differ from these in what should not matter.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import machine_models as models
import numpy as np
import pytest
from random_bodies import model as random_bodies
from random_scans import scan_model
from sonnx.proofs.kernel.theory import OPAQUE
from sonnx.semantics import load_proto
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.formulas import reading
from sonnx.semantics.machine.execution import check_well_formed
from sonnx.semantics.machine.inputs import bound_inputs, random_inputs
from sonnx.semantics.machine.reference import rules
from sonnx.semantics.machine.reference.evaluation import REFERENCE, Context, Made, Undefined, Work, meaning
from sonnx.semantics.machine.reference.primitives import representation
from sonnx.semantics.operators.compiled import ieee
from sonnx.spec.elaborate.core import Core
from sonnx.spec.language.parse import parse, parse_expression
from sonnx.spec.language.syntax import Expr, FunctionDeclaration, Property, Sort
from sonnx.spec.library import Specification, specification

TEXT = specification()
LAWS = (
    "Pushed", "NextRun", "Left", "FirstCounted", "StoredValues", "GivesOutputs", "GivesInputs", "ElementOfValue",
    "RunsOfReads", "ByPosition", "InputOfRun", "OutputOfRuns", "OutputWithoutRun", "Positions", "InputsAreThere",
    "FedInputs", "HasBodies",
)  # fmt: skip
UNIVERSES = {"Node": "all_nodes", "Tensor": "all_tensors", "Graph": "graphs"}
WRITTEN = (
    "positioned(n, G, M)", "loop_input(n, M, K)", "loop_output(n, M, K)", "loop_unrun(n, M)", "scan_input(n, M, K)",
    "scan_output(n, M, K)", "scan_unrun(n, M)", "map_input(n, M, K)", "map_output(n, M, K)", "map_unrun(n)",
)  # fmt: skip
"""What rules choose W from."""
TRIES, MORE = 150, {"OutputOfRuns": 700}
"""How often a law is tried; of one whose premises hold seldom."""
ALWAYS = frozenset({
    "Pushed", "NextRun", "Left", "FirstCounted", "GivesOutputs", "GivesInputs", "Positions", "InputsAreThere",
    "FedInputs",
})  # fmt: skip
"""Laws that are false where what they show is undefined; in others that is undefined on both sides of an equation."""


@REFERENCE.rule("every")
def _every(core: Core, context: Context) -> Any:
    return range(-2, 5) if core.name == "Int" else context.work.structure.table(UNIVERSES[core.name]).rows[()]


@dataclass(frozen=True)
class World:
    """A model with the states of runs. text: what is evaluated."""

    machine: rules.Machine
    states: tuple[rules.State, ...]
    text: Specification = TEXT

    def value(self, expr: Expr, scope: Mapping[str, tuple[Any, Sort]]) -> Any:
        """The value of an expression; raises Undefined."""
        formula = self.text.cores.formula(expr, tuple((name, sort) for name, (_, sort) in scope.items()))
        values = dict(zip(formula.parameters, (value for value, _ in scope.values()), strict=True))
        held = representation(lambda _n, _memory: (), self.machine.stored.__getitem__)
        held = replace(held, primitives={**held.primitives, "nesting": self.nesting})
        return meaning(formula.body, reading.Context(self.text.cores, Work(self.machine.structure, held), values))

    @cached_property
    def ends(self) -> tuple[rules.State, ...]:
        """The states at the end of a run of a body."""
        graphs = self.machine.model.graphs
        return tuple(
            it for it in self.states if it.frames is not None and all(t in it.memory for t in graphs[it.graph].outputs)
        )

    def nesting(self, g: int) -> int:
        holder = self.machine.model.graphs[g].holder
        return 0 if holder is None else 1 + self.nesting(self.machine.model.nodes[holder].graph)


@cache
def worlds() -> tuple[World, ...]:
    made: list[World] = []
    number = np.float32
    by_hand = (
        (models.choice(), {"x": np.ones(2, number), "c": np.array(True)}),
        (models.nested(), {"x": number(1), "v0": number(0), "m": np.array(2), "m2": np.array(2)}),
        (models.sequence_map(), {"p": np.ones(2, number), "q": np.ones(1, number), "x": number(2)}),
    )
    for proto, given in by_hand:
        model = load_proto(proto)
        fed = {name: np.asarray(value) for name, value in given.items()}
        made.append(world(rules.Machine(model, models.meaning), bound_inputs(model, fed)))
    for seed in range(24):
        proto, given = scan_model(seed)
        model = load_proto(proto)
        made.append(world(rules.Machine(model, ieee.apply), bound_inputs(model, given)))
    for seed in range(40):
        try:
            model = load_proto(random_bodies(seed)[0])
            fed = bound_inputs(model, random_inputs(model, seed)[0])
            if check_well_formed(model) is not None:
                continue
            made.append(world(rules.Machine(model, ieee.apply), fed))
        except (ModelError, Unsupported):
            continue
    return tuple(made)


def world(machine: rules.Machine, inputs: Any) -> World:
    return World(machine, rules.run(machine, rules.begin(machine, inputs), 25).states)


# ---- Values to try a law on ---------------------------------------------------------------------


def assignments(law: Property, it: World, choose: random.Random) -> Iterator[dict[str, tuple[Any, Sort]]]:
    """Values of the parameters, such that premises hold often enough: W is written by a rule, M' is like M."""
    nodes = it.machine.model.nodes
    holders = [n for n, node in enumerate(nodes) if node.bodies] or [*range(len(nodes))]
    state = choose.choice(it.ends if it.ends and choose.random() < 0.7 else it.states)
    if state.frames is None or choose.random() < 0.3:
        n = choose.choice(holders)
        body = choose.choice(nodes[n].bodies)[1] if nodes[n].bodies else state.graph
    else:
        n, body = state.frames.fields["holder"], state.graph
    shared: dict[str, tuple[Any, Sort]] = {"n": (n, Sort("Node"))}
    for parameter in law.parameters:
        name, sort = parameter.name, parameter.sort
        match sort.name:
            case "Memory" if name.startswith("W"):
                continue
            case "Memory":
                shared[name] = (_varied(state.memory, choose) if name.endswith("'") else state.memory), sort
            case "Frames":
                before = shared.get(name.removesuffix("'"), (None, sort))[0]
                shared[name] = (_frames(state, n, choose) if before is None else _elsewhere(before, choose)), sort
            case "Graph":
                shared[name] = nodes[n].graph if name == "G" and choose.random() < 0.7 else body, sort
            case "Node":
                shared[name] = n, sort
            case "Tensor":
                shared[name] = choose.randrange(len(it.machine.model.tensors)), sort
            case "Int":
                shared[name] = choose.randint(0, 3), sort
    unknown = [p for p in law.parameters if p.sort.name == "Memory" and p.name.startswith("W")]
    if not unknown:
        yield shared
        return
    for source in WRITTEN:
        found = dict(shared)
        for parameter in unknown:
            prime = "'" if parameter.name.endswith("'") else ""
            values = {"n": shared["n"], "G": shared.get("G", shared.get("b", (body, Sort("Graph"))))}
            values["M"] = shared.get(f"M{prime}", (state.memory, Sort("Memory")))
            values["K"] = shared.get(f"K{prime}", (_frames(state, n, choose), Sort("Frames")))
            members = _members(it, source, values)
            if members:
                found[parameter.name] = members[0], Sort("Memory")
        if len(found) == len(shared) + len(unknown):
            yield {p.name: found[p.name] for p in law.parameters}


def _members(it: World, source: str, values: Mapping[str, tuple[Any, Sort]]) -> tuple[Any, ...]:
    try:
        return tuple(it.value(expression(source), values))
    except Undefined:
        return ()


expression = cache(parse_expression)


def _varied(memory: Mapping[int, Any], choose: random.Random) -> Mapping[int, Any]:
    """The memory without a value, with another one, or as it is."""
    if not memory or choose.random() < 0.4:
        return memory
    t = choose.choice(list(memory))
    without = {key: value for key, value in memory.items() if key != t}
    return without if choose.random() < 0.5 else {**without, t: np.array(choose.randint(0, 3), np.int64)}


def _elsewhere(frames: Made, choose: random.Random) -> Any:
    """The same runs of a body in frames that wait for something else."""
    return Made("frame", {**frames.fields, "waiting": choose.randint(0, 1), "pop": None})


def _frames(state: rules.State, n: int, choose: random.Random) -> Any:
    if state.frames is not None and choose.random() < 0.7:
        return state.frames
    below = state.frames if choose.random() < 0.5 else None
    if choose.random() < 0.3:
        return below
    fields = {"waiting": state.graph, "holder": n, "former": (state.memory,) * choose.randint(0, 2), "pop": below}
    return Made("frame", fields)


# ---- The laws -----------------------------------------------------------------------------------


def verdict(law: Property, it: World, scope: Mapping[str, tuple[Any, Sort]]) -> bool | None:
    """Whether a law holds of values; None where a premise does not hold, or what it speaks of is undefined."""
    try:
        if not all(it.value(premise.expr, scope) for premise in law.premises):
            return None
    except Undefined:
        return None
    try:
        return bool(it.value(law.goal, scope))
    except Undefined:
        return False if law.name in ALWAYS else None


def judged(name: str, many: int, found: tuple[World, ...]) -> tuple[int, list[Any]]:
    """How many instances were decided, and those of which the law is false."""
    law, choose = TEXT.properties[name], random.Random(name)
    decided, false = 0, []
    for _ in range(many):
        it = choose.choice(found)
        for scope in assignments(law, it, choose):
            holds = verdict(law, it, scope)
            decided += holds is not None
            if holds is False:
                false.append({key: value for key, (value, _) in scope.items()})
    return decided, false


@pytest.mark.parametrize("name", LAWS)
def test_the_law_holds_of_the_definitions(name: str) -> None:
    decided, false = judged(name, MORE.get(name, TRIES), worlds())
    assert false == []
    assert decided >= 3


@pytest.mark.campaign
@pytest.mark.parametrize("name", LAWS)
def test_the_law_holds_of_the_definitions_often(name: str) -> None:
    assert judged(name, 20_000, worlds())[1] == []


WRONG: Mapping[str, str] = {
    "Pushed": 'define push(K: Frames, G: Graph, n: Node): Frames "K." = K',
    "NextRun": 'define next(K: Frames, G: Graph, M: Memory): Frames "On." = frame(G, holder(K), former(K), pop(K))',
    "Left": 'define without(M: Memory, G: Graph): Memory "All." = {t |-> lookup(M, t) for t in dom(M) }',
    "InputOfRun": 'define before_this(t: Tensor, K: Frames): Value "At." = tensor(int64, [], [cast(int64, depth(K))])',
    "FedInputs": (
        'define loop_input(n: Node, M: Memory, K: Frames): set Memory "None."'
        " = [{t |-> lookup(M, t) for t in {u for u in dom(M) if false}}]"
    ),
    "Positions": (
        'define positioned(n: Node, G: Graph, M: Memory): set Memory "None." = {W for W in [stored(G)] if false}'
    ),
    "RunsOfReads": 'define map_runs(n: Node, M: Memory): Int "By all." = len(dom(M))',
}  # fmt: skip
"""For a law another definition, of which it does not hold."""


@pytest.mark.parametrize("name", WRONG)
def test_the_law_is_false_of_another_definition(name: str) -> None:
    (declared,) = parse(WRONG[name], "changed").declarations
    assert isinstance(declared, FunctionDeclaration)
    text = replace(TEXT, functions={**TEXT.functions, declared.name: declared})
    found = tuple(replace(it, text=text) for it in worlds())
    assert judged(name, TRIES, found)[1]


def test_what_proofs_do_not_look_into_is_defined() -> None:
    assert {TEXT.functions[name].kind for name in OPAQUE} == {"define"}
