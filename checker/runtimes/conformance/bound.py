"""The bound that results are judged by: what it is, from what it follows, and who answers for which part of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sonnx.spec.library import specification

STATEMENT: Final = (
    "An element is within the bound where an implementation that does the operations of the operator's text could get"
    " it: each operation rounded to nearest in the element type or, where it is not the last one, in a wider type; a"
    " multiplication and an addition fused or not; the terms of a sum in any order or tree; functions off by no more"
    " than their accuracy in the table. There is no tolerance besides, absolute or relative.",
    "Derivation: intervals are carried through the text of the definition, element by element, on the very values that"
    " the engine fed to the node; their ends are rounded outwards in double. The bound is therefore another one for"
    " each element. What a distance is as a part of the bound is counted from the middle of what is allowed.",
    "Whose it is: ONNX states no accuracy of any operator. The definitions, and that any order of a sum is allowed, are"
    " sonnx's; the accuracies of functions are those of the sources that the table names. NumPy, by which functions are"
    " evaluated in double, is trusted to be within 4 units in the last place of a double, which is added.",
)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How many units in the last place of its result a function may be off, and who says so."""

    function: str
    ulps: int
    source: str


def accuracies() -> Iterator[Accuracy]:
    """The functions for which the specification states an accuracy, in the order of their names."""
    functions = specification().functions
    for name in sorted(functions):
        stated = functions[name].accuracy
        if stated is not None:
            yield Accuracy(name, stated.ulps, stated.reason)
