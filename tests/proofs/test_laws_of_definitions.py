"""The laws about functions that parts 3 and 3b define or describe hold of these definitions.

A theorem takes such a function as any that keeps the laws. Here the laws are evaluated, by the reference interpreter,
on memories and frames of runs, and on others that differ from these in what should not matter. What part 3b says of
control, of what frames hold and of bytes in words is said here once more, of the frames and the memory that there are.
Each law of part 6 is tested somewhere, or listed with the reason why not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import machine_models as models
import numpy as np
import pytest
from random_bodies import model as random_bodies
from random_scans import scan_model
from sampling import sampled
from sonnx.proofs.kernel.theory import OPAQUE
from sonnx.semantics import load_proto
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.formulas import reading
from sonnx.semantics.machine.execution import check_well_formed
from sonnx.semantics.machine.inputs import bound_inputs, random_inputs
from sonnx.semantics.machine.memory import Memory, Uninitialised, parts_of, read_value, type_of, write_parts
from sonnx.semantics.machine.reference import rules
from sonnx.semantics.machine.reference.evaluation import REFERENCE, Context, Made, Undefined, Work, meaning, parts, same
from sonnx.semantics.machine.reference.primitives import representation
from sonnx.semantics.operators.compiled import ieee
from sonnx.spec.elaborate.core import Core
from sonnx.spec.language.parse import parse, parse_expression
from sonnx.spec.language.syntax import Expr, FunctionDeclaration, Property, Sort
from sonnx.spec.library import Specification, specification

TEXT = specification()
HERE = Path(__file__).parent
LAWS = (
    "Pushed", "NextRun", "Left", "FirstCounted", "StoredValues", "GivesOutputs", "GivesInputs", "ElementOfValue",
    "RunsOfReads", "ByPosition", "InputOfRun", "OutputOfRuns", "OutputWithoutRun", "Positions", "InputsAreThere",
    "FedInputs", "HasBodies", "Outcomes", "Beginnings", "NextCounted", "Keeps", "Heights", "OwnReads",
    "Decodes", "SameControl", "ControlPushed", "ControlMoves", "HeldOnTop", "HeldUnderPushed", "HeldBelow", "NextHolds",
    "PositionOfReads", "UnrunOfReads", "InputsOfReads", "OutputsOfReads",
)  # fmt: skip
ELSEWHERE: Mapping[str, str] = {
    "ResultsOfReads": "operators are no matter of part 3: test_random_models.py has the same bits in every order",
    "OneResult": "as ResultsOfReads",
    "ResultsByRule": "it speaks of all memories that rules lead from: test_agreement.py runs the rules",
    "Chains": "it is about chains of any length in a graph without cycles, and defines nothing that is executed",
    "CopyMeans": "graphs are read with calls expanded: test_models.py compares the copies that the loader makes",
    "CallMeans": "as CopyMeans",
    "AnyBytes": "it says that a row of bytes may be any: test_state_in_bytes.py follows what the machine writes",
}
"""The laws that are not evaluated on runs or on facts, each with the reason."""
UNIVERSES = {"Node": "all_nodes", "Tensor": "all_tensors", "Graph": "graphs"}
WRITTEN: Mapping[str, tuple[str, ...]] = {
    "If": ("positioned(n, G, M)",),
    "Loop": ("loop_input(n, M, K)", "loop_output(n, M, K)", "loop_unrun(n, M)"),
    "Scan": ("scan_input(n, M, K)", "scan_output(n, M, K)", "scan_unrun(n, M)"),
    "SequenceMap": ("map_input(n, M, K)", "map_output(n, M, K)", "map_unrun(n)"),
}
"""What rules choose W from, by operator."""
TRIES, MORE = 100, {"GivesOutputs": 250, "GivesInputs": 250, "HeldBelow": 900, "OwnReads": 900}
"""How often a law is tried; of one whose premises hold seldom."""
ALWAYS = frozenset({
    "Pushed", "NextRun", "Left", "FirstCounted", "GivesOutputs", "GivesInputs", "Positions", "InputsAreThere",
    "FedInputs", "NextCounted", "Keeps", "Decodes", "ControlPushed",
})  # fmt: skip
"""Laws that are false where what they show is undefined; in others that is undefined on both sides of an equation."""


MADE = (
    "M ++ W", "without(M, G) ++ W", "M ++ stored(b)", "M ++ stored(b) ++ W", "without(M, b) ++ stored(b) ++ W",
)  # fmt: skip
"""The memories that laws say there are."""


@REFERENCE.rule("every")
def _every(core: Core, context: Context) -> Any:
    if core.name == "Memory":
        return context.work.values.primitives["memories"]()
    return INTEGERS if core.name == "Int" else context.work.structure.table(UNIVERSES[core.name]).rows[()]


INTEGERS, LONGEST = range(-2, 12), 8
"""The numbers that laws are tried with, and how many bytes values have that they count."""


@REFERENCE.rule("step")
def _step(core: Core, context: Context) -> Any:
    return context.work.values.primitives["leads"](core.name, *parts(core, context))


# ---- What part 3b says in words -----------------------------------------------------------------


def control(frames: Made | None) -> Any:
    """Frames as far as they hold no values."""
    if frames is None:
        return ()
    held = frames.fields
    return (held["waiting"], held["holder"], _runs(frames), control(held["pop"]))


def kept_at(frames: Made | None, d: int, j: int, t: int) -> Any:
    """What frame d, counted from 1 at the bottom, holds of run j for t."""
    above = (control(frames), d)
    while frames is not None and len(_stack(frames)) > d:
        frames = frames.fields["pop"]
    if frames is None or len(_stack(frames)) != d or not 0 <= j < _runs(frames) or t not in frames.fields["former"][j]:
        raise Undefined(f"no frame holds it: {above}")
    return frames.fields["former"][j][t]


def _stack(frames: Made | None) -> tuple[Made, ...]:
    return () if frames is None else (frames, *_stack(frames.fields["pop"]))


def _bytes(value: Any) -> bytes:
    return b"".join(map(bytes, parts_of(value)))


def decoded(held: bytes, a: int, k: int, layout: Any) -> Any:
    found = read_value(write_parts(Memory(len(held)), 0, [held]), a, k, layout)
    if isinstance(found, Uninitialised):
        raise Undefined("there are no bytes")
    return found


def _at(held: bytes, a: int) -> int:
    if not 0 <= a < len(held):
        raise Undefined("there is no byte")
    return held[a]


PRIMITIVES: Mapping[str, Callable[..., Any]] = {
    "control": control,
    "kept_at": kept_at,
    "byte": _at,
    "byte_count": lambda v: len(_bytes(v)),
    "encoded": lambda v, i: _bytes(v)[i],
    "layout": type_of,
    "decoded": decoded,
}


# ---- Models that were run -----------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A model with the states of runs. text: what is evaluated."""

    machine: rules.Machine
    states: tuple[rules.State, ...]
    text: Specification = TEXT
    words: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: PRIMITIVES)

    def value(self, expr: Expr, scope: Mapping[str, tuple[Any, Sort]]) -> Any:
        """The value of an expression; raises Undefined."""
        formula = self.text.cores.formula(expr, tuple((name, sort) for name, (_, sort) in scope.items()))
        values = dict(zip(formula.parameters, (value for value, _ in scope.values()), strict=True))
        held = representation(lambda _n, _memory: (), self.machine.stored.__getitem__)
        own = {
            "nesting": self.nesting,
            "height": self.height,
            "leads": self.leads,
            "memories": lambda: self.made(scope),
            **self.words,
        }
        held = replace(held, primitives={**held.primitives, **own})
        return meaning(formula.body, reading.Context(self.text.cores, Work(self.machine.structure, held), values))

    def made(self, scope: Mapping[str, tuple[Any, Sort]]) -> tuple[Any, ...]:
        """The memories that can be made of what is in scope."""
        found = []
        for source in MADE:
            if set(re.findall(r"\b[A-Za-z]\b", source)) <= scope.keys():
                found.append(self.value(expression(source), scope))
        return tuple(found)

    def leads(self, rule: str, *state: Any) -> bool:
        """Whether a rule leads from one state to another: by the rules, executed."""
        before, after = rules.State(*state[:3]), rules.State(*state[3:6])
        (found,) = (it for it in self.machine.rules if it.name == rule)
        nodes = state[6:] or rules.nodes_of(self.machine, before)
        reached = (rules.applied(self.machine, found, before, n) for n in nodes)
        return any(isinstance(it, rules.State) and _alike(it, after) for it in reached)

    @cached_property
    def again(self) -> tuple[tuple[rules.State, rules.State], ...]:
        """The steps with which the next run of a body begins."""
        pairs = zip(self.states, self.states[1:], strict=False)
        return tuple((a, b) for a, b in pairs if a.graph == b.graph and a.frames is not b.frames)

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

    def height(self, n: int) -> int:
        graphs = [self.machine.model.graphs[b] for _, b in self.machine.model.nodes[n].bodies]
        return max((1 + self.height(m) for graph in graphs for m in graph.nodes), default=int(bool(graphs)))


def _runs(frames: Made) -> int:
    return len(frames.fields["former"])


def _alike(a: rules.State, b: rules.State) -> bool:
    return a.graph == b.graph and same(a.memory, b.memory) and same(a.frames, b.frames)


@cache
def worlds() -> tuple[World, ...]:
    made: list[World] = []
    number = np.float32
    by_hand = (
        (models.diamond(), {"x": np.array([-1, 2], number)}),
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
    again = choose.choice(it.again) if it.again and law.name in OF_STEPS else None
    if again is not None:
        state, body = again[0], again[0].graph
    outputs = it.machine.model.graphs[body].outputs
    frames = state.frames if again is not None else _frames(state, n, choose)
    held = [t for frame in _stack(frames) for values in frame.fields["former"] for t in values] or outputs
    short = [it for it in state.memory.values() if len(_bytes(it)) <= LONGEST]
    value = choose.choice(short) if short else np.array(choose.random(), np.float32)
    for parameter in law.parameters:
        name, sort = parameter.name, parameter.sort
        match sort.name:
            case "Memory" if name.startswith("W"):
                continue
            case "Memory" if name == "S":
                shared[name] = (state.memory if again is None else again[1].memory), sort
            case "Memory":
                other = name == "R" or name.endswith("'")
                shared[name] = (_varied(state.memory, choose) if other else state.memory), sort
            case "Frames" if name == "Q":
                shared[name] = _other_values(frames, choose), sort
            case "Frames" if again is not None and name == "K'":
                shared[name] = again[1].frames, sort
            case "Frames":
                other = name.endswith("'") and frames is not None
                shared[name] = (_elsewhere(frames, choose) if other else frames), sort
            case "Graph":
                shared[name] = nodes[n].graph if name == "G" and choose.random() < 0.7 else body, sort
            case "Node" if name == "m":
                shared[name] = choose.choice(it.machine.model.graphs[body].nodes), sort
            case "Node":
                shared[name] = n, sort
            case "Tensor":
                every = range(len(it.machine.model.tensors))
                inputs = it.machine.model.graphs[body].inputs
                near = choose.choice((held, held, inputs, nodes[n].inputs, nodes[n].outputs, every))
                shared[name] = choose.choice([t for t in near if t is not None] or every), sort
            case "Int":
                shared[name] = choose.randint(*((1, 2) if name == "d" else (0, 1) if name == "j" else (0, 3))), sort
            case "Value":
                shared[name] = value, sort
            case "Bytes":
                shared[name] = _around(_bytes(value), choose), sort
    unknown = [p for p in law.parameters if p.sort.name == "Memory" and p.name.startswith("W")]
    if not unknown:
        yield shared
        return
    said = {str(part.args[0]) for part in _calls(law)}
    sources = WRITTEN.get(nodes[n].op_type, ())
    for source in [it for it in sources if it.partition("(")[0] in said] or sources:
        found = dict(shared)
        for parameter in unknown:
            prime = "'" if parameter.name.endswith("'") else ""
            values = {"n": shared["n"], "G": shared.get("G", shared.get("b", (body, Sort("Graph"))))}
            values["M"] = shared.get("R", shared.get(f"M{prime}", (state.memory, Sort("Memory"))))
            values["K"] = shared.get("Q", shared.get(f"K{prime}", (frames, Sort("Frames"))))
            members = _members(it, source, values)
            if members:
                found[parameter.name] = members[0], Sort("Memory")
        if len(found) == len(shared) + len(unknown):
            yield {p.name: found[p.name] for p in law.parameters}


def _calls(law: Property) -> Iterator[Expr]:
    """The applications of functions in a law."""
    parts_ = [law.goal, *(premise.expr for premise in law.premises)]
    while parts_:
        part = parts_.pop()
        parts_ += part.children()
        if part.head == "call":
            yield part


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


def _other_values(frames: Made | None, choose: random.Random) -> Any:
    """The same frames with other values, or with the same."""
    if frames is None or choose.random() < 0.4:
        return frames
    if choose.random() < 0.1:
        return _elsewhere(frames, choose)
    former = tuple(_varied(it, choose) for it in frames.fields["former"])
    return Made("frame", {**frames.fields, "former": former, "pop": _other_values(frames.fields["pop"], choose)})


def _around(held: bytes, choose: random.Random) -> bytes:
    """The bytes with others around, seldom with a wrong one."""
    found = bytearray(choose.randbytes(choose.randint(0, 3)) + held + choose.randbytes(3))
    if choose.random() < 0.1:
        found[choose.randrange(len(found))] ^= 1
    return bytes(found)


def _elsewhere(frames: Made, choose: random.Random) -> Any:
    """The same runs of a body in frames that wait for something else."""
    return Made("frame", {**frames.fields, "waiting": choose.randint(0, 1), "pop": None})


def _frames(state: rules.State, n: int, choose: random.Random) -> Any:
    if state.frames is not None and choose.random() < 0.7:
        return state.frames
    below = state.frames if choose.random() < 0.5 else None
    if choose.random() < 0.3:
        return below
    former = tuple(_varied(state.memory, choose) for _ in range(choose.randint(0, 2)))
    fields = {"waiting": state.graph, "holder": n, "former": former, "pop": below}
    return Made("frame", fields)


# ---- The laws -----------------------------------------------------------------------------------


def verdict(law: Property, it: World, scope: Mapping[str, tuple[Any, Sort]]) -> bool | None:
    """Whether a law holds of values; None where a premise does not hold, or what it speaks of is undefined."""
    if not all(_holds(premise.expr, it, scope) for premise in law.premises):
        return None
    found = [_truth(part, it, scope) for part in _conjuncts(law.goal)]
    if False in found or (None in found and law.name in ALWAYS):
        return False
    return True if True in found else None


def _truth(expr: Expr, it: World, scope: Mapping[str, tuple[Any, Sort]]) -> bool | None:
    """Whether a formula holds, None where it is undefined. Of two sides that are equal both are defined or none is."""
    match expr:
        case Expr(head="implies", args=(Expr() as premise, Expr() as conclusion)):
            holds = _truth(premise, it, scope)
            return _truth(conclusion, it, scope) if holds else None if holds is None else True
        case Expr(head="compare", args=(Expr() as left, "=", Expr() as right)):
            sides = [_defined(left, it, scope), _defined(right, it, scope)]
            if sides.count(None) == 1:
                return False
    found = _defined(expr, it, scope)
    return None if found is None else bool(found[0])


def _defined(expr: Expr, it: World, scope: Mapping[str, tuple[Any, Sort]]) -> tuple[Any] | None:
    """The value of an expression, if it has one."""
    try:
        return (it.value(expr, scope),)
    except Undefined:
        return None


def _holds(expr: Expr, it: World, scope: Mapping[str, tuple[Any, Sort]]) -> bool:
    """Whether a premise holds, whatever the value is of what is undefined."""
    if expr.head in ("and", "or"):
        each = (_holds(part, it, scope) for part in expr.children())
        return all(each) if expr.head == "and" else any(each)
    return _truth(expr, it, scope) is True


def _conjuncts(expr: Expr) -> Iterator[Expr]:
    """What is shown, part by part; each is defined for itself."""
    if expr.head == "and":
        for part in expr.children():
            yield from _conjuncts(part)
    elif expr.head == "implies" and (premise := next(expr.children())).head == "or":
        for part in premise.children():
            yield from _conjuncts(replace(expr, args=(part, *expr.args[1:])))
    else:
        yield expr


def judged(name: str, many: int, found: tuple[World, ...]) -> Iterator[dict[str, Any] | None]:
    """The instances that are decided: None of one of which the law holds, else its values."""
    law, choose = TEXT.properties[name], random.Random(name)
    for _ in range(many):
        it = choose.choice(found)
        for scope in assignments(law, it, choose):
            holds = verdict(law, it, scope)
            if holds is not None:
                yield None if holds else {key: value for key, (value, _) in scope.items()}


@pytest.mark.parametrize("name", LAWS)
def test_the_law_holds_of_the_definitions(name: str) -> None:
    decided = list(judged(name, MORE.get(name, TRIES), worlds()))
    assert [it for it in decided if it is not None] == []
    assert len(decided) >= 3


@pytest.mark.campaign
@pytest.mark.parametrize("name", LAWS)
def test_the_law_holds_of_the_definitions_often(name: str) -> None:
    assert [it for it in judged(name, 20_000, worlds()) if it is not None] == []


OF_STEPS = ("NextCounted", "Keeps")
WRONG: Mapping[str, str] = {
    "Pushed": 'define push(K: Frames, G: Graph, n: Node): Frames "K." = K',
    "NextRun": 'define next(K: Frames, G: Graph, M: Memory): Frames "K." = frame(G, holder(K), former(K), pop(K))',
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
    "NextCounted": 'define next(K: Frames, G: Graph, M: Memory): Frames "K." = frame(G, holder(K), former(K), pop(K))',
    "Keeps": 'define next(K: Frames, G: Graph, M: Memory): Frames "K." = frame(G, holder(K), [M], pop(K))',
    "NextHolds": 'define next(K: Frames, G: Graph, M: Memory): Frames "K." = frame(G, holder(K), [M], pop(K))',
    "HeldBelow": 'define next(K: Frames, G: Graph, M: Memory): Frames "K." = frame(G, holder(K), [M], pop(pop(K)))',
    "HeldUnderPushed": 'define push(K: Frames, G: Graph, n: Node): Frames "K." = frame(G, n, [], pop(K))',
    "PositionOfReads": 'define positioned(n: Node, G: Graph, M: Memory): set Memory "M." = [M]',
    "UnrunOfReads": 'define scan_unrun(n: Node, M: Memory): set Memory "M." = [M]',
    "InputsOfReads": 'define loop_input(n: Node, M: Memory, K: Frames): set Memory "M." = [M]',
    "OutputsOfReads": 'define loop_output(n: Node, M: Memory, K: Frames): set Memory "M." = [M]',
}  # fmt: skip
"""For a law another definition, of which it does not hold."""


@pytest.mark.parametrize("name", sampled(WRONG, 10))
def test_the_law_is_false_of_another_definition(name: str) -> None:
    (declared,) = parse(WRONG[name], "changed").declarations
    assert isinstance(declared, FunctionDeclaration)
    text = replace(TEXT, functions={**TEXT.functions, declared.name: declared})
    changed = tuple(replace(it, text=text) for it in worlds())
    if name in OF_STEPS:  # the states are those of runs by that text
        machines = [(replace(it.machine, text=text), it.states[0].memory) for it in changed if it.again]
        changed = tuple(replace(world(*it), text=text) for it in machines[:5])
    assert any(it is not None for it in judged(name, 1_000, changed))


MISREAD: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "Decodes": ("decoded", lambda held, _a, k, layout: decoded(held, 0, k, layout)),
    "SameControl": ("control", lambda K: None if K is None else _runs(K)),
    "ControlMoves": ("control", lambda K: None if K is None else sum(map(len, K.fields["former"]))),
    "HeldOnTop": ("kept_at", lambda K, d, j, t: kept_at(K, d, j - 1, t)),
    "Heights": ("height", lambda n: n),
    "Outcomes": ("memories", tuple),
    "Beginnings": ("memories", tuple),
}
"""For a law another reading of a word, of which it does not hold."""


@pytest.mark.parametrize("name", MISREAD)
def test_the_law_is_false_of_another_reading(name: str) -> None:
    word, read = MISREAD[name]
    changed = tuple(replace(it, words={**it.words, word: read}) for it in worlds())
    assert any(it is not None for it in judged(name, 1_000, changed))


def test_each_law_is_tested_or_listed_with_a_reason() -> None:
    laws = {name for name, it in TEXT.properties.items() if it.kind == "law"}
    others = "".join((HERE / name).read_text("utf-8") for name in ("test_laws.py", "test_laws_of_the_machine.py"))
    assert laws - {*LAWS} - {name for name in laws if f'"{name}"' in others} == {*ELSEWHERE}


def test_what_proofs_do_not_look_into_is_defined() -> None:
    assert {TEXT.functions[name].kind for name in OPAQUE} == {"define"}
