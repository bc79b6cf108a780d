"""The lemmas about lists of any length, proved: base and step of each induction on the length, one question each.

What `operators.symbolic.lemmas` tells the solver of products, of positions that are chosen and of places in a tensor is
derived here from the recursive definitions alone. A step has what it shows for one length less among its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sonnx.semantics.formulas.terms import Term
from sonnx.semantics.operators.symbolic import lemmas
from sonnx.semantics.operators.symbolic.lemmas import at, forall, named, product
from sonnx.semantics.operators.symbolic.numbers import (
    Int,
    add,
    at_most,
    both,
    choose,
    either,
    equal,
    floor_div,
    floor_mod,
    less,
    multiply,
    opposite,
    substitute_term,
    within,
)

from ..smt.prover import Prover

Predicate = Callable[[Int], Term]


@dataclass(frozen=True, slots=True)
class Goal:
    """A question: the facts entail the goal. part: base, step, or what else it is in its lemma."""

    lemma: str
    part: str
    facts: tuple[Term, ...]
    goal: Term


SYMBOLS = {
    "at": (2, "Int"), "product": (3, "Int"), "place": (1, "Int"), "index": (1, "Int"),
    "rank": (1, "Int"), "before": (1, "Int"), "holds": (1, "Bool"), "other": (1, "Bool"), "member": (2, "Bool"),
    **dict.fromkeys(["c", "d", "s", "t", "n", "p", "q", "r", "x", "i", "j", "l", "m"], (0, "Int")),
    **dict.fromkeys(("first", "second", "astray"), (2, "Int")),
    **dict.fromkeys(lemmas.EXCEPTIONS, (3, "Int")),
}  # fmt: skip
"""The symbols of the questions with the number of their arguments and their sort."""
C, D, S, T, N, P, Q, R, X, M = (Term(name) for name in ["c", "d", "s", "t", "n", "p", "q", "r", "x", "m"])


def goals() -> Iterator[Goal]:
    """Every question of every lemma."""
    yield from _products()
    yield from _places()
    yield from _ranks()
    yield from _chosen()
    yield from _distinct()
    yield from _ordered()
    yield from _sums()
    yield from _folds()


def failures(every: Iterator[Goal] | None = None, prover: Prover | None = None) -> list[Goal]:
    """The questions that the solver does not answer with yes."""
    prover = prover or Prover(timeout=5)
    return [goal for goal in every or goals() if prover.ask(goal.facts, goal.goal, SYMBOLS).status != "unsat"]


# ---- Products -----------------------------------------------------------------------------------


def _product(start: Int, stop: Int) -> Term:
    """The definition: 1 for no entries, else the product of all but the last, times the last."""
    last = add(stop, -1)
    longer = equal(product(C, start, stop), multiply(product(C, start, last), at(C, last)))
    return both(either(less(start, stop), equal(product(C, start, stop), 1)), either(at_most(stop, start), longer))


def _products() -> Iterator[Goal]:
    for sentence, statement in lemmas.PRODUCTS.items():
        yield from products(sentence, statement)


def products(sentence: str, statement: lemmas.Statement) -> Iterator[Goal]:
    """Induction on the end of the stretch."""
    known = ((name, holds, end) for name, holds in lemmas.EXCEPTIONS.items() for end in (T, add(T, -1)))
    exceptions = tuple(
        forall(("p",), either(less(P, S), at_most(end, P), opposite(holds(at(C, P))), named(name, C, S, end, holds)))
        for name, holds, end in known
    )
    unfolded = (*exceptions, *(_product(start, add(T, -k)) for k in range(3) for start in (S, 0)))
    yield Goal(sentence, "base", (*unfolded, at_most(T, S)), statement(C, S, T))
    yield Goal(sentence, "step", (*unfolded, less(S, T), statement(C, S, add(T, -1))), statement(C, S, T))


# ---- Places: the position of an index among all, row-major ---------------------------------------


def _places() -> Iterator[Goal]:
    """place(n): of the first n entries of the index c below the shape d. index(n): the index at a position of these."""
    sentence = "the place of an index is below the number of elements"
    size: Callable[[Int], Term] = lambda n: product(D, 0, n)  # noqa: E731
    place: Callable[[Int], Term] = lambda n: Term("place", (n,))  # noqa: E731
    longer = equal(size(add(N, 1)), multiply(size(N), at(D, N)))
    yield Goal(sentence, "base", (equal(place(0), 0), equal(size(0), 1)), within(place(0), size(0)))
    next_place = equal(place(add(N, 1)), add(multiply(place(N), at(D, N)), at(C, N)))
    facts = (at_most(0, N), longer, next_place, within(at(C, N), at(D, N)), within(place(N), size(N)))
    yield Goal(sentence, "step", facts, within(place(add(N, 1)), size(add(N, 1))))
    sentence = "each position below the number of elements is that of an index"
    last, rest = floor_mod(P, at(D, N)), floor_div(P, at(D, N))
    facts = (at_most(0, N), longer, at_most(0, at(D, N)), at_most(0, size(N)), within(P, size(add(N, 1))))
    yield Goal(sentence, "step", facts, both(within(last, at(D, N)), within(rest, size(N))))
    yield Goal(sentence, "inverse", facts, equal(add(multiply(rest, at(D, N)), last), P))
    sentence = "the index at the place of an index is that index"
    whole = place(add(N, 1))
    digits = both(equal(floor_mod(whole, at(D, N)), at(C, N)), equal(floor_div(whole, at(D, N)), place(N)))
    yield Goal(sentence, "step", (next_place, within(at(C, N), at(D, N))), digits)
    yield from _groups()


def _groups() -> Iterator[Goal]:
    """rank(n), before(n): the place and the size of the first n entries of a second list behind one with place p."""
    sentence = "the place of two lists together is that of the first times the size of the second, plus its own"
    last, size = at(C, N), at(D, N)
    both_of: Callable[[Int], Term] = lambda n: Term("place", (n,))  # noqa: E731
    own: Callable[[Int], Term] = lambda n: Term("before", (n,))  # noqa: E731
    together: Callable[[Int], Term] = lambda n: equal(both_of(n), add(multiply(P, own(n)), _rank(n)))  # noqa: E731
    yield Goal(sentence, "base", (equal(both_of(0), P), equal(own(0), 1), equal(_rank(0), 0)), together(0))
    more = (
        equal(both_of(add(N, 1)), add(multiply(both_of(N), size), last)),
        equal(own(add(N, 1)), multiply(own(N), size)),
        equal(_rank(add(N, 1)), add(multiply(_rank(N), size), last)),
    )
    yield Goal(sentence, "step", (*more, together(N)), together(add(N, 1)))
    sentence = "a position below groups of sizes is converted group by group"
    position: Callable[[Int], Int] = lambda size: add(multiply(P, size), Q)  # noqa: E731
    yield Goal(sentence, "base", (within(Q, 1),), equal(position(1), P))
    known = (at_most(0, M), at_most(1, X), within(Q, multiply(M, X)))
    whole, rest = position(multiply(M, X)), floor_div(Q, X)
    digit = equal(floor_mod(whole, X), floor_mod(Q, X))
    left = both(equal(floor_div(whole, X), add(multiply(P, M), rest)), within(rest, M))
    yield Goal(sentence, "step", known, both(digit, left))


# ---- Folds ----------------------------------------------------------------------------------------


def _folds() -> Iterator[Goal]:
    """rank(n), before(n): what two folds have after n steps, any numbers; first: a step."""
    sentence = "folds whose steps have equal terms are equal"
    term: Callable[[Int], Term] = lambda n: Term("place", (n,))  # noqa: E731
    other_term: Callable[[Int], Term] = lambda n: Term("index", (n,))  # noqa: E731
    other: Callable[[Int], Term] = lambda n: Term("before", (n,))  # noqa: E731
    taken = Term("other", (N,))
    step: Callable[[Int, Int], Term] = lambda so_far, it: Term("first", (so_far, it))  # noqa: E731
    same: Callable[[Int], Term] = lambda n: equal(_rank(n), other(n))  # noqa: E731
    yield Goal(sentence, "base", (equal(_rank(0), X), equal(other(0), X)), same(0))
    longer = (
        equal(_rank(add(N, 1)), choose(_holds(N), step(_rank(N), term(N)), _rank(N))),
        equal(other(add(N, 1)), choose(taken, step(other(N), other_term(N)), other(N))),
    )
    alike = (Term("iff", (_holds(N), taken)), either(opposite(_holds(N)), equal(term(N), other_term(N))))
    yield Goal(sentence, "step", (*longer, *alike, same(N)), same(add(N, 1)))
    yield from _linear(term, other_term, other)


def _linear(
    term: Callable[[Int], Term], other_term: Callable[[Int], Term], other: Callable[[Int], Term]
) -> Iterator[Goal]:
    """Sums, of which nothing but the laws of a ring is used: integers stand for reals."""
    sentence = "a factor stands before a sum"
    times: Callable[[Int], Term] = lambda n: equal(_rank(n), multiply(X, other(n)))  # noqa: E731
    yield Goal(sentence, "base", (equal(_rank(0), 0), equal(other(0), 0)), times(0))
    longer = (
        equal(_rank(add(N, 1)), add(_rank(N), multiply(X, term(N)))),
        equal(other(add(N, 1)), add(other(N), term(N))),
    )
    yield Goal(sentence, "step", (*longer, times(N)), times(add(N, 1)))
    sentence = "a sum of sums is two sums"
    total: Callable[[Int], Term] = lambda n: at(C, n)  # noqa: E731
    two: Callable[[Int], Term] = lambda n: equal(total(n), add(_rank(n), other(n)))  # noqa: E731
    zero = (equal(total(0), 0), equal(_rank(0), 0), equal(other(0), 0))
    yield Goal(sentence, "base", zero, two(0))
    all_longer = (
        equal(total(add(N, 1)), add(total(N), add(term(N), other_term(N)))),
        equal(_rank(add(N, 1)), add(_rank(N), term(N))),
        equal(other(add(N, 1)), add(other(N), other_term(N))),
    )
    yield Goal(sentence, "step", (*all_longer, two(N)), two(add(N, 1)))
    sentence = "a sum of ones is the number of its steps"
    yield Goal(sentence, "base", (equal(_rank(0), 0),), equal(_rank(0), 0))
    more = equal(_rank(add(N, 1)), add(_rank(N), 1))
    yield Goal(sentence, "step", (more, equal(_rank(N), N)), equal(_rank(add(N, 1)), add(N, 1)))


# ---- Ranks: at how many positions before one something holds ---------------------------------------


def _holds(k: Int) -> Term:
    return Term("holds", (k,))


def _rank(k: Int) -> Term:
    return Term("rank", (k,))


def _counted(k: Int, rank: Callable[[Int], Term] = _rank, holds: Predicate = _holds) -> Term:
    """The definition: before position k + 1 it holds at one position more than before k, if it holds at k."""
    return equal(rank(add(k, 1)), add(rank(k), choose(holds(k), 1, 0)))


def _ranks() -> Iterator[Goal]:
    start = equal(_rank(0), 0)
    sentence = "it holds at no more positions than there are"
    yield Goal(sentence, "base", (start,), within(_rank(0), 1))
    bounded: Callable[[Int], Term] = lambda n: both(at_most(0, _rank(n)), at_most(_rank(n), n))  # noqa: E731
    yield Goal(sentence, "step", (_counted(N), bounded(N)), bounded(add(N, 1)))
    sentence = "before a later position it holds at no fewer positions, at one more where it holds here"
    grows: Callable[[Int], Term] = lambda n: at_most(add(_rank(P), choose(_holds(P), 1, 0)), _rank(n))  # noqa: E731
    yield Goal(sentence, "base", (_counted(P),), grows(add(P, 1)))
    yield Goal(sentence, "step", (_counted(N), less(P, N), grows(N)), grows(add(N, 1)))
    sentence = "each smaller number is the rank of a position at which it holds"
    found: Callable[[Int], Term] = lambda n: Term("exists", ("p", both(within(P, n), _holds(P), equal(_rank(P), Q))))  # noqa: E731
    there: Callable[[Int], Term] = lambda n: either(opposite(within(Q, _rank(n))), found(n))  # noqa: E731
    yield Goal(sentence, "base", (start,), there(0))
    yield Goal(sentence, "step", (at_most(0, N), _counted(N), there(N)), there(add(N, 1)))


GROWS = forall(
    ("p", "q"),
    either(opposite(less(P, Q)), less(P, 0), at_most(add(_rank(P), choose(_holds(P), 1, 0)), _rank(Q))),
)
"""What is shown of ranks above."""


def _chosen() -> Iterator[Goal]:
    """at(c, q) is a position of which the rank is q, which there is; all the rest follows."""
    sentence = "the chosen positions"
    bounds, definition, ascending, complete = lemmas.of_selection(C, N, _rank, _holds)
    size = (at_most(0, N), equal(_rank(0), 0), both(at_most(0, _rank(N)), at_most(_rank(N), N)))
    yield Goal(sentence, "bounds", size, bounds)
    yield Goal(sentence, "ascending", (*size, GROWS, definition), ascending)
    yield Goal(sentence, "complete", (*size, GROWS, definition), complete)


# ---- Lists of positions --------------------------------------------------------------------------


def _distinct() -> Iterator[Goal]:
    """rank: for the positions that the first m entries of the list c have; before: for those of one entry more."""
    sentence = "distinct positions are as many as a list of them has entries"
    before: Callable[[Int], Term] = lambda k: Term("before", (k,))  # noqa: E731
    other: Callable[[Int], Term] = lambda k: Term("other", (k,))  # noqa: E731
    one_more = forall(("p",), Term("iff", (other(P), either(_holds(P), equal(P, X)))))
    counts: Callable[[Int], Term] = lambda n: equal(before(n), add(_rank(n), choose(less(X, n), 1, 0)))  # noqa: E731
    facts = (one_more, opposite(_holds(X)), at_most(0, X))
    yield Goal(sentence, "one more, base", (*facts, equal(before(0), 0), equal(_rank(0), 0)), counts(0))
    steps = (_counted(N), _counted(N, before, other))
    yield Goal(sentence, "one more, step", (*facts, *steps, at_most(0, N), counts(N)), counts(add(N, 1)))
    none = forall(("p",), opposite(_holds(P)))
    yield Goal(sentence, "no entries, base", (none, equal(_rank(0), 0)), equal(_rank(0), 0))
    yield Goal(sentence, "no entries, step", (none, _counted(N), equal(_rank(N), 0)), equal(_rank(add(N, 1)), 0))
    has: Callable[[Int], Predicate] = lambda many: lambda p: lemmas.somewhere(0, many, lambda k: equal(at(C, k), p))  # noqa: E731
    of_m = forall(("p",), Term("iff", (_holds(P), has(M)(P))))
    of_more = forall(("p",), Term("iff", (other(P), has(add(M, 1))(P))))
    facts = (at_most(0, M), equal(X, at(C, M)), of_m)
    yield Goal(sentence, "step, a new one", (*facts, _apart(add(M, 1))), opposite(_holds(X)))
    yield Goal(sentence, "step, one more", (*facts, of_more), one_more)
    proved = either(opposite(both(_apart(M), _below(M))), equal(_rank(N), M))
    told = lemmas.of_distinct(C, M, _rank(N), N)
    yield Goal(sentence, "as it is told", (proved, *_exceptions()), told)


def _apart(many: Int) -> Term:
    """No two of the first entries of c are the same."""
    return forall(("p", "q"), either(less(P, 0), at_most(Q, P), at_most(many, Q), opposite(equal(at(C, P), at(C, Q)))))


def _below(many: Int) -> Term:
    """The first entries of c are positions below n."""
    return forall(("p",), either(opposite(within(P, many)), within(at(C, P), N)))


def _exceptions() -> tuple[Term, Term]:
    """What the names of the exceptions stand for: positions of two entries that are the same, of one that is none."""
    first, second, astray = (Term(name, (C, N)) for name in ("first", "second", "astray"))

    def same(p: Int, q: Int) -> Term:
        return both(at_most(0, p), less(p, q), less(q, M), equal(at(C, p), at(C, q)))

    none: Predicate = lambda p: both(within(p, M), opposite(within(at(C, p), N)))  # noqa: E731
    return (
        forall(("p", "q"), either(opposite(same(P, Q)), same(first, second))),
        forall(("p",), either(opposite(none(P)), none(astray))),
    )


def _ordered() -> Iterator[Goal]:
    """c lists in ascending order, from 0 on, the m positions at which it holds."""
    sentence = "an entry of an ascending list of distinct positions stands where its rank says"
    nothing: Callable[[Int, Int], Term] = lambda low, high: forall(  # noqa: E731
        ("p",), either(less(P, low), at_most(high, P), opposite(_holds(P)))
    )
    same: Predicate = lambda k: equal(_rank(k), _rank(S))  # noqa: E731
    facts = (at_most(S, N), nothing(S, add(N, 1)), _counted(N), same(N))
    yield Goal(sentence, "nothing between, step", facts, same(add(N, 1)))
    ascending = forall(("p", "q"), either(less(P, 0), at_most(Q, P), at_most(M, Q), less(at(C, P), at(C, Q))))
    members = forall(("p",), Term("iff", (_holds(P), lemmas.somewhere(0, M, lambda k: equal(at(C, k), P)))))
    below = forall(("p",), either(opposite(within(P, M)), at_most(0, at(C, P))))
    listed = (ascending, members, below, at_most(0, R), less(R, M))
    yield Goal(sentence, "base, nothing before", (*listed,), nothing(0, at(C, 0)))
    yield Goal(sentence, "base", (equal(_rank(0), 0), equal(_rank(at(C, 0)), _rank(0))), equal(_rank(at(C, 0)), 0))
    here, after = at(C, R), at(C, add(R, 1))
    more = (*listed, less(add(R, 1), M))
    yield Goal(sentence, "step, nothing between", more, nothing(add(here, 1), after))
    known = (*more, _counted(here), equal(_rank(here), R), equal(_rank(after), _rank(add(here, 1))))
    yield Goal(sentence, "step", known, equal(_rank(after), add(R, 1)))


def _instance(fact: Term, values: Mapping[str, Int]) -> Term:
    """A fact without its quantifier at these values of its variables."""
    found: Int = fact
    match fact:
        case Term("forall", (*_, Term() as body)):
            found = body
        case _:
            pass
    for name, value in values.items():
        found = substitute_term(found, Term(name), value)
    return found if isinstance(found, Term) else fact


def _sums() -> Iterator[Goal]:
    """rank(n): the sum of the first n entries of c; x is a number, first and second name exceptions and steps."""
    sentence = "sums"
    term: Callable[[Int], Term] = lambda k: at(C, k)  # noqa: E731
    loss: Callable[[Int], Term] = lambda k: Term("first", (C, k))  # noqa: E731
    step = Term("second", (Term("position!x"), N))
    start, longer, ascending, positive, within_all, covered = lemmas.of_sum(_rank, term, N, loss, step)
    lost: Callable[[Int], Term] = lambda n: both(within(loss(n), n), less(term(loss(n)), 0))  # noqa: E731
    named_loss = forall(("p", "q"), either(opposite(both(within(P, Q), less(term(P), 0))), lost(Q)))
    grows: Callable[[Int], Term] = lambda n: either(  # noqa: E731
        lost(n), less(Q, 0), less(n, Q), at_most(_rank(Q), _rank(n))
    )
    yield Goal(sentence, "ascending, base", (), grows(Q))
    yield Goal(sentence, "ascending, step", (named_loss, longer, less(Q, add(N, 1)), grows(N)), grows(add(N, 1)))
    every = forall(("q", "n"), grows(N))
    yield Goal(sentence, "ascending", (every,), ascending)
    yield Goal(sentence, "not negative", (every, start), positive)
    here = Term("l")
    known = tuple(_instance(fact, {"position!k": here}) for fact in (longer, start)), grows(N)
    both_ends = (_instance(known[1], {"q": add(here, 1)}), _instance(grows(here), {"q": 0}), start)
    losses = (_instance(named_loss, {"p": loss(here), "q": N}),)
    some = _instance(within_all, {"position!k": here})
    yield Goal(sentence, "of some and of all", (*known[0], *both_ends, *losses), some)
    reached: Callable[[Int], Term] = lambda k: both(  # noqa: E731
        at_most(_rank(k), X), less(X, add(_rank(k), term(k)))
    )
    found: Callable[[Int], Term] = lambda n: either(  # noqa: E731
        opposite(within(X, _rank(n))), lemmas.somewhere(0, n, reached)
    )
    yield Goal(sentence, "covered, base", (start, at_most(N, 0)), found(N))
    yield Goal(sentence, "covered, step", (start, longer, at_most(0, N), found(N)), found(add(N, 1)))
    there, k = Term("second", (X, N)), Term("k")
    steps = forall(("x", "k"), either(opposite(both(within(k, N), reached(k))), both(within(there, N), reached(there))))
    yield Goal(sentence, "covered", (forall(("x",), found(N)), steps), covered)
    yield from _equal_terms()


def _equal_terms() -> Iterator[Goal]:
    """rank(n): the sum of n terms each of which is x."""
    sentence = "a sum of equal terms is so many times one of them"
    times: Callable[[Int], Term] = lambda n: equal(_rank(n), multiply(X, n))  # noqa: E731
    yield Goal(sentence, "base", (equal(_rank(0), 0),), times(0))
    yield Goal(sentence, "step", (equal(_rank(add(N, 1)), add(_rank(N), X)), times(N)), times(add(N, 1)))
