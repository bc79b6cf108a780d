"""Single elements as the solver's floating-point numbers, bit vectors and truth values.

There is one NaN, and -0.0 is not 0.0: SMT-LIB's equality of floating-point numbers is that of elements. What is no
arithmetic, a read, a fold, exp, is a variable; equal ones are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product

from sonnx.semantics.formulas.terms import FALSE, Argument, Term
from sonnx.semantics.model.elements import BITS
from sonnx.semantics.operators.symbolic.calls import PROPERTIES, is_signed

from ...smt.solver import Session
from . import axioms
from .comparison import Comparison
from .rules import is_open

FORMATS = {"float16": (5, 11), "bfloat16": (8, 8), "float": (8, 24), "double": (11, 53)}
"""The bits of exponent and significand."""
WHOLES = {
    kind: BITS[kind]
    for kind in (
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int4",
        "uint4",
        "int2",
        "uint2",
    )
    if kind in BITS
}
TIMEOUT = 60.0
EFFORT = 4_000_000
"""Seconds and steps of the solver for a question; the steps are meant to end it."""
QUICK = EFFORT // 4
"""Steps for a question whose parts are asked where it is not answered."""
ATOMS = frozenset({"@=", "@<", "@<=", "@.truth", "@.is_nan", "@.is_infinite", "@.casts"})
ROUNDED = {"round_even": "RNE", "round_down": "RTN", "round_up": "RTP"}


class Opaque(Exception):  # noqa: N818 - no error: the element is none that the solver knows
    """An element of a type that the solver does not have."""


@dataclass(slots=True)
class Script:
    """A question under construction. types: what the open element types are in it."""

    equality: Comparison | None
    facts: tuple[Term, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    names: dict[Term, str] = field(default_factory=dict)
    kinds: dict[Term, str] = field(default_factory=dict)

    def kind(self, name: str) -> str:
        """The element type."""
        return self.types.get(name, name)

    def element(self, term: Term) -> tuple[str, str]:
        """The text of an element and its type. Raises Opaque."""
        match term:
            case Term("@.num", (str() as name, str() as written)):
                kind = self.kind(name)
                return numeral(kind, written), kind
            case Term("@+" | "@-" | "@*" | "@/" as op, (str() as name, Term() as a, Term() as b)):
                kind = self.kind(name)
                return _arithmetic(op[1:], kind, self.element(a)[0], self.element(b)[0]), kind
            case Term("@.ite", (Term() as condition, Term() as a, Term() as b)):
                (one, kind), (other, _) = self.element(a), self.element(b)
                return f"(ite {self.truth(condition)} {one} {other})", kind
            case Term("@.bit", (str() as name, Term() as condition)) if self.kind(name) == "bool":
                return self.truth(condition), "bool"
            case Term("@.cast", (str() as name, str() as its, Term() as a)):
                kind, own = self.kind(name), self.kind(its)
                made = _cast(kind, own, self.element(a)[0]) if own in (*FORMATS, *WHOLES) else None
                return (made, kind) if made is not None else (self.variable(term, kind), kind)
            case Term("@.f", (str() as function, str() as name, *args)):
                kind = self.kind(name)
                texts = [self.element(a)[0] for a in args if isinstance(a, Term) and _is_arithmetic(function, kind)]
                made = _function(function, kind, texts) if len(texts) == len(args) else None
                return (made if made is not None else self.variable(term, kind), kind)
            case _:
                kind = self.kind(_kind_of(term))
                return self.variable(term, kind), kind

    def variable(self, term: Term, kind: str) -> str:
        """The variable that stands for an element, the same for equal ones."""
        if term in self.names:
            return self.names[term]
        for other, its in self.kinds.items():
            if its == kind and other.op == term.op and self._alike(other, term):
                self.names[term] = self.names[other]
                return self.names[term]
        sort = _sort(kind)
        name = self.names[term] = f"x{len(self.names)}"
        self.kinds[term] = kind
        self.lines.append(f"(declare-const {name} {sort})")
        return name

    def _alike(self, left: Term, right: Term) -> bool:
        """Two elements are known to be equal. To find that out the same question may come up again, which has no
        answer then."""
        equality, pair = self.equality, (left, right)
        if equality is None or pair in equality.open:
            return False
        equality.open.add(pair)
        try:
            return equality.alike(left, right, self.facts)
        finally:
            equality.open.remove(pair)

    def truth(self, term: Argument) -> str:
        """The text of a condition; what is none about elements is any truth value."""
        match term:
            case Term("true" | "false" as op, ()):
                return op
            case Term("and" | "or" | "not" | "=>" as op, args):
                return f"({op} {' '.join(map(self.truth, args))})"
            case Term("iff", (a, b)):
                return f"(= {self.truth(a)} {self.truth(b)})"
            case Term(
                "@<", (str() as name, Term("@.num", (_, "0")), Term("@/", (_, Term("@.num", (_, "1")), Term() as a)))
            ) if self.kind(name) in FORMATS:
                text = self.element(a)[0]
                if self.equality is not None:
                    self.equality.laws[axioms.SIGN] = None
                return positive(text)
            case Term("@=" | "@<" | "@<=" as op, (str() as name, Term() as a, Term() as b)):
                return _relation(op[1:], self.kind(name), self.element(a)[0], self.element(b)[0])
            case Term("@.is_nan" | "@.is_infinite" as op, (Term() as a,)):
                text, kind = self.element(a)
                if kind not in FORMATS:
                    raise Opaque
                return f"({'fp.isNaN' if op == '@.is_nan' else 'fp.isInfinite'} {text})"
            case Term("@.truth", (Term() as a,)):
                return self.element(a)[0] if self.kind(_kind_of(a)) == "bool" else self.boolean(term)
            case Term(str() as op, ()) if self.kind(op.partition(".")[2]) in (*FORMATS, *WHOLES):
                base, _, name = op.partition(".")
                return str(PROPERTIES[base](self.kind(name))).lower() if base in PROPERTIES else self.boolean(term)
            case Term():
                return self.boolean(term)
            case _:
                raise Opaque

    def boolean(self, term: Term) -> str:
        """A variable for a condition that is not about elements."""
        if term not in self.names:
            self.names[term] = f"b{len(self.names)}"
            self.lines.append(f"(declare-const {self.names[term]} Bool)")
        return self.names[term]


def positive(text: str) -> str:
    """The condition that 1 divided by an element is greater than 0."""
    return f"(and (fp.isPositive {text}) (not (fp.isInfinite {text})))"


def _kind_of(term: Term) -> str:
    match term:
        case Term("@.fold" | "@.best" | "@.f", (_, str() as kind, *_)):
            return kind
        case Term("@.one", (_, Term() as a, *_)):
            return _kind_of(a)
        case Term("@.ite", (_, Term() as a, *_)):
            return _kind_of(a)
        case Term(_, (str() as kind, *_)):
            return kind
        case _:
            raise Opaque


def _sort(kind: str) -> str:
    if kind in FORMATS:
        return "(_ FloatingPoint {} {})".format(*FORMATS[kind])
    if kind in WHOLES:
        return f"(_ BitVec {WHOLES[kind]})"
    if kind == "bool":
        return "Bool"
    raise Opaque


def numeral(kind: str, written: str) -> str:
    """The text of a numeral. Raises Opaque."""
    if kind in FORMATS:
        size = "{} {}".format(*FORMATS[kind])
        special = {"nan": "NaN", "inf": "+oo", "-inf": "-oo", "-0.0": "-zero", "0": "+zero"}
        if written in special:
            return f"(_ {special[written]} {size})"
        number = Fraction(written)
        text = f"(/ {abs(number.numerator)}.0 {number.denominator}.0)"
        return f"((_ to_fp {size}) RNE {f'(- {text})' if number < 0 else text})"
    if kind in WHOLES and "/" not in written and written.lstrip("-").isdigit():
        return f"(_ bv{int(written) % (1 << WHOLES[kind])} {WHOLES[kind]})"
    if kind == "bool" and written in ("0", "1"):
        return "false" if written == "0" else "true"
    raise Opaque


def _arithmetic(op: str, kind: str, a: str, b: str) -> str:
    if kind in FORMATS:
        return f"(fp.{ {'+': 'add', '-': 'sub', '*': 'mul', '/': 'div'}[op] } RNE {a} {b})"
    if kind in WHOLES:
        name = {"+": "bvadd", "-": "bvsub", "*": "bvmul", "/": "bvsdiv" if is_signed(kind) else "bvudiv"}[op]
        return f"({name} {a} {b})"
    raise Opaque


def _relation(op: str, kind: str, a: str, b: str) -> str:
    if kind in FORMATS:
        return f"(fp.{ {'=': 'eq', '<': 'lt', '<=': 'leq'}[op] } {a} {b})"
    if kind in WHOLES:
        sign = "s" if is_signed(kind) else "u"
        return f"({ {'=': '=', '<': f'bv{sign}lt', '<=': f'bv{sign}le'}[op] } {a} {b})"
    if op == "=":
        return f"(= {a} {b})"
    raise Opaque


def _cast(kind: str, own: str, a: str) -> str | None:
    """A conversion; None for one that is left to a variable."""
    if kind in FORMATS and own in FORMATS:
        return "((_ to_fp {} {}) RNE {})".format(*FORMATS[kind], a)
    if kind in FORMATS and own in WHOLES:
        to = "to_fp" if is_signed(own) else "to_fp_unsigned"
        return "((_ {} {} {}) RNE {})".format(to, *FORMATS[kind], a)
    if kind in WHOLES and own in WHOLES:
        more = WHOLES[kind] - WHOLES[own]
        if more > 0:
            return f"((_ {'sign' if is_signed(own) else 'zero'}_extend {more}) {a})"
        return a if more == 0 else f"((_ extract {WHOLES[kind] - 1} 0) {a})"
    return None


FUNCTIONS = ("negative", "absolute", "sqrt", "minimum", "maximum", *ROUNDED)


def _is_arithmetic(name: str, kind: str) -> bool:
    return name in FUNCTIONS and (kind in FORMATS or kind in WHOLES)


def _function(name: str, kind: str, args: Sequence[str]) -> str | None:
    """A function that the solver has; None for one that is left to a variable."""
    if not args or not _is_arithmetic(name, kind):
        return None
    a = args[0]
    if kind in WHOLES:
        sign = "s" if is_signed(kind) else "u"
        match name:
            case "negative":
                return f"(bvneg {a})"
            case "absolute":
                return f"(ite (bvslt {a} (_ bv0 {WHOLES[kind]})) (bvneg {a}) {a})" if sign == "s" else a
            case "minimum" | "maximum":
                less = f"(bv{sign}lt {a} {args[1]})"
                return f"(ite {less} {a} {args[1]})" if name == "minimum" else f"(ite {less} {args[1]} {a})"
        return None
    match name:
        case "negative":
            return f"(fp.neg {a})"
        case "absolute":
            return f"(fp.abs {a})"
        case "sqrt":
            return f"(fp.sqrt RNE {a})"
        case "minimum" | "maximum":
            b = args[1]
            less = "fp.lt" if name == "minimum" else "fp.gt"
            sign = "fp.isNegative" if name == "minimum" else "fp.isPositive"
            first = f"(or ({less} {a} {b}) (and (fp.eq {a} {b}) ({sign} {a})))"
            nan = numeral(kind, "nan")
            return f"(ite (or (fp.isNaN {a}) (fp.isNaN {b})) {nan} (ite {first} {a} {b}))"
        case _:
            return f"(fp.roundToIntegral {ROUNDED[name]} {a})"


# ---- Questions ------------------------------------------------------------------------------------

_answers: dict[str, tuple[str, int]] = {}
"""What was asked, with the answer and within how many steps: text for text the same question."""


def _about_elements(term: Argument) -> bool:
    return isinstance(term, Term) and (term.op in ATOMS or any(map(_about_elements, term.args)))


def _told(script: Script, facts: Iterable[Term]) -> list[str]:
    """The facts about elements, as far as the solver knows what they are about."""
    told = []
    for fact in facts:
        if _about_elements(fact) and not _quantified(fact):
            try:
                told.append(script.truth(fact))
            except Opaque:
                continue
    return told


def _quantified(term: Argument) -> bool:
    return isinstance(term, Term) and (term.op in ("forall", "exists") or any(map(_quantified, term.args)))


def _refuted(script: Script, assertions: Sequence[str], effort: int = EFFORT) -> bool:
    text = "(set-logic ALL)\n" + "\n".join((*script.lines, *(f"(assert {a})" for a in assertions))) + "\n"
    status, spent = _answers.get(text, ("unknown", 0))
    if status == "unknown" and spent < effort:
        status = Session().check(text, TIMEOUT, effort=effort).status
        _answers[text] = status, effort
    return status == "unsat"


def scripts(equality: Comparison, facts: tuple[Term, ...], about: Iterable[Term] = ()) -> Iterator[Script]:
    """A question for each choice of the open element types that facts or elements are about."""
    named = dict.fromkeys(name for term in (*facts, *about) for name in open_types(term))
    several = [equality.kinds.get(name, (name,)) for name in named]
    for chosen in product(*several):
        yield Script(equality, facts, types=dict(zip(named, chosen, strict=True)))


@lru_cache(maxsize=100_000)
def open_types(term: Term) -> tuple[str, ...]:
    """The open element types that a term names."""
    found = dict.fromkeys(part for part in term.args if isinstance(part, str) and is_open(part))
    found |= dict.fromkeys(name for part in term.args if isinstance(part, Term) for name in open_types(part))
    return tuple(found)


def decided(equality: Comparison, left: Term, right: Term, facts: tuple[Term, ...], effort: int = EFFORT) -> bool:
    """The solver shows that two elements are the same."""
    return all(_decided(script, left, right, effort) for script in scripts(equality, facts, (left, right)))


def _decided(script: Script, left: Term, right: Term, effort: int) -> bool:
    try:
        (one, kind), (other, its) = script.element(left), script.element(right)
    except Opaque:
        return False
    if kind != its:
        return False
    if one == other:
        return True
    if {left.op, right.op} <= OPAQUE:
        return False
    return _refuted(script, (*_told(script, script.facts), f"(not (= {one} {other}))"), effort)


OPAQUE = frozenset({"@.read", "@.fold", "@.unknown"})
"""Elements of which the solver knows nothing, so that two different ones are not the same but by facts."""


def impossible(equality: Comparison, facts: tuple[Term, ...]) -> bool:
    """The facts about elements contradict each other."""
    return contradictory(equality, facts, EFFORT // 8)


def entailed(equality: Comparison, facts: tuple[Term, ...], goal: Term) -> bool:
    """Facts about elements entail a formula about elements."""
    if goal == FALSE or not _about_elements(goal) or _quantified(goal):
        return False
    return all(_entailed(script, goal) for script in scripts(equality, facts, (goal,)))


def _entailed(script: Script, goal: Term) -> bool:
    try:
        text = script.truth(goal)
    except Opaque:
        return False
    return _refuted(script, (*_told(script, script.facts), f"(not {text})"))


def contradictory(equality: Comparison, facts: tuple[Term, ...], effort: int = EFFORT) -> bool:
    """Facts about elements cannot hold together, whatever the open element types are."""
    if not any(_about_elements(fact) and not _quantified(fact) for fact in facts):
        return False
    return all(_refuted(script, _told(script, facts), effort) for script in scripts(equality, facts))


def differ(left: Term, right: Term, timeout: float = TIMEOUT) -> str:
    """Whether two elements can differ, as the solver says: unsat, sat or unknown. For the validation of a law."""
    script = Script(None, ())
    one, other = script.element(left)[0], script.element(right)[0]
    text = "(set-logic ALL)\n" + "\n".join((*script.lines, f"(assert (not (= {one} {other})))")) + "\n"
    return Session().check(text, timeout).status
