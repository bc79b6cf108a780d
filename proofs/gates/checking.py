"""Proofs checked outside this process: cvc5 writes each proof as text, and a program of other people reads it.

Ethos (github.com/cvc5/ethos) reads CPC, the format of cvc5, with the rules in `proofs/eo/cpc/Cpc.eo` of cvc5's sources;
Carcara (github.com/ufmg-smite/carcara) reads Alethe. Both are given the question too, so that what a proof assumes are
the assertions of the question and nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SECONDS = 60.0
"""The seconds that the checker may take for one proof."""
SIGNATURES = "SONNX_CPC"
"""The environment variable that names `Cpc.eo`, the rules that Ethos reads proofs by."""
BESIDE = ("../proofs/eo/cpc/Cpc.eo", "../../proofs/eo/cpc/Cpc.eo", "Cpc.eo")
"""The places where the rules are sought else, seen from the folder of `ethos`, as cvc5's `contrib/get-ethos-checker`
puts it."""
TRUSTED = re.compile(r":rule (trust[^\s)]*|hole|sorry|lfsc_rule|alethe_rule)")
"""The steps of a proof that no rule justifies."""


@dataclass(frozen=True, slots=True)
class Checker:
    """A proof checker on this machine. name: that of its program; written: the format that it reads."""

    name: str
    written: str
    program: str
    rules: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """The checker's word on a proof. status: correct; incomplete, a step of it is taken on trust; refused, for
    whatever other reason, which `reason` says.
    """

    status: str
    reason: str = ""


def installed(environment: Mapping[str, str] | None = None) -> Checker | str:
    """The checker that is found on PATH; else, in words, why there is none."""
    known = os.environ if environment is None else environment
    path = known.get("PATH", "")
    ethos = shutil.which("ethos", path=path)
    if ethos is not None:
        folder = Path(ethos).resolve().parent
        candidates = [Path(known[SIGNATURES])] if known.get(SIGNATURES) else [folder / name for name in BESIDE]
        rules = next((it.resolve() for it in candidates if it.is_file()), None)
        if rules is not None:
            return Checker("ethos", "cpc", ethos, str(rules))
    carcara = shutil.which("carcara", path=path)
    if carcara is not None:
        return Checker("carcara", "alethe", carcara)
    if ethos is not None:
        return f"ethos has no rules: set {SIGNATURES} to the file proofs/eo/cpc/Cpc.eo of cvc5's sources"
    return "no proof checker is on PATH (ethos or carcara)"


def check(checker: Checker, question: str, proof: str, seconds: float = SECONDS) -> Checked:
    """The checker's word on a proof that the assertions of a question contradict each other."""
    with tempfile.TemporaryDirectory(prefix="sonnx-proof-") as folder:
        asked, answered = Path(folder, "question.smt2"), Path(folder, f"proof.{checker.written}")
        asked.write_text(question if checker.written == "cpc" else f"{question}(check-sat)\n", encoding="utf-8")
        answered.write_text(proof, encoding="utf-8")
        try:
            ran = subprocess.run(
                _command(checker, asked, answered), capture_output=True, text=True, errors="replace", timeout=seconds,
                check=False, stdin=subprocess.DEVNULL, cwd=folder,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Checked("refused", f"{checker.name} gave no answer within {seconds:g} s")
        except OSError as problem:
            return Checked("refused", f"{checker.name} does not start: {problem}")
    said = ran.stdout.split()
    verdict = {"correct": "correct", "valid": "correct", "incomplete": "incomplete", "holey": "incomplete"}
    status = verdict.get(said[-1]) if said and ran.returncode == 0 else None
    if status == "correct" and trusted(proof):
        status = "incomplete"
    if status is None:
        told = " ".join((ran.stdout + " " + ran.stderr).split())[:200]
        return Checked("refused", f"{checker.name} ended with {ran.returncode}: {told}")
    return Checked(status, "a step is taken on trust" if status == "incomplete" else "")


def _command(checker: Checker, question: Path, proof: Path) -> list[str]:
    if checker.name == "carcara":
        return [checker.program, "check", str(proof), str(question)]
    rules = f"--include={checker.rules}"
    return [checker.program, rules, f"--reference={question}", "--require-proof-of-false", str(proof)]


def trusted(proof: str) -> Counter[str]:
    """The number of steps that a proof takes on trust, by the rule that it names."""
    return Counter(TRUSTED.findall(proof))
