"""The facts of a model as assertions of SMT-LIB: each fact that formulas mention is a function, its table a row a line.

A set has the members listed and no others. A row that the model leaves open is not there: nothing is said about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.structure import Element, Key, SetTable, Structure, Unknown, Value
from sonnx.semantics.formulas.terms import Term
from sonnx.spec.elaborate.formulas import Functions
from sonnx.spec.language.syntax import BOOL, INT, TEXT, FunctionDeclaration, Sort

from ...smt.smtlib import numeral, spell
from .formulas import Uses, application, both, either, plain, quantified, sort_name, text_name

Keys = tuple[Element, ...]


@dataclass(slots=True)
class Tables:
    """Tables under way. elements: by sort the elements that occur. lines: declarations and assertions."""

    functions: Functions
    structure: Structure
    uses: Uses
    elements: dict[Sort, set[int]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def spell(self, value: Element, sort: Sort) -> str:
        """An element in a script."""
        if sort == BOOL:
            return "true" if value else "false"
        if sort == TEXT:
            self.uses.texts[str(value)] = None
            return text_name(str(value))
        if sort == INT:
            return numeral(int(value))
        self.elements.setdefault(sort, set()).add(int(value))
        return element_name(sort, int(value))


def element_name(sort: Sort, number: int) -> str:
    """The constant of an element."""
    return f"{sort.name}.{number}"


def keys_of(key: Key) -> Keys:
    """The key of a table as a tuple."""
    return key if isinstance(key, tuple) else (key,)


def tabulate(tables: Tables) -> None:
    """The tables of all facts that are mentioned."""
    for name in sorted(tables.uses.facts):
        _tabulate(tables, tables.functions[name])
    for name in ("times", "floor.div", "floor.mod"):
        if name in tables.uses.parts:
            _product(tables, name)


def _tabulate(tables: Tables, declaration: FunctionDeclaration) -> None:
    name, result = declaration.name, declaration.result
    table, parts = tables.structure.table(name), tables.uses.parts[name]
    sorts = [parameter.sort for parameter in declaration.parameters]
    if isinstance(table, SetTable):
        if result.element is None:
            raise InternalError(f"{name} is no set")
        rows = {
            key: tuple(dict.fromkeys(row))
            for row_key, row in table.rows.items()
            if row and _wanted(tables, name, key := keys_of(row_key))
        }
        if "" in parts:
            relation(tables, name, sorts, result.element, rows)
        if ".len" in parts:
            function(tables, f"{name}.len", sorts, INT, {key: str(len(row)) for key, row in rows.items()})
            _elsewhere(tables, f"{name}.len", sorts, rows, "0")
        return
    given = {key: value for row_key, value in table.rows.items() if _wanted(tables, name, key := keys_of(row_key))}
    if result.name == "list":
        _list(tables, declaration, sorts, given)
        return
    known = {
        key: tables.spell(value, result) for key, value in given.items() if not isinstance(value, (Unknown, tuple))
    }
    function(tables, name, sorts, result, known)


def _wanted(tables: Tables, name: str, key: Keys) -> bool:
    """A row can be asked for: where the rule always writes a text, only that."""
    noted = tables.uses.facts[name]
    return all(texts is None or part in texts for texts, part in zip(noted, key, strict=True))


def _list(tables: Tables, declaration: FunctionDeclaration, sorts: Sequence[Sort], given: Mapping[Keys, Value]) -> None:
    name, element = declaration.name, declaration.result.element
    if element is None:
        raise InternalError(f"{name} is no list")
    parts = tables.uses.parts[name]
    lists = {key: value for key, value in given.items() if isinstance(value, tuple)}
    if ".len" in parts:
        function(tables, f"{name}.len", sorts, INT, {key: str(len(value)) for key, value in lists.items()})
    if ".at" in parts:
        items = {(*key, i): tables.spell(x, element) for key, value in lists.items() for i, x in enumerate(value)}
        function(tables, f"{name}.at", [*sorts, INT], element, items)
    if ".has" in parts:
        members = {key: tuple(dict.fromkeys(value)) for key, value in lists.items()}
        relation(tables, f"{name}.has", sorts, element, members, whole=len(lists) == len(given))


# ---- Tables -----------------------------------------------------------------------------------


def relation(
    tables: Tables,
    name: str,
    sorts: Sequence[Sort],
    element: Sort,
    rows: Mapping[Keys, tuple[Element, ...]],
    *,
    whole: bool = True,
) -> None:
    """A set-valued fact: the predicate of key and member. whole: a key without a row has no members."""
    lines = tables.lines
    lines.append(f"(declare-fun {name} ({' '.join(map(sort_name, [*sorts, element]))}) Bool)")
    for key, row in rows.items():
        spelled = [tables.spell(part, sort) for part, sort in zip(key, sorts, strict=True)]
        members = [tables.spell(member, element) for member in row]
        lines += [f"(assert {application(name, [*spelled, member])})" for member in members]
        only = either([f"(= y {member})" for member in members])
        lines.append(f"(assert {quantified('forall', [('y', element)], [application(name, [*spelled, 'y'])], only)})")
    if whole:
        keys = [(f"x{i}", sort) for i, sort in enumerate(sorts)]
        listed = _listed(tables, keys, rows)
        inside = application(name, [*(n for n, _ in keys), "y"])
        if listed != "true":
            lines.append(f"(assert {quantified('forall', [*keys, ('y', element)], [inside], listed)})")


def function(tables: Tables, name: str, sorts: Sequence[Sort], sort: Sort, rows: Mapping[Keys, str]) -> None:
    """A single-valued fact."""
    tables.lines.append(f"(declare-fun {name} ({' '.join(map(sort_name, sorts))}) {sort_name(sort)})")
    for key, value in rows.items():
        applied = application(name, [tables.spell(part, s) for part, s in zip(key, sorts, strict=True)])
        said = applied if value == "true" else f"(not {applied})" if value == "false" else f"(= {applied} {value})"
        tables.lines.append(f"(assert {said})")


def _elsewhere(tables: Tables, name: str, sorts: Sequence[Sort], rows: Iterable[Keys], value: str) -> None:
    """The value of a function where there is no row."""
    keys = [(f"x{i}", sort) for i, sort in enumerate(sorts)]
    same = f"(= {application(name, [n for n, _ in keys])} {value})"
    listed = _listed(tables, keys, rows)
    if listed != "true":
        tables.lines.append(f"(assert {quantified('forall', keys, [], either([listed, same]))})")


def _listed(tables: Tables, keys: Sequence[tuple[str, Sort]], rows: Iterable[Keys]) -> str:
    """That a key has a row."""
    by_rest: dict[Keys, list[Element]] = {}
    for key in rows:
        if not key:
            return "true"
        by_rest.setdefault(key[1:], []).append(key[0])
    alternatives = []
    for rest, firsts in by_rest.items():
        name, sort = keys[0]
        own = [f"(= {n} {tables.spell(part, s)})" for (n, s), part in zip(keys[1:], rest, strict=True)]
        alternatives.append(both([*own, either([f"(= {name} {tables.spell(first, sort)})" for first in firsts])]))
    return either(alternatives)


# ---- Products ---------------------------------------------------------------------------------


def _product(tables: Tables, name: str) -> None:
    """A product or quotient, written out for the values that the second operand can have, so that it is linear."""
    factors = set(tables.uses.numerals)
    for fact in tables.uses.factors:
        for row in tables.structure.table(fact).rows.values():
            items = row if isinstance(row, tuple) else (row,)
            factors |= {item for item in items if type(item) is int} | {len(items)}
    tables.lines.append(f"(declare-fun {name}.other (Int Int) Int)")
    product = f"({name}.other x y)"
    for value in sorted(factors - ({0} if name != "times" else set())):
        known = ("*", (value, "x")) if name == "times" else (name.removeprefix("floor."), ("x", value))
        product = f"(ite (= y {numeral(value)}) {spell(Term(*known))} {product})"
    tables.lines.append(f"(define-fun {name} ((x Int) (y Int)) Int {product})")


def declared(tables: Tables) -> Iterator[str]:
    """Sorts and their elements, which are integers: solvers know that different ones differ."""
    sorts = {s for name in (*tables.uses.facts, *tables.uses.inductive, *tables.uses.definitions)
             for s in _sorts(tables.functions[name])} | set(tables.elements)  # fmt: skip
    if tables.uses.texts:
        sorts.add(TEXT)
    for sort in sorted(sorts - {INT, BOOL}, key=lambda s: s.name):
        if sort == TEXT:
            names = [text_name(text) for text in sorted(tables.uses.texts)]
        else:
            numbered = sorted(tables.elements.get(sort, ()))
            names = [element_name(sort, number) for number in numbered]
        yield f"(define-sort {sort.name} () Int)"
        if sort == TEXT:
            yield from (f"(define-fun {name} () Text {number})" for number, name in enumerate(names))
        else:
            for number in numbered:
                comment = plain(tables.structure.place(sort, number))
                yield f"(define-fun {element_name(sort, number)} () {sort.name} {number}) ; {comment}"


def _sorts(declaration: FunctionDeclaration) -> list[Sort]:
    return [*(p.sort for p in declaration.parameters), declaration.result.element or declaration.result]
