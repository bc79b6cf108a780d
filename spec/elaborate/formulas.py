"""The cores of formulas, and of the functions that they mention, made when they are asked for.

A text is elaborated as a whole when the package is built, so mistakes are expected in formulas made by hand alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..language.errors import InternalError
from ..language.syntax import NOWHERE, Expr, FunctionDeclaration, Sort
from .core import Binding, Core
from .infer import infer
from .scope import Ledger, Scope, held

Functions = Mapping[str, FunctionDeclaration]
Variables = tuple[tuple[str, Sort], ...]


CLEAR = frozenset({"name/unused", "name/shadow", "sort/equality", "sort/membership", "sort/expected"})
"""Mistakes that leave a formula with a meaning; only the elaboration of a whole text reports them."""


@dataclass(frozen=True, slots=True)
class Definition:
    """An expression over parameters."""

    parameters: tuple[Binding, ...]
    body: Core


class _Every(frozenset[str]):
    """All names: those of sorts were checked with the text."""

    def __contains__(self, name: object) -> bool:
        return True


class Cores:
    """The cores over one text's functions."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self._definitions: dict[str, Definition] = {}
        self._formulas: dict[tuple[int, Variables], tuple[Expr, Definition]] = {}

    def definition(self, name: str) -> Definition:
        """A function with a body: a definition or an inductive predicate. Raises InternalError for another."""
        if name not in self._definitions:
            function = self.functions[name]
            if function.body is None:
                raise InternalError(f"{name} has no body")
            parameters = ((parameter.name, parameter.sort) for parameter in held(function.parameters))
            self._definitions[name] = self.over(function.body, parameters)
        return self._definitions[name]

    def formula(self, expr: Expr, variables: Variables = ()) -> Definition:
        """The core of an expression of the text over variables, made once."""
        key = id(expr), variables
        if key not in self._formulas:
            self._formulas[key] = expr, self.over(expr, variables)
        return self._formulas[key][1]

    def over(self, expr: Expr, variables: Iterable[tuple[str, Sort]] = ()) -> Definition:
        """The core of any expression over variables. Raises SpecError (the first one) where it contains a mistake."""
        made = tuple(Binding(name, sort, "parameter", NOWHERE) for name, sort in variables)
        ledger = Ledger(self.functions, ())
        ledger.sorts = _Every()
        core = infer(expr, Scope({binding.name: binding for binding in made}), ledger)
        for error in ledger.errors:
            if error.kind not in CLEAR:
                raise error
        return Definition(made, core)


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """Functions that are compared by identity."""

    functions: Functions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.functions is other.functions

    def __hash__(self) -> int:
        return id(self.functions)


@lru_cache(maxsize=8)
def _cores(same: _Same) -> Cores:
    return Cores(same.functions)


def cores(functions: Functions) -> Cores:
    """The cores over these functions; those of one text are made once."""
    return _cores(_Same(functions))
