"""Which nodes may come next, without looking at all nodes of a graph at once."""

from __future__ import annotations

from itertools import islice
from typing import Final

from ...machine.schedule import Ordered, Ready
from ...machine.state import State
from ...machine.transitions import is_enabled
from ...model.graph import NodeId

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
    found = tuple(islice(places, most))
    return tuple(order[at] for at in found), found[-1] + 1 if len(found) == most else end
