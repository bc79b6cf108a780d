"""Where two models part, and no rule joins them, the place itself is proved, or it is said why not."""

from __future__ import annotations

import time

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper
from sonnx.checker.equivalence.comparing import comparison, islands
from sonnx.checker.equivalence.comparing.comparison import Comparison, Verdict, compare
from sonnx.checker.equivalence.comparing.normalizing import Strength
from sonnx.checker.equivalence.comparing.report import lines, to_data
from sonnx.checker.equivalence.comparing.searching import Search
from sonnx.semantics import load_proto
from sonnx.semantics.model.graph import Model

SECONDS = 60.0
TWO, THREE = (
    "g (float[N, 3] x, float[N, 3] y) => (float[N, 3] z)",
    "g (float[2] x, float[2] y, float[2] c) => (float[2] z)",
)
TRUTHS = "g (bool[N, 3] x, bool[N, 3] y) => (bool[N, 3] z)"


@pytest.fixture(autouse=True)
def _without_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """No input is looked for: that would take the time that is given to proofs once more."""
    monkeypatch.setattr(comparison, "search", lambda *_: Search(None, 0))


def model(text: str, **stored: np.ndarray) -> Model:
    proto = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]>\n' + text)
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in stored.items())
    return load_proto(proto)


def compared(a: str, b: str, strength: Strength = Strength.EXACT, seconds: float = SECONDS) -> Comparison:
    return compare(model(a), model(b), strength=strength, seconds=seconds)


NOT_BOTH = f"{TRUTHS} {{ a = And(x, y) z = Not(a) }}"
EITHER_NOT = f"{TRUTHS} {{ a = Not(x) b = Not(y) z = Or(a, b) }}"
TRUE = {
    "a law of truth values, for all sizes": (NOT_BOTH, EITHER_NOT, Strength.EXACT, Verdict.EQUAL),
    "a side that reads more": (
        f"{TRUTHS} {{ z = Not(x) }}",
        f"{TRUTHS} {{ a = Not(x) b = And(a, y) z = Or(a, b) }}",
        Strength.EXACT,
        Verdict.EQUAL,
    ),
    "another order of a sum": (
        f"{THREE} {{ s = Sum(x, y, c) z = Exp(s) }}",
        f"{THREE} {{ a = Add(y, c) s = Add(a, x) z = Exp(s) }}",
        Strength.REALS,
        Verdict.REALS,
    ),
    "a block of pixels at its shape": (
        "g (float[1, 8, 2, 3] x) => (float[1, 2, 4, 6] z) { z = DepthToSpace<blocksize = 2>(x) }",
        "g (float[1, 8, 2, 3] x) => (float[1, 2, 4, 6] z) { s = Constant<value_ints = [1, 2, 2, 2, 2, 3]>()"
        " t = Constant<value_ints = [1, 2, 4, 6]>() a = Reshape(x, s) b = Transpose<perm = [0, 3, 4, 1, 5, 2]>(a)"
        " z = Reshape(b, t) }",
        Strength.EXACT,
        Verdict.EQUAL,
    ),
}
FALSE = {
    "another law": (NOT_BOTH, f"{TRUTHS} {{ a = Not(x) b = Not(y) z = And(a, b) }}", Strength.EXACT),
    "another order of a sum, exactly": (
        f"{THREE} {{ z = Sum(x, y, c) }}",
        f"{THREE} {{ a = Add(y, c) z = Add(a, x) }}",
        Strength.EXACT,
    ),
    "operands of a difference": (f"{TWO} {{ z = Sub(x, y) }}", f"{TWO} {{ z = Sub(y, x) }}", Strength.REALS),
    "other pixels": (
        "g (float[1, 4, 2, 2] x) => (float[1, 1, 4, 4] z) { z = DepthToSpace<blocksize = 2>(x) }",
        "g (float[1, 4, 2, 2] x) => (float[1, 1, 4, 4] z) { s = Constant<value_ints = [1, 1, 4, 4]>()"
        " z = Reshape(x, s) }",
        Strength.EXACT,
    ),
    "an element that the text leaves open": (
        "g (float[2] x) => (float[2] z) { a = Abs(x) z = Neg(a) }",
        "g (float[2] x) => (float[2] z) { a = Neg(x) z = Min(x, a) }",
        Strength.EXACT,
    ),
}


@pytest.mark.parametrize(
    "name", [name if name in list(TRUE)[:2] else pytest.param(name, marks=pytest.mark.campaign) for name in TRUE]
)
def test_a_place_that_no_rule_joins_is_proved_alone(name: str) -> None:
    a, b, strength, verdict = TRUE[name]
    found = compared(a, b, strength)
    assert found.verdict is verdict and not found.differences
    (shown,) = found.sides.islands
    assert shown.text in "\n".join(line[9:] for line in lines(found)) + "\n"
    told = to_data(found)["shown"]
    assert isinstance(told, list) and len(told) == 1
    assert "where one place in which they part is proved alone" in lines(found)[2]


def test_a_place_of_numbers_may_give_another_nan() -> None:
    """A proof takes all NaNs for one."""
    found = compared(f"{TWO} {{ z = Sum(x, y) }}", f"{TWO} {{ z = Add(x, y) }}")
    assert found.verdict is Verdict.EQUAL and found.sides.islands and not found.sides.firings
    assert "may give another NaN" in lines(found)[2]
    truths = compared(NOT_BOTH, EITHER_NOT)
    assert truths.verdict is Verdict.EQUAL and "NaN" not in lines(truths)[2]


@pytest.mark.parametrize(
    "name", [name if name in list(FALSE)[:3] else pytest.param(name, marks=pytest.mark.campaign) for name in FALSE]
)
def test_what_is_not_equal_is_not_proved(name: str) -> None:
    a, b, strength = FALSE[name]
    found = compared(a, b, strength)
    assert found.proved is not Strength.EXACT and (strength is Strength.EXACT or found.proved is None)
    if found.proved is None:
        assert found.sides.open_ and not found.sides.islands
        assert any(line.startswith("open ") for line in lines(found))


def test_numbers_are_equal_where_they_are_numbers() -> None:
    """x * y / y is x where y is not 0, and x is there too where y is."""
    found = compared(f"{TWO} {{ a = Mul(x, y) z = Div(a, y) }}", f"{TWO} {{ z = Identity(x) }}", Strength.REALS)
    assert found.verdict is Verdict.REALS and "no division by 0" in lines(found)[2]


def test_rounding_before_a_decision_is_no_equality() -> None:
    """Equal over the reals below, and ArgMax above turns what rounding leaves of it into another place."""
    head = "g (float[2, 4] x, float[2, 4] y, float[2, 4] c) => (int64[2, 1] z)"
    found = compared(
        f"{head} {{ s = Sum(x, y, c) z = ArgMax<axis = 1>(s) }}",
        f"{head} {{ a = Add(y, c) s = Add(a, x) z = ArgMax<axis = 1>(s) }}",
        Strength.REALS,
    )
    assert found.proved is None and found.decisions


def test_what_is_shown_for_short_lists_is_not_shown() -> None:
    """Rules say up to how many entries they are proved; an island is to hold as it stands."""
    text = (
        'rewrite Island (X: float[2, 3], s: int64[n]) -> Y: float "Two places compute the same."\n'
        '  source "the two models"\n  from Y = Neg@13(Expand@13(X, s))\n  to Y = Expand@13(Neg@13(X), s)\n  exactly\n'
    )
    rule = islands._rule(text)
    assert rule is not None
    strength, told, _ = islands._judged(rule, SECONDS)
    assert not strength and "short lists only: n" in told


def test_the_time_is_kept() -> None:
    begun = time.monotonic()
    found = compared(NOT_BOTH, EITHER_NOT, seconds=0.0)
    assert found.proved is None and "in the time that there is" in found.sides.open_
    assert time.monotonic() - begun < SECONDS / 2


def test_the_size_is_kept() -> None:
    chain = " ".join(f"v{k + 1} = Sin(v{k})" for k in range(islands.MOST))
    head = "g (float[2] v0) => (float[2] z)"
    found = compared(f"{head} {{ {chain} z = Exp(v{islands.MOST}) }}", f"{head} {{ z = Cos(v0) }}")
    assert found.proved is None and f"more than {islands.MOST} applications" in found.sides.open_
