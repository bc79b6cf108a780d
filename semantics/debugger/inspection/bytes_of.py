"""Bytes as they lie in M: of a tensor, or of all of M; what was never written is not readable."""

from __future__ import annotations

from dataclasses import dataclass

from ...machine.memory import Memory, Uninitialised, read
from ...resources.persistent import items
from ..session.session import Session
from ..timeline.names import Instance, place_of_instance
from ..timeline.refused import NoValue


@dataclass(frozen=True, slots=True)
class Bytes:
    """A range of M. address: of its first byte. size: how many bytes it has."""

    memory: Memory
    address: int
    size: int

    def read(self, offset: int, count: int) -> tuple[bytes, int]:
        """The bytes from an offset on as far as they can be read, and how many behind them cannot."""
        if offset < 0:
            return b"", min(count, -offset)
        wanted = max(min(count, self.size - offset), 0)
        data = read(self.memory, self.address + offset, wanted) if wanted else b""
        if not isinstance(data, Uninitialised):
            return bytes(data), count - wanted
        good = data.address - self.address - offset
        found = read(self.memory, self.address + offset, good) if good else b""
        gap = _gap(self.memory, data.address, self.address + offset + count)
        return b"" if isinstance(found, Uninitialised) else bytes(found), gap


def bytes_of_memory(session: Session) -> Bytes:
    """M where the session stands."""
    memory = session.state.store.memory
    return Bytes(memory, 0, memory.size)


def bytes_of_instance(session: Session, instance: Instance) -> Bytes:
    """The bytes of a tensor in a run of its graph. Raises NoValue."""
    found = place_of_instance(session.history, session.index, instance)
    if found is None:
        raise NoValue(f"{instance.path} has no value yet")
    store, where = found
    return Bytes(store.memory, where.offset, where.length)


def _gap(memory: Memory, start: int, end: int) -> int:
    """How many bytes from a start on were never written, up to an end."""
    following = next((at for at, _ in items(memory.segments, start)), end)
    return min(following, end) - start
