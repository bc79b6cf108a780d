"""A node as its kernel is told of it, and whether it is an application that the operator's schema admits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...machine.inputs import type_text
from ...machine.memory import type_of
from ...model import schemas
from ...model.graph import Node, NodeId, TensorId
from ...model.schemas import Schema
from ...model.type_protos import spelled
from ...model.values import Value
from ...operators.application import AttributeData, Program, data_of
from .kernel import Allocate, Compute, Inputs, Kernel, KernelError, Outputs, Site
from .provider import KernelRegistry


def site_of(program: Program, n: NodeId, constants: Mapping[TensorId, Value]) -> Site:
    """The site of a node of a model that is well formed."""
    node = program.model.nodes[n]
    form = schemas.schema_at(node)
    stated = program.attributes(n)
    if form is not None:
        stated = {**_defaults(program, form), **stated}
    return Site(
        schemas.operator_name(node.domain, node.op_type),
        node.version or 0,
        stated,
        tuple(None if t is None else constants.get(t) for t in node.inputs),
        tuple(t is not None for t in node.inputs),
        tuple(t is not None for t in node.outputs),
        node.path,
    )


def prepared(kernel: Kernel, site: Site) -> Compute:
    """Computes the node; where the kernel refuses it, something that says so when it runs: the node may lie in a
    branch that never does."""
    try:
        return kernel.prepare(site)
    except KernelError as error:
        return refusing(str(error))


def refusing(message: str) -> Compute:
    """A computation that the operator does not define."""

    def compute(_inputs: Inputs, _allocate: Allocate) -> Outputs:
        raise KernelError(message)

    return compute


def by_element(registry: KernelRegistry, node: Node, site: Site, uncovered: Callable[[str], Exception]) -> Compute:
    """Computes a node whose kernels cover some element types only: prepared for each type that turns up."""
    ready: dict[object, Compute] = {}

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        first = inputs[0] if inputs else None
        key = first.dtype if isinstance(first, np.ndarray) else None
        if key not in ready:
            element = type_of(first).element if first is not None else ""
            kernel = registry.look_up_kernel(node, element)
            if kernel is None:
                raise uncovered(element)
            ready[key] = prepared(kernel, site)
        return ready[key](inputs, allocate)

    return compute


# ---- The schema -------------------------------------------------------------------------------


def _defaults(program: Program, form: Schema) -> Mapping[str, AttributeData]:
    pairs = (
        (name, data_of(formal.default, program.model))
        for name, formal in form.attributes.items()
        if formal.default is not None
    )
    return {name: data for name, data in pairs if data is not None}


def check_types(form: Schema | None, inputs: Inputs) -> None:
    """Raises KernelError when the schema does not admit inputs of these types."""
    if form is None or not form.inputs:
        return
    bound: dict[str, tuple[str, str]] = {}
    last = form.inputs[-1]
    for position, value in enumerate(inputs):
        formal = schemas.formal_at(form.inputs, position) or last
        if value is None:
            continue
        text = spelled(type_of(value))
        if text and text not in formal.types:
            raise KernelError(
                f"the input {formal.name} is {_shown(value)}, {form.name}-{form.since_version} does not admit that"
            )
        if formal.option == "variadic" and not formal.homogeneous:
            continue
        before, by = bound.setdefault(formal.type, (text or "", formal.name))
        if text and before and text != before:
            raise KernelError(f"the inputs {by} and {formal.name} are to have one type, they are {before} and {text}")


def admitting(form: Schema | None, compute: Compute) -> Compute:
    """The computation, which raises KernelError when the schema does not admit the type of an output.

    It is as it was where the types of inputs that are always there, or the schema, settle those of the outputs.
    """
    settled = {formal.type for formal in (form.inputs if form is not None else ()) if formal.option != "optional"}
    if form is None or all(formal.type in settled or len(formal.types) == 1 for formal in form.outputs):
        return compute
    formals, name = form.outputs, f"{form.name}-{form.since_version}"

    def checked(inputs: Inputs, allocate: Allocate) -> Outputs:
        outputs = compute(inputs, allocate)
        for formal, value in zip(formals, outputs, strict=False):
            if value is not None and (text := spelled(type_of(value))) and text not in formal.types:
                raise KernelError(f"the output {formal.name} is {_shown(value)}, {name} does not admit that")
        return outputs

    return checked


def _shown(value: Value) -> str:
    return type_text(type_of(value))
