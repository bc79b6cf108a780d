"""Conditions of stops, looked at when they are set: a name that nothing has would refuse every move later."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from ...model.path import quote, resolve
from ...operators.program import Program
from ..expressions.evaluating import FUNCTIONS, SPECIALS
from ..expressions.parsing import Expression, Name, Number, Operation, PathName, Range, Sliced, Special, Text, parse
from ..timeline.names import tensors_by_name
from ..timeline.refused import Refused

CHANGES = ("old", "new")
"""Facts of a write, for the condition of a watch."""


def condition_of(program: Program, text: str) -> Expression:
    """The condition that a text says. Raises Refused for names that the model and the language do not have."""
    found = parse(text)
    for part in _parts(found):
        match part:
            case Name(name=name):
                known = tensors_by_name(program)
                if name not in known:
                    close = tuple(quote(it) for it in get_close_matches(name, known, 5))
                    raise Refused(f"there is no tensor {quote(name)}", close)
            case PathName(path=path):
                _resolved(program, path)
            case Special(name=name) if name not in SPECIALS and name not in CHANGES:
                raise Refused(f"there is no ${name}", tuple(f"${it}" for it in (*SPECIALS, *CHANGES)))
            case Operation(name=name, call=True) if name not in FUNCTIONS:
                raise Refused(f"there is no function {quote(name)}", tuple(FUNCTIONS))
            case _:
                pass
    if isinstance(found, Text):
        raise Refused("a condition is one number or truth value")
    return found


def _resolved(program: Program, path: str) -> None:
    try:
        found = resolve(program.model, path)
    except ValueError as error:
        raise Refused(str(error)) from None
    if found is None:
        raise Refused(f"{quote(path)} is no tensor of the model")


def _parts(expression: Expression) -> Iterator[Expression]:
    """The expression and all that it is made of."""
    yield expression
    match expression:
        case Sliced(of=of, subscripts=subscripts):
            yield from _parts(of)
            for it in subscripts:
                ends = (it.start, it.stop, it.step) if isinstance(it, Range) else (it,)
                for end in ends:
                    if isinstance(end, Number | Text | Special | Name | PathName | Sliced | Operation):
                        yield from _parts(end)
        case Operation(arguments=arguments):
            for argument in arguments:
                yield from _parts(argument)
        case _:
            pass
