"""Wrong variants of the rewrites of part 7, as a control of the prover: none of them is proved."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from sampling import sampled
from sonnx.checker.equivalence.proving.judging import judge
from sonnx.checker.equivalence.proving.rules import PROVED, STRENGTHS, Rule
from sonnx.spec.library import extended, own_specification
from sonnx.spec.parsed import read_texts

VARIANTS = tomllib.loads((Path(__file__).parent / "wrong_rules.toml").read_text(encoding="utf-8"))
"""By rule: texts in it, each with another text in its place. On the machine the sides of each variant differ."""
EACH = [(name, number) for name, variants in VARIANTS.items() for number in range(len(variants))]


def text_of(name: str) -> str:
    """The text of a rule."""
    texts = "\n".join(text for file, text in read_texts().items() if file.startswith("7-transforms/"))
    found = re.search(rf"^rewrite {name} .*?(?=^rewrite |^define |^#|\Z)", texts, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found.group()


def test_there_are_enough() -> None:
    assert len(EACH) >= 300


def test_each_proved_rule_has_one() -> None:
    proved = {name for name, rule in own_specification().rules.items() if rule.claim != "never"}
    assert set(VARIANTS) == proved


@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_replaced_stands_once_in_the_rule(name: str) -> None:
    text = text_of(name)
    assert [text.count(variant["old"]) for variant in VARIANTS[name]] == [1] * len(VARIANTS[name])
    assert len({(variant["old"], variant["new"]) for variant in VARIANTS[name]}) == len(VARIANTS[name])


@pytest.mark.parametrize(("name", "number"), sampled(EACH, 6))
def test_a_wrong_variant_is_not_proved(name: str, number: int) -> None:
    variant = VARIANTS[name][number]
    text = text_of(name).replace(variant["old"], variant["new"]).replace(f"rewrite {name} ", f"rewrite {name}Wrong ", 1)
    it = extended(own_specification(), {"wrong.sonnx": text}).rules[f"{name}Wrong"]
    found = judge(Rule(it.name, it.claim, it.left, it.right, it.stored, it.doc), most=3, search=False)
    assert found.verdict != PROVED or STRENGTHS.index(found.strength) > STRENGTHS.index(it.claim)
