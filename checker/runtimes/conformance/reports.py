"""A run as JSON, JUnit XML and Markdown. The JSON is the same for the same run, apart from its block `environment`."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final
from xml.etree import ElementTree

from sonnx.spec.terminal import inert

from ..differential.outcomes import Class
from .records import Record
from .summary import CLASSES, EngineSummary, summarized

SCHEMA: Final = "sonnx-conformance/1"


@dataclass(frozen=True, slots=True)
class Conformance:
    """A run. engines: names and versions, in order. suites: as they were named."""

    engines: tuple[tuple[str, str], ...]
    suites: tuple[str, ...]
    records: tuple[Record, ...]
    environment: Mapping[str, str]

    @property
    def summaries(self) -> tuple[EngineSummary, ...]:
        """The figures of each engine."""
        return summarized(self.records, [name for name, _ in self.engines])


def environment() -> dict[str, str]:
    """Where a run took place."""
    found = {
        "platform": platform.platform(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cpus": str(os.cpu_count()),
    }
    for package in ("sonnx", "onnx", "numpy", "ml_dtypes", "onnxruntime"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def to_json(run: Conformance) -> str:
    """The whole run."""
    content = {
        "schema": SCHEMA,
        "environment": dict(run.environment),
        "engines": [{"name": name, "version": number} for name, number in run.engines],
        "suites": list(run.suites),
        "summary": [_summary(it) for it in run.summaries],
        "records": [it.data() for it in run.records],
    }
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _summary(it: EngineSummary) -> dict[str, object]:
    return {
        "engine": it.engine,
        "cases": it.cases,
        "classes": dict(it.classes),
        "kinds": {f"{outcome}: {kind}": count for (outcome, kind), count in sorted(it.kinds.items())},
        "operators": {operator: dict(sorted(counts.items())) for operator, counts in it.operators.items()},
        "ulps": dict(it.steps),
        "ratios": dict(it.parts),
    }


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
            said = _xml(" ".join(filter(None, (it.kind, it.why, it.node, it.worst))))
            if it.outcome == Class.MISMATCH:
                ElementTree.SubElement(case, "failure", message=said, type=it.outcome)
            elif it.outcome in (Class.CRASH, Class.HARNESS):
                ElementTree.SubElement(case, "error", message=said, type=it.outcome)
            elif it.outcome in SKIPPED:
                ElementTree.SubElement(case, "skipped", message=f"{it.outcome}: {said}")
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
    yield f"Suites: {', '.join(_cell(it) for it in run.suites)}."
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
    for it in run.summaries:
        if it.worst:
            yield ""
            yield f"## {_cell(it.engine)}: what does not conform"
            yield ""
            yield from _row(["case", "class", "node", "why", "element"])
            yield from _row(["---"] * 5)
            for bad in it.worst:
                yield from _row([bad.case, bad.outcome, bad.operator or bad.kind, bad.why, bad.worst])


def _row(cells: Sequence[str]) -> Iterator[str]:
    yield f"| {' | '.join(_cell(it) for it in cells)} |"


def _cell(text: str) -> str:
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", inert(text).replace("\n", " "))
