"""`sonnx certify` and `sonnx examples` as a user meets them: exit codes, formats, files, wrong input, interrupts."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from sonnx.checker.certification.examples import write
from sonnx.spec import cli

SONNX = [sys.executable, "-c", "from sonnx.spec.cli import main; main()"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("examples")
    write(target)
    return target


def sonnx(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`sonnx ARGUMENTS` in this process: what a process of its own starts with is cheap here, and is tested below."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.run([str(argument) for argument in arguments])
    return subprocess.CompletedProcess(["sonnx", *map(str, arguments)], code, out.getvalue(), err.getvalue())


def process(*arguments: object, python: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    """`sonnx ARGUMENTS` in a process of its own, with options of Python."""
    command = [SONNX[0], *python, *SONNX[1:], *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120)


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("conforming", (), 0),
        ("working-group", (), 1),
        ("any-size", (), 0),
        ("any-size", ("--size", "H=1..2"), 1),
        ("any-size", ("--size", "H=3..", "--size", "W=3", "--strict"), 0),
        ("any-size", ("--strict",), 1),
        ("index-input", (), 0),
        ("index-input", ("--strict",), 3),
        ("matrix-sizes", (), 1),
        ("two-types", (), 1),
        ("unknown-attribute", (), 1),
        ("too-many-inputs", (), 1),
        ("output-usage", (), 0),
        ("output-usage", ("--strict",), 1),
        ("output-usage", ("--rules", "sonnx-2025-05"), 1),
        ("random", (), 1),
        ("constant-ancestor", ("--rules", "sonnx-2025-10"), 0),
        ("constant-ancestor", ("--rules", "sonnx-2025-10", "--strict"), 1),
    ],
)
def test_the_exit_code_tells_the_verdict(folder: Path, name: str, arguments: tuple[str, ...], code: int) -> None:
    assert sonnx("certify", folder / f"{name}.onnx", *arguments).returncode == code


LAST = {
    ("conforming",): "CONFORMS to sonnx.",
    ("any-size",): "CONFORMS to sonnx for H >= 3, W >= 3.",
    ("any-size", "--size", "H=3..9"): "CONFORMS to sonnx for 3 <= H <= 9, W >= 3.",
    ("any-size", "--size", "H=8", "--size", "W=8"): "CONFORMS to sonnx for H = 8, W = 8.",
    ("any-size", "--rules", "sonnx-2025-05"): "CONFORMS to sonnx-2025-05.",
    ("any-size", "--strict"): "VIOLATES sonnx (strict) (conditional: domain Conv-11/kernel_fits).",
    ("index-input",): "CONFORMS to sonnx, with 1 obligation on data.",
    ("index-input", "--strict"): "is UNDECIDED for sonnx (strict) (obligation: domain Gather-1/indices_in_range).",
    ("matrix-sizes",): "VIOLATES sonnx (violated: onnx inference/operator, domain MatMul-1/inner_dimensions).",
}


@pytest.mark.parametrize("call", LAST, ids=" ".join)
def test_the_last_line_says_for_what_the_verdict_stands(folder: Path, call: tuple[str, ...]) -> None:
    name, *arguments = call
    last = sonnx("certify", folder / f"{name}.onnx", *arguments).stdout.splitlines()[-1]
    assert last == f"{name}.onnx {LAST[call]}"


def test_sizes_are_refused_where_no_rule_set_depends_on_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shutil.copy(folder / "any-size.onnx", tmp_path)
    for models in ((model,), (model, folder / "conforming.onnx")):
        refused = sonnx("certify", *models, "--rules", "sonnx-2025-05", "--size", "H=3")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith("error: sizes (H) have no effect on sonnx-2025-05")
    assert sonnx("certify", model, "--rules", "sonnx-2025-05", "--others", "--size", "H=3").returncode == 0
    (tmp_path / "sonnx.toml").write_text('rules = ["sonnx-2025-05"]\n[sizes]\nH = "3..9"\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    assert sonnx("certify", model).returncode == 0


def test_other_rule_sets_are_judged_on_demand_only(folder: Path) -> None:
    plain = sonnx("certify", folder / "conforming.onnx", "--format", "json")
    assert [r["name"] for r in json.loads(plain.stdout)["rule_sets"]] == ["sonnx", "onnx", "domain"]
    more = sonnx("certify", folder / "conforming.onnx", "--others")
    assert "Other rule sets, not part of the verdict:" in more.stdout
    assert "sonnx-2025-05      CONFORMS" in more.stdout


@pytest.mark.parametrize("dead", [False, True])
def test_an_operator_that_nobody_defines_leaves_determinism_undecided(tmp_path: Path, dead: bool) -> None:
    """Where a rule is violated besides, that one counts."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Custom", ["x"], ["y"], domain="com.example"),
            *([helper.make_node("Relu", ["x"], ["unread"])] if dead else ()),
        ],
        "g",
        [value("x", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, [2])],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.example", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    done = sonnx("certify", tmp_path / "m.onnx", "--format", "json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == ((1, "VIOLATES") if dead else (3, "UNDECIDED"))
    assert report["domain"]["without_meaning"] == ["com.example::Custom"]
    unknown = {f"{rule['rule_set']} {rule['id']}": rule for rule in report["rules"] if rule["verdict"] == "unknown"}
    assert {"sonnx R2", "onnx operator", "domain defined"} <= unknown.keys()
    assert "com.example" in unknown["sonnx R2"]["reason"]
    last = sonnx("certify", tmp_path / "m.onnx").stdout.splitlines()[-1]
    if dead:
        assert last == "m.onnx VIOLATES sonnx (violated: R1/per-node)."
        return
    assert last.startswith("m.onnx is UNDECIDED for sonnx (unknown: R2, ")
    assert last.endswith(": the specification gives no executable meaning to com.example::Custom.")


def test_the_three_forms_of_the_working_group_example_get_one_verdict(folder: Path, tmp_path: Path) -> None:
    model = onnx.load(folder / "working-group.onnx")
    textual = tmp_path / "working-group.onnxtxt"
    textual.write_text(onnx.printer.to_text(model), encoding="utf-8")
    for path in (folder / "working-group.onnx", folder / "working-group.txt", textual):
        report = json.loads(sonnx("certify", path, "--rules", "sonnx-2025-05", "--format", "json").stdout)
        violated = {rule["id"]: rule["violations"] for rule in report["rules"] if rule["verdict"] == "violated"}
        assert set(violated) == {"R1/per-output", "R1/per-node"}
        assert [v["where"] for v in violated["R1/per-node"]] == ["/3:Sub"]


def test_reports_are_equal_from_run_to_run_and_without_asserts(folder: Path) -> None:
    arguments = ("certify", folder / "working-group.onnx", "--format", "json", "--rules", "all")
    other = process(*arguments, python=("-O",), PYTHONHASHSEED="2", LC_ALL="C")
    here = sonnx(*arguments)
    assert (other.returncode, other.stdout) == (here.returncode, here.stdout)


@pytest.mark.parametrize("form", ["text", "json", "sarif", "html"])
def test_output_goes_to_the_file_and_not_to_the_terminal(folder: Path, tmp_path: Path, form: str) -> None:
    target = tmp_path / "report"
    done = sonnx("certify", folder / "conforming.onnx", "--format", form, "--output", target)
    assert (done.returncode, done.stdout) == (0, "")
    assert "domain" in target.read_text(encoding="utf-8")


def test_a_pipe_gets_no_colours_and_no_progress(folder: Path) -> None:
    done = process("certify", folder / "working-group.onnx")
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_every_rule_of_every_set_gets_a_script(folder: Path, tmp_path: Path) -> None:
    model, queries = folder / "conforming.onnx", tmp_path / "smt"
    done = sonnx("certify", model, "--format", "json", "--dump-smt", queries)
    names = {path.name for path in queries.iterdir()}
    for rule in json.loads(done.stdout)["rules"]:
        own = f"{rule['constraint']}.smt2", f"{rule['rule_set']}.{rule['id'].replace('/', '.')}.smt2"
        whole = rule["rule_set"] == "domain" and "/" not in rule["id"]
        assert whole or names & set(own), rule["id"]


RELU = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["":21]> g (float[2] x) => (float[2] y) {y = Relu(x)}'
).SerializeToString()
WRONG = {
    "empty": b"",
    "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n",
    "prose": b"this is no model at all, it is a sentence",
    "truncated": RELU[:-3],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_model_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}\x1b[31m.onnx"
    path.write_bytes(WRONG[name])
    done = sonnx("certify", path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("nothing.onnx",), "does not exist"),
        ((), "name the MODEL"),
        (("{model}", "--rules", "sonnx-2026"), "sonnx-2025-10"),
        (("{model}", "--rules", "sonnx-operators@old"), "wg-2026-08"),
        (("{model}", "--output", "no/such/folder/report"), "existing folder"),
        (("--explain", "R1/per-nod"), "R1/per-node"),
        (("{model}", "--timeout", "0"), "timeout"),
    ],
)
def test_wrong_usage_is_answered_by_what_to_do(folder: Path, arguments: tuple[str, ...], hint: str) -> None:
    done = sonnx("certify", *(a.format(model=folder / "conforming.onnx") for a in arguments))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert hint in done.stderr


def test_explain_shows_quote_formula_and_what_depends_on_the_rule() -> None:
    done = sonnx("certify", "--explain", "sonnx-2025-05:C3")
    assert done.returncode == 0
    assert "Completeness: At the end of execution" in done.stdout
    for part in ("valued(t)", "executable", "superseded", "sonnx-2025-10 T06c"):
        assert part in done.stdout


def test_explain_lists_the_rules_of_a_rule_set() -> None:
    done = sonnx("certify", "--explain", "sonnx")
    assert done.returncode == 0
    for part in ("includes   onnx, domain", "C1: Single assignment (current, counted)", "counted in strict mode only"):
        assert part in done.stdout


def test_an_interrupt_ends_the_work_with_one_line(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", [f"t{max(0, i - 1)}", "t0"], [f"t{i}"]) for i in range(1, 40_000)]
    first, last = (value(name, TensorProto.FLOAT, [2]) for name in ("t0", "t39999"))
    graph = helper.make_graph(nodes, "g", [first], [last])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = tmp_path / "long.onnx"
    path.write_bytes(model.SerializeToString())
    command = [*SONNX, "certify", str(path)]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a job in the background inherits that it is ignored
    working = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    time.sleep(1.5)
    working.send_signal(signal.SIGINT)
    start = time.monotonic()
    out, err = working.communicate(timeout=30)
    assert time.monotonic() - start < 10
    assert (working.returncode, out, err) == (130, "", "interrupted\n")


@pytest.mark.campaign
def test_ten_gigabytes_of_weights_certify_in_the_memory_of_the_graph(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    size = 10 * 2**30
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(size)
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[size // 4], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", "weights.bin"), ("offset", "0"), ("length", str(size))):
        weight.external_data.add(key=key, value=text)
    shape = [size // 4]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape)],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    measure = (  # in a small process: a child's peak counts from the memory of the process that it is forked from
        "import resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
        "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-c", measure, *SONNX, "certify", str(tmp_path / "m.onnx")]
    code, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert code == "0"
    assert int(peak) / 1024 < 300
