"""Elaboration: the declarations of all files by name, after names, sorts, arities and clauses have been checked.

All mistakes are collected. A text with mistakes is of no use to anybody but its author.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ..language.errors import SpecError
from ..language.syntax import (
    BOOL,
    TEXT,
    Constraint,
    Contract,
    Expr,
    File,
    FunctionDeclaration,
    Operator,
    Parameter,
    Profile,
    Property,
    Rewrite,
    Sort,
    SortDeclaration,
    Source,
    Span,
    Transition,
    clause,
    values,
)
from .clauses import check_clauses, check_template
from .core import Binding, Core, CoreOperator, CoreRewrite
from .element_types import check_element_types
from .infer import check
from .operators import check_contracts, check_operators
from .positivity import check_positive
from .properties import Grounds, check_grounded, check_properties
from .rewrites import check_rewrites
from .scope import FOLDS, Ledger, Scope, held, hint
from .sorts import BUILT_IN
from .transitions import check_transitions
from .versions import Joined, expand_files


@dataclass(frozen=True, slots=True)
class Elaboration:
    """The declarations by name, in document order. Where a name is declared twice, the first declaration counts.

    operators: the meanings of an operator, one for each range of versions, oldest first; cores: of all
    of these. rules: the cores of rewrites.
    """

    errors: tuple[SpecError, ...]
    sorts: Mapping[str, SortDeclaration]
    functions: Mapping[str, FunctionDeclaration]
    constraints: Mapping[str, Constraint]
    transitions: Mapping[str, Transition]
    properties: Mapping[str, Property]
    profiles: Mapping[str, Profile]
    operators: Mapping[str, tuple[Operator, ...]]
    cores: tuple[CoreOperator, ...]
    contracts: tuple[Contract, ...] = ()
    rewrites: Mapping[str, Rewrite] = field(default_factory=dict)
    rules: tuple[CoreRewrite, ...] = ()


class Base(Protocol):
    """A text that others are added to."""

    @property
    def sorts(self) -> Mapping[str, SortDeclaration]:
        """The sorts by name."""

    @property
    def functions(self) -> Mapping[str, FunctionDeclaration]:
        """The functions by name."""

    @property
    def constraints(self) -> Mapping[str, Constraint]:
        """The constraints by name."""

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """The rule sets by name."""

    @property
    def operators(self) -> Mapping[str, tuple[Operator, ...]]:
        """The meanings of operators by name."""

    @property
    def rewrites(self) -> Mapping[str, Rewrite]:
        """The rewrites by name."""


def elaborate(sources: Iterable[Source | File], base: Base | None = None) -> Elaboration:
    """Checks the declarations of the files, which may refer to each other in any order, and orders them by name.

    Operators are checked against ONNX's schemas, for which onnx is imported when the files define an operator. base: a
    text without mistakes, to which the files add operators, definitions, constraints and rule sets that refer to it.
    What is given back is what the files declare.
    """
    given: Base = base or NOTHING
    files, mistakes = expand_files(sources, given.operators)
    order = {file.name: position for position, file in enumerate(files)}
    every = [declaration for file in files for declaration in file.declarations]
    ledger = Ledger({}, ())
    for it in every if base is not None else ():
        if not isinstance(it, ADDED) or (isinstance(it, FunctionDeclaration) and it.kind != "define"):
            ledger.report("added/kind", it.span, name=it.name)
    ledger.errors += mistakes
    sorts = _by_name([d for d in every if isinstance(d, SortDeclaration)], "sort", ledger)
    functions = _by_name([d for d in every if isinstance(d, FunctionDeclaration)], "function", ledger)
    constraints = _by_name([d for d in every if isinstance(d, Constraint)], "constraint", ledger)
    transitions = _by_name([d for d in every if isinstance(d, Transition)], "rule", ledger)
    properties = _by_name([d for d in every if isinstance(d, Property)], "law, theorem, finding or situation", ledger)
    profiles = _by_name([d for d in every if isinstance(d, Profile)], "profile", ledger)
    rewrites = _by_name([d for d in every if isinstance(d, Rewrite)], "rewrite", ledger)
    operators = tuple(d for d in every if isinstance(d, Operator))
    ledger.functions, ledger.sorts = Joined(functions, given.functions), frozenset((*sorts, *given.sorts)) | BUILT_IN
    shared: Sequence[tuple[str, Mapping[str, Named], Mapping[str, Named]]] = (
        ("function", functions, given.functions),
        ("constraint", constraints, given.constraints),
        ("rule set", profiles, given.profiles),
        ("rewrite", rewrites, given.rewrites),
    )
    for what, own, known in shared:
        for name in own.keys() & known.keys():
            ledger.report("name/duplicate", own[name].span, known[name].span, what=what, name=name)

    for name, sort in sorts.items():
        if name in BUILT_IN - {"Element", "Array", "Value", "Type", "Rational"}:
            ledger.report("name/reserved", sort.span, name=name)
    checked = {name: check_function(function, ledger) for name, function in functions.items()}
    bodies = {name: body for name, body in checked.items() if body is not None}
    check_recursion(functions, ledger)
    check_records(functions, ledger)
    check_positive(functions, bodies, ledger)
    for constraint in constraints.values():
        check_constraint(constraint, ledger)
    check_transitions(transitions.values(), ledger)
    check_properties(properties.values(), Grounds(constraints, transitions), ledger)
    reached = ledger.functions if constraints else functions
    check_grounded(reached, constraints.values(), transitions.values(), operators, ledger)
    for profile in profiles.values():
        check_profile(profile, Joined(constraints, given.constraints), ledger)
    check_includes(profiles, Joined(profiles, given.profiles), ledger)
    cores = check_operators(operators, transitions, ledger, given.operators)
    meanings = {name: (*it, *given.operators.get(name, ())) for name, it in _versions(operators).items()}
    rules = check_rewrites(rewrites.values(), ledger, Joined(meanings, given.operators))
    if not ledger.errors:
        sides = (side for it in rules for side in (it.left, it.right))
        declared = [*(it for it in cores if it.name in ledger.declared), *sides]
        check_element_types(declared, definitions(bodies, ledger), ledger)
    contracts = tuple(d for d in every if isinstance(d, Contract))
    check_contracts(contracts, operators, ledger)

    unique = {(error.kind, error.span, error.message): error for error in ledger.errors}.values()
    errors = sorted(unique, key=lambda e: (order.get(e.span.file, 0), e.span.line, e.span.column))
    return Elaboration(
        tuple(errors), sorts, functions, constraints, transitions, properties, profiles, _versions(operators), cores,
        contracts, rewrites, rules,
    )  # fmt: skip


def _versions(operators: Iterable[Operator]) -> dict[str, tuple[Operator, ...]]:
    """The meanings of operators by name, oldest first."""
    versions: dict[str, tuple[Operator, ...]] = {}
    for operator in sorted(operators, key=lambda o: o.first):
        versions[operator.name] = (*versions.get(operator.name, ()), operator)
    return versions


def definitions(bodies: Mapping[str, Core], ledger: Ledger) -> Callable[[str], tuple[Sequence[str], Core] | None]:
    """The definitions of this text and of the one to which it is added, the names of their parameters before them."""
    made = dict(bodies)

    def definition(name: str) -> tuple[Sequence[str], Core] | None:
        function = ledger.functions.get(name)
        if function is None or function.kind != "define":
            return None
        if name not in made:
            body = check_function(function, Ledger(ledger.functions, ledger.sorts))
            if body is None:
                return None
            made[name] = body
        return [parameter.name for parameter in function.parameters], made[name]

    return definition


NOTHING = Elaboration((), {}, {}, {}, {}, {}, {}, {}, ())
ADDED = (Operator, FunctionDeclaration, Constraint, Profile, Rewrite)
"""The kinds of declarations of a file that is added to a text; of functions definitions."""


D = TypeVar("D", SortDeclaration, FunctionDeclaration, Constraint, Transition, Property, Profile, Rewrite)
Named = FunctionDeclaration | Constraint | Profile | Rewrite


def _by_name(declarations: list[D], what: str, ledger: Ledger) -> dict[str, D]:
    named: dict[str, D] = {}
    for declaration in declarations:
        first = named.setdefault(declaration.name, declaration)
        if first is not declaration:
            ledger.report("name/duplicate", declaration.span, first.span, what=what, name=declaration.name)
    return named


def check_function(function: FunctionDeclaration, ledger: Ledger) -> Core | None:
    """The signature, and the body against the result; the core of the body, None without one."""
    if function.name in FOLDS:
        ledger.report("name/reserved", function.span, name=function.name)
    primitive = function.kind == "fun"
    for parameter in function.parameters:
        ledger.check_sort(parameter.sort, parameter.span, primitive)
    ledger.check_sort(function.result, function.span, primitive)
    scope = _parameters(function.parameters if primitive else held(function.parameters), ledger)
    return None if function.body is None else check(function.body, function.result, scope, ledger)


def _parameters(parameters: tuple[Parameter, ...], ledger: Ledger) -> Scope:
    scope = Scope()
    for parameter in parameters:
        if parameter.name in scope.bindings:
            first = scope.bindings[parameter.name].span
            ledger.report("name/duplicate", parameter.span, first, what="parameter", name=parameter.name)
        scope = scope.bind(Binding(parameter.name, parameter.sort, "parameter", parameter.span))
    return scope


def check_recursion(functions: Mapping[str, FunctionDeclaration], ledger: Ledger) -> None:
    """No definition may depend on itself, unless an inductive predicate lies in between."""

    def walk(name: str, path: tuple[str, ...]) -> tuple[str, ...] | None:
        function = functions.get(name)
        if function is None or function.kind != "define" or function.body is None:
            return None
        if name in path:
            return (*path[path.index(name) :], name)
        if name in done:
            return None
        for callee in calls(function.body):
            cycle = walk(callee, (*path, name))
            if cycle is not None:
                return cycle
        done.add(name)
        return None

    done: set[str] = set()
    for name, function in functions.items():
        if name in done:
            continue
        cycle = walk(name, ())
        if cycle is not None:
            done.update(cycle)
            ledger.report("name/recursion", function.span, name=name, path=" -> ".join(cycle))


def check_records(functions: Mapping[str, FunctionDeclaration], ledger: Ledger) -> None:
    """A record has for each parameter the field of that name, and a field belongs to a parameter of one record."""
    given: set[tuple[str, Sort]] = set()
    for record in functions.values():
        if record.kind != "record":
            continue
        for parameter in record.parameters:
            field, sort = functions.get(parameter.name), record.result
            if field is None or field.kind != "field" or [it.sort for it in field.parameters] != [sort]:
                ledger.report("record/field", parameter.span, name=parameter.name, sort=sort, of=parameter.sort)
            elif field.result != parameter.sort:
                ledger.report("sort/expected", field.span, expected=parameter.sort, found=field.result, hint="")
            elif (parameter.name, sort) in given:
                ledger.report("name/duplicate", parameter.span, field.span, what="field", name=parameter.name)
            given.add((parameter.name, sort))
    for field in functions.values():
        if field.kind == "field" and not any((field.name, it.sort) in given for it in field.parameters[:1]):
            ledger.report("field/record", field.span, name=field.name)


def calls(expr: Expr) -> Iterable[str]:
    """The names of the functions that occur in an expression, each occurrence once."""
    if expr.head == "call":
        yield str(expr.args[0])
    for child in expr.children():
        yield from calls(child)


def check_constraint(constraint: Constraint, ledger: Ledger) -> None:
    """The formula is closed but for M at phase final; its templates use the variables of the outermost foralls."""
    check_clauses("constraint", constraint.name, constraint.clauses, constraint.span, ledger)
    scope = Scope()
    if constraint.phase == "final":
        scope = scope.bind(Binding("M", Sort("Memory"), "parameter", constraint.span))
    core, outermost = check(constraint.formula, BOOL, scope, ledger), list[Binding]()
    while core.head == "forall":
        outermost += [item.variable for item in core.bound]
        (core,) = core.parts
    variables, inner = [binding.sort for binding in outermost], scope.bind(*outermost)
    for item in constraint.clauses:
        check_template(item, inner, ledger)
        if item.key == "obligation":
            words = ledger.functions.get(item.value)
            if words is None or words.kind != "define" or words.result != TEXT:
                ledger.report("clause/obligation", item.span, name=item.value)
            elif [parameter.sort for parameter in words.parameters] != variables:
                listed = ", ".join(map(str, variables))
                ledger.report("clause/obligation-of", item.span, name=item.value, sorts=listed)


def check_includes(own_ones: Mapping[str, Profile], profiles: Mapping[str, Profile], ledger: Ledger) -> None:
    """A rule set includes rule sets that there are, each once, and none that includes it again."""
    for profile in own_ones.values():
        own = [item for item in profile.clauses if item.key == "includes"]
        seen: dict[str, Span] = {}
        for item in own:
            if item.value not in profiles:
                nearest = hint(item.value, profiles)
                ledger.report("profile/includes", item.span, name=item.value, hint=nearest)
            elif item.value in seen:
                ledger.report("profile/included", item.span, seen[item.value], name=item.value)
            seen.setdefault(item.value, item.span)
        for name, span in seen.items():
            path = _way(name, profile.name, profiles)
            if path:
                ledger.report("profile/cycle", span, name=profile.name, path=" -> ".join((profile.name, *path)))


def _way(start: str, end: str, profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    """A way along `includes` from a rule set to another; empty where there is none."""
    ways: dict[str, tuple[str, ...]] = {start: (start,)}
    waiting = [start]
    while waiting and end not in ways:
        name = waiting.pop(0)
        for other in values(profiles[name].clauses, "includes") if name in profiles else ():
            if other not in ways:
                ways[other] = (*ways[name], other)
                waiting.append(other)
    return ways.get(end, ())


def check_profile(profile: Profile, constraints: Mapping[str, Constraint], ledger: Ledger) -> None:
    """Each rule names a constraint; an id occurs once for each variant."""
    check_clauses("profile", profile.name, profile.clauses, profile.span, ledger)
    if profile.name == "all":
        ledger.report("profile/all", profile.span)
    seen: dict[tuple[str, str | None], Span] = {}
    for rule in profile.rules:
        check_clauses("rule", rule.id, rule.clauses, rule.span, ledger)
        if rule.constraint not in constraints:
            nearest = hint(rule.constraint, constraints)
            ledger.report("profile/constraint", rule.span, name=rule.constraint, hint=nearest)
        first = seen.setdefault((rule.id, clause(rule.clauses, "variant")), rule.span)
        if first is not rule.span:
            ledger.report("profile/id", rule.span, first, id=rule.id)
