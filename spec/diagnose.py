"""From lark's exceptions to syntax errors in words: what was found, what was expected."""

from __future__ import annotations

from itertools import islice

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from .errors import SpecError, mistake
from .syntax import Span

DECLARATIONS = frozenset("SORT FACT FUN DEFINE INDUCTIVE CONSTRAINT RULE PROFILE OPERATOR".split())
CLAUSES = frozenset("SOURCE QUOTE NOTE VIOLATION SUGGEST STATUS VARIANT EVIDENCE DEMANDED UNUSED".split())
OPERANDS = frozenset(
    "NAME INT FLOAT TEXT TRUE FALSE LPAR LSQB LBRACE MINUS FORALL EXISTS UNIQUE IF CASE FOLD GIVEN NOT".split()
)
CONNECTIVES = frozenset("AND OR IMPLIES IFF COMPARE IN NOT_IN PLUS MINUS CONCAT STAR SLASH DIV MOD LSQB LPAR".split())

WORDS = {
    "NAME": "a name",
    "ID": "an identifier",
    "INT": "a whole number",
    "FLOAT": "a decimal number",
    "TEXT": "a text in double quotes",
    "FOLD": "a fold",
    "COMPARE": "a comparison",
    "NOT_IN": "not in",
    "MARK": "? or *",
    "DOTS": "...",
    "BAR": "the bar ----",
    "$END": "the end of the text",
}
"""Terminals that a word says better than their pattern."""


def syntax_error(parser: Lark, text: str, start: str, file: str, error: UnexpectedInput) -> SpecError:
    """The error that lark reported for `text`, with the place in `file` and in words."""
    line, column = _place(error, text)
    expected = expectation(parser, text, start)
    match error:
        case UnexpectedToken(token=token) if token.type == "$END":
            return mistake("syntax/end", _span(file, line, column, 1), expected=expected)
        case UnexpectedToken(token=token):
            found = "this text" if token.type == "TEXT" else f"'{token}'"
            width = len(token) if "\n" not in token else 1
            return mistake("syntax/unexpected", _span(file, line, column, width), found=found, expected=expected)
        case UnexpectedCharacters(char='"'):
            return mistake("syntax/open-text", _span(file, line, column, 1))
        case _:
            found = ascii(text[error.pos_in_stream or 0])
            return mistake("syntax/character", _span(file, line, column, 1), found=found, expected=expected)


def expectation(parser: Lark, text: str, start: str) -> str:
    """What could stand where reading `text` stops, in words.

    The text is read twice: the parser reduces before it notices a wrong token, and then expects less than it did.
    """
    good, _ = _feed(parser, text, start, len(text))
    _, state = _feed(parser, text, start, good)
    return phrase(frozenset(state.accepts()), {t.name: t.pattern.value for t in parser.terminals})


def _feed(parser: Lark, text: str, start: str, limit: int) -> tuple[int, InteractiveParser]:
    """Feeds at most `limit` tokens of the text; how many the parser took, and its state then."""
    state, taken = parser.parse_interactive(text, start=start), 0
    try:
        for token in islice(state.lexer_thread.lex(state.parser_state), limit):
            state.feed_token(token)
            taken += 1
    except UnexpectedInput:
        pass
    return taken, state


def phrase(terminals: frozenset[str], spellings: dict[str, str]) -> str:
    """The terminals in words; the groups `an expression`, `an operator`, `a declaration`, `a clause` stand for many."""
    rest, parts = set(terminals), []
    if len(terminals & OPERANDS) > 5:
        parts.append("an expression")
        rest -= OPERANDS
    if {"AND", "OR"} <= terminals or {"PLUS", "STAR"} <= terminals:
        parts.append("an operator")
        rest -= CONNECTIVES
    if terminals >= DECLARATIONS:
        parts.append("a declaration (sort, fact, fun, define, inductive, constraint, rule, operator or profile)")
        rest -= DECLARATIONS
    if len(terminals & CLAUSES) > 2:
        parts.append("a clause (source, quote, note ...)")
        rest -= CLAUSES
    parts += sorted(WORDS[name] if name in WORDS else f"'{spellings.get(name, name)}'" for name in rest)
    return " or ".join(parts) if len(parts) < 3 else ", ".join(parts[:-1]) + " or " + parts[-1]


def _place(error: UnexpectedInput, text: str) -> tuple[int, int]:
    """Line and column of the error; at the end of the text the place behind the last character that is no space."""
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if not at_end:
        return max(error.line, 1), max(error.column, 1)
    kept = text.rstrip()
    return kept.count("\n") + 1, len(kept) - (kept.rfind("\n") + 1) + 1


def _span(file: str, line: int, column: int, width: int) -> Span:
    return Span(file, line, column, line, column + width)


