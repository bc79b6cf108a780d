"""A timeline: the states of one run, made when they are first asked for, kept, and made again where dropped."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...errors import InternalError
from ...machine.execution import at_end, next_node
from ...machine.memory import Region
from ...machine.phases import Advance, Apply, Change, Phase, Select, Supply, Write, over_budget
from ...machine.schedule import Ordered, Ready
from ...machine.state import Frame, State, frames, node_path
from ...machine.transitions import is_enabled, phases
from ...model.graph import GraphId, Model, NodeId, TensorId
from ...operators.application import Stuck


class Refused(Exception):  # noqa: N818 - input that cannot be followed, no defect
    """A sentence that says what is wrong and what to do. candidates: what may have been meant."""

    def __init__(self, message: str, candidates: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message, self.candidates = message, candidates


class NoValue(Refused):
    """A tensor has no value at the position. A condition that needs it does not hold there."""


KEPT: Final = 1 << 16
"""So many states are kept, then every second one, every fourth one, and so on."""


@dataclass(frozen=True, slots=True)
class Transition:
    """The transition that led to a state: the node with its path and rule, what was written where.

    open: the tensors of which the text leaves elements open. supplied: where values came from that no definition gave.
    """

    node: NodeId
    path: str
    rule: str
    change: Change
    tensors: tuple[TensorId, ...]
    places: tuple[Region, ...]
    written: int
    open: tuple[TensorId, ...] = ()
    supplied: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """A state of a timeline: how many transitions led to it, which node comes next, what the last transition was."""

    index: int
    state: State
    next: NodeId | None
    came: Transition | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """A value that a person changed where a timeline begins.

    tensor, path: of which tensor, in which run of its graph. changed: which elements. what: in words. timeline: the
    number of the timeline that has the new value.
    """

    tensor: TensorId
    path: str
    changed: NDArray[np.bool_]
    what: str
    timeline: int


Supplier = Callable[["History", Moment], Supply | Stuck | None]
"""Values from outside for the outputs of the node that comes next at a moment, or why there are none; None where they
are not wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class Supplies:
    """Values from outside with which a timeline goes on. given: for the step with which it begins. always: whoever is
    asked at each step. what: in words."""

    what: str
    given: Supply | None = None
    always: Supplier | None = None


class History:
    """One timeline. `at` and `reach` give its moments; every answer depends on the timeline alone.

    start: the state at `first`. parent: the timeline that this one leaves there; what lies before is the parent's.
    chosen: the node of a step where that is not the one of the schedule. edit: the value that was changed in the first
    state. supplies: values from outside, beside those of the timelines before. kept: about how many moments are kept.
    limit: how many steps may be taken.
    """

    def __init__(
        self,
        start: State,
        *,
        chosen: Mapping[int, NodeId] = MappingProxyType({}),
        parent: History | None = None,
        edit: Edit | None = None,
        supplies: Supplies | None = None,
        kept: int = KEPT,
        limit: int | None = None,
    ) -> None:
        if kept < 2:
            raise ValueError("at least two moments are kept")
        self.parent, self.edit, self.chosen, self.limit = parent, edit, dict(chosen), limit
        self.first = start.steps
        self.supplies = supplies
        self._suppliers: tuple[Supplier, ...] = (
            *(() if supplies is None or supplies.always is None else (supplies.always,)),
            *(() if parent is None else parent._suppliers),
        )
        given = None if supplies is None else supplies.given
        self._supplied: dict[int, Supply] = {} if given is None else {self.first: given}
        self.edits: tuple[History, ...] = (
            *(() if parent is None else parent.edits),
            *(() if edit is None else (self,)),
        )
        """The timelines with whose edits this one goes on, the first edit first, this one too if it begins with one."""
        self.stuck: Stuck | None = None
        """Why the run did not end well; known when `ended` is."""
        self.ended = False
        """True where the last moment is known."""
        self.kept, self._stride = kept, 1
        came = None if parent is None else parent.at(self.first).came
        self._newest = self._moment(start, came)
        self._moments: dict[int, Moment] = {self.first: self._newest}
        self._block: dict[int, Moment] = {}
        self._writes: dict[TensorId, list[int]] = {} if edit is None else {edit.tensor: [self.first]}
        self._phases: tuple[int, tuple[Phase | Stuck, ...]] | None = None
        self._occurred: dict[object, tuple[int, list[int]]] = {}
        self._settle()

    # ---- Moments ------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The index of the last moment known so far."""
        return self._newest.index

    @property
    def model(self) -> Model:
        """The model that is run."""
        return self._newest.state.program.model

    def reach(self, index: int) -> Moment | None:
        """The moment at an index, None when the timeline ends before it. Runs forward as far as is needed."""
        if index < 0:
            return None
        while index > self._newest.index and not self.ended:
            self._forward()
        return self.at(index) if index <= self._newest.index else None

    def at(self, index: int) -> Moment:
        """A moment that is known. Raises IndexError for others."""
        if index < self.first:
            if self.parent is None:
                raise IndexError(index)
            return self.parent.at(index)
        moment = self._moments.get(index) or self._block.get(index)
        if moment is not None:
            return moment
        if index == self._newest.index:
            return self._newest
        if index > self._newest.index:
            raise IndexError(index)
        return self._again(index)

    def finish(self) -> Moment:
        """The last moment; runs to the end."""
        while not self.ended:
            self._forward()
        return self._newest

    def writes(self, t: TensorId, index: int) -> Iterator[int]:
        """The known moments, up to an index and the latest first, to which a write of the tensor led or at which it was
        edited, in any run of its graph. A Loop has very many, of which the last few are wanted."""
        own = self._writes.get(t, [])
        for i in range(bisect_right(own, index) - 1, -1, -1):
            yield own[i]
        if self.parent is not None:
            yield from self.parent.writes(t, min(index, self.first))

    def occurrences(self, key: object, occurs: Callable[[int], bool], index: int) -> int:
        """At how many moments up to an index something occurs; each moment is asked once for each key."""
        scanned, hits = self._occurred.setdefault(key, (-1, []))
        hits += [at for at in range(scanned + 1, index + 1) if occurs(at)]
        self._occurred[key] = max(scanned, index), hits
        return bisect_right(hits, index)

    def phases(self, index: int) -> tuple[Phase | Stuck, ...]:
        """The phases of the transition from a moment; none where nothing comes next."""
        if index < self.first and self.parent is not None:
            return self.parent.phases(index)
        if self._phases is None or self._phases[0] != index:
            moment = self.at(index)
            made = () if moment.next is None else tuple(self._transition(moment, moment.next))
            self._phases = (index, made)
        return self._phases[1]

    # ---- Other timelines ----------------------------------------------------------------------

    @property
    def label(self) -> str:
        """How it differs from an execution of the model, "" when it does not."""
        before = "" if self.parent is None else self.parent.label
        own = "" if self.edit is None else f"{self.edit.path}{self.edit.what} at {self.first}"
        return "; ".join(filter(None, (before, own, "" if self.supplies is None else self.supplies.what)))

    def supplied(self, index: int) -> Iterator[int]:
        """The known moments up to an index to which values from outside led, the first one first."""
        if self.parent is not None:
            yield from self.parent.supplied(min(index, self.first))
        yield from (at + 1 for at in sorted(self._supplied) if at < index and at < self.last)

    def choosing(self, index: int, node: NodeId) -> History:
        """The timeline on which another node comes next at an index: another order, the model's execution all the
        same."""
        return self._fork(self.at(index).state, {index: node})

    def edited(self, state: State, edit: Edit) -> History:
        """The timeline that goes on from a state which no transition led to."""
        return self._fork(state, {}, edit)

    def supplying(self, index: int, supplies: Supplies) -> History:
        """The timeline that goes on from an index with values from outside."""
        return self._fork(self.at(index).state, {}, supplies=supplies)

    def _fork(
        self,
        start: State,
        choice: Mapping[int, NodeId],
        edit: Edit | None = None,
        supplies: Supplies | None = None,
    ) -> History:
        parent = self
        while parent.parent is not None and (
            start.steps < parent.first
            or (start.steps == parent.first and parent.supplies is not None and parent.supplies.given is not None)
        ):
            parent = parent.parent  # what begins before an edit, or before a step with values from outside, is without
        chosen = {step: n for step, n in self.chosen.items() if step < start.steps} | dict(choice)
        return History(
            start, chosen=chosen, parent=parent, edit=edit, supplies=supplies, kept=self.kept, limit=self.limit
        )

    # ---- Running ------------------------------------------------------------------------------

    def _moment(self, state: State, came: Transition | None) -> Moment:
        node, ready = next_node(state)
        return Moment(state.steps, ready, self.chosen.get(state.steps, node), came)

    def _settle(self) -> None:
        """True where the newest moment is the last one."""
        newest = self._newest
        if newest.next is None:
            self.ended, self.stuck = True, at_end(newest.state)
        elif self.limit is not None and newest.index >= self.limit:
            message = f"{newest.index} steps are taken, which is the limit"
            self.ended, self.stuck = True, over_budget("Step/fire", message, "--max-steps")

    def _forward(self) -> None:
        following = self._after(self._newest)
        if isinstance(following, Stuck):
            self.ended, self.stuck = True, following
            return
        self._newest = following
        if following.index % self._stride == 0:
            self._moments[following.index] = following
        for t in () if following.came is None else following.came.tensors:
            self._writes.setdefault(t, []).append(following.index)
        if len(self._moments) > self.kept:
            self._stride *= 2
            stays = (self.first, following.index)
            self._moments = {i: it for i, it in self._moments.items() if i % self._stride == 0 or i in stays}
        self._settle()

    def _transition(self, moment: Moment, node: NodeId) -> Iterator[Phase | Stuck]:
        """The phases of the transition from a moment, with the values that are supplied; what has once been supplied
        stays the same."""
        supply = self._supplied.get(moment.index)
        for supplier in self._suppliers if supply is None else ():
            made = supplier(self, moment)
            if isinstance(made, Stuck):
                yield made
                return
            if made is not None:
                supply = self._supplied[moment.index] = made
                break
        yield from phases(moment.state, node, supply)

    def _after(self, moment: Moment) -> Moment | Stuck:
        """The moment after one, or why there is none."""
        if moment.next is None:
            raise InternalError("nothing comes next")
        select: Select | None = None
        applied: Apply | None = None
        written: Write | None = None
        for phase in self._transition(moment, moment.next):
            match phase:
                case Select():
                    select = phase
                case Apply():
                    applied = phase
                case Write():
                    written = phase
                case Stuck():
                    return phase
                case Advance() if select is not None and applied is not None and written is not None:
                    masks = zip(applied.tensors, applied.free, strict=False)
                    left_open = tuple(t for t, mask in masks if mask is not None and bool(mask.any()))
                    supply = self._supplied.get(moment.index)
                    came = Transition(
                        select.node, select.path, select.rule, select.change, written.tensors, written.places,
                        written.written, left_open, "" if supply is None else supply.source,
                    )  # fmt: skip
                    return self._moment(phase.state, came)
                case _:
                    pass
        raise InternalError("a transition has no end")

    def _again(self, index: int) -> Moment:
        """A moment that was dropped, made again from the last one before it that is kept, with those on the way."""
        start = index - index % self._stride
        moment = self._moments.get(start) or self._moments[self.first]
        block = {}
        while moment.index < index:
            following = self._after(moment)
            if isinstance(following, Stuck):
                raise InternalError(f"a step that was taken before is stuck now: {following.message}")
            moment = following
            block[moment.index] = moment
        self._block = block
        return moment


def next_path(moment: Moment) -> str:
    """The path of the node that comes next; "" at the end."""
    return "" if moment.next is None else node_path(moment.state, moment.next)


def supplied_text(at: int, source: str) -> str:
    """When and from where values came that no definition gave."""
    return f"{'computed' if source.startswith('by ') else 'supplied'} {source} at step {at}, by no definition here"


def edit_text(timeline: History) -> str:
    """The edit with which a timeline begins, where and when it was made."""
    edit = timeline.edit
    return "" if edit is None else f"set at step {timeline.first} on timeline {edit.timeline}"


# ---- Where an execution stands --------------------------------------------------------------------

Level = GraphId | str
"""A graph that runs, or the path of a call."""


@dataclass(frozen=True, slots=True)
class CallFrame:
    """One frame as a person sees it, a graph or a call.

    node: the next node in it, the holder of a body that ends included; None at the end. path: of the graph or the call,
    with the numbers of runs. run: which run of a body, None for the main graph, a branch or a call. depth:
    how many frames of the machine lie below the one that it belongs to.
    """

    level: Level
    node: NodeId | None
    path: str
    run: int | None
    depth: int


def levels(state: State, n: NodeId | None) -> tuple[Level, ...]:
    """The graphs and calls, outermost first, in which the node n comes next."""
    return tuple(place.level for place in call_frames(state, n))


def call_frames(state: State, n: NodeId | None) -> tuple[CallFrame, ...]:
    """The frames, outermost first, for the node n that comes next."""
    model, stack = state.program.model, frames(state)
    shown: list[CallFrame] = []
    around: tuple[str, ...] = ()
    for depth, frame in enumerate(stack):
        node = stack[depth + 1].holder if depth + 1 < len(stack) else n
        shown.append(CallFrame(frame.graph, node, frame.prefix.rstrip("/") or "/", _run(frame), depth))
        if node is None or model.nodes[node].graph != frame.graph:
            continue
        calls = model.nodes[node].calls
        inner = calls[len(around) :] if calls[: len(around)] == around else calls
        plain = model.graphs[frame.graph].path.rstrip("/") + "/"
        shown += [CallFrame(call, node, frame.prefix + call[len(plain) :], None, depth) for call in inner]
        around = calls
    return tuple(shown)


def base(history: History, index: int) -> tuple[Level, ...]:
    """The levels in which the execution is at a moment: those of the next node, without calls that begin there."""
    moment = history.at(index)
    now = levels(moment.state, moment.next)
    floor = max(i for i, level in enumerate(now) if isinstance(level, int)) + 1
    if index == 0 or moment.came is None:
        return now[:floor]
    before = levels(history.at(index - 1).state, moment.came.node)
    same = 0
    while same < min(len(now), len(before)) and now[same] == before[same]:
        same += 1
    return now[: max(same, floor)]


def inside(levels_: tuple[Level, ...], outer: tuple[Level, ...]) -> bool:
    """True where levels lie strictly inside of others."""
    return len(levels_) > len(outer) and levels_[: len(outer)] == outer


def is_end_of_body(moment: Moment) -> bool:
    """True where the graph that runs has all its outputs, so that its holder goes on."""
    return moment.next is not None and moment.next == moment.state.frame.holder


def _run(frame: Frame) -> int | None:
    return frame.run if "@" in frame.prefix.rsplit("/", 2)[-2] else None


# ---- Nodes that may come next ---------------------------------------------------------------------

_LOOKED: Final = 2000
"""So many nodes are looked at for those that are ready."""


def first_ready(state: State, most: int) -> tuple[NodeId, ...]:
    """Some of the nodes of the graph on top that may come next: those that are found soon."""
    agenda = state.frame.agenda
    if isinstance(agenda, Ready):
        return tuple(agenda.nodes[i] for i in range(min(most, len(agenda.nodes))))
    return ready_from(state, agenda.position if isinstance(agenda, Ordered) else 0, most)[0]


def ready_from(state: State, position: int, most: int) -> tuple[tuple[NodeId, ...], int]:
    """Nodes that may come next, from a position in the order of the graph on, and up to which position was looked."""
    order = state.program.order(state.frame.graph)
    end = min(position + _LOOKED, len(order))
    places = (at for at in range(position, end) if is_enabled(state, order[at]))
    ready = tuple(islice(places, most))
    return tuple(order[at] for at in ready), ready[-1] + 1 if len(ready) == most else end
