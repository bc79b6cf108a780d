"""The written rules against the Python step: every transition taken satisfies the premises, and every transition that
the premises allow is taken. The premises are evaluated by the direct interpretation of the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import small_graphs
from sampling import left
from sonnx.semantics import Schedule, load_proto
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.facts.structure import SetTable, Structure, Unknown, ValueTable
from sonnx.semantics.formulas.evaluate import evaluate
from sonnx.semantics.machine.control import body_of
from sonnx.semantics.machine.execution import initial
from sonnx.semantics.machine.phases import Select, Write
from sonnx.semantics.machine.state import State, has_value, value_of
from sonnx.semantics.machine.transitions import enabled, phases, step
from sonnx.semantics.model.graph import Graph, Model, Node, Tensor
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.spec.language.syntax import Expr, FunctionDeclaration, Transition
from sonnx.spec.library import specification

MEMORY, FRAMES = 1000, 2000
"""What M and K are in the structure: elements of their own."""
SPECIFICATION = specification()


# ---- The structure of a state -----------------------------------------------------------------


def functions() -> dict[str, FunctionDeclaration]:
    """The symbols of the text; the primitives that read a state are facts of its structure here."""
    read = ("dom", "depth", "holder", "run", "is_flag", "is_true", "is_number", "number", "scan_runs", "map_runs",
            "branch", "body")  # fmt: skip
    found = dict(SPECIFICATION.functions)
    return found | {name: replace(found[name], kind="fact") for name in read}


FUNCTIONS = functions()


def state_structure(state: State, base: Structure) -> Structure:
    """The facts of G and those of M and K. Values that a premise asks for and the state lacks are unknown."""
    model, frame = state.program.model, state.frame
    valued = tuple(t for t in range(len(model.tensors)) if has_value(state, t))
    truths: dict[Any, Any] = {}
    numbers: dict[Any, Any] = {}
    for t in valued:
        value = value_of(state, t)
        if isinstance(value, np.ndarray) and value.size == 1:
            if value.dtype == np.bool_:
                truths[t, MEMORY] = bool(value.reshape(-1)[0])
            elif value.dtype == np.int64:
                numbers[t, MEMORY] = int(value.reshape(-1)[0])
    depth = 0 if frame.holder is None else 1
    tables: dict[str, Any] = {
        "dom": SetTable({MEMORY: valued}),
        "depth": ValueTable({FRAMES: depth}),
        "holder": ValueTable({FRAMES: Unknown("no frame") if frame.holder is None else frame.holder}),
        "run": ValueTable({FRAMES: frame.run}),
        "is_flag": ValueTable({(t, MEMORY): (t, MEMORY) in truths for t in valued}),
        "is_true": ValueTable(truths),
        "is_number": ValueTable({(t, MEMORY): (t, MEMORY) in numbers for t in valued}),
        "number": ValueTable(numbers),
        "branch": ValueTable({(n, name == "then_branch"): g for n, name, g in bodies(state) if name != "body"}),
        "body": ValueTable({n: g for n, name, g in bodies(state) if name == "body"}),
        "scan_runs": ValueTable({(n, MEMORY): runs(state, n) for n, _ in enumerate(model.nodes)}),
        "map_runs": ValueTable({(n, MEMORY): runs(state, n) for n, _ in enumerate(model.nodes)}),
    }
    providers = {**base.providers, **{name: (lambda table=table: table) for name, table in tables.items()}}
    return Structure(providers, base.place)


def bodies(state: State) -> Iterator[tuple[int, str, int]]:
    """The nodes with bodies, each body with the name of its attribute."""
    for n, node in enumerate(state.program.model.nodes):
        for name in ("then_branch", "else_branch", "body"):
            graph = body_of(state, n, name) if node.bodies else None
            if graph is not None:
                yield n, name, graph


def runs(state: State, n: int) -> Any:
    """How often the body of a Scan or SequenceMap runs, by the shapes of these tests: the length of the last input."""
    inputs = state.program.model.nodes[n].inputs
    value = value_of(state, inputs[-1] or 0) if inputs else None
    if state.program.model.nodes[n].op_type == "SequenceMap":
        value = value_of(state, inputs[0] or 0)
        return len(value.items) if value is not None and hasattr(value, "items") else Unknown("no value")
    return value.shape[0] if isinstance(value, np.ndarray) and value.ndim else Unknown("no value")


def allows(rule: Transition, n: int, state: State, facts: Structure) -> set[int] | None:
    """The tensors that get a value when the rule applies to a node, None when one of its premises fails.

    What W is chosen from is not evaluated: in these tests no operator and no body is undefined.
    """
    environment: dict[str, Any] = {"G": state.frame.graph, "M": MEMORY, "K": FRAMES, "n": n}
    writes: set[int] = set()
    for premise in rule.premises:
        if premise.name == "n":
            if evaluate(premise.expr, environment | {"n": -1}, FUNCTIONS, facts) != n:
                return None
        elif premise.name == "b":
            environment["b"] = evaluate(premise.expr, environment, FUNCTIONS, facts)
        elif premise.name is None and chosen(premise.expr) in OF_OUTPUTS:
            found = evaluate(Expr("call", ("outs", Expr("var", ("n",)))), environment, FUNCTIONS, facts)
            writes |= set(found) if isinstance(found, tuple) else set()
        elif premise.name is None and not chosen(premise.expr):
            holds = evaluate(premise.expr, environment, FUNCTIONS, facts)
            if holds is not True:
                return None
    return writes


OF_OUTPUTS = {"gives", "positioned", "loop_unrun", "loop_output", "scan_unrun", "scan_output", "map_unrun",
              "map_output"}  # fmt: skip
"""What gives values to the outputs of a node: the law GivesOutputs."""


def chosen(expr: Expr) -> str:
    """The function whose members W is chosen from by a premise, "" for another premise."""
    match expr:
        case Expr(head="compare", args=(Expr(head="var", args=("W",)), "in", Expr(head="call") as domain)):
            return str(domain.args[0])
        case _:
            return ""


def agree(state: State, base: Structure) -> list[int]:
    """The nodes with a transition from a state, after text and machine were compared on all nodes and rules."""
    facts = state_structure(state, base)
    taken: dict[int, tuple[str, set[int]]] = {}
    for n in range(len(state.program.model.nodes)):
        found = list(phases(state, n))
        if isinstance(found[-1], Stuck):
            continue
        select, write = found[0], found[3]
        assert isinstance(select, Select) and isinstance(write, Write)
        taken[n] = (select.rule, set(write.tensors))
    allowed: dict[int, tuple[str, set[int]]] = {}
    for name, rule in SPECIFICATION.transitions.items():
        for n in range(len(state.program.model.nodes)):
            writes = allows(rule, n, state, facts)
            if writes is not None:
                assert n not in allowed, f"two rules apply: {allowed[n][0]}, {name}"
                allowed[n] = (name, writes)
    assert {n: rule for n, (rule, _) in taken.items()} == {n: rule for n, (rule, _) in allowed.items()}
    for n, (rule, tensors) in taken.items():
        if rule == "Step/fire" or rule.endswith(("-none", "-leave")):
            assert tensors == allowed[n][1]
    assert set(enabled(state)) >= taken.keys()
    return list(taken)


def explored(state: State, base: Structure, limit: int = 200) -> int:
    """How many states were compared: all that can be reached, each set of values once."""
    seen: set[Any] = set()
    waiting = [state]
    while waiting and len(seen) < limit:
        current = waiting.pop()
        key = (current.frame.graph, current.frame.prefix, tuple(
            t for t in range(len(current.program.model.tensors)) if has_value(current, t)
        ))  # fmt: skip
        if key in seen:
            continue
        seen.add(key)
        for n in agree(current, base):
            found = step(current, n)
            assert isinstance(found, State)
            waiting.append(found)
    return len(seen)


# ---- All small graphs -------------------------------------------------------------------------


def counted(application: Application) -> Outputs:
    """A value that depends on the inputs, for any number of outputs."""
    total = sum(float(np.asarray(value)) for value in application.inputs if isinstance(value, np.ndarray))
    return Outputs(tuple(np.array(total + i, np.float32) for i in range(len(application.outputs))))


def model_of(small: Any) -> Model:
    """A small graph as G; every tensor that nothing writes and that is no input is left without a value."""
    tensors = tuple(Tensor(f"t{t}", f'/"t{t}"', 0) for t in range(small.tensors))
    nodes = tuple(
        Node("", f"/{n}:Relu", 0, "", "Relu", "", 18, 14, tuple(reads), tuple(writes))
        for n, (reads, writes) in enumerate(zip(small.reads, small.writes, strict=True))
    )
    main = Graph("g", "/", tuple(range(len(nodes))), tuple(small.inputs), tuple(small.outputs), ())
    return Model((main,), nodes, tensors, 10, (("", 18),), "protobuf", ())


def began(model: Model, meaning: Any) -> State:
    inputs: dict[int, Any] = {t: np.array(t + 1, np.float32) for t in model.graphs[0].inputs}
    state = initial(model, inputs, Schedule(), meaning)
    assert isinstance(state, State)
    return state


@pytest.mark.parametrize(("nodes", "tensors"), [(1, 1), (1, 2), left((1, 3)), (2, 1), left((2, 2))], ids=str)
def test_text_and_step_agree_on_every_small_graph(nodes: int, tensors: int) -> None:
    compared = 0
    for small in small_graphs.up_to_renaming(nodes, tensors):
        model = model_of(small)
        compared += explored(began(model, counted), structure(model))
    assert compared > 0


def test_text_and_step_agree_on_random_graphs_of_three_nodes() -> None:
    for small in small_graphs.sampled(150, 7, 3, 4):
        small = replace(small, inputs=tuple(dict.fromkeys(small.inputs)), initializers=())
        model = model_of(small)
        explored(began(model, counted), structure(model))


# ---- Graphs with bodies -----------------------------------------------------------------------


def looping(x: float, v0: float, trips: int | None = None, goes: bool | None = None) -> dict[str, Any]:
    """Inputs of `loop`; no trip count, or no condition, where it is None."""
    given: dict[str, Any] = {"x": np.array(x, np.float32), "v0": np.array(v0, np.float32)}
    given |= {} if trips is None else {"m": np.array(trips)}
    return given | ({} if goes is None else {"c0": np.array(goes)})


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "if": ("choice", {}, {"x": ones(2), "c": np.array(True)}, "Step/if-leave"),
    "else": ("choice", {}, {"x": ones(2), "c": np.array(False)}, "Step/if"),
    "loop": ("loop", {}, looping(40, 0, 9, True), "Step/loop-next"),
    "trips": ("loop", {}, looping(1, 0, 2, True), "Step/loop-leave"),
    "no trip": ("loop", {}, looping(1, 0, 0, True), "Step/loop-none"),
    "not begun": ("loop", {}, looping(1, 0, 3, False), "Step/loop-none"),
    "while": ("loop", {"trips": False}, looping(60, 0, None, True), "Step/loop"),
    "for": ("loop", {"cond": False}, looping(99, 2, 3), "Step/loop-leave"),
    "nested": ("nested", {}, looping(1, 2, 2) | {"m2": np.array(1)}, "Step/if-leave"),
    "scan": ("scan", {}, {"s0": ones(2), "xs": ones(2, 2)}, "Step/scan-leave"),
    "no scan": ("scan", {}, {"s0": ones(2), "xs": ones(0, 2)}, "Step/scan-none"),
    "map": ("sequence_map", {}, {name: ones(2) for name in "pqx"}, "Step/sequence-map-next"),
}


@pytest.mark.parametrize("case", CASES)
def test_text_and_step_agree_on_graphs_with_bodies(models: ModuleType, case: str) -> None:
    maker, options, inputs, rule = CASES[case]
    model = load_proto(getattr(models, maker)(**options))
    given = {t: inputs[model.tensors[t].name] for t in model.graphs[0].inputs}
    state = initial(model, given, Schedule(), models.meaning)
    assert isinstance(state, State)
    base = structure(model)
    assert explored(state, base, 400) > 1
    rules: set[str] = set()
    while nodes := agree(state, base):
        found = list(phases(state, nodes[0]))
        assert isinstance(found[0], Select)
        rules.add(found[0].rule)
        after = step(state, nodes[0])
        assert isinstance(after, State)
        state = after
    assert rule in rules


def test_every_rule_of_the_text_has_a_case() -> None:
    stems = {"if", "loop", "scan", "sequence-map"}
    assert set(SPECIFICATION.transitions) == {
        "Step/fire", "Step/if", "Step/if-leave",
        *(f"Step/{stem}{end}" for stem in stems - {"if"} for end in ("", "-none", "-next", "-leave")),
    }  # fmt: skip
