"""The waivers of a certificate, read again: which places of which rules they accept, and which rules admit none.

What is said of them here is derived from the text of the specification; reason, name and last day are the project's own
and are shown, not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from . import paths
from .text import Text

Object = Mapping[str, Any]


class Waivers:
    """Those of one certificate, over a text."""

    def __init__(self, predicate: Object, text: Text) -> None:
        self._stated: list[Object] = list(predicate.get("waivers", ()))
        self._rules: list[Object] = list(predicate["rules"])
        self._text = text
        self._used: set[int] = set()

    def fitting(self, rule_set: str, rule: str, places: Iterable[str]) -> int:
        """The number of places of a rule that each waiver accepts, the first that fits."""
        own = [(k, _pattern(it["place"])) for k, it in enumerate(self._stated) if _names(it, rule_set, rule)]
        if not own:
            return 0
        first = [next((k for k, pattern in own if pattern.fullmatch(place)), None) for place in places]
        self._used.update(k for k in first if k is not None)
        return len(first) - first.count(None)

    def objections(self) -> Iterator[str]:
        """The mistakes of the waivers themselves, when all places are counted: each must be about rules that admit
        one, and be in use."""
        for position, it in enumerate(self._stated):
            shown = f"the waiver of {paths.quoted(it['rule'])}"
            if position not in self._used:
                yield f"{shown} accepts no place"
            for rule in (rule for rule in self._rules if _names(it, rule["rule_set"], rule["id"])):
                declared = self._text.declaration(rule["constraint"])
                if declared is not None and "unwaivable" in declared.clauses:
                    yield f"{shown}: the rule {rule['id']} cannot be waived: {declared.clauses['unwaivable']}"
            if not all(it[key].strip() for key in ("reason", "who")):
                yield f"{shown} gives no reason, or nobody's name"
            if not _is_day(it["until"]):
                yield f"{shown} names no last day"


def _names(waiver: Object, rule_set: str, rule: str) -> bool:
    return waiver["rule"] in (rule, f"{rule_set} {rule}")


def accepted(rule: Object) -> bool:
    """A rule of a certificate is violated, and each of its places is stated as waived."""
    return bool(rule["verdict"] == "violated" and rule.get("waived", 0) == rule["total"] > 0)


def told(waiver: Object) -> str:
    """A waiver in one line."""
    ended = _is_day(waiver["until"]) and date.fromisoformat(waiver["until"]) < date.today()
    until = f"until {waiver['until']}" + (", which is past" if ended else "")
    return _plain(f"waiver: {waiver['rule']} at {waiver['place']}, {until}, by {waiver['who']}: {waiver['reason']}")


def _is_day(text: str) -> bool:
    try:
        return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _pattern(text: str) -> re.Pattern[str]:
    """`*` stands for any characters, `?` for one."""
    return re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


def _plain(text: str) -> str:
    """The text with every character that a terminal could act on as an escape."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
