"""The cores over one text, made when they are asked for: of functions, formulas and operators.

A text is elaborated as a whole when the package is built, and the cores that were made then lie in the package, so no
module that makes cores is needed for them. Mistakes are expected in what is made by hand alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..language.errors import InternalError
from ..language.syntax import NOWHERE, Constraint, Expr, FunctionDeclaration, Operator, Sort
from .core import Binding, CoreOperator, Definition

Functions = Mapping[str, FunctionDeclaration]
Variables = tuple[tuple[str, Sort], ...]


MANY = 10_000
"""The number of cores of formulas that are kept."""
CLEAR = frozenset({"name/unused", "name/shadow", "sort/equality", "sort/membership", "sort/expected"})
"""Mistakes that leave a formula with a meaning; only the elaboration of a whole text reports them."""


class _Every(frozenset[str]):
    """All names: those of sorts were checked with the text."""

    def __contains__(self, name: object) -> bool:
        return True


Made = Callable[[FunctionDeclaration | Constraint], Definition | None]
"""The core made ahead of a function with a body, or of the formula of a constraint; None for those of other texts."""


class Cores:
    """The cores over one text's functions. ahead: those that were made when the package was built. derived: what
    interpretations made of these cores and keep; it changes no result."""

    def __init__(self, functions: Functions, ahead: Made = lambda _: None) -> None:
        self.functions, self._ahead = functions, ahead
        self.derived: dict[object, object] = {}
        self._definitions: dict[str, Definition] = {}
        self._formulas: dict[tuple[int, Variables], tuple[Expr, Definition]] = {}

    def definition(self, name: str) -> Definition:
        """A function with a body: a definition or an inductive predicate. Raises InternalError for another."""
        if name not in self._definitions:
            function = self.functions[name]
            self._definitions[name] = self._ahead(function) or self._made(function)
        return self._definitions[name]

    def _made(self, function: FunctionDeclaration) -> Definition:
        from .scope import held

        if function.body is None:
            raise InternalError(f"{function.name} has no body")
        return self.over(function.body, ((parameter.name, parameter.sort) for parameter in held(function.parameters)))

    def constraint(self, constraint: Constraint) -> Definition:
        """The formula of a constraint of phase static."""
        return self._ahead(constraint) or self.formula(constraint.formula)

    def formula(self, expr: Expr, variables: Variables = ()) -> Definition:
        """The core of an expression over variables, made once as long as there are not very many."""
        key = id(expr), variables
        if key not in self._formulas:
            if len(self._formulas) >= MANY:
                self._formulas.clear()
            self._formulas[key] = expr, self.over(expr, variables)
        return self._formulas[key][1]

    def over(self, expr: Expr, variables: Iterable[tuple[str, Sort]] = ()) -> Definition:
        """The core of any expression over variables. Raises SpecError (the first one) where it contains a mistake."""
        from .infer import infer
        from .scope import Ledger, Scope

        parameters = tuple(Binding(name, sort, "parameter", NOWHERE) for name, sort in variables)
        ledger = Ledger(self.functions, ())
        ledger.sorts = _Every()
        core = infer(expr, Scope({binding.name: binding for binding in parameters}), ledger)
        for error in ledger.errors:
            if error.kind not in CLEAR:
                raise error
        return Definition(parameters, core)

    def operator(self, operator: Operator, transitions: frozenset[str] = frozenset()) -> CoreOperator:
        """The core of a definition. Raises SpecError (the first one) where it contains a mistake."""
        from .operators import check_operator
        from .scope import Ledger

        ledger = Ledger(self.functions, ())
        ledger.sorts = _Every()
        core = check_operator(operator, transitions, ledger)
        for error in ledger.errors:
            if error.kind not in CLEAR:
                raise error
        if core is None:
            raise InternalError(f"{operator.span}: {operator.name} has no range of versions")
        return core


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
    known = getattr(functions, "cores", None)
    return known if isinstance(known, Cores) else _cores(_Same(functions))
