"""The gates of a theorem, beyond its proof: proved on several seeds, proved again by cvc5, not vacuous, tight.

Tight: without any of what it says it needs there is a countermodel. The best is a real model in which the theorem is
false (`standard`); else one of an obligation shows that this proof uses the hypothesis.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sonnx.spec.syntax import PROVED

from . import cvc5_prover, kernel, models, standard
from .formulas import Term
from .models import Model, Wanted
from .smtlib import question
from .standard import Dropped
from .suite import SCRIPTS
from .theory import Hypothesis, Obligation, Theory, claim, constants

SEEDS = (1, 2, 3, 4)
"""The seeds on which z3 proves each obligation again, besides that of the proof."""
GATES = ("z3", "cvc5", "model", "tight")
SECONDS = 2.0
"""How long z3 may take for the proof of an obligation without one of its hypotheses."""
NUMBERED = frozenset(name for script in SCRIPTS if script.rule == "natural" for name in script.shows)
"""Theorems by induction over a number. As lemmas they are exempt, like an induction hypothesis: what is proved without
them has infinite countermodels only.
"""
REAL = 25_000
"""As `models.MOST`, for real models: where they get large, it is asked what the proof uses."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate of a theorem. status: passed, failed or skipped. detail: why, or by what it is passed."""

    name: str
    status: str
    detail: str
    seconds: float = 0.0
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """What dropping a hypothesis does. status: needed, a real model refutes the theorem; used, a model refutes an
    obligation, or the rule of the proof asks for it; redundant, the proof succeeds without; unknown.
    """

    kind: str
    label: str
    status: str
    model: Model | None = None
    seconds: float = 0.0


def on_seeds(obligations: Sequence[Obligation], first: int = 0) -> Gate:
    """z3 proves each obligation, within the limit of the kernel, on further seeds. first: moves them."""
    start, worst = time.monotonic(), 0.0
    for obligation in obligations:
        for seed in SEEDS:
            began = time.monotonic()
            refused = kernel.decide(obligation, first + seed)
            worst = max(worst, time.monotonic() - began)
            if refused is not None:
                why = f"{obligation.name} with seed {first + seed}: {refused.status} {refused.reason}".strip()
                return Gate("z3", "failed", why, time.monotonic() - start)
    return Gate("z3", "passed", f"on {len(SEEDS) + 1} seeds, at most {worst:.2f} s", time.monotonic() - start)


def by_cvc5(obligations: Sequence[Obligation]) -> Gate:
    """cvc5 proves each obligation again, and its proof is checked."""
    start = time.monotonic()
    for obligation in obligations:
        answer = cvc5_prover.prove(question(obligation))
        if answer.status == "absent":
            return Gate("cvc5", "skipped", answer.reason)
        if answer.status != "unsat":
            why = f"{obligation.name}: {answer.status} {answer.reason}".strip()
            return Gate("cvc5", "failed", why, time.monotonic() - start)
    return Gate("cvc5", "passed", "proved again, the proofs are checked", time.monotonic() - start)


def satisfiable(theory: Theory, name: str, obligations: Sequence[Obligation]) -> Gate:
    """The hypotheses have a finite model: a real one, where possible one in which a node has fired; if none is found,
    the hypotheses of each obligation have one.
    """
    start = time.monotonic()
    asked = standard.question(theory, name, refuted=False)
    wishes = (*((it,) for it in asked.wishes), ())
    for sizes, wish in product((models.SMALL, models.LARGE), wishes):
        wanted = replace(asked.wanted, hypotheses=(*asked.wanted.hypotheses, *wish))
        model = models.search(wanted, sizes)
        if model is not None:
            said = wish[0].label if wish else "degenerate: no node reads and writes"
            detail = f"{models.describe(model)}; {said}"
            return Gate("model", "passed", detail, time.monotonic() - start, model)
    found = [models.search(Wanted(it.hypotheses, it.symbols, it.texts)) for it in obligations]
    seconds = time.monotonic() - start
    if not found or found[-1] is None or None in found:
        return Gate("model", "failed", "no finite model of the hypotheses was found", seconds)
    detail = f"{models.describe(found[-1])}; of the obligations, inductive predicates need not be the least"
    return Gate("model", "passed", detail, seconds, found[-1])


# ---- Tightness --------------------------------------------------------------------------------


def needs_of(theory: Theory, name: str) -> tuple[Dropped, ...]:
    """The hypotheses that a theorem says it needs: constraints, laws, lemmas, premises, each by kind and label."""
    found, t = theory.property(name), theory.translation()
    listed = []
    for need in found.needs:
        kind = "constraint" if need in theory.text.constraints else theory.property(need).kind
        listed.append(("lemma" if kind in PROVED else kind, need))
    return (*listed, *((it.kind, it.label) for it in claim(found, constants(found, t), t).premises))


def dropped(
    theory: Theory, name: str, hypothesis: Dropped, obligations: Sequence[Obligation], shown: bool = False
) -> Need:
    """What becomes of a theorem without one of its hypotheses. shown: with a small countermodel, which takes longer."""
    start = time.monotonic()
    with_it = [it for it in obligations if any((h.kind, h.label) == hypothesis for h in it.hypotheses)]
    clause = ("definition", f"the clause of {hypothesis[1]}")
    without = [it.without(*hypothesis).without(*clause) for it in with_it]

    def said(status: str, model: Model | None = None) -> Need:
        return Need(*hypothesis, status, model, time.monotonic() - start)

    for sizes in (models.SMALL, models.LARGE):
        for status, wanted in _attempts(theory, name, hypothesis, without):
            if not shown and models.exists(wanted, sizes, REAL if status == "needed" and without else models.MOST):
                return said(status)
            model = models.search(wanted, sizes) if shown else None
            if model is not None:
                return said(status, model)
        if not without or (hypothesis[0] == "lemma" and hypothesis[1] in NUMBERED):
            return said("used")
        if sizes is models.SMALL and all(kernel.decide(it, seconds=SECONDS) is None for it in without):
            return said("redundant")
    return said("unknown")


def _attempts(
    theory: Theory, name: str, hypothesis: Dropped, without: Sequence[Obligation]
) -> Iterator[tuple[str, Wanted]]:
    """Where a countermodel is sought, and what it shows. Of laws, which are true, it is enough that they are used."""
    if hypothesis[0] != "lemma" and not (hypothesis[0] == "law" and without):
        yield "needed", standard.question(theory, name, hypothesis, refuted=True).wanted
    for obligation in without:
        yield "used", denied(obligation)
    if hypothesis[0] == "law" and without:
        yield "needed", standard.question(theory, name, hypothesis, refuted=True).wanted


def denied(obligation: Obligation) -> Wanted:
    """A countermodel of an obligation: its hypotheses hold, its goal does not."""
    goal = Hypothesis("goal", "the goal, denied", Term("not", (obligation.goal,)))
    return Wanted((*obligation.hypotheses, goal), obligation.symbols, obligation.texts)


def tight(needs: Sequence[Need]) -> Gate:
    """Whether everything that a theorem says it needs is needed, or used by its proof."""
    wrong = [it for it in needs if it.status not in ("needed", "used")]
    seconds = sum(it.seconds for it in needs)
    if wrong:
        return Gate("tight", "failed", "; ".join(f"without {it.kind} {it.label}: {it.status}" for it in wrong), seconds)
    counted = sum(it.status == "needed" for it in needs)
    return Gate("tight", "passed", f"{counted} needed, {len(needs) - counted} used by the proof", seconds)
