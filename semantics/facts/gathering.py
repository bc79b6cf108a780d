"""All facts of a model gathered into one structure, and those among them that only ONNX's own rules speak of."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from sonnx.spec.language.syntax import Sort

from ..model.elements import elements, field, required
from ..model.graph import Constant, Definition, Model, NodeId, TensorId
from ..model.path import operator_text, quote
from ..model.schemas import newest_ir_version, newest_opset, normal_domain, since_version
from .graphs import functions, graph_tables, operator_tables, ports
from .structure import Element, Key, SetTable, Structure, Table, Unknown, Value, ValueTable
from .types import ClaimsSource, Differences, differences, schema_tables, typing_tables, value_type_tables

# Facts about the definitions of model-local functions, whether anything calls them or not.
# Of several definitions of one function the first counts.


Operator = tuple[str, str]
"""Domain and name."""

MEMBERS = ("idle", "unimported", "deprecated")
"""Sets of nodes that are stated of the nodes of a definition too; the name of the fact there ends with `_in`."""

NAMES = ("left_empty", "unlisted_attributes", "miskinded_attributes", "absent_attributes", "repeated_attributes",
         "valueless_attributes")  # fmt: skip
"""Sets of names of a node that are stated of the nodes of a definition too."""


def function_tables(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Definitions of functions"."""
    first: dict[tuple[str, str, str], Definition] = {}
    for key, definition in zip(model.functions, model.definitions, strict=True):
        first.setdefault(key, definition)
    definitions = tuple(first.values())
    own = {(domain, name) for domain, name, _ in first}
    outside = dict(model.opsets)
    for definition in model.definitions:
        outside = {**definition.opsets, **outside}

    @cache
    def compared() -> tuple[Differences, ...]:
        return tuple(differences(definition.nodes, first, listing=False) for definition in definitions)

    @cache
    def applied() -> tuple[tuple[Operator, ...], ...]:
        return tuple(tuple(sorted({(it.domain, it.op_type) for it in row.nodes})) for row in definitions)

    def versions(opsets: Callable[[Definition], Mapping[str, int]]) -> Callable[[], Table]:
        return lambda: ValueTable(
            {
                (f, operator_text(*it)): since_version(*it, opsets(definitions[f]).get(it[0])) or 0
                for f, row in enumerate(applied())
                for it in row
            }
        )

    def unknown(f: int) -> Iterable[str]:
        opsets = definitions[f].opsets
        for it in applied()[f]:
            if it not in own and newest_opset(it[0]) and since_version(*it, opsets.get(it[0])) is None:
                yield operator_text(*it)

    def misfits(f: int, n: NodeId) -> bool:
        node = definitions[f].nodes[n]
        called = first[node.domain, node.op_type, node.overload]
        return len(node.inputs) > called.inputs or len(node.outputs) > called.outputs

    def rows(row: Callable[[int], Iterable[str]]) -> Callable[[], Table]:
        return lambda: SetTable({f: tuple(row(f)) for f in range(len(definitions))})

    def paths(nodes: Callable[[int], Iterable[NodeId]]) -> Callable[[], Table]:
        return rows(lambda f: (definitions[f].nodes[n].path for n in nodes(f)))

    def names(fact: str) -> Callable[[], Table]:
        return rows(
            lambda f: (
                f"{name} of {definitions[f].nodes[n].path}"
                for n, row in compared()[f].sets.get(fact, {}).items()
                if isinstance(n, int)
                for name in row
            )
        )

    def members(fact: str) -> Callable[[], Table]:
        return paths(lambda f: compared()[f].members.get(fact, ()))

    return {
        "applied": rows(lambda f: (operator_text(*it) for it in applied()[f])),
        "version_in": versions(lambda definition: definition.opsets),
        "version_outside": versions(lambda _: outside),
        "unknown_operators": rows(unknown),
        "repeated_formals": rows(lambda f: definitions[f].repeated),
        "respelled_in": rows(lambda f: definitions[f].respelled),
        "early_in": rows(lambda f: definitions[f].early),
        "reassigned_in": rows(lambda f: definitions[f].reassigned),
        "never_written_in": rows(lambda f: definitions[f].never_written),
        "miscounted_in": paths(lambda f: compared()[f].limits),
        "misfitting_in": paths(
            lambda f: (n for n in compared()[f].members.get("misfitting_calls", ()) if misfits(f, n))
        ),
        **{f"{fact}_in": members(fact) for fact in MEMBERS},
        **{f"{fact}_in": names(fact) for fact in NAMES},
    }


# Facts about stored tensors: initializers and the tensors that attributes hold.


@dataclass(frozen=True, slots=True)
class Store:
    """A stored tensor with the tensor or node that it belongs to; `path` is the place of that."""

    name: str
    path: str
    constant: Constant
    tensor: TensorId | None = None
    node: NodeId | None = None

    @property
    def values(self) -> Constant:
        """The dense part that holds the elements."""
        return self.constant.parts[0] if self.constant.parts is not None else self.constant


def stores(model: Model) -> tuple[Store, ...]:
    """All stored tensors: initializers by graph, then attributes by node."""
    return (*_initializers(model), *_held(model))


def _initializers(model: Model) -> Iterator[Store]:
    for graph in model.graphs:
        for tensor, constant in (*graph.initializers, *graph.sparse_initializers):
            value = model.tensors[tensor]
            yield Store(value.name, value.path, constant, tensor=tensor)


def _held(model: Model) -> Iterator[Store]:
    for n, node in enumerate(model.nodes):
        for name, attribute in node.attributes.items():
            if attribute.value is None and attribute.kind == "TENSOR" and model.source == "listing":
                yield Store(name, node.path, Constant("", ()), node=n)
            elif isinstance(attribute.value, Constant):
                yield Store(name, node.path, attribute.value, node=n)
            elif isinstance(attribute.value, tuple):
                for i, value in enumerate(attribute.value):
                    if isinstance(value, Constant):
                        yield Store(f"{name}[{i}]", node.path, value, node=n)


def store_tables(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Stored tensors"."""
    listed = cache(lambda: stores(model))

    def per_store(value: Callable[[Store], Value]) -> Callable[[], Table]:
        return lambda: ValueTable({s: value(store) for s, store in enumerate(listed())})

    def owned(owner: Callable[[Store], int | None]) -> Callable[[], Table]:
        def build() -> Table:
            rows: dict[Key, tuple[Element, ...]] = {}
            for s, store in enumerate(listed()):
                number = owner(store)
                if number is not None:
                    rows[number] = (*rows.get(number, ()), s)
            return SetTable(rows)

        return build

    return {
        "initial": owned(lambda store: store.tensor),
        "held": owned(lambda store: store.node),
        "store_name": per_store(lambda store: store.name),
        "store_element": per_store(_element),
        "store_sparse": per_store(lambda store: store.constant.sparse),
        "store_rank": per_store(lambda store: len(store.constant.dims)),
        "least_dimension": per_store(lambda store: min((*store.constant.dims, *store.values.dims), default=1)),
        "elements": per_store(lambda store: elements(store.values.dims)),
        "field": per_store(lambda store: store.values.form),
        "typed_field": per_store(lambda store: field(store.values.element)),
        "entries": per_store(_entries),
        "needed_entries": per_store(_needed),
        "indices_sound": per_store(lambda store: indices_sound(store.constant)),
    }


def _elided(store: Store) -> bool:
    """The source leaves the value out; a file that merely has no data names the field that would hold it."""
    return store.values.form == ""


def _element(store: Store) -> Value:
    if not store.values.element and _elided(store):
        return Unknown(f"the source leaves out the value of {store.path}")
    return store.values.element


def _entries(store: Store) -> Value:
    return Unknown(f"the source leaves out the value of {store.path}") if _elided(store) else store.values.stored


def _needed(store: Store) -> Value:
    return required(store.values.element, store.values.form, elements(store.values.dims))


# ---- Sparse tensors ---------------------------------------------------------------------------


def indices_sound(constant: Constant) -> Value:
    """True if the indices of a sparse tensor are one for each value, in range and ascending. A dense one has none."""
    if constant.parts is None:
        return Unknown("the source leaves out the indices") if constant.sparse else True
    values, indices = constant.parts
    if len(values.dims) != 1:
        return False
    count, shape = values.dims[0], indices.dims
    if count == 0 and elements(shape) in (0, 1) and not indices.stored:
        return True
    if indices.element != "int64" or shape not in ((count,), (count, len(constant.dims))):
        return False
    if indices.data is None and indices.storage is not None:
        return Unknown("the indices are not read")
    size = elements(shape)
    if not isinstance(indices.data, bytes) or len(indices.data) != 8 * size:
        return False
    return _ascending(struct.unpack(f"<{size}q", indices.data), constant.dims, linear=len(shape) == 1)


def _ascending(numbers: tuple[int, ...], dims: tuple[int, ...], *, linear: bool) -> bool:
    width = 1 if linear else len(dims)
    bounds = (elements(dims),) if linear else dims
    last: tuple[int, ...] | None = None
    for start in range(0, len(numbers), max(width, 1)):
        index = numbers[start : start + width]
        if not all(0 <= i < bound for i, bound in zip(index, bounds, strict=True)):
            return False
        if last is not None and index <= last:
            return False
        last = index
    return True


# The facts of `spec/1-syntax-onnx.sonnx`: those about the model, its graphs and names here, the others by concept.
# Each provider makes one pass when one of its facts is first asked for.


IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def onnx_tables(model: Model, claims: ClaimsSource) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact that only ONNX's own rules speak about.

    claims: the result of shape inference, a function that waits for it, or None when it did not run.
    """
    return {
        **_model(model),
        **_graphs(model),
        **_order(model),
        **function_tables(model),
        **schema_tables(model),
        **typing_tables(model, claims),
        **store_tables(model),
    }


def onnx_places(model: Model) -> Mapping[str, Callable[[Element], str]]:
    """For each sort of this section the path of an element; an import is a thing of the whole model."""
    numbered = cache(lambda: stores(model))
    return {"Import": lambda _import: "/", "Store": lambda store: numbered()[int(store)].path}


def single(value: Value) -> Callable[[], Table]:
    """The table of a fact without arguments."""
    return lambda: ValueTable({(): value})


def _model(model: Model) -> dict[str, Callable[[], Table]]:
    silent = Unknown("a printed listing states no versions") if model.source == "listing" else None
    domains = [] if silent else [normal_domain(domain) for domain, _ in model.opsets]
    keys = Counter(key for key, _ in model.metadata)
    return {
        "ir_version": single(silent or model.ir_version),
        "newest_ir_version": single(newest_ir_version()),
        "states_versions": single(silent or True),
        "imports": lambda: SetTable({(): tuple(range(len(domains)))}),
        "import_domain": lambda: ValueTable(dict(enumerate(domains))),
        "import_version": lambda: ValueTable({i: model.opsets[i][1] for i in range(len(domains))}),
        "newest_version": lambda: ValueTable(
            {i: newest_opset(domain) or model.opsets[i][1] for i, domain in enumerate(domains)}
        ),
        "same_domain": lambda: SetTable(
            {i: (first,) for i, domain in enumerate(domains) if (first := domains.index(domain)) < i}
        ),
        "metadata_keys": lambda: SetTable({(): tuple(keys)}),
        "metadata_entries": lambda: ValueTable({key: count for key, count in keys.items()}),  # noqa: C416
    }


def _graphs(model: Model) -> dict[str, Callable[[], Table]]:
    @cache
    def annotated() -> Counter[TensorId]:
        counts: Counter[TensorId] = Counter()
        for graph in model.graphs:
            counts.update(tensor for tensor, _ in graph.value_infos)
        return Counter({tensor: count for tensor, count in counts.items() if count > 1})

    return {
        "graph_name": lambda: ValueTable(
            {
                g: graph.name or (Unknown("the listing shows no name") if model.source == "listing" else "")
                for g, graph in enumerate(model.graphs)
            }
        ),
        "nameless_entries": lambda: ValueTable({g: _nameless(model, g) for g in range(len(model.graphs))}),
        "beyond_c90": lambda: ValueTable({g: count for g, count in enumerate(_beyond_c90(model))}),  # noqa: C416
        "namesakes": lambda: SetTable(_namesakes(model)),
        "annotations": lambda: SetTable({(): tuple(annotated())}),
        "annotation_entries": lambda: ValueTable({t: count for t, count in annotated().items()}),  # noqa: C416
    }


def _nameless(model: Model, number: int) -> int:
    graph = model.graphs[number]
    stored = (tensor for tensor, _ in (*graph.initializers, *graph.sparse_initializers))
    return sum(not model.tensors[tensor].name for tensor in (*graph.inputs, *graph.outputs, *stored))


def _beyond_c90(model: Model) -> list[int]:
    counts = [0] * len(model.graphs)
    for tensor in model.tensors:
        counts[tensor.graph] += bool(tensor.name) and not IDENTIFIER.fullmatch(tensor.name)
    return counts


def _namesakes(model: Model) -> dict[Key, tuple[Element, ...]]:
    first: dict[tuple[int, tuple[str, ...], str], NodeId] = {}
    later: dict[Key, tuple[Element, ...]] = {}
    for n, node in enumerate(model.nodes):
        if node.name:
            other = first.setdefault((node.graph, node.calls, node.name), n)
            if other != n:
                later[n] = (other,)
    return later


def _order(model: Model) -> dict[str, Callable[[], Table]]:
    @cache
    def positions() -> dict[NodeId, int]:
        return {n: position for graph in model.graphs for position, n in enumerate(graph.nodes)}

    @cache
    def late() -> dict[NodeId, tuple[NodeId, ...]]:
        return _late(model, positions())

    def involved() -> dict[Key, Value]:
        members = {n for row in late().items() for n in (row[0], *row[1])}
        return {n: positions()[n] for n in sorted(members)}

    return {"late": lambda: SetTable(dict(late().items())), "position": lambda: ValueTable(involved())}


def _late(model: Model, positions: Mapping[NodeId, int]) -> dict[NodeId, tuple[NodeId, ...]]:
    writers: dict[TensorId, list[NodeId]] = {}
    for n, node in enumerate(model.nodes):
        for tensor in node.outputs:
            if tensor is not None:
                writers.setdefault(tensor, []).append(n)
    rows = {}
    for n, node in enumerate(model.nodes):
        place = positions[n]
        row = {
            m: None
            for tensor in (*node.inputs, *node.captures)
            if tensor is not None
            for m in writers.get(tensor, ())
            if positions[m] >= place and model.nodes[m].graph == node.graph
        }
        if row:
            rows[n] = tuple(row)
    return rows


# The facts of a model: everything that `spec/1-syntax.sonnx` declares as fact, gathered into one structure.


ASKING = frozenset((
    "rank", "dim", "axes",
    "type_name", "ill_typed", "admitted_types", "split_variables", "contradictions", "open_types", "has_type",
    "inference_ran", "objections", "refused", "admitted", "objection",
))  # fmt: skip
"""The facts that ask for the claims of shape inference whatever the model; others do where it says too little."""


def structure(model: Model, claims: ClaimsSource = None) -> Structure:
    """The structure of a model. claims: what shape inference says about its types; without it those stay unknown."""
    providers = {
        **graph_tables(model),
        **operator_tables(model, claims),
        **onnx_tables(model, claims),
        **value_type_tables(model),
    }
    return Structure(providers, _place(model))


def _place(model: Model) -> Callable[[Sort, Element], str]:
    """The path of an element; a function by its name, any other value as it is written."""
    numbered = cache(lambda: ports(model))
    places: Mapping[str, Callable[[Element], str]] = {
        "Graph": lambda g: model.graphs[int(g)].path,
        "Node": lambda n: model.nodes[int(n)].path,
        "Tensor": lambda t: model.tensors[int(t)].path,
        "Port": lambda p: _port(model, *numbered()[int(p)]),
        "Function": lambda f: _function(*functions(model)[int(f)]),
        "Text": lambda text: quote(str(text)),
        **onnx_places(model),
    }

    def place(sort: Sort, element: Element) -> str:
        spell = places.get(sort.name)
        if spell is not None:
            return spell(element)
        return str(element).lower() if isinstance(element, bool) else str(element)

    return place


def _port(model: Model, node: int, position: int) -> str:
    return f"{model.nodes[node].path}>{position}"


def _function(domain: str, name: str, overload: str) -> str:
    text = operator_text(domain, name)
    return f"{text}:{operator_text('', overload)}" if overload else text
