"""`sonnx certify --explain NAME`: a rule as a person reads it, and what hangs on it; or the rules of a rule set."""

from __future__ import annotations

from collections.abc import Iterator

from sonnx.spec.language import syntax
from sonnx.spec.library import Specification, specification
from sonnx.spec.render.math import formula_text

from .requirements import find, identity
from .rule_sets import RuleSetError, collects, counts, includes, reached, status


def explanation(name: str) -> str:
    """The text for `RULE`, `RULESET:RULE`, the name of a constraint or of a rule set.

    Raises RuleSetError with what there is.
    """
    known = specification()
    if name in known.profiles:
        return "\n".join(_rule_set(known.profiles[name])) + "\n"
    rules = _rules(known, name)
    if not rules and name in known.constraints:
        return "\n".join(_constraint(known, known.constraints[name])) + "\n"
    required = find(known.operators, name.removeprefix("domain:").removeprefix("sonnx-constraints:"))
    if required is not None:
        return "\n".join(_requirement(*required)) + "\n"
    if not rules:
        raise RuleSetError(f"there is no rule {name!r}; {_offer(known, name)}")
    return "\n\n".join("\n".join(_rule(known, profile, rule)) for profile, rule in rules) + "\n"


def _rule_set(profile: syntax.Profile) -> Iterator[str]:
    yield f"{profile.name}: {profile.doc}"
    for key in ("source", "note"):
        yield from (f"  {key:<11}{value}" for value in syntax.values(profile.clauses, key))
    if included := includes(profile):
        yield f"  {'includes':<11}{', '.join(included)}"
    if kind := collects(profile):
        yield f"  {'rules':<11}each `{kind}` of the operators in the model"
    for rule in profile.rules:
        yield f"  {rule.id}: {rule.title} ({_standing(rule)})"


def _standing(rule: syntax.ProfileRule) -> str:
    """The status of a rule, and when it counts."""
    given = status(rule)
    counted = counts(rule, strict=False), counts(rule, strict=True)
    said = {(True, True): "counted", (False, True): "counted in strict mode only"}.get(counted, "never counted")
    return f"{given}, {said}"


def _requirement(operator: syntax.Operator, position: int) -> Iterator[str]:
    statement = operator.statements[position]
    rule_set = "domain" if statement.kind == "require" else "sonnx-constraints"
    yield f"{rule_set} {identity(operator, position)}: {statement.doc}"
    for item in statement.clauses:
        yield f"  {item.key:<11}{item.value}"
    yield f"  source     {syntax.clause(operator.clauses, 'source') or ''}"
    yield f"  {statement.kind:<11}{formula_text(statement.expr)}"
    yield f"  (`sonnx spec show {operator.name} --version {operator.first}` prints the whole definition)"


def _rules(known: Specification, name: str) -> list[tuple[syntax.Profile, syntax.ProfileRule]]:
    wanted, _, rest = name.partition(":")
    return [
        (profile, rule)
        for profile in known.profiles.values()
        for rule in profile.rules
        if (rest and profile.name == wanted and rule.id == rest) or rule.id == name
    ]


def _offer(known: Specification, name: str) -> str:
    from difflib import get_close_matches

    ids = sorted({rule.id for profile in known.profiles.values() for rule in profile.rules} | set(known.constraints))
    rest = name.partition(":")[2] or name
    close = get_close_matches(rest, ids, n=5, cutoff=0.5) or [i for i in ids if i.startswith(rest)][:5]
    if not close:
        return "`sonnx spec check` counts them, `sonnx spec print` lists them"
    return f"close to it: {', '.join(close)}"


def _rule(known: Specification, profile: syntax.Profile, rule: syntax.ProfileRule) -> Iterator[str]:
    constraint = known.constraints[rule.constraint]
    yield f"{profile.name} {rule.id}: {rule.title}"
    for key in ("quote", "note", "variant"):
        if value := syntax.clause(rule.clauses, key):
            yield f"  {key:<11}{value}"
    yield f"  source     {syntax.clause(rule.clauses, 'source') or syntax.clause(profile.clauses, 'source') or ''}"
    yield f"  status     {_standing(rule)}"
    yield from _constraint(known, constraint)
    also = [
        f"{p.name} {r.id}"
        for p in known.profiles.values()
        for r in p.rules
        if r.constraint == constraint.name and (p.name, r.id) != (profile.name, rule.id)
    ]
    if also:
        yield f"  also       {', '.join(also)}"


def _constraint(known: Specification, constraint: syntax.Constraint) -> Iterator[str]:
    yield f"  states     {constraint.doc}"
    yield f"  formula    {constraint.name}: {formula_text(constraint.formula)}"
    yield f"  text       {constraint.span}"
    symbols = reached(constraint.formula, known.functions)
    if symbols:
        yield "  where"
    for symbol in symbols:
        word = {"define": "=", "inductive": "is the least relation with"}.get(symbol.kind, "")
        yield f"    {symbol.name} ({symbol.kind}): {symbol.doc}"
        if symbol.body is not None:
            parameters = ", ".join(parameter.name for parameter in symbol.parameters)
            yield f"      {symbol.name}({parameters}) {word} {formula_text(symbol.body)}"
