"""G as data, the facts that the text states its rules over, the meanings of its expressions, and the machine.

`load`, `run` and what they take and give are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .machine.execution import Limits, Run, run
    from .machine.schedule import Schedule, parse_schedule
    from .model.loader import load, load_proto
    from .operators.application import Stuck

__all__ = ["Limits", "Run", "Schedule", "Stuck", "load", "load_proto", "parse_schedule", "run"]

_MODULES = {
    "Limits": ".machine.execution",
    "Run": ".machine.execution",
    "Schedule": ".machine.schedule",
    "Stuck": ".operators.application",
    "load": ".model.loader",
    "load_proto": ".model.loader",
    "parse_schedule": ".machine.schedule",
    "run": ".machine.execution",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)
