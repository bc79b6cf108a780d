"""The rules of operators' expressions that the interpretations share: a literal, a definition, a local function, a
`case`, a list mean the same in each, whatever its values are.

A scope maps a binding to its value, and a local function's to a `Function`. What is peculiar to an interpretation it
says in its `Answers`; its own rules it enters in the table that `reading` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from sonnx.spec.elaborate.core import Binding, Core, CoreStatement
from sonnx.spec.language.syntax import TEXT, Span

from ..errors import InternalError
from ..formulas import reading as formulas

V = TypeVar("V")
Names = Mapping[Any, Any]
"""The meanings of variables."""


class Surroundings(formulas.Surroundings, Protocol):
    """The context that the rules need, beside what those of formulas do."""

    def bind(self, names: Names, /) -> Self:
        """The context with more variables."""


C = TypeVar("C", bound=Surroundings)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A local function with the variables that its body sees."""

    parameters: tuple[Binding, ...]
    body: Core
    names: Names


@dataclass(frozen=True, slots=True)
class Answers(Generic[C, V]):
    """The questions of the shared rules to an interpretation.

    truth: a truth value that is written. text: the text that a value is. entries: those of a list. below: the numbers
    below a number. where: the context in which a condition holds, None where it does not hold. primitive: the value of
    a primitive function, by its name. apply: the outputs of an operator, the first so many of them. no_arm: raises what
    a `case` means without an arm for a text; uneven: what `let` does where the list has not one entry for each name.
    """

    truth: Callable[[bool], V]
    text: Callable[[V, C], str]
    entries: Callable[[V, Core, C], tuple[V, ...]]
    below: Callable[[V, C], range]
    where: Callable[[Core, C], C | None]
    primitive: Callable[[str, list[V], Span, C], V]
    apply: Callable[[Core, Sequence[V | None], Mapping[str, V], C, int], tuple[V, ...]]
    no_arm: Callable[[Core, str, C], Exception]
    uneven: Callable[[CoreStatement, C], Exception]


OF_STRINGS: Final[Mapping[str, str]] = {
    "joined": "string", "pieces": "int64", "piece": "string", "lowercase": "string", "uppercase": "string",
    "matches": "bool",
}  # fmt: skip
"""The primitives whose arguments are elements, the first one a string, each with the element type of its value."""


@cache
def rational(digits: str) -> Fraction:
    """The number that digits with a point or an exponent write."""
    return Fraction(digits)


def links(core: Core) -> tuple[Core, ...]:
    """The comparisons of which a relation or a chain of them, `a < b <= c`, consists; nothing for what is neither.

    Each begins with the operand that the one before ends with, so that it is to be evaluated once.
    """
    if core.head == "compare":
        return (core,)
    return core.parts if core.head == "and" and core.name == "chain" else ()


def reading(name: str, answers: Answers[C, V]) -> formulas.Reading[C, V]:
    """An interpretation with the shared rules in its table. name: as it calls itself in errors."""
    table: formulas.Reading[C, V] = formulas.Reading(name)
    meaning = table.meaning

    @table.rule("literal")
    def _literal(core: Core, _context: C) -> Any:
        value = core.value
        if isinstance(value, str):
            return value if core.sort == TEXT else rational(value)
        return answers.truth(value) if isinstance(value, bool) else value

    @table.rule("local")
    def _local(core: Core, context: C) -> V:
        arguments = [meaning(part, context) for part in core.parts]
        function: object = context.scope[core.variable]
        if not isinstance(function, Function):
            raise InternalError(f"{core.span}: {core.name} is no function")
        names = {**function.names, **dict(zip(function.parameters, arguments, strict=True))}
        return meaning(function.body, context.inside(core.name, names))

    @table.rule("fun")
    def _fun(core: Core, context: C) -> V:
        return answers.primitive(core.name, [meaning(part, context) for part in core.parts], core.span, context)

    @table.rule("apply")
    def _apply(core: Core, context: C) -> V:
        return outputs(core, context, 1, table, answers)[0]

    @table.rule("case")
    def _case(core: Core, context: C) -> V:
        text = answers.text(meaning(core.parts[0], context), context)
        for labels, body in zip(core.labels, core.parts[1:], strict=True):
            if not labels or text in labels:
                return meaning(body, context)
        raise answers.no_arm(core, text, context)

    @table.rule("vector")
    def _vector(core: Core, context: C) -> Any:
        return tuple([meaning(part, context) for part in core.parts])

    @table.rule("concat")
    def _concat(core: Core, context: C) -> Any:
        left, right = (answers.entries(meaning(part, context), core, context) for part in core.parts)
        return (*left, *right)

    @table.rule("list")
    def _list(core: Core, context: C) -> Any:
        (bound,), (body, guard) = core.bound, core.parts
        domain = meaning(bound.domain, context)
        listed = bound.domain.sort is not None and bound.domain.sort.name == "list"
        items = answers.entries(domain, core, context) if listed else answers.below(domain, context)
        if guard.head == "literal" and guard.value is True:
            return tuple([meaning(body, context.bind({bound.variable: item})) for item in items])
        made = []
        for item in items:
            inner = answers.where(guard, context.bind({bound.variable: item}))
            if inner is not None:
                made.append(meaning(body, inner))
        return tuple(made)

    return table


def outputs(core: Core, context: C, count: int, table: formulas.Reading[C, V], answers: Answers[C, V]) -> tuple[V, ...]:
    """The first outputs of an operator that the text applies."""
    inputs: list[V | None] = []
    attributes: dict[str, V] = {}
    for label, written in zip(core.labels, core.parts, strict=True):
        part, here = written, context
        if written.head == "ite" and written.parts[2].head == "nothing":  # passed on, and perhaps absent
            condition, held, nothing = written.parts
            under = answers.where(condition, context)
            part, here = (nothing, context) if under is None else (held, under)
        value: Any = None if part.head == "nothing" else table.meaning(part, here)
        if label and value is None:
            continue
        if label:
            attributes[label[0]] = value
        elif type(value) is tuple:
            inputs += value
        else:
            inputs.append(value)
    return answers.apply(core, inputs, attributes, context, count)


def let(statement: CoreStatement, context: C, table: formulas.Reading[C, V], answers: Answers[C, V]) -> C:
    """The context behind `let x = e` or `let x, y = e`, where e is a list or an operator with several outputs."""
    names, body = statement.binds, statement.body
    if len(names) == 1:
        return context.bind({names[0]: table.meaning(body, context)})
    if body.head == "apply":
        values = outputs(body, context, len(names), table, answers)
    else:
        values = answers.entries(table.meaning(body, context), body, context)
    if len(values) != len(names):
        raise answers.uneven(statement, context)
    return context.bind(dict(zip(names, values, strict=True)))


def function(statement: CoreStatement, context: C) -> C:
    """The context behind a local function."""
    return context.bind({statement.binds[0]: Function(statement.parameters, statement.body, context.scope)})
