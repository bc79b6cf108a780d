"""Results beside the ledger of deviations: which are known, which are not, which entries no longer show.

The cases of the ledger are a suite of their own. There each result is compared with its entry; elsewhere one is *alike*
where runtime, operator, version and kind of difference are those of an entry: NaN or an infinity where it is not due,
or not where it is; the other zero; another shape; a crash; the same exception; the same requirement. A number instead
of another one is like nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from sonnx.semantics.errors import ModelError
from sonnx.semantics.runtimes.engines.protocol import Engine, Failure, Kind

from ..deviations import standing
from ..deviations.ledger import CRASH, Outcome, ledger
from ..deviations.ledger import Case as Entry
from ..differential.outcomes import Case, Class, Result
from .records import Record

SUITE: Final = "ledger"
FINDINGS: Final = (Class.MISMATCH.value, Class.CRASH.value)
"""The classes that stand out where no entry knows of them."""
NOT_ASKED: Final = (Kind.SKEW, Kind.BINDING, Kind.LIMIT, Kind.TIMEOUT)
"""The failures that say nothing of what an engine computes."""


def entries() -> dict[str, Entry]:
    """The entries of the ledger by name, in order."""
    return {it.name: it for it in ledger()}


def case_of(name: str) -> Case:
    """The case of an entry. Raises ModelError for a name that is none."""
    from onnx import parser

    entry = entries().get(name)
    if entry is None:
        raise ModelError(f"the ledger has no case {name!r}")
    operator = f"{entry.operator}-{entry.version}"
    tags = {"operator": operator, "operators": operator, "opset": str(entry.version)}
    return Case(name, parser.parse_model(entry.text).SerializeToString(deterministic=True), dict(entry.inputs), tags)


def with_entry(record: Record, case: Case, result: Result, engine: Engine) -> Record:
    """The record with what the ledger says of it; as it is for an engine of which the ledger does not speak."""
    runtime = standing.ENGINES.get(record.engine)
    if runtime is None or result.outcome in (Class.HARNESS, Class.NOT_COMPARED):
        return record
    if record.suite == SUITE:
        return _of_entry(record, case, result, engine, runtime)
    if result.outcome in (Class.PASS, Class.FREEDOM):
        return record
    alike = _alike(record, result, runtime, engine.version)
    if alike:
        return replace(record, entry=", ".join(alike), recorded=standing.Recorded.ALIKE.value)
    return replace(record, recorded=standing.Recorded.UNKNOWN.value) if record.outcome in FINDINGS else record


def _of_entry(record: Record, case: Case, result: Result, engine: Engine, runtime: str) -> Record:
    """The record of a case of the ledger, which the engine runs once more, for all its values. What lies within the
    bound and is not what the entry says is due deviates too: entries may be about rounding."""
    entry = entries()[case.name]
    deviation = entry.deviation(runtime)
    outcome = _outcome(engine, case)
    declined = result.outcome is Class.REFUSED
    if outcome is None or (deviation is None and declined):
        return record
    values = result.outcome is Class.OUTSIDE and not result.kind
    within = result.outcome is Class.PASS and standing.difference(outcome, entry.outcome) != ""
    deviates = values or declined or within or record.outcome in FINDINGS
    recorded = standing.classify(entry, runtime, engine.version, outcome, deviates)
    return replace(record, entry="" if deviation is None else entry.name, recorded=recorded.value)


def _outcome(engine: Engine, case: Case) -> Outcome | None:
    """The outcome of a case in an engine, as the ledger writes it; None where it was not asked."""
    opened = engine.open(case.source)
    done = opened if isinstance(opened, Failure) else opened.run(case.feeds)
    if not isinstance(opened, Failure):
        opened.close()
    if isinstance(done, Failure):
        crashed = done.kind is Kind.CRASH
        return None if done.kind in NOT_ASKED else Outcome(None, CRASH if crashed else _exception(done.message))
    return Outcome({name: value for name, value in done.items() if isinstance(value, np.ndarray)})


def _exception(message: str) -> str:
    """The class of the exception with which the message of an engine begins."""
    return message.partition(":")[0]


def _alike(record: Record, result: Result, runtime: str, version: str) -> list[str]:
    """The entries with the same runtime, operator, version and kind of difference."""
    operator = record.operator if result.outcome is Class.MISMATCH else record.about
    return [
        entry.name for entry, done in standing.deviations_of(runtime, version, operator) if _fits(result, entry, done)
    ]


def _fits(result: Result, entry: Entry, done: Outcome) -> bool:
    judged = result.judged
    match result.outcome:
        case Class.MISMATCH if judged is not None and judged.first is not None:
            pair = standing.kind(judged.first.expected.decimal), standing.kind(judged.first.found.decimal)
            return standing.is_telling(pair) and pair in standing.pairs(entry.outcome, done)
        case Class.MISMATCH:
            return standing.FORM in standing.pairs(entry.outcome, done)
        case Class.CRASH:
            return done.refused == CRASH
        case Class.OUTSIDE:
            refused = entry.outcome.refused
            return not result.kind and done.outputs is not None and bool(refused) and refused in result.why
        case Class.REFUSED:
            return entry.outcome.outputs is not None and done.refused == _exception(result.why)
    return False


# ---- In words ---------------------------------------------------------------------------------

WORDS: Final = {
    standing.Recorded.RECORDED.value: "known deviation {}, as recorded",
    standing.Recorded.CHANGED.value: "deviates in another way than the ledger records: {}",
    standing.Recorded.ALIKE.value: "like known deviations of this operator and kind: {}",
    standing.Recorded.BACK.value: "known deviation {} shows again, which was gone",
    standing.Recorded.GONE.value: "known deviation {} no longer shows",
    standing.Recorded.UNKNOWN.value: "not in the ledger of deviations",
}


def told(record: Record) -> str:
    """The entries of a record with their sources, in words; "" where the ledger says nothing of it."""
    return WORDS.get(record.recorded, "").format(", ".join(cited(name, record.engine) for name in named(record)))


def named(record: Record) -> list[str]:
    """The names of the entries of a record."""
    return record.entry.split(", ") if record.entry else []


def cited(name: str, engine: str) -> str:
    """The name of an entry with its source."""
    entry = entries().get(name)
    return name if entry is None else f"{name} ({standing.source(entry, standing.ENGINES.get(engine, ''))})"


def stands_out(record: Record) -> bool:
    """The record is a mismatch or a crash that no entry knows as it is."""
    known = record.recorded in (standing.Recorded.RECORDED.value, standing.Recorded.ALIKE.value)
    return record.outcome in FINDINGS and not known
