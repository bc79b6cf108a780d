"""A declaration as a card: what every output format shows of it, in the order in which it is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from ..language.syntax import (
    DEMANDS,
    Clause,
    Constraint,
    Contract,
    Declaration,
    Expr,
    FunctionDeclaration,
    Operator,
    Parameter,
    Port,
    Premise,
    Profile,
    ProfileRule,
    Property,
    Rewrite,
    Sort,
    SortDeclaration,
    Statement,
    Transition,
    clause,
)
from .math import WIDTH, MathLine, broken, to_text
from .notation import COLON, COMMA, EMPTY, Math, between, name, notation, ranges, row, separated, sign, word

KINDS = {
    "fact": "Fact",
    "fun": "Primitive",
    "record": "Record",
    "field": "Field",
    "define": "Definition",
    "inductive": "Inductive definition",
}
LABELS = {
    "source": "Source",
    "quote": "Quote",
    "note": "Note",
    "drawn": "Random",
    "violation": "Message",
    "suggest": "Suggestion",
    "status": "Status",
    "variant": "Variant",
    "evidence": "Evidence",
    "obligation": "Where data decide it, needed",
    "demanded": "Demanded by",
    "unused": "Without influence",
    "collects": "Takes in the statements of operators",
    "includes": "Includes the rule set",
}
"""The word for each clause."""
GROUNDS = {"law": "Rests on", "theorem": "Rests on", "lemma": "Rests on", "finding": "Does not follow from",
           "situation": "Keeps"}  # fmt: skip
"""The words for what a law, theorem or finding needs."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula in lines. premises: when not None, an inference rule: the lines are the conclusion under the bar.
    id, remark: the id and the sentence of a `require` or `restrict`, "" for anything else.
    """

    lines: tuple[MathLine, ...]
    premises: tuple[MathLine, ...] | None = None
    id: str = ""
    remark: str = ""
    notes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a rule set's table: id, title, the constraint demanded, status, further clauses."""

    id: str
    title: str
    constraint: str
    status: str
    notes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Card:
    """A declaration: kind in words, name, title (name with its versions), sentence, formulas, notes, table."""

    kind: str
    name: str
    title: str
    sentence: str
    formulas: tuple[Formula, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    table: tuple[Row, ...] | None = None


def card(declaration: Declaration) -> Card:
    """The card of a declaration."""
    match declaration:
        case SortDeclaration(name=own, doc=doc):
            return Card("Sort", own, own, doc)
        case FunctionDeclaration():
            return _function(declaration)
        case Constraint(name=own, doc=doc, phase=phase, formula=formula, clauses=clauses):
            when = "before execution" if phase == "static" else "after execution"
            return Card(f"Constraint, {when}", own, own, doc, (Formula(broken(formula)),), _notes(clauses))
        case Transition(name=own, doc=doc):
            return Card("Rule of execution", own, own, doc, (_transition(declaration),))
        case Property(kind=kind, name=own, doc=doc, clauses=clauses):
            return Card(
                kind.capitalize(), own, own, doc, (_property(declaration),), _needs(declaration) + _notes(clauses)
            )
        case Profile(name=own, doc=doc, clauses=clauses, rules=rules):
            return Card("Rule set", own, own, doc, (), _notes(clauses), tuple(_row(rule) for rule in rules))
        case Operator():
            return _operator(declaration)
        case Rewrite():
            return _rewrite(declaration)
        case Contract(name=own, version=version, doc=doc, reason=reason, clauses=clauses):
            return Card("Contract", own, f"{own}-{version}", doc, (), (("Not executed", reason), *_notes(clauses)))


def _notes(clauses: Iterable[Clause], without: frozenset[str] = frozenset()) -> tuple[tuple[str, str], ...]:
    return tuple((LABELS.get(c.key, c.key.capitalize()), c.value) for c in clauses if c.key not in without)


def _row(rule: ProfileRule) -> Row:
    status = clause(rule.clauses, "status") or "current"
    return Row(rule.id, rule.title, rule.constraint, status, _notes(rule.clauses, frozenset({"status"})))


# ---- Functions --------------------------------------------------------------------------------


def _function(function: FunctionDeclaration) -> Card:
    if function.kind == "inductive":
        formulas = tuple(_clause_rules(function))
    elif function.body is None:
        formulas = (Formula((MathLine(0, _signature(function)),)),)
    else:
        equals = sign(":⇔" if function.result.name == "Bool" else "≔")
        formulas = (Formula(_led(row(_signature(function, short=True), equals), function.body)),)
    stated = function.accuracy
    notes = () if stated is None else (("accuracy", f"{stated.ulps} units in the last place. {stated.reason}"),)
    return Card(
        KINDS[function.kind], function.name, function.name, function.doc, formulas, (*notes, *_notes(function.clauses))
    )


def _led(lead: Math, body: Expr) -> tuple[MathLine, ...]:
    """`lead` and the body on one line, else the body in lines of its own below it."""
    whole = broken(body, lead)
    return whole if len(whole) == 1 else (MathLine(0, lead), *broken(body, indent=1))


def _signature(function: FunctionDeclaration, short: bool = False) -> Math:
    """`f(x: S): R`; short: without a Boolean result."""
    listed = separated([_typed(parameter) for parameter in function.parameters], COMMA)
    head = row(Math("symbol", function.name), between("(", listed, ")"))
    return head if short and function.result.name == "Bool" else row(head, COLON, _sort(function.result))


def _typed(parameter: Parameter) -> Math:
    return row(name(parameter.name), COLON, _sort(parameter.sort))


def _sort(sort: Sort) -> Math:
    if sort.element is None:
        return Math("symbol", sort.name)
    return row(word(f"{sort.name} of"), _sort(sort.element))


def _clause_rules(function: FunctionDeclaration) -> Iterable[Formula]:
    """One rule for each alternative of the body; its premises are the conjuncts."""
    body = cast("Expr", function.body)
    conclusion = row(
        Math("symbol", function.name), between("(", separated([name(p.name) for p in function.parameters], COMMA), ")")
    )
    for alternative in body.children() if body.head == "or" else (body,):
        conjuncts = alternative.children() if alternative.head == "and" else (alternative,)
        premises = tuple(line for conjunct in conjuncts for line in broken(conjunct))
        yield Formula((MathLine(0, conclusion),), premises)


def _transition(transition: Transition) -> Formula:
    def config(exprs: tuple[Expr, ...]) -> Math:
        return between("(", separated([notation(e) for e in exprs], COMMA), ")")

    conclusion = row(config(transition.source), sign("⟶"), config(transition.target))
    return Formula((MathLine(0, conclusion),), _premises(transition.premises))


def _premises(premises: Iterable[Premise]) -> tuple[MathLine, ...]:
    return tuple(line for premise in premises for line in _premise(premise))


def _premise(premise: Premise) -> tuple[MathLine, ...]:
    return broken(premise.expr) if premise.name is None else _led(row(name(premise.name), sign("≔")), premise.expr)


def _property(declared: Property) -> Formula:
    """Its parameters and premises above the bar, its goal below, which of a finding does not follow; without either the
    goal alone. Of a situation: what there is, and below it what holds of it."""
    listed = separated([_typed(parameter) for parameter in declared.parameters], COMMA)
    quantifier = "∃" if declared.kind == "situation" else "∀"
    about = (MathLine(0, row(Math("prefix", quantifier), listed)),) if declared.parameters else ()
    if declared.kind == "situation":
        return Formula((*about, *_premises(declared.premises)), None)
    above = (*about, *_premises(declared.premises))
    goal = _led(sign("⊬"), declared.goal) if declared.kind == "finding" else broken(declared.goal)
    return Formula(goal, above or None)


def _needs(declared: Property) -> tuple[tuple[str, str], ...]:
    return ((GROUNDS[declared.kind], ", ".join(declared.needs)),) if declared.needs else ()


# ---- Operators --------------------------------------------------------------------------------


def _operator(operator: Operator) -> Card:
    versions = f"{operator.first} to {operator.last}" if operator.first != operator.last else str(operator.first)
    plural = "s" if operator.first != operator.last else ""
    formulas = (header(operator), *_statements(operator.statements))
    title = f"{operator.name} (version{plural} {versions})"
    own = f"{operator.name}-{operator.first}"
    like, *differs = operator.like or ("",)
    stated = ((f"Differs from {like} in", ", ".join(differs) or "words and types alone"),) if like else ()
    return Card("Operator", own, title, operator.doc, formulas, (*stated, *_notes(operator.clauses)))


def _rewrite(rule: Rewrite) -> Card:
    """The two sides, one below the other, what has to hold, and what is claimed."""
    shared = tuple(line for it in rule.shared for line in _lines_of(it))
    sides = tuple(line for side, its in (("from", rule.left), ("to", rule.right)) for line in _equations(side, its))
    demands = (*(("when", it) for it in rule.conditions), *(("where", it) for it in rule.assumed))
    conditions = tuple(
        Formula(_led(word(lead), it.expr), remark=it.doc, notes=_notes(it.clauses)) for lead, it in demands
    )
    claim = ("Claim", CLAIMED[rule.claim] + (f" {rule.reason}" if rule.reason else ""))
    stored = (("Stored values", ", ".join(rule.stored)),) if rule.stored else ()
    formulas = (header(rule), Formula((*shared, *sides)), *conditions)
    return Card("Rewrite", rule.name, rule.name, rule.doc, formulas, (claim, *stored, *_notes(rule.clauses)))


CLAIMED = {
    "exact": "Exact: the same bits for all inputs.",
    "allowed": "Allowed: a result that the definition allows for the left side.",
    "reals": "Reals: equal over the real numbers.",
    "never": "Never: it is believed and false.",
}
"""What a rewrite claims, in words."""


def _equations(side: str, statements: Iterable[Statement]) -> Iterable[MathLine]:
    yield MathLine(0, word(side))
    for it in statements:
        names = separated([name(n) for n in it.names], COMMA)
        first = row(names, sign("="))
        yield from (replace(line, indent=line.indent + 1) for line in _led(first, it.expr))


def header(operator: Operator | Rewrite) -> Formula:
    """Inputs and outputs, on one line or each on its own."""
    inputs, outputs = ([_port(port) for port in ports] for ports in (operator.inputs, operator.outputs))
    head, arrow = Math("symbol", operator.name), sign("→")
    results = separated(outputs, COMMA)
    whole = row(head, between("(", separated(inputs, COMMA), ")"), arrow, results)
    if len(to_text(whole)) <= WIDTH:
        return Formula((MathLine(0, whole),))
    lines = [row(port, COMMA) for port in inputs[:-1]] + [row(port, Math("mark", ")")) for port in inputs[-1:]]
    first = row(head, Math("mark", "("))
    return Formula((MathLine(0, first), *(MathLine(1, line) for line in lines), MathLine(0, row(arrow, results))))


def _statements(statements: Iterable[Statement]) -> Iterable[Formula]:
    """One formula for each demand, and one for all that stands between two demands."""
    lines: list[MathLine] = []
    for statement in statements:
        shown = statement_formula(statement)
        if statement.kind not in DEMANDS:
            lines += shown.lines
            continue
        if lines:
            yield Formula(tuple(lines))
            lines = []
        yield shown
    if lines:
        yield Formula(tuple(lines))


def statement_formula(statement: Statement) -> Formula:
    """One statement of an operator."""
    if statement.kind not in DEMANDS:
        return Formula(_lines_of(statement))
    demand = _led(word(statement.kind), statement.expr)
    return Formula(demand, id=statement.id, remark=statement.doc, notes=_notes(statement.clauses))


def _port(port: Port) -> Math:
    mark = {"?": "(optional)", "*": "(any number)"}.get(port.mark)
    shape = EMPTY
    if port.shape is not None:
        shape = between("[", separated([_size(dimension) for dimension in port.shape], COMMA), "]")
    kind = name(port.type)
    if port.others:
        kind = between("(", separated([name(it) for it in port.types], COMMA), ")")
    return row(name(port.name), COLON, kind, shape, word(mark) if mark else EMPTY)


def _size(dimension: tuple[str, bool] | int) -> Math:
    if isinstance(dimension, int):
        return Math("number", str(dimension))
    return name(dimension[0] + ("…" if dimension[1] else ""))


def _lines_of(statement: Statement) -> tuple[MathLine, ...]:
    names = separated([name(n) for n in statement.names], COMMA)
    match statement.kind:
        case "let":
            return _led(row(word("let"), names, sign("≔")), statement.expr)
        case "function":
            parameters = between("(", separated([_typed(p) for p in statement.parameters], COMMA), ")")
            return _led(row(word("let"), Math("symbol", statement.names[0]), parameters, sign("≔")), statement.expr)
        case "type":
            return _led(row(word("type"), names, sign("≔")), statement.expr)
        case "result":
            return _led(row(names, sign("=")), statement.expr)
        case "rule":
            return (MathLine(0, row(word("by the rule"), Math("symbol", statement.doc))),)
        case "along":
            inner = (line for view in statement.body for line in _lines_of(view))
            head = MathLine(0, row(word("along"), ranges(statement.ranges), COLON))
            return (head, *(MathLine(line.indent + 1, line.math) for line in inner))
        case kind:
            indices = [name(n + ("…" if item.dots else "")) for item in statement.ranges for n in item.names]
            lead = word("view") if kind == "view" else EMPTY
            output, *positions = statement.names
            places = [name(position) for position in positions]
            if kind == "entries":
                places, indices = indices[:1], indices[1:]
            entry = [between("[", place, "]") for place in places]
            left = row(lead, name(output), entry, between("[", separated(indices, COMMA), "]"))
            lines = _led(row(left, sign("=")), statement.expr)
            bounds = [row(name(p), sign("<"), between("|", name(output), "|")) for p in positions]
            bounds += [ranges((item,)) for item in statement.ranges]
            return (*lines, MathLine(1, row(word("for"), separated(bounds, COMMA)))) if bounds else lines
