"""What changes between versions: of a schema in words, of a meaning part by part."""

from __future__ import annotations

from sonnx.spec.elaborate.schema import default_text, signatures
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import Operator
from sonnx.spec.render.site.changes import compare, schema_changes, summary


def between(name: str, first: int, second: int) -> tuple[str, ...]:
    versions = {signature.version: signature for signature in signatures()[name]}
    return schema_changes(versions[first], versions[second])


def test_attributes_that_become_inputs_are_removed_and_added() -> None:
    assert between("Clip", 6, 11) == (
        "input min added (optional)",
        "input max added (optional)",
        "attribute max removed",
        "attribute min removed",
    )


def test_added_types_and_changed_presence_are_named() -> None:
    assert between("Relu", 6, 13) == ("T adds bfloat16",)
    assert "input C: optional, was required" in between("Gemm", 9, 11)
    assert "attribute axis: default -1, was default 1" in between("Softmax", 11, 13)


def test_a_version_that_changes_no_signature_has_no_changes() -> None:
    assert between("MaxPool", 10, 11) == ()


def test_defaults_are_written_with_as_few_digits_as_they_need() -> None:
    def of(name: str, attribute: str, version: int) -> str:
        found = next(s for s in signatures()[name] if s.version == version)
        return default_text(found.attributes[attribute])

    assert of("LeakyRelu", "alpha", 6) == "0.01"
    assert of("Clip", "max", 6) == "3.4028235e+38"
    assert of("Conv", "auto_pad", 11) == '"NOTSET"'
    assert of("LSTM", "layout", 14) == "0"


def meanings(old: str, new: str) -> tuple[Operator, Operator]:
    text = f'operator A @ 1 (X: T) -> Y: T "d" {old}\noperator A @ 2 (X: T) -> Y: T "d" {new}'
    first, second = parse(text, "t").declarations
    if not (isinstance(first, Operator) and isinstance(second, Operator)):
        raise TypeError("the text declares two operators")
    return first, second


def test_parts_about_the_same_stand_side_by_side() -> None:
    pairs = compare(*meanings("let a = 1 let b = 2 Y = X", "let a = 3 let c = 2 let b = 2 Y = X"))
    shown = [(p.old.name if p.old else None, p.new.name if p.new else None, p.alike) for p in pairs]
    assert shown == [
        (None, None, 1),
        ("a", "a", 0),
        (None, "c", 0),
        (None, None, 2),
    ]
    assert summary(pairs) == "1 changed, 1 added, 3 alike"


def test_a_requirement_in_other_words_is_one_that_changed() -> None:
    more = 'require so: 1 < 2 "Or so." require too: 1 = 1 "Too." Y = X'
    pairs = compare(*meanings('require so: 1 < 2 "So." Y = X', more))
    assert summary(pairs) == "1 changed, 1 added, 2 alike"


def test_a_definition_is_like_itself() -> None:
    (pair,) = compare(*meanings("Y = X", "Y = X"))
    assert pair.alike == 2
