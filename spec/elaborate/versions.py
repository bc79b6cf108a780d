"""Versions of an operator that are stated as differences: `operator Conv @ 1 like 11: ...`, syntax to syntax.

A difference takes the ports, sentence, clauses (but for the source) and statements of the meaning that it is like. What
it writes replaces what has the same name there: a requirement has its id, any other statement the first name that it
defines, a clause its key. `without` leaves out what has these names. A statement of a new name stands behind the one
that is written before it, at the beginning without one; `after NAME` puts a statement behind the one of that name.
Whatever is written must differ, and a chain of differences ends in a full text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from ..language.errors import SpecError, mistake
from ..language.syntax import Declaration, Difference, File, Operator, Source, Span, Statement, Written, values

Lookup = Callable[[str], Sequence[Written]]
"""The meanings of an operator as they are written, by its name."""


def expand_files(
    sources: Iterable[Source | File], given: Mapping[str, Sequence[Written]]
) -> tuple[tuple[File, ...], tuple[SpecError, ...]]:
    """The files with every difference expanded, and the mistakes; a difference with a mistake is left out.

    given: the meanings of a text to which the files are added.
    """
    files = tuple(sources)
    written: dict[str, list[Written]] = {}
    for declared in (it for file in files for it in file.declarations):
        if isinstance(declared, Operator | Difference):
            written.setdefault(declared.name, []).append(declared)
    errors: dict[Span, SpecError] = {}

    def full(declared: Written) -> Iterable[Declaration]:
        try:
            return (expand(declared, lambda name: (*written.get(name, ()), *given.get(name, ()))),)
        except SpecError as error:
            errors[error.span] = error
            return ()

    expanded = tuple(File(file.name, tuple(it for own in file.declarations for it in full(own))) for file in files)
    return expanded, tuple(errors.values())


def expand(declared: Written, written: Lookup) -> Declaration:
    """The declaration, a difference as the full text that it stands for. Raises SpecError for a mistake in it."""
    return _expand(declared, written, ()) if isinstance(declared, Difference) else declared


def _expand(declared: Operator | Difference, written: Lookup, path: tuple[str, ...]) -> Operator:
    """The full text of a meaning; those in `path` are like it."""
    if isinstance(declared, Operator):
        return declared
    own, like = f"{declared.name}-{declared.first}", f"{declared.base}-{declared.version}"
    if own in path:
        raise mistake("like/cycle", declared.span, name=own, path=" -> ".join((*path[path.index(own) :], own)))
    family = (it for it in written(declared.base) if isinstance(it, Operator | Difference))
    base = next((it for it in family if it.first <= declared.version <= it.last), None)
    if base is None:
        raise mistake("like/missing", declared.span, name=like)
    return _changed(declared, _expand(base, written, (*path, own)))


def _changed(it: Difference, base: Operator) -> Operator:
    """The meaning that differs from `base` as the difference says."""
    keys = dict.fromkeys(clause.key for clause in it.clauses if clause.key != "source")
    without = [clause.value for clause in it.without]
    names = [name_of(statement) for statement in base.statements]
    known = {*names, *(clause.key for clause in base.clauses if clause.key != "source")}
    for clause in it.without:
        _check_known(clause.value, known, clause.span, base)
    same = {
        "everything": not (it.doc or it.inputs is not None or without or it.changes or keys),
        "the sentence": it.doc == base.doc,
        "the inputs and outputs": (it.inputs, it.outputs) == (base.inputs, base.outputs),
        **{f"the clause {key}": values(it.clauses, key) == values(base.clauses, key) for key in keys},
    }
    for what in (what for what, alike in same.items() if alike):
        raise mistake("like/same", it.span, base.span, what=what, like=meaning_of(base))
    taken = (clause for clause in base.clauses if clause.key not in {"source", *keys, *without})
    return Operator(
        it.name,
        it.first,
        it.last,
        base.inputs if it.inputs is None else it.inputs,
        base.outputs if it.outputs is None else it.outputs,
        it.doc or base.doc,
        (*it.clauses, *taken),
        _statements(it, base, [name for name in names if name not in without]),
        base.types,
        base.attributes,
        it.span,
        (meaning_of(base), *(name_of(change.statement) for change in it.changes), *without),
    )


def _statements(it: Difference, base: Operator, order: list[str]) -> tuple[Statement, ...]:
    """The statements, in their order; `order`: the names of those that are taken over."""
    before = {name_of(statement): statement for statement in base.statements}
    now: dict[str, Statement] = {}
    last = ""
    for change in it.changes:
        statement, name = change.statement, name_of(change.statement)
        if name in now:
            raise mistake("like/twice", statement.span, now[name].span, name=name)
        if change.after:
            _check_known(change.after, order, change.span, base)
        if change.after and name in order:
            order.remove(name)
        elif name in order and statement == before[name]:
            raise mistake("like/same", statement.span, before[name].span, what=name, like=meaning_of(base))
        if name not in order:
            behind = change.after or last
            order.insert(order.index(behind) + 1 if behind else 0, name)
        now[name], last = statement, name
    return tuple(now.get(name) or before[name] for name in order)


def name_of(statement: Statement) -> str:
    """The name by which a difference refers to a statement."""
    if statement.kind == "along":
        return name_of(statement.body[0])
    return statement.id or statement.doc or statement.names[0]


def meaning_of(operator: Operator | Difference) -> str:
    """The name of a meaning: the operator and its first version."""
    return f"{operator.name}-{operator.first}"


def _check_known(name: str, known: Collection[str], span: Span, base: Operator) -> None:
    if name not in known:
        from .scope import hint

        raise mistake("like/unknown", span, base.span, name=name, like=meaning_of(base), hint=hint(name, known))


T = TypeVar("T")


class Joined(Mapping[str, T]):
    """The things of two mappings, looked up in the first one first."""

    def __init__(self, first: Mapping[str, T], second: Mapping[str, T]) -> None:
        """Both are read when a name is asked for."""
        self._both = first, second

    def __getitem__(self, name: str) -> T:
        first, second = self._both
        return first[name] if name in first else second[name]

    def __contains__(self, name: object) -> bool:
        return any(name in it for it in self._both)

    def __iter__(self) -> Iterator[str]:
        first, second = self._both
        yield from first
        yield from (name for name in second if name not in first)

    def __len__(self) -> int:
        return sum(1 for _ in self)
