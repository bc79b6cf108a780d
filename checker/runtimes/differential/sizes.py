"""Sizes and attributes at which an operator is defined, or just not, found by the solver from its `require`s.

A random path is taken through the requirements of a definition, its case distinctions decided at random. What holds on
it, with sizes drawn at random where they may be so, is a question whose answer is a `Solution`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.terms import FALSE, Term
from sonnx.semantics.operators.symbolic.definedness import Instance, Path, explore, instances
from sonnx.semantics.operators.symbolic.numbers import add, at_most, equal, opposite
from sonnx.semantics.operators.symbolic.values import ELSE, Split
from sonnx.spec.elaborate.core import CoreOperator

from ...definedness.proving import OPEN, cases
from ...smt import solver
from ...smt.prover import Prover
from ...smt.smtlib import names, question

SIZES: Final = (2, 3, 5, 1, 7, 4, 0, 6)
"""The sizes that are drawn, the likely ones first."""
LARGEST: Final = 12
"""The greatest size of an axis, and the greatest magnitude of an integer that is asked for."""
LISTED: Final = 4
"""The greatest length of a list that an attribute or data decide."""
DEAD_ENDS: Final = 30
"""The number of dead ends until a path is given up."""
EFFORT: Final = 100_000
"""Steps of the solver for one question: how much work it is worth does not depend on the clock."""
READ: Final = 24
"""The most elements of a tensor, of those that a requirement reads, that are asked for."""

Choice = int | str | bool | None


@dataclass(frozen=True, slots=True)
class Solution:
    """Numbers for the symbols of an instance: `X.0` a size, `pads.1` an attribute's, `given.B` whether it is there.

    texts: of attributes. entries: elements of tensors that decide, by `shape.Int` and index. violated: the sentence of
    the requirement that fails, "" where all hold. edge: a requirement holds, or fails, with nothing to spare.
    """

    instance: Instance
    numbers: Mapping[str, int | bool | str]
    texts: Mapping[str, str]
    entries: Mapping[tuple[str, tuple[int, ...]], int | bool | str]
    violated: str = ""
    edge: bool = False


@dataclass(slots=True)
class Finder:
    """Finds solutions; the same seeds give the same ones."""

    prover: Prover = field(default_factory=lambda: Prover(timeout=3.0))
    session: solver.Session = field(default_factory=solver.Session)
    answers: dict[str, bool] = field(default_factory=dict)

    def find(
        self,
        operator: CoreOperator,
        choose: random.Random,
        *,
        outside: bool = False,
        demand: int | None = None,
        fixed: Mapping[str, int] | None = None,
        instance: Instance | None = None,
    ) -> Solution | None:
        """A solution, None where the path that was drawn leads to none. outside: one requirement fails.

        demand: which one, in the order of the definition; drawn where nothing is said. fixed: numbers that symbols must
        have. instance: the ranks; drawn where nothing is said.
        """
        drawn = instance or _drawn(operator, choose)
        target = None
        if outside and demands(operator):
            target = choose.randrange(demands(operator)) if demand is None else demand
        if outside and target is None:
            return None
        wanted = tuple(equal(Term(name), number) for name, number in (fixed or {}).items())
        self.session = solver.Session()  # what a solver answered before decides which of many numbers it names
        try:
            path = self._path(drawn, choose, target, wanted)
        except InternalError:
            return None
        return None if path is None else self._solved(*path, choose, wanted)

    def _path(
        self, instance: Instance, choose: random.Random, target: int | None, wanted: tuple[Term, ...]
    ) -> tuple[Path, tuple[Term, ...], str] | None:
        """A path behind the last requirement, what else is to hold, and which requirement is broken there."""
        statements = instance.operator.statements
        demands = [at for at, statement in enumerate(statements) if statement.kind == "require"]
        last = demands[-1] if demands else -1
        broken = None if target is None else demands[target]
        facts_at: dict[int, tuple[Term, ...]] = {0: ()}
        dead = 0
        for batch in explore(instance, lambda path, split: self._choice(path, split, choose, wanted)):
            dead += batch.dead
            if dead > DEAD_ENDS:
                return None
            if batch.dead:
                continue
            reached = batch.path.position
            before, facts_at[reached] = facts_at.get(reached - 1, ()), batch.path.facts
            if reached - 1 == broken:
                new = tuple(fact for fact in batch.path.facts if fact not in before)
                if not new:
                    return None
                denied = opposite(new[-1])
                return replace(batch.path, facts=before), (denied, *_beyond(new[-1], choose)), batch.statement.doc
            if reached > last:
                return batch.path, (), ""
        return None

    def _choice(
        self, path: Path, split: Split, choose: random.Random, wanted: tuple[Term, ...]
    ) -> Sequence[tuple[Choice, str]]:
        symbols = {**path.declared(), **split.symbols}
        if split.soft:
            return cases(path, split, self.prover)[:1]
        candidates: list[Choice] = list(split.candidates)
        if candidates and isinstance(candidates[0], str):
            choose.shuffle(candidates)
            return [(it, "") for it in candidates if it != ELSE]
        if candidates == list(range(9)):
            candidates = candidates[: LISTED + 1] if choose.random() < 0.9 else candidates
        choose.shuffle(candidates)
        for candidate in candidates:
            if isinstance(candidate, bool):
                fact = split.term if candidate else opposite(split.term)
            elif isinstance(candidate, int):
                fact = equal(split.term, candidate)
            else:
                continue
            if self._possible((*path.facts, *wanted, *split.facts, fact), symbols):
                return [(candidate, "")]
        return cases(path, split, self.prover)[:1] if not candidates else [(None, "")]

    def _possible(self, facts: Sequence[Term], symbols: Mapping[str, tuple[int, str]]) -> bool:
        """Facts can hold together; true where the solver gives up."""
        if FALSE in facts:
            return False
        text = _together(facts, symbols)
        if text not in self.answers:
            self.answers[text] = self.prover.session.check(text, self.prover.timeout, effort=EFFORT).status != "unsat"
        return self.answers[text]

    def _solved(
        self, path: Path, extra: tuple[Term, ...], violated: str, choose: random.Random, wanted: tuple[Term, ...]
    ) -> Solution | None:
        symbols = path.declared()
        mentioned = frozenset().union(*(names(fact) for fact in (*path.facts, *extra, *wanted)), frozenset())
        facts = [*path.facts, *wanted, *extra]
        sizes = [name for name in sorted(symbols) if _is_size(name, path.instance)]
        integers = [name for name in sorted(mentioned) if symbols.get(name) == (0, "Int")]
        facts += [at_most(Term(name), LARGEST) for name in sizes]
        facts += [at_most(0, Term(name)) for name in sizes]
        near = [at_most(Term(name), 40) for name in integers] + [at_most(-40, Term(name)) for name in integers]
        if self._status([*facts, *near], symbols)[0] == "sat":
            facts += near
        elif self._status(facts, symbols)[0] != "sat":
            return None
        edge = False
        if not violated and choose.random() < 0.5:
            tight = _tight(path, choose)
            if tight is not None and self._status([*facts, tight], symbols)[0] == "sat":
                facts.append(tight)
                edge = True
        facts = self._scattered(facts, sizes, integers, symbols, choose)
        asked = [name for name in sorted({*sizes, *mentioned}) if name in symbols and not symbols[name][0]]
        status, values = self._status(facts, symbols, asked)
        if status != "sat":
            return None
        pairs = zip(asked, map(_number, values), strict=True)
        numbers = {name: number for name, number in pairs if number != name}  # a symbol that is free has no value
        entries = self._entries(facts, symbols, mentioned, numbers, path.instance)
        texts = {
            term.op: str(case)
            for term, case in path.decided.items()
            if isinstance(case, str) and case not in (OPEN, ELSE)
        }
        return Solution(path.instance, numbers, texts, entries, violated, edge or bool(violated))

    def _scattered(
        self,
        facts: list[Term],
        sizes: Sequence[str],
        integers: Sequence[str],
        symbols: Mapping[str, tuple[int, str]],
        choose: random.Random,
    ) -> list[Term]:
        """The facts with sizes and attributes fixed at random, one after the other, where they can have the number."""
        order = [*sizes, *(name for name in integers if name not in sizes)]
        choose.shuffle(order)
        for name in order:
            pool = SIZES if name in sizes else (1, 0, 2, -1, 3, -2)
            number = pool[min(int(choose.expovariate(0.6)), len(pool) - 1)]
            fact = equal(Term(name), number)
            if self._status([*facts, fact], symbols)[0] == "sat":
                facts = [*facts, fact]
        return facts

    def _entries(
        self,
        facts: list[Term],
        symbols: Mapping[str, tuple[int, str]],
        mentioned: frozenset[str],
        numbers: Mapping[str, int | bool | str],
        instance: Instance,
    ) -> dict[tuple[str, tuple[int, ...]], int | bool | str]:
        """Elements of tensors that the requirements read."""
        wanted: list[tuple[str, tuple[int, ...]]] = []
        for name in sorted(mentioned):
            arity, sort = symbols.get(name, (0, ""))
            if not arity or sort not in ("Int", "Bool", "Real"):
                continue
            source = name.rpartition(".")[0]
            shape = [numbers.get(f"{source}.{axis}") for axis in range(arity)]
            known_sizes = [size for size in shape if type(size) is int]
            if len(known_sizes) == arity:
                wanted += [(name, index) for index in _indices(known_sizes)]
        if not wanted:
            return {}
        terms = [f"({name} {' '.join(str(i) for i in index)})" for name, index in wanted]
        held = {name for name, _ in wanted}
        bounds = [Term("<=", (Term(name, index), 40)) for name, index in wanted if symbols[name][1] == "Int"]
        bounds += [Term("<=", (-40, Term(name, index))) for name, index in wanted if symbols[name][1] == "Int"]
        status, values = self._status([*facts, *bounds], symbols, terms)
        if status != "sat":
            status, values = self._status(facts, symbols, terms)
        return dict(zip(wanted, map(_number, values), strict=True)) if status == "sat" and held else {}

    def _status(
        self, facts: Sequence[Term], symbols: Mapping[str, tuple[int, str]], asked: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...]]:
        if FALSE in facts:
            return "unsat", ()
        text = _together(facts, symbols)
        declared = [name for name in asked if f"-fun {name.strip('(').split(' ')[0]} " in text]
        answer: solver.Checked = self.session.check(text, self.prover.timeout, 0, declared, effort=EFFORT)
        known = dict(zip(declared, answer.values, strict=True)) if answer.values else {}
        return answer.status, tuple(known.get(name, "0") for name in asked)


def _together(facts: Sequence[Term], symbols: Mapping[str, tuple[int, str]]) -> str:
    """The question whether facts can hold together."""
    return "".join(question(facts, FALSE, symbols, every=True))


# ---- Parts ------------------------------------------------------------------------------------


@cache
def all_instances(operator: CoreOperator) -> tuple[Instance, ...]:
    """The ranks at which a definition is instantiated."""
    return tuple(instances(operator))


def _drawn(operator: CoreOperator, choose: random.Random) -> Instance:
    return choose.choice(all_instances(operator))


def demands(operator: CoreOperator) -> int:
    """The number of requirements of a definition."""
    return sum(statement.kind == "require" for statement in operator.statements)


def _is_size(name: str, instance: Instance) -> bool:
    port, _, rest = name.partition(".")
    return port in instance.ranks and all(part.isdecimal() for part in rest.split("."))


def _tight(path: Path, choose: random.Random) -> Term | None:
    """One of the inequalities of the path as an equation."""
    inequalities = [fact for fact in path.facts if fact.op == "<=" and names(fact)]
    if not inequalities:
        return None
    left, right = choose.choice(inequalities).args
    return Term("=", (left, right))


def _beyond(fact: Term, choose: random.Random) -> tuple[Term, ...]:
    """For an inequality: it fails by one."""
    parts = [part for part in (fact.args if fact.op == "and" else (fact,)) if isinstance(part, Term)]
    inequalities = [part for part in parts if part.op == "<="]
    if not inequalities or choose.random() < 0.3:
        return ()
    left, right = choose.choice(inequalities).args
    if isinstance(left, str) or isinstance(right, str):
        return ()
    return (equal(left, add(right, 1)),)


def _indices(shape: Sequence[int]) -> list[tuple[int, ...]]:
    indices: list[tuple[int, ...]] = [()]
    for size in shape:
        indices = [(*index, i) for index in indices for i in range(size)][:READ]
    return indices


def _number(text: str) -> int | bool | str:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdecimal() else text
