"""proofs/README.md says what part 6 says."""

from __future__ import annotations

import os
import re
from pathlib import Path

import proof_lists
import pytest
from sonnx.proofs.kernel.theory import Theory
from sonnx.semantics.errors import InternalError
from sonnx.spec.library import specification

README = Path(__file__).parents[2] / "proofs" / "README.md"
THEORY = Theory(specification())


def test_the_lists_are_those_of_the_text() -> None:
    text = README.read_text(encoding="utf-8")
    if os.environ.get("SONNX_UPDATE") == "1":
        README.write_text(proof_lists.filled(text, THEORY), encoding="utf-8")
        text = README.read_text(encoding="utf-8")
    assert text == proof_lists.filled(text, THEORY), "make it anew: SONNX_UPDATE=1 pytest tests/proofs/test_overview.py"


def test_every_property_of_part_6_is_listed_once() -> None:
    text = README.read_text(encoding="utf-8")
    listed = re.findall(r"^(?:- |\| )\*\*(\w+)\*\* ", text, re.MULTILINE)
    for line in re.findall(r"^Lemmas: .*$", text, re.MULTILINE):
        listed += re.findall(r"\*\*(\w+)\*\*", line)
    assert sorted(listed) == sorted(THEORY.text.properties)


def test_what_the_prose_names_exists() -> None:
    text = README.read_text(encoding="utf-8")
    for name in re.findall(r"^- `([A-Z]\w+)`", text, re.MULTILINE):
        assert name in THEORY.text.properties, name
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (README.parent / link).exists(), link
    for file in re.findall(r"`((?:tests/)?[\w/]+\.(?:py|tsv))`", text):
        assert (README.parent / file).exists() or (README.parents[1] / file).exists(), file


def test_a_block_that_nobody_makes_is_an_error() -> None:
    with pytest.raises(InternalError, match="a block other"):
        proof_lists.filled("<!-- other: made from the text -->\n<!-- end -->", THEORY)
