"""Questions to the solver about sizes, indices and truth values, where elements of tensors are opaque.

An atom over elements is a function of the indices in it: equal atoms are equal, and nothing else is known of them. So
what is entailed here holds whatever the arithmetic of elements is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from sonnx.semantics.formulas.terms import FALSE, TRUE, Argument, Term
from sonnx.semantics.operators.symbolic.folds import STEP
from sonnx.semantics.operators.symbolic.numbers import Int, printed
from sonnx.semantics.operators.symbolic.values import Bounded, conjuncts

from ...smt.prover import Prover, attempts
from ...smt.smtlib import QUANTIFIERS, names, question, relevant
from ...smt.solver import Checked, Session

TIMEOUT = 20.0
"""Seconds for a question; what ends it is this number of the solver's steps, which no load of the machine changes:"""
EFFORT = 1_500_000
SEEDS = (0, 1)
INCREMENTAL = "(push 1)"
"""Before a question is answered: the solver that may be asked more begins at once, without a choice of tactics, which
takes longer than most answers about sizes and indices.
"""

Symbols = Mapping[str, tuple[int, str]]

BOOLS = frozenset({"@=", "@<", "@<=", "@.truth", "@.is_nan", "@.is_infinite", "@.casts"})
REALS = frozenset({"@.real"})
INTS = frozenset({"@.int", "@.place"})
ATOMS = BOOLS | REALS | INTS
"""The heads of Bools and numbers over elements."""


@dataclass(slots=True)
class Atoms:
    """The functions that stand for atoms over elements. symbols: their declarations; declared: those of all others."""

    symbols: dict[str, tuple[int, str]] = field(default_factory=dict)
    known: dict[Term, Term] = field(default_factory=dict)
    declared: Symbols = field(default_factory=dict)

    def plain(self, term: Term) -> Term:
        """The formula, or number, without elements."""
        found = self._plain(term)
        return found if isinstance(found, Term) else term

    def _plain(self, term: Argument) -> Argument:
        if not isinstance(term, Term) or not term.args:
            return term
        known = self.known.get(term)
        if known is None:
            known = self.known[term] = self._made(term)
        return known

    def _made(self, term: Term) -> Term:
        if term.op not in ATOMS:
            return Term(term.op, tuple(map(self._plain, term.args)))
        holes: dict[Argument, int] = {}
        body = self._opened(term, holes, frozenset())
        sort = "Bool" if term.op in BOOLS else "Real" if term.op in REALS else "Int"
        name = f"atom.{sha256(repr(body).encode()).hexdigest()[:24]}"
        self.symbols[name] = (len(holes), sort)
        return Term(name, tuple(map(self._plain, holes)))

    def _holed(self, term: Argument, holes: dict[Argument, int], bound: frozenset[str]) -> Argument:
        """The term with a place for each number in it that no fold inside binds."""
        if not isinstance(term, Term):
            return term
        if self._is_whole(term) and not mentions(term, bound):
            return Term(f"hole.{holes.setdefault(term, len(holes))}")
        return self._opened(term, holes, bound)

    def _opened(self, term: Term, holes: dict[Argument, int], bound: frozenset[str]) -> Term:
        if term.op == "@.read":
            indices = (self._hole(part, holes, bound) for part in term.args[2:])
            return Term(term.op, (*term.args[:2], *indices))
        if term.op in QUANTIFIERS:
            names = bound.union(map(str, term.args[:-1]))
            return Term(term.op, (*term.args[:-1], self._holed(term.args[-1], holes, names)))
        for part in term.args:
            if isinstance(part, Term) and part.op == "steps":
                bound = bound.union(it.op for it in part.args[: len(part.args) // 2] if isinstance(it, Term))
        return Term(term.op, tuple(self._holed(part, holes, bound) for part in term.args))

    def _hole(self, part: Argument, holes: dict[Argument, int], bound: frozenset[str]) -> Argument:
        """A literal index is a number like any other: it gets a place of its own."""
        return (
            Term(f"hole.{holes.setdefault(part, len(holes))}")
            if isinstance(part, int)
            else self._holed(part, holes, bound)
        )

    def _is_whole(self, term: Term) -> bool:
        """True of an integer, as far as head and declarations say."""
        return term.op in WHOLE or self.declared.get(term.op, (0, ""))[1] == "Int"


WHOLE = frozenset({"+", "*", "div", "mod", "ite", "flat", "unflat", "at", "to_int", *INTS})


def mentions(term: Argument, names: frozenset[str]) -> bool:
    """True if one of the symbols occurs."""
    if not isinstance(term, Term) or not names:
        return False
    return term.op in names or any(mentions(part, names) for part in term.args)


def steps_in(term: Argument) -> bool:
    """True if a variable of a fold occurs."""
    return isinstance(term, Term) and (term.op.startswith(STEP) or any(map(steps_in, term.args)))


def numbered(terms: Sequence[Term], symbols: Symbols) -> tuple[Argument, ...]:
    """The terms with numbers, in the order in which they occur, for the names of symbols: what holds of terms holds of
    all that get the same numbers.
    """
    names: dict[str, str] = {}
    known: dict[int, Term] = {}

    def of(term: Argument) -> Argument:
        if not isinstance(term, Term):
            return term
        found = known.get(id(term))
        if found is None:
            kind = symbols.get(term.op)
            op = term.op if kind is None else names.setdefault(term.op, f"{kind[1]} {kind[0]} {len(names)}")
            found = known[id(term)] = Term(op, tuple(map(of, term.args)))
        return found

    return tuple(map(of, terms))


# ---- Questions ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Asker:
    """What facts entail. Answers are remembered by question, whatever its symbols are called. The solver is reset
    before each question, so that none rests on what was asked before. products: questions that are not answered while
    products of numbers are numbers of which nothing is known. asked: how many went to the solver. seen: the symbols of
    the cases of an instance, which facts may mention before they are met again. effort:
    the solver's steps for a question. most: questions, 0 for any number: one more raises Bounded.
    """

    timeout: float = TIMEOUT
    answers: dict[tuple[frozenset[Term], Term], bool] = field(default_factory=dict)
    renamed: dict[tuple[Argument, ...], bool] = field(default_factory=dict)
    products: set[tuple[Argument, ...]] = field(default_factory=set)
    atoms: Atoms = field(default_factory=Atoms)
    linear: Linear = field(default_factory=lambda: Linear())
    asked: int = 0
    session: Session = field(default_factory=Session)
    seen: dict[str, tuple[int, str]] = field(default_factory=dict)
    effort: int = EFFORT
    most: int = 0

    def entails(self, facts: Iterable[Term], goal: Term, symbols: Symbols, *, quick: bool = False) -> bool:
        """The facts entail the goal; False where it is not found out. quick: products are not looked into."""
        told = list(dict.fromkeys(part for fact in facts for part in conjuncts(fact)))
        return all(self._one(told, part, symbols, quick) for part in conjuncts(goal))

    def impossible(self, facts: Iterable[Term], symbols: Symbols, *, quick: bool = False) -> bool:
        """The facts contradict each other."""
        return self.entails(facts, FALSE, symbols, quick=quick)

    def _one(self, told: Sequence[Term], goal: Term, symbols: Symbols, quick: bool) -> bool:
        if goal == TRUE or goal in told or FALSE in told:
            return True
        self.seen.update(symbols)
        self.atoms.declared = symbols = self.seen
        denied = self.atoms.plain(goal)
        plain = relevant([self.atoms.plain(fact) for fact in told], denied)
        key = frozenset(plain), denied
        if key not in self.answers:
            every = {**symbols, **self.atoms.symbols}
            alike = numbered((denied, *plain), every)
            if alike not in self.renamed:
                answer = None if alike in self.products else self._linear(plain, denied, every)
                if answer is None:
                    self.products.add(alike)
                    if quick:
                        return False
                    answer = self._asked(plain, denied, every)
                self.renamed[alike] = answer
            self.answers[key] = self.renamed[alike]
        return self.answers[key]

    def _linear(self, facts: Sequence[Term], goal: Term, symbols: Symbols) -> bool | None:
        """The answer where products do not matter; None where they may."""
        self.asked += 1
        if self.most and self.asked > self.most:
            raise Bounded(f"more than {self.most} questions")
        flat = [self.linear.flat(fact) for fact in facts]
        denied = self.linear.flat(goal)
        text = "".join(question(flat, denied, {**symbols, **self.linear.symbols()}))
        answer = self.session.check(f"{text}{INCREMENTAL}", self.timeout, effort=self.effort)
        if answer.status == "unsat":
            return True
        products = any(name.startswith(PRODUCT) for term in (*flat, denied) for name in names(term))
        return False if answer.status == "sat" and not products else None

    def _asked(self, facts: Sequence[Term], goal: Term, symbols: Symbols) -> bool:
        for attempt in dict.fromkeys(map(tuple, (*attempts(facts, goal, symbols), facts))):
            for seed in SEEDS:
                found = self._checked(attempt, goal, symbols, seed)
                if found.status == "unsat":
                    return True
                if found.status == "sat":
                    break
            if found.status == "sat" and attempt == tuple(facts):
                return False
        return False

    def _checked(self, facts: Sequence[Term], goal: Term, symbols: Symbols, seed: int) -> Checked:
        text = "".join(question(facts, goal, symbols))
        return self.session.check(text, self.timeout, seed, effort=self.effort)

    def model(self, facts: Iterable[Term], goal: Term, symbols: Symbols) -> Checked:
        """A counterexample of sizes, where the solver has one."""
        told = list(dict.fromkeys(part for fact in facts for part in conjuncts(fact)))
        self.atoms.declared = symbols
        plain = [self.atoms.plain(fact) for fact in told]
        return Prover(self.timeout).ask(plain, self.atoms.plain(goal), {**symbols, **self.atoms.symbols})


@dataclass(slots=True)
class Linear:
    """Products of several numbers as numbers of which nothing is known, which decides most questions at once. known:
    terms by their places in memory, with what they became, since a hash goes through all of a term.
    """

    products: dict[Term, str] = field(default_factory=dict)
    known: dict[int, tuple[Term, Argument]] = field(default_factory=dict)

    def symbols(self) -> Symbols:
        """The declarations."""
        return dict.fromkeys(self.products.values(), (0, "Int"))

    def flat(self, term: Term) -> Term:
        """The formula with such numbers."""
        found = self._flat(term)
        return found if isinstance(found, Term) else term

    def _flat(self, term: Argument) -> Argument:
        if not isinstance(term, Term) or not term.args or term.op in QUANTIFIERS:
            return term
        known = self.known.get(id(term))
        if known is None:
            known = self.known[id(term)] = term, self._made(term)
        return known[1]

    def _made(self, term: Term) -> Argument:
        if term.op == "*":
            numbers = [part for part in term.args if isinstance(part, int)]
            others = tuple(sorted((self._flat(part) for part in term.args if not isinstance(part, int)), key=printed))
            if len(others) > 1:
                name = self.products.setdefault(Term("*", others), f"{PRODUCT}{len(self.products)}")
                return Term("*", (*numbers, Term(name))) if numbers else Term(name)
        if term.op == "flat":
            return self._flat(_expanded(term))
        return Term(term.op, tuple(map(self._flat, term.args)))


PRODUCT = "product!!"
"""The beginning of the names of products."""


def _expanded(term: Term) -> Int:
    from ...smt.smtlib import _flat

    return _flat(term.args)
