"""Both sides of a rule at open sizes: the left one as it is known, the right one as it is to be shown.

A case is a run of both sides from the start, under what was decided so far. Where the evaluation needs a number, a text
or a condition that is open, the case is replaced by one for each value that the facts leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeVar

from sonnx.semantics.formulas.terms import FALSE, TRUE, Term
from sonnx.semantics.model.elements import ELEMENT_TYPES
from sonnx.semantics.model.schemas import Formal, formal_at, schema_of
from sonnx.semantics.operators.symbolic import rows
from sonnx.semantics.operators.symbolic.definedness import Openings, opened_attribute, substitute
from sonnx.semantics.operators.symbolic.definedness import texts as own_texts
from sonnx.semantics.operators.symbolic.elements.terms import SIZE, Terms
from sonnx.semantics.operators.symbolic.numbers import Int, at_most, both, equal, opposite
from sonnx.semantics.operators.symbolic.statements import Meaning, asked, bind_shapes, composed, definition, perform
from sonnx.semantics.operators.symbolic.values import (
    Array,
    Bounded,
    Dead,
    ElementType,
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
    Value,
    conjuncts,
    demand,
)
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.elaborate.schema import ATTRIBUTE_SORTS, FormalAttribute
from sonnx.spec.language.syntax import Port, Span
from sonnx.spec.library import specification

from .asking import Asker, steps_in
from .comparison import parts_of
from .equality import shown
from .rules import LISTED, Instance, Rule, is_open

T = TypeVar("T")

CASES = 4000
"""The most cases of one instance."""


@dataclass(frozen=True, slots=True)
class Side:
    """A side that was evaluated: its outputs by name, and the definition's place."""

    operator: CoreOperator
    outputs: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Case:
    """Both sides. facts: what is known where the left side has a value. obligations: what the right side needs, each
    with the facts before it. axes: the numbers of axes of the inputs that have any number of them.
    """

    instance: Instance
    left: Side
    right: Side | None
    scope: Scope
    obligations: tuple[Obligation, ...]
    words: tuple[str, ...] = ()
    axes: Mapping[str, Int] = field(default_factory=dict)

    @property
    def facts(self) -> tuple[Term, ...]:
        """What is known by now."""
        run = self.scope.run
        return (*run.path, *run.axioms, *run.assumed, *self.scope.facts)

    @property
    def types(self) -> Mapping[str, tuple[str, ...]]:
        """The element types that the names of open ones stand for."""
        return self.scope.run.types


@dataclass(frozen=True, slots=True)
class Choices:
    """What was decided, with the words for it. long: the list that was decided to be a long one;
    before: the longer lists that are put off. made: the symbols that the evaluation had made by then.
    """

    decided: Mapping[Term, int | str | bool | None]
    facts: tuple[Term, ...] = ()
    words: tuple[str, ...] = ()
    long: str = ""
    before: tuple[Longer, ...] = ()
    made: tuple[str, ...] = ()

    def check(self, symbols: Mapping[str, object]) -> None:
        """What is known of symbols is known of the same ones: where a decision leaves out one that was made before, the
        next may have its name. Raises Bounded.
        """
        if any(a != b for a, b in zip(self.made, _made(symbols), strict=False)):
            raise Bounded("what was decided changes what the evaluation makes before")


def _made(symbols: Mapping[str, object]) -> tuple[str, ...]:
    """The symbols that the evaluation makes, in order."""
    return tuple(name for name in symbols if NUMBERED in name)


NUMBERED = "!"
"""In the names of such symbols."""


@dataclass(slots=True)
class Longer:
    """Cases with longer lists, which are tried where the short ones are impossible. spare: one of these is possible."""

    subject: str
    options: list[Choices]
    spare: bool = False


class Gone(Exception):  # noqa: N818 - no error: nothing is to be shown
    """The left side has no value."""


def explore(
    rule: Rule, instance: Instance, asker: Asker, cut: dict[str, None], judge: Callable[[Case], T]
) -> Iterator[T]:
    """The judgement of each case in which the left side has a value. cut: filled with the lists of which longer ones
    are left out.

    Raises Bounded, InternalError for what cannot be evaluated.
    """
    waiting: list[Choices | Longer] = [Choices({})]
    asker.seen.clear()
    for _ in range(CASES):
        if not waiting:
            return
        choices = waiting.pop()
        if isinstance(choices, Longer):
            if choices.spare:
                cut[choices.subject] = None
            else:
                waiting += choices.options
            continue
        try:
            case = _case(rule, instance, choices, asker)
            found = judge(case)
        except Gone:
            continue
        except Split as split:
            choices.check(split.symbols)
            options = _options(choices, split, asker)
            long = [option for option in options if option.long]
            if long:
                later = Longer(long[0].long, long)
                waiting.append(later)
                options = [replace(it, before=(*it.before, later)) for it in options if not it.long]
            waiting += options
            continue
        choices.check(case.scope.run.symbols)
        for later in choices.before:
            later.spare = True
        yield found
    raise Bounded(f"more than {CASES} cases")


def _options(choices: Choices, split: Split, asker: Asker) -> list[Choices]:
    """The cases of a split that the facts leave."""
    if steps_in(split.term):
        raise Bounded(f"a case for each step of a fold: {split.term}")
    symbols = {**split.symbols, **asker.atoms.symbols}
    known = (*choices.facts, *split.facts)

    def possible(*facts: Term) -> bool:
        return not asker.entails(known, opposite(both(*facts)), symbols)

    def chosen(value: int | str | bool | None, facts: Sequence[Term], word: str) -> Choices:
        decided = {**choices.decided, split.term: value}
        told, words = (*choices.facts, *facts), (*choices.words, word)
        return Choices(decided, told, words, "", choices.before, max(made, choices.made, key=len))

    subject, own = shown(split.term), {part.op for part in parts_of(split.term) if NUMBERED in part.op}
    made = _made(split.symbols) if own else ()
    numbers = [c for c in split.candidates if type(c) is int]
    outside = [opposite(equal(split.term, c)) for c in numbers]
    if split.soft and possible(*outside):
        return [chosen("open", (), "")]
    found: list[Choices] = []
    for candidate in split.candidates:
        match candidate:
            case bool():
                fact = split.term if candidate else opposite(split.term)
                if possible(fact):
                    found.append(chosen(candidate, (fact,), shown(fact)))
            case int():
                fact = equal(split.term, candidate)
                if possible(fact):
                    it = chosen(candidate, (fact,), f"{subject} = {candidate}")
                    found.append(replace(it, long=subject) if split.length and candidate > LISTED else it)
            case _:
                found.append(chosen(candidate, (), f"{subject} = {candidate!r}"))
    if numbers and not split.length and not split.soft and possible(*outside):
        found.append(chosen(None, outside, f"{subject} is something else"))
    return found


def open_types(rule: Rule, instance: Instance) -> dict[str, tuple[str, ...]]:
    """The element types that the names of open ones stand for."""
    allowed = {it.name: it.allowed for it in rule.left.types}
    return {kind: allowed[name] for name, kind in instance.types.items() if is_open(kind)}


# ---- The start ----------------------------------------------------------------------------------


def _case(rule: Rule, instance: Instance, choices: Choices, asker: Asker) -> Case:
    """Both sides under what was decided. Raises Split, Gone."""
    opened = Openings(rule.left)
    symbols, facts = opened.symbols, opened.facts
    algebra, admitted = Terms(), Admitted()
    ports = {port.name: _port(port, instance, opened, algebra) for port in rule.left.inputs}
    run = Evaluation(
        cores=specification().cores,
        apply=admitted.left,
        algebra=algebra,
        texts=tuple(dict.fromkeys((*texts(rule.left), *texts(rule.right)))),
        decided=choices.decided,
        path=(),
        every=instance.every,
        lazy=True,
        folded=algebra.folded,
        types=open_types(rule, instance),
    )
    run.asks = lambda scope, fact, quick: asker.entails(_known(scope), fact, scope.run.symbols, quick=quick)
    envs = []
    for operator in (rule.left, rule.right):
        env = _opening(operator, ports, instance, opened)
        for term, value in choices.decided.items():
            if isinstance(value, int):
                known = (TRUE if value else FALSE) if isinstance(value, bool) else value
                env = {name: _listed(substitute(item, term, known)) for name, item in env.items()}
        envs.append(env)
    run.symbols.update(symbols)
    run.base = frozenset(symbols)
    run.path = tuple(dict.fromkeys(part for fact in (*facts, *choices.facts) for part in conjuncts(fact)))
    try:
        left = _left(rule.left, envs[0], run)
    except Gone:
        choices.check(run.symbols)
        raise
    if FALSE in run.path:
        raise Gone
    run.apply = admitted.right
    run.obligations.clear()
    run.strict = True
    scope, right = _right(rule.right, envs[1], run)
    tensors = [it for value in ports.values() for it in (value if type(value) is tuple else (value,))]
    choices.check(run.symbols)
    axes = {it.name: rows.length_of(it.shape) for it in tensors if isinstance(it, Field)}
    return Case(instance, left, right, scope, tuple(run.obligations), choices.words, axes)


@dataclass(slots=True)
class Admitted:
    """The element types that an application admits. types: of a type that an attribute names, those with which the left
    side is a model. depth: the applications around, of which the text of the outermost is an operator's.
    """

    types: dict[str, frozenset[str]] = field(default_factory=dict)
    depth: int = 0

    def left(
        self, name: str, version: int, inputs: Sequence[Value | None], attributes: Mapping[str, Value], span: Span,
        scope: Scope, count: int,
    ) -> tuple[Value, ...]:  # fmt: skip
        """An application on the left side, which has a value."""
        self.depth += 1
        try:
            outputs = composed(name, version, inputs, attributes, span, scope, count, assume=True)
        finally:
            self.depth -= 1
        for formal, kind in _formals(name, version, inputs, outputs) if not self.depth else ():
            if kind not in ELEMENT_TYPES:
                self.types[kind] = self.types.get(kind, frozenset(ELEMENT_TYPES)) & _admits(formal)
        return outputs

    def right(
        self, name: str, version: int, inputs: Sequence[Value | None], attributes: Mapping[str, Value], span: Span,
        scope: Scope, count: int,
    ) -> tuple[Value, ...]:  # fmt: skip
        """An application on the right side. That its schema admits the element types of its inputs and outputs, each of
        those that an open one may be, is to be shown, too.
        """
        outputs = composed(name, version, inputs, attributes, span, scope, count, assume=False)
        kinds: dict[str, str] = {}
        for formal, kind in _formals(name, version, inputs, outputs):
            possible = scope.run.types_of(kind) or self.types.get(kind, frozenset(ELEMENT_TYPES))
            alike = not formal.homogeneous or kinds.setdefault(formal.type, kind) == kind
            if not (alike and _admits(formal).issuperset(possible)):
                demand(scope, "type", span, FALSE, f"{name}-{version} of {kind}")
        return outputs


def _formals(
    name: str, version: int, inputs: Sequence[Value | None], outputs: Sequence[Value]
) -> Iterator[tuple[Formal, str]]:
    """The tensors of an application: what each stands for, and its element type."""
    schema = schema_of(name, version)
    for formals, values in ((schema.inputs, inputs), (schema.outputs, outputs)) if schema else ():
        for position, value in enumerate(values):
            formal = formal_at(formals, position)
            if formal is not None and isinstance(value, Array | Field) and value.type.name:
                yield formal, value.type.name


def _admits(formal: Formal) -> frozenset[str]:
    return frozenset(kind for kind in ELEMENT_TYPES if f"tensor({kind})" in formal.types)


def _known(scope: Scope) -> tuple[Term, ...]:
    run = scope.run
    return (*run.path, *run.axioms, *run.assumed, *scope.facts)


def _listed(value: Value) -> Value:
    """A list of open length that was decided is a list."""
    if isinstance(value, Open) and isinstance(value.length, int):
        return tuple(value.entry(k) for k in range(value.length))
    return value


def _port(port: Port, instance: Instance, opened: Openings, algebra: Terms) -> Value | None:
    """An input."""
    if port.mark == "?" and not instance.given[port.name]:
        return None
    kind = ElementType(instance.types.get(port.type, port.type))
    if port.mark == "*":
        return tuple(
            _tensor(f"{port.name}.{k}", port, kind, instance, opened, algebra)
            for k in range(instance.counts[port.name])
        )
    return _tensor(port.name, port, kind, instance, opened, algebra)


def _tensor(
    name: str, port: Port, kind: ElementType, instance: Instance, opened: Openings, algebra: Terms
) -> Array | Field:
    """A tensor of any sizes: of as many axes as an instance says, or of any number of them."""
    symbols, facts = opened.symbols, opened.facts

    def size(word: str) -> Term:
        symbol = f"{SIZE}{word.replace(chr(39), '.prime')}"
        if symbol not in symbols:
            symbols[symbol] = (0, "Int")
            facts.append(at_most(0, Term(symbol)))
        return Term(symbol)

    pattern = port.shape if port.shape is not None else ((name, True),)
    if instance.every and any(not isinstance(item, int) and item[1] for item in pattern):
        parts: list[Part] = []
        for item in pattern:
            if isinstance(item, int) or not item[1]:
                parts.append(rows.unit(item if isinstance(item, int) else size(item[0])))
            else:
                parts += opened.shape(item[0]).parts
        read: Callable[[Row, Scope], Value] = lambda at, here: algebra.read(name, (rows.linked(at, here),), kind, here)  # noqa: E731
        return Field(name, Row(tuple(parts)), read, kind)
    shape: list[Int] = []
    for item in pattern:
        if isinstance(item, int):
            shape.append(item)
        elif item[1]:
            rank = instance.ranks[port.name if port.shape is None else item[0]]
            shape += [size(f"{item[0]}.{axis}") for axis in range(rank)]
        else:
            shape.append(size(item[0]))
    return Array(name, tuple(shape), lambda index, here: algebra.read(name, index, kind, here), kind)


def _opening(
    operator: CoreOperator, ports: Mapping[str, Value | None], instance: Instance, opened: Openings
) -> dict[Name, Value]:
    """The names that a side starts with."""
    env: dict[Name, Value] = dict(asked(operator, (True,) * len(operator.outputs)))
    for it in operator.attributes:
        own = operator.names[it.name]
        formal = FormalAttribute(it.name, ATTRIBUTE_SORTS[it.kind.upper()], it.mark == "?", "")
        env |= opened_attribute(formal, own, opened.symbols, opened.facts)
        env |= opened.listed(formal, own) if instance.every else {}
    for port in operator.inputs:
        variable, value = operator.names[port.name], ports[port.name]
        env[Given(variable)] = FALSE if value is None else TRUE
        if value is not None:
            env[variable] = value
        if port.type in operator.names:
            env[operator.names[port.type]] = ElementType(instance.types.get(port.type, port.type))
    return env


@cache
def texts(operator: CoreOperator) -> tuple[str, ...]:
    """The text literals of a definition and of the operators that it applies."""
    found = dict.fromkeys(own_texts(operator))
    for statement in operator.statements:
        for node in statement.nodes():
            if node.head == "apply" and isinstance(node.value, int):
                found |= dict.fromkeys(texts(definition(node.name, node.value)))
    return tuple(found)


# ---- The sides ----------------------------------------------------------------------------------


def _left(operator: CoreOperator, env: Mapping[Name, Value], run: Evaluation) -> Side:
    """The left side, of which everything that it needs is known. Raises Gone where it has no value."""
    try:
        scope = bind_shapes(operator, Scope(env, run), operator.span)
        meaning = Meaning(operator, {}, True, frozenset())
        _take(run, scope)
        for statement in operator.statements:
            scope, meaning = perform(statement, replace(scope, facts=()), meaning)
            _take(run, scope)
    except Dead:
        raise Gone from None
    return Side(operator, meaning.outputs)


def _take(run: Evaluation, scope: Scope) -> None:
    """What was found is known from here on, the obligations of the left side too."""
    owed = [
        Term("=>", (both(*obligation.facts), obligation.goal)) if obligation.facts else obligation.goal
        for obligation in run.obligations
    ]
    found = (*run.axioms, *run.assumed, *scope.facts, *owed)
    run.path = tuple(dict.fromkeys((*run.path, *(part for fact in found for part in conjuncts(fact)))))
    run.axioms.clear()
    run.assumed.clear()
    run.obligations.clear()


def _right(operator: CoreOperator, env: Mapping[Name, Value], run: Evaluation) -> tuple[Scope, Side | None]:
    """The right side; None where it has no value, which is an obligation that cannot be met."""
    scope = Scope(env, run)
    try:
        scope = bind_shapes(operator, scope, operator.span)
        meaning = Meaning(operator, {}, False, frozenset())
        for statement in operator.statements:
            scope, meaning = perform(statement, scope, meaning)
    except Dead:
        run.obligations.append(Obligation("value", operator.span, _known(scope), FALSE, operator.name))
        return scope, None
    return scope, Side(operator, meaning.outputs)
