"""Our own vectors: for every operator and version applications at the edges of their requirements, for each requirement
one that breaks it, and for every element type of the first input some on special values.

What is expected of a vector is what the machine gives; a runtime may differ within what the specification allows. Of
one that breaks a requirement nothing is expected: it is outside the domain; a report tells what a runtime does there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import OptionalProto, SequenceProto, helper
from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.machine.memory import type_of
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.model.schemas import newest_opset, schema_of, since_version
from sonnx.semantics.model.type_protos import to_proto
from sonnx.semantics.model.values import Optional, Sequence, Value
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.operators.symbolic.statements import definition
from sonnx.spec.library import specification

from ..differential.applications import Drawn, drawn
from ..differential.outcomes import Case
from ..differential.random_models import OLDEST, Added, imports, node_proto, tensor_proto, versions_of
from ..differential.sizes import Finder, demands
from ..differential.special_values import with_special_values

EACH: Final = 4
"""Vectors of one operator and version at the edges of its requirements."""
SHARES: Final = (0.1, 0.5)
"""For each floating-point type one vector with this share of special values, for each other numeric type the first."""
BROKEN: Final = "outside"
"""The name of a vector that breaks a requirement, before the requirement's number."""
_TRIES: Final = 6


def subjects() -> tuple[tuple[str, int], ...]:
    """Every operator and version that is in force at some operator set from 7 on, or is of another domain, and defined
    by equations, sorted.
    """
    return _subjects(specification().added)


@cache
def _subjects(_added: Added) -> tuple[tuple[str, int], ...]:
    every = range(OLDEST, newest_opset() + 1)
    return tuple(
        sorted({(name, it) for name in specification().operators for o in every for it in versions_of(name, o)})
    )


def names() -> Iterator[str]:
    """The names of all vectors: `Conv-11/2`, `Conv-11/outside.1`, `Conv-11/float16.0`."""
    for op_type, version in subjects():
        yield from (f"{op_type}-{version}/{number}" for number in range(EACH))
        broken = demands(definition(op_type, version))
        yield from (f"{op_type}-{version}/{BROKEN}.{number}" for number in range(broken))
        for element in _elements(op_type, version):
            count = len(SHARES) if "float" in element or element == "double" else 1
            yield from (f"{op_type}-{version}/{element}.{number}" for number in range(count))


def _elements(op_type: str, version: int) -> tuple[str, ...]:
    """The numeric element types of the first input."""
    form = schema_of(op_type, version)
    texts = form.inputs[0].types if form is not None and form.inputs else ()
    inner = sorted({text[text.index("tensor(") + 7 :].rstrip(")") for text in texts if "tensor(" in text} & set(DTYPES))
    return tuple(it for it in inner if it not in ("string", "bool"))


def vector(name: str) -> Case | None:
    """The vector of a name, with the machine's outputs; None where none was found. The same name, the same vector."""
    subject, _, kind = name.partition("/")
    op_type, _, version = subject.rpartition("-")
    element, _, number = kind.rpartition(".")
    choose = random.Random(name)
    if element == BROKEN:
        broken = _broken(op_type, int(version), int(number), choose)
        return None if broken is None else _case(name, broken, None)
    for _ in range(_TRIES):
        try:
            sample = drawn(op_type, int(version), _finder(), choose, element=element)
            if sample is not None and element:
                sample = _special(sample, SHARES[int(number)], choose)
            done = None if sample is None else ieee.apply(sample.application)
        except (Unsupported, InternalError, MemoryError, ValueError, TypeError, OverflowError):
            continue
        if sample is not None and isinstance(done, Outputs):
            return _case(name, sample.application, done)
    return None


def _special(sample: Drawn, share: float, choose: random.Random) -> Drawn | None:
    """The application with a share of special values; None where an input is empty, so that it would show little."""
    application = sample.application
    given = {str(at): value for at, value in enumerate(application.inputs) if value is not None}
    sizes = [value.size for value in given.values() if isinstance(value, np.ndarray)]
    if not sizes or not all(sizes):
        return None
    special = with_special_values(given, choose.getrandbits(31), share)
    inputs = tuple(special.get(str(at)) for at in range(len(application.inputs)))
    return replace(sample, application=replace(application, inputs=inputs))


def _broken(op_type: str, version: int, demand: int, choose: random.Random) -> Application | None:
    """An application that breaks one requirement, and none before it; None where chance leads to none."""
    for _ in range(_TRIES):
        try:
            start = drawn(op_type, version, _finder(), choose, outside=True, demand=demand)
            for application in () if start is None else (start.application, *_crossed(start, choose)):
                done = ieee.apply(application)
                if start is not None and isinstance(done, Stuck) and done.premise == start.violated:
                    return application
        except (Unsupported, InternalError, MemoryError, ValueError, TypeError, OverflowError):
            continue
    return None


def _crossed(start: Drawn, choose: random.Random) -> Iterator[Application]:
    """The application with special values in one input after the other, for requirements about elements of a type that
    the solver knows nothing of."""
    inputs = start.application.inputs
    for at in reversed(range(len(inputs))):
        value = inputs[at]
        if isinstance(value, np.ndarray) and value.size and at not in start.fed:
            special = with_special_values({"": value}, choose.getrandbits(31), 0.5)
            yield replace(start.application, inputs=(*inputs[:at], special[""], *inputs[at + 1 :]))
    every = (_special(start, share, choose) for share in (0.2, 0.5, 1.0) * 4)
    yield from (it.application for it in every if it is not None)


@cache
def _finder() -> Finder:
    """One in a process: what it has found does not depend on what it was asked before."""
    return Finder()


def _case(name: str, application: Application, done: Outputs | None) -> Case:
    """The model of one node. done: what it gives, None outside the domain."""
    given = {f"x{at}": value for at, value in enumerate(application.inputs) if value is not None}
    values = () if done is None else done.values
    results = {f"y{at}": value for at, value in enumerate(values) if value is not None}
    inputs = ["" if value is None else f"x{at}" for at, value in enumerate(application.inputs)]
    node = node_proto(application, inputs, [f"y{at}" for at in range(len(application.outputs))], "node")
    opset = _opset(application.op_type, application.version)
    opsets = imports(opset, [(application.op_type, application.version)])
    shown = _infos(results) if done is not None else [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "vector", _infos(given), shown)
    ir_version = max(8, int(helper.find_min_ir_version_for(opsets[:1])))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)
    model.ClearField("producer_name")
    operator = f"{application.op_type}-{application.version}"
    tags = {"operator": operator, "operators": operator, "opset": str(opset)}
    return Case(name, model.SerializeToString(deterministic=True), given, tags, None if done is None else results)


def _infos(values: dict[str, Value]) -> list[onnx.ValueInfoProto]:
    made = []
    for name, value in values.items():
        info = onnx.ValueInfoProto(name=name)
        to_proto(type_of(value), info.type)
        made.append(info)
    return made


def _opset(op_type: str, version: int) -> int:
    """The oldest operator set from 7 on in which the version is in force; the newest one for other domains."""
    if "::" in op_type:
        return newest_opset()
    return next(o for o in range(OLDEST, newest_opset() + 1) if since_version("", op_type, o) == version)


# ---- A case as files ----------------------------------------------------------------------------


def write(case: Case, folder: Path) -> Path:
    """Writes a case into a folder of its name; the same case gives the same bytes."""
    target = folder / case.name.replace("/", "-")
    data = target / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    if isinstance(case.source, bytes):
        (target / "model.onnx").write_bytes(case.source)
    for what, values in (("input", case.feeds), ("output", case.expected or {})):
        for number, (name, value) in enumerate(values.items()):
            (data / f"{what}_{number}.pb").write_bytes(_bytes(value, name))
    return target


def _bytes(value: Value, name: str) -> bytes:
    if isinstance(value, np.ndarray):
        return tensor_proto(value, name).SerializeToString(deterministic=True)
    return _nested(value, name).SerializeToString(deterministic=True)


def _nested(value: Value, name: str) -> SequenceProto | OptionalProto:
    """A sequence or an optional of tensors, or of sequences."""
    if isinstance(value, Sequence):
        made = SequenceProto(name=name, elem_type=SequenceProto.TENSOR)
        made.tensor_values.extend(tensor_proto(it, name) for it in value.items if isinstance(it, np.ndarray))
        return made
    proto = OptionalProto(name=name)
    item = value.item if isinstance(value, Optional) else None
    if isinstance(item, np.ndarray):
        proto.elem_type = OptionalProto.TENSOR
        proto.tensor_value.CopyFrom(tensor_proto(item, name))
    elif isinstance(item, Sequence):
        proto.elem_type = OptionalProto.SEQUENCE
        for it in item.items:
            if isinstance(it, np.ndarray):
                proto.sequence_value.tensor_values.append(tensor_proto(it, name))
        proto.sequence_value.elem_type = SequenceProto.TENSOR
    return proto
