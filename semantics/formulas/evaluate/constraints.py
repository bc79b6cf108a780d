"""The direct interpretation: a constraint judged by evaluating it over the facts of a structure, without a solver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

from sonnx.spec.elaborate.core import Binding, Core
from sonnx.spec.elaborate.formulas import Functions, cores
from sonnx.spec.elaborate.sorts import ANY
from sonnx.spec.language.syntax import Constraint, Expr, Sort

from ...facts.structure import Element, Key, Structure, Unknown, Value
from ...resources.process import paused
from .. import reading
from . import facts, sets, values
from .expressions import Code, Context, Env, Work, bind, compiled
from .fixpoints import Fixpoints, universe
from .sets import Members, outermost

TABLES = (values, facts, sets)
"""The modules whose functions make up the table of the fold, besides those of `expressions`."""
LIMIT = 100
"""How many instances of each kind a judgement holds, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a constraint: the variables of its outermost quantifiers with their values, and, where its truth
    is unknown, why."""

    bindings: tuple[tuple[str, Sort, Element], ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict (holds, violated, unknown) on a constraint, and the instances which it rests on.

    failures, unknowns: the first instances that are false or unknown, in order; failed, undecided: how many there are.
    """

    verdict: str
    failures: tuple[Instance, ...]
    unknowns: tuple[Instance, ...]
    failed: int
    undecided: int


def judge(constraint: Constraint, functions: Functions, structure: Structure, *, limit: int = LIMIT) -> Judgement:
    """The verdict on a constraint, from all instances of its outermost universal quantifiers."""
    with paused():
        return _judged(_chain(cores(functions).constraint(constraint).body, _context(functions, structure)), limit)


def _judged(chain: _Chain, limit: int) -> Judgement:
    failures: list[Instance] = []
    unknowns: list[Instance] = []
    failed = undecided = 0
    env: Env = [False] * chain.size
    for value in _values(chain, env, 0):
        if value is False:
            failed += 1
            if len(failures) < limit:
                failures.append(Instance(chain.bindings(env)))
        elif isinstance(value, Unknown):
            undecided += 1
            if len(unknowns) < limit:
                unknowns.append(Instance(chain.bindings(env), value.reason))
    verdict = "violated" if failed else "unknown" if undecided else "holds"
    return Judgement(verdict, tuple(failures), tuple(unknowns), failed, undecided)


def evaluate(
    expr: Expr,
    environment: Mapping[str, Element],
    functions: Functions,
    structure: Structure,
    sorts: Mapping[str, Sort] = MappingProxyType({}),
) -> Value:
    """The value of an expression whose variables have the values given; a set is a tuple of its members in order.

    sorts: of the variables, as far as they are known.
    """
    found = cores(functions).formula(expr, tuple((name, sorts.get(name, ANY)) for name in environment))
    context = _context(functions, structure)
    for parameter in found.parameters:
        _, context = bind(parameter, context)
    run = compiled(found.body, context).run
    return run([*environment.values(), *[False] * (len(context.work.slots) - len(environment))])


def _context(functions: Functions, structure: Structure) -> Context:
    return reading.Context(cores(functions), Work(structure, _fixpoints(functions, structure).atoms))


def fixpoint(
    name: str, functions: Functions, structure: Structure, keys: Iterable[Key] | None = None
) -> Mapping[Key, int]:
    """The least fixpoint of an inductive predicate: its instances, each with its position in the order of derivation.

    keys: the instances to look at, by default those of all elements that any fact lists.

    Every instance is derived from facts and from instances at lower positions, those of the predicates that it is
    mutually inductive with included. Instances that hold only if an unknown fact does are left out.
    """
    if keys is None:
        domains = [universe(parameter.sort, functions, structure) for parameter in functions[name].parameters]
        keys = domains[0] if len(domains) == 1 else list(product(*domains))
    worklist = _fixpoints(functions, structure).certain
    with paused():
        worklist.ask((name, key) for key in keys)
    return {key: position for (symbol, key), position in worklist.order.items() if symbol == name}


@dataclass(frozen=True, slots=True)
class _Chain:
    """The outermost universal quantifiers of a formula, and what stands below them."""

    loops: tuple[tuple[Binding, int, Members], ...]
    body: Code
    size: int

    def bindings(self, env: Env) -> tuple[tuple[str, Sort, Element], ...]:
        """The current values of the variables."""
        values = [(variable.name, variable.sort or ANY, env[slot]) for variable, slot, _ in self.loops]
        return tuple((name, sort, value) for name, sort, value in values if isinstance(value, (int, str)))


def _chain(formula: Core, context: Context) -> _Chain:
    loops = []
    while formula.head == "forall":
        variable = formula.bound[0].variable
        members, slot, formula, context = outermost(formula, context)
        loops.append((variable, slot, members))
    run = compiled(formula, context).run
    return _Chain(tuple(loops), run, len(context.work.slots))


def _values(chain: _Chain, env: Env, depth: int) -> Iterator[Value]:
    """The value of the body at each instance in turn; variables of unknown domains keep no value."""
    if depth == len(chain.loops):
        yield chain.body(env)
        return
    _, slot, members = chain.loops[depth]
    values = members(env)
    if isinstance(values, Unknown):
        for _, open_slot, _ in chain.loops[depth:]:
            env[open_slot] = values
        yield values
        return
    if depth == len(chain.loops) - 1:
        body = chain.body
        for member in values:
            env[slot] = member
            yield body(env)
        return
    for member in values:
        env[slot] = member
        yield from _values(chain, env, depth + 1)


def _fixpoints(functions: Functions, structure: Structure) -> Fixpoints:
    """The fixpoints over a structure, computed once for it and these functions."""
    found = structure.derived.get("fixpoints")
    if isinstance(found, Fixpoints) and found.certain.functions is functions:
        return found
    made = structure.derived["fixpoints"] = Fixpoints(functions, structure)
    return made
