"""The rechecker's own judgement of what a node leaves to a default value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .facts import Facts
from .places import Instance, Judge, text_place
from .reader import Node
from .schema import OPTIONAL, actuals, operator, schema_of, unwritten, value_in_force

MEANT = frozenset([
    "axes", "dilations", "dtype", "end", "hidden_size", "activations", "kernel_shape", "max", "min", "output_padding",
    "perm", "scale", "scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions", "seed",
    "shape", "split", "strides",
])  # fmt: skip
"""Attributes without a default whose absence has a meaning that a value can express."""
PARAMETERLESS = frozenset([b"Relu", b"Tanh", b"Sigmoid", b"Softsign", b"Softplus"])
BOUND = {
    "QuantizeLinear": ("axis", "block_size", "output_dtype", "precision"),
    "DequantizeLinear": ("axis", "block_size", "output_dtype"),
}


def _in_use(node: Node, name: str) -> bool:
    """Whether the absence of an unwritten attribute means a default."""
    schema = schema_of(node)
    formals = {} if schema is None else schema.attributes
    if formals[name].default_value.name and not (operator(node) == "QuantizeLinear" and name == "saturate"):
        return True
    match name:
        case "axis":
            return "broadcast" not in formals or value_in_force(node, "broadcast", "INT") not in (0, None)
        case "pads":
            automatic = "auto_pad" in formals and value_in_force(node, "auto_pad", "STRING") != b"NOTSET"
            return not automatic and "output_shape" not in node.attributes
        case "value":
            return operator(node) == "ConstantOfShape"
        case "activation_alpha" | "activation_beta":
            written = node.attributes.get("activations")
            return written is not None and any(text not in PARAMETERLESS for text in written.strings)
        case _:
            return name in MEANT


def _no_default_attribute(exempt: Callable[[Node, str], bool]) -> Judge:
    def judge(f: Facts) -> Iterator[Instance]:
        for n, node in enumerate(f.reading.nodes):
            yield from (text_place(n, a) for a in unwritten(node) if _in_use(node, a) and not exempt(node, a))

    return judge


def no_default_input(f: Facts) -> Iterator[Instance]:
    """A node that leaves out an optional input, one of several alternatives aside."""
    for n, node in enumerate(f.reading.nodes):
        schema, given = schema_of(node), actuals(node)
        for formal in () if schema is None else schema.inputs:
            if formal.option == OPTIONAL and formal.name not in given and not _alternative(node, formal.name):
                yield text_place(n, formal.name)


def _alternative(node: Node, name: str) -> bool:
    match operator(node):
        case "Resize":
            return name in ("roi", "scales", "sizes")
        case "Split":
            return "num_outputs" in node.attributes
        case _:
            return False


JUDGES: Mapping[str, Judge] = {
    "NoDefaultAttribute": _no_default_attribute(lambda node, name: False),
    "NoDefaultAttributeButBound": _no_default_attribute(lambda node, name: name in BOUND.get(operator(node), ())),
    "NoDefaultInput": no_default_input,
}
