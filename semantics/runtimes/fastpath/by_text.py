"""The kernel of an operator that has none of its own: the operator's text, compiled for the ieee interpretation."""

from __future__ import annotations

from typing import Final

from ...model.graph import Node
from ...model.schemas import operator_name
from ...operators.application import Application, Draw, Stuck
from .kernel import Allocate, Inputs, Kernel, KernelError, Outputs, Site, unprepared


def run_text(site: Site, inputs: Inputs, _allocate: Allocate) -> Outputs:
    """The outputs that the text of the operator gives. Raises KernelError where it is stuck."""
    from ...operators.compiled.ieee import apply  # imported here: most sessions run no text

    draw = Draw(place=site.place)
    outcome = apply(Application(site.op_type, site.version, tuple(inputs), site.attributes, site.outputs, draw=draw))
    if isinstance(outcome, Stuck):
        raise KernelError(f"{outcome.premise} {outcome.message}".strip())
    return outcome.values


BY_TEXT: Final = Kernel(1, 1 << 31, unprepared(run_text), alone=True)


def text_kernel(node: Node) -> Kernel | None:
    """The kernel for a node whose operator has a text with equations, None for any other."""
    from sonnx.spec.library import specification

    meaning = specification().meanings.at(operator_name(node.domain, node.op_type), node.version or 0)
    return BY_TEXT if meaning is not None and not meaning.rule else None
