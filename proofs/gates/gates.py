"""The gates of a theorem or lemma, beyond its proof. Six: proved on several seeds; proved again by cvc5; its hypotheses
have a model; tight; no small countermodel of it; the situations of the text are possible. And one more where a proof
checker of other people is there: cvc5's proofs, checked outside this process.

Tight: without any of what it says it needs there is a countermodel. The best is a real model in which the theorem is
false (`standard`); else one of an obligation shows that this proof uses the hypothesis.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sonnx.spec.language.syntax import PROVED

from ..kernel import kernel
from ..kernel.formulas import Term
from ..kernel.smtlib import file_name, question
from ..kernel.theory import Hypothesis, Obligation, Theory, claim, constants
from ..models import search as models
from ..models import standard
from ..models.search import Model, Wanted
from ..models.standard import Dropped
from . import checking, cvc5_prover
from .checking import Checker
from .suite import SCRIPTS

SEEDS = (1, 2, 3, 4)
"""The seeds on which z3 proves each obligation again, besides that of the proof."""
GATES = ("z3", "cvc5", "model", "tight", "countermodel", "situations", "proof")
"""Six that every theorem and lemma passes; the last of all is for those who do not trust this process."""
WITHOUT = 4_000_000
"""The steps that z3 may take for the proof of an obligation without one of its hypotheses."""
NUMBERED = frozenset(name for script in SCRIPTS if script.rule == "natural" for name in script.shows)
"""Theorems by induction over a number. As lemmas they are exempt, like an induction hypothesis: what is proved without
them has infinite countermodels only.
"""
REAL = 25_000
"""As `models.MOST`, for real models: where they get large, it is asked what the proof uses."""


COUNTERMODEL = 6_000_000
"""The steps that z3 may take for one of the sizes at which a countermodel of the theorem is sought."""
ROOM = 200_000
"""As `models.MOST`, for countermodels of theorems."""
SITUATION, WIDE = 120_000_000, 1_200_000
"""The same two for models of situations, which are few."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof of an obligation by cvc5. status: correct, incomplete or refused by the checker; written where none
    has read it. trusted: how often a step is taken on trust, by rule.
    """

    name: str
    status: str
    reason: str
    trusted: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate of a theorem. status: passed, failed or skipped. detail: why, or by what it is passed. size: up to which
    there is no countermodel.
    """

    name: str
    status: str
    detail: str
    seconds: float = 0.0
    model: Model | None = None
    size: str = ""
    proofs: tuple[Proof, ...] = ()


@dataclass(frozen=True, slots=True)
class Need:
    """The effect of dropping a hypothesis. status: needed, a real model refutes the theorem; used, a model refutes an
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


def by_cvc5(obligations: Sequence[Obligation], folder: Path | None = None) -> tuple[Gate, Gate]:
    """cvc5 proves each obligation again; its own checker checks the proof, and so does a program of other people.

    folder: where the proofs are written. The second gate is skipped where no such program is there.
    """
    start, checker = time.monotonic(), checking.installed()
    written = "cpc" if isinstance(checker, str) and folder is not None else ""
    written = checker.written if isinstance(checker, Checker) else written
    proofs: list[Proof] = []
    for obligation in obligations:
        answer = cvc5_prover.prove(question(obligation), written=written)
        if answer.status == "absent":
            absent = Gate("proof", "skipped", "there is no proof without cvc5")
            return Gate("cvc5", "skipped", answer.reason), absent
        if answer.status != "unsat":
            why = f"{obligation.name}: {answer.status} {answer.reason}".strip()
            return Gate("cvc5", "failed", why, time.monotonic() - start), Gate("proof", "failed", "there is no proof")
        if folder is not None:
            path = folder / f"{file_name(obligation.name)}.{written}"
            path.write_text(answer.proof, encoding="utf-8", newline="\n")
        if isinstance(checker, Checker):
            said = checking.check(checker, question(obligation), answer.proof)
            proofs.append(Proof(obligation.name, said.status, said.reason, checking.trusted(answer.proof)))
        elif written:
            proofs.append(Proof(obligation.name, "written", "", checking.trusted(answer.proof)))
    passed = Gate("cvc5", "passed", "proved again, the proofs are checked", time.monotonic() - start)
    if isinstance(checker, str):
        return passed, Gate("proof", "skipped", checker, proofs=tuple(proofs))
    wrong = [f"{it.name}: {it.status}, {it.reason}" for it in proofs if it.status != "correct"]
    detail = "; ".join(wrong) if wrong else f"checked by {checker.name}"
    return passed, Gate("proof", "failed" if wrong else "passed", detail, proofs=tuple(proofs))


# ---- Models -----------------------------------------------------------------------------------


def countermodel(theory: Theory, name: str) -> Gate:
    """No small real model refutes the theorem: all laws that it rests on, its constraints and its premises hold there,
    inductive predicates are the least ones, and its goal does not hold. It says up to which size.
    """
    start, largest = time.monotonic(), ""
    wanted = standard.question(theory, name, refuted=True)
    for tried in models.up_to(wanted, COUNTERMODEL, ROOM):
        if tried.status == "sat":
            model = models.of_bounds(wanted, tried.bounds)
            told = "a countermodel" if model is None else f"a countermodel with {models.describe(model)}"
            return Gate("countermodel", "failed", told, time.monotonic() - start, model)
        largest = tried.size if tried.status == "unsat" else largest
    seconds = time.monotonic() - start
    if not largest:
        return Gate("countermodel", "failed", "nothing was found out of models with one element of each sort", seconds)
    return Gate("countermodel", "passed", f"no countermodel up to {largest}", seconds, size=largest)


def situation(theory: Theory, name: str) -> Gate:
    """A situation is possible: there is a finite real model of it in which all laws of part 6 hold together."""
    start = time.monotonic()
    laws = [it.name for it in theory.text.properties.values() if it.kind == "law"]
    wanted = standard.situation(theory, name, laws)
    for sizes in models.around(wanted):
        model = models.within(wanted, sizes, SITUATION, WIDE)
        if model is not None:
            return Gate(name, "passed", models.describe(model), time.monotonic() - start, model)
    return Gate(name, "failed", "no finite model of all laws was found", time.monotonic() - start)


def situations(answers: Sequence[Gate]) -> Gate:
    """Gate six: every situation of the text is possible under all laws, and so under those of the theorem."""
    impossible = [f"{it.name}: {it.detail}" for it in answers if it.status != "passed"]
    if impossible or not answers:
        return Gate("situations", "failed", "; ".join(impossible) or "the text states none")
    return Gate("situations", "passed", f"{len(answers)} are possible")


def satisfiable(theory: Theory, name: str, obligations: Sequence[Obligation]) -> Gate:
    """The hypotheses have a finite model: a real one, where possible one in which a node has fired; if none is found,
    the hypotheses of each obligation have one.
    """
    start = time.monotonic()
    wanted = standard.question(theory, name, refuted=False)
    for sizes in (models.SMALL, models.LARGE):
        real = models.wishing(wanted, sizes)
        if real is not None:
            model, wish = real
            said = "degenerate: no node reads and writes" if wish is None else wish.label
            return Gate("model", "passed", f"{models.describe(model)}; {said}", time.monotonic() - start, model)
    examples = [models.search(Wanted(it.hypotheses, it.symbols, it.texts, free=True)) for it in obligations]
    seconds = time.monotonic() - start
    if not examples or examples[-1] is None or None in examples:
        return Gate("model", "failed", "no finite model of the hypotheses was found", seconds)
    detail = f"{models.describe(examples[-1])}; of the obligations, inductive predicates need not be the least"
    return Gate("model", "passed", detail, seconds, examples[-1])


# ---- Tightness --------------------------------------------------------------------------------


def needs_of(theory: Theory, name: str) -> tuple[Dropped, ...]:
    """The hypotheses that a theorem says it needs: constraints, laws, lemmas, premises, each by kind and label."""
    theorem, t = theory.property(name), theory.translation()
    listed = []
    for need in theorem.needs:
        kind = "constraint" if need in theory.text.constraints else theory.property(need).kind
        listed.append(("lemma" if kind in PROVED else kind, need))
    return (*listed, *((it.kind, it.label) for it in claim(theorem, constants(theorem, t), t).premises))


def dropped(
    theory: Theory, name: str, hypothesis: Dropped, obligations: Sequence[Obligation], shown: bool = False
) -> Need:
    """The fate of a theorem without one of its hypotheses. shown: with a small countermodel, which takes longer."""
    start = time.monotonic()
    with_it = [it for it in obligations if any((h.kind, h.label) == hypothesis for h in it.hypotheses)]
    clause = ("definition", f"the clause of {hypothesis[1]}")
    without = [it.without(*hypothesis).without(*clause) for it in with_it]

    def said(status: str, model: Model | None = None) -> Need:
        return Need(*hypothesis, status, model, time.monotonic() - start)

    for sizes in (models.SMALL, models.LARGE):
        for status, wanted in _attempts(theory, name, hypothesis, without):
            most = REAL if status == "needed" and without else models.MOST
            model = models.least(wanted, sizes) if shown else models.search(wanted, sizes, most)
            if model is not None:
                return said(status, model if shown else None)
        if not without or (hypothesis[0] == "lemma" and hypothesis[1] in NUMBERED):
            return said("used")
        if sizes is models.SMALL and all(kernel.decide(it, effort=WITHOUT) is None for it in without):
            return said("redundant")
    return said("unknown")


def _attempts(
    theory: Theory, name: str, hypothesis: Dropped, without: Sequence[Obligation]
) -> Iterator[tuple[str, Wanted]]:
    """The places where a countermodel is sought, and what it shows. Of laws, which are true, it is enough that they are
    used."""
    if hypothesis[0] != "lemma" and not (hypothesis[0] == "law" and without):
        yield "needed", standard.question(theory, name, hypothesis, refuted=True)
    for obligation in without:
        yield "used", denied(obligation)
    if hypothesis[0] == "law" and without:
        yield "needed", standard.question(theory, name, hypothesis, refuted=True)


def denied(obligation: Obligation) -> Wanted:
    """A countermodel of an obligation: its hypotheses hold, its goal does not."""
    goal = Hypothesis("goal", "the goal, denied", Term("not", (obligation.goal,)))
    return Wanted((*obligation.hypotheses, goal), obligation.symbols, obligation.texts, free=True)


def tight(needs: Sequence[Need]) -> Gate:
    """The gate that everything which a theorem says it needs is needed, or used by its proof."""
    wrong = [it for it in needs if it.status not in ("needed", "used")]
    seconds = sum(it.seconds for it in needs)
    if wrong:
        return Gate("tight", "failed", "; ".join(f"without {it.kind} {it.label}: {it.status}" for it in wrong), seconds)
    counted = sum(it.status == "needed" for it in needs)
    return Gate("tight", "passed", f"{counted} needed, {len(needs) - counted} used by the proof", seconds)
