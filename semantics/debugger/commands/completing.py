"""How a line of the debug console may go on: commands, tensors, nodes, functions of the expression language."""

from __future__ import annotations

import re
from typing import Final

from ..expressions.evaluating import FUNCTIONS, SPECIALS
from ..inspection.items import said
from ..session.command import Command
from ..session.session import Session
from ..timeline.names import tensors_by_name
from ..timeline.refused import Refused
from .table import completions, lookup

_TOKEN: Final = re.compile(r"""(?:"(?:[^"\\]|\\.)*|\$?[A-Za-z0-9_.]*)$""")
_MANY: Final = 200

Completion = tuple[str, str]
"""What may stand there, and what it is: keyword, variable, function."""


def completed(session: Session, line: str) -> tuple[int, tuple[Completion, ...]]:
    """From which character of the line on something may stand in place of what is there, and what; at most 200."""
    word = line.rpartition(" ")[2]
    head = line[: len(line) - len(word)]
    command = _command(head)
    if not head.strip():
        names = tuple((it, "keyword") for it in completions(session, line))
        return len(head), (*names, *(it for it in _tokens(session, word) if it not in names))[:_MANY]
    found = completions(session, line)
    if found:
        what = "variable" if command is not None and command.completes == "tensor" else "keyword"
        return len(head), tuple((it, what) for it in found[:_MANY])
    if command is not None and command.completes != "tensor":
        return len(line), ()
    match = _TOKEN.search(line)
    start = len(line) if match is None else match.start()
    return start, _tokens(session, line[start:])[:_MANY]


def _command(head: str) -> Command | None:
    try:
        return lookup(head)[0] if head.strip() else None
    except Refused:
        return None


def _tokens(session: Session, token: str) -> tuple[Completion, ...]:
    """Names of tensors, functions and facts that begin like a token."""
    if not token:
        return ()
    known = tensors_by_name(session.state.program)
    names = sorted({said(name) for name in known if name.startswith(token) or said(name).startswith(token)})
    functions = sorted(it for it in FUNCTIONS if it.startswith(token))
    facts = sorted(f"${it}" for it in SPECIALS if f"${it}".startswith(token))
    variables = ((it, "variable") for it in (*names[:_MANY], *facts))
    return (*variables, *((it, "function") for it in functions))
