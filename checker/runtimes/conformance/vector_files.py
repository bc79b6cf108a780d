"""A case as files, laid out as ONNX's backend tests: model.onnx and test_data_set_0 with inputs and outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import OptionalProto, SequenceProto
from sonnx.semantics.model.values import Optional, Sequence, Value

from ..differential.drafts import tensor_proto
from ..differential.outcomes import Case


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
    found = OptionalProto(name=name)
    item = value.item if isinstance(value, Optional) else None
    if isinstance(item, np.ndarray):
        found.elem_type = OptionalProto.TENSOR
        found.tensor_value.CopyFrom(tensor_proto(item, name))
    elif isinstance(item, Sequence):
        found.elem_type = OptionalProto.SEQUENCE
        for it in item.items:
            if isinstance(it, np.ndarray):
                found.sequence_value.tensor_values.append(tensor_proto(it, name))
        found.sequence_value.elem_type = SequenceProto.TENSOR
    return found
