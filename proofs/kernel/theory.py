"""The theory: what the text says about all graphs, as hypotheses with names. Every hypothesis of a proof is made here.

A constraint is taken from part 2 word by word, a law and a theorem from part 6, a rule of execution from part 3. The
definitions in `OPAQUE` are taken as any function: what is proved then holds whatever they say, as long as they keep the
laws that a theorem needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sonnx.semantics.errors import InternalError
from sonnx.spec.language.printer import print_expression
from sonnx.spec.language.syntax import Expr, Property, Sort
from sonnx.spec.library import Specification

from .formulas import Argument, Base, Signature, Term, Value, conjunction, forall, implication
from .snapshot import taken
from .translation import Env, Translation, application, base_sort, plain

PREDICATES = frozenset({"deterministic", "training"})
"""Definitions of which proofs know nothing."""
DESCRIBED = frozenset({
    "push", "next", "run", "kept", "without", "is_flag", "is_true", "is_number", "number", "branch", "body",
    "positioned",
    "loop_input", "loop_output", "loop_unrun", "scan_runs", "scan_input", "scan_output", "scan_unrun",
    "map_runs", "map_input", "map_output", "map_unrun",
    "offset", "size", "begins", "ends",
})  # fmt: skip
"""Definitions that compute with values, frames and regions, of which laws say what theorems need. Tests hold these laws
against the definitions."""
OPAQUE = PREDICATES | DESCRIBED
"""Definitions whose bodies no proof looks into."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A thing that a proof may use. kind: premise, constraint, law, lemma, induction, definition or case."""

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

    def digest(self) -> str:
        """The words that tell this theory from one of another text, or with other definitions taken as any
        predicate."""
        return taken(self.text, self.opaque).digest

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

    def without(self, kind: str, label: str) -> Obligation:
        """The obligation with one hypothesis dropped."""
        return replace(self, hypotheses=tuple(it for it in self.hypotheses if (it.kind, it.label) != (kind, label)))


def constants(theorem: Property, t: Translation) -> dict[str, Value]:
    """The parameters as constants of which nothing is known."""
    env: dict[str, Value] = {}
    for parameter in theorem.parameters:
        sort = base_sort(parameter.sort)
        if parameter.name in t.functions:
            raise InternalError(f"{theorem.name} has a parameter with the name of the function {parameter.name}")
        env[parameter.name] = Base(constant(parameter.name, sort, t), sort)
    return env


def constant(name: str, sort: str, t: Translation) -> str:
    """The constant for a parameter."""
    return t.symbol(plain(name), (), sort)


def variables(theorem: Property, t: Translation) -> tuple[list[tuple[str, str]], dict[str, Value]]:
    """The parameters as variables to quantify over."""
    made = [(t.fresh(parameter.name), base_sort(parameter.sort)) for parameter in theorem.parameters]
    named = zip(theorem.parameters, made, strict=True)
    return made, {parameter.name: Base(name, sort) for parameter, (name, sort) in named}


def claim(theorem: Property, env: Env, t: Translation, skip: Expr | None = None) -> Claim:
    """The claim of a law or theorem about given values. skip: a premise to leave out."""
    inner = dict(env)
    premises: list[Hypothesis] = []
    for premise in theorem.premises:
        if premise.name is not None:
            if premise.name in inner:
                raise InternalError(f"{theorem.name} binds {premise.name} twice")
            inner[premise.name] = t.value(premise.expr, inner)
        elif premise.expr is not skip:
            label = print_expression(premise.expr)
            premises.append(Hypothesis("premise", label, t.formula(premise.expr, inner)))
    return Claim(tuple(premises), t.formula(theorem.goal, inner))


def general(theorem: Property, t: Translation) -> Argument:
    """A law or theorem for all values of its parameters, without what it needs."""
    bound, env = variables(theorem, t)
    return forall(bound, claim(theorem, env, t).formula())


def closed(theory: Theory, theorem: Property, t: Translation) -> Argument:
    """A theorem as later ones use it: the constraints that it needs imply it for all values of its parameters."""
    needed = [_constraint(theory, name, t) for name in theorem.needs if name in theory.text.constraints]
    return implication(conjunction(needed), general(theorem, t))


def _constraint(theory: Theory, name: str, t: Translation) -> Argument:
    return t.formula(theory.text.constraints[name].formula, {})


# ---- Sorts without elements -------------------------------------------------------------------


def inhabited(theory: Theory, theorem: Property | None = None) -> frozenset[str]:
    """The sorts that have an element, where a theorem or law speaks of given values of its parameters.

    What is read off a model may not be there: the sorts of which facts speak may be empty, those excepted of which a
    fact without arguments gives an element (every model has a main graph), and numbers, truth values and texts. All
    other sorts, memories, values, frames, plans, are there whatever the model is.
    """
    functions = theory.text.functions.values()
    facts = [it for it in functions if it.kind == "fact"]
    read = {_element(sort) for it in facts for sort in (it.result, *(parameter.sort for parameter in it.parameters))}
    given = {_element(it.result) for it in facts if not it.parameters and it.result.element is None}
    given |= {_element(parameter.sort) for parameter in (theorem.parameters if theorem is not None else ())}
    return frozenset({*theory.text.sorts, *("Bool", "Int", "Text")} - read | {"Bool", "Int", "Text"} | given)


def _element(sort: Sort) -> str:
    return sort.name if sort.element is None else _element(sort.element)


def relative(formula: Argument, known: frozenset[str], t: Translation) -> Argument:
    """The formula where sorts other than `known` may be empty; solvers know no empty sorts.

    For such a sort S the constant `some!S` says that it has an element. Without one every universal formula over S
    holds, and no existential one. A function into an empty sort has no value; the solver gives it one, of which every
    relation is false. Inside a quantifier over S there is an element. Where S has an element, a function that is
    undefined somewhere has any value there.
    """
    if not isinstance(formula, Term) or not formula.args:
        return formula
    if formula.op not in ("forall", "exists"):
        inside = Term(formula.op, tuple(relative(it, known, t) for it in formula.args))
        signature = t.symbols.get(formula.op)
        if signature is None or signature.result != "Bool":
            return inside
        return conjunction([*_some(signature.arguments, known, t), inside])
    *binders, body = formula.args
    own = [str(it.args[0]) for it in binders if isinstance(it, Term)]
    inner, some = relative(body, known.union(own), t), _some(own, known, t)
    if formula.op == "exists":
        return Term("exists", (*binders, _all(some, inner)))
    if some and isinstance(inner, Term) and inner.op == "=>":
        return Term("forall", (*binders, implication(_all(some, inner.args[0]), inner.args[1])))
    return Term("forall", (*binders, implication(conjunction([*some]), inner)))


def _all(some: list[Argument], formula: Argument) -> Argument:
    """A conjunction without one inside it."""
    parts = list(formula.args) if isinstance(formula, Term) and formula.op == "and" else [formula]
    return conjunction([*some, *parts])


def _some(sorts: Iterable[str], known: frozenset[str], t: Translation) -> list[Argument]:
    """That these sorts have elements, as far as it is not known."""
    return [t.symbol(f"some!{sort}", (), "Bool") for sort in dict.fromkeys(sorts) if sort not in known]


# ---- What a theorem rests on ------------------------------------------------------------------


def needs(theory: Theory, theorem: Property, t: Translation) -> tuple[Hypothesis, ...]:
    """The constraints, laws and theorems that a theorem rests on. That the theorems are proved is not asked here."""
    made = []
    for name in theorem.needs:
        if name in theory.text.constraints:
            made.append(Hypothesis("constraint", name, _constraint(theory, name, t)))
        elif theory.property(name).kind == "law":
            made.append(Hypothesis("law", name, general(theory.property(name), t)))
        else:
            made.append(Hypothesis("lemma", name, closed(theory, theory.property(name), t)))
    return tuple(made)


def clause(theory: Theory, predicate: str, terms: tuple[Argument, ...], t: Translation) -> Argument:
    """The body of an inductive predicate, or of a definition that stays closed, at given arguments."""
    function = theory.text.functions[predicate]
    closed_here = function.kind == "define" and predicate in t.opaque
    if function.body is None or not (function.kind == "inductive" or closed_here):
        raise InternalError(f"{predicate} is no inductive predicate and no definition that stays closed")
    env: Env = {p.name: Base(term, base_sort(p.sort)) for p, term in zip(function.parameters, terms, strict=True)}
    return t.formula(function.body, env)


def unfolded(theory: Theory, predicate: str, t: Translation) -> Hypothesis:
    """That an inductive predicate implies its clause: what holds is there by one of its alternatives."""
    made, truth, body = _instance(theory, predicate, t)
    return Hypothesis("definition", f"{predicate} implies its clause", forall(made, implication(truth, body)))


def introduced(theory: Theory, predicate: str, t: Translation) -> Hypothesis:
    """That the clause of an inductive predicate implies it: an implication for each alternative, variables in front."""
    made, truth, body = _instance(theory, predicate, t)
    leads = [forall((*made, *own), implication(conjunction(list(parts)), truth)) for own, parts in alternatives(body)]
    return Hypothesis("definition", f"the clause implies {predicate}", conjunction(leads))


def cases(theory: Theory, theorem: Property, predicates: Sequence[str], env: Env, t: Translation) -> list[Hypothesis]:
    """Of each premise that one of these predicates holds, that its clause holds there."""
    made = []
    for premise in theorem.premises:
        call = premise.expr
        if premise.name is None and call.head == "call" and call.args[0] in predicates:
            terms = tuple(t.base(argument, env).term for argument in call.args[1:] if isinstance(argument, Expr))
            label = f"the clause of {print_expression(call)}"
            made.append(Hypothesis("definition", label, clause(theory, str(call.args[0]), terms, t)))
    return made


def _instance(theory: Theory, predicate: str, t: Translation) -> tuple[list[tuple[str, str]], Argument, Argument]:
    """Variables for the parameters of an inductive predicate, that it holds of them, and its clause for them."""
    function = theory.text.functions[predicate]
    made = [(t.fresh(parameter.name), base_sort(parameter.sort)) for parameter in function.parameters]
    terms = tuple(name for name, _ in made)
    truth = application(predicate, function, terms, t)
    if not isinstance(truth, Base):
        raise InternalError(f"{predicate} is no predicate")
    return made, truth.term, clause(theory, predicate, terms, t)


Way = tuple[tuple[tuple[str, str], ...], tuple[Argument, ...]]
"""The variables of which some values are meant, and the conjuncts."""


def alternatives(formula: Argument) -> list[Way]:
    """The alternatives of a formula; it holds where one of them does."""
    match formula:
        case Term(op="or", args=parts):
            return [way for part in parts for way in alternatives(part)]
        case Term(op="exists", args=(*binders, body)):
            own = tuple((b.op, str(b.args[0])) for b in binders if isinstance(b, Term))
            return [((*own, *inner), conjuncts) for inner, conjuncts in alternatives(body)]
        case Term(op="and", args=parts):
            ways: list[Way] = [((), ())]
            for part in parts:
                ways = [((*a, *b), (*some, *more)) for a, some in ways for b, more in alternatives(part)]
            return ways
        case _:
            return [((), (formula,))]
