"""cvc5 as a second prover. The only module that imports it; it is an extra (`pip install sonnx[cvc5]`).

cvc5 writes a proof of each answer `unsat` and checks it with its own proof checker; an answer whose proof is wrong is
an error there, no `unsat`.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from itertools import product
from typing import Any

from sonnx.semantics.errors import InternalError

EFFORT = (60_000, 150_000, 2_000_000)
"""The steps that each strategy is given, in one round after the other; a second is some hundred thousand. So a slow
machine, or a busy one, comes to the same result.
"""
SECONDS = 300.0
"""The seconds that a strategy may take at all."""
STRATEGIES: tuple[dict[str, str], ...] = ({}, {"enum-inst": "true", "enum-inst-interleave": "true"}, {"mbqi": "true"})
"""Options that are tried one after the other, until one proves."""


@dataclass(frozen=True, slots=True)
class Answer:
    """status: unsat (proved, and the proof is checked), sat, unknown, or absent when cvc5 is not installed. proof: the
    commands of the proof, in the format that was asked for.
    """

    status: str
    reason: str = ""
    proof: str = ""


def installed() -> bool:
    """True where the extra is there."""
    return importlib.util.find_spec("cvc5") is not None


def prove(text: str, seed: int = 0, written: str = "") -> Answer:
    """Asks whether the assertions of an SMT-LIB text contradict each other, its `(check-sat)` not included.

    written: the format in which the proof is wanted, `cpc` or `alethe`; none is written otherwise.
    """
    if not installed():
        return Answer("absent", "cvc5 is not installed (pip install 'sonnx[cvc5]')")
    answer, waiting = Answer("unknown"), list(STRATEGIES)
    for effort, options in product(EFFORT, STRATEGIES):
        if options in waiting:
            answer = _asked(text, effort, seed, options, written)
            if answer.status != "unknown":
                break
            if answer.reason != OUT_OF_STEPS:
                waiting.remove(options)
    return answer


OUT_OF_STEPS = "resourceout"
"""The reason of an answer that more steps might change."""


def _asked(text: str, effort: int, seed: int, options: dict[str, str], written: str) -> Answer:
    import cvc5  # type: ignore[import-not-found,import-untyped,unused-ignore]

    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    for name, value in {
        "produce-proofs": "true", "check-proofs": "true", "tlimit-per": str(int(SECONDS * 1000)), "seed": str(seed),
        "rlimit-per": str(effort), **options, **({"proof-format-mode": written} if written else {}),
    }.items():  # fmt: skip
        solver.setOption(name, value)
    symbols = cvc5.SymbolManager(terms)
    parser = cvc5.InputParser(solver, symbols)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
    try:
        while not (command := parser.nextCommand()).isNull():
            said = command.invoke(solver, symbols)
            if "error" in said:
                raise InternalError(f"cvc5 refuses its input: {said.strip()[:200]}")
        result = solver.checkSat()
        proof = _spelled(solver, written) if written and result.isUnsat() else ""
    except RuntimeError as problem:
        raise InternalError(f"cvc5: {str(problem)[:200]}") from problem
    if result.isUnsat():
        return Answer("unsat", proof=proof)
    return (
        Answer("sat")
        if result.isSat()
        else Answer("unknown", str(result.getUnknownExplanation()).split(".")[-1].lower())
    )


def _spelled(solver: Any, written: str) -> str:
    """The proof as text. cvc5 puts the commands of CPC between parentheses, which its checker does not read."""
    import cvc5

    (proof,) = solver.getProof(cvc5.ProofComponent.FULL)
    spelled = solver.proofToString(proof, {"cpc": cvc5.ProofFormat.CPC, "alethe": cvc5.ProofFormat.ALETHE}[written])
    text = spelled.decode("utf-8") if isinstance(spelled, bytes) else str(spelled)
    if written == "cpc":
        text = text.strip().removeprefix("(").removesuffix(")").strip() + "\n"
    return text
