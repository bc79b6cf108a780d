"""Commands about timelines: bookmarks, edits that fork one, and going from one to another."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...model.elements import decode, element_of, encode, is_float
from ...model.values import Array
from ..display.answers import Answer, Note, Rows
from ..display.texts import element_text
from ..expressions import element_meant, evaluate, instance_of, parse
from ..session.motion import seek
from ..session.session import Command, Outcome, Session, answered, context, expression, moved, none, where, whole, words
from ..timeline.history import History, NoValue, Refused
from ..timeline.names import Instance, value_of_instance, with_value

_ASSIGNED: Final = re.compile(r"""((?:[^="'`]|"(?:[^"\\]|\\.)*"|`[^`]*`)*)=(.*)""", re.DOTALL)
_BOOKMARK: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,40}")


# ---- Edits ------------------------------------------------------------------------------------


def _set(session: Session, text: str) -> Outcome:
    said = _ASSIGNED.fullmatch(text)
    if said is None:
        raise Refused("say set T[i] = VALUE")
    left, right = said.groups()
    instance, index, value = element_meant(expression(session, left), context(session))
    new = evaluate(parse(right), context(session))
    if not isinstance(new, np.ndarray) or new.size != 1:
        raise Refused("the new value is one number")
    changed = np.array(value)
    changed[index] = element_of_type(new, value.dtype)
    changed.flags.writeable = False
    shown = element_text(np.asarray(changed[index], changed.dtype))
    return _edited(session, instance, changed, f"{instance.path}{list(index)} set to {shown} at {session.index}")


def _poke(session: Session, text: str) -> Outcome:
    said = words(text)
    if len(said) != 3:
        raise Refused("say poke T OFFSET BYTES")
    instance = instance_of(expression(session, said[0]), context(session))
    offset, data = whole(said[1]), _bytes(said[2])
    value = value_of_instance(session.history, session.index, instance)
    if value is None:
        raise NoValue(f"{instance.path} has no value yet")
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        raise Refused("bytes are changed in tensors of numbers only")
    old = bytes(encode(value))
    if offset + len(data) > len(old):
        raise Refused(f"{instance.path} has {len(old)} bytes")
    new = decode(old[:offset] + data + old[offset + len(data) :], element_of(value.dtype), value.shape)
    what = f"{len(data)} bytes of {instance.path} from byte {offset} on set at {session.index}"
    return _edited(session, instance, new, what)


def _bytes(text: str) -> bytes:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise Refused("bytes are given in hexadecimal, two digits each") from None
    if not data:
        raise Refused("give at least one byte")
    return data


def _edited(session: Session, instance: Instance, value: Array, what: str) -> Outcome:
    """The session on a timeline of its own, on which a tensor has another value."""
    state = with_value(session.state, instance, value)
    history = session.history.edited(state, f"{session.history.label}; {what}".lstrip("; "))
    return _forked(session, history)


def element_of_type(new: NDArray[np.generic], dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """A number as an element of this type, rounded to nearest. Raises Refused where the type has no such number."""
    if dtype.hasobject:
        raise Refused("a text cannot be set")
    number = new.reshape(())
    if dtype == np.bool_:
        if number.item() not in (0, 1):
            raise Refused("an element of this tensor is true or false")
        return number.astype(np.bool_)
    with np.errstate(all="ignore"):
        made = number.astype(dtype)
    if not is_float(dtype) and dtype.kind != "c":
        given = number.item()
        if not np.isfinite(float(given)) or Fraction(given) != int(made):
            raise Refused(f"{given} is no {element_of(dtype)}")
    return made


def _forked(session: Session, history: History) -> Outcome:
    forked = moved(replace(session, history=history, timelines=(*session.timelines, history)), session.index)
    number = len(forked.timelines) - 1
    sentence = f"timeline {number}: {history.label}; this is no execution of the model and cannot be certified"
    return Outcome(forked, Note((sentence,)))


# ---- Timelines and bookmarks ------------------------------------------------------------------


def _timeline(session: Session, text: str) -> Outcome:
    if not text.strip():
        rows = tuple(
            (
                f"{i}{'*' if it is session.history else ''}",
                str(it.first),
                str(it.last),
                it.label or "the model's execution",
            )
            for i, it in enumerate(session.timelines)
        )
        return Outcome(session, Rows("timelines", ("number", "from", "known to", "what"), rows))
    number = whole(text)
    if number >= len(session.timelines):
        raise Refused(f"there are the timelines 0 to {len(session.timelines) - 1}")
    changed = replace(session, history=session.timelines[number])
    return seek(changed, session.index)


def _bookmark(session: Session, text: str) -> Outcome:
    name = text.strip()
    if not name:
        rows = tuple((key, str(timeline), str(index)) for key, (timeline, index) in sorted(session.bookmarks.items()))
        return Outcome(session, Rows("bookmarks", ("name", "timeline", "step"), rows))
    if not _BOOKMARK.fullmatch(name):
        raise Refused("a bookmark is a word of letters, digits, - and _")
    at = session.timelines.index(session.history), session.index
    changed = replace(session, bookmarks={**session.bookmarks, name: at})
    return Outcome(changed, Note((f"bookmark {name}: step {session.index}",)))


def _when(session: Session, text: str) -> Answer:
    none(text)
    now = where(session)
    known = f"{session.history.last}{'' if session.history.ended else ' or more'}"
    return Note((f"step {now.index} of {known}, phase {now.phase} of 5, line {now.line}",))


COMMANDS = (
    Command("set", _set, "Change an element and go on from there, on a timeline of its own.", "T[i] = VALUE", (),
            ("set x[0, 1] = 2.5",), "tensor", keeps=True),
    Command("poke", _poke, "Change bytes of a tensor and go on from there, on a timeline of its own.",
            "T OFFSET BYTES", (), ("poke x 4 0000803f",), "tensor", keeps=True),
    Command("timeline", _timeline, "Show the timelines, or go to one.", "[NUMBER]", (), ("timeline", "timeline 0"),
            keeps=True),
    Command("bookmark", _bookmark, "Name this position; seek goes there.", "[NAME]", (), ("bookmark before",),
            keeps=True),
    Command("when", answered(_when), "Say how far the execution is.", "", (), ("when",)),
)  # fmt: skip
