"""Definedness of operators, proved for arbitrary sizes at up to 4 axes: each definition proved, refuted, not proved.

Every obligation of every instance (`operators.symbolic.definedness`) is one question to the solver. A refuted one comes
with sizes and attributes for which the text is undefined although everything that it requires holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, product
from pathlib import Path as File

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.terms import FALSE, TRUE, Argument, Term
from sonnx.semantics.operators.symbolic.definedness import Batch, Instance, Path, explore, instances
from sonnx.semantics.operators.symbolic.numbers import Int, equal, opposite, substitute_term
from sonnx.semantics.operators.symbolic.values import Obligation, Split
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.language.syntax import Span
from sonnx.spec.terminal import Progress

from ..smt import solver
from ..smt.smtlib import OPERATORS, QUANTIFIERS, names, question

# ---- Instances of quantified facts --------------------------------------------------------------


MOST = 24
"""How many instances one fact may have."""


def grounded(facts: Sequence[Term], goal: Term) -> tuple[Term, ...]:
    """The facts without quantifiers, and instances of the others."""
    plain = [fact for fact in facts if not quantified(fact)]
    atoms = frozenset().union(_atoms(goal), *map(_atoms, plain))
    near = _atoms(goal)
    made = [instance for fact in facts if quantified(fact) for instance in _instances(fact, near, atoms)]
    return tuple(dict.fromkeys((*plain, *made)))


@lru_cache(maxsize=50_000)
def quantified(term: Argument) -> bool:
    """A quantifier occurs."""
    return isinstance(term, Term) and (term.op in QUANTIFIERS or any(map(quantified, term.args)))


@lru_cache(maxsize=50_000)
def _atoms(term: Argument) -> frozenset[Term]:
    """The symbols and applications of functions outside of quantifiers."""
    if not isinstance(term, Term) or term.op in QUANTIFIERS:
        return frozenset()
    own = frozenset() if term.op in OPERATORS else frozenset((term,))
    return own.union(*map(_atoms, term.args))


def _instances(fact: Term, near: frozenset[Term], atoms: frozenset[Term]) -> Iterator[Term]:
    """Instances of a fact that is quantified itself or whose parts are."""
    if fact.op == "forall":
        names, body = [str(name) for name in fact.args[:-1]], fact.args[-1]
        if not isinstance(body, Term):
            return
        choices = [_choices(name, body, near) or _choices(name, body, atoms) for name in names]
        for values in islice(product(*choices), MOST):
            instance: Int = body
            for name, value in zip(names, values, strict=True):
                instance = substitute_term(instance, Term(name), value)
            if isinstance(instance, Term) and not quantified(instance) and instance != TRUE:
                yield instance
    elif fact.op in ("or", "=>", "and"):
        inner = [k for k, part in enumerate(fact.args) if quantified(part)]
        last = fact.args[inner[-1]]
        if len(inner) == 1 and isinstance(last, Term) and last.op == "forall":
            for instance in _instances(last, near, atoms):
                yield Term(fact.op, (*fact.args[: inner[0]], instance, *fact.args[inner[0] + 1 :]))


def _choices(name: str, body: Term, atoms: frozenset[Term]) -> list[Term]:
    """The terms that a variable may stand for: the arguments of functions in its place, the indices of its name."""
    choices: dict[Term, None] = {}
    variable = Term(name)
    places = [(atom.op, k) for atom in _patterns(body) for k, arg in enumerate(atom.args) if arg == variable]
    for atom in sorted(atoms, key=str):
        for op, k in places:
            argument = atom.args[k] if atom.op == op and len(atom.args) > k else None
            if isinstance(argument, Term):
                choices[argument] = None
        if not atom.args and "!" in atom.op and _stem(atom.op) == _stem(name):
            choices[atom] = None
    return list(choices)


def _patterns(term: Argument) -> Iterator[Term]:
    """The applications of functions in a term."""
    if isinstance(term, Term):
        if term.op not in OPERATORS and term.args:
            yield term
        for part in term.args:
            yield from _patterns(part)


def _stem(name: str) -> str:
    """The name in the text of an index variable."""
    return name.partition("!")[0].partition(".")[0]


# ---- Proofs -------------------------------------------------------------------------------------


PROVED, REFUTED, OPEN = "proved", "refuted", "not proved"
LISTED = 3
"""Lists have so many entries at most, more only where a requirement asks for more."""
TIMEOUT = 2.0
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

    @property
    def verdict(self) -> str:
        """proved, refuted or not proved."""
        if any(finding.status == REFUTED for finding in self.findings):
            return REFUTED
        return OPEN if self.findings or self.reason or not self.paths else PROVED


@dataclass(slots=True)
class Prover:
    """The solver with what it has answered: to a text, and to the terms that it was made of, which is found faster.

    listed: how long the lists are that data and attributes give, at most, where a requirement asks for no more.
    dump: the folder for the obligations as SMT-LIB. cut: the lengths that were cut off there.
    """

    timeout: float = TIMEOUT
    seed: int = 0
    listed: int = LISTED
    dump: File | None = None
    answers: dict[str, solver.Checked] = field(default_factory=dict)
    known: dict[tuple[tuple[Term, ...], Term, bool], solver.Checked] = field(default_factory=dict)
    session: solver.Session = field(default_factory=solver.Session)
    cut: dict[str, None] = field(default_factory=dict)

    def ask(self, facts: Sequence[Term], goal: Term, symbols: Mapping[str, tuple[int, str]]) -> solver.Checked:
        """Facts and the negated goal can hold together.

        Asked of the facts about the symbols of the goal, of all facts at the indices of the goal, and of all facts,
        until one question is answered with no.
        """
        for attempt in _attempts(facts, goal):
            answer = self._ask(attempt, goal, symbols)
            if answer.status == "unsat":
                return answer
        return self._ask(facts, goal, symbols, every=True)

    def _ask(
        self, facts: Sequence[Term], goal: Term, symbols: Mapping[str, tuple[int, str]], *, every: bool = False
    ) -> solver.Checked:
        asked = (tuple(facts), goal, every)
        answer = self.known.get(asked)
        if answer is None:
            text = "".join(question(facts, goal, symbols, every=every))
            answer = self.known[asked] = self.answers.get(text) or self._checked(text, facts, goal, symbols)
            self.answers[text] = answer
        return answer

    def _checked(
        self, text: str, facts: Sequence[Term], goal: Term, symbols: Mapping[str, tuple[int, str]]
    ) -> solver.Checked:
        written = _mentioned((*facts, goal)) & symbols.keys()
        asked = sorted(name for name in written if not symbols[name][0] and f"-fun {name} " in text)
        answer = self.session.check(text, self.timeout, self.seed, asked)
        if not answer.values:
            return answer
        return solver.Checked(answer.status, tuple(map(" ".join, zip(asked, answer.values, strict=True))))

    def write(self, name: str, obligation: Obligation, path: Path) -> None:
        """Write the obligation as `NAME.K.smt2`, if there is a folder for that."""
        if self.dump is None:
            return
        self.dump.mkdir(parents=True, exist_ok=True)
        number = sum(1 for _ in self.dump.glob(f"{name}.*.smt2"))
        comments = (
            f"{name}: {obligation.kind} {obligation.about} at {obligation.span}",
            f"{path.instance.label}; {'; '.join(path.cases) or 'no case distinction'}",
            "unsat: the obligation is proved.",
        )
        text = "".join(question(obligation.facts, obligation.goal, path.declared(), comments))
        (self.dump / f"{name}.{number}.smt2").write_text(f"{text}(check-sat)\n", encoding="ascii", newline="\n")

    def possible(self, facts: Sequence[Term], symbols: Mapping[str, tuple[int, str]]) -> bool:
        """The facts can hold together; true where the solver gives up."""
        return FALSE not in facts and self.ask(facts, FALSE, symbols).status != "unsat"


def _attempts(facts: Sequence[Term], goal: Term) -> Iterator[Sequence[Term]]:
    """The choices of facts that are tried one after the other."""
    own = names(goal)
    if own:
        yield [fact for fact in facts if names(fact) & own and not quantified(fact)]
    yield grounded(facts, goal)
    if any(map(quantified, facts)):
        yield facts


def _mentioned(terms: Sequence[Term]) -> set[str]:
    return {name for term in terms for name in names(term)}


# ---- One definition ---------------------------------------------------------------------------


def judge(operator: CoreOperator, prover: Prover | None = None, chosen: Sequence[Instance] | None = None) -> Judgement:
    """The definition is defined wherever its requirements hold. chosen: these instances instead of all, or of
    those that the solver can do.
    """
    prover = prover or Prover()
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
    return Judgement(operator.name, operator.first, operator.last, count, paths, proved, listed, cut, reason, most)


def prove(batch: Batch, prover: Prover) -> Iterator[Finding | None]:
    """For each obligation of a batch None where it is proved, else what was found."""
    for obligation in batch.obligations:
        yield _finding(batch, obligation, prover)


def _finding(batch: Batch, obligation: Obligation, prover: Prover) -> Finding | None:
    path, symbols = batch.path, batch.path.declared()
    operator = path.instance.operator
    name = f"{operator.name}-{operator.first}.{obligation.kind}.{obligation.span.line}.{obligation.span.column}"
    prover.write(name, obligation, path)
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
        if prover.possible((*path.facts, *outside), _symbols(path, split)):
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
        if fact != FALSE and prover.possible((*path.facts, *split.facts, fact), _symbols(path, split)):
            options.append((candidate, f"{subject} = {candidate}" if type(candidate) is int else _words(fact)))
        if len(options) > prover.listed and _is_size(split):
            prover.cut[subject] = None
            return options
    if not _is_size(split) and not split.soft and split.candidates and type(split.candidates[0]) is not str:
        outside = [opposite(equal(split.term, c)) for c in split.candidates if type(c) is int]
        if outside and prover.possible((*path.facts, *outside), _symbols(path, split)):
            options.append((None, f"{subject} is none of {', '.join(map(str, split.candidates))}"))
    return options


def _symbols(path: Path, split: Split) -> Mapping[str, tuple[int, str]]:
    return {**path.declared(), **split.symbols}


def _is_size(split: Split) -> bool:
    """The candidates are lengths of a list that the data or an attribute decide."""
    return not split.soft and split.candidates == tuple(range(9))


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
    prover = prover or Prover()
    for done, operator in enumerate(operators):
        if operator.rule:
            continue  # the machine's rules are the matter of other proofs
        if progress is not None:
            progress(f"{operator.name}-{operator.first}", done, len(operators))
        prover.answers.clear()
        prover.known.clear()
        yield operator, judge(operator, prover)
