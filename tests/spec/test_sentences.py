"""The prose of the texts: no sentence is long; what a decision consists of stands in notes, one each."""

from __future__ import annotations

from sonnx.spec import parsed
from sonnx.spec.language.parse import grammar
from tables import table

LONGEST = 400
"""Characters of a text between quotes. What is quoted from a standard is as long as it is there."""


def long_texts(text: str) -> list[str]:
    """The texts of a file that are too long."""
    tokens = [token for token in grammar().lex(text) if token.type != "COMMENT"]
    pairs = zip(["", *tokens], tokens, strict=False)
    own = (" ".join(token[1:-1].split()) for before, token in pairs if token.type == "TEXT" and before != "quote")
    return [said for said in own if len(said) > LONGEST]


@table("name", parsed.file_names())
def test_no_sentence_is_long(name: str) -> None:
    assert long_texts(parsed.read_texts()[name]) == []


def test_a_long_sentence_is_noticed_and_a_long_quote_is_not() -> None:
    said = "word " * 100
    assert long_texts(f'sort Graph "{said}"') == [said.strip()]
    assert long_texts(f'profile p "Short." quote "{said}" {{ }}') == []
