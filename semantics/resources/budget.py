"""The budget of memory: what would need more than it allows is refused before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OutOfBudget:
    """`needed` bytes are more than the `budget` allows; `purpose` says in a phrase what they are for."""

    needed: int
    budget: int
    purpose: str
