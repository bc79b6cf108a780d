"""The suite: all theorems of part 6, proved in its order, each from the earlier ones that it needs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sonnx.spec.language.syntax import PROVED, Property

from ..kernel import kernel
from ..kernel.kernel import Reading, Refused, Theorem
from ..kernel.theory import Obligation, Theory
from ..scripts import (
    allocation,
    bodies,
    functions,
    memory,
    order,
    partition,
    progress,
    rewriting,
    termination,
    transforms,
    uniqueness,
)
from ..scripts.script import Script

FAMILIES = (
    bodies, uniqueness, order, progress, termination, rewriting, functions, transforms, partition, memory, allocation,
)  # fmt: skip
SCRIPTS: tuple[Script, ...] = tuple(script for family in FAMILIES for script in family.SCRIPTS)


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a theorem. refused: the obligation without a proof, or None; missing: what is not there, or "".

    together: what the step of the suite proved, for all theorems of an induction. seconds: of that step.
    """

    stated: Property
    rule: str = ""
    theorem: Theorem | None = None
    refused: Refused | None = None
    missing: str = ""
    together: tuple[Obligation, ...] = ()
    seconds: float = 0.0

    @property
    def lemma(self) -> bool:
        """The text calls it a lemma: it serves theorems."""
        return self.stated.kind == "lemma"

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """The obligations that were proved, or were asked in vain."""
        if self.theorem is not None:
            return self.theorem.obligations
        return () if self.refused is None else (self.refused.obligation,)


def theorems(theory: Theory) -> dict[str, Property]:
    """The theorems and lemmas of part 6 by name, in its order."""
    return {name: declared for name, declared in theory.text.properties.items() if declared.kind in PROVED}


def unmatched(theory: Theory, scripts: Iterable[Script] = SCRIPTS) -> tuple[str, ...]:
    """Theorems without a script, scripts without a theorem and theorems with two scripts, as messages."""
    stated, shown = theorems(theory), [name for script in scripts for name in script.shows]
    return (
        *(f"the theorem {name} of part 6 has no script in proofs/" for name in stated if name not in shown),
        *(f"a script proves {name}, which is no theorem of part 6" for name in shown if name not in stated),
        *(f"{name} has two scripts" for name in sorted({name for name in shown if shown.count(name) > 1})),
    )


def with_lemmas(theory: Theory, names: Iterable[str], scripts: Iterable[Script] = SCRIPTS) -> tuple[str, ...]:
    """The theorems, those that they rest on and those that are proved together with one of them, in order."""
    stated = theorems(theory)
    together = {name: script.shows for script in scripts for name in script.shows}
    wanted: set[str] = set()
    waiting = [name for name in names if name in stated]
    while waiting:
        name = waiting.pop()
        if name not in wanted and name in stated:
            wanted.add(name)
            waiting += [*(need for need in stated[name].needs if need in stated), *together.get(name, ())]
    return tuple(name for name in stated if name in wanted)


def prove(theory: Theory, names: Iterable[str] | None = None, scripts: Iterable[Script] = SCRIPTS) -> dict[str, Result]:
    """The results of the theorems and of their lemmas, in the order of part 6. names: None for all of them."""
    return {result.stated.name: result for result in results(theory, names, scripts)}


def results(
    theory: Theory, names: Iterable[str] | None = None, scripts: Iterable[Script] = SCRIPTS
) -> Iterator[Result]:
    """The same, one after the other, each when it is there."""
    stated = theorems(theory)
    by_name = {name: script for script in scripts for name in script.shows}
    done: dict[str, Result] = {}
    read = kernel.reading(theory)
    for name in with_lemmas(theory, stated if names is None else names, scripts):
        if name not in done and name not in by_name:
            done[name] = Result(stated[name], missing="it has no script in proofs/")
        elif name not in done:
            done |= _run(read, by_name[name], stated, done)
        yield done[name]


def _run(
    theory: Reading, script: Script, stated: Mapping[str, Property], results: Mapping[str, Result]
) -> dict[str, Result]:
    """Runs one step; without one of its lemmas it is not tried."""
    shown = [stated[name] for name in script.shows if name in stated]
    needed = {need for theorem in shown for need in theorem.needs if need in stated and need not in script.shows}
    absent = sorted(need for need in needed if need not in results or results[need].theorem is None)
    if absent or len(shown) < len(script.shows):
        why = f"{', '.join(absent)} is not proved" if absent else f"{script.shows} are not all in part 6"
        return {theorem.name: Result(theorem, script.rule, missing=why) for theorem in shown}
    lemmas = [lemma for need in sorted(needed) for lemma in _lemma(results[need])]
    start = time.monotonic()
    made = _asked(theory, script, lemmas)
    seconds = time.monotonic() - start
    if isinstance(made, Refused):
        return {theorem.name: Result(theorem, script.rule, refused=made, seconds=seconds) for theorem in shown}
    proofs = {proof.name: proof for proof in (made if isinstance(made, tuple) else (made,))}
    together = tuple(it for proof in proofs.values() for it in proof.obligations)
    return {it.name: Result(it, script.rule, proofs[it.name], together=together, seconds=seconds) for it in shown}


def _lemma(result: Result) -> Iterator[Theorem]:
    if result.theorem is not None:
        yield result.theorem


def _asked(theory: Reading, script: Script, lemmas: list[Theorem]) -> Theorem | tuple[Theorem, ...] | Refused:
    """The kernel's answer."""
    (name, *_), hints = script.shows, script.hints
    match script.rule:
        case "induction":
            names = dict(zip(script.along, script.shows, strict=True))
            return kernel.induction(theory, names, lemmas, hints)
        case "natural":
            return kernel.natural(theory, name, script.along[0], lemmas, hints)
        case _:
            return kernel.smt(theory, name, lemmas, hints)
