"""The record of what is proved of rewrites: of the present texts, and for all of them."""

from __future__ import annotations

from pathlib import Path

from sonnx.checker.equivalence.proving.rules import LISTED, PROVED, Verdict
from sonnx.checker.equivalence.proving.suite import judged
from sonnx.checker.equivalence.record import COLUMNS, STRENGTHS, digest, proofs, rows, write
from sonnx.spec.library import specification

SAMPLE = ("ConvEarlier", "ReluRelu", "AbsNeg")


def test_each_rule_is_on_record_with_the_present_text() -> None:
    known = {row["rule"]: row for row in rows()}
    assert known.keys() == specification().rules.keys()
    for name, rule in specification().rules.items():
        row = known[name]
        assert (row["claim"], row["digest"]) == (rule.claim, digest(rule)), name
        assert (row["verdict"] == PROVED) == (rule.claim != "never"), name


def test_what_is_proved_is_at_least_what_is_claimed() -> None:
    found = proofs()
    claims = {name: rule.claim for name, rule in specification().rules.items() if rule.claim != "never"}
    assert found.keys() == claims.keys()
    assert all(STRENGTHS.index(found[name].strength) <= STRENGTHS.index(claim) for name, claim in claims.items())


def test_the_readme_says_how_many_rewrites_there_are_and_how_many_are_proved_for_every_rank() -> None:
    readme = " ".join((Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8").split())
    every = sum(row["axes"] == "any" and row["verdict"] == PROVED for row in rows())
    assert f"has {len(specification().rules)} rewrites" in readme
    assert f"every rank ({every} of them)" in readme


def test_a_few_are_judged_anew() -> None:
    for name in SAMPLE:
        assert judged(name).holds, name


def test_a_row_is_written_for_what_holds_and_taken_out_for_what_does_not(tmp_path: Path) -> None:
    path = tmp_path / "proved.tsv"
    good = Verdict("ReluRelu", "exact", PROVED, "exact", types="any", cut=("length of a list",))
    write([good, Verdict("AbsNeg", "exact", "open")], LISTED, path)
    (row,) = rows(path)
    assert tuple(row) == COLUMNS and (row["rule"], row["lists"]) == ("ReluRelu", str(LISTED))
    assert row["cut"] == "length of a list"
    write([Verdict("ReluRelu", "exact", "open")], LISTED, path)
    assert rows(path) == []


def test_lists_that_were_cut_are_named_where_some_were() -> None:
    for row in rows():
        assert row["lists"] != "any" or row["cut"] == "", row["rule"]
    assert {row["cut"] for row in rows() if row["rule"] in ("CastReshape", "PadTranspose")} == {"n", "length of p"}
