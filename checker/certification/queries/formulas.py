"""Formulas of the text as SMT-LIB: quantifiers stay quantifiers, definitions stay definitions.

Elements of sorts are integers, texts are named integers. A set is the predicate of its members, a list its length and
its elements, so a quantifier over a set is guarded by membership. A fact is applied by its name; `Uses` notes which
facts are applied to what, so that `tables` can define them. Inductive predicates are applied by the name that the
`Reading` of the formula gives them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.evaluate import indexed
from sonnx.spec.language.syntax import BOOL, INT, TEXT, Arm, Binder, Expr, FunctionDeclaration, Sort


class InexpressibleError(Exception):
    """A formula that has no script; its ground form remains."""


Functions = Mapping[str, FunctionDeclaration]
Atom = Callable[[str, str], str]
"""How an inductive atom reads: from the name of the predicate and the text of its arguments."""


@dataclass(slots=True)
class Uses:
    """What formulas mention, while they are written.

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
class Scalar:
    """A truth value, a number, a text or an element."""

    text: str
    sort: Sort


@dataclass(frozen=True, slots=True)
class Several:
    """A set or a list. holds: whether something is a member. length, at: how many members are listed, and each by its
    position. ordered: a list.
    """

    element: Sort
    holds: Callable[[str], str]
    length: Callable[[], str] | None = None
    at: Callable[[str], str] | None = None
    ordered: bool = False


Meaning = Scalar | Several


@dataclass(frozen=True, slots=True)
class Context:
    """What the fold carries. scope: the variables. atom: how inductive atoms read; none may occur without it."""

    functions: Functions
    uses: Uses
    scope: Mapping[str, Meaning]
    atom: Atom | None = None

    def bind(self, name: str, sort: Sort) -> tuple[str, Context]:
        """A variable of this name, renamed where the name is taken, and the context in which it is bound."""
        taken = {meaning.text for meaning in self.scope.values() if isinstance(meaning, Scalar)}
        spelled = name if name not in self.functions and name not in taken else fresh(name, self.uses)
        return spelled, Context(self.functions, self.uses, {**self.scope, name: Scalar(spelled, sort)}, self.atom)


def fresh(name: str, uses: Uses) -> str:
    """A name that no other variable has."""
    number = uses.bound[name] = uses.bound.get(name, 1) + 1
    return f"{name}.{number}"


Rule = Callable[[Expr, Context], Meaning]
RULES: dict[str, Rule] = {}
"""The table of the fold: what each head becomes."""


def rule(*heads: str) -> Callable[[Rule], Rule]:
    """Enter a function in the table."""

    def enter(function: Rule) -> Rule:
        for head in heads:
            RULES[head] = function
        return function

    return enter


def meaning(expr: object, context: Context) -> Meaning:
    """What an expression becomes. Raises InexpressibleError for a computed list, and for the size of a computed set."""
    if not isinstance(expr, Expr) or expr.head not in RULES:
        found = expr.head if isinstance(expr, Expr) else type(expr).__name__
        raise InexpressibleError(f"no SMT-LIB is known for '{found}'")
    return RULES[expr.head](expr, context)


def scalar(expr: object, context: Context) -> Scalar:
    """What an expression for a truth value, a number, a text or an element becomes."""
    found = meaning(expr, context)
    if not isinstance(found, Scalar):
        raise InternalError("a truth value, a number, a text or an element was expected")
    return found


def several(expr: object, context: Context) -> Several:
    """What an expression for a set or a list becomes."""
    found = meaning(expr, context)
    if not isinstance(found, Several):
        raise InternalError("a set or a list was expected")
    return found


def formula(expr: object, context: Context) -> str:
    """A formula of the text as SMT-LIB."""
    return scalar(expr, context).text


# ---- Spelling ---------------------------------------------------------------------------------


def sort_name(sort: Sort) -> str:
    """The name of a sort in a script."""
    return sort.name


def text_name(text: str) -> str:
    """The symbol of a text: the text itself between bars, what a symbol may not contain as $hex$."""
    spelled = "".join(c if " " <= c <= "~" and c not in "|\\$" else f"${ord(c):x}$" for c in text)
    return f'|"{spelled}"|'


def integer(value: int) -> str:
    """An integer; SMT-LIB has no negative numerals."""
    return str(value) if value >= 0 else f"(- {-value})"


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


def quantified(quantifier: str, bound: Sequence[tuple[str, Sort]], guards: Sequence[str], body: str) -> str:
    """A quantifier with its variables kept to their domains."""
    variables = " ".join(f"({name} {sort_name(sort)})" for name, sort in bound)
    if quantifier == "exists":
        return f"(exists ({variables}) {both([*guards, body])})"
    return (
        f"(forall ({variables}) (=> {both(guards)} {body}))"
        if both(guards) != "true"
        else (f"(forall ({variables}) {body})")
    )


def free_of(prefix: str, sort: Sort, uses: Uses) -> str:
    """A symbol of which nothing is known."""
    name = fresh(prefix, uses)
    uses.symbols[name] = sort
    return name


# ---- Leaves and connectives -------------------------------------------------------------------


@rule("true", "false")
def _truth(expr: Expr, _context: Context) -> Meaning:
    return Scalar(expr.head, BOOL)


@rule("int")
def _int(expr: Expr, _context: Context) -> Meaning:
    return Scalar(integer(int(str(expr.args[0]))), INT)


@rule("text")
def _text(expr: Expr, context: Context) -> Meaning:
    return Scalar(_literal(str(expr.args[0]), context.uses), TEXT)


def _literal(text: str, uses: Uses) -> str:
    uses.texts[text] = None
    return text_name(text)


@rule("var")
def _variable(expr: Expr, context: Context) -> Meaning:
    name = str(expr.args[0])
    if name not in context.scope:
        raise InternalError(f"the variable {name} is not bound")
    return context.scope[name]


@rule("not")
def _not(expr: Expr, context: Context) -> Meaning:
    return Scalar(f"(not {formula(expr.args[0], context)})", BOOL)


CONNECTIVES = {"implies": "=>", "iff": "=", "and": "and", "or": "or"}


@rule(*CONNECTIVES)
def _connective(expr: Expr, context: Context) -> Meaning:
    return Scalar(f"({CONNECTIVES[expr.head]} {' '.join(formula(part, context) for part in expr.args)})", BOOL)


@rule("ite")
def _ite(expr: Expr, context: Context) -> Meaning:
    condition, then, other = (scalar(part, context) for part in expr.args)
    return Scalar(f"(ite {condition.text} {then.text} {other.text})", then.sort)


@rule("case")
def _case(expr: Expr, context: Context) -> Meaning:
    """A chain of tests; where no arm fits, a value of which nothing is known."""
    subject = scalar(expr.args[0], context).text
    tests: list[tuple[str, Scalar]] = []
    default: Scalar | None = None
    for arm in expr.args[1:]:
        if isinstance(arm, Arm):
            body = scalar(arm.body, context)
            if arm.labels:
                tests.append((either([f"(= {subject} {_literal(x, context.uses)})" for x in arm.labels]), body))
            elif default is None:
                default = body
    sort = tests[0][1].sort if tests else default.sort if default else BOOL
    found = default.text if default is not None else free_of("otherwise", sort, context.uses)
    for test, body in reversed(tests):
        found = f"(ite {test} {body.text} {found})"
    return Scalar(found, sort)


# ---- Numbers and comparison -------------------------------------------------------------------

ARITHMETIC = {"add": "+", "sub": "-", "mul": "times", "div": "floor.div", "mod": "floor.mod"}


@rule("add", "sub")
def _arithmetic(expr: Expr, context: Context) -> Meaning:
    return Scalar(f"({ARITHMETIC[expr.head]} {' '.join(scalar(part, context).text for part in expr.args)})", INT)


@rule("mul", "div", "mod")
def _product(expr: Expr, context: Context) -> Meaning:
    """By a function of its own, which `tables` defines for the values of the facts that the second argument mentions,
    since solvers decide linear arithmetic only."""
    one, two = expr.args
    if expr.head == "mul" and isinstance(one, Expr) and isinstance(two, Expr) and _width(one) < _width(two):
        one, two = two, one
    name = ARITHMETIC[expr.head]
    context.uses.parts.setdefault(name, {})[name] = None
    for fact in _mentioned(two, context.functions):
        context.uses.factors[fact] = None
    context.uses.numerals.update(_numerals(two))
    return Scalar(f"({name} {scalar(one, context).text} {scalar(two, context).text})", INT)


def _width(expr: Expr) -> int:
    return 1 + sum(map(_width, expr.children()))


def _numerals(expr: object) -> dict[int, None]:
    """The numerals of an expression, with either sign."""
    if not isinstance(expr, Expr):
        return {}
    own = {int(str(expr.args[0])): None, -int(str(expr.args[0])): None} if expr.head == "int" else {}
    return own | {number: None for child in expr.children() for number in _numerals(child)}


def _mentioned(expr: object, functions: Functions) -> dict[str, None]:
    """The facts that an expression mentions."""
    if not isinstance(expr, Expr):
        return {}
    found = {name: None for child in expr.children() for name in _mentioned(child, functions)}
    name = str(expr.args[0]) if expr.head == "call" else ""
    if name in functions:
        body = functions[name].body
        found.update({name: None} if functions[name].kind == "fact" else _mentioned(body, functions))
    return found


@rule("neg")
def _neg(expr: Expr, context: Context) -> Meaning:
    return Scalar(f"(- {scalar(expr.args[0], context).text})", INT)


@rule("compare")
def _compare(expr: Expr, context: Context) -> Meaning:
    links = [
        _link(expr.args[i], str(expr.args[i + 1]), expr.args[i + 2], context) for i in range(0, len(expr.args) - 2, 2)
    ]
    return Scalar(both(links), BOOL)


def _link(left: object, relation: str, right: object, context: Context) -> str:
    if relation in ("in", "not in"):
        inside = several(right, context).holds(scalar(left, context).text)
        return inside if relation == "in" else f"(not {inside})"
    one, other = meaning(left, context), meaning(right, context)
    if relation in ("=", "!="):
        same = _equal(one, other, context)
        return same if relation == "=" else f"(not {same})"
    if not (isinstance(one, Scalar) and isinstance(other, Scalar)):
        raise InternalError(f"'{relation}' compares integers")
    return f"({relation} {one.text} {other.text})"


def _equal(one: Meaning, other: Meaning, context: Context) -> str:
    if isinstance(one, Scalar) and isinstance(other, Scalar):
        return f"(= {one.text} {other.text})"
    if not (isinstance(one, Several) and isinstance(other, Several)):
        raise InternalError("'=' compares values of one kind")
    if one.ordered and other.ordered and one.at and other.at and one.length and other.length:
        place = fresh("i", context.uses)
        inside = [f"(<= 0 {place})", f"(< {place} {one.length()})"]
        same = quantified("forall", [(place, INT)], inside, f"(= {one.at(place)} {other.at(place)})")
        return f"(and (= {one.length()} {other.length()}) {same})"
    member = fresh("x", context.uses)
    return quantified("forall", [(member, one.element)], [], f"(= {one.holds(member)} {other.holds(member)})")


# ---- Quantifiers and comprehensions -----------------------------------------------------------


def _bound(
    binders: Sequence[Binder], context: Context, *, renamed: bool = False
) -> tuple[list[tuple[str, Sort]], list[str], Context]:
    """The variables with their sorts, that they are in their domains, and the context inside."""
    bound: list[tuple[str, Sort]] = []
    guards: list[str] = []
    for binder in binders:
        found = several(binder.domain, context)
        if renamed:
            name = fresh(binder.name, context.uses)
            scope = {**context.scope, binder.name: Scalar(name, found.element)}
            context = Context(context.functions, context.uses, scope, context.atom)
        else:
            name, context = context.bind(binder.name, found.element)
        bound.append((name, found.element))
        guards.append(found.holds(name))
    return bound, guards, context


@rule("forall", "exists")
def _quantified(expr: Expr, context: Context) -> Meaning:
    binders, body = indexed.binders(expr)
    bound, guards, inner = _bound(binders, context)
    return Scalar(quantified(expr.head, bound, guards, formula(body, inner)), BOOL)


@rule("unique")
def _unique(expr: Expr, context: Context) -> Meaning:
    """Some assignment of members satisfies the body, and any two that do are the same."""
    binders, body = indexed.binders(expr)
    bound, guards, inner = _bound(binders, context)
    others, other_guards, other_inner = _bound(binders, inner, renamed=True)
    same = both([f"(= {a} {b})" for (a, _), (b, _) in zip(bound, others, strict=True)])
    this, other = formula(body, inner), formula(body, other_inner)
    some = quantified("exists", bound, guards, this)
    most = quantified("forall", [*bound, *others], [*guards, this, *other_guards, other], same)
    return Scalar(f"(and {some} {most})", BOOL)


@rule("set_comprehension")
def _set_comprehension(expr: Expr, context: Context) -> Meaning:
    element, *bound, guard = expr.args
    binders = [item for item in bound if isinstance(item, Binder)]
    variables, guards, inner = _bound(binders, context, renamed=True)
    image = scalar(element, inner)
    kept = [*guards, *([formula(guard, inner)] if isinstance(guard, Expr) else [])]
    return Several(image.sort, lambda x: quantified("exists", variables, kept, f"(= {x} {image.text})"))


@rule("vector")
def _vector(expr: Expr, context: Context) -> Meaning:
    parts = [scalar(part, context) for part in expr.args]
    sort = parts[0].sort if parts else INT

    def at(position: str) -> str:
        if not parts:
            return free_of("nothing", sort, context.uses)
        found = parts[-1].text
        for number, part in reversed(list(enumerate(parts[:-1]))):
            found = f"(ite (= {position} {number}) {part.text} {found})"
        return found

    inside = lambda x: either([f"(= {x} {part.text})" for part in parts])  # noqa: E731
    return Several(sort, inside, lambda: str(len(parts)), at, ordered=True)


@rule("index")
def _index(expr: Expr, context: Context) -> Meaning:
    found, position = several(expr.args[0], context), scalar(expr.args[1], context)
    if found.at is None or not found.ordered or len(expr.args) != 2:
        raise InternalError("a list takes one index")
    return Scalar(found.at(position.text), found.element)


# ---- Applications -----------------------------------------------------------------------------


@rule("call")
def _call(expr: Expr, context: Context) -> Meaning:
    name, *arguments = expr.args
    if name == "len":
        counted = several(arguments[0], context)
        if counted.length is None:
            raise InexpressibleError("the size of a set that is no fact has no SMT-LIB")
        return Scalar(counted.length(), INT)
    declaration = context.functions.get(str(name))
    if declaration is None or declaration.kind == "fun":
        raise InternalError(f"no SMT-LIB is known for the function {name}")
    if declaration.kind == "define":
        return _defined(declaration, arguments, context)
    given = [scalar(argument, context).text for argument in arguments]
    if declaration.kind == "inductive":
        if context.atom is None:
            raise InternalError(f"{name} stands where no inductive predicate may")
        context.uses.inductive[declaration.name] = None
        return Scalar(context.atom(declaration.name, " ".join(given)), BOOL)
    _note(declaration, arguments, context)
    return _fact(declaration, given, context)


def _note(declaration: FunctionDeclaration, arguments: Sequence[object], context: Context) -> None:
    noted = context.uses.facts.setdefault(declaration.name, [set() for _ in arguments])
    for position, argument in enumerate(arguments):
        known = noted[position]
        if isinstance(argument, Expr) and argument.head == "text" and known is not None:
            known.add(str(argument.args[0]))
        else:
            noted[position] = None


def _fact(declaration: FunctionDeclaration, given: Sequence[str], context: Context) -> Meaning:
    name, result, parts = declaration.name, declaration.result, context.uses.parts.setdefault(declaration.name, {})

    def part(suffix: str, *more: str) -> str:
        parts[suffix] = None
        return application(name + suffix, [*given, *more])

    if result.element is None:
        return Scalar(part(""), result)
    at, length = (lambda i: part(".at", i)), (lambda: part(".len"))
    if result.name == "set":
        return Several(result.element, lambda x: part("", x), length, at)
    return Several(result.element, lambda x: part(".has", x), length, at, ordered=True)


def _defined(declaration: FunctionDeclaration, arguments: Sequence[object], context: Context) -> Meaning:
    """A definition stays one, unless it is a list, takes one, or mentions inductive predicates: then it is expanded."""
    given = [meaning(argument, context) for argument in arguments]
    plain = all(isinstance(part, Scalar) for part in given) and declaration.result.name != "list"
    if not plain or _inductive(declaration.body, context.functions):
        scope = {p.name: found for p, found in zip(declaration.parameters, given, strict=True)}
        return meaning(declaration.body, Context(context.functions, context.uses, scope, context.atom))
    texts = [part.text for part in given if isinstance(part, Scalar)]
    name, result, uses = declaration.name, declaration.result, context.uses
    if name not in uses.definitions:
        inner = Context(context.functions, uses, {})
        parameters = []
        for parameter in declaration.parameters:
            spelled, inner = inner.bind(parameter.name, parameter.sort)
            parameters.append((spelled, parameter.sort))
        body = meaning(declaration.body, inner)
        if isinstance(body, Several):
            member = fresh("x", uses)
            parameters.append((member, body.element))
            body = Scalar(body.holds(member), BOOL)
        signature = " ".join(f"({spelled} {sort_name(sort)})" for spelled, sort in parameters)
        uses.definitions[name] = f"(define-fun {name} ({signature}) {sort_name(body.sort)}\n  {body.text})"
    if result.element is None:
        return Scalar(application(name, texts), result)
    return Several(result.element, lambda x: application(name, [*texts, x]))


def _inductive(expr: object, functions: Functions) -> bool:
    if not isinstance(expr, Expr):
        return False
    name = str(expr.args[0]) if expr.head == "call" else ""
    found = functions.get(name)
    if found is not None and (found.kind == "inductive" or _inductive(found.body, functions)):
        return True
    return any(_inductive(child, functions) for child in expr.children())


def plain(text: str) -> str:
    """The text on one line of printable ASCII, for comments."""
    line = re.sub(r"\s+", " ", text).strip()
    return "".join(c if " " <= c <= "~" else f"\\u{{{ord(c):x}}}" for c in line)
