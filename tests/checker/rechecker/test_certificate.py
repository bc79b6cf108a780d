"""The form of a certificate: one sequence of bytes for one statement, and nothing else is read."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sonnx.checker.certification.certificate import INTEGER_LIMIT, canonical, certificate, seal
from sonnx.checker.certification.report import (
    Finding,
    ModelInfo,
    Report,
    RuleResult,
    RuleSetResult,
    RuleVerdict,
    Verdict,
)
from sonnx.checker.rechecker.form import read
from sonnx.semantics.errors import InternalError, ModelError
from tables import table

DIGEST = "ab" * 32


def rule(identifier: str, verdict: RuleVerdict, **changes: Any) -> RuleResult:
    result = RuleResult(
        rule_set="r",
        id=identifier,
        title="t",
        statement="Every \u00e9 is.",
        quote="q",
        source="s",
        status="current",
        note="",
        constraint=f"K{identifier}",
        counted=True,
        verdict=verdict,
        evidence={"kind": "order", "nodes": [0, 1]} if verdict is RuleVerdict.HOLDS else {},
    )
    return replace(result, **changes)


@pytest.fixture
def report() -> Report:
    finding = Finding('/0:Add("\\u00e9")', "message", {"n": '/0:Add("\\u00e9")', "i": 3}, "suggestion")
    findings = (finding, *(replace(finding, where=f"/{n}:Add") for n in range(1, 101)))
    return Report(
        model=ModelInfo(
            name="m.onnx",
            source="protobuf",
            files=(("m.onnx", 3, DIGEST), ("b.bin", 4, DIGEST), ("a.bin", 4, DIGEST)),
            ir_version=9,
            opsets=(("", 18),),
            producer="p",
            graphs=1,
            nodes=2,
            tensors=3,
            functions=(("d", "f", ""),),
        ),
        verdict=Verdict.VIOLATES,
        rule_sets=(
            RuleSetResult("r", "title", DIGEST, Verdict.VIOLATES, asked=True, strict=True),
            RuleSetResult("other", "title", DIGEST, Verdict.CONFORMS, asked=False),
        ),
        rules=(
            rule("1", RuleVerdict.HOLDS),
            rule("2", RuleVerdict.VIOLATED, findings=findings, total_findings=150),
            rule("3", RuleVerdict.HOLDS, rule_set="other"),
        ),
        not_examined=("weights",),
        tools=(("sonnx", "1"),),
    )


def test_a_sealed_statement_reads_back_as_the_same_statement(report: Report) -> None:
    statement = certificate(report)
    found = read(seal(statement))
    predicate: Any = found["predicate"]
    digest = predicate.pop("seal")
    assert found == statement
    assert digest == hashlib.sha256(canonical(statement)).hexdigest()


def test_a_certificate_holds_only_the_rule_sets_that_were_asked_for(report: Report) -> None:
    predicate: Any = certificate(report)["predicate"]
    assert [entry["name"] for entry in predicate["rule_sets"]] == ["r"]
    assert [entry["id"] for entry in predicate["rules"]] == ["1", "2"]
    assert list(predicate["witnesses"]) == ["K1"]


def test_the_model_comes_first_and_external_data_are_sorted(report: Report) -> None:
    subject: Any = certificate(report)["subject"]
    assert [entry["name"] for entry in subject] == ["m.onnx", "a.bin", "b.bin"]


def test_at_most_a_hundred_places_are_listed_and_all_are_counted(report: Report) -> None:
    predicate: Any = certificate(report)["predicate"]
    assert (len(predicate["rules"][1]["findings"]), predicate["rules"][1]["total"]) == (100, 150)


def test_strict_is_stated_only_where_it_makes_a_difference(report: Report) -> None:
    plain: Any = certificate(report)["predicate"]
    lenient: Any = certificate(replace(report, rules=(rule("1", RuleVerdict.HOLDS, status="TBC"),)))["predicate"]
    assert (plain["rule_sets"][0]["strict"], lenient["rule_sets"][0]["strict"]) == (False, True)


def test_canonical_bytes_are_ascii_sorted_and_without_blanks() -> None:
    assert canonical({"b": [1, True, None], "a": "\u00e9\n\U0001f600"}) == (
        b'{"a":"\\u00e9\\n\\ud83d\\ude00","b":[1,true,null]}'
    )


@table("value", [1.0, INTEGER_LIMIT + 1, [-INTEGER_LIMIT - 1], {"a": 0.5}, {1: 2}, b"x"])
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(ModelError, match="certificate: "):
        canonical(value)


def test_a_report_without_witnesses_makes_no_certificate(report: Report) -> None:
    with pytest.raises(ValueError, match="witnesses=True"):
        certificate(replace(report, rules=(rule("1", RuleVerdict.HOLDS, evidence={}),)))


def test_a_report_on_a_model_without_a_file_makes_no_certificate(report: Report) -> None:
    with pytest.raises(ValueError, match="certify a path"):
        certificate(replace(report, model=replace(report.model, files=())))


def test_two_rules_with_one_constraint_share_one_witness_or_are_a_defect(report: Report) -> None:
    one, two = (rule(name, RuleVerdict.HOLDS, constraint="K") for name in "ab")
    predicate: Any = certificate(replace(report, rules=(one, two)))["predicate"]
    assert list(predicate["witnesses"]) == ["K"]
    with pytest.raises(InternalError):
        certificate(replace(report, rules=(one, replace(two, evidence={"kind": "places"}))))


def spoiled(data: bytes) -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "no line feed", data[:-1]
    yield "two line feeds", data + b"\n"
    yield "a blank", data.replace(b":", b": ", 1)
    yield "not ASCII", data.replace(b"weights", "w\u00e9ights".encode())
    yield "a key twice", data.replace(b'"_type"', b'"_type":"https://in-toto.io/Statement/v1","_type"', 1)
    yield "a float", data.replace(b'"total":150', b'"total":150.0')
    yield "an exponent", data.replace(b'"total":150', b'"total":15e1')
    yield "not a number", data.replace(b'"total":150', b'"total":NaN')
    yield "a huge number", data.replace(b'"total":150', b'"total":' + b"9" * 5000)
    yield "true for a number", data.replace(b'"total":150', b'"total":true')
    yield "cut", data[: len(data) // 2]
    yield "deep", b"[" * 100_000
    yield "another object", b"{}\n"
    yield "a list", b"[]\n"
    yield "a text", b'""\n'
    yield "upper-case escapes", data.replace(b"u00e9", b"u00E9")


def test_nothing_but_a_canonical_undamaged_statement_is_read(report: Report) -> None:
    data = seal(certificate(report))
    for name, spoilt in spoiled(data):
        assert spoilt != data, name
        with pytest.raises(ModelError, match=r"\Acertificate: [ -~]+\Z"):
            read(spoilt)


def test_no_flipped_bit_is_read(report: Report) -> None:
    data = seal(certificate(report))
    for position in range(0, len(data), 3):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        with pytest.raises(ModelError):
            read(bytes(flipped))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from leaves(inner, (*path, key))


def test_every_field_is_checked_for_its_kind_also_when_sealed_again(report: Report) -> None:
    statement = certificate(report)
    predicate: Any = statement["predicate"]
    predicate["rules"][1]["findings"] = predicate["rules"][1]["findings"][:1]
    free = ("witnesses", "witness")
    for path in leaves(statement):
        changed: Any = copy.deepcopy(statement)
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = {"no": "sense"} if not isinstance(place[path[-1]], dict) else 0
        if any(key in free for key in path[:-1]) or path == ("predicate",):
            continue
        with pytest.raises(ModelError):
            read(seal(changed))


def test_an_unknown_or_missing_field_is_refused(report: Report) -> None:
    for change in ("add", "drop"):
        statement: Any = certificate(report)
        if change == "add":
            statement["predicate"]["extra"] = 1
        else:
            del statement["predicate"]["tools"]
        with pytest.raises(ModelError, match="exactly the keys"):
            read(seal(statement))


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonnx.checker.rechecker.form.SIZE_LIMIT", 100)
    with pytest.raises(ModelError, match="larger than"):
        read(b" " * 101)


def test_a_missing_file_is_one_line(tmp_path: Any) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        read(tmp_path / "none.json")


def test_the_form_is_json_that_any_reader_reads(report: Report) -> None:
    data = seal(certificate(report))
    assert json.loads(data)["_type"] == "https://in-toto.io/Statement/v1"
