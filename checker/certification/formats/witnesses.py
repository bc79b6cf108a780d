"""How the witness of a finding is shown to a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..report import Json

SHOWN = 10
"""How many members of a list are shown."""
DATA = frozenset({"condition"})
"""What a witness holds for programs only: the message says the same in words."""


def spelled(witness: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """The parts of a witness, each on one line: a cycle as a chain of paths that ends where it begins; sizes by name;
    long lists are shortened."""
    for name, value in witness.items():
        if name in DATA:
            continue
        if isinstance(value, Mapping):
            yield from ((label, str(number)) for label, number in value.items())
            continue
        if not isinstance(value, list):
            yield name, str(value)
            continue
        shown = [str(item) for item in value[:SHOWN]]
        rest = [f"... {len(value) - SHOWN} more nodes ..."] if len(value) > SHOWN else []
        closed = [*shown, *rest, *shown[:1]] if name == "cycle" else [*shown, *rest]
        yield name, (" -> " if name == "cycle" else ", ").join(closed)
