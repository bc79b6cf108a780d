"""The law Decodes for elements of fixed widths, from the definitions of part 3b."""

from __future__ import annotations

import pytest
from sonnx.proofs.encoding import widths
from sonnx.proofs.encoding.folding import Bits, combined
from sonnx.semantics.errors import InternalError
from sonnx.semantics.model.elements import BITS
from sonnx.spec.library import Specification, build, specification
from texts import few

FEW = (2, 4, 6, 8, 16)
"""Widths that take a moment; the campaign asks all."""


def test_every_width_of_an_element_type_is_asked() -> None:
    assert set(BITS.values()) == set(widths.WIDTHS)


def test_what_is_decoded_is_what_was_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widths, "WIDTHS", FEW)
    monkeypatch.setattr(widths.cvc5_prover, "prove", lambda _text: widths.cvc5_prover.Answer("absent"))
    found = list(widths.shown(specification()))
    assert [it for it in found if not it.how] == []
    assert {it.how for it in found} == {"every value", "z3"}
    told = list(widths.lines(found))
    assert told[0] == "law Decodes, elements of 2 bits: every value of lists of 0 to 5"
    assert "assumed" in told[-1]


@pytest.mark.campaign
def test_what_is_decoded_is_what_was_encoded_at_every_width_by_two_solvers() -> None:
    assert [it for it in widths.shown(specification()) if not it.how] == []


def changed(old: str, new: str) -> Specification:
    """The specification with another text of part 3b."""
    texts = few()
    assert old in texts["3b-memory.sonnx"]
    return build({**texts, "3b-memory.sonnx": texts["3b-memory.sonnx"].replace(old, new)})


WRONG = {
    "a digit is left out": ("[sum(p < w) bit(b[", "[sum(p < w - 1) bit(b["),
    "the order of digits is another one": ("mod w) * power_of_two(p)", "mod w) * power_of_two(7 - p)"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_definition_is_noticed(case: str) -> None:
    """At 4 bits, where all values are tried, and at 32, where a solver is asked."""
    text = changed(*WRONG[case])
    assert widths._tried(text, 4, 2)
    wide = widths._asked(text, 32, 1)
    assert (wide.how, wide.why) == ("", "z3 says sat")


def test_what_is_not_shown_is_said() -> None:
    found = widths.Shown(8, 1, "", "z3 says unknown")
    assert "NOT SHOWN of lists of 1: z3 says unknown" in next(widths.lines([found]))


@pytest.mark.parametrize("name", ["add", "mul"])
def test_a_bit_vector_never_wraps_around(name: str) -> None:
    full = Bits("v", 255, 8)
    with pytest.raises(InternalError):
        combined(name, full, full if name == "add" else 2)
