"""How the witness of a finding is shown to a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonnx.spec.terminal import few

from ..report import Domain, Json, Report

# ---- Verdicts -----------------------------------------------------------------------------------


def sentence(domain: Domain) -> str:
    """The sizes for which the model is well formed, as far as sizes decide it; nothing where it has none."""
    if "false" in domain.conditions:
        which = "is well formed for no sizes" if domain.sizes else "is not well formed"
        return f"The model {which}: a run gets stuck at a requirement that fails."
    if not domain.sizes:
        return ""
    said = ", ".join(domain.limited(domain.conditions, every=True))
    every = "all " if not domain.conditions else ""
    return f"As far as sizes decide it, the model is well formed for {every}{said}."


def provided(conditions: tuple[str, ...], obligations: int) -> str:
    """The parts that a verdict CONFORMS leaves open: conditions on sizes, obligations on data."""
    sizes = f" for {', '.join(conditions)}" if conditions else ""
    return sizes + (f", with {counted(obligations, 'obligation')} on data" if obligations else "")


def meaningless(report: Report) -> str:
    """The operators of which the specification gives no meaning."""
    names = report.domain.without_meaning if report.domain is not None else ()
    return f": the specification gives no meaning to {few(names, LISTED)}" if names else ""


def counted(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# ---- Witnesses ----------------------------------------------------------------------------------


LISTED = 6
"""How many rules or operators are named."""
SHOWN = 10
"""How many members of a list are shown."""
DATA = frozenset({"condition"})
"""The parts of a witness for programs only: the message says the same in words."""


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
