"""The model that a solver prints: a table for each symbol, whose rows are computed when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

from sonnx.semantics.errors import InternalError

from ..kernel.formulas import FALSE, TRUE, Argument, Term
from .evaluation import Tables, truth

Parsed = str | list["Parsed"]
"""A word, or what stands between brackets."""
Row = tuple[Argument, ...]


ARITIES: Mapping[str, int] = {
    **dict.fromkeys(("=", "<=", "<", ">=", ">", "-", "mod", "=>"), 2), "ite": 3, "not": 1,
}  # fmt: skip
"""The number of arguments of the operators that are evaluated; of more, or fewer, nothing is said."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The meaning of a symbol in a model: its parameters, and the term for its value."""

    parameters: tuple[str, ...]
    body: Argument


class Rows(Mapping[Row, Argument]):
    """The values of a symbol. keys: what each argument ranges over. known: what its definition speaks of."""

    def __init__(self, printed: Printed, known: Tables, keys: Sequence[Sequence[Argument]] = ()) -> None:
        self._printed, self._known, self._keys = printed, known, keys
        self._found: dict[Row, Argument] = {}

    def __getitem__(self, arguments: Row) -> Argument:
        if len(arguments) != len(self._printed.parameters):
            raise KeyError(arguments)
        if arguments not in self._found:
            env = dict(zip(self._printed.parameters, arguments, strict=True))
            self._found[arguments] = truth(self._printed.body, env, self._known, {})
        return self._found[arguments]

    def __iter__(self) -> Iterator[Row]:
        return product(*self._keys)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def parsed(text: str) -> dict[str, Printed]:
    """The definitions of a model by name; those of auxiliary functions too. Elements have none."""
    words = re.findall(r";[^\n]*|\|[^|]*\||[()]|[^\s()]+", text)
    whole = _read(iter([it for it in words if not it.startswith(";")]))
    printed: dict[str, Printed] = {}
    for line in whole[0] if whole and isinstance(whole[0], list) else ():
        match line:
            case ["define-fun", str() as name, list() as parameters, _, body]:
                names = tuple(str(it[0]).strip("|") for it in parameters if isinstance(it, list))
                if name.strip("|") in printed or len(set(names)) < len(parameters):
                    raise InternalError(f"the solver prints {name} twice, or with one parameter twice")
                printed[name.strip("|")] = Printed(names, _term(body, {}))
            case ["declare-fun" | "forall", *_]:
                continue
            case _:
                raise InternalError(f"the solver prints a model with {str(line)[:200]}")
    return printed


def _read(words: Iterator[str]) -> list[Parsed]:
    """The items up to the next closing bracket."""
    items: list[Parsed] = []
    for word in words:
        if word == ")":
            break
        items.append(_read(words) if word == "(" else word)
    return items


def _term(part: Parsed, bound: Mapping[str, Argument]) -> Argument:
    """A term as formulas have it; what `let` binds is put in its place."""
    match part:
        case str():
            word = part.strip("|")
            truths = {"true": TRUE, "false": FALSE}
            return bound[word] if word in bound else int(word) if word.isdigit() else truths.get(word, word)
        case ["let", list() as pairs, body]:
            made = {str(it[0]).strip("|"): _term(it[1], bound) for it in pairs if isinstance(it, list)}
            return _term(body, {**bound, **made})
        case ["-", str() as digits] if digits.isdigit():
            return -int(digits)
        case ["-", single]:
            return Term("-", (0, _term(single, bound)))
        case [">=" | ">" as op, left, right]:
            return Term({">=": "<=", ">": "<"}[op], (_term(right, bound), _term(left, bound)))
        case ["+" | "*" as op, first, *rest] if rest:
            return reduce(lambda left, it: Term(op, (left, _term(it, bound))), rest, _term(first, bound))
        case [str() as op, *rest] if op in ARITIES and len(rest) != ARITIES[op]:
            raise InternalError(f"the solver prints {op} of {len(rest)}")
        case [str() as op, *rest]:
            return Term(op.strip("|"), tuple(_term(it, bound) for it in rest))
        case _:
            raise InternalError(f"the solver prints a term {str(part)[:200]}")


def tables(
    printed: Mapping[str, Printed], named: Mapping[Argument, str], keys: Mapping[str, Sequence[Sequence[Argument]]],
    default: Mapping[str, Argument],
) -> dict[str, Mapping[Row, Argument]]:  # fmt: skip
    """The table of each symbol. named: the elements that the solver prints, by their names here. keys: what the
    arguments of each symbol range over; default: the value of one that the model leaves open.
    """
    known: dict[str, Mapping[Row, Argument]] = {}
    for name, it in printed.items():
        known[name] = Rows(Printed(it.parameters, _renamed(it.body, named)), known, keys.get(name, ()))
    rows = {name: known.get(name) or Rows(Printed(tuple(map(str, range(len(of)))), default[name]), known, of)
             for name, of in keys.items()}  # fmt: skip
    known |= rows
    known |= {name: {(): name} for name in named.values()}
    return rows


def _renamed(term: Argument, named: Mapping[Argument, str]) -> Argument:
    if isinstance(term, Term):
        return Term(term.op, tuple(_renamed(it, named) for it in term.args))
    return named.get(term, term)
