"""A proof checker of other people: what it says is taken for what it is, whatever program stands in its place."""

import stat
from pathlib import Path

import proved
import pytest
from click.testing import CliRunner
from sonnx.proofs.commands.prove import prove
from sonnx.proofs.gates import checking, cvc5_prover, gates
from sonnx.proofs.gates.checking import Checker, check, installed, trusted

ANSWERS = {
    "accepts": ("echo correct", "correct"),
    "incomplete": ("echo incomplete", "incomplete"),
    "refuses": ("echo 'Error: a step does not follow' >&2; exit 1", "refused"),
    "accepts-and-fails": ("echo correct; exit 1", "refused"),
    "crashes": ("kill -ABRT $$", "refused"),
    "hangs": ("sleep 60", "refused"),
    "nonsense": ("echo 'correct?'; head -c 200 /dev/urandom", "refused"),
    "silent": ("true", "refused"),
}
"""For each program what it does, and what it says then of a proof."""


def program(folder: Path, name: str, does: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def ethos(folder: Path, does: str) -> Checker:
    return Checker("ethos", "cpc", str(program(folder, "ethos", does)), str(folder / "Cpc.eo"))


@pytest.mark.parametrize("name", ANSWERS)
def test_only_the_word_of_acceptance_accepts(tmp_path: Path, name: str) -> None:
    does, status = ANSWERS[name]
    assert check(ethos(tmp_path, does), "(assert false)\n", "(step)", seconds=2).status == status


def test_a_checker_that_does_not_start_refuses(tmp_path: Path) -> None:
    assert check(Checker("ethos", "cpc", str(tmp_path / "none")), "", "").status == "refused"


def test_a_proof_with_a_step_on_trust_is_not_complete_whatever_the_checker_says(tmp_path: Path) -> None:
    proof = "(step @p1 :rule trust_theory_rewrite :args (a))\n(step @p2 :rule refl)\n(step @p3 :rule trust)\n"
    assert trusted(proof) == {"trust_theory_rewrite": 1, "trust": 1}
    assert check(ethos(tmp_path, "echo correct"), "", proof).status == "incomplete"


def test_the_checker_reads_the_question_the_rules_and_the_proof(tmp_path: Path) -> None:
    does = 'for it in "$@"; do case "$it" in --reference=*) cat "${it#--reference=}";; *.cpc) cat "$it";; esac; done > '
    check(ethos(tmp_path, f'{does}{tmp_path}/read; echo "$@" > {tmp_path}/asked; echo correct'), "QUESTION ", "PROOF")
    assert (tmp_path / "read").read_text("utf-8") == "QUESTION PROOF"
    asked = (tmp_path / "asked").read_text("utf-8")
    assert f"--include={tmp_path}/Cpc.eo" in asked
    assert "--require-proof-of-false" in asked


def test_a_checker_is_sought_on_path(tmp_path: Path) -> None:
    assert installed({"PATH": ""}) == "no proof checker is on PATH (ethos or carcara)"
    program(tmp_path / "bin", "ethos", "true")
    path = {"PATH": str(tmp_path / "bin")}
    assert "SONNX_CPC" in str(installed(path))
    rules = tmp_path / "Cpc.eo"
    rules.write_text("", encoding="utf-8")
    found = installed({**path, "SONNX_CPC": str(rules)})
    assert found == Checker("ethos", "cpc", str(tmp_path / "bin/ethos"), str(rules))
    program(tmp_path / "bin", "carcara", "true")
    assert installed(path) == Checker("carcara", "alethe", str(tmp_path / "bin/carcara"))


def test_carcara_is_asked_as_it_wants(tmp_path: Path) -> None:
    for word, status in (("valid", "correct"), ("holey", "incomplete"), ("invalid", "refused")):
        found = Checker("carcara", "alethe", str(program(tmp_path, "carcara", f'test "$1" = check && echo {word}')))
        assert check(found, "", "").status == status


@pytest.mark.skipif(not cvc5_prover.installed(), reason="cvc5 is not installed (pip install 'sonnx[cvc5]')")
def test_the_gate_passes_fails_and_is_skipped_as_the_checker_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Cpc.eo").write_text("", encoding="utf-8")
    monkeypatch.setenv("SONNX_CPC", str(tmp_path / "Cpc.eo"))
    monkeypatch.setattr(gates, "situation", proved.quick)
    base = "/usr/bin:/bin"
    monkeypatch.setenv("PATH", base)
    if isinstance(installed(), Checker):
        pytest.skip("a proof checker is where every program is")
    said = CliRunner().invoke(prove, ["SameStart", "--dump", str(tmp_path / "dump")]).output.splitlines()
    assert "gate proof SKIPPED: no proof checker is on PATH (ethos or carcara)" in said[-1]
    assert "proofs of cvc5: 1 written, 1 without a step on trust" in said
    written = (tmp_path / "dump" / "SameStart.cpc").read_text("utf-8")
    assert written.splitlines()[-1].startswith("(step ")
    program(tmp_path / "bin", "ethos", "echo refused; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{base}")
    refused = CliRunner().invoke(prove, ["SameStart"])
    assert refused.exit_code == 1
    assert "gate proof failed for 1" in refused.output.splitlines()[-1]
    program(tmp_path / "bin", "ethos", "echo correct")
    assert "1 correct, 0 incomplete, 0 refused" in CliRunner().invoke(prove, ["SameStart"]).output


@pytest.mark.skipif(isinstance(checking.installed(), str), reason=str(checking.installed()))
def test_the_checker_of_this_machine_refuses_a_proof_of_another_question() -> None:
    checker = checking.installed()
    if isinstance(checker, str):
        pytest.fail(checker)
    text = "(set-logic ALL)\n(declare-sort U 0)\n(declare-fun a () U)\n(declare-fun b () U)\n(declare-fun f (U) U)\n"
    asked = f"{text}(assert (= a b))\n(assert (not (= (f a) (f b))))\n"
    proof = cvc5_prover.prove(asked, written=checker.written).proof
    assert check(checker, asked, proof).status == "correct"
    assert check(checker, text + "(assert (not (= (f a) (f b))))\n", proof).status == "refused"
    assert check(checker, asked, proof.rsplit("(step", 1)[0]).status == "refused"
