"""The requests `evaluate`, `completions` and `setExpression`: expressions, and in the debug console every command."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sonnx.spec.terminal import one_line

from ...machine.trace.format import Json
from ..commands.scripting import separate
from ..commands.table import NAMES, completed, execute, lookup
from ..display.answers import Quit, Refusal, Stop
from ..display.rendering import lines
from ..expressions import tensor_and_subscripts
from ..inspection.items import View, expression_item, full_text
from ..session.session import Outcome, Session, context, expression
from ..timeline.history import Refused
from ..timeline.names import tensors_by_name
from .adapter import Adapter, Body, Handler
from .lifecycle import terminated
from .messages import Arguments
from .stopping import progress, stopped
from .variables import announce_edit, changed, check_edits, edited, result, view_of

_EDITING: Final = ("set", "poke", "supply", "through")


def _evaluate(adapter: Adapter, given: Arguments) -> Body:
    text, where = given.text("expression"), given.text("context", "")
    session = _looking(adapter, given, lenient=where == "repl")
    if where == "repl":
        return _typed(adapter, session, text, view_of(given))
    if where == "clipboard":
        whole = full_text(session, text, view_of(given))
        return {**_expression(adapter, session, text, view_of(given)), "result": whole}
    return _expression(adapter, session, text, view_of(given))


def _looking(adapter: Adapter, given: Arguments, *, lenient: bool) -> Session:
    """The session, looking at the frame that is named. lenient: at the innermost one where that frame is gone."""
    try:
        return adapter.looking(given.maybe_whole("frameId"))
    except Refused:
        if lenient:
            return adapter.looking(None)
        raise


def _expression(adapter: Adapter, session: Session, text: str, view: View) -> Body:
    item = expression_item(session, text, view)
    return result(adapter, item, (session.frame, "evaluate", text, int(view.hexadecimal)))


# ---- The debug console ------------------------------------------------------------------------


def _typed(adapter: Adapter, session: Session, text: str, view: View) -> Body:
    """The result of a line, a command or else an expression; several lines are carried out one after the other."""
    rows = [part for line in text.splitlines() for part in separate(session, line)]
    if len(rows) <= 1:
        return _line(adapter, session, rows[0] if rows else "", view)
    said: list[str] = []
    for i, row in enumerate(rows):
        body = _line(adapter, session if not i else adapter.session, row, view)
        said.append(str(body.get("result", "")))
    return {"result": "\n".join(it for it in said if it), "variablesReference": 0}


def _line(adapter: Adapter, session: Session, text: str, view: View) -> Body:
    if not text:
        return {"result": "", "variablesReference": 0}
    try:
        command, _ = lookup(text)
    except Refused as refused:
        return _other(adapter, session, text, view, refused)
    if command.name in _EDITING:
        check_edits(adapter)
    if command.name == "commands":
        raise Refused("commands follow stops at the terminal and in scripts: here a log point says things and goes on")
    with progress(adapter, one_line(text)):
        outcome = execute(session, text)
    if any(it.label for it in outcome.session.timelines):  # of a session that was loaded
        check_edits(adapter)
    if isinstance(outcome.answer, Refusal):
        why = Refused(outcome.answer.message, outcome.answer.candidates)
        return _other(adapter, session, text, view, why)
    _taken_over(adapter, outcome, edits=command.name in _EDITING)
    return {"result": "\n".join(lines(outcome.answer)), "variablesReference": 0}


def _other(adapter: Adapter, session: Session, text: str, view: View, refused: Refused) -> Body:
    """An expression, such as a tensor with the name of a command; what is neither is refused as what it looks like."""
    try:
        return _expression(adapter, session, text, view)
    except Refused as other:
        first = text.partition(" ")[0]
        known = first in tensors_by_name(session.state.program)
        if first in NAMES or (first != text and first.isalpha() and not known):
            raise refused from None
        if first == text and first.isalpha():
            both = f"{refused.message}; {other.message}"
            raise Refused(both, refused.candidates or other.candidates) from None
        raise


def _taken_over(adapter: Adapter, outcome: Outcome, *, edits: bool) -> None:
    """The session after a command; the client is told, after the response, what became of it."""
    answer = outcome.answer
    if isinstance(answer, Stop):
        adapter.become(outcome.session)
        adapter.after(lambda: stopped(adapter, outcome, told=True))
    elif isinstance(answer, Quit):
        adapter.after(lambda: terminated(adapter))
    elif edits:
        adapter.current = outcome.session
        announce_edit(adapter, ())
    else:
        adapter.become(outcome.session)


# ---- Completions ------------------------------------------------------------------------------


def _completions(adapter: Adapter, given: Arguments) -> Body:
    text, column = given.text("text"), adapter.client.own_column(given.whole("column"))
    line = given.maybe_whole("line")
    rows = text.splitlines() or [""]
    row = rows[min(max(adapter.client.own_line(line) - 1, 0), len(rows) - 1)] if line is not None else text
    front = _units(row, column - 1)
    session = adapter.looking(given.maybe_whole("frameId"))
    start, candidates = completed(session, front)
    position = len(front[:start].encode("utf-16-le")) // 2
    targets: list[Json] = [
        {
            "label": label,
            "type": what,
            "start": adapter.client.column(position + 1),
            "length": len(front[start:].encode("utf-16-le")) // 2,
        }
        for label, what in candidates
    ]
    return {"targets": targets}


def _units(text: str, count: int) -> str:
    """The first UTF-16 code units of a text."""
    return text.encode("utf-16-le", "surrogatepass")[: 2 * max(count, 0)].decode("utf-16-le", "replace")


# ---- Changed expressions ----------------------------------------------------------------------


def _set_expression(adapter: Adapter, given: Arguments) -> Body:
    check_edits(adapter)
    text, value = given.text("expression"), given.text("value")
    session = adapter.looking(given.maybe_whole("frameId"))
    instance, _ = tensor_and_subscripts(expression(session, text), context(session))
    edited(adapter, f"set {text} = {value}", instance, frame=session.frame)
    item = expression_item(replace(adapter.session, frame=session.frame), text, view_of(given))
    return changed(adapter, item, (session.frame, "evaluate", text, 0))


HANDLERS = (
    Handler("evaluate", _evaluate, {"supportsEvaluateForHovers": True, "supportsClipboardContext": True}),
    Handler(
        "completions", _completions, {"supportsCompletionsRequest": True, "completionTriggerCharacters": [" ", "["]}
    ),
    Handler("setExpression", _set_expression, {"supportsSetExpression": True}),
)
