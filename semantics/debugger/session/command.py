"""What a command is, and how its arguments are taken apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...model.path import quote
from ..display.answers import Answer
from ..expressions.evaluating import Context
from ..expressions.parsing import Expression, Name, parse
from ..timeline.names import tensors_by_name
from ..timeline.refused import Refused
from .session import Outcome, Session

_WORD: Final = re.compile(r"""(?:[^\s"'`]|"(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`)+""")
_LARGEST: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Command:
    """name: as typed, with blanks where it has two words. aliases: other names, exact. usage: the arguments.

    summary: one sentence. examples: command lines. completes: what its arguments name: tensor, node, file, or nothing.
    moves: whether the execution moves, so that an empty line repeats it. keeps: whether a session that is saved has to
    do it again: it sets something, or makes a timeline.
    """

    name: str
    run: Callable[[Session, str], Outcome]
    summary: str
    usage: str = ""
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    completes: str = ""
    moves: bool = False
    keeps: bool = False


def answered(run: Callable[[Session, str], Answer]) -> Callable[[Session, str], Outcome]:
    """A command that only answers."""
    return lambda session, text: Outcome(session, run(session, text))


def words(text: str) -> list[str]:
    """The words of a text; what stands in quotes is not taken apart."""
    return _WORD.findall(text)


def option(text: str, name: str) -> tuple[str, str | None]:
    """The text without the word `name` and the one behind it, and that one."""
    found = words(text)
    if name not in found:
        return text, None
    at = found.index(name)
    if at + 1 == len(found):
        raise Refused(f"{name} needs a value behind it")
    return " ".join(found[:at] + found[at + 2 :]), found[at + 1]


def whole(text: str, default: int | None = None, *, least: int = 0) -> int:
    """One whole number, in decimal or hexadecimal (0x). Raises Refused."""
    text = text.strip()
    if not text and default is not None:
        return default
    try:
        found = int(text, 0) if text.lower().startswith("0x") else int(text)
    except ValueError:
        raise Refused(f"give a whole number in place of {quote(text)}") from None
    if not least <= found <= _LARGEST:
        raise Refused(f"the number is at least {least} and below 2**53")
    return found


def none(text: str) -> None:
    """Refuses arguments."""
    if text.strip():
        raise Refused(f"this command takes no {quote(text.strip())}")


def context(session: Session) -> Context:
    """Where expressions of the session are evaluated."""
    return Context(session.history, session.index, session.frame)


def expression(session: Session, text: str) -> Expression:
    """The expression that a text says; the name of a tensor as it is, with a slice or without, needs no quotes."""
    text = text.strip()
    if not text:
        raise Refused("give an expression, such as the name of a tensor")
    front = text.partition("[")[0].rstrip()
    known = tensors_by_name(session.state.program)
    if text in known:
        return Name(text, quoted=True)
    if front in known:
        return parse(quote(front) + text[len(front) :])
    return parse(text)
