"""The page of a run, looked at in a real browser: on a phone, on a screen, on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Page, browser
from sonnx.checker.runtimes.conformance.page import to_html
from sonnx.checker.runtimes.conformance.records import Record
from sonnx.checker.runtimes.conformance.reports import Conformance
from sonnx.checker.runtimes.differential.outcomes import Class

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
LONG = "it_has_a_name_without_any_space_that_is_longer_than_a_telephone_is_wide_" * 2
ENGINES = ("machine", "onnxruntime-disabled", "reference", "numpy")


def run() -> Conformance:
    """Every class in each engine, names that are long and hostile."""
    records = tuple(
        Record("onnx", f"{LONG}/{at}", engine, outcome.value, "error", f"<script>alert({at})</script>{LONG}",
               f"/{at}:{LONG}", f"Operator{at}-13", "y", f"Operator{at}-13", "ab" * 32, 4, outside=1, ulps="3",
               ratio="1.5", worst=f"element [0]: expected 1, found {LONG}")
        for engine in ENGINES
        for at, outcome in enumerate(Class)
    )  # fmt: skip
    return Conformance(tuple((it, "1.2.3") for it in ENGINES), ("onnx",), records, {"platform": LONG})


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, Path]]:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(to_html(run()), encoding="utf-8")
    with browser() as opened:
        yield opened, path


@pytest.mark.parametrize(("width", "height"), [(360, 740), (1280, 800)], ids=["phone", "screen"])
def test_the_page_fits_its_window_and_loads_nothing(page: tuple[Page, Path], width: int, height: int) -> None:
    opened, path = page
    opened.show(path, width, height)
    assert opened.value("document.documentElement.scrollWidth") <= width
    assert opened.requested() == [path.as_uri()]
    assert not opened.complaints()
    assert opened.value("document.scripts.length") == 0
    shown = "[...document.querySelectorAll('svg.bar, svg.histogram')].map(it => it.getBoundingClientRect())"
    sizes = opened.value(f"{shown}.map(it => [it.width, it.height])")
    assert len(sizes) == 3 * len(ENGINES)
    assert all(100 < w <= width and h > 10 for w, h in sizes)
    style = opened.value("getComputedStyle(document.body).maxWidth")
    assert style != "none", "the style sheet is not applied"
    assert opened.picture().startswith(b"\x89PNG")


def test_every_word_of_a_table_can_be_reached_on_a_phone(page: tuple[Page, Path]) -> None:
    opened, path = page
    opened.show(path, 360, 740)
    wide = "[...document.querySelectorAll('table')].filter(it => it.scrollWidth > 360)"
    loose = opened.value(f"{wide}.filter(it => getComputedStyle(it.parentElement).overflowX != 'auto').length")
    assert loose == 0
    assert opened.value("parseFloat(getComputedStyle(document.body).fontSize)") >= 15


def test_the_page_can_be_printed_with_its_colours_and_its_findings(page: tuple[Page, Path]) -> None:
    opened, path = page
    opened.show(path, 1280, 800)
    paper = opened.printed()
    assert paper.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) > 1
    opened.ask("Emulation.setEmulatedMedia", media="print")
    adjust = opened.value("getComputedStyle(document.querySelector('svg.bar')).printColorAdjust")
    opened.ask("Emulation.setEmulatedMedia", media="")
    assert adjust == "exact"
