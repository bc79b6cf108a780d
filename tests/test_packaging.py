"""What is shipped: the wheel holds every module and data file of the tree and nothing else; the README's commands."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from sonnx import spec

ROOT = Path(__file__).parents[1]
LAYERS = tuple(layer for layer in ("spec", "semantics", "checker", "proofs") if any((ROOT / layer).rglob("*.py")))
MADE = "sonnx/spec/parsed.json"
"""What the build makes of the texts."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def tracked() -> list[str]:
    """The files of the tree that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("the tree is no git checkout")
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted({name for name in listed if name and (ROOT / name).is_file()})


def shipped() -> list[str]:
    """The files of the layers that a wheel must hold: all but documentation, which the editor's extension has too."""
    named = [name for name in tracked() if name.partition("/")[0] in LAYERS]
    return [name for name in named if not name.endswith(".md") or "/vscode/" in name]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that is built from a copy of the tree, in which an earlier build has left a module behind."""
    needed = re.search(r"setuptools>=(\d+)", str(PROJECT["build-system"]["requires"]))
    assert needed is not None
    try:
        there = int(version("setuptools").partition(".")[0])
    except ModuleNotFoundError:
        there = 0
    if there < int(needed[1]):
        pytest.skip(f"building a wheel needs setuptools {needed[1]} or newer here")
    pytest.importorskip("build")
    copy = tmp_path_factory.mktemp("tree")
    for name in tracked():
        if name.partition("/")[0] != "tests":
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    left = copy / "build/lib/sonnx/spec/language/of_an_earlier_build.py"
    left.parent.mkdir(parents=True)
    left.write_text("")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(copy / "dist"), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (copy / "dist").glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], str]:
    """The files of the source distribution that is built from a copy of the tree, and what the build says."""
    pytest.importorskip("build")
    copy = tmp_path_factory.mktemp("source")
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(copy / "dist"), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (copy / "dist").glob("*.tar.gz")
    with tarfile.open(path) as archive:
        held = {it.name.partition("/")[2] for it in archive.getmembers() if it.isfile()}
    return held, done.stdout + done.stderr


def test_the_source_distribution_holds_the_whole_tree_and_its_build_warns_of_nothing(
    source: tuple[set[str], str],
) -> None:
    held, said = source
    assert set(tracked()) - held == set()
    made = {"PKG-INFO", "setup.cfg"}
    assert {name for name in held - set(tracked()) - made if not name.startswith("sonnx.egg-info/")} == set()
    assert [line for line in said.splitlines() if re.search("warning|deprecat", line, re.IGNORECASE)] == []


def test_the_hook_for_other_repositories_calls_a_command_that_there_is() -> None:
    (hook,) = pytest.importorskip("yaml").safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"].split() == ["sonnx", "certify"] and hook["language"] == "python"
    assert re.search(hook["files"], "nets/a.onnx") and not re.search(hook["files"], "a.onnx.txt")


ENVIRONMENT = """#!/bin/sh
# stands for `python3 -m venv PLACE`: its pip notes what it installs, its sonnx is that of this process
mkdir -p "$3/bin"
printf '#!/bin/sh\\necho "$@" > %s/installed\\n' "$PWD" > "$3/bin/pip"
printf '#!/bin/sh\\nexec "%s" -c "from sonnx.spec.cli import main; main()" "$@"\\n' "$REAL" > "$3/bin/sonnx"
chmod +x "$3/bin/pip" "$3/bin/sonnx"
"""


def test_the_action_installs_its_checkout_and_leaves_report_and_exit_code(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("the action is run by bash")
    from sonnx.checker.certification.examples import write

    action = pytest.importorskip("yaml").safe_load((ROOT / "action.yml").read_text())
    (step,) = action["runs"]["steps"]
    write(tmp_path / "examples")
    (tmp_path / "nets").mkdir()
    for name in ("conforming", "working-group"):
        shutil.copy(tmp_path / "examples" / f"{name}.onnx", tmp_path / "nets")
    (tmp_path / "python").write_text(ENVIRONMENT)
    (tmp_path / "python").chmod(0o755)
    given = {name: str(it["default"]) for name, it in action["inputs"].items()}
    given |= {"models": "nets/*.onnx", "arguments": "--jobs 1", "certificates": "certificates"}
    spelled = {name: value for name, value in step["env"].items() if "inputs." in value}
    names = {name: value.strip("${} ").removeprefix("inputs.") for name, value in spelled.items()}
    environment = {name: given[own] for name, own in names.items()} | {"SONNX_SOURCE": "checkout"}
    environment |= {"SONNX_PYTHON": str(tmp_path / "python"), "REAL": sys.executable, "GITHUB_OUTPUT": "outputs"}
    done = subprocess.run(
        ["bash", "-c", step["run"]], cwd=tmp_path, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "installed").read_text() == "install --quiet checkout\n"
    assert (tmp_path / "outputs").read_text() == "sarif=sonnx.sarif\ncode=1\n"
    (run,) = json.loads((tmp_path / "sonnx.sarif").read_text())["runs"]
    assert [it["location"]["uri"] for it in run["artifacts"]] == ["nets/conforming.onnx", "nets/working-group.onnx"]
    assert len(list((tmp_path / "certificates").rglob("*.json"))) == 2


def test_the_wheel_holds_the_files_of_the_tree_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    held = [
        name for name in wheel.namelist() if not name.startswith(f"sonnx-{PROJECT['project']['version']}.dist-info/")
    ]
    assert sorted(held) == sorted([*(f"sonnx/{name}" for name in shipped()), MADE])


def test_the_wheel_holds_the_bytes_of_the_tree(wheel: zipfile.ZipFile) -> None:
    for name in shipped():
        assert wheel.read(f"sonnx/{name}") == (ROOT / name).read_bytes(), name


def test_the_wheel_holds_what_its_texts_parse_to(wheel: zipfile.ZipFile) -> None:
    header = json.loads(wheel.read(MADE).split(b"\n", 1)[0])
    texts = [name.removeprefix("spec/") for name in shipped() if name.endswith(".sonnx")]
    digests = {name: hashlib.sha256((ROOT / "spec" / name).read_bytes()).hexdigest() for name in texts}
    assert {name: digest for name, digest, *_ in header[1]} == digests


def test_the_wheel_carries_the_licence(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("LICENSE")]
    assert wheel.read(name) == (ROOT / "LICENSE").read_bytes()


def test_every_folder_with_modules_is_a_listed_package() -> None:
    folders = {Path(name).parent.as_posix() for name in shipped() if name.endswith(".py")}
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(f"sonnx.{f.replace('/', '.')}" for f in folders)


def test_every_subcommand_can_be_loaded() -> None:
    import rich_click as click
    from sonnx.spec.cli import sonnx

    declared = PROJECT["project"]["entry-points"]["sonnx.commands"]
    context = click.Context(sonnx)
    assert sonnx.list_commands(context) == sorted(declared)
    for name in declared:
        command = sonnx.get_command(context, name)
        assert command is not None and command.help, name


def test_ci_runs_the_test_command_of_the_readme() -> None:
    last = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1]
    assert last.startswith("python3 -m venv ") and last.endswith(" tests/run.py")
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert any(last in block.splitlines() for block in blocks), f"the README lacks the line: {last}"


def test_ci_starts_from_a_new_environment_and_a_clean_tree() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "set -euo pipefail" in script
    assert re.search(r"^rm -rf .*\.venv-test\b.*\bbuild\b", script, re.M)
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "build/" in ignored


def test_the_licence_is_the_unmodified_text() -> None:
    official = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == official


def test_the_version_stands_once_and_the_changelog_has_a_dated_section_for_it() -> None:
    stated = str(PROJECT["project"]["version"])
    assert spec.__version__ == version("sonnx")
    extension = json.loads((ROOT / "semantics/debugger/vscode/package.json").read_text(encoding="utf-8"))
    assert extension["version"] == stated
    sections = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert sections[0] == stated
