"""`sonnx debug`: scripts with their output, JSON lines, pipes, exit codes, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from debugger_models import NESTED
from sonnx.semantics.debugger.repl import interactive
from sonnx.spec import cli

PROGRAM = "from sonnx.spec.cli import main; main()"
GOLDEN = Path(__file__).with_name("golden")
STRANGE = """<ir_version: 10, opset_import: ["" : 18]>
strange (float[2, 3] x) => (float[2] y) {
  w = Constant <value = float[3] {1.0, 2.0, 4.0}> ()
  big = Constant <value = float[1] {3e38}> ()
  p = MatMul (x, w)
  a = Mul (p, big)
  c = Sub (a, a)
  y = Relu (c)
}"""


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(NESTED), "nested.onnx")
    onnx.save(onnx.parser.parse_model(STRANGE), "strange.onnx")
    return tmp_path


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.run([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.parametrize(("name", "expected"), [("strange", 1), ("nested", 0)])
def test_a_script_gives_the_output_that_is_written_down(
    net: Path, capsys: pytest.CaptureFixture[str], name: str, expected: int
) -> None:
    arguments = ["debug", f"{name}.onnx", "--random", 3, "-x", GOLDEN / f"{name}.txt", "--batch"]
    code, out, err = called(capsys, *arguments)
    target = GOLDEN / f"{name}.out"
    if os.environ.get("SONNX_UPDATE"):
        target.write_text(out, encoding="ascii", newline="\n")
    assert (code, err) == (expected, "")
    assert out == target.read_text(encoding="ascii")


def test_json_gives_one_object_a_line(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = [part for line in ("find nan", "print c", "nope") for part in ("-e", line)]
    code, out, _ = called(capsys, "debug", "strange.onnx", "--random", 3, *script, "--json", "--batch")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 2
    assert [it["kind"] for it in found] == ["stop", "shown", "refusal"]
    assert found[0]["hits"][0]["element"] == [0]
    assert "NaN" not in out


def test_json_gives_values_and_no_cells(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ("seek end", "print c", "print p", "why-nan c[0]", "info tensors c", "where", "memory", "origin p[0]",
             "print any(isnan(c))", "print w[0:0]", "print $op", "print 2 * w")  # fmt: skip
    script = [part for line in lines for part in ("-e", line)]
    code, out, _ = called(capsys, "debug", "strange.onnx", "--random", 3, *script, "--json", "--batch")
    _, c, p, why, tensors, frames, memory, origin, truth, empty, text, double = map(json.loads, out.splitlines())
    assert code == 0
    assert (c["shape"], c["elements"], c["more"]) == ([2], ["nan", "nan"], 0)
    assert all(isinstance(it, float) for it in p["elements"]) and len(p["elements"]) == 2
    assert (why["rows"][0]["value"], why["rows"][0]["step"], why["rows"][0]["what"]) == ("nan", 5, "Generated")
    assert isinstance(tensors["rows"][0]["address"], int)
    assert frames["rows"] == [{"frame": 0, "graph or call": "/", "run": None, "line": None, "next": "end"}]
    assert all(isinstance(it["in use"], int) for it in memory["rows"])
    assert {"read as": "data", "tensor": '/"x"', "kind": "input", "elements": 3}.items() <= origin["rows"][-1].items()
    assert origin["rows"][-1]["which"] == [[0, 0], [0, 1], [0, 2]]
    assert truth["elements"] == [True] and (empty["shape"], empty["elements"]) == ([0], [])
    assert text["lines"] == ['""'] and double["elements"] == [2.0, 4.0, 8.0]


def test_exit_codes_say_what_happened(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["debug", "strange.onnx", "--random", 3, "--batch"]
    assert called(capsys, *common, "-e", "continue")[0] == 0
    assert called(capsys, *common, "-e", "find nan")[0] == 1
    assert called(capsys, *common, "-e", "find nan", "-e", "nothing", "-e", "step")[0] == 2
    assert called(capsys, *common, "--max-steps", 2, "-e", "continue")[0] == 1
    assert called(capsys, "debug", "strange.onnx", "--batch")[0] == 2
    assert called(capsys, "debug", "missing.onnx", "--batch")[0] == 2
    assert called(capsys, *common, "--schedule", "odd")[0] == 2
    assert called(capsys, *common, "-x", "missing.txt")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.onnx"], '"missing.onnx" does not exist'),
        (["junk.onnx"], "neither ONNX's textual syntax nor a listing"),
        (["empty.onnx"], "is empty"),
        (["."], "is a folder"),
        (["strange.onnx"], 'no value is given for the input "x": float[2, 3]: give one by name among the inputs'),
        (["strange.onnx", "--input", "x=missing.npy"], "missing.npy: No such file"),
        (["strange.onnx", "--input", "x=shape.npy"], 'the input "x" has size 3 along axis 0, expected 2'),
        (["strange.onnx", "--input", "x=type.npy"], 'the input "x" is int64[2, 3], expected float[2, 3]'),
        (["strange.onnx", "--input", "z=type.npy"], 'the model has no input "z"'),
        (["strange.onnx", "--input", "x=junk.onnx"], "is of no kind that is read here"),
        (["strange.onnx", "--random", "1", "--max-memory", "8"], "the limit is 8; rule Memory"),
        (["strange.onnx", "--random", "1", "-x", "binary.txt"], "is no text in UTF-8"),
        (["strange.onnx", "--random", "1", "--engine", "other"], "--engine"),
        ([], "Missing argument 'MODEL'"),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_wrong_input_is_refused_in_one_line_with_code_2(
    net: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str, form: list[str]
) -> None:
    (net / "junk.onnx").write_text("junk")
    (net / "empty.onnx").write_text("")
    (net / "binary.txt").write_bytes(b"\xff\xfe")
    np.save("shape.npy", np.zeros((3, 3), np.float32))
    np.save("type.npy", np.zeros((2, 3), np.int64))
    code, out, err = called(capsys, "debug", *arguments, "--batch", *form)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and message in err and err.count("\n") == 1


def test_commands_can_come_through_a_pipe(net: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "debug", "strange.onnx", "--random", "3"],
        input="seek 2\nwhen\n\nquit\nnever\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "step 2 of 2 or more, phase 0 of 5, line 8"


ENDLESS = """<ir_version: 10, opset_import: ["" : 18]>
endless (float[1] x) => (float[1] y) {
  y = Loop (, , x) <body = b (int64 i, bool go, float[1] v) => (bool g2, float[1] v2) {
    g2 = Identity (go)
    v2 = Add (v, x)
  }>
}"""


def test_ctrl_c_stops_an_endless_run_and_the_session_goes_on(net: Path) -> None:
    onnx.save(onnx.parser.parse_model(ENDLESS), "endless.onnx")
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", PROGRAM, "debug", "endless.onnx", "--random", "1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("step 3\ncontinue\n")
    process.stdin.flush()
    first = process.stdout.readline()
    assert first.startswith("step 3")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate("reverse-step\nquit\n", timeout=60)
    shown = out.splitlines()
    assert (process.returncode, err) == (0, "")
    assert "paused" in shown
    steps = [int(line.split()[1]) for line in shown if line.startswith("step ")]
    assert steps[0] > 3 and steps[1] == steps[0] - 1


def test_an_empty_line_repeats_the_last_move(monkeypatch: pytest.MonkeyPatch) -> None:
    from debugger_models import nested

    script = iter(["step", "", "", "print a", "", "when"])
    monkeypatch.setattr("builtins.input", lambda _: next(script))
    shown: list[str] = []
    with pytest.raises(StopIteration):
        interactive(nested(), shown.append)
    assert shown[-1].startswith("step 3 of 3")


# ---- Output that cannot be written ----------------------------------------------------------------

FULL = "error: the output cannot be written: No space left on device\n"
EVERY = (
    ("debug", "nested.onnx", "--random", "1", "-e", "continue", "-e", "list all", "--batch"),
    ("debug", "nested.onnx", "--random", "1", "-e", "nonsense", "--batch"),
    ("run", "nested.onnx", "--random", "1"),
    ("run", "nested.onnx", "--random", "1", "--engine", "numpy"),
    ("bench", "nested.onnx", "--random", "1", "--repeat", "1", "--format", "json"),
    ("certify", "nested.onnx"),
    ("certify", "nested.onnx", "strange.onnx", "--format", "json"),
    ("compare", "nested.onnx", "--engine", "numpy", "--random", "1", "--format", "json"),
    ("definedness", "Relu"),
    ("spec", "show", "Relu"),
    ("spec", "check"),
    ("schema",),
    ("vectors", "vectors", "--filter", "Relu-14/*"),
    ("examples", "examples"),
    ("--help",),
)
"""A call of each command that has output, and is soon done."""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        ("debug", "nested.onnx", "--random", "1", "-e", "continue", "--batch", "--json"),
        *(pytest.param(it, marks=pytest.mark.campaign) for it in EVERY),
    ],
    ids=" ".join,
)
def test_what_a_full_disk_does_not_take_is_one_line(net: Path, arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (2, FULL)
