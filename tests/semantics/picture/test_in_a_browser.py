"""The page of a picture, looked at in a real browser: painted soon, legible, nothing overlaps, keys and search work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx.parser
import pytest
from browser import CHROMIUM, Page, browser
from debugger_models import answer, nested
from picture_models import drawn_graph
from sonnx.semantics import load_proto
from sonnx.semantics.picture.notes import Content, Mark, Picture
from sonnx.semantics.picture.page import to_html

pytestmark = [pytest.mark.campaign, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]
SIZES = pytest.mark.parametrize(("width", "height"), [(390, 844), (1400, 900)], ids=["phone", "screen"])

OVERLAPS = """(() => {
  const g = sonnxGraph, wrong = [];
  for (let at = 0; at < g.parent.length; at++) {
    const shown = g.inner[at].filter((it) => g.shown[it]).sort((a, b) => g.y[a] - g.y[b]);
    for (const it of shown) if (at && (g.x[it] < g.x[at] || g.y[it] < g.y[at] || g.x[it] + g.w[it] > g.x[at] + g.w[at] || g.y[it] + g.h[it] > g.y[at] + g.h[at])) wrong.push(["outside", it, at]);
    shown.forEach((a, i) => {
      for (let j = i + 1; j < shown.length && g.y[shown[j]] < g.y[a] + g.h[a]; j++) {
        const b = shown[j];
        if (g.x[a] < g.x[b] + g.w[b] && g.x[b] < g.x[a] + g.w[a]) wrong.push(["overlap", a, b]);
      }
    });
  }
  return wrong.slice(0, 5);
})()"""  # noqa: E501 - one expression of the page's language


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "nested.html"
    answer(nested(), "break 30", "seek 18", f"graph {path}")
    return path


def key(page: Page, name: str, text: str = "") -> None:
    for kind in ("keyDown", "keyUp"):
        page.ask("Input.dispatchKeyEvent", type=kind, key=name, text=text if kind == "keyDown" else "")


def picked(page: Page) -> Any:
    return page.value("sonnxGraph.picked < 0 ? '' : sonnxGraph.path(sonnxGraph.picked)")


@SIZES
def test_the_page_fits_loads_nothing_and_draws_without_overlaps(
    page: Page, small: Path, width: int, height: int
) -> None:
    page.show(small, width, height)
    assert page.requested() == [small.as_uri()] and not page.complaints()
    assert page.value("document.documentElement.scrollWidth") <= width
    canvas = page.value(
        "(() => { const r = document.querySelector('canvas'); return [r.clientWidth, r.clientHeight]; })()"
    )
    assert canvas[0] == width and canvas[1] > height / 2
    nodes = "[...sonnxGraph.kind.keys()].filter((it) => sonnxGraph.kind[it] === 0)"
    assert sorted(page.value(f"{nodes}.map(sonnxGraph.path)")) == sorted(node.path for node in nested().model.nodes)
    tensors = page.value("[...Array(12).keys()].map(sonnxGraph.tensorPath)")
    assert set(tensors) <= {tensor.path for tensor in nested().model.tensors}
    assert page.value(OVERLAPS) == []
    for press in ("c", "o"):
        page.value("document.querySelector('canvas').focus(), 1")
        key(page, press, press)
        assert page.value(OVERLAPS) == []
    folded = "sonnxGraph.shown.reduce((sum, it) => sum + it, 0)"
    opened = page.value(folded)
    key(page, "c", "c")
    assert page.value(folded) < opened


def test_what_opens_pushes_the_others_aside(page: Page, tmp_path: Path) -> None:
    body = "\n".join(f"t{i} = Neg (x)" for i in range(80))
    branch = "<then_branch = t () => (float[2] t79) {{ {0} }}, else_branch = e () => (float[2] y) {{ y = Abs (x) }}>"
    calls = "\n".join(f"r{i} = If (c) {branch.format(body)}" for i in range(3))
    text = f'<ir_version: 10, opset_import: ["" : 18]> g (float[2] x, bool c) => (float[2] r0) {{ {calls} }}'
    model = load_proto(onnx.parser.parse_model(text))
    path = tmp_path / "wide.html"
    path.write_text(to_html(model, Picture("wide", (), ())), encoding="utf-8")
    page.show(path, 1400, 900)
    count = "sonnxGraph.shown.reduce((sum, it) => sum + it, 0)"
    assert page.value(count) == 1 + 2 + 3 + 1 and page.value(OVERLAPS) == []
    ifs = page.value("[...sonnxGraph.title.keys()].filter((it) => sonnxGraph.title[it] === 'If')")
    for at in ifs:
        page.value(f"sonnxGraph.toggle({at}), 1")
        assert page.value(f"sonnxGraph.isOpen({at})") and page.value(OVERLAPS) == []
    assert page.value(count) > 240


def test_keys_search_and_legend_reach_every_box_and_the_side_says_what_it_is(page: Page, small: Path) -> None:
    page.show(small, 1400, 900)
    page.value("document.querySelector('canvas').focus(), 1")
    key(page, "ArrowDown")
    first = picked(page)
    key(page, "ArrowDown")
    assert first and picked(page) not in ("", first)
    key(page, "/", "/")
    for letter in "identity":
        key(page, letter, letter)
    assert page.value("document.getElementById('graph-hits').textContent") == "4 hits"
    key(page, "Enter", "\r")
    assert ":Identity" in picked(page)
    side = page.value("document.getElementById('graph-side').innerText")
    assert "Identity" in side and picked(page) in side and "outputs" in side and "float[2]" in side
    page.value("document.querySelectorAll('#graph-legend button')[1].click(), 1")
    assert "comes next" in page.value("document.getElementById('graph-side').innerText")


def test_a_box_is_chosen_with_the_pointer_and_the_drawing_is_moved_and_zoomed(page: Page, small: Path) -> None:
    page.show(small, 1400, 900)
    box = page.value("sonnxGraph.title.indexOf('If')")
    assert page.value(f"sonnxGraph.go({box}), document.getElementById('graph-side').hidden") is False
    left, wide, y, side = page.value(
        """(() => { const r = document.querySelector('canvas').getBoundingClientRect();
        return [r.left, r.width, r.top + r.height / 2, document.getElementById('graph-side').clientWidth]; })()"""
    )
    x = left + (wide - side) / 2
    page.value("sonnxGraph.pick(-1), 1")
    for kind in ("mousePressed", "mouseReleased"):
        page.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    assert picked(page).startswith("/3:If")
    before = page.value("sonnxGraph.scale")
    page.ask("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-240)
    assert page.value("sonnxGraph.scale") > before


def test_one_finger_moves_the_drawing_and_two_zoom_it(page: Page, small: Path) -> None:
    page.show(small, 390, 844)

    def touch(kind: str, *fingers: tuple[float, float]) -> None:
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(fingers)]
        page.ask("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    middle = "[...'xy'].map((it) => document.querySelector('canvas').getBoundingClientRect()[it])"
    x, y = page.value(middle)
    page.ask("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    before, seen = page.value("sonnxGraph.scale"), page.picture()
    touch("touchStart", (x + 150, y + 300))
    touch("touchMove", (x + 150, y + 200))
    touch("touchEnd")
    time.sleep(0.3)
    assert page.value("sonnxGraph.scale") == before and page.picture() != seen
    touch("touchStart", (x + 150, y + 300), (x + 200, y + 300))
    touch("touchMove", (x + 100, y + 300), (x + 250, y + 300))
    touch("touchMove", (x + 50, y + 300), (x + 300, y + 300))
    touch("touchEnd")
    page.ask("Emulation.setTouchEmulationEnabled", enabled=False)
    assert page.value("sonnxGraph.scale") > 2 * before


def test_no_text_of_a_model_is_run(page: Page, tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=document.title='run'>"
    model = drawn_graph(5, 1, 2)
    mark = Mark("m", hostile, hostile, "bad")
    values = {t: Content(hostile, ((hostile, hostile),), hostile) for t in range(len(model.tensors))}
    picture = Picture(hostile, (hostile,), (mark,), {0: ("m",)}, {0: (hostile,)}, values, 0, (hostile,))
    path = tmp_path / "hostile.html"
    path.write_text(to_html(model, picture), encoding="utf-8")
    page.show(path, 1400, 900)
    page.value("sonnxGraph.go(sonnxGraph.parent.indexOf(0, 2)), 1")
    assert page.value("document.querySelectorAll('img').length") == 0 and not page.complaints()
    assert page.value("document.title") == hostile
    assert hostile in page.value("document.getElementById('graph-side').innerText")


@pytest.mark.parametrize(("reach", "name"), [(1e-9, "chain"), (30, "drawn"), (3000, "wild")])
def test_ten_thousand_nodes_are_painted_in_a_second(page: Page, tmp_path: Path, reach: float, name: str) -> None:
    model = drawn_graph(10_000, 1, reach)
    mark = Mark("m", "m", "marked", "done")
    path = tmp_path / f"{name}.html"
    path.write_text(to_html(model, Picture(name, (), (mark,), dict.fromkeys(range(5000), ("m",)))), encoding="utf-8")
    assert path.stat().st_size <= 2_000_000
    page.show(path, 1400, 900)
    painted = "performance.getEntriesByName('first-contentful-paint').map((it) => it.startTime)"
    until = time.monotonic() + 10
    while not page.value(painted) and time.monotonic() < until:
        time.sleep(0.1)
    (first,) = page.value(painted)
    (ready,) = page.value("performance.getEntriesByName('graph').map((it) => it.startTime)")
    assert max(first, ready) < 1000, f"painted after {first:.0f} ms, drawn after {ready:.0f} ms"
    assert page.value(OVERLAPS) == []
