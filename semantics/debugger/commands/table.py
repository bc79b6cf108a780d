"""The one table of commands: every face looks a line up here and gets data back. Nothing is printed."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from ...errors import ModelError, Unsupported
from ...model.path import quote
from ..display.answers import Answer, Note, Quit, Refusal, Rows, Stop
from ..expressions import FUNCTIONS, SPECIALS
from ..inspection.items import said as said_name
from ..session.session import Command, Outcome, Said, Session, answered, none, words
from ..stops import KINDS
from ..timeline.history import Refused
from ..timeline.names import function_called, name_of_call, tensors_by_name
from . import against, files, motion, python, queries, scripting, stops, supply, timeline, values
from .scripting import displayed

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:]*")


def execute(session: Session, line: str) -> Outcome:
    """The session after a command line, and the answer; a Refusal leaves the session as it was."""
    if "\0" in line:  # no file has a name with it
        return Outcome(session, Refusal("a command has no NUL character"))
    try:
        command, arguments = lookup(line)
        outcome = command.run(session, arguments)
        if isinstance(outcome.answer, Stop) and outcome.session.displays:
            outcome = replace(outcome, answer=replace(outcome.answer, displayed=displayed(outcome.session)))
        if command.keeps and outcome.session != session:
            timeline = session.timelines.index(session.history)
            again = Said(timeline, session.index, session.frame, outcome.again or line.strip())
            return replace(outcome, session=replace(outcome.session, log=(*outcome.session.log, again)))
        return outcome
    except Refused as refused:
        return Outcome(session, Refusal(refused.message, refused.candidates))
    except (ModelError, Unsupported) as error:
        return Outcome(session, Refusal(str(error)))
    except MemoryError:
        return Outcome(session, Refusal("there is no memory for this: ask about fewer elements, or a smaller part"))
    except RecursionError:
        return Outcome(session, Refusal("this lies too deep"))


def lookup(line: str) -> tuple[Command, str]:
    """The command of a line, and its arguments. A name may be cut short as long as one command is meant.

    Raises Refused, with the candidates, where there are several, and where there is none.
    """
    text = line.strip()
    first, _, rest = text.partition(" ")
    command = _one(first, {name: it for name, it in NAMES.items() if " " not in name}, "command")
    if command.name not in FAMILIES:
        return command, rest.strip()
    second, _, rest = rest.strip().partition(" ")
    members = {name.partition(" ")[2]: it for name, it in NAMES.items() if name.startswith(f"{command.name} ")}
    if not second:
        raise Refused(f"{command.name} of what?", tuple(f"{command.name} {it}" for it in sorted(members)))
    return _one(second, members, f"command {command.name}"), rest.strip()


def completions(session: Session, line: str) -> tuple[str, ...]:
    """The words that the last word of a line may become, sorted: commands, then tensors or nodes."""
    front, _, last = line.rpartition(" ")
    if not front.strip():
        return tuple(sorted(name for name in NAMES if name.startswith(last) and " " not in name))
    if front.strip() in FAMILIES:
        head = f"{front.strip()} "
        return tuple(sorted(n[len(head) :] for n in NAMES if n.startswith(head + last)))
    try:
        command, _ = lookup(front)
    except Refused:
        return ()
    if command.name == "help":
        return tuple(sorted(name for name in NAMES if name.startswith(last)))
    said = words(front)
    if command.completes == "file" or (command.name == "set" and said[-1] == "from"):
        return _files(last)
    if "if" in said:
        return tuple(text for text, _ in _tokens(session, last, every=True))
    if command.completes == "fault" and len(said) == 1:
        return tuple(sorted(it for it in KINDS if it.startswith(last)))
    if command.completes == "stop":
        return tuple(it for it in (str(stop.number) for stop in session.stops) if it.startswith(last))
    model = session.model
    known: set[str] = set()
    if command.completes == "tensor":
        known = {said_name(name) for name in tensors_by_name(session.state.program) if name}
    if command.completes == "node" or (command.completes == "fault" and said[-1] == "at"):
        calls = {call for node in model.nodes for call in node.calls}
        pool = {*(node.name for node in model.nodes), *map(name_of_call, calls), *map(function_called, calls)}
        known = {name if _PLAIN.fullmatch(name) else quote(name) for name in pool if name}
        known |= {node.op_type for node in model.nodes if node.op_type.isidentifier()}
    return tuple(sorted(name for name in known if name.startswith(last)))


def _files(start: str) -> tuple[str, ...]:
    """The files and folders whose path begins so; names with blanks or signs that no terminal shows are left out."""
    folder = start[: start.rfind("/") + 1]
    try:
        names = [f"{folder}{it.name}{'/' if it.is_dir() else ''}" for it in Path(folder or ".").iterdir()]
    except (OSError, ValueError):
        return ()
    return tuple(sorted(it for it in names if it.startswith(start) and it.isprintable() and " " not in it))


def _one(text: str, names: dict[str, Command], what: str) -> Command:
    if text in names:
        return names[text]
    meant = {
        it.name: it for name, it in names.items() if text and name.startswith(text) and name == it.name.split()[-1]
    }
    if len(meant) == 1:
        return next(iter(meant.values()))
    if meant:
        raise Refused(f"{quote(text)} can mean several commands", tuple(sorted(meant)))
    close = get_close_matches(text, sorted(names), 3)
    raise Refused(f"there is no {what} {quote(text)}: see help", tuple(close))


# ---- Help -------------------------------------------------------------------------------------


def _help(_session: Session, text: str) -> Answer:
    if text.strip():
        command = NAMES.get(text.strip()) or lookup(text)[0]
        lines = [f"{command.name} {command.usage}".rstrip(), command.summary]
        if command.aliases:
            lines.append(f"also: {', '.join(command.aliases)}")
        lines += [f"example: {it}" for it in command.examples]
        return Note(tuple(lines))
    rows = tuple(
        (f"{it.name} {it.usage}".rstrip(), ", ".join(it.aliases), it.summary)
        for it in COMMANDS
        if it.name not in FAMILIES
    )
    notes = (
        "A name may be cut short as long as it means one command; an empty line repeats the last move.",
        "Commands on one line stand between semicolons. A session begins with the lines of ~/.sonnxrc.",
        "Names that are no identifiers stand in double quotes, paths in backquotes, texts in single quotes.",
    )
    return Rows("commands", ("command", "short", "what it does"), rows, notes)


def _quit(session: Session, text: str) -> Outcome:
    none(text)
    return Outcome(session, Quit())


def _family(session: Session, text: str) -> Outcome:
    raise Refused("give the second word of the command")


COMMANDS: Final[tuple[Command, ...]] = (
    *motion.COMMANDS,
    *stops.COMMANDS,
    *values.COMMANDS,
    *queries.COMMANDS,
    *against.COMMANDS,
    *timeline.COMMANDS,
    *supply.COMMANDS,
    *scripting.COMMANDS,
    *python.COMMANDS,
    *files.COMMANDS,
    files.load(execute, lookup),
    Command("info", _family, "A table; see the commands that begin with it.", "WHAT"),
    Command("help", answered(_help), "All commands, or one with examples.", "[COMMAND]", ("h",), ("help break",)),
    Command("quit", _quit, "End the session.", "", ("q", "exit"), ("quit",)),
)
"""All commands, in the order in which help shows them."""

FAMILIES: Final = frozenset(("info",))
"""The commands of two words."""

NAMES: Final = {name: it for it in COMMANDS for name in (it.name, *it.aliases)}
"""The commands by name and alias."""


# ---- Completion in a debug console ----------------------------------------------------------------

_TOKEN: Final = re.compile(r"""(?:"(?:[^"\\]|\\.)*|\$?[A-Za-z0-9_.]*)$""")
_MANY: Final = 200

Completion = tuple[str, str]
"""Words that may stand there, and their kinds: keyword, variable, function."""


def completed(session: Session, line: str) -> tuple[int, tuple[Completion, ...]]:
    """From which character of the line on something may stand in place of what is there, and what; at most 200."""
    word = line.rpartition(" ")[2]
    head = line[: len(line) - len(word)]
    command = _command(head)
    if not head.strip():
        names = tuple((it, "keyword") for it in completions(session, line))
        return len(head), (*names, *(it for it in _tokens(session, word) if it not in names))[:_MANY]
    candidates = completions(session, line)
    if candidates:
        what = "variable" if command is not None and command.completes == "tensor" else "keyword"
        return len(head), tuple((it, what) for it in candidates[:_MANY])
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


def _tokens(session: Session, token: str, *, every: bool = False) -> tuple[Completion, ...]:
    """Names of tensors, functions and facts that begin like a token; for an empty one none, or `every` one."""
    if not token and not every:
        return ()
    known = tensors_by_name(session.state.program)
    names = sorted({said_name(it) for it in known if it.startswith(token) or said_name(it).startswith(token)})
    functions = sorted(it for it in FUNCTIONS if it.startswith(token))
    facts = sorted(f"${it}" for it in SPECIALS if f"${it}".startswith(token))
    variables = ((it, "variable") for it in (*names[:_MANY], *facts))
    return (*variables, *((it, "function") for it in functions))
