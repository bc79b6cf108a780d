"""For which sizes a model is well formed, as one sentence of a report."""

from __future__ import annotations

import re

from sonnx.spec.inert import inert

from ..report import Domain


def sentence(found: Domain) -> str:
    """The sizes for which the model is well formed, as far as sizes decide it; nothing where it has none."""
    if "false" in found.conditions:
        which = "is well formed for no sizes" if found.sizes else "is not well formed"
        return f"The model {which}: a run gets stuck at a requirement that fails."
    if not found.sizes:
        return ""
    bounded = {match[1] for condition in found.conditions if (match := re.fullmatch(r"(.+) (?:=|>=) \d+", condition))}
    ranges = [_range(*size) for size in found.sizes if size[0] not in bounded]
    said = ", ".join([*map(inert, ranges), *found.conditions])
    every = "all " if not found.conditions else ""
    return f"As far as sizes decide it, the model is well formed for {every}{said}."


def _range(label: str, low: int, high: int | None) -> str:
    return f"{label} >= {low}" if high is None else f"{label} = {low}" if low == high else f"{low} <= {label} <= {high}"
