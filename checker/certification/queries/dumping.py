"""The scripts that `--dump-smt` writes: one or two for each rule, standard SMT-LIB 2.6."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.inference.model import Claims
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.formulas.evaluate import constraints as direct
from sonnx.semantics.formulas.evaluate.fixpoints import Worklist, universe
from sonnx.semantics.formulas.ground import constraints as ground
from sonnx.semantics.model.graph import Model
from sonnx.semantics.operators.shapes.contents import STEP
from sonnx.spec.language.printer import print_expression
from sonnx.spec.language.syntax import INT, Constraint, Sort, clause
from sonnx.spec.library import Specification

from ...definedness.proving import Prover
from ...smt import solver
from ..preconditions import TIMEOUT, Decisions
from ..requirement_names import identity
from ..requirements import WHOLE
from ..rule_sets import RuleSet, collects
from . import wholes
from .formulas import Context, Functions, InexpressibleError, Uses, both, either, formula, plain, quantified, sort_name
from .places import Places, script
from .tables import Tables, declared, function, keys_of, relation, tabulate

# ---- Scripts of constraints ---------------------------------------------------------------------


HOLDS, VIOLATED = "holds", "violated"


@dataclass(frozen=True, slots=True)
class Script:
    """A question. shows: what the answer unsat says of the rule, holds or violated. text: standard SMT-LIB 2.6."""

    name: str
    shows: str
    text: str


@dataclass(frozen=True, slots=True)
class About:
    """The comments of a script. demands: the rules that are this constraint, each with its words."""

    model: str = ""
    digest: str = ""
    demands: tuple[str, ...] = ()


def scripts(constraint: Constraint, functions: Functions, structure: Structure, about: About) -> tuple[Script, Script]:
    """The two questions about a rule: can facts and the negated rule hold together, can facts and the rule?"""
    return (
        Script(constraint.name, HOLDS, _Writing(functions, structure).script(constraint, about, HOLDS)),
        Script(
            f"{constraint.name}.formula", VIOLATED, _Writing(functions, structure).script(constraint, about, VIOLATED)
        ),
    )


@dataclass(slots=True)
class _Writing:
    functions: Functions
    structure: Structure
    uses: Uses = field(default_factory=Uses)
    tables: Tables = field(init=False)

    def __post_init__(self) -> None:
        self.tables = Tables(self.functions, self.structure, self.uses)

    def script(self, constraint: Constraint, about: About, shows: str) -> str:
        """The text."""
        context = Context(self.functions, self.uses, {}, lambda name, args: f"({name} {args})")
        rule = formula(constraint.formula, context)
        predicates = self._predicates()
        claims = [self._claim(name, shows) for name in predicates]
        tabulate(self.tables)
        for name in predicates:
            self._tables_of(name, shows)
        claim = ["(define-fun fixpoint () Bool\n  " + both(claims) + ")"] if claims else []
        asked = {
            (HOLDS, False): "(not rule)",
            (HOLDS, True): "(not (and fixpoint rule))",
            (VIOLATED, False): "rule",
            (VIOLATED, True): "(or (not fixpoint) rule)",
        }[shows, bool(claims)]
        symbols = [f"(declare-fun {name} () {sort_name(sort)})" for name, sort in self.uses.symbols.items()]
        sections = [
            ("Sorts and their elements.", list(declared(self.tables))),
            ("Symbols of which nothing is known.", symbols),
            ("Facts of the model. What no line speaks of is open.", self.tables.lines),
            ("Definitions of the text.", list(self.uses.definitions.values())),
            (FIXPOINT[shows], claim),
            ("The rule.", [f"(define-fun rule () Bool\n  {rule})"]),
            ("The question.", [f"(assert {asked})", "(check-sat)"]),
        ]
        body = "".join(f"\n; ---- {title}\n" + "\n".join(lines) + "\n" for title, lines in sections if lines)
        head = "".join(f"; {line}\n" for line in self._header(constraint, about, shows, bool(claims)))
        return f"{head}(set-info :smt-lib-version 2.6)\n(set-logic UFLIA)\n{body}"

    def _header(self, constraint: Constraint, about: About, shows: str, inductive: bool) -> Iterator[str]:
        yield f"{constraint.name}: {plain(constraint.doc)}"
        yield f"Text: {constraint.span}"
        yield f"  {plain(print_expression(constraint.formula))}"
        yield from (f"Rule {plain(words)}" for words in about.demands)
        if about.model:
            yield f"Model: {plain(about.model)}, sha256 {about.digest or 'none'}"
        contrary = "rule" if shows == VIOLATED else "negated rule"
        yield f"Question: can the facts and the {contrary} hold together?"
        yield f"unsat: the rule {'is violated' if shows == VIOLATED else HOLDS}."
        other = f"{constraint.name}.smt2" if shows == VIOLATED else f"{constraint.name}.formula.smt2"
        yield f"sat: {other} may be unsat; where that is sat too, the model leaves the rule open."
        yield "(To answer sat, cvc5 may need its option --mbqi.)"
        if inductive:
            yield FIXPOINT[shows]

    # ---- Fixpoints --------------------------------------------------------------------------

    def _predicates(self) -> list[str]:
        """The inductive predicates that the rule comes to, with those that they are defined by."""
        found: dict[str, None] = {}
        agenda = list(self.uses.inductive)
        while agenda:
            name = agenda.pop(0)
            if name not in found:
                found[name] = None
                self._claim(name, HOLDS)  # notes what the body mentions
                agenda += self.uses.inductive
        return list(found)

    def _claim(self, name: str, shows: str) -> str:
        """That the table is derived, by ranks that go down, or that it is closed."""
        declaration = self.functions[name]
        context = Context(self.functions, self.uses, {})
        bound: list[tuple[str, Sort]] = []
        for parameter in declaration.parameters:
            spelled, context = context.bind(parameter.name, parameter.sort)
            bound.append((spelled, parameter.sort))
        key = " ".join(spelled for spelled, _ in bound)

        def lower(other: str, args: str) -> str:
            return f"(and ({other} {args}) (< ({other}.rank {args}) ({name}.rank {key})))"

        atom = lower if shows == HOLDS else lambda other, args: f"({other} {args})"
        inner = Context(self.functions, self.uses, context.scope, atom)
        body = formula(declaration.body, inner)
        elements = [self._universe(spelled, sort) for spelled, sort in bound]
        if shows == HOLDS:
            return quantified("forall", bound, [f"({name} {key})"], body)
        return quantified("forall", bound, [*elements, body], f"({name} {key})")

    def _universe(self, variable: str, sort: Sort) -> str:
        """That a variable is an element of a sort."""
        return either(
            [f"(= {variable} {self.tables.spell(x, sort)})" for x in universe(sort, self.functions, self.structure)]
        )

    def _tables_of(self, name: str, shows: str) -> None:
        """The table of an inductive predicate: what must hold with ranks, or what may hold."""
        sorts = [parameter.sort for parameter in self.functions[name].parameters]
        domains = [universe(sort, self.functions, self.structure) for sort in sorts]
        if len(domains) != 1:
            raise InternalError(f"{name} has several arguments")
        if shows == HOLDS:
            order = direct.fixpoint(name, self.functions, self.structure)
        else:
            worklist = Worklist(self.functions, self.structure, possible=True)
            worklist.ask((name, key) for key in domains[0])
            order = {key: rank for (symbol, key), rank in worklist.order.items() if symbol == name}
        relation(self.tables, name, [], sorts[0], {(): tuple(keys_of(key)[0] for key in order)} if order else {})
        if shows == HOLDS:
            ranks = {keys_of(key): str(rank) for key, rank in order.items()}
            function(self.tables, f"{name}.rank", sorts, INT, ranks)


FIXPOINT = {
    HOLDS: "Least fixpoints are given by ranks: `fixpoint` says that every member of a table is derived from members "
    "of lower rank, so that it is in the least fixpoint; whatever else might be in it can only help the rule.",
    VIOLATED: "Least fixpoints are given by closed sets: `fixpoint` says that all that is derived from members of a "
    "table is a member, so that the least fixpoint lies within; what is in it can only help the rule.",
}
"""How a script states a fixpoint."""


# ---- All scripts of a model ---------------------------------------------------------------------


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
            written = quantified_scripts(model, constraint, specification, facts, said)
        except InexpressibleError:
            written = ()
        for found in written:
            _write(folder / f"{found.name}.smt2", found.text)
        if not written:
            solver.dump(ground.query(constraint, specification.functions, facts), folder, facts.place)
    for rule_set in rule_sets:
        if decisions is not None and collects(rule_set.profile):
            _requirements(folder, model, rule_set, decisions, claims)


def quantified_scripts(
    model: Model, constraint: Constraint, specification: Specification, facts: Structure, said: About
) -> tuple[Script, ...]:
    """The scripts of a rule with its quantifiers; none for a large model. Raises InexpressibleError."""
    if len(model.nodes) > QUANTIFIED:
        return ()
    return scripts(constraint, specification.functions, facts, said)


def about(model: Model, name: str, rule_sets: Sequence[RuleSet]) -> About:
    """The comments of a constraint's script on model and rules."""
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
    found, kind = decisions.examination, collects(rule_set.profile)
    places = Places(found, Prover(TIMEOUT))
    keys = {(it.operator, it.position) for it in found.instances} | set(found.held)
    said = about(model, "", ())
    lines = [f"Model: {said.model}, sha256 {said.digest or 'none'}"]
    lines += [f"{symbol} is the size that the model calls {label}" for symbol, label in found.sizes.items()]
    made = wholes.made(decisions, kind)
    whole = [made] if made.places or kind == "require" else []
    if kind == "require":
        whole += [wholes.defined(found), wholes.shapes(found), wholes.types(found), wholes.inference(found, claims())]
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
