"""Facts about types: of tensors, of nodes beside their schemas, of values, as declared and as computed."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sonnx.spec.language.syntax import Expr, Operator
from sonnx.spec.library import specification

from ..model.graph import Constant, GraphId, Model, Node, NodeId, TensorId, ValueType
from ..model.path import quote
from ..model.schemas import (
    Formal,
    Schema,
    element_types,
    formal_at,
    is_guest,
    newest_opset,
    normal_domain,
    operator_name,
    schema_at,
)
from ..model.type_protos import spelled
from ..operators.application import Program
from .structure import Element, Key, SetTable, Table, Unknown, Value, ValueTable

if TYPE_CHECKING:
    from .inference.model import Claims

# Facts about tensors: the section "Types, shapes, constants" of `spec/1-syntax.sonnx`.
# A type is what the model declares or stores; what that leaves open is taken from the claims of shape inference, then,
# for the kind of value only, from the schema of the node that writes the tensor. The rest is unknown, with the reason.


ClaimsSource: TypeAlias = "Claims | Callable[[], Claims | None] | None"
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


def type_tables(model: Model, claims: ClaimsSource) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Types, shapes, constants"."""

    @cache
    def types() -> tuple[_Type, ...]:
        return _known_types(model, claims() if callable(claims) else claims)

    @cache
    def values() -> dict[Key, Value]:
        return _constants(model)

    @cache
    def declared() -> tuple[ValueType | None, ...]:
        return _declared(model)

    @cache
    def stated() -> tuple[_Type, ...]:
        return _known_types(model, None)

    def first_stated(value: Callable[[_Type], Value | None]) -> Callable[[], Table]:
        """Rows that ask for claims only about tensors of which the model itself does not say enough."""

        def claimed(t: Key) -> Value | None:
            return value(types()[int(t)]) if isinstance(t, int) else None

        return lambda: ValueTable(_Rows(tuple(value(type_) for type_ in stated()), claimed))

    def per_tensor(value: Callable[[_Type], Value | None]) -> Callable[[], Table]:
        return lambda: ValueTable({t: v for t, type_ in enumerate(types()) if (v := value(type_)) is not None})

    return {
        "kind": first_stated(lambda type_: type_.kind),
        "element_type": first_stated(lambda type_: type_.element),
        "rank": per_tensor(_rank),
        "dim": lambda: ValueTable({(t, i): v for t, type_ in enumerate(types()) for i, v in _dims(type_)}),
        "axes": lambda: SetTable({t: _positions(type_.shape) for t, type_ in enumerate(types())}),
        "constant": lambda: ValueTable(values()),
        "all_zero": lambda: ValueTable(_zeros(model)),
        "indices": lambda: SetTable({t: _positions(value) for t, value in values().items()}),
        "fixed": lambda: ValueTable(_fixed(model)),
        "boundary": lambda: SetTable({(): tuple(dict.fromkeys(model.graphs[0].inputs + model.graphs[0].outputs))}),
        "declared_element": lambda: ValueTable({t: _element(type_) for t, type_ in enumerate(declared())}),
        "declared_shape": lambda: ValueTable({t: _spelled(type_) for t, type_ in enumerate(declared())}),
        "declared_static": lambda: ValueTable({t: _static(type_) for t, type_ in enumerate(declared())}),
    }


def _positions(row: object) -> tuple[int, ...]:
    """The positions of a list that is known; none otherwise."""
    return tuple(range(len(row))) if isinstance(row, tuple) else ()


# ---- Types ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Type:
    """The knowledge of a tensor's type. A value of another kind has no element type and no shape (None)."""

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
        value = self.stated[key]
        if value is None or isinstance(value, Unknown):
            value = self.claimed(key)
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[Key]:
        return (t for t in range(len(self.stated)) if self.get(t) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _known_types(model: Model, claims: Claims | None) -> tuple[_Type, ...]:
    stored = _stored(model)
    claimed = claims.types if claims is not None else {}
    kinds = {} if len(claimed) >= len(model.tensors) else dict(_kinds_by_schema(model))
    why = _silence(claims)
    return tuple(
        _type(
            tensor.path,
            [type_ for type_ in (tensor.declared, _stored_type(stored.get(t)), claimed.get(t)) if type_ is not None],
            kinds.get(t),
            why,
            sparse=t in stored and stored[t].sparse,
        )
        for t, tensor in enumerate(model.tensors)
    )


def _stored(model: Model) -> dict[TensorId, Constant]:
    """The tensors whose value the model stores: initializers, and the outputs of Constant nodes with a tensor."""
    constants: dict[TensorId, Constant] = {}
    for node in model.nodes:
        attribute = node.attributes.get("value") if _is_constant(node) else None
        if attribute is not None and isinstance(attribute.value, Constant) and node.outputs[0] is not None:
            constants[node.outputs[0]] = attribute.value
    constants.update((t, constant) for t, constant, _ in _initializers(model))
    return constants


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
        dense = _dense_outputs(schema_at(node))
        for position, t in enumerate(node.outputs):
            if t is not None and dense and dense[min(position, len(dense) - 1)]:
                yield t, "tensor"


@cache
def _dense_outputs(form: Schema | None) -> tuple[bool, ...]:
    return tuple(all(t.startswith("tensor(") for t in f.types) for f in form.outputs) if form else ()


def _rank(type_: _Type) -> Value | None:
    return len(type_.shape) if isinstance(type_.shape, tuple) else type_.shape


def _dims(type_: _Type) -> Iterator[tuple[int, Value]]:
    if isinstance(type_.shape, tuple):
        yield from enumerate(type_.shape)
    elif isinstance(type_.shape, Unknown):
        for i in range(MOST_AXES):
            yield i, type_.shape


# ---- Declarations -----------------------------------------------------------------------------


def _declared(model: Model) -> tuple[ValueType | None, ...]:
    """The declared type of each tensor; for inputs and outputs of the main graph that of their own entry."""
    known = [tensor.declared for tensor in model.tensors]
    main = model.graphs[0]
    for tensors, types in ((main.outputs, main.output_types), (main.inputs, main.input_types)):
        if len(tensors) == len(types):
            for t, entry in zip(tensors, types, strict=True):
                known[t] = entry
    return tuple(known)


def _element(type_: ValueType | None) -> str:
    element = type_.element if type_ is not None and type_.kind in TENSORS else ""
    return "" if element == "undefined" else element


def _spelled(type_: ValueType | None) -> str:
    if type_ is None or type_.shape is None:
        return "none"
    return f"[{', '.join(_size(size) for size in type_.shape)}]"


def _size(size: int | str | None) -> str:
    if isinstance(size, str) and size:
        return ascii(size)[1:-1]
    return str(size) if isinstance(size, int) else "?"


def _static(type_: ValueType | None) -> bool:
    return type_ is not None and type_.shape is not None and all(isinstance(d, int) and d >= 0 for d in type_.shape)


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
    """True if a stored tensor holds zeros alone; -0.0 is the only zero with a bit that is set, its first."""
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


# Facts about nodes beside their ONNX schemas: what is unknown to ONNX, and in what a node differs from its schema.


INTERNAL = "__"
"""The beginning of attribute names that tools use for themselves."""


@dataclass(slots=True)
class Differences:
    """The rows that one pass over the nodes gives, by fact."""

    sets: dict[str, dict[Key, tuple[Element, ...]]] = field(default_factory=dict)
    members: dict[str, list[NodeId]] = field(default_factory=dict)
    limits: dict[NodeId, tuple[int, int, int, int]] = field(default_factory=dict)


def schema_tables(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Nodes and schemas"."""
    compared = cache(
        lambda: differences(
            model.nodes,
            {(normal_domain(domain), name, overload) for domain, name, overload in model.functions},
            listing=model.source == "listing",
        )
    )

    def members(name: str) -> Callable[[], Table]:
        return lambda: SetTable({(): tuple(compared().members.get(name, ()))})

    def rows(name: str) -> Callable[[], Table]:
        return lambda: SetTable(compared().sets.get(name, {}))

    def limit(index: int) -> Callable[[], Table]:
        return lambda: ValueTable({n: limits[index] for n, limits in compared().limits.items()})

    sets = ("left_empty", "unlisted_attributes", "miskinded_attributes", "absent_attributes")
    return {
        **{name: rows(name) for name in (*sets, "repeated_attributes", "valueless_attributes")},
        **{name: members(name) for name in ("unimported", "without_schema", "misfitting_calls", "deprecated", "idle")},
        "guests": members("guests"),
        "miscounted": lambda: SetTable({(): tuple(compared().limits)}),
        "exists_in_domain": lambda: ValueTable(
            {n: _existence(model.nodes[n]) for n in compared().members.get("without_schema", ())}
        ),
        **{
            name: limit(index)
            for index, name in enumerate(("least_operands", "most_operands", "least_results", "most_results"))
        },
    }


def _existence(node: Node) -> Value:
    if newest_opset(node.domain):
        return False
    return Unknown(f"ONNX does not define the operators of the domain of {node.path}; their rules are not known here")


def differences(nodes: Sequence[Node], functions: Container[tuple[str, str, str]], *, listing: bool) -> Differences:
    """In what these nodes differ from their schemas. functions: those of the model, by domain, name and overload."""
    noted = Differences()
    for n, node in enumerate(nodes):
        if not node.inputs and not node.outputs:
            noted.members.setdefault("idle", []).append(n)
        if node.duplicate_attributes:
            _note(noted, "repeated_attributes", n, dict.fromkeys(node.duplicate_attributes))
        if node.attributes and not listing:
            _note(noted, "valueless_attributes", n, (a for a, it in node.attributes.items() if it.value is None))
        if node.opset is None:
            noted.members.setdefault("unimported", []).append(n)
        elif (node.domain, node.op_type, node.overload) in functions:
            noted.members.setdefault("misfitting_calls", []).append(n)
        elif node.version is None:
            noted.members.setdefault("without_schema", []).append(n)
        else:
            if is_guest(node.domain, node.op_type):
                noted.members.setdefault("guests", []).append(n)
            _against_schema(noted, n, node)
    return noted


def _note(noted: Differences, fact: str, n: NodeId, members: Iterable[str]) -> None:
    row: tuple[Element, ...] = tuple(members)
    if row:
        noted.sets.setdefault(fact, {})[n] = row


def _against_schema(noted: Differences, n: NodeId, node: Node) -> None:
    deprecated, limits = _counted(schema_at(node), len(node.inputs), len(node.outputs))
    if deprecated:
        noted.members.setdefault("deprecated", []).append(n)
        return
    if limits is not None:
        noted.limits[n] = limits
    if None in node.inputs or None in node.outputs:
        _note(noted, "left_empty", n, _empty(node))
    written = tuple((name, it.kind) for name, it in node.attributes.items())
    for fact, row in _attributes(schema_at(node), written):
        _note(noted, fact, n, row)


@cache
def _counted(it: Schema | None, inputs: int, outputs: int) -> tuple[bool, tuple[int, int, int, int] | None]:
    """True if the operator is deprecated, and the limits of its counts when these are outside of them."""
    if it is None:
        return False, None
    most_in = inputs if it.max_inputs is None else it.max_inputs
    most_out = outputs if it.max_outputs is None else it.max_outputs
    fits = it.min_inputs <= inputs <= most_in and it.min_outputs <= outputs <= most_out
    return it.deprecated, None if fits else (it.min_inputs, most_in, it.min_outputs, most_out)


def _empty(node: Node) -> Iterator[str]:
    it = schema_at(node)
    if it is not None:
        for formals, actuals in ((it.inputs, node.inputs), (it.outputs, node.outputs)):
            for position, tensor in enumerate(actuals[: len(formals)]):
                if tensor is None and formals[position].option == "single":
                    yield formals[position].name
            if formals and formals[-1].group and None in actuals[len(formals) - 1 :]:  # a group has all its entries
                yield formals[-1].name


@cache
def _attributes(it: Schema | None, written: tuple[tuple[str, str], ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The facts about attributes of nodes which write these names with these kinds."""
    if it is None:
        return ()
    names = {name for name, _ in written}
    formals = it.attributes
    return (
        ("unlisted_attributes", tuple(a for a, _ in written if a not in formals and not a.startswith(INTERNAL))),
        ("miskinded_attributes", tuple(a for a, kind in written if a in formals and formals[a].kind != kind)),
        ("absent_attributes", tuple(a for a, formal in formals.items() if formal.required and a not in names)),
    )


# Facts about types: what is said about the type of a value, by declaration, by its stored value, by inference.


UNSET = ValueType("unset")
OWN_NAME = re.compile(r"\b([tn])(\d+)\b")
LONGEST = 300
"""The characters of a message of shape inference that are shown."""

Typing = tuple[tuple[TensorId, ...], tuple[str, ...], tuple[str, ...]]
"""Of one node: the ill-typed tensors, the constraints that they are under, the type variables that are split."""


def typing_tables(model: Model, claims: ClaimsSource) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Types". claims: see `onnx_tables`."""

    @cache
    def claimed() -> Claims:
        from .inference.model import Claims

        answer = claims() if callable(claims) else claims
        return answer if answer is not None else Claims(failure="shape inference did not run")

    types = cache(lambda: _types(model, claimed()))
    names = cache(lambda: tuple(_name(type_) for type_ in types()))
    typings = cache(lambda: dict(_typings(model, names())))
    open_ = cache(lambda: _open_types(model, types(), claimed()))
    refusals = cache(lambda: _refusals(model, names(), claimed()))

    def rows(part: int) -> Callable[[], Table]:
        return lambda: SetTable({n: typing[part] for n, typing in typings().items() if typing[part]})

    def interface(value: Callable[[ValueType], Value]) -> Callable[[], Table]:
        def build(tensor: TensorId, type_: ValueType) -> Value:
            if type_.kind == UNSET.kind and model.source == "listing":
                return Unknown(f"the listing does not show the type of {model.tensors[tensor].path}")
            return value(type_)

        return lambda: ValueTable({t: build(t, type_) for t, type_ in _interface(model).items()})

    def ran() -> Table:
        failure = claimed().failure
        return ValueTable({(): True if failure is None else Unknown(failure)})

    return {
        "interface_kind": interface(lambda type_: type_.kind),
        "interface_element": interface(lambda type_: type_.element),
        "interface_inner": interface(lambda type_: type_.inner.kind if type_.inner is not None else UNSET.kind),
        "interface_shape": interface(lambda type_: type_.shape is not None),
        "type_name": lambda: ValueTable({t: name or Unknown("the type is open") for t, name in enumerate(names())}),
        "ill_typed": rows(0),
        "admitted_types": rows(1),
        "split_variables": rows(2),
        "contradictions": lambda: SetTable(dict(_contradictions(model, claimed()))),
        "open_types": lambda: SetTable({(): tuple(open_())}),
        "has_type": lambda: ValueTable(dict(open_().items())),
        "inference_ran": ran,
        "objections": lambda: SetTable({(): tuple(m for n, m in _messages(model, claimed()) if n is None)}),
        "refused": lambda: SetTable({(): tuple(refusals())}),
        "admitted": lambda: ValueTable({n: verdict for n, (verdict, _) in refusals().items()}),
        "objection": lambda: ValueTable({n: message for n, (_, message) in refusals().items()}),
    }


def _interface(model: Model) -> dict[TensorId, ValueType]:
    """The types that the main graph states for its inputs and outputs; of several entries the first."""
    main = model.graphs[0]
    stated: dict[TensorId, ValueType] = {}
    for tensors, types in ((main.inputs, main.input_types), (main.outputs, main.output_types)):
        for position, tensor in enumerate(tensors):
            type_ = types[position] if position < len(types) else None
            stated.setdefault(tensor, type_ or UNSET)
    return stated


def _types(model: Model, claims: Claims) -> tuple[ValueType | None, ...]:
    """The knowledge of each type: inferred, completed by what is declared or stored; else what the texts of operators
    give, in a model with operators of other domains than ONNX's own, of many of which its shape inference says nothing.
    """
    from .inference.model import completed, stored_type

    stored = {t: stored_type(it) for g in model.graphs for t, it in (*g.initializers, *g.sparse_initializers)}
    foreign = any(
        (normal_domain(node.domain) or is_guest(node.domain, node.op_type)) and node.version is not None
        for node in model.nodes
    )
    given = cache(lambda: computed(model))

    def known(tensor: TensorId, declared: ValueType | None) -> ValueType | None:
        claim = claims.types.get(tensor) or stored.get(tensor)
        if declared is not None and declared.kind != UNSET.kind and declared is not claim:
            claim = completed(claim, declared)
        return given()[tensor] if foreign and _name(claim) is None else claim

    return tuple(known(t, tensor.declared) for t, tensor in enumerate(model.tensors))


def _name(type_: ValueType | None) -> str | None:
    if type_ is not None and type_.kind == "tensor":
        return f"tensor({type_.element})" if type_.element else None
    name = spelled(type_)
    return None if name is None else name.replace("sparse_tensor(", "tensor(")


# ---- Nodes against the type constraints of their schemas --------------------------------------


def _typings(model: Model, names: tuple[str | None, ...]) -> Iterator[tuple[NodeId, Typing]]:
    seen: dict[tuple[object, ...], tuple[tuple[tuple[int, int], ...], tuple[str, ...], tuple[str, ...]] | None] = {}
    for n, node in enumerate(model.nodes):
        if node.version is None:
            continue
        inputs = tuple([None if t is None else names[t] for t in node.inputs])
        outputs = tuple([None if t is None else names[t] for t in node.outputs])
        key = (node.domain, node.op_type, node.version, inputs, outputs)
        if key not in seen:
            seen[key] = _judged(node, inputs, outputs)
        judgement = seen[key]
        if judgement is not None:
            positions, admitted, split = judgement
            sides = (node.inputs, node.outputs)
            tensors = dict.fromkeys(t for side, i in positions if (t := sides[side][i]) is not None)
            yield n, (tuple(tensors), admitted, split)


def _judged(
    node: Node, inputs: tuple[str | None, ...], outputs: tuple[str | None, ...]
) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...], tuple[str, ...]] | None:
    """The positions (0 input or 1 output, index) with a type that is not admitted, their constraints, and the type
    variables with several types; None when there are none of both."""
    it = schema_at(node)
    if it is None or it.deprecated:
        return None
    wrong: list[tuple[int, int]] = []
    constraints: dict[str, None] = {}
    bound: dict[str, dict[str, None]] = {}
    for side, (formals, actuals) in enumerate(((it.inputs, inputs), (it.outputs, outputs))):
        for position, name in enumerate(actuals):
            formal = formal_at(formals, position)
            if name is None or formal is None:
                continue
            if name not in formal.types:
                wrong.append((side, position))
                constraints[f"{formal.name}: {formal.type} is {_listed(formal.types)}"] = None
            if formal.type in it.type_constraints and (formal.option != "variadic" or formal.homogeneous):
                bound.setdefault(formal.type, {})[name] = None
    split = tuple(f"{variable} to {' and '.join(types)}" for variable, types in bound.items() if len(types) > 1)
    return (tuple(wrong), tuple(constraints), split) if wrong or split else None


def _listed(types: tuple[str, ...]) -> str:
    return ", ".join(sorted(types))


# ---- Contradictions ---------------------------------------------------------------------------


def _contradictions(model: Model, claims: Claims) -> Iterator[tuple[Key, tuple[Element, ...]]]:
    """For each tensor the points in which two statements about its type differ."""
    said: dict[TensorId, list[tuple[str, ValueType]]] = {}
    for tensor, who, type_ in _statements(model, claims):
        if type_ is not None and type_.kind != UNSET.kind:
            others = said.setdefault(tensor, [])
            if all(type_ is not other and type_ != other for _, other in others):
                others.append((who, type_))
    for tensor, statements in said.items():
        if len(statements) > 1:
            points = {
                point: None
                for i, (who, type_) in enumerate(statements)
                for other_who, other in statements[:i]
                for point in _differences(other_who, other, who, type_)
            }
            if points:
                yield tensor, tuple(points)


def _statements(model: Model, claims: Claims) -> Iterator[tuple[TensorId, str, ValueType | None]]:
    from .inference.model import stored_type

    for graph in model.graphs:
        for tensor, type_ in zip(graph.inputs, graph.input_types, strict=False):
            yield tensor, "the input list", type_
        for tensor, type_ in zip(graph.outputs, graph.output_types, strict=False):
            yield tensor, "the output list", type_
        for tensor, type_ in graph.value_infos:
            yield tensor, "value_info", type_
        for tensor, constant in (*graph.initializers, *graph.sparse_initializers):
            yield tensor, "the stored value", stored_type(constant) if constant.element else None
    for tensor, value in enumerate(model.tensors):
        yield tensor, "the declaration", value.declared
    for tensor, type_ in claims.types.items():
        yield tensor, "inference", type_


def _differences(who: str, one: ValueType, other_who: str, other: ValueType) -> Iterator[str]:
    def against(point: str, mine: object, theirs: object) -> str:
        return f"{point} {mine} by {who}, {theirs} by {other_who}"

    if one.kind != other.kind:
        if UNSET.kind not in (one.kind, other.kind):
            yield against("kind", one.kind, other.kind)
        return
    if one.element != other.element and one.element and other.element:
        shown = quote if one.kind == "opaque" else str
        yield against("element type", shown(one.element), shown(other.element))
    if one.shape is not None and other.shape is not None:
        if len(one.shape) != len(other.shape):
            yield against("rank", len(one.shape), len(other.shape))
        else:
            for axis, (mine, theirs) in enumerate(zip(one.shape, other.shape, strict=True)):
                if isinstance(mine, int) and isinstance(theirs, int) and mine != theirs:
                    yield against(f"dimension {axis}", mine, theirs)
    if one.inner is not None and other.inner is not None:
        yield from (f"elements: {point}" for point in _differences(who, one.inner, other_who, other.inner))


# ---- What inference leaves open and what it rejects -------------------------------------------


def _open_types(model: Model, types: tuple[ValueType | None, ...], claims: Claims) -> Mapping[TensorId, Unknown]:
    """The tensors in use whose type is open, with the reason."""
    used: dict[TensorId, None] = dict.fromkeys(tensor for graph in model.graphs for tensor in graph.outputs)
    writers: dict[TensorId, NodeId] = {}
    for n, node in enumerate(model.nodes):
        for tensor in node.inputs:
            if tensor is not None:
                used[tensor] = None
        for tensor in node.outputs:
            if tensor is not None:
                used[tensor] = None
                writers[tensor] = n
    rejected = {n for n, _ in claims.errors}
    reasons = {}
    for tensor in used:
        if _name(types[tensor]) is None:
            reasons[tensor] = Unknown(_reason(model, tensor, writers.get(tensor), rejected, claims))
    return reasons


def _reason(model: Model, tensor: TensorId, writer: NodeId | None, rejected: set[NodeId | None], claims: Claims) -> str:
    path = model.tensors[tensor].path
    if claims.failure is not None:
        return f"the type of {path} is not declared, and {claims.failure}"
    if writer is not None and writer in claims.left_out:
        return f"the type of {path} is not declared, and {claims.left_out[writer]}"
    if writer is not None and writer in rejected:
        return f"shape inference rejects the node that writes {path}"
    return f"the type of {path} is not declared, and shape inference does not determine it"


def _refusals(model: Model, names: tuple[str | None, ...], claims: Claims) -> dict[NodeId, tuple[Value, str]]:
    """The nodes that inference rejects: False, or unknown when a type or value that it needs is; and the message."""
    verdicts: dict[NodeId, tuple[Value, str]] = {}
    for n, message in _messages(model, claims):
        if n is not None and 0 <= n < len(model.nodes):
            verdicts.setdefault(n, (_verdict(model, model.nodes[n], names, message), message))
    return verdicts


def _verdict(model: Model, node: Node, names: tuple[str | None, ...], message: str) -> Value:
    from .inference.model import WITHIN, unread

    for tensor in node.inputs:
        if tensor is not None and names[tensor] is None:
            return Unknown(f"the type of {model.tensors[tensor].path} is open; inference says: {message}")
    if message.startswith(WITHIN):
        return Unknown(f"inference gives up on {node.path} {message}")
    if any(unread(it) for it in node.attributes.values() if it.kind in ("TENSOR", "TENSORS")):
        return Unknown(f"a stored tensor of {node.path} is not read; inference says: {message}")
    return False


def _messages(model: Model, claims: Claims) -> Iterator[tuple[NodeId | None, str]]:
    """The errors of inference, with the model's places for the numbers that inference knows."""

    def place(match: re.Match[str]) -> str:
        elements = model.tensors if match[1] == "t" else model.nodes
        number = int(match[2])
        return elements[number].path if number < len(elements) else match[0]

    for n, message in claims.errors:
        printable = "".join(c if " " <= c <= "~" else "?" for c in message)
        short = printable if len(printable) <= LONGEST else printable[: LONGEST - 3] + "..."
        yield n, OWN_NAME.sub(place, short)


# Types that are computed: the facts value_type, value_kind, item_type and content_type of `spec/1-syntax.sonnx`.
# From graph inputs and stored values forward, node by node, by the types that schemas and the operators' texts
# prescribe: what an output has in common with an input, the `type` statements, an entry of a sequence; bodies with what
# their nodes give them. Shapes are left out. A declared type counts where none is computed.


Type = ValueType | None
"""A type without shape; None where it is not known."""
INT64, BOOL = ValueType("tensor", "int64"), ValueType("tensor", "bool")


def value_type_tables(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of this file."""
    types = cache(lambda: computed(model))

    def rows(value: Callable[[ValueType], str | None]) -> Callable[[], Table]:
        def build() -> Table:
            return ValueTable({t: _stated(model, t, type_, value) for t, type_ in enumerate(types())})

        return build

    return {
        "value_type": rows(spelled),
        "value_kind": rows(lambda type_: type_.kind),
        "item_type": rows(lambda type_: spelled(type_.inner if type_.kind == "sequence" else type_)),
        "content_type": rows(lambda type_: spelled(type_.inner if type_.kind == "optional" else type_)),
        "declared_type": lambda: ValueTable(
            {t: spelled(_declared_type(model, t)) or "" for t in range(len(model.tensors))}
        ),
    }


def _stated(model: Model, t: TensorId, type_: Type, value: Callable[[ValueType], str | None]) -> Value:
    text = None if type_ is None else value(type_)
    if text is not None:
        return text
    return Unknown(f"the type of {model.tensors[t].path} is not declared, and does not follow from its operator")


def computed(model: Model) -> tuple[Type, ...]:
    """The type of each tensor by number."""
    walk = _Walk(model, Program(model), {})
    main = model.graphs[0]
    for t in main.inputs:
        walk.types[t] = _declared_type(model, t)
    _graph(walk, 0)
    return tuple(walk.types.get(t) or _declared_type(model, t) for t in range(len(model.tensors)))


@dataclass(frozen=True, slots=True)
class _Walk:
    """types: what is computed by now."""

    model: Model
    program: Program
    types: dict[TensorId, Type]


def _graph(walk: _Walk, graph: GraphId) -> None:
    """All nodes of a graph whose inputs have types by now."""
    inside = walk.model.graphs[graph]
    for t, constant in (*inside.initializers, *inside.sparse_initializers):
        walk.types[t] = _type_of_stored(constant) or walk.types.get(t) or _declared_type(walk.model, t)
    for n in walk.program.order(graph):
        node = walk.model.nodes[n]
        inputs = tuple(None if t is None else _known(walk, t) for t in node.inputs)
        rule = _BODIES.get(node.op_type) if not normal_domain(node.domain) else None
        types = rule(walk, n, inputs) if rule is not None else _outputs(node, inputs)
        for output, type_ in zip(node.outputs, types, strict=False):
            if output is not None and type_ is not None and spelled(type_) is not None:
                walk.types[output] = type_


def _known(walk: _Walk, t: TensorId) -> Type:
    return walk.types.get(t) or _declared_type(walk.model, t)


def _declared_type(model: Model, t: TensorId) -> Type:
    type_ = model.tensors[t].declared
    return None if type_ is None or spelled(type_) is None else _shapeless(type_)


def _shapeless(type_: ValueType) -> ValueType:
    inner = None if type_.inner is None else _shapeless(type_.inner)
    return replace(type_, shape=None, inner=inner)


def _type_of_stored(constant: Constant) -> Type:
    return ValueType("sparse_tensor" if constant.sparse else "tensor", constant.element) if constant.element else None


# ---- Operators without bodies -----------------------------------------------------------------


def _outputs(node: Node, inputs: Sequence[Type]) -> Sequence[Type]:
    it = schema_at(node)
    if it is None:
        return ()
    bound: dict[str, Type] = {}
    for position, type_ in enumerate(inputs):
        formal = formal_at(it.inputs, position)
        if formal is not None and type_ is not None and _shared(it, formal):
            bound.setdefault(formal.type, type_)
    return [_output(node, it, formal_at(it.outputs, i), bound, inputs) for i in range(len(node.outputs))]


def _shared(it: Schema, formal: Formal) -> bool:
    """True if all inputs and outputs of the formal one's type variable have one type."""
    return formal.type in it.type_constraints and (formal.option != "variadic" or formal.homogeneous)


def _output(node: Node, it: Schema, formal: Formal | None, bound: Mapping[str, Type], inputs: Sequence[Type]) -> Type:
    if formal is None:
        return None
    if formal.type in bound and _shared(it, formal):
        return bound[formal.type]
    if len(formal.types) == 1:
        return read(formal.types[0])
    text = definition(node)
    if text is None:
        return None
    site = _Site(node, it, inputs, {**bound})
    if text.inputs:  # in a text all inputs of a type variable have one type, of a variadic input too
        for position, type_ in enumerate(inputs):
            kind = text.inputs[min(position, len(text.inputs) - 1)].type
            if type_ is not None and kind in it.type_constraints:
                site.types.setdefault(kind, type_)
    for statement in text.statements:
        if statement.kind == "type":
            site.types[statement.names[0]] = _evaluate(statement.expr, site)
        elif statement.kind == "result" and formal.name in statement.names and statement.expr.head == "index":
            return _evaluate(statement.expr, site)
    port = next((port for port in text.outputs if port.name == formal.name), None)
    return None if port is None else site.types.get(port.type)


def definition(node: Node) -> Operator | None:
    """The text of a node's operator in its version."""
    return specification().operator(operator_name(node.domain, node.op_type), node.version)


@dataclass(frozen=True, slots=True)
class _Site:
    node: Node
    schema: Schema
    inputs: Sequence[Type]
    types: dict[str, Type]


def _evaluate(expr: Expr, site: _Site) -> Type:
    """The type that a type expression denotes, and the type of an entry of a sequence or optional; None for others."""
    match expr:
        case Expr(head="var", args=(str() as name,)):
            return site.types.get(name) or _of_name(name, site) or _named(name)
        case Expr(head="call", args=("data_type", Expr(head="var", args=(str() as name,)))):
            code = _number(name, site)
            return None if code is None else ValueType("tensor", element_types().get(code, ""))
        case Expr(head="call", args=("type_of", Expr(head="var", args=(str() as name,)))):
            return _of_name(name, site)
        case Expr(head="call", args=("type_of", Expr(head="index") as inner)):
            return _evaluate(inner, site)
        case Expr(head="call", args=("sequence_of" | "optional_of" as maker, Expr() as inner)):
            type_ = _evaluate(inner, site)
            return None if type_ is None else ValueType(str(maker).removesuffix("_of"), inner=type_)
        case Expr(head="call", args=("map_of", Expr() as keys, Expr() as inner)):
            key, type_ = _evaluate(keys, site), _evaluate(inner, site)
            return None if key is None or type_ is None else ValueType("map", key.element, inner=type_)
        case Expr(head="ite", args=(Expr() as test, Expr() as yes, Expr() as no)):
            holds = _test(test, site)
            return None if holds is None else _evaluate(yes if holds else no, site)
        case Expr(head="index", args=(Expr(head="var", args=(str() as name,)), *_)):
            return _entry(_of_name(name, site))
        case Expr(head="index", args=(Expr(head="call", args=("content", Expr() as inner)), *_)):
            type_ = _evaluate(inner, site)
            return type_.inner if type_ is not None and type_.kind == "optional" else type_
    return None


def _named(name: str) -> Type:
    return ValueType("tensor", name) if name in element_types().values() else None


def _entry(type_: Type) -> Type:
    return type_.inner if type_ is not None and type_.kind == "sequence" else None


def _test(expr: Expr, site: _Site) -> bool | None:
    match expr:
        case Expr(head="given", args=(str() as name,)):
            return name in site.node.attributes or _of_name(name, site) is not None
        case Expr(head="or", args=args):
            parts = [_test(part, site) for part in args if isinstance(part, Expr)]
            return True if True in parts else None if None in parts else False
        case Expr(head="compare", args=(Expr(head="var", args=(str() as name,)), "=", Expr() as other)):
            number = _number(name, site)
            return None if number is None or other.head != "int" else number == other.args[0]
    return None


def _of_name(name: str, site: _Site) -> Type:
    """The type of an input, or of what an attribute holds."""
    for position, formal in enumerate(site.schema.inputs):
        if formal.name == name:
            return site.inputs[position] if position < len(site.inputs) else None
    attribute = site.node.attributes.get(name)
    match attribute.value if attribute is not None else None:
        case Constant() as constant:
            return ValueType("tensor", constant.element) if constant.element else None
        case ValueType() as type_:
            return _shapeless(type_)
    return None


def _number(name: str, site: _Site) -> int | None:
    attribute = site.node.attributes.get(name)
    if attribute is None and (formal := site.schema.attributes.get(name)) is not None:
        attribute = formal.default
    return attribute.value if attribute is not None and isinstance(attribute.value, int) else None


@cache
def read(text: str) -> Type:
    """The type that a schema spells: tensor(float), seq(tensor(int64)), map(int64, tensor(float))."""
    kind, _, rest = text.partition("(")
    rest = rest.removesuffix(")")
    match kind.strip():
        case "tensor" | "sparse_tensor" as name:
            return ValueType(name, rest)
        case "seq" | "optional" as name:
            inner = read(rest)
            return None if inner is None else ValueType("sequence" if name == "seq" else name, inner=inner)
        case "map":
            key, _, value = rest.partition(",")
            inner = read(value.strip())
            return None if inner is None else ValueType("map", key.strip(), inner=inner)
    return None


# ---- Operators with bodies --------------------------------------------------------------------


def _enter(walk: _Walk, body: GraphId, given: Sequence[Type]) -> list[Type]:
    """The types of the outputs of a body whose inputs get these, a declaration coming first."""
    inside = walk.model.graphs[body]
    for position, t in enumerate(inside.inputs):
        walk.types[t] = _declared_type(walk.model, t) or (given[position] if position < len(given) else None)
    _graph(walk, body)
    return [_known(walk, t) for t in inside.outputs]


def _body(walk: _Walk, n: NodeId, name: str) -> GraphId | None:
    return dict(walk.model.nodes[n].bodies).get(name)


def _if(walk: _Walk, n: NodeId, _inputs: Sequence[Type]) -> Sequence[Type]:
    bodies = [_body(walk, n, name) for name in ("then_branch", "else_branch")]
    branches = [_enter(walk, body, ()) for body in bodies if body is not None]
    count = max(map(len, branches), default=0)
    rows = [[row[i] for row in branches if i < len(row)] for i in range(count)]
    return [row[0] if all(type_ == row[0] for type_ in row) else None for row in rows]


def _loop(walk: _Walk, n: NodeId, inputs: Sequence[Type]) -> Sequence[Type]:
    body = _body(walk, n, "body")
    return [] if body is None else _enter(walk, body, (INT64, BOOL, *inputs[2:]))[1:]


def _scan(walk: _Walk, n: NodeId, inputs: Sequence[Type]) -> Sequence[Type]:
    body = _body(walk, n, "body")
    first = 1 if walk.model.nodes[n].version == 8 else 0
    return [] if body is None else _enter(walk, body, inputs[first:])


def _sequence_map(walk: _Walk, n: NodeId, inputs: Sequence[Type]) -> Sequence[Type]:
    body = _body(walk, n, "body")
    if body is None:
        return []
    items = [_entry(type_) or type_ for type_ in inputs]
    return [None if type_ is None else ValueType("sequence", inner=type_) for type_ in _enter(walk, body, items)]


_BODIES: Mapping[str, Callable[[_Walk, NodeId, Sequence[Type]], Sequence[Type]]] = {
    "If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _sequence_map,
}  # fmt: skip
"""For each operator that holds graphs the types of its outputs, and what its bodies are given."""
