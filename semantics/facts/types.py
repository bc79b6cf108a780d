"""Facts about tensors: the section "Types, shapes, constants" of `spec/1-syntax.sonnx`.

A type is what the model declares or stores; what that leaves open is taken from the claims of shape inference, then,
for the kind of value only, from the schema of the node that writes the tensor. The rest is unknown, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np

from ..model.graph import Constant, Model, Node, TensorId, ValueType
from ..model.schemas import normal_domain, schema
from .inference.claims import Claims
from .structure import Element, Key, SetTable, Table, Unknown, Value, ValueTable

ClaimsSource = Claims | Callable[[], Claims | None] | None
"""The claims, a function that waits for them, or None when shape inference did not run."""

MOST_AXES = 8
"""An unknown rank makes this many dimensions unknown; no operator's rule asks for a dimension further out."""
MOST_ELEMENTS = 4096
"""Constants with more elements are no small ones: their values stay unknown."""
TENSORS = frozenset({"tensor", "sparse_tensor"})
INTEGERS = {
    **{f"{sign}int{bits}": f"<{sign[:1] or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "?",
}
"""The element types whose values become facts, as NumPy types of their raw bytes."""
FLOATS = {"float16": 2, "bfloat16": 2, "float": 4, "double": 8}
WIDTHS = {**FLOATS, **{element: np.dtype(code).itemsize for element, code in INTEGERS.items()}}
"""The bytes of an element of the types whose zeros are recognised."""


def providers(model: Model, claims: ClaimsSource) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Types, shapes, constants"."""

    @cache
    def types() -> tuple[_Type, ...]:
        return _types(model, claims() if callable(claims) else claims)

    @cache
    def values() -> dict[Key, Value]:
        return _constants(model)

    @cache
    def declared() -> tuple[ValueType | None, ...]:
        return _declared(model)

    @cache
    def stated() -> tuple[_Type, ...]:
        return _types(model, None)

    def first_stated(value: Callable[[_Type], Value | None]) -> Callable[[], Table]:
        """Rows that ask for claims only about tensors of which the model itself does not say enough."""

        def claimed(t: Key) -> Value | None:
            return value(types()[int(t)]) if isinstance(t, int) else None

        return lambda: ValueTable(_Rows(tuple(value(found) for found in stated()), claimed))

    def per_tensor(value: Callable[[_Type], Value | None]) -> Callable[[], Table]:
        return lambda: ValueTable({t: v for t, found in enumerate(types()) if (v := value(found)) is not None})

    return {
        "kind": first_stated(lambda found: found.kind),
        "element_type": first_stated(lambda found: found.element),
        "rank": per_tensor(_rank),
        "dim": lambda: ValueTable({(t, i): v for t, found in enumerate(types()) for i, v in _dims(found)}),
        "axes": lambda: SetTable({t: _positions(found.shape) for t, found in enumerate(types())}),
        "constant": lambda: ValueTable(values()),
        "all_zero": lambda: ValueTable(_zeros(model)),
        "indices": lambda: SetTable({t: _positions(value) for t, value in values().items()}),
        "fixed": lambda: ValueTable(_fixed(model)),
        "boundary": lambda: SetTable({(): tuple(dict.fromkeys(model.graphs[0].inputs + model.graphs[0].outputs))}),
        "declared_element": lambda: ValueTable({t: _element(found) for t, found in enumerate(declared())}),
        "declared_shape": lambda: ValueTable({t: _spelled(found) for t, found in enumerate(declared())}),
        "declared_static": lambda: ValueTable({t: _static(found) for t, found in enumerate(declared())}),
    }


def _positions(row: object) -> tuple[int, ...]:
    """The positions of a list that is known; none otherwise."""
    return tuple(range(len(row))) if isinstance(row, tuple) else ()


# ---- Types ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Type:
    """What is known of a tensor's type. A value of another kind has no element type and no shape (None)."""

    kind: str | Unknown
    element: str | Unknown | None
    shape: tuple[int | Unknown, ...] | Unknown | None


@dataclass(frozen=True, eq=False)
class _Rows(Mapping[Key, Value]):
    """The values that the model states, by tensor; where that is Unknown or nothing, what `claimed` says when asked."""

    stated: tuple[Value | None, ...]
    claimed: Callable[[Key], Value | None]

    def __getitem__(self, key: Key) -> Value:
        if not isinstance(key, int) or not 0 <= key < len(self.stated):
            raise KeyError(key)
        found = self.stated[key]
        if found is None or isinstance(found, Unknown):
            found = self.claimed(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[Key]:
        return (t for t in range(len(self.stated)) if self.get(t) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _types(model: Model, claims: Claims | None) -> tuple[_Type, ...]:
    stored = _stored(model)
    claimed = claims.types if claims is not None else {}
    kinds = {} if len(claimed) >= len(model.tensors) else dict(_kinds_by_schema(model))
    why = _silence(claims)
    return tuple(
        _type(
            tensor.path,
            [found for found in (tensor.declared, _stored_type(stored.get(t)), claimed.get(t)) if found is not None],
            kinds.get(t),
            why,
            sparse=t in stored and stored[t].sparse,
        )
        for t, tensor in enumerate(model.tensors)
    )


def _stored(model: Model) -> dict[TensorId, Constant]:
    """The tensors whose value the model stores: initializers, and the outputs of Constant nodes with a tensor."""
    found: dict[TensorId, Constant] = {}
    for node in model.nodes:
        attribute = node.attributes.get("value") if _is_constant(node) else None
        if attribute is not None and isinstance(attribute.value, Constant) and node.outputs[0] is not None:
            found[node.outputs[0]] = attribute.value
    found.update((t, constant) for t, constant, _ in _initializers(model))
    return found


def _silence(claims: Claims | None) -> str:
    if claims is None:
        return "the model does not declare {} of {}, and shape inference did not run"
    if claims.failure is not None:
        return "the model does not declare {} of {}, and " + claims.failure.replace("{", "(").replace("}", ")")
    return "the model does not declare {} of {}, and shape inference does not give it"


def _stored_type(constant: Constant | None) -> ValueType | None:
    return None if constant is None else ValueType("tensor", constant.element, constant.dims)


def _type(path: str, sources: list[ValueType], by_schema: str | None, why: str, *, sparse: bool) -> _Type:
    """The type from its sources, best first: the kind of the first that says one, completed from the others."""
    kind = next((s.kind for s in sources if s.kind != "unset"), by_schema)
    if sparse:
        kind = "sparse_tensor"
    if kind is None:
        kind_, element_, shape_ = (Unknown(why.format(w, path)) for w in ("the kind", "the element type", "the shape"))
        return _Type(kind_, element_, shape_)
    if kind not in TENSORS:
        return _Type(kind, None, None)
    alike = [s for s in sources if s.kind in TENSORS]
    element = next((s.element for s in alike if s.element not in ("", "undefined")), None)
    shapes = [s.shape for s in alike if s.shape is not None]
    return _Type(
        kind,
        element if element is not None else Unknown(why.format("the element type", path)),
        _shape(path, shapes) if shapes else Unknown(why.format("the shape", path)),
    )


def _shape(path: str, shapes: list[tuple[int | str | None, ...]]) -> tuple[int | Unknown, ...]:
    """The first shape; a dimension that it leaves open is taken from the next one of the same rank with a number."""
    first, *rest = shapes
    others = [shape for shape in rest if len(shape) == len(first)]
    out: list[int | Unknown] = []
    for i, size in enumerate(first):
        number = next((s for s in (size, *(shape[i] for shape in others)) if isinstance(s, int)), None)
        out.append(number if number is not None else Unknown(_open(path, i, size)))
    return tuple(out)


def _open(path: str, position: int, size: int | str | None) -> str:
    if isinstance(size, str) and size:
        return f"dimension {position} of {path} is the symbol {size!a}"
    return f"dimension {position} of {path} is not given"


def _kinds_by_schema(model: Model) -> Iterator[tuple[TensorId, str]]:
    """The kind of the outputs whose operator gives tensors only."""
    for node in model.nodes:
        dense = _dense_outputs(normal_domain(node.domain), node.op_type, node.version)
        for position, t in enumerate(node.outputs):
            if t is not None and dense and dense[min(position, len(dense) - 1)]:
                yield t, "tensor"


@cache
def _dense_outputs(domain: str, op_type: str, version: int | None) -> tuple[bool, ...]:
    found = schema(domain, op_type, version)
    return tuple(all(t.startswith("tensor(") for t in f.types) for f in found.outputs) if found else ()


def _rank(found: _Type) -> Value | None:
    return len(found.shape) if isinstance(found.shape, tuple) else found.shape


def _dims(found: _Type) -> Iterator[tuple[int, Value]]:
    if isinstance(found.shape, tuple):
        yield from enumerate(found.shape)
    elif isinstance(found.shape, Unknown):
        for i in range(MOST_AXES):
            yield i, found.shape


# ---- Declarations -----------------------------------------------------------------------------


def _declared(model: Model) -> tuple[ValueType | None, ...]:
    """What the model declares for each tensor; for inputs and outputs of the main graph what their own entry says."""
    found = [tensor.declared for tensor in model.tensors]
    main = model.graphs[0]
    for tensors, types in ((main.outputs, main.output_types), (main.inputs, main.input_types)):
        if len(tensors) == len(types):
            for t, entry in zip(tensors, types, strict=True):
                found[t] = entry
    return tuple(found)


def _element(found: ValueType | None) -> str:
    element = found.element if found is not None and found.kind in TENSORS else ""
    return "" if element == "undefined" else element


def _spelled(found: ValueType | None) -> str:
    if found is None or found.shape is None:
        return "none"
    return f"[{', '.join(_size(size) for size in found.shape)}]"


def _size(size: int | str | None) -> str:
    if isinstance(size, str) and size:
        return ascii(size)[1:-1]
    return str(size) if isinstance(size, int) else "?"


def _static(found: ValueType | None) -> bool:
    return found is not None and found.shape is not None and all(isinstance(d, int) and d >= 0 for d in found.shape)


# ---- Constants --------------------------------------------------------------------------------


def _initializers(model: Model) -> Iterator[tuple[TensorId, Constant, bool]]:
    """Every stored tensor, and whether it is an input of its graph as well, so that a caller may replace it."""
    for graph in model.graphs:
        replaceable = set(graph.inputs)
        for t, constant in (*graph.initializers, *graph.sparse_initializers):
            yield t, constant, t in replaceable


def _is_constant(node: Node) -> bool:
    return node.op_type == "Constant" and normal_domain(node.domain) == "" and len(node.outputs) == 1


def _fixed(model: Model) -> dict[Key, Value]:
    rows: dict[Key, Value] = dict.fromkeys(range(len(model.tensors)), False)
    rows.update((t, not replaceable) for t, _, replaceable in _initializers(model))
    rows.update((node.outputs[0], True) for node in model.nodes if _is_constant(node) and node.outputs[0] is not None)
    return rows


def _constants(model: Model) -> dict[Key, Value]:
    """The values of small integer and boolean constants; for all other tensors why the value is unknown."""
    paths = [tensor.path for tensor in model.tensors]
    rows: dict[Key, Value] = {
        t: Unknown(f"the value of {path} is no constant of the model") for t, path in enumerate(paths)
    }
    writers: dict[TensorId, int] = {}
    for t, constant, replaceable in _initializers(model):
        writers[t] = writers.get(t, 0) + 1
        rows[t] = Unknown(paths[t] + _REPLACEABLE) if replaceable else _elements(constant, paths[t])
    for node in model.nodes:
        for written in node.outputs:
            if written is not None:
                writers[written] = writers.get(written, 0) + 1
                if _is_constant(node):
                    rows[written] = _node_value(node, paths[written])
    rows.update((t, Unknown(paths[t] + _AMBIGUOUS)) for t, count in writers.items() if count > 1)
    return rows


def _zeros(model: Model) -> dict[Key, Value]:
    """Of the small numeric constants whether all elements are 0."""
    rows: dict[Key, Value] = {
        t: Unknown(f"the value of {tensor.path} is no constant of the model") for t, tensor in enumerate(model.tensors)
    }
    constants = _constants(model)
    for t, constant in _stored(model).items():
        known = constants[t]
        if isinstance(known, Unknown) and known.reason.endswith((_REPLACEABLE, _AMBIGUOUS)):
            rows[t] = known
        else:
            rows[t] = _all_zero(constant, model.tensors[t].path)
    for node in model.nodes:
        if _is_constant(node) and node.outputs[0] is not None:
            values = [node.attributes[a].value for a in _NUMBERS if a in node.attributes]
            if values:
                numbers = values[0] if isinstance(values[0], tuple) else (values[0],)
                rows[node.outputs[0]] = all(item == 0 for item in numbers)
    return rows


_REPLACEABLE = " is an input as well, so a caller may replace its stored value"
_AMBIGUOUS = " has more than one source"
_NUMBERS = ("value_float", "value_floats", "value_int", "value_ints")


def _all_zero(constant: Constant, path: str) -> Value:
    """Whether a stored tensor holds zeros alone; -0.0 is the only zero with a bit that is set, its first."""
    if constant.sparse or constant.element in ("", "string") or constant.element.startswith("complex"):
        return Unknown(f"the value of {path} is no dense tensor of numbers")
    width = WIDTHS.get(constant.element)
    if not isinstance(constant.data, bytes) or width is None:
        return Unknown(f"the elements of {path} are not read")
    if constant.element not in FLOATS:
        return not any(constant.data)
    return all(not byte or (byte == 0x80 and i % width == width - 1) for i, byte in enumerate(constant.data))


def _node_value(node: Node, path: str) -> Value:
    for name in ("value", "value_int", "value_ints"):
        attribute = node.attributes.get(name)
        match attribute.value if attribute is not None else None:
            case Constant() as constant:
                return _elements(constant, path)
            case int() as one:
                return (one,)
            case tuple() as many if all(isinstance(item, int) for item in many):
                return tuple(item for item in many if isinstance(item, int))
    return Unknown(f"the value of {path} is not given as integers")


def _elements(constant: Constant, path: str) -> Value:
    dtype = INTEGERS.get(constant.element)
    if dtype is None or constant.sparse:
        return Unknown(f"the value of {path} is no dense tensor of integers or booleans")
    if isinstance(constant.data, bytes):
        count = prod(constant.dims)
        if count < 0 or count > MOST_ELEMENTS:
            return Unknown(f"{path} has too many elements to be read for a rule")
        if len(constant.data) != count * np.dtype(dtype).itemsize:
            return Unknown(f"the data of {path} do not fit its shape")
        elements: list[Element] = [int(item) for item in np.frombuffer(constant.data, dtype)]
        return tuple(elements)
    return Unknown(f"the elements of {path} are {'not read' if constant.storage else 'left out of the model text'}")
