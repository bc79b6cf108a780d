"""A rule as two definitions, its instances, and what is found out about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from sonnx.spec.elaborate.core import CoreOperator

Claim = Literal["exact", "allowed", "reals", "never"]
"""The same bits; a result that the left side may have; equal over the reals; false."""
STRENGTHS = ("exact", "allowed", "reals")
"""What can be proved, the strongest first: each entails those behind it."""
PROVED, REFUTED, OPEN = "proved", "refuted", "open"
RANKS = 4
"""The number of axes up to which a name with dots is tried."""
LISTED = 4
"""So many entries has a list that an attribute or a stored value gives, at most."""
SEVERAL = 3
"""A variadic input is tried with so many tensors, at most."""


@dataclass(frozen=True, slots=True)
class Rule:
    """left, right: definitions with the same ports and attributes; what the left one requires is the condition.

    assumed: the names of requirements of the left that a rule over the reals has beside its conditions.
    """

    name: str
    claim: Claim
    left: CoreOperator
    right: CoreOperator
    stored: tuple[str, ...] = ()
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Instance:
    """ranks: of the names with dots and of the ports without a shape. counts: of variadic inputs. given: which optional
    ports are there. types: of the type variables; a name of its own where any type is meant. every: the ranks are open.
    """

    ranks: Mapping[str, int]
    counts: Mapping[str, int]
    given: Mapping[str, bool]
    types: Mapping[str, str]
    every: bool = False

    @property
    def label(self) -> str:
        """In words."""
        told = [f"{name}: {'any number of' if self.every else rank} axes" for name, rank in self.ranks.items()]
        told += [f"{name}: {count} tensors" for name, count in self.counts.items()]
        told += [f"{'with' if there else 'without'} {name}" for name, there in self.given.items()]
        return ", ".join((*told, *(f"{name} = {kind}" for name, kind in self.types.items() if not is_open(kind))))


OPEN_TYPE = "type."


def is_open(kind: str) -> bool:
    """True of the name that stands for any element type."""
    return kind.startswith(OPEN_TYPE)


def shapes(rule: Rule, most: int = RANKS) -> Iterator[Instance]:
    """The instances without their types."""
    ranks: dict[str, int] = {}
    for port in rule.left.inputs:
        if port.shape is None:
            ranks[port.name] = most
        fixed = sum(1 for item in port.shape or () if isinstance(item, int) or not item[1])
        for item in port.shape or ():
            if not isinstance(item, int) and item[1]:
                ranks[item[0]] = min(ranks.get(item[0], most), max(0, most - fixed))
    counts = [port.name for port in rule.left.inputs if port.mark == "*"]
    optional = [port.name for port in rule.left.inputs if port.mark == "?"]
    for chosen in product(*(range(limit + 1) for limit in ranks.values())):
        for several in product(range(1, SEVERAL + 1), repeat=len(counts)):
            for there in product((True, False), repeat=len(optional)):
                yield Instance(
                    dict(zip(ranks, chosen, strict=True)),
                    dict(zip(counts, several, strict=True)),
                    dict(zip(optional, there, strict=True)),
                    {},
                )


def types(rule: Rule) -> list[dict[str, str]]:
    """The choices of element types that the rule admits."""
    allowed = {it.name: it.allowed for it in rule.left.types}
    return [dict(zip(allowed, chosen, strict=True)) for chosen in product(*allowed.values())]


def any_type(rule: Rule) -> dict[str, str]:
    """Names that stand for any element types."""
    return {it.name: it.allowed[0] if len(it.allowed) == 1 else f"{OPEN_TYPE}{it.name}" for it in rule.left.types}


@dataclass(frozen=True, slots=True)
class Witness:
    """An input on which the sides differ. inputs: element type, shape and elements as texts, row-major, of each port;
    attributes as they are stated. left, right: what each side gives, or why nothing. place: the output and the index.
    """

    inputs: Mapping[str, tuple[str, tuple[int, ...], tuple[str, ...]]]
    attributes: Mapping[str, object]
    left: str
    right: str
    place: str = ""

    def as_data(self) -> dict[str, object]:
        """As JSON writes it."""
        inputs = {
            name: {"type": kind, "shape": list(shape), "elements": list(elements)}
            for name, (kind, shape, elements) in self.inputs.items()
        }
        attributes = {name: list(v) if isinstance(v, tuple) else v for name, v in self.attributes.items()}
        return {"inputs": inputs, "attributes": attributes, "left": self.left, "right": self.right, "at": self.place}

    @property
    def elements(self) -> int:
        """How many elements the inputs have."""
        return sum(len(elements) for _, _, elements in self.inputs.values())

    @property
    def words(self) -> str:
        """On one line."""
        told = [
            f"{name}: {kind}[{', '.join(map(str, shape))}] = [{', '.join(elements)}]"
            for name, (kind, shape, elements) in self.inputs.items()
        ]
        told += [f"{name} = {list(v) if isinstance(v, tuple) else v}" for name, v in self.attributes.items()]
        at = f" at {self.place}" if self.place else ""
        return f"{'; '.join(told)}: left {self.left}, right {self.right}{at}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """verdict: proved, refuted or open. strength: of a proof. ranks: the combinations of numbers of axes up to `most`
    that are possible; every: the proof is one for any number of axes. instances: with types and cases. types: "any", or
    those that were taken one by one. seconds: of the processor. reasons: why it is open. axioms: the laws that the
    proof uses. cut: lists of which only the shorter ones were tried.
    """

    rule: str
    claim: Claim
    verdict: str
    strength: str = ""
    ranks: int = 0
    most: int = RANKS
    every: bool = False
    instances: int = 0
    seconds: float = 0.0
    types: str = ""
    reasons: tuple[str, ...] = ()
    axioms: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    witness: Witness | None = None
    asked: int = field(default=0, compare=False)

    @property
    def axes(self) -> str:
        """The numbers of axes for which a proof is one, in words."""
        return "every" if self.every else f"0-{self.most}"

    @property
    def holds(self) -> bool:
        """What the rule claims is shown."""
        if self.claim == "never":
            return self.verdict == REFUTED
        return self.verdict == PROVED and STRENGTHS.index(self.strength) <= STRENGTHS.index(self.claim)
