"""Scripts of rules: the facts, the formula of the text, and a question whose answer decides the rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.formulas import reading
from sonnx.semantics.formulas.evaluate import Worklist, universe
from sonnx.spec.elaborate.formulas import Functions, cores
from sonnx.spec.language.printer import print_expression
from sonnx.spec.language.syntax import INT, Constraint, Sort

from .formulas import Context, Uses, Work, bind, both, either, formula, plain, quantified, sort_name
from .tables import Tables, declared, function, keys_of, relation, tabulate

HOLDS, VIOLATED = "holds", "violated"


@dataclass(frozen=True, slots=True)
class Script:
    """A question. shows: what the answer unsat says of the rule, holds or violated. text: standard SMT-LIB 2.6."""

    name: str
    shows: str
    text: str


@dataclass(frozen=True, slots=True)
class About:
    """The words of the comments of a script. demands: the rules that are this constraint, each with its words."""

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
        text = cores(self.functions)
        context: Context = reading.Context(text, Work(self.uses, lambda name, args: f"({name} {args})"))
        rule = formula(text.constraint(constraint).body, context)
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
        predicates: dict[str, None] = {}
        agenda = list(self.uses.inductive)
        while agenda:
            name = agenda.pop(0)
            if name not in predicates:
                predicates[name] = None
                self._claim(name, HOLDS)  # notes what the body mentions
                agenda += self.uses.inductive
        return list(predicates)

    def _claim(self, name: str, shows: str) -> str:
        """That the table is derived, by ranks that go down, or that it is closed."""
        definition = cores(self.functions).definition(name)

        def lower(other: str, args: str) -> str:
            return f"(and ({other} {args}) (< ({other}.rank {args}) ({name}.rank {key})))"

        atom = lower if shows == HOLDS else lambda other, args: f"({other} {args})"
        context: Context = reading.Context(cores(self.functions), Work(self.uses, atom))
        bound: list[tuple[str, Sort | None]] = []
        for parameter in definition.parameters:
            spelled, context = bind(parameter, context)
            bound.append((spelled, parameter.sort))
        key = " ".join(spelled for spelled, _ in bound)
        body = formula(definition.body, context)
        parameters = zip(bound, self.functions[name].parameters, strict=True)
        elements = [self._universe(spelled, parameter.sort) for (spelled, _), parameter in parameters]
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
"""The comment of a script about fixpoints, by the verdict."""
