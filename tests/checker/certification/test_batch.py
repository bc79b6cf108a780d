"""`sonnx certify` of several models: which are meant, one exit code and one report for all, interrupts."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_calls import called
from sampling import left
from sonnx.checker.certification.batch import outcomes
from sonnx.checker.certification.examples import write
from sonnx.checker.certification.report import Report
from sonnx.semantics.errors import ModelError

SONNX = [sys.executable, "-c", "from sonnx.spec.cli import main; main()"]


def silent(_what: str, _done: int, _total: int) -> None:
    """No progress shown."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a.onnx conforms, deep/b.onnx violates, deep/c.onnx is no model; d.txt is none of the folder's models."""
    examples, target = tmp_path_factory.mktemp("examples"), tmp_path_factory.mktemp("models")
    write(examples)
    (target / "deep").mkdir()
    shutil.copy(examples / "conforming.onnx", target / "a.onnx")
    shutil.copy(examples / "working-group.onnx", target / "deep" / "b.onnx")
    (target / "deep" / "c.onnx").write_bytes(b"no model")
    shutil.copy(examples / "conforming.onnx", target / "d.txt")
    return target


def test_a_folder_gives_a_table_of_its_models_and_one_exit_code(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code, out, err = called(capsys, "certify", ".", "deep/b.onnx", "missing.onnx", "--jobs", 2)
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines() if line.startswith("│")]
    assert [row[:2] for row in rows if row[0]] == [
        ["a.onnx", "CONFORMS"],
        ["deep/b.onnx", "VIOLATES"],
        ["deep/c.onnx", "unreadable"],
        ["missing.onnx", "unreadable"],
    ]
    assert out.splitlines()[-1] == "4 models: 1 CONFORMS, 1 VIOLATES, 2 unreadable"
    assert (code, err) == (2, "")
    assert called(capsys, "certify", ".", "-q") == (2, "3 models: 1 CONFORMS, 1 VIOLATES, 1 unreadable\n", "")


def test_a_size_is_for_the_models_that_have_it_and_one_of_them_has_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "examples")
    for name in ("any-size", "conforming"):
        shutil.copy(tmp_path / "examples" / f"{name}.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert called(capsys, "certify", "*.onnx", "-q", "--size", "H=2") == (1, "2 models: 1 CONFORMS, 1 VIOLATES\n", "")
    code, _, err = called(capsys, "certify", "*.onnx", "-q", "--size", "Q=2")
    assert code == 2 and "no model has a symbolic size 'Q'" in err
    assert called(capsys, "certify", "conforming.onnx", "-q", "--size", "H=2")[0] == 2
    (tmp_path / "sonnx.toml").write_text("[sizes]\nH = 2\n")
    assert called(capsys, "certify", "conforming.onnx", "-q")[0] == 0


@pytest.mark.parametrize(
    ("names", "code"),
    [(["*.onnx"], 0), (["**/[ab].onnx"], 1), (["nothing/*.onnx"], 2), (["deep/none"], 2), (["a.onnx", "a.onnx"], 0)],
)
def test_patterns_stand_for_what_matches_them(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, names: list[str], code: int
) -> None:
    monkeypatch.chdir(folder)
    done, out, err = called(capsys, "certify", *names, "-q")
    assert done == code
    assert len((out + err).splitlines()) == 1


def test_a_folder_without_models_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = called(capsys, "certify", tmp_path)
    assert (code, out) == (2, "")
    assert f"{tmp_path}: no file *.onnx in this folder or below it" in err


def test_each_format_is_one_report_for_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three = (folder / name for name in ("a.onnx", "deep/b.onnx", "deep/c.onnx"))
    code, out, _ = called(capsys, "certify", one, two, three, "--format", "json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(it["path"], it["exit_code"]) for it in lines] == [(str(one), 0), (str(two), 1), (str(three), 2)]
    assert [it["report"] and it["report"]["verdict"] for it in lines] == ["CONFORMS", "VIOLATES", None]
    assert code == 2 and "c.onnx" in lines[2]["error"]
    alone = json.loads(called(capsys, "certify", two, "--format", "json")[1])
    assert lines[1]["report"] == alone, "a model is judged alike alone and among others"

    (run,) = json.loads(called(capsys, "certify", one, two, three, "--format", "sarif")[1])["runs"]
    places = {r["locations"][0]["physicalLocation"]["artifactLocation"]["index"] for r in run["results"]}
    assert {run["artifacts"][place]["location"]["uri"] for place in places} == {two.as_uri()}
    assert [it["verdict"] for it in run["properties"]["models"]] == ["CONFORMS", "VIOLATES"]
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"] and len(invocation["toolExecutionNotifications"]) == 1

    suites = list(ElementTree.fromstring(called(capsys, "certify", one, two, three, "--format", "junit")[1]))
    assert [suite.get("name") for suite in suites] == [str(one), str(two), str(three)]
    assert [suite.get("failures") for suite in suites] == ["0", "1", "0"]
    assert [suite.get("errors") for suite in suites] == ["0", "0", "1"]


def test_sarif_names_files_below_the_folder_by_their_relative_path(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Base names of two folders collide; services want paths relative to the sources."""
    monkeypatch.chdir(folder)
    (run,) = json.loads(called(capsys, "certify", "deep/b.onnx", "--format", "sarif")[1])["runs"]
    assert [it["location"] for it in run["artifacts"]] == [{"uri": "deep/b.onnx", "uriBaseId": "%SRCROOT%"}]
    assert "%SRCROOT%" in run["originalUriBaseIds"]


def test_html_of_several_models_is_an_index_with_a_page_for_each(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = tmp_path / "pages"
    code, out, err = called(capsys, "certify", folder, "--format", "html")
    assert (code, out) == (2, "") and "--output" in err
    assert called(capsys, "certify", folder, "--format", "html", "--output", pages) == (2, "", "")
    linked = re.findall(r'href="([^"]+)"', (pages / "index.html").read_text())
    assert len(linked) == 2 and sorted(path.name for path in pages.iterdir()) == sorted([*linked, "index.html"])
    assert "b.onnx" in (pages / linked[1]).read_text()


def test_certificates_of_several_models_lie_in_a_folder_and_are_confirmed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    called(capsys, "certify", ".", "--certificate", tmp_path, "-q")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")) == [
        "a.onnx.json",
        "deep/b.onnx.json",
    ]
    assert called(capsys, "recheck", tmp_path / "deep" / "b.onnx.json", "deep/b.onnx")[:2] == (0, "CONFIRMED\n")


def test_standard_input_is_a_model(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = (folder / "a.onnx").read_bytes()
    done = subprocess.run([*SONNX, "certify", "-", "-q"], input=model, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"stdin CONFORMS to sonnx.\n", b"")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no model")))
    code, _, err = called(capsys, "certify", "-")
    assert code == 2
    assert err.startswith("error: standard input") and err.count("\n") == 1
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(model)))
    code, out, _ = called(capsys, "certify", "-", folder / "deep" / "b.onnx", "-q")
    assert (code, out) == (1, "2 models: 1 CONFORMS, 1 VIOLATES\n")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), left((signal.SIGTERM, 143))])
def test_after_an_interrupt_the_report_has_what_is_done_and_no_process_is_left(
    folder: Path, tmp_path: Path, stop: signal.Signals, code: int
) -> None:
    many = [folder / "a.onnx"] * 2 + [tmp_path / f"{k}.onnx" for k in range(200)]
    for path in many[2:]:
        os.link(folder / "a.onnx", path)
    report = tmp_path / "report.jsonl"
    arguments = [*SONNX, "certify", "--jobs", "2", "--format", "json", "--output", str(report), *map(str, many)]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a job in the background inherits that it is ignored
    marked = {**os.environ, "MARK": str(report)}
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=marked, preexec_fn=heed) as run:
        begun = time.monotonic()
        while len(_marked(report)) < 2 and time.monotonic() - begun < 60:  # until a model is being judged
            time.sleep(0.1)
        time.sleep(1)
        run.send_signal(stop)
        _, err = run.communicate(timeout=60)
    done = len(report.read_text().splitlines())
    assert run.returncode == code
    assert err == f"interrupted: {done} of 201 models were judged\n"
    assert done < 201
    assert _marked(report) == []


def _marked(report: Path) -> list[Path]:
    """The processes that have the path in their environment."""
    return [it for it in Path("/proc").iterdir() if it.name.isdigit() and str(report) in _environment(it)]


def _environment(process: Path) -> str:
    try:
        return (process / "environ").read_text(errors="replace")
    except OSError:
        return ""


def test_work_that_is_interrupted_is_ended_with_the_processes_that_it_started(tmp_path: Path) -> None:
    started = tmp_path / "started"

    def judge(_: str) -> tuple[Report, bytes]:
        child = subprocess.Popen(["sleep", "60"])
        started.write_text(f"{os.getpid()} {child.pid}")
        child.wait()
        raise AssertionError

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(outcomes(["a", "b"], judge, 1, silent))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert [pid for pid in started.read_text().split() if "sleep" in _command(pid) or "python" in _command(pid)] == []


def _command(pid: str) -> str:
    try:
        return (Path("/proc") / pid / "cmdline").read_text()
    except OSError:
        return ""


def test_a_process_that_dies_is_an_outcome_and_stops_no_other(folder: Path) -> None:
    def judge(name: str) -> tuple[Report, bytes]:
        if name == "dies":
            os._exit(9)
        raise ModelError("no model")

    assert [(it.name, it.code) for it in outcomes(["dies", "b"], judge, 2, silent)] == [("dies", 4), ("b", 2)]
