"""Claims: what ONNX's own shape inference says about a model, obtained in a separate process.

A claim is no fact. The rules compare it with what the model declares, and what inference leaves open stays unknown.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto

from ...model.graph import Model, NodeId, TensorId, ValueType
from ...model.type_protos import from_proto
from .errors import located
from .model import COPY, build, stored_type

MEMORY = 1 << 30
MEMORY_PER_BYTE = 24
"""The address space that inference gets: a floor, and so many bytes for each byte of the model without its weights."""
PLACEHOLDER = re.compile(r"unk__\d+")
"""A dimension name that inference makes up."""


@dataclass(frozen=True, slots=True)
class Claims:
    """types: the type inferred or, where inference leaves it open, declared. errors: node (None: no place) and
    message, in which `t7` and `n12` stand for tensors and nodes. left_out: nodes that inference did not see, with the
    reason. failure: why there are no claims at all.
    """

    types: Mapping[TensorId, ValueType] = field(default_factory=dict)
    errors: tuple[tuple[NodeId | None, str], ...] = ()
    failure: str | None = None
    left_out: Mapping[NodeId, str] = field(default_factory=dict)


def infer(model: Model, timeout: float) -> Claims:
    """The claims of ONNX shape inference, strict and with data propagation, about all tensors of all graphs.

    Where the result leaves a type open that the model declares, inference runs again with these declarations.
    A crash, the end of the timeout (seconds) or a lack of memory is a failure, never an exception.
    """
    deadline = time.monotonic() + timeout
    claims = _run(model, {}, timeout, deadline)
    hints = _hints(model, claims) if claims.failure is None else {}
    if not hints:
        return claims
    again = _run(model, hints, timeout, deadline)
    return again if again.failure is None else claims


def _run(model: Model, hints: Mapping[TensorId, ValueType], timeout: float, deadline: float) -> Claims:
    try:
        built = build(model, hints)
        request = built.proto.SerializeToString()
    except Exception as error:  # protobuf raises several types, for numbers out of range and messages above 2 GiB
        return Claims(failure=f"shape inference cannot be asked: {_line(str(error))}")
    limit = MEMORY + MEMORY_PER_BYTE * len(request)
    command = [sys.executable, "-P", "-m", f"{__package__}.worker"]
    try:
        left = max(deadline - time.monotonic(), 0)
        done = subprocess.run(command, input=b"%d\n" % limit + request, capture_output=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return Claims(failure=f"shape inference took more than {timeout:g} s")
    except OSError as error:
        return Claims(failure=f"shape inference cannot be started: {_line(str(error))}")
    if done.returncode:
        return Claims(failure=_death(done.returncode, done.stderr))
    return _read(done.stdout, model, built.left_out)


def _death(code: int, stderr: bytes) -> str:
    if code < 0:
        return f"shape inference crashed (signal {-code})"
    last = stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
    if "MemoryError" in last[0] or "bad_alloc" in last[0]:
        return "shape inference ran out of memory"
    return f"shape inference failed: {_line(last[0])}"


def _line(text: str) -> str:
    """One printable line of moderate length."""
    line = "".join(c if c.isprintable() else " " for c in text.splitlines()[0] if text) if text else "no message"
    return line if len(line) <= 200 else line[:197] + "..."


def _read(answer: bytes, model: Model, left_out: Mapping[NodeId, str]) -> Claims:
    try:
        head, _, rest = answer.partition(b"\n")
        size = int(head)
        proto = ModelProto.FromString(rest[size:])
    except (ValueError, DecodeError):
        return Claims(failure="shape inference gave no readable answer")
    text = rest[:size].decode(errors="replace")
    types: dict[TensorId, ValueType] = {}
    _collect(proto.graph, types)
    for graph in model.graphs:
        for tensor, constant in (*graph.initializers, *graph.sparse_initializers):
            types.setdefault(tensor, stored_type(constant))
    return Claims(types, tuple(dict.fromkeys(located(text))) if text else (), None, left_out)


def _collect(graph: GraphProto, types: dict[TensorId, ValueType]) -> None:
    for entries in (graph.input, graph.output, graph.value_info):
        for entry in entries:
            if entry.HasField("type") and not entry.name.startswith(COPY):
                types[int(entry.name[1:])] = _open(from_proto(entry.type))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _collect(attribute.g, types)
            for body in attribute.graphs:
                _collect(body, types)


def _open(type_: ValueType) -> ValueType:
    """The type without the dimension names that inference made up."""
    shape = type_.shape
    if shape is not None and any(isinstance(size, str) and PLACEHOLDER.fullmatch(size) for size in shape):
        shape = tuple(None if isinstance(size, str) and PLACEHOLDER.fullmatch(size) else size for size in shape)
        return replace(type_, shape=shape)
    return replace(type_, inner=_open(type_.inner)) if type_.inner is not None else type_


# ---- Declarations that complete what inference leaves open ------------------------------------


def _hints(model: Model, claims: Claims) -> Mapping[TensorId, ValueType]:
    """Declarations that say more than the claims about tensors that a node reads or a body gives out."""
    useful = {tensor for node in model.nodes for tensor in node.inputs}
    useful.update(tensor for graph in model.graphs[1:] for tensor in graph.outputs)
    hints = {}
    for tensor, value in enumerate(model.tensors):
        if tensor not in useful or value.declared is None or value.declared.kind == "unset":
            continue
        claim = claims.types.get(tensor)
        merged = completed(claim, value.declared)
        if claim is None or _known(merged) > _known(claim):
            hints[tensor] = merged
    return hints


def completed(claim: ValueType | None, declared: ValueType) -> ValueType:
    """The claim, its open parts filled from a declaration that does not contradict it."""
    if claim is None:
        return declared
    if (claim.kind, claim.element) != (declared.kind, declared.element):
        return claim
    inner = claim.inner
    if inner is not None and declared.inner is not None:
        inner = completed(inner, declared.inner)
    shape = claim.shape
    if shape is None:
        shape = declared.shape
    elif declared.shape is not None and len(shape) == len(declared.shape):
        shape = tuple(
            theirs if isinstance(theirs, int) and not isinstance(mine, int) else mine
            for mine, theirs in zip(shape, declared.shape, strict=True)
        )
    return replace(claim, shape=shape, inner=inner)


def _known(type_: ValueType) -> int:
    """A measure of how much the type says: the rank and every dimension with a number count."""
    own = 0 if type_.shape is None else 1 + sum(isinstance(size, int) for size in type_.shape)
    return own + (_known(type_.inner) if type_.inner is not None else 0)
