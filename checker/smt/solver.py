"""The solver. The only module that imports z3; every query is limited, seeded, and can be dumped, with names for what
the facts say in the place of values.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Final

import z3  # type: ignore[import-untyped]
from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.ground import Query, optimistic
from sonnx.semantics.formulas.terms import Term
from sonnx.semantics.resources.process import paused

from .smtlib import CHUNK, Place, script, smtlib

__all__ = [
    "Answer",
    "Checked",
    "Place",
    "Session",
    "ask",
    "dump",
    "smtlib",
    "solve",
]

STATUSES = ("sat", "unsat", "unknown")
PART = 2_000
"""The clauses, or conjuncts, of a question above which it is asked in parts, of so many each."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the solver to a query; each status is sat, unsat or unknown.

    negation: facts, clauses and the negated formula. Only where that is sat and a fact is unknown: formula, facts and
    the formula; or, for a query with inductive predicates, optimistic: facts and the negated formula, every unknown
    fact read in favour of the formula. core: the facts that refute the negation. reason: why a status is unknown.
    """

    negation: str
    formula: str | None = None
    optimistic: str | None = None
    core: tuple[str, ...] = ()
    seconds: float = 0.0
    reason: str = ""

    @property
    def verdict(self) -> str:
        """holds, violated or unknown. Unknown facts can make the constraint true and false alike: unknown."""
        if self.negation == "unsat":
            return "holds"
        determined = self.formula is None and self.optimistic is None
        if self.negation == "sat" and (determined or self.formula == "unsat" or self.optimistic == "sat"):
            return "violated"
        return "unknown"

    @property
    def answers(self) -> tuple[str, ...]:
        """The statuses in the order in which they were asked."""
        return tuple(status for status in (self.negation, self.formula, self.optimistic) if status is not None)


def solve(query: Query, timeout: float, seed: int = 0) -> Answer:
    """Decide a constraint. timeout: seconds for each question; a question that takes longer is answered unknown."""
    start = time.monotonic()
    negation, core, reason = ask(query, negated=True, timeout=timeout, seed=seed)
    formula = favoured = None
    if negation == "sat" and query.free and not query.clauses:
        formula, _, reason = ask(query, negated=False, timeout=timeout, seed=seed)
    elif negation == "sat" and query.free:
        favoured, _, reason = ask(optimistic(query), negated=True, timeout=timeout, seed=seed)
    return Answer(negation, formula, favoured, core, time.monotonic() - start, reason)


def ask(query: Query, *, negated: bool, timeout: float, seed: int = 0) -> tuple[str, tuple[str, ...], str]:
    """One question: the status, the facts in the core when unsat, why it is unknown otherwise."""
    with paused():
        told = _in_parts(query, timeout, seed) if negated else None
        status, used, reason = told or _asked(query, negated, timeout, seed)
    return status, tuple(sorted({*used, *query.fixed()})) if status == "unsat" else (), reason


def _in_parts(query: Query, timeout: float, seed: int) -> Told | None:
    """The answer to a long negated question, part by part, each in the time limit; None where that does not tell."""
    if max(len(query.clauses), len(query.formula.args) if isinstance(query.formula, Term) else 0) <= PART:
        return None
    from .parts import parts  # few questions are long

    used: dict[str, None] = {}
    told = None
    for part in parts(query, PART):
        told = _asked(part, True, timeout, seed)
        if told[0] == "sat" and query.clauses:
            return None
        if told[0] != "unsat":
            return told
        used.update(dict.fromkeys(told[1]))
    return told and ("unsat", tuple(used), "")


def _asked(query: Query, negated: bool, timeout: float, seed: int) -> Told:
    pieces = chain([f"{_options(timeout, seed)}{USUAL}"], script(query, negated))
    answer = _told(pieces) if len(query.clauses) > CHUNK else _remembered("".join(pieces))
    if answer[0] not in STATUSES:
        raise InternalError(f"the solver answered {answer[0][:200]!r} on {query.name}")
    return answer


Told = tuple[str, tuple[str, ...], str]
"""The last word of the solver on a text, the facts in the core when it is unsat, why it is unknown otherwise."""
_answers: dict[str, Told] = {}
"""Answers by the whole text, options included: many small models ask the same. Only those that no clock decides."""
REMEMBERED, SHORT = 2_000, 20_000
"""The most answers that are kept, and the most characters of a text that is."""


def _remembered(text: str) -> Told:
    known = _answers.get(text)
    if known is None:
        known = _told([text])
        if known[0] in ("sat", "unsat") and len(text) <= SHORT:
            if len(_answers) >= REMEMBERED:
                _answers.clear()
            _answers[text] = known
    return known


def _told(pieces: Iterable[str]) -> Told:
    with _context() as context:
        status = ""
        for piece in pieces:
            status = _tell(context, piece).strip()
        used = re.findall(r"use@([^\s()|]+)", _tell(context, "(get-unsat-assumptions)")) if status == "unsat" else ()
        return status, tuple(used), _why(context) if status == "unknown" else ""


@dataclass(frozen=True, slots=True)
class Checked:
    """status: sat, unsat or unknown. values: where it is sat, what was asked of the model; model: its definitions, as
    SMT-LIB. reason: of unknown.
    """

    status: str
    values: tuple[str, ...] = ()
    reason: str = ""
    model: str = ""


class Session:
    """A solver that many questions are put to, one after the other; each starts anew."""

    @cached_property
    def _context(self) -> z3.Context:
        return z3.Context()

    def check(
        self, text: str, timeout: float, seed: int = 0, values: Sequence[str] = (), *, effort: int = 0,
        model: bool = False, finite: bool = False, under: str = "",
    ) -> Checked:  # fmt: skip
        """The assertions of an SMT-LIB text can hold together. values: terms whose value in the model is asked;
        model: the whole model is. finite: quantifiers are over few elements, see `FINITE`. under: a constant of the
        text that is assumed.

        timeout: seconds. effort: the greatest number of steps, which no clock counts; 0: no limit. The text ends before
        its `(check-sat)`.
        """
        with _asking:
            _tell(self._context, f"(reset){_options(timeout, seed, effort)}{FINITE if finite else USUAL}")
            read = _tell(self._context, text)
            if read == "unknown":  # a limit was reached before all of the text was read
                return Checked(read, (), "a limit was reached while the question was read")
            return self.again(values, model=model, under=under)

    def again(self, values: Sequence[str] = (), *, model: bool = False, under: str = "") -> Checked:
        """The same about the text of the last `check`, within the same limits."""
        with _asking:
            context = self._context
            status = _tell(context, f"(check-sat-assuming ({under}))" if under else "(check-sat)").strip()
            if status not in STATUSES:
                raise InternalError(f"the solver answered {status[:200]!r}")
            if status == "unknown":
                return Checked(status, (), _why(context))
            if status == "unsat" or not (values or model):
                return Checked(status)
            if model:
                return Checked(status, model=_tell(context, "(get-model)"))
            return Checked(status, tuple(_value(_tell(context, f"(eval {value})")) for value in values))


def _value(printed: str) -> str:
    """A number as it is written elsewhere."""
    text = " ".join(printed.split())
    negative = re.fullmatch(r"\(- (\d+)\)", text)
    return f"-{negative[1]}" if negative else text


def dump(query: Query, folder: Path, place: Place | None = None) -> Path:
    """Write the question that decides a query, facts and negated formula, as `NAME.smt2`; where a fact is unknown and
    no predicate is inductive also facts and formula, as `NAME.formula.smt2`. Returns the path of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{query.name}.smt2"
    questions = [(path, query, True)]
    if query.free:
        favoured = query.clauses != ()
        second = folder / f"{query.name}.{'optimistic' if favoured else 'formula'}.smt2"
        questions.append((second, optimistic(query) if favoured else query, favoured))
    for target, question, negated in questions:
        with target.open("w", encoding="ascii", newline="\n") as file:
            file.writelines(smtlib(question, negated, place))
    return path


# ---- The solver's contexts --------------------------------------------------------------------

FROM_KEYBOARD: Final = "interrupted from keyboard"
"""The solver's words when a signal ended its work."""
_idle: dict[int, list[z3.Context]] = {}
"""Solvers that wait for a question, by process."""
_asking: Final = threading.RLock()
"""Held by the thread that asks: the solver keeps options for all contexts, and what another thread holds within it at a
fork, nobody gives back in the new process. So a fork waits for the end of a question."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_asking.acquire, after_in_parent=_asking.release, after_in_child=_asking.release)


@contextmanager
def _context() -> Iterator[z3.Context]:
    """A solver of its own. One that has answered is used again, reset: a new one costs more than most questions. A
    worker process makes its own."""
    with _asking:
        idle = _idle.setdefault(os.getpid(), [])
        context = idle.pop() if idle else z3.Context()
        yield context
        _tell(context, "(reset)")
        idle.append(context)


def _options(timeout: float, seed: int, effort: int = 0) -> str:
    """Options of a question. The solver keeps options for the whole process, whatever context they are set in: each
    question states them all, these and `USUAL` or `FINITE`.
    """
    limits = f"(set-option :rlimit {effort})(set-option :timeout {max(1, int(timeout * 1000))})"
    return f"{limits}(set-option :smt.random_seed {seed})"


def _quantifiers(matched: str) -> str:
    return f"(set-option :auto_config {matched})(set-option :smt.mbqi true)(set-option :smt.ematching {matched})"


USUAL: Final = _quantifiers("true")
FINITE: Final = _quantifiers("false")
"""Readings of quantifiers: as usual, or instantiated with elements that refute them in the model at hand, until none
does. That ends where all sorts are finite.
"""


def _why(context: z3.Context) -> str:
    """Why the solver gave up. Raises KeyboardInterrupt where somebody pressed the keys, which it takes for itself."""
    match = re.search(r'"(.*)"', _tell(context, "(get-info :reason-unknown)"))
    reason = match[1] if match else "no reason"
    if reason == FROM_KEYBOARD:
        raise KeyboardInterrupt
    return f"the solver gave up: {reason}"


def _tell(context: z3.Context, text: str) -> str:
    """Let the solver read SMT-LIB and return what it prints."""
    try:
        printed = str(z3.Z3_eval_smtlib2_string(context.ref(), text))
    except z3.Z3Exception as problem:
        told = problem.args[0]
        printed = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
    if "canceled" in printed or "resource limit exceeded" in printed:
        return "unknown"
    if "(error" in printed:
        raise InternalError(f"the solver refuses its input: {printed.strip()[:200]}")
    return printed
