"""Names and what they stand for while an expression is checked, and the collection of mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ..language.errors import SpecError, mistake
from ..language.syntax import Expr, FunctionDeclaration, Parameter, Sort, Span
from .core import Binding, Bound
from .sorts import ELEMENT, ELEMENT_TYPES, array_of

if TYPE_CHECKING:
    from .schema import Signature

FOLDS = frozenset(("sum", "prod", "max", "min", "any", "all", "count", "argmax", "argmin", "last", "filter"))
"""The names of folds; a variable may have such a name, a function not."""


@dataclass(frozen=True)
class Scope:
    """The bindings in force, innermost last; `present` are optional names that a guard has shown to be given,
    `alternatives` are pairs of which one is given.
    """

    bindings: Mapping[str, Binding] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    operator: str | None = None
    alternatives: frozenset[tuple[str, str]] = frozenset()

    def bind(self, *bindings: Binding) -> Scope:
        """The scope with more bindings."""
        return replace(self, bindings={**self.bindings, **{b.name: b for b in bindings}})

    def given(self, names: Iterable[str], alternatives: Iterable[tuple[str, str]] = ()) -> Scope:
        """The scope in which these optional names are known to be present, and one of each pair."""
        pairs = self.alternatives | frozenset(alternatives)
        return replace(self, present=self.present | frozenset(names), alternatives=pairs)

    def meaning(self, name: str) -> Expr | None:
        """The expression that a let gave this name, None for other names."""
        return self.bindings[name].meaning if name in self.bindings else None


class Ledger:
    """The ledger of a check: mistakes, bindings that were used, sorts of names whose sort follows from their uses.

    declared: the signatures of the operators without a schema, by name.
    """

    def __init__(self, functions: Mapping[str, FunctionDeclaration], sorts: Iterable[str]) -> None:
        self.functions = functions
        self.sorts = frozenset(sorts)
        self.errors: list[SpecError] = []
        self.used: set[Binding] = set()
        self.solved: dict[Binding, Sort] = {}
        self.declared: dict[str, tuple[Signature, ...]] = {}

    def quiet(self) -> Ledger:
        """A ledger for a first reading, whose mistakes nobody is told of."""
        other = Ledger(self.functions, ())
        other.sorts, other.declared = self.sorts, self.declared
        return other

    def signatures(self, operator: str) -> tuple[Signature, ...]:
        """The versions of an operator, by ONNX's schemas or as declared, oldest first; () for an unknown one."""
        from .schema import signatures

        return self.declared.get(operator) or signatures().get(operator, ())

    def report(self, kind: str, span: Span, related: Span | None = None, **details: object) -> None:
        """Notes a mistake."""
        self.errors.append(mistake(kind, span, related, **details))

    def sort_of(self, binding: Binding) -> Sort | None:
        """The sort of a name, as declared or as its uses showed."""
        return self.solved.get(binding, binding.sort)

    def check_fresh(self, name: str, span: Span, scope: Scope) -> None:
        """A name that is being bound must not be bound already, nor be that of an element type in an operator."""
        if scope.operator is not None and name in ELEMENT_TYPES:
            self.report("name/reserved", span, name=name)
        other = scope.bindings.get(name)
        if other is not None:
            self.used.add(other)
            self.report("name/shadow", span, other.span, name=name)

    def check_sort(self, sort: Sort, span: Span, any_allowed: bool) -> bool:
        """The base of a sort must be declared; `Any` belongs in the signature of a primitive. Whether it is sound."""
        while sort.element is not None:
            sort = sort.element
        if sort.name not in self.sorts:
            self.report("name/sort", span, name=sort.name, hint=hint(sort.name, self.sorts))
        elif sort.name == "Any" and not any_allowed:
            self.report("sort/any", span)
        else:
            return True
        return False

    def unbound(self, name: str, span: Span, scope: Scope) -> None:
        """Reports a name that is not bound; the one that was probably meant counts as used."""
        meant = similar(name, scope.bindings)
        if meant is not None:
            self.used.add(scope.bindings[meant])
        self.report("name/unbound", span, name=name, hint=hint(name, scope.bindings))

    def check_used(self, bindings: Iterable[Binding | Bound]) -> None:
        """Each of the bindings must have been used; a name that begins with an underscore is exempt."""
        for binding in (it for b in bindings for it in (b.variables if isinstance(b, Bound) else (b,))):
            if binding not in self.used and not binding.name.startswith("_"):
                self.report("name/unused", binding.span, name=binding.name)


def held(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """The parameters of a function with a body: a tensor of which nothing else is said holds elements."""
    return tuple(replace(p, sort=_of_elements(p.sort)) for p in parameters)


def _of_elements(sort: Sort) -> Sort:
    if sort.name == "Array" and sort.element is None:
        return array_of(ELEMENT)
    return sort if sort.element is None else Sort(sort.name, _of_elements(sort.element))


def similar(name: str, known: Iterable[str]) -> str | None:
    """The most similar known name, if one is similar enough."""
    return next(iter(get_close_matches(name, sorted(known), 1, 0.7)), None)


def hint(name: str, known: Iterable[str]) -> str:
    """`; did you mean x?` for the most similar known name, or nothing."""
    close = similar(name, known)
    return f"; did you mean {close}?" if close else ""
