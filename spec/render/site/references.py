"""Who uses what: the calls of functions, the applications of operators, the rules that demand a constraint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...elaborate.coverage import expressions_of, inside, local_functions
from ...language.syntax import (
    DEMANDS,
    Constraint,
    Declaration,
    Expr,
    File,
    FunctionDeclaration,
    Operator,
    Profile,
    Property,
    Transition,
)
from .places import Places, demand_anchor, meaning, operator_page


@dataclass(frozen=True, slots=True)
class Reference:
    """A place from which something is referred to."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class References:
    """Each in document order. users: of a declared function, a constraint or a rule of execution, by its name.
    applications: the meanings that apply an operator, by its name. restrictions: the rules of rule sets about an
    operator, by its name. demands: by who demands them the `require`s and `restrict`s, with their sentences.
    """

    users: Mapping[str, tuple[Reference, ...]]
    applications: Mapping[str, tuple[Reference, ...]]
    restrictions: Mapping[str, tuple[Reference, ...]]
    demands: Mapping[str, tuple[tuple[Reference, str], ...]]


def references(files: Iterable[File], where: Places) -> References:
    """The references among all declarations."""
    users: dict[str, dict[Reference, None]] = {}
    applications: dict[str, dict[Reference, None]] = {}
    restricted: dict[str, set[str]] = {}
    restrictions: dict[str, dict[Reference, None]] = {}
    demands: dict[str, list[tuple[Reference, str]]] = {}
    declarations = [declared for file in files for declared in file.declarations]
    for declared in declarations:
        own = reference(declared, where)
        local = {declared.name, *local_functions(declared)}
        for need in declared.needs if isinstance(declared, Property) else ():
            users.setdefault(need, {})[own] = None
        for expr in expressions(declared):
            for inner in inside(expr):
                if inner.head == "call" and inner.args[0] not in local:
                    users.setdefault(str(inner.args[0]), {})[own] = None
                elif inner.head == "apply":
                    applications.setdefault(str(inner.args[0]), {})[own] = None
                if isinstance(declared, Constraint):
                    for operator in _named_operators(inner):
                        restricted.setdefault(declared.name, set()).add(operator)
        if isinstance(declared, Operator):
            for entry, sentence, demand in _demands(declared):
                demands.setdefault(demand, []).append((entry, sentence))
            for statement in declared.statements:
                if statement.kind == "rule":
                    users.setdefault(statement.doc, {})[own] = None
    for declared in declarations:
        for rule in declared.rules if isinstance(declared, Profile) else ():
            entry = Reference(f"{declared.name}: {rule.id}", dict(where.rules[rule.id])[declared.name])
            users.setdefault(rule.constraint, {})[entry] = None
            about = {rule.id.partition("/")[0]} | restricted.get(rule.constraint, set())
            for operator in sorted(about & where.operators.keys()):
                restrictions.setdefault(operator, {})[Reference(f"{entry.title}, {rule.title}", entry.address)] = None
    return References(
        {name: tuple(entry) for name, entry in users.items()},
        {name: tuple(entry) for name, entry in applications.items()},
        {name: tuple(entry) for name, entry in restrictions.items()},
        {name: tuple(rows) for name, rows in demands.items()},
    )


def reference(declared: Declaration, where: Places) -> Reference:
    """The place of a declaration."""
    own = meaning(declared) if isinstance(declared, Operator) else declared.name
    return Reference(own, where.names[own])


def _demands(operator: Operator) -> Iterator[tuple[Reference, str, str]]:
    for statement in (it for it in operator.statements if it.kind in DEMANDS):
        address = f"{operator_page(operator.name)}#{demand_anchor(operator, statement.id)}"
        title = f"{meaning(operator)}/{statement.id}"
        for demanded in (item.value for item in statement.clauses if item.key == "demanded"):
            yield Reference(title, address), statement.doc, demanded


def _named_operators(expr: Expr) -> Iterator[str]:
    """The operators to whose applications an expression restricts a constraint."""
    if expr.head == "call" and expr.args[0] == "applications":
        for inner in expr.children():
            yield from (str(text.args[0]) for text in inside(inner) if text.head == "text")


def expressions(declared: Declaration) -> Iterator[Expr]:
    """The expressions of a declaration."""
    match declared:
        case FunctionDeclaration(body=Expr() as body):
            yield body
        case Constraint(formula=formula):
            yield formula
        case Property():
            yield from (premise.expr for premise in declared.premises)
            yield declared.goal
        case Transition():
            yield from (premise.expr for premise in declared.premises)
            yield from (*declared.source, *declared.target)
        case Operator():
            for statement in declared.statements:
                yield from expressions_of(statement)
