"""No change of a certificate or of its model is confirmed, also when the changed statement is sealed again.

The campaign draws changes at random: values, types, order, duplicates, parts of certificates of other models and other
rule sets, whole consistent lies. What is confirmed must be the genuine certificate of that model for that request.
"""

from __future__ import annotations

import copy
import fcntl
import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import pytest
from aggregated import aggregate
from onnx import TensorProto, helper
from sampling import CAMPAIGN, sampled
from sonnx.checker import recheck
from sonnx.checker.certification.certificate import canonical, certificate, seal
from sonnx.checker.certification.certifier import certify
from sonnx.checker.rechecker import Outcome
from sonnx.checker.rechecker.form import read
from sonnx.checker.rechecker.replay import Subject, compared
from sonnx.semantics.errors import ModelError

MODELS = ("chain", "broken", "branches", "calls", "training")
"""Models that conform, violate, hold bodies, call a function, are undecided in a rule."""

Certified = Callable[..., tuple[bytes, Path]]
Place = tuple[str | int, ...]


@cache
def subject(path: Path, _content: bytes) -> Subject:
    return Subject(path)


def outcome(data: bytes, path: Path) -> Outcome | None:
    """None for a certificate or model that cannot be read."""
    try:
        return compared(read(data), subject(path, path.read_bytes())).outcome
    except ModelError:
        return None


def confirmed(data: bytes, path: Path) -> bool:
    return outcome(data, path) is Outcome.CONFIRMED


def sealed(statement: Any) -> bytes:
    try:
        return seal(statement)
    except (ModelError, AttributeError, TypeError):
        return b""


# ---- Bytes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [pytest.param(37, id="sample"), pytest.param(1, id="all", marks=CAMPAIGN)])
@pytest.mark.parametrize("name", ["chain", "broken"])
def test_no_flipped_bit_of_a_certificate_is_confirmed(name: str, step: int, certified: Certified) -> None:
    """A bit of each byte, or of each seventeenth."""
    data, path = certified(name)
    rng = random.Random(1)
    assert confirmed(data, path)
    for position in range(0, len(data), step):
        flipped = bytearray(data)
        flipped[position] ^= 1 << rng.randrange(8)
        assert not confirmed(bytes(flipped), path), position


@pytest.mark.parametrize("count", [pytest.param(200, id="sample"), pytest.param(2000, id="more", marks=CAMPAIGN)])
@pytest.mark.parametrize("name", ["chain", "branches"])
def test_no_flipped_bit_of_a_model_is_confirmed(name: str, count: int, tmp_path: Path, certified: Certified) -> None:
    data, path = certified(name)
    original, other = path.read_bytes(), tmp_path / "model.onnx"
    for bit in random.Random(2).sample(range(8 * len(original)), min(count, 8 * len(original))):
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


def put(statement: Any, place: Place, value: Any) -> Any:
    changed = copy.deepcopy(statement)
    at(changed, place[:-1])[place[-1]] = value
    return changed


def at(statement: Any, place: Place) -> Any:
    for key in place:
        statement = statement[key]
    return statement


def free(place: Place) -> bool:
    """The fields that carry no claim (CERTIFICATE.md): the name of the model file, and the versions of tools."""
    return place == ("subject", 0, "name") or (place[:2] == ("predicate", "tools") and len(place) == 3)


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
    for place, value in places(statement):
        if isinstance(value, str) and not free(place):
            assert not confirmed(seal(put(statement, place, value + "x")), path), place


@pytest.mark.parametrize("name", sampled(MODELS, 2))
def test_no_number_is_taken_for_a_truth_value_and_no_truth_value_for_a_number(name: str, certified: Certified) -> None:
    data, path = certified(name)
    statement = json.loads(data)
    for place, value in places(statement):
        if value in (0, 1):
            other = int(value) if isinstance(value, bool) else bool(value)
            assert not confirmed(seal(put(statement, place, other)), path), place


# ---- Random changes -----------------------------------------------------------------------------

REQUESTS = (("sonnx",), ("sonnx-2025-05", "sonnx-2025-10", "sonnx-2025-04"), ("sonnx-operators", "sonnx-constraints"))
WORDS = (
    ("holds", "violated", "unknown", "obligation", "conditional"),
    ("CONFORMS", "VIOLATES", "UNDECIDED"),
    ("current", "superseded", "TBC", "defective", "completion", "advisory", "reported"),
    ("sonnx", "sonnx-2025-05", "sonnx-2025-04", "sonnx-2025-10"),
    ("onnx", "domain", "sonnx-operators", "sonnx-constraints"),
    ("protobuf", "text", "listing"),
    ("places", "producers", "consumers", "order", "derivation", "paths", "table", "nodes"),
    ("deterministic", "non-deterministic", "unknown"),
    ("newest", "wg-2026-08", ""),
    ("and", "or", "not", "<=", "=", "+", "*"),
)


def open_sizes() -> onnx.ModelProto:
    """Sizes that a model leaves open decide a convolution, an input decides where it gathers."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Gather", ["c", "i"], ["y"])]
    stored = [helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 3, 3], [1.0] * 9)]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, "H", 5]),
        helper.make_tensor_value_info("i", TensorProto.INT64, [2]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


class Forge:
    """Genuine certificates, and changes of them."""

    def __init__(self, paths: dict[str, Path]) -> None:
        self.paths = paths
        self.issued = cache(self._issued)

    def genuine(self, name: str, rules: tuple[str, ...], strict: bool = False, sizes: Any = ()) -> Any:
        """The genuine certificate of a model for a request, a copy of its own."""
        return json.loads(self.issued(name, rules, strict, sizes))

    def _issued(self, name: str, rules: tuple[str, ...], strict: bool, sizes: Any) -> bytes:
        limits = {label: (least, most) for label, least, most in sizes}
        report = certify(self.paths[name], rules, others=False, witnesses=True, strict=strict, sizes=limits)
        return seal(certificate(report))

    def changed(self, name: str, rules: tuple[str, ...], rng: random.Random) -> Any:
        """A certificate with one to three changes, in half of the cases made consistent."""
        statement = self.genuine(name, rules, rng.random() < 0.3)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            change = rng.choice((self.value, self.value, self.value, self.spliced, self.lie, self.dropped))
            with suppress(LookupError, TypeError, ValueError, AttributeError):  # an earlier change took the form away
                change(statement, rng)
        if rng.random() < 0.5:
            with suppress(LookupError, TypeError, StopIteration, AttributeError):  # it may have lost its form
                aggregate(statement)
        return statement

    def value(self, statement: Any, rng: random.Random) -> None:
        """Another value at some place."""
        found = list(places(statement))
        top = rng.choice([place for place, _ in found if len(place) <= 3])
        place, value = rng.choice([(p, v) for p, v in found if p[: len(top)] == top])
        at(statement, place[:-1])[place[-1]] = rng.choice(list(others(value, rng)))

    def spliced(self, statement: Any, rng: random.Random) -> None:
        """A part of a genuine certificate of another model or for another request."""
        other = self.genuine(rng.choice(list(self.paths)), rng.choice(REQUESTS), rng.random() < 0.3)
        place = rng.choice([place for place, _ in places(other) if len(place) <= 4])
        try:
            at(statement, place[:-1])[place[-1]] = at(other, place)
        except (LookupError, TypeError):
            statement["predicate"] = other["predicate"]

    def lie(self, statement: Any, rng: random.Random) -> None:
        """Another verdict on a constraint, with a witness or a place that goes with it."""
        predicate = statement["predicate"]
        rule = rng.choice(predicate["rules"])
        verdict = rng.choice(WORDS[0])
        kinds = [{"kind": kind} for kind in WORDS[5]] + list(predicate["witnesses"].values())
        for it in [it for it in predicate["rules"] if it["constraint"] == rule["constraint"]]:
            it.update(verdict=verdict, findings=[], total=0)
            if verdict == "holds":
                it.update(besides={}, obligations=0)
            elif rng.random() < 0.8:
                models = [it["findings"][0] for it in predicate["rules"] if it["findings"]]
                it.update(findings=[rng.choice(models) if models else {"where": "/", "witness": {}}], total=1)
        if verdict == "holds":
            predicate["witnesses"][rule["constraint"]] = copy.deepcopy(rng.choice(kinds))
        else:
            predicate["witnesses"].pop(rule["constraint"], None)

    def dropped(self, statement: Any, rng: random.Random) -> None:
        """A rule set, a rule, a condition or a place less."""
        predicate = statement["predicate"]
        what = rng.randrange(4)
        if what == 0 and len(predicate["rule_sets"]) > 1:
            gone = predicate["rule_sets"].pop(rng.randrange(len(predicate["rule_sets"])))["name"]
            predicate["rules"] = [it for it in predicate["rules"] if it["rule_set"] != gone]
            predicate["conditions"].pop(gone, None)
            holding = {it["constraint"] for it in predicate["rules"] if it["verdict"] == "holds"}
            predicate["witnesses"] = {k: v for k, v in predicate["witnesses"].items() if k in holding}
        elif what == 1:
            gone = predicate["rules"].pop(rng.randrange(len(predicate["rules"])))["constraint"]
            predicate["witnesses"].pop(gone, None)
        elif what == 2:
            for terms in predicate["conditions"].values():
                del terms[rng.randrange(len(terms) + 1) :]
        else:
            rule = rng.choice(predicate["rules"])
            rule["findings"] = rule["findings"][1:]
            rule["total"] = max(rule["total"] - 1, 0)


def others(value: Any, rng: random.Random) -> Iterator[Any]:
    """Other values: of the same kind, of another type, longer, shorter, in another order."""
    yield from ([value], None, {"k": value}, {})
    match value:
        case bool():
            yield from (not value, int(value), str(value).lower())
        case int():
            yield from (value + 1, value - 1, -value, bool(value), str(value), 2**53 - 1, value * 2)
        case str():
            yield from (value + "x", value[:-1], value.upper(), 0, value[::-1])
            yield from [other for group in WORDS if value in group for other in group if other != value] * 3
        case list() if value:
            k = rng.randrange(len(value))
            yield from (value[:k] + value[k + 1 :], value[: k + 1] + value[k:], value[::-1], [])
            yield rng.sample(value, len(value))
        case dict() if value:
            key, two = rng.choice(list(value)), rng.choice(list(value))
            yield {k: v for k, v in value.items() if k != key}
            yield from ({**value, "another": 1}, {**value, key: value[two], two: value[key]})


def claims(statement: Any) -> str:
    """What a certificate claims, in one text: all but the fields that are free, and the choice of sizes at which a
    requirement fails, of which any is a witness."""
    bare = copy.deepcopy(statement)
    bare["subject"][0]["name"] = ""
    predicate = bare["predicate"]
    predicate["tools"] = sorted(predicate["tools"])
    del predicate["seal"]
    for rule in predicate["rules"]:
        for finding in [it for row in (rule["findings"], *rule["besides"].values()) for it in row]:
            if "sizes" in finding["witness"]:
                finding["witness"]["sizes"] = sorted(finding["witness"]["sizes"])
    return canonical(bare).decode()


def rightly(forge: Forge, name: str, statement: Any) -> bool:
    """Whether a confirmed statement is the genuine one of that model, for the rule sets and sizes that it is about."""
    predicate = statement["predicate"]
    asked = [(it["name"], it["variant"]) for it in predicate["rule_sets"]]
    rules = tuple(f"{name}@{variant}" if variant not in ("", "newest") else name for name, variant in asked)
    limits = tuple(map(tuple, predicate["sizes"]))
    strict = any(it["strict"] for it in predicate["rule_sets"])
    return claims(forge.genuine(name, rules, strict, limits)) == claims(statement)


@pytest.fixture(scope="module")
def forge(certified: Certified, tmp_path_factory: pytest.TempPathFactory) -> Forge:
    path = tmp_path_factory.mktemp("sizes") / "model.onnx"
    onnx.save(open_sizes(), path)
    return Forge({**{name: certified(name)[1] for name in MODELS}, "open sizes": path})


def campaign(forge: Forge, seed: int, count: int) -> dict[str, int]:
    """Draws changes; how many had each outcome. Fails where a wrong one is confirmed."""
    rng = random.Random(seed)
    found: dict[str, int] = {}
    for number in range(count):
        name, rules = rng.choice(list(forge.paths)), rng.choice(REQUESTS)
        statement = forge.changed(name, rules, rng)
        data = sealed(statement)
        result = outcome(data, forge.paths[name]) if data else None
        found[str(result)] = found.get(str(result), 0) + 1
        if result is Outcome.CONFIRMED:
            assert rightly(forge, name, json.loads(data)), (seed, number, name, rules)
    return found


@pytest.mark.parametrize("strict", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_the_genuine_certificates_are_confirmed_and_are_themselves(forge: Forge, strict: bool) -> None:
    """Those of strict requests in the campaign, and here and there in the tests below."""
    for name in forge.paths:
        for rules in REQUESTS:
            statement = forge.genuine(name, rules, strict)
            assert confirmed(seal(statement), forge.paths[name]), (name, rules, strict)
            assert rightly(forge, name, statement), (name, rules, strict)


def test_fifty_random_changes_confirm_nothing_wrong(forge: Forge) -> None:
    """A thousand of each of 50 seeds in the campaign."""
    found = campaign(forge, 1001, 50)
    assert found["REFUTED"] > 12


SEEDS = range(int(os.environ.get("SONNX_CAMPAIGN_CHANGES", "50000")) // 1000)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", SEEDS)
def test_fifty_thousand_random_changes_confirm_nothing_wrong(seed: int, forge: Forge, tmp_path: Path) -> None:
    """A folder that SONNX_CAMPAIGN names keeps what each seed gave; several processes may share it."""
    kept = Path(os.environ.get("SONNX_CAMPAIGN") or tmp_path)
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / f"changes-{seed}.json").open("a+", encoding="utf-8") as record:
        try:
            fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.skip("another process draws them")
        record.seek(0)
        text = record.read()
        found = json.loads(text) if text.endswith("}") else campaign(forge, seed, 1000)
        if not text.endswith("}"):
            record.truncate(0)
            json.dump(found, record)
    assert found["REFUTED"] > 300


# ---- Consistent lies ----------------------------------------------------------------------------


def judged(statement: Any, constraint: str) -> list[Any]:
    return [rule for rule in statement["predicate"]["rules"] if rule["constraint"] == constraint]


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
