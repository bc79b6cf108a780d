"""The certificate: a report as an in-toto Statement that a second party can replay (`CERTIFICATE.md` is its format).

A certificate is canonical: one sequence of bytes for one statement. It holds no time, no path of a machine, no float.
This module knows the form only; `rechecker` judges the content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from sonnx.semantics.errors import InternalError, ModelError

from .report import Finding, Json, Report, RuleResult, RuleSetResult, RuleVerdict, Verdict

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:sonnx:certificate:v1"
SIZE_LIMIT: Final = 256 * 1024 * 1024
INTEGER_LIMIT: Final = 2**53 - 1
LISTED: Final = 100
"""How many places of one rule a certificate lists; `total` counts all."""
LENIENT: Final = frozenset({"TBC", "defective", "open"})
"""Statuses of rules that count in strict mode only."""

Check = Callable[[Json, str], None]


# ---- From a report ------------------------------------------------------------------------------


def certificate(report: Report) -> dict[str, Json]:
    """The statement of a report, over the rule sets that were asked for; `seal` turns it into bytes.

    Raises ValueError when the report does not come from a file, or was made without witnesses.
    """
    if not report.model.files:
        raise ValueError("a certificate is about a model file: certify a path")
    asked = [entry for entry in report.rule_sets if entry.asked]
    names = {entry.name for entry in asked}
    rules = [rule for rule in report.rules if rule.rule_set in names]
    first, *others = ((name, sha256) for name, _, sha256 in report.model.files)
    return {
        "_type": STATEMENT_TYPE,
        "predicateType": PREDICATE_TYPE,
        "subject": [{"digest": {"sha256": sha256}, "name": name} for name, sha256 in (first, *sorted(others))],
        "predicate": {
            "model": {
                "functions": [list(function) for function in report.model.functions],
                "graphs": report.model.graphs,
                "ir_version": report.model.ir_version,
                "nodes": report.model.nodes,
                "opsets": [[domain, version] for domain, version in report.model.opsets],
                "source": report.model.source,
                "tensors": report.model.tensors,
            },
            "not_examined": list(report.not_examined),
            "rule_sets": [_rule_set(entry, rules) for entry in asked],
            "rules": [_rule(rule) for rule in rules],
            "tools": dict(report.tools),
            "verdict": report.verdict.value,
            "witnesses": _witnesses(rules),
        },
    }


def _rule_set(entry: RuleSetResult, rules: list[RuleResult]) -> dict[str, Json]:
    """strict is stated where it makes a difference, so that it can be replayed."""
    lenient = any(rule.rule_set == entry.name and rule.status in LENIENT for rule in rules)
    return {
        "digest": entry.digest,
        "name": entry.name,
        "strict": entry.strict and lenient,
        "variant": entry.variant,
        "verdict": entry.verdict.value,
    }


def _rule(rule: RuleResult) -> dict[str, Json]:
    return {
        "constraint": rule.constraint,
        "counted": rule.counted,
        "findings": [_finding(finding) for finding in rule.findings[:LISTED]],
        "id": rule.id,
        "rule_set": rule.rule_set,
        "statement": hashlib.sha256(rule.statement.encode("utf-8", "surrogatepass")).hexdigest(),
        "status": rule.status,
        "total": rule.total_findings,
        "verdict": rule.verdict.value,
    }


def _finding(finding: Finding) -> dict[str, Json]:
    return {"where": finding.where, "witness": dict(finding.witness)}


def _witnesses(rules: list[RuleResult]) -> dict[str, Json]:
    """One witness for each constraint that holds: rules of several sets share it."""
    found: dict[str, Json] = {}
    for rule in rules:
        if rule.verdict is RuleVerdict.HOLDS:
            witness = dict(rule.evidence)
            if "kind" not in witness:
                raise ValueError("the report has no witnesses: certify with witnesses=True")
            if found.setdefault(rule.constraint, witness) != witness:
                raise InternalError(f"two rules give different evidence for the constraint {rule.constraint}")
    return found


# ---- To and from bytes --------------------------------------------------------------------------


def canonical(value: Json) -> bytes:
    """The canonical form: JSON in ASCII, keys sorted, no blanks, no floats, integers of at most 53 bits."""
    _exact(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def seal(statement: Mapping[str, Json]) -> bytes:
    """The bytes of a statement: its canonical form with `predicate.seal`, the SHA-256 of the form without it.

    The seal finds damage, it proves nothing: whoever changes a statement can seal it again.
    """
    predicate = statement.get("predicate")
    if not isinstance(predicate, dict):
        raise ModelError("certificate: `predicate` must be an object")
    bare: dict[str, Json] = {**statement, "predicate": {key: predicate[key] for key in predicate if key != "seal"}}
    digest = hashlib.sha256(canonical(bare)).hexdigest()
    return canonical({**statement, "predicate": {**predicate, "seal": digest}}) + b"\n"


def read(source: bytes | Path | str) -> dict[str, Json]:
    """The statement in `source` (bytes, or the path of a file), its form and seal checked.

    Raises ModelError with one line when it is too large, not JSON, not canonical, not of the form, or damaged.
    """
    data = source if isinstance(source, bytes) else _content(Path(source))
    if len(data) > SIZE_LIMIT:
        raise ModelError(f"certificate: larger than {SIZE_LIMIT} bytes; no certificate of this format is")
    try:
        value = json.loads(
            data.decode("ascii"), object_pairs_hook=_object, parse_float=_no_float, parse_constant=_no_float
        )
    except ModelError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelError(f"certificate: not JSON in ASCII ({_line(error)}); give a file that certify wrote") from None
    _STATEMENT(value, "certificate")
    if seal(value) != data:
        raise ModelError("certificate: damaged, or not in canonical form: its seal does not match; get it again")
    statement: dict[str, Json] = value
    return statement


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SIZE_LIMIT + 1)
    except OSError as error:
        reason = error.strerror or _line(error)
        raise ModelError(f"certificate: cannot be read ({reason}); name the file that certify wrote") from None


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text.encode("ascii", "backslashreplace").decode("ascii")[:120]


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ModelError("certificate: an object names one key twice; give a file that certify wrote")
    return found


def _no_float(text: str) -> Json:
    raise ModelError(f"certificate: holds the number {text[:40]}; only integers are allowed")


def _exact(value: Json) -> None:
    """Raises ModelError for what has no canonical form."""
    match value:
        case bool() | str() | None:
            pass
        case int():
            if abs(value) > INTEGER_LIMIT:
                raise ModelError(f"certificate: the integer {value} has more than 53 bits, on which readers differ")
        case list():
            if not all(type(item) is int and -INTEGER_LIMIT <= item <= INTEGER_LIMIT for item in value):
                for item in value:
                    _exact(item)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ModelError("certificate: every key must be a text")
                _exact(item)
        case _:
            raise ModelError(f"certificate: a value of type {type(value).__name__} has no canonical form")


# ---- The form -----------------------------------------------------------------------------------


def _fail(place: str, wanted: str) -> ModelError:
    return ModelError(f"certificate: {place} must be {wanted}; give a file that certify wrote")


def _text(value: Json, place: str) -> None:
    if not isinstance(value, str):
        raise _fail(place, "a text")


def _flag(value: Json, place: str) -> None:
    if not isinstance(value, bool):
        raise _fail(place, "true or false")


def _integer(value: Json, place: str) -> None:
    if type(value) is not int:
        raise _fail(place, "an integer")


def _digest(value: Json, place: str) -> None:
    if not (isinstance(value, str) and len(value) == 64 and all(char in "0123456789abcdef" for char in value)):
        raise _fail(place, "a SHA-256 digest in lower-case hexadecimal")


def _any_object(value: Json, place: str) -> None:
    if not isinstance(value, dict):
        raise _fail(place, "an object")


def _one_of(*texts: str) -> Check:
    def check(value: Json, place: str) -> None:
        if value not in texts or not isinstance(value, str):
            raise _fail(place, "one of " + ", ".join(texts))

    return check


def _list(item: Check, least: int = 0) -> Check:
    def check(value: Json, place: str) -> None:
        if not isinstance(value, list) or len(value) < least:
            raise _fail(place, "a list" if not least else f"a list of at least {least}")
        for index, element in enumerate(value):
            item(element, f"{place}[{index}]")

    return check


def _tuple(*items: Check) -> Check:
    def check(value: Json, place: str) -> None:
        if not isinstance(value, list) or len(value) != len(items):
            raise _fail(place, f"a list of {len(items)}")
        for index, (item, element) in enumerate(zip(items, value, strict=True)):
            item(element, f"{place}[{index}]")

    return check


def _mapping(item: Check) -> Check:
    def check(value: Json, place: str) -> None:
        if not isinstance(value, dict):
            raise _fail(place, "an object")
        for key, element in value.items():
            item(element, f"{place}.{_line(ValueError(key))}")

    return check


def _record(**fields: Check) -> Check:
    def check(value: Json, place: str) -> None:
        if not isinstance(value, dict) or set(value) != set(fields):
            raise _fail(place, "an object with exactly the keys " + ", ".join(sorted(fields)))
        for key, item in fields.items():
            item(value[key], f"{place}.{key}")

    return check


_FINDING = _record(where=_text, witness=_any_object)
_RULE = _record(
    constraint=_text,
    counted=_flag,
    findings=_list(_FINDING),
    id=_text,
    rule_set=_text,
    statement=_digest,
    status=_text,
    total=_integer,
    verdict=_one_of(*RuleVerdict),
)
_RULE_SET = _record(digest=_digest, name=_text, strict=_flag, variant=_text, verdict=_one_of(*Verdict))
_MODEL = _record(
    functions=_list(_tuple(_text, _text, _text)),
    graphs=_integer,
    ir_version=_integer,
    nodes=_integer,
    opsets=_list(_tuple(_text, _integer)),
    source=_text,
    tensors=_integer,
)
_PREDICATE = _record(
    model=_MODEL,
    not_examined=_list(_text),
    rule_sets=_list(_RULE_SET, 1),
    rules=_list(_RULE, 1),
    seal=_digest,
    tools=_mapping(_text),
    verdict=_one_of(*Verdict),
    witnesses=_mapping(_any_object),
)
_STATEMENT = _record(
    _type=_one_of(STATEMENT_TYPE),
    predicate=_PREDICATE,
    predicateType=_one_of(PREDICATE_TYPE),
    subject=_list(_record(digest=_record(sha256=_digest), name=_text), 1),
)
