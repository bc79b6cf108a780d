"""A run as JSON, JUnit XML and Markdown. The JSON is the same for the same run, apart from its block `environment`."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from glob import escape as escape_glob
from importlib.metadata import PackageNotFoundError, version
from typing import Final
from xml.etree import ElementTree

from sonnx.spec import digests
from sonnx.spec.library import specification
from sonnx.spec.terminal import inert

from ..deviations.standing import Recorded
from ..differential.outcomes import Class
from .bound import STATEMENT, accuracies
from .known import FINDINGS, cited, entries, named, stands_out, told
from .records import Record

# ---- Figures ------------------------------------------------------------------------------------


CLASSES: Final = tuple(it.value for it in Class)
WORST: Final = 20
"""The number of the worst cases of an engine that are listed where there is little room."""
STEPS: Final = ("0", "1", "2-3", "4-15", "16-255", "256 and more")
"""Distances in numbers of the type."""
PARTS: Final = ("0", "up to 1/4", "up to 1/2", "up to 3/4", "up to 1", "beyond")
"""Distances as parts of the bound."""


@dataclass(frozen=True, slots=True)
class EngineSummary:
    """One engine. classes: the cases of each class, all classes in order. kinds: of refusals and of what the engine
    did elsewhere, by class. operators: the classes of each operator and version. steps, parts: how many compared
    cases have their greatest distance there. worst: all mismatches and crashes, those first that the ledger does not
    know, then the greatest ratio. recorded: how many cases stand so to the ledger; unknown: those that stand out, gone:
    those whose entry no longer shows; all three are empty for an engine of which the ledger does not speak.
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
        yield f"not known as they are: {_listed([it.case for it in summary.unknown])}"
    if summary.gone:
        yield f"entries that no longer show: {_listed([cited(it.entry, it.engine) for it in summary.gone])}"


def _listed(names: Sequence[str]) -> str:
    """The first names; the JSON has all."""
    more = len(names) - WORST
    return ", ".join(names[:WORST]) + (f", and {more} more" if more > 0 else "")


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
        tuple(sorted(bad, key=lambda it: (not stands_out(it), -_ratio(it), it.case))),
        Counter(it.why for it in records if it.outcome == Class.NOT_COMPARED),
        Counter(it.recorded for it in records if it.recorded),
        tuple(it for it in records if it.recorded and stands_out(it)),
        tuple(it for it in records if it.recorded == Recorded.GONE),
    )


def _kind(record: Record) -> str:
    """The engine's own kind of outcome; outside the domain also that it gave values."""
    return record.kind or ("gives values" if record.outcome == Class.OUTSIDE else "")


def _spread(labels: tuple[str, ...], values: Iterable[str]) -> Mapping[str, int]:
    counted = Counter(values)
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


# ---- JSON ---------------------------------------------------------------------------------------


SCHEMA: Final = "sonnx-conformance/1"


@dataclass(frozen=True, slots=True)
class Conformance:
    """A run. engines: names and versions, in order. suites: as they were named. environment: the machine and what is
    installed, with the digests of the specification and of this package. every_node: nodes were judged also where the
    outputs are the definition's. missing: how many cases an interrupt has left out."""

    engines: tuple[tuple[str, str], ...]
    suites: tuple[str, ...]
    records: tuple[Record, ...]
    environment: Mapping[str, str]
    every_node: bool = False
    missing: int = 0

    @property
    def summaries(self) -> tuple[EngineSummary, ...]:
        """The figures of each engine."""
        return summarized(self.records, [name for name, _ in self.engines])


def environment() -> dict[str, str]:
    """The environment of a run."""
    facts = {
        "platform": platform.platform(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cpus": str(os.cpu_count()),
    }
    for package in ("sonnx", "onnx", "numpy", "ml_dtypes", "onnxruntime"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    facts["specification"] = f"sha256 {digests.of_texts(specification())}"
    facts["modules and grammars of sonnx"] = f"sha256 {digests.of_code()}"
    return facts


def again(record: Record, *, every_node: bool = False) -> str:
    """The command that runs a case again, alone."""
    pattern = escape_glob(record.case.rpartition("#")[0] or record.case)
    more = ["--every-node"] if every_node else []
    named = ["--suite", record.suite, "--engine", record.engine, "--filter", pattern]
    return shlex.join(["sonnx", "conform", *named, *more])


def to_json(run: Conformance) -> str:
    """The whole run."""
    content = {
        "schema": SCHEMA,
        "environment": dict(run.environment),
        "engines": [{"name": name, "version": number} for name, number in run.engines],
        "suites": list(run.suites),
        "summary": [_summary(it) for it in run.summaries],
        "records": [_record(it, run) for it in run.records],
        "missing": run.missing,
        "bound": {"statement": list(STATEMENT), "accuracies": [asdict(it) for it in accuracies()]},
        "ledger": dict(_entries(run)),
    }
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _record(record: Record, run: Conformance) -> dict[str, str | int]:
    """The record; of a finding, with the command that runs it alone."""
    more = {"again": again(record, every_node=run.every_node)} if record.outcome in FINDINGS else {}
    return {**record.data(), **more}


def _summary(it: EngineSummary) -> dict[str, object]:
    return {
        "engine": it.engine,
        "cases": it.cases,
        "classes": dict(it.classes),
        "kinds": {f"{outcome}: {kind}": count for (outcome, kind), count in sorted(it.kinds.items())},
        "operators": {operator: dict(sorted(counts.items())) for operator, counts in it.operators.items()},
        "ulps": dict(it.steps),
        "ratios": dict(it.parts),
        "ledger": {
            "counts": dict(sorted(it.recorded.items())),
            "unknown": [one.case for one in it.unknown],
            "gone": [one.entry for one in it.gone],
        },
    }


def _entries(run: Conformance) -> Iterator[tuple[str, object]]:
    """The entries of the ledger that records name, by name."""
    known = entries()
    for name in sorted({name for it in run.records for name in named(it)} & known.keys()):
        entry = known[name]
        yield name, {
            "sentence": entry.sentence,
            "cites": entry.cites,
            "basis": entry.basis,
            "deviations": [
                {"runtime": it.runtime, "versions": list(it.versions), "gone": list(it.gone),
                 "sentence": it.sentence, "source": it.source, **({"where": it.where} if it.where else {}),
                 **({"passes": list(it.passes)} if it.passes else {})}
                for it in entry.deviations
            ],
        }  # fmt: skip


# ---- JUnit ------------------------------------------------------------------------------------


def to_junit(run: Conformance) -> str:
    """One suite for each engine: a mismatch is a failure, a crash and a harness error are errors, the rest that was not
    compared is skipped."""
    root = ElementTree.Element("testsuites", name="sonnx conform")
    for summary in run.summaries:
        records = [it for it in run.records if it.engine == summary.engine]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=summary.engine,
            tests=str(len(records)),
            failures=str(summary.classes[Class.MISMATCH]),
            errors=str(summary.classes[Class.CRASH] + summary.classes[Class.HARNESS]),
            skipped=str(sum(1 for it in records if it.outcome in SKIPPED)),
        )
        for it in records:
            case = ElementTree.SubElement(suite, "testcase", name=_xml(it.case), classname=_xml(it.about or "model"))
            known = f"[{told(it)}]" if it.recorded else ""
            alone = f"[again: {again(it, every_node=run.every_node)}]" if it.outcome in FINDINGS else ""
            said = _xml(" ".join(filter(None, (it.kind, it.why, it.node, it.worst, known, alone))))
            if it.outcome == Class.MISMATCH:
                ElementTree.SubElement(case, "failure", message=said, type=it.outcome)
            elif it.outcome in (Class.CRASH, Class.HARNESS):
                ElementTree.SubElement(case, "error", message=said, type=it.outcome)
            elif it.outcome in SKIPPED:
                ElementTree.SubElement(case, "skipped", message=f"{it.outcome}: {said}")
        if lines := list(ledger_lines(summary)):
            ElementTree.SubElement(suite, "system-out").text = _xml("\n".join(lines))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


SKIPPED: Final = frozenset((Class.REFUSED.value, Class.OUTSIDE.value, Class.NOT_COMPARED.value))


def _xml(text: str) -> str:
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", inert(text))


# ---- Markdown ---------------------------------------------------------------------------------


def to_markdown(run: Conformance) -> str:
    """The figures for a pull request: classes by engine, what was refused and why, the worst cases."""
    return "\n".join(_markdown(run)) + "\n"


def _markdown(run: Conformance) -> Iterator[str]:
    yield "# Conformance"
    yield ""
    left = f" Interrupted: {run.missing} cases are missing." if run.missing else ""
    yield f"Suites: {', '.join(_cell(it) for it in run.suites)}.{left}"
    yield ""
    yield from _row(["engine", "cases", *CLASSES])
    yield from _row(["---", *["---:"] * (len(CLASSES) + 1)])
    versions = dict(run.engines)
    for it in run.summaries:
        name = f"{it.engine} {versions[it.engine]}".strip()
        yield from _row([name, str(it.cases), *(str(it.classes[c]) for c in CLASSES)])
    for it in run.summaries:
        if it.kinds:
            yield ""
            kinds = (f"{count} {outcome} ({kind})" for (outcome, kind), count in sorted(it.kinds.items()))
            yield f"{_cell(it.engine)}: {', '.join(kinds)}."
        for line in ledger_lines(it):
            yield ""
            yield f"{_cell(it.engine)}, {_cell(line)}."
    for it in run.summaries:
        if it.worst:
            yield ""
            yield f"## {_cell(it.engine)}: what does not conform"
            yield ""
            yield from _row(["case", "class", "node", "why", "element", "ledger", "again"])
            yield from _row(["---"] * 7)
            for bad in it.worst[:WORST]:
                alone = again(bad, every_node=run.every_node)
                what = bad.operator or bad.kind
                yield from _row([bad.case, bad.outcome, what, bad.why, bad.worst, told(bad), alone])
            if len(it.worst) > WORST:
                yield ""
                yield f"{len(it.worst) - WORST} more are in the JSON and on the page."
    yield ""
    yield "## The bound"
    for paragraph in STATEMENT:
        yield ""
        yield _cell(paragraph)
    yield ""
    yield _cell("; ".join(f"{name}: {value}" for name, value in sorted(run.environment.items())))


def _row(cells: Sequence[str]) -> Iterator[str]:
    yield f"| {' | '.join(_cell(it) for it in cells)} |"


def _cell(text: str) -> str:
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", inert(text).replace("\n", " "))
