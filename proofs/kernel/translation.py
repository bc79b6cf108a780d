"""The translation of the text into formulas over all graphs: one fold over `Expr` with one table.

Facts, primitives and inductive predicates become symbols, a set-valued one the test of its members. Definitions are
expanded, those taken as any predicate excepted. A step becomes the two-state formula of its rule. What the language has
and no theorem uses yet is refused with its place, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count

from sonnx.semantics.errors import InternalError
from sonnx.spec.language.syntax import Expr, FunctionDeclaration, Sort, Transition

from .formulas import Argument, Base, MapOf, SetOf, Signature, Term, Value

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
        rule = rules().get(expr.head)
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


@cache
def rules() -> Mapping[str, Rule]:
    """For each head the rule that gives the value."""
    # imported here: the rules call `Translation.value`
    from .translation_rules import RULES

    return RULES


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
