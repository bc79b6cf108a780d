"""The passes of tools that rewrite models, and which rewrites of part 7 or theorems of part 6 say them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from sonnx.spec.library import own_specification

HERE = Path(__file__).parent
LEVEL1 = tomllib.loads((HERE / "level1.toml").read_text(encoding="utf-8"))["rewrites"]
SIMPLIFIERS = tomllib.loads((HERE / "simplifiers.toml").read_text(encoding="utf-8"))["rewrites"]
TABLES = {"level1": LEVEL1, "simplifiers": SIMPLIFIERS}


@pytest.mark.parametrize("table", TABLES)
def test_each_pass_has_rules_or_a_theorem_or_a_reason(table: str) -> None:
    text = own_specification()
    claims = {name: rule.claim for name, rule in text.rewrites.items()}
    for row in TABLES[table]:
        rules, theorem = row.get("rules", []), row.get("theorem")
        assert {claims[name] for name in rules} <= {"exact", "allowed", "reals"}, row
        assert theorem is None or theorem in text.properties, row
        assert bool(rules or theorem) != bool(row.get("missing")), row


def test_no_pass_is_counted_twice() -> None:
    assert len({(row["name"], row["form"]) for row in LEVEL1}) == len(LEVEL1)
    assert len({(row["tool"], row["name"]) for row in SIMPLIFIERS}) == len(SIMPLIFIERS)


def test_the_counts_are_those_that_are_told() -> None:
    said = {row["name"] for row in LEVEL1 if "missing" not in row}
    names = {row["name"] for row in LEVEL1}
    assert (len(LEVEL1), sum("rules" in row for row in LEVEL1), len(names), len(said)) == FORMS
    tools = {row["tool"]: [it for it in SIMPLIFIERS if it["tool"] == row["tool"]] for row in SIMPLIFIERS}
    assert {tool: (len(rows), sum("missing" not in row for row in rows)) for tool, rows in tools.items()} == PASSES


FORMS = (77, 63, 34, 29)
"""Of onnxruntime's Level 1: forms, those with rules, names, and names of which some form has rules or a theorem."""
PASSES = {"onnxoptimizer": (49, 38), "onnxsim": (43, 14), "onnxslim": (20, 18), "onnxscript": (58, 36)}
"""Of each tool: passes, and those that have rules or a theorem."""
