"""Definedness of an operator definition: its obligations over arbitrary sizes, ranks instantiated.

`instances` fixes the numbers of axes (and of variadic inputs). `explore` runs the definition of an instance statement by
statement; where a statement needs a case distinction, the path forks, and a chooser says which cases are possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from math import prod

from sonnx.spec.library import specification
from sonnx.spec.schema import FormalAttribute, Signature, signatures
from sonnx.spec.syntax import INT, TEXT, Expr, Operator, Port, Sort, Span, Statement

from ..errors import InternalError
from ..terms import FALSE, TRUE, Term
from .symbolic import Meaning, bind_shapes, opaque, opening, perform
from .symbolic_numbers import Int, Real, at_most, equal, opposite, substitute_term
from .symbolic_opaque import Opaque
from .symbolic_values import (
    LENGTHS,
    Array,
    Dead,
    ElementType,
    Obligation,
    Open,
    Run,
    Scope,
    Split,
    TextSymbol,
    Value,
    conjuncts,
)

RANKS = range(5)
"""The numbers of axes that a name with dots stands for where a port has no other axis; one less beside others."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A definition with the number of axes of each input; a variadic input has one number for each of its tensors."""

    operator: Operator
    ranks: Mapping[str, tuple[int, ...]]

    @property
    def label(self) -> str:
        """The ranks in words: `X: 4, W: 4`."""
        return ", ".join(f"{name}: {' '.join(map(str, ranks))}" for name, ranks in self.ranks.items())


@dataclass(frozen=True, slots=True)
class Path:
    """A point in a definition: the statements from `position` on are still to be performed.

    facts: what the requirements so far say and what was decided. cases: the decisions in words. decisive: the symbols
    that decisions within a statement are about.
    """

    instance: Instance
    position: int
    env: Mapping[str, Value]
    facts: tuple[Term, ...]
    decided: Mapping[Term, int | str | bool | None]
    symbols: Mapping[str, tuple[int, str]]
    meaning: Meaning
    cases: tuple[str, ...] = ()
    decisive: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def declared(self) -> Mapping[str, tuple[int, str]]:
        """Every symbol that the facts mention."""
        return {**self.decisive, **self.symbols}


@dataclass(frozen=True, slots=True)
class Batch:
    """The obligations of one statement. dead: nothing follows, since no case is left or the value is undefined."""

    path: Path
    statement: Statement
    obligations: tuple[Obligation, ...]
    dead: bool = False


Choose = Callable[[Path, Split], Sequence[tuple[int | str | bool | None, str]]]
"""Which cases of a split are possible on a path: the candidates, and None for `none of them`; each with its words."""


# ---- Instances --------------------------------------------------------------------------------


def instances(operator: Operator, most: int = 40) -> Iterator[Instance]:
    """The definition at combinations of ranks: all of them, or where these are more than `most`, all of the first two
    names with dots, each with the other names equally long or one of them alone not empty.
    """
    limits: dict[str, int] = {}
    variadic = any(port.mark == "*" for port in operator.inputs)
    for port in operator.inputs:
        for name in _dotted(port):
            alone = len(port.shape or ()) == 1
            limits[name] = min(limits.get(name, len(RANKS)), len(RANKS) - (0 if alone else 1))
        if port.shape is None and port.mark != "*" and not port.type.startswith(("seq(", "optional(", "map(")):
            limits[port.name] = 3
    for lengths in _lengths(list(limits.values()), most):
        known = dict(zip(limits, lengths, strict=True))
        for listed in VARIADIC if variadic else ((),):
            yield Instance(operator, _ranks(operator, known, listed))


def _dotted(port: Port) -> list[str]:
    return [item[0] for item in port.shape or () if not isinstance(item, int) and item[1]]


def _lengths(limits: list[int], most: int) -> Iterator[tuple[int, ...]]:
    if prod(limits) <= most:
        yield from product(*map(range, limits))
        return
    rest = limits[2:]
    tails = [tuple(min(length, limit - 1) for limit in rest) for length in range(max(rest, default=1))]
    tails += [tuple(int(k == alone) for k in range(len(rest))) for alone in range(len(rest))]
    first = limits[:2]
    while prod(first) * min(len(set(tails)), 3) > 2 * most and max(first) > 2:
        first[first.index(max(first))] -= 1
    for head in product(*map(range, first)):
        for tail in dict.fromkeys(tails):
            yield (*head, *tail)


VARIADIC = ((0,), (1,), (2,), (3,), (1, 1), (2, 2), (1, 2), (2, 1), (0, 2), (2, 2, 2), (3, 3), (1, 2, 1))
"""The ranks of variadic inputs."""


def _ranks(operator: Operator, known: Mapping[str, int], listed: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    ranks: dict[str, tuple[int, ...]] = {}
    for port in operator.inputs:
        if port.mark == "*":
            ranks[port.name] = listed
        elif port.shape is None:
            ranks[port.name] = (known.get(port.name, 0),)
        else:
            sizes = [1 if isinstance(item, int) or not item[1] else known[item[0]] for item in port.shape]
            ranks[port.name] = (sum(sizes),)
    return ranks


# ---- The start --------------------------------------------------------------------------------


def start(instance: Instance) -> Path:
    """The path before the first statement: every size and attribute is a symbol."""
    operator = instance.operator
    signature = signature_of(operator)
    symbols: dict[str, tuple[int, str]] = {}
    facts: list[Term] = []
    env: dict[str, Value] = {}
    for attribute in signature.attributes.values():
        env |= _attribute(attribute, symbols, facts)
    dimensions: set[Term] = set()
    for port in operator.inputs:
        kind = ElementType(port.type)
        made = []
        for number, rank in enumerate(instance.ranks[port.name]):
            name = f"{port.name}.{number}" if port.mark == "*" else port.name
            shape = tuple(_symbol(f"{name}.{axis}", "Int", symbols) for axis in range(rank))
            facts += [at_most(0, size) for size in shape]
            dimensions.update(shape)
            made.append(Array(name, shape, opaque(name, kind), kind))
        env[port.name] = tuple(made) if port.mark == "*" else made[0]
        if port.mark == "?":
            env[f"given {port.name}"] = _symbol(f"given.{port.name}", "Bool", symbols)
    for port in operator.outputs:
        env[f"given {port.name}"] = _symbol(f"given.{port.name}", "Bool", symbols) if port.mark == "?" else TRUE
    scope = Scope(env, run(operator, (), {}, symbols))
    env, same = _named(operator, scope)
    return Path(
        instance,
        0,
        env,
        (*facts, *same),
        {},
        dict(scope.run.symbols),
        Meaning(operator, {}, True, frozenset(dimensions)),
    )


def _named(operator: Operator, scope: Scope) -> tuple[dict[str, Value], list[Term]]:
    """The names of dimensions; where a name stands twice, the sizes are the same, so one symbol is replaced."""
    bound = bind_shapes(operator, scope, operator.span)
    goals = [part for obligation in bound.run.obligations for part in (obligation.goal,)]
    env = dict(bound.env)
    kept: list[Term] = []
    for goal in goals:
        for part in goal.args if goal.op == "and" else (goal,):
            match part:
                case Term("=", (Term() as left, int() | Term() as right)) if not left.args:
                    env = {name: substitute(value, left, right) for name, value in env.items()}
                    kept.append(Term("=", (left, right)))
                case Term():
                    kept.append(part)
    return env, kept


def _symbol(name: str, sort: str, symbols: dict[str, tuple[int, str]]) -> Term:
    symbol = name.replace("'", ".prime")
    symbols[symbol] = (0, sort)
    return Term(symbol)


def _attribute(attribute: FormalAttribute, symbols: dict[str, tuple[int, str]], facts: list[Term]) -> dict[str, Value]:
    """An attribute of any value, and whether it is given where it may be absent. The texts of a list are one text."""
    name = attribute.name
    env: dict[str, Value] = {}
    if attribute.optional:
        env[f"given {name}"] = _symbol(f"given.{name}", "Bool", symbols)
    sort = attribute.sort
    if sort.name == "list" and sort.element is not None:
        element = sort.element
        length = _symbol(f"len.{name}", "Int", symbols)
        facts.append(at_most(0, length))
        made = [_value(name if element == TEXT else f"{name}.{k}", element, symbols) for k in LENGTHS]
        env[name] = Open(length, lambda k: made[k])
    elif sort.name == "Array":
        size = _symbol(f"{name}.0", "Int", symbols)
        facts.append(at_most(0, size))
        env[name] = Array(name, (size,), opaque(name, ElementType(f"type_of.{name}")), ElementType(f"type_of.{name}"))
    elif sort in (INT, TEXT) or sort.name == "Rational":
        env[name] = _value(name, sort, symbols)
    else:
        env.setdefault(f"given {name}", TRUE)
    return env


def _value(name: str, sort: Sort, symbols: dict[str, tuple[int, str]]) -> Value:
    if sort == TEXT:
        return TextSymbol(name)
    return Real(_symbol(name, "Real", symbols)) if sort.name == "Rational" else _symbol(name, "Int", symbols)


def signature_of(operator: Operator) -> Signature:
    """The schema of the newest version that a definition covers."""
    return next(s for s in reversed(signatures()[operator.name]) if operator.first <= s.version <= operator.last)


def run(
    operator: Operator,
    path: tuple[Term, ...],
    decided: Mapping[Term, int | str | bool | None],
    symbols: Mapping[str, tuple[int, str]],
) -> Run:
    """The ledger of one statement."""
    return Run(
        functions=specification().functions,
        apply=compose,
        algebra=Opaque(),
        texts=texts(operator),
        decided=decided,
        path=path,
        symbols=dict(symbols),
        base=frozenset(symbols),
    )


@cache
def texts(operator: Operator) -> tuple[str, ...]:
    """The text literals of a definition, those of the functions that it uses included."""
    functions = specification().functions
    found: dict[str, None] = {}
    seen: set[str] = set()
    called: set[str] = set()

    def visit(expr: Expr) -> None:
        called.update(str(name) for name in expr.args[:1] if expr.head == "call")
        if expr.head == "text":
            found[str(expr.args[0])] = None
        for arg in expr.args:
            for label in getattr(arg, "labels", ()):
                found[label] = None
        name = expr.args[0] if expr.head == "call" else None
        if isinstance(name, str) and name in functions and name not in seen:
            seen.add(name)
            body = functions[name].body
            if body is not None:
                visit(body)
        for child in expr.children():
            visit(child)

    for statement in operator.statements:
        visit_statement(statement, visit)
    return (*found, *EQUATIONS) if "einsum_term" in called else tuple(found)


EQUATIONS = (
    "i->i", "ij->ji", "ii->i", "ij->", "ii", "i,i->", "i,j->ij", "ij,jk->ik", "ij,kj", "ij,jk,kl->il", "bij,bjk->bik",
    "...->...", "...i->...", "...ij,...jk->...ik", "...i,i->...",
)  # fmt: skip
"""The equations at which definitions that use one are instantiated."""


def visit_statement(statement: Statement, visit: Callable[[Expr], None]) -> None:
    """Visits every expression of a statement."""
    visit(statement.expr)
    for item in statement.ranges:
        visit(item.bound)
    for inner in statement.body:
        visit_statement(inner, visit)


# ---- Exploration ------------------------------------------------------------------------------


def explore(instance: Instance, choose: Choose) -> Iterator[Batch]:
    """The obligations of every path, each once; the last batch of a path that reaches the end is not dead."""
    waiting = [start(instance)]
    while waiting:
        path = waiting.pop()
        statements = instance.operator.statements
        while path.position < len(statements):
            statement = statements[path.position]
            scope = Scope(path.env, run(instance.operator, path.facts, path.decided, path.symbols))
            try:
                behind, meaning = perform(statement, scope, path.meaning)
            except Split as split:
                waiting += [decide(path, split, case, words) for case, words in choose(path, split)]
                break
            except Dead:
                yield Batch(path, statement, tuple(_completed(scope, path)), dead=True)
                break
            facts = tuple(dict.fromkeys((*path.facts, *behind.facts, *scope.run.axioms)))
            obligations = tuple(_completed(scope, path))
            path = replace(
                path,
                position=path.position + 1,
                env=behind.env,
                facts=facts,
                symbols=scope.run.symbols,
                meaning=meaning,
            )
            yield Batch(path, statement, obligations)


def _completed(scope: Scope, path: Path) -> Iterator[Obligation]:
    """The obligations with the facts of the path, those about new symbols included."""
    for obligation in scope.run.obligations:
        yield replace(obligation, facts=(*path.facts, *scope.run.axioms, *obligation.facts))


def decide(path: Path, split: Split, case: int | str | bool | None, words: str) -> Path:
    """The path where the split has one outcome; None: none of the candidates."""
    decided = {**path.decided, split.term: case}
    facts = list(path.facts)
    env = path.env
    match case:
        case bool():
            known = TRUE if case else FALSE
            env = {name: substitute(value, split.term, known) for name, value in env.items()}
            facts = [_term(substitute_term(fact, split.term, known)) for fact in facts]
            facts.append(split.term if case else opposite(split.term))
        case int():
            env = {name: substitute(value, split.term, case) for name, value in env.items()}
            facts = [_term(substitute_term(fact, split.term, case)) for fact in facts]
            facts.append(equal(split.term, case))
        case None:
            facts += [opposite(equal(split.term, c)) for c in split.candidates if type(c) is int]
    unique = tuple(dict.fromkeys(part for fact in facts for part in conjuncts(fact)))
    cases = (*path.cases, words) if words else path.cases
    decisive = {**path.decisive, **split.symbols}
    return replace(path, decided=decided, facts=unique, env=env, cases=cases, decisive=decisive)


def substitute(value: Value, term: Term, number: Int) -> Value:
    """The value with a number in place of a term."""
    match value:
        case Term():
            return substitute_term(value, term, number)
        case Array(shape=shape):
            return replace(value, shape=tuple(_int(substitute_term(size, term, number)) for size in shape))
        case Open(length=length):
            return replace(value, length=_int(substitute_term(length, term, number)))
        case Real(inner):
            found = substitute_term(inner, term, number)
            return Real(found) if isinstance(found, Term) else value
        case tuple():
            return tuple(substitute(item, term, number) for item in value)
        case _:
            return value


def _term(value: Int) -> Term:
    return value if isinstance(value, Term) else TRUE


def _int(value: Int) -> Int:
    return value


# ---- Composition ------------------------------------------------------------------------------


def compose(
    name: str,
    version: int,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Value],
    span: Span,
    scope: Scope,
) -> tuple[Array, ...]:
    """The outputs of an operator that the text applies: what it requires is demanded here, its own obligations hold."""
    operator = definition(name, version)
    ports: dict[str, Value | None] = {}
    for position, port in enumerate(operator.inputs):
        if port.mark == "*":
            ports[port.name] = tuple(value for value in inputs[position:] if value is not None)
        else:
            ports[port.name] = inputs[position] if position < len(inputs) else None
    stated: dict[str, Value | None] = {**defaults(operator, version), **attributes}
    names: dict[str, Value] = {f"given {port.name}": TRUE for port in operator.outputs}
    inner = replace(scope, env={**names, **opening(operator, ports, stated)})
    inner = bind_shapes(operator, inner, span)
    dimensions = frozenset(size for value in ports.values() for size in _sizes(value))
    meaning = Meaning(operator, {}, False, dimensions, span)
    for statement in operator.statements:
        inner, meaning = _inside(statement, inner, meaning)
    return tuple(meaning.outputs[port.name] for port in operator.outputs if port.name in meaning.outputs)


def _inside(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """A statement of an applied operator: only a requirement is an obligation."""
    if statement.kind == "require":
        return perform(statement, scope, meaning)
    scope.run.quiet += 1
    try:
        return perform(statement, scope, meaning)
    finally:
        scope.run.quiet -= 1


def _sizes(value: Value | None) -> Iterator[Term]:
    if isinstance(value, Array):
        yield from (size for size in value.shape if isinstance(size, Term))


def definition(name: str, version: int) -> Operator:
    """The definition of an operator at a version. Raises InternalError where the specification has none."""
    for operator in specification().operators.get(name, ()):
        if operator.first <= version <= operator.last:
            return operator
    raise InternalError(f"{name}-{version} has no definition")


def defaults(operator: Operator, version: int) -> dict[str, Value | None]:
    """The attributes that an application does not state: the schema's defaults, None where there is none."""
    from .symbolic_attributes import default_of

    return {name: default_of(operator.name, version, name) for name in signature_of(operator).attributes}
