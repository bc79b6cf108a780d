"""Scripts given to z3 and cvc5 as they stand, for tests: every answer, and whether the last line was accepted."""

from __future__ import annotations

import re

import pytest
import z3

ANSWERS = ("sat", "unsat", "unknown")


def z3_says(text: str, seconds: float) -> list[str]:
    """What z3 answers to each question of a script."""
    context = z3.Context()
    printed = str(z3.Z3_eval_smtlib2_string(context.ref(), f"(set-option :timeout {int(seconds * 1000)})\n{text}"))
    return _answers(printed, text)


def cvc5_says(text: str, seconds: float) -> list[str]:
    """What cvc5 answers; where it does not know, what it answers with model-based instantiation, which finds models of
    quantified facts. The test is skipped where cvc5 is not installed."""
    first = _cvc5_says(text, seconds, "false")
    return _cvc5_says(text, seconds, "true") if "unknown" in first else first


def _cvc5_says(text: str, seconds: float, mbqi: str) -> list[str]:
    cvc5 = pytest.importorskip("cvc5")
    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(int(seconds * 1000)))
    solver.setOption("mbqi", mbqi)
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "script")
    printed = ""
    while not (command := parser.nextCommand()).isNull():
        printed += command.invoke(solver, parser.getSymbolManager())
    return _answers(printed, text)


def _answers(printed: str, text: str) -> list[str]:
    """One answer for each question, and nothing else: an error on any line is one line too many."""
    lines = [line for line in printed.split("\n") if line]
    asked = len(re.findall(r"^\(check-sat", text, re.MULTILINE))
    if len(lines) != asked or not set(lines) <= set(ANSWERS):
        raise AssertionError(f"{asked} questions, and the solver says: {printed[:500]}")
    return lines


SOLVERS = {"z3": z3_says, "cvc5": cvc5_says}
