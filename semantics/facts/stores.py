"""Facts about stored tensors: initializers and the tensors that attributes hold."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from ..model.graph import Constant, Model, NodeId, TensorId
from ..model.payload import elements, field, required
from .structure import Element, Key, SetTable, Table, Unknown, Value, ValueTable


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


def providers(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Stored tensors"."""
    found = cache(lambda: stores(model))

    def per_store(value: Callable[[Store], Value]) -> Callable[[], Table]:
        return lambda: ValueTable({s: value(store) for s, store in enumerate(found())})

    def owned(owner: Callable[[Store], int | None]) -> Callable[[], Table]:
        def build() -> Table:
            rows: dict[Key, tuple[Element, ...]] = {}
            for s, store in enumerate(found()):
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
    """Whether the indices of a sparse tensor are one for each value, in range and ascending. A dense one has none."""
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
