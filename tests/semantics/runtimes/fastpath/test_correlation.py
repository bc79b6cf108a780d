"""Correlation: every way gives the same whoever does which part, and however much is done at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from applications import Case
from fastpath_cases import computed, disagreements, same, whole
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath import correlation, repeating, workers
from sonnx.semantics.runtimes.fastpath.correlation import Correlation, way_of
from sonnx.semantics.runtimes.fastpath.kernels.convolution import KERNELS
from sonnx.semantics.runtimes.fastpath.windows import Window, place


def _conv(x: tuple[int, ...], w: tuple[int, ...], bias: bool = True, **attributes: Any) -> Case:
    inputs = [whole("x", x, np.float32), whole("w", w, np.float32), *([whole("b", w[:1], np.float32)] if bias else [])]
    return tuple(inputs), attributes, 1


CASES = [
    _conv((2, 3, 7, 11), (5, 3, 3, 2), pads=(1, 0, 2, 1), strides=(2, 3), dilations=(1, 2)),
    _conv((2, 4, 9, 5), (6, 2, 3, 3), group=2, pads=(1, 1, 1, 1)),
    _conv((2, 2, 19, 13), (5, 2, 3, 2), pads=(1, 0, 1, 1)),
    _conv((1, 4, 33, 12), (6, 2, 3, 1), False, group=2, strides=(2, 1), pads=(1, 0, 1, 0)),
    _conv((1, 4, 5, 3), (40, 4, 3, 3), pads=(1, 1, 1, 1)),
    _conv((1, 4, 5, 3), (40, 2, 3, 3), False, group=2, pads=(1, 1, 1, 1), strides=(1, 2)),
    _conv((1, 4, 13, 2), (5, 4, 3, 1)),
    _conv((2, 9, 11, 5), (3, 9, 3, 2), pads=(2, 1, 1, 0), dilations=(2, 1)),
    _conv((1, 9, 11), (3, 9, 4), pads=(1, 2)),
    _conv((1, 5, 2, 7, 3), (2, 5, 2, 3, 1), pads=(1, 1, 0, 0, 1, 0)),
    _conv((2, 7, 9, 5), (14, 1, 3, 2), group=7, pads=(1, 0, 0, 1), dilations=(2, 1)),
    _conv((2, 5, 9, 6), (5, 1, 3, 3), group=5, pads=(1, 1, 1, 1), strides=(2, 2)),
    _conv((2, 6, 5, 7), (4, 3, 1, 1), group=2),
    _conv((1, 6, 5, 7), (40, 6, 1, 1)),
    _conv((1, 6, 5, 7), (4, 6, 1, 1)),
    _conv((0, 6, 5, 7), (4, 6, 3, 1)),
    _conv((2, 4, 11, 5), (6, 4, 3, 3), pads=(1, 1, 2, 0), dilations=(2, 1)),
    _conv((1, 4, 9), (6, 4, 4), False, pads=(2, 1)),
    _conv((1, 3, 7, 3, 4), (4, 3, 2, 3, 2), pads=(1, 1, 0, 0, 1, 1)),
]


def _in_turns(count: int, work: workers.Work, most: int | None) -> None:
    """As `shared`, each part by the next worker; the last parts first."""
    for part in reversed(range(count)):
        work(part, part % min(most or 3, count))


@pytest.fixture(params=["alone", "in small parts", "by three threads", "by three workers in turns"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "alone":
        monkeypatch.setattr(correlation, "COLUMN_BYTES", 300)
        monkeypatch.setattr(correlation, "CHANNEL_BYTES", 300)
        for name, value in {"ROW_BYTES": 300, "TAP_BYTES": 300, "DIRECT_BYTES": 300, "_LEAST_ROWS": 2, "_NARROW": 1,
                            "ROW_TERMS": 1}.items():  # fmt: skip
            monkeypatch.setattr(correlation, name, value)
    if "three" in request.param:
        for name, value in {"THREADS": 3, "_BYTES": 1, "_TERMS": 1}.items():
            monkeypatch.setattr(workers, name, value)
    if "in turns" in request.param:
        for name in ("shared", "shared_products"):
            monkeypatch.setattr(repeating, name, _in_turns)


@pytest.mark.usefixtures("parts")
def test_each_way_gives_what_the_definition_gives() -> None:
    assert not disagreements(KERNELS, "Conv", 11, CASES, signs=False)


@pytest.mark.usefixtures("parts")
def test_what_is_computed_beside_the_data_reaches_no_result() -> None:
    for (x, w, *rest), attributes, count in CASES:
        y = np.full((x.shape[0], *x.shape[1:]), np.nan, np.float32)
        y[:1] = x[:1]  # the other images are NaN
        y[:, :, -1:] = np.inf
        before = computed(KERNELS, Application("Conv", 11, (y, w, *rest), attributes, (True,) * count))[0]
        again = computed(KERNELS, Application("Conv", 11, (y.copy(), w, *rest), attributes, (True,) * count))[0]
        assert same(before, again)
        assert not disagreements(KERNELS, "Conv", 11, [((y, w, *rest), attributes, count)], signs=False)


def test_the_cases_take_all_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for terms in (correlation.ROW_TERMS, 1):
        monkeypatch.setattr(correlation, "ROW_TERMS", terms)
        for (x, w, *_), stated, _ in CASES:
            lists = (stated.get(name) for name in ("strides", "dilations", "pads"))
            placed = place(Window(None, *lists, "NOTSET"), x.shape[2:], w.shape[2:])
            found.add(way_of(Correlation(x.shape[0], x.shape[1], stated.get("group", 1), w.shape[0], placed)))
    assert found == {"directly", "channels", "taps", "rows", "columns"}
