"""What the text leaves open is no free choice where something else depends on it: another output, or a condition."""

from __future__ import annotations

import pytest
from sonnx.checker.equivalence.proving.asking import Asker
from sonnx.checker.equivalence.proving.equality import Equality
from sonnx.checker.equivalence.proving.judging import judge
from sonnx.checker.equivalence.proving.rules import PROVED, Rule, Verdict
from sonnx.semantics.formulas.terms import Term
from sonnx.spec.library import extended, own_specification


def verdict(heading: str, sides: str, claim: str, most: int = 1) -> Verdict:
    """The verdict about a rule of this text."""
    text = f'rewrite Tried {heading} "A sentence." source "a test" {sides} {claim}'
    it = extended(own_specification(), {"tried.sonnx": text}).rules["Tried"]
    return judge(Rule(it.name, it.claim, it.left, it.right, it.stored, it.doc), most=most, search=False)


@pytest.mark.parametrize("claim", ["exactly", "allowed"])
def test_two_outputs_do_not_share_an_open_element(claim: str) -> None:
    """A NaN has any integer, but one and the same in both outputs of the left side."""
    cast = "Cast@13(X; to = 6)"
    heading = "(X: float[d...]) -> (Y: int32, Z: int32)"
    found = verdict(heading, f"from A = {cast} Y = Identity@14(A) Z = Identity@14(A) to Y = {cast} Z = {cast}", claim)
    assert found.verdict != PROVED
    assert "shares elements" in found.reasons[0]


def test_two_outputs_may_each_have_an_open_element() -> None:
    two = "Y = Cast@13(X; to = 6) Z = Cast@13(X; to = 7)"
    found = verdict("(X: float[d...]) -> (Y: int32, Z: int64)", f"from {two} to {two}", "exactly")
    assert found.verdict == PROVED


OPEN, FIVE = Term("@.free", ("float", 1)), Term("@.num", ("float", "5"))
NEGATIVE = Term("@<", ("float", OPEN, Term("@.num", ("float", "0"))))


def test_an_open_element_may_be_anything_where_nothing_depends_on_it() -> None:
    equality = Equality(Asker(), {}, ())
    assert equality.same(OPEN, FIVE, ())
    assert equality.refined


def test_an_open_element_that_is_known_to_be_negative_is_not_any_number() -> None:
    assert not Equality(Asker(), {}, ()).same(OPEN, FIVE, (NEGATIVE,))


def test_the_right_side_does_not_decide_by_an_open_element() -> None:
    """Two reads of what is open are two values on the right side, for all that is known."""
    twice = Term("@.ite", (NEGATIVE, FIVE, Term("@.num", ("float", "6"))))
    both = Term("@-", ("float", twice, twice))
    assert not Equality(Asker(), {}, ()).same(Term("@.num", ("float", "0")), both, ())


REVERSED = "Slice@1({}; axes = [0], starts = [-1], ends = [-1 - n])"


@pytest.mark.parametrize(("other", "holds"), [("{}", True), (REVERSED, False)])
def test_one_open_element_in_several_places_by_cases_is_not_several(other: str, holds: bool) -> None:
    """Where each alternative has it at an index of its own, two indices have it in different alternatives."""
    cast = "Cast@13({}; to = 6)"
    left = f"from C = {cast.format('X')} Y = Where@9(c, Identity@14(C), {other.format('C')})"
    right = f"to Y = Where@9(c, {cast.format('X')}, {cast.format(other.format('X'))})"
    found = verdict("(X: float[n], c: bool[n]) -> Y: int32", f"{left} {right}", "allowed")
    assert (found.verdict == PROVED) == holds, found.reasons


INDEX, COUNT = Term("i..0"), Term("count!0")
SYMBOLS = {"i..0": (0, "Int"), "count!0": (0, "Int")}


@pytest.mark.parametrize(("place", "own"), [(0, False), (INDEX, True), (COUNT, True)])
def test_what_comes_with_an_index_is_another_one_at_another_index(place: Term | int, own: bool) -> None:
    """All indices have the first open element, though the count of each is the index itself."""
    equality = Equality(Asker(), SYMBOLS, (INDEX,), own=frozenset({"count!0"}))
    fact = Term("=", (COUNT, INDEX))
    assert equality.same(Term("@.free", ("float", 1, place)), FIVE, (fact,)) == own


def test_an_open_element_is_not_free_where_an_index_drew_the_case() -> None:
    equality = Equality(Asker(), SYMBOLS, (INDEX,), alone=False)
    assert not equality.same(Term("@.free", ("float", 1, INDEX)), FIVE, ())


# ---- Over the reals -------------------------------------------------------------------------------


def test_the_right_side_divides_only_by_what_the_left_side_divides_by_at_the_same_steps() -> None:
    """The left side divides by the first element, the right one by all: where the second is 0 it has no value."""
    first = "ReduceSum@11(Reciprocal@13(Slice@1(W; axes = [0], starts = [0], ends = [1])); axes = [0], keepdims = 0)"
    every = "ReduceSum@11(Reciprocal@13(W); axes = [0], keepdims = 0)"
    heading = "(W: float[n]) -> Y: float"
    wrong = f"from Y = {first} to Y = Add@14({first}, Sub@14({every}, {every}))"
    right = f"from Y = Add@14({every}, {first}) to Y = Add@14({first}, Sub@14({every}, Sub@14({every}, {every})))"
    assert verdict(heading, right, "in reals").verdict == PROVED
    assert verdict(heading, wrong, "in reals").verdict != PROVED


@pytest.mark.parametrize("partial", ["Log@13(W)", "Exp@13(Reciprocal@13(W))", "Sqrt@13(W)", "Reciprocal@13(W)"])
def test_what_cancels_out_on_the_right_side_has_to_be_defined(partial: str) -> None:
    heading = "(X: float[d...], W: float[d...]) -> Y: float"
    less = "Add@14(X, W)"
    more = f"Add@14({less}, Sub@14({partial}, {partial}))"
    assert verdict(heading, f"from Y = {less} to Y = {more}", "in reals").verdict != PROVED
    assert verdict(heading, f"from Y = {more} to Y = {less}", "in reals").verdict == PROVED


SUM = "ReduceSum@11({}; axes = [0], keepdims = 0)"
FIRST = "Slice@1({}; axes = [0], starts = [0], ends = [1])"
INVERSES = SUM.format("Reciprocal@13(X)")
QUOTIENTS = "Div@14(Mul@14(Z, X), X)"
SHORT = {
    "as a function's argument": ("Exp@13(Z)", f"Exp@13({FIRST.format('Reciprocal@13(X)')})", INVERSES),
    "beside one of its kind": ("Exp@13(Reciprocal@13(Z))", f"Exp@13({FIRST.format('Reciprocal@13(X)')})", INVERSES),
    "as what cancels out": ("Exp@13(Z)", f"Exp@13({FIRST.format(QUOTIENTS)})", SUM.format(f"Exp@13({QUOTIENTS})")),
}
"""By how the first element alone is divided by: what the left side sums, and what the right side does for all."""


@pytest.mark.parametrize("how", SHORT)
def test_what_is_compared_with_an_element_is_not_reached_where_that_is(how: str) -> None:
    """With X = [1, 0] the right side has no value, and the left one has."""
    every, first, more = SHORT[how]
    heading = "(X: float[m], Z: float[m]) -> Y: float"
    left = f"Add@14({SUM.format(first)}, {SUM.format(every)})"
    right = f"Add@14({left}, Sub@14({more}, {more}))"
    assert verdict(heading, f"from Y = {left} to Y = {right}", "in reals", 2).verdict != PROVED
    assert verdict(heading, f"from Y = {right} to Y = {left}", "in reals", 2).verdict == PROVED
