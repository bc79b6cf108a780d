"""How the theorems of part 6 are proved: data that the suite hands to the kernel. One file for each family of theorems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Script:
    """One step of the suite. rule: smt, induction or natural. shows: the theorems that it proves.

    along: the inductive predicates of an induction, one for each theorem; the number of a natural one. unfold: the
    inductive predicates that are used as fixpoints of their clauses. closed: definitions that the proof does not open.
    """

    rule: str
    shows: tuple[str, ...]
    along: tuple[str, ...] = ()
    unfold: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()


def smt(name: str, *unfold: str, closed: tuple[str, ...] = ()) -> Script:
    """The theorem follows from its premises and what it needs."""
    return Script("smt", (name,), unfold=unfold, closed=closed)


def induction(names: Mapping[str, str], *unfold: str) -> Script:
    """Induction along inductive predicates; names: for each the theorem, several where they depend on each other."""
    return Script("induction", tuple(names.values()), tuple(names), unfold)


def natural(name: str, variable: str) -> Script:
    """Induction over a number of the theorem."""
    return Script("natural", (name,), (variable,))
