"""All that a picture shows besides the model: marks of nodes, sentences about them, values of tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..model.graph import NodeId, TensorId

TONES: Final = ("plain", "done", "faint", "next", "warn", "bad", "alarm", "open")
"""The colours of marks, which the style sheet has for light and for dark."""
LOUD: Final = frozenset(("warn", "bad", "alarm", "open"))
"""The colours of what a reader looks for; nodes that have one and are not drawn are counted."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What nodes may have in common. sign: one to three characters, shown beside the colour. tone: one of `TONES`, ""
    for no colour."""

    name: str
    sign: str
    words: str
    tone: str


@dataclass(frozen=True, slots=True)
class Content:
    """The value of a tensor. type: its own. rows: names and numbers in words. first: the first elements."""

    type: str
    rows: tuple[tuple[str, str], ...] = ()
    first: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is known of a model.

    title, facts: the heading, and sentences below it. marks: in the legend, those that decide the colour first.
    marked: the marks of nodes by name. said: sentences about nodes. values: of tensors. focus: the node that is shown
    first. general: sentences about the graph as a whole.
    """

    title: str
    facts: tuple[str, ...]
    marks: tuple[Mark, ...]
    marked: Mapping[NodeId, tuple[str, ...]] = field(default_factory=dict)
    said: Mapping[NodeId, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[TensorId, Content] = field(default_factory=dict)
    focus: NodeId | None = None
    general: tuple[str, ...] = ()


def in_order(names: Collection[str], marks: Sequence[Mark]) -> tuple[str, ...]:
    """The marks of these names, in the order of the legend."""
    return tuple(mark.name for mark in marks if mark.name in names)


def foremost(nodes: Iterable[NodeId], marked: Mapping[NodeId, Sequence[str]], marks: Sequence[Mark]) -> NodeId | None:
    """The first of the nodes whose mark stands first in the legend; None without nodes."""
    order = {mark.name: at for at, mark in enumerate(marks)}
    return min(nodes, key=lambda n: (order[marked[n][0]], n), default=None)
