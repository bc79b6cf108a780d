"""A run in figures: classes by engine, by operator and version, distances; the counts add up to the cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..deviations.standing import Recorded
from ..differential.outcomes import Class
from .known import cited, stands_out
from .records import Record

CLASSES: Final = tuple(it.value for it in Class)
WORST: Final = 20
"""How many of the worst cases of an engine are listed."""
STEPS: Final = ("0", "1", "2-3", "4-15", "16-255", "256 and more")
"""Distances in numbers of the type."""
PARTS: Final = ("0", "up to 1/4", "up to 1/2", "up to 3/4", "up to 1", "beyond")
"""Distances as parts of the bound."""


@dataclass(frozen=True, slots=True)
class EngineSummary:
    """One engine. classes: the cases of each class, all classes in order. kinds: of refusals and of what the engine
    did elsewhere, by class. operators: the classes of each operator and version. steps, parts: how many compared
    cases have their greatest distance there. worst: mismatches and crashes, those first that the ledger does not know,
    then the greatest ratio. recorded: how many cases stand so to the ledger; unknown: those that stand out, gone: those
    whose entry no longer shows; all three are empty for an engine of which the ledger does not speak.
    """

    engine: str
    cases: int
    classes: Mapping[str, int]
    kinds: Mapping[tuple[str, str], int]
    operators: Mapping[str, Mapping[str, int]]
    steps: Mapping[str, int]
    parts: Mapping[str, int]
    worst: tuple[Record, ...]
    open: Mapping[str, int]
    recorded: Mapping[str, int]
    unknown: tuple[Record, ...]
    gone: tuple[Record, ...]


def summarized(records: Sequence[Record], engines: Iterable[str]) -> tuple[EngineSummary, ...]:
    """The figures of each engine."""
    return tuple(_engine(name, [it for it in records if it.engine == name]) for name in engines)


def ledger_lines(summary: EngineSummary) -> Iterator[str]:
    """The ledger of deviations on an engine: the counts, what it does not know, what no longer shows."""
    if summary.recorded:
        counts = sorted(summary.recorded.items(), key=lambda pair: (-pair[1], pair[0]))
        yield "deviations by the ledger: " + ", ".join(f"{count} {recorded}" for recorded, count in counts)
    if summary.unknown:
        yield f"not known as they are: {', '.join(it.case for it in summary.unknown)}"
    if summary.gone:
        yield f"entries that no longer show: {', '.join(cited(it.entry, it.engine) for it in summary.gone)}"


def _engine(name: str, records: list[Record]) -> EngineSummary:
    counted = Counter(it.outcome for it in records)
    operators: dict[str, Counter[str]] = {}
    for it in records:
        operators.setdefault(it.about or "(no operator)", Counter())[it.outcome] += 1
    bad = [it for it in records if it.outcome in (Class.MISMATCH, Class.CRASH, Class.HARNESS)]
    return EngineSummary(
        name,
        len(records),
        {it: counted[it] for it in CLASSES},
        Counter((it.outcome, kind) for it in records if (kind := _kind(it))),
        {operator: operators[operator] for operator in sorted(operators)},
        _spread(STEPS, (_step(it) for it in records if it.elements and it.ulps)),
        _spread(PARTS, (_part(it) for it in records if it.elements and it.outcome != Class.NOT_COMPARED)),
        tuple(sorted(bad, key=lambda it: (not stands_out(it), -_ratio(it), it.case))[:WORST]),
        Counter(it.why for it in records if it.outcome == Class.NOT_COMPARED),
        Counter(it.recorded for it in records if it.recorded),
        tuple(it for it in records if it.recorded and stands_out(it)),
        tuple(it for it in records if it.recorded == Recorded.GONE),
    )


def _kind(record: Record) -> str:
    """The engine's own kind of outcome; outside the domain also that it gave values."""
    return record.kind or ("gives values" if record.outcome == Class.OUTSIDE else "")


def _spread(labels: tuple[str, ...], found: Iterable[str]) -> Mapping[str, int]:
    counted = Counter(found)
    return {label: counted[label] for label in labels}


def _step(record: Record) -> str:
    distance = int(record.ulps)
    limits = (0, 1, 3, 15, 255)
    return next((label for limit, label in zip(limits, STEPS, strict=False) if distance <= limit), STEPS[-1])


def _part(record: Record) -> str:
    if record.outside or record.outcome == Class.MISMATCH:
        return PARTS[-1]
    ratio = _ratio(record)
    limits = (0.0, 0.25, 0.5, 0.75, 1.0)
    return next((label for limit, label in zip(limits, PARTS, strict=False) if ratio <= limit), PARTS[-1])


def _ratio(record: Record) -> float:
    return float(record.ratio) if record.ratio else 0.0
