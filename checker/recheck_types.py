"""Types of tensors, as far as the model itself states them: the replay infers nothing."""

from __future__ import annotations

import onnx
from sonnx.semantics.errors import Unsupported

from .recheck_facts import Facts

TensorType = onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor
KNOWN = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}


def tensor_type(declared: onnx.TypeProto | None) -> TensorType | None:
    """The tensor type in a declaration, None when it declares another kind of value or none."""
    kind = None if declared is None else declared.WhichOneof("value")
    if declared is None or kind not in ("tensor_type", "sparse_tensor_type"):
        return None
    return declared.tensor_type if kind == "tensor_type" else declared.sparse_tensor_type


def element_type(f: Facts, t: int) -> int:
    """The element type of a tensor by its declaration or stored value. Raises Unsupported when neither states it."""
    tensor = f.reading.tensors[t]
    stated = tensor_type(tensor.declared)
    if stated is not None and stated.elem_type in KNOWN:
        return stated.elem_type
    if tensor.declared is None or stated is not None:
        for stored in tensor.stored:
            if stored.data_type in KNOWN:
                return stored.data_type
    raise Unsupported("the model does not declare the element type, and the replay infers none")
