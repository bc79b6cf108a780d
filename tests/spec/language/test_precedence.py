"""How expressions without parentheses are read: each pair must give the same syntax."""

from __future__ import annotations

import logging

import pytest
from lark import Lark, logger
from sonnx.spec.language.diagnose import CONNECTIVES
from sonnx.spec.language.parse import grammar, parse_expression
from tables import table

SAME = [
    ("a or b and c", "a or (b and c)"),
    ("a and b or c", "(a and b) or c"),
    ("a implies b implies c", "a implies (b implies c)"),
    ("a or b implies c and d", "(a or b) implies (c and d)"),
    ("a implies b iff c implies d", "(a implies b) iff (c implies d)"),
    ("not a and b", "(not a) and b"),
    ("not a = b", "not (a = b)"),
    ("not a in b", "not (a in b)"),
    ("not a not in b", "not (a not in b)"),
    ("a + b - c", "(a + b) - c"),
    ("a - b + c", "(a - b) + c"),
    ("a + b * c", "a + (b * c)"),
    ("a * b + c", "(a * b) + c"),
    ("a div b * c mod d", "((a div b) * c) mod d"),
    ("a ++ b + c", "(a ++ b) + c"),
    ("-a * b", "(-a) * b"),
    ("- - a", "-(-a)"),
    ("-a[0]", "-(a[0])"),
    ("a + b < c * d", "(a + b) < (c * d)"),
    ("f(a)[b][c]", "((f(a))[b])[c]"),
    ("given B and c", "(given B) and c"),
    ("forall x in S: a and b or c implies d iff e", "forall x in S: (((a and b) or c) implies d) iff e"),
    ("a and forall x in S: b or c", "a and (forall x in S: (b or c))"),
    ("not exists x in S: a and b", "not (exists x in S: (a and b))"),
    ("forall x in S: exists y in T: a or b", "forall x in S: (exists y in T: (a or b))"),
    ("forall x in S, y in f(x): a", "forall x in S, y in (f(x)): (a)"),
    ("if a then b else c + d", "if a then b else (c + d)"),
    ("if a then b else if c then d else e", "if a then b else (if c then d else e)"),
    ("a + if b then c else d * e", "a + (if b then c else (d * e))"),
    ("sum(i < n) a * b + c", "(sum(i < n) (a * b)) + c"),
    ("sum(i < n) a + b", "(sum(i < n) a) + b"),
    ("sum(i < n) a = b", "(sum(i < n) a) = b"),
    ("a * sum(i < n) b * c", "a * (sum(i < n) (b * c))"),
    ("sum(i < n) -a * b", "sum(i < n) ((-a) * b)"),
    ("all(i < n) a and b", "(all(i < n) a) and b"),
    ("sum(i < n + 1 if a or b from c + d) e", "sum(i < (n + 1) if (a or b) from (c + d)) e"),
    ("sum(i < n) sum(j < m) a * b", "sum(i < n) (sum(j < m) (a * b))"),
    ("[a + b for i < n + 1 if c or d]", "[(a + b) for i < (n + 1) if (c or d)]"),
    ("{a for x in S if if b then c else d}", "{a for x in S if (if b then c else d)}"),
    ("case a { \"b\": c or d; else: e }", "case (a) { \"b\": (c or d); else: (e) }"),
]  # fmt: skip


@table(("written", "meant"), SAME)
def test_it_is_read_as_meant(written: str, meant: str) -> None:
    assert parse_expression(written) == parse_expression(meant)


DIFFERENT = [
    ("(a or b) or c", "a or b or c"),
    ("a or (b or c)", "a or b or c"),
    ("(a < b) < c", "a < b < c"),
    ("a - (b - c)", "a - b - c"),
    ("(forall x in S: a) and b", "forall x in S: a and b"),
    ("(sum(i < n) a) * b", "sum(i < n) a * b"),
    ("sum(i < n) (a + b)", "sum(i < n) a + b"),
]


@table(("one", "other"), DIFFERENT)
def test_parentheses_make_a_difference(one: str, other: str) -> None:
    assert parse_expression(one) != parse_expression(other)


@table("word", ["order", "notes", "into", "division", "iffy", "functions", "sums", "given_name", "in'"])
def test_a_word_that_begins_with_a_keyword_is_a_name(word: str) -> None:
    assert parse_expression(word).args == (word,)
    assert parse_expression(f"a and {word}").args[1] == parse_expression(word)


@table("word", ["source", "note", "view", "let", "rule", "status", "static", "max", "count", "sort"])
def test_a_word_of_declarations_or_folds_can_name_a_variable(word: str) -> None:
    assert parse_expression(f"{word} = {word}[0]").args[0] == parse_expression(word)


def test_the_grammar_leaves_open_only_how_far_an_expression_extends(caplog: pytest.LogCaptureFixture) -> None:
    """Every conflict of the LALR(1) tables is about a connective behind an expression that may go on."""
    level = logger.level
    logger.addHandler(caplog.handler)
    logger.setLevel(logging.DEBUG)
    try:
        text = str(grammar().source_grammar)
        Lark(text, parser="lalr", start=["start", "expr"], debug=True, maybe_placeholders=True)
    finally:
        logger.removeHandler(caplog.handler)
        logger.setLevel(level)
    conflicts = {r.getMessage().split()[4].rstrip(":") for r in caplog.records if "Shift/Reduce" in r.getMessage()}
    assert conflicts == CONNECTIVES - {"AT", "LPAR", "LSQB"}
