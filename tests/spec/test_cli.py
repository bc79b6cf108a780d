"""The frame of the command line: subcommands, exit codes, messages, pipes."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from functools import cache, partial
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import rich_click as click
from sampling import left
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.spec import cli
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import File
from sonnx.spec.parsed import read_texts, unit
from sonnx.spec.render.site.examples import executor, read_examples
from sonnx.spec.render.site.sessions import Session
from texts import few

RUN = "import sys; from sonnx.spec.cli import main; sys.argv[0] = 'sonnx'; main()"
COMMANDS = r"""
import sys
import rich_click as click
@click.command()
@click.argument("what")
def act(what):
    if what == "wait":
        import time
        print("waiting", flush=True)
        time.sleep(60)
    if what == "flood":
        for _ in range(100_000):
            click.echo("x" * 80)
    if what == "finding":
        sys.stdout.write("found\n")
        raise SystemExit(1)
    if what == "colour":
        from rich.console import Console
        Console().print("[red]red[/]")
    if what == "console":
        from sonnx.spec.terminal import output_console
        for _ in range(10_000):
            output_console().print("x" * 80)
    if what == "fork":
        import multiprocessing, time
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        child.start()
        time.sleep(0.5)
        child.terminate()
        child.join()
        print(child.exitcode)
    if what == "line":
        click.echo("a line")
    if what == "finding in a line":
        click.echo("a line")
        raise SystemExit(1)
"""


def sonnx(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Adds a subcommand `act` that raises what it is given."""

    def add(error: BaseException) -> None:
        @click.command()
        def act() -> None:
            raise error

        class Point:
            def load(self) -> click.Command:
                return act

        points: dict[str, EntryPoint] = {"act": Point()}  # type: ignore[dict-item]
        monkeypatch.setattr(cli, "_entry_points", lambda: points)

    return add


def test_help_lists_the_subcommands_of_all_layers() -> None:
    done = sonnx("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("certify", "examples", "recheck", "spec"))


def test_help_imports_no_subcommands_work() -> None:
    parts = ("spec.library", "spec.elaborate.declarations", "checker.certification.certifier")
    heavy = ("lark", "onnx", "numpy", "z3", *(f"sonnx.{part}" for part in parts))
    program = (
        "import json, sys; from sonnx.spec.cli import run; print(json.dumps([run(['--help']), list(sys.modules)]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    assert not set(heavy) & set(modules)


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert sonnx("--version").stdout == f"sonnx, version {version('sonnx')}\n"


@pytest.mark.parametrize("arguments", [[], ["spec"]])
def test_no_command_is_a_usage_error_that_shows_the_help(arguments: list[str]) -> None:
    done = sonnx(*arguments)
    assert done.returncode == 2
    assert "Usage:" in done.stdout + done.stderr


def test_an_unknown_command_is_answered_with_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["certifi"]) == 2
    assert capsys.readouterr().err == "error: no command 'certifi': did you mean 'certify'? (see sonnx --help)\n"
    assert cli.run(["zzz"]) == 2
    assert "there are: bench, bisect, certify, " in capsys.readouterr().err


def test_an_unknown_option_is_a_usage_error_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["spec", "check", "--nope"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and "sonnx spec check --help" in error


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (ModelError("no model: x"), 2, "error: no model: x\n"),
        (Unsupported("sequences"), 3, "error: sequences\n"),
        (FileNotFoundError(2, "No such file", "a.onnx"), 2, "error: a.onnx: No such file\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (SystemExit(3), 3, ""),
        (SystemExit(None), 0, ""),
        (SystemExit("text"), 2, "text\n"),
        (click.UsageError("wrong"), 2, "error: wrong (see sonnx act --help)\n"),
        (ModelError("a\nb\x1b[31m\u202e"), 2, "error: a b\\x1b[31m\\u202e\n"),
    ],
    ids=str,
)
def test_expected_errors_end_in_one_line_and_their_exit_code(
    raising, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, shown: str
) -> None:
    raising(error)
    assert cli.run(["act"]) == code
    assert capsys.readouterr().err == shown


@pytest.mark.parametrize("error", [KeyError("x"), ZeroDivisionError("by zero"), RecursionError("deep"), MemoryError()])
def test_a_defect_is_an_internal_error_without_a_traceback(
    raising, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    raising(error)
    monkeypatch.delenv("SONNX_TRACEBACK", raising=False)
    assert cli.run(["act"]) == 4
    shown = capsys.readouterr().err
    assert shown.startswith(f"internal error: {type(error).__name__}") and shown.count("\n") == 1
    assert "SONNX_TRACEBACK=1" in shown
    monkeypatch.setenv("SONNX_TRACEBACK", "1")
    assert cli.run(["act"]) == 4
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_subclass_of_an_expected_error_is_expected(raising, capsys: pytest.CaptureFixture[str]) -> None:
    raising(type("Special", (ModelError,), {})("no model"))
    assert cli.run(["act"]) == 2


# ---- Processes --------------------------------------------------------------------------------


def act(folder: Path, what: str, **options: object) -> subprocess.Popen[str]:
    """A process that runs `sonnx act WHAT`."""
    (folder / "acting.py").write_text(COMMANDS)
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from sonnx.spec import cli; from acting import act; "
        "cli._entry_points = lambda: {'act': type('P', (), {'load': lambda self: act})()}; cli.main()"
    )
    command = [sys.executable, "-c", program, str(folder), "act", what]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a job in the background inherits that it is ignored
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, text=True, preexec_fn=heed, **pipes)  # type: ignore[call-overload,no-any-return]


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_ctrl_c_ends_in_one_line(tmp_path: Path) -> None:
    process = act(tmp_path, "wait")
    assert process.stdout is not None and process.stdout.readline() == "waiting\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error == "interrupted\n"


@pytest.mark.skipif(os.name != "posix", reason="pipes are POSIX's")
@pytest.mark.parametrize("what", ["flood", "console"])
def test_a_reader_that_goes_away_ends_quietly_and_is_no_verdict(tmp_path: Path, what: str) -> None:
    process = act(tmp_path, what)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=30) == 141
    process.stderr.close()


@pytest.mark.skipif(os.name != "posix", reason="pipes are POSIX's")
def test_a_verdict_survives_a_reader_that_is_gone(tmp_path: Path) -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    read, write = os.pipe()
    os.close(read)
    process = act(tmp_path, "finding", env=buffered, stdout=write)
    os.close(write)
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("what", ["line", "flood", "console", "finding in a line"])
def test_a_full_disk_is_one_line_and_no_verdict(tmp_path: Path, what: str) -> None:
    with Path("/dev/full").open("w") as full:
        process = act(tmp_path, what, stdout=full)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (2, "error: the output cannot be written: No space left on device\n")


def test_long_work_off_the_terminal_says_a_line_from_time_to_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sonnx.spec import terminal

    now = iter((0.0, 9.0, 10.5, 11.0, 20.5, 31.0))
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(now))
    with terminal.progress_bar() as show:
        for done in range(5):
            show("work\x1b", done, 5 * (done < 3))
    assert capsys.readouterr().err == "work\\x1b 1 of 5, 10 s\nwork\\x1b 3, 20 s\nwork\\x1b 4, 31 s\n"


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_forked_worker_that_is_ended_says_nothing(tmp_path: Path) -> None:
    process = act(tmp_path, "fork")
    assert process.communicate(timeout=60) == ("143\n", "")


def test_a_finding_of_a_command_is_its_exit_code(tmp_path: Path) -> None:
    process = act(tmp_path, "finding")
    out, error = process.communicate(timeout=30)
    assert (out, error, process.returncode) == ("found\n", "", 1)


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_a_pipe_gets_no_colours(tmp_path: Path, environment: dict[str, str]) -> None:
    process = act(tmp_path, "colour", env={**os.environ, **environment})
    assert process.communicate(timeout=30)[0] == "red\n"


# ---- Help and completion ------------------------------------------------------------------------


def commands() -> list[tuple[str, click.Command]]:
    """All commands by name, those of groups too."""
    top = click.Context(cli.sonnx)
    named = [(name, cli.sonnx.get_command(top, name)) for name in cli.sonnx.list_commands(top)]
    deeper = [
        (f"{name} {below}", group.get_command(top, below))
        for name, group in named
        if isinstance(group, click.Group)
        for below in group.list_commands(top)
    ]
    return [(name, it) for name, it in (*named, *deeper) if it is not None and not isinstance(it, click.Group)]


def test_the_help_of_every_command_has_two_examples_that_it_accepts() -> None:
    for name, command in commands():
        _, _, after = (command.help or "").partition("Examples:\n")
        lines = [line.strip() for line in after.splitlines() if line.strip()]
        assert len(lines) == 2, name
        for line in lines:
            first = shlex.split(line.partition(" > ")[0].partition(" | ")[0])
            arguments = first[1:] if first[1] != "--spec" else first[3:]
            assert first[0] == "sonnx" and arguments[: name.count(" ") + 1] == name.split(), line
            command.make_context(name, arguments[name.count(" ") + 1 :])


@pytest.mark.parametrize(
    ("shell", "here", "shown"),
    [("bash", "1", "plain,certify"), ("zsh", "1", "certify"), ("fish", "cert", "plain,certify")],
)
def test_shells_complete_commands_and_options(shell: str, here: str, shown: str) -> None:
    script = sonnx(_SONNX_COMPLETE=f"{shell}_source")
    assert script.returncode == 0 and f"_SONNX_COMPLETE={shell}_complete" in script.stdout
    if shutil.which(shell) is not None:
        read = subprocess.run([shell, "-n"], input=script.stdout, capture_output=True, text=True, timeout=60)
        assert (read.returncode, read.stderr) == (0, "")
    asked = sonnx(_SONNX_COMPLETE=f"{shell}_complete", COMP_WORDS="sonnx cert", COMP_CWORD=here)
    assert shown in asked.stdout
    word = {"fish": "--form"}.get(shell, "2")
    option = sonnx(_SONNX_COMPLETE=f"{shell}_complete", COMP_WORDS="sonnx certify --form", COMP_CWORD=word)
    assert "--format" in option.stdout


# ---- sonnx spec -------------------------------------------------------------------------------


@cache
def once(text: str, name: str) -> File:
    """What a text of the package parses to, as it lies ready there; of another one, what it parses to."""
    return unit(text, name).source() if read_texts().get(name) == text else parse(text, name)


@pytest.fixture(autouse=True)
def _no_text_of_the_package_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing all texts takes seconds; test_parsed.py does it, and compares."""
    monkeypatch.setattr("sonnx.spec.language.parse.parse", once)


@cache
def checked() -> list[str]:
    """What `sonnx spec check` prints of the shipped specification."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert cli.run(["spec", "check"]) == 0
    return out.getvalue().splitlines()


def test_spec_check_counts_the_declarations() -> None:
    lines = [line.split() for line in checked()]
    counted = {line[0]: int(line[-1]) for line in lines[:11]}
    assert set(counted) >= {"sorts", "facts", "defined", "inductive", "primitive", "constraints", "operators"}
    assert min(counted.values()) > 0
    rule_sets = {line[0]: line for line in lines[12:]}
    assert {"sonnx-2025-04", "sonnx-2025-05", "sonnx-2025-10", "sonnx-operators", "onnx"} <= rule_sets.keys()
    assert rule_sets["sonnx-2025-05"][1:3] == ["16", "rules:"]
    assert " ".join(rule_sets["sonnx"]).endswith("1 reported, with onnx, with domain")


def test_spec_check_shows_a_mistake_and_ends_with_a_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sonnx.spec import parsed

    texts = few()
    for wrong, category in [("sort ", "syntax"), ('fact x(y: Nowhere): Bool "x."', "name")]:
        monkeypatch.setattr(parsed, "read_texts", lambda wrong=wrong: {**texts, "3-execution.sonnx": wrong})
        assert cli.run(["spec", "check"]) == 1
        error = capsys.readouterr().err
        assert "3-execution.sonnx:1:" in error and f"{category} error: " in error and f"1 | {wrong}" in error


def test_spec_print_prints_a_file_that_reads_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.run(["spec", "print", "3-execution"]) == 0
    printed = capsys.readouterr().out
    copy = tmp_path / "copy.sonnx"
    copy.write_text(printed, encoding="utf-8")
    assert cli.run(["spec", "print", str(copy)]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("content", "code", "shown"),
    [(None, 2, "there is no file"), (b"\xff", 2, "is no UTF-8 text"), (b"sort", 1, "syntax error")],
)
def test_spec_print_refuses_what_it_cannot_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None, code: int, shown: str
) -> None:
    path = tmp_path / "x.sonnx"
    if content is not None:
        path.write_bytes(content)
    assert cli.run(["spec", "print", str(path)]) == code
    assert shown in capsys.readouterr().err


@pytest.mark.parametrize(("form", "index"), [left(("html", "index.html")), ("markdown", "index.md")])
def test_spec_render_writes_the_pages(tmp_path: Path, form: str, index: str) -> None:
    assert cli.run(["spec", "render", str(tmp_path / "out"), "--format", form]) == 0
    assert (tmp_path / "out" / index).is_file()


def test_spec_render_writes_the_site_with_its_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages that it is given; the campaign makes the whole site."""

    def site(_specification: object, texts: dict[str, str], examples: tuple[object, ...], *made: object) -> object:
        assert texts == read_texts() and repr(examples) == repr(read_examples())  # some hold NaN
        assert made[0] == executor() and "a-title.html" in made[1]
        return {"index.html": "a page", "below/page.html": "another one"}

    monkeypatch.setattr("sonnx.spec.render.site.site", site)
    monkeypatch.setattr("sonnx.spec.render.site.sessions.sessions", lambda: (Session("A title", "a-title.html", ()),))
    assert cli.run(["spec", "render", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "index.html").read_text() == "a page"
    assert (tmp_path / "out" / "below" / "page.html").read_text() == "another one"


def test_spec_render_into_a_file_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.run(["spec", "render", str(tmp_path / "file")]) == 2
    assert cli.run(["spec", "render", str(tmp_path / "file" / "below")]) == 2
    assert capsys.readouterr().err.count("error: ") == 2


def test_spec_check_lists_each_operator_with_its_versions() -> None:
    from sonnx.spec.elaborate.schema import signatures
    from sonnx.spec.library import specification

    counted = next(line for line in checked() if line.startswith("operators by version: "))
    numbers = [int(part.split()[0]) for part in counted.partition(": ")[2].split(", ")]
    declared = sum(len(own) for name, own in specification().operators.items() if name not in signatures())
    assert sum(numbers) == sum(len(versions) for versions in signatures().values()) + declared
    relu = next(line.split() for line in checked() if line.startswith("  Relu "))
    assert relu == ["Relu", "defined", "1,", "6,", "13,", "14", "|", "proved"]


def test_spec_check_counts_the_verdicts_on_definedness() -> None:
    (counted,) = (line for line in checked() if line.startswith("definedness of "))
    numbers = [int(part.split()[0]) for part in counted.partition(": ")[2].split(", ")]
    assert counted.split()[2] == str(sum(numbers))
    assert [part.split()[1] for part in counted.partition(": ")[2].split(", ")][:3] == ["proved", "tested", "listed"]


def test_spec_check_reports_the_mistakes_of_all_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sonnx.spec import parsed

    texts = few()
    wrong = {
        "5-operators/convolution.sonnx": "operator",
        "5-operators/activation.sonnx": 'define nothing_such(): Nothing "x." = 1',
    }
    monkeypatch.setattr(parsed, "read_texts", lambda: {**texts, **wrong})
    assert cli.run(["spec", "check"]) == 1
    error = capsys.readouterr().err
    assert "5-operators/convolution.sonnx:1:9: syntax error: " in error
    assert "5-operators/activation.sonnx:1:1: " not in error, "what an unread file may declare is no mistake of others"


def test_spec_show_prints_the_text_and_the_definitions_that_it_uses(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["spec", "show", "Conv", "--version", "12"]) == 0
    shown = capsys.readouterr().out
    assert "\noperator Conv @ 11..22 (X: T[n, c, d...]," in shown
    assert '  source "ONNX' in shown and "demanded SONNX/Conv-strides-C1" in shown
    assert "\ndefine window_extent(" in shown and "\ndefine padding_before(" in shown
    assert shown.startswith("# 5-operators/convolution.sonnx:")
    assert cli.run(["spec", "show", "Conv", "--version", "1"]) == 0
    assert "\noperator Conv @ 1 (" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "first", "used"),
    [
        ("Determinism", "theorem Determinism", "inductive executes("),
        ("NodesThatNeverRun", "finding NodesThatNeverRun", "inductive valued("),
        ("Acyclic", "constraint Acyclic", "inductive founded("),
        ("Step/fire", "rule Step/fire", "define enabled("),
        ("enabled", "define enabled(", ""),
    ],
)
def test_spec_show_prints_whatever_is_declared(
    capsys: pytest.CaptureFixture[str], name: str, first: str, used: str
) -> None:
    assert cli.run(["spec", "show", name]) == 0
    shown = capsys.readouterr().out
    assert shown.split("\n")[1].startswith(first) and "\n" + used in shown
    assert shown.count("\n" + first) == 1, "what uses itself comes once"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["Acyclic", "--version", "7"], "Acyclic is no operator"),
        (["Convv"], "ONNX has no operator 'Convv', and nothing of that name is declared; did you mean Conv?"),
        (["Zzz"], "ONNX has no operator 'Zzz', and nothing of that name is declared (see"),
        (["Conv", "--version", "0"], "there is no Conv at opset version 0; its versions are 1, 11, 22"),
        (["Upsample", "--version", "10"], "does not define Upsample-10 yet"),
    ],
)
def test_spec_show_answers_an_unknown_operator_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], shown: str
) -> None:
    assert cli.run(["spec", "show", *arguments]) == 2
    error = capsys.readouterr().err
    assert shown in error and error.count("\n") == 1
