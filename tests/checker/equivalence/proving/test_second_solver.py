"""What z3 refutes in the proof of a rewrite, cvc5 does not find a model of."""

from __future__ import annotations

import re

import pytest
from sampling import sampled
from second_solvers import cvc5_says
from sonnx.checker.equivalence.proving.suite import judged
from sonnx.checker.smt import solver
from sonnx.checker.smt.solver import Checked, Session
from sonnx.spec.library import own_specification

pytest.importorskip("cvc5", reason="cvc5 is not installed: pip install sonnx[cvc5]")

OTHERS = re.compile(r"(?:FloatingPoint|to_fp|to_fp_unsigned) (?!8 24|11 53)\d")
"""The floating-point types that cvc5 does not decide."""
PROVED = [name for name, it in own_specification().rewrites.items() if it.claim != "never"]
SECONDS = 1.0


@pytest.mark.parametrize("name", sampled(PROVED, 1))
def test_no_question_that_is_refuted_has_a_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refuted: dict[str, None] = {}
    check = Session.check

    def noted(self: Session, text: str, *args: object, **options: object) -> Checked:
        found = check(self, text, *args, **options)
        if found.status == "unsat":
            refuted[text] = None
        return found

    monkeypatch.setattr(solver.Session, "check", noted)
    assert judged(name).holds
    asked = [text for text in refuted if not OTHERS.search(text)]
    if not asked:
        pytest.skip("nothing is asked, or only of types that cvc5 does not decide")
    assert [text for text in asked if said(text) == "sat"] == []


def said(text: str) -> str:
    (answer,) = cvc5_says(f"{text}\n(check-sat)\n", SECONDS)
    return answer
