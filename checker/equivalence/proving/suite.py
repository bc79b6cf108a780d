"""All rules of part 7, judged in processes, and the table of what was found."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from math import inf
from typing import cast

from sonnx.semantics.operators.symbolic.statements import definition
from sonnx.spec.elaborate.core import CoreOperator, CoreRewrite
from sonnx.spec.library import specification
from sonnx.spec.terminal import Progress

from ...definedness.record import recorded_of
from .judging import judge
from .rules import OPEN, PROVED, REFUTED, Claim, Rule, Verdict


def rules(names: Sequence[str] = ()) -> list[str]:
    """The names of the rules, or of those that are asked for. Raises KeyError for one that there is none of."""
    known = specification().rules
    for name in names:
        if name not in known:
            raise KeyError(name)
    return list(names) or list(known)


def rule(it: CoreRewrite) -> Rule:
    """A rewrite as the prover takes it."""
    return Rule(it.name, cast("Claim", it.claim), it.left, it.right, it.stored, it.doc)


def judged(name: str, seed: int = 0, *, every: bool = True) -> Verdict:
    """The verdict about a rule of part 7."""
    return judged_rewrite(specification().rules[name], seed, every=every)


def judged_rewrite(it: CoreRewrite, seed: int = 0, *, search: bool = True, every: bool = True) -> Verdict:
    """The verdict about a rewrite. A proof takes for granted that definitions have values where they say so: of the
    right side that has to be on record. search: for an input that refutes it.
    every: look for a proof for any number of axes.
    """
    found = judge(rule(it), search=search, seed=seed, every=every and not _not_shown(it.right, every=True))
    lacking = _not_shown(it.right) if found.verdict == PROVED else []
    if not lacking:
        return found
    return replace(found, verdict=OPEN, reasons=(f"not shown to be defined wherever it says so: {', '.join(lacking)}",))


def _not_shown(side: CoreOperator, *, every: bool = False) -> list[str]:
    """The operators that a side applies whose definitions are not proved to be defined (`sonnx definedness`). every:
    for any number of axes.
    """
    text = specification()
    applied = {(it.name, it.first) for core in side.applications if (it := definition(core.name, int(core.value)))}
    known = recorded_of({name for name, _ in applied}, text.operators, text.functions, every=every)
    return [f"{name}-{first}" for name, first in sorted(applied) if known.get(name, {}).get(first) not in SHOWN]


SHOWN = ("proved", "listed")
"""The verdicts of `sonnx definedness` that a proof may rest on."""


def judge_all(
    names: Sequence[str], *, jobs: int | None = None, seed: int = 0, progress: Progress | None = None,
    costs: Mapping[str, float] | None = None, few: Collection[str] = (),
) -> Iterator[Verdict]:  # fmt: skip
    """The verdicts, as they are found; each process takes one rule after the other. costs: seconds that rules took
    before: several processes begin with those that take long, and with those of which that is not known. few: the rules
    for which no proof for any number of axes is looked for.
    """
    jobs = min(jobs or os.cpu_count() or 1, len(names))
    if jobs <= 1:
        for done, name in enumerate(names):
            if progress is not None:
                progress(name, done, len(names))
            yield judged(name, seed, every=name not in few)
        return
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_seldom_garbage)
    try:
        waiting = {
            pool.submit(judged, name, seed, every=name not in few): name for name in longest_first(names, costs or {})
        }
        for done, future in enumerate(as_completed(waiting)):
            if progress is not None:
                progress(waiting[future], done + 1, len(names))
            yield future.result()
    finally:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)


def _seldom_garbage() -> None:
    """Proofs leave next to no garbage in cycles, and to look for it takes a twentieth of their time."""
    gc.set_threshold(200_000)


def longest_first(names: Sequence[str], costs: Mapping[str, float]) -> list[str]:
    """The names by what they cost, so that no process is left alone with a long one at the end."""
    return sorted(names, key=lambda name: costs.get(name, inf), reverse=True)


# ---- The table ----------------------------------------------------------------------------------


def head() -> str:
    """The first line of the table."""
    return f"{'rule':32} {'claims':8} {'verdict':9} {'strength':9} {'axes':6} {'types':11} {'cases':>6} {'seconds':>8}"


def lines(verdict: Verdict) -> list[str]:
    """A rule: what it claims and what was found."""
    found = verdict.verdict if verdict.holds else verdict.verdict.upper()
    row = (
        f"{verdict.rule:32} {verdict.claim:8} {found:9} {verdict.strength or '-':9} {verdict.axes:6} "
        f"{verdict.types or '-':11} {verdict.instances:>6} {verdict.seconds:>8.1f}"
    )
    told = [row]
    if verdict.witness is not None:
        told.append(f"    witness: {verdict.witness.words}")
    if verdict.verdict != PROVED and not (verdict.verdict == REFUTED and verdict.claim == "never"):
        told += [f"    {reason}" for reason in verdict.reasons[:3]]
    if verdict.verdict == PROVED and not verdict.holds:
        told.append(f"    {weaker(verdict)}")
    if verdict.cut:
        told.append(f"    only lists of up to 4 entries: {', '.join(verdict.cut)}")
    return told


def weaker(verdict: Verdict) -> str:
    """Why a proof is not what is claimed."""
    if verdict.claim == "never":
        return "the rule is true: it claims never"
    if verdict.strength == "allowed":
        return "where the left side leaves elements open the right side gives one of the values: claim allowed"
    return f"equal over the {verdict.strength} only"


def axioms_used(verdicts: Sequence[Verdict]) -> list[str]:
    """The laws that the proofs use, each with how it is shown."""
    from .axioms import LAWS, LISTED

    used = dict.fromkeys(law for verdict in verdicts for law in verdict.axioms)
    how = {law.name: law.how for law in LAWS} | {name: told for name, (told, _) in LISTED.items()}
    return [f"  {law}: {how[law]}" if law in how else f"  {law}" for law in used]


def last_line(verdicts: Sequence[Verdict]) -> str:
    """The counts."""
    holding = sum(verdict.holds for verdict in verdicts)
    strengths = (f"{sum(v.holds and v.strength == s for v in verdicts)} {s}" for s in ("exact", "allowed", "reals"))
    never = sum(v.holds and v.claim == "never" for v in verdicts)
    every = sum(v.holds and v.verdict == PROVED and v.every for v in verdicts)
    return f"{holding} of {len(verdicts)} rules hold: {', '.join(strengths)}, {never} never; {every} for every rank"


def as_json(verdict: Verdict) -> dict[str, object]:
    """Everything that was found out."""
    return {
        "rule": verdict.rule, "claim": verdict.claim, "holds": verdict.holds, "verdict": verdict.verdict,
        "strength": verdict.strength, "axes": verdict.axes, "ranks": verdict.ranks, "cases": verdict.instances,
        "types": verdict.types, "seconds": round(verdict.seconds, 2), "reasons": list(verdict.reasons),
        "axioms": list(verdict.axioms), "cut": list(verdict.cut),
        "witness": None if verdict.witness is None else verdict.witness.as_data(),
    }  # fmt: skip
