"""The left side of a rewrite as applications of operators: what to look for in a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from sonnx.semantics.errors import InternalError
from sonnx.spec.elaborate.core import Binding, Core, CoreOperator, CoreRewrite
from sonnx.spec.library import specification


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of an application: the port of that name, or an output of another application; nothing where it is left
    out. optional: a port that may be absent.
    """

    port: str = ""
    application: int = -1
    output: int = 0
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """An application. operator: the definition that covers the version that the rule writes. attributes: what each is
    given; a variable of the rule, or a value that is known when the ports are.
    """

    operator: CoreOperator
    inputs: tuple[Operand | None, ...]
    attributes: Mapping[str, Core]


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """The applications of a left side, each before those that read it. results: of which application and output each
    result is. bound: the names of the attributes that a match binds, each with whether it may be absent.
    """

    rule: CoreRewrite
    applications: tuple[Applied, ...]
    results: tuple[tuple[int, int], ...]
    bound: Mapping[str, bool]

    @property
    def root(self) -> int:
        """The application that gives the first result."""
        return self.results[0][0]


@cache
def pattern(rule: CoreRewrite) -> Pattern:
    """The pattern of a rule. Raises InternalError where the left side has another form than elaboration admits."""
    left = rule.left
    lets = {own: (it.body, place) for it in left.statements if it.kind == "let" for place, own in enumerate(it.binds)}
    made: list[Applied] = []
    known: dict[Core, int] = {}

    def operand(core: Core) -> Operand | None:
        if core.head == "nothing":
            return None
        if core.head == "ite" and core.parts[2].head == "nothing":
            return Operand(port=core.parts[1].name, optional=True)
        if core.head == "apply":
            return Operand(application=application(core))
        variable = core.variable
        if core.head == "variable" and variable is not None and variable in lets:
            body, place = lets[variable]
            return Operand(application=application(body), output=place) if body.head == "apply" else operand(body)
        if core.head == "variable" and variable is not None and variable.origin == "port":
            return Operand(port=variable.name)
        raise InternalError(f"{core.span}: {rule.name} has an input on its left side that is no port and no result")

    def application(core: Core) -> int:
        if core not in known:
            inputs: list[Operand | None] = []
            attributes: dict[str, Core] = {}
            for label, part in zip(core.labels, core.parts, strict=True):
                if label:
                    attributes[label[0]] = part
                else:
                    inputs.append(operand(part))
            known[core] = len(made)
            made.append(Applied(meaning(core.name, int(core.value)), tuple(inputs), attributes))
        return known[core]

    results = []
    for port in left.outputs:
        body = next(it.body for it in left.statements if it.kind == "result" and it.name == port.name)
        found = operand(body)
        if found is None or found.application < 0:
            raise InternalError(f"{rule.span}: {port.name} is no result of an application")
        results.append((found.application, found.output))
    bound = {it.name: it.mark == "?" for it in left.attributes}
    return Pattern(rule, tuple(made), tuple(results), bound)


def meaning(name: str, version: int) -> CoreOperator:
    """The definition of an operator that covers a version. Raises InternalError where there is none."""
    found = specification().meanings.at(name, version)
    if found is None:
        raise InternalError(f"{name}-{version} has no definition")
    return found


def attribute_of(core: Core) -> Binding | None:
    """The attribute of the rule that a value is; None for any other value."""
    if core.head == "ite" and core.parts[2].head == "nothing":
        return core.parts[1].variable
    variable = core.variable if core.head == "variable" else None
    return variable if variable is not None and variable.origin == "attribute" else None


def commutation(rule: CoreRewrite) -> CoreOperator | None:
    """The operator of which a rule says that its two operands may change places; None for any other rule.

    Such a rule serves the search, which tries both orders: applied as it stands it would never come to an end.
    """
    if rule.claim != "exact" or any(it.kind == "require" for it in rule.left.statements):
        return None
    sides = [_only(side) for side in (rule.left, rule.right)]
    if any(side is None for side in sides):
        return None
    (one, first), (other, second) = (side for side in sides if side is not None)
    same = one.name == other.name and one.value == other.value and not any(one.labels) and not any(other.labels)
    swapped = len(first) == 2 and first == second[::-1] and first[0] != first[1]
    return meaning(one.name, int(one.value)) if same and swapped else None


def _only(side: CoreOperator) -> tuple[Core, list[str]] | None:
    """The one application of a side whose inputs are ports, and their names."""
    lets = [it for it in side.statements if it.kind == "let"]
    if len(lets) != 1 or lets[0].body.head != "apply":
        return None
    body = lets[0].body
    names = [part.variable.name for part in body.parts if part.head == "variable" and part.variable is not None]
    return (body, names) if len(names) == len(body.parts) else None


def by_root(rules: Iterable[CoreRewrite]) -> Mapping[CoreOperator, tuple[Pattern, ...]]:
    """The patterns by the definition of their root, in the order of the rules; without those that only commute."""
    found: dict[CoreOperator, tuple[Pattern, ...]] = {}
    for rule in rules:
        if commutation(rule) is None:
            it = pattern(rule)
            root = it.applications[it.root].operator
            found[root] = (*found.get(root, ()), it)
    return found
