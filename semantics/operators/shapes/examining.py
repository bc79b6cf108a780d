"""What is known while one node is examined, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sonnx.spec.language.syntax import Expr, Operator

from ...formulas.terms import Term
from ..application import AttributeData
from ..symbolic.values import Run, Value, conjuncts
from .contents import Content

HEADER = -1
"""The position of what the header says of the inputs' shapes, before the first statement."""
DECLARED = -2
"""The position of the rule that outputs have the shapes which the model declares."""
TYPED = -3
"""The position of the rule that outputs have the element types which the model declares."""
STEP = -4
"""The position of what the rule of part 3 asks of a node that holds graphs."""
FOLDED = 1 << 20
"""Constants with at most so many elements are computed where all inputs are constants."""

Symbols = Mapping[str, tuple[int, str]]
Facts = tuple[Term, ...]
Possible = Callable[[Facts, Symbols], bool]
"""Whether facts can hold together; true where that is not known."""
OPEN = "open"
"""What a split is decided as where it need not be decided."""
LARGE = 16
"""A size of more operations than this, or one with alternatives, gets a symbol that a fact defines."""


@dataclass(frozen=True, slots=True)
class Site:
    """A node with what is known of its inputs, by position; None for one that is absent. attributes: numbers may be
    symbols."""

    operator: Operator
    version: int
    inputs: tuple[Content | None, ...]
    attributes: Mapping[str, AttributeData | Term | tuple[Term, ...]]
    outputs: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """A requirement at a node. position: of the statement in the text, or HEADER. goal: None where it could not be
    brought into a formula, for a reason, which may be about a term; made: the node where data decide that, None where
    it is for another reason. facts: what holds when the requirement is asked.
    """

    position: int
    goal: Term | None
    facts: Facts = ()
    reason: str = ""
    about: Term | None = None
    made: int | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """What the text says of a site. facts: what holds behind it. symbols: that it introduces."""

    demands: tuple[Demand, ...]
    outputs: tuple[Content | None, ...]
    facts: Facts
    symbols: Symbols


@dataclass(slots=True)
class Examining:
    """An examination under way: what is in scope, and what holds by now.

    without_value: what the text names has no value for these very sizes and attributes. observe: is told each
    requirement that was evaluated, by position, before anything follows from it.
    """

    site: Site
    run: Run
    env: Mapping[str, Value]
    facts: Facts
    possible: Possible
    demands: list[Demand] = field(default_factory=list)
    violated: bool = False
    about: Term | None = None
    made: int | None = None
    without_value: bool = False
    observe: Callable[[int, Expr, Examining], None] | None = None


def learn(walk: Examining, *terms: Term) -> None:
    """Add what holds from here on."""
    known = set(walk.facts)
    new = [part for term in terms for part in conjuncts(term) if part not in known]
    if new:
        walk.facts = (*walk.facts, *dict.fromkeys(new))
        walk.run.path = walk.facts
