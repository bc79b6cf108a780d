"""Schemas: of ONNX, and of the texts in force."""

from __future__ import annotations

from pathlib import Path

from own_operators import NAME, TEXT, nothing_added
from sonnx.semantics.model.schemas import schema, schema_of
from sonnx.spec.project import use


def test_a_schema_is_remembered_by_domain_operator_version_and_the_texts_in_force(tmp_path: Path) -> None:
    """Each in turn is another one than before, and none is what was asked for first."""
    (tmp_path / "own.sonnx").write_text(TEXT)
    (tmp_path / "other.sonnx").write_text(TEXT.replace("alpha", "beta"))
    with nothing_added(tmp_path):
        assert schema_of(NAME, 1) is None
        assert schema("", "Clip", 6) != schema("", "Clip", 13) != schema("", "Relu", 13)
        assert schema("ai.onnx.ml", "Clip", 13) is None
        for file, attribute in (("own", "alpha"), ("other", "beta")):
            use([tmp_path / f"{file}.sonnx"])
            known = schema_of(NAME, 1)
            assert known is not None
            assert [*known.attributes] == [attribute]
