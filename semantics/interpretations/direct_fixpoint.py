"""The direct interpretation, inductive predicates: least fixpoints by a worklist.

An instance whose body is false waits for the inductive atoms that its evaluation read and found false; it is evaluated
again when one of them becomes true. Nothing recurses over the graph. Instances that were evaluated often wait behind
those that were not, so a node with very many inputs is not looked at after each of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from sonnx.semantics.errors import InternalError
from sonnx.semantics.structure import Element, Key, SetTable, Structure, Unknown, Value
from sonnx.spec.syntax import FunctionDeclaration, Sort

from .direct_expr import Context, Env, Functions, compiled

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
        self._queues: list[deque[Atom]] = [deque()]
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
        level = min(self._evaluated.get(atom, 0), LEVELS - 1)
        while len(self._queues) <= level:
            self._queues.append(deque())
        self._queues[level].append(atom)

    def _saturate(self) -> None:
        queues, read = self._queues, self._read
        while (queue := next((q for q in queues if q), None)) is not None:
            atom = queue.popleft()
            self._queued.discard(atom)
            self._evaluated[atom] = self._evaluated.get(atom, 0) + 1
            read.clear()
            value = self._body(atom[0])(atom[1])
            if value is True or (self.possible and value is not False):
                self.order[atom] = len(self.order)
                self.unknown.pop(atom, None)
                for waiting in self._waiting.pop(atom, ()):
                    self._schedule(waiting)
                continue
            if isinstance(value, Unknown):
                self.unknown[atom] = value
            for premise in dict.fromkeys(read):
                self._waiting.setdefault(premise, []).append(atom)
                if premise not in self._evaluated:
                    self._schedule(premise)

    def _body(self, name: str) -> Callable[[Key], Value]:
        found = self._bodies.get(name)
        if found is None:
            found = self._bodies[name] = self._compiled(name)
        return found

    def _compiled(self, name: str) -> Callable[[Key], Value]:
        declaration = self.functions[name]
        if declaration.kind != "inductive" or declaration.body is None:
            raise InternalError(f"{name} is no inductive predicate")
        slots: list[Sort] = []
        context = Context(self.functions, self.structure, self._atoms, slots, {})
        for parameter in declaration.parameters:
            _, context = context.bind(parameter.name, parameter.sort)
        run = compiled(declaration.body, context).run
        env: Env = [False] * len(slots)
        if len(declaration.parameters) == 1:

            def single(key: Key) -> Value:
                env[0] = key
                return run(env)

            return single

        def several(key: Key) -> Value:
            env[: len(declaration.parameters)] = key if isinstance(key, tuple) else (key,)
            return run(env)

        return several

    def _atoms(self, name: str) -> Callable[[Key], Value]:
        order, read = self.order, self._read

        def truth(key: Key) -> Value:
            atom = (name, key)
            if atom in order:
                return True
            read.append(atom)
            return False

        return truth


LEVELS = 64
"""Instances evaluated as often as this or more often share the last queue."""


class Fixpoints:
    """The truth of inductive atoms: true when it must hold, false when it cannot, else unknown."""

    def __init__(self, functions: Functions, structure: Structure) -> None:
        self.certain = Worklist(functions, structure)
        self.possible = Worklist(functions, structure, possible=True)

    def atoms(self, name: str) -> Callable[[Key], Value]:
        """The truth of the instances of one predicate; what an instance depends on is explored when it is asked for."""
        certain, possible = self.certain, self.possible

        def truth(key: Key) -> Value:
            atom = (name, key)
            if atom not in certain.order:
                certain.ask((atom,))
            if atom in certain.order:
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
    for declaration in _universes(sort, functions):
        table = structure.table(declaration.name)
        if isinstance(table, SetTable):
            found.update(dict.fromkeys(table.rows.get((), ())))
    if not found and not _universes(sort, functions):
        raise InternalError(f"no fact gives the elements of {sort}")
    return tuple(found)


def _universes(sort: Sort, functions: Mapping[str, FunctionDeclaration]) -> list[FunctionDeclaration]:
    wanted = Sort("set", sort)
    return [f for f in functions.values() if f.kind == "fact" and not f.parameters and f.result == wanted]
