"""The proofs of the theorems of part 6: data that the suite hands to the kernel. One file for each family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..kernel.kernel import NO_HINTS, Hints


@dataclass(frozen=True, slots=True)
class Script:
    """One step of the suite. rule: smt, induction or natural. shows: the theorems that it proves.

    along: the inductive predicates of an induction, one for each theorem; the number of a natural one.
    """

    rule: str
    shows: tuple[str, ...]
    along: tuple[str, ...] = ()
    hints: Hints = NO_HINTS


def smt(name: str, hints: Hints = NO_HINTS) -> Script:
    """The theorem follows from its premises and what it needs."""
    return Script("smt", (name,), hints=hints)


def induction(names: Mapping[str, str], hints: Hints = NO_HINTS) -> Script:
    """Induction along inductive predicates; names: for each the theorem, several where they depend on each other."""
    return Script("induction", tuple(names.values()), tuple(names), hints)


def natural(name: str, variable: str, hints: Hints = NO_HINTS) -> Script:
    """Induction over a number of the theorem."""
    return Script("natural", (name,), (variable,), hints)
