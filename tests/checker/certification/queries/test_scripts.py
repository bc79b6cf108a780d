"""The scripts of rules: accepted by two solvers to the last line, answered as the rule is judged, made of the text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import small_graphs as small
import worlds
from sampling import one_of_each, sampled
from second_solvers import SOLVERS
from sonnx.checker import certify
from sonnx.checker.certification.examples import write
from sonnx.checker.certification.queries.dumping import QUANTIFIED
from sonnx.checker.certification.queries.formulas import InexpressibleError
from sonnx.checker.certification.queries.scripts import About, Script, scripts
from sonnx.checker.certification.report import Report, RuleVerdict
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.facts.inference.model import infer
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.model.loader import load
from sonnx.spec.library import specification

SECONDS = 60.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("examples")
    write(made)
    return made


def written(name: str, facts: Structure) -> tuple[Script, Script]:
    spec = specification()
    return scripts(spec.constraints[name], spec.functions, facts, About("a model", "00"))


def judged(name: str, facts: Structure) -> str:
    spec = specification()
    return direct.judge(spec.constraints[name], spec.functions, facts).verdict


def wanted(name: str, facts: Structure) -> tuple[str, list[Script]]:
    """The verdict, and the scripts that are unsat for it; both are sat for a rule that the model leaves open."""
    verdict, both = judged(name, facts), written(name, facts)
    return verdict, [script for script in both if script.shows == verdict]


EXAMPLES = [
    "conforming",
    "working-group",
    "cycle",
    "single-assignment",
    "dead-chain",
    "branches-disagree",
    "omitted-input",
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("example", sampled(EXAMPLES, 1))
def test_every_rule_of_an_example_is_decided_as_it_is_judged(folder: Path, example: str, solver: str) -> None:
    model = load(folder / f"{example}.onnx")
    claims = infer(model, 60)
    facts = structure(model, lambda: claims)
    for name in sorted({rule.constraint for profile in specification().profiles.values() for rule in profile.rules}):
        verdict, decisive = wanted(name, facts)
        for script in decisive:
            assert SOLVERS[solver](script.text, SECONDS) == ["unsat"], f"{name} {verdict}"


def test_the_rule_is_the_formula_of_the_text_and_no_truth_value() -> None:
    facts = small.structure(GOOD)
    for name in FLIPS:
        for script in written(name, facts):
            rule = re.search(r"\(define-fun rule \(\) Bool\n  (.*)\)\n", script.text)
            assert rule is not None
            assert rule[1] not in ("true", "false")
            assert "forall" in rule[1] or "exists" in rule[1]


GOOD = small.SmallGraph(4, reads=((0, 1), (2,)), writes=((2,), (3,)), inputs=(0,), outputs=(3,), initializers=(1,))
"""x, w -> a -> b -> y, w stored."""
FLIPS = {
    "Sourced": replace(GOOD, initializers=()),
    "SingleAssignment": replace(GOOD, writes=((2,), (3, 2))),
    "Acyclic": replace(GOOD, reads=((0, 1, 3), (2,))),
    "OutputUsage": replace(GOOD, outputs=()),
    "Contributes": replace(GOOD, outputs=()),
    "NoWriteToInput": replace(GOOD, inputs=(0, 3)),
    "InputUsage": replace(GOOD, inputs=(0, 3)),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", FLIPS)
def test_a_changed_fact_flips_the_answer(name: str, solver: str) -> None:
    says = cache(lambda text: SOLVERS[solver](text, SECONDS))
    holds, violated = (written(name, small.structure(graph)) for graph in (GOOD, FLIPS[name]))
    assert [says(holds[0].text), says(violated[1].text)] == [["unsat"], ["unsat"]]
    assert ["unsat"] not in (says(holds[1].text), says(violated[0].text))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("graph", [GOOD, FLIPS["Acyclic"]], ids=["founded", "cyclic"])
def test_a_table_of_a_fixpoint_must_be_justified(graph: small.SmallGraph, solver: str) -> None:
    """A rank that does not go down, or a member that is left out of a closed set, takes the proof away."""
    script = written("Acyclic", small.structure(graph))[0 if graph is GOOD else 1]
    assert SOLVERS[solver](script.text, SECONDS) == ["unsat"]
    if graph is GOOD:  # ranks that do not go down
        forged = re.sub(r"\(founded\.rank Node\.(\d)\) (\d+)", r"(founded.rank Node.\1) 0", script.text)
    else:  # what the first node reads is written by none: it is founded, and the empty table is not closed
        forged = script.text.replace("(assert (producers Tensor.3 Node.1))\n", "")
        forged = forged.replace("(=> (producers Tensor.3 y) (= y Node.1))", "(=> (producers Tensor.3 y) false)")
    assert forged != script.text
    assert SOLVERS[solver](forged, 5) != ["unsat"]


DECIDED_BY_ANY_VALUE = {"next(far(3)) = whole()"}
"""far(3) is open, and whichever node it is, it has fewer than 4 successors."""
COMPUTED = ("[i * i for", "len({")
"""Lists and sizes that are computed have no script."""


def asked_of_one(formulas: Iterable[str], most: int) -> list[Any]:
    """Each formula with each solver; all but one of these, for so many formulas, are left to the campaign."""
    return one_of_each(((formula, solver) for formula in formulas for solver in SOLVERS), itemgetter(0), most)


@pytest.mark.parametrize(
    ("formula", "solver"), asked_of_one((f for f in worlds.HOLD if not any(part in f for part in COMPUTED)), 14)
)
def test_a_formula_of_the_language_means_what_the_text_says(formula: str, solver: str) -> None:
    facts, functions = worlds.structure(), worlds.functions()
    asked = [scripts(worlds.constraint(f), functions, facts, About()) for f in (formula, f"not ({formula})")]
    assert SOLVERS[solver](asked[0][0].text, SECONDS) == ["unsat"]
    assert SOLVERS[solver](asked[0][1].text, 1) != ["unsat"]
    if not any(name in formula for name in ("reached", "maybe", "even")):
        assert SOLVERS[solver](asked[1][1].text, SECONDS) == ["unsat"]
        assert SOLVERS[solver](asked[1][0].text, 1) != ["unsat"]


@pytest.mark.parametrize(
    ("formula", "solver"), asked_of_one((f for f in worlds.UNKNOWN if f not in DECIDED_BY_ANY_VALUE), 6)
)
def test_what_the_model_leaves_open_is_open(formula: str, solver: str) -> None:
    asked = scripts(worlds.constraint(formula), worlds.functions(), worlds.structure(), About())
    assert ["unsat"] not in [SOLVERS[solver](script.text, 1) for script in asked]


def test_what_has_no_script_keeps_its_ground_form() -> None:
    for formula in worlds.HOLD:
        if any(part in formula for part in COMPUTED):
            with pytest.raises(InexpressibleError):
                scripts(worlds.constraint(formula), worlds.functions(), worlds.structure(), About())


def test_a_script_says_what_it_asks(folder: Path, tmp_path: Path) -> None:
    certify(folder / "working-group.onnx", dump=tmp_path)
    text = (tmp_path / "OutputUsage.smt2").read_text(encoding="ascii")
    expect = Path(__file__).parent / "expect" / "OutputUsage.smt2"
    line = re.compile(r"(?m)^(; Text: \S+\.sonnx):\d+:\d+$")
    assert line.search(text)
    assert line.sub(r"\1", text) == expect.read_text(encoding="ascii")


def dumped(report: Report, folder: Path) -> dict[tuple[str, str, RuleVerdict], str]:
    """The scripts of the rules that operators' requirements are, by rule set, rule and verdict."""
    return {
        (rule.rule_set, rule.id, rule.verdict): path.read_text(encoding="ascii")
        for rule in report.rules
        if (path := folder / f"{rule.rule_set}.{rule.id.replace('/', '.')}.smt2").exists()
    }


@pytest.mark.parametrize("example", ["fixed-batch", "any-size", "random", "branches-disagree", "no-source"])
def test_every_rule_gets_a_script(folder: Path, tmp_path: Path, example: str) -> None:
    report = certify(folder / f"{example}.onnx", ["sonnx", "sonnx-constraints"], dump=tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    for rule in report.rules:
        if rule.rule_set not in ("domain", "sonnx-constraints"):
            assert {f"{rule.constraint}.smt2", f"{rule.constraint}.formula.smt2"} <= names
        else:
            assert f"{rule.rule_set}.{rule.id.replace('/', '.')}.smt2" in names


DENIED = re.compile(r"(?m)^\(assert \(not .*\)\)\n\(check-sat\)")


@pytest.mark.parametrize("example", ["any-size", "two-types", "dead-chain", "random", "branches-disagree"])
def test_what_is_asked_is_answered_as_judged_and_nothing_else_looks_asked(
    folder: Path, tmp_path: Path, example: str
) -> None:
    report = certify(folder / f"{example}.onnx", ["sonnx", "sonnx-constraints"], dump=tmp_path)
    asked = 0
    for (_, name, verdict), text in dumped(report, tmp_path).items():
        left_out = [line for line in text.split("\n") if ": not asked: " in line]
        for says in SOLVERS.values():
            answers = says(text, SECONDS)
            asked += len(answers)
            assert ("NOTHING IS ASKED" in text) == (not answers)
            if verdict is RuleVerdict.HOLDS:
                assert set(answers) <= {"unsat"}, name
            else:
                assert "sat" in answers or left_out, name
            if answers:  # the facts can hold together: no answer is unsat for nothing
                assert "unsat" not in says(DENIED.sub("(check-sat)", text), SECONDS), name
    assert asked


def test_types_and_shapes_that_differ_are_told_by_the_solver(folder: Path, tmp_path: Path) -> None:
    """A declared type, size or number of axes that is another one changes the answer."""
    certify(folder / "any-size.onnx", dump=tmp_path)
    for rule, change in {
        "types": (r"\(assert \(= declared.type [^)]*\)\)", "(assert (= declared.type 77))"),
        "shapes": (r"\(assert \(= declared.axes 4\)\)", "(assert (= declared.axes 3))"),
        "defined": (r"\(assert \(= version \d+\)\)", "(assert (= version 999))"),
    }.items():
        text = (tmp_path / f"domain.{rule}.smt2").read_text(encoding="ascii")
        changed = re.sub(*change, text)
        for says in SOLVERS.values():
            assert set(says(text, SECONDS)) == {"unsat"}
            assert set(says(changed, SECONDS)) == {"sat"}, rule


@pytest.mark.parametrize("solver", SOLVERS)
def test_requirements_are_answered_as_they_are_judged(folder: Path, tmp_path: Path, solver: str) -> None:
    report = certify(folder / "fixed-batch.onnx", dump=tmp_path)
    verdicts = {rule.id: str(rule.verdict.value) for rule in report.rules if rule.rule_set == "domain"}
    asked = 0
    for path in sorted(tmp_path.glob("domain.*.smt2")):
        answers = SOLVERS[solver](path.read_text(encoding="ascii"), SECONDS)
        rule = path.name.removeprefix("domain.").removesuffix(".smt2").replace(".", "/")
        asked += len(answers)
        assert (set(answers) <= {"unsat"}) == (verdicts[rule] == "holds"), rule
    assert asked >= 5
    text = (tmp_path / "domain.Conv-11.channels_of_group.smt2").read_text(encoding="ascii")
    changed = text.replace("(assert (= in0.size.1 1))", "(assert (= in0.size.1 2))")
    assert changed != text
    assert SOLVERS[solver](changed, SECONDS) == ["sat"]


def test_a_large_model_gets_the_ground_form(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonnx.checker.certification.queries.dumping.QUANTIFIED", 3)
    assert QUANTIFIED == 500
    certify(folder / "working-group.onnx", dump=tmp_path)
    text = (tmp_path / "OutputUsage.smt2").read_text(encoding="ascii")
    assert "ground form" in text
    for says in SOLVERS.values():
        assert says(text, SECONDS) == ["sat"]  # violated
