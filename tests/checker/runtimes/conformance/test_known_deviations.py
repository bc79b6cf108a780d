"""A report names what the ledger of deviations knows, and what it does not know stands out."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from xml.etree import ElementTree

import numpy as np
import pytest
from sonnx.checker.runtimes.conformance import running
from sonnx.checker.runtimes.conformance.known import case_of, entries, stands_out, told, with_entry
from sonnx.checker.runtimes.conformance.page import to_html
from sonnx.checker.runtimes.conformance.records import Record, record, record_from
from sonnx.checker.runtimes.conformance.reports import Conformance, ledger_lines, to_json, to_junit, to_markdown
from sonnx.checker.runtimes.conformance.running import conform
from sonnx.checker.runtimes.conformance.suites import references
from sonnx.checker.runtimes.deviations.standing import is_telling, pairs
from sonnx.checker.runtimes.differential.outcomes import Case, Class, Result
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.judging import Difference, Judged, Shown
from sonnx.semantics.runtimes.engines.protocol import Failure, Kind, Source, Values
from tables import table

NAME = "Gemm-13/beta-zero"
"""NaN is due, onnxruntime and onnx.reference give 1."""
UNRECORDED = "Gemm-9/empty-sum"
"""An entry about onnxruntime only: 6 is due."""


@dataclass(frozen=True)
class Fixed:
    """An engine that gives the same, whatever it is asked."""

    done: Values | Failure
    name: str = "onnxruntime"
    version: str = "1.31.1"

    def open(self, source: Source) -> Fixed:
        return self

    def run(self, feeds: Values) -> Values | Failure:
        return self.done

    def close(self) -> None:
        pass


def matrix(value: float) -> Values:
    return {"Y": np.array([[value]], np.float32)}


def judged(engine: Fixed, name: str, monkeypatch: pytest.MonkeyPatch) -> Record:
    """The record of a case of the ledger in an engine."""
    monkeypatch.setattr(running, "_engine", lambda _: engine)
    (found,) = conform([it for it in references("ledger") if it.name == name], [engine.name])
    return found


@pytest.mark.parametrize(
    ("done", "outcome", "recorded", "out"),
    [
        (matrix(1), "mismatch", "as recorded", False),
        (matrix(np.nan), "pass", "no longer", False),
        (matrix(2), "mismatch", "in another way", True),
        (Failure(Kind.CRASH, "gone"), "crash", "in another way", True),
        (Failure(Kind.ERROR, "Fail: gone"), "refused", "in another way", False),
        (Failure(Kind.SKEW, "too old"), "refused", "", False),
    ],
)
def test_a_case_of_the_ledger_is_compared_with_its_entry(
    done: Values | Failure, outcome: str, recorded: str, out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(Fixed(done), NAME, monkeypatch)
    assert (found.outcome, found.recorded, stands_out(found)) == (outcome, recorded, out)
    assert found.entry == (NAME if recorded else "")
    assert (f"{NAME} (observed)" in told(found)) == bool(recorded)


def test_what_the_ledger_does_not_record_of_a_runtime_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = Fixed(matrix(7), "reference", "1.23.2")
    found = judged(reference, UNRECORDED, monkeypatch)
    assert (found.outcome, found.entry, found.recorded) == ("mismatch", "", "not in the ledger")
    assert stands_out(found)
    assert judged(replace(reference, done=matrix(6)), UNRECORDED, monkeypatch).recorded == ""
    other = judged(Fixed(matrix(7), "other", "1"), UNRECORDED, monkeypatch)
    assert (other.outcome, other.recorded) == ("mismatch", "")


def test_the_suite_has_every_case_of_the_ledger() -> None:
    assert [it.name for it in references("ledger")] == list(entries())
    with pytest.raises(ModelError, match="the ledger has no case 'x'"):
        case_of("x")


# ---- Elsewhere ----------------------------------------------------------------------------------


def elsewhere(expected: str, given: str, operator: str = "Gemm-13", engine: str = "onnxruntime") -> Record:
    """The record of a mismatch in another suite."""
    first = Difference((0,), Shown(expected, ""), Shown(given, ""), None, None)
    result = Result("a", engine, Class.MISMATCH, operator=operator, judged=Judged(1, outside=1, first=first))
    return annotated(result, operator)


def annotated(result: Result, about: str) -> Record:
    case = Case("a", b"", {}, {"operator": about})
    return with_entry(record("onnx", case, result), case, result, Fixed({}, result.engine))


@pytest.mark.parametrize(
    ("found", "recorded"),
    [
        (elsewhere("nan", "2.5"), "alike"),
        (elsewhere("2.5", "nan"), "not in the ledger"),
        (elsewhere("2.5", "3.5"), "not in the ledger"),
        (elsewhere("nan", "2.5", operator="Gemm-11"), "not in the ledger"),
        (elsewhere("nan", "2.5", engine="numpy"), ""),
    ],
    ids=["kind", "direction", "numbers", "version", "engine"],
)
def test_elsewhere_only_the_same_operator_and_kind_of_difference_is_alike(found: Record, recorded: str) -> None:
    assert found.recorded == recorded
    assert (NAME in found.entry) == (recorded == "alike")
    assert stands_out(found) == (recorded != "alike")


def test_two_numbers_are_like_nothing_though_an_entry_has_such_a_pair() -> None:
    entry = entries()[UNRECORDED]
    deviation = entry.deviation("onnxruntime")
    assert deviation is not None and deviation.outcome is not None
    assert pairs(entry.outcome, deviation.outcome) == {("a number", "a number")}
    assert elsewhere("6", "3", operator="Gemm-9").recorded == "not in the ledger"
    shown = {"a number": "2.5", "0": "0.0"}
    zeros = [
        (f"{it.operator}-{it.version}", pair)
        for it in entries().values()
        if (known := it.deviation("onnxruntime")) is not None and known.outcome is not None
        for pair in pairs(it.outcome, known.outcome) & {("a number", "0"), ("0", "a number")}
    ]
    assert zeros
    for operator, (due, given) in zeros:
        assert elsewhere(shown[due], shown[given], operator=operator).recorded == "not in the ledger"


@table(
    ("pair", "telling"),
    [
        (("nan", "a number"), True),
        (("0", "inf"), True),
        (("-inf", "nan"), True),
        (("-0", "0"), True),
        (("0", "a number"), False),
        (("a number", "a number"), False),
    ],
)
def test_only_what_is_no_number_and_the_other_zero_tell_a_cause(pair: tuple[str, str], telling: bool) -> None:
    assert is_telling(pair) is telling


def test_crashes_exceptions_and_broken_requirements_are_alike_by_operator() -> None:
    runtime = "onnxruntime"
    stated = [(it, it.deviation(runtime)) for it in entries().values()]
    known = [(entry, d.outcome) for entry, d in stated if d is not None and d.outcome is not None]
    crash = next(e for e, done in known if done.refused == "crash" and e.outcome.outputs is not None)
    fails = next(e for e, done in known if done.refused == "Fail" and e.outcome.outputs is not None)
    beyond = next(e for e, done in known if done.outputs is not None and e.outcome.outputs is None)
    for entry, outcome, kind, why in (
        (crash, Class.CRASH, "crash", "died"),
        (fails, Class.REFUSED, "error", "Fail: words"),
        (beyond, Class.OUTSIDE, "", f"Step/fire: {beyond.outcome.refused}"),
    ):
        about = f"{entry.operator}-{entry.version}"
        found = annotated(Result("a", runtime, outcome, kind, why), about)
        assert found.recorded == "alike" and entry.name in found.entry
        assert annotated(Result("a", runtime, outcome, kind, "other words"), "Relu-14").entry == ""
    assert annotated(Result("a", runtime, Class.REFUSED, "error", "Other: words"), fails.name.split("/")[0]).entry == ""


# ---- Reports ------------------------------------------------------------------------------------

KNOWN = elsewhere("nan", "2.5")
UNLISTED = replace(elsewhere("2.5", "3.5"), case="b")
AGAIN = replace(KNOWN, suite="ledger", case=NAME, entry=NAME, outcome="pass", recorded="no longer")
RUN = Conformance((("onnxruntime", "1.31.1"),), ("onnx",), (KNOWN, UNLISTED, AGAIN), {})


def test_every_form_names_the_entry_its_source_the_unknown_and_what_no_longer_shows() -> None:
    (summary,) = RUN.summaries
    assert list(ledger_lines(summary)) == [
        "deviations by the ledger: 1 alike, 1 no longer, 1 not in the ledger",
        "not known as they are: b",
        f"entries that no longer show: {NAME} (observed)",
    ]
    like = f"like known deviations of this operator and kind: {NAME} (observed)"
    assert [it.case for it in summary.worst] == ["b", "a"], "what is not known comes first"
    for form in (to_junit(RUN), to_markdown(RUN).replace("\\", ""), to_html(RUN)):
        for words in (like, "not in the ledger of deviations", f"entries that no longer show: {NAME} (observed)"):
            assert words in form
    messages = [it.get("message", "") for it in ElementTree.fromstring(to_junit(RUN)).iter("failure")]
    assert [like in it for it in messages] == [True, False]
    assert '<span class="unknown">not in the ledger' in to_html(RUN)
    assert f'<span class="known">{like}' in to_html(RUN)


def test_a_long_list_of_what_is_not_known_is_cut_and_says_so() -> None:
    many = replace(RUN, records=tuple(replace(UNLISTED, case=str(at)) for at in range(23)))
    (summary,) = many.summaries
    assert list(ledger_lines(summary))[1].endswith("18, 19, and 3 more")


def test_the_json_holds_the_entries_that_its_records_name() -> None:
    data = json.loads(to_json(RUN))
    assert data["summary"][0]["ledger"]["unknown"] == ["b"]
    assert data["summary"][0]["ledger"]["gone"] == [NAME]
    assert NAME in data["ledger"]
    (stated,) = (it for it in data["ledger"][NAME]["deviations"] if it["runtime"] == "onnxruntime")
    assert (stated["source"], stated["versions"]) == ("observed", ["1.31.1", "1.32.0"])
    assert [record_from(it) for it in data["records"]] == list(RUN.records)
