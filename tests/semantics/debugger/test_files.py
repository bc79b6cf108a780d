"""Files that the debugger writes: sessions that can be gone on with, pictures of the graph, the listing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from debugger_models import GIVEN, NESTED, answer, nested, session, stopped, text
from picture_models import column, page_data, unfolded
from sonnx.semantics.debugger.display.answers import Note, Refusal
from sonnx.semantics.debugger.session.session import Session


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_saved_session_goes_on_where_it_was() -> None:
    script = ["break 30", "tbreak 16", "continue", "seek 3", "bookmark here", "set b[0] = 7", "watch s[0] if $run > 0"]
    found, _ = answer(nested(), *script, "seek 12", "delete 1", "save s")
    again, got = stopped(nested(), "load s")
    assert got.where.index == 12 and "EDITED" not in got.where.edited and got.where.edited == found.history.label
    assert again.stops == found.stops and dict(again.bookmarks) == dict(found.bookmarks)
    assert len(again.timelines) == 2 and again.timelines.index(again.history) == 1
    for line in ("print y", "info breakpoints", "timeline 0"):
        assert text(found, "seek end", line) == text(again, "seek end", line)
    assert stopped(again, "continue")[0].index == stopped(found, "continue")[0].index == 15


def test_a_saved_session_keeps_the_phase_and_the_frame_that_is_looked_at() -> None:
    found, _ = answer(nested(), "seek 18", "stepi 3", "up 2", "save s")
    again, got = stopped(nested(), "load s")
    assert (again.index, again.phase, again.frame) == (18, 3, 2) == (found.index, found.phase, found.frame)
    assert (got.reason, got.where.phase) == ("phase", 3)
    assert text(again, "print a") == text(found, "print a") == '/"a": float[2] = 2.0 -4.0'


@pytest.mark.parametrize(
    "script",
    [
        ("tbreak 11", "break 14", "continue", "delete"),
        ("tbreak 11", "tbreak 14", "continue", "disable", "continue", "delete 2"),
        ("break 9", "break 11", "delete", "delete", "break 12"),
        ("seek 1", "bookmark b", "set a[0] = 7", "seek b", "set a[1] = 8"),
        ("seek 18", "up", "watch s", "set s2[0] = 9"),
        ("seek 18", "up 2", "set a[0] = 9", "seek 18", "choose /4:Loop.body/2:local::Twice!0:Add"),
    ],
)
def test_what_was_deleted_or_spent_or_set_elsewhere_is_loaded_as_it_was(script: tuple[str, ...]) -> None:
    found, _ = answer(nested(), *script, "save s")
    again, got = stopped(nested(), "load s")
    assert again.stops == found.stops and again.number == found.number and got.where.index == found.index
    assert [it.label for it in again.timelines] == [it.label for it in found.timelines]
    assert text(again, "seek end", "print y") == text(found, "seek end", "print y")


def test_a_loaded_session_keeps_the_limit_of_steps() -> None:
    found, _ = answer(nested(limit=7), "break 9", "save s")
    assert answer(found, "load s", "seek end")[1].where.index == 7  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "line", ["nonsense", "seek 3 4", "break nothing", "quit", "save t", "load s", "st", "timeline 7"]
)
def test_a_damaged_session_is_refused_with_its_line(folder: Path, line: str) -> None:
    before, _ = answer(nested(), "break 30", "save s")
    kept = (folder / "s").read_text().splitlines()
    (folder / "bad").write_text("\n".join([*kept[:5], line, *kept[5:]]))
    after, got = answer(before, "load bad")
    assert isinstance(got, Refusal) and '"bad", line 6' in got.message and after is before
    assert not (folder / "t").exists()


def test_a_session_of_other_inputs_or_of_another_model_is_refused(folder: Path) -> None:
    answer(nested(), "break 30", "save s")
    for other in (
        session(NESTED, {**GIVEN, "x": np.zeros(2, np.float32)}),
        session(NESTED.replace("Neg", "Abs"), GIVEN),
    ):
        got = answer(other, "load s")[1]
        assert isinstance(got, Refusal) and "another model, other inputs" in got.message
    (folder / "odd").write_bytes(b"\xff")
    (folder / "nested").write_text((folder / "s").read_text() + "load s\n")
    for name in ("odd", "missing", "nested"):
        assert isinstance(answer(nested(), f"load {name}")[1], Refusal)


def test_no_file_is_written_over(folder: Path) -> None:
    (folder / "a.dot").write_text("mine")
    for line in ("save a.dot", "graph a.dot", "listing a.dot"):
        assert isinstance(answer(nested(), line)[1], Refusal)
    assert (folder / "a.dot").read_text() == "mine"


@pytest.mark.parametrize("position", [0, 5, 12, 25])
def test_the_picture_shows_each_node_of_the_graph_that_runs_and_the_position(folder: Path, position: int) -> None:
    found, _ = answer(nested(), f"seek {position}", "graph a.svg", "graph a.dot")
    nodes = found.model.graphs[found.state.frame.graph].nodes
    tree = ElementTree.fromstring((folder / "a.svg").read_text())
    assert len(tree.findall("{*}text")) == len(nodes)
    made = (folder / "a.dot").read_text()
    assert len(re.findall(r"label=", made)) == len(nodes)
    assert made.count("#ffd24d") == (1 if position < 25 else 0)


def test_the_listing_can_be_written_and_compared(folder: Path) -> None:
    got = answer(nested(), "listing a.lst", "listing a.lst")[1]
    assert isinstance(got, Note) and "is the listing of this model" in got.lines[0]
    assert (folder / "a.lst").read_text() == nested().listing.text


# ---- The page ---------------------------------------------------------------------------------------


def shown(folder: Path, found: Session, *commands: str) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """The data of the page that is written behind commands, and the marks of each node of the main graph by name."""
    number = len(list(folder.glob("*.html")))
    after, got = answer(found, *commands, f"graph {number}.html")
    assert isinstance(got, Note) and "for a browser" in got.lines[0]
    data = page_data((folder / f"{number}.html").read_text())
    marks = [mark[0] for mark in data["marks"]]
    nodes = [at for at, kind in enumerate(data["kind"]) if kind == "0"]
    bits = unfolded(data["marked"])
    sets = [tuple(name for i, name in enumerate(marks) if bits[at] & (1 << i)) for at in nodes]
    return data, {it.path: marked for it, marked in zip(after.model.nodes, sets, strict=True)}


def test_the_page_says_of_each_node_what_became_of_it(folder: Path) -> None:
    data, marks = shown(folder, nested(), "break 30", "seek 18")
    assert marks["/0:Add"] == ("ran",)
    loop = {path: it for path, it in marks.items() if path.startswith("/4:Loop")}
    assert loop["/4:Loop"] == ("inside",)
    assert sum("next" in it for it in marks.values()) == 1
    assert {it for marked in loop.values() for it in marked} >= {"next", "inside", "ran"}
    assert any("earlier" in it for it in marks.values()) and any("waiting" in it for it in marks.values())
    assert sum("break" in it for it in marks.values()) == 1
    types, values = column(data, "type", "type"), column(data, "value", "value")
    names = column(data, "tensor", "tensor")
    at = names.index("a")
    assert (types[at], values[at]) == ("float[2]", "step 1\nvalue 2.0 -4.0")
    before, first = shown(folder, nested(), "seek 0")
    assert set(first.values()) == {("waiting",), ("next", "waiting")} and before["focus"] != data["focus"]


def test_the_page_shows_nan_infinity_and_where_the_run_is_stuck(folder: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[2] x, int64[1] s) => (float[k] w)
      { y = Div (x, x)  z = Div (y, x)  w = Reshape (z, s) }"""
    given = {"x": np.array([0, 1e-40], np.float32), "s": np.array([3])}
    data, marks = shown(folder, session(text, given), "seek end")
    assert marks == {"/0:Div": ("nan", "ran"), "/1:Div": ("nan", "inf", "ran"), "/2:Reshape": ("stuck", "waiting")}
    lines = [line for at in data["said"].values() for line in at]
    assert len(lines) == 1 and "Reshape" in data["texts"]["line"]["rest"][lines[0]]
    assert shown(folder, session(text, given), "seek 1", "set y = 1")[1]["/0:Div"] == ("outside", "ran")


def test_the_page_says_which_values_no_definition_gave(folder: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "com.acme" : 1]> g (float[2] x) => (float[2] z)
      <float[2] y> { w = Abs (x)  y = com.acme.Foo (w)  z = Neg (y) }"""
    found = session(text, {"x": np.array([1, 2], np.float32)})
    commands = ("set x[0] = 5", "seek 1", "supply y = 2 * w", "set y[1] = 7", "seek end")
    data, marks = shown(folder, found, *commands)
    assert marks == {"/0:Abs": ("ran",), "/1:com.acme::Foo": ("outside", "ran"), "/2:Neg": ("ran",)}
    of = dict(zip(column(data, "tensor", "tensor"), column(data, "value", "value"), strict=True))
    supplied = "supplied as 2 * w at step 2, by no definition here"
    assert of["x"].splitlines()[:2] == ["step 0", "set at step 0 on timeline 1"]
    assert of["y"].splitlines()[:3] == ["step 2", supplied, "set at step 2 on timeline 3"]
    assert of["z"] == "step 3\nvalue -10.0 -7.0"
    assert shown(folder, found, *commands, "seek 1")[1]["/1:com.acme::Foo"] == ("next", "waiting")


def test_the_page_shows_nan_in_a_sequence(folder: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[2] x, int64 k) => (float[2] z)
      { y = Div (x, x)  s = SequenceConstruct (x, y)  o = Optional (s)  t = OptionalGetElement (o)
        z = SequenceAt (t, k) }"""
    given = {"x": np.array([0, 1], np.float32), "k": np.array(0)}
    _, marks = shown(folder, session(text, given), "seek end")
    assert [("nan" in it) for it in marks.values()] == [True, True, True, True, False]


def test_an_edited_run_says_so_on_its_page(folder: Path) -> None:
    answer(nested(), "seek 1", "set a[0] = 7", "graph edited.html")
    assert "Not an execution of the model" in (folder / "edited.html").read_text()
    answer(nested(), "seek 1", "graph same.html", "graph again.html")
    assert (folder / "same.html").read_bytes() == (folder / "again.html").read_bytes()


def test_a_graph_has_a_name_that_says_its_form(folder: Path) -> None:
    got = answer(nested(), "graph here.png")[1]
    assert isinstance(got, Refusal) and ".html" in got.message
    (folder / "a.html").write_text("mine")
    assert isinstance(answer(nested(), "graph a.html")[1], Refusal)
