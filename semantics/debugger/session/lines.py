"""Lines of the listing that a text means."""

from __future__ import annotations

from ..timeline.names import nodes_meant
from ..timeline.refused import Refused
from .session import Session


def line_meant(session: Session, text: str) -> int:
    """The line that a number or a node means. Raises Refused."""
    found = session.listing
    if text.isdecimal():
        number = int(text)
        if not 1 <= number <= len(found.lines):
            raise Refused(f"the listing has the lines 1 to {len(found.lines)}")
        return number
    nodes = nodes_meant(session.model, text).nodes
    if not nodes:
        raise Refused("give a line or a node")
    return min(found.of_node[n] for n in nodes)
