"""The scripts that `--dump-smt` writes: one or two for each rule, standard SMT-LIB 2.6."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sonnx.semantics.facts.inference.model import Claims
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.formulas import ground
from sonnx.semantics.model.graph import Model
from sonnx.semantics.operators.shapes.contents import STEP
from sonnx.spec.language.syntax import Constraint, clause
from sonnx.spec.library import Specification

from ...smt import solver
from ...smt.prover import Prover
from ..preconditions import TIMEOUT, Decisions
from ..requirements import WHOLE, identity
from ..rule_sets import RuleSet, collects
from . import wholes
from .formulas import InexpressibleError
from .places import Places, script
from .scripts import About, Script, scripts

QUANTIFIED = 500
"""Up to so many nodes a rule is written as the quantified formula of the text; a larger model gets the ground form."""


def dump(
    folder: Path,
    model: Model,
    specification: Specification,
    rule_sets: Sequence[RuleSet],
    constraints: Sequence[Constraint],
    facts: Structure,
    decisions: Decisions | None,
    claims: Callable[[], Claims],
) -> None:
    """Write the scripts of all rules. decisions: of the requirements of operators, where a rule set takes these in.
    claims: what ONNX's shape inference says."""
    folder.mkdir(parents=True, exist_ok=True)
    for constraint in constraints:
        said = about(model, constraint.name, rule_sets)
        try:
            written = quantified(model, constraint, specification, facts, said)
        except InexpressibleError:
            written = ()
        for query in written:
            _write(folder / f"{query.name}.smt2", query.text)
        if not written:
            solver.dump(ground.query(constraint, specification.functions, facts, named=True), folder, facts.place)
    for rule_set in rule_sets:
        if decisions is not None and collects(rule_set.profile):
            _requirements(folder, model, rule_set, decisions, claims)


def quantified(
    model: Model, constraint: Constraint, specification: Specification, facts: Structure, said: About
) -> tuple[Script, ...]:
    """The scripts of a rule with its quantifiers; none for a large model. Raises InexpressibleError."""
    if len(model.nodes) > QUANTIFIED:
        return ()
    return scripts(constraint, specification.functions, facts, said)


def about(model: Model, name: str, rule_sets: Sequence[RuleSet]) -> About:
    """The words of the comments of a constraint's script: what they say of model and rules."""
    demands = tuple(
        f"{rule_set.name} {rule.id} ({rule.title}): {clause(rule.clauses, 'quote') or 'no quote'}"
        for rule_set in rule_sets
        for rule in rule_set.rules
        if rule.constraint == name
    )
    files = model.files[:1]
    return About(files[0].name if files else "", files[0].sha256 if files else "", demands)


def _requirements(
    folder: Path, model: Model, rule_set: RuleSet, decisions: Decisions, claims: Callable[[], Claims]
) -> None:
    examination, kind = decisions.examination, collects(rule_set.profile)
    places = Places(examination, Prover(TIMEOUT))
    keys = {(it.operator, it.position) for it in examination.instances} | set(examination.met)
    said = about(model, "", ())
    lines = [f"Model: {said.model}, sha256 {said.digest or 'none'}"]
    lines += [f"{symbol} is the size that the model calls {label}" for symbol, label in examination.sizes.items()]
    made = wholes.made(decisions, kind)
    whole = [made] if made.places or kind == "require" else []
    if kind == "require":
        whole += [
            wholes.defined(examination),
            wholes.shapes(examination),
            wholes.types(examination),
            wholes.inference(examination, claims()),
        ]
    for rule in whole:
        text = script(f"{rule_set.name} {rule.name}", rule.words, rule.places, model, [*lines, *rule.notes])
        _write(folder / f"{rule_set.name}.{rule.name}.smt2", text)
    for operator, position in sorted(keys, key=lambda key: (key[0].name, key[0].first, key[1])):
        own = "require" if position < 0 else operator.statements[position].kind
        if own != kind or position in WHOLE:
            continue
        name = identity(operator, position)
        statement = operator.statements[position] if position >= 0 else None
        words = operator.doc if position == STEP else "The inputs have shapes that go together."
        words, span = (words, operator.span) if statement is None else (statement.doc, statement.span)
        text = script(f"{rule_set.name} {name}", words, places.of(operator, position), model, [f"Text: {span}", *lines])
        _write(folder / f"{rule_set.name}.{name.replace('/', '.')}.smt2", text)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="ascii", newline="\n")
