"""Two elements are equal over the reals: nothing is rounded, and every element is a number.

An element is a sum of products of atoms: reads, inverses and roots of sums, sums over steps, other functions. Of a sum
over steps what does not depend on the step is taken out. Where the left side divides, or takes a root, it has a value:
that is known; of the right side it is to be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count, islice

from sonnx.semantics.formulas.terms import TRUE, Argument, Term
from sonnx.semantics.model.elements import FLOATS
from sonnx.semantics.operators.symbolic.folds import STEP
from sonnx.semantics.operators.symbolic.numbers import Int, at_most, both, multiply, within
from sonnx.semantics.operators.symbolic.values import conjuncts

from . import axioms
from .asking import mentions
from .comparison import Comparison, is_element, parts_of, replaced

Powers = tuple[tuple[int, int], ...]
"""A product of atoms, each with its exponent."""
Sum = dict[Powers, Fraction]
"""A sum of products, each with its coefficient."""
Key = tuple[tuple[Powers, Fraction], ...]

TOTAL = frozenset({"@.read", "@.of"})
"""The heads of what has a value wherever it stands."""
STRICT = frozenset({"@.f", "@.cast", "@.bit"})
"""The heads of what has a value only where each argument has one."""
NUMERALS = frozenset({"@.real", "r+", "r-", "r*", "r/"})
"""The heads of numbers that a text computes from elements."""
MOST = 400
"""The most products of a sum."""


class Unreal(Exception):  # noqa: N818 - no error: it is not a number
    """An element is no real number, or none that is dealt with here."""


@dataclass(slots=True)
class Atom:
    """What products are made of. kind: term, inverse, root, sum. of: the sum that the inverse or root is of, or what is
    summed. term: the element, or the fold.
    """

    kind: str
    term: Term
    of: Key = ()


Needed = tuple[Sum, tuple[Term, ...]]


@dataclass(slots=True)
class Reals:
    """The normal forms of one comparison. divisors, defined: what the side divides by, and what else has to have
    a value, roots and functions, and where: the facts are those about the steps of the folds around it, too. counted:
    the steps of a sum were.
    """

    equality: Comparison
    atoms: list[Atom] = field(default_factory=list)
    known: dict[tuple[Term, tuple[Term, ...]], int] = field(default_factory=dict)
    divisors: list[Needed] = field(default_factory=list)
    defined: list[Needed] = field(default_factory=list)
    counted: bool = False

    def normal(self, term: Term, facts: tuple[Term, ...]) -> Sum:
        """The normal form of an element. Raises Unreal."""
        match term:
            case Term("@.num", (_, str() as written)):
                if written in ("nan", "inf", "-inf"):
                    raise Unreal
                number = Fraction(0) if written == "-0.0" else Fraction(written)
                return {(): number} if number else {}
            case Term("@+" | "@-" | "@*" | "@/" as op, (str() as kind, Term() as a, Term() as b)):
                self._of_reals(kind)
                return self._arithmetic(op[1:], self.normal(a, facts), self.normal(b, facts), term, facts)
            case Term("@.cast", (str() as kind, str() as own, Term() as a)) if self._floats(kind) and self._floats(own):
                return self.normal(a, facts)
            case Term("@.of", (str() as kind, int() as number)) if self._floats(kind):
                return {(): Fraction(number)} if number else {}
            case Term("@.of", (str() as kind, Term("rational", (int() as above, int() as below)))) if self._floats(
                kind
            ):
                return {(): Fraction(above, below)} if above else {}
            case Term("@.of", (str() as kind, Term(op) as number)) if op in NUMERALS and self._floats(kind):
                return self._number(number, facts)
            case Term("@.f", ("negative", str() as kind, Term() as a)):
                self._of_reals(kind)
                return scaled(self.normal(a, facts), Fraction(-1))
            case Term("@.f", ("power", str() as kind, Term() as a, Term("@.num", (_, str() as written)))) if (
                written.isdigit()
            ):
                self._of_reals(kind)
                result: Sum = {(): Fraction(1)}
                for _ in range(min(int(written), 9)):
                    result = self._times(result, self.normal(a, facts))
                if int(written) > 8:
                    raise Unreal
                return result
            case Term("@.f", ("sqrt", str() as kind, Term() as a)):
                self._of_reals(kind)
                return self._root(self.normal(a, facts), term, facts)
            case Term("@.fold", ("sum", str() as kind, *_)):
                self._of_reals(kind)
                return self._summed(term, facts)
            case _:
                atom: Sum = {((self._atom(term, facts), 1),): Fraction(1)}
                if term.op not in TOTAL:
                    self.defined.append((atom, facts))
                return atom

    def _number(self, term: Argument, facts: tuple[Term, ...]) -> Sum:
        """The normal form of a number that a text computes from elements."""
        match term:
            case int():
                return {(): Fraction(term)} if term else {}
            case Term("rational", (int() as above, int() as below)):
                return {(): Fraction(above, below)} if above else {}
            case Term("@.real", (Term() as a,)) if is_element(a):
                return self.normal(a, facts)
            case Term("r+" | "r-" | "r*" | "r/" as op, (a, b)):
                return self._arithmetic(op[1:], self._number(a, facts), self._number(b, facts), term, facts)
            case _:
                raise Unreal

    def _floats(self, kind: str) -> bool:
        allowed = self.equality.kinds.get(kind, (kind,))
        return set(allowed) <= FLOATS

    def _of_reals(self, kind: str) -> None:
        if not self._floats(kind):
            raise Unreal

    # ---- Arithmetic ---------------------------------------------------------------------------

    def _arithmetic(self, op: str, a: Sum, b: Sum, term: Term, facts: tuple[Term, ...]) -> Sum:
        if op == "+":
            return plus(a, b)
        if op == "-":
            return plus(a, scaled(b, Fraction(-1)))
        if op == "*":
            return self._times(a, b)
        self.divisors.append((b, facts))
        return self._times(a, self._inverse(b, term))

    def _times(self, a: Sum, b: Sum) -> Sum:
        product: Sum = {}
        for one, x in a.items():
            for other, y in b.items():
                made: Sum = {powers(one, other): x * y}
                made = self._without_squares(made)
                for key, factor in made.items():
                    product[key] = product.get(key, Fraction(0)) + factor
        if len(product) > MOST:
            raise Unreal
        return {key: factor for key, factor in product.items() if factor}

    def _without_squares(self, product: Sum) -> Sum:
        """The square of a root is what the root is of."""
        ((key, factor),) = product.items()
        for number, exponent in key:
            atom = self.atoms[number]
            if atom.kind == "root" and abs(exponent) > 1:
                rest = tuple((n, e) for n, e in key if n != number)
                left = exponent - 2 * (1 if exponent > 0 else -1)
                base: Sum = {powers(rest, ((number, left),) if left else ()): factor}
                inner = dict(atom.of)
                return self._times(base, inner if exponent > 0 else self._inverse(inner, atom.term))
        return product

    def _inverse(self, of: Sum, term: Term) -> Sum:
        if not of:
            raise Unreal
        if len(of) == 1:
            ((key, factor),) = of.items()
            return {tuple((n, -e) for n, e in key): 1 / factor}
        first = of[min(of)]
        number = self._made("inverse", term, key_of(scaled(of, 1 / first)))
        return {((number, 1),): 1 / first}

    def _root(self, of: Sum, term: Term, facts: tuple[Term, ...]) -> Sum:
        self.defined.append((of, facts))
        return {((self._made("root", term, key_of(of)), 1),): Fraction(1)}

    # ---- Atoms ----------------------------------------------------------------------------------

    def _made(self, kind: str, term: Term, of: Key) -> int:
        for number, atom in enumerate(self.atoms):
            if atom.kind == kind and atom.of == of:
                return number
        self.atoms.append(Atom(kind, term, of))
        return len(self.atoms) - 1

    def _atom(self, term: Term, facts: tuple[Term, ...]) -> int:
        """The first atom that is the same under the facts. The arguments of a function have a value where it has."""
        own = self._arguments(term, facts)
        known = self.known.get((term, facts))
        if known is not None:
            return known
        alike = (n for n, it in enumerate(self.atoms) if it.kind == "term" and it.term.op == term.op)
        number = next((n for n in alike if self._same(self.atoms[n].term, term, own, facts)), len(self.atoms))
        if number == len(self.atoms):
            self.atoms.append(Atom("term", term))
        self.known[term, facts] = number
        return number

    def _arguments(self, term: Term, facts: tuple[Term, ...]) -> tuple[Sum | None, ...] | None:
        """The normal forms of a function's arguments that are elements; None where the term is to be taken whole: not
        all of it has to be reached, or not all of it are real numbers.
        """
        if term.op not in STRICT:
            return None
        try:
            return tuple(
                self.normal(part, facts) if isinstance(part, Term) and is_element(part) else None for part in term.args
            )
        except Unreal:
            return None

    def _same(self, other: Term, term: Term, own: tuple[Sum | None, ...] | None, facts: tuple[Term, ...]) -> bool:
        if other == term:
            return True
        if len(other.args) != len(term.args) or term.op in ("@.unknown", "@.free", "@.one"):
            return False
        if own is None:
            return self.equality.alike(other, term, facts)
        for form, a, b in zip(own, other.args, term.args, strict=True):
            if form is None:
                if a != b and not self.equality.same_argument(a, b, facts):
                    return False
            elif not isinstance(a, Term) or self._elsewhere(a, facts) != form:
                return False
        return True

    def _elsewhere(self, term: Term, facts: tuple[Term, ...]) -> Sum | None:
        """The normal form of an element that need not have a value here: it leaves nothing behind."""
        kept = len(self.atoms), len(self.divisors), len(self.defined), dict(self.known)
        try:
            return self.normal(term, facts) if is_element(term) else None
        except Unreal:
            return None
        finally:
            atoms, divisors, defined, self.known = kept
            del self.atoms[atoms:], self.divisors[divisors:], self.defined[defined:]

    def _summed(self, term: Term, facts: tuple[Term, ...]) -> Sum:
        term, facts = _outermost(term, facts)
        *_, steps, guard, body, start = term.args
        if not (isinstance(steps, Term) and isinstance(guard, Term) and isinstance(body, Term)):
            raise Unreal
        half = len(steps.args) // 2
        symbols = frozenset(it.op for it in _symbols(steps))
        ranged = both(
            *(
                within(symbol, size)
                for symbol, size in zip(steps.args[:half], steps.args[half:], strict=True)
                if not isinstance(symbol, str) and not isinstance(size, str)
            )
        )
        inner = tuple(dict.fromkeys((*facts, *conjuncts(ranged), *conjuncts(guard))))
        result: Sum = {}
        for key, factor in self.normal(body, inner).items():
            outer = tuple((n, e) for n, e in key if not self._depends(n, symbols))
            own = tuple((n, e) for n, e in key if self._depends(n, symbols))
            total = None if own or guard != TRUE else self._count(term, facts)
            if total is None:
                total = {((self._total(term, own, facts), 1),): Fraction(1)}
            result = plus(result, self._times({outer: factor}, total))
        if start != TRUE:
            if not isinstance(start, Term):
                raise Unreal
            result = plus(result, self.normal(start, facts))
        return result

    def _count(self, term: Term, facts: tuple[Term, ...]) -> Sum | None:
        """How many steps a fold has that takes all; None where a size may be negative."""
        _, kind, steps, *_ = term.args
        size: Int = 1
        for axis in steps.args[len(steps.args) // 2 :] if isinstance(steps, Term) else ():
            if isinstance(axis, str) or not self.equality.same_truth(TRUE, at_most(0, axis), facts):
                return None
            size = multiply(size, axis)
        self.counted = True
        return self.normal(Term("@.of", (kind, size)), facts)

    def _total(self, term: Term, own: Powers, facts: tuple[Term, ...]) -> int:
        """The atom for the sum of a product over the steps of a fold."""
        of: Key = ((own, Fraction(1)),)
        for number, atom in enumerate(self.atoms):
            if atom.kind == "sum" and atom.of == of and self._same_steps(atom.term, term, facts):
                return number
        self.atoms.append(Atom("sum", term, of))
        return len(self.atoms) - 1

    def _same_steps(self, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
        one, other = left.args[2], right.args[2]
        if not isinstance(one, Term) or not isinstance(other, Term) or len(one.args) != len(other.args):
            return False
        half = len(one.args) // 2
        if one.args[:half] != other.args[:half]:
            return False
        if not all(
            self.equality.same_argument(a, b, facts) for a, b in zip(one.args[half:], other.args[half:], strict=True)
        ):
            return False
        guard, its = left.args[3], right.args[3]
        if not isinstance(guard, Term) or not isinstance(its, Term):
            return False
        ranged = both(
            *(
                within(symbol, size)
                for symbol, size in zip(one.args[:half], one.args[half:], strict=True)
                if not isinstance(symbol, str) and not isinstance(size, str)
            )
        )
        return self.equality.same_truth(guard, its, (*facts, *conjuncts(ranged)))

    def _depends(self, number: int, symbols: frozenset[str]) -> bool:
        atom = self.atoms[number]
        if atom.kind == "term":
            return mentions(atom.term, symbols)
        if atom.kind == "sum":
            steps, guard = atom.term.args[2:4]
            if not isinstance(steps, Term) or mentions(Term("of", steps.args[len(steps.args) // 2 :]), symbols):
                return True
            symbols = symbols.difference(it.op for it in _symbols(steps))
            if mentions(guard, symbols):
                return True
        return any(self._depends(n, symbols) for key, _ in atom.of for n, _ in key)

    # ---- Comparison -------------------------------------------------------------------------------

    def cleared(self, difference: Sum) -> Sum:
        """The difference times all that it is divided by."""
        for _ in range(12):
            lowest: dict[int, int] = {}
            for key in difference:
                for number, exponent in key:
                    if self.atoms[number].kind == "inverse" and exponent > 0:
                        lowest[number] = max(lowest.get(number, 0), exponent)
                    elif exponent < 0:
                        lowest[number] = min(lowest.get(number, 0), exponent)
            if not lowest:
                return difference
            number, exponent = min(lowest.items(), key=lambda item: (self.atoms[item[0]].kind != "inverse", item[0]))
            result: Sum = {}
            for key, factor in difference.items():
                own = next((e for n, e in key if n == number), 0)
                rest = tuple((n, e) for n, e in key if n != number)
                if exponent > 0:
                    made: Sum = {rest: factor}
                    for _ in range(exponent - own):
                        made = self._times(made, dict(self.atoms[number].of))
                else:
                    made = self._without_squares(
                        {powers(rest, ((number, own - exponent),) if own != exponent else ()): factor}
                    )
                result = plus(result, made)
            difference = result
        raise Unreal


def _symbols(steps: Term) -> tuple[Term, ...]:
    """The variables of a fold's steps."""
    return tuple(it for it in steps.args[: len(steps.args) // 2] if isinstance(it, Term))


def _outermost(term: Term, facts: tuple[Term, ...]) -> tuple[Term, tuple[Term, ...]]:
    """A fold with the names for its steps that it has where no fold is around on which it depends, so that it is one
    term inside of another fold and outside of it. In the facts the steps of that other fold change names with its."""
    steps = term.args[2]
    if not isinstance(steps, Term):
        raise Unreal
    names = [it.op for it in _symbols(steps)]
    used = {it.op for it in parts_of(term) if it.op.startswith(STEP)}.difference(names)
    inside = {it.op for part in parts_of(term) if part.op == "steps" and part is not steps for it in parts_of(part)}
    wanted = list(islice((name for k in count() if (name := f"{STEP}{k}") not in used), len(names)))
    if wanted == names or not inside.isdisjoint(wanted):
        return term, facts
    turned = [*names, *(name for name in wanted if name not in names)]
    others = [*wanted, *(name for name in names if name not in wanted)]
    renamed = dict(zip(map(Term, turned), map(Term, others), strict=True))
    return replaced(term, renamed), tuple(replaced(fact, renamed) for fact in facts)


def powers(one: Powers, other: Powers) -> Powers:
    """The product."""
    total = dict(one)
    for number, exponent in other:
        total[number] = total.get(number, 0) + exponent
    return tuple(sorted((n, e) for n, e in total.items() if e))


def plus(a: Sum, b: Sum) -> Sum:
    """The sum."""
    total = dict(a)
    for key, factor in b.items():
        total[key] = total.get(key, Fraction(0)) + factor
    return {key: factor for key, factor in total.items() if factor}


def scaled(a: Sum, by: Fraction) -> Sum:
    """Times a number."""
    return {key: factor * by for key, factor in a.items()}


def key_of(a: Sum) -> Key:
    """The sum as a key."""
    return tuple(sorted(a.items()))


def same(equality: Comparison, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
    """The elements are equal over the reals, and the right one is defined where the left one is."""
    reals = Reals(equality)
    try:
        one = reals.normal(left, facts)
        known_divisors, known_others = list(reals.divisors), list(reals.defined)
        reals.divisors.clear()
        reals.defined.clear()
        other = reals.normal(right, facts)
        for divisor, where in reals.divisors:
            if not _not_zero(reals, divisor, [it for it, there in known_divisors if _within(equality, where, there)]):
                equality.reason = equality.reason or "a divisor of the right side is not shown to differ from 0"
                return False
        for own, where in reals.defined:
            if not _positive(own) and own not in [it for it, there in known_others if _within(equality, where, there)]:
                equality.reason = equality.reason or "a function on the right side is not shown to be defined"
                return False
        found = not reals.cleared(plus(one, scaled(other, Fraction(-1))))
    except Unreal:
        return False
    if found:
        equality.laws.update(dict.fromkeys((axioms.FIELD, axioms.LINEAR)))
        equality.laws |= {axioms.COUNTED: None} if reals.counted else {}
    return found


def _within(equality: Comparison, where: tuple[Term, ...], there: tuple[Term, ...]) -> bool:
    """Facts entail other ones: what is computed under these is computed under those."""
    return all(fact in where or equality.same_truth(TRUE, fact, where) for fact in there)


def _positive(root: Sum) -> bool:
    return list(root) == [()] and root[()] >= 0


def _not_zero(reals: Reals, divisor: Sum, divisors: Sequence[Sum]) -> bool:
    """A divisor is not 0: a number, or a product of what the left side divides by."""
    if not divisor:
        return False
    if list(divisor) == [()]:
        return True
    wanted = key_of(scaled(divisor, 1 / divisor[min(divisor)]))
    if any(it and key_of(scaled(it, 1 / it[min(it)])) == wanted for it in divisors):
        return True
    if len(divisor) == 1:
        (key,) = divisor
        return all(_not_zero_atom(reals, number, divisors) for number, _ in key)
    return False


def _not_zero_atom(reals: Reals, number: int, divisors: Sequence[Sum]) -> bool:
    """The left side divides by a product with this atom, or the atom is the inverse of something."""
    if reals.atoms[number].kind == "inverse":
        return True
    return any(len(it) == 1 and any(n == number for key in it for n, _ in key) for it in divisors)
