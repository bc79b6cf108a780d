"""Verdicts and obligations of a certificate's rule sets, and of the whole, as they follow from those of its rules."""

from __future__ import annotations

from typing import Any

WORST = ("VIOLATES", "UNDECIDED", "CONFORMS")


def aggregate(statement: Any) -> None:
    """Writes them into the statement. Raises LookupError, TypeError, StopIteration or AttributeError where it has not
    the form for it."""
    predicate = statement["predicate"]
    own, owed = {}, {}
    for entry in predicate["rule_sets"]:
        counted = [r for r in predicate["rules"] if r["rule_set"] == entry["name"] and r["counted"]]
        verdicts = {r["verdict"] for r in counted}
        violated = "violated" in verdicts or (entry["strict"] and "conditional" in verdicts)
        undecided = "unknown" in verdicts or (entry["strict"] and "obligation" in verdicts)
        own[entry["name"]] = "VIOLATES" if violated else "UNDECIDED" if undecided else "CONFORMS"
        owed[entry["name"]] = sum(r["obligations"] for r in counted)
    for entry in predicate["rule_sets"]:
        parts = [entry["name"], *(name for name in entry["includes"] if name in own)]
        entry["verdict"] = next(v for v in WORST if v in {own[part] for part in parts})
        entry["obligations"] = sum(owed[part] for part in parts)
    predicate["verdict"] = next(v for v in WORST if v in own.values())
    predicate["obligations"] = sum(owed.values())
