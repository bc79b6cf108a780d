"""A question about a model: rule sets, those judged besides, and how far to go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sonnx.spec.language.syntax import Constraint
from sonnx.spec.library import Specification

from . import requirements
from . import rule_sets as sets

Sizes = Mapping[str, tuple[int, int | None]]
"""The least and the greatest value (None: any) of symbolic sizes by name."""


class NoSizesError(sets.RuleSetError):
    """Sizes are given to rule sets that do not depend on them."""


@dataclass(frozen=True, slots=True)
class Question:
    """The rule sets asked for with those that they include, and the remaining ones that are judged besides.

    timeout: seconds for each solver query. strict: what free sizes decide counts as violated, what data decide as
    undecided, and rules with status TBC, defective, open or reported count.
    """

    specification: Specification
    asked: tuple[sets.RuleSet, ...]
    remaining: tuple[sets.RuleSet, ...]
    timeout: float
    strict: bool
    sizes: Sizes

    @property
    def rule_sets(self) -> tuple[sets.RuleSet, ...]:
        """All that are judged, those asked for first."""
        return (*self.asked, *self.remaining)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints that some rule of them demands, each once."""
        return sets.constraints(self.specification, self.rule_sets)

    @property
    def requirements(self) -> bool:
        """Some of them take in the requirements of operators."""
        return requirements.collected(self.rule_sets)


def question(
    rules: Sequence[str],
    specification: Specification,
    *,
    timeout: float,
    strict: bool,
    others: bool,
    sizes: Sizes | None,
) -> Question:
    """The question behind the arguments of `certify`. Raises RuleSetError for names that no rule set has,
    NoSizesError for sizes that no rule set depends on."""
    asked = sets.resolve(specification, rules)
    remaining = sets.others(specification, asked) if others else ()
    made = Question(specification, asked, remaining, timeout, strict, sizes or {})
    if sizes and not made.requirements:
        raise NoSizesError(
            f"sizes ({', '.join(sorted(sizes))}) have no effect on {', '.join(it.name for it in asked)}, which take in"
            " no requirements of operators: leave them out, or ask for domain too"
        )
    return made
