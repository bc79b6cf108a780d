"""What the panes show of a session, as data. It is made on the thread that runs commands, from the inspection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from sonnx.spec.terminal import one_line

from ...machine.inputs import type_text
from ...machine.report import content
from ...machine.state import region_of
from ...model.graph import TensorId
from ...model.path import operator_text
from ...model.schemas import normal_domain
from ...model.values import Value
from ..display.answers import Where
from ..display.texts import statistics
from ..inspection.items import EFFORT, here, shown_name
from ..inspection.scopes import expression_for, frame_line, frame_name, valued
from ..session.session import Session, where
from ..timeline.history import History, call_frames
from ..timeline.names import edits_of, value_of_instance, written_at

_KEPT: Final = 20_000


@dataclass(frozen=True, slots=True)
class FrameLook:
    """A frame: its number as commands have it, its name, its line in the listing (0: none), the operator that comes
    next in it, and whether it is looked at."""

    number: int
    name: str
    line: int
    operator: str
    looked_at: bool


@dataclass(frozen=True, slots=True)
class Look:
    """A session where it stands, with all that needs its timeline.

    tensors: those of the frame that is looked at which have a value. written: those that the last step wrote. known:
    how many steps are known. complete: whether they are all. timelines: what each is, in words.
    """

    session: Session
    where: Where
    frames: tuple[FrameLook, ...]
    tensors: tuple[TensorId, ...]
    written: tuple[TensorId, ...]
    known: int
    complete: bool
    timeline: int
    timelines: tuple[str, ...]


def look(session: Session) -> Look:
    """A session as it stands."""
    moment, history = session.moment, session.history
    stack = tuple(reversed(call_frames(moment.state, moment.next)))
    frames = []
    for number, place in enumerate(stack):
        node = None if place.node is None else session.model.nodes[place.node]
        operator = "end" if node is None else operator_text(normal_domain(node.domain), node.op_type)
        name = one_line(frame_name(session, place))
        line = frame_line(session, stack, number)
        frames.append(FrameLook(number, name, line, one_line(operator), number == session.frame))
    return Look(
        session, where(session), tuple(frames), valued(session, session.frame),
        () if moment.came is None else moment.came.tensors,
        history.last, history.ended, session.timelines.index(history),
        tuple(one_line(it.label) or "the model's execution" for it in session.timelines),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorLook:
    """A tensor in one line: its least, greatest and mean element, how many are NaN and infinite. note: in place of
    numbers, where it has none."""

    least: str = ""
    greatest: str = ""
    mean: str = ""
    nan: int = 0
    inf: int = 0
    note: str = ""


@dataclass(slots=True)
class TensorLooks:
    """The looks of tensors, kept by run of their graph, by write and by edit."""

    _root: History | None = None
    _kept: dict[object, TensorLook] = field(default_factory=dict)

    def of(self, session: Session, t: TensorId) -> TensorLook:
        """A tensor in the run of its graph that goes on."""
        if session.timelines[0] is not self._root or len(self._kept) > _KEPT:
            self._root, self._kept = session.timelines[0], {}
        region = region_of(session.state, t)
        if region is not None and region.freed:
            return TensorLook(note="freed")
        instance, history = here(session, t), session.history
        edits = len(edits_of(history, session.index, instance))
        written = written_at(history, session.index, instance)
        key = (session.timelines.index(history), instance.path, written, edits)
        if key not in self._kept:
            self._kept[key] = _tensor(value_of_instance(history, session.index, instance))
        return self._kept[key]


def _tensor(value: Value | None) -> TensorLook:
    if value is None:
        return TensorLook(note="no value yet")
    if not isinstance(value, np.ndarray) or value.dtype == object or value.dtype.kind in "bc" or not value.size:
        return TensorLook(note=one_line(content(value)))
    if value.size > EFFORT:
        return TensorLook(note=f"{value.size} elements: print shows them")
    rows = dict(statistics(value))
    least, greatest, mean = (f"{float(rows[it]):.3g}" if it in rows else "" for it in ("min", "max", "mean"))
    return TensorLook(least, greatest, mean, int(rows.get("nan", 0)), int(rows.get("inf", 0)))


def value_here(session: Session, t: TensorId) -> Value | None:
    """The value of a tensor in the run of its graph that goes on."""
    return value_of_instance(session.history, session.index, here(session, t))


def words_for(session: Session, t: TensorId) -> str:
    """How commands name a tensor of the frame that is looked at."""
    return expression_for(session, t, session.frame)


def type_here(look: Look, t: TensorId) -> str:
    """The type of a tensor that has a value."""
    region = region_of(look.session.state, t)
    return "" if region is None else one_line(type_text(region.type)).replace(", ", ",")


def name_of(session: Session, t: TensorId) -> str:
    """The name of a tensor on one line."""
    return shown_name(session.model.tensors[t].name)
