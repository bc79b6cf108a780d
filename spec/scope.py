"""Names and what they stand for while an expression is checked, and the collection of mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from .errors import SpecError, mistake
from .syntax import FunctionDeclaration, Sort, Span

FOLDS = frozenset(("sum", "prod", "max", "min", "any", "all", "count", "argmax", "argmin"))
"""The names of folds; a variable may have such a name, a function not."""


@dataclass(frozen=True, eq=False)
class Binding:
    """What a name stands for. `origin`: binder, let, parameter, configuration, port, result, shape, attribute, view.

    Bindings are compared by identity. optional: absent in some nodes. axes: the dimensions of a port that are known.
    """

    name: str
    sort: Sort | None
    origin: str
    span: Span
    optional: bool = False


@dataclass(frozen=True)
class Scope:
    """The bindings in force, innermost last; `present` are optional names that a guard has shown to be given."""

    bindings: Mapping[str, Binding] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    operator: str | None = None

    def bind(self, *bindings: Binding) -> Scope:
        """The scope with more bindings."""
        return Scope({**self.bindings, **{b.name: b for b in bindings}}, self.present, self.operator)

    def given(self, names: Iterable[str]) -> Scope:
        """The scope in which these optional names are known to be present."""
        return Scope(self.bindings, self.present | frozenset(names), self.operator)


class Ledger:
    """What checking finds: mistakes, bindings that were used, sorts of names whose sort follows from their uses."""

    def __init__(self, functions: Mapping[str, FunctionDeclaration], sorts: Iterable[str]) -> None:
        self.functions = functions
        self.sorts = frozenset(sorts)
        self.errors: list[SpecError] = []
        self.used: set[Binding] = set()
        self.solved: dict[Binding, Sort] = {}

    def report(self, kind: str, span: Span, related: Span | None = None, **details: object) -> None:
        """Notes a mistake."""
        self.errors.append(mistake(kind, span, related, **details))

    def sort_of(self, binding: Binding) -> Sort | None:
        """The sort of a name, as declared or as its uses showed."""
        return self.solved.get(binding, binding.sort)

    def check_fresh(self, name: str, span: Span, scope: Scope) -> None:
        """A name that is being bound must not be bound already."""
        other = scope.bindings.get(name)
        if other is not None:
            self.used.add(other)
            self.report("name/shadow", span, other.span, name=name)

    def unbound(self, name: str, span: Span, scope: Scope) -> None:
        """Reports a name that is not bound; the one that was probably meant counts as used."""
        meant = similar(name, scope.bindings)
        if meant is not None:
            self.used.add(scope.bindings[meant])
        self.report("name/unbound", span, name=name, hint=hint(name, scope.bindings))

    def check_used(self, bindings: Iterable[Binding]) -> None:
        """Each of the bindings must have been used; a name that begins with an underscore is exempt."""
        for binding in bindings:
            if binding not in self.used and not binding.name.startswith("_"):
                self.report("name/unused", binding.span, name=binding.name)


def similar(name: str, known: Iterable[str]) -> str | None:
    """The most similar known name, if one is similar enough."""
    return next(iter(get_close_matches(name, sorted(known), 1, 0.7)), None)


def hint(name: str, known: Iterable[str]) -> str:
    """`; did you mean x?` for the most similar known name, or nothing."""
    close = similar(name, known)
    return f"; did you mean {close}?" if close else ""
