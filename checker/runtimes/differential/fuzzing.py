"""A campaign: random models on an engine until the time is over; what is found is made small, each cause once."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

from sonnx.semantics.machine.files.numpy_files import write_npz
from sonnx.semantics.runtimes.engines.protocol import Engine, Kind

from .json_report import judged_data
from .outcomes import Case, Class, Result, is_finding, judge_case
from .random_models import Generated, generated
from .reduction import Reduced, reduce
from .sizes import Finder
from .special_values import with_special_values

Tell = Callable[[str], None]
REDUCING: Final = 20.0
"""Seconds that making one case small may take."""
VARIANTS: Final = 4
"""With how many inputs a model is run."""
HOPELESS: Final = 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause: the result of the case made small, the seed of the first case that showed it."""

    seed: int
    number: int
    result: Result
    reduced: Reduced


@dataclass
class Campaign:
    """The outcome of a campaign. outcomes: the cases by class. operators: how often each took part, in cases that were
    compared. repeated: further cases of each cause."""

    engine: str
    version: str
    seed: int
    cases: int = 0
    none: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    repeated: Counter[tuple[str, ...]] = field(default_factory=Counter)


def fuzz(
    engine: Engine,
    seed: int,
    *,
    seconds: float | None = None,
    cases: int | None = None,
    only: frozenset[str] = frozenset(),
    refusals: bool = False,
    tell: Tell | None = None,
) -> Iterator[Finding | Campaign]:
    """The findings, one by one; last the campaign as a whole. It ends with the time or the number of cases."""
    campaign = Campaign(engine.name, engine.version, seed)
    until = None if seconds is None else time.monotonic() + seconds

    def going() -> bool:
        return (until is None or time.monotonic() < until) and (cases is None or campaign.cases < cases)

    newest: int | None = None
    finder = Finder()
    for number in count():
        if not going() or (campaign.none > HOPELESS and not campaign.cases):
            break
        drawn = generated((seed, number), finder, newest, only)
        if drawn is None:
            campaign.none += 1
            continue
        for variant in range(VARIANTS):
            if not going():
                break
            special = with_special_values(drawn.feeds, seed + number + variant) if variant else {}
            feeds = {**drawn.feeds, **special}
            case = Case(f"{seed}-{number}.{variant}", drawn.model, feeds, _tags(drawn))
            result = judge_case(engine, case)
            _count(campaign, drawn, result)
            if tell is not None:
                tell(f"{campaign.cases} cases, {len(campaign.findings)} findings")
            if is_finding(result, refusals=refusals):
                finding = _new(campaign, engine, number, case, result)
                if finding is not None:
                    yield finding
            if result.kind == Kind.SKEW.value:
                newest = drawn.opset - 1
            if result.outcome in (Class.REFUSED, Class.CRASH) or not drawn.feeds:
                break
    yield campaign


def _count(campaign: Campaign, drawn: Generated, result: Result) -> None:
    campaign.cases += 1
    campaign.outcomes[result.outcome.value] += 1
    if result.kind:
        campaign.kinds[f"{result.outcome.value}: {result.kind}"] += 1
    if result.outcome in (Class.PASS, Class.FREEDOM, Class.MISMATCH):
        campaign.operators.update(drawn.operators)


def _new(campaign: Campaign, engine: Engine, number: int, case: Case, result: Result) -> Finding | None:
    """The case made small, where its cause was not met before."""
    cause = _cause(result)
    campaign.repeated[cause] += 1
    if campaign.repeated[cause] > 1:
        return None
    finding = _finding(engine, campaign.seed, number, case, result)
    small = _cause(finding.result)
    if small != cause:
        campaign.repeated[small] += 1
        if campaign.repeated[small] > 1:
            return None
    campaign.findings.append(finding)
    return finding


def _finding(engine: Engine, seed: int, number: int, case: Case, result: Result) -> Finding:
    wanted = (result.outcome, result.kind, result.operator)

    def same(candidate: Case) -> bool:
        again = judge_case(engine, candidate)
        return (again.outcome, again.kind, again.operator) == wanted

    reduced = reduce(case, same, REDUCING)
    return Finding(seed, number, judge_case(engine, reduced.case), reduced)


def _cause(result: Result) -> tuple[str, ...]:
    said = "" if result.judged is not None else re.sub(r"'[^']*'|\"[^\"]*\"|\d+|0x[0-9a-f]+", "", result.why)[:120]
    return (result.outcome.value, result.kind, result.operator, said)


def _tags(drawn: Generated) -> Mapping[str, str]:
    return {"operators": " ".join(drawn.operators), "opset": str(drawn.opset), "violated": drawn.violated}


def store(finding: Finding, campaign_engine: str, version: str, folder: Path) -> Path:
    """Writes a reproducer that `sonnx compare FOLDER --engine NAME` replays: model, inputs, and what happened."""
    result = finding.result
    label = re.sub(r"[^\w.-]+", "-", result.operator or result.kind or result.outcome.value).strip("-")
    target = folder / f"{finding.seed}-{finding.number}-{label}"
    target.mkdir(parents=True, exist_ok=True)
    source = finding.reduced.case.source
    (target / "model.onnx").write_bytes(source if isinstance(source, bytes) else source.read_bytes())
    if finding.reduced.case.feeds:
        write_npz(target / "inputs.npz", finding.reduced.case.feeds)
    content = {
        "schema": "sonnx-finding/1",
        "engine": campaign_engine,
        "version": version,
        "seed": finding.seed,
        "case": finding.number,
        "class": result.outcome.value,
        "kind": result.kind,
        "why": result.why,
        "node": result.where,
        "operator": result.operator,
        "tensor": result.tensor,
        "judged": None if result.judged is None else judged_data(result.judged),
        "replay": f"sonnx compare {target.name} --engine machine --engine {campaign_engine}",
    }
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    (target / "finding.json").write_text(text + "\n", encoding="utf-8")
    return target
