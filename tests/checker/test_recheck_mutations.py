"""No change of a certificate or of its model is confirmed, also when the changed statement is sealed again."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sonnx.checker import recheck
from sonnx.checker.certificate import canonical, seal
from sonnx.checker.rechecker import Outcome
from sonnx.semantics.errors import ModelError

MODELS = ("chain", "broken", "branches", "calls", "training")
"""Models that conform, violate, hold bodies, call a function, are undecided in a rule."""

Certified = Callable[..., tuple[bytes, Path]]
Place = tuple[str | int, ...]


def free(place: Place) -> bool:
    """The fields that carry no claim (CERTIFICATE.md): the name of the model file, and the versions of tools."""
    return place == ("subject", 0, "name") or (place[:2] == ("predicate", "tools") and len(place) == 3)


def confirmed(data: bytes, path: Path) -> bool:
    try:
        return recheck(data, path).outcome is Outcome.CONFIRMED
    except ModelError:
        return False


# ---- Bytes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chain", "broken"])
def test_no_flipped_bit_of_a_certificate_is_confirmed(name: str, certified: Certified) -> None:
    data, path = certified(name)
    rng = random.Random(1)
    assert confirmed(data, path)
    for position in range(0, len(data), 7):
        flipped = bytearray(data)
        flipped[position] ^= 1 << rng.randrange(8)
        assert not confirmed(bytes(flipped), path), position


@pytest.mark.parametrize("name", ["chain", "branches"])
def test_no_flipped_bit_of_a_model_is_confirmed(name: str, tmp_path: Path, certified: Certified) -> None:
    data, path = certified(name)
    original, other = path.read_bytes(), tmp_path / "model.onnx"
    for bit in random.Random(2).sample(range(8 * len(original)), 400):
        flipped = bytearray(original)
        flipped[bit // 8] ^= 1 << bit % 8
        other.write_bytes(flipped)
        assert not confirmed(data, other), bit
    other.write_bytes(original)
    assert confirmed(data, other)


def test_no_cut_or_longer_file_is_confirmed(certified: Certified) -> None:
    data, path = certified("chain")
    for other in (data[:-1], data[1:], data + b"\n", b"\n" + data, data + data, b""):
        assert not confirmed(other, path)


# ---- Statements ---------------------------------------------------------------------------------


def places(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every part of a statement but the whole and the seal."""
    if place and place[-1] != "seal":
        yield place, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*place, key))


ALTERNATIVES = (
    ("holds", "violated", "unknown"),
    ("CONFORMS", "VIOLATES", "UNDECIDED"),
    ("current", "superseded", "TBC", "defective", "completion", "advisory"),
    ("sonnx-2025-05", "sonnx-2025-04", "sonnx-2025-10", "sonnx-operators", "onnx"),
    ("protobuf", "text", "listing"),
    ("places", "producers", "consumers", "order", "derivation", "paths", "table"),
    ("deterministic", "non-deterministic", "unknown"),
)


def changes(value: Any) -> Iterator[Any]:
    """Other values of the same kind: what an adversary or a careless tool might write instead."""
    match value:
        case bool():
            yield not value
        case int():
            yield from (value + 1, value - 1, -value if value else 7)
        case str():
            yield from (other for group in ALTERNATIVES if value in group for other in group if other != value)
            yield value + "x"
            if len(value) == 64:
                yield ("1" if value[0] != "1" else "2") + value[1:]
            if value:
                yield value[:-1]
        case list():
            yield from (value[:k] + value[k + 1 :] for k in range(len(value)))
            yield from (value[: k + 1] + value[k:] for k in range(len(value)))
            yield from (swapped(value, k) for k in range(len(value) - 1) if value[k] != value[k + 1])
        case dict():
            yield from ({k: v for k, v in value.items() if k != key} for key in value)
            yield {**value, "another": 1}
            yield from exchanged(value)


def swapped(value: list[Any], k: int) -> list[Any]:
    return [*value[:k], value[k + 1], value[k], *value[k + 2 :]]


def exchanged(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The values of two neighbouring keys exchanged."""
    keys = sorted(value)
    for one, two in pairwise(keys):
        if value[one] != value[two]:
            yield {**value, one: value[two], two: value[one]}


def put(statement: Any, place: Place, value: Any) -> Any:
    changed = copy.deepcopy(statement)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


def mutants(statement: Any) -> Iterator[tuple[Place, Any]]:
    for place, value in places(statement):
        if not free(place):
            for other in changes(value):
                if place != ("predicate", "tools") or set(other) != set(value):
                    yield place, other


@pytest.mark.parametrize("name", MODELS)
def test_no_changed_statement_is_confirmed_although_it_is_sealed_again(name: str, certified: Certified) -> None:
    data, path = certified(name)
    statement = json.loads(data)
    assert confirmed(seal(statement), path)
    survivors, count = [], 0
    for place, other in sample(list(mutants(statement)), 400):
        count += 1
        changed = sealed(put(statement, place, other))
        if changed != data and confirmed(changed, path):
            survivors.append((place, other))
    assert not survivors, survivors[:5]
    assert count == 400


def sample(every: list[tuple[Place, Any]], most: int) -> list[tuple[Place, Any]]:
    return every if len(every) <= most else random.Random(3).sample(every, most)


def sealed(statement: Any) -> bytes:
    try:
        return seal(statement)
    except ModelError:
        return b""


@pytest.mark.campaign
@pytest.mark.parametrize("name", MODELS)
def test_no_changed_statement_at_all_is_confirmed(name: str, certified: Certified) -> None:
    data, path = certified(name)
    statement = json.loads(data)
    for place, other in mutants(statement):
        changed = sealed(put(statement, place, other))
        assert changed == data or not confirmed(changed, path), (place, other)


def test_the_free_fields_are_free_and_nothing_else_is(certified: Certified) -> None:
    data, path = certified("chain")
    statement = json.loads(data)
    fields = [place for place, value in places(statement) if free(place)]
    assert {".".join(map(str, place)) for place in fields} == {
        "subject.0.name",
        "predicate.tools.onnx",
        "predicate.tools.sonnx",
        "predicate.tools.z3-solver",
    }
    for place in fields:
        assert confirmed(seal(put(statement, place, "other")), path)


# ---- Consistent lies ----------------------------------------------------------------------------


def judged(statement: Any, constraint: str) -> list[Any]:
    return [rule for rule in statement["predicate"]["rules"] if rule["constraint"] == constraint]


def aggregate(statement: Any) -> None:
    """Makes the verdicts of the rule sets and of the whole follow from those of the rules."""
    predicate = statement["predicate"]
    for entry in predicate["rule_sets"]:
        own = {r["verdict"] for r in predicate["rules"] if r["rule_set"] == entry["name"] and r["counted"]}
        entry["verdict"] = "VIOLATES" if "violated" in own else "UNDECIDED" if "unknown" in own else "CONFORMS"
    verdicts = {entry["verdict"] for entry in predicate["rule_sets"]}
    predicate["verdict"] = next(v for v in ("VIOLATES", "UNDECIDED", "CONFORMS") if v in verdicts)


def test_a_violated_rule_that_is_stated_to_hold_is_refuted_with_every_verdict_fitting(certified: Certified) -> None:
    data, path = certified("broken")
    honest = json.loads(data)
    witness = {"kind": "places"}
    for constraint in {rule["constraint"] for rule in honest["predicate"]["rules"] if rule["verdict"] == "violated"}:
        statement = copy.deepcopy(honest)
        for rule in judged(statement, constraint):
            rule.update(verdict="holds", findings=[], total=0)
        statement["predicate"]["witnesses"][constraint] = witness
        aggregate(statement)
        assert recheck(seal(statement), path).outcome is Outcome.REFUTED, constraint


def test_a_model_that_violates_is_not_whitewashed(certified: Certified) -> None:
    data, path = certified("broken")
    statement = json.loads(data)
    for rule in statement["predicate"]["rules"]:
        if rule["verdict"] != "holds":
            rule.update(verdict="holds", findings=[], total=0)
            statement["predicate"]["witnesses"].setdefault(rule["constraint"], {"kind": "places"})
    aggregate(statement)
    assert statement["predicate"]["verdict"] == "CONFORMS"
    assert recheck(seal(statement), path).outcome is Outcome.REFUTED


def test_a_rule_that_is_not_counted_where_it_should_be_is_refuted(certified: Certified) -> None:
    data, path = certified("broken")
    statement = json.loads(data)
    for rule in statement["predicate"]["rules"]:
        rule["counted"] = False
    aggregate(statement)
    assert recheck(seal(statement), path).outcome is Outcome.REFUTED


def test_a_rule_set_without_the_rules_that_fail_is_refuted(certified: Certified) -> None:
    data, path = certified("broken")
    statement = json.loads(data)
    predicate = statement["predicate"]
    predicate["rules"] = [rule for rule in predicate["rules"] if rule["verdict"] == "holds"]
    aggregate(statement)
    assert recheck(seal(statement), path).outcome is Outcome.REFUTED


def test_an_invented_place_is_refuted_although_the_number_fits(certified: Certified) -> None:
    data, path = certified("broken")
    honest = json.loads(data)
    for index, rule in enumerate(honest["predicate"]["rules"]):
        if rule["findings"] and rule["findings"][0]["witness"]:
            statement = copy.deepcopy(honest)
            finding = statement["predicate"]["rules"][index]["findings"][0]
            for variable, place in finding["witness"].items():
                finding["witness"][variable] = '/"a"' if place != '/"a"' else '/"b"'
            assert recheck(seal(statement), path).outcome is Outcome.REFUTED, rule["id"]


def test_a_decided_rule_that_is_left_open_is_not_confirmed(certified: Certified) -> None:
    data, path = certified("chain")
    statement = json.loads(data)
    for rule in judged(statement, "Acyclic"):
        rule["verdict"] = "unknown"
    del statement["predicate"]["witnesses"]["Acyclic"]
    aggregate(statement)
    assert recheck(seal(statement), path).outcome is Outcome.NOT_CHECKED


def test_another_order_that_is_topological_too_is_not_the_witness(certified: Certified) -> None:
    data, path = certified("branches")
    statement = json.loads(data)
    order = statement["predicate"]["witnesses"]["Acyclic"]["nodes"]
    first, second = order[:2]
    order[:2] = [second, first]
    assert recheck(seal(statement), path).outcome is Outcome.REFUTED


def test_sealing_again_changes_nothing_but_the_seal(certified: Certified) -> None:
    data, _ = certified("chain")
    statement = json.loads(data)
    assert seal(statement) == data == canonical(statement) + b"\n"


def test_the_tools_are_named_even_if_their_versions_are_free(certified: Certified) -> None:
    data, path = certified("chain")
    for change in ({"another": "1"}, {}):
        statement = json.loads(data)
        tools = statement["predicate"]["tools"]
        tools.update(change)
        if not change:
            del tools["z3-solver"]
        assert recheck(seal(statement), path).outcome is Outcome.REFUTED
