"""Consequences of facts: few of the facts are asked of first, and answers are remembered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, product
from pathlib import Path

from sonnx.semantics.formulas.terms import FALSE, TRUE, Argument, Term
from sonnx.semantics.operators.symbolic.numbers import Int, add, either, multiply, opposite, polynomial, substitute_term

from . import solver
from .smtlib import LISTS, OPERATORS, QUANTIFIERS, names, question

# ---- Instances of quantified facts --------------------------------------------------------------


MOST = 24
"""The most instances of one fact."""


def grounded(facts: Sequence[Term], goal: Term, *, further: bool = False) -> tuple[Term, ...]:
    """The facts without quantifiers, and instances of the others. further: at what the instances mention, too."""
    clauses = [clause for fact in facts for clause in (_clauses(fact) if quantified(fact) else (fact,))]
    plain = [fact for fact in clauses if not quantified(fact)]
    atoms = frozenset().union(_atoms(goal), *map(_atoms, plain))
    near = _atoms(goal) | _free(goal)
    general = [fact for fact in clauses if quantified(fact)]
    made = dict.fromkeys(instance for fact in general for instance in _instances(fact, near, atoms))
    if further:
        atoms = atoms.union(*map(_atoms, made))
        made |= dict.fromkeys(instance for fact in general for instance in _instances(fact, atoms, atoms))
    return tuple(dict.fromkeys((*plain, *made)))


@lru_cache(maxsize=50_000)
def quantified(term: Argument) -> bool:
    """A quantifier occurs."""
    return isinstance(term, Term) and (term.op in QUANTIFIERS or any(map(quantified, term.args)))


@lru_cache(maxsize=10_000)
def _clauses(fact: Term) -> tuple[Term, ...]:
    """A fact about lists of any length in parts, each with its quantifier in front of all else."""
    return tuple(_opened(fact)) if _of_lists(fact) else (fact,)


@lru_cache(maxsize=50_000)
def _of_lists(term: Argument) -> bool:
    return isinstance(term, Term) and (term.op in LISTS or any(map(_of_lists, term.args)))


def _opened(fact: Term) -> list[Term]:
    if not quantified(fact):
        return [fact]
    match fact:
        case Term("and", parts):
            return [found for part in parts if isinstance(part, Term) for found in _opened(part)]
        case Term("forall", (*names, Term() as body)):
            return [_over(names, found) for found in _opened(body)]
        case Term("not", (Term("exists", (*names, Term() as body)),)):
            return [_over(names, opposite(body))]
        case Term("=>", (Term() as condition, Term() as conclusion)):
            return _opened(either(opposite(condition), conclusion))
        case Term("or", parts):
            inner = [part for part in parts if isinstance(part, Term) and quantified(part)]
            if len(inner) == 1:
                others = [part for part in parts if isinstance(part, Term) and part != inner[0]]
                found = _opened(inner[0])
                return [_beside(others, clause) for clause in found] if found != inner else [fact]
    return [fact]


def _over(names: Sequence[Argument], clause: Term) -> Term:
    match clause:
        case Term("forall", (*more, body)):
            return Term("forall", (*names, *more, body))
        case _:
            return Term("forall", (*names, clause))


def _beside(others: Sequence[Term], clause: Term) -> Term:
    match clause:
        case Term("forall", (*names, Term() as body)):
            return Term("forall", (*names, either(*others, body)))
        case _:
            return either(*others, clause)


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
        choices = [_choices(name, body, near) or _choices(name, body, atoms) or _entries(body, near) for name in names]
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


def _entries(body: Term, atoms: frozenset[Term]) -> list[Int]:
    """Entries of lists, for a variable that stands in no other function of lists."""
    return [atom for atom in sorted(atoms, key=str) if atom.op == "at"] if _of_lists(body) else []


@lru_cache(maxsize=10_000)
def _free(term: Argument, bound: frozenset[str] = frozenset()) -> frozenset[Term]:
    """The entries of lists that are mentioned below quantifiers without their variables."""
    if not isinstance(term, Term):
        return frozenset()
    if term.op in QUANTIFIERS:
        return _free(term.args[-1], bound.union(map(str, term.args[:-1])))
    own = frozenset((term,)) if bound and term.op == "at" and not names(term) & bound else frozenset()
    return own.union(*(_free(part, bound) for part in term.args))


def _choices(name: str, body: Term, atoms: frozenset[Term]) -> list[Int]:
    """The terms that a variable may stand for: the arguments of functions in its place, the indices of its name."""
    choices: dict[Int, None] = {}
    variable = Term(name)
    places = [(atom.op, k) for atom in _patterns(body) for k, arg in enumerate(atom.args) if arg == variable]
    stretches = [atom.args for atom in _patterns(body) if atom.op == "at" and variable not in atom.args]
    for atom in sorted(atoms, key=str):
        if atom.op == "at":
            for code, place in stretches:
                value = _solved(variable, place, atom.args[1]) if code == atom.args[0] else None
                if value is not None:
                    choices[value] = None
        for op, k in places:
            argument = atom.args[k] if atom.op == op and len(atom.args) > k else None
            if isinstance(argument, Term) or (op == "at" and isinstance(argument, int)):
                choices[argument] = None
        if not atom.args and "!" in atom.op and _stem(atom.op) == _stem(name):
            choices[atom] = None
    return list(choices)


def _solved(variable: Term, place: Argument, position: Argument) -> Int | None:
    """The value of a variable at which a position that it is added to, or subtracted from, is the one looked for."""
    if not isinstance(place, Term) or isinstance(position, str):
        return None
    parts = polynomial(place)
    factor = parts.get((variable,), 0)
    rest = add(place, multiply(-factor, variable))
    if factor not in (1, -1) or variable in _atoms(rest):
        return None
    return multiply(factor, add(position, multiply(-1, rest)))


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


# ---- Questions ----------------------------------------------------------------------------------


LISTED = 3
"""Lists have so many entries at most, more only where a requirement asks for more."""
TIMEOUT = 2.0


@dataclass(slots=True)
class Prover:
    """The solver with what it has answered: to a text, and to the terms that it was made of, which is found faster.

    timeout: seconds for a question. effort: the greatest number of steps for one, which no clock counts; 0: no limit.
    listed: how long the lists are that data and attributes give, at most, where a requirement asks for no more.
    dump: the folder for the obligations as SMT-LIB. cut: the lengths that were cut off there.
    """

    timeout: float = TIMEOUT
    seed: int = 0
    effort: int = 0
    listed: int = LISTED
    dump: Path | None = None
    answers: dict[str, solver.Checked] = field(default_factory=dict)
    known: dict[tuple[tuple[Term, ...], Term, bool], solver.Checked] = field(default_factory=dict)
    session: solver.Session = field(default_factory=solver.Session)
    cut: dict[str, None] = field(default_factory=dict)

    def ask(self, facts: Sequence[Term], goal: Term, symbols: Mapping[str, tuple[int, str]]) -> solver.Checked:
        """Facts and the negated goal can hold together.

        Asked of the facts about the symbols of the goal, of all facts at the indices of the goal, and of all facts,
        until one question is answered with no.
        """
        for attempt in attempts(facts, goal, symbols):
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
        answer = self.session.check(text, self.timeout, self.seed, asked, effort=self.effort)
        if not answer.values:
            return answer
        return solver.Checked(answer.status, tuple(map(" ".join, zip(asked, answer.values, strict=True))))

    def possible(self, facts: Sequence[Term], symbols: Mapping[str, tuple[int, str]], *, grounds: bool = False) -> bool:
        """The facts can hold together; true where the solver gives up. grounds: of quantified facts a few instances are
        asked of and no more, which is fast.
        """
        if grounds:
            return FALSE not in facts and self._ask(grounded(facts, FALSE), FALSE, symbols).status != "unsat"
        return FALSE not in facts and self.ask(facts, FALSE, symbols).status != "unsat"


def attempts(facts: Sequence[Term], goal: Term, symbols: Mapping[str, tuple[int, str]]) -> Iterator[Sequence[Term]]:
    """The choices of facts that are tried one after the other."""
    own = names(goal)
    if own:
        yield [fact for fact in facts if names(fact) & own and not quantified(fact)]
    yield grounded(facts, goal)
    if any(map(quantified, facts)):
        if own and "at" in symbols:  # what is known of an entry of a list may be about another list's
            yield grounded(facts, goal, further=True)
        yield facts


def _mentioned(terms: Sequence[Term]) -> set[str]:
    return {name for term in terms for name in names(term)}
