"""Laws about primitives hold of the machine: its memories, frames, positions, bodies and allocation.

A law is judged from its own text by the direct evaluator, over tables that are filled from what a run of the machine
does. Where the machine says nothing, on a memory that no run has say, an instance is left open and does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import machine_models as models
import numpy as np
import onnx
import pytest
from planned_lifetimes import lifetimes
from random_models import random_model
from sonnx.semantics import Schedule, load_proto
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.facts.structure import Element, Key, SetTable, Structure, Table, ValueTable
from sonnx.semantics.formulas.evaluate import Judgement, judge
from sonnx.semantics.machine.allocation.observed import AllocationObserver
from sonnx.semantics.machine.control import body_of
from sonnx.semantics.machine.execution import Run, run
from sonnx.semantics.machine.inputs import random_inputs
from sonnx.semantics.machine.memory import parts_of
from sonnx.semantics.machine.phases import Again, Enter, Leave, Observer, Phase, Read, Select, Write
from sonnx.semantics.machine.state import Frame, State, region_of, value_of
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load
from sonnx.spec.language.syntax import Binder, Constraint, Expr, FunctionDeclaration, Sort
from sonnx.spec.library import specification

TEXT = specification()
SHARED = Path(__file__).parents[2] / ".." / "shared" / "models" / "control-flow"
LAWS = (
    "LiveSince", "WrittenIsLive", "ReadIsLive", "Placed", "Ordered", "NoneCounted", "OneMoreCounted",
    "Pushed", "NextRun", "Left", "Nested", "OwnNesting", "HasBodies", "StoredValues", "OwnNodes", "OwnTensors",
    "MainOutputs",
)  # fmt: skip
OF_BODIES = {"Pushed", "NextRun", "Nested", "HasBodies"}
OF_ALLOCATION = {"LiveSince", "WrittenIsLive", "ReadIsLive"}
"""Laws that are asked of runs in which every tensor has bytes, bodies included: a region without any is not noted."""


# ---- What a run does --------------------------------------------------------------------------

Stack = tuple[tuple[object, ...], ...]


@dataclass
class Events:
    """The observer of what the laws speak of, by the numbers of states and stacks of frames."""

    memories: list[Mapping[int, bytes]] = field(default_factory=list)
    graphs: list[int] = field(default_factory=list)
    without: dict[tuple[int, int], int] = field(default_factory=dict)
    stacks: dict[Stack, int] = field(default_factory=dict)
    tops: dict[int, Frame] = field(default_factory=dict)
    push: dict[tuple[int, int, int], int] = field(default_factory=dict)
    next: dict[tuple[int, int, int], int] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    reads: list[tuple[int, ...]] = field(default_factory=list)
    writes: list[tuple[int, ...]] = field(default_factory=list)
    _select: Select | None = None
    _write: Write | None = None

    def begun(self, state: State) -> None:
        self._memory(state)

    def passed(self, state: State, phase: Phase | object) -> None:
        if isinstance(phase, Select):
            self._select = phase
        elif isinstance(phase, Read) and self._select is not None:
            read = (*(t for t in phase.tensors if t is not None), *state.program.reads[self._select.node])
            self.reads.append(tuple(dict.fromkeys(read)))
        elif isinstance(phase, Write):
            self._write = phase
            self.writes.append(phase.tensors)
        after = getattr(phase, "state", None)
        if isinstance(after, State) and self._select is not None:
            self._advanced(state, after, self._select)

    def ended(self, state: State) -> None:
        """Nothing is to be noted."""

    def _advanced(self, before: State, after: State, select: Select) -> None:
        was = len(self.memories) - 1
        self._memory(after)
        one, other = self.stack(before.frame), self.stack(after.frame)
        graph = before.frame.graph
        match select.change:
            case Enter():
                self.push[one, graph, select.node] = other
            case Again():
                self.next[one, graph, was] = other
            case Leave():
                self.left[one] = other
                written = set(self._write.tensors) if self._write is not None else set()
                bare = {t: value for t, value in self.memories[-1].items() if t not in written}
                self.without[was, graph] = len(self.memories)
                self.memories.append(bare)
                self.memories.append(self.memories[-2])

    def _memory(self, state: State) -> None:
        found = {t: value_of(state, t) for t in range(len(state.program.model.tensors)) if region_of(state, t)}
        self.memories.append({t: b"".join(map(bytes, parts_of(v))) for t, v in found.items() if v is not None})

    def stack(self, frame: Frame) -> int:
        """The number of what waits under a frame, that frame's part in it included."""
        number = self.stacks.setdefault(_stack(frame), len(self.stacks))
        self.tops.setdefault(number, frame)
        if frame.below is not None:
            self.stack(frame.below)
        return number


def _stack(frame: Frame | None) -> Stack:
    if frame is None or frame.below is None:
        return ()
    return (*_stack(frame.below), (frame.below.graph, frame.holder, frame.run, frame.kept))


# ---- As tables --------------------------------------------------------------------------------


def tables(model: Model, events: Events, placed: AllocationObserver, done: Run) -> dict[str, Table]:
    """The primitives that the laws speak of, as the machine has them."""
    dom: dict[Key, tuple[Element, ...]] = {m: tuple(memory) for m, memory in enumerate(events.memories)}
    values: dict[bytes, int] = {}
    lookup: dict[Key, Element] = {
        (m, t): values.setdefault(value, len(values))
        for m, memory in enumerate(events.memories)
        for t, value in memory.items()
    }
    tops = events.tops.items()
    below = [(k, frame, frame.below) for k, frame in tops if frame.below is not None]
    order = {g: graph.nodes for g, graph in enumerate(model.graphs)}
    for g, graph in enumerate(model.graphs):
        dom[len(events.memories) + g] = tuple(t for t, _ in (*graph.initializers, *graph.sparse_initializers))
    found: dict[str, Table] = {
        "dom": SetTable(dom),
        "lookup": ValueTable({**lookup}),
        "without": ValueTable({**events.without}),
        "push": ValueTable({**events.push}),
        "next": ValueTable({**events.next}),
        "pop": ValueTable({k: events.left.get(k, events.stack(lower)) for k, _, lower in below}),
        "waiting": ValueTable({k: lower.graph for k, _, lower in below}),
        "holder": ValueTable({k: frame.holder for k, frame, _ in below if frame.holder is not None}),
        "depth": ValueTable({number: len(stack) for stack, number in events.stacks.items()}),
        "nesting": ValueTable({g: _nesting(model, g) for g in order}),
        "branch": ValueTable({(n, c): g for n, c, g in _branches(done)}),
        "body": ValueTable({n: g for n, name, g in _held(done) if name == "body"}),
        "node_count": ValueTable({g: len(nodes) for g, nodes in order.items()}),
        "ordered": ValueTable({(g, k): n for g, nodes in order.items() for k, n in _anywhere(nodes)}),
        "place": ValueTable({(g, n): k for g, nodes in order.items() for k, n in enumerate(nodes)}),
        "stored": ValueTable({g: len(events.memories) + g for g in order}),
        "unfired_among": ValueTable(_unfired(model, events, order)),
    }
    return found | _allocation(model, events, placed, done)


def _anywhere(nodes: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """The node at each position; where there is none, anything: a function is total in a proof."""
    for k in range(-3, len(nodes) + 4):
        if nodes:
            yield k, nodes[k] if 0 <= k < len(nodes) else nodes[0]


def _nesting(model: Model, g: int) -> int:
    holder = model.graphs[g].holder
    return 0 if holder is None else 1 + _nesting(model, model.nodes[holder].graph)


def _held(done: Run) -> Iterator[tuple[int, str, int]]:
    for n, node in enumerate(done.model.nodes):
        for name in ("then_branch", "else_branch", "body"):
            graph = body_of(done.states[0], n, name) if node.bodies else None
            if graph is not None:
                yield n, name, graph


def _branches(done: Run) -> Iterator[tuple[int, bool, int]]:
    for n, name, graph in _held(done):
        if name != "body":
            yield n, name == "then_branch", graph


def _unfired(model: Model, events: Events, order: Mapping[int, tuple[int, ...]]) -> dict[Key, Element]:
    counts: dict[Key, Element] = {}
    for m, memory in enumerate(events.memories):
        for g, nodes in order.items():
            fresh = [not any(t in memory for t in model.nodes[n].outputs) and any(
                t is not None for t in model.nodes[n].outputs) for n in nodes]  # fmt: skip
            counts |= {(g, m, k): sum(fresh[:k]) for k in range(len(nodes) + 1)}
    return counts


def _allocation(model: Model, events: Events, placed: AllocationObserver, done: Run) -> dict[str, Table]:
    """live as the plan has it that the run followed; what steps read and write, as they did."""
    live: dict[Key, set[int]] = {}
    for place in placed.plan().allocations:
        live.setdefault(place.tensor, set()).update(range(place.first, place.last + 1))
    sizes = {t: len(value) for memory in events.memories for t, value in memory.items()}
    if len(model.graphs) == 1 and all(sizes.values()):
        planned = {it.tensor: set(range(it.first, it.last + 1)) for it in lifetimes(model, done.choices, sizes)}
        assert planned == live, "what the machine does is what the plan for its schedule says"
    return {
        "live": SetTable({t: tuple(sorted(steps)) for t, steps in live.items()}),
        "bytes": ValueTable({**sizes}),
        "steps": ValueTable({(): len(events.writes)}),
        "step_reads": SetTable(dict(enumerate(events.reads))),
        "step_writes": SetTable(dict(enumerate(events.writes))),
    }


# ---- Judging a law ----------------------------------------------------------------------------


def judged(law: str, facts: Structure, own: Mapping[str, Table], domains: Mapping[str, range]) -> tuple[Judgement, int]:
    """The judgement on a law, and how many instances of it were decided."""
    found = TEXT.properties[law]
    functions = dict(TEXT.functions)
    formula = found.goal
    for premise in reversed(found.premises):
        formula = Expr("implies", (premise.expr, formula))
    extra: dict[str, Table] = dict(own)
    instances = 1
    for parameter in reversed(found.parameters):
        members = {"Node": "all_nodes", "Tensor": "all_tensors", "Graph": "graphs"}.get(parameter.sort.name)
        if members is None:
            members = f"every_{parameter.sort.name}"
            own_range = domains[parameter.sort.name]
            extra[members] = SetTable({(): tuple(own_range)})
            result = Sort("set", parameter.sort)
            functions[members] = FunctionDeclaration("fact", members, (), result, "", None)
            instances *= len(own_range)
        else:
            table = facts.table(members)
            instances *= len(table.rows[()]) if isinstance(table, SetTable) else 0
        formula = Expr("forall", (Binder(parameter.name, Expr("call", (members,))), formula))
    for name, it in TEXT.functions.items():
        if it.kind in ("fun", "field", "define") and name in own:
            functions[name] = replace(it, kind="fact")
        elif it.kind in ("fun", "field"):
            functions[name] = replace(it, kind="fact")
            extra[name] = SetTable({}) if it.result.name == "set" else ValueTable({})
    providers = {**facts.providers, **{name: (lambda table=table: table) for name, table in extra.items()}}
    constraint = Constraint(law, found.doc, "static", formula)
    judgement = judge(constraint, functions, Structure(providers, facts.place))
    return judgement, instances - judgement.undecided


@dataclass(frozen=True)
class World:
    """A model that was run, and what the laws are judged on."""

    facts: Structure
    tables: Mapping[str, Table]
    domains: Mapping[str, range]
    sized: bool
    frames: bool


def world(done: Run, events: Events, placed: AllocationObserver) -> World:
    model = done.model
    own = tables(model, events, placed, done)
    domains = {
        "Memory": range(len(events.memories)),
        "Frames": range(len(events.stacks)),
        "Int": range(-2, max(len(events.writes), *(len(graph.nodes) for graph in model.graphs)) + 3),
    }
    sized = all(value for memory in events.memories for value in memory.values())
    return World(structure(model), own, domains, sized, bool(events.push))


def seen(proto: onnx.ModelProto | Model, inputs: Mapping[str, object], plain: bool, **options: object) -> World:
    """The world of a run. plain: with the meaning that test models have, else by the text."""
    model = proto if isinstance(proto, Model) else load_proto(proto)
    events, placed = Events(), AllocationObserver()
    observers: list[Observer] = [events, placed]
    meaning = models.meaning if plain else None
    done = run(model, inputs, observers=observers, meaning=meaning, **options)  # type: ignore[arg-type]
    assert done.stuck is None, done.stuck
    return world(done, events, placed)


def number(x: float, dtype: type = np.float32) -> np.ndarray[tuple[()], np.dtype[np.generic]]:
    return np.array(x, dtype)


BUILT = {
    "diamond": lambda: (models.diamond(), {"x": np.array([-1, 2], np.float32)}),
    "then": lambda: (models.choice(), {"x": np.ones(2, np.float32), "c": np.array(True)}),
    "else": lambda: (models.choice(), {"x": np.ones(2, np.float32), "c": np.array(False)}),
    "loop": lambda: (models.loop(), {"x": number(30), "v0": number(0), "m": np.array(4), "c0": np.array(True)}),
    "nested": lambda: (models.nested(), {"x": number(1), "v0": number(0), "m": np.array(2), "m2": np.array(2)}),
    "scan": lambda: (models.scan(), {"s0": np.ones(2, np.float32), "xs": np.ones((3, 2), np.float32)}),
    "map": lambda: (models.sequence_map(), {"p": np.ones(2, np.float32), "q": np.ones(1, np.float32),
                                            "x": number(2)}),
}  # fmt: skip


@cache
def worlds() -> Mapping[str, World]:
    found = {name: seen(*make(), plain=True) for name, make in BUILT.items()}
    for seed in range(6):
        proto, given = random_model(seed)
        found[f"random {seed}"] = seen(proto, given, plain=False, schedule=Schedule("random", seed))
    return found


@pytest.mark.parametrize("law", LAWS)
def test_a_law_holds_of_what_the_machine_does(law: str) -> None:
    decided = 0
    for name, it in worlds().items():
        if (law in OF_BODIES and not it.frames) or (law in OF_ALLOCATION and not it.sized):
            continue
        found, count = judged(law, it.facts, it.tables, it.domains)
        assert [(x.bindings, x.reason) for x in found.failures] == [], name
        decided += count
    assert decided > 0, "a law of which every instance is open is not tested"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared models are not at ../shared/models")
@pytest.mark.parametrize("law", [it for it in LAWS if it not in OF_ALLOCATION])
def test_a_law_holds_on_shared_models_with_bodies(law: str) -> None:
    found = {name: judged(law, it.facts, it.tables, it.domains) for name, it in shared().items()}
    assert {name: it.failures for name, (it, _) in found.items() if it.failures} == {}
    assert sum(count for _, count in found.values()) > 0


@cache
def shared() -> Mapping[str, World]:
    found = {}
    for path in sorted(SHARED.glob("*/model.onnx")):
        model = load(path)
        drawn, _ = random_inputs(model, 1)
        events, placed = Events(), AllocationObserver()
        done = run(model, drawn, observers=[events, placed])
        if done.stuck is None and events.push and len(events.memories) < 60:
            found[path.parent.name] = world(done, events, placed)
    return found


# ---- Each table matters -----------------------------------------------------------------------

WRONG: Mapping[str, tuple[str, str, Key]] = {
    "LiveSince": ("loop", "live", 0),
    "WrittenIsLive": ("loop", "step_writes", 1),
    "ReadIsLive": ("loop", "step_reads", 2),
    "Placed": ("diamond", "place", (0, 1)),
    "NextRun": ("loop", "pop", 2),
}
"""For a law a world, a table and a row that is spoiled."""


@pytest.mark.parametrize("law", WRONG)
def test_a_law_is_false_of_a_machine_that_does_something_else(law: str) -> None:
    name, table, key = WRONG[law]
    it = worlds()[name]
    right = it.tables[table]
    assert key in right.rows
    wrong: Table = SetTable({**right.rows, key: (7,)}) if isinstance(right, SetTable) else ValueTable(
        {**right.rows, key: -1})  # fmt: skip
    found, _ = judged(law, it.facts, {**it.tables, table: wrong}, it.domains)
    assert found.failures
