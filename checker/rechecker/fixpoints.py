"""Least fixpoints: what the inductive predicates of the text say of a model.

An instance whose body is false waits for the instance that made it false; it is looked at again when that one is
derived. Nothing recurses over the graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from sonnx.semantics.errors import Unsupported

from .formulas import Atom, Code, Context, Env, compiled
from .text import Text
from .values import UNKNOWN, Key, Tables, Value, number

Instance = tuple[str, Key]


class _Derivation:
    """The derivations so far. lenient: an instance is derived also where its body is unknown: what may hold."""

    def __init__(self, text: Text, tables: Tables, *, lenient: bool) -> None:
        self.text, self.tables, self.lenient = text, tables, lenient
        self.derived: dict[str, set[Key]] = {}
        self.doubtful = False
        self._seen: set[Instance] = set()
        self._waiting: dict[Instance, list[Instance]] = {}
        self._fresh: deque[Instance] = deque()
        self._again: deque[Instance] = deque()
        self._missed: list[Instance] = []
        self._bodies: dict[str, tuple[Code, Env, int]] = {}

    def explore(self, wanted: Iterable[Instance]) -> None:
        """Derive whatever can be derived of these instances and of all that they come to."""
        self._add(wanted)
        while self._fresh or self._again:
            name, key = instance = (self._fresh or self._again).popleft()
            self._missed.clear()
            value = self._value(name, key)
            self.doubtful = self.doubtful or value is UNKNOWN
            if value is True or (self.lenient and value is UNKNOWN):
                self.derived.setdefault(name, set()).add(key)
                self._again.extend(self._waiting.pop(instance, ()))
                continue
            for premise in dict.fromkeys(self._missed):
                self._waiting.setdefault(premise, []).append(instance)
            self._add(list(self._missed))

    def _add(self, wanted: Iterable[Instance]) -> None:
        for instance in wanted:
            if instance not in self._seen:
                self._seen.add(instance)
                self._fresh.append(instance)

    def _value(self, name: str, key: Key) -> Value:
        if key in self.derived.get(name, ()):
            return False  # derived already, by way of another premise
        if name not in self._bodies:
            self._bodies[name] = body(name, self.text, self.tables, self._atoms)
        run, env, count = self._bodies[name]
        env[:count] = key if isinstance(key, tuple) and count != 1 else (key,)
        return run(env)

    def _atoms(self, name: str) -> Atom:
        derived = self.derived.setdefault(name, set())

        def truth(key: Key) -> Value:
            if key in derived:
                return True
            self._missed.append((name, key))
            return False

        return truth


class Fixpoints:
    """The truth of the inductive predicates: true where they must hold, false where they cannot, else unknown."""

    def __init__(self, text: Text, tables: Tables) -> None:
        self._certain = _Derivation(text, tables, lenient=False)
        self._possible = _Derivation(text, tables, lenient=True)

    def atoms(self, name: str) -> Atom:
        """The truth of one predicate."""
        derived = self._certain.derived.setdefault(name, set())

        def truth(key: Key) -> Value:
            if key not in derived:
                self._certain.explore([(name, key)])
            if key in derived:
                return True
            if not self._certain.doubtful:
                return False
            self._possible.explore([(name, key)])
            return UNKNOWN if key in self._possible.derived.get(name, ()) else False

        return truth


def body(name: str, text: Text, tables: Tables, atoms: object) -> tuple[Code, Env, int]:
    """The body of an inductive predicate, an environment for it, and the number of its parameters."""
    declared = text.declaration(name)
    if declared is None or declared.kind != "inductive" or not callable(atoms):
        raise Unsupported(f"{name} is no inductive predicate of the text")
    context = Context(text, tables, atoms)
    for parameter, sort in declared.parameters:
        _, context = context.bound(parameter, sort)
    code = compiled(declared.body, context)
    return code, [False] * len(context.slots), len(declared.parameters)


def follows(name: str, order: list[int], text: Text, tables: Tables, every: Iterable[int]) -> bool:
    """True where `order` is the one order in which a predicate over nodes is derived, always the least that can be
    next.

    The other inductive predicates on the way are expanded. Each node holds given those before it; none that is left
    out holds in the end; and where a greater node stands before a node, this one does not hold yet when the last such
    node is chosen. So the order is the least one, and what it lists is the least fixpoint.
    """
    place = {n: position for position, n in enumerate(order)}
    if len(place) != len(order):
        return False
    end = 0

    def truth(key: Key) -> Value:
        position = place.get(number(key))
        return position is not None and position < end

    run, env, count = body(name, text, tables, lambda called: truth if called == name else None)
    if count != 1:
        raise Unsupported(f"{name} has several parameters")

    def holds(n: int) -> bool:
        env[0] = n
        return run(env) is True

    greater: list[int] = []
    for position, n in enumerate(order):
        end = position
        if not holds(n):
            return False
        while greater and order[greater[-1]] < n:
            greater.pop()
        if greater:
            end = greater[-1]
            if holds(n):
                return False
        greater.append(position)
    end = len(order)
    return set(order) <= set(every) and not any(holds(n) for n in every if n not in place)
