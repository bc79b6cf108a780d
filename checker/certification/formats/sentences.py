"""For which sizes a model is well formed, and what its verdict leaves open, in words."""

from __future__ import annotations

from ..report import Domain, Report


def sentence(found: Domain) -> str:
    """The sizes for which the model is well formed, as far as sizes decide it; nothing where it has none."""
    if "false" in found.conditions:
        which = "is well formed for no sizes" if found.sizes else "is not well formed"
        return f"The model {which}: a run gets stuck at a requirement that fails."
    if not found.sizes:
        return ""
    said = ", ".join(found.limited(found.conditions, every=True))
    every = "all " if not found.conditions else ""
    return f"As far as sizes decide it, the model is well formed for {every}{said}."


def provided(conditions: tuple[str, ...], obligations: int) -> str:
    """What a verdict CONFORMS leaves open: conditions on sizes, obligations on data."""
    sizes = f" for {', '.join(conditions)}" if conditions else ""
    return sizes + (f", with {counted(obligations, 'obligation')} on data" if obligations else "")


def meaningless(report: Report) -> str:
    """The operators of which the specification gives no meaning."""
    names = report.domain.without_meaning if report.domain is not None else ()
    listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f": the specification gives no meaning to {listed}" if names else ""


def counted(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
