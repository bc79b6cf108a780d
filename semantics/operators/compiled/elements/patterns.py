"""Regular expressions of RE2, without what `Unsupported` names, and whole strings that they describe.

A pattern becomes a nondeterministic automaton, which reads a string once: the time grows with the product of the two
lengths, whatever the pattern. Source: https://github.com/google/re2/wiki/Syntax; bytes that are no UTF-8 match nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ....errors import Unsupported

Characters = tuple[tuple[str, str], ...]
"""A set of characters, as ranges: the first and the last one of each."""
Test = Callable[[str, int], bool]
"""A character of a string has a property, or a place between two has one; by the string and the position."""
Part = Callable[["Automaton", int], int]
"""Adds an expression to an automaton, given the state behind it; the value is the state before it."""

MOST: Final = 1000
"""The greatest number of repetitions that RE2 takes, those of nested ones multiplied."""
DEEPEST: Final = 100
LARGEST: Final = 100_000
"""Limits of this package: nested groups, states of an automaton."""

CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
WORD: Final = frozenset("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
CLASSES: Final[Mapping[str, Characters]] = {
    "d": (("0", "9"),),
    "s": (("\t", "\n"), ("\f", "\r"), (" ", " ")),
    "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
}
"""The classes of Perl, which are of ASCII in RE2."""


class NoPattern(ValueError):  # noqa: N818 - data, not a failure
    """A text that is no regular expression of RE2; the message says why."""


def _others(characters: Characters) -> Characters:
    """All characters but these."""
    ranges, start = [], 0
    for low, high in sorted(characters):
        if start < ord(low):
            ranges.append((chr(start), chr(ord(low) - 1)))
        start = max(start, ord(high) + 1)
    return (*ranges, (chr(start), chr(sys.maxunicode))) if start <= sys.maxunicode else tuple(ranges)


def _is_in(c: str, characters: Characters) -> bool:
    """A byte that is no UTF-8, which stands as half of a surrogate pair, is in no set."""
    return not "\ud800" <= c <= "\udfff" and any(low <= c <= high for low, high in characters)


@dataclass(slots=True)
class Automaton:
    """States: the end, one that reads a character, one that looks at a place, one that goes on in several ways."""

    states: list[tuple[Test | None, bool, tuple[int, ...]]] = field(default_factory=list)

    def add(self, test: Test | None, reads: bool, *after: int) -> int:
        """A new state."""
        if len(self.states) >= LARGEST:
            raise Unsupported("A pattern whose repetitions come to more than 100,000 characters is not handled.")
        self.states.append((test, reads, after))
        return len(self.states) - 1

    def reached(self, starts: set[int], text: str, position: int) -> set[int]:
        """The states that are reached from some without reading."""
        seen: set[int] = set()
        waiting = list(starts)
        while waiting:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            test, reads, after = self.states[state]
            if not reads and (test is None or test(text, position)):
                waiting.extend(after)
        return seen

    def read(self, states: set[int], text: str, position: int) -> set[int]:
        """The states behind those that read the character at the position."""
        reached: set[int] = set()
        for state in states:
            test, reads, after = self.states[state]
            if reads and test is not None and test(text, position):
                reached.update(after)
        return reached


# ---- Expressions ------------------------------------------------------------------------------


def _reading(characters: Characters) -> Part:
    return lambda made, after: made.add(lambda text, k: _is_in(text[k], characters), True, after)


def _looking(test: Test) -> Part:
    return lambda made, after: made.add(test, False, after)


def _row(parts: list[Part]) -> Part:
    def add(made: Automaton, after: int) -> int:
        for part in reversed(parts):
            after = part(made, after)
        return after

    return add


def _choice(parts: list[Part]) -> Part:
    return lambda made, after: made.add(None, False, *(part(made, after) for part in parts))


def _repeated(part: Part, least: int, most: int | None) -> Part:
    def add(made: Automaton, after: int) -> int:
        start = after
        if most is None:
            start = made.add(None, False)
            made.states[start] = (None, False, (part(made, start), after))
        for _ in range(0 if most is None else most - least):
            start = made.add(None, False, part(made, start), after)
        for _ in range(least):
            start = part(made, start)
        return start

    return add


def _at_boundary(text: str, k: int) -> bool:
    return (k > 0 and text[k - 1] in WORD) != (k < len(text) and text[k] in WORD)


def _at_start(_text: str, k: int) -> bool:
    return k == 0


def _at_end(text: str, k: int) -> bool:
    return k == len(text)


PLACES: Final[dict[str, Test]] = {
    "A": _at_start, "z": _at_end, "b": _at_boundary, "B": lambda text, k: not _at_boundary(text, k),
}  # fmt: skip


# ---- Reading a pattern ------------------------------------------------------------------------


@dataclass(slots=True)
class _Reader:
    """A pattern and the position in it."""

    text: str
    at: int = 0

    def rest(self) -> str:
        """The rest, which is not yet read."""
        return self.text[self.at :]

    def peek(self) -> str:
        """The next character; the empty text at the end."""
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        """The next character, read."""
        self.at += 1
        return self.text[self.at - 1]

    def took(self, word: str) -> bool:
        """The word comes next, and is read."""
        present = self.text.startswith(word, self.at)
        self.at += len(word) if present else 0
        return present


def _alternatives(reader: _Reader, depth: int) -> tuple[Part, int]:
    """The part between bars, up to the end or a closing parenthesis; how often the repetitions in it repeat."""
    if depth > DEEPEST:
        raise Unsupported(f"A pattern with more than {DEEPEST} nested groups is not handled.")
    choices: list[list[Part]] = [[]]
    times = 1
    while reader.peek() not in ("", ")"):
        if reader.took("|"):
            choices.append([])
            continue
        part, inner = _counted(reader, *_atom(reader, depth))
        choices[-1].append(part)
        times = max(times, inner)
    return _choice([_row(parts) for parts in choices]), times


def _counted(reader: _Reader, part: Part, times: int) -> tuple[Part, int]:
    """The expression with the repetition that follows it; how often the repetitions in it repeat."""
    counts = _repetition(reader)
    if counts is None:
        return part, times
    least, most = counts
    reader.took("?")  # as few as possible: the same where the whole string has to match
    if _repetition(reader) is not None:
        raise NoPattern("a repetition follows a repetition")
    own = least if most is None else most
    if own < least or own > MOST or (own > 1 and own * times > MOST):
        raise NoPattern(f"a repetition goes down, or is of more than {MOST} times")
    return _repeated(part, least, most), max(1, own) * times


def _repetition(reader: _Reader) -> tuple[int, int | None] | None:
    """The numbers, at least and at most, as the sign or the braces say that come next; None if neither does."""
    if reader.took("*"):
        return 0, None
    if reader.took("+"):
        return 1, None
    if reader.took("?"):
        return 0, 1
    if reader.peek() != "{":
        return None
    match = BRACES.match(reader.text, reader.at)
    if match is None:
        raise Unsupported("A brace in a pattern that is not of {m}, {m,} or {m,n} is not handled; write \\{ for it.")
    reader.at = match.end()
    low, comma, high = match.groups()
    return int(low), int(high) if high else None if comma else int(low)


BRACES: Final = re.compile(r"\{(0|[1-9][0-9]{0,7})(?:(,)(0|[1-9][0-9]{0,7})?)?\}", re.ASCII)


def _atom(reader: _Reader, depth: int) -> tuple[Part, int]:
    if _repetition(reader) is not None:
        raise NoPattern("nothing stands before a repetition")
    c = reader.take()
    match c:
        case "(":
            if not reader.took("?:") and reader.peek() == "?":
                raise Unsupported(f"The group {c + reader.rest()[:3]} in a pattern is not handled.")
            part, times = _alternatives(reader, depth + 1)
            if not reader.took(")"):
                raise NoPattern("a parenthesis is not closed")
            return part, times
        case "^":
            return _looking(_at_start), 1
        case "$":
            return _looking(_at_end), 1
        case ".":
            return _reading(_others((("\n", "\n"),))), 1
        case "[":
            return _reading(_class(reader)), 1
        case "\\" if reader.peek() and reader.peek() in PLACES:
            return _looking(PLACES[reader.take()]), 1
        case "\\":
            return _reading(_escape(reader)), 1
    return _reading(((c, c),)), 1


def _escape(reader: _Reader) -> Characters:
    """The characters that a backslash and what follows it stand for, if they are for some."""
    if not reader.peek():
        raise NoPattern("a backslash stands at the end")
    c = reader.take()
    if c.lower() in CLASSES:
        return _others(CLASSES[c.lower()]) if c.isupper() else CLASSES[c]
    if c in "0123456789xCQpP":
        raise Unsupported(f"The escape \\{c} in a pattern is not handled.")
    if c not in CONTROLS and c != "_" and (c in WORD or c >= "\x80"):
        raise NoPattern(f"\\{c} is no escape")
    return ((CONTROLS.get(c, c), CONTROLS.get(c, c)),)


def _class(reader: _Reader) -> Characters:
    """Characters between brackets, the first of which may be a closing one."""
    but = reader.took("^")
    ranges: list[tuple[str, str]] = []
    while not ranges or not reader.took("]"):
        if reader.rest().startswith("[:"):
            raise Unsupported(
                "The characters [: between brackets in a pattern are not handled; write \\[ for the first."
            )
        one = _member(reader)
        if _is_one(one) and reader.peek() == "-" and not reader.rest().startswith("-]"):
            reader.take()
            last = _member(reader)
            if not _is_one(last) or last < one:
                raise NoPattern("a range of characters does not go up")
            one = ((one[0][0], last[0][1]),)
        ranges.extend(one)
    return _others(tuple(ranges)) if but else tuple(ranges)


def _member(reader: _Reader) -> Characters:
    if not reader.peek():
        raise NoPattern("a bracket is not closed")
    c = reader.take()
    return _escape(reader) if c == "\\" else ((c, c),)


def _is_one(characters: Characters) -> bool:
    return len(characters) == 1 and characters[0][0] == characters[0][1]


# ---- Matching ---------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _automaton(pattern: str) -> tuple[Automaton, int]:
    """The automaton of a pattern, whose end is state 0, and the state in which it begins. Raises NoPattern."""
    reader = _Reader(pattern)
    if any("\ud800" <= c <= "\udfff" for c in pattern):
        raise NoPattern("it is no UTF-8")
    part, _ = _alternatives(reader, 0)
    if reader.peek():
        raise NoPattern("a parenthesis is closed that was not opened")
    made = Automaton()
    return made, part(made, made.add(None, False))


def is_pattern(pattern: str) -> bool:
    """The text is a regular expression of RE2. Raises Unsupported for what is not handled of it."""
    try:
        _automaton(pattern)
    except NoPattern:
        return False
    return True


def matches(text: bytes, pattern: bytes) -> bool:
    """The pattern, which is one, describes the whole text."""
    made, start = _automaton(pattern.decode("utf-8", "surrogateescape"))
    word = text.decode("utf-8", "surrogateescape")
    states = made.reached({start}, word, 0)
    for k in range(len(word)):
        states = made.reached(made.read(states, word, k), word, k + 1)
    return 0 in states
