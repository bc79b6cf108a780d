"""Pages and pictures: what is put into them stays text, they load nothing, and without Jinja one is told what to do."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sonnx.spec import cli
from sonnx.spec.pages import MissingExtraError, svg
from sonnx.spec.pages.templates import page, templates
from sonnx.spec.parsed import ROOT

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\"'&amp;"
FRAME = ("sonnx.spec.render.site", "site.html", "style.css")


def test_hostile_text_stays_text_on_a_page() -> None:
    made = page(*FRAME, title=HOSTILE, links=((HOSTILE, HOSTILE),), main="")
    assert "<script" not in made
    assert not set(made) & {"\x1b", "\u202e"}
    assert unescape(made).count("<script>alert(1)</script>\\x1b[31m\\u202e\"'&amp;") == 3


def test_the_policy_of_a_page_admits_its_own_style_and_nothing_else() -> None:
    made = unescape(page(*FRAME, title="", links=(), main=""))
    (style,) = re.findall(r"<style>(.*?)</style>", made, re.DOTALL)
    assert style == (ROOT / "render" / "site" / "style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'" in made


def test_a_value_that_a_template_misses_is_an_error() -> None:
    with pytest.raises(Exception, match="'links' is undefined"):
        page(*FRAME, title="", main="")


def test_a_picture_is_well_formed_whatever_its_words_are() -> None:
    words = svg.text(1.0, 2.125, HOSTILE, text_anchor="middle", transform=None)
    root = ElementTree.fromstring(svg.drawing(10, 20.5, words, svg.rectangle(0, 0, 1 / 3, 4), title=HOSTILE))
    ns = "{http://www.w3.org/2000/svg}"
    assert root.get("viewBox") == "0 0 10 20.5"
    (drawn,) = root.iter(f"{ns}text")
    assert drawn.text == HOSTILE.replace("\x1b", " ").replace("\u202e", " ")
    assert drawn.attrib == {"x": "1", "y": "2.12", "text-anchor": "middle"}
    (box,) = root.iter(f"{ns}rect")
    assert box.get("width") == "0.33"


def test_without_jinja_a_command_says_which_extra_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    templates.cache_clear()
    with pytest.raises(MissingExtraError, match=r"install sonnx\[html\]"):
        page(*FRAME, title="", links=(), main="")
    target = str(tmp_path / "page.html")
    for command in (
        ["certify", "no-such-file.onnx", "--format", "html"],
        ["conform", "--engine", "machine", "--html", target],
        ["prove", "--html", target],
        ["spec", "render", str(tmp_path)],
    ):
        assert cli.run(command) == cli.USAGE
        assert "install sonnx[html]" in capsys.readouterr().err
