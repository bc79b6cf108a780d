"""Every theorem and lemma of part 6 is proved and passes its gates."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from proved import QUICK, SITUATIONS, THEORY, judged, passed, results, situation, sought
from sampling import left
from sonnx.proofs.gates import gates, suite
from sonnx.proofs.kernel import kernel
from sonnx.proofs.kernel.theory import Theory
from sonnx.spec.language.parse import parse_expression

OPEN = ("cvc5", "proof")
"""The gates that are skipped where nothing is installed to ask."""


def test_every_theorem_and_lemma_is_proved() -> None:
    assert list(results()) == list(suite.theorems(THEORY))
    text = kernel.reading(THEORY)
    for name, result in results().items():
        assert result.theorem is not None, (name, result.missing, result.refused)
        assert kernel.genuine(text, result.theorem).name == name


SAMPLE = ("MapEnters", "InlinedGraph", "CountedFromZero", "FiresAdds")
"""Of different parts, proved at once and by induction; each takes a second or two."""


@pytest.mark.parametrize("name", SAMPLE)
def test_a_theorem_passes_its_gates(name: str) -> None:
    """Of a sample; the campaign asks all of them, in processes."""
    assert set(passed(name)) == set(gates.GATES)
    assert wrong(passed(name).values()) == {}


def wrong(found: Iterable[gates.Gate]) -> dict[str, str]:
    """Why gates are not passed, by name."""
    return {
        gate.name: gate.detail
        for gate in found
        if gate.status != "passed" and not (gate.status == "skipped" and gate.name in OPEN)
    }


@pytest.mark.parametrize("name", [it if it in QUICK else left(it) for it in SITUATIONS])
def test_a_situation_is_possible_under_all_laws(name: str) -> None:
    assert situation(name).status == "passed", situation(name).detail


def test_a_situation_that_is_sought_again_is_the_same() -> None:
    for name in QUICK:
        assert replace(sought(THEORY, name), seconds=0.0) == replace(situation(name), seconds=0.0)


def test_every_law_is_named_by_a_theorem() -> None:
    """The campaign sees that a theorem needs or uses it."""
    named = {need for it in suite.theorems(THEORY).values() for need in it.needs}
    assert [it.name for it in THEORY.text.properties.values() if it.kind == "law" and it.name not in named] == []


@pytest.mark.campaign
def test_every_theorem_and_lemma_judged_by_processes_is_proved_and_passes_its_gates() -> None:
    assert list(judged()) == list(suite.theorems(THEORY))
    text = kernel.reading(THEORY)
    for name, it in judged().items():
        assert it.result.theorem is not None, (name, it.result.missing, it.result.refused)
        assert kernel.genuine(text, it.result.theorem).name == name
        assert [gate.name for gate in it.gates] == list(gates.GATES)
        assert [gate.name for gate in it.situations] == SITUATIONS
    assert {name: why for name, it in judged().items() if (why := wrong(it.gates))} == {}
    needs = {
        (need.kind, need.label) for it in judged().values() for need in it.needs if need.status in ("needed", "used")
    }
    idle = [it.name for it in THEORY.text.properties.values() if it.kind == "law" and ("law", it.name) not in needs]
    assert idle == []


def test_a_law_that_forbids_a_situation_makes_every_theorem_fail_its_gate() -> None:
    law = replace(THEORY.text.properties["Producers"], name="NoGap", parameters=(), premises=(), goal=parse_expression(
        "forall g in every Graph: exists n in nodes(g): true"))  # fmt: skip
    theory = Theory(replace(THEORY.text, properties={**THEORY.text.properties, "NoGap": law}))
    found = [gates.situation(theory, name) for name in ("NoNodes", "NeverRead")]
    assert [it.status for it in found] == ["failed", "passed"]
    assert gates.situations(found).status == "failed"
    assert gates.situations(found[1:]).status == "passed"
    assert gates.situations(()).status == "failed"


def test_every_theorem_has_a_script_and_every_script_a_theorem() -> None:
    assert suite.unmatched(THEORY) == ()


def test_every_law_and_theorem_has_a_sentence() -> None:
    for found in THEORY.text.properties.values():
        assert found.doc.endswith("."), found.name


def test_no_theorem_needs_a_later_one() -> None:
    seen = set(THEORY.text.constraints)
    for found in THEORY.text.properties.values():
        assert set(found.needs) <= seen, found.name
        seen.add(found.name)
