"""The expression language of the debugger as data: what a text says, parsed with Lark, never run as Python."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, reduce
from importlib.resources import files
from typing import Final

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError

from ...model.path import quote
from ..timeline.history import Refused

_LONGEST: Final = 4000
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class Number:
    """A numeral."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Text:
    """A text in single quotes, compared with what has texts."""

    value: str


@dataclass(frozen=True, slots=True)
class Special:
    """A fact of the position: $step, $op, ..."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """A tensor by its name. quoted: it cannot be a word of the language."""

    name: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class PathName:
    """A tensor by its path, with the numbers of the runs that it is of."""

    path: str


@dataclass(frozen=True, slots=True)
class Range:
    """A slice, as in NumPy."""

    start: Expression | None
    stop: Expression | None
    step: Expression | None


@dataclass(frozen=True, slots=True)
class Rest:
    """The axes that nothing is said about."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """Elements of a tensor."""

    of: Expression
    subscripts: tuple[Expression | Range | Rest, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator of the language, or a function, on its arguments."""

    name: str
    arguments: tuple[Expression, ...]
    call: bool = False


Expression = Number | Text | Special | Name | PathName | Sliced | Operation


def parse(text: str) -> Expression:
    """The expression that a text says. Raises Refused, with the column, for any other text."""
    if len(text) > _LONGEST:
        raise Refused(f"an expression has at most {_LONGEST} characters")
    if text.count("(") + text.count("[") + text.count("-") + text.count("not") > _DEEPEST:
        raise Refused(f"an expression has at most {_DEEPEST} brackets and signs")
    try:
        tree = _parser().parse(text)
        found: Expression = _Builder().transform(tree)
    except UnexpectedInput as error:
        column = getattr(error, "column", 1)
        raise Refused(
            f"{quote(text)}: this cannot be read from column {column if column > 0 else len(text) + 1} on"
        ) from None
    except VisitError as error:
        raise Refused(f"{quote(text)}: {error.orig_exc}") from None
    return found


def expression_text(expression: Expression) -> str:
    """A text that says the expression: reading it gives the same one."""
    match expression:
        case Number(value=value):
            return repr(value)
        case Text(value=value):
            return f"'{value}'"
        case Special(name=name):
            return f"${name}"
        case Name(name=name, quoted=quoted):
            return quote(name) if quoted else name
        case PathName(path=path):
            return f"`{path}`"
        case Sliced(of=of, subscripts=subscripts):
            inner = f"({_operand(of)})" if isinstance(of, Operation) and not of.call else expression_text(of)
            return f"{inner}[{', '.join(map(_subscript, subscripts))}]"
        case Operation(name=name, arguments=arguments, call=True):
            return f"{name}({', '.join(map(expression_text, arguments))})"
        case Operation(name=name, arguments=()):
            return name
        case Operation(name=name, arguments=(argument,)):
            return f"not {_operand(argument)}" if name == "not" else f"-{_operand(argument)}"
        case Operation(name=name, arguments=arguments):
            return f" {name} ".join(map(_operand, arguments))


def _operand(expression: Expression) -> str:
    """In brackets, where it is an operation on something."""
    text = expression_text(expression)
    return f"({text})" if isinstance(expression, Operation) and expression.arguments and not expression.call else text


def _subscript(part: Expression | Range | Rest) -> str:
    if isinstance(part, Rest):
        return "..."
    if isinstance(part, Range):
        start, stop, step = ("" if it is None else expression_text(it) for it in (part.start, part.stop, part.step))
        return f"{start}:{stop}" + (f":{step}" if step else "")
    return expression_text(part)


@cache
def _parser() -> Lark:
    text = files(__package__).joinpath("language.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", maybe_placeholders=True)


@v_args(inline=True)
class _Builder(Transformer[Token, Expression]):
    """From the tree of the grammar to expressions."""

    def start(self, inner: Expression) -> Expression:
        return inner

    def either(self, *parts: Expression) -> Expression:
        return reduce(lambda a, b: Operation("or", (a, b)), parts)

    def both(self, *parts: Expression) -> Expression:
        return reduce(lambda a, b: Operation("and", (a, b)), parts)

    def negated(self, inner: Expression) -> Expression:
        return Operation("not", (inner,))

    def compared(self, left: Expression, relation: Token, right: Expression) -> Expression:
        return Operation(str(relation), (left, right))

    def calculated(self, first: Expression, *rest: Expression | Token) -> Expression:
        found = first
        for sign, item in zip(rest[::2], rest[1::2], strict=True):
            if not isinstance(item, Token):
                found = Operation(str(sign), (found, item))
        return found

    def signed(self, sign: Token, inner: Expression) -> Expression:
        return inner if sign == "+" else Operation("neg", (inner,))

    def sliced(self, of: Expression, *subscripts: Expression | Range | Rest | None) -> Expression:
        return Sliced(of, tuple(it for it in subscripts if it is not None))

    def position(self, inner: Expression) -> Expression:
        return inner

    def range_(self, *parts: Expression | Token | None) -> Range:
        found: list[Expression | None] = [None]
        for part in parts:
            if isinstance(part, Token):
                found.append(None)
            elif part is not None:
                found[-1] = part
        start, stop, step = (*found, None, None)[:3]
        return Range(start, stop, step)

    def rest(self, _dots: Token) -> Rest:
        return Rest()

    def integer(self, token: Token) -> Expression:
        return Number(int(token, 0) if token[:2] in ("0x", "0X") else int(token))

    def decimal(self, token: Token) -> Expression:
        return Number(float(token))

    def text(self, token: Token) -> Expression:
        return Text(token[1:-1])

    def special(self, token: Token) -> Expression:
        return Special(token[1:])

    def quoted(self, token: Token) -> Expression:
        return Name(json.loads(token), quoted=True)

    def path(self, token: Token) -> Expression:
        return PathName(token[1:-1])

    def name(self, token: Token) -> Expression:
        if token in ("nan", "inf", "true", "false"):
            return Operation(str(token), ())
        return Name(str(token))

    def called(self, name: Token, *arguments: Expression | None) -> Expression:
        return Operation(str(name), tuple(it for it in arguments if it is not None), call=True)
