"""The rules of a well-formed core: one for each head, besides that every node has a sort and every variable is bound.

Tests load this file by its path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from sonnx.spec.elaborate.core import Binding, Core, CoreOperator, CoreStatement
from sonnx.spec.elaborate.scope import FOLDS
from sonnx.spec.elaborate.sorts import ANY, CLASH, ELEMENT, TYPE, agree, is_map, is_number, is_vector
from sonnx.spec.language.syntax import BOOL, INT, TEXT, Sort

Rule = Callable[[Core], bool]
RELATIONS = frozenset({"=", "!=", "<", "<=", ">", ">=", "in", "not in"})
ARITHMETIC = frozenset({"add", "sub", "mul", "quotient", "div", "mod"})


def _formulas(it: Core) -> bool:
    return it.sort == BOOL and all(agree(part.sort, BOOL) for part in it.parts)


def _chained(it: Core) -> bool:
    """Comparisons of which each begins with the operand that the one before ends with."""
    links = zip(it.parts, it.parts[1:], strict=False)
    compared = it.name == "chain" and all(part.head == "compare" for part in it.parts)
    return compared and all(one.parts[1].span == next_.parts[0].span for one, next_ in links)


def _literal(it: Core) -> bool:
    kinds = {"Bool": (bool,), "Int": (int,), "Text": (str,), "Rational": (str,), "Element": (int, str)}
    return it.sort is not None and type(it.value) in kinds.get(it.sort.name, ())


def _branches(it: Core, bodies: tuple[Core, ...]) -> bool:
    return all(agree(it.sort, body.sort) for body in bodies)


def _case(it: Core) -> bool:
    subject, *bodies = it.parts
    named = [label for labels in it.labels for label in labels]
    fits = len(it.labels) == len(bodies) and all(it.labels[:-1]) and len(set(named)) == len(named)
    return fits and subject.sort == TEXT and _branches(it, tuple(bodies))


def _numbers(it: Core) -> bool:
    return all(is_number(part.sort) or is_vector(part.sort) for part in (it, *it.parts))


def _members(it: Core) -> bool:
    """Each variable runs through a set or list, whose elements have its sort."""
    return bool(it.bound) and all(
        len(b.variables) == 1
        and b.domain.sort is not None
        and b.domain.sort.name in ("set", "list")
        and b.variable.sort == b.domain.sort.element
        for b in it.bound
    )


def _steps(it: Core) -> bool:
    """Each variable is an index below a number, or one of several below the entries of a vector, or a vector itself."""
    return bool(it.bound) and all(
        is_vector(b.domain.sort) or (b.domain.sort == INT and len(b.variables) == 1) for b in it.bound
    )


def _guarded(it: Core) -> bool:
    return it.parts[1].sort == BOOL


def _of(collection: str, it: Core) -> bool:
    return it.sort == Sort(collection, it.parts[0].sort)


RULES: Mapping[str, tuple[int, int | None, Rule]] = {
    "literal": (0, 0, _literal),
    "variable": (0, 0, lambda it: it.variable is not None and it.name == it.variable.name),
    "not": (1, 1, _formulas),
    "and": (2, None, lambda it: _formulas(it) and (it.name == "" or _chained(it))),
    "or": (2, None, _formulas),
    "implies": (2, 2, _formulas),
    "iff": (2, 2, _formulas),
    "compare": (2, 2, lambda it: it.sort == BOOL and it.name in RELATIONS),
    "ite": (3, 3, lambda it: it.parts[0].sort == BOOL and _branches(it, it.parts[1:])),
    "case": (2, None, _case),
    "arithmetic": (2, 2, lambda it: it.name in ARITHMETIC and _numbers(it)),
    "neg": (1, 1, _numbers),
    "forall": (1, 1, lambda it: _formulas(it) and _members(it)),
    "exists": (1, 1, lambda it: _formulas(it) and _members(it)),
    "unique": (1, 1, lambda it: _formulas(it) and _members(it)),
    "set": (2, 2, lambda it: _of("set", it) and _guarded(it) and _members(it)),
    "list": (2, 2, lambda it: _of("list", it) and _guarded(it) and (_steps(it) or _members(it))),
    "map": (2, 2, lambda it: it.sort is not None and is_map(it.sort) and _members(it)),
    "fold": (2, 3, lambda it: it.name in FOLDS and _guarded(it) and _steps(it)),
    "pair": (2, 2, lambda it: it.sort == ELEMENT and all(p.sort == ELEMENT for p in it.parts)),
    "vector": (0, None, lambda it: it.sort is not None and all(agree(it.sort.element, p.sort) for p in it.parts)),
    "index": (1, None, lambda it: it.parts[0].sort is not None and it.sort == it.parts[0].sort.element),
    "size": (1, 1, lambda it: it.sort == INT and it.parts[0].sort is not None and it.parts[0].sort.element is not None),
    "concat": (2, 2, lambda it: _branches(it, it.parts[:1])),
    **dict.fromkeys(
        ("fact", "inductive", "define", "fun", "record", "field", "local"), (0, None, lambda it: bool(it.name))
    ),
    "given": (0, 0, lambda it: it.sort == BOOL and it.variable is not None),
    "apply": (0, None, lambda it: type(it.value) is int and len(it.labels) == len(it.parts)),
    "nothing": (0, 0, lambda it: it.sort == ANY),
    "type": (0, 0, lambda it: it.sort == TYPE),
    "every": (0, 0, lambda it: it.sort == Sort("set", Sort(it.name))),
    "step": (2, None, lambda it: it.sort == BOOL),
}
"""For each head how many parts its nodes have, at least and at most, and what else they keep to."""


def malformed(core: Core, variables: Iterable[Binding] = ()) -> Iterator[Core]:
    """The nodes that do not keep to the rules. variables: those that are bound outside."""
    known = frozenset(variables)
    least, most, keeps = RULES.get(core.head, (0, None, lambda _: False))
    sorted_and_bound = core.sort not in (None, CLASH) and (core.variable is None or core.variable in known)
    count = len(core.parts)
    if not sorted_and_bound or not least <= count <= (count if most is None else most) or not keeps(core):
        yield core
    for item in core.bound:
        yield from malformed(item.domain, known)
        known = known.union(item.variables)
    for part in core.parts:
        yield from malformed(part, known)


def malformed_statements(operator: CoreOperator) -> Iterator[Core]:
    """The nodes of a definition that do not keep to the rules; of a statement that binds too few names, its body."""
    known = frozenset(operator.names.values())
    for statement in operator.statements:
        yield from _of_statement(statement, known)
        known = known.union(statement.binds)


def _of_statement(statement: CoreStatement, known: frozenset[Binding]) -> Iterator[Core]:
    least, most = BINDS[statement.kind]
    if not least <= len(statement.binds) <= most:
        yield statement.body
    inside = known.union(statement.parameters, statement.binds if statement.kind in ("each", "along") else ())
    for position, item in enumerate(statement.bound):
        yield from malformed(item.domain, inside)
        if statement.kind == "entries" and position == 0:  # the sizes of an entry depend on its position
            inside = inside.union(item.variables)
    inside = inside.union(variable for item in statement.bound for variable in item.variables)
    for view in statement.inner:
        yield from _of_statement(view, inside)
    yield from malformed(statement.body, inside)


ANY_NUMBER = 1000
BINDS = {
    "let": (1, ANY_NUMBER), "function": (1, 1), "view": (1, 1), "along": (1, ANY_NUMBER), "each": (1, 1),
    "type": (1, 1), **dict.fromkeys(("require", "restrict", "equation", "entries", "result", "rule"), (0, 0)),
}  # fmt: skip
"""For each kind of statement how many names it binds, at least and at most."""
