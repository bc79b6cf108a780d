"""What holds of a theorem in a real model: laws, constraints, and inductive predicates that are really the least.

A countermodel of an obligation may read an inductive predicate as more than the least one; one of a theorem here does
not. Each instance of the predicate has a rank, and is derived from instances with smaller ranks only. In a finite
model that is what least means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from sonnx.semantics.errors import InternalError
from sonnx.spec.syntax import Property

from .formulas import Argument, Base, Term, conjunction, exists, forall, implication
from .models import Wanted
from .smtlib import symbols_in
from .theory import Hypothesis, Theory, claim, clause, constants, general, inhabited, relative
from .translation import Hook, Translation, application, base_sort

Dropped = tuple[str, str]
"""The kind and the label of a hypothesis that is left out."""


@dataclass(frozen=True, slots=True)
class Question:
    """A theorem's hypotheses in a real model, one of them left out where there is one; refuted: and its goal denied.

    wishes: what makes a model interesting; each is dropped when there is none with it.
    """

    wanted: Wanted
    wishes: tuple[Hypothesis, ...]


def rests_on(theory: Theory, found: Property) -> tuple[str, ...]:
    """The laws that a theorem rests on, also by its lemmas, in the order of part 6."""
    waiting, laws, seen = list(found.needs), set(), set()
    while waiting:
        name = waiting.pop()
        need = theory.text.properties.get(name)
        if need is None or name in seen:
            continue
        seen.add(name)
        if need.kind == "law":
            laws.add(name)
        waiting += need.needs
    return tuple(name for name in theory.text.properties if name in laws)


def constraints_of(theory: Theory, found: Property) -> tuple[str, ...]:
    """The constraints that a theorem needs."""
    return tuple(name for name in found.needs if name in theory.text.constraints)


def question(theory: Theory, name: str, dropped: Dropped | None = None, *, refuted: bool) -> Question:
    """The theorem in a real model. dropped: a constraint, law or premise that is left out."""
    found, t = theory.property(name), theory.translation()
    stated = claim(found, constants(found, t), t)
    named = [Hypothesis("constraint", it, t.formula(theory.text.constraints[it].formula, {}))
             for it in constraints_of(theory, found)]  # fmt: skip
    laws = rests_on(theory, found)
    named += [Hypothesis("law", it, general(theory.property(it), t)) for it in laws]
    kept = [it for it in (*named, *stated.premises) if (it.kind, it.label) != dropped]
    if refuted:
        kept.append(Hypothesis("goal", "the goal, denied", Term("not", (stated.goal,))))
    if dropped is None or dropped[0] != "law":
        kept += _fitting(theory, laws, kept, t)
    kept += _least(theory, kept, t)
    known = inhabited(theory, found)
    kept = [replace(it, formula=relative(it.formula, known, t)) for it in kept]
    wishes = tuple(replace(it, formula=relative(it.formula, known, t)) for it in _wishes(found, t))
    inductive = frozenset(name for name, it in theory.text.functions.items() if it.kind == "inductive")
    return Question(Wanted(tuple(kept), t.symbols, tuple(t.texts), inductive), wishes)


def _fitting(theory: Theory, known: Collection[str], kept: list[Hypothesis], t: Translation) -> Iterator[Hypothesis]:
    """The other laws that speak only of what occurs anyway: they keep the model from being odd."""
    occurring = _occurring(kept, t)
    for name, law in theory.text.properties.items():
        if law.kind == "law" and name not in known:
            aside = theory.translation()
            general(law, aside)
            if set(aside.symbols) <= occurring:
                yield Hypothesis("law", name, general(law, t))


def _occurring(kept: list[Hypothesis], t: Translation) -> set[str]:
    return {name for it in kept for name in symbols_in(it.formula) if name in t.symbols}


def _least(theory: Theory, kept: list[Hypothesis], t: Translation) -> list[Hypothesis]:
    """That the inductive predicates which occur are the least ones, those included that their clauses speak of."""
    made: dict[str, Hypothesis] = {}
    while True:
        occurring = _occurring([*kept, *made.values()], t)
        more = [name for name, function in theory.text.functions.items()
                if function.kind == "inductive" and name in occurring and name not in made]  # fmt: skip
        if not more:
            return list(made.values())
        for name in more:
            made[name] = least(theory, name, t)


def least(theory: Theory, predicate: str, t: Translation) -> Hypothesis:
    """That a predicate holds where its clause does, and only where the clause holds by instances of smaller rank."""
    function = theory.text.functions[predicate]
    made = [(t.fresh(parameter.name), base_sort(parameter.sort)) for parameter in function.parameters]
    terms = tuple(name for name, _ in made)
    held, own = _held(theory, predicate, terms, t), _rank(theory, predicate, terms, t)
    hooks = {name: _lower(theory, name, own, t) for name, it in theory.text.functions.items() if it.kind == "inductive"}
    both = [
        implication(clause(theory, predicate, terms, t), held),
        implication(held, clause(theory, predicate, terms, t.hooked(hooks))),
    ]
    return Hypothesis("definition", predicate, forall(made, conjunction(both)))


def _lower(theory: Theory, predicate: str, above: Argument, t: Translation) -> Hook:
    def hook(terms: tuple[Argument, ...]) -> Argument:
        below = Term("<", (_rank(theory, predicate, terms, t), above))
        return conjunction([_held(theory, predicate, terms, t), below])

    return hook


def _held(theory: Theory, predicate: str, terms: tuple[Argument, ...], t: Translation) -> Argument:
    held = application(predicate, theory.text.functions[predicate], terms, t)
    if not isinstance(held, Base):
        raise InternalError(f"{predicate} is no predicate")
    return held.term


def _rank(theory: Theory, predicate: str, terms: tuple[Argument, ...], t: Translation) -> Argument:
    sorts = tuple(base_sort(parameter.sort) for parameter in theory.text.functions[predicate].parameters)
    return Term(t.symbol(f"rank.{predicate}", sorts, "Int"), terms)


def _wishes(found: Property, t: Translation) -> Iterator[Hypothesis]:
    """A memory of the theorem holds the output of a node that reads something; if not, a node has an output."""
    (node, tensor), read = (t.fresh("n"), t.fresh("t")), t.fresh("t")
    outs = t.symbol("outs", ("Node", "Tensor"), "Bool")
    ins = t.symbol("ins", ("Node", "Tensor"), "Bool")
    binders = [(node, "Node"), (tensor, "Tensor"), (read, "Tensor")]
    linked = [Term(outs, (node, tensor)), Term(ins, (node, read)), Term("not", (Term("=", (tensor, read)),))]
    memories = [p.name for p in found.parameters if base_sort(p.sort) == "Memory"]
    if memories:
        dom = t.symbol("dom", ("Memory", "Tensor"), "Bool")
        last = constants(found, t)[memories[-1]]
        if isinstance(last, Base):
            fired = [Term(dom, (last.term, tensor)), Term(dom, (last.term, read))]
            yield Hypothesis("wish", "a node has fired", exists(binders, conjunction([*linked, *fired])))
    yield Hypothesis("wish", "a node reads and writes", exists(binders, conjunction(list(linked))))
