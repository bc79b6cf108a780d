"""What is quoted of a core reads as the text that it was made from."""

from __future__ import annotations

from collections.abc import Iterator

from sonnx.spec.elaborate.core import Core, CoreStatement
from sonnx.spec.elaborate.written import text_of
from sonnx.spec.language.printer import print_expression
from sonnx.spec.language.syntax import Expr, Statement
from sonnx.spec.library import specification


def pairs(statement: Statement, core: CoreStatement) -> Iterator[tuple[Expr, Core]]:
    """The expressions of a statement with their cores."""
    yield statement.expr, core.body
    for written, bound in zip(statement.ranges, core.bound, strict=True):
        yield written.bound, bound.domain
    for view, inner in zip(statement.body, core.inner, strict=True):
        yield view.expr, inner.body


def test_every_expression_of_the_operators_is_written_as_it_was() -> None:
    known = specification()
    every = [
        (expr, core)
        for meaning in known.meanings
        for statement, made in zip(known.written(meaning).statements, meaning.statements, strict=True)
        for expr, core in pairs(statement, made)
    ]
    assert len(every) > 2000
    assert [print_expression(expr) for expr, _ in every] == [text_of(core) for _, core in every]
