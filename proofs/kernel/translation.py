"""The translation of the text into formulas over all graphs: one fold over the core with one table.

Facts, primitives and inductive predicates become symbols, a set-valued one the test of its members. Definitions are
expanded, those taken as any predicate excepted. A step becomes the two-state formula of its rule. What the language has
and no theorem uses yet is refused with its place, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas import reading
from sonnx.semantics.formulas.terms import disjunction, equivalence, negation
from sonnx.spec.elaborate.core import Binding, Core
from sonnx.spec.elaborate.formulas import cores
from sonnx.spec.elaborate.sorts import map_of
from sonnx.spec.language.syntax import Expr, FunctionDeclaration, Premise, Sort, Span, Transition

from .formulas import FALSE, TRUE, Argument, Base, MapOf, SetOf, Signature, Term, Value, conjunction, exists, forall
from .formulas import implication as implies

Env = Mapping[str, Value]
Hook = Callable[[tuple[Argument, ...]], Argument]
RESERVED = frozenset(
    {"push", "pop", "exit", "reset", "echo", "assert", "let", "par", "as", "match", "forall", "exists",
     "and", "or", "not", "xor", "=>", "=", "<", "<=", "+", "-", "*", "div",
     "mod", "ite", "distinct", "true", "false", "abs", "select", "store", "is"}
)  # fmt: skip
"""Words of SMT-LIB, and those that formulas are made with."""
KNOWN = frozenset({"Bool", "Int"})
"""The sorts that solvers know. Of functions of these alone they know some themselves, `sin` of a number, say, and take
theirs in place of one that is declared under this name.
"""


@dataclass(slots=True)
class Translation:
    """One translation; what it has used so far. hooks: what stands for the call of an inductive predicate instead."""

    functions: Mapping[str, FunctionDeclaration]
    transitions: Mapping[str, Transition]
    opaque: frozenset[str] = frozenset()
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    symbols: dict[str, Signature] = field(default_factory=dict)
    texts: dict[str, None] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def hooked(self, hooks: Mapping[str, Hook], opaque: frozenset[str] | None = None) -> Translation:
        """The same translation with these hooks: its names stay fresh for both. opaque: in place of its own."""
        return replace(self, hooks=hooks, opaque=self.opaque if opaque is None else opaque)

    def fresh(self, name: str) -> str:
        """A name that nothing else has; names of the text have no dot in them."""
        return f"{plain(name)}.{next(self.numbers)}"

    def symbol(self, name: str, arguments: tuple[str, ...], result: str) -> str:
        """The symbol as it is written, noted with its signature."""
        taken = name in RESERVED or (arguments and KNOWN.issuperset(arguments))
        name, signature = f"{name}.word" if taken else name, Signature(arguments, result)
        if self.symbols.setdefault(name, signature) != signature:
            raise InternalError(f"{name} has two signatures: {self.symbols[name]} and {signature}")
        return name

    def value(self, expr: Expr, env: Env) -> Value:
        """The value of an expression whose variables have the values given."""
        text = cores(self.functions)
        core = text.formula(expr, tuple((name, sort_of(value)) for name, value in env.items()))
        scope: dict[Binding | None, Value] = dict(zip(core.parameters, env.values(), strict=True))
        return meaning(core.body, reading.Context(text, self, scope))

    def base(self, expr: Expr, env: Env) -> Base:
        """The value of an expression that is no set and no map."""
        return based(self.value(expr, env), expr.span)

    def formula(self, expr: Expr, env: Env) -> Argument:
        """The formula of a Bool."""
        return self.base(expr, env).term


def sort_of(value: Value) -> Sort:
    """The sort of a value."""
    match value:
        case Base():
            return Sort(value.sort)
        case SetOf():
            return Sort("list" if value.ordered else "set", Sort(value.sort))
        case MapOf():
            return map_of(Sort(value.keys), Sort(value.values))


def based(value: Value, at: Span) -> Base:
    """A value that is no set and no map."""
    if not isinstance(value, Base):
        raise refused(at, "a set or map stands where a formula about all graphs needs one element")
    return value


def as_set(value: Value, at: Span) -> SetOf:
    """A set; a map is the set of its keys."""
    match value:
        case SetOf():
            return value
        case MapOf():
            return SetOf(value.keys, value.has)
        case Base():
            raise refused(at, "an element stands where a formula about all graphs needs a set")


def plain(name: str) -> str:
    """A name of the text as a symbol: SMT-LIB has no primes in names. Different names stay different."""
    return name.replace("'", ".next")


def refused(at: Span, why: str) -> InternalError:
    """The text says what the translation does not know."""
    return InternalError(f"{at}: {why}")


def application(name: str, function: FunctionDeclaration, terms: tuple[Argument, ...], t: Translation) -> Value:
    """A symbol applied: a term, or for a set the test of its members."""
    sorts = tuple(base_sort(parameter.sort) for parameter in function.parameters)
    result = function.result
    if result.name in ("set", "list") and result.element is not None:
        member = base_sort(result.element)
        symbol = t.symbol(name, (*sorts, member), "Bool")
        return SetOf(member, lambda element: Term(symbol, (*terms, element)), ordered=result.name == "list")
    symbol = t.symbol(name, sorts, base_sort(result))
    return Base(Term(symbol, terms) if terms else symbol, base_sort(result))


def base_sort(sort: Sort) -> str:
    """The name of a sort that is no set."""
    if sort.element is not None:
        raise InternalError(f"a formula about all graphs has no elements of sort {sort}")
    return sort.name


Context = reading.Context[Translation, Value]
TRANSLATION = reading.Reading[Context, Value]("the translation into formulas about all graphs")
"""The table of the fold."""
rule, meaning = TRANSLATION.rule, TRANSLATION.meaning
RELATIONS = {"<": "<", "<=": "<=", ">": "<", ">=": "<="}
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
MEMORY = ("Memory", "dom", "lookup")
"""The sort of stores, its domain and its look-up: what `++` on the left side means."""


def base(core: Core, context: Context) -> Base:
    """The value of an expression that is no set and no map."""
    return based(meaning(core, context), core.span)


def terms(core: Core, context: Context) -> tuple[Argument, ...]:
    """The terms of the parts of an expression."""
    return tuple(base(part, context).term for part in core.parts)


# ---- Constants and calls ----------------------------------------------------------------------


@rule("literal")
def _literal(core: Core, context: Context) -> Value:
    value = core.value
    if isinstance(value, bool):
        return Base(TRUE if value else FALSE, "Bool")
    if isinstance(value, int):
        return Base(value if value >= 0 else Term("-", (0, -value)), "Int")
    return text(value, context.work)


def text(value: str, t: Translation) -> Base:
    """The constant for a text."""
    name = "text!" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in value)
    t.texts[name] = None
    return Base(t.symbol(name, (), "Text"), "Text")


@rule("fact", "inductive", "fun", "record", "field")
def _applied(core: Core, context: Context) -> Value:
    t, arguments = context.work, terms(core, context)
    if core.name in t.hooks:
        return Base(t.hooks[core.name](arguments), "Bool")
    return application(core.name, t.functions[core.name], arguments, t)


@rule("define")
def _defined(core: Core, context: Context) -> Value:
    return _applied(core, context) if core.name in context.work.opaque else TRANSLATION.expanded(core, context)


# ---- Logic ------------------------------------------------------------------------------------


@rule("and", "or", "not", "implies", "iff")
def _logic(core: Core, context: Context) -> Value:
    parts = list(terms(core, context))
    made: Argument
    match core.head:
        case "and":
            made = conjunction(parts)
        case "or":
            made = disjunction(parts)
        case "not":
            made = negation(parts[0])
        case "implies":
            made = implies(parts[0], parts[1])
        case _:
            made = equivalence(parts[0], parts[1])
    return Base(made, "Bool")


def bound(core: Core, context: Context) -> tuple[list[tuple[str, str]], Argument, Context]:
    """The variables that an expression binds with their sorts, that they lie in their domains, and what they mean."""
    variables: list[tuple[str, str]] = []
    within: list[Argument] = []
    for item in core.bound:
        domain = as_set(meaning(item.domain, context), item.domain.span)
        name = context.work.fresh(item.variable.name)
        variables.append((name, domain.sort))
        within.append(domain.has(name))
        context = context.bind(item.variable, Base(name, domain.sort))
    return variables, conjunction(within), context


@rule("forall", "exists", "unique")
def _quantifier(core: Core, context: Context) -> Value:
    (body,) = core.parts
    variables, within, inner = bound(core, context)
    holds = base(body, inner).term
    if core.head == "forall":
        return Base(forall(variables, implies(within, holds)), "Bool")
    if core.head == "exists":
        return Base(exists(variables, conjunction([within, holds])), "Bool")
    others, again, other = bound(core, context)
    same = conjunction([Term("=", (a[0], b[0])) for a, b in zip(others, variables, strict=True)])
    only = forall(others, implies(conjunction([again, base(body, other).term]), same))
    return Base(exists(variables, conjunction([within, holds, only])), "Bool")


@rule("compare")
def _compare(core: Core, context: Context) -> Value:
    left, right = core.parts
    if core.name in RELATIONS:
        a, b = terms(core, context)
        return Base(Term(RELATIONS[core.name], (b, a) if core.name[0] == ">" else (a, b)), "Bool")
    if core.name in ("in", "not in"):
        made = as_set(meaning(right, context), right.span).has(base(left, context).term)
    else:
        made = equal(meaning(left, context), meaning(right, context), left.span, context.work)
    return Base(negation(made) if core.name in ("!=", "not in") else made, "Bool")


def equal(left: Value, right: Value, at: Span, t: Translation) -> Argument:
    """Equality; that of sets and maps says that they have the same members, and the same values there."""
    if isinstance(left, Base) and isinstance(right, Base):
        return equivalence(left.term, right.term) if left.sort == "Bool" else Term("=", (left.term, right.term))
    if isinstance(left, SetOf) and isinstance(right, SetOf):
        if left.ordered or right.ordered:
            raise refused(at, "a formula about all graphs cannot say that two lists are equal")
        name = t.fresh("x")
        return forall([(name, left.sort)], equivalence(left.has(name), right.has(name)))
    one, other = as_map(left, at, t), as_map(right, at, t)
    key = t.fresh("t")
    same = implies(one.has(key), Term("=", (one.get(key), other.get(key))))
    return forall([(key, one.keys)], conjunction([equivalence(one.has(key), other.has(key)), same]))


@rule("ite")
def _ite(core: Core, context: Context) -> Value:
    condition, then, other = (base(part, context) for part in core.parts)
    return _choice(condition.term, then, other)


def _choice(condition: Argument, then: Base, other: Base) -> Base:
    if condition in (TRUE, FALSE):
        return then if condition == TRUE else other
    if then.sort != "Bool":
        return Base(Term("ite", (condition, then.term, other.term)), then.sort)
    kept = [implies(condition, then.term), implies(negation(condition), other.term)]
    return Base(conjunction(kept), "Bool")


@rule("case")
def _case(core: Core, context: Context) -> Value:
    subject, *bodies = core.parts
    if core.labels[-1]:
        raise refused(core.span, "a case without else has no translation into a formula about all graphs")
    value = base(subject, context).term
    made = base(bodies[-1], context)
    for labels, arm in reversed(list(zip(core.labels[:-1], bodies[:-1], strict=True))):
        body = base(arm, context)
        same: list[Argument] = [Term("=", (value, text(label, context.work).term)) for label in labels]
        made = _choice(disjunction(same), body, made)
    return made


# ---- Numbers, sets and maps -------------------------------------------------------------------


@rule("arithmetic")
def _arithmetic(core: Core, context: Context) -> Value:
    left, right = terms(core, context)
    if core.name in ARITHMETIC:
        return Base(Term(ARITHMETIC[core.name], (left, right)), "Int")
    if core.name != "mod":
        raise refused(core.span, f"{core.name} has no translation into a formula about all graphs")
    # The remainder has the sign of the divisor; SMT-LIB's is never negative.
    turned = Term("-", (0, Term("mod", (Term("-", (0, left)), Term("-", (0, right))))))
    return Base(Term("ite", (Term("<", (0, right)), Term("mod", (left, right)), turned)), "Int")


@rule("neg")
def _neg(core: Core, context: Context) -> Value:
    return Base(Term("-", (0, *terms(core, context))), "Int")


@rule("every")
def _every(core: Core, _context: Context) -> Value:
    return SetOf(core.name, lambda _element: TRUE)


@rule("set")
def _set(core: Core, context: Context) -> Value:
    body, guard = core.parts

    def has(element: Argument) -> Argument:
        variables, within, inner = bound(core, context)
        kept = base(guard, inner).term
        return exists(variables, conjunction([within, kept, Term("=", (element, base(body, inner).term))]))

    _, _, inner = bound(core, context)
    return SetOf(base(body, inner).sort, has)


@rule("map")
def _map(core: Core, context: Context) -> Value:
    """`{t |-> v for t in S}`; the key is the variable, so that no key has two values."""
    key, value = core.parts
    if len(core.bound) != 1 or key.variable is not core.bound[0].variable:
        raise refused(core.span, "only a map from the members of a set has a translation")
    (item,) = core.bound
    domain = as_set(meaning(item.domain, context), item.domain.span)

    def get(element: Argument) -> Base:
        return base(value, context.bind(item.variable, Base(element, domain.sort)))

    return MapOf(domain.sort, get("any").sort, domain.has, lambda element: get(element).term)


@rule("concat")
def _concat(core: Core, context: Context) -> Value:
    one, other = (as_map(meaning(part, context), part.span, context.work) for part in core.parts)

    def get(key: Argument) -> Argument:
        return Term("ite", (other.has(key), other.get(key), one.get(key)))

    return MapOf(one.keys, one.values, lambda key: disjunction([one.has(key), other.has(key)]), get)


def as_map(value: Value, at: Span, t: Translation) -> MapOf:
    """A map; a memory is one."""
    sort, dom, lookup = MEMORY
    match value:
        case MapOf():
            return value
        case Base(term=term) if value.sort == sort:
            return MapOf(
                "Tensor",
                "Value",
                lambda key: Term(t.symbol(dom, (sort, "Tensor"), "Bool"), (term, key)),
                lambda key: Term(t.symbol(lookup, (sort, "Tensor"), "Value"), (term, key)),
            )
        case _:
            raise refused(at, "this is no map")


# ---- Steps ------------------------------------------------------------------------------------


@rule("step")
def _step(core: Core, context: Context) -> Value:
    """Some rule leads from the one state to the other: its premises hold, and the components are those it gives."""
    t, half = context.work, len(core.parts) // 2
    source, target = ([meaning(part, context) for part in core.parts[k * half : (k + 1) * half]] for k in (0, 1))
    node = base(core.parts[-1], context) if len(core.parts) % 2 else None
    rules = [t.transitions[core.name]] if core.name else list(t.transitions.values())
    return Base(disjunction([fires(transition, source, target, node, core.span, t) for transition in rules]), "Bool")


def fires(
    rule: Transition, source: list[Value], target: list[Value], node: Base | None, at: Span, t: Translation
) -> Argument:
    """The two-state formula of a rule. node: what the rule chooses first; None: some choice."""
    env: dict[str, Value] = {str(part.args[0]): value for part, value in zip(rule.source, source, strict=True)}
    chosen: list[tuple[str, str]] = []
    parts: list[Argument] = []
    choices = 0
    for premise in rule.premises:
        if premise.name is not None:
            env[premise.name] = t.value(premise.expr, env)
            continue
        choice = _chosen(premise, env)
        if choice is not None:
            name, domain = choice[0], as_set(t.value(choice[1], env), at)
            given = node if choices == 0 else None
            choices += 1
            if given is None:
                chosen.append((t.fresh(name), domain.sort))
            elif given.sort != domain.sort:
                raise refused(at, f"{rule.name} chooses a {domain.sort} first, not a {given.sort}")
            env[name] = given if given is not None else Base(chosen[-1][0], domain.sort)
        parts.append(t.formula(premise.expr, env))
    if node is not None and choices == 0:
        raise refused(at, f"{rule.name} chooses no element")
    parts += [equal(value, t.value(part, env), at, t) for part, value in zip(rule.target, target, strict=True)]
    return exists(chosen, conjunction(parts))


def _chosen(premise: Premise, env: Env) -> tuple[str, Expr] | None:
    """The name and the domain of a premise `x in S` whose x is not bound yet."""
    match premise.expr:
        case Expr(head="compare", args=(Expr(head="var", args=(str() as name,)), "in", Expr() as domain)):
            return (name, domain) if name not in env else None
        case _:
            return None
