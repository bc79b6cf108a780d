"""The smt interpretation, symbols: what a formula mentions of the facts, with the value that the facts give it.

Sets are observed by rows: `ins.3` says that ins(3) has exactly the members listed. All rows without members share
`use@ins`, which says that the table of ins is complete. Values have symbols of their own: `rank.5` is the rank of
tensor 5, `constant.5@1` the second element of the list constant(5), `constant.5@len` its length. Texts are numbered.
`free@k` stands for what no fact determines, `else@` for what cannot matter as long as the facts are assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sonnx.spec.language.syntax import BOOL, Sort

from ...errors import InternalError
from ...facts.structure import Element, Key, Unknown, Value

IMMATERIAL = "else@"
"""A Bool that is irrelevant wherever it occurs, once the facts are assumed; `else@Int` is its companion of sort Int."""


Known = bool | int | tuple[Element, ...]
"""What is known of a symbol: truth, number, or the members of the row that it stands for."""


@dataclass(slots=True)
class Symbols:
    """The symbols of one query while it grows.

    facts: for each fact the symbols with what is known: the truth of a Bool, the number of another value, the members
    of a row. assumed: the facts of which Bools or rows are mentioned. free: the symbols of which nothing is known, with
    their sorts. texts: the number of each text. resolved: the facts that the grounding itself looked up, for keys and
    lists. tables: the facts that clauses were read off, with the symbols that assume them. derived: the inductive atoms
    by predicate; agenda: those of them that still need their clause.
    """

    facts: dict[str, dict[str, Known]] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)
    free: dict[str, str] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    resolved: dict[str, None] = field(default_factory=dict)
    immaterial: dict[str, str] = field(default_factory=dict)
    derived: dict[str, dict[Key, str]] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    agenda: list[tuple[str, Key, str]] = field(default_factory=list)

    def group(self, fact: str) -> dict[str, Known]:
        """The known symbols of one fact."""
        return self.facts.setdefault(fact, {})

    def assume(self, fact: str) -> str:
        """The symbol that stands for the table of a fact as a whole."""
        found = self.assumed.get(fact)
        if found is None:
            found = self.assumed[fact] = assumption(fact)
        return found

    def known(self, fact: str, name: str, value: Value | None, sort: Sort) -> str:
        """The symbol of a single value of a fact; a free one where the value is undefined or unknown."""
        if value is None or isinstance(value, Unknown):
            self.free[name] = smt_sort(sort)
        elif isinstance(value, tuple):
            raise InternalError(f"{name} is a list")
        else:
            self.group(fact)[name] = value if isinstance(value, bool) else self.number(value)
            if isinstance(value, bool):
                self.assume(fact)
        return name

    def unknown(self, sort: Sort | None) -> str:
        """A fresh free symbol."""
        name = f"free@{len(self.free)}"
        self.free[name] = smt_sort(sort)
        return name

    def irrelevant(self, sort: Sort | None) -> str:
        """A symbol for the other branch of a choice which the facts decide."""
        name = IMMATERIAL if sort == BOOL else IMMATERIAL + "Int"
        self.immaterial[name] = smt_sort(sort)
        return name

    def number(self, value: Element) -> int:
        """The numeral of an element: a text gets the next free number."""
        if isinstance(value, str):
            return self.texts.setdefault(value, len(self.texts))
        return value


def assumption(fact: str) -> str:
    """The name of the symbol that assumes a fact."""
    return f"use@{fact}"


def smt_sort(sort: Sort | None) -> str:
    """The sort of symbols for values of a sort: elements and texts are numbered."""
    return "Bool" if sort == BOOL else "Int"


def symbol(fact: str, *parts: Element) -> str:
    """The name of a symbol: the fact and what it is about. It is plain ASCII, and no name that SMT-LIB defines."""
    if not parts:
        return fact + "."
    return fact + "".join(f".{part}" if type(part) is int else f".{_spelled(part)}" for part in parts)


def atom(fact: str, key: Key, *more: Element) -> str:
    """The name of the symbol for a fact at a key."""
    if type(key) is int and not more:
        return f"{fact}.{key}"
    return symbol(fact, *key, *more) if isinstance(key, tuple) else symbol(fact, key, *more)


def _spelled(part: Element) -> str:
    """A text or Bool inside of a name; every character but letters, digits and _ as $hex$, the empty text as $$."""
    text = str(part)
    if text.isidentifier() and text.isascii():
        return text
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"${ord(c):x}$" for c in text) or "$$"
