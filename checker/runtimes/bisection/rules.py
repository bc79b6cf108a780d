"""The rewrites of part 7 that an optimizer of a runtime is said to make: those whose `source` or `note` names it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sonnx.spec.library import specification

WORD = re.compile(r"\w+")
ENDING = re.compile(r"(?:L\d+|_\w*ExecutionProvider)$")
"""What the name of an optimizer says besides: its level, and whose nodes it takes."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite. claim: exact, allowed, reals or never; sentence: what it says; reason: why it is never right, "" for
    others. operators: that its left side applies.
    """

    name: str
    claim: str
    sentence: str
    reason: str
    operators: frozenset[str]


def named_rules(pass_name: str) -> tuple[Rule, ...]:
    """The rewrites whose source or note names an optimizer, in the order of the text."""
    text, wanted = specification(), _title(pass_name)
    made = []
    for name, rewrite in text.rewrites.items():
        words = (word for it in rewrite.clauses if it.key in ("source", "note") for word in WORD.findall(it.value))
        if wanted not in map(_title, words):
            continue
        operators = frozenset(core.name for core in text.rules[name].left.applications)
        made.append(Rule(name, rewrite.claim, rewrite.doc, rewrite.reason, operators))
    return tuple(made)


def refuting(names: Iterable[str], operators: frozenset[str]) -> tuple[Rule, ...]:
    """Of the rewrites that name one of the optimizers, those that are never right, and then those that hold over the
    reals alone. operators: that the optimizers took away; a rewrite that applies others is none of theirs here."""
    rules = [it for name in names for it in named_rules(name) if it.operators <= operators]
    return tuple(dict.fromkeys(it for claim in ("never", "reals") for it in rules if it.claim == claim))


def _title(name: str) -> str:
    return ENDING.sub("", name).replace("_", "")
