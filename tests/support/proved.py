"""The theorems of part 6, proved and put to their gates once."""

from __future__ import annotations

from functools import cache

from sonnx.proofs.gates import judging
from sonnx.proofs.gates.judging import Judged, Options
from sonnx.proofs.kernel.theory import Theory
from sonnx.spec.library import specification

THEORY = Theory(specification())


@cache
def judged() -> dict[str, Judged]:
    """Every theorem and lemma, with its proof and its gates. It takes minutes: ask for it in one test alone."""
    return {it.result.stated.name: it for it in judging.judge(THEORY, None, Options())}
