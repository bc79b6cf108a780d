"""The theory: what the text says about all graphs, as hypotheses with names. Every hypothesis of a proof is made here.

A constraint is taken from part 2 word by word, a law and a theorem from part 6, a rule of execution from part 3. The
definitions in `OPAQUE` are taken as any predicate: what is proved then holds whatever they say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sonnx.semantics.errors import InternalError
from sonnx.spec.library import Specification
from sonnx.spec.printer import print_expression
from sonnx.spec.syntax import Expr, Property

from .formulas import Argument, Base, Signature, Value, conjunction, forall, implication
from .translation import Env, Translation, application, base_sort, plain

OPAQUE = frozenset({"deterministic", "training"})
"""Definitions whose bodies no proof looks into."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What a proof may use. kind: premise, constraint, law, lemma, induction, definition or case."""

    kind: str
    label: str
    formula: Argument


@dataclass(frozen=True, slots=True)
class Theory:
    """The text that proofs are about, and what is taken as any predicate."""

    text: Specification
    opaque: frozenset[str] = OPAQUE

    def translation(self, closed: Iterable[str] = ()) -> Translation:
        """A new translation of the text. closed: further definitions that are taken as any predicate."""
        return Translation(self.text.functions, self.text.transitions, self.opaque.union(closed))

    def property(self, name: str) -> Property:
        """The law or theorem of that name."""
        if name not in self.text.properties:
            raise InternalError(f"part 6 has no law or theorem {name}")
        return self.text.properties[name]


@dataclass(frozen=True, slots=True)
class Claim:
    """A theorem or law under given values of its parameters: what it assumes and what it shows."""

    premises: tuple[Hypothesis, ...]
    goal: Argument

    def formula(self) -> Argument:
        """The premises imply the goal."""
        return implication(conjunction([premise.formula for premise in self.premises]), self.goal)


@dataclass(frozen=True, slots=True)
class Obligation:
    """A question for a prover: do the hypotheses entail the goal? symbols and texts: what occurs in them."""

    name: str
    hypotheses: tuple[Hypothesis, ...]
    goal: Argument
    symbols: Mapping[str, Signature]
    texts: tuple[str, ...]

    def without(self, label: str) -> Obligation:
        """The obligation with one hypothesis dropped."""
        return replace(self, hypotheses=tuple(it for it in self.hypotheses if it.label != label))


def constants(found: Property, t: Translation) -> dict[str, Value]:
    """The parameters as constants of which nothing is known."""
    env: dict[str, Value] = {}
    for parameter in found.parameters:
        sort = base_sort(parameter.sort)
        env[parameter.name] = Base(t.symbol(f"{plain(parameter.name)}", (), sort), sort)
    return env


def variables(found: Property, t: Translation) -> tuple[list[tuple[str, str]], dict[str, Value]]:
    """The parameters as variables to quantify over."""
    made = [(t.fresh(parameter.name), base_sort(parameter.sort)) for parameter in found.parameters]
    named = zip(found.parameters, made, strict=True)
    return made, {parameter.name: Base(name, sort) for parameter, (name, sort) in named}


def claim(found: Property, env: Env, t: Translation, skip: Expr | None = None) -> Claim:
    """What a law or theorem says of given values. skip: a premise to leave out."""
    inner = dict(env)
    premises: list[Hypothesis] = []
    for premise in found.premises:
        if premise.name is not None:
            inner[premise.name] = t.value(premise.expr, inner)
        elif premise.expr is not skip:
            label = print_expression(premise.expr)
            premises.append(Hypothesis("premise", label, t.formula(premise.expr, inner)))
    return Claim(tuple(premises), t.formula(found.goal, inner))


def general(found: Property, t: Translation) -> Argument:
    """A law or theorem for all values of its parameters, without what it needs."""
    bound, env = variables(found, t)
    return forall(bound, claim(found, env, t).formula())


def closed(theory: Theory, found: Property, t: Translation) -> Argument:
    """A theorem as later ones use it: the constraints that it needs imply it for all values of its parameters."""
    needed = [hypothesis.formula for hypothesis in needs(theory, found, t) if hypothesis.kind == "constraint"]
    return implication(conjunction(needed), general(found, t))


def needs(theory: Theory, found: Property, t: Translation) -> tuple[Hypothesis, ...]:
    """The constraints, laws and theorems that a theorem rests on. That the theorems are proved is not asked here."""
    made = []
    for name in found.needs:
        if name in theory.text.constraints:
            made.append(Hypothesis("constraint", name, t.formula(theory.text.constraints[name].formula, {})))
        elif theory.property(name).kind == "law":
            made.append(Hypothesis("law", name, general(theory.property(name), t)))
        else:
            made.append(Hypothesis("lemma", name, closed(theory, theory.property(name), t)))
    return tuple(made)


def clause(theory: Theory, predicate: str, terms: tuple[Argument, ...], t: Translation) -> Argument:
    """The body of an inductive predicate at given arguments."""
    function = theory.text.functions[predicate]
    if function.kind != "inductive" or function.body is None:
        raise InternalError(f"{predicate} is no inductive predicate")
    env: Env = {p.name: Base(term, base_sort(p.sort)) for p, term in zip(function.parameters, terms, strict=True)}
    return t.formula(function.body, env)


def unfolded(theory: Theory, predicate: str, t: Translation) -> Hypothesis:
    """That an inductive predicate is a fixpoint of its clause: it holds exactly where its body does."""
    function = theory.text.functions[predicate]
    made = [(t.fresh(parameter.name), base_sort(parameter.sort)) for parameter in function.parameters]
    terms = tuple(name for name, _ in made)
    held = application(predicate, function, terms, t)
    if not isinstance(held, Base):
        raise InternalError(f"{predicate} is no predicate")
    both = conjunction([implication(held.term, clause(theory, predicate, terms, t)),
                        implication(clause(theory, predicate, terms, t), held.term)])  # fmt: skip
    return Hypothesis("definition", predicate, forall(made, both))
