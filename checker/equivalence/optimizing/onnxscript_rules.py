"""A proved rewrite as a rule of onnxscript's rewriter, so that others can run it (extra `onnxscript`).

onnxscript looks for the operators of the left side and for nothing else. Each place that it finds is made a model of
its own, and this project's own matching says whether the rewrite stands there and what takes its place: versions,
element types, attributes, stored values and conditions are decided where they are decided for `sonnx optimize`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import onnx
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.writing import model_proto
from sonnx.spec.elaborate.core import CoreRewrite

from ..matching.patterns import Pattern, pattern
from ..record import proofs
from .admitting import UnknownRule, admitted
from .optimizer import LOCAL, optimize

READER = ("sonnx.place", "Read")
"""The operator of the nodes that read the results of a place: one that no rewrite knows. An output of a graph keeps its
name, so it could not be what an input is; what a node reads can."""


class ExtraMissingError(ImportError):
    """The extra is not installed; the message names it."""


def onnxscript_rule(rule: str | CoreRewrite, *, strength: str = "exact") -> Any:
    """The rewrite as an `onnxscript.rewriter.RewriteRule` of the same name (onnxscript 0.7).

    Of a model it takes for granted what onnxscript's own rules do: that the types and shapes that values state are
    theirs. A place where one that the rule asks for is not stated is left as it is, and so is each place in a function.
    Conditions on values that no model stores (`where`, of rules on the real numbers) are assumed, as in `optimize`.
    Where a place gives a NaN it may give another one afterwards, which nothing but BitCast behind it shows.
    Nodes that nobody reads any more go when onnxscript has come to its end. Where a value takes the place of another
    one an Identity is left, which onnxscript's own passes remove; so a rewrite of an Identity alone does nothing.

    Raises `UnknownRule` for a rewrite that is not proved so strongly, and for one whose results come from two
    applications; `ExtraMissingError` without the extra.
    """
    if find_spec("onnxscript") is None:
        raise ExtraMissingError("rules for onnxscript need the extra onnxscript: pip install 'sonnx[onnxscript]'")
    (chosen,), _ = admitted([rule], strength, proofs(), prove=True)
    left = pattern(chosen)
    if len({number for number, _ in left.results}) > 1:
        raise UnknownRule(f"{chosen.name} has results of two applications, and onnxscript looks for one")
    found: list[tuple[dict[str, Any], onnx.ModelProto]] = []

    def stands(context: Any) -> bool:
        found.clear()
        place = _place(context)
        alone = {it.op_type for it in context.nodes} == {"Identity"}
        after = None if place is None or alone else _rewritten(place[1], chosen, strength)
        if place is not None and after is not None:
            found.append((place[0], after))
        return bool(found)

    def made(op: Any) -> list[Any]:
        return _nodes(op, *found.pop())

    rewriter = import_module("onnxscript.rewriter")
    return rewriter.RewriteRule(_looked_for(left), made, stands, name=chosen.name, remove_nodes=False)


def _looked_for(left: Pattern) -> Callable[[Any], list[Any]]:
    """The left side as onnxscript's patterns say it: operators, which reads which, and any value for a port."""

    def pattern_of(op: Any) -> list[Any]:
        anything = import_module("onnxscript.rewriter.pattern").ANY_VALUE
        outputs = [1 + max(output for at, output in _read(left) if at == k) for k in range(len(left.applications))]
        made: list[Sequence[Any]] = []
        for it, count in zip(left.applications, outputs, strict=True):
            domain, _, name = it.operator.name.rpartition("::")
            inputs = [
                anything if operand is None or operand.port else made[operand.application][operand.output]
                for operand in it.inputs
            ]
            values = getattr(op, name)(
                *inputs, _domain=domain, _outputs=count, _allow_other_inputs=True, _allow_other_attributes=True
            )
            made.append([values] if count == 1 else values)
        return [made[at][output] for at, output in left.results]

    return pattern_of


def _read(left: Pattern) -> list[tuple[int, int]]:
    """The outputs of applications that others read, or that are results."""
    operands = [it for applied in left.applications for it in applied.inputs if it is not None and not it.port]
    return [*left.results, *((it.application, it.output) for it in operands)]


def _place(context: Any) -> tuple[dict[str, Any], onnx.ModelProto] | None:
    """The nodes of a place as a model of its own, and the values by their names there; None where a type is missing."""
    ir = import_module("onnx_ir")
    if isinstance(context.graph_or_function, ir.Function):
        return None  # the sizes and types in a function are those of its calls
    names: dict[Any, str] = {}
    model = onnx.ModelProto(ir_version=max(context.model.ir_version or 0, 8))
    for domain, version in context.graph_or_function.opset_imports.items() or context.model.opset_imports.items():
        model.opset_import.add(domain=domain, version=version)
    graph = model.graph
    graph.name = "place"
    chosen = set(context.nodes)
    for node in (it for it in context.graph_or_function if it in chosen):
        copied = graph.node.add(op_type=node.op_type, domain=node.domain, name=f"n{len(graph.node)}")
        for value in node.inputs:
            if value is not None and value not in names:
                names[value] = f"v{len(names)}"
                if value.const_value is not None and not value.is_graph_input():  # a caller may give an input
                    graph.initializer.append(ir.to_proto(value.const_value))
                    graph.initializer[-1].name = names[value]
                elif value.type is None or value.shape is None:
                    return None
                else:
                    _declare(ir, graph.input.add(), value, names[value])
            copied.input.append("" if value is None else names[value])
        for value in node.outputs:
            names[value] = f"v{len(names)}"
            copied.output.append(names[value])
        copied.attribute.extend(ir.to_proto(it) for it in node.attributes.values())
    model.opset_import.add(domain=READER[0], version=1)
    for k, value in enumerate(context.output_values):
        if value.type is None:
            return None
        graph.node.add(op_type=READER[1], domain=READER[0], name=f"r{k}", input=[names[value]], output=[f"r{k}"])
        _declare(ir, graph.output.add(), value, f"r{k}")
    return {name: value for value, name in names.items()}, model


def _declare(ir: Any, info: onnx.ValueInfoProto, value: Any, name: str) -> None:
    info.CopyFrom(ir.to_proto(value))
    info.name = name


def _rewritten(place: onnx.ModelProto, rule: CoreRewrite, strength: str) -> onnx.ModelProto | None:
    """The model after the rewrite; None where it does not stand there, or where it comes to no end."""
    try:
        done = optimize(load_proto(place), rules=[rule], strength=strength, passes=LOCAL)
        return model_proto(done.model) if done.log and done.finished else None
    except ModelError:
        return None


def _nodes(op: Any, values: dict[str, Any], after: onnx.ModelProto) -> list[Any]:
    """The nodes of a model, made with onnxscript's builder, and what its outputs are: a result that is a value of the
    place is one of Identity, since onnxscript gives a result the name of what it replaces."""
    ir = import_module("onnx_ir")
    results = {it.output[0]: it.input[0] for it in after.graph.node if it.domain == READER[0]}
    known = {it.name: values[it.name] for it in after.graph.input}
    for it in after.graph.initializer:
        stored = values.get(it.name)
        known[it.name] = op.Constant(value=ir.from_proto(it)) if stored is None else stored
    for node in (it for it in after.graph.node if it.domain != READER[0]):
        attributes = {it.name: ir.from_proto(it) for it in node.attribute}
        inputs = [known[name] if name else None for name in node.input]
        made = op.op(node.op_type, *inputs, _domain=node.domain, _outputs=len(node.output), **attributes)
        known |= zip(node.output, [made] if len(node.output) == 1 else made, strict=True)
    own = {*values.values()}
    found = [known[results[it.name]] for it in after.graph.output]
    return [op.Identity(it) if it in own else it for it in found]
