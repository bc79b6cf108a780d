"""Positions in row-major order are converted as counting says, for all small shapes."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from sonnx.semantics.formulas.terms import Term
from sonnx.semantics.operators.symbolic.digits import converted, flattened
from sonnx.semantics.operators.symbolic.numbers import substitute_term

SHAPES = [shape for rank in range(4) for shape in product((1, 2, 3, 4), repeat=rank)]
PAIRS = [(s, t) for s in SHAPES for t in SHAPES if prod(s) == prod(t) and prod(s) <= 12]


def test_an_index_is_converted_to_the_one_at_its_position() -> None:
    for source, target in PAIRS:
        for position in range(prod(source)):
            index = tuple(map(int, np.unravel_index(position, source))) if source else ()
            expected = tuple(map(int, np.unravel_index(position, target))) if target else ()
            assert converted(index, source, target, lambda a, b: a == b) == expected, (source, target)


def test_an_index_of_symbols_is_converted_likewise() -> None:
    for source, target in PAIRS:
        symbols = tuple(Term(f"i{axis}") for axis in range(len(source)))
        digits = converted(symbols, source, target, lambda a, b: a == b)
        for index in product(*map(range, source)):
            made = []
            for digit in digits:
                for symbol, value in zip(symbols, index, strict=True):
                    digit = substitute_term(digit, symbol, value)
                made.append(digit)
            position = int(np.ravel_multi_index(index, source)) if source else 0
            assert tuple(made) == (tuple(map(int, np.unravel_index(position, target))) if target else ())


@pytest.mark.parametrize("wrong", ["another shape", "another order", "one axis less"])
def test_only_the_whole_index_at_a_position_has_that_position(wrong: str) -> None:
    p, sizes = Term("p"), (Term("a"), Term("b"))
    index = tuple(Term("unflat", (k, p, *sizes)) for k in range(2))
    assert flattened(index, sizes) == p
    shape = (Term("b"), Term("a")) if wrong == "another shape" else sizes
    changed = {"another order": index[::-1], "one axis less": index[:1]}.get(wrong, index)
    assert flattened(changed, shape[: len(changed)]) is None
