"""Which rules a caller asks for: names of rule sets, their variants, and what counts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sonnx.spec.language.syntax import Constraint, Expr, FunctionDeclaration, Profile, ProfileRule, clause, values
from sonnx.spec.library import Specification

DEFAULT = ("sonnx",)
NEWEST = "newest"
UNCOUNTED = frozenset({"TBC", "defective", "open", "reported"})
"""Statuses that are reported and not counted, unless strict."""
ADVISORY = "advisory"
"""Reported and never counted: advice of a standard that it does not demand."""


class RuleSetError(Exception):
    """A name that is no rule set, variant or rule; the message lists what there is."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A rule set with a variant chosen ("" when it has none) and the rules that are active in it, in document order.

    included_by: the rule sets through which it is judged, empty when it was asked for by its name.
    """

    profile: Profile
    variant: str
    rules: tuple[ProfileRule, ...]
    included_by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that a caller asks for it by."""
        return f"{self.profile.name}@{self.variant}" if self.variant not in ("", NEWEST) else self.profile.name


def variants(profile: Profile) -> tuple[str, ...]:
    """The variants that a profile distinguishes, the newest first; empty when it distinguishes none."""
    named = {v for rule in profile.rules if (v := clause(rule.clauses, "variant"))}
    return tuple(sorted(named, key=lambda v: (v != NEWEST, v)))


def select(profile: Profile, variant: str) -> RuleSet:
    """The rules without a variant and those of `variant`."""
    active = tuple(r for r in profile.rules if clause(r.clauses, "variant") in (None, variant))
    return RuleSet(profile, variant, active)


def resolve(specification: Specification, names: Sequence[str]) -> tuple[RuleSet, ...]:
    """The rule sets asked for, without repetition, in the order asked, each with those that it includes behind it;
    `all` stands for every one.

    Raises RuleSetError.
    """
    profiles = specification.profiles
    expanded = [n for name in names for n in (sorted(profiles) if name == "all" else [name])]
    asked = {name.partition("@")[0] for name in expanded}
    including: dict[str, list[str]] = {}
    chosen: dict[str, RuleSet] = {}
    for full, includer in _with_included(expanded, specification):
        name, _, variant = full.partition("@")
        if name not in profiles:
            raise RuleSetError(f"there is no rule set {name!r}; there are: {', '.join(sorted(profiles))}, all")
        known = variants(profiles[name])
        if variant and variant not in known:
            offer = ", ".join(known) or "none"
            raise RuleSetError(f"rule set {name} has no variant {variant!r}; it has: {offer}")
        rule_set = select(profiles[name], variant or (NEWEST if known else ""))
        if name in chosen and chosen[name] != rule_set:
            raise RuleSetError(f"rule set {name} is asked for in two variants; ask for one of them")
        chosen[name] = rule_set
        if includer and includer not in including.setdefault(name, []):
            including[name].append(includer)
    return tuple(
        rule_set if name in asked else replace(rule_set, included_by=tuple(including[name]))
        for name, rule_set in chosen.items()
    )


def _with_included(names: Sequence[str], specification: Specification) -> Iterator[tuple[str, str]]:
    """Each name, and behind it those that its rule set includes, directly or not, with the one that includes them."""
    for full in names:
        yield full, ""
        profile = specification.profiles.get(full.partition("@")[0])
        for includer, name in _included(profile, specification) if profile is not None else ():
            yield name, includer


def _included(profile: Profile, specification: Specification) -> Iterator[tuple[str, str]]:
    for name in includes(profile):
        yield profile.name, name
        yield from _included(specification.profiles[name], specification)


def includes(profile: Profile) -> tuple[str, ...]:
    """The names of the rule sets that a rule set includes directly."""
    return values(profile.clauses, "includes")


def others(specification: Specification, asked: Sequence[RuleSet]) -> tuple[RuleSet, ...]:
    """The rule sets neither asked for nor included, newest variant, by name."""
    named = {rule_set.profile.name for rule_set in asked}
    every = resolve(specification, ["all"])
    return tuple(rule_set for rule_set in every if rule_set.profile.name not in named)


def status(rule: ProfileRule) -> str:
    """The status that the rule set gives the rule."""
    return clause(rule.clauses, "status") or "current"


def counts(rule: ProfileRule, *, strict: bool) -> bool:
    """The rule's verdict enters the verdict of its rule set."""
    given = status(rule)
    return given != ADVISORY and (strict or given not in UNCOUNTED)


def constraints(specification: Specification, rule_sets: Sequence[RuleSet]) -> tuple[Constraint, ...]:
    """The constraints that the rules select, each once, in order of first use."""
    names = dict.fromkeys(rule.constraint for rule_set in rule_sets for rule in rule_set.rules)
    return tuple(specification.constraints[name] for name in names)


def collects(profile: Profile) -> str:
    """The kind of statements of operators that are rules of this rule set, require or restrict; "" for none."""
    return clause(profile.clauses, "collects") or ""


def digest(specification: Specification, profile: Profile) -> str:
    """SHA-256 over the texts that fix a rule set's meaning: its own file, all of the graph part, and the operators'
    texts where it takes in their statements. What users add has digests of its own."""
    own = profile.span.file
    others = ("profiles/", "6-") if collects(profile) else ("profiles/", "5-operators/", "6-")
    added = dict(specification.added)
    relevant = sorted(
        name for name in specification.digests if name not in added and (name == own or not name.startswith(others))
    )
    lines = "".join(f"{name} {specification.digests[name]}\n" for name in relevant)
    return hashlib.sha256(f"{lines}{added.get(own, '')}".encode()).hexdigest()


def reached(formula: Expr, functions: Mapping[str, FunctionDeclaration]) -> list[FunctionDeclaration]:
    """The functions that a formula comes to, directly and through definitions, in the order of their first use."""
    seen: dict[str, FunctionDeclaration] = {}
    agenda = [formula]
    for expr in agenda:
        name = str(expr.args[0]) if expr.head == "call" else ""
        if name in functions and name not in seen:
            seen[name] = functions[name]
            body = functions[name].body
            agenda += [body] if body is not None else []
        agenda += expr.children()
    return list(seen.values())
