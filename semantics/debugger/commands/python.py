"""`py`: an expression of Python with NumPy over the tensors of the position. It is the one command that can do anything
that Python can, so it runs only what a person has typed, or has allowed for the whole session."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Final

import numpy as np

from ...errors import InternalError
from ...model.elements import element_of
from ...model.values import Map, Optional, Sequence, Value
from ..display.answers import Answer, Note
from ..expressions import Name, evaluate
from ..session.session import Command, Session, answered, context, expression
from ..timeline.history import NoValue, Refused
from ..timeline.names import tensors_by_name
from .values import shown

_ELEMENTS: Final = 64
_LONGEST: Final = 4000
_OWN: Final = ("np", "t", "value")
_BUILTINS: Final = {name: it for name, it in vars(builtins).items() if name not in ("exit", "quit")}
"""Without those that close standard input."""
_NOT_TYPED: Final = (
    "py runs Python, which can do anything here: it is for lines that are typed at the terminal or given with -e;"
    " scripts (-x), pipes, aliases and commands of stops need sonnx debug --allow-py, and editors and saved sessions"
    " have none of it"
)


@dataclass(frozen=True, slots=True)
class _Tensors:
    """`t`: the tensors of the position, by name."""

    get: Callable[[str], object]

    def __getitem__(self, name: str) -> object:
        return self.get(name)


def _py(session: Session, text: str) -> Answer:
    if not session.python:
        raise Refused(_NOT_TYPED)
    if not text.strip():
        raise Refused("give an expression of Python, such as np.linalg.norm(y)")
    try:
        code = compile(text.strip(), "<py>", "eval")
        with np.errstate(all="ignore"):
            made: object = eval(code, _names(session, code))
            return _answer(text.strip(), made)
    except (Refused, MemoryError, RecursionError, KeyboardInterrupt):
        raise
    except NameError as error:
        if error.name in tensors_by_name(session.state.program):
            raise Refused(f"{error.name} has no value yet: ask why-not-ready for the node that gives it one") from None
        raise Refused(f"NameError: {error}") from None
    except BaseException as error:
        raise Refused(f"{type(error).__name__}: {' '.join(str(error).split())}"[:_LONGEST]) from None


def _names(session: Session, code: CodeType) -> dict[str, object]:
    """What the expression can name: NumPy, the tensors that it names, and all tensors by `t[...]` and `value(...)`."""

    def value(name: str) -> object:
        if not isinstance(name, str):
            raise Refused("t[...] and value(...) take the name of a tensor, a text, or its path")
        said = expression(session, f"`{name}`") if name.startswith("/") else Name(name, quoted=True)
        made = evaluate(said, context(session))
        return made if isinstance(made, str) else _plain(made)

    known = tensors_by_name(session.state.program)
    named: dict[str, object] = {"__builtins__": _BUILTINS, "np": np, "t": _Tensors(value), "value": value}
    for name in sorted(set(_said(code)) & known.keys() - set(_OWN)):
        try:
            named[name] = value(name)
        except NoValue:
            continue  # it may be a name that the expression gives to something else
    return named


def _said(code: CodeType) -> Iterator[str]:
    """The names that code reads, in functions and comprehensions within it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _said(constant)


def _plain(value: Value) -> object:
    """A copy of the value, since arrays of the state are the state's: arrays, lists, dictionaries, None."""
    match value:
        case np.ndarray():
            copy = np.array(value)
            copy.flags.writeable = False
            return copy
        case Sequence(items=items):
            return [_plain(it) for it in items]
        case Optional(item=item):
            return None if item is None else _plain(item)
        case Map(items=pairs):
            return {key: _plain(it) for key, it in pairs}


def _answer(text: str, made: object) -> Answer:
    """Arrays and numbers as `print` shows them, anything else as Python does."""
    if isinstance(made, np.ndarray | np.generic | bool | int | float | complex):
        try:
            array = np.asarray(made)
            if array.dtype != object:
                element_of(array.dtype)
                return shown(text, array, "d", _ELEMENTS)
        except (InternalError, OverflowError):
            pass
    lines = repr(made).splitlines() or [""]
    return Note(tuple(it if len(it) <= _LONGEST else f"{it[:_LONGEST]} ..." for it in lines[:_ELEMENTS]))


COMMANDS = (
    Command("py", answered(_py), "Evaluate an expression of Python over the tensors here, read-only, with NumPy as np;"
            ' t["odd name"] is a tensor too. Only for lines typed at the terminal or given with -e: scripts, pipes,'
            " aliases and commands of stops need --allow-py, since a file one was handed could run anything.",
            "EXPR", (), ("py np.linalg.norm(y)", 'py [v.max() for v in (x, t["odd name"])]'), "tensor"),
)  # fmt: skip
