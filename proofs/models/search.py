"""Finite models of formulas about all graphs: sought with few elements of each sort, made as small as possible.

Every quantifier is written out over the elements, so that a question without quantifiers is left, which z3 decides in
milliseconds. Numbers are sought in a small range, over which their quantifiers are written out too. What z3 gives is
evaluated here once more, formula by formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product

from sonnx.checker.smt.smtlib import PLAIN, asserted, declared, spell
from sonnx.checker.smt.solver import Checked, Session
from sonnx.semantics.errors import InternalError

from ..kernel.formulas import FALSE, Argument, Signature, Term, forall
from ..kernel.smtlib import BUILT_IN, numerals_in, sorts_in, symbols_in
from ..kernel.theory import Hypothesis
from . import interpretation
from .evaluation import NUMERIC, computed, truth

EFFORT = 3_000_000
"""The steps that z3 may take for one size, a second or two: so a slow machine comes to the same result."""
SECONDS = 300.0
"""The seconds that it may take at all."""
MOST = 250_000
"""A size is not tried when this many parts of formulas would be written out, before what numbers decide is left out."""

Sizes = tuple[Mapping[str, int], int, tuple[int, int]]
"""The sizes of some sorts, that of all others, and the range of numbers."""


def _sizes(frames: int, graphs: int, tensors: int, memories: int, others: int, highest: int) -> Sizes:
    return {"Frames": frames, "Graph": graphs, "Tensor": tensors, "Memory": memories}, others, (-1, highest)


SMALL = (_sizes(1, 1, 1, 1, 1, 2), _sizes(1, 2, 2, 2, 2, 2), _sizes(1, 1, 3, 3, 2, 3))
LARGE = (_sizes(2, 2, 2, 2, 1, 2), _sizes(1, 1, 3, 4, 2, 3), _sizes(2, 2, 2, 4, 2, 2))
"""The sizes that are tried, one after the other."""
FREE = (2, 3, 6)
"""So many elements of each sort are tried for what is free."""
PATIENT = 12_000_000
"""The steps that z3 may take for one size of what is free."""
PREPARED = 30_000_000
"""The same where it prepares the question first: those steps are shorter."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most elements of a sort, and the range of numbers."""

    sizes: Mapping[str, int]
    numbers: tuple[int, int]

    def wider(self) -> Bounds:
        """With the numbers that sums and differences of two numbers of the range reach."""
        most = 2 * max(map(abs, self.numbers)) + 1
        return replace(self, numbers=(-most, most))

    def elements(self, sort: str) -> tuple[Argument, ...]:
        """The elements of a sort, as they are written in a question."""
        if sort == "Int":
            return tuple(range(self.numbers[0], self.numbers[1] + 1))
        if sort == "Bool":
            return ("true", "false")
        return tuple(f"{sort}.{k}" for k in range(1, self.sizes[sort] + 1))

    def inside(self, arguments: Iterable[Argument]) -> bool:
        """True where no number of them lies outside the range."""
        low, high = self.numbers
        return all(low <= it <= high for it in arguments if isinstance(it, int))


@dataclass(frozen=True, slots=True)
class Model:
    """A finite model: the elements of each sort, and the table of each symbol. A constant has one row, without key.

    numbers: the range over which quantifiers over numbers are read, None where there are none.
    """

    universes: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, Mapping[tuple[Argument, ...], Argument]]
    numbers: tuple[int, int] | None

    def holds(self, symbol: str, *arguments: Argument) -> bool:
        """True where a relation holds; a symbol that does not occur holds nowhere."""
        return self.tables.get(symbol, {}).get(arguments) == "true"

    def constant(self, symbol: str) -> Argument | None:
        """The element that a constant denotes."""
        return self.tables.get(symbol, {}).get(())


@dataclass(frozen=True)
class Wanted:
    """Formulas that shall hold together, with the signatures of their symbols; different texts are different.

    inductive: relations that hold for no number outside the range. defined: symbols of definitions, which a model does
    not show. free: whatever satisfies the formulas is a model, as of an obligation, whose inductive predicates need not
    be the least ones: then z3 is asked with quantifiers, which suits many variables and few conditions. wishes: what
    makes a model interesting; a question says them of constants that may be assumed.
    """

    hypotheses: tuple[Hypothesis, ...]
    symbols: Mapping[str, Signature]
    texts: tuple[str, ...]
    inductive: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()
    free: bool = False
    wishes: tuple[Hypothesis, ...] = ()

    @cached_property
    def used(self) -> Mapping[str, Signature]:
        """The symbols that occur, in the order of their names."""
        names = {name for it in (*self.hypotheses, *self.wishes) for name in symbols_in(it.formula)}
        return {name: self.symbols[name] for name in sorted(names) if name in self.symbols}

    @cached_property
    def sorts(self) -> tuple[str, ...]:
        """The sorts that occur, those of numbers and truth values excepted."""
        of_symbols = {sort for it in self.used.values() for sort in (*it.arguments, it.result)}
        of_binders = {sort for it in (*self.hypotheses, *self.wishes) for sort in sorts_in(it.formula)}
        return tuple(sorted((of_symbols | of_binders) - BUILT_IN))

    def with_wish(self, wish: Hypothesis | None) -> Wanted:
        """With one of the wishes as a hypothesis, or with none."""
        return replace(self, hypotheses=self.hypotheses if wish is None else (*self.hypotheses, wish), wishes=())


def search(wanted: Wanted, sizes: Iterable[Sizes] = (*SMALL, *LARGE), most: int = MOST) -> Model | None:
    """A finite model, in which every hypothesis was evaluated, None where none of the sizes that are tried has one (or
    z3 finds none within its limits). most: in place of `MOST`.
    """
    session = Session()
    models = (_read(wanted, it, session, PATIENT if wanted.free else EFFORT) for it in _tried(wanted, sizes, most))
    return next((model for model in models if model is not None), None)


def least(wanted: Wanted, sizes: Iterable[Sizes] = (*SMALL, *LARGE)) -> Model | None:
    """The same, made as small as possible, which takes longer."""
    session = Session()
    for bounds in _tried(wanted, sizes, MOST):
        if _asked(wanted, bounds, session, PREPARED, prepared=True).status == "sat":
            return of_bounds(wanted, bounds)
    return None


def wishing(wanted: Wanted, sizes: Iterable[Sizes]) -> tuple[Model, Hypothesis | None] | None:
    """A model as `search` gives it, and the first wish with which there is one of these sizes; None without a wish.

    Each size is written once: a size without a model has none with a wish.
    """
    tried = [(bounds, Session()) for bounds in _tried(wanted, sizes, MOST)]
    closed: set[int] = set()
    for at, wish in enumerate((*wanted.wishes, None)):
        under = "" if wish is None else _wish(at)
        for position, (bounds, session) in enumerate(tried):
            if position in closed:
                continue
            if at == 0:
                answer = _asked(wanted, bounds, session, EFFORT, model=True, under=under)
            else:
                answer = session.again(model=True, under=under)
            if answer.status == "sat":
                return _evaluated(wanted.with_wish(wish), bounds, answer.model), wish
            if at == 0 and session.again().status == "unsat":
                closed.add(position)
    return None


def _wish(at: int) -> str:
    """The constant under which a wish holds."""
    return f"wish!{at}"


def _asked(
    wanted: Wanted, bounds: Bounds, session: Session, effort: int, *, model: bool = False, under: str = "",
    prepared: bool = False,
) -> Checked:  # fmt: skip
    """z3's answer on these sizes. prepared: it prepares the question first, which takes longer and gives models in
    which less holds; a `(push)` keeps it from that.
    """
    text = quantified(wanted, bounds) if wanted.free else question(wanted, bounds)
    text = text if wanted.free or prepared else f"(push)\n{text}"
    return session.check(text, SECONDS, effort=effort, model=model, finite=wanted.free, under=under)


@dataclass(frozen=True, slots=True)
class Tried:
    """The state of knowledge about models within bounds. status: sat, unsat or unknown. size: of the bounds, in
    words."""

    size: str
    status: str
    bounds: Bounds


UP_TO: tuple[tuple[int, tuple[str, ...]], ...] = ((1, ()), (2, ("Frames",)), (2, ()), (3, ("Frames",)), (3, ()))
"""Sizes of models, one after the other: so many elements of each sort, but one of some."""


def up_to(wanted: Wanted, effort: int, most: int) -> Iterator[Tried]:
    """The answers on models of the sizes of `UP_TO`, with numbers from -1 to one that is as large.

    Ends behind the first size that has one, that is too large (`most`), or of which z3 finds out nothing within the
    limit.
    """
    session, texts, sorts = Session(), _texts(wanted), wanted.sorts
    for size, single in UP_TO:
        few = [sort for sort in single if sort in sorts]
        if single and not few:
            continue
        sizes = {sort: texts if sort == "Text" else 1 if sort in few else size for sort in sorts}
        bounds = Bounds(sizes, (-1, size))
        if sum(parts(it.formula, bounds) for it in wanted.hypotheses) > most:
            return
        status = _asked(wanted, bounds, session, effort).status
        yield Tried(f"{size}, of {', '.join(few)} 1" if few else str(size), status, bounds)
        if status != "unsat":
            return


def _texts(wanted: Wanted) -> int:
    """The number of texts: those that occur, and another one."""
    return 1 + sum(1 for name in wanted.used if name in wanted.texts)


MORE = (
    (),
    ("Value",),
    ("Tensor",),
    ("Tensor", "Value"),
    ("Frames",),
    ("Frames", "Tensor"),
    ("Node", "Port", "Tensor", "Value"),
    ("Memory", "Node", "Port", "Tensor", "Value"),
)
"""The sorts of which a model of a situation may have one element more than are spoken of, tried one after the other."""


FEW = 1
SITUATED = (
    _sizes(2, 2, 1, 2, 2, 2),
    _sizes(1, 2, 2, 3, 2, 2),
    _sizes(1, 2, 2, 4, 2, 2),
)
"""Sizes at which a body and the graph around it fit: frames for two runs, or memories for what nodes of both give."""


def around(wanted: Wanted) -> Iterator[Bounds]:
    """Bounds with as many elements as are spoken of, and with one more of some sorts. Before them those of `SITUATED`,
    where many memories are spoken of: they need not differ.
    """
    constants = [it.result for it in wanted.used.values() if not it.arguments]
    texts, sorts = _texts(wanted), wanted.sorts
    for particular, general, numbers in SITUATED if constants.count("Memory") > FEW else ():
        yield Bounds({it: texts if it == "Text" else particular.get(it, general) for it in sorts}, numbers)
    for more, highest in product(MORE, (1, 2)):
        counts = {it: max(1, constants.count(it)) + (it in more) for it in sorts}
        yield Bounds({**counts, **({"Text": texts} if "Text" in sorts else {})}, (-1, highest))


def within(wanted: Wanted, bounds: Bounds, effort: int, most: int) -> Model | None:
    """A model within bounds, None where there is none, none is found in so many steps, or the bounds are too large."""
    if sum(parts(it.formula, bounds) for it in wanted.hypotheses) > most:
        return None
    return _read(wanted, bounds, Session(), effort)


def of_bounds(wanted: Wanted, bounds: Bounds) -> Model | None:
    """A model within bounds that have one, made small."""
    session = Session()
    small = _shrunk(wanted, bounds, session)
    answer = _asked(wanted, small, session, PREPARED, model=True, prepared=True)
    return _evaluated(wanted, small, answer.model) if answer.status == "sat" else None


def _tried(wanted: Wanted, sizes: Iterable[Sizes], most: int) -> Iterator[Bounds]:
    """The bounds that are tried, one after the other; what is free is tried at sizes of its own."""
    texts, sorts = _texts(wanted), wanted.sorts
    if wanted.free:
        highest = max((2, *(it for counts in wanted.hypotheses for it in numerals_in(counts.formula))))
        for size in FREE:
            yield Bounds({sort: texts if sort == "Text" else size for sort in sorts}, (-1, highest))
        return
    constants = [it.result for it in wanted.used.values() if not it.arguments]
    for particular, general, numbers in sizes:
        counts = {sort: texts if sort == "Text" else particular.get(sort, general) for sort in sorts}
        if particular["Memory"] > 3:
            counts |= {sort: max(size, constants.count(sort)) for sort, size in counts.items()}
        bounds = Bounds(counts, numbers)
        if sum(parts(it.formula, bounds) for it in wanted.hypotheses) <= most:
            yield bounds


def parts(formula: Argument, bounds: Bounds) -> int:
    """The number of parts of a formula when its quantifiers are written out."""
    if not isinstance(formula, Term):
        return 1
    if formula.op in ("forall", "exists"):
        *binders, body = formula.args
        return parts(body, bounds) * math.prod(len(domain) for domain in _binders(binders, bounds)[1])
    return 1 + sum(parts(part, bounds) for part in formula.args)


def _shrunk(wanted: Wanted, bounds: Bounds, session: Session) -> Bounds:
    """The least sizes, sort by sort; the large ones first."""
    for sort in sorted(bounds.sizes, key=lambda sort: (-bounds.sizes[sort], sort)):
        while bounds.sizes[sort] > 1:
            fewer = replace(bounds, sizes={**bounds.sizes, sort: bounds.sizes[sort] - 1})
            if _asked(wanted, fewer, session, PREPARED, prepared=True).status != "sat":
                break
            bounds = fewer
    return bounds


# ---- The question -----------------------------------------------------------------------------


def question(wanted: Wanted, bounds: Bounds) -> str:
    """The SMT-LIB text without its `(check-sat)`: quantifiers written out, every function with values in the model."""
    lines = list(_declared(wanted, bounds))
    for name, signature in wanted.used.items():
        lines += [f"(assert {it})" for it in _values(name, signature, bounds, name in wanted.inductive)]
    lines += [f"(assert {spell(written_out(it.formula, {}, bounds))})" for it in wanted.hypotheses]
    for at, wish in enumerate(wanted.wishes):
        lines.append(f"(declare-const {_wish(at)} Bool)")
        lines.append(f"(assert (=> {_wish(at)} {spell(written_out(wish.formula, {}, bounds))}))")
    return "\n".join((*lines, ""))


def _declared(wanted: Wanted, bounds: Bounds) -> Iterator[str]:
    """The sorts, their elements, which may be equal, and the symbols; the first constants are the first elements."""
    used = wanted.used
    yield from (f"(declare-sort {sort} 0)" for sort in bounds.sizes)
    yield from (f"(declare-const {name} {sort})" for sort in bounds.sizes for name in bounds.elements(sort))
    for name, signature in used.items():
        yield declared(name, signature.arguments, signature.result).rstrip()
    texts = [name for name in used if name in wanted.texts]
    if len(texts) > 1:
        yield f"(assert (distinct {' '.join(texts)}))"
    for sort in bounds.sizes:
        elements = bounds.elements(sort)
        constants = [name for name, it in used.items() if not it.arguments and it.result == sort]
        for position, name in enumerate(constants[: len(elements)]):
            yield f"(assert {_one_of(name, elements[: position + 1])})"


def quantified(wanted: Wanted, bounds: Bounds) -> str:
    """The same question, in which quantifiers over elements are left to z3: every sort has the elements of the
    bounds and no others. Those over numbers are written out.
    """
    lines = list(_declared(wanted, bounds))
    lines += [f"(assert (forall ((x {it})) {_one_of('x', bounds.elements(it))}))" for it in bounds.sizes]
    low, high = bounds.numbers
    for name, signature in wanted.used.items():
        if signature.result == "Int":
            sorts = signature.arguments
            domains = [bounds.elements(it) if it == "Int" else (f"x{at}",) for at, it in enumerate(sorts)]
            binders = [(f"x{at}", it) for at, it in enumerate(sorts) if it != "Int"]
            ranged = (Term("and", (Term("<=", (low, row)), Term("<=", (row, high))))
                      for row in (Term(name, values) for values in product(*domains)))  # fmt: skip
            lines += [asserted(forall(binders, it), PLAIN).rstrip() for it in ranged]
    lines += [asserted(counted(it.formula, {}, bounds), PLAIN).rstrip() for it in wanted.hypotheses]
    return "\n".join((*lines, ""))


def counted(formula: Argument, env: Mapping[str, Argument], bounds: Bounds) -> Argument:
    """A formula with its quantifiers over numbers written out over the range; a remainder by 0 is 0."""
    if isinstance(formula, int):
        return formula
    if isinstance(formula, str):
        return env.get(formula, formula)
    if formula.op in ("forall", "exists"):
        *binders, body = formula.args
        numbers = [it.op for it in binders if isinstance(it, Term) and it.args[0] == "Int"]
        others = tuple(it for it in binders if not (isinstance(it, Term) and it.args[0] == "Int"))
        values = product(bounds.elements("Int"), repeat=len(numbers))
        parts = [counted(body, {**env, **dict(zip(numbers, it, strict=True))}, bounds) for it in values]
        inner = parts[0] if len(parts) == 1 else Term("and" if formula.op == "forall" else "or", tuple(parts))
        return Term(formula.op, (*others, inner)) if others else inner
    parts = [counted(part, env, bounds) for part in formula.args]
    if formula.op == "mod":
        return Term("ite", (Term("=", (parts[1], 0)), 0, Term("mod", tuple(parts))))
    return Term(formula.op, tuple(parts))


def _rows(name: str, signature: Signature, bounds: Bounds) -> Iterator[tuple[tuple[Argument, ...], str]]:
    """The symbol at all its arguments."""
    for arguments in product(*(bounds.elements(sort) for sort in signature.arguments)):
        yield arguments, _applied(name, arguments)


def _values(name: str, signature: Signature, bounds: Bounds, inductive: bool) -> Iterator[str]:
    """That a function has its values in the model; numbers, for arguments of the range only."""
    low, high = bounds.numbers
    if signature.result == "Bool" and not (inductive and "Int" in signature.arguments):
        return
    for arguments, row in _rows(name, signature, bounds.wider()):
        inside = bounds.inside(arguments)
        if signature.result == "Bool" and not inside:
            yield f"(not {row})"
        elif signature.result == "Int" and inside:
            yield f"(and (<= {spell(low)} {row}) (<= {row} {spell(high)}))"
        elif signature.result not in BUILT_IN:
            yield _one_of(row, bounds.elements(signature.result))


def _one_of(term: str, elements: Sequence[Argument]) -> str:
    return f"(or {' '.join(f'(= {term} {element})' for element in elements)})"


def written_out(formula: Argument, env: Mapping[str, Argument], bounds: Bounds) -> Argument:
    """A formula or term without quantifiers, as text or as a number; what is decided by numbers alone is left out."""
    if isinstance(formula, int):
        return formula
    if isinstance(formula, str):
        return env.get(formula, formula)
    match formula.op:
        case "forall" | "exists":
            return _instances(formula, env, bounds)
        case "and" | "or":
            return _joined(formula.op, (written_out(part, env, bounds) for part in formula.args))
        case "not":
            return _denied(written_out(formula.args[0], env, bounds))
        case "=>":
            *conditions, conclusion = formula.args
            parts = (_denied(written_out(part, env, bounds)) for part in conditions)
            return _joined("or", chain(parts, (written_out(it, env, bounds) for it in (conclusion,))))
        case op:
            return _simple(op, [written_out(part, env, bounds) for part in formula.args])


def _instances(formula: Term, env: Mapping[str, Argument], bounds: Bounds) -> Argument:
    """A quantifier written out. The body is read once for all elements: they are put where the text has holes."""
    *binders, body = formula.args
    named = [(it.op, str(it.args[0])) for it in binders if isinstance(it, Term)]
    decided = [(name, bounds.elements(sort)) for name, sort in named if sort in BUILT_IN]
    holes = {name: f"<{name}>" for name, sort in named if sort not in BUILT_IN}
    op = "and" if formula.op == "forall" else "or"
    made = (
        written_out(body, {**env, **holes, **dict(zip((name for name, _ in decided), values, strict=True))}, bounds)
        for values in product(*(domain for _, domain in decided))
    )
    text, count = str(_joined(op, made)), 1
    for name, sort in named:
        if name in holes and holes[name] in text:
            elements = bounds.elements(sort)
            text, count = " ".join(text.replace(holes[name], str(it)) for it in elements), count * len(elements)
    return text if count == 1 else f"({op} {text})"


def _joined(op: str, parts: Iterable[Argument]) -> Argument:
    """A conjunction or disjunction; the parts behind one that decides it are not asked for."""
    unit, zero = ("true", "false") if op == "and" else ("false", "true")
    kept: dict[Argument, None] = {}
    for part in parts:
        if part == zero:
            return zero
        if part != unit:
            kept[part] = None
    return unit if not kept else next(iter(kept)) if len(kept) == 1 else _applied(op, list(kept))


def _denied(part: Argument) -> Argument:
    return {"true": "false", "false": "true"}.get(str(part)) or _applied("not", [part])


def _simple(op: str, parts: list[Argument]) -> Argument:
    """An operator or a symbol applied; numbers are computed, a remainder by 0 is 0."""
    if op == "=" and parts[0] == parts[1]:
        return "true"
    if op == "ite" and parts[0] in ("true", "false"):
        return parts[1] if parts[0] == "true" else parts[2]
    if parts and all(isinstance(part, int) for part in parts):
        if op == "=":
            return "false"
        if op in NUMERIC:
            return computed(op, parts[0], parts[1])
    if op == "mod":
        return f"(ite (= {spell(parts[1])} 0) 0 {_applied(op, parts)})"
    return _applied(op, parts)


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


def _applied(name: str, arguments: Sequence[Argument]) -> str:
    return f"({name} {' '.join(map(spell, arguments))})" if arguments else name


# ---- The answer -------------------------------------------------------------------------------


def _read(wanted: Wanted, bounds: Bounds, session: Session, effort: int) -> Model | None:
    """A model of these sizes, in which every hypothesis was evaluated; None when z3 finds none within its limit."""
    answer = _asked(wanted, bounds, session, effort, model=True)
    return _evaluated(wanted, bounds, answer.model) if answer.status == "sat" else None


def _evaluated(wanted: Wanted, bounds: Bounds, told: str) -> Model:
    """The model that z3 tells. Raises InternalError where a hypothesis does not hold in it."""
    used, wider = wanted.used, bounds.wider()
    printed = interpretation.parsed(told)
    elements = [str(name) for sort in bounds.sizes for name in bounds.elements(sort)]
    values = {name: printed[name].body if name in printed else name for name in elements}
    named: dict[Argument, str] = {}
    universes: dict[str, tuple[str, ...]] = {}
    for sort in bounds.sizes:
        for name in bounds.elements(sort):
            named.setdefault(values[str(name)], str(name))
        universes[sort] = tuple(dict.fromkeys(named[values[str(name)]] for name in bounds.elements(sort)))
    keys = {name: [_keys(sort, universes, wider) for sort in it.arguments] for name, it in used.items()}
    none: dict[str, Argument] = {"Bool": FALSE, "Int": 0}
    first = {name: none.get(it.result, f"{it.result}.1") for name, it in used.items()}
    tables = interpretation.tables(printed, named, keys, first)
    quantified = any(sort == "Int" for it in wanted.hypotheses for sort in sorts_in(it.formula))
    model = Model(universes, tables, bounds.numbers if quantified else None)
    domains = {**universes, "Int": bounds.elements("Int"), "Bool": bounds.elements("Bool")}
    wrong = [it for it in wanted.hypotheses if truth(it.formula, {}, tables, domains) != "true"]
    if wrong:
        raise InternalError(f"z3 gives a model in which {wrong[0].kind} {wrong[0].label!r} does not hold")
    texts = [tables[name][()] for name in used if name in wanted.texts]
    if len(set(texts)) < len(texts):
        raise InternalError("z3 gives a model in which two texts are equal")
    for name, it in used.items():
        if it.result == "Int":
            rows = (tables[name][row] for row in product(*(domains[sort] for sort in it.arguments)))
            if any(not isinstance(value, int) or not bounds.inside((value,)) for value in rows):
                raise InternalError(f"z3 gives a model in which {name} is outside the range of numbers")
    return _shown(wanted, model)


def _shown(wanted: Wanted, model: Model) -> Model:
    """The model as it is shown: a sort without elements has none, and definitions are not repeated."""
    empty = {name.removeprefix("some!") for name, rows in model.tables.items()
             if name.startswith("some!") and rows[()] == "false"}  # fmt: skip
    kept = {name: rows for name, rows in model.tables.items()
            if name not in wanted.defined and not name.startswith(("some!", "rank!"))}  # fmt: skip
    universes = {sort: () if sort in empty else elements for sort, elements in model.universes.items()}
    return replace(model, universes=universes, tables=kept)


def _keys(sort: str, universes: Mapping[str, tuple[str, ...]], bounds: Bounds) -> tuple[Argument, ...]:
    return universes[sort] if sort in universes else bounds.elements(sort)


def describe(model: Model) -> str:
    """The sizes, as a short phrase."""
    sizes = ", ".join(f"{len(elements)} {sort}" for sort, elements in model.universes.items())
    return sizes if model.numbers is None else f"{sizes}, numbers {model.numbers[0]}..{model.numbers[1]}"
