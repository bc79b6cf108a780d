"""`py`: Python over the tensors of the position, for lines that a person types and for no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from command_calls import called
from debugger_models import NESTED, answer, model, nested, session, text
from sonnx.semantics.debugger.commands.table import execute
from sonnx.semantics.debugger.display.answers import Refusal
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.machine.state import value_of
from tables import table

ODD = '<ir_version: 10, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { u = Neg (x)  y = Abs (u) }'


def allowed(found: Session) -> Session:
    return replace(found, python=True)


@table(
    ("line", "shown"),
    [
        ("py np.linalg.norm(x)", "np.linalg.norm(x): float[] = 2.236068"),
        ("py x * 2", "x * 2: float[2] = 2.0 -4.0"),
        ('py t["x"][0]', 't["x"][0]: float[] = 1.0'),
        ('py value("n") + 1', 'value("n") + 1: int64[] = 4'),
        ("py [v.sum() for v in (x, x)][1]", "[v.sum() for v in (x, x)][1]: float[] = -1.0"),
        ("py [float(x[i]) for i in range(2)]", "[1.0, -2.0]"),
        ("py x.shape", "(2,)"),
        ("py None", "None"),
        ("py 'a\\x1bb'", "'a\\x1bb'"),
        ("py np.empty(0, 'M8[D]')", "array([], dtype='datetime64[D]')"),
    ],
)
def test_results_are_shown_as_print_shows_them_or_as_python_does(line: str, shown: str) -> None:
    assert text(allowed(nested()), line) == shown


@table(
    ("line", "why"),
    [
        ("py", "give an expression"),
        ("py x[", "SyntaxError"),
        ("py import os", "SyntaxError"),
        ("py 1 / 0", "ZeroDivisionError: division by zero"),
        ("py nope", "NameError: name 'nope' is not defined"),
        ("py y", "y has no value yet"),
        ('py t["nope"]', 'there is no tensor "nope"'),
        ("py t[0]", "take the name of a tensor"),
        ("py x.__setitem__(0, 1)", "read-only"),
        ("py (_ for _ in ()).throw(ValueError('two\\nlines'))", "ValueError: two lines"),
        ("py (_ for _ in ()).throw(SystemExit(3))", "SystemExit: 3"),
        ("py (_ for _ in ()).throw(GeneratorExit(3))", "GeneratorExit: 3"),
        ("py exit()", "NameError"),
    ],
)
def test_what_goes_wrong_is_one_line(line: str, why: str) -> None:
    found = allowed(nested())
    outcome = execute(found, line)
    assert isinstance(outcome.answer, Refusal) and outcome.session is found
    assert why in outcome.answer.message and "\n" not in outcome.answer.message


def test_the_state_is_not_what_python_gets() -> None:
    found = allowed(nested())
    answer(found, "py setattr(x.flags, 'writeable', True) or x.fill(9)")
    x = value_of(found.state, found.model.graphs[0].inputs[0])
    assert isinstance(x, np.ndarray) and list(x) == [1, -2]


def test_names_that_are_no_identifiers_and_own_names() -> None:
    proto = model(ODD)
    for node in proto.graph.node:
        for row in (node.input, node.output):
            row[:] = ["odd name" if it == "u" else it for it in row]
    proto.graph.input[0].name = "t"
    proto.graph.node[0].input[0] = "t"
    found = allowed(session(proto, {"t": np.array([1, -2], np.float32)}))
    found, _ = answer(found, "step")
    assert text(found, 'py t["odd name"] + value("t")').endswith("= 0.0 0.0")
    assert text(found, "py value('/\"odd name\"')").endswith("= -1.0 2.0")


# ---- Who may run it -------------------------------------------------------------------------------


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(model(NESTED), "nested.onnx")
    Path("script.txt").write_text("py open('made', 'w').close()\n", "utf-8")
    return tmp_path


RUN = "py open('made', 'w').close()"


@pytest.mark.parametrize(
    ("arguments", "code", "made"),
    [
        (("-e", RUN), 0, True),
        (("-e", f"where; {RUN}"), 0, True),
        (("-x", "script.txt"), 2, False),
        (("-x", "script.txt", "--allow-py"), 0, True),
        (("-e", f'alias where = "{RUN}"', "-e", "where"), 2, False),
        (("-e", "break 10", "-e", f'commands 1 "{RUN}"', "-e", "continue"), 2, False),
        (("-e", f'alias where = "{RUN}"', "-e", "where", "--allow-py"), 0, True),
    ],
)
def test_only_what_is_typed_runs(
    net: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, made: bool
) -> None:
    found, out, _ = called(capsys, "debug", "nested.onnx", "--random", "1", "--batch", *arguments)
    assert (found, (net / "made").exists()) == (code, made)
    assert ("--allow-py" in out) != made


def test_a_pipe_and_a_saved_session_run_none(
    net: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", (net / "script.txt").open(encoding="utf-8"))
    code, out, _ = called(capsys, "debug", "nested.onnx", "--random", "1")
    assert code == 2 and "--allow-py" in out and not (net / "made").exists()
    given = ("debug", "nested.onnx", "--random", "1", "--batch")
    called(capsys, *given, "-e", "bookmark here", "-e", "save s.session")
    Path("s.session").write_text(Path("s.session").read_text("utf-8") + RUN + "\n", "utf-8")
    code, out, _ = called(capsys, *given, "-e", "load s.session", "--allow-py")
    assert code == 2 and "is no line of a saved session" in out and not (net / "made").exists()
    lines = ('commands 1 "{}"', "alias next = {}", 'alias next = "where; {}"', "alias next = py")
    for number, kept in enumerate(lines):
        name, handed = f"{number}.session", kept.format(RUN)
        called(capsys, *given, "-e", "break 10", "-e", f"save {name}")
        Path(name).write_text(Path(name).read_text("utf-8") + handed + "\n", "utf-8")
        code, out, _ = called(capsys, *given, "-e", f"load {name}", "-e", "continue", "-e", "next", "--allow-py")
        assert code == 2 and "Python code of somebody" in out and not (net / "made").exists()


def test_python_that_insists_changes_a_copy_and_no_value_of_the_run() -> None:
    found = allowed(nested())
    before = text(found, "print x")
    execute(found, "py x.setflags(write=True) or x.fill(7)")
    execute(found, "py t['x'].setflags(write=True) or t['x'].fill(7)")
    assert text(found, "print x") == before
