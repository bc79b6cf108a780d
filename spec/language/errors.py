"""Errors of the specification text: data with a place; the rendering is a function beside them.

Every message of the language is a row of `messages.MESSAGES`; its category is the part of the kind before the slash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .syntax import Span


class SpecError(Exception):
    """One mistake in the specification text. `kind` is a key of `MESSAGES`, `related` the other place it is about."""

    def __init__(self, span: Span, kind: str, message: str, related: Span | None = None) -> None:
        super().__init__(span, kind, message, related)
        self.span, self.kind, self.message, self.related = span, kind, message, related

    @property
    def category(self) -> str:
        """The kind's group: syntax, template, name, sort, arity, clause, profile, inductive, transition, schema ..."""
        return self.kind.partition("/")[0]

    def __str__(self) -> str:
        return f"{self.span}: {self.category} error: {self.message}"


class InternalError(Exception):
    """A defect of this package: two parts that must agree do not."""


def mistake(kind: str, span: Span, related: Span | None = None, **details: object) -> SpecError:
    """The error of the given kind with its message filled in. Raises InternalError for a kind that has no message."""
    from .messages import MESSAGES  # what a text without mistakes does not need

    if kind not in MESSAGES:
        raise InternalError(f"no message is written for the error kind {kind}")
    return SpecError(span, kind, MESSAGES[kind].format(**details), related)


def render(error: SpecError, sources: Mapping[str, str]) -> str:
    """`file:line:col: category error: message`, the source line with a caret underline, then the related place.

    `sources` maps file names to texts; without the text of a file the line is left out.
    """
    lines = [str(error), *_excerpt(error.span, sources)]
    if error.related is not None:
        lines += [f"{error.related}: note: the other place", *_excerpt(error.related, sources)]
    return "\n".join(lines)


def render_all(errors: Iterable[SpecError], sources: Mapping[str, str]) -> str:
    """The rendered errors, one after the other."""
    return "\n".join(render(error, sources) for error in errors)


def _excerpt(span: Span, sources: Mapping[str, str]) -> list[str]:
    """The first line of the span and a caret underline; tabs count as one column."""
    lines = sources[span.file].split("\n") if span.file in sources else []
    if not 1 <= span.line <= len(lines):
        return []
    line = lines[span.line - 1].rstrip("\r").replace("\t", " ")
    last = span.end_column if span.end_line == span.line else len(line) + 1
    width = max(1, min(last, len(line) + 1) - span.column)
    number = str(span.line)
    return [f"{number} | {line}", f"{' ' * len(number)} | {' ' * (span.column - 1)}{'^' * width}"]
