"""The laws that a proof takes for granted of single elements, and how each one is shown.

A law is used from left to right, for the element types for which it is shown; `validation` shows them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sonnx.semantics.formulas.terms import Argument, Term

FLOATS = ("float16", "bfloat16", "float", "double")
WHOLES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *WHOLES)

WIDE = "64 bits are enough for a size, and for a product of different sizes"
CONGRUENCE = "folds whose steps have equal terms are equal"
POSITIONS = {
    "inverse": "an index below a shape has one position in row-major order, and a position one index",
    "converted": "groups of sizes with one product have one position, and are converted each for itself",
}
"""What is taken of positions, by the names under which an evaluation says that it used it."""
OWN = "a conversion to the own type changes nothing"
FIELD = "over the reals: polynomials, with inverses of what is not 0 and roots of what is not negative"
LINEAR = "over the reals: a factor that does not depend on the step stands before a sum, and a sum of sums is two sums"
COUNTED = "over the reals: a sum of ones is the number of its steps"
COMMUTES = {"@+": "x + y = y + x", "@*": "x * y = y * x"}


@dataclass(frozen=True, slots=True)
class Law:
    """kinds: the element types for which it is shown. how: by what. apply: the other form of a term, None where the law
    does not fit. formula: both forms with `x` and `y` for elements, for the validation.
    """

    name: str
    kinds: tuple[str, ...]
    how: str
    apply: Callable[[Term], Term | None]
    sides: Callable[[str], tuple[Term, Term]] | None = None


def _num(term: Argument, *values: str) -> bool:
    return isinstance(term, Term) and term.op == "@.num" and term.args[1] in values


def _times_one(term: Term) -> Term | None:
    match term:
        case Term("@*", (_, Term() as a, Term() as b)):
            return b if _num(a, "1") else a if _num(b, "1") else None
        case _:
            return None


def _over_one(term: Term) -> Term | None:
    match term:
        case Term("@/", (_, Term() as a, b)) if _num(b, "1"):
            return a
        case _:
            return None


def _less_zero(term: Term) -> Term | None:
    match term:
        case Term("@-", (_, Term() as a, b)) if _num(b, "0"):
            return a
        case _:
            return None


def _plus_negative_zero(term: Term) -> Term | None:
    match term:
        case Term("@+", (_, Term() as a, Term() as b)):
            return b if _num(a, "-0.0") else a if _num(b, "-0.0") else None
        case _:
            return None


def _plus_zero(term: Term) -> Term | None:
    match term:
        case Term("@+", (_, Term() as a, Term() as b)):
            return b if _num(a, "0") else a if _num(b, "0") else None
        case _:
            return None


def _twice_negated(term: Term) -> Term | None:
    match term:
        case Term("@.f", ("negative", _, Term("@.f", ("negative", _, Term() as a)))):
            return a
        case _:
            return None


def _squared(term: Term) -> Term | None:
    match term:
        case Term("@.f", ("power", kind, Term() as a, b)) if _num(b, "2"):
            return Term("@*", (kind, a, a))
        case _:
            return None


def _own_type(term: Term) -> Term | None:
    match term:
        case Term("@.cast", (kind, own, Term() as a)) if kind == own:
            return a
        case _:
            return None


def x(kind: str) -> Term:
    """Any element, for the statement of a law."""
    return Term("@.read", (kind, "x"))


def y(kind: str) -> Term:
    """Another one."""
    return Term("@.read", (kind, "y"))


def number(kind: str, value: str) -> Term:
    """A numeral."""
    return Term("@.num", (kind, value))


SIGN = "0 < 1 / x where x is positive or 0.0, and no infinity"
SOLVER = "the solver's floating-point numbers and bit vectors, for each type"
MACHINE = "both are the exact square, rounded once; all elements of the types of 16 bits were tried on the machine"
INDUCTION = "induction, base and step shown by the solver"
LEMMAS: Mapping[str, tuple[str, ...]] = {
    CONGRUENCE: (CONGRUENCE,),
    POSITIONS["inverse"]: (
        "the place of an index is below the number of elements",
        "each position below the number of elements is that of an index",
        "the index at the place of an index is that index",
    ),
    POSITIONS["converted"]: (
        "the place of an index is below the number of elements",
        "the place of two lists together is that of the first times the size of the second, plus its own",
        "a position below groups of sizes is converted group by group",
    ),
    LINEAR: ("a factor stands before a sum", "a sum of sums is two sums"),
    COUNTED: (
        "a sum of ones is the number of its steps",
        "each position below the number of elements is that of an index",
        "the index at the place of an index is that index",
    ),
}
"""The laws that `checker.definedness.induction` shows, by which of its lemmas."""

LAWS: tuple[Law, ...] = (
    Law("1 * x = x", NUMBERS, SOLVER, _times_one, lambda k: (Term("@*", (k, number(k, "1"), x(k))), x(k))),
    Law("x / 1 = x", NUMBERS, SOLVER, _over_one, lambda k: (Term("@/", (k, x(k), number(k, "1"))), x(k))),
    Law("x - 0 = x", NUMBERS, SOLVER, _less_zero, lambda k: (Term("@-", (k, x(k), number(k, "0"))), x(k))),
    Law(
        "x + -0.0 = x", FLOATS, SOLVER, _plus_negative_zero,
        lambda k: (Term("@+", (k, x(k), number(k, "-0.0"))), x(k)),
    ),
    Law("x + 0 = x", WHOLES, SOLVER, _plus_zero, lambda k: (Term("@+", (k, x(k), number(k, "0"))), x(k))),
    Law(
        "-(-x) = x", NUMBERS, SOLVER, _twice_negated,
        lambda k: (Term("@.f", ("negative", k, Term("@.f", ("negative", k, x(k))))), x(k)),
    ),
    Law("power(x, 2) = x * x", FLOATS, MACHINE, _squared),
)  # fmt: skip
"""The laws that are used as rewrites."""

LISTED: Mapping[str, tuple[str, Callable[[str], tuple[Term, Term]] | None]] = {
    COMMUTES["@+"]: (SOLVER, lambda k: (Term("@+", (k, x(k), y(k))), Term("@+", (k, y(k), x(k))))),
    COMMUTES["@*"]: (SOLVER, lambda k: (Term("@*", (k, x(k), y(k))), Term("@*", (k, y(k), x(k))))),
    WIDE: ("an assumption: below 2^48, since no memory has so many bytes", None),
    SIGN: (SOLVER, None),
    OWN: (f"{SOLVER}; of other types the same element is read", lambda k: (Term("@.cast", (k, k, x(k))), x(k))),
    FIELD: ("the solver's real numbers", None),
    **dict.fromkeys(LEMMAS, (INDUCTION, None)),
}
"""The other laws, with how they are shown."""


def simplified(term: Term, kinds: Mapping[str, Collection[str]] | None = None) -> tuple[Term, tuple[str, ...]]:
    """The term by the laws, and which were used. kinds: the types that a name of an open type stands for."""
    used: dict[str, None] = {}
    told = tuple(sorted((name, tuple(sorted(allowed))) for name, allowed in (kinds or {}).items()))
    found, laws = _simplified(term, told)
    used |= dict.fromkeys(laws)
    return found, tuple(used)


Told = tuple[tuple[str, tuple[str, ...]], ...]


@lru_cache(maxsize=100_000)
def _simplified(term: Term, told: Told) -> tuple[Term, tuple[str, ...]]:
    used: dict[str, None] = {}
    args: list[Argument] = []
    for part in term.args:
        if isinstance(part, Term) and part.args:
            part, laws = _simplified(part, told)
            used |= dict.fromkeys(laws)
        args.append(part)
    made = Term(term.op, tuple(args))
    own = _own_type(made)
    if own is not None:
        used[OWN] = None
        return own, tuple(used)
    if made.op == "@.ite" and made.args[1] == made.args[2] and isinstance(made.args[1], Term):
        return made.args[1], tuple(used)
    if made.op in ("@*", "@/", "@-", "@+", "@.f"):
        kind = str(made.args[1] if made.op == "@.f" else made.args[0])
        allowed = dict(told).get(kind, (kind,))
        for law in LAWS:
            found = law.apply(made)
            if found is not None and set(allowed) <= set(law.kinds):
                used[law.name] = None
                return found, tuple(used)
    return made, tuple(used)
