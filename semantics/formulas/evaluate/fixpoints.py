"""The direct interpretation, inductive predicates: least fixpoints by a worklist.

An instance whose body is false waits for the inductive atoms that its evaluation read and found false; it is evaluated
again when one of them becomes true. Nothing recurses over the graph. Instances that were evaluated often wait behind
those that were not, so a node with very many inputs is not looked at after each of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from sonnx.spec.elaborate.formulas import Functions, cores
from sonnx.spec.language.syntax import FunctionDeclaration, Sort

from ...errors import InternalError
from ...facts.structure import Element, Key, SetTable, Structure, Unknown, Value
from .. import reading
from .expressions import Context, Env, Work, bind, compiled

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
        found = self._bodies.get(name)
        if found is None:
            found = self._bodies[name] = self._compiled(name)
        return found

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
    found: dict[Element, None] = {}
    provided = structure.facts()
    for declaration in _universes(sort, functions):
        if declaration.name not in provided:
            continue
        table = structure.table(declaration.name)
        if isinstance(table, SetTable):
            found.update(dict.fromkeys(table.rows.get((), ())))
    if not found and not _universes(sort, functions):
        raise InternalError(f"no fact gives the elements of {sort}")
    return tuple(found)


def _universes(sort: Sort, functions: Mapping[str, FunctionDeclaration]) -> list[FunctionDeclaration]:
    wanted = Sort("set", sort)
    return [f for f in functions.values() if f.kind == "fact" and not f.parameters and f.result == wanted]
