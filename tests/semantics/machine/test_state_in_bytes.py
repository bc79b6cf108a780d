"""The machine is one of those that part 3b defines: each state of a run is (G, M, T, K) there, each step one in bytes.

The definitions of spec/3b-memory.sonnx are asked by name, with memory and frames of part 3 kept beside the run: the
memory is changed by what the rule gives, and never by what lies in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import machine_models as models
import numpy as np
import pytest
from random_models import random_model
from sonnx.semantics import Schedule, load_proto
from sonnx.semantics.machine.execution import Run, run
from sonnx.semantics.machine.memory import Memory, Region, Store, load_value, parts_of, type_of
from sonnx.semantics.machine.memory import write as put
from sonnx.semantics.machine.phases import Advance, Again, Apply, Enter, Leave, Phase, Select, Write
from sonnx.semantics.machine.state import Frame, State, frames
from sonnx.semantics.model.values import Value, identical
from sonnx.semantics.operators.application import Stuck
from sonnx.semantics.resources.persistent import items

Slot = tuple[int, ...]
"""now(t) as (t,), earlier(d, j, t) as (d, j, t)."""


def slots(state: State) -> dict[Slot, Region]:
    """owned(T), with the region of each."""
    owned: dict[Slot, Region] = {}
    for depth, frame in enumerate(frames(state)):
        owned |= {(t,): where for t, where in items(frame.table) if not where.freed}
        outputs, kept, j = state.program.model.graphs[frame.graph].outputs, frame.kept, frame.run - 1
        while kept is not None:
            owned |= {(depth, j, t): at for t, at in zip(outputs, kept.places, strict=True) if at is not None}
            kept, j = kept.before, j - 1
    return owned


def names(state: State) -> set[int]:
    """names(T)."""
    return {t for frame in frames(state) for t, _ in items(frame.table)}


def flat(M: Memory) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    """The bytes of M; -1 where nothing was written."""
    found = np.full(M.size, -1, np.int16)
    for start, data in items(M.segments):
        found[start : start + len(data)] = np.frombuffer(data, np.uint8)
    return found


def inside(where: Region) -> slice:
    """in_region."""
    return slice(where.offset, where.offset + where.length)


def lies(bytes_of: np.ndarray[tuple[int], np.dtype[np.int16]], where: Region, value: Value) -> bool:
    """lies: one region of M holds the bytes that encode the value, with its layout."""
    data = b"".join(map(bytes, parts_of(value)))
    within = where.offset >= 0 and where.offset + where.length <= len(bytes_of)
    same = where.length == len(data) and where.type == type_of(value)
    return within and same and bytes_of[inside(where)].tolist() == list(data)


def collects(state: State, frame: Frame, i: int) -> bool:
    """gathers(n, i), of the holder of a frame."""
    model = state.program.model
    assert frame.holder is not None
    node, inputs = model.nodes[frame.holder], len(model.graphs[frame.graph].inputs)
    match node.op_type:
        case "Loop":
            return inputs - 1 <= i
        case "Scan":
            scans = state.program.attributes(frame.holder)["num_scan_inputs"]
            assert isinstance(scans, int)
            return (node.version or 0) < 9 or inputs - scans <= i
        case name:
            return name == "SequenceMap"


@dataclass
class Beside:
    """The observer that keeps the memory and the frames of part 3 beside a run, and asks the definitions of part 3b.

    kinds: how often there was a step of each kind; reused: how often a region was one that another tensor had owned.
    """

    memory: dict[int, Value] = field(default_factory=dict)
    runs: dict[Slot, Value] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)
    reused: int = 0
    kept: int = 0
    _select: Select | None = None
    _apply: Apply | None = None
    _write: Write | None = None
    _had: set[int] = field(default_factory=set)

    def begun(self, state: State) -> None:
        self.memory = {t: load_value(state.store, where) for t, where in items(state.frame.table)}
        self.represents(state, "the first state")

    def ended(self, state: State) -> None:
        """Nothing is left to ask."""

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        match phase:
            case Select():
                self._select = phase
                self.selects(state, phase)
            case Apply():
                self._apply = phase
            case Write():
                self._write = phase
            case Advance(state=after) if self._select is not None and self._apply is not None:
                self.given(state, self._select, self._apply)
                assert self._write is not None
                self.written(state, after, self._write)
                self.represents(after, f"step {after.steps}")
            case _:
                pass

    def ask(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(what)

    def selects(self, state: State, select: Select) -> None:
        """selects and selects_end: what the step reads owns regions."""
        owned, frame = slots(state), state.frame
        for t in state.program.reads[select.node]:
            self.ask((t,) in owned, f"{select.path} reads {t}, which owns no region")
        if isinstance(select.change, (Again, Leave)):
            for i, t in enumerate(state.program.model.graphs[frame.graph].outputs):
                self.ask((t,) in owned, f"{select.path}: the output {t} of the body owns no region")
                for j in range(frame.run if collects(state, frame, i) else 0):
                    self.ask((len(frames(state)) - 1, j, t) in owned, f"{select.path}: run {j} of {t} owns no region")

    def given(self, state: State, select: Select, applied: Apply) -> None:
        """The rule of part 3: W goes over M, stored values of a body that begins too; frames keep what runs gave."""
        change, model = select.change, state.program.model
        self.kinds[type(change).__name__] = self.kinds.get(type(change).__name__, 0) + 1
        depth = len(frames(state)) - 1
        if isinstance(change, Again):
            outputs = model.graphs[state.frame.graph].outputs
            self.runs |= {(depth, state.frame.run, t): self.memory[t] for t in outputs}
        if isinstance(change, Leave):
            self.runs = {slot: value for slot, value in self.runs.items() if slot[0] < depth}
        if isinstance(change, (Again, Leave)):
            here = state.frame.graph
            self.memory = {t: value for t, value in self.memory.items() if model.tensors[t].graph != here}
        if isinstance(change, (Enter, Again)):
            body = change.body if isinstance(change, Enter) else state.frame.graph
            self.memory |= {t: load_value(state.store, where) for t, where in items(state.stored[body])}
        self.memory |= dict(zip(applied.tensors, applied.values, strict=True))

    def written(self, before: State, after: State, written: Write) -> None:
        """spares and fills: bytes change that nothing owned, and only in new regions; runs_stay and keeps: what else is
        owned has the region that it had."""
        was, now = flat(before.store.memory), flat(written.store.memory)
        old, new = slots(before), {(t,): at for t, at in zip(written.tensors, written.places, strict=True)}
        changed = now.copy()
        changed[: len(was)] -= was
        changed[len(was) :] += 1
        for slot, where in old.items():
            self.ask(not changed[inside(where)].any(), f"the region of {slot} is written while it is owned")
        for where in new.values():
            self.reused += bool(self._had.intersection(range(where.offset, where.offset + where.length)))
            changed[inside(where)] = 0
        self.ask(not changed.any(), "a byte outside of new regions is written")
        stored = {(t,): at for table in before.stored for t, at in items(table)}
        ended = {(len(frames(before)) - 1, before.frame.run, t[0]): at for t, at in old.items() if len(t) == 1}
        known = {**ended, **stored, **old, **new}
        for slot, where in slots(after).items():
            self.ask(known.get(slot) == where, f"{slot} owns a region that it had not, and that was not written")
        self._had.update(a for at in (*old.values(), *new.values()) for a in range(at.offset, at.offset + at.length))

    def represents(self, state: State, where: str) -> None:
        """represents: the table names what has a value, and what is owned lies in M; what is read is the value."""
        data = flat(state.store.memory)
        self.ask(names(state) == set(self.memory), f"{where}: names(T) is not dom(M)")
        for slot, at in slots(state).items():
            value = self.memory.get(slot[0]) if len(slot) == 1 else self.runs.get(slot)
            self.kept += len(slot) == 3
            self.ask(value is not None and lies(data, at, value), f"{where}: the bytes of {slot} are not its value")
            self.ask(identical(load_value(state.store, at), value), f"{where}: {slot} is read as something else")


def followed(proto: object, inputs: Mapping[str, object], plain: bool, **options: object) -> tuple[Run, Beside]:
    beside = Beside()
    meaning = models.meaning if plain else None
    done = run(load_proto(proto), inputs, observers=[beside], meaning=meaning, **options)  # type: ignore[arg-type]
    assert done.stuck is None, done.stuck
    return done, beside


def number(x: float, dtype: type = np.float32) -> np.ndarray[tuple[()], np.dtype[np.generic]]:
    return np.array(x, dtype)


BUILT = {
    "diamond": lambda: (models.diamond(), {"x": np.array([-1, 2], np.float32)}),
    "choice": lambda: (models.choice(), {"x": np.ones(2, np.float32), "c": np.array(True)}),
    "loop": lambda: (models.loop(), {"x": number(30), "v0": number(0), "m": np.array(4), "c0": np.array(True)}),
    "nested": lambda: (models.nested(), {"x": number(1), "v0": number(0), "m": np.array(2), "m2": np.array(2)}),
    "scan": lambda: (models.scan(), {"s0": np.ones(2, np.float32), "xs": np.ones((3, 2), np.float32)}),
    "map": lambda: (models.sequence_map(), {"p": np.ones(2, np.float32), "q": np.ones(1, np.float32),
                                            "x": number(2)}),
}  # fmt: skip
ALLOCATIONS = ("simple", "arena")


@pytest.mark.parametrize("allocation", ALLOCATIONS)
@pytest.mark.parametrize("name", BUILT)
def test_each_step_of_a_built_model_is_one_in_bytes(name: str, allocation: str) -> None:
    for schedule in models.SCHEDULES:
        _, beside = followed(*BUILT[name](), plain=True, allocation=allocation, schedule=schedule)
        assert beside.wrong == []


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_each_step_of_a_random_model_is_one_in_bytes(allocation: str) -> None:
    for seed in range(12):
        _, beside = followed(*random_model(seed), plain=False, allocation=allocation, schedule=Schedule("random", seed))
        assert beside.wrong == [], seed


def test_bodies_frames_runs_and_reuse_are_among_what_is_followed() -> None:
    every = [followed(*make(), plain=True, allocation="arena")[1] for make in BUILT.values()]
    assert {kind for it in every for kind in it.kinds} == {"Stay", "Enter", "Again", "Leave"}
    assert any(it.reused for it in every) and any(it.kept for it in every)


# ---- Each question matters --------------------------------------------------------------------


def spoiled() -> Iterator[tuple[str, State, Write]]:
    """A step of a Loop, with something wrong in what it writes."""
    done, _ = followed(*BUILT["loop"](), plain=True)
    state = done.states[3]
    live = next(at for at in slots(state).values() if at.length)
    yield "while it is owned", state, Write((0,), (live,), _changed(state, live.offset), live.length)
    yield "outside of new regions", state, Write((), (), _changed(state, live.offset), 0)


def _changed(state: State, at: int) -> Store:
    """The store with another byte at an address."""
    old = flat(state.store.memory)[at]
    return replace(state.store, memory=put(state.store.memory, at, bytes([(int(old) + 1) % 256])))


@pytest.mark.parametrize("case", range(2))
def test_a_write_that_does_not_spare_is_noticed(case: int) -> None:
    why, state, write = list(spoiled())[case]
    beside = Beside()
    beside.written(state, state, write)
    assert any(why in it for it in beside.wrong)


def test_a_byte_that_is_changed_behind_the_back_is_noticed() -> None:
    done, beside = followed(*BUILT["loop"](), plain=True)
    last = done.states[-1]
    at = next(where.offset for where in slots(last).values() if where.length)
    beside.represents(replace(last, store=_changed(last, at)), "the last state")
    assert any("are not its value" in it for it in beside.wrong)
