"""A bisection as text for a terminal or a pipe. What comes from a model is shown inert."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text
from sonnx.semantics.machine.inputs import type_text
from sonnx.semantics.machine.judging import Standing
from sonnx.semantics.machine.memory import type_of
from sonnx.semantics.runtimes.engines.protocol import Optimizing
from sonnx.spec.terminal import few, inert, print_line

from ..differential.rendering import element_text
from .changes import Change
from .rules import Rule
from .searching import Bisection, Verdict
from .trials import Answer, Criterion, Outcome

STYLES: Final = {
    Verdict.GUILTY: "bold red",
    Verdict.PLAIN: "bold red",
    Verdict.RIGHT: "bold green",
    Verdict.UNDECIDED: "bold yellow",
}
SHOWN: Final = 12
"""The most nodes of a change, and names of optimizers, that are listed."""


def write(console: Console, name: str, engine: Optimizing, cases: Sequence[Bisection]) -> None:
    """Prints the cases."""
    print_line(console, f"model    {inert(name)}")
    print_line(console, f"engine   {inert(f'{engine.name} {engine.version}'.strip())}")
    print_line(console, f"decides  {cases[0].criterion.value}")
    for case in cases:
        console.print()
        style = STYLES[case.verdict]
        print_line(console, Text.assemble((f"{inert(case.label)}: ", "bold"), (case.verdict.value, style)))
        for line in _lines(engine, case):
            print_line(console, f"  {inert(line)}")


def _lines(engine: Optimizing, case: Bisection) -> Iterator[str]:
    yield case.reason
    if case.whole is not None:
        yield f"asked alone     {case.part}, on the values of the machine; of the whole model {case.whole.reason}"
    if case.default is not None:
        yield f"all optimizers  {_outcome(case.default, case.criterion)}"
    if case.plain is not None and case.criterion is Criterion.SPECIFICATION:
        yield f"none            {_outcome(case.plain, case.criterion)}"
    if case.verdict in (Verdict.RIGHT, Verdict.UNDECIDED):
        yield from _distance(case)
    if case.level:
        yield f"from level      {case.level}"
    for it in case.guilty:
        yield f"guilty          {' with '.join(it.names)}"
        if not it.changes:
            yield "  the engine stores no model that shows what they change"
        for names, change in it.changes:
            alone = "" if names == it.names else ", ".join(names) + " alone: "
            yield f"  {alone}{_counted(change)}"
            yield from _change(change)
        yield from _rules(it.rules)
    if case.narrowed:
        yield f"among           {few(case.narrowed, SHOWN)}"
    if case.guilty:
        yield f"switch off      {engine.advice(case.remedy)}" if case.remedy else "switching them off does not do"
        yield from _smallest(case)
    yield f"{case.runs} runs"


BITS: Final = {Answer.ALLOWED: "the same bits", Answer.OUTSIDE: "other bits"}
"""The answers where bits decide."""


def _outcome(outcome: Outcome, criterion: Criterion) -> str:
    """How a run ended, with the first element that is not allowed."""
    said = (
        outcome.answer.value if criterion is Criterion.SPECIFICATION else BITS.get(outcome.answer, outcome.answer.value)
    )
    if outcome.failure is not None:
        return f"{said}: {outcome.failure}"
    wrong = [(name, it) for name, it in outcome.judged if it.standing is Standing.OUTSIDE]
    if not wrong:
        return said
    name, judged = wrong[0]
    why = judged.note or f"{judged.outside} of {judged.elements} elements"
    first = "" if judged.first is None else f"; {element_text(judged.first)}"
    return f"{said}: output {name!r}, {why}{first}"


def _distance(case: Bisection) -> Iterator[str]:
    """How far the outputs are from those without optimizers, where nothing is wrong with them."""
    for name, it in case.distance[:SHOWN]:
        if it.standing is not Standing.EXACT:
            by = "" if it.ulps is None else f", by up to {it.ulps} ULP"
            differ = it.note or f"{it.elements - it.exact} of {it.elements} elements differ{by}"
            yield f"against none    output {name!r}: {differ} (--bits asks which optimizer does it)"


def _counted(change: Change) -> str:
    return f"{len(change.removed)} node{'s' * (len(change.removed) != 1)} before, {len(change.added)} after"


def _change(change: Change) -> Iterator[str]:
    for sign, nodes in (("-", change.removed), ("+", change.added)):
        yield from _listed(sign, nodes)


def _rules(rules: Sequence[Rule]) -> Iterator[str]:
    for rule in rules[:SHOWN]:
        said = f"never right: {rule.reason}" if rule.claim == "never" else f"over the reals only: {rule.sentence}"
        yield f"    named by {rule.name}, {said}"
    if len(rules) > SHOWN:
        yield f"    and {len(rules) - SHOWN} rewrites more"


def _listed(sign: str, nodes: Sequence[str]) -> Iterator[str]:
    yield from (f"    {sign} {text}" for text in nodes[:SHOWN])
    if len(nodes) > SHOWN:
        yield f"    {sign} and {len(nodes) - SHOWN} more"


def _smallest(case: Bisection) -> Iterator[str]:
    small = case.smallest
    if small is None:
        yield "smallest        none was found: cut out, the case does not behave so"
        return
    inputs = ", ".join(f"{name} {type_text(type_of(value))}" for name, value in small.case.feeds.items())
    count = len(small.nodes)
    yield f"smallest        {count} node{'s' * (count != 1)}{f' on {inputs}' if inputs else ''}"
    yield from _listed(" ", small.nodes)
    yield f"                {_outcome(small.default, case.criterion)}"
