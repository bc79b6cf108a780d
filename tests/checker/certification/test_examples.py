"""The shipped examples break the rules that they are there to break, and their reports read as recorded."""

import io
import os
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console
from sonnx.checker import Report, RuleVerdict, Verdict, certify
from sonnx.checker.certification.examples import Example, examples, write
from sonnx.checker.certification.formats.text import write as write_text
from sonnx.spec.library import specification
from sonnx.spec.terminal import output_console

EXPECT = Path(__file__).parent / "expect"
GRAPH_SETS = ("sonnx", "sonnx-2025-04", "sonnx-2025-05", "sonnx-2025-10")
DEFAULT = ("sonnx", "onnx", "domain")
"""The rule set that is judged unless another is named, with those that it includes."""
NAMES = {example.name: example for example in examples()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("examples")
    write(target)
    return target


@cache
def judged(model: Path, rules: tuple[str, ...], others: bool = False) -> Report:
    """The report on a model, made once."""
    return certify(model, rules, others=others)


def asked(example: Example | None) -> str:
    """The rule set that the example is there for: the default one judges those that it includes."""
    named = example.breaks[0] if example and example.breaks else "sonnx"
    return "sonnx" if named in DEFAULT else named


def its_report(example: Example | None, model: Path) -> Report:
    """The report for that rule set; where it is not the default one, on the other rule sets too."""
    return judged(model, (asked(example),), asked(example) != "sonnx")


def rule(report: Report, rule_set: str, rule_id: str) -> RuleVerdict:
    return next(r.verdict for r in report.rules if r.rule_set == rule_set and r.id == rule_id)


def test_the_conforming_example_conforms_to_every_rule_set(folder: Path) -> None:
    report = certify(folder / "conforming.onnx", ("all",))
    assert {s.name: s.verdict for s in report.rule_sets} == dict.fromkeys(specification().profiles, Verdict.CONFORMS)


@pytest.mark.parametrize("example", [e for e in NAMES.values() if e.breaks], ids=lambda e: e.name)
def test_an_example_breaks_its_rule(folder: Path, example: Example) -> None:
    assert example.breaks is not None
    rule_set, rule_id = example.breaks
    report = its_report(example, folder / f"{example.name}.onnx")
    assert rule(report, rule_set, rule_id) is RuleVerdict.VIOLATED
    found = next(r for r in report.rules if (r.rule_set, r.id) == (rule_set, rule_id))
    assert found.findings
    assert all(f.message and f.suggestion and f.witness for f in found.findings) or rule_id == "Graph/outputs"
    if rule_set in DEFAULT:
        assert report.verdict is Verdict.VIOLATES


@pytest.mark.parametrize(
    ("name", "conditions", "obligations"),
    [
        ("conforming", (), 0),
        ("any-size", ("H >= 3", "W >= 3"), 0),
        ("fixed-batch", ("48 * N = 24 * N * H - 144",), 0),
        ("index-input", (), 1),
    ],
)
def test_what_conforms_says_for_which_sizes_and_with_how_many_obligations(
    folder: Path, name: str, conditions: tuple[str, ...], obligations: int
) -> None:
    assert NAMES[name].breaks is None
    model = folder / f"{name}.onnx"
    report = judged(model, ("sonnx",))
    assert (report.verdict, report.conditions, report.obligations) == (Verdict.CONFORMS, conditions, obligations)
    strict = Verdict.VIOLATES if conditions else Verdict.UNDECIDED if obligations else Verdict.CONFORMS
    assert certify(model, strict=True).verdict is strict


def test_every_constraint_of_the_graph_rule_sets_has_an_example_that_breaks_it(folder: Path) -> None:
    profiles = specification().profiles
    wanted = {rule.constraint for name in GRAPH_SETS for rule in profiles[name].rules}
    broken = set()
    for example in NAMES.values():
        report = its_report(example, folder / f"{example.name}.onnx")
        broken |= {r.constraint for r in report.rules if r.verdict is RuleVerdict.VIOLATED}
    assert wanted - broken == set()


@pytest.mark.parametrize("name", [*NAMES, "working-group-listing"])
def test_the_text_report_reads_as_recorded(folder: Path, name: str) -> None:
    """SONNX_UPDATE=1 records the reports anew."""
    model = folder / ("working-group.txt" if name == "working-group-listing" else f"{name}.onnx")
    example = NAMES.get(name)
    out = io.StringIO()
    write_text(its_report(example, model), output_console(out))
    recorded = EXPECT / f"{name}.expect"
    if os.environ.get("SONNX_UPDATE"):
        recorded.write_text(out.getvalue(), encoding="utf-8")
    assert out.getvalue() == recorded.read_text(encoding="utf-8")


def test_a_narrow_terminal_shows_whole_rules_and_verdicts(folder: Path) -> None:
    out = io.StringIO()
    write_text(judged(folder / "working-group.onnx", ("sonnx",)), Console(file=out, width=60))
    rows = [line for line in out.getvalue().splitlines() if line.startswith(("│", "┃"))]
    assert max(map(len, rows)) <= 60 and "…" not in out.getvalue()
    assert any(row.split("│")[1:3] == [" R1/per-node          ", " violated               "] for row in rows)
