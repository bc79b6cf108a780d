"""SMT-LIB 2.6 text of a query: what the solver reads and what `--dump-smt` writes, the same bytes every time.

Facts without numbers are asserted below one assumption literal for each fact, `use@ins` for `ins`, so that an
unsatisfiable core names the facts that it needs. Equalities with numbers are asserted outright: below an assumption
literal they cost the solver ten times as much. Each such fact counts as part of every core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from sonnx.semantics.errors import InternalError
from sonnx.semantics.interpretations.smt import Query
from sonnx.semantics.structure import Element
from sonnx.semantics.terms import Argument, Term
from sonnx.spec.syntax import Sort

CHUNK = 500
"""How many facts one assertion holds."""

Place = Callable[[Sort, Element], str]
T = TypeVar("T")


def assumption(fact: str) -> str:
    """The literal below which the Bool symbols of a fact are asserted."""
    return f"use@{fact}"


def assumptions(query: Query) -> tuple[str, ...]:
    """The literals of a query."""
    return tuple(assumption(fact) for fact in propositional(query))


def propositional(query: Query) -> tuple[str, ...]:
    """The facts with Bool symbols."""
    return tuple(fact for fact, group in query.facts.items() if any(isinstance(v, bool) for v in group.values()))


def numeric(query: Query) -> tuple[str, ...]:
    """The facts with Int symbols."""
    return tuple(fact for fact, group in query.facts.items() if any(not isinstance(v, bool) for v in group.values()))


def smtlib(query: Query, negated: bool, place: Place | None = None) -> Iterator[str]:
    """The text, in pieces of whole commands: facts, clauses, and the formula or its negation, then the question.

    place: names the elements in comments.
    """
    yield from header(query, negated, place)
    yield from declarations(query)
    yield from premises(query)
    yield from goal(query, negated)
    yield check(query)


def header(query: Query, negated: bool, place: Place | None = None) -> Iterator[str]:
    """The options, and comments that say what is asked and what the symbols mean."""
    asked = "the facts and the negation of the formula" if negated else "the facts and the formula"
    lines = [
        f"; {query.name}: {_ascii(query.doc)}",
        f"; Question: can {asked} hold together?",
        "; unsat: the constraint holds." if negated else "; unsat: the constraint is violated.",
        "; A symbol is a fact or a predicate with what it is about, in the order of its arguments, members last:",
    ]
    for name, sorts in query.signatures.items():
        lines.append(f";   {name}({', '.join(sorts[:-1])}): {sorts[-1]}")
    lines.append("; use@FACT assumes a fact; free@N is not determined by the model; else@ cannot matter.")
    lines += [f";   text {number}: {_ascii(text)}" for text, number in query.texts.items()]
    if place is not None:
        lines += [f";   {line}" for line in _places(query, place)]
    symbols = query.symbols()
    arithmetic = "QF_LIA" if "Int" in symbols.values() or _numbers(query) else "QF_UF"
    lines += [
        "(set-info :smt-lib-version 2.6)",
        "(set-option :produce-unsat-assumptions true)",
        f"(set-logic {arithmetic})",
    ]
    yield "\n".join(lines) + "\n"


def _numbers(query: Query) -> bool:
    """Whether the formula counts, although no symbol is a number."""
    return any(_has_numeral(term) for term in (query.formula, *(body for _, body in query.clauses)))


def _has_numeral(term: Argument) -> bool:
    if isinstance(term, Term):
        return any(_has_numeral(part) for part in term.args)
    return isinstance(term, int)


def _ascii(text: str) -> str:
    """The text on one line of printable ASCII."""
    return "".join(c if " " <= c <= "~" else f"\\u{{{ord(c):x}}}" for c in " ".join(text.split()))


def _places(query: Query, place: Place) -> Iterator[str]:
    """The elements that occur in symbols, with their paths."""
    seen: dict[tuple[str, int], None] = {}
    for name in query.symbols():
        fact, *parts = name.partition("@")[0].split(".")
        sorts = query.signatures.get(fact, ())
        for sort, part in zip(sorts, parts, strict=False):
            if part.isdigit() and sort not in ("Int", "Bool", "Text"):
                seen[(sort.removeprefix("set ").removeprefix("list "), int(part))] = None
    for sort, number in sorted(seen):
        if sort not in ("Int", "Bool", "Text"):
            yield f"{sort} {number}: {_ascii(place(Sort(sort), number))}"


def declarations(query: Query) -> Iterator[str]:
    """A declaration for each symbol, one on a line."""
    yield "".join(f"(declare-const {name} Bool)\n" for name in assumptions(query))
    for lines in _chunks((f"(declare-const {name} {sort})\n" for name, sort in query.symbols().items()), 20 * CHUNK):
        yield "".join(lines)


def premises(query: Query) -> Iterator[str]:
    """The facts and the Horn clauses."""
    for fact, group in query.facts.items():
        literals = (_literal(name, value) for name, value in group.items() if isinstance(value, bool))
        for chunk in _chunks(literals, CHUNK):
            yield f"(assert (=> {assumption(fact)} (and\n{''.join(chunk)})))\n"
        yield "".join(
            f"(assert (= {name} {numeral(value)}))\n" for name, value in group.items() if not isinstance(value, bool)
        )
    for clauses in _chunks(query.clauses, CHUNK):
        yield "".join(_clause(head, body) for head, body in clauses)


def _literal(name: str, value: bool) -> str:
    return f"{name}\n" if value else f"(not {name})\n"


def _clause(head: str, body: Argument) -> str:
    if isinstance(body, Term) and body.op == "true":
        return f"(assert {head})\n"
    if isinstance(body, Term) and body.op == "false":
        return ""
    return f"(assert (=> {spell(body)} {head}))\n"


def goal(query: Query, negated: bool) -> Iterator[str]:
    """The assertion of the formula or its negation, a conjunct on each line."""
    formula = query.formula
    if isinstance(formula, Term) and formula.op == "and":
        conjuncts = "\n".join(map(spell, formula.args))
        yield f"(assert (not (and\n{conjuncts})))\n" if negated else f"(assert (and\n{conjuncts}))\n"
    else:
        text = spell(formula)
        yield f"(assert (not {text}))\n" if negated else f"(assert {text})\n"


def check(query: Query) -> str:
    """The question."""
    literals = " ".join(assumptions(query))
    return f"(check-sat-assuming ({literals}))\n"


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    chunk: list[T] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def spell(term: Argument) -> str:
    """A term as SMT-LIB; recursion is as deep as the formula, not as the graph."""
    if type(term) is str:
        return term
    if not isinstance(term, Term):
        return numeral(int(term))
    op, args = term
    if not args:
        return op
    if op in DIVISION:
        return DIVISION[op](spell(args[0]), args[1])
    return f"({op} {' '.join(map(spell, args))})"


def numeral(value: int) -> str:
    """An integer; SMT-LIB has no negative numerals."""
    return str(value) if value >= 0 else f"(- {-value})"


def _floor_div(dividend: str, divisor: Argument) -> str:
    """Floor division by a numeral; SMT-LIB's div rounds such that the remainder is not negative."""
    number = _divisor(divisor)
    return f"(div {dividend} {number})" if number > 0 else f"(div (- {dividend}) {-number})"


def _floor_mod(dividend: str, divisor: Argument) -> str:
    """The remainder of floor division by a numeral, with the sign of the divisor."""
    number = _divisor(divisor)
    return f"(mod {dividend} {number})" if number > 0 else f"(- (mod (- {dividend}) {-number}))"


def _divisor(term: Argument) -> int:
    if not isinstance(term, int) or term == 0:
        raise InternalError("a divisor is a numeral other than 0")
    return term


DIVISION: Mapping[str, Callable[[str, Argument], str]] = {"div": _floor_div, "mod": _floor_mod}
