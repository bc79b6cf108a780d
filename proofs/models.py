"""Finite models of formulas about all graphs: sought with few elements of each sort, made as small as possible.

Every quantifier is written out over the elements, so that a question without quantifiers is left, which z3 decides in
milliseconds. Numbers are sought in a small range, over which their quantifiers are written out too. What z3 gives is
evaluated here once more, formula by formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sonnx.checker.solver import Session
from sonnx.semantics.errors import InternalError

from .formulas import Argument, Signature, Term
from .smtlib import BUILT_IN, sorts_in, symbols_in
from .theory import Hypothesis

SECONDS = 3.0
"""How long z3 may take for one size."""


def _sizes(few: int, some: int, tensors: int, memories: int, numbers: tuple[int, int]) -> Sizes:
    return {"Frames": 1, "Graph": few, "Tensor": tensors, "Memory": memories}, some, numbers


Sizes = tuple[Mapping[str, int], int, tuple[int, int]]
"""The sizes of some sorts, that of all others, and the range of numbers."""
SMALL = (_sizes(1, 1, 1, 1, (-1, 2)), _sizes(2, 2, 2, 2, (-1, 2)), _sizes(1, 2, 3, 3, (-1, 3)))
LARGE = (_sizes(1, 2, 3, 4, (-1, 3)), _sizes(2, 3, 4, 3, (-1, 4)))
"""The sizes that are tried, one after the other."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many elements a sort has at most, and the range of numbers."""

    sizes: Mapping[str, int]
    numbers: tuple[int, int]

    def elements(self, sort: str) -> tuple[Argument, ...]:
        """The elements of a sort, as they are written in a question."""
        if sort == "Int":
            return tuple(range(self.numbers[0], self.numbers[1] + 1))
        if sort == "Bool":
            return ("true", "false")
        return tuple(f"{sort}.{k}" for k in range(1, self.sizes[sort] + 1))


@dataclass(frozen=True, slots=True)
class Model:
    """A finite model: the elements of each sort, and the table of each symbol. A constant has one row, without key.

    numbers: the range over which quantifiers over numbers are read, None where there are none.
    """

    universes: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, Mapping[tuple[Argument, ...], Argument]]
    numbers: tuple[int, int] | None

    def holds(self, symbol: str, *arguments: Argument) -> bool:
        """Whether a relation holds; a symbol that does not occur holds nowhere."""
        return self.tables.get(symbol, {}).get(arguments) == "true"

    def constant(self, symbol: str) -> Argument | None:
        """The element that a constant denotes."""
        return self.tables.get(symbol, {}).get(())


@dataclass(frozen=True, slots=True)
class Wanted:
    """Formulas that shall hold together, with the signatures of their symbols; different texts are different."""

    hypotheses: tuple[Hypothesis, ...]
    symbols: Mapping[str, Signature]
    texts: tuple[str, ...]

    def used(self) -> dict[str, Signature]:
        """The symbols that occur, in the order of their names."""
        names = {name for it in self.hypotheses for name in symbols_in(it.formula) if name in self.symbols}
        return {name: self.symbols[name] for name in sorted(names)}

    def sorts(self) -> tuple[str, ...]:
        """The sorts that occur, those of numbers and truth values excepted."""
        of_symbols = {sort for it in self.used().values() for sort in (*it.arguments, it.result)}
        of_binders = {sort for it in self.hypotheses for sort in sorts_in(it.formula)}
        return tuple(sorted((of_symbols | of_binders) - BUILT_IN))


def search(wanted: Wanted, sizes: Iterable[Sizes] = (*SMALL, *LARGE), seconds: float = SECONDS) -> Model | None:
    """A small finite model, None where none of the sizes that are tried has one (or z3 finds none in time)."""
    session = Session()
    texts = max(1, sum(1 for name in wanted.used() if name in wanted.texts))
    for particular, general, numbers in sizes:
        found = {sort: texts if sort == "Text" else particular.get(sort, general) for sort in wanted.sorts()}
        bounds = Bounds(found, numbers)
        if session.check(question(wanted, bounds), seconds).status == "sat":
            return _read(wanted, _shrunk(wanted, bounds, session, seconds / 3), session, seconds)
    return None


def _shrunk(wanted: Wanted, bounds: Bounds, session: Session, seconds: float) -> Bounds:
    """The least sizes, sort by sort; the large ones first."""
    for sort in sorted(bounds.sizes, key=lambda sort: (-bounds.sizes[sort], sort)):
        while bounds.sizes[sort] > 1:
            fewer = replace(bounds, sizes={**bounds.sizes, sort: bounds.sizes[sort] - 1})
            if session.check(question(wanted, fewer), seconds).status != "sat":
                break
            bounds = fewer
    return bounds


# ---- The question -----------------------------------------------------------------------------


def question(wanted: Wanted, bounds: Bounds) -> str:
    """The SMT-LIB text without its `(check-sat)`: quantifiers written out, every function with values in the model."""
    used = wanted.used()
    lines = [f"(declare-sort {sort} 0)" for sort in bounds.sizes]
    lines += [f"(declare-const {name} {sort})" for sort in bounds.sizes for name in bounds.elements(sort)]
    for name, signature in used.items():
        lines.append(f"(declare-fun {name} ({' '.join(signature.arguments)}) {signature.result})")
    texts = [name for name in used if name in wanted.texts]
    if len(texts) > 1:
        lines.append(f"(assert (distinct {' '.join(texts)}))")
    for name, signature in used.items():
        lines += [f"(assert {_within(row, signature.result, bounds)})" for row in _rows(name, signature, bounds)
                  if signature.result != "Bool"]  # fmt: skip
    for sort in bounds.sizes:
        elements = bounds.elements(sort)
        constants = [name for name, it in used.items() if not it.arguments and it.result == sort]
        lines += [
            f"(assert {_one_of(name, elements[: position + 1])})"
            for position, name in enumerate(constants[: len(elements)])
        ]
    lines += [f"(assert {written_out(it.formula, {}, bounds)})" for it in wanted.hypotheses]
    return "\n".join((*lines, ""))


def _rows(name: str, signature: Signature, bounds: Bounds) -> Iterator[str]:
    """The symbol at all its arguments."""
    for arguments in product(*(bounds.elements(sort) for sort in signature.arguments)):
        yield _applied(name, [_spelled(argument) for argument in arguments])


def _within(term: str, sort: str, bounds: Bounds) -> str:
    if sort == "Int":
        return f"(and (<= {_spelled(bounds.numbers[0])} {term}) (<= {term} {_spelled(bounds.numbers[1])}))"
    return _one_of(term, bounds.elements(sort))


def _one_of(term: str, elements: Sequence[Argument]) -> str:
    return f"(or {' '.join(f'(= {term} {element})' for element in elements)})"


def written_out(formula: Argument, env: Mapping[str, str], bounds: Bounds) -> str:
    """A formula without quantifiers, as text."""
    if isinstance(formula, str):
        return env.get(formula) or formula
    if isinstance(formula, int):
        return _spelled(formula)
    if formula.op in ("forall", "exists"):
        *binders, body = formula.args
        names, domains = _binders(binders, bounds)
        parts = {
            written_out(body, {**env, **dict(zip(names, map(_spelled, values), strict=True))}, bounds): None
            for values in product(*domains)
        }
        join, unit, zero = ("and", "true", "false") if formula.op == "forall" else ("or", "false", "true")
        if zero in parts:
            return zero
        kept = [part for part in parts if part != unit]
        return unit if not kept else kept[0] if len(kept) == 1 else f"({join} {' '.join(kept)})"
    return _applied(formula.op, [written_out(part, env, bounds) for part in formula.args])


def _binders(binders: Sequence[Argument], bounds: Bounds) -> tuple[list[str], list[tuple[Argument, ...]]]:
    names, domains = [], []
    for binder in binders:
        match binder:
            case Term(op=name, args=(str() as sort,)):
                names.append(name)
                domains.append(bounds.elements(sort))
            case _:
                raise InternalError("a quantifier binds a variable of a sort")
    return names, domains


def _applied(name: str, arguments: Sequence[str]) -> str:
    return f"({name} {' '.join(arguments)})" if arguments else name


def _spelled(value: Argument) -> str:
    return str(value) if not isinstance(value, int) or value >= 0 else f"(- {-value})"


# ---- The answer -------------------------------------------------------------------------------


def _read(wanted: Wanted, bounds: Bounds, session: Session, seconds: float) -> Model | None:
    """The model of the last sizes, checked; None when z3 does not find it again."""
    used = wanted.used()
    wider = replace(bounds, numbers=(bounds.numbers[0] - 1, bounds.numbers[1] + 1))
    elements = [str(name) for sort in bounds.sizes for name in bounds.elements(sort)]
    rows = {name: list(_rows(name, signature, wider)) for name, signature in used.items()}
    asked = [*elements, *(row for found in rows.values() for row in found)]
    answer = session.check(question(wanted, bounds), seconds, values=asked)
    if answer.status != "sat":
        return None
    printed = dict(zip(asked, answer.values, strict=True))
    named: dict[str, str] = {}
    universes: dict[str, tuple[str, ...]] = {}
    for sort in bounds.sizes:
        for name in bounds.elements(sort):
            named.setdefault(printed[str(name)], str(name))
        universes[sort] = tuple(dict.fromkeys(named[printed[str(name)]] for name in bounds.elements(sort)))
    tables = {}
    for name, signature in used.items():
        keys = product(*(_keys(sort, universes, wider) for sort in signature.arguments))
        allowed = {_applied(name, [_spelled(part) for part in key]): key for key in keys}
        tables[name] = {allowed[row]: _element(printed[row], named) for row in rows[name] if row in allowed}
    quantified = any(sort == "Int" for it in wanted.hypotheses for sort in sorts_in(it.formula))
    model = Model(universes, tables, bounds.numbers if quantified else None)
    wrong = [it for it in wanted.hypotheses if truth(it.formula, {}, model, bounds.numbers) != "true"]
    if wrong:
        raise InternalError(f"z3 gives a model in which {wrong[0].kind} {wrong[0].label!r} does not hold")
    return model


def _keys(sort: str, universes: Mapping[str, tuple[str, ...]], bounds: Bounds) -> tuple[Argument, ...]:
    return universes.get(sort) or bounds.elements(sort)


def _element(printed: str, named: Mapping[str, str]) -> Argument:
    """An element by its name, a number as a number."""
    if printed.lstrip("-").isdigit():
        return int(printed)
    return named.get(printed, printed)


def truth(formula: Argument, env: Mapping[str, Argument], model: Model, numbers: tuple[int, int]) -> Argument:
    """The value of a formula or term in a model: `true`, `false`, a number or an element."""
    if isinstance(formula, int):
        return formula
    if isinstance(formula, str):
        return env[formula] if formula in env else _looked_up(formula, (), model)
    if formula.op in ("forall", "exists"):
        bounds = Bounds({}, numbers)
        *binders, body = formula.args
        pairs = [(b.op, str(b.args[0])) for b in binders if isinstance(b, Term)]
        domains = [model.universes.get(sort) or bounds.elements(sort) for _, sort in pairs]
        names = [name for name, _ in pairs]
        wanted = "false" if formula.op == "forall" else "true"
        found = any(
            truth(body, {**env, **dict(zip(names, values, strict=True))}, model, numbers) == wanted
            for values in product(*domains)
        )
        return _said(found == (formula.op == "exists"))
    return _computed(formula, env, model, numbers)


def _computed(formula: Term, env: Mapping[str, Argument], model: Model, numbers: tuple[int, int]) -> Argument:
    def of(position: int) -> Argument:
        return truth(formula.args[position], env, model, numbers)

    values = range(len(formula.args))
    match formula.op:
        case "true" | "false":
            return formula.op
        case "and":
            return _said(all(of(k) == "true" for k in values))
        case "or":
            return _said(any(of(k) == "true" for k in values))
        case "not":
            return _said(of(0) != "true")
        case "=>":
            return _said(of(0) != "true" or of(1) == "true")
        case "=":
            return _said(of(0) == of(1))
        case "ite":
            return of(1) if of(0) == "true" else of(2)
        case "<" | "<=" | "+" | "-" | "*" | "div" | "mod":
            return _number(formula.op, of(0), of(1))
        case _:
            return _looked_up(formula.op, tuple(of(k) for k in values), model)


def _number(op: str, left: Argument, right: Argument) -> Argument:
    if not isinstance(left, int) or not isinstance(right, int):
        raise InternalError(f"{op} of {left} and {right}")
    match op:
        case "<":
            return _said(left < right)
        case "<=":
            return _said(left <= right)
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "mod" if right > 0:
            return left % right
        case _:
            raise InternalError(f"{op} is not evaluated in finite models")


def _looked_up(symbol: str, arguments: tuple[Argument, ...], model: Model) -> Argument:
    found = model.tables.get(symbol, {}).get(arguments)
    if found is None:
        raise InternalError(f"{symbol} has no value at {arguments} in the model")
    return found


def _said(value: bool) -> str:
    return "true" if value else "false"


def describe(model: Model) -> str:
    """The sizes, as a short phrase."""
    sizes = ", ".join(f"{len(found)} {sort}" for sort, found in model.universes.items())
    return sizes if model.numbers is None else f"{sizes}, numbers {model.numbers[0]}..{model.numbers[1]}"


def tables_of(model: Model, symbols: Iterable[str]) -> Iterator[str]:
    """The rows of some symbols, one line each; a relation by the members that it has."""
    for symbol in symbols:
        for key, value in model.tables.get(symbol, {}).items():
            if value != "false":
                yield f"{symbol}({', '.join(map(str, key))}) = {value}" if key else f"{symbol} = {value}"
