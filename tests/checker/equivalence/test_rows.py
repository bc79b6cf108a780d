"""The table of rewrites of popular tools that are wrong, held against the rewrites of part 7."""

from __future__ import annotations

import miscompilations
import pytest
from sonnx.spec.library import own_specification

ROWS = miscompilations.TABLE["rows"]


def test_there_are_31_rows() -> None:
    assert [row["row"] for row in ROWS] == [str(number) for number in range(1, 32)]


@pytest.mark.parametrize("row", ROWS, ids=[row["row"] for row in ROWS])
def test_a_row_names_rules_with_the_claims_that_it_says(row: dict[str, list[str]]) -> None:
    claims = {name: rule.claim for name, rule in own_specification().rewrites.items()}
    assert {claims[name] for name in row["never"]} <= {"never"}
    assert {claims[name] for name in row["repaired"]} <= {"exact", "allowed", "reals"}
    assert row["never"] or row["repaired"]


@pytest.mark.parametrize("row", ROWS, ids=[row["row"] for row in ROWS])
def test_a_row_has_a_repair_or_says_why_it_has_none(row: dict[str, str]) -> None:
    assert "theorem" not in row or row["theorem"] in own_specification().properties
    assert bool(row["repaired"] or row.get("theorem")) != bool(row.get("missing"))


def test_each_case_of_the_ledger_is_of_a_row() -> None:
    cases = [name for row in ROWS for name in row["cases"]]
    assert sorted(cases) == sorted(miscompilations.ALL)
    for row in ROWS:
        assert {name.partition("-")[0] for name in row["cases"]} <= {*row["never"], *row["repaired"]}
