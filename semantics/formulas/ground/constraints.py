"""The interpretation as ground terms: a constraint over one structure as ground, quantifier-free terms.

Closed world: a quantifier runs over the members that the facts list, a fact that does not list a member denies it.
What the model does not determine (an unknown or undefined value) is a free symbol. Inductive predicates become Horn
clauses, one for each instance that the formula can reach: facts, clauses and the negated formula have no model exactly
if the formula follows for the least fixpoint, since inductive atoms occur only positively.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace

from sonnx.spec.elaborate.core import Definition
from sonnx.spec.elaborate.formulas import Cores, Functions, cores
from sonnx.spec.language.syntax import Constraint, FunctionDeclaration

from ...facts.structure import Element, Key, Structure
from ...resources.process import paused
from .. import reading
from ..terms import FALSE, TRUE, Argument, Term, conjunction
from .expressions import Context, Env, Observation, Symbols, Work, bind, truth


@dataclass(frozen=True, slots=True)
class Query:
    """A constraint over one structure.

    facts: by fact, the symbols with what is known of them: truth, number, or the members of the row they stand for.
    assumed: the facts of which Bools or rows are mentioned, each with the symbol that assumes it. free: the symbols of
    which nothing is known, with their sorts; immaterial: those that do not matter once the facts are assumed. clauses:
    head and body for each inductive atom. texts: the number of each text. signatures: for each fact and predicate the
    sorts of its arguments and of its value. resolved: facts that were looked up for keys and lists.
    """

    name: str
    doc: str
    facts: Mapping[str, Mapping[str, Observation]]
    assumed: Mapping[str, str]
    free: Mapping[str, str]
    immaterial: Mapping[str, str]
    clauses: tuple[tuple[str, Argument], ...]
    formula: Argument
    texts: Mapping[str, int]
    signatures: Mapping[str, tuple[str, ...]]
    resolved: tuple[str, ...]

    def undefined(self) -> Mapping[str, str]:
        """Every symbol that no fact defines, with its sort."""
        derived = dict.fromkeys((head for head, _ in self.clauses), "Bool")
        return {**dict.fromkeys(self.assumed.values(), "Bool"), **derived, **self.free, **self.immaterial}

    def fixed(self) -> frozenset[str]:
        """The facts that the query takes for granted: their numbers are defined, or they were looked up for keys."""
        numbers = {fact for fact, group in self.facts.items() if any(type(value) is int for value in group.values())}
        return frozenset({*numbers, *self.resolved})


def query(constraint: Constraint, functions: Functions, structure: Structure) -> Query:
    """Ground a constraint. Raises InternalError for an inductive predicate below a negation."""
    with paused():
        return _query(constraint, functions, structure)


def _query(constraint: Constraint, functions: Functions, structure: Structure) -> Query:
    symbols = Symbols()
    text = cores(functions)
    formula = _ground(text.constraint(constraint), text, structure, symbols)([])
    clauses: list[tuple[str, Argument]] = []
    bodies: dict[str, Callable[[list[Element]], Argument]] = {}
    while symbols.agenda:
        predicate, key, name = symbols.agenda.pop()
        body = bodies.get(predicate)
        if body is None:
            body = bodies[predicate] = _ground(text.definition(predicate), text, structure, symbols)
        clauses.append((name, body(_arguments(key))))
    conjuncts = formula.args if isinstance(formula, Term) and formula.op == "and" else (formula,)
    formula = conjunction([*symbols.tables.values(), *conjuncts])
    used = {*symbols.assumed, *(name for name, group in symbols.facts.items() if group), *bodies}
    return Query(
        name=constraint.name,
        doc=constraint.doc,
        facts={name: symbols.facts[name] for name in sorted(symbols.facts) if symbols.facts[name]},
        assumed={name: symbols.assumed[name] for name in sorted(symbols.assumed)},
        free=symbols.free,
        immaterial=symbols.immaterial,
        clauses=tuple(clauses),
        formula=formula,
        texts=symbols.texts,
        signatures={name: _signature(functions[name]) for name in sorted(used)},
        resolved=tuple(sorted(symbols.resolved)),
    )


def _arguments(key: Key) -> list[Element]:
    return list(key) if isinstance(key, tuple) else [key]


def _signature(declaration: FunctionDeclaration) -> tuple[str, ...]:
    return (*(str(parameter.sort) for parameter in declaration.parameters), str(declaration.result))


def _ground(
    definition: Definition, text: Cores, structure: Structure, symbols: Symbols
) -> Callable[[list[Element]], Argument]:
    """The ground instances of a formula; one with parameters is the body of an inductive predicate."""
    context: Context = reading.Context(text, Work(structure, symbols, clause=bool(definition.parameters)))
    for parameter in definition.parameters:
        _, context = bind(parameter, context)
    term = truth(definition.body, context)
    env: Env = [0] * len(context.work.slots)

    def instance(values: list[Element]) -> Argument:
        env[: len(values)] = values
        return term(env)

    return instance


# ---- Unknown facts below inductive predicates -------------------------------------------------


def optimistic(query: Query) -> Query:
    """The same query with every occurrence of a free symbol read in favour of the formula and of the clauses.

    An atom with a free symbol becomes true where it stands positively and false where it stands negatively. The
    clauses then derive every instance that some values of the unknown facts would, so if facts, clauses and negated
    formula still have a model, the formula is false whatever the unknown facts are.
    """
    free = frozenset(query.free)
    return replace(
        query,
        free={},
        clauses=tuple((head, _favoured(body, free, positive=True)) for head, body in query.clauses),
        formula=_favoured(query.formula, free, positive=True),
    )


CONNECTIVES = frozenset({"and", "or", "not", "=>"})


def _favoured(term: Argument, free: Container[str], *, positive: bool) -> Argument:
    if isinstance(term, Term) and term.op in CONNECTIVES:
        flips = {"not": (True,), "=>": (True, False)}.get(term.op, (False,) * len(term.args))
        parts = (_favoured(p, free, positive=positive != flip) for p, flip in zip(term.args, flips, strict=True))
        return Term(term.op, tuple(parts))
    if isinstance(term, Term) and term.op == "ite" and not mentions(term.args[0], free):
        condition, *arms = term.args
        return Term("ite", (condition, *(_favoured(arm, free, positive=positive) for arm in arms)))
    if not mentions(term, free):
        return term
    return TRUE if positive else FALSE


def mentions(term: Argument, names: Container[str]) -> bool:
    """True where one of the symbols occurs in a term."""
    if isinstance(term, str):
        return term in names
    return isinstance(term, Term) and any(mentions(part, names) for part in term.args)
