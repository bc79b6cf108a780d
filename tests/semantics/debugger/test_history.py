"""A timeline answers the same whatever was asked before: a step back undoes a step, seeking is replaying."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from debugger_models import GIVEN, NESTED, answer, model, nested, session, stopped
from random_models import random_model
from sampling import sampled, seeds
from sonnx.semantics import Schedule, load_proto
from sonnx.semantics.debugger.session.motion import seek, step, stepi
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.debugger.timeline.history import Edit, History
from sonnx.semantics.debugger.timeline.names import Instance, with_value
from sonnx.semantics.machine.execution import next_node, run
from sonnx.semantics.machine.phases import Advance
from sonnx.semantics.machine.state import State, tensor_path, value_of
from sonnx.semantics.machine.transitions import enabled, phases
from sonnx.semantics.model.graph import Model
from sonnx.semantics.resources.persistent import items
from tables import table

SCHEDULES = (Schedule(), Schedule("random", 3), Schedule("demand"))
SEEDS = seeds(8, 3)


def opened(seed: int, schedule: Schedule, **options: int) -> tuple[Session, Model, dict[str, object]]:
    proto, inputs = random_model(seed)
    return session(proto, inputs, schedule, **options), load_proto(proto), dict(inputs)


def same(history: History, index: int, model: Model, states: tuple[object, ...]) -> None:
    """The moment is the state of the run: frames with tables and agendas, memory and its space."""
    state, expected = history.at(index).state, states[index]
    n, ready = next_node(expected)  # type: ignore[arg-type]
    assert (state.frame, state.store, state.steps) == (ready.frame, ready.store, ready.steps)
    assert history.at(index).next == n


@pytest.mark.parametrize("drawn", SEEDS)
@table("schedule", SCHEDULES, ids=str)
def test_seeking_gives_the_states_of_a_run_in_any_order(drawn: range, schedule: Schedule) -> None:
    for seed in drawn:
        seek_all(seed, schedule)


def seek_all(seed: int, schedule: Schedule) -> None:
    found, loaded, inputs = opened(seed, schedule)
    states = run(loaded, inputs, schedule).states  # type: ignore[arg-type]
    last = len(states) - 1
    for index in (last, 0, last // 2, last // 3, last, 1):
        moved = seek(found, min(index, last)).session
        same(moved.history, moved.index, loaded, states)
    assert found.history.finish().index == last
    for index in range(last + 1):
        same(found.history, index, loaded, states)


@pytest.mark.parametrize("kept", [2, 3, 5])
def test_moments_that_were_dropped_are_made_again(kept: int) -> None:
    few, all_ = nested(kept=kept), nested()
    states = run(load_proto(model(NESTED)), GIVEN).states
    few.history.finish()
    assert few.history.last == all_.history.finish().index == 25
    assert len(few.history._moments) <= kept + 1
    for index in (0, 25, 24, 3, 17, 4, 16, 11):
        same(few.history, index, few.model, states)
    assert list(few.history.writes(0, 25)) == list(all_.history.writes(0, 25))


@pytest.mark.parametrize("drawn", SEEDS)
@table("schedule", SCHEDULES, ids=str)
def test_a_step_back_undoes_a_step_and_a_phase_back_a_phase(drawn: range, schedule: Schedule) -> None:
    for seed in drawn:
        found, _, _ = opened(seed, schedule)
        last = found.history.finish().index
        for index in range(last):
            there = undone(seek(found, index).session)
            assert (there.index, there.phase) == (index + 1, 0)


def undone(here: Session) -> Session:
    """The session a step further; a step back leads here again, five phases there, and each phase back to the last."""
    there = step(here, 1, forward=True).session
    assert step(there, 1, forward=False).session == here
    phase = here
    for _ in range(5):
        further = stepi(phase, 1, forward=True).session
        assert stepi(further, 1, forward=False).session == phase
        phase = further
    assert phase == there
    return there


# ---- Other timelines --------------------------------------------------------------------------


def forks(found: Session, seed: int) -> Iterator[Session]:
    """The session on a timeline with another choice, and on one with an edit, where the model has them."""
    rng = random.Random(seed)
    last = found.history.finish().index
    indices = rng.sample(range(last), last)
    for index in indices:
        moment = found.history.at(index)
        others = [n for n in enabled(moment.state) if n != moment.next]
        if others:
            made = found.history.choosing(index, rng.choice(others))
            yield replace(found, history=made, timelines=(*found.timelines, made), index=index)
            break
    for index in indices:
        state = found.history.at(index).state
        for t, place in items(state.frame.table):
            value = value_of(state, t)
            if isinstance(value, np.ndarray) and value.dtype == np.float32 and value.size and not place.freed:
                changed = np.array(value)
                changed.flat[rng.randrange(value.size)] += np.float32(1)
                changed.flags.writeable = False
                other = with_value(state, Instance(t, tensor_path(state, t)), changed)
                edit = Edit(t, tensor_path(state, t), np.ones(value.shape, np.bool_), " changed", 1)
                made = found.history.edited(other, edit)
                yield replace(found, history=made, timelines=(*found.timelines, made), index=index)
                return


@pytest.mark.parametrize("drawn", SEEDS)
@pytest.mark.parametrize("schedule", sampled(SCHEDULES, 1), ids=str)
def test_a_fork_goes_back_and_forth_and_is_replayed_like_any_timeline(schedule: Schedule, drawn: range) -> None:
    kinds = []
    for seed in drawn:
        found, _, _ = opened(seed, schedule, kept=3)
        for fork in forks(found, seed):
            kinds.append("changed" if " changed at " in fork.history.label else fork.history.label)
            first, parent = fork.history.first, found.history
            assert fork.history.at(first).state.steps == first
            last = fork.history.finish().index
            came = {index: fork.history.at(index).came for index in range(1, last + 1)}
            for t in range(len(fork.history.model.tensors)):
                written = [index for index, it in came.items() if it is not None and t in it.tensors]
                for end in (last, first, first - 1):
                    edited = [it.first for it in fork.history.edits if it.edit is not None and it.edit.tensor == t]
                    events = sorted((*written, *edited), reverse=True)
                    assert list(fork.history.writes(t, end)) == [index for index in events if index <= end]
            replayed = replay(fork.history)
            for index in range(last + 1):
                if index < first:
                    assert fork.history.at(index) is parent.at(index) or fork.history.at(index) == parent.at(index)
                else:
                    state = fork.history.at(index).state
                    assert (state.frame, state.store) == (replayed[index - first].frame, replayed[index - first].store)
                here = seek(fork, index).session
                if index == last:
                    break
                undone(here)
    assert kinds.count("changed") >= len(drawn) // 2 and kinds.count("") >= len(drawn) // 2


def replay(history: History) -> list[State]:
    """The states of a timeline from where it begins, by carrying out one transition after the other."""
    n, state = next_node(history.at(history.first).state)
    found = [state]
    while (n := history.chosen.get(state.steps, n)) is not None:
        end = list(phases(state, n))[-1]
        if not isinstance(end, Advance):
            break
        n, state = next_node(end.state)
        found.append(state)
    return found


def test_a_choice_is_another_timeline_with_the_same_outputs() -> None:
    proto = """<ir_version: 10, opset_import: ["" : 18]>
    g (float[1] x) => (float[1] y) { a = Neg (x)  b = Abs (x)  y = Add (a, b) }"""
    found = session(proto, {"x": np.ones(1, np.float32)})
    found, got = stopped(found, "choose op:Abs", "step")
    assert found.history.at(1).came is not None and "Abs" in found.history.at(1).came.path  # type: ignore[union-attr]
    found, got = stopped(found, "seek end")
    assert (got.where.ended, got.where.edited, len(found.timelines)) == (True, "", 2)
    refused = answer(found, "seek 0", "choose op:Add")[1]
    assert type(refused).__name__ == "Refusal"
    first = answer(found, "timeline 0", "seek 1")[0]
    assert first.history is found.timelines[0] and "Neg" in first.history.at(1).came.path  # type: ignore[union-attr]


def test_a_limit_of_steps_ends_the_timeline() -> None:
    found, got = stopped(nested(limit=4), "continue")
    assert (found.index, got.reason) == (4, "stuck")
    assert "4 steps are taken" in got.notes[0]
