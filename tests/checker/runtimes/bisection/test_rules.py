"""The rewrites of part 7 that an optimizer is said to make are found by its name, whatever its level."""

from __future__ import annotations

from sonnx.checker.runtimes.bisection.rules import named_rules, refuting
from tables import table

QUOTIENT = frozenset({"Div", "Mul"})


def test_a_rule_is_named_by_its_source_with_its_claim_and_operators() -> None:
    found = {it.name: it for it in named_rules("DivMulFusion")}
    assert found["DivMulIntegers"].claim == "never"
    assert found["DivMulIntegers"].reason and found["DivMulIntegers"].sentence
    assert found["DivMulIntegers"].operators == QUOTIENT
    assert found["DivMul"].claim == "reals" and found["DivMul"].reason == ""


@table(
    ("optimizer", "rewrite"),
    [
        ("GeluFusionL2", "GeluTolerance"),
        ("Pad_Fusion", "PadConv"),
        ("TransposeOptimizer_CPUExecutionProvider", "TransposeTranspose"),
        ("DoubleQDQPairsRemover", "DoubleQuantization"),
        ("MatMulScaleFusion", "MatMulScaleBits"),
    ],
)
def test_level_provider_and_spelling_do_not_hide_a_name(optimizer: str, rewrite: str) -> None:
    assert rewrite in {it.name for it in named_rules(optimizer)}


def test_a_name_within_a_longer_one_is_another_optimizer() -> None:
    assert named_rules("MulFusion") == named_rules("NoSuchPass") == ()


def test_refuted_rules_come_first_and_only_those_on_the_operators_that_are_changed() -> None:
    claims = [it.claim for it in refuting(["DivMulFusion"], QUOTIENT)]
    assert claims == sorted(claims) and {"never", "reals"} == set(claims)
    assert "DivMulOwnType" not in {it.name for it in refuting(["DivMulFusion"], QUOTIENT)}
    assert refuting(["DivMulFusion"], frozenset({"Conv"})) == ()
