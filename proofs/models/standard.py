"""The hypotheses of a theorem in a real model: laws, constraints, and inductive predicates that are really the least.

A countermodel of an obligation may read an inductive predicate as more than the least one; one of a theorem here does
not. Each instance of the predicate has a rank, and is derived from instances with smaller ranks only. In a finite
model that is what least means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.terms import equivalence
from sonnx.spec.elaborate.declarations import calls
from sonnx.spec.language.syntax import BOOL, FunctionDeclaration, Property

from ..kernel.formulas import Argument, Base, Term, conjunction, exists, forall, implication
from ..kernel.smtlib import symbols_in
from ..kernel.theory import Hypothesis, Theory, claim, clause, constants, general, inhabited, relative
from ..kernel.translation import Hook, Translation, application, base_sort
from .search import Wanted

Dropped = tuple[str, str]
"""The kind and the label of a hypothesis that is left out."""


def rests_on(theory: Theory, theorem: Property) -> tuple[str, ...]:
    """The laws that a theorem rests on, also by its lemmas, in the order of part 6."""
    waiting, laws, seen = list(theorem.needs), set(), set()
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


def constraints_of(theory: Theory, theorem: Property) -> tuple[str, ...]:
    """The constraints that a theorem needs."""
    return tuple(name for name in theorem.needs if name in theory.text.constraints)


def question(theory: Theory, name: str, dropped: Dropped | None = None, *, refuted: bool) -> Wanted:
    """A theorem's hypotheses in a real model. dropped: a constraint, law or premise that is left out; refuted: and its
    goal denied. Without that, with wishes: what makes a model interesting.

    Each definition is a symbol of its own, equal to its body: many uses of it take less room then.
    """
    theorem, t = theory.property(name), theory.translation(_of(theory).shared)
    stated = claim(theorem, constants(theorem, t), t)
    named = [Hypothesis("constraint", it, t.formula(theory.text.constraints[it].formula, {}))
             for it in constraints_of(theory, theorem)]  # fmt: skip
    laws = rests_on(theory, theorem)
    named += [Hypothesis("law", it, general(theory.property(it), t)) for it in laws]
    kept = [it for it in (*named, *stated.premises) if (it.kind, it.label) != dropped]
    if refuted:
        kept.append(Hypothesis("goal", "the goal, denied", Term("not", (stated.goal,))))
    if dropped is None or dropped[0] != "law":
        kept += _fitting(theory, laws, kept, t)
    kept += _defined(theory, kept, t)
    known = inhabited(theory, theorem)
    kept = [replace(it, formula=relative(it.formula, known, t)) for it in kept]
    wishes = () if refuted else _wishes(theorem, t)
    wished = tuple(replace(it, formula=relative(it.formula, known, t)) for it in wishes)
    return replace(_wanted(theory, kept, t), wishes=wished)


def _fitting(theory: Theory, known: Collection[str], kept: list[Hypothesis], t: Translation) -> Iterator[Hypothesis]:
    """The other laws that speak only of what occurs anyway: they keep the model from being odd."""
    occurring = _occurring(kept, t)
    for name, symbols in _of(theory).laws.items():
        if name not in known and symbols <= occurring:
            yield Hypothesis("law", name, general(theory.property(name), t))


def _occurring(kept: list[Hypothesis], t: Translation) -> set[str]:
    return {name for it in kept for name in symbols_in(it.formula) if name in t.symbols}


def situation(theory: Theory, name: str, laws: Collection[str]) -> Wanted:
    """A model of a situation: these laws hold, the constraints that it names, and its premises of some values."""
    theorem, t = theory.property(name), theory.translation(_of(theory).shared)
    stated = claim(theorem, constants(theorem, t), t)
    kept = [Hypothesis("constraint", it, t.formula(theory.text.constraints[it].formula, {})) for it in theorem.needs]
    kept += [Hypothesis("law", it, general(theory.property(it), t)) for it in laws]
    kept += stated.premises
    kept += _defined(theory, kept, t)
    known = inhabited(theory, theorem)
    return _wanted(theory, [replace(it, formula=relative(it.formula, known, t)) for it in kept], t)


def _wanted(theory: Theory, kept: list[Hypothesis], t: Translation) -> Wanted:
    known = _of(theory)
    return Wanted(tuple(kept), t.symbols, tuple(t.texts), known.inductive, known.shared - theory.opaque)


@dataclass(frozen=True, slots=True)
class _Known:
    """The parts that are read off a theory. shared: the definitions over elements; those over sets have no symbols.
    speaking: the definitions that speak of inductive predicates, through other definitions too. laws: what each law
    speaks of.
    """

    theory: Theory
    inductive: frozenset[str]
    shared: frozenset[str]
    speaking: frozenset[str]
    laws: Mapping[str, frozenset[str]]


_last: list[_Known] = []
"""That of the theory which was asked for last."""


def _of(theory: Theory) -> _Known:
    if not _last or _last[0].theory is not theory:
        inductive = frozenset(name for name, it in theory.text.functions.items() if it.kind == "inductive")
        shared, laws = _shared(theory), {}
        for name, law in theory.text.properties.items():
            if law.kind == "law":
                t = theory.translation(shared)
                general(law, t)
                laws[name] = frozenset(t.symbols)
        _last[:] = [_Known(theory, inductive, shared, _speaking(theory, inductive), laws)]
    return _last[0]


def _shared(theory: Theory) -> frozenset[str]:
    made = set()
    for name, it in theory.text.functions.items():
        sorts = (it.result, *(parameter.sort for parameter in it.parameters))
        if it.kind == "define" and it.parameters and all(sort.element is None for sort in sorts):
            made.add(name)
    return frozenset(made)


def _speaking(theory: Theory, inductive: frozenset[str]) -> frozenset[str]:
    named = {name: set(calls(it.body)) for name, it in theory.text.functions.items() if it.body is not None}
    speaking = set(inductive)
    while more := {name for name, called in named.items() if name not in speaking and called & speaking}:
        speaking |= more
    return frozenset(speaking)


def _defined(theory: Theory, kept: list[Hypothesis], t: Translation) -> list[Hypothesis]:
    """The meaning of the symbols of definitions, and that the inductive predicates are the least ones: of those that
    occur, and of those that these speak of."""
    made: dict[str, Hypothesis] = {}
    speaking = _of(theory).speaking
    while True:
        occurring = _occurring([*kept, *made.values()], t)
        more = [it for it in theory.text.functions.values() if it.name in occurring and it.name not in made
                and (it.kind == "inductive" or (it.name in t.opaque and it.name not in theory.opaque))]  # fmt: skip
        if not more:
            return list(made.values())
        for it in more:
            made[it.name] = least(theory, it.name, t, speaking) if it.kind == "inductive" else _meant(theory, it, t)


def _meant(theory: Theory, function: FunctionDeclaration, t: Translation) -> Hypothesis:
    """That the symbol of a definition is what its body says."""
    made = [(t.fresh(parameter.name), base_sort(parameter.sort)) for parameter in function.parameters]
    terms = tuple(name for name, _ in made)
    is_so = equivalence if function.result == BOOL else _equal
    body = clause(theory, function.name, terms, t)
    truth = _held(theory, function.name, terms, t)
    return Hypothesis("definition", function.name, forall(made, is_so(truth, body)))


def _equal(left: Argument, right: Argument) -> Argument:
    return Term("=", (left, right))


def least(theory: Theory, predicate: str, t: Translation, speaking: Collection[str]) -> Hypothesis:
    """That a predicate holds where its clause does, and only where the clause holds by instances of smaller rank.

    speaking: the definitions that speak of inductive predicates; where ranks are compared they are looked into.
    """
    function = theory.text.functions[predicate]
    made = [(t.fresh(parameter.name), base_sort(parameter.sort)) for parameter in function.parameters]
    terms = tuple(name for name, _ in made)
    truth, own = _held(theory, predicate, terms, t), _rank(theory, predicate, terms, t)
    hooks = {name: _lower(theory, name, own, t) for name, it in theory.text.functions.items() if it.kind == "inductive"}
    both = [
        implication(clause(theory, predicate, terms, t), truth),
        implication(truth, clause(theory, predicate, terms, t.hooked(hooks, t.opaque.difference(speaking)))),
    ]
    return Hypothesis("definition", predicate, forall(made, conjunction(both)))


def _lower(theory: Theory, predicate: str, above: Argument, t: Translation) -> Hook:
    def hook(terms: tuple[Argument, ...]) -> Argument:
        below = Term("<", (_rank(theory, predicate, terms, t), above))
        return conjunction([_held(theory, predicate, terms, t), below])

    return hook


def _held(theory: Theory, predicate: str, terms: tuple[Argument, ...], t: Translation) -> Argument:
    truth = application(predicate, theory.text.functions[predicate], terms, t)
    if not isinstance(truth, Base):
        raise InternalError(f"{predicate} has no value that is an element")
    return truth.term


def _rank(theory: Theory, predicate: str, terms: tuple[Argument, ...], t: Translation) -> Argument:
    sorts = tuple(base_sort(parameter.sort) for parameter in theory.text.functions[predicate].parameters)
    return Term(t.symbol(f"rank!{predicate}", sorts, "Int"), terms)


def _wishes(theorem: Property, t: Translation) -> Iterator[Hypothesis]:
    """A memory of the theorem holds the output of a node that reads something; if not, a node has an output."""
    (node, tensor), read = (t.fresh("n"), t.fresh("t")), t.fresh("t")
    outs = t.symbol("outs", ("Node", "Tensor"), "Bool")
    ins = t.symbol("ins", ("Node", "Tensor"), "Bool")
    binders = [(node, "Node"), (tensor, "Tensor"), (read, "Tensor")]
    linked = [Term(outs, (node, tensor)), Term(ins, (node, read)), Term("not", (Term("=", (tensor, read)),))]
    memories = [p.name for p in theorem.parameters if base_sort(p.sort) == "Memory"]
    if memories:
        dom = t.symbol("dom", ("Memory", "Tensor"), "Bool")
        last = constants(theorem, t)[memories[-1]]
        if isinstance(last, Base):
            fired = [Term(dom, (last.term, tensor)), Term(dom, (last.term, read))]
            yield Hypothesis("wish", "a node has fired", exists(binders, conjunction([*linked, *fired])))
    yield Hypothesis("wish", "a node reads and writes", exists(binders, conjunction(list(linked))))
