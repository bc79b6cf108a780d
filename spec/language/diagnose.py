"""From lark's exceptions to syntax errors in words: what was found, what was expected."""

from __future__ import annotations

from itertools import islice

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from .errors import SpecError, mistake
from .syntax import Span

DECLARATIONS = frozenset((
    "CONSTRAINT", "CONTRACT", "DEFINE", "FACT", "FIELD", "FINDING", "FUN", "INDUCTIVE", "LAW", "LEMMA", "OPERATOR",
    "PROFILE", "RECORD", "REWRITE", "RULE", "SITUATION", "SORT", "THEOREM"
))  # fmt: skip
CLAUSES = frozenset((
    "COLLECTS", "DEMANDED", "EVIDENCE", "INCLUDES", "NOTE", "QUOTE", "SOURCE", "STATUS", "SUGGEST",
    "UNUSED", "UNWAIVABLE", "VARIANT", "VIOLATION"
))  # fmt: skip
OPERANDS = frozenset((
    "CASE", "EVERY", "EXISTS", "FALSE", "FLOAT", "FOLD", "FORALL", "GIVEN", "IF", "INT", "LBRACE", "LPAR", "LSQB",
    "MINUS", "NAME", "NOT", "QUALIFIED", "TEXT", "TRUE", "UNIQUE"
))  # fmt: skip
CONNECTIVES = frozenset((
    "AND", "AT", "BY", "COMPARE", "CONCAT", "DIV", "IFF", "IMPLIES", "IN", "LPAR", "LSQB", "MINUS", "MOD", "NOT_IN",
    "OR", "PLUS", "SLASH", "STAR"
))  # fmt: skip

WORD_END = r"(?![A-Za-z0-9_'])"
"""The end of the pattern of a keyword."""
WORDS = {
    "NAME": "a name",
    "QUALIFIED": "a name with its domain",
    "ID": "an identifier",
    "INT": "a whole number",
    "FLOAT": "a decimal number",
    "TEXT": "a text in double quotes",
    "FOLD": "a fold",
    "COMPARE": "a comparison",
    "NOT_IN": "not in",
    "MARK": "? or *",
    "STORED": "!",
    "IN_REALS": "in reals",
    "DOTS": "...",
    "BAR": "the bar ----",
    "$END": "the end of the text",
}
"""Terminals that a word says better than their pattern."""


def syntax_error(parser: Lark, text: str, start: str, file: str, error: UnexpectedInput) -> SpecError:
    """The error that lark reported for `text`, with the place in `file` and in words."""
    line, column = _place(error, text)
    read, expected = _expectation(parser, text, start)
    opened = _open_text(read, error)
    if opened is not None:
        return mistake("syntax/open-text", _span(file, *opened, 1))
    match error:
        case UnexpectedToken(token=token) if token.type == "$END":
            return mistake("syntax/end", _span(file, line, column, 1), expected=expected)
        case UnexpectedToken(token=token):
            found = "this text" if token.type == "TEXT" else f"'{token}'"
            width = len(token) if "\n" not in token else 1
            return mistake("syntax/unexpected", _span(file, line, column, width), found=found, expected=expected)
        case _:
            found = ascii(text[error.pos_in_stream or 0])
            return mistake("syntax/character", _span(file, line, column, 1), found=found, expected=expected)


def _open_text(read: list[Token], error: UnexpectedInput) -> tuple[int, int] | None:
    """The start of a text that is probably not closed: a lone quote, or a text of several lines that a word touches."""
    if isinstance(error, UnexpectedCharacters) and error.char == '"':
        return error.line, error.column
    last = read[-1] if read else None
    if last is None or last.type != "TEXT" or "\n" not in last or last.line is None or last.column is None:
        return None
    touches = isinstance(error, UnexpectedToken | UnexpectedCharacters) and error.pos_in_stream == last.end_pos
    return (last.line, last.column) if touches else None


def _expectation(parser: Lark, text: str, start: str) -> tuple[list[Token], str]:
    """The tokens that could be read, and what could have come next, in words.

    The text is read twice: the parser reduces before it notices a wrong token, and then expects less than it did.
    """
    read, _ = _feed(parser, text, start, len(text))
    _, state = _feed(parser, text, start, len(read))
    accepted = frozenset(str(name) for name in state.accepts())  # type: ignore[no-untyped-call]
    return read, phrase(accepted, {t.name: t.pattern.value.removesuffix(WORD_END) for t in parser.terminals})


def _feed(parser: Lark, text: str, start: str, limit: int) -> tuple[list[Token], InteractiveParser]:
    """Feeds at most `limit` tokens of the text; the tokens that the parser took, and its state then."""
    state = parser.parse_interactive(text, start=start)
    taken: list[Token] = []
    try:
        for token in islice(state.lexer_thread.lex(state.parser_state), limit):  # type: ignore[no-untyped-call]
            state.feed_token(token)
            taken.append(token)
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
        parts.append(
            "a declaration (sort, fact, fun, record, field, define, inductive, constraint, rule, law, theorem, lemma,"
            " finding, situation, operator, rewrite or profile)"
        )
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
