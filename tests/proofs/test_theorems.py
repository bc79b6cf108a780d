"""Every theorem and lemma of part 6 is proved and passes its gates."""

from dataclasses import replace

from proved import THEORY, judged
from sonnx.proofs.gates import gates, suite
from sonnx.proofs.kernel import kernel
from sonnx.proofs.kernel.theory import Theory
from sonnx.spec.language.parse import parse_expression


def test_every_theorem_and_lemma_is_proved_and_passes_its_gates() -> None:
    found = judged()
    assert list(found) == list(suite.theorems(THEORY))
    for name, it in found.items():
        assert it.result.theorem is not None, (name, it.result.missing, it.result.refused)
        assert kernel.genuine(THEORY, it.result.theorem).name == name
        assert [gate.name for gate in it.gates] == list(gates.GATES)
    assert {
        (name, gate.name): gate.detail
        for name, it in found.items()
        for gate in it.gates
        if gate.status != "passed" and not (gate.status == "skipped" and gate.name in ("cvc5", "proof"))
    } == {}
    stated = [it.name for it in THEORY.text.properties.values() if it.kind == "situation"]
    assert all([gate.name for gate in it.situations] == stated for it in found.values())
    needs = {(need.kind, need.label) for it in found.values() for need in it.needs if need.status in ("needed", "used")}
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
