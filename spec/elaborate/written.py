"""The text of a core: the expression that it was made from, for what quotes one.

A name that stands for nothing else is kept, so what is printed reads as the specification does; spans are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..language.errors import InternalError
from ..language.printer import print_expression
from ..language.syntax import INT, TEXT, Arm, Binder, Expr, Keyword, Range
from .core import Bound, Core


def text_of(core: Core) -> str:
    """The expression as the specification writes it."""
    return print_expression(expression(core))


def expression(core: Core) -> Expr:
    """The expression of a core of an operator's text. Raises InternalError for a head that operators do not have."""
    rule = RULES.get(core.head)
    if rule is None:
        raise InternalError(f"{core.span}: {core.head} is no expression of an operator")
    return rule(core)


def _literal(core: Core) -> Expr:
    value = core.value
    if isinstance(value, str):
        return Expr("text" if core.sort == TEXT else "float", (value,))
    if isinstance(value, bool):
        return Expr("true" if value else "false", ())
    return Expr("int", (value,)) if value >= 0 else Expr("neg", (Expr("int", (-value,)),))


def _name(head: str) -> Callable[[Core], Expr]:
    return lambda core: Expr(head, (core.name,))


def _parts(core: Core) -> tuple[Expr, ...]:
    return tuple(map(expression, core.parts))


def _same(core: Core) -> Expr:
    return Expr(core.head, _parts(core))


def _chain(core: Core) -> Expr:
    """A relation, or a chain of them."""
    links = (core,) if core.head == "compare" else core.parts
    rest = (item for link in links for item in (link.name, expression(link.parts[1])))
    return Expr("compare", (expression(links[0].parts[0]), *rest))


def _case(core: Core) -> Expr:
    subject, *bodies = _parts(core)
    arms = (Arm(labels, body, body.span) for labels, body in zip(core.labels, bodies, strict=True))
    return Expr("case", (subject, *arms))


def _range(bound: Bound) -> Range:
    first = bound.variables[0]
    dots = len(bound.variables) == 1 and first.sort != INT
    return Range(tuple(it.name for it in bound.variables), dots, expression(bound.domain), first.span)


def _guard(core: Core) -> Expr | None:
    """A guard, None where it is left out."""
    return None if core.head == "literal" else expression(core)


def _list(core: Core) -> Expr:
    (bound,), (body, guard) = core.bound, core.parts
    domain, variable = expression(bound.domain), bound.variable
    if bound.domain.sort is not None and bound.domain.sort.name == "list":
        return Expr("collect", (expression(body), Binder(variable.name, domain, variable.span), _guard(guard)))
    return Expr("comprehension", (expression(body), variable.name, domain, _guard(guard)))


def _fold(core: Core) -> Expr:
    body, guard, *start = core.parts
    first = expression(start[0]) if start else None
    return Expr("fold", (core.name, *map(_range, core.bound), _guard(guard), first, expression(body)))


def _apply(core: Core) -> Expr:
    if not isinstance(core.value, int):
        raise InternalError(f"{core.span}: {core.name} without a version")
    arguments = (
        Keyword(label[0], expression(part), part.span)
        if label
        else None
        if part.head == "nothing"
        else expression(part)
        for label, part in zip(core.labels, core.parts, strict=True)
    )
    return Expr("apply", (core.name, core.value, *arguments))


RULES: Mapping[str, Callable[[Core], Expr]] = {
    "literal": _literal,
    **dict.fromkeys(("variable", "type"), _name("var")),
    "given": _name("given"),
    "and": lambda core: _chain(core) if core.name == "chain" else _same(core),
    "compare": _chain,
    "case": _case,
    "arithmetic": lambda core: Expr(core.name, _parts(core)),
    "size": lambda core: Expr("call", ("len", *_parts(core))),
    **dict.fromkeys(
        ("fun", "record", "field", "define", "local"), lambda core: Expr("call", (core.name, *_parts(core)))
    ),
    "ite": lambda core: expression(core.parts[1]) if core.parts[2].head == "nothing" else _same(core),
    "list": _list,
    "fold": _fold,
    "apply": _apply,
    **dict.fromkeys(("not", "or", "implies", "iff", "neg", "index", "vector", "concat", "pair"), _same),
}
"""For each head how it is written."""
