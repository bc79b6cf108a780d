"""A run of the fast machine held against the reference interpreter, state by state and node by node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sonnx.semantics.machine.execution import Run
from sonnx.semantics.machine.memory import load_value
from sonnx.semantics.machine.phases import Advance, Select
from sonnx.semantics.machine.reference import rules
from sonnx.semantics.machine.reference.running import explained
from sonnx.semantics.machine.state import Frame, State, value_of
from sonnx.semantics.machine.transitions import phases
from sonnx.semantics.model.values import Value, identical
from sonnx.semantics.operators.application import Stuck
from sonnx.semantics.resources.persistent import items
from sonnx.spec.library import specification


def memory_of(state: State) -> dict[int, Value | None]:
    """M of the fast machine: what each tensor of the graph that runs, and of those around it, holds."""
    found: dict[int, Value | None] = {}
    frame: Frame | None = state.frame
    while frame is not None:
        found |= {t: value_of(state, t) for t, _ in items(frame.table)}
        frame = frame.below
    return found


def frames_of(state: State) -> list[tuple[int, int | None, list[Mapping[int, Value]]]]:
    """K, the top first: the graph that waits, its node, and of each run before what the fast machine has kept."""
    found = []
    frame: Frame | None = state.frame
    while frame is not None and frame.below is not None:
        outputs, runs, kept = state.program.model.graphs[frame.graph].outputs, [], frame.kept
        while kept is not None:
            pairs = zip(outputs, kept.places, strict=True)
            runs.append({t: load_value(state.store, where) for t, where in pairs if where is not None})
            kept = kept.before
        assert len(runs) == frame.run
        found.append((frame.below.graph, frame.holder, runs[::-1]))
        frame = frame.below
    return found


def difference(reference: rules.State, fast: State) -> str:
    """In what the two states differ, empty where they are equal; of former runs only what the fast machine kept."""
    if reference.graph != fast.frame.graph:
        return f"the graph: {reference.graph}, {fast.frame.graph}"
    memory = memory_of(fast)
    if reference.memory.keys() != memory.keys():
        return f"the tensors with values: {set(reference.memory) ^ set(memory)}"
    for t, value in reference.memory.items():
        if not identical(value, memory[t]):
            return f"the value of {fast.program.model.tensors[t].path}: {value!r}, {memory[t]!r}"
    frames = reference.frames
    for waiting, holder, former in frames_of(fast):
        if frames is None or (frames.fields["waiting"], frames.fields["holder"]) != (waiting, holder):
            return "the frames"
        if len(frames.fields["former"]) != len(former):
            return "the number of the run"
        for one, other in zip(frames.fields["former"], former, strict=True):
            if not all(identical(value, one.get(t)) for t, value in other.items()):
                return "what former runs gave"
        frames = frames.fields["pop"]
    return "" if frames is None else "the number of frames"


def outcome_of_fast(state: State, n: int) -> tuple[str, str]:
    """The rule that the fast machine applies to a node; or the rule and the premise at which it is stuck."""
    found = list(phases(state, n))
    if isinstance(found[-1], Advance):
        select = found[0]
        assert isinstance(select, Select)
        return select.rule, ""
    assert isinstance(found[-1], Stuck)
    return found[-1].rule, found[-1].premise


def outcome_of_reference(machine: rules.Machine, state: rules.State, n: int) -> tuple[str, str]:
    """The same of the reference: of an operator that gives no result, what it asks."""
    furthest: rules.Refusal | None = None
    for rule in machine.rules:
        found = rules.applied(machine, rule, state, n)
        if isinstance(found, rules.State):
            return rule.name, ""
        if furthest is None or found.position > furthest.position:
            furthest = found
    assert furthest is not None
    said = explained(machine, state, furthest)
    return said.rule, said.premise


def agree(done: Run, meaning: Any, draws: int = 0, every: bool = True) -> Iterator[str]:
    """The differences between a run of the fast machine and the reference that takes the same steps.

    every: whether each node of the graph that runs is asked for in each state, not only the one that takes the step.
    """
    if not done.states:
        return
    machine = rules.Machine(done.model, meaning, draws, specification())
    first = done.states[0]
    given = {t: value for t in done.model.graphs[0].inputs if (value := value_of(first, t)) is not None}
    state = rules.begin(machine, given)
    for number, fast in enumerate(done.states):
        if found := difference(state, fast):
            yield f"step {number}: {found}"
            return
        for n in dict.fromkeys(rules.nodes_of(machine, state)) if every else ():
            one, other = outcome_of_fast(fast, n), outcome_of_reference(machine, state, n)
            if one != other:
                yield f"step {number}, {done.model.nodes[n].path}: fast {one}, reference {other}"
        if number < len(done.choices):
            after = rules.step(machine, state, done.choices[number])
            if isinstance(after, rules.Refusal):
                yield f"step {number}: the reference refuses {after}"
                return
            state = after
