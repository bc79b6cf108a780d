"""Commands that set and remove breakpoints, watches and catches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from ...model.graph import GraphId
from ...model.path import quote, resolve
from ...operators.application import Program
from .. import expressions
from ..against.judging import Comparison
from ..display.answers import Note
from ..session.session import Command, Outcome, Session, context, expression, line_meant, option, unquoted, whole, words
from ..stops import KINDS, Breakpoint, Catch, Reference, Stop, Watch, count_of, describe, message_of, open_reference
from ..timeline.history import Refused, is_end_of_body
from ..timeline.names import (
    Instance,
    Nodes,
    nodes_meant,
    returns_meant,
    stored_region,
    tensors_by_name,
    value_of_instance,
)

CHANGES = ("old", "new")
"""Facts of a write, for the condition of a watch."""


def condition_of(program: Program, text: str) -> expressions.Expression:
    """The condition that a text says. Raises Refused for names that the model and the language do not have."""
    condition = expressions.parse(text)
    for part in _parts(condition):
        match part:
            case expressions.Name(name=name):
                known = tensors_by_name(program)
                if name not in known:
                    close = tuple(quote(it) for it in get_close_matches(name, known, 5))
                    raise Refused(f"there is no tensor {quote(name)}", close)
            case expressions.PathName(path=path):
                _resolved(program, path)
            case expressions.Special(name=name) if name not in expressions.SPECIALS and name not in CHANGES:
                raise Refused(f"there is no ${name}", tuple(f"${it}" for it in (*expressions.SPECIALS, *CHANGES)))
            case expressions.Operation(name=name, call=True) if name not in expressions.FUNCTIONS:
                raise Refused(f"there is no function {quote(name)}", tuple(expressions.FUNCTIONS))
            case _:
                pass
    if isinstance(condition, expressions.Text):
        raise Refused("a condition is one number or truth value")
    return condition


def _resolved(program: Program, path: str) -> None:
    try:
        target = resolve(program.model, path)
    except ValueError as error:
        raise Refused(str(error)) from None
    if target is None:
        raise Refused(f"{quote(path)} is no tensor of the model")


def _parts(expression: expressions.Expression) -> Iterator[expressions.Expression]:
    """The expression and all that it is made of."""
    yield expression
    match expression:
        case expressions.Sliced(of=of, subscripts=subscripts):
            yield from _parts(of)
            for it in subscripts:
                ends = (it.start, it.stop, it.step) if isinstance(it, expressions.Range) else (it,)
                for end in ends:
                    if isinstance(
                        end,
                        expressions.Number
                        | expressions.Text
                        | expressions.Special
                        | expressions.Name
                        | expressions.PathName
                        | expressions.Sliced
                        | expressions.Operation,
                    ):
                        yield from _parts(end)
        case expressions.Operation(arguments=arguments):
            for argument in arguments:
                yield from _parts(argument)
        case _:
            pass


_BYTES: Final = re.compile(r"@\s*(0[xX][0-9a-fA-F]{1,13}|[0-9]{1,15})\s*(?::\s*([0-9]{1,15}))?")


def _split(session: Session, text: str) -> tuple[str, expressions.Expression | None]:
    """The text before ` if `, and the condition behind it."""
    parts = words(text)
    if "if" not in parts:
        return text.strip(), None
    at = parts.index("if")
    return " ".join(parts[:at]), condition_of(session.state.program, " ".join(parts[at + 1 :]))


def _added(session: Session, stop: Stop) -> Outcome:
    kind, text, extra = describe(stop)
    sentence = f"{stop.number}: {kind} {text} {extra}".rstrip()
    return Outcome(replace(session, stops=(*session.stops, stop), number=session.number + 1), Note((sentence,)))


# ---- Breakpoints ------------------------------------------------------------------------------


def _break(*, once: bool) -> Callable[[Session, str], Outcome]:
    def run(session: Session, text: str) -> Outcome:
        text, condition = _split(session, text)
        text, hit = option(text, "hit")
        nodes = _nodes(session, text.strip())
        count = None if hit is None else count_of(hit)
        return _added(session, Breakpoint(session.number, nodes.text, nodes, condition, count, once))

    return run


def _log(session: Session, text: str) -> Outcome:
    text, condition = _split(session, text)
    text, hit = option(text, "hit")
    text, message = option(text, "says")
    if message is None:
        raise Refused('say log NODE says "TEXT with {expressions}"')
    said = _text(message)
    nodes = _nodes(session, text.strip())
    count = None if hit is None else count_of(hit)
    return _added(session, Breakpoint(session.number, nodes.text, nodes, condition, count, log=message_of(said)))


def _text(word: str) -> str:
    """A text in quotes, or one word."""
    if len(word) > 1 and word[0] == word[-1] == '"':
        try:
            decoded = json.loads(word)
        except ValueError:
            raise Refused(f"{word} is no text in quotes") from None
        return str(decoded)
    return unquoted(word)


def _nodes(session: Session, text: str) -> Nodes:
    """What stands on a line, what a text means, or what comes next where nothing is said."""
    moment = session.moment
    if text == "return" or (not text and (moment.next is None or is_end_of_body(moment))):
        return _return_of(session, moment.state.frame.graph)
    if not text and moment.next is not None:
        return Nodes(session.model.nodes[moment.next].path, frozenset((moment.next,)))
    if text.isdecimal():
        line = session.listing.stop_at(line_meant(session, text))
        if line.kind == "call":
            return Nodes(line.call, frozenset(), frozenset((line.call,)))
        if line.node is None:
            return _return_of(session, line.graph or 0)
        return Nodes(session.model.nodes[line.node].path, frozenset((line.node,)))
    return nodes_meant(session.model, text[1:-1] if text[0] in '"`' and text[-1] == text[0] else text)


def _return_of(session: Session, graph: GraphId) -> Nodes:
    return returns_meant(session.model, session.model.graphs[graph].path)


# ---- Watches ----------------------------------------------------------------------------------


def _watch(access: str) -> Callable[[Session, str], Outcome]:
    def run(session: Session, text: str) -> Outcome:
        text, condition = _split(session, text)
        text, times = option(text, "hit")
        count = None if times is None else count_of(times)
        match = _BYTES.fullmatch(text)
        if match is not None:
            wanted = _range_of(match)
            return _added(session, Watch(session.number, text, access, bytes=wanted, condition=condition, hit=count))
        said = expression(session, text)
        where = context(session)
        instance, subscripts = expressions.tensor_and_subscripts(said, where)
        if access in ("write", "change"):
            _check_written(session, instance)
        element = None
        if subscripts:
            value = value_of_instance(session.history, session.index, instance)
            shape = getattr(value, "shape", None)
            declared = session.model.tensors[instance.tensor].declared
            sizes = shape if shape is not None else None if declared is None else declared.shape
            known = (
                (1 << 53,) * len(subscripts)
                if sizes is None
                else tuple(it if isinstance(it, int) else 1 << 53 for it in sizes)
            )
            element = expressions.indices(subscripts, known, where)
        inner = getattr(said, "of", said)
        path = instance.path if isinstance(inner, expressions.PathName) and "@" in inner.path else ""
        made = Watch(session.number, text, access, instance.tensor, path, element, condition=condition, hit=count)
        return _added(session, made)

    return run


def _range_of(match: re.Match[str]) -> tuple[int, int]:
    """The first byte and how many there are. Raises Refused where there is none."""
    text, length = match[1].lower(), int(match[2] or 1)
    if not length:
        raise Refused(f"{match[0]} has no bytes: give a length of at least 1 behind the colon")
    return int(text, 16 if text.startswith("0x") else 10), length


def _check_written(session: Session, instance: Instance) -> None:
    """Refuses tensors that no step writes."""
    stored = stored_region(session.history.at(0).state, instance.tensor) is not None
    if stored or instance.tensor in session.model.graphs[0].inputs:
        what = "is stored in the model" if stored else "is an input"
        raise Refused(f"{instance.path} {what}: no step writes it; rwatch stops where it is read")


# ---- Catches ----------------------------------------------------------------------------------


def catch_meant(session: Session, text: str, verb: str) -> Catch:
    """The catch that a text means. Raises Refused."""
    parts = words(text)
    what = parts[0] if parts else ""
    matching = [what] if what in KINDS else [it for it in KINDS if what and it.startswith(what)]
    if len(matching) != 1:
        raise Refused(f"{verb} what?", tuple(matching or KINDS))
    everywhere = verb == "find" or "everywhere" in parts[1:]
    text, at = option(" ".join(it for it in parts[1:] if it != "everywhere"), "at")
    of = None if at is None else nodes_meant(session.model, at)
    reference: Reference | Comparison | None = None
    if matching[0] == "divergence":
        if not text.strip() and session.against is None:
            raise Refused(
                f"{verb} divergence needs a recorded run (sonnx run --trace FILE makes one), or say against first"
            )
        named = open_reference(Path(unquoted(text.strip())), session.model) if text.strip() else None
        reference = session.against if named is None else named
    elif text.strip():
        raise Refused(f"{verb} {matching[0]} takes no {quote(text.strip())}")
    return Catch(session.number, matching[0], matching[0], of, reference, everywhere=everywhere or of is not None)


def _catch(session: Session, text: str) -> Outcome:
    text, condition = _split(session, text)
    return _added(session, replace(catch_meant(session, text, "catch"), condition=condition))


# ---- All of them ------------------------------------------------------------------------------


def _changed(change: Callable[[Stop], Stop | None], verb: str) -> Callable[[Session, str], Outcome]:
    def run(session: Session, text: str) -> Outcome:
        numbers = {whole(it, least=1) for it in words(text)} or {it.number for it in session.stops}
        missing = numbers - {it.number for it in session.stops}
        if missing:
            raise Refused(f"there is no stop {min(missing)}: see info breakpoints")
        kept = (change(it) if it.number in numbers else it for it in session.stops)
        done = replace(session, stops=tuple(it for it in kept if it is not None))
        mine = [str(it) for it in sorted(numbers)]
        return Outcome(done, Note((f"{verb}d: {', '.join(mine) or 'none'}",)), f"{verb} {' '.join(mine)}")

    return run


def _condition(session: Session, text: str) -> Outcome:
    first, _, rest = text.strip().partition(" ")
    number, condition = whole(first, least=1), condition_of(session.state.program, rest) if rest.strip() else None
    if not any(it.number == number and not isinstance(it, Catch) for it in session.stops):
        raise Refused(f"there is no breakpoint or watch {number}")
    stops = tuple(
        replace(it, condition=condition) if it.number == number and not isinstance(it, Catch) else it
        for it in session.stops
    )
    return Outcome(replace(session, stops=stops), Note((f"condition of {number}: {rest.strip() or 'none'}",)))


COMMANDS = (
    Command("break", _break(once=False), "Stop before a node fires, a call begins or a graph returns: by line, path,"
            " name, operator, function or glob.", "[LINE|NODE|return [GRAPH]] [hit N] [if EXPR]", ("b",),
            ("break 12", "break op:Conv", "break conv_*", "break function:local::F", "break op:Add if x[0] > 1",
             "break return /3:Loop.body", "break /3:Loop.body@2/0:Add hit 1"), "node", keeps=True),
    Command("tbreak", _break(once=True), "The same, once.", "[LINE|NODE] [hit N] [if EXPR]", (), ("tbreak 12",),
            "node", keeps=True),
    Command("log", _log, "Say something whenever a node comes next, and go on; {expressions} stand in braces.",
            "[LINE|NODE] says \"TEXT\" [hit N] [if EXPR]", (), ('log 12 says "run {$run}: {s[0]}"',), "node",
            keeps=True),
    Command("watch", _watch("write"), "Stop where a tensor, elements of it or bytes are written.",
            "TENSOR[SLICE]|@ADDRESS:LENGTH [hit N] [if EXPR]", (), ("watch y", "watch y[0, 1]", "watch @0x40:4",
             "watch y if any(isnan($new))"), "tensor", keeps=True),
    Command("cwatch", _watch("change"), "Stop where another value is written than was there before.",
            "TENSOR[SLICE]|@ADDRESS:LENGTH [hit N] [if EXPR]", (), ("cwatch h[0, 0]",), "tensor", keeps=True),
    Command("rwatch", _watch("read"), "Stop where a node reads a tensor or bytes of it.",
            "TENSOR|@ADDRESS:LENGTH [if EXPR]", (), ("rwatch x",), "tensor", keeps=True),
    Command("awatch", _watch("access"), "Stop where a tensor or bytes are read or written.",
            "TENSOR|@ADDRESS:LENGTH [if EXPR]", (), ("awatch x",), "tensor", keeps=True),
    Command("catch", _catch, "Stop where a value is nan, inf, overflow, subnormal, undefined, where a precondition"
            " fails, or at a divergence from a recorded run or from what `against`"
            " names. A nan or inf counts where a node that reads none"
            " writes it; `everywhere`, or at a named node, also where one is passed on.",
            "WHAT [FILE] [everywhere|at NODE] [if EXPR]", (), ("catch nan", "catch nan everywhere",
             "catch overflow at op:Exp", "catch inf if $op == 'Div'", "catch divergence run.trace"),
            "fault", keeps=True),
    Command("condition", _condition, "Give a breakpoint or watch a condition, or none.", "NUMBER [EXPR]", (),
            ("condition 1 x[0] > 2",), "stop", keeps=True),
    Command("delete", _changed(lambda _: None, "delete"), "Remove stops, all where none is named.", "[NUMBER ...]", (),
            ("delete 1",), "stop", keeps=True),
    Command("disable", _changed(lambda it: replace(it, enabled=False), "disable"), "Pass over stops.", "[NUMBER ...]",
            (), ("disable 1",), "stop", keeps=True),
    Command("enable", _changed(lambda it: replace(it, enabled=True), "enable"), "Mind stops again.", "[NUMBER ...]",
            (), ("enable 1",), "stop", keeps=True),
)  # fmt: skip
