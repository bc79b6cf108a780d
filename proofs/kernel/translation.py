"""The translation of the text into formulas over all graphs: one fold over `Expr` with one table.

Facts, primitives and inductive predicates become symbols, a set-valued one the test of its members. Definitions are
expanded, those taken as any predicate excepted. A step becomes the two-state formula of its rule. What the language has
and no theorem uses yet is refused with its place, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.terms import disjunction, equivalence, negation
from sonnx.spec.language.syntax import Arm, Binder, Expr, FunctionDeclaration, Premise, Sort, Transition

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
        """The value of an expression."""
        rule = RULES.get(expr.head)
        if rule is None:
            raise refused(expr, f"{expr.head} has no translation into a formula about all graphs")
        return rule(expr, env, self)

    def base(self, expr: Expr, env: Env) -> Base:
        """The value of an expression that is no set and no map."""
        found = self.value(expr, env)
        if not isinstance(found, Base):
            raise refused(expr, "a set or map stands where a formula about all graphs needs one element")
        return found

    def formula(self, expr: Expr, env: Env) -> Argument:
        """The formula of a Bool."""
        return self.base(expr, env).term

    def members(self, expr: Expr, env: Env) -> SetOf:
        """The set that an expression gives."""
        found = self.value(expr, env)
        if isinstance(found, SetOf):
            return found
        if isinstance(found, MapOf):
            return SetOf(found.keys, found.has)
        raise refused(expr, "an element stands where a formula about all graphs needs a set")


def plain(name: str) -> str:
    """A name of the text as a symbol: SMT-LIB has no primes in names. Different names stay different."""
    return name.replace("'", ".next")


def refused(expr: Expr, why: str) -> InternalError:
    """The text says what the translation does not know."""
    return InternalError(f"{expr.span}: {why}")


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


Rule = Callable[[Expr, Env, Translation], Value]
RELATIONS = {"<": "<", "<=": "<=", ">": "<", ">=": "<="}
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
MEMORY = ("Memory", "dom", "lookup")
"""The sort of stores, its domain and its look-up: what `++` on the left side means."""


# ---- Names and calls --------------------------------------------------------------------------


def _var(expr: Expr, env: Env, t: Translation) -> Value:
    name = str(expr.args[0])
    if name not in env:
        raise refused(expr, f"{name} is not bound")
    return env[name]


def _text(expr: Expr, _env: Env, t: Translation) -> Value:
    name = "text!" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in str(expr.args[0]))
    t.texts[name] = None
    return Base(t.symbol(name, (), "Text"), "Text")


def _call(expr: Expr, env: Env, t: Translation) -> Value:
    name, arguments = str(expr.args[0]), [a for a in expr.args[1:] if isinstance(a, Expr)]
    if name not in t.functions:
        raise refused(expr, f"{name} is built in and has no translation into a formula about all graphs")
    function = t.functions[name]
    if function.kind == "define" and name not in t.opaque:
        if function.body is None:
            raise InternalError(f"the definition {name} has no body")
        values = [t.value(argument, env) for argument in arguments]
        inner = dict(zip((p.name for p in function.parameters), values, strict=True))
        return t.value(function.body, inner)
    terms = tuple(t.base(argument, env).term for argument in arguments)
    if name in t.hooks:
        return Base(t.hooks[name](terms), "Bool")
    return application(name, function, terms, t)


# ---- Logic ------------------------------------------------------------------------------------


def _logic(expr: Expr, env: Env, t: Translation) -> Value:
    parts = [t.formula(part, env) for part in expr.children()]
    made: Argument
    match expr.head:
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


def bound(binders: list[Binder], env: Env, t: Translation) -> tuple[list[tuple[str, str]], Argument, Env]:
    """The variables of binders with their sorts, that they lie in their domains, and the names inside."""
    variables: list[tuple[str, str]] = []
    within: list[Argument] = []
    for binder in binders:
        domain = t.members(binder.domain, env)
        name = t.fresh(binder.name)
        variables.append((name, domain.sort))
        within.append(domain.has(name))
        env = {**env, binder.name: Base(name, domain.sort)}
    return variables, conjunction(within), env


def _quantifier(expr: Expr, env: Env, t: Translation) -> Value:
    *binders, body = expr.args
    made = [b for b in binders if isinstance(b, Binder)]
    if not isinstance(body, Expr):
        raise InternalError("a quantifier without a body")
    variables, within, inner = bound(made, env, t)
    holds = t.formula(body, inner)
    if expr.head == "forall":
        return Base(forall(variables, implies(within, holds)), "Bool")
    if expr.head == "exists":
        return Base(exists(variables, conjunction([within, holds])), "Bool")
    others, again, other_env = bound(made, env, t)
    same = conjunction([Term("=", (a[0], b[0])) for a, b in zip(others, variables, strict=True)])
    only = forall(others, implies(conjunction([again, t.formula(body, other_env)]), same))
    return Base(exists(variables, conjunction([within, holds, only])), "Bool")


def _compare(expr: Expr, env: Env, t: Translation) -> Value:
    parts: list[Argument] = []
    for position in range(0, len(expr.args) - 2, 2):
        left, relation, right = expr.args[position : position + 3]
        if not isinstance(left, Expr) or not isinstance(right, Expr):
            raise InternalError("a comparison without operands")
        parts.append(_related(left, str(relation), right, env, t))
    return Base(conjunction(parts), "Bool")


def _related(left: Expr, relation: str, right: Expr, env: Env, t: Translation) -> Argument:
    if relation in ("in", "not in"):
        found = t.members(right, env).has(t.base(left, env).term)
        return found if relation == "in" else negation(found)
    if relation in RELATIONS:
        a, b = t.base(left, env).term, t.base(right, env).term
        return Term(RELATIONS[relation], (b, a) if relation[0] == ">" else (a, b))
    made = equal(t.value(left, env), t.value(right, env), left, t)
    return made if relation == "=" else negation(made)


def equal(left: Value, right: Value, at: Expr, t: Translation) -> Argument:
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


def _ite(expr: Expr, env: Env, t: Translation) -> Value:
    condition, then, other = expr.children()
    return _choice(t.formula(condition, env), t.base(then, env), t.base(other, env))


def _choice(condition: Argument, then: Base, other: Base) -> Base:
    if condition in (TRUE, FALSE):
        return then if condition == TRUE else other
    if then.sort != "Bool":
        return Base(Term("ite", (condition, then.term, other.term)), then.sort)
    kept = [implies(condition, then.term), implies(negation(condition), other.term)]
    return Base(conjunction(kept), "Bool")


def _case(expr: Expr, env: Env, t: Translation) -> Value:
    subject, *arms = expr.args
    if not isinstance(subject, Expr):
        raise InternalError("a case without a value")
    value = t.base(subject, env).term
    made: Base | None = None
    for arm in reversed([a for a in arms if isinstance(a, Arm)]):
        body = t.base(arm.body, env)
        if not arm.labels:
            made = body
            continue
        if made is None:
            raise refused(expr, "a case without else has no translation into a formula about all graphs")
        labels = [t.base(Expr("text", (label,)), env).term for label in arm.labels]
        made = _choice(disjunction([Term("=", (value, label)) for label in labels]), body, made)
    if made is None:
        raise InternalError("a case without arms")
    return made


# ---- Numbers, sets and maps -------------------------------------------------------------------


def _int(expr: Expr, _env: Env, _t: Translation) -> Value:
    return Base(int(str(expr.args[0])), "Int")


def _arithmetic(expr: Expr, env: Env, t: Translation) -> Value:
    left, right = (t.base(part, env).term for part in expr.children())
    return Base(Term(ARITHMETIC[expr.head], (left, right)), "Int")


def _mod(expr: Expr, env: Env, t: Translation) -> Value:
    """The remainder has the sign of the divisor; SMT-LIB's is never negative."""
    left, right = (t.base(part, env).term for part in expr.children())
    turned = Term("-", (0, Term("mod", (Term("-", (0, left)), Term("-", (0, right))))))
    return Base(Term("ite", (Term("<", (0, right)), Term("mod", (left, right)), turned)), "Int")


def _neg(expr: Expr, env: Env, t: Translation) -> Value:
    (inner,) = expr.children()
    return Base(Term("-", (0, t.base(inner, env).term)), "Int")


def _every(expr: Expr, _env: Env, _t: Translation) -> Value:
    return SetOf(str(expr.args[0]), lambda _element: TRUE)


def _set_comprehension(expr: Expr, env: Env, t: Translation) -> Value:
    body, *binders, guard = expr.args
    made = [b for b in binders if isinstance(b, Binder)]
    if not isinstance(body, Expr):
        raise InternalError("a set without members")

    def has(element: Argument) -> Argument:
        variables, within, inner = bound(made, env, t)
        kept = t.formula(guard, inner) if isinstance(guard, Expr) else TRUE
        return exists(variables, conjunction([within, kept, Term("=", (element, t.base(body, inner).term))]))

    _, _, inner = bound(made, env, t)
    return SetOf(t.base(body, inner).sort, has)


def _map_comprehension(expr: Expr, env: Env, t: Translation) -> Value:
    """`{t |-> v for t in S}`; the key is the variable, so that no key has two values."""
    key, value, *binders = expr.args
    match key, value, binders:
        case Expr(head="var", args=(str() as name,)), Expr(), (Binder() as binder,) if name == binder.name:
            domain = t.members(binder.domain, env)

            def get(element: Argument) -> Argument:
                return t.base(value, {**env, name: Base(element, domain.sort)}).term

            sort = t.base(value, {**env, name: Base("any", domain.sort)}).sort
            return MapOf(domain.sort, sort, domain.has, get)
        case _:
            raise refused(expr, "only a map from the members of a set has a translation")


def _concat(expr: Expr, env: Env, t: Translation) -> Value:
    left, right = expr.children()
    one, other = as_map(t.value(left, env), left, t), as_map(t.value(right, env), right, t)

    def get(key: Argument) -> Argument:
        return Term("ite", (other.has(key), other.get(key), one.get(key)))

    return MapOf(one.keys, one.values, lambda key: disjunction([one.has(key), other.has(key)]), get)


def as_map(value: Value, at: Expr, t: Translation) -> MapOf:
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


def _step(expr: Expr, env: Env, t: Translation) -> Value:
    """Some rule leads from the one state to the other: its premises hold, and the components are those it gives."""
    rule, at, *rest = expr.args
    states = [t.value(state, env) for state in rest if isinstance(state, Expr)]
    node = t.base(at, env) if isinstance(at, Expr) else None
    rules = [t.transitions[str(rule)]] if rule else list(t.transitions.values())
    half = len(states) // 2
    return Base(disjunction([fires(found, states[:half], states[half:], node, expr, t) for found in rules]), "Bool")


def fires(
    rule: Transition, source: list[Value], target: list[Value], node: Base | None, at: Expr, t: Translation
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
            name, domain = choice[0], t.members(choice[1], env)
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


RULES: Mapping[str, Rule] = {
    "var": _var,
    "text": _text,
    "int": _int,
    "true": lambda _expr, _env, _t: Base(TRUE, "Bool"),
    "false": lambda _expr, _env, _t: Base(FALSE, "Bool"),
    "call": _call,
    "every": _every,
    **dict.fromkeys(("and", "or", "not", "implies", "iff"), _logic),
    **dict.fromkeys(("forall", "exists", "unique"), _quantifier),
    "compare": _compare,
    "ite": _ite,
    "case": _case,
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    "mod": _mod,
    "neg": _neg,
    "set_comprehension": _set_comprehension,
    "map_comprehension": _map_comprehension,
    "concat": _concat,
    "step": _step,
}
