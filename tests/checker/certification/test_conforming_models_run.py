"""A model that conforms runs: it gets stuck on listed obligations only; and what everybody refuses does not conform.

The campaign (-m campaign) judges 20,000 random models. A folder that SONNX_CAMPAIGN names keeps the records, so that an
interrupted campaign goes on there; each record holds its seed, and a mistake of the tool is found again by that.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections import Counter
from pathlib import Path

import journal as journals
import pytest
from judged_models import judged, wrong
from sonnx.semantics.facts.inference import model as claims
from warm_inference import WORKER, warm

SUITE = range(12)
CAMPAIGN = range(12, 12 + int(os.environ.get("SONNX_CAMPAIGN_MODELS", "20000")))
BLOCK = 25


@pytest.fixture(scope="module")
def records() -> list[dict[str, object]]:
    """The records of the models that are drawn on every run."""
    return [judged(seed) for seed in SUITE]


def test_random_models_that_conform_run(records: list[dict[str, object]]) -> None:
    assert [(it["seed"], wrong(it)) for it in records if wrong(it)] == []


def test_random_models_are_of_all_kinds(records: list[dict[str, object]]) -> None:
    verdicts = Counter(str(it["verdict"]) for it in records)
    assert verdicts["CONFORMS"] > 2 and verdicts["VIOLATES"] > 4


@pytest.mark.campaign
def test_twenty_thousand_random_models_that_conform_run(tmp_path: Path) -> None:
    kept = Path(os.environ.get("SONNX_CAMPAIGN") or tmp_path)
    kept.mkdir(parents=True, exist_ok=True)
    journal = kept / "conforming.jsonl"
    records = journals.done(journal, "seed")
    waiting = [seed for seed in CAMPAIGN if seed not in records]
    blocks = [waiting[first : first + BLOCK] for first in range(0, len(waiting), BLOCK)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(2, maxtasksperchild=20) as pool, journal.open("a") as file:
        for found in pool.imap(_block, blocks):
            records |= {record["seed"]: record for record in found}
            file.writelines(json.dumps(record) + "\n" for record in found)
            file.flush()
    assert len(records) >= len(CAMPAIGN)
    assert [(seed, record["mistakes"], wrong(record)) for seed, record in records.items() if wrong(record)] == []


def _block(seeds: list[int]) -> list[dict[str, object]]:
    with warm((claims, WORKER)):
        return [judged(seed) for seed in seeds]
