"""Formulas of the text as SMT-LIB: quantifiers stay quantifiers, definitions stay definitions.

Elements of sorts are integers, texts are named integers. A set is the predicate of its members, a list its length and
its elements, so a quantifier over a set is guarded by membership. A fact is applied by its name; `Uses` notes which
facts are applied to what, so that `tables` can define them. Inductive predicates are applied by the name that the
`Reading` of the formula gives them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas import reading
from sonnx.spec.elaborate.core import Binding, Core
from sonnx.spec.elaborate.formulas import Cores
from sonnx.spec.elaborate.sorts import ANY
from sonnx.spec.language.syntax import BOOL, INT, TEXT, Sort

from ...smt.smtlib import numeral


class InexpressibleError(Exception):
    """A formula that has no script; its ground form remains."""


Atom = Callable[[str, str], str]
"""The text of an inductive atom: from the name of the predicate and the text of its arguments."""


@dataclass(slots=True)
class Uses:
    """The parts of the text that formulas mention, while they are written.

    texts: every text. facts: for each fact, at each position of an argument the texts that stand there, None where
    something else does too. parts: the names under which a fact is applied (`f`, `f.len`, `f.at`, `f.has`).
    definitions: what the definitions of the text became, each behind those that it mentions. factors: the facts whose
    values are multiplied or divided by, numerals: the numbers that are. symbols: what stands for a value that nothing
    gives, with its sort. bound: how often a name was given to a variable.
    """

    texts: dict[str, None] = field(default_factory=dict)
    facts: dict[str, list[set[str] | None]] = field(default_factory=dict)
    parts: dict[str, dict[str, None]] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    inductive: dict[str, None] = field(default_factory=dict)
    factors: dict[str, None] = field(default_factory=dict)
    numerals: dict[int, None] = field(default_factory=dict)
    symbols: dict[str, Sort] = field(default_factory=dict)
    bound: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Several:
    """A set or a list. holds: the test of a member. length, at: how many members are listed, and each by its position.
    ordered: a list.
    """

    holds: Callable[[str], str]
    length: Callable[[], str] | None = None
    at: Callable[[str], str] | None = None
    ordered: bool = False


Meaning = str | Several
"""The text of a truth value, a number, a text or an element; or a set or list."""


@dataclass(frozen=True, slots=True)
class Work:
    """uses: what is noted. atom: how inductive atoms read; none may occur without it."""

    uses: Uses
    atom: Atom | None = None


Context = reading.Context[Work, Meaning]
SCRIPTS = reading.Reading[Context, Meaning]("the writer of scripts", InexpressibleError)
"""The table of the fold."""
rule, meaning = SCRIPTS.rule, SCRIPTS.meaning


def bind(variable: Binding, context: Context) -> tuple[str, Context]:
    """A variable by its name, renamed where the name is taken, and the context in which it is bound."""
    name = variable.name
    taken = name in context.cores.functions or name in context.scope.values()
    spelled = fresh(name, context.work.uses) if taken else name
    return spelled, context.bind(variable, spelled)


def fresh(name: str, uses: Uses) -> str:
    """A name that no other variable has."""
    number = uses.bound[name] = uses.bound.get(name, 1) + 1
    return f"{name}.{number}"


def formula(core: Core, context: Context) -> str:
    """A truth value, a number, a text or an element as SMT-LIB."""
    text = meaning(core, context)
    if not isinstance(text, str):
        raise InternalError("a truth value, a number, a text or an element was expected")
    return text


def formulas(core: Core, context: Context) -> list[str]:
    """The parts of an expression as SMT-LIB."""
    return [formula(part, context) for part in core.parts]


def several(core: Core, context: Context) -> Several:
    """A set or a list."""
    members = meaning(core, context)
    if not isinstance(members, Several):
        raise InternalError("a set or a list was expected")
    return members


def element_of(core: Core) -> Sort:
    """The sort of the elements of a set or list; those of an empty list are numbers."""
    element = None if core.sort is None else core.sort.element
    return INT if element in (None, ANY) else element


# ---- Spelling ---------------------------------------------------------------------------------


def sort_name(sort: Sort | None) -> str:
    """The name of a sort in a script."""
    return (sort or INT).name


def text_name(text: str) -> str:
    """The symbol of a text: the text itself between bars, what a symbol may not contain as $hex$."""
    spelled = "".join(c if " " <= c <= "~" and c not in "|\\$" else f"${ord(c):x}$" for c in text)
    return f'|"{spelled}"|'


def application(function: str, arguments: Sequence[str]) -> str:
    """A function applied; a constant without arguments."""
    return f"({function} {' '.join(arguments)})" if arguments else function


def both(parts: Sequence[str]) -> str:
    """A conjunction."""
    kept = [part for part in parts if part != "true"]
    return "true" if not kept else kept[0] if len(kept) == 1 else f"(and {' '.join(kept)})"


def either(parts: Sequence[str]) -> str:
    """A disjunction."""
    kept = [part for part in parts if part != "false"]
    return "false" if not kept else kept[0] if len(kept) == 1 else f"(or {' '.join(kept)})"


def quantified(quantifier: str, bound: Sequence[tuple[str, Sort | None]], guards: Sequence[str], body: str) -> str:
    """A quantifier with its variables kept to their domains."""
    variables = " ".join(f"({name} {sort_name(sort)})" for name, sort in bound)
    if quantifier == "exists":
        return f"(exists ({variables}) {both([*guards, body])})"
    guard = both(guards)
    return f"(forall ({variables}) {body if guard == 'true' else f'(=> {guard} {body})'})"


def free_of(prefix: str, sort: Sort | None, uses: Uses) -> str:
    """A symbol of which nothing is known."""
    name = fresh(prefix, uses)
    uses.symbols[name] = sort or INT
    return name


# ---- Leaves and connectives -------------------------------------------------------------------


@rule("literal")
def _constant(core: Core, context: Context) -> Meaning:
    match core.value:
        case bool():
            return "true" if core.value else "false"
        case int():
            return numeral(core.value)
        case text:
            return _literal(text, context.work.uses)


def _literal(text: str, uses: Uses) -> str:
    uses.texts[text] = None
    return text_name(text)


CONNECTIVES = {"not": "not", "implies": "=>", "iff": "=", "and": "and", "or": "or", "ite": "ite"}


@rule(*CONNECTIVES)
def _connective(core: Core, context: Context) -> Meaning:
    return application(CONNECTIVES[core.head], formulas(core, context))


@rule("case")
def _case(core: Core, context: Context) -> Meaning:
    """A chain of tests; where no arm fits, a value of which nothing is known."""
    subject, uses = formula(core.parts[0], context), context.work.uses
    tests: list[tuple[str, str]] = []
    otherwise: str | None = None
    for labels, arm in zip(core.labels, core.parts[1:], strict=True):
        body = formula(arm, context)
        if labels:
            tests.append((either([f"(= {subject} {_literal(x, uses)})" for x in labels]), body))
        else:
            otherwise = body
    text = otherwise if otherwise is not None else free_of("otherwise", core.sort, uses)
    for test, body in reversed(tests):
        text = f"(ite {test} {body} {text})"
    return text


# ---- Numbers and comparison -------------------------------------------------------------------

ARITHMETIC = {"add": "+", "sub": "-", "mul": "times", "div": "floor.div", "mod": "floor.mod"}


@rule("arithmetic")
def _arithmetic(core: Core, context: Context) -> Meaning:
    """Products by functions of their own, which `tables` defines for the values of the facts that the second argument
    mentions, since solvers decide linear arithmetic only."""
    one, two = core.parts
    name, uses = ARITHMETIC[core.name], context.work.uses
    if core.name not in ("add", "sub"):
        if core.name == "mul" and len(list(one.nodes())) < len(list(two.nodes())):
            one, two = two, one
        uses.parts.setdefault(name, {})[name] = None
        uses.factors.update(_mentioned(two, context.cores))
        for node in two.nodes():
            if node.head == "literal" and isinstance(node.value, int):
                uses.numerals.update({abs(node.value): None, -abs(node.value): None})
    return application(name, [formula(one, context), formula(two, context)])


def _mentioned(core: Core, cores: Cores) -> dict[str, None]:
    """The facts that an expression mentions."""
    facts = {name: None for child in core.children() for name in _mentioned(child, cores)}
    if core.head == "fact":
        facts[core.name] = None
    elif core.head == "define":
        facts |= _mentioned(cores.definition(core.name).body, cores)
    return facts


@rule("neg")
def _neg(core: Core, context: Context) -> Meaning:
    return application("-", formulas(core, context))


@rule("compare")
def _compare(core: Core, context: Context) -> Meaning:
    left, right = core.parts
    match core.name:
        case "in" | "not in":
            text = several(right, context).holds(formula(left, context))
        case "=" | "!=":
            text = _equal(left, right, context)
        case _:
            return application(core.name, formulas(core, context))
    return f"(not {text})" if core.name in ("!=", "not in") else text


def _equal(left: Core, right: Core, context: Context) -> str:
    one, other = meaning(left, context), meaning(right, context)
    if isinstance(one, str) and isinstance(other, str):
        return f"(= {one} {other})"
    if not (isinstance(one, Several) and isinstance(other, Several)):
        raise InternalError("'=' compares values of one kind")
    if one.ordered and other.ordered and one.at and other.at and one.length and other.length:
        place = fresh("i", context.work.uses)
        inside = [f"(<= 0 {place})", f"(< {place} {one.length()})"]
        same = quantified("forall", [(place, INT)], inside, f"(= {one.at(place)} {other.at(place)})")
        return f"(and (= {one.length()} {other.length()}) {same})"
    member = fresh("x", context.work.uses)
    return quantified("forall", [(member, element_of(left))], [], f"(= {one.holds(member)} {other.holds(member)})")


# ---- Quantifiers and comprehensions -----------------------------------------------------------


def _bound(
    core: Core, context: Context, *, renamed: bool = False
) -> tuple[list[tuple[str, Sort | None]], list[str], Context]:
    """The variables with their sorts, that they are in their domains, and the context inside."""
    bound: list[tuple[str, Sort | None]] = []
    guards: list[str] = []
    for item in core.bound:
        domain, variable = several(item.domain, context), item.variable
        if renamed:
            name = fresh(variable.name, context.work.uses)
            context = context.bind(variable, name)
        else:
            name, context = bind(variable, context)
        bound.append((name, variable.sort))
        guards.append(domain.holds(name))
    return bound, guards, context


@rule("forall", "exists")
def _quantified(core: Core, context: Context) -> Meaning:
    bound, guards, inner = _bound(core, context)
    return quantified(core.head, bound, guards, *formulas(core, inner))


@rule("unique")
def _unique(core: Core, context: Context) -> Meaning:
    """Some assignment of members satisfies the body, and any two that do are the same."""
    bound, guards, inner = _bound(core, context)
    others, other_guards, other_inner = _bound(core, inner, renamed=True)
    same = both([f"(= {a} {b})" for (a, _), (b, _) in zip(bound, others, strict=True)])
    (this,), (other,) = formulas(core, inner), formulas(core, other_inner)
    some = quantified("exists", bound, guards, this)
    most = quantified("forall", [*bound, *others], [*guards, this, *other_guards, other], same)
    return f"(and {some} {most})"


@rule("set")
def _set(core: Core, context: Context) -> Meaning:
    variables, guards, inner = _bound(core, context, renamed=True)
    image, guard = formulas(core, inner)
    return Several(lambda x: quantified("exists", variables, [*guards, guard], f"(= {x} {image})"))


@rule("vector")
def _vector(core: Core, context: Context) -> Meaning:
    parts = formulas(core, context)

    def at(position: str) -> str:
        if not parts:
            return free_of("nothing", element_of(core), context.work.uses)
        text = parts[-1]
        for number, part in reversed(list(enumerate(parts[:-1]))):
            text = f"(ite (= {position} {number}) {part} {text})"
        return text

    inside = lambda x: either([f"(= {x} {part})" for part in parts])  # noqa: E731
    return Several(inside, lambda: str(len(parts)), at, ordered=True)


@rule("index")
def _index(core: Core, context: Context) -> Meaning:
    base, index = core.parts
    entries, position = several(base, context), formula(index, context)
    if entries.at is None or not entries.ordered:
        raise InternalError("a list takes one index")
    return entries.at(position)


# ---- Applications -----------------------------------------------------------------------------


@rule("size")
def _size(core: Core, context: Context) -> Meaning:
    counted = several(core.parts[0], context)
    if counted.length is None:
        raise InexpressibleError("the size of a set that is no fact has no SMT-LIB")
    return counted.length()


@rule("inductive")
def _inductive(core: Core, context: Context) -> Meaning:
    arguments, work = formulas(core, context), context.work
    if work.atom is None:
        raise InternalError(f"{core.name} stands where no inductive predicate may")
    work.uses.inductive[core.name] = None
    return work.atom(core.name, " ".join(arguments))


@rule("fact")
def _fact(core: Core, context: Context) -> Meaning:
    given, uses = formulas(core, context), context.work.uses
    _note(core, uses)
    name, result, parts = core.name, context.cores.functions[core.name].result, uses.parts.setdefault(core.name, {})

    def part(suffix: str, *more: str) -> str:
        parts[suffix] = None
        return application(name + suffix, [*given, *more])

    if result.element is None:
        return part("")
    at, length = (lambda i: part(".at", i)), (lambda: part(".len"))
    if result.name == "set":
        return Several(lambda x: part("", x), length, at)
    return Several(lambda x: part(".has", x), length, at, ordered=True)


def _note(core: Core, uses: Uses) -> None:
    noted = uses.facts.setdefault(core.name, [set() for _ in core.parts])
    for position, argument in enumerate(core.parts):
        known = noted[position]
        if argument.head == "literal" and argument.sort == TEXT and known is not None:
            known.add(str(argument.value))
        else:
            noted[position] = None


@rule("define")
def _defined(core: Core, context: Context) -> Meaning:
    """A definition stays one, unless it is a list, takes one, or mentions inductive predicates: then it is expanded."""
    name, uses = core.name, context.work.uses
    given = [meaning(argument, context) for argument in core.parts]
    texts = [text for text in given if isinstance(text, str)]
    result, definition = context.cores.functions[name].result, context.cores.definition(name)
    if len(texts) < len(given) or result.name == "list" or _is_inductive(definition.body, context.cores):
        return SCRIPTS.applied(name, given, context)
    if name not in uses.definitions:
        inner: Context = reading.Context(context.cores, Work(uses))
        parameters: list[tuple[str, Sort | None]] = []
        for parameter in definition.parameters:
            spelled, inner = bind(parameter, inner)
            parameters.append((spelled, parameter.sort))
        body = meaning(definition.body, inner)
        if isinstance(body, Several):
            member = fresh("x", uses)
            parameters.append((member, result.element))
            body = body.holds(member)
        signature = " ".join(f"({spelled} {sort_name(sort)})" for spelled, sort in parameters)
        sort = BOOL if result.element is not None else result
        uses.definitions[name] = f"(define-fun {name} ({signature}) {sort_name(sort)}\n  {body})"
    if result.element is None:
        return application(name, texts)
    return Several(lambda x: application(name, [*texts, x]))


def _is_inductive(core: Core, cores: Cores) -> bool:
    return any(
        node.head == "inductive" or (node.head == "define" and _is_inductive(cores.definition(node.name).body, cores))
        for node in core.nodes()
    )


def plain(text: str) -> str:
    """The text on one line of printable ASCII, for comments."""
    line = re.sub(r"\s+", " ", text).strip()
    return "".join(c if " " <= c <= "~" else f"\\u{{{ord(c):x}}}" for c in line)
