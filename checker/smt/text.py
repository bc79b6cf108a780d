"""SMT-LIB 2.6 text of a query: what the solver reads and what `--dump-smt` writes, the same bytes every time.

Each fact stands on a line of its own. A row or a Bool is bound to the assumption literal of its fact,
`(ins.3 use@ins)`, so that an unsatisfiable core over these literals names the facts that it needs; a number is bound to
its value. The facts are local to the assertion of the formula; where Horn clauses mention them too, they are defined.
(Declared symbols with assertions say the same and take the solver four times as long, definitions twice.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sonnx.semantics.facts.structure import Element
from sonnx.semantics.formulas.ground.constraints import Query
from sonnx.semantics.formulas.terms import Argument, Term
from sonnx.spec.language.syntax import Sort

from .writer import numeral, spell

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
    yield "".join(goal(query, negated, explained=place is not None))
    yield f"(check-sat-assuming ({' '.join(query.assumed.values())}))\n"


def header(query: Query, negated: bool, place: Place | None = None) -> Iterator[str]:
    """The options, and comments that say what is asked and what the symbols mean."""
    asked = "the facts and the negation of the formula" if negated else "the facts and the formula"
    lines = [
        f"; {query.name}: {_ascii(query.doc)}",
        "; The ground form: the facts that matter are put in, the quantifiers are written out over the model.",
        f"; Question: can {asked} hold together?",
        "; unsat: the constraint holds." if negated else "; unsat: the constraint is violated.",
        "; A symbol is a fact or a predicate with the arguments it is about. Where a fact is a set, the symbol says",
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
    """Numbers occur."""
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
    """The symbols and the Horn clauses, with the facts that these may mention. explained: members behind each row."""
    for chunk in _chunks(query.undefined().items(), CHUNK):
        yield "".join([f"(declare-const {name} {sort})\n" for name, sort in chunk])
    if query.clauses:
        for facts in _chunks(_facts(query, explained=explained), CHUNK):
            lines = (f"(define-fun {name} () {sort} {value}){note}\n" for name, sort, value, note in facts)
            yield "".join(lines)
    for clauses in _chunks(query.clauses, CHUNK):
        yield "".join([_clause(head, body) for head, body in clauses])


def _facts(query: Query, *, explained: bool) -> Iterator[tuple[str, str, str, str]]:
    """Symbol, sort, value and comment of each fact."""
    for fact, group in query.facts.items():
        literal = query.assumed.get(fact, "true")
        for name, value in group.items():
            if value is True:
                yield name, "Bool", literal, ""
            elif value is False:
                yield name, "Bool", f"(not {literal})", ""
            elif isinstance(value, tuple):
                yield name, "Bool", literal, f" ; {' '.join(_ascii(str(x)) for x in value)}" if explained else ""
            else:
                yield name, "Int", numeral(value), ""


def _clause(head: str, body: Argument) -> str:
    """The Horn clauses of one instance: one for each alternative of its body."""
    if type(body) is str:
        return f"(assert (=> {body} {head}))\n"
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


def goal(query: Query, negated: bool, *, explained: bool) -> Iterator[str]:
    """The assertion of the formula or its negation, a fact and a conjunct on each line."""
    local = () if query.clauses else _facts(query, explained=explained)
    bindings = [f"({name} {value}){note}\n" for name, _, value, note in local]
    opening, closing = ("(assert (let (\n", "))") if bindings else ("(assert ", ")")
    yield opening
    yield from bindings
    yield ") " if bindings else ""
    formula = query.formula
    if isinstance(formula, Term) and formula.op == "and":
        yield "(not (and\n" if negated else "(and\n"
        yield "\n".join(map(spell, formula.args))
        yield "))" if negated else ")"
    else:
        text = spell(formula)
        yield f"(not {text})" if negated else text
    yield f"{closing}\n"


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    chunk: list[T] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
