"""Commands that go past a node with values from outside, on a timeline of its own: supplied, or through an engine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from ...machine.state import tensor_path
from ...model.elements import DTYPES
from ...model.graph import TensorId
from ...model.path import quote
from ...model.values import Value
from ..display.answers import Note, Stop
from ..expressions import Context, Expression, Operation, evaluate, instance_of, parse
from ..expressions import Number as Numeral
from ..session.motion import step
from ..session.session import Command, Outcome, Session, context, expression, moved, unquoted, words
from ..supplying import SUFFIXES, Giver, always, computed, engine_named, from_file, supplied, through
from ..timeline.history import History, Moment, Refused, Supplies
from ..timeline.names import one_node
from .timeline import elements_of_type

_ITEM: Final = re.compile(r"""(?:^|(?<=\s))("(?:[^"\\]|\\.)*"|`[^`]*`|[^\s"'`=<>,]*[^\s"'`=<>!,])\s*=(?!=)""")
_PINNED: Final = re.compile(r"(.*?)\s+sha256\s+([0-9a-f]{64})", re.DOTALL)
_HIDDEN: Final = re.compile(r"'[^']*'|\[[^\]]*\]|\([^)]*\)")


@dataclass(frozen=True, slots=True)
class _Given:
    """What an argument gives. run: the path of the tensor where one run of a body is meant. again: the argument that
    gives the same later."""

    tensor: TensorId
    giver: Giver
    source: str
    run: str | None
    again: str


def _supply(session: Session, text: str) -> Outcome:
    every, text = _every(text)
    given = _items(session, text)
    givers = {it.tensor: (it.giver, it.source) for it in given}
    again = f"supply {'every ' if every else ''}{' '.join(it.again for it in given)}"
    if every:
        for it in given:
            _check_whole(session, it, givers)
        names = ", ".join(f"{_named(session, it)} {it.source}" for it in given)
        supplier = always(givers, {it.tensor: it.run for it in given if it.run is not None})
        return _always(session, Supplies(f"supplied whenever it comes: {names}", always=supplier), again)
    _check_next(session, given)
    supply = supplied(session.history, session.moment, givers)
    paths = ", ".join(tensor_path(session.state, t) for t in supply.values)
    what = f"{paths} supplied {supply.source} at {session.index + 1}"
    return _past(session, Supplies(what, given=supply), again)


def _through(session: Session, text: str) -> Outcome:
    every, text = _every(text)
    parts = words(text)
    if len(parts) != 1:
        raise Refused("through what? One engine, such as onnxruntime, reference, numpy or backend:MODULE")
    engine = engine_named(unquoted(parts[0]))
    again = f"through {'every ' if every else ''}{parts[0]}"
    if every:
        what = f"operators without a meaning computed by {f'{engine.name} {engine.version}'.rstrip()}"
        return _always(session, Supplies(what, always=through(engine)), again)
    moment = session.moment
    if moment.next is None or moment.next == moment.state.frame.holder:
        raise Refused("no node comes next here that an engine could compute")
    supply = computed(engine, moment.state, moment.next)
    paths = ", ".join(tensor_path(session.state, t) for t in supply.values)
    return _past(session, Supplies(f"{paths} computed {supply.source} at {session.index + 1}", given=supply), again)


def _every(text: str) -> tuple[bool, str]:
    first, _, rest = text.strip().partition(" ")
    return (True, rest) if first == "every" and not rest.lstrip().startswith("=") else (False, text.strip())


# ---- Arguments ------------------------------------------------------------------------------------


def _items(session: Session, text: str) -> list[_Given]:
    shown = _HIDDEN.sub(lambda it: "_" * len(it[0]), text)
    starts = list(_ITEM.finditer(shown))
    if not starts or shown[: starts[0].start()].strip():
        raise Refused(
            "say supply NAME=FILE or NAME=EXPR for each output of the node: files end with .npy, .npz, .pb, .json"
        )
    ends = [*(it.start() for it in starts[1:]), len(text)]
    given = [
        _item(session, text[it.start(1) : it.end(1)], text[it.end() : end].strip())
        for it, end in zip(starts, ends, strict=True)
    ]
    if len({it.tensor for it in given}) < len(given):
        raise Refused("a tensor is given twice: give it once")
    return given


def _item(session: Session, name: str, value: str) -> _Given:
    t, run = _tensor(session, name)
    plain = session.model.tensors[t].name
    match = _PINNED.fullmatch(value)
    file, digest = (match[1], match[2]) if match is not None else (value, None)
    if unquoted(file).lower().endswith(SUFFIXES):
        path = Path(unquoted(file))
        found = _digest(path)
        if digest not in (None, found):
            raise Refused(f"{quote(file)} is not the file that was read then: its SHA-256 is {found}")
        again = f"{name}={file} sha256 {found}"
        return _Given(t, from_file(path, plain), f"from {quote(path.name)}", run, again)
    said = parse(unquoted(value) if value[:1] == "'" else value)
    return _Given(t, _of_expression(said, session.frame), f"as {unquoted(value)}", run, f"{name}={value}")


def _tensor(session: Session, name: str) -> tuple[TensorId, str | None]:
    """The tensor that a name means, of a tensor or of a node with one output; its path where it names a run."""
    try:
        instance = instance_of(expression(session, name), context(session))
    except Refused as refused:
        try:
            n = one_node(session.model, unquoted(name) if name[:1] != "`" else name[1:-1])
        except Refused:
            raise refused from None
        outputs = session.state.program.writes[n]
        if len(outputs) != 1:
            raise Refused(f"{session.model.nodes[n].path} has {len(outputs)} outputs: name them") from None
        return outputs[0], None
    return instance.tensor, instance.path if name[:1] == "`" and "@" in name else None


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise Refused(f"{quote(str(path))}: {error.strerror or error}") from None


def _of_expression(said: Expression, frame: int) -> Giver:
    def given(history: History, moment: Moment, t: TensorId) -> Value:
        declared = moment.state.program.model.tensors[t].declared
        made = evaluate(said, Context(history, moment.index, frame))
        if isinstance(made, str):
            raise Refused("the value is a number or a tensor")
        element = "" if declared is None else declared.element
        if not isinstance(made, np.ndarray):
            return made
        if element in DTYPES:
            made = elements_of_type(made, DTYPES[element])
        elif isinstance(said, Numeral | Operation):
            raise Refused("the model declares no type here: give a file, or the name of a tensor of that type")
        shape = None if declared is None else declared.shape
        if not made.shape and shape and all(isinstance(it, int) and it >= 0 for it in shape):
            made = np.broadcast_to(made, tuple(it for it in shape if isinstance(it, int)))
        return made

    return given


def _check_next(session: Session, given: list[_Given]) -> None:
    """Refuses tensors that the next node does not give."""
    moment = session.moment
    if moment.next is None or moment.next == moment.state.frame.holder:
        raise Refused("no node comes next here whose outputs could be supplied")
    own = session.state.program.writes[moment.next]
    for it in given:
        path = session.model.tensors[it.tensor].path
        if it.tensor not in own or it.run not in (None, tensor_path(session.state, it.tensor)):
            node = session.model.nodes[moment.next].path
            raise Refused(f"{it.run or path} is no output of {node}, which comes next; `supply every` is for later")


def _check_whole(session: Session, it: _Given, givers: Mapping[TensorId, object]) -> None:
    """Refuses a tensor that no node writes, and a node of which only some outputs are given."""
    program = session.state.program
    n = program.producers.get(it.tensor)
    if n is None:
        raise Refused(f"{program.model.tensors[it.tensor].path} is the output of no node: set changes it")
    lacking = [quote(program.model.tensors[t].name) for t in program.writes[n] if t not in givers]
    if lacking:
        raise Refused(
            f"{program.model.nodes[n].path} gives {', '.join(lacking)} too: supply all outputs of the node at once"
        )


def _named(session: Session, it: _Given) -> str:
    return it.run or session.model.tensors[it.tensor].path


# ---- Timelines ------------------------------------------------------------------------------------


def _forked(session: Session, supplies: Supplies) -> tuple[Session, str]:
    number = len(session.timelines)
    history = session.history.supplying(session.index, supplies)
    forked = moved(replace(session, history=history, timelines=(*session.timelines, history)), session.index)
    return forked, f"timeline {number}: {history.label}; this is no execution of the model and cannot be certified"


def _always(session: Session, supplies: Supplies, again: str) -> Outcome:
    forked, sentence = _forked(session, supplies)
    return Outcome(forked, Note((sentence,)), again)


def _past(session: Session, supplies: Supplies, again: str) -> Outcome:
    """One step with the values that are supplied."""
    forked, sentence = _forked(session, supplies)
    outcome = step(forked, 1, forward=True)
    if isinstance(outcome.answer, Stop):
        return replace(outcome, answer=replace(outcome.answer, notes=(sentence, *outcome.answer.notes)), again=again)
    return replace(outcome, again=again)


COMMANDS = (
    Command("supply", _supply, "Give the outputs of the node that comes next values from outside and go past it, on a"
            " timeline of its own; every: whenever their nodes come. What ends with .npy, .npz, .pb, .json is a file.",
            "[every] NAME=FILE|EXPR ...", (),
            ("supply y=y.npy", "supply y=2*x", "supply scores=s.npy boxes=b.npy", "supply every y=y.npy"), "tensor",
            keeps=True),
    Command("through", _through, "Have an engine compute the node that comes next, on a timeline of its own; every: all"
            " nodes without a meaning.", "[every] ENGINE", (),
            ("through onnxruntime", "through every backend:my.runtime"), "", keeps=True),
)  # fmt: skip
