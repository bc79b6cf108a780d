"""Texts beside the listing: functions of the model, definitions of operators."""

from __future__ import annotations

import hashlib

import numpy as np
from debugger_models import nested, session
from sonnx.semantics.debugger.display.listing import defining_files, definition_of, function_documents


def test_a_function_is_shown_as_at_its_first_call() -> None:
    found = nested()
    (twice,) = function_documents(found.model, found.listing)
    first, *rest = twice.text.splitlines()
    assert twice.name == "local::Twice" and str(twice.line) in first
    assert found.listing.lines[twice.line - 1].text.strip() == rest[0] == "call /1:local::Twice:"
    assert [line.partition("#")[0].strip() for line in rest[1:]] == ['"t" = Add("a", "a")', '"b" = Identity("t")']


def test_a_function_that_is_never_called_says_so() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "l" : 1]> g (float[1] x) => (float[1] y) { y = Neg (x) }
    <domain: "l", opset_import: ["" : 18]> F (v) => (w) { w = Neg (v) }"""
    found = session(text, {"x": np.ones(1, np.float32)})
    (only,) = function_documents(found.model, found.listing)
    assert only.text == "# function l::F, which is never called\n" and only.line == 0


def test_operators_are_found_in_the_specification() -> None:
    for name, version in (("Add", 14), ("Loop", 16), ("LSTM", 14)):
        found = definition_of(name, version)
        assert found is not None
        content = found.path.read_bytes()
        assert f"operator {name}" in content.decode().splitlines()[found.line - 1]
        assert hashlib.sha256(content).hexdigest() == found.sha256
    assert definition_of("NoSuchOperator", 1) is None


def test_the_files_are_those_of_the_operators_of_the_model() -> None:
    found = nested()
    wanted = {"Add", "Identity", "If", "Abs", "Neg", "Loop"}
    texts = "".join(path.read_text(encoding="utf-8") for path in defining_files(found.model))
    assert all(f"operator {name}" in texts for name in wanted)
    assert len(defining_files(found.model)) <= len(wanted)
