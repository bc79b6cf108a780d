"""The page on commands and interfaces: every command with its options, every public name with its docstring."""

from __future__ import annotations

import re
from html import unescape

import pytest
import sonnx.checker
import sonnx.semantics
from pages import Page
from sonnx.spec import cli
from sonnx.spec.render.site import interface


@pytest.fixture(scope="module")
def page() -> str:
    import rich_click as click
    from sonnx.spec.commands.spec import listed_commands

    return interface.interface_page(list(listed_commands(click.Context(cli.sonnx))), interface.beside())


def test_the_page_is_sound_and_shows_no_marks_of_docstrings(page: str) -> None:
    parsed = Page(page)
    assert (parsed.open, parsed.wrong) == ([], [])
    assert "\b" not in page
    assert "`" not in re.sub(r"<pre.*?</pre>|<code.*?</code>|<style.*?</style>", "", page, flags=re.DOTALL)


def test_every_command_and_every_public_name_is_there(page: str) -> None:
    text = unescape(re.sub("<[^>]+>", "", page))
    for name in ("certify", "spec show", "recheck", "schema", "prove"):
        assert f"sonnx {name}\n" in text, name
    assert "--no-waivers" in text and "sonnx recheck model.json model.onnx" in text
    for module in (sonnx.semantics, sonnx.checker):
        for name in module.__all__:
            assert f'id="{interface.anchor(f"{module.__name__}.{name}")}"' in page
    assert "certify(model: " in text


def test_the_schema_of_reports_lies_beside_the_site(page: str) -> None:
    assert '"$id": "urn:sonnx:schema:report' in interface.beside()["report.schema.json"]
    assert 'href="report.schema.json"' in page


@pytest.mark.parametrize(
    ("text", "shown"), [("a `b` c", ["a ", "b", " c"]), ("`x`", ["", "x", ""]), ("none", ["none"]), ("a `", ["a `"])]
)
def test_backticks_become_code(text: str, shown: list[str]) -> None:
    pieces = interface.coded(text)
    assert [piece if isinstance(piece, str) else getattr(piece, "text", None) for piece in pieces] == shown
