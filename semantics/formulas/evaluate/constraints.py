"""The direct interpretation: a constraint judged by evaluating it over the facts of a structure, without a solver."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

from sonnx.spec.elaborate.core import Binding, Core
from sonnx.spec.elaborate.formulas import Functions, cores
from sonnx.spec.elaborate.sorts import ANY
from sonnx.spec.language.syntax import Constraint, Expr, FunctionDeclaration, Sort

from ...errors import InternalError
from ...facts.structure import Element, Key, SetTable, Structure, Unknown, Value
from ...resources.process import paused
from .. import reading
from .expressions import Code, Context, Env, Members, Work, bind, compiled, outermost

# ---- Inductive predicates: least fixpoints by a worklist ---------------------------------------
#
# An instance whose body is false waits for the inductive atoms that its evaluation read as false; it is evaluated again
# when one of them becomes true. Nothing recurses over the graph. Instances that were evaluated often wait behind those
# that were not, so a node with very many inputs is not looked at after each of them.

Atom = tuple[str, Key]


class Worklist:
    """The instances of all inductive predicates that were asked for, and those that are derived so far.

    possible: derive an instance also when its body is unknown, which gives the instances that may hold; otherwise
    those that must. Both are least fixpoints.
    """

    def __init__(self, functions: Functions, structure: Structure, *, possible: bool = False) -> None:
        self.functions, self.structure, self.possible = functions, structure, possible
        self.order: dict[Atom, int] = {}
        self.unknown: dict[Atom, Unknown] = {}
        self._evaluated: dict[Atom, int] = {}
        self._waiting: dict[Atom, list[Atom]] = {}
        self._queues: list[deque[Atom]] = [deque() for _ in range(LEVELS)]
        self._derived: dict[str, set[Key]] = {}
        self._queued: set[Atom] = set()
        self._read: list[Atom] = []
        self._bodies: dict[str, Callable[[Key], Value]] = {}

    def ask(self, atoms: Iterable[Atom]) -> None:
        """Explore these instances and all that they depend on, until nothing more can be derived."""
        for atom in atoms:
            if atom not in self._evaluated:
                self._schedule(atom)
        self._saturate()

    def _schedule(self, atom: Atom) -> None:
        if atom in self._queued or atom in self.order:
            return
        self._queued.add(atom)
        self._queues[min(self._evaluated.get(atom, 0), LEVELS - 1)].append(atom)

    def _next(self) -> Atom | None:
        """The first instance of the first queue that is not empty."""
        for queue in self._queues:
            if queue:
                return queue.popleft()
        return None

    def _saturate(self) -> None:
        read, order, evaluated, waiting = self._read, self.order, self._evaluated, self._waiting
        bodies = self._bodies
        while (atom := self._next()) is not None:
            self._queued.discard(atom)
            evaluated[atom] = evaluated.get(atom, 0) + 1
            read.clear()
            name, key = atom
            body = bodies.get(name) or self._body(name)
            value = body(key)
            if value is True or (self.possible and value is not False):
                order[atom] = len(order)
                self._derived.setdefault(name, set()).add(key)
                self.unknown.pop(atom, None)
                for dependent in waiting.pop(atom, ()):
                    self._schedule(dependent)
                continue
            if value is not False and isinstance(value, Unknown):
                self.unknown[atom] = value
            for premise in read if len(read) < 2 else dict.fromkeys(read):
                waiting.setdefault(premise, []).append(atom)
                if premise not in evaluated:
                    self._schedule(premise)

    def _body(self, name: str) -> Callable[[Key], Value]:
        body = self._bodies.get(name)
        if body is None:
            body = self._bodies[name] = self._compiled(name)
        return body

    def _compiled(self, name: str) -> Callable[[Key], Value]:
        if self.functions[name].kind != "inductive":
            raise InternalError(f"{name} is no inductive predicate")
        definition = cores(self.functions).definition(name)
        context: Context = reading.Context(cores(self.functions), Work(self.structure, self._atoms))
        for parameter in definition.parameters:
            _, context = bind(parameter, context)
        run = compiled(definition.body, context).run
        env: Env = [False] * len(context.work.slots)  # `run` alone uses it, one instance at a time
        size = len(definition.parameters)
        if size == 1:

            def single(key: Key) -> Value:
                env[0] = key
                return run(env)

            return single

        def several(key: Key) -> Value:
            env[:size] = key if isinstance(key, tuple) else (key,)
            return run(env)

        return several

    def _atoms(self, name: str) -> Callable[[Key], Value]:
        derived, read = self._derived.setdefault(name, set()), self._read

        def truth(key: Key) -> Value:
            if key in derived:
                return True
            read.append((name, key))
            return False

        return truth


LEVELS = 16
"""Instances evaluated as often as this or more often share the last queue."""


class Fixpoints:
    """The truth of inductive atoms: true when it must hold, false when it cannot, else unknown."""

    def __init__(self, functions: Functions, structure: Structure) -> None:
        self.certain = Worklist(functions, structure)
        self.possible = Worklist(functions, structure, possible=True)

    def atoms(self, name: str) -> Callable[[Key], Value]:
        """The truth of the instances of one predicate; what an instance depends on is explored when it is asked for."""
        certain, possible = self.certain, self.possible
        order = certain.order

        def truth(key: Key) -> Value:
            atom = (name, key)
            if atom in order:
                return True
            certain.ask((atom,))
            if atom in order:
                return True
            if not certain.unknown:
                return False
            possible.ask((atom,))
            if atom not in possible.order:
                return False
            return certain.unknown.get(atom) or next(iter(certain.unknown.values()))

        return truth


def universe(sort: Sort, functions: Functions, structure: Structure) -> tuple[Element, ...]:
    """All elements of a sort: the members of the facts without arguments that are sets of it."""
    elements: dict[Element, None] = {}
    provided = structure.facts()
    for declaration in _universes(sort, functions):
        if declaration.name not in provided:
            continue
        table = structure.table(declaration.name)
        if isinstance(table, SetTable):
            elements.update(dict.fromkeys(table.rows.get((), ())))
    if not elements and not _universes(sort, functions):
        raise InternalError(f"no fact gives the elements of {sort}")
    return tuple(elements)


def _universes(sort: Sort, functions: Mapping[str, FunctionDeclaration]) -> list[FunctionDeclaration]:
    wanted = Sort("set", sort)
    return [f for f in functions.values() if f.kind == "fact" and not f.parameters and f.result == wanted]


# ---- Judgements --------------------------------------------------------------------------------

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
    formula = cores(functions).formula(expr, tuple((name, sorts.get(name, ANY)) for name in environment))
    context = _context(functions, structure)
    for parameter in formula.parameters:
        _, context = bind(parameter, context)
    run = compiled(formula.body, context).run
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
    kept = structure.derived.get("fixpoints")
    if isinstance(kept, Fixpoints) and kept.certain.functions is functions:
        return kept
    made = structure.derived["fixpoints"] = Fixpoints(functions, structure)
    return made
