"""Long campaigns: the fast path agrees with the machine on the shared models, the wheel's tests, and random models.

Run with -m campaign. A folder that SONNX_CAMPAIGN names keeps what is done, so that an interrupted campaign goes on
there; SONNX_CAMPAIGN_MODELS says how many random models are drawn.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from sonnx.checker.runtimes.conformance.running import Journal, Records, conform
from sonnx.checker.runtimes.conformance.suites import references

MODELS = Path(__file__).parents[4] / ".." / "shared" / "models"
DRAWN = int(os.environ.get("SONNX_CAMPAIGN_MODELS", "6000"))
"""Models; each is run on two sets of inputs where it has inputs and breaks no requirement on purpose."""
ENGINES = ("machine", "numpy")
AGREE = ("pass", "allowed freedom")
NO_RESULT = ("refused", "outside the domain", "harness error", "not compared")
"""What is true of the machine where there is no result, or the model cannot be read, or is too large."""
NOTHING = "there was nothing to compare"
"""A model without outputs."""

pytestmark = pytest.mark.campaign


def campaign(suite: str, folder: Path, *, every_node: bool) -> Records:
    kept = Path(os.environ.get("SONNX_CAMPAIGN") or folder)
    kept.mkdir(parents=True, exist_ok=True)
    label = "models" if suite == str(MODELS) else suite.replace(":", "-")
    journal = Journal(kept / f"{label}.jsonl", dict.fromkeys(ENGINES, ""))
    return conform(references(suite), ENGINES, jobs=2, journal=journal, every_node=every_node)


def disagreements(records: Records) -> list[str]:
    """Where the machine gives a result and the fast path one that is not allowed, or none."""
    machine = {it.case: it.outcome for it in records if it.engine == "machine"}
    return [
        f"{it.case}: {it.outcome} {it.kind} {it.operator} {it.why} {it.worst}"
        for it in records
        if it.engine == "numpy" and it.outcome not in AGREE and machine[it.case] not in NO_RESULT and it.why != NOTHING
    ]


@pytest.mark.skipif(not MODELS.is_dir(), reason="the shared models are not at ../shared/models")
def test_the_fast_path_agrees_on_every_node_of_the_shared_models(tmp_path: Path) -> None:
    records = campaign(str(MODELS), tmp_path, every_node=True)
    assert Counter(it.outcome for it in records if it.engine == "machine")["pass"] > 40
    assert not disagreements(records)


def test_the_fast_path_agrees_on_the_tests_of_the_wheel(tmp_path: Path) -> None:
    records = campaign("onnx", tmp_path, every_node=False)
    assert Counter(it.outcome for it in records if it.engine == "machine")["pass"] > 1500
    assert not disagreements(records)


def test_the_fast_path_agrees_on_random_models(tmp_path: Path) -> None:
    records = campaign(f"random:1:{DRAWN}", tmp_path, every_node=False)
    cases = len(records) // len(ENGINES)
    assert cases > 10_000 or DRAWN < 6000
    assert not disagreements(records)
