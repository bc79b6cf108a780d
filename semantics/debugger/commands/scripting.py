"""Commands about commands: other names for them, those that follow a stop, and expressions shown at each stop."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from ..display.answers import Answer, Note, Rows, Shown, Stop, count
from ..expressions import evaluate
from ..session.session import Command, Outcome, Session, context, expression, unquoted, whole, words
from ..timeline.history import Refused
from .values import shown

_TOKEN: Final = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`|;|.""", re.DOTALL)
_ALIAS: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,40})\s*=\s*(.*)", re.DOTALL)


def separate(session: Session, line: str) -> tuple[str, ...]:
    """The command lines that a line has, between the `;` outside of quotes, with what aliases stand for."""
    said: list[str] = []
    for part in parts(line):
        first, blank, rest = part.partition(" ")
        meant = session.aliases.get(first)
        said += [part] if meant is None else parts(f"{meant}{blank}{rest}")
    return tuple(said)


def parts(line: str) -> list[str]:
    """The command lines that a line has, as they were said."""
    said = [""]
    for token in _TOKEN.findall(line):
        if token == ";":
            said.append("")
        else:
            said[-1] += token
    return [it.strip() for it in said if it.strip()]


def following(session: Session, answer: Answer) -> tuple[str, ...]:
    """The command lines that follow the stops which were met."""
    hits = answer.hits if isinstance(answer, Stop) else ()
    return tuple(it for hit in hits for it in separate(session, session.follows.get(hit.number, "")))


def displayed(session: Session) -> tuple[Shown, ...]:
    """What is shown at each stop; in place of a value, why there is none here."""
    return tuple(_displayed(session, number, text) for number, text in session.displays)


def _displayed(session: Session, number: int, text: str) -> Shown:
    try:
        made = shown(text, evaluate(expression(session, text), context(session)), "d", _ELEMENTS)
    except Refused as refused:
        return Shown(f"{number}: {text}", "no value here", (refused.message,))
    return replace(made, name=f"{number}: {text}")


_ELEMENTS: Final = 16


# ---- Commands -------------------------------------------------------------------------------------


def _alias(session: Session, text: str) -> Outcome:
    if not text.strip():
        rows = tuple((name, meant) for name, meant in sorted(session.aliases.items()))
        return Outcome(session, Rows("aliases", ("name", "stands for"), rows))
    said = _ALIAS.fullmatch(text.strip())
    if said is None:
        raise Refused('say alias NAME = COMMAND, with "..." around more than one command')
    name, meant = said[1], unquoted(said[2].strip())
    left = {key: value for key, value in session.aliases.items() if key != name}
    aliases = {**left, name: meant} if meant else left
    return Outcome(replace(session, aliases=aliases), Note((f"{name}: {meant or 'no alias'}",)))


def _commands(session: Session, text: str) -> Outcome:
    first, _, rest = text.strip().partition(" ")
    number, meant = whole(first, least=1), unquoted(rest.strip())
    if not any(it.number == number for it in session.stops):
        raise Refused(f"there is no stop {number}: see info breakpoints")
    left = {key: value for key, value in session.follows.items() if key != number}
    follows = {**left, number: meant} if meant else left
    return Outcome(replace(session, follows=follows), Note((f"after a stop at {number}: {meant or 'nothing'}",)))


def _display(session: Session, text: str) -> Outcome:
    text = text.strip()
    if not text:
        rows = tuple((count(number), said) for number, said in session.displays)
        return Outcome(session, Rows("displays", ("number", "expression"), rows))
    expression(session, text)
    number = max((it for it, _ in session.displays), default=0) + 1
    changed = replace(session, displays=(*session.displays, (number, text)))
    return Outcome(changed, displayed(changed)[-1])


def _undisplay(session: Session, text: str) -> Outcome:
    gone = {whole(it, least=1) for it in words(text)} or {it for it, _ in session.displays}
    missing = gone - {it for it, _ in session.displays}
    if missing:
        raise Refused(f"there is no display {min(missing)}: see display")
    left = tuple(it for it in session.displays if it[0] not in gone)
    return Outcome(replace(session, displays=left), Note((f"displays left: {len(left)}",)))


COMMANDS = (
    Command("display", _display, "Show an expression now and at each stop; without one, all of them.", "[EXPR]", (),
            ("display max(abs(y))",), "tensor", keeps=True),
    Command("undisplay", _undisplay, "Show some expressions no more, or none.", "[NUMBER ...]", (), ("undisplay 1",),
            keeps=True),
    Command("commands", _commands, "Commands that follow a stop, at the terminal and in scripts; without, none.",
            "NUMBER [\"COMMAND; ...\"]", (), ('commands 1 "print y; continue"',), keeps=True),
    Command("alias", _alias, "Another name for commands, which its arguments follow; without one, all of them.",
            "[NAME = [COMMAND]]", (), ("alias nn = next 2", 'alias look = "where; info tensors"'), keeps=True),
)  # fmt: skip
