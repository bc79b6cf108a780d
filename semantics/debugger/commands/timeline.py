"""Commands about timelines: bookmarks, edits that fork one, and going from one to another."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError
from ...machine.files.numpy_files import read_npy
from ...machine.state import tensor_path
from ...model.elements import BITS, decode, element_of, encode, is_float
from ...model.path import quote
from ...model.values import Array
from ..display.answers import Answer, Note, Rows, count
from ..display.texts import element_text
from ..expressions import evaluate, indices, instance_of, parse, tensor_and_subscripts
from ..session.motion import seek
from ..session.session import (
    Command,
    Outcome,
    Session,
    answered,
    context,
    expression,
    moved,
    none,
    unquoted,
    where,
    whole,
    words,
)
from ..timeline.history import Edit, NoValue, Refused
from ..timeline.names import Instance, frame_of, value_of_instance, with_value

_ASSIGNED: Final = re.compile(r"""((?:[^="'`]|"(?:[^"\\]|\\.)*"|`[^`]*`)*)=(.*)""", re.DOTALL)
_FROM: Final = re.compile(r"""(\S.*?)\s+from\s+("[^"]*"|'[^']*'|[^\s"'=]+)(?:\s+sha256\s+([0-9a-f]{64}))?""", re.DOTALL)
_BOOKMARK: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,40}")


# ---- Edits ------------------------------------------------------------------------------------


def _set(session: Session, text: str) -> Outcome:
    left, new, again = _assigned(session, text)
    instance, subscripts = tensor_and_subscripts(expression(session, left), context(session))
    value = _there(session, instance)
    index = indices(subscripts, value.shape, context(session))
    changed, mask = np.array(value), np.zeros(value.shape, np.bool_)
    mask[index] = True
    selected = int(mask.sum())
    if not selected:
        raise Refused("this selects no element")
    made = elements_of_type(new, value.dtype)
    if new.size == 1:
        changed[index] = made.reshape(())
    elif made.shape == changed[index].shape:
        changed[index] = made
    else:
        raise Refused(f"the new value has the shape {list(new.shape)}, what is set has {list(changed[index].shape)}")
    changed.flags.writeable = False
    at = list(index) if all(isinstance(it, int) for it in index) else ""
    what = f" set to {element_text(changed[mask])}" if selected == 1 else f" set, {selected} of {mask.size} elements,"
    return replace(_edited(session, instance, changed, mask, f"{at}{what}"), again=again)


def _assigned(session: Session, text: str) -> tuple[str, Array, str]:
    """The target and the new value that the arguments of `set` say, and the line that says them for good."""
    match = _FROM.fullmatch(text)
    if match is not None:
        left, file, digest = match.groups()
        new, found = _stored(Path(unquoted(file)))
        if digest not in (None, found):
            raise Refused(f"{quote(file)} is not the file that was read then: its SHA-256 is {found}")
        return left, new, f"set {left} from {file} sha256 {found}"
    said = _ASSIGNED.fullmatch(text)
    if said is None:
        raise Refused("say set T[i] = VALUE, or set T[i] from FILE.npy")
    made = evaluate(parse(said[2]), context(session))
    if not isinstance(made, np.ndarray):
        raise Refused("the new value is a number or a tensor of numbers")
    return said[1], made, ""


def _stored(path: Path) -> tuple[Array, str]:
    """The tensor in a file, and the SHA-256 of its bytes. Raises Refused."""
    shown = quote(str(path))
    try:
        value, digest = read_npy(path, None), hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise Refused(f"{shown}: {error.strerror or error}") from None
    except ModelError as error:
        raise Refused(f"{shown}: {error}") from None
    if not isinstance(value, np.ndarray):
        raise Refused(f"{shown} has no tensor of numbers")
    return value, digest


def _there(session: Session, instance: Instance) -> Array:
    """The value of a tensor that can be changed here. Raises Refused."""
    value = value_of_instance(session.history, session.index, instance)
    if value is None:
        raise NoValue(f"{instance.path} has no value yet")
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        raise Refused("only tensors of numbers are changed")
    if tensor_path(session.state, instance.tensor) != instance.path or not frame_of(session.state, instance.tensor):
        raise Refused(f"{instance.path} is of a run that is over: go back to where it runs, then change it")
    return value


def _poke(session: Session, text: str) -> Outcome:
    said = words(text)
    if len(said) != 3:
        raise Refused("say poke T OFFSET BYTES")
    instance = instance_of(expression(session, said[0]), context(session))
    offset, data = whole(said[1]), _bytes(said[2])
    value = _there(session, instance)
    old = bytes(encode(value))
    if offset + len(data) > len(old):
        raise Refused(f"{instance.path} has {len(old)} bytes")
    new = decode(old[:offset] + data + old[offset + len(data) :], element_of(value.dtype), value.shape)
    bits = BITS[element_of(value.dtype)]
    mask = np.zeros(value.size, np.bool_)
    mask[8 * offset // bits : (8 * (offset + len(data)) - 1) // bits + 1] = True
    what = f": {len(data)} bytes from byte {offset} on set"
    return _edited(session, instance, new, mask.reshape(value.shape), what)


def _bytes(text: str) -> bytes:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise Refused("bytes are given in hexadecimal, two digits each") from None
    if not data:
        raise Refused("give at least one byte")
    return data


def _edited(session: Session, instance: Instance, value: Array, mask: NDArray[np.bool_], what: str) -> Outcome:
    """The session on a timeline of its own, on which a tensor has another value."""
    state, number = with_value(session.state, instance, value), len(session.timelines)
    history = session.history.edited(state, Edit(instance.tensor, instance.path, mask, what, number))
    forked = moved(replace(session, history=history, timelines=(*session.timelines, history)), session.index)
    sentence = f"timeline {number}: {history.label}; this is no execution of the model and cannot be certified"
    return Outcome(forked, Note((sentence,)))


def elements_of_type(new: NDArray[np.generic], dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """Numbers as elements of a type, rounded to nearest. Raises Refused where the type has no such number."""
    if new.dtype.hasobject:
        raise Refused("a text cannot be set")
    if dtype == np.bool_:
        if not np.isin(new, (0, 1)).all():
            raise Refused("an element of this tensor is true or false")
        return new.astype(np.bool_)
    if new.dtype.kind == "c" and dtype.kind != "c":
        raise Refused(f"a complex number is no {element_of(dtype)}")
    with np.errstate(all="ignore"):
        made = new.astype(dtype)
    if not is_float(dtype) and dtype.kind != "c":
        for given, whole_number in zip(new.ravel().tolist(), made.ravel().astype(object), strict=True):
            if not math.isfinite(given) or Fraction(given) != int(whole_number):
                raise Refused(f"{given} is no {element_of(dtype)}")
    return made


# ---- Timelines and bookmarks ------------------------------------------------------------------


def _timeline(session: Session, text: str) -> Outcome:
    if not text.strip():
        rows = tuple(
            (
                count(i, f"{i}{'*' if it is session.history else ''}"),
                count(it.first),
                count(it.last),
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
        rows = tuple(
            (key, count(timeline), count(index)) for key, (timeline, index) in sorted(session.bookmarks.items())
        )
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
    Command("set", _set, "Change elements and go on from there, on a timeline of its own.",
            "T[i] = EXPR | T[i] from FILE.npy", (),
            ("set x[0, 1] = 2.5", "set x = 0", "set x[0, :] = 2 * x[1, :]", "set x from x.npy"), "tensor", keeps=True),
    Command("poke", _poke, "Change bytes of a tensor and go on from there, on a timeline of its own.",
            "T OFFSET BYTES", (), ("poke x 4 0000803f",), "tensor", keeps=True),
    Command("timeline", _timeline, "Show the timelines, or go to one.", "[NUMBER]", (), ("timeline", "timeline 0")),
    Command("bookmark", _bookmark, "Name this position; seek goes there.", "[NAME]", (), ("bookmark before",),
            keeps=True),
    Command("when", answered(_when), "Say how far the execution is.", "", (), ("when",)),
)  # fmt: skip
