"""Values of expressions of the language, by the compiled interpretation, for given values of their variables."""

from __future__ import annotations

from functools import cache
from typing import Any

from sonnx.semantics.operators.compiled.code import Builder
from sonnx.semantics.operators.compiled.elements.ieee import IEEE
from sonnx.semantics.operators.compiled.expressions import evaluate
from sonnx.semantics.operators.compiled.statements import applied
from sonnx.semantics.operators.compiled.terms import StuckError
from sonnx.semantics.operators.compiled.values import Scope
from sonnx.spec.elaborate.core import Definition
from sonnx.spec.language.parse import parse_expression
from sonnx.spec.language.syntax import Sort
from sonnx.spec.library import specification


@cache
def _made(text: str, variables: tuple[tuple[str, Sort], ...]) -> Definition:
    return specification().cores.over(parse_expression(text), variables)


def value(text: str, sorts: tuple[tuple[str, Sort], ...], *given: Any) -> Any:
    """The value of an expression over variables of these sorts; "stuck" where it has none."""
    definition = _made(text, sorts)
    scope = dict(zip(definition.parameters, given, strict=True))
    try:
        return evaluate(definition.body, Scope(specification().cores, Builder(IEEE, "the test", [], applied), scope))
    except StuckError:
        return "stuck"
