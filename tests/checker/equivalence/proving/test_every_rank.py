"""Proofs for any number of axes: of what holds for all of them, and of nothing that fails at 5."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sampling import sampled
from sonnx.checker.equivalence.proving.judging import judge
from sonnx.checker.equivalence.proving.rules import PROVED, Verdict
from sonnx.checker.equivalence.proving.suite import judged_rewrite, rule
from sonnx.spec.library import extended, own_specification, specification

CONTROLS = {
    part.split()[1]: part
    for part in re.findall(
        r"^rewrite .*?exactly$",
        Path(__file__).with_name("every_rank.sonnx").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
}
"""False rewrites by name."""
QUICK = ("K1", "K5", "K10", "K15", "K26", "K30", "A1", "A3", "A5", "A6", "A49", "A50", "Turned")
EVERY = {
    "NegNeg": "any", "AddNeg": "any", "AddZero": "any", "SwishWritten": "any", "GeluWritten": "one by one",
    "SqueezeAllEarlier": "any", "BiasGelu": "any", "PowTwo": "any",
}  # fmt: skip
"""Rewrites that are proved for any number of axes, with the types for which they are."""
BROADCAST = """rewrite Sums (A: T[a...], B: T[b...]) -> Y: T "A rule." source "tests"
  types T = float
  from Y = Add@14(Neg@13(A), B)
  to Y = Sub@14(B, A)
  exactly"""


def judged(text: str, most: int = 2) -> Verdict:
    core = extended(own_specification(), {"x.sonnx": text + "\n"}).rules[text.split()[1]]
    return judge(rule(core), most=most, search=False)


def test_there_are_enough_controls() -> None:
    assert len(CONTROLS) >= 55


@pytest.mark.parametrize("name", [*QUICK, *sampled([name for name in CONTROLS if name not in QUICK], 0)])
def test_a_false_rule_is_not_proved_for_every_rank(name: str) -> None:
    found = judged(CONTROLS[name])
    assert found.verdict != PROVED or (name.startswith("K") and not found.every)


def test_what_fails_at_five_axes_is_proved_up_to_four() -> None:
    found = judged(CONTROLS["K5"], most=4)
    assert (found.verdict, found.every, found.axes) == (PROVED, False, "0-4")


@pytest.mark.parametrize("name", EVERY)
def test_rules_are_proved_for_every_rank(name: str) -> None:
    found = judged_rewrite(specification().rules[name], search=False)
    assert (found.holds, found.axes, found.types) == (True, "every", EVERY[name])


def test_a_sum_with_a_negative_is_a_difference_whatever_broadcasts() -> None:
    found = judged(BROADCAST)
    assert (found.verdict, found.axes) == (PROVED, "every")


def test_a_proof_for_few_axes_is_found_where_none_for_every_rank_is_looked_for() -> None:
    found = judged_rewrite(specification().rules["NegNeg"], search=False, every=False)
    assert (found.verdict, found.every) == (PROVED, False)
