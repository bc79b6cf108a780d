"""Memory and time of this process: the budget, limits of the operating system, pauses of the garbage collector."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# The budget of memory: what would need more than it allows is refused before anything is allocated.


@dataclass(frozen=True, slots=True)
class OutOfBudget:
    """`needed` bytes are more than the `budget` allows; `purpose` says in a phrase what they are for."""

    needed: int
    budget: int
    purpose: str


# Pausing the cyclic garbage collector while very many objects are made that are no garbage.


@contextmanager
def paused() -> Iterator[None]:
    """Without automatic collection: it would look at millions of tuples again and again, and free none of them."""
    enabled = gc.isenabled()
    if enabled:  # who finds it off has nothing to do: another thread may have switched it on in between
        gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def settled() -> None:
    """Declares that the objects of now are no garbage: later collections leave them out, which would take seconds to
    look through it."""
    gc.freeze()


# How much memory this process may use, and how to be refused it instead of being killed for it.


_SHARE: Final = (3, 4)
"""The part of the memory that M may have where nothing is said."""
_CONFINED: Final = (7, 8)
"""The part that the process may have."""
_GROUPS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available() -> int | None:
    """The bytes of memory that the machine, or the control group that the process is in, has; None when unknown."""
    limits = []
    with suppress(ValueError, OSError, AttributeError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in _GROUPS:
        try:
            text = Path(name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdecimal():
            limits.append(int(text))
    return min(limits) if limits else None


def confine(size: int) -> None:
    """Let this process have no more than about this many bytes of its own: what asks for more gets a MemoryError.

    Mapped files do not count. Nothing happens where the system knows no such limit, or the present one is lower.
    """
    with suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        bounds = [size, *(it for it in (soft, hard) if it != resource.RLIM_INFINITY)]
        resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), hard))


def memory_budget(stated: int | None) -> int | None:
    """The greatest size of M. What operators compute beside it is confined too, as far as the system can."""
    there = available()
    if there is None:
        return stated
    confine(there * _CONFINED[0] // _CONFINED[1])
    return there * _SHARE[0] // _SHARE[1] if stated is None else stated
