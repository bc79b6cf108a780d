"""The error text of onnx's strict shape inference, taken apart.

Nodes bear names of our own in the models that inference gets (`n12`), so a place in the text is exact:
`(op_type:Add, node name: n5): [ShapeInferenceError] Incompatible dimensions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PLACE = re.compile(r"\(op_type:[^(),]*, node name: n(\d+)\): ?")
NOISE = re.compile(r"\[(?:Shape|Type)InferenceError\] ?|Inference error\(s\): ?|\(op_type:[^(),]*\): ?")
INNER = re.compile(r"\(op_type:[^(),]*\): ")
WRAPPED = re.compile(r"Integer overflow in (?:Add|Sub|Mul) during data propagation")
"""What data propagation says of integers that wrap around, as the operators define them: it cannot follow, and rejects
nothing. onnx.checker, which does not propagate data, takes such a node."""
WITHIN = "within the function that defines the operator: "
"""Begins the message when inference failed in a node that the model does not have: one of the operator's own body."""


def located(text: str) -> Iterator[tuple[int | None, str]]:
    """The number of the node and the message of each error, in order. Of nested places the innermost has the message.

    A text without any place gives one error whose node is None. That integers wrap around is no error.
    """
    pieces = PLACE.split(text)
    found = False
    for node, message in zip(pieces[1::2], pieces[2::2], strict=True):
        if cleaned := _clean(message):
            found = True
            if not WRAPPED.fullmatch(cleaned):
                yield int(node), WITHIN + cleaned if INNER.search(message) else cleaned
    if not found and len(pieces) > 1:
        yield int(pieces[-2]), "no message"
    elif not found and (rest := _clean(text)):
        yield None, rest


def _clean(message: str) -> str:
    return " ".join(NOISE.sub("", message).split())
