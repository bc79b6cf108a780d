"""A user's operator is a file: the machine, the fast path and the certifier take its meaning from there, and say so."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from own_operators import TEXT, model, nothing_added
from sampling import left
from sonnx.checker.rechecker.replay import Outcome, Subject, compared
from sonnx.semantics.errors import Unsupported
from sonnx.spec import cli


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the text and an input."""
    (tmp_path / "own.sonnx").write_text(TEXT)
    np.save(tmp_path / "x.npy", np.array([[1, -2, 3]], np.float32))
    return tmp_path


def sonnx(folder: Path, *arguments: str) -> CompletedProcess[str]:
    """`sonnx ARGUMENTS` in this process, as if it began here: in the folder, and nothing is added yet."""
    out, err = io.StringIO(), io.StringIO()
    with nothing_added(folder), redirect_stdout(out), redirect_stderr(err):
        code = cli.run([*arguments])
    return CompletedProcess([*arguments], code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize(("stated", "factor"), [({}, 2.5), ({"alpha": 4.0}, 4.0)])
def test_the_machine_and_the_fast_path_run_the_text(folder: Path, stated: dict[str, object], factor: float) -> None:
    for engine in ("machine", "numpy"):
        arguments = ["--input", "x=x.npy", "--engine", engine, "--output", f"{engine}.npz"]
        done = sonnx(folder, "--spec", "own.sonnx", "run", model(folder, **stated), *arguments)
        assert done.returncode == 0, done.stderr
        assert np.load(folder / f"{engine}.npz")["y"].tolist() == [[factor, 0.0, 3 * factor]]


def test_a_node_that_breaks_a_requirement_of_the_text_is_stuck(folder: Path) -> None:
    done = sonnx(folder, "--spec", "own.sonnx", "run", model(folder, alpha=-1.0), "--input", "x=x.npy")
    assert done.returncode == 1
    assert "alpha is positive." in done.stdout + done.stderr


def test_an_attribute_that_the_text_does_not_declare_is_refused(folder: Path) -> None:
    done = sonnx(folder, "--spec", "own.sonnx", "run", model(folder, beta=1.0), "--input", "x=x.npy")
    assert done.returncode == 1
    assert "beta" in done.stdout + done.stderr


def test_the_check_of_a_trace_names_the_text_by_which_values_were_recomputed(folder: Path) -> None:
    path = model(folder)
    assert sonnx(folder, "--spec", "own.sonnx", "run", path, "--random", "1", "--trace", "t").returncode == 0
    done = sonnx(folder, "--spec", "own.sonnx", "replay", "t", path, "--check")
    assert done.stdout.startswith("VALID: 2 steps")
    assert f"text own.sonnx, SHA-256 {hashlib.sha256(TEXT.encode()).hexdigest()}" in done.stdout
    assert sonnx(folder, "replay", "t", path, "--check").returncode == 3


def test_the_report_names_what_was_added(folder: Path) -> None:
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    path = model(folder)
    shown = sonnx(folder, "--spec", "own.sonnx", "certify", path)
    assert f"added   own.sonnx, a text that is not of the specification, sha256 {digest}" in shown.stdout
    data = json.loads(sonnx(folder, "--spec", "own.sonnx", "certify", path, "--format", "json").stdout)
    assert data["verdict"] == "CONFORMS"
    assert data["added"] == [{"name": "own.sonnx", "sha256": digest}]
    assert any("sonnx definedness" in it for it in data["not_examined"])
    violated = sonnx(folder, "--spec", "own.sonnx", "certify", model(folder, alpha=-1.0), "--format", "json")
    assert [
        (it["id"], it["verdict"]) for it in json.loads(violated.stdout)["rules"] if it["verdict"] == "violated"
    ] == [("com.example::Scale-1/positive", "violated")]


def test_without_the_file_the_verdict_is_open(folder: Path) -> None:
    data = json.loads(sonnx(folder, "certify", model(folder), "--format", "json").stdout)
    assert (data["verdict"], "added" in data) == ("UNDECIDED", False)
    untyped = sonnx(folder, "certify", model(folder, declared=False), "--format", "json")
    assert json.loads(untyped.stdout)["verdict"] == "UNDECIDED"


def test_the_text_gives_the_types_that_a_model_does_not_declare(folder: Path) -> None:
    untyped = sonnx(folder, "--spec", "own.sonnx", "certify", model(folder, declared=False), "--format", "json")
    assert json.loads(untyped.stdout)["verdict"] == "CONFORMS"


def test_a_certificate_that_rests_on_an_added_text_is_not_confirmed_without_it(folder: Path) -> None:
    path = model(folder)
    assert sonnx(folder, "--spec", "own.sonnx", "certify", path, "--certificate", "c.json").returncode == 0
    done = sonnx(folder, "recheck", "c.json", path)
    assert done.returncode == 3
    assert done.stdout.startswith('NOT-CHECKED\n  the certificate rests on the text "own.sonnx" (SHA-256 ')
    assert sonnx(folder, "--spec", "own.sonnx", "recheck", "c.json", path).stdout == "CONFIRMED\n"
    (folder / "own.sonnx").write_text(TEXT.replace("2.5", "3.5"))
    done = sonnx(folder, "--spec", "own.sonnx", "recheck", "c.json", path)
    assert done.stdout.startswith('NOT-CHECKED\n  the added text "own.sonnx" is not the one that was certified with')


@pytest.mark.parametrize("drawn", ["uniform(d)", left("drawn(d)")])
def test_an_operator_whose_text_draws_is_not_deterministic(folder: Path, drawn: str) -> None:
    text = TEXT.replace("  Y[", f"  let u = {drawn}\n  Y[").replace("X[i] *", "cast(T, u[i]) *")
    define = 'define drawn(s: list Int): Array Element "Drawn." = uniform(s)\n\n' if drawn == "drawn(d)" else ""
    (folder / "own.sonnx").write_text(define + text)
    path = model(folder)
    done = sonnx(folder, "--spec", "own.sonnx", "certify", path, "--certificate", "c.json")
    assert (done.returncode, "sonnx R2 violated" in done.stdout) == (1, True), done.stdout + done.stderr
    arguments = ["--spec", "own.sonnx", "run", path, "--input", "x=x.npy"]
    # in another process: this one has compiled another text of the name
    command = [sys.executable, "-c", "from sonnx.spec.cli import main; main()", *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert "random results drawn from seed 0: com.example::Scale" in ran.stdout + ran.stderr
    assert sonnx(folder, "--spec", "own.sonnx", "recheck", "c.json", path).stdout == "CONFIRMED\n"


def test_the_digest_of_a_text_is_that_of_its_file_whatever_ends_the_lines(folder: Path) -> None:
    data, path = TEXT.replace("\n", "\r\n").encode(), model(folder)
    (folder / "own.sonnx").write_bytes(data)
    done = sonnx(folder, "--spec", "own.sonnx", "certify", path, "--certificate", "c.json")
    assert f"sha256 {hashlib.sha256(data).hexdigest()}" in done.stdout
    assert sonnx(folder, "--spec", "own.sonnx", "recheck", "c.json", path).stdout == "CONFIRMED\n"
    (folder / "own.sonnx").write_text(TEXT)
    done = sonnx(folder, "--spec", "own.sonnx", "recheck", "c.json", path)
    assert done.stdout.startswith('NOT-CHECKED\n  the added text "own.sonnx" is not the one that was certified with')
    (folder / "own.sonnx").write_bytes(data.replace(b"\n", b""))
    done = sonnx(folder, "--spec", "own.sonnx", "certify", path)
    assert (done.returncode, "end lines with a line feed" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("float = 2.5", "int = " + "9" * 26),
        TEXT.replace("alpha > 0", "alpha > " + "9" * 5000),
        TEXT.replace("alpha > 0", "not " * 500 + "alpha > 0"),
    ],
)
def test_the_recheck_does_not_confirm_what_the_language_refuses(
    folder: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model(folder)
    assert sonnx(folder, "--spec", "own.sonnx", "certify", path, "--certificate", "c.json").returncode == 0
    before = hashlib.sha256(TEXT.encode()).hexdigest()
    (folder / "own.sonnx").write_text(text)
    stated = (folder / "c.json").read_text().replace(before, hashlib.sha256(text.encode()).hexdigest())
    monkeypatch.setenv("SONNX_SPEC", str(folder / "own.sonnx"))
    try:
        outcome = compared(json.loads(stated), Subject(folder / path)).outcome
    except Unsupported:
        outcome = Outcome.NOT_CHECKED
    assert outcome != Outcome.CONFIRMED


def test_the_recheck_takes_added_texts_from_the_settings_as_certify_does(folder: Path) -> None:
    path = model(folder)
    (folder / "texts").mkdir()
    (folder / "own.sonnx").rename(folder / "texts" / "own.sonnx")
    (folder / "sonnx.toml").write_text('spec = "texts/own.sonnx"\n')
    assert sonnx(folder, "certify", path, "--certificate", "c.json").returncode == 0
    assert sonnx(folder, "recheck", "c.json", path).stdout == "CONFIRMED\n"
    (folder / "sonnx.toml").write_text("")
    done = sonnx(folder, "recheck", "c.json", path)
    assert done.stdout.startswith("NOT-CHECKED\n  the certificate rests on the text")
    assert "own.sonnx" in done.stdout
    (folder / "sonnx.toml").write_text('spec = "texts/none.sonnx"\n')
    done = sonnx(folder, "recheck", "c.json", path)
    assert (done.returncode, done.stderr.count("\n"), "none.sonnx" in done.stderr) == (2, 1, True)


def test_conform_judges_an_engine_on_an_operator_of_a_user(folder: Path) -> None:
    path = model(folder)
    for suite in (path, "vectors"):
        arguments = (
            "conform",
            "--engine",
            "numpy",
            "--suite",
            suite,
            "--filter",
            f"*{path if suite == path else 'Scale'}*",
        )
        done = sonnx(folder, "--spec", "own.sonnx", *arguments)
        assert (done.returncode, "pass" in done.stdout, "mismatch" in done.stdout) == (0, True, False), done.stdout


def test_another_name_of_an_added_text_is_not_confirmed(folder: Path) -> None:
    path = model(folder)
    assert sonnx(folder, "--spec", "own.sonnx", "certify", path, "--certificate", "c.json").returncode == 0
    (folder / "own.sonnx").rename(folder / "other.sonnx")
    done = sonnx(folder, "--spec", "other.sonnx", "recheck", "c.json", path)
    assert done.stdout.startswith("NOT-CHECKED\n  the added text of the SHA-256")
