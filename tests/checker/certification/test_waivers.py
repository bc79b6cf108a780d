"""Waivers: what they accept, what nobody may accept, their place in a certificate and in its recheck."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import onnx
import pytest
from command_calls import called
from sonnx.checker import recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.certification.certifier import certify
from sonnx.checker.certification.examples import write
from sonnx.checker.certification.report import Report, RuleVerdict, Verdict
from sonnx.checker.certification.waivers import check
from sonnx.semantics.machine.execution import WELL_FORMED
from sonnx.spec.language.syntax import clause
from sonnx.spec.library import specification
from sonnx.spec.project import SettingsError, Waiver

DEAD = Waiver("R1/per-node", "/3:*", "the exporter keeps it", "A. Engineer", "2999-12-31", source="sonnx.toml:1")
TODAY = date(2026, 11, 24)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("examples")
    write(target)
    return target


@pytest.fixture(scope="module")
def waived(folder: Path) -> Report:
    return certify(folder / "working-group.onnx", waivers=[DEAD], witnesses=True, today=TODAY)


def test_a_violation_that_is_accepted_takes_nothing_from_the_verdict(folder: Path, waived: Report) -> None:
    (rule,) = (rule for rule in waived.rules if (rule.rule_set, rule.id) == ("sonnx", "R1/per-node"))
    assert (waived.verdict, waived.applied, waived.unused) == (Verdict.CONFORMS, (DEAD,), ())
    assert (rule.verdict, rule.waived, rule.accepted) == (RuleVerdict.VIOLATED, 1, True)
    assert certify(folder / "working-group.onnx").verdict is Verdict.VIOLATES


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"place": "/2:*"}, "no violation of that rule is at such a place"),
        ({"place": "/3"}, "no violation of that rule is at such a place"),
        ({"rule": "C2"}, "no violation of that rule is at such a place"),
        ({"rule": "sonnx-2025-10 R2"}, "no violation of that rule is at such a place"),
        ({"until": "2026-11-23"}, "ended on 2026-11-23"),
    ],
)
def test_a_waiver_that_does_not_fit_or_has_ended_accepts_nothing(
    folder: Path, change: dict[str, str], why: str
) -> None:
    waiver = replace(DEAD, **change)
    report = certify(folder / "working-group.onnx", waivers=[waiver], today=TODAY)
    assert (report.verdict, report.applied, report.unused) == (Verdict.VIOLATES, (), ((waiver, why),))


def test_the_last_day_is_a_day_on_which_it_holds(folder: Path) -> None:
    waiver = replace(DEAD, until="2026-11-24")
    assert certify(folder / "working-group.onnx", waivers=[waiver], today=TODAY).verdict is Verdict.CONFORMS


def test_a_part_of_the_places_of_a_rule_may_be_accepted() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y) {
        y = Relu(x)  a = Neg(x)  b = Abs(x)
    }"""
    model = onnx.parser.parse_model(text)
    places = ["/1:Neg", "/2:Abs"]
    some = certify(model, waivers=[replace(DEAD, place=places[0])], today=TODAY)
    (rule,) = (rule for rule in some.rules if (rule.rule_set, rule.id) == ("sonnx", "R1/per-node"))
    assert (some.verdict, rule.waived, rule.total_findings) == (Verdict.VIOLATES, 1, 2)
    every = certify(model, waivers=[replace(DEAD, place=it) for it in places], today=TODAY)
    assert (every.verdict, len(every.applied)) == (Verdict.CONFORMS, 2)


# ---- What nobody may accept ----------------------------------------------------------------------


WAIVABLE = frozenset(
    [
        "AnnotationsUnique",
        "BodyInitializersAreNoInputs",
        "Contributes",
        "FunctionDomainsSpelled",
        "FunctionNodesNotIdle",
        "FunctionNotDeprecated",
        "FunctionSorted",
        "GraphHasOutput",
        "GraphInference",
        "GraphNamed",
        "GraphOutputIsNodeOutput",
        "HeldTensorsExact",
        "InSubset",
        "InferenceAnswers",
        "InitializersAreInputs",
        "InitializersExact",
        "InputUsage",
        "IrVersion",
        "MetadataUnique",
        "NamesAreIdentifiers",
        "NoOmittedPort",
        "NodeConnected",
        "NodeHasOutput",
        "OperatorOfOnnx",
        "NodeNamesUnique",
        "NodeNotIdle",
        "NodesSorted",
        "NotDeprecated",
        "OnInputPath",
        "OperatorInference",
        "OutputUsage",
        "TensorUsage",
        "TypeOfEveryValue",
        "Deterministic",
    ]
)
"""The constraints on graphs that a run does without; each other one says why nobody may accept that it is violated."""


def test_rules_without_which_a_run_gets_stuck_cannot_be_waived() -> None:
    constraints = specification().constraints
    closed = {name for name, it in constraints.items() if clause(it.clauses, "unwaivable")}
    wellformed = {name for name, it in constraints.items() if it.span.file.startswith("2-wellformed")}
    assert set(WELL_FORMED) <= closed
    assert wellformed - closed == wellformed & WAIVABLE
    assert not closed & WAIVABLE


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("Acyclic", "the rule 'Acyclic' cannot be waived: A run would get stuck"),
        ("onnx ssa", "cannot be waived: The values at the end"),
        ("Sourced", "cannot be waived"),
        ("Bodies/arity", "cannot be waived"),
        ("Conv-11/kernel_fits", "cannot be waived: a run gets stuck where a requirement of an operator fails"),
        ("domain Conv-11/kernel_fits", "cannot be waived"),
        ("domain defined", "cannot be waived"),
        ("shapes", "cannot be waived"),
        ("R1/pernode", "there is no rule 'R1/pernode': did you mean 'R1/per-node'?"),
        ("sonnx", "there is no rule 'sonnx'"),
        ("onnx Conv-11/kernel_fits", "there is no rule"),
        ("", "there is no rule ''"),
    ],
)
def test_a_waiver_of_a_rule_that_admits_none_is_a_mistake(rule: str, message: str) -> None:
    with pytest.raises(SettingsError, match=r"^sonnx\.toml:1: ") as raised:
        check([replace(DEAD, rule=rule)], specification())
    assert message in str(raised.value)


# ---- The certificate -----------------------------------------------------------------------------


def _forged(report: Report, change: Callable[[Any], None]) -> bytes:
    statement = json.loads(json.dumps(certificate(report)))
    change(statement["predicate"])
    return seal(statement)


def _rule(predicate: Any, rule_set: str = "sonnx", name: str = "R1/per-node") -> Any:
    return next(it for it in predicate["rules"] if (it["rule_set"], it["id"]) == (rule_set, name))


def test_a_certificate_with_waivers_is_confirmed_and_tells_them(folder: Path, waived: Report) -> None:
    replayed = recheck(_forged(waived, lambda _: None), folder / "working-group.onnx")
    assert (replayed.outcome, replayed.reasons) == ("CONFIRMED", ())
    assert replayed.waivers == ("waiver: R1/per-node at /3:*, until 2999-12-31, by A. Engineer: the exporter keeps it",)


def _without(predicate: Any) -> None:
    del predicate["waivers"]


def _elsewhere(predicate: Any) -> None:
    predicate["waivers"][0]["place"] = "/2:*"


def _other_rule(predicate: Any) -> None:
    predicate["waivers"][0]["rule"] = "C2"


def _twice(predicate: Any) -> None:
    predicate["waivers"] *= 2


def _unsigned(predicate: Any) -> None:
    predicate["waivers"][0]["who"] = " "


def _no_day(predicate: Any) -> None:
    predicate["waivers"][0]["until"] = "some day"


def _more(predicate: Any) -> None:
    _rule(predicate)["waived"] = 2


def _less(predicate: Any) -> None:
    del _rule(predicate)["waived"]


def _holding(predicate: Any) -> None:
    _rule(predicate, name="C1")["waived"] = 0
    _rule(predicate, name="C2")["waived"] = 1


@pytest.mark.parametrize(
    "change", [_without, _elsewhere, _other_rule, _twice, _unsigned, _no_day, _more, _less, _holding]
)
def test_a_changed_waiver_is_refuted(folder: Path, waived: Report, change: Callable[[Any], None]) -> None:
    assert recheck(_forged(waived, change), folder / "working-group.onnx").outcome == "REFUTED"


def test_a_forged_waiver_of_a_cycle_is_refuted(folder: Path) -> None:
    report = certify(folder / "cycle.onnx", witnesses=True)

    def forge(predicate: Any) -> None:
        fields = {"model": "*", "place": "*", "reason": "r", "until": "2999-12-31", "who": "w"}
        broken = [rule for rule in predicate["rules"] if rule["verdict"] == "violated" and rule["counted"]]
        predicate["waivers"] = [{**fields, "rule": f"{rule['rule_set']} {rule['id']}"} for rule in broken]
        for rule in broken:
            rule["waived"] = rule["total"]
        predicate["verdict"] = "CONFORMS"
        for entry in predicate["rule_sets"]:
            entry["verdict"] = "CONFORMS"

    replayed = recheck(_forged(report, forge), folder / "cycle.onnx")
    assert replayed.outcome == "REFUTED"
    assert any("the rule Acyclic cannot be waived" in reason for reason in replayed.reasons)


# ---- The command ---------------------------------------------------------------------------------


SETTINGS = """\
[[tool.sonnx.waivers]]
rule = "R1/per-node"
place = "/3:*"
reason = "the exporter keeps it"
who = "A. Engineer"
until = 2999-12-31

[[tool.sonnx.waivers]]
rule = "C2"
place = "*"
reason = "long ago"
who = "A. Engineer"
until = "2020-01-31"
"""


def test_the_command_takes_waivers_from_the_settings_of_the_project(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    model = folder / "working-group.onnx"
    code, out, _ = called(capsys, "certify", model, "--certificate", "c.json")
    (warning,) = (line for line in out.splitlines() if line.startswith("warning: "))
    last = out.splitlines()[-1]
    assert (code, last) == (0, "working-group.onnx CONFORMS to sonnx, with 1 waiver.")
    assert warning == "warning: the waiver of C2 at * (pyproject.toml:8) accepts nothing: ended on 2020-01-31"
    assert "waived     the exporter keeps it (A. Engineer, until 2999-12-31)" in out
    assert called(capsys, "certify", model, "--no-waivers", "-q")[0] == 1
    report = json.loads(called(capsys, "certify", model, "--format", "json")[1])
    assert [it["rule"] for it in report["waivers"]["applied"]] == ["R1/per-node"]
    assert [it["rule"] for it in report["waivers"]["unused"]] == ["C2"]
    (run,) = json.loads(called(capsys, "certify", model, "--format", "sarif")[1])["runs"]
    told = [it["suppressions"][0]["justification"] for it in run["results"] if "suppressions" in it]
    assert told == ["the exporter keeps it (A. Engineer, until 2999-12-31)"]
    code, out, _ = called(capsys, "recheck", "c.json", model)
    assert (code, out.splitlines()[0]) == (0, "CONFIRMED")
    assert "by A. Engineer: the exporter keeps it" in out


def test_a_waiver_is_for_the_models_that_its_pattern_fits(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = folder / "working-group.onnx"
    for pattern, code in (("working-*", 0), ("*/working-group.onnx", 0), ("other.onnx", 1)):
        (tmp_path / "pyproject.toml").write_text(SETTINGS.replace("until = 2999", f'model = "{pattern}"\nuntil = 2999'))
        assert called(capsys, "certify", model, "-q")[0] == code
