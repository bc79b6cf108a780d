"""The theorems of part 6, proved once for all tests of a process."""

from __future__ import annotations

from functools import cache

from sonnx.proofs import suite
from sonnx.proofs.suite import Result
from sonnx.proofs.theory import Theory
from sonnx.spec.library import specification

THEORY = Theory(specification())


@cache
def results() -> dict[str, Result]:
    """Every theorem, with its proof."""
    return suite.prove(THEORY)
