"""Values in M: where each one lies, and the space that is left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..errors import InternalError
from ..model.graph import ValueType
from ..model.values import Value
from ..resources.process import OutOfBudget
from . import heap
from .allocation.plan import ALIGNMENT, Allocator, aligned, allocate, release
from .memory import Memory, Uninitialised, erase, resize

UNLIMITED: Final = 1 << 62
"""The budget where none is set."""


@dataclass(frozen=True, slots=True)
class Region:
    """A region of M in which a value lies: offset and length in bytes, and its type, a tensor's with its shape.

    freed: the value was needed no longer, its space may hold another one.
    """

    offset: int
    length: int
    type: ValueType
    freed: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """M and the space in it. N grows with what is placed, up to the budget of the allocator."""

    memory: Memory
    space: Allocator


def empty_store(reuse: bool = False, budget: int | None = None) -> Store:
    """A memory in which nothing lies. reuse: the space of a value that is needed no longer is used again (arena)."""
    return Store(Memory(0), Allocator(UNLIMITED if budget is None else budget, ALIGNMENT, reuse))


def store_value(store: Store, value: Value, purpose: str) -> tuple[Store, Region] | OutOfBudget:
    """The store with the value in it, and where it lies. OutOfBudget is found before anything is written."""
    parts = heap.parts_of(value)
    length = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
    found = allocate(store.space, length, purpose)
    if isinstance(found, OutOfBudget):
        return found
    space, offset = found
    end = offset + aligned(length, space.alignment)
    memory = store.memory if end <= store.memory.size else resize(store.memory, end)
    memory = heap.store(memory, offset, parts)
    return Store(memory, space), Region(offset, length, heap.type_of(value))


def load_value(store: Store, where: Region) -> Value:
    """The value that lies there: read-only views of M where that is possible."""
    found = heap.load(store.memory, where.offset, where.length, where.type)
    if isinstance(found, Uninitialised):
        raise InternalError(f"the machine reads byte {found.address}, which was never written")
    return found


def free(store: Store, places: Iterable[Region]) -> Store:
    """The store with the space of these values free; unchanged without reuse."""
    if not store.space.reuse:
        return store
    memory, space = store.memory, store.space
    for where in places:
        memory = erase(memory, where.offset, where.length)
        space = release(space, where.offset, where.length)
    return Store(memory, space)
