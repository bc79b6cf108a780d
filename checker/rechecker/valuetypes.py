"""Types of values as a model states them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx

from . import paths
from .stored import ELEMENTS, Stored

CODES = {name: code for code, name in ELEMENTS.items()}
Size = int | str | None


@dataclass(frozen=True, slots=True)
class Type:
    """kind: tensor, sparse_tensor, sequence, optional, map, opaque or unset. element: the element type, the key type of
    a map, the name of an opaque type, "" when unset. shape: sizes as numbers or names, None where nothing is said.
    inner: what a sequence or optional holds, the values of a map.
    """

    kind: str
    element: str = ""
    shape: tuple[Size, ...] | None = None
    inner: Type | None = None


UNSET = Type("unset")
TENSORS = ("tensor", "sparse_tensor")


def read(proto: onnx.TypeProto) -> Type:
    """The type that a TypeProto states."""
    match proto.WhichOneof("value"):
        case "tensor_type" | "sparse_tensor_type" as kind:
            stated = getattr(proto, kind)
            shape = tuple(_size(dim) for dim in stated.shape.dim) if stated.HasField("shape") else None
            return Type(kind.removesuffix("_type"), ELEMENTS.get(stated.elem_type, ""), shape)
        case "sequence_type":
            return Type("sequence", inner=read(proto.sequence_type.elem_type))
        case "optional_type":
            return Type("optional", inner=read(proto.optional_type.elem_type))
        case "map_type":
            return Type("map", ELEMENTS.get(proto.map_type.key_type, ""), inner=read(proto.map_type.value_type))
        case "opaque_type":
            return Type("opaque", proto.opaque_type.name)
    return UNSET


def _size(dim: onnx.TensorShapeProto.Dimension) -> Size:
    stated = dim.WhichOneof("value")
    return None if stated is None else getattr(dim, stated)


def write(type_: Type, into: onnx.TypeProto) -> None:
    """The type in a TypeProto."""
    match type_.kind:
        case "tensor" | "sparse_tensor":
            target = into.tensor_type if type_.kind == "tensor" else into.sparse_tensor_type
            target.elem_type = CODES.get(type_.element, 0)
            if type_.shape is not None:
                target.shape.SetInParent()
                for size in type_.shape:
                    dim = target.shape.dim.add()
                    if isinstance(size, int):
                        dim.dim_value = size
                    elif size is not None:
                        dim.dim_param = size
        case "sequence" | "optional":
            held = into.sequence_type if type_.kind == "sequence" else into.optional_type
            held.SetInParent()
            if type_.inner is not None:
                write(type_.inner, held.elem_type)
        case "map":
            into.map_type.key_type = CODES.get(type_.element, 0)
            if type_.inner is not None:
                write(type_.inner, into.map_type.value_type)
        case "opaque":
            into.opaque_type.name = type_.element


def of_stored(tensor: Stored) -> Type:
    """The type of a stored tensor."""
    return Type("tensor" if tensor.parts is None else "sparse_tensor", tensor.element, tensor.dims)


def spelled(type_: Type | None) -> str | None:
    """The type as ONNX's schemas spell it; a sparse tensor as a tensor; None where a part is open."""
    if type_ is None:
        return None
    inner = spelled(type_.inner)
    match type_.kind:
        case "tensor" | "sparse_tensor":
            return f"tensor({type_.element})" if type_.element else None
        case "sequence" | "optional":
            return f"{'seq' if type_.kind == 'sequence' else 'optional'}({inner})" if inner else None
        case "map":
            return f"map({type_.element},{inner})" if type_.element and inner else None
        case "opaque":
            return f"opaque({paths.quoted(type_.element)})" if type_.element else None
    return None


def completed(claim: Type | None, declared: Type) -> Type:
    """The claim, its open parts filled in from a declaration of the same kind and element type."""
    if claim is None:
        return declared
    if (claim.kind, claim.element) != (declared.kind, declared.element):
        return claim
    inner = claim.inner
    if inner is not None and declared.inner is not None:
        inner = completed(inner, declared.inner)
    return replace(claim, shape=_merged(claim.shape, declared.shape), inner=inner)


def _merged(mine: Sequence[Size] | None, theirs: Sequence[Size] | None) -> tuple[Size, ...] | None:
    if mine is None or theirs is None or len(mine) != len(theirs):
        row = theirs if mine is None else mine
        return None if row is None else tuple(row)
    pairs = zip(mine, theirs, strict=True)
    return tuple(two if isinstance(two, int) and not isinstance(one, int) else one for one, two in pairs)


def told(type_: Type) -> int:
    """The amount that a type tells: its rank and every dimension with a number count."""
    own = 0 if type_.shape is None else 1 + sum(isinstance(size, int) for size in type_.shape)
    return own + (0 if type_.inner is None else told(type_.inner))
