"""Two elements are the same, as terms under facts: to the bit, or as values that the left side may have.

The steps: laws from `axioms` from left to right; an alternative is taken apart by its condition; equal heads compare
arguments, numbers by the solver; folds compare sizes, then guards and bodies at any step; what is left is asked of the
solver's floating-point numbers and bit vectors, with equal reads and functions as variables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.terms import FALSE, TRUE, Argument, Term
from sonnx.semantics.operators.symbolic.elements.terms import FREE
from sonnx.semantics.operators.symbolic.numbers import Int, both, equal, opposite, within
from sonnx.semantics.operators.symbolic.values import conjuncts

from . import axioms, reals, scalars
from .asking import Asker
from .comparison import TRUTHS, is_element
from .freedom import number_of, occurrences, open_numbers, place_of, renamed, steps_of

DEPTH = 60
"""So many alternatives are taken apart, one within the other."""
FORKS = 4000
"""So many comparisons are tried for one element."""
PLACES = 60
"""In so many places, at most, the open elements of a tensor may occur in one element."""


@dataclass(slots=True)
class Equality:
    """The comparison of one output's elements. laws: those that were used. refined: somewhere the right side gives one
    of several values that the left side may have. steps: how many comparisons were made. thorough: whether an
    alternative can be at all is asked in full before it is compared, since one that cannot was compared in vain.
    effort: the solver's steps for a question about elements. open: the pairs that are being compared while a question
    is written down. axes: the numbers of axes of the inputs that have any number of them: an index is one code there.
    own: the symbols that the index brought along, which are others at another index. alone: what is compared holds of
    any index, and is no case that was drawn by one. begun: the elements, and what is known of them, before any cases.
    """

    asker: Asker
    symbols: Mapping[str, tuple[int, str]]
    index: tuple[Term, ...]
    laws: dict[str, None] = field(default_factory=dict)
    refined: bool = False
    real: bool = False
    steps: int = 0
    kinds: Mapping[str, Collection[str]] = field(default_factory=dict)
    reason: str = ""
    thorough: bool = False
    effort: int = scalars.EFFORT
    open: set[tuple[Term, Term]] = field(default_factory=set)
    axes: Mapping[str, Int] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    alone: bool = True
    begun: tuple[Term, Term, tuple[Term, ...]] = (TRUE, TRUE, ())

    def same(self, left: Term, right: Term, facts: tuple[Term, ...], *, top: bool = True) -> bool:
        """The elements are the same wherever the facts hold. top: they are those of the output itself."""
        self.steps += 1
        if self.steps == 1:
            self.begun = left, right, facts
        if self.steps > FORKS:
            self.reason = self.reason or "too many alternatives"
            return False
        left, right = self._plain(left, facts), self._plain(right, facts)
        if left == right and not _opens(left):
            return True
        if top and self.steps == 1:
            left, right = self._settled(left, facts), self._settled(right, facts)
            if self._at_once(left, right, facts):
                return True
        for side, term in ((0, left), (1, right)):
            condition = _condition(term)
            if condition is not None and side == 1 and _opens(condition):
                self._fail("the right side decides by an element that the text leaves open", left, right)
                return False
            if condition is not None:
                return self._by_cases(condition, left, right, facts, top=top)
        if top and left.op in FREE:
            return self._open(left, right, facts)
        if _opens(left) or _opens(right):
            self._fail("an element that the text leaves open", left, right)
            return False
        if self.real and top:
            found = reals.same(self, left, right, facts)
            if not found:
                self._fail("not shown to be equal over the reals", left, right)
            return found
        if self.alike(left, right, facts):
            return True
        if not self.real and scalars.decided(self, left, right, facts, self.effort):
            return True
        self._fail("elements differ, or their equality is not found", left, right)
        return False

    # ---- Without cases of indices -----------------------------------------------------------------

    def _at_once(self, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
        """The elements are the same by their heads, where the solver sees to the alternatives within indices."""
        if _opens(left) or _opens(right) or (_condition(left) is None and _condition(right) is None):
            return False
        laws = dict(self.laws)
        found = (
            reals.same(self, left, right, facts)
            if self.real
            else self._headed(left, right, facts)
            or scalars.decided(self, left, right, facts, min(self.effort, scalars.QUICK))
        )
        if not found:
            self.laws, self.reason = laws, ""
        return found

    def _headed(self, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
        if left == right:
            return True
        condition = next((term.args[0] for term in (left, right) if term.op == "@.ite"), None)
        if isinstance(condition, Term):
            for known, then in ((condition, True), (opposite(condition), False)):
                parts = conjuncts(known)
                one, other = decided(left, condition, then), decided(right, condition, then)
                if known == FALSE or any(opposite(part) in facts for part in parts):
                    continue
                inner = (*facts, *(part for part in parts if part not in facts))
                if not self._headed(one, other, inner) and not self.entails(facts, opposite(known)):
                    return False
            return True
        if left.op != right.op or len(left.args) != len(right.args):
            return scalars.decided(self, left, right, facts, min(self.effort, scalars.QUICK))
        if left.op in ("@.fold", "@.place"):
            return False
        if left.op == "@.read":
            return left.args[:2] == right.args[:2] and self.same_index(left, right, facts)
        turned = left.op in ("@+", "@*") and left.args[0] == right.args[0] and self._numbers(str(left.args[0]))
        if self._headed_arguments(left.args, right.args, facts):
            return True
        if turned and self._headed_arguments(left.args, (right.args[0], *right.args[:0:-1]), facts):
            self.laws[axioms.COMMUTES[left.op]] = None
            return True
        return False

    def same_index(self, left: Term, right: Term, facts: Sequence[Term]) -> bool:
        """Two reads of one input are at one index: entry by entry where it has any number of axes, since lists of one
        length with one entry at each position are one list, and only as many entries as there are axes are read by.
        """
        axes = self.axes.get(str(left.args[1]))
        if axes is None:
            pairs = zip(left.args[2:], right.args[2:], strict=True)
            return self.entails(facts, both(*(equal(_int(a), _int(b)) for a, b in pairs)))
        one, other = (term_of(read.args[2]) for read in (left, right))
        if one == other:
            return True
        k = Term("position.axis")
        symbols = {**self.symbols, k.op: (0, "Int"), "at": (2, "Int")}
        same = equal(Term("at", (one, k)), Term("at", (other, k)))
        return self.asker.entails((*facts, within(k, axes)), same, symbols)

    def _headed_arguments(self, left: Sequence[Argument], right: Sequence[Argument], facts: tuple[Term, ...]) -> bool:
        for a, b in zip(left, right, strict=True):
            if isinstance(a, Term) and isinstance(b, Term) and is_element(a) and is_element(b):
                if not self._headed(a, b, facts):
                    return False
            elif not self.same_argument(a, b, facts):
                return False
        return True

    def _settled(self, term: Term, facts: tuple[Term, ...]) -> Term:
        """The term without the alternatives, and the parts of conditions, that the facts decide, outside of folds."""
        known: dict[int, Argument] = {}

        def settled(term: Argument) -> Argument:
            if not isinstance(term, Term) or not term.args or term.op in ("@.fold", "@.place", "forall", "exists"):
                return term
            if id(term) not in known:
                known[id(term)] = made(term)
            return known[id(term)]

        def made(term: Term) -> Argument:
            condition = term.args[0]
            if term.op not in ("@.ite", "ite") or not isinstance(condition, Term):
                parts = tuple(map(settled, term.args))
                return term if parts == term.args else Term(term.op, parts)
            left, right = term.args[1:]
            unsettled = [part for part in conjuncts(condition) if not self._certain(facts, part)]
            if not unsettled:
                return settled(left)
            if any(self._certain(facts, opposite(part)) for part in unsettled):
                return settled(right)
            return Term(term.op, (both(*unsettled), settled(left), settled(right)))

        found = settled(term)
        return found if isinstance(found, Term) else term

    def _certain(self, facts: tuple[Term, ...], goal: Term) -> bool:
        """The facts entail a formula, which is found without products."""
        return self.asker.entails(facts, goal, self.symbols, quick=True)

    def _fail(self, words: str, left: Term, right: Term) -> None:
        self.reason = self.reason or f"{words}: {shown(left)} and {shown(right)}"

    def _plain(self, term: Term, facts: Sequence[Term]) -> Term:
        """The term after the laws, with alternatives that the facts decide."""
        known = _numerals(facts)
        if known:
            term = self._valued(term, known, facts)
        found, used = axioms.simplified(term, self.kinds)
        self.laws.update(dict.fromkeys(used))
        return found

    def _valued(
        self, term: Term, known: Mapping[tuple[str, str], list[tuple[Term, Term]]], facts: Sequence[Term]
    ) -> Term:
        """The term with numerals for the elements that the facts say are these."""
        if term.op == "@.read":
            for read, value in known.get((str(term.args[0]), str(term.args[1])), ()):
                if self.same_index(read, term, facts):
                    return value
            return term
        args = tuple(self._valued(a, known, facts) if isinstance(a, Term) and a.args else a for a in term.args)
        return Term(term.op, args)

    def entails(self, facts: Sequence[Term], goal: Term) -> bool:
        """The facts entail a formula."""
        return self.asker.entails(facts, goal, self.symbols)

    def _by_cases(self, condition: Term, left: Term, right: Term, facts: tuple[Term, ...], *, top: bool) -> bool:
        for known, then in ((condition, True), (opposite(condition), False)):
            parts = conjuncts(known)
            if known == FALSE or any(opposite(part) in facts for part in parts):
                continue
            inner = (*facts, *(part for part in parts if part not in facts))
            if self.asker.entails(facts, opposite(known), self.symbols, quick=not self.thorough):
                continue
            one, other = decided(left, condition, then), decided(right, condition, then)
            kept = dict(self.laws), self.reason, self.refined
            if self.same(one, other, inner, top=top):
                continue
            impossible = not self.thorough and self.asker.entails(facts, opposite(known), self.symbols)
            self.thorough |= impossible
            if not impossible and (self.real or not scalars.impossible(self, inner)):
                return False  # over the reals more can be than of what is rounded
            self.laws, self.reason, self.refined = kept
        return True

    # ---- The same head ------------------------------------------------------------------------

    def alike(self, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
        """The heads are the same, and the arguments."""
        if left.op != right.op or len(left.args) != len(right.args):
            return False
        reason, self.reason = self.reason, ""
        found = self._same_arguments(left, right, facts)
        self.reason = reason or ("" if found else self.reason)
        return found

    def _same_arguments(self, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
        if left.op == "@.fold":
            return self.same_fold(left, right, facts)
        if left.op == "@.read" and str(left.args[1]) in self.axes:
            return left.args[:2] == right.args[:2] and self.same_index(left, right, facts)
        if left.op in ("@+", "@*") and left.args[0] == right.args[0] and self._numbers(str(left.args[0])):
            _, a, b = left.args
            _, c, d = right.args
            pairs = [((a, c), (b, d)), ((a, d), (b, c))]
            for turned, pair in enumerate(pairs):
                if all(self.same_argument(x, y, facts) for x, y in pair):
                    if turned:
                        self.laws[axioms.COMMUTES[left.op]] = None
                    return True
            return False
        return all(self.same_argument(x, y, facts) for x, y in zip(left.args, right.args, strict=True))

    def _numbers(self, kind: str) -> bool:
        """The type is one of those for which the laws are shown."""
        return set(self.kinds.get(kind, (kind,))) <= set(axioms.NUMBERS)

    def same_argument(self, left: Argument, right: Argument, facts: tuple[Term, ...]) -> bool:
        """Arguments of two elements with one head: texts, numbers, conditions or elements."""
        if left == right and not (isinstance(left, Term) and _opens(left)):
            return True
        if isinstance(left, str) or isinstance(right, str):
            return False
        if isinstance(left, Term) and isinstance(right, Term) and is_element(left) and is_element(right):
            return self.same(left, right, facts, top=False)
        if any(isinstance(part, Term) and is_element(part) for part in (left, right)):
            return False
        if any(isinstance(part, Term) and self._is_truth(part) for part in (left, right)):
            if not (isinstance(left, Term) and isinstance(right, Term)):
                return False
            return self.same_truth(left, right, facts)
        if any(isinstance(part, Term) and part.op in REALS for part in (left, right)):
            return self.entails(
                facts, Term("r=", tuple(Term("to_real", (p,)) if isinstance(p, int) else p for p in (left, right)))
            )
        found = self.entails(facts, equal(left, right))
        if not found:
            self.reason = self.reason or f"numbers are not shown to be equal: {shown(left)} and {shown(right)}"
        return found

    def _is_truth(self, term: Term) -> bool:
        return term.op in TRUTHS or self.symbols.get(term.op, (0, ""))[1] == "Bool"

    def same_truth(self, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
        """Two conditions hold in the same cases."""
        if left == right:
            return True
        return self.implied((*facts, left), right) and self.implied((*facts, right), left)

    def implied(self, facts: tuple[Term, ...], goal: Term) -> bool:
        """Facts about numbers and elements entail a formula."""
        if self.entails(facts, goal):
            return True
        return scalars.entailed(self, facts, goal)

    def same_fold(self, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
        """Folds with as many steps along each index, of which the same take part with the same terms."""
        _, kind, _, _, _, start = left.args
        name, other_kind, _, _, _, other_start = right.args
        if name != left.args[0] or kind != other_kind:
            return False
        steps, guard, body = map(term_of, left.args[2:5])
        other_steps, other_guard, other_body = map(term_of, right.args[2:5])
        half = len(steps.args) // 2
        if steps.args[:half] != other_steps.args[:half]:
            return False
        if not all(
            self.same_argument(a, b, facts) for a, b in zip(steps.args[half:], other_steps.args[half:], strict=True)
        ):
            return False
        ranged = [
            within(symbol, size)
            for symbol, size in zip(steps.args[:half], steps.args[half:], strict=True)
            if not isinstance(symbol, str) and not isinstance(size, str)
        ]
        inner = (*facts, *(part for part in conjuncts(both(*ranged)) if part not in facts))
        if not self.same_truth(guard, other_guard, inner):
            self.reason = self.reason or "other steps of a fold take part"
            return False
        there = (*inner, *(part for part in conjuncts(guard) if part not in inner))
        if start != TRUE or other_start != TRUE:
            if not (isinstance(start, Term) and isinstance(other_start, Term)) or TRUE in (start, other_start):
                return False
            if not self.same(start, other_start, facts, top=False):
                return False
        self.laws[axioms.CONGRUENCE] = None
        body, other_body = (self._settled(self._plain(it, there), there) for it in (body, other_body))
        return self._at_once(body, other_body, there) or self.same(body, other_body, there, top=False)

    # ---- What the text leaves open --------------------------------------------------------------

    def _open(self, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
        """The left element is open, at this index for itself: whatever the right one is, it may be."""
        if any(number_of(left) in open_numbers(fact) for fact in facts):
            self._fail("an element that the text leaves open, of which something else depends", left, right)
            return False
        if not self._own(left, facts, 0):
            self._fail("an element that the text leaves open, perhaps for several places at once", left, right)
            return False
        if left.op == "@.free":
            if right.op != "@.free" or not self._own(right, facts, 1):
                self.refined = True
            return True
        one, other = map(term_of, left.args[1:3])
        if right.op == "@.one" and self._own(right, facts, 1):
            _, third, fourth, *_ = right.args
            for pair in ((one, third), (other, fourth)), ((one, fourth), (other, third)):
                if all(self.same_argument(a, b, facts) for a, b in pair):
                    return True
        reason, self.reason = self.reason, ""
        found = self.same(one, right, facts, top=False) or self.same(other, right, facts, top=False)
        self.reason = reason if found else reason or self.reason
        self.refined = self.refined or found
        return found

    def _own(self, term: Term, facts: tuple[Term, ...], side: int) -> bool:
        """No other element of the output depends on this open one: of any other index all the alternatives count, and
        of what is known here only what is known of every index, with symbols of its own for what an index brings along.
        """
        if not self.alone:
            return False
        left, right, known = self.begun
        whole = right if side else left
        found = list(islice(occurrences(whole, number_of(term)), PLACES + 1))
        if len(found) > PLACES:
            return False
        own = {symbol.op for symbol in self.index}.union(self.own, *(steps_of(part) for at, _ in found for part in at))
        names = {name: f"{name}.other" for name in own}
        symbols = {**self.symbols, **{names[name]: self.symbols.get(name, (0, "Int")) for name in own}}
        told = [renamed(fact, names) for fact in known]
        goal = both(*(equal(symbol, Term(names[symbol.op])) for symbol in self.index))
        for place, conditions in found:
            there = (*told, *(renamed(condition, names) for condition in conditions))
            same = both(*(equal(_int(a), _int(renamed(b, names))) for a, b in zip(place_of(term), place, strict=True)))
            if not self.asker.entails((*facts, *map(term_of, there), same), goal, symbols):
                return False
        return True


def term_of(argument: Argument) -> Term:
    """The argument, which is a term. Raises InternalError for any other one."""
    if isinstance(argument, Term):
        return argument
    raise InternalError(f"{argument!r} is no term")


def _numerals(facts: Sequence[Term]) -> dict[tuple[str, str], list[tuple[Term, Term]]]:
    """The elements of inputs that are numbers other than 0, by type and input: equal to one, they are that one."""
    known: dict[tuple[str, str], list[tuple[Term, Term]]] = {}
    for fact in facts:
        match fact:
            case Term(
                "@=", (str() as kind, Term("@.read", (_, str() as name, *_)) as read, Term("@.num") as value)
            ) | Term("@=", (str() as kind, Term("@.num") as value, Term("@.read", (_, str() as name, *_)) as read)) if (
                value.args[1] not in ("0", "-0.0", "nan")
            ):
                known.setdefault((kind, name), []).append((read, value))
            case _:
                pass
    return known


def _int(argument: Argument) -> int | Term:
    return Term(argument) if isinstance(argument, str) else argument


REALS = frozenset({"rational", "to_real", "r+", "r-", "r*", "r/", "rite", "@.real"})


def _opens(term: Argument) -> bool:
    """Something in the term is open."""
    return isinstance(term, Term) and (term.op in (*FREE, "@.unknown") or any(map(_opens, term.args)))


def _condition(term: Argument, *, top: bool = True) -> Term | None:
    """The condition of an alternative that no fold is around: it is taken apart."""
    if not isinstance(term, Term):
        return None
    if term.op == "@.ite" or term.op == "ite":
        condition = term.args[0]
        inner = _condition(condition)
        return inner if inner is not None else condition if isinstance(condition, Term) else None
    if term.op in ("@.fold", "@.place", "forall", "exists", "@.cast") and not top:
        return None
    if term.op in ("@.fold", "@.place", "forall", "exists"):
        return None
    for part in term.args:
        found = _condition(part, top=False)
        if found is not None:
            return found
    return None


def decided(term: Term, condition: Term, holds: bool) -> Term:
    """The term where a condition holds, or does not."""
    found = _decided(term, condition, holds)
    return found if isinstance(found, Term) else term


def _decided(term: Argument, condition: Term, holds: bool) -> Argument:
    if not isinstance(term, Term) or not term.args:
        return term
    if term.op in ("@.ite", "ite") and term.args[0] == condition:
        return _decided(term.args[1 if holds else 2], condition, holds)
    if term == condition:
        return TRUE if holds else FALSE
    return Term(term.op, tuple(_decided(part, condition, holds) for part in term.args))


def shown(term: Argument, limit: int = 160) -> str:
    """A term for people, cut short."""
    text = _written(term)
    return text if len(text) <= limit else f"{text[:limit]}..."


def _written(term: Argument) -> str:
    match term:
        case Term("@.read", (_, name, *index)):
            return f"{name}[{', '.join(map(_written, index))}]"
        case Term("@.num", (_, value)):
            return str(value)
        case Term("@+" | "@-" | "@*" | "@/" | "@<" | "@<=" | "@=" as op, (_, a, b)):
            return f"({_written(a)} {op[1:]} {_written(b)})"
        case Term("+" | "*" | "<=" | "=" | "div" | "mod" as op, args):
            return f"({f' {op} '.join(map(_written, args))})"
        case Term("@.f", (name, _, *args)):
            return f"{name}({', '.join(map(_written, args))})"
        case Term("@.fold", (name, _, _, _, body, _)):
            return f"{name}({_written(body)})"
        case Term("@.ite" | "ite", (c, a, b)):
            return f"(if {_written(c)} then {_written(a)} else {_written(b)})"
        case Term("not", (inner,)):
            return f"not {_written(inner)}"
        case Term(op, ()):
            return op.removeprefix("dim.").replace("len.", "length of ").replace("given.", "given ")
        case Term(op, args):
            return f"{op}({', '.join(map(_written, args))})"
        case _:
            return str(term)
