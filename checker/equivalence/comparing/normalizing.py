"""Normal forms: applications rewritten at their root, arguments first, until no rule fires.

Four ways to rewrite are known here. Evaluation: an application to stored tensors is what the ieee interpretation gives,
unless it is stuck, draws, or leaves an element open. A branch: an If whose condition is stored is that branch
(Step/if). Sizes: an integer result all of which follows from known sizes. And the rules that a caller hands over, which
are proved elsewhere. Each firing is noted once, with its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.model.schemas import may_draw, schema_of
from sonnx.semantics.model.values import Array, one_bool
from sonnx.semantics.operators.application import Application, AttributeData, Outputs
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.operators.shapes.contents import SMALL
from sonnx.spec.library import specification

from .facts import Facts
from .table import ApplicationId, Applied, Table, ValueId, full_attributes, leaves_open

Values = tuple[ValueId | None, ...]


class Strength(IntEnum):
    """How strongly two values are shown to be equal, the strongest first."""

    EXACT = 0
    ALLOWED = 1
    REALS = 2


@dataclass(frozen=True, slots=True)
class Firing:
    """A rule that fired. application: at whose root; values: what its outputs are instead. facts: in words, what was
    used besides the shape of the graph. assumed: what the rule assumes of values, which nobody has looked at."""

    rule: str
    strength: Strength
    application: ApplicationId
    values: Values
    facts: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


EVALUATED: Final = "evaluation"
BRANCH: Final = "branch"
SIZED: Final = "sizes"
OF_THE_TABLE: Final = frozenset({EVALUATED, BRANCH, SIZED})
"""What needs no rule of part 7."""
MOST_BYTES: Final = 1 << 32
"""An application whose result is larger is not evaluated."""
_DEPTH: Final = 64  # rules that fire inside what a rule has made, before no more are asked


Rules = Callable[["Normalizer", ApplicationId], Firing | None]
"""Rules that are proved: the first that fires at an application, none weaker than the normalizer's strength. What it
makes is applied through the normalizer."""


def no_rules(_normal: Normalizer, _application: ApplicationId) -> Firing | None:
    """No rule at all."""
    return None


@dataclass
class Normalizer:
    """Normal forms over one table. strength: the weakest that a rule may have. firings: by application.

    weak: how many rules that hold over the reals alone are at work. rounded: what was evaluated in their course, by the
    value it has; numbers that differ may be one after it.
    """

    table: Table
    facts: Facts
    strength: Strength
    rules: Rules = no_rules
    firings: dict[ApplicationId, Firing] = field(default_factory=dict)
    weak: int = 0
    rounded: dict[ValueId, set[ApplicationId]] = field(default_factory=dict)
    _normal: dict[ApplicationId, Values] = field(default_factory=dict)
    _depth: int = 0

    def normal(self, application: ApplicationId) -> Values:
        """The outputs of an application whose arguments are in normal form, in normal form."""
        known = self._normal.get(application)
        if known is None:
            fired = self._evaluated(application) or self._branch(application) or self._sized(application)
            if fired is None and self._depth < _DEPTH:
                self._depth += 1
                fired = self.rules(self, application)
                self._depth -= 1
            known = self.table.results(application) if fired is None else fired.values
            if fired is not None:
                self.firings[application] = fired
            self._normal[application] = known
        return known

    def apply(
        self,
        name: str,
        version: int,
        attributes: Mapping[str, AttributeData],
        inputs: Sequence[ValueId | None],
        outputs: Sequence[bool],
    ) -> Values:
        """What a rule makes: an operator applied to values in normal form, in normal form itself."""
        operator = specification().meanings.at(name, version)
        asked = tuple(outputs)
        if operator is None:
            raise Unsupported(f"the specification does not define {name}-{version}")
        apart = self.table.apart() if may_draw(operator) or leaves_open(operator, asked) else 0
        full = full_attributes(name, version, attributes)
        number = self.table.apply(Applied(operator, name, version, full, tuple(inputs), asked, alone=apart))
        values = self.normal(number)
        if self.weak and number in self.firings and self.firings[number].rule == EVALUATED:
            for value in values:
                if value is not None:
                    self.rounded.setdefault(value, set()).add(number)
        return values

    def _evaluated(self, number: ApplicationId) -> Firing | None:
        it = self.table.applications[number]
        if it.operator is None or it.operator.rule or may_draw(it.operator):
            return None
        arrays: list[Array | None] = []
        for value in it.inputs:
            array = self.table.array(value)
            if value is not None and array is None:
                return None
            arrays.append(array)
        asked = Application(it.name, it.version, tuple(arrays), it.attributes, it.outputs, MOST_BYTES)
        try:
            done = ieee.apply(asked)
        except (Unsupported, MemoryError):
            return None
        if not isinstance(done, Outputs) or any(mask is not None and mask.any() for mask in done.free):
            return None
        made: list[ValueId | None] = []
        for result, named in zip(done.values, it.outputs, strict=False):
            if named and not isinstance(result, np.ndarray):
                return None
            made.append(self.table.stored(result) if isinstance(result, np.ndarray) and named else None)
        return Firing(EVALUATED, Strength.EXACT, number, tuple(made)) if len(made) == len(it.outputs) else None

    def _branch(self, number: ApplicationId) -> Firing | None:
        it = self.table.applications[number]
        if it.operator is None or it.name != "If" or not it.inputs:
            return None
        flag = one_bool(self.table.array(it.inputs[0]))
        chosen = "then_branch" if flag else "else_branch"
        body = next((body for body in it.bodies if body.attribute == chosen), None)
        if flag is None or body is None or len(body.outputs) < len(it.outputs):
            return None
        made = tuple(body.outputs[k] if named else None for k, named in enumerate(it.outputs))
        return Firing(BRANCH, Strength.EXACT, number, made, (f"the condition is {str(flag).lower()}",))

    def _sized(self, number: ApplicationId) -> Firing | None:
        """An integer result, all of which follows from sizes that are known."""
        it = self.table.applications[number]
        schema = schema_of(it.name, it.version)
        if it.operator is None or it.operator.rule or schema is None or it.alone > 0:
            return None
        integers = all(formal.types == ("tensor(int64)",) for formal in schema.outputs)
        small = [self.facts.content(v) for v in it.inputs[:2] if v is not None and self.table.array(v) is None]
        if not integers and not any(
            c.element in ("int32", "int64") and c.size is not None and c.size <= SMALL for c in small
        ):
            return None
        known = [self.facts.content(v) if v is not None else None for v in self.table.results(number)]
        if any(c is not None and c.data is None for c in known):
            return None
        made = tuple(None if c is None or c.data is None else self.table.stored(c.data) for c in known)
        return Firing(SIZED, Strength.EXACT, number, made, ("all sizes that it tells are known",))
