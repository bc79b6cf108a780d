"""Conformance runs: classes add up, an interrupted run goes on, a dying worker loses one case, reports are sound."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree

import pytest
from onnx import parser
from planted_engines import Planted, one_bit
from sonnx.checker.runtimes.conformance import running, suites, vectors
from sonnx.checker.runtimes.conformance.page import to_html
from sonnx.checker.runtimes.conformance.records import Record, record_from
from sonnx.checker.runtimes.conformance.reports import Conformance, again, to_json, to_junit, to_markdown
from sonnx.checker.runtimes.conformance.running import Journal, Stopped, conform
from sonnx.checker.runtimes.conformance.suites import Reference, loaded, references
from sonnx.checker.runtimes.conformance.vectors import write
from sonnx.semantics.model.values import identical
from sonnx.semantics.runtimes.engines.own import limited_run
from sonnx.semantics.runtimes.engines.protocol import Failure
from sonnx.semantics.runtimes.engines.registry import engine
from sonnx.semantics.runtimes.engines.sources import model_of
from stored_suites import small_suite

HOSTILE = "</td><img src=x onerror=alert(1)>\x1b[31m"


@pytest.fixture
def suite(tmp_path: Path) -> str:
    return small_suite(tmp_path / "suite")


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine `planted` has a fault in Neg;"""
    faulty = Planted({"Neg": one_bit})
    monkeypatch.setattr(running, "_engine", lambda name: faulty if name == "planted" else engine(name))


def test_every_case_has_one_class_in_each_engine(suite: str) -> None:
    records = conform(references(suite), ["machine", "planted"])
    assert [(it.case, it.engine, it.outcome) for it in records] == [
        ("a/model.onnx", "machine", "pass"),
        ("a/model.onnx", "planted", "mismatch"),
        ("b/model.onnx", "machine", "pass"),
        ("b/model.onnx", "planted", "pass"),
        ("c/model.onnx", "machine", "pass"),
        ("c/model.onnx", "planted", "pass"),
        ("d/model.onnx", "machine", "pass"),
        ("d/model.onnx", "planted", "pass"),
    ]  # the last bit of a NaN means nothing
    run = Conformance((("machine", "1"), ("planted", "1")), (suite,), records, {})
    for summary in run.summaries:
        assert sum(summary.classes.values()) == summary.cases == 4
        assert sum(sum(counts.values()) for counts in summary.operators.values()) == 4
    wrong = records[1]
    assert (wrong.operator, wrong.tensor, wrong.ulps, wrong.outside) == ("Neg-13", "y", "1", 1)
    assert wrong.worst.startswith("element [1]: expected -1 (bf800000), found ")


def test_a_fault_that_does_not_reach_the_outputs_is_found_where_every_node_is_judged(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (int64[1] y) { a = Neg(x)  y = Shape(a) }'
    (tmp_path / "net.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    cases = references(str(tmp_path))
    assert [it.outcome for it in conform(cases, ["planted"])] == ["pass"]
    (found,) = conform(cases, ["planted"], every_node=True)
    assert (found.outcome, found.operator) == ("mismatch", "Neg-13")


def test_an_interrupted_run_goes_on_where_it_was(suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "journal")
    cases = references(suite)
    first = conform(cases[:2], ["machine"], journal=journal)
    with journal.path.open("a") as file:
        file.write('{"suite": "cut off')
    asked: list[str] = []
    real = running.run_reference

    def watched(reference: Reference, task: running.Task) -> tuple[Record, ...]:
        asked.append(reference.name)
        return real(reference, task)

    monkeypatch.setattr(running, "run_reference", watched)
    whole = conform(cases, ["machine"], journal=journal)
    assert asked == ["c/model.onnx", "d/model.onnx"]
    assert whole[:2] == first
    assert len(whole) == 4
    asked.clear()
    other = Journal(journal.path, {"machine": "another version"})
    assert conform(cases, ["machine"], journal=other) == whole
    assert len(asked) == 4


def test_a_suite_that_cannot_be_read_is_a_harness_error_of_that_case(suite: str) -> None:
    (Path(suite) / "broken.onnx").write_bytes(b"no model")
    outcomes = {it.case: it.outcome for it in conform(references(suite), ["machine"])}
    assert outcomes["broken.onnx"] == "harness error"
    assert sum(it == "pass" for it in outcomes.values()) == 4


def test_the_tests_of_the_wheel_are_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "KINDS", ("simple", "pytorch-operator"))  # the others take long to load
    found = references("onnx")
    assert len(found) == len({it.name for it in found}) > 50
    chosen = next(it for it in found if it.name == "pytorch-operator/test_operator_exp")
    (case,) = loaded(chosen)
    assert case.tags["operator"] == "Exp-6"
    assert case.expected is not None
    assert conform([chosen], ["machine"])[0].outcome == "pass"


def test_a_worker_takes_over_the_tests_that_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "KINDS", ("simple",))
    first, *_ = references("onnx")
    tests = suites.packed()
    monkeypatch.setattr(suites, "_made", {})
    monkeypatch.setattr("onnx.backend.test.loader.load_model_tests", lambda **_: ())
    with pytest.raises(IndexError):
        loaded(first)
    monkeypatch.setattr(suites, "_made", {})
    suites.unpack(tests)
    assert [it.name for it in loaded(first)] == [first.name]


# ---- Reports ----------------------------------------------------------------------------------


@pytest.fixture
def run(suite: str) -> Conformance:
    records = conform(references(suite), ["machine", "planted"])
    odd = replace(records[1], case=HOSTILE, why=HOSTILE, operator=HOSTILE, about=HOSTILE)
    return Conformance((("machine", "1"), ("planted", HOSTILE)), ("suite",), (*records, odd), {"cpu": HOSTILE})


def test_the_json_holds_every_record_and_differs_in_its_environment_only(run: Conformance) -> None:
    text = to_json(run)
    assert text == to_json(run)
    data = json.loads(text)
    assert tuple(record_from(it) for it in data["records"]) == run.records
    other = json.loads(to_json(replace(run, environment={"cpu": "another"})))
    assert {key for key in data if data[key] != other[key]} == {"environment"}
    assert [sum(it["classes"].values()) for it in data["summary"]] == [it["cases"] for it in data["summary"]] == [4, 5]


def test_the_junit_file_is_xml_and_counts_what_it_holds(run: Conformance) -> None:
    root = ElementTree.fromstring(to_junit(run))
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite)
        assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
    assert [suite.get("failures") for suite in root] == ["0", "2"]


def test_the_page_loads_nothing_and_names_in_models_do_nothing(run: Conformance) -> None:
    page = to_html(run)
    assert "<img" not in page
    assert "<script" not in page
    assert "\x1b" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert page.count("<svg") >= 2
    assert "<table" in page


def test_the_page_says_how_a_case_is_run_again(suite: str) -> None:
    records = conform(references(suite), ["machine", "planted"])
    words = shlex.split(again(records[1]))
    assert words[:2] == ["sonnx", "conform"]
    named = dict(zip(words[2::2], words[3::2], strict=True))
    chosen = [it for it in references(named["--suite"]) if fnmatch(it.name, named["--filter"])]
    assert conform(chosen, [named["--engine"]]) == records[1:2]
    odd = replace(records[1], case="a [b]*;c")
    assert fnmatch("a [b]*;c", shlex.split(again(odd))[-1])


def test_each_form_states_the_bound_and_how_a_mismatch_is_run_alone(run: Conformance) -> None:
    from xml.sax.saxutils import unescape as plain

    from sonnx.checker.runtimes.conformance.bound import STATEMENT, accuracies

    run = replace(run, records=run.records[:-1])
    (bad,) = (it for it in run.records if it.outcome == "mismatch")
    data = json.loads(to_json(run))
    assert [it["case"] for it in data["records"] if "again" in it] == [bad.case]
    assert [it["again"] for it in data["records"] if "again" in it] == [again(bad)]
    assert tuple(data["bound"]["statement"]) == STATEMENT
    stated = {it["function"]: (it["ulps"], it["source"]) for it in data["bound"]["accuracies"]}
    assert stated["exp"][0] == 3 and "OpenCL C 3.0" in stated["exp"][1]
    assert len(stated) == len(list(accuracies()))
    page = to_html(run)
    assert "OpenCL C 3.0, section 7.4, exp" in page and "ONNX states no accuracy" in page
    for text in (page, to_junit(run), to_markdown(run).replace("\\", "")):
        assert again(bad) in plain(text).replace("&#39;", "'").replace("&#34;", '"')


def test_an_interrupted_run_gives_what_is_done(suite: str) -> None:
    cases = references(suite)

    def interrupt(done: int, _total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as stopped:
        conform(cases, ["machine"], progress=interrupt)
    assert [it.case for it in stopped.value.records] == ["a/model.onnx", "b/model.onnx"]
    assert stopped.value.missing == 2


def test_the_markdown_keeps_its_table_whatever_the_names(run: Conformance) -> None:
    lines = to_markdown(replace(run, suites=("a|b",))).splitlines()
    widths = {line.replace("\\|", "").count("|") for line in lines if line.startswith("| ") and "pass" not in line}
    assert widths <= {8, 11}
    assert "\x1b" not in "".join(lines)


def test_the_command_writes_its_files(suite: str, tmp_path: Path) -> None:
    from click.testing import CliRunner
    from sonnx.checker.commands.conform import conform as command

    files = {kind: tmp_path / f"run.{kind}" for kind in ("json", "html", "junit", "markdown")}
    options = [part for kind, path in files.items() for part in (f"--{kind}", str(path))]
    done = CliRunner().invoke(command, ["--engine", "machine", "--engine", "planted", "--suite", suite, *options])
    assert done.exit_code in (1, 2), done.output  # `planted` is no engine that an entry point names
    fine = CliRunner().invoke(command, ["--engine", "machine", "--suite", suite, "--filter", "[ab]*", *options])
    assert fine.exit_code == 0, fine.output
    assert "machine" in fine.output
    assert "2 pass" in fine.output
    assert all(path.stat().st_size > 200 for path in files.values())


# ---- Vectors ----------------------------------------------------------------------------------


def test_every_version_of_every_operator_that_equations_define_has_vectors() -> None:
    subjects = vectors.subjects()
    assert {("Softmax", 11), ("Softmax", 13), ("BatchNormalization", 9), ("Conv", 1), ("Conv", 11)} <= set(subjects)
    names = list(vectors.names())
    assert len(names) == len(set(names))
    edges = [name for name in names if "." not in name.rpartition("/")[2]]
    assert len(edges) == vectors.EACH * len(subjects)
    assert {"Softmax-11/float.1", "Softmax-11/double.0", "MaxPool-12/int8.0"} <= set(names)


def test_a_vector_is_the_same_each_time_and_its_version_is_in_force() -> None:
    first, again = vectors.vector("Softmax-11/0"), vectors.vector("Softmax-11/0")
    assert first is not None
    assert again is not None
    assert first.source == again.source
    assert first.tags["opset"] == "11"


def test_written_vectors_are_a_suite_that_the_machine_passes(tmp_path: Path) -> None:
    for name in ("Relu-6/0", "Relu-14/1", "Gather-13/0", "Cast-13/2", "SequenceConstruct-11/0"):
        found = vectors.vector(name)
        assert found is not None, name
        write(found, tmp_path)
    records = conform(references(str(tmp_path)), ["machine"])
    assert [it.outcome for it in records] == ["pass"] * 5
    for reference in references(str(tmp_path)):
        (case,) = loaded(reference)
        done = limited_run(model_of(case.source), case.feeds)
        assert not isinstance(done, Failure)
        assert case.expected is not None
        assert all(identical(case.expected[name], done[name]) for name in done)


def test_each_requirement_has_a_vector_that_breaks_it_and_none_of_them_is_written(tmp_path: Path) -> None:
    from click.testing import CliRunner
    from sonnx.checker.commands.vectors import vectors as command

    broken = [name for name in vectors.names() if name.startswith("Div-14/outside.")]
    assert broken == ["Div-14/outside.0", "Div-14/outside.1", "Div-14/outside.2"]
    assert all(case is None or case.expected is None for case in map(vectors.vector, broken))
    records = conform([Reference("vectors", name, name) for name in broken], ["machine"])
    assert {it.outcome for it in records} == {"outside the domain"}
    sentences = "broadcast", "No integer is divided by 0.", "The least integer of a signed type is not divided by -1."
    for it in records:
        assert sentences[int(it.case[-1])] in it.why
    done = CliRunner().invoke(command, [str(tmp_path), "--filter", "Div-14/[0o]*"])
    assert done.exit_code == 0, done.output
    assert [it.name for it in tmp_path.iterdir()] == ["Div-14-0"]
