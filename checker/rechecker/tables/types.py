"""Facts about tensors: the section "Types, shapes, constants".

A type is what the model declares or stores; what that leaves open is taken from shape inference, then, for the kind of
value only, from the schema of the operator that writes the tensor.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from ..attributes import Kinds, kind, payload, valued
from ..facts import Facts
from ..inference import Claims, declared, infer
from ..reader import Node
from ..schema import operator, schema_of
from ..stored import Stored
from ..values import UNKNOWN, Element, Find, Key, Value
from ..valuetypes import TENSORS, Size, Type, of_stored, read
from .graph import Makers, at

MOST_ELEMENTS = 4096
INTEGERS = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "bool": "?",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KnownType:
    """The known part of a type: kind and element type None where open, shape None where its rank is."""

    kind: str | None
    element: str | None = None
    shape: tuple[int | None, ...] | None = None


@dataclass(frozen=True)
class Types:
    """The types of the tensors of a model."""

    facts: Facts

    @cached_property
    def claims(self) -> Claims:
        """The types by shape inference."""
        return infer(self.facts)

    @cached_property
    def stated(self) -> tuple[KnownType, ...]:
        """The types by the model itself."""
        return self._known({})

    @cached_property
    def known(self) -> tuple[KnownType, ...]:
        """The types by the model and shape inference."""
        return self._known(dict(self.claims.types))

    def _known(self, claimed: dict[int, Type]) -> tuple[KnownType, ...]:
        f = self.facts
        stored = _stored(f)
        kinds = {} if len(claimed) >= len(f.reading.tensors) else dict(_by_schema(f))
        return tuple(
            _combined(
                [
                    source
                    for source in (declared(f, t), of_stored(stored[t]) if t in stored else None, claimed.get(t))
                    if source is not None
                ],
                "sparse_tensor" if t in stored and stored[t].parts is not None else None,
                kinds.get(t),
            )
            for t in range(len(f.reading.tensors))
        )


def makers(f: Facts, types: Types) -> Makers:
    """The tables of that section."""
    count = len(f.reading.tensors)

    def first(row: Callable[[KnownType], Value | None]) -> Callable[[], Find]:
        """The types by the model itself, else those by inference too."""

        def value(t: int) -> Value | None:
            said = row(types.stated[t])
            return row(types.known[t]) if said is None or said is UNKNOWN else said

        return at(value, count)

    def dim(key: Key) -> Value | None:
        match key:
            case (int() as t, int() as i):
                return _dim(types.known[t], i)
        return None

    main = f.reading.graphs[0]
    boundary = tuple(dict.fromkeys((*main.inputs, *main.outputs)))
    own = cache(lambda: tuple(_own_entries(f)))
    values = cache(lambda: _constants(f))
    zeros = cache(lambda: _zeros(f))
    fixed = cache(lambda: _fixed(f))
    return {
        "kind": first(lambda it: it.kind or UNKNOWN),
        "element_type": first(lambda it: (it.element or UNKNOWN) if it.kind is None or it.kind in TENSORS else None),
        "rank": at(lambda t: _rank(types.known[t]), count),
        "dim": lambda: dim,
        "axes": at(lambda t: tuple(range(len(types.known[t].shape or ()))), count),
        "constant": at(lambda t: values().get(t, UNKNOWN), count),
        "all_zero": at(lambda t: zeros().get(t, UNKNOWN), count),
        "indices": at(lambda t: tuple(range(len(values().get(t, ())))), count),
        "fixed": at(lambda t: t in fixed(), count),
        "boundary": lambda: lambda key: boundary,
        "declared_element": at(lambda t: it.element if (it := own()[t]) and it.kind in TENSORS else "", count),
        "declared_shape": at(lambda t: _spelled(own()[t]), count),
        "declared_static": at(lambda t: _static(own()[t]), count),
    }


def _combined(sources: Sequence[Type], forced: str | None, by_schema: str | None) -> KnownType:
    kind_ = forced or next((s.kind for s in sources if s.kind != "unset"), by_schema)
    if kind_ is None:
        return KnownType(None)
    if kind_ not in TENSORS:
        return KnownType(kind_)
    alike = [s for s in sources if s.kind in TENSORS]
    element = next((s.element for s in alike if s.element), None)
    shapes = [s.shape for s in alike if s.shape is not None]
    return KnownType(kind_, element, _shape(shapes) if shapes else None)


def _shape(shapes: Sequence[Sequence[Size]]) -> tuple[int | None, ...]:
    """The first shape, its open dimensions from the next ones of that rank that have a number."""
    alike = [shape for shape in shapes if len(shape) == len(shapes[0])]
    return tuple(next((size for size in column if isinstance(size, int)), None) for column in zip(*alike, strict=True))


def _rank(known: KnownType) -> Value | None:
    if known.kind is not None and known.kind not in TENSORS:
        return None
    return UNKNOWN if known.shape is None else len(known.shape)


def _dim(known: KnownType, i: int) -> Value | None:
    if known.shape is None:
        return UNKNOWN
    if not 0 <= i < len(known.shape):
        return None
    size = known.shape[i]
    return UNKNOWN if size is None else size


def is_constant(node: Node) -> bool:
    """A Constant with its one output."""
    return operator(node) == "Constant" and len(node.outputs) == 1


def _stored(f: Facts) -> dict[int, Stored]:
    """The tensors whose value the model stores: outputs of Constant, then initializers."""
    constants: dict[int, Stored] = {}
    for node in f.reading.nodes:
        attribute = node.attributes.get("value") if is_constant(node) else None
        if attribute is not None and valued(f, attribute) and node.outputs[0] is not None:
            if kind(f, attribute) == Kinds.TENSOR:
                constants[node.outputs[0]] = f.dense(attribute.t)
            elif kind(f, attribute) == Kinds.SPARSE_TENSOR:
                constants[node.outputs[0]] = f.sparse(attribute.sparse_tensor)
    constants.update(f.initializers())
    return constants


def _by_schema(f: Facts) -> Iterator[tuple[int, str]]:
    """The outputs whose operator gives nothing but tensors."""
    for node in f.reading.nodes:
        schema = schema_of(node)
        dense = [] if schema is None else [all(t.startswith("tensor(") for t in it.types) for it in schema.outputs]
        for position, t in enumerate(node.outputs):
            if t is not None and dense and dense[min(position, len(dense) - 1)]:
                yield t, "tensor"


# ---- Declarations -------------------------------------------------------------------------------


def _own_entries(f: Facts) -> list[Type | None]:
    """The declared type of each tensor; for inputs and outputs of the main graph what their own entries say."""
    types = [declared(f, t) for t in range(len(f.reading.tensors))]
    main = f.reading.graphs[0]
    for tensors, values in ((main.outputs, main.proto.output), (main.inputs, main.proto.input)):
        for t, value in zip(tensors, values, strict=True):
            types[t] = read(value.type) if value.HasField("type") else None
    return types


def _spelled(declared_: Type | None) -> str:
    if declared_ is None or declared_.shape is None:
        return "none"
    sizes = (ascii(s)[1:-1] if isinstance(s, str) and s else str(s) if isinstance(s, int) else "?"
             for s in declared_.shape)  # fmt: skip
    return f"[{', '.join(sizes)}]"


def _static(declared_: Type | None) -> bool:
    shape = None if declared_ is None else declared_.shape
    return shape is not None and all(isinstance(size, int) and size >= 0 for size in shape)


# ---- Constants ----------------------------------------------------------------------------------


def _fixed(f: Facts) -> set[int]:
    fixed = {t for t, _ in f.initializers() if t not in f.inputs}
    return fixed | {n.outputs[0] for n in f.reading.nodes if is_constant(n) and n.outputs[0] is not None}


def _constants(f: Facts) -> dict[int, tuple[Element, ...]]:
    """The values of small constants of integers and booleans that have one source."""
    entries: dict[int, tuple[Element, ...] | None] = {}
    sources: dict[int, int] = {}
    for t, tensor in f.initializers():
        sources[t] = sources.get(t, 0) + 1
        entries[t] = None if t in f.inputs else _elements(tensor)
    for node in f.reading.nodes:
        for output in node.outputs:
            if output is not None:
                sources[output] = sources.get(output, 0) + 1
                if is_constant(node):
                    entries[output] = _given(f, node)
    return {t: row for t, row in entries.items() if row is not None and sources[t] == 1}


def _given(f: Facts, node: Node) -> tuple[Element, ...] | None:
    """The value of a Constant as integers."""
    for name in ("value", "value_int", "value_ints"):
        attribute = node.attributes.get(name)
        if attribute is None or not valued(f, attribute):
            continue
        match kind(f, attribute), payload(f, attribute):
            case Kinds.TENSOR, _:
                return _elements(f.dense(attribute.t))
            case Kinds.SPARSE_TENSOR, _:
                return None
            case _, int() as one:
                return (one,)
            case _, tuple() as many if all(isinstance(item, int) for item in many):
                return tuple(item for item in many if isinstance(item, int))
    return None


def _elements(tensor: Stored) -> tuple[Element, ...] | None:
    code = INTEGERS.get(tensor.element)
    if code is None or tensor.parts is not None or not isinstance(tensor.data, bytes):
        return None
    count = 1
    for dim in tensor.dims:
        count *= dim
    if not 0 <= count <= MOST_ELEMENTS or len(tensor.data) != count * struct.calcsize(f"<{code}"):
        return None
    return tuple(int(item) for item in struct.unpack(f"<{count}{code}", tensor.data))


FLOATS = {"float16": 2, "bfloat16": 2, "float": 4, "double": 8}
NUMBERS = ("value_float", "value_floats", "value_int", "value_ints")


def _zeros(f: Facts) -> dict[int, bool]:
    """Of the small numeric constants that have one source whether all their elements are 0 or -0."""
    sources: dict[int, int] = {}
    for t, _ in f.initializers():
        sources[t] = sources.get(t, 0) + 1
    for node in f.reading.nodes:
        for output in node.outputs:
            if output is not None:
                sources[output] = sources.get(output, 0) + 1
    zeros: dict[int, bool] = {}
    for t, tensor in _stored(f).items():
        zero = _all_zero(tensor)
        if zero is not None and sources[t] == 1 and t not in f.inputs:
            zeros[t] = zero
    for node in f.reading.nodes:
        written = [node.attributes[name] for name in NUMBERS if name in node.attributes] if is_constant(node) else []
        if written and node.outputs[0] is not None:
            value = payload(f, written[0])
            zeros[node.outputs[0]] = all(it == 0 for it in (value if isinstance(value, tuple) else (value,)))
    return zeros


def _all_zero(tensor: Stored) -> bool | None:
    """A tensor holds zeros alone, None where its elements are not read; -0.0 has its sign bit set, no other."""
    width = FLOATS.get(tensor.element)
    if not isinstance(tensor.data, bytes) or (width is None and tensor.element not in INTEGERS):
        return None
    if width is None:
        return not any(tensor.data)
    return all(not byte or (byte == 0x80 and i % width == width - 1) for i, byte in enumerate(tensor.data))
