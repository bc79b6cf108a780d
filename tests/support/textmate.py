"""The colours that a TextMate grammar gives a text: as much of it as the grammars here use, in Python's expressions.

Held against the library of VS Code in the campaign (`test_extension.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

Grammar = Mapping[str, Any]
Token = tuple[int, int, str]
"""First column, end, and the innermost scope; "" for none."""

compiled = cache(re.compile)


def tokens(grammar: Grammar, lines: Sequence[str]) -> Iterator[list[Token]]:
    """For each line its tokens, which cover it."""
    open_rules: list[Grammar] = []
    for line in lines:
        scopes = [""] * len(line)
        at = 0
        while True:
            inside = open_rules[-1] if open_rules else {"patterns": grammar["patterns"]}
            for column in range(at, len(line)):
                scopes[column] = inside.get("name", "")
            best = _first(grammar, inside, line, at)
            if best is None:
                break
            rule, match = best
            ends = rule is inside
            key = "endCaptures" if ends else "beginCaptures" if "begin" in rule else "captures"
            _paint(scopes, match, rule.get("name", inside.get("name", "")), rule.get(key, rule.get("captures", {})))
            if ends:
                open_rules.pop()
            elif "begin" in rule:
                open_rules.append(rule)
            elif match.end() == at:
                break
            at = match.end()
        yield list(_runs(scopes))


def _first(grammar: Grammar, inside: Grammar, line: str, at: int) -> tuple[Grammar, re.Match[str]] | None:
    """The rule that matches next, the end of the open one before others, then in order."""
    found: list[tuple[int, int, Grammar, re.Match[str]]] = []
    rules = list(_flat(grammar, inside.get("patterns", ())))
    patterns = [(inside, inside["end"])] if "end" in inside else []
    patterns += [(rule, rule.get("match", rule.get("begin"))) for rule in rules]
    for order, (rule, pattern) in enumerate(patterns):
        match = compiled(pattern).search(line, at)
        if match is not None:
            found.append((match.start(), order, rule, match))
    if not found:
        return None
    _, _, rule, match = min(found, key=lambda it: it[:2])
    return rule, match


def _flat(grammar: Grammar, patterns: Sequence[Grammar]) -> Iterator[Grammar]:
    for it in patterns:
        rule = grammar["repository"][it["include"][1:]] if "include" in it else it
        if "match" in rule or "begin" in rule:
            yield rule
        else:
            yield from _flat(grammar, rule["patterns"])


def _paint(scopes: list[str], match: re.Match[str], name: str, captures: Grammar) -> None:
    for group, scope in [(0, name), *((int(group), it["name"]) for group, it in captures.items())]:
        for column in range(match.start(group), match.end(group)):
            scopes[column] = scope


def _runs(scopes: Sequence[str]) -> Iterator[Token]:
    first = 0
    for column in range(1, len(scopes) + 1):
        if column == len(scopes) or scopes[column] != scopes[first]:
            yield first, column, scopes[first]
            first = column
