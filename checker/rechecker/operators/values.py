"""The values that the text of an operator speaks of, as far as they are known before a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from .formulas import Formula, Int, Poly, Symbol, conjuncts, either, opposite, poly, spelled
from .proving import deep_keys, entails
from .text import Library, Node

STEPS = 300_000
"""So many steps may be spent on one node."""


class Open(Exception):  # noqa: N818
    """The answer is not derived here. data: since data decide it, not for want of a rule."""

    def __init__(self, reason: str, data: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.data = data


class Split(Open):
    """The answer is one thing where the condition holds, and another where it does not."""

    def __init__(self, reason: str, condition: Formula) -> None:
        super().__init__(reason, data=True)
        self.condition = condition


class Dead(Exception):  # noqa: N818
    """The text has no value here: a contract is broken."""


class Refused(Dead):
    """It has none whatever the sizes: texts and numbers of axes decide it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """An element type by its name in ONNX, a type of sequences or optionals; "" where it is open."""

    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """An element that is not known. low, high: bounds of it; nan: it may be a NaN. data: data decide it."""

    name: str
    low: Fraction | None = None
    high: Fraction | None = None
    nan: bool = True


@dataclass(frozen=True, slots=True)
class Ratio:
    """A rational number over sizes."""

    above: Int
    below: int


@dataclass(frozen=True, slots=True)
class Element:
    """An element in its type: an integer, a floating-point number, a text, a truth value, or one that is not known."""

    kind: str
    value: int | Poly | np.floating | str | Formula | Opaque


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor. kind: "" where the element type is open. shape: None where the rank is, for the reason.

    read: the element at an index; the index lies in the shape. constant: what holds all elements of a constant.
    on_data: an open shape is open since data decide it.
    """

    name: str
    kind: str
    shape: tuple[Int, ...] | None
    read: Callable[[tuple[Int, ...]], Value] | None = None
    constant: Constant | None = None
    reason: str = ""
    on_data: bool = True
    memory: dict[tuple[tuple[Formula, ...], tuple[str, ...]], Value] = field(
        default_factory=dict, compare=False, repr=False
    )


@dataclass(slots=True)
class Constant:
    """The elements of a constant, read when they are first asked for; None where they are not in the model."""

    load: Callable[[], NDArray[np.generic] | None]
    _data: NDArray[np.generic] | None = None
    _loaded: bool = False
    _extremes: tuple[Fraction | None, Fraction | None] | None = None

    @property
    def data(self) -> NDArray[np.generic] | None:
        """The elements."""
        if not self._loaded:
            self._data, self._loaded = self.load(), True
        return self._data

    @property
    def extremes(self) -> tuple[Fraction | None, Fraction | None]:
        """The least and the greatest element, where it has some and all are numbers."""
        if self._extremes is None:
            self._extremes = _extremes(self.data)
        return self._extremes


def _extremes(data: NDArray[np.generic] | None) -> tuple[Fraction | None, Fraction | None]:
    if data is None or not data.size or data.dtype.kind not in "iuf":
        return None, None
    low, high = data.min().item(), data.max().item()
    if not (isfinite(low) and isfinite(high)):
        return None, None
    return Fraction(low), Fraction(high)


class Entries(tuple["Value", ...]):
    """A sequence or an optional with its type."""

    kind: str = ""

    @staticmethod
    def of(kind: str, items: Sequence[Value]) -> Entries:
        """The list of these entries."""
        made = Entries(items)
        made.kind = kind
        return made


@dataclass(frozen=True, slots=True)
class Listed:
    """A sequence or an optional of which the entries are not told apart: each is like one of the forms."""

    kind: str
    length: Int
    forms: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Withheld:
    """A value that is there, and not followed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Closure:
    """A function that an operator's text defines for itself."""

    parameters: tuple[str, ...]
    body: Node
    env: Mapping[str, Value]


Number = int | Poly | Fraction | Ratio
Value = Number | Formula | str | Kind | Element | Opaque | Tensor | Listed | Closure | Withheld | tuple["Value", ...]
Env = Mapping[str, Value]


@dataclass(slots=True)
class Facts:
    """Facts, found by the symbols that it is about. version: another one after each addition, also
    where facts are forgotten in between."""

    version: object = field(default_factory=object)
    listed: dict[Formula, None] = field(default_factory=dict)
    by_key: dict[str, list[Formula]] = field(default_factory=dict)

    def add(self, fact: Formula) -> None:
        """Takes a fact in."""
        for part in conjuncts(fact):
            if isinstance(part, bool) or part in self.listed:
                continue
            self.listed[part] = None
            self.version = object()
            for key in deep_keys(part):
                self.by_key.setdefault(key, []).append(part)

    def copy(self) -> Facts:
        """The same, to go on from."""
        return Facts(self.version, dict(self.listed), {key: list(facts) for key, facts in self.by_key.items()})

    def about(self, formula: Formula) -> list[Formula]:
        """The facts that share a symbol with the formula, and those that share one with these, and so on."""
        todo: list[str] = list(deep_keys(formula))
        seen: set[str] = set()
        related: dict[Formula, None] = {}
        while todo:
            key = todo.pop()
            if key in seen:
                continue
            seen.add(key)
            for fact in self.by_key.get(key, ()):
                if fact not in related:
                    related[fact] = None
                    todo += deep_keys(fact)
        return list(related)


Compose = Callable[[str, int, Sequence[Value | None], Mapping[str, Value], "Run"], tuple[Value, ...]]
"""The outputs of an operator, by its name and version, its inputs and its attributes."""


@dataclass(slots=True)
class Run:
    """A derivation under way.

    compose: evaluates an operator that another one's text applies, as `node.compose` does. path: what holds in the body
    that is looked at, which `inside` says; of that `entered` is what decides whether the body runs. steps: left for
    this node. fresh: how many names were made. trial: what is assumed may be given up. answers: what was asked, to ask
    it once.
    """

    library: Library
    compose: Compose
    facts: Facts = field(default_factory=Facts)
    path: tuple[Formula, ...] = ()
    entered: tuple[Formula, ...] = ()
    steps: int = STEPS
    fresh: int = 0
    inside: int = 0
    trial: int = 0
    answers: dict[tuple[Formula, object, tuple[Formula, ...]], bool] = field(default_factory=dict)

    def holds(self, goal: Formula) -> bool:
        """The facts imply the goal, as far as a proof is found."""
        if isinstance(goal, bool):
            return goal
        key = goal, self.facts.version, self.path
        if key not in self.answers:
            facts = self.facts.about(goal)
            if self.path:
                for part in self.path:
                    facts += [*conjuncts(part), *self.facts.about(part)]
            self.answers[key] = entails(list(dict.fromkeys(facts)), goal)
        return self.answers[key]

    def decided(self, condition: Formula) -> bool | None:
        """The truth of a condition that the facts decide."""
        if isinstance(condition, bool):
            return condition
        if self.holds(condition):
            return True
        return False if self.holds(opposite(condition)) else None

    @contextmanager
    def within(self, conditions: Sequence[Formula], *, once: bool = False) -> Iterator[None]:
        """In a body that runs under these conditions. once: surely, so that what it shows holds behind it too."""
        kept = self.path, self.entered, self.inside
        self.path, self.entered = (*self.path, *conditions), (*self.entered, *conditions)
        self.inside += not once
        try:
            yield
        finally:
            self.path, self.entered, self.inside = kept

    @contextmanager
    def under(self, condition: Formula) -> Iterator[None]:
        """With one more condition."""
        kept, self.path = self.path, self.path if condition is True else (*self.path, condition)
        try:
            yield
        finally:
            self.path = kept

    def symbol(self, kind: str, name: str, least: int | None = None, most: int | None = None) -> Poly:
        """A new symbol."""
        return poly(Symbol(self.name(name), kind, least=least, most=most))

    def assume(self, fact: Formula) -> None:
        """Takes in what holds where the path holds."""
        self.facts.add(either(*map(opposite, self.path), fact))

    def name(self, stem: str) -> str:
        """A new name."""
        self.fresh += 1
        return f"{stem}#{self.fresh}"

    def spend(self, steps: int = 1) -> None:
        """Counts steps. Raises Open where there are too many."""
        self.steps -= steps
        if self.steps < 0:
            raise Open("it takes too many steps")


def shown(value: object) -> str:
    """A value in a name: the same for the same value."""
    match value:
        case tuple():
            return f"[{','.join(map(shown, value))}]"
        case Poly():
            return value.key
        case bool():
            return str(value)
        case str():
            return json.dumps(value)
        case Element():
            return shown(value.value)
        case Opaque():
            return value.name
        case int() | float() | Fraction() | np.generic():
            return str(value)
        case _:
            return spelled(value) if isinstance(value, Formula) else repr(value)
