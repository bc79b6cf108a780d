"""The record of a case in a report: plain data that goes to JSON and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from sonnx.semantics.machine.judging import Judged
from sonnx.semantics.machine.memory import parts_of

from ..differential.outcomes import Case, Result
from ..differential.rendering import element_text


@dataclass(frozen=True, slots=True)
class Record:
    """A case in an engine. outcome: the class. kind, why, node, operator, tensor: see `outcomes.Result`.

    about: the operator that the case is about. digest: SHA-256 of model and inputs. elements ... outside: counts.
    ulps: the greatest distance, "" where none is known; ratio: the greatest part of a bound; worst: that element.
    entry, recorded: entries of the ledger of deviations, and how the result stands to them (`deviations.standing`).
    """

    suite: str
    case: str
    engine: str
    outcome: str
    kind: str = ""
    why: str = ""
    node: str = ""
    operator: str = ""
    tensor: str = ""
    about: str = ""
    digest: str = ""
    elements: int = 0
    exact: int = 0
    within: int = 0
    free: int = 0
    undecided: int = 0
    outside: int = 0
    ulps: str = ""
    ratio: str = ""
    worst: str = ""
    entry: str = ""
    recorded: str = ""

    def data(self) -> dict[str, str | int]:
        """As JSON."""
        return asdict(self)


def record(suite: str, case: Case, result: Result) -> Record:
    """The record of a result."""
    judged = result.judged or Judged()
    worst = judged.first or judged.worst
    return Record(
        suite,
        case.name,
        result.engine,
        result.outcome.value,
        result.kind,
        _said(result.why),
        result.where,
        result.operator,
        result.tensor,
        case.tags.get("operator", ""),
        digest(case),
        judged.elements,
        judged.exact,
        judged.within,
        judged.free,
        judged.undecided,
        judged.outside,
        "" if judged.ulps is None else str(judged.ulps),
        "" if judged.ratio is None else repr(judged.ratio),
        "" if worst is None else element_text(worst),
    )


def _said(text: str) -> str:
    """The words of an engine, on one line and the same in every run: where an object lay in memory is left out."""
    return re.sub(r"\b0x[0-9a-f]{6,}\b", "0x...", " ".join(text.split()))[:300]


def record_from(data: Mapping[str, Any]) -> Record:
    """The record that was written as JSON."""
    known = {field.name for field in fields(Record)}
    given = {name: value for name, value in data.items() if name in known}
    return Record(**given)


def digest(case: Case) -> str:
    """SHA-256 of the model and its inputs."""
    hashed = hashlib.sha256(case.source if isinstance(case.source, bytes) else case.source.read_bytes())
    for name, value in case.feeds.items():
        hashed.update(name.encode("utf-8", "surrogatepass"))
        for part in parts_of(value):
            hashed.update(part)
    return hashed.hexdigest()
