"""References to memory: a step and a tensor, so that they mean the same bytes wherever the execution has gone since."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..session.session import Session
from ..timeline.names import Instance, instance_of_path
from ..timeline.refused import Refused

_M: Final = "M"
_DIGITS: Final = 16


def reference_to(session: Session, tensor: Instance) -> str:
    """The memory reference of a tensor at the step of a session."""
    return f"{session.index}:{tensor.path}"


def everything(session: Session) -> str:
    """The memory reference of M at the step of a session."""
    return f"{session.index}:{_M}"


def referred(session: Session, reference: str) -> tuple[Session, Instance | None]:
    """The session at the step of a reference, on the timeline at hand, and the tensor; None for M. Raises Refused for
    what is no reference."""
    index, _, path = reference.partition(":")
    if not (index.isdecimal() and index.isascii() and len(index) < _DIGITS and path):
        raise Refused("this is no memory reference: take one from a variable")
    if int(index) > session.history.last:
        raise Refused("the memory reference is of a step that this timeline does not have: take one from a variable")
    there = replace(session, index=int(index), phase=0, frame=0)
    return there, None if path == _M else instance_of_path(there.state, path)
