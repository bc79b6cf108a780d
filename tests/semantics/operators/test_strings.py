from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled.elements.patterns import is_pattern, matches
from sonnx.semantics.operators.compiled.elements.text import TEXT
from sonnx.semantics.operators.compiled.exact import apply as exact
from sonnx.semantics.operators.symbolic.footprint import footprint

Run = Callable[..., Any]


def words(*content: Any) -> Any:
    """A tensor of strings, UTF-8; the shape is that of the lists."""
    made = np.array(content, dtype=object)
    return np.vectorize(str.encode, otypes=[object])(made) if made.size else made


def plain(found: Any) -> Any:
    return np.vectorize(bytes.decode, otypes=[object])(found).tolist() if found.size else found.tolist()


def test_strings_are_joined(run: Run, refused: Run) -> None:
    assert plain(run("StringConcat", 20, words(["a"], ["é"]), words("", "x", "日"))) == [
        ["a", "ax", "a日"],
        ["é", "éx", "é日"],
    ]
    assert run("StringConcat", 20, words(), words("a")).shape == (0,)
    assert "broadcast" in refused("StringConcat", 20, words("a", "b"), words("a", "b", "c"))
    odd = np.array([b"\xff"], dtype=object)
    assert run("StringConcat", 20, odd, odd).tolist() == [b"\xff\xff"]


def parts(run: Run, x: Any, **attributes: Any) -> tuple[Any, Any]:
    found, counts = run("StringSplit", 20, x, count=2, **attributes)
    return plain(found), counts.tolist()


def test_strings_are_split_at_delimiters(run: Run, refused: Run) -> None:
    assert parts(run, words("a,b", ",", ""), delimiter=",") == ([["a", "b"], ["", ""], ["", ""]], [2, 2, 0])
    assert parts(run, words("a::b:c"), delimiter="::") == ([["a", "b:c"]], [2])
    assert parts(run, words("o-n-n--x-", "o"), delimiter="-", maxsplit=2) == (
        [["o", "n", "n--x-"], ["o", "", ""]],
        [3, 1],
    )
    assert parts(run, words("a,b"), delimiter=",", maxsplit=0) == ([["a,b"]], [1])
    assert "not negative" in refused("StringSplit", 20, words("a"), count=2, maxsplit=-1)


def test_blanks_together_are_one_delimiter(run: Run) -> None:
    for attributes in ({}, {"delimiter": ""}):
        assert parts(run, words(" a \t\n b ", "c\v"), **attributes) == ([["a", "b"], ["c", ""]], [2, 1])
        assert parts(run, words(" a  b c ", ""), maxsplit=1, **attributes) == ([["a", "b c"], ["", ""]], [2, 0])
    assert parts(run, words("a\u00a0b\u2003c")) == ([["a\u00a0b\u2003c"]], [1])
    assert [it.shape for it in run("StringSplit", 20, words(" ", ""), count=2)] == [(2, 0), (2,)]
    assert [it.shape for it in run("StringSplit", 20, words(), count=2)] == [(0, 0), (0,)]
    assert [it.shape for it in run("StringSplit", 20, np.array(b"a b", dtype=object), count=2)] == [(2,), ()]


def test_stop_words_are_left_out(run: Run, refused: Run) -> None:
    x = words("Monday", "the", "THE", "é", "É")
    stop = {"stopwords": ("the", "É")}
    assert plain(run("StringNormalizer", 10, x, is_case_sensitive=1, **stop)) == ["Monday", "THE", "é"]
    assert plain(run("StringNormalizer", 10, x, is_case_sensitive=0, **stop)) == ["Monday"]
    assert plain(run("StringNormalizer", 10, words(["the", "a"]), **stop)) == [["a"]]
    assert plain(run("StringNormalizer", 10, words(["the"]), **stop)) == [[""]]
    assert plain(run("StringNormalizer", 10, words("the", "the"), **stop)) == [""]
    assert plain(run("StringNormalizer", 10, x)) == ["Monday", "the", "THE", "é", "É"]
    assert "one row" in refused("StringNormalizer", 10, words(["a"], ["b"]))
    assert "three words" in refused("StringNormalizer", 10, x, case_change_action="lower")
    assert "locale" in refused("StringNormalizer", 10, x, locale="tr_TR")


def test_characters_change_their_case_one_for_one(run: Run) -> None:
    x = words("aßİΣς", "ᾳǅ日")
    lower = plain(run("StringNormalizer", 10, x, case_change_action="LOWER"))
    upper = plain(run("StringNormalizer", 10, x, case_change_action="UPPER", locale="en_US"))
    assert lower == ["aßiσς", "ᾳǆ日"]
    assert upper == ["AßİΣΣ", "ᾼǄ日"]
    odd = np.array([b"a\xffB"], dtype=object)
    assert run("StringNormalizer", 10, odd, case_change_action="LOWER").tolist() == [b"a\xffb"]


def test_letters_that_got_a_case_later_stay() -> None:
    assert TEXT["uppercase"](words("\u019b\u0264")).tolist() == words("\u019b\u0264").tolist()


def test_strings_are_the_same_where_numbers_are_exact() -> None:
    found = exact(Application("StringSplit", 20, (words("a b", "c"),), {}, (True, True)))
    assert isinstance(found, Outputs)
    assert [list(map(str, it.reshape(-1))) for it in found.values] == [["b'a'", "b'b'", "b'c'", "b''"], ["2", "1"]]


def test_a_substring_reads_its_string() -> None:
    split = Application("StringSplit", 20, (words("a b", "c"),), {}, (True, True))
    found = footprint(split, 0, (1, 0))
    assert found.data == {0: {(1,)}}
    assert found.control == {0: {(0,), (1,)}}  # the longest one decides the shape


def described(run: Run, pattern: str, *texts: str) -> Any:
    return run("RegexFullMatch", 20, words(*texts), pattern=pattern).tolist()


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("", [""], ["a"]),
        ("a.c", ["abc", "aéc"], ["ac", "a\nc", "abcd"]),
        ("(a|bc)*d?", ["", "abca", "bcd"], ["b", "add"]),
        ("a||b", ["", "a", "b"], ["ab"]),
        ("a{2}b{1,2}c{2,}", ["aabcc", "aabbcccc"], ["abcc", "aabbbcc", "aabc"]),
        ("a{0}b*?", ["", "bb"], ["ab"]),
        (r"\d+\s\w", ["12 a", "1\t_"], ["1\va", "١ a", "1 é"]),
        (r"[\w.-]+", ["a-b.c"], ["a b", ""]),
        (r"[^\W\d]", ["a"], ["1", "-", "é"]),
        ("[]a-c-]+", ["]b-"], ["d"]),
        ("[^]]*", ["a\n"], ["]"]),
        ("^a$", ["a"], ["a\n"]),
        (r"\Aa\b-\B", ["a-"], ["ab"]),
        (r"\.\_\n\}]", ["._\n}]"], ["a_\n}]"]),
        ("(?:a*)*b", ["b", "aab"], ["a" * 40]),
    ],
)
def test_patterns_describe_whole_strings(run: Run, pattern: str, yes: list[str], no: list[str]) -> None:
    assert described(run, pattern, *yes, *no) == [True] * len(yes) + [False] * len(no)


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[", "[]", "[b-a]", r"[a-\d]", "*", "a|+", "a**", "a*{2}", "a{2,1}", "a{1001}", "(a{100}){11}", "\\",
     r"\Z", r"\é", "(?:a"],
)  # fmt: skip
def test_what_is_no_pattern_is_refused(refused: Run, pattern: str) -> None:
    assert "pattern is a regular expression" in refused("RegexFullMatch", 20, words("a"), pattern=pattern)


@pytest.mark.parametrize("pattern", ["(?i)a", "(?P<n>a)", r"\pL", r"\x41", r"\1", r"\Qa", "[[:alpha:]]", "a{,2}", "{"])
def test_constructs_that_are_not_handled_are_named(pattern: str) -> None:
    with pytest.raises(Unsupported, match="in a pattern"):
        is_pattern(pattern)


def test_a_pattern_costs_what_the_two_lengths_do() -> None:
    assert not matches(b"a" * 2000 + b"b", b"(((a|a)*)*)*c")
    with pytest.raises(Unsupported, match="100,000"):
        is_pattern("a" * 200 + "(?:" + "b" * 200 + "){1000}")


def test_bytes_that_are_no_text_match_nothing(run: Run) -> None:
    odd = np.array([b"\xff", b"a"], dtype=object)
    assert run("RegexFullMatch", 20, odd, pattern=r"[^b]|\W|.").tolist() == [False, True]


def test_a_pattern_is_asked_for(refused: Run) -> None:
    assert "pattern is a regular expression" in refused("RegexFullMatch", 20, words("a"))
