"""Which theorem needs which rule: a table of theorems and the rules of a rule set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonnx.spec.language.syntax import Profile

from ..gates.judging import Judged
from ..kernel.theory import Theory

LEGEND = {
    "needed": "without the rule a model refutes the theorem",
    "used": "the proof uses the rule: a model refutes an obligation of it without the rule",
    "-": "redundant: the theorem is proved without the rule",
    "?": "unknown",
}
"""The legend of the cells."""


def columns(rules: Profile) -> dict[str, str]:
    """The constraints of a rule set, each with the ids of its rules."""
    made: dict[str, str] = {}
    for rule in rules.rules:
        made[rule.constraint] = f"{made[rule.constraint]}, {rule.id}" if rule.constraint in made else rule.id
    return made


def cell(judgement: Judged, constraint: str) -> str:
    """The part of a constraint in a theorem."""
    if judgement.result.theorem is None:
        return "?"
    need = next((it for it in judgement.needs if (it.kind, it.label) == ("constraint", constraint)), None)
    if need is None:
        return "?" if constraint in judgement.result.stated.needs else "-"
    return {"redundant": "-", "unknown": "?"}.get(need.status, need.status)


def outside(theory: Theory, judgement: Judged, rules: Profile) -> tuple[str, ...]:
    """The constraints that a theorem needs and the rule set does not have."""
    held = columns(rules)
    return tuple(it for it in judgement.result.stated.needs if it in theory.text.constraints and it not in held)


def rows(theory: Theory, judgements: Sequence[Judged], rules: Profile) -> Iterator[tuple[str, ...]]:
    """The head, then one row for each theorem: its name, a cell for each constraint, what the rule set lacks."""
    yield ("theorem", *columns(rules), "also")
    for judgement in judgements:
        also = ", ".join(outside(theory, judgement, rules))
        yield (judgement.result.stated.name, *(cell(judgement, it) for it in columns(rules)), also)


def as_text(theory: Theory, judgements: Sequence[Judged], rules: Profile) -> Iterator[str]:
    """The table with numbers for the constraints, which are listed below it."""
    head, *body = rows(theory, judgements, rules)
    short = ("theorem", *(str(k) for k in range(1, len(head) - 1)), "also")
    widths = [max(len(row[k]) for row in (short, *body)) for k in range(len(short))]
    for row in (short, *body):
        yield "  ".join(part.ljust(width) for part, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    for number, (constraint, ids) in enumerate(columns(rules).items(), 1):
        yield f"{number:>3} {constraint} ({ids})"
    yield "also: constraints that the theorem needs and the rule set lacks"
    yield from (f"{sign}: {meaning}" for sign, meaning in LEGEND.items())


def as_markdown(theory: Theory, judgements: Sequence[Judged], rules: Profile) -> Iterator[str]:
    """The table as Markdown."""
    head, *body = rows(theory, judgements, rules)
    titles = [head[0], *(f"{name} ({columns(rules)[name]})" for name in head[1:-1]), head[-1]]
    for row in (titles, ["---"] * len(titles), *body):
        yield f"| {' | '.join(row)} |"
    yield ""
    yield from (f"- {sign}: {meaning}" for sign, meaning in LEGEND.items())
