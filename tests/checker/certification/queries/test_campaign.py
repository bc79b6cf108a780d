"""The campaign: every rule of every example and shared model up to 500 nodes, its script given to both solvers.

A folder that SONNX_CAMPAIGN names keeps what is done, model by model, so that an interrupted campaign goes on there.
SONNX_CAMPAIGN_SECONDS is the time of a script, SONNX_CAMPAIGN_NODES the largest model.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import journal as journals
import pytest
from second_solvers import SOLVERS
from sonnx.checker.certification.examples import write
from sonnx.checker.certification.queries.dumping import QUANTIFIED
from sonnx.checker.certification.queries.scripts import About, scripts
from sonnx.checker.smt import solver as ground
from sonnx.semantics.errors import ModelError
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.facts.inference.model import infer
from sonnx.semantics.formulas import ground as smt
from sonnx.semantics.model.loader import load
from sonnx.spec.library import specification

ROOT = Path(__file__).parents[4]
SHARED = Path(os.environ.get("SONNX_SHARED_MODELS", ROOT / "shared" / "models"))
SECONDS = float(os.environ.get("SONNX_CAMPAIGN_SECONDS", "60"))
NODES = int(os.environ.get("SONNX_CAMPAIGN_NODES", str(QUANTIFIED)))


@pytest.mark.campaign
def test_both_solvers_decide_every_rule_as_it_is_judged(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a solver does not decide the quantified form in time, the ground form is asked, and counted."""
    if "campaign" not in str(request.config.getoption("markexpr")):
        pytest.skip("long campaign: run it with -m campaign")
    write(tmp_path)
    kept = Path(os.environ.get("SONNX_CAMPAIGN") or tmp_path)
    kept.mkdir(parents=True, exist_ok=True)
    journal = kept / "queries.jsonl"
    done = journals.done(journal, "model")
    shared = (file for file in SHARED.rglob("*") if file.suffix in (".onnx", ".pb"))
    files = [*sorted(tmp_path.glob("*.onnx")), *sorted(shared, key=lambda file: (file.stat().st_size, file))]
    with journal.open("a", encoding="utf-8") as records, capsys.disabled():
        for file in files:
            model = str(file.relative_to(SHARED)) if file.is_relative_to(SHARED) else f"examples/{file.name}"
            if model not in done:
                wrong: list[str] = []
                counted = judged(file, wrong)
                done[model] = {"model": model, "counted": counted, "wrong": wrong}
                records.write(json.dumps(done[model]) + "\n")
                records.flush()
                print(f"{model}: {dict(sorted(counted.items()))}", *wrong, flush=True)  # noqa: T201
        total = sum((Counter(record["counted"]) for record in done.values()), Counter())
        print(f"total over {len(done)} files: {dict(sorted(total.items()))}", flush=True)  # noqa: T201
    assert [line for record in done.values() for line in record["wrong"]] == []


def judged(file: Path, wrong: list[str]) -> Counter[str]:
    """How many rules of a model each solver decides from the quantified form. wrong: gets what contradicts."""
    found: Counter[str] = Counter()
    try:
        model = load(file)
    except ModelError:
        return found
    if len(model.nodes) > NODES:
        return Counter({"large": 1})
    spec, claims = specification(), infer(model, 60)
    facts = structure(model, lambda: claims)
    for name in sorted({rule.constraint for profile in spec.profiles.values() for rule in profile.rules}):
        constraint = spec.constraints[name]
        answer = ground.solve(smt.query(constraint, spec.functions, facts), SECONDS)
        written = scripts(constraint, spec.functions, facts, About())
        found["rules"] += 1
        for solver, says in SOLVERS.items():
            answers = {}
            order = written if answer.verdict != "violated" else written[::-1]
            for script in order:
                answers[script.shows] = says(script.text, SECONDS)[0]
                if answers[script.shows] == "unsat":
                    break
            shown = [shows for shows, said in answers.items() if said == "unsat"]
            verdict = shown[0] if shown else "unknown" if set(answers.values()) == {"sat"} else "undecided"
            if verdict == "undecided":
                found[f"{solver}: ground"] += 1
                found[f"{solver}: ground, model leaves it open"] += answer.verdict == "unknown"
            elif verdict == answer.verdict:
                found[f"{solver}: decides"] += 1
            elif answer.verdict == "unknown":
                found[f"{solver}: decides what is open in the ground form"] += 1
            else:
                wrong.append(f"{file.name} {name}: {verdict} by {solver}, {answer.verdict} by the ground form")
    return found
