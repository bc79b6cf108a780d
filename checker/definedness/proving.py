"""Definedness of operators, proved for arbitrary sizes: each definition proved, refuted, not proved.

Every obligation of every instance (`operators.symbolic.definedness`) is one question to the solver. A refuted one comes
with sizes and attributes for which the text is undefined although everything that it requires holds. Instances have up
to 4 axes and short lists; where the numbers of axes and entries are open as well, the proof is one for every rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.terms import FALSE, Term
from sonnx.semantics.operators.symbolic.definedness import RANKS, Batch, Instance, Path, explore, instances
from sonnx.semantics.operators.symbolic.numbers import at_most, equal, opposite
from sonnx.semantics.operators.symbolic.values import Obligation, Split
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.language.syntax import Span
from sonnx.spec.terminal import Progress

from ..smt.prover import Prover
from ..smt.smtlib import question

# ---- Proofs -------------------------------------------------------------------------------------


TIMEOUT = 60.0
EFFORT = 20_000_000
"""The steps of the solver for one question, some four seconds of them, so that no clock decides what is proved: the
seconds are for what a step takes long for.
"""
PROVED, REFUTED, OPEN = "proved", "refuted", "not proved"
AXES = {
    "Resize-11": 1,
    "Resize-13": 1,
    "Resize-18": 0,
    "Resize-19": 0,
    "TfIdfVectorizer-9": 0,
    "ai.onnx.ml::SVMClassifier-1": 0,
    "ai.onnx.ml::TreeEnsemble-5": 0,
    "ai.onnx.ml::TreeEnsembleClassifier-1": 0,
    "ai.onnx.ml::TreeEnsembleClassifier-3": 0,
    "ai.onnx.ml::TreeEnsembleRegressor-1": 0,
    "ai.onnx.ml::TreeEnsembleRegressor-3": 0,
}
"""Definitions with too many cases for the solver, and for how many axes of an input it does them within minutes."""
AT_ONCE = frozenset({"TfIdfVectorizer-9"})
"""Those of them that it does where the numbers of axes are open."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An obligation that is not proved. name: `Conv-11.index.147:57`. values: of the symbols, where it is refuted."""

    name: str
    span: Span
    kind: str
    about: str
    status: str
    instance: str
    cases: tuple[str, ...]
    values: Mapping[str, str]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A definition: its obligations and instances.

    paths: the instances for which all requirements can hold together. cut: the lengths of lists of which only the least
    ones were tried. reason: why the definition was given up. most: the number of axes up to which it was tried.
    bound: why this is not shown for every number of axes and lists of every length, "" where it is; None if not tried.
    met: the numbers of axes that the requirements admit, by name, where none of 5 or more is among them.
    """

    operator: str
    first: int
    last: int
    instances: int
    paths: int
    proved: int
    findings: tuple[Finding, ...] = ()
    cut: tuple[str, ...] = ()
    reason: str = ""
    most: int | None = None
    bound: str | None = None
    met: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """proved, refuted or not proved."""
        if any(finding.status == REFUTED for finding in self.findings):
            return REFUTED
        possible = self.paths or self.bound == ""
        return OPEN if self.findings or self.reason or not possible else PROVED


# ---- One definition ---------------------------------------------------------------------------


def write(name: str, obligation: Obligation, path: Path, folder: File) -> None:
    """Writes the obligation as `NAME.K.smt2`."""
    folder.mkdir(parents=True, exist_ok=True)
    number = sum(1 for _ in folder.glob(f"{name}.*.smt2"))
    comments = (
        f"{name}: {obligation.kind} {obligation.about} at {obligation.span}",
        f"{path.instance.label}; {'; '.join(path.cases) or 'no case distinction'}",
        "unsat: the obligation is proved.",
    )
    text = "".join(question(obligation.facts, obligation.goal, path.declared(), comments))
    (folder / f"{name}.{number}.smt2").write_text(f"{text}(check-sat)\n", encoding="ascii", newline="\n")


def judge(operator: CoreOperator, prover: Prover | None = None, chosen: Sequence[Instance] | None = None) -> Judgement:
    """The definition is defined wherever its requirements hold. chosen: these instances instead of all, or of
    those that the solver can do.
    """
    prover = prover or Prover(TIMEOUT, effort=EFFORT)
    most = AXES.get(f"{operator.name}-{operator.first}") if chosen is None else None
    prover.cut.clear()
    findings: dict[str, Finding] = {}
    count = paths = proved = 0
    reason = ""
    for instance in instances(operator) if chosen is None else chosen:
        if most is not None and max(map(max, instance.ranks.values())) > most:
            continue
        count += 1
        ended = False
        try:
            for batch in explore(instance, lambda path, split: cases(path, split, prover)):
                for finding in prove(batch, prover):
                    if finding is None:
                        proved += 1
                    elif finding.name not in findings or findings[finding.name].status != REFUTED:
                        findings[finding.name] = finding
                if not ended and not batch.dead and batch.path.position == len(operator.statements):
                    ended = prover.possible(batch.path.facts, batch.path.declared())
        except InternalError as problem:
            reason = str(problem)
            break
        paths += ended
    listed = tuple(findings.values())
    cut = tuple(sorted(prover.cut))
    names = operator.name, operator.first, operator.last
    judgement = Judgement(*names, count, paths, proved, listed, cut, reason, most)
    if chosen is not None:
        return judgement
    if most is not None and f"{operator.name}-{operator.first}" not in AT_ONCE:
        return replace(judgement, bound=TOO_MANY)
    for_every = judge_every(operator, prover)
    shown = proved or for_every.proved  # at no number of axes in turn where they are done at once
    return replace(judgement, proved=shown, bound=bounded(for_every), met=for_every.met)


TOO_MANY = "too many cases"
LEFT = frozenset({"contract data_type"})
"""The obligations that are left to the primitive concerned, which is stuck where they fail."""


def bounded(judgement: Judgement) -> str:
    """Why a judgement at any number of axes is no proof, "" where it is one but for what is left to primitives."""
    left = [f for f in judgement.findings if f"{f.kind} {f.about}" not in LEFT]
    if judgement.reason or not left:
        return judgement.reason or ("" if judgement.paths else "no path gets to the end")
    return f"{left[0].kind} {left[0].about}".rstrip()


def judge_every(operator: CoreOperator, prover: Prover) -> Judgement:
    """The definition is defined wherever its requirements hold, at any number of axes and for lists of any length."""
    prover.cut.clear()
    findings: dict[str, Finding] = {}
    paths = proved = 0
    certain = False
    ends: list[Path] = []
    reason = ""
    try:
        for batch in explore(Instance(operator, {}, every=True), lambda path, split: cases(path, split, prover)):
            for finding in prove(batch, prover):
                proved += finding is None
                if finding is not None:
                    findings.setdefault(finding.name, finding)
            if any(f"{f.kind} {f.about}" not in LEFT for f in findings.values()):
                break  # the others would take long, and would change nothing
            if batch.dead or batch.path.position < len(operator.statements):
                continue
            ends.append(batch.path)
            if not certain:
                status = prover.ask(batch.path.facts, FALSE, batch.path.declared()).status
                certain = status == "sat"
                paths += status != "unsat"
    except InternalError as problem:
        reason = str(problem)
    if prover.cut:
        reason = reason or f"the shortest lists: {', '.join(sorted(prover.cut))}"
    listed = tuple(findings.values())
    met = () if reason or listed else admitted(ends, prover)
    return Judgement(operator.name, operator.first, operator.last, 1, paths, proved, listed, (), reason, met=met)


MANY = len(RANKS)
"""More axes than are tried one after the other."""


def admitted(ends: Sequence[Path], prover: Prover) -> tuple[str, ...]:
    """The numbers of axes at which a definition can be used, for each name none of whose numbers is `MANY` or more."""
    symbols = {name: arity for path in ends for name, (arity, _) in path.symbols.items()}
    words = []
    for name in sorted(name for name, arity in symbols.items() if name.startswith("axes.") and arity == 0):
        axes = Term(name)
        if any(_holds_with(path, at_most(MANY, axes), prover) for path in ends):
            continue
        few = [k for k in RANKS if any(_holds_with(path, equal(axes, k), prover) for path in ends)]
        if few:
            numbers = f"{few[0]}-{few[-1]}" if len(few) > 1 else str(few[0])
            words.append(f"{numbers} axes of {name.removeprefix('axes.')}")
    return tuple(words)


def _holds_with(path: Path, fact: Term, prover: Prover) -> bool:
    """The facts at the end of a path and this one can hold together, as far as instances of them say."""
    return prover.possible((fact, *path.facts), path.declared(), grounds=True)


def prove(batch: Batch, prover: Prover) -> Iterator[Finding | None]:
    """For each obligation of a batch None where it is proved, else what was found."""
    for obligation in batch.obligations:
        yield _finding(batch, obligation, prover)


def _finding(batch: Batch, obligation: Obligation, prover: Prover) -> Finding | None:
    path, symbols = batch.path, batch.path.declared()
    operator = path.instance.operator
    name = f"{operator.name}-{operator.first}.{obligation.kind}.{obligation.span.line}.{obligation.span.column}"
    if prover.dump is not None:
        write(name, obligation, path, prover.dump)
    if obligation.stronger is not None and prover.ask(obligation.facts, obligation.stronger, symbols).status == "unsat":
        return None
    answer = prover.ask(obligation.facts, obligation.goal, symbols)
    if answer.status == "unsat":
        return None
    values = dict(value.split(" ", 1) for value in answer.values)
    return Finding(
        name,
        obligation.span,
        obligation.kind,
        obligation.about,
        REFUTED if answer.status == "sat" else OPEN,
        path.instance.label,
        path.cases,
        {symbol: value for symbol, value in values.items() if "!" not in symbol},
        answer.reason,
    )


def cases(path: Path, split: Split, prover: Prover) -> list[tuple[int | str | bool | None, str]]:
    """The cases of a split that the facts leave, in words. Long lists are cut off where shorter ones are possible."""
    options: list[tuple[int | str | bool | None, str]] = []
    subject = _words(split.term)
    if split.soft:
        outside = [opposite(equal(split.term, c)) for c in split.candidates if type(c) is int]
        if _possible(path, split, outside, prover):
            return [(OPEN, "")]
    for candidate in split.candidates:
        match candidate:
            case bool():
                fact = split.term if candidate else opposite(split.term)
            case int():
                fact = equal(split.term, candidate)
            case _:
                options.append((candidate, f"{subject} = {candidate!r}"))
                continue
        if fact != FALSE and _possible(path, split, (*split.facts, fact), prover):
            options.append((candidate, f"{subject} = {candidate}" if type(candidate) is int else _words(fact)))
        if len(options) > prover.listed and split.length:
            prover.cut[subject] = None
            return options
    if not split.length and not split.soft and split.candidates and type(split.candidates[0]) is not str:
        outside = [opposite(equal(split.term, c)) for c in split.candidates if type(c) is int]
        if outside and _possible(path, split, outside, prover):
            options.append((None, f"{subject} is none of {', '.join(map(str, split.candidates))}"))
    return options


def _possible(path: Path, split: Split, facts: Sequence[Term], prover: Prover) -> bool:
    """The facts of the path and these can hold together."""
    return prover.possible((*path.facts, *facts), _symbols(path, split), grounds=path.instance.every)


def _symbols(path: Path, split: Split) -> Mapping[str, tuple[int, str]]:
    return {**path.declared(), **split.symbols}


def _words(term: Term) -> str:
    """A term for people."""
    return re.sub(r"!\d+", "", _infix(term))


def _infix(term: object) -> str:
    match term:
        case Term(op, ()):
            return op
        case Term("not", (inner,)):
            return f"not {_infix(inner)}"
        case Term("=" | "<=" | "+" | "*" | "div" | "mod" as op, args):
            return f" {op} ".join(_infix(arg) for arg in args)
        case Term(op, args):
            return f"{op}({', '.join(map(_infix, args))})"
        case _:
            return str(term)


def judge_all(
    operators: Sequence[CoreOperator], prover: Prover | None = None, progress: Progress | None = None
) -> Iterator[tuple[CoreOperator, Judgement]]:
    """The judgement of each definition by equations."""
    prover = prover or Prover(TIMEOUT, effort=EFFORT)
    for done, operator in enumerate(operators):
        if operator.rule:
            continue  # the machine's rules are the matter of other proofs
        if progress is not None:
            progress(f"{operator.name}-{operator.first}", done, len(operators))
        prover.answers.clear()
        prover.known.clear()
        yield operator, judge(operator, prover)
