"""`sonnx prove`: what it prints, writes and returns."""

import json
from pathlib import Path

import proved
import pytest
from click.testing import CliRunner, Result
from sonnx.proofs.commands.prove import prove
from sonnx.proofs.gates import cvc5_prover, gates, judging, suite
from sonnx.proofs.kernel.theory import Theory
from sonnx.proofs.report import report
from sonnx.spec.library import specification


@pytest.fixture(autouse=True)
def _few_situations_are_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the processes too, which a run forks."""
    monkeypatch.setattr(gates, "situation", proved.quick)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(prove, arguments, catch_exceptions=False)


def test_a_theorem_is_proved_with_its_gates_and_what_it_rests_on() -> None:
    said = run("StillEnabled")
    lines = said.output.splitlines()
    row = next(line for line in lines if line.startswith("StillEnabled"))
    assert row.split()[1] == "proved"
    assert "SingleAssignment" in lines[lines.index(row) + 1]
    assert "laws Writers" in lines[lines.index(row) + 1]
    assert lines[-2] == "taken as any predicate: deterministic, training"


def test_theorems_come_first_and_the_lemmas_that_serve_them_behind() -> None:
    lines = run("BodyIsFramed", "--no-gates").output.splitlines()
    behind = lines.index("lemmas, which serve the theorems")
    stated = suite.theorems(Theory(specification()))
    listed = {line.split()[0]: at for at, line in enumerate(lines) if line.split()[0] in stated}
    assert {"BodyIsFramed", *(it for it in stated["BodyIsFramed"].needs if it in stated)} <= set(listed)
    assert all((stated[name].kind == "lemma") == (at > behind) for name, at in listed.items())


def test_without_cvc5_the_gate_is_skipped_and_the_last_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cvc5_prover, "installed", lambda: False)
    said = run("SameStart")
    assert "gate cvc5 SKIPPED: cvc5 is not installed (pip install 'sonnx[cvc5]')" in said.output.splitlines()[-1]
    assert said.exit_code == 0


def test_a_failed_gate_makes_the_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "on_seeds", lambda *_: gates.Gate("z3", "failed", "no reason"))
    said = run("SameStart")
    assert said.exit_code == 1
    assert "gate z3 failed for 1" in said.output.splitlines()[-1]


def test_a_theorem_without_a_script_makes_the_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "unmatched", lambda _theory: ("the theorem T of part 6 has no script in proofs/",))
    said = run("SameStart", "--no-gates")
    assert said.exit_code == 1
    assert "has no script" in said.output


def test_an_unknown_name_is_an_error_with_a_suggestion() -> None:
    said = run("Determinsm")
    assert said.exit_code == 2
    assert "Determinsm; did you mean Determinism?" in " ".join(said.output.split())


def test_json_has_verdict_gates_and_hypotheses() -> None:
    (found,) = json.loads(run("SameStart", "--json").output)
    assert (found["name"], found["verdict"]) == ("SameStart", "proved")
    assert set(found["gates"]) == set(gates.GATES)
    assert {it["status"] for it in found["hypotheses"]} <= {"needed", "used"}


def test_the_table_says_which_rule_a_theorem_needs() -> None:
    lines = run("StillEnabled", "--table", "--markdown").output.splitlines()
    assert "SingleAssignment (C1)" in lines[0]
    (line,) = [line for line in lines if line.startswith("| StillEnabled ")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:2] == ["StillEnabled", "used"]
    assert set(cells[2:-1]) == {"-"}


def test_every_question_is_dumped_as_smt_lib(tmp_path: Path) -> None:
    run("SameStart", "--no-gates", "--dump", str(tmp_path))
    names = {path.name for path in tmp_path.iterdir()}
    assert {"SameStart.smt2", "SameStart-hypotheses.smt2"} <= names
    assert sum("-without-" in name for name in names) == len(gates.needs_of(Theory(specification()), "SameStart"))
    assert all(path.read_text("ascii").endswith("(check-sat)\n") for path in tmp_path.iterdir())


def test_pictures_are_written_as_files_and_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("SameStart", "--pictures", str(tmp_path / "all"), "--html", str(page))
    files = list((tmp_path / "all").glob("*.svg"))
    assert len(files) == page.read_text("utf-8").count("<svg") == 3  # of the hypotheses, and one without each premise


def test_two_runs_say_the_same() -> None:
    theory = Theory(specification())

    def once() -> list[tuple[str, list[tuple[str, str]], list[str]]]:
        found = judging.judge(theory, ["SameStart"], judging.Options(jobs=2))
        return [
            (it.result.stated.name, [(g.name, g.status) for g in it.gates], [n.status for n in it.needs])
            for it in found
        ]

    assert once() == once()


def test_the_last_line_counts_what_is_proved() -> None:
    theory = Theory(specification())
    found = list(judging.judge(theory, ["SameStart"], judging.Options(gated=False)))
    kind = found[0].result.stated.kind
    assert report.last_line(found, ()) == f"1 of 1 {'lemmas' if kind == 'lemma' else 'theorems'} proved; no gates asked"
