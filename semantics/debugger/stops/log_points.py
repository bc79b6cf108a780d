"""What a log point says: a text with expressions in braces, {{ and }} for the braces themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..display.texts import value_lines
from ..expressions.evaluating import Context, evaluate
from ..expressions.parsing import Expression, parse
from ..timeline.refused import Refused

_ELEMENTS: Final = 16
_LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class Message:
    """text: as it was written. parts: texts and expressions in order."""

    text: str
    parts: tuple[str | Expression, ...]


def message_of(text: str) -> Message:
    """The message that a text is. Raises Refused for braces that do not match and what is no expression."""
    if len(text) > _LONGEST:
        raise Refused(f"the message of a log point has at most {_LONGEST} characters")
    parts: list[str | Expression] = []
    said, at = "", 0
    while at < len(text):
        if text[at : at + 2] in ("{{", "}}"):
            said, at = said + text[at], at + 2
        elif text[at] == "{":
            end = text.find("}", at)
            if end < 0:
                raise Refused("a brace is not closed: write {expression}, or {{ for a brace")
            parts += [said, parse(text[at + 1 : end])]
            said, at = "", end + 1
        elif text[at] == "}":
            raise Refused("a brace is not opened: write {expression}, or }} for a brace")
        else:
            said, at = said + text[at], at + 1
    return Message(text, tuple(part for part in (*parts, said) if part != ""))


def filled(message: Message, context: Context) -> str:
    """What it says at a moment; an expression without a value says why in its place."""
    return "".join(part if isinstance(part, str) else _value(part, context) for part in message.parts)


def _value(expression: Expression, context: Context) -> str:
    try:
        value = evaluate(expression, context)
    except Refused as refused:
        return f"<{refused.message}>"
    return value if isinstance(value, str) else " ".join(value_lines(value, limit=_ELEMENTS))
