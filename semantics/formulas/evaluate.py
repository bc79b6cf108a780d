"""The direct interpretation: a constraint judged by evaluating it over the facts of a structure, without a solver.

Expressions are compiled by one table of rules; inductive predicates are least fixpoints. `judge` is the entry.
What was compiled is kept and serves each structure: what it reads of one lies in the environment, beside the variables.
Truth is Kleene's: a connective is unknown only where its unknown parts matter. Every other operation is unknown as
soon as an argument is. The value of a fact at a key without a row is undefined, which is unknown with that reason.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

from sonnx.spec.elaborate.core import TRUE, Binding, Bound, Core, Definition
from sonnx.spec.elaborate.formulas import MANY, Functions, cores
from sonnx.spec.elaborate.sorts import ANY
from sonnx.spec.language.syntax import BOOL, INT, TEXT, Constraint, Expr, FunctionDeclaration, Sort

from ..errors import InternalError
from ..facts.structure import Element, Key, SetTable, Structure, Unknown, Value
from ..resources.process import paused
from . import reading

Env = list[Any]
"""The values of the variables and what is read of the structure, each in its slot."""
Code = Callable[[Env], Value]
Atoms = Callable[[str], Callable[[Key], Value]]
"""The truth of the instances of an inductive symbol."""


class Compiled(NamedTuple):
    """The denotation of an expression, given the values of its variables.

    sure: the value is never unknown. slot: where it lies in the environment, for a variable.
    """

    run: Code
    sure: bool = False
    slot: int | None = None


READS: Mapping[str, Callable[[str, Structure, Atoms], object]] = {
    "structure": lambda _name, structure, _atoms: structure,
    "rows": lambda name, structure, _atoms: structure.table(name).rows.get,
    "table": lambda name, structure, _atoms: structure.table(name),
    "truth": lambda name, _structure, atoms: atoms(name),
}
"""The things that code reads of a structure and of its inductive atoms, by the name of a fact or predicate."""
Read = tuple[str, str]
"""One of them, and the name."""


@dataclass(frozen=True, slots=True)
class Work:
    """The slots given so far, None for those of variables, and the structure at hand. The code serves other structures,
    so it may depend on nothing of this one but kinds: for each fact that it mentions, whether its table is one of sets.
    """

    structure: Structure
    slots: list[Read | None] = field(default_factory=list)
    kinds: dict[str, bool] = field(default_factory=dict)

    def of_sets(self, fact: str) -> bool:
        """Sets are what the table of a fact has."""
        kind = self.kinds[fact] = isinstance(self.structure.table(fact), SetTable)
        return kind

    def read(self, what: str, name: str = "") -> int:
        """The slot in which something of the structure lies."""
        if (what, name) not in self.slots:
            self.slots.append((what, name))
        return self.slots.index((what, name))


Context = reading.Context[Work, Compiled]
DIRECT = reading.Reading[Context, Compiled]("the direct evaluator")
"""The table of the fold, filled in this module and in `values`, `facts` and `sets`."""
rule, compiled = DIRECT.rule, DIRECT.meaning


def bind(variable: Binding, context: Context, *, sure: bool = True) -> tuple[int, Context]:
    """A fresh slot for a variable, and the context in which it is bound."""
    slot = len(context.work.slots)
    context.work.slots.append(None)
    return slot, context.bind(variable, Compiled(operator.itemgetter(slot), sure, slot))


def runs(core: Core, context: Context) -> list[Code]:
    """The denotations of the parts of an expression."""
    return [compiled(part, context).run for part in core.parts]


def constant(value: Value) -> Compiled:
    """A value that depends on nothing."""
    return Compiled(lambda _env: value, not isinstance(value, Unknown))


def strict(parts: list[Code], function: Callable[..., Value]) -> Compiled:
    """A function of two arguments that is unknown where an argument is."""
    first, second = parts

    def code(env: Env) -> Value:
        left = first(env)
        if isinstance(left, Unknown):
            return left
        right = second(env)
        return right if isinstance(right, Unknown) else function(left, right)

    return Compiled(code)


# ---- Leaves and connectives -------------------------------------------------------------------


@rule("literal")
def _literal(core: Core, _context: Context) -> Compiled:
    return constant(core.value)


def negated(run: Code) -> Code:
    """Kleene's `not`."""

    def code(env: Env) -> Value:
        value = run(env)
        return value if isinstance(value, Unknown) else not value

    return code


@rule("not")
def _not(core: Core, context: Context) -> Compiled:
    return Compiled(negated(compiled(core.parts[0], context).run))


def settled(parts: list[Code], settles: bool) -> Code:
    """Kleene's `or` (settled by true) or `and` (settled by false)."""
    if len(parts) == 2:
        first, second = parts

        def pair(env: Env) -> Value:
            left = first(env)
            if left is settles:
                return settles
            right = second(env)
            return left if isinstance(left, Unknown) and right is not settles else right

        return pair

    def code(env: Env) -> Value:
        result: Value = not settles
        for part in parts:
            value = part(env)
            if value is settles:
                return settles
            if isinstance(value, Unknown) and not isinstance(result, Unknown):
                result = value
        return result

    return code


@rule("and", "or")
def _junction(core: Core, context: Context) -> Compiled:
    return Compiled(settled(runs(core, context), core.head == "or"))


@rule("implies")
def _implies(core: Core, context: Context) -> Compiled:
    left, right = runs(core, context)
    return Compiled(settled([negated(left), right], True))


@rule("iff")
def _iff(core: Core, context: Context) -> Compiled:
    return strict(runs(core, context), operator.is_)


@rule("ite")
def _ite(core: Core, context: Context) -> Compiled:
    condition, then, other = runs(core, context)

    def code(env: Env) -> Value:
        value = condition(env)
        if isinstance(value, Unknown):
            return value
        return then(env) if value else other(env)

    return Compiled(code)


@rule("case")
def _case(core: Core, context: Context) -> Compiled:
    subject, *bodies = runs(core, context)
    arms = {label: body for labels, body in zip(core.labels, bodies, strict=True) for label in labels}
    default = bodies[-1] if not core.labels[-1] else None

    def code(env: Env) -> Value:
        value = subject(env)
        if isinstance(value, Unknown):
            return value
        body = arms.get(value, default) if isinstance(value, str) else default
        return body(env) if body else Unknown(f"no case for {value}")

    return Compiled(code)


# ---- Applications: facts are looked up, definitions expanded, inductive atoms asked for --------


class KeyCode(NamedTuple):
    """Code for the key of a table. sure: no part of it is ever unknown. slot: the only part is a variable."""

    run: Callable[[Env], Key | Unknown]
    sure: bool
    slot: int | None = None


def key_of(core: Core, context: Context) -> KeyCode:
    """The key of a table for the arguments of an application."""
    parts = [compiled(argument, context) for argument in core.parts]
    if not parts:
        return KeyCode(lambda _env: (), sure=True)
    if len(parts) == 1:
        return KeyCode(parts[0].run, parts[0].sure, parts[0].slot)

    def code(env: Env) -> Key | Unknown:
        values = tuple(part.run(env) for part in parts)
        return next((value for value in values if isinstance(value, Unknown)), values)  # type: ignore[return-value]

    return KeyCode(code, all(part.sure for part in parts))


@rule("size")
def _size(core: Core, context: Context) -> Compiled:
    run = compiled(core.parts[0], context).run

    def length(env: Env) -> Value:
        value = run(env)
        return len(value) if isinstance(value, tuple) else value

    return Compiled(length)


@rule("fact")
def _fact(core: Core, context: Context) -> Compiled:
    key, work = key_of(core, context), context.work
    if work.of_sets(core.name):
        return Compiled(_row(key, work.read("rows", core.name)), key.sure)
    return Compiled(_value(context.cores.functions[core.name], key, work))


@rule("inductive")
def _inductive(core: Core, context: Context) -> Compiled:
    run, truth = key_of(core, context).run, context.work.read("truth", core.name)

    def code(env: Env) -> Value:
        place = run(env)
        return place if isinstance(place, Unknown) else env[truth](place)

    return Compiled(code)


def _row(key: KeyCode, rows: int) -> Code:
    run, slot = key.run, key.slot
    if key.sure and slot is not None:
        return lambda env: env[rows](env[slot], ())

    def row(env: Env) -> Value:
        place = run(env)
        return place if isinstance(place, Unknown) else env[rows](place, ())

    return row


def _value(declaration: FunctionDeclaration, key: KeyCode, work: Work) -> Code:
    run, rows, structure = key.run, work.read("rows", declaration.name), work.read("structure")

    def value(env: Env) -> Value:
        place = run(env)
        if isinstance(place, Unknown):
            return place
        entry = env[rows](place)
        return _undefined(declaration, place, env[structure]) if entry is None else entry

    return value


def _undefined(declaration: FunctionDeclaration, key: Key, structure: Structure) -> Unknown:
    parts = key if isinstance(key, tuple) else (key,)
    shown = [
        repr(part) if parameter.sort in (BOOL, INT, TEXT) else structure.place(parameter.sort, part)
        for part, parameter in zip(parts, declaration.parameters, strict=True)
    ]
    return Unknown(f"{declaration.name}({', '.join(shown)}) is undefined")


@rule("define")
def _expanded(core: Core, context: Context) -> Compiled:
    """The body of a definition, its parameters bound to the arguments; a variable as argument is not copied."""
    definition = context.cores.definition(core.name)
    inner = context.inside(core.name, {})
    copies: list[tuple[int, Code]] = []
    for parameter, argument in zip(definition.parameters, core.parts, strict=True):
        given = compiled(argument, context)
        if given.slot is not None:
            inner = inner.bind(parameter, given)
        else:
            slot, inner = bind(parameter, inner, sure=given.sure)
            copies.append((slot, given.run))
    body = compiled(definition.body, inner).run
    if not copies:
        return Compiled(body)

    def code(env: Env) -> Value:
        for slot, run in copies:
            env[slot] = run(env)
        return body(env)

    return Compiled(code)


SMALL = 8
"""Rows up to this length are scanned, longer ones are looked up in a hashed set."""

# ---- Arithmetic and comparison ----------------------------------------------------------------


def _floor_division(function: Callable[[int, int], int]) -> Callable[[int, int], Value]:
    return lambda left, right: function(left, right) if right else Unknown("division by zero")


ARITHMETIC: Mapping[str, Callable[[int, int], Value]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _floor_division(operator.floordiv),
    "mod": _floor_division(operator.mod),
}


@rule("arithmetic")
def _arithmetic(core: Core, context: Context) -> Compiled:
    return strict(runs(core, context), ARITHMETIC[core.name])


@rule("neg")
def _neg(core: Core, context: Context) -> Compiled:
    return strict([lambda _env: 0, *runs(core, context)], operator.sub)


ORDER: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@rule("compare")
def _compare(core: Core, context: Context) -> Compiled:
    left, right = core.parts
    match core.name:
        case "in" | "not in":
            contains, element = membership(right, context), compiled(left, context).run

            def contained(env: Env) -> Value:
                value = element(env)
                return value if isinstance(value, Unknown) else contains(env, value)

            result = Compiled(contained)
        case "=" | "!=":
            sets = any(part.sort is not None and part.sort.name == "set" for part in core.parts)
            result = strict(runs(core, context), _equal_sets if sets else _equal)
        case _:
            return strict(runs(core, context), ORDER[core.name])
    return Compiled(negated(result.run)) if core.name in ("!=", "not in") else result


def _equal(left: Value, right: Value) -> Value:
    if isinstance(left, tuple) and isinstance(right, tuple):
        if len(left) != len(right):
            return False
        unknown = next((item for item in (*left, *right) if isinstance(item, Unknown)), None)
        known = [(a, b) for a, b in zip(left, right, strict=True) if not isinstance(a, Unknown)]
        if any(a != b for a, b in known if not isinstance(b, Unknown)):
            return False
        return True if unknown is None else unknown
    return left == right


def _equal_sets(left: tuple[Element, ...], right: tuple[Element, ...]) -> Value:
    return frozenset(left) == frozenset(right)


def membership(domain: Core, context: Context) -> Callable[[Env, Value], Value]:
    """The test of an element for what `domain` denotes."""
    if domain.head == "fact" and context.work.of_sets(domain.name):
        return _in_row(domain, context)
    run = compiled(domain, context).run

    def scanned(env: Env, element: Value) -> Value:
        members = run(env)
        if not isinstance(members, tuple):
            return members
        if element in members:
            return True
        return next((item for item in members if isinstance(item, Unknown)), False)

    return scanned


def _in_row(domain: Core, context: Context) -> Callable[[Env, Value], Value]:
    run, work = key_of(domain, context).run, context.work
    rows, table = work.read("rows", domain.name), work.read("table", domain.name)

    def looked_up(env: Env, element: Value) -> Value:
        place = run(env)
        if isinstance(place, Unknown):
            return place
        row = env[rows](place, ())
        return element in (row if len(row) <= SMALL else env[table].sets[place])

    return looked_up


# ---- Lists ------------------------------------------------------------------------------------


@rule("vector")
def _vector(core: Core, context: Context) -> Compiled:
    parts = runs(core, context)

    def code(env: Env) -> Value:
        values = tuple(part(env) for part in parts)
        unknown = next((value for value in values if isinstance(value, Unknown)), None)
        return values if unknown is None else unknown  # type: ignore[return-value]

    return constant(code([])) if all(part.head == "literal" for part in core.parts) else Compiled(code)


@rule("index")
def _index(core: Core, context: Context) -> Compiled:
    def at(values: tuple[Element, ...], place: int) -> Value:
        return values[place] if 0 <= place < len(values) else Unknown(f"no element {place} in a list of {len(values)}")

    return strict(runs(core, context), at)


# ---- Quantifiers that run through the index of a relation instead of their whole domain --------
#
# `exists n in nodes(g): t in ins(n) and ...` needs only those n whose `ins` hold t, and so does
# `forall n in nodes(g): t in ins(n) implies ...`: for every other member the instance is false (true, for `forall`).


class Index(NamedTuple):
    """The members x with `element in relation(x)`: the inverse of the fact `relation` at `element`."""

    relation: str
    element: Core


def indexed(quantifier: str, variable: Binding, body: Core, scope: Container[Binding | None]) -> Index | None:
    """An index that gives every member of the domain of `variable` which matters to `quantifier`, None without one.

    scope: the variables bound outside of this quantifier. The element is an expression over those.
    """
    while body.head == quantifier != "unique":
        (body,) = body.parts
    if quantifier == "forall":
        body = body.parts[0] if body.head == "implies" else TRUE
    for conjunct in _conjuncts(body):
        match conjunct:
            case Core(head="compare", name="in", parts=(element, Core(head="fact", parts=(argument,)) as row)):
                of_sets = row.sort is not None and row.sort.name == "set"
                outside = all(it.variable in scope for it in element.nodes() if it.head == "variable")
                if of_sets and argument.variable is variable and outside:
                    return Index(row.name, element)
    return None


def _conjuncts(core: Core) -> Iterator[Core]:
    if core.head == "and":
        for part in core.parts:
            yield from _conjuncts(part)
    else:
        yield core


# ---- Finite sets: quantifiers and comprehensions as loops over members -------------------------

Members = Callable[[Env], Iterable[Element] | Unknown]
"""The members of a domain, each once, in order."""


def distinct(domain: Core, context: Context) -> Members:
    """The members of a set, or of a list without its repetitions."""
    whole = compiled(domain, context)
    run, is_set = whole.run, domain.sort is not None and domain.sort.name == "set"
    if whole.sure and is_set:
        return run  # type: ignore[return-value]

    def members(env: Env) -> Iterable[Element] | Unknown:
        value = run(env)
        if isinstance(value, tuple):
            return value if is_set else dict.fromkeys(value)
        if isinstance(value, Unknown):
            return value
        raise InternalError(f"a quantifier ranges over {value!r}")

    return members


def domain(quantifier: str, bound: Bound, body: Core, context: Context) -> Members:
    """The members of a domain that matter, through an index where the body gives one."""
    members = distinct(bound.domain, context)
    index = indexed(quantifier, bound.variable, body, context.scope)
    if index is None or not context.work.of_sets(index.relation):
        return members
    table, at = context.work.read("table", index.relation), compiled(index.element, context).run
    inside = membership(bound.domain, context)

    def looked_up(env: Env) -> Iterable[Element] | Unknown:
        element = at(env)
        if isinstance(element, (Unknown, tuple)):
            return members(env)
        chosen: list[Element] = []
        for key in env[table].inverse.get(element, ()):
            belongs = inside(env, key)
            if isinstance(belongs, Unknown):
                return belongs
            if belongs:
                chosen.append(_single(key))
        return chosen

    return looked_up


def _single(key: Key) -> Element:
    if isinstance(key, tuple):
        raise InternalError("an index is over relations with one argument")
    return key


@rule("forall", "exists")
def _quantified(core: Core, context: Context) -> Compiled:
    members, slot, remaining, inner = outermost(core, context)
    run, settles = compiled(remaining, inner).run, core.head == "exists"

    def code(env: Env) -> Value:
        values = members(env)
        if isinstance(values, Unknown):
            return values
        result: Value = not settles
        for member in values:
            env[slot] = member
            value = run(env)
            if value is settles:
                return settles
            if isinstance(value, Unknown) and not isinstance(result, Unknown):
                result = value
        return result

    return Compiled(code)


def outermost(core: Core, context: Context) -> tuple[Members, int, Core, Context]:
    """The first variable of a quantifier: what it runs through, its slot, and what is left with its context."""
    first, *rest = core.bound
    remaining = replace(core, bound=tuple(rest)) if rest else core.parts[0]
    members = domain(core.head, first, remaining, context)
    slot, inner = bind(first.variable, context)
    return members, slot, remaining, inner


@rule("unique")
def _unique(core: Core, context: Context) -> Compiled:
    """Exactly one assignment of members satisfies the body."""
    (body,) = core.parts
    loops, inner = _loops("unique", core.bound, body, context)
    run = compiled(body, inner).run

    def code(env: Env) -> Value:
        unknown: Unknown | None = None
        witnesses = 0
        for outcome in _each(loops, env):
            value = outcome if isinstance(outcome, Unknown) else run(env)
            if isinstance(value, Unknown):
                unknown = unknown or value
            elif value:
                witnesses += 1
                if witnesses > 1:
                    return False
        return unknown if unknown is not None else witnesses == 1

    return Compiled(code)


Loop = tuple[int, Members]
"""The slot of a variable and the members that it runs through."""


def _loops(quantifier: str, bound: Sequence[Bound], body: Core, context: Context) -> tuple[list[Loop], Context]:
    """Nested loops over variables, and the context inside of them."""
    loops: list[Loop] = []
    for position, item in enumerate(bound):
        last = position == len(bound) - 1
        members = domain(quantifier, item, body if last else TRUE, context)
        slot, context = bind(item.variable, context)
        loops.append((slot, members))
    return loops, context


def _each(loops: list[Loop], env: Env, depth: int = 0) -> Iterator[Unknown | None]:
    """Set the variables to each assignment in turn; an item is Unknown where a domain is."""
    if depth == len(loops):
        yield None
        return
    slot, members = loops[depth]
    values = members(env)
    if isinstance(values, Unknown):
        yield values
        return
    for member in values:
        env[slot] = member
        yield from _each(loops, env, depth + 1)


@rule("set")
def _set(core: Core, context: Context) -> Compiled:
    element, guard = core.parts
    loops, inner = _loops("exists", core.bound, guard, context)
    test, image = compiled(guard, inner).run, compiled(element, inner).run

    def code(env: Env) -> Value:
        members: dict[Element, None] = {}
        for outcome in _each(loops, env):
            kept = outcome if isinstance(outcome, Unknown) else test(env)
            value = image(env) if kept is True else kept
            if isinstance(value, (Unknown, tuple)):
                return value
            if kept:
                members[value] = None
        return tuple(members)

    return Compiled(code)


@rule("list")
def _list(core: Core, context: Context) -> Compiled:
    (bound,) = core.bound
    limit = compiled(bound.domain, context).run
    slot, inner = bind(bound.variable, context)
    image, test = (compiled(part, inner).run for part in core.parts)

    def code(env: Env) -> Value:
        end = limit(env)
        if not isinstance(end, int):
            return end
        out: list[Value] = []
        for position in range(end):
            env[slot] = position
            kept = test(env)
            value = image(env) if kept is True else kept
            if isinstance(value, Unknown):
                return value
            if kept:
                out.append(value)
        return tuple(out)  # type: ignore[arg-type]

    return Compiled(code)


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
        formula = _formula(definition, self.functions, self.structure)
        run, env = formula.body, formula.env(self.structure, self._atoms)  # the one uses the other, an instance a time
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
"""The most instances of each kind in a judgement, unless told otherwise."""


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
        formula = _formula(cores(functions).constraint(constraint), functions, structure, instances=True)
        return _judged(formula, formula.env(structure, _fixpoints(functions, structure).atoms), limit)


def _judged(formula: _Formula, env: Env, limit: int) -> Judgement:
    failures: list[Instance] = []
    unknowns: list[Instance] = []
    failed = undecided = 0
    for value in _values(formula, env, 0):
        if value is False:
            failed += 1
            if len(failures) < limit:
                failures.append(Instance(formula.bindings(env)))
        elif isinstance(value, Unknown):
            undecided += 1
            if len(unknowns) < limit:
                unknowns.append(Instance(formula.bindings(env), value.reason))
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
    over = tuple((name, sorts.get(name, ANY)) for name in environment)
    formula = _formula(cores(functions).formula(expr, over), functions, structure)
    env = formula.env(structure, _fixpoints(functions, structure).atoms)
    env[: len(environment)] = environment.values()
    return formula.body(env)


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
class _Formula:
    """A compiled formula: the outermost universal quantifiers that make its instances, and what stands below them.

    slots, kinds: as in `Work`. Parameters have the first slots.
    """

    loops: tuple[tuple[Binding, int, Members], ...]
    body: Code
    slots: tuple[Read | None, ...]
    kinds: Mapping[str, bool]

    def fits(self, structure: Structure) -> bool:
        """The code is one for this structure, too."""
        return all(isinstance(structure.table(fact), SetTable) is kind for fact, kind in self.kinds.items())

    def env(self, structure: Structure, atoms: Atoms) -> Env:
        """An environment over a structure, the variables not set."""
        return [False if read is None else READS[read[0]](read[1], structure, atoms) for read in self.slots]

    def bindings(self, env: Env) -> tuple[tuple[str, Sort, Element], ...]:
        """The current values of the variables."""
        values = [(variable.name, variable.sort or ANY, env[slot]) for variable, slot, _ in self.loops]
        return tuple((name, sort, value) for name, sort, value in values if isinstance(value, (int, str)))


def _formula(
    definition: Definition, functions: Functions, structure: Structure, *, instances: bool = False
) -> _Formula:
    """A definition of these functions, compiled for this structure and those with tables of the same kinds.

    instances: with loops over the outermost universal quantifiers. It is kept with the cores of the functions, which
    give the definitions in it their meanings.
    """
    text = cores(functions)
    key = "direct", definition, instances
    known = text.derived.get(key)
    if isinstance(known, _Formula) and known.fits(structure):
        return known
    context: Context = reading.Context(text, Work(structure))
    for parameter in definition.parameters:
        _, context = bind(parameter, context)
    body, loops = definition.body, []
    while instances and body.head == "forall":
        variable = body.bound[0].variable
        members, slot, body, context = outermost(body, context)
        loops.append((variable, slot, members))
    run, work = compiled(body, context).run, context.work
    if len(text.derived) >= MANY:
        text.derived.clear()
    made = text.derived[key] = _Formula(tuple(loops), run, tuple(work.slots), work.kinds)
    return made


def _values(formula: _Formula, env: Env, depth: int) -> Iterator[Value]:
    """The value of the body at each instance in turn; variables of unknown domains keep no value."""
    if depth == len(formula.loops):
        yield formula.body(env)
        return
    _, slot, members = formula.loops[depth]
    values = members(env)
    if isinstance(values, Unknown):
        for _, open_slot, _ in formula.loops[depth:]:
            env[open_slot] = values
        yield values
        return
    if depth == len(formula.loops) - 1:
        body = formula.body
        for member in values:
            env[slot] = member
            yield body(env)
        return
    for member in values:
        env[slot] = member
        yield from _values(formula, env, depth + 1)


def _fixpoints(functions: Functions, structure: Structure) -> Fixpoints:
    """The fixpoints over a structure, computed once for it and these functions."""
    kept = structure.derived.get("fixpoints")
    if isinstance(kept, Fixpoints) and kept.certain.functions is functions:
        return kept
    made = structure.derived["fixpoints"] = Fixpoints(functions, structure)
    return made
