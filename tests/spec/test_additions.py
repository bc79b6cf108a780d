"""Files that users add: named in four ways, checked like our own, told apart by name and digest."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sonnx.spec import library, project
from sonnx.spec.library import AddedTextError, extended, own_specification
from sonnx.spec.project import AdditionError

TEXT = """operator com.example::Scale @ 1 (X: T[d...], bias?: T[]) -> Y: T
  "X times alpha, plus the bias."
  source "a test"
  types T = float, double
  attribute alpha: float = 2.5
  Y[i... < d] = X[i] * cast(T, alpha) + (if given bias then bias[] else 0)
"""
ASKS = """
from sonnx.spec.library import specification
found = specification().meanings.at("com.example::Scale", 1)
print(None if found is None else f"{found.name} {[it.name for it in found.attributes]}", "; the rest:",
      specification().meanings.at("Relu", 14).name, len(specification().digests))
"""
NAMES = "from sonnx.spec.project import texts\nprint(*texts().values())"
Named = Callable[[Path], tuple[dict[str, str], list[str]]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with an operator, in a folder of its own."""
    made = tmp_path / "own.sonnx"
    made.write_text(TEXT)
    return made


def test_what_is_added_stands_beside_what_there_is(file: Path) -> None:
    found = extended(own_specification(), {"own.sonnx": TEXT})
    core = found.meanings.at("com.example::Scale", 1)
    assert core is not None
    assert [it.name for it in core.attributes] == ["alpha"]
    assert found.operators["com.example::Scale"][0].types[0].allowed == ("float", "double")
    assert found.operators["Relu"] == own_specification().operators["Relu"]
    assert found.meanings.at("Relu", 14) is own_specification().meanings.at("Relu", 14)
    assert found.digests["own.sonnx"] == hashlib.sha256(TEXT.encode()).hexdigest()
    assert found.files["own.sonnx"].declarations[0].name == "com.example::Scale"


def _asked(folder: Path, environment: dict[str, str], program: str = ASKS) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**{k: v for k, v in os.environ.items() if k != project.VARIABLE}, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_file_is_named_in_the_environment_in_the_settings_of_a_project_and_by_a_program(file: Path) -> None:
    outside = file.parent.parent
    nothing = _asked(outside, {})
    assert nothing.startswith("None")
    by_variable = _asked(outside, {"SONNX_SPEC": str(file)})
    assert by_variable.startswith("com.example::Scale ['alpha']")
    assert int(by_variable.split()[-1]) == int(nothing.split()[-1]) + 1
    assert _asked(outside, {}, f"from sonnx.spec.project import use\nuse([{str(file)!r}])\n" + NAMES) == f"{TEXT}\n"
    for setting in ('"own.sonnx"', '["own.sonnx"]'):
        (file.parent / "pyproject.toml").write_text(f"[tool.sonnx]\nspec = {setting}\n")
        (file.parent / "below").mkdir(exist_ok=True)
        assert _asked(file.parent / "below", {}, NAMES) == f"{TEXT}\n"
    assert _asked(file.parent, {"SONNX_SPEC": str(file)}, NAMES) == f"{TEXT}\n", "one file, named twice"
    assert _asked(file.parent, {}) == by_variable


MISTAKES = {
    'operator Relu @ 14 (X: T[d...]) -> Y: T\n  "Mine."\n  source "a test"\n  Y[i... < d] = X[i]\n': (
        "own.sonnx:1:1: operator error: Relu at version 14 has two meanings",
        "; the other place: 5-operators/activation.sonnx:",
    ),
    TEXT + TEXT: ("own.sonnx:7:1: operator error: com.example::Scale at version 1 has two meanings", "own.sonnx:1:1"),
    TEXT.replace("X[i] *", "Z[i] *"): ("name error: Z is not bound here", ""),
    TEXT.replace("operator", "operater"): ("syntax error: unexpected 'operater'", ""),
    'sort Colour "A colour."\n': ("added error: Colour belongs in the specification itself", ""),
    'fun twice(x: Int): Int "Twice."\n': ("added error: twice belongs in the specification itself", ""),
    'define align(x: Int): Int "Mine." = x\n': ("name error: the function align is declared twice", "the other place"),
    TEXT.replace("com.example::Scale @ 1", "com.example::Scale @ 1..2"): ("is that of one version", ""),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_names_the_place_and_what_is_wrong(text: str) -> None:
    with pytest.raises(AddedTextError) as caught:
        extended(own_specification(), {"own.sonnx": text})
    assert all(part in str(caught.value) for part in MISTAKES[text])


def test_one_operator_in_two_files_is_a_mistake_that_names_both() -> None:
    with pytest.raises(AddedTextError, match=r"b\.sonnx:1:1: operator error.*the other place: a\.sonnx:1:1"):
        extended(own_specification(), {"a.sonnx": TEXT, "b.sonnx": TEXT})


def test_a_definition_a_constraint_and_a_rule_set_can_be_added() -> None:
    text = (
        'define shallow(g: Graph): Bool "g has few nodes." = exists g in graphs(): true\n'
        'constraint Shallow "There is a node." at static: exists g in graphs(): true\n'
        '  violation "There is no node."\n  suggest "Add one."\n'
        'profile mine "Ours." source "a test" includes onnx { rule M1 "A node" = Shallow }\n'
    ).replace('define shallow(g: Graph): Bool "g has few nodes." = exists g in graphs(): true\n', "")
    found = extended(own_specification(), {"own.sonnx": text})
    assert found.profiles["mine"].rules[0].constraint == "Shallow"
    assert found.cores.constraint(found.constraints["Shallow"]).body.head == "exists"
    assert "onnx" in found.profiles


def test_a_command_says_which_file_it_cannot_read(file: Path) -> None:
    def sonnx(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from sonnx.spec.cli import main; main()", *arguments]
        return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)

    missing = sonnx("--spec", "none.sonnx", "spec", "show", "Relu")
    expected = "error: none.sonnx: No such file or directory; name a file of the specification language\n"
    assert (missing.returncode, missing.stderr) == (2, expected)
    shown = sonnx("--spec", "own.sonnx", "spec", "show", "com.example::Scale")
    assert (shown.returncode, shown.stdout) == (0, f"# own.sonnx:1\n{TEXT}\n")
    file.write_bytes(b"\xff\xfe")
    assert "no text in UTF-8" in sonnx("--spec", "own.sonnx", "spec", "show", "Relu").stderr
    file.write_text(TEXT.replace("X[i] *", "Z[i] *"))
    wrong = sonnx("--spec", "own.sonnx", "spec", "show", "Relu")
    assert wrong.returncode == 2
    assert wrong.stderr == "error: own.sonnx:6:17: name error: Z is not bound here\n"


def test_nothing_is_added_where_a_file_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(project.VARIABLE, raising=False)
    with pytest.raises(AdditionError, match="name a file"):
        project.use([tmp_path / "none.sonnx"])
    assert project.VARIABLE not in os.environ
    assert library.specification() is own_specification()
