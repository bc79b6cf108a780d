"""SMT-LIB 2.6: the one writer of terms, and the texts of queries, which the solver reads and `--dump-smt` writes.

A quantifier binds names of integers, or terms `name(sort)`. Floor division is spelled out: SMT-LIB's rounds such that
the remainder is not negative. What one kind of query adds to the operators of SMT-LIB is a table of heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.structure import Element
from sonnx.semantics.formulas.ground import Query
from sonnx.semantics.formulas.terms import Argument, Term
from sonnx.semantics.operators.symbolic.numbers import Int, add, multiply
from sonnx.spec.language.syntax import Sort

Heads = Mapping[str, Callable[[tuple[Argument, ...], "Heads"], str]]
"""The text of a term by its operator, from its arguments."""


def spell(term: Argument, heads: Heads | None = None) -> str:
    """A term as text; recursion is as deep as the formula, not as the graph. heads: FLOOR unless told otherwise."""
    if type(term) is str:
        return term
    if not isinstance(term, Term):
        return numeral(int(term))
    op, args = term
    if not args:
        return op
    table = FLOOR if heads is None else heads
    head = table.get(op)
    if head is not None:
        return head(args, table)
    return f"({op} {' '.join([arg if type(arg) is str else spell(arg, table) for arg in args])})"


def numeral(value: int) -> str:
    """An integer; SMT-LIB has no negative numerals."""
    return str(value) if value >= 0 else f"(- {-value})"


def declared(name: str, arguments: Iterable[str], sort: str) -> str:
    """The declaration of a symbol, on a line."""
    return f"(declare-fun {name} ({' '.join(arguments)}) {sort})\n"


def asserted(term: Argument, heads: Heads | None = None) -> str:
    """The assertion of a formula, on a line."""
    return f"(assert {spell(term, heads)})\n"


def quantifier(op: str) -> Callable[[tuple[Argument, ...], Heads], str]:
    """The head of a quantifier: all arguments but the last one are what it binds."""

    def written(args: tuple[Argument, ...], heads: Heads) -> str:
        return f"({op} ({' '.join(map(_binder, args[:-1]))}) {spell(args[-1], heads)})"

    return written


def _binder(binder: Argument) -> str:
    match binder:
        case str():
            return f"({binder} Int)"
        case Term(op=name, args=(str() as sort,)):
            return f"({name} {sort})"
    raise InternalError("a quantifier binds a variable of a sort")


def renamed(op: str) -> Callable[[tuple[Argument, ...], Heads], str]:
    """The head of an operator that has another name in SMT-LIB."""
    return lambda args, heads: f"({op} {' '.join([spell(arg, heads) for arg in args])})"


def _floor(op: str) -> Callable[[tuple[Argument, ...], Heads], str]:
    """The head of a floor division: for a negative divisor both signs are changed."""

    def turned(dividend: str, divisor: str) -> str:
        text = f"({op} (- {dividend}) {divisor})"
        return text if op == "div" else f"(- {text})"

    def written(args: tuple[Argument, ...], heads: Heads) -> str:
        dividend, divisor = spell(args[0], heads), args[1]
        if not isinstance(divisor, int):
            by = spell(divisor, heads)
            return f"(ite (> {by} 0) ({op} {dividend} {by}) {turned(dividend, f'(- {by})')})"
        if divisor == 0:
            raise InternalError("a divisor is a numeral other than 0")
        return f"({op} {dividend} {divisor})" if divisor > 0 else turned(dividend, str(-divisor))

    return written


QUANTIFIERS = ("forall", "exists")
PLAIN: Heads = {op: quantifier(op) for op in QUANTIFIERS}
"""SMT-LIB's own operators."""
FLOOR: Heads = {**PLAIN, "div": _floor("div"), "mod": _floor("mod")}
"""Division rounds downwards."""


# ---- Queries: the same bytes every time --------------------------------------------------------
#
# In a named query each fact stands on a line of its own. A row or a Bool is bound to the assumption literal of its
# fact, `(ins.3 use@ins)`, so that an unsatisfiable core over these literals names the facts that it needs; a number is
# bound to its value. The facts are local to the assertion of the formula; where Horn clauses mention them too, they are
# defined. (Declared symbols with assertions say the same and take the solver four times as long, definitions twice.)

CHUNK = 2_000
"""The number of commands in one piece of text."""

Place = Callable[[Sort, Element], str]
T = TypeVar("T")


def smtlib(query: Query, negated: bool, place: Place | None = None) -> Iterator[str]:
    """The text for a reader: comments, then the script. place: names the elements in comments."""
    yield comments(query, negated, place)
    yield from script(query, negated, explained=place is not None)


def script(query: Query, negated: bool, *, explained: bool = False) -> Iterator[str]:
    """The commands, in pieces of whole ones: options, facts, clauses, and the formula or its negation, then the
    question. explained: with the members behind each row."""
    yield f"{OPTIONS}(set-logic {'QF_LIA' if _counts(query) else 'QF_UF'})\n"
    yield from premises(query, explained=explained)
    yield "".join(goal(query, negated, explained=explained))
    yield f"(check-sat-assuming ({' '.join(query.assumed.values())}))\n"


OPTIONS = "(set-info :smt-lib-version 2.6)\n(set-option :produce-unsat-assumptions true)\n"


def comments(query: Query, negated: bool, place: Place | None = None) -> str:
    """What is asked and what the symbols mean."""
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
    return "\n".join(lines) + "\n"


def _counts(query: Query) -> bool:
    """Numbers occur."""
    if query.numbers:
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
    text = spell(body)
    premises = [spell(premise) for premise in alternatives(body)] if "(or " in text else [text]
    return "".join(
        [f"(assert {head})\n" if it == "true" else f"(assert (=> {it} {head}))\n" for it in premises if it != "false"]
    )


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


# ---- Obligations of definedness: the facts, and that the goal fails; unsat: it is proved -------
#
# Facts that share no symbol with the goal, directly or through others, may be left out. Floor division by a term is
# spelled out: SMT-LIB's rounds such that the remainder is not negative.

Symbols = Mapping[str, tuple[int, str]]
"""The symbols with the number of their arguments, which are integers, and their sort."""
SPELLED = {"r+": "+", "r-": "-", "r*": "*", "r/": "/", "r<": "<", "r<=": "<=", "r=": "=", "rite": "ite", "iff": "="}


def question(
    facts: Sequence[Term], goal: Term, symbols: Symbols, comments: Iterable[str] = (), *, every: bool = False
) -> Iterator[str]:
    """The text in pieces, without the final `(check-sat)`. every: with facts that are not connected with the goal."""
    yield "".join(f"; {ascii(line)[1:-1]}\n" for line in comments)
    yield "(set-info :smt-lib-version 2.6)\n(set-logic ALL)\n"
    yield from obligation(facts if every else relevant(facts, goal), goal, symbols)


def obligation(kept: Sequence[Term], goal: Term, symbols: Symbols) -> Iterator[str]:
    """The declarations, the facts and that the goal fails."""
    named = Named()
    told = [named.plain(fact) for fact in kept]
    denied = named.plain(goal)
    yield from declarations((*kept, goal), symbols)
    for name in (*named.parts.values(), *(name for pair in named.quotients.values() for name in pair)):
        yield f"(declare-const {name.op} Int)\n"
    for definition in (*named.definitions, *told):
        yield f"(assert {_spelled(definition)})\n"
    yield f"(assert (not {_spelled(denied)}))\n"


@dataclass(slots=True)
class Named:
    """Quotients by terms and alternatives of integers as symbols that axioms define: the solver's arithmetic of
    products knows how to deal with these. Below quantifiers they stay as they are.
    """

    known: dict[int, tuple[Term, Argument]] = field(default_factory=dict)
    parts: dict[Term, Term] = field(default_factory=dict)
    quotients: dict[tuple[Argument, Argument], tuple[Term, Term]] = field(default_factory=dict)
    definitions: list[Term] = field(default_factory=list)

    def plain(self, term: Term) -> Term:
        """The term with symbols in these places."""
        rewritten = self._plain(term)
        return rewritten if isinstance(rewritten, Term) else term

    def _plain(self, term: Argument) -> Argument:
        if not isinstance(term, Term) or not term.args or term.op in QUANTIFIERS:
            return term
        known = self.known.get(id(term))  # by place, since the hash of a tuple goes through all of it
        if known is None:
            known = self.known[id(term)] = term, self._rewritten(term.op, tuple(map(self._plain, term.args)))
        return known[1]

    def _rewritten(self, op: str, args: tuple[Argument, ...]) -> Argument:
        if op in ("div", "mod") and isinstance(args[1], Term):
            return self._quotient(args[0], args[1])[0 if op == "div" else 1]
        return self._part(Term(op, args)) if op == "ite" else Term(op, args)

    def _part(self, term: Term) -> Term:
        known = self.parts.get(term)
        if known is None:
            condition, left, right = term.args
            known = self.parts[term] = Term(f"part!!{len(self.parts)}")
            self.definitions += [
                Term("=>", (condition, Term("=", (known, left)))),
                Term("or", (condition, Term("=", (known, right)))),
            ]
        return known

    def _quotient(self, dividend: Argument, divisor: Argument) -> tuple[Term, Term]:
        known = self.quotients.get((dividend, divisor))
        if known is None:
            number = len(self.quotients)
            whole, rest = Term(f"quotient!!{number}"), Term(f"rest!!{number}")
            known = self.quotients[dividend, divisor] = whole, rest
            product = Term("+", (Term("*", (divisor, whole)), rest))
            self.definitions += [
                Term("or", (Term("=", (divisor, 0)), Term("=", (dividend, product)))),
                Term("=>", (Term("<=", (1, divisor)), Term("and", (at_least(rest, 0), below(rest, divisor))))),
                Term("=>", (Term("<=", (divisor, -1)), Term("and", (below(divisor, rest), at_least(0, rest))))),
            ]
        return known


def at_least(left: Argument, right: Argument) -> Term:
    """left >= right."""
    return Term("<=", (right, left))


def below(left: Argument, right: Argument) -> Term:
    """left < right."""
    return Term("<=", (Term("+", (left, 1)), right))


def declarations(terms: Sequence[Term], symbols: Symbols) -> Iterator[str]:
    """The declarations of the symbols that occur."""
    used: set[str] = set()
    for term in terms:
        used |= names(term)
    for name in sorted((used | LISTS) & symbols.keys()):
        arity, sort = symbols[name]
        yield declared(name, ["Int"] * arity, sort)
    for name in sorted(used - symbols.keys()):
        if name.startswith("unflat."):
            yield declared(name, ["Int"] * int(name.rpartition(".")[2]), "Int")


def relevant(facts: Sequence[Term], goal: Term) -> list[Term]:
    """The facts that are connected with the goal through symbols, in their order; all for a goal without symbols."""
    reached = set(names(goal))
    if not reached:
        return list(facts)
    mentioned = [names(fact) for fact in facts]
    kept = [False] * len(facts)
    grown = True
    while grown:
        grown = False
        for position, mentions in enumerate(mentioned):
            if not kept[position] and (mentions & reached or not mentions):
                kept[position] = grown = True
                reached |= mentions
    return [fact for fact, keep in zip(facts, kept, strict=True) if keep]


@lru_cache(maxsize=200_000)
def names(term: Argument) -> frozenset[str]:
    """The symbols that occur free or bound; operators are no symbols."""
    if isinstance(term, Term):
        if term.op in QUANTIFIERS:
            return names(term.args[-1])
        own = frozenset() if term.op in OPERATORS or term.op in LISTS else frozenset((_symbol(term),))
        return own.union(*map(names, term.args))
    return frozenset((term,)) if isinstance(term, str) else frozenset()


OPERATORS = frozenset(
    {"true", "false", "and", "or", "not", "=>", "=", "<=", "+", "*", "div", "mod", "ite", "flat", "rational"}
    | {"to_real", "to_int", *SPELLED, *QUANTIFIERS}
)


LISTS = frozenset({"at", "inside"})
"""The functions of lists of any length, which connect all that is said of any list."""


def _symbol(term: Term) -> str:
    """The name of the function: a component of an index by its position and how many arguments it has."""
    return f"unflat.{term.args[0]}.{len(term.args) - 1}" if term.op == "unflat" else term.op


def _unflat(args: tuple[Argument, ...], heads: Heads) -> str:
    return f"({_symbol(Term('unflat', args))} {' '.join([spell(arg, heads) for arg in args[1:]])})"


HEADS: Heads = {
    **FLOOR,
    **{op: renamed(spelled) for op, spelled in SPELLED.items()},
    "rational": lambda args, _: _fraction(args[0], args[1]),
    "flat": lambda args, heads: spell(_flat(args), heads),
    "unflat": _unflat,
}
"""The heads that the operators' interpretation adds: rationals, and functions of indices."""


@lru_cache(maxsize=200_000)
def _spelled(term: Argument) -> str:
    """A term as SMT-LIB; the same facts stand in many questions."""
    return spell(term, HEADS)


def _fraction(above: Argument, below: Argument) -> str:
    top = f"{above}.0" if isinstance(above, int) and above >= 0 else f"(- {-int(str(above))}.0)"
    return top if below == 1 else f"(/ {top} {below}.0)"


def _flat(args: tuple[Argument, ...]) -> Int:
    half = len(args) // 2
    place: Int = 0
    for index, size in zip(args[:half], args[half:], strict=True):
        place = add(multiply(place, _int(size)), _int(index))
    return place


def _int(part: Argument) -> Int:
    return Term(part) if isinstance(part, str) else part
