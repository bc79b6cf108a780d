"""SMT-LIB 2.6 text of an obligation: hypotheses and the denied goal. unsat: the goal follows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sonnx.checker.smt.smtlib import PLAIN, asserted, declared, spell

from .formulas import Argument, Term
from .theory import Hypothesis, Obligation

BUILT_IN = frozenset({"Bool", "Int"})


def question(obligation: Obligation, denied: bool = True) -> str:
    """The text without its final `(check-sat)`. denied: with the denied goal, else the hypotheses alone."""
    formulas = [*(hypothesis.formula for hypothesis in obligation.hypotheses), *([obligation.goal] if denied else [])]
    return "".join(
        (
            f"; {ascii(obligation.name)[1:-1]}\n(set-logic ALL)\n",
            *declarations(obligation, formulas),
            *(_asserted(hypothesis) for hypothesis in obligation.hypotheses),
            *([f"; the goal, denied\n(assert (not {spell(obligation.goal, PLAIN)}))\n"] if denied else []),
        )
    )


def _asserted(hypothesis: Hypothesis) -> str:
    return f"; {hypothesis.kind} {ascii(hypothesis.label)[1:-1]}\n{asserted(hypothesis.formula, PLAIN)}"


def declarations(obligation: Obligation, formulas: Iterable[Argument]) -> Iterator[str]:
    """The sorts and symbols that occur, in the order of their names; different texts are different."""
    used = sorted({name for formula in formulas for name in symbols_in(formula) if name in obligation.symbols})
    sorts = {sort for name in used for sort in (*obligation.symbols[name].arguments, obligation.symbols[name].result)}
    sorts |= {sort for formula in formulas for sort in sorts_in(formula)}
    yield from (f"(declare-sort {sort} 0)\n" for sort in sorted(sorts - BUILT_IN))
    yield from (declared(name, obligation.symbols[name].arguments, obligation.symbols[name].result) for name in used)
    texts = [name for name in used if name in obligation.texts]
    if len(texts) > 1:
        yield f"(assert (distinct {' '.join(texts)}))\n"


def symbols_in(formula: Argument) -> Iterator[str]:
    """The names that occur, those of operators and variables too, in no order."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Term):
            yield part.op
            waiting += part.args


def sorts_in(formula: Argument) -> Iterator[str]:
    """The sorts of the variables."""
    if isinstance(formula, Term):
        if formula.op in ("forall", "exists"):
            yield from (str(binder.args[0]) for binder in formula.args[:-1] if isinstance(binder, Term))
        for part in formula.args[-1:] if formula.op in ("forall", "exists") else formula.args:
            yield from sorts_in(part)


def numerals_in(formula: Argument) -> Iterator[int]:
    """The numbers that occur."""
    if isinstance(formula, int):
        yield formula
    elif isinstance(formula, Term):
        for part in formula.args:
            yield from numerals_in(part)


def file_name(title: str) -> str:
    """A title as the name of a file; long ones are cut."""
    return re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-")[:100]
