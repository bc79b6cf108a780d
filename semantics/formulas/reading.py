"""The driver that interpretations share: a fold over the core with one table.

An interpretation is a `Reading`: for each head the rule that gives its meaning. Variables and definitions mean the same
in each: a variable what it is bound to, a definition its body with the meanings of the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

from sonnx.spec.elaborate.core import Binding, Core
from sonnx.spec.elaborate.formulas import Cores

from ..errors import InternalError

W = TypeVar("W")
V = TypeVar("V")


class Surroundings(Protocol):
    """The context that a fold carries: the cores of the text, the meanings of variables, the contexts
    of a definition's arguments and body."""

    @property
    def cores(self) -> Cores:
        """The cores of the text."""

    @property
    def scope(self) -> Mapping[Binding | None, Any]:
        """The meanings of the variables."""

    def inner(self) -> Self:
        """The context of an argument."""

    def inside(self, name: str, scope: Mapping[Binding | None, Any], /) -> Self:
        """The context of the body of a definition."""


C = TypeVar("C", bound=Surroundings)


@dataclass(frozen=True, slots=True)
class Context(Generic[W, V]):
    """The context of a fold over formulas. work: what the interpretation reads and notes; scope: the meanings of the
    variables; expanding: the definitions under way.

    polarity: 1 where truth helps the formula, -1 where it hurts, 0 where it may do both.
    """

    cores: Cores
    work: W
    scope: Mapping[Binding | None, V] = field(default_factory=dict)
    expanding: tuple[str, ...] = ()
    polarity: int = 1

    def bind(self, variable: Binding, meaning: V) -> Context[W, V]:
        """The context in which a variable has a meaning."""
        scope = {**self.scope, variable: meaning}
        return Context(self.cores, self.work, scope, self.expanding, self.polarity)

    def inner(self) -> Context[W, V]:
        """The same, where truth may help and hurt."""
        return self.with_polarity(0)

    def with_polarity(self, polarity: int) -> Context[W, V]:
        """The same, with another polarity."""
        if polarity == self.polarity:
            return self
        return Context(self.cores, self.work, self.scope, self.expanding, polarity)

    def inside(self, name: str, scope: Mapping[Binding | None, V]) -> Context[W, V]:
        """The context of a definition's body. Raises InternalError for a definition that depends on itself."""
        if name in self.expanding:
            raise InternalError(f"the definition of {name} is recursive")
        return Context(self.cores, self.work, scope, (*self.expanding, name), self.polarity)


Rule = Callable[[Core, C], V]


class Reading(Generic[C, V]):
    """An interpretation. name: as it calls itself in errors; refusal: what it raises where it knows no meaning."""

    def __init__(self, name: str, refusal: type[Exception] = InternalError) -> None:
        self.name, self.refusal = name, refusal
        self.rules: dict[str, Rule[C, V]] = {"variable": self._variable, "define": self.expanded}

    def rule(self, *heads: str) -> Callable[[Rule[C, V]], Rule[C, V]]:
        """Enter a function in the table."""

        def enter(function: Rule[C, V]) -> Rule[C, V]:
            self.rules.update(dict.fromkeys(heads, function))
            return function

        return enter

    def meaning(self, core: Core, context: C) -> V:
        """The meaning of an expression. Raises the refusal for one that the interpretation does not know."""
        rule = self.rules.get(core.head)
        if rule is None:
            known = f"the function {core.name}" if core.head == "fun" else f"'{core.head}'"
            raise self.refusal(f"{core.span}: {self.name} gives no meaning to {known}")
        return rule(core, context)

    def _variable(self, core: Core, context: C) -> V:
        if core.variable not in context.scope:
            raise InternalError(f"{core.span}: the variable {core.name} is not bound")
        meaning: V = context.scope[core.variable]
        return meaning

    def expanded(self, core: Core, context: C) -> V:
        """The body of a definition, its parameters standing for the meanings of the arguments."""
        given = context.inner()
        return self.applied(core.name, [self.meaning(argument, given) for argument in core.parts], context)

    def applied(self, name: str, arguments: Sequence[V], context: C) -> V:
        """The body of a definition or inductive predicate for arguments of these meanings."""
        definition = context.cores.definition(name)
        scope: dict[Binding | None, V] = dict(zip(definition.parameters, arguments, strict=True))
        return self.meaning(definition.body, context.inside(name, scope))
