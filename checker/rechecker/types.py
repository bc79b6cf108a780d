"""Types of tensors as far as the model itself states them, and the constraints that they decide.

The replay infers nothing: where a declaration or a stored value leaves open what is asked, it is Unsupported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
from sonnx.semantics.errors import Unsupported

from .facts import Facts
from .places import Instance, Judge, node_place, tensor_place
from .schema import actuals, operator, schema_of

TensorType = onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor
KNOWN = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}
PROFILE = frozenset(
    onnx.TensorProto.DataType.Value(name)
    for name in (
        "FLOAT16", "FLOAT", "DOUBLE", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "BOOL",
        "STRING",
    )
)  # fmt: skip
BROADCASTING = frozenset(["Add", "Sub", "Mul", "Div", "Pow", "Less", "Where"])


def tensor_type(declared: onnx.TypeProto | None) -> TensorType | None:
    """The tensor type in a declaration, None when it declares another kind of value or none."""
    kind = None if declared is None else declared.WhichOneof("value")
    if declared is None or kind not in ("tensor_type", "sparse_tensor_type"):
        return None
    return declared.tensor_type if kind == "tensor_type" else declared.sparse_tensor_type


def kind(f: Facts, t: int) -> str:
    """The kind of value, as the field of TypeProto. Raises Unsupported when the model does not state it."""
    tensor = f.reading.tensors[t]
    stated = None if tensor.declared is None else tensor.declared.WhichOneof("value")
    if t in f.sparse:
        return "sparse_tensor_type"
    if stated is None and not tensor.stored:
        raise Unsupported("the model does not declare every type, and the replay infers none")
    return stated or "tensor_type"


def element_type(f: Facts, t: int) -> int:
    """The element type by declaration or stored value. Raises Unsupported when neither states it."""
    tensor = f.reading.tensors[t]
    stated = tensor_type(tensor.declared)
    if stated is not None and stated.elem_type in KNOWN:
        return stated.elem_type
    alike = tensor.stored if tensor.declared is None or stated is not None else []
    if len(alike) == 1 and alike[0].data_type in KNOWN:
        return alike[0].data_type
    raise Unsupported("the model does not declare every element type, and the replay infers none")


def shape(f: Facts, t: int) -> tuple[int, ...]:
    """The shape, all of it numbers, by declaration or else by the stored value. Raises Unsupported."""
    tensor = f.reading.tensors[t]
    stated = tensor_type(tensor.declared)
    if stated is not None and stated.HasField("shape"):
        if all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in stated.shape.dim):
            return tuple(dim.dim_value for dim in stated.shape.dim)
    elif len(tensor.stored) == 1 and t not in f.inputs and kind(f, t) == "tensor_type":
        return tuple(tensor.stored[0].dims)
    raise Unsupported("the model does not declare every shape in numbers, and the replay infers none")


def no_sparse_tensor(f: Facts) -> Iterator[Instance]:
    """A sparse tensor."""
    return (tensor_place(t) for t in range(len(f.ports)) if kind(f, t) == "sparse_tensor_type")


def element_types_known(f: Facts) -> Iterator[Instance]:
    """None: a type that is not declared is not judged here."""
    for t in range(len(f.ports)):
        if kind(f, t) == "tensor_type":
            element_type(f, t)
    return iter(())


def shapes_known(f: Facts) -> Iterator[Instance]:
    """None: a shape that is not declared is not judged here."""
    for t in range(len(f.ports)):
        if kind(f, t) == "tensor_type":
            shape(f, t)
    return iter(())


def profile_types(f: Facts) -> Iterator[Instance]:
    """A value that is no tensor of a type of the profile."""
    for t in range(len(f.ports)):
        if kind(f, t) != "tensor_type" or element_type(f, t) not in PROFILE:
            yield tensor_place(t)


def no_conversion(f: Facts) -> Iterator[Instance]:
    """A node that binds a type variable of its operator to another type than its first tensor has."""
    for n, node in enumerate(f.reading.nodes):
        schema = schema_of(node)
        variables: dict[str, dict[int, None]] = {}
        names = set() if schema is None else {it.type_param_str for it in schema.type_constraints}
        for formals, given in (
            (() if schema is None else schema.inputs, actuals(node)),
            (() if schema is None else schema.outputs, actuals(node, output=True)),
        ):
            for formal in formals:
                if formal.type_str in names and formal.is_homogeneous and formal.name in given:
                    variables.setdefault(formal.type_str, {}).update(dict.fromkeys(given[formal.name]))
        for variable, tensors in variables.items():
            first, *others = tensors
            for t in tensors if others else ():
                if kind(f, t) == "tensor_type" and element_type(f, t) != element_type(f, first):
                    yield Instance((("Node", n), ("Text", variable), ("Tensor", t)))


def pow_types(f: Facts) -> Iterator[Instance]:
    """A Pow whose base and exponent differ in type."""
    for n, node in enumerate(f.reading.nodes):
        given = actuals(node)
        if operator(node) == "Pow" and {"X", "Y"} <= set(given):
            base, exponent = (element_type(f, given[name][0]) for name in ("X", "Y"))
            if base != exponent:
                yield node_place(n)


def equal_shapes(f: Facts) -> Iterator[Instance]:
    """A node of the broadcasting ones whose inputs differ in shape."""
    for n, node in enumerate(f.reading.nodes):
        if operator(node) in BROADCASTING and len(f.reads[n]) > 1 and len({shape(f, t) for t in f.reads[n]}) > 1:
            yield node_place(n)


def broadcastable(f: Facts) -> Iterator[Instance]:
    """A node of the broadcasting ones whose inputs cannot be broadcast."""
    for n, node in enumerate(f.reading.nodes):
        if operator(node) in BROADCASTING and len(f.reads[n]) > 1:
            shapes = [shape(f, t)[::-1] for t in f.reads[n]]
            columns = [{s[i] for s in shapes if i < len(s)} - {1} for i in range(max(map(len, shapes)))]
            if any(len(column) > 1 for column in columns):
                yield node_place(n)


JUDGES: Mapping[str, Judge] = {
    "NoSparseTensor": no_sparse_tensor,
    "ElementTypesKnown": element_types_known,
    "ShapesKnown": shapes_known,
    "ProfileTypes": profile_types,
    "NoConversion": no_conversion,
    "PowTypes": pow_types,
    "EqualShapes": equal_shapes,
    "Broadcastable": broadcastable,
}
