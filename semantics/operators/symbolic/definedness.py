"""Definedness of an operator definition: its obligations over arbitrary sizes, ranks instantiated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, islice, product
from math import prod

from sonnx.spec.elaborate.core import Binding, Core, CoreOperator, CoreStatement
from sonnx.spec.elaborate.schema import FormalAttribute
from sonnx.spec.elaborate.sorts import TYPE
from sonnx.spec.language.syntax import INT, TEXT, Port, Sort
from sonnx.spec.library import specification

from ...formulas.terms import FALSE, TRUE, Term
from .elements.opaque import Opaque
from .numbers import Int, Real, at_most, either, equal, opposite, substitute_term, within
from .rows import coded, unit
from .statements import Meaning, bind_shapes, compose, opaque, output, perform, signature_of, unread
from .values import (
    LENGTHS,
    Array,
    Bounded,
    Dead,
    ElementType,
    Env,
    Evaluation,
    Field,
    Given,
    Name,
    Obligation,
    Open,
    Part,
    Row,
    Scope,
    Split,
    TextSymbol,
    Value,
    conjuncts,
)

# Instances of operator definitions: the numbers of axes are fixed, sizes and attributes are not.


RANKS = range(5)
"""The numbers of axes that a name with dots stands for where a port has no other axis; one less beside others."""
VARIADIC = ((0,), (1,), (2,), (3,), (1, 1), (2, 2), (1, 2), (2, 1), (0, 2), (2, 2, 2), (3, 3), (1, 2, 1), (1, 1, 1, 1))
"""The ranks of variadic inputs."""
MAPS = ((1, 1),)
"""The ranks of the tensors that a map consists of: keys and values."""
SEQUENCES = ((), (1,), (0, 2), (2, 2))
"""The ranks of the tensors in sequences and optionals; an optional with two entries is none, and does no harm."""
OUTPUTS = ((0,), (0, 0), (0, 0, 0))
"""The number of outputs in a list of them."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A definition with the number of axes of each input; a variadic input and a sequence have one number for each of
    their tensors, a list of outputs a 0 for each output.
    """

    operator: CoreOperator
    ranks: Mapping[str, tuple[int, ...]]
    every: bool = False

    @property
    def label(self) -> str:
        """The ranks in words: `X: 4, W: 4`."""
        if self.every:
            return "any number of axes"
        return ", ".join(f"{name}: {' '.join(map(str, ranks))}" for name, ranks in self.ranks.items())


def is_list(operator: CoreOperator, port: Port) -> bool:
    """True if an input is a list: of tensors where it is variadic, a sequence or an optional."""
    return port.mark == "*" or any(f.name == port.name and f.sort.name == "list" for f in signature_of(operator).inputs)


def is_map(operator: CoreOperator, port: Port) -> bool:
    """True if an input is a map."""
    return any(f.name == port.name and f.is_map for f in signature_of(operator).inputs)


# Definedness of an operator definition: its obligations over arbitrary sizes, ranks instantiated.
# An instance fixes the numbers of axes. `explore` runs its definition statement by statement; where a statement needs a
# case distinction, the path forks, and a chooser says which cases are possible.


@dataclass(frozen=True, slots=True)
class Path:
    """A point in a definition: the statements from `position` on are still to be performed.

    facts: what the requirements so far say and what was decided. cases: the decisions in words. decisive: the symbols
    that decisions within a statement are about.
    """

    instance: Instance
    position: int
    env: Env
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
    statement: CoreStatement
    obligations: tuple[Obligation, ...]
    dead: bool = False


Choose = Callable[[Path, Split], Sequence[tuple[int | str | bool | None, str]]]
"""Which cases of a split are possible on a path: the candidates, and None for `none of them`; each with its words."""


# ---- The start --------------------------------------------------------------------------------


def start(instance: Instance) -> Path:
    """The path before the first statement: every size and attribute is a symbol."""
    if instance.every:
        return _start_open(instance)
    operator = instance.operator
    signature = signature_of(operator)
    symbols: dict[str, tuple[int, str]] = {}
    facts: list[Term] = []
    env: dict[Name, Value] = {}
    for attribute in signature.attributes.values():
        env |= opened_attribute(attribute, operator.names[attribute.name], symbols, facts)
    dimensions: set[Term] = set()
    for port in operator.inputs:
        made, listed, paired = [], is_list(operator, port), is_map(operator, port)
        for number, rank in enumerate(instance.ranks[port.name]):
            kind = ElementType(f"{port.type}.{number}" if paired else port.types[number % len(port.types)])
            name = f"{port.name}.{number}" if listed else port.name
            sizes = f"{port.name}.0" if paired else name  # there are as many keys as values
            shape = tuple(_symbol(f"{sizes}.{axis}", "Int", symbols) for axis in range(rank))
            facts += [at_most(0, size) for size in shape]
            dimensions.update(shape)
            made.append(Array(name, shape, opaque(name, kind), kind))
        variable = operator.names[port.name]
        env[variable] = tuple(made) if listed else made[0]
        if port.mark == "?":
            env[Given(variable)] = _symbol(f"given.{port.name}", "Bool", symbols)
    for port in operator.outputs:
        variable = output(operator, port)
        if port.mark == "*":
            env[variable] = instance.ranks[port.name]
        env[Given(variable)] = _symbol(f"given.{port.name}", "Bool", symbols) if port.mark == "?" else TRUE
    scope = Scope(env, run(operator, (), {}, symbols))
    named, same = _named(operator, scope)
    return Path(
        instance,
        0,
        named,
        (*facts, *same),
        {},
        dict(scope.run.symbols),
        Meaning(operator, {}, True, frozenset(dimensions)),
    )


def _start_open(instance: Instance) -> Path:
    """The same where the numbers of axes and the lengths of lists are symbols, too."""
    operator, signature = instance.operator, signature_of(instance.operator)
    made = Openings(operator)
    for attribute in signature.attributes.values():
        own = operator.names[attribute.name]
        made.env |= opened_attribute(attribute, own, made.symbols, made.facts) | made.listed(attribute, own)
    for port in operator.inputs:
        least = next(f.least for f in signature.inputs if f.name == port.name)
        made.env[operator.names[port.name]] = made.port(port, least)
        if port.mark == "?":
            made.env[Given(operator.names[port.name])] = _symbol(f"given.{port.name}", "Bool", made.symbols)
    for port in operator.outputs:
        variable = output(operator, port)
        if port.mark == "*":
            count = _symbol(f"len.{port.name}", "Int", made.symbols)
            made.facts.append(at_most(1, count))
            made.env[variable] = Row((Part(count, lambda _k, _scope: 0),))
        given = _symbol(f"given.{port.name}", "Bool", made.symbols) if port.mark == "?" else TRUE
        made.env[Given(variable)] = given
    meaning = Meaning(operator, {}, True, frozenset(made.dimensions))
    return Path(instance, 0, made.env, tuple(made.facts), {}, made.symbols, meaning)


@dataclass(slots=True)
class Openings:
    """What a definition starts with where the numbers of axes are open: names, symbols and what is known of them."""

    operator: CoreOperator
    env: dict[Name, Value] = field(default_factory=dict)
    symbols: dict[str, tuple[int, str]] = field(default_factory=lambda: {"at": (2, "Int"), "inside": (2, "Bool")})
    facts: list[Term] = field(default_factory=list)
    dimensions: set[Term] = field(default_factory=set)

    def listed(self, attribute: FormalAttribute, own: Binding) -> dict[Name, Value]:
        """An attribute that is a list or a tensor."""
        sort, name = attribute.sort, attribute.name
        if sort.name == "Array":
            kind = ElementType(f"type_of.{name}")
            shape = self.shape(name)
            return {own: Field(name, shape, unread(name, (), shape, kind), kind)}
        if sort.name != "list":
            return {}
        length = _symbol(f"len.{name}", "Int", self.symbols)
        if sort.element == INT:
            return {own: coded(_symbol(f"list.{name}", "Int", self.symbols), length)}
        if sort.element is not None and sort.element.name == "Rational":
            self.symbols[f"entry.{name}"] = (1, "Real")
            return {own: Row((Part(length, lambda k, _scope: Real(Term(f"entry.{name}", (k,)))),))}
        return {own: Row((Part(length, lambda k, here: self.text(name, k, here)),))}

    def text(self, name: str, position: Int, here: Scope) -> TextSymbol:
        """An entry of a list of texts: any text, by its place."""
        here.run.symbols[f"text.{name}"] = (1, "Int")
        return TextSymbol(f"{name} {position}", Term(f"text.{name}", (position,)))

    def port(self, port: Port, least: int) -> Value:
        """An input."""
        if is_map(self.operator, port):
            return self.paired(port)
        if port.mark == "*":
            return self.several(port, max(least, 1))
        if is_list(self.operator, port):
            return self.several(port, 0)
        kind = ElementType(port.type)
        if port.shape is None:
            shape = self.shape(port.name)
            return Field(port.name, shape, unread(port.name, (), shape, kind), kind)
        parts: list[Part] = []
        for item in port.shape:
            if isinstance(item, int):
                parts.append(unit(item))
                continue
            name = self.operator.names[item[0]]
            if name not in self.env:
                self.env[name] = self.shape(item[0]) if item[1] else self.size(item[0])
            known = self.env[name]
            parts += known.parts if isinstance(known, Row) else (unit(known),)
        if any(not isinstance(item, int) and item[1] for item in port.shape):
            shape = Row(tuple(parts))
            return Field(port.name, shape, unread(port.name, (), shape, kind), kind)
        sizes = tuple(part.value for part in parts if isinstance(part.value, int | Term))
        return Array(port.name, sizes, opaque(port.name, kind), kind)

    def size(self, name: str) -> Term:
        """The size of an axis."""
        size = _symbol(f"size.{name}", "Int", self.symbols)
        self.facts.append(at_most(0, size))
        self.dimensions.add(size)
        return size

    def shape(self, name: str) -> Row:
        """Sizes of axes of an open number."""
        length, code = (_symbol(f"{word}.{name}", "Int", self.symbols) for word in ("axes", "shape"))
        self.facts += [at_most(0, length), _all_sizes(("k",), code, length)]
        self.dimensions.add(code)
        return coded(code, length, sizes=True)

    def paired(self, port: Port) -> tuple[Array, ...]:
        """A map: its keys, and as many values."""
        size = self.size(port.name)
        sides = ((f"{port.name}.{k}", ElementType(f"{port.type}.{k}")) for k in range(2))
        return tuple(Array(name, (size,), opaque(name, kind), kind) for name, kind in sides)

    def several(self, port: Port, least: int) -> Row:
        """A variadic input, a sequence, an optional: tensors of an open number, each of an open number of axes."""
        name, kind = port.name, ElementType(port.type)
        if port.others or port.shape is not None:
            raise Bounded(f"{name} is a list of groups of tensors")
        count = _symbol(f"len.{name}", "Int", self.symbols)
        length, code = (f"{word}.{name}" for word in ("axes", "shape"))
        self.symbols |= {length: (1, "Int"), code: (1, "Int")}
        p = Term("p")
        self.facts += [at_most(least, count), Term("forall", ("p", at_most(0, Term(length, (p,)))))]
        self.facts.append(_all_sizes(("p", "k"), Term(code, (p,)), Term(length, (p,))))
        self.dimensions.add(Term(code))

        def tensor(k: Int, _scope: Scope) -> Value:
            shape = coded(Term(code, (k,)), Term(length, (k,)), sizes=True)
            return Field(name, shape, unread(name, (k,), shape, kind), kind)

        return Row((Part(count, tensor),))


def _all_sizes(names: tuple[str, ...], code: Term, length: Term) -> Term:
    """No size is negative."""
    k = Term("k")
    return Term("forall", (*names, either(opposite(within(k, length)), at_most(0, Term("at", (code, k))))))


def _named(operator: CoreOperator, scope: Scope) -> tuple[dict[Name, Value], list[Term]]:
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


def opened_attribute(
    attribute: FormalAttribute, own: Binding, symbols: dict[str, tuple[int, str]], facts: list[Term]
) -> dict[Name, Value]:
    """An attribute of any value, and whether it is given where it may be absent. The texts of a list are one text."""
    name = attribute.name
    env: dict[Name, Value] = {}
    if attribute.optional:
        env[Given(own)] = _symbol(f"given.{name}", "Bool", symbols)
    sort = attribute.sort
    if sort.name == "list" and sort.element is not None:
        element = sort.element
        length = _symbol(f"len.{name}", "Int", symbols)
        facts.append(at_most(0, length))
        made = [_value(name if element == TEXT else f"{name}.{k}", element, symbols) for k in LENGTHS]
        env[own] = Open(length, lambda k: made[k])
    elif sort.name == "Array":
        size = _symbol(f"{name}.0", "Int", symbols)
        facts.append(at_most(0, size))
        env[own] = Array(name, (size,), opaque(name, ElementType(f"type_of.{name}")), ElementType(f"type_of.{name}"))
    elif sort == TYPE:
        env[own] = ElementType(name)
    elif sort in (INT, TEXT) or sort.name == "Rational":
        env[own] = _value(name, sort, symbols)
    else:
        env.setdefault(Given(own), TRUE)
    return env


def _value(name: str, sort: Sort, symbols: dict[str, tuple[int, str]]) -> Value:
    if sort == TEXT:
        return TextSymbol(name)
    return Real(_symbol(name, "Real", symbols)) if sort.name == "Rational" else _symbol(name, "Int", symbols)


def run(
    operator: CoreOperator,
    path: tuple[Term, ...],
    decided: Mapping[Term, int | str | bool | None],
    symbols: Mapping[str, tuple[int, str]],
    *,
    every: bool = False,
) -> Evaluation:
    """The ledger of one statement."""
    return Evaluation(
        cores=specification().cores,
        apply=compose,
        algebra=Opaque(),
        texts=texts(operator),
        decided=decided,
        path=path,
        every=every,
        symbols=dict(symbols),
        base=frozenset(symbols),
    )


@cache
def texts(operator: CoreOperator) -> tuple[str, ...]:
    """The text literals of a definition, those of the functions that it uses included."""
    cores = specification().cores
    written: dict[str, None] = {}
    called: set[str] = set()

    def visit(nodes: Iterator[Core]) -> None:
        for node in nodes:
            if node.head == "literal" and node.sort == TEXT:
                written[str(node.value)] = None
            if node.head == "case":
                written.update(dict.fromkeys(label for labels in node.labels for label in labels))
            if node.head in ("fun", "define") and node.name not in called:
                called.add(node.name)
                if node.head == "define":
                    visit(cores.definition(node.name).body.nodes())

    for statement in operator.statements:
        visit(statement.nodes())
    return (*written, *EQUATIONS) if "einsum_term" in called else tuple(written)


EQUATIONS = (
    "i->i", "ij->ji", "ii->i", "ij->", "ii", "i,i->", "i,j->ij", "ij,jk->ik", "ij,kj", "ij,jk,kl->il", "bij,bjk->bik",
    "...->...", "...i->...", "...ij,...jk->...ik", "...i,i->...",
)  # fmt: skip
"""The equations at which definitions that use one are instantiated."""


# ---- Exploration ------------------------------------------------------------------------------


def explore(instance: Instance, choose: Choose) -> Iterator[Batch]:
    """The obligations of every path, each once; the last batch of a path that reaches the end is not dead."""
    waiting = [start(instance)]
    while waiting:
        path = waiting.pop()
        statements = instance.operator.statements
        while path.position < len(statements):
            statement = statements[path.position]
            run_ = run(instance.operator, path.facts, path.decided, path.symbols, every=instance.every)
            scope = Scope(path.env, run_)
            try:
                behind, meaning = perform(statement, scope, path.meaning)
            except Split as split:
                waiting += [decide(path, split, case, words) for case, words in choose(path, split)]
                break
            except Dead:
                reached = replace(path, symbols=scope.run.symbols)  # obligations are about indices of the statement too
                yield Batch(reached, statement, tuple(_completed(scope, path)), dead=True)
                break
            facts = tuple(dict.fromkeys((*path.facts, *behind.facts, *scope.run.axioms, *scope.run.assumed)))
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
    """The obligations with the facts of the path."""
    for obligation in scope.run.obligations:
        yield replace(obligation, facts=(*path.facts, *obligation.facts))


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
            replaced = substitute_term(inner, term, number)
            return Real(replaced) if isinstance(replaced, Term) else value
        case tuple():
            return tuple(substitute(item, term, number) for item in value)
        case _:
            return value


def _term(value: Int) -> Term:
    return value if isinstance(value, Term) else TRUE


def _int(value: Int) -> Int:
    return value


# The numbers of axes at which operator definitions are instantiated: those that the requirements leave possible.
# What a requirement says of numbers of axes alone (a scale is a scalar, the kernel has as many axes as the data) is
# found by evaluating it at each of them; sizes and attributes are open there.


ALL = 125
"""So many combinations are all tried, whatever the requirements say."""
MOST = 1_000
"""A requirement that concerns more combinations than this excludes none."""
CASES = 100
"""A requirement that needs more cases than this at one combination does not exclude it."""

Lists = Mapping[str, tuple[int, ...]]
Ranks = tuple[int, ...]


def instances(operator: CoreOperator) -> Iterator[Instance]:
    """The definition at all combinations of ranks; where these are more than `ALL`, at combinations that the
    requirements admit, so many of them that any three names have all the ranks there that they can have together.
    """
    limits, lists = _limits(operator)
    first = {name: choices[0] for name, choices in lists.items()}
    if prod(limits.values()) <= ALL:
        every = list(product(*map(range, limits.values())))
    else:
        every = _covering(_admitted(operator, limits, first))
    for ranks in every:
        for chosen in product(*lists.values()):
            yield _instance(operator, dict(zip(limits, ranks, strict=True)), dict(zip(lists, chosen, strict=True)))


def _limits(operator: CoreOperator) -> tuple[dict[str, int], dict[str, tuple[tuple[int, ...], ...]]]:
    """The ranks that are tried: of each name with dots and of inputs without a shape, and of the entries of lists."""
    limits: dict[str, int] = {}
    lists: dict[str, tuple[tuple[int, ...], ...]] = {}
    for port in operator.inputs:
        for name in _dotted(port):
            alone = len(port.shape or ()) == 1
            limits[name] = min(limits.get(name, len(RANKS)), len(RANKS) - (0 if alone else 1))
        if port.mark == "*":
            lists[port.name] = tuple(_grouped(len(port.others)))
        elif is_list(operator, port):
            lists[port.name] = MAPS if is_map(operator, port) else SEQUENCES
        elif port.shape is None:
            limits[port.name] = 3
    return limits, lists | {port.name: OUTPUTS for port in operator.outputs if port.mark == "*"}


def _grouped(others: int) -> Iterator[tuple[int, ...]]:
    """The ranks of a variadic input whose groups have so many entries behind the first: in one group alone the others
    have 0 to 2 axes each, in several groups all 0 or all 1.
    """
    for ranks in VARIADIC:
        behind = product(range(3), repeat=others) if len(ranks) == 1 else ((rank,) * others for rank in range(2))
        yield from dict.fromkeys(tuple(it for first in ranks for it in (first, *rest)) for rest in behind)


def _dotted(port: Port) -> list[str]:
    return [item[0] for item in port.shape or () if not isinstance(item, int) and item[1]]


def _instance(operator: CoreOperator, known: Mapping[str, int], lists: Lists) -> Instance:
    ranks: dict[str, tuple[int, ...]] = {port.name: lists[port.name] for port in operator.outputs if port.mark == "*"}
    for port in operator.inputs:
        if port.name in lists:
            ranks[port.name] = lists[port.name]
        elif port.shape is None:
            ranks[port.name] = (known.get(port.name, 0),)
        else:
            sizes = [1 if isinstance(item, int) or not item[1] else known[item[0]] for item in port.shape]
            ranks[port.name] = (sum(sizes),)
    return Instance(operator, ranks)


# ---- What the requirements admit --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """The ranks of some names, by position, that a requirement admits together."""

    names: tuple[int, ...]
    admitted: frozenset[Ranks]


def _admitted(operator: CoreOperator, limits: Mapping[str, int], lists: Lists) -> list[Ranks]:
    """The combinations of ranks that no requirement excludes."""
    tables = list(_tables(operator, limits, lists))
    admitted: list[Ranks] = [()]
    for position, limit in enumerate(limits.values()):
        complete = [table for table in tables if table.names[-1] == position]
        longer = ((*ranks, rank) for ranks in admitted for rank in range(limit))
        admitted = [r for r in longer if all(tuple(r[k] for k in table.names) in table.admitted for table in complete)]
    return admitted


def _tables(operator: CoreOperator, limits: Mapping[str, int], lists: Lists) -> Iterator[Table]:
    names = list(limits)
    for position, statement in enumerate(operator.statements):
        if statement.kind != "require":
            continue
        kept, read = _needed(operator, position)
        of = tuple(k for k, name in enumerate(names) if operator.names[name] in read)
        ranges = [range(limits[names[k]]) for k in of]
        if not of or prod(map(len, ranges)) > MOST or any(s.kind in ("view", "along") for s in kept):
            continue
        part = replace(operator, statements=(*kept, statement))
        others = dict.fromkeys(names, 0)
        possible = (
            ranks
            for ranks in product(*ranges)
            if _possible(_instance(part, others | {names[k]: r for k, r in zip(of, ranks, strict=True)}, lists))
        )
        yield Table(of, frozenset(possible))


def _needed(operator: CoreOperator, position: int) -> tuple[list[CoreStatement], set[Binding]]:
    """The statements that a statement rests on, in their order, and the names that all of them mention; an input stands
    for the names in its shape.
    """
    kept: list[CoreStatement] = []
    read = _mentioned(operator.statements[position])
    for statement in reversed(operator.statements[:position]):
        if statement.kind != "require" and read.intersection(statement.binds):
            kept.insert(0, statement)
            read |= _mentioned(statement)
    for port in operator.inputs:
        if operator.names[port.name] in read:
            read.update(operator.names[name] for name in _dotted(port))
    return kept, read


def _mentioned(statement: CoreStatement) -> set[Binding]:
    return {node.variable for node in statement.nodes() if node.variable is not None}


def _possible(instance: Instance) -> bool:
    """True if some path gets to the end or is undefined, which is to be found out; true where that takes many cases."""
    last = len(instance.operator.statements)
    batches = 0
    for batch in islice(explore(instance, _cases), CASES):
        refused = batch.dead and batch.path.position == last - 1 and all(o.goal != FALSE for o in batch.obligations)
        if batch.path.position == last or (batch.dead and not refused):
            return True
        batches += 1
    return batches == CASES


def _cases(path: Path, split: Split) -> Sequence[tuple[int | str | bool | None, str]]:
    """Every case of a split: no solver is asked."""
    if split.soft:
        return [("open", "")]
    possible = [c for c in split.candidates if isinstance(c, str) or _fact(split.term, c) != FALSE]
    return [(candidate, "") for candidate in possible]


def _fact(term: Term, candidate: int | bool) -> Term:
    if isinstance(candidate, bool):
        return term if candidate else opposite(term)
    return equal(term, candidate)


# ---- Some instead of all ----------------------------------------------------------------------


def _covering(every: Sequence[Ranks]) -> list[Ranks]:
    """Combinations, taken greedily, in which any three positions have every triple of ranks that they have at all."""
    seen: set[tuple[tuple[int, int], ...]] = set()
    covering = []
    for ranks in every:
        triples = set(combinations(enumerate(ranks), 3))
        if not triples <= seen:
            seen |= triples
            covering.append(ranks)
    return covering
