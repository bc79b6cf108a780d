"""What may come next at a position, in words: what the next step does, and the other nodes that are enabled."""

from __future__ import annotations

from dataclasses import dataclass

from ...machine.state import node_path
from ...model.graph import NodeId
from ...model.path import quote
from ..timeline.positions import is_end_of_body, levels
from ..timeline.ready import first_ready
from .session import Session


@dataclass(frozen=True, slots=True)
class Choice:
    """node: the one that comes next then. label: in words. command: what makes it come next, "" where it does."""

    node: NodeId
    label: str
    command: str = ""


def choices(session: Session, most: int) -> tuple[Choice, ...]:
    """The next node first, then others, at most so many and only those near the position in the order of the graph."""
    moment = session.moment
    if moment.next is None:
        return ()
    others = () if is_end_of_body(moment) else first_ready(moment.state, most)
    return (
        Choice(moment.next, _into(session, moment.next)),
        *(
            Choice(
                n,
                f"let {node_path(moment.state, n)} come next, and fire it",
                f"choose {session.model.nodes[n].path}",
            )
            for n in others
            if n != moment.next
        ),
    )


def _into(session: Session, n: NodeId) -> str:
    """What the next step does."""
    moment, node = session.moment, session.model.nodes[n]
    around = levels(moment.state, n)
    within = f" in the call {around[-1]}" if isinstance(around[-1], str) else ""
    if is_end_of_body(moment):
        return f"end this run of the body: {node.op_type} goes on"
    if node.bodies:
        bodies = " or ".join(quote(session.model.graphs[body].name) for _, body in node.bodies)
        return f"into {node.op_type}: {bodies}{within}"
    return f"fire {node.op_type}{within}"
