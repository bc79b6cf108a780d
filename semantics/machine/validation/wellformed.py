"""The graph of a run: the constraints of part 2 without which a run of it is none that the rules speak of."""

from __future__ import annotations

from typing import Final

from sonnx.spec.library import specification

from ...facts.gathering import structure
from ...formulas.evaluate import judge
from ...model.graph import Model

CONSTRAINTS: Final = (
    "NoWriteToInput", "NoWriteToInitializer", "SingleAssignment", "OutputPositions", "Sourced", "Acyclic",
    "PortsCounted", "RequiredPortsPresent", "AttributesListed", "AttributesPresent", "AttributeKinds",
    "TypesAsDeclared",
)  # fmt: skip
"""Without them values would depend on the order of steps, or be missing, or be those of an application other than the
one that a node writes."""


def broken(model: Model) -> str:
    """The first of the constraints that a model breaks, with the places; "" where it breaks none."""
    text, facts = specification(), structure(model)
    for name in CONSTRAINTS:
        found = judge(text.constraints[name], text.functions, facts, limit=1)
        if found.verdict != "holds":
            at = (*found.failures, *found.unknowns)[0]
            places = ", ".join(facts.place(sort, value) for _, sort, value in at.bindings)
            return f"{name} is broken: {places} breaks it" if found.failures else f"{name} is not known of {places}"
    return ""
