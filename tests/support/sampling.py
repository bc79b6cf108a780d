"""Sweeps: a sample of the cases is tried on every run, the others in the campaign (`pytest -m campaign`).

The sample is drawn with a fixed seed, so that every process and every run tries the same. Both together are all cases.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

CAMPAIGN = pytest.mark.campaign


def sampled(cases: Iterable[Any], count: int) -> list[Any]:
    """All cases as parameters; those outside a sample of `count` are left to the campaign."""
    every = list(cases)
    chosen = set(random.Random(len(every)).sample(range(len(every)), min(count, len(every))))
    return [case if number in chosen else left(case) for number, case in enumerate(every)]


def one_of_each(cases: Iterable[Any], kind: Callable[[Any], object], most: int | None = None) -> list[Any]:
    """All cases as parameters; of each kind all but one, which is drawn, are left to the campaign.

    most: of how many kinds, which are drawn too; without it of all.
    """
    every = list(cases)
    kinds: dict[object, list[int]] = {}
    for number, case in enumerate(every):
        kinds.setdefault(kind(case), []).append(number)
    names = list(kinds) if most is None else random.Random(len(kinds)).sample(list(kinds), min(most, len(kinds)))
    chosen = {random.Random(f"{name}").choice(kinds[name]) for name in names}
    return [case if number in chosen else left(case) for number, case in enumerate(every)]


def left(case: Any) -> Any:
    """The case as a parameter of the campaign."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=CAMPAIGN)


def seeds(count: int, sample: int) -> list[Any]:
    """The seeds below `count` as two parameters: those of a sample, and the others for the campaign."""
    return [pytest.param(range(sample), id="sample"), pytest.param(range(sample, count), id="rest", marks=CAMPAIGN)]
