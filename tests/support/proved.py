"""The theorems of part 6, proved once in a process, and what becomes of them at their gates."""

from __future__ import annotations

from functools import cache

from sonnx.proofs.gates import gates, judging, suite
from sonnx.proofs.gates.gates import Gate
from sonnx.proofs.gates.judging import Judged, Options
from sonnx.proofs.gates.suite import Result
from sonnx.proofs.kernel.theory import Theory
from sonnx.spec.library import specification

THEORY = Theory(specification())
SITUATIONS = [it.name for it in THEORY.text.properties.values() if it.kind == "situation"]
sought = gates.situation
"""It seeks a situation; a test may put `quick` in its place."""


@cache
def results() -> dict[str, Result]:
    """Every theorem and lemma, proved."""
    return suite.prove(THEORY)


@cache
def situation(name: str) -> Gate:
    """A situation of the text, sought once."""
    return sought(THEORY, name)


QUICK = frozenset({"NoNodes", "NeverRead", "TwoOrders"})
"""Situations that are found within a fraction of a second; all of them take ten seconds."""


def quick(theory: Theory, name: str) -> Gate:
    """Instead of `gates.situation`, where a test is not about situations: the quick ones are sought."""
    return sought(theory, name) if name in QUICK else Gate(name, "passed", "test_theorems.py seeks it")


@cache
def passed(name: str) -> dict[str, Gate]:
    """The gates of a theorem by name, one after the other."""
    result = results()[name]
    made = (
        gates.on_seeds(result.obligations),
        *gates.by_cvc5(result.obligations),
        gates.satisfiable(THEORY, name, result.obligations),
        gates.countermodel(THEORY, name),
        gates.tight([gates.dropped(THEORY, name, it, result.together) for it in gates.needs_of(THEORY, name)]),
        gates.situations(tuple(situation(it) for it in SITUATIONS if it in QUICK)),
    )
    return {gate.name: gate for gate in made}


@cache
def judged() -> dict[str, Judged]:
    """Every theorem and lemma, with its proof and all its gates. It takes minutes: for the campaign."""
    return {it.result.stated.name: it for it in judging.judge(THEORY, None, Options())}
