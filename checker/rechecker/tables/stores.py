"""Facts about stored tensors: initializers, and the tensors that attributes of nodes hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from ..attributes import Kinds, kind, valued
from ..facts import Facts
from ..stored import Stored, home, needed, size, sound
from ..values import UNKNOWN, Find, Key, Value
from .graph import Makers

TENSORS = (Kinds.TENSOR, Kinds.TENSORS, Kinds.SPARSE_TENSOR, Kinds.SPARSE_TENSORS)


@dataclass(frozen=True, slots=True)
class Store:
    """A stored tensor, its name, the tensor that it initializes or the node that holds it."""

    name: str
    place: str
    tensor: Stored
    initializes: int | None = None
    holder: int | None = None


def stores(f: Facts) -> Iterator[Store]:
    """All stored tensors: initializers by graph, then those of attributes by node."""
    for t, tensor in f.initializers():
        named = f.reading.tensors[t]
        yield Store(named.name, named.path, tensor, initializes=t)
    for n, node in enumerate(f.reading.nodes):
        for name, attribute in node.attributes.items():
            kind_ = kind(f, attribute)
            if kind_ not in TENSORS:
                continue
            if not valued(f, attribute):
                if f.source == "listing" and kind_ == Kinds.TENSOR:
                    yield Store(name, node.path, Stored("", ()), holder=n)
                continue
            match kind_:
                case Kinds.TENSOR:
                    yield Store(name, node.path, f.dense(attribute.t), holder=n)
                case Kinds.SPARSE_TENSOR:
                    yield Store(name, node.path, f.sparse(attribute.sparse_tensor), holder=n)
                case Kinds.TENSORS:
                    for i, proto in enumerate(attribute.tensors):
                        yield Store(f"{name}[{i}]", node.path, f.dense(proto), holder=n)
                case _:
                    for i, it in enumerate(attribute.sparse_tensors):
                        yield Store(f"{name}[{i}]", node.path, f.sparse(it), holder=n)


def makers(f: Facts) -> Makers:
    """The tables of the section "Stored tensors"."""
    listed = cache(lambda: tuple(stores(f)))

    def of_store(row: Callable[[Store], Value]) -> Callable[[], Find]:
        def make() -> Find:
            return dict[Key, Value]((s, row(store)) for s, store in enumerate(listed())).get

        return make

    def owned(owner: Callable[[Store], int | None]) -> Callable[[], Find]:
        def make() -> Find:
            rows: dict[Key, tuple[int, ...]] = {}
            for s, store in enumerate(listed()):
                number = owner(store)
                if number is not None:
                    rows[number] = (*rows.get(number, ()), s)
            return rows.get

        return make

    def elided(store: Store) -> bool:
        return not store.tensor.values.form

    def element(store: Store) -> Value:
        values = store.tensor.values
        return UNKNOWN if not values.element and elided(store) else values.element

    def required(store: Store) -> Value:
        values = store.tensor.values
        return needed(values.element, values.form, size(values.dims))

    def indices(store: Store) -> Value:
        answer = sound(store.tensor)
        return UNKNOWN if answer is None else answer

    return {
        "initial": owned(lambda store: store.initializes),
        "held": owned(lambda store: store.holder),
        "store_name": of_store(lambda store: store.name),
        "store_element": of_store(element),
        "store_sparse": of_store(lambda store: store.tensor.parts is not None),
        "store_rank": of_store(lambda store: len(store.tensor.dims)),
        "least_dimension": of_store(lambda store: min((*store.tensor.dims, *store.tensor.values.dims), default=1)),
        "elements": of_store(lambda store: size(store.tensor.values.dims)),
        "field": of_store(lambda store: store.tensor.values.form),
        "typed_field": of_store(lambda store: home(store.tensor.values.element)),
        "entries": of_store(lambda store: UNKNOWN if elided(store) else store.tensor.values.entries),
        "needed_entries": of_store(required),
        "indices_sound": of_store(indices),
    }
