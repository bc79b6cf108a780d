"""Islands as rewrites of their own: where two values part, the applications down to what both rest on are the two sides
of a rewrite at the sizes that they have, and it is proved as rules of part 7 are.

Its ports are the values on which both rest, so that they are the same in both models, and large stored tensors, of
which no element is looked at. Nothing else is assumed.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import copysign, isfinite
from typing import TYPE_CHECKING, Final

import numpy as np
from sonnx.semantics.formulas.terms import Term
from sonnx.semantics.model.elements import ELEMENT_TYPES, FLOATS
from sonnx.semantics.operators.application import AttributeData
from sonnx.spec.elaborate.core import CoreRewrite
from sonnx.spec.library import AddedTextError, extended, specification

from .facts import Facts
from .normalizing import Strength
from .table import Result, Stored, Table, ValueId
from .unifying import Island, arguments

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MOST: Final = 24
"""The applications that the two sides of an island may have together."""
_LISTED: Final = 16  # a stored list with more entries is a port
_NAME: Final = "Island"
_STRENGTHS: Final = {"exact": Strength.EXACT, "reals": Strength.REALS}


@dataclass(frozen=True, slots=True)
class Shown:
    """An island that is proved. text: the rewrite; swapped: its left side is that of B. laws: that the proof uses."""

    island: Island
    strength: Strength
    text: str
    swapped: bool
    laws: tuple[str, ...]


class Unsuited(Exception):  # noqa: N818 - no error: there is no such rewrite
    """Why an island is no rewrite."""


def prove_islands(
    facts: Facts, islands: Sequence[Island], strength: Strength, deadline: float
) -> tuple[tuple[Shown, ...], str]:
    """The proofs of islands, each of which has one by a time of the monotonic clock; else none, and why. An island of
    which elements are left open is none that is proved: how they are settled may count elsewhere too."""
    shown: list[Shown] = []
    for island in islands:
        try:
            shown.append(_proved(facts, island, strength, deadline))
        except Unsuited as reason:
            return (), str(reason)
    return tuple(shown), ""


def _proved(facts: Facts, island: Island, strength: Strength, deadline: float) -> Shown:
    first = not isinstance(facts.table.values[island.pair[0]], Result)
    for swapped in (first, not first):
        text = as_text(facts, island, reals=strength is Strength.REALS, swapped=swapped)
        rule = _rule(text)
        if rule is not None:
            break
    else:
        raise Unsuited("each side reads a value that the other one does not, or it is none that a rewrite can say")
    verdict, told, laws = _judged(rule, deadline - time.monotonic())
    found = _STRENGTHS.get(verdict)
    if found is None:
        raise Unsuited(told)
    return Shown(island, found, text, swapped, laws)


def as_text(facts: Facts, island: Island, *, reals: bool, swapped: bool) -> str:
    """The island as a rewrite. reals: over the reals, but for an island that computes with floating-point numbers of
    several types: what one of them cannot hold is no matter of rounding. Raises Unsuited where it is none."""
    writing = _Writing(facts, frozenset(island.cuts))
    pair = island.pair[::-1] if swapped else island.pair
    left, right = writing.side(pair[0]), writing.side(pair[1])
    element = facts.content(pair[0]).element
    if element not in ELEMENT_TYPES or facts.content(pair[1]).element != element:
        raise Unsuited("the element type of its result is not known, or they are two")
    ports = ", ".join(writing.ports.values())
    reals &= len(writing.floats) <= 1
    return (
        f'rewrite {_NAME} ({ports}) -> Y: {element} "Two places compute the same."\n  source "the two models"\n'
        f"  from {left}\n  to {right}\n  {'in reals' if reals else 'exactly'}\n"
    )


def _rule(text: str) -> CoreRewrite | None:
    """The rewrite of a text; None where it is none, since its left side has to read all of its ports."""
    try:
        return extended(specification(), {"island.sonnx": text}).rules[_NAME]
    except AddedTextError:
        return None


def _judged(rule: CoreRewrite, seconds: float) -> tuple[str, str, tuple[str, ...]]:
    """The strength of the proof of a rewrite, why there is none, and the laws that it uses; in a process of its own,
    which is ended after some time."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return "", "this system has no processes that begin as a copy of this one", ()
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_judge, args=(rule, there), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(max(0.0, seconds)):
            return "", "no proof is found in the time that there is", ()
        verdict, told, laws = here.recv()
        return str(verdict), str(told), tuple(map(str, laws))
    except EOFError:
        return "", "the search for a proof ended early", ()
    finally:
        process.kill()
        process.join()
        here.close()


def _judge(rule: CoreRewrite, answer: Connection) -> None:
    from ..proving.suite import judged_rewrite

    verdict = judged_rewrite(rule, search=False)
    reason = next(iter(verdict.reasons), "") or "it is equal up to elements that the text leaves open only"
    if verdict.cut:  # the lists here may be longer than those that are looked at
        reason = f"it is shown for short lists only: {', '.join(verdict.cut)}"
    answer.send((verdict.strength if verdict.holds and not verdict.cut else "", reason, verdict.axioms))


# ---- The text -----------------------------------------------------------------------------------


@dataclass
class _Writing:
    """The work on one island. ports: by value, as the header has them. sizes: the names of open ones.
    floats: the floating-point types in it."""

    facts: Facts
    cuts: frozenset[ValueId]
    ports: dict[ValueId, str] = field(default_factory=dict)
    sizes: dict[Term, str] = field(default_factory=dict)
    floats: set[str] = field(default_factory=set)
    written: int = 0

    @property
    def table(self) -> Table:
        """The values of both models."""
        return self.facts.table

    def side(self, root: ValueId) -> str:
        """A side: its applications, each behind what it reads, or a port."""
        node = self.table.values[root]
        if root in self.cuts or not isinstance(node, Result):
            return f"Y = {self.operand(root)}"
        lines: dict[int, str] = {}
        waiting = [root]
        while waiting:
            made = self.table.producer(waiting[-1])
            if made is None or made in lines or waiting[-1] in self.cuts:
                waiting.pop()
                continue
            inputs = (v for v in arguments(self.table, waiting[-1]) if v not in self.cuts)
            before = [v for v in inputs if (n := self.table.producer(v)) is not None and n not in lines]
            if before:
                waiting += before
                continue
            lines[made] = self.application(made, root)
            self.written += 1
            if self.written > MOST:
                raise Unsuited(f"it has more than {MOST} applications")
        return "\n       ".join(lines.values())

    def application(self, number: int, root: ValueId) -> str:
        """An application as a line."""
        it = self.table.applications[number]
        if it.operator is None or it.operator.rule or it.bodies or it.alone or it.untyped:
            raise Unsuited(f"{it.name} in it is no function of its inputs by a text")
        if not all(it.outputs):
            raise Unsuited(f"an output of {it.name} in it is left out")
        outputs = [self.table.result(number, k) for k in range(len(it.outputs))]
        self.floats |= {c.element for v in outputs if (c := self.facts.content(v)).element in FLOATS or not c.element}
        names = ", ".join("Y" if v == root else f"V{v}" for v in outputs)
        inputs = list(it.inputs)
        while inputs and inputs[-1] is None:
            inputs.pop()
        if None in inputs:
            raise Unsuited(f"an input of {it.name} in it is left out before others")
        read = ", ".join(self.operand(v) for v in inputs if v is not None)
        stated = ", ".join(f"{name} = {_written(value)}" for name, value in sorted(it.attributes.items()))
        return f"{names} = {it.name}@{it.operator.last}({read}{f'; {stated}' if stated else ''})"

    def operand(self, value: ValueId) -> str:
        """A value that an application reads."""
        node = self.table.values[value]
        if value in self.cuts:
            return self.port(value)
        if isinstance(node, Stored):
            return _constant(node) or self.port(value)
        return f"V{value}" if isinstance(node, Result) else self.port(value)

    def port(self, value: ValueId) -> str:
        """A port for a value."""
        content = self.facts.content(value)
        if content.element not in ELEMENT_TYPES or content.shape is None:
            raise Unsuited("the type or the number of axes of a value below it is not known")
        self.floats |= {content.element} & FLOATS
        sizes = (n if isinstance(n, int) else self.sizes.setdefault(n, f"n{len(self.sizes)}") for n in content.shape)
        self.ports[value] = f"X{value}: {content.element}[{', '.join(map(str, sizes))}]"
        return f"X{value}"


def _constant(node: Stored) -> str:
    """A small stored number or list as an application without inputs; "" for another tensor."""
    array = node.array
    if array.ndim > 1 or not 0 < array.size <= _LISTED or array.dtype not in (np.float32, np.int64):
        return ""
    key = f"value_{'int' if array.dtype == np.int64 else 'float'}{'s' * array.ndim}"
    items: Mapping[str, AttributeData] = {key: array.item() if array.ndim == 0 else tuple(array.tolist())}
    try:
        return f"Constant@25(; {key} = {_written(items[key])})"
    except Unsuited:
        return ""


def _written(value: AttributeData) -> str:
    """An attribute in the language of the texts."""
    match value:
        case int():
            return str(value)
        case float() if isfinite(value) and (value != 0 or copysign(1, value) > 0):
            digits = format(Decimal(value), "f")
            return digits if "." in digits else f"{digits}.0"
        case str() if value.isascii() and value.isprintable() and not set(value) & {'"', "\\"}:
            return f'"{value}"'
        case tuple() if value:
            return f"[{', '.join(map(_written, value))}]"
        case _:
            raise Unsuited("an attribute in it cannot be written in a rewrite")
