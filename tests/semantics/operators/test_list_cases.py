"""Operators on strings, sequences and values that occur once: random applications against onnxruntime."""

from __future__ import annotations

import pytest
from list_cases import CASES, REASONS, differences
from sampling import CAMPAIGN


@pytest.mark.parametrize(("name", "version"), CASES)
@pytest.mark.parametrize("count", [pytest.param(20, id="sample"), pytest.param(300, id="all", marks=CAMPAIGN)])
def test_onnxruntime_gives_what_the_text_says(name: str, version: int, count: int) -> None:
    pytest.importorskip("onnxruntime")
    found = differences(name, version, count)
    known = {"same", "both refuse", *REASONS.get(name, ())} | ({"allowed"} if name == "Cast" else set())
    if name == "RegexFullMatch":
        known.add("not handled")
    assert set(found) <= known, {word: cases[0] for word, cases in found.items() if word not in known}
    assert len(found["same"]) > count // 10
