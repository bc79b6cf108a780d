"""The rechecker's own witnesses, for comparison: of each kind there is exactly one for a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from .facts import Facts
from .schema import determinism, operator, schema_of
from .walks import NOWHERE, executable, founded, nearest


def _least(nodes: Sequence[Sequence[int]], f: Facts) -> list[int]:
    return [min(nodes[t], default=NOWHERE) for t in range(len(f.ports))]


def _operators(f: Facts) -> list[list[object]]:
    """Name, since_version, determinism and number of every operator that occurs."""
    found: Counter[tuple[str, int, str]] = Counter()
    for node in f.reading.nodes:
        schema = schema_of(node)
        found[(operator(node), schema.since_version if schema else NOWHERE, determinism(node))] += 1
    return [[*key, found[key]] for key in sorted(found)]


WITNESSES: Mapping[str, Callable[[Facts], dict[str, object]]] = {
    "places": lambda f: {},
    "producers": lambda f: {"tensors": _least(f.writers, f)},
    "consumers": lambda f: {"tensors": _least(f.readers, f)},
    "order": lambda f: {"nodes": founded(f)},
    "derivation": lambda f: {"nodes": executable(f)},
    "paths": lambda f: {"next": nearest(f, forward=True), "previous": nearest(f, forward=False)},
    "table": lambda f: {"operators": _operators(f)},
}
