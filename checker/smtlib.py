"""SMT-LIB 2.6 text of a query: what the solver reads and what `--dump-smt` writes, the same bytes every time.

Each fact is a definition on a line of its own. A row or a Bool is defined by the assumption literal of its fact,
`(define-fun ins.3 () Bool use@ins)`, so that an unsatisfiable core over these literals names the facts that it needs; a
number is defined outright. (Declared symbols and assertions say the same and take the solver twice as long.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from sonnx.semantics.errors import InternalError
from sonnx.semantics.interpretations.ground_symbols import Known
from sonnx.semantics.interpretations.smt import Query
from sonnx.semantics.structure import Element
from sonnx.semantics.terms import Argument, Term
from sonnx.spec.syntax import Sort

CHUNK = 2_000
"""How many commands one piece of text holds."""

Place = Callable[[Sort, Element], str]
T = TypeVar("T")


def smtlib(query: Query, negated: bool, place: Place | None = None) -> Iterator[str]:
    """The text, in pieces of whole commands: facts, clauses, and the formula or its negation, then the question.

    place: names the elements in comments.
    """
    yield from header(query, negated, place)
    yield from premises(query, explained=place is not None)
    yield from goal(query, negated)
    yield f"(check-sat-assuming ({' '.join(query.assumed.values())}))\n"


def header(query: Query, negated: bool, place: Place | None = None) -> Iterator[str]:
    """The options, and comments that say what is asked and what the symbols mean."""
    asked = "the facts and the negation of the formula" if negated else "the facts and the formula"
    lines = [
        f"; {query.name}: {_ascii(query.doc)}",
        f"; Question: can {asked} hold together?",
        "; unsat: the constraint holds." if negated else "; unsat: the constraint is violated.",
        "; A symbol is a fact or a predicate with the arguments that it is about. Where a fact is a set, the symbol says",
        "; that this row has exactly the members which the model lists; use@FACT says so of the whole table.",
        "; free@N is not determined by the model, else@ cannot matter once the facts are assumed.",
    ]
    lines += [f";   {name}({', '.join(sorts[:-1])}): {sorts[-1]}" for name, sorts in query.signatures.items()]
    lines += [f";   text {number}: {_ascii(text)}" for text, number in query.texts.items()]
    if place is not None:
        lines += [f";   {line}" for line in _places(query, place)]
    lines += [
        "(set-info :smt-lib-version 2.6)",
        "(set-option :produce-unsat-assumptions true)",
        f"(set-logic {'QF_LIA' if _counts(query) else 'QF_UF'})",
    ]
    yield "\n".join(lines) + "\n"


def _counts(query: Query) -> bool:
    """Whether numbers occur."""
    if any(type(value) is int for group in query.facts.values() for value in group.values()):
        return True
    terms = (query.formula, *(body for _, body in query.clauses))
    return "Int" in query.undefined().values() or any(map(_has_numeral, terms))


def _has_numeral(term: Argument) -> bool:
    if isinstance(term, Term):
        return any(_has_numeral(part) for part in term.args)
    return isinstance(term, int)


def _ascii(text: str) -> str:
    """The text on one line of printable ASCII."""
    return "".join(c if " " <= c <= "~" else f"\\u{{{ord(c):x}}}" for c in " ".join(text.split()))


def _places(query: Query, place: Place) -> Iterator[str]:
    """The elements that occur, with their paths."""
    seen: dict[tuple[str, int], None] = {}
    for name in (*query.undefined(), *(name for group in query.facts.values() for name in group)):
        fact, *parts = name.partition("@")[0].split(".")
        for sort, part in zip(query.signatures.get(fact, ()), parts, strict=False):
            if part.isdigit():
                seen[(sort, int(part))] = None
    for fact, group in query.facts.items():
        sort = query.signatures[fact][-1].removeprefix("set ")
        for row in group.values():
            seen.update(((sort, x), None) for x in (row if isinstance(row, tuple) else ()) if isinstance(x, int))
    for sort, number in sorted(seen):
        if sort not in ("Int", "Bool", "Text"):
            yield f"{sort} {number}: {_ascii(place(Sort(sort), number))}"


def premises(query: Query, *, explained: bool) -> Iterator[str]:
    """The symbols, the facts and the Horn clauses. explained: behind each row its members."""
    for chunk in _chunks(query.undefined().items(), CHUNK):
        yield "".join([f"(declare-const {name} {sort})\n" for name, sort in chunk])
    for fact, group in query.facts.items():
        literal = query.assumed.get(fact, "true")
        for known in _chunks(group.items(), CHUNK):
            yield "".join([_definition(name, value, literal, explained) for name, value in known])
    for clauses in _chunks(query.clauses, CHUNK):
        yield "".join([_clause(head, body) for head, body in clauses])


def _definition(name: str, value: Known, literal: str, explained: bool) -> str:
    if value is True:
        return f"(define-fun {name} () Bool {literal})\n"
    if value is False:
        return f"(define-fun {name} () Bool (not {literal}))\n"
    if not isinstance(value, tuple):
        return f"(define-fun {name} () Int {numeral(value)})\n"
    members = f" ; {' '.join(_ascii(str(x)) for x in value)}" if explained else ""
    return f"(define-fun {name} () Bool {literal}){members}\n"


def _clause(head: str, body: Argument) -> str:
    """The Horn clauses of one instance: one for each alternative of its body."""
    out = []
    for premise in alternatives(body):
        if isinstance(premise, Term) and premise.op == "true":
            out.append(f"(assert {head})\n")
        elif not (isinstance(premise, Term) and premise.op == "false"):
            out.append(f"(assert (=> {spell(premise)} {head}))\n")
    return "".join(out)


def alternatives(body: Argument) -> list[Argument]:
    """Formulas whose disjunction is `body`, conjunctions where this does not multiply them."""
    if isinstance(body, Term) and body.op == "or":
        return [part for arg in body.args for part in alternatives(arg)]
    if isinstance(body, Term) and body.op == "and":
        parts = [alternatives(arg) if isinstance(arg, Term) else [arg] for arg in body.args]
        several = [i for i, part in enumerate(parts) if len(part) > 1]
        if len(several) == 1:
            i = several[0]
            return [Term("and", (*body.args[:i], part, *body.args[i + 1 :])) for part in parts[i]]
    return [body]


def goal(query: Query, negated: bool) -> Iterator[str]:
    """The assertion of the formula or its negation, a conjunct on each line."""
    formula = query.formula
    if isinstance(formula, Term) and formula.op == "and":
        conjuncts = "\n".join(map(spell, formula.args))
        yield f"(assert (not (and\n{conjuncts})))\n" if negated else f"(assert (and\n{conjuncts}))\n"
    else:
        text = spell(formula)
        yield f"(assert (not {text}))\n" if negated else f"(assert {text})\n"


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
