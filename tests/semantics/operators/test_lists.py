"""The functions of lists and numbers that the language defines, on every short list of small numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import text_values
from sonnx.spec.language.syntax import INT, Sort
from tables import table

LISTS = [v for size in range(4) for v in product((-1, 0, 2), repeat=size)]
SORTS = {"v": Sort("list", INT), "a": Sort("list", INT), "k": INT, "q": Sort("Rational"), "t": Sort("Type")}


def value(text: str, **given: Any) -> Any:
    """The value of an expression over variables of `SORTS`; "stuck" where it has none."""
    return text_values.value(text, tuple((name, SORTS[name]) for name in given), *given.values())


def place(v: Sequence[int], k: int) -> int | str:
    return v.index(k) if k in v else "stuck"


@table(
    ("text", "expected"),
    [
        ("total(v)", sum),
        ("least(v)", lambda v: min(v, default="stuck")),
        ("greatest(v)", lambda v: max(v, default="stuck")),
    ],
)
def test_a_function_of_a_list_is_what_its_sentence_says(text: str, expected: Callable[[Any], Any]) -> None:
    assert [value(text, v=v) for v in LISTS] == [expected(v) for v in LISTS]


@table(
    ("text", "expected"),
    [
        ("find(k, v)", place),
        ("v ++ range(k)", lambda v, k: (*v, *range(k))),
    ],
)
def test_a_function_of_a_list_and_a_number_is_what_its_sentence_says(
    text: str, expected: Callable[[Any, int], Any]
) -> None:
    for v, k in product(LISTS, range(-2, 5)):
        assert value(text, v=v, k=k) == expected(v, k), (v, k)


def test_an_index_of_the_broadcast_result_is_aligned_at_its_last_entry() -> None:
    for v, a in product(LISTS, product((1, 3), repeat=2)):
        expected = tuple(0 if n == 1 else i for i, n in zip(v[-2:], a, strict=True)) if len(v) >= 2 else None
        if expected is not None:
            assert value("align(v, a)", v=v, a=a) == expected


def test_numbers_are_rounded_up_to_integers() -> None:
    for n, d in product(range(-7, 8), (1, 2, 3)):
        assert value("ceiling(q)", q=Fraction(n, d)) == math.ceil(Fraction(n, d))
