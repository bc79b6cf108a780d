"""The documents beside the code: what they link to exists, and the README stays short and shows what the tool says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sonnx.spec import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = 200


def documents() -> list[Path]:
    folders = (ROOT, *(ROOT / it for it in ("spec", "semantics", "checker", "proofs")))
    return [file for folder in folders for file in sorted(folder.glob("*.md" if folder == ROOT else "**/*.md"))]


def anchors(file: Path) -> set[str]:
    """What a link into a file may name: its headings, as they are written in addresses."""
    heads = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_link_of_a_document_leads_somewhere() -> None:
    for file in documents():
        for link in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8")):
            path, _, anchor = link.partition("#")
            if not re.match(r"\w+:", path):
                target = file.parent / path if path else file
                assert target.exists(), f"{file}: {link}"
                assert not anchor or anchor in anchors(target), f"{file}: {link}"


def test_the_readme_is_short_and_leads_to_every_document_of_a_layer() -> None:
    assert len(README.splitlines()) <= LINES
    for layer in ("semantics", "checker", "proofs"):
        assert f"{layer}/README.md" in README


@pytest.mark.parametrize("command", ["certify examples/working-group.onnx", "optimize examples/conforming.onnx"])
def test_the_readme_shows_what_the_command_says(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = [it for it in re.findall(r"^```console\n(.*?)^```", README, re.M | re.S) if f"$ sonnx {command}" in it]
    monkeypatch.chdir(tmp_path)
    assert cli.run(["examples", "examples"]) == 0
    said = ""
    for line in block.splitlines():
        if line.startswith("$ sonnx "):
            capsys.readouterr()
            cli.run(re.split(r" +[|#]", line.removeprefix("$ sonnx "))[0].split())
            said = capsys.readouterr().out
        elif line:
            assert line in said.splitlines(), f"{line}\nis not among\n{said}"
