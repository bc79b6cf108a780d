"""The rewrites of XLA's algebraic simplifier that TensorRight has, and which rewrites of part 7 say them in ONNX."""

from __future__ import annotations

import tomllib
from pathlib import Path

from sonnx.spec.library import own_specification

TABLE = tomllib.loads((Path(__file__).parent / "tensorright.toml").read_text(encoding="utf-8"))["rewrites"]
"""TensorRight's rules (rules/xla of its repository): place, words, and the rules here, or why there is none."""


def test_each_row_names_rules_or_a_reason() -> None:
    known = own_specification().rewrites
    for row in TABLE:
        assert set(row["rules"]) <= set(known), row
        assert bool(row["rules"]) != bool(row.get("missing")), row


def test_the_counts_are_those_that_are_told() -> None:
    claims = {name: rule.claim for name, rule in own_specification().rewrites.items()}
    said = [row for row in TABLE if row["rules"]]
    bits = [row for row in said if any(claims[name] in ("exact", "allowed") for name in row["rules"])]
    true = [row for row in said if any(claims[name] != "never" for name in row["rules"])]
    assert (len(TABLE), len(said), len(true), len(bits)) == (120, SAID, TRUE, BITS)


SAID, TRUE, BITS = 91, 86, 79
"""Said here in some sense; true at least over the reals; so that the bits are those of the left side: for some element
types, axes and signs at least.
"""
